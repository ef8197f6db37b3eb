//! The table of the contract suite names every case that is written, in every file, and nothing twice.

use std::collections::BTreeSet;

const FILES: &[(&str, &str)] = &[
    ("admin", include_str!("../src/store_suite/admin.rs")),
    ("append", include_str!("../src/store_suite/append.rs")),
    ("claim", include_str!("../src/store_suite/claim.rs")),
    ("dropped", include_str!("../src/store_suite/dropped.rs")),
    ("fidelity", include_str!("../src/store_suite/fidelity.rs")),
    ("history", include_str!("../src/store_suite/history.rs")),
    ("inbox", include_str!("../src/store_suite/inbox.rs")),
    ("lease", include_str!("../src/store_suite/lease.rs")),
    ("order", include_str!("../src/store_suite/order.rs")),
    ("purge", include_str!("../src/store_suite/purge.rs")),
    ("races", include_str!("../src/store_suite/races.rs")),
    ("runs", include_str!("../src/store_suite/runs.rs")),
    ("settle", include_str!("../src/store_suite/settle.rs")),
    ("starvation", include_str!("../src/store_suite/starvation.rs")),
    ("time", include_str!("../src/store_suite/time.rs")),
    ("transactions", include_str!("../src/store_suite/transactions.rs")),
];

macro_rules! names {
    ({} $($module:ident { $($case:ident)* })*) => {
        const TABLE: &[(&str, &str)] = &[$($((stringify!($module), stringify!($case)),)*)*];
    };
}
relaybus_testing::store_cases!(names, {});

#[test]
fn the_table_names_every_case_once() {
    let listed: BTreeSet<(&str, &str)> = TABLE.iter().copied().collect();
    assert_eq!(listed.len(), TABLE.len(), "a case is listed twice");
    let written: BTreeSet<(&str, &str)> = FILES.iter().flat_map(|(module, text)| cases(module, text)).collect();
    assert_eq!(written, listed);
}

#[test]
fn every_file_of_cases_is_looked_at() {
    let modules: BTreeSet<&str> = include_str!("../src/store_suite/mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .filter(|module| *module != "kit")
        .collect();
    assert_eq!(modules, FILES.iter().map(|(module, _)| *module).collect());
}

/// Public async functions of a file, which are its cases.
fn cases<'t>(module: &'t str, text: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    text.lines().filter_map(move |line| {
        let name = line.strip_prefix("pub async fn ")?;
        Some((module, name.split(['<', '(']).next()?))
    })
}
