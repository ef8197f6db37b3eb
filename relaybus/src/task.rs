//! Tasks and chance: the only place of the crate that spawns, and that draws random numbers.
//!
//! Random numbers come from one generator a bus, seeded by the user when a run must be reproducible; identifiers
//! are drawn from it too.
#![allow(
    clippy::disallowed_methods,
    reason = "this module is the one place that may spawn tasks and create random generators"
)]

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::task::JoinHandle;

use crate::error::{Error, Result};

/// Whether tasks can be spawned and timers made here. Without this look the first one panics in the background.
///
/// # Errors
/// A lifecycle error outside a tokio runtime, and inside one that has no timers.
pub(crate) fn check_runtime() -> Result<()> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(Error::lifecycle(
            "the bus starts inside a tokio runtime only: start it under `#[tokio::main]` or `Runtime::block_on`",
        ));
    }
    // A runtime does not tell whether it has timers; making one without panics.
    let timer = std::panic::catch_unwind(|| drop(tokio::time::sleep(std::time::Duration::ZERO)));
    timer.map_err(|_| {
        Error::lifecycle("the tokio runtime has no timers: build it with `enable_time()` or `enable_all()`")
    })
}

/// Spawns a task of the bus on the current tokio runtime.
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// Aborts the task when dropped, so that no background task outlives its owner.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(pub(crate) JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The random generator of a bus.
#[derive(Debug)]
pub(crate) struct Chance(Mutex<fastrand::Rng>);

impl Default for Chance {
    fn default() -> Self {
        Self(Mutex::new(fastrand::Rng::new()))
    }
}

impl Chance {
    /// A generator that always draws the same numbers.
    #[must_use]
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// A number in `0.0..1.0`.
    #[must_use]
    pub(crate) fn unit(&self) -> f64 {
        self.draw(fastrand::Rng::f64)
    }

    /// Any 128 bits.
    #[must_use]
    pub(crate) fn bits(&self) -> u128 {
        self.draw(|rng| rng.u128(..))
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
