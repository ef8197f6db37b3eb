//! apalis with its PostgreSQL storage beside relaybus.

#[path = "../../peer.rs"]
mod peer;

use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use peer::{Done, Failure, Payload, Wanted};
use sqlx::postgres::PgPoolOptions;

const QUEUE: &str = "noop";

async fn noop(_: Payload) -> Result<(), BoxDynError> {
    Ok(())
}

/// Waits until every job is stored as done, and counts on the way.
async fn count(pool: PgPool, done: Done) -> Result<(), sqlx::Error> {
    loop {
        let now: i64 =
            sqlx::query_scalar("SELECT count(*) FROM apalis.jobs WHERE status = 'Done'").fetch_one(&pool).await?;
        done.add(usize::try_from(now).unwrap_or(0).saturating_sub(done.count()));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let wanted = Wanted::read()?;
    let pool = PgPoolOptions::new().max_connections(10).connect(&wanted.url).await?;
    PostgresStorage::setup(&pool).await?;
    let done = Done::default();
    let insert = |batch: Vec<Payload>| {
        let pool = pool.clone();
        async move {
            let tasks: Result<Vec<_>, serde_json::Error> =
                batch.iter().map(|job| Ok(TaskBuilder::new(serde_json::to_vec(job)?).build())).collect();
            let mut connection = pool.acquire().await?;
            apalis_postgres::queries::push_tasks(&mut *connection, QUEUE, tasks?).await?;
            Ok(())
        }
    };
    if !wanted.works {
        wanted.insert_all(&done, insert).await?;
    }
    let config = Config::default().queue(QUEUE);
    // Of what there is to set: larger batches, and tasks that are not locked one by one once more.
    let config = if wanted.tuned { config.batch_size(500).lock_tasks(false) } else { config };
    let backend = PostgresStorage::<Payload>::new(&pool).with_config(config).with_pubsub();
    let watch = wanted.rendezvous()?;
    let counting = tokio::spawn(count(pool.clone(), done.clone()));
    let worker = WorkerBuilder::new("noop").backend(backend).parallelize(tokio::spawn).build(noop);
    let inserted = async {
        if wanted.works {
            wanted.insert_all(&done, insert).await?;
        }
        done.reached(wanted.jobs).await;
        Ok::<(), Failure>(())
    };
    tokio::select! {
        ended = worker.run() => return Err(format!("the worker ended: {ended:?}").into()),
        finished = inserted => finished?,
    }
    watch.answer(wanted.jobs)?;
    counting.abort();
    Ok(())
}
