//! The handlers of a bus: collected, checked together, and looked up by event and by id.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::{Error, Result};
use crate::event::EventType;
use crate::handler_id::HandlerId;
use crate::registry::{ConsumerOptions, DecodeFn, Entry, Needs, Order, Parts, SetTimeout, States};
use crate::retry::RetryPolicy;
use crate::store::TypeRef;
use crate::transport::{ROUTE_PREFIX, Route, Transport};

/// A call that a subscription's closure answers.
pub(crate) type DynCall = Arc<dyn for<'p> Fn(&mut Parts<'p>) -> Result<BoxFuture<'p, Result<()>>> + Send + Sync>;

/// A handler or route, ready to run.
pub(crate) struct HandlerSpec {
    pub(crate) id: HandlerId,
    pub(crate) event_types: Vec<EventType>,
    pub(crate) kind: Kind,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Option<Duration>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) order: Order,
    pub(crate) transactional: bool,
}

/// What a handler does with an event.
pub(crate) enum Kind {
    /// A function that the macros registered.
    Entry { decode: DecodeFn, call: crate::registry::CallFn },
    /// A closure.
    Closure { decode: DecodeFn, call: DynCall },
    /// A send to a transport.
    Route { transport: Arc<dyn Transport>, destination: String },
}

impl fmt::Debug for HandlerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerSpec").field("id", &self.id).field("events", &self.event_types).finish_non_exhaustive()
    }
}

impl Kind {
    /// Decodes an event for a local handler; a route has nothing to decode.
    pub(crate) fn decode(&self, event: &crate::Envelope) -> Result<Box<dyn Any + Send>> {
        match self {
            Self::Entry { decode, .. } | Self::Closure { decode, .. } => decode(event),
            Self::Route { .. } => Ok(Box::new(())),
        }
    }

    pub(crate) fn is_route(&self) -> bool {
        matches!(self, Self::Route { .. })
    }
}

/// A handler as a list for people shows it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HandlerInfo {
    /// Its id.
    pub id: HandlerId,
    /// The type of event; a route or a consumer of a catalog is listed once a type.
    pub event_type: EventType,
    /// Whether it is a route.
    pub route: bool,
    /// Whether it runs in a transaction that completes its delivery.
    pub transactional: bool,
    /// Its retry policy.
    pub retry: RetryPolicy,
    /// Its timeout.
    pub timeout: Option<Duration>,
    /// Most runs of it at once.
    pub concurrency: Option<usize>,
}

/// The handlers of a bus.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    pub(crate) by_id: BTreeMap<HandlerId, Arc<HandlerSpec>>,
    /// Handlers and routes of an event that is published here.
    for_event: HashMap<EventType, Arc<[HandlerId]>>,
    /// Local handlers of an event that is received from elsewhere.
    local_for_event: HashMap<EventType, Arc<[HandlerId]>>,
    nobody: Arc<[HandlerId]>,
}

impl Handlers {
    pub(crate) fn of(&self, event_type: &EventType) -> Arc<[HandlerId]> {
        self.for_event.get(event_type).unwrap_or(&self.nobody).clone()
    }

    pub(crate) fn local_of(&self, event_type: &EventType) -> Arc<[HandlerId]> {
        self.local_for_event.get(event_type).unwrap_or(&self.nobody).clone()
    }

    pub(crate) fn list(&self) -> Vec<HandlerInfo> {
        let of = |spec: &HandlerSpec, event_type: &EventType| HandlerInfo {
            id: spec.id.clone(),
            event_type: event_type.clone(),
            route: spec.kind.is_route(),
            transactional: spec.transactional,
            retry: spec.retry,
            timeout: spec.timeout,
            concurrency: spec.concurrency,
        };
        self.by_id.values().flat_map(|spec| spec.event_types.iter().map(move |event| of(spec, event))).collect()
    }
}

/// A handler as it was given to the builder.
pub(crate) struct Given {
    pub(crate) id: String,
    pub(crate) event_types: Vec<EventType>,
    pub(crate) needs: Vec<Needs>,
    pub(crate) transactional: bool,
    pub(crate) options: ConsumerOptions,
    pub(crate) kind: Kind,
    pub(crate) location: &'static str,
}

impl Given {
    pub(crate) fn entry(entry: &Entry) -> Result<Self> {
        Ok(Self {
            id: entry.id.to_owned(),
            event_types: entry.events.iter().map(|event| EventType::new(event.name)).collect::<Result<_>>()?,
            needs: entry.needs.to_vec(),
            transactional: entry.transactional,
            options: entry.options,
            kind: Kind::Entry { decode: entry.decode, call: entry.call },
            location: entry.location,
        })
    }
}

/// What the checks need to know beside the handlers.
pub(crate) struct Surroundings<'a> {
    pub(crate) states: &'a States,
    pub(crate) handles: &'a [TypeRef],
    pub(crate) store: &'static str,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Option<Duration>,
    pub(crate) transports: &'a BTreeMap<String, Arc<dyn Transport>>,
}

/// Builds the handlers, or lists everything that is wrong with them and the routes.
pub(crate) fn assemble(
    given: Vec<Given>,
    routes: &[Route],
    around: &Surroundings<'_>,
) -> std::result::Result<Handlers, Vec<String>> {
    let mut faults: Vec<String> = Vec::new();
    let mut specs: BTreeMap<HandlerId, HandlerSpec> = BTreeMap::new();
    let mut places: HashMap<String, &'static str> = HashMap::new();
    for handler in given {
        if let Some(other) = places.insert(handler.id.clone(), handler.location) {
            // The registry and an explicit list may both name one handler: that is the same handler.
            if other != handler.location || handler.location.is_empty() {
                let place = |location: &'static str| if location.is_empty() { "a closure" } else { location };
                faults.push(format!(
                    "handler id `{}` is used twice ({}, {}): give one another id",
                    handler.id,
                    place(other),
                    place(handler.location)
                ));
            }
            continue;
        }
        match local_spec(handler, around) {
            Ok(spec) => drop(specs.insert(spec.id.clone(), spec)),
            Err(more) => faults.extend(more),
        }
    }
    for route in routes {
        if let Err(fault) = add_route(&mut specs, route, around) {
            faults.push(fault.to_string());
        }
    }
    if !faults.is_empty() {
        faults.sort();
        return Err(faults);
    }
    Ok(index(specs))
}

/// Shortest timeout of a handler or route.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

fn local_spec(handler: Given, around: &Surroundings<'_>) -> std::result::Result<HandlerSpec, Vec<String>> {
    let mut faults = check_needs(&handler, around);
    let retry = around.retry.overridden(&handler.options.retry);
    if let Err(error) = retry.validate(&format!("retry of handler `{}`", handler.id)) {
        faults.push(error.to_string());
    }
    let timeout = match handler.options.timeout {
        Some(SetTimeout::After(timeout)) => Some(timeout),
        Some(SetTimeout::Never) => None,
        None => around.timeout,
    };
    if timeout.is_some_and(|timeout| timeout < SHORTEST_TIMEOUT) {
        faults.push(format!("timeout of handler `{}` is below 1ms: expected at least 1ms, or no timeout", handler.id));
    }
    if handler.id.starts_with(ROUTE_PREFIX) {
        faults.push(format!("handler id `{}` begins as those of routes do: give it another id", handler.id));
    }
    if handler.options.concurrency == Some(0) {
        faults.push(format!("concurrency of handler `{}` is 0: expected at least 1", handler.id));
    }
    let id = match HandlerId::new(handler.id) {
        Ok(id) => id,
        Err(error) => {
            faults.push(error.to_string());
            return Err(faults);
        }
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(HandlerSpec {
        id,
        event_types: handler.event_types,
        kind: handler.kind,
        retry,
        timeout,
        concurrency: handler.options.concurrency,
        order: handler.options.order,
        transactional: handler.transactional,
    })
}

fn check_needs(handler: &Given, around: &Surroundings<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for need in &handler.needs {
        match need {
            Needs::Instance(of) if !around.states.has(of.id()) => faults.push(format!(
                "handler `{}` is a method of `{}`, of which no instance was provided: call `.provide(..)` with one on the builder",
                handler.id,
                of.name()
            )),
            Needs::State(state) if !around.states.has(state.id()) => faults.push(format!(
                "handler `{}` takes `State<{}>`, which was not provided: call `.provide(..)` with a value of this very type on the builder",
                handler.id,
                state.name()
            )),
            Needs::Handle(handle) if !around.handles.contains(handle) => faults.push(format!(
                "handler `{}` takes `&mut {}`, which the {} store does not hand out: take `&mut {}`",
                handler.id,
                handle.name(),
                around.store,
                around.handles.first().map_or("", TypeRef::name)
            )),
            _ => {}
        }
    }
    faults
}

fn add_route(specs: &mut BTreeMap<HandlerId, HandlerSpec>, route: &Route, around: &Surroundings<'_>) -> Result<()> {
    let id = route.handler_id()?;
    let Some(transport) = around.transports.get(&route.transport) else {
        return Err(Error::configuration(format!(
            "route to `{}` needs the transport `{}`, which the bus does not have: add it with `.transport(..)`",
            route.destination, route.transport
        )));
    };
    if route.events.is_empty() {
        return Err(Error::configuration(format!("route `{id}` has no events: add them with `.event::<E>()`")));
    }
    if route.timeout < SHORTEST_TIMEOUT {
        return Err(Error::configuration(format!("timeout of route `{id}` is below 1ms: expected at least 1ms")));
    }
    let retry = route.policy();
    retry.validate(&format!("retry of route `{id}`"))?;
    let spec = specs.entry(id.clone()).or_insert_with(|| HandlerSpec {
        id: id.clone(),
        event_types: Vec::new(),
        kind: Kind::Route { transport: transport.clone(), destination: route.destination.clone() },
        retry,
        timeout: Some(route.timeout),
        concurrency: None,
        order: Order::Strict,
        transactional: false,
    });
    if !matches!(&spec.kind, Kind::Route { destination, .. } if *destination == route.destination) {
        return Err(Error::configuration(format!(
            "two routes share the id `{id}` though they lead to different transports: rename a transport or a destination"
        )));
    }
    if spec.retry != retry || spec.timeout != Some(route.timeout) {
        return Err(Error::configuration(format!(
            "the routes of `{id}` differ in retry or timeout: they share one queue a key, give them the same settings"
        )));
    }
    for event in &route.events {
        if spec.event_types.contains(event) {
            return Err(Error::configuration(format!("event `{event}` is routed to `{id}` twice: keep one route")));
        }
        spec.event_types.push(event.clone());
    }
    Ok(())
}

fn index(specs: BTreeMap<HandlerId, HandlerSpec>) -> Handlers {
    let mut all: HashMap<EventType, Vec<HandlerId>> = HashMap::new();
    let mut local: HashMap<EventType, Vec<HandlerId>> = HashMap::new();
    for spec in specs.values() {
        for event in &spec.event_types {
            all.entry(event.clone()).or_default().push(spec.id.clone());
            if !spec.kind.is_route() {
                local.entry(event.clone()).or_default().push(spec.id.clone());
            }
        }
    }
    let freeze =
        |map: HashMap<EventType, Vec<HandlerId>>| map.into_iter().map(|(event, ids)| (event, ids.into())).collect();
    Handlers {
        by_id: specs.into_iter().map(|(id, spec)| (id, Arc::new(spec))).collect(),
        for_event: freeze(all),
        local_for_event: freeze(local),
        nobody: Arc::from([]),
    }
}
