//! An answer's data before it is interpreted: texts, lists and maps from any notation.
//!
//! Maps keep their order and their duplicates. Keys are compared by their letters and digits alone: `Suggested Fix`,
//! `suggestedFix` and `suggested_fix` are the same key.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// A node of an answer. Numbers and booleans are texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AnswerNode {
    /// A null, or no value at all.
    Nothing,
    Text(String),
    List(Vec<AnswerNode>),
    Map(Vec<(String, AnswerNode)>),
}

/// Whether a key matches a name. Names are written in lowercase letters and digits only.
pub(super) fn matches_name(raw_key: &str, expected_name: &str) -> bool {
    raw_key
        .chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .eq(expected_name.chars())
}

pub(super) fn matches_any_name(raw_key: &str, expected_names: &[&str]) -> bool {
    expected_names.iter().any(|expected_name| matches_name(raw_key, expected_name))
}

impl AnswerNode {
    /// The value of the first of these names that has one. If a key occurs twice, the later value counts.
    pub fn get(&self, key_names: &[&str]) -> Option<&AnswerNode> {
        let AnswerNode::Map(pairs) = self else { return None };
        key_names.iter().find_map(|expected_name| {
            let matching_values = pairs
                .iter()
                .rev()
                .filter(|(pair_key, _)| matches_name(pair_key, expected_name))
                .map(|(_, pair_value)| pair_value);
            // A blank value counts as missing, so that the next synonym gets a chance.
            matching_values.into_iter().find(|pair_value| !pair_value.is_blank())
        })
    }

    pub fn has_any(&self, key_names: &[&str]) -> bool {
        self.get(key_names).is_some()
    }

    pub fn get_text(&self, key_names: &[&str]) -> Option<String> {
        self.get(key_names).and_then(AnswerNode::to_text)
    }

    /// The node as one text: a list of texts is joined, and quotation marks around the whole text are removed.
    pub fn to_text(&self) -> Option<String> {
        let scalar_text = match self {
            AnswerNode::Text(scalar_text) => unwrap_quotes(scalar_text.trim()).to_string(),
            AnswerNode::List(list_items) => {
                list_items.iter().map(AnswerNode::to_text).collect::<Option<Vec<_>>>()?.join("; ")
            }
            AnswerNode::Nothing | AnswerNode::Map(_) => return None,
        };
        (!scalar_text.trim().is_empty()).then_some(scalar_text)
    }

    /// The node as several texts: a single text is split at its commas.
    pub fn to_texts(&self) -> Vec<String> {
        match self {
            AnswerNode::List(list_items) => list_items.iter().filter_map(AnswerNode::to_text).collect(),
            AnswerNode::Text(comma_text) => {
                let text_parts = comma_text.split(',').map(|text_part| unwrap_quotes(text_part.trim()).to_string());
                text_parts.filter(|text_part| !text_part.is_empty()).collect()
            }
            // A map in place of a list has the texts as its keys: `{timeout: , retry: }`.
            AnswerNode::Map(pairs) => pairs.iter().map(|(pair_key, _)| pair_key.clone()).collect(),
            AnswerNode::Nothing => Vec::new(),
        }
    }

    fn is_blank(&self) -> bool {
        match self {
            AnswerNode::Nothing => true,
            AnswerNode::Text(scalar_text) => scalar_text.trim().is_empty(),
            AnswerNode::List(_) | AnswerNode::Map(_) => false,
        }
    }

    /// Returns a key that occurs twice, if there is one.
    pub fn duplicate_key(&self) -> Option<&str> {
        let AnswerNode::Map(pairs) = self else { return None };
        // Real items have few keys. Only the first ones are compared, because the search is quadratic.
        let first_pairs = pairs.get(..pairs.len().min(32)).unwrap_or_default();
        let is_repeated =
            |index: usize| first_pairs.iter().take(index).any(|(pair_key, _)| *pair_key == first_pairs[index].0);
        (0..first_pairs.len()).find(|index| is_repeated(*index)).map(|index| first_pairs[index].0.as_str())
    }
}

/// Removes a pair of typographic quotation marks around the whole text. They are decoration that a YAML parser takes
/// for text.
fn unwrap_quotes(quoted_text: &str) -> &str {
    let inner_text =
        quoted_text.strip_prefix(['“', '„', '”']).and_then(|after_quote| after_quote.strip_suffix(['”', '“']));
    // With further marks inside, the outer ones may belong to two different quotes.
    inner_text.filter(|inner_text| !inner_text.contains(['“', '”', '„'])).unwrap_or(quoted_text)
}

/// What a strict parser made of a text. `None` if a fraction is in it, which the parser may return in another spelling.
#[derive(Debug)]
pub(super) struct ExactNode(pub Option<AnswerNode>);

impl ExactNode {
    fn from_text(scalar_value: impl Into<String>) -> ExactNode {
        ExactNode(Some(AnswerNode::Text(scalar_value.into())))
    }
}

impl<'de> Deserialize<'de> for ExactNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ExactNode, D::Error> {
        deserializer.deserialize_any(ExactNodeVisitor)
    }
}

struct ExactNodeVisitor;

impl<'de> Visitor<'de> for ExactNodeVisitor {
    type Value = ExactNode;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_bool<E>(self, scalar_value: bool) -> Result<ExactNode, E> {
        Ok(ExactNode::from_text(scalar_value.to_string()))
    }

    fn visit_i64<E>(self, scalar_value: i64) -> Result<ExactNode, E> {
        Ok(ExactNode::from_text(scalar_value.to_string()))
    }

    fn visit_u64<E>(self, scalar_value: u64) -> Result<ExactNode, E> {
        Ok(ExactNode::from_text(scalar_value.to_string()))
    }

    /// `1.50` would become `1.5`, which does not occur in the subject.
    fn visit_f64<E>(self, _: f64) -> Result<ExactNode, E> {
        Ok(ExactNode(None))
    }

    fn visit_str<E>(self, scalar_value: &str) -> Result<ExactNode, E> {
        Ok(ExactNode::from_text(scalar_value))
    }

    fn visit_string<E>(self, scalar_value: String) -> Result<ExactNode, E> {
        Ok(ExactNode::from_text(scalar_value))
    }

    fn visit_unit<E>(self) -> Result<ExactNode, E> {
        Ok(ExactNode(Some(AnswerNode::Nothing)))
    }

    fn visit_none<E>(self) -> Result<ExactNode, E> {
        Ok(ExactNode(Some(AnswerNode::Nothing)))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<ExactNode, D::Error> {
        deserializer.deserialize_any(ExactNodeVisitor)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence_access: A) -> Result<ExactNode, A::Error> {
        let mut sequence_items = Some(Vec::new());
        // One inexact value makes the whole list inexact, but all of it has to be read for the parser to continue.
        while let Some(ExactNode(sequence_item)) = sequence_access.next_element()? {
            sequence_items = sequence_items.zip(sequence_item).map(|(mut sequence_items, sequence_item)| {
                sequence_items.push(sequence_item);
                sequence_items
            });
        }
        Ok(ExactNode(sequence_items.map(AnswerNode::List)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map_access: A) -> Result<ExactNode, A::Error> {
        let mut map_pairs = Some(Vec::new());
        while let Some((ExactNode(map_key), ExactNode(map_value))) = map_access.next_entry()? {
            map_pairs = map_pairs.zip(map_key.zip(map_value)).map(|(mut map_pairs, (map_key, map_value))| {
                map_pairs.push((map_key.to_text().unwrap_or_default(), map_value));
                map_pairs
            });
        }
        Ok(ExactNode(map_pairs.map(AnswerNode::Map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_by_letters_and_digits() {
        for written_key in ["suggested_fix", "Suggested Fix", "suggestedFix", "SUGGESTED-FIX", "**suggested fix**"] {
            assert!(matches_name(written_key, "suggestedfix"), "{written_key}");
        }
        assert!(!matches_name("suggested", "suggestedfix"));
    }

    #[test]
    fn only_quotation_marks_around_the_whole_text_are_removed() {
        assert_eq!(AnswerNode::Text("“a”".into()).to_text().unwrap(), "a");
        assert_eq!(AnswerNode::Text("“a” and “b”".into()).to_text().unwrap(), "“a” and “b”");
    }
}
