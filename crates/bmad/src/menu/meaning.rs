//! The meaning of an option, by its label. The key decides only if there is no label and the keys are those that BMAD always
//! uses the same way.

use tribunal_json::{Node, ToJson};

/// What an option does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChoiceMeaning {
    /// Continue with the next step, or finish.
    Continue,
    /// Approve what was shown, as a gate asks.
    Approve,
    /// Start advanced elicitation.
    Advanced,
    Party,
    /// Continue to the end without asking.
    Yolo,
    Exit,
    Back,
    Edit,
    Fix,
    Skip,
    Validate,
    Yes,
    No,
    /// None of these; the label says what it is.
    Other(String),
}

impl ChoiceMeaning {
    pub fn as_str(&self) -> &str {
        match self {
            ChoiceMeaning::Continue => "continue",
            ChoiceMeaning::Approve => "approve",
            ChoiceMeaning::Advanced => "advanced elicitation",
            ChoiceMeaning::Party => "party",
            ChoiceMeaning::Yolo => "yolo",
            ChoiceMeaning::Exit => "exit",
            ChoiceMeaning::Back => "back",
            ChoiceMeaning::Edit => "edit",
            ChoiceMeaning::Fix => "fix",
            ChoiceMeaning::Skip => "skip",
            ChoiceMeaning::Validate => "validate",
            ChoiceMeaning::Yes => "yes",
            ChoiceMeaning::No => "no",
            ChoiceMeaning::Other(label) => label,
        }
    }

    /// The meaning of a label. The first rule that fits decides, so leaving a party is an exit, and "yes, continue"
    /// continues.
    pub(super) fn from_label(label: &str) -> ChoiceMeaning {
        let lower_label = label.to_lowercase();
        let label_words: Vec<&str> = lower_label
            .split(|character: char| !character.is_alphanumeric() && character != '-')
            .filter(|word| !word.is_empty())
            .collect();
        let first_word = label_words.first().copied().unwrap_or_default();
        let has_word = |word: &str| label_words.contains(&word);
        let begins_with_any = |start_words: &[&str]| start_words.contains(&first_word);
        match () {
            () if label_words.is_empty() => ChoiceMeaning::Other(String::new()),
            () if has_word("yolo") => ChoiceMeaning::Yolo,
            // Exits come before all rules below: an option that leaves must not be taken for one that goes on.
            () if begins_with_any(&["exit", "quit", "stop", "abort", "cancel", "done"])
                || has_word("exit")
                || ["end party", "end session", "end workflow", "leave party"]
                    .iter()
                    .any(|exit_phrase| lower_label.starts_with(exit_phrase)) =>
            {
                ChoiceMeaning::Exit
            }
            () if has_word("elicitation") || lower_label == "advanced" || lower_label == "advanced discovery" => {
                ChoiceMeaning::Advanced
            }
            () if has_word("party") || has_word("party-mode") => ChoiceMeaning::Party,
            () if begins_with_any(&["skip"]) => ChoiceMeaning::Skip,
            () if begins_with_any(&["back"])
                || lower_label.starts_with("go back")
                || lower_label.starts_with("previous") =>
            {
                ChoiceMeaning::Back
            }
            // `Yes, continue` must be tested before a plain yes.
            () if begins_with_any(&["continue", "proceed", "next", "complete", "finish"])
                || lower_label.starts_with("yes, continue")
                || lower_label.starts_with("yes, proceed") =>
            {
                ChoiceMeaning::Continue
            }
            () if begins_with_any(&["approve", "accept", "confirm"]) => ChoiceMeaning::Approve,
            () if begins_with_any(&["yes"]) => ChoiceMeaning::Yes,
            () if begins_with_any(&["no"]) => ChoiceMeaning::No,
            () if begins_with_any(&["edit", "modify", "revise", "adjust"]) => ChoiceMeaning::Edit,
            () if begins_with_any(&["fix", "auto-fix", "autofix"])
                || lower_label.starts_with("apply automated fixes") =>
            {
                ChoiceMeaning::Fix
            }
            () if begins_with_any(&["validate", "re-validate", "revalidate"])
                || has_word("validation") && begins_with_any(&["run", "retry"]) =>
            {
                ChoiceMeaning::Validate
            }
            () => ChoiceMeaning::Other(label.to_string()),
        }
    }

    /// The meaning of a key without a label, in a menu whose keys mean the same everywhere.
    pub(super) fn from_key(option_key: &str, sorted_keys: &str) -> ChoiceMeaning {
        match (sorted_keys, option_key.to_ascii_uppercase().as_str()) {
            ("ACP", "A") => ChoiceMeaning::Advanced,
            ("ACP", "P") => ChoiceMeaning::Party,
            ("ACP", "C") => ChoiceMeaning::Continue,
            ("NVY" | "NY", "Y") => ChoiceMeaning::Yes,
            ("NVY" | "NY", "N") => ChoiceMeaning::No,
            _ => ChoiceMeaning::Other(String::new()),
        }
    }
}

impl ToJson for ChoiceMeaning {
    fn to_node(&self) -> Node<'_> {
        match self {
            ChoiceMeaning::Other(_) => "other".to_node(),
            known_meaning => known_meaning.as_str().to_node(),
        }
    }
}

tribunal_json::serialize_by_json!(ChoiceMeaning);
