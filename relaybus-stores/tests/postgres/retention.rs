//! What a purge goes by: completions that are recorded, and those that need not be.

use relaybus::EventStore;
use relaybus::store::{PurgeRequest, Settled};
use sqlx::AssertSqlSafe;

use crate::kit::{Schema, Worker, at, connect, named};

/// F14 (d): what a writer leaves unrecorded, because it is soon after its event, never makes an event look completed before it was:
/// a purge assumes a later time, and the difference is more than a slow statement and wrong clocks take.
#[tokio::test]
async fn f14_an_unrecorded_completion_is_not_forgotten_early() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let mut worker = Worker::new(&store, &["h"], at(0)).await;
    let recorded = format!("SELECT count(*) FROM {}.relaybus_event_completions", schema.name);
    for (id, age, records) in [("early", 2_999, 0), ("late", 3_001, 1)] {
        store.append_alone(&named(&[id], None, at(0))).await.unwrap();
        let claimed = worker.claim(1, at(1)).await;
        assert_eq!(worker.complete(&claimed[0], at(age)).await, Settled::Applied);
        let count = sqlx::query_scalar(AssertSqlSafe(recorded.clone()));
        let count: i64 = count.fetch_one(&mut connect().await).await.unwrap();
        assert_eq!(count, records, "{id}");
    }
    let purge = async |before: i64| {
        let mut request = PurgeRequest::new(100);
        request.completed_before = Some(at(before));
        store.purge(&request).await.unwrap().events
    };
    // Ten minutes after the one that nobody recorded, it is still there; the one that was recorded counts exactly.
    assert_eq!(purge(3_000).await, 0);
    assert_eq!(purge(3_599).await, 1, "the one whose completion is known");
    assert_eq!(purge(3_601).await, 1);
    store.close().await.unwrap();
}
