//! The processes of a run, from the parent's side.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::journal::{Journal, What};
use super::{Base, Settings};

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Worker,
    Publisher,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Publisher => "publisher",
        }
    }
}

/// What the parent did to a process last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Running,
    Stopped { until: Instant },
    Killed,
    Terminated { at: Instant },
    Gone { back_at: Instant },
}

/// A place that a process fills, and another one after it.
#[derive(Debug)]
struct Place {
    role: Role,
    slot: u32,
    process: u32,
    child: Option<Child>,
    mood: Mood,
}

/// All processes. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Fleet {
    settings: Settings,
    store: &'static str,
    folder: PathBuf,
    journal: Journal,
    places: Vec<Place>,
    started: u32,
    /// What a process did that it should not have done.
    pub(super) faults: Vec<String>,
    pub(super) counts: Counts,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) killed_workers: u32,
    pub(super) killed_publishers: u32,
    pub(super) stopped: u32,
    pub(super) terminated: u32,
    pub(super) aborted: u32,
    pub(super) restarted: u32,
}

/// A graceful stop may take this long.
const PATIENCE: Duration = Duration::from_secs(20);

impl Fleet {
    pub(super) fn new(settings: &Settings, folder: &Path, store: &'static str) -> std::io::Result<Self> {
        // A build during the run replaces the program.
        let program = folder.join("program");
        std::fs::copy(&settings.program, &program)?;
        Ok(Self {
            settings: Settings { program, ..settings.clone() },
            store,
            folder: folder.to_owned(),
            journal: Journal::open(&folder.join("journal"))?,
            places: Vec::new(),
            started: 0,
            faults: Vec::new(),
            counts: Counts::default(),
        })
    }

    pub(super) fn add(&mut self, role: Role, slot: u32) -> std::io::Result<()> {
        let mood = Mood::Gone { back_at: Instant::now() };
        self.places.push(Place { role, slot, process: 0, child: None, mood });
        let index = self.places.len() - 1;
        self.start(index)
    }

    fn start(&mut self, index: usize) -> std::io::Result<()> {
        self.started += 1;
        let place = &mut self.places[index];
        place.process = self.started;
        let (role, slot) = (place.role, place.slot);
        self.journal.enter(place.process, &What::Spawned { role: role.name().to_owned(), slot });
        let child = Command::new(&self.settings.program)
            .args([self.store, role.name()])
            .arg(&self.folder)
            .args([slot.to_string(), place.process.to_string(), self.settings.seed.to_string()])
            .stdin(Stdio::piped())
            .stderr(File::create(errors_of(&self.folder, place.process))?)
            .spawn()?;
        place.child = Some(child);
        place.mood = Mood::Running;
        Ok(())
    }

    /// Places of a role whose process runs unharmed.
    pub(super) fn running(&self, role: Role) -> Vec<usize> {
        let runs = |place: &Place| place.role == role && place.mood == Mood::Running;
        (0..self.places.len()).filter(|&index| runs(&self.places[index])).collect()
    }

    /// Whether each process of a role has ended.
    pub(super) fn all_gone(&self, role: Role) -> bool {
        self.places.iter().filter(|place| place.role == role).all(|place| matches!(place.mood, Mood::Gone { .. }))
    }

    pub(super) fn kill(&mut self, index: usize) {
        match self.places[index].role {
            Role::Worker => self.counts.killed_workers += 1,
            Role::Publisher => self.counts.killed_publishers += 1,
        }
        self.signal(index, Signal::KILL, &What::Kill);
        self.places[index].mood = Mood::Killed;
    }

    pub(super) fn stop(&mut self, index: usize, time: Duration) {
        self.counts.stopped += 1;
        self.signal(index, Signal::STOP, &What::Stop);
        self.places[index].mood = Mood::Stopped { until: Instant::now() + time };
    }

    pub(super) fn terminate(&mut self, index: usize) {
        self.counts.terminated += 1;
        self.signal(index, Signal::TERM, &What::Terminate);
        self.places[index].mood = Mood::Terminated { at: Instant::now() };
    }

    fn signal(&self, index: usize, signal: Signal, what: &What) {
        let place = &self.places[index];
        // Written first: what follows from it in the journal comes after it.
        self.journal.enter(place.process, what);
        let pid = place.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        if let Some(pid) = pid {
            // It fails when the process has just ended by itself, which the next look notices.
            let _ = kill_process(pid, signal);
        }
    }

    /// Whether no process is on its graceful way out, which needs the server.
    pub(super) fn nobody_was_asked_to_end(&self) -> bool {
        !self.places.iter().any(|place| matches!(place.mood, Mood::Terminated { .. }))
    }

    /// Restarts the database's server, where there is one.
    pub(super) fn restart<B: Base>(
        &mut self,
        server: &mut B::Server,
        rng: &mut fastrand::Rng,
    ) -> Result<(), relaybus::BoxError> {
        self.journal.enter(0, &What::ServerStops);
        self.counts.restarted += u32::from(B::restart(server, rng)?);
        self.journal.enter(0, &What::ServerStarted);
        Ok(())
    }

    /// Lets stopped processes go on when their time has come, or at once.
    pub(super) fn let_go_on(&mut self, at_once: bool) {
        let now = Instant::now();
        for index in 0..self.places.len() {
            if let Mood::Stopped { until } = self.places[index].mood
                && (at_once || until <= now)
            {
                self.signal(index, Signal::CONT, &What::Continue);
                self.places[index].mood = Mood::Running;
            }
        }
    }

    /// Notices who has ended.
    pub(super) fn look(&mut self, pause: Duration) -> std::io::Result<()> {
        for index in 0..self.places.len() {
            let place = &mut self.places[index];
            let Some(child) = &mut place.child else { continue };
            if let Some(status) = child.try_wait()? {
                place.child = None;
                self.ended(index, status, pause);
            } else if let Mood::Terminated { at } = place.mood
                && at.elapsed() > PATIENCE
            {
                let (role, process) = (place.role.name(), place.process);
                self.faults.push(format!("process {process}, a {role}, did not end within {PATIENCE:?} of SIGTERM"));
                self.kill(index);
            }
        }
        Ok(())
    }

    fn ended(&mut self, index: usize, status: ExitStatus, pause: Duration) {
        let place = &mut self.places[index];
        self.journal.enter(place.process, &What::Exit);
        let aborted = status.signal() == Some(Signal::ABORT.as_raw());
        let expected = match place.mood {
            Mood::Killed => status.signal() == Some(Signal::KILL.as_raw()),
            // It may not have come as far as listening for the signal.
            Mood::Terminated { .. } => status.success() || status.signal() == Some(Signal::TERM.as_raw()),
            _ => false,
        };
        // A poison event may also meet a process that was asked to end.
        let by_poison = aborted && place.role == Role::Worker;
        self.counts.aborted += u32::from(by_poison);
        if !expected && !by_poison {
            let errors = std::fs::read_to_string(errors_of(&self.folder, place.process)).unwrap_or_default();
            let (role, process) = (place.role.name(), place.process);
            self.faults.push(format!("process {process}, a {role}, ended with {status}: {}", errors.trim()));
        }
        place.mood = Mood::Gone { back_at: Instant::now() + pause };
    }

    /// Starts successors of those of a role that are gone.
    pub(super) fn replace(&mut self, role: Role) -> std::io::Result<()> {
        let now = Instant::now();
        for index in 0..self.places.len() {
            let place = &self.places[index];
            if place.role == role && matches!(place.mood, Mood::Gone { back_at } if back_at <= now) {
                self.start(index)?;
            }
        }
        Ok(())
    }
}

fn errors_of(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("process-{process}.stderr"))
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.places.iter_mut().filter_map(|place| place.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
