//! The attribute on something else.

use relaybus::transaction;

#[transaction]
struct Place;

#[transaction]
impl Place {}

trait Places {
    #[transaction]
    async fn place(&self, tx: &mut u8) -> relaybus::Result;
}

fn main() {}
