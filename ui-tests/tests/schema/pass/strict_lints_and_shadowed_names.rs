//! Generated code needs no rest from lints, and takes no name of the user's for its own.

#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, clippy::nursery)]

mod event {
    /// An order was placed.
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[event("order.placed.v1", key = order_id)]
    pub(super) struct OrderPlaced {
        order_id: String,
    }
}

mod catalogs {
    #[allow(unused_imports, reason = "that they are in scope is the case")]
    use crate::names::*;

    use super::event::OrderPlaced;

    macro_rules! domain {
        ($name:ident, $($flag:ident)?) => {
            #[::relaybus::catalog($($flag)?)]
            pub(super) enum $name {
                OrderPlaced(OrderPlaced),
            }
        };
    }
    domain!(EventSchema, schema);
}

mod renamed {
    use super::event::OrderPlaced;
    use ::relaybus as framework;

    #[framework::catalog(crate = framework, schema)]
    pub(super) enum Orders {
        OrderPlaced(OrderPlaced),
    }
}

#[test]
fn described() {
    use relaybus::catalog::schema::CatalogSnapshot;
    let snapshots = [CatalogSnapshot::of::<catalogs::EventSchema>(), CatalogSnapshot::of::<renamed::Orders>()];
    assert_eq!(snapshots[0].events, snapshots[1].events);
    assert_eq!(snapshots[0].events["order.placed.v1"].key.as_deref(), Some("order_id"));
    let variants = (catalogs::EventSchema::OrderPlaced, renamed::Orders::OrderPlaced);
    assert!(size_of_val(&variants) == 0);
}
