//! `tribunal verify STORY`: makes the check that a run makes after a story was developed, from files and git alone.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_bmad::{keys::BoardKey, project_files::ProjectFiles, story};
use tribunal_core::{
    development::workspace::WorkspaceState,
    engine::{kinds::RunOrder, view::RunView},
    story::{
        facts::{StoryFacts, StoryName, StoryStage},
        verification::{StoryMilestone, StoryProblem, VerificationRules, verify_story},
    },
};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    git::heads,
    project::story_facts::{self, ObservedTree},
};

use crate::{
    bmad::{BmadProject, BoardLookup},
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    settings::{SettingSources, gather_settings},
    terminal::wrapped_output::wrapped_stdout,
};

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArguments {
    /// Story by number, key or slug
    #[arg(value_name = "STORY")]
    story: String,
    /// Commit with which the work began (default: that of its run, or the baseline in its file)
    #[arg(long, value_name = "COMMIT")]
    base: Option<String>,
}

/// The document of `tribunal verify`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerifyDocument {
    schema: &'static str,
    story: String,
    /// Whether files and git show that the story was developed.
    verified: bool,
    /// The state on the board, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    sprint_status: Option<String>,
    /// The status in the story's file, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    story_file_status: Option<String>,
    /// Whether it is verified, and the board says done; without a board, the story's file.
    done: bool,
    /// What speaks against it, one line each.
    reasons: Vec<String>,
    /// What does not, but should be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    /// The commit with which the work began.
    base: String,
    /// The commit of the story, if it has landed; otherwise the checkout was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

/// The stretch of history in which a story was developed.
struct StoryRange {
    base: String,
    commit: Option<String>,
}

pub(crate) fn run(arguments: &VerifyArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let bmad = BmadProject::read_project(&project);
    let name = find_name(&bmad, &arguments.story)?;
    let range = find_range(&project, &bmad, &name, arguments, context)?;
    let facts = read_facts(&project, &name, &range)?;
    let effective = gather_settings(project.root(), &SettingSources::from_environment())?;
    let rules =
        VerificationRules { tolerates_untested: effective.to_typed().development.story.rules.tolerates_untested };
    let verdict = verify_story(&name, &facts, StoryMilestone::Developed, None, rules);
    let board_stage = facts.board.as_ref().and_then(|fact| fact.stage);
    let file_status = facts.file.as_ref().and_then(|file| file.status.as_ref());
    let said_stage = if name.board.is_some() { board_stage } else { file_status.and_then(|fact| fact.stage) };
    let is_verified = verdict.problems.is_empty();
    let document = VerifyDocument {
        schema: "tribunal.verify/1",
        story: name.key.clone(),
        verified: is_verified,
        sprint_status: facts.board.as_ref().map(ToString::to_string),
        story_file_status: file_status.map(ToString::to_string),
        done: is_verified && said_stage == Some(StoryStage::Done),
        reasons: verdict.problems.iter().map(StoryProblem::describe).collect(),
        remarks: verdict.remarks,
        base: range.base,
        commit: range.commit,
    };
    if context.wants_json {
        json_documents::print_document(&document)?;
    } else {
        print_document(&document)?;
    }
    Ok(if document.verified { 0 } else { EXIT_NEGATIVE })
}

fn find_name(bmad: &BmadProject, typed_name: &str) -> Result<StoryName, UserError> {
    let key = match &bmad.board {
        Some(board) => match bmad.find_key(typed_name)? {
            board_key @ BoardKey::Story(_) => {
                board.find_entry(&board_key).map_or_else(|| board_key.to_string(), |entry| entry.raw_key.clone())
            }
            _ => {
                return Err(UserError::usage(format!("`{typed_name}` is not a story"))
                    .with_step("list the stories: `tribunal status`"));
            }
        },
        None => bmad
            .find_file_by_name(typed_name)?
            .as_deref()
            .and_then(story::key_from_path)
            .map(|story_key| story_key.to_string())
            .ok_or_else(|| UserError::usage(format!("no story `{typed_name}` in this project")))?,
    };
    Ok(StoryName {
        board: bmad.board.as_ref().map(|board| board.path.clone()),
        bookkeeping: bmad.bookkeeping_folders(),
        ..StoryName::from_key(key)
    })
}

/// Finds out where the work on a story began: what the user says, what its last run recorded, what its file says.
fn find_range(
    project: &Project,
    bmad: &BmadProject,
    name: &StoryName,
    arguments: &VerifyArguments,
    context: &CommandContext,
) -> Result<StoryRange, UserError> {
    let require_commit = |commit_name: &str| {
        heads::find_commit(project.root(), commit_name)?
            .map(|commit| commit.as_str().to_string())
            .ok_or_else(|| UserError::usage(format!("`{commit_name}` is not a commit")))
    };
    if let Some(typed_base) = arguments.base.as_deref() {
        return Ok(StoryRange { base: require_commit(typed_base)?, commit: None });
    }
    if let Some(range) = find_last_run(project, name, context)? {
        return Ok(range);
    }
    let file_baseline = read_baseline(bmad, name).filter(|baseline| baseline != "NO_VCS");
    match file_baseline {
        Some(baseline) => Ok(StoryRange { base: require_commit(&baseline)?, commit: None }),
        None => Err(UserError::usage(format!("it is not known where the work on {} began", name.key))
            .with_reason("No run has developed it, and its file has no baseline.")
            .with_step("name the commit: `--base COMMIT`")),
    }
}

fn find_last_run(
    project: &Project,
    name: &StoryName,
    context: &CommandContext,
) -> Result<Option<StoryRange>, UserError> {
    let Some(store) = context.open_journal(project)? else { return Ok(None) };
    let mut last_range = None;
    for run_id in store.list_runs()? {
        let run_view = RunView::from_entries(&store.read_entries(&run_id, 0)?);
        let is_wanted = matches!(&run_view.order, Some(RunOrder::Story(order)) if order.story.key == name.key);
        let Some(view) = run_view.as_story().filter(|_| is_wanted) else { continue };
        if let Some(base) = &view.base {
            let commit = view.summary.commit.as_ref().or(view.kept.as_ref());
            last_range = Some(StoryRange {
                base: base.as_str().to_string(),
                commit: commit.map(|commit| commit.as_str().to_string()),
            });
        }
    }
    Ok(last_range)
}

fn read_baseline(bmad: &BmadProject, name: &StoryName) -> Option<String> {
    let story_key = tribunal_bmad::keys::StoryKey::parse(&name.key)?;
    let story_path = bmad.find_story_file(&story_key)?;
    let story_text = bmad.shelf.read_file(&story_path).ok().flatten()?;
    story::read_story(&story_path, &story_text).baseline
}

fn read_facts(project: &Project, name: &StoryName, range: &StoryRange) -> Result<StoryFacts, UserError> {
    let changed = heads::list_changes(project.root(), &range.base, range.commit.as_deref())?;
    let changed_count = u32::try_from(changed.len()).unwrap_or(u32::MAX);
    let work = WorkspaceState { changed, changed_count, ..WorkspaceState::default() };
    let read_base = |path: &str| heads::read_file_at(project.root(), &range.base, path);
    let observed = ObservedTree { root: project.root(), work, read_base: &read_base, check_commands: &[] };
    Ok(story_facts::read_facts(name, observed))
}

fn print_document(document: &VerifyDocument) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    let verdict_text = match (document.done, document.verified) {
        (true, _) => "verified, and done",
        (false, true) => "verified",
        (false, false) => "not verified",
    };
    writeln!(output, "{}: {verdict_text}", escape_line(&document.story))?;
    let board_text = document.sprint_status.as_deref().unwrap_or("not on it");
    writeln!(output, "  board       {}", escape_line(board_text))?;
    let status_text = document.story_file_status.as_deref().unwrap_or("no status");
    writeln!(output, "  story file  {}", escape_line(status_text))?;
    let short = |commit: &str| commit.chars().take(8).collect::<String>();
    match &document.commit {
        Some(commit) => writeln!(output, "  changes     {}..{}", short(&document.base), short(commit))?,
        None => writeln!(output, "  changes     since {}, in your checkout", short(&document.base))?,
    }
    for reason in &document.reasons {
        writeln!(output, "  ✗ {}", escape_line(reason))?;
    }
    for remark in &document.remarks {
        writeln!(output, "  ! {}", escape_line(remark))?;
    }
    Ok(())
}
