//! What a report says about a story, by rule: the verdict with what speaks for it, and what deserves a look.

use tribunal_workflows::story::order::{StoryGoal, StoryOrder, StoryReviewMode};

use crate::{
    phrases::{format_count, list_names},
    report_parts::{
        document::{FindingTotals, StoryWorkReport, WorkPlace, list_concerns},
        verdict::ReportVerdict,
    },
    taken_work::describe_gone_branch,
};

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoryEvidence<'a> {
    pub verdict: ReportVerdict,
    /// Why it ended or waits.
    pub detail: &'a str,
    pub work: &'a StoryWorkReport,
    /// The branch that is checked out; `None` if none is.
    pub checkout: Option<&'a str>,
    pub findings: FindingTotals,
    /// What was asked for; `None` if the story was never started.
    pub order: Option<&'a StoryOrder>,
    /// Whether checks are configured.
    pub has_checks: bool,
    /// Whether its run has ended for good.
    pub has_ended: bool,
}

/// How a story was reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewState {
    ByPanel,
    /// By BMAD's own review, which leaves no findings to count.
    ByBmad,
    /// The user wanted no review, or wanted to stop before it.
    NotWanted,
    /// A review is wanted and has not begun.
    NotYet,
}

impl StoryEvidence<'_> {
    /// Whether the work is committed on a branch of the user. A story that owes something may wait all the same.
    fn has_commit(&self) -> bool {
        self.verdict.has_landed() || self.work.commit.is_some()
    }

    /// Whether the work landed on another branch than the one that is checked out, and has come there since.
    fn is_taken_over(&self) -> bool {
        self.work.place == Some(WorkPlace::Checkout)
            && self.checkout.is_some_and(|checkout| self.work.branch.as_deref() != Some(checkout))
    }

    fn checkout_name(&self) -> &str {
        self.checkout.unwrap_or("your checkout")
    }

    fn review_state(&self) -> ReviewState {
        let Some(order) = self.order else { return ReviewState::NotYet };
        match order.review.mode {
            _ if !self.work.reviews.is_empty() => ReviewState::ByPanel,
            _ if order.goal == StoryGoal::Review => ReviewState::NotWanted,
            StoryReviewMode::Off => ReviewState::NotWanted,
            StoryReviewMode::Bmad if self.has_commit() => ReviewState::ByBmad,
            _ => ReviewState::NotYet,
        }
    }

    fn describe_checks(&self) -> String {
        match self.work.describe_checks() {
            Some(checks_text) => checks_text,
            None if self.has_checks => "no check has run".to_string(),
            None => "no checks".to_string(),
        }
    }

    fn describe_findings(&self) -> String {
        match (self.findings.describe(), self.review_state()) {
            (findings_text, _) if !findings_text.is_empty() => findings_text,
            (_, ReviewState::ByPanel) => "no findings".to_string(),
            (_, ReviewState::ByBmad) => "reviewed by BMAD's own review".to_string(),
            (_, ReviewState::NotWanted | ReviewState::NotYet) => "not reviewed".to_string(),
        }
    }
}

/// Describes the verdict in one sentence. Where work has landed, it says what speaks for it; otherwise, why it has not.
pub(super) fn describe_verdict(evidence: &StoryEvidence<'_>) -> String {
    let commit = evidence.work.commit.as_ref().map_or("", |commit| commit.short_hex());
    let branch = evidence.work.branch.as_deref().unwrap_or_default();
    let place_text = match evidence.verdict {
        ReportVerdict::Merged if evidence.work.merged_since => {
            format!("merged as {commit}; you took it from its own branch {branch}")
        }
        ReportVerdict::Merged if evidence.is_taken_over() => {
            format!("merged on {branch} as {commit}, and on {} since", evidence.checkout_name())
        }
        ReportVerdict::Merged => format!("merged on {branch} as {commit}"),
        ReportVerdict::OnOwnBranch if evidence.work.place == Some(WorkPlace::BranchGone) => {
            format!("left as {commit} on its own branch {branch}, which is gone")
        }
        ReportVerdict::OnOwnBranch => format!("waits for you as {commit} on its own branch {branch}"),
        ReportVerdict::Waiting => return with_detail("waits for you", evidence.detail),
        verdict => return with_detail(verdict.as_str(), evidence.detail),
    };
    let confirmation = evidence.work.confirmation.as_ref();
    let confirmation_text = confirmation.map(|commit| format!(", confirmed in {}", commit.short_hex()));
    let place_text = place_text + &confirmation_text.unwrap_or_default();
    [place_text, evidence.describe_checks(), evidence.describe_findings()].join("; ")
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.to_string() } else { format!("{text}: {detail}") }
}

/// Lists what deserves a look before the work is merged.
pub(super) fn list_remarks(evidence: &StoryEvidence<'_>) -> Vec<String> {
    let StoryEvidence { verdict, work, findings, .. } = *evidence;
    let mut remarks = list_concerns(&work.delicate.concerns);
    if !work.delicate.changed_controls.is_empty() {
        let names_text = list_names(&work.delicate.changed_controls);
        remarks.push(format!("it changed what checks, hooks or later agents are told to run ({names_text})"));
    }
    if !evidence.has_commit() {
        if verdict.is_unfinished() && work.sessions > 0 {
            remarks.extend(list_unfinished_remarks(evidence));
        }
        // Everything else is known only of work that is finished.
        return remarks;
    }
    remarks.extend(describe_place(evidence));
    if !evidence.has_checks {
        remarks.push("no checks are configured".to_string());
    } else if work.checks.is_empty() {
        remarks.push("no check has run on the work".to_string());
    }
    for check in work.checks.iter().filter(|check| !check.passed) {
        let why = if check.only_warns { "which only warns" } else { "when it ran last" };
        remarks.push(format!("`{}` {}, {why}", check.name, check.result));
    }
    remarks.extend(list_effort_remarks(work, findings));
    if evidence.review_state() == ReviewState::NotWanted {
        remarks.push("it was not reviewed".to_string());
    }
    // The sentence about a story that waits says why.
    if verdict.has_landed() && !evidence.has_ended && !evidence.detail.is_empty() {
        remarks.push(format!("its run has not ended: {}", evidence.detail));
    }
    remarks
}

/// Says how to take work that is not in the checkout; `None` if it is there.
fn describe_place(evidence: &StoryEvidence<'_>) -> Option<String> {
    let StoryEvidence { verdict, work, .. } = *evidence;
    let (branch, commit) = (work.branch.as_deref()?, work.commit.as_ref()?);
    match (work.place?, verdict) {
        (WorkPlace::Checkout, _) | (_, ReportVerdict::DoneOutside) => None,
        (WorkPlace::BranchGone, _) => Some(describe_gone_branch(branch, commit.short_hex())),
        (WorkPlace::OtherBranch, ReportVerdict::OnOwnBranch) => {
            let target = evidence.order.map_or("", |order| order.branch.name.as_str());
            Some(format!("it is not on {target} yet: take it with `git merge {branch}` when nothing is in the way"))
        }
        (WorkPlace::OtherBranch, _) => {
            Some(format!("it is not on {} yet: take it with `git merge {branch}`", evidence.checkout_name()))
        }
    }
}

/// Lists what deserves a look in work that waits or failed.
fn list_unfinished_remarks(evidence: &StoryEvidence<'_>) -> Vec<String> {
    let work = evidence.work;
    let mut remarks = Vec::new();
    if !evidence.has_checks {
        remarks.push("no checks are configured".to_string());
    }
    let failed_checks = work.checks.iter().filter(|check| !check.passed);
    remarks.extend(failed_checks.map(|check| format!("`{}` {}", check.name, check.result)));
    remarks.extend(list_effort_remarks(work, evidence.findings));
    remarks
}

/// Says how many sessions were not completed and how many findings are open, if there are any.
fn list_effort_remarks(work: &StoryWorkReport, findings: FindingTotals) -> Vec<String> {
    let mut remarks = Vec::new();
    if work.refused > 0 {
        let sessions_text = format_count(work.sessions, "session");
        remarks.push(format!("{} of {sessions_text} not completed; the log says why", work.refused));
    }
    if findings.open > 0 {
        remarks.push(format!("{} still open", format_count(findings.open, "finding")));
    }
    remarks
}
