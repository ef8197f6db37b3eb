//! Publishing without a transaction: one statement that commits by itself, and what is done when it could not be one.
//!
//! Three ways, each for what the one before leaves: a connection for publishing, alone or with others (`publishing`); a
//! connection of the pool, where a statement may wait for locks as long as it must, and where anything goes that is large;
//! a transaction, where events that are there already get the handlers they never had.
//!
//! Invariant: whatever was sent and not answered is sent again only by a text that takes an event that is there for stored. The
//! ids tell, so a publish that was answered is stored once, and one that failed may be called again.

use relaybus::store::{AppendBatch, Appended, NewEvent, StoreTransaction, TransactionOptions};
use relaybus::{Error, Result};

use super::Inner;
use super::append::{STORING, check, is_due};
use super::error::store_error;
use super::event_row::{Row, all_stored};
use super::handle::{Kind, PgHandle, RunError};
use super::publishing::{Companion, MOST_BYTES, MOST_EVENTS, Parcel, Slot, Turn, bytes_of};

/// What is known of a batch that was sent.
enum Sent {
    Stored,
    /// Nothing of it is stored.
    Unsent,
    /// Some of it was there, or it was sent and nobody knows what became of it.
    InDoubt,
}

impl Inner {
    pub(super) async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        check(batch)?;
        if batch.events.is_empty() {
            return Ok(Appended::default());
        }
        // Before the first look nothing is known of the way to the server.
        self.work().await?;
        let sent = match self.publish(batch).await? {
            Sent::Unsent => self.append_by_pool(batch).await?,
            sent => sent,
        };
        let new = match sent {
            Sent::Stored => return Ok(all_stored(batch)),
            Sent::Unsent => true,
            Sent::InDoubt => false,
        };
        let events: Vec<&NewEvent> = batch.events.iter().collect();
        // An open transaction holds a session of a pooler: if all that are held waited for one to ask for numbers, none would end.
        self.names_of(&events).await?;
        let mut tx = self.begin(&TransactionOptions::default()).await?;
        let names = self.names_of(&events).await?;
        let mut handle = PgHandle(Kind::Sqlx(&mut tx));
        let stored = self.append_through(&mut handle, &Row::all(batch, &names), new).await?;
        tx.commit().await.map_err(Error::from)?;
        // What a lost statement stored was told to nobody.
        if is_due(batch) && (!new || stored.outcomes.iter().any(|one| one.deliveries() > 0)) {
            self.wakeups.published();
        }
        Ok(stored)
    }

    /// Stores a batch on one of the connections for publishing, with those of others or by them.
    async fn publish(&self, batch: &AppendBatch) -> Result<Sent> {
        let mut fresh = batch.events.iter().all(|event| event.fresh_id);
        let is_small = batch.events.len() <= MOST_EVENTS && bytes_of(batch) <= MOST_BYTES;
        // Through a pooler a statement needs a transaction.
        if !is_small || !self.way.reach().settings {
            return Ok(Sent::Unsent);
        }
        let mut sent = Sent::Unsent;
        for _ in 0..2 {
            // What may be there already may be extended, which one statement cannot do.
            if (batch.events.len() > 1 && !fresh) || self.held_keys.meets(batch) {
                break;
            }
            sent = match self.publishing.enter(|| fresh.then(|| Parcel::of(batch))).await {
                Turn::Send(slot) => self.send(slot, batch, fresh).await?,
                Turn::Stored => Sent::Stored,
                Turn::InDoubt => Sent::InDoubt,
                Turn::Unsent => break,
            };
            if !matches!(sent, Sent::InDoubt) {
                break;
            }
            fresh = false;
        }
        Ok(sent)
    }

    /// Sends a batch, and with it what waits when all their ids are new.
    async fn send(&self, mut slot: Slot, batch: &AppendBatch, fresh: bool) -> Result<Sent> {
        if self.held_keys.meets(batch) {
            return Ok(if fresh { Sent::Unsent } else { Sent::InDoubt });
        }
        // The pool may have a connection where none can be opened.
        let Ok(mut connection) = slot.connection().await else { return Ok(Sent::Unsent) };
        let mut others = if fresh { slot.others(batch).await } else { Vec::new() };
        // They find that nobody tells them, and go on alone.
        others.retain(|other| !self.held_keys.meets(&other.parcel.batch));
        let batches = || std::iter::once(batch).chain(others.iter().map(|other| &other.parcel.batch));
        let events: Vec<&NewEvent> = batches().flat_map(|batch| &batch.events).collect();
        let names = self.names_of(&events).await?;
        let times = batches().flat_map(|batch| std::iter::repeat_n(batch.now, batch.events.len()));
        let rows: Vec<Row<'_>> =
            events.iter().zip(&names).zip(times).map(|((event, names), now)| Row::new(event, names, now)).collect();
        let answer = self.insert_rows(&mut PgHandle(Kind::Sqlx(&mut connection)), &rows, fresh).await;
        let is_lost = answer.as_ref().is_err_and(|error| self.is_lost(error));
        if is_lost {
            drop(connection);
            slot.lost();
        } else {
            slot.keep(connection);
        }
        drop(slot);
        match answer {
            Ok(stored) if stored.len() == rows.len() => {
                if rows.iter().any(Row::is_due) {
                    self.wakeups.published();
                }
                others.into_iter().for_each(Companion::stored);
                Ok(Sent::Stored)
            }
            Err(error) if others.is_empty() && error.is_lock_timeout() => {
                self.held_keys.note(batch);
                Ok(Sent::Unsent)
            }
            Err(error) if others.is_empty() && !is_lost && !error.is_duplicate() => Err(error.into_error(STORING)),
            _ => Ok(Sent::InDoubt),
        }
    }

    /// Stores a batch by one statement on a connection of the pool.
    async fn append_by_pool(&self, batch: &AppendBatch) -> Result<Sent> {
        let fresh = batch.events.iter().all(|event| event.fresh_id);
        // Through a pooler a statement needs a transaction.
        if (batch.events.len() > 1 && !fresh) || !self.way.reach().settings {
            return Ok(Sent::Unsent);
        }
        let events: Vec<&NewEvent> = batch.events.iter().collect();
        for again in [false, true] {
            let acquired = self.pool.acquire().await;
            let mut connection = acquired.map_err(|error| store_error(STORING, error))?;
            let names = self.names_of(&events).await?;
            let rows = Row::all(batch, &names);
            match self.insert_rows(&mut PgHandle(Kind::Sqlx(&mut connection)), &rows, fresh).await {
                Ok(stored) if stored.len() == rows.len() => {
                    if rows.iter().any(Row::is_due) {
                        self.wakeups.published();
                    }
                    return Ok(Sent::Stored);
                }
                Ok(_) => return Ok(Sent::InDoubt),
                Err(error) if error.is_duplicate() => return Ok(Sent::InDoubt),
                // An idle connection died unseen. Storing again is safe: the ids tell.
                Err(error) if self.lost_statements(&error) => {
                    connection.close_on_drop();
                    return Ok(Sent::InDoubt);
                }
                Err(error) if error.is_disconnect() && !again => connection.close_on_drop(),
                Err(error) => return Err(error.into_error(STORING)),
            }
        }
        Ok(Sent::InDoubt)
    }

    fn lost_statements(&self, error: &RunError) -> bool {
        matches!(error, RunError::Sqlx(error) if self.way.note(error))
    }

    /// Whether a connection is of no more use.
    fn is_lost(&self, error: &RunError) -> bool {
        self.lost_statements(error) || error.is_disconnect() || error.is_outdated()
    }
}
