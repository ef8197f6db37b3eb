//! Finds calls to other services inside transactions. One detection for the macros and for `cargo relaybus lint`.
//!
//! A transaction holds its row locks and a connection until it ends. A call to another service inside it makes every
//! other writer of those rows wait for that service, and it happens even when the transaction is rolled back.
//!
//! - [`Index`] digests the items of a file or of a whole crate: its imports, the fields of its types, its functions.
//! - [`Scan`] walks the tokens of one body and notes what it calls, and whether that is inside a transaction.
//! - [`Service`] is what is known about a crate that talks to another process.
//!
//! It knows names, not types: imports, aliases, parameters, fields, statics, patterns and `let`s are followed, and the
//! clients that functions of the same crate hand out; generics and other values that come back from functions are not. Bodies are read as tokens, because calls hide in the arguments of macros too.

mod allow;
mod binding;
mod event;
mod index;
mod names;
mod scan;
#[cfg(test)]
mod scan_tests;
mod services;
mod tokens;

pub use allow::{ALLOW, Allowed, without_allows};
pub use event::{Call, Event, Region, RegionKind, What};
pub use index::{Found, Function, Index, Outline};
pub use names::Names;
pub use scan::Scan;
pub use services::{Service, client_of, service_of};

/// A path, as its segments.
pub type Path = Vec<String>;
