//! The comparison of what happened with what was promised.
//!
//! A *late start* is one under a claim that was already superseded: its process was stopped between the look at its lease and
//! the handler's first line. It is counted, and must have had no effect; order and attempts are judged without it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use super::evidence::{Evidence, Transaction};
use super::handlers::POISON_ATTEMPTS;
use super::harm::Harm;
use super::journal::{Line, Start, What};
use super::plan::Kind;
use super::publisher::Answer;

/// The type of the events that the transactional handler publishes.
pub(super) const BOOKED: &str = "crash.booked.v1";
/// Handlers of `Moved` that leave traces in the journal alone.
const PLAIN: [&str; 4] = ["note", "flaky", "refuse", "replay"];
/// Every handler, and whether the next of a key starts only when the one before is durable.
const HANDLERS: [(&str, bool); 7] = [
    ("ledger", true),
    ("audit", true),
    ("note", true),
    ("flaky", true),
    ("refuse", true),
    ("poison", true),
    ("replay", false),
];

/// Numbers of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    transactions: usize,
    in_doubt: usize,
    events: usize,
    deliveries: usize,
    repeated: usize,
    late: usize,
    dead: usize,
    errors: usize,
    /// Milliseconds from the end of a process to the next start of what it had begun, sorted.
    takeovers: Vec<u64>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transactions, in_doubt, events, deliveries, repeated, late, dead, errors, takeovers } = self;
        let at =
            |percent: usize| takeovers.get(takeovers.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0);
        write!(
            f,
            "{transactions} transactions ({in_doubt} in doubt), {events} events, {deliveries} deliveries, {repeated} repeated after harm, \
             {late} late starts, {dead} dead letters, {errors} errors reported; takeover of {} deliveries after {} / {} / {} ms \
             (half, 90 %, longest; where nothing else was in the way)",
            takeovers.len(),
            at(50),
            at(90),
            at(100)
        )
    }
}

/// The faults, and the numbers.
pub(super) fn judge(evidence: &Evidence) -> (Vec<String>, Figures) {
    let mut judge = Judge::new(evidence);
    judge.file();
    judge.transactions();
    judge.effects();
    judge.deliveries();
    judge.dead_letters();
    for (handler, strict) in HANDLERS {
        judge.order(handler, strict);
        judge.claims(handler, strict);
    }
    judge.figures.errors = evidence.journal.iter().filter(|line| matches!(line.what, What::Error { .. })).count();
    judge.figures.dead = evidence.dead.len();
    judge.figures.takeovers.sort_unstable();
    judge.takeovers();
    (judge.faults, judge.figures)
}

struct Judge<'a> {
    evidence: &'a Evidence,
    faults: Vec<String>,
    figures: Figures,
    committed: HashSet<&'a str>,
    /// Events by what they are: every name of a committed plain event, and of a poison one with whether it is deadly.
    moved: Vec<&'a str>,
    poison: Vec<(&'a str, bool)>,
    refused: HashSet<&'a str>,
    harm: Harm,
}

impl<'a> Judge<'a> {
    fn new(evidence: &'a Evidence) -> Self {
        let committed = evidence.committed();
        let (mut moved, mut poison, mut refused) = (Vec::new(), Vec::new(), HashSet::new());
        for transaction in &evidence.transactions {
            for event in transaction.plan.kept().filter(|event| committed.contains(event.name.as_str())) {
                if transaction.plan.kind == Kind::Poison {
                    poison.push((event.name.as_str(), event.name.ends_with(".0")));
                } else {
                    moved.push(event.name.as_str());
                    if event.refused {
                        refused.insert(event.name.as_str());
                    }
                }
            }
        }
        let harm = Harm::of(&evidence.journal);
        let figures =
            Figures { transactions: evidence.transactions.len(), events: evidence.stored.len(), ..Figures::default() };
        Self { evidence, faults: Vec::new(), figures, committed, moved, poison, refused, harm }
    }

    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    fn fault_of(&mut self, what: &str, name: &str) {
        let names = &self.evidence.names;
        let story = self
            .evidence
            .story(|_, line| line.event().is_some_and(|event| names.get(event).is_some_and(|n| n == name)));
        self.fault(format!("{what}: `{name}`\n{story}"));
    }

    fn file(&mut self) {
        if self.evidence.integrity != "ok" {
            self.fault(format!("the database is damaged: {}", self.evidence.integrity));
        }
        for (table, count) in &self.evidence.left {
            if *count != 0 {
                self.fault(format!("{count} rows are left in `{table}`"));
            }
        }
    }

    /// Whether a takeover by `process` between two lines waited for something else than the end of the lease.
    fn delayed(&self, from: usize, to: usize, process: u32) -> bool {
        match self.evidence.longest_takeover {
            Some(_) => self.harm.restarted(from, to) || self.harm.between(process, from, to).is_some(),
            // A stopped process may have the file's write lock, and then nobody does anything.
            None => self.harm.anybody_stopped(from, to),
        }
    }

    /// Half of them in time: of the rest, whoever took over may have ended, or have had much to do, before it began.
    fn takeovers(&mut self) {
        let takeovers = &self.figures.takeovers;
        let most = takeovers.get(takeovers.len() / 2).map(|millis| Duration::from_millis(*millis));
        if let (Some(most), Some(limit)) = (most, self.evidence.longest_takeover)
            && most > limit
        {
            self.fault(format!("half of the takeovers took longer than {limit:?}, up to {most:?} and more"));
        }
    }

    /// What was answered is there, what was rolled back is not, and what is in doubt is there as a whole or not at all.
    fn transactions(&mut self) {
        let mut stored: HashMap<&str, usize> = HashMap::new();
        for (_, name) in self.evidence.stored.iter().filter(|(kind, _)| kind != BOOKED) {
            *stored.entry(name).or_default() += 1;
        }
        let rows: HashSet<&str> = self.evidence.rows.iter().map(|(name, _)| name.as_str()).collect();
        let mut known = HashSet::new();
        for Transaction { label, plan, answer } in &self.evidence.transactions {
            self.figures.in_doubt += usize::from(*answer == Answer::Doubt);
            let kept: Vec<&str> = plan.kept().map(|event| event.name.as_str()).collect();
            known.extend(kept.iter().copied());
            let there = kept.iter().filter(|name| stored.contains_key(*name)).count();
            let fits = match answer {
                Answer::Committed => there == kept.len(),
                Answer::RolledBack => there == 0,
                Answer::Doubt => there == 0 || there == kept.len(),
            };
            if !fits {
                let kind = &plan.kind;
                self.fault(format!(
                    "transaction {label} ({kind:?}, {answer:?}): {there} of its {} events are stored",
                    kept.len()
                ));
            }
            if plan.has_rows() && kept.iter().any(|name| stored.contains_key(name) != rows.contains(name)) {
                self.fault(format!("transaction {label}: its rows and its events differ"));
            }
        }
        let mut wrong: Vec<(&str, usize)> =
            stored.into_iter().filter(|(name, times)| *times != 1 || !known.contains(name)).collect();
        wrong.sort_unstable();
        for (name, times) in wrong {
            self.fault(format!("`{name}` is stored {times} times, planned: {}", known.contains(name)));
        }
    }

    /// Each transactional effect exactly once, and with it the event that it published.
    fn effects(&mut self) {
        let mut effects: HashMap<&str, usize> = HashMap::new();
        for (name, _) in &self.evidence.effects {
            *effects.entry(name).or_default() += 1;
        }
        let mut booked: HashMap<&str, usize> = HashMap::new();
        for (_, name) in self.evidence.stored.iter().filter(|(kind, _)| kind == BOOKED) {
            *booked.entry(name).or_default() += 1;
        }
        for name in self.moved.clone() {
            let (effect, followed) = (effects.remove(name).unwrap_or(0), booked.remove(name).unwrap_or(0));
            if (effect, followed) != (1, 1) {
                self.fault_of(
                    &format!("{effect} effects and {followed} events that followed, expected one each"),
                    name,
                );
            }
        }
        for name in effects.keys().chain(booked.keys()) {
            self.fault(format!("an effect of `{name}`, which was never committed"));
        }
    }

    /// Each committed event was handled by each of its handlers, and nothing else was.
    fn deliveries(&mut self) {
        let mut done: HashSet<(&str, &str)> = HashSet::new();
        let mut strangers = Vec::new();
        for line in &self.evidence.journal {
            match &line.what {
                What::Ok { handler, event } => {
                    let name = self.evidence.names.get(event).map_or("", String::as_str);
                    done.insert((handler, name));
                }
                What::Start(start) if !self.committed.contains(start.name.as_str()) => {
                    strangers.push(start.name.as_str())
                }
                _ => {}
            }
        }
        for name in strangers {
            self.fault_of("a handler ran for an event that was never committed", name);
        }
        let mut missing = Vec::new();
        for name in &self.moved {
            let planned_dead = self.refused.contains(name);
            missing.extend(
                PLAIN
                    .iter()
                    .filter(|handler| !(planned_dead && **handler == "refuse"))
                    .map(|handler| (*handler, *name)),
            );
            missing.push(("audit", name));
        }
        missing.extend(self.poison.iter().filter(|(_, deadly)| !deadly).map(|(name, _)| ("poison", *name)));
        self.figures.deliveries = missing.len() + self.moved.len() + self.evidence.dead.len();
        missing.retain(|delivery| !done.contains(delivery));
        for (handler, name) in missing {
            self.fault_of(&format!("handler `{handler}` never succeeded"), name);
        }
    }

    /// What was planned to die did, for its reason and with its attempts, and nothing else.
    fn dead_letters(&mut self) {
        let mut last: HashMap<(&str, &str), u32> = HashMap::new();
        let mut runs: HashMap<(&str, &str), u32> = HashMap::new();
        for line in &self.evidence.journal {
            if let What::Start(start) = &line.what {
                let id = (start.handler.as_str(), start.event.as_str());
                let attempt = last.entry(id).or_default();
                *attempt = (*attempt).max(start.attempt);
                *runs.entry(id).or_default() += 1;
            }
        }
        let mut planned: HashSet<(&str, &str)> = self.refused.iter().map(|name| ("refuse", *name)).collect();
        planned.extend(self.poison.iter().filter(|(_, deadly)| *deadly).map(|(name, _)| ("poison", *name)));
        for ((handler, event), dead) in &self.evidence.dead {
            let id = (handler.as_str(), event.as_str());
            let name = self.evidence.names.get(event).map_or("", String::as_str);
            let expected = match handler.as_str() {
                _ if !planned.remove(&(handler.as_str(), name)) => None,
                "refuse" => Some(("RELAYBUS_NON_RETRYABLE", last.get(&id).copied().unwrap_or(0))),
                // A session that ends between the claim that finds it exhausted and the burial charges it once more.
                _ => Some(("RELAYBUS_ATTEMPTS_EXHAUSTED", dead.attempts.clamp(POISON_ATTEMPTS, POISON_ATTEMPTS + 3))),
            };
            if expected != Some((dead.code.as_str(), dead.attempts)) {
                self.fault_of(&format!("a dead letter of `{handler}`: {dead:?}, expected {expected:?}"), name);
            }
            if handler == "poison" && runs.get(&id).is_some_and(|runs| *runs > POISON_ATTEMPTS) {
                self.fault_of("a poison event ran more often than its attempts", name);
            }
        }
        for (handler, name) in planned {
            self.fault_of(&format!("not in the dead letters of `{handler}`"), name);
        }
    }

    /// First starts in the order of the commits, for each key; with strict order also all others, without a gap.
    fn order(&mut self, handler: &'static str, strict: bool) {
        let list = if handler == "audit" { &self.evidence.effects } else { &self.evidence.rows };
        let mut places: HashMap<&str, (&str, usize)> = HashMap::new();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (name, key) in list {
            let Some(key) = key else { continue };
            let place = counts.entry(key).or_default();
            places.insert(name, (key, *place));
            *place += 1;
        }
        // Of each key: the place of the last start, and of the furthest.
        let mut at: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut claims: HashMap<&str, i64> = HashMap::new();
        let mut wrong = Vec::new();
        for (number, _, start) in self.evidence.starts(handler) {
            let Some(&(key, place)) = places.get(start.name.as_str()) else { continue };
            if is_late(&mut claims, start) {
                continue;
            }
            let fits = match at.get(key) {
                None => place == 0,
                Some(&(last, furthest)) => place <= furthest + 1 && (!strict || place == last || place == last + 1),
            };
            if !fits {
                wrong.push((number, key, place, at.get(key).copied()));
            }
            let furthest = at.get(key).map_or(place, |(_, furthest)| place.max(*furthest));
            at.insert(key, (place, furthest));
        }
        for (number, key, place, before) in wrong.into_iter().take(3) {
            let near = number.saturating_sub(2000)..=number;
            let story = self.evidence.story(|at, line| near.contains(&at) && line.concerns_key(handler, key));
            let before =
                before.map_or("nothing".to_owned(), |(last, furthest)| format!("{last} (furthest {furthest})"));
            self.fault(format!(
                "handler `{handler}`, key `{key}`: event {place} of the key starts after {before}\n{story}"
            ));
        }
    }

    /// Each run of a delivery after the first has a reason and a claim of its own, and is charged.
    fn claims(&mut self, handler: &'static str, strict: bool) {
        let evidence = self.evidence;
        let mut before: HashMap<&str, (usize, &Line, &Start)> = HashMap::new();
        let mut claims: HashMap<&str, i64> = HashMap::new();
        for (number, line, start) in evidence.starts(handler) {
            if is_late(&mut claims, start) {
                self.figures.late += 1;
                continue;
            }
            if i64::from(start.attempt) > start.claims + 1 {
                self.fault_of(
                    &format!("`{handler}`: attempt {} after {} claims", start.attempt, start.claims),
                    &start.name,
                );
            }
            let Some(last) = before.insert(start.event.as_str(), (number, line, start)) else { continue };
            self.again(handler, strict, last, (number, line, start));
        }
    }

    fn again(&mut self, handler: &str, strict: bool, last: (usize, &Line, &Start), now: (usize, &Line, &Start)) {
        let (last_number, last_line, last) = last;
        let (number, line, start) = now;
        let process = last_line.process;
        let failed = self.harm.failed(process, handler, &start.event, last_number, number);
        let deed = self.harm.between(process, last_number, number);
        if !failed && deed.is_none() && !self.harm.lost(process) {
            self.fault_of(
                &format!("`{handler}` ran again although nothing happened to process {process}"),
                &start.name,
            );
        }
        self.figures.repeated += usize::from(!failed);
        if let Some(deed) = deed.filter(|_| !failed && start.claims == last.claims + 1)
            && !self.delayed(deed.from, number, line.process)
        {
            let since = line.micros.saturating_sub(self.evidence.journal[deed.from].micros);
            self.figures.takeovers.push(since / 1000);
            let allowed = self.evidence.longest_takeover.map(|limit| limit * (self.harm.count(deed.from, number) + 1));
            if allowed.is_some_and(|allowed| Duration::from_micros(since) > allowed) {
                self.fault_of(&format!("`{handler}` was taken over only after {} ms", since / 1000), &start.name);
            }
        }
        if !strict {
            return;
        }
        if start.claims == last.claims {
            self.fault_of(&format!("`{handler}` ran twice under claim {}", start.claims), &start.name);
        }
        let charged = start.attempt.saturating_sub(last.attempt);
        let claims = start.claims - last.claims;
        // A stop hands back without a charge, and a commit that the server did not answer is no failure of the handler.
        let free = self.harm.asked(process) || self.harm.restarted(last_number, number);
        if (charged == 0 && !free) || i64::from(charged) > claims {
            self.fault_of(&format!("`{handler}`: {charged} attempts charged for {claims} claims"), &start.name);
        }
    }
}

/// Whether a start comes under a claim that was superseded; remembers the claim if not.
fn is_late<'a>(claims: &mut HashMap<&'a str, i64>, start: &'a Start) -> bool {
    let highest = claims.entry(start.event.as_str()).or_insert(start.claims);
    *highest = (*highest).max(start.claims);
    start.claims < *highest
}
