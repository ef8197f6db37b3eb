//! What values stand for: those of `let`s, of patterns, of statics, and those that functions hand out.

use proc_macro2::{Delimiter, TokenTree};

use super::{Pending, Scope, Walker};
use crate::binding::{Binding, Let, arm_names, is_harmless, made_client, pattern_names};
use crate::index::child;
use crate::services::client_of;
use crate::tokens::{group, is_dot, is_keyword, is_punct, member, path, word};

impl Walker<'_> {
    /// The client that a function of the same crate hands out.
    pub(super) fn returned_client(&self, function: &[String]) -> Option<Binding> {
        let returned = self.names.returned(function)?;
        client_of(&returned).map(Binding::Client)
    }

    /// What is known about a static or a constant.
    pub(super) fn global(&self, path: &[String]) -> Option<Binding> {
        self.names.value(&self.resolve(path)).map(Binding::of_paths)
    }

    /// Walks `match value { .. }` or `for pattern in value { .. }`, in which names stand for parts of the value; where to go on.
    pub(super) fn bound_block(&mut self, trees: &[TokenTree], at: usize, keyword: &str) -> usize {
        let Some(end) = (at + 1..trees.len()).find(|end| group(trees, *end, Delimiter::Brace).is_some()) else {
            return at + 1;
        };
        let Some(block) = group(trees, end, Delimiter::Brace).cloned() else { return at + 1 };
        let (names, start) = if keyword == "match" {
            (arm_names(&block.stream().into_iter().collect::<Vec<_>>()), at + 1)
        } else {
            // `impl Trait for Type` and `for<'a>` have no `in`.
            let Some(of) = (at + 1..end).find(|of| word(trees, *of).as_deref() == Some("in")) else { return at + 1 };
            (pattern_names(&trees[at + 1..of]), of + 1)
        };
        let binding = self.binding_of_place(&trees[start..end]);
        self.statements(&trees[start..end]);
        self.scopes.push(Scope::default());
        names.into_iter().for_each(|name| self.bind(name, binding.clone()));
        self.group(&block);
        self.scopes.pop();
        end + 1
    }

    pub(super) fn read_let(&self, trees: &[TokenTree]) -> Pending {
        let found = Let::read(trees);
        let tokens = trees.iter().take(found.names.len().min(1)).cloned().collect();
        let binding = if found.begins_transaction() {
            Binding::Transaction
        } else if !found.ty.is_empty() {
            Binding::of_type(found.ty.iter().cloned().collect(), &|path| self.resolve(path))
        } else {
            self.binding_of_value(&found)
        };
        Some((found.names, binding, tokens))
    }

    fn binding_of_value(&self, found: &Let<'_>) -> Binding {
        if let Some(owner) = found.made_of() {
            let maker = child(&owner, "new");
            return match made_client(&self.resolve(&maker)) {
                Some(_) if self.region.is_some() && self.silent == 0 => Binding::Reported,
                Some(service) => Binding::Client(service),
                None => Binding::of_paths(vec![self.resolve(&owner)]),
            };
        }
        self.binding_of_place(found.value)
    }

    /// The binding of `&name.field.clone()`, whose block may follow.
    fn binding_of_place(&self, value: &[TokenTree]) -> Binding {
        let is_before = |at: &usize| is_punct(value, *at, '&') || word(value, *at).as_deref() == Some("mut");
        let start = (0..value.len()).find(|at| !is_before(at)).unwrap_or(0);
        if word(value, start).is_none_or(|word| is_keyword(&word)) {
            return Binding::Plain;
        }
        let (segments, mut at) = path(value, start);
        let local = if segments.len() == 1 { self.binding(&segments[0]).cloned() } else { None };
        let mut current = local.or_else(|| self.global(&segments)).unwrap_or(Binding::Plain);
        while is_dot(value, at) {
            let Some(member) = member(value, at + 1) else { return Binding::Plain };
            let arguments = group(value, at + 2, Delimiter::Parenthesis);
            if arguments.is_some_and(|arguments| !is_harmless(&member, arguments.stream().is_empty())) {
                return Binding::Plain;
            }
            if let (None, Binding::Typed(types)) = (arguments, &current) {
                current = Binding::of_paths(types.iter().flat_map(|owner| self.names.field(owner, &member)).collect());
            }
            at += if arguments.is_some() { 3 } else { 2 };
        }
        let is_whole = at >= value.len() || group(value, at, Delimiter::Brace).is_some();
        if is_whole { current } else { Binding::Plain }
    }
}
