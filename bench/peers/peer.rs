//! What the peers in Rust share: how they are started, the word that they wait for, and their answer.
//!
//! A peer is started as `<program> <url> drain|work tuned|default <jobs>`. It prints `ready` when the jobs are there, waits
//! for a line, and answers with one line of JSON.

use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Jobs that one call inserts.
const INSERT_BATCH: usize = 5_000;
/// Jobs that wait at most while jobs are inserted and worked at once.
const BACKLOG: usize = 20_000;

/// What a job carries, as long as on the other sides of the comparison.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Payload {
    pub number: usize,
    pub note: String,
}

impl Payload {
    fn new(number: usize) -> Self {
        let note = "a hundred and sixty bytes of payload, as the other sides of the comparison have it, give or take a few that name the fields of this text";
        Self { number, note: note.to_owned() }
    }
}

/// How a peer was started.
pub struct Wanted {
    pub url: String,
    /// Jobs are inserted while others are worked.
    pub works: bool,
    pub tuned: bool,
    pub jobs: usize,
}

impl Wanted {
    pub fn read() -> Result<Self, Failure> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [url, mode, settings, jobs] = arguments.as_slice() else {
            return Err("usage: <program> <url> drain|work tuned|default <jobs>".into());
        };
        Ok(Self { url: url.clone(), works: mode == "work", tuned: settings == "tuned", jobs: jobs.parse()? })
    }

    /// Inserts all jobs by `insert`, each batch once there is room for it.
    pub async fn insert_all<F: Future<Output = Result<(), Failure>>>(
        &self,
        done: &Done,
        insert: impl Fn(Vec<Payload>) -> F,
    ) -> Result<(), Failure> {
        for first in (0..self.jobs).step_by(INSERT_BATCH) {
            while self.works && first >= done.count() + BACKLOG {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            insert((first..self.jobs.min(first + INSERT_BATCH)).map(Payload::new).collect()).await?;
        }
        Ok(())
    }

    /// Says that the peer is ready, and waits for the word.
    pub fn rendezvous(&self) -> Result<Watch, Failure> {
        println!("ready");
        std::io::stdin().lock().read_line(&mut String::new())?;
        Ok(Watch { began: Instant::now(), cpu: cpu_seconds() })
    }
}

/// Jobs that are done.
#[derive(Clone, Debug, Default)]
pub struct Done(Arc<AtomicUsize>);

impl Done {
    pub fn add(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub async fn reached(&self, count: usize) {
        while self.count() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Measures since the word.
pub struct Watch {
    began: Instant,
    cpu: f64,
}

#[derive(Serialize)]
struct Answer {
    jobs: usize,
    seconds: f64,
    cpu_seconds: f64,
}

impl Watch {
    pub fn answer(self, jobs: usize) -> Result<(), Failure> {
        let seconds = self.began.elapsed().as_secs_f64();
        let answer = Answer { jobs, seconds, cpu_seconds: cpu_seconds() - self.cpu };
        println!("{}", serde_json::to_string(&answer)?);
        Ok(())
    }
}

/// Processor time of the living threads.
fn cpu_seconds() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let times = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    times.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e9
}
