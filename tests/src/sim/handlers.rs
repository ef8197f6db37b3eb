//! Handlers that succeed, fail, panic, hang and take their time, by seed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use acts::{Act, End};
use relaybus::store::LeaseToken;
use relaybus::{AnyTransaction, Attempts, BoxError, Envelope, Error, Event, HandlerContext, RetryOverrides, Subscribe};
use serde::{Deserialize, Serialize};

use super::model::Name;
use super::plan::HandlerPlan;
use super::process::{Process, millis};
use super::transaction::SimTransaction;

/// An event of the first type.
#[derive(Clone, Debug, Event, Serialize, Deserialize)]
#[event("sim.alpha.v1")]
pub(crate) struct Alpha {
    pub(crate) number: u32,
}

/// An event of the second type, also published by handlers of the first.
#[derive(Clone, Debug, Event, Serialize, Deserialize)]
#[event("sim.beta.v1")]
pub(crate) struct Beta {
    pub(crate) number: u32,
}

/// What a run is going to do.
mod acts {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) enum End {
        Succeed,
        Fail,
        Refuse,
        Panic,
        /// Never ends by itself; only where there is a timeout.
        Hang,
    }

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Act {
        pub(super) end: End,
        pub(super) takes: u64,
    }

    impl Act {
        pub(super) fn draw(process: &Process, plan: &HandlerPlan) -> Self {
            let world = &process.world;
            let (lease, healed) = (world.plan.lease, world.is_healed());
            world.chance(|rng| {
                let mut takes = if plan.slow > 0 { rng.u64(0..=plan.slow) } else { 0 };
                if healed {
                    let most = plan.timeout.map_or(u64::MAX, |timeout| timeout / 2);
                    return Self { end: End::Succeed, takes: takes.min(most) };
                }
                if rng.u32(..40) == 0 {
                    takes = rng.u64(0..lease * 2);
                }
                if rng.u32(..100) >= plan.failing {
                    return Self { end: End::Succeed, takes };
                }
                let end = match rng.u32(..10) {
                    0 => End::Refuse,
                    1..=2 => End::Panic,
                    3 if plan.timeout.is_some() => End::Hang,
                    _ => End::Fail,
                };
                Self { end, takes }
            })
        }
    }
}

/// A run under way. Dropping it is its end.
struct Run {
    process: Arc<Process>,
    name: Name,
    token: LeaseToken,
    ended: bool,
    began: Duration,
    pauses: u64,
    timeout: Option<u64>,
}

impl Run {
    fn start(process: &Arc<Process>, plan: &HandlerPlan, context: &HandlerContext, act: Act) -> Self {
        let name = (context.handler().to_string(), context.event_id().to_string());
        let token = context.fencing_token();
        let key = context.key().map(|key| format!("[{}]", key.as_str())).unwrap_or_default();
        process.say(format_args!(
            "RUN   {}{key}#{} ({token}) attempt {}: {:?} after {} ms",
            name.0,
            name.1,
            context.attempt(),
            act.end,
            act.takes
        ));
        let world = &process.world;
        world.model(|model| model.started(&name, token, &process.name, &|process| world.is_stunned(process)));
        let (began, pauses) = (world.now(), process.gate.pauses());
        Self { process: process.clone(), name, token, ended: false, began, pauses, timeout: plan.timeout }
    }

    /// A handler does not run past its timeout, unless its process was paused.
    fn check_timeout(&self) {
        let took = self.process.world.now().saturating_sub(self.began);
        let late = self.timeout.is_some_and(|timeout| took > millis(timeout + 2));
        if late && self.process.gate.pauses() == self.pauses {
            let text = format!("ran for {took:?}, its timeout is {:?} ms", self.timeout);
            self.process.world.model(|model| model.broke("a timeout ends a run", &self.name, text));
        }
    }

    fn end(&mut self, succeeded: bool) {
        self.ended = true;
        self.check_timeout();
        let (handler, event) = &self.name;
        self.process.say(format_args!("END   {handler}#{event} {}", if succeeded { "succeeded" } else { "failed" }));
        let (name, token, process) = (&self.name, self.token, &self.process.name);
        self.process.world.model(|model| model.ended(name, token, process, succeeded));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.ended || self.process.gate.is_dead() {
            return;
        }
        self.check_timeout();
        self.process.say(format_args!("CUT   {}#{}", self.name.0, self.name.1));
        let (name, token, process) = (&self.name, self.token, &self.process.name);
        self.process.world.model(|model| model.ended(name, token, process, false));
    }
}

async fn perform(run: &mut Run, act: Act) -> Result<(), BoxError> {
    if act.takes > 0 {
        tokio::time::sleep(millis(act.takes)).await;
        run.process.gate.open().await;
    }
    match act.end {
        End::Succeed => Ok(()),
        End::Fail => {
            run.end(false);
            Err("simulated failure".into())
        }
        End::Refuse => {
            run.end(false);
            Err(Error::non_retryable("simulated refusal").into())
        }
        End::Panic => {
            run.end(false);
            // Without the panic hook, which would print it.
            std::panic::resume_unwind(Box::new("simulated panic"))
        }
        End::Hang => std::future::pending().await,
    }
}

async fn plain(process: Arc<Process>, plan: HandlerPlan, context: HandlerContext) -> Result<(), BoxError> {
    let body = async {
        let act = Act::draw(&process, &plan);
        let mut run = Run::start(&process, &plan, &context, act);
        perform(&mut run, act).await?;
        run.end(true);
        Ok(())
    };
    process.gate.behind(body).await
}

async fn transactional(
    process: &Arc<Process>,
    plan: &HandlerPlan,
    tx: &mut AnyTransaction,
    context: &HandlerContext,
    number: u32,
) -> Result<(), BoxError> {
    let act = Act::draw(process, plan);
    let mut run = Run::start(process, plan, context, act);
    let name = run.name.clone();
    let ours = tx.downcast_mut::<SimTransaction>().expect("the simulated store's transaction");
    let world = process.world.clone();
    ours.on_commit(move || {
        world.model(|model| {
            if let Some(delivery) = model.deliveries.get_mut(&name) {
                delivery.effects += 1;
            }
        });
    });
    if !plan.beta && number.is_multiple_of(3) {
        publish_child(process, tx, context, number).await?;
    }
    perform(&mut run, act).await?;
    run.end(true);
    Ok(())
}

async fn publish_child(
    process: &Process,
    tx: &mut AnyTransaction,
    context: &HandlerContext,
    number: u32,
) -> Result<(), BoxError> {
    let Some(bus) = process.bus() else { return Ok(()) };
    let id = format!("{}/{}", context.event_id(), context.handler());
    let bus = bus.any();
    let child = bus.publish(tx, Beta { number }).id(id);
    let child = match context.key() {
        Some(key) => child.key(key.as_str()),
        None => child.without_key(),
    };
    child.await?;
    Ok(())
}

/// The subscription of a planned handler.
pub(crate) fn subscribe(process: &Arc<Process>, plan: &HandlerPlan) -> Subscribe {
    let subscribe = match (plan.beta, plan.transactional) {
        (false, false) => subscribe_plain::<Alpha>(process, plan),
        (true, false) => subscribe_plain::<Beta>(process, plan),
        (false, true) => subscribe_transactional::<Alpha>(process, plan, |event| event.number),
        (true, true) => subscribe_transactional::<Beta>(process, plan, |event| event.number),
    };
    let subscribe = subscribe
        .order(plan.order)
        .retry(RetryOverrides { attempts: Some(Attempts::Limited(plan.attempts)), ..RetryOverrides::NONE });
    let subscribe = match plan.concurrency {
        Some(concurrency) => subscribe.concurrency(concurrency),
        None => subscribe,
    };
    match plan.timeout {
        Some(timeout) => subscribe.timeout(millis(timeout)),
        None => subscribe.without_timeout(),
    }
}

fn subscribe_plain<E: Event>(process: &Arc<Process>, plan: &HandlerPlan) -> Subscribe {
    let (process, handler) = (process.clone(), plan.clone());
    Subscribe::to(plan.id.clone(), move |_: Envelope<E>, context: HandlerContext| {
        plain(process.clone(), handler.clone(), context)
    })
}

fn subscribe_transactional<E: Event>(process: &Arc<Process>, plan: &HandlerPlan, number: fn(&E) -> u32) -> Subscribe {
    let (process, handler) = (process.clone(), plan.clone());
    Subscribe::transactional(plan.id.clone(), move |event: Envelope<E>, tx, context| {
        let (process, handler) = (process.clone(), handler.clone());
        let number = number(&event.payload);
        boxed(async move {
            let body = transactional(&process, &handler, tx, context, number);
            process.gate.behind(body).await.map_err(into_error)
        })
    })
}

fn boxed<'a, T>(future: impl Future<Output = T> + Send + 'a) -> std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}

fn into_error(source: BoxError) -> Error {
    match source.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(source) => Error::Handler { source },
    }
}
