//! A bus whose store lends another handle.

use relaybus::{MemoryStore, RelayBus, Result, transaction};

struct PgConnection;

#[transaction]
async fn place(_: &mut PgConnection) -> Result {
    Ok(())
}

async fn open(bus: &RelayBus<MemoryStore>) -> Result {
    place(bus).await
}

fn main() {}
