//! The tables in PostgreSQL, beside those of the store, and the lock of an import there.
//!
//! The statements that write and read are those of `tables`: both databases understand them.

use std::time::Duration;

use relaybus::{AnyTransaction, BoxError};
use relaybus_stores::postgres::PgTransaction;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Row};

use crate::tables::{
    ADD_WEBHOOK, COUNT, LOG, LogRow, READ_ACTIVITY, READ_LOG, READ_WEBHOOKS, Result, Rows, WebhookRow,
};

/// Whether a URL names a PostgreSQL server.
pub fn is_named_by(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS webhooks (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id TEXT NOT NULL UNIQUE,
    line BIGINT NOT NULL, repository TEXT NOT NULL, type TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS activity (repository TEXT NOT NULL, type TEXT NOT NULL, events BIGINT NOT NULL,
    PRIMARY KEY (repository, type));
CREATE TABLE IF NOT EXISTS order_log (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, handler TEXT NOT NULL,
    event_id TEXT NOT NULL, attempt BIGINT NOT NULL, latency BIGINT NOT NULL, note TEXT NOT NULL);";

fn connection(tx: &mut AnyTransaction) -> Result<&mut PgConnection> {
    let tx: Option<&mut PgTransaction> = tx.downcast_mut();
    tx.map(|tx| &mut **tx).ok_or_else(|| "expected a transaction of the PostgreSQL store".into())
}

pub async fn create(tx: &mut AnyTransaction) -> Result {
    sqlx::raw_sql(CREATE).execute(connection(tx)?).await?;
    Ok(())
}

pub async fn add_webhook(tx: &mut AnyTransaction, row: WebhookRow) -> Result {
    let add = sqlx::query(ADD_WEBHOOK).bind(row.event_id).bind(row.line).bind(row.repository).bind(text(row.kind));
    add.execute(connection(tx)?).await?;
    Ok(())
}

pub async fn count(tx: &mut AnyTransaction, repository: &str, kind: &str) -> Result {
    sqlx::query(COUNT).bind(repository).bind(text(kind.to_owned())).execute(connection(tx)?).await?;
    Ok(())
}

pub async fn log(tx: &mut AnyTransaction, row: LogRow) -> Result {
    let log = sqlx::query(LOG).bind(row.handler).bind(row.event_id).bind(row.attempt);
    log.bind(row.latency).bind(text(row.note)).execute(connection(tx)?).await?;
    Ok(())
}

pub async fn read(tx: &mut AnyTransaction) -> Result<Rows> {
    let connection = connection(tx)?;
    let mut rows = Rows::default();
    for row in sqlx::query(READ_WEBHOOKS).fetch_all(&mut *connection).await? {
        let [event_id, repository, kind] = [row.try_get(0)?, row.try_get(2)?, row.try_get(3)?];
        rows.webhooks.push(WebhookRow { event_id, line: row.try_get(1)?, repository, kind });
    }
    for row in sqlx::query(READ_ACTIVITY).fetch_all(&mut *connection).await? {
        rows.activity.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
    }
    for row in sqlx::query(READ_LOG).fetch_all(&mut *connection).await? {
        let [handler, event_id, note] = [row.try_get(0)?, row.try_get(1)?, row.try_get(4)?];
        rows.log.push(LogRow { handler, event_id, attempt: row.try_get(2)?, latency: row.try_get(3)?, note });
    }
    Ok(rows)
}

/// PostgreSQL's texts have no NUL.
fn text(text: String) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The number of the lock: an import of this program.
const LOCK: i64 = 0x7175_6963_6b73_7461;
/// The lock of an import that was killed just now may still be there: the server has not noticed yet.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes the lock of an import: it lasts as long as the connection that is returned. `None` when another has it.
pub async fn lock(url: &str) -> Result<Option<PgConnection>> {
    let options: PgConnectOptions = url.parse()?;
    let failed = |error: sqlx::Error| -> BoxError { format!("the server cannot be reached: {error}").into() };
    let mut connection = options.connect().await.map_err(failed)?;
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let locked =
            sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut connection).await?;
        if locked {
            return Ok(Some(connection));
        }
        if std::time::Instant::now() > until {
            return Ok(None);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
