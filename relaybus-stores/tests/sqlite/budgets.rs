//! What an operation costs: calls to SQLite and bytes of the write-ahead log.

use std::path::PathBuf;

use crate::kit::{Fixture, Worker, at, completions, fresh};

fn wal(fixture: &Fixture) -> PathBuf {
    let mut name = fixture.store.path().as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Bytes of the log that `operations` adds. Only `stat` touches the log: opening it would drop SQLite's locks.
async fn log_bytes(fixture: &Fixture, operations: impl Future<Output = ()>) -> u64 {
    let size = || std::fs::metadata(wal(fixture)).map_or(0, |metadata| metadata.len());
    let before = size();
    operations.await;
    let after = size();
    assert!(after >= before, "a checkpoint started the log anew: measure fewer operations");
    after - before
}

#[tokio::test]
async fn publishing_is_one_call_and_a_turn_is_one_or_two() {
    let fixture = Fixture::new().await;
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    for count in [1, 7, 100] {
        let before = fixture.store.calls();
        fixture.append(fresh(count * 1_000, count, |_| None, at(0))).await;
        let after = fixture.store.calls();
        assert_eq!((after.writes - before.writes, after.reads - before.reads), (1, 0), "{count} events");
    }
    let before = fixture.store.calls();
    let turn = worker.turn(&[], 10, at(0)).await.unwrap();
    let first = fixture.store.calls();
    assert_eq!((first.writes - before.writes, first.reads - before.reads), (1, 1), "it looks before it takes the lock");
    let done = completions(&turn.runs, &mut Vec::new());
    assert_eq!(done.len(), 10);
    worker.turn(&done, 10, at(0)).await.unwrap();
    let second = fixture.store.calls();
    assert_eq!((second.writes - first.writes, second.reads - first.reads), (1, 0), "it settles and claims at once");
}

#[tokio::test]
async fn an_idle_turn_is_one_read_and_no_write() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 50, |_| None, at(1_000))).await;
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    worker.turn(&[], 10, at(0)).await.unwrap();
    let before = fixture.store.calls();
    let turn = worker.turn(&[], 10, at(1)).await.unwrap();
    assert!(turn.runs.is_empty() && !turn.more);
    let after = fixture.store.calls();
    assert_eq!((after.writes - before.writes, after.reads - before.reads), (0, 1));
    worker.turn(&[], 0, at(1)).await.unwrap();
    let last = fixture.store.calls();
    assert_eq!((last.writes - after.writes, last.reads - after.reads), (0, 1), "it only asks for its session");
}

#[tokio::test]
async fn the_log_grows_within_its_budget() {
    let fixture = Fixture::new().await;
    // Some depth, so that pages are as full as they are in use.
    fixture.append(fresh(1, 100, |_| None, at(0))).await;
    let one = log_bytes(&fixture, async {
        for n in 0..20 {
            fixture.append(fresh(10_000 + n, 1, |_| None, at(0))).await;
        }
    });
    let one = one.await / 20;
    assert!(one <= 14_700, "publishing one event wrote {one} bytes");
    let hundred = log_bytes(&fixture, async {
        for n in 0..10 {
            fixture.append(fresh(20_000 + n * 100, 100, |_| None, at(0))).await;
        }
    });
    let hundred = hundred.await / 1_000;
    assert!(hundred <= 900, "publishing a hundred wrote {hundred} bytes an event");
}

#[tokio::test]
async fn a_keyed_event_and_a_turn_write_within_their_budgets() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 100, |n| Some(format!("order-{}", n % 20)), at(0))).await;
    // A key with a backlog adds a follower. A new key adds a head and its place in the index of keys, one page more, and
    // there is no way around it: to find out that a key has no head, each publish must look the key up in something that is
    // ordered by key, and what has just been found missing there must be added there.
    for (keys, budget) in [(20, 15_500), (1_000_000, 17_600)] {
        let keyed = log_bytes(&fixture, async {
            for n in 0..40 {
                let key = |n: u64| Some(format!("order-{}", n % keys));
                fixture.append(fresh(10_000 + keys + n, 1, key, at(0))).await;
            }
        });
        let keyed = keyed.await / 40;
        assert!(keyed <= budget, "publishing one event of {keys} keys wrote {keyed} bytes, more than {budget}");
    }
    for (limit, budget) in [(10, 640), (200, 135)] {
        let fixture = Fixture::new().await;
        for n in 0..12 {
            fixture.append(fresh(1 + n * 100, 100, |_| None, at(0))).await;
        }
        let mut worker = Worker::new(&fixture.store, at(0)).await;
        let mut done = completions(&worker.turn(&[], limit, at(0)).await.unwrap().runs, &mut Vec::new());
        let mut deliveries = 0;
        let written = log_bytes(&fixture, async {
            while deliveries < 800 {
                deliveries += done.len();
                done = completions(&worker.turn(&done, limit, at(0)).await.unwrap().runs, &mut Vec::new());
            }
        });
        let written = written.await / u64::try_from(deliveries).unwrap();
        assert!(written <= budget, "a turn of {limit} wrote {written} bytes a delivery, more than {budget}");
    }
}
