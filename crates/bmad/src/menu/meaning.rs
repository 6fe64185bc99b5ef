//! What an option means, by its label. The key says it only where there is no label at all and the keys are those that BMAD
//! always uses the same way.

use serde::{Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meaning {
    /// Go on to the next step, or finish with what there is.
    Continue,
    /// Say yes to what was shown: what a gate asks.
    Approve,
    /// Advanced elicitation.
    Advanced,
    Party,
    /// Go on to the end without asking.
    Yolo,
    Exit,
    Back,
    Edit,
    Fix,
    Skip,
    Validate,
    Yes,
    No,
    /// None of these: its label.
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

    /// Of a label; the first rule that fits holds, so leaving a party is an exit and a "yes, continue" goes on.
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

    /// Of a key without a label, in a menu of keys that mean the same everywhere.
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
