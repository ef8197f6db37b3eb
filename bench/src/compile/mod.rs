//! What the macros cost the compiler: a crate of 500 events, 20 catalogs and 1,000 consumers, written with them and by hand.
//!
//! Both crates are generated under `target/compile-cost` and compiled in turns. The time is that of the crate alone: what it
//! depends on is compiled before.

mod by_hand;
mod shared;
mod with_macros;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use relaybus::BoxError;

use crate::effort::{Effort, median};
use crate::figures::{Figure, Outcome};

/// Catalogs, each with [`EVENTS`] events.
const CATALOGS: usize = 20;
/// Events of a catalog. Each has two consumers: a function, and a method of the catalog's handlers.
const EVENTS: usize = 25;
/// The arguments of a profile, and how often each crate is compiled with it, in turns; the figure is the median.
const PROFILES: [(&str, &[&str], usize); 2] = [("dev", &[], 3), ("release", &["--release"], 1)];

/// A way to write the crate, and its name as a package.
type Style = (&'static str, fn(usize, usize) -> String);

/// The first is compared with those by hand; the last one also has a module that states and checks a contract over all of it.
const STYLES: [Style; 4] = [
    ("with-macros", with_macros::source),
    ("by-hand", by_hand::source),
    ("by-hand-lean", by_hand::lean_source),
    ("with-module", with_macros::source_with_module),
];
const BY_HAND: std::ops::Range<usize> = 1..3;

/// Processor and wall time of each crate, sizes of the programs, and the time of the contract checks at boot.
pub(crate) fn cost() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/compile-cost");
    write_workspace(&root)?;
    let mut figures = Vec::new();
    for (profile, arguments, rounds) in PROFILES {
        let mut efforts = vec![Vec::new(); STYLES.len()];
        // What all of them need.
        build(&root, "with-macros", arguments)?;
        for _ in 0..rounds {
            for (style, efforts) in STYLES.iter().zip(&mut efforts) {
                efforts.push(compile(&root, style.0, arguments)?);
            }
        }
        let medians: Vec<Effort> = efforts.iter().map(|efforts| median(efforts)).collect();
        for (style, effort) in STYLES.iter().zip(&medians) {
            figures.extend(Figure::effort(&format!("compile: {profile}, {}", style.0), *effort));
        }
        for (style, effort) in STYLES.iter().zip(&medians).take(BY_HAND.end).skip(BY_HAND.start) {
            figures.extend(Figure::ratios(&format!("compile: {profile}, macros / {}", style.0), medians[0], *effort));
        }
        let checks = medians[3].cpu - medians[0].cpu;
        figures.push(Figure::micros(
            &format!("compile: {profile}, a module's contract over all of it, processor"),
            checks,
        ));
    }
    figures.extend(sizes(&root)?);
    figures.push(boot(&root)?);
    Ok(figures)
}

fn write_workspace(root: &Path) -> Result<(), BoxError> {
    let members = STYLES.map(|style| format!("\"{}\"", style.0)).join(", ");
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n\n[profile.release]\nstrip = true\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n"
    );
    write(&root.join("Cargo.toml"), &manifest)?;
    // The versions that the workspace is tested with.
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"), root.join("Cargo.lock"))?;
    let relaybus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../relaybus").canonicalize()?;
    for (name, source) in STYLES {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
             relaybus = {{ path = {relaybus:?} }}\nserde = {{ version = \"1\", features = [\"derive\"] }}\n\
             tokio = {{ version = \"1\", features = [\"rt\"] }}\n"
        );
        write(&root.join(name).join("Cargo.toml"), &manifest)?;
        write(&root.join(name).join("src/main.rs"), &source(CATALOGS, EVENTS))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), BoxError> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text)?;
    Ok(())
}

/// Compiles the crate anew; what it needs is there.
fn compile(root: &Path, package: &str, arguments: &[&str]) -> Result<Effort, BoxError> {
    let source = root.join(package).join("src/main.rs");
    let text = fs::read_to_string(&source)?;
    fs::write(&source, text)?;
    let (began, cpu) = (Instant::now(), children_cpu());
    build(root, package, arguments)?;
    Ok(Effort { wall: began.elapsed().as_secs_f64() * 1e6, cpu: children_cpu() - cpu })
}

fn build(root: &Path, package: &str, arguments: &[&str]) -> Result<(), BoxError> {
    let status = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .current_dir(root)
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("CARGO_TARGET_DIR")
        .args(["build", "--quiet", "--package", package])
        .args(arguments)
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("`{package}` does not compile").into()) }
}

/// Processor time of children that have ended, in microseconds; 0 where the system does not tell.
fn children_cpu() -> f64 {
    const TICK: f64 = 10_000.0;
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return 0.0 };
    // After the name in brackets: cutime and cstime are the 14th and 15th field.
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0.0 };
    fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() * TICK
}

fn program(root: &Path, package: &str) -> PathBuf {
    root.join("target/release").join(package)
}

fn sizes(root: &Path) -> Outcome {
    let mut sizes = Vec::new();
    for (name, _) in STYLES {
        sizes.push(fs::metadata(program(root, name))?.len() as f64);
    }
    let mut figures = Vec::new();
    for ((name, _), size) in STYLES.iter().zip(&sizes) {
        figures.push(Figure { name: format!("compile: stripped size, {name}"), value: size / 1024.0, unit: "KiB" });
    }
    for ((name, _), size) in STYLES.iter().zip(&sizes).take(BY_HAND.end).skip(BY_HAND.start) {
        figures.push(Figure::ratio(&format!("compile: stripped size, macros / {name}"), sizes[0] / size));
    }
    Ok(figures)
}

/// The program builds its bus and starts it, which checks every contract, and prints how long that took.
fn boot(root: &Path) -> Result<Figure, BoxError> {
    let output = Command::new(program(root, "with-macros")).output()?;
    let micros = String::from_utf8(output.stdout)?.trim().parse::<f64>()?;
    Ok(Figure::micros("compile: building and starting the bus, contracts checked", micros))
}
