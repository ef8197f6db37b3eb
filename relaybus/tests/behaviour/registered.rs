//! Handlers written with `#[consumer]`: what they take, and the faults that keep a bus from being built.

use relaybus::memory::MemoryTransaction;
use relaybus::{
    Envelope, EventStore, HandlerContext, MemoryStore, RelayBus, Result, State, Subscribe, consumer, consumers,
    handlers,
};

use crate::kit::{Note, Placed, Seen, memory, note, placed, refusal};

struct Mailer {
    sent: Seen,
}

#[consumer(Placed, id = "orders.mail")]
async fn mail(
    event: &Envelope<Placed>,
    mailer: State<Mailer>,
    bus: State<RelayBus>,
    context: &HandlerContext,
) -> Result {
    mailer.sent.push(format!("mail {} {}", event.payload.order_id, context.handler()));
    bus.publish_detached(note("mailed")).await.map(drop)
}

#[consumer(Note, id = "notes.keep")]
async fn keep(note: Note, mailer: State<Mailer>, typed: State<RelayBus<MemoryStore>>) {
    mailer.sent.push(format!("note {} {}", note.text, typed.store().name()));
}

#[consumer(Placed, id = "orders.record", transactional)]
async fn record(event: Placed, tx: &mut MemoryTransaction, mailer: State<Mailer>) {
    let (seen, order) = (mailer.sent.clone(), event.order_id);
    tx.on_commit(move || seen.push(format!("recorded {order}")));
}

#[tokio::test(start_paused = true)]
async fn a_handler_takes_what_it_names_the_bus_included() {
    let seen = Seen::default();
    let bus = memory().provide(Mailer { sent: seen.clone() }).handlers(handlers![mail, keep, record]).build().unwrap();
    bus.publish_detached(placed("o-1", 1)).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 3);
    let mut all = seen.all();
    all.sort();
    assert_eq!(all, ["mail o-1 orders.mail", "note mailed memory", "recorded o-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_handler_named_twice_is_one_handler() {
    let bus = memory()
        .provide(Mailer { sent: Seen::default() })
        .handlers(handlers![mail])
        .handlers(handlers![mail])
        .build()
        .unwrap();
    assert_eq!(bus.handlers().len(), 1);
}

#[test]
fn every_fault_is_told_at_once_before_any_work_begins() {
    let silent = |id: &str| Subscribe::to(id, |_: Envelope<Note>, _| async {});
    let builder = RelayBus::builder(MemoryStore::new())
        .handlers(handlers![mail, record])
        .subscribe(silent("twice"))
        .subscribe(silent("twice"))
        .subscribe(silent("orders.mail"))
        .subscribe(silent(""))
        .subscribe(silent("a#b"))
        .subscribe(silent("relaybus.transport:kafka:orders"))
        .subscribe(silent("no time").timeout(std::time::Duration::ZERO))
        .subscribe(silent("no slots").concurrency(0))
        .subscribe(silent("no attempts").retry(crate::kit::limited(0)))
        .route(relaybus::Route::to("kafka", "orders").event::<Placed>());
    let message = refusal(builder);
    let mailer = std::any::type_name::<Mailer>();
    let place = |line: &str| line.contains("registered.rs:");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "this bus cannot start:");
    let expected = [
        "  - `` is not a handler id: use 1 to 255 bytes without `#` and control characters, such as `shipping.ship`",
        "  - `a#b` is not a handler id: use 1 to 255 bytes without `#` and control characters, such as `shipping.ship`",
        "  - concurrency of handler `no slots` is 0: expected at least 1",
        &format!(
            "  - handler `orders.mail` takes `State<{mailer}>`, which was not provided: call `.provide(..)` with a value of this very type on the builder"
        ),
        &format!(
            "  - handler `orders.record` takes `State<{mailer}>`, which was not provided: call `.provide(..)` with a value of this very type on the builder"
        ),
        "  - handler id `orders.mail` is used twice",
        "  - handler id `relaybus.transport:kafka:orders` begins as those of routes do: give it another id",
        "  - handler id `twice` is used twice (a closure, a closure): give one another id",
        "  - retry of handler `no attempts`: `attempts` is 0, expected at least 1",
        "  - route to `orders` needs the transport `kafka`, which the bus does not have: add it with `.transport(..)`",
        "  - timeout of handler `no time` is below 1ms: expected at least 1ms, or no timeout",
    ];
    assert_eq!(lines.len() - 1, expected.len(), "{message}");
    for (line, expected) in lines[1..].iter().zip(expected) {
        assert!(*line == expected || (place(line) && line.starts_with(expected)), "{line}\n{expected}");
    }
}

struct Depot;

#[consumers]
impl Depot {
    #[consumer(Placed, id = "depot.pick")]
    async fn pick(&self, _: Placed) {}
}

#[test]
fn a_type_with_handlers_that_was_not_provided_is_named() {
    let message = refusal(memory().handlers(handlers![Depot]));
    let depot = std::any::type_name::<Depot>();
    let expected = format!(
        "handler `depot.pick` is a method of `{depot}`, of which no instance was provided: call `.provide(..)` with one on the builder"
    );
    assert!(message.contains(&expected), "{message}");
    memory().handlers(handlers![Depot]).provide(Depot).build().unwrap();
}
