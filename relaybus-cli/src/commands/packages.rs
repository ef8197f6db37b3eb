//! Packages and their targets, as Cargo tells them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Failure;

/// A workspace.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Where Cargo builds.
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// A package.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) targets: Vec<Target>,
    /// Dependencies under another name: the name, and the package.
    pub(crate) renamed: Vec<(String, String)>,
    /// Whether it depends on the test kit, with which it may have snapshots of catalogs.
    pub(crate) has_test_kit: bool,
}

/// A target of a package.
pub(crate) struct Target {
    /// The file of its root module.
    pub(crate) root: PathBuf,
    /// Whether it is a test or a benchmark.
    pub(crate) is_test: bool,
}

impl Workspace {
    /// The packages of these names, or all.
    ///
    /// # Errors
    /// When the workspace does not have one.
    pub(crate) fn named(&self, names: &[String]) -> Result<Vec<&Package>, Failure> {
        let all = &self.packages;
        if let Some(unknown) = names.iter().find(|name| all.iter().all(|package| package.name != **name)) {
            return Err(format!("the workspace has no package `{unknown}`").into());
        }
        Ok(all.iter().filter(|package| names.is_empty() || names.contains(&package.name)).collect())
    }
}

/// Cargo, the one that runs this program where one does.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Asks Cargo about the workspace of a manifest.
pub(crate) fn read(manifest: Option<&Path>) -> Result<Workspace, Failure> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    if let Some(manifest) = manifest {
        command.arg("--manifest-path").arg(manifest);
    }
    let output = command.output().map_err(|error| format!("cannot run `cargo metadata`: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.trim().trim_start_matches("error: ").to_owned().into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let root = PathBuf::from(text(&metadata["workspace_root"]));
    let packages = list(&metadata["packages"]).iter().map(package).collect();
    Ok(Workspace { root, target: PathBuf::from(text(&metadata["target_directory"])), packages })
}

fn package(package: &Value) -> Package {
    let renamed = list(&package["dependencies"])
        .iter()
        .filter(|dependency| dependency["rename"].is_string())
        .map(|dependency| (text(&dependency["rename"]), text(&dependency["name"])));
    let targets =
        list(&package["targets"]).iter().filter(|target| !is_kind(target, "custom-build")).map(|target| Target {
            root: PathBuf::from(text(&target["src_path"])),
            is_test: is_kind(target, "test") || is_kind(target, "bench"),
        });
    let has_test_kit = list(&package["dependencies"]).iter().any(|dependency| dependency["name"] == "relaybus-testing");
    Package { name: text(&package["name"]), targets: targets.collect(), renamed: renamed.collect(), has_test_kit }
}

fn is_kind(target: &Value, kind: &str) -> bool {
    list(&target["kind"]).iter().any(|found| found == kind)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
