//! The store's own statements that belong to no session: look-ups, lists, counts, the parts of a purge.
//!
//! Each is a transaction of its own. Through a pooler it is sent as one, because the client sends a statement in two parts, and
//! between them the pooler may change the session.

use std::sync::Arc;

use relaybus::{Error, Result, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, PgPool, Row};

use super::Inner;
use super::args::{Binds, Time};
use super::background::to_its_end;
use super::error::{is_connection_lost, is_outdated, store_error};
use super::options::{WORK_CONNECTIONS, reached};

/// Opens a transaction on a connection whose settings may be anybody's.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

impl Inner {
    /// The pool for them. Before the first one it looks what is between the store and the server.
    pub(super) async fn work(&self) -> Result<&PgPool> {
        if self.way.is_known() {
            return Ok(&self.work_pool);
        }
        let plain = self.builder.connection()?;
        let settings = [("default_transaction_isolation", "read committed"), ("jit", "off")];
        let found = |reach, version| {
            self.learn_version(version);
            self.work_pool.set_connect_options(reached(plain.clone(), reach, &settings));
            if self.owns_pool {
                self.pool.set_connect_options(reached(plain.clone(), reach, &[]));
            }
        };
        let looked = self.way.look(&plain, found).await;
        looked.map_err(|error| store_error("reach the server", error))?;
        Ok(&self.work_pool)
    }

    /// Whether statements are prepared.
    pub(super) fn prepared(&self) -> bool {
        self.way.reach().prepared
    }

    /// The rows of a statement that commits by itself; `what` it does is for messages.
    pub(super) async fn ask(&self, what: &str, text: &Arc<str>, binds: Binds) -> Result<Vec<PgRow>> {
        self.work().await?;
        self.try_ask(text, binds).await.map_err(|error| self.failed(what, error))
    }

    /// As [`Inner::ask`], with the client's error; none when the runtime ended. The way must be known.
    async fn try_ask(&self, text: &Arc<str>, binds: Binds) -> std::result::Result<Vec<PgRow>, Option<sqlx::Error>> {
        let (pool, reach) = (self.work_pool.clone(), self.way.reach());
        if reach.settings {
            return fetch(&pool, text, binds, reach.prepared).await.map_err(Some);
        }
        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(text)), binds.0).persistent(reach.prepared);
        let ended = to_its_end(async move {
            let mut tx = pool.begin_with(BEGIN).await?;
            let rows = query.fetch_all(&mut *tx).await?;
            tx.commit().await.map(|()| rows)
        });
        ended.await.ok_or(None)?.map_err(Some)
    }

    fn failed(&self, what: &str, error: Option<sqlx::Error>) -> Error {
        let Some(error) = error else { return Error::store(format!("the runtime ended, could not {what}"), None) };
        self.way.note(&error);
        store_error(what, error)
    }

    /// The rows of a statement that only reads. Idle connections that died unseen are passed over.
    pub(super) async fn read(&self, what: &str, text: &Arc<str>) -> Result<Vec<PgRow>> {
        self.work().await?;
        for _ in 0..WORK_CONNECTIONS {
            match self.try_ask(text, Binds::default()).await {
                Err(Some(error)) if is_connection_lost(&error) => {}
                answer => return answer.map_err(|error| self.failed(what, error)),
            }
        }
        self.ask(what, text, Binds::default()).await
    }

    /// The server's clock, not the start of a transaction.
    pub(super) async fn server_time(&self) -> Result<Timestamp> {
        const READING: &str = "read the server's clock";
        let rows = self.ask(READING, &self.sql.clock, Binds::default()).await?;
        let row = rows.first().ok_or_else(|| Error::store("the server told no time", None))?;
        row.try_get_unchecked::<Time, _>(0).map(Timestamp::from).map_err(|error| store_error(READING, error))
    }
}

/// The rows of a statement. One that is outdated on its connection has done nothing: it is prepared anew.
async fn fetch(
    pool: &PgPool,
    text: &Arc<str>,
    binds: Binds,
    prepare: bool,
) -> std::result::Result<Vec<PgRow>, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let query = |binds: Binds| sqlx::query_with(AssertSqlSafe(Arc::clone(text)), binds.0).persistent(prepare);
    let again = Binds(binds.0.clone());
    match query(binds).fetch_all(&mut *connection).await {
        Err(error) if prepare && is_outdated(&error) => {
            connection.clear_cached_statements().await?;
            query(again).fetch_all(&mut *connection).await
        }
        answer => answer,
    }
}
