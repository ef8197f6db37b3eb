//! Workers and publishers on one SQLite file are killed and stopped at random; afterwards nothing is lost, doubled or out of order.
//!
//! `RELAYBUS_CRASH_SECONDS` says how long they are harmed (60), `RELAYBUS_CRASH_SEED` repeats the plans and the harm of a seed,
//! `RELAYBUS_CRASH_KEEP` keeps the files. A seed does not repeat a run to the letter: when a process dies is up to the machine.
#![cfg(unix)]
#![allow(clippy::panic, reason = "the story of a failed run is to be read as text")]

use relaybus_stores::SqliteStore;
use relaybus_tests::crash::{Settings, run};

#[test]
fn killed_processes_lose_nothing_and_do_nothing_twice() {
    let program = env!("CARGO_BIN_EXE_crash-worker").into();
    let run = Settings::from_environment(program, 60, 4).and_then(|settings| {
        let report = run::<SqliteStore>(&settings)?;
        Ok((settings.seed, report))
    });
    match run {
        Ok((seed, report)) => println!("seed {seed}: {report}"),
        Err(story) => panic!("{story}"),
    }
}
