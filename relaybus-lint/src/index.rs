//! What the items of a file or a crate are called: imports, fields and functions, by the module they are in.
//!
//! An index holds only text, so that a macro may keep it from one call to the next; tokens are handed out in [`Found`].

use std::collections::{HashMap, HashSet};

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, ItemMod, ItemTrait, ReturnType, Signature, TraitItem, UseTree};

use crate::Path;
use crate::names::{Imports, type_paths};
use crate::tokens::{is_punct, word};

/// The items of a file or a crate.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) modules: HashMap<Path, Module>,
    /// The fields of each struct, by its full path: a name and the paths in its type.
    pub(crate) fields: HashMap<Path, HashMap<String, Vec<Path>>>,
    /// The statics and constants, by their full paths: the paths in their types.
    pub(crate) values: HashMap<Path, Vec<Path>>,
    /// The outermost path in what each function returns, by the function's full path, and the module it is in.
    pub(crate) returns: HashMap<Path, (Path, Path)>,
    /// Crates that go by another name, by that name.
    pub(crate) renamed: HashMap<String, String>,
    outlines: Vec<Outline>,
}

/// The names of one module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) imports: HashMap<String, Path>,
    pub(crate) globs: Vec<Path>,
    pub(crate) items: HashSet<String>,
}

/// Where a function is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The module it is in, from `crate`.
    pub module: Path,
    /// The type or trait it is a method of, as its block names it.
    pub this: Option<Path>,
    signature: String,
}

/// A function with a body.
#[derive(Clone)]
pub struct Function {
    /// The module it is in, from `crate`.
    pub module: Path,
    /// The type or trait it is a method of, as its block names it.
    pub this: Option<Path>,
    /// Its attributes.
    pub attrs: Vec<Attribute>,
    /// Its signature.
    pub signature: Signature,
    /// What is between its braces, with them.
    pub body: TokenStream,
}

/// What [`Index::add`] came across.
#[derive(Default)]
pub struct Found {
    /// Functions and methods with bodies.
    pub functions: Vec<Function>,
    /// Modules that are in files of their own, and the module that declares each.
    pub elsewhere: Vec<(Path, ItemMod)>,
}

impl Index {
    /// Adds items of the module `module`, without those that `skip` says are not there.
    pub fn add(&mut self, items: Vec<Item>, module: &Path, skip: &dyn Fn(&[Attribute]) -> bool) -> Found {
        let mut found = Found::default();
        self.add_module(items, module, skip, &mut found);
        found
    }

    /// Says that the crate `package` goes by the name `name`.
    pub fn rename(&mut self, name: &str, package: &str) {
        self.renamed.insert(name.replace('-', "_"), package.replace('-', "_"));
    }

    /// Where the function with this signature is, if there is only one.
    #[must_use]
    pub fn find(&self, signature: &Signature) -> Option<&Outline> {
        let wanted = signature.to_token_stream().to_string();
        let mut all = self.outlines.iter().filter(|outline| outline.signature == wanted);
        let first = all.next()?;
        all.all(|other| other.module == first.module && other.this == first.this).then_some(first)
    }

    fn add_module(&mut self, items: Vec<Item>, module: &Path, skip: &dyn Fn(&[Attribute]) -> bool, found: &mut Found) {
        self.modules.entry(module.clone()).or_default();
        for item in items {
            if skip(attributes(&item)) {
                continue;
            }
            self.add_item(item, module, skip, found);
        }
    }

    fn names(&mut self, module: &Path) -> &mut Module {
        self.modules.entry(module.clone()).or_default()
    }

    fn add_item(&mut self, item: Item, module: &Path, skip: &dyn Fn(&[Attribute]) -> bool, found: &mut Found) {
        match item {
            Item::Use(item) => {
                let names = self.names(module);
                uses(&item.tree, &Vec::new(), &mut names.imports, &mut names.globs);
            }
            Item::ExternCrate(item) => {
                if let Some((_, name)) = item.rename {
                    self.names(module).imports.insert(name.to_string(), vec![item.ident.to_string()]);
                }
            }
            Item::Type(item) => {
                // An alias stands for the first path of its type.
                if let Some(target) = type_paths(item.ty.to_token_stream()).into_iter().next() {
                    self.names(module).imports.insert(item.ident.to_string(), target);
                }
            }
            Item::Static(item) => self.add_value(module, &item.ident.to_string(), item.ty.to_token_stream()),
            Item::Const(item) => self.add_value(module, &item.ident.to_string(), item.ty.to_token_stream()),
            Item::Struct(item) => {
                let name = item.ident.to_string();
                self.fields.insert(child(module, &name), fields(&item.fields));
                self.names(module).items.insert(name);
            }
            Item::Enum(item) => {
                self.names(module).items.insert(item.ident.to_string());
            }
            Item::Fn(item) => {
                self.names(module).items.insert(item.sig.ident.to_string());
                let body = item.block.into_token_stream();
                self.function(
                    Function { module: module.clone(), this: None, attrs: item.attrs, signature: item.sig, body },
                    found,
                );
            }
            Item::Mod(item) => self.add_submodule(item, module, skip, found),
            Item::Impl(item) => self.add_impl(item, module, skip, found),
            Item::Trait(item) => self.add_trait(item, module, skip, found),
            _ => {}
        }
    }

    fn add_value(&mut self, module: &Path, name: &str, ty: TokenStream) {
        self.values.insert(child(module, name), type_paths(ty));
        self.names(module).items.insert(name.to_owned());
    }

    fn add_submodule(
        &mut self,
        mut item: ItemMod,
        module: &Path,
        skip: &dyn Fn(&[Attribute]) -> bool,
        found: &mut Found,
    ) {
        let name = item.ident.to_string();
        self.names(module).items.insert(name.clone());
        match item.content.take() {
            Some((_, items)) => self.add_module(items, &child(module, &name), skip, found),
            None => found.elsewhere.push((module.clone(), item)),
        }
    }

    fn add_impl(&mut self, item: ItemImpl, module: &Path, skip: &dyn Fn(&[Attribute]) -> bool, found: &mut Found) {
        let this = type_paths(item.self_ty.to_token_stream()).into_iter().next();
        for method in item.items {
            if let ImplItem::Fn(method) = method
                && !skip(&method.attrs)
            {
                let body = method.block.into_token_stream();
                let (attrs, signature) = (method.attrs, method.sig);
                self.function(Function { module: module.clone(), this: this.clone(), attrs, signature, body }, found);
            }
        }
    }

    fn add_trait(&mut self, item: ItemTrait, module: &Path, skip: &dyn Fn(&[Attribute]) -> bool, found: &mut Found) {
        let name = item.ident.to_string();
        self.names(module).items.insert(name.clone());
        for method in item.items {
            if let TraitItem::Fn(method) = method
                && !skip(&method.attrs)
                && let Some(block) = method.default
            {
                let this = Some(vec![name.clone()]);
                let (attrs, signature) = (method.attrs, method.sig);
                let body = block.into_token_stream();
                self.function(Function { module: module.clone(), this, attrs, signature, body }, found);
            }
        }
    }

    fn function(&mut self, function: Function, found: &mut Found) {
        let Function { module, this, signature, .. } = &function;
        if let ReturnType::Type(_, output) = &signature.output
            && signature.asyncness.is_none()
            && let Some(outermost) = type_paths(output.to_token_stream()).into_iter().next()
        {
            let owner: Path = module.iter().chain(this.iter().flatten()).cloned().collect();
            let full = child(&owner, &signature.ident.to_string());
            self.returns.insert(full, (module.clone(), outermost));
        }
        self.outlines.push(Outline {
            module: function.module.clone(),
            this: function.this.clone(),
            signature: function.signature.to_token_stream().to_string(),
        });
        found.functions.push(function);
    }
}

/// The path of something in a module.
pub(crate) fn child(module: &[String], name: &str) -> Path {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The names that a `use` brings.
pub(crate) fn uses(tree: &UseTree, before: &Path, imports: &mut HashMap<String, Path>, globs: &mut Vec<Path>) {
    match tree {
        UseTree::Path(path) => uses(&path.tree, &child(before, &path.ident.to_string()), imports, globs),
        UseTree::Name(name) if name.ident == "self" => {
            if let Some(last) = before.last() {
                imports.insert(last.clone(), before.clone());
            }
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            imports.insert(name.clone(), child(before, &name));
        }
        UseTree::Rename(rename) => {
            let path = if rename.ident == "self" { before.clone() } else { child(before, &rename.ident.to_string()) };
            imports.insert(rename.rename.to_string(), path);
        }
        UseTree::Glob(_) => globs.push(before.clone()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| uses(tree, before, imports, globs)),
    }
}

/// The imports among the statements of a block.
pub(crate) fn block_imports(group: &Group) -> Imports {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut imports = Imports::new();
    for at in (0..trees.len()).filter(|at| word(&trees, *at).as_deref() == Some("use")) {
        let end = (at..trees.len()).find(|end| is_punct(&trees, *end, ';')).map_or(trees.len(), |end| end + 1);
        let item: TokenStream = trees[at..end].iter().cloned().collect();
        if let Ok(item) = syn::parse2::<syn::ItemUse>(item) {
            uses(&item.tree, &Path::new(), &mut imports, &mut Vec::new());
        }
    }
    imports
}

fn fields(fields: &Fields) -> HashMap<String, Vec<Path>> {
    let named = fields.iter().enumerate().map(|(index, field)| {
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
        (name, type_paths(field.ty.to_token_stream()))
    });
    named.collect()
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        _ => &[],
    }
}
