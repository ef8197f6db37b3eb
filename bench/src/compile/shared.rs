//! What both styles have in common: names, and the payloads.

use std::fmt::Write as _;

/// The name of a catalog.
pub(super) fn catalog(c: usize) -> String {
    format!("Domain{c:02}")
}

/// The name of an event.
pub(super) fn event(c: usize, e: usize) -> String {
    format!("Domain{c:02}Event{e:02}")
}

/// Its name in snake case.
pub(super) fn snake(c: usize, e: usize) -> String {
    format!("domain{c:02}_event{e:02}")
}

/// Its event type.
pub(super) fn event_type(c: usize, e: usize) -> String {
    format!("domain{c:02}.event{e:02}.v1")
}

/// The fields of every event, and what counts them.
pub(super) const COUNTS: &str = "
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Counts(AtomicU64);

impl Counts {
    fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }
}
";

/// The payload type of an event, with these attributes.
pub(super) fn payload(text: &mut String, derives: &str, attribute: &str, name: &str) {
    let _ = writeln!(
        text,
        "#[derive(Clone, Debug, {derives})]\n{attribute}\npub struct {name} {{\n    pub id: String,\n    \
         pub amount: u64,\n    pub note: Option<String>,\n    pub tags: Vec<String>,\n}}"
    );
}

/// `main`: builds the bus that `build` makes, starts it and prints how long that took.
pub(super) const MAIN: &str = "
fn main() -> Result<(), relaybus::BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let began = std::time::Instant::now();
        let bus = build()?;
        bus.start().await?;
        println!(\"{}\", began.elapsed().as_micros());
        if let Some(event) = first_event() {
            publish(&bus, event).await?;
        }
        bus.stop().await?;
        Ok(())
    })
}
";
