//! A PostgreSQL server in a folder, run by the programs of the distribution. The crash test has one of its own by this file too.
//!
//! PostgreSQL refuses to run as root: then the server runs as the user `postgres` that the package made.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io::{Error, Result};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where distributions put the programs, by version.
const ROOT: &str = "/usr/lib/postgresql";

/// The programs of the newest version that is installed.
pub(crate) fn programs() -> Option<PathBuf> {
    let version =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok());
    let mut found: Vec<PathBuf> =
        fs::read_dir(ROOT).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.join("bin/initdb").exists());
    found.sort_by_key(version);
    found.pop().map(|path| path.join("bin"))
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// A server and its data.
#[derive(Debug)]
pub(crate) struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Cluster {
    /// Makes the data of a server that listens on a free port of this machine, in a folder that is not there yet.
    ///
    /// # Errors
    /// When a program of PostgreSQL fails.
    pub(crate) fn create(programs: PathBuf, folder: &Path, settings: &str) -> Result<Self> {
        fs::create_dir_all(folder)?;
        own(folder)?;
        run(Command::new("chmod").arg("700").arg(folder))?;
        let port = free_port()?;
        let cluster = Self { programs, folder: folder.to_owned(), port };
        let options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "--no-instructions"];
        run(as_server(&cluster.programs.join("initdb")).arg("-D").arg(cluster.data()).args(options))?;
        let address = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\n",
            folder.display()
        );
        run(as_server(Path::new("sh"))
            .args(["-c", "cat >> \"$1\"/postgresql.conf <<END\n$2\nEND", "sh"])
            .arg(cluster.data())
            .arg(format!("{settings}{address}")))?;
        Ok(cluster)
    }

    /// The server that runs in a folder.
    pub(crate) fn running(programs: PathBuf, folder: &Path) -> Option<Self> {
        let file = fs::read_to_string(folder.join("data/postmaster.pid")).ok()?;
        let mut lines = file.lines();
        let process = lines.next()?;
        let port = lines.nth(2)?.parse().ok()?;
        // After a crash the number may be another program's.
        let name = fs::read_to_string(Path::new("/proc").join(process).join("comm")).unwrap_or_default();
        name.trim().starts_with("postgres").then(|| Self { programs, folder: folder.to_owned(), port })
    }

    /// The address for clients.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts it, and returns when it answers.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn start(&self) -> Result<()> {
        run(self.control().arg("-l").arg(self.folder.join("log")).args(["-w", "start"]))
    }

    /// Starts it where `mounts`, a text for the shell, has mounted what only this server sees. `false` when that is not allowed.
    ///
    /// # Errors
    /// When the server does not start.
    #[allow(dead_code, reason = "a test of full disks shares this file")]
    pub(crate) fn start_after(&self, mounts: &str) -> Result<bool> {
        let apart = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", script, "sh"]);
            command
        };
        if run(&mut apart(mounts)).is_err() {
            return Ok(false);
        }
        let mut start = self.control();
        start.arg("-l").arg(self.folder.join("log")).args(["-w", "start"]);
        let mut command = apart(&format!("{mounts} && exec \"$@\""));
        // Its output would be open as long as the server runs.
        command.arg(start.get_program()).args(start.get_args()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.current_dir("/").stdin(Stdio::null()).status()?;
        if status.success() { Ok(true) } else { Err(Error::other(format!("the server does not start: {status}"))) }
    }

    /// Stops it: `fast` ends transactions and says goodbye, `immediate` is as if its processes were killed.
    ///
    /// # Errors
    /// When it still runs.
    pub(crate) fn stop(&self, mode: &str) -> Result<()> {
        run(self.control().args(["-m", mode, "-w", "stop"]))
    }

    /// Who stops the server when the answer is dropped or this process ends, in whatever way.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn keeper(&self) -> Result<Keeper> {
        let mut stop = self.control();
        stop.args(["-m", "immediate", "-w", "stop"]);
        // It reads until this process closes its end, which happens in every death. Signals of the terminal are not for it.
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "trap '' INT HUP TERM; cat; \"$@\"", "sh"]).arg(stop.get_program()).args(stop.get_args());
        let child =
            keeper.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Keeper(child))
    }

    fn control(&self) -> Command {
        let mut command = as_server(&self.programs.join("pg_ctl"));
        command.arg("-D").arg(self.data());
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

/// Stops a server; see [`Cluster::keeper`].
#[derive(Debug)]
pub(crate) struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // What it could not stop is found by whoever looks for what a test left behind.
        let _ = self.0.wait();
    }
}

/// A port that nobody listens on, below those that the system gives to whoever asks for any: a server that is restarted finds it
/// free again.
///
/// # Errors
/// When many are taken.
pub(crate) fn free_port() -> Result<u16> {
    const PORTS: std::ops::Range<u16> = 20_000..32_000;
    let mut last = Error::other("no port was tried");
    for attempt in 0..100_u32 {
        let chance = RandomState::new().hash_one((std::process::id(), attempt)) % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(chance).unwrap_or_default();
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Gives a folder and what is in it to the server's user.
///
/// # Errors
/// When that is not possible.
pub(crate) fn own(folder: &Path) -> Result<()> {
    if is_root() { run(Command::new("chown").args(["-R", "postgres:postgres"]).arg(folder)) } else { Ok(()) }
}

/// A command that runs as the server's user.
pub(crate) fn as_server(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

/// Runs a command to its end, without the caller's folder and input.
///
/// # Errors
/// What it said when it failed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.current_dir("/").stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr })
        .trim()
        .to_owned();
    Err(Error::other(format!("`{}` ended with {}: {words}", command.get_program().display(), output.status)))
}
