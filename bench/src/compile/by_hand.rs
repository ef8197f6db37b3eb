//! The crate as somebody writes it who has the library and no macros: the events' implementations, the enums with their
//! decoding, traits with a method an event, and a list of every handler.
//!
//! The lean form leaves out what nothing in the crate uses: handlers as `dyn`, and handlers in a transaction.

use std::fmt::Write as _;

use super::shared::{COUNTS, MAIN, catalog, event, event_type, payload, snake};

const USES: &str = "
use std::future::Future;
use std::pin::Pin;
use relaybus::{AnyTransaction, Envelope, Event, EventBatch, EventType, HandlerContext, HandlerResult, MemoryStore};
use relaybus::{OrderingKey, RawPayload, RelayBus, RelayBusBuilder, Result, Subscribe};
use serde::{Deserialize, Serialize};

type Boxed<'a> = Pin<Box<dyn Future<Output = HandlerResult> + Send + 'a>>;
";

pub(super) fn source(catalogs: usize, events: usize) -> String {
    written(catalogs, events, true)
}

pub(super) fn lean_source(catalogs: usize, events: usize) -> String {
    written(catalogs, events, false)
}

fn written(catalogs: usize, events: usize, whole: bool) -> String {
    let mut text = String::from("#![allow(dead_code, unused_imports)]\n");
    text.push_str(USES);
    text.push_str(COUNTS);
    for c in 0..catalogs {
        for e in 0..events {
            event_source(&mut text, c, e);
        }
        enum_source(&mut text, c, events);
        trait_source(&mut text, c, events);
        if whole {
            dyn_source(&mut text, c, events);
            transactional_source(&mut text, c, events);
        }
        service_source(&mut text, c, events);
    }
    build_source(&mut text, catalogs, events);
    text.push_str(MAIN);
    text
}

fn event_source(text: &mut String, c: usize, e: usize) {
    let (name, snake) = (event(c, e), snake(c, e));
    payload(text, "Serialize, Deserialize", "", &name);
    let _ = writeln!(
        text,
        "impl Event for {name} {{\n    const TYPE: EventType = EventType::from_static(\"{}\");\n    \
         fn ordering_key(&self) -> Result<Option<OrderingKey>> {{\n        OrderingKey::new(&*self.id).map(Some)\n    }}\n}}\n\
         async fn log_{snake}(event: &Envelope<{name}>, counts: &Counts) -> Result {{\n    \
         counts.add(event.payload.amount);\n    Ok(())\n}}",
        event_type(c, e)
    );
}

fn enum_source(text: &mut String, c: usize, events: usize) {
    let name = catalog(c);
    let all: Vec<String> = (0..events).map(|e| event(c, e)).collect();
    let _ = writeln!(text, "#[derive(Clone, Debug)]\npub enum {name} {{");
    for event in &all {
        let _ = writeln!(text, "    {event}({event}),");
    }
    let _ = writeln!(text, "}}\nimpl {name} {{\n    pub const EVENTS: &[(&str, EventType)] = &[");
    for event in &all {
        let _ = writeln!(text, "        (\"{event}\", {event}::TYPE),");
    }
    text.push_str("    ];\n    pub fn decode(envelope: &Envelope<RawPayload>) -> Result<Self> {\n");
    text.push_str("        match envelope.event_type.as_str() {\n");
    for (e, event) in all.iter().enumerate() {
        let event_type = event_type(c, e);
        let _ = writeln!(
            text,
            "            \"{event_type}\" => envelope.decode::<{event}>().map(|event| Self::{event}(event.payload)),"
        );
    }
    text.push_str(
        "            _ => Err(relaybus::Error::EventValidation { event_type: envelope.event_type.clone(), \
                   reason: \"not of this catalog\".into(), source: None }),\n        }\n    }\n",
    );
    text.push_str("    pub fn add_to(&self, batch: &mut EventBatch) {\n        match self {\n");
    for event in &all {
        let _ = writeln!(text, "            Self::{event}(event) => batch.push(event),");
    }
    let _ = writeln!(text, "        }}\n    }}\n}}\npub trait In{name}: Event {{}}");
    for event in &all {
        let _ = writeln!(
            text,
            "impl In{name} for {event} {{}}\nimpl From<{event}> for {name} {{\n    fn from(event: {event}) -> Self {{\n        \
             Self::{event}(event)\n    }}\n}}"
        );
    }
}

fn trait_source(text: &mut String, c: usize, events: usize) {
    let name = catalog(c);
    let _ = writeln!(text, "pub trait {name}Handlers: Send + Sync + 'static {{");
    for e in 0..events {
        let (event, snake) = (event(c, e), snake(c, e));
        let _ = writeln!(
            text,
            "    fn on_{snake}(&self, event: &Envelope<{event}>, context: &HandlerContext) \
             -> impl Future<Output = HandlerResult> + Send;"
        );
    }
    text.push_str("}\n");
    let _ = writeln!(
        text,
        "fn subscribe_{}<T: {name}Handlers>(mut bus: RelayBusBuilder<MemoryStore>, prefix: &str, this: Arc<T>) \
         -> RelayBusBuilder<MemoryStore> {{",
        name.to_lowercase()
    );
    for e in 0..events {
        let (event, snake) = (event(c, e), snake(c, e));
        let _ = writeln!(
            text,
            "    let handlers = this.clone();\n    bus = bus.subscribe(Subscribe::to(format!(\"{{prefix}}.on_{snake}\"), \
             move |event: Envelope<{event}>, context: HandlerContext| {{\n        let handlers = handlers.clone();\n        \
             async move {{ handlers.on_{snake}(&event, &context).await }}\n    }}));"
        );
    }
    text.push_str("    bus\n}\n");
}

fn dyn_source(text: &mut String, c: usize, events: usize) {
    let name = catalog(c);
    let signature = |e: usize| {
        let (event, snake) = (event(c, e), snake(c, e));
        format!(
            "    fn dyn_on_{snake}<'h>(&'h self, event: &'h Envelope<{event}>, context: &'h HandlerContext) -> Boxed<'h>"
        )
    };
    let _ = writeln!(text, "pub trait Dyn{name}Handlers: Send + Sync + 'static {{");
    for e in 0..events {
        let _ = writeln!(text, "{};", signature(e));
    }
    let _ = writeln!(text, "}}\nimpl<T: {name}Handlers> Dyn{name}Handlers for T {{");
    for e in 0..events {
        let _ =
            writeln!(text, "{} {{\n        Box::pin(self.on_{}(event, context))\n    }}", signature(e), snake(c, e));
    }
    let _ = writeln!(text, "}}\nimpl {name}Handlers for Arc<dyn Dyn{name}Handlers> {{");
    for e in 0..events {
        let (event, snake) = (event(c, e), snake(c, e));
        let _ = writeln!(
            text,
            "    async fn on_{snake}(&self, event: &Envelope<{event}>, context: &HandlerContext) -> HandlerResult {{\n        \
             (**self).dyn_on_{snake}(event, context).await\n    }}"
        );
    }
    text.push_str("}\n");
}

fn transactional_source(text: &mut String, c: usize, events: usize) {
    let name = catalog(c);
    let _ = writeln!(text, "pub trait {name}TxHandlers: Send + Sync + 'static {{");
    for e in 0..events {
        let (event, snake) = (event(c, e), snake(c, e));
        let _ = writeln!(
            text,
            "    fn on_{snake}(&self, event: &Envelope<{event}>, tx: &mut AnyTransaction, context: &HandlerContext) \
             -> impl Future<Output = HandlerResult> + Send;"
        );
    }
    text.push_str("}\n");
    let _ = writeln!(
        text,
        "fn subscribe_{}_in_transaction<T: {name}TxHandlers>(mut bus: RelayBusBuilder<MemoryStore>, prefix: &str, \
         this: Arc<T>) -> RelayBusBuilder<MemoryStore> {{",
        name.to_lowercase()
    );
    for e in 0..events {
        let (event, snake) = (event(c, e), snake(c, e));
        let _ = writeln!(
            text,
            "    bus = bus.subscribe(Subscribe::transactional(format!(\"{{prefix}}.on_{snake}\"), {{\n        \
             let handlers = this.clone();\n        fn same<F>(f: F) -> F where F: for<'a> Fn(Envelope<{event}>, \
             &'a mut AnyTransaction, &'a HandlerContext) -> Pin<Box<dyn Future<Output = Result> + Send + 'a>> {{ f }}\n        \
             same(move |event, tx, context| {{\n            let handlers = handlers.clone();\n            \
             Box::pin(async move {{ handlers.on_{snake}(&event, tx, context).await.map_err(|source| relaybus::Error::Handler {{ source }}) }})\n        \
             }})\n    }}));"
        );
    }
    text.push_str("    bus\n}\n");
}

fn service_source(text: &mut String, c: usize, events: usize) {
    let name = catalog(c);
    let _ = writeln!(text, "pub struct {name}Service(Arc<Counts>);\nimpl {name}Handlers for {name}Service {{");
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

fn build_source(text: &mut String, catalogs: usize, events: usize) {
    text.push_str("fn build() -> Result<RelayBus<MemoryStore>> {\n    let counts = Arc::new(Counts::default());\n");
    text.push_str("    let mut bus = RelayBus::builder(MemoryStore::new());\n");
    for c in 0..catalogs {
        for e in 0..events {
            let (event, snake) = (event(c, e), snake(c, e));
            let _ = writeln!(
                text,
                "    let these = counts.clone();\n    bus = bus.subscribe(Subscribe::to(\"log.{snake}\", \
                 move |event: Envelope<{event}>, _| {{\n        let these = these.clone();\n        \
                 async move {{ log_{snake}(&event, &these).await }}\n    }}));"
            );
        }
        let name = catalog(c);
        let _ = writeln!(
            text,
            "    bus = subscribe_{lower}(bus, \"{lower}\", Arc::new({name}Service(counts.clone())));",
            lower = name.to_lowercase()
        );
    }
    text.push_str("    bus.build()\n}\n");
    let first = catalog(0);
    let _ = writeln!(
        text,
        "async fn publish(bus: &RelayBus<MemoryStore>, event: impl In{first}) -> Result {{\n    \
         bus.publish_detached(event).await.map(drop)\n}}\nfn first_event() -> Option<{first}Event00> {{\n    None\n}}"
    );
}
