//! Runs one case: a runtime of its own, and a limit so that a hanging store fails by name.

use std::time::Duration;

use super::StoreFactory;

/// Longest time a case may take. A case takes milliseconds; this is for a store that hangs.
pub const CASE_LIMIT: Duration = Duration::from_secs(120);

/// Runs `case` against the stores of `factory`, on a runtime of its own with two workers.
///
/// What [`store_contract!`](crate::store_contract) expands to; call it to run a single case by hand.
///
/// # Panics
/// When the case fails or takes longer than [`CASE_LIMIT`].
pub fn run<F: StoreFactory, C>(name: &str, factory: F, case: C)
where
    C: AsyncFnOnce(&F),
{
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let ended = runtime.block_on(async { tokio::time::timeout(CASE_LIMIT, case(&factory)).await });
    assert!(ended.is_ok(), "case `{name}` did not end within {CASE_LIMIT:?}");
    runtime.shutdown_timeout(Duration::from_secs(5));
}
