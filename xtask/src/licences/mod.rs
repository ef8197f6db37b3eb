//! `cargo xtask licences`: licence and origin of every package that Cargo.lock can bring into a build, on any platform.
//!
//! A licence is allowed when the list below satisfies the expression in the package's manifest; an origin, when it is
//! this workspace or the public registry. Known vulnerabilities are not looked up: that needs a network.

mod expression;

use serde_json::Value;

use crate::Outcome;
use crate::workspace::{metadata, packages};
use expression::Expression;

/// Licences that go with `MIT OR Apache-2.0`. `MPL-2.0` would too, file by file: it is listed when a package needs it.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Where Cargo.lock says that packages of the public registry come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every package.
///
/// # Errors
///
/// When `cargo metadata` fails or a package has a licence or an origin that is not allowed: each is printed.
pub(crate) fn run() -> Outcome {
    let metadata = metadata(&[])?;
    let packages = packages(&metadata);
    let objections: Vec<String> = packages.iter().flat_map(objections).collect();
    if objections.is_empty() {
        return Ok(format!("licences: {} packages, all allowed", packages.len()));
    }
    objections.iter().for_each(|objection| println!("{objection}"));
    Err(format!("{} objections to licences or origins of dependencies", objections.len()).into())
}

fn objections(package: &Value) -> Vec<String> {
    let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
    let mut objections = Vec::new();
    let licence = text(&package["license"]);
    if licence.is_empty() {
        objections.push(format!("{name}: the manifest states no licence"));
    } else {
        match Expression::parse(licence) {
            Ok(expression) if expression.allowed(&|name| ALLOWED.contains(&name)) => {}
            Ok(_) => objections.push(format!("{name}: `{licence}` is not allowed")),
            Err(error) => objections.push(format!("{name}: `{licence}` is not a licence expression: {error}")),
        }
    }
    let source = text(&package["source"]);
    if !source.is_empty() && source != REGISTRY {
        objections.push(format!("{name}: comes from `{source}`, expected the public registry"));
    }
    objections
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ALLOWED, REGISTRY, objections};

    fn package(licence: Value, source: Value) -> Value {
        json!({ "name": "left-pad", "version": "1.0.0", "license": licence, "source": source })
    }

    #[test]
    fn allowed_licences_from_allowed_origins_pass() {
        assert!(objections(&package(json!("MIT OR Apache-2.0"), json!(REGISTRY))).is_empty());
        assert!(objections(&package(json!("MIT"), Value::Null)).is_empty(), "a member of the workspace");
    }

    #[test]
    fn each_objection_names_the_package_and_the_reason() {
        let cases = [
            (package(json!("GPL-3.0-only"), json!(REGISTRY)), "left-pad 1.0.0: `GPL-3.0-only` is not allowed"),
            (package(Value::Null, json!(REGISTRY)), "left-pad 1.0.0: the manifest states no licence"),
            (
                package(json!("MIT, Apache-2.0"), json!(REGISTRY)),
                "left-pad 1.0.0: `MIT, Apache-2.0` is not a licence expression: \
                 unexpected `Apache-2.0`: expected `OR`, `AND` or the end",
            ),
            (
                package(json!("MIT"), json!("git+https://example.org/left-pad")),
                "left-pad 1.0.0: comes from `git+https://example.org/left-pad`, expected the public registry",
            ),
        ];
        for (package, expected) in cases {
            assert_eq!(objections(&package), [expected]);
        }
    }

    #[test]
    fn the_list_is_sorted_so_that_it_can_be_read() {
        assert!(ALLOWED.is_sorted());
    }
}
