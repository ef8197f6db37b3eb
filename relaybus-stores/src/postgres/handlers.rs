//! The numbers of handlers: deliveries and events name a handler by a small number.
//!
//! Invariant: a number is given once and never taken back or used again, because events remember the handlers they had.
//! Names are registered on the store's own connection, outside of every transaction, so that a number that this process
//! remembers cannot be rolled back; the registration holds nothing but its advisory lock.
//!
//! What a process remembers is wrong when somebody empties or restores the tables under it: so each new session reads the
//! numbers again, and a session whose handlers have other names, or are not there, ends when it looks at its lanes.

use std::collections::HashMap;
use std::sync::PoisonError;

use relaybus::{Error, HandlerId, Result};
use sqlx::{AssertSqlSafe, Row};

use super::Inner;
use super::args::{Binds, key_number};
use super::background::to_its_end;
use super::error::store_error;

/// Second number of the lock under which names are registered.
const REGISTRATION: i32 = -2;

impl Inner {
    /// The numbers of `names`; unknown ones are registered first.
    pub(super) async fn handler_numbers<'n>(
        &self,
        names: impl Iterator<Item = &'n HandlerId> + Clone + Send,
    ) -> Result<HashMap<HandlerId, i16>> {
        let (mut known, missing) = self.look_up(names.clone());
        if missing.is_empty() {
            return Ok(known);
        }
        self.register(&missing).await?;
        let (again, missing) = self.look_up(names);
        if let Some(name) = missing.first() {
            return Err(Error::store(
                format!("the handler `{name}` got no number: a store holds at most 32767 names"),
                None,
            ));
        }
        known.extend(again);
        Ok(known)
    }

    /// The number of a handler that may be unknown, without registering it.
    pub(super) async fn known_handler(&self, name: &HandlerId) -> Result<Option<i16>> {
        let (known, missing) = self.look_up(std::iter::once(name));
        if missing.is_empty() {
            return Ok(known.get(name).copied());
        }
        self.read_handlers().await?;
        Ok(self.look_up(std::iter::once(name)).0.get(name).copied())
    }

    fn look_up<'n>(&self, names: impl Iterator<Item = &'n HandlerId>) -> (HashMap<HandlerId, i16>, Vec<HandlerId>) {
        let numbers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        let (mut known, mut missing) = (HashMap::new(), Vec::new());
        for name in names {
            match numbers.get(name) {
                Some(&number) => {
                    known.insert(name.clone(), number);
                }
                None => missing.push(name.clone()),
            }
        }
        (known, missing)
    }

    /// Forgets what is remembered: the next look-up reads it again.
    pub(super) fn forget_handlers(&self) {
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn register(&self, names: &[HandlerId]) -> Result<()> {
        self.read_handlers().await?;
        let mut wanted: Vec<String> =
            self.look_up(names.iter()).1.iter().map(|name| name.as_str().to_owned()).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        wanted.sort_unstable();
        wanted.dedup();
        let (pool, text) = (self.work().await?.clone(), self.sql.add_handler_names.clone());
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
            sqlx::query(AssertSqlSafe(text)).persistent(prepared).bind(wanted).execute(&mut *tx).await?;
            tx.commit().await
        });
        match added.await {
            Some(added) => added.map_err(|error| store_error("register handlers", error))?,
            None => return Err(Error::store("the runtime ended while handlers were registered", None)),
        }
        self.read_handlers().await
    }

    async fn read_handlers(&self) -> Result<()> {
        let rows = self.ask("read the handlers", &self.sql.known_handlers, Binds::default()).await?;
        let mut numbers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let number = row.try_get::<i16, _>(0).map_err(|error| store_error("read the handlers", error))?;
            let name = row.try_get::<String, _>(1).map_err(|error| store_error("read the handlers", error))?;
            numbers.insert(HandlerId::stored(name), number);
        }
        Ok(())
    }
}
