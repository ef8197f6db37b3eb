//! Everything a consumer may return.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[derive(Debug)]
enum ShipError {
    Late,
}
impl std::fmt::Display for ShipError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("late")
    }
}
impl std::error::Error for ShipError {}

#[consumer(OrderPlaced, id = "results.nothing")]
async fn nothing(_: OrderPlaced) -> () {}

#[consumer(OrderPlaced)]
async fn own(_: OrderPlaced) -> Result<(), ShipError> {
    Err(ShipError::Late)
}

#[consumer(OrderPlaced)]
async fn ours(_: OrderPlaced) -> relaybus::Result {
    Ok(())
}

#[consumer(OrderPlaced)]
async fn boxed(_: OrderPlaced) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Err("text")?;
    Ok(())
}

#[consumer(OrderPlaced)]
async fn text(_: OrderPlaced) -> Result<(), &'static str> {
    Err("text")
}

#[consumer(OrderPlaced)]
async fn never(_: OrderPlaced) -> Result<(), std::convert::Infallible> {
    Ok(())
}
