//! Files as an earlier revision has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The text of a file at a revision of git; nothing where the revision did not have it.
pub(super) fn text_at(revision: &str, file: &Path) -> Result<Option<String>, Failure> {
    let (Some(folder), Some(name)) = (existing(file), file.file_name()) else {
        return Err(format!("`{}` is no path of a file", file.display()).into());
    };
    // The folder of the file may be gone or new: git knows it by its path from the one that is there.
    let below = file.strip_prefix(folder).unwrap_or(Path::new(name)).to_string_lossy().replace('\\', "/");
    let commit = git(folder, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])?;
    if commit.is_none() {
        return Err(format!("git knows no revision `{revision}` in `{}`: fetch it first", folder.display()).into());
    }
    if git(folder, &["cat-file", "-e", &format!("{revision}:./{below}")])?.is_none() {
        return Ok(None);
    }
    git(folder, &["show", &format!("{revision}:./{below}")])
}

/// The snapshots below some folders at a revision, each once: their files and texts.
pub(super) fn snapshots<'f>(
    revision: &str,
    folders: impl IntoIterator<Item = &'f Path>,
) -> Result<BTreeMap<PathBuf, String>, Failure> {
    let mut found = BTreeMap::new();
    for folder in folders {
        // Nothing is found where git has no such folder.
        let names = git(folder, &["grep", "-lz", "-e", "\"relaybusCatalog\"", revision, "--", "*.json"])?;
        for name in names.iter().flat_map(|names| names.split('\0')).filter_map(|name| name.split_once(':')) {
            let file = folder.join(name.1);
            if !found.contains_key(&file)
                && let Some(text) = text_at(revision, &file)?
            {
                found.insert(file, text);
            }
        }
    }
    Ok(found)
}

/// The innermost folder of a path that is there.
pub(super) fn existing(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| folder.is_dir())
}

/// What git prints; nothing when it fails.
fn git(folder: &Path, arguments: &[&str]) -> Result<Option<String>, Failure> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run `git`: {error}"))?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}
