//! The verdict finds what is planted in the evidence of a run that went well.

use super::evidence::{Dead, Evidence, Transaction};
use super::journal::{Line, Start, What};
use super::plan::{Kind, Plan};
use super::publisher::Answer;
use super::verdict::judge;

/// The evidence of a run with one publisher in which nothing happened.
fn well() -> Evidence {
    let mut evidence = Evidence { integrity: "ok".to_owned(), ..Evidence::default() };
    for number in 0..80 {
        let plan = Plan::of(5, 0, number);
        let answer = match plan.kind {
            Kind::Rollback | Kind::Dropped => Answer::RolledBack,
            _ if number == 79 => Answer::Doubt,
            _ => Answer::Committed,
        };
        for event in plan.kept() {
            let (name, key) = (event.name.clone(), event.key.clone());
            if plan.has_rows() {
                evidence.rows.push((name.clone(), key.clone()));
            }
            if plan.kind == Kind::Poison {
                evidence.stored.push(("crash.poison.v1".to_owned(), name.clone()));
                poison(&mut evidence, &name, key.as_deref());
                continue;
            }
            evidence.stored.push(("crash.moved.v1".to_owned(), name.clone()));
            evidence.stored.push(("crash.booked.v1".to_owned(), name.clone()));
            evidence.effects.push((name.clone(), key.clone()));
            for handler in ["ledger", "audit", "note", "flaky", "refuse", "replay"] {
                run(&mut evidence, 1, handler, &name, key.as_deref(), event.refused && handler == "refuse");
            }
        }
        evidence.transactions.push(Transaction { label: format!("0.{number}"), plan, answer });
    }
    evidence
}

fn note(evidence: &mut Evidence, process: u32, what: What) {
    let micros = evidence.journal.len() as u64 * 1000;
    evidence.journal.push(Line { micros, process, what });
}

fn start(handler: &str, name: &str, key: Option<&str>, claims: i64, attempt: u32) -> What {
    let (event, key) = (id(handler, name), key.map(str::to_owned));
    What::Start(Start { handler: handler.to_owned(), event, name: name.to_owned(), key, claims, attempt })
}

fn id(handler: &str, name: &str) -> String {
    if handler == "audit" { format!("booked-{name}") } else { format!("event-{name}") }
}

fn run(evidence: &mut Evidence, process: u32, handler: &str, name: &str, key: Option<&str>, refused: bool) {
    let event = id(handler, name);
    evidence.names.insert(event.clone(), name.to_owned());
    note(evidence, process, start(handler, name, key, 0, 1));
    let handler = handler.to_owned();
    if refused {
        let code = "RELAYBUS_NON_RETRYABLE".to_owned();
        evidence.dead.insert((handler.clone(), event.clone()), Dead { attempts: 1, code });
        note(evidence, process, What::Failed { handler, event, code: "NonRetryableError".to_owned() });
    } else {
        note(evidence, process, What::Ok { handler, event });
    }
}

fn poison(evidence: &mut Evidence, name: &str, key: Option<&str>) {
    if !name.ends_with(".0") {
        return run(evidence, 1, "poison", name, key, false);
    }
    evidence.names.insert(id("poison", name), name.to_owned());
    for (claims, process) in (0..3).zip([50, 51, 52]) {
        note(evidence, process, start("poison", name, key, i64::from(claims), claims + 1));
        note(evidence, process, What::Abort);
    }
    let code = "RELAYBUS_ATTEMPTS_EXHAUSTED".to_owned();
    evidence.dead.insert(("poison".to_owned(), id("poison", name)), Dead { attempts: 3, code });
}

/// The place in the journal of the nth start of a handler for a key that many events share.
fn start_at(evidence: &Evidence, handler: &str, nth: usize) -> usize {
    let hot = |start: &Start| start.key.as_deref() == Some("hot-1");
    let (number, _, _) = evidence.starts(handler).filter(|(_, _, start)| hot(start)).nth(nth).unwrap();
    number
}

/// Starts the delivery of the start at `at` once more, at once.
fn again(evidence: &mut Evidence, at: usize, process: u32, claims: i64, attempt: u32) {
    let mut line = evidence.journal[at].clone();
    let What::Start(start) = &mut line.what else { panic!("not a start") };
    (start.claims, start.attempt, line.process) = (claims, attempt, process);
    evidence.journal.insert(at + 1, line);
}

fn harm(evidence: &mut Evidence, at: usize) {
    let line = Line { micros: evidence.journal[at].micros, process: evidence.journal[at].process, what: What::Kill };
    evidence.journal.insert(at + 1, line);
}

fn expect(what: &str, plant: impl FnOnce(&mut Evidence)) {
    let mut evidence = well();
    plant(&mut evidence);
    let (faults, _) = judge(&evidence);
    assert!(faults.iter().any(|fault| fault.contains(what)), "expected `{what}`, found {faults:#?}");
}

/// The label of the first transaction of a kind, and a name of its events.
fn of_kind(evidence: &Evidence, wanted: fn(&Transaction) -> bool) -> (usize, String) {
    let found = evidence.transactions.iter().position(wanted).unwrap();
    (found, evidence.transactions[found].plan.events[0].name.clone())
}

#[test]
fn a_run_that_went_well_has_no_fault() {
    let (faults, figures) = judge(&well());
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(figures.to_string().contains("80 transactions (1 in doubt)"), "{figures}");
}

#[test]
fn a_repeat_after_harm_is_none_either() {
    let mut evidence = well();
    let at = start_at(&evidence, "note", 3);
    again(&mut evidence, at, 2, 1, 2);
    harm(&mut evidence, at);
    let (faults, figures) = judge(&evidence);
    assert!(faults.is_empty(), "{faults:#?}");
    // Two more are those of the poison event.
    assert!(figures.to_string().contains("3 repeated after harm"), "{figures}");
}

#[test]
fn events_that_are_lost_or_should_not_be_there_are_found() {
    expect("of its", |e| drop(e.stored.remove(0)));
    expect("is stored 1 times, planned: false", |e| {
        let (_, name) = of_kind(e, |t| t.plan.kind == Kind::Rollback);
        e.stored.push(("crash.moved.v1".to_owned(), name));
    });
    expect("is stored 1 times, planned: false", |e| {
        let (at, _) = of_kind(e, |t| matches!(&t.plan.kind, Kind::Savepoint(range) if !range.is_empty()));
        let Kind::Savepoint(range) = e.transactions[at].plan.kind.clone() else { panic!("not a savepoint") };
        e.stored.push(("crash.moved.v1".to_owned(), e.transactions[at].plan.events[range.start].name.clone()));
    });
    expect("is stored 2 times", |e| e.stored.push(e.stored[0].clone()));
    expect("differ", |e| drop(e.rows.remove(0)));
    expect("Doubt", |e| {
        let (at, name) = of_kind(e, |t| t.answer == Answer::Committed && t.plan.kept().count() > 1);
        e.transactions[at].answer = Answer::Doubt;
        e.stored.retain(|(_, stored)| *stored != name);
    });
    expect("never committed", |e| {
        let (_, name) = of_kind(e, |t| t.plan.kind == Kind::Dropped);
        run(e, 1, "note", &name, None, false);
    });
}

#[test]
fn effects_and_deliveries_that_are_missing_or_doubled_are_found() {
    expect("0 effects and 1", |e| drop(e.effects.remove(0)));
    expect("2 effects and 1", |e| e.effects.push(e.effects[0].clone()));
    expect("which was never committed", |e| e.effects.push(("9.9.9".to_owned(), None)));
    expect("1 effects and 0", |e| {
        let at = e.stored.iter().position(|(kind, _)| kind == "crash.booked.v1").unwrap();
        e.stored.remove(at);
    });
    expect("handler `replay` never succeeded", |e| {
        let at = start_at(e, "replay", 2);
        e.journal.remove(at + 1);
    });
    expect("nothing happened to process 1", |e| again(e, start_at(e, "flaky", 2), 2, 1, 2));
}

#[test]
fn a_wrong_order_is_found() {
    for handler in ["ledger", "audit", "note", "replay"] {
        expect("of the key starts after", |e| {
            let (first, second) = (start_at(e, handler, 4), start_at(e, handler, 5));
            e.journal.swap(first, second);
        });
    }
    // Strict order has no way back, for whatever reason.
    expect("of the key starts after", |e| {
        let (early, late) = (start_at(e, "note", 2), start_at(e, "note", 4));
        let What::Start(before) = e.journal[early].what.clone() else { panic!("not a start") };
        let line = Line { what: start("note", &before.name, Some("hot-1"), 1, 2), ..e.journal[late].clone() };
        e.journal.insert(late + 1, line);
        harm(e, early);
    });
}

#[test]
fn claims_that_are_reused_or_not_charged_are_found() {
    let twice = |claims, attempt| {
        move |e: &mut Evidence| {
            let at = start_at(e, "note", 2);
            again(e, at, 2, claims, attempt);
            harm(e, at);
        }
    };
    expect("ran twice under claim 0", twice(0, 1));
    expect("0 attempts charged for 1 claims", twice(1, 1));
    expect("attempt 3 after 1 claims", twice(1, 3));
}

#[test]
fn takeovers_that_are_slow_are_found() {
    for wanted in ["longer than", "taken over only after"] {
        expect(wanted, |e| {
            for nth in (2..8).rev() {
                let at = start_at(e, "note", nth);
                again(e, at, 2, 1, 2);
                harm(e, at);
                for line in &mut e.journal[at + 2..] {
                    line.micros += 100_000_000;
                }
            }
            e.longest_takeover = Some(std::time::Duration::from_secs(6));
        });
    }
}

#[test]
fn dead_letters_that_are_missing_or_not_planned_are_found() {
    let key_of = |e: &Evidence, handler: &str| e.dead.keys().find(|(of, _)| of == handler).unwrap().clone();
    expect("not in the dead letters of `refuse`", |e| {
        let key = key_of(e, "refuse");
        e.dead.remove(&key);
    });
    expect("a dead letter of `note`", |e| {
        let (_, event) = key_of(e, "refuse");
        e.dead.insert(("note".to_owned(), event), Dead { attempts: 1, code: "RELAYBUS_NON_RETRYABLE".to_owned() });
    });
    expect("a dead letter of `poison`", |e| {
        let key = key_of(e, "poison");
        e.dead.get_mut(&key).unwrap().attempts = 2;
    });
    expect("a dead letter of `refuse`", |e| {
        let key = key_of(e, "refuse");
        e.dead.get_mut(&key).unwrap().attempts = 2;
    });
    expect("more often than its attempts", |e| {
        let (number, _, _) = e.starts("poison").next().unwrap();
        again(e, number, 53, 3, 4);
    });
    expect("rows are left", |e| e.left.push(("relaybus_ready".to_owned(), 1)));
    expect("damaged", |e| e.integrity = "row 1 missing from index".to_owned());
}
