//! Transactions of the store: what ends them, what they leave behind, and their budget.

use std::time::Duration;

use relaybus::store::{CommitError, HandleOf, IsolationLevel, StoreTransaction, TransactionOptions};
use relaybus::{Error, EventStore};
use relaybus_stores::PostgresStore;
use sqlx::{AssertSqlSafe, Row};

use crate::kit::{Schema, at, connect, named, options};

async fn one_connection(schema: &Schema, name: &str) -> PostgresStore {
    let store = PostgresStore::with_options(options().application_name(name)).schema(&schema.name).max_connections(1);
    let store = store.build().unwrap();
    store.setup().await.unwrap();
    store
}

async fn count(schema: &Schema) -> i64 {
    let text = format!("SELECT count(*) FROM {}.relaybus_events", schema.name);
    sqlx::query(AssertSqlSafe(text)).fetch_one(&mut connect().await).await.unwrap().get(0)
}

/// The client forgets a transaction whose `BEGIN` was under way when its future was dropped. The store does not.
#[tokio::test]
async fn a_dropped_begin_leaves_no_open_transaction() {
    let schema = Schema::new();
    let name = format!("drop-{}", schema.name);
    let store = one_connection(&schema, &name).await;
    let options = TransactionOptions::default();
    for round in 0..400_u64 {
        let limit = Duration::from_micros(round % 40 * 25);
        drop(tokio::time::timeout(limit, store.begin(&options)).await);
        if round % 10 == 0 {
            // On the only connection: inside a forgotten transaction this would never be seen.
            store.append_alone(&named(&[&format!("e{round}")], None, at(0))).await.unwrap();
            assert_eq!(count(&schema).await, i64::try_from(round / 10 + 1).unwrap());
        }
    }
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND state LIKE 'idle in transaction%'";
    let mut tries = 0;
    loop {
        let row = sqlx::query(open).bind(&name).fetch_one(&mut connect().await).await.unwrap();
        if row.get::<i64, _>(0) == 0 {
            break;
        }
        tries += 1;
        assert!(tries < 100, "a transaction stays open");
        // sleep: the server shows the state of other connections, and tells nobody when it changes.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    store.close().await.unwrap();
}

/// PostgreSQL answers the commit of a failed transaction with success. The store says that it rolled back.
#[tokio::test]
async fn a_commit_after_an_unseen_error_is_a_rollback() {
    let schema = Schema::new();
    let store = one_connection(&schema, "failed").await;
    let mut tx = store.begin(&TransactionOptions::default()).await.unwrap();
    store.append(tx.handle(), &named(&["lost"], None, at(0))).await.unwrap();
    assert!(sqlx::query("SELECT 1/0").execute(&mut *tx).await.is_err());
    assert!(matches!(tx.commit().await, Err(CommitError::RolledBack(_))));
    assert_eq!(count(&schema).await, 0);
    store.append_alone(&named(&["kept"], None, at(0))).await.unwrap();
    assert_eq!(count(&schema).await, 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_serialization_failure_is_told_apart() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let table = format!("{}.counter", schema.name);
    let make = format!("CREATE TABLE {table} (n int); INSERT INTO {table} VALUES (0)");
    sqlx::raw_sql(AssertSqlSafe(make)).execute(store.pool()).await.unwrap();
    let mut options = TransactionOptions::default();
    options.isolation = Some(IsolationLevel::Serializable);
    let (mut first, mut second) = (store.begin(&options).await.unwrap(), store.begin(&options).await.unwrap());
    for tx in [&mut first, &mut second] {
        sqlx::query(AssertSqlSafe(format!("SELECT * FROM {table}"))).fetch_all(&mut **tx).await.unwrap();
    }
    for (tx, id) in [(&mut first, "a"), (&mut second, "b")] {
        store.append(tx.handle(), &named(&[id], None, at(0))).await.unwrap();
        let insert = format!("INSERT INTO {table} VALUES (1)");
        sqlx::query(AssertSqlSafe(insert)).execute(&mut **tx).await.unwrap();
    }
    first.commit().await.unwrap();
    let failed = second.commit().await.unwrap_err();
    assert!(matches!(failed, CommitError::RolledBack(Error::SerializationFailure { .. })), "{failed:?}");
    assert_eq!(count(&schema).await, 1);
    store.close().await.unwrap();
}

/// An application's own statements fail with errors of sqlx: it can tell those after which a transaction may run again.
#[tokio::test]
async fn applications_tell_serialization_failures_apart() {
    use relaybus_stores::postgres::is_serialization_failure;
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let table = format!("{}.counter", schema.name);
    let make = format!("CREATE TABLE {table} (n int PRIMARY KEY); INSERT INTO {table} VALUES (0)");
    sqlx::raw_sql(AssertSqlSafe(make)).execute(store.pool()).await.unwrap();
    let mut options = TransactionOptions::default();
    options.isolation = Some(IsolationLevel::RepeatableRead);
    let (mut first, mut second) = (store.begin(&options).await.unwrap(), store.begin(&options).await.unwrap());
    let read = format!("SELECT n FROM {table}");
    sqlx::query(AssertSqlSafe(read)).fetch_all(&mut *second).await.unwrap();
    let count = format!("UPDATE {table} SET n = n + 1");
    sqlx::query(AssertSqlSafe(count.clone())).execute(&mut *first).await.unwrap();
    first.commit().await.unwrap();
    let error = sqlx::query(AssertSqlSafe(count)).execute(&mut *second).await.unwrap_err();
    assert!(is_serialization_failure(&error), "{error}");
    let twice = format!("INSERT INTO {table} VALUES (1)");
    let error = sqlx::query(AssertSqlSafe(twice)).execute(store.pool()).await.unwrap_err();
    assert!(!is_serialization_failure(&error), "{error}");
    assert!(!is_serialization_failure(&sqlx::Error::PoolTimedOut));
    second.rollback().await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_budget_ends_a_transaction_and_stays_in_it() {
    let schema = Schema::new();
    let store = one_connection(&schema, "budget").await;
    let mut options = TransactionOptions::default();
    options.budget = Some(Duration::from_millis(150));
    let mut tx = store.begin(&options).await.unwrap();
    let slow = sqlx::query("SELECT pg_sleep(20)").execute(&mut *tx).await;
    let code = slow.unwrap_err().as_database_error().unwrap().code().unwrap().into_owned();
    assert!(
        matches!(&*code, "57014" | "25P04"),
        "the statement's limit or, where there is one, the transaction's: {code}"
    );
    tx.rollback().await.unwrap();
    let row = sqlx::query("SHOW statement_timeout").fetch_one(store.pool()).await.unwrap();
    assert_eq!(row.get::<String, _>(0), "0", "the session's own setting is as before");
    // Idle for longer than its budget, it is ended by the server.
    let mut tx = store.begin(&options).await.unwrap();
    store.append(tx.handle(), &named(&["late"], None, at(0))).await.unwrap();
    // sleep: the budget is the real time of the server.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let ended = tx.commit().await.unwrap_err();
    let (CommitError::RolledBack(error) | CommitError::InDoubt(error)) = ended;
    assert_eq!(error.code(), "RELAYBUS_TRANSACTION_TIMEOUT", "{error:?}");
    assert_eq!(count(&schema).await, 0);
    store.append_alone(&named(&["next"], None, at(0))).await.unwrap();
    store.close().await.unwrap();
}

/// Where the server can, it ends a transaction that is busy with many short statements too, and the store's first one already.
#[tokio::test]
async fn the_budget_ends_a_busy_transaction() {
    const SINCE: u32 = 170_000;
    let schema = Schema::new();
    if connect().await.server_version_num().is_none_or(|version| version < SINCE) {
        println!("`transaction_timeout` came with PostgreSQL 17: nothing to see here");
        return;
    }
    let store = schema.builder().build().unwrap();
    let mut options = TransactionOptions::default();
    options.budget = Some(Duration::from_millis(300));
    let mut tx = store.begin(&options).await.unwrap();
    let mut ended = None;
    for _ in 0..20 {
        if let Err(error) = sqlx::query("SELECT pg_sleep(0.1)").execute(&mut *tx).await {
            ended = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
            break;
        }
    }
    assert_eq!(ended.as_deref(), Some("25P04"));
    tx.rollback().await.unwrap();
    store.close().await.unwrap();
}

/// A server that ends every connection is met by a new one; nothing has to be restarted.
#[tokio::test]
async fn terminated_connections_are_replaced() {
    let schema = Schema::new();
    let name = format!("kill-{}", schema.name);
    let store = one_connection(&schema, &name).await;
    store.append_alone(&named(&["before"], None, at(0))).await.unwrap();
    for round in 0..5 {
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        sqlx::query(kill).bind(&name).execute(&mut connect().await).await.unwrap();
        store.append_alone(&named(&[&format!("e{round}")], Some("k"), at(0))).await.unwrap();
    }
    assert_eq!(count(&schema).await, 6);
    store.close().await.unwrap();
}
