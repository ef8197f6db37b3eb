//! Telling dispatchers that something may be due: commits of this store at once, those of others through the folder.
//!
//! Invariant: a wake-up is a hint. Nothing is lost without it; the poll finds everything.
//!
//! Every commit of any process writes the file's log (`-wal`), so the folder's change events report them all, the
//! application's own transactions included. The log is deleted and made again, so the folder is watched and not the file.
//! A commit makes one or two events: the first wakes at once, those of the next [`MERGE`] are one more wake-up,
//! and one more comes when it has been quiet for [`LATE`].

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use relaybus::store::{WakeUp, WatchGuard};
use tokio::sync::Notify;

use crate::background::{AbortOnDrop, pause, spawn, within};

/// Change events within this time are one wake-up.
const MERGE: Duration = Duration::from_millis(2);

/// When it has been quiet this long, there is one more wake-up: the event tells of the write to the log, and what it commits can
/// be seen a moment later, which is long where the writer has to wait for a processor. Not sooner: the claim that it causes holds
/// up an event that comes within the next few milliseconds, because wake-ups close to a claim are merged.
const LATE: Duration = Duration::from_millis(100);

/// Who is woken.
#[derive(Default)]
pub(super) struct Watchers {
    list: Mutex<Vec<Entry>>,
}

struct Entry {
    number: u64,
    wake: WakeUp,
}

impl std::fmt::Debug for Watchers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Watchers").field("count", &list.len()).finish()
    }
}

impl Watchers {
    /// Wakes everybody.
    pub(super) fn wake(&self) {
        let wakes: Vec<WakeUp> = {
            let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            list.iter().map(|entry| Arc::clone(&entry.wake)).collect()
        };
        for wake in wakes {
            wake();
        }
    }

    fn add(self: &Arc<Self>, wake: WakeUp) -> Registered {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let number = list.last().map_or(0, |entry| entry.number + 1);
        list.push(Entry { number, wake });
        Registered { watchers: Arc::clone(self), number }
    }
}

/// Takes its entry off the list when dropped.
struct Registered {
    watchers: Arc<Watchers>,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut list = self.watchers.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|entry| entry.number != self.number);
    }
}

/// Watches the folder and passes its changes on, as long as it lives.
struct FolderWatch {
    _watcher: RecommendedWatcher,
    _task: AbortOnDrop,
}

/// Adds `wake` to the store's commits and, where the system allows it, to the folder's changes.
pub(super) fn watch(watchers: &Arc<Watchers>, path: &Path, wake: WakeUp) -> WatchGuard {
    let folder = watch_folder(path, Arc::clone(&wake));
    Box::new((watchers.add(wake), folder.map(Mutex::new)))
}

/// Whether folders can be watched here: the system may be out of watches.
pub(super) fn can_watch(path: &Path) -> bool {
    let ignore = |_: notify::Result<notify::Event>| {};
    let Some(folder) = path.parent() else { return false };
    notify::recommended_watcher(ignore)
        .is_ok_and(|mut watcher| watcher.watch(folder, RecursiveMode::NonRecursive).is_ok())
}

fn watch_folder(path: &Path, wake: WakeUp) -> Option<FolderWatch> {
    let (folder, mut log) = (path.parent()?, OsString::from(path.file_name()?));
    log.push("-wal");
    let changed = Arc::new(Notify::new());
    let signal = Arc::clone(&changed);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error may mean that events were lost: a wake-up too many costs one empty claim.
        let concerns = event.is_ok_and(|event| {
            let kind = matches!(event.kind, EventKind::Modify(_) | EventKind::Create(_) | EventKind::Other);
            kind && (event.need_rescan() || event.paths.iter().any(|path| path.file_name() == Some(&log)))
        });
        if concerns {
            signal.notify_one();
        }
    })
    .ok()?;
    watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
    let task = spawn(async move {
        loop {
            changed.notified().await;
            loop {
                wake();
                pause(MERGE).await;
                if within(LATE, changed.notified()).await.is_none() {
                    break;
                }
            }
            wake();
        }
    });
    Some(FolderWatch { _watcher: watcher, _task: task })
}
