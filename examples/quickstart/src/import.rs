//! Reading the file and importing it: each line becomes a row of `webhooks` and an event, in one transaction.

use std::collections::HashSet;
use std::path::Path;

use relaybus::{BoxError, RelayBus};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::events::{Repository, Webhook};
use crate::report::{Progress, with_causes};
use crate::tables::{Rows, Tables, WebhookRow};

type Result<T = (), E = BoxError> = std::result::Result<T, E>;

/// The webhooks that come with the program.
const DEFAULT_FILE: &str = include_str!("../data/webhooks.jsonl");

/// A file of webhooks that was read and understood.
#[derive(Debug)]
pub struct File {
    pub lines: Vec<Line>,
    /// A short name for what is in it.
    digest: u64,
}

#[derive(Debug)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    pub kind: String,
    /// Empty without one.
    pub repository: String,
    pub webhook: Webhook,
}

impl File {
    /// Reads the file at `path`, or the webhooks that come with the program.
    pub fn read(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Self::parse(DEFAULT_FILE, "the default file") };
        let name = format!("`{}`", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
        Self::parse(&text, &name)
    }

    fn parse(text: &str, name: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = index + 1;
            let line = Line::parse(number, line).map_err(|error| {
                // It knows only of this one line.
                let error = error.to_string().replace(" at line 1 column", " at column");
                format!("line {number} of {name} is no webhook ({error}): write `{{\"type\": .., \"payload\": ..}}`")
            })?;
            lines.push(line);
        }
        if lines.is_empty() {
            return Err(format!("{name} has no webhooks: write one a line, `{{\"type\": .., \"payload\": ..}}`").into());
        }
        // FNV-1a: short, and the same in every build.
        let digest = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |digest: u64, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(Self { lines, digest })
    }

    /// The id of the event of a line in a round: the same whenever it is imported, so that it is imported once.
    pub fn event_id(&self, round: usize, line: &Line) -> String {
        format!("{:016x}-{round:06}-{:06}", self.digest, line.number)
    }
}

impl Line {
    fn parse(number: usize, text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            r#type: String,
            #[serde(borrow)]
            payload: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct Payload {
            repository: Repository,
        }
        let Raw { r#type: kind, payload } = serde_json::from_str(text)?;
        let repository = match serde_json::from_str(payload.get()) {
            Ok(Payload { repository }) => repository.full_name,
            Err(_) => String::new(),
        };
        let webhook = Webhook::read(&kind, payload.get(), &repository);
        Ok(Self { number, kind, repository, webhook })
    }
}

/// Imports the file `times` times, each time with ids of its own. What is there already is left as it is: that is how a
/// run that was killed goes on.
pub async fn import(
    file: &File,
    times: usize,
    before: &Rows,
    bus: &RelayBus,
    tables: &Tables,
    progress: &mut Progress,
) -> Result {
    let there: HashSet<&str> = before.webhooks.iter().map(|row| row.event_id.as_str()).collect();
    let all = (1..=times).flat_map(|round| file.lines.iter().map(move |line| (round, line)));
    for (done, (round, line)) in all.enumerate() {
        let id = file.event_id(round, line);
        if !there.contains(id.as_str()) {
            let imported = import_line(id, line, bus, tables).await;
            imported.map_err(|error| format!("line {} cannot be imported: {}", line.number, with_causes(error)))?;
        }
        let (done, total) = (done + 1, times * file.lines.len());
        progress.show(done, total, format_args!("{done} of {total} webhooks imported"));
    }
    Ok(())
}

/// The row and the event commit together: there is never one without the other.
async fn import_line(id: String, line: &Line, bus: &RelayBus, tables: &Tables) -> Result {
    bus.transaction(async |tx| {
        let row = WebhookRow {
            event_id: id.clone(),
            line: i64::try_from(line.number)?,
            repository: line.repository.clone(),
            kind: line.kind.clone(),
        };
        tables.add_webhook(tx, row).await?;
        line.webhook.clone().publish(bus, tx).id(id).await?;
        Ok(())
    })
    .await
}
