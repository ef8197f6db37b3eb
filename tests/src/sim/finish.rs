//! The end of a simulation: everything comes to rest, and what must hold then is checked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use relaybus::Clock;
use relaybus::store::{DeliveryQuery, DeliveryStatus, EventStore};

use super::model::{Delivery, Name, Status};
use super::process::millis;
use super::world::World;

/// Waits until every delivery has ended. One that does not is stuck.
pub(super) async fn until_quiet(world: &Arc<World>) {
    let plan = &world.plan;
    let bound = world.now() + millis(60_000 + plan.lease * 4 + plan.longest_hang() + plan.poll * 20);
    while world.now() < bound {
        tokio::time::sleep(millis(50)).await;
        let published = world.publishing.load(Ordering::SeqCst) == 0;
        if published && world.model(|model| model.unfinished().is_empty()) {
            world.say("--", format_args!("quiet: every delivery has ended"));
            return;
        }
    }
    let left: Vec<(Name, String)> = world.model(|model| {
        let left = model.unfinished();
        left.into_iter().map(|(name, delivery)| (name.clone(), format!("{delivery:?}"))).collect()
    });
    match left.first() {
        Some((name, delivery)) => {
            let text =
                format!("{} of {} deliveries, the first {delivery}", left.len(), world.model(|m| m.deliveries.len()));
            world.model(|model| model.broke("no delivery is stuck", name, text));
        }
        None => {
            let left = world.publishing.load(Ordering::SeqCst);
            world.violate("publishing ends", format!("{left} publishers are not done"), Vec::new());
        }
    }
}

/// An event of a calm time is handled within the poll interval, whether or not a wake-up arrives.
pub(super) async fn check_prompt(world: &Arc<World>) {
    let plan = &world.plan;
    let lives: Vec<_> = world.processes().into_iter().filter(|process| process.gate.is_open()).collect();
    let Some(process) = lives.first() else { return };
    process.publish_probe().await;
    let began = world.now();
    let slowest = plan.handlers.iter().map(|handler| handler.slow).max().unwrap_or(0);
    // Its claim, the handler, and its completion, each with the way to the store and back.
    let bound = plan.poll + slowest * 2 + plan.window + plan.faults.latency * 14 + 60;
    tokio::time::sleep(millis(bound)).await;
    let late = world.model(|model| {
        let late = model.unfinished();
        late.into_iter().next().map(|(name, delivery)| (name.clone(), format!("{delivery:?}")))
    });
    if let Some((name, delivery)) = late {
        let text = format!("not done {bound} ms after it was published at {began:?}: {delivery}");
        world.model(|model| model.broke("an event is handled promptly", &name, text));
    }
}

/// A bus with nothing to do calls its store once per poll interval at most.
pub(super) async fn check_idle(world: &Arc<World>) {
    let plan = &world.plan;
    let lives: Vec<_> = world.processes().into_iter().filter(|process| process.gate.is_open()).collect();
    // Leases of dead sessions end, and what was woken comes to rest.
    tokio::time::sleep(millis(plan.lease * 2 + plan.poll * 2 + 1000)).await;
    let before: Vec<u64> = lives.iter().map(|process| process.calls()).collect();
    let polls = 30;
    tokio::time::sleep(millis(plan.poll * polls)).await;
    // Where the lease is not much longer than the poll interval, its renewals come between.
    let renewals = if plan.lease / 6 < plan.poll { plan.poll * polls * 3 / plan.lease } else { 0 };
    for (process, before) in lives.iter().zip(before) {
        let calls = process.calls() - before;
        process.say(format_args!("{calls} calls in {polls} poll intervals without work"));
        let most = polls + renewals + 2;
        if process.gate.is_open() && calls > most {
            let text = format!("{} made {calls} store calls in {polls} poll intervals, at most {most}", process.name);
            world.violate("an idle bus is idle", text, vec![process.name.clone()]);
        }
    }
}

/// What must hold when everything has stopped.
pub(super) async fn check(world: &Arc<World>) {
    check_deliveries(world);
    check_store(world).await;
    check_publishing(world).await;
}

fn check_deliveries(world: &World) {
    let deliveries = world.model(|model| model.deliveries.clone());
    let handlers = world.model(|model| model.handlers.clone());
    for (name, delivery) in &deliveries {
        let Some(plan) = handlers.get(&name.0) else { continue };
        let expected = u32::from(plan.transactional && delivery.status == Status::Completed);
        if delivery.effects != expected {
            let text = format!("{} effects, expected {expected}: {delivery:?}", delivery.effects);
            world.model(|model| model.broke("effects exactly once", name, text));
        }
        if delivery.reports == 0 && delivery.has_ended() && must_report(world, delivery) {
            let text = format!("nobody was told of its end: {delivery:?}");
            world.model(|model| model.broke("one terminal outcome", name, text));
        }
        let replayed = plan.order == relaybus::registry::Order::Replay && !plan.transactional;
        let most = plan.attempts + delivery.uncharged;
        if !replayed && delivery.starts > most {
            let text = format!("started {} times with {} attempts: {delivery:?}", delivery.starts, plan.attempts);
            world.model(|model| model.broke("attempts bound starts", name, text));
        }
    }
}

/// Whether the process that ended a delivery was never disturbed, and so had to report it.
fn must_report(world: &World, delivery: &Delivery) -> bool {
    let Some(by) = &delivery.ended_by else { return false };
    let lost = world.model(|model| {
        model.sessions.iter().any(|session| session.process == *by && session.ended == Some("taken over"))
    });
    let calm = world.processes().iter().any(|process| process.name == *by && process.stopped_in_order());
    calm && !lost
}

/// The model and the store agree on what is left.
async fn check_store(world: &World) {
    let now = world.clock.now();
    let statistics = world.store.statistics(now).await.expect("the in-memory store");
    if statistics.pending + statistics.processing > 0 {
        world.violate("no delivery is stuck", format!("the store has {statistics:?}"), Vec::new());
    }
    let mut query = DeliveryQuery::all().status(DeliveryStatus::Dead);
    let mut dead: Vec<Name> = Vec::new();
    loop {
        let page = world.store.list_deliveries(&query, now).await.expect("the in-memory store");
        let names = page.deliveries.iter().map(|record| &record.id);
        dead.extend(names.map(|id| (id.handler().to_string(), id.event_id().to_string())));
        match page.next {
            Some(next) => query = query.after(next),
            None => break,
        }
    }
    dead.sort();
    let expected: Vec<Name> = world.model(|model| {
        let dead = model.deliveries.iter().filter(|(_, delivery)| delivery.status == Status::Dead);
        dead.map(|(name, _)| name.clone()).collect()
    });
    if dead != expected {
        world.violate("dead letters agree", format!("the store has {dead:?}, expected {expected:?}"), Vec::new());
    }
}

/// A business row is there exactly when its event is.
async fn check_publishing(world: &World) {
    let (business, events) = world.model(|model| (model.business.clone(), model.events.clone()));
    let missing = business.keys().find(|id| !events.contains_key(*id));
    if let Some(id) = missing {
        world.violate("atomic with the business", format!("row of {id} without its event"), vec![id.clone()]);
    }
}
