//! Performs the effects on the files of a story: reads what they and git say, and writes stages and follow-ups.

use std::{fs, io, path::Path, sync::Arc};

use tribunal_bmad::{
    board::{
        self, BoardEntryState, edit as board_edit,
        edit::{BoardMoveRefusal, MoveMode},
    },
    config,
    deferred_work::{self, NewDeferredItem},
    keys::BoardKey,
    layout::{self, Era},
    project_files::ProjectFiles,
    story::{
        FollowUpKind, ReviewDialect,
        edit::{self as story_edit, NewFollowUp, StoryEditRefusal},
    },
};
use tribunal_core::{
    story::facts::{
        ReadStory, RestoreBoard, StoryFacts, StoryFollowUp, StoryName, StoryPlace, StoryReading, StoryStage,
        StoryWriting, WriteStory,
    },
    tasks::fault::Fault,
};

use super::{EffectContext, environment_fault, run_blocking};
use crate::{
    landing::parked_files::park_file,
    project::{
        Project,
        file_edits::find_ignored,
        locked_edit::{EditFileError, edit_file, edit_or_create_file},
        project_files::ProjectDirectory,
        story_facts::{self, ObservedTree},
    },
    workspaces::development::{DevelopmentWorkspace, contents::StateReading},
};

pub(super) async fn read_story(context: Arc<EffectContext>, request: ReadStory) -> StoryReading {
    run_blocking(move || match try_read(&context, &request) {
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
    let StateReading { state: work, remarks } = workspace.read_state(&[], &context.masker)?;
    let tree = workspace.agent_dir();
    let read_base = |path: &str| workspace.read_base_file(path);
    let commands: Vec<_> = context.settings.checks.iter().map(|check| check.command.clone()).collect();
    let observed = ObservedTree { root: &tree, work, read_base: &read_base, check_commands: &commands };
    let facts = StoryFacts { remarks, ..story_facts::read_facts(&request.story, observed) };
    Ok(StoryReading::Read(Box::new(facts)))
}

pub(super) async fn write_story(context: Arc<EffectContext>, request: WriteStory) -> StoryWriting {
    run_blocking(move || match try_write(&context, &request) {
        Ok(writing) => writing,
        Err(fault) => fault.into(),
    })
    .await
}

fn try_write(context: &EffectContext, request: &WriteStory) -> Result<StoryWriting, Fault> {
    let mut writer = match &request.place {
        StoryPlace::Workspace { workspace } => {
            let workspace = context.find_development_workspace(workspace)?;
            // Agents may have moved any line of the board; only that of the story is moved, by us.
            restore_base_board(&workspace, &request.story)?;
            StoryWriter::new(Project::from_root(workspace.agent_dir()), request)
        }
        StoryPlace::Checkout => StoryWriter::new(context.project.clone(), request),
    };
    let is_checkout = request.place == StoryPlace::Checkout;
    if let Some(workspace_name) = &request.take_over_from {
        writer.take_over_story(context, &context.find_development_workspace(workspace_name)?)?;
    }
    writer.move_on_board(is_checkout)?;
    writer.write_story_file(is_checkout)?;
    writer.write_ledger(is_checkout)?;
    let StoryWriter { paths, remarks, .. } = writer;
    Ok(StoryWriting::Written { paths, remarks })
}

pub(super) async fn restore_board(context: Arc<EffectContext>, request: RestoreBoard) -> StoryWriting {
    run_blocking(move || {
        let restored = context
            .find_development_workspace(&request.workspace)
            .and_then(|workspace| restore_base_board(&workspace, &request.story));
        match restored {
            Ok(()) => StoryWriting::Written { paths: request.story.board.into_iter().collect(), remarks: Vec::new() },
            Err(fault) => fault.into(),
        }
    })
    .await
}

/// Puts the board back to what it was when the work began. A board that git ignores is not in the commit, and stays.
fn restore_base_board(workspace: &DevelopmentWorkspace, story: &StoryName) -> Result<(), Fault> {
    let Some(board_path) = &story.board else { return Ok(()) };
    let base_text = workspace.read_base_file(board_path).and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(base_text) = base_text else { return Ok(()) };
    let project = Project::from_root(workspace.agent_dir());
    edit_or_create_file(&project, board_path, |_| Ok::<_, String>((base_text.clone(), ())))
        .map_err(|cause| write_fault(&cause))
}

/// Writes the files of one story in one place.
struct StoryWriter<'r> {
    project: Project,
    story: &'r StoryName,
    stage: StoryStage,
    follow_ups: &'r [StoryFollowUp],
    shelf: ProjectDirectory,
    paths: Vec<String>,
    remarks: Vec<String>,
}

impl<'r> StoryWriter<'r> {
    fn new(project: Project, request: &'r WriteStory) -> StoryWriter<'r> {
        let shelf = ProjectDirectory::open_project(&project);
        let WriteStory { story, stage, follow_ups, .. } = request;
        StoryWriter { project, story, stage: *stage, follow_ups, shelf, paths: Vec::new(), remarks: Vec::new() }
    }

    /// Files in the checkout are only written if git ignores them: the others come with the commit.
    fn is_wanted(&self, path: &str, is_checkout: bool) -> bool {
        !is_checkout || !find_ignored(&self.project, &[path]).is_empty()
    }

    fn move_on_board(&mut self, is_checkout: bool) -> Result<(), Fault> {
        let Some(board_path) = self.story.board.clone().filter(|path| self.is_wanted(path, is_checkout)) else {
            return Ok(());
        };
        let target = BoardEntryState::Story(story_facts::to_status(self.stage));
        let moved = edit_file(&self.project, &board_path, |board_text| {
            let board = board::read_board(&board_path, board_text);
            let entry = board.entries.iter().find(|entry| {
                matches!(&entry.key, BoardKey::Story(key) if key.as_str() == self.story.key || entry.raw_key == self.story.key)
            });
            let Some(entry) = entry else { return Err(format!("{} is not on it", self.story.key)) };
            let moved = board_edit::move_entry(board_text, &entry.key, target, MoveMode::Forced);
            let moved = moved.map_err(|refusal| format!("{}: {}", self.story.key, describe_refusal(&refusal)))?;
            Ok((moved.board_text, !moved.moves.is_empty()))
        });
        match moved {
            Ok(true) => self.paths.push(board_path),
            Ok(false) => {}
            // The board may be gone, or the user may have removed the entry.
            Err(EditFileError::Missing { .. }) => self.remarks.push(format!("{board_path} does not exist")),
            Err(EditFileError::Refused { why, .. }) => self.remarks.push(format!("{board_path}: {why}")),
            Err(cause) => return Err(write_fault(&cause)),
        }
        Ok(())
    }

    fn find_story_file(&self) -> Option<String> {
        story_facts::locate_story(&self.shelf, self.story).file.map(|story_file| story_file.path)
    }

    fn write_story_file(&mut self, is_checkout: bool) -> Result<(), Fault> {
        let Some(story_path) = self.find_story_file().filter(|path| self.is_wanted(path, is_checkout)) else {
            return Ok(());
        };
        let era = layout::read_layout(&self.shelf).era;
        let written = edit_file(&self.project, &story_path, |story_text| {
            let mut new_text = story_edit::set_status(story_text, story_facts::to_status(self.stage))?;
            if !self.follow_ups.is_empty() {
                let dialect = story_edit::choose_dialect(story_text, era);
                let new_items: Vec<NewFollowUp> = self.follow_ups.iter().map(|item| to_item(item, dialect)).collect();
                new_text = story_edit::add_follow_ups(&new_text, dialect, &new_items)?;
            }
            let is_changed = new_text != story_text;
            Ok::<_, StoryEditRefusal>((new_text, is_changed))
        });
        match written {
            Ok(true) => self.paths.push(story_path),
            Ok(false) => {}
            Err(EditFileError::Refused { why, .. }) => {
                self.remarks.push(format!("{story_path} was not changed: {}", why.reason));
            }
            Err(cause) => return Err(write_fault(&cause)),
        }
        Ok(())
    }

    /// Adds what is left to the ledger, where this version of BMAD has one or the project keeps one.
    fn write_ledger(&mut self, is_checkout: bool) -> Result<(), Fault> {
        let folder = config::read_config(&self.shelf).folders.implementation;
        let ledger_path = format!("{folder}/{}", deferred_work::LEDGER_FILE).trim_start_matches('/').to_string();
        let has_ledger = layout::read_layout(&self.shelf).era.is_some_and(|era| era >= Era::C2)
            || self.shelf.read_file(&ledger_path).is_ok_and(|text| text.is_some());
        if self.follow_ups.is_empty() || !has_ledger || !self.is_wanted(&ledger_path, is_checkout) {
            return Ok(());
        }
        let source = self.find_story_file().unwrap_or_else(|| self.story.key.clone());
        let new_items: Vec<NewDeferredItem> = self
            .follow_ups
            .iter()
            .map(|item| NewDeferredItem {
                source: source.clone(),
                summary: item.text.clone(),
                evidence: if item.place.is_empty() { item.severity.to_string() } else { item.place.clone() },
            })
            .collect();
        let written = edit_or_create_file(&self.project, &ledger_path, |ledger_text| {
            let new_text = deferred_work::add_items(ledger_text, &new_items);
            let is_changed = new_text != ledger_text;
            Ok::<_, String>((new_text, is_changed))
        });
        if written.map_err(|cause| write_fault(&cause))? {
            self.paths.push(ledger_path);
        }
        Ok(())
    }

    /// Takes over the workspace's version of a story file that git ignores. If the user has changed it meanwhile, the user's
    /// version stays, and that of the workspace is parked.
    fn take_over_story(&mut self, context: &EffectContext, workspace: &DevelopmentWorkspace) -> Result<(), Fault> {
        let tree = workspace.agent_dir();
        let in_workspace = StoryWriter {
            project: Project::from_root(&tree),
            shelf: ProjectDirectory::open_project(&Project::from_root(&tree)),
            story: self.story,
            stage: self.stage,
            follow_ups: &[],
            paths: Vec::new(),
            remarks: Vec::new(),
        };
        let Some(story_path) = in_workspace.find_story_file().filter(|path| self.is_wanted(path, true)) else {
            return Ok(());
        };
        let Ok(Some(new_text)) = in_workspace.shelf.read_file(&story_path) else { return Ok(()) };
        let target_path = self.project.root().join(&story_path);
        if let Some(real_target) = self.project.resolve_outside(&target_path) {
            self.remarks.push(format!("{story_path} leads outside the project, to {}", real_target.display()));
            return Ok(());
        }
        if is_newer(&target_path, &workspace.creation_mark()) {
            let parked = park_file(&context.project, &context.run_id, &story_path, new_text.as_bytes());
            let parked = parked.map_err(|cause| environment_fault(format!("could not keep {story_path}: {cause}")))?;
            self.remarks.push(format!(
                "{story_path} was changed meanwhile and stays as it is; the version of the story is {}",
                parked.display()
            ));
            return Ok(());
        }
        let create_parent = || target_path.parent().map_or(Ok(()), fs::create_dir_all);
        create_parent().map_err(|cause| environment_fault(format!("could not write {story_path}: {cause}")))?;
        let written = edit_or_create_file(&self.project, &story_path, |_| Ok::<_, String>((new_text.clone(), ())));
        written.map_err(|cause| write_fault(&cause))?;
        self.paths.push(story_path);
        Ok(())
    }
}

/// Whether a file was changed after another one was written.
fn is_newer(checked_path: &Path, reference_path: &Path) -> bool {
    let modified = |path: &Path| -> io::Result<_> { fs::metadata(path)?.modified() };
    match (modified(checked_path), modified(reference_path)) {
        (Ok(checked), Ok(reference)) => checked > reference,
        _ => false,
    }
}

/// Says why the board could not be edited.
fn describe_refusal(refusal: &BoardMoveRefusal) -> String {
    match refusal {
        BoardMoveRefusal::BrokenBoard { board } => match board.problems.first() {
            Some(problem) => problem.to_string(),
            None => "the board cannot be read".to_string(),
        },
        BoardMoveRefusal::UnknownKey { .. } => "it is not on the board".to_string(),
        BoardMoveRefusal::NoKnownState { raw_state, line, .. } => {
            format!("line {line} says `{raw_state}`, which is no known state")
        }
        BoardMoveRefusal::WrongKind { target, .. } | BoardMoveRefusal::OutOfOrder { target, .. } => {
            format!("it cannot be moved to {target}")
        }
        BoardMoveRefusal::NotPlainValue { line, .. } => {
            format!("the value in line {line} is an alias or has several lines, which is not edited")
        }
        BoardMoveRefusal::WouldChangeMore { .. } => "the edit would change more than its line".to_string(),
    }
}

fn write_fault<E: std::fmt::Debug>(cause: &EditFileError<E>) -> Fault {
    let detail = match cause {
        EditFileError::Missing { path } => format!("{path} does not exist"),
        EditFileError::Unreadable { path, why } => why.to_problem(path).to_string(),
        EditFileError::LockedByOther { path, .. } => format!("{path} is locked by another program"),
        EditFileError::AlwaysChanged { path } => format!("{path} keeps being changed by another program"),
        EditFileError::Failed { path, cause } => format!("could not write {path}: {cause}"),
        EditFileError::Refused { path, why } => format!("the edit of {path} was rejected: {why:?}"),
    };
    environment_fault(detail)
}

fn to_item(follow_up: &StoryFollowUp, dialect: ReviewDialect) -> NewFollowUp {
    let kind = match dialect {
        ReviewDialect::AiReview => FollowUpKind::Severity(follow_up.severity),
        ReviewDialect::Findings => FollowUpKind::Patch,
    };
    let place = Some(follow_up.place.clone()).filter(|place| !place.is_empty());
    NewFollowUp { kind, text: follow_up.text.clone(), place, done: false }
}
