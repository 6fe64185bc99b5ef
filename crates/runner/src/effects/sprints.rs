//! Performs the effects of a sprint: reads its board, and finds out how a story of it is run.

use std::sync::Arc;

use tribunal_bmad::{
    board::{Board, BoardEntryState},
    keys::StoryKey,
    project_files::ProjectFiles,
};
use tribunal_engine::{fault::Fault, ids::RunId};
use tribunal_store::Store;
use tribunal_workflows::{
    sprint::{
        claims::claimed_story,
        facts::{PlanStory, ReadSprint, SprintReading, StoryPlanning},
    },
    story::order::StoryOrder,
};

use super::{EffectContext, environment_fault, run_file_effect};
use crate::{
    Runner,
    git::heads::{self, FileTracking},
    project::{
        bmad_project::BmadProject,
        sprint_facts, story_plan,
        trash_marks::{is_discarded, list_discarded},
    },
    run_names,
};

pub(super) async fn read_sprint(context: Arc<EffectContext>, request: ReadSprint) -> SprintReading {
    run_file_effect(move || match read_board(&context, &request.branch) {
        Ok(bmad) => {
            let mut facts = sprint_facts::read_sprint(&bmad);
            let is_known = |key: &&String| {
                bmad.board.as_ref().is_some_and(|board| board.stories().any(|(_, entry)| entry.raw_key == **key))
            };
            facts.gone = request.watched.iter().filter(|key| !is_known(key)).cloned().collect();
            facts.done = request.watched.iter().filter(|key| is_over(&bmad, key)).cloned().collect();
            SprintReading::Read(Box::new(facts))
        }
        Err(fault) => fault.into(),
    })
    .await
}

/// Whether nothing is left to do about a story of the board.
fn is_over(bmad: &BmadProject, key: &str) -> bool {
    let mut entries = bmad.board.iter().flat_map(Board::stories).map(|(_, entry)| entry);
    entries.any(|entry| entry.raw_key == key && entry.state.is_some_and(BoardEntryState::is_over))
}

/// Reads the project with the board of the branch on which stories land: the checkout may be on another one, or behind.
fn read_board(context: &EffectContext, branch: &str) -> Result<BmadProject, Fault> {
    let mut bmad = BmadProject::read_project(&context.project);
    let root = context.project.root();
    // The checkout may have no board where the branch has one.
    let board_path = bmad.board_path();
    let to_fault = |cause: crate::git::GitError| environment_fault(cause.to_string());
    if let Some(commit) = heads::find_branch(root, branch).map_err(to_fault)? {
        let board_bytes = heads::read_file_at(root, commit.as_str(), &board_path);
        let board_text = board_bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let checkout_text = bmad.project_files.read_file(&board_path).ok().flatten();
        // A board that git ignores is that of the checkout, also if the branch has one.
        if let Some(board_text) = board_text.filter(|board_text| checkout_text.as_ref() != Some(board_text))
            && heads::find_tracking(root, &board_path).map_err(to_fault)? != FileTracking::Ignored
        {
            bmad.replace_board(&board_text);
        }
    }
    match &bmad.board {
        Some(board) if board.is_readable => Ok(bmad),
        Some(board) => {
            let problem = board.problems.first().map(ToString::to_string);
            Err(environment_fault(problem.unwrap_or_else(|| format!("{board_path} cannot be read"))))
        }
        None => Err(environment_fault(format!("{board_path} is gone, also on the branch {branch}"))),
    }
}

pub(super) async fn plan_story(context: Arc<EffectContext>, request: PlanStory) -> StoryPlanning {
    run_file_effect(move || {
        let bmad = BmadProject::read_project(&context.project);
        let Some(story_key) = StoryKey::parse(&request.story) else {
            return StoryPlanning::Refused { detail: format!("`{}` is not the key of a story", request.story) };
        };
        if let Some(claimant) = find_claimant(&context, &request.story) {
            return StoryPlanning::Claimed { claimant };
        }
        let tier = request.tier.unwrap_or(context.settings.tier);
        match story_plan::plan_story(&bmad, &story_key, &context.settings, tier) {
            Ok(planned) => StoryPlanning::Planned(Box::new(planned)),
            Err(refusal) => StoryPlanning::Refused { detail: refusal.describe_reason() },
        }
    })
    .await
}

/// Finds another run that works on a story, or waits with it for the user. One that crashed, is in the trash or belongs to a sprint that
/// does without it has no claim.
fn find_claimant(context: &EffectContext, key: &str) -> Option<RunId> {
    // A journal that cannot be read now holds nothing up: the lock of the story is still there.
    let store = Store::reopen_read_only(&context.project.home_dir()).ok()?;
    let candidates = store.list_named_runs(&run_names::name_start(&StoryOrder::slug_of(key))).ok()?;
    let discarded_runs = list_discarded(&context.project);
    candidates.into_iter().find(|run_id| {
        let Ok(run_view) = store.read_view(run_id) else { return false };
        let is_own = run_view.parent.as_ref().is_some_and(|parent| parent.run == context.run_id);
        !is_own
            && !is_discarded(&discarded_runs, run_id, &run_view)
            && claimed_story(&run_view, || Runner::is_live(&context.project, run_id)) == Some(key)
            && !store.is_left_behind(&run_view).unwrap_or(false)
    })
}
