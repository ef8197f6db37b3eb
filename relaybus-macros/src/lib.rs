//! The procedural macros of relaybus. Use them through the `relaybus` crate, which documents them.
//!
//! Each macro is a folder with three steps: `parse` reads the input into a model of ours, `check` holds the rules that
//! need more than one part of it, `generate` writes code. All errors of one input are reported together (`diag`);
//! after an error the item is still emitted, with an implementation that does nothing, so that nothing else fails.
//! Generated code is small: a constant and calls into `relaybus::__private`.

mod args;
mod catalog;
mod consumer;
mod consumers;
mod contract;
mod diag;
mod event;
#[cfg(test)]
mod expansions;
mod grammar;
mod handlers;
mod krate;
mod lint;
mod rewrite;
mod transaction;
mod value;

use proc_macro::TokenStream;

/// Implements `Event` for a serde type.
///
/// ```
/// use relaybus::Event;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Event, Serialize, Deserialize)]
/// #[event("order.placed.v1", key = customer.id)]
/// struct OrderPlaced {
///     customer: Customer,
///     total: u64,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Customer {
///     id: String,
/// }
///
/// let event = OrderPlaced { customer: Customer { id: "c-7".into() }, total: 5 };
/// assert_eq!(OrderPlaced::TYPE, "order.placed.v1");
/// assert_eq!(event.ordering_key()?.unwrap(), "c-7");
/// # Ok::<(), relaybus::Error>(())
/// ```
///
/// Arguments of `#[event(..)]`, in any order:
/// - the event's type, a text of 1 to 255 characters of `A-Za-z0-9 . _ : / -`. Required;
/// - `key`: where the ordering key comes from. A field (`order_id`, `customer.id`, `0`), a function of `&Self` by its
///   path (`Self::key`, `keys::of_order`) or a closure (`|event| ..`), of any type that implements `KeyValue`. Without
///   it the event has no order;
/// - `validate`: a function of `&Self` that returns `Result<(), E>` for any error `E`. It runs before the event is
///   published and after it was decoded;
/// - `crate`: the path of relaybus, for a crate that re-exports it.
///
/// Type parameters get the bounds that an event needs. All events of one generic type have the same event type, so a
/// generic event fits only where its parameter is always the same for one service.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    event::expand(input.into()).into()
}

/// Makes a handler of an async function: the bus calls it for each event of the type. Methods have [`macro@consumers`].
///
/// ```
/// use relaybus::{Envelope, Event, HandlerContext, State, consumer};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)]
/// # #[event("order.placed.v1")]
/// # struct OrderPlaced { order_id: String }
/// # struct Mailer;
/// # impl Mailer { async fn confirm(&self, _: &str) -> std::io::Result<()> { Ok(()) } }
///
/// #[consumer(OrderPlaced, id = "shipping.confirm", retry(attempts = 5, initial_delay = "2s"), timeout = "30s")]
/// async fn confirm(event: Envelope<OrderPlaced>, mailer: State<Mailer>, context: &HandlerContext) -> std::io::Result<()> {
///     if context.attempt() > 1 {
///         println!("trying again: {}", event.id);
///     }
///     mailer.confirm(&event.payload.order_id).await
/// }
/// ```
///
/// **The function** stays callable as it was written. Its arguments stand in any order: the event (`OrderPlaced`,
/// `Envelope<OrderPlaced>` or a reference to one), `&HandlerContext`, `State<T>` for a value of the application,
/// `CancellationToken`, the transaction handle (`&mut PgConnection`) in a `transactional` consumer, and whatever
/// implements `FromDelivery`. It returns `()` or `Result<(), E>` for any error `E`.
///
/// **The attribute** takes the event's Rust type and, in any order:
/// - `id`: the name under which deliveries are stored, 1 to 255 bytes without `#` and control characters. Defaults to
///   the path of the function in its crate, which changes when the function moves: give ids to what runs in production;
/// - `retry(attempts = 5, initial_delay = "2s", factor = 2.0, max_delay = "5m")`: what differs from the bus's retry
///   policy; `attempts = "infinite"` never gives up;
/// - `timeout = "30s"`, or `timeout = false` for none. Defaults to the bus's;
/// - `concurrency = 4`: most runs of it at once in this process. Defaults to the bus's;
/// - `transactional`: it runs in a transaction of the store, which also completes its delivery;
/// - `order = "strict"` (the default) or `"replay"`: whether the next event of a key waits until the completion of the
///   one before is durable;
/// - `companion = Name`: the name of the type that stands for the function, where the function's own name is taken by
///   another type or module;
/// - `crate = path`: the path of relaybus, for a crate that re-exports it.
///
/// Durations are a whole number and `ms`, `s`, `m`, `h` or `d`.
#[proc_macro_attribute]
pub fn consumer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    consumer::expand(arguments.into(), item.into()).into()
}

/// Makes handlers of the methods of an impl block that have `#[consumer(..)]`.
///
/// ```
/// use relaybus::{Event, consumer, consumers};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)]
/// # #[event("order.placed.v1")]
/// # struct OrderPlaced { order_id: String }
///
/// struct Shipping {
///     warehouse: String,
/// }
///
/// #[consumers]
/// impl Shipping {
///     #[consumer(OrderPlaced, id = "shipping.on_placed")]
///     async fn on_placed(&self, event: OrderPlaced) {
///         println!("{}: pack {}", self.warehouse, event.order_id);
///     }
/// }
/// ```
///
/// The instance is the one of its type that was provided to the bus; a missing one stops the bus from starting. The
/// methods take `&self`, then what functions with [`macro@consumer`] take; their attributes take the same arguments, except
/// `companion` and `crate`. The default id is the path of the method, `crate::module::Shipping::on_placed`. Other items
/// of the block are left alone.
///
/// The attribute takes, in any order:
/// - `companion = Name`: the name of a type, visible in the crate, that `handlers![..]` and modules list in place of the
///   block's own. A type with several blocks gives one to all of them but one;
/// - `crate = path`: the path of relaybus, for a crate that re-exports it.
///
/// # Of a catalog
///
/// With a catalog it goes on an implementation of the catalog's handler trait, whose methods are the consumers:
///
/// ```
/// use relaybus::{Envelope, Event, HandlerContext, HandlerResult, catalog, consumers};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] pub struct OrderPlaced {}
/// # #[catalog] pub enum OrderEvents { OrderPlaced(OrderPlaced) }
/// # struct Shipping;
///
/// #[consumers(OrderEvents, prefix = "shipping", retry(attempts = 5))]
/// impl OrderEventsHandlers for Shipping {
///     async fn on_order_placed(&self, event: &Envelope<OrderPlaced>, context: &HandlerContext) -> HandlerResult {
///         Ok(())
///     }
/// }
/// ```
///
/// Handler ids are `<prefix>.on_<event>`; `prefix` defaults to the name of the type. `retry`, `timeout`, `concurrency` and
/// `order` are those of [`consumer`] and hold for every event. With `OrderEventsTxHandlers<H>` each method runs in a
/// transaction. A type that handles a second catalog lists it as `companion = ShippingReturns`.
#[proc_macro_attribute]
pub fn consumers(arguments: TokenStream, item: TokenStream) -> TokenStream {
    consumers::expand(arguments.into(), item.into()).into()
}

/// Makes a catalog of an enum of events: one variant an event.
///
/// ```
/// use relaybus::{Catalog, Event, catalog};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.placed.v1")] pub struct OrderPlaced {}
/// # #[derive(Event, serde::Serialize, serde::Deserialize)] #[event("order.shipped.v1")] pub struct OrderShipped {}
///
/// #[catalog]
/// pub enum OrderEvents {
///     OrderPlaced(OrderPlaced),
///     #[wire("Order Shipped")]
///     OrderShipped(OrderShipped),
/// }
///
/// assert_eq!(OrderEvents::NAME, "OrderEvents");
/// assert_eq!(OrderEvents::EVENTS[1].method, "on_order_shipped");
/// ```
///
/// It adds, as visible as the enum:
/// - the trait `OrderEventsHandlers`, with an async method an event: `on_order_placed(&self, event: &Envelope<OrderPlaced>,
///   context: &HandlerContext) -> HandlerResult`. An implementation without one of them does not compile. Register it with
///   `#[consumers(OrderEvents)]` or with the builder's `subscribe_catalog`;
/// - `OrderEventsTxHandlers<H>`, whose methods also take `tx: &mut H`, the handle of a transaction of the store;
/// - `DynOrderEventsHandlers` and `DynOrderEventsTxHandlers<H>`, the same for use as `dyn`: an `Arc` of one is a handler
///   again;
/// - `Catalog` with the names, event types and wire names, typed decoding and `From` for each event.
///
/// A consumer of the enum itself, `#[consumer(OrderEvents)] async fn project(event: OrderEvents)`, handles all its events
/// under one id: their order by key holds across types, and the compiler completes its `match`.
///
/// A part of a catalog is one too: `#[catalog(of = OrderEvents)] enum Fulfilment { OrderPlaced(OrderPlaced) }`.
///
/// `#[wire("..")]` on a variant is the name under which transports that map names send the event.
///
/// Arguments of `#[catalog(..)]`, in any order:
/// - `name`: its name in messages, and the beginning of handler ids. Defaults to the enum's;
/// - `of`: the catalog that has all its events;
/// - `schema`: its events have JSON schemas, so that the catalog can be exported and compared with what it promised; it needs
///   the feature `schema` of relaybus and `schemars::JsonSchema` on each event (`relaybus::catalog::schema`);
/// - `crate`: the path of relaybus, for a crate that re-exports it.
#[proc_macro_attribute]
pub fn catalog(arguments: TokenStream, item: TokenStream) -> TokenStream {
    catalog::expand(arguments.into(), item.into()).into()
}

/// Runs an async function or method in a transaction: one of its own, or its caller's.
///
/// ```
/// use relaybus::memory::{MemoryStore, MemoryTransaction};
/// use relaybus::{Event, RelayBus, Result, transaction};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)]
/// # #[event("order.placed.v1")]
/// # struct OrderPlaced { order_id: String }
///
/// struct Orders {
///     bus: RelayBus<MemoryStore>,
/// }
///
/// impl Orders {
///     #[transaction]
///     async fn place(&self, tx: &mut MemoryTransaction, order_id: &str) -> Result {
///         // your own writes through `tx`, then:
///         self.bus.publish(tx, OrderPlaced { order_id: order_id.to_owned() }).await?;
///         Ok(())
///     }
///
///     async fn place_one(&self) -> Result {
///         self.place(&self.bus, "o-1").await
///     }
///
///     async fn place_two(&self) -> Result {
///         self.bus.transaction(async |tx| {
///             self.place(&mut *tx, "o-1").await?;
///             self.place(tx, "o-2").await
///         })
///         .await
///     }
/// }
/// ```
///
/// **The function** has the transaction's handle as its first parameter, `tx: &mut H`, where `H` is what the store lends:
/// its own transaction, the database client's connection in it, or `AnyTransaction`. It returns a `Result` whose error is
/// made from `relaybus::Error`. Its callers give a bus or a handle in the handle's place (`TransactionScope`):
/// - `place(&bus, ..)` opens a transaction, commits it when the function returns `Ok`, and rolls it back when it returns
///   `Err`, panics, runs past the bus's transaction timeout or is dropped;
/// - `place(&mut *tx, ..)` joins the transaction of `tx`, whose end decides.
///
/// **The attribute** takes, in any order:
/// - `isolation`: `"read committed"`, `"repeatable read"` or `"serializable"`. Defaults to the database's own level. A
///   function that asks for a level joins only a transaction that was opened at it by the same bus; in any other it
///   returns `RELAYBUS_TRANSACTION_ISOLATION_CONFLICT`;
/// - `attempts = 5`: how often the body runs at most when the database could not serialize it, each time in a new
///   transaction with its own time budget. Defaults to 3 at `"repeatable read"` and `"serializable"`; at other levels
///   nothing is rerun. What the body consumes is cloned for each run, and its error implements `IsSerializationFailure`.
///   The observers and the dispatcher hear of a run's events only when it has committed;
/// - `crate`: the path of relaybus, for a crate that re-exports it.
///
/// **Calls to other services** in the body (HTTP and gRPC clients, brokers, mail, other programs, connections) are compile
/// errors: the transaction keeps its locks and a connection of the pool while the service answers, and what the service
/// did stays when the transaction is rolled back. Imports, parameters and the fields of types in the same file are
/// followed; `cargo relaybus lint` follows calls through the whole crate. [`macro@allow_external_call`] lets one stay.
///
/// It does not go on methods of traits, whose signature it would change.
#[proc_macro_attribute]
pub fn transaction(arguments: TokenStream, item: TokenStream) -> TokenStream {
    transaction::expand(arguments.into(), item.into()).into()
}

/// Makes calls to other services compile errors in the closures of `bus.transaction(..)` inside a function or an impl block.
///
/// ```
/// use relaybus::memory::MemoryStore;
/// use relaybus::{Event, RelayBus, Result, lint_transactions};
/// # #[derive(Event, serde::Serialize, serde::Deserialize)]
/// # #[event("order.placed.v1")]
/// # struct OrderPlaced {}
///
/// #[lint_transactions]
/// async fn place(bus: &RelayBus<MemoryStore>) -> Result {
///     bus.transaction(async |tx| {
///         bus.publish(tx, OrderPlaced {}).await?;
///         Ok(())
///     })
///     .await
/// }
/// ```
///
/// What lies between `let mut tx = bus.begin().await?` and its commit counts too. It is what [`macro@transaction`] does with
/// its whole body.
#[proc_macro_attribute]
pub fn lint_transactions(arguments: TokenStream, item: TokenStream) -> TokenStream {
    lint::expand_lint(arguments.into(), item.into()).into()
}

/// Lets a call to another service stay inside a transaction, and says why.
///
/// ```
/// use relaybus::memory::MemoryTransaction;
/// use relaybus::{Result, transaction};
///
/// #[transaction]
/// async fn stamp(tx: &mut MemoryTransaction) -> Result {
///     #[allow_external_call(reason = "the clock daemon of this machine answers in microseconds")]
///     let socket = std::net::UdpSocket::bind("127.0.0.1:0");
///     drop((socket, tx));
///     Ok(())
/// }
/// ```
///
/// On a statement, inside the body that [`macro@transaction`], a transactional consumer or [`macro@lint_transactions`] reads, it
/// needs no import and lets the calls of that statement stay. On a function it lets all of the function's calls stay, for
/// `cargo relaybus lint` too.
#[proc_macro_attribute]
pub fn allow_external_call(arguments: TokenStream, item: TokenStream) -> TokenStream {
    lint::expand_allow(arguments.into(), item.into()).into()
}

/// The procedural half of `relaybus::module!`, which gives it the path of its crate.
#[doc(hidden)]
#[proc_macro]
pub fn module_contract(input: TokenStream) -> TokenStream {
    contract::expand(input.into()).into()
}

/// The procedural half of `relaybus::handlers!`, which gives it the path of its crate.
#[doc(hidden)]
#[proc_macro]
pub fn handler_list(input: TokenStream) -> TokenStream {
    handlers::expand(input.into()).into()
}
