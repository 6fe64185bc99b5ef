//! Reads the retrospective that an agent has written, marks it as held on the board, and copies what git ignores to the checkout.

use std::{fs, sync::Arc};

use tribunal_bmad::{
    board::{self, BoardEntryState, edit as board_edit, edit::MoveMode},
    config,
    epic_id::EpicId,
    keys::BoardKey,
    project_files::ProjectFiles,
    retrospective,
    states::RetroStatus,
};
use tribunal_engine::fault::Fault;
use tribunal_workflows::sprint::facts::{FinishRetrospective, RetrospectiveOutcome};

use super::{EffectContext, run_file_effect, stories};
use crate::{
    project::{
        Project,
        bmad_project::BmadProject,
        file_edits::find_ignored,
        locked_edit::{EditFileError, edit_file, edit_or_create_file},
        project_files::ProjectDirectory,
        sprint_facts::read_lesson,
    },
    workspaces::development::{DevelopmentWorkspace, contents::StateReading},
};

pub(super) async fn finish_retrospective(
    context: Arc<EffectContext>,
    request: FinishRetrospective,
) -> RetrospectiveOutcome {
    run_file_effect(move || match try_finish(&context, &request) {
        Ok(outcome) => outcome,
        Err(fault) => fault.into(),
    })
    .await
}

fn try_finish(context: &EffectContext, request: &FinishRetrospective) -> Result<RetrospectiveOutcome, Fault> {
    let workspace = context.find_development_workspace(&request.workspace)?;
    // The user's own settings say where documents are: an agent may have changed those of the workspace.
    let bmad = BmadProject::read_project(&context.project);
    let board_path = bmad.board.as_ref().map(|board| board.path.clone());
    if let Some(board_path) = &board_path {
        stories::restore_base_board(context, &workspace, board_path)?;
    }
    let StateReading { state, .. } = workspace.read_state(&[], &context.masker)?;
    let changed: Vec<String> = state.changed.into_iter().map(|change| change.path).collect();
    let folders = bmad.document_folders();
    let is_document = |path: &String| {
        folders.iter().any(|folder| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    let strayed: Vec<String> = changed.iter().filter(|path| !is_document(path)).cloned().collect();
    if !strayed.is_empty() {
        return Ok(RetrospectiveOutcome::Strayed { paths: strayed });
    }
    let Some(path) = find_document(context, &workspace, request, &changed) else {
        return Ok(RetrospectiveOutcome::Missing { changed });
    };
    let project = Project::from_root(workspace.agent_dir());
    let document_text = ProjectDirectory::open_project(&project).read_file(&path).ok().flatten().unwrap_or_default();
    let is_ignored = !changed.contains(&path);
    if is_ignored {
        let copied = edit_or_create_file(&context.project, &path, |_| Ok::<_, String>((document_text.clone(), ())));
        copied.map_err(|cause| stories::write_fault(&cause))?;
    }
    if let Some(board_path) = &board_path {
        let is_board_ignored = !find_ignored(&context.project, &[board_path]).is_empty();
        let place = if is_board_ignored { &context.project } else { &project };
        mark_held(place, board_path, &request.epic)?;
    }
    let lesson = read_lesson(&request.epic, &path, &document_text);
    Ok(RetrospectiveOutcome::Held { path, lesson, is_ignored })
}

/// Finds the document among what the agent has changed, or among what git ignores.
fn find_document(
    context: &EffectContext,
    workspace: &DevelopmentWorkspace,
    request: &FinishRetrospective,
    changed: &[String],
) -> Option<String> {
    let epic = EpicId::parse(&request.epic)?.as_number()?;
    let is_wanted = |path: &str| {
        let file_name = path.rsplit('/').next().unwrap_or(path);
        retrospective::is_retrospective_of(file_name, epic)
    };
    if let Some(path) = changed.iter().find(|path| is_wanted(path)) {
        return Some(path.clone());
    }
    let folder = config::read_config(&ProjectDirectory::open_project(&context.project)).folders.implementation;
    let entries = fs::read_dir(workspace.agent_dir().join(&folder)).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut paths: Vec<String> = names
        .filter(|name| is_wanted(name))
        .map(|name| format!("{folder}/{name}").trim_start_matches('/').to_string())
        .filter(|path| {
            !find_ignored(&context.project, &[path]).is_empty()
                && stories::is_newer(&workspace.agent_dir().join(path), &workspace.creation_mark())
        })
        .collect();
    paths.sort();
    paths.pop()
}

/// Marks the retrospective of an epic as held. A board without an entry for it stays as it is.
fn mark_held(project: &Project, board_path: &str, epic: &str) -> Result<(), Fault> {
    let Some(epic_id) = EpicId::parse(epic) else { return Ok(()) };
    let target = BoardEntryState::Retrospective(RetroStatus::Done);
    let moved = edit_file(project, board_path, |board_text| {
        let board = board::read_board(board_path, board_text);
        let key = BoardKey::Retrospective(epic_id.clone());
        if board.find_entry(&key).is_none() {
            return Ok((board_text.to_string(), ()));
        }
        match board_edit::move_entry(board_text, &key, target, MoveMode::Forced) {
            Ok(moved) => Ok((moved.board_text, ())),
            Err(refusal) => Err(stories::describe_refusal(&refusal)),
        }
    });
    match moved {
        // The document is worth more than its mark.
        Ok(()) | Err(EditFileError::Refused { .. } | EditFileError::Missing { .. }) => Ok(()),
        Err(cause) => Err(stories::write_fault(&cause)),
    }
}
