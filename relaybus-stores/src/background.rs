//! Tasks and waits of the stores' own: for real databases and real threads, which no virtual clock can own. A bus's own time
//! never comes from here.
#![allow(clippy::disallowed_methods, reason = "the one place of the stores that starts tasks and timers")]

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;

/// A task that ends with its owner.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a task that its owner ends.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> AbortOnDrop {
    AbortOnDrop(tokio::spawn(future))
}

/// Runs `future` to its end even if the caller goes away. `None` when it panicked or the runtime ends.
#[cfg(feature = "postgres")]
pub(crate) async fn to_its_end<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Option<T> {
    tokio::spawn(future).await.ok()
}

/// Waits `duration` of real time.
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// The value of `future`, or `None` when it takes longer than `limit` of real time.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(limit, future).await.ok()
}
