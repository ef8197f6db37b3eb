//! The snapshots of catalogs: a test that compares each catalog with the file that is committed beside it. Feature `schema`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use relaybus::catalog::schema::{AsyncApi, CatalogSnapshot, DescribedCatalog};
use serde_json::json;

/// What to do with the files: `update` or `accept`; nothing compares.
const MODE: &str = "RELAYBUS_CATALOGS";
/// The folder into which `cargo relaybus catalog` has the catalogs written; nothing is compared then.
const REPORT: &str = "RELAYBUS_CATALOG_REPORT";

/// Writes the test `catalog_snapshots`, which compares catalogs with the files that are committed beside them.
///
/// Put it into `tests/catalogs.rs` of the package that has the catalogs, or into a test module:
///
/// ```
/// # #[derive(relaybus::Event, serde::Serialize, serde::Deserialize, schemars::JsonSchema)] #[event("order.placed.v1")]
/// # struct OrderPlaced {}
/// # #[relaybus::catalog(schema)] enum OrderEvents { OrderPlaced(OrderPlaced) }
/// relaybus_testing::catalog_snapshots! {
///     OrderEvents => "schemas/orders.json",
/// }
/// ```
///
/// Paths are those of the package's folder. The test fails where somebody cannot go on as before, and says who; it passes on
/// changes that break nobody, and prints them (`--nocapture` shows them).
/// [`CatalogSnapshot::compare`](relaybus::catalog::schema::CatalogSnapshot::compare) has the rules. To write the files:
///
/// - `RELAYBUS_CATALOGS=update cargo test catalog_snapshots` writes what is new or compatible;
/// - `RELAYBUS_CATALOGS=accept cargo test catalog_snapshots` writes whatever there is.
///
/// `cargo relaybus catalog check|update|export` of `relaybus-cli` does it for a whole workspace: it runs the tests with
/// `catalog_snapshots` in their names, so that the catalogs are those that your own build has, whatever the features.
#[macro_export]
macro_rules! catalog_snapshots {
    ($($catalog:ty => $file:expr),+ $(,)?) => {
        #[test]
        fn catalog_snapshots() {
            let problems: ::std::vec::Vec<::std::string::String> = [
                $($crate::check_catalog_snapshot::<$catalog>($file)),+
            ].into_iter().filter_map(::std::result::Result::err).collect();
            ::std::assert!(problems.is_empty(), "{}", problems.join("\n\n"));
        }
    };
}

/// Compares a catalog with its file, as [`catalog_snapshots!`](crate::catalog_snapshots) does: for a test of one's own, whose name
/// contains `catalog_snapshots` where `cargo relaybus catalog` is to find it.
///
/// # Errors
/// A text for people, when the file is missing or no snapshot, or the catalog breaks what it promises.
pub fn check_catalog_snapshot<C: DescribedCatalog>(file: impl AsRef<Path>) -> Result<(), String> {
    let file = file.as_ref();
    let now = CatalogSnapshot::of::<C>();
    if let Some(folder) = std::env::var_os(REPORT) {
        return report::<C>(&PathBuf::from(folder), file, &now);
    }
    check(file, &now, std::env::var_os(MODE).as_deref())
}

fn check(file: &Path, now: &CatalogSnapshot, mode: Option<&OsStr>) -> Result<(), String> {
    let (may_write, accepts) = match mode.and_then(OsStr::to_str) {
        None | Some("") => (false, false),
        Some("update") => (true, false),
        Some("accept") => (true, true),
        Some(other) => return Err(format!("`{MODE}` is `{other}`: set it to `update` or `accept`, or to nothing")),
    };
    let (name, shown) = (&now.catalog, file.display());
    let committed = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return if may_write { write(file, now) } else { Err(missing(name, file)) };
        }
        Err(error) => return Err(format!("cannot read `{shown}`: {error}")),
    };
    if accepts {
        return write(file, now);
    }
    let comparison = CatalogSnapshot::parse(&committed).map_err(|error| format!("`{shown}`: {error}"))?.compare(now);
    if comparison.is_breaking() {
        return Err(format!(
            "the catalog `{name}` breaks what `{shown}` promises:\n\n{comparison}\n\n\
             Undo the change, or add an event of another type beside the old one. Where nobody relies on the old contract any \
             more, accept the change: `{MODE}=accept cargo test catalog_snapshots`, or `cargo relaybus catalog update --accept`"
        ));
    }
    if may_write {
        return write(file, now);
    }
    if committed.replace("\r\n", "\n") != now.to_text() {
        println!("`{shown}` is behind the catalog `{name}`, `{MODE}=update` writes it anew:\n{comparison}");
    }
    Ok(())
}

fn missing(name: &str, file: &Path) -> String {
    format!(
        "the catalog `{name}` has no snapshot `{}` yet: write it with `{MODE}=update cargo test catalog_snapshots`, or with \
         `cargo relaybus catalog update`, and commit it",
        file.display()
    )
}

fn write(file: &Path, now: &CatalogSnapshot) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot write `{}`: {error}", file.display());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    std::fs::write(file, now.to_text()).map_err(cannot)
}

/// Tells `cargo relaybus catalog` what there is.
fn report<C: DescribedCatalog>(folder: &Path, file: &Path, now: &CatalogSnapshot) -> Result<(), String> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let version = variable("CARGO_PKG_VERSION");
    let file = std::path::absolute(file).map_err(|error| format!("`{}` is no path: {error}", file.display()))?;
    let report = json!({
        "package": variable("CARGO_PKG_NAME"),
        "catalog": now.catalog,
        "file": file,
        "snapshot": now.to_text(),
        "jsonSchema": C::json_schema(),
        "asyncapi": AsyncApi::of_catalog::<C>(if version.is_empty() { "0.0.0" } else { &version }).to_json(),
    });
    let name = format!("{}-{}.json", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = folder.join(name);
    std::fs::write(&path, report.to_string()).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use relaybus::{Event, catalog};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    mod before {
        use super::{Deserialize, Event, JsonSchema, Serialize, catalog};

        #[derive(Event, Serialize, Deserialize, JsonSchema)]
        #[event("order.placed.v1")]
        pub(super) struct OrderPlaced {
            id: String,
        }

        #[catalog(schema)]
        pub(super) enum Orders {
            OrderPlaced(OrderPlaced),
        }
    }

    mod after {
        use super::{Deserialize, Event, JsonSchema, Serialize, catalog};

        #[derive(Event, Serialize, Deserialize, JsonSchema)]
        #[event("order.placed.v1")]
        pub(super) struct OrderPlaced {
            id: String,
            note: Option<String>,
        }

        #[catalog(schema)]
        pub(super) enum Orders {
            OrderPlaced(OrderPlaced),
        }
    }

    /// A folder of this test's own, deleted at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("relaybus-catalogs-{name}-{}", std::process::id())))
        }
        fn file(&self) -> PathBuf {
            self.0.join("schemas/orders.json")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_written_on_request_and_compared_otherwise() {
        let (folder, before) = (Folder::new("written"), CatalogSnapshot::of::<before::Orders>());
        let file = folder.file();
        let missing = check(&file, &before, None).unwrap_err();
        assert!(missing.contains("has no snapshot") && !file.exists(), "{missing}");
        check(&file, &before, Some("update".as_ref())).unwrap();
        check(&file, &before, None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before.to_text());
    }

    #[test]
    fn a_compatible_change_passes_and_is_written_by_an_update() {
        let folder = Folder::new("compatible");
        let (file, before, after) =
            (folder.file(), CatalogSnapshot::of::<before::Orders>(), CatalogSnapshot::of::<after::Orders>());
        check(&file, &before, Some("update".as_ref())).unwrap();
        check(&file, &after, None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before.to_text(), "a comparison writes nothing");
        check(&file, &after, Some("update".as_ref())).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after.to_text());
    }

    #[test]
    fn a_breaking_change_fails_until_it_is_accepted() {
        let folder = Folder::new("breaking");
        let (file, before, after) =
            (folder.file(), CatalogSnapshot::of::<before::Orders>(), CatalogSnapshot::of::<after::Orders>());
        check(&file, &after, Some("update".as_ref())).unwrap();
        for mode in [None, Some("update".as_ref())] {
            let error = check(&file, &before, mode).unwrap_err();
            assert!(error.contains("breaking: OrderPlaced (order.placed.v1): the field `note` was removed"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after.to_text());
        check(&file, &before, Some("accept".as_ref())).unwrap();
        check(&file, &before, None).unwrap();
    }

    #[test]
    fn what_is_no_snapshot_and_no_mode_is_refused() {
        let (folder, before) = (Folder::new("refused"), CatalogSnapshot::of::<before::Orders>());
        let file = folder.file();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
        assert!(check(&file, &before, None).unwrap_err().contains("this is not the snapshot of a catalog"));
        let error = check(&file, &before, Some("write".as_ref())).unwrap_err();
        assert_eq!(error, "`RELAYBUS_CATALOGS` is `write`: set it to `update` or `accept`, or to nothing");
    }
}
