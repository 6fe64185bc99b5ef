//! Which stories are meant, whether they may be developed, and whether a clone would have their files.

use tribunal_bmad::{
    board::{BoardEntry, BoardEntryState},
    keys::{BoardKey, StoryKey},
    states::StoryStatus,
    story,
};
use tribunal_engine::{own_folders::OwnFolders, text::shell_quote};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project, Runner,
    git::heads::{self, FileTracking},
    housekeeping::discarded_runs::{is_discarded, list_discarded},
};
use tribunal_workflows::runs::{
    kinds::RunOrder,
    view::{RunPhase, RunView},
};

use crate::{
    bmad::{BmadProject, BoardLookup},
    commands::workplace::describe_files,
    context::CommandContext,
    messages::user_errors::{EXIT_NEGATIVE, UserError},
    terminal::prompt::ask_yes_no,
};

/// The message of the commit with what was not committed.
const PLAN_MESSAGE: &str = "Update the plan";
const MISSING_IN_CLONE: &str = "Agents work in a clone of the branch, which would not have these changes.";

/// A story that the user named.
#[derive(Clone, Debug)]
pub(super) struct ChosenStory {
    pub key: StoryKey,
    /// The state on the board, as it is written.
    pub state_word: String,
}

/// Finds the stories that the user typed, each once and in the order in which they were typed.
pub(super) fn choose_stories(
    bmad: &BmadProject,
    typed_names: &[String],
    is_again: bool,
) -> Result<Vec<ChosenStory>, UserError> {
    let mut story_keys: Vec<StoryKey> = Vec::new();
    for typed_name in typed_names {
        let found_keys = match typed_name.split_once("..") {
            Some((first_name, last_name)) => find_range(bmad, first_name, last_name)?,
            None => vec![find_story(bmad, typed_name)?],
        };
        for story_key in found_keys {
            if !story_keys.contains(&story_key) {
                story_keys.push(story_key);
            }
        }
    }
    story_keys.into_iter().map(|story_key| require_open_story(bmad, story_key, is_again)).collect()
}

fn find_story(bmad: &BmadProject, typed_name: &str) -> Result<StoryKey, UserError> {
    // Without a board a story is known by its file alone.
    if bmad.board.is_none() {
        let story_path = bmad.find_file_by_name(typed_name)?;
        let story_key = story_path.as_deref().and_then(story::key_from_path);
        return story_key.ok_or_else(|| {
            UserError::usage(format!("no story `{typed_name}` in this project"))
                .with_reason("There is no board, and no story file has this name.")
                .with_step("run BMAD's sprint planning, or name the file of a story")
        });
    }
    match bmad.find_key(typed_name)? {
        BoardKey::Story(story_key) => {
            bmad.require_single_line(&BoardKey::Story(story_key.clone()))?;
            Ok(story_key)
        }
        _ => {
            Err(UserError::usage(format!("`{typed_name}` is not a story"))
                .with_step("list the stories: `tribunal status`"))
        }
    }
}

/// The stories from one to another, in the order of the board.
fn find_range(bmad: &BmadProject, first_name: &str, last_name: &str) -> Result<Vec<StoryKey>, UserError> {
    let (first_key, last_key) = (find_story(bmad, first_name)?, find_story(bmad, last_name)?);
    let board = bmad.require_board()?;
    let all_keys: Vec<StoryKey> = board.stories().map(|(story_key, _)| story_key.clone()).collect();
    let position_of = |story_key: &StoryKey| all_keys.iter().position(|key| key == story_key).unwrap_or(0);
    let (first, last) = (position_of(&first_key), position_of(&last_key));
    if first > last {
        return Err(UserError::usage(format!("{first_key} comes after {last_key} on the board"))
            .with_step(format!("turn it around: `{last_name}..{first_name}`")));
    }
    Ok(all_keys[first..=last].to_vec())
}

fn require_open_story(bmad: &BmadProject, story_key: StoryKey, is_again: bool) -> Result<ChosenStory, UserError> {
    let board_entry = bmad.board.as_ref().and_then(|board| board.find_entry(&BoardKey::Story(story_key.clone())));
    if let Some(board_entry) = board_entry.filter(|_| !is_again) {
        require_open(board_entry)?;
    }
    Ok(describe_state(bmad, story_key))
}

/// Returns a story with its state on the board.
pub(super) fn describe_state(bmad: &BmadProject, key: StoryKey) -> ChosenStory {
    let board_entry = bmad.board.as_ref().and_then(|board| board.find_entry(&BoardKey::Story(key.clone())));
    ChosenStory { state_word: board_entry.map(|board_entry| board_entry.raw_state.clone()).unwrap_or_default(), key }
}

/// Refuses a story that is done, or that the board says to leave alone.
fn require_open(board_entry: &BoardEntry) -> Result<(), UserError> {
    let key = &board_entry.raw_key;
    let problem = match board_entry.state {
        Some(BoardEntryState::Story(StoryStatus::Done)) => format!("{key} is done already"),
        Some(BoardEntryState::Story(_)) => return Ok(()),
        Some(_) => format!("the board says `{}` about {key}", board_entry.raw_state),
        None => format!("`{}` is not a known state of {key}", board_entry.raw_state),
    };
    Err(UserError::new(EXIT_NEGATIVE, problem).with_reason("Nothing was started.").with_step(format!(
        "develop it all the same: add `--again`, or move it: `tribunal board move {key} ready-for-dev`"
    )))
}

/// Lists the BMAD files that are not committed: agents work in a clone, which would not have them.
pub(super) fn list_uncommitted(
    project: &Project,
    bmad: &BmadProject,
    chosen_stories: &[ChosenStory],
    own_folders: &OwnFolders,
) -> Result<Vec<String>, UserError> {
    let folders = bmad.bookkeeping_folders();
    let is_bookkeeping = |path: &String| {
        folders
            .iter()
            .any(|folder| path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/')))
    };
    let mut uncommitted = heads::list_uncommitted(project.root())?;
    let story_paths = chosen_stories.iter().filter_map(|chosen| bmad.find_story_file(&chosen.key));
    let board_path = bmad.board.as_ref().map(|board| board.path.clone());
    let named_paths: Vec<String> = story_paths.chain(board_path).collect();
    // Settings of clients that git does not know may be private, so only folders of documents are looked through.
    let searched_paths = [bmad.document_folders(), named_paths.clone()].concat();
    let listed_files = heads::list_files(project.root(), &searched_paths)?;
    uncommitted.extend(listed_files.untracked.iter().cloned());
    uncommitted.retain(|path| is_bookkeeping(path) && !own_folders.contains_path(path) && !own_folders.is_report(path));
    for path in named_paths.into_iter().filter(|path| !listed_files.tracked.contains(path)) {
        // What is not listed is ignored, or lies where git does not look.
        let is_untracked = listed_files.untracked.contains(&path)
            || heads::find_tracking(project.root(), &path)? == FileTracking::Untracked;
        if is_untracked {
            uncommitted.push(path);
        }
    }
    uncommitted.sort();
    uncommitted.dedup();
    Ok(uncommitted)
}

/// Whether the user agreed to a commit of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitConsent {
    /// `--yes` was typed.
    Given,
    Unknown,
    /// Nothing is started.
    NotNeeded,
}

/// Commits BMAD files that are not committed if the user agrees, else refuses to start.
pub(super) fn commit_plan_files(
    project: &Project,
    uncommitted: &[String],
    consent: CommitConsent,
    context: &CommandContext,
) -> Result<(), UserError> {
    let Some(files_text) = describe_files(uncommitted) else { return Ok(()) };
    let problem = format!("{files_text} {} not committed", if uncommitted.len() == 1 { "is" } else { "are" });
    let pronoun = if uncommitted.len() == 1 { "it" } else { "them" };
    let is_agreed = match consent {
        CommitConsent::Given => true,
        CommitConsent::NotNeeded => {
            return context.print_note(&format!("{}; you would be asked first", escape_line(&problem)));
        }
        CommitConsent::Unknown if context.can_ask() => {
            context.print_note(MISSING_IN_CLONE)?;
            // The question names the files: notes may be silenced.
            ask_yes_no(&format!("{}; commit {pronoun} as \"{PLAN_MESSAGE}\"", escape_line(&problem)))?
        }
        CommitConsent::Unknown => false,
    };
    if !is_agreed {
        let quoted: Vec<String> = uncommitted.iter().map(|path| shell_quote(path).to_string()).collect();
        return Err(UserError::usage(escape_line(&problem).to_string())
            .with_reason(format!("{MISSING_IN_CLONE} Nothing was started."))
            .with_step(format!("commit {pronoun}: add `--yes`"))
            .with_step(format!("or by hand: `git add {} && git commit -m \"{PLAN_MESSAGE}\"`", quoted.join(" ")))
            .with_step("or work in your checkout: `--in-place`"));
    }
    heads::commit_files(project.root(), uncommitted, PLAN_MESSAGE)?;
    context.print_note(&format!("committed as \"{PLAN_MESSAGE}\": {}", escape_line(&files_text)))
}

/// Refuses to start beside a run that has not ended: its work would be done twice. `find_subject` says what such a run works on, if that is
/// in the way.
pub(super) fn refuse_open_run(
    project: &Project,
    context: &CommandContext,
    find_subject: impl Fn(&RunOrder) -> Option<String>,
) -> Result<(), UserError> {
    let Some(store) = context.open_journal(project)? else { return Ok(()) };
    let discarded_runs = list_discarded(project);
    for run_id in store.list_runs()? {
        // A project may have hundreds of runs; most are about something else.
        let run_start = RunView::from_entries(&store.last_entry_of(&run_id, &["run_started"])?);
        let Some(subject) = run_start.order.as_ref().and_then(&find_subject) else { continue };
        if is_discarded(&discarded_runs, &run_id, &run_start) {
            continue;
        }
        let run_view = store.read_view(&run_id)?;
        if !matches!(run_view.phase, RunPhase::Finished(_)) && !store.is_left_behind(&run_view)? {
            if Runner::is_live(project, &run_id) {
                return Err(UserError::new(EXIT_NEGATIVE, format!("run {run_id} is working on {subject}"))
                    .with_reason("Nothing was started.")
                    .with_step(format!("see what it does: `{} status {run_id}`", context.program_name()))
                    .with_step(format!("or stop it first: `{} stop {run_id}`", context.program_name())));
            }
            return Err(UserError::new(EXIT_NEGATIVE, format!("run {run_id} works on {subject} already"))
                .with_reason("It has not ended, and its work is kept. Nothing was started.")
                .with_step(format!("continue it: `{} resume {run_id}`", context.program_name()))
                .with_step(format!("or give it up: `{} discard {run_id}`", context.program_name())));
        }
    }
    Ok(())
}
