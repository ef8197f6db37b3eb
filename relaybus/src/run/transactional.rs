//! A transactional handler's attempt: its writes and the completion of its delivery commit together, or not at all.
//!
//! The completion is the fence. It is written last, in the handler's own transaction, and only under the token of this
//! claim: a worker that lost its lease cannot commit. A commit whose answer was lost is resolved by reading the
//! delivery again before anything else of its key starts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::attempt::{Attempt, ending_of};
use super::guarded::guarded_sync;
use super::middleware::call;
use super::outcome::Ending;
use crate::error::{Error, Result};
use crate::store::{
    AnyTransaction, CommitError, Completed, EventStore, LeaseState, RunPart, Settled, StoreTransaction,
    TransactionOptions, inside,
};

/// Wait between two looks at a delivery whose commit is in doubt, doubled up to the longest.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// Longest wait between two looks.
const LAST_LOOK: Duration = Duration::from_secs(1);

pub(super) async fn run_in_transaction(attempt: &Attempt<'_>, part: RunPart) -> Ending<Error> {
    // Decoding first: a payload that never decodes needs no transaction.
    let mut slot = match guarded_sync(|| attempt.decode_unless_layered()) {
        Ok(slot) => slot,
        Err(error) => return Ending::Failed(error),
    };
    let options = TransactionOptions { isolation: None, budget: attempt.spec.timeout, completes: true };
    let began = tokio::select! {
        biased;
        began = attempt.engine.store.begin(&options) => began,
        // The handler was never called.
        () = attempt.cancel.token.cancelled() => return Ending::Stopped,
    };
    let mut transaction = match began {
        Ok(transaction) => transaction,
        Err(error) => return Ending::Impossible(error),
    };
    let database = attempt.engine.store.database();
    let answer = if attempt.engine.middleware.is_none() {
        let future = call(attempt.spec, slot.as_mut(), attempt.context, attempt.states, Some(&mut transaction));
        inside(database, attempt.guard(future)).await
    } else {
        let travelling = Arc::new(Mutex::new(Some(transaction)));
        let answer = inside(database, attempt.guard(attempt.layered(travelling.clone()))).await;
        let Some(back) = travelling.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            // The handler was dropped half-way and its transaction with it.
            return match ending_of(answer, attempt.context, attempt.cancel) {
                Ending::Succeeded => Ending::Failed(lost_transaction()),
                ending => ending,
            };
        };
        transaction = back;
        answer
    };
    match ending_of(answer, attempt.context, attempt.cancel) {
        Ending::Succeeded => complete(attempt, transaction, part).await,
        ending => {
            // A failed rollback leaves nothing behind either: the store drops the connection.
            drop(transaction.rollback().await);
            ending
        }
    }
}

fn lost_transaction() -> Error {
    Error::configuration("a middleware layer kept the handler's transaction: it must run each call once and to its end")
}

async fn complete(attempt: &Attempt<'_>, mut transaction: AnyTransaction, part: RunPart) -> Ending<Error> {
    let completed = Completed::new(attempt.claimed.lease.clone(), part);
    let store = &attempt.engine.store;
    match store.complete_in(&mut transaction, &completed, attempt.engine.now()).await {
        Ok(Settled::Applied) => {}
        Ok(Settled::Gone | Settled::Lost) => {
            drop(transaction.rollback().await);
            return Ending::LeaseLost;
        }
        Err(error) => {
            let lost = transaction.is_lost();
            drop(transaction.rollback().await);
            return if lost { Ending::Broken(error) } else { not_completed(error) };
        }
    }
    match transaction.commit().await {
        Ok(()) => Ending::Committed,
        Err(CommitError::RolledBack(Error::LeaseLost)) => Ending::LeaseLost,
        Err(CommitError::RolledBack(error)) => not_completed(error),
        Err(CommitError::InDoubt(error)) => resolve(attempt, error).await,
    }
}

/// A handler that succeeded is not charged for a store that was out of order when its completion was to be written.
fn not_completed(error: Error) -> Ending<Error> {
    if matches!(error, Error::Store { retryable: true, .. }) {
        Ending::Impossible(error)
    } else {
        Ending::Failed(error)
    }
}

/// Finds out what became of a commit without an answer. Until it is known, nothing of the key may start, so this does not
/// give up while the worker lives.
async fn resolve(attempt: &Attempt<'_>, error: Error) -> Ending<Error> {
    let mut wait = FIRST_LOOK;
    loop {
        match inspect(attempt).await {
            Ok(LeaseState::Gone) => return Ending::FoundGone,
            Ok(LeaseState::Held) => return Ending::Broken(error),
            Ok(LeaseState::Lost) => return Ending::LeaseLost,
            Err(_) if attempt.cancel.token.is_cancelled() => return Ending::LeaseLost,
            Err(_) => {}
        }
        attempt.engine.clock.sleep(wait).await;
        wait = (wait * 2).min(LAST_LOOK);
    }
}

async fn inspect(attempt: &Attempt<'_>) -> Result<LeaseState> {
    attempt.engine.store.inspect(&attempt.claimed.lease).await
}
