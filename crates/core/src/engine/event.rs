//! The journal's vocabulary: facts, owned and versioned. Everything that users see is derived from these.
//!
//! The version of a [`JournalEntry`] (`v`) begins at 1; until the first release the format changes without a new number.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    decisions::decision::{Decision, DecisionAnswer},
    engine::{
        effect::{Effect, OwnFile, Reply},
        files::PatchRefusal,
        ids::{AgentName, BatchId, DecisionId, FindingId, Hash, Key, RunId},
        limits::{AgentUsage, Cost, RemainingLimits},
        reason::{RunOutcome, RunReason},
        settings::Settings,
        timestamp::Timestamp,
    },
    review::{
        challenge_rules::{ChallengeResult, ChallengerVoice},
        confidence::Confidence,
        counts::FindingCounts,
        finding::{Finding, FindingRaiser, Severity, StatusTransition},
        level::{AgentRole, ReviewLevel},
    },
    session::event::SessionEvent,
    tasks::{failure_cause::FailureCause, fault::Fault},
};

/// The version this build writes.
pub const EVENT_VERSION: u16 = 1;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalEntry {
    pub v: u16,
    pub run: RunId,
    /// The position in the run: 1, 2, 3, …
    pub seq: u64,
    /// Unique within the run: an entry written twice is one entry.
    pub id: String,
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: RunEvent,
}

/// An entry that is not yet recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryDraft {
    pub id: String,
    pub event: RunEvent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RunEvent {
    // The run itself.
    RunStarted {
        workflow: String,
        version: u32,
        build: String,
        settings: Settings,
        /// The command that started this run, if it started several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<BatchId>,
    },
    RunResumed {
        life: u32,
    },
    /// The user's changed settings were read; they hold from here on.
    SettingsChanged {
        settings: Settings,
    },
    EffectStarted {
        key: Key,
        stretch: u32,
        fingerprint: Hash,
        effect: Effect,
    },
    EffectFinished {
        key: Key,
        stretch: u32,
        reply: Reply,
    },
    Boundary {
        key: Key,
        stretch: u32,
        state: serde_json::Value,
    },
    Patched {
        change: String,
    },
    RunParked(RunSummary),
    RunFinished(RunSummary),

    // What a review records as it proceeds.
    LevelChosen {
        level: ReviewLevel,
        why: String,
        panel: Vec<AgentRole>,
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
    PatchRefused {
        key: Key,
        findings: Vec<FindingId>,
        why: PatchRefusal,
    },
    DecisionPosted {
        decision: Decision,
    },
    DecisionAnswered {
        decision: DecisionId,
        answer: DecisionAnswer,
    },
    RoundEnded {
        round: u32,
        new: u32,
        dry: bool,
        counts: FindingCounts,
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
    Warned {
        text: String,
    },
    /// An event of the user's session. Hooks write it at any time, independently of the process that runs the workflow.
    Session(SessionEvent),
    /// An event of a newer build. A run that has one can be read, but not resumed.
    #[serde(other)]
    Unknown,
}

impl RunEvent {
    /// Names what the event is about. Together with the kind it forms a name that does not depend on other events.
    pub fn subject_name(&self) -> String {
        match self {
            RunEvent::EffectStarted { key, .. }
            | RunEvent::EffectFinished { key, .. }
            | RunEvent::Boundary { key, .. }
            | RunEvent::ChallengerAnswered { key, .. }
            | RunEvent::FixerFailed { key, .. }
            | RunEvent::PatchLanded { key, .. }
            | RunEvent::PatchRefused { key, .. } => key.to_string(),
            // A build may mark several changes at one point.
            RunEvent::Patched { change } => change.clone(),
            // One role has at most one seat in a round.
            RunEvent::SeatAnswered { role, .. } | RunEvent::SeatIncomplete { role, .. } => role.to_string(),
            RunEvent::FindingRaised { finding } => finding.id.to_string(),
            RunEvent::FindingJoined { finding: finding_id, .. }
            | RunEvent::FindingMoved { finding: finding_id, .. }
            | RunEvent::FindingRuled { finding: finding_id, .. } => finding_id.to_string(),
            RunEvent::DecisionPosted { decision } => decision.id.to_string(),
            RunEvent::DecisionAnswered { decision: decision_id, .. } => decision_id.to_string(),
            RunEvent::FixersDealt { iteration, wave, .. } => format!("{iteration}.{wave}"),
            RunEvent::RoundStarted { round, .. }
            | RunEvent::RoundEnded { round, .. }
            | RunEvent::ConfidenceCalculated { round, .. } => format!("{round}"),
            // The remaining kinds occur once in a run, or their order alone tells them apart.
            _ => String::new(),
        }
    }

    /// Returns the `kind` as it is written in JSON.
    pub fn kind_name(&self) -> &'static str {
        match self {
            // These must be the names that serde writes for the variants.
            RunEvent::RunStarted { .. } => "run_started",
            RunEvent::RunResumed { .. } => "run_resumed",
            RunEvent::SettingsChanged { .. } => "settings_changed",
            RunEvent::EffectStarted { .. } => "effect_started",
            RunEvent::EffectFinished { .. } => "effect_finished",
            RunEvent::Boundary { .. } => "boundary",
            RunEvent::Patched { .. } => "patched",
            RunEvent::RunParked(_) => "run_parked",
            RunEvent::RunFinished(_) => "run_finished",
            RunEvent::LevelChosen { .. } => "level_chosen",
            RunEvent::RoundStarted { .. } => "round_started",
            RunEvent::SeatAnswered { .. } => "seat_answered",
            RunEvent::SeatIncomplete { .. } => "seat_incomplete",
            RunEvent::FindingRaised { .. } => "finding_raised",
            RunEvent::FindingJoined { .. } => "finding_joined",
            RunEvent::FindingMoved { .. } => "finding_moved",
            RunEvent::ChallengerAnswered { .. } => "challenger_answered",
            RunEvent::FindingRuled { .. } => "finding_ruled",
            RunEvent::FixersDealt { .. } => "fixers_dealt",
            RunEvent::FixerFailed { .. } => "fixer_failed",
            RunEvent::PatchLanded { .. } => "patch_landed",
            RunEvent::PatchRefused { .. } => "patch_refused",
            RunEvent::DecisionPosted { .. } => "decision_posted",
            RunEvent::DecisionAnswered { .. } => "decision_answered",
            RunEvent::RoundEnded { .. } => "round_ended",
            RunEvent::ConfidenceCalculated { .. } => "confidence_calculated",
            RunEvent::FileWritten { .. } => "file_written",
            RunEvent::Warned { .. } => "warned",
            RunEvent::Session(_) => "session",
            RunEvent::Unknown => "unknown",
        }
    }
}

/// How a run ended or was parked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// `None` if the run was interrupted and has not ended.
    pub outcome: Option<RunOutcome>,
    pub reason: RunReason,
    pub detail: String,
    pub rounds: u32,
    pub findings: FindingCounts,
    pub cost: Cost,
    /// The part of the cost that a subscription paid.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub notional: Cost,
    pub tokens: u64,
    pub elapsed_ms: u64,
    /// What the other limits would still have allowed, if one limit halted the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<RemainingLimits>,
    /// Why tasks came to nothing, if the run has not reached its goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<FailureCause>,
}
