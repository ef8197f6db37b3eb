//! The numbers of handlers: deliveries and events name a handler by a small number.
//!
//! Invariant: a number is given once and never taken back or used again, because events remember the handlers they had.
//! Names are registered on the store's own connection, outside of every transaction, so that a number that this process
//! remembers cannot be rolled back; the registration holds nothing but its advisory lock.
//!
//! # What a process remembers
//!
//! A publish looks its numbers up in memory. That memory is wrong when somebody restores the tables under it: after a fail-over
//! to a replica that lacks the newest names, a restore from a backup, a drop and a new setup. A delivery would then be stored
//! for another handler. Two things are in the way, neither of which costs a publish anything:
//!
//! - *A number follows from its name.* It is the name's hash, or the next free one: a name that is lost and registered again
//!   gets the number it had. What a process remembers is right again as soon as anybody registers the name, and until then it is
//!   nobody's. Left are names whose hashes collide, one pair in 32767, and numbers that were given in another way.
//! - *Numbers are as old as the connections.* A server that is restored, or fails over, ends its connections. So the numbers
//!   are forgotten when the store opens one that something is written through, and are read again: whoever has a connection to
//!   the server as it is now finds no number of the server as it was.
//!
//! # Interleavings
//!
//! - *The restore comes between the look-up and the statement*: the connection is taken first and looked up for then, so the
//!   statement fails on it; on another one it is looked up for again.
//! - *The restore comes while the numbers are read*: the count of opened connections is noted before they are asked for, and
//!   they are kept only where it has not changed.
//! - *The reading connection is older than the restore*: it is dead, and the next one is asked.
//! - *The restore ends no connection*: somebody rewrites the rows of `handlers` by hand, or a fail-over leaves the old server
//!   answering. Dispatchers find out when they look at their lanes, and their sessions end; each new session reads again.
//! - *The connection is the application's*, opened by its own pool, or *leads to a pooler* in transaction mode, where it outlives
//!   the server: its opening is not seen or tells nothing, and numbers follow from their names alone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::sync::{PoisonError, RwLockReadGuard};

use relaybus::{Error, HandlerId, Result};
use sqlx::{AssertSqlSafe, Row};

use super::Inner;
use super::args::key_number;
use super::background::to_its_end;
use super::error::store_error;

/// Second number of the lock under which names are registered.
const REGISTRATION: i32 = -2;
/// Numbers that there are, from one on.
const NUMBERS: u64 = i16::MAX as u64;

/// The numbers that a process knows, those that were asked for since the newest connection was opened.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    numbers: HashMap<HandlerId, i16>,
    /// Connections that the store has opened.
    opened: u64,
}

impl Remembered {
    /// A connection was opened, and nothing was sent on it yet.
    pub(super) fn note_opened(&mut self) {
        self.opened += 1;
        self.numbers.clear();
    }
}

impl Deref for Remembered {
    type Target = HashMap<HandlerId, i16>;

    fn deref(&self) -> &Self::Target {
        &self.numbers
    }
}

impl Inner {
    /// The numbers of `names`; unknown ones are registered first.
    ///
    /// Whoever writes them through a connection takes that connection before.
    pub(super) async fn handler_numbers<'n>(
        &self,
        names: impl Iterator<Item = &'n HandlerId> + Clone + Send,
    ) -> Result<HashMap<HandlerId, i16>> {
        if let Ok(known) = pick(&self.remembered(), names.clone()) {
            return Ok(known);
        }
        if let Ok(known) = pick(&self.read_handlers().await?, names.clone()) {
            return Ok(known);
        }
        let wanted = names.clone().map(|name| name.as_str().to_owned()).collect();
        self.register(wanted).await?;
        pick(&self.read_handlers().await?, names).map_err(|name| {
            Error::store(format!("the handler `{name}` got no number: a store holds at most {NUMBERS} names"), None)
        })
    }

    /// The number of a handler that may be unknown, without registering it.
    pub(super) async fn known_handler(&self, name: &HandlerId) -> Result<Option<i16>> {
        let known = self.remembered().get(name).copied();
        match known {
            Some(number) => Ok(Some(number)),
            None => Ok(self.read_handlers().await?.get(name).copied()),
        }
    }

    /// What is known without asking.
    pub(super) fn remembered(&self) -> RwLockReadGuard<'_, Remembered> {
        self.handlers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is remembered: the next look-up reads it again.
    pub(super) fn forget_handlers(&self) {
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).numbers.clear();
    }

    async fn register(&self, mut wanted: Vec<String>) -> Result<()> {
        // In one order, so that which of two gets the number they both hash to depends on nothing else.
        wanted.sort_unstable();
        wanted.dedup();
        let (pool, names) = (self.work().await?.clone(), self.sql.known_handlers.clone());
        let text = self.sql.add_handler_names.clone();
        let class = self.sql.names.lock_class() ^ super::args::key_slot(key_number("relaybus handlers"));
        let prepared = self.prepared();
        let added = to_its_end(async move {
            let mut tx = pool.begin_with(super::work::BEGIN).await?;
            sqlx::query("SELECT pg_advisory_xact_lock($1, $2)")
                .persistent(prepared)
                .bind(class)
                .bind(REGISTRATION)
                .execute(&mut *tx)
                .await?;
            let rows = sqlx::query(AssertSqlSafe(names)).persistent(prepared).fetch_all(&mut *tx).await?;
            let taken = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            let taken = taken.collect::<std::result::Result<HashMap<i16, String>, sqlx::Error>>()?;
            let (numbers, names) = numbered(taken, wanted);
            let add = sqlx::query(AssertSqlSafe(text)).persistent(prepared).bind(numbers).bind(names);
            add.execute(&mut *tx).await?;
            tx.commit().await
        });
        match added.await {
            Some(added) => added.map_err(|error| store_error("register handlers", error)),
            None => Err(Error::store("the runtime ended while handlers were registered", None)),
        }
    }

    async fn read_handlers(&self) -> Result<HashMap<HandlerId, i16>> {
        const READING: &str = "read the handlers";
        // Before the question: what is opened meanwhile may already lead to another state.
        let opened = self.remembered().opened;
        let rows = self.read(READING, &self.sql.known_handlers).await?;
        let number =
            |row: &sqlx::postgres::PgRow| Ok((HandlerId::stored(row.try_get::<String, _>(1)?), row.try_get(0)?));
        let numbers = rows.iter().map(number).collect::<std::result::Result<HashMap<_, _>, sqlx::Error>>();
        let numbers = numbers.map_err(|error| store_error(READING, error))?;
        let mut remembered = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        if opened == remembered.opened {
            remembered.numbers.clone_from(&numbers);
        }
        Ok(numbers)
    }
}

/// The numbers of `names`, or the first name that has none.
fn pick<'n>(
    numbers: &HashMap<HandlerId, i16>,
    names: impl Iterator<Item = &'n HandlerId>,
) -> std::result::Result<HashMap<HandlerId, i16>, HandlerId> {
    names.map(|name| numbers.get(name).map(|number| (name.clone(), *number)).ok_or_else(|| name.clone())).collect()
}

/// Numbers for the names that have none yet: each the next free one from its hash on. A name finds none when all are taken.
fn numbered(mut taken: HashMap<i16, String>, wanted: Vec<String>) -> (Vec<i16>, Vec<String>) {
    let there: std::collections::HashSet<String> = taken.values().cloned().collect();
    let mut added = (Vec::new(), Vec::new());
    for name in wanted.into_iter().filter(|name| !there.contains(name)) {
        let hash = key_number(&name).cast_unsigned();
        for step in 0..NUMBERS {
            // Below `NUMBERS`, so it fits.
            let number = i16::try_from((hash.wrapping_add(step)) % NUMBERS + 1).unwrap_or(i16::MAX);
            if let Entry::Vacant(free) = taken.entry(number) {
                free.insert(name.clone());
                added.0.push(number);
                added.1.push(name);
                break;
            }
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(taken: &[(i16, &str)], wanted: &[&str]) -> Vec<(i16, String)> {
        let taken = taken.iter().map(|(number, name)| (*number, (*name).to_owned())).collect();
        let (numbers, names) = numbered(taken, wanted.iter().map(|name| (*name).to_owned()).collect());
        numbers.into_iter().zip(names).collect()
    }

    #[test]
    fn a_number_follows_from_its_name() {
        // Stored with deliveries: a change of the hash would bring back what it is there to stop.
        assert_eq!(of(&[], &["a", "b"]), of(&[(7, "c")], &["a", "b"]));
        let alone = of(&[], &["orders.ship"]);
        assert_eq!(of(&[], &["orders.bill", "orders.ship"])[1], alone[0]);
        assert_eq!(alone[0].0, ORDERS_SHIP);
    }

    const ORDERS_SHIP: i16 = 14_360;

    #[test]
    fn a_name_that_meets_another_takes_the_next_number() {
        let (first, _) = of(&[], &["a"])[0].clone();
        assert_eq!(of(&[(first, "other")], &["a"]), [(first + 1, "a".to_owned())]);
        assert_eq!(of(&[(first, "a")], &["a"]), []);
        let all: Vec<String> = (1..=i16::MAX).map(|number| format!("h{number}")).collect();
        let all: Vec<(i16, &str)> = (1..=i16::MAX).zip(all.iter().map(String::as_str)).collect();
        assert_eq!(of(&all, &["one more"]), []);
        assert_eq!(of(&all[..all.len() - 1], &["one more"]), [(i16::MAX, "one more".to_owned())]);
    }
}
