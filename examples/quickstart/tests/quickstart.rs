//! The quickstart as people run it, and as they kill it. It checks its own result: what these tests add is that the
//! check is asked for, that it sees faults, and that the figures are those of the file.
#![allow(clippy::disallowed_methods, reason = "the tests are about real processes and real time")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

#[cfg(all(feature = "postgres", unix))]
#[path = "quickstart/postgres.rs"]
mod postgres;

/// Events, pushes, other webhooks and large ones among them, in the default file.
const EVENTS: u64 = 91;
const PUSHES: u64 = 7;
const OTHERS: u64 = 72;
const LARGE: u64 = 7;

/// A folder of the test's own, empty at its start.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn quickstart(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quickstart"));
        command.current_dir(&self.0).args(arguments);
        command
    }

    /// Runs it to its end; the report must be there, whatever it says.
    fn report(&self, arguments: &[&str]) -> (bool, Value) {
        let output = self.quickstart(arguments).arg("--json").output().unwrap();
        (output.status.success(), report_of(&output))
    }

    /// Runs it to its end, which must be a good one.
    fn good(&self, arguments: &[&str]) -> Value {
        let (succeeded, report) = self.report(arguments);
        assert!(succeeded, "{report}");
        report
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn report_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in `{last}`; errors: {errors}"))
}

/// The figures of `times` imports of the default file.
fn assert_figures(report: &Value, times: u64) {
    let deliveries = json!({ "activity": EVENTS * times, "announce": PUSHES * times, "archive": OTHERS * times });
    assert_eq!(report["problems"], json!([]), "{report}");
    assert_eq!(report["events"], EVENTS * times, "{report}");
    assert_eq!(report["deliveries"], deliveries, "{report}");
    assert_eq!(report["dead_letters"], LARGE * times, "{report}");
    // Every second push is tried twice; a killed worker adds attempts.
    assert!(report["retries"].as_u64().unwrap() >= PUSHES * times / 2 - times, "{report}");
}

#[test]
fn the_default_run_and_another_one_after_it() {
    let folder = Folder::new("default");
    let first = folder.good(&[]);
    assert_figures(&first, 1);
    assert_eq!(first["imported"], EVENTS);
    assert!(first["latency_median_ms"].as_f64() <= first["latency_p99_ms"].as_f64(), "{first}");
    assert!(first["deliveries_per_second"].as_f64().unwrap() > 0.0, "{first}");
    assert!(folder.0.join("quickstart.db").is_file());

    // What is there is not imported again.
    let second = folder.good(&[]);
    assert_figures(&second, 1);
    assert_eq!(second["imported"], 0);

    let third = folder.good(&["--times", "3"]);
    assert_figures(&third, 3);
    assert_eq!(third["imported"], 2 * EVENTS);
}

#[test]
fn the_table_and_plain_lines_for_people() {
    let folder = Folder::new("table");
    let output = folder.quickstart(&["--store", "memory:"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for part in
        ["91 of 91 webhooks imported", "events", "activity", "announce", "archive", "p99", "checked: every event"]
    {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn two_at_once_on_one_store_do_not_disturb_each_other() {
    let folder = Folder::new("two-at-once");
    let mut first = folder.quickstart(&["--times", "40", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let second = folder.quickstart(&[]).output().unwrap();
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && errors.contains("another quickstart works on"), "{errors}");
    let last = lines.last().unwrap().unwrap();
    assert!(first.wait().unwrap().success(), "{last}");
    assert_figures(&serde_json::from_str(&last).unwrap(), 40);
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    for format in [&["--json"][..], &[]] {
        let folder = Folder::new("full");
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = folder.quickstart(&["--store", "memory:"]).args(format).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("report cannot be written"), "{format:?}: {errors}");
    }
}

#[test]
fn what_cannot_be_a_store_or_a_file_of_webhooks_is_named() {
    let folder = Folder::new("no-store");
    let cases: [(&[&str], &str); 4] = [
        (&["--store", "sqlite:///dev/null"], "is a pipe, a device"),
        (&["--store", "sqlite://."], "is a folder"),
        (&["--store", "sqlite://no/such.db"], "create its folder first"),
        (&["--file", "."], "cannot be read"),
    ];
    for (arguments, words) in cases {
        let output = folder.quickstart(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(words), "{arguments:?}: {errors}");
    }
}

#[test]
fn the_in_memory_store_does_the_same() {
    let folder = Folder::new("memory");
    assert_figures(&folder.good(&["--store", "memory:", "--times", "3"]), 3);
}

#[test]
fn a_file_of_ones_own() {
    let folder = Folder::new("own-file");
    let lines = [
        r#"{"type": "anything", "payload": {"repository": {"full_name": "a/b"}, "text": "ä \u0000 \ud83d\ude00"}}"#,
        r#"{"payload": 7, "type": ""}"#,
        "",
        r#"{"type": "github.push.v1", "payload": {"repository": {"full_name": ""}}}"#,
        r#"{"type": "github.push.v1", "payload": {"ref": "main", "commits": [{"id": "1"}], "pusher": {"name": "p"}, "repository": {"full_name": "a/b"}}}"#,
    ];
    std::fs::write(folder.0.join("own.jsonl"), lines.join("\n")).unwrap();
    let report = folder.good(&["--file", "own.jsonl", "--times", "2"]);
    assert_eq!(report["events"], 8, "{report}");
    assert_eq!(report["deliveries"], json!({ "activity": 8, "announce": 2, "archive": 6 }), "{report}");

    // Another file goes into the same store, beside the first.
    let report = folder.good(&[]);
    assert_eq!(report["events"], 8 + EVENTS, "{report}");
}

#[test]
fn what_cannot_run_says_why() {
    let folder = Folder::new("refused");
    std::fs::write(folder.0.join("bad.jsonl"), "{\"type\": \"a\", \"payload\": 1}\n{\"type\": 7}\n").unwrap();
    std::fs::write(folder.0.join("empty.jsonl"), "\n").unwrap();
    std::fs::write(folder.0.join("text.db"), "This is a letter and not a database. ".repeat(100)).unwrap();
    for (arguments, expected) in [
        (
            ["--file", "bad.jsonl"],
            "line 2 of `bad.jsonl` is no webhook (invalid type: integer `7`, expected a string at column",
        ),
        (["--file", "empty.jsonl"], "`empty.jsonl` has no webhooks"),
        (["--file", "missing.jsonl"], "`missing.jsonl` cannot be read"),
        (["--store", "mysql://me:secret@localhost"], "`mysql://me@localhost` names no store"),
        (
            ["--store", "postgres://me:secret@127.0.0.1:1/none"],
            if cfg!(feature = "postgres") {
                "cannot be reached"
            } else {
                "`postgres://me@127.0.0.1:1/none` names no store"
            },
        ),
        (["--store", "sqlite://"], "`sqlite://`"),
        (["--store", "sqlite://no/such/folder.db"], "no/such/folder.db"),
        (["--store", "sqlite://text.db"], "text.db"),
        (["--times", "0"], "`--times 0`"),
        (["--workers", "many"], "`--workers many`"),
        (["--what", "ever"], "`--what`"),
        (["--json", "--store"], "`--store` needs a value"),
    ] {
        let output = folder.quickstart(&arguments).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.starts_with("quickstart: ") && errors.contains(expected), "{arguments:?}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
    assert!(!folder.0.join("quickstart.db").exists(), "a file that is refused leaves no store behind");
}

#[test]
fn the_check_sees_what_is_wrong() {
    for (statement, expected) in [
        ("UPDATE activity SET events = events + 1 WHERE type = 'github.push.v1'", "expected 7"),
        // A row that is gone is imported again, and its event is known: the order of the rows is no longer that of the log.
        ("DELETE FROM webhooks WHERE line = 5", "too late for its order"),
        ("UPDATE webhooks SET type = 'x' WHERE line = 5", "line 5 of round 1 is not"),
        ("DELETE FROM order_log WHERE handler = 'archive'", "archive never handled"),
        ("INSERT INTO order_log SELECT 1000 + n, handler, event_id, 1, 1, '' FROM order_log", "twice"),
        ("UPDATE order_log SET n = 2000 - n", "too late for its order"),
        ("DELETE FROM relaybus_dead", "archive never handled"),
    ] {
        let folder = Folder::new("check");
        folder.good(&[]);
        change(&folder.0.join("quickstart.db"), statement);
        let (succeeded, report) = folder.report(&[]);
        assert!(!succeeded, "{statement}: {report}");
        assert!(report["problems"].to_string().contains(expected), "{statement}: {report}");
    }
}

fn change(database: &Path, statement: &'static str) {
    use sqlx::Connection;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database);
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        let changed = sqlx::query(statement).execute(&mut connection).await.unwrap();
        assert!(changed.rows_affected() > 0, "{statement} changed nothing");
        connection.close().await.unwrap();
    });
}

#[cfg(unix)]
#[test]
fn workers_on_one_store_three_of_them_killed() {
    three_workers_killed(&Folder::new("workers"), &[]);
}

#[cfg(unix)]
fn three_workers_killed(folder: &Folder, store: &[&str]) {
    let mut command = folder.quickstart(&["--times", "12", "--workers", "3", "--json"]);
    let mut parent = command.args(store).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let mut pids: Vec<String> = (0..3).map(|_| worker_of(&lines.next().unwrap().unwrap())).collect();
    while !pids.is_empty() {
        // sleep: the kill must come at a moment that nothing announces.
        sleep(Duration::from_millis(100 + random() % 200));
        let pid = pids.swap_remove(usize::try_from(random()).unwrap() % pids.len());
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success(), "worker {pid} ended by itself");
    }
    let last = lines.map(Result::unwrap).last().unwrap();
    let report: Value = serde_json::from_str(&last).unwrap();
    assert!(parent.wait().unwrap().success(), "{report}");
    assert_figures(&report, 12);
    assert_eq!((&report["workers"], &report["lost_workers"]), (&json!(3), &json!(3)));
}

fn worker_of(line: &str) -> String {
    let pid = line.strip_prefix("worker ").and_then(|rest| rest.strip_suffix(" started"));
    pid.unwrap_or_else(|| panic!("`{line}` names no worker")).to_owned()
}

#[test]
fn workers_that_live_stop_with_their_parent() {
    let folder = Folder::new("workers-live");
    let report = folder.good(&["--times", "2", "--workers", "2"]);
    assert_figures(&report, 2);
    assert_eq!((&report["workers"], &report["lost_workers"]), (&json!(2), &json!(0)));
}

#[test]
fn killed_again_and_again_it_goes_on_where_it_was() {
    killed_again_and_again(&Folder::new("killed"), &[]);
}

fn killed_again_and_again(folder: &Folder, store: &[&str]) {
    for workers in ["0", "2", "0", "1"] {
        let mut command = folder.quickstart(&["--times", "8", "--workers", workers]);
        let mut run: Child = command.args(store).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // sleep: the kill must come at a moment that nothing announces.
        sleep(Duration::from_millis(150 + random() % 300));
        run.kill().unwrap();
        run.wait().unwrap();
    }
    let report = folder.good(&[&["--times", "8"], store].concat());
    assert_figures(&report, 8);
    assert!(report["imported"].as_u64().unwrap() < 8 * EVENTS, "{report}");
}

/// A number that differs from run to run.
fn random() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos().into()
}
