//! The boot check: what no type can see. Every gap of the whole application is listed in one error, before any I/O.

use std::collections::BTreeSet;

use super::role::Needed;
use super::{CatalogRole, Contract, EventMeta};
use crate::bus::Handlers;
use crate::error::{Error, Result};
use crate::event::EventType;
use crate::handler_id::HandlerId;

/// What was declared to a bus.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    roles: Vec<CatalogRole>,
    modules: Vec<Contract>,
    /// Whether the bus took the handlers that are linked into the program.
    pub(crate) discovers: bool,
}

/// One line of the error.
struct Gap {
    text: String,
    misses_handler: bool,
}

impl Declarations {
    pub(crate) fn add_role(&mut self, role: CatalogRole) -> Result<()> {
        self.roles.push(role);
        match role.repeated() {
            Some(event) => Err(Error::configuration(format!(
                "a role of the catalog `{}` lists the event `{}` twice: keep one",
                role.catalog, event.name
            ))),
            None => Ok(()),
        }
    }

    /// Adds a module, once; the registry and the application may both name it.
    pub(crate) fn add_module(&mut self, module: Contract) {
        let is_known = |other: &Contract| (other.name, other.location) == (module.name, module.location);
        if !self.modules.iter().any(is_known) {
            self.modules.push(module);
        }
    }

    /// Lists every event without what it needs.
    pub(crate) fn check(&self, handlers: &Handlers) -> Result<()> {
        let (mut gaps, mut seen) = (Vec::new(), BTreeSet::new());
        let of_roles = self.roles.iter().flat_map(|role| of_role(role, handlers));
        // The registry has no order.
        let mut modules: Vec<&Contract> = self.modules.iter().collect();
        modules.sort_by_key(|module| module.name);
        let of_modules = modules.into_iter().flat_map(|module| of_module(module, handlers));
        for gap in of_roles.chain(of_modules) {
            if seen.insert(gap.text.clone()) {
                gaps.push(gap);
            }
        }
        if gaps.is_empty() { Ok(()) } else { Err(Error::configuration(self.message(&gaps))) }
    }

    fn message(&self, gaps: &[Gap]) -> String {
        let is_bare = self.modules.is_empty() && self.roles.iter().all(|role| role.needed == Needed::Either);
        let mut message = String::from(if is_bare {
            "Catalog events without a handler or route:"
        } else {
            "Catalog events this service does not cover:"
        });
        for gap in gaps {
            message.push_str("\n  - ");
            message.push_str(&gap.text);
        }
        if gaps.iter().any(|gap| gap.misses_handler) {
            message.push_str(if self.discovers {
                "\nA handler in a crate that nothing names is not linked into the program: write `use the_crate as _;` beside the bus"
            } else {
                "\nThis bus has the handlers it was given: name more in `.handlers(handlers![..])`, or call `.discover_handlers()`"
            });
        }
        message
    }
}

/// What an event has.
struct Covered {
    handler: bool,
    route: bool,
}

impl Covered {
    fn of(event: &EventMeta, handlers: &Handlers) -> Self {
        let event_type = EventType::from_static(event.event_type);
        let (all, local) = (handlers.of(&event_type).len(), handlers.local_of(&event_type).len());
        Self { handler: local > 0, route: all > local }
    }
}

fn of_role(role: &CatalogRole, handlers: &Handlers) -> Vec<Gap> {
    let gap = |event: &'static EventMeta| {
        let covered = Covered::of(event, handlers);
        let name = name_of(role.catalog, event);
        let method = event.method;
        let (text, misses_handler) = match role.needed {
            Needed::Handler if !covered.handler => {
                (format!("{name}: consumed here, needs handler method {method}"), true)
            }
            Needed::Route if !covered.route => {
                let why = if covered.handler { "; a local handler does not deliver it to other services" } else { "" };
                (format!("{name}: produced here, needs a route to a transport{why}"), false)
            }
            Needed::Either if !covered.handler && !covered.route => {
                (format!("{name}: expected handler method {method}"), true)
            }
            Needed::Handler | Needed::Route | Needed::Either => return None,
        };
        Some(Gap { text, misses_handler })
    };
    role.events().filter_map(gap).collect()
}

fn of_module(module: &Contract, handlers: &Handlers) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for part in module.consumes {
        for event in part.events() {
            let fulfils = |entry: &&crate::registry::Entry| entry.events.iter().any(|one| one.is(&event.hashed()));
            let is_registered = |id: &str| handlers.by_id.contains_key(&HandlerId::stored(id.to_owned()));
            if !module.entries().filter(fulfils).any(|entry| is_registered(entry.id)) {
                let text = format!("{}: {} has no consumer", module.name, name_of(part.catalog, event));
                gaps.push(Gap { text, misses_handler: true });
            }
        }
    }
    for part in module.produces {
        for event in part.events().filter(|event| !Covered::of(event, handlers).route) {
            let text = format!("{}: {} has no route to a transport", module.name, name_of(part.catalog, event));
            gaps.push(Gap { text, misses_handler: false });
        }
    }
    gaps
}

fn name_of(catalog: &str, event: &EventMeta) -> String {
    format!("{catalog}.{} ({})", event.name, event.event_type)
}
