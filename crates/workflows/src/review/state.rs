//! Everything that a review knows between two stages: what a boundary records, and what follows from it alone.
//!
//! Nothing here requests an effect; the stages in the neighbouring modules do.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    findings::{
        counts::FindingCounts,
        finding::{Finding, FindingStatus},
        subject::{ChangedPath, Subject},
    },
    review::{
        confidence::Confidence, dismissals::UserDismissals, fix_history::FixHistory, level::ReviewLevel,
        metrics::ReviewMetrics, order::ReviewOrder, review_host::ReviewHost, review_keys::ReviewKeys,
        round_stats::RoundStats, topic::ReviewTopic,
    },
    runs::types::{UserDialog, find_topic},
    tasks::{background::TaskBackground, claims::FixClaim},
};
use tribunal_engine::{
    files::LandedFile,
    ids::{DecisionId, FindingId, Hash, Key},
    limits::RunUsage,
    reason::RunEnding,
    text::{format_count, truncate_chars},
};

/// Everything that a review knows between two stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewState {
    /// The number of finished rounds.
    pub round: u32,
    pub last_pass: PanelPass,
    /// The number of finished fix iterations in this round.
    pub iteration: u32,
    pub findings: Vec<Finding>,
    pub fixes: Vec<FixLogEntry>,
    #[serde(flatten)]
    pub dialog: UserDialog,
    pub spent: RunUsage,
    pub metrics: ReviewMetrics,
    /// The level of the panels; `None` before the first round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ReviewLevel>,
    /// The number of tracker versions written so far.
    pub tracker_rev: u32,
    /// The checks have run on the untouched project, and do not keep the review from starting.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub baseline_done: bool,
    /// The hash of the text that last passed all checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Hash>,
    /// The confidence after the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// The text for which the confidence was calculated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_text: Option<Hash>,
    /// The user accepted the remaining findings.
    pub accepted: bool,
    /// The user wants another round because the confidence is too low.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub held_for_confidence: bool,
    /// The user wants another round because nothing that the panel claimed was believed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub another_panel: bool,
    /// The statistics of each round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sheets: Vec<RoundStats>,
    /// How often the panel was found to be degraded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub degraded: u32,
    #[serde(default, skip_serializing_if = "FixHistory::is_empty")]
    pub fix_history: FixHistory,
    /// Patches that wait for the user's approval, or have it and wait to be landed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingPatch>,
    /// Files that repairs of a change have added; they are under review from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
    /// Findings that were not challenged because a limit was reached or no challenger could be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<FindingId>,
    #[serde(default, skip_serializing_if = "UserDismissals::is_empty")]
    pub dismissals: UserDismissals,
    /// The user no longer waits for the session: fixers repair the findings.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub session_over: bool,
    /// The ending that waits for an answer of the user.
    pub waiting: Option<RunEnding>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(counter: &u32) -> bool {
    *counter == 0
}

/// The last pass of a panel over the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PanelPass {
    /// It raised nothing new of medium or higher severity, and nothing has landed since.
    pub dry: bool,
    /// The hash of the text that was read.
    pub text: Option<Hash>,
    /// More than half of the seats answered, each with claims of which at most half were refuted, and every challenge was held.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sound: bool,
    /// The text was changed from outside since.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changed: bool,
    /// The number of seats that did not answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unheard: u32,
    /// The findings that kept it from being dry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<FindingId>,
}

impl ReviewState {
    /// Whether the panel has raised claims, and not one of them was believed.
    pub(super) fn is_panel_disbelieved(&self) -> bool {
        let raised_count: u32 = self.sheets.iter().map(|round_stats| round_stats.raised).sum();
        let unbelieved_count: u32 = self.sheets.iter().map(|round_stats| round_stats.unbelieved).sum();
        raised_count > 0 && unbelieved_count == raised_count
    }

    pub(super) fn describe_disbelief(&self) -> String {
        let raised_count: u32 = self.sheets.iter().map(|round_stats| round_stats.raised).sum();
        match raised_count {
            1 => String::from("the only claim of the panel was dismissed"),
            _ => format!("all {raised_count} claims of the panel were dismissed"),
        }
    }

    /// The statistics of the last round; zeros if none was held.
    pub(super) fn last_round_claims(&self) -> RoundStats {
        self.sheets.last().copied().unwrap_or_default()
    }

    /// Describes that no finding is open, and for which reason the text is not reviewed again.
    pub(super) fn describe_no_findings(&self, reason: &str) -> String {
        match self.last_round_claims().unbelieved {
            0 => format!("no open findings ({reason})"),
            unbelieved => format!("no open findings, {} dismissed ({reason})", format_count(unbelieved, "claim")),
        }
    }
}

impl PanelPass {
    /// Describes a pass that raised nothing new, after which these are the findings.
    pub(super) fn describe_dry(&self, finding_counts: &FindingCounts, last_claims: RoundStats) -> String {
        let believed_count = last_claims.raised - last_claims.unbelieved;
        let last_text = match (last_claims.raised, believed_count) {
            (0, _) => String::from("found nothing new"),
            (1, 0) => String::from("raised one claim, which was dismissed"),
            (claim_count, 0) => format!("raised {claim_count} claims, which were all dismissed"),
            _ => String::from("raised nothing that is left to fix"),
        };
        let mut description = match (finding_counts.fixed, finding_counts.deferred) {
            (0, 0) if last_claims.raised == 0 => String::from("the review found nothing to fix"),
            (0, 0) => format!("nothing to fix: the last review {last_text}"),
            (_, 0) => format!("all findings fixed, and the last review {last_text}"),
            // A deferred finding is neither open nor fixed.
            _ => format!("no open findings, and the last review {last_text}"),
        };
        // Missing reviewers do not spoil a dry pass, but the user should know about them.
        if self.unheard > 0 {
            description.push_str(&format!(" ({} did not answer)", format_count(self.unheard, "reviewer")));
        }
        description
    }

    /// Describes why a pass does not count as dry although the text is still the same.
    pub(super) fn describe_shortfall(&self) -> &'static str {
        if self.changed {
            "the file has been changed outside this run since then"
        } else {
            "too few reviewers answered, or too many claims were dismissed"
        }
    }
}

/// One line of the fix log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FixLogEntry {
    pub finding: FindingId,
    pub key: Key,
    pub note: String,
}

/// A patch that waits for the user's approval, or has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PendingPatch {
    pub decision: DecisionId,
    pub by: Key,
    pub patch: Hash,
    pub claims: Vec<FixClaim>,
    /// The user has approved it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub approved: bool,
}

impl ReviewState {
    pub fn find_finding_mut(&mut self, finding_id: FindingId) -> Option<&mut Finding> {
        self.findings.iter_mut().find(|finding| finding.id == finding_id)
    }

    pub fn find_finding(&self, finding_id: FindingId) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == finding_id)
    }

    /// Returns what was fixed since the last pass, one line each.
    pub(super) fn fixes_since_last_pass(&self) -> Vec<String> {
        let fixes = self.fixes.iter().filter(|fix_entry| fix_entry.key.round_number() == Some(self.round));
        fixes.map(|fix_entry| format!("{}: {}", fix_entry.finding, truncate_chars(&fix_entry.note, 300))).collect()
    }

    /// Returns what is under review: the subject, and the files that repairs have added to it.
    pub(super) fn reviewed_subject(&self, order: &ReviewOrder) -> Subject {
        let mut subject = order.subject.clone();
        // The settings are pinned, so added files are in the state and joined here.
        if let Subject::Change(change) = &mut subject {
            change.files.extend(self.made.iter().map(|path| ChangedPath { path: path.clone(), from: None }));
        }
        subject
    }

    /// Returns what every agent should know about the project.
    pub(super) fn task_background(&self, host: &ReviewHost<'_>) -> Box<TaskBackground> {
        // Agents must neither review nor edit trackers and metrics.
        let own_files = alloc::vec![format!("{}/", host.settings().reviews)];
        // Code has a language of its own.
        let document_language = host.order.document_language.clone().filter(|_| host.order.subject.is_document());
        Box::new(TaskBackground { own_files, document_language, ..TaskBackground::default() })
    }

    /// Counts distinct valid findings, open, blocked or fixed, for the limit on findings.
    pub(super) fn valid_count(&self) -> u32 {
        let finding_counts = FindingCounts::from_findings(&self.findings);
        // Dismissed and deferred findings cost no repair.
        finding_counts.open + finding_counts.fixed + finding_counts.blocked
    }

    /// Marks the last pass as dry if all findings that kept it from being dry are dismissed by now.
    pub(super) fn reconsider_last_pass(&mut self) {
        let is_dismissed = |finding_id: &FindingId| {
            self.find_finding(*finding_id)
                .is_some_and(|finding| matches!(finding.status, FindingStatus::Dismissed { .. }))
        };
        // A pass can only be reinterpreted for the text that it has read.
        let is_same_text = self.fix_history.text == self.last_pass.text && !self.last_pass.changed;
        if self.last_pass.sound
            && is_same_text
            && !self.last_pass.raised.is_empty()
            && self.last_pass.raised.iter().all(is_dismissed)
        {
            self.last_pass.dry = true;
        }
    }
}

impl ReviewState {
    /// Puts new files of a change under review from now on.
    pub(super) fn add_new_files(&mut self, subject: &Subject, landed: &[LandedFile]) {
        // A single file is always exactly that file.
        if subject.code_change().is_some() {
            let known_paths = subject.file_paths();
            let new_paths = landed.iter().map(|file| &file.path).filter(|path| !known_paths.contains(&path.as_str()));
            let new_paths: Vec<String> = new_paths.filter(|path| !self.made.contains(path)).cloned().collect();
            self.made.extend(new_paths);
        }
    }

    /// Counts the patches that wait for the user's answer.
    pub(super) fn count_patches_to_approve(&self) -> u32 {
        let is_waiting = |pending_patch: &&PendingPatch| {
            // If the user has settled all findings of a patch otherwise, the patch no longer needs an answer.
            let blocked_status = FindingStatus::Blocked { decision: pending_patch.decision.clone() };
            let is_blocked_on_it =
                |claim: &FixClaim| self.find_finding(claim.id).is_some_and(|finding| finding.status == blocked_status);
            !pending_patch.approved && pending_patch.claims.iter().any(is_blocked_on_it)
        };
        self.pending.iter().filter(is_waiting).count() as u32
    }
}

impl ReviewState {
    /// Whether the user was asked about edits of the tracker and has not answered.
    pub(super) fn has_unconfirmed_edits(&self) -> bool {
        let mut open_decisions = self.dialog.open_decisions();
        open_decisions
            .any(|decision| matches!(find_topic::<ReviewTopic>(&decision.about), Some(ReviewTopic::Tracker { .. })))
    }
}
