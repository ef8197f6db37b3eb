//! A handler's future under guard: panics become failed attempts, time is limited, cancellation drops it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::trace::TraceSpan;

/// How a guarded future ended without an answer of its own.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// Its time was up.
    TimedOut(Duration),
    /// It was cancelled from outside.
    Cancelled,
}

/// Polls `future` until it answers, its timeout passes or `cancel` is called. The future is dropped before this returns, so
/// that a retry can never overlap an abandoned run.
///
/// A handler that is ready at its first poll costs no timer.
pub(crate) async fn guarded<F>(
    future: F,
    timeout: Option<Duration>,
    clock: &dyn Clock,
    cancel: &CancellationToken,
    span: Option<&dyn TraceSpan>,
) -> std::result::Result<Result<()>, Interrupted>
where
    F: Future<Output = Result<()>> + Send + Unpin,
{
    let mut caught = Caught { future, span };
    let first = std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut caught).poll(context))).await;
    if let Poll::Ready(answer) = first {
        return unless_cancelled(answer, cancel);
    }
    let Some(timeout) = timeout else {
        return tokio::select! {
            biased;
            answer = &mut caught => unless_cancelled(answer, cancel),
            () = cancel.cancelled() => Err(Interrupted::Cancelled),
        };
    };
    let timer = clock.sleep(timeout);
    tokio::select! {
        biased;
        answer = &mut caught => unless_cancelled(answer, cancel),
        () = cancel.cancelled() => Err(Interrupted::Cancelled),
        () = timer => Err(Interrupted::TimedOut(timeout)),
    }
}

/// A handler that was cancelled and says so with an error was cancelled: its attempt is not charged for the stop.
fn unless_cancelled(answer: Result<()>, cancel: &CancellationToken) -> std::result::Result<Result<()>, Interrupted> {
    if answer.is_err() && cancel.is_cancelled() { Err(Interrupted::Cancelled) } else { Ok(answer) }
}

struct Caught<'a, F> {
    future: F,
    span: Option<&'a dyn TraceSpan>,
}

impl<F: Future<Output = Result<()>> + Unpin> Future for Caught<'_, F> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        let future = &mut this.future;
        // After a panic the future is never polled again: its owner drops it.
        let polled = catch_unwind(AssertUnwindSafe(|| match this.span {
            None => Pin::new(future).poll(context),
            Some(span) => {
                let mut answer = Poll::Pending;
                span.in_scope(&mut || answer = Pin::new(&mut *future).poll(context));
                answer
            }
        }));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(panicked(panic))))
    }
}

/// Runs a synchronous part of a handler (taking its arguments, decoding) under the same guard against panics.
pub(crate) fn guarded_sync<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(panic)))
}

/// The error of an attempt that panicked.
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Error {
    Error::HandlerPanicked { message: panic_text(panic) }
}

/// The text of a panic.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    dropped(panic);
    text
}

/// Drops a value of the handler's, which may panic over it.
pub(super) fn dropped<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // Its own drop may panic again, without end.
        std::mem::forget(panic);
    }
}
