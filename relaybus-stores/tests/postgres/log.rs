//! What is logged on the thread of a test.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// Collects warnings until it is dropped.
pub struct Warnings {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Warnings {
    pub fn collect() -> Self {
        // Of one subscriber alone, `tracing` asks the thread that comes by a warning first, which may be another test's, and never
        // again; of two it asks both.
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Capture(Arc::default())));
        LazyLock::force(&SECOND);
        let lines = Arc::<Mutex<Vec<String>>>::default();
        Self { lines: Arc::clone(&lines), _guard: tracing::subscriber::set_default(Capture(lines)) }
    }

    /// How many say this.
    pub fn count(&self, words: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line.contains(words)).count()
    }
}

struct Capture(Arc<Mutex<Vec<String>>>);

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

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}
