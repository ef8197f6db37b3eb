//! How the PostgreSQL store waits for its server; the tasks and waits themselves are those of every store.

use std::time::Duration;

pub(super) use crate::background::{AbortOnDrop, pause, spawn, to_its_end, within};

/// How long a connection may take to open, and a test to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
