//! Routes of catalogs: several events to one transport, with their wire names, and the checks across routes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::{ApplyWireTypes, Catalog, CatalogRole, EventMeta, HashedType, MemberOf, Produce, Role, WireType};
use crate::error::{Error, Result};
use crate::event::EventType;
use crate::retry::RetryOverrides;
use crate::transport::{DEFAULT_ROUTE_TIMEOUT, Route, Transport};

/// Sends the events of a catalog to a transport: made by [`Route::catalog`], given to `RelayBusBuilder::route`.
#[must_use = "a route does nothing until the bus's builder has it"]
pub struct CatalogRoute<C: Catalog> {
    role: Role<C, Produce>,
    transport: String,
    destination: Option<String>,
    retry: RetryOverrides,
    timeout: Duration,
    wire: Vec<(HashedType, String)>,
}

impl<C: Catalog> Clone for CatalogRoute<C> {
    fn clone(&self) -> Self {
        Self {
            role: self.role,
            transport: self.transport.clone(),
            destination: self.destination.clone(),
            retry: self.retry,
            timeout: self.timeout,
            wire: self.wire.clone(),
        }
    }
}

impl<C: Catalog> std::fmt::Debug for CatalogRoute<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogRoute")
            .field("catalog", &C::NAME)
            .field("transport", &self.transport)
            .field("destination", &self.destination)
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

impl Route {
    /// Sends the events of a production to the transport named `transport`, as one route an event would.
    ///
    /// ```
    /// # use relaybus::{Event, Route, catalog, produce};
    /// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] struct OrderPlaced {}
    /// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.shipped.v1")] struct OrderShipped {}
    /// # #[catalog] enum OrderEvents { OrderPlaced(OrderPlaced), OrderShipped(OrderShipped) }
    /// let route = Route::catalog(produce::<OrderEvents>().only::<(OrderPlaced,)>(), "kafka").destination("orders");
    /// ```
    pub fn catalog<C: Catalog>(role: Role<C, Produce>, transport: impl Into<String>) -> CatalogRoute<C> {
        CatalogRoute {
            role,
            transport: transport.into(),
            destination: None,
            retry: RetryOverrides::NONE,
            timeout: DEFAULT_ROUTE_TIMEOUT,
            wire: Vec::new(),
        }
    }
}

impl<C: Catalog> CatalogRoute<C> {
    /// Sends all of them to `destination`. Defaults to a destination of its own for each event: its event type.
    pub fn destination(mut self, destination: impl Into<String>) -> Self {
        self.destination = Some(destination.into());
        self
    }

    /// Retry settings, as those of [`Route::retry`].
    pub fn retry(mut self, retry: RetryOverrides) -> Self {
        self.retry = retry;
        self
    }

    /// Longest time a send may take. Defaults to 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends `E` under `name`. It goes before the catalog's own name for it.
    pub fn wire_type<E: MemberOf<C>>(mut self, name: impl Into<String>) -> Self {
        self.wire.push((HashedType::of::<E>(), name.into()));
        self
    }

    /// The name under which it sends an event, where it has one beside its type.
    pub(crate) fn wire_name(&self, event: &EventMeta) -> Option<&str> {
        let own = self.wire.iter().rfind(|(named, _)| named.is(&event.hashed())).map(|(_, name)| name.as_str());
        own.or(event.wire)
    }

    #[cfg(feature = "schema")]
    pub(crate) fn role(&self) -> Role<C, Produce> {
        self.role
    }

    #[cfg(feature = "schema")]
    pub(crate) fn destination_of(&self, event: &EventMeta) -> String {
        self.destination.as_deref().unwrap_or(event.event_type).to_owned()
    }
}

/// Routes as the builder takes them: one [`Route`], or those that a [`CatalogRoute`] stands for.
#[derive(Debug)]
pub struct Routes {
    pub(crate) routes: Vec<Route>,
    pub(crate) fault: Option<Error>,
}

impl From<Route> for Routes {
    fn from(route: Route) -> Self {
        Self { routes: vec![route], fault: None }
    }
}

impl<C: Catalog> From<CatalogRoute<C>> for Routes {
    fn from(route: CatalogRoute<C>) -> Self {
        let role = CatalogRole::from(route.role);
        let fault = fault_of(&role, &route.wire);
        let mut routes: Vec<Route> = Vec::new();
        for event in role.events() {
            let destination = route.destination.as_deref().unwrap_or(event.event_type);
            let shared = routes.iter().position(|other| other.destination == destination);
            let index = shared.unwrap_or_else(|| {
                let mut one =
                    Route::to(route.transport.as_str(), destination).retry(route.retry).timeout(route.timeout);
                one.catalog = Some(role.catalog);
                routes.push(one);
                routes.len() - 1
            });
            let event_type = EventType::from_static(event.event_type);
            if let Some(name) = route.wire_name(event) {
                routes[index].wire.push(WireType { event_type: event_type.clone(), name: name.to_owned() });
            }
            routes[index].events.push(event_type);
        }
        Self { routes, fault }
    }
}

/// What is wrong with a route of a catalog by itself.
fn fault_of(role: &CatalogRole, wire: &[(HashedType, String)]) -> Option<Error> {
    if let Some(repeated) = role.repeated() {
        return Some(Error::configuration(format!(
            "a route of the catalog `{}` lists the event `{}` twice: keep one",
            role.catalog, repeated.name
        )));
    }
    let unknown: Vec<String> = wire
        .iter()
        .filter(|(named, _)| !role.events().any(|event| event.hashed().is(named)))
        .map(|(named, name)| format!("  - {} (wire name `{name}`)", named.name))
        .collect();
    (!unknown.is_empty()).then(|| Error::UnknownCatalogEvent {
        message: format!(
            "a route of the catalog `{}` gives wire names to events that it does not route:\n{}",
            role.catalog,
            unknown.join("\n")
        ),
    })
}

/// Refuses an event that goes to one destination twice, where a catalog's route is one of the two.
pub(crate) fn check_routes(routes: &[Route]) -> Result<()> {
    let mut seen: HashMap<(&str, &str, &EventType), Option<&str>> = HashMap::new();
    let mut twice = Vec::new();
    for route in routes {
        for event in &route.events {
            let earlier = seen.insert((&route.transport, &route.destination, event), route.catalog);
            if let Some(earlier) = earlier
                && let Some(catalog) = route.catalog.or(earlier)
            {
                twice.push(format!(
                    "  - {event} of {catalog} to `{}` of the transport `{}`: keep one of its routes",
                    route.destination, route.transport
                ));
            }
        }
    }
    if twice.is_empty() {
        return Ok(());
    }
    Err(Error::DuplicateRouteEvent {
        message: format!("events that catalog routes send to one destination twice:\n{}", twice.join("\n")),
    })
}

/// Checks the wire names of every transport with it; what is returned applies them.
pub(crate) fn declare_wire_types(
    routes: &[Route],
    transports: &BTreeMap<String, Arc<dyn Transport>>,
) -> Result<Vec<ApplyWireTypes>> {
    let mut by_transport: BTreeMap<&str, Vec<&Route>> = BTreeMap::new();
    for route in routes {
        by_transport.entry(&route.transport).or_default().push(route);
    }
    let mut apply = Vec::new();
    for (transport, routes) in by_transport {
        let names = names_of(transport, &routes)?;
        if names.is_empty() {
            continue;
        }
        if let Some(transport) = transports.get(transport) {
            apply.push(transport.declare_wire_types(&names)?);
        }
    }
    Ok(apply)
}

/// The names of the events that a transport sends.
fn names_of(transport: &str, routes: &[&Route]) -> Result<Vec<WireType>> {
    let mut names: BTreeMap<&EventType, &str> = BTreeMap::new();
    let mut clashes = Vec::new();
    for WireType { event_type, name } in routes.iter().flat_map(|route| &route.wire) {
        if let Some(other) = names.insert(event_type, name)
            && other != name
        {
            clashes.push(format!("  - {event_type} has two wire names, `{other}` and `{name}`"));
        }
    }
    let mut sent: BTreeMap<&str, &EventType> = BTreeMap::new();
    for event in routes.iter().flat_map(|route| &route.events) {
        let name = names.get(event).copied().unwrap_or(event.as_str());
        if let Some(other) = sent.insert(name, event)
            && other != event
        {
            clashes.push(format!("  - {other} and {event} would both travel as `{name}`"));
        }
    }
    if clashes.is_empty() {
        let named = |(event, name): (&EventType, &str)| WireType { event_type: event.clone(), name: name.to_owned() };
        return Ok(names.into_iter().map(named).collect());
    }
    Err(Error::WireTypeCollision {
        message: format!("wire names of the transport `{transport}` clash:\n{}", clashes.join("\n")),
    })
}
