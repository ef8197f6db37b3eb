//! Tables: created by many at once, by hand, beside others, and used by a role with few rights.

use relaybus::EventStore;
use relaybus::store::{AppendBatch, DeliveryQuery, HandleOf, Settled, TransactionOptions};
use relaybus_stores::PostgresStore;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Row};

use crate::kit::{Schema, Worker, after_the_lease, at, connect, event, ids, named, options};

async fn run(connection: &mut PgConnection, sql: String) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{error}: {sql}"));
}

async fn works(store: &PostgresStore, id: &str) {
    store.append_alone(&named(&[id], Some("k"), at(0))).await.unwrap();
    let mut worker = Worker::new(store, &["h"], at(1)).await;
    let claimed = worker.claim(10, at(1)).await;
    assert_eq!(ids(&claimed), [id]);
    assert_eq!(worker.complete(&claimed[0], at(2)).await, relaybus::store::Settled::Applied);
    worker.close(at(2)).await;
}

#[tokio::test]
async fn fifty_setups_at_once_all_succeed() {
    let schema = Schema::new();
    let stores: Vec<PostgresStore> =
        (0..10).map(|_| schema.builder().completion_history(true).build().unwrap()).collect();
    let mut setups = Vec::new();
    for n in 0..50 {
        let store = stores[n % 10].clone();
        setups.push(tokio::spawn(async move { store.setup().await }));
    }
    for setup in setups {
        setup.await.unwrap().unwrap();
    }
    works(&stores[0], "e").await;
    for store in stores {
        store.verify().await.unwrap();
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn tables_of_another_layout_are_refused_and_left_alone() {
    let schema = Schema::new();
    let mut connection = connect().await;
    run(
        &mut connection,
        format!(
            "CREATE SCHEMA {0}; CREATE TABLE {0}.relaybus_events (id text PRIMARY KEY, payload json);
             CREATE TABLE {0}.relaybus_lanes (lane int PRIMARY KEY, epoch bigint);
             CREATE TABLE {0}.relaybus_key_sequences (key text PRIMARY KEY, sequence bigint)",
            schema.name
        ),
    )
    .await;
    let store = schema.builder().build().unwrap();
    let error = store.setup().await.unwrap_err();
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION");
    let words = error.to_string();
    assert!(words.contains("TypeScript edition") && words.contains("nothing was changed"), "{words}");
    assert!(store.verify().await.is_err());
    let count =
        format!("SELECT count(*) FROM pg_class WHERE relnamespace = '{}'::regnamespace AND relkind = 'r'", schema.name);
    let row = sqlx::query(AssertSqlSafe(count)).fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 3);
    let other = schema.builder().table_prefix("bus_").build().unwrap();
    other.setup().await.unwrap();
    works(&other, "e").await;
    other.close().await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_wrong_address_says_what_is_wrong_with_it() {
    let absent = PostgresStore::builder("postgres://app:secret@127.0.0.1:1/none").build().unwrap();
    let error = absent.setup().await.expect_err("nobody listens there");
    assert!(error.to_string().contains("no server answers"), "{error}");
    assert!(error.to_string().ends_with("(database `none` at `127.0.0.1:1`)"), "{error}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");

    let options = options().database("there_is_no_such_database");
    let unknown = PostgresStore::with_pool(PgPoolOptions::new().connect_lazy_with(options)).build().unwrap();
    let error = unknown.setup().await.expect_err("there is no such database");
    assert!(error.to_string().contains("refuses the login"), "{error}");
    assert!(error.to_string().contains("database `there_is_no_such_database` at `"), "{error}");
}

/// A setting of the role and a standby server look alike from here: the words name both.
#[tokio::test]
async fn a_connection_that_may_not_write_says_why() {
    let schema = Schema::new();
    schema.builder().build().unwrap().setup().await.unwrap();
    let options = options().options([("default_transaction_read_only", "on")]);
    let store = PostgresStore::with_options(options).schema(&schema.name).build().unwrap();
    let batch = named(&["e"], None, at(0));
    let mut tx = store.begin(&TransactionOptions::default()).await.unwrap();
    for refused in [store.append_alone(&batch).await, store.append(tx.handle(), &batch).await] {
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("standby") && words.contains("`default_transaction_read_only`"), "{words}");
    }
    drop(tx);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_not_set_up_says_so() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    let error = store.verify().await.unwrap_err();
    assert!(error.to_string().contains("call `setup`"), "{error}");
    let error = store.statistics(at(0)).await.unwrap_err();
    assert!(error.to_string().contains("call `setup`"), "{error}");
    store.close().await.unwrap();
}

/// The DDL as text, run by somebody else; a role that may only read and write; a search path that finds nothing.
#[tokio::test]
async fn a_run_role_needs_only_dml_rights() {
    let schema = Schema::new();
    let mut connection = connect().await;
    let ddl = schema.builder().completion_history(true).schema_sql().unwrap();
    run(&mut connection, format!("BEGIN; {ddl} COMMIT")).await;
    let role = format!("run_{}", schema.name);
    run(
        &mut connection,
        format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {0} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {0} TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {0} TO {role}",
            schema.name
        ),
    )
    .await;
    let options = options().username(&role).options([("search_path", "")]);
    let store = PostgresStore::with_options(options).schema(&schema.name).completion_history(true).build().unwrap();
    store.verify().await.unwrap();
    store.setup().await.unwrap();
    works(&store, "e").await;
    store.purge(&relaybus::store::PurgeRequest::new(10)).await.unwrap();
    store.close().await.unwrap();
    run(&mut connection, format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn stores_share_a_schema_by_their_prefixes() {
    let schema = Schema::new();
    let long = "p".repeat(41);
    let stores = ["relaybus_", "a", &long].map(|prefix| schema.builder().table_prefix(prefix).build().unwrap());
    for store in &stores {
        store.setup().await.unwrap();
    }
    for (n, store) in stores.iter().enumerate() {
        works(store, &format!("e{n}")).await;
    }
    for store in stores {
        store.close().await.unwrap();
    }
}

/// Two versions after this one, as later releases will have them.
const STEPS: [&str; 2] = [
    "ALTER TABLE {events} ADD COLUMN IF NOT EXISTS region text; UPDATE {events} SET region = 'somewhere' WHERE region IS NULL",
    "CREATE INDEX IF NOT EXISTS later ON {events} (region)",
];

async fn version(connection: &mut PgConnection, schema: &Schema) -> i64 {
    let text = format!("SELECT value FROM {}.relaybus_meta WHERE name = 'version'", schema.name);
    sqlx::query(AssertSqlSafe(text)).fetch_one(connection).await.unwrap().get(0)
}

/// Tables of this version, with events in them, under fifty processes of a later one.
#[tokio::test]
async fn older_tables_are_upgraded_in_place_by_many_at_once() {
    let schema = Schema::new();
    let old = schema.builder().build().unwrap();
    old.setup().await.unwrap();
    old.append_alone(&named(&["before"], Some("k"), at(0))).await.unwrap();
    let mut connection = connect().await;
    assert_eq!(version(&mut connection, &schema).await, 1);
    let later: Vec<PostgresStore> = (0..10).map(|_| schema.builder().upgraded_by(&STEPS).build().unwrap()).collect();
    let error = later[0].verify().await.unwrap_err().to_string();
    assert!(error.contains("of version 1") && error.contains("call `setup`"), "{error}");
    let setups: Vec<_> = (0..50)
        .map(|n| {
            let store = later[n % 10].clone();
            tokio::spawn(async move { store.setup().await })
        })
        .collect();
    for setup in setups {
        setup.await.unwrap().unwrap();
    }
    assert_eq!(version(&mut connection, &schema).await, 3);
    let regions = format!("SELECT count(*) FROM {}.relaybus_events WHERE region = 'somewhere'", schema.name);
    assert_eq!(sqlx::query(AssertSqlSafe(regions)).fetch_one(&mut connection).await.unwrap().get::<i64, _>(0), 1);
    // A process of the version before that runs still goes on; one that starts is refused.
    let mut worker = Worker::new(&old, &["h"], at(1)).await;
    assert_eq!(ids(&worker.claim(10, at(1)).await), ["before"]);
    worker.close(at(1)).await;
    for refused in [old.setup().await, old.verify().await] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("of version 3") && error.contains("relaybus that knows them"), "{error}");
    }
    let mut worker = Worker::new(&later[1], &["h"], at(2)).await;
    assert_eq!(ids(&worker.claim(10, at(2)).await), ["before"]);
    worker.close(at(2)).await;
    for store in later {
        store.close().await.unwrap();
    }
    old.close().await.unwrap();
}

/// The text for other tools makes new tables and upgrades older ones, and may run again.
#[tokio::test]
async fn the_text_of_the_tables_upgrades_too() {
    let schema = Schema::new();
    let mut connection = connect().await;
    let first = schema.builder().completion_history(true).schema_sql().unwrap();
    let later = schema.builder().completion_history(true).upgraded_by(&STEPS);
    for ddl in [&first, &later.schema_sql().unwrap(), &later.schema_sql().unwrap(), &first] {
        run(&mut connection, format!("BEGIN; {ddl} COMMIT")).await;
    }
    assert_eq!(version(&mut connection, &schema).await, 3);
    let store = later.build().unwrap();
    store.verify().await.unwrap();
    works(&store, "e").await;
    store.close().await.unwrap();
}

/// An upgrade that fails in its middle changes nothing.
#[tokio::test]
async fn an_upgrade_is_whole_or_none() {
    const BROKEN: [&str; 2] = [STEPS[0], "ALTER TABLE {events} ADD COLUMN payload text"];
    let schema = Schema::new();
    let old = schema.builder().build().unwrap();
    old.setup().await.unwrap();
    let later = schema.builder().upgraded_by(&BROKEN).build().unwrap();
    later.setup().await.unwrap_err();
    assert_eq!(version(&mut connect().await, &schema).await, 1);
    old.verify().await.unwrap();
    works(&old, "e").await;
    later.close().await.unwrap();
    old.close().await.unwrap();
}

/// Tables that change under a living worker: its statements are prepared anew.
#[tokio::test]
async fn changed_tables_are_no_end() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let mut connection = connect().await;
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    let changes = [
        "ALTER TABLE {}.relaybus_deliveries ADD note text",
        "ALTER TABLE {}.relaybus_events ALTER type TYPE varchar",
        "ALTER TABLE {}.relaybus_sessions ADD note text",
        "ALTER TABLE {}.relaybus_events ALTER type TYPE text",
    ];
    for (round, change) in changes.iter().enumerate() {
        let id = format!("e{round}");
        store.append_alone(&named(&[&id], None, at(0))).await.unwrap();
        worker.turn(&[], 0, 1, at(0)).await.unwrap();
        assert_eq!(store.list_deliveries(&DeliveryQuery::all(), at(0)).await.unwrap().deliveries.len(), 1);
        run(&mut connection, change.replace("{}", &schema.name)).await;
        let mut got = Vec::new();
        // A turn may fail: the next finds the tables as they are.
        for _ in 0..6 {
            if let Ok(turn) = worker.sweep(&[], 10, at(0)).await {
                got.extend(turn.runs.into_iter().flat_map(|run| run.deliveries));
            }
        }
        assert_eq!(ids(&got), [id.as_str()], "after `{change}`");
        assert_eq!(worker.complete(&got[0], at(0)).await, Settled::Applied);
        assert!(store.list_deliveries(&DeliveryQuery::all(), at(0)).await.unwrap().deliveries.is_empty());
    }
    worker.close(at(0)).await;
    store.close().await.unwrap();
}

/// Emptied tables know none of the handlers that a process remembers: its session ends, and the next one registers them.
#[tokio::test]
async fn emptied_tables_end_sessions() {
    let schema = Schema::new();
    let (store, other) = (schema.builder().build().unwrap(), schema.builder().build().unwrap());
    store.setup().await.unwrap();
    let mut connection = connect().await;
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    store.append_alone(&named(&["before"], None, at(0))).await.unwrap();
    assert_eq!(worker.claim(10, at(0)).await.len(), 1);
    let tables = ["handlers", "events", "deliveries", "event_completions"]
        .map(|name| format!("{}.relaybus_{name}", schema.name));
    run(&mut connection, format!("TRUNCATE {}", tables.join(", "))).await;
    let first = AppendBatch::new(vec![event("first", None, &["another"], at(0))], at(0));
    other.append_alone(&first).await.unwrap();
    let lost = worker.sweep(&[], 10, at(1)).await.unwrap_err();
    assert!(matches!(lost, relaybus::Error::SessionLost), "{lost}");
    let mut worker = Worker::new(&store, &["h"], at(1)).await;
    store.append_alone(&named(&["after"], None, at(1))).await.unwrap();
    assert_eq!(ids(&worker.claim(10, at(1)).await), ["after"]);
    let mut another = Worker::new(&other, &["another"], at(1)).await;
    assert_eq!(ids(&another.claim(10, at(1)).await), ["first"]);
    worker.close(at(1)).await;
    another.close(at(1)).await;
    store.close().await.unwrap();
    other.close().await.unwrap();
}

/// Whatever a role or a database sets for its connections, the store's statements mean the same.
#[tokio::test]
async fn settings_of_others_do_no_harm() {
    for setting in [
        ("standard_conforming_strings", "off"),
        ("bytea_output", "escape"),
        ("datestyle", "German"),
        ("timezone", "Asia/Kathmandu"),
        ("intervalstyle", "iso_8601"),
        ("array_nulls", "off"),
        ("transform_null_equals", "on"),
        ("enable_indexscan", "off"),
        ("enable_nestloop", "off"),
        ("extra_float_digits", "0"),
    ] {
        let schema = Schema::new();
        let store = PostgresStore::with_options(options().options([setting])).schema(&schema.name).build().unwrap();
        store.setup().await.unwrap();
        let mut dead = Worker::new(&store, &["h"], at(0)).await;
        store.append_alone(&named(&["keyed"], Some("k"), at(0))).await.unwrap();
        store.append_alone(&named(&["other"], None, at(0))).await.unwrap();
        assert_eq!(dead.claim(10, at(0)).await.len(), 2, "{setting:?}");
        let mut heir = Worker::new(&store, &["h"], after_the_lease()).await;
        let got = heir.claim(10, after_the_lease()).await;
        assert_eq!(got.len(), 2, "{setting:?}");
        for claimed in &got {
            assert_eq!(heir.complete(claimed, after_the_lease()).await, Settled::Applied, "{setting:?}");
        }
        heir.close(after_the_lease()).await;
        store.close().await.unwrap();
    }
}
