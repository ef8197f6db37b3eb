//! Starvation: what cannot be handed out never hides what can.

use relaybus::store::Settled;

use super::StoreFactory;
use super::kit::{LOOKS, Rig, again, at, event, ids, sorted_ids};

/// Deliveries that wait before the one that is looked for: more than a claim can look at in one turn.
const CROWD: usize = 400;

/// Turns in which a store must have looked past the crowd: it may do so in pieces of the claim's limit.
const PATIENCE: usize = CROWD / 5 + 2 * LOOKS;

/// The followers of a head that waits for its retry do not hide deliveries behind them.
pub async fn followers_of_a_blocked_head_hide_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..CROWD).map(|n| event(&format!("e{n:03}")).key("k")), at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let head = worker.claim_event("e000", at(1)).await;
    assert_eq!(worker.settle(&head.lease, again(at(900)), at(1)).await, Settled::Applied);
    rig.append([event("x"), event("y").key("l")], at(2)).await;
    let mut found = Vec::new();
    for _ in 0..PATIENCE {
        let turn = worker.turn(&[], 5, 1, at(3)).await.expect("a turn");
        found.extend(turn.runs.into_iter().flat_map(|run| run.deliveries));
    }
    assert_eq!(sorted_ids(&found), ["x", "y"]);
    rig.close().await;
}

/// The followers of a running head do not hide deliveries behind them.
pub async fn followers_of_a_running_head_hide_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..CROWD).map(|n| event(&format!("e{n:03}")).key("k")), at(0)).await;
    rig.append([event("x"), event("y").key("l")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let mut found = Vec::new();
    for _ in 0..PATIENCE {
        let turn = worker.turn(&[], 5, 1, at(3)).await.expect("a turn");
        found.extend(turn.runs.into_iter().flat_map(|run| run.deliveries));
    }
    assert_eq!(sorted_ids(&found), ["e000", "x", "y"]);
    rig.close().await;
}

/// A handler without free slots does not hide another.
pub async fn a_handler_without_slots_hides_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..CROWD).map(|n| event(&format!("e{n:03}")).to(&["full"])), at(0)).await;
    rig.append([event("x").to(&["free"])], at(1)).await;
    let mut worker = rig.worker(&["full", "free"], at(2)).await.slots("full", 0);
    let mut found = Vec::new();
    for _ in 0..PATIENCE {
        let turn = worker.turn(&[], 5, 1, at(3)).await.expect("a turn");
        found.extend(turn.runs.into_iter().flat_map(|run| run.deliveries));
    }
    assert_eq!(ids(&found), ["x"]);
    rig.close().await;
}

/// A handler with a backlog leaves room for another in the same turns.
pub async fn a_busy_handler_leaves_room_for_others<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..CROWD).map(|n| event(&format!("e{n:03}")).to(&["busy"])), at(0)).await;
    rig.append([event("x").to(&["quiet"])], at(1)).await;
    let mut worker = rig.worker(&["busy", "quiet"], at(2)).await.slots("busy", 2).slots("quiet", 2);
    let mut turns = 0;
    loop {
        let turn = worker.turn(&[], 10, 1, at(3)).await.expect("a turn");
        if turn.runs.iter().any(|run| run.deliveries[0].event.id == *"x") {
            break;
        }
        turns += 1;
        assert!(turns < 2 * LOOKS, "the handler with one delivery waits behind the one with {CROWD}");
    }
    rig.close().await;
}

/// Deliveries of handlers that no process knows hide nothing.
pub async fn unknown_handlers_hide_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..CROWD).map(|n| event(&format!("e{n:03}")).to(&["gone"])), at(0)).await;
    rig.append([event("x")], at(1)).await;
    let mut worker = rig.worker(&["h"], at(2)).await;
    assert_eq!(ids(&worker.claim(1, at(2)).await), ["x"]);
    rig.close().await;
}

/// Deliveries that are not due hide nothing.
pub async fn delayed_deliveries_hide_nothing<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..CROWD).map(|n| event(&format!("e{n:03}")).due(at(5_000))), at(0)).await;
    rig.append([event("x")], at(1)).await;
    let mut worker = rig.worker(&["h"], at(2)).await;
    assert_eq!(ids(&worker.claim(1, at(2)).await), ["x"]);
    rig.close().await;
}

/// A retry comes back though newer deliveries keep coming.
pub async fn a_retry_is_not_forgotten_under_load<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append([event("old")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    let old = worker.claim_event("old", at(1)).await;
    worker.settle(&old.lease, again(at(10)), at(1)).await;
    for round in 0..CROWD {
        let now = at(11 + i64::try_from(round).unwrap());
        rig.append((0..5).map(|n| event(&format!("n{round}-{n}"))), now).await;
        let turn = worker.turn(&[], 5, 1, now).await.expect("a turn");
        if turn.runs.iter().any(|run| run.deliveries[0].event.id == *"old") {
            rig.close().await;
            return;
        }
    }
    panic!("a retry that was due at second 10 was never handed out under load");
}

/// A delivery that turns up with a due time long past, as one of a late commit does, is found.
pub async fn a_delivery_that_turns_up_late_is_found<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    rig.append((0..50).map(|n| event(&format!("e{n:02}"))), at(5_000)).await;
    let mut worker = rig.worker(&["h"], at(5_000)).await;
    for round in 0..20_i64 {
        let name = format!("late{round:02}");
        rig.append([event(&name).due(at(100 - round))], at(5_000)).await;
        let mut found = false;
        for _ in 0..LOOKS * 4 {
            let turn = worker.turn(&[], 3, 1, at(5_000)).await.expect("a turn");
            found |= turn.runs.iter().any(|run| run.deliveries[0].event.id == name.as_str());
        }
        assert!(found, "{name} was passed over");
    }
    rig.close().await;
}
