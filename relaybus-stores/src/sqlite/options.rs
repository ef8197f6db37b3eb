//! How a store is opened: the path, the durability, the names of its tables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use relaybus::{Error, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use super::SqliteStore;

/// Prefix of the tables without one of your own.
pub const DEFAULT_TABLE_PREFIX: &str = "relaybus_";
/// Longest table prefix, in bytes.
const MAX_PREFIX: usize = 40;
/// How long SQLite itself waits for the write lock of others.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for a free connection.
pub(super) const CONNECTION_WAIT: Duration = Duration::from_secs(5);
/// Rows that a connection's thread may be ahead of their reader. A claim fits in, so the thread never waits for a task
/// while it has the write lock.
const ROW_BUFFER: usize = 1024;
/// Texts that a connection keeps prepared.
const STATEMENTS: usize = 128;
/// Bytes that the write-ahead log shrinks to at its next reset, and past which the store asks for one.
const LOG_LIMIT: u64 = 64 * 1024 * 1024;

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A commit survives the end of the process, killed or not. A power failure or a crash of the operating system
    /// may take back the last commits, always whole ones and the newest first. The default.
    #[default]
    Normal,
    /// A commit also survives a power failure: each one waits for the disk.
    Full,
}

/// The options of a [`SqliteStore`]; made by [`SqliteStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "call `build` to open the store"]
pub struct SqliteStoreBuilder {
    pub(super) path: PathBuf,
    pub(super) durability: Durability,
    pub(super) prefix: String,
    pub(super) history: bool,
    pub(super) max_page_count: Option<u32>,
    pub(super) log_limit: u64,
}

impl SqliteStoreBuilder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            durability: Durability::default(),
            prefix: DEFAULT_TABLE_PREFIX.to_owned(),
            history: false,
            max_page_count: None,
            log_limit: LOG_LIMIT,
        }
    }

    /// What a commit survives. Defaults to [`Durability::Normal`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The prefix of the store's tables: small letters, digits and `_`, at most 40. Defaults to `relaybus_`.
    ///
    /// Stores with different prefixes share a file without seeing each other's events.
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Whether to keep a record of every completed delivery. Defaults to `false`; give the same in every process.
    pub fn completion_history(mut self, keep: bool) -> Self {
        self.history = keep;
        self
    }

    /// Caps the file at this many pages, so that a test can fill the disk.
    #[doc(hidden)]
    pub fn max_page_count(mut self, pages: u32) -> Self {
        self.max_page_count = Some(pages);
        self
    }

    /// Bytes of the write-ahead log past which it is shrunk, so that a test need not write so much.
    #[doc(hidden)]
    pub fn log_limit(mut self, bytes: u64) -> Self {
        self.log_limit = bytes;
        self
    }

    /// Opens the store. The file may not exist yet: [`relaybus::EventStore::setup`] creates it.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when an option is not valid or the path cannot be a store: a folder, a device, a hard link, a
    /// path whose folder does not exist; also when the file has other tables under the names of the store's. `RELAYBUS_ERROR` when there is a file and it is not a SQLite file, belongs to another
    /// application, is damaged or may not be read.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn build(self) -> Result<SqliteStore> {
        SqliteStore::connect(self).await
    }

    pub(super) fn check(&self) -> Result<()> {
        let letters = |c: char| c.is_ascii_lowercase() || c == '_';
        let valid = self.prefix.len() <= MAX_PREFIX
            && self.prefix.starts_with(letters)
            && self.prefix.chars().all(|c| letters(c) || c.is_ascii_digit())
            && !self.prefix.starts_with("sqlite_");
        if valid {
            return Ok(());
        }
        let shown: String = self.prefix.chars().filter(|c| !c.is_control()).take(64).collect();
        Err(Error::configuration(format!(
            "`{shown}` is not a table prefix: use 1 to {MAX_PREFIX} small letters, digits and `_`, not starting with a digit or `sqlite_`"
        )))
    }

    /// The options of a connection that reads and writes.
    pub(super) fn connection(&self, path: &Path, create: bool) -> SqliteConnectOptions {
        use sqlx::ConnectOptions as _;
        let synchronous = match self.durability {
            Durability::Normal => SqliteSynchronous::Normal,
            Durability::Full => SqliteSynchronous::Full,
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(create)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .foreign_keys(false)
            .busy_timeout(BUSY_TIMEOUT)
            .row_buffer_size(ROW_BUFFER)
            .statement_cache_capacity(STATEMENTS)
            .pragma("journal_size_limit", self.log_limit.to_string())
            .pragma("trusted_schema", "OFF")
            .pragma("temp_store", "MEMORY")
            .disable_statement_logging();
        match self.max_page_count {
            Some(pages) => options.pragma("max_page_count", pages.to_string()),
            None => options,
        }
    }

    /// The options of a connection that refuses to write.
    pub(super) fn reader(&self, path: &Path) -> SqliteConnectOptions {
        self.connection(path, false).pragma("query_only", "ON")
    }
}

/// The path of a URL such as `sqlite://data/bus.db`.
pub(super) fn path_of_url(url: &str) -> Result<PathBuf> {
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
    match path {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => Err(Error::configuration(format!(
            "`{url}` is not the URL of a SQLite store: write `sqlite://` and a path, such as `sqlite://data/bus.db`"
        ))),
    }
}

/// The path SQLite will use, links in it resolved. Refuses what a store cannot live in.
pub(super) fn resolve(path: &Path) -> Result<PathBuf> {
    let shown = path.display();
    let text = path.to_string_lossy();
    if text.is_empty() || text.contains(":memory:") || text.starts_with("file::") {
        return Err(Error::configuration(format!(
            "`{shown}` is not a file: use the in-memory store of relaybus for events that need not last"
        )));
    }
    if text.contains('\0') || path.to_str().is_none() {
        return Err(Error::configuration(format!("`{shown}` is not valid as a path of SQLite: use UTF-8 without NUL")));
    }
    let absolute = std::path::absolute(path).map_err(|error| no_folder(path, &error))?;
    match std::fs::metadata(&absolute) {
        Ok(metadata) if metadata.is_dir() => {
            Err(Error::configuration(format!("`{shown}` is a folder: name a file in it, such as `{shown}/bus.db`")))
        }
        Ok(metadata) if !metadata.is_file() => Err(Error::configuration(format!(
            "`{shown}` is a pipe, a device or a socket: name a file, which need not exist yet"
        ))),
        Ok(metadata) => {
            refuse_hard_link(path, &metadata)?;
            absolute.canonicalize().map_err(|error| no_folder(path, &error))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else {
                return Err(Error::configuration(format!("`{shown}` names no file: write a path to a file")));
            };
            Ok(folder.canonicalize().map_err(|error| no_folder(path, &error))?.join(name))
        }
        Err(error) => Err(no_folder(path, &error)),
    }
}

fn no_folder(path: &Path, error: &std::io::Error) -> Error {
    Error::configuration(format!(
        "`{}` cannot be reached ({error}): create its folder first, and let this process read and write there",
        path.display()
    ))
}

/// SQLite finds the log by the file's name: two names would be two logs of one file, which damages it.
#[cfg(unix)]
fn refuse_hard_link(path: &Path, metadata: &std::fs::Metadata) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if metadata.nlink() > 1 {
        return Err(Error::configuration(format!(
            "`{}` has {} names (hard links), which damages a SQLite file: remove the other names, or use a symbolic link",
            path.display(),
            metadata.nlink()
        )));
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_hard_link(_path: &Path, _metadata: &std::fs::Metadata) -> Result<()> {
    Ok(())
}

/// What tells two files of one name apart.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// What tells two files of one name apart: only whether there is one, on this system.
#[cfg(not(unix))]
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    path.exists().then_some((0, 0))
}
