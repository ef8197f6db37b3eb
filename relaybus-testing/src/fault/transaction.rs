//! Transactions of a faulty store: their ends can fail or get lost, and nothing else about them changes.

use std::any::{Any, TypeId};
use std::future::pending;

use relaybus::Result;
use relaybus::store::{CommitError, Database, Family, HandleOf, StoreTransaction};

use super::control::{Faults, answer_lost, not_reached};
use super::plan::{Fault, Op};

/// A transaction that a [`FaultyStore`](super::FaultyStore) opened. It lends everything that the inner one lends.
#[derive(Debug)]
pub struct FaultyTransaction<T> {
    pub(super) inner: T,
    pub(super) faults: Faults,
}

impl<T> FaultyTransaction<T> {
    /// The transaction inside.
    pub fn inner(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<F: Family, T: HandleOf<F>> HandleOf<F> for FaultyTransaction<T> {
    fn handle(&mut self) -> F::Handle<'_> {
        self.inner.handle()
    }

    fn database(&self) -> Option<&Database> {
        HandleOf::database(&self.inner)
    }
}

impl<T: StoreTransaction> StoreTransaction for FaultyTransaction<T> {
    async fn commit(self) -> std::result::Result<(), CommitError> {
        let Self { inner, faults } = self;
        let fault = faults.meet(Op::Commit);
        faults
            .until_crash(async {
                match fault {
                    None => inner.commit().await,
                    Some(Fault::Fail) => {
                        let rolled_back = inner.rollback().await;
                        Err(CommitError::RolledBack(rolled_back.err().unwrap_or_else(|| not_reached(Op::Commit))))
                    }
                    Some(Fault::LoseRequest) => {
                        drop(inner);
                        Err(CommitError::InDoubt(answer_lost(Op::Commit)))
                    }
                    Some(Fault::LoseAnswer) => {
                        inner.commit().await?;
                        Err(CommitError::InDoubt(answer_lost(Op::Commit)))
                    }
                    Some(Fault::Delay(delay)) => {
                        tokio::time::sleep(delay).await;
                        inner.commit().await
                    }
                    Some(Fault::DelayAnswer(delay)) => {
                        let answer = inner.commit().await;
                        tokio::time::sleep(delay).await;
                        answer
                    }
                    Some(Fault::Hang) => {
                        drop(inner);
                        pending().await
                    }
                }
            })
            .await
    }

    async fn rollback(self) -> Result<()> {
        let Self { inner, faults } = self;
        faults.call(Op::Rollback, inner.rollback()).await
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        if wanted == TypeId::of::<Self>() {
            return Some(self);
        }
        self.inner.lend(wanted)
    }

    fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }

    fn database(&self) -> Option<&Database> {
        StoreTransaction::database(&self.inner)
    }
}
