//! Lost answers and lost questions at every step of the protocol between the store and the server.

use std::collections::BTreeMap;

use relaybus::store::{Completed, DeliveryQuery, Settlement, Verdict};
use relaybus::{Error, EventStore};
use relaybus_stores::PostgresStore;

use crate::kit::{Schema, Worker, after_the_lease, at, completions, connect, ids, named, options};
use crate::proxy::Proxy;

/// Statements of a round in which one is lost.
const STEPS: u64 = 14;

async fn proxied(schema: &Schema) -> (PostgresStore, Proxy) {
    let proxy = Proxy::start(options()).await;
    let store = PostgresStore::with_options(proxy.options()).schema(&schema.name).build().unwrap();
    store.setup().await.unwrap();
    (store, proxy)
}

/// Works until nothing is left, repeating what was not answered. What was handed out, in order, by key.
async fn work(worker: &mut Worker, seen: &mut BTreeMap<String, Vec<String>>) {
    let mut done: Vec<Completed> = Vec::new();
    let mut idle = 0;
    while idle < 6 {
        match worker.sweep(&done, 5, at(1)).await {
            Ok(turn) => {
                for claimed in turn.runs.iter().flat_map(|run| &run.deliveries) {
                    let key = claimed.event.key.as_ref().map_or("", |key| key.as_str()).to_owned();
                    seen.entry(key).or_default().push(claimed.event.id.to_string());
                    assert_eq!(claimed.attempts, 0, "nothing was charged");
                }
                idle = if turn.runs.is_empty() { idle + 1 } else { 0 };
                done = completions(&turn.runs);
            }
            Err(Error::SessionLost) => panic!("the session lives"),
            Err(_) => {}
        }
    }
}

/// Whatever statement of a round is lost, on its way there or back: each delivery is handed out once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_statement_changes_no_outcome() {
    let schema = Schema::new();
    let (store, proxy) = proxied(&schema).await;
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    for step in 1..=STEPS {
        for lost_answer in [true, false] {
            let name = |n: usize| format!("s{step}-{lost_answer}-{n}");
            let (keyed, unkeyed): (Vec<String>, Vec<String>) = ((0..4).map(name).collect(), (4..8).map(name).collect());
            let of = |all: &[String], key| named(&all.iter().map(String::as_str).collect::<Vec<_>>(), key, at(0));
            store.append_alone(&of(&keyed, Some("k"))).await.unwrap();
            store.append_alone(&of(&unkeyed, None)).await.unwrap();
            if lost_answer {
                proxy.lose_answer(step);
            } else {
                proxy.lose_question(step);
            }
            let mut seen = BTreeMap::new();
            work(&mut worker, &mut seen).await;
            assert!(proxy.has_lost(), "step {step} was not reached");
            assert_eq!(seen["k"], keyed, "at step {step}");
            let mut rest = seen.remove("").unwrap_or_default();
            rest.sort();
            assert_eq!(rest, unkeyed, "at step {step}");
        }
    }
    assert!(store.list_deliveries(&DeliveryQuery::all(), at(1)).await.unwrap().deliveries.is_empty());
    store.close().await.unwrap();
}

/// A session whose answers about lanes were lost gets all its lanes in the end, and its row lists nothing that it does not hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_about_lanes_strand_nothing() {
    let schema = Schema::new();
    let (store, proxy) = proxied(&schema).await;
    let mut lost = 0;
    for step in 1..=STEPS {
        let other = schema.builder().build().unwrap();
        let mut neighbour = Worker::new(&other, &["h"], at(0)).await;
        neighbour.claim(1, at(0)).await;
        // The lanes are the neighbour's; half of them are wanted, given, taken, and given back, with one answer lost.
        let mut worker = Worker::new(&store, &["h"], at(0)).await;
        proxy.lose_answer(step);
        for _ in 0..4 {
            drop(worker.sweep(&[], 5, at(0)).await);
            neighbour.sweep(&[], 5, at(0)).await.unwrap();
        }
        lost += u32::from(proxy.has_lost());
        proxy.lose_answer(0);
        neighbour.close(at(0)).await;
        let names: Vec<String> = (0..40).map(|n| format!("s{step}-{n}")).collect();
        store.append_alone(&named(&names.iter().map(String::as_str).collect::<Vec<_>>(), None, at(0))).await.unwrap();
        let mut seen = BTreeMap::new();
        work(&mut worker, &mut seen).await;
        assert_eq!(seen.get("").map_or(0, Vec::len), 40, "step {step}");
        worker.close(at(1)).await;
        other.close().await.unwrap();
    }
    assert!(lost >= 8, "only {lost} answers were lost");
    store.close().await.unwrap();
}

/// A worker that stops in the middle of a takeover, at whatever statement, holds up nobody for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_that_stops_midway_holds_nobody_up() {
    let mut held = 0;
    for step in 1..=STEPS {
        let schema = Schema::new();
        let (store, proxy) = proxied(&schema).await;
        let direct = schema.builder().build().unwrap();
        direct.append_alone(&named(&["e"], None, at(0))).await.unwrap();
        let mut dead = Worker::new(&direct, &["h"], at(0)).await;
        assert_eq!(dead.claim(1, at(0)).await.len(), 1);
        let mut stops = Worker::new(&store, &["h"], after_the_lease()).await;
        let mut heir = Worker::new(&direct, &["h"], after_the_lease()).await;
        proxy.hold_question(step);
        let stopping = tokio::spawn(async move { drop(stops.sweep(&[], 1, after_the_lease()).await) });
        while !proxy.holds() && !stopping.is_finished() {
            tokio::task::yield_now().await;
        }
        if !proxy.holds() {
            continue;
        }
        held += 1;
        let began = std::time::Instant::now();
        let mut taken = 0;
        while taken == 0 && began.elapsed().as_secs() < 5 {
            taken = heir.sweep(&[], 0, after_the_lease()).await.map_or(0, |turn| turn.taken_over);
            let left = "SELECT count(*) FROM {}.relaybus_sessions WHERE cardinality(in_flight) > 0";
            let left = sqlx::AssertSqlSafe(left.replace("{}", &schema.name));
            let left: i64 = sqlx::query_scalar(left).fetch_one(&mut connect().await).await.unwrap();
            if left == 0 {
                break;
            }
        }
        assert!(began.elapsed().as_secs() < 3, "held up for {:?} at step {step}", began.elapsed());
        stopping.abort();
    }
    assert!(held >= 7, "stopped at {held} statements");
}

/// A settlement whose answer was lost charges once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_a_settlement_charges_once() {
    let schema = Schema::new();
    let (store, proxy) = proxied(&schema).await;
    store.append_alone(&named(&["e1", "e2"], Some("k"), at(0))).await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    let head = worker.claim(1, at(1)).await;
    let settlement =
        Settlement::new(head[0].lease.clone(), Verdict::Reschedule { due_at: at(1), error: "{}".to_owned() });
    proxy.lose_answer(1);
    assert!(store.settle(&mut worker.session, std::slice::from_ref(&settlement), at(1)).await.is_err());
    worker.settle(settlement, at(1)).await;
    let again = worker.claim(1, at(2)).await;
    assert_eq!((ids(&again), again[0].attempts), (vec!["e1"], 1));
    // It crashes here: what it held is charged once more, its follower is not.
    let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
    let left = heir.claim(10, after_the_lease()).await;
    assert_eq!((ids(&left), left[0].attempts), (vec!["e1"], 2));
    store.close().await.unwrap();
}

/// F11: whatever a session that is taken over claims meanwhile is either not handed out, or charged and fenced. At each statement
/// of a takeover the session takes one more turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f11_what_is_claimed_during_a_takeover_is_fenced_and_charged() {
    let (mut held, mut refused, mut fenced) = (0, 0, 0);
    for step in 1..=STEPS {
        let schema = Schema::new();
        let (store, proxy) = proxied(&schema).await;
        let direct = schema.builder().build().unwrap();
        direct.append_alone(&named(&["e1"], None, at(0))).await.unwrap();
        let mut stalled = Worker::new(&direct, &["h"], at(0)).await;
        assert_eq!(stalled.claim(1, at(0)).await.len(), 1);
        direct.append_alone(&named(&["e2"], None, at(0))).await.unwrap();
        let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
        proxy.hold_question(step);
        let taking = tokio::spawn(async move {
            let swept = heir.sweep(&[], 0, after_the_lease()).await;
            (heir, swept)
        });
        while !proxy.holds() && !taking.is_finished() {
            tokio::task::yield_now().await;
        }
        held += usize::from(proxy.holds());
        // It waits for the row that the takeover has locked, if it came so far.
        let turn = tokio::spawn(async move {
            let turn = stalled.turn(&[], 5, 1, after_the_lease()).await;
            (stalled, turn)
        });
        // sleep: the turn is on its way, or waits for the takeover.
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        proxy.go_on();
        let (mut stalled, turn) = turn.await.unwrap();
        let (mut heir, _) = taking.await.unwrap();
        let got = match &turn {
            Ok(turn) => turn.runs.iter().flat_map(|run| run.deliveries.clone()).collect(),
            Err(_) => Vec::new(),
        };
        let mut left = heir.claim(5, after_the_lease()).await;
        left.sort_by(|a, b| a.event.id.as_str().cmp(b.event.id.as_str()));
        assert_eq!(ids(&left), ["e1", "e2"], "step {step}: taken over in the end");
        assert_eq!(left[0].attempts, 1, "step {step}");
        assert_eq!(left[1].attempts, u32::from(!got.is_empty()), "step {step}: {got:?}");
        for claimed in &got {
            let done = [relaybus::store::Completed::new(claimed.lease.clone(), relaybus::store::RunPart::Last)];
            let answer = stalled.turn(&done, 0, 1, after_the_lease()).await;
            assert!(
                !matches!(&answer, Ok(turn) if turn.completed == [relaybus::store::Settled::Applied]),
                "step {step}: completed by a session that was taken over"
            );
        }
        refused += usize::from(got.is_empty());
        fenced += usize::from(!got.is_empty());
        for claimed in &left {
            assert_eq!(heir.complete(claimed, after_the_lease()).await, relaybus::store::Settled::Applied);
        }
        direct.close().await.unwrap();
        store.close().await.unwrap();
    }
    assert!(held >= 7 && refused >= 3 && fenced >= 1, "held {held}, refused {refused}, fenced {fenced}");
}
