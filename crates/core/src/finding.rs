//! A finding: one issue found, with its evidence, its status and all that ever happened to it.
//!
//! The format is versioned ([`FINDING_SCHEMA`]); `tribunal schema finding` prints its JSON Schema.

use alloc::{string::String, vec::Vec};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    files::Hunk,
    ids::{AgentName, DecisionId, FindingId},
    level::{Role, words},
    stamp::Stamp,
};

/// Name and version of the finding format.
pub const FINDING_SCHEMA: &str = "tribunal.finding/1";

/// Most severe first, so that sorting puts it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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

    /// Reads a severity in any of the scales the sources use; BMAD's `minor` does not say which, so it is medium.
    pub fn parse(text: &str) -> Option<Severity> {
        match text.trim().to_ascii_lowercase().as_str() {
            "critical" | "blocking" | "blocker" => Some(Severity::Critical),
            "high" | "major" => Some(Severity::High),
            "medium" | "moderate" | "minor" => Some(Severity::Medium),
            "low" | "trivial" | "info" => Some(Severity::Low),
            _ => None,
        }
    }

    /// Medium or worse: what keeps a pass from being dry.
    pub fn weighs(self) -> bool {
        self <= Severity::Medium
    }
}

/// What a reviewer shows for its claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "evidence", rename_all = "snake_case")]
pub enum Evidence {
    /// A text that stands in the subject.
    Quote { text: String },
    /// Something that should stand under a heading and does not.
    Absence { heading: String, terms: Vec<String> },
}

/// How a quote was found, where it is not simply as quoted and in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    #[serde(flatten)]
    pub how: How,
    /// In how many places it stands; the one nearest to the line that the reviewer named is meant, else the first.
    pub places: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum How {
    /// As quoted.
    Exact,
    /// With other white space, list marks, quotes or dashes.
    Folded,
    /// Shortened by dots: the parts stand in order.
    Parts,
    /// Among what the change took out: it stood there.
    Removed,
    /// So much of it stands near the named line; the finding has what really stands there.
    Similar { percent: u32 },
}

impl Found {
    /// As quoted, and only there.
    pub const PLAIN: Found = Found { how: How::Exact, places: 1 };
}

/// What people read after the place: `as quoted, 1 of 3 places`.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            How::Exact => f.write_str("as quoted")?,
            How::Folded => f.write_str("as quoted, set otherwise")?,
            How::Parts => f.write_str("quoted in parts")?,
            How::Removed => f.write_str("taken out by the change")?,
            How::Similar { percent } => write!(f, "{percent} % as quoted")?,
        }
        if self.places > 1 { write!(f, ", 1 of {} places", self.places) } else { Ok(()) }
    }
}

/// Where in the subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    pub file: String,
    /// First line, counted from 1.
    pub line: u32,
    /// Last line.
    pub end_line: u32,
    /// The heading it stands under, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
}

impl Place {
    pub fn overlaps(&self, other: &Place) -> bool {
        self.file == other.file && self.line <= other.end_line && other.line <= self.end_line
    }
}

impl Place {
    /// Where it went when these lines changed.
    pub fn shift(&mut self, hunks: &[Hunk]) {
        (self.line, self.end_line) = (shift(self.line, hunks), shift(self.end_line, hunks));
    }
}

fn shift(line: u32, hunks: &[Hunk]) -> u32 {
    let mut moved = i64::from(line);
    for hunk in hunks.iter().filter(|hunk| hunk.old_start <= line) {
        let into = line - hunk.old_start;
        if into >= hunk.old_len {
            moved += i64::from(hunk.new_len) - i64::from(hunk.old_len);
        } else {
            // In the changed lines themselves: as far into them as they go now.
            moved -= i64::from(into.saturating_sub(hunk.new_len.saturating_sub(1)));
        }
    }
    u32::try_from(moved).unwrap_or(1).max(1)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Who raised a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Raiser {
    pub round: u32,
    pub role: Role,
    pub agent: AgentName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dismissal {
    /// The evidence was not found in the subject.
    Ungrounded,
    /// Shown to be wrong.
    Invalid,
    /// A person said so.
    Person,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// It was there before the change under review.
    PreExisting,
    /// The goal does not ask for it.
    Goal,
    /// A person said so.
    Person,
}

words!(Dismissal { Ungrounded = "ungrounded", Invalid = "invalid", Person = "by a person" });
words!(Deferral { PreExisting = "pre-existing", Goal = "outside the goal", Person = "by a person" });

/// What has become of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    Open,
    /// A fixer has it.
    Assigned,
    /// Its fix landed and was verified by us.
    Fixed,
    /// A fixer could not repair it; a person is asked.
    Blocked {
        decision: DecisionId,
    },
    Dismissed {
        why: Dismissal,
    },
    Deferred {
        why: Deferral,
    },
}

impl Status {
    pub fn word(&self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Assigned => "assigned",
            Status::Fixed => "fixed",
            Status::Blocked { .. } => "blocked",
            Status::Dismissed { .. } => "dismissed",
            Status::Deferred { .. } => "deferred",
        }
    }

    /// Not believed: its evidence was not there, or it was shown to be wrong.
    pub fn is_refuted(&self) -> bool {
        matches!(self, Status::Dismissed { why: Dismissal::Ungrounded | Dismissal::Invalid })
    }

    /// Still to be repaired by somebody.
    pub fn is_open(&self) -> bool {
        matches!(self, Status::Open | Status::Assigned)
    }
}

/// Why a finding's status or severity changed. Rules look at this and never at the note beside it, which is written for
/// people and may hold the words of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A reviewer raised it.
    Raised,
    /// It had been refuted or set aside, and a reviewer raised it again.
    RaisedAgain,
    /// Its evidence was not found in the subject.
    Ungrounded,
    /// It stands away from what the change under review touches.
    PreExisting,
    /// The goal does not ask for it.
    OutsideGoal,
    /// Challengers doubt it: it counts one severity less from now on.
    InDoubt,
    /// Challengers do not agree on something critical, so the user is asked.
    NoAgreement,
    /// Challengers showed it to be wrong.
    Refuted,
    /// A fixer or a session has it.
    Assigned,
    /// A landed change bears out that it is repaired.
    Repaired,
    /// Its evidence went with the repair of another finding.
    RepairedAlong,
    /// It was said to be repaired, but nothing was changed, or nothing that concerns it.
    NotBorneOut,
    /// Its patch was not landed.
    PatchRefused,
    /// Its patch was not landed because somebody else had changed the same lines.
    PatchConflict,
    /// Its fixer failed or said nothing about it.
    NotAnswered,
    /// Its fixer cannot repair it.
    FixerBlocked,
    /// Fixers said the same again and nothing changed.
    NoProgress,
    /// Its patch waits for the user's approval.
    AwaitsApproval,
    /// The session that had it is no longer waited for.
    SessionOver,
    /// The user decided about it.
    User,
    /// The user gave it another severity.
    UserSeverity,
}

impl Cause {
    /// The user said so.
    pub fn is_by_user(self) -> bool {
        matches!(self, Cause::User | Cause::UserSeverity)
    }

    /// Its severity was decided by challengers or by the user: one more claim does not change it.
    pub fn settles_severity(self) -> bool {
        matches!(self, Cause::InDoubt | Cause::UserSeverity)
    }

    /// Challengers brought it about.
    pub fn is_by_challengers(self) -> bool {
        matches!(self, Cause::InDoubt | Cause::NoAgreement | Cause::Refuted)
    }

    /// Its patch did not land.
    pub fn is_refusal(self) -> bool {
        matches!(self, Cause::PatchRefused | Cause::PatchConflict)
    }
}

/// A change of a finding's status: what it becomes, why, and the same in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    pub to: Status,
    pub cause: Cause,
    pub note: String,
}

impl Transition {
    pub fn new(to: Status, cause: Cause, note: impl Into<String>) -> Transition {
        Transition { to, cause, note: note.into() }
    }
}

/// One line of a finding's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub at: Stamp,
    #[serde(flatten)]
    pub status: Status,
    pub cause: Cause,
    pub note: String,
}

/// A finding as the court keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub id: FindingId,
    pub severity: Severity,
    pub category: String,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The true place, found by us; none when it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// How the quote was found there; none: as quoted, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggested_fix: String,
    pub raisers: Vec<Raiser>,
    #[serde(flatten)]
    pub status: Status,
    /// Perhaps a finding that was there before it; nobody could be sure, so both are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maybe_same_as: Option<FindingId>,
    pub history: Vec<Step>,
}

impl Finding {
    /// The only way a status changes: with a stamp, a cause and a note.
    pub fn apply(&mut self, transition: Transition, at: Stamp) {
        let Transition { to, cause, note } = transition;
        self.history.push(Step { at, status: to.clone(), cause, note });
        self.status = to;
    }

    /// The last thing said of it.
    pub fn last_note(&self) -> &str {
        self.history.last().map_or("", |step| step.note.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_move_with_what_was_changed_above_them() {
        let grown = Hunk { old_start: 5, old_len: 1, new_len: 4 };
        assert_eq!((shift(4, &[grown]), shift(5, &[grown]), shift(6, &[grown])), (4, 5, 9));
        let cut = Hunk { old_start: 2, old_len: 3, new_len: 0 };
        assert_eq!(shift(10, &[cut]), 7);
    }

    #[test]
    fn what_stood_in_changed_lines_stays_among_them() {
        let shrunk = Hunk { old_start: 5, old_len: 5, new_len: 2 };
        let moved: Vec<u32> = (4..=11).map(|line| shift(line, &[shrunk])).collect();
        assert_eq!(moved, [4, 5, 6, 6, 6, 6, 7, 8]);
    }
}
