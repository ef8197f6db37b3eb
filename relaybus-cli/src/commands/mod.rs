//! The commands, one module each, and what they know of packages.

pub(crate) mod catalog;
pub(crate) mod lint;
mod packages;
