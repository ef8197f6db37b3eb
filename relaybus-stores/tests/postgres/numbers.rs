//! The numbers of handlers that a process remembers, when the tables under it are restored: no delivery goes to another handler.

use relaybus::store::{AppendBatch, DeliveryQuery, HandleOf, StoreTransaction, TransactionOptions};
use relaybus::{EventStore, HandlerId};
use relaybus_stores::PostgresStore;
use sqlx::{AssertSqlSafe, Row};

use crate::kit::{Schema, Worker, at, connect, event, handler, ids, options};

/// A store whose connections have a name of their own.
async fn named_store(schema: &Schema) -> (PostgresStore, String) {
    let name = format!("numbers-{}", schema.name);
    let options = options().application_name(&name);
    let store = PostgresStore::with_options(options).schema(&schema.name).max_connections(1).build().unwrap();
    store.setup().await.unwrap();
    (store, name)
}

fn one(id: &str, to: &str) -> AppendBatch {
    AppendBatch::new(vec![event(id, None, &[to], at(0))], at(0))
}

/// What a restore does: the dictionary is another one, and all connections end.
async fn restore(schema: &Schema, rewrite: &str, name: &str) {
    let mut admin = connect().await;
    let text = rewrite.replace("{handlers}", &format!("{}.relaybus_handlers", schema.name));
    sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut admin).await.unwrap();
    let kill = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = $1";
    let killed: i64 = sqlx::query_scalar(kill).bind(name).fetch_one(&mut admin).await.unwrap();
    assert!(killed >= 2, "the pool's and the one that read the numbers: {killed}");
}

/// The handlers of all deliveries, by their events, as the dictionary has them now.
async fn who_gets_what(schema: &Schema) -> Vec<String> {
    let store = schema.builder().build().unwrap();
    let listed = store.list_deliveries(&DeliveryQuery::all(), at(1)).await.unwrap().deliveries;
    let mut all: Vec<String> =
        listed.iter().map(|record| format!("{} to {}", record.id.event_id(), record.id.handler())).collect();
    all.sort();
    store.close().await.unwrap();
    all
}

const SWAP: &str = "UPDATE {handlers} SET name = CASE name WHEN 'a' THEN 'x' ELSE 'y' END; \
    UPDATE {handlers} SET name = CASE name WHEN 'x' THEN 'b' ELSE 'a' END";

/// After a restore in which numbers changed places, deliveries belong to the handlers they are for, whatever they are published
/// through: the statement that met the end of its connection, the store's transactions, and those of its pool.
#[tokio::test]
async fn numbers_that_changed_places_are_read_again() {
    let schema = Schema::new();
    let (store, name) = named_store(&schema).await;
    // As long as connections are opened, numbers are read.
    for number in 0..4 {
        for to in ["a", "b"] {
            let id = format!("{number}-before-{to}");
            let mut tx = store.begin(&TransactionOptions::default()).await.unwrap();
            store.append(tx.handle(), &one(&id, to)).await.unwrap();
            tx.commit().await.unwrap();
            store.append_alone(&one(&format!("{id}-alone"), to)).await.unwrap();
        }
    }

    restore(&schema, SWAP, &name).await;
    store.append_alone(&one("1-alone", "a")).await.unwrap();

    restore(&schema, SWAP, &name).await;
    // Whoever finds that its connection has ended tries again; what it is told then is what counts.
    let mut tx = match store.begin(&TransactionOptions::default()).await {
        Ok(tx) => tx,
        Err(_) => store.begin(&TransactionOptions::default()).await.unwrap(),
    };
    store.append(tx.handle(), &one("2-transaction", "a")).await.unwrap();
    tx.commit().await.unwrap();

    restore(&schema, SWAP, &name).await;
    let mut tx = match store.pool().begin().await {
        Ok(tx) => tx,
        Err(_) => store.pool().begin().await.unwrap(),
    };
    store.append(tx.handle(), &one("3-pool", "b")).await.unwrap();
    tx.commit().await.unwrap();
    // What was stored between the swaps changes hands with the dictionary: twice, once and not at all.
    let after = who_gets_what(&schema).await;
    let after: Vec<&String> = after.iter().filter(|line| !line.contains("before")).collect();
    assert_eq!(after, ["1-alone to a", "2-transaction to b", "3-pool to b"]);
    store.close().await.unwrap();
}

async fn numbers(schema: &Schema) -> Vec<(i16, String)> {
    let text = format!("SELECT id, name FROM {}.relaybus_handlers ORDER BY name", schema.name);
    let rows = sqlx::query(AssertSqlSafe(text)).fetch_all(&mut connect().await).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Names that a restore has lost get the numbers they had, in whatever order they come back: a process that remembers them, on
/// connections of the application that nobody saw being opened, is right.
#[tokio::test]
async fn names_that_come_back_get_their_numbers() {
    let schema = Schema::new();
    let pool = sqlx::PgPool::connect_lazy_with(options());
    let store = PostgresStore::with_pool(pool.clone()).schema(&schema.name).build().unwrap();
    store.setup().await.unwrap();
    for name in ["a", "b", "c"] {
        store.append_alone(&one(&format!("0-{name}"), name)).await.unwrap();
    }
    let before = numbers(&schema).await;
    let lose = format!("DELETE FROM {}.relaybus_handlers WHERE name <> 'a'", schema.name);
    sqlx::raw_sql(AssertSqlSafe(lose)).execute(&mut connect().await).await.unwrap();
    // Somebody else is first to register, and has names of its own.
    let other = schema.builder().build().unwrap();
    for name in ["d", "c"] {
        other.append_alone(&one(&format!("1-{name}"), name)).await.unwrap();
    }
    let mut tx = pool.begin().await.unwrap();
    store.append(tx.handle(), &one("2-b", "b")).await.unwrap();
    store.append(tx.handle(), &one("2-c", "c")).await.unwrap();
    tx.commit().await.unwrap();
    for (name, wanted) in [("b", ["0-b", "2-b"].as_slice()), ("c", &["0-c", "1-c", "2-c"]), ("d", &["1-d"])] {
        let mut worker = Worker::new(&other, &[name], at(1)).await;
        let claimed = worker.claim(10, at(1)).await;
        let mut got = ids(&claimed);
        got.sort_unstable();
        assert_eq!(got, wanted, "of `{name}`");
        worker.close(at(1)).await;
    }
    let after = numbers(&schema).await;
    assert_eq!(after.iter().filter(|(_, name)| name != "d").cloned().collect::<Vec<_>>(), before);
    assert_eq!(after.len(), 4);
    other.close().await.unwrap();
    store.close().await.unwrap();
}

/// Tables that were dropped and set up anew have no numbers but those that names have by themselves.
#[tokio::test]
async fn tables_that_were_dropped_and_made_again_take_the_same_numbers() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    store.append_alone(&one("lost", "a")).await.unwrap();
    let drop = format!("DROP SCHEMA \"{}\" CASCADE", schema.name);
    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut connect().await).await.unwrap();
    let other = schema.builder().build().unwrap();
    other.setup().await.unwrap();
    other.append_alone(&one("first", "b")).await.unwrap();
    let mut tries = 0;
    // A connection whose statements were prepared for tables that are gone may refuse once.
    while store.append_alone(&one("second", "a")).await.is_err() {
        tries += 1;
        assert!(tries < 5, "it does not find the new tables");
    }
    let mut worker = Worker::new(&other, &["a"], at(1)).await;
    assert_eq!(ids(&worker.claim(10, at(1)).await), ["second"]);
    worker.close(at(1)).await;
    let mut worker = Worker::new(&other, &["b"], at(1)).await;
    assert_eq!(ids(&worker.claim(10, at(1)).await), ["first"]);
    worker.close(at(1)).await;
    for closing in [store, other] {
        closing.close().await.unwrap();
    }
}

/// Many processes that register many names at once give each one number, and none twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_registered_at_once_get_one_number_each() {
    let schema = Schema::new();
    schema.builder().build().unwrap().setup().await.unwrap();
    let names: Vec<String> = (0..60).map(|number| format!("handler-{number}")).collect();
    let mut registering = Vec::new();
    for process in 0..6 {
        let (store, names) = (schema.builder().build().unwrap(), names.clone());
        registering.push(tokio::spawn(async move {
            for number in 0..names.len() {
                let name = &names[(number * (process + 1) + process) % names.len()];
                store.append_alone(&one(&format!("{process}-{number}"), name)).await.unwrap();
            }
            store.close().await.unwrap();
        }));
    }
    for process in registering {
        process.await.unwrap();
    }
    let numbers = numbers(&schema).await;
    let named: std::collections::BTreeSet<HandlerId> = numbers.iter().map(|(_, name)| handler(name)).collect();
    assert!(named.len() == numbers.len() && numbers.len() <= names.len());
    let named = format!(
        "SELECT count(*) FROM {0}.relaybus_deliveries d JOIN {0}.relaybus_handlers h ON h.id = d.handler",
        schema.name
    );
    let deliveries: i64 = sqlx::query_scalar(AssertSqlSafe(named)).fetch_one(&mut connect().await).await.unwrap();
    assert_eq!(usize::try_from(deliveries).unwrap(), 6 * names.len());
}
