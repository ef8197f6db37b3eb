//! The rules of a list of handlers.

use quote::ToTokens;

use super::parse::Model;
use crate::diag::Diagnostics;

/// Reports a handler that is listed twice, and keeps the first.
pub(crate) fn model(model: &mut Model, diag: &mut Diagnostics) {
    let mut seen = Vec::new();
    model.handlers.retain(|handler| {
        let written = handler.to_token_stream().to_string();
        let repeated = seen.contains(&written);
        if repeated {
            diag.over(handler, format!("`{}` is listed twice: keep one", written.replace(' ', "")));
        }
        seen.push(written);
        !repeated
    });
}
