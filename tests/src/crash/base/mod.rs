//! What of a run depends on the database: how the store is opened, the handler with a transaction, the application's tables.

use std::path::Path;
use std::time::Duration;

use relaybus::store::HandleOf;
use relaybus::{BoxError, EventStore, RelayBusBuilder};

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

/// A connection to the database.
pub(super) type Connection<B> = <<B as Base>::Db as sqlx::Database>::Connection;

/// What tables hold at the end of a run.
#[derive(Debug, Default)]
pub struct Tables {
    /// Names in the application's table, in the order of their commits for each key, with their keys.
    pub(super) rows: Vec<(String, Option<String>)>,
    /// Names with an effect, in the same order.
    pub(super) effects: Vec<(String, Option<String>)>,
    /// Events that the store has: event type and name.
    pub(super) stored: Vec<(String, String)>,
    /// Rows that should be gone, by what they are.
    pub(super) left: Vec<(String, i64)>,
    /// `ok`, or what is wrong with the database.
    pub(super) integrity: String,
}

/// A store whose processes are crashed, with its database.
pub trait Base: EventStore + Sized {
    /// What processes call the store.
    const NAME: &'static str;
    /// The database's client.
    type Db: sqlx::Database<Connection: HandleOf<Self::Family>>;
    /// What tells one run's database from another's, given to each process in the folder of the run.
    type Server: Send;
    /// How long after the end of a process its deliveries are started elsewhere at the latest, if nobody else is harmed meanwhile;
    /// `None` where it is not judged.
    const LONGEST_TAKEOVER: Option<Duration>;

    /// Makes the database of a run, with the tables of the application.
    fn create(folder: &Path) -> impl Future<Output = Result<Self::Server, BoxError>>;

    /// Restarts the server, in one of the ways that one has. `false` when there is none.
    ///
    /// # Errors
    /// When the server is not there afterwards.
    fn restart(server: &mut Self::Server, rng: &mut fastrand::Rng) -> Result<bool, BoxError>;

    /// Opens the store of a run.
    fn open(folder: &Path, seed: u64) -> impl Future<Output = Result<Self, BoxError>> + Send;

    /// Adds the handlers.
    fn handlers(builder: RelayBusBuilder<Self>) -> RelayBusBuilder<Self>;

    /// The connection of a transaction.
    fn connection(tx: &mut Self::Transaction) -> &mut Connection<Self>;

    /// Adds a row to the application's `business`; one that is there stays.
    fn business<'a>(
        tx: &'a mut Connection<Self>,
        name: &'a str,
        key: Option<&'a str>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send + 'a;

    /// Adds a row to the application's `effects`.
    fn effect<'a>(
        tx: &'a mut Connection<Self>,
        name: &'a str,
        key: Option<&'a str>,
        process: u32,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send + 'a;

    /// Sessions that are open.
    fn sessions(&self, folder: &Path) -> impl Future<Output = Result<u64, BoxError>>;

    /// What the tables hold.
    fn tables(folder: &Path) -> impl Future<Output = Result<Tables, BoxError>>;
}
