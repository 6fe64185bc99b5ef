//! Which tier a task looks like, with the reasons: a suggestion beside the user's choice, never instead of it.
//!
//! The keywords come from the project's own `project-levels.yaml` where an early alpha has one, otherwise from a built-in
//! list. Keywords match whole words: an ecosystem is not a system.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    problem::Problem,
    yaml::{self, Node},
};

/// The path of the project's own levels, below BMAD's directory.
pub const LEVELS: &str = "bmm/workflows/workflow-status/project-levels.yaml";
/// The suggestion if nothing says otherwise.
const DEFAULT: u8 = 2;
const HIGHEST: u8 = 4;
/// Endings that do not make another word of a keyword.
const ENDINGS: [&str; 6] = ["", "s", "es", "d", "ed", "ing"];

/// What is known about a task; every part may be missing.
#[derive(Clone, Debug, Default)]
pub struct Task<'a> {
    pub words: &'a str,
    pub stories: Option<u32>,
    /// The number of files that the task will change.
    pub files: Option<u32>,
    /// The tiers that were chosen in this project, the latest last.
    pub past: &'a [u8],
}

/// A tier with the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suggestion {
    pub tier: u8,
    /// `BMad Method` for 0 to 2, `Enterprise Method` above.
    pub method: &'static str,
    pub reasons: Vec<String>,
    /// Whether nothing showed how big the task is, so that the tier is the default.
    #[serde(skip)]
    pub is_default: bool,
}

/// What identifies a level: its keywords and its range of story counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    words: [Vec<String>; 5],
    stories: [(u32, u32); 5],
}

impl Default for Levels {
    fn default() -> Levels {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect();
        Levels {
            words: [
                words(&["fix", "bug", "typo", "patch", "hotfix", "rename", "small change", "quick update"]),
                words(&["add", "simple", "basic", "minor", "small feature", "tweak", "extend"]),
                words(&["dashboard", "admin panel", "several features", "medium", "feature set", "workflow"]),
                words(&[
                    "platform",
                    "integration",
                    "complex",
                    "system",
                    "subsystem",
                    "architecture",
                    "migration",
                ]),
                words(&[
                    "enterprise",
                    "multi-tenant",
                    "multiple products",
                    "ecosystem",
                    "compliance",
                    "scale",
                ]),
            ],
            stories: [(1, 1), (1, 10), (5, 15), (12, 40), (40, u32::MAX)],
        }
    }
}

impl Levels {
    /// Reads the levels of a project's own file; a level that it does not describe keeps its defaults.
    pub fn read(path: &str, text: &str) -> (Levels, Vec<Problem>) {
        let mut levels = Levels::default();
        let tree = match yaml::parse(text) {
            Ok(tree) => tree,
            Err(broken) => {
                let mut problem = Problem::warning("levels-broken", path, broken.what);
                problem.line = broken.line;
                problem.column = broken.column;
                return (levels, vec![problem.why("the built-in words are used for suggesting a tier")]);
            }
        };
        let hints = |kind: &str, level: usize| {
            tree.get("detection_hints")?.get(kind)?.get(&format!("level_{level}")).map(Node::items)
        };
        for level in 0..levels.words.len() {
            let own = hints("keywords", level).unwrap_or_default().iter().filter_map(Node::text);
            let own: Vec<String> =
                own.map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty()).collect();
            // An empty list in the file is a template that was not filled in.
            if !own.is_empty() {
                levels.words[level] = own;
            }
            let range: Vec<u32> = hints("story_counts", level)
                .unwrap_or_default()
                .iter()
                .filter_map(|node| node.text()?.parse().ok())
                .collect();
            if let [from, to] = range[..]
                && from <= to
            {
                // `999` means that there is no upper limit.
                levels.stories[level] = (from, if to >= 999 { u32::MAX } else { to });
            }
        }
        (levels, Vec::new())
    }
}

/// Suggests a tier. The number of stories limits it, keywords choose within the limits, files and habits move it by one.
pub fn suggest(task: &Task<'_>, levels: &Levels) -> Suggestion {
    let mut reasons = Vec::new();
    let by_words = by_words(task.words, levels, &mut reasons);
    let mut tier = match (by_words, task.stories.map(|stories| by_stories(stories, levels))) {
        // A number of stories is a fact, keywords are a hint: the keywords are clamped to what the number allows.
        (_, Some((low, high))) => {
            let stories = task.stories.unwrap_or_default();
            let noun = if stories == 1 { "story is" } else { "stories are" };
            let span = if low == high { format!("tier {low}") } else { format!("tiers {low} to {high}") };
            reasons.push(format!("{stories} {noun} of {span}"));
            by_words.unwrap_or(low).clamp(low, high)
        }
        (Some(tier), None) => tier,
        (None, None) => DEFAULT,
    };
    if let Some(files) = task.files {
        let by_files = of_files(files);
        let noun = if files == 1 { "file to touch is" } else { "files to touch are" };
        reasons.push(format!("{files} {noun} usual at tier {by_files}"));
        tier = match by_words.is_none() && task.stories.is_none() {
            true => by_files,
            // The number of files is a guess before the work, so it moves the suggestion by at most one tier.
            false => by_files.clamp(tier.saturating_sub(1), (tier + 1).min(HIGHEST)),
        };
    }
    // The habit of a project moves the suggestion only to a neighbouring tier.
    if let Some(usual) = usual(task.past)
        && usual != tier
        && usual.abs_diff(tier) == 1
    {
        reasons.push(format!("the last three choices in this project were tier {usual}"));
        tier = usual;
    }
    // Every rule above adds a reason, so no reason means that nothing was known.
    let is_default = reasons.is_empty();
    if is_default {
        reasons.push(format!("nothing tells how big it is; {DEFAULT} is the usual one"));
    }
    let method = if tier <= 2 { "BMad Method" } else { "Enterprise Method" };
    Suggestion { tier, method, reasons, is_default }
}

/// The tier with the most matching keywords; among equals the higher one.
fn by_words(words: &str, levels: &Levels, reasons: &mut Vec<String>) -> Option<u8> {
    let tokens = tokens(words);
    let found: Vec<Vec<&str>> = levels
        .words
        .iter()
        .map(|words| words.iter().map(String::as_str).filter(|word| stands_in(&tokens, word)).collect())
        .collect();
    // The tier is part of the key, so that the higher one wins among equals.
    let (tier, most) = found.iter().enumerate().max_by_key(|(tier, words)| (words.len(), *tier))?;
    if most.is_empty() {
        return None;
    }
    for (tier, words) in found.iter().enumerate().filter(|(_, words)| !words.is_empty()) {
        let words = words.iter().map(|word| format!("“{word}”")).collect::<Vec<_>>().join(", ");
        reasons.push(format!("{words}: tier {tier}"));
    }
    u8::try_from(tier).ok()
}

/// Splits a text into lower-case words without punctuation; a hyphen stays.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
    words.map(|word| word.trim_matches('-').to_lowercase()).filter(|word| !word.is_empty()).collect()
}

/// Whether a text contains a word or several consecutive words; the last one may have another ending.
pub(crate) fn stands_in(tokens: &[String], phrase: &str) -> bool {
    let wanted = self::tokens(phrase);
    let Some((last, before)) = wanted.split_last() else { return false };
    tokens.windows(wanted.len()).any(|window| {
        let Some((end, start)) = window.split_last() else { return false };
        start == before && end.strip_prefix(last.as_str()).is_some_and(|rest| ENDINGS.contains(&rest))
    })
}

/// The lowest and the highest tier for a number of stories.
fn by_stories(stories: u32, levels: &Levels) -> (u8, u8) {
    let has = |(from, to): &(u32, u32)| (*from..=*to).contains(&stories);
    let tier = |index: usize| u8::try_from(index).unwrap_or(HIGHEST);
    let low = levels.stories.iter().position(has).map(tier);
    let high = levels.stories.iter().rposition(has).map(tier);
    match (low, high) {
        (Some(low), Some(high)) => (low, high),
        // No range contains the count: zero stories are the lowest tier, any other count is the highest.
        _ if stories == 0 => (0, 0),
        _ => (HIGHEST, HIGHEST),
    }
}

fn of_files(files: u32) -> u8 {
    match files {
        0 | 1 => 0,
        2..=5 => 1,
        6..=20 => 2,
        21..=60 => 3,
        _ => HIGHEST,
    }
}

/// The tier of the last three choices, if they were the same.
fn usual(past: &[u8]) -> Option<u8> {
    match past {
        [.., a, b, c] if a == b && b == c && *a <= HIGHEST => Some(*a),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(task: &Task<'_>, levels: &Levels) -> String {
        let Suggestion { tier, method, reasons, .. } = suggest(task, levels);
        format!("{tier} {method}: {}", reasons.join("; "))
    }

    #[test]
    fn a_tier_is_suggested_with_its_reasons() {
        let words = |words| Task { words, ..Task::default() };
        let all = [
            words(""),
            words("Fix the typo on the dashboard"),
            words("Adding a simple filter"),
            words("A multi-tenant platform for the enterprise"),
            words("address the message"),
            Task { stories: Some(7), ..words("Add a report") },
            Task { stories: Some(7), ..words("an enterprise ecosystem") },
            Task { stories: Some(1), ..Task::default() },
            Task { stories: Some(60), ..words("fix") },
            Task { files: Some(30), ..words("add") },
            Task { files: Some(1), ..Task::default() },
            Task { past: &[0, 3, 3, 3], ..words("dashboard") },
            Task { past: &[4, 4, 4], ..words("typo") },
        ];
        let levels = Levels::default();
        let lines: Vec<String> = all.iter().map(|task| drawn(task, &levels)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_default_is_told_from_a_suggestion() {
        let is_default = |task: &Task<'_>| suggest(task, &Levels::default()).is_default;
        assert!(is_default(&Task::default()));
        assert!(is_default(&Task { words: "the last tier of the cake", ..Task::default() }));
        assert!(!is_default(&Task { words: "dashboard", ..Task::default() }));
        assert!(!is_default(&Task { stories: Some(7), ..Task::default() }));
    }

    #[test]
    fn a_project_s_own_levels_count() {
        let text = "detection_hints:\n  keywords:\n    level_4: [\"Rocket\"]\n  story_counts:\n    level_0: [1, 3]\n\
            \x20   level_4: [4, 999]\n    level_1: [9, 2]\n";
        let (levels, problems) = Levels::read("l.yaml", text);
        assert_eq!(problems, []);
        assert!(drawn(&Task { words: "two rockets", ..Task::default() }, &levels).starts_with("4 "));
        assert_eq!(by_stories(3, &levels), (0, 1));
        assert_eq!(by_stories(5000, &levels), (4, 4));
        let (levels, problems) = Levels::read("l.yaml", "a: [\n");
        assert_eq!(levels, Levels::default());
        assert_eq!(problems[0].rule, "levels-broken");
    }

    proptest! {
        #[test]
        fn a_suggestion_is_always_a_tier(
            words in "\\PC{0,60}",
            stories in any::<Option<u32>>(),
            files in any::<Option<u32>>(),
            past in proptest::collection::vec(any::<u8>(), 0..5),
        ) {
            let suggestion = suggest(&Task { words: &words, stories, files, past: &past }, &Levels::default());
            prop_assert!(suggestion.tier <= HIGHEST && !suggestion.reasons.is_empty());
        }
    }
}
