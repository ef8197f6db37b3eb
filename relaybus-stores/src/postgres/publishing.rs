//! The connections of publishes that have no transaction: who sends on which, and what waits meanwhile.
//!
//! A pool asks the server about each connection that comes back, which costs a publish a second round trip; and a statement
//! that carries many events costs little more than one that carries one. So these publishes have a few connections of their own.
//! Who finds one free sends on it, in its own future. Who does not waits in a line; who gets a connection that was given back
//! sends what waits behind it too, in one statement, and tells the others.
//!
//! Invariants:
//! - *A slot is held or free*: each slot, with its connection or without one, is held by exactly one [`Slot`], lies in `free`, or is
//!   not taken yet. Who drops a [`Slot`], for whatever reason, gives it to the first that waits. So somebody waits only while
//!   every slot is held.
//! - *A connection comes back unused or answered*: it is out of its [`Slot`] while a statement runs, so that a statement that is
//!   dropped, or whose answer is unknown, takes its connection with it.
//! - *Told, or in doubt*: who waits is told that its events are stored, gets the slot, or finds that nobody will tell, and then must
//!   reckon with either.
//! - *No lock of a key is waited for long*: a transaction of the application may hold one for as long as it likes, and what waits for it
//!   would hold up events of other keys, and could make that transaction a deadlock's victim. The connections have a
//!   `lock_timeout`; whoever it ends goes by the pool, alone, and waits there as its own statement does. For a second after that,
//!   what has its key goes by the pool at once (`held_keys`).
//!
//! Interleavings:
//! - *Who waits is dropped*: what it brought is passed over, unless it is in a statement already.
//! - *Who sends is dropped*: its connection is closed; the statement may still be run. The others send again, each alone and by a text
//!   that takes an event that is there for stored: the primary key lets one of the two in, and the other waits for its end.
//!   The statement takes the locks of its keys before it writes and they hold nothing but theirs, so they cannot wait for each other.
//! - *A statement fails*: nothing of it is stored, and each sends again alone, so nobody gets the error of another.
//! - *No connection can be opened, or the line stands still*: the pool's way is left.
//! - *Two statements with events of one key*: its sequence is drawn under the key's lock, as in every append. A statement takes the
//!   locks in the order of their numbers, one of a single event takes one, so these connections cannot wait for each other in a circle.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use relaybus::store::{AppendBatch, NewEvent};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::oneshot;

use super::background::{AbortOnDrop, PATIENCE, pause, spawn, within};
use super::line::timed_out;
use super::options::reached;
use super::pooler::Way;

/// Connections of their own that publishes have. While one waits for its commit the other sends; with more of them, fewer events
/// share a statement.
pub(super) const PUBLISHING_CONNECTIONS: usize = 2;
/// What one statement carries at most. What is larger by itself goes by the pool, so that nothing small waits behind it.
pub(super) const MOST_EVENTS: usize = 100;
pub(super) const MOST_BYTES: usize = 256 << 10;
/// A connection that lay idle from one look to the next is closed.
const IDLE: Duration = Duration::from_secs(30);
/// How long a publish waits for a connection before it takes the pool's way: longer than a disk makes commits wait, because then
/// the pool's commits wait too.
const WAIT: Duration = PATIENCE;
const SETTINGS: [(&str, &str); 4] = [
    ("default_transaction_isolation", "read committed"),
    // Milliseconds: longer than commits take, shorter than a server lets a deadlock last.
    ("lock_timeout", "50"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// A publish as others send it.
pub(super) struct Parcel {
    pub(super) batch: AppendBatch,
    bytes: usize,
}

impl Parcel {
    pub(super) fn of(batch: &AppendBatch) -> Self {
        Self { batch: batch.clone(), bytes: bytes_of(batch) }
    }
}

/// About as many bytes as a batch sends.
pub(super) fn bytes_of(batch: &AppendBatch) -> usize {
    let of = |event: &NewEvent| event.envelope.payload.as_str().len() + event.envelope.headers.as_json().len();
    batch.events.iter().map(of).sum()
}

/// What became of a publish that waited or did not have to.
pub(super) enum Turn {
    /// It may send.
    Send(Slot),
    /// Another sent it.
    Stored,
    /// It goes its own way: nobody has sent it.
    Unsent,
    /// It goes its own way: it may be stored, or be stored later.
    InDoubt,
}

/// The line.
#[derive(Debug)]
pub(super) struct Publishing {
    options: PgConnectOptions,
    way: Arc<Way>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections that nobody uses. The last one was used last.
    free: Vec<Free>,
    /// Slots that are held or free.
    taken: usize,
    waiting: VecDeque<Waiting>,
    /// The number of who came last.
    last: u64,
    is_closed: bool,
    /// Closes what is idle.
    sweeper: Option<AbortOnDrop>,
}

#[derive(Debug)]
struct Free {
    connection: PgConnection,
    is_shared: bool,
    /// It lay here at the last look.
    was_here: bool,
}

struct Waiting {
    number: u64,
    /// Nothing when it must be sent alone.
    parcel: Option<Parcel>,
    answer: oneshot::Sender<Answer>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("number", &self.number).finish_non_exhaustive()
    }
}

enum Answer {
    Send(Slot),
    Stored,
}

impl State {
    /// The first that still waits.
    fn first(&mut self) -> Option<Waiting> {
        std::iter::from_fn(|| self.waiting.pop_front()).find(|one| !one.answer.is_closed())
    }
}

impl Publishing {
    pub(super) fn new(options: PgConnectOptions, way: Arc<Way>) -> Arc<Self> {
        Arc::new(Self { options, way, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn, or until another has sent what `parcel` makes.
    pub(super) async fn enter(self: &Arc<Self>, parcel: impl FnOnce() -> Option<Parcel>) -> Turn {
        let (number, mut answer) = {
            let mut state = self.state();
            if state.is_closed {
                return Turn::Unsent;
            }
            if let Some(free) = state.free.pop() {
                return Turn::Send(self.slot(Some(free.connection), free.is_shared));
            }
            if state.taken < PUBLISHING_CONNECTIONS {
                state.taken += 1;
                return Turn::Send(self.slot(None, false));
            }
            state.last += 1;
            let number = state.last;
            let (answer, heard) = oneshot::channel();
            state.waiting.push_back(Waiting { number, parcel: parcel(), answer });
            (number, heard)
        };
        let heard = match within(WAIT, &mut answer).await {
            Some(heard) => heard,
            None if self.leave(number) => return Turn::Unsent,
            // It is in a statement, or the slot is on its way.
            None => answer.await,
        };
        match heard {
            Ok(Answer::Send(slot)) => Turn::Send(slot),
            Ok(Answer::Stored) => Turn::Stored,
            Err(_) => Turn::InDoubt,
        }
    }

    /// Whether it was still in the line.
    fn leave(&self, number: u64) -> bool {
        let mut state = self.state();
        let place = state.waiting.iter().position(|waiting| waiting.number == number);
        place.is_some_and(|place| state.waiting.remove(place).is_some())
    }

    fn slot(self: &Arc<Self>, connection: Option<PgConnection>, is_shared: bool) -> Slot {
        Slot { publishing: Arc::clone(self), connection, is_shared }
    }

    /// Gives a slot to the first that waits.
    fn give(self: &Arc<Self>, connection: Option<PgConnection>, is_shared: bool) {
        let first = {
            let mut state = self.state();
            match (state.first(), connection) {
                (Some(first), connection) => (first, connection),
                (None, Some(connection)) if !state.is_closed => {
                    state.free.push(Free { connection, is_shared, was_here: false });
                    return self.sweep(&mut state);
                }
                (None, _) => {
                    state.taken -= 1;
                    return;
                }
            }
        };
        // Outside of the lock: a slot that nobody hears of is dropped, and so comes back here.
        drop(first.0.answer.send(Answer::Send(self.slot(first.1, is_shared))));
    }

    fn sweep(self: &Arc<Self>, state: &mut State) {
        if state.sweeper.is_none() {
            state.sweeper = Some(spawn(close_idle(Arc::downgrade(self))));
        }
    }

    /// Ends the connections that nobody uses, and those in use when they come back.
    pub(super) async fn close(&self) {
        for free in self.end() {
            let _ = within(PATIENCE, free.connection.close()).await;
        }
    }

    /// As [`Publishing::close`], at once.
    pub(super) fn force_close(&self) {
        drop(self.end());
    }

    fn end(&self) -> Vec<Free> {
        let mut state = self.state();
        state.is_closed = true;
        state.sweeper = None;
        let waiting = std::mem::take(&mut state.waiting);
        let free = std::mem::take(&mut state.free);
        state.taken -= free.len();
        drop(state);
        drop(waiting);
        free
    }

    /// Forgets the connections that nobody uses: one of them was found dead.
    fn forget(&self) {
        let mut state = self.state();
        let free = std::mem::take(&mut state.free);
        state.taken -= free.len();
        drop(state);
        drop(free);
    }
}

/// Closes what lay idle from one look to the next.
async fn close_idle(publishing: Weak<Publishing>) {
    loop {
        pause(IDLE).await;
        let Some(publishing) = publishing.upgrade() else { return };
        let idle: Vec<Free> = {
            let mut state = publishing.state();
            let idle: Vec<Free> =
                state.free.extract_if(.., |free| std::mem::replace(&mut free.was_here, true)).collect();
            state.taken -= idle.len();
            idle
        };
        for free in idle {
            let _ = within(PATIENCE, free.connection.close()).await;
        }
    }
}

/// The right to send on a connection. Dropped, it goes to the next.
pub(super) struct Slot {
    publishing: Arc<Publishing>,
    connection: Option<PgConnection>,
    /// Its last statement was sent for several.
    is_shared: bool,
}

impl Slot {
    /// The connection, out of the slot; opened when there is none.
    pub(super) async fn connection(&mut self) -> Result<PgConnection, sqlx::Error> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let options = reached(self.publishing.options.clone(), self.publishing.way.reach(), &SETTINGS);
        let opened = within(PATIENCE, options.connect()).await.unwrap_or_else(timed_out)?;
        self.publishing.way.note_opened();
        Ok(opened)
    }

    /// What waits and fits into a statement beside a batch.
    pub(super) async fn others(&mut self, batch: &AppendBatch) -> Vec<Companion> {
        // Those that the last statement was sent for have just been told, and are about to come again.
        if self.is_shared {
            tokio::task::yield_now().await;
        }
        let others = self.waiting(batch);
        self.is_shared = !others.is_empty();
        others
    }

    fn waiting(&self, batch: &AppendBatch) -> Vec<Companion> {
        let mut state = self.publishing.state();
        let mut others = Vec::new();
        let (mut events, mut bytes) = (batch.events.len(), 0);
        while let Some(next) = state.first() {
            if bytes == 0 {
                bytes = bytes_of(batch);
            }
            match next {
                Waiting { parcel: Some(parcel), answer, .. }
                    if events + parcel.batch.events.len() <= MOST_EVENTS && bytes + parcel.bytes <= MOST_BYTES =>
                {
                    events += parcel.batch.events.len();
                    bytes += parcel.bytes;
                    others.push(Companion { parcel, answer });
                }
                next => {
                    state.waiting.push_front(next);
                    break;
                }
            }
        }
        others
    }

    /// Keeps a connection whose statement was answered.
    pub(super) fn keep(&mut self, connection: PgConnection) {
        self.connection = Some(connection);
    }

    /// The connection was lost, and what was opened before it may be too.
    pub(super) fn lost(&self) {
        self.publishing.forget();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let connection = self.connection.take();
        self.publishing.give(connection, self.is_shared);
    }
}

/// A publish that another sends. Dropped, it is in doubt.
pub(super) struct Companion {
    pub(super) parcel: Parcel,
    answer: oneshot::Sender<Answer>,
}

impl Companion {
    /// Its events are stored.
    pub(super) fn stored(self) {
        // Who was dropped hears nothing.
        let _ = self.answer.send(Answer::Stored);
    }
}
