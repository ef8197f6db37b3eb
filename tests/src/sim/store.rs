//! The store of one simulated process: the shared in-memory store behind a connection that goes wrong by seed.
//!
//! What a statement did is told to the model in the moment of its effect, whether or not its answer arrives. What a
//! claim handed out without an answer is given back before the session's next statement, as the contract asks of a
//! store.

use std::sync::Arc;

use relaybus::memory::MemorySession;
use relaybus::store::{
    AppendBatch, Appended, Capabilities, Completed, DeliveryId, DeliveryPage, DeliveryQuery, EventStore,
    HandlerBacklog, Lease, LeaseState, PurgeRequest, Purged, Requeued, SessionRequest, Settled, Settlement, Statistics,
    TransactionOptions, Turn, TurnRequest, TypeRef, Verdict, WakeUp, WatchGuard,
};
use relaybus::{MemoryStore, Result, Timestamp};

use super::Mutation;
use super::fault::Fate;
use super::model::{Session, name_of};
use super::process::Process;
use super::transaction::{SimTransaction, Simulated};

/// The store as one process reaches it.
pub(crate) struct SimStore {
    pub(super) inner: MemoryStore,
    pub(super) process: Arc<Process>,
}

/// A session, and what it claimed without an answer.
pub(crate) struct SimSession {
    inner: MemorySession,
    number: usize,
    unanswered: Vec<Lease>,
}

impl SimStore {
    pub(crate) fn of(process: &Arc<Process>) -> Self {
        Self { inner: process.world.store.clone(), process: process.clone() }
    }

    fn say(&self, what: std::fmt::Arguments<'_>) {
        self.process.say(what);
    }

    fn mutation(&self) -> Mutation {
        self.process.world.mutation
    }

    /// Gives back what an unanswered claim handed out.
    async fn recover(&self, session: &mut SimSession, now: Timestamp) -> Result<()> {
        let unknown: Vec<Settlement> =
            session.unanswered.drain(..).map(|lease| Settlement::new(lease, Verdict::Release)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        // From the last, so that each answers for itself and not for what stands behind it.
        for settlement in unknown.into_iter().rev() {
            let answers = self.inner.settle(&mut session.inner, std::slice::from_ref(&settlement), now).await?;
            if answers == [Settled::Applied] {
                let name = name_of(&settlement.lease);
                self.process.world.model(|model| model.release(&name, 0));
                self.say(format_args!("gives back {}, claimed without an answer", settlement.lease.delivery_id()));
            }
        }
        Ok(())
    }

    async fn turn_now(&self, session: &mut SimSession, request: &TurnRequest<'_>) -> Result<Turn> {
        self.recover(session, request.now).await?;
        let mut request = request.clone();
        let number = session.number;
        let completed = request.completed;
        match self.mutation() {
            Mutation::DropCompletions => request.completed = &[],
            Mutation::ForgetRenewals => request.renew = None,
            Mutation::StealEarly if request.sweep => {
                // It judges expiry by a time that has not come.
                let mut early = TurnRequest::new(request.now.after(std::time::Duration::from_secs(60)));
                early.sweep = true;
                self.inner.turn(&mut session.inner, &early).await?;
            }
            _ => {}
        }
        let turn = self.inner.turn(&mut session.inner, &request).await;
        let mut turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                self.say(format_args!("turn: session {number} is lost ({})", error.code()));
                return Err(error);
            }
        };
        if self.mutation() == Mutation::DropCompletions {
            turn.completed = completed.iter().map(|_| Settled::Applied).collect();
        }
        if self.mutation() == Mutation::ClaimWithoutOrder {
            turn.runs =
                turn.runs.into_iter().flat_map(|run| run.deliveries).map(relaybus::store::Run::single).collect();
        }
        self.record_turn(session, &request, completed, &turn);
        Ok(turn)
    }

    fn record_turn(&self, session: &mut SimSession, request: &TurnRequest<'_>, completed: &[Completed], turn: &Turn) {
        let number = session.number;
        let process = &self.process;
        for (done, answer) in completed.iter().zip(&turn.completed) {
            self.say(format_args!("completes {} -> {answer:?}", label(&done.lease)));
            if *answer == Settled::Applied {
                process.world.model(|model| model.completed(Some(number), &done.lease, done.part, &process.name));
            }
        }
        if let Some(expires_at) = request.renew {
            self.say(format_args!("renews session {number}"));
            process.world.model(|model| {
                let session = &mut model.sessions[number];
                session.expires_at = session.expires_at.max(expires_at);
            });
        }
        if turn.taken_over > 0 {
            self.say(format_args!("takes over {} sessions", turn.taken_over));
            process.world.model(|model| model.took_over(number, request.now));
        }
        for run in &turn.runs {
            let names: Vec<String> = run.deliveries.iter().map(|claimed| label(&claimed.lease)).collect();
            self.say(format_args!("claims {}", names.join(", ")));
            for (place, claimed) in run.deliveries.iter().enumerate() {
                process.world.model(|model| model.claimed(number, place, claimed));
                session.unanswered.push(claimed.lease.clone());
            }
        }
    }

    async fn answer<T>(&self, what: &str, fate: Fate, answer: Result<T>) -> Result<T> {
        self.process.receive(what, fate).await?;
        answer
    }

    async fn settle_now(
        &self,
        session: &mut SimSession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        self.recover(session, now).await?;
        let mut sent = settlements.to_vec();
        match self.mutation() {
            Mutation::DropSettlements => sent.clear(),
            Mutation::ChargeNothing => sent.iter_mut().for_each(|settlement| {
                if matches!(settlement.verdict, Verdict::Reschedule { .. }) {
                    settlement.verdict = Verdict::Release;
                }
            }),
            _ => {}
        }
        let mut answers = self.inner.settle(&mut session.inner, &sent, now).await?;
        answers.resize(settlements.len(), Settled::Applied);
        for (settlement, answer) in settlements.iter().zip(&answers) {
            let verdict = match &settlement.verdict {
                Verdict::Reschedule { due_at, .. } => format!("reschedules to {due_at}"),
                Verdict::Bury { .. } => "buries".to_owned(),
                Verdict::Release => "releases".to_owned(),
            };
            let (lease, rest) = (label(&settlement.lease), settlement.rest.len());
            self.say(format_args!("{verdict} {lease} with {rest} behind it -> {answer:?}"));
            let process = &self.process.name;
            self.process.world.model(|model| model.settled(session.number, settlement, *answer, process));
        }
        Ok(answers)
    }
}

fn label(lease: &Lease) -> String {
    let key = lease.key.as_ref().map(|key| format!("[{}]", key.as_str())).unwrap_or_default();
    format!("{}{key}#{} ({})", lease.handler, lease.event_id, lease.token)
}

impl EventStore for SimStore {
    type Family = Simulated;
    type Transaction = SimTransaction;
    type Session = SimSession;

    fn name(&self) -> &'static str {
        "simulated"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.several_processes = true;
        capabilities.reports_commits = self.process.world.plan.wakes == 100;
        capabilities
    }

    fn handles(&self) -> &'static [TypeRef] {
        const HANDLES: &[TypeRef] = &[TypeRef::of::<SimTransaction>()];
        HANDLES
    }

    async fn setup(&self) -> Result<()> {
        let fate = self.process.send("setup").await?;
        self.answer("setup", fate, self.inner.setup().await).await
    }

    async fn verify(&self) -> Result<()> {
        self.setup().await
    }

    async fn begin(&self, options: &TransactionOptions) -> Result<SimTransaction> {
        let fate = self.process.send("begin").await?;
        let inner = self.inner.begin(options).await?;
        let transaction =
            SimTransaction { inner, process: self.process.clone(), events: Vec::new(), completed: Vec::new() };
        self.answer("begin", fate, Ok(transaction)).await
    }

    async fn append<'c>(&'c self, transaction: &'c mut SimTransaction, batch: &AppendBatch) -> Result<Appended> {
        let fate = self.process.send("append").await?;
        let answer = self.inner.append(&mut transaction.inner, batch).await;
        transaction.events.extend(batch.events.iter().cloned());
        self.answer("append", fate, answer).await
    }

    async fn append_alone(&self, batch: &AppendBatch) -> Result<Appended> {
        let fate = self.process.send("append alone").await?;
        let answer = match self.mutation() {
            Mutation::DropPublishes => Ok(Appended::default()),
            _ => self.inner.append_alone(batch).await,
        };
        self.process.world.model(|model| model.appended(&batch.events));
        let ids: Vec<&str> = batch.events.iter().map(|event| event.envelope.id.as_str()).collect();
        self.say(format_args!("PUBLISHED {ids:?} by itself"));
        self.answer("append alone", fate, answer).await
    }

    async fn open_session(&self, request: &SessionRequest) -> Result<SimSession> {
        let fate = self.process.send("open session").await?;
        let inner = self.inner.open_session(request).await?;
        let process = self.process.name.clone();
        let number = self.process.world.model(|model| {
            let expires_at = request.now.after(request.lease);
            model.sessions.push(Session { process, expires_at, ended: None });
            model.sessions.len() - 1
        });
        self.say(format_args!("opens session {number}"));
        self.answer("open session", fate, Ok(SimSession { inner, number, unanswered: Vec::new() })).await
    }

    async fn turn(&self, session: &mut SimSession, request: &TurnRequest<'_>) -> Result<Turn> {
        let fate = self.process.send("turn").await?;
        let answer = self.turn_now(session, request).await;
        let answer = self.answer("turn", fate, answer).await?;
        // The dispatcher has it now, and settles it itself.
        session.unanswered.clear();
        Ok(answer)
    }

    async fn settle(
        &self,
        session: &mut SimSession,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Vec<Settled>> {
        let fate = self.process.send("settle").await?;
        let answer = self.settle_now(session, settlements, now).await;
        self.answer("settle", fate, answer).await
    }

    async fn complete_in(
        &self,
        transaction: &mut SimTransaction,
        completed: &Completed,
        now: Timestamp,
    ) -> Result<Settled> {
        let fate = self.process.send("complete in transaction").await?;
        let answer = match self.mutation() {
            Mutation::UnfencedTransactions => Ok(Settled::Applied),
            _ => self.inner.complete_in(&mut transaction.inner, completed, now).await,
        };
        if matches!(answer, Ok(Settled::Applied)) {
            transaction.completed.push(completed.clone());
        }
        self.answer("complete in transaction", fate, answer).await
    }

    async fn inspect(&self, lease: &Lease) -> Result<LeaseState> {
        let fate = self.process.send("inspect").await?;
        let answer = self.inner.inspect(lease).await;
        self.say(format_args!("inspects {} -> {answer:?}", label(lease)));
        self.answer("inspect", fate, answer).await
    }

    async fn close_session(&self, session: SimSession, now: Timestamp) -> Result<()> {
        let fate = self.process.send("close session").await?;
        let number = session.number;
        let answer = self.inner.close_session(session.inner, now).await;
        self.process.world.model(|model| model.closed(number));
        self.say(format_args!("closes session {number}"));
        self.answer("close session", fate, answer).await
    }

    async fn list_deliveries(&self, query: &DeliveryQuery, now: Timestamp) -> Result<DeliveryPage> {
        let fate = self.process.send("list").await?;
        self.answer("list", fate, self.inner.list_deliveries(query, now).await).await
    }

    async fn requeue(&self, ids: &[DeliveryId], now: Timestamp) -> Result<Vec<Requeued>> {
        let fate = self.process.send("requeue").await?;
        let answer = self.inner.requeue(ids, now).await?;
        for (id, answer) in ids.iter().zip(&answer) {
            self.say(format_args!("requeues {id} -> {answer:?}"));
            if *answer == Requeued::Requeued {
                let name = (id.handler().to_string(), id.event_id().to_string());
                self.process.world.model(|model| model.requeued(&name));
            }
        }
        self.answer("requeue", fate, Ok(answer)).await
    }

    async fn statistics(&self, now: Timestamp) -> Result<Statistics> {
        let fate = self.process.send("statistics").await?;
        self.answer("statistics", fate, self.inner.statistics(now).await).await
    }

    async fn backlog(&self) -> Result<Vec<HandlerBacklog>> {
        let fate = self.process.send("backlog").await?;
        self.answer("backlog", fate, self.inner.backlog().await).await
    }

    async fn purge(&self, request: &PurgeRequest) -> Result<Purged> {
        let fate = self.process.send("purge").await?;
        self.answer("purge", fate, self.inner.purge(request).await).await
    }

    async fn watch(&self, wake: WakeUp) -> Result<Option<WatchGuard>> {
        let fate = self.process.send("watch").await?;
        let process = self.process.clone();
        let wakes = process.world.plan.wakes;
        let heard = move || {
            if process.gate.is_open() && process.world.happens(wakes, 100) {
                wake();
            }
        };
        let guard = self.inner.watch(Arc::new(heard)).await;
        self.answer("watch", fate, guard).await
    }

    async fn close(&self) -> Result<()> {
        let fate = self.process.send("close").await?;
        self.answer("close", fate, Ok(())).await
    }

    fn force_close(&self) {
        self.say(format_args!("closes the store by force"));
    }
}
