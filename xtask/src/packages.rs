//! Programs that the distribution has: found, or installed where that is possible.
//!
//! On a machine of one's own nothing is installed without being asked: only root installs, which is who runs in a container
//! or on a build server. Everybody else is told what to type.

use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};

use crate::cluster::is_root;

/// What `find` finds, after installing `package` when it finds nothing.
///
/// # Errors
///
/// When it is not there and cannot be installed; `otherwise` tells what else can be done.
pub(crate) fn ensure<T>(package: &str, otherwise: &str, find: impl Fn() -> Option<T>) -> Result<T, Box<dyn Error>> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let advice = format!("install it (`apt-get install {package}`), or {otherwise}");
    if !is_root() {
        return Err(format!("`{package}` is not installed: {advice}").into());
    }
    println!("installing `{package}` by apt-get");
    install(package).map_err(|error| format!("`{package}` could not be installed ({error}): {advice}"))?;
    find().ok_or_else(|| format!("`{package}` was installed, but its programs are not where they should be").into())
}

fn install(package: &str) -> Result<(), Box<dyn Error>> {
    apt(&["update", "-q"])?;
    let quiet = NoCluster::new();
    let installed = apt(&["install", "-q", "-y", "--no-install-recommends", package]);
    drop(quiet);
    installed
}

/// Debian's packages of PostgreSQL start a server of their own, which nobody here wants.
struct NoCluster {
    made: bool,
}

impl NoCluster {
    const FOLDER: &str = "/etc/postgresql-common/createcluster.d";
    const FILE: &str = "/etc/postgresql-common/createcluster.d/zz-relaybus-tests.conf";

    /// Without it the packages install too, with one more server: a failure here is none.
    fn new() -> Self {
        let made = fs::create_dir_all(Self::FOLDER)
            .and_then(|()| fs::write(Self::FILE, "create_main_cluster = false\nstart_conf = 'manual'\n"));
        Self { made: made.is_ok() }
    }
}

impl Drop for NoCluster {
    fn drop(&mut self) {
        if self.made {
            // Left behind it would only keep later clusters from being made, which its name explains.
            let _ = fs::remove_file(Self::FILE);
        }
    }
}

fn apt(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let output = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`apt-get` cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("`apt-get {}` ended with {}: {words}", arguments.join(" "), output.status).into())
}

#[cfg(test)]
mod tests {
    use super::ensure;
    use crate::cluster::is_root;

    #[test]
    fn what_is_there_is_not_installed() {
        assert_eq!(ensure("no-such-package", "do without", || Some(3)).unwrap(), 3);
    }

    #[test]
    fn who_is_not_root_is_told_what_to_do() {
        if is_root() {
            return;
        }
        let error = ensure::<()>("no-such-package", "set A_VARIABLE", || None).unwrap_err().to_string();
        assert!(error.contains("apt-get install no-such-package") && error.contains("set A_VARIABLE"), "{error}");
    }
}
