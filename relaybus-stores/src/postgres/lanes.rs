//! Lanes: taking, sharing and handing back.
//!
//! A worker owns pairs of a handler and a lane: of each handler it can run, its share of 256 lanes. The pairs of a handler
//! are one row, a byte a lane: the number of the owning session, 0 for nobody's. So processes with different handlers on one
//! store strand nothing, and a statement about the lanes of a handler locks one row.
//!
//! # Rules
//!
//! - Every statement about lanes first locks the session's own row and advances its number; without the row it does nothing.
//! - Taking changes only free bytes, handing back only the session's own; both compose the bytes from the locked row.
//! - A lane is claimed from only after the answer that it was taken, in a later statement. It is claimed from no more from
//!   the moment handing back is decided, and handed back when nothing of it is in hand.
//! - A session gives away what is above its share only when another says that it wants lanes and none is free. Free lanes
//!   that nobody took between two looks are taken by anybody, so that none stays with a worker that does not come.
//! - After a lost answer the own bytes are read again, behind a numbered statement; lanes that are leaving stay leaving.
//! - Lock order: own session, handlers by number, deliveries. Who holds a handler's row waits for no session.

use std::time::Duration;

use relaybus::{Error, Result, Timestamp};
use sqlx::Row;

use super::Inner;
use super::args::{Binds, Time};
use super::error::store_error;
use super::session::{Mask, Own, PostgresSession};

const SHARING: &str = "share the lanes";
/// Lanes of a handler.
const LANES: usize = 256;

/// What a session sees of a handler's lanes.
struct Seen {
    id: i16,
    mine: Mask,
    free: usize,
    epoch: i64,
    workers: usize,
    /// Others that want lanes of it.
    wanting: usize,
}

impl Inner {
    /// Reads what is owned, free and shared; hands back what is too much, takes what is missing. How many sessions have
    /// expired.
    pub(super) async fn share_lanes(&self, session: &mut PostgresSession, now: Timestamp) -> Result<usize> {
        if session.unsure {
            self.touch(session, session.wants).await?;
        }
        let (seen, expired) = self.see_lanes(session, now).await?;
        session.unsure = false;
        let (mut missing, mut hungry) = (Vec::new(), false);
        for handler in seen {
            let share = LANES.div_ceil(handler.workers.max(1));
            let Some(own) = session.handler_mut(handler.id) else { continue };
            settle_masks(own, handler.mine);
            let (claimed, leaving) = (own.mask.count(), own.leaving.count());
            let unwanted = own.free_since == Some(handler.epoch);
            own.free_since = (handler.free > 0).then_some(handler.epoch);
            if claimed > share && handler.wanting > 0 && handler.free == 0 {
                choose_leaving(session, handler.id, claimed - share);
            } else if handler.free > 0 && leaving == 0 && (claimed < share || unwanted) {
                let most = if unwanted { LANES } else { share };
                missing.push((handler.id, most - claimed.min(most)));
                hungry |= claimed + handler.free < share;
            } else {
                hungry |= claimed + leaving < share;
            }
        }
        self.hand_back(session).await?;
        if !missing.is_empty() {
            self.take(session, &missing).await?;
        }
        // A session that was only opened gets nothing for it: it may never come.
        if hungry != session.wants && session.has_turned {
            self.touch(session, hungry).await?;
            session.wants = hungry;
        }
        Ok(expired)
    }

    /// A numbered statement that writes the session's row: what was sent before it and runs later does nothing.
    async fn touch(&self, session: &mut PostgresSession, wants: bool) -> Result<()> {
        let turn = session.next_turn();
        let binds = Binds::default().with(session.owner.as_str()).with(turn).with(wants);
        session.line.rows(&self.sql.touch_session, binds).await.map(|_| ()).map_err(|error| store_error(SHARING, error))
    }

    async fn see_lanes(&self, session: &mut PostgresSession, now: Timestamp) -> Result<(Vec<Seen>, usize)> {
        let failed = |error| store_error(SHARING, error);
        let binds = Binds::default()
            .with(session.owner.as_str())
            .with(Time::from(now))
            .with(Time::from(now.before(self.builder.margin)));
        let rows = session.line.rows(&self.sql.shares, binds).await.map_err(failed)?;
        if rows.is_empty() {
            return Err(Error::SessionLost);
        }
        let (mut seen, mut expired, mut open_for) = (Vec::new(), 0, None);
        for row in &rows {
            let number = |place: usize| row.try_get_unchecked::<i64, _>(place).map(|n| usize::try_from(n).unwrap_or(0));
            expired = number(6).map_err(failed)?;
            let hidden: bool = row.try_get_unchecked(9).map_err(failed)?;
            let age: Option<f64> = row.try_get_unchecked(8).map_err(failed)?;
            open_for = (!hidden).then(|| Duration::try_from_secs_f64(age.unwrap_or(0.0)).unwrap_or_default());
            let Some(id) = row.try_get_unchecked::<Option<i16>, _>(0).map_err(failed)? else { continue };
            let owners: &[u8] = row.try_get_unchecked(1).map_err(failed)?;
            let name: &str = row.try_get_unchecked(7).map_err(failed)?;
            if session.handler(id).is_none_or(|own| own.name.as_str() != name) {
                continue;
            }
            seen.push(Seen {
                id,
                mine: Mask::owned(owners, session.no),
                free: owners.iter().filter(|&&owner| owner == 0).count(),
                epoch: row.try_get_unchecked(2).map_err(failed)?,
                workers: number(4).map_err(failed)?,
                wanting: number(5).map_err(failed)?,
            });
        }
        if seen.len() < session.handlers.len() {
            // Somebody emptied or restored the tables: the numbers are others now.
            self.forget_handlers();
            return Err(Error::SessionLost);
        }
        session.look_back_to(now, open_for);
        Ok((seen, expired))
    }

    /// Hands back the leaving lanes in which nothing is in hand. Not while the session's row may list what it does not know.
    async fn hand_back(&self, session: &mut PostgresSession) -> Result<()> {
        if session.dirty {
            return Ok(());
        }
        let (mut ids, mut masks) = (Vec::new(), Vec::new());
        for own in session.handlers.iter().filter(|own| !own.leaving.is_empty()) {
            let busy = session.busy_lanes(own.id);
            let mut idle = own.leaving;
            for lane in busy.lanes() {
                idle.set(lane, false);
            }
            if !idle.is_empty() {
                ids.push(own.id);
                masks.push(idle);
            }
        }
        if ids.is_empty() {
            return Ok(());
        }
        let turn = session.next_turn();
        let lanes: Vec<&[u8]> = masks.iter().map(|mask| mask.0.as_slice()).collect();
        let binds = Binds::default().with(session.owner.as_str()).with(turn).with(ids.as_slice()).with(lanes);
        session.unsure = true;
        let rows = session.line.rows(&self.sql.hand_back, binds).await.map_err(|error| store_error(SHARING, error))?;
        session.unsure = false;
        if !has_number(&rows)? {
            return Err(Error::SessionLost);
        }
        for (id, mask) in ids.into_iter().zip(masks) {
            let Some(own) = session.handler_mut(id) else { continue };
            for lane in mask.lanes() {
                own.leaving.set(lane, false);
            }
        }
        Ok(())
    }

    async fn take(&self, session: &mut PostgresSession, wanted: &[(i16, usize)]) -> Result<()> {
        let failed = |error| store_error(SHARING, error);
        let turn = session.next_turn();
        let ids: Vec<i16> = wanted.iter().map(|(id, _)| *id).collect();
        let counts: Vec<i32> = wanted.iter().map(|(_, count)| i32::try_from(*count).unwrap_or(0)).collect();
        let binds = Binds::default().with(session.owner.as_str()).with(turn).with(ids).with(counts);
        session.unsure = true;
        let rows = session.line.rows(&self.sql.take, binds).await.map_err(failed)?;
        session.unsure = false;
        if !has_number(&rows)? {
            return Err(Error::SessionLost);
        }
        for row in &rows {
            let Some(id) = row.try_get_unchecked::<Option<i16>, _>(1).map_err(failed)? else { continue };
            let owners: &[u8] = row.try_get_unchecked(2).map_err(failed)?;
            let mine = Mask::owned(owners, session.no);
            let Some(own) = session.handler_mut(id) else { continue };
            own.mask = mine;
            for lane in own.leaving.lanes() {
                own.mask.set(lane, false);
            }
            own.rewind();
        }
        Ok(())
    }
}

/// Takes over what was read: the own lanes less those that are leaving.
fn settle_masks(own: &mut Own, mine: Mask) {
    let mut mask = mine;
    for lane in own.leaving.lanes().collect::<Vec<_>>() {
        // Leaving, or handed back meanwhile.
        own.leaving.set(lane, mask.has(lane));
        mask.set(lane, false);
    }
    if mask.lanes().any(|lane| !own.mask.has(lane)) {
        own.rewind();
    }
    own.mask = mask;
}

/// Marks `surplus` lanes as leaving, those first in which nothing is in hand.
fn choose_leaving(session: &mut PostgresSession, handler: i16, surplus: usize) {
    let busy = session.busy_lanes(handler);
    let Some(own) = session.handler_mut(handler) else { return };
    let mut lanes: Vec<u8> = own.mask.lanes().collect();
    // From the end, so that what stays is what was taken first.
    lanes.reverse();
    lanes.sort_by_key(|&lane| busy.has(lane));
    for lane in lanes.into_iter().take(surplus) {
        own.mask.set(lane, false);
        own.leaving.set(lane, true);
    }
}

/// Whether the session's row was there.
fn has_number(rows: &[sqlx::postgres::PgRow]) -> Result<bool> {
    let number = rows.first().map(|row| row.try_get_unchecked::<Option<i16>, _>(0)).transpose();
    Ok(number.map_err(|error| store_error(SHARING, error))?.flatten().is_some())
}
