//! Workers and publishers on one PostgreSQL server are killed and stopped at random, and the server is restarted twice; afterwards
//! nothing is lost, doubled or out of order, and nothing waited for long.
//!
//! `RELAYBUS_CRASH_SECONDS` says how long they are harmed (20), `RELAYBUS_CRASH_SEED` repeats the plans and the harm of a seed,
//! `RELAYBUS_CRASH_KEEP` keeps the files. A seed does not repeat a run to the letter: when a process dies is up to the machine.
#![cfg(unix)]
#![allow(clippy::panic, reason = "the story of a failed run is to be read as text")]

use relaybus_stores::PostgresStore;
use relaybus_tests::crash::{Settings, run};

#[test]
fn killed_processes_lose_nothing_and_do_nothing_twice() {
    let program = env!("CARGO_BIN_EXE_crash-worker").into();
    let run = Settings::from_environment(program, 20, 8).and_then(|settings| {
        let report = run::<PostgresStore>(&settings)?;
        Ok((settings.seed, report))
    });
    match run {
        Ok((seed, report)) => println!("seed {seed}: {report}"),
        Err(story) => panic!("{story}"),
    }
}
