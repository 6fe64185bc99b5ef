//! The stories of a project as its fix plan needs them: those of the epics, and those that only the board has.

use std::collections::BTreeSet;

use tribunal_bmad::{
    board::{self, Board, BoardEntry},
    commands::{self, BmadStep},
    epic_id::EpicId,
    keys::{StoryKey, StoryNumber},
    project_files::ProjectFiles,
    ralph::{
        fix_plan_marks::story_plan_name,
        fix_plan_stories::{FixPlanEpic, FixPlanStory},
    },
    story::{self, Story},
};

use crate::{
    bmad::{BmadProject, BoardLookup},
    messages::user_errors::UserError,
};

/// The stories of a project by epic.
#[derive(Debug, Default)]
pub(super) struct GatheredStories {
    pub epics: Vec<FixPlanEpic>,
    pub warnings: Vec<String>,
}

/// Gathers the stories, or says why there are none. A board that cannot be read is an error: without it, stories that are done
/// would be planned again.
pub(super) fn gather_stories(bmad: &BmadProject) -> Result<GatheredStories, UserError> {
    let has_board = bmad.board.is_some() || !bmad.problems.is_empty() || bmad.misplaced_folders().next().is_some();
    let board = if has_board { Some(bmad.require_board()?) } else { None };
    let mut gatherer =
        StoryGatherer { bmad, board, known_names: BTreeSet::new(), gathered: GatheredStories::default() };
    gatherer.add_planned_stories();
    gatherer.add_board_stories();
    let mut gathered = gatherer.gathered;
    gathered.epics.retain(|epic| !epic.stories.is_empty());
    // Stories without an epic come last.
    gathered.epics.sort_by(|first, second| (first.id.is_none(), &first.id).cmp(&(second.id.is_none(), &second.id)));
    if gathered.epics.is_empty() { Err(explain_no_stories(bmad)) } else { Ok(gathered) }
}

fn explain_no_stories(bmad: &BmadProject) -> UserError {
    let user_error = UserError::usage("no stories in this project").with_reason(format!(
        "Tribunal looked for epics with stories in {} and for a board, {}.",
        bmad.config.folders.planning,
        board::BOARD_FILE
    ));
    let epics_command =
        commands::find_command(&bmad.layout, BmadStep::Epics, bmad.command_client(), &bmad.project_files);
    let user_error = match epics_command.to_prompt("") {
        Some(prompt) => user_error.with_step(format!("have an agent write them: `{prompt}`")),
        None => user_error.with_step("write epics and stories with BMAD"),
    };
    user_error.with_step("or pass the project directory with `-C DIR`")
}

struct StoryGatherer<'b> {
    bmad: &'b BmadProject,
    board: Option<&'b Board>,
    /// The names of stories that were added, as the plan has them.
    known_names: BTreeSet<String>,
    gathered: GatheredStories,
}

impl<'b> StoryGatherer<'b> {
    fn add_planned_stories(&mut self) {
        for epic in self.bmad.read_epics().epics {
            let mut stories = Vec::new();
            for epic_story in epic.stories {
                if !self.known_names.insert(story_plan_name(&epic_story.key)) {
                    let place = format!("{}:{}", epic_story.path, epic_story.line);
                    let warning =
                        format!("{place}: story {} is there twice; the second is not planned", epic_story.number);
                    self.gathered.warnings.push(warning);
                    continue;
                }
                let board_story = self.find_on_board(&epic_story.key, &epic_story.number);
                // The board's key has the title of the time when the story was planned; files are named after it.
                let key = board_story.map_or(epic_story.key, |board_story| board_story.key.clone());
                let state = board_story.and_then(|board_story| board_story.entry.state);
                let story_file = self.bmad.find_story_file(&key);
                let criteria = match epic_story.criteria.is_empty() {
                    true => self.read_story(story_file.as_deref()).criteria.into_iter().map(|item| item.text).collect(),
                    false => epic_story.criteria,
                };
                stories.push(FixPlanStory { key, title: epic_story.title, criteria, story_file, state });
            }
            self.gathered.epics.push(FixPlanEpic { id: Some(epic.number), title: epic.title, stories });
        }
    }

    /// Adds the stories that were planned without the epics, or whose epics are gone.
    fn add_board_stories(&mut self) {
        for (story_key, board_entry) in self.board.into_iter().flat_map(Board::stories) {
            if !self.known_names.insert(story_plan_name(story_key)) {
                continue;
            }
            let story_file = self.bmad.find_story_file(story_key);
            let story = self.read_story(story_file.as_deref());
            let title = story.title.map_or_else(|| title_from_key(story_key), |title| title.text);
            let criteria = story.criteria.into_iter().map(|criterion| criterion.text).collect();
            let fix_plan_story =
                FixPlanStory { key: story_key.clone(), title, criteria, story_file, state: board_entry.state };
            self.epic_of(board_entry.epic.as_ref()).stories.push(fix_plan_story);
        }
    }

    /// The epic of this id, which is added if it is new.
    fn epic_of(&mut self, epic_id: Option<&EpicId>) -> &mut FixPlanEpic {
        let epics = &mut self.gathered.epics;
        let position = epics.iter().position(|epic| epic.id.as_ref() == epic_id).unwrap_or_else(|| {
            epics.push(FixPlanEpic { id: epic_id.cloned(), title: String::new(), stories: Vec::new() });
            epics.len() - 1
        });
        &mut epics[position]
    }

    /// Finds a story on the board: by its key, or by its number, since titles change.
    fn find_on_board(&self, story_key: &StoryKey, story_number: &StoryNumber) -> Option<BoardStory<'b>> {
        let board_stories = || self.board.into_iter().flat_map(Board::stories);
        let (key, entry) = board_stories()
            .find(|(board_key, _)| *board_key == story_key)
            .or_else(|| board_stories().find(|(board_key, _)| board_key.story_number() == Some(story_number)))?;
        Some(BoardStory { key, entry })
    }

    /// Reads a story's file; a story without a file says nothing.
    fn read_story(&self, story_file: Option<&str>) -> Story {
        let story_text = story_file.and_then(|story_path| self.bmad.project_files.read_file(story_path).ok().flatten());
        match (story_file, story_text) {
            (Some(story_path), Some(story_text)) => story::read_story(story_path, &story_text),
            _ => Story::default(),
        }
    }
}

/// A story with its line on the board.
#[derive(Clone, Copy)]
struct BoardStory<'b> {
    key: &'b StoryKey,
    entry: &'b BoardEntry,
}

/// Makes a title of the words in a key: `1-2-log-in` becomes `log in`.
fn title_from_key(story_key: &StoryKey) -> String {
    // The key of a story without a number is its only name.
    if story_key.story_number().is_none() { String::new() } else { story_key.slug_text().replace('-', " ") }
}
