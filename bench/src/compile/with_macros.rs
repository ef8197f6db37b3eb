//! The crate as our users write it.

use std::fmt::Write as _;

use super::shared::{COUNTS, MAIN, catalog, event, event_type, payload, snake};

pub(super) fn source(catalogs: usize, events: usize) -> String {
    written(catalogs, events, false)
}

/// With a module whose contract has all the catalogs and all the handlers.
pub(super) fn source_with_module(catalogs: usize, events: usize) -> String {
    written(catalogs, events, true)
}

fn written(catalogs: usize, events: usize, with_module: bool) -> String {
    let mut text = String::from(
        "use relaybus::{Envelope, Event, HandlerContext, HandlerResult, MemoryStore, RelayBus, Result, State};\n\
         use relaybus::{catalog, consumer, consumers};\nuse serde::{Deserialize, Serialize};\n",
    );
    text.push_str(COUNTS);
    for c in 0..catalogs {
        catalog_source(&mut text, c, events);
    }
    if with_module {
        module_source(&mut text, catalogs, events);
    }
    text.push_str("fn build() -> Result<RelayBus<MemoryStore>> {\n    let counts = Arc::new(Counts::default());\n");
    text.push_str("    RelayBus::builder(MemoryStore::new())\n        .discover_handlers()\n");
    text.push_str("        .provide_shared(counts.clone())\n");
    for c in 0..catalogs {
        let name = catalog(c);
        let _ = writeln!(text, "        .provide({name}Service(counts.clone()))");
        let _ = writeln!(text, "        .catalog(relaybus::catalog::<{name}>())");
    }
    if with_module {
        text.push_str("        .module::<everything>()\n");
    }
    text.push_str("        .build()\n}\n");
    let first = catalog(0);
    let _ = writeln!(
        text,
        "async fn publish(bus: &RelayBus<MemoryStore>, event: {first}Event00) -> Result {{\n    \
         bus.for_catalog::<{first}>().publish_detached(event).await.map(drop)\n}}\n\
         fn first_event() -> Option<{first}Event00> {{\n    None\n}}"
    );
    text.push_str(MAIN);
    text
}

fn catalog_source(text: &mut String, c: usize, events: usize) {
    let name = catalog(c);
    for e in 0..events {
        let attribute = format!("#[event(\"{}\", key = id)]", event_type(c, e));
        payload(text, "Event, Serialize, Deserialize", &attribute, &event(c, e));
        let (event, snake) = (event(c, e), snake(c, e));
        let _ = writeln!(
            text,
            "#[consumer({event}, id = \"log.{snake}\")]\nasync fn log_{snake}(event: &Envelope<{event}>, \
             counts: State<Counts>) -> Result {{\n    counts.add(event.payload.amount);\n    Ok(())\n}}"
        );
    }
    let _ = writeln!(text, "#[catalog]\n#[derive(Clone, Debug)]\npub enum {name} {{");
    for e in 0..events {
        let event = event(c, e);
        let _ = writeln!(text, "    {event}({event}),");
    }
    let _ = writeln!(text, "}}\npub struct {name}Service(Arc<Counts>);");
    let _ = writeln!(text, "#[consumers({name})]\nimpl {name}Handlers for {name}Service {{");
    for e in 0..events {
        let (event, snake) = (event(c, e), snake(c, e));
        let _ = writeln!(
            text,
            "    async fn on_{snake}(&self, event: &Envelope<{event}>, _: &HandlerContext) -> HandlerResult {{\n        \
             self.0.add(event.payload.amount);\n        Ok(())\n    }}"
        );
    }
    text.push_str("}\n");
}

fn module_source(text: &mut String, catalogs: usize, events: usize) {
    text.push_str("relaybus::module! {\n    name: pub everything,\n    consumes: [");
    for c in 0..catalogs {
        let _ = write!(text, "{}, ", catalog(c));
    }
    text.push_str("],\n    produces: [],\n    handlers: [");
    for c in 0..catalogs {
        let _ = write!(text, "{}Service, ", catalog(c));
        for e in 0..events {
            let _ = write!(text, "log_{}, ", snake(c, e));
        }
    }
    text.push_str("],\n}\n");
}
