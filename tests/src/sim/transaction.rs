//! Transactions of the simulated store: what they stage is recorded when it commits.

use std::any::{Any, TypeId};
use std::sync::Arc;

use relaybus::Error;
use relaybus::memory::MemoryTransaction;
use relaybus::store::{CommitError, Completed, Family, HandleOf, NewEvent, StoreTransaction};

use super::Mutation;
use super::process::Process;

/// The family of the simulated store.
#[derive(Debug)]
pub(crate) enum Simulated {}

impl Family for Simulated {
    type Handle<'c> = &'c mut SimTransaction;
    const NAME: &'static str = "simulated";
}

/// A transaction, with what it staged.
pub(crate) struct SimTransaction {
    pub(super) inner: MemoryTransaction,
    pub(super) process: Arc<Process>,
    pub(super) events: Vec<NewEvent>,
    pub(super) completed: Vec<Completed>,
}

impl SimTransaction {
    /// Runs `apply` with the commit.
    pub(crate) fn on_commit(&mut self, apply: impl FnOnce() + Send + 'static) {
        self.inner.on_commit(apply);
    }
}

impl HandleOf<Simulated> for SimTransaction {
    fn handle(&mut self) -> &mut SimTransaction {
        self
    }
}

impl StoreTransaction for SimTransaction {
    async fn commit(self) -> Result<(), CommitError> {
        let Self { inner, process, events, completed } = self;
        let fate = process.send("commit").await.map_err(CommitError::RolledBack)?;
        let answer = inner.commit().await;
        let what: Vec<String> = completed.iter().map(|done| format!("{}", done.lease.delivery_id())).collect();
        if answer.is_ok() {
            for done in &completed {
                process.world.model(|model| model.completed(None, &done.lease, done.part, &process.name));
            }
            process.world.model(|model| model.appended(&events));
            let ids: Vec<&str> = events.iter().map(|event| event.envelope.id.as_str()).collect();
            process.say(format_args!("COMMIT completing {what:?}, publishing {ids:?}"));
        } else {
            process.say(format_args!("COMMIT refused: the lease of {what:?} is lost"));
        }
        process.receive("commit", fate).await.map_err(CommitError::InDoubt)?;
        answer
    }

    async fn rollback(self) -> Result<(), Error> {
        let Self { inner, process, events, completed } = self;
        if process.world.mutation == Mutation::RollbackCommits && !events.is_empty() {
            drop(inner.commit().await);
            return Ok(());
        }
        let ids: Vec<&str> = events.iter().map(|event| event.envelope.id.as_str()).collect();
        process.say(format_args!("ROLLBACK of {} completions, of publishing {ids:?}", completed.len()));
        let fate = process.send("rollback").await;
        drop(inner);
        process.receive("rollback", fate?).await
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        if wanted == TypeId::of::<Self>() { Some(self) } else { None }
    }
}
