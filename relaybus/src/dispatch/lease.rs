//! The dispatcher's session: opening, renewing, losing and closing it.
//!
//! # Who is authoritative
//!
//! The store: a session exists as long as its row does. This side only knows how long it may trust that: until the local
//! deadline, counted from *before* the acknowledged renewal was sent, less a safety part. After it nothing starts and what runs
//! is cancelled, for another worker may have taken over.
//!
//! # What each failure does
//!
//! - *Renewal not answered*: it is sent again with the next turn; past the deadline the handlers are cancelled and their
//!   attempts fail. The session may still live, so their ends are settled, not forgotten.
//! - *A statement hangs*: the deadline passes all the same; its answer is waited for, since it may still take effect.
//! - *Session lost*: its leases are no more. Its runs become orphans: they keep their slots, and their key waits for them in
//!   this process, so that no run ever meets its own retry.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::pump::{FIRST_BACKOFF, Pump};
use crate::observe::Stage;
use crate::run::Cancel;
use crate::store::{EventStore, SessionRequest};

impl Pump {
    /// Past the local deadline the leases may be somebody else's: what runs is cancelled.
    pub(super) fn expire(&mut self, now: Duration) {
        if now >= self.valid_until && self.ledger.active() > 0 && !self.expired {
            self.expired = true;
            self.cancel.token.cancel();
            self.cancel = fresh_cancel();
        }
    }

    /// When to cancel what runs.
    pub(super) fn deadline(&self) -> Duration {
        if self.ledger.active() > 0 && !self.expired { self.valid_until } else { Duration::MAX }
    }

    /// Waits for an answer of the store, however long that takes, and meanwhile keeps the local deadline and the stop's: a
    /// statement that hangs must not leave handlers running under a lease that ended, or past their share of a stop.
    pub(super) async fn answered<T>(&mut self, statement: impl Future<Output = T>) -> T {
        let mut statement = pin!(statement);
        // A store that answers at once costs no timer.
        let first = std::future::poll_fn(|context| Poll::Ready(statement.as_mut().poll(context))).await;
        if let Poll::Ready(answer) = first {
            return answer;
        }
        self.report_flights();
        let stop = self.stop_now.clone();
        let mut stopped = stop.is_cancelled();
        loop {
            let expiring = self.ledger.active() > 0 && !self.expired;
            let left = self.valid_until.saturating_sub(self.engine.clock.monotonic());
            let deadline = self.engine.clock.sleep(if expiring { left } else { Duration::ZERO });
            tokio::select! {
                biased;
                answer = &mut statement => return answer,
                () = stop.cancelled(), if !stopped => {
                    stopped = true;
                    self.cancel_for_stop();
                }
                () = deadline, if expiring => self.expire(self.valid_until),
            }
        }
    }

    pub(super) async fn open_session(&mut self) {
        let options = &self.engine.options.dispatcher;
        let sent = self.engine.clock.monotonic();
        let handlers = self.engine.handlers.by_id.keys().cloned().collect();
        let owner = format!("{}-{:032x}", self.engine.options.source, self.engine.chance.bits());
        let request = SessionRequest::new(owner, handlers, options.lease, self.engine.now());
        match self.engine.store.open_session(&request).await {
            Ok(session) => {
                self.session = Some(session);
                self.renewed(sent);
                self.schedule.wake();
                self.backoff = FIRST_BACKOFF;
            }
            Err(error) => self.store_failed(Stage::Claim, error),
        }
    }

    /// A renewal that was sent at `sent` has been answered.
    pub(super) fn renewed(&mut self, sent: Duration) {
        let lease = self.engine.options.dispatcher.lease;
        self.renew_at = sent + lease / 3;
        // The safety part covers the way of the renewal and the grain of timers.
        self.valid_until = sent + lease - lease / 10;
        self.expired = false;
        self.slots.desk.set_valid_until(self.valid_until);
    }

    /// The store says that the session is no more.
    pub(super) fn session_lost(&mut self) {
        self.session = None;
        // Before runs end, which would start them.
        self.held.clear();
        self.cancel.token.cancel();
        self.cancel = fresh_cancel();
        for pending in std::mem::take(&mut self.completions) {
            self.report_lost(&pending.completed.lease);
            if let Some(run) = pending.waits {
                self.end_run(run);
            }
        }
        for pending in std::mem::take(&mut self.failures).into_iter().chain(std::mem::take(&mut self.doubted)) {
            if !pending.told_lost {
                self.report_lost(&pending.settlement.lease);
            }
            self.end_run(pending.run);
        }
        self.finished.clear();
        self.ledger.orphan_all();
    }

    /// Hands back what the session holds and ends it.
    pub(super) async fn close(&mut self) {
        let Some(session) = self.session.take() else { return };
        if let Err(error) = self.engine.store.close_session(session, self.engine.now()).await {
            self.engine.observers.failure(Stage::Stop, &error);
        }
    }
}

pub(super) fn fresh_cancel() -> Cancel {
    Cancel::default()
}
