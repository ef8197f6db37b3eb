//! Faults of the disk and of callers: what is cut off midway leaves no transaction open and nothing half done.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use relaybus::EventStore;
use relaybus::store::{
    AppendBatch, Completed, RunPart, Settled, Settlement, StoreTransaction, TransactionOptions, Verdict,
};
use relaybus_stores::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::kit::{Fixture, Worker, at, claimed, event, fresh};

/// Polls a future `polls` times, giving the connection's thread time between polls, then drops it.
async fn drop_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        // sleep: the connection's thread is real and tells nobody how far it is.
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    false
}

async fn raw(fixture: &Fixture) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(fixture.store.path()).foreign_keys(false);
    options.busy_timeout(Duration::from_millis(200)).connect().await.unwrap()
}

/// Whether another process could write now.
async fn is_free(fixture: &Fixture) -> bool {
    let mut connection = raw(fixture).await;
    let mut begun = connection.execute("BEGIN IMMEDIATE").await.is_ok();
    for _ in 0..20 {
        if begun {
            break;
        }
        begun = connection.execute("BEGIN IMMEDIATE").await.is_ok();
    }
    connection.close().await.unwrap();
    begun
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_calls_leave_no_transaction_open() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    fixture.append(fresh(1, 200, |n| n.is_multiple_of(2).then(|| format!("k{}", n % 7)), at(0))).await;
    let mut worker = Worker::new(store, at(0)).await;
    let (mut number, mut ended) = (10_000, 0);
    for polls in 0..40 {
        number += 10;
        let batch = fresh(number, 3, |n| Some(format!("k{}", n % 3)), at(0));
        ended += usize::from(drop_after(polls, store.append_alone(&batch)).await);
        ended += usize::from(drop_after(polls, worker.turn(&[], 5, at(0))).await);
        let options = TransactionOptions::default();
        ended += usize::from(drop_after(polls, store.begin(&options)).await);
        ended += usize::from(
            drop_after(polls, async {
                let mut transaction = store.begin(&options).await.unwrap();
                let batch = AppendBatch::new(vec![event(crate::kit::fresh_id(number + 5), None, "{}", at(0))], at(0));
                store.append(&mut transaction, &batch).await.unwrap();
                transaction.commit().await.unwrap();
            })
            .await,
        );
        assert!(is_free(&fixture).await, "after {polls} polls a transaction is still open");
    }
    assert!(ended > 10, "with many polls calls end: only {ended} did");
    assert_complete(&fixture).await;
}

/// Every event has its deliveries, each key its head.
async fn assert_complete(fixture: &Fixture) {
    let mut reader = fixture.store.reader().await.unwrap();
    let check = async |connection: &mut SqliteConnection, what: &str, text: &'static str| {
        let bad: i64 = sqlx::query_scalar(text).fetch_one(connection).await.unwrap();
        assert_eq!(bad, 0, "{what}");
    };
    check(&mut reader, "events without deliveries", "SELECT count(*) FROM relaybus_events e WHERE NOT EXISTS \
        (SELECT 1 FROM relaybus_ready r WHERE r.seq = e.seq) AND NOT EXISTS (SELECT 1 FROM relaybus_waiting w WHERE w.seq = e.seq)").await;
    check(
        &mut reader,
        "deliveries without events",
        "SELECT count(*) FROM (SELECT seq FROM relaybus_ready UNION ALL \
        SELECT seq FROM relaybus_waiting) d WHERE d.seq NOT IN (SELECT seq FROM relaybus_events)",
    )
    .await;
    check(
        &mut reader,
        "keys without a head",
        "SELECT count(*) FROM relaybus_waiting w WHERE NOT EXISTS \
        (SELECT 1 FROM relaybus_ready r WHERE r.handler = w.handler AND r.key = w.key)",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_was_dropped_is_whole_or_absent_in_the_callers_transaction() {
    let fixture = Fixture::new().await;
    let mut connection = raw(&fixture).await;
    for polls in 0..25_u64 {
        connection.execute("BEGIN IMMEDIATE").await.unwrap();
        let fresh_batch = fresh(1_000 + polls, 1, |_| Some("k".to_owned()), at(0));
        drop_after(usize::try_from(polls).unwrap(), fixture.store.append(&mut connection, &fresh_batch)).await;
        let known = event(crate::kit::fresh_id(5_000 + polls), Some("k"), "{}", at(0));
        let batch = AppendBatch::new(vec![known], at(0));
        drop_after(usize::try_from(polls).unwrap(), fixture.store.append(&mut connection, &batch)).await;
        connection.execute("COMMIT").await.unwrap();
    }
    connection.close().await.unwrap();
    assert_complete(&fixture).await;
    assert!(fixture.store.statistics(at(0)).await.unwrap().pending >= 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_whose_answer_was_lost_are_freed_by_the_next_turn() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 400, |_| None, at(0))).await;
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let mut handed_out = 0;
    for polls in 0..30 {
        drop_after(polls, worker.turn(&[], 10, at(0))).await;
    }
    loop {
        let turn = worker.turn(&[], 50, at(0)).await.unwrap();
        if turn.runs.is_empty() {
            break;
        }
        handed_out += turn.runs.len();
    }
    // What ended within its polls was handed out and dropped by this test: it is remembered as held.
    let statistics = fixture.store.statistics(at(0)).await.unwrap();
    assert_eq!(statistics.pending, 0);
    assert!(handed_out > 0);
    let mut reader = fixture.store.reader().await.unwrap();
    let charged: i64 = sqlx::query_scalar("SELECT coalesce(sum(attempts), 0) FROM relaybus_ready")
        .fetch_one(&mut *reader)
        .await
        .unwrap();
    assert_eq!(charged, 0, "a lost answer costs no attempt");
}

#[tokio::test]
async fn a_transaction_that_read_before_another_wrote_gets_a_retryable_error() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 1, |_| None, at(0))).await;
    let mut connection = raw(&fixture).await;
    connection.execute("BEGIN; SELECT count(*) FROM relaybus_events").await.unwrap();
    fixture.append(fresh(2, 1, |_| None, at(0))).await;
    let batch = fresh(3, 1, |_| None, at(0));
    let error = fixture.store.append(&mut connection, &batch).await.expect_err("the snapshot is old");
    assert!(matches!(error, relaybus::Error::Store { retryable: true, .. }), "{error:?}");
    assert!(error.to_string().contains("`BEGIN IMMEDIATE`"), "{error}");
    connection.execute("ROLLBACK").await.unwrap();
}

/// A store whose file may not grow past `pages`, and what is needed to fill it.
async fn small_store(folder: &std::path::Path, pages: u32) -> SqliteStore {
    let store = SqliteStore::builder(folder.join("bus.db")).max_page_count(pages).build().await.unwrap();
    store.setup().await.unwrap();
    store
}

fn large(number: u64) -> AppendBatch {
    let payload = format!("\"{}\"", "y".repeat(20_000));
    let mut new = event(crate::kit::fresh_id(number), None, &payload, at(0));
    new.fresh_id = true;
    AppendBatch::new(vec![new], at(0))
}

#[tokio::test]
async fn a_full_disk_keeps_what_was_answered_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = small_store(folder.path(), 60).await;
    let mut stored = 0;
    let error = loop {
        match store.append_alone(&large(stored + 1)).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, relaybus::Error::Store { retryable: true, .. }), "{error:?}");
    assert!(error.to_string().contains("disk is full"), "{error}");
    assert!(stored > 2);
    let mut worker = Worker::new(&store, at(0)).await;
    assert_eq!(worker.drain(5, at(0)).await.len(), usize::try_from(stored).unwrap());
}

#[tokio::test]
async fn a_disk_that_fills_up_inside_a_transaction_takes_the_whole_of_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = small_store(folder.path(), 60).await;
    store.append_alone(&fresh(1, 1, |_| None, at(0))).await.unwrap();
    let mut worker = Worker::new(&store, at(0)).await;
    let turn = worker.turn(&[], 1, at(0)).await.unwrap();
    let lease = claimed(&turn.runs)[0].lease.clone();
    let options = TransactionOptions::of_handler();
    for _ in 0..3 {
        let mut transaction = store.begin(&options).await.unwrap();
        transaction.execute("CREATE TABLE effects (x)").await.unwrap();
        // The handler swallows the error of a full disk and goes on, which it must not.
        let full = loop {
            let filled = transaction.execute("INSERT INTO effects VALUES (zeroblob(50000))").await;
            if let Err(error) = filled {
                break error;
            }
        };
        assert!(full.to_string().contains("full"), "{full}");
        let completed = Completed::new(lease.clone(), RunPart::Last);
        let refused = store.complete_in(&mut transaction, &completed, at(0)).await;
        let refused = refused.expect_err("the effects are gone, so the completion must not stand").to_string();
        assert!(refused.contains("after an error of the disk"), "{refused}");
        transaction.commit().await.expect_err("there is no transaction any more");
    }
    let mut reader = store.reader().await.unwrap();
    let effects: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = 'effects'")
        .fetch_one(&mut *reader)
        .await
        .unwrap();
    assert_eq!(effects, 0);
    let kept = store.inspect(&lease).await.unwrap();
    assert_eq!(kept, relaybus::store::LeaseState::Held);
    // The connections that met the fault are not used again: a good transaction works at once.
    let mut transaction = store.begin(&options).await.unwrap();
    let completed = Completed::new(lease, RunPart::Last);
    assert_eq!(store.complete_in(&mut transaction, &completed, at(0)).await.unwrap(), Settled::Applied);
    transaction.commit().await.unwrap();
}

/// A real disk that is full, where the test may mount one; where it may not, the two tests above have shown the same.
#[tokio::test]
async fn a_full_file_system_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(folder.path())
        .stderr(std::process::Stdio::null())
        .status();
    let mounted = mount.is_ok_and(|status| status.success());
    let store = if mounted {
        SqliteStore::open(folder.path().join("bus.db")).await.unwrap()
    } else {
        small_store(folder.path(), 200).await
    };
    store.setup().await.unwrap();
    let mut stored = 0;
    let error = loop {
        match store.append_alone(&large(stored + 1)).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("full") || error.to_string().contains("disk failed"), "{error}");
    let statistics = store.statistics(at(0)).await.unwrap();
    assert_eq!(statistics.pending, stored);
    store.close().await.unwrap();
    drop(store);
    if mounted {
        // Lazily: the gate's file and the last connection may close a moment later.
        let status = std::process::Command::new("umount").arg("-l").arg(folder.path()).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settlements_that_were_dropped_can_be_repeated() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 40, |_| None, at(0))).await;
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let turn = worker.turn(&[], 40, at(0)).await.unwrap();
    for (polls, delivery) in claimed(&turn.runs).into_iter().enumerate() {
        let verdict = Verdict::Reschedule { due_at: at(60), error: "{}".to_owned() };
        let settlements = [Settlement::new(delivery.lease.clone(), verdict)];
        let store = worker.store.clone();
        drop_after(polls, store.settle(&mut worker.session, &settlements, at(0))).await;
        let again = store.settle(&mut worker.session, &settlements, at(0)).await.unwrap();
        assert!(matches!(again[..], [Settled::Applied | Settled::Lost]), "{again:?}");
    }
    let mut reader = fixture.store.reader().await.unwrap();
    let charged: Vec<i64> =
        sqlx::query_scalar("SELECT attempts FROM relaybus_ready").fetch_all(&mut *reader).await.unwrap();
    assert_eq!(charged, vec![1; 40], "each failure is charged once");
}
