//! Middleware: `tower` layers around every local handler.

use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use relaybus::memory::MemoryTransaction;
use relaybus::store::DeliveryStatus;
use relaybus::{BoxError, Envelope, Error, HandlerCall, HandlerContext, Route, Subscribe};
use tower::{Layer, Service};

use crate::kit::{Broker, Note, Placed, Seen, Shipped, deliveries, limited, memory, note, pass, placed, secs, shipped};

/// What a layer does with a call.
#[derive(Clone, Copy)]
enum Does {
    Passes,
    Rejects,
    Swallows,
    Skips,
    Cuts(Duration),
    Panics,
}

#[derive(Clone)]
struct Named(&'static str, Does, Seen);

#[derive(Clone)]
struct NamedService<S>(Named, S);

impl<S> Layer<S> for Named {
    type Service = NamedService<S>;

    fn layer(&self, inner: S) -> NamedService<S> {
        NamedService(self.clone(), inner)
    }
}

impl<S> Service<HandlerCall> for NamedService<S>
where
    S: Service<HandlerCall, Response = (), Error = Error>,
    S::Future: Send + 'static,
{
    type Response = ();
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<(), BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.1.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, call: HandlerCall) -> Self::Future {
        let Named(name, does, seen) = self.0.clone();
        let text = format!("{name} {} {} {}", call.context.handler(), call.context.attempt(), call.event.event_type);
        seen.push(format!("{text} in"));
        let inner = self.1.call(call);
        Box::pin(async move {
            let result = match does {
                Does::Passes => inner.await.map_err(BoxError::from),
                Does::Rejects => Err(Error::non_retryable("not on my watch").into()),
                Does::Swallows => inner.await.or(Ok(())),
                Does::Skips => Ok(()),
                Does::Cuts(after) => tokio::select! {
                    result = inner => result.map_err(BoxError::from),
                    () = pass(after) => Err("cut short".into()),
                },
                Does::Panics => panic!("the layer panicked"),
            };
            seen.push(format!("{text} out {}", if result.is_ok() { "ok" } else { "failed" }));
            result
        })
    }
}

fn keeping(seen: &Seen) -> Subscribe {
    let seen = seen.clone();
    Subscribe::to("notes", move |event: Envelope<Note>, _| seen.handled(event.payload.text))
}

#[tokio::test(start_paused = true)]
async fn the_layer_added_last_is_the_outermost_and_routes_have_none() {
    let (seen, broker) = (Seen::default(), Broker::new("kafka"));
    let bus = memory()
        .layer(Named("inner", Does::Passes, seen.clone()))
        .layer(Named("outer", Does::Passes, seen.clone()))
        .transport(broker.shared())
        .route(Route::to("kafka", "orders").event::<Placed>())
        .subscribe(keeping(&seen))
        .build()
        .unwrap();
    bus.publish_detached(note("the handler")).await.unwrap();
    bus.publish_detached(placed("a", 1)).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 2);
    assert_eq!(
        seen.all(),
        [
            "outer notes 1 note.v1 in",
            "inner notes 1 note.v1 in",
            "the handler",
            "inner notes 1 note.v1 out ok",
            "outer notes 1 note.v1 out ok",
        ]
    );
    assert_eq!(broker.sent().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_the_outermost_layer_counts() {
    for (does, handled, left) in [
        (Does::Rejects, false, Some((DeliveryStatus::Dead, "not on my watch"))),
        (Does::Skips, false, None),
        (Does::Swallows, true, None),
        (Does::Panics, false, Some((DeliveryStatus::Pending, "the layer panicked"))),
    ] {
        let (seen, log) = (Seen::default(), Seen::default());
        let bus = memory().layer(Named("layer", does, log)).subscribe(keeping(&seen)).build().unwrap();
        bus.publish_detached(note("a")).await.unwrap();
        bus.run_once().await.unwrap();
        assert_eq!(seen.count(), usize::from(handled));
        let record = deliveries(&bus).await.pop();
        match left {
            None => assert!(record.is_none()),
            Some((status, error)) => {
                let record = record.unwrap();
                assert_eq!((record.status, record.attempts), (status, 1));
                assert!(record.last_error.unwrap().contains(error));
            }
        }
    }
}

/// A transactional handler that writes its number; the number 0 fails, and 9 never ends.
fn writing(rows: &Seen) -> Subscribe {
    let rows = rows.clone();
    Subscribe::transactional::<Placed, _>("writing", move |event, tx, _: &HandlerContext| {
        let rows = rows.clone();
        Box::pin(async move {
            let number = event.payload.number;
            let tx: &mut MemoryTransaction = tx.downcast_mut().unwrap();
            tx.on_commit(move || rows.push(number.to_string()));
            match number {
                0 => Err(Error::lifecycle("failed")),
                9 => std::future::pending().await,
                _ => Ok(()),
            }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn layers_go_around_transactional_handlers_too() {
    for (does, number, rows_written, left) in [
        (Does::Passes, 1, 1, None),
        (Does::Passes, 0, 0, Some("failed")),
        (Does::Rejects, 1, 0, Some("not on my watch")),
        (Does::Skips, 1, 0, None),
        (Does::Cuts(secs(1)), 9, 0, Some("cut short")),
        (Does::Panics, 1, 0, Some("the layer panicked")),
    ] {
        let (rows, log) = (Seen::default(), Seen::default());
        let bus =
            memory().layer(Named("layer", does, log)).subscribe(writing(&rows).retry(limited(1))).build().unwrap();
        bus.publish_detached(placed("a", number)).await.unwrap();
        bus.drain().await.unwrap();
        let records = deliveries(&bus).await;
        assert_eq!(rows.count(), rows_written, "{records:?}");
        assert_eq!(records.len(), usize::from(left.is_some()), "{records:?}");
        if let Some(error) = left {
            assert!(records[0].last_error.as_ref().unwrap().contains(error), "{records:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_make_do_with_a_payload_that_does_not_decode() {
    let (rows, log) = (Seen::default(), Seen::default());
    let bus = memory().layer(Named("layer", Does::Swallows, log)).subscribe(writing(&rows)).build().unwrap();
    #[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
    #[event("order.placed.v1")]
    struct Other {}
    bus.publish_detached(Other {}).await.unwrap();
    assert_eq!(bus.drain().await.unwrap(), 1);
    assert!(deliveries(&bus).await.is_empty(), "the layer said that all is well");
    assert_eq!(rows.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_handlers_timeout_holds_around_the_layers() {
    let (seen, log) = (Seen::default(), Seen::default());
    let bus = memory()
        .layer(Named("layer", Does::Cuts(secs(60)), log))
        .subscribe(keeping(&seen))
        .subscribe(
            Subscribe::to("shipments", |_: Envelope<Shipped>, _| std::future::pending::<()>())
                .timeout(secs(2))
                .retry(limited(1)),
        )
        .build()
        .unwrap();
    bus.publish_detached(shipped("a")).await.unwrap();
    bus.drain().await.unwrap();
    assert!(deliveries(&bus).await[0].last_error.as_ref().unwrap().contains("RELAYBUS_HANDLER_TIMEOUT"));
}
