//! The same on a PostgreSQL server: that of `RELAYBUS_TEST_POSTGRES_URL`, in databases of the tests' own.

use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::*;

/// An empty database, dropped at the end.
struct Database {
    name: String,
    url: String,
}

impl Database {
    fn new(test: &str) -> Self {
        let name = format!("quickstart_{test}_{}", std::process::id());
        let server = server();
        let (address, _) = server.rsplit_once('/').unwrap();
        let url = format!("{address}/{name}");
        run(&server, format!("CREATE DATABASE {name}"));
        Self { name, url }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        run(&server(), format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

fn server() -> String {
    std::env::var("RELAYBUS_TEST_POSTGRES_URL").unwrap()
}

fn run(url: &str, statement: String) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        let done = sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        done.rows_affected()
    })
}

#[test]
fn the_default_run_and_another_one_after_it() {
    let (folder, database) = (Folder::new("pg-default"), Database::new("default"));
    let first = folder.good(&["--store", &database.url]);
    assert_figures(&first, 1);
    assert_eq!(first["imported"], EVENTS);
    let second = folder.good(&["--store", &database.url, "--times", "2"]);
    assert_figures(&second, 2);
    assert_eq!(second["imported"], EVENTS);
    assert!(std::fs::read_dir(&folder.0).unwrap().next().is_none(), "nothing is left in the folder");

    // The check reads these tables, and not others.
    assert!(
        run(&database.url, "UPDATE order_log SET n = DEFAULT WHERE handler LIKE 'activity%' AND n <= 60".to_owned())
            > 0
    );
    let (succeeded, report) = folder.report(&["--store", &database.url]);
    assert!(!succeeded && report["problems"].to_string().contains("too late for its order"), "{report}");
}

#[test]
fn text_that_postgresql_cannot_keep_is_kept_another_way() {
    let (folder, database) = (Folder::new("pg-text"), Database::new("text"));
    let line =
        r#"{"type": "any", "payload": {"repository": {"full_name": "a/b"}, "text": "ä \u0000 \ud800 \ud83d\ude00"}}"#;
    std::fs::write(folder.0.join("own.jsonl"), line).unwrap();
    let report = folder.good(&["--store", &database.url, "--file", "own.jsonl"]);
    assert_eq!(report["deliveries"], json!({ "activity": 1, "archive": 1 }), "{report}");
}

#[test]
fn two_at_once_on_one_database_do_not_disturb_each_other() {
    let (folder, database) = (Folder::new("pg-two"), Database::new("two"));
    let mut first = folder.quickstart(&["--store", &database.url, "--times", "60", "--json"]);
    let mut first = first.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    // The test server asks for no password: any will do.
    let secret = database.url.replacen('@', if database.url.matches(':').count() > 2 { "@" } else { ":a-secret@" }, 1);
    let second = folder.quickstart(&["--store", &secret]).output().unwrap();
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && errors.contains("another quickstart works on"), "{errors}");
    assert!(!errors.contains("a-secret"), "{errors}");
    let last = lines.last().unwrap().unwrap();
    assert!(first.wait().unwrap().success(), "{last}");
    assert_figures(&serde_json::from_str(&last).unwrap(), 60);
}

#[test]
fn workers_on_one_database_three_of_them_killed() {
    let (folder, database) = (Folder::new("pg-workers"), Database::new("workers"));
    three_workers_killed(&folder, &["--store", &database.url]);
}

#[test]
fn workers_that_live_stop_with_their_parent() {
    let (folder, database) = (Folder::new("pg-live"), Database::new("live"));
    let report = folder.good(&["--store", &database.url, "--times", "2", "--workers", "2"]);
    assert_figures(&report, 2);
    assert_eq!((&report["workers"], &report["lost_workers"]), (&json!(2), &json!(0)));
}

#[test]
fn killed_again_and_again_it_goes_on_where_it_was() {
    let (folder, database) = (Folder::new("pg-killed"), Database::new("killed"));
    killed_again_and_again(&folder, &["--store", &database.url]);
}
