//! Handles: the store writes through what the application holds, of sqlx and of another client.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use relaybus::store::{AppendBatch, AppendOutcome, HandleOf};
use relaybus::{EventStore, RawPayload, Timestamp};
use relaybus_stores::PostgresStore;
use relaybus_stores::postgres::{PgAnswer, PgClient, PgClientError, PgColumn, PgHandle, PgValue, PostgreSql};
use sqlx::Connection;
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

use crate::kit::{Schema, Worker, at, connect, event, ids, named, url};

/// A transaction of `tokio-postgres`: what an application writes to use one. Its client has the same methods.
struct Tokio<C>(C);

impl<C: GenericClient + Send + Sync> HandleOf<PostgreSql> for Tokio<C> {
    fn handle(&mut self) -> PgHandle<'_> {
        PgHandle::client(self)
    }
}

fn time(at: &Timestamp) -> std::time::SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(at.as_micros()).unwrap())
}

fn typed<'a>(value: &'a PgValue<'a>) -> (Type, Box<dyn ToSql + Sync + Send + 'a>) {
    match value {
        PgValue::Time(at) => (Type::TIMESTAMPTZ, Box::new(at.as_ref().map(time))),
        PgValue::Bytes(bytes) => (Type::BYTEA, Box::new(bytes.as_deref())),
        PgValue::Text(text) => (Type::TEXT, Box::new(text.as_deref())),
        PgValue::Int2(number) => (Type::INT2, Box::new(*number)),
        PgValue::Int4(number) => (Type::INT4, Box::new(*number)),
        PgValue::Int8(number) => (Type::INT8, Box::new(*number)),
        PgValue::Int2s(all) => (Type::INT2_ARRAY, Box::new(all.as_slice())),
        PgValue::Int4s(all) => (Type::INT4_ARRAY, Box::new(all.as_slice())),
        PgValue::Int8s(all) => (Type::INT8_ARRAY, Box::new(all.as_slice())),
        PgValue::Times(all) => {
            (Type::TIMESTAMPTZ_ARRAY, Box::new(all.iter().map(|at| at.as_ref().map(time)).collect::<Vec<_>>()))
        }
        PgValue::BytesList(all) => (Type::BYTEA_ARRAY, Box::new(all.iter().map(Option::as_deref).collect::<Vec<_>>())),
        PgValue::Json(text) => (Type::TEXT, Box::new(text.as_deref())),
        PgValue::Jsons(all) => (Type::TEXT_ARRAY, Box::new(all.iter().map(Option::as_deref).collect::<Vec<_>>())),
        PgValue::Texts(all) => (Type::TEXT_ARRAY, Box::new(all.iter().map(Option::as_deref).collect::<Vec<_>>())),
    }
}

fn failed(error: tokio_postgres::Error) -> PgClientError {
    PgClientError { sqlstate: error.code().map(|code| code.code().to_owned()), source: Box::new(error) }
}

impl<C: GenericClient + Send + Sync> PgClient for Tokio<C> {
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        values: &'a [PgValue<'a>],
        columns: &'a [PgColumn],
    ) -> BoxFuture<'a, Result<PgAnswer, PgClientError>> {
        Box::pin(async move {
            let (types, values): (Vec<_>, Vec<_>) = values.iter().map(typed).unzip();
            let statement = self.0.prepare_typed(statement, &types).await.map_err(failed)?;
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            if columns.is_empty() {
                let affected = self.0.execute(&statement, &values).await.map_err(failed)?;
                return Ok(PgAnswer { rows: Vec::new(), affected });
            }
            let rows = self.0.query(&statement, &values).await.map_err(failed)?;
            let read = |row: &tokio_postgres::Row| {
                let column = |(place, column): (usize, &PgColumn)| match column {
                    PgColumn::Int8 => PgValue::Int8(row.get(place)),
                    PgColumn::Bytes => PgValue::Bytes(row.get::<_, Option<Vec<u8>>>(place).map(Cow::Owned)),
                    PgColumn::Text => PgValue::Text(row.get::<_, Option<String>>(place).map(Cow::Owned)),
                    PgColumn::Int2s => PgValue::Int2s(row.get(place)),
                };
                columns.iter().enumerate().map(column).collect()
            };
            Ok(PgAnswer { rows: rows.iter().map(read).collect(), affected: 0 })
        })
    }
}

async fn store(schema: &Schema) -> PostgresStore {
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    store
}

async fn drained(store: &PostgresStore) -> Vec<String> {
    let mut worker = Worker::new(store, &["h", "i"], at(1)).await;
    let claimed = worker.claim(100, at(1)).await;
    let mut names: Vec<String> = ids(&claimed).into_iter().map(str::to_owned).collect();
    names.sort();
    worker.close(at(1)).await;
    names
}

#[tokio::test]
async fn events_commit_with_a_transaction_of_tokio_postgres() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let (mut client, connection) = tokio_postgres::connect(&url(), tokio_postgres::NoTls).await.unwrap();
    let running = tokio::spawn(connection);
    client.batch_execute(&format!("CREATE TABLE {}.orders (id text PRIMARY KEY)", schema.name)).await.unwrap();
    for (id, commits) in [("kept", true), ("never", false)] {
        let mut tx = Tokio(client.transaction().await.unwrap());
        tx.0.batch_execute(&format!("INSERT INTO {}.orders VALUES ('{id}')", schema.name)).await.unwrap();
        // One, one with a key, and many.
        store.append(tx.handle(), &named(&[&format!("{id}-one")], None, at(0))).await.unwrap();
        store.append(tx.handle(), &named(&[&format!("{id}-keyed")], Some("k"), at(0))).await.unwrap();
        let many: Vec<String> = (0..5).map(|n| format!("{id}-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let outcome = store.append(tx.handle(), &named(&many, Some("l"), at(0))).await.unwrap();
        assert_eq!(outcome.outcomes, [AppendOutcome::Stored { deliveries: 1 }; 5]);
        // Again, and for one handler more.
        let mut again = named(&[], None, at(0));
        again.events.push(event(&format!("{id}-0"), Some("l"), &["h", "i"], at(0)));
        let outcome = store.append(tx.handle(), &again).await.unwrap();
        assert_eq!(outcome.outcomes, [AppendOutcome::Known { added: 1 }]);
        if commits {
            tx.0.commit().await.unwrap();
        } else {
            tx.0.rollback().await.unwrap();
        }
    }
    let row = client.query_one(&format!("SELECT count(*) FROM {}.orders", schema.name), &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    let listed = store.list_deliveries(&relaybus::store::DeliveryQuery::all(), at(1)).await.unwrap().deliveries;
    assert_eq!(listed.len(), 8, "seven events, one for two handlers");
    assert!(listed.iter().all(|record| record.id.event_id().as_str().starts_with("kept-")));
    running.abort();
    store.close().await.unwrap();
}

#[tokio::test]
async fn events_commit_with_every_handle_of_sqlx() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut connection = connect().await;
    sqlx::raw_sql("BEGIN").execute(&mut connection).await.unwrap();
    store.append(connection.handle(), &named(&["connection"], None, at(0))).await.unwrap();
    sqlx::raw_sql("COMMIT").execute(&mut connection).await.unwrap();
    let mut pooled = store.pool().acquire().await.unwrap();
    sqlx::raw_sql("START TRANSACTION").execute(&mut *pooled).await.unwrap();
    store.append(pooled.handle(), &named(&["pooled"], None, at(0))).await.unwrap();
    sqlx::raw_sql("END").execute(&mut *pooled).await.unwrap();
    drop(pooled);
    let mut tx = Connection::begin(&mut connection).await.unwrap();
    store.append(tx.handle(), &named(&["kept"], Some("k"), at(0))).await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    store.append(savepoint.handle(), &named(&["undone"], Some("k"), at(0))).await.unwrap();
    savepoint.rollback().await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    store.append(savepoint.handle(), &named(&["released"], Some("k"), at(0))).await.unwrap();
    savepoint.commit().await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = Connection::begin(&mut connection).await.unwrap();
    store.append(tx.handle(), &named(&["rolled-back"], None, at(0))).await.unwrap();
    drop(tx);
    drop(connection);
    assert_eq!(drained(&store).await, ["connection", "kept", "pooled"], "of the key only the head");
    let listed = store.list_deliveries(&relaybus::store::DeliveryQuery::all(), at(1)).await.unwrap().deliveries;
    let mut names: Vec<&str> = listed.iter().map(|record| record.id.event_id().as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["connection", "kept", "pooled", "released"]);
    store.close().await.unwrap();
}

/// Without a transaction the event would be committed by itself: it is refused, and the connection is as it was.
#[tokio::test]
async fn a_connection_without_a_transaction_is_refused() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut connection = connect().await;
    let mut pooled = store.pool().acquire().await.unwrap();
    for refused in [
        store.append(connection.handle(), &named(&["connection"], None, at(0))).await,
        store.append(pooled.handle(), &named(&["pooled"], Some("k"), at(0))).await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "RELAYBUS_TRANSACTION_REQUIRED");
        assert!(error.to_string().contains("begin one on it, or use `publish_detached`"), "{error}");
    }
    // One that failed is one, and is told what it is.
    let mut tx = Connection::begin(&mut connection).await.unwrap();
    assert!(sqlx::raw_sql("SELECT 1/0").execute(&mut *tx).await.is_err());
    let error = store.append(tx.handle(), &named(&["failed"], None, at(0))).await.unwrap_err();
    assert!(error.to_string().contains("an earlier statement of the transaction failed"), "{error}");
    tx.rollback().await.unwrap();
    sqlx::raw_sql("BEGIN; SAVEPOINT a").execute(&mut *pooled).await.unwrap();
    store.append(pooled.handle(), &named(&["kept"], None, at(0))).await.unwrap();
    sqlx::raw_sql("ROLLBACK TO a").execute(&mut *pooled).await.unwrap();
    store.append(pooled.handle(), &named(&["again"], None, at(0))).await.unwrap();
    sqlx::raw_sql("COMMIT").execute(&mut *pooled).await.unwrap();
    drop(pooled);
    assert_eq!(drained(&store).await, ["again"]);
    store.close().await.unwrap();
}

/// What cannot be stored fails before the first statement: the application's transaction goes on.
#[tokio::test]
async fn a_refused_event_leaves_the_transaction_usable() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut connection = connect().await;
    let mut tx = Connection::begin(&mut connection).await.unwrap();
    let mut bad = named(&["bad"], None, at(0));
    bad.events[0].envelope.source = "a\0b".into();
    let error = store.append(tx.handle(), &bad).await.unwrap_err();
    assert!(error.to_string().contains("NUL"), "{error}");
    store.append(tx.handle(), &named(&["good"], None, at(0))).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(drained(&store).await, ["good"]);
    store.close().await.unwrap();
}

/// JSON that the server would give up on in the middle of it is refused before; what it can read comes back.
#[tokio::test]
async fn a_payload_nested_too_deep_leaves_the_transaction_usable() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let mut connection = connect().await;
    let mut tx = Connection::begin(&mut connection).await.unwrap();
    let nested = |depth: usize| RawPayload::stored(format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    for (id, depth) in [("deep", 4_096), ("deeper", 4_097), ("deepest", 100_000)] {
        let mut batch = named(&[id], None, at(0));
        batch.events[0].envelope.payload = nested(depth);
        match store.append(tx.handle(), &batch).await {
            Ok(_) => assert_eq!(id, "deep"),
            Err(error) => assert!(id != "deep" && error.to_string().contains("nested"), "{id}: {error}"),
        }
    }
    let mut flat = named(&["flat"], None, at(0));
    flat.events[0].envelope.payload = RawPayload::stored(format!("[{}\"\\\"[{{\"]", "[],{},\"[\\\\\",".repeat(5_000)));
    store.append(tx.handle(), &flat).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(drained(&store).await, ["deep", "flat"]);
    store.close().await.unwrap();
}

/// Another client's connection without a transaction is not noticed. What an append looked at may change before it writes: each
/// handler gets an event once all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_without_a_transaction_add_each_handler_once() {
    let schema = Schema::new();
    let store = store(&schema).await;
    let (mut clients, mut running) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let (client, connection) = tokio_postgres::connect(&url(), tokio_postgres::NoTls).await.unwrap();
        clients.push(client);
        running.push(tokio::spawn(connection));
    }
    let batch = |round: usize, handlers: &[&str]| {
        let event = |part: &str| event(&format!("e{round}-{part}"), Some("k"), handlers, at(0));
        AppendBatch::new(vec![event("a"), event("b")], at(0))
    };
    for round in 0..40 {
        store.append_alone(&batch(round, &["h0"])).await.unwrap();
        let mut appends = Vec::new();
        for client in std::mem::take(&mut clients) {
            let (store, more) = (store.clone(), batch(round, &["h0", "h1", "h2"]));
            appends.push(tokio::spawn(async move {
                let mut client = Tokio(client);
                (store.append(client.handle(), &more).await.unwrap(), client.0)
            }));
        }
        let mut added = 0;
        for append in appends {
            let (appended, client) = append.await.unwrap();
            clients.push(client);
            for outcome in appended.outcomes {
                let AppendOutcome::Known { added: more } = outcome else { panic!("{outcome:?}") };
                added += more;
            }
        }
        assert_eq!(added, 4, "two handlers more for each of two events");
    }
    let rows = format!("SELECT count(*), count(DISTINCT (event_id, handler)) FROM {}.relaybus_deliveries", schema.name);
    let (rows, distinct): (i64, i64) = sqlx::query_as(sqlx::AssertSqlSafe(rows)).fetch_one(store.pool()).await.unwrap();
    assert_eq!((rows, distinct), (240, 240));
    running.iter().for_each(tokio::task::JoinHandle::abort);
    store.close().await.unwrap();
}
