//! Keys from fields, nested fields, functions and closures, of every type a key may have.

use std::borrow::Cow;
use std::sync::Arc;

use relaybus::Event;
use serde::{Deserialize, Serialize};

macro_rules! keyed_by {
    ($($name:ident($type:ty) = $value:expr, $key:expr;)*) => {
    $(
        #[derive(Event, Serialize, Deserialize)]
        #[event("keyed.v1", key = 0)]
        struct $name($type);
    )*

    #[test]
    fn every_type() {
        $(
            let key = $name($value).ordering_key().unwrap();
            assert_eq!(key.map(|key| key.to_string()).as_deref(), $key);
        )*
    }
    };
}
keyed_by! {
    Text(String) = "a".to_owned(), Some("a");
    Shared(Arc<str>) = "a".into(), Some("a");
    Boxed(Box<str>) = "a".into(), Some("a");
    Static(Cow<'static, str>) = "a".into(), Some("a");
    Signed(i64) = -7, Some("-7");
    Wide(u128) = u128::MAX, Some("340282366920938463463374607431768211455");
    Optional(Option<u8>) = Some(1), Some("1");
    Missing(Option<Option<String>>) = Some(None), None;
}

#[derive(Event, Serialize, Deserialize)]
#[event("nested.v1", key = order.customer.1)]
struct Nested {
    order: Order,
}

#[derive(Serialize, Deserialize)]
struct Order {
    customer: (u8, String),
}

#[test]
fn nested() {
    let event = Nested { order: Order { customer: (1, "c".to_owned()) } };
    assert_eq!(event.ordering_key().unwrap().unwrap(), "c");
}
