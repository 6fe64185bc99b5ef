//! What has changed in the plan since the last sprint: new and changed epics and stories.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::{ids::Hash, text::format_count};

/// An epic of the plan in outline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EpicOutline {
    pub epic: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stories: Vec<StoryOutline>,
}

/// A story of the plan in outline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryOutline {
    pub number: String,
    pub title: String,
    /// The fingerprint of what the plan says about it.
    pub text: Hash,
}

/// Lists what is new, changed and gone, one line each. Nothing is compared with an empty plan.
pub fn list_plan_changes(old: &[EpicOutline], new: &[EpicOutline]) -> Vec<String> {
    if old.is_empty() {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for epic in new {
        match old.iter().find(|known| known.epic == epic.epic) {
            None => changes.push(format!(
                "epic {} is new: {} ({})",
                epic.epic,
                epic.title,
                format_count(epic.stories.len() as u32, "story")
            )),
            Some(known) => changes.extend(list_story_changes(known, epic)),
        }
    }
    let gone = old.iter().filter(|known| !new.iter().any(|epic| epic.epic == known.epic));
    changes.extend(gone.map(|known| format!("epic {} is gone: {}", known.epic, known.title)));
    changes
}

fn list_story_changes(old: &EpicOutline, new: &EpicOutline) -> Vec<String> {
    let mut changes = Vec::new();
    if old.title != new.title {
        changes.push(format!("epic {} has another title: {}", new.epic, new.title));
    }
    for story in &new.stories {
        match old.stories.iter().find(|known| known.number == story.number) {
            None => changes.push(format!("story {} is new: {}", story.number, story.title)),
            Some(known) if known.title != story.title => {
                changes.push(format!("story {} has another title: {}", story.number, story.title));
            }
            Some(known) if known.text != story.text => {
                changes.push(format!("story {} has changed: {}", story.number, story.title));
            }
            Some(_) => {}
        }
    }
    let gone = old.stories.iter().filter(|known| !new.stories.iter().any(|story| story.number == known.number));
    changes.extend(gone.map(|known| format!("story {} is gone: {}", known.number, known.title)));
    changes
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn story(number: &str, title: &str, text: &str) -> StoryOutline {
        StoryOutline { number: number.into(), title: title.into(), text: Hash::new(text) }
    }

    fn epic(number: &str, stories: Vec<StoryOutline>) -> EpicOutline {
        EpicOutline { epic: number.into(), title: format!("Epic {number}"), stories }
    }

    #[test]
    fn every_kind_of_change_is_named_and_the_rest_is_not() {
        let old = vec![
            epic("1", vec![story("1.1", "Sow", "a"), story("1.2", "Mow", "b"), story("1.3", "Dry", "c")]),
            epic("2", vec![]),
        ];
        let new = vec![
            epic("1", vec![story("1.1", "Sow", "a"), story("1.2", "Mow", "other"), story("1.4", "Bind", "d")]),
            epic("3", vec![story("3.1", "Sell", "e")]),
        ];
        assert_eq!(
            list_plan_changes(&old, &new),
            [
                "story 1.2 has changed: Mow",
                "story 1.4 is new: Bind",
                "story 1.3 is gone: Dry",
                "epic 3 is new: Epic 3 (1 story)",
                "epic 2 is gone: Epic 2",
            ]
        );
        assert_eq!(list_plan_changes(&old, &old), Vec::<String>::new());
        assert_eq!(list_plan_changes(&[], &new), Vec::<String>::new());
    }
}
