//! Nothing of the standard library in scope.

#![no_implicit_prelude]

#[derive(::relaybus::Event, ::serde::Serialize, ::serde::Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[::relaybus::consumer(OrderPlaced)]
async fn plain(event: ::relaybus::Envelope<OrderPlaced>, context: &::relaybus::HandlerContext) -> ::relaybus::Result {
    let _ = (event, context);
    ::std::result::Result::Ok(())
}

#[::relaybus::consumer(
    OrderPlaced,
    id = "no.prelude",
    transactional,
    retry(attempts = 5, initial_delay = "2s", factor = 2.0, max_delay = "5m"),
    timeout = "30s",
    concurrency = 4,
    order = "replay"
)]
async fn full(tx: &mut ::relaybus::memory::MemoryTransaction, states: ::relaybus::State<::std::string::String>) {
    let _ = (tx, states);
}

#[::std::prelude::v1::test]
fn listed() {
    let list: ::relaybus::registry::HandlerList<::relaybus::memory::Memory> = ::relaybus::handlers![plain, full];
    ::std::assert_eq!(list.entries().len(), 2);
}
