//! Telling dispatchers that something may be due: those of this process at once, those of others by `NOTIFY`.
//!
//! Invariant: a wake-up is a hint of constant size. Nothing is lost without it; the poll finds everything.
//!
//! `NOTIFY` inside a publishing transaction makes publishers queue behind one lock of the server. So what the store commits
//! itself is announced after the commit, on a connection of its own, at most once in [`PACE`]. In the application's own
//! transactions the store cannot know the commit: there the notification is part of the transaction, at most one in
//! [`PACE`]. One that carries none may commit much later than the next notification of the store: so the store repeats that
//! one at growing distances. The transaction is heard of no later after its commit than as long again as it took, and [`PACE`];
//! one that takes longer than a few seconds waits for the poll.
//!
//! The listening connection is outside of every pool. When it was lost, the order is: listen again, then wake, so that
//! nothing that was committed in between waits for the poll. It is tested every [`QUIET`] without a word. Through a pooler
//! in transaction mode nothing is heard, so nobody listens there; what is sent through it reaches those who listen directly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use relaybus::store::{WakeUp, WatchGuard};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use tokio::sync::Notify;

use super::background::{AbortOnDrop, PATIENCE, pause, spawn, within};
use super::options::reached;
use super::pooler::Way;

/// At most one notification in this time.
const PACE: Duration = Duration::from_millis(10);
/// The longest wait between two repetitions for a transaction of the application: with it they end.
const LAST_REPEAT: Duration = Duration::from_millis(2_560);
/// How long the listening connection may be silent before it is tested.
const QUIET: Duration = Duration::from_secs(30);
/// Wait before a lost listening connection is replaced.
const RECONNECT: Duration = Duration::from_secs(1);

/// Who is woken, and how others are told.
pub(super) struct Wakeups {
    list: Mutex<Vec<(u64, WakeUp)>>,
    way: Arc<Way>,
    /// Where notifications are sent; `None` in the mode without.
    remote: Option<Remote>,
}

struct Remote {
    channel: String,
    options: PgConnectOptions,
    wanted: Arc<Notify>,
    /// Whether something is to be announced.
    pending: Arc<AtomicBool>,
    sender: Mutex<Option<AbortOnDrop>>,
    /// Whether the next transaction of the application carries a notification: once in [`PACE`].
    inside: Arc<AtomicBool>,
    /// Whether one was open that carries none.
    silent: Arc<AtomicBool>,
}

impl std::fmt::Debug for Wakeups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wakeups").field("remote", &self.remote.is_some()).finish_non_exhaustive()
    }
}

impl Wakeups {
    pub(super) fn new(channel: String, options: Option<PgConnectOptions>, way: Arc<Way>) -> Self {
        let remote = options.map(|options| Remote {
            channel,
            options,
            wanted: Arc::default(),
            pending: Arc::default(),
            sender: Mutex::default(),
            inside: Arc::new(AtomicBool::new(true)),
            silent: Arc::default(),
        });
        Self { list: Mutex::default(), way, remote }
    }

    /// Whether others are told, and their word is heard here.
    pub(super) fn hears_others(&self) -> bool {
        self.remote.is_some() && self.way.reach().listens
    }

    /// Something due was committed: wakes this process now and the others soon.
    pub(super) fn published(&self) {
        self.wake();
        self.announce();
    }

    /// Something due was written in a transaction of the application: the channel when it is to carry the notification.
    pub(super) fn inside(&self) -> Option<&str> {
        let remote = self.remote.as_ref()?;
        let carries = remote.inside.swap(false, Ordering::AcqRel);
        if !carries {
            remote.silent.store(true, Ordering::Release);
        }
        self.announce();
        carries.then_some(&*remote.channel)
    }

    fn announce(&self) {
        let Some(remote) = &self.remote else { return };
        remote.pending.store(true, Ordering::Release);
        remote.wanted.notify_one();
        let mut sender = remote.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            let task = Sending {
                channel: remote.channel.clone(),
                options: remote.options.clone(),
                way: Arc::clone(&self.way),
                wanted: Arc::clone(&remote.wanted),
                pending: Arc::clone(&remote.pending),
                inside: Arc::clone(&remote.inside),
                silent: Arc::clone(&remote.silent),
            };
            *sender = Some(spawn(task.run()));
        }
    }

    fn wake(&self) {
        let wakes: Vec<WakeUp> = {
            let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            list.iter().map(|(_, wake)| Arc::clone(wake)).collect()
        };
        for wake in wakes {
            wake();
        }
    }

    fn add(self: &Arc<Self>, wake: WakeUp) -> Registered {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let number = list.last().map_or(0, |(number, _)| number + 1);
        list.push((number, wake));
        Registered { wakeups: Arc::downgrade(self), number }
    }

    /// Stops telling others.
    pub(super) fn close(&self) {
        if let Some(remote) = &self.remote {
            *remote.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// Takes its entry off the list when dropped.
struct Registered {
    wakeups: Weak<Wakeups>,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(wakeups) = self.wakeups.upgrade() {
            wakeups.list.lock().unwrap_or_else(PoisonError::into_inner).retain(|(number, _)| *number != self.number);
        }
    }
}

/// The task that sends notifications.
struct Sending {
    channel: String,
    options: PgConnectOptions,
    way: Arc<Way>,
    wanted: Arc<Notify>,
    pending: Arc<AtomicBool>,
    inside: Arc<AtomicBool>,
    silent: Arc<AtomicBool>,
}

impl Sending {
    /// A lost notification costs a poll, so its commit need not wait for the disk.
    fn options(&self) -> PgConnectOptions {
        reached(self.options.clone(), self.way.reach(), &[("synchronous_commit", "off")])
    }

    /// Sends at most one notification in [`PACE`], as long as there is something to announce or to repeat.
    async fn run(self) {
        let mut connection: Option<PgConnection> = None;
        let mut repeat: Option<Duration> = None;
        loop {
            let is_new = match repeat {
                None => {
                    self.wanted.notified().await;
                    true
                }
                Some(wait) => within(wait, self.wanted.notified()).await.is_some(),
            };
            if is_new && !self.pending.swap(false, Ordering::AcqRel) {
                continue;
            }
            if self.silent.swap(false, Ordering::AcqRel) {
                repeat = Some(PACE);
            } else if !is_new {
                repeat = repeat.map(|wait| wait * 2).filter(|wait| *wait <= LAST_REPEAT);
            }
            if connection.is_none() {
                connection = within(PATIENCE, self.options().connect()).await.and_then(Result::ok);
            }
            if let Some(open) = &mut connection {
                // The name has letters, digits, `_` and a dot.
                let notify = sqlx::raw_sql(AssertSqlSafe(format!("NOTIFY \"{}\"", self.channel)));
                if !matches!(within(PATIENCE, notify.execute(open)).await, Some(Ok(_))) {
                    // The hint is lost: the poll finds what it was about.
                    connection = None;
                }
            }
            pause(PACE).await;
            self.inside.store(true, Ordering::Release);
        }
    }
}

/// Adds `wake` to what this process commits and, where others tell, to their notifications.
pub(super) async fn watch(wakeups: &Arc<Wakeups>, wake: WakeUp) -> WatchGuard {
    let registered = wakeups.add(Arc::clone(&wake));
    let Some(remote) = wakeups.remote.as_ref().filter(|_| wakeups.hears_others()) else { return Box::new(registered) };
    let options = remote.options.clone();
    let channel = remote.channel.clone();
    let first = within(PATIENCE, listen(&options, &channel)).await.and_then(Result::ok);
    Box::new((registered, spawn(hear(first, options, channel, wake))))
}

async fn listen(options: &PgConnectOptions, channel: &str) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen(channel).await?;
    Ok(listener)
}

async fn hear(first: Option<PgListener>, options: PgConnectOptions, channel: String, wake: WakeUp) {
    let mut listener = first;
    loop {
        let Some(open) = &mut listener else {
            pause(RECONNECT).await;
            listener = within(PATIENCE, listen(&options, &channel)).await.and_then(Result::ok);
            if listener.is_some() {
                wake();
            }
            continue;
        };
        match within(QUIET, open.try_recv()).await {
            // A notification, or the connection was lost and listens again.
            Some(Ok(_)) => wake(),
            Some(Err(_)) => listener = None,
            None => {
                if !matches!(within(PATIENCE, open.execute("SELECT 1")).await, Some(Ok(_))) {
                    listener = None;
                }
            }
        }
    }
}
