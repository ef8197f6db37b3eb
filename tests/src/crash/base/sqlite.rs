//! The SQLite store: one file in the folder of the run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use relaybus::{BoxError, RelayBusBuilder, handlers};
use relaybus_stores::SqliteStore;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::super::handlers;
use super::{Base, Tables};

const TABLES: &str = "CREATE TABLE business (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, key TEXT);
    CREATE TABLE effects (number INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT, process INTEGER NOT NULL);
    CREATE INDEX effects_name ON effects (name);";

fn database(folder: &Path) -> PathBuf {
    folder.join("bus.db")
}

async fn connect(folder: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnectOptions::new().filename(database(folder)).create_if_missing(true).connect().await
}

impl Base for SqliteStore {
    const NAME: &'static str = "sqlite";
    type Db = sqlx::Sqlite;
    type Server = ();
    const LONGEST_TAKEOVER: Option<Duration> = None;

    async fn create(folder: &Path) -> Result<(), BoxError> {
        let mut connection = connect(folder).await?;
        sqlx::raw_sql(TABLES).execute(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    fn restart((): &mut (), _: &mut fastrand::Rng) -> Result<bool, BoxError> {
        Ok(false)
    }

    async fn open(folder: &Path, seed: u64) -> Result<Self, BoxError> {
        // With some seeds the store keeps a completion history: other statements in the same places.
        Ok(Self::builder(database(folder)).completion_history(seed.is_multiple_of(3)).build().await?)
    }

    fn handlers(builder: RelayBusBuilder<Self>) -> RelayBusBuilder<Self> {
        builder.handlers(handlers![
            handlers::sqlite_ledger,
            handlers::audit,
            handlers::note,
            handlers::flaky,
            handlers::refuse,
            handlers::replay,
            handlers::poison
        ])
    }

    fn connection(tx: &mut Self::Transaction) -> &mut SqliteConnection {
        tx
    }

    async fn business(tx: &mut SqliteConnection, name: &str, key: Option<&str>) -> Result<(), sqlx::Error> {
        let insert = sqlx::query("INSERT INTO business (name, key) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
        insert.bind(name).bind(key).execute(tx).await.map(drop)
    }

    async fn effect(tx: &mut SqliteConnection, name: &str, key: Option<&str>, process: u32) -> Result<(), sqlx::Error> {
        let insert = sqlx::query("INSERT INTO effects (name, key, process) VALUES ($1, $2, $3)");
        insert.bind(name).bind(key).bind(process).execute(tx).await.map(drop)
    }

    async fn sessions(&self, _: &Path) -> Result<u64, BoxError> {
        let mut reader = self.reader().await?;
        let row = sqlx::query("SELECT count(*) FROM relaybus_sessions").fetch_one(&mut *reader).await?;
        Ok(row.try_get::<i64, _>(0)?.unsigned_abs())
    }

    async fn tables(folder: &Path) -> Result<Tables, BoxError> {
        let mut connection = connect(folder).await?;
        let mut tables = Tables {
            integrity: sqlx::query("PRAGMA integrity_check").fetch_one(&mut connection).await?.try_get(0)?,
            ..Tables::default()
        };
        for row in sqlx::query("SELECT name, key FROM business ORDER BY number").fetch_all(&mut connection).await? {
            tables.rows.push((row.try_get(0)?, row.try_get(1)?));
        }
        for row in sqlx::query("SELECT name, key FROM effects ORDER BY number").fetch_all(&mut connection).await? {
            tables.effects.push((row.try_get(0)?, row.try_get(1)?));
        }
        // The bus has no list of events; its table has.
        let stored = "SELECT type, payload ->> 'name' FROM relaybus_events ORDER BY seq";
        for row in sqlx::query(stored).fetch_all(&mut connection).await? {
            tables.stored.push((row.try_get(0)?, row.try_get(1)?));
        }
        for table in ["relaybus_ready", "relaybus_waiting", "relaybus_sessions"] {
            let count = sqlx::query(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
            tables.left.push((table.to_owned(), count.fetch_one(&mut connection).await?.try_get(0)?));
        }
        connection.close().await?;
        Ok(tables)
    }
}
