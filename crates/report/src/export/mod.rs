//! Exports findings: a Markdown page, a comment for a pull request, SARIF for code scanners.
//!
//! The input is one run as its journal records it, with the selected findings. Text that agents wrote appears in all
//! three formats as plain text and has no other effect; [`markdown_escape`] ensures that for Markdown. The binary selects the
//! findings and writes the result.

mod comment;
mod inert;
mod markdown;
mod sarif;

use tribunal_core::finding::{Finding, Severity, Status};

use crate::{
    clean,
    rulings::Rulings,
    tables::{self, Standing},
    words,
};

/// The run and those of its findings that are exported.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    pub standing: Standing<'a>,
    pub rulings: &'a Rulings,
    /// The selected findings, sorted by id.
    pub findings: Vec<&'a Finding>,
}

impl Export<'_> {
    /// Renders a page to be read.
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// Renders a short comment for a pull request.
    pub fn comment(&self) -> String {
        comment::comment(self)
    }

    /// Renders a SARIF 2.1.0 log that names this version of the tool.
    pub fn sarif(&self, version: &str) -> String {
        sarif::log(self, version)
    }

    /// The id of the run; empty if the journal has not started yet.
    fn run(&self) -> &str {
        self.standing.view.run.as_ref().map_or("", |run| run.as_str())
    }

    fn subject(&self) -> String {
        self.standing.view.settings.as_ref().map(|settings| settings.subject.title()).unwrap_or_default()
    }

    /// The reason for the state of the run, such as `the goal is met`.
    fn why(&self) -> String {
        let says = |summary| format!("{}{}", summary_says(summary), tables::clean_detail(summary));
        self.standing.view.summary().map(says).unwrap_or_default()
    }

    /// Describes what the run has spent: `2 rounds · 0.31 in cost, 31,000 tokens · 0:14`.
    fn spent(&self) -> String {
        let view = self.standing.view;
        match view.summary() {
            Some(summary) => words::spent(summary),
            None => {
                // There is no summary before the run ends, and the cost is known only then.
                let rounds = words::count(view.rounds, "round");
                format!("{rounds} held so far · {} tokens", words::thousands(view.spent.tokens))
            }
        }
    }

    /// Describes the selection, `4 of the run's 11 findings`, if it is not all of them.
    fn part(&self) -> Option<String> {
        let all = self.standing.view.findings.len();
        let shown = self.findings.len();
        (shown < all).then(|| format!("{shown} of the run's {}", words::count(all as u32, "finding")))
    }

    /// The selected findings of one group, the most severe first.
    fn of(&self, group: Group) -> impl Iterator<Item = &Finding> {
        let mut found: Vec<&Finding> =
            self.findings.iter().copied().filter(|finding| Group::of(&finding.status) == group).collect();
        found.sort_by_key(|finding| (finding.severity, finding.id));
        found.into_iter()
    }
}

fn summary_says(summary: &tribunal_core::event::Summary) -> &'static str {
    summary.reason.row().says
}

/// Statuses of findings, grouped and sorted by how much they matter to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Open,
    Blocked,
    Fixed,
    Deferred,
    Dismissed,
}

impl Group {
    const ALL: [Group; 5] = [Group::Open, Group::Blocked, Group::Fixed, Group::Deferred, Group::Dismissed];

    fn of(status: &Status) -> Group {
        match status {
            // While a fixer works on a finding, it still counts as open.
            Status::Open | Status::Assigned => Group::Open,
            Status::Blocked { .. } => Group::Blocked,
            Status::Fixed => Group::Fixed,
            Status::Deferred { .. } => Group::Deferred,
            Status::Dismissed { .. } => Group::Dismissed,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Group::Open => "Open",
            Group::Blocked => "Blocked",
            Group::Fixed => "Fixed",
            Group::Deferred => "Deferred",
            Group::Dismissed => "Dismissed",
        }
    }
}

/// The place of a finding: `docs/prd.md:12`, `docs/prd.md:12-14`; empty if it is not known.
fn place(finding: &Finding) -> String {
    let Some(place) = &finding.place else { return String::new() };
    let end = if place.end_line > place.line { format!("-{}", place.end_line) } else { String::new() };
    clean(&format!("{place}{end}"))
}

/// Counts the findings of each severity.
fn by_severity<'a>(findings: impl Iterator<Item = &'a Finding>) -> [usize; 4] {
    let mut counts = [0; 4];
    for finding in findings {
        // `Severity::ALL` has the order of the table's rows.
        for (count, severity) in counts.iter_mut().zip(Severity::ALL) {
            *count += usize::from(finding.severity == severity);
        }
    }
    counts
}
