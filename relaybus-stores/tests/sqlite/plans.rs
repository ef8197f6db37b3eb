//! The plans of every statement: what a claim or a settlement costs must not grow with the backlog.

use relaybus::EventStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Row};

use crate::kit::Fixture;

/// Texts that walk over whole tables, each with the reason. None is on the way of an event.
const WALKS: [(&str, &str); 15] = [
    ("orphans", "a takeover reads what the dead session held, outside the lock"),
    ("rows_of_session", "as `orphans`, at shutdown and after a lost answer"),
    ("locate_moved", "a lease that missed and whose delivery was rescheduled by another"),
    ("purge_busy", "a purge reads what is unfinished, outside the lock"),
    ("purge_candidates", "walks the events from the last purge's end, a limited number"),
    ("statistics", "counts for an operator"),
    ("backlog", "counts for an operator"),
    ("unfinished_unkeyed", "requeueing a delivery that is not dead"),
    ("expired_session", "the few sessions"),
    ("list", "an operator's page in event order over what is ordered by handler; also the lists below"),
    ("list_pending", "as `list`; the lists of dead and completed deliveries walk nowhere"),
    ("list_processing", "as `list`"),
    ("list_of_handler", "as `list`, of one handler's"),
    ("list_pending_of_handler", "as `list_of_handler`"),
    ("list_processing_of_handler", "as `list_of_handler`"),
];

async fn plan(connection: &mut SqliteConnection, statement: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"))).fetch_all(connection).await;
    let rows = rows.unwrap_or_else(|error| panic!("{error}: {statement}"));
    rows.iter().map(|row| row.get::<String, _>(3)).collect()
}

/// The statements of a text that have a plan.
fn statements(text: &str) -> Vec<String> {
    let parts = text.split(';').map(|part| part.trim().to_owned());
    parts
        .filter(|part| {
            !matches!(part.as_str(), "" | "BEGIN IMMEDIATE" | "COMMIT") && !part.ends_with("relaybus_transaction")
        })
        .collect()
}

async fn connect(fixture: &Fixture) -> SqliteConnection {
    SqliteConnectOptions::new().filename(fixture.store.path()).connect().await.unwrap()
}

#[tokio::test]
async fn no_statement_walks_over_a_table_unless_it_says_so() {
    let fixture = Fixture::new().await;
    let mut connection = connect(&fixture).await;
    let (mut checked, mut walked) = (0, Vec::new());
    for (name, text) in fixture.store.texts() {
        for statement in statements(&text) {
            for step in plan(&mut connection, &statement).await {
                checked += 1;
                let step = step.to_lowercase();
                let big = ["events", "ready", "waiting", "dead", "completed_deliveries"];
                let scans = big.iter().any(|table| {
                    step.contains(&format!("scan relaybus_{table}"))
                        || ["e", "d", "r", "w", "x"].iter().any(|alias| step == format!("scan {alias}"))
                        || step.starts_with("scan e ")
                });
                let whole = step.contains("search") && step.ends_with("(handler=?)") && !step.contains("dead");
                if scans || whole || step.contains("automatic") {
                    walked.push(name.clone());
                    assert!(
                        WALKS.iter().any(|(known, _)| *known == name),
                        "`{name}` walks over a table: `{step}` in\n{statement}"
                    );
                }
            }
        }
    }
    assert!(checked > 80, "only {checked} steps were read");
    for (name, _) in WALKS.iter().filter(|(name, _)| *name != "expired_session" && *name != "purge_candidates") {
        assert!(walked.iter().any(|walk| walk == name), "`{name}` is excused and needs no excuse");
    }
    fixture.store.close().await.unwrap();
}

#[tokio::test]
async fn claims_do_not_sort_what_is_due() {
    let fixture = Fixture::new().await;
    let mut connection = connect(&fixture).await;
    let (mut claims, mut ranges) = (0, 0);
    for (name, text) in fixture.store.texts().into_iter().filter(|(name, _)| name.starts_with("claim")) {
        claims += 1;
        for statement in statements(&text) {
            let steps = plan(&mut connection, &statement).await.join("\n");
            if steps.contains("due_at<?") && name != "claim_limited" {
                assert!(steps.contains("MERGE (UNION ALL)"), "`{name}`:\n{steps}");
                assert!(!steps.contains("TEMP B-TREE"), "`{name}` sorts:\n{steps}");
            }
            if steps.contains("due_at<?") {
                ranges += 1;
                assert!(steps.contains("USING PRIMARY KEY (handler=? AND due_at<?)"), "`{name}`:\n{steps}");
            }
        }
    }
    assert_eq!((claims, ranges), (3, 6), "what is handed out and what is marked");
    fixture.store.close().await.unwrap();
}

/// SQLite prepares a statement anew at each execution when a bind is a whole `LIMIT`.
#[tokio::test]
async fn no_statement_is_prepared_anew_for_its_limit() {
    let fixture = Fixture::new().await;
    let mut limits = 0;
    for (name, text) in fixture.store.texts() {
        for limit in text.split("LIMIT $").skip(1) {
            limits += 1;
            let rest = limit.trim_start_matches(|digit: char| digit.is_ascii_digit());
            assert!(rest.starts_with(" + 0"), "`{name}` limits by a bare bind:\n{text}");
        }
    }
    assert!(limits > 5, "only {limits} limits were read");
    fixture.store.close().await.unwrap();
}
