//! Type parameters, lifetimes, patterns, `impl Trait` and what is consumed.

use relaybus::memory::MemoryTransaction;
use relaybus::{BoxError, MemoryStore, RelayBus, transaction};

struct Order {
    id: u64,
}

#[transaction]
async fn generic<'a, T, const N: usize>(
    _tx: &mut MemoryTransaction,
    Order { id }: Order,
    mut names: Vec<&'a T>,
    many: impl Iterator<Item = u64> + Send,
) -> Result<(&'a T, u64), BoxError>
where
    T: Sync + ?Sized,
{
    let first = names.pop().ok_or("no name")?;
    Ok((first, id + many.sum::<u64>() + N as u64))
}

#[transaction(isolation = "serializable", attempts = 5)]
async fn rerun(_: &mut MemoryTransaction, name: &str, order: Vec<u8>) -> Result<Vec<u8>, BoxError> {
    Ok([order, name.into()].concat())
}

#[test]
fn called() {
    fn is_send<T: Send>(_: T) {}
    let bus: RelayBus<MemoryStore> = RelayBus::builder(MemoryStore::new()).build().unwrap();
    is_send(generic::<str, 2>(&bus, Order { id: 1 }, vec!["a"], 0..5));
    is_send(rerun(&bus, "a", vec![1]));
}
