//! What a remark of the user asks the sprint itself to do. Everything else that the user says is for the agents.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::tier::ProcessTier;

/// A request to the sprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum SprintCommand {
    /// Do not begin this story.
    Skip { story: String },
    /// Begin no further story.
    StopAfterStory,
    /// Use another tier for all further stories.
    ChangeTier { tier: ProcessTier },
}

impl SprintCommand {
    /// Reads a remark: `skip 1-3`, `stop after this story`, `tier 3 from now on`. `None` if it is a remark for agents. A remark with
    /// more to it is one for agents: `skip 1-3 if the tests are slow` must not skip anything.
    pub fn read_remark(text: &str) -> Option<SprintCommand> {
        let lower_text = text.trim().trim_end_matches(['.', '!']).to_lowercase();
        let words: Vec<&str> = lower_text.split_whitespace().collect();
        match words.as_slice() {
            ["skip", "story", story] | ["skip", story]
                if story.contains(|character: char| character.is_ascii_digit()) =>
            {
                Some(SprintCommand::Skip { story: (*story).to_string() })
            }
            ["stop", "after", "this" | "the", "story"]
            | ["stop", "after", "this" | "the", "current", "story"]
            | ["stop", "after", "story"] => Some(SprintCommand::StopAfterStory),
            ["tier", number] | ["tier", number, "from", "now", "on"] | ["use", "tier", number, "from", "now", "on"] => {
                let tier = number.parse().ok().and_then(ProcessTier::new)?;
                Some(SprintCommand::ChangeTier { tier })
            }
            _ => None,
        }
    }

    /// The remark that is read as this request.
    pub fn to_remark(&self) -> String {
        match self {
            SprintCommand::Skip { story } => format!("skip {story}"),
            SprintCommand::StopAfterStory => String::from("stop after this story"),
            SprintCommand::ChangeTier { tier } => format!("tier {tier} from now on"),
        }
    }

    /// Says it back to the user.
    pub fn describe(&self) -> String {
        match self {
            SprintCommand::Skip { story } => format!("{story} will be skipped"),
            SprintCommand::StopAfterStory => String::from("no further story will be begun"),
            SprintCommand::ChangeTier { tier } => format!("further stories use tier {tier}"),
        }
    }
}

/// Whether what the user typed names a story: `1-3`, `1.3` and `1-3-pack` all name `1-3-pack`.
pub fn names_story(typed: &str, key: &str) -> bool {
    let typed = typed.replace('.', "-");
    let key = key.to_lowercase();
    // A single number is an epic.
    key == typed || typed.contains('-') && key.strip_prefix(typed.as_str()).is_some_and(|rest| rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_requests_are_understood_as_such() {
        let skip = |story: &str| Some(SprintCommand::Skip { story: story.into() });
        assert_eq!(SprintCommand::read_remark("skip 1-3"), skip("1-3"));
        assert_eq!(SprintCommand::read_remark("Skip story 1.3."), skip("1.3"));
        assert_eq!(SprintCommand::read_remark("stop after this story"), Some(SprintCommand::StopAfterStory));
        assert!(matches!(
            SprintCommand::read_remark("tier 3 from now on"),
            Some(SprintCommand::ChangeTier { tier }) if tier.to_string() == "3"
        ));
        for remark in ["skip the tests", "skip 1-3 if it is slow", "tier 9", "stop", "do not stop after this story", ""]
        {
            assert_eq!(SprintCommand::read_remark(remark), None, "{remark}");
        }
    }

    #[test]
    fn every_request_is_read_from_its_remark() {
        let tier = ProcessTier::new(3).unwrap();
        for command in [
            SprintCommand::Skip { story: "1-3".into() },
            SprintCommand::StopAfterStory,
            SprintCommand::ChangeTier { tier },
        ] {
            assert_eq!(SprintCommand::read_remark(&command.to_remark()), Some(command));
        }
    }

    #[test]
    fn stories_are_named_by_number_or_key() {
        for typed in ["1-3", "1.3", "1-3-pack"] {
            assert!(names_story(typed, "1-3-pack"), "{typed}");
        }
        for typed in ["1", "1-30", "3", "1-3-pa"] {
            assert!(!names_story(typed, "1-3-pack"), "{typed}");
        }
    }
}
