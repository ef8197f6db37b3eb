//! Separate processes on one file: this test program again, started for one role.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use relaybus::EventStore;
use relaybus::store::{StoreTransaction, TransactionOptions};
use relaybus_stores::SqliteStore;
use tokio::sync::Notify;

use crate::kit::{Fixture, at, fresh, open};

const ROLE: &str = "RELAYBUS_TEST_ROLE";
const FILE: &str = "RELAYBUS_TEST_FILE";
/// A user who may do nothing, on every system that has numbers for users.
const NOBODY: u32 = 65534;

/// Not a test by itself: what a started process does. Its errors go to its output.
#[tokio::test]
async fn a_process() {
    let (Ok(role), Some(file)) = (std::env::var(ROLE), std::env::var_os(FILE)) else { return };
    let (role, number) = role.split_once(' ').unwrap_or((&role, "0"));
    let number: u64 = number.parse().unwrap();
    let answer = async {
        let store = SqliteStore::open(Path::new(&file)).await?;
        if role == "setup" {
            store.setup().await?;
        }
        if role == "transaction" {
            let mut transaction = store.begin(&TransactionOptions::default()).await?;
            store.append(&mut transaction, &fresh(1_000 + number, 1, |_| None, at(0))).await?;
            transaction.commit().await.map_err(|error| match error {
                relaybus::store::CommitError::RolledBack(error) | relaybus::store::CommitError::InDoubt(error) => error,
            })?;
        } else {
            store.append_alone(&fresh(1_000 + number, 5, |_| None, at(0))).await?;
        }
        store.close().await
    };
    match answer.await {
        Ok(()) => println!("role done"),
        Err(error) => println!("role failed: {error}"),
    }
}

fn process(role: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::a_process", "--nocapture"]).env(ROLE, role).env(FILE, file);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn answer_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.split("role ").nth(1));
    line.unwrap_or_else(|| panic!("no answer: {output:?}")).to_owned()
}

#[tokio::test]
async fn eight_processes_may_set_up_a_new_file_at_once() {
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus.db");
        let started: Vec<_> = (0..8).map(|n| process(&format!("setup {}", n * 10), &path).spawn().unwrap()).collect();
        for child in started {
            assert_eq!(answer_of(&child.wait_with_output().unwrap()), "done");
        }
        let store = open(&path).await;
        assert_eq!(store.statistics(at(0)).await.unwrap().pending, 40);
        let mut reader = store.reader().await.unwrap();
        let check: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut *reader).await.unwrap();
        assert_eq!(check, "ok");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_in_another_process_wakes_this_one() {
    let fixture = Fixture::new().await;
    for (number, role) in [(0, "append"), (10, "transaction")] {
        let woken = Arc::new(Notify::new());
        let signal = Arc::clone(&woken);
        let _guard = fixture.store.watch(Arc::new(move || signal.notify_one())).await.unwrap().unwrap();
        let before = fixture.store.statistics(at(0)).await.unwrap().pending;
        let child = process(&format!("{role} {number}"), fixture.store.path()).spawn().unwrap();
        // The child's opening may wake too: what counts is that the commit is there after a wake-up.
        let seen = async {
            loop {
                woken.notified().await;
                if fixture.store.statistics(at(0)).await.unwrap().pending > before {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("the commit wakes");
        assert_eq!(answer_of(&child.wait_with_output().unwrap()), "done");
    }
}

/// A user without rights, where this process may become one: else itself, which has no more.
fn powerless(role: &str, file: &Path, program: &Path) -> String {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(program);
    command.args(["--exact", "processes::a_process", "--nocapture"]).env(ROLE, role).env(FILE, file);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    answer_of(&command.output().unwrap())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

fn allow(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A store that nobody else may use, in a folder of the powerless user's, and the program where that user can start it.
async fn guarded() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    allow(folder.path(), 0o755);
    let program = folder.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    allow(&program, 0o755);
    let inner = folder.path().join("data");
    std::fs::create_dir(&inner).unwrap();
    let path = inner.join("bus.db");
    let store = open(&path).await;
    store.setup().await.unwrap();
    store.append_alone(&fresh(1, 3, |_| None, at(0))).await.unwrap();
    store.close().await.unwrap();
    if is_root() {
        for entry in std::fs::read_dir(&inner).unwrap() {
            std::os::unix::fs::chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::os::unix::fs::chown(&inner, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    (folder, path, program)
}

#[tokio::test]
async fn a_file_or_folder_without_permission_is_named() {
    let (_folder, path, program) = guarded().await;
    let inner = path.parent().unwrap().to_owned();
    assert_eq!(powerless("append 0", &path, &program), "done", "with permission it works");
    let cases: [(u32, u32, &str); 4] = [
        (0o444, 0o755, "may not write"),
        (0o000, 0o755, "could not open"),
        (0o644, 0o000, "cannot be reached"),
        (0o644, 0o555, "folder"),
    ];
    for (file, folder, expected) in cases {
        allow(&path, file);
        allow(&inner, folder);
        let answer = powerless("setup 100", &path, &program);
        allow(&inner, 0o755);
        allow(&path, 0o644);
        assert!(
            answer.starts_with("failed") && answer.contains(expected) && answer.contains("bus.db"),
            "file {file:o}, folder {folder:o}: {answer}"
        );
    }
    let store = open(&path).await;
    assert_eq!(store.statistics(at(0)).await.unwrap().pending, 8, "nothing was lost, nothing half written");
    let answer = powerless("setup 100", &inner.join("new/bus.db"), &program);
    assert!(answer.contains("create its folder first"), "{answer}");
}
