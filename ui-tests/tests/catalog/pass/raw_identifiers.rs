//! Keywords as names.

use relaybus::{Catalog, Envelope, Event, HandlerContext, HandlerResult, catalog, consumers, handlers};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("match.v1")]
#[allow(non_camel_case_types, reason = "the case")]
struct r#match {}

#[catalog]
#[allow(non_camel_case_types, reason = "the case")]
enum r#enum {
    r#match(r#match),
    Type(r#Type),
}

#[derive(Event, Serialize, Deserialize)]
#[event("type.v1")]
struct r#Type {}

#[allow(non_camel_case_types, reason = "the case")]
struct r#impl;

#[consumers(r#enum)]
impl enumHandlers for r#impl {
    async fn on_match(&self, _: &Envelope<r#match>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
    async fn on_type(&self, _: &Envelope<Type>, _: &HandlerContext) -> HandlerResult {
        Ok(())
    }
}

relaybus::module! {
    name: r#fn,
    consumes: [r#enum::{r#match, Type}],
    handlers: [r#impl],
}

#[test]
fn without_their_marks() {
    assert_eq!((r#enum::NAME, r#enum::EVENTS[0].name, r#enum::EVENTS[0].method), ("enum", "match", "on_match"));
    let list: relaybus::registry::HandlerList<relaybus::memory::Memory> = handlers![r#impl];
    assert_eq!(list.entries()[0].id, "impl.on_match");
    assert!(matches!((r#match {}.into(), Type {}.into()), (r#enum::r#match(_), r#enum::Type(_))));
    fn module<M: relaybus::Module>() {}
    module::<r#fn>();
}
