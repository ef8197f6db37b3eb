//! Data comes back as it went in, and what another program broke stops nobody else.

use relaybus::store::{AppendBatch, AppendOutcome, DeliveryQuery, DeliveryStatus, TransactionOptions};
use relaybus::{EventId, EventStore, Headers};
use sqlx::Executor;

use crate::kit::{Fixture, Worker, at, claimed, event, fresh, fresh_id};

#[tokio::test]
async fn payload_headers_and_ids_come_back_byte_for_byte() {
    let fixture = Fixture::new().await;
    let payload = r#"{"z": 1.50, "a":1e3,  "n":12345678901234567890, "a":2,"t":"\u0041\/é😀"}"#;
    let headers = r#"{"b":"1",  "a":"\u0041"}"#;
    let ids = ["it's \"quoted\"\n", "fifteen-letters", "ABCDEF00-0000-0000-0000-000000000000", "é"];
    for id in ids {
        let mut new = event(EventId::new(id).unwrap(), Some("k'\"\n"), payload, at(0));
        new.envelope.headers = Headers::stored(headers.to_owned());
        new.envelope.causation_id = Some("cause #1".into());
        new.envelope.correlation_id = "".into();
        fixture.append(AppendBatch::new(vec![new], at(0))).await;
    }
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let turn = worker.turn(&[], 10, at(0)).await.unwrap();
    let deliveries = claimed(&turn.runs);
    assert_eq!(deliveries.len(), ids.len());
    for (delivery, id) in deliveries.iter().zip(ids) {
        let event = &delivery.event;
        assert_eq!(event.id.as_str(), id);
        assert_eq!((event.payload.as_str(), event.headers.as_json()), (payload, headers));
        assert_eq!((&*event.correlation_id, event.causation_id.as_deref()), ("", Some("cause #1")));
        assert_eq!((event.key.as_ref().unwrap().as_str(), &*event.source), ("k'\"\n", "tests"));
        assert_eq!(event.occurred_at, at(0));
    }
}

#[tokio::test]
async fn a_payload_of_20_megabytes_and_a_key_of_64_kib_work() {
    let fixture = Fixture::new().await;
    let payload = format!("\"{}\"", "p".repeat(20_000_000));
    let key = "k".repeat(64 * 1024);
    fixture.append(AppendBatch::new(vec![event(fresh_id(1), Some(&key), &payload, at(0))], at(0))).await;
    fixture.append(AppendBatch::new(vec![event(fresh_id(2), Some(&key), "{}", at(0))], at(0))).await;
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let turn = worker.turn(&[], 10, at(0)).await.unwrap();
    let deliveries = claimed(&turn.runs);
    assert_eq!(deliveries.len(), 2);
    assert!(deliveries[0].event.payload.as_str() == payload);
    assert_eq!(deliveries[1].event.key.as_ref().unwrap().as_str(), key);
}

#[tokio::test]
async fn a_run_of_large_payloads_is_cut() {
    let fixture = Fixture::new().await;
    let payload = format!("\"{}\"", "p".repeat(40_000));
    for n in 1..=50 {
        fixture.append(AppendBatch::new(vec![event(fresh_id(n), Some("k"), &payload, at(0))], at(0))).await;
    }
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let turn = worker.turn(&[], 10, at(0)).await.unwrap();
    let bytes: usize = claimed(&turn.runs).iter().map(|claimed| claimed.event.payload.as_str().len()).sum();
    assert!(bytes > 100_000 && bytes <= 1_100_000, "{bytes} bytes in {} deliveries", claimed(&turn.runs).len());
    assert_eq!(worker.drain(10, at(0)).await.len() + claimed(&turn.runs).len(), claimed(&turn.runs).len());
}

#[tokio::test]
async fn an_event_that_is_too_large_fails_before_the_first_statement() {
    let fixture = Fixture::new().await;
    let payload = "x".repeat(relaybus_stores::sqlite::MAX_EVENT_BYTES + 1);
    let mut batch = fresh(1, 2, |_| None, at(0));
    batch.events.push(event(fresh_id(9), None, &payload, at(0)));
    let mut transaction = fixture.store.begin(&TransactionOptions::default()).await.unwrap();
    let error = fixture.store.append(&mut transaction, &batch).await.expect_err("too large");
    assert!(error.to_string().contains("store large data elsewhere"), "{error}");
    let appended = fixture.store.append(&mut transaction, &fresh(1, 2, |_| None, at(0))).await.unwrap();
    assert_eq!(appended.outcomes, [AppendOutcome::Stored { deliveries: 1 }; 2], "nothing was written before");
}

#[tokio::test]
async fn a_row_that_another_program_broke_is_buried_and_the_rest_goes_on() {
    let fixture = Fixture::new().await;
    fixture.append(fresh(1, 5, |n| (n > 3).then(|| "k".to_owned()), at(0))).await;
    let mut transaction = fixture.store.begin(&TransactionOptions::default()).await.unwrap();
    for statement in [
        "UPDATE relaybus_events SET payload = CAST(x'22ff22' AS TEXT) WHERE seq = 2",
        "UPDATE relaybus_events SET id = x'0102' WHERE seq = 4",
    ] {
        transaction.execute(statement).await.unwrap();
    }
    relaybus::store::StoreTransaction::commit(transaction).await.unwrap();
    let mut worker = Worker::new(&fixture.store, at(0)).await;
    let done = worker.drain(10, at(1)).await;
    let mut right: Vec<String> = [1, 3, 5].map(|n| fresh_id(n).to_string()).into();
    right.sort();
    let mut sorted = done.clone();
    sorted.sort();
    assert_eq!(sorted, right);
    let statistics = fixture.store.statistics(at(1)).await.unwrap();
    assert_eq!((statistics.dead, statistics.pending, statistics.processing), (2, 0, 0));
    let mut transaction = fixture.store.begin(&TransactionOptions::default()).await.unwrap();
    transaction.execute("UPDATE relaybus_events SET id = x'00010203040506070809' WHERE seq = 4").await.unwrap();
    relaybus::store::StoreTransaction::commit(transaction).await.unwrap();
    let query = DeliveryQuery::all().status(DeliveryStatus::Dead);
    let page = fixture.store.list_deliveries(&query, at(1)).await.unwrap();
    let dead = &page.deliveries[0];
    assert!(dead.last_error.as_ref().unwrap().contains("RELAYBUS_INVALID_ENVELOPE"), "{dead:?}");
    assert_eq!(dead.attempts, 0);
}
