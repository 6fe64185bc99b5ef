//! What a review was asked to do. It is pinned in `run_started` and holds whenever the run is resumed.

use alloc::{format, string::String, vec, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    findings::{agent_role::AgentRole, counts::FindingCounts, seat_plan::Persona, subject::Subject},
    review::{
        event::ReviewEvent,
        level::{ReviewGoal, ReviewLevel},
        level_rules::LevelRules,
        topic::ReviewTopic,
    },
    runs::run_kind::RunKind,
    tasks::client::JobKind,
};
use tribunal_engine::{
    files::FileSizeLimit,
    limits::{RemainingLimits, RunUsage},
    reason::{RunEnding, RunReason},
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewOrder {
    pub subject: Subject,
    /// The user continued without a review: the run only records that.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub skipped: bool,
    /// The level that the user chose; `None` derives it by the rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ReviewLevel>,
    #[serde(default, skip_serializing_if = "LevelRules::is_default")]
    pub level_rules: LevelRules,
    /// The language in which the project writes its documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_language: Option<String>,
    pub goal: ReviewGoal,
    /// Whether findings are fixed; if false, the run only reviews.
    pub fix: bool,
    /// Whether the checks run once on the untouched project before the first agent is asked. Without fixing they do not.
    #[serde(default = "default_baseline")]
    pub baseline: bool,
    /// The confidence that a review needs to count as resolved; `None` if it is only displayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_confidence: Option<u32>,
    pub limits: ReviewLimits,
    pub panel: PanelSettings,
    pub fixers: FixerSettings,
}

const fn default_baseline() -> bool {
    true
}

impl ReviewOrder {
    /// Returns the defaults for a review of `subject`: they apply wherever no layer of the settings says otherwise.
    pub fn new(subject: Subject) -> ReviewOrder {
        ReviewOrder {
            subject,
            skipped: false,
            level: None,
            level_rules: LevelRules::default(),
            document_language: None,
            goal: ReviewGoal::default(),
            fix: true,
            baseline: default_baseline(),
            target_confidence: None,
            limits: ReviewLimits::default(),
            panel: PanelSettings::default(),
            fixers: FixerSettings::default(),
        }
    }

    /// How long a task in this role may take.
    pub fn timeout_ms(&self, role: AgentRole) -> u64 {
        match role {
            AgentRole::Fixer => self.fixers.timeout_ms,
            AgentRole::Party => self.panel.party_timeout_ms,
            AgentRole::Elicitation => self.panel.elicitation_timeout_ms.unwrap_or(self.panel.reviewer_timeout_ms),
            _ => self.panel.reviewer_timeout_ms,
        }
    }
}

impl RunKind for ReviewOrder {
    const NAME: &'static str = "review";
    const VERSION: u32 = 1;
    type Event = ReviewEvent;
    type Summary = ReviewSummary;
    type Topic = ReviewTopic;

    fn title(&self) -> String {
        self.subject.title()
    }

    fn file_slug(&self) -> String {
        self.subject.file_slug()
    }

    fn exclusive_name(&self) -> Option<String> {
        // A file has one lock, whichever section of it is reviewed.
        Some(self.subject.file_path().map_or_else(|| self.subject.title(), String::from))
    }

    fn written_paths(&self) -> Vec<&str> {
        self.subject.file_paths()
    }

    fn needed_jobs(&self) -> Vec<JobKind> {
        if self.skipped {
            return Vec::new();
        }
        // A session that repairs its findings itself leaves nothing to fixers.
        if self.fix && !self.fixers.in_session { vec![JobKind::Review, JobKind::Fix] } else { vec![JobKind::Review] }
    }

    fn trusts_answer_files(&self) -> bool {
        // The session repairs the findings in the user's files, so it could answer for the user.
        !self.fixers.in_session
    }
}

/// What a review has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewSummary {
    pub rounds: u32,
    pub findings: FindingCounts,
}

/// The limits that only a review has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewLimits {
    pub rounds: u32,
    /// The most fix iterations in one round.
    pub fix_iterations: u32,
    /// The most distinct valid findings: open, blocked or fixed.
    pub findings: u32,
    /// Whether the run that the review is a part of asks the user when a limit is reached, so that the review itself does not.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub parent_asks: bool,
}

impl Default for ReviewLimits {
    fn default() -> Self {
        ReviewLimits { rounds: 3, fix_iterations: 3, findings: 50, parent_asks: false }
    }
}

/// How far a review has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewProgress {
    pub rounds: u32,
    /// Fix iterations in the last round.
    pub iterations: u32,
    pub findings: u32,
}

impl ReviewLimits {
    /// The most findings that may be raised, with what the user has granted.
    pub fn allowed_findings(&self, run_usage: &RunUsage) -> u32 {
        self.findings.saturating_mul(run_usage.granted_shares())
    }

    /// Checks the number of findings: so many need a look by the user before money is spent on fixing them.
    pub fn check_findings(&self, run_usage: &RunUsage, findings: u32) -> Option<RunEnding> {
        let allowed = self.allowed_findings(run_usage);
        (findings > allowed)
            .then(|| RunEnding::new(RunReason::Findings, format!("{findings} of at most {allowed} findings")))
    }

    /// Adds what is left of these limits.
    pub fn add_remaining(
        &self,
        remaining: RemainingLimits,
        run_usage: &RunUsage,
        progress: ReviewProgress,
    ) -> RemainingLimits {
        let granted = run_usage.granted_shares();
        remaining
            .with_count("rounds", self.rounds.saturating_mul(granted).saturating_sub(progress.rounds))
            // Iterations are counted anew after a grant, so grants do not multiply them.
            .with_count("fix_iterations", self.fix_iterations.saturating_sub(progress.iterations))
            .with_count("findings", self.findings.saturating_mul(granted).saturating_sub(progress.findings))
    }
}

/// What reviewers get, and how long they may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PanelSettings {
    /// The least number of findings that a reviewer should raise in round 1.
    pub required_issues: u32,
    pub reviewer_timeout_ms: u64,
    pub party_timeout_ms: u64,
    /// `None` uses the timeout of the other reviewers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "PlanSettings::is_default")]
    pub plans: PlanSettings,
}

impl Default for PanelSettings {
    fn default() -> Self {
        PanelSettings {
            required_issues: 3,
            // Agents read and think for minutes; a party also discusses, so it gets more time.
            reviewer_timeout_ms: 15 * 60_000,
            party_timeout_ms: 20 * 60_000,
            elicitation_timeout_ms: None,
            plans: PlanSettings::default(),
        }
    }
}

/// Who repairs findings, how many at a time, and when their changes land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FixerSettings {
    pub max_concurrent: u32,
    pub max_issues_per_agent: u32,
    pub timeout_ms: u64,
    /// The user approves each patch before it lands.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub approve_each: bool,
    /// How large a patch may make a file.
    #[serde(default, skip_serializing_if = "FileSizeLimit::is_default")]
    pub size_limit: FileSizeLimit,
    /// The user's open session repairs the findings directly in the user's files; no fixers are started.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_session: bool,
}

impl Default for FixerSettings {
    fn default() -> Self {
        FixerSettings {
            max_concurrent: 3,
            max_issues_per_agent: 5,
            timeout_ms: 15 * 60_000,
            approve_each: false,
            size_limit: FileSizeLimit::default(),
            in_session: false,
        }
    }
}

/// How parties and elicitations work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanSettings {
    /// The least number of personas in a party.
    pub min_agents: u32,
    /// The most rounds of cross-examination in a party.
    pub max_rounds: u32,
    /// The least number of methods in an elicitation.
    pub min_methods: u32,
    /// The personas of the project; empty uses the built-in ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roster: Vec<Persona>,
}

impl Default for PlanSettings {
    fn default() -> Self {
        PlanSettings { min_agents: 3, max_rounds: 3, min_methods: 3, roster: Vec::new() }
    }
}

impl PlanSettings {
    fn is_default(&self) -> bool {
        *self == PlanSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribunal_engine::limits::RunLimits;

    #[test]
    fn a_grant_allows_as_many_findings_and_rounds_again() {
        let limits = ReviewLimits::default();
        let halts =
            |grants, findings| limits.check_findings(&RunUsage { grants, ..RunUsage::default() }, findings).is_some();
        assert!(!halts(0, 50) && halts(0, 51) && !halts(1, 51) && halts(1, 101));
        let run_usage = RunUsage { grants: 1, ..RunUsage::default() };
        let progress = ReviewProgress { rounds: 4, iterations: 3, findings: 200 };
        let remaining = RemainingLimits::calculate(&RunLimits::default(), &run_usage, 0);
        let remaining = limits.add_remaining(remaining, &run_usage, progress);
        assert_eq!(
            (remaining.counts["rounds"], remaining.counts["fix_iterations"], remaining.counts["findings"]),
            (2, 0, 0)
        );
    }
}
