//! Running one delivery: decode, middleware, handler, timeout; and the one place that turns its result into what happens next.

mod attempt;
mod guarded;
mod middleware;
mod outcome;
mod transactional;

pub(crate) use attempt::{Cancel, CancelSource, run_delivery};
pub(crate) use guarded::panic_text;
pub use middleware::HandlerCall;
pub(crate) use middleware::Middleware;
pub(crate) use outcome::{Ending, Failure, Outcome, judge};
