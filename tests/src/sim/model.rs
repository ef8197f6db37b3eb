//! The model: what the store's answers say has happened, and the guarantees that must hold of it.
//!
//! It is fed by the store wrapper in the moment a statement takes effect, whether or not its answer arrives, and by the
//! handlers when they begin and end. It knows nothing of how the bus or the store work.

use std::collections::BTreeMap;
use std::time::Duration;

use relaybus::Timestamp;
use relaybus::store::{Claimed, Lease, LeaseToken, NewEvent, RunPart, Settled, Settlement, Verdict};

use super::plan::HandlerPlan;

/// A delivery: handler and event.
pub(crate) type Name = (String, String);

/// A guarantee that did not hold.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    pub(crate) text: String,
    /// Words whose lines of the story a reader wants to see.
    pub(crate) about: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Status {
    Pending,
    Held(Hold),
    Completed,
    Dead,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hold {
    pub(crate) session: usize,
    pub(crate) token: LeaseToken,
    /// When it was claimed, in steps of the model.
    pub(crate) step: u64,
    pub(crate) started: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) key: Option<String>,
    pub(crate) order: i64,
    /// Since when it may be claimed, in steps: its commit or its requeueing.
    pub(crate) since: u64,
    pub(crate) status: Status,
    pub(crate) attempts: u32,
    pub(crate) starts: u32,
    /// Starts that ended without a charge, as they should.
    pub(crate) uncharged: u32,
    pub(crate) effects: u32,
    /// The processes and tokens under which runs of it succeeded.
    pub(crate) succeeded: Vec<(String, LeaseToken)>,
    pub(crate) reports: u32,
    /// How often an operator gave it a new life.
    pub(crate) requeues: u32,
    /// The process whose call ended it.
    pub(crate) ended_by: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) process: String,
    pub(crate) expires_at: Timestamp,
    /// How it ended.
    pub(crate) ended: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(crate) struct Active {
    pub(crate) process: String,
    pub(crate) event: String,
}

/// What is known of everything.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) handlers: BTreeMap<String, HandlerPlan>,
    pub(crate) deliveries: BTreeMap<Name, Delivery>,
    /// The deliveries of each handler and key, in the order of their events' commits.
    chains: BTreeMap<(String, String), Vec<String>>,
    /// Events by id: their order of commit, and their key.
    pub(crate) events: BTreeMap<String, (i64, Option<String>)>,
    pub(crate) sessions: Vec<Session>,
    /// Runs under way, by handler and key (or event).
    pub(crate) active: BTreeMap<Name, Vec<Active>>,
    /// What `on_commit` of publishers wrote, by event.
    pub(crate) business: BTreeMap<String, u32>,
    /// Most runs of a process.
    pub(crate) concurrency: usize,
    pub(super) step: u64,
    pub(crate) violation: Option<Violation>,
}

impl Model {
    pub(crate) fn broke(&mut self, rule: &'static str, name: &Name, text: impl Into<String>) {
        let (handler, event) = name;
        let key = self.deliveries.get(name).and_then(|delivery| delivery.key.clone());
        let mut about = vec![event.clone()];
        about.extend(key.map(|key| format!("{handler}[{key}]")));
        let text = format!("{handler}#{event}: {}", text.into());
        self.violation.get_or_insert(Violation { rule, text, about });
    }

    /// Events of a transaction that committed.
    pub(crate) fn appended(&mut self, events: &[NewEvent]) {
        for event in events {
            self.step += 1;
            let id = event.envelope.id.to_string();
            let next = i64::try_from(self.events.len()).unwrap_or(i64::MAX) + 1;
            let key = event.envelope.key.as_ref().map(|key| key.as_str().to_owned());
            let (order, key) = self.events.entry(id.clone()).or_insert((next, key)).clone();
            for handler in event.handlers.iter() {
                let name = (handler.to_string(), id.clone());
                if self.deliveries.contains_key(&name) {
                    continue;
                }
                if let Some(key) = &key {
                    let chain = self.chains.entry((name.0.clone(), key.clone())).or_default();
                    chain.push(id.clone());
                    let events = &self.events;
                    chain.sort_by_key(|id| events.get(id).map(|(order, _)| *order));
                }
                self.deliveries.insert(name, Delivery::new(key.clone(), order, self.step));
            }
        }
    }

    /// The store took over what had expired at `now`: what may have run there is charged an attempt.
    pub(crate) fn took_over(&mut self, own: usize, now: Timestamp) {
        self.step += 1;
        let expired: Vec<usize> = (0..self.sessions.len())
            .filter(|&session| {
                let row = &self.sessions[session];
                session != own && row.ended.is_none() && row.expires_at <= now
            })
            .collect();
        for session in expired {
            self.end_session(session, "taken over", 1);
        }
    }

    /// The session gave back all it held.
    pub(crate) fn closed(&mut self, session: usize) {
        self.step += 1;
        self.end_session(session, "closed", 0);
    }

    fn end_session(&mut self, session: usize, how: &'static str, charge: u32) {
        self.sessions[session].ended = Some(how);
        let held = |delivery: &Delivery| matches!(&delivery.status, Status::Held(hold) if hold.session == session);
        let names: Vec<Name> = self.deliveries.iter().filter(|(_, d)| held(d)).map(|(name, _)| name.clone()).collect();
        // Only the first unfinished one of a key may have started.
        if how == "closed" {
            self.check_closed(session, &names);
        }
        let heads: Vec<bool> =
            names.iter().map(|name| !self.earlier(name).iter().any(|(_, delivery)| held(delivery))).collect();
        for (name, head) in names.iter().zip(heads) {
            self.release(name, if head { charge } else { 0 });
        }
    }

    /// A stop in order writes what succeeded.
    fn check_closed(&mut self, session: usize, names: &[Name]) {
        for name in names {
            let plain = self.handlers.get(&name.0).is_some_and(|plan| !plan.transactional);
            let process = &self.sessions[session].process;
            let succeeded = self.deliveries.get(name).is_some_and(|delivery| match &delivery.status {
                Status::Held(hold) => {
                    delivery.succeeded.iter().any(|(by, token)| by == process && *token == hold.token)
                }
                Status::Pending | Status::Completed | Status::Dead => false,
            });
            if plain && succeeded {
                self.broke(
                    "a stop writes what succeeded",
                    name,
                    "it succeeded, and its session closed without completing it",
                );
            }
        }
    }

    pub(crate) fn claimed(&mut self, session: usize, place: usize, claimed: &Claimed) {
        self.step += 1;
        let name = name_of(&claimed.lease);
        let Some(delivery) = self.deliveries.get(&name).cloned() else {
            return self.broke("only what was committed is delivered", &name, "claimed, but its event never committed");
        };
        match &delivery.status {
            Status::Pending => {}
            Status::Held(hold) => {
                let holder = &self.sessions[hold.session];
                let text = format!("claimed while {} holds it until {}", holder.process, holder.expires_at);
                return self.broke("one owner", &name, text);
            }
            ended @ (Status::Completed | Status::Dead) => {
                return self.broke("what ended does not come back", &name, format!("claimed, but it is {ended:?}"));
            }
        }
        if claimed.attempts != delivery.attempts {
            let text = format!("the store charged {} attempts, expected {}", claimed.attempts, delivery.attempts);
            return self.broke("attempts charged", &name, text);
        }
        let hold = Hold { session, token: claimed.lease.token, step: self.step, started: false };
        if let Some(delivery) = self.deliveries.get_mut(&name) {
            delivery.status = Status::Held(hold);
        }
        if place == 0 {
            self.check_first_of_key(&name, session);
        }
    }

    /// A run begins with the first unfinished delivery of its key.
    fn check_first_of_key(&mut self, name: &Name, session: usize) {
        let earlier = self.earlier(name).into_iter().find(|(_, delivery)| !delivery.has_ended());
        if let Some((other, delivery)) = earlier {
            let status = delivery.status.clone();
            let text = format!("session {session} claimed it while {} before it is {status:?}", other.1);
            self.broke("order of a key", name, text);
        }
    }

    /// The deliveries of the same handler and key before this one.
    pub(super) fn earlier(&self, name: &Name) -> Vec<(Name, Delivery)> {
        let Some(key) = self.deliveries.get(name).and_then(|delivery| delivery.key.clone()) else { return Vec::new() };
        let chain = self.chains.get(&(name.0.clone(), key)).map_or(&[][..], Vec::as_slice);
        let before = chain.iter().take_while(|id| **id != name.1);
        let names = before.map(|id| (name.0.clone(), id.clone()));
        names.filter_map(|name| self.deliveries.get(&name).cloned().map(|delivery| (name, delivery))).collect()
    }

    /// The store said that a completion was applied.
    pub(crate) fn completed(&mut self, session: Option<usize>, lease: &Lease, part: RunPart, process: &str) {
        let name = name_of(lease);
        self.step += 1;
        if !self.holds(&name, session, lease) {
            return self.broke("fenced", &name, format!("completed under {}, which does not stand", lease.token));
        }
        let Some(delivery) = self.deliveries.get_mut(&name) else { return };
        delivery.status = Status::Completed;
        delivery.ended_by = Some(process.to_owned());
        let succeeded = delivery.succeeded.iter().any(|(_, token)| *token == lease.token);
        if !succeeded {
            self.broke("only what succeeded is completed", &name, format!("no run under {} succeeded", lease.token));
        }
        if part == RunPart::Last {
            self.drop_behind(&name, lease);
        }
    }

    pub(crate) fn settled(&mut self, session: usize, settlement: &Settlement, answer: Settled, process: &str) {
        self.step += 1;
        let lease = &settlement.lease;
        let name = name_of(lease);
        if answer == Settled::Applied {
            if !self.holds(&name, Some(session), lease) {
                return self.broke("fenced", &name, format!("settled under {}, which does not stand", lease.token));
            }
            self.drop_behind(&name, lease);
            self.check_verdict(&name, &settlement.verdict);
            if let Some(delivery) = self.deliveries.get_mut(&name) {
                delivery.settle(&settlement.verdict, process);
            }
        }
        for lease in &settlement.rest {
            let name = name_of(lease);
            if self.holds(&name, Some(session), lease) {
                self.release(&name, 0);
            }
        }
    }

    /// Only an attempt that ran is charged, and never one that a stop cut.
    fn check_verdict(&mut self, name: &Name, verdict: &Verdict) {
        let (error, charge) = match verdict {
            Verdict::Reschedule { error, .. } => (error, true),
            Verdict::Bury { error, charge } => (error, *charge),
            Verdict::Release => return,
        };
        let started = self
            .deliveries
            .get(name)
            .is_some_and(|delivery| matches!(&delivery.status, Status::Held(hold) if hold.started));
        if charge && !started {
            self.broke("attempts charged", name, format!("charged without a run: {error}"));
        }
        if error.contains("RELAYBUS_DISPATCHER_STOPPED") {
            self.broke("attempts charged", name, "charged, although the bus stopped");
        }
    }

    fn holds(&self, name: &Name, session: Option<usize>, lease: &Lease) -> bool {
        match self.deliveries.get(name).map(|delivery| &delivery.status) {
            Some(Status::Held(hold)) => {
                hold.token == lease.token && session.is_none_or(|session| session == hold.session)
            }
            Some(Status::Pending | Status::Completed | Status::Dead) | None => false,
        }
    }

    /// What the session holds behind a delivery in its run is pending again.
    fn drop_behind(&mut self, name: &Name, lease: &Lease) {
        let Some(key) = self.deliveries.get(name).and_then(|delivery| delivery.key.clone()) else { return };
        let chain = self.chains.get(&(name.0.clone(), key)).cloned().unwrap_or_default();
        for id in chain.into_iter().skip_while(|id| *id != name.1).skip(1) {
            let behind = (name.0.clone(), id);
            let held = matches!(self.deliveries.get(&behind).map(|delivery| &delivery.status),
                Some(Status::Held(hold)) if hold.token.epoch == lease.token.epoch);
            if held {
                self.release(&behind, 0);
            }
        }
    }

    /// A claim ended without a verdict.
    pub(crate) fn release(&mut self, name: &Name, charge: u32) {
        if let Some(delivery) = self.deliveries.get_mut(name) {
            let started = matches!(&delivery.status, Status::Held(hold) if hold.started);
            delivery.attempts += charge;
            delivery.uncharged += u32::from(started && charge == 0);
            delivery.status = Status::Pending;
        }
    }

    /// An operator made a dead delivery pending.
    pub(crate) fn requeued(&mut self, name: &Name) {
        self.step += 1;
        let step = self.step;
        let Some(delivery) = self.deliveries.get_mut(name) else { return };
        if delivery.status != Status::Dead {
            return self.broke("only the dead are requeued", name, "requeued");
        }
        *delivery = Delivery {
            succeeded: delivery.succeeded.clone(),
            reports: delivery.reports,
            requeues: delivery.requeues + 1,
            ..Delivery::new(delivery.key.clone(), delivery.order, step)
        };
    }
}

impl Delivery {
    fn new(key: Option<String>, order: i64, since: u64) -> Self {
        Self {
            key,
            order,
            since,
            status: Status::Pending,
            attempts: 0,
            starts: 0,
            uncharged: 0,
            effects: 0,
            succeeded: Vec::new(),
            reports: 0,
            requeues: 0,
            ended_by: None,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Dead)
    }

    fn settle(&mut self, verdict: &Verdict, process: &str) {
        let started = matches!(&self.status, Status::Held(hold) if hold.started);
        match verdict {
            Verdict::Release => {
                self.uncharged += u32::from(started);
                self.status = Status::Pending;
            }
            Verdict::Reschedule { .. } => {
                self.attempts += 1;
                self.status = Status::Pending;
            }
            Verdict::Bury { charge, .. } => {
                self.attempts += u32::from(*charge);
                self.status = Status::Dead;
                self.ended_by = Some(process.to_owned());
            }
        }
    }
}

pub(crate) fn name_of(lease: &Lease) -> Name {
    (lease.handler.to_string(), lease.event_id.to_string())
}

/// Milliseconds with three decimals, as the story writes time.
pub(crate) fn at(time: Duration) -> String {
    format!("{:>10.3}", time.as_secs_f64() * 1000.0)
}
