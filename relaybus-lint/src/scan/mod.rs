//! Walks the tokens of a body and notes its calls.

mod follow;

use std::collections::HashMap;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, Pat, Signature};

use crate::Path;
use crate::allow::Allowed;
use crate::binding::{Binding, is_harmless};
use crate::event::{Call, Event, Region, RegionKind, What};
use crate::index::{block_imports, child};
use crate::names::{Imports, Names};
use crate::services::{Service, service_of};
use crate::tokens::{
    after_dot, after_turbofish, calls, group, is_dot, is_keyword, is_path_separator, is_punct, member, path,
    statement_end, word,
};

/// What a body calls.
#[derive(Debug, Default)]
pub struct Scan {
    /// What was found, in the order of the text.
    pub events: Vec<Event>,
    /// The transactions that are opened in the body.
    pub regions: Vec<Region>,
    /// The attributes that allow a call, all of them.
    pub allowed: Vec<Allowed>,
}

impl Scan {
    /// Walks a body. `whole` points at what makes all of it a transaction, where that is so.
    #[must_use]
    pub fn of(body: TokenStream, signature: Option<&Signature>, names: &Names<'_>, whole: Option<TokenStream>) -> Self {
        let mut walker =
            Walker { names, scopes: vec![Scope::default()], region: None, silent: 0, scan: Self::default() };
        if let Some(tokens) = whole {
            walker.region = Some(walker.open(RegionKind::Whole, tokens));
        }
        walker.bind_parameters(signature);
        let trees: Vec<TokenTree> = body.into_iter().collect();
        walker.statements(&trees);
        walker.scan
    }

    /// The calls to other services inside transactions.
    pub fn external(&self) -> impl Iterator<Item = (&Event, &'static Service)> {
        self.events.iter().filter(|event| event.region.is_some()).filter_map(|event| match event.what {
            What::External(service) => Some((event, service)),
            What::Detached | What::Call(_) => None,
        })
    }
}

/// The names of a block.
#[derive(Default)]
struct Scope {
    bindings: HashMap<String, Binding>,
    imports: Imports,
}

struct Walker<'n> {
    names: &'n Names<'n>,
    scopes: Vec<Scope>,
    region: Option<usize>,
    /// Depth of statements whose calls are allowed.
    silent: usize,
    scan: Scan,
}

type Pending = Option<(Vec<String>, Binding, TokenStream)>;

impl Walker<'_> {
    fn bind_parameters(&mut self, signature: Option<&Signature>) {
        if let Some(this) = self.names.this() {
            self.bind("self".to_owned(), Binding::of_paths(vec![this.clone()]));
        }
        for input in signature.into_iter().flat_map(|signature| &signature.inputs) {
            if let FnArg::Typed(argument) = input {
                let binding = Binding::of_type(argument.ty.to_token_stream(), &|path| self.resolve(path));
                let name = match &*argument.pat {
                    Pat::Ident(pattern) => Some(pattern.ident.to_string()),
                    // `State(client): State<reqwest::Client>`.
                    Pat::TupleStruct(pattern) => match pattern.elems.first() {
                        Some(Pat::Ident(inner)) => Some(inner.ident.to_string()),
                        _ => None,
                    },
                    _ => None,
                };
                if let Some(name) = name {
                    self.bind(name, binding);
                }
            }
        }
    }

    fn bind(&mut self, name: String, binding: Binding) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.bindings.insert(name, binding);
        }
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        self.scopes.iter().rev().find_map(|scope| scope.bindings.get(name))
    }

    fn resolve(&self, path: &[String]) -> Path {
        let import = path.first().and_then(|first| self.scopes.iter().rev().find_map(|scope| scope.imports.get(first)));
        match import {
            Some(target) => {
                let target: Path = target.iter().chain(&path[1..]).cloned().collect();
                self.names.resolve(&target)
            }
            None => self.names.resolve(path),
        }
    }

    fn open(&mut self, kind: RegionKind, tokens: TokenStream) -> usize {
        self.scan.regions.push(Region { kind, tokens });
        self.scan.regions.len() - 1
    }

    fn note(&mut self, what: What, name: String, full: Option<String>, tokens: &[TokenTree]) {
        if self.silent == 0 {
            let tokens = tokens.iter().cloned().collect();
            self.scan.events.push(Event { what, name, full, tokens, region: self.region });
        }
    }

    fn group(&mut self, group: &Group) {
        let is_block = group.delimiter() == Delimiter::Brace;
        let region = self.region;
        if is_block {
            self.scopes.push(Scope { imports: block_imports(group), ..Scope::default() });
        }
        let trees: Vec<TokenTree> = group.stream().into_iter().collect();
        self.statements(&trees);
        if is_block {
            self.scopes.pop();
            self.region = region;
        }
    }

    fn statements(&mut self, trees: &[TokenTree]) {
        let mut pending: Pending = None;
        let mut at = 0;
        while at < trees.len() {
            if let Some(allowed) = Allowed::at(trees, at) {
                self.scan.allowed.push(allowed);
                let end = statement_end(trees, at + 2);
                self.silent += 1;
                self.statements(&trees[at + 2..end]);
                self.silent -= 1;
                at = end;
                continue;
            }
            at = match &trees[at] {
                TokenTree::Punct(punct) => {
                    if punct.as_char() == ';' {
                        self.settle(&mut pending);
                    }
                    self.after_punct(trees, at)
                }
                TokenTree::Ident(_) => self.ident(trees, at, &mut pending),
                TokenTree::Group(group) => {
                    if group.delimiter() == Delimiter::Brace {
                        self.settle(&mut pending);
                    }
                    let entered = self.enter_closure(trees, at);
                    self.group(group);
                    if entered {
                        self.region = None;
                    }
                    at + 1
                }
                TokenTree::Literal(_) => at + 1,
            };
        }
        self.settle(&mut pending);
    }

    /// The end of an attribute that begins at `at`, or the next token.
    fn after_punct(&self, trees: &[TokenTree], at: usize) -> usize {
        let inner = usize::from(is_punct(trees, at + 1, '!'));
        let is_attribute = is_punct(trees, at, '#') && group(trees, at + 1 + inner, Delimiter::Bracket).is_some();
        if is_attribute { at + 2 + inner } else { at + 1 }
    }

    /// Handles the word at `at`; where to go on.
    fn ident(&mut self, trees: &[TokenTree], at: usize, pending: &mut Pending) -> usize {
        let name = word(trees, at).unwrap_or_default();
        if after_dot(trees, at) {
            if name.starts_with("publish") && name.ends_with("detached") && calls(trees, at + 1) {
                self.note(What::Detached, name, None, &trees[at..=at]);
            }
            return at + 1;
        }
        match name.as_str() {
            "let" => {
                *pending = self.read_let(&trees[at + 1..]);
                at + 1
            }
            "use" => (at..trees.len()).find(|end| is_punct(trees, *end, ';')).unwrap_or(trees.len()),
            // A function or a macro inside the body is not run by it.
            "fn" | "macro_rules" if word(trees, at + 1).is_some() || is_punct(trees, at + 1, '!') => {
                let end = (at..trees.len()).find(|end| group(trees, *end, Delimiter::Brace).is_some());
                end.map_or(trees.len(), |end| end + 1)
            }
            "match" | "for" => self.bound_block(trees, at, &name),
            word if is_keyword(word) => at + 1,
            _ => self.path(trees, at),
        }
    }

    fn path(&mut self, trees: &[TokenTree], at: usize) -> usize {
        let (segments, end) = path(trees, at);
        let absolute = at >= 2 && is_path_separator(trees, at - 2);
        // The rest of `<T as Trait>::function`.
        if absolute && at >= 3 && is_punct(trees, at - 3, '>') {
            return end;
        }
        let is_local = segments.len() == 1 && !absolute;
        if is_local && (segments[0] == "self" || self.binding(&segments[0]).is_some()) {
            let binding = self.binding(&segments[0]).cloned().unwrap_or(Binding::Plain);
            self.receiver(trees, at, end, binding);
            return end;
        }
        if is_dot(trees, end)
            && let Some(binding) = self.global(&segments)
        {
            self.receiver(trees, at, end, binding);
            return end;
        }
        if calls(trees, end) || self.is_value(trees, at, end, &segments) {
            let full = if absolute { segments.clone() } else { self.resolve(&segments) };
            let written = segments.join("::");
            match service_of(&full) {
                Some(service) => {
                    let full = Some(full.join("::")).filter(|full| *full != written);
                    self.note(What::External(service), written, full, &trees[at..end]);
                }
                None => {
                    let returned = self.returned_client(&full);
                    self.note(What::Call(Call::Function(full)), written, None, &trees[at..end]);
                    if let (Some(client), Some(_)) = (returned, group(trees, end, Delimiter::Parenthesis)) {
                        self.receiver(trees, at, end + 1, client);
                    }
                }
            }
        }
        end
    }

    /// Whether a path is a function that is handed over: `.map(reqwest::get)`.
    fn is_value(&self, trees: &[TokenTree], at: usize, end: usize, segments: &[String]) -> bool {
        let is_function = segments.last().is_some_and(|last| last.starts_with(char::is_lowercase));
        let begins = at == 0 || is_punct(trees, at - 1, ',') || is_punct(trees, at - 1, '=');
        let alone = begins && (end == trees.len() || is_punct(trees, end, ',') || is_punct(trees, end, ';'));
        segments.len() > 1 && is_function && alone
    }

    /// Follows the fields and methods of a name that ends at `end`, up to the first call that matters.
    fn receiver(&mut self, trees: &[TokenTree], start: usize, end: usize, mut current: Binding) {
        let mut at = end;
        while is_dot(trees, at) {
            let Some(member) = member(trees, at + 1) else { return };
            let end = after_turbofish(trees, at + 2);
            if group(trees, end, Delimiter::Parenthesis).is_none() {
                current = match &current {
                    Binding::Typed(types) => {
                        Binding::of_paths(types.iter().flat_map(|owner| self.names.field(owner, &member)).collect())
                    }
                    _ => return,
                };
                at += 2;
                continue;
            }
            let is_bare = group(trees, end, Delimiter::Parenthesis).is_some_and(|it| it.stream().is_empty());
            match current {
                Binding::Transaction if member == "commit" || member == "rollback" => {
                    self.region = None;
                    return;
                }
                Binding::Client(_) if is_harmless(&member, is_bare) => {}
                Binding::Typed(types) if is_harmless(&member, is_bare) && types.len() > 1 => {
                    current = Binding::Typed(types)
                }
                Binding::Client(service) => {
                    let shown: String = trees[start..at + 2].iter().map(ToString::to_string).collect();
                    self.note(What::External(service), shown, None, &trees[start..at + 2]);
                    return;
                }
                Binding::Typed(types) => {
                    let shown: String = trees[start..at + 2].iter().map(ToString::to_string).collect();
                    let returned = types.iter().find_map(|owner| self.returned_client(&child(owner, &member)));
                    self.note(What::Call(Call::Method(types, member)), shown, None, &trees[start..at + 2]);
                    let Some(client) = returned else { return };
                    current = client;
                }
                Binding::Plain | Binding::Reported | Binding::Transaction => return,
            }
            at = end + 1;
        }
    }

    /// A `let` takes effect at its end.
    fn settle(&mut self, pending: &mut Pending) {
        let Some((names, binding, tokens)) = pending.take() else { return };
        if binding == Binding::Transaction && self.region.is_none() {
            let region = self.open(RegionKind::ByHand, tokens);
            self.region = Some(region);
        }
        for name in names {
            self.bind(name, binding.clone());
        }
    }

    /// Enters a transaction if the group at `at` is the argument of `.transaction(..)` and has a closure.
    fn enter_closure(&mut self, trees: &[TokenTree], at: usize) -> bool {
        let Some(argument) = group(trees, at, Delimiter::Parenthesis) else { return false };
        let is_method = at >= 2 && after_dot(trees, at - 1);
        let name = at.checked_sub(1).and_then(|at| word(trees, at)).unwrap_or_default();
        let is_transaction = is_method && (name == "transaction" || name == "transaction_at");
        let inside: Vec<TokenTree> = argument.stream().into_iter().collect();
        let has_closure = (0..inside.len()).any(|at| is_punct(&inside, at, '|'));
        if !is_transaction || !has_closure || self.region.is_some() {
            return false;
        }
        let region = self.open(RegionKind::Closure, trees[at - 1].clone().into());
        self.region = Some(region);
        true
    }
}
