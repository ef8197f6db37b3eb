//! The erased store: what libraries, registered handlers and the engine name when they do not know which store it is.
//!
//! [`AnyStore`] implements [`EventStore`] over a boxed store, so the engine is one piece of code that is compiled once,
//! in this crate. A turn or a transaction costs one boxed future more; a delivery costs nothing.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{
    AppendBatch, Appended, Capabilities, CommitError, Completed, Database, DeliveryId, DeliveryPage, DeliveryQuery,
    EventStore, Family, HandleOf, HandlerBacklog, Lease, LeaseState, Lends, PurgeRequest, Purged, Requeued,
    SessionRequest, Settled, Settlement, Statistics, StoreTransaction, TransactionOptions, Turn, TurnRequest, TypeRef,
    WakeUp, WatchGuard,
};
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// The family of an erased store: its only handle is [`AnyTransaction`].
#[derive(Debug)]
pub enum AnyFamily {}

impl Family for AnyFamily {
    type Handle<'c> = &'c mut AnyTransaction;
    const NAME: &'static str = "erased";
}

/// A store of any kind. Cloning is cheap.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn DynStore>);

impl AnyStore {
    /// Erases `store`.
    pub fn new<S: EventStore>(store: Arc<S>) -> Self {
        Self(Arc::new(Erased(store)))
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyStore").field(&self.0.name()).finish()
    }
}

/// A transaction of any store.
pub struct AnyTransaction(Box<dyn DynTransaction>);

impl AnyTransaction {
    /// Erases a transaction.
    pub fn new<T: StoreTransaction>(transaction: T) -> Self {
        Self(Box::new(transaction))
    }

    /// The transaction as the type of its store.
    pub fn downcast_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.0.as_any_mut().downcast_mut()
    }
}

impl fmt::Debug for AnyTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyTransaction")
    }
}

// Each transaction lends itself erased, whatever its store: handlers of libraries take it.
impl<F: Family> Lends<AnyTransaction> for F {}

impl HandleOf<AnyFamily> for AnyTransaction {
    fn handle(&mut self) -> &mut AnyTransaction {
        self
    }

    fn database(&self) -> Option<&Database> {
        self.0.database()
    }
}

impl StoreTransaction for AnyTransaction {
    async fn commit(self) -> std::result::Result<(), CommitError> {
        self.0.commit_boxed().await
    }

    async fn rollback(self) -> Result<()> {
        self.0.rollback_boxed().await
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        if wanted == TypeId::of::<Self>() {
            return Some(self);
        }
        self.0.lend(wanted)
    }

    fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    fn database(&self) -> Option<&Database> {
        self.0.database()
    }
}

/// A session of any store.
pub struct AnySession(Box<dyn Any + Send>);

impl fmt::Debug for AnySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnySession")
    }
}

trait DynTransaction: Send {
    fn commit_boxed(self: Box<Self>) -> BoxFuture<'static, std::result::Result<(), CommitError>>;
    fn rollback_boxed(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)>;
    fn is_lost(&self) -> bool;
    fn database(&self) -> Option<&Database>;
    fn as_any_mut(&mut self) -> &mut (dyn Any + Send);
}

impl<T: StoreTransaction> DynTransaction for T {
    fn commit_boxed(self: Box<Self>) -> BoxFuture<'static, std::result::Result<(), CommitError>> {
        Box::pin((*self).commit())
    }

    fn rollback_boxed(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin((*self).rollback())
    }

    fn lend(&mut self, wanted: TypeId) -> Option<&mut (dyn Any + Send)> {
        StoreTransaction::lend(self, wanted)
    }

    fn is_lost(&self) -> bool {
        StoreTransaction::is_lost(self)
    }

    fn database(&self) -> Option<&Database> {
        StoreTransaction::database(self)
    }

    fn as_any_mut(&mut self) -> &mut (dyn Any + Send) {
        self
    }
}

/// The twin of [`EventStore`] whose futures are boxed.
trait DynStore: Send + Sync {
    fn name(&self) -> &'static str;
    fn capabilities(&self) -> Capabilities;
    fn handles(&self) -> &'static [TypeRef];
    fn database(&self) -> Option<&Database>;
    fn is_serialization_failure(&self, error: &(dyn std::error::Error + 'static)) -> bool;
    fn setup(&self) -> BoxFuture<'_, Result<()>>;
    fn verify(&self) -> BoxFuture<'_, Result<()>>;
    fn begin<'a>(&'a self, options: &'a TransactionOptions) -> BoxFuture<'a, Result<AnyTransaction>>;
    fn append<'a>(
        &'a self,
        transaction: &'a mut AnyTransaction,
        batch: &'a AppendBatch,
    ) -> BoxFuture<'a, Result<Appended>>;
    fn append_alone<'a>(&'a self, batch: &'a AppendBatch) -> BoxFuture<'a, Result<Appended>>;
    fn open_session<'a>(&'a self, request: &'a SessionRequest) -> BoxFuture<'a, Result<AnySession>>;
    fn turn<'a>(&'a self, session: &'a mut AnySession, request: &'a TurnRequest<'a>) -> BoxFuture<'a, Result<Turn>>;
    fn settle<'a>(
        &'a self,
        session: &'a mut AnySession,
        settlements: &'a [Settlement],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<Settled>>>;
    fn complete_in<'a>(
        &'a self,
        transaction: &'a mut AnyTransaction,
        completed: &'a Completed,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Settled>>;
    fn inspect<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<LeaseState>>;
    fn close_session(&self, session: AnySession, now: Timestamp) -> BoxFuture<'_, Result<()>>;
    fn list_deliveries<'a>(&'a self, query: &'a DeliveryQuery, now: Timestamp) -> BoxFuture<'a, Result<DeliveryPage>>;
    fn requeue<'a>(&'a self, ids: &'a [DeliveryId], now: Timestamp) -> BoxFuture<'a, Result<Vec<Requeued>>>;
    fn statistics(&self, now: Timestamp) -> BoxFuture<'_, Result<Statistics>>;
    fn backlog(&self) -> BoxFuture<'_, Result<Vec<HandlerBacklog>>>;
    fn purge<'a>(&'a self, request: &'a PurgeRequest) -> BoxFuture<'a, Result<Purged>>;
    fn server_time(&self) -> BoxFuture<'_, Result<Option<Timestamp>>>;
    fn watch(&self, wake: WakeUp) -> BoxFuture<'_, Result<Option<WatchGuard>>>;
    fn close(&self) -> BoxFuture<'_, Result<()>>;
    fn force_close(&self);
}

struct Erased<S>(Arc<S>);

fn foreign(what: &str) -> Error {
    Error::configuration(format!("this {what} belongs to another store: pass one of the bus's own store"))
}

fn session_of<S: EventStore>(session: &mut AnySession) -> Result<&mut S::Session> {
    session.0.downcast_mut().ok_or_else(|| foreign("session"))
}

fn transaction_of<S: EventStore>(transaction: &mut AnyTransaction) -> Result<&mut S::Transaction> {
    transaction.downcast_mut().ok_or_else(|| foreign("transaction"))
}

impl<S: EventStore> DynStore for Erased<S> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn handles(&self) -> &'static [TypeRef] {
        self.0.handles()
    }

    fn database(&self) -> Option<&Database> {
        self.0.database()
    }

    fn is_serialization_failure(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        self.0.is_serialization_failure(error)
    }

    fn setup(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.0.setup())
    }

    fn verify(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.0.verify())
    }

    fn begin<'a>(&'a self, options: &'a TransactionOptions) -> BoxFuture<'a, Result<AnyTransaction>> {
        Box::pin(async move { self.0.begin(options).await.map(AnyTransaction::new) })
    }

    fn append<'a>(
        &'a self,
        transaction: &'a mut AnyTransaction,
        batch: &'a AppendBatch,
    ) -> BoxFuture<'a, Result<Appended>> {
        Box::pin(async move { self.0.append(transaction_of::<S>(transaction)?.handle(), batch).await })
    }

    fn append_alone<'a>(&'a self, batch: &'a AppendBatch) -> BoxFuture<'a, Result<Appended>> {
        Box::pin(self.0.append_alone(batch))
    }

    fn open_session<'a>(&'a self, request: &'a SessionRequest) -> BoxFuture<'a, Result<AnySession>> {
        Box::pin(async move { self.0.open_session(request).await.map(|session| AnySession(Box::new(session))) })
    }

    fn turn<'a>(&'a self, session: &'a mut AnySession, request: &'a TurnRequest<'a>) -> BoxFuture<'a, Result<Turn>> {
        Box::pin(async move { self.0.turn(session_of::<S>(session)?, request).await })
    }

    fn settle<'a>(
        &'a self,
        session: &'a mut AnySession,
        settlements: &'a [Settlement],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<Settled>>> {
        Box::pin(async move { self.0.settle(session_of::<S>(session)?, settlements, now).await })
    }

    fn complete_in<'a>(
        &'a self,
        transaction: &'a mut AnyTransaction,
        completed: &'a Completed,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Settled>> {
        Box::pin(async move { self.0.complete_in(transaction_of::<S>(transaction)?, completed, now).await })
    }

    fn inspect<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<LeaseState>> {
        Box::pin(self.0.inspect(lease))
    }

    fn close_session(&self, session: AnySession, now: Timestamp) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let session = session.0.downcast::<S::Session>().map_err(|_| foreign("session"))?;
            self.0.close_session(*session, now).await
        })
    }

    fn list_deliveries<'a>(&'a self, query: &'a DeliveryQuery, now: Timestamp) -> BoxFuture<'a, Result<DeliveryPage>> {
        Box::pin(self.0.list_deliveries(query, now))
    }

    fn requeue<'a>(&'a self, ids: &'a [DeliveryId], now: Timestamp) -> BoxFuture<'a, Result<Vec<Requeued>>> {
        Box::pin(self.0.requeue(ids, now))
    }

    fn statistics(&self, now: Timestamp) -> BoxFuture<'_, Result<Statistics>> {
        Box::pin(self.0.statistics(now))
    }

    fn backlog(&self) -> BoxFuture<'_, Result<Vec<HandlerBacklog>>> {
        Box::pin(self.0.backlog())
    }

    fn purge<'a>(&'a self, request: &'a PurgeRequest) -> BoxFuture<'a, Result<Purged>> {
        Box::pin(self.0.purge(request))
    }

    fn server_time(&self) -> BoxFuture<'_, Result<Option<Timestamp>>> {
        Box::pin(self.0.server_time())
    }

    fn watch(&self, wake: WakeUp) -> BoxFuture<'_, Result<Option<WatchGuard>>> {
        Box::pin(self.0.watch(wake))
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.0.close())
    }

    fn force_close(&self) {
        self.0.force_close();
    }
}

impl EventStore for AnyStore {
    type Family = AnyFamily;
    type Transaction = AnyTransaction;
    type Session = AnySession;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn handles(&self) -> &'static [TypeRef] {
        self.0.handles()
    }

    fn database(&self) -> Option<&Database> {
        self.0.database()
    }

    fn is_serialization_failure(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        self.0.is_serialization_failure(error)
    }

    async fn setup(&self) -> Result<()> {
        self.0.setup().await
    }

    async fn verify(&self) -> Result<()> {
        self.0.verify().await
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<AnyTransaction> {
        self.0.begin(options).await
    }

    async fn append<'c>(&'c self, handle: &'c mut AnyTransaction, batch: &AppendBatch) -> Result<Appended> {
        self.0.append(handle, batch).await
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        self.0.append_alone(batch).await
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<AnySession> {
        self.0.open_session(request).await
    }

    async fn turn(&self, session: &mut AnySession, request: &TurnRequest<'_>) -> Result<Turn> {
        self.0.turn(session, request).await
    }

    async fn settle(
        &self,
        session: &mut AnySession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.0.settle(session, settlements, now).await
    }

    async fn complete_in(
        &self,
        transaction: &mut AnyTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        self.0.complete_in(transaction, completed, now).await
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        self.0.inspect(lease).await
    }

    async fn close_session(&self, session: AnySession, now: Timestamp) -> Result<()> {
        self.0.close_session(session, now).await
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, now: Timestamp) -> Result<DeliveryPage> {
        self.0.list_deliveries(query, now).await
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        self.0.requeue(ids, now).await
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        self.0.statistics(now).await
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        self.0.backlog().await
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        self.0.purge(request).await
    }

    async fn server_time(&self) -> Result<Option<Timestamp>> {
        self.0.server_time().await
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        self.0.watch(wake).await
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }

    fn force_close(&self) {
        self.0.force_close();
    }
}
