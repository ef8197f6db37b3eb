//! What operators ask: lists, counts, requeueing.
//!
//! These read outside any lock and may read whole tables: they are not on the way of an event. Paging is by event number and
//! handler, which a delivery keeps through all its states, so a page neither skips nor repeats one that is there
//! throughout. Requeueing compares the state inside its transaction: only what is dead then changes.

use relaybus::store::{
    DeliveryCursor, DeliveryId, DeliveryPage, DeliveryQuery, DeliveryRecord, DeliveryStatus, HandlerBacklog,
    LeaseToken, MAX_PAGE, Requeued, Statistics, lane_of,
};
use relaybus::{EventId, EventType, HandlerId, OrderingKey, Result, Timestamp};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::Inner;
use super::args::{Binds, decode_id, encode_id};
use super::writer::Call;

/// Reads all of `ready` and `waiting`. `$1` now.
const STATISTICS: &str = "SELECT coalesce(sum(session IS NULL), 0), coalesce(sum(session IS NOT NULL), 0), \
    min(CASE WHEN session IS NULL AND due_at <= $1 THEN due_at END) FROM {p}ready;\n\
    SELECT count(*), min(CASE WHEN due_at <= $1 THEN due_at END) FROM {p}waiting;\n\
    SELECT count(*) FROM {p}dead;\nSELECT count(*) FROM {p}completed_deliveries;";
/// As [`STATISTICS`].
const BACKLOG: &str = "SELECT handler, sum(unfinished) FROM (\
    SELECT handler, count(*) AS unfinished FROM {p}ready GROUP BY handler UNION ALL \
    SELECT handler, count(*) AS unfinished FROM {p}waiting GROUP BY handler) GROUP BY handler ORDER BY handler;";

/// `$1` id, `$2` handler, `$3` now. The first statement tells what there is.
const REQUEUE: &str = "SELECT e.seq, e.key, EXISTS (SELECT 1 FROM {p}dead d WHERE d.seq = e.seq AND d.handler = $2) \
    FROM {p}events e WHERE e.id = $1;\n\
    INSERT INTO {p}place (handler, due_at, seq, claims, attempts, key, last_error) \
    SELECT d.handler, $3, d.seq, d.claims, 0, d.key, d.last_error FROM {p}events e \
    CROSS JOIN {p}dead d ON d.seq = e.seq AND d.handler = $2 WHERE e.id = $1;\n\
    DELETE FROM {p}dead WHERE seq = (SELECT seq FROM {p}events WHERE id = $1) AND handler = $2;";
/// Whether a delivery that is not dead is there. `$1` handler, `$2` seq, `$3` key.
const UNFINISHED: &str = "SELECT 1 FROM {p}waiting WHERE handler = $1 AND key = $3 AND seq = $2 UNION ALL \
    SELECT 1 FROM {p}ready WHERE handler = $1 AND key = $3 AND seq = $2;";
/// The same for one without a key: reads the rows of its handler.
const UNFINISHED_UNKEYED: &str = "SELECT 1 FROM {p}ready WHERE handler = $1 AND seq = $2;";

/// The statements of this module, by name.
pub(super) const STATEMENTS: [(&str, &str); 5] = [
    ("statistics", STATISTICS),
    ("backlog", BACKLOG),
    ("requeue", REQUEUE),
    ("unfinished", UNFINISHED),
    ("unfinished_unkeyed", UNFINISHED_UNKEYED),
];

/// Deliveries that one transaction requeues.
const IDS_A_CALL: usize = 64;

/// What a list reads of each kind of delivery; filters follow.
const PENDING: &str = "SELECT d.seq, d.handler, d.key, d.attempts, d.due_at, NULL AS ended_at, 0 AS status, d.claims, NULL AS session, d.last_error FROM {p}ready d WHERE d.session IS NULL";
const WAITING: &str = "SELECT d.seq, d.handler, d.key, d.attempts, d.due_at, NULL, 0, d.claims, NULL, d.last_error FROM {p}waiting d WHERE true";
const PROCESSING: &str = "SELECT d.seq, d.handler, d.key, d.attempts, d.due_at, NULL AS ended_at, 1 AS status, d.claims, d.session, d.last_error FROM {p}ready d WHERE d.session IS NOT NULL";
const DEAD: &str = "SELECT d.seq, d.handler, d.key, d.attempts, d.due_at, d.died_at AS ended_at, 3 AS status, d.claims, NULL AS session, d.last_error FROM {p}dead d WHERE true";
const COMPLETED: &str = "SELECT d.seq, d.handler, d.key, d.attempts, d.due_at, d.completed_at AS ended_at, 2 AS status, d.claims, NULL AS session, d.last_error FROM {p}completed_deliveries d WHERE true";

impl Inner {
    /// The text of a list; `$1` and `$2` cursor, `$3` limit, `$4` handler, `$5` key, `$6` type.
    pub(super) fn list_text(&self, query: &DeliveryQuery) -> String {
        let arms: &[&str] = match query.status {
            Some(DeliveryStatus::Pending) => &[PENDING, WAITING],
            Some(DeliveryStatus::Processing) => &[PROCESSING],
            Some(DeliveryStatus::Dead) => &[DEAD],
            Some(DeliveryStatus::Completed) => &[COMPLETED],
            None => &[PENDING, WAITING, PROCESSING, COMPLETED, DEAD],
        };
        let mut filter = String::from(" AND (d.seq, d.handler) > ($1, $2)");
        if query.handler.is_some() {
            filter.push_str(" AND d.handler = $4");
        }
        if query.key.is_some() {
            filter.push_str(" AND d.key = $5");
        }
        if query.event_type.is_some() {
            filter.push_str(" AND EXISTS (SELECT 1 FROM {p}events t WHERE t.seq = d.seq AND t.type = $6)");
        }
        let union: Vec<String> = arms.iter().map(|arm| format!("{arm}{filter}")).collect();
        self.sql.fill(&format!(
            "SELECT l.*, e.id, e.type, e.created_at FROM ({} ORDER BY 1, 2 LIMIT $3 + 0) l \
             CROSS JOIN {{p}}events e ON e.seq = l.seq ORDER BY l.seq, l.handler;",
            union.join("\n UNION ALL ")
        ))
    }

    /// Lists of each status and of each filter, by name.
    pub(super) fn list_texts(&self) -> Vec<(String, String)> {
        let of = |status| DeliveryQuery::all().status(status);
        let named = [
            ("list", DeliveryQuery::all()),
            ("list_pending", of(DeliveryStatus::Pending)),
            ("list_processing", of(DeliveryStatus::Processing)),
            ("list_completed", of(DeliveryStatus::Completed)),
            ("list_dead", of(DeliveryStatus::Dead)),
        ];
        let handler = HandlerId::from_static("h");
        let filtered = |query: &DeliveryQuery| query.clone().handler(handler.clone());
        let mut texts = Vec::new();
        for (name, query) in named {
            texts.push((format!("{name}_of_handler"), self.list_text(&filtered(&query))));
            texts.push((name.to_owned(), self.list_text(&query)));
        }
        texts
    }

    pub(super) async fn list_deliveries(&self, query: &DeliveryQuery) -> Result<DeliveryPage> {
        let limit = query.limit.clamp(1, MAX_PAGE);
        let after = query.after.as_ref();
        let binds = Binds::default()
            .with(after.map_or(-1, |cursor| cursor.position))
            .with(after.map_or("", |cursor| cursor.handler.as_str()))
            .with(i64::try_from(limit + 1).unwrap_or(i64::MAX))
            .with(query.handler.as_ref().map(|handler| handler.as_str()))
            .with(query.key.as_ref().map(|key| key.as_str()))
            .with(query.event_type.as_ref().map(|event_type| event_type.as_str()));
        let outcomes = self.read_text(self.list_text(query).into(), binds).await?;
        let rows = outcomes.first().map_or(&[][..], |outcome| &outcome.rows);
        let mut page = DeliveryPage::default();
        let mut last = 0;
        for row in rows.iter().take(limit) {
            let (position, record) = self.column(record(row))?;
            last = position;
            page.deliveries.push(record);
        }
        if rows.len() > limit {
            page.next = page
                .deliveries
                .last()
                .map(|record| DeliveryCursor { position: last, handler: record.id.handler().clone() });
        }
        Ok(page)
    }

    pub(super) async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        let outcomes = self.read(STATISTICS, Binds::default().with(now.as_micros())).await?;
        let number = |statement: usize, column: usize| -> Result<Option<i64>> {
            let row = outcomes.get(statement).and_then(|outcome| outcome.rows.first());
            row.map_or(Ok(None), |row| self.column(row.try_get_unchecked(column)))
        };
        let count = |value: Option<i64>| u64::try_from(value.unwrap_or(0)).unwrap_or(0);
        let mut statistics = Statistics::default();
        statistics.pending = count(number(0, 0)?) + count(number(1, 0)?);
        statistics.processing = count(number(0, 1)?);
        statistics.dead = count(number(2, 0)?);
        statistics.completed = if self.sql.history() { count(number(3, 0)?) } else { 0 };
        let oldest = [number(0, 2)?, number(1, 1)?].into_iter().flatten().min();
        statistics.oldest_due_at = oldest.map(Timestamp::from_micros);
        Ok(statistics)
    }

    pub(super) async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        let outcomes = self.read(BACKLOG, Binds::default()).await?;
        let rows = outcomes.first().map_or(&[][..], |outcome| &outcome.rows);
        let entry = |row: &SqliteRow| -> Result<HandlerBacklog> {
            let unfinished: i64 = self.column(row.try_get_unchecked(1))?;
            Ok(HandlerBacklog {
                handler: HandlerId::stored(self.column(row.try_get(0))?),
                unfinished: u64::try_from(unfinished).unwrap_or(0),
            })
        };
        rows.iter().map(entry).collect()
    }

    pub(super) async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        let mut requeued = Vec::with_capacity(ids.len());
        let text = self.sql.fixed(REQUEUE);
        for chunk in ids.chunks(IDS_A_CALL) {
            let mut calls = vec![Call { text: self.sql.fixed("BEGIN IMMEDIATE;"), binds: Binds::default() }];
            calls.extend(chunk.iter().map(|id| {
                let binds = Binds::default()
                    .with(encode_id(id.event_id().as_str()))
                    .with(id.handler().as_str())
                    .with(now.as_micros());
                Call { text: std::sync::Arc::clone(&text), binds }
            }));
            calls.push(Call { text: self.sql.fixed("COMMIT;"), binds: Binds::default() });
            let answers = self.writer.run(calls).await.map_err(|error| self.error("requeue deliveries", error))?;
            for (id, outcomes) in chunk.iter().zip(answers.iter().skip(1)) {
                let row = outcomes.first().and_then(|outcome| outcome.rows.first());
                requeued.push(match row {
                    None => Requeued::Unknown,
                    Some(row) if self.column::<bool>(row.try_get_unchecked(2))? => Requeued::Requeued,
                    Some(row) => self.not_dead(id, row).await?,
                });
            }
        }
        self.watchers.wake();
        Ok(requeued)
    }

    async fn not_dead(&self, id: &DeliveryId, row: &SqliteRow) -> Result<Requeued> {
        let (seq, key): (i64, Option<String>) =
            (self.column(row.try_get_unchecked(0))?, self.column(row.try_get_unchecked(1))?);
        let statement = if key.is_some() { UNFINISHED } else { UNFINISHED_UNKEYED };
        let binds = Binds::default().with(id.handler().as_str()).with(seq).with(key);
        let outcomes = self.read(statement, binds).await?;
        let there = outcomes.first().is_some_and(|outcome| !outcome.rows.is_empty());
        Ok(if there { Requeued::NotDead } else { Requeued::Unknown })
    }
}

fn record(row: &SqliteRow) -> std::result::Result<(i64, DeliveryRecord), sqlx::Error> {
    let position: i64 = row.try_get_unchecked(0)?;
    let handler: String = row.try_get_unchecked(1)?;
    let key: Option<String> = row.try_get_unchecked(2)?;
    let attempts: i64 = row.try_get_unchecked(3)?;
    let due_at: i64 = row.try_get_unchecked(4)?;
    let ended_at: Option<i64> = row.try_get_unchecked(5)?;
    let status: i64 = row.try_get_unchecked(6)?;
    let claims: i64 = row.try_get_unchecked(7)?;
    let session: Option<i64> = row.try_get_unchecked(8)?;
    let id: &[u8] = row.try_get_unchecked(10)?;
    let event_type: String = row.try_get_unchecked(11)?;
    let created_at: i64 = row.try_get_unchecked(12)?;
    let event_id =
        decode_id(id).ok_or_else(|| sqlx::Error::Decode("the id of an event is not one of this store".into()))?;
    let lane = lane_of(key.as_deref().unwrap_or(&event_id));
    let id = DeliveryId::new(HandlerId::stored(handler), EventId::stored(event_id));
    let due_at = Timestamp::from_micros(due_at);
    let mut record = DeliveryRecord::new(id, EventType::stored(event_type), due_at, Timestamp::from_micros(created_at));
    record.key = key.map(OrderingKey::stored);
    record.status = match status {
        0 => DeliveryStatus::Pending,
        1 => DeliveryStatus::Processing,
        2 => DeliveryStatus::Completed,
        _ => DeliveryStatus::Dead,
    };
    record.attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    record.ended_at = ended_at.map(Timestamp::from_micros);
    record.token = session.map(|epoch| LeaseToken { lane, epoch, claims }.to_string());
    record.last_error = row.try_get_unchecked(9)?;
    Ok((position, record))
}
