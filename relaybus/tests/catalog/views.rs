//! Views: a catalog's events and no others, in the transactions of the bus.

use super::*;

#[tokio::test]
async fn a_view_publishes_in_the_transaction_and_with_the_options_of_the_bus() {
    let seen = Seen::default();
    let keep = seen.clone();
    let bus = builder()
        .subscribe(relaybus::Subscribe::to("log", move |event: Envelope<OrderPlaced>, _| {
            keep.push(format!("{} {:?}", event.payload.number, event.key));
            async {}
        }))
        .build()
        .unwrap();
    let orders = bus.for_catalog::<OrderEvents>();
    let result = bus
        .transaction(async |tx| -> Result {
            orders.publish(tx, OrderPlaced::new("a", 1)).await?;
            Err(Error::non_retryable("rolled back"))
        })
        .await;
    assert!(result.is_err());
    bus.transaction(async |tx| -> Result {
        orders.publish(tx, OrderPlaced::new("a", 2)).key("b").await?;
        orders.publish_all(tx, vec![OrderPlaced::new("c", 3), OrderPlaced::new("c", 4)]).await?;
        orders.clone().only::<(OrderPlaced, OrderShipped)>().publish(tx, OrderPlaced::new("d", 5)).await?;
        orders.only::<Fulfilment>().publish_all(tx, [OrderPlaced::new("d", 6)]).await?;
        Ok(())
    })
    .await
    .unwrap();
    orders.only::<(OrderPlaced,)>().publish_detached(OrderPlaced::new("d", 7)).await.unwrap();
    bus.any().for_catalog::<OrderEvents>().publish_detached(OrderPlaced::new("d", 8)).await.unwrap();
    bus.for_catalog::<UserEvents>().publish_detached(UserRegistered::new("u", 9)).await.unwrap();
    bus.drain().await.unwrap();
    let mut all = seen.all();
    all.sort();
    assert_eq!(
        all.iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["2", "3", "4", "5", "6", "7", "8"]
    );
    assert!(all[0].contains('b'), "the explicit key wins: {all:?}");
}

#[tokio::test]
async fn a_view_of_some_events_publishes_all_of_them_in_one_batch() {
    let seen = Seen::default();
    let (placed, shipped) = (seen.clone(), seen.clone());
    let bus = builder()
        .subscribe(relaybus::Subscribe::to("placed", move |event: Envelope<OrderPlaced>, _| {
            placed.push(format!("placed {}", event.payload.number));
            async {}
        }))
        .subscribe(relaybus::Subscribe::to("shipped", move |event: Envelope<OrderShipped>, _| {
            shipped.push(format!("shipped {}", event.payload.number));
            async {}
        }))
        .build()
        .unwrap();
    let orders = bus.for_catalog::<OrderEvents>().only::<(OrderPlaced, OrderShipped)>();
    let mut batch = orders.batch().with(OrderPlaced::new("a", 1)).with(OrderShipped::new("a", 2));
    batch.push(&OrderPlaced::new("a", 3));
    assert_eq!((batch.len(), batch.is_empty(), orders.batch().is_empty()), (3, false, true));
    bus.transaction(async |tx| -> Result {
        orders.publish_batch(tx, batch).await?;
        Ok(())
    })
    .await
    .unwrap();
    let whole = bus.for_catalog::<OrderEvents>().only::<Fulfilment>();
    whole.publish_batch_detached(whole.batch().with(OrderShipped::new("a", 4))).await.unwrap();
    whole.publish_all_detached([OrderPlaced::new("a", 5)]).await.unwrap();
    bus.drain().await.unwrap();
    let mut all = seen.all();
    all.sort();
    assert_eq!(all, ["placed 1", "placed 3", "placed 5", "shipped 2", "shipped 4"]);
}
