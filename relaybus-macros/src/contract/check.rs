//! The rules of a contract that its words alone can break. What needs types is checked in constants.

use quote::ToTokens;

use super::parse::{Model, Part};
use crate::diag::Diagnostics;

/// Reports what is listed twice, and keeps the first.
pub(crate) fn model(model: &mut Model, diag: &mut Diagnostics) {
    once(&mut model.handlers, "handler", diag);
    for parts in [&mut model.consumes, &mut model.produces] {
        let mut seen: Vec<String> = Vec::new();
        parts.retain(|part| {
            let written = written(&part.catalog);
            let repeated = seen.contains(&written);
            if repeated {
                diag.over(&part.catalog, format!("`{written}` is listed twice: name its events together"));
            }
            seen.push(written);
            !repeated
        });
        for Part { only, .. } in parts {
            if let Some(only) = only {
                once(only, "event", diag);
            }
        }
    }
}

fn once<T: ToTokens>(items: &mut Vec<T>, what: &str, diag: &mut Diagnostics) {
    let mut seen: Vec<String> = Vec::new();
    items.retain(|item| {
        let written = written(item);
        let repeated = seen.contains(&written);
        if repeated {
            diag.over(item, format!("{what} `{written}` is listed twice: keep one"));
        }
        seen.push(written);
        !repeated
    });
}

fn written(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}
