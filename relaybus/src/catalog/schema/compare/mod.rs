//! What changes for whom between two snapshots of a catalog.

mod fields;
mod shape;
mod variants;
mod walk;
mod words;

use std::fmt;

use super::snapshot::{CatalogSnapshot, EventSnapshot};
use walk::{Direction, Finding, Walk};

/// How bad a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nobody has to do anything.
    Compatible,
    /// Nothing breaks when it is rolled out in the right order, which the change tells.
    Caution,
    /// Somebody cannot go on as before.
    Breaking,
}

impl Severity {
    /// Its name: `compatible`, `caution` or `breaking`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Caution => "caution",
            Self::Breaking => "breaking",
        }
    }
}

/// Whom a change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Audience {
    /// Consumers of the old contract, which read the events of the new one.
    DeployedConsumers,
    /// Consumers of the new contract, which read events that were stored or sent before the change.
    StoredEvents,
    /// Publishers of the old contract, whose events are read by consumers of the new one.
    DeployedPublishers,
    /// Publishers of contracts to come.
    LaterPublishers,
}

impl Audience {
    /// Its name: `deployed_consumers`, `stored_events`, `deployed_publishers` or `later_publishers`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DeployedConsumers => "deployed_consumers",
            Self::StoredEvents => "stored_events",
            Self::DeployedPublishers => "deployed_publishers",
            Self::LaterPublishers => "later_publishers",
        }
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeployedConsumers => "consumers already deployed that read new events",
            Self::StoredEvents => "consumers of this version that read events stored before the change",
            Self::DeployedPublishers => "publishers that are not upgraded",
            Self::LaterPublishers => "publishers of later versions",
        })
    }
}

/// A change, and whom it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// How bad it is.
    pub severity: Severity,
    /// The event, `OrderPlaced (order.placed.v1)`; empty when it is about the whole catalog.
    pub event: String,
    /// What changed, as a sentence.
    pub what: String,
    /// Who is concerned, and how.
    pub affects: Vec<(Audience, String)>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.severity.name())?;
        if !self.event.is_empty() {
            write!(f, "{}: ", self.event)?;
        }
        f.write_str(&self.what)?;
        for (audience, why) in &self.affects {
            write!(f, "\n    {audience}: {why}")?;
        }
        Ok(())
    }
}

/// What changed between two snapshots of a catalog: what [`CatalogSnapshot::compare`] answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The changes, the worst first.
    pub changes: Vec<Change>,
}

impl Comparison {
    /// Whether somebody cannot go on as before.
    #[must_use]
    pub fn is_breaking(&self) -> bool {
        self.worst() == Some(Severity::Breaking)
    }

    /// How bad the worst change is.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.changes.iter().map(|change| change.severity).max()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.changes.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{change}")?;
        }
        Ok(())
    }
}

pub(super) fn compare(old: &CatalogSnapshot, new: &CatalogSnapshot) -> Comparison {
    let mut changes = Vec::new();
    if old.catalog != new.catalog {
        changes.push(Change {
            severity: Severity::Breaking,
            event: String::new(),
            what: format!("the catalog `{}` is called `{}` now", old.catalog, new.catalog),
            affects: vec![(Audience::StoredEvents, lost_handlers(&format!("{}.on_..", old.catalog)))],
        });
    }
    for (event_type, event) in &old.events {
        match new.events.get(event_type) {
            Some(new) => changes.extend(compare_events(event_type, event, new)),
            None => changes.push(gone(event_type, event, new)),
        }
    }
    let is_new = |(event_type, event): &(&String, &EventSnapshot)| {
        let renamed = old.events.iter().any(|(known, old)| old.name == event.name && !new.events.contains_key(known));
        !old.events.contains_key(*event_type) && !renamed
    };
    changes.extend(new.events.iter().filter(is_new).map(|(event_type, event)| Change {
        severity: Severity::Compatible,
        event: title(event_type, event),
        what: "the event was added".to_owned(),
        affects: Vec::new(),
    }));
    changes.sort_by_key(|change| std::cmp::Reverse(change.severity));
    Comparison { changes }
}

fn title(event_type: &str, event: &EventSnapshot) -> String {
    format!("{} ({event_type})", event.name)
}

fn lost_handlers(ids: &str) -> String {
    format!("those that wait for the handlers `{ids}` find them no longer, unless a `prefix` or `id` keeps their ids")
}

/// An event type that the new catalog does not have.
fn gone(event_type: &str, event: &EventSnapshot, new: &CatalogSnapshot) -> Change {
    let renamed = new.events.iter().find(|(_, other)| other.name == event.name);
    let what = match renamed {
        Some((now, _)) => format!("the event type changed from `{event_type}` to `{now}`"),
        None => "the event was removed".to_owned(),
    };
    let deployed = if renamed.is_some() {
        "they do not know the new type, and no longer receive the event"
    } else {
        "they no longer receive the event"
    };
    Change {
        severity: Severity::Breaking,
        event: title(event_type, event),
        what,
        affects: vec![
            (Audience::DeployedConsumers, deployed.to_owned()),
            (Audience::StoredEvents, "nothing handles those events".to_owned()),
            (Audience::DeployedPublishers, "nothing handles what they send".to_owned()),
        ],
    }
}

fn compare_events(event_type: &str, old: &EventSnapshot, new: &EventSnapshot) -> Vec<Change> {
    let event = title(event_type, new);
    let breaking = |what: String, affects: Vec<(Audience, String)>| Change {
        severity: Severity::Breaking,
        event: event.clone(),
        what,
        affects,
    };
    let mut changes = Vec::new();
    if old.name != new.name {
        changes.push(breaking(
            format!("the variant `{}` is called `{}` now", old.name, new.name),
            vec![(Audience::StoredEvents, lost_handlers("<prefix>.on_<event>"))],
        ));
    }
    if old.wire != new.wire {
        changes.push(breaking(
            format!("the wire name changed from `{}` to `{}`", old.wire, new.wire),
            vec![
                (Audience::DeployedConsumers, "they do not know the new name".to_owned()),
                (Audience::StoredEvents, "messages still at the broker have a name that they do not know".to_owned()),
                (
                    Audience::DeployedPublishers,
                    "what they send has a name that consumers of this version do not know".to_owned(),
                ),
            ],
        ));
    }
    if old.key != new.key {
        let shown = |key: &Option<String>| key.as_ref().map_or_else(|| "none".to_owned(), |key| format!("`{key}`"));
        let why = "events stored before and after the change are not kept in order with each other";
        changes.push(breaking(
            format!("the ordering key changed from {} to {}", shown(&old.key), shown(&new.key)),
            vec![
                (Audience::DeployedConsumers, "they get events in another order than they rely on".to_owned()),
                (Audience::StoredEvents, why.to_owned()),
            ],
        ));
    }
    // What is stored may be older than the contract before this one: whatever that had to read.
    let stored = Walk::compare(Direction::OldToNew, &old.reads, &new.reads);
    let mut deployed = Walk::compare(Direction::NewToDeployed, &new.writes, &old.reads);
    // A type whose two sides do not fit each other, a field that is left out and must be there, has not changed by that.
    let before = Walk::compare(Direction::NewToDeployed, &old.writes, &old.reads);
    deployed.retain(|finding| !before.contains(finding));
    let mut found = Vec::new();
    for finding in stored.into_iter().chain(deployed) {
        add(&mut found, finding);
    }
    found.sort_by(|a, b| (&a.path, &a.what).cmp(&(&b.path, &b.what)));
    changes.extend(found.into_iter().map(|Finding { what, severity, mut affects, .. }| {
        affects.sort();
        Change { severity, event: event.clone(), what, affects }
    }));
    changes
}

/// Adds a finding: the same change may concern both directions, and be met in several variants.
fn add(found: &mut Vec<Finding>, finding: Finding) {
    match found.iter_mut().find(|known| known.path == finding.path && known.what == finding.what) {
        Some(known) => {
            known.severity = known.severity.max(finding.severity);
            let new = finding.affects.into_iter().filter(|affected| !known.affects.contains(affected));
            let new: Vec<_> = new.collect();
            known.affects.extend(new);
        }
        None => found.push(finding),
    }
}

#[cfg(test)]
mod tests;
