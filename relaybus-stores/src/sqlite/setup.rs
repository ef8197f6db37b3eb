//! Creating the tables, and checking the file before anything is written to it.
//!
//! A file that is there is first opened for reading, and without setting the journal mode: turning a file of another
//! application over to the write-ahead log would already change it. Its `application_id` tells whose it is:
//! ours, nobody's (a database of the application: prefixed tables are added and the id stays 0), or another's, which is
//! refused unless our tables are already in it.
//!
//! No step opens the file by ordinary means: closing such a descriptor would drop the locks that SQLite holds on the file
//! for this process.
//!
//! Under the names of our tables there must be our tables (`tables`).
//!
//! Setup is one transaction of `IF NOT EXISTS` statements: any number of processes may run it at once.

use std::path::Path;

use relaybus::{Error, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Executor, Row};

use super::args::Binds;
use super::error::{refuse_inside, store_error};
use super::options::SqliteStoreBuilder;
use super::sql::{SCHEMA, Sql};
use super::tables::{Missing, Objects, compare, expected, found};
use super::{Inner, SqliteStore, options};

/// Marks a file that this store created: `RBus`.
const APPLICATION_ID: i64 = 0x5242_7573;
/// Version of the tables, kept in `meta`.
const SCHEMA_VERSION: &str = "1";

/// Refuses a file that is not ours to write to.
pub(super) async fn check_file(path: &Path, sql: &Sql, missing: Missing) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > 0 || missing == Missing::Refused => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && missing == Missing::Allowed => return Ok(()),
        Err(error) => return Err(Error::store(unreadable(path), Some(Box::new(error)))),
    }
    let read = SqliteConnectOptions::new().filename(path).read_only(true).disable_statement_logging();
    let failed = |error| store_error(path, "read the kind of the file", error);
    let mut connection = read.connect().await.map_err(failed)?;
    let kind = kind_of(&mut connection, sql).await;
    let _ = connection.close().await;
    let Kind { id, encoding, found, version } = kind.map_err(failed)?;
    if encoding != "UTF-8" {
        return Err(Error::configuration(format!(
            "`{}` keeps its text as {encoding}, which changes payloads that are not valid in it: use a file with UTF-8, SQLite's own choice",
            path.display()
        )));
    }
    if id != 0 && id != APPLICATION_ID && found.is_empty() {
        return Err(Error::configuration(format!(
            "`{}` belongs to another application (its SQLite application id is {id}): name a file of your own",
            path.display()
        )));
    }
    if let Some(version) = version.filter(|version| version != SCHEMA_VERSION) {
        return Err(Error::configuration(format!(
            "the tables in `{}` have version `{version}`, this program knows `{SCHEMA_VERSION}`: upgrade the program",
            path.display()
        )));
    }
    if found.is_empty() && missing == Missing::Allowed {
        return Ok(());
    }
    compare(path, &found, &expected(sql).await.map_err(failed)?, missing)
}

fn unreadable(path: &Path) -> String {
    format!("`{}` cannot be read: give this process permission to read and write it and its folder", path.display())
}

/// What a file is.
struct Kind {
    id: i64,
    encoding: String,
    found: Objects,
    /// Of our tables, where they say so.
    version: Option<String>,
}

async fn kind_of(connection: &mut SqliteConnection, sql: &Sql) -> Result<Kind, sqlx::Error> {
    let id = connection.fetch_one("PRAGMA application_id").await?.try_get(0)?;
    let encoding = connection.fetch_one("PRAGMA encoding").await?.try_get(0)?;
    let found = found(connection, sql).await?;
    // A table of the name that is another's has no such columns; it is refused by them.
    let version = sql.fill("SELECT value FROM {p}meta WHERE name = 'schema_version'");
    let version = sqlx::query_scalar(sqlx::AssertSqlSafe(version)).fetch_optional(connection).await.unwrap_or_default();
    Ok(Kind { id, encoding, found, version })
}

impl Inner {
    pub(super) async fn setup(&self) -> Result<()> {
        refuse_inside(&self.database).map_err(|error| self.error("create the tables", error))?;
        check_file(&self.path, &self.sql, Missing::Allowed).await?;
        let mut connection =
            open_for_setup(&self.builder, &self.path).await.map_err(|error| self.error("create", error))?;
        let created = self.create(&mut connection).await;
        let _ = connection.close().await;
        created.map_err(|error| self.error("create the tables", error))?;
        self.remember_file();
        self.verify().await
    }

    async fn create(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let pass = self.gate.enter().await;
        // Set in the same transaction as the tables, and only where nothing else is in the file.
        let mine = {
            let row = connection.fetch_one("SELECT count(*) FROM sqlite_schema").await?;
            row.try_get::<i64, _>(0)? == 0
        };
        let mark = if mine { format!("PRAGMA application_id = {APPLICATION_ID};\n") } else { String::new() };
        let text = self.sql.fill(&format!(
            "BEGIN IMMEDIATE;\n{mark}{SCHEMA}\nINSERT INTO {{p}}meta (name, value) VALUES ('schema_version', '{SCHEMA_VERSION}') \
             ON CONFLICT (name) DO NOTHING;\nCOMMIT;"
        ));
        let created = connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(text))).await;
        drop(pass);
        created.map(|_| ())
    }

    pub(super) async fn verify(&self) -> Result<()> {
        if options::identity(&self.path).is_none() {
            return Err(Error::configuration(format!(
                "`{}` does not exist: call `setup` first, or leave it to `start`",
                self.path.display()
            )));
        }
        check_file(&self.path, &self.sql, Missing::Refused).await?;
        self.probe_write().await?;
        self.remember_file();
        Ok(())
    }
}

impl Inner {
    /// Takes the write lock once, which fails where this process may not write.
    async fn probe_write(&self) -> Result<()> {
        let text = self.sql.fixed("BEGIN IMMEDIATE; COMMIT;");
        self.writer.run_one(&text, Binds::default()).await.map_err(|error| self.error("write", error))?;
        Ok(())
    }
}

impl Inner {
    /// Shrinks the write-ahead log when a long read has let it grow past its limit and nobody has written since.
    ///
    /// First only what disturbs nobody; the log is cut off when that has emptied it, which waits for reads of this moment.
    /// It is a matter of space: what fails is tried again at the next sweep.
    pub(super) async fn keep_log_small(&self) {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        if std::fs::metadata(&log).map_or(0, |metadata| metadata.len()) <= self.builder.log_limit {
            return;
        }
        let options = self.builder.connection(&self.path, false).busy_timeout(CUT_PATIENCE);
        let Ok(mut connection) = options.connect().await else { return };
        if let Ok(row) = connection.fetch_one("PRAGMA wal_checkpoint(PASSIVE)").await
            && let (Ok(in_log), Ok(done)) = (row.try_get::<i64, _>(1), row.try_get::<i64, _>(2))
            && in_log == done
        {
            let pass = self.gate.enter().await;
            let _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").await;
            drop(pass);
        }
        let _ = connection.close().await;
    }
}

impl SqliteStore {
    /// A setting of the connection that the store writes through, for tests.
    #[doc(hidden)]
    pub async fn writer_pragma(&self, name: &'static str) -> Result<i64> {
        let text = self.inner.sql.fill(&format!("PRAGMA {name};")).into();
        let failed = |error| self.inner.error("read a setting", error);
        let outcomes = self.inner.writer.run_one(&text, Binds::default()).await.map_err(failed)?;
        let row = outcomes.first().and_then(|outcome| outcome.rows.first());
        row.ok_or(sqlx::Error::RowNotFound).and_then(|row| row.try_get(0)).map_err(failed)
    }
}

/// How long cutting off the log waits for others.
const CUT_PATIENCE: std::time::Duration = std::time::Duration::from_millis(20);

/// Opens the file and turns it over to the write-ahead log. Several processes may do so at once; the mode is set when
/// nobody else is in the way, and again when somebody was.
async fn open_for_setup(builder: &SqliteStoreBuilder, path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = builder.connection(path, true).busy_timeout(SETUP_PATIENCE);
    let mut tries = 0;
    loop {
        match options.connect().await {
            Err(error)
                if tries < SETUP_TRIES
                    && matches!(super::error::extended_code(&error), Some(code) if code & 0xFF == 5) =>
            {
                tries += 1;
                crate::background::pause(std::time::Duration::from_millis(20)).await;
            }
            answer => return answer,
        }
    }
}

/// How long setup waits for others.
const SETUP_PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
/// How often it tries where SQLite does not wait by itself.
const SETUP_TRIES: u32 = 100;
