//! Publishing: from a typed event to rows in the caller's transaction.
//!
//! The payload is serialized here, once, and never again. Everything that can be refused (validation, keys, text no store
//! can keep, unrouted events) is refused before the first statement, so that the caller's transaction stays usable.

mod batch;
mod prepare;
mod request;

pub use batch::EventBatch;
pub(crate) use prepare::Draft;
pub use request::{Publish, PublishAll};
