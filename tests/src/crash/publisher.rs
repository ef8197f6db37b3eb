//! A publisher: carries out its plan, transaction by transaction, and notes in a file of its own what it was answered.
//!
//! Lines of that file: `begin <number>`, then one of `committed`, `rolled-back`, `doubt <number> <error>`. A successor of a killed
//! publisher goes on behind the last number; what was begun and not answered is in doubt, and is done again where its events have
//! ids of their own.

use std::sync::Mutex;
use std::time::Duration;

use relaybus::{BoxError, Error, EventBatch, EventId, RelayBus};
use sqlx::Connection as _;
use tokio::signal::unix::{SignalKind, signal};

use super::base::Connection;
use super::events::{Moved, Poison};
use super::handlers::World;
use super::journal::{Journal, lines};
use super::plan::{Kind, Plan, PlannedEvent};
use super::{Base, Process, bus, started};

/// Pending deliveries above which a publisher waits.
const MOST_PENDING: u64 = 3_000;

/// The file with the answers of the publisher of a slot.
pub(super) fn answers(folder: &std::path::Path, slot: u32) -> std::path::PathBuf {
    folder.join(format!("answers-{slot}"))
}

/// What became of a transaction, as far as the publisher knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Committed,
    RolledBack,
    Doubt,
}

/// The answers in a file, by the number of the transaction.
pub(super) fn read_answers(path: &std::path::Path) -> Vec<Answer> {
    let mut answers = Vec::new();
    for line in lines(path) {
        let mut words = line.split(' ');
        let (word, number) =
            (words.next().unwrap_or_default(), words.next().and_then(|number| number.parse::<usize>().ok()));
        let number = number.expect("a line of answers has a number");
        if answers.len() <= number {
            answers.resize(number + 1, Answer::Doubt);
        }
        match word {
            "committed" => answers[number] = Answer::Committed,
            "rolled-back" => answers[number] = Answer::RolledBack,
            _ => {}
        }
    }
    answers
}

struct Publisher<B: Base> {
    bus: RelayBus<B>,
    answers: Journal,
}

/// Publishes until it is asked to end.
pub(super) async fn publish<B: Base>(me: &Process) -> Result<(), BoxError> {
    let mut asked = signal(SignalKind::terminate())?;
    let path = answers(&me.folder, me.slot);
    let before = read_answers(&path);
    let bus = started(async || {
        let world = World {
            journal: Journal::open(&me.folder.join("journal"))?,
            process: me.number,
            chance: Mutex::new(me.chance()),
        };
        Ok(bus::<B>(&me.folder, me.seed).await?.provide(world).build()?)
    })
    .await?;
    let publisher = Publisher { bus, answers: Journal::open(&path)? };
    let next = u32::try_from(before.len())?;
    if let (Some(last), Some(Answer::Doubt)) = (next.checked_sub(1), before.last()) {
        let plan = Plan::of(me.seed, me.slot, last);
        if matches!(plan.kind, Kind::Idempotent { .. }) {
            publisher.carry_out(last, &plan).await?;
        }
    }
    for number in next.. {
        let plan = Plan::of(me.seed, me.slot, number);
        publisher.carry_out(number, &plan).await?;
        if number % 10 == 0 {
            while publisher.bus.statistics().await.is_ok_and(|counts| counts.pending > MOST_PENDING) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        tokio::select! {
            biased;
            _ = asked.recv() => break,
            () = tokio::time::sleep(plan.pause) => {}
        }
    }
    publisher.bus.stop().await?;
    Ok(())
}

impl<B: Base> Publisher<B> {
    async fn carry_out(&self, number: u32, plan: &Plan) -> Result<(), BoxError> {
        self.answers.write(&format_args!("begin {number}"));
        loop {
            match self.attempt(plan).await {
                Ok(Answer::Committed) => self.answers.write(&format_args!("committed {number}")),
                Ok(Answer::RolledBack) => self.answers.write(&format_args!("rolled-back {number}")),
                Ok(Answer::Doubt) => {}
                Err(error) => {
                    self.answers.write(&format_args!("doubt {number} {}", error.to_string().replace('\n', " ")));
                    if matches!(plan.kind, Kind::Idempotent { .. }) {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                }
            }
            return Ok(());
        }
    }

    async fn attempt(&self, plan: &Plan) -> Result<Answer, BoxError> {
        match &plan.kind {
            Kind::Detached => {
                self.bus.publish_all_detached(plan.events.iter().map(moved).collect::<EventBatch>()).await?;
            }
            Kind::Rollback => {
                let failed: Result<(), BoxError> = self
                    .bus
                    .transaction(async |tx| {
                        self.write_all(B::connection(tx), &plan.events, false).await?;
                        Err("the application changed its mind".into())
                    })
                    .await;
                // Whatever the error was, the publisher was told that nothing was stored.
                assert!(failed.is_err(), "a transaction that returned an error was committed");
                return Ok(Answer::RolledBack);
            }
            Kind::Dropped => {
                let mut transaction = self.bus.begin().await?;
                self.write_all(B::connection(transaction.store_transaction()), &plan.events, false).await?;
                drop(transaction);
                return Ok(Answer::RolledBack);
            }
            Kind::Idempotent { again } => {
                let first = self.idempotent(plan).await?;
                if *again {
                    let second = self.idempotent(plan).await?;
                    assert_eq!(first, second, "publishing the same ids again answered others");
                }
            }
            Kind::Commit | Kind::Batch | Kind::Savepoint(_) | Kind::Poison => {
                let work = async |tx: &mut B::Transaction| self.write(B::connection(tx), plan).await;
                self.bus.transaction(work).await?;
            }
        }
        Ok(Answer::Committed)
    }

    async fn idempotent(&self, plan: &Plan) -> Result<Vec<EventId>, BoxError> {
        self.bus
            .transaction(async |tx: &mut B::Transaction| self.write_all(B::connection(tx), &plan.events, true).await)
            .await
    }

    async fn write(&self, tx: &mut Connection<B>, plan: &Plan) -> Result<(), BoxError> {
        match &plan.kind {
            Kind::Batch => {
                let publish = self.bus.publish_all(tx, plan.events.iter().map(moved).collect::<EventBatch>());
                match plan.events[0].delay {
                    Some(delay) => publish.delay(delay).await?,
                    None => publish.await?,
                };
                for event in &plan.events {
                    row::<B>(tx, event).await?;
                }
            }
            Kind::Savepoint(range) => {
                self.write_all(tx, &plan.events[..range.start], false).await?;
                let mut savepoint = tx.begin().await?;
                self.write_all(&mut savepoint, &plan.events[range.clone()], false).await?;
                savepoint.rollback().await?;
                self.write_all(tx, &plan.events[range.end..], false).await?;
            }
            Kind::Poison => {
                for (place, event) in plan.events.iter().enumerate() {
                    let poison = Poison { name: event.name.clone(), key: event.key.clone(), deadly: place == 0 };
                    self.bus.publish(tx, poison).await?;
                    row::<B>(tx, event).await?;
                }
            }
            _ => {
                self.write_all(tx, &plan.events, false).await?;
            }
        }
        Ok(())
    }

    /// Events and rows one by one. Each row follows its event: from there on the key is this transaction's until its commit.
    async fn write_all(
        &self,
        tx: &mut Connection<B>,
        events: &[PlannedEvent],
        own_ids: bool,
    ) -> Result<Vec<EventId>, BoxError> {
        let mut ids = Vec::new();
        for event in events {
            let mut publish = self.bus.publish(tx, moved(event));
            if let Some(delay) = event.delay {
                publish = publish.delay(delay);
            }
            if own_ids {
                publish = publish.id(format!("id-{}", event.name));
            }
            ids.push(publish.await?);
            row::<B>(tx, event).await?;
        }
        Ok(ids)
    }
}

/// A row of the application: its number is the place of the event in the order of its key's commits.
async fn row<B: Base>(tx: &mut Connection<B>, event: &PlannedEvent) -> Result<(), Error> {
    B::business(tx, &event.name, event.key.as_deref())
        .await
        .map_err(|error| Error::store("the row of the application was not written", Some(error.into())))
}

fn moved(event: &PlannedEvent) -> Moved {
    Moved { name: event.name.clone(), key: event.key.clone(), refused: event.refused }
}
