//! Blocks out of macros by example.

use relaybus::{Event, consumers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

macro_rules! service {
    ($name:ident, $method:ident($event:ty), $id:literal) => {
        struct $name;

        #[consumers]
        impl $name {
            #[consumer($event, id = $id)]
            async fn $method(&self, event: $event) {
                self.inner(event).await;
            }

            async fn inner(&self, event: $event) {
                let _ = event;
            }
        }
    };
}
service!(Shipping, on_placed(OrderPlaced), "mbe.shipping");
service!(Billing, on_placed(OrderPlaced), "mbe.billing");
