//! The grammars of texts in attributes: event types, handler ids and durations. Each returns what is wrong.

/// Longest event type, in characters.
const MAX_EVENT_TYPE: usize = 255;
/// Longest handler id, in bytes.
const MAX_HANDLER_ID: usize = 255;

/// Checks an event type: 1 to 255 characters of `A-Za-z0-9 . _ : / -`.
pub(crate) fn event_type(text: &str) -> Result<(), String> {
    let rule = "use 1 to 255 characters of `A-Za-z0-9 . _ : / -`, such as `order.placed.v1`";
    if text.is_empty() {
        return Err(format!("an event type must not be empty: {rule}"));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '/' | '-');
    if let Some(wrong) = text.chars().find(|c| !allowed(*c)) {
        return Err(format!("`{}` is not an event type, it has {}: {rule}", shown(text), shown_char(wrong)));
    }
    if text.len() > MAX_EVENT_TYPE {
        return Err(format!("an event type has at most {MAX_EVENT_TYPE} characters, this one has {}", text.len()));
    }
    Ok(())
}

/// Checks a handler id: 1 to 255 bytes without `#` and control characters.
pub(crate) fn handler_id(text: &str) -> Result<(), String> {
    let rule = "use 1 to 255 bytes without `#` and control characters, such as `shipping.ship`";
    if text.is_empty() {
        return Err(format!("a handler id must not be empty: {rule}"));
    }
    if let Some(wrong) = text.chars().find(|c| *c == '#' || c.is_control()) {
        return Err(format!("`{}` is not a handler id, it has {}: {rule}", shown(text), shown_char(wrong)));
    }
    if text.len() > MAX_HANDLER_ID {
        return Err(format!("a handler id has at most {MAX_HANDLER_ID} bytes, this one has {}", text.len()));
    }
    Ok(())
}

/// Reads a duration, in milliseconds: a whole number and `ms`, `s`, `m`, `h` or `d`.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    let refuse = || {
        format!(
            "`{}` is not a duration: write a whole number and one of `ms`, `s`, `m`, `h`, `d`, such as `250ms` or `7d`",
            shown(text)
        )
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(refuse)?;
    let (number, unit) = text.split_at(digits);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(refuse()),
    };
    let number: u64 = number.parse().map_err(|_| refuse())?;
    number.checked_mul(millis).ok_or_else(refuse)
}

/// An event type that goes with the name of a Rust type, to propose in a message: `OrderPlaced` is `order.placed.v1`.
pub(crate) fn proposed_event_type(rust_name: &str) -> String {
    let mut proposed = String::new();
    for c in rust_name.trim_start_matches("r#").chars().filter(char::is_ascii_alphanumeric) {
        if c.is_ascii_uppercase() && !proposed.is_empty() {
            proposed.push('.');
        }
        proposed.push(c.to_ascii_lowercase());
    }
    proposed + ".v1"
}

/// The candidate that `wrong` was probably meant to be.
pub(crate) fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + wrong.len() / 5;
    candidates
        .into_iter()
        .map(|candidate| (distance(wrong, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// At most the first 40 characters, with control characters written as escapes.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(40).flat_map(|c| c.escape_debug().collect::<Vec<_>>()).collect();
    if text.chars().count() > 40 { cut + ".." } else { cut }
}

fn shown_char(c: char) -> String {
    match c {
        ' ' => "a space".to_owned(),
        c if c.is_control() => format!("the control character `{}`", c.escape_debug()),
        c => format!("`{c}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_types() {
        for good in ["a", "order.placed.v1", "A/b:c_d-e.9", &"x".repeat(255)] {
            assert_eq!(event_type(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "order placed", "é", "a\n", "a\0", "a*", &"x".repeat(256)] {
            assert!(event_type(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn handler_ids() {
        for good in ["a", "shipping.ship", "quickstart::shipping::ship", "it's \"quoted\" é", &"x".repeat(255)] {
            assert_eq!(handler_id(good), Ok(()), "{good}");
        }
        for bad in ["", "a#b", "a\nb", "\u{7f}", &"é".repeat(128)] {
            assert!(handler_id(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn durations() {
        for (text, millis) in
            [("0ms", 0), ("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("7d", 604_800_000)]
        {
            assert_eq!(duration(text), Ok(millis), "{text}");
        }
        for bad in ["", "5", "ms", "-5s", "1.5s", "5 s", " 5s", "5S", "5min", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(duration("18446744073709551615d").is_err());
    }

    #[test]
    fn proposals() {
        assert_eq!(proposed_event_type("OrderPlaced"), "order.placed.v1");
        assert_eq!(proposed_event_type("r#type"), "type.v1");
        assert_eq!(nearest("concurency", ["id", "concurrency"]), Some("concurrency"));
        assert_eq!(nearest("transactionl", ["id", "transactional"]), Some("transactional"));
        assert_eq!(nearest("xy", ["id", "key"]), None);
    }

    #[test]
    fn long_and_strange_texts_are_shown_short_and_escaped() {
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown(&"x".repeat(50)).len(), 42);
    }
}
