//! The document of a report: what it has, and how it is serialized.

use tribunal_engine::{
    decision::DecisionChoice,
    ids::{CommitId, RunId, TreeId},
};
use tribunal_json::{Serialize, schemars};
use tribunal_workflows::{
    development::{
        changes::ChangeSize,
        concerns::{LandingConcern, describe_concerns},
    },
    findings::counts::FindingCounts,
    runs::view::{RunPhase, RunView},
};

use super::{usage::ReportUsage, verdict::ReportVerdict};
use crate::{
    phrases::{self, format_count},
    step_list::NextStep,
};

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
    /// What the user was warned about while the run and its child runs worked.
    pub warnings: Vec<ReportedWarning>,
    /// Commands that the user may want to type next.
    pub next: Vec<String>,
    #[serde(skip)]
    pub(crate) next_steps: Vec<NextStep>,
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
    /// Says what the checks have passed on: ` on tree 1a2b3c4d5e, also in a fresh clone`; empty if nothing has landed.
    fn describe_checked(&self) -> String {
        let Some(ReportedCheck { tree: Some(tree), written_after, in_fresh_clone, .. }) = self.checks.first() else {
            return String::new();
        };
        let written_text = match written_after.len() as u32 {
            0 => String::new(),
            count => format!(" (but for {} that Tribunal wrote)", format_count(count, "file")),
        };
        let clone_text = if *in_fresh_clone { ", also in a fresh clone" } else { "" };
        format!(" on tree {}{written_text}{clone_text}", tree.short_hex())
    }

    /// Describes how the checks ended: `2 checks passed`; `None` if none has run.
    pub(crate) fn describe_checks(&self) -> Option<String> {
        let failed_count = self.checks.iter().filter(|check| !check.passed).count();
        let checks_text = phrases::format_count(self.checks.len() as u32, "check");
        match (self.checks.len(), failed_count) {
            (0, _) => None,
            (_, 0) => Some(format!("{checks_text} passed{}", self.describe_checked())),
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
    /// Whether it only warns.
    pub only_warns: bool,
    /// The tree of git that has landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// The files of it that Tribunal wrote after the checks had passed, such as the board.
    pub written_after: Vec<String>,
    /// Whether the checks have passed as in a fresh clone of the commit.
    pub in_fresh_clone: bool,
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
    pub(crate) fn from_counts(counts: &FindingCounts) -> FindingTotals {
        FindingTotals {
            fixed: counts.fixed,
            deferred: counts.deferred,
            dismissed: counts.dismissed,
            open: counts.open + counts.blocked,
            follow_ups: 0,
        }
    }

    /// Describes the findings: `2 findings fixed, 1 left for later`; empty if there are none.
    pub(crate) fn describe(self) -> String {
        let cell_text = self.describe_cell();
        // The noun is said once, behind the first count.
        match cell_text.split_once(' ') {
            Some((count, rest)) => format!("{count} {} {rest}", if count == "1" { "finding" } else { "findings" }),
            None => cell_text,
        }
    }

    /// Describes the findings where it is clear that they are findings: `2 fixed, 1 left for later`.
    pub(crate) fn describe_cell(self) -> String {
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

/// Something that the user was warned about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReportedWarning {
    /// The run that warned.
    pub run: RunId,
    pub text: String,
    /// How often it was said.
    pub times: u32,
    /// Whether the run is a child of the reported one.
    #[serde(skip)]
    pub(crate) is_childs: bool,
}

impl ReportedWarning {
    /// Describes it in one line: `story-1-2-sift-k3x9: a commit hook changed src/a.rs (2 times)`.
    pub(crate) fn describe(&self) -> String {
        let run_text = if self.is_childs { format!("{}: ", self.run) } else { String::new() };
        let times_text = if self.times > 1 { format!(" ({} times)", self.times) } else { String::new() };
        format!("{run_text}{}{times_text}", self.text)
    }
}

/// Lists what a run warned about, then what its child runs did.
pub(crate) fn list_warnings(run_view: &RunView, sources: &ReportSources<'_>) -> Vec<ReportedWarning> {
    let mut warnings = Vec::new();
    let mut pending = vec![(run_view.clone(), false)];
    while let Some((view, is_childs)) = pending.pop() {
        let run = view.run_id.clone().unwrap_or_else(|| RunId::new(""));
        warnings.extend(view.incidents.warnings.iter().map(|warning| ReportedWarning {
            run: run.clone(),
            text: warning.text.clone(),
            times: warning.times,
            is_childs,
        }));
        let child_views = view.children.values().filter_map(|child| (sources.read_run)(&child.run));
        let mut child_views: Vec<RunView> = child_views.collect();
        // The latest one is taken last.
        child_views.sort_by_key(|child| std::cmp::Reverse(child.start_time));
        pending.extend(child_views.into_iter().map(|child| (child, true)));
    }
    warnings
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

/// Lists the questions of a run that wait for the user. A run that has ended asks nothing more.
pub(crate) fn list_questions(run_view: &RunView, story: &str, program_name: &str) -> Vec<ReportedQuestion> {
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

/// What was questionable about work, as a remark about it.
pub(crate) fn list_concerns(concerns: &[LandingConcern]) -> Vec<String> {
    // What a test asserts no longer comes first: the user was not asked about it.
    let (notes, accepted): (Vec<LandingConcern>, Vec<LandingConcern>) =
        concerns.iter().cloned().partition(LandingConcern::is_note);
    let (fewer, others): (Vec<LandingConcern>, Vec<LandingConcern>) =
        notes.into_iter().partition(|note| matches!(note, LandingConcern::FewerAssertions { .. }));
    let mut remarks: Vec<String> =
        fewer.iter().chain(&others).map(|note| describe_concerns(std::slice::from_ref(note))).collect();
    if !accepted.is_empty() {
        remarks.push(format!("{} (you accepted that)", describe_concerns(&accepted)));
    }
    remarks
}

/// Describes how much was changed: `4 files, +120 -8`.
pub(crate) fn describe_change(change: ChangeSize) -> String {
    format!("{}, +{} -{}", format_count(change.files, "file"), change.added, change.removed)
}
