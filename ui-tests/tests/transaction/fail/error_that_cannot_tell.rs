//! An error of which nobody knows whether it is a serialization failure.

use relaybus::memory::MemoryTransaction;
use relaybus::{Error, transaction};

struct AppError;

impl From<Error> for AppError {
    fn from(_: Error) -> Self {
        Self
    }
}

#[transaction(isolation = "serializable")]
async fn place(_: &mut MemoryTransaction) -> Result<(), AppError> {
    Ok(())
}

fn main() {}
