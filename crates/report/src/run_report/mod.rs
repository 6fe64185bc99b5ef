//! The report of a run, which answers whether its result can be merged: what became of each story, what speaks for it, what
//! deserves a look, and which commands look closer.
//!
//! A report is built from the views of a run and its child runs, and from the sizes of commits, which the caller reads from git.
//! It judges by the rules in [`story_rules`] alone. [`text`] draws it for a terminal, [`markdown`] as a document; serialized it
//! is the JSON document.

mod markdown;
mod stories;
mod story_rules;
mod text;
mod usage;
mod verdict;

use tribunal_engine::{
    decision::DecisionChoice,
    ids::{CommitId, RunId},
    reason::{RunOutcome, RunReason},
};
use tribunal_json::{Serialize, schemars};
use tribunal_workflows::{
    development::{changes::ChangeSize, concerns::LandingConcern},
    findings::counts::FindingCounts,
    runs::view::{MERGED_DETAIL, RunPhase, RunView},
    sprint::selection::{LeftOut, LeftOutReason},
};

use crate::{
    kind_table, next_steps, phrases,
    run_standing::{RunStanding, RunState},
    run_text,
    step_list::NextStep,
    style::Screen,
};
pub use usage::ReportUsage;
pub use verdict::ReportVerdict;

/// The name and version of the JSON document.
pub const REPORT_SCHEMA: &str = "tribunal.report/1";

/// What a report is built from besides the view of its run.
#[expect(missing_debug_implementations, reason = "functions have nothing to show")]
#[derive(Clone, Copy)]
pub struct ReportSources<'a> {
    /// Reads the view of a child run.
    pub read_run: &'a dyn Fn(&RunId) -> Option<RunView>,
    /// Reads how much a commit changes.
    pub read_change_size: &'a dyn Fn(&CommitId) -> Option<ChangeSize>,
    /// Whether a commit is in the history of the user's checkout.
    pub is_in_history: &'a dyn Fn(&CommitId) -> bool,
    /// Whether the user's repository has a branch.
    pub has_branch: &'a dyn Fn(&str) -> bool,
    /// The branch that is checked out; `None` if none is.
    pub checkout: Option<&'a str>,
    /// The program as commands name it: `tribunal`, or `tribunal -C DIR`.
    pub program_name: &'a str,
    /// Whether the user has moved the run to the trash.
    pub is_discarded: bool,
}

/// The document of `tribunal report`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RunReport {
    pub schema: &'static str,
    #[serde(flatten)]
    pub head: ReportHead,
    /// The stories that were begun.
    pub stories: Vec<StoryReport>,
    /// What came of a run that is neither a sprint nor a story.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<OtherRunReport>,
    /// Open stories of a sprint that were not begun.
    pub left_out: Vec<LeftOutStory>,
    /// What the retrospectives of a sprint say, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retrospectives: Vec<String>,
    /// The counts of a sprint; other runs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<SprintTotals>,
    /// Everything that waits for an answer of the user.
    pub waiting: Vec<ReportedQuestion>,
    /// Commands that the user may want to type next.
    pub next: Vec<String>,
    #[serde(skip)]
    next_steps: Vec<NextStep>,
}

/// What a report says about the run as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReportHead {
    pub run: RunId,
    /// The kind of run, for instance `sprint`.
    pub kind: String,
    /// What it works on.
    pub title: String,
    /// The state: running, crashed, stopped, or the outcome.
    pub state: String,
    /// Whether the user has discarded the run. It is in the trash then, waits for nothing and cannot be resumed.
    pub discarded: bool,
    /// Why it ended or waits; empty while it is running.
    pub reason: String,
    /// When it was started, in UTC: `2026-11-15 01:29:25`.
    pub started: String,
    /// The exit code of `tribunal report`.
    pub exit_code: u8,
    #[serde(flatten)]
    pub usage: ReportUsage,
}

/// What a report says about one story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StoryReport {
    /// The key as the board has it.
    pub story: String,
    pub title: String,
    /// Its run; null if it was never started.
    pub run: Option<RunId>,
    pub verdict: ReportVerdict,
    /// The verdict in one sentence, with what speaks for it.
    pub sentence: String,
    /// Why it ended or waits.
    pub detail: String,
    /// What deserves a look before the work is merged, by rule.
    pub look_at: Vec<String>,
    #[serde(flatten)]
    pub work: StoryWorkReport,
    pub findings: FindingTotals,
    /// What it asks the user.
    pub questions: Vec<ReportedQuestion>,
    #[serde(flatten)]
    pub usage: ReportUsage,
    /// Commands that look closer.
    pub look_closer: Vec<String>,
}

/// What a story has to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StoryWorkReport {
    /// The commit that landed; null if none has.
    pub commit: Option<CommitId>,
    /// The later commit with what the user confirmed after the work had landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<CommitId>,
    /// The branch that has the commit.
    pub branch: Option<String>,
    /// Whether the user has merged the branch of its own on which the work was left.
    pub merged_since: bool,
    /// Where the commit is now; null if none has landed.
    pub place: Option<WorkPlace>,
    /// How much the commit changes; null if none has landed, or if it is gone.
    pub change: Option<ChangeSize>,
    /// The last commit that keeps work which has not landed.
    pub kept: Option<CommitId>,
    pub sessions: u32,
    /// Sessions that did not do what they should.
    pub refused: u32,
    /// The checks that ran last on the work.
    pub checks: Vec<ReportedCheck>,
    #[serde(flatten)]
    pub delicate: DelicateChanges,
    /// The child runs that reviewed the story.
    pub reviews: Vec<RunId>,
}

/// What the work changes that is not its alone to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DelicateChanges {
    /// Changed files that decide what checks, hooks and pipelines run.
    pub changed_controls: Vec<String>,
    /// What was questionable about the work, and the user has accepted.
    pub concerns: Vec<LandingConcern>,
}

/// Where work is that has landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkPlace {
    /// In the history of the user's checkout.
    Checkout,
    /// On a branch that is not checked out, and not in the checkout.
    OtherBranch,
    /// Not in the checkout, and its branch is gone.
    BranchGone,
}

impl StoryWorkReport {
    /// Describes how the checks ended: `2 checks passed`; `None` if none has run.
    fn describe_checks(&self) -> Option<String> {
        let failed_count = self.checks.iter().filter(|check| !check.passed).count();
        let checks_text = phrases::format_count(self.checks.len() as u32, "check");
        match (self.checks.len(), failed_count) {
            (0, _) => None,
            (_, 0) => Some(format!("{checks_text} passed")),
            _ => Some(format!("{failed_count} of {checks_text} failed")),
        }
    }
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReportedCheck {
    /// The command of the check.
    pub name: String,
    pub passed: bool,
    /// The result in words: `failed with exit code 2`.
    pub result: String,
}

/// Findings by what became of them. Those that are open or left for later are counted in the last review only: earlier ones
/// reviewed another state of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FindingTotals {
    pub fixed: u32,
    /// Put off, or written under the follow-ups of the story.
    pub deferred: u32,
    /// Refuted by other agents, or dismissed by the user.
    pub dismissed: u32,
    pub open: u32,
    /// Findings that were written under the follow-ups of the story.
    pub follow_ups: u32,
}

impl FindingTotals {
    fn from_counts(counts: &FindingCounts) -> FindingTotals {
        FindingTotals {
            fixed: counts.fixed,
            deferred: counts.deferred,
            dismissed: counts.dismissed,
            open: counts.open + counts.blocked,
            follow_ups: 0,
        }
    }

    /// Describes the findings: `2 findings fixed, 1 left for later`; empty if there are none.
    fn describe(self) -> String {
        let cell_text = self.describe_cell();
        // The noun is said once, behind the first count.
        match cell_text.split_once(' ') {
            Some((count, rest)) => format!("{count} {} {rest}", if count == "1" { "finding" } else { "findings" }),
            None => cell_text,
        }
    }

    /// Describes the findings where it is clear that they are findings: `2 fixed, 1 left for later`.
    fn describe_cell(self) -> String {
        let word_counts = [
            (self.fixed, "fixed"),
            (self.deferred, "left for later"),
            (self.dismissed, "dismissed"),
            (self.open, "still open"),
        ];
        let shown_counts = word_counts.into_iter().filter(|(count, _)| *count > 0);
        shown_counts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }
}

/// A question that waits for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReportedQuestion {
    /// The question as it is typed: `RUN.D1`.
    pub id: String,
    /// The story that it is about; empty if it is about the run.
    pub story: String,
    pub question: String,
    pub choices: Vec<DecisionChoice>,
    /// The command that answers it; `ANSWER` stands for the key of a choice.
    pub command: String,
}

/// An open story that was not begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LeftOutStory {
    pub story: String,
    /// Why it was not begun, as a sentence that names the story.
    pub reason: String,
}

/// The stories of a sprint, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SprintTotals {
    pub done: u32,
    pub waiting: u32,
    /// Stories that were begun and neither are done nor wait.
    pub other: u32,
    pub left_out: u32,
    /// What all commits change together.
    pub change: ChangeSize,
}

/// What came of a run that is neither a sprint nor a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct OtherRunReport {
    /// The result in one line.
    pub summary: String,
    /// The findings of a review; null for other runs.
    pub findings: Option<FindingTotals>,
    /// The iterations of a loop; null for other runs.
    pub iterations: Option<u32>,
    /// The last commit of a loop.
    pub commit: Option<CommitId>,
    /// The branch on which a loop landed.
    pub branch: Option<String>,
    /// What deserves a look, by rule.
    pub look_at: Vec<String>,
    /// Commands that look closer.
    pub look_closer: Vec<String>,
}

/// Builds the report of a run.
pub fn build_report(run_standing: &RunStanding<'_>, sources: &ReportSources<'_>) -> RunReport {
    let run_view = run_standing.run_view;
    let stories = stories::list_stories(run_standing, sources);
    let left_out = list_left_out(run_view, &stories);
    let mut waiting = Vec::new();
    // The questions of a story are with the story. What is in the trash asks nothing.
    if run_view.as_story().is_none() && !sources.is_discarded {
        waiting.extend(list_questions(run_view, "", sources.program_name));
    }
    waiting.extend(stories.iter().flat_map(|story| story.questions.clone()));
    let next_steps = list_next_steps(run_standing, &stories, sources);
    let needs_user = !waiting.is_empty() || stories.iter().any(|story| story.verdict.needs_user());
    let is_merged_since = !needs_user && is_settled_by_merges(run_view, &stories);
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
        result: build_other_result(run_view, sources),
        totals: run_view.as_sprint().map(|_| count_stories(&stories, &left_out)),
        stories,
        left_out,
        retrospectives: run_view.as_sprint().map(|view| view.summary.retrospectives.clone()).unwrap_or_default(),
        waiting,
        next: next_steps.iter().map(NextStep::to_line).collect(),
        next_steps,
    }
}

/// Whether a run waited for nothing but work on branches of their own, and the user has merged them all.
fn is_settled_by_merges(run_view: &RunView, stories: &[StoryReport]) -> bool {
    // What the user left out is not missing.
    let is_wanted = |left_out: &LeftOut| matches!(left_out.reason, LeftOutReason::Skipped | LeftOutReason::MaxStories);
    run_view.run_summary().is_some_and(|summary| summary.outcome == Some(RunOutcome::Waiting))
        && stories.iter().any(|story| story.work.merged_since)
        && stories.iter().all(|story| story.verdict.is_done())
        && run_view.as_sprint().is_none_or(|sprint_view| sprint_view.left_out.iter().all(is_wanted))
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
        let Some(merge_command) = story.work.branch.as_deref().map(next_steps::merge_command) else { continue };
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
    if run_view.as_sprint().is_some() && stories.iter().all(|story| story.questions.is_empty()) {
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

/// Lists the questions of a run that wait for the user. A run that has ended asks nothing more.
fn list_questions(run_view: &RunView, story: &str, program_name: &str) -> Vec<ReportedQuestion> {
    let (Some(run_id), false) = (&run_view.run_id, matches!(run_view.phase, RunPhase::Finished(_))) else {
        return Vec::new();
    };
    let open_decisions = run_view.open_decisions();
    open_decisions
        .map(|decision| ReportedQuestion {
            id: format!("{run_id}.{}", decision.id),
            story: story.to_string(),
            question: decision.question.clone(),
            choices: decision.choices.clone(),
            command: format!("{program_name} decisions {run_id}.{} ANSWER", decision.id),
        })
        .collect()
}

/// Lists the stories that were said to be left out and were not begun since.
fn list_left_out(run_view: &RunView, stories: &[StoryReport]) -> Vec<LeftOutStory> {
    let left_out = run_view.as_sprint().map(|sprint_view| sprint_view.left_out.as_slice()).unwrap_or_default();
    let is_begun = |story_key: &str| stories.iter().any(|story| story.story == story_key);
    left_out
        .iter()
        .filter(|left_out| !is_begun(&left_out.story))
        .map(|left_out| LeftOutStory { story: left_out.story.clone(), reason: left_out.describe() })
        .collect()
}

fn count_stories(stories: &[StoryReport], left_out: &[LeftOutStory]) -> SprintTotals {
    let mut totals = SprintTotals { left_out: left_out.len() as u32, ..SprintTotals::default() };
    for story in stories {
        match story.verdict {
            verdict if verdict.is_done() => totals.done += 1,
            ReportVerdict::Waiting | ReportVerdict::OnOwnBranch => totals.waiting += 1,
            _ => totals.other += 1,
        }
        if let Some(change) = story.work.change {
            totals.change.files = totals.change.files.saturating_add(change.files);
            totals.change.added = totals.change.added.saturating_add(change.added);
            totals.change.removed = totals.change.removed.saturating_add(change.removed);
        }
    }
    totals
}

/// Builds what is said about a run that is neither a sprint nor a story.
fn build_other_result(run_view: &RunView, sources: &ReportSources<'_>) -> Option<OtherRunReport> {
    if run_view.as_story().is_some() || run_view.as_sprint().is_some() {
        return None;
    }
    let (run_id, result) = (run_view.run_id.as_ref()?, kind_table::find_result(run_view)?);
    let loop_summary = run_view.as_loop().map(|loop_view| &loop_view.summary);
    let commit = loop_summary.and_then(|summary| summary.tip.clone());
    let findings = run_view.as_review().map(|_| FindingTotals::from_counts(&run_view.finding_counts()));
    let mut look_closer: Vec<String> =
        commit.iter().map(|commit: &CommitId| format!("git show {}", commit.short_hex())).collect();
    let run_commands: &[&str] = if findings.is_some() { &["findings", "diff", "log"] } else { &["log"] };
    look_closer.extend(run_commands.iter().map(|command| format!("{} {command} {run_id}", sources.program_name)));
    let (effort_text, result_text) = (kind_table::describe_effort(&result), kind_table::describe_result(&result));
    Some(OtherRunReport {
        summary: phrases::join_parts([effort_text.as_str(), &result_text]),
        findings,
        iterations: loop_summary.map(|summary| summary.iterations),
        branch: loop_summary.and_then(|summary| summary.landed_on.clone()),
        look_at: loop_summary.map(|summary| story_rules::list_concerns(&summary.concerns)).unwrap_or_default(),
        commit,
        look_closer,
    })
}
