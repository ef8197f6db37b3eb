//! Files that processes append whole lines to, and what a line says.
//!
//! A line is one `write` to a file opened for appending, so lines of several processes have one order and none is lost when its
//! writer is killed. A kill in the middle of a write may leave a part: a line begins with a line break and ends with a dot, and
//! what has no dot is not a line.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file to append to.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    /// Appends a line.
    pub(super) fn write(&self, line: &fmt::Arguments<'_>) {
        let text = format!("\n{line} .");
        let written = (&self.0).write(text.as_bytes());
        assert_eq!(written.expect("the journal can be written"), text.len(), "the journal took a part of a line");
    }

    /// Appends an entry of the journal.
    pub(super) fn enter(&self, process: u32, what: &What) {
        self.write(&format_args!("{} {process} {what}", now_micros()));
    }
}

fn now_micros() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros())
}

/// The whole lines of a file.
pub(super) fn lines(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.lines().filter_map(|line| line.strip_suffix(" .")).map(str::to_owned).collect()
}

/// The run of a handler that a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) handler: String,
    pub(super) event: String,
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) claims: i64,
    pub(super) attempt: u32,
}

/// What a line of the journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A handler starts.
    Start(Start),
    /// A handler is about to return success.
    Ok {
        handler: String,
        event: String,
    },
    /// A run ended with an error.
    Failed {
        handler: String,
        event: String,
        code: String,
    },
    /// A worker noticed that a lease was lost.
    Lost {
        handler: String,
        event: String,
    },
    /// The bus caught an error.
    Error {
        stage: String,
        message: String,
    },
    /// The process was started: its role and slot.
    Spawned {
        role: String,
        slot: u32,
    },
    /// The process kills itself.
    Abort,
    /// The parent kills it, stops it, lets it go on, asks it to end; it has ended.
    Kill,
    Stop,
    Continue,
    Terminate,
    Exit,
    /// The database's server is stopped, and answers again.
    ServerStops,
    ServerStarted,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(Start { handler, event, name, key, claims, attempt }) => {
                let key = key.as_deref().unwrap_or("-");
                write!(f, "start {handler} {event} {name} {key} {claims} {attempt}")
            }
            Self::Ok { handler, event } => write!(f, "ok {handler} {event}"),
            Self::Failed { handler, event, code } => write!(f, "failed {handler} {event} {code}"),
            Self::Lost { handler, event } => write!(f, "lost {handler} {event}"),
            Self::Error { stage, message } => write!(f, "error {stage} {}", message.replace(['\n', '\r'], " ")),
            Self::Spawned { role, slot } => write!(f, "spawned {role} {slot}"),
            Self::Abort => f.write_str("abort"),
            Self::Kill => f.write_str("kill"),
            Self::Stop => f.write_str("stop"),
            Self::Continue => f.write_str("continue"),
            Self::Terminate => f.write_str("terminate"),
            Self::Exit => f.write_str("exit"),
            Self::ServerStops => f.write_str("server-stops"),
            Self::ServerStarted => f.write_str("server-started"),
        }
    }
}

/// A line of the journal.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) micros: u64,
    pub(super) process: u32,
    pub(super) what: What,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.micros as f64 / 1e6;
        write!(f, "{:>9.3} process {:>3} {}", seconds % 10_000.0, self.process, self.what)
    }
}

impl Line {
    /// `None` for what is not a line.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let micros = words.next()?.parse().ok()?;
        let process = words.next()?.parse().ok()?;
        let what = what(&words.collect::<Vec<_>>())?;
        Some(Self { micros, process, what })
    }

    /// The event that it tells of.
    pub(super) fn event(&self) -> Option<&str> {
        match &self.what {
            What::Start(start) => Some(&start.event),
            What::Ok { event, .. } | What::Failed { event, .. } | What::Lost { event, .. } => Some(event),
            _ => None,
        }
    }

    /// Whether it tells of a handler's runs of a key, or of what became of a process.
    pub(super) fn concerns_key(&self, handler: &str, key: &str) -> bool {
        match &self.what {
            What::Start(start) => start.handler == handler && start.key.as_deref() == Some(key),
            What::Ok { .. } | What::Failed { .. } => false,
            _ => true,
        }
    }
}

fn what(words: &[&str]) -> Option<What> {
    let own = |word: &str| word.to_owned();
    Some(match *words {
        ["start", handler, event, name, key, claims, attempt] => What::Start(Start {
            handler: own(handler),
            event: own(event),
            name: own(name),
            key: (key != "-").then(|| own(key)),
            claims: claims.parse().ok()?,
            attempt: attempt.parse().ok()?,
        }),
        ["ok", handler, event] => What::Ok { handler: own(handler), event: own(event) },
        ["failed", handler, event, code] => What::Failed { handler: own(handler), event: own(event), code: own(code) },
        ["lost", handler, event] => What::Lost { handler: own(handler), event: own(event) },
        ["error", stage, ref message @ ..] => What::Error { stage: own(stage), message: message.join(" ") },
        ["spawned", role, slot] => What::Spawned { role: own(role), slot: slot.parse().ok()? },
        ["abort"] => What::Abort,
        ["kill"] => What::Kill,
        ["stop"] => What::Stop,
        ["continue"] => What::Continue,
        ["terminate"] => What::Terminate,
        ["exit"] => What::Exit,
        ["server-stops"] => What::ServerStops,
        ["server-started"] => What::ServerStarted,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_torn_lines_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        let start = Start {
            handler: "note".to_owned(),
            event: "e-1".to_owned(),
            name: "1.2.3".to_owned(),
            key: None,
            claims: 4,
            attempt: 5,
        };
        journal.enter(7, &What::Start(start.clone()));
        (&journal.0).write_all(b"\n12 7 ok note e-").unwrap();
        let error = What::Error { stage: "claim".to_owned(), message: "database is locked".to_owned() };
        journal.enter(8, &error);
        let read: Vec<Line> = lines(&path).iter().map(|line| Line::parse(line).unwrap()).collect();
        assert_eq!(read.iter().map(|line| line.process).collect::<Vec<_>>(), [7, 8]);
        assert_eq!((&read[0].what, &read[1].what), (&What::Start(start), &error));
    }
}
