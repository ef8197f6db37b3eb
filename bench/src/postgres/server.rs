//! The server of a run: databases, its processor time, and its settings of durability.

use std::path::Path;
use std::time::Duration;

use relaybus::BoxError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row};

use super::cost::{Cost, Meter};

/// The variable with the address of the server; `cargo xtask bench` starts one and sets it.
const VARIABLE: &str = "RELAYBUS_BENCH_POSTGRES_URL";

/// How long a process of the server takes to end.
const ENDING: Duration = Duration::from_millis(50);

/// A server, and a connection to it that measures.
pub(crate) struct Server {
    url: String,
    watch: PgConnection,
    postmaster: u32,
}

impl Server {
    /// # Errors
    /// When the variable is not set, or the server does not answer.
    pub(crate) async fn connect() -> Result<Self, BoxError> {
        let url =
            std::env::var(VARIABLE).map_err(|_| format!("{VARIABLE} is not set: start it by `cargo xtask bench`"))?;
        let mut watch = url.parse::<PgConnectOptions>()?.connect().await?;
        let backend: i32 = sqlx::query("SELECT pg_backend_pid()").fetch_one(&mut watch).await?.try_get(0)?;
        let postmaster = parent_of(u32::try_from(backend)?).ok_or("the server does not run on this machine")?;
        Ok(Self { url, watch, postmaster })
    }

    /// The address of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        let end = self.url.rfind('/').unwrap_or(self.url.len());
        format!("{}/{database}", &self.url[..end])
    }

    /// The options of a connection to a database.
    pub(crate) fn options(&self, database: &str) -> Result<PgConnectOptions, BoxError> {
        Ok(self.url(database).parse()?)
    }

    /// Makes a database anew.
    pub(crate) async fn fresh(&mut self, database: &str) -> Result<(), BoxError> {
        self.drop(database).await?;
        self.run(&format!("CREATE DATABASE {database}")).await
    }

    /// Deletes a database.
    pub(crate) async fn drop(&mut self, database: &str) -> Result<(), BoxError> {
        self.run(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)")).await
    }

    /// What every measurement begins with: statistics, and nothing left to be written.
    pub(crate) async fn settle(&mut self, database: &str) -> Result<(), BoxError> {
        let mut connection = self.options(database)?.connect().await?;
        connection.execute("VACUUM ANALYZE").await?;
        connection.close().await?;
        self.run("CHECKPOINT").await?;
        // The server's processes that end now must have ended before its time is read.
        tokio::time::sleep(ENDING).await;
        Ok(())
    }

    /// Whether commits are waited for on the disk, and whole pages are logged after a checkpoint.
    pub(crate) async fn durable(&mut self, on: bool) -> Result<(), BoxError> {
        let value = if on { "on" } else { "off" };
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            self.run(&format!("ALTER SYSTEM SET {setting} = {value}")).await?;
        }
        self.run("SELECT pg_reload_conf()").await?;
        // Backends read it when they are idle next.
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.run("CHECKPOINT").await
    }

    async fn run(&mut self, text: &str) -> Result<(), BoxError> {
        self.watch.execute(sqlx::raw_sql(AssertSqlSafe(text.to_owned()))).await?;
        Ok(())
    }

    /// The version of the server.
    pub(crate) async fn version(&mut self) -> Result<String, BoxError> {
        Ok(sqlx::query("SHOW server_version").fetch_one(&mut self.watch).await?.try_get(0)?)
    }

    /// Measures from here on.
    pub(crate) fn meter(&self) -> Meter {
        Meter::start(self.postmaster)
    }

    /// What `work` costs.
    pub(crate) async fn measure<T, F>(&self, work: F) -> Result<(T, Cost), BoxError>
    where
        F: Future<Output = Result<T, BoxError>>,
    {
        let meter = self.meter();
        let answer = work.await?;
        Ok((answer, meter.stop()))
    }
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}
