//! The id of an epic: `1`, `1a`, `5.5`, `3-5`, `td-1`.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
};

use tribunal_json::schemars;

/// The id of an epic as it is written. `01` and `1` are the same epic, and so are `3-5` and `3.5`.
#[derive(Clone, schemars::JsonSchema)]
#[schemars(with = "String", extend("examples" = ["1", "5.5"]))]
pub struct EpicId {
    written: Box<str>,
    /// What the id is compared by.
    parts: Box<[IdPart]>,
}

/// A part of an id. Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum IdPart {
    Number(u32),
    Word(String),
}

impl EpicId {
    pub fn parse(id_text: &str) -> Option<EpicId> {
        let id_text = id_text.trim();
        let is_id_char = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.');
        if id_text.is_empty() || !id_text.chars().all(is_id_char) {
            return None;
        }
        let mut parts = Vec::new();
        for segment in id_text.split(['-', '_', '.']).filter(|segment| !segment.is_empty()) {
            let digits_end = segment.find(|character: char| !character.is_ascii_digit()).unwrap_or(segment.len());
            let (digits, word) = segment.split_at(digits_end);
            match digits.parse() {
                Ok(number) => parts.push(IdPart::Number(number)),
                Err(_) if digits.is_empty() => {}
                // Digits without end are no number.
                Err(_) => return None,
            }
            if !word.is_empty() {
                parts.push(IdPart::Word(word.to_lowercase()));
            }
        }
        (!parts.is_empty()).then(|| EpicId { written: id_text.into(), parts: parts.into() })
    }

    /// The id if it is a plain number.
    pub fn as_number(&self) -> Option<u32> {
        match self.parts.as_ref() {
            [IdPart::Number(number)] => Some(*number),
            _ => None,
        }
    }

    /// The id without the title behind its numbers: `1` of `1-user-accounts`, still written as it was. `None` if there is no title.
    pub(crate) fn without_title(&self) -> Option<EpicId> {
        let is_word = |part: &IdPart| matches!(part, IdPart::Word(word) if word.len() > 1);
        let title_start = self.parts.iter().position(is_word).filter(|position| *position > 0)?;
        let starts_with_number = matches!(self.parts.first(), Some(IdPart::Number(_)));
        starts_with_number.then(|| EpicId { written: self.written.clone(), parts: self.parts[..title_start].into() })
    }

    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The id as a part of a story's number: `3.5` for `3-5`, `1` for `01`.
    pub(crate) fn to_dotted_text(&self) -> String {
        let mut dotted_text = String::new();
        for part in self.parts.iter() {
            match part {
                IdPart::Number(number) if dotted_text.is_empty() => dotted_text = number.to_string(),
                IdPart::Number(number) => dotted_text.push_str(&format!(".{number}")),
                IdPart::Word(word) => dotted_text.push_str(word),
            }
        }
        dotted_text
    }
}

impl From<u32> for EpicId {
    fn from(epic_number: u32) -> EpicId {
        EpicId { written: epic_number.to_string().into(), parts: [IdPart::Number(epic_number)].into() }
    }
}

impl PartialEq for EpicId {
    fn eq(&self, other: &EpicId) -> bool {
        self.parts == other.parts
    }
}

impl Eq for EpicId {}

impl PartialOrd for EpicId {
    fn partial_cmp(&self, other: &EpicId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EpicId {
    fn cmp(&self, other: &EpicId) -> Ordering {
        self.parts.cmp(&other.parts)
    }
}

impl Hash for EpicId {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.parts.hash(hasher);
    }
}

impl fmt::Debug for EpicId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

impl fmt::Display for EpicId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

tribunal_json::write_as_text!(EpicId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ordered_by_their_numbers_and_kept_as_written() {
        let mut ids: Vec<EpicId> =
            ["10", "td-1", "5.5", "1b", "2", "1", "3-5", "1a"].iter().filter_map(|id| EpicId::parse(id)).collect();
        ids.sort();
        let written: Vec<&str> = ids.iter().map(EpicId::as_str).collect();
        assert_eq!(written, ["1", "1a", "1b", "2", "3-5", "5.5", "10", "td-1"]);
        assert_eq!(EpicId::parse("01"), EpicId::parse("1"));
        assert_eq!(EpicId::parse("3-5"), EpicId::parse("3.5"));
        assert_ne!(EpicId::parse("1a"), EpicId::parse("1"));
        assert_eq!(
            (EpicId::parse("007").unwrap().as_number(), EpicId::parse("1a").unwrap().as_number()),
            (Some(7), None)
        );
        for invalid_id in ["", "-", "a b", "1:2", "99999999999"] {
            assert_eq!(EpicId::parse(invalid_id), None, "{invalid_id}");
        }
    }
}
