//! What a scan notes.

use proc_macro2::TokenStream;

use crate::Path;
use crate::services::Service;

/// Something that a body does.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it does.
    pub what: What,
    /// How it is spelled.
    pub name: String,
    /// Its full path, where that is another.
    pub full: Option<String>,
    /// The tokens to point at.
    pub tokens: TokenStream,
    /// The transaction, of those the scan found, that it is in.
    pub region: Option<usize>,
}

impl Event {
    /// The name for a message, in backticks, with the full path where that says more.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.full {
            Some(full) => format!("`{}` (`{full}`)", self.name),
            None => format!("`{}`", self.name),
        }
    }
}

/// A kind of event.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A call to another service.
    External(&'static Service),
    /// An event is published outside of the transaction.
    Detached,
    /// A call of a function that may be one of the same crate.
    Call(Call),
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A function, by its full path.
    Function(Path),
    /// A method of one of these types, by their full paths.
    Method(Vec<Path>, String),
}

/// A transaction that a body opens.
#[derive(Clone, Debug)]
pub struct Region {
    /// How.
    pub kind: RegionKind,
    /// The tokens to point at.
    pub tokens: TokenStream,
}

/// How a body opens a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// The closure of `.transaction(..)`.
    Closure,
    /// `begin()`, up to its commit or rollback.
    ByHand,
    /// All of the body is in one.
    Whole,
}
