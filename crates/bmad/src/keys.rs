//! The keys of a board: `epic-1`, `1-2-log-in`, `epic-1-retrospective`, and the states that each of them can have.
//!
//! The grammar is BMAD's own and the same in every era. Older names of a state are understood and never written.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// What a key on the board stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
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

impl Key {
    pub fn parse(key: &str) -> Option<Key> {
        if let Some(rest) = key.strip_prefix("epic-") {
            return match rest.strip_suffix("-retrospective") {
                Some(number) => whole(number).map(Key::Retrospective),
                None => whole(rest).map(Key::Epic),
            };
        }
        StoryKey::parse(key).map(Key::Story)
    }

    /// The number of the epic that the key belongs to.
    pub fn epic(&self) -> u32 {
        match self {
            Key::Epic(epic) | Key::Retrospective(epic) => *epic,
            Key::Story(story) => story.epic,
        }
    }
}

impl StoryKey {
    pub fn parse(key: &str) -> Option<StoryKey> {
        let (epic, rest) = key.split_once('-')?;
        let (number, slug) = rest.split_once('-')?;
        // The slug may contain dashes, so only the first two are separators.
        let (number, letter) = lettered(number)?;
        let epic = whole(epic)?;
        (!slug.is_empty()).then(|| StoryKey { epic, number, letter, slug: slug.to_string() })
    }

    /// The number that epics and stories use for it: `1.2`, `2.6a`.
    pub fn number(&self) -> Number {
        Number { epic: self.epic, number: self.number, letter: self.letter }
    }
}

/// The number of a story, without its slug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    pub epic: u32,
    pub number: u32,
    pub letter: Option<char>,
}

impl Number {
    /// Parses `1.2`, `1-2` or `2.6a`.
    pub fn parse(said: &str) -> Option<Number> {
        let (epic, number) = said.trim().split_once(['.', '-'])?;
        let (number, letter) = lettered(number)?;
        Some(Number { epic: whole(epic)?, number, letter })
    }
}

/// The stories that the user's input names: a key, a number (`1.2`, `1-2`), a slug or a file. Several stories may match a
/// slug.
pub fn meant<'k>(typed: &str, keys: impl IntoIterator<Item = &'k StoryKey>) -> Vec<&'k StoryKey> {
    let typed = typed.trim();
    // A path may be pasted from anywhere; only the file's name identifies the story.
    let name = typed.rsplit('/').next().unwrap_or(typed);
    let name = name.strip_suffix(".md").unwrap_or(name);
    let number = Number::parse(name);
    let all: Vec<&StoryKey> = keys.into_iter().collect();
    // An exact key wins over a number: `1-2-3` could be read as either.
    let exact: Vec<&StoryKey> = all.iter().copied().filter(|key| key.to_string() == name).collect();
    if !exact.is_empty() {
        return exact;
    }
    all.into_iter().filter(|key| Some(key.number()) == number || key.slug == name).collect()
}

/// The slug that BMAD's planner makes of a title: `User Authentication & SSO (OAuth2)` becomes
/// `user-authentication-sso-oauth2`.
pub fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.trim().to_lowercase().chars() {
        match c {
            c if c.is_alphanumeric() => slug.push(c),
            // A run of other characters becomes one dash, and none at the start.
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_string()
}

fn whole(digits: &str) -> Option<u32> {
    // `parse` alone would accept a leading `+`.
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn lettered(said: &str) -> Option<(u32, Option<char>)> {
    // An upper-case letter would make two keys of one story.
    let letter = said.chars().last().filter(char::is_ascii_lowercase);
    let digits = if letter.is_some() { &said[..said.len() - 1] } else { said };
    Some((whole(digits)?, letter))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Epic(epic) => write!(f, "epic-{epic}"),
            Key::Story(story) => story.fmt(f),
            Key::Retrospective(epic) => write!(f, "epic-{epic}-retrospective"),
        }
    }
}

impl fmt::Display for StoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epic, self.number)?;
        self.letter.map_or(Ok(()), |letter| write!(f, "{letter}"))?;
        write!(f, "-{}", self.slug)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epic, self.number)?;
        self.letter.map_or(Ok(()), |letter| write!(f, "{letter}"))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for StoryKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
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

schema_of_text!(Key: "epic-1", StoryKey: "1-2-log-in", Number: "1.2");

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
    pub fn parse(said: &str) -> Option<StoryStatus> {
        Some(match folded(said).as_str() {
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

    pub fn parse(said: &str) -> Option<EpicStatus> {
        Some(match folded(said).as_str() {
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

    pub fn parse(said: &str) -> Option<RetroStatus> {
        Some(match folded(said).as_str() {
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
fn folded(said: &str) -> String {
    said.trim().trim_matches(['*', '`', '_', '"', '\'']).to_lowercase().replace([' ', '_'], "-")
}

impl fmt::Display for StoryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for EpicStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RetroStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_bmad_reads_them_and_written_as_they_were() {
        for key in
            ["epic-1", "epic-12-retrospective", "1-2-log-in", "2-6a-x", "10-11-a-1-2", "1-2--", "1-2-Ü"]
        {
            assert_eq!(Key::parse(key).unwrap().to_string(), key);
        }
        for no in [
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
            assert_eq!(Key::parse(no), None, "{no}");
        }
    }

    #[test]
    fn a_story_is_meant_by_its_key_its_number_its_file_or_its_slug() {
        let keys: Vec<StoryKey> =
            ["1-2-log-in", "1-2a-log-in", "1-20-x"].iter().filter_map(|key| StoryKey::parse(key)).collect();
        let said =
            |typed: &str| meant(typed, &keys).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        for (typed, found) in [
            ("1-2-log-in", "1-2-log-in"),
            ("out/1-2a-log-in.md", "1-2a-log-in"),
            ("1.2", "1-2-log-in"),
            ("1-2a", "1-2a-log-in"),
            ("log-in", "1-2-log-in 1-2a-log-in"),
            ("1.3", ""),
        ] {
            assert_eq!(said(typed), found, "{typed}");
        }
    }

    #[test]
    fn slugs_are_the_planner_s() {
        for (title, slugged) in [
            ("User Authentication & SSO (OAuth2)", "user-authentication-sso-oauth2"),
            ("  Log in!  ", "log-in"),
            ("---", ""),
        ] {
            assert_eq!(slug(title), slugged);
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
