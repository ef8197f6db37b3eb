//! The line: a session's own connection.
//!
//! Invariant: a statement that did not answer is never waited for again. Its connection is closed, so a late answer cannot
//! meet a newer statement, and what was open on it is rolled back; that it may still run on the server is what the numbers of the statements are for.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions};

use super::args::{Binds, learn_types};
use super::background::{PATIENCE, within};
use super::error::{is_disconnect, is_outdated};
use super::options::reached;
use super::pooler::Way;
use super::work::BEGIN;

const SETTINGS: [(&str, &str); 5] = [
    ("synchronous_commit", "on"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
];

/// A connection that is opened at first use and after each loss.
#[derive(Debug)]
pub(super) struct Line {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
    statement_timeout: Duration,
    way: Arc<Way>,
    /// A transaction was begun by [`Line::run`].
    in_transaction: bool,
    /// Statements that were sent.
    pub(super) sent: u64,
}

impl Line {
    pub(super) fn new(options: PgConnectOptions, statement_timeout: Duration, way: Arc<Way>) -> Self {
        Self { options, connection: None, statement_timeout, way, in_transaction: false, sent: 0 }
    }

    /// How long an answer may take.
    fn limit(&self) -> Duration {
        self.statement_timeout + PATIENCE
    }

    /// Its plans must not depend on what the server knows of the tables: generic ones over indexes, or a turn would sort a
    /// whole backlog.
    fn options(&self) -> PgConnectOptions {
        let timeout = self.statement_timeout.as_millis().to_string();
        let mut settings = vec![("default_transaction_isolation", "read committed"), ("statement_timeout", &*timeout)];
        settings.extend(SETTINGS);
        reached(self.options.clone(), self.way.reach(), &settings)
    }

    /// The same for one transaction.
    fn begin(&self) -> String {
        let mut text = format!("{BEGIN}; SET LOCAL statement_timeout = {}", self.statement_timeout.as_millis());
        for (name, value) in SETTINGS {
            text.push_str(&format!("; SET LOCAL {name} = {value}"));
        }
        text
    }

    /// The rows of a statement.
    pub(super) async fn rows(&mut self, text: &Arc<str>, binds: Binds) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut connection = self.take().await?;
        self.sent += 1;
        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(text)), binds.0).persistent(self.way.reach().prepared);
        // Through a pooler it is sent in a transaction, with its settings.
        let begin = (!self.in_transaction && !self.way.reach().settings).then(|| self.begin());
        let all = async {
            let Some(begin) = begin else { return query.fetch_all(&mut connection).await };
            sqlx::raw_sql(AssertSqlSafe(begin)).execute(&mut connection).await?;
            let answer = query.fetch_all(&mut connection).await;
            let end = if answer.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = sqlx::raw_sql(end).execute(&mut connection).await;
            answer.and_then(|rows| ended.map(|_| rows))
        };
        // Dropped here, the connection goes with it.
        let answer = within(self.limit(), all).await.unwrap_or_else(timed_out);
        self.give_back(connection, answer)
    }

    /// Runs a text without binds: the ends of transactions.
    pub(super) async fn run(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        self.in_transaction = text.starts_with("BEGIN");
        let mut connection = self.take().await?;
        self.sent += 1;
        let answer = within(self.limit(), sqlx::raw_sql(text).execute(&mut connection)).await.unwrap_or_else(timed_out);
        self.give_back(connection, answer).map(|_| ())
    }

    /// Closes it: what was open on it ends with it.
    pub(super) fn hang_up(&mut self) {
        self.in_transaction = false;
        self.connection = None;
    }

    async fn take(&mut self) -> Result<PgConnection, sqlx::Error> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => within(PATIENCE, self.open()).await.unwrap_or_else(timed_out),
        }
    }

    async fn open(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.options().connect().await?;
        self.way.note_opened();
        if !self.way.reach().prepared {
            learn_types(&mut connection).await?;
        }
        Ok(connection)
    }

    fn give_back<T>(&mut self, connection: PgConnection, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        // What was prepared on it may be found there no more.
        let is_good = |error| !is_disconnect(error) && !is_outdated(error) && !self.way.note(error);
        if answer.as_ref().err().is_none_or(is_good) {
            self.connection = Some(connection);
        } else {
            self.in_transaction = false;
        }
        answer
    }
}

pub(super) fn timed_out<T>() -> Result<T, sqlx::Error> {
    Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the server did not answer in time")))
}
