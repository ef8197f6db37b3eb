//! The check at the end: whatever happened on the way, the tables must agree with the file and the order log.

use std::collections::{BTreeMap, HashMap, HashSet};

use relaybus::store::DeliveryRecord;

use crate::events::Webhook;
use crate::handlers::ARCHIVE_LIMIT;
use crate::import::File;
use crate::tables::{Rows, WebhookRow};

/// Handlers that run again after a crash may log an event twice. The others are transactional and must not.
const MAY_REPEAT: &str = "announce";

/// What does not hold, in words; nothing when all is well.
pub fn check(file: &File, times: usize, rows: &Rows, dead: &[DeliveryRecord]) -> Vec<String> {
    let mut problems = Vec::new();
    let webhooks: HashMap<&str, (usize, &WebhookRow)> =
        rows.webhooks.iter().enumerate().map(|(place, row)| (row.event_id.as_str(), (place, row))).collect();
    check_import(file, times, &webhooks, &mut problems);
    check_projection(rows, &mut problems);
    check_deliveries(file, times, rows, dead, &mut problems);
    check_order(rows, &webhooks, &mut problems);
    problems
}

/// Every line of the file is in `webhooks`, as it is in the file.
fn check_import(file: &File, times: usize, webhooks: &HashMap<&str, (usize, &WebhookRow)>, problems: &mut Vec<String>) {
    for round in 1..=times {
        for line in &file.lines {
            let id = file.event_id(round, line);
            match webhooks.get(id.as_str()) {
                Some((_, row)) if row.kind == line.kind && row.repository == line.repository => {}
                Some((_, row)) => problems.push(format!("line {} of round {round} is not {row:?}", line.number)),
                None => problems.push(format!("line {} of round {round} was not imported", line.number)),
            }
        }
    }
}

/// The projection has counted every webhook once.
fn check_projection(rows: &Rows, problems: &mut Vec<String>) {
    let mut expected: BTreeMap<(String, String), i64> = BTreeMap::new();
    for row in &rows.webhooks {
        *expected.entry((row.repository.clone(), row.kind.clone())).or_default() += 1;
    }
    for (counted, events) in &expected {
        let found = rows.activity.get(counted).copied().unwrap_or_default();
        if found != *events {
            problems.push(format!("activity of {counted:?} is {found}, expected {events}"));
        }
    }
    for counted in rows.activity.keys().filter(|counted| !expected.contains_key(counted)) {
        problems.push(format!("activity of {counted:?} was never imported"));
    }
}

/// Every event of the file reached its handlers: each did its work, or refused it for good where it must.
fn check_deliveries(file: &File, times: usize, rows: &Rows, dead: &[DeliveryRecord], problems: &mut Vec<String>) {
    let mut logged: HashMap<(&str, &str), usize> = HashMap::new();
    for row in &rows.log {
        *logged.entry((handler_of(&row.handler), &row.event_id)).or_default() += 1;
    }
    let dead: HashSet<(&str, &str)> =
        dead.iter().map(|record| (handler_of(record.id.handler().as_str()), record.id.event_id().as_str())).collect();
    for (handler, event) in logged.iter().filter(|(_, times)| **times > 1).map(|(delivery, _)| delivery) {
        if *handler != MAY_REPEAT {
            problems.push(format!("{handler} handled {event} twice"));
        }
    }
    for round in 1..=times {
        for line in &file.lines {
            let id = file.event_id(round, line);
            for (handler, is_refused) in expected(&line.webhook) {
                let delivery = (handler, id.as_str());
                match (is_refused, logged.contains_key(&delivery), dead.contains(&delivery)) {
                    (false, true, false) | (true, false, true) => {}
                    (_, false, false) => problems.push(format!("{handler} never handled {id}")),
                    (true, ..) => problems.push(format!("{handler} should have refused {id}")),
                    (false, ..) => problems.push(format!("{handler} gave up on {id}")),
                }
            }
        }
    }
}

/// The handlers of a webhook, and whether they must refuse it.
fn expected(webhook: &Webhook) -> Vec<(&'static str, bool)> {
    match webhook {
        Webhook::Pushed(_) => vec![("activity", false), ("announce", false)],
        Webhook::Other(other) => vec![("activity", false), ("archive", other.payload.len() > ARCHIVE_LIMIT)],
        _ => vec![("activity", false)],
    }
}

/// The handler's name without the type of event: `activity` of `activity.push`.
pub fn handler_of(id: &str) -> &str {
    id.split('.').next().unwrap_or(id)
}

/// Each handler did its work on the events of a repository in the order in which they were imported.
fn check_order(rows: &Rows, webhooks: &HashMap<&str, (usize, &WebhookRow)>, problems: &mut Vec<String>) {
    let mut latest: HashMap<(&str, &str), usize> = HashMap::new();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for row in &rows.log {
        let Some((place, webhook)) = webhooks.get(row.event_id.as_str()) else {
            problems.push(format!("{} handled {}, which was never imported", row.handler, row.event_id));
            continue;
        };
        let is_repeat = !seen.insert((&row.handler, &row.event_id));
        if webhook.repository.is_empty() || is_repeat {
            continue;
        }
        match latest.insert((&row.handler, &webhook.repository), *place) {
            Some(before) if before > *place => {
                problems.push(format!("{} handled {} too late for its order", row.handler, row.event_id));
            }
            _ => {}
        }
    }
}
