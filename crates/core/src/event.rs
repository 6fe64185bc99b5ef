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
    challenge::{Ruled, Voice},
    confidence::Confidence,
    counts::Counts,
    decision::{Answer, Decision},
    effect::{Effect, OwnFile, Reply},
    fault::Fault,
    files::Refusal,
    finding::{Finding, Raiser, Severity, Transition},
    ids::{AgentName, DecisionId, FindingId, Hash, Key, RunId},
    level::{Level, Role},
    limits::{Cost, Left, Usage},
    reason::{Outcome, Reason},
    session::event::SessionEvent,
    settings::Settings,
    stamp::Stamp,
};

/// The version this build writes.
pub const EVENT_VERSION: u16 = 1;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub v: u16,
    pub run: RunId,
    /// The position in the run: 1, 2, 3, …
    pub seq: u64,
    /// Unique within the run: an entry written twice is one entry.
    pub id: String,
    pub at: Stamp,
    #[serde(flatten)]
    pub event: Event,
}

/// An entry that is not yet recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub id: String,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    // The run itself.
    RunStarted {
        workflow: String,
        version: u32,
        build: String,
        settings: Settings,
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
    RunParked(Summary),
    RunFinished(Summary),

    // What a review records as it proceeds.
    LevelChosen {
        level: Level,
        why: String,
        panel: Vec<Role>,
    },
    RoundStarted {
        round: u32,
        of: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Reason>,
    },
    SeatAnswered {
        round: u32,
        role: Role,
        agent: AgentName,
        raised: u32,
        usage: Usage,
    },
    SeatIncomplete {
        round: u32,
        role: Role,
        agent: AgentName,
        fault: Fault,
    },
    FindingRaised {
        finding: Finding,
    },
    FindingJoined {
        finding: FindingId,
        severity: Severity,
        raiser: Raiser,
    },
    FindingMoved {
        finding: FindingId,
        #[serde(flatten)]
        transition: Transition,
    },
    /// A challenger answered for its batch, or failed to.
    ChallengerAnswered {
        key: Key,
        agent: AgentName,
        findings: u32,
        usage: Usage,
        /// The findings that the challenger did not mention.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        silent: Vec<FindingId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    },
    FindingRuled {
        finding: FindingId,
        ruled: Ruled,
        /// The severity from now on.
        severity: Severity,
        voices: Vec<Voice>,
    },
    FixersDealt {
        round: u32,
        iteration: u32,
        wave: u32,
        hands: Vec<Vec<FindingId>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Reason>,
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
        why: Refusal,
    },
    DecisionPosted {
        decision: Decision,
    },
    DecisionAnswered {
        decision: DecisionId,
        answer: Answer,
    },
    RoundEnded {
        round: u32,
        new: u32,
        dry: bool,
        counts: Counts,
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
    /// An event of a newer build: readers skip it, writers refuse such a file.
    #[serde(other)]
    Unknown,
}

impl Event {
    /// Names what the event is about. Together with the kind it forms a name that does not depend on other events.
    pub fn about(&self) -> String {
        match self {
            Event::EffectStarted { key, .. }
            | Event::EffectFinished { key, .. }
            | Event::Boundary { key, .. }
            | Event::ChallengerAnswered { key, .. }
            | Event::FixerFailed { key, .. }
            | Event::PatchLanded { key, .. }
            | Event::PatchRefused { key, .. } => key.to_string(),
            // A build may mark several changes at one point.
            Event::Patched { change } => change.clone(),
            // One role has at most one seat in a round.
            Event::SeatAnswered { role, .. } | Event::SeatIncomplete { role, .. } => role.to_string(),
            Event::FindingRaised { finding } => finding.id.to_string(),
            Event::FindingJoined { finding, .. }
            | Event::FindingMoved { finding, .. }
            | Event::FindingRuled { finding, .. } => finding.to_string(),
            Event::DecisionPosted { decision } => decision.id.to_string(),
            Event::DecisionAnswered { decision, .. } => decision.to_string(),
            Event::FixersDealt { iteration, wave, .. } => format!("{iteration}.{wave}"),
            Event::RoundStarted { round, .. }
            | Event::RoundEnded { round, .. }
            | Event::ConfidenceCalculated { round, .. } => format!("{round}"),
            // The remaining kinds occur once in a run, or their order alone tells them apart.
            _ => String::new(),
        }
    }

    /// Returns the `kind` as it is written in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            // These must be the names that serde writes for the variants.
            Event::RunStarted { .. } => "run_started",
            Event::RunResumed { .. } => "run_resumed",
            Event::SettingsChanged { .. } => "settings_changed",
            Event::EffectStarted { .. } => "effect_started",
            Event::EffectFinished { .. } => "effect_finished",
            Event::Boundary { .. } => "boundary",
            Event::Patched { .. } => "patched",
            Event::RunParked(_) => "run_parked",
            Event::RunFinished(_) => "run_finished",
            Event::LevelChosen { .. } => "level_chosen",
            Event::RoundStarted { .. } => "round_started",
            Event::SeatAnswered { .. } => "seat_answered",
            Event::SeatIncomplete { .. } => "seat_incomplete",
            Event::FindingRaised { .. } => "finding_raised",
            Event::FindingJoined { .. } => "finding_joined",
            Event::FindingMoved { .. } => "finding_moved",
            Event::ChallengerAnswered { .. } => "challenger_answered",
            Event::FindingRuled { .. } => "finding_ruled",
            Event::FixersDealt { .. } => "fixers_dealt",
            Event::FixerFailed { .. } => "fixer_failed",
            Event::PatchLanded { .. } => "patch_landed",
            Event::PatchRefused { .. } => "patch_refused",
            Event::DecisionPosted { .. } => "decision_posted",
            Event::DecisionAnswered { .. } => "decision_answered",
            Event::RoundEnded { .. } => "round_ended",
            Event::ConfidenceCalculated { .. } => "confidence_calculated",
            Event::FileWritten { .. } => "file_written",
            Event::Warned { .. } => "warned",
            Event::Session(_) => "session",
            Event::Unknown => "unknown",
        }
    }
}

/// How a run ended or was parked: the last line of every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// `None` if the run was interrupted and has not ended.
    pub outcome: Option<Outcome>,
    pub reason: Reason,
    pub detail: String,
    pub rounds: u32,
    pub findings: Counts,
    pub cost: Cost,
    /// The part of the cost that a subscription paid.
    #[serde(default, skip_serializing_if = "Cost::is_nothing")]
    pub notional: Cost,
    pub tokens: u64,
    pub elapsed_ms: u64,
    /// What the other limits would still have allowed, if one limit halted the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}
