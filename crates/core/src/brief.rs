//! The typed task that an agent gets, and its typed answer.
//!
//! A template in `agents` turns a brief into a prompt, and the parser there turns the agent's text into an answer. This
//! module only defines the meaning of both.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    client::Size,
    context::Context,
    files::{Patch, Stray},
    finding::{Evidence, Finding, Severity},
    ids::{AgentName, FindingId, Hash, Key},
    level::{Role, words},
    limits::{Cost, Usage},
    plan::Plan,
    subject::Subject,
};

/// The most findings that one challenger gets in one task.
pub const BATCH: usize = 10;

/// What an agent is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    pub role: Role,
    pub subject: Subject,
    pub round: u32,
    /// The least number of findings that a reviewer should raise (0: it may raise none).
    pub required: u32,
    /// The known findings, one line each; a reviewer need not raise them again.
    pub known: Vec<String>,
    /// The findings that a fixer has to repair.
    pub assigned: Vec<Assigned>,
    /// What the user told the run.
    pub said: Vec<String>,
    /// What was wrong with the last answer to the same brief.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub correction: String,
    /// What was fixed since the last pass of the panel, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<String>,
    /// The findings that a challenger has to dispute, at most [`CHALLENGE_BATCH_SIZE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disputed: Vec<Disputed>,
    /// How to go about the task; `Plain` lets the template pick a plan from the text.
    #[serde(default, skip_serializing_if = "Plan::is_plain")]
    pub plan: Plan,
    #[serde(default, skip_serializing_if = "Surroundings::is_empty")]
    pub surroundings: Box<Surroundings>,
}

impl Brief {
    /// Makes a brief whose optional parts are all empty.
    pub fn new(role: Role, subject: Subject, round: u32) -> Brief {
        Brief {
            role,
            subject,
            round,
            // The parts that only some roles need start empty; the caller fills them.
            required: 0,
            known: Vec::new(),
            assigned: Vec::new(),
            said: Vec::new(),
            correction: String::new(),
            fixed: Vec::new(),
            disputed: Vec::new(),
            plan: Plan::Plain,
            surroundings: Box::default(),
        }
    }
}

/// What an agent should know about the project it works in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    /// Files that Tribunal keeps in this project, in addition to those that every template names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_files: Vec<String>,
    /// Lessons from earlier reviews, one line each, the most useful first; templates leave out what has no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<String>,
    /// Names of MCP servers the agent may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The results of earlier attempts in this run.
    #[serde(default, skip_serializing_if = "Context::is_empty")]
    pub context: Context,
}

impl Surroundings {
    pub fn is_empty(&self) -> bool {
        *self == Surroundings::default()
    }
}

/// One finding as a challenger sees it: its claim, its place and its evidence, but not who raised it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disputed {
    pub id: FindingId,
    pub severity: Severity,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

impl Disputed {
    pub fn of(finding: &Finding) -> Disputed {
        Disputed {
            id: finding.id,
            severity: finding.severity,
            description: finding.description.clone(),
            evidence: finding.evidence.clone(),
            place: finding.place.as_ref().map(|place| format!("{place}")).unwrap_or_default(),
        }
    }
}

/// One finding as a fixer sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assigned {
    pub id: FindingId,
    pub severity: Severity,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    pub place: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggested_fix: String,
    /// The reason why the last attempt did not count; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_try: String,
}

/// Where the agent works, and whether it can write there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "copy", rename_all = "snake_case")]
pub enum Workplace {
    /// The agent reads the frozen copy that the effect with this key made.
    Frozen { by: Key },
    /// The agent writes in a private copy of the current project; the difference becomes a patch.
    Private,
}

/// A brief for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub agent: AgentName,
    pub brief: Brief,
    pub place: Workplace,
    pub timeout_ms: u64,
    /// Earlier outputs that were given in the same state. A new output that repeats one of them makes no progress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<Hash>,
    /// The size of the model that the task is worth; `None` leaves the choice to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The most that the task may cost, for clients that accept a budget: run limits are only checked between tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Cost>,
    /// The session to continue; `None` starts a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<Session>>,
}

impl Task {
    pub fn new(agent: AgentName, brief: Brief, place: Workplace, timeout_ms: u64) -> Task {
        Task { agent, brief, place, timeout_ms, recent: Vec::new(), size: None, budget: None, session: None }
    }
}

/// A session with an agent that its client has kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: String,
    /// The usage of the whole session so far: clients report running totals.
    pub total: Usage,
    /// The wall time of the last answer in the session.
    pub at_ms: u64,
}

impl Session {
    /// Clients drop old sessions, and what was said a day ago is about another text.
    pub const EXPIRES_MS: u64 = 24 * 3_600_000;

    pub fn is_fresh(&self, now_ms: u64) -> bool {
        // A clock that was set back makes the session look new; the client reports an expired session itself.
        now_ms.saturating_sub(self.at_ms) < Session::EXPIRES_MS
    }
}

/// A finding as a reviewer raised it: a claim that is not yet grounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Raised {
    pub severity: Severity,
    pub category: String,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The file the reviewer named, if it named one; a subject may have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line the reviewer named, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggested_fix: String,
}

/// What a fixer claims about one finding: a claim, not yet a fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    pub id: FindingId,
    #[serde(flatten)]
    pub said: Said,
    pub note: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verification: String,
    /// The files that the fixer says it changed; only the patch counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    /// The fixer says that it saved the fix to its own memory.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub memory_saved: bool,
}

impl Claim {
    /// The claim that stands for a session that came back from repairing.
    pub fn fixed(id: FindingId, note: &str) -> Claim {
        // The two constructors differ in the status only.
        Claim { said: Said::Fixed, ..Claim::blocked(id, note.into()) }
    }

    /// The claim of a fixer that cannot repair the finding.
    pub fn blocked(id: FindingId, note: String) -> Claim {
        let (verification, files_modified) = Default::default();
        Claim { id, said: Said::Blocked, note, verification, files_modified, memory_saved: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    Fixed,
    Blocked,
}

/// What a challenger says about one finding: one opinion, to be combined with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ruling {
    pub id: FindingId,
    #[serde(flatten)]
    pub holds: Holds,
    /// The reason for the verdict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// A quote from the subject that speaks against the finding; empty if the challenger gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub counter: String,
}

/// Whether a challenger considers a finding valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "holds", rename_all = "snake_case")]
pub enum Holds {
    Valid,
    /// Counts only together with counter-evidence: a bare denial is treated as ambiguous.
    Invalid,
    Ambiguous,
}

words!(Holds { Valid = "valid", Invalid = "invalid", Ambiguous = "ambiguous" });

/// What a party reports in addition to its findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Minutes {
    /// The personas that took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub personas: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub consensus: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dissent: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ballots: Vec<Ballot>,
}

/// The votes on one finding of the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ballot {
    /// The position of the finding in the answer, from 0.
    pub finding: usize,
    pub votes: Vec<Vote>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dissent: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vote {
    pub persona: String,
    pub severity: Severity,
}

impl Ballot {
    /// Returns the highest severity that more than half of the voters gave or exceeded.
    pub fn majority(&self) -> Option<Severity> {
        // Severities are ordered most severe first, so `<=` counts the votes for this severity or a worse one.
        let agree = |severity: Severity| self.votes.iter().filter(|vote| vote.severity <= severity).count();
        Severity::ALL.into_iter().find(|severity| agree(*severity) * 2 > self.votes.len())
    }
}

impl Ballot {
    /// Whether more than half voted for the same severity and no dissent was written down.
    pub fn is_agreed(&self) -> bool {
        let most = Severity::ALL.map(|severity| self.votes.iter().filter(|v| v.severity == severity).count());
        // A written dissent counts even if the votes agree.
        self.dissent.is_empty() && most.into_iter().max().unwrap_or(0) * 2 > self.votes.len()
    }
}

impl Minutes {
    pub fn is_empty(&self) -> bool {
        *self == Minutes::default()
    }

    /// Raises severities to what the votes say. Votes never lower a severity.
    pub fn raise(&self, raised: &mut [Raised]) {
        for ballot in &self.ballots {
            if let (Some(finding), Some(voted)) = (raised.get_mut(ballot.finding), ballot.majority()) {
                // The smaller value is the more severe one.
                finding.severity = finding.severity.min(voted);
            }
        }
    }
}

/// What the parser understood of an agent's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Content {
    Findings {
        raised: Vec<Raised>,
    },
    Fixes {
        claims: Vec<Claim>,
    },
    Rulings {
        rulings: Vec<Ruling>,
    },
    /// No parser could read the text; the message says where parsing stopped.
    Unreadable {
        message: String,
    },
}

/// The complete reply of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentReply {
    #[serde(flatten)]
    pub content: Content,
    /// What the parser had to ignore, one line each.
    pub remarks: Vec<String>,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// The votes, the consensus and the dissent of a party.
    #[serde(default, skip_serializing_if = "Minutes::is_empty")]
    pub minutes: Box<Minutes>,
    /// The hashes of the masked prompt and the masked output, which are stored as blobs.
    pub prompt: Hash,
    pub output: Hash,
    /// How much of the output repeats one of the task's recent outputs, in thousandths; `None` if it was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u16>,
    /// Edits outside the agent's workspace, by the agent or by another process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strayed: Vec<Stray>,
    /// The session, if the client kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<Session>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_without_the_newer_parts_is_written_as_it_always_was() {
        let brief = Brief::new(Role::Adversarial, Subject::at("a.md", None), 1);
        assert_eq!(
            serde_json::to_string(&brief).unwrap(),
            concat!(
                r#"{"role":"adversarial","subject":{"subject":"document","path":"a.md"},"#,
                r#""round":1,"required":0,"known":[],"assigned":[],"said":[]}"#
            )
        );
    }

    fn ballot(votes: &[Severity]) -> Ballot {
        let votes = votes.iter().map(|severity| Vote { persona: "x".into(), severity: *severity });
        Ballot { finding: 0, votes: votes.collect(), dissent: String::new() }
    }

    #[test]
    fn votes_raise_a_severity_when_more_than_half_agree() {
        use Severity::{Critical, High, Low, Medium};
        for (said, votes, severity) in [
            (Medium, &[][..], Medium),
            (Medium, &[High, High, Low], High),
            (Medium, &[Critical, High, Low], High),
            (Medium, &[Critical, Low], Medium),
            (High, &[Low, Low, Low], High),
            (Low, &[Critical, Critical, Critical], Critical),
        ] {
            let mut raised = [Raised {
                severity: said,
                category: String::new(),
                description: String::new(),
                evidence: Evidence::Quote { text: String::new() },
                file: None,
                line: None,
                suggested_fix: String::new(),
            }];
            Minutes { ballots: alloc::vec![ballot(votes)], ..Minutes::default() }.raise(&mut raised);
            assert_eq!(raised[0].severity, severity, "{said} with {votes:?}");
        }
    }
}
