//! Full paths: what a name means in a module.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};

use crate::Path;
use crate::index::{Index, Outline, child};
use crate::services::client_of;
use crate::tokens::{after_dot, is_keyword, path, word};

/// Longest chain of imports that is followed.
const MAX_IMPORTS: usize = 16;

/// The names that are in scope of a function.
#[derive(Clone, Debug)]
pub struct Names<'i> {
    index: &'i Index,
    module: Path,
    /// The full path of the type that the function is a method of.
    this: Option<Path>,
}

impl<'i> Names<'i> {
    /// The names of a module, and of `this`, the type whose method it is about.
    #[must_use]
    pub fn new(index: &'i Index, module: &Path, this: Option<&Path>) -> Self {
        let this = this.map(|this| index.resolve(module, this));
        Self { index, module: module.clone(), this }
    }

    /// The names where a function is.
    #[must_use]
    pub fn at(index: &'i Index, outline: &Outline) -> Self {
        Self::new(index, &outline.module, outline.this.as_ref())
    }

    /// The full path of `Self`.
    #[must_use]
    pub fn this(&self) -> Option<&Path> {
        self.this.as_ref()
    }

    /// The full path of what `path` means here.
    #[must_use]
    pub fn resolve(&self, path: &[String]) -> Path {
        match (path.first().map(String::as_str), &self.this) {
            (Some("Self"), Some(this)) => this.iter().chain(&path[1..]).cloned().collect(),
            _ => self.index.resolve(&self.module, path),
        }
    }

    /// The full paths in the type of the static or constant at `full`.
    pub(crate) fn value(&self, full: &Path) -> Option<Vec<Path>> {
        let module = &full[..full.len().saturating_sub(1)];
        let paths = self.index.values.get(full)?;
        Some(paths.iter().map(|path| self.index.resolve(module, path)).collect())
    }

    /// The full path of the type that the function at `full` returns, where a type of its own is outermost.
    pub(crate) fn returned(&self, full: &[String]) -> Option<Path> {
        let (module, path) = self.index.returns.get(full)?;
        Some(self.index.resolve(module, path))
    }

    /// The full paths in the type of a field of the type at `owner`.
    pub(crate) fn field(&self, owner: &Path, field: &str) -> Vec<Path> {
        let paths = self.index.fields.get(owner).and_then(|fields| fields.get(field));
        let module = &owner[..owner.len().saturating_sub(1)];
        paths.into_iter().flatten().map(|path| self.index.resolve(module, path)).collect()
    }
}

impl Index {
    /// The full path of what `path` means in a module: from `crate`, or from the name of another crate.
    #[must_use]
    pub fn resolve(&self, module: &[String], path: &[String]) -> Path {
        let mut full = self.follow(module, path, MAX_IMPORTS);
        if let Some(package) = full.first().and_then(|first| self.renamed.get(first)) {
            full[0].clone_from(package);
        }
        full
    }

    fn follow(&self, module: &[String], path: &[String], left: usize) -> Path {
        let Some(first) = path.first() else { return Path::new() };
        if left == 0 {
            return path.to_vec();
        }
        let from = |start: &[String]| start.iter().chain(&path[1..]).cloned().collect::<Path>();
        match first.as_str() {
            "crate" => return self.reexported(path.to_vec(), left),
            "self" => return self.reexported(from(module), left),
            "super" => {
                let parent = &module[..module.len().saturating_sub(1)];
                let goes_on = path.get(1).is_some_and(|second| second == "super");
                let rest = if goes_on { path[1..].to_vec() } else { from(&["self".to_owned()]) };
                return self.follow(parent, &rest, left - 1);
            }
            _ => {}
        }
        let Some(names) = self.modules.get(module) else { return path.to_vec() };
        if let Some(target) = names.imports.get(first) {
            let target: Path = target.iter().chain(&path[1..]).cloned().collect();
            if target == path {
                return target;
            }
            return self.follow(module, &target, left - 1);
        }
        if names.items.contains(first) {
            return self.reexported(child(module, first).into_iter().chain(path[1..].iter().cloned()).collect(), left);
        }
        self.by_glob(module, path, left).unwrap_or_else(|| path.to_vec())
    }

    /// What a glob import makes of a name.
    fn by_glob(&self, module: &[String], path: &[String], left: usize) -> Option<Path> {
        let first = path.first()?;
        self.modules.get(module)?.globs.iter().find_map(|glob| {
            let target = self.follow(module, glob, left - 1);
            match self.modules.get(&target) {
                Some(names) if target != module => {
                    let has = names.imports.contains_key(first) || names.items.contains(first);
                    has.then(|| self.follow(&target, path, left - 1))
                }
                Some(_) => None,
                // Of a foreign crate only the names of clients are known.
                None => client_of(&child(&target, first)).map(|_| target.iter().chain(path).cloned().collect()),
            }
        })
    }

    /// A path from `crate` where one of its modules only passes on what follows.
    fn reexported(&self, full: Path, left: usize) -> Path {
        for at in 1..full.len() {
            let (module, rest) = full.split_at(at);
            if let Some(names) = self.modules.get(module)
                && names.imports.contains_key(&rest[0])
            {
                return self.follow(module, rest, left - 1);
            }
        }
        full
    }
}

/// The names that `use` brings into a block.
pub(crate) type Imports = HashMap<String, Path>;

/// The paths in the tokens of a type, outermost first.
pub(crate) fn type_paths(tokens: TokenStream) -> Vec<Path> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut paths = Vec::new();
    let mut at = 0;
    while at < trees.len() {
        match &trees[at] {
            TokenTree::Group(group) => paths.extend(type_paths(group.stream())),
            TokenTree::Ident(_) => {
                let is_lifetime = at > 0 && matches!(&trees[at - 1], TokenTree::Punct(p) if p.as_char() == '\'');
                let starts_path = word(&trees, at).is_some_and(|word| !is_keyword(&word));
                if starts_path && !is_lifetime && !after_dot(&trees, at) {
                    let (segments, end) = path(&trees, at);
                    paths.push(segments);
                    at = end;
                    continue;
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> Index {
        let mut index = Index::default();
        index.add(syn::parse_str::<syn::File>(text).unwrap().items, &vec!["crate".to_owned()], &|_| false);
        index
    }

    fn resolve(index: &Index, module: &str, path: &str) -> String {
        let split = |path: &str| path.split("::").map(str::to_owned).collect::<Path>();
        index.resolve(&split(module), &split(path)).join("::")
    }

    #[test]
    fn imports_aliases_and_reexports_are_followed() {
        let index = index(
            "use reqwest::{self as http, Client as Web, blocking::*}; use reqwest; type Boss = Web; use std::process;
             mod clients { pub use reqwest::Client as Http; pub mod deep { use super::super::Web; use super::*; } }
             use clients::Http; mod tokio { pub fn spawn() {} } extern crate ureq as u;",
        );
        for (path, full) in [
            ("http::get", "reqwest::get"),
            ("reqwest::get", "reqwest::get"),
            ("Web::new", "reqwest::Client::new"),
            ("Boss::new", "reqwest::Client::new"),
            ("Http::new", "reqwest::Client::new"),
            ("crate::clients::Http::new", "reqwest::Client::new"),
            ("process::Command::new", "std::process::Command::new"),
            ("Client::new", "reqwest::blocking::Client::new"),
            ("tokio::spawn", "crate::tokio::spawn"),
            ("u::get", "ureq::get"),
            ("other::thing", "other::thing"),
        ] {
            assert_eq!(resolve(&index, "crate", path), full, "{path}");
        }
        assert_eq!(resolve(&index, "crate::clients::deep", "Web::new"), "reqwest::Client::new");
        assert_eq!(resolve(&index, "crate::clients::deep", "Http::new"), "reqwest::Client::new");
        assert_eq!(resolve(&index, "crate::clients", "super::http::get"), "reqwest::get");
    }

    #[test]
    fn circles_end() {
        let index = index("use a::b; mod a { pub use super::c as b; } use a::b as c;");
        assert!(!resolve(&index, "crate", "b::d").is_empty());
    }

    #[test]
    fn paths_of_types() {
        let paths = type_paths(quote::quote!(&'a mut Arc<Mutex<(reqwest::Client, u8)>>));
        let shown: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(shown, ["Arc", "Mutex", "reqwest::Client", "u8"]);
    }
}
