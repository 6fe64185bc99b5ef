//! The keys of a board: `epic-1`, `1-2-log-in`, `epic-1-retrospective`.
//!
//! BMAD's own grammar is the same in every era. Users also insert epics (`epic-5.5`), and name tracks and codes of their own
//! (`td-1-2a-x`, `CORE-001`); a key is kept as it is written. The states are in [`crate::states`].

use std::{
    cmp::Ordering,
    collections::BTreeSet,
    fmt,
    hash::{Hash, Hasher},
};

use tribunal_json::schemars;

use crate::epic_id::EpicId;

/// What a key on the board stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
#[schemars(with = "String", extend("examples" = ["epic-1"]))]
pub enum BoardKey {
    Epic(EpicId),
    Story(StoryKey),
    Retrospective(EpicId),
}

/// The key of a story as it is written: `1-2-log-in`, `2-6a-log-in` for a split story, `5.5-1-x` or `3-5-1-x` in an inserted
/// epic. A key without a number is known by its words: `td-1-2a-x`, `CORE-001`.
#[derive(Clone, Debug, schemars::JsonSchema)]
#[schemars(with = "String", extend("examples" = ["1-2-log-in"]))]
pub struct StoryKey {
    written: Box<str>,
    number: Option<StoryNumber>,
    slug: Box<str>,
}

impl BoardKey {
    /// Parses a key without knowing the board. Every text that could be a key is one.
    pub fn parse(key_text: &str) -> Option<BoardKey> {
        let key_text = key_text.trim();
        match parse_epic_key(key_text) {
            Some(epic_key) => Some(epic_key),
            // The key of an epic without a usable id is none of a story.
            None if strip_epic_word(key_text).is_some() => None,
            None => StoryKey::parse(key_text).map(BoardKey::Story),
        }
    }

    /// The epic that the key names; `None` for a story without a number.
    pub fn epic_id(&self) -> Option<&EpicId> {
        match self {
            BoardKey::Epic(epic) | BoardKey::Retrospective(epic) => Some(epic),
            BoardKey::Story(story) => story.epic_id(),
        }
    }
}

/// Parses `epic-1`, `epic-5.5`, `epic-1a`, `epic-1-retrospective` and `DATA-003-retrospective`.
fn parse_epic_key(key_text: &str) -> Option<BoardKey> {
    const RETRO_SUFFIXES: [&str; 4] = ["-retrospective", "-retro", "_retrospective", "_retro"];
    let lower_text = key_text.to_lowercase();
    let retro_name =
        RETRO_SUFFIXES.iter().find_map(|suffix| lower_text.strip_suffix(suffix)).map(|name| &key_text[..name.len()]);
    let name = retro_name.unwrap_or(key_text);
    let epic_name = strip_epic_word(name);
    match (retro_name, epic_name) {
        (Some(name), epic_name) => EpicId::parse(epic_name.unwrap_or(name)).map(BoardKey::Retrospective),
        // `epic-1-story-2` is a story.
        (None, Some(epic_name)) => match split_epic_story(epic_name) {
            Some((number, slug)) => {
                Some(BoardKey::Story(StoryKey { written: key_text.into(), number: Some(number), slug: slug.into() }))
            }
            None => EpicId::parse(epic_name).map(BoardKey::Epic),
        },
        (None, None) => strip_retro_word(key_text).and_then(EpicId::parse).map(BoardKey::Retrospective),
    }
}

/// The epic in `retrospective-epic-4` and `retro-1`.
fn strip_retro_word(key_text: &str) -> Option<&str> {
    let after_word = key_text.strip_prefix("retrospective-").or_else(|| key_text.strip_prefix("retro-"))?;
    let epic_name = strip_epic_word(after_word).unwrap_or(after_word);
    epic_name.starts_with(|character: char| character.is_ascii_digit()).then_some(epic_name)
}

/// Splits `1-story-2-log-in` into its number and its words.
fn split_epic_story(epic_name: &str) -> Option<(StoryNumber, &str)> {
    let (epic, after_story) = epic_name.split_once("-story-")?;
    let (number_text, slug) = after_story.split_once('-').unwrap_or((after_story, ""));
    let (number, letter) = parse_lettered_number(number_text)?;
    Some((StoryNumber { epic: parse_epic_number(epic)?, number, letter }, slug))
}

/// The text behind `epic-`, `epic_` or `epic `; also in `epic1`.
fn strip_epic_word(name: &str) -> Option<&str> {
    let after_word = name.get(..4).filter(|word| word.eq_ignore_ascii_case("epic")).map(|_| &name[4..])?;
    match after_word.chars().next()? {
        '-' | '_' | ' ' => Some(&after_word[1..]),
        character if character.is_ascii_digit() => Some(after_word),
        _ => None,
    }
}

impl StoryKey {
    /// Parses a key without knowing the board.
    pub fn parse(key_text: &str) -> Option<StoryKey> {
        let key_text = key_text.trim();
        let is_key_char =
            |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | '+' | '&' | '\'');
        if key_text.is_empty() || !key_text.chars().all(is_key_char) || !key_text.contains(char::is_alphanumeric) {
            return None;
        }
        let (number, slug) = match split_story_number(strip_story_word(key_text)) {
            Some((number, slug)) => (Some(number), slug.into()),
            None => (None, key_text.into()),
        };
        Some(StoryKey { written: key_text.into(), number, slug })
    }

    /// Parses a key on a board with these epics: `3-5-1-x` is story 1 of epic 3-5 where there is such an epic.
    pub fn parse_on_board(key_text: &str, epics: &BTreeSet<EpicId>) -> Option<StoryKey> {
        let story_key = StoryKey::parse(key_text)?;
        let bare_key = strip_story_word(&story_key.written);
        let mut segments = bare_key.splitn(4, '-');
        if let (Some(first), Some(second), Some(third)) = (segments.next(), segments.next(), segments.next())
            && first.starts_with(|character: char| character.is_ascii_digit())
            && let Some((number, letter)) = parse_lettered_number(third)
            && let Some(epic) = EpicId::parse(&format!("{first}-{second}")).filter(|epic| epics.contains(epic))
        {
            let slug = segments.next().unwrap_or_default().into();
            return Some(StoryKey { number: Some(StoryNumber { epic, number, letter }), slug, ..story_key });
        }
        Some(story_key)
    }

    /// Makes the key of a story with this number and title.
    pub fn from_number(number: StoryNumber, slug: String) -> StoryKey {
        let StoryNumber { epic, number: story_position, letter } = &number;
        let letter_text = letter.map(String::from).unwrap_or_default();
        let written = match slug.as_str() {
            "" => format!("{epic}-{story_position}{letter_text}"),
            slug => format!("{epic}-{story_position}{letter_text}-{slug}"),
        };
        StoryKey { written: written.into(), number: Some(number), slug: slug.into() }
    }

    pub fn epic_id(&self) -> Option<&EpicId> {
        self.number.as_ref().map(|number| &number.epic)
    }

    /// The number that epics and stories use for it: `1.2`, `2.6a`; `None` for a key of words.
    pub fn story_number(&self) -> Option<&StoryNumber> {
        self.number.as_ref()
    }

    /// What the story is looked up by where other files name it: its number, or else its words.
    pub fn lookup_name(&self) -> String {
        self.number.as_ref().map_or_else(|| self.slug.to_lowercase(), ToString::to_string)
    }

    /// The words of the key.
    pub fn slug_text(&self) -> &str {
        &self.slug
    }

    /// The key as it is written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// What makes two keys the same: `01-1-a` and `1-1-a` are one story.
    fn identity(&self) -> (Option<&StoryNumber>, &str) {
        (self.number.as_ref(), &self.slug)
    }
}

impl PartialEq for StoryKey {
    fn eq(&self, other: &StoryKey) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for StoryKey {}

impl PartialOrd for StoryKey {
    fn partial_cmp(&self, other: &StoryKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StoryKey {
    fn cmp(&self, other: &StoryKey) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Hash for StoryKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.identity().hash(hasher);
    }
}

/// The key without a leading `story-`.
fn strip_story_word(key_text: &str) -> &str {
    let after_word = key_text.get(..5).filter(|word| word.eq_ignore_ascii_case("story")).map(|_| &key_text[5..]);
    let after_word = after_word.map(|after_word| after_word.trim_start_matches(['-', '_', '.']));
    after_word
        .filter(|after_word| after_word.starts_with(|character: char| character.is_ascii_digit()))
        .unwrap_or(key_text)
}

/// Splits `1-2-log-in`, `1a-2-x`, `5.5-1-x`, `1.2-log-in` and `1.2.log-in` into the number and the words. A date is no number.
fn split_story_number(key_text: &str) -> Option<(StoryNumber, &str)> {
    if starts_with_date(key_text) {
        return None;
    }
    let (first_segment, after_first) = key_text.split_once('-').unwrap_or((key_text, ""));
    // `1.2-x` and `1.2.x` have the whole number in the first segment, unless another number follows it.
    let (second_segment, after_second) = after_first.split_once('-').unwrap_or((after_first, ""));
    if let (Some(epic), Some((number, letter))) =
        (parse_epic_number(first_segment), parse_lettered_number(second_segment))
    {
        return Some((StoryNumber { epic, number, letter }, after_second));
    }
    let number_end =
        key_text.find(|character: char| !(character.is_ascii_digit() || character == '.')).unwrap_or(key_text.len());
    // A letter belongs to the number only if no word follows it.
    let letter_end = key_text[number_end..]
        .find(|character: char| !character.is_ascii_lowercase())
        .map_or(key_text.len(), |length| number_end + length);
    let is_behind_digit = key_text[..number_end].ends_with(|character: char| character.is_ascii_digit());
    let number_end = if letter_end == number_end + 1 && is_behind_digit { letter_end } else { number_end };
    let number_text = key_text[..number_end].trim_end_matches('.');
    if !number_text.contains('.') {
        return None;
    }
    let after_number = &key_text[number_text.len()..];
    let number = StoryNumber::parse(number_text)?;
    Some((number, after_number.trim_start_matches(['-', '.', '_'])))
}

/// Whether a text begins with a date such as `2026-05-02`.
pub(crate) fn starts_with_date(text: &str) -> bool {
    let mut parts = text.splitn(4, ['-', '.', '_']);
    let mut is_number_of_length = |length: usize| {
        parts.next().is_some_and(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_year = is_number_of_length(4) && (text.starts_with("19") || text.starts_with("20"));
    has_year && is_number_of_length(2) && is_number_of_length(2)
}

/// An epic number in front of a story number: `1`, `1a`, `5.5`.
fn parse_epic_number(epic_text: &str) -> Option<EpicId> {
    let all_numbers = epic_text.split('.').all(|part| parse_lettered_number(part).is_some());
    all_numbers.then(|| EpicId::parse(epic_text)).flatten()
}

/// The number of a story, without its slug.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
#[schemars(with = "String", extend("examples" = ["1.2"]))]
pub struct StoryNumber {
    pub epic: EpicId,
    pub number: u32,
    pub letter: Option<char>,
}

impl StoryNumber {
    /// Parses `1.2`, `1-2`, `2.6a`, and `5.5.1` of an inserted epic.
    pub fn parse(number_text: &str) -> Option<StoryNumber> {
        let number_text = number_text.trim();
        let split_index = number_text.rfind(['.', '-'])?;
        let (epic, number) = (&number_text[..split_index], &number_text[split_index + 1..]);
        let (number, letter) = parse_lettered_number(number)?;
        let is_number = epic.split(['.', '-']).all(|part| parse_lettered_number(part).is_some());
        is_number.then(|| EpicId::parse(epic)).flatten().map(|epic| StoryNumber { epic, number, letter })
    }
}

/// The stories that the user's input names: a key, a number (`1.2`, `1-2`), a slug or a file. Several stories may match a
/// slug.
pub fn match_stories<'k>(user_input: &str, story_keys: impl IntoIterator<Item = &'k StoryKey>) -> Vec<&'k StoryKey> {
    let user_input = user_input.trim();
    // A path may be pasted from anywhere; only the file's name identifies the story.
    let file_stem = user_input.rsplit('/').next().unwrap_or(user_input);
    let file_stem = file_stem.strip_suffix(".md").unwrap_or(file_stem);
    let story_number = StoryNumber::parse(file_stem);
    let all_keys: Vec<&StoryKey> = story_keys.into_iter().collect();
    // An exact key wins over another story whose slug has the same text.
    let exact_matches: Vec<&StoryKey> =
        all_keys.iter().copied().filter(|story_key| story_key.to_string() == file_stem).collect();
    if !exact_matches.is_empty() {
        return exact_matches;
    }
    all_keys
        .into_iter()
        .filter(|story_key| {
            let has_number = story_number.is_some() && story_key.story_number() == story_number.as_ref();
            has_number || story_key.slug_text() == file_stem
        })
        .collect()
}

/// The slug that BMAD's planner makes of a title: `User Authentication & SSO (OAuth2)` becomes
/// `user-authentication-sso-oauth2`.
pub fn slugify(title: &str) -> String {
    let mut slug = String::new();
    for character in title.trim().to_lowercase().chars() {
        match character {
            character if character.is_alphanumeric() => slug.push(character),
            // A run of other characters becomes one dash, and none at the start.
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_string()
}

pub(crate) fn parse_digits(digits: &str) -> Option<u32> {
    // `parse` alone would accept a leading `+`.
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

pub(crate) fn parse_lettered_number(number_text: &str) -> Option<(u32, Option<char>)> {
    // An upper-case letter would make two keys of one story.
    let letter = number_text.chars().last().filter(char::is_ascii_lowercase);
    let digits = if letter.is_some() { &number_text[..number_text.len() - 1] } else { number_text };
    Some((parse_digits(digits)?, letter))
}

impl fmt::Display for BoardKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoardKey::Epic(epic) => write!(formatter, "epic-{epic}"),
            BoardKey::Story(story) => story.fmt(formatter),
            BoardKey::Retrospective(epic) => write!(formatter, "epic-{epic}-retrospective"),
        }
    }
}

impl fmt::Display for StoryKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

impl fmt::Display for StoryNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.epic.to_dotted_text(), self.number)?;
        self.letter.map_or(Ok(()), |letter| write!(formatter, "{letter}"))
    }
}

tribunal_json::write_as_text!(BoardKey, StoryKey, StoryNumber);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_as_they_were_written() {
        for key_text in [
            "epic-1",
            "epic-12-retrospective",
            "1-2-log-in",
            "2-6a-x",
            "10-11-a-1-2",
            "1-2--",
            "1-2-Ü",
            "epic-5.5",
            "epic-1a-retrospective",
            "01-02-x",
            "td-1-2a-x",
            "CORE-001",
            "1-2",
        ] {
            assert_eq!(BoardKey::parse(key_text).unwrap().to_string(), key_text);
        }
        for invalid_key in ["epic-", "", "-", "1-2 x", "a: b", "epic-99999999999"] {
            assert_eq!(BoardKey::parse(invalid_key), None, "{invalid_key}");
        }
    }

    #[test]
    fn numbers_are_found_in_all_kinds_of_keys() {
        let describe = |key_text: &str| {
            let key = StoryKey::parse(key_text).unwrap();
            format!("{} {}", key.story_number().map(ToString::to_string).unwrap_or_default(), key.slug_text())
        };
        for (key_text, expected) in [
            ("1-2-log-in", "1.2 log-in"),
            ("2-6a-x", "2.6a x"),
            ("1a-3-x", "1a.3 x"),
            ("5.5-1-x", "5.5.1 x"),
            ("story-1-2-x", "1.2 x"),
            ("story-0.1.1-x", "0.1.1 x"),
            ("12.2.product-options", "12.2 product-options"),
            ("1.5-x", "1.5 x"),
            ("story-19.12", "19.12 "),
            ("1-2", "1.2 "),
            ("01-02-x", "1.2 x"),
            // These have no number: a date, a track, a code.
            ("2026-05-02-notes", " 2026-05-02-notes"),
            ("td-1-2a-x", " td-1-2a-x"),
            ("CORE-001", " CORE-001"),
            ("2-spike-x", " 2-spike-x"),
            ("1-2ab-x", " 1-2ab-x"),
        ] {
            assert_eq!(describe(key_text), expected, "{key_text}");
        }
        assert_eq!(StoryKey::parse("01-1-a"), StoryKey::parse("1-1-a"));
    }

    #[test]
    fn an_inserted_epic_is_known_from_the_board() {
        let epics: BTreeSet<EpicId> = ["3", "3-5"].iter().filter_map(|epic| EpicId::parse(epic)).collect();
        let number_of = |key_text: &str| {
            StoryKey::parse_on_board(key_text, &epics).unwrap().story_number().map(ToString::to_string)
        };
        assert_eq!(number_of("3-5-1-x").as_deref(), Some("3.5.1"));
        assert_eq!(number_of("3-4-1-x").as_deref(), Some("3.4"));
        assert_eq!(number_of("3-5-words").as_deref(), Some("3.5"));
    }

    #[test]
    fn a_story_is_found_by_its_key_its_number_its_file_or_its_slug() {
        let keys: Vec<StoryKey> =
            ["1-2-log-in", "1-2a-log-in", "1-20-x"].iter().filter_map(|key| StoryKey::parse(key)).collect();
        let matching_keys = |user_input: &str| {
            match_stories(user_input, &keys).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        for (user_input, expected) in [
            ("1-2-log-in", "1-2-log-in"),
            ("out/1-2a-log-in.md", "1-2a-log-in"),
            ("1.2", "1-2-log-in"),
            ("1-2a", "1-2a-log-in"),
            ("log-in", "1-2-log-in 1-2a-log-in"),
            ("1.3", ""),
        ] {
            assert_eq!(matching_keys(user_input), expected, "{user_input}");
        }
    }

    #[test]
    fn slugs_are_made_as_the_planner_makes_them() {
        for (title, expected) in [
            ("User Authentication & SSO (OAuth2)", "user-authentication-sso-oauth2"),
            ("  Log in!  ", "log-in"),
            ("---", ""),
        ] {
            assert_eq!(slugify(title), expected);
        }
    }
}
