//! Wake-ups: a hint that something may be due, merged until somebody looks. The poll is the truth.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A wake-up that is remembered until it is taken. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wake(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    woken: AtomicBool,
    notify: Notify,
}

impl Wake {
    /// Wakes. Cheap, and cheaper when nobody has taken the last one yet.
    pub(crate) fn wake(&self) {
        if !self.0.woken.swap(true, Ordering::AcqRel) {
            self.0.notify.notify_one();
        }
    }

    /// Takes a wake-up that came since the last call.
    pub(crate) fn take(&self) -> bool {
        self.0.woken.swap(false, Ordering::AcqRel)
    }

    /// Resolves at a wake-up that was not taken yet. May resolve once too often.
    pub(crate) async fn woken(&self) {
        self.0.notify.notified().await;
    }
}
