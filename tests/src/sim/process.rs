//! One simulated process: a bus of its own, its publishers and its handlers, all behind one gate.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaybus::store::{DeliveryQuery, DeliveryStatus};
use relaybus::{Clock, DispatcherOptions, EventId, RelayBus, RetryPolicy, StopResult, Timestamp};
use tokio::sync::Notify;

use super::gate::Gate;
use super::observer::SimObserver;
use super::plan::HandlerPlan;
use super::store::SimStore;
use super::world::{World, lock};
use super::{handlers, publisher};

/// A process from its start to its end. A restart is another process in the same slot.
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) slot: usize,
    pub(crate) world: Arc<World>,
    pub(crate) gate: Gate,
    pub(super) meter: Mutex<Meter>,
    pub(super) crash_in_call: Mutex<Option<(u64, bool)>>,
    pub(super) ids: AtomicU64,
    bus: Mutex<Option<RelayBus<SimStore>>>,
    pub(super) ended: Notify,
    started: AtomicBool,
    stopping: AtomicBool,
    graceful: AtomicBool,
}

/// Store calls, and timers set, of a process.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) calls: u64,
    pub(super) at: u128,
    pub(super) at_once: u64,
    timers_at: u128,
    timers: u64,
}

/// Most timers that a process sets within one millisecond.
const MOST_TIMERS_AT_ONCE: u64 = 20_000;

impl Process {
    /// A process in `slot`, the `life`-th one there.
    pub(crate) fn new(world: &Arc<World>, slot: usize, life: u32) -> Arc<Self> {
        let process = Arc::new(Self {
            name: format!("p{slot}.{life}"),
            slot,
            world: world.clone(),
            gate: Gate::default(),
            meter: Mutex::default(),
            crash_in_call: Mutex::default(),
            ids: AtomicU64::new(0),
            bus: Mutex::default(),
            ended: Notify::new(),
            started: false.into(),
            stopping: false.into(),
            graceful: false.into(),
        });
        world.add_process(&process);
        process
    }

    pub(crate) fn say(&self, what: fmt::Arguments<'_>) {
        self.world.say(&self.name, what);
    }

    pub(crate) fn bus(&self) -> Option<RelayBus<SimStore>> {
        lock(&self.bus).clone()
    }

    /// Forgets the bus, which its handlers reach through this process.
    pub(crate) fn forget_bus(&self) {
        drop(lock(&self.bus).take());
    }

    pub(crate) fn plans(&self) -> Vec<HandlerPlan> {
        let plan = &self.world.plan;
        plan.handlers.iter().filter(|handler| handler.on[self.slot]).cloned().collect()
    }

    /// Dies: nothing of it has an effect from now on.
    pub(crate) fn die(&self, how: fmt::Arguments<'_>) {
        if self.gate.is_dead() {
            return;
        }
        self.say(format_args!("CRASH {how}"));
        self.gate.kill();
        self.world.model(|model| model.died(&self.name));
        self.ended.notify_one();
    }

    /// Builds and starts the bus, as often as the store's faults make it necessary.
    pub(crate) async fn start(self: &Arc<Self>) {
        let plan = &self.world.plan;
        let options = DispatcherOptions::default()
            .concurrency(plan.concurrency)
            .batch_size(plan.batch)
            .poll_interval(millis(plan.poll))
            .lease(millis(plan.lease))
            .shutdown_timeout(millis(plan.shutdown))
            .completion_window(millis(plan.window))
            .run_length(plan.run_length);
        let ids = Arc::downgrade(self);
        let make_id = move || {
            let id = ids.upgrade().map(|process| format!("{}-{}", process.name, process.next_id()));
            EventId::new(id.unwrap_or_default()).expect("a short id")
        };
        let retry = RetryPolicy { initial_delay: millis(50), max_delay: millis(2000), ..RetryPolicy::default() };
        let mut builder = RelayBus::builder(SimStore::of(self))
            .source(self.name.clone())
            .seed(self.world.chance(|rng| rng.u64(..)))
            .clock(SimClock(self.clone()))
            .event_ids(make_id)
            .retry(retry)
            .observer(Arc::new(SimObserver(self.clone())))
            .dispatcher(options);
        for handler in self.plans() {
            builder = builder.subscribe(handlers::subscribe(self, &handler));
        }
        let bus = builder.build().expect("the options are valid");
        *lock(&self.bus) = Some(bus.clone());
        self.say(format_args!(
            "starts with {:?}",
            bus.handlers().iter().map(|info| info.id.to_string()).collect::<Vec<_>>()
        ));
        while let Err(error) = bus.start().await {
            self.say(format_args!("cannot start ({})", error.code()));
            self.clock_sleep(millis(100)).await;
        }
        self.started.store(true, Ordering::SeqCst);
        self.say(format_args!("runs"));
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }

    /// Whether nobody is stopping it yet.
    pub(crate) fn begin_stop(&self) -> bool {
        !self.stopping.swap(true, Ordering::SeqCst)
    }

    /// Publishes what this slot has to publish, once in its lives.
    pub(crate) fn publish(self: &Arc<Self>, writer: usize) {
        drop(tokio::spawn(publisher::run(self.clone(), writer)));
    }

    /// Stops the bus in order and checks how that went.
    pub(crate) async fn stop(self: &Arc<Self>) {
        let Some(bus) = self.bus() else { return };
        self.gate.open().await;
        let (pauses, began) = (self.gate.pauses(), self.world.now());
        self.say(format_args!("stops"));
        let result = match bus.stop().await {
            Ok(result) => result,
            Err(error) => return self.world.violate("a bus stops", error.to_string(), vec![self.name.clone()]),
        };
        self.gate.open().await;
        let took = self.world.now().saturating_sub(began);
        self.say(format_args!("stopped after {took:?}: {result:?}"));
        let calm = self.gate.pauses() == pauses;
        if calm && took > millis(self.world.plan.shutdown) + millis(20) {
            self.world.violate("a stop ends in time", format!("{took:?}, {result:?}"), vec![self.name.clone()]);
        }
        self.check_stopped(result);
        self.graceful.store(result.graceful, Ordering::SeqCst);
        // What is left of it is nothing that may have an effect.
        self.gate.kill();
        self.world.model(|model| model.died(&self.name));
        self.forget_bus();
        self.ended.notify_one();
    }

    /// Publishes one event of each type.
    pub(crate) async fn publish_probe(&self) {
        let Some(bus) = self.bus() else { return };
        self.say(format_args!("publishes a probe"));
        for result in [
            bus.publish_detached(handlers::Alpha { number: 1 }).await,
            bus.publish_detached(handlers::Beta { number: 1 }).await,
        ] {
            drop(result);
        }
    }

    /// Whether it ended by a stop that gave nothing up, and was never paused.
    pub(crate) fn stopped_in_order(&self) -> bool {
        self.graceful.load(Ordering::SeqCst) && self.gate.pauses() == 0
    }

    fn check_stopped(&self, result: StopResult) {
        let running = self.world.model(|model| model.is_running_anything(&self.name));
        if running && !result.graceful && result.abandoned_deliveries == 0 && self.gate.pauses() == 0 {
            let text = format!("{} gave up a running handler and does not say so: {result:?}", self.name);
            self.world.violate("a stop says what it abandoned", text, vec![self.name.clone()]);
        }
        if running && result.graceful {
            let text = format!("{} stopped in order and still runs a handler", self.name);
            self.world.violate("a stop leaves nothing running", text, vec![self.name.clone()]);
        }
    }

    /// An operator at this process requeues what is dead.
    pub(crate) async fn requeue(&self) {
        let Some(bus) = self.bus() else { return };
        let query = DeliveryQuery::all().status(DeliveryStatus::Dead);
        let Ok(page) = bus.list_deliveries(&query).await else { return };
        let ids: Vec<_> = page.deliveries.into_iter().map(|delivery| delivery.id).collect();
        drop(bus.requeue(&ids).await);
    }

    pub(crate) async fn clock_sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        self.gate.open().await;
    }

    pub(crate) fn crash_after(&self, calls: u64, after: bool) {
        *lock(&self.crash_in_call) = Some((calls, after));
    }
}

/// The clock of a process: a timer that ends in a pause fires after it.
pub(crate) struct SimClock(Arc<Process>);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.0.world.clock.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.world.clock.monotonic()
    }

    fn sleep(&self, duration: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        let process = self.0.clone();
        process.count_timer();
        let timer = tokio::time::sleep(duration);
        Box::pin(async move {
            timer.await;
            process.gate.open().await;
        })
    }
}

impl Process {
    fn count_timer(&self) {
        let now = self.world.now().as_millis();
        let timers = {
            let mut meter = lock(&self.meter);
            if meter.timers_at != now {
                (meter.timers_at, meter.timers) = (now, 0);
            }
            meter.timers += 1;
            meter.timers
        };
        if timers > MOST_TIMERS_AT_ONCE {
            let text = format!("{} set {timers} timers within a millisecond", self.name);
            self.world.violate("no busy loop", text, vec![self.name.clone()]);
            self.gate.kill();
        }
    }
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
