//! The quickstart as a newcomer runs it, on a store of its own.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use crate::test_command::finished;
use crate::{Outcome, workspace};

/// Runs the quickstart once; it checks its own result, and must end with a JSON object.
pub(crate) fn run() -> Outcome {
    let folder = TemporaryFolder::create("quickstart")?;
    let store = format!("sqlite://{}", folder.0.join("quickstart.db").display());
    let arguments = ["run", "--package", "quickstart", "--", "--json", "--store", &store];
    let last_line = finished(workspace::cargo().args(arguments))?;
    is_report(&last_line)?;
    Ok(String::new())
}

fn is_report(line: &str) -> Result<(), String> {
    match serde_json::from_str(line) {
        Ok(Value::Object(report)) if !report.is_empty() => Ok(()),
        Ok(_) => Err(format!("the last line `{line}` is no report: expected a JSON object")),
        Err(error) => Err(format!("the last line `{line}` is not JSON ({error}): expected the report of `--json`")),
    }
}

/// A folder that is removed when the step ends, however it ends.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("relaybus-{name}-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning of its temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{TemporaryFolder, is_report};

    #[test]
    fn a_report_is_a_json_object_with_something_in_it() {
        assert!(is_report("{\"events\":60}").is_ok());
        for line in ["{}", "[]", "60", "done", ""] {
            assert!(is_report(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_folder_is_removed_with_what_is_in_it() {
        let folder = TemporaryFolder::create("xtask-test").unwrap();
        let path = folder.0.clone();
        std::fs::write(path.join("file"), "text").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
