//! The one connection that the store itself writes through.
//!
//! Invariant: a text of several statements runs to its end, or is rolled back, whatever becomes of the future that asked
//! for it. The caller's own task runs it, so that nothing waits for another task to wake up; when that future is dropped
//! in the middle, a task of the store takes over what it was doing, with the connection and its lock.
//!
//! Interleavings: two callers' texts never mix, because whoever runs one holds the connection's lock, first come first
//! served. An error in the middle of a text leaves SQLite's transaction open or, after some errors, already ended;
//! `ROLLBACK` is sent in any case, and a connection that can no longer be trusted is closed. A call that was dropped
//! before it got the connection leaves no trace.
#![allow(clippy::disallowed_methods, reason = "a task of the store: the rest of a dropped call")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use relaybus::store::Database;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Either, Executor, SqlSafeStr};
use tokio::sync::Mutex;

use super::args::Binds;
use super::error;
use super::gate::Gate;

/// A text to run, with its binds.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) text: Arc<str>,
    pub(super) binds: Binds,
}

/// What one statement of a text answered.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Rows that it inserted, updated or deleted; meaningless for other statements.
    pub(super) changes: u64,
    /// Rows that it returned.
    pub(super) rows: Vec<SqliteRow>,
}

/// The answers of all calls of a job, each with one outcome a statement.
type Answers = Vec<Vec<Outcome>>;

/// The writer of one store.
#[derive(Debug)]
pub(super) struct Writer {
    state: Arc<Mutex<State>>,
    closed: Arc<AtomicBool>,
    database: Database,
}

/// How many calls went to a connection, for the tests of the budgets.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) writes: AtomicU64,
    pub(super) reads: AtomicU64,
}

impl Writer {
    pub(super) fn new(
        options: SqliteConnectOptions,
        gate: Arc<Gate>,
        counters: Arc<Counters>,
        database: Database,
    ) -> Self {
        let state = State { options, gate, counters, connection: None };
        Self { state: Arc::new(Mutex::new(state)), closed: Arc::default(), database }
    }

    /// Runs calls one after another on the writer's connection. The first begins a transaction and the last commits it.
    pub(super) async fn run(&self, calls: Vec<Call>) -> Result<Answers, sqlx::Error> {
        error::refuse_inside(&self.database)?;
        let mut state = Arc::clone(&self.state).lock_owned().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(sqlx::Error::PoolClosed);
        }
        Carried::new(async move { state.transact(calls).await }).await
    }

    /// One call; see [`Self::run`].
    pub(super) async fn run_one(&self, text: &Arc<str>, binds: Binds) -> Result<Vec<Outcome>, sqlx::Error> {
        let answers = self.run(vec![Call { text: Arc::clone(text), binds }]).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Lets what was begun end, then closes the connection.
    pub(super) async fn close(&self) {
        let mut state = self.state.lock().await;
        self.force_close();
        if let Some(connection) = state.connection.take() {
            // The file stays as it is whatever closing answers.
            let _ = connection.close().await;
        }
    }

    /// Refuses what comes from now on.
    pub(super) fn force_close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// A future that goes on in a task of its own when it is dropped before its end.
struct Carried<T: Send + 'static>(Option<BoxFuture<'static, T>>);

impl<T: Send + 'static> Carried<T> {
    fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<T: Send + 'static> Future for Carried<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let output = ready!(future.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Carried<T> {
    fn drop(&mut self) {
        // Outside a runtime nothing can go on: the connection is closed in the middle, which rolls back.
        if let (Some(future), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            drop(runtime.spawn(async move { drop(future.await) }));
        }
    }
}

#[derive(Debug)]
struct State {
    options: SqliteConnectOptions,
    gate: Arc<Gate>,
    counters: Arc<Counters>,
    connection: Option<SqliteConnection>,
}

impl State {
    async fn transact(&mut self, calls: Vec<Call>) -> Result<Answers, sqlx::Error> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        let pass = self.gate.enter().await;
        let mut answers = Vec::with_capacity(calls.len());
        for Call { text, binds } in calls {
            self.counters.writes.fetch_add(1, Ordering::Relaxed);
            match run_text(&mut connection, text, binds).await {
                Ok(outcomes) => answers.push(outcomes),
                Err(failure) => {
                    // Harmless when SQLite has rolled back by itself: then there is no transaction to end.
                    let rolled_back = connection.execute("ROLLBACK").await;
                    let gone = rolled_back.is_err_and(|error| error::ends_transaction(&error));
                    if !gone && !error::ends_transaction(&failure) {
                        self.connection = Some(connection);
                    }
                    return Err(failure);
                }
            }
        }
        drop(pass);
        self.connection = Some(connection);
        Ok(answers)
    }
}

/// How often a reader of answers looks again before it waits to be woken.
///
/// A connection's thread sends each row and each statement's end by itself, about one a microsecond. Woken for each, the
/// two threads would spend most of their time waking one another.
const LOOKS: u32 = 24;

/// Runs a text and collects what each of its statements answered.
pub(super) async fn run_text(
    connection: &mut SqliteConnection,
    text: Arc<str>,
    binds: Binds,
) -> Result<Vec<Outcome>, sqlx::Error> {
    let query = sqlx::query_with(AssertSqlSafe(text).into_sql_str(), binds.0);
    let mut stream = connection.fetch_many(query);
    let mut outcomes = Vec::new();
    let mut rows = Vec::new();
    let mut looks = 0;
    loop {
        let step = match stream.try_next().now_or_never() {
            Some(step) => step?,
            None if looks < LOOKS => {
                looks += 1;
                tokio::task::yield_now().await;
                continue;
            }
            None => stream.try_next().await?,
        };
        looks = 0;
        match step {
            Some(Either::Right(row)) => rows.push(row),
            Some(Either::Left(result)) => {
                outcomes.push(Outcome { changes: result.rows_affected(), rows: std::mem::take(&mut rows) });
            }
            None => return Ok(outcomes),
        }
    }
}
