//! Durations as text: `"250ms"`, `"30s"`, `"5m"`, `"1h"`, `"7d"`, in attributes, options and files.

use std::time::Duration;

use crate::error::{Error, Result};

/// Reads a duration written as a whole number and a unit: `ms`, `s`, `m`, `h` or `d`.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(relaybus::parse_duration("250ms")?, Duration::from_millis(250));
/// assert_eq!(relaybus::parse_duration("7d")?, Duration::from_secs(7 * 24 * 3600));
/// assert!(relaybus::parse_duration("soon").is_err());
/// # Ok::<(), relaybus::Error>(())
/// ```
///
/// # Errors
/// `RELAYBUS_CONFIGURATION` when the text is no such duration or too long to represent.
pub fn parse_duration(text: &str) -> Result<Duration> {
    parse(text).ok_or_else(|| {
        Error::configuration(format!(
            "`{text}` is not a duration: write a whole number and one of `ms`, `s`, `m`, `h`, `d`, such as `250ms` or `7d`"
        ))
    })
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

/// What an option that takes a duration accepts: a [`Duration`], or text such as `"250ms"`.
pub trait IntoDuration {
    /// The duration.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when text is not a duration.
    fn into_duration(self) -> Result<Duration>;
}

impl IntoDuration for Duration {
    fn into_duration(self) -> Result<Duration> {
        Ok(self)
    }
}

impl IntoDuration for &str {
    fn into_duration(self) -> Result<Duration> {
        parse_duration(self)
    }
}

impl IntoDuration for String {
    fn into_duration(self) -> Result<Duration> {
        parse_duration(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, millis) in
            [("0ms", 0), ("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("7d", 604_800_000)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "5",
            "ms",
            "-5s",
            "1.5s",
            "5 s",
            " 5s",
            "5s ",
            "5S",
            "5min",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
