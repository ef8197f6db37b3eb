//! The headers of an event: string names and values, kept as the JSON text the producer wrote.
//!
//! Nothing parses them until somebody asks for one: a dispatch that reads no header pays nothing.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

/// The headers of an event. Cloning is cheap.
///
/// ```
/// use relaybus::Headers;
/// let headers = Headers::new([("tenant", "acme")])?;
/// assert_eq!(headers.get("tenant"), Some("acme"));
/// assert_eq!(headers.as_json(), r#"{"tenant":"acme"}"#);
/// # Ok::<(), relaybus::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Headers(Option<Arc<Inner>>);

struct Inner {
    text: String,
    parsed: OnceLock<Vec<(String, String)>>,
}

impl Headers {
    /// Headers from names and values, in the order given; a later value of a name replaces the earlier one.
    ///
    /// # Errors
    /// `RELAYBUS_CONFIGURATION` when a name is empty or a name or value contains NUL.
    pub fn new<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self>
    where
        N: Into<String>,
        V: Into<String>,
    {
        let mut kept: Vec<(String, String)> = Vec::new();
        let mut places: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
        for (name, value) in pairs {
            let (name, value) = (name.into(), value.into());
            if name.is_empty() || name.contains('\0') || value.contains('\0') {
                return Err(Error::configuration(format!(
                    "header `{}` has an empty name or a NUL character: clean it before publishing",
                    name.replace('\0', "\u{FFFD}")
                )));
            }
            match places.get(&name) {
                Some(&place) => kept[place].1 = value,
                None => {
                    places.insert(name.clone(), kept.len());
                    kept.push((name, value));
                }
            }
        }
        Ok(Self::from_checked(kept))
    }

    fn from_checked(pairs: Vec<(String, String)>) -> Self {
        if pairs.is_empty() {
            return Self(None);
        }
        let text = write_object(&pairs);
        Self(Some(Arc::new(Inner { text, parsed: OnceLock::from(pairs) })))
    }

    /// Headers that come back from a store as the JSON text that [`Headers::as_json`] gave it.
    #[must_use]
    pub fn stored(text: String) -> Self {
        if text == "{}" { Self(None) } else { Self(Some(Arc::new(Inner { text, parsed: OnceLock::new() }))) }
    }

    /// The JSON text of the headers, byte for byte as written.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.0.as_ref().map_or("{}", |inner| &inner.text)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of a header.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs().iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All headers, in the order they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs().iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// These headers and `more`; a name of `more` replaces the one here.
    ///
    /// # Errors
    /// As [`Headers::new`].
    pub fn with<N, V>(&self, more: impl IntoIterator<Item = (N, V)>) -> Result<Self>
    where
        N: Into<String>,
        V: Into<String>,
    {
        let own = self.iter().map(|(n, v)| (n.to_owned(), v.to_owned()));
        Self::new(own.chain(more.into_iter().map(|(n, v)| (n.into(), v.into()))))
    }

    fn pairs(&self) -> &[(String, String)] {
        let Some(inner) = &self.0 else { return &[] };
        inner.parsed.get_or_init(|| read_object(&inner.text))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

fn write_object(pairs: &[(String, String)]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let members: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value))).collect();
    format!("{{{}}}", members.join(","))
}

/// Reads the object in its own order. Text that is no object of strings has no headers: a store row written by
/// somebody else must not stop a handler that reads none.
fn read_object(text: &str) -> Vec<(String, String)> {
    struct Pairs(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for Pairs {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
            struct Visit;
            impl<'de> serde::de::Visitor<'de> for Visit {
                type Value = Pairs;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object of strings")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
                    let mut pairs = Vec::new();
                    while let Some(pair) = map.next_entry()? {
                        pairs.push(pair);
                    }
                    Ok(Pairs(pairs))
                }
            }
            deserializer.deserialize_map(Visit)
        }
    }
    serde_json::from_str::<Pairs>(text).map(|pairs| pairs.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_text_and_order() {
        let text = r#"{"z":"1", "a" : "\u0041"}"#;
        let headers = Headers::stored(text.to_owned());
        assert_eq!(headers.as_json(), text);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("z", "1"), ("a", "A")]);
    }

    #[test]
    fn later_values_replace_earlier_ones() {
        let headers = Headers::new([("a", "1"), ("b", "2"), ("a", "3")]).unwrap();
        assert_eq!(headers.as_json(), r#"{"a":"3","b":"2"}"#);
        assert_eq!(headers.with([("b", "4")]).unwrap().get("b"), Some("4"));
    }

    #[test]
    fn refuses_nul_and_empty_names() {
        assert!(Headers::new([("", "x")]).is_err());
        assert!(Headers::new([("a", "x\0")]).is_err());
    }

    #[test]
    fn foreign_text_has_no_headers() {
        assert_eq!(Headers::stored("[1]".to_owned()).get("a"), None);
    }
}
