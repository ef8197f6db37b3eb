//! What is logged while a test runs, on its own thread.

use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// The lines logged since it was made, at `warn` and above, as `message field=value ..`.
pub(crate) struct Logged {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Logged {
    pub(crate) fn capture() -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        Self { lines: lines.clone(), _guard: tracing::subscriber::set_default(Capture(lines)) }
    }

    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        self.lines.lock().unwrap().iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

struct Capture(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.insert_str(0, &format!("{value:?}"));
        } else {
            self.0.push_str(&format!(" {}={value:?}", field.name()));
        }
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
