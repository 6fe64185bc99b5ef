//! `tribunal diff [RUN] [FINDING]`: shows what a run changed, or what repaired one finding.

use std::io::{self, Write, stderr, stdout};

use tribunal_engine::ids::{FindingId, RunId};
use tribunal_report::{Screen, TextStyle, clean_block, escape_line};
use tribunal_runner::{
    Project,
    git::heads::{self, ChangedLines},
    landing::{
        landings::{FileChangeKind, LandingRecord, LandingsDiff, RenderedFileDiff, RunLandings},
        undo::join_finding_ids,
    },
};
use tribunal_store::Store;
use tribunal_workflows::{development::workspace::PathChange, story::view::StoryView};

use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, ChangedFile, ChangesDocument, LandingRow},
        user_errors::UserError,
    },
};

#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {
    /// Run, or RUN.F3 (default: the last run)
    run: Option<String>,
    /// Show only the fix for this finding
    finding: Option<String>,
    /// Show only statistics: changed lines, and which change fixed what
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(arguments: &DiffArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let (run_name, mut finding_id) = arguments.run.as_deref().map_or((None, None), split_run_and_finding);
    // A finding in an argument of its own takes precedence over one that is part of `RUN.F3`.
    if let Some(finding_name) = &arguments.finding {
        let parsed_id = FindingId::parse(finding_name);
        finding_id = Some(
            parsed_id.ok_or_else(|| UserError::usage(format!("`{finding_name}` is not a finding ID such as F3")))?,
        );
    }
    let (store, run_id) = context.find_requested_work(&project, run_name)?;
    let run_view = store.read_view(&run_id)?;
    if let Some(story_view) = run_view.as_story() {
        return show_story(&project, &run_id, story_view, arguments, context);
    }
    let landings = RunLandings::read_landings(&project, &store, &run_id)?;
    let matching_landings = landings.landings_for(finding_id)?;
    let diff = landings.diff_landings(finding_id)?;
    if context.wants_json {
        let diff = diff.unwrap_or_default();
        // `path` is that of the subject, or of the only changed file; a change of several files has none.
        let only_path =
            if let [file_diff] = diff.file_diffs.as_slice() { Some(file_diff.relative_path.as_str()) } else { None };
        json_documents::print_document(&ChangesDocument {
            schema: "tribunal.diff/1",
            finding: finding_id,
            path: landings.subject_path().or(only_path).map(String::from),
            landings: matching_landings.into_iter().map(build_landing_row).collect(),
            lines_added: diff.added_lines(),
            lines_removed: diff.removed_lines(),
            diff: diff.patch_text(),
            files: diff.file_diffs.iter().map(build_file_row).collect(),
            run: run_id,
        })?;
        return Ok(0);
    }
    // No diff is not an error: the run may have landed nothing, or everything was undone.
    let Some(diff) = diff else {
        writeln!(stderr(), "note: {}", escape_line(&explain_empty_diff(&run_id, finding_id, &matching_landings)))?;
        return Ok(0);
    };
    let mut output = stdout().lock();
    if arguments.stat {
        write_stat(&mut output, &diff, &matching_landings)?;
    } else {
        write_diff(&mut output, &context.answer_screen, &diff.patch_text())?;
    }
    // A text between two landings can include edits of other programs, which cannot be told apart on the same lines.
    if diff.includes_other_edits {
        writeln!(
            stderr(),
            "note: some of these lines were also edited outside this run; the diff includes those edits"
        )?;
    }
    Ok(0)
}

/// Shows what a story changed: its commit, or what it has kept so far.
fn show_story(
    project: &Project,
    run_id: &RunId,
    story_view: &StoryView,
    arguments: &DiffArguments,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let end = story_view.summary.commit.as_ref().or(story_view.kept.as_ref());
    let (Some(base), Some(end)) = (&story_view.base, end) else {
        writeln!(stderr(), "note: {}", escape_line(&explain_empty_diff(run_id, None, &[])))?;
        return Ok(0);
    };
    let changed_lines = heads::count_changed_lines(project.root(), base.as_str(), end.as_str())?;
    let diff_text = heads::diff_commits(project.root(), base.as_str(), end.as_str())?;
    if context.wants_json {
        let changes = heads::list_changes(project.root(), base.as_str(), Some(end.as_str()))?;
        let kind_of = |path: &str| match changes.iter().find(|change| change.path == path).map(|change| change.change) {
            Some(PathChange::Added) => "made",
            Some(PathChange::Deleted) => "deleted",
            _ => "changed",
        };
        let build_row = |lines: &ChangedLines| ChangedFile {
            path: lines.path.clone(),
            what: kind_of(&lines.path),
            lines_added: lines.added,
            lines_removed: lines.removed,
            diff: String::new(),
            parked: None,
        };
        json_documents::print_document(&ChangesDocument {
            schema: "tribunal.diff/1",
            run: run_id.clone(),
            finding: None,
            path: None,
            landings: Vec::new(),
            lines_added: changed_lines.iter().map(|lines| lines.added).sum(),
            lines_removed: changed_lines.iter().map(|lines| lines.removed).sum(),
            diff: diff_text,
            files: changed_lines.iter().map(build_row).collect(),
        })?;
        return Ok(0);
    }
    let mut output = stdout().lock();
    if arguments.stat {
        for lines in &changed_lines {
            let added_lines = format_count(lines.added as usize, "line");
            writeln!(output, "{}: {added_lines} added, {} removed", escape_line(&lines.path), lines.removed)?;
        }
    } else {
        write_diff(&mut output, &context.answer_screen, &diff_text)?;
    }
    if story_view.summary.commit.is_none() {
        let commit = end.short_hex();
        writeln!(stderr(), "note: this has not landed; take it over with `git merge {commit}`")?;
    }
    Ok(0)
}

/// Writes one line per file, then one line per landed change.
fn write_stat(output: &mut dyn Write, diff: &LandingsDiff, landings: &[&LandingRecord]) -> io::Result<()> {
    for file_diff in &diff.file_diffs {
        let (file_path, change_count) =
            (escape_line(&file_diff.relative_path), format_count(file_diff.landing_count, "change"));
        let kind_suffix = match file_diff.file_change {
            FileChangeKind::Modified => "",
            FileChangeKind::Created => " (new)",
            FileChangeKind::Deleted => " (deleted)",
        };
        let added_lines = format_count(file_diff.added_lines as usize, "line");
        writeln!(
            output,
            "{file_path}{kind_suffix}: {added_lines} added, {} removed in {change_count}",
            file_diff.removed_lines
        )?;
    }
    for landing in landings {
        let undone_suffix = if landing.is_undone { " (undone)" } else { "" };
        // A landing whose claims were not borne out has repaired nothing.
        let finding_list =
            if landing.findings.is_empty() { "nothing".into() } else { join_finding_ids(&landing.findings) };
        writeln!(output, "  {} fixed {finding_list}{undone_suffix}", escape_line(landing.task_key().as_str()))?;
    }
    Ok(())
}

/// Says why there is nothing to show or to undo.
pub(super) fn explain_empty_diff(run_id: &RunId, finding_id: Option<FindingId>, landings: &[&LandingRecord]) -> String {
    match (finding_id, landings.is_empty()) {
        (None, true) => format!("run {run_id} has not changed anything"),
        (Some(finding_id), true) => format!("run {run_id} has no fix for {finding_id}"),
        (None, false) => format!("all changes of run {run_id} were undone"),
        (Some(finding_id), false) => format!("the fix for {finding_id} was undone"),
    }
}

/// Splits `RUN.F3` into run and finding; a bare `F3` is a finding without a run.
pub(super) fn split_run_and_finding(typed_name: &str) -> (Option<&str>, Option<FindingId>) {
    if let Some(finding_id) = FindingId::parse(typed_name) {
        return (None, Some(finding_id));
    }
    // Only the last part is tried as a finding; any other text is left to the lookup of runs.
    match typed_name.rsplit_once('.').map(|(run_name, finding_name)| (run_name, FindingId::parse(finding_name))) {
        Some((run_name, Some(finding_id))) => (Some(run_name), Some(finding_id)),
        _ => (Some(typed_name), None),
    }
}

/// Formats a count with its noun: `1 change`, `2 changes`.
pub(super) fn format_count(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

pub(super) fn build_landing_row(landing: &LandingRecord) -> LandingRow {
    LandingRow { by: landing.task_key().clone(), findings: landing.findings.clone(), undone: landing.is_undone }
}

pub(super) fn build_file_row(file_diff: &RenderedFileDiff) -> ChangedFile {
    ChangedFile {
        path: file_diff.relative_path.clone(),
        what: match file_diff.file_change {
            FileChangeKind::Modified => "changed",
            FileChangeKind::Created => "made",
            FileChangeKind::Deleted => "deleted",
        },
        lines_added: file_diff.added_lines,
        lines_removed: file_diff.removed_lines,
        diff: file_diff.patch_text.clone(),
        parked: None,
    }
}

/// Writes a diff byte for byte into a pipe, where `patch` may read it. On a terminal it is coloured, and control
/// characters are made harmless.
pub(super) fn write_diff(output: &mut dyn Write, screen: &Screen, diff_text: &str) -> io::Result<()> {
    if !screen.use_colour && screen.max_columns.is_none() {
        return output.write_all(diff_text.as_bytes());
    }
    let mut in_hunk = false;
    let mut diff_lines = diff_text.split('\n').filter(|diff_line| !diff_line.is_empty()).peekable();
    while let Some(diff_line) = diff_lines.next() {
        // A `--- ` line may also be a removed line of the hunk; only with `+++ ` behind it does it start the next
        // file.
        let is_header =
            diff_line.starts_with("--- ") && diff_lines.peek().is_some_and(|next_line| next_line.starts_with("+++ "));
        in_hunk &= !is_header && !diff_line.starts_with("diff --git ");
        in_hunk |= diff_line.starts_with("@@");
        let style = match diff_line.chars().next() {
            _ if !in_hunk => TextStyle::Bold,
            Some('@') => TextStyle::Dim,
            Some('+') => TextStyle::Success,
            Some('-') => TextStyle::Failure,
            _ => TextStyle::Plain,
        };
        writeln!(output, "{}", screen.paint(style, &clean_block(diff_line.trim_end_matches('\r'))))?;
    }
    Ok(())
}

/// Finds the run of a finding that was named without one: the only run that repaired such a finding and has not
/// undone it.
pub(super) fn find_repairing_run(
    store: &Store,
    project: &tribunal_runner::Project,
    finding_id: FindingId,
) -> Result<RunId, UserError> {
    let mut matching_runs = Vec::new();
    for run_id in store.list_runs()? {
        let landings = RunLandings::read_landings(project, store, &run_id)?;
        // Every run counts its findings from F1, so a bare id is often ambiguous.
        if landings.landed_changes.iter().any(|landing| !landing.is_undone && landing.findings.contains(&finding_id)) {
            matching_runs.push(run_id);
        }
    }
    match matching_runs.as_slice() {
        [run_id] => Ok(run_id.clone()),
        [] => Err(UserError::usage(format!("no run has fixed a finding {finding_id}"))
            .with_step("list all runs: `tribunal runs`")),
        [first_run, ..] => {
            let candidate_names: Vec<String> =
                matching_runs.iter().map(|run_id| format!("{run_id}.{finding_id}")).collect();
            Err(UserError::usage(format!("`{finding_id}` matches several findings: {}", candidate_names.join(", ")))
                .with_step(format!("name the run as well: `tribunal undo {first_run}.{finding_id}`")))
        }
    }
}
