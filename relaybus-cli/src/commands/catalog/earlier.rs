//! The snapshots of an earlier revision: those of the catalogs that are there still, wherever their files are now, and of
//! those that are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use relaybus::catalog::schema::{CatalogSnapshot, Comparison};
use serde_json::Value;

use super::described::Described;
use super::{Which, revision};
use crate::Failure;
use crate::commands::packages::Workspace;

/// What an earlier revision has.
pub(super) struct Earlier<'r> {
    revision: &'r str,
    /// Snapshots in files that no catalog has any more.
    left: BTreeMap<PathBuf, String>,
    /// Whether what is left over is gone: not where only some of the catalogs are looked at.
    is_whole: bool,
}

impl<'r> Earlier<'r> {
    pub(super) fn read(
        revision: &'r str,
        workspace: &Workspace,
        catalogs: &[Described],
        which: &Which,
    ) -> Result<Self, Failure> {
        let mut folders: BTreeSet<&Path> = catalogs.iter().filter_map(|one| revision::existing(&one.file)).collect();
        if which.package.is_empty() {
            folders.insert(&workspace.root);
        }
        let mut left = revision::snapshots(revision, folders)?;
        left.retain(|file, _| catalogs.iter().all(|one| one.file != *file) && !file.exists());
        Ok(Self { revision, left, is_whole: which.catalog.is_empty() })
    }

    /// The text of a catalog's file, or of the one that it had before it was moved.
    pub(super) fn text_of(&mut self, catalog: &Described) -> Result<Option<String>, Failure> {
        if let Some(text) = revision::text_at(self.revision, &catalog.file)? {
            return Ok(Some(text));
        }
        let moved = self.left.iter().find(|(_, text)| name_in(text).as_deref() == Some(&catalog.catalog));
        let file = moved.map(|(file, _)| file.clone());
        Ok(file.and_then(|file| self.left.remove(&file)))
    }

    /// The catalogs that nobody has any more, with what that breaks.
    pub(super) fn gone(self) -> Result<Vec<(Described, Comparison)>, Failure> {
        let mut gone = Vec::new();
        for (file, text) in self.left.into_iter().filter(|_| self.is_whole) {
            let before = CatalogSnapshot::parse(&text).map_err(|error| format!("`{}`: {error}", file.display()))?;
            let mut after = before.clone();
            after.events.clear();
            gone.push((Described::gone(before.catalog.clone(), file), before.compare(&after)));
        }
        Ok(gone)
    }
}

/// The name of the catalog in the text of a file.
fn name_in(text: &str) -> Option<String> {
    let file: Value = serde_json::from_str(text).ok()?;
    file["catalog"].as_str().map(str::to_owned)
}
