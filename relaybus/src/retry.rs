//! Retries: capped exponential backoff with full jitter.
//!
//! A pure function of the policy, the number of failed attempts and a random number; it knows no clock.

use std::time::Duration;

use crate::error::{Error, Result};

/// How often and how far apart a failed delivery is tried again.
///
/// Defaults: 10 attempts, 1 s initial delay, factor 2, at most 10 min.
///
/// ```
/// use std::time::Duration;
/// use relaybus::RetryPolicy;
/// let policy = RetryPolicy { attempts: Some(5), ..RetryPolicy::default() };
/// assert_eq!(policy.ceiling(1), Duration::from_secs(1));
/// assert_eq!(policy.ceiling(3), Duration::from_secs(4));
/// assert_eq!(policy.ceiling(1000), Duration::from_secs(600));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; `None` retries without end.
    pub attempts: Option<u32>,
    /// Longest delay before the second attempt.
    pub initial_delay: Duration,
    /// What the longest delay is multiplied by after each further failure. At least 1.
    pub factor: f64,
    /// The cap of the delay.
    pub max_delay: Duration,
}

/// Attempts of a handler without a policy of its own.
pub const DEFAULT_ATTEMPTS: u32 = 10;
/// First delay without a policy.
pub const DEFAULT_INITIAL_DELAY: Duration = Duration::from_secs(1);
/// Growth without a policy.
pub const DEFAULT_FACTOR: f64 = 2.0;
/// Longest delay without a policy.
pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(600);
/// Longest delay of a route without a policy.
pub const DEFAULT_ROUTE_MAX_DELAY: Duration = Duration::from_secs(300);

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: Some(DEFAULT_ATTEMPTS),
            initial_delay: DEFAULT_INITIAL_DELAY,
            factor: DEFAULT_FACTOR,
            max_delay: DEFAULT_MAX_DELAY,
        }
    }
}

impl RetryPolicy {
    /// The policy of a route without one: no limit of attempts, 1 s, factor 2, at most 5 min.
    #[must_use]
    pub fn route_default() -> Self {
        Self { attempts: None, max_delay: DEFAULT_ROUTE_MAX_DELAY, ..Self::default() }
    }

    /// This policy with what `overrides` sets.
    #[must_use]
    pub fn overridden(self, overrides: &RetryOverrides) -> Self {
        Self {
            attempts: match overrides.attempts {
                Some(Attempts::Limited(attempts)) => Some(attempts),
                Some(Attempts::Unlimited) => None,
                None => self.attempts,
            },
            initial_delay: overrides.initial_delay.unwrap_or(self.initial_delay),
            factor: overrides.factor.unwrap_or(self.factor),
            max_delay: overrides.max_delay.unwrap_or(self.max_delay),
        }
    }

    /// Checks the policy; `whose` names it in the message.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` for no attempts, a factor that is not a finite number of at least 1, or a cap below the
    /// initial delay.
    pub fn validate(&self, whose: &str) -> Result<()> {
        let refuse = |what: String| Err(Error::configuration(format!("{whose}: {what}")));
        if self.attempts == Some(0) {
            return refuse("`attempts` is 0, expected at least 1".to_owned());
        }
        if !(self.factor.is_finite() && self.factor >= 1.0) {
            return refuse(format!("`factor` is {}, expected a finite number of at least 1", self.factor));
        }
        if self.initial_delay < Duration::from_millis(1) {
            return refuse(format!(
                "`initial_delay` is {:?}, expected at least 1ms so that a failing handler cannot spin",
                self.initial_delay
            ));
        }
        if self.max_delay < self.initial_delay {
            return refuse(format!(
                "`max_delay` ({:?}) is below `initial_delay` ({:?}), expected at least as much",
                self.max_delay, self.initial_delay
            ));
        }
        Ok(())
    }

    /// The longest delay after `failures` failed attempts (1 after the first).
    #[must_use]
    pub fn ceiling(&self, failures: u32) -> Duration {
        let exponent = f64::from(failures.saturating_sub(1));
        // In floating point the power saturates at infinity, which the cap turns into `max_delay`; a product of
        // integers would overflow at some attempt.
        let seconds = self.initial_delay.as_secs_f64() * self.factor.powf(exponent);
        let cap = self.max_delay.as_secs_f64();
        if seconds >= cap || seconds.is_nan() { self.max_delay } else { Duration::from_secs_f64(seconds) }
    }

    /// The delay after `failures` failed attempts: uniformly between zero and the ceiling ("full jitter"), for a
    /// random number in `0.0..1.0`.
    #[must_use]
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let ceiling = self.ceiling(failures);
        // Not a number counts as no jitter, and what is too long to represent as the ceiling itself.
        let share = if random.is_nan() { 1.0 } else { random.clamp(0.0, 1.0) };
        Duration::try_from_secs_f64(ceiling.as_secs_f64() * share).unwrap_or(ceiling).min(ceiling)
    }

    /// Whether another attempt is allowed after `failures` failed ones.
    #[must_use]
    pub fn allows_another(&self, failures: u32) -> bool {
        self.attempts.is_none_or(|attempts| failures < attempts)
    }
}

/// How many attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// At most this many, the first included.
    Limited(u32),
    /// Without end.
    Unlimited,
}

/// What a handler sets of the retry policy; the rest comes from the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetryOverrides {
    /// See [`RetryPolicy::attempts`].
    pub attempts: Option<Attempts>,
    /// See [`RetryPolicy::initial_delay`].
    pub initial_delay: Option<Duration>,
    /// See [`RetryPolicy::factor`].
    pub factor: Option<f64>,
    /// See [`RetryPolicy::max_delay`].
    pub max_delay: Option<Duration>,
}

impl RetryOverrides {
    /// Nothing set.
    pub const NONE: Self = Self { attempts: None, initial_delay: None, factor: None, max_delay: None };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_its_bounds_at_any_attempt() {
        let policy = RetryPolicy {
            attempts: None,
            initial_delay: Duration::from_millis(100),
            factor: 2.0,
            max_delay: Duration::from_secs(30),
        };
        let chance = crate::task::Chance::seeded(1);
        for failures in [0, 1, 2, 31, 32, 63, 64, 65, 1000, u32::MAX] {
            let mut sum = Duration::ZERO;
            for _ in 0..10_000 {
                let delay = policy.delay(failures, chance.unit());
                assert!(delay <= policy.ceiling(failures) && delay <= policy.max_delay);
                sum += delay;
            }
            if failures > 31 {
                let mean = sum.as_secs_f64() / 10_000.0;
                assert!((14.0..16.0).contains(&mean), "full jitter at the cap has mean cap/2, got {mean}");
            }
        }
    }

    #[test]
    fn refuses_policies_that_make_no_sense() {
        let good = RetryPolicy::default();
        assert!(good.validate("retry").is_ok());
        let bad = [
            RetryPolicy { attempts: Some(0), ..good },
            RetryPolicy { factor: f64::NAN, ..good },
            RetryPolicy { factor: f64::INFINITY, ..good },
            RetryPolicy { factor: 0.0, ..good },
            RetryPolicy { factor: -1.0, ..good },
            RetryPolicy { initial_delay: Duration::ZERO, ..good },
            RetryPolicy { max_delay: Duration::from_millis(1), ..good },
        ];
        for policy in bad {
            assert_eq!(policy.validate("retry").unwrap_err().code(), "RELAYBUS_CONFIGURATION");
        }
        let huge = RetryPolicy { factor: 1e300, ..good };
        assert!(huge.validate("retry").is_ok());
        assert_eq!(huge.ceiling(5), good.max_delay);
    }

    #[test]
    fn any_random_number_gives_a_delay_within_the_ceiling() {
        let longest = RetryPolicy { initial_delay: Duration::MAX, max_delay: Duration::MAX, ..RetryPolicy::default() };
        for policy in [RetryPolicy::default(), longest] {
            for random in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 0.5, 1.0, 2.0] {
                assert!(policy.delay(3, random) <= policy.ceiling(3), "{random}");
            }
        }
    }

    #[test]
    fn overrides_keep_what_they_do_not_name() {
        let overrides = RetryOverrides { attempts: Some(Attempts::Unlimited), ..RetryOverrides::NONE };
        let policy = RetryPolicy::default().overridden(&overrides);
        assert_eq!(policy, RetryPolicy { attempts: None, ..RetryPolicy::default() });
    }
}
