//! Reads the values of arguments by their kind; a value of another kind is reported with what was expected.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit, LitStr, Path};

use crate::args::{Argument, Arguments, Content, Given, Kind};
use crate::diag::Diagnostics;
use crate::grammar;

/// A value and where it was written.
#[derive(Clone, Copy)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl Arguments {
    /// Whether the flag is given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The settings in the parentheses of `name`.
    pub(crate) fn list(&self, name: &str) -> Option<&Self> {
        match &self.find(name)?.content {
            Content::List(list) => Some(list),
            Content::Nothing | Content::Value(_) => None,
        }
    }

    /// The value of `name` as it was written, without the invisible groups that macros by example add.
    pub(crate) fn expr(&self, name: &str) -> Option<&Expr> {
        self.value(name).map(|(_, expr)| expr)
    }

    /// A text.
    pub(crate) fn text(&self, name: &str, diag: &mut Diagnostics) -> Option<LitStr> {
        let (given, expr) = self.value(name)?;
        let text = text_of(expr);
        if text.is_none() {
            wrong_kind(given.argument, expr, diag);
        }
        text.cloned()
    }

    /// A name.
    pub(crate) fn name(&self, name: &str, diag: &mut Diagnostics) -> Option<Ident> {
        let (given, expr) = self.value(name)?;
        let found = path_of(expr).and_then(|path| path.get_ident().cloned());
        if found.is_none() {
            wrong_kind(given.argument, expr, diag);
        }
        found
    }

    /// A path.
    pub(crate) fn path(&self, name: &str, diag: &mut Diagnostics) -> Option<Path> {
        let (given, expr) = self.value(name)?;
        let path = path_of(expr);
        if path.is_none() {
            match text_of(expr) {
                Some(text) => {
                    diag.over(expr, format!("`{name}` is written without quotes: `{name} = {}`", text.value()))
                }
                None => wrong_kind(given.argument, expr, diag),
            }
        }
        path.cloned()
    }

    /// A whole number of at least 1.
    pub(crate) fn count<N>(&self, name: &str, diag: &mut Diagnostics) -> Option<N>
    where
        N: std::str::FromStr<Err: std::fmt::Display> + PartialEq + Default,
    {
        let (given, expr) = self.value(name)?;
        let count = match literal(expr) {
            Some(Lit::Int(number)) => number.base10_parse::<N>().ok().filter(|count| *count != N::default()),
            _ => None,
        };
        if count.is_none() {
            wrong_kind(given.argument, expr, diag);
        }
        count
    }

    /// A finite number of at least 1.
    pub(crate) fn factor(&self, name: &str, diag: &mut Diagnostics) -> Option<f64> {
        let (given, expr) = self.value(name)?;
        let number = match literal(expr) {
            Some(Lit::Float(number)) => number.base10_parse::<f64>().ok(),
            Some(Lit::Int(number)) => number.base10_parse::<f64>().ok(),
            _ => None,
        };
        let number = number.filter(|number| number.is_finite() && *number >= 1.0);
        if number.is_none() {
            wrong_kind(given.argument, expr, diag);
        }
        number
    }

    /// A duration of more than nothing, in milliseconds.
    pub(crate) fn duration(&self, name: &str, diag: &mut Diagnostics) -> Option<At<u64>> {
        let (given, expr) = self.value(name)?;
        let Some(text) = text_of(expr) else {
            wrong_kind(given.argument, expr, diag);
            return None;
        };
        match grammar::duration(&text.value()) {
            Ok(0) => {
                diag.over(expr, format!("`{name}` must be longer than nothing: write `{}`", given.argument.example));
                None
            }
            Ok(value) => Some(At { value, span: expr.span() }),
            Err(message) => {
                diag.over(expr, message);
                None
            }
        }
    }

    fn value(&self, name: &str) -> Option<(&Given, &Expr)> {
        let given = self.find(name)?;
        match &given.content {
            Content::Value(expr) => Some((given, ungrouped(expr))),
            Content::Nothing | Content::List(_) => None,
        }
    }
}

/// Reports a value that is not what the argument takes.
pub(crate) fn wrong_kind(argument: &Argument, value: impl ToTokens, diag: &mut Diagnostics) {
    let what = match argument.kind {
        Kind::Value(what) => what,
        Kind::Flag => "no value",
        Kind::List(_) => "its settings in parentheses",
    };
    diag.over(value, format!("`{}` takes {what}: write `{}`", argument.name, argument.example));
}

/// An expression out of the invisible groups that macros by example put around it.
pub(crate) fn ungrouped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => ungrouped(&group.expr),
        expr => expr,
    }
}

/// The literal that `expr` is.
pub(crate) fn literal(expr: &Expr) -> Option<&Lit> {
    match ungrouped(expr) {
        Expr::Lit(ExprLit { attrs, lit, .. }) if attrs.is_empty() => Some(lit),
        _ => None,
    }
}

/// The text that `expr` is.
pub(crate) fn text_of(expr: &Expr) -> Option<&LitStr> {
    match literal(expr)? {
        Lit::Str(text) => Some(text),
        _ => None,
    }
}

fn path_of(expr: &Expr) -> Option<&Path> {
    match ungrouped(expr) {
        Expr::Path(path) if path.qself.is_none() && path.attrs.is_empty() => Some(&path.path),
        _ => None,
    }
}
