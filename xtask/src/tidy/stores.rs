//! The stores mirror each other: who knows one, finds the same operation in the same file of the next.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;

/// Files named for an operation of the store trait. A store has other files too; these every store has, or none.
const OPERATIONS: [&str; 9] = ["admin", "append", "claim", "error", "inbox", "lease", "settle", "setup", "wakeups"];

const STORES: &str = "relaybus-stores/src/";

/// Compares the stores' folders, once there are two.
pub(crate) fn check<'p>(paths: impl Iterator<Item = &'p str>, findings: &mut Vec<Finding>) {
    let mut stores: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in paths {
        let Some((store, rest)) = path.strip_prefix(STORES).and_then(|rest| rest.split_once('/')) else { continue };
        let operation = rest.split(['/', '.']).next().unwrap_or_default();
        let files = stores.entry(store).or_default();
        files.extend(OPERATIONS.iter().filter(|&&known| known == operation));
    }
    let all: BTreeSet<&str> = stores.values().flatten().copied().collect();
    for (store, files) in &stores {
        for missing in all.difference(files) {
            let text = format!("`{missing}.rs` is missing, another store has it: stores have the same files");
            findings.push(Finding::fail(&format!("{STORES}{store}/"), 0, "stores-mirror", text).of_whole());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    fn missing(paths: &[&str]) -> Vec<String> {
        let mut findings = Vec::new();
        let paths: Vec<String> = paths.iter().map(|path| format!("relaybus-stores/src/{path}")).collect();
        check(paths.iter().map(String::as_str), &mut findings);
        findings.into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn one_store_has_the_files_it_has() {
        assert!(missing(&["lib.rs", "sqlite/mod.rs", "sqlite/append.rs"]).is_empty());
    }

    #[test]
    fn two_stores_have_the_same_operations() {
        let same = ["sqlite/append.rs", "sqlite/claim.rs", "postgres/append.rs", "postgres/claim/mod.rs"];
        assert!(missing(&same).is_empty());
        assert!(missing(&["sqlite/append.rs", "sqlite/pool.rs", "postgres/append.rs"]).is_empty(), "others are free");
    }

    #[test]
    fn a_missing_operation_is_named_with_its_store() {
        let found = missing(&["sqlite/append.rs", "sqlite/settle.rs", "postgres/append.rs", "postgres/lease.rs"]);
        assert_eq!(
            found,
            [
                "FAIL relaybus-stores/src/postgres/: stores-mirror: \
                 `settle.rs` is missing, another store has it: stores have the same files",
                "FAIL relaybus-stores/src/sqlite/: stores-mirror: \
                 `lease.rs` is missing, another store has it: stores have the same files",
            ]
        );
    }
}
