//! The report of a run, which answers whether its result can be merged: what became of each story, what speaks for it, what
//! deserves a look, and which commands look closer.
//!
//! A report is built from the views of a run and its child runs, and from the sizes of commits, which the caller reads from git.
//! What it says about a kind of run is the section that the reporter of this kind builds. [`text`] draws it for a terminal,
//! [`markdown`] as a document; serialized it is the JSON document.

mod markdown;
mod text;

use tribunal_engine::{
    ids::RunId,
    reason::{RunOutcome, RunReason},
};
use tribunal_workflows::runs::view::{MERGED_DETAIL, RunPhase, RunView};

pub use crate::report_parts::{
    document::{ReportSources, RunReport},
    verdict::ReportVerdict,
};
use crate::{
    kind_table, next_steps,
    report_parts::{
        document::{REPORT_SCHEMA, ReportHead, StoryReport, WorkPlace, list_questions, list_warnings},
        section::ReportSection,
        usage::ReportUsage,
    },
    run_standing::{RunStanding, RunState},
    run_text,
    step_list::{NextStep, merge_command},
    style::Screen,
};

/// Builds the report of a run.
pub fn build_report(run_standing: &RunStanding<'_>, sources: &ReportSources<'_>) -> RunReport {
    let run_view = run_standing.run_view;
    let section = kind_table::build_section(run_standing, sources);
    let stories = &section.stories;
    let mut waiting = Vec::new();
    // What is in the trash asks nothing.
    if !section.has_questions && !sources.is_discarded {
        waiting.extend(list_questions(run_view, "", sources.program_name));
    }
    waiting.extend(stories.iter().flat_map(|story| story.questions.clone()));
    let next_steps = list_next_steps(run_standing, stories, sources);
    let needs_user = !waiting.is_empty() || stories.iter().any(|story| story.verdict.needs_user());
    let is_merged_since = !needs_user && is_settled_by_merges(run_view, &section);
    RunReport {
        schema: REPORT_SCHEMA,
        head: ReportHead {
            run: run_view.run_id.clone().unwrap_or_else(|| RunId::new("")),
            kind: run_view.kind_name().to_string(),
            title: run_view.title(),
            state: match (is_merged_since, &run_view.phase) {
                // A sprint can still be resumed, so it is not over.
                (true, RunPhase::Finished(_)) => RunOutcome::Resolved.as_str().to_string(),
                _ => run_standing.state_name().to_string(),
            },
            discarded: sources.is_discarded,
            reason: match run_view.run_summary() {
                Some(_) if is_merged_since => MERGED_DETAIL.to_string(),
                summary => summary.map(run_text::describe_ending).unwrap_or_default(),
            },
            started: run_view.start_time.format_utc(),
            exit_code: if is_merged_since { 0 } else { find_exit_code(run_standing, needs_user) },
            usage: ReportUsage::from_standing(run_standing, sources),
        },
        result: section.result,
        totals: section.totals,
        stories: section.stories,
        left_out: section.left_out,
        retrospectives: section.retrospectives,
        waiting,
        warnings: list_warnings(run_view, sources),
        next: next_steps.iter().map(NextStep::to_line).collect(),
        next_steps,
    }
}

/// Whether a run waited for nothing but work on branches of their own, and the user has merged them all.
fn is_settled_by_merges(run_view: &RunView, section: &ReportSection) -> bool {
    run_view.run_summary().is_some_and(|summary| summary.outcome == Some(RunOutcome::Waiting))
        && section.stories.iter().any(|story| story.work.merged_since)
        && section.stories.iter().all(|story| story.verdict.is_done())
        && !section.lacks_wanted
}

/// Lists the commands that the user may want to type next.
fn list_next_steps(
    run_standing: &RunStanding<'_>,
    stories: &[StoryReport],
    sources: &ReportSources<'_>,
) -> Vec<NextStep> {
    let (run_view, program_name) = (run_standing.run_view, sources.program_name);
    if let (true, Some(run_id)) = (sources.is_discarded, &run_view.run_id) {
        // A child run is discarded and restored with the run that the user started.
        let root_id = run_view.parent.as_ref().map_or(run_id, |parent| &parent.root);
        return vec![NextStep::new(format!("{program_name} discard --restore {root_id}"), "take it out of the trash")];
    }
    let mut next_steps = next_steps::collect_standing_steps(run_standing, program_name);
    // This is the report.
    let report_command = format!("{program_name} report ");
    next_steps.retain(|step| !step.command.starts_with(&report_command));
    for story in stories {
        let Some(merge_command) = story.work.branch.as_deref().map(merge_command) else { continue };
        let is_offered = next_steps.iter().any(|step| step.command == merge_command);
        match story.work.place {
            // A branch that the user named is not checked out.
            Some(WorkPlace::OtherBranch) if !is_offered && story.verdict == ReportVerdict::Merged => {
                next_steps.push(NextStep::new(merge_command, "take the work"));
            }
            Some(WorkPlace::OtherBranch) | None => {}
            Some(WorkPlace::Checkout | WorkPlace::BranchGone) => {
                next_steps.retain(|step| step.command != merge_command);
            }
        }
    }
    if !stories.is_empty() && stories.iter().all(|story| story.questions.is_empty()) {
        // All that its stories asked is answered.
        let decisions_command = format!("{program_name} decisions");
        next_steps.retain(|step| step.command != decisions_command);
    }
    next_steps
}

impl RunReport {
    /// Renders the report for a terminal.
    pub fn to_text(&self, screen: &Screen) -> String {
        text::render_text(self, screen)
    }

    /// Renders the report as a document.
    pub fn to_markdown(&self) -> String {
        markdown::render_document(self)
    }
}

/// The exit code of the report: that of the run, unless the run has none of its own or something still needs the user.
fn find_exit_code(run_standing: &RunStanding<'_>, needs_user: bool) -> u8 {
    let waiting_code = RunReason::Blocked.exit_code();
    let own_code = run_standing.run_view.run_summary().map_or(0, |summary| summary.reason.exit_code());
    match run_standing.run_state() {
        RunState::Running => 0,
        RunState::Crashed => RunReason::Environment.exit_code(),
        RunState::Stopped => waiting_code,
        RunState::Ended(_) if own_code == 0 && needs_user => waiting_code,
        RunState::Ended(_) => own_code,
    }
}
