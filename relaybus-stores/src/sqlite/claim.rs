//! One turn of a session: settle what completed, renew, take over what is orphaned, claim what is due.
//!
//! A turn that has something to settle is one call: one transaction of the writer, which completes, renews, reads what is
//! due with its payloads, and marks it. A turn that has nothing to settle first looks, without a lock, whether anything is
//! due: an idle turn is that look alone, and takes no write lock.
//!
//! Invariant: what is handed out was read and marked in one transaction, and there is one writer. So nobody else can have
//! it, and no mark misses.
//!
//! Interleavings and what stops them:
//! - *The answer is lost* (the future is dropped): marks are in the file, nobody runs them. The session notes that an
//!   answer is missing before it sends, and the next turn first frees every row of the session that is not among the
//!   leases this process handed out.
//! - *A completion meets no delivery*, because its session was taken over or an earlier answer was lost: the whole
//!   transaction is taken back, and its completions are done one by one, which tells them apart.
//! - *A delivery is put between a head and its followers after the claim*: the run goes on with the followers it has; the
//!   late one comes after the run. Promotion names the follower by its `seq`.
//! - *The session was ended by another*: nothing is marked, its completions stand where its rows were still its own.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use relaybus::store::{ClaimRequest, Completed, HandlerSlots, Run, Settled, Turn, TurnRequest};
use relaybus::{Error, HandlerId, Headers, OrderingKey, RawPayload, Result, Timestamp};
use sqlx::Row;

use super::Inner;
use super::args::Binds;
use super::error::is_missed;
use super::lease::{Held, HeldRow, SqliteSession, gone_or_lost};
use super::plan::{self, RUN_BYTES, Wanted};
use super::row::{Broken, Candidate, Malformed, Unpacker};
use super::writer::{Outcome, run_text};

/// Handlers that one transaction reads; more take turns.
const MAX_ARMS: usize = 256;
/// Most runs of one claim.
const MAX_RUNS: usize = 512;
/// A claim ends when the payloads that are read apart pass this; it always has one delivery.
const LARGE_BYTES: usize = 32 * 1024 * 1024;

/// What a transaction claimed.
#[derive(Default)]
struct Claim {
    heads: Vec<Candidate>,
    followers: HashMap<(HandlerId, OrderingKey), Vec<Candidate>>,
    broken: Vec<Broken>,
}

impl Inner {
    pub(super) async fn turn(&self, session: &mut SqliteSession, request: &TurnRequest<'_>) -> Result<Turn> {
        self.forget(session.id, request.finished);
        if session.unanswered {
            self.free_unknown(session).await?;
        }
        let mut taken_over = 0;
        if request.sweep {
            self.check_file()?;
            self.keep_log_small().await;
            taken_over = self.take_over(session.id, request.now).await?;
        }
        let mut turn = Turn::default();
        let groups = session.groups(request.claim.as_ref());
        let limit = request.claim.as_ref().map_or(0, |claim| claim.limit.min(MAX_RUNS));
        let mut settles = !request.completed.is_empty() || request.renew.is_some();
        // More handlers than a text has room for are read group by group.
        for (index, handlers) in groups.into_iter().enumerate() {
            let left = limit - turn.runs.len();
            if index > 0 && (turn.more || left == 0) {
                turn.more = true;
                break;
            }
            if !settles && !self.is_due(session, request.now, &handlers).await? {
                continue;
            }
            let wanted = match &request.claim {
                Some(claim) if !handlers.is_empty() => Some(Wanted::new(claim, handlers, left, session.keyed)),
                _ => None,
            };
            let completed = if std::mem::take(&mut settles) { request.completed } else { &[] };
            self.write_turn(session, request, completed, wanted.as_ref(), &mut turn).await?;
        }
        turn.taken_over = taken_over;
        Ok(turn)
    }

    /// Looks whether one of the handlers has something due, and whether the session lives.
    async fn is_due(&self, session: &mut SqliteSession, now: Timestamp, handlers: &[&HandlerSlots]) -> Result<bool> {
        let (arms, binds) = plan::probe_of(session.id, now, handlers);
        let text = self.sql.probe(arms);
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        let outcomes = match run_text(self.session_connection(session).await?, text, binds).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                session.connection = None;
                return Err(self.error("look what is due", error));
            }
        };
        let row = outcomes.first().and_then(|outcome| outcome.rows.first());
        let (alive, due) = match row {
            Some(row) => self.column(row.try_get(0).and_then(|alive| Ok((alive, row.try_get(1)?))))?,
            None => (false, false),
        };
        if alive { Ok(due) } else { Err(self.lost(session)) }
    }

    async fn write_turn(
        &self,
        session: &mut SqliteSession,
        request: &TurnRequest<'_>,
        completed: &[Completed],
        wanted: Option<&Wanted<'_>>,
        turn: &mut Turn,
    ) -> Result<()> {
        let (shape, binds) = plan::turn_of(self, session.id, request, completed, wanted);
        session.unanswered = true;
        let outcomes = match self.writer.run_one(&self.sql.turn(shape), binds).await {
            Ok(outcomes) => outcomes,
            Err(error) if is_missed(&error) => {
                session.unanswered = false;
                turn.completed.extend(self.complete_singly(session, request, completed).await?);
                turn.more = wanted.is_some();
                return Ok(());
            }
            Err(error) => return Err(self.error("settle and claim deliveries", error)),
        };
        let claim = self.read_claim(&outcomes, wanted)?;
        self.forget_completed(completed);
        let Some(claim) = claim else {
            session.unanswered = false;
            return Err(self.lost(session));
        };
        turn.completed.extend(completed.iter().map(|_| Settled::Applied));
        if !claim.broken.is_empty() {
            self.bury_broken(session.id, &claim.broken, request.now).await?;
        }
        if let Some(wanted) = wanted {
            let found = claim.heads.len() + claim.broken.len();
            let keyed = claim.heads.iter().any(|head| head.key.is_some());
            session.keyed = keyed || (session.keyed && found == 0);
            turn.more |= found >= wanted.limit || !claim.broken.is_empty();
            self.hand_out(session, request.now, claim, turn).await?;
        }
        session.unanswered = false;
        Ok(())
    }

    /// What a turn's row tells; `None` when the session is gone.
    fn read_claim(&self, outcomes: &[Outcome], wanted: Option<&Wanted<'_>>) -> Result<Option<Claim>> {
        let row = outcomes.iter().flat_map(|outcome| &outcome.rows).next();
        let Some(row) = row.filter(|row| row.try_get(0).unwrap_or(false)) else { return Ok(None) };
        let mut claim = Claim::default();
        let Some(wanted) = wanted else { return Ok(Some(claim)) };
        let malformed = |Malformed| Error::store("a claim came back cut off: check the file's integrity", None);
        let packed: Option<&[u8]> = self.column(row.try_get_unchecked(1))?;
        let mut heads = Unpacker::new(packed.unwrap_or_default(), wanted.head_cap());
        while let Some(head) = heads.next().map_err(malformed)? {
            match head {
                Ok(head) => claim.heads.push(head),
                Err(broken) => claim.broken.push(broken),
            }
        }
        claim.heads.sort_by_key(|head| (head.due_at, head.position));
        if wanted.followers {
            let packed: Option<&[u8]> = self.column(row.try_get_unchecked(2))?;
            let mut followers = Unpacker::new(packed.unwrap_or_default(), wanted.follower_cap());
            while let Some(follower) = followers.next().map_err(malformed)? {
                // A broken follower ends its run; it is dealt with when it is the head.
                if let Ok(follower) = follower
                    && let Some(key) = follower.key.clone()
                {
                    claim.followers.entry((follower.handler.clone(), key)).or_default().push(follower);
                }
            }
        }
        Ok(Some(claim))
    }

    /// Makes runs of the claimed heads, and remembers their leases.
    async fn hand_out(&self, session: &SqliteSession, now: Timestamp, mut claim: Claim, turn: &mut Turn) -> Result<()> {
        let excess = excess_of(&claim.heads);
        if excess < claim.heads.len() {
            let rows: Vec<HeldRow> = claim.heads.drain(excess..).map(|head| HeldRow::of(&head, session.id)).collect();
            self.free(&rows, 0, true, None).await?;
            turn.more = true;
        }
        let mut runs = Vec::with_capacity(claim.heads.len());
        let mut apart = HashMap::new();
        for head in &claim.heads {
            if head.body.is_none() {
                apart.insert(head.position, self.read_large(head.position).await?);
            }
        }
        let mut held = self.held();
        for head in claim.heads {
            let behind = head.key.clone().and_then(|key| claim.followers.remove(&(head.handler.clone(), key)));
            let run = run_of(head, behind.unwrap_or_default(), now);
            for (place, delivery) in run.iter().enumerate() {
                let next = run.get(place + 1).map(|next| next.position);
                let held_as = Held { stored_at: delivery.stored_at, next };
                held.insert((session.id, delivery.position, delivery.handler.clone()), held_as);
            }
            let claimed = |delivery: Candidate| {
                let body = apart.get(&delivery.position).cloned();
                delivery.claimed(session.id, body)
            };
            runs.push(Run { deliveries: run.into_iter().map(claimed).collect() });
        }
        drop(held);
        turn.runs.append(&mut runs);
        Ok(())
    }

    /// Completions of a batch of which one is not there any more, each in a transaction of its own.
    async fn complete_singly(
        &self,
        session: &mut SqliteSession,
        request: &TurnRequest<'_>,
        completed: &[Completed],
    ) -> Result<Vec<Settled>> {
        let mut settled = Vec::with_capacity(completed.len());
        for done in completed {
            let one = std::slice::from_ref(done);
            let (shape, binds) = plan::turn_of(self, session.id, &TurnRequest::new(request.now), one, None);
            settled.push(match self.writer.run_one(&self.sql.turn(shape), binds).await {
                Ok(_) => Settled::Applied,
                Err(error) if is_missed(&error) => gone_or_lost(self.locate(&done.lease).await?),
                Err(error) => return Err(self.error("settle deliveries", error)),
            });
            self.forget_completed(one);
        }
        // Renews, and tells whether the session lives.
        let (shape, binds) = plan::turn_of(self, session.id, request, &[], None);
        let outcomes = self.writer.run_one(&self.sql.turn(shape), binds).await;
        match self.read_claim(&outcomes.map_err(|error| self.error("renew a session", error))?, None)? {
            Some(_) => Ok(settled),
            None => Err(self.lost(session)),
        }
    }

    fn forget_completed(&self, completed: &[Completed]) {
        if completed.is_empty() {
            return;
        }
        let mut held = self.held();
        for done in completed {
            held.remove(&super::lease::held_key(&done.lease));
        }
    }

    /// Headers and payload that were too large to come with the claim.
    async fn read_large(&self, position: i64) -> Result<(Headers, RawPayload)> {
        let outcomes = self.read(super::sql::LARGE, Binds::default().with(position)).await?;
        let row = outcomes.first().and_then(|outcome| outcome.rows.first());
        let Some(row) = row else {
            return Err(Error::store("the event of a claimed delivery is gone: restore the file", None));
        };
        let headers: String = self.column(row.try_get_unchecked(0))?;
        let payload: String = self.column(row.try_get_unchecked(1))?;
        Ok((Headers::stored(headers), RawPayload::stored(payload)))
    }
}

impl SqliteSession {
    /// The handlers of a claim in groups that a text has room for; one group, maybe empty, at least. Groups take turns at
    /// being first, so that none starves.
    fn groups<'a>(&mut self, claim: Option<&ClaimRequest<'a>>) -> Vec<Vec<&'a HandlerSlots>> {
        let wanted: Vec<&HandlerSlots> = match claim {
            Some(claim) if claim.limit > 0 => claim.handlers.iter().filter(|slots| slots.limit > 0).collect(),
            _ => Vec::new(),
        };
        if wanted.len() <= MAX_ARMS {
            return vec![wanted];
        }
        let mut groups: Vec<_> = wanted.chunks(MAX_ARMS).map(<[_]>::to_vec).collect();
        self.turns = (self.turns + 1) % groups.len();
        groups.rotate_left(self.turns);
        groups
    }
}

/// A head and the followers that may run after it: those due, in order, until one that was claimed before.
///
/// A head that was claimed before runs alone, so that the next crash charges exactly the one that ran.
fn run_of(head: Candidate, followers: Vec<Candidate>, now: Timestamp) -> Vec<Candidate> {
    let mut run = vec![head];
    if run.first().is_some_and(|head| head.claims > 0) {
        return run;
    }
    let mut followers = followers;
    followers.sort_by_key(|follower| follower.position);
    let mut bytes = 0;
    for follower in followers {
        bytes += follower.bytes;
        let behind = run.last().is_some_and(|last| follower.position > last.position);
        if !behind || follower.due_at > now || follower.claims > 0 || follower.body.is_none() || bytes > RUN_BYTES {
            break;
        }
        run.push(follower);
    }
    run
}

/// How many of the heads have payloads that fit in memory together.
fn excess_of(heads: &[Candidate]) -> usize {
    let mut bytes = 0_usize;
    let fits = heads.iter().take_while(|head| {
        let before = bytes;
        if head.body.is_none() {
            bytes = bytes.saturating_add(head.bytes);
        }
        before == 0 || bytes <= LARGE_BYTES
    });
    fits.count()
}
