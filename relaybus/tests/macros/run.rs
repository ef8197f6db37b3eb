//! Handlers of the macros, run by the bus on the in-memory store: every argument has its value, and errors arrive.

use std::sync::Mutex;

use relaybus::memory::{Memory, MemoryTransaction};
use relaybus::registry::HandlerList;
use relaybus::store::{DeliveryQuery, DeliveryStatus};
use relaybus::{
    AnyTransaction, Envelope, Event, FromDelivery, HandlerContext, MemoryStore, Parts, RelayBus, RetryPolicy, State,
    consumer, consumers, handlers,
};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("parcel.sent.v1", key = id)]
struct ParcelSent {
    id: u32,
}

/// What the handlers saw, in any order.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }
}

struct Attempt(u32);
impl<'p, E> FromDelivery<'p, E> for Attempt {
    fn from_delivery(parts: &mut Parts<'p>) -> relaybus::Result<Self> {
        Ok(Self(parts.context().attempt()))
    }
}

#[consumer(ParcelSent, id = "run.owned")]
async fn owned(log: State<Log>, Envelope { payload, key, .. }: Envelope<ParcelSent>) {
    log.note(format!("owned {} {}", payload.id, key.unwrap()));
}

#[consumer(ParcelSent, id = "run.payload")]
async fn payload(event: ParcelSent, Attempt(attempt): Attempt, State(log): State<Log>) {
    log.note(format!("payload {} in attempt {attempt}", event.id));
}

#[consumer(ParcelSent, id = "run.borrowed", transactional)]
async fn borrowed(
    context: &HandlerContext,
    tx: &mut MemoryTransaction,
    event: &ParcelSent,
    log: State<Log>,
) -> Result<(), std::fmt::Error> {
    assert!(!format!("{tx:?}").is_empty());
    log.note(format!("borrowed {} by {}", event.id, context.handler()));
    Ok(())
}

#[consumer(ParcelSent, id = "run.any", transactional)]
async fn any(tx: &mut AnyTransaction, log: State<Log>) {
    log.note(format!("any {}", tx.downcast_mut::<MemoryTransaction>().is_some()));
}

#[consumer(ParcelSent, id = "run.failing", retry(attempts = 1))]
async fn failing(event: ParcelSent) -> Result<(), String> {
    Err(format!("parcel {} is lost", event.id))
}

struct Depot {
    name: &'static str,
}

#[consumers]
impl Depot {
    #[consumer(ParcelSent, id = "run.depot", concurrency = 1)]
    async fn on_sent(&self, event: &Envelope<ParcelSent>, log: State<Log>) {
        log.note(format!("depot {} {}", self.name, event.payload.id));
    }
}

async fn run(list: HandlerList<Memory>) -> (RelayBus<MemoryStore>, Vec<String>) {
    let log = std::sync::Arc::new(Log::default());
    let bus = RelayBus::builder(MemoryStore::new())
        .retry(RetryPolicy::default())
        .provide_shared(log.clone())
        .provide(Depot { name: "north" })
        .handlers(list)
        .build()
        .unwrap();
    bus.transaction(async |tx| -> relaybus::Result {
        bus.publish(tx, ParcelSent { id: 7 }).await?;
        Ok(())
    })
    .await
    .unwrap();
    bus.drain().await.unwrap();
    let mut lines = std::mem::take(&mut *log.0.lock().unwrap());
    lines.sort();
    (bus, lines)
}

#[tokio::test]
async fn every_argument_has_its_value() {
    let (_, lines) = run(handlers![owned, payload, borrowed, any, Depot]).await;
    let expected = ["any true", "borrowed 7 by run.borrowed", "depot north 7", "owned 7 7", "payload 7 in attempt 1"];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_handlers_error_is_the_deliverys() {
    let (bus, lines) = run(handlers![failing]).await;
    assert!(lines.is_empty());
    let mut query = DeliveryQuery::default();
    query.status = Some(DeliveryStatus::Dead);
    let page = bus.list_deliveries(&query).await.unwrap();
    assert_eq!(page.deliveries.len(), 1);
    let error = format!("{:?}", page.deliveries[0]);
    assert!(error.contains("parcel 7 is lost"), "{error}");
}

#[test]
fn settings_reach_the_bus() {
    let bus = RelayBus::builder(MemoryStore::new()).provide(Log::default()).handlers(handlers![failing, borrowed]);
    let bus = bus.build().unwrap();
    let infos = bus.handlers();
    let ids: Vec<_> = infos.iter().map(|info| info.id.as_str()).collect();
    assert_eq!(ids, ["run.borrowed", "run.failing"]);
}
