//! An answer's data before it is interpreted: texts, lists and maps from any notation.
//!
//! Maps keep their order and their duplicates. Keys are compared by their letters and digits alone: `Suggested Fix`,
//! `suggestedFix` and `suggested_fix` are the same key.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// A node of an answer. Numbers and booleans are kept as the text in which they were written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// A null, or no value at all.
    Nothing,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Whether a key matches a name. Names are written in lowercase letters and digits only.
pub(super) fn is(key: &str, name: &str) -> bool {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).eq(name.chars())
}

pub(super) fn is_one_of(key: &str, names: &[&str]) -> bool {
    names.iter().any(|name| is(key, name))
}

impl Node {
    /// The value of the first of these names that has one. If a key occurs twice, the later one counts, as in JSON.
    pub fn get(&self, names: &[&str]) -> Option<&Node> {
        let Node::Map(pairs) = self else { return None };
        names.iter().find_map(|name| {
            let said = pairs.iter().rev().filter(|(key, _)| is(key, name)).map(|(_, value)| value);
            // A blank value counts as missing, so that the next synonym gets a chance.
            said.into_iter().find(|value| !value.is_blank())
        })
    }

    pub fn has(&self, names: &[&str]) -> bool {
        self.get(names).is_some()
    }

    pub fn text(&self, names: &[&str]) -> Option<String> {
        self.get(names).and_then(Node::scalar)
    }

    /// The node as one text: a list of texts is joined, and quotation marks around the whole text are removed.
    pub fn scalar(&self) -> Option<String> {
        let text = match self {
            Node::Text(text) => unwrap_quotes(text.trim()).to_string(),
            Node::List(items) => items.iter().map(Node::scalar).collect::<Option<Vec<_>>>()?.join("; "),
            Node::Nothing | Node::Map(_) => return None,
        };
        (!text.trim().is_empty()).then_some(text)
    }

    /// The node as several texts: a single text is split at its commas.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Node::List(items) => items.iter().filter_map(Node::scalar).collect(),
            Node::Text(text) => {
                let parts = text.split(',').map(|part| unwrap_quotes(part.trim()).to_string());
                parts.filter(|part| !part.is_empty()).collect()
            }
            // A map in place of a list has the texts as its keys: `{timeout: , retry: }`.
            Node::Map(pairs) => pairs.iter().map(|(key, _)| key.clone()).collect(),
            Node::Nothing => Vec::new(),
        }
    }

    fn is_blank(&self) -> bool {
        match self {
            Node::Nothing => true,
            Node::Text(text) => text.trim().is_empty(),
            Node::List(_) | Node::Map(_) => false,
        }
    }

    /// Returns a key that occurs twice, if there is one.
    pub fn doubled(&self) -> Option<&str> {
        let Node::Map(pairs) = self else { return None };
        // Real items have few keys. Only the first ones are compared, because the search is quadratic.
        let few = pairs.get(..pairs.len().min(32)).unwrap_or_default();
        let again = |index: usize| few.iter().take(index).any(|(key, _)| *key == few[index].0);
        (0..few.len()).find(|index| again(*index)).map(|index| few[index].0.as_str())
    }
}

/// Removes a pair of typographic quotation marks around the whole text. They are decoration that a YAML parser takes
/// for text.
fn unwrap_quotes(text: &str) -> &str {
    let inner = text.strip_prefix(['“', '„', '”']).and_then(|rest| rest.strip_suffix(['”', '“']));
    // With further marks inside, the outer ones may belong to two different quotes.
    inner.filter(|inner| !inner.contains(['“', '”', '„'])).unwrap_or(text)
}

/// What a strict parser made of a text. `None` if it would not return some value exactly as it was written.
#[derive(Debug)]
pub(super) struct Exact(pub Option<Node>);

impl Exact {
    fn text(value: impl Into<String>) -> Exact {
        Exact(Some(Node::Text(value.into())))
    }
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Exact, D::Error> {
        from.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Exact;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Exact, E> {
        Ok(Exact::text(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Exact, E> {
        Ok(Exact::text(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Exact, E> {
        Ok(Exact::text(value.to_string()))
    }

    /// `1.50` would become `1.5`, which does not occur in the subject.
    fn visit_f64<E>(self, _: f64) -> Result<Exact, E> {
        Ok(Exact(None))
    }

    fn visit_str<E>(self, value: &str) -> Result<Exact, E> {
        Ok(Exact::text(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Exact, E> {
        Ok(Exact::text(value))
    }

    fn visit_unit<E>(self) -> Result<Exact, E> {
        Ok(Exact(Some(Node::Nothing)))
    }

    fn visit_none<E>(self) -> Result<Exact, E> {
        Ok(Exact(Some(Node::Nothing)))
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Exact, D::Error> {
        from.deserialize_any(Anything)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Exact, A::Error> {
        let mut items = Some(Vec::new());
        // One inexact value makes the whole list inexact, but all of it has to be read for the parser to continue.
        while let Some(Exact(item)) = from.next_element()? {
            items = items.zip(item).map(|(mut items, item)| {
                items.push(item);
                items
            });
        }
        Ok(Exact(items.map(Node::List)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Exact, A::Error> {
        let mut pairs = Some(Vec::new());
        while let Some((Exact(key), Exact(value))) = from.next_entry()? {
            pairs = pairs.zip(key.zip(value)).map(|(mut pairs, (key, value))| {
                pairs.push((key.scalar().unwrap_or_default(), value));
                pairs
            });
        }
        Ok(Exact(pairs.map(Node::Map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_by_letters_and_digits() {
        for key in ["suggested_fix", "Suggested Fix", "suggestedFix", "SUGGESTED-FIX", "**suggested fix**"] {
            assert!(is(key, "suggestedfix"), "{key}");
        }
        assert!(!is("suggested", "suggestedfix"));
    }

    #[test]
    fn only_quotation_marks_around_the_whole_are_taken_off() {
        assert_eq!(Node::Text("“a”".into()).scalar().unwrap(), "a");
        assert_eq!(Node::Text("“a” and “b”".into()).scalar().unwrap(), "“a” and “b”");
    }
}
