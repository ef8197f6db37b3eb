//! Calls to other services inside transactions are compile errors: what the macros make of `relaybus-lint`.
//!
//! A macro is given one function. The imports, types and fields around it are read from the file it is in, where the
//! compiler says which that is; without it only what the function itself names is known.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::SystemTime;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use relaybus_lint::{Allowed, Event, Index, Names, Scan, Service};
use syn::{Attribute, Signature, Visibility};

use crate::diag::Diagnostics;

pub(crate) use relaybus_lint::without_allows;

/// A function or method as it was written.
pub(crate) struct Written {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    /// With its braces.
    pub(crate) body: TokenStream,
}

/// Whether an attribute allows a call.
pub(crate) fn is_allowance(attr: &Attribute) -> bool {
    Allowed::among(std::slice::from_ref(attr)).is_some()
}

/// Reports the calls to other services in a function that runs in a transaction.
pub(crate) fn transaction(attrs: &[Attribute], signature: &Signature, body: TokenStream, diag: &mut Diagnostics) {
    check(attrs, signature, body, Some(signature.ident.to_token_stream()), diag);
}

/// As [`transaction`], for a function that is not parsed yet. One that does not parse is another's to report.
pub(crate) fn transactional_item(item: &TokenStream, diag: &mut Diagnostics) {
    if let Ok(item) = syn::parse2::<syn::ItemFn>(item.clone()) {
        transaction(&item.attrs, &item.sig, item.block.into_token_stream(), diag);
    }
}

/// As [`transaction`], for all methods of a block that is not parsed yet.
pub(crate) fn transactional_block(item: &TokenStream, diag: &mut Diagnostics) {
    let block = syn::parse2::<syn::ItemImpl>(item.clone());
    for member in block.map(|block| block.items).unwrap_or_default() {
        if let syn::ImplItem::Fn(method) = member {
            transaction(&method.attrs, &method.sig, method.block.into_token_stream(), diag);
        }
    }
}

/// Reports the calls inside transactions, all of the body where `whole` is given, and allowances without a reason.
fn check(
    attrs: &[Attribute],
    signature: &Signature,
    body: TokenStream,
    whole: Option<TokenStream>,
    diag: &mut Diagnostics,
) {
    let index = index_of_file();
    let names = match index.find(signature) {
        Some(outline) => Names::at(&index, outline),
        None => Names::new(&index, &vec!["crate".to_owned()], None),
    };
    let scan = Scan::of(body, Some(signature), &names, whole);
    let on_function = Allowed::among(attrs);
    for allowed in scan.allowed.iter().chain(&on_function) {
        if let Some(fault) = allowed.fault() {
            diag.over(&allowed.tokens, fault);
        }
    }
    if on_function.is_none() {
        scan.external().for_each(|(event, service)| report(event, service, diag));
    }
}

fn report(event: &Event, service: &Service, diag: &mut Diagnostics) {
    let message = format!(
        "{} {} inside a transaction, whose locks and connection wait for the answer: call it before the transaction, \
         or in a consumer of its event, or say why it may stay with `#[allow_external_call(reason = \"..\")]`",
        event.shown(),
        service.does,
    );
    diag.over(&event.tokens, message);
}

/// The index of each file, as it was when the file last changed.
type Files = HashMap<PathBuf, (Option<SystemTime>, Rc<Index>)>;

thread_local! {
    static FILES: RefCell<Files> = RefCell::default();
}

/// The names in the file that is being compiled.
fn index_of_file() -> Rc<Index> {
    let Some(path) = proc_macro::is_available().then(|| Span::call_site().unwrap().local_file()).flatten() else {
        return Rc::default();
    };
    let changed = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
    let known =
        FILES.with_borrow(|files| files.get(&path).filter(|(at, _)| *at == changed).map(|(_, index)| index.clone()));
    known.unwrap_or_else(|| {
        let index = Rc::new(read(&path));
        FILES.with_borrow_mut(|files| files.insert(path, (changed, index.clone())));
        index
    })
}

fn read(path: &std::path::Path) -> Index {
    let mut index = Index::default();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if let Ok(file) = syn::parse_str::<syn::File>(&text) {
        index.add(file.items, &vec!["crate".to_owned()], &|_| false);
    }
    index
}

/// `#[lint_transactions]`: the closures of `.transaction(..)` in an item.
pub(crate) fn expand_lint(arguments: TokenStream, item: TokenStream) -> TokenStream {
    crate::diag::collect(|diag| {
        if let Some(first) = arguments.into_iter().next() {
            diag.at(first.span(), "`#[lint_transactions]` takes no arguments");
        }
        let as_written = without_allows(item.clone());
        match syn::parse2::<syn::Item>(item) {
            Ok(syn::Item::Fn(item)) => check(&item.attrs, &item.sig, item.block.into_token_stream(), None, diag),
            Ok(syn::Item::Impl(item)) => {
                for member in item.items {
                    if let syn::ImplItem::Fn(method) = member {
                        check(&method.attrs, &method.sig, method.block.into_token_stream(), None, diag);
                    }
                }
            }
            Ok(other) => diag.over(other, "`#[lint_transactions]` goes on a function or an impl block"),
            Err(error) => diag.push(error),
        }
        as_written
    })
}

/// `#[allow_external_call]` where it is an attribute of its own: on a function.
pub(crate) fn expand_allow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    crate::diag::collect(|diag| {
        let allowed = Allowed::of_arguments(arguments.clone());
        if let Some(fault) = allowed.fault() {
            diag.at(Span::call_site(), fault);
        }
        // Above the attribute of a transaction it comes first: it goes below, where that attribute reads it.
        match before_signature(&item) {
            Some((attrs, rest)) => {
                let name = Ident::new(relaybus_lint::ALLOW, Span::call_site());
                quote!(#attrs #[#name(#arguments)] #rest)
            }
            None => item,
        }
    })
}

/// The attributes of a function that another attribute of ours makes a transaction, and the rest of it.
fn before_signature(item: &TokenStream) -> Option<(TokenStream, TokenStream)> {
    let trees: Vec<TokenTree> = item.clone().into_iter().collect();
    let mut end = 0;
    let mut reads = false;
    while let (Some(TokenTree::Punct(pound)), Some(TokenTree::Group(attr))) = (trees.get(end), trees.get(end + 1)) {
        if pound.as_char() != '#' {
            break;
        }
        let name = attr.stream().into_iter().take_while(|tree| !matches!(tree, TokenTree::Group(_)));
        let last = name
            .filter_map(|tree| if let TokenTree::Ident(ident) = tree { Some(ident.to_string()) } else { None })
            .last();
        reads |= last.is_some_and(|name| ["transaction", "consumer", "lint_transactions"].contains(&name.as_str()));
        end += 2;
    }
    reads.then(|| (trees[..end].iter().cloned().collect(), trees[end..].iter().cloned().collect()))
}
