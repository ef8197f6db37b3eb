//! The PostgreSQL store: a server of the run's own, which is restarted too.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use relaybus::{BoxError, RelayBusBuilder, handlers};
use relaybus_stores::PostgresStore;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::super::cluster::{self, Cluster};
use super::super::{LEASE, POLL, handlers};
use super::{Base, Tables};

const TABLES: &str = "CREATE TABLE business (number bigserial PRIMARY KEY, name text NOT NULL UNIQUE, key text);
    CREATE TABLE effects (number bigserial PRIMARY KEY, name text NOT NULL, key text, process bigint NOT NULL);
    CREATE INDEX effects_name ON effects (name);";
/// Commits survive the death of the server's processes; the machine stays up, so its disk need not be waited for. Publishers
/// take keys in any order: their deadlocks are found soon.
const SETTINGS: &str = "fsync = off\nfull_page_writes = off\nsynchronous_commit = on\nshared_buffers = 64MB\n\
    max_connections = 200\ndeadlock_timeout = 100ms\n";
/// Processes of one machine have one clock.
const MARGIN: Duration = Duration::from_millis(200);
/// What a busy machine and the work of others before it may add to a takeover.
const SLOWNESS: Duration = Duration::from_secs(3);

/// The server of a run, which ends with it, or with the process of the test.
#[derive(Debug)]
pub struct Server {
    cluster: Cluster,
    _keeper: cluster::Keeper,
}

/// The file with the address of the server.
const ADDRESS: &str = "address";

fn address(folder: &Path) -> Result<String, BoxError> {
    Ok(std::fs::read_to_string(folder.join(ADDRESS))?)
}

async fn connect(folder: &Path) -> Result<PgConnection, BoxError> {
    Ok(address(folder)?.parse::<PgConnectOptions>()?.connect().await?)
}

impl Base for PostgresStore {
    const NAME: &'static str = "postgres";
    type Db = sqlx::Postgres;
    type Server = Server;
    const LONGEST_TAKEOVER: Option<Duration> = Some(Duration::from_millis(
        (LEASE.as_millis() + POLL.as_millis() + MARGIN.as_millis() + SLOWNESS.as_millis()) as u64,
    ));

    async fn create(folder: &Path) -> Result<Server, BoxError> {
        let programs = cluster::programs().ok_or("no PostgreSQL is installed: run `cargo xtask services up` first")?;
        // The server's user looks into it.
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
        let cluster = Cluster::create(programs, &folder.join("server"), SETTINGS)?;
        let server = Server { _keeper: cluster.keeper()?, cluster };
        server.cluster.start()?;
        std::fs::write(folder.join(ADDRESS), server.cluster.url())?;
        let mut connection = connect(folder).await?;
        sqlx::raw_sql(TABLES).execute(&mut connection).await?;
        connection.close().await?;
        Ok(server)
    }

    fn restart(server: &mut Server, rng: &mut fastrand::Rng) -> Result<bool, BoxError> {
        server.cluster.stop(if rng.bool() { "fast" } else { "immediate" })?;
        std::thread::sleep(Duration::from_millis(rng.u64(0..1500)));
        server.cluster.start()?;
        Ok(true)
    }

    async fn open(folder: &Path, seed: u64) -> Result<Self, BoxError> {
        let builder = Self::builder(address(folder)?).takeover_margin(MARGIN).max_connections(6);
        Ok(builder.completion_history(seed.is_multiple_of(3)).build()?)
    }

    fn handlers(builder: RelayBusBuilder<Self>) -> RelayBusBuilder<Self> {
        builder.handlers(handlers![
            handlers::postgres_ledger,
            handlers::audit,
            handlers::note,
            handlers::flaky,
            handlers::refuse,
            handlers::replay,
            handlers::poison
        ])
    }

    fn connection(tx: &mut Self::Transaction) -> &mut PgConnection {
        tx
    }

    async fn business(tx: &mut PgConnection, name: &str, key: Option<&str>) -> Result<(), sqlx::Error> {
        let insert = sqlx::query("INSERT INTO business (name, key) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
        insert.bind(name).bind(key).execute(tx).await.map(drop)
    }

    async fn effect(tx: &mut PgConnection, name: &str, key: Option<&str>, process: u32) -> Result<(), sqlx::Error> {
        let insert = sqlx::query("INSERT INTO effects (name, key, process) VALUES ($1, $2, $3)");
        insert.bind(name).bind(key).bind(i64::from(process)).execute(tx).await.map(drop)
    }

    async fn sessions(&self, folder: &Path) -> Result<u64, BoxError> {
        let mut connection = connect(folder).await?;
        let row = sqlx::query("SELECT count(*) FROM relaybus_sessions").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(row.try_get::<i64, _>(0)?.unsigned_abs())
    }

    async fn tables(folder: &Path) -> Result<Tables, BoxError> {
        let mut connection = connect(folder).await?;
        let mut tables = Tables { integrity: "ok".to_owned(), ..Tables::default() };
        for row in sqlx::query("SELECT name, key FROM business ORDER BY number").fetch_all(&mut connection).await? {
            tables.rows.push((row.try_get(0)?, row.try_get(1)?));
        }
        for row in sqlx::query("SELECT name, key FROM effects ORDER BY number").fetch_all(&mut connection).await? {
            tables.effects.push((row.try_get(0)?, row.try_get(1)?));
        }
        let stored = "SELECT type, payload ->> 'name' FROM relaybus_events";
        for row in sqlx::query(stored).fetch_all(&mut connection).await? {
            tables.stored.push((row.try_get(0)?, row.try_get(1)?));
        }
        let left = [
            ("deliveries", "SELECT count(*) FROM relaybus_deliveries WHERE NOT dead"),
            ("sessions", "SELECT count(*) FROM relaybus_sessions"),
            (
                "handlers with owned lanes",
                "SELECT count(*) FROM relaybus_handlers WHERE owners <> decode(repeat('00', 256), 'hex')",
            ),
            ("open transactions", "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"),
        ];
        for (what, count) in left {
            tables.left.push((what.to_owned(), sqlx::query(count).fetch_one(&mut connection).await?.try_get(0)?));
        }
        connection.close().await?;
        Ok(tables)
    }
}
