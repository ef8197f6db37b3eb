//! Handlers of catalogs: the trait, its `dyn` and transactional forms, and consumers of the whole enum.

use relaybus::catalog::CatalogOptions;
use relaybus::memory::MemoryTransaction;
use relaybus::registry::Order;
use relaybus::store::HandleOf as _;
use relaybus::{
    AnyTransaction, HandlerContext, HandlerResult, RetryOverrides, State, catalog, consumer, consumers, handlers,
};

use super::*;

struct Shipping {
    seen: Seen,
}

impl OrderEventsHandlers for Shipping {
    async fn on_order_placed(&self, event: &Envelope<OrderPlaced>, context: &HandlerContext) -> HandlerResult {
        self.seen.push(format!("{} {} {}", context.handler(), event.payload.order_id, event.payload.number));
        Ok(())
    }
    async fn on_order_cancelled(&self, event: &Envelope<OrderCancelled>, _: &HandlerContext) -> HandlerResult {
        self.seen.push(format!("cancelled {}", event.payload.order_id));
        Err("too late".into())
    }
    async fn on_order_shipped(&self, event: &Envelope<OrderShipped>, _: &HandlerContext) -> HandlerResult {
        self.seen.push(format!("shipped {}", event.payload.order_id));
        Err(Error::non_retryable("lost"))?;
        Ok(())
    }
}

fn ids<S: EventStore>(bus: &RelayBus<S>) -> Vec<(String, String)> {
    bus.handlers().iter().map(|handler| (handler.id.to_string(), handler.event_type.to_string())).collect()
}

#[tokio::test]
async fn a_trait_implementation_is_one_handler_an_event() {
    let seen = Seen::default();
    let shipping = Arc::new(Shipping { seen: seen.clone() });
    let options = CatalogOptions::new()
        .retry(RetryOverrides { attempts: Some(relaybus::Attempts::Limited(1)), ..RetryOverrides::NONE });
    let bus = builder()
        .subscribe_catalog::<OrderEvents, _>(shipping, options)
        .catalog(catalog::<OrderEvents>())
        .build()
        .unwrap();
    let expected = [
        ("OrderEvents.on_order_cancelled", "order.cancelled.v1"),
        ("OrderEvents.on_order_placed", "order.placed.v1"),
        ("OrderEvents.on_order_shipped", "order.shipped.v1"),
    ];
    assert_eq!(ids(&bus), expected.map(|(id, event)| (id.to_owned(), event.to_owned())));
    let orders = bus.for_catalog::<OrderEvents>();
    orders.publish_detached(OrderPlaced::new("a", 1)).await.unwrap();
    bus.drain().await.unwrap();
    orders.publish_detached(OrderCancelled::new("a", 2)).await.unwrap();
    bus.drain().await.unwrap();
    orders.publish_detached(OrderShipped::new("b", 3)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), ["OrderEvents.on_order_placed a 1", "cancelled a", "shipped b"]);
    let dead = bus.list_deliveries(&relaybus::store::DeliveryQuery::default()).await.unwrap();
    let errors: Vec<_> = dead.deliveries.iter().filter_map(|delivery| delivery.last_error.clone()).collect();
    assert!(errors.iter().any(|error| error.contains("too late")), "{errors:?}");
    assert!(
        errors.iter().any(|error| error.contains("RELAYBUS_NON_RETRYABLE")),
        "an error of ours keeps its code: {errors:?}"
    );
}

#[tokio::test]
async fn one_instance_serves_two_prefixes_and_is_provided() {
    let shipping = Arc::new(Shipping { seen: Seen::default() });
    let bus = builder()
        .subscribe_catalog::<OrderEvents, _>(shipping.clone(), CatalogOptions::new().prefix("first").concurrency(2))
        .subscribe_catalog::<OrderEvents, _>(shipping, CatalogOptions::new().prefix("second").order(Order::Replay))
        .build()
        .unwrap();
    let first = bus.handlers().into_iter().find(|handler| handler.id == "first.on_order_placed").unwrap();
    assert_eq!(first.concurrency, Some(2));
    assert_eq!(bus.handlers().len(), 6);
    let error = builder()
        .subscribe_catalog::<OrderEvents, _>(
            Arc::new(Shipping { seen: Seen::default() }),
            CatalogOptions::new().prefix("first"),
        )
        .subscribe_catalog::<OrderEvents, _>(
            Arc::new(Shipping { seen: Seen::default() }),
            CatalogOptions::new().prefix("second"),
        )
        .build()
        .unwrap_err();
    assert!(error.to_string().ends_with("Shipping` was provided twice: keep one"), "{error}");
    let error = builder()
        .subscribe_catalog::<OrderEvents, _>(
            Arc::new(Shipping { seen: Seen::default() }),
            CatalogOptions::new().concurrency(0),
        )
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("concurrency of handler `OrderEvents.on_order_cancelled` is 0"), "{error}");
}

#[tokio::test]
async fn a_dyn_handler_is_a_handler_again() {
    let seen = Seen::default();
    let shipping: Arc<dyn DynOrderEventsHandlers> = Arc::new(Shipping { seen: seen.clone() });
    let bus = builder().subscribe_catalog::<OrderEvents, _>(Arc::new(shipping), CatalogOptions::new()).build().unwrap();
    bus.publish_detached(OrderPlaced::new("a", 1)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), ["OrderEvents.on_order_placed a 1"]);
}

struct Ledger(Seen);

#[consumers(Fulfilment, prefix = "ledger", retry(attempts = 2), timeout = "1s", concurrency = 3)]
impl FulfilmentTxHandlers<MemoryTransaction> for Ledger {
    async fn on_order_placed(
        &self,
        event: &Envelope<OrderPlaced>,
        tx: &mut MemoryTransaction,
        context: &HandlerContext,
    ) -> HandlerResult {
        let _ = tx.handle();
        self.0.push(format!("{} in a transaction, attempt {}", event.payload.order_id, context.attempt()));
        Ok(())
    }
    async fn on_order_shipped(
        &self,
        _: &Envelope<OrderShipped>,
        _: &mut MemoryTransaction,
        _: &HandlerContext,
    ) -> HandlerResult {
        Ok(())
    }
}

#[tokio::test]
async fn transactional_handlers_of_a_part_of_a_catalog() {
    let seen = Seen::default();
    let bus = builder().handlers(handlers![Ledger]).provide(Ledger(seen.clone())).build().unwrap();
    let listed = bus.handlers();
    assert_eq!(
        listed.iter().map(|handler| handler.id.as_str()).collect::<Vec<_>>(),
        ["ledger.on_order_placed", "ledger.on_order_shipped"]
    );
    assert!(listed.iter().all(|handler| {
        handler.transactional
            && handler.retry.attempts == Some(2)
            && handler.concurrency == Some(3)
            && handler.timeout.is_some()
    }));
    bus.publish_detached(OrderPlaced::new("a", 1)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), ["a in a transaction, attempt 1"]);
    assert_eq!(bus.statistics().await.unwrap().dead, 0);
    let twin: Arc<dyn DynFulfilmentTxHandlers<MemoryTransaction>> = Arc::new(Ledger(seen.clone()));
    let bus = builder()
        .subscribe_catalog_in_transaction::<Fulfilment, _, MemoryTransaction>(Arc::new(twin), CatalogOptions::new())
        .build()
        .unwrap();
    bus.publish_detached(OrderPlaced::new("b", 1)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all().last().unwrap(), "b in a transaction, attempt 1");
}

struct AnyLedger;

#[consumers(UserEvents)]
impl UserEventsTxHandlers<AnyTransaction> for AnyLedger {
    async fn on_user_registered(
        &self,
        _: &Envelope<UserRegistered>,
        _: &mut AnyTransaction,
        _: &HandlerContext,
    ) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn the_default_prefix_is_the_name_of_the_type() {
    let store = relaybus::AnyStore::new(Arc::new(MemoryStore::new()));
    let bus = RelayBus::builder(store).handlers(handlers![AnyLedger]).provide(AnyLedger).build().unwrap();
    assert_eq!(ids(&bus), [("AnyLedger.on_user_registered".to_owned(), "user.registered.v1".to_owned())]);
}

#[test]
fn an_instance_that_nobody_provided_stops_the_bus() {
    let error = builder().handlers(handlers![Ledger]).build().unwrap_err().to_string();
    assert!(error.contains("handler `ledger.on_order_placed` is a method of `"), "{error}");
}

#[consumer(OrderEvents, id = "orders.project")]
async fn project(event: &Envelope<OrderEvents>, seen: State<Seen>) {
    // The compiler completes this match.
    let (what, number) = match &event.payload {
        OrderEvents::OrderPlaced(event) => ("placed", event.number),
        OrderEvents::OrderCancelled(event) => ("cancelled", event.number),
        OrderEvents::OrderShipped(event) => ("shipped", event.number),
    };
    // Whoever goes first without an order loses it here.
    tokio::task::yield_now().await;
    seen.push(format!("{} {what} {number}", event.key.as_ref().unwrap()));
}

#[tokio::test]
async fn a_consumer_of_the_enum_keeps_the_order_of_a_key_across_types() {
    let seen = Seen::default();
    let bus = builder()
        .handlers(handlers![project])
        .provide(seen.clone())
        .catalog(relaybus::consume::<OrderEvents>())
        .build()
        .unwrap();
    let id = || "orders.project".to_owned();
    assert_eq!(
        ids(&bus),
        ["order.placed.v1", "order.cancelled.v1", "order.shipped.v1"].map(|event| (id(), event.to_owned()))
    );
    let mut expected = Vec::new();
    let orders = bus.for_catalog::<OrderEvents>();
    for number in (0..60).step_by(3) {
        let events: [OrderEvents; 3] = [
            OrderPlaced::new("a", number).into(),
            OrderShipped::new("a", number + 1).into(),
            OrderCancelled::new("a", number + 2).into(),
        ];
        orders.publish_all_detached(events).await.unwrap();
        expected.push(format!("a placed {number}"));
        expected.push(format!("a shipped {}", number + 1));
        expected.push(format!("a cancelled {}", number + 2));
    }
    bus.start().await.unwrap();
    while seen.all().len() < expected.len() {
        tokio::task::yield_now().await;
    }
    bus.stop().await.unwrap();
    assert_eq!(seen.all(), expected);
}

/// Answers each order with another event, in its transaction, through the bus that it is told of.
struct Answers;

impl FulfilmentTxHandlers<AnyTransaction> for Answers {
    async fn on_order_placed(
        &self,
        event: &Envelope<OrderPlaced>,
        tx: &mut AnyTransaction,
        context: &HandlerContext,
    ) -> HandlerResult {
        let shipped = OrderShipped::new(&event.payload.order_id, event.payload.number);
        context.state::<RelayBus>()?.publish(tx, shipped).await?;
        Ok(())
    }
    async fn on_order_shipped(
        &self,
        event: &Envelope<OrderShipped>,
        _: &mut AnyTransaction,
        context: &HandlerContext,
    ) -> HandlerResult {
        context.state::<Seen>()?.push(format!("shipped {}", event.payload.order_id));
        Err(context.state::<String>().unwrap_err())?
    }
}

#[tokio::test]
async fn the_context_has_the_bus_and_what_was_provided() {
    let seen = Seen::default();
    let options = CatalogOptions::new()
        .retry(RetryOverrides { attempts: Some(relaybus::Attempts::Limited(1)), ..RetryOverrides::NONE });
    let bus = builder()
        .subscribe_catalog_in_transaction::<Fulfilment, _, AnyTransaction>(Arc::new(Answers), options)
        .provide(seen.clone())
        .build()
        .unwrap();
    bus.publish_detached(OrderPlaced::new("a", 1)).await.unwrap();
    bus.drain().await.unwrap();
    assert_eq!(seen.all(), ["shipped a"]);
    let failed = bus.list_deliveries(&relaybus::store::DeliveryQuery::default()).await.unwrap();
    let errors: Vec<_> = failed.deliveries.iter().filter_map(|delivery| delivery.last_error.clone()).collect();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("no value of type `alloc::string::String` was provided"), "{errors:?}");
}
