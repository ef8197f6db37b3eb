//! Running the tests that have catalogs, and reading what they wrote down.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::Value;

use super::Which;
use crate::Failure;
use crate::commands::packages::{self, Workspace};

/// What the tests are told by: the folder to write to.
const REPORT: &str = "RELAYBUS_CATALOG_REPORT";
/// What the names of the tests have.
const TEST: &str = "catalog_snapshots";

/// A catalog, as the test with it wrote it down.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Described {
    pub(super) package: String,
    pub(super) catalog: String,
    /// The file with its snapshot.
    pub(super) file: PathBuf,
    pub(super) snapshot: String,
    pub(super) json_schema: Value,
    pub(super) asyncapi: Value,
}

impl Described {
    /// A catalog that is only in a file of an earlier revision.
    pub(super) fn gone(catalog: String, file: PathBuf) -> Self {
        let (json_schema, asyncapi) = (Value::Null, Value::Null);
        Self { package: String::new(), catalog, file, snapshot: String::new(), json_schema, asyncapi }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.snapshot.is_empty()
    }
}

/// A folder that is deleted at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(path: PathBuf) -> Result<Self, Failure> {
        fs::create_dir_all(&path).map_err(|error| format!("cannot make the folder `{}`: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in the target folder harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the tests of the packages; the catalogs come by package and name.
pub(super) fn run(workspace: &Workspace, which: &Which) -> Result<Vec<Described>, Failure> {
    let mut chosen = workspace.named(&which.package)?;
    chosen.retain(|package| package.has_test_kit);
    if chosen.is_empty() {
        return Err(nothing("no package depends on `relaybus-testing`"));
    }
    let folder = Folder::new(workspace.target.join(format!("relaybus-catalogs-{}", std::process::id())))?;
    let mut command = packages::cargo();
    command.arg("test").current_dir(&workspace.root).arg("--tests");
    for package in &chosen {
        command.args(["--package", &package.name]);
    }
    command.args(&which.cargo).args(["--", TEST]).env(REPORT, &folder.0).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot run `cargo test`: {error}"))?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stdout).trim_end());
        return Err(
            format!("the tests with `{TEST}` in their names did not run to their end: {}", output.status).into()
        );
    }
    let catalogs = read(&folder.0)?;
    if catalogs.is_empty() { Err(nothing("no test has a catalog")) } else { Ok(catalogs) }
}

fn nothing(why: &str) -> Failure {
    format!(
        "{why}: write `relaybus_testing::catalog_snapshots! {{ OrderEvents => \"schemas/orders.json\" }}` into a test"
    )
    .into()
}

fn read(folder: &Path) -> Result<Vec<Described>, Failure> {
    let mut catalogs: Vec<Described> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let text = fs::read_to_string(entry?.path())?;
        let described: Described = serde_json::from_str(&text)
            .map_err(|error| format!("`relaybus-testing` and `cargo relaybus` are of different versions: {error}"))?;
        // A test that is built into two programs tells it twice.
        if !catalogs.contains(&described) {
            catalogs.push(described);
        }
    }
    catalogs.sort_by(|a, b| (&a.package, &a.catalog, &a.file).cmp(&(&b.package, &b.catalog, &b.file)));
    Ok(catalogs)
}
