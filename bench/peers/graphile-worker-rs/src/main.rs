//! The crate `graphile_worker` beside relaybus.

#[path = "../../peer.rs"]
mod peer;

use std::sync::Arc;
use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobComplete, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext,
    WorkerOptions,
};
use peer::{Done, Failure, Payload, Wanted};

impl TaskHandler for Payload {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let wanted = Wanted::read()?;
    let done = Done::default();
    let seen = done.clone();
    let options = WorkerOptions::default().database_url(&wanted.url).define_job::<Payload>().on(JobComplete, move |_| {
        seen.add(1);
        std::future::ready(())
    });
    // The tuned settings are those of the crate's own performance test.
    let options = if wanted.tuned {
        options
            .concurrency(500)
            .poll_interval(Duration::from_millis(5))
            .complete_job_batch_delay(Duration::from_millis(5))
            .local_queue(LocalQueueConfig::default().with_size(5_000))
    } else {
        options
    };
    let worker = Arc::new(options.init().await?);
    let utils = worker.create_utils();
    let insert = |batch: Vec<Payload>| {
        let utils = &utils;
        async move {
            let jobs: Result<Vec<RawJobSpec>, serde_json::Error> = batch
                .iter()
                .map(|job| {
                    let payload = serde_json::to_value(job)?;
                    Ok(RawJobSpec { identifier: "noop".to_owned(), payload, spec: JobSpec::default() })
                })
                .collect();
            utils.add_raw_jobs(&jobs?).await?;
            Ok(())
        }
    };
    if !wanted.works {
        wanted.insert_all(&done, insert).await?;
    }
    let watch = wanted.rendezvous()?;
    let running = worker.clone();
    let running = tokio::spawn(async move { running.run().await });
    if wanted.works {
        wanted.insert_all(&done, insert).await?;
    }
    done.reached(wanted.jobs).await;
    watch.answer(wanted.jobs)?;
    worker.request_shutdown();
    running.await??;
    Ok(())
}
