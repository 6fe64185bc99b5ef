//! A finding: one issue with its evidence, its status and its history.
//!
//! The format is versioned ([`FINDING_SCHEMA`]); `tribunal schema finding` prints its JSON Schema.

use alloc::{string::String, vec::Vec};
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    findings::agent_role::AgentRole,
    tasks::answer_words::{SEVERITY_WORDS, find_exact_word},
};
use tribunal_engine::{
    files::Hunk,
    ids::{AgentName, DecisionId, FindingId, RunId},
    text::word_table::words,
    timestamp::Timestamp,
};

/// Name and version of the finding format.
pub const FINDING_SCHEMA: &str = "tribunal.finding/1";

/// How bad a finding is, most severe first, so that sorting puts the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Critical,
    High,
    Medium,
    Low,
}

words!(Severity { Critical = "critical", High = "high", Medium = "medium", Low = "low" });

impl Severity {
    pub const ALL: [Severity; 4] = [Severity::Critical, Severity::High, Severity::Medium, Severity::Low];

    /// Parses a severity. Agents and documents use several scales; the words of each are mapped to the nearest level.
    pub fn parse(severity_text: &str) -> Option<Severity> {
        find_exact_word(severity_text, &SEVERITY_WORDS)
    }

    /// Whether it is medium or worse, which keeps a pass from counting as dry.
    pub fn is_weighty(self) -> bool {
        // The order is most severe first.
        self <= Severity::Medium
    }
}

/// The evidence for a finding: what a reviewer gives for its claim, or the output of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "evidence", rename_all = "snake_case")]
pub enum Evidence {
    /// A text that occurs in the subject.
    Quote { text: String },
    /// Something that is missing under a heading.
    Absence { heading: String, terms: Vec<String> },
    /// A check of the user that fails, with the end of what it printed. It needs no quote: running it is the proof.
    Check { command: String, output: String },
}

/// How a quote was found, unless it was found verbatim and in one place only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuoteMatch {
    #[serde(flatten)]
    pub how: QuoteMatchKind,
    /// The number of matching places. The one nearest to the line that the reviewer named is meant, else the first.
    pub places: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum QuoteMatchKind {
    /// The text matches the quote verbatim.
    Exact,
    /// The text differs in white space, list marks, quotes or dashes.
    Folded,
    /// The quote was shortened by dots, and its parts occur in order.
    Parts,
    /// The quote is from text that the change removed.
    Removed,
    /// This much of the quote matches near the named line; the finding keeps the text that is really there.
    Similar { percent: u32 },
}

impl QuoteMatch {
    /// Found verbatim, and in one place only.
    pub const EXACT_AND_UNIQUE: QuoteMatch = QuoteMatch { how: QuoteMatchKind::Exact, places: 1 };
}

/// Formats the match for users: `exact match, 1 of 3 places`.
impl fmt::Display for QuoteMatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            QuoteMatchKind::Exact => formatter.write_str("exact match")?,
            QuoteMatchKind::Folded => formatter.write_str("match except for formatting")?,
            QuoteMatchKind::Parts => formatter.write_str("match of a shortened quote")?,
            QuoteMatchKind::Removed => formatter.write_str("removed by the change")?,
            QuoteMatchKind::Similar { percent } => write!(formatter, "{percent}% match")?,
        }
        // The number matters only if the quote is ambiguous.
        if self.places > 1 { write!(formatter, ", 1 of {} places", self.places) } else { Ok(()) }
    }
}

/// A range of lines in one file of the subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FindingPlace {
    pub file: String,
    /// First line, counted from 1.
    pub line: u32,
    /// Last line.
    pub end_line: u32,
    /// The heading above it, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
}

impl FindingPlace {
    pub fn overlaps_place(&self, other_place: &FindingPlace) -> bool {
        // Both ranges include their last line.
        self.file == other_place.file && self.line <= other_place.end_line && other_place.line <= self.end_line
    }
}

impl FindingPlace {
    /// Moves the place to where its lines are after these changes.
    pub fn shift_lines(&mut self, hunks: &[Hunk]) {
        (self.line, self.end_line) = (shift_line(self.line, hunks), shift_line(self.end_line, hunks));
    }
}

fn shift_line(line_number: u32, hunks: &[Hunk]) -> u32 {
    let mut shifted_line = i64::from(line_number);
    // Hunks below the line cannot move it.
    for hunk in hunks.iter().filter(|hunk| hunk.old_start <= line_number) {
        let lines_into_hunk = line_number - hunk.old_start;
        if lines_into_hunk >= hunk.old_len {
            shifted_line += i64::from(hunk.new_len) - i64::from(hunk.old_len);
        } else {
            // The line is inside the hunk: it keeps its offset, limited to the last line of the new text.
            shifted_line -= i64::from(lines_into_hunk.saturating_sub(hunk.new_len.saturating_sub(1)));
        }
    }
    // Lines count from 1, also if everything above was removed.
    u32::try_from(shifted_line).unwrap_or(1).max(1)
}

impl fmt::Display for FindingPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

/// The reviewer that raised a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FindingRaiser {
    pub round: u32,
    pub role: AgentRole,
    pub agent: AgentName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DismissalReason {
    /// The evidence was not found in the subject.
    Ungrounded,
    /// It was shown to be wrong.
    Invalid,
    /// The user said so.
    Person,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeferralReason {
    /// It was there before the change under review.
    PreExisting,
    /// The goal does not ask for it.
    Goal,
    /// The user said so.
    Person,
}

words!(DismissalReason { Ungrounded = "evidence not found", Invalid = "invalid", Person = "by the user" });
words!(DeferralReason { PreExisting = "pre-existing", Goal = "outside the goal", Person = "by the user" });

/// What has become of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum FindingStatus {
    Open,
    /// A fixer works on it.
    Assigned,
    /// It was repaired: a landed change or a session's edit was verified, or the user said so.
    Fixed,
    /// It waits for the user's answer to this decision.
    Blocked {
        decision: DecisionId,
    },
    Dismissed {
        why: DismissalReason,
    },
    Deferred {
        why: DeferralReason,
    },
}

impl FindingStatus {
    pub fn as_str(&self) -> &'static str {
        match self {
            FindingStatus::Open => "open",
            FindingStatus::Assigned => "assigned",
            FindingStatus::Fixed => "fixed",
            FindingStatus::Blocked { .. } => "blocked",
            FindingStatus::Dismissed { .. } => "dismissed",
            FindingStatus::Deferred { .. } => "deferred",
        }
    }

    /// Whether it is not believed: its evidence was not found, or it was shown to be wrong.
    pub fn is_refuted(&self) -> bool {
        matches!(self, FindingStatus::Dismissed { why: DismissalReason::Ungrounded | DismissalReason::Invalid })
    }

    /// Whether it still has to be repaired.
    pub fn is_open(&self) -> bool {
        // A blocked finding is not open: only an answer of the user can continue it.
        matches!(self, FindingStatus::Open | FindingStatus::Assigned)
    }

    /// Whether the flaw is still there: neither was it repaired nor is the finding dismissed. What is deferred is only put off.
    pub fn is_unresolved(&self) -> bool {
        match self {
            FindingStatus::Open
            | FindingStatus::Assigned
            | FindingStatus::Blocked { .. }
            | FindingStatus::Deferred { .. } => true,
            FindingStatus::Fixed | FindingStatus::Dismissed { .. } => false,
        }
    }
}

/// Why the status or the severity of a finding changed. Rules look only at the cause, never at the note beside it, which
/// is written for users and may contain the words of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransitionCause {
    /// A reviewer raised it.
    Raised,
    /// It had been refuted or set aside, and a reviewer raised it again.
    RaisedAgain,
    /// Its evidence was not found in the subject.
    Ungrounded,
    /// It is outside the lines that the change under review touches.
    PreExisting,
    /// The goal does not ask for it.
    OutsideGoal,
    /// Challengers doubt it, so it counts one severity less from now on.
    InDoubt,
    /// Challengers do not agree on something critical, so the user is asked.
    NoAgreement,
    /// Challengers showed it to be wrong.
    Refuted,
    /// A fixer or a session works on it.
    Assigned,
    /// A landed change confirms that it is repaired.
    Repaired,
    /// The repair of another finding removed its evidence.
    RepairedAlong,
    /// It was claimed as repaired, but nothing was changed, or nothing that concerns it.
    NotBorneOut,
    /// Its patch was not landed.
    PatchRefused,
    /// Its patch was not landed because the same lines had been changed elsewhere.
    PatchConflict,
    /// Its fixer failed, did not mention it, or says that it is not fixed.
    NotAnswered,
    /// Its fixer cannot repair it.
    FixerBlocked,
    /// Fixers repeated an earlier answer and nothing changed.
    NoProgress,
    /// Its patch waits for the user's approval.
    AwaitsApproval,
    /// The run no longer waits for the session that had it.
    SessionOver,
    /// A check of the user fails.
    CheckFailed,
    /// The check that had failed passes.
    CheckPassed,
    /// The user decided about it.
    User,
    /// The user gave it another severity.
    UserSeverity,
    /// The user dismissed the same finding in this earlier run.
    DismissedBefore { run: RunId },
}

impl TransitionCause {
    /// Whether the user decided it.
    pub fn is_by_user(&self) -> bool {
        matches!(self, TransitionCause::User | TransitionCause::UserSeverity)
    }

    /// Whether challengers or the user decided the severity, so that another claim must not change it.
    pub fn settles_severity(&self) -> bool {
        matches!(self, TransitionCause::InDoubt | TransitionCause::UserSeverity)
    }

    /// Whether challengers caused it.
    pub fn is_by_challengers(&self) -> bool {
        matches!(self, TransitionCause::InDoubt | TransitionCause::NoAgreement | TransitionCause::Refuted)
    }

    /// Whether its patch was refused.
    pub fn is_refusal(&self) -> bool {
        matches!(self, TransitionCause::PatchRefused | TransitionCause::PatchConflict)
    }
}

/// A change of a finding's status: the new status, the cause, and a note for users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatusTransition {
    pub to: FindingStatus,
    pub cause: TransitionCause,
    pub note: String,
}

impl StatusTransition {
    pub fn new(status: FindingStatus, cause: TransitionCause, note_text: impl Into<String>) -> StatusTransition {
        StatusTransition { to: status, cause, note: note_text.into() }
    }
}

/// One line of a finding's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HistoryStep {
    pub at: Timestamp,
    #[serde(flatten)]
    pub status: FindingStatus,
    pub cause: TransitionCause,
    pub note: String,
}

/// A finding as the review state keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    pub id: FindingId,
    pub severity: Severity,
    pub category: String,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The place where grounding found the evidence; `None` if it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<FindingPlace>,
    /// How the quote was found there; `None` if it was found verbatim and in one place only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<QuoteMatch>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggested_fix: String,
    pub raisers: Vec<FindingRaiser>,
    #[serde(flatten)]
    pub status: FindingStatus,
    /// An earlier finding that may be the same. Merging could not be sure, so both are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maybe_same_as: Option<FindingId>,
    pub history: Vec<HistoryStep>,
}

impl Finding {
    /// Applies a transition. This is the only way a status changes, so each change has a timestamp, a cause and a note.
    pub fn apply_transition(&mut self, transition: StatusTransition, timestamp: Timestamp) {
        let StatusTransition { to: new_status, cause, note } = transition;
        // The history is append-only; the status is always that of its last step.
        self.history.push(HistoryStep { at: timestamp, status: new_status.clone(), cause, note });
        self.status = new_status;
    }

    /// Returns the command of the check that the finding is about.
    pub fn check_command(&self) -> Option<&str> {
        match &self.evidence {
            Evidence::Check { command, .. } => Some(command),
            Evidence::Quote { .. } | Evidence::Absence { .. } => None,
        }
    }

    /// Returns the note of the last step.
    pub fn last_note(&self) -> &str {
        self.history.last().map_or("", |step| step.note.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_move_with_what_was_changed_above_them() {
        let grown_hunk = Hunk { old_start: 5, old_len: 1, new_len: 4 };
        assert_eq!(
            (shift_line(4, &[grown_hunk]), shift_line(5, &[grown_hunk]), shift_line(6, &[grown_hunk])),
            (4, 5, 9)
        );
        let removed_hunk = Hunk { old_start: 2, old_len: 3, new_len: 0 };
        assert_eq!(shift_line(10, &[removed_hunk]), 7);
    }

    #[test]
    fn a_line_within_a_hunk_stays_within_it() {
        let shrunk_hunk = Hunk { old_start: 5, old_len: 5, new_len: 2 };
        let shifted_lines: Vec<u32> = (4..=11).map(|line_number| shift_line(line_number, &[shrunk_hunk])).collect();
        assert_eq!(shifted_lines, [4, 5, 6, 6, 6, 6, 7, 8]);
    }
}
