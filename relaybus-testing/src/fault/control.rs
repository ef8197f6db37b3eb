//! The switch of a faulty store: what its test turns, and what every call asks first.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use relaybus::{Error, Result};
use tokio::sync::watch;

use super::plan::{Fault, FaultPlan, Op};

/// Controls the faults of a [`FaultyStore`](super::FaultyStore) while it is used. Cloning is cheap.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    crashed: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    plan: FaultPlan,
    next: Vec<(Op, Fault)>,
    calls: HashMap<Op, u64>,
    met: Vec<Met>,
}

/// A fault that met a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The operation.
    pub op: Op,
    /// The number of the call among those of its operation, from 1.
    pub call: u64,
    /// What happened to it.
    pub fault: Fault,
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {:?}", self.op.name(), self.call, self.fault)
    }
}

impl Faults {
    pub(super) fn new(plan: FaultPlan) -> Self {
        let state = State { plan, ..State::default() };
        Self(Arc::new(Shared { state: Mutex::new(state), crashed: watch::Sender::new(false) }))
    }

    /// The next call of `op` meets `fault`. Several wait in a row.
    pub fn next(&self, op: Op, fault: Fault) {
        self.lock().next.push((op, fault));
    }

    /// Replaces the plan; the numbers of the calls go on.
    pub fn replace_plan(&self, plan: FaultPlan) {
        self.lock().plan = plan;
    }

    /// The process is gone: calls that wait and all that come hang, open transactions are rolled back, sessions are
    /// never heard of again. What the store has done stays; wrap it anew to start again.
    pub fn crash(&self) {
        self.0.crashed.send_replace(true);
    }

    /// Whether [`Faults::crash`] was called.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        *self.0.crashed.borrow()
    }

    /// Calls of an operation so far.
    #[must_use]
    pub fn calls(&self, op: Op) -> u64 {
        self.lock().calls.get(&op).copied().unwrap_or(0)
    }

    /// Every fault that met a call, in order: the story of a run.
    #[must_use]
    pub fn met(&self) -> Vec<Met> {
        self.lock().met.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and decides what happens to it.
    pub(super) fn meet(&self, op: Op) -> Option<Fault> {
        let mut state = self.lock();
        let calls = state.calls.entry(op).or_default();
        *calls += 1;
        let call = *calls;
        let waiting = state.next.iter().position(|(on, _)| *on == op);
        let fault = match waiting {
            Some(place) => Some(state.next.remove(place).1),
            None => state.plan.decide(op, call),
        }?;
        state.met.push(Met { op, call, fault });
        Some(fault)
    }

    /// Runs a call under the faults. A call whose future never starts has not reached the store.
    pub(super) async fn call<T>(&self, op: Op, inner: impl Future<Output = Result<T>>) -> Result<T> {
        self.call_or(op, inner, drop).await
    }

    /// As [`Faults::call`], giving a lost answer to `lost`.
    pub(super) async fn call_or<T>(
        &self,
        op: Op,
        inner: impl Future<Output = Result<T>>,
        lost: impl FnOnce(T),
    ) -> Result<T> {
        self.until_crash(async {
            match self.meet(op) {
                None => inner.await,
                Some(Fault::Fail | Fault::LoseRequest) => Err(not_reached(op)),
                Some(Fault::LoseAnswer) => {
                    lost(inner.await?);
                    Err(answer_lost(op))
                }
                Some(Fault::Delay(delay)) => {
                    tokio::time::sleep(delay).await;
                    inner.await
                }
                Some(Fault::DelayAnswer(delay)) => {
                    let underway = Underway { answer: Some(inner.await), lost: Some(lost) };
                    tokio::time::sleep(delay).await;
                    underway.arrive().unwrap_or_else(|| Err(answer_lost(op)))
                }
                Some(Fault::Hang) => pending().await,
            }
        })
        .await
    }

    /// Resolves as `future` does, unless the process dies first.
    pub(super) async fn until_crash<T>(&self, future: impl Future<Output = T>) -> T {
        let mut crashed = self.0.crashed.subscribe();
        let death = async move { drop(crashed.wait_for(|crashed| *crashed).await) };
        tokio::select! {
            biased;
            () = death => pending().await,
            output = future => output,
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("met", &self.lock().met.len()).field("crashed", &self.is_crashed()).finish()
    }
}

/// An answer on its way. If the caller gives up or the process dies meanwhile, it is lost.
struct Underway<T, L: FnOnce(T)> {
    answer: Option<Result<T>>,
    lost: Option<L>,
}

impl<T, L: FnOnce(T)> Underway<T, L> {
    fn arrive(mut self) -> Option<Result<T>> {
        self.answer.take()
    }
}

impl<T, L: FnOnce(T)> Drop for Underway<T, L> {
    fn drop(&mut self) {
        if let (Some(Ok(answer)), Some(lost)) = (self.answer.take(), self.lost.take()) {
            lost(answer);
        }
    }
}

/// The source of every error that a [`FaultyStore`](super::FaultyStore) makes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// The operation.
    pub op: Op,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a fault was injected into `{}`", self.op.name())
    }
}

impl std::error::Error for Injected {}

pub(super) fn not_reached(op: Op) -> Error {
    Error::store_retryable(format!("the store was not reached for `{}`: call it again", op.name()), Injected { op })
}

pub(super) fn answer_lost(op: Op) -> Error {
    let message = format!("the answer of the store to `{}` was lost: repeat the call", op.name());
    Error::store_retryable(message, Injected { op })
}
