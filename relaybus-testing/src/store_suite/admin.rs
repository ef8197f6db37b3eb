//! What operators ask: lists, counts, requeueing, and the life of the store itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use relaybus::store::{DeliveryId, DeliveryQuery, DeliveryStatus, Requeued, Settled, StoreTransaction, WakeUp};
use relaybus::{EventId, EventStore, EventType, OrderingKey};
use tokio::sync::Notify;

use super::StoreFactory;
use super::kit::{Rig, again, append, append_in, at, begin, buried, event, handler, ids};

fn delivery(handler_name: &str, event_id: &str) -> DeliveryId {
    DeliveryId::new(handler(handler_name), EventId::new(event_id).unwrap())
}

/// Statistics count the deliveries by status.
pub async fn statistics_count_by_status<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let empty = rig.statistics(at(0)).await;
    assert_eq!((empty.pending, empty.processing, empty.completed, empty.dead, empty.oldest_due_at), (0, 0, 0, 0, None));
    rig.append((0..9).map(|n| event(&format!("e{n}"))), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.claim_all(6, at(1)).await;
    worker.settle(&claimed[0].lease, buried(), at(2)).await;
    worker.settle(&claimed[1].lease, again(at(90)), at(2)).await;
    worker.complete(&claimed[2], at(2)).await;
    let statistics = rig.statistics(at(3)).await;
    assert_eq!((statistics.pending, statistics.processing, statistics.dead), (4, 3, 1));
    assert_eq!(statistics.completed, u64::from(rig.keeps_history()));
    rig.close().await;
}

/// The oldest due time is that of the delivery that has waited longest; what is not due has not waited.
pub async fn statistics_tell_how_long_work_waits<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("young").due(at(30)), event("old").due(at(10)), event("later").due(at(900))], at(0)).await;
    assert!(rig.statistics(at(5)).await.oldest_due_at.is_none_or(|due_at| due_at > at(5)), "nothing is due yet");
    assert_eq!(rig.statistics(at(40)).await.oldest_due_at, Some(at(10)));
    let mut worker = rig.worker(&["h"], at(40)).await;
    assert_eq!(worker.drain(at(40)).await.len(), 2);
    assert!(rig.statistics(at(40)).await.oldest_due_at.is_none_or(|due_at| due_at > at(40)), "the rest is not due");
    assert_eq!(rig.statistics(at(901)).await.oldest_due_at, Some(at(900)));
    rig.close().await;
}

/// The backlog names every handler with unfinished deliveries, known to a process or not.
pub async fn the_backlog_names_every_handler<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..5).map(|n| event(&format!("e{n}")).to(&["gone", "h"])), at(0)).await;
    rig.append(
        [event("x").to(&["dead"]), event("y").to(&["done"]), event("z").key("k").due(at(900)).to(&["later"])],
        at(0),
    )
    .await;
    let mut worker = rig.worker(&["dead", "done"], at(1)).await;
    for claimed in worker.claim_all(2, at(1)).await {
        if claimed.lease.handler == "dead" {
            worker.settle(&claimed.lease, buried(), at(1)).await;
        } else {
            worker.complete(&claimed, at(1)).await;
        }
    }
    worker.close(at(1)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    worker.claim_all(2, at(1)).await;
    let backlog = rig.store().backlog().await.unwrap();
    let mut counts: Vec<(String, u64)> =
        backlog.iter().map(|of| (of.handler.to_string(), of.unfinished)).filter(|(_, count)| *count > 0).collect();
    counts.sort();
    assert_eq!(counts, [("gone".to_owned(), 5), ("h".to_owned(), 5), ("later".to_owned(), 1)]);
    rig.close().await;
}

/// A list can be narrowed to a status, a handler, a type, a key, and to all of them.
pub async fn lists_are_filtered<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1").key("k").to(&["a", "b"]), event("e2").key("K").to(&["a"])], at(0)).await;
    rig.append([event("e3").event_type("suite.other").to(&["a", "b"]), event("e4").key("k").to(&["b"])], at(0)).await;
    let mut worker = rig.worker(&["b"], at(1)).await;
    let held = worker.claim_all(2, at(1)).await;
    let dead = held.iter().find(|claimed| claimed.event.id == *"e3").expect("e3 is unkeyed");
    worker.settle(&dead.lease, buried(), at(2)).await;
    let names = |records: Vec<relaybus::store::DeliveryRecord>| {
        records.iter().map(|record| record.id.to_string()).collect::<Vec<_>>()
    };
    let all = DeliveryQuery::all;
    let list = |query| rig.deliveries(query, at(3));
    let key = |text: &str| OrderingKey::new(text).unwrap();
    assert_eq!(names(list(all()).await), ["a#e1", "b#e1", "a#e2", "a#e3", "b#e3", "b#e4"]);
    assert_eq!(names(list(all().handler(handler("b"))).await), ["b#e1", "b#e3", "b#e4"]);
    assert_eq!(names(list(all().key(key("k"))).await), ["a#e1", "b#e1", "b#e4"]);
    assert_eq!(names(list(all().event_type(EventType::from_static("suite.other"))).await), ["a#e3", "b#e3"]);
    assert_eq!(names(list(all().status(DeliveryStatus::Processing)).await), ["b#e1"]);
    assert_eq!(names(list(all().status(DeliveryStatus::Dead)).await), ["b#e3"]);
    assert_eq!(names(list(all().status(DeliveryStatus::Pending)).await), ["a#e1", "a#e2", "a#e3", "b#e4"]);
    let narrow = all().status(DeliveryStatus::Pending).handler(handler("b")).key(key("k"));
    assert_eq!(names(list(narrow).await), ["b#e4"]);
    assert!(list(all().handler(handler("c"))).await.is_empty());
    rig.close().await;
}

/// Pages neither skip nor repeat a delivery, however many handlers an event has.
pub async fn pages_show_each_delivery_once<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..20).map(|n| event(&format!("e{n:02}")).to(&["a", "b", "c"])), at(0)).await;
    for limit in [1, 2, 7, 59, 60, 61] {
        let all = rig.deliveries(DeliveryQuery::all().limit(limit), at(1)).await;
        let names: Vec<String> =
            all.iter().map(|record| format!("{}{}", record.id.event_id(), record.id.handler())).collect();
        assert_eq!(names.len(), 60, "in pages of {limit}");
        assert!(names.is_sorted(), "oldest event first, in pages of {limit}: {names:?}");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 60);
    }
    rig.close().await;
}

/// Pages show what exists throughout once, while other deliveries come and go.
pub async fn pages_survive_changes<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..30).map(|n| event(&format!("e{n:02}")).to(&[if n % 3 == 0 { "goes" } else { "stays" }])), at(0))
        .await;
    let mut worker = rig.worker(&["goes"], at(1)).await;
    let mut seen = Vec::new();
    let mut query = DeliveryQuery::all().limit(4);
    let mut step = 0;
    loop {
        let page = rig.store().list_deliveries(&query, at(1)).await.unwrap();
        seen.extend(page.deliveries.into_iter().filter(|record| record.id.handler().as_str() == "stays"));
        for claimed in worker.claim(1, at(1)).await {
            assert_eq!(worker.complete(&claimed, at(1)).await, Settled::Applied);
        }
        rig.append([event(&format!("n{step}")).to(&["new"])], at(1)).await;
        step += 1;
        assert!(step < 100, "the list does not end");
        match page.next {
            Some(next) => query = DeliveryQuery::all().limit(4).after(next),
            None => break,
        }
    }
    let names: Vec<&str> = seen.iter().map(|record| record.id.event_id().as_str()).collect();
    let right: Vec<String> = (0..30).filter(|n| n % 3 != 0).map(|n| format!("e{n:02}")).collect();
    assert_eq!(names, right);
    rig.close().await;
}

/// A record of a running delivery has the token of its lease.
pub async fn a_running_delivery_shows_its_token<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for claimed in worker.claim_all(2, at(1)).await {
        let record = rig.delivery("h", claimed.event.id.as_str(), at(2)).await.expect("it is listed");
        assert_eq!((record.status, record.attempts), (DeliveryStatus::Processing, 0));
        assert_eq!(record.token, Some(claimed.lease.token.to_string()));
        assert_eq!((record.stored_at, record.ended_at), (at(0), None));
    }
    rig.close().await;
}

/// Requeueing changes dead deliveries only, and answers for each.
pub async fn only_dead_deliveries_are_requeued<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append(["dead", "done", "held"].map(event), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut claimed = worker.claim_all(3, at(1)).await;
    claimed.sort_by(|a, b| a.event.id.cmp(&b.event.id));
    worker.settle(&claimed[0].lease, buried(), at(2)).await;
    worker.complete(&claimed[1], at(2)).await;
    rig.append([event("waits").due(at(900))], at(2)).await;
    let wanted = [
        delivery("h", "waits"),
        delivery("h", "held"),
        delivery("h", "dead"),
        delivery("h", "done"),
        delivery("h", "never"),
        delivery("i", "dead"),
    ];
    let answers = rig.store().requeue(&wanted, at(3)).await.unwrap();
    assert_eq!(
        answers,
        [
            Requeued::NotDead,
            Requeued::NotDead,
            Requeued::Requeued,
            Requeued::Unknown,
            Requeued::Unknown,
            Requeued::Unknown,
        ]
    );
    assert_eq!(rig.store().requeue(&[], at(3)).await.unwrap(), []);
    let waits = rig.delivery("h", "waits", at(3)).await.expect("it is listed");
    assert_eq!((waits.status, waits.due_at), (DeliveryStatus::Pending, at(900)));
    assert_eq!(worker.complete(&claimed[2], at(4)).await, Settled::Applied, "the running one was not touched");
    assert_eq!(ids(&worker.drain(at(5)).await), ["dead"]);
    rig.close().await;
}

/// A requeued delivery is due at once and has all its attempts again.
pub async fn a_requeued_delivery_starts_over<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for second in 1..4 {
        let claimed = worker.claim_event("e1", at(second)).await;
        worker.settle(&claimed.lease, again(at(second)), at(second)).await;
    }
    let dead = worker.claim_event("e1", at(5)).await;
    worker.settle(&dead.lease, buried(), at(6)).await;
    assert_eq!(rig.delivery("h", "e1", at(6)).await.expect("dead").attempts, 4);
    assert_eq!(rig.store().requeue(&[delivery("h", "e1")], at(50)).await.unwrap(), [Requeued::Requeued]);
    let record = rig.delivery("h", "e1", at(50)).await.expect("pending");
    assert_eq!((record.status, record.attempts, record.ended_at), (DeliveryStatus::Pending, 0, None));
    assert_eq!(record.due_at, at(50));
    let fresh = worker.claim_event("e1", at(50)).await;
    assert_eq!((fresh.attempts, fresh.redelivered()), (0, true), "it ran before, on a budget that is forgiven");
    assert!(fresh.lease.token.claims > dead.lease.token.claims);
    assert_eq!(worker.complete(&dead, at(51)).await, Settled::Lost);
    assert_eq!(worker.complete(&fresh, at(51)).await, Settled::Applied);
    rig.close().await;
}

/// A delivery that is requeued twice is requeued once.
pub async fn requeueing_twice_changes_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let dead = worker.claim_event("e1", at(1)).await;
    worker.settle(&dead.lease, buried(), at(2)).await;
    assert_eq!(rig.store().requeue(&[delivery("h", "e1")], at(3)).await.unwrap(), [Requeued::Requeued]);
    assert_eq!(rig.store().requeue(&[delivery("h", "e1")], at(4)).await.unwrap(), [Requeued::NotDead]);
    let running = worker.claim_event("e1", at(5)).await;
    assert_eq!(rig.store().requeue(&[delivery("h", "e1")], at(6)).await.unwrap(), [Requeued::NotDead]);
    assert_eq!(worker.complete(&running, at(7)).await, Settled::Applied);
    assert_eq!(rig.store().requeue(&[delivery("h", "e1")], at(8)).await.unwrap(), [Requeued::Unknown]);
    worker.expect_nothing(at(9)).await;
    rig.close().await;
}

/// Setting up again changes nothing, also while others do and work goes on, and a store that is set up verifies.
pub async fn setup_is_idempotent<F: StoreFactory>(f: &F) {
    let mut rig = Rig::open(f).await;
    rig.append([event("e1").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let held = worker.claim_event("e1", at(1)).await;
    let stores = [rig.store().clone(), rig.another().await, rig.another().await];
    let mut setups = Vec::new();
    for n in 0..9 {
        let store = stores[n % 3].clone();
        setups.push(tokio::spawn(async move { store.setup().await }));
    }
    for setup in setups {
        setup.await.expect("a setup").expect("setup");
    }
    for store in &stores {
        store.verify().await.expect("verify");
    }
    assert_eq!(worker.complete(&held, at(2)).await, Settled::Applied);
    rig.close().await;
}

/// Closing twice is fine, and closing at once after it too.
pub async fn closing_twice_is_fine<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let store = Arc::clone(rig.store());
    store.close().await.expect("close");
    store.close().await.expect("close again");
    store.force_close();
    rig.close().await;
}

/// A store has a name, and what it can do it says the same way each time.
pub async fn a_store_describes_itself<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let name = rig.store().name();
    assert!(
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
        "{name}"
    );
    assert_eq!(rig.store().capabilities(), rig.store().capabilities());
    assert!(!rig.store().handles().is_empty(), "a handler could take no handle");
    rig.close().await;
}

/// A second instance sees what the first one stored, where there can be one; where not, the factory says so.
pub async fn several_instances_share_their_data<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1")], at(0)).await;
    let peer = f.peer(rig.store()).await;
    assert_eq!(peer.is_some(), rig.store().capabilities().several_processes, "capability and factory disagree");
    if let Some(peer) = peer {
        let peer = Arc::new(peer);
        let mut worker = super::kit::Worker::open(&peer, &["h"], at(1)).await;
        assert_eq!(ids(&worker.drain(at(1)).await), ["e1"]);
        f.destroy(peer).await;
    }
    rig.close().await;
}

/// A durable store has its data after it was closed; another one starts empty.
pub async fn a_durable_store_survives_its_instance<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("e1"), event("e2").key("k")], at(0)).await;
    let capabilities = rig.store().capabilities();
    rig.store().close().await.expect("close");
    if capabilities.durable && capabilities.several_processes {
        let reopened = Arc::new(f.peer(rig.store()).await.expect("a store that can be opened again"));
        let mut worker = super::kit::Worker::open(&reopened, &["h"], at(1)).await;
        assert_eq!(worker.drain(at(1)).await.len(), 2);
        f.destroy(reopened).await;
    } else {
        // The weaker behaviour: what is opened next knows nothing of it.
        let next = Arc::new(f.create().await);
        assert!(next.list_deliveries(&DeliveryQuery::all(), at(1)).await.unwrap().deliveries.is_empty());
        f.destroy(next).await;
    }
    rig.close().await;
}

/// A store that reports commits calls the watcher for each way to store, and forgets it with its guard. One that does
/// not report leaves it to the poll, which finds everything.
pub async fn a_watch_reports_commits<F: StoreFactory>(f: &F) {
    const PATIENCE: Duration = Duration::from_secs(20);
    let mut rig = Rig::open(f).await;
    let other = rig.another().await;
    let signal = Arc::new(Notify::new());
    let wake: WakeUp = Arc::new({
        let signal = Arc::clone(&signal);
        move || signal.notify_one()
    });
    let kept = Arc::downgrade(&wake);
    let guard = rig.store().watch(wake).await.expect("watch");
    let reports = rig.store().capabilities().reports_commits;
    assert!(guard.is_some() || !reports, "a store that reports commits has a watch");
    for way in 0..3 {
        let draft = event(&format!("e{way}"));
        match way {
            0 => drop(append(&**rig.store(), [draft], at(0)).await),
            1 => drop(append(&*other, [draft], at(0)).await),
            _ => {
                let mut tx = begin(&**rig.store()).await;
                append_in(&**rig.store(), &mut tx, [draft], at(0)).await;
                tx.commit().await.expect("commit");
            }
        }
        if reports {
            let woken = tokio::time::timeout(PATIENCE, signal.notified()).await;
            assert!(woken.is_ok(), "no wake-up for way {way}");
        }
    }
    drop(guard);
    let started = tokio::time::Instant::now();
    while kept.upgrade().is_some() {
        assert!(started.elapsed() < PATIENCE, "the watch goes on without its guard");
        tokio::task::yield_now().await;
    }
    let mut worker = rig.worker(&["h"], at(1)).await;
    assert_eq!(worker.drain(at(1)).await.len(), 3);
    rig.close().await;
}
