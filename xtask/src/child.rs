//! Running a child so that its output appears at once and is read on the way.
//!
//! Only stdout is read; stderr goes straight to the terminal, where Cargo colours it. A child has no input: a step
//! that waits for a person would wait for ever on a build server.

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::leftovers::{self, Mark};
use crate::tally::Tally;

/// How long the output may stay open after the child has ended and its leftovers were stopped.
const CLOSING: Duration = Duration::from_secs(10);

/// What a child printed, and how it ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: Digest,
}

/// What is kept of a child's stdout.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    /// The tests it reported.
    pub(crate) tally: Tally,
    /// Its last line that is not blank.
    pub(crate) last_line: String,
    /// A line that has no end yet.
    open: Vec<u8>,
}

/// Runs `command` to its end, showing its output.
///
/// # Errors
///
/// When the child cannot be started, leaves processes behind (they are stopped), or something holds its output open.
pub(crate) fn run(command: &mut Command) -> Result<Finished, Box<dyn Error>> {
    let mark = Mark::unique();
    mark.put_on(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start `{}`: {error}", command.get_program().display()))?;
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || sender.send(copy(stdout, io::stdout())));
    }
    let status = child.wait()?;
    let early = receiver.recv_timeout(leftovers::GRACE);
    let left = mark.stop_all();
    let output = early.or_else(|_| receiver.recv_timeout(CLOSING)).map_err(
        |_| "a process that the step started still holds its output open: end it, then run the step again",
    )??;
    if left.is_empty() {
        Ok(Finished { status, output })
    } else {
        Err(format!("the step left processes behind, which are stopped now: {}", left.join(", ")).into())
    }
}

/// Copies `from` to `to` piece by piece, and digests it.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<Digest> {
    let mut digest = Digest::default();
    let mut buffer = [0; 8192];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        to.write_all(piece)?;
        to.flush()?;
        digest.take(piece);
    }
    digest.end_line();
    Ok(digest)
}

impl Digest {
    fn take(&mut self, piece: &[u8]) {
        for &byte in piece {
            if byte == b'\n' { self.end_line() } else { self.open.push(byte) }
        }
    }

    /// A line as a terminal would leave it: what follows the last carriage return.
    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.open);
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end().rsplit('\r').next().unwrap_or_default();
        self.tally.line(line);
        if !line.trim().is_empty() {
            line.clone_into(&mut self.last_line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::copy;

    #[test]
    fn output_is_copied_unchanged_and_digested() {
        let printed = b"10 %\r50 %\rdone\ntest result: ok. 2 passed; 0 failed; 0 ignored\n\n{\"events\":1}".as_slice();
        let mut shown = Vec::new();
        let digest = copy(printed, &mut shown).unwrap();
        assert_eq!(shown, printed);
        assert_eq!(digest.tally.passed, 2);
        assert_eq!(digest.last_line, "{\"events\":1}");
    }

    #[test]
    fn of_an_overwritten_line_the_last_text_counts() {
        let digest = copy(b"10 %\r50 %\rdone\r\n".as_slice(), Vec::new()).unwrap();
        assert_eq!(digest.last_line, "done");
    }

    #[test]
    fn bytes_that_are_not_text_do_no_harm() {
        let digest = copy(b"\xff\xfe\nend\n".as_slice(), Vec::new()).unwrap();
        assert_eq!(digest.last_line, "end");
    }

    /// Set for the process that `a_process_left_behind_is_stopped_and_named` leaves behind.
    const HELPER: &str = "RELAYBUS_XTASK_TEST_HELPER";

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_left_behind_is_stopped_and_named() {
        let myself = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "\"$0\" --exact child::tests::waits_when_left_behind --nocapture & echo started"]);
        let started = std::time::Instant::now();
        let error = super::run(command.arg(&myself).env(HELPER, "1")).err().unwrap().to_string();
        assert!(started.elapsed() < super::CLOSING, "the output was closed by the stop, not given up");
        assert!(error.contains("left processes behind"), "{error}");
        assert!(error.contains(&*myself.file_name().unwrap().to_string_lossy()), "{error}");
    }

    #[test]
    fn waits_when_left_behind() {
        if std::env::var_os(HELPER).is_some() {
            std::thread::park_timeout(std::time::Duration::from_secs(600));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_child_ends_with_its_status_and_sees_no_input() {
        let finished = super::run(std::process::Command::new("sh").args(["-c", "cat; echo ok; exit 3"])).unwrap();
        assert_eq!(finished.status.code(), Some(3));
        assert_eq!(finished.output.last_line, "ok");
    }
}
