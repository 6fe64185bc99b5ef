//! Findings for others: a page in Markdown, a comment for a pull request, SARIF for code scanners.
//!
//! One run as the journal has it, and of its findings those that were asked for. What agents wrote stands in all three as
//! text and as nothing else: `inert` sees to that for Markdown. Which findings are wanted, and where the text goes, is
//! the binary's part.

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

/// What is given out.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    pub standing: Standing<'a>,
    pub rulings: &'a Rulings,
    /// Those that were asked for, in the order of their ids.
    pub findings: Vec<&'a Finding>,
}

impl Export<'_> {
    /// One page to be read.
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// Short, to be pasted into a pull request.
    pub fn comment(&self) -> String {
        comment::comment(self)
    }

    /// A SARIF 2.1.0 log, written by this version of the tool.
    pub fn sarif(&self, version: &str) -> String {
        sarif::log(self, version)
    }

    fn run(&self) -> &str {
        self.standing.view.run.as_ref().map_or("", |run| run.as_str())
    }

    fn subject(&self) -> String {
        self.standing.view.settings.as_ref().map(|settings| settings.subject.title()).unwrap_or_default()
    }

    /// Why the run stands where it stands: `the goal is met`.
    fn why(&self) -> String {
        let says = |summary| format!("{}{}", summary_says(summary), tables::clean_detail(summary));
        self.standing.view.summary().map(says).unwrap_or_default()
    }

    /// `2 rounds · 0.31 in cost, 31,000 tokens · 0:14`.
    fn spent(&self) -> String {
        let view = self.standing.view;
        match view.summary() {
            Some(summary) => words::spent(summary),
            None => {
                let rounds = words::count(view.rounds, "round");
                format!("{rounds} held so far · {} tokens", words::thousands(view.spent.tokens))
            }
        }
    }

    /// `4 of the run's 11 findings`, where some were not asked for.
    fn part(&self) -> Option<String> {
        let all = self.standing.view.findings.len();
        let shown = self.findings.len();
        (shown < all).then(|| format!("{shown} of the run's {}", words::count(all as u32, "finding")))
    }

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

/// What has become of findings, in the order in which people want to know.
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

/// `docs/prd.md:12`, `docs/prd.md:12-14`; empty where the place is not known.
fn place(finding: &Finding) -> String {
    let Some(place) = &finding.place else { return String::new() };
    let end = if place.end_line > place.line { format!("-{}", place.end_line) } else { String::new() };
    clean(&format!("{place}{end}"))
}

/// How many of `findings` have each severity.
fn by_severity<'a>(findings: impl Iterator<Item = &'a Finding>) -> [usize; 4] {
    let mut counts = [0; 4];
    for finding in findings {
        for (count, severity) in counts.iter_mut().zip(Severity::ALL) {
            *count += usize::from(finding.severity == severity);
        }
    }
    counts
}
