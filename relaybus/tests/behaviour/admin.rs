//! Operating a bus: statistics, listing, requeueing and purging through it.

use relaybus::store::{DeliveryId, DeliveryQuery, DeliveryStatus, Requeued};
use relaybus::{
    Envelope, Error, EventId, HandlerContext, HandlerId, MemoryStore, OrderingKey, RelayBus, RetentionOptions,
    Subscribe,
};

use crate::kit::{Note, Placed, Seen, builder, deliveries, memory, note, pass, placed, secs, start_time};

/// Handles orders; those with a number below 100 are refused for good.
fn picky() -> Subscribe {
    Subscribe::to("orders", |event: Envelope<Placed>, _| async move {
        if event.payload.number < 100 { Err(Error::non_retryable("too small")) } else { Ok(()) }
    })
}

fn notes() -> Subscribe {
    Subscribe::to("notes", |_: Envelope<Note>, _| async {})
}

async fn with_dead_letters(store: MemoryStore) -> RelayBus<MemoryStore> {
    let bus = builder(store)
        .retention(RetentionOptions::default().completed("1d").dead("2d"))
        .subscribe(picky())
        .subscribe(notes())
        .build()
        .unwrap();
    for number in 0..5 {
        bus.publish_detached(placed(&format!("k{}", number % 2), number)).await.unwrap();
        bus.publish_detached(placed("fine", 100 + number)).await.unwrap();
    }
    bus.drain().await.unwrap();
    bus.publish_detached(note("waits")).await.unwrap();
    bus.publish_detached(note("later")).delay("1h").await.unwrap();
    bus
}

#[tokio::test(start_paused = true)]
async fn statistics_count_by_status() {
    let bus = with_dead_letters(MemoryStore::new().completion_history(true)).await;
    pass(secs(5)).await;
    let statistics = bus.statistics().await.unwrap();
    assert_eq!((statistics.pending, statistics.processing), (2, 0));
    assert_eq!((statistics.completed, statistics.dead), (5, 5));
    let oldest = statistics.oldest_due_at.unwrap();
    assert!(oldest.since(start_time()) < secs(1));
    let forgetful = with_dead_letters(MemoryStore::new()).await;
    assert_eq!(forgetful.statistics().await.unwrap().completed, 0, "completed deliveries are deleted");
}

#[tokio::test(start_paused = true)]
async fn deliveries_are_listed_by_what_they_are_page_by_page() {
    let bus = with_dead_letters(MemoryStore::new()).await;
    let list = async |query: DeliveryQuery| bus.list_deliveries(&query).await.unwrap().deliveries.len();
    assert_eq!(list(DeliveryQuery::all()).await, 7);
    assert_eq!(list(DeliveryQuery::all().status(DeliveryStatus::Dead)).await, 5);
    assert_eq!(list(DeliveryQuery::all().status(DeliveryStatus::Completed)).await, 0);
    assert_eq!(list(DeliveryQuery::all().handler(HandlerId::new("notes").unwrap())).await, 2);
    assert_eq!(list(DeliveryQuery::all().key(OrderingKey::new("k0").unwrap())).await, 3);
    assert_eq!(list(DeliveryQuery::all().event_type("note.v1".parse_type())).await, 2);
    let mut query = DeliveryQuery::all().status(DeliveryStatus::Dead).limit(2);
    let mut found = Vec::new();
    loop {
        let page = bus.list_deliveries(&query).await.unwrap();
        assert!(page.deliveries.len() <= 2);
        found.extend(page.deliveries.into_iter().map(|delivery| delivery.id));
        match page.next {
            Some(next) => query = query.after(next),
            None => break,
        }
    }
    let all: Vec<DeliveryId> = deliveries(&bus).await.into_iter().take(5).map(|delivery| delivery.id).collect();
    assert_eq!(found, all);
}

trait ParseType {
    fn parse_type(&self) -> relaybus::EventType;
}

impl ParseType for str {
    fn parse_type(&self) -> relaybus::EventType {
        relaybus::EventType::new(self).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn only_dead_letters_are_requeued_with_all_their_attempts() {
    let seen = Seen::<u32>::default();
    let keep = seen.clone();
    let bus = memory()
        .subscribe(Subscribe::to("orders", move |event: Envelope<Placed>, context: HandlerContext| {
            keep.push(context.attempt());
            let fails = event.payload.number == 1 && keep.count() < 3;
            async move { if fails { Err(Error::non_retryable("no")) } else { Ok(()) } }
        }))
        .build()
        .unwrap();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    bus.drain().await.unwrap();
    bus.publish_detached(placed("a", 2)).delay("1h").await.unwrap();
    let ids: Vec<DeliveryId> = deliveries(&bus).await.into_iter().map(|delivery| delivery.id).collect();
    let unknown = DeliveryId::new(HandlerId::new("orders").unwrap(), EventId::new("nothing").unwrap());
    let ask = [ids[0].clone(), ids[1].clone(), unknown, ids[0].clone()];
    let answers = bus.requeue(&ask).await.unwrap();
    assert_eq!(answers, [Requeued::Requeued, Requeued::NotDead, Requeued::Unknown, Requeued::NotDead]);
    let record = deliveries(&bus).await.remove(0);
    assert_eq!((record.status, record.attempts), (DeliveryStatus::Pending, 0));
    bus.drain().await.unwrap();
    bus.requeue(&ids[..1]).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), [1, 1, 1]);
    assert_eq!(bus.requeue(&ids[..1]).await.unwrap(), [Requeued::Unknown], "it completed");
    assert!(bus.requeue(&[]).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_requeue_wakes_the_dispatcher() {
    let bus = with_dead_letters(MemoryStore::new()).await;
    bus.start().await.unwrap();
    pass(secs(10)).await;
    let dead = bus.list_deliveries(&DeliveryQuery::all().status(DeliveryStatus::Dead)).await.unwrap();
    bus.requeue(&[dead.deliveries[0].id.clone()]).await.unwrap();
    pass(crate::kit::ms(20)).await;
    let again = deliveries(&bus).await.remove(0);
    assert_eq!(
        (again.status, again.attempts),
        (DeliveryStatus::Dead, 1),
        "it ran and died again, long before the poll"
    );
    bus.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_purge_deletes_what_is_past_its_retention_and_forgets_its_ids() {
    let bus = with_dead_letters(MemoryStore::new()).await;
    bus.publish_detached(placed("x", 500)).id("known").await.unwrap();
    bus.drain().await.unwrap();
    let purged = bus.purge_expired().await.unwrap();
    assert_eq!((purged.events, purged.dead), (0, 0));
    pass(secs(86_400 + 60)).await;
    assert_eq!(bus.purge_expired().await.unwrap().events, 7, "the orders that were handled, and the note that waited");
    bus.publish_detached(placed("x", 500)).id("known").await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 2, "an id is known for as long as its event is kept; and the later note");
    pass(secs(86_400)).await;
    let purged = bus.purge_expired().await.unwrap();
    assert_eq!(purged.dead, 5);
    assert_eq!(bus.statistics().await.unwrap().dead, 0);
}
