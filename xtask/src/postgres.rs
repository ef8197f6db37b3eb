//! The PostgreSQL server of the tests: Debian's package, in a temporary folder, as a user without rights.
//!
//! `up` creates the cluster and starts it; `status` tells its address; `down` stops it and deletes the folder. The folder's
//! name has the user's name, so that several people on one machine do not meet, and a lock lets one command at a time change
//! it. The test command has a server of its own for each run, so that no other run ends it. Where the package is missing,
//! root installs it.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::cluster::{self, Cluster, Keeper};
use crate::{Outcome, packages};

#[path = "newest.rs"]
pub(crate) mod newest;

#[path = "pgbouncer.rs"]
#[allow(dead_code, reason = "the tests start it; here it is only looked for")]
mod pgbouncer;

/// What makes a small server that forgets everything: the tests that need durability turn it on for themselves.
const SETTINGS: &str = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n\
    shared_buffers = 128MB\nmax_connections = 300\nwal_level = logical\nautovacuum_naptime = 5\n";

/// The server's programs, installed where they are missing and that is possible.
///
/// # Errors
///
/// When they are missing and cannot be installed.
pub(crate) fn install() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let otherwise =
        "run the tests that need it elsewhere (`RELAYBUS_TEST_POSTGRES_URL` names a server for most of them)";
    packages::ensure("postgresql", otherwise, cluster::programs)
}

/// The pooler's program, installed where it is missing and that is possible.
///
/// # Errors
///
/// When it is missing and cannot be installed.
pub(crate) fn install_pooler() -> Result<PathBuf, Box<dyn std::error::Error>> {
    packages::ensure("pgbouncer", "run the tests that need it elsewhere", pgbouncer::program)
}

/// The server of one run: it ends with the value, and with this process.
#[derive(Debug)]
pub(crate) struct OfThisRun {
    url: String,
    folder: PathBuf,
    keeper: Option<Keeper>,
}

impl OfThisRun {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// When the programs are missing or fail.
    pub(crate) fn start() -> Result<Self, Box<dyn std::error::Error>> {
        Self::with(empty_folder("server"), install()?)
    }

    /// Starts one of the newest version that can be had, which is answered too.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub(crate) fn newest() -> Result<(Self, String), Box<dyn std::error::Error>> {
        let folder = empty_folder("newest");
        let programs = newest::programs(&folder)?;
        let version = newest::version(&programs);
        Ok((Self::with(folder, programs)?, version))
    }

    fn with(folder: PathBuf, programs: PathBuf) -> Result<Self, Box<dyn std::error::Error>> {
        let cluster = Cluster::create(programs, &folder, SETTINGS)?;
        let keeper = Some(cluster.keeper()?);
        let run = Self { url: cluster.url(), folder, keeper };
        cluster.start()?;
        Ok(run)
    }

    /// Its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for OfThisRun {
    fn drop(&mut self) {
        self.keeper = None;
        // What cannot be removed is left to the system's own cleaning of its temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("relaybus-{name}-{}", std::process::id()));
    // What is there is of a process that had this number before, and was killed.
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Held while a command changes the folder: another one waits for its end.
fn lock() -> std::io::Result<File> {
    let file = File::create(folder().with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Starts the server, or finds it running.
pub(crate) fn up() -> Outcome {
    let _lock = lock()?;
    if let Some(url) = running() {
        return Ok(format!("running already: RELAYBUS_TEST_POSTGRES_URL={url}"));
    }
    let programs = install()?;
    // What a killed server left behind.
    let _ = fs::remove_dir_all(folder());
    let cluster = Cluster::create(programs, &folder(), SETTINGS)?;
    cluster.start()?;
    Ok(format!("started: RELAYBUS_TEST_POSTGRES_URL={}", cluster.url()))
}

/// Stops the server and forgets its data.
pub(crate) fn down() -> Outcome {
    let _lock = lock()?;
    let folder = folder();
    if !folder.exists() {
        return Ok("nothing was started".to_owned());
    }
    if let Some(cluster) = found() {
        cluster.stop("immediate")?;
    }
    fs::remove_dir_all(&folder)?;
    Ok("stopped".to_owned())
}

/// Tells where the server is.
pub(crate) fn status() -> Outcome {
    Ok(running().map_or_else(|| "not running".to_owned(), |url| format!("running: RELAYBUS_TEST_POSTGRES_URL={url}")))
}

/// The address of the server that runs in the folder.
pub(crate) fn running() -> Option<String> {
    found().map(|cluster| cluster.url())
}

fn found() -> Option<Cluster> {
    Cluster::running(cluster::programs()?, &folder())
}

fn folder() -> PathBuf {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "tests".to_owned());
    std::env::temp_dir().join(format!("relaybus-postgres-{user}"))
}
