//! Building a bus: every option, checked together when it is built.

use std::sync::Arc;
use std::time::Duration;

use tower::util::BoxCloneSyncService;
use tower::{Layer, Service};

use super::engine::IdMaker;
use super::handlers::Given;
use super::options::{
    BusOptions, DEFAULT_SOURCE, DEFAULT_TRANSACTION_TIMEOUT, DispatcherOptions, RetentionOptions, Subscription,
    UnroutedEvents,
};
use super::subscribe::Subscribe;
use super::transaction::budget_of;
use crate::catalog::{
    CatalogOptions, CatalogRole, Contract, Declarations, EntryGroup, HandledBy, InTransaction, Module, Routes,
};
use crate::clock::Clock;
use crate::duration::IntoDuration;
use crate::error::{Error, Result};
use crate::event::EventId;
use crate::observe::Observer;
use crate::registry::{Entry, HandlerList, LentBy, States};
use crate::retry::RetryPolicy;
use crate::run::{HandlerCall, Middleware};
use crate::store::{EventStore, Lends};
use crate::task::Chance;
use crate::trace::Tracer;
use crate::transport::{Route, Transport};

/// Collects the options of a bus. Everything that is wrong with them is reported together by [`RelayBusBuilder::build`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct RelayBusBuilder<S: EventStore> {
    pub(super) store: S,
    pub(super) options: BusOptions,
    pub(super) retry: RetryPolicy,
    pub(super) handler_timeout: Option<Duration>,
    pub(super) given: Vec<Result<Given>>,
    pub(super) routes: Vec<Route>,
    pub(super) transports: Vec<Arc<dyn Transport>>,
    pub(super) declarations: Declarations,
    pub(super) provided: States,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    pub(super) tracer: Option<Arc<dyn Tracer>>,
    pub(super) middleware: Option<Middleware>,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) chance: Chance,
    pub(super) id_maker: Option<IdMaker>,
    pub(super) faults: Vec<Error>,
}

impl<S: EventStore> std::fmt::Debug for RelayBusBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayBusBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<S: EventStore> RelayBusBuilder<S> {
    pub(super) fn new(store: S) -> Self {
        Self {
            store,
            options: BusOptions {
                source: DEFAULT_SOURCE.into(),
                transaction_timeout: Some(DEFAULT_TRANSACTION_TIMEOUT),
                unrouted: UnroutedEvents::Warn,
                dispatcher: DispatcherOptions::default(),
                retention: RetentionOptions::default(),
                setup_store: true,
                backlog_interval: None,
                subscriptions: Vec::new(),
            },
            retry: RetryPolicy::default(),
            handler_timeout: None,
            given: Vec::new(),
            routes: Vec::new(),
            transports: Vec::new(),
            declarations: Declarations::default(),
            provided: States::default(),
            observers: Vec::new(),
            tracer: None,
            middleware: None,
            clock: None,
            chance: Chance::default(),
            id_maker: None,
            faults: Vec::new(),
        }
    }

    /// The service's name, recorded on every event. Defaults to `relaybus`.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        let source = source.into();
        if source.is_empty() || source.len() > MAX_SOURCE_BYTES || source.contains('\0') {
            self.fault(format!("`source` has {} bytes, expected 1 to {MAX_SOURCE_BYTES} without NUL", source.len()));
        }
        self.options.source = source.into();
        self
    }

    /// Time budget of every `bus.transaction`; zero for none. Defaults to 5 s.
    pub fn transaction_timeout(mut self, timeout: impl IntoDuration) -> Self {
        self.options.transaction_timeout = budget_of(self.duration("transaction_timeout", timeout));
        self
    }

    /// What to do with events nobody handles. Defaults to a warning.
    pub fn unrouted_events(mut self, policy: UnroutedEvents) -> Self {
        self.options.unrouted = policy;
        self
    }

    /// Retry policy of handlers. Defaults to 10 attempts, 1 s, factor 2, at most 10 min, full jitter.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Timeout of handlers. Defaults to none.
    pub fn handler_timeout(mut self, timeout: impl IntoDuration) -> Self {
        let timeout = self.duration("handler_timeout", timeout);
        if timeout.is_zero() {
            self.fault("`handler_timeout` is 0, expected at least 1ms, or leave it out for none".to_owned());
        }
        self.handler_timeout = Some(timeout);
        self
    }

    /// How handlers are dispatched.
    pub fn dispatcher(mut self, dispatcher: DispatcherOptions) -> Self {
        self.options.dispatcher = dispatcher;
        self
    }

    /// How long finished work is kept.
    pub fn retention(mut self, retention: RetentionOptions) -> Self {
        self.options.retention = retention;
        self
    }

    /// Whether `start` creates what the store needs. Defaults to true.
    pub fn setup_store(mut self, setup: bool) -> Self {
        self.options.setup_store = setup;
        self
    }

    /// Reads the statistics this often while running and reports them to observers. Defaults to never.
    pub fn backlog_interval(mut self, interval: impl IntoDuration) -> Self {
        let interval = self.duration("backlog_interval", interval);
        if interval.is_zero() {
            self.fault("`backlog_interval` is 0, expected at least 1ms, or leave it out for never".to_owned());
        }
        self.options.backlog_interval = Some(interval);
        self
    }

    /// Registers every handler that `#[consumer]` and `#[consumers]` wrote in the crates linked into this program, and
    /// declares their modules.
    ///
    /// A crate that nobody names is not linked: write `use the_crate as _;`.
    pub fn discover_handlers(mut self) -> Self {
        let groups = inventory::iter::<EntryGroup>.into_iter().flat_map(|group| group.0);
        self.given.extend(inventory::iter::<Entry>.into_iter().chain(groups).map(Given::entry));
        inventory::iter::<Contract>.into_iter().for_each(|module| self.declarations.add_module(*module));
        self.declarations.discovers = true;
        self
    }

    /// Registers the handlers that `handlers![..]` names. Transactional ones must take a handle of this store.
    pub fn handlers(mut self, list: HandlerList<S::Family>) -> Self {
        self.given.extend(list.entries().iter().map(Given::entry));
        self
    }

    /// Registers a closure as a handler.
    pub fn subscribe(mut self, handler: Subscribe) -> Self {
        self.given.push(Ok(handler.given));
        self
    }

    /// Registers the methods of a catalog's handler trait, under the ids `<prefix>.on_<event>`. The instance is provided
    /// too: one a type, shared by all its handlers.
    pub fn subscribe_catalog<C, T>(self, handlers: Arc<T>, options: CatalogOptions) -> Self
    where
        C: HandledBy<T>,
        T: Send + Sync + 'static,
    {
        self.provide_once(handlers).with_given(options.given::<C>(C::ENTRIES))
    }

    /// As [`RelayBusBuilder::subscribe_catalog`], for the transactional handler trait: each method runs in a transaction
    /// of the store, whose handle is an `H`, and which also completes the delivery.
    pub fn subscribe_catalog_in_transaction<C, T, H>(self, handlers: Arc<T>, options: CatalogOptions) -> Self
    where
        C: HandledBy<T, InTransaction<H>>,
        T: Send + Sync + 'static,
        S::Family: Lends<H>,
    {
        self.provide_once(handlers).with_given(options.given::<C>(C::ENTRIES))
    }

    fn with_given(mut self, given: Vec<Given>) -> Self {
        self.given.extend(given.into_iter().map(Ok));
        self
    }

    /// What this service does with the events of a catalog; `start` checks it. May be called several times.
    ///
    /// ```
    /// # use relaybus::{Event, MemoryStore, RelayBus, catalog, consume};
    /// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
    /// # #[catalog] enum OrderEvents { OrderPlaced(OrderPlaced) }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> relaybus::Result {
    /// let bus = RelayBus::builder(MemoryStore::new()).catalog(consume::<OrderEvents>()).build()?;
    /// let error = bus.start().await.unwrap_err().to_string();
    /// assert!(error.contains("OrderEvents.OrderPlaced (order.placed.v1): consumed here, needs handler method on_order_placed"));
    /// # Ok(()) }
    /// ```
    pub fn catalog(mut self, role: impl Into<CatalogRole>) -> Self {
        if let Err(fault) = self.declarations.add_role(role.into()) {
            self.faults.push(fault);
        }
        self
    }

    /// Registers the handlers of a module and declares its contract, which `start` checks.
    pub fn module<M: Module<Handles: LentBy<S::Family>>>(mut self) -> Self {
        self.given.extend(M::CONTRACT.entries().map(Given::entry));
        self.declarations.add_module(M::CONTRACT);
        self
    }

    /// A value that handlers may take as `State<T>`; one a type.
    pub fn provide<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.provide_shared(Arc::new(value))
    }

    /// As [`RelayBusBuilder::provide`], for a value that is shared already.
    pub fn provide_shared<T: Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        if !self.provided.insert(value) {
            self.fault(format!("a value of type `{}` was provided twice: keep one", std::any::type_name::<T>()));
        }
        self
    }

    /// Provides an instance of handlers, unless it is there already.
    fn provide_once<T: Send + Sync + 'static>(self, value: Arc<T>) -> Self {
        match self.provided.get::<T>() {
            Some(there) if Arc::ptr_eq(&there, &value) => self,
            _ => self.provide_shared(value),
        }
    }

    /// A transport for routes and subscriptions.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transports.push(transport);
        self
    }

    /// Sends events to a transport: a [`Route`], or the events of a catalog by [`Route::catalog`].
    pub fn route(mut self, route: impl Into<Routes>) -> Self {
        let Routes { routes, fault } = route.into();
        self.routes.extend(routes);
        self.faults.extend(fault);
        self
    }

    /// Receives events from destinations of a transport.
    pub fn subscription<D: Into<String>>(
        mut self,
        transport: impl Into<String>,
        destinations: impl IntoIterator<Item = D>,
    ) -> Self {
        let destinations: Vec<String> = destinations.into_iter().map(Into::into).collect();
        self.options.subscriptions.push(Subscription { transport: transport.into(), destinations });
        self
    }

    /// An observer. May be called several times.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Opens spans around publishing, sending and handling.
    pub fn tracer(mut self, tracer: Arc<dyn Tracer>) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// A `tower` layer around every local handler. The last one added is the outermost.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<BoxCloneSyncService<HandlerCall, (), Error>>,
        L::Service: Service<HandlerCall, Response = (), Error: Into<crate::BoxError>> + Clone + Send + Sync + 'static,
        <L::Service as Service<HandlerCall>>::Future: Send + 'static,
    {
        self.middleware = Some(Middleware::around(self.middleware.take(), layer));
        self
    }

    /// The clock. Defaults to the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// As [`RelayBusBuilder::clock`], for a clock that is shared with the test that drives it.
    pub fn shared_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Seeds jitter and identifiers, so that a run can be repeated. Defaults to a seed of the moment.
    pub fn seed(mut self, seed: u64) -> Self {
        self.chance = Chance::seeded(seed);
        self
    }

    /// Makes the ids of events. Defaults to version 7 UUIDs.
    pub fn event_ids(mut self, make: impl Fn() -> EventId + Send + Sync + 'static) -> Self {
        self.id_maker = Some(Arc::new(make));
        self
    }

    fn duration(&mut self, option: &str, value: impl IntoDuration) -> Duration {
        value.into_duration().unwrap_or_else(|error| {
            self.fault(format!("option `{option}`: {error}"));
            // Not zero: a second message about zero would only repeat the first fault.
            Duration::from_secs(1)
        })
    }

    fn fault(&mut self, message: String) {
        self.faults.push(Error::configuration(message));
    }
}

/// Longest service name, in bytes.
const MAX_SOURCE_BYTES: usize = 255;
