//! Worker processes: this program once more, with the handlers only, on the same store.

use std::any::Any;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use relaybus::{BoxError, RelayBus};

use crate::report::say;
use crate::without_password;

type Result<T = (), E = BoxError> = std::result::Result<T, E>;

/// The workers of a run. They end by themselves when this process ends, however it ends: see [`work`].
#[derive(Debug, Default)]
pub struct Workers {
    running: Vec<Child>,
    pub started: usize,
    pub lost: usize,
}

impl Workers {
    /// Starts `count` workers on a store.
    pub fn start(count: usize, store: &str) -> Result<Self> {
        let mut workers = Self { started: count, ..Self::default() };
        for _ in 0..count {
            let mut command = Command::new(std::env::current_exe()?);
            let worker = command.args(["--worker", "--store", store]).stdin(Stdio::piped()).spawn()?;
            say(format_args!("worker {} started", worker.id()));
            workers.running.push(worker);
        }
        Ok(workers)
    }

    /// Notices workers that ended too early. Nobody has to do anything about their work: when their leases end, the
    /// other workers take it over.
    pub fn notice_losses(&mut self) -> Result {
        let mut running = Vec::new();
        for mut worker in self.running.drain(..) {
            match worker.try_wait()? {
                None => running.push(worker),
                Some(status) => {
                    self.lost += 1;
                    say(format_args!("worker {} was lost ({status})", worker.id()));
                }
            }
        }
        self.running = running;
        Ok(())
    }

    /// Whether no worker is left.
    pub fn are_gone(&self) -> bool {
        self.running.is_empty()
    }

    /// Asks the workers to stop and waits for them.
    pub async fn stop(self) -> Result {
        for mut worker in self.running {
            drop(worker.stdin.take());
            for _ in 0..STOP_LOOKS {
                if worker.try_wait()?.is_some() {
                    break;
                }
                tokio::time::sleep(STOP_LOOK).await;
            }
            // One that does not answer has nothing left to do.
            worker.kill()?;
            worker.wait()?;
        }
        Ok(())
    }
}

/// How often a stopping worker is looked at.
const STOP_LOOKS: u32 = 500;
/// How long to wait between two looks.
const STOP_LOOK: Duration = Duration::from_millis(10);

/// A lock for as long as it is kept.
pub type Lock = Box<dyn Any + Send>;

/// Makes this the only import into a store: two would import each line at once, and each would find events of the other in
/// its result. The answer is a lock, which ends with this process, however it ends.
pub async fn be_the_only_one(store: &str) -> Result<Option<Lock>> {
    #[cfg(feature = "postgres")]
    if crate::postgres::is_named_by(store) {
        let connection = crate::postgres::lock(store).await?.ok_or_else(|| another(store))?;
        return Ok(Some(Box::new(connection)));
    }
    let Some(path) = store.strip_prefix("sqlite://").or(store.strip_prefix("sqlite:")) else { return Ok(None) };
    let path = format!("{path}.quickstart-lock");
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file =
        file.map_err(|error| format!("`{path}` cannot be opened ({error}): let this process write in its folder"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Box::new(file))),
        Err(TryLockError::WouldBlock) => Err(another(store)),
        Err(TryLockError::Error(error)) => Err(format!("`{path}` cannot be locked: {error}").into()),
    }
}

fn another(store: &str) -> BoxError {
    let store = without_password(store);
    format!("another quickstart works on `{store}`: wait until it has ended, or name another `--store`").into()
}

/// What a worker does: it lets its bus run the handlers until its parent closes its standard input, or is gone.
pub async fn work(bus: &RelayBus) -> Result {
    bus.start().await?;
    tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await??;
    bus.stop().await?;
    Ok(())
}
