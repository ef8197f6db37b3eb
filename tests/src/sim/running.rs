//! What the model checks while handlers run: leases, order, overlap, limits, and what observers are told.

use relaybus::registry::Order;
use relaybus::store::LeaseToken;

use super::model::{Active, Delivery, Hold, Model, Name, Status};

impl Model {
    /// A handler begins. `stunned` when its process was paused since, and cannot know yet.
    pub(crate) fn started(&mut self, name: &Name, token: LeaseToken, process: &str, stunned: &dyn Fn(&str) -> bool) {
        self.step += 1;
        let Some(delivery) = self.deliveries.get_mut(name) else {
            return self.broke("only what was committed is delivered", name, "started, but its event never committed");
        };
        delivery.starts += 1;
        let (key, is_held) = match &mut delivery.status {
            Status::Held(hold) if hold.token == token => {
                hold.started = true;
                (delivery.key.clone(), Some(hold.clone()))
            }
            _ => (delivery.key.clone(), None),
        };
        let Some(hold) = is_held else {
            if !stunned(process) {
                let text = format!("started by {process} under {token}, but it is {:?}", self.deliveries[name].status);
                self.broke("starts only under its lease", name, text);
            }
            return self.begin(name, key, process, stunned);
        };
        self.check_order(name, &hold, process);
        self.begin(name, key, process, stunned);
    }

    fn check_order(&mut self, name: &Name, hold: &Hold, process: &str) {
        let replay = self.handlers.get(&name.0).is_some_and(|plan| plan.order == Order::Replay && !plan.transactional);
        for (other, delivery) in self.earlier(name) {
            if delivery.has_ended() || delivery.since > hold.step {
                continue;
            }
            let ran_here = delivery.succeeded.iter().any(|(by, token)| {
                by == process && matches!(&delivery.status, Status::Held(held) if held.token == *token)
            });
            if replay && ran_here {
                continue;
            }
            let text = format!("started by {process} while {} before it is {:?}", other.1, delivery.status);
            return self.broke("order of a key", name, text);
        }
    }

    fn begin(&mut self, name: &Name, key: Option<String>, process: &str, stunned: &dyn Fn(&str) -> bool) {
        let subject = (name.0.clone(), key.unwrap_or_else(|| name.1.clone()));
        let others = self.active.entry(subject).or_default();
        let plan = self.handlers.get(&name.0).and_then(|plan| plan.concurrency);
        let clash = others
            .iter()
            .find(|other| other.process == process || !(stunned(&other.process) || stunned(process)))
            .cloned();
        others.push(Active { process: process.to_owned(), event: name.1.clone() });
        if let Some(other) = clash {
            let text = format!("started by {process} while {} of the same key runs in {}", other.event, other.process);
            self.broke("never two at once", name, text);
        }
        let (of_handler, all) = self.running(&name.0, process);
        let most = self.concurrency;
        if all > most || plan.is_some_and(|most| of_handler > most) {
            let text = format!("{process} runs {of_handler} of it ({plan:?} allowed), {all} in all ({most} allowed)");
            self.broke("concurrency", name, text);
        }
    }

    /// Runs of a handler, and of all handlers, in a process.
    fn running(&self, handler: &str, process: &str) -> (usize, usize) {
        let of = |name: &Name, active: &Vec<Active>| {
            let count = active.iter().filter(|run| run.process == process).count();
            if name.0 == handler { (count, count) } else { (0, count) }
        };
        self.active
            .iter()
            .map(|(name, active)| of(name, active))
            .fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    }

    pub(crate) fn ended(&mut self, name: &Name, token: LeaseToken, process: &str, succeeded: bool) {
        let key = self.deliveries.get(name).and_then(|delivery| delivery.key.clone());
        let subject = (name.0.clone(), key.unwrap_or_else(|| name.1.clone()));
        if let Some(active) = self.active.get_mut(&subject)
            && let Some(index) = active.iter().position(|run| run.process == process && run.event == name.1)
        {
            active.remove(index);
        }
        if let (true, Some(delivery)) = (succeeded, self.deliveries.get_mut(name)) {
            delivery.succeeded.push((process.to_owned(), token));
        }
    }

    /// A process is gone, and its runs with it.
    pub(crate) fn died(&mut self, process: &str) {
        for active in self.active.values_mut() {
            active.retain(|run| run.process != process);
        }
    }

    pub(crate) fn is_running_anything(&self, process: &str) -> bool {
        self.active.values().flatten().any(|run| run.process == process)
    }

    /// An observer was told that a delivery ended.
    pub(crate) fn reported(&mut self, name: &Name, dead: bool, process: &str) {
        let Some(delivery) = self.deliveries.get_mut(name) else { return };
        delivery.reports += 1;
        let reports = delivery.reports;
        let (status, requeues) = (delivery.status.clone(), delivery.requeues);
        // The report of a death may come after an operator has undone it.
        let agrees = if dead { status == Status::Dead || requeues > 0 } else { status == Status::Completed };
        let what = if dead { "dead" } else { "completed" };
        if !agrees {
            self.broke("reports are true", name, format!("{process} reported it {what}, but it is {status:?}"));
        } else if reports > 1 + requeues {
            self.broke("one terminal outcome", name, format!("{process} reported it {what}, the {reports}. report"));
        }
    }

    pub(crate) fn unfinished(&self) -> Vec<(&Name, &Delivery)> {
        self.deliveries.iter().filter(|(_, delivery)| !delivery.has_ended()).collect()
    }
}
