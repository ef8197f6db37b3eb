//! A PgBouncer in transaction mode, in front of a server. The tests of the PostgreSQL store have theirs by this file.

use std::fs;
use std::io::{Error, Result};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::cluster::{as_server, free_port, own};

/// Where distributions put the program.
const PROGRAMS: [&str; 2] = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// The program, where it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    PROGRAMS.iter().map(PathBuf::from).find(|path| path.exists())
}

/// A running pooler. It ends with the value, and with this process, in whatever way that ends.
#[derive(Debug)]
pub(crate) struct Pooler {
    keeper: Child,
    port: u16,
}

impl Pooler {
    /// Starts one in a folder of its own, which goes with it, in front of the server at `host` and `port`; `settings` are more lines of its file. Each
    /// transaction gets another session than the one before, as far as there are some.
    ///
    /// # Errors
    /// When the program fails.
    pub(crate) fn start(program: &Path, folder: &Path, server: (&str, u16), settings: &str) -> Result<Self> {
        let port = free_port()?;
        fs::create_dir(folder)?;
        let (file, log) = (folder.join("pgbouncer.ini"), folder.join("pgbouncer.log"));
        let text = format!(
            "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nlogfile = {}\nauth_type = any\npool_mode = transaction\nmax_client_conn = 2000\n\
             default_pool_size = 20\nserver_round_robin = 1\n{settings}\n",
            server.0,
            server.1,
            log.display()
        );
        fs::write(&file, text)?;
        own(folder)?;
        let mut command = as_server(program);
        command.arg("-q").arg(&file);
        // The shell reads until this process closes its end, which happens in every death.
        let mut keeper = Command::new("sh");
        keeper.args([
            "-c",
            "trap '' INT HUP TERM; f=$1; shift; \"$@\" & cat; kill -KILL $!; wait; rm -rf \"$f\"",
            "sh",
        ]);
        keeper.arg(folder).arg(command.get_program()).args(command.get_args()).current_dir("/");
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let pooler = Self { keeper: keeper.spawn()?, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(Error::other(format!("`{}` does not start: {}", program.display(), said.trim())));
            }
            // sleep: a program from elsewhere tells nobody when it listens.
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(pooler)
    }

    /// The port for clients.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
