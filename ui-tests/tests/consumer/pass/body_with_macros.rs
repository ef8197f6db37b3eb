//! The body is the compiler's affair: closures, async blocks, nested items, `?` and macros.

use relaybus::{Event, consumer};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

#[consumer(OrderPlaced)]
async fn ship(event: OrderPlaced) -> Result<(), std::num::ParseIntError> {
    fn parse(text: &str) -> Result<u8, std::num::ParseIntError> {
        text.parse()
    }
    let numbers = ["1", "2"].map(|text| async move { parse(text) });
    for number in numbers {
        if number.await? == 2 {
            return Ok(());
        }
    }
    matches!(event, OrderPlaced {}).then_some(()).map_or(Ok(()), Ok)
}
