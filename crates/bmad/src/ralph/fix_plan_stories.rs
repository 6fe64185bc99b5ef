//! What a fix plan says of the epics and stories of a project: the heading of a section, the line of an item with its mark, and
//! the line below it. [`super::fix_plan_writer`] puts them into a plan.

use tribunal_engine::text::truncate_chars;

use super::fix_plan_marks::{StoryMark, fingerprint_text, story_plan_name};
use crate::{board::BoardEntryState, epic_id::EpicId, keys::StoryKey, markdown::normalize_title, states::StoryStatus};

/// The heading of stories that belong to no epic.
const OTHER_STORIES: &str = "Other stories";
/// What the line below an item begins with.
pub(super) const DETAIL_LABELS: [&str; 2] = [FILE_LABEL, CRITERIA_LABEL];
const FILE_LABEL: &str = "Story file: ";
const CRITERIA_LABEL: &str = "Acceptance criteria: ";
/// The most characters of the criteria that a plan repeats.
const MAX_CRITERIA_CHARS: usize = 240;

/// An epic with the stories that belong into the plan, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixPlanEpic {
    /// `None` for stories that belong to no epic.
    pub id: Option<EpicId>,
    pub title: String,
    pub stories: Vec<FixPlanStory>,
}

/// A story as the plan needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixPlanStory {
    pub key: StoryKey,
    pub title: String,
    pub criteria: Vec<String>,
    /// The path of its file, relative to the project's root.
    pub story_file: Option<String>,
    /// The state on the board; `None` if it has none there.
    pub state: Option<BoardEntryState>,
}

impl FixPlanEpic {
    /// The heading of its section.
    pub(super) fn section_title(&self) -> String {
        match (&self.id, clean_text(&self.title).as_str()) {
            (None, _) => OTHER_STORIES.to_string(),
            (Some(id), "") => format!("Epic {id}"),
            (Some(id), title) => format!("Epic {id}: {title}"),
        }
    }

    /// Whether a heading of a plan is that of this epic.
    pub(super) fn has_heading(&self, title: &str) -> bool {
        let Some(epic_id) = &self.id else { return normalize_title(title) == normalize_title(OTHER_STORIES) };
        let title = title.trim_start_matches(['*', '_']);
        let after_word =
            title.get(..5).filter(|word| word.eq_ignore_ascii_case("epic ")).map(|_| title[5..].trim_start());
        let id_text = after_word.and_then(|after_word| after_word.split([':', ' ', '\t']).next()).unwrap_or_default();
        EpicId::parse(id_text.trim_end_matches(['*', '_', '.', '-'])).as_ref() == Some(epic_id)
    }
}

impl FixPlanStory {
    /// Whether the board says that it is done.
    pub(super) fn is_done(&self) -> bool {
        self.state == Some(BoardEntryState::Story(StoryStatus::Done))
    }

    /// The text of the item: `Story 1.2: Log in`.
    pub(super) fn item_title(&self) -> String {
        let name = self.key.story_number().map_or_else(|| self.key.to_string(), ToString::to_string);
        match clean_text(&self.title).as_str() {
            "" => format!("Story {name}"),
            title => format!("Story {name}: {title}"),
        }
    }

    /// The line below the item: where the story is written down, or else what it asks for.
    pub(super) fn detail_line(&self) -> Option<String> {
        if let Some(story_file) = &self.story_file {
            return Some(format!("{FILE_LABEL}{}", clean_text(story_file)));
        }
        let criteria: Vec<String> = self.criteria.iter().map(|criterion| clean_text(criterion)).collect();
        let criteria_text = truncate_chars(&criteria.join("; "), MAX_CRITERIA_CHARS);
        (!criteria_text.is_empty()).then(|| format!("{CRITERIA_LABEL}{criteria_text}"))
    }

    /// The mark of its item.
    pub(super) fn to_mark(&self, is_ticked: bool) -> StoryMark {
        let criteria: Vec<String> = self.criteria.iter().map(|criterion| clean_text(criterion)).collect();
        StoryMark {
            story: story_plan_name(&self.key),
            title_fingerprint: fingerprint_text(&clean_text(&self.title)),
            criteria_fingerprint: fingerprint_text(&criteria.join("\n")),
            // A tick counts once the board knows the story.
            is_counted: is_ticked && self.state.is_some(),
        }
    }
}

/// The text on one line. The marks of comments are broken up: one in a title would hide the items below it.
fn clean_text(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("<!--", "<! --").replace("-->", "-- >")
}
