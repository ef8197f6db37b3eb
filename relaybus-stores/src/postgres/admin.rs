//! What operators ask: lists, counts, requeueing.
//!
//! A list goes by the deliveries' numbers, which rise with their storing: a page neither skips nor repeats what exists
//! throughout. Requeueing compares and sets: it changes what is dead at that moment and nothing else.

use std::collections::{HashMap, HashSet};

use relaybus::store::{
    DeliveryCursor, DeliveryId, DeliveryPage, DeliveryQuery, DeliveryRecord, DeliveryStatus, HandlerBacklog, Requeued,
    Statistics,
};
use relaybus::{EventId, EventType, HandlerId, OrderingKey, Result, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Inner;
use super::args::{Binds, Time, encode_id, key_number};
use super::error::store_error;
use super::row::id_of;

const REQUEUEING: &str = "requeue deliveries";
const COUNTING: &str = "count deliveries";
const LISTING: &str = "list deliveries";

impl Inner {
    pub(super) async fn list_deliveries(&self, query: &DeliveryQuery) -> Result<DeliveryPage> {
        let failed = |error| store_error(LISTING, error);
        let handler = match &query.handler {
            Some(name) => match self.known_handler(name).await? {
                Some(number) => Some(number),
                None => return Ok(DeliveryPage::default()),
            },
            None => None,
        };
        let wants = |status: DeliveryStatus| query.status.is_none_or(|wanted| wanted == status);
        let dead_only = query.status == Some(DeliveryStatus::Dead);
        let text = if dead_only { &self.sql.list_dead } else { &self.sql.list };
        let key = query.key.as_ref().map(|key| key.as_str());
        let limit = query.limit.max(1);
        let mut binds = Binds::default()
            .with(query.after.as_ref().map_or(i64::MIN, |cursor| cursor.position))
            .with(i64::try_from(limit + 1).unwrap_or(i64::MAX))
            .with(handler)
            .with(query.event_type.as_ref().map(|name| name.as_str()))
            .with(key.map(key_number))
            .with(key);
        if !dead_only {
            let statuses =
                [DeliveryStatus::Pending, DeliveryStatus::Processing, DeliveryStatus::Completed, DeliveryStatus::Dead];
            for status in statuses {
                binds.push(wants(status));
            }
        }
        let rows = self.ask(LISTING, text, binds).await?;
        let mut page = DeliveryPage::default();
        let mut last = None;
        for row in rows.iter().take(limit) {
            let (position, record) = record(row).map_err(failed)?;
            last = Some(DeliveryCursor { position, handler: record.id.handler().clone() });
            page.deliveries.push(record);
        }
        page.next = last.filter(|_| rows.len() > limit);
        Ok(page)
    }

    pub(super) async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        let failed = |error| store_error(REQUEUEING, error);
        let mut numbers = HashMap::new();
        for id in ids {
            if !numbers.contains_key(id.handler()) {
                numbers.insert(id.handler().clone(), self.known_handler(id.handler()).await?);
            }
        }
        let wanted: Vec<(Vec<u8>, i16)> = ids
            .iter()
            .map(|id| (encode_id(id.event_id().as_str()), numbers.get(id.handler()).copied().flatten().unwrap_or(0)))
            .collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let events: Vec<&[u8]> = wanted.iter().map(|(event, _)| event.as_slice()).collect();
        let handlers: Vec<i16> = wanted.iter().map(|(_, handler)| *handler).collect();
        let binds = Binds::default().with(events.as_slice()).with(handlers.as_slice()).with(Time::from(now));
        let rows = self.ask(REQUEUEING, &self.sql.requeue, binds).await?;
        let mut requeued = HashSet::new();
        for row in &rows {
            let ordinal: i64 = row.try_get_unchecked(0).map_err(failed)?;
            requeued.insert(usize::try_from(ordinal - 1).unwrap_or(usize::MAX));
        }
        let mut unfinished = HashSet::new();
        if requeued.len() < wanted.len() {
            for row in self.ask(REQUEUEING, &self.sql.unfinished, Binds::default().with(events.as_slice())).await? {
                let event: Vec<u8> = row.try_get_unchecked(0).map_err(failed)?;
                unfinished.insert((event, row.try_get_unchecked::<i16, _>(1).map_err(failed)?));
            }
        }
        if !requeued.is_empty() {
            self.wakeups.published();
        }
        let mut answered = HashSet::new();
        let answers = wanted.iter().enumerate().map(|(place, one)| match requeued.contains(&place) {
            // Named twice in one call, it is requeued once.
            true if answered.insert(one.clone()) => Requeued::Requeued,
            true => Requeued::NotDead,
            false if unfinished.contains(one) => Requeued::NotDead,
            false => Requeued::Unknown,
        });
        Ok(answers.collect())
    }

    pub(super) async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        let failed = |error| store_error(COUNTING, error);
        let rows = self.ask(COUNTING, &self.sql.statistics, Binds::default()).await?;
        let row = rows.first().ok_or_else(|| failed(sqlx::Error::RowNotFound))?;
        let number = |place: usize| -> Result<u64> {
            let count: i64 = row.try_get_unchecked(place).map_err(failed)?;
            Ok(u64::try_from(count).unwrap_or(0))
        };
        let oldest: Option<Time> = row.try_get_unchecked(3).map_err(failed)?;
        let mut statistics = Statistics::default();
        (statistics.pending, statistics.processing) = (number(0)?, number(1)?);
        (statistics.dead, statistics.completed) = (number(2)?, number(4)?);
        statistics.oldest_due_at = oldest.map(Timestamp::from).filter(|at| *at <= now);
        Ok(statistics)
    }

    pub(super) async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        let failed = |error| store_error(COUNTING, error);
        let rows = self.ask(COUNTING, &self.sql.backlog, Binds::default()).await?;
        let read = rows.iter().map(|row| {
            let name: String = row.try_get_unchecked(0).map_err(failed)?;
            let unfinished: i64 = row.try_get_unchecked(1).map_err(failed)?;
            Ok(HandlerBacklog { handler: HandlerId::stored(name), unfinished: u64::try_from(unfinished).unwrap_or(0) })
        });
        read.collect()
    }
}

/// A row of a list: its number and the delivery.
fn record(row: &PgRow) -> std::result::Result<(i64, DeliveryRecord), sqlx::Error> {
    let id: i64 = row.try_get("id")?;
    let event = id_of(row.try_get_unchecked("event_id")?, "event_id")?;
    let handler: String = row.try_get_unchecked("name")?;
    let event_type: String = row.try_get_unchecked("type")?;
    let key: Option<String> = row.try_get_unchecked("key")?;
    let due_at: Time = row.try_get_unchecked("available_at")?;
    let created_at: Time = row.try_get_unchecked("created_at")?;
    let (dead, completed): (bool, bool) = (row.try_get_unchecked("dead")?, row.try_get_unchecked("completed")?);
    let epoch: Option<i64> = row.try_get_unchecked("epoch")?;
    let ended: Option<Time> = row.try_get_unchecked("ended")?;
    let (lane, claims): (i16, i32) = (row.try_get_unchecked("lane")?, row.try_get_unchecked("claims")?);
    let name = DeliveryId::new(HandlerId::stored(handler), EventId::stored(event));
    let mut record = DeliveryRecord::new(name, EventType::stored(event_type), due_at.into(), created_at.into());
    record.key = key.map(OrderingKey::stored);
    record.attempts = u32::try_from(row.try_get_unchecked::<i32, _>("attempts")?).unwrap_or(0);
    record.last_error = row.try_get_unchecked("last_error")?;
    record.status = match (completed, dead, epoch) {
        (true, _, _) => DeliveryStatus::Completed,
        (false, true, _) => DeliveryStatus::Dead,
        (false, false, Some(_)) => DeliveryStatus::Processing,
        (false, false, None) => DeliveryStatus::Pending,
    };
    if completed || dead {
        record.ended_at = ended.map(Timestamp::from);
    }
    if let (DeliveryStatus::Processing, Some(epoch)) = (record.status, epoch) {
        record.token = Some(format!("{lane}:{epoch}:{claims}"));
    }
    Ok((id, record))
}
