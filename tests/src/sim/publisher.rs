//! Publishers: they write events in every way the bus offers, roll some back, and repeat what got no answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use relaybus::{Error, RelayBus};

use super::handlers::{Alpha, Beta};
use super::process::{Process, millis};
use super::store::SimStore;

/// One event to publish, however often it takes.
#[derive(Clone, Debug)]
struct Draft {
    number: u32,
    beta: bool,
    key: Option<String>,
    delay: Option<Duration>,
    id: Option<String>,
    way: Way,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Detached,
    Transaction,
    /// A transaction whose work fails in the end.
    Fails,
    /// A transaction that is dropped while it is open.
    Dropped,
    /// A transaction that stays open for a while.
    Slow,
}

/// Publishes all events of a writer of this slot, then is done. Its process may die of it half-way.
pub(crate) async fn run(process: Arc<Process>, writer: usize) {
    let body = async {
        let plan = &process.world.plan;
        for number in 0..plan.events {
            let pause = process.world.chance(|rng| rng.u64(0..=plan.pace));
            tokio::time::sleep(millis(pause)).await;
            let draft = draw(&process, writer, number);
            publish(&process, &draft).await;
        }
        process.world.publishing.fetch_sub(1, Ordering::SeqCst);
        process.say(format_args!("publisher {writer} is done"));
    };
    let died = async {
        loop {
            tokio::time::sleep(millis(100)).await;
            if process.gate.is_dead() {
                break;
            }
        }
    };
    tokio::select! {
        biased;
        () = process.gate.behind(body) => {}
        // The rest of its events is never published: its publisher is dead.
        () = died => {
            process.world.publishing.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn draw(process: &Process, writer: usize, number: u32) -> Draft {
    let plan = &process.world.plan;
    process.world.chance(|rng| {
        // One in six events is published by several processes, whose handlers differ.
        let shared = (rng.u32(..6) == 0).then(|| rng.u32(..20));
        let own_id = (rng.u32(..3) == 0).then(|| format!("{}.w{writer}.{number}", process.name));
        let key = rng.u32(..5 * plan.keys);
        let key = shared.unwrap_or(key);
        Draft {
            number,
            beta: if let Some(shared) = shared { shared % 4 == 0 } else { rng.u32(..4) == 0 },
            key: (key % 5 > 0).then(|| format!("k{}", key / 5 % plan.keys)),
            delay: (rng.u32(..8) == 0).then(|| millis(rng.u64(1..1500))),
            id: shared.map(|shared| format!("shared-{shared}")).or(own_id),
            way: match rng.u32(..10) {
                0..=3 => Way::Detached,
                4..=6 => Way::Transaction,
                7 => Way::Fails,
                8 => Way::Dropped,
                _ => Way::Slow,
            },
        }
    })
}

async fn publish(process: &Arc<Process>, draft: &Draft) {
    // With an id of its own the event may be published again when the answer was lost.
    let tries = if draft.id.is_some() { 3 } else { 1 };
    for _ in 0..tries {
        let Some(bus) = process.bus() else { return };
        let result = match draft.way {
            Way::Detached => detached(&bus, draft).await,
            Way::Transaction | Way::Slow | Way::Fails => in_transaction(process, &bus, draft).await,
            Way::Dropped => dropped(process, &bus, draft).await,
        };
        match result {
            Ok(()) => return,
            Err(error) => process.say(format_args!("publishing {:?} failed: {}", draft.id, error.code())),
        }
        tokio::time::sleep(millis(20)).await;
    }
}

macro_rules! settings {
    ($publish:expr, $draft:expr) => {{
        let mut publish = $publish;
        publish = match &$draft.key {
            Some(key) => publish.key(key.clone()),
            None => publish.without_key(),
        };
        if let Some(delay) = $draft.delay {
            publish = publish.delay(delay);
        }
        if let Some(id) = &$draft.id {
            publish = publish.id(id.clone());
        }
        publish.await
    }};
}

async fn detached(bus: &RelayBus<SimStore>, draft: &Draft) -> Result<(), Error> {
    let number = draft.number;
    if draft.beta {
        settings!(bus.publish_detached(Beta { number }), draft)?;
    } else {
        settings!(bus.publish_detached(Alpha { number }), draft)?;
    }
    Ok(())
}

async fn in_transaction(process: &Arc<Process>, bus: &RelayBus<SimStore>, draft: &Draft) -> Result<(), Error> {
    let (process, bus, draft) = (process.clone(), bus.clone(), draft.clone());
    let publisher = bus.clone();
    let work = async |tx: &mut super::transaction::SimTransaction| {
        write(&process, &publisher, tx, &draft).await?;
        match draft.way {
            Way::Slow => tokio::time::sleep(millis(process.world.chance(|rng| rng.u64(1..400)))).await,
            Way::Fails => return Err(Error::lifecycle("simulated: the work fails")),
            _ => {}
        }
        Ok(())
    };
    match bus.transaction(work).await {
        Err(_) if matches!(draft.way, Way::Fails) => Ok(()),
        result => result,
    }
}

async fn dropped(process: &Arc<Process>, bus: &RelayBus<SimStore>, draft: &Draft) -> Result<(), Error> {
    let mut tx = bus.begin().await?;
    write(process, bus, tx.store_transaction(), draft).await
}

/// Writes the event and the business row beside it.
async fn write(
    process: &Arc<Process>,
    bus: &RelayBus<SimStore>,
    tx: &mut super::transaction::SimTransaction,
    draft: &Draft,
) -> Result<(), Error> {
    let number = draft.number;
    let id = if draft.beta {
        settings!(bus.publish(tx, Beta { number }), draft)?
    } else {
        settings!(bus.publish(tx, Alpha { number }), draft)?
    };
    let world = process.world.clone();
    tx.on_commit(move || world.model(|model| *model.business.entry(id.to_string()).or_default() += 1));
    Ok(())
}
