//! What a review records in its journal, besides what every run records.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::checks::ChecksReport,
    findings::{
        agent_role::AgentRole,
        counts::FindingCounts,
        finding::{Finding, FindingRaiser, Severity, StatusTransition},
    },
    review::{
        challenge_rules::{ChallengeResult, ChallengerVoice},
        confidence::Confidence,
        level::ReviewLevel,
        own_file::OwnFile,
    },
    runs::run_kind::KindEvent,
};
use tribunal_engine::{
    fault::Fault,
    files::{FilePart, PatchRefusal},
    ids::{AgentName, FindingId, Key, RunId},
    limits::AgentUsage,
    reason::RunReason,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReviewEvent {
    LevelChosen {
        level: ReviewLevel,
        why: String,
        panel: Vec<AgentRole>,
    },
    /// The checks have run on the untouched project.
    BaselineChecked {
        #[serde(flatten)]
        report: ChecksReport,
    },
    RoundStarted {
        round: u32,
        of: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<RunReason>,
    },
    SeatAnswered {
        round: u32,
        role: AgentRole,
        agent: AgentName,
        raised: u32,
        usage: AgentUsage,
    },
    SeatIncomplete {
        round: u32,
        role: AgentRole,
        agent: AgentName,
        fault: Fault,
    },
    FindingRaised {
        finding: Finding,
    },
    FindingJoined {
        finding: FindingId,
        severity: Severity,
        raiser: FindingRaiser,
    },
    FindingMoved {
        finding: FindingId,
        #[serde(flatten)]
        transition: StatusTransition,
    },
    /// New findings that the user dismissed in these earlier runs, so they are dismissed again.
    DismissalsKept {
        findings: Vec<FindingId>,
        runs: Vec<RunId>,
    },
    /// A challenger answered for its batch, or failed to.
    ChallengerAnswered {
        key: Key,
        agent: AgentName,
        findings: u32,
        usage: AgentUsage,
        /// The findings that the challenger did not mention.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        silent: Vec<FindingId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    },
    FindingRuled {
        finding: FindingId,
        ruled: ChallengeResult,
        /// The severity from now on.
        severity: Severity,
        voices: Vec<ChallengerVoice>,
    },
    FixersDealt {
        round: u32,
        iteration: u32,
        wave: u32,
        hands: Vec<Vec<FindingId>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<RunReason>,
    },
    FixerFailed {
        key: Key,
        agent: AgentName,
        fault: Fault,
    },
    PatchLanded {
        key: Key,
        findings: Vec<FindingId>,
        lines: u32,
    },
    /// A judge said which findings a change repairs, or failed to.
    JudgeAnswered {
        key: Key,
        agent: AgentName,
        /// The findings that it was asked about.
        findings: Vec<FindingId>,
        /// Those that it considers repaired.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repaired: Vec<FindingId>,
        /// The parts of the change that repair none of them. They do not land, unless they are in place already.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unrelated: Vec<FilePart>,
        usage: AgentUsage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    },
    PatchRefused {
        key: Key,
        findings: Vec<FindingId>,
        why: PatchRefusal,
    },
    RoundEnded {
        round: u32,
        new: u32,
        dry: bool,
        counts: FindingCounts,
        /// The number of claims that were not believed.
        #[serde(default, skip_serializing_if = "is_zero")]
        unbelieved: u32,
    },
    ConfidenceCalculated {
        round: u32,
        confidence: Confidence,
    },
    FileWritten {
        #[serde(flatten)]
        file: OwnFile,
        path: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(counter: &u32) -> bool {
    *counter == 0
}

impl KindEvent for ReviewEvent {
    const KIND_NAMES: &'static [&'static str] = &[
        "level_chosen",
        "baseline_checked",
        "round_started",
        "seat_answered",
        "seat_incomplete",
        "finding_raised",
        "finding_joined",
        "finding_moved",
        "dismissals_kept",
        "challenger_answered",
        "finding_ruled",
        "fixers_dealt",
        "fixer_failed",
        "patch_landed",
        "judge_answered",
        "patch_refused",
        "round_ended",
        "confidence_calculated",
        "file_written",
    ];

    fn subject_name(&self) -> String {
        match self {
            ReviewEvent::ChallengerAnswered { key, .. }
            | ReviewEvent::FixerFailed { key, .. }
            | ReviewEvent::PatchLanded { key, .. }
            | ReviewEvent::JudgeAnswered { key, .. }
            | ReviewEvent::PatchRefused { key, .. } => key.to_string(),
            // One role has at most one seat in a round.
            ReviewEvent::SeatAnswered { role, .. } | ReviewEvent::SeatIncomplete { role, .. } => role.to_string(),
            ReviewEvent::FindingRaised { finding } => finding.id.to_string(),
            ReviewEvent::FindingJoined { finding: finding_id, .. }
            | ReviewEvent::FindingMoved { finding: finding_id, .. }
            | ReviewEvent::FindingRuled { finding: finding_id, .. } => finding_id.to_string(),
            ReviewEvent::FixersDealt { iteration, wave, .. } => format!("{iteration}.{wave}"),
            ReviewEvent::RoundStarted { round, .. }
            | ReviewEvent::RoundEnded { round, .. }
            | ReviewEvent::ConfidenceCalculated { round, .. } => format!("{round}"),
            // The remaining kinds occur once in a run, or their order alone tells them apart.
            ReviewEvent::LevelChosen { .. }
            | ReviewEvent::BaselineChecked { .. }
            | ReviewEvent::DismissalsKept { .. }
            | ReviewEvent::FileWritten { .. } => String::new(),
        }
    }

    fn kind_name(&self) -> &'static str {
        // These must be the names that serde writes for the variants.
        match self {
            ReviewEvent::LevelChosen { .. } => "level_chosen",
            ReviewEvent::BaselineChecked { .. } => "baseline_checked",
            ReviewEvent::RoundStarted { .. } => "round_started",
            ReviewEvent::SeatAnswered { .. } => "seat_answered",
            ReviewEvent::SeatIncomplete { .. } => "seat_incomplete",
            ReviewEvent::FindingRaised { .. } => "finding_raised",
            ReviewEvent::FindingJoined { .. } => "finding_joined",
            ReviewEvent::FindingMoved { .. } => "finding_moved",
            ReviewEvent::DismissalsKept { .. } => "dismissals_kept",
            ReviewEvent::ChallengerAnswered { .. } => "challenger_answered",
            ReviewEvent::FindingRuled { .. } => "finding_ruled",
            ReviewEvent::FixersDealt { .. } => "fixers_dealt",
            ReviewEvent::FixerFailed { .. } => "fixer_failed",
            ReviewEvent::PatchLanded { .. } => "patch_landed",
            ReviewEvent::JudgeAnswered { .. } => "judge_answered",
            ReviewEvent::PatchRefused { .. } => "patch_refused",
            ReviewEvent::RoundEnded { .. } => "round_ended",
            ReviewEvent::ConfidenceCalculated { .. } => "confidence_calculated",
            ReviewEvent::FileWritten { .. } => "file_written",
        }
    }
}
