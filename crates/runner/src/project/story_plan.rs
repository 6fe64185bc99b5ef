//! How a story is run: its files, the commands that are installed in the project for its steps, and what it is worth.

use std::path::Path;

use tribunal_bmad::{
    board::{BoardEntry, BoardEntryState},
    commands::{self, BmadStep, StepCommand},
    epics::EpicStory,
    keys::{BoardKey, StoryKey},
    layout::Era,
    project_files::ProjectFiles,
    states::StoryStatus,
    story::{self, Story},
};
use tribunal_engine::{ids::CommitId, tier::ProcessTier};
use tribunal_store::Store;
use tribunal_workflows::{
    runs::settings::Settings,
    sprint::facts::PlannedStory,
    story::{
        facts::StoryName,
        order::{StoryFilePlan, StoryOrder, StorySteps},
    },
    tasks::{
        client::ModelSize,
        instructions::{ClientCommand, TaskOpening},
    },
};

use crate::{
    git::{find_ignored, heads},
    project::{Project, bmad_project::BmadProject},
    run_names,
};

/// Why a story cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StoryPlanError {
    #[error("story {key} has no file, and this project has no workflow that writes it")]
    NoFile { key: String, expected_path: String },
    #[error("{path} cannot be read: {why}")]
    Unreadable { path: String, why: String },
    /// What the story depends on and what it owes stands there: without it, the story could be begun too early, or count as done too early.
    #[error("the front matter of story {key} {}: {problem}", NOT_READABLE)]
    BrokenFrontMatter { key: String, problem: String },
}

/// What is said about front matter that cannot be read.
const NOT_READABLE: &str = "cannot be read, so what it depends on and what it owes is not known";

impl StoryPlanError {
    /// The reason, for a text that has named the story already.
    pub fn describe_reason(&self) -> String {
        match self {
            StoryPlanError::NoFile { .. } => {
                "it has no file, and this project has no workflow that writes it".to_string()
            }
            StoryPlanError::Unreadable { .. } => self.to_string(),
            StoryPlanError::BrokenFrontMatter { problem, .. } => format!("its front matter {NOT_READABLE}: {problem}"),
        }
    }
}

/// Finds out how a story is run.
pub fn plan_story(
    bmad: &BmadProject,
    story_key: &StoryKey,
    settings: &Settings,
    tier: ProcessTier,
) -> Result<PlannedStory, StoryPlanError> {
    let board_entry = bmad.board.as_ref().and_then(|board| board.find_entry(&BoardKey::Story(story_key.clone())));
    let key = board_entry.map_or_else(|| story_key.to_string(), |board_entry| board_entry.raw_key.clone());
    let story_file = bmad.find_story_file(story_key);
    let story_text = read_story_text(bmad, story_file.as_deref())?;
    let parsed = story_text.map(|text| story::read_story(story_file.as_deref().unwrap_or_default(), &text));
    if let Some(problem) = parsed.as_ref().and_then(Story::find_broken_front_matter) {
        return Err(StoryPlanError::BrokenFrontMatter { key, problem: problem.to_string() });
    }
    let planned = find_planned(bmad, story_key);
    let baseline = parsed.as_ref().and_then(|parsed| parsed.baseline.clone());
    let file_title = parsed.and_then(|parsed| parsed.title).map(|title| title.text);
    let title = file_title.or_else(|| planned.as_ref().map(|planned| planned.title.clone()));
    let board_path = bmad.board.as_ref().map(|board| board.path.clone());
    let root = bmad.project_files.root_path().map(std::path::PathBuf::from).unwrap_or_default();
    let stories_path = story_file.clone().unwrap_or_else(|| bmad.new_story_path(story_key));
    let name = StoryName {
        key,
        title: title.unwrap_or_else(|| story_key.slug_text().replace('-', " ")),
        board: board_path.clone(),
        bookkeeping: bmad.bookkeeping_folders(),
    };
    let ignored_paths = find_ignored(&root, board_path.iter().chain([&stories_path]));
    let files = StoryFilePlan {
        board_is_ignored: board_path.is_some_and(|board_path| ignored_paths.contains(&board_path)),
        stories_are_ignored: ignored_paths.contains(&stories_path),
        ledger: Some(bmad.ledger_path()),
        begun_at: find_earlier_work(&root, board_entry, &name.key, baseline.as_deref()),
        story_file,
    };
    let complexity = planned.and_then(|planned| planned.complexity);
    let steps = StepFinder { bmad, settings }.find_steps(story_key, &name, &files)?;
    Ok(PlannedStory { name, files, steps, size: model_size(tier, complexity.as_deref()) })
}

/// Reads the file of a story, if it has one. A file that cannot be read must not count as missing: agents would work for nothing.
fn read_story_text(bmad: &BmadProject, story_file: Option<&str>) -> Result<Option<String>, StoryPlanError> {
    let Some(path) = story_file else { return Ok(None) };
    bmad.project_files
        .read_file(path)
        .map_err(|unreadable| StoryPlanError::Unreadable { path: path.to_string(), why: unreadable.describe_cause() })
}

/// How an agent is asked for a retrospective, with `{epic}` for the epic; `None` if the project has no workflow for it.
pub fn find_retrospective(bmad: &BmadProject, settings: &Settings) -> Option<TaskOpening> {
    let step_finder = StepFinder { bmad, settings };
    step_finder
        .has_step(BmadStep::Retrospective)
        .then(|| step_finder.find_opening(BmadStep::Retrospective, "{epic}", ""))
}

/// The commit with which the work of a story in review began, if its file names one that is a part of the history.
fn find_earlier_work(
    root: &Path,
    board_entry: Option<&BoardEntry>,
    key: &str,
    baseline: Option<&str>,
) -> Option<CommitId> {
    if board_entry?.state != Some(BoardEntryState::Story(StoryStatus::Review)) {
        return None;
    }
    let named = baseline.and_then(|baseline| heads::find_commit(root, baseline).ok().flatten());
    let commit = named.or_else(|| find_landed_base(root, key))?;
    heads::is_ancestor(root, &commit).then_some(commit)
}

/// The commit with which the last run over a story began, if its work has landed.
fn find_landed_base(root: &Path, key: &str) -> Option<CommitId> {
    let store = Store::open_read_only(&Project::from_root(root).home_dir()).ok()?;
    let runs = store.list_named_runs(&run_names::name_start(&StoryOrder::slug_of(key))).ok()?.into_iter();
    let bases = runs.filter_map(|run_id| {
        let run_view = store.read_view(&run_id).ok()?;
        let view = run_view.as_story()?;
        let is_same = view.order.as_ref().is_some_and(|order| order.story.key == key);
        view.base.clone().filter(|_| is_same && view.summary.landed_on.is_some())
    });
    bases.last()
}

/// Finds the story in the epics, by its number.
pub fn find_planned(bmad: &BmadProject, story_key: &StoryKey) -> Option<EpicStory> {
    let number = story_key.story_number()?;
    bmad.read_epics().stories().find(|story| story.number == *number).cloned()
}

struct StepFinder<'a> {
    bmad: &'a BmadProject,
    settings: &'a Settings,
}

impl StepFinder<'_> {
    fn find_steps(
        &self,
        story_key: &StoryKey,
        name: &StoryName,
        files: &StoryFilePlan,
    ) -> Result<StorySteps, StoryPlanError> {
        let has_file = files.story_file.is_some();
        let story_subject = files.story_file.clone().unwrap_or_else(|| self.bmad.new_story_path(story_key));
        // Late versions develop from a spec that the same workflow writes.
        let develops_from_spec =
            self.bmad.layout.era == Some(Era::D) && self.has_step(BmadStep::DevStory) && !is_story_file(files);
        let create = match (has_file, self.has_step(BmadStep::CreateStory)) {
            (true, _) => None,
            (false, _) if develops_from_spec => None,
            (false, true) => Some(self.find_opening(BmadStep::CreateStory, &name.key, "")),
            (false, false) => {
                return Err(StoryPlanError::NoFile { key: name.key.clone(), expected_path: story_subject });
            }
        };
        let words_until_spec = (develops_from_spec && !has_file).then(|| format!("story {}: {}", name.key, name.title));
        let subject = words_until_spec.clone().unwrap_or_else(|| story_subject.clone());
        let own_words = format!(
            "Develop the story in {story_subject}: do every task, meet every acceptance criterion, write tests, and keep the file up \
             to date."
        );
        let code_review = self.has_step(BmadStep::CodeReview).then(|| {
            self.find_opening(BmadStep::CodeReview, &format!("{story_subject} (fix every issue without asking)"), "")
        });
        Ok(StorySteps {
            create,
            develop: self.find_opening(BmadStep::DevStory, &subject, &own_words),
            code_review,
            develops_from_spec,
            words_until_spec,
        })
    }

    fn find_command(&self, step: BmadStep, client: &str) -> StepCommand {
        commands::find_command(&self.bmad.layout, step, client, &self.bmad.project_files)
    }

    /// Whether any client can run a step here.
    fn has_step(&self, step: BmadStep) -> bool {
        let clients = self.client_names().into_iter().chain(["codex".to_string()]);
        clients.into_iter().any(|client| !matches!(self.find_command(step, &client), StepCommand::Missing { .. }))
    }

    /// The clients of the agents, each once.
    fn client_names(&self) -> Vec<String> {
        let agents = self.settings.agents.iter().chain(&self.settings.reserves);
        let mut names: Vec<String> =
            agents.filter_map(|agent| Some(agent.driver.client_spec()?.client.as_str().to_string())).collect();
        names.dedup();
        names
    }

    fn find_opening(&self, step: BmadStep, subject: &str, own_words: &str) -> TaskOpening {
        // Early versions stop at menus unless they are told not to.
        let subject = match self.bmad.layout.era {
            Some(Era::A | Era::B) => format!("{subject} #yolo"),
            _ => subject.to_string(),
        };
        let commands = self.client_names().into_iter().filter_map(|client| match self.find_command(step, &client) {
            command @ StepCommand::Slash { .. } => Some(ClientCommand { text: command.to_prompt(&subject)?, client }),
            _ => None,
        });
        let words = self.find_command(step, "codex").to_prompt(&subject);
        TaskOpening { commands: commands.collect(), text: words.unwrap_or_else(|| own_words.to_string()) }
    }
}

/// Whether the story has a file of its own, and not only a spec.
fn is_story_file(files: &StoryFilePlan) -> bool {
    let file_name = files.story_file.as_deref().and_then(|path| path.rsplit('/').next());
    file_name.is_some_and(|file_name| !file_name.starts_with("spec-"))
}

/// The size of the model that a story is worth: its own complexity, else that of the tier.
fn model_size(tier: ProcessTier, complexity: Option<&str>) -> ModelSize {
    let written = complexity.map(str::to_lowercase).unwrap_or_default();
    let first_word = written.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    match first_word {
        "xs" | "s" | "small" | "low" | "simple" | "trivial" | "1" | "2" => ModelSize::Small,
        "m" | "medium" | "moderate" | "3" | "5" => ModelSize::Medium,
        "l" | "xl" | "xxl" | "large" | "high" | "complex" | "8" | "13" | "21" => ModelSize::Large,
        _ => match tier.to_string().as_str() {
            "0" | "1" => ModelSize::Small,
            "4" => ModelSize::Large,
            _ => ModelSize::Medium,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_complexity_of_a_story_decides_before_the_tier() {
        let tier = ProcessTier::default();
        for (complexity, expected) in [
            (Some("S"), ModelSize::Small),
            (Some("3 points"), ModelSize::Medium),
            (Some("High"), ModelSize::Large),
            (Some("13"), ModelSize::Large),
        ] {
            assert_eq!(model_size(tier, complexity), expected, "{complexity:?}");
        }
        assert_eq!(model_size(tier, Some("unclear")), model_size(tier, None));
    }
}
