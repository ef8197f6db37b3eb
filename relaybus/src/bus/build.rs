//! From the options to the bus: everything is checked together, before any I/O.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::RelayBus;
use super::builder::RelayBusBuilder;
use super::engine::Engine;
use super::handlers::{Handlers, Surroundings, assemble};
use super::transports::{check_subscriptions, named};
use crate::catalog::{check_routes, declare_wire_types};
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::event::EventIds;
use crate::observe::Observers;
use crate::registry::States;
use crate::store::{AnyStore, EventStore};

impl<S: EventStore> RelayBusBuilder<S> {
    /// Checks everything together and builds the bus. It does no I/O and starts nothing.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` naming everything that is wrong: options, handlers, routes. When nothing else is, routes of
    /// catalogs and wire names have codes of their own: `RELAYBUS_ROUTE_DUPLICATE_EVENT`, `RELAYBUS_CATALOG_UNKNOWN_EVENT`,
    /// `RELAYBUS_WIRE_TYPE_COLLISION` and `RELAYBUS_WIRE_TYPES_UNSUPPORTED`.
    pub fn build(self) -> Result<RelayBus<S>> {
        let Self { store, options, retry, handler_timeout, given, routes, declarations, provided, mut faults, .. } =
            self;
        let (transports, same_names) = named(self.transports);
        let unusable = check_subscriptions(&options.subscriptions, &transports);
        let of_options = options.dispatcher.faults().into_iter().chain(options.retention.faults());
        faults.extend(of_options.chain(same_names).chain(unusable).map(Error::configuration));
        faults.extend(retry.validate("retry of the bus").err());
        let (given, refused): (Vec<_>, Vec<_>) = given.into_iter().partition(Result::is_ok);
        faults.extend(refused.into_iter().filter_map(Result::err));
        let store = Arc::new(store);
        // The handlers' needs are checked against what they will be given, the bus itself included.
        let mut states = provided.clone();
        promise_bus::<S>(&mut states);
        let mut handles = store.handles().to_vec();
        handles.push(crate::store::TypeRef::of::<crate::AnyTransaction>());
        let around = Surroundings {
            states: &states,
            handles: &handles,
            store: store.name(),
            retry,
            timeout: handler_timeout,
            transports: &transports,
        };
        if faults.is_empty() {
            check_routes(&routes)?;
        }
        let handlers = all_or_nothing(assemble(given.into_iter().flatten().collect(), &routes, &around), faults)?;
        // Last: a refused configuration changes no transport.
        declare_wire_types(&routes, &transports)?.into_iter().for_each(|apply| apply());
        let typed = store.clone();
        let engine = Engine {
            store: AnyStore::new(store.clone()),
            options,
            handlers,
            declarations,
            provided,
            with_bus: Box::new(move |engine, states| {
                let bus = RelayBus { engine: engine.clone(), store: typed.clone() };
                states.insert(Arc::new(bus.any()));
                states.insert(Arc::new(bus));
            }),
            transports,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::default())),
            chance: self.chance,
            ids: EventIds::default(),
            id_maker: self.id_maker,
            observers: Observers::new(self.observers),
            tracer: self.tracer,
            middleware: self.middleware,
            wake: crate::dispatch::Wake::default(),
            breaks: crate::dispatch::Breaks::default(),
            lifecycle: super::lifecycle::Lifecycle::default(),
            warned_unrouted: Mutex::new(HashSet::new()),
            looks: super::looks::Looks::default(),
            store_reports_commits: std::sync::OnceLock::new(),
            store_offset: 0.into(),
            offset_known: tokio::sync::OnceCell::new(),
        };
        Ok(RelayBus { engine: Arc::new(engine), store })
    }
}

/// What was assembled, if nothing is wrong; else one error that lists everything. A single fault of an option is told as it is.
fn all_or_nothing(assembled: std::result::Result<Handlers, Vec<String>>, mut faults: Vec<Error>) -> Result<Handlers> {
    let listed = match assembled {
        Ok(handlers) if faults.is_empty() => return Ok(handlers),
        Ok(_) => Vec::new(),
        Err(listed) => listed,
    };
    if let ([_], []) = (&*faults, &*listed) {
        return Err(faults.remove(0));
    }
    let all: Vec<String> = faults.iter().map(ToString::to_string).chain(listed).collect();
    Err(Error::configuration(format!("this bus cannot start:\n  - {}", all.join("\n  - "))))
}

/// Stand-ins for the buses that every handler can take, so that the check of needs finds them.
fn promise_bus<S: EventStore>(states: &mut States) {
    states.promise::<RelayBus>();
    states.promise::<RelayBus<S>>();
}
