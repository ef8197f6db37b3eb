//! The contract suite, without and with a completion history; its peers are stores with connections of their own.

use crate::kit::{SchemaFactory, builder};

relaybus_testing::store_contract! {
    mod plain;
    factory = SchemaFactory::new(|schema| builder(schema).completion_history(false));
}

relaybus_testing::store_contract! {
    mod with_history;
    factory = SchemaFactory::new(|schema| builder(schema).completion_history(true));
}
