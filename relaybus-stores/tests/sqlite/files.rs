//! What a store is opened on: every file that is not one, and every path that cannot be one, is refused by its name.

use std::path::Path;

use relaybus::EventStore;
use relaybus::store::SessionRequest;
use relaybus_stores::SqliteStore;
use relaybus_stores::sqlite::SqliteStoreBuilder;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use crate::kit::{Fixture, LEASE, at, fresh, handler};

/// The message of opening a store that must be refused.
async fn refused(builder: SqliteStoreBuilder, code: &str) -> String {
    let error = match builder.build().await {
        Ok(store) => store.setup().await.expect_err("the file is refused"),
        Err(error) => error,
    };
    assert_eq!(error.code(), code, "{error}");
    error.to_string()
}

async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

async fn make_foreign(path: &Path, id: i64) {
    let mut connection = raw(path).await;
    let text = format!("PRAGMA application_id = {id}; CREATE TABLE mine (x); INSERT INTO mine VALUES (1);");
    connection.execute(AssertSqlSafe(text)).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn paths_that_cannot_be_a_store_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let configuration = "RELAYBUS_CONFIGURATION";
    let memory = refused(SqliteStore::builder(":memory:"), configuration).await;
    assert!(memory.contains("in-memory store"), "{memory}");
    let directory = refused(SqliteStore::builder(root), configuration).await;
    assert!(directory.contains("is a folder") && directory.contains(&*root.to_string_lossy()), "{directory}");
    let missing = refused(SqliteStore::builder(root.join("no/such/bus.db")), configuration).await;
    assert!(missing.contains("no/such/bus.db") && missing.contains("folder"), "{missing}");
    assert!(SqliteStore::from_url("postgres://x").is_err());
    assert!(SqliteStore::from_url("sqlite://").is_err());
    let prefix = refused(SqliteStore::builder(root.join("bus.db")).table_prefix("My-Bus"), configuration).await;
    assert!(prefix.contains("`My-Bus`"), "{prefix}");
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_without_waiting_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.db");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = folder.path().join("socket.db");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [pipe.as_path(), socket.as_path(), Path::new("/dev/null"), Path::new("/dev/full")] {
        let message = refused(SqliteStore::builder(path), "RELAYBUS_CONFIGURATION").await;
        assert!(message.contains("is a pipe, a device") && message.contains(&*path.to_string_lossy()), "{message}");
    }
}

/// Makes the file with `text` in it and opens the store on it, which must be refused and change nothing.
async fn refused_with(text: &'static str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let mut connection = raw(&path).await;
    connection.execute(text).await.unwrap();
    connection.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let message = refused(SqliteStore::builder(&path), "RELAYBUS_CONFIGURATION").await;
    assert_eq!(std::fs::read(&path).unwrap(), before, "not one byte may change");
    message
}

#[tokio::test]
async fn tables_of_the_application_under_our_names_are_refused_with_what_was_found() {
    let others = [
        "CREATE TABLE relaybus_events (id INTEGER PRIMARY KEY, kind TEXT)",
        "CREATE TABLE RelayBus_Events (id INTEGER PRIMARY KEY, kind TEXT)",
        "CREATE TABLE relaybus_meta (id INTEGER PRIMARY KEY, kind TEXT)",
        "CREATE VIEW relaybus_ready AS SELECT 1 AS id, '' AS kind",
        "CREATE TABLE mine (id, kind TEXT); CREATE INDEX relaybus_dead_at ON mine (kind)",
    ];
    for text in others {
        let message = refused_with(text).await;
        assert!(message.contains("is not of this store") && message.contains("kind"), "{text}: {message}");
        assert!(message.contains("expected") && message.contains("`table_prefix`"), "{text}: {message}");
    }
}

#[tokio::test]
async fn every_table_index_and_trigger_must_be_there_and_ours() {
    let fixture = Fixture::new().await;
    let path = fixture.store.path().to_owned();
    let mut connection = raw(&path).await;
    let list = "SELECT type, name, sql FROM sqlite_schema WHERE name LIKE 'relaybus%'";
    let objects: Vec<(String, String, String)> = sqlx::query_as(list).fetch_all(&mut connection).await.unwrap();
    assert!(objects.len() > 15, "{objects:?}");
    for (kind, name, text) in objects.iter().filter(|(kind, _, _)| kind == "trigger" || kind == "index") {
        connection.execute(AssertSqlSafe(format!("DROP {kind} {name}"))).await.unwrap();
        let error = SqliteStore::open(&path).await.unwrap().verify().await.expect_err(name).to_string();
        assert!(error.contains(&format!("has no {kind} `{name}`")) && error.contains("`setup`"), "{error}");
        connection.execute(AssertSqlSafe(text.clone())).await.unwrap();
    }
    SqliteStore::open(&path).await.unwrap().verify().await.unwrap();
    connection.execute("ALTER TABLE relaybus_events ADD COLUMN mine TEXT").await.unwrap();
    let error = SqliteStore::open(&path).await.expect_err("it has a column more").to_string();
    assert!(error.contains("`relaybus_events` that is not of this store"), "{error}");
    connection.close().await.unwrap();
}

#[tokio::test]
async fn tables_of_another_version_are_named_so() {
    let fixture = Fixture::new().await;
    let mut connection = raw(fixture.store.path()).await;
    connection.execute("UPDATE relaybus_meta SET value = '2' WHERE name = 'schema_version'").await.unwrap();
    connection.execute("ALTER TABLE relaybus_events ADD COLUMN later TEXT").await.unwrap();
    let error = SqliteStore::open(fixture.store.path()).await.expect_err("a later version").to_string();
    assert!(error.contains("have version `2`") && error.contains("upgrade the program"), "{error}");
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_file_with_two_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.db"), folder.path().join("two.db"));
    std::fs::write(&one, "").unwrap();
    std::fs::hard_link(&one, &two).unwrap();
    let message = refused(SqliteStore::builder(&two), "RELAYBUS_CONFIGURATION").await;
    assert!(message.contains("hard links"), "{message}");
}

#[tokio::test]
async fn a_symbolic_link_leads_to_one_store() {
    let fixture = Fixture::new().await;
    let link = fixture.folder.path().join("link.db");
    std::os::unix::fs::symlink(fixture.store.path(), &link).unwrap();
    let other = SqliteStore::open(&link).await.unwrap();
    assert_eq!(other.path(), fixture.store.path());
    other.append_alone(&fresh(1, 3, |_| None, at(0))).await.unwrap();
    assert_eq!(fixture.store.statistics(at(0)).await.unwrap().pending, 3);
}

#[tokio::test]
async fn a_text_file_is_not_a_store_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "shopping list\n".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let message = refused(SqliteStore::builder(&path), "RELAYBUS_ERROR").await;
    assert!(message.contains("is not a SQLite file") && message.contains("notes.txt"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn the_file_of_another_application_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.db");
    make_foreign(&path, 0x1234_5678).await;
    let before = std::fs::read(&path).unwrap();
    let message = refused(SqliteStore::builder(&path), "RELAYBUS_CONFIGURATION").await;
    assert!(message.contains("another application") && message.contains("305419896"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "not one byte may change, the journal mode neither");
}

#[tokio::test]
async fn the_users_own_database_gets_our_tables_and_keeps_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    make_foreign(&path, 0).await;
    let store = SqliteStore::open(&path).await.unwrap();
    store.setup().await.unwrap();
    store.append_alone(&fresh(1, 1, |_| None, at(0))).await.unwrap();
    store.close().await.unwrap();
    let mut connection = raw(&path).await;
    let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut connection).await.unwrap();
    let mine: i64 = sqlx::query_scalar("SELECT x FROM mine").fetch_one(&mut connection).await.unwrap();
    assert_eq!((id, mine), (0, 1));
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_file_of_ours_carries_our_mark_and_two_prefixes_share_it() {
    let fixture = Fixture::new().await;
    let mut reader = fixture.store.reader().await.unwrap();
    let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *reader).await.unwrap();
    assert_eq!(id, 0x5242_7573);
    drop(reader);
    let second = SqliteStore::builder(fixture.store.path()).table_prefix("second_").build().await.unwrap();
    second.setup().await.unwrap();
    second.append_alone(&fresh(1, 2, |_| None, at(0))).await.unwrap();
    assert_eq!(fixture.store.statistics(at(0)).await.unwrap().pending, 0);
    assert_eq!(second.statistics(at(0)).await.unwrap().pending, 2);
}

#[tokio::test]
async fn without_setup_the_error_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let missing = store.verify().await.expect_err("no file").to_string();
    assert!(missing.contains("does not exist") && missing.contains("`setup`"), "{missing}");
    assert!(!path.exists(), "verify creates nothing");
    make_foreign(&path, 0).await;
    let empty = store.verify().await.expect_err("no tables").to_string();
    assert!(empty.contains("call `setup` first"), "{empty}");
    let append = store.append_alone(&fresh(1, 1, |_| None, at(0))).await.expect_err("no tables").to_string();
    assert!(append.contains("call `setup` first"), "{append}");
}

#[tokio::test]
async fn a_truncated_or_damaged_file_is_named_as_damaged() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 500, |_| None, at(0))).await;
    fixture.store.close().await.unwrap();
    let whole = std::fs::read(fixture.store.path()).unwrap();
    let damaged = fixture.folder.path().join("damaged.db");
    let truncated = fixture.folder.path().join("truncated.db");
    let mut bytes = whole.clone();
    for page in bytes.chunks_mut(4096).skip(1) {
        page.fill(0xA5);
    }
    std::fs::write(&damaged, &bytes).unwrap();
    std::fs::write(&truncated, &whole[..whole.len() / 3]).unwrap();
    for path in [damaged, truncated] {
        let answer = async {
            let store = SqliteStore::open(&path).await?;
            store.setup().await?;
            store.append_alone(&fresh(1_000, 100, |_| None, at(0))).await?;
            store.statistics(at(0)).await
        };
        let error = answer.await.expect_err("a damaged file is noticed");
        let message = error.to_string();
        assert!(message.contains("is damaged") && message.contains(&*path.to_string_lossy()), "{message}");
    }
}

#[tokio::test]
async fn a_store_that_was_not_set_up_says_so_before_it_handles_anything() {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::kit::open(&folder.path().join("bus.db")).await;
    let request = SessionRequest::new("worker", vec![handler("h")], LEASE, at(0));
    let error = store.open_session(&request).await.expect_err("there is no file yet");
    assert_eq!(error.code(), "RELAYBUS_CONFIGURATION", "{error}");
    assert!(error.to_string().contains("call `bus.start()` or `store.setup()` first"), "{error}");
}

#[tokio::test]
async fn a_deleted_file_is_noticed_at_the_next_sweep() {
    let fixture = Fixture::new().await;
    let mut worker = crate::kit::Worker::new(&fixture.store, at(0)).await;
    worker.sweep(1, at(0)).await.unwrap();
    std::fs::remove_file(fixture.store.path()).unwrap();
    let error = worker.sweep(1, at(1)).await.expect_err("the file is gone");
    assert!(error.to_string().contains("was deleted or replaced"), "{error}");
}

#[tokio::test]
async fn a_process_that_only_publishes_notices_a_deleted_file_too() {
    use relaybus::store::TransactionOptions;
    let fixture = Fixture::new().await;
    fixture.store.append_alone(&fresh(1, 1, |_| None, at(0))).await.unwrap();
    std::fs::remove_file(fixture.store.path()).unwrap();
    let answers = [
        fixture.store.append_alone(&fresh(2, 1, |_| None, at(0))).await.err(),
        fixture.store.begin(&TransactionOptions::default()).await.err(),
        fixture.store.statistics(at(0)).await.err(),
    ];
    for error in answers {
        let error = error.expect("the file is gone").to_string();
        assert!(error.contains("was deleted or replaced"), "{error}");
    }
}

#[tokio::test]
async fn a_replaced_file_is_noticed_at_the_next_sweep_and_left_alone() {
    let fixture = Fixture::new().await;
    let mut worker = crate::kit::Worker::new(&fixture.store, at(0)).await;
    worker.sweep(1, at(0)).await.unwrap();
    let other = fixture.folder.path().join("other.db");
    make_foreign(&other, 0).await;
    let bytes = std::fs::read(&other).unwrap();
    std::fs::rename(&other, fixture.store.path()).unwrap();
    let error = worker.sweep(1, at(1)).await.expect_err("it is another file");
    assert!(error.to_string().contains("was deleted or replaced"), "{error}");
    assert_eq!(std::fs::read(fixture.store.path()).unwrap(), bytes);
}

#[tokio::test]
async fn durability_is_what_was_asked_for_on_every_connection_that_writes() {
    use relaybus::store::TransactionOptions;
    use relaybus_stores::sqlite::Durability;
    for (durability, level) in [(Durability::Normal, 1_i64), (Durability::Full, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus.db");
        let store = SqliteStore::builder(&path).durability(durability).build().await.unwrap();
        store.setup().await.unwrap();
        store.append_alone(&fresh(1, 1, |_| None, at(0))).await.unwrap();
        let mut transaction = store.begin(&TransactionOptions::default()).await.unwrap();
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *transaction).await.unwrap();
        assert_eq!(synchronous, level);
        drop(transaction);
        assert_eq!(store.writer_pragma("synchronous").await.unwrap(), level);
    }
}

#[tokio::test]
async fn a_log_that_grew_behind_a_long_read_is_cut_at_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 200_000;
    let store = SqliteStore::builder(folder.path().join("bus.db")).log_limit(limit).build().await.unwrap();
    store.setup().await.unwrap();
    let log = || std::fs::metadata(folder.path().join("bus.db-wal")).unwrap().len();
    let mut worker = crate::kit::Worker::new(&store, at(0)).await;
    let mut reader = store.reader().await.unwrap();
    reader.execute("BEGIN; SELECT count(*) FROM relaybus_events").await.unwrap();
    for n in 0..8 {
        store.append_alone(&fresh(1 + n * 100, 100, |_| None, at(0))).await.unwrap();
    }
    assert!(log() > limit, "{}", log());
    worker.sweep(1, at(0)).await.unwrap();
    assert!(log() > limit, "nothing that is being read is taken away");
    reader.execute("COMMIT").await.unwrap();
    worker.sweep(1, at(1)).await.unwrap();
    // What the sweep itself wrote after it.
    assert!(log() < limit, "{}", log());
    assert_eq!(store.statistics(at(1)).await.unwrap().pending, 798);
}

#[tokio::test]
async fn a_file_with_utf_16_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.db");
    let mut connection = raw(&path).await;
    connection.execute("PRAGMA encoding = 'UTF-16'; CREATE TABLE mine (x);").await.unwrap();
    connection.close().await.unwrap();
    let message = refused(SqliteStore::builder(&path), "RELAYBUS_CONFIGURATION").await;
    assert!(message.contains("UTF-16") && message.contains("wide.db"), "{message}");
}

#[tokio::test]
async fn a_reader_reads_and_does_not_write() {
    let fixture = Fixture::new().await;
    let mut reader = fixture.store.reader().await.unwrap();
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM relaybus_events").fetch_one(&mut *reader).await.unwrap();
    assert_eq!(count, 0);
    reader.execute("DELETE FROM relaybus_events").await.expect_err("a reader refuses to write");
}

#[tokio::test]
async fn names_with_signs_are_paths_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["with space.db", "%41.db", "a#b.db", "why?.db", "häß.db", "file:x.db"] {
        let store = SqliteStore::open(folder.path().join(name)).await.unwrap();
        store.setup().await.unwrap();
        store.append_alone(&fresh(1, 1, |_| None, at(0))).await.unwrap();
        assert!(folder.path().join(name).exists(), "{name}");
        store.close().await.unwrap();
    }
}
