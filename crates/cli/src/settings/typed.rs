//! Every setting that has one value for a whole command, as a typed field with its default.
//!
//! The default of a setting is the `Default` of its field and is written nowhere else. Fields that a run is pinned to belong
//! to `workflows`, the others are here. The rows of [`super::table`] say which setting fills which field, and [`super::codec`]
//! converts between the two. Settings with a name in their path (`agents.NAME.model`) have no field here: there is one value
//! for each name, none of them has a default, and the code that builds the agents reads them by their paths.

use std::{num::NonZeroUsize, time::Duration};

use tribunal_engine::limits::{LimitShare, RunLimits};
use tribunal_guard::GuardPolicy;
use tribunal_report::DisplayMode;
use tribunal_workflows::{
    development::{checks::CommandLine, workspace::TargetBranch},
    findings::{agent_role::AgentRole, finding::Severity, subject::Subject},
    loop_run::order::LoopOrder,
    review::order::ReviewOrder,
    runs::{plan::RunPlan, settings::Settings},
    story::{facts::StoryName, order::StoryOrder},
};

/// All settings as typed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedSettings {
    /// What every run is pinned to. [`super::resolve`] adds its agents and the directory of its files.
    pub run: Settings,
    /// Commands of the short form of checks. [`super::resolve`] adds them to the checks of the run.
    pub verify: Vec<CommandLine>,
    /// What a review is pinned to in addition. [`super::resolve`] adds its subject.
    pub review: ReviewOrder,
    /// What a headless loop is pinned to in addition. The command adds its task and its branch.
    pub loop_run: LoopOrder,
    pub development: DevelopmentSettings,
    /// Limits of the command, not of the run; they are not pinned.
    pub share: ThroughputLimits,
    /// How much is shown. It is not pinned either: every start of a run may show as much as it likes.
    pub progress: DisplayMode,
    /// Which findings make a command fail; `None` leaves the exit code to the outcome. It is not pinned either.
    pub fail_on: Option<Severity>,
    /// Whether reviews may start. It is not pinned either.
    pub is_review_enabled: bool,
    pub hooks: HookSettings,
    pub folders: FolderSettings,
    pub agents: AgentChoice,
}

impl Default for TypedSettings {
    fn default() -> Self {
        TypedSettings {
            run: Settings::default(),
            verify: Vec::new(),
            // The subject is a placeholder; resolving replaces it.
            review: ReviewOrder::new(Subject::from_path("", None)),
            // So are the task and the branch.
            loop_run: LoopOrder::new("", TargetBranch { name: String::new(), created_at: None }),
            development: DevelopmentSettings::default(),
            share: ThroughputLimits::default(),
            progress: DisplayMode::default(),
            fail_on: None,
            is_review_enabled: true,
            hooks: HookSettings::default(),
            folders: FolderSettings::default(),
            agents: AgentChoice::default(),
        }
    }
}

/// Further settings of runs that develop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DevelopmentSettings {
    pub loop_choices: LoopChoices,
    /// What the run of a story is pinned to. The command adds the story and its branch.
    pub story: StoryOrder,
    pub sprint: SprintChoices,
}

/// What a sprint does besides its stories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SprintChoices {
    /// What one story may use.
    pub story_share: LimitShare,
    /// Whether a retrospective is held at the end of an epic.
    pub holds_retrospectives: bool,
}

impl Default for SprintChoices {
    fn default() -> Self {
        SprintChoices { story_share: RunLimits::for_development().as_share(), holds_retrospectives: true }
    }
}

impl Default for DevelopmentSettings {
    fn default() -> Self {
        let branch = TargetBranch { name: String::new(), created_at: None };
        DevelopmentSettings {
            loop_choices: LoopChoices::default(),
            story: StoryOrder::new(StoryName::from_key(""), branch),
            sprint: SprintChoices::default(),
        }
    }
}

/// Choices about loops that depend on the prompt file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoopChoices {
    /// Whether a ticked box in the prompt file counts like the promise.
    pub accepts_checkbox: bool,
}

/// How the runs of one command share agents and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThroughputLimits {
    /// Runs at the same time.
    pub jobs: NonZeroUsize,
    /// Agents at the same time, of all runs together.
    pub agents: NonZeroUsize,
    /// Calls of agents per hour, of all runs of the user: what the limits of the run say.
    pub calls: NonZeroUsize,
}

impl Default for ThroughputLimits {
    fn default() -> Self {
        let shared = ThroughputLimits { jobs: to_nonzero(3), agents: to_nonzero(6), calls: NonZeroUsize::MIN };
        shared.with_call_limit(RunLimits::default().calls_per_hour)
    }
}

const fn to_nonzero(count: usize) -> NonZeroUsize {
    // `unwrap` is not allowed here, and the defaults are never zero.
    match NonZeroUsize::new(count) {
        Some(count) => count,
        None => NonZeroUsize::MIN,
    }
}

impl ThroughputLimits {
    /// The same with another number of calls per hour.
    pub fn with_call_limit(self, calls_per_hour: u32) -> ThroughputLimits {
        ThroughputLimits { calls: NonZeroUsize::new(calls_per_hour as usize).unwrap_or(self.calls), ..self }
    }

    /// The same with the calls per hour of these runs, the fewest of them: runs are resumed with the limits that they are pinned to.
    pub fn with_limits_of(self, plans: &[RunPlan]) -> ThroughputLimits {
        let fewest_calls = plans.iter().map(|plan| plan.settings.limits.calls_per_hour).min();
        fewest_calls.map_or(self, |calls_per_hour| self.with_call_limit(calls_per_hour))
    }

    /// The smaller limit of each kind, for runs of several projects.
    pub fn stricter_of(self, other_limits: ThroughputLimits) -> ThroughputLimits {
        ThroughputLimits {
            jobs: self.jobs.min(other_limits.jobs),
            agents: self.agents.min(other_limits.agents),
            calls: self.calls.min(other_limits.calls),
        }
    }

    /// Limits the number of jobs to the number of runs.
    pub fn with_jobs_capped_at(self, run_count: usize) -> ThroughputLimits {
        // Zero runs do not occur; the limit then stays as it is.
        ThroughputLimits {
            jobs: NonZeroUsize::new(run_count).map_or(self.jobs, |run_count| self.jobs.min(run_count)),
            ..self
        }
    }
}

/// What hooks need to know at every step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HookSettings {
    pub guard: GuardPolicy,
    /// After this time without a sign of life a session is given up.
    pub stale_after: Duration,
}

impl Default for HookSettings {
    fn default() -> Self {
        HookSettings { guard: GuardPolicy::default(), stale_after: Duration::from_secs(24 * 3600) }
    }
}

/// Directories as they were written. [`super::resolve`] checks them against the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderSettings {
    pub output: Option<String>,
    pub reviews: Option<String>,
}

/// What applies to all agents, and which of them take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentChoice {
    pub used: Option<Vec<String>>,
    /// Those of a run that goes on. They stay if the user names none, as far as there still are such agents.
    pub kept: Vec<String>,
    /// Whether agents continue their sessions; otherwise every task starts a fresh one.
    pub continue_sessions: bool,
    pub fixer_model: Option<String>,
    pub seat_models: SeatModels,
}

/// Models for seats of a panel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeatModels {
    /// For every reviewer without a model of its own.
    pub reviewer: Option<String>,
    pub party: Option<String>,
    pub elicitation: Option<String>,
}

impl SeatModels {
    pub fn for_role(&self, role: AgentRole) -> Option<&String> {
        let own_model = match role {
            AgentRole::Party => self.party.as_ref(),
            AgentRole::Elicitation => self.elicitation.as_ref(),
            AgentRole::Spec | AgentRole::Quality | AgentRole::Adversarial => None,
            AgentRole::Fixer | AgentRole::Challenger | AgentRole::Judge => return None,
        };
        own_model.or(self.reviewer.as_ref())
    }
}

impl Default for AgentChoice {
    fn default() -> Self {
        AgentChoice {
            used: None,
            kept: Vec::new(),
            continue_sessions: true,
            fixer_model: None,
            seat_models: SeatModels::default(),
        }
    }
}
