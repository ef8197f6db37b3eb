//! The crate `riverqueue` beside relaybus.

#[path = "../../peer.rs"]
mod peer;

use std::time::Duration;

use peer::{Done, Failure, Payload, Wanted};
use riverqueue::migrate::PostgresMigrator;
use riverqueue::sqlx::postgres::PgPoolOptions;
use riverqueue::{
    Client, EventKind, EventRecvError, InsertOpts, Job, JobArgs, QueueConfig, SubscribeConfig, WorkContext,
    WorkOutcome, Workers,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, JobArgs, Serialize)]
#[river(kind = "noop")]
struct Noop {
    number: usize,
    note: String,
}

async fn noop(_: WorkContext, _: Job<Noop>) -> Result<WorkOutcome, Failure> {
    Ok(WorkOutcome::Complete)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let wanted = Wanted::read()?;
    let pool = PgPoolOptions::new().max_connections(10).connect(&wanted.url).await?;
    PostgresMigrator::new(pool.clone()).migrate_up().await?;
    let mut workers = Workers::new();
    workers.add_fn(noop)?;
    let builder = Client::builder(pool).workers(workers);
    // The tuned settings are those of River's own benchmark.
    let client = if wanted.tuned {
        let queue = QueueConfig::new(2_000).with_fetch_poll_interval(Duration::from_millis(20));
        builder.fetch_cooldown(Duration::from_millis(2)).queue("default", queue).build()?
    } else {
        builder.queue("default", QueueConfig::new(100)).build()?
    };
    let done = Done::default();
    let insert = |batch: Vec<Payload>| {
        let client = client.clone();
        async move {
            let jobs =
                batch.into_iter().map(|job| (Noop { number: job.number, note: job.note }, InsertOpts::default()));
            client.insert_many(jobs).await?;
            Ok(())
        }
    };
    if !wanted.works {
        wanted.insert_all(&done, insert).await?;
    }
    let capacity = std::num::NonZeroUsize::new(100_000).ok_or("no room for events")?;
    let mut events =
        client.subscribe_config(SubscribeConfig::new([EventKind::JobCompleted])?.with_buffer_capacity(capacity))?;
    let seen = done.clone();
    let watch = wanted.rendezvous()?;
    let mut run = client.start()?;
    let counting = tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(_) => seen.add(1),
                Err(EventRecvError::Lagged(count)) => seen.add(usize::try_from(count).unwrap_or(0)),
                Err(_) => break,
            }
        }
    });
    if wanted.works {
        wanted.insert_all(&done, insert).await?;
    }
    done.reached(wanted.jobs).await;
    watch.answer(wanted.jobs)?;
    counting.abort();
    run.stop().await?;
    Ok(())
}
