//! Running by hand: `run_once` and `drain`, for tests and for processes without a dispatcher.

use std::sync::Arc;

use super::pump::Pump;
use crate::bus::Engine;
use crate::error::{Error, Result};
use crate::registry::States;

/// Runs up to `batches` batches of due deliveries and returns the attempts that ended. Ends early when nothing is due.
///
/// # Errors
/// The store's, and `RELAYBUS_DRAIN_INCOMPLETE` when something is still due after the last batch and `exhaust` is set.
pub(crate) async fn run_batches(
    engine: &Arc<Engine>,
    states: &Arc<States>,
    batches: usize,
    exhaust: bool,
) -> Result<usize> {
    let mut pump = Pump::new(engine.clone(), states);
    let mut ended = 0;
    for _ in 0..batches {
        let in_batch = pump.run_batch().await;
        match in_batch {
            Ok(0) => {
                pump.close().await;
                return Ok(ended);
            }
            Ok(count) => ended += count,
            Err(error) => {
                pump.abandon_batch().await;
                pump.close().await;
                return Err(error);
            }
        }
    }
    pump.close().await;
    if exhaust { Err(Error::DrainIncomplete { batches }) } else { Ok(ended) }
}

impl Pump {
    /// Claims one batch and runs it to its end, runs of a key included. Returns the attempts that ended.
    ///
    /// # Errors
    /// The store's. What is in flight then is for [`Pump::abandon_batch`].
    async fn run_batch(&mut self) -> Result<usize> {
        self.manual = true;
        self.ended = 0;
        self.fault = None;
        if self.session.is_none() {
            self.open_session().await;
        }
        self.turn(true).await;
        loop {
            self.collect();
            if let Some(error) = self.fault.take() {
                return Err(error);
            }
            if self.is_idle() {
                return Ok(self.ended);
            }
            self.step_by_hand().await;
        }
    }

    /// Ends what a batch left in flight when the store failed: handlers are cancelled and waited for, and what they ended
    /// with is sent once more. A session never closes while a handler of it runs: its delivery would run twice at once.
    async fn abandon_batch(&mut self) {
        self.stop_claiming();
        self.cancel_for_stop();
        loop {
            self.collect();
            if self.in_slots == 0 {
                break;
            }
            self.step_by_hand().await;
        }
        self.fault = None;
        while !self.is_idle() && self.fault.is_none() {
            self.step_by_hand().await;
            self.collect();
        }
    }

    async fn step_by_hand(&mut self) {
        let Some(until) = self.step().await else { return };
        let wait = until.saturating_sub(self.engine.clock.monotonic());
        tokio::select! {
            biased;
            () = self.slots.desk.reported() => {}
            () = self.engine.clock.sleep(wait) => {}
        }
    }
}
