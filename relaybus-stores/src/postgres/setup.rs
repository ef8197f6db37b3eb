//! Creating and checking the tables.
//!
//! Everything happens in one transaction under a transaction-scoped advisory lock whose number comes from the schema's name,
//! so that any number of processes can start at once, and through any pooler. When the version marker is there, nothing is
//! touched: a running store never meets a table lock.
//!
//! # Upgrades
//!
//! Tables of an older version are brought to this one in place, step by step, in the same transaction, which keeps what is in
//! them. A step is a text that may run again (`IF NOT EXISTS`), because it is part of what `schema_sql` gives to other tools,
//! and that workers of the version before survive: processes are replaced one after the other. Tables of a newer version are
//! refused.

use std::sync::Arc;

use relaybus::{Error, Result};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use super::Inner;
use super::args::{Binds, key_number};
use super::background::to_its_end;
use super::error::store_error;
use super::sql::Names;

/// What brings the tables from one version to the next, beginning with that of `schema.sql`.
pub(super) const STEPS: &[&str] = &[];
/// The version that `schema.sql` makes.
const FIRST_VERSION: i64 = 1;
/// First number of the lock of a setup.
const SETUP_LOCK: i32 = 0x7262_7573;
/// How long a step of an upgrade waits for those who work on the tables; nobody else gets on meanwhile.
const UPGRADE_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '5s'";
/// A writer leaves out completions that are this much closer to their event than a purge assumes, in seconds: more than a
/// statement's timeout and the clocks' difference.
pub(super) const SLACK_MARGIN: i64 = 600;

/// The version of the tables that code with these steps reads and writes.
fn version_after(steps: &[&str]) -> i64 {
    FIRST_VERSION + i64::try_from(steps.len()).unwrap_or(0)
}

/// The steps that tables of version `from` need, and the marker behind them.
fn upgrade_sql(names: &Names, steps: &[&str], from: i64) -> String {
    let done = usize::try_from(from - FIRST_VERSION).unwrap_or(0);
    let mut text: String = steps.iter().skip(done).map(|step| format!("{step};\n")).collect();
    text.push_str(&format!(
        "UPDATE {{meta}} SET value = {0} WHERE name = 'version' AND value < {0};\n",
        version_after(steps)
    ));
    names.fill(&text)
}

/// The statements that create the tables, or bring older ones to this version.
pub(super) fn schema_sql(names: &Names, history: bool, steps: &[&str]) -> String {
    let mut text = String::new();
    if names.schema != super::options::DEFAULT_SCHEMA {
        text.push_str("CREATE SCHEMA IF NOT EXISTS {schema};\n");
    }
    text.push_str(include_str!("schema.sql"));
    if history {
        text.push_str(include_str!("history.sql"));
    }
    names.fill(&text) + &upgrade_sql(names, steps, FIRST_VERSION)
}

impl Inner {
    fn wanted_version(&self) -> i64 {
        version_after(self.builder.steps)
    }

    pub(super) async fn setup(self: &Arc<Self>) -> Result<()> {
        let inner = Arc::clone(self);
        let ended = to_its_end(async move { inner.setup_in_transaction().await }).await;
        ended.ok_or_else(|| Error::store("the runtime ended during the setup", None))?
    }

    async fn setup_in_transaction(&self) -> Result<()> {
        let failed = |error| store_error("set the store up", error);
        if self.version().await? == Some(self.wanted_version()) && self.has_history().await? {
            return Ok(());
        }
        let mut tx = self.work().await?.begin().await.map_err(failed)?;
        let lock = super::args::key_slot(key_number(&self.sql.names.schema));
        sqlx::query("SELECT pg_advisory_xact_lock($1, $2)")
            .persistent(self.prepared())
            .bind(SETUP_LOCK)
            .bind(lock)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        let found = self.refuse_others(&mut tx).await?;
        if let Some(from) = found.filter(|from| *from < self.wanted_version()) {
            sqlx::raw_sql(UPGRADE_LOCK_TIMEOUT).execute(&mut *tx).await.map_err(failed)?;
            let steps = upgrade_sql(&self.sql.names, self.builder.steps, from);
            sqlx::raw_sql(AssertSqlSafe(steps)).execute(&mut *tx).await.map_err(failed)?;
            tracing::info!(from, to = self.wanted_version(), "the tables of the store are upgraded");
        }
        let whole = schema_sql(&self.sql.names, self.sql.history, &[]);
        let steps = if found.is_none() {
            upgrade_sql(&self.sql.names, self.builder.steps, FIRST_VERSION)
        } else {
            String::new()
        };
        sqlx::raw_sql(AssertSqlSafe(whole + &steps)).execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)
    }

    /// Checks that the tables are there and of this version.
    pub(super) async fn verify(&self) -> Result<()> {
        match self.version().await? {
            Some(version) if version == self.wanted_version() => {}
            Some(other) => return Err(wrong_version(&self.sql.names, other, self.wanted_version())),
            None => {
                return Err(Error::configuration(format!(
                    "the tables `{}.{}*` are not there: call `setup`, or run the text of `schema_sql`",
                    self.sql.names.schema, self.sql.names.prefix
                )));
            }
        }
        if self.has_history().await? {
            return Ok(());
        }
        Err(Error::configuration(format!(
            "the table {} of the completion history is not there: call `setup`, or give `completion_history(false)`",
            self.sql.names.table("completed_deliveries")
        )))
    }

    async fn version(&self) -> Result<Option<i64>> {
        let failed = |error| store_error("read the version of the tables", error);
        // Asked first, so that a new installation leaves no error in the server's log.
        if !self.has_table("meta").await? {
            return Ok(None);
        }
        for row in self.ask("read the version of the tables", &self.sql.settings, Binds::default()).await? {
            if row.try_get::<String, _>(0).map_err(failed)? == "version" {
                return row.try_get(1).map(Some).map_err(failed);
            }
        }
        Ok(None)
    }

    async fn has_history(&self) -> Result<bool> {
        Ok(!self.sql.history || self.has_table("completed_deliveries").await?)
    }

    async fn has_table(&self, suffix: &str) -> Result<bool> {
        const LOOKING: &str = "look for the tables";
        let binds = Binds::default().with(self.sql.names.table(suffix));
        let rows = self.ask(LOOKING, &self.sql.table_there, binds).await?;
        rows.first().map_or(Ok(false), |row| row.try_get(0)).map_err(|error| store_error(LOOKING, error))
    }

    /// Refuses tables of another layout under these names, before anything is changed; else the version of those that are there.
    async fn refuse_others(&self, connection: &mut PgConnection) -> Result<Option<i64>> {
        let names = &self.sql.names;
        let failed = |error| store_error("look at the tables that are there", error);
        let rows = sqlx::query(
            "SELECT c.relname::text, array_to_string(ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum), ', ') \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'f') AND starts_with(c.relname::text, $2)",
        )
        .persistent(self.prepared())
        .bind(&names.schema)
        .bind(&names.prefix)
        .fetch_all(&mut *connection)
        .await
        .map_err(failed)?;
        let mut found = Vec::new();
        for row in &rows {
            let (table, columns): (String, String) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
            found.push((table.trim_start_matches(names.prefix.as_str()).to_owned(), columns));
        }
        let has = |suffix: &str| found.iter().any(|(table, _)| table == suffix);
        if has("meta") {
            let row = sqlx::query(AssertSqlSafe(names.fill("SELECT value FROM {meta} WHERE name = 'version'")))
                .persistent(self.prepared());
            let row = row.fetch_optional(connection).await.map_err(failed)?;
            return match row.map(|row| row.try_get::<i64, _>(0)) {
                None => Ok(None),
                Some(Ok(version)) if (FIRST_VERSION..=self.wanted_version()).contains(&version) => Ok(Some(version)),
                Some(Ok(other)) => Err(wrong_version(names, other, self.wanted_version())),
                Some(Err(error)) => Err(failed(error)),
            };
        }
        let Some((table, columns)) = found
            .iter()
            .find(|(table, _)| matches!(&**table, "events" | "deliveries" | "lanes" | "handlers" | "sessions"))
        else {
            return Ok(None);
        };
        let whose = if has("lanes") || has("key_sequences") {
            "the layout of the TypeScript edition"
        } else {
            "another layout"
        };
        Err(Error::configuration(format!(
            "`{}.{}{table}` is there with {whose} (columns {columns}): choose another `schema` or `table_prefix`, nothing was changed",
            names.schema, names.prefix
        )))
    }
}

fn wrong_version(names: &Names, found: i64, wanted: i64) -> Error {
    let then = if (FIRST_VERSION..wanted).contains(&found) {
        "call `setup`, or run the text of `schema_sql`"
    } else {
        "use a relaybus that knows them"
    };
    Error::configuration(format!(
        "the tables `{}.{}*` are of version {found}, this code works with version {wanted}: {then}",
        names.schema, names.prefix
    ))
}
