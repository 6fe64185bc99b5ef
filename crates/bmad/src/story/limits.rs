//! What the front matter of a story says about how far agents may go on their own: checkpoints, at which a human has to agree, and budgets.
//!
//! Tribunal obeys none of these fields: its limits are settings. Users and other programs that drive BMAD read them, each with names of its
//! own, so a field is known by a word in its name.

use std::collections::BTreeMap;

use super::links::join_scalars;
use crate::{markdown::MarkdownPage, yaml};

/// The words in the name of a field with a limit, as in `done_checkpoint` and `max_cost`.
const LIMIT_WORDS: [&str; 10] =
    ["approval", "budget", "budgets", "checkpoint", "checkpoints", "hitl", "limit", "limits", "max", "timeout"];

/// Reads the fields that limit agents, by their names. Empty fields are those of a template, and front matter that cannot be read has none.
pub fn read_limits(story_text: &str) -> BTreeMap<String, String> {
    let markdown = MarkdownPage::parse(story_text);
    let Some(Ok(front_matter)) = markdown.front_matter().map(yaml::parse_yaml) else { return BTreeMap::new() };
    let limits = front_matter.entries().iter().filter(|entry| is_limit_name(&entry.key));
    let named_limits = limits.map(|entry| (entry.key.clone(), join_scalars(&entry.value)));
    named_limits.filter(|(_, limit)| !limit.is_empty()).collect()
}

/// Whether a name has one of the words: `done_checkpoint`, `max-cost`, `doneCheckpoint`, `HITL`.
fn is_limit_name(field_name: &str) -> bool {
    let mut spaced_name = String::new();
    for character in field_name.chars() {
        if character.is_uppercase() {
            spaced_name.push(' ');
        }
        spaced_name.push(character);
    }
    let has_limit_word = |name: &str| {
        let lower_name = name.to_lowercase();
        lower_name.split(|character: char| !character.is_alphanumeric()).any(|word| LIMIT_WORDS.contains(&word))
    };
    has_limit_word(&spaced_name) || has_limit_word(field_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_limits_are_known_by_a_word_in_their_names() {
        let story_text = "---\nstatus: review\ndone_checkpoint: true\nspecCheckpoint: yes\nmax-cost: 5.00\nHITL: [plan, commit]\n\
                          budget:\n  tokens: 2000\ntoken_budget:\nmaximal: 1\nreview_gates_passed: [build]\n---\n# A\n\nmax: 3\n";
        let limits = read_limits(story_text);
        let rendered: Vec<String> = limits.iter().map(|(name, limit)| format!("{name} = {limit}")).collect();
        assert_eq!(
            rendered,
            [
                "HITL = plan, commit",
                "budget = tokens: 2000",
                "done_checkpoint = true",
                "max-cost = 5.00",
                "specCheckpoint = yes"
            ]
        );
        for story_text in ["# A\n", "---\nmax_cost: [\n---\n# A\n", "---\nmax_cost: 5\n", ""] {
            assert_eq!(read_limits(story_text), BTreeMap::new(), "{story_text}");
        }
    }
}
