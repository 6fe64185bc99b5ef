//! The meaning of an option, by its label. The key decides only if there is no label and the keys are those that BMAD always
//! uses the same way.

use serde::{Serialize, Serializer};

/// What an option does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meaning {
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

impl Meaning {
    pub fn as_str(&self) -> &str {
        match self {
            Meaning::Continue => "continue",
            Meaning::Approve => "approve",
            Meaning::Advanced => "advanced elicitation",
            Meaning::Party => "party",
            Meaning::Yolo => "yolo",
            Meaning::Exit => "exit",
            Meaning::Back => "back",
            Meaning::Edit => "edit",
            Meaning::Fix => "fix",
            Meaning::Skip => "skip",
            Meaning::Validate => "validate",
            Meaning::Yes => "yes",
            Meaning::No => "no",
            Meaning::Other(label) => label,
        }
    }

    /// The meaning of a label. The first rule that fits decides, so leaving a party is an exit, and "yes, continue"
    /// continues.
    pub(super) fn of(label: &str) -> Meaning {
        let said = label.to_lowercase();
        let words: Vec<&str> =
            said.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|word| !word.is_empty()).collect();
        let first = words.first().copied().unwrap_or_default();
        let has = |word: &str| words.contains(&word);
        let begins = |starts: &[&str]| starts.contains(&first);
        match () {
            () if words.is_empty() => Meaning::Other(String::new()),
            () if has("yolo") => Meaning::Yolo,
            // Exits come before everything else: taking one by mistake ends the session.
            () if begins(&["exit", "quit", "stop", "abort", "cancel", "done"])
                || has("exit")
                || ["end party", "end session", "end workflow", "leave party"]
                    .iter()
                    .any(|end| said.starts_with(end)) =>
            {
                Meaning::Exit
            }
            () if has("elicitation") || said == "advanced" || said == "advanced discovery" => {
                Meaning::Advanced
            }
            () if has("party") || has("party-mode") => Meaning::Party,
            () if begins(&["skip"]) => Meaning::Skip,
            () if begins(&["back"]) || said.starts_with("go back") || said.starts_with("previous") => {
                Meaning::Back
            }
            // `Yes, continue` must be tested before a plain yes.
            () if begins(&["continue", "proceed", "next", "complete", "finish"])
                || said.starts_with("yes, continue")
                || said.starts_with("yes, proceed") =>
            {
                Meaning::Continue
            }
            () if begins(&["approve", "accept", "confirm"]) => Meaning::Approve,
            () if begins(&["yes"]) => Meaning::Yes,
            () if begins(&["no"]) => Meaning::No,
            () if begins(&["edit", "modify", "revise", "adjust"]) => Meaning::Edit,
            () if begins(&["fix", "auto-fix", "autofix"]) || said.starts_with("apply automated fixes") => {
                Meaning::Fix
            }
            () if begins(&["validate", "re-validate", "revalidate"])
                || has("validation") && begins(&["run", "retry"]) =>
            {
                Meaning::Validate
            }
            () => Meaning::Other(label.to_string()),
        }
    }

    /// The meaning of a key without a label, in a menu whose keys mean the same everywhere.
    pub(super) fn of_key(key: &str, keys: &str) -> Meaning {
        match (keys, key.to_ascii_uppercase().as_str()) {
            ("ACP", "A") => Meaning::Advanced,
            ("ACP", "P") => Meaning::Party,
            ("ACP", "C") => Meaning::Continue,
            ("NVY" | "NY", "Y") => Meaning::Yes,
            ("NVY" | "NY", "N") => Meaning::No,
            _ => Meaning::Other(String::new()),
        }
    }
}

impl Serialize for Meaning {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(match self {
            Meaning::Other(_) => "other",
            known => known.as_str(),
        })
    }
}
