//! Lists, counts and purging.

use super::*;
use crate::store::DeliveryStatus;

fn ids(page: &DeliveryPage) -> Vec<String> {
    page.deliveries.iter().map(|record| record.id.to_string()).collect()
}

fn page(store: &MemoryStore, query: DeliveryQuery) -> DeliveryPage {
    done(store.list_deliveries(&query, at(0))).unwrap()
}

fn purge(store: &MemoryStore, request: PurgeRequest) -> Purged {
    let purged = done(store.purge(&request)).unwrap();
    check(&store.shared.lock());
    purged
}

#[test]
fn pages_go_by_event_and_handler_and_end_exactly() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["h", "f", "g"], 0), event("b", None, &["f"], 0)]);
    let first = page(&store, DeliveryQuery::all().limit(2));
    assert_eq!(ids(&first), ["f#a", "g#a"]);
    // What ends and what comes between two pages moves nothing else.
    let mut worker = Worker::new(&store, 0);
    let claimed = worker.claim("g", 1, 1, 0);
    worker.complete(&claimed[0].deliveries[0], RunPart::Last, 0);
    publish(&store, vec![event("a", None, &["a", "i"], 0)]);
    let second = page(&store, DeliveryQuery::all().limit(2).after(first.next.unwrap()));
    assert_eq!(ids(&second), ["h#a", "i#a"]);
    let third = page(&store, DeliveryQuery::all().limit(1).after(second.next.unwrap()));
    assert_eq!((ids(&third), third.next), (vec!["f#b".to_owned()], None));
}

#[test]
fn lists_filter_and_show_how_a_delivery_stands() {
    let store = MemoryStore::new().completion_history(true);
    publish(&store, ["a", "b", "c", "d"].map(|id| event(id, Some(id), &["h"], 0)).into());
    let mut worker = Worker::new(&store, 0);
    let claimed: Vec<_> = worker.claim("h", 3, 1, 0).into_iter().flat_map(|run| run.deliveries).collect();
    worker.complete(&claimed[0], RunPart::Last, 5);
    worker.settle(&claimed[1], buried(), &[], 6);
    let one = |query| {
        page(&store, query)
            .deliveries
            .into_iter()
            .map(|record| (record.id.event_id().to_string(), record.attempts, record.ended_at, record.token))
    };
    let status = |status| one(DeliveryQuery::all().status(status)).collect::<Vec<_>>();
    assert_eq!(status(DeliveryStatus::Completed), [("a".to_owned(), 0, Some(at(5)), None)]);
    assert_eq!(status(DeliveryStatus::Dead), [("b".to_owned(), 1, Some(at(6)), None)]);
    let token = claimed[2].lease.token.to_string();
    assert_eq!(status(DeliveryStatus::Processing), [("c".to_owned(), 0, None, Some(token))]);
    assert_eq!(status(DeliveryStatus::Pending), [("d".to_owned(), 0, None, None)]);
    assert_eq!(one(DeliveryQuery::all().key(OrderingKey::new("b").unwrap())).count(), 1);
    assert_eq!(one(DeliveryQuery::all().handler(handler("g"))).count(), 0);
    assert_eq!(one(DeliveryQuery::all().event_type(EventType::from_static("other"))).count(), 0);
    let statistics = done(store.statistics(at(0))).unwrap();
    assert_eq!((statistics.pending, statistics.processing, statistics.completed, statistics.dead), (1, 1, 1, 1));
    assert_eq!(done(store.backlog()).unwrap(), [HandlerBacklog { handler: handler("h"), unfinished: 2 }]);
}

#[test]
fn the_oldest_due_counts_followers_too() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", Some("k"), &["h"], 9), event("b", Some("k"), &["h"], 3)]);
    let oldest = |now| done(store.statistics(at(now))).unwrap().oldest_due_at;
    assert_eq!([oldest(2), oldest(3), oldest(20)], [None, Some(at(3)), Some(at(3))]);
}

#[test]
fn purging_waits_for_the_last_completion_and_for_every_delivery() {
    let store = MemoryStore::new();
    publish(&store, vec![event("a", None, &["g", "h", "i"], 0), event("b", None, &[], 0)]);
    let mut worker = Worker::new(&store, 0);
    let before = |micros| PurgeRequest { completed_before: Some(at(micros)), ..PurgeRequest::new(10) };
    let claimed = worker.claim("g", 1, 1, 0);
    worker.complete(&claimed[0].deliveries[0], RunPart::Last, 50);
    let claimed = worker.claim("i", 1, 1, 0);
    worker.complete(&claimed[0].deliveries[0], RunPart::Last, 20);
    assert_eq!(purge(&store, before(0)), Purged::default());
    assert_eq!(purge(&store, before(99)), Purged { events: 1, ..Purged::default() }, "b, which never had one");
    let claimed = worker.claim("h", 1, 1, 60);
    worker.settle(&claimed[0].deliveries[0], buried(), &[], 70);
    assert_eq!(purge(&store, before(99)), Purged::default(), "its dead delivery keeps it");
    let dead = PurgeRequest { dead_before: Some(at(71)), ..before(50) };
    assert_eq!(purge(&store, dead), Purged { dead: 1, ..Purged::default() });
    assert_eq!(purge(&store, before(51)), Purged { events: 1, ..Purged::default() });
    assert_eq!(publish(&store, vec![event("a", None, &["g"], 0)]).outcomes[0].deliveries(), 1, "forgotten");
}

#[test]
fn a_purge_ends_at_its_limit_and_says_whether_more_is_left() {
    let store = MemoryStore::new().completion_history(true);
    publish(&store, ["a", "b", "c"].map(|id| event(id, None, &["h"], 0)).into());
    let mut worker = Worker::new(&store, 0);
    for run in worker.claim("h", 9, 1, 0) {
        worker.complete(&run.deliveries[0], RunPart::Last, 1);
    }
    let request = PurgeRequest { completed_before: Some(at(9)), ..PurgeRequest::new(4) };
    assert_eq!(purge(&store, request), Purged { events: 2, records: 2, dead: 0, more: true });
    assert_eq!(store.shared.lock().purge_from, 3, "the next call goes on there");
    // What became old before that place is not passed over.
    store.shared.lock().events.get_mut(&3).unwrap().deliveries[0].status = Status::Completed { at: at(99) };
    publish(&store, vec![event("d", None, &[], 0)]);
    assert_eq!(purge(&store, request), Purged { events: 1, records: 0, dead: 0, more: false });
    store.shared.lock().events.get_mut(&3).unwrap().deliveries[0].status = Status::Completed { at: at(1) };
    assert_eq!(purge(&store, request), Purged { events: 1, records: 1, dead: 0, more: false });
}
