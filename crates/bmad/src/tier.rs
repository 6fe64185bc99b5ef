//! Which tier a task looks like, with the reasons: a suggestion beside the user's choice, never instead of it.
//!
//! The keywords come from the project's own `project-levels.yaml` where an early alpha has one, otherwise from a built-in
//! list. Keywords match whole words: an ecosystem is not a system.

use tribunal_json::{Serialize, schemars};

use crate::{
    problem::FileProblem,
    yaml::{self, YamlNode},
};

/// The path of the project's own levels, below BMAD's directory.
pub const LEVELS_FILE: &str = "bmm/workflows/workflow-status/project-levels.yaml";
/// The suggestion if nothing says otherwise.
const DEFAULT_TIER: u8 = 2;
const HIGHEST_TIER: u8 = 4;
/// Endings that do not make another word of a keyword.
const WORD_ENDINGS: [&str; 6] = ["", "s", "es", "d", "ed", "ing"];

/// What is known about a task; every part may be missing.
#[derive(Clone, Debug, Default)]
pub struct TierInput<'a> {
    pub description: &'a str,
    pub story_count: Option<u32>,
    /// The number of files that the task will change.
    pub file_count: Option<u32>,
    /// The tiers that were chosen in this project, the latest last.
    pub past_tiers: &'a [u8],
}

/// A tier with the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TierSuggestion {
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
pub struct TierLevels {
    keywords: [Vec<String>; 5],
    story_ranges: [(u32, u32); 5],
}

impl Default for TierLevels {
    fn default() -> TierLevels {
        let keyword_list = |keyword_list: &[&str]| keyword_list.iter().map(|keyword| (*keyword).to_string()).collect();
        TierLevels {
            keywords: [
                keyword_list(&["fix", "bug", "typo", "patch", "hotfix", "rename", "small change", "quick update"]),
                keyword_list(&["add", "simple", "basic", "minor", "small feature", "tweak", "extend"]),
                keyword_list(&["dashboard", "admin panel", "several features", "medium", "feature set", "workflow"]),
                keyword_list(&[
                    "platform",
                    "integration",
                    "complex",
                    "system",
                    "subsystem",
                    "architecture",
                    "migration",
                ]),
                keyword_list(&["enterprise", "multi-tenant", "multiple products", "ecosystem", "compliance", "scale"]),
            ],
            story_ranges: [(1, 1), (1, 10), (5, 15), (12, 40), (40, u32::MAX)],
        }
    }
}

impl TierLevels {
    /// Reads the levels of a project's own file; a level that it does not describe keeps its defaults.
    pub fn from_yaml(levels_path: &str, yaml_text: &str) -> (TierLevels, Vec<FileProblem>) {
        let mut levels = TierLevels::default();
        let root_node = match yaml::parse_yaml(yaml_text) {
            Ok(root_node) => root_node,
            Err(parse_error) => {
                let mut problem = FileProblem::warning("levels-broken", levels_path, parse_error.message);
                problem.line = parse_error.line;
                problem.column = parse_error.column;
                return (levels, vec![problem.with_reason("The built-in keywords are used to suggest a tier.")]);
            }
        };
        let hint_items = |hint_kind: &str, level: usize| {
            root_node.get("detection_hints")?.get(hint_kind)?.get(&format!("level_{level}")).map(YamlNode::items)
        };
        for level in 0..levels.keywords.len() {
            let written_keywords =
                hint_items("keywords", level).unwrap_or_default().iter().filter_map(YamlNode::scalar_text);
            let own_keywords: Vec<String> = written_keywords
                .map(|keyword| keyword.trim().to_lowercase())
                .filter(|keyword| !keyword.is_empty())
                .collect();
            // A level without keywords would never match, so an empty list leaves the built-in ones.
            if !own_keywords.is_empty() {
                levels.keywords[level] = own_keywords;
            }
            let story_range: Vec<u32> = hint_items("story_counts", level)
                .unwrap_or_default()
                .iter()
                .filter_map(|node| node.scalar_text()?.parse().ok())
                .collect();
            if let [lowest, highest] = story_range[..]
                && lowest <= highest
            {
                // `999` means that there is no upper limit.
                levels.story_ranges[level] = (lowest, if highest >= 999 { u32::MAX } else { highest });
            }
        }
        (levels, Vec::new())
    }
}

/// Suggests a tier. The number of stories limits it, keywords choose within the limits, files and habits move it by at most one.
/// Without stories and keywords, the number of files decides.
pub fn suggest_tier(tier_input: &TierInput<'_>, levels: &TierLevels) -> TierSuggestion {
    let mut reasons = Vec::new();
    let keyword_tier = tier_by_words(tier_input.description, levels, &mut reasons);
    let mut tier = match (keyword_tier, tier_input.story_count.map(|story_count| tiers_by_stories(story_count, levels)))
    {
        // A number of stories is a fact, keywords are a hint: the keywords are clamped to what the number allows.
        (_, Some((lowest_tier, highest_tier))) => {
            let story_count = tier_input.story_count.unwrap_or_default();
            let counted_noun = if story_count == 1 { "story suggests" } else { "stories suggest" };
            let tier_span = if lowest_tier == highest_tier {
                format!("tier {lowest_tier}")
            } else {
                format!("tiers {lowest_tier} to {highest_tier}")
            };
            reasons.push(format!("{story_count} {counted_noun} {tier_span}"));
            keyword_tier.unwrap_or(lowest_tier).clamp(lowest_tier, highest_tier)
        }
        (Some(tier), None) => tier,
        (None, None) => DEFAULT_TIER,
    };
    if let Some(file_count) = tier_input.file_count {
        let file_tier = tier_by_files(file_count);
        let counted_noun = if file_count == 1 { "file to change is" } else { "files to change are" };
        reasons.push(format!("{file_count} {counted_noun} typical of tier {file_tier}"));
        tier = match keyword_tier.is_none() && tier_input.story_count.is_none() {
            true => file_tier,
            // The number of files is a guess before the work, so it moves the suggestion by at most one tier.
            false => file_tier.clamp(tier.saturating_sub(1), (tier + 1).min(HIGHEST_TIER)),
        };
    }
    // The habit of a project moves the suggestion only to a neighbouring tier.
    if let Some(usual_choice) = usual_tier(tier_input.past_tiers)
        && usual_choice != tier
        && usual_choice.abs_diff(tier) == 1
    {
        reasons.push(format!("the last three choices in this project were tier {usual_choice}"));
        tier = usual_choice;
    }
    // Every rule above adds a reason, so no reason means that nothing was known.
    let is_default = reasons.is_empty();
    if is_default {
        reasons.push(format!("nothing indicates its size; tier {DEFAULT_TIER} is the default"));
    }
    let method = if tier <= 2 { "BMad Method" } else { "Enterprise Method" };
    TierSuggestion { tier, method, reasons, is_default }
}

/// The tier with the most matching keywords; among equals the higher one.
fn tier_by_words(description: &str, levels: &TierLevels, reasons: &mut Vec<String>) -> Option<u8> {
    let description_tokens = tokenize(description);
    let matches_per_tier: Vec<Vec<&str>> = levels
        .keywords
        .iter()
        .map(|keywords| {
            keywords
                .iter()
                .map(String::as_str)
                .filter(|keyword| contains_phrase(&description_tokens, keyword))
                .collect()
        })
        .collect();
    // The tier is part of the key, so that the higher one wins among equals.
    let (tier, best_matches) =
        matches_per_tier.iter().enumerate().max_by_key(|(tier, matched_words)| (matched_words.len(), *tier))?;
    if best_matches.is_empty() {
        return None;
    }
    for (tier, matched_words) in
        matches_per_tier.iter().enumerate().filter(|(_, matched_words)| !matched_words.is_empty())
    {
        let quoted_words = matched_words.iter().map(|keyword| format!("“{keyword}”")).collect::<Vec<_>>().join(", ");
        reasons.push(format!("{quoted_words}: tier {tier}"));
    }
    u8::try_from(tier).ok()
}

/// Splits a text into lower-case words without punctuation; a hyphen stays.
pub(crate) fn tokenize(plain_text: &str) -> Vec<String> {
    let raw_words = plain_text.split(|character: char| !character.is_alphanumeric() && character != '-');
    raw_words
        .map(|raw_word| raw_word.trim_matches('-').to_lowercase())
        .filter(|raw_word| !raw_word.is_empty())
        .collect()
}

/// Whether a text contains a word or several consecutive words; the last one may have another ending.
pub(crate) fn contains_phrase(tokens: &[String], phrase: &str) -> bool {
    let phrase_tokens = self::tokenize(phrase);
    let Some((last_token, leading_tokens)) = phrase_tokens.split_last() else { return false };
    tokens.windows(phrase_tokens.len()).any(|window| {
        let Some((window_end, window_start)) = window.split_last() else { return false };
        window_start == leading_tokens
            && window_end.strip_prefix(last_token.as_str()).is_some_and(|ending| WORD_ENDINGS.contains(&ending))
    })
}

/// The lowest and the highest tier for a number of stories.
fn tiers_by_stories(story_count: u32, levels: &TierLevels) -> (u8, u8) {
    let contains_count = |(lowest, highest): &(u32, u32)| (*lowest..=*highest).contains(&story_count);
    let tier_of = |index: usize| u8::try_from(index).unwrap_or(HIGHEST_TIER);
    let lowest_tier = levels.story_ranges.iter().position(contains_count).map(tier_of);
    let highest_tier = levels.story_ranges.iter().rposition(contains_count).map(tier_of);
    match (lowest_tier, highest_tier) {
        (Some(lowest_tier), Some(highest_tier)) => (lowest_tier, highest_tier),
        // No range contains the count: zero stories are the lowest tier, any other count is the highest.
        _ if story_count == 0 => (0, 0),
        _ => (HIGHEST_TIER, HIGHEST_TIER),
    }
}

fn tier_by_files(file_count: u32) -> u8 {
    match file_count {
        0 | 1 => 0,
        2..=5 => 1,
        6..=20 => 2,
        21..=60 => 3,
        _ => HIGHEST_TIER,
    }
}

/// The tier of the last three choices, if they were the same.
fn usual_tier(past_tiers: &[u8]) -> Option<u8> {
    match past_tiers {
        [.., third_last, second_last, last]
            if third_last == second_last && second_last == last && *third_last <= HIGHEST_TIER =>
        {
            Some(*third_last)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_suggestion(tier_input: &TierInput<'_>, levels: &TierLevels) -> String {
        let TierSuggestion { tier, method, reasons, .. } = suggest_tier(tier_input, levels);
        format!("{tier} {method}: {}", reasons.join("; "))
    }

    #[test]
    fn a_tier_is_suggested_with_its_reasons() {
        let with_description = |with_description| TierInput { description: with_description, ..TierInput::default() };
        let tier_inputs = [
            with_description(""),
            with_description("Fix the typo on the dashboard"),
            with_description("Adding a simple filter"),
            with_description("A multi-tenant platform for the enterprise"),
            with_description("address the message"),
            TierInput { story_count: Some(7), ..with_description("Add a report") },
            TierInput { story_count: Some(7), ..with_description("an enterprise ecosystem") },
            TierInput { story_count: Some(1), ..TierInput::default() },
            TierInput { story_count: Some(60), ..with_description("fix") },
            TierInput { file_count: Some(30), ..with_description("add") },
            TierInput { file_count: Some(1), ..TierInput::default() },
            TierInput { past_tiers: &[0, 3, 3, 3], ..with_description("dashboard") },
            TierInput { past_tiers: &[4, 4, 4], ..with_description("typo") },
        ];
        let levels = TierLevels::default();
        let rendered: Vec<String> =
            tier_inputs.iter().map(|tier_input| render_suggestion(tier_input, &levels)).collect();
        insta::assert_snapshot!(rendered.join("\n"));
    }

    #[test]
    fn a_default_is_distinguished_from_a_suggestion() {
        let is_default = |tier_input: &TierInput<'_>| suggest_tier(tier_input, &TierLevels::default()).is_default;
        assert!(is_default(&TierInput::default()));
        assert!(is_default(&TierInput { description: "the last tier of the cake", ..TierInput::default() }));
        assert!(!is_default(&TierInput { description: "dashboard", ..TierInput::default() }));
        assert!(!is_default(&TierInput { story_count: Some(7), ..TierInput::default() }));
    }

    #[test]
    fn the_levels_file_of_a_project_overrides_the_defaults() {
        let yaml_text = "detection_hints:\n  keywords:\n    level_4: [\"Rocket\"]\n  story_counts:\n    level_0: [1, 3]\n\
            \x20   level_4: [4, 999]\n    level_1: [9, 2]\n";
        let (levels, problems) = TierLevels::from_yaml("l.yaml", yaml_text);
        assert_eq!(problems, []);
        assert!(
            render_suggestion(&TierInput { description: "two rockets", ..TierInput::default() }, &levels)
                .starts_with("4 ")
        );
        assert_eq!(tiers_by_stories(3, &levels), (0, 1));
        assert_eq!(tiers_by_stories(5000, &levels), (4, 4));
        let (levels, problems) = TierLevels::from_yaml("l.yaml", "a: [\n");
        assert_eq!(levels, TierLevels::default());
        assert_eq!(problems[0].rule, "levels-broken");
    }

    proptest! {
        #[test]
        fn a_suggestion_is_always_a_tier(
            words in "\\PC{0,60}",
            story_count in any::<Option<u32>>(),
            file_count in any::<Option<u32>>(),
            past in proptest::collection::vec(any::<u8>(), 0..5),
        ) {
            let tier_input = TierInput { description: &words, story_count, file_count, past_tiers: &past };
            let suggestion = suggest_tier(&tier_input, &TierLevels::default());
            prop_assert!(suggestion.tier <= HIGHEST_TIER && !suggestion.reasons.is_empty());
        }
    }
}
