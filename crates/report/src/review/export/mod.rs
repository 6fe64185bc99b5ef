//! Exports findings: a Markdown page, a comment for a pull request, SARIF for code scanners, JUnit XML and workflow commands
//! for CI.
//!
//! The input is one run as its journal records it, with the selected findings. Text that agents wrote appears in every
//! format as plain text and has no other effect; [`crate::markdown_escape`] ensures that for Markdown. The binary selects the
//! findings and writes the result.

mod junit;
mod markdown;
mod pr_comment;
mod sarif;
mod workflow_commands;

use tribunal_workflows::findings::{
    finding::{Finding, FindingStatus, Severity},
    subject::Subject,
};

use crate::{
    clean_line,
    phrases::{abbreviate_count, describe_ending, describe_spending, format_count},
    review::rulings::RulingIndex,
    run_standing::RunStanding,
};

/// The run and those of its findings that are exported.
#[derive(Clone, Debug)]
pub struct FindingsExport<'a> {
    pub run_standing: RunStanding<'a>,
    pub rulings: &'a RulingIndex,
    /// The selected findings, sorted by id.
    pub findings: Vec<&'a Finding>,
}

impl FindingsExport<'_> {
    /// Renders a page to be read.
    pub fn to_markdown(&self) -> String {
        markdown::render_page(self)
    }

    /// Renders a short comment for a pull request.
    pub fn to_comment(&self) -> String {
        pr_comment::render_comment(self)
    }

    /// Renders a SARIF 2.1.0 log that names this version of the tool.
    pub fn to_sarif(&self, tool_version: &str) -> String {
        sarif::render_log(self, tool_version)
    }

    /// Renders JUnit XML.
    pub fn to_junit(&self) -> String {
        junit::render_report(self)
    }

    /// Renders GitHub workflow commands, one per finding.
    pub fn to_workflow_commands(&self) -> String {
        workflow_commands::render_commands(self)
    }

    /// The file and the line that a finding is attached to in CI: its place, else the first line of the file under review.
    /// `None` for a change without a place, and if the path leads out of the project.
    fn annotated_place(&self, finding: &Finding) -> Option<(String, u32)> {
        let reviewed_file = || self.subject().and_then(Subject::file_path);
        let file_path = finding.place.as_ref().map(|place| place.file.as_str()).or_else(reviewed_file)?;
        let is_inside = !file_path.is_empty() && file_path.split('/').all(|name| !name.is_empty() && name != "..");
        // Lines are counted from 1.
        is_inside.then(|| (clean_line(file_path), finding.place.as_ref().map_or(1, |place| place.line.max(1))))
    }

    /// The id of the run; empty if the journal has not started yet.
    fn run_id(&self) -> &str {
        self.run_standing.run_view.run_id.as_ref().map_or("", |known_run| known_run.as_str())
    }

    /// What was reviewed; `None` if the journal has not started yet.
    fn subject(&self) -> Option<&Subject> {
        self.run_standing.run_view.review_order().map(|order| &order.subject)
    }

    fn subject_title(&self) -> String {
        self.subject().map(Subject::title).unwrap_or_default()
    }

    /// The reason for the state of the run, such as `the cost budget is used up ($5.02 of $5.00)`.
    fn state_reason(&self) -> String {
        self.run_standing.run_view.run_summary().map(describe_ending).unwrap_or_default()
    }

    /// Describes what the run has spent: `2 rounds · 31k tokens · $0.31 · 0:14`.
    fn describe_spending(&self) -> String {
        let run_view = self.run_standing.run_view;
        let rounds_text = format_count(run_view.as_review().map_or(0, |review_view| review_view.rounds), "round");
        match run_view.run_summary() {
            Some(summary) => describe_spending(&rounds_text, summary),
            // A run that is under way has no summary yet; its view counts what was used so far.
            None => format!("{rounds_text} completed · {} tokens", abbreviate_count(run_view.usage.tokens)),
        }
    }

    /// Describes the selection, `4 of 11 findings`, if it is not all of them.
    fn describe_selection(&self) -> Option<String> {
        let total_findings = self.run_standing.run_view.all_findings().count();
        let shown_findings = self.findings.len();
        (shown_findings < total_findings)
            .then(|| format!("{shown_findings} of {}", format_count(total_findings as u32, "finding")))
    }

    /// The selected findings of one group, the most severe first.
    fn findings_in_group(&self, wanted_group: StatusGroup) -> impl Iterator<Item = &Finding> {
        let mut group_findings: Vec<&Finding> = self
            .findings
            .iter()
            .copied()
            .filter(|finding| StatusGroup::from_status(&finding.status) == wanted_group)
            .collect();
        group_findings.sort_by_key(|finding| (finding.severity, finding.id));
        group_findings.into_iter()
    }
}

/// Statuses of findings, grouped and sorted by how much they matter to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StatusGroup {
    Open,
    Blocked,
    Fixed,
    Deferred,
    Dismissed,
}

impl StatusGroup {
    const ALL: [StatusGroup; 5] =
        [StatusGroup::Open, StatusGroup::Blocked, StatusGroup::Fixed, StatusGroup::Deferred, StatusGroup::Dismissed];

    fn from_status(status: &FindingStatus) -> StatusGroup {
        match status {
            // While a fixer works on a finding, it still counts as open.
            FindingStatus::Open | FindingStatus::Assigned => StatusGroup::Open,
            FindingStatus::Blocked { .. } => StatusGroup::Blocked,
            FindingStatus::Fixed => StatusGroup::Fixed,
            FindingStatus::Deferred { .. } => StatusGroup::Deferred,
            FindingStatus::Dismissed { .. } => StatusGroup::Dismissed,
        }
    }

    fn title(self) -> &'static str {
        match self {
            StatusGroup::Open => "Open",
            StatusGroup::Blocked => "Blocked",
            StatusGroup::Fixed => "Fixed",
            StatusGroup::Deferred => "Deferred",
            StatusGroup::Dismissed => "Dismissed",
        }
    }
}

/// The place of a finding: `docs/prd.md:12`, `docs/prd.md:12-14`; empty if it is not known.
fn format_place(finding: &Finding) -> String {
    let Some(known_place) = &finding.place else { return String::new() };
    let end_suffix =
        if known_place.end_line > known_place.line { format!("-{}", known_place.end_line) } else { String::new() };
    clean_line(&format!("{known_place}{end_suffix}"))
}

/// Counts the findings of each severity.
fn count_by_severity<'a>(findings: impl Iterator<Item = &'a Finding>) -> [usize; 4] {
    let mut counts = [0; 4];
    for finding in findings {
        // `Severity::ALL` has the order of the table's rows.
        for (count, severity) in counts.iter_mut().zip(Severity::ALL) {
            *count += usize::from(finding.severity == severity);
        }
    }
    counts
}
