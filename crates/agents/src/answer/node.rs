//! An answer's data before it is interpreted: texts, lists and maps from any notation.
//!
//! Maps keep their order and their duplicates. Keys are compared by their letters and digits alone: `Suggested Fix`,
//! `suggestedFix` and `suggested_fix` are the same key.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{Location, Spanned};

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

/// What a strict parser made of a text, before numbers and truth values are replaced by what is written there.
#[derive(Debug)]
pub(super) enum StrictNode {
    Nothing,
    Text(String),
    /// A number or a truth value, as the parser would spell it. `None` for a fraction, of which it would spell another one.
    Typed(Option<String>),
    List(Vec<Spanned<StrictNode>>),
    Map(Vec<(Spanned<StrictNode>, Spanned<StrictNode>)>),
}

/// Turns a strict node into an answer's node. Numbers are texts as they are written: `0x1F` would become `31` and `1.50`
/// `1.5`, which do not occur in the subject. `None` if it cannot be seen how a fraction is written.
pub(super) fn to_answer_node(yaml_text: &str, strict_node: Spanned<StrictNode>) -> Option<AnswerNode> {
    let written_text = find_plain_scalar(yaml_text, &strict_node.defined);
    Some(match strict_node.value {
        StrictNode::Nothing => AnswerNode::Nothing,
        StrictNode::Text(scalar_text) => AnswerNode::Text(scalar_text),
        StrictNode::Typed(parsed_text) => AnswerNode::Text(written_text.map(str::to_string).or(parsed_text)?),
        StrictNode::List(list_items) => AnswerNode::List(
            list_items.into_iter().map(|list_item| to_answer_node(yaml_text, list_item)).collect::<Option<_>>()?,
        ),
        StrictNode::Map(pairs) => AnswerNode::Map(
            pairs
                .into_iter()
                .map(|(pair_key, pair_value)| {
                    let key_text = to_answer_node(yaml_text, pair_key)?.to_text().unwrap_or_default();
                    Some((key_text, to_answer_node(yaml_text, pair_value)?))
                })
                .collect::<Option<_>>()?,
        ),
    })
}

/// The source of a scalar that is neither quoted nor tagged; `None` if the parser does not know where it is.
fn find_plain_scalar<'t>(yaml_text: &'t str, location: &Location) -> Option<&'t str> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let end = start.checked_add(usize::try_from(span.byte_len()?).ok()?)?;
    let source_text = yaml_text.get(start..end)?.trim();
    let is_plain = !source_text.starts_with(['"', '\'', '!', '&', '*', '|', '>']) && !source_text.contains('\n');
    Some(source_text).filter(|source_text| is_plain && !source_text.is_empty())
}

impl<'de> Deserialize<'de> for StrictNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StrictNode, D::Error> {
        deserializer.deserialize_any(StrictNodeVisitor)
    }
}

struct StrictNodeVisitor;

impl<'de> Visitor<'de> for StrictNodeVisitor {
    type Value = StrictNode;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_bool<E>(self, scalar_value: bool) -> Result<StrictNode, E> {
        Ok(StrictNode::Typed(Some(scalar_value.to_string())))
    }

    fn visit_i64<E>(self, scalar_value: i64) -> Result<StrictNode, E> {
        Ok(StrictNode::Typed(Some(scalar_value.to_string())))
    }

    fn visit_u64<E>(self, scalar_value: u64) -> Result<StrictNode, E> {
        Ok(StrictNode::Typed(Some(scalar_value.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<StrictNode, E> {
        Ok(StrictNode::Typed(None))
    }

    fn visit_str<E>(self, scalar_value: &str) -> Result<StrictNode, E> {
        Ok(StrictNode::Text(scalar_value.to_string()))
    }

    fn visit_string<E>(self, scalar_value: String) -> Result<StrictNode, E> {
        Ok(StrictNode::Text(scalar_value))
    }

    fn visit_unit<E>(self) -> Result<StrictNode, E> {
        Ok(StrictNode::Nothing)
    }

    fn visit_none<E>(self) -> Result<StrictNode, E> {
        Ok(StrictNode::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<StrictNode, D::Error> {
        deserializer.deserialize_any(StrictNodeVisitor)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence_access: A) -> Result<StrictNode, A::Error> {
        let mut list_items = Vec::new();
        while let Some(list_item) = sequence_access.next_element()? {
            list_items.push(list_item);
        }
        Ok(StrictNode::List(list_items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map_access: A) -> Result<StrictNode, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map_access.next_entry()? {
            pairs.push(pair);
        }
        Ok(StrictNode::Map(pairs))
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
