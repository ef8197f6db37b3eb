//! The gate: whose turn it is to write, across the processes on one file.
//!
//! SQLite's own lock waiting starves: of three saturated writers one gets nearly everything. Before each of its
//! transactions a store locks a file beside the database (`flock`, released by the kernel when a process dies).
//!
//! A lock alone is not fair either: whoever leaves is running and takes it again before the one who waits has woken up.
//! So there are two: only who holds the *queue* may wait for the *gate*, and it lets the queue go when it has the gate.
//! Whoever leaves the gate finds the queue held by the next, and comes at best second.
//!
//! Invariant: the gate is fairness, never correctness. Whoever does not get it within [`PATIENCE`] goes on without it
//! and meets SQLite's own lock, so that a stopped process that holds the gate stops nobody.
//!
//! Interleavings: a waiter that gives up may still be granted the lock by the kernel later; the thread that waits for it
//! hands it to whoever wants it then, or unlocks at once. While that thread waits, the process asks for no lock beside it:
//! both are of one descriptor, and the kernel would grant the second.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::background::within;

/// How long a writer waits for the gate before it goes on without it.
const PATIENCE: Duration = Duration::from_millis(250);
/// The same while an earlier wait that was given up has not ended: somebody is stopped, or keeps a long transaction open.
const SHORT_PATIENCE: Duration = Duration::from_millis(20);
/// The file that is locked, beside the database.
const GATE_SUFFIX: &str = ".relaybus-gate";
/// The file whose lock is the right to wait.
const QUEUE_SUFFIX: &str = ".relaybus-queue";

/// The gate of one store.
#[derive(Debug)]
pub(super) struct Gate {
    /// One at a time within the process, first come first served.
    turn: Arc<Semaphore>,
    opened: Mutex<Option<Opened>>,
    paths: [PathBuf; 2],
}

/// The files, and the thread that waits for their locks: it ends when the gate is dropped.
#[derive(Debug)]
struct Opened {
    files: Arc<Files>,
    thread: mpsc::Sender<Arc<Files>>,
}

#[derive(Debug)]
struct Files {
    gate: File,
    queue: File,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The thread waits for a lock.
    running: bool,
    /// Who gets it.
    wanted: Option<oneshot::Sender<Locked>>,
}

/// The locked file. Dropping it unlocks, wherever it is dropped: a grant that nobody takes opens the gate again.
#[derive(Debug)]
struct Locked(Arc<Files>);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.gate.unlock();
    }
}

/// The right to write now. Dropping it opens the gate.
#[derive(Debug)]
pub(super) struct Pass {
    _locked: Option<Locked>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Gate {
    pub(super) fn new(database: &Path) -> Self {
        let beside = |suffix: &str| {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self {
            turn: Arc::new(Semaphore::new(1)),
            opened: Mutex::new(None),
            paths: [beside(GATE_SUFFIX), beside(QUEUE_SUFFIX)],
        }
    }

    /// Waits for the turn to write, at most about twice [`PATIENCE`].
    pub(super) async fn enter(&self) -> Pass {
        let turn = match Arc::clone(&self.turn).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => within(PATIENCE, Arc::clone(&self.turn).acquire_owned()).await.and_then(Result::ok),
        };
        // Without the process's own turn the file is locked by this very process: waiting for it adds nothing.
        let locked = if turn.is_some() { self.lock_file().await } else { None };
        Pass { _locked: locked, _turn: turn }
    }

    async fn lock_file(&self) -> Option<Locked> {
        let (wanted, mut granted) = oneshot::channel();
        let patience = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.is_none() {
                *opened = Opened::new(&self.paths);
            }
            let Opened { files, thread } = opened.as_ref()?;
            let mut waiting = files.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.running {
                waiting.wanted = Some(wanted);
                SHORT_PATIENCE
            } else if files.lock_at_once() {
                return Some(Locked(Arc::clone(files)));
            } else {
                thread.send(Arc::clone(files)).ok()?;
                *waiting = Waiting { running: true, wanted: Some(wanted) };
                PATIENCE
            }
        };
        match within(patience, &mut granted).await {
            Some(locked) => locked.ok(),
            // The grant may have come between the timeout and here.
            None => granted.try_recv().ok(),
        }
    }
}

impl Opened {
    /// Opens the files, at first use: the folder may not exist before.
    fn new([gate, queue]: &[PathBuf; 2]) -> Option<Self> {
        let open = |path| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).ok();
        let files = Arc::new(Files { gate: open(gate)?, queue: open(queue)?, waiting: Mutex::default() });
        let (thread, requests) = mpsc::channel::<Arc<Files>>();
        let started = std::thread::Builder::new().name("relaybus-gate".to_owned()).spawn(move || {
            for files in requests {
                wait_for_lock(&files);
            }
        });
        started.ok()?;
        Some(Self { files, thread })
    }
}

impl Files {
    /// Locks the gate when nobody waits and nobody has it. Else the queue may be ours already.
    fn lock_at_once(&self) -> bool {
        match self.queue.try_lock() {
            Ok(()) => {}
            // File locks do not work here: fairness is not to be had.
            Err(TryLockError::Error(_) | TryLockError::WouldBlock) => return false,
        }
        let locked = self.gate.try_lock().is_ok();
        if locked {
            let _ = self.queue.unlock();
        }
        locked
    }
}

/// Waits for the lock and hands it to whoever wants it by then.
fn wait_for_lock(files: &Arc<Files>) {
    let queued = files.queue.lock().is_ok();
    let locked = files.gate.lock().is_ok().then(|| Locked(Arc::clone(files)));
    if queued {
        let _ = files.queue.unlock();
    }
    let mut waiting = files.waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.running = false;
    let wanted = waiting.wanted.take();
    drop(waiting);
    if let (Some(wanted), Some(locked)) = (wanted, locked) {
        // A grant that comes too late is dropped in the channel, which unlocks.
        let _ = wanted.send(locked);
    }
}
