//! What the README shows can be pasted: its examples are compiled as they are seen.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[test]
fn no_example_has_lines_that_readers_do_not_see_or_should_not() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut is_example, mut examples) = (false, 0);
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            is_example = !is_example && language.starts_with("rust");
            examples += usize::from(is_example);
            assert!(!language.contains("ignore"), "line {}: every example is compiled", index + 1);
        } else if is_example {
            let hidden = line == "#" || line.starts_with("# ");
            assert!(!hidden, "line {}: rustdoc hides it, and whoever pastes the example gets it: `{line}`", index + 1);
        }
    }
    assert!(examples >= 4, "{examples} examples");
}
