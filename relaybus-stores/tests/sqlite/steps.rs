//! The steps of SQLite's virtual machine, counted: a claim's cost does not grow with what it does not claim.
//!
//! SQLite calls a progress handler after each step; the count is the same at each run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::TryStreamExt;
use relaybus::EventStore;
use relaybus::store::StoreTransaction;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

use crate::kit::Fixture;

/// A connection whose steps are counted.
async fn counted(fixture: &Fixture) -> (SqliteConnection, Arc<AtomicU64>) {
    let mut connection = SqliteConnectOptions::new().filename(fixture.store.path()).connect().await.unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let steps = Arc::clone(&count);
    let mut handle = connection.lock_handle().await.unwrap();
    handle.set_progress_handler(1, move || {
        steps.fetch_add(1, Ordering::Relaxed);
        true
    });
    drop(handle);
    (connection, count)
}

/// Adds `count` deliveries from `first` on, with the rows that the store writes.
async fn fill(fixture: &Fixture, first: i64, count: i64, handler: &str, due_at: i64, session: Option<i64>, key: &str) {
    let mut transaction = fixture.store.begin(&Default::default()).await.unwrap();
    let numbers = format!(
        "WITH RECURSIVE n (x) AS (SELECT {first} UNION ALL SELECT x + 1 FROM n WHERE x < {}) ",
        first + count - 1
    );
    let session = session.map_or("NULL".to_owned(), |session| session.to_string());
    let mut texts = vec![format!(
        "{numbers} INSERT INTO relaybus_events (seq, id, created_at, type, payload, headers, handlers) \
         SELECT x, CAST(printf('%016d', x) AS BLOB), 1, 't', '{{}}', '{{}}', '[\"{handler}\"]' FROM n"
    )];
    if key.is_empty() {
        texts.push(format!(
            "{numbers} INSERT INTO relaybus_ready (handler, due_at, seq, session) SELECT '{handler}', {due_at}, x, {session} FROM n"
        ));
    } else {
        texts.push(format!(
            "INSERT INTO relaybus_ready (handler, due_at, seq, session, key) VALUES ('{handler}', {due_at}, {first}, {session}, '{key}')"
        ));
        texts.push(format!(
            "{numbers} INSERT INTO relaybus_waiting (handler, key, seq, due_at) SELECT '{handler}', '{key}', x, {due_at} FROM n WHERE x > {first}"
        ));
    }
    for text in texts {
        transaction.execute(AssertSqlSafe(text)).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

/// Steps of one turn that claims ten, steps of looking whether anything is due, and what it claimed; the turn is taken
/// back.
async fn steps(fixture: &Fixture) -> (u64, u64, usize) {
    let (mut connection, count) = counted(fixture).await;
    let texts = fixture.store.texts();
    let text = |name: &str| texts.iter().find(|(known, _)| known == name).unwrap().1.clone();
    connection
        .execute("INSERT OR IGNORE INTO relaybus_sessions (id, owner, expires_at) VALUES (1, 'o', 9)")
        .await
        .unwrap();
    let now = 1_000_i64;
    // Two completions that there are not, then the fixed binds, then four handlers.
    let claim = text("claim_followers").replace("COMMIT;", "");
    let mut query = sqlx::query(AssertSqlSafe(claim));
    for _ in 0..14 {
        query = query.bind(Option::<i64>::None);
    }
    query = query.bind(1_i64).bind(now).bind(Option::<i64>::None).bind(10_i64).bind(19_i64).bind(262_144_i64);
    query = query.bind(50_000_i64).bind("h").bind("other").bind(Option::<&str>::None).bind(Option::<&str>::None);
    count.store(0, Ordering::Relaxed);
    let answers: Vec<_> = connection.fetch_many(query).try_collect().await.unwrap();
    let turn = count.swap(0, Ordering::Relaxed);
    let marked = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM relaybus_ready WHERE session = 1")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(!answers.is_empty());
    connection.execute("ROLLBACK").await.unwrap();
    let mut probe = sqlx::query(AssertSqlSafe(text("probe"))).bind(1_i64).bind(now).bind("h").bind("other");
    for _ in 0..2 {
        probe = probe.bind(Option::<&str>::None);
    }
    count.store(0, Ordering::Relaxed);
    probe.fetch_all(&mut connection).await.unwrap();
    (turn, count.load(Ordering::Relaxed), usize::try_from(marked).unwrap())
}

#[tokio::test]
async fn a_claim_looks_at_no_more_rows_beside_any_backlog() {
    let (small, large) = (1_000, 100_000);
    let fixture = Fixture::new().await;
    fill(&fixture, 1, small, "h", 10, None, "").await;
    let alone = steps(&fixture).await;
    assert_eq!(alone.2, 10, "it claims");
    assert!(alone.0 <= 2_500 && alone.1 <= 70, "{alone:?}: a claim of ten with its followers, of four handlers");
    let due = Fixture::new().await;
    fill(&due, 1, large, "h", 10, None, "").await;
    let next_week = Fixture::new().await;
    fill(&next_week, 1, small, "h", 10, None, "").await;
    fill(&next_week, 1_000_000, large, "h", 5_000, None, "").await;
    let behind = Fixture::new().await;
    fill(&behind, 1_000_000, large, "h", 20, None, "blocked").await;
    fill(&behind, 1, small, "h", 10, None, "").await;
    let unknown = Fixture::new().await;
    fill(&unknown, 1_000_000, large, "gone", 1, None, "").await;
    fill(&unknown, 1, small, "h", 10, None, "").await;
    for (name, fixture) in
        [("due", &due), ("next week", &next_week), ("behind a key", &behind), ("of unknown handlers", &unknown)]
    {
        assert_eq!(steps(fixture).await, alone, "beside {large} {name}");
    }
    // A head that is held far away in the range, with everything of its key behind it.
    let held = Fixture::new().await;
    fill(&held, 1_000_000, large, "h", 1, Some(7), "blocked").await;
    fill(&held, 1, small, "h", 10, None, "").await;
    let beside_held = steps(&held).await;
    assert!(beside_held.0 <= alone.0 + 12 && beside_held.1 <= alone.1 + 4, "{beside_held:?} after {alone:?}");
}

#[tokio::test]
async fn work_in_flight_costs_a_claim_four_steps_each_time_it_is_passed() {
    let fixture = Fixture::new().await;
    fill(&fixture, 1, 1_000, "h", 10, None, "").await;
    let alone = steps(&fixture).await;
    fill(&fixture, 10_000, 100, "h", 5, Some(7), "").await;
    let beside = steps(&fixture).await;
    // Read for what is handed out, for its followers, and for the marks.
    assert!(beside.0 - alone.0 <= 3 * 4 * 100, "{beside:?} after {alone:?}");
    assert!(beside.1 - alone.1 <= 4 * 100, "{beside:?} after {alone:?}");
    fixture.store.close().await.unwrap();
}
