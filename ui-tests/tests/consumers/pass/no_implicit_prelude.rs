//! Nothing of the standard library in scope.

#![no_implicit_prelude]

#[derive(::relaybus::Event, ::serde::Serialize, ::serde::Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Shipping;

#[::relaybus::consumers]
impl Shipping {
    #[consumer(OrderPlaced, timeout = "1s")]
    async fn on_placed(&self, event: OrderPlaced) -> ::relaybus::Result {
        let _ = event;
        ::std::result::Result::Ok(())
    }
}
