//! Each feature alone, and none: what compiles with the default features need not compile without.

use serde_json::Value;

use crate::Outcome;
use crate::test_command::finished;
use crate::workspace::{cargo, metadata, packages};

/// Lints every member that has features once without any and once with each alone.
///
/// # Errors
///
/// When one of these choices does not compile or has a warning: it is named.
pub(crate) fn run() -> Outcome {
    let metadata = metadata(&["--no-deps"])?;
    let choices: Vec<Choice> = packages(&metadata).iter().flat_map(choices).collect();
    for choice in &choices {
        println!("--- {} with {}", choice.package, choice.feature.as_deref().unwrap_or("no feature"));
        let mut command = cargo();
        command.args(["clippy", "--package", &choice.package, "--no-default-features"]);
        if let Some(feature) = &choice.feature {
            command.args(["--features", feature]);
        }
        finished(command.args(["--", "-D", "warnings"]))?;
    }
    Ok(format!("{} choices of features", choices.len()))
}

/// A package with one feature on, or none.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    package: String,
    feature: Option<String>,
}

/// The choices for a package of `cargo metadata`; features that start with `_` are internal.
fn choices(package: &Value) -> Vec<Choice> {
    let name = package["name"].as_str().unwrap_or_default();
    let features = package["features"].as_object().into_iter().flat_map(|features| features.keys());
    let features: Vec<&String> = features.filter(|name| *name != "default" && !name.starts_with('_')).collect();
    if features.is_empty() {
        return Vec::new();
    }
    let each = features.into_iter().map(|feature| Some(feature.clone()));
    let choice = |feature| Choice { package: name.to_owned(), feature };
    std::iter::once(None).chain(each).map(choice).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::choices;

    #[test]
    fn a_package_is_tried_without_features_and_with_each() {
        let package =
            json!({ "name": "stores", "features": { "default": ["sqlite"], "postgres": [], "sqlite": [], "_x": [] } });
        let tried: Vec<_> = choices(&package).into_iter().map(|choice| choice.feature).collect();
        assert_eq!(tried, [None, Some("postgres".to_owned()), Some("sqlite".to_owned())]);
    }

    #[test]
    fn a_package_without_features_needs_no_choice() {
        assert!(choices(&json!({ "name": "bus", "features": {} })).is_empty());
        assert!(choices(&json!({ "name": "bus", "features": { "default": [] } })).is_empty());
    }
}
