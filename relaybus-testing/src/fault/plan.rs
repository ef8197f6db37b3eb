//! What goes wrong, and when: by script, by seed, or from one moment on.

use std::time::Duration;

/// An operation of a store that a fault can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Op {
    /// [`EventStore::setup`](relaybus::EventStore::setup).
    Setup,
    /// [`EventStore::verify`](relaybus::EventStore::verify).
    Verify,
    /// [`EventStore::begin`](relaybus::EventStore::begin).
    Begin,
    /// [`EventStore::append`](relaybus::EventStore::append), in a caller's transaction.
    Append,
    /// [`EventStore::append_alone`](relaybus::EventStore::append_alone).
    AppendAlone,
    /// [`EventStore::open_session`](relaybus::EventStore::open_session).
    OpenSession,
    /// [`EventStore::turn`](relaybus::EventStore::turn).
    Turn,
    /// [`EventStore::settle`](relaybus::EventStore::settle).
    Settle,
    /// [`EventStore::complete_in`](relaybus::EventStore::complete_in).
    CompleteIn,
    /// The commit of a transaction that the store opened.
    Commit,
    /// The rollback of a transaction that the store opened.
    Rollback,
    /// [`EventStore::inspect`](relaybus::EventStore::inspect).
    Inspect,
    /// [`EventStore::close_session`](relaybus::EventStore::close_session).
    CloseSession,
    /// [`EventStore::list_deliveries`](relaybus::EventStore::list_deliveries).
    ListDeliveries,
    /// [`EventStore::requeue`](relaybus::EventStore::requeue).
    Requeue,
    /// [`EventStore::statistics`](relaybus::EventStore::statistics).
    Statistics,
    /// [`EventStore::backlog`](relaybus::EventStore::backlog).
    Backlog,
    /// [`EventStore::purge`](relaybus::EventStore::purge).
    Purge,
    /// [`EventStore::watch`](relaybus::EventStore::watch).
    Watch,
    /// [`EventStore::close`](relaybus::EventStore::close).
    Close,
}

impl Op {
    /// The name of the operation, as the trait writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Verify => "verify",
            Self::Begin => "begin",
            Self::Append => "append",
            Self::AppendAlone => "append_alone",
            Self::OpenSession => "open_session",
            Self::Turn => "turn",
            Self::Settle => "settle",
            Self::CompleteIn => "complete_in",
            Self::Commit => "commit",
            Self::Rollback => "rollback",
            Self::Inspect => "inspect",
            Self::CloseSession => "close_session",
            Self::ListDeliveries => "list_deliveries",
            Self::Requeue => "requeue",
            Self::Statistics => "statistics",
            Self::Backlog => "backlog",
            Self::Purge => "purge",
            Self::Watch => "watch",
            Self::Close => "close",
        }
    }
}

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It fails before the store did anything, and the caller knows. A commit is rolled back.
    Fail,
    /// It never reaches the store, and the caller cannot tell. A commit is in doubt, and did not happen.
    LoseRequest,
    /// The store does it, and the answer is lost: the caller gets an error. A commit is in doubt, and happened.
    LoseAnswer,
    /// It reaches the store late.
    Delay(Duration),
    /// The store does it at once, the answer comes late.
    DelayAnswer(Duration),
    /// It reaches the store never, and has no end: the caller must give it up.
    Hang,
}

/// Decides which call meets which fault. Starts as one that lets everything through; add to it.
///
/// A script names calls by operation and number, a seed draws for every call. A call that the script names is not drawn.
///
/// ```
/// use std::time::Duration;
/// use relaybus_testing::fault::{Fault, FaultPlan, Op};
/// let plan = FaultPlan::new()
///     .on(Op::Turn, 3, Fault::LoseAnswer)
///     .seeded(42)
///     .fail(0.02)
///     .delay(0.2, Duration::from_millis(50))
///     .sparing(&[Op::Setup]);
/// # let _ = plan;
/// ```
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    script: Vec<(Op, u64, Fault)>,
    seed: Option<fastrand::Rng>,
    rates: Rates,
    spared: Vec<Op>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    fail: f64,
    lose_request: f64,
    lose_answer: f64,
    delay: f64,
    longest_delay: Duration,
}

impl FaultPlan {
    /// A plan without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The `call`-th call of `op`, counted from 1, meets `fault`.
    #[must_use]
    pub fn on(mut self, op: Op, call: u64, fault: Fault) -> Self {
        self.script.push((op, call, fault));
        self
    }

    /// Draws for every call, reproducibly. The rates are set with the methods below; all start at zero.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = Some(fastrand::Rng::with_seed(seed));
        self
    }

    /// The part of the drawn calls that fail before the store did anything, from 0 to 1.
    #[must_use]
    pub fn fail(mut self, rate: f64) -> Self {
        self.rates.fail = rate;
        self
    }

    /// The part of the drawn calls that never reach the store while the caller cannot tell.
    #[must_use]
    pub fn lose_request(mut self, rate: f64) -> Self {
        self.rates.lose_request = rate;
        self
    }

    /// The part of the drawn calls whose answers are lost.
    #[must_use]
    pub fn lose_answer(mut self, rate: f64) -> Self {
        self.rates.lose_answer = rate;
        self
    }

    /// The part of the drawn calls that are late, half of them before and half of them after the store acted, each by up
    /// to `longest`.
    #[must_use]
    pub fn delay(mut self, rate: f64, longest: Duration) -> Self {
        (self.rates.delay, self.rates.longest_delay) = (rate, longest);
        self
    }

    /// Operations that no drawn fault meets.
    #[must_use]
    pub fn sparing(mut self, ops: &[Op]) -> Self {
        self.spared.extend_from_slice(ops);
        self
    }

    /// The fault of this call.
    pub(super) fn decide(&mut self, op: Op, call: u64) -> Option<Fault> {
        if let Some((_, _, fault)) = self.script.iter().find(|(on, number, _)| *on == op && *number == call) {
            return Some(*fault);
        }
        let seed = self.seed.as_mut()?;
        // Drawn for spared calls too, so that sparing one operation leaves the faults of the others where they were.
        let (drawn, late, after) = (seed.f64(), seed.f64(), seed.bool());
        if self.spared.contains(&op) {
            return None;
        }
        let rates = self.rates;
        let mut bound = 0.0;
        let mut falls_below = |rate: f64| {
            bound += rate;
            drawn < bound
        };
        if falls_below(rates.fail) {
            Some(Fault::Fail)
        } else if falls_below(rates.lose_request) {
            Some(Fault::LoseRequest)
        } else if falls_below(rates.lose_answer) {
            Some(Fault::LoseAnswer)
        } else if falls_below(rates.delay) {
            let delay = rates.longest_delay.mul_f64(late);
            Some(if after { Fault::DelayAnswer(delay) } else { Fault::Delay(delay) })
        } else {
            None
        }
    }
}
