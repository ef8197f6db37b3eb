//! What is in the file under the store's names, compared with what `schema.sql` makes.
//!
//! The tables are made by `IF NOT EXISTS`, which takes any table of the name for ours. So before anything is written, each
//! one that is there is compared: a foreign one is refused with what was found, and the file stays as it is.

use std::collections::BTreeMap;
use std::path::Path;

use relaybus::{Error, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row};

use super::sql::{SCHEMA, Sql};

/// Whether a file without the tables will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// They will be made, all together.
    Allowed,
    /// They must be there.
    Refused,
}

/// Tables, views, triggers and indices by their names in small letters.
pub(super) type Objects = BTreeMap<String, Object>;

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Object {
    kind: String,
    /// The columns of a table; of anything else the text that makes it.
    is: String,
}

/// `$1` the prefix. Columns with their types, and what may be null.
const LIST: &str = "SELECT lower(s.name), s.type, CASE s.type WHEN 'table' THEN (SELECT group_concat(c.name || ' ' || \
    c.type || CASE WHEN c.\"notnull\" OR c.pk THEN '' ELSE ' NULL' END, ', ') FROM pragma_table_info(s.name) c) \
    ELSE coalesce(s.sql, '') END FROM sqlite_schema s WHERE lower(substr(s.name, 1, length($1))) = $1";

/// What is in the database under the names of the store.
pub(super) async fn found(connection: &mut SqliteConnection, sql: &Sql) -> Result<Objects, sqlx::Error> {
    let rows = sqlx::query(LIST).bind(sql.prefix()).fetch_all(connection).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, Object { kind: row.try_get(1)?, is: row.try_get(2)? }))).collect()
}

/// What the store makes, by making it in memory.
pub(super) async fn expected(sql: &Sql) -> Result<Objects, sqlx::Error> {
    let options = SqliteConnectOptions::new().in_memory(true).disable_statement_logging();
    let mut connection = options.connect().await?;
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.fill(SCHEMA)))).await?;
    let objects = found(&mut connection, sql).await?;
    connection.close().await?;
    Ok(objects)
}

/// Refuses what is there under a name of ours and is not ours.
pub(super) fn compare(path: &Path, found: &Objects, expected: &Objects, missing: Missing) -> Result<()> {
    let file = path.display();
    for (name, ours) in expected {
        match found.get(name) {
            None if missing == Missing::Allowed => {}
            None => {
                return Err(Error::configuration(format!(
                    "`{file}` has no {} `{name}`: call `setup` first, or leave it to `start`",
                    ours.kind
                )));
            }
            Some(theirs) if theirs == ours => {}
            Some(theirs) => {
                return Err(Error::configuration(format!(
                    "`{file}` has a {} `{name}` that is not of this store (it is `{}`, expected the {} `{}`): rename it, or give the store another `table_prefix`",
                    theirs.kind, theirs.is, ours.kind, ours.is
                )));
            }
        }
    }
    Ok(())
}
