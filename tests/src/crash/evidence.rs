//! What a run left behind: the journal, the answers, and the database.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use relaybus::store::{DeliveryQuery, DeliveryStatus};
use relaybus::{BoxError, ErrorInfo};

use super::base::Tables;
use super::journal::{Line, Start, What, lines};
use super::plan::Plan;
use super::publisher::{Answer, answers, read_answers};
use super::verdict::BOOKED;
use super::{Base, Settings};

/// A transaction that a publisher began.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) label: String,
    pub(super) plan: Plan,
    pub(super) answer: Answer,
}

/// A dead letter.
#[derive(Clone, Debug)]
pub(super) struct Dead {
    pub(super) attempts: u32,
    pub(super) code: String,
}

/// Everything.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) journal: Vec<Line>,
    pub(super) transactions: Vec<Transaction>,
    /// Names in the application's table, in the order of their commits for each key, with their keys.
    pub(super) rows: Vec<(String, Option<String>)>,
    /// Names with an effect, in the same order.
    pub(super) effects: Vec<(String, Option<String>)>,
    /// Events that the store has: event type and name.
    pub(super) stored: Vec<(String, String)>,
    /// Dead letters by handler and event.
    pub(super) dead: HashMap<(String, String), Dead>,
    /// Names by event.
    pub(super) names: HashMap<String, String>,
    /// Rows that should be gone, by table.
    pub(super) left: Vec<(String, i64)>,
    /// `ok`, or what is wrong with the database.
    pub(super) integrity: String,
    /// How long a takeover may take in peace, where that is judged.
    pub(super) longest_takeover: Option<Duration>,
}

impl Evidence {
    pub(super) async fn collect<B: Base>(
        folder: &Path,
        settings: &Settings,
        publishers: u32,
    ) -> Result<Self, BoxError> {
        let mut evidence = Self::default();
        for line in lines(&folder.join("journal")) {
            // A torn line may have been completed by the dot of none: it does not parse, and nothing was done after it.
            evidence.journal.extend(Line::parse(&line));
        }
        for publisher in 0..publishers {
            for (number, answer) in read_answers(&answers(folder, publisher)).into_iter().enumerate() {
                let plan = Plan::of(settings.seed, publisher, u32::try_from(number)?);
                evidence.transactions.push(Transaction { label: format!("{publisher}.{number}"), plan, answer });
            }
        }
        evidence.read_dead::<B>(folder, settings.seed).await?;
        let Tables { rows, effects, stored, left, integrity } = B::tables(folder).await?;
        for line in &evidence.journal {
            if let What::Start(start) = &line.what {
                evidence.names.insert(start.event.clone(), start.name.clone());
            }
        }
        evidence = Self { rows, effects, stored, left, integrity, longest_takeover: B::LONGEST_TAKEOVER, ..evidence };
        Ok(evidence)
    }

    async fn read_dead<B: Base>(&mut self, folder: &Path, seed: u64) -> Result<(), BoxError> {
        let bus = super::chaos::observer::<B>(folder, seed).await?;
        let mut query = DeliveryQuery::all().status(DeliveryStatus::Dead).limit(500);
        loop {
            let page = bus.list_deliveries(&query).await?;
            for delivery in page.deliveries {
                let info: ErrorInfo = serde_json::from_str(delivery.last_error.as_deref().unwrap_or("{}"))?;
                let id = (delivery.id.handler().as_str().to_owned(), delivery.id.event_id().as_str().to_owned());
                self.dead.insert(id, Dead { attempts: delivery.attempts, code: info.code.unwrap_or_default() });
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        bus.stop().await?;
        Ok(())
    }

    /// The starts of a handler, in the order of the journal, each with the number of its line.
    pub(super) fn starts<'a>(&'a self, handler: &'a str) -> impl Iterator<Item = (usize, &'a Line, &'a Start)> {
        self.journal.iter().enumerate().filter_map(move |(number, line)| match &line.what {
            What::Start(start) if start.handler == handler => Some((number, line, start)),
            _ => None,
        })
    }

    /// The names that are committed: as the application's table says, and the answers of transactions without rows there.
    pub(super) fn committed(&self) -> HashSet<&str> {
        let rows = self.rows.iter().map(|(name, _)| name.as_str());
        let published = self.stored.iter().filter(|(kind, _)| kind != BOOKED);
        let stored: HashSet<&str> = published.map(|(_, name)| name.as_str()).collect();
        let detached = self.transactions.iter().filter(|transaction| !transaction.plan.has_rows());
        let detached = detached.flat_map(|transaction| transaction.plan.kept()).map(|event| event.name.as_str());
        rows.chain(detached.filter(|name| stored.contains(name))).collect()
    }

    /// The lines of the journal about an event or a process of `around`, as a story.
    pub(super) fn story(&self, concerns: impl Fn(usize, &Line) -> bool) -> String {
        let told = self.journal.iter().enumerate().filter(|(number, line)| concerns(*number, line));
        let all: Vec<String> = told.map(|(_, line)| format!("    {line}")).collect();
        let skipped = all.len().saturating_sub(40);
        let head = if skipped > 0 { format!("    .. {skipped} lines before\n") } else { String::new() };
        head + &all[skipped..].join("\n")
    }
}
