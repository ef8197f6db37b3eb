//! The files of a target: they are found the way the compiler finds them, from the root module down.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{LineColumn, TokenStream};
use relaybus_lint::{Found, Function, Index};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use super::Place;
use super::allow::Comments;
use crate::Failure;
use crate::commands::packages::{Package, Target};

/// All that is known of a target.
pub(crate) struct Sources {
    pub(crate) index: Index,
    pub(crate) functions: Vec<Located>,
    pub(crate) files: Vec<File>,
}

/// A function and the file it is in.
pub(crate) struct Located {
    pub(crate) function: Function,
    pub(crate) file: usize,
}

/// A file.
pub(crate) struct File {
    /// Relative to the workspace.
    pub(crate) path: String,
    pub(crate) comments: Comments,
}

/// A file that is still to be read.
struct Todo {
    path: PathBuf,
    module: Vec<String>,
    /// The folder of its submodules.
    folder: PathBuf,
}

impl Sources {
    /// Reads the target; modules for tests only where `tests` says so.
    pub(crate) fn read(target: &Target, package: &Package, workspace: &Path, tests: bool) -> Result<Self, Failure> {
        let mut sources = Self { index: Index::default(), functions: Vec::new(), files: Vec::new() };
        for (name, package) in &package.renamed {
            sources.index.rename(name, package);
        }
        let folder = target.root.parent().unwrap_or(Path::new("")).to_owned();
        let mut todo = vec![Todo { path: target.root.clone(), module: vec!["crate".to_owned()], folder }];
        while let Some(next) = todo.pop() {
            sources.add(&next, workspace, tests, &mut todo)?;
        }
        Ok(sources)
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    fn add(&mut self, next: &Todo, workspace: &Path, tests: bool, todo: &mut Vec<Todo>) -> Result<(), Failure> {
        let shown = next.path.strip_prefix(workspace).unwrap_or(&next.path).to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&next.path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
        let parsed = syn::parse_file(&text).map_err(|error| {
            let at = error.span().start();
            format!("cannot parse `{shown}:{}:{}`: {error}", at.line, at.column + 1)
        })?;
        let number = self.files.len();
        self.files.push(File { path: shown, comments: Comments::of(&text) });
        let skip = |attrs: &[Attribute]| !tests && attrs.iter().any(is_for_tests);
        let Found { functions, elsewhere } = self.index.add(parsed.items, &next.module, &skip);
        self.functions.extend(functions.into_iter().map(|function| Located { function, file: number }));
        for (parent, declared) in elsewhere {
            let name = declared.ident.to_string();
            let name = name.trim_start_matches("r#");
            // Modules that were declared inside of inline modules are in folders of those.
            let inline = parent.get(next.module.len()..).unwrap_or_default();
            let folder = inline.iter().fold(next.folder.clone(), |folder, module| folder.join(module));
            let module: Vec<String> = parent.iter().cloned().chain([name.to_owned()]).collect();
            todo.extend(find(&declared.attrs, name, &folder, &next.path, module));
        }
        Ok(())
    }

    /// Where tokens are.
    pub(crate) fn place(&self, file: usize, tokens: &TokenStream) -> Place {
        let mut spans = tokens.clone().into_iter().map(|tree| tree.span());
        let first = spans.next();
        let start = first.map_or(LineColumn { line: 1, column: 0 }, |span| span.start());
        let end = spans.last().or(first).map_or(start, |span| span.end());
        Place {
            file: self.files[file].path.clone(),
            line: start.line,
            column: start.column + 1,
            end_line: end.line,
            end_column: end.column + 1,
        }
    }
}

/// The file of a declared module. One that is not there is generated, or somebody else's mistake.
fn find(attrs: &[Attribute], name: &str, folder: &Path, declaring: &Path, module: Vec<String>) -> Option<Todo> {
    if let Some(path) = attrs.iter().find_map(path_attribute) {
        let path = declaring.parent().unwrap_or(Path::new("")).join(path);
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        return path.is_file().then_some(Todo { path, module, folder });
    }
    let own = folder.join(name);
    [folder.join(format!("{name}.rs")), own.join("mod.rs")].into_iter().find(|path| path.is_file()).map(|path| Todo {
        path,
        module,
        folder: own,
    })
}

fn path_attribute(attr: &Attribute) -> Option<String> {
    match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an attribute makes an item one of tests: `#[cfg(test)]` and `#[test]`, by any path.
fn is_for_tests(attr: &Attribute) -> bool {
    match &attr.meta {
        Meta::List(list) => {
            let is_cfg = list.path.is_ident("cfg");
            (is_cfg && list.tokens.to_string() == "test") || ends_in_test(attr)
        }
        Meta::Path(_) => ends_in_test(attr),
        Meta::NameValue(_) => false,
    }
}

fn ends_in_test(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "test")
}

/// Where the name of a function is.
pub(crate) fn name_of(function: &Function) -> TokenStream {
    proc_macro2::TokenTree::Ident(function.signature.ident.clone()).into()
}
