//! `tribunal story KEY`: shows a story's file, and makes small changes to it that keep every other byte: ticks of
//! tasks, files that were touched, follow-ups of a review.

use std::io::Write;

use tribunal_bmad::{
    deferred_work::{self, NewDeferredItem},
    layout::Era,
    story::{
        FollowUpKind, ReviewDialect,
        edit::{self, NewFollowUp, StoryEditRefusal},
    },
};
use tribunal_engine::{
    ids::RunId,
    text::{format_count, sanitize_to_line},
};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    project::{
        locked_edit::{EditFileError, edit_file as write, edit_or_create_file},
        subject,
    },
};
use tribunal_workflows::findings::{
    finding::{Finding, FindingStatus},
    subject::Subject,
};

use super::{board::explain_write_error, inspect, review};
use crate::{
    bmad::BmadProject,
    context::CommandContext,
    messages::{
        json_documents::{self, StoryEdit},
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    terminal::wrapped_output::{wrapped_stderr, wrapped_stdout},
};

#[derive(Debug, clap::Args)]
pub(crate) struct StoryArguments {
    /// Story key (1-2-log-in), number (1.2) or file
    story: String,
    /// Tick a task by its number: 2, or 2.1 for a subtask
    #[arg(long, value_name = "TASK")]
    tick: Vec<String>,
    /// Untick a task
    #[arg(long, value_name = "TASK")]
    untick: Vec<String>,
    /// Add a file to the story's file list
    #[arg(long, value_name = "PATH")]
    add_file: Vec<String>,
    /// Tick a review follow-up by its line number, as shown by `tribunal story KEY`
    #[arg(long, value_name = "LINE")]
    tick_follow_up: Vec<usize>,
    /// Add the open and deferred findings of this run as review follow-ups
    #[arg(long, value_name = "RUN")]
    follow_ups: Option<String>,
    /// Show what would change without writing anything
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl StoryArguments {
    /// Returns whether something is to be changed.
    pub(super) fn has_edits(&self) -> bool {
        !self.tick.is_empty()
            || !self.untick.is_empty()
            || !self.add_file.is_empty()
            || !self.tick_follow_up.is_empty()
            || self.follow_ups.is_some()
    }
}

pub(crate) fn run(arguments: &StoryArguments, context: &CommandContext) -> Result<u8, UserError> {
    let typed_file = review::story_file(&arguments.story, context)?;
    // The list is read by agents and by `review --story`, so a path out of the project never gets in.
    if let Some(outside_path) = arguments.add_file.iter().find(|added_path| is_outside(added_path)) {
        return Err(UserError::usage(format!("{outside_path} is not a path inside the project"))
            .with_step("use a path relative to the project root"));
    }
    if !arguments.has_edits() {
        return inspect::inspect_story(&typed_file, context);
    }
    // The file may belong to another project than the working directory.
    let project = context.project_of_path(&context.resolve_path(&typed_file));
    let story_path = subject::relative_to_root(project.root(), &context.resolve_path(&typed_file))?;
    let leftovers = match &arguments.follow_ups {
        Some(run_name) => Some(load_leftovers(&project, run_name, &story_path, context)?),
        None => None,
    };
    let bmad = BmadProject::read_project(&project);
    // All edits are made to one text under one lock: either all of them are written, or none.
    let write_result = write(&project, &story_path, |old_text| {
        let EditedStory { story_text: new_text, change_notes } =
            apply_edits(old_text, arguments, leftovers.as_ref(), bmad.layout.era)?;
        // An edit that changes nothing writes nothing, so a dry run returns the old text and keeps the notes.
        Ok((if arguments.dry_run { old_text.to_string() } else { new_text }, change_notes))
    });
    let mut change_notes = write_result.map_err(|write_error| explain_story_error(&story_path, write_error))?;
    // The ledger comes last: a failure there leaves the story in a good state, and the command can be repeated.
    if let Some(leftovers) = leftovers.as_ref().filter(|_| has_ledger(&bmad)) {
        change_notes.extend(update_ledger(&project, &bmad, &leftovers.deferred_items(&story_path), arguments.dry_run)?);
    }
    if context.wants_json {
        let schema = "tribunal.story/1";
        json_documents::print_document(&StoryEdit {
            schema,
            path: story_path,
            changes: change_notes,
            dry_run: arguments.dry_run,
        })?;
        return Ok(0);
    }
    let prefix = if arguments.dry_run { "dry run:" } else { "✓" };
    for change_note in &change_notes {
        writeln!(wrapped_stdout(), "{}", escape_line(&format!("{prefix} {change_note}")))?;
    }
    // The two reasons for no change are told apart, since only one of them may be a mistake.
    if change_notes.is_empty() && leftovers.as_ref().is_some_and(|leftovers| leftovers.findings.is_empty()) {
        writeln!(wrapped_stdout(), "that run left no open or deferred findings")?;
    } else if change_notes.is_empty() {
        writeln!(wrapped_stdout(), "{}", escape_line(&format!("{story_path} is already up to date")))?;
    }
    Ok(0)
}

fn is_outside(typed_path: &str) -> bool {
    typed_path.starts_with(['/', '~']) || typed_path.split('/').any(|path_part| path_part == "..")
}

/// What a run left open or deferred.
struct LeftoverFindings {
    run_id: RunId,
    findings: Vec<Finding>,
}

fn load_leftovers(
    project: &Project,
    run_id: &str,
    story_path: &str,
    context: &CommandContext,
) -> Result<LeftoverFindings, UserError> {
    let (store, run_id) = context.find_requested_run(project, Some(run_id))?;
    let run_view = store.read_view(&run_id)?;
    let subject = run_view.review_order().map(|order| &order.subject);
    let is_about_story = subject.is_some_and(|subject| match subject.code_change() {
        Some(change) => change.story.as_deref() == Some(story_path),
        None => subject.file_paths().contains(&story_path),
    });
    // This is only a warning: findings about another file may still be this story's work.
    if !is_about_story {
        let subject_title = subject.map(Subject::title).unwrap_or_default();
        writeln!(
            wrapped_stderr(),
            "warning: {}",
            escape_line(&format!("run {run_id} reviewed {subject_title}, not {story_path}"))
        )?;
    }
    let is_left = |finding: &Finding| !matches!(finding.status, FindingStatus::Fixed | FindingStatus::Dismissed { .. });
    Ok(LeftoverFindings {
        run_id,
        findings: run_view.all_findings().filter(|finding| is_left(finding)).cloned().collect(),
    })
}

/// A story's new text, with notes of what is different in it.
struct EditedStory {
    story_text: String,
    change_notes: Vec<String>,
}

fn apply_edits(
    story_text: &str,
    arguments: &StoryArguments,
    leftovers: Option<&LeftoverFindings>,
    era: Option<Era>,
) -> Result<EditedStory, StoryEditRefusal> {
    let (mut story_text, mut change_notes) = (story_text.to_string(), Vec::new());
    // Edits that change nothing get no note, so repeating the command reports nothing new.
    let mut apply_step = |new_text: String, story_text: &mut String, note: String| {
        if new_text != *story_text {
            change_notes.push(note);
            *story_text = new_text;
        }
    };
    let ticks = arguments.tick.iter().map(|task_id| (task_id, true));
    for (task_id, is_done) in ticks.chain(arguments.untick.iter().map(|task_id| (task_id, false))) {
        let new_text = edit::tick_task(&story_text, task_id, is_done)?;
        let note = format!("task {task_id} {}", if is_done { "ticked" } else { "unticked" });
        apply_step(new_text, &mut story_text, note);
    }
    // Lines are given as they were displayed, which works because ticking moves no line.
    for line_number in &arguments.tick_follow_up {
        let new_text = edit::tick_follow_up(&story_text, *line_number, true)?;
        apply_step(new_text, &mut story_text, format!("follow-up on line {line_number} ticked"));
    }
    for file_path in &arguments.add_file {
        let new_text = edit::add_files(&story_text, &[file_path])?;
        apply_step(new_text, &mut story_text, format!("{file_path} added to the file list"));
    }
    if let Some(leftovers) = leftovers {
        let dialect = edit::choose_dialect(&story_text, era);
        // Findings are added one by one: each gets a note of its own, and those that are there already get none.
        for finding in &leftovers.findings {
            let new_text = edit::add_follow_ups(&story_text, dialect, &[build_follow_up(finding, dialect)])?;
            apply_step(
                new_text,
                &mut story_text,
                format!("{} added as a follow-up: {}", finding.id, sanitize_to_line(&finding.description)),
            );
        }
    }
    Ok(EditedStory { story_text, change_notes })
}

fn build_follow_up(finding: &Finding, dialect: ReviewDialect) -> NewFollowUp {
    let is_deferred = matches!(finding.status, FindingStatus::Deferred { .. });
    let kind = match (dialect, &finding.status) {
        // The older dialect knows only severities; the newer one says who has to act.
        (ReviewDialect::AiReview, _) => FollowUpKind::Severity(finding.severity),
        (ReviewDialect::Findings, FindingStatus::Blocked { .. }) => FollowUpKind::Decision,
        (ReviewDialect::Findings, FindingStatus::Deferred { .. }) => FollowUpKind::Defer,
        (ReviewDialect::Findings, _) => FollowUpKind::Patch,
    };
    let place = finding.place.as_ref().map(|place| format!("{}:{}", place.file, place.line));
    // In the newer dialect, deferred findings are ticked, because they are no open task of this story.
    let is_done = is_deferred && dialect == ReviewDialect::Findings;
    NewFollowUp { kind, text: sanitize_to_line(&finding.description), place, done: is_done }
}

/// Returns whether the project's BMAD has a ledger, which exists from 6.2 on.
fn has_ledger(bmad: &BmadProject) -> bool {
    bmad.layout.era.is_some_and(|era| era >= Era::C2)
}

impl LeftoverFindings {
    /// Returns the deferred findings as items of the ledger.
    fn deferred_items(&self, story_path: &str) -> Vec<NewDeferredItem> {
        let run_id = &self.run_id;
        let deferred_findings =
            self.findings.iter().filter(|finding| matches!(finding.status, FindingStatus::Deferred { .. }));
        let to_item = |finding: &Finding| NewDeferredItem {
            source: story_path.to_string(),
            summary: sanitize_to_line(&finding.description),
            evidence: match &finding.place {
                Some(place) => {
                    format!("{}:{}, finding {} of run {run_id}", place.file, place.line, finding.id)
                }
                None => format!("finding {} of run {run_id}", finding.id),
            },
            severity: finding.severity.to_string(),
            place: finding.place.as_ref().map(|place| format!("{}:{}", place.file, place.line)).unwrap_or_default(),
        };
        deferred_findings.map(to_item).collect()
    }
}

/// Adds deferred findings to the ledger.
fn update_ledger(
    project: &Project,
    bmad: &BmadProject,
    new_items: &[NewDeferredItem],
    dry_run: bool,
) -> Result<Option<String>, UserError> {
    let ledger_path = format!("{}/{}", bmad.config.folders.implementation, deferred_work::LEDGER_FILE);
    // Without a configured directory the path would start at the root of the file system.
    let ledger_path = ledger_path.trim_start_matches('/');
    let write_result = edit_or_create_file(project, ledger_path, |ledger_text| {
        let new_text = deferred_work::add_items(ledger_text, new_items);
        // The ledger skips what it has already, so the number of items says what was really added.
        let added_count =
            deferred_work::read_ledger(&new_text).items.len() - deferred_work::read_ledger(ledger_text).items.len();
        Ok::<_, StoryEditRefusal>((if dry_run { ledger_text.to_string() } else { new_text }, added_count))
    });
    let added_count = write_result.map_err(|write_error| explain_story_error(ledger_path, write_error))?;
    let describe_added = || {
        format!(
            "{} added to {ledger_path}",
            format_count(u32::try_from(added_count).unwrap_or(u32::MAX), "deferred finding")
        )
    };
    Ok((added_count > 0).then(describe_added))
}

fn explain_story_error(story_path: &str, write_error: EditFileError<StoryEditRefusal>) -> UserError {
    match write_error {
        EditFileError::Refused { why: refusal, .. } => {
            UserError::new(EXIT_NEGATIVE, format!("{story_path} was not changed: {}", refusal.reason))
                .with_step(refusal.advice)
        }
        write_failure => explain_write_error(&write_failure),
    }
}
