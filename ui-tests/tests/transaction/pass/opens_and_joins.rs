//! Functions and methods, called with a bus and with a handle.

use relaybus::memory::MemoryTransaction;
use relaybus::{AnyTransaction, MemoryStore, RelayBus, Result, transaction};

struct Orders {
    bus: RelayBus<MemoryStore>,
}

impl Orders {
    #[transaction]
    async fn place(&self, tx: &mut MemoryTransaction, names: &[&str]) -> Result<usize> {
        for name in names {
            if name.is_empty() {
                return Ok(0);
            }
            note(&mut *tx, name).await?;
        }
        Ok(names.len())
    }
}

#[transaction]
async fn note(_: &mut MemoryTransaction, name: &str) -> Result {
    if name == "bad" { Err(relaybus::Error::non_retryable(name)) } else { Ok(()) }
}

#[transaction]
async fn erased(_: &mut AnyTransaction) -> Result {
    Ok(())
}

async fn run(orders: &Orders) -> Result<usize> {
    erased(&orders.bus).await?;
    erased(&orders.bus.any()).await?;
    orders.bus.transaction(async |tx| orders.place(tx, &["a"]).await).await?;
    orders.place(&orders.bus, &["a", "b"]).await
}

#[test]
fn futures_are_send() {
    fn is_send<T: Send>(_: T) {}
    let orders = Orders { bus: RelayBus::builder(MemoryStore::new()).build().unwrap() };
    is_send(run(&orders));
}
