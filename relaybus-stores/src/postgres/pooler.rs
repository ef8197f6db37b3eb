//! What lies between the store and the server: nothing, or a pooler that hands out other sessions.
//!
//! A pooler in transaction mode gives each transaction a session of its own, so what lives in a session does not work as it
//! looks: settings of the start are dropped or refused, a prepared statement is on another session or is another client's, and
//! notifications are never delivered. The store looks once, before its first statement, and then leaves out what would not work.
//!
//! - *Settings*: one that means nothing is sent with the start of a connection. Where it does not arrive, a pooler is in between.
//!   Then each statement of the store is sent in a transaction with its settings: even one that is not prepared is sent in two
//!   parts, and the second could land on another session.
//! - *Sessions*: two connections that are open at once and share a session, or one that changes it, show transaction mode.
//! - *Prepared statements*: a pooler that keeps them gives them names of its own, which the server lists.
//!
//! Should a pooler appear later, the first statement that lands on a session without it fails once; from there on none is prepared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::OnceCell;

use super::background::{PATIENCE, within};
use super::error::sqlstate;
use super::handlers::Remembered;

/// The setting that tells whether settings arrive.
const MARK: &str = "relaybus.arrived";
/// Looks whether two connections share a session.
const LOOKS: usize = 4;
/// Prepared under a name of the client, it tells under which name the server has it.
const NAMES: &str =
    "SELECT name FROM pg_prepared_statements WHERE statement LIKE 'SELECT name FROM pg_prepared_statements%'";
/// What the client's names begin with.
const OURS: &str = "sqlx_s_";

/// What can be used of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Settings sent with the start of a connection last as long as it does.
    pub(super) settings: bool,
    /// Statements are prepared once a connection.
    pub(super) prepared: bool,
    /// Notifications are heard.
    pub(super) listens: bool,
}

impl Reach {
    const DIRECT: Self = Self { settings: true, prepared: true, listens: true };
}

/// What is known about the way to the server; shared by all that uses it.
#[derive(Debug)]
pub(super) struct Way {
    /// The application wants statements prepared.
    wanted: bool,
    found: OnceCell<Reach>,
    /// Statements are not prepared any more, whatever was found.
    given_up: AtomicBool,
    /// Forgets what it knows when a connection is opened.
    handlers: Arc<RwLock<Remembered>>,
}

impl Way {
    pub(super) fn new(prepared: bool, handlers: Arc<RwLock<Remembered>>) -> Self {
        Self { wanted: prepared, found: OnceCell::new(), given_up: AtomicBool::new(false), handlers }
    }

    /// What can be used. Before the first look, what needs no luck.
    pub(super) fn reach(&self) -> Reach {
        let found = self.found.get().copied();
        let found = found.unwrap_or(Reach { settings: false, prepared: false, listens: true });
        let given_up = self.given_up.load(Ordering::Relaxed);
        Reach { prepared: found.prepared && !given_up, settings: found.settings && !given_up, ..found }
    }

    /// A connection was opened, and nothing was sent on it yet. One to a pooler tells nothing of the server behind it.
    pub(super) fn note_opened(&self) {
        if !self.reach().listens {
            return;
        }
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).note_opened();
    }

    pub(super) fn is_known(&self) -> bool {
        self.found.initialized()
    }

    /// Looks, the first time, and then calls `found` before anybody else knows.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(super) async fn look(
        &self,
        options: &PgConnectOptions,
        found: impl FnOnce(Reach, Option<u32>),
    ) -> Result<(), sqlx::Error> {
        let look = async {
            let (mut reach, version) = look(options).await?;
            if self.wanted && !reach.prepared {
                warn();
            }
            reach.prepared &= self.wanted;
            found(reach, version);
            Ok::<_, sqlx::Error>(reach)
        };
        self.found.get_or_try_init(|| look).await.map(|_| ())
    }

    /// Takes note of an error: whether it shows that prepared statements are not kept, so that none is prepared any more.
    pub(super) fn note(&self, error: &sqlx::Error) -> bool {
        let lost = self.reach().prepared && loses_statements(error);
        if lost && !self.given_up.swap(true, Ordering::Relaxed) {
            warn();
        }
        lost
    }
}

fn warn() {
    tracing::warn!(
        "the server does not keep prepared statements per connection, as behind PgBouncer before 1.21 in transaction mode: \
         none is prepared any more; give `prepared_statements(false)`, or set `max_prepared_statements` of the pooler"
    );
}

/// Whether a statement that was prepared is not there, is there already, or is another's.
fn loses_statements(error: &sqlx::Error) -> bool {
    sqlstate(error).is_some_and(|code| matches!(&*code, "26000" | "42P05" | "08P01"))
}

/// Whether a connection was refused for the settings that it sent with its start.
fn refuses_settings(error: &sqlx::Error) -> bool {
    sqlstate(error).is_some_and(|code| matches!(&*code, "08P01" | "0A000"))
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    within(PATIENCE, options.connect()).await.unwrap_or_else(super::line::timed_out)
}

/// What can be used, and the server's version.
async fn look(options: &PgConnectOptions) -> Result<(Reach, Option<u32>), sqlx::Error> {
    match connect(&options.clone().options([(MARK, "on")])).await {
        Ok(mut connection) => {
            let mark = sqlx::raw_sql("SELECT current_setting('relaybus.arrived', true)");
            let arrived: Option<String> = mark.fetch_one(&mut connection).await?.try_get(0)?;
            let version = connection.server_version_num();
            // A connection that is not said goodbye to ends all the same.
            let _ = connection.close().await;
            if arrived.as_deref() == Some("on") {
                return Ok((Reach::DIRECT, version));
            }
        }
        Err(error) if refuses_settings(&error) => {}
        Err(error) => return Err(error),
    }
    let options = plain(options.clone());
    let (keeps, version) = keeps_sessions(&options).await?;
    if keeps {
        return Ok((Reach { settings: false, ..Reach::DIRECT }, version));
    }
    tracing::info!(
        "a pooler in transaction mode is between the store and the server: other processes find work when they poll"
    );
    Ok((Reach { settings: false, prepared: names_statements(&options).await?, listens: false }, version))
}

/// The options for a connection through a pooler, which refuses settings that it does not know.
pub(super) fn plain(options: PgConnectOptions) -> PgConnectOptions {
    options.extra_float_digits(None)
}

/// Whether each connection has a session to itself.
async fn keeps_sessions(options: &PgConnectOptions) -> Result<(bool, Option<u32>), sqlx::Error> {
    let (mut one, mut other) = (connect(options).await?, connect(options).await?);
    let version = one.server_version_num();
    let (first, second) = (session(&mut one).await?, session(&mut other).await?);
    // A pooler that takes its sessions in turn could give each connection the same one for ever: the turns are not even.
    for look in 1..=LOOKS {
        for _ in 0..look {
            if session(&mut other).await? != second {
                return Ok((false, version));
            }
        }
        if first == second || session(&mut one).await? != first {
            return Ok((false, version));
        }
    }
    Ok((true, version))
}

async fn session(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}

/// Whether the pooler gives prepared statements names of its own, and so finds them again.
async fn names_statements(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut connection = connect(&options.clone().statement_cache_capacity(1)).await?;
    sqlx::raw_sql("BEGIN").execute(&mut connection).await?;
    let named = match sqlx::query(NAMES).persistent(true).fetch_all(&mut connection).await {
        Ok(rows) => {
            let names = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
            let plain = names.iter().find(|name| name.starts_with(OURS));
            if let Some(name) = plain {
                // Nobody else on this session is to meet it.
                sqlx::raw_sql(sqlx::AssertSqlSafe(format!("DEALLOCATE \"{name}\""))).execute(&mut connection).await?;
            }
            plain.is_none()
        }
        Err(error) if loses_statements(&error) => false,
        Err(error) => return Err(error),
    };
    sqlx::raw_sql("ROLLBACK").execute(&mut connection).await?;
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_first_look_nothing_is_prepared() {
        let way = Way::new(true, Arc::default());
        assert_eq!(way.reach(), Reach { settings: false, prepared: false, listens: true });
        assert!(!way.note(&sqlx::Error::PoolTimedOut));
    }
}
