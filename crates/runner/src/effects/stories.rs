//! Performs the effects on the files of a story: reads what they and git say, and writes stages and follow-ups.

use std::{
    cell::{LazyCell, OnceCell},
    fs, io,
    path::Path,
    sync::Arc,
};

use tribunal_bmad::{
    board::{
        self, BoardEntryState, edit as board_edit,
        edit::{BoardMoveRefusal, MoveMode},
    },
    config,
    deferred_work::{self, LedgerClosing, NewDeferredItem},
    keys::{BoardKey, StoryKey},
    layout::{self, Era},
    project_files::ProjectFiles,
    story::{
        self, FollowUpKind, ReviewDialect, StoryLinks,
        edit::{self as story_edit, NewFollowUp, StoryEditRefusal},
    },
};
use tribunal_engine::fault::Fault;
use tribunal_workflows::{
    development::workspace::{PathChange, WorkspaceState},
    story::facts::{RestoreBoard, StoryFollowUp, StoryName, StoryPlace, StoryStage, StoryWriting, WriteStory},
};

use super::{
    EffectContext, environment_fault,
    other_stories::{OtherStories, make_parent_dirs},
    run_file_effect,
};
use crate::{
    landing::parked_files::park_file,
    project::{
        Project,
        file_edits::find_ignored,
        locked_edit::{EditFileError, edit_file, edit_or_create_file},
        project_files::ProjectDirectory,
        story_facts,
    },
    workspaces::development::{DevelopmentWorkspace, frozen_work::FrozenReading},
};

pub(super) async fn write_story(context: Arc<EffectContext>, request: WriteStory) -> StoryWriting {
    run_file_effect(move || match try_write(&context, &request) {
        Ok(writing) => writing,
        Err(fault) => fault.into(),
    })
    .await
}

fn try_write(context: &EffectContext, request: &WriteStory) -> Result<StoryWriting, Fault> {
    let mut state = None;
    let mut writer = match &request.place {
        StoryPlace::Workspace { workspace } => {
            let workspace = context.find_development_workspace(workspace)?;
            let mut remarks = Vec::new();
            // In the checkout the user may go on; only what is written is taken over from there.
            if let Some(tree) = request.tree.as_ref().filter(|_| !workspace.is_in_place()) {
                let FrozenReading { reading, put_back } = workspace.read_frozen_state(tree, &context.masker)?;
                // A process that was killed here has left its own writing, which is done anew.
                let is_own = |path: &String| request.story.is_bookkeeping(path);
                if !put_back.changed.iter().chain(&put_back.made).all(is_own) {
                    remarks.extend(put_back.describe());
                }
                state = Some(reading.state);
            }
            discard_lock(&workspace, request.story.board.as_deref());
            // Agents may have moved any line of the board; only that of the story is moved, by us.
            if let Some(board_path) = &request.story.board {
                restore_base_board(context, &workspace, board_path)?;
            }
            let mut writer = StoryWriter::new(Project::from_root(workspace.agent_dir()), request);
            discard_lock(&workspace, writer.find_story_file().as_deref());
            writer.remarks = remarks;
            writer.paths.extend(request.story.board.clone());
            writer
        }
        StoryPlace::Checkout => StoryWriter::new(context.project.clone(), request),
    };
    if let StoryPlace::Workspace { workspace } = &request.place {
        let workspace = context.find_development_workspace(workspace)?;
        let state = match state {
            Some(state) => state,
            None => workspace.read_state(&[], &context.masker)?.state,
        };
        writer.restore_others(&workspace, state, &context.project)?;
    }
    let is_checkout = request.place == StoryPlace::Checkout;
    if let Some(workspace_name) = &request.take_over_from {
        writer.take_over_story(context, &context.find_development_workspace(workspace_name)?)?;
    }
    writer.move_on_board(is_checkout)?;
    writer.write_story_file(is_checkout)?;
    writer.write_ledger(is_checkout)?;
    let StoryWriter { mut paths, remarks, .. } = writer;
    paths.sort();
    paths.dedup();
    let tree = match (&request.place, &request.tree) {
        (StoryPlace::Workspace { workspace }, Some(tree)) => {
            Some(context.find_development_workspace(workspace)?.freeze_also(tree, &paths)?)
        }
        _ => None,
    };
    Ok(StoryWriting::Written { paths, remarks, tree })
}

pub(super) async fn restore_board(context: Arc<EffectContext>, request: RestoreBoard) -> StoryWriting {
    run_file_effect(move || {
        let restored =
            context.find_development_workspace(&request.workspace).and_then(|workspace| match &request.story.board {
                Some(board_path) => restore_base_board(&context, &workspace, board_path),
                None => Ok(()),
            });
        match restored {
            Ok(()) => {
                let paths = request.story.board.into_iter().collect();
                StoryWriting::Written { paths, remarks: Vec::new(), tree: None }
            }
            Err(fault) => fault.into(),
        }
    })
    .await
}

/// Removes the lock of a file from a workspace: no other program edits it there, so a lock was left by a killed process, or by an agent.
fn discard_lock(workspace: &DevelopmentWorkspace, path: Option<&str>) {
    if let Some(path) = path.filter(|_| !workspace.is_in_place()) {
        // What cannot be removed is reported by the edit itself.
        let _ = fs::remove_file(workspace.agent_dir().join(format!("{path}.lock")));
    }
}

/// Puts the board back to what it was when the work began. A board that git ignores is not in the commit, and stays.
pub(super) fn restore_base_board(
    context: &EffectContext,
    workspace: &DevelopmentWorkspace,
    board_path: &str,
) -> Result<(), Fault> {
    let read_files = |paths: &[&str]| workspace.read_base_files(paths);
    let base_bytes = context.memory.base_files.read_file(workspace.base_commit(), board_path, None, read_files);
    let Some(base_text) = base_bytes.and_then(|bytes| String::from_utf8(bytes).ok()) else { return Ok(()) };
    let project = Project::from_root(workspace.agent_dir());
    edit_or_create_file(&project, board_path, |_| Ok::<_, String>((base_text.clone(), ())))
        .map_err(|cause| write_fault(&cause))
}

/// Writes the files of one story in one place.
struct StoryWriter<'r> {
    project: Project,
    story: &'r StoryName,
    stage: StoryStage,
    confirmed: &'r [String],
    follow_ups: &'r [StoryFollowUp],
    project_files: ProjectDirectory,
    /// Where the story's file is, once it was found. Finding it reads the board and lists all stories.
    story_path: OnceCell<String>,
    paths: Vec<String>,
    remarks: Vec<String>,
}

impl<'r> StoryWriter<'r> {
    fn new(project: Project, request: &'r WriteStory) -> StoryWriter<'r> {
        let project_files = ProjectDirectory::open_project(&project);
        let WriteStory { story, stage, confirmed, follow_ups, .. } = request;
        let (story_path, paths, remarks) = (OnceCell::new(), Vec::new(), Vec::new());
        StoryWriter { project, story, stage: *stage, confirmed, follow_ups, project_files, story_path, paths, remarks }
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

    /// Puts back the files of other stories, and a ledger that has lost items: this story has no business with them, and what an agent
    /// writes there would prepare their verification.
    fn restore_others(
        &mut self,
        workspace: &DevelopmentWorkspace,
        state: WorkspaceState,
        users_project: &Project,
    ) -> Result<(), Fault> {
        let own_file = self.find_story_file();
        // Most work changes no file that could be another story's.
        let stories = LazyCell::new(|| OtherStories::of_project(users_project));
        for change in state.changed {
            let is_ledger = change.path.ends_with(deferred_work::LEDGER_FILE);
            let is_other_story = Some(&change.path) != own_file.as_ref()
                && story::key_from_path(&change.path).is_some_and(|key| !self.is_own_key(&key))
                && stories.may_contain(&change.path);
            if !is_other_story && !is_ledger {
                continue;
            }
            let Some(base_bytes) = workspace.read_base_file(&change.path) else {
                if is_other_story && change.change == PathChange::Added {
                    let remark =
                        "an agent has written it, and it is not this story's; look at it before that story begins";
                    self.remarks.push(format!("{} is the file of another story: {remark}", change.path));
                }
                continue;
            };
            let Ok(base_text) = String::from_utf8(base_bytes) else { continue };
            let new_text = self.project_files.read_file(&change.path).ok().flatten().unwrap_or_default();
            if !(is_other_story || is_ledger && has_lost_items(&base_text, &new_text)) {
                continue;
            }
            make_parent_dirs(&self.project, &change.path)
                .map_err(|cause| environment_fault(format!("could not put {} back: {cause}", change.path)))?;
            let restored =
                edit_or_create_file(&self.project, &change.path, |_| Ok::<_, String>((base_text.clone(), ())));
            restored.map_err(|cause| write_fault(&cause))?;
            self.remarks.push(format!("{} was put back: an agent changed it, and it is not this story's", change.path));
            self.paths.push(change.path);
        }
        Ok(())
    }

    /// Whether a key is that of the story. The number counts: the file of a spec may have another title in its name.
    fn is_own_key(&self, key: &StoryKey) -> bool {
        let own_key = StoryKey::parse(&self.story.key);
        let own_number = own_key.as_ref().and_then(StoryKey::story_number);
        key.as_str() == self.story.key || own_number.is_some() && key.story_number() == own_number
    }

    fn find_story_file(&self) -> Option<String> {
        if self.story_path.get().is_none() {
            let located = story_facts::locate_story(&self.project_files, self.story);
            // A file that is missing may be put back later.
            located.file.and_then(|story_file| self.story_path.set(story_file.path).ok());
        }
        self.story_path.get().cloned()
    }

    fn write_story_file(&mut self, is_checkout: bool) -> Result<(), Fault> {
        let Some(story_path) = self.find_story_file().filter(|path| self.is_wanted(path, is_checkout)) else {
            return Ok(());
        };
        let era = layout::read_layout(&self.project_files).era;
        let written = edit_file(&self.project, &story_path, |story_text| {
            let mut new_text = story_edit::set_status(story_text, story_facts::to_status(self.stage))?;
            if !self.follow_ups.is_empty() {
                let dialect = story_edit::choose_dialect(story_text, era);
                let new_items: Vec<NewFollowUp> = self.follow_ups.iter().map(|item| to_item(item, dialect)).collect();
                new_text = story_edit::add_follow_ups(&new_text, dialect, &new_items)?;
            }
            if !self.confirmed.is_empty() {
                new_text = story_edit::confirm_actions(&new_text, self.confirmed, &format_today())?;
            }
            let is_changed = new_text != story_text;
            Ok::<_, StoryEditRefusal>((new_text, is_changed))
        });
        match written {
            // A process that was killed may have written it already.
            Ok(_) => self.paths.push(story_path),
            Err(EditFileError::Refused { why, .. }) => {
                self.remarks.push(format!("{story_path} was not changed: {}", why.reason));
            }
            Err(cause) => return Err(write_fault(&cause)),
        }
        Ok(())
    }

    /// What the story's own file says about the ledger: items that it closes, and items that its workflow left.
    fn read_ledger_links(&self) -> LedgerLinks {
        let read = || {
            let story_path = self.find_story_file()?;
            let story_text = self.project_files.read_file(&story_path).ok().flatten()?;
            Some(story::read_story(&story_path, &story_text))
        };
        let Some(parsed) = read() else { return LedgerLinks::default() };
        // What a story that is not done says it closes is still open.
        let closed = if self.stage == StoryStage::Done { parsed.links.closes_deferred.clone() } else { Vec::new() };
        // What is confirmed has landed before, and what its review left is in the story's file and in the ledger since then.
        let is_confirming = !self.confirmed.is_empty();
        let left_before = parsed.open_follow_ups().filter(|_| is_confirming).map(|item| item.text.clone()).collect();
        let StoryLinks { deferred, mut deferred_severities, .. } = parsed.links;
        let with_severity = |text: String| {
            let severity = deferred_severities.remove(&text).unwrap_or_default();
            (text, severity)
        };
        LedgerLinks { closed, deferred: deferred.into_iter().map(with_severity).collect(), left_before }
    }

    /// Adds what is left to the ledger, where this version of BMAD has one or the project keeps one, and closes what the story has
    /// done of it.
    fn write_ledger(&mut self, is_checkout: bool) -> Result<(), Fault> {
        let links = self.read_ledger_links();
        let folder = config::read_config(&self.project_files).folders.implementation;
        let ledger_path = format!("{folder}/{}", deferred_work::LEDGER_FILE).trim_start_matches('/').to_string();
        let has_ledger = layout::read_layout(&self.project_files).era.is_some_and(|era| era >= Era::C2)
            || self.project_files.read_file(&ledger_path).is_ok_and(|text| text.is_some());
        let is_unchanged = self.follow_ups.is_empty() && links.closed.is_empty() && links.deferred.is_empty();
        if is_unchanged || !has_ledger || !self.is_wanted(&ledger_path, is_checkout) {
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
                severity: item.severity.to_string(),
                place: item.place.clone(),
            })
            .collect();
        let harvested = links.deferred.iter().map(|(summary, severity)| NewDeferredItem {
            source: source.clone(),
            summary: summary.clone(),
            evidence: "left by the workflow that developed the story".to_string(),
            severity: severity.clone(),
            place: String::new(),
        });
        let new_items: Vec<NewDeferredItem> = new_items.into_iter().chain(harvested).collect();
        let left_before = links.left_before.iter().map(|summary| NewDeferredItem {
            source: source.clone(),
            summary: summary.clone(),
            evidence: String::new(),
            severity: String::new(),
            place: String::new(),
        });
        let own_items: Vec<NewDeferredItem> = new_items.iter().cloned().chain(left_before).collect();
        let closing = LedgerClosing { date: format_today(), resolution: format!("story {}", self.story.key) };
        let written = edit_or_create_file(&self.project, &ledger_path, |ledger_text| {
            // What this work leaves is not closed by it, even if it gets an id that the story names.
            let closed_ids = deferred_work::ids_of_others(ledger_text, &links.closed, &own_items);
            let closed = deferred_work::close_items(ledger_text, &closed_ids, &closing);
            let new_text = deferred_work::add_items(&closed.ledger_text, &new_items);
            Ok::<_, String>((new_text, (closed.unknown, closed.ambiguous)))
        });
        let (unknown, ambiguous) = written.map_err(|cause| write_fault(&cause))?;
        self.paths.push(ledger_path.clone());
        if !unknown.is_empty() {
            self.remarks.push(format!("{ledger_path} has no {}, which the story says it closes", unknown.join(", ")));
        }
        let describe_twins =
            |id: &String| format!("{id} stands twice in {}, so it was not closed", deferred_work::LEDGER_FILE);
        self.remarks.extend(ambiguous.iter().map(describe_twins));
        Ok(())
    }

    /// Takes over the workspace's version of a story file that git ignores. If the user has changed it meanwhile, the user's
    /// version stays, and that of the workspace is parked.
    fn take_over_story(&mut self, context: &EffectContext, workspace: &DevelopmentWorkspace) -> Result<(), Fault> {
        let tree = workspace.agent_dir();
        let in_workspace = StoryWriter {
            project: Project::from_root(&tree),
            project_files: ProjectDirectory::open_project(&Project::from_root(&tree)),
            story: self.story,
            stage: self.stage,
            confirmed: &[],
            follow_ups: &[],
            story_path: OnceCell::new(),
            paths: Vec::new(),
            remarks: Vec::new(),
        };
        let Some(story_path) = in_workspace.find_story_file().filter(|path| self.is_wanted(path, true)) else {
            return Ok(());
        };
        let Ok(Some(new_text)) = in_workspace.project_files.read_file(&story_path) else { return Ok(()) };
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

/// Whether an agent has removed items of the ledger, or closed some.
fn has_lost_items(base_text: &str, new_text: &str) -> bool {
    let new_items = deferred_work::read_ledger(new_text).items;
    let base_items = deferred_work::read_ledger(base_text).items;
    base_items.iter().any(|item| !new_items.iter().any(|other| other.text == item.text && other.done == item.done))
}

/// What a story's file says about the ledger of deferred work.
#[derive(Default)]
struct LedgerLinks {
    closed: Vec<String>,
    /// What the workflow left, with the severities; those are empty if they are not named.
    deferred: Vec<(String, String)>,
    /// What an earlier landing of the same run left.
    left_before: Vec<String>,
}

/// Today, as the user's clock has it.
fn format_today() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d").to_string()
}

/// Whether a file was changed after another one was written.
pub(super) fn is_newer(checked_path: &Path, reference_path: &Path) -> bool {
    let modified = |path: &Path| -> io::Result<_> { fs::metadata(path)?.modified() };
    match (modified(checked_path), modified(reference_path)) {
        (Ok(checked), Ok(reference)) => checked > reference,
        _ => false,
    }
}

/// Says why the board could not be edited.
pub(super) fn describe_refusal(refusal: &BoardMoveRefusal) -> String {
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

pub(super) fn write_fault<E: std::fmt::Debug>(cause: &EditFileError<E>) -> Fault {
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
