//! Events by whatever path and name: re-exported, renamed, generic, and in two catalogs.

use relaybus::catalog as group;
use relaybus::{Catalog, Event, MemberOf};
use serde::{Deserialize, Serialize};

mod contracts {
    pub(super) use inner::OrderPlaced as Placed;

    mod inner {
        #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
        #[event("order.placed.v1")]
        pub(in super::super) struct OrderPlaced {}
    }
}
use contracts::Placed as Ordered;

#[derive(Event, Serialize, Deserialize)]
#[event("stock.changed.v1")]
struct Changed<T> {
    to: T,
}

type Stock = Changed<std::collections::BTreeMap<String, u32>>;

#[group]
enum Orders {
    OrderPlaced(Ordered),
    StockChanged(Stock),
}

#[relaybus::catalog(name = "all-orders")]
enum Everything {
    Placed(contracts::Placed),
    NumberChanged(Changed<std::collections::BTreeMap<String, u32>>),
}

#[test]
fn known_by_type() {
    fn name_of_its<C: Catalog>(_: &impl MemberOf<C>) -> &'static str {
        C::NAME
    }
    assert_eq!(name_of_its::<Orders>(&Ordered {}), "Orders");
    assert_eq!(name_of_its::<Everything>(&Stock { to: std::iter::empty().collect() }), "all-orders");
    assert_eq!(Everything::EVENTS[1].spelled, "Changed<std::collections::BTreeMap<String, u32>>");
    assert_eq!(Orders::EVENTS[0].event_type, Everything::EVENTS[0].event_type);
    let events = [Orders::from(contracts::Placed {}), Stock { to: std::iter::empty().collect() }.into()];
    assert!(matches!(&events, [Orders::OrderPlaced(_), Orders::StockChanged(changed)] if changed.to.is_empty()));
    assert!(matches!(Everything::from(Ordered {}), Everything::Placed(_)));
    assert!(matches!(Stock { to: std::iter::empty().collect() }.into(), Everything::NumberChanged(_)));
}
