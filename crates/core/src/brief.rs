//! The typed task an agent gets, and its typed answer.
//!
//! A template in `agents` turns a brief into a prompt, the parser there turns text into an answer; here is only what
//! both sides mean.

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

/// How many findings a challenger gets at once.
pub const BATCH: usize = 10;

/// What an agent is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    pub role: Role,
    pub subject: Subject,
    pub round: u32,
    /// A reviewer should find at least so many (0: may find nothing).
    pub required: u32,
    /// What is already known, in a line each; a reviewer need not raise it again.
    pub known: Vec<String>,
    /// What a fixer has to repair.
    pub assigned: Vec<Assigned>,
    /// What a person told the run.
    pub said: Vec<String>,
    /// What was wrong with the last answer to the same brief.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub correction: String,
    /// What was fixed since the panel last looked, in a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<String>,
    /// What a challenger has to dispute, at most [`BATCH`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disputed: Vec<Disputed>,
    /// Plain: the template picks one from the text.
    #[serde(default, skip_serializing_if = "Plan::is_plain")]
    pub plan: Plan,
    #[serde(default, skip_serializing_if = "Surroundings::is_empty")]
    pub surroundings: Box<Surroundings>,
}

impl Brief {
    /// A brief that asks for nothing special yet.
    pub fn new(role: Role, subject: Subject, round: u32) -> Brief {
        Brief {
            role,
            subject,
            round,
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

/// What an agent should know of the place it works in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    /// Files that Tribunal itself keeps in the project, beside those every template names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_files: Vec<String>,
    /// What earlier reviews taught, in a line each, the most useful first; templates leave out what has no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<String>,
    /// Names of MCP servers the agent may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// What came of earlier tries in this run.
    #[serde(default, skip_serializing_if = "Context::is_empty")]
    pub context: Context,
}

impl Surroundings {
    pub fn is_empty(&self) -> bool {
        *self == Surroundings::default()
    }
}

/// One finding as a challenger sees it: what is said, where, and what is shown for it; not by whom.
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
    /// Why the last try did not count.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_try: String,
}

/// Where the agent works and what may come of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "copy", rename_all = "snake_case")]
pub enum Workplace {
    /// Reads in the frozen copy that this key made.
    Frozen { by: Key },
    /// Writes in a private copy of the project as it is now; the difference becomes a patch.
    Private,
}

/// A brief for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub agent: AgentName,
    pub brief: Brief,
    pub place: Workplace,
    pub timeout_ms: u64,
    /// Earlier outputs, given while everything stood as it stands now: a new one that says the same goes in a circle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<Hash>,
    /// How much model it is worth; none: whatever the agent takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// What it may cost, where its client can be told: the limits hold between tasks, this one holds within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Cost>,
    /// The talk to go on with; none: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<Session>>,
}

impl Task {
    pub fn new(agent: AgentName, brief: Brief, place: Workplace, timeout_ms: u64) -> Task {
        Task { agent, brief, place, timeout_ms, recent: Vec::new(), size: None, budget: None, session: None }
    }
}

/// A talk with an agent that its client has kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: String,
    /// All that it has used so far: clients count on from there.
    pub total: Usage,
    /// Wall time of the last answer in it.
    pub at_ms: u64,
}

impl Session {
    /// Clients forget, and what was said a day ago is about another text.
    pub const EXPIRES_MS: u64 = 24 * 3_600_000;

    pub fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) < Session::EXPIRES_MS
    }
}

/// A finding as a reviewer raised it: a claim, not yet grounded.
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

/// What a fixer says of one finding: a claim, not yet a fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    pub id: FindingId,
    #[serde(flatten)]
    pub said: Said,
    pub note: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verification: String,
    /// What the fixer says it changed; the patch is what counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    /// The fixer says it put the fix into its own memory.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub memory_saved: bool,
}

impl Claim {
    /// What is taken to be said by somebody who came back from repairing.
    pub fn fixed(id: FindingId, note: &str) -> Claim {
        Claim { said: Said::Fixed, ..Claim::blocked(id, note.into()) }
    }

    /// What is said for a fixer that gets no further.
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

/// What a challenger says of one finding: an opinion, to be weighed with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ruling {
    pub id: FindingId,
    #[serde(flatten)]
    pub holds: Holds,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The subject's own words that speak against the finding, if the challenger quoted them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub counter: String,
}

/// Whether a finding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "holds", rename_all = "snake_case")]
pub enum Holds {
    Valid,
    /// Never without counter-evidence: a bare denial is ambiguous.
    Invalid,
    Ambiguous,
}

words!(Holds { Valid = "valid", Invalid = "invalid", Ambiguous = "ambiguous" });

/// What a party told beside its findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Minutes {
    /// Who spoke.
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
    /// Its position in the answer, from 0.
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
    /// The highest severity that more than half voted for, or for more than that.
    pub fn majority(&self) -> Option<Severity> {
        let agree = |severity: Severity| self.votes.iter().filter(|vote| vote.severity <= severity).count();
        Severity::ALL.into_iter().find(|severity| agree(*severity) * 2 > self.votes.len())
    }
}

impl Ballot {
    /// More than half voted for one severity, and nobody wrote down that it saw it otherwise.
    pub fn is_agreed(&self) -> bool {
        let most = Severity::ALL.map(|severity| self.votes.iter().filter(|v| v.severity == severity).count());
        self.dissent.is_empty() && most.into_iter().max().unwrap_or(0) * 2 > self.votes.len()
    }
}

impl Minutes {
    pub fn is_empty(&self) -> bool {
        *self == Minutes::default()
    }

    /// Votes may raise a severity, never lower it.
    pub fn raise(&self, raised: &mut [Raised]) {
        for ballot in &self.ballots {
            if let (Some(finding), Some(voted)) = (raised.get_mut(ballot.finding), ballot.majority()) {
                finding.severity = finding.severity.min(voted);
            }
        }
    }
}

/// What a parser made of an agent's text.
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
    /// No parser could read it; the message says where it stopped.
    Unreadable {
        message: String,
    },
}

/// An agent's whole reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentReply {
    #[serde(flatten)]
    pub content: Content,
    /// What the parser had to overlook.
    pub remarks: Vec<String>,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// A party's votes, consensus and dissent.
    #[serde(default, skip_serializing_if = "Minutes::is_empty")]
    pub minutes: Box<Minutes>,
    /// The prompt and the output, masked, as blobs.
    pub prompt: Hash,
    pub output: Hash,
    /// How much of it one of the task's recent outputs had already said, in thousandths; none: nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u16>,
    /// What was written past the agent's copy, by it or by somebody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strayed: Vec<Stray>,
    /// The talk, if the client kept it.
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
