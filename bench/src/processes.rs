//! Several processes on one SQLite file: whether they get equal shares, and how soon another one handles an event.
//!
//! The processes are this program again, started with a hidden argument; each waits for a line on its standard input, and
//! answers with one line of JSON.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use relaybus::{BoxError, DispatcherOptions, Envelope, Event, EventStore as _, RelayBus, Subscribe};
use relaybus_stores::SqliteStore;
use serde::{Deserialize, Serialize};

use crate::events::runtime;
use crate::figures::{Figure, Outcome};

/// The argument that makes this program one of the processes.
pub(crate) const PROCESS: &str = "--process";

#[derive(Event, Serialize, Deserialize)]
#[event("bench.ping.v1")]
struct Ping {
    number: u64,
}

/// What a writer answers.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    transactions: u64,
    longest_wait_ms: f64,
}

/// One of the processes: `<role> <path> <milliseconds>`.
pub(crate) fn process(arguments: &[String]) -> Result<(), BoxError> {
    #[cfg(feature = "postgres")]
    if let [role, url] = arguments {
        return crate::postgres::process(role, url);
    }
    let [role, path, millis] = arguments else { return Err("expected a role, a path and milliseconds".into()) };
    let time = Duration::from_millis(millis.parse()?);
    runtime()?.block_on(async {
        match role.as_str() {
            "publisher" => write(Path::new(path), time, Duration::ZERO).await,
            "holder" => write(Path::new(path), time, Duration::from_millis(1)).await,
            "listener" => listen(Path::new(path)).await,
            "reader" => read(),
            other => Err(format!("`{other}` is not a role").into()),
        }
    })
}

/// Says that it is ready, and waits for the word.
fn rendezvous() -> Result<(), BoxError> {
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

/// The same, while other tasks go on.
pub(crate) async fn rendezvous_async() -> Result<(), BoxError> {
    tokio::task::spawn_blocking(|| rendezvous().map_err(|error| error.to_string())).await??;
    Ok(())
}

/// Transactions back to back, each with one event and open for `hold`.
async fn write(path: &Path, time: Duration, hold: Duration) -> Result<(), BoxError> {
    let bus = RelayBus::builder(SqliteStore::open(path).await?).build()?;
    let (mut transactions, mut longest) = (0, Duration::ZERO);
    // The first one opens connections and prepares statements.
    for warm in [true, false] {
        if !warm {
            rendezvous()?;
        }
        let until = Instant::now() + if warm { Duration::ZERO } else { time };
        loop {
            let began = Instant::now();
            let mut transaction = bus.begin().await?;
            if !warm {
                longest = longest.max(began.elapsed());
            }
            let held = Instant::now();
            bus.publish(transaction.store_transaction(), Ping { number: transactions }).await?;
            // As a transaction that has something to compute: a sleep could take longer than it was asked to.
            while held.elapsed() < hold {
                std::hint::spin_loop();
            }
            transaction.commit().await?;
            transactions += u64::from(!warm);
            if Instant::now() >= until {
                break;
            }
        }
    }
    println!("{}", serde_json::to_string(&Written { transactions, longest_wait_ms: longest.as_secs_f64() * 1e3 })?);
    bus.store().close().await?;
    Ok(())
}

/// Handles events until it gets a line, then answers when it handled which.
async fn listen(path: &Path) -> Result<(), BoxError> {
    let handled: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
    let notes = handled.clone();
    let bus = RelayBus::builder(SqliteStore::open(path).await?)
        .subscribe(Subscribe::to("listen", move |event: Envelope<Ping>, _| {
            notes.lock().unwrap_or_else(PoisonError::into_inner).push((event.payload.number, now_micros()));
            std::future::ready(())
        }))
        .build()?;
    bus.start().await?;
    rendezvous_async().await?;
    bus.stop().await?;
    println!("{}", serde_json::to_string(&*handled.lock().unwrap_or_else(PoisonError::into_inner))?);
    Ok(())
}

/// Notes when each line of its standard input came, until one that is not a number.
fn read() -> Result<(), BoxError> {
    println!("ready");
    let mut came = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let Ok(number) = line?.parse::<u64>() else { break };
        came.push((number, now_micros()));
    }
    println!("{}", serde_json::to_string(&came)?);
    Ok(())
}

pub(crate) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A process that was started. It ends with its standard input at the latest.
pub(crate) struct Started {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Started {
    fn new(role: &str, path: &Path, time: Duration) -> Result<Self, BoxError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PROCESS, role]).arg(path).arg(time.as_millis().to_string());
        Self::of(command)
    }

    /// This program in another role.
    #[cfg(feature = "postgres")]
    pub(crate) fn with(role: &str, argument: &str) -> Result<Self, BoxError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PROCESS, role, argument]);
        Self::of(command)
    }

    /// Starts a program that says `ready` when it is.
    pub(crate) fn of(mut command: Command) -> Result<Self, BoxError> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("the process has no output")?);
        let mut started = Self { input: child.stdin.take(), child, output };
        if started.line()?.trim() != "ready" {
            return Err(format!("`{}` did not get ready", command.get_program().display()).into());
        }
        Ok(started)
    }

    fn line(&mut self) -> Result<String, BoxError> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    fn tell(&mut self, line: &str) -> Result<(), BoxError> {
        let input = self.input.as_mut().ok_or("the process has no input")?;
        input.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }

    /// Gives the word that it waits for.
    pub(crate) fn go(&mut self) -> Result<(), BoxError> {
        self.tell("go")
    }

    pub(crate) fn answer<T: serde::de::DeserializeOwned>(mut self) -> Result<T, BoxError> {
        let line = self.line()?;
        self.child.wait()?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Eight processes that write without a pause: the smallest share, the longest wait.
pub(crate) fn fairness(time: Duration) -> Outcome {
    let mut figures = Vec::new();
    for (role, what) in [("holder", "transactions of 1 ms"), ("publisher", "transactions with one event")] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("bench.db");
        runtime()?.block_on(async {
            let store = SqliteStore::open(&path).await?;
            store.setup().await?;
            store.close().await
        })?;
        let mut writers = (0..8).map(|_| Started::new(role, &path, time)).collect::<Result<Vec<_>, BoxError>>()?;
        for writer in &mut writers {
            writer.go()?;
        }
        let written = writers.into_iter().map(Started::answer).collect::<Result<Vec<Written>, BoxError>>()?;
        let total: u64 = written.iter().map(|written| written.transactions).sum();
        let least = written.iter().map(|written| written.transactions).min().unwrap_or(0);
        let longest = written.iter().map(|written| written.longest_wait_ms).fold(0.0, f64::max);
        let named = |figure: &str| format!("sqlite: 8 processes, {what}: {figure}");
        figures.push(Figure::rate(&named("all together"), total as f64 / time.as_secs_f64()));
        figures.push(Figure::ratio(&named("smallest share / mean"), least as f64 * 8.0 / total.max(1) as f64));
        figures.push(Figure { name: named("longest wait"), value: longest, unit: "ms" });
    }
    Ok(figures)
}

/// From before a commit in this process to the handler in another one: for events that come alone, and for events so close
/// that the dispatcher merges wake-ups (those within 5 ms of a claim wait for its end).
pub(crate) fn wake_up(events: u64) -> Outcome {
    let mut figures = wake_ups(events, Duration::from_millis(25), "25 to 50 ms apart")?;
    figures.extend(wake_ups(events, Duration::from_millis(4), "4 to 8 ms apart")?);
    Ok(figures)
}

fn wake_ups(events: u64, apart: Duration, what: &str) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bench.db");
    let runtime = runtime()?;
    let bus = runtime.block_on(async {
        let store = SqliteStore::open(&path).await?;
        store.setup().await?;
        RelayBus::builder(store)
            .subscribe(Subscribe::to("listen", |_: Envelope<Ping>, _| std::future::ready(())))
            .dispatcher(DispatcherOptions::default().enabled(false))
            .build()
    })?;
    let mut listener = Started::new("listener", &path, Duration::ZERO)?;
    let mut reader = Started::new("reader", &path, Duration::ZERO)?;
    let pause = |number: u64| apart.mul_f64(0.5 + (number * 7_919 % 1_000) as f64 / 2e3);
    let (committed, written) = runtime.block_on(async {
        let (mut committed, mut written) = (HashMap::new(), HashMap::new());
        for number in 0..events {
            tokio::time::sleep(pause(number)).await;
            let mut transaction = bus.begin().await?;
            bus.publish(transaction.store_transaction(), Ping { number }).await?;
            committed.insert(number, now_micros());
            transaction.commit().await?;
            tokio::time::sleep(pause(number)).await;
            written.insert(number, now_micros());
            reader.tell(&number.to_string())?;
        }
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        bus.store().close().await?;
        Ok::<_, BoxError>((committed, written))
    })?;
    listener.go()?;
    reader.go()?;
    let ours = waits(&committed, &listener.answer::<Vec<_>>()?)?;
    let raw = waits(&written, &reader.answer::<Vec<_>>()?)?;
    let figure = |name: &str, value| Figure { name: format!("sqlite: events {what}: {name}"), value, unit: "ms" };
    Ok(vec![
        figure("commit to handler in another process, half", share(&ours, 0.5)),
        figure("commit to handler in another process, 99 %", share(&ours, 0.99)),
        figure("a line through a pipe to another process, half", share(&raw, 0.5)),
        figure("a line through a pipe to another process, 99 %", share(&raw, 0.99)),
    ])
}

/// How long each took, in milliseconds, shortest first.
fn waits(sent: &HashMap<u64, u64>, came: &[(u64, u64)]) -> Result<Vec<f64>, BoxError> {
    if came.len() != sent.len() {
        return Err(format!("the other process got {} of {} events", came.len(), sent.len()).into());
    }
    let wait = |(number, at): &(u64, u64)| Some(at.saturating_sub(*sent.get(number)?) as f64 / 1e3);
    let mut waits: Vec<f64> = came.iter().filter_map(wait).collect();
    waits.sort_by(f64::total_cmp);
    Ok(waits)
}

/// The value below which a share of them lies.
pub(crate) fn share(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share) as usize).copied().unwrap_or_default()
}
