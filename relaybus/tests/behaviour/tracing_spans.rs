//! The tracer: publish spans stored with the event, send spans on the wire only, process spans around each poll.

use std::cell::RefCell;
use std::sync::Arc;

use relaybus::{
    Envelope, Error, EventType, HandlerContext, HandlerId, MemoryStore, RelayBus, Route, Subscribe, TraceContext,
    TraceSpan, Tracer, trace_context_of,
};

use crate::kit::{Broker, Fault, Note, Placed, Probe, Seen, builder, limited, memory, ms, note, pass, placed, soon};

thread_local! {
    static CURRENT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn current() -> String {
    CURRENT.with_borrow(|spans| spans.join(" > "))
}

/// Numbers its spans; the number is the last digit of the parent id that it writes.
#[derive(Clone, Default)]
struct Spans(Seen);

struct Span {
    spans: Seen,
    name: String,
    number: usize,
    finished: bool,
}

impl Spans {
    fn open(&self, name: String) -> Box<dyn TraceSpan> {
        self.0.push(format!("open {name}"));
        let number = self.0.all().iter().filter(|line| line.starts_with("open")).count();
        Box::new(Span { spans: self.0.clone(), name, number, finished: false })
    }
}

fn traceparent(number: usize) -> String {
    format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920{number:04}-01")
}

impl Tracer for Spans {
    fn publish(&self, event_types: &[EventType]) -> Box<dyn TraceSpan> {
        let types: Vec<&str> = event_types.iter().map(EventType::as_str).collect();
        self.open(format!("publish {}", types.join(",")))
    }

    fn send(&self, transport: &str, destination: &str, event: &Envelope) -> Box<dyn TraceSpan> {
        let parent = event.headers.get("traceparent").unwrap_or("none");
        self.open(format!("send {transport} {destination} from {}", &parent[parent.len().saturating_sub(5)..]))
    }

    fn process(&self, handler: &HandlerId, attempt: u32, event: &Envelope) -> Box<dyn TraceSpan> {
        self.open(format!("process {handler} {attempt} {}", event.event_type))
    }
}

impl TraceSpan for Span {
    fn headers(&self) -> Vec<(String, String)> {
        let state = ("tracestate".to_owned(), format!("span={}", self.number));
        vec![("traceparent".to_owned(), traceparent(self.number)), state]
    }

    fn in_scope(&self, poll: &mut dyn FnMut()) {
        CURRENT.with_borrow_mut(|spans| spans.push(self.name.clone()));
        poll();
        CURRENT.with_borrow_mut(|spans| spans.pop());
    }

    fn finish(mut self: Box<Self>, error: Option<&Error>) {
        self.finished = true;
        self.spans.push(format!("finish {} {}", self.name, error.map_or("ok", Error::code)));
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if !self.finished {
            self.spans.push(format!("cancel {}", self.name));
        }
    }
}

fn traced(broker: &Broker) -> (RelayBus<MemoryStore>, Seen) {
    let spans = Spans::default();
    let bus = memory()
        .tracer(Arc::new(spans.clone()))
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>())
        .build()
        .unwrap();
    (bus, spans.0)
}

#[tokio::test(start_paused = true)]
async fn the_publish_span_is_stored_and_the_send_span_goes_on_the_wire() {
    let broker = Broker::new("kafka");
    let (bus, spans) = traced(&broker);
    broker.refuse(Error::lifecycle("away"));
    bus.publish_detached(placed("a", 1)).header("tenant", "acme").await.unwrap();
    bus.drain().await.unwrap();
    pass(ms(1000)).await;
    bus.drain().await.unwrap();
    let sent = broker.sent().all().remove(0).1;
    assert_eq!(sent.headers.get("traceparent"), Some(traceparent(3).as_str()));
    assert_eq!((sent.headers.get("tracestate"), sent.headers.get("tenant")), (Some("span=3"), Some("acme")));
    assert_eq!(
        spans.all(),
        [
            "open publish order.placed.v1",
            "finish publish order.placed.v1 ok",
            "open send kafka orders from 01-01",
            "finish send kafka orders from 01-01 RELAYBUS_LIFECYCLE",
            "open send kafka orders from 01-01",
            "finish send kafka orders from 01-01 ok",
        ],
        "the stored event keeps the publish span's context"
    );
}

#[tokio::test(start_paused = true)]
async fn headers_of_the_caller_win() {
    let seen = Seen::<Option<TraceContext>>::default();
    let states = Seen::<Option<String>>::default();
    let (keep, keep_state) = (seen.clone(), states.clone());
    let bus = memory()
        .tracer(Arc::new(Spans::default()))
        .subscribe(Subscribe::to("notes", move |event: Envelope<Note>, _| {
            keep.push(trace_context_of(&event.headers));
            keep_state.push(event.headers.get("tracestate").map(str::to_owned));
            std::future::ready(())
        }))
        .build()
        .unwrap();
    bus.publish_detached(note("span's")).await.unwrap();
    bus.publish_detached(note("own")).header("traceparent", traceparent(77)).await.unwrap();
    bus.drain().await.unwrap();
    let contexts = seen.all();
    assert_eq!(contexts[0].as_ref().unwrap().parent_id, "b7ad6b7169200001");
    assert_eq!(contexts[1].as_ref().unwrap().parent_id, "b7ad6b7169200077");
    assert_eq!(states.all(), [Some("span=1".to_owned()), None], "its state belongs to its own parent");
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_polled_inside_its_process_span_a_new_one_each_attempt() {
    let spans = Spans::default();
    let (scopes, keep) = (Seen::<String>::default(), Seen::<String>::default());
    let inside = scopes.clone();
    drop(keep);
    let bus = memory()
        .retry(soon(3))
        .tracer(Arc::new(spans.clone()))
        .subscribe(Subscribe::to("notes", move |_: Envelope<Note>, context: HandlerContext| {
            let inside = inside.clone();
            async move {
                inside.push(current());
                pass(ms(1)).await;
                inside.push(current());
                if context.attempt() == 1 { Err("once") } else { Ok(()) }
            }
        }))
        .build()
        .unwrap();
    bus.start().await.unwrap();
    bus.publish_detached(note("a")).await.unwrap();
    scopes.until(4).await;
    bus.stop().await.unwrap();
    let (first, second) = ("process notes 1 note.v1", "process notes 2 note.v1");
    assert_eq!(scopes.all(), [first, first, second, second]);
    assert_eq!(
        spans.0.all()[2..],
        [
            format!("open {first}"),
            format!("finish {first} RELAYBUS_ERROR"),
            format!("open {second}"),
            format!("finish {second} ok"),
        ]
    );
    assert_eq!(current(), "");
}

#[tokio::test(start_paused = true)]
async fn a_span_ends_with_its_error_or_as_cancelled() {
    let spans = Spans::default();
    let store = Probe::new(MemoryStore::new());
    let bus = builder(store.clone()).tracer(Arc::new(spans.clone())).build().unwrap();
    store.once("append_alone", Fault::Fail);
    drop(bus.publish_detached(note("a")).await);
    drop(bus.publish_detached(note("a\0")).await);
    store.once("append_alone", Fault::Hang);
    tokio::select! {
        _ = bus.publish_detached(note("a")).into_future() => unreachable!(),
        () = pass(ms(1)) => {}
    }
    let finished: Vec<String> = spans.0.all().into_iter().filter(|line| !line.starts_with("open")).collect();
    assert_eq!(
        finished,
        [
            "finish publish note.v1 RELAYBUS_ERROR",
            "finish publish note.v1 RELAYBUS_EVENT_VALIDATION",
            "cancel publish note.v1"
        ]
    );
}

/// A tracer that panics wherever it is used.
struct Broken(&'static str);

impl Tracer for Broken {
    fn publish(&self, _: &[EventType]) -> Box<dyn TraceSpan> {
        Spans::default().open("publish".to_owned())
    }

    fn send(&self, _: &str, _: &str, _: &Envelope) -> Box<dyn TraceSpan> {
        panic!("{}", self.0)
    }

    fn process(&self, _: &HandlerId, _: u32, _: &Envelope) -> Box<dyn TraceSpan> {
        panic!("{}", self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_tracer_that_panics_costs_attempts_and_no_slot() {
    let broker = Broker::new("kafka");
    let bus = memory()
        .dispatcher(relaybus::DispatcherOptions::default().concurrency(1))
        .tracer(Arc::new(Broken("the tracer panicked")))
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>().retry(limited(1)))
        .subscribe(Subscribe::to("notes", |_: Envelope<Note>, _| async {}).retry(limited(1)))
        .build()
        .unwrap();
    for number in 0..3 {
        bus.publish_detached(note("a")).await.unwrap();
        bus.publish_detached(placed("a", number)).await.unwrap();
    }
    assert_eq!(bus.drain().await.unwrap(), 6);
    let records = crate::kit::deliveries(&bus).await;
    assert!(records.iter().all(|r| r.last_error.as_ref().unwrap().contains("the tracer panicked")), "{records:?}");
}
