//! Where the workspace is and what it holds, as Cargo itself tells it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of the root manifest.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// The folder Cargo builds into: this program lies two levels below it.
pub(crate) fn target() -> PathBuf {
    let built = std::env::current_exe().ok();
    let folder = built.as_deref().and_then(Path::parent).and_then(Path::parent);
    folder.map_or_else(|| root().join("target"), Path::to_path_buf)
}

/// The Cargo that started this program, in the root folder.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether the workspace has a member of this name.
///
/// # Errors
///
/// When `cargo metadata` fails.
pub(crate) fn has_package(name: &str) -> Result<bool, Box<dyn Error>> {
    Ok(packages(&metadata(&["--no-deps"])?).iter().any(|package| package["name"] == name))
}

/// What `cargo metadata` prints.
///
/// # Errors
///
/// When Cargo fails or prints something else than JSON.
pub(crate) fn metadata(arguments: &[&str]) -> Result<Value, Box<dyn Error>> {
    let output = cargo().args(["metadata", "--format-version", "1"]).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The `packages` of `cargo metadata`.
pub(crate) fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().map_or(&[], Vec::as_slice)
}
