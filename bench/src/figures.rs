//! Figures: a name, a value and its unit, printed as a table or as JSON lines.

use crate::effort::Effort;

/// What a benchmark answers.
pub(crate) type Outcome = Result<Vec<Figure>, relaybus::BoxError>;

/// One measured value.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) name: String,
    /// The value.
    pub(crate) value: f64,
    /// Its unit: `per second`, `ratio`, `us`, `ms`.
    pub(crate) unit: &'static str,
}

impl Figure {
    /// A rate per second.
    pub(crate) fn rate(name: &str, value: f64) -> Self {
        Self { name: name.to_owned(), value, unit: "per second" }
    }

    /// A time in microseconds.
    pub(crate) fn micros(name: &str, value: f64) -> Self {
        Self { name: name.to_owned(), value, unit: "us" }
    }

    /// A piece of work: its time, and the processor's.
    pub(crate) fn effort(name: &str, effort: Effort) -> [Self; 2] {
        [Self::micros(name, effort.wall), Self::micros(&format!("{name}, processor"), effort.cpu)]
    }

    /// How much more a limit costs than ours, by time and by the processor's.
    pub(crate) fn ratios(name: &str, limit: Effort, ours: Effort) -> [Self; 2] {
        let by = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        [
            Self::ratio(name, by(limit.wall, ours.wall)),
            Self::ratio(&format!("{name}, processor"), by(limit.cpu, ours.cpu)),
        ]
    }

    /// A ratio to the raw limit or to a peer of the same run.
    pub(crate) fn ratio(name: &str, value: f64) -> Self {
        Self { name: name.to_owned(), value, unit: "ratio" }
    }
}
