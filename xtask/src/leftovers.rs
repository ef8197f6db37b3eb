//! Processes that outlive the step that started them: tests start worker processes, and a failing test may lose one.
//!
//! Every child carries a mark in its environment, which its own children inherit. What still runs with the mark after
//! the step, and is a program of this workspace, is left over. Programs from elsewhere (a compiler cache that Cargo
//! started) are nobody's mistake and stay. Only where `/proc` exists; elsewhere nothing is found.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::workspace;

/// How long a process may take to end after the step that started it.
pub(crate) const GRACE: Duration = Duration::from_millis(300);

/// The environment variable that carries the mark.
const VARIABLE: &str = "RELAYBUS_XTASK_RUN";

/// What tells the processes of one child from all others.
pub(crate) struct Mark(String);

impl Mark {
    /// A mark that no other child has.
    pub(crate) fn unique() -> Self {
        static CHILDREN: AtomicUsize = AtomicUsize::new(0);
        Self(format!("{}-{}", std::process::id(), CHILDREN.fetch_add(1, Ordering::Relaxed)))
    }

    /// Marks a command before it is started.
    pub(crate) fn put_on(&self, command: &mut Command) {
        command.env(VARIABLE, &self.0);
    }

    /// Stops what is left over, and names it.
    pub(crate) fn stop_all(&self) -> Vec<String> {
        if self.find().is_empty() {
            return Vec::new();
        }
        std::thread::sleep(GRACE);
        let left = self.find();
        for (id, _) in &left {
            // One that ended meanwhile makes `kill` fail, and is no concern any more.
            let _ = Command::new("kill").args(["-KILL", id]).stderr(Stdio::null()).status();
        }
        left.into_iter().map(|(id, program)| format!("{program} (process {id})")).collect()
    }

    fn find(&self) -> Vec<(String, String)> {
        let mark = format!("{VARIABLE}={}", self.0);
        let target = workspace::target();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes
            .filter_map(|process| {
                let id = process.file_name().into_string().ok()?;
                let program = fs::read_link(process.path().join("exe")).ok()?;
                let environment = fs::read(process.path().join("environ")).ok()?;
                let name = program.file_name()?.to_string_lossy().into_owned();
                let counts = id.parse::<u32>().is_ok() && is_ours(&program, &environment, &target, &mark);
                counts.then_some((id, name))
            })
            .collect()
    }
}

fn is_ours(program: &Path, environment: &[u8], target: &Path, mark: &str) -> bool {
    program.starts_with(target) && environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_ours;

    #[test]
    fn only_marked_programs_of_the_workspace_are_left_over() {
        let target = Path::new("/project/target");
        let worker = Path::new("/project/target/debug/worker");
        let marked = b"PATH=/bin\0RELAYBUS_XTASK_RUN=7\0".as_slice();
        let mark = "RELAYBUS_XTASK_RUN=7";
        assert!(is_ours(worker, marked, target, mark));
        assert!(!is_ours(worker, marked, target, "RELAYBUS_XTASK_RUN=71"));
        assert!(!is_ours(worker, b"PATH=/bin\0", target, mark));
        assert!(!is_ours(Path::new("/usr/bin/cache"), marked, target, mark));
    }
}
