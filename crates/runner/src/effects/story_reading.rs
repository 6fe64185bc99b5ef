//! Reads what files and git say about a story.

use std::sync::Arc;

use tribunal_engine::{fault::Fault, ids::CommitId};
use tribunal_workflows::{
    development::workspace::{MAX_LISTED_FILES, WorkspaceChange, WorkspaceState},
    story::facts::{ReadStory, StoryFacts, StoryPlace, StoryReading},
};

use super::{EffectContext, environment_fault, run_file_effect};
use crate::{
    git::heads,
    project::story_facts::{self, ObservedTree},
    workspaces::development::{DevelopmentWorkspace, contents::StateReading, frozen_work::FrozenReading},
};

pub(crate) async fn read_story(context: Arc<EffectContext>, request: ReadStory) -> StoryReading {
    run_file_effect(move || match try_read(&context, &request) {
        Ok(reading) => reading,
        Err(fault) => fault.into(),
    })
    .await
}

fn try_read(context: &EffectContext, request: &ReadStory) -> Result<StoryReading, Fault> {
    let StoryPlace::Workspace { workspace: workspace_name } = &request.place else {
        return Err(environment_fault("a story is only read in its workspace"));
    };
    let workspace = context.find_development_workspace(workspace_name)?;
    // A test may be the last of many files.
    let StateReading { state: mut work, remarks } = match &request.tree {
        Some(tree) => match context.memory.readings.take_reading(workspace_name, tree) {
            Some(reading) => reading,
            None => {
                let FrozenReading { mut reading, put_back } = workspace.read_frozen_state(tree, &context.masker)?;
                reading.remarks.extend(put_back.describe());
                reading
            }
        },
        None => workspace.read_whole_state(&[], &context.masker)?,
    };
    // What the user has merged into the branch is work of the story as well.
    let merged_into = workspace.merged_into().filter(|_| request.since.is_none());
    if let Some(since) = request.since.as_ref().or(merged_into.as_ref()) {
        add_earlier_changes(context, &workspace, since, &mut work)?;
    }
    let tree = workspace.agent_dir();
    let base = workspace.base_commit();
    // The board will be put back to what it was before the work lands.
    let board_path = request.story.board.as_deref();
    let read_base = |path: &str| {
        let read_files = |paths: &[&str]| workspace.read_base_files(paths);
        context.memory.base_files.read_file(base, path, board_path, read_files)
    };
    let commands: Vec<_> = context.settings.checks.iter().map(|check| check.command.clone()).collect();
    let observed = ObservedTree { root: &tree, work, read_base: &read_base, check_commands: &commands };
    let mut facts = StoryFacts { merged_into, ..story_facts::read_facts(&request.story, observed) };
    facts.remarks.splice(0..0, remarks);
    facts.work.changed.truncate(MAX_LISTED_FILES);
    Ok(StoryReading::Read(Box::new(facts)))
}

/// Adds what had changed before the workspace was opened.
fn add_earlier_changes(
    context: &EffectContext,
    workspace: &DevelopmentWorkspace,
    since: &CommitId,
    work: &mut WorkspaceState,
) -> Result<(), Fault> {
    let earlier = heads::list_changes(context.project.root(), since.as_str(), Some(workspace.base_commit().as_str()))
        .map_err(|cause| environment_fault(cause.to_string()))?;
    let is_known = |path: &str, changes: &[WorkspaceChange]| changes.iter().any(|change| change.path == path);
    for change in earlier {
        if !is_known(&change.path, &work.changed) {
            work.changed.push(change);
            work.changed_count += 1;
        }
    }
    work.changed.sort_by(|first, second| first.path.cmp(&second.path));
    Ok(())
}
