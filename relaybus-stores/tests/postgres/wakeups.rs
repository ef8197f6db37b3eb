//! Wake-ups: told at commit, to every process, and after the listening connection was lost.

use std::sync::Arc;
use std::time::Duration;

use relaybus::EventStore;
use relaybus::store::{HandleOf, WakeUp};
use relaybus_stores::postgres::WakeUpMode;
use sqlx::Connection;
use tokio::sync::Notify;

use crate::kit::{Schema, at, connect, named};

/// Longer than any wake-up takes, shorter than a poll would.
const SOON: Duration = Duration::from_secs(10);

pub fn signal() -> (Arc<Notify>, WakeUp) {
    let signal = Arc::new(Notify::new());
    let wake: WakeUp = Arc::new({
        let signal = Arc::clone(&signal);
        move || signal.notify_one()
    });
    (signal, wake)
}

pub async fn woken(signal: &Notify) {
    tokio::time::timeout(SOON, signal.notified()).await.expect("a wake-up");
}

/// Waits until no wake-up of what went before is under way.
pub async fn settle(signal: &Notify) {
    while tokio::time::timeout(Duration::from_millis(200), signal.notified()).await.is_ok() {}
}

#[tokio::test]
async fn an_applications_commit_wakes_other_processes() {
    let schema = Schema::new();
    let (publisher, worker) = (schema.builder().build().unwrap(), schema.builder().build().unwrap());
    publisher.setup().await.unwrap();
    let (signal, wake) = signal();
    let guard = worker.watch(wake).await.unwrap();
    let mut connection = connect().await;
    for round in 0..3 {
        let mut tx = connection.begin().await.unwrap();
        publisher.append(tx.handle(), &named(&[&format!("e{round}")], None, at(0))).await.unwrap();
        // The trailing notification of the store may come before the commit: it is a hint, and finds nothing.
        settle(&signal).await;
        tx.commit().await.unwrap();
        woken(&signal).await;
        settle(&signal).await;
    }
    drop(guard);
    publisher.close().await.unwrap();
    worker.close().await.unwrap();
}

#[tokio::test]
async fn a_lost_listening_connection_is_replaced_and_wakes() {
    let schema = Schema::new();
    let (publisher, worker) = (schema.builder().build().unwrap(), schema.builder().build().unwrap());
    publisher.setup().await.unwrap();
    let (signal, wake) = signal();
    let guard = worker.watch(wake).await.unwrap();
    let channel = format!("%{}.relaybus_deliveries%", schema.name);
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND query LIKE $1";
    let killed = sqlx::query(kill).bind(channel).execute(&mut connect().await).await.unwrap();
    assert_eq!(killed.rows_affected(), 1, "one listening connection");
    // It listens again and then wakes, for what was committed in between.
    woken(&signal).await;
    settle(&signal).await;
    publisher.append_alone(&named(&["e"], None, at(0))).await.unwrap();
    woken(&signal).await;
    drop(guard);
    publisher.close().await.unwrap();
    worker.close().await.unwrap();
}

#[tokio::test]
async fn a_store_that_polls_tells_nobody() {
    let schema = Schema::new();
    let publisher = schema.builder().wake_up(WakeUpMode::Poll).build().unwrap();
    let worker = schema.builder().build().unwrap();
    publisher.setup().await.unwrap();
    assert!(!publisher.capabilities().reports_commits && worker.capabilities().reports_commits);
    let ((others, wake_others), (own, wake_own)) = (signal(), signal());
    let guards = (worker.watch(wake_others).await.unwrap(), publisher.watch(wake_own).await.unwrap());
    publisher.append_alone(&named(&["e"], None, at(0))).await.unwrap();
    woken(&own).await;
    assert!(tokio::time::timeout(Duration::from_millis(300), others.notified()).await.is_err(), "nothing is sent");
    drop(guards);
    publisher.close().await.unwrap();
    worker.close().await.unwrap();
}

/// Many publishes of a moment are few notifications, of constant size.
#[tokio::test]
async fn notifications_are_coalesced() {
    let schema = Schema::new();
    let publisher = schema.builder().build().unwrap();
    publisher.setup().await.unwrap();
    let mut listener = sqlx::postgres::PgListener::connect(&crate::kit::url()).await.unwrap();
    listener.listen(&format!("{}.relaybus_deliveries", schema.name)).await.unwrap();
    let started = tokio::time::Instant::now();
    for n in 0..300 {
        publisher.append_alone(&named(&[&format!("e{n}")], None, at(0))).await.unwrap();
    }
    let most = started.elapsed().as_millis() / 10 + 3;
    let mut heard = 0;
    while let Ok(told) = tokio::time::timeout(Duration::from_millis(500), listener.recv()).await {
        assert_eq!(told.unwrap().payload(), "");
        heard += 1;
    }
    assert!(heard >= 1 && heard <= most, "{heard} notifications, at most {most} fit into the time");
    publisher.close().await.unwrap();
}

/// Of two transactions of the application that publish at once, one carries no notification: the other is heard of too, however
/// much later it commits.
#[tokio::test]
async fn transactions_at_the_same_time_wake_others_each() {
    let schema = Schema::new();
    let (publisher, worker) = (schema.builder().build().unwrap(), schema.builder().build().unwrap());
    publisher.setup().await.unwrap();
    let (signal, wake) = signal();
    let guard = worker.watch(wake).await.unwrap();
    let (mut first, mut second) = (connect().await, connect().await);
    for (round, hold) in [50, 400, 900].into_iter().enumerate() {
        let (mut one, mut other) = (first.begin().await.unwrap(), second.begin().await.unwrap());
        publisher.append(one.handle(), &named(&[&format!("a{round}")], None, at(0))).await.unwrap();
        publisher.append(other.handle(), &named(&[&format!("b{round}")], None, at(0))).await.unwrap();
        one.commit().await.unwrap();
        // sleep: the transaction's own time.
        tokio::time::sleep(Duration::from_millis(hold)).await;
        while tokio::time::timeout(Duration::ZERO, signal.notified()).await.is_ok() {}
        other.commit().await.unwrap();
        woken(&signal).await;
    }
    drop(guard);
    publisher.close().await.unwrap();
    worker.close().await.unwrap();
}
