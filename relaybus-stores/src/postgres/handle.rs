//! Handles: the connections and transactions that the store writes through, sqlx's and those of other clients.
//!
//! A client that is not sqlx implements [`PgClient`] for a type that borrows its transaction, and lends it as a
//! [`PgHandle`]; the store then sends its statements through it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use relaybus::store::{Family, HandleOf};
use relaybus::{BoxError, Error, Result, Timestamp};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Arguments, AssertSqlSafe, Postgres, Row};

use super::args::{Binds, JsonText, Time};
use super::error::store_error;
use super::transaction::Marks;

/// The family of PostgreSQL's handles.
#[derive(Debug)]
pub enum PostgreSql {}

impl Family for PostgreSql {
    type Handle<'c> = PgHandle<'c>;
    const NAME: &'static str = "PostgreSQL";
}

/// What a statement of the store runs through.
pub struct PgHandle<'c>(pub(super) Kind<'c>);

pub(super) enum Kind<'c> {
    /// A connection or transaction of the application.
    Sqlx(&'c mut PgConnection),
    /// A transaction that the store opened.
    Own(&'c mut PgConnection, &'c mut Marks),
    /// Another client's.
    Foreign(&'c mut dyn PgClient),
}

impl<'c> PgHandle<'c> {
    /// A handle of another client than sqlx.
    pub fn client(client: &'c mut dyn PgClient) -> Self {
        Self(Kind::Foreign(client))
    }
}

impl fmt::Debug for PgHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PgHandle")
    }
}

/// Another PostgreSQL client's transaction: runs one statement at a time.
///
/// That a transaction is open on it is its implementor's to see to: without one each statement of the store commits by itself,
/// and an event is stored whatever becomes of what it tells of.
pub trait PgClient: Send {
    /// Runs `statement` with `values` for `$1`, `$2` and so on, and returns its rows: `columns` are their types.
    ///
    /// # Errors
    /// The client's error, with its SQLSTATE when it is the server's.
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        values: &'a [PgValue<'a>],
        columns: &'a [PgColumn],
    ) -> BoxFuture<'a, std::result::Result<PgAnswer, PgClientError>>;
}

/// What a statement answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PgAnswer {
    /// The rows, each with a value for each of its columns.
    pub rows: Vec<Vec<PgValue<'static>>>,
    /// Rows that the statement changed.
    pub affected: u64,
}

/// The error of another client.
#[derive(Debug)]
pub struct PgClientError {
    /// The five letters of the server's error, when it is one.
    pub sqlstate: Option<String>,
    /// The client's error.
    pub source: BoxError,
}

/// The type of a column of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PgColumn {
    /// `bigint`, a [`PgValue::Int8`].
    Int8,
    /// `bytea`, a [`PgValue::Bytes`].
    Bytes,
    /// `text`, a [`PgValue::Text`].
    Text,
    /// `smallint[]`, a [`PgValue::Int2s`].
    Int2s,
}

/// A value of a statement. The variant is its type in PostgreSQL.
#[derive(Clone, Debug, PartialEq)]
pub enum PgValue<'a> {
    /// `timestamptz`
    Time(Option<Timestamp>),
    /// `bytea`
    Bytes(Option<Cow<'a, [u8]>>),
    /// `text`
    Text(Option<Cow<'a, str>>),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(Option<i64>),
    /// `smallint[]`
    Int2s(Vec<i16>),
    /// `integer[]`
    Int4s(Vec<i32>),
    /// `bigint[]`
    Int8s(Vec<Option<i64>>),
    /// `timestamptz[]`
    Times(Vec<Option<Timestamp>>),
    /// `bytea[]`
    BytesList(Vec<Option<Cow<'a, [u8]>>>),
    /// `text[]`
    Texts(Vec<Option<Cow<'a, str>>>),
    /// `json`, as its text. It may be sent as `text` too: the statements cast it.
    Json(Option<Cow<'a, str>>),
    /// `json[]`, as its texts; or `text[]`.
    Jsons(Vec<Option<Cow<'a, str>>>),
}

impl<'a> PgValue<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }

    /// About how many bytes it takes.
    fn size(&self) -> usize {
        const HEAD: usize = 24;
        HEAD + match self {
            Self::Time(_) | Self::Int2(_) | Self::Int4(_) | Self::Int8(_) => 8,
            Self::Bytes(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len()),
            Self::Text(text) | Self::Json(text) => text.as_ref().map_or(0, |text| text.len()),
            Self::Int2s(all) => 6 * all.len(),
            Self::Int4s(all) => 8 * all.len(),
            Self::Int8s(all) => 12 * all.len(),
            Self::Times(all) => 12 * all.len(),
            Self::BytesList(all) => all.iter().map(|one| 4 + one.as_ref().map_or(0, |one| one.len())).sum(),
            Self::Texts(all) | Self::Jsons(all) => {
                all.iter().map(|one| 4 + one.as_ref().map_or(0, |one| one.len())).sum()
            }
        }
    }

    fn bind(&self, binds: &mut Binds) {
        let times = |at: &Option<Timestamp>| at.map(Time::from);
        match self {
            Self::Time(at) => binds.push(times(at)),
            Self::Bytes(bytes) => binds.push(bytes.as_deref()),
            Self::Text(text) => binds.push(text.as_deref()),
            Self::Int2(number) => binds.push(*number),
            Self::Int4(number) => binds.push(*number),
            Self::Int8(number) => binds.push(*number),
            Self::Int2s(numbers) => binds.push(numbers.as_slice()),
            Self::Int4s(numbers) => binds.push(numbers.as_slice()),
            Self::Int8s(numbers) => binds.push(numbers.as_slice()),
            Self::Times(all) => binds.push(all.iter().map(times).collect::<Vec<_>>()),
            Self::BytesList(all) => binds.push(all.iter().map(Option::as_deref).collect::<Vec<Option<&[u8]>>>()),
            Self::Texts(all) => binds.push(all.iter().map(Option::as_deref).collect::<Vec<Option<&str>>>()),
            Self::Json(text) => binds.push(text.as_deref().map(JsonText)),
            Self::Jsons(all) => {
                binds.push(all.iter().map(|text| text.as_deref().map(JsonText)).collect::<Vec<Option<JsonText<'_>>>>());
            }
        }
    }
}

impl PgHandle<'_> {
    /// Runs a statement of the store; `prepared` when the connection keeps it.
    pub(super) async fn run(
        &mut self,
        text: &Arc<str>,
        values: &[PgValue<'_>],
        columns: &[PgColumn],
        prepared: bool,
    ) -> std::result::Result<PgAnswer, RunError> {
        let connection = match &mut self.0 {
            Kind::Sqlx(connection) | Kind::Own(connection, _) => &mut **connection,
            Kind::Foreign(client) => {
                return client.query(text, values, columns).await.map_err(RunError::Foreign);
            }
        };
        let mut binds = Binds::default();
        // At once, not in steps that each copy what is there.
        binds.0.reserve(values.len(), values.iter().map(PgValue::size).sum());
        for value in values {
            value.bind(&mut binds);
        }
        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(text)), binds.0).persistent(prepared);
        if columns.is_empty() {
            let done = query.execute(connection).await.map_err(RunError::Sqlx)?;
            return Ok(PgAnswer { rows: Vec::new(), affected: done.rows_affected() });
        }
        let rows = query.fetch_all(connection).await.map_err(RunError::Sqlx)?;
        let read = rows.iter().map(|row| read_row(row, columns)).collect::<std::result::Result<_, _>>();
        Ok(PgAnswer { affected: 0, rows: read.map_err(RunError::Sqlx)? })
    }

    pub(super) fn marks(&mut self) -> Option<&mut Marks> {
        match &mut self.0 {
            Kind::Own(_, marks) => Some(marks),
            Kind::Sqlx(_) | Kind::Foreign(_) => None,
        }
    }
}

fn read_row(row: &PgRow, columns: &[PgColumn]) -> std::result::Result<Vec<PgValue<'static>>, sqlx::Error> {
    let read = columns.iter().enumerate().map(|(place, column)| {
        Ok(match column {
            PgColumn::Int8 => PgValue::Int8(row.try_get_unchecked(place)?),
            PgColumn::Bytes => PgValue::Bytes(row.try_get_unchecked::<Option<Vec<u8>>, _>(place)?.map(Cow::Owned)),
            PgColumn::Text => PgValue::Text(row.try_get_unchecked::<Option<String>, _>(place)?.map(Cow::Owned)),
            PgColumn::Int2s => PgValue::Int2s(row.try_get_unchecked(place)?),
        })
    });
    read.collect()
}

/// What a statement through a handle met.
#[derive(Debug)]
pub(super) enum RunError {
    Sqlx(sqlx::Error),
    Foreign(PgClientError),
}

impl RunError {
    pub(super) fn is_duplicate(&self) -> bool {
        match self {
            Self::Sqlx(error) => super::error::is_duplicate(error),
            Self::Foreign(error) => error.sqlstate.as_deref() == Some("23505"),
        }
    }

    pub(super) fn is_lock_timeout(&self) -> bool {
        matches!(self, Self::Sqlx(error) if super::error::sqlstate(error).is_some_and(|code| code == "55P03"))
    }

    pub(super) fn is_outdated(&self) -> bool {
        matches!(self, Self::Sqlx(error) if super::error::is_outdated(error))
    }

    pub(super) fn is_disconnect(&self) -> bool {
        match self {
            Self::Sqlx(error) => super::error::is_disconnect(error),
            Self::Foreign(error) => error.sqlstate.is_none(),
        }
    }

    pub(super) fn into_error(self, what: &str) -> Error {
        match self {
            Self::Sqlx(error) => store_error(what, error),
            Self::Foreign(PgClientError { sqlstate: Some(code), source }) if code == "40001" => {
                Error::SerializationFailure { source: Some(source) }
            }
            Self::Foreign(PgClientError { source, .. }) => {
                Error::store(format!("could not {what} through the application's client, see the cause"), Some(source))
            }
        }
    }
}

impl HandleOf<PostgreSql> for PgConnection {
    fn handle(&mut self) -> PgHandle<'_> {
        PgHandle(Kind::Sqlx(self))
    }
}

impl HandleOf<PostgreSql> for sqlx::Transaction<'_, Postgres> {
    fn handle(&mut self) -> PgHandle<'_> {
        PgHandle(Kind::Sqlx(self))
    }
}

impl HandleOf<PostgreSql> for PoolConnection<Postgres> {
    fn handle(&mut self) -> PgHandle<'_> {
        PgHandle(Kind::Sqlx(self))
    }
}

/// The value of a column that is never null.
pub(super) fn number(value: Option<&PgValue<'_>>) -> Result<i64> {
    match value {
        Some(PgValue::Int8(Some(number))) => Ok(*number),
        _ => Err(Error::store(
            "a statement of the store answered without its number: check the client's `PgClient`",
            None,
        )),
    }
}
