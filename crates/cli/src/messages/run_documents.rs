//! The JSON form of a run in a list.

use tribunal_engine::{
    event::ParentRun,
    ids::{AgentName, FindingId, Key, RunId},
    timestamp::Timestamp,
};
use tribunal_json::{Serialize, schemars};
use tribunal_report::{
    ActiveWork,
    tables::{RunDetails, RunStanding},
};
use tribunal_workflows::{
    findings::{agent_role::AgentRole, counts::FindingCounts, subject::Subject},
    review::confidence::Confidence,
    runs::{types::RunSummary, view::RunView},
};

/// A run in a list.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RunRow {
    pub run: Option<RunId>,
    /// The kind of run, for instance `review`.
    pub kind: &'static str,
    /// What it works on.
    pub title: String,
    /// The run that started it, and the name that it has there; only child runs have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// The state: running, crashed, stopped, or the outcome.
    pub state: String,
    pub started: Timestamp,
    /// What only a review has.
    #[serde(flatten)]
    pub review: Option<ReviewRow>,
    pub last: Option<RunSummary>,
    /// Agents at their usage limit for which the run is waiting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<AwaitedAgent>,
    #[serde(flatten)]
    pub now: RunActivity,
    /// Commands that the user may want to type next.
    pub next: Vec<String>,
}

/// The part of a row that only reviews have.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ReviewRow {
    pub subject: Subject,
    pub rounds: u32,
    pub findings: FindingCounts,
    /// The confidence after the last round; none before the first round has ended.
    pub confidence: Option<Confidence>,
    pub tracker: Option<String>,
}

impl ReviewRow {
    fn from_view(run_view: &RunView) -> Option<ReviewRow> {
        let review = run_view.as_review()?;
        Some(ReviewRow {
            subject: review.review_order()?.subject.clone(),
            rounds: review.rounds,
            findings: run_view.finding_counts(),
            confidence: review.confidence.clone(),
            tracker: review.tracker_path.clone(),
        })
    }
}

/// What happens in a run right now; only in `tribunal status`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct RunActivity {
    /// What a running run is working on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub working: Vec<WorkRow>,
    /// Messages of the user that no agent has got yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undelivered: Vec<String>,
}

/// A piece of work under way.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct WorkRow {
    /// What is done, in words.
    pub description: String,
    pub key: Key,
    /// The agent; null if Tribunal works itself.
    pub agent: Option<AgentName>,
    pub role: Option<AgentRole>,
    /// The findings that a fixer or a challenger works on.
    pub findings: Vec<FindingId>,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
}

impl RunActivity {
    pub fn from_details(run_details: &RunDetails) -> RunActivity {
        let to_row = |active_work: &ActiveWork| WorkRow {
            description: active_work.description.clone(),
            key: active_work.effect_key.clone(),
            agent: active_work.agent.clone(),
            role: active_work.role,
            findings: active_work.findings.clone(),
            started_ms: active_work.started_ms,
        };
        RunActivity {
            working: run_details.active_work.iter().map(to_row).collect(),
            undelivered: run_details.undelivered.iter().map(ToString::to_string).collect(),
        }
    }
}

/// An agent that cannot be asked yet.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct AwaitedAgent {
    pub agent: AgentName,
    /// When it can be asked again, in milliseconds since 1970.
    pub until_ms: u64,
}

impl RunRow {
    pub fn from_standing(run_standing: &RunStanding<'_>, program_name: &str) -> RunRow {
        let run_view = run_standing.run_view;
        RunRow {
            run: run_view.run_id.clone(),
            state: run_standing.state_name().to_string(),
            kind: run_view.kind_name(),
            title: run_view.title(),
            parent: run_view.parent.clone(),
            started: run_view.start_time,
            review: ReviewRow::from_view(run_view),
            last: run_view.run_summary().cloned(),
            awaits: run_view
                .limited_agents()
                .map(|(agent, until_ms)| AwaitedAgent { agent: agent.clone(), until_ms })
                .collect(),
            now: RunActivity::default(),
            next: tribunal_report::suggest_next_steps(run_standing, program_name),
        }
    }
}
