//! The keys of a board: `epic-1`, `1-2-log-in`, `epic-1-retrospective`, and the states that each of them can have.
//!
//! The grammar is BMAD's own and the same in every era. Older names of a state are understood and never written.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// What a key on the board stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BoardKey {
    Epic(u32),
    Story(StoryKey),
    Retrospective(u32),
}

/// The key of a story, `1-2-log-in`; a story that was split has a letter: `2-6a-log-in`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoryKey {
    pub epic: u32,
    pub number: u32,
    /// The letter of a split story.
    pub letter: Option<char>,
    pub slug: String,
}

impl BoardKey {
    pub fn parse(key_text: &str) -> Option<BoardKey> {
        if let Some(after_prefix) = key_text.strip_prefix("epic-") {
            return match after_prefix.strip_suffix("-retrospective") {
                Some(epic_digits) => parse_digits(epic_digits).map(BoardKey::Retrospective),
                None => parse_digits(after_prefix).map(BoardKey::Epic),
            };
        }
        StoryKey::parse(key_text).map(BoardKey::Story)
    }

    /// The number of the epic that the key belongs to.
    pub fn epic_number(&self) -> u32 {
        match self {
            BoardKey::Epic(epic) | BoardKey::Retrospective(epic) => *epic,
            BoardKey::Story(story) => story.epic,
        }
    }
}

impl StoryKey {
    pub fn parse(key_text: &str) -> Option<StoryKey> {
        let (epic, after_epic) = key_text.split_once('-')?;
        let (number_text, slug) = after_epic.split_once('-')?;
        // The slug may contain dashes, so only the first two are separators.
        let (number_text, letter) = parse_lettered_number(number_text)?;
        let epic = parse_digits(epic)?;
        (!slug.is_empty()).then(|| StoryKey { epic, number: number_text, letter, slug: slug.to_string() })
    }

    /// The number that epics and stories use for it: `1.2`, `2.6a`.
    pub fn story_number(&self) -> StoryNumber {
        StoryNumber { epic: self.epic, number: self.number, letter: self.letter }
    }
}

/// The number of a story, without its slug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoryNumber {
    pub epic: u32,
    pub number: u32,
    pub letter: Option<char>,
}

impl StoryNumber {
    /// Parses `1.2`, `1-2` or `2.6a`.
    pub fn parse(number_text: &str) -> Option<StoryNumber> {
        let (epic, number) = number_text.trim().split_once(['.', '-'])?;
        let (number, letter) = parse_lettered_number(number)?;
        Some(StoryNumber { epic: parse_digits(epic)?, number, letter })
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
        .filter(|story_key| Some(story_key.story_number()) == story_number || story_key.slug == file_stem)
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

fn parse_digits(digits: &str) -> Option<u32> {
    // `parse` alone would accept a leading `+`.
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn parse_lettered_number(number_text: &str) -> Option<(u32, Option<char>)> {
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
        write!(formatter, "{}-{}", self.epic, self.number)?;
        self.letter.map_or(Ok(()), |letter| write!(formatter, "{letter}"))?;
        write!(formatter, "-{}", self.slug)
    }
}

impl fmt::Display for StoryNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.epic, self.number)?;
        self.letter.map_or(Ok(()), |letter| write!(formatter, "{letter}"))
    }
}

impl Serialize for BoardKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for StoryKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for StoryNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Implements the JSON schema of types that are serialized as text.
macro_rules! schema_of_text {
    ($($kind:ident: $example:literal),*) => {$(
        impl JsonSchema for $kind {
            fn schema_name() -> Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "examples": [$example] })
            }
        }
    )*};
}

schema_of_text!(BoardKey: "epic-1", StoryKey: "1-2-log-in", StoryNumber: "1.2");

/// The states of a story, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoryStatus {
    Backlog,
    ReadyForDev,
    InProgress,
    Review,
    Done,
}

/// The states of an epic, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpicStatus {
    Backlog,
    InProgress,
    Done,
}

/// The states of a retrospective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetroStatus {
    Optional,
    Done,
}

impl StoryStatus {
    pub const ALL: [StoryStatus; 5] = [
        StoryStatus::Backlog,
        StoryStatus::ReadyForDev,
        StoryStatus::InProgress,
        StoryStatus::Review,
        StoryStatus::Done,
    ];

    /// Parses a state in any case and with its older names; `in-review` is the name that specs of late eras use.
    pub fn parse(status_text: &str) -> Option<StoryStatus> {
        Some(match normalize_status(status_text).as_str() {
            "backlog" => StoryStatus::Backlog,
            // Early eras call a written story `drafted`.
            "ready-for-dev" | "drafted" => StoryStatus::ReadyForDev,
            "in-progress" => StoryStatus::InProgress,
            "review" | "in-review" => StoryStatus::Review,
            "done" => StoryStatus::Done,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            StoryStatus::Backlog => "backlog",
            StoryStatus::ReadyForDev => "ready-for-dev",
            StoryStatus::InProgress => "in-progress",
            StoryStatus::Review => "review",
            StoryStatus::Done => "done",
        }
    }
}

impl EpicStatus {
    pub const ALL: [EpicStatus; 3] = [EpicStatus::Backlog, EpicStatus::InProgress, EpicStatus::Done];

    pub fn parse(status_text: &str) -> Option<EpicStatus> {
        Some(match normalize_status(status_text).as_str() {
            "backlog" => EpicStatus::Backlog,
            // Early eras call an epic `contexted` once its context is written.
            "in-progress" | "contexted" => EpicStatus::InProgress,
            "done" => EpicStatus::Done,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            EpicStatus::Backlog => "backlog",
            EpicStatus::InProgress => "in-progress",
            EpicStatus::Done => "done",
        }
    }
}

impl RetroStatus {
    pub const ALL: [RetroStatus; 2] = [RetroStatus::Optional, RetroStatus::Done];

    pub fn parse(status_text: &str) -> Option<RetroStatus> {
        Some(match normalize_status(status_text).as_str() {
            "optional" => RetroStatus::Optional,
            "done" => RetroStatus::Done,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            RetroStatus::Optional => "optional",
            RetroStatus::Done => "done",
        }
    }
}

/// Folds `Ready for Dev` and `in_progress` to one spelling, since users and agents write states as they like.
fn normalize_status(status_text: &str) -> String {
    status_text.trim().trim_matches(['*', '`', '_', '"', '\'']).to_lowercase().replace([' ', '_'], "-")
}

impl fmt::Display for StoryStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for EpicStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for RetroStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_bmad_reads_them_and_written_as_they_were() {
        for key_text in ["epic-1", "epic-12-retrospective", "1-2-log-in", "2-6a-x", "10-11-a-1-2", "1-2--", "1-2-Ü"] {
            assert_eq!(BoardKey::parse(key_text).unwrap().to_string(), key_text);
        }
        for invalid_key in [
            "epic-",
            "epic-x",
            "epic-1-retro",
            "1-2",
            "1-2-",
            "1-2A-x",
            "1-ab-x",
            "a-1-x",
            "",
            "1-2ab-x",
            "epic-99999999999",
        ] {
            assert_eq!(BoardKey::parse(invalid_key), None, "{invalid_key}");
        }
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

    #[test]
    fn older_words_are_understood() {
        assert_eq!(StoryStatus::parse("drafted"), Some(StoryStatus::ReadyForDev));
        assert_eq!(StoryStatus::parse("**Ready for Dev**"), Some(StoryStatus::ReadyForDev));
        assert_eq!(StoryStatus::parse("in-review"), Some(StoryStatus::Review));
        assert_eq!(StoryStatus::parse("ready-for-review"), None);
        assert_eq!(EpicStatus::parse("contexted"), Some(EpicStatus::InProgress));
        assert_eq!(RetroStatus::parse("Optional"), Some(RetroStatus::Optional));
    }
}
