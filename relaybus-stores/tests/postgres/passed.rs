//! What a claim passes by to be short is found by one of the next, counted in turns.

use relaybus::store::Completed;
use relaybus::{EventStore, Timestamp};
use relaybus_stores::PostgresStore;

use crate::kit::{Schema, Worker, at, completions, fresh};

/// More than a claim takes, and than a session holds.
const BACKLOG: u64 = 5_000;
const LIMIT: usize = 100;

async fn store(schema: &Schema) -> PostgresStore {
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    store
}

async fn publish(store: &PostgresStore, from: u64, count: u64, key: Option<&str>, handlers: &[&str], now: Timestamp) {
    store.append_alone(&fresh(from, count, |_| key.map(str::to_owned), handlers, now)).await.unwrap();
}

/// A turn whose claim comes in, and completes at once what it claimed; where `apart`, by turns that claim nothing.
async fn round(worker: &mut Worker, done: &mut Vec<Completed>, apart: bool, now: Timestamp) -> (Vec<String>, bool) {
    if apart && !done.is_empty() {
        worker.turn(done, 0, 16, now).await.unwrap();
        done.clear();
    }
    let turn = worker.turn(done, LIMIT, 16, now).await.unwrap();
    *done = completions(&turn.runs);
    let keys = turn.runs.iter().flat_map(|run| &run.deliveries).filter_map(|one| one.event.key.clone());
    (keys.map(|key| key.as_str().to_owned()).collect(), turn.more)
}

#[tokio::test]
async fn something_keyed_is_found_beside_a_backlog_whatever_turns_complete_it() {
    for apart in [false, true] {
        for offset in 0..2 {
            let schema = Schema::new();
            let store = store(&schema).await;
            publish(&store, 0, BACKLOG, None, &["h"], at(0)).await;
            let mut worker = Worker::new(&store, &["h"], at(0)).await;
            let mut done = Vec::new();
            worker.sweep(&[], 0, at(0)).await.unwrap();
            for _ in 0..offset {
                worker.turn(&[], 0, 16, at(0)).await.unwrap();
            }
            for _ in 0..4 {
                round(&mut worker, &mut done, apart, at(0)).await;
            }
            publish(&store, 10_000, 1, Some("k"), &["h"], at(0)).await;
            let mut rounds = 0;
            while round(&mut worker, &mut done, apart, at(0)).await.0.is_empty() {
                rounds += 1;
                assert!(rounds < 20, "not found in {rounds} claims; completions apart: {apart}, offset {offset}");
            }
            store.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_store_asks_to_go_on_until_every_handler_was_looked_at() {
    let names: Vec<String> = (0..10).map(|number| format!("h{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut worker = Worker::new(&store, &names, at(0)).await;
    let mut done = Vec::new();
    worker.sweep(&[], 1, at(0)).await.unwrap();
    while round(&mut worker, &mut done, false, at(0)).await.1 {}
    // No sweep is due any more. What is published now is handed out before the store says that there is no more.
    for number in 0..150_usize {
        let (first, other) = (number * 7 % names.len(), number * 3 % names.len());
        let backlogs = [(first, 250), ((first + 1) % names.len(), 50 + 25 * (number as u64 % 4))];
        let from = 10_000 * number as u64;
        for (place, (of, count)) in backlogs.into_iter().enumerate() {
            publish(&store, from + 1_000 * place as u64, count, None, &[names[of]], at(0)).await;
        }
        round(&mut worker, &mut done, false, at(0)).await;
        publish(&store, from + 5_000, 1, (number % 3 == 0).then_some("k"), &[names[other]], at(0)).await;
        let mut taken = done.len() as u64;
        while round(&mut worker, &mut done, false, at(0)).await.1 {
            taken += done.len() as u64;
        }
        let all = backlogs.iter().map(|one| one.1).sum::<u64>() + 1;
        assert_eq!(taken + done.len() as u64, all, "from handler {first} on, and {other}, in round {number}");
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_key_whose_run_ended_in_a_turn_without_a_claim_goes_on() {
    let schema = Schema::new();
    let store = store(&schema).await;
    publish(&store, 0, 40, Some("k"), &["h"], at(0)).await;
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    worker.sweep(&[], 0, at(0)).await.unwrap();
    let mut done = Vec::new();
    for seconds in [0, 10, 20] {
        // The sweep of this second finds the key in hand.
        while worker
            .sweep(&[], LIMIT, at(seconds))
            .await
            .map(|turn| {
                done.extend(completions(&turn.runs));
                turn.more
            })
            .unwrap()
        {}
        let (keys, _) = round(&mut worker, &mut done, true, at(seconds)).await;
        assert!(!keys.is_empty(), "its next run was not found at second {seconds}");
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_key_whose_run_ended_in_a_sweep_goes_on_beside_a_backlog() {
    let schema = Schema::new();
    let store = store(&schema).await;
    publish(&store, 10_000, 400, Some("k"), &["h"], at(0)).await;
    publish(&store, 0, BACKLOG, None, &["h"], at(0)).await;
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    worker.sweep(&[], 0, at(60)).await.unwrap();
    let (mut done, mut idle) = (Vec::new(), 0);
    let mut left = 400;
    while left > 0 {
        let (keys, _) = round(&mut worker, &mut done, false, at(60)).await;
        left -= keys.len();
        idle = if keys.is_empty() { idle + 1 } else { 0 };
        assert!(idle < 10, "nothing of the key in {idle} claims, {left} are left");
    }
    store.close().await.unwrap();
}
