//! What a handler may return.

use std::future::Future;

use futures_util::future::BoxFuture;

use crate::error::{BoxError, Error, Result};

/// What a handler may return: `()`, or `Result<(), E>` with any error.
#[diagnostic::on_unimplemented(
    message = "a consumer cannot return `{Self}`",
    label = "a consumer returns `()` or `Result<(), E>`",
    note = "`E` is any error: a type of your own, `relaybus::Error`, `anyhow::Error`, a boxed error or a text"
)]
pub trait HandlerOutput {
    /// The outcome of the attempt.
    ///
    /// # Errors
    /// The handler's.
    fn into_result(self) -> Result<()>;
}

impl HandlerOutput for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl<E: HandlerError> HandlerOutput for std::result::Result<(), E> {
    fn into_result(self) -> Result<()> {
        self.map_err(|error| Error::of_handler(error.into_box()))
    }
}

/// What a handler may fail with: whatever converts into a boxed error.
#[diagnostic::on_unimplemented(
    message = "a consumer cannot fail with `{Self}`",
    label = "not an error of a consumer",
    note = "the error of a consumer implements `std::error::Error`, `Send` and `Sync`, or it is a text, a boxed error or an `anyhow::Error`"
)]
pub trait HandlerError {
    /// The error, boxed.
    fn into_box(self) -> BoxError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> HandlerError for E {
    fn into_box(self) -> BoxError {
        self.into()
    }
}

/// Boxes a handler's future; named by generated code with the handler's return type, so that a wrong one is reported there.
pub fn boxed<'p, R, F>(future: F) -> BoxFuture<'p, Result<()>>
where
    R: HandlerOutput,
    F: Future<Output = R> + Send + 'p,
{
    Box::pin(async move { future.await.into_result() })
}
