//! The typed task that an agent gets, and its typed answer.
//!
//! A template in `agents` turns a brief into a prompt, and the parser there turns the agent's text into an answer. This
//! module only defines the meaning of both.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::workspace::WorkspaceState,
    findings::{
        agent_role::AgentRole,
        finding::{Evidence, Finding, Severity},
        seat_plan::SeatPlan,
        subject::Subject,
    },
    tasks::{
        background::TaskBackground,
        claims::{ChallengerRuling, FixClaim, PartRuling, UnknownWord},
        client::{JobKind, ModelSize},
        instructions::{AgentQuestion, InstructionBrief},
        party_minutes::PartyMinutes,
        purpose::{AgentAccess, ExpectedAnswer, TaskPurpose},
        status_report::{StatusReport, TurnReport},
    },
};
use tribunal_engine::{
    files::{Patch, StrayEdit},
    ids::{AgentName, FindingId, Hash, Key},
    limits::{AgentUsage, Cost},
};

/// The most findings that one challenger gets in one task.
pub const CHALLENGE_BATCH_SIZE: usize = 10;

/// What an agent is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "brief", rename_all = "snake_case")]
pub enum TaskBrief {
    /// A task of a review: it has a role and a subject.
    Review(Box<ReviewBrief>),
    /// A task without a subject: the workflow says in its own words what to do.
    Instructions(InstructionBrief),
}

impl TaskBrief {
    pub fn as_review(&self) -> Option<&ReviewBrief> {
        match self {
            TaskBrief::Review(review_brief) => Some(review_brief),
            TaskBrief::Instructions(_) => None,
        }
    }

    /// Whether the prompt begins with a command of this client.
    pub fn has_command_for(&self, client: &str) -> bool {
        match self {
            TaskBrief::Review(_) => false,
            TaskBrief::Instructions(brief) => {
                brief.opening.as_ref().is_some_and(|opening| opening.command_for(client).is_some())
            }
        }
    }

    /// Returns the findings that the task is about: those to repair or to dispute.
    pub fn finding_ids(&self) -> Vec<FindingId> {
        let Some(ReviewBrief { assigned, disputed, .. }) = self.as_review() else { return Vec::new() };
        assigned.iter().map(|finding| finding.id).chain(disputed.iter().map(|finding| finding.id)).collect()
    }

    /// Returns what the user told the run.
    pub fn user_remarks(&self) -> &[String] {
        match self {
            TaskBrief::Review(review_brief) => &review_brief.said,
            TaskBrief::Instructions(instructions) => &instructions.said,
        }
    }

    /// Returns what was wrong with the last answer; empty if nothing was.
    pub fn correction_text(&self) -> &str {
        match self {
            TaskBrief::Review(review_brief) => &review_brief.correction,
            TaskBrief::Instructions(instructions) => &instructions.correction,
        }
    }

    pub fn set_correction(&mut self, problem: String) {
        match self {
            TaskBrief::Review(review_brief) => review_brief.correction = problem,
            TaskBrief::Instructions(instructions) => instructions.correction = problem,
        }
    }
}

impl From<ReviewBrief> for TaskBrief {
    fn from(review_brief: ReviewBrief) -> TaskBrief {
        TaskBrief::Review(Box::new(review_brief))
    }
}

impl From<InstructionBrief> for TaskBrief {
    fn from(instructions: InstructionBrief) -> TaskBrief {
        TaskBrief::Instructions(instructions)
    }
}

/// What an agent of a review is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewBrief {
    pub role: AgentRole,
    pub subject: Subject,
    pub round: u32,
    /// The least number of findings that a reviewer should raise (0: it may raise none).
    pub required: u32,
    /// The known findings, one line each; a reviewer need not raise them again.
    pub known: Vec<String>,
    /// The findings that a fixer has to repair.
    pub assigned: Vec<AssignedFinding>,
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
    pub disputed: Vec<FindingToChallenge>,
    /// How to go about the task; `Plain` lets the template pick a plan from the text.
    #[serde(default, skip_serializing_if = "SeatPlan::is_plain")]
    pub plan: SeatPlan,
    #[serde(default, skip_serializing_if = "TaskBackground::is_empty")]
    pub surroundings: Box<TaskBackground>,
}

impl ReviewBrief {
    /// Makes a brief whose optional parts are all empty.
    pub fn new(role: AgentRole, subject: Subject, round: u32) -> ReviewBrief {
        ReviewBrief {
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
            plan: SeatPlan::Plain,
            surroundings: Box::default(),
        }
    }
}

/// One finding as a challenger sees it: its claim, its place and its evidence, but not who raised it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FindingToChallenge {
    pub id: FindingId,
    pub severity: Severity,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

impl FindingToChallenge {
    pub fn from_finding(finding: &Finding) -> FindingToChallenge {
        FindingToChallenge {
            id: finding.id,
            severity: finding.severity,
            description: finding.description.clone(),
            evidence: finding.evidence.clone(),
            place: finding.place.as_ref().map(|location| format!("{location}")).unwrap_or_default(),
        }
    }
}

/// One finding as a fixer sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AssignedFinding {
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "copy", rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// The agent reads its own copy of what the effect with this key has frozen.
    Frozen { by: Key },
    /// The agent writes in a private copy of the current project; the difference becomes a patch.
    Private,
    /// The agent writes in a workspace for development, which was opened under this name and is kept.
    Development { workspace: String },
}

/// A brief for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentTask {
    pub agent: AgentName,
    /// What the task is for: it decides which agents and models are chosen.
    pub job: JobKind,
    pub expects: ExpectedAnswer,
    pub brief: TaskBrief,
    pub place: WorkspaceKind,
    pub timeout_ms: u64,
    /// Earlier outputs that were given in the same state. A new output that repeats one of them makes no progress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<Hash>,
    /// The size of the model that the task is worth; `None` leaves the choice to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ModelSize>,
    /// The most that the task may cost, for clients that accept a budget: run limits are only checked between tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Cost>,
    /// The most weighted tokens that the task may use. They are counted while it works, for clients that accept no budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The session to continue; `None` starts a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<AgentSession>>,
    /// Files of a workspace for development whose checkboxes are counted after the task, relative to the project's root. `None`
    /// if the workspace is not to be read: the workflow reads it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collect: Option<Vec<String>>,
}

impl AgentTask {
    pub fn new(
        agent: AgentName,
        purpose: TaskPurpose,
        brief: impl Into<TaskBrief>,
        place: WorkspaceKind,
        timeout_ms: u64,
    ) -> AgentTask {
        let TaskPurpose { job, expects } = purpose;
        AgentTask {
            agent,
            job,
            expects,
            brief: brief.into(),
            place,
            timeout_ms,
            recent: Vec::new(),
            size: None,
            budget: None,
            max_tokens: None,
            session: None,
            collect: None,
        }
    }

    /// Makes a task of a review. The role says what it is for.
    pub fn for_review(agent: AgentName, brief: ReviewBrief, place: WorkspaceKind, timeout_ms: u64) -> AgentTask {
        AgentTask::new(agent, brief.role.task_purpose(), brief, place, timeout_ms)
    }

    /// Returns what the agent may do: its job must be to write, and the workspace must be its own.
    pub fn workspace_access(&self) -> AgentAccess {
        match self.place {
            _ if self.job.duty_group() != JobKind::Fix => AgentAccess::Read,
            WorkspaceKind::Frozen { .. } => AgentAccess::Read,
            WorkspaceKind::Private => AgentAccess::Write,
            WorkspaceKind::Development { .. } => AgentAccess::Develop,
        }
    }

    /// Whether the agent may change its workspace.
    pub fn can_write(&self) -> bool {
        self.workspace_access() >= AgentAccess::Write
    }

    /// Returns a name for the agent by what it does: its role in a review, else its job.
    pub fn worker_name(&self) -> &'static str {
        self.brief.as_review().map_or(self.job.as_str(), |review_brief| review_brief.role.as_str())
    }
}

/// A session with an agent that its client has kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentSession {
    pub id: String,
    /// The usage of the whole session so far: clients report running totals.
    pub total: AgentUsage,
    /// The wall time of the last answer in the session.
    pub at_ms: u64,
}

impl AgentSession {
    /// Clients drop old sessions, and what was said a day ago is about another text.
    pub const MAX_AGE_MS: u64 = 24 * 3_600_000;

    pub fn is_fresh(&self, current_ms: u64) -> bool {
        // A clock that was set back makes the session look new; the client reports an expired session itself.
        current_ms.saturating_sub(self.at_ms) < AgentSession::MAX_AGE_MS
    }
}

/// A finding as a reviewer raised it: a claim that is not yet grounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RaisedFinding {
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

impl PartyMinutes {
    /// Raises severities to what the votes say. Votes never lower a severity.
    pub fn raise_severities(&self, raised_findings: &mut [RaisedFinding]) {
        for ballot in &self.ballots {
            if let (Some(finding), Some(majority)) =
                (raised_findings.get_mut(ballot.finding), ballot.majority_severity_floor())
            {
                // The smaller value is the more severe one.
                finding.severity = finding.severity.min(majority);
            }
        }
    }
}

/// What the parser understood of an agent's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum AnswerContent {
    Findings {
        raised: Vec<RaisedFinding>,
    },
    Fixes {
        claims: Vec<FixClaim>,
        /// The findings whose status is an unknown word.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<UnknownWord>,
    },
    Rulings {
        rulings: Vec<ChallengerRuling>,
        /// What a judge says about the parts of a change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PartRuling>,
        /// The findings whose verdict is an unknown word.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<UnknownWord>,
    },
    /// How the agent says its work went.
    Status(Box<StatusReport>),
    /// The agent waits for an answer to a question or a menu.
    Question(Box<AgentQuestion>),
    /// What the agent said, at most [`crate::tasks::instructions::MAX_TEXT_CHARS`].
    Text {
        text: String,
    },
    /// What the agent said at the end of a turn of development.
    Turn(Box<TurnReport>),
    /// The text has nothing of what was expected that the parser can use; the message says why.
    Unreadable {
        message: String,
    },
}

/// The complete reply of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentReply {
    #[serde(flatten)]
    pub content: AnswerContent,
    /// What the parser had to ignore, one line each.
    pub remarks: Vec<String>,
    pub usage: AgentUsage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// The votes, the consensus and the dissent of a party.
    #[serde(default, skip_serializing_if = "PartyMinutes::is_empty")]
    pub minutes: Box<PartyMinutes>,
    /// The hashes of the masked prompt and the masked output, which are stored as blobs.
    pub prompt: Hash,
    pub output: Hash,
    /// Where the prompt was sent, if another endpoint than the default of the vendor was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// How much of the output repeats one of the task's recent outputs, in thousandths; `None` if it was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u16>,
    /// Edits outside the agent's workspace, by the agent or by another process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strayed: Vec<StrayEdit>,
    /// The session, if the client kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<AgentSession>>,
    /// What the agent left in the workspace for development in which it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Box<WorkspaceState>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::party_minutes::{SeverityBallot, SeverityVote};

    #[test]
    fn a_brief_leaves_out_its_empty_optional_parts() {
        let brief = ReviewBrief::new(AgentRole::Adversarial, Subject::from_path("a.md", None), 1);
        assert_eq!(
            serde_json::to_string(&brief).unwrap(),
            concat!(
                r#"{"role":"adversarial","subject":{"subject":"document","path":"a.md"},"#,
                r#""round":1,"required":0,"known":[],"assigned":[],"said":[]}"#
            )
        );
    }

    #[test]
    fn a_brief_without_a_subject_says_what_it_is() {
        let brief = TaskBrief::from(InstructionBrief::new("Write the story."));
        let json = r#"{"brief":"instructions","text":"Write the story."}"#;
        assert_eq!(serde_json::to_string(&brief).unwrap(), json);
        assert_eq!(serde_json::from_str::<TaskBrief>(json).unwrap(), brief);
        let review_brief = ReviewBrief::new(AgentRole::Fixer, Subject::from_path("a.md", None), 2);
        let brief = TaskBrief::from(review_brief);
        assert_eq!(serde_json::from_str::<TaskBrief>(&serde_json::to_string(&brief).unwrap()).unwrap(), brief);
    }

    #[test]
    fn an_agent_runs_commands_only_for_development() {
        let development = WorkspaceKind::Development { workspace: "loop".into() };
        let frozen = WorkspaceKind::Frozen { by: Key::new("freeze") };
        for (job, place, expected) in [
            (JobKind::Loop, development.clone(), AgentAccess::Develop),
            (JobKind::Develop, development.clone(), AgentAccess::Develop),
            (JobKind::CreateStory, development.clone(), AgentAccess::Develop),
            (JobKind::CodeReview, development.clone(), AgentAccess::Read),
            (JobKind::Judge, development, AgentAccess::Read),
            (JobKind::Fix, WorkspaceKind::Private, AgentAccess::Write),
            (JobKind::Review, WorkspaceKind::Private, AgentAccess::Read),
            (JobKind::Develop, frozen, AgentAccess::Read),
        ] {
            let purpose = TaskPurpose { job, expects: ExpectedAnswer::Turn };
            let task = AgentTask::new(AgentName::new("a"), purpose, InstructionBrief::new("x"), place.clone(), 1);
            assert_eq!(task.workspace_access(), expected, "{job} {place:?}");
            assert_eq!(task.can_write(), expected != AgentAccess::Read);
        }
    }

    fn ballot_with_votes(severities: &[Severity]) -> SeverityBallot {
        let votes = severities.iter().map(|severity| SeverityVote { persona: "x".into(), severity: *severity });
        SeverityBallot { finding: 0, votes: votes.collect(), dissent: String::new() }
    }

    #[test]
    fn votes_raise_a_severity_when_more_than_half_agree() {
        use Severity::{Critical, High, Low, Medium};
        for (raised_as, votes, expected) in [
            (Medium, &[][..], Medium),
            (Medium, &[High, High, Low], High),
            (Medium, &[Critical, High, Low], High),
            (Medium, &[Critical, Low], Medium),
            (High, &[Low, Low, Low], High),
            (Low, &[Critical, Critical, Critical], Critical),
        ] {
            let mut raised = [RaisedFinding {
                severity: raised_as,
                category: String::new(),
                description: String::new(),
                evidence: Evidence::Quote { text: String::new() },
                file: None,
                line: None,
                suggested_fix: String::new(),
            }];
            PartyMinutes { ballots: alloc::vec![ballot_with_votes(votes)], ..PartyMinutes::default() }
                .raise_severities(&mut raised);
            assert_eq!(raised[0].severity, expected, "{raised_as} with {votes:?}");
        }
    }
}
