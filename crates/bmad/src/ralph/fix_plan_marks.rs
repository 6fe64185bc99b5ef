//! The mark behind a story's item in a fix plan: `<!-- story 1-2 a1b2c3-d4e5f6 -->`. It names the story and has fingerprints of
//! its title and its acceptance criteria, so that the plan itself shows what has changed since it was written. The word
//! `counted` behind them says that the tick of the item has been passed on to the board.

use tribunal_engine::ids::Hash;

use crate::keys::StoryKey;

const MARK_START: &str = "<!-- story ";
const MARK_END: &str = "-->";
const COUNTED_WORD: &str = "counted";
/// A story changes a few times in its life, so a few digits are enough to notice it.
const FINGERPRINT_DIGITS: usize = 6;

/// What a mark says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoryMark {
    /// The name of the story in the plan; see [`story_plan_name`].
    pub story: String,
    pub title_fingerprint: String,
    pub criteria_fingerprint: String,
    /// Whether the tick of the item has been passed on to the board.
    pub is_counted: bool,
}

/// The text of an item without its mark, and the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkedText {
    pub text: String,
    pub mark: Option<StoryMark>,
}

/// The name of a story in a plan: its number with dashes, or its key if it has no number.
pub fn story_plan_name(story_key: &StoryKey) -> String {
    story_key.lookup_name().replace('.', "-")
}

/// A short text that changes with the given one.
pub(super) fn fingerprint_text(text: &str) -> String {
    let digest = Hash::digest_of(text.as_bytes());
    digest.short_hex().chars().take(FINGERPRINT_DIGITS).collect()
}

/// Takes the mark out of the text of an item, wherever it stands.
pub(super) fn split_mark(item_text: &str) -> MarkedText {
    let found_mark = item_text.rsplit_once(MARK_START).and_then(|(before_mark, after_start)| {
        let (mark_words, after_mark) = after_start.split_once(MARK_END)?;
        let text = format!("{} {}", before_mark.trim_end(), after_mark.trim_start());
        Some(MarkedText { text: text.trim().to_string(), mark: Some(StoryMark::parse(mark_words)?) })
    });
    found_mark.unwrap_or_else(|| MarkedText { text: item_text.to_string(), mark: None })
}

impl StoryMark {
    fn parse(mark_words: &str) -> Option<StoryMark> {
        let mut words = mark_words.split_whitespace();
        let story = words.next()?.to_string();
        let (title_fingerprint, criteria_fingerprint) = words.next()?.split_once('-')?;
        Some(StoryMark {
            story,
            title_fingerprint: title_fingerprint.to_string(),
            criteria_fingerprint: criteria_fingerprint.to_string(),
            is_counted: words.any(|word| word == COUNTED_WORD),
        })
    }

    /// The mark as the plan has it.
    pub fn to_comment(&self) -> String {
        let StoryMark { story, title_fingerprint, criteria_fingerprint, is_counted } = self;
        let counted_text = if *is_counted { format!(" {COUNTED_WORD}") } else { String::new() };
        format!("{MARK_START}{story} {title_fingerprint}-{criteria_fingerprint}{counted_text} {MARK_END}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for is_counted in [false, true] {
            let mark = StoryMark {
                story: "5-5-1".into(),
                title_fingerprint: fingerprint_text("Log in"),
                criteria_fingerprint: fingerprint_text(""),
                is_counted,
            };
            let item_text = format!("Story 5.5.1: Log in {} (by an agent)", mark.to_comment());
            let marked = split_mark(&item_text);
            assert_eq!(marked, MarkedText { text: "Story 5.5.1: Log in (by an agent)".into(), mark: Some(mark) });
        }
    }

    #[test]
    fn other_comments_are_text() {
        for item_text in
            ["a <!-- note -->", "a <!-- story 1-2 -->", "a <!-- story 1-2 abc -->", "a <!-- story 1-2 a-b", ""]
        {
            assert_eq!(split_mark(item_text), MarkedText { text: item_text.into(), mark: None });
        }
    }

    #[test]
    fn a_story_is_named_by_its_number_or_its_key() {
        for (key_text, expected) in
            [("1-2-log-in", "1-2"), ("01-2a-x", "1-2a"), ("5.5-1-x", "5-5-1"), ("CORE-001", "core-001")]
        {
            assert_eq!(StoryKey::parse(key_text).map(|key| story_plan_name(&key)).as_deref(), Some(expected));
        }
    }
}
