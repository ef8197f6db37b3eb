//! Consumers out of macros by example, with each part from outside.

use relaybus::registry::HandlerList;
use relaybus::{Event, consumer, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
pub(crate) struct OrderPlaced {}

macro_rules! consumers {
    ($($(#[$meta:meta])* $vis:vis $name:ident($event:ty) -> $output:ty, id = $id:literal, timeout = $timeout:expr;)*) => {
        $(
            #[consumer($event, id = $id, timeout = $timeout, retry(attempts = 3))]
            $(#[$meta])*
            $vis async fn $name(event: $event) -> $output {
                let _ = event;
                Ok(())
            }
        )*

        fn list() -> HandlerList<relaybus::memory::Memory> {
            handlers![$($name),*]
        }
    };
}
consumers! {
    /// With documentation.
    pub(crate) one(OrderPlaced) -> Result<(), String>, id = "mbe.one", timeout = "1s";
    two(self::OrderPlaced) -> relaybus::Result, id = "mbe.two", timeout = false;
}

macro_rules! whole {
    ($($item:item)*) => {
        $($item)*
    };
}
whole! {
    #[consumer(OrderPlaced)]
    async fn inside(event: OrderPlaced) {
        let _ = event;
    }
}

#[test]
fn listed() {
    let ids: Vec<_> = list().entries().iter().map(|entry| entry.id).collect();
    assert_eq!(ids, ["mbe.one", "mbe.two"]);
}
