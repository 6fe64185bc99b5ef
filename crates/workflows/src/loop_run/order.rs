//! What a loop was asked to do. It is pinned in `run_started` and holds whenever the run is resumed.

use alloc::{format, string::String, vec, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{
        check_scripts::ChangedScript,
        concerns::LandingConcern,
        workspace::{DevelopmentPlace, TargetBranch},
    },
    findings::subject::slugify,
    loop_run::{breaker::BreakerSettings, event::LoopEvent},
    review::{level::ReviewLevel, order::PanelSettings},
    runs::run_kind::RunKind,
    tasks::client::JobKind,
};
use tribunal_engine::{
    ids::CommitId,
    text::{truncate_chars, word_table::words},
};

/// The text that an agent says between `<promise>` and `</promise>`, unless another one was chosen.
pub const DEFAULT_PROMISE: &str = "COMPLETE";
/// The most iterations, unless another number was chosen.
pub const DEFAULT_MAX_ITERATIONS: u32 = 100;
/// The most iterations that can be chosen.
pub const MAX_ITERATIONS_LIMIT: u32 = 100_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoopOrder {
    /// The task, as every new session gets it.
    pub prompt: String,
    /// The file of the project that the task was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_file: Option<String>,
    pub completion: CompletionRule,
    pub place: DevelopmentPlace,
    pub branch: TargetBranch,
    #[serde(flatten)]
    pub pacing: LoopPacing,
    /// Whether the checks are not run before the first iteration.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub skip_baseline: bool,
    /// A file of the project in which its agents keep notes already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratchpad: Option<String>,
    #[serde(default)]
    pub breaker: BreakerSettings,
    #[serde(default)]
    pub review: LoopReview,
}

impl LoopOrder {
    /// The defaults of a loop over a task.
    pub fn new(prompt: impl Into<String>, branch: TargetBranch) -> LoopOrder {
        LoopOrder {
            prompt: prompt.into(),
            prompt_file: None,
            completion: CompletionRule::default(),
            place: DevelopmentPlace::Clone,
            branch,
            pacing: LoopPacing::default(),
            skip_baseline: false,
            scratchpad: None,
            breaker: BreakerSettings::default(),
            review: LoopReview::default(),
        }
    }
}

/// How many iterations there are, and how they follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoopPacing {
    pub max_iterations: u32,
    /// How long one iteration may take.
    pub timeout_ms: u64,
    /// Whether an iteration continues the client's session of the last one; if not, each begins a new one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub continue_session: bool,
    /// A session whose last answer is older than this is not continued.
    pub session_expiry_hours: u32,
    /// A commit is made after so many iterations.
    pub checkpoint_interval: u32,
}

impl Default for LoopPacing {
    fn default() -> Self {
        LoopPacing {
            max_iterations: DEFAULT_MAX_ITERATIONS,
            timeout_ms: 60 * 60_000,
            continue_session: false,
            session_expiry_hours: 24,
            checkpoint_interval: 5,
        }
    }
}

/// What counts as the claim that the task is done. Whether it is, the checks decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CompletionRule {
    /// The text of the promise.
    pub promise: String,
    /// The word `LOOP_COMPLETE` in the answer is a claim, too.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub accepts_word: bool,
    /// A ticked box `TASK_COMPLETE` in this file is a claim, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkbox_file: Option<String>,
    /// A plan whose boxes decide: the task is done when all of them are ticked, and not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_file: Option<String>,
}

impl Default for CompletionRule {
    fn default() -> Self {
        CompletionRule {
            promise: String::from(DEFAULT_PROMISE),
            accepts_word: false,
            checkbox_file: None,
            plan_file: None,
        }
    }
}

impl CompletionRule {
    /// The files of the workspace that have to be read after every iteration.
    pub fn watched_files(&self) -> Vec<String> {
        self.plan_file.iter().chain(&self.checkbox_file).cloned().collect()
    }
}

/// When a loop has its changes reviewed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewMode {
    #[default]
    Off,
    /// Every few iterations.
    Enhanced,
    /// Whenever a task of the plan was completed.
    Ultimate,
}

words!(ReviewMode { Off = "off", Enhanced = "enhanced", Ultimate = "ultimate" });

/// How a loop has its changes reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoopReview {
    #[serde(default)]
    pub mode: ReviewMode,
    /// The iterations between two reviews, in the mode `enhanced`.
    pub interval: u32,
    pub level: ReviewLevel,
    #[serde(default)]
    pub panel: PanelSettings,
}

impl Default for LoopReview {
    fn default() -> Self {
        // One reviewer: a loop is reviewed often, and what one pass misses the next one sees.
        LoopReview {
            mode: ReviewMode::Off,
            interval: 5,
            level: ReviewLevel::Minimal,
            panel: PanelSettings { required_issues: 0, ..PanelSettings::default() },
        }
    }
}

impl RunKind for LoopOrder {
    const NAME: &'static str = "loop";
    const VERSION: u32 = 1;
    type Event = LoopEvent;
    type Summary = LoopSummary;
    type Topic = LoopTopic;

    fn title(&self) -> String {
        match &self.prompt_file {
            Some(prompt_file) => prompt_file.clone(),
            // A prompt may be long; its beginning is enough to recognise it.
            None => truncate_chars(self.prompt.lines().next().unwrap_or_default().trim(), 60),
        }
    }

    fn notice_title(&self) -> String {
        format!("loop over {}", self.title())
    }

    fn file_slug(&self) -> String {
        match &self.prompt_file {
            Some(prompt_file) => format!(
                "loop-{}",
                slugify(prompt_file.rsplit('/').next().unwrap_or(prompt_file).trim_end_matches(".md"))
            ),
            None => String::from("loop"),
        }
    }

    fn exclusive_name(&self) -> Option<String> {
        // Two loops in the user's checkout would commit each other's work. Clones do not meet until they land.
        (self.place == DevelopmentPlace::InPlace).then(|| String::from("the checkout"))
    }

    fn repeats_one_agent(&self) -> bool {
        true
    }

    fn works_in_place(&self) -> bool {
        self.place == DevelopmentPlace::InPlace
    }

    fn needed_jobs(&self) -> Vec<JobKind> {
        match self.review.mode {
            ReviewMode::Off => vec![JobKind::Loop],
            ReviewMode::Enhanced | ReviewMode::Ultimate => vec![JobKind::Loop, JobKind::Review],
        }
    }

    fn trusts_answer_files(&self) -> bool {
        // An agent in the user's checkout could answer for the user.
        self.place == DevelopmentPlace::Clone
    }
}

/// What a loop has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LoopSummary {
    pub iterations: u32,
    /// How often the agent said that it was done and was not.
    pub refused: u32,
    /// How many files differ from the commit that the work began with.
    pub changed_files: u32,
    /// How many commits the work has.
    pub commits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanProgress>,
    /// The last commit of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<CommitId>,
    /// Where the work landed; `None` if it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed_on: Option<String>,
    /// What was questionable about the work, and the user has accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<LandingConcern>,
}

/// How many boxes of a plan are ticked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanProgress {
    pub done: u32,
    pub total: u32,
}

impl PlanProgress {
    /// Whether everything is ticked. A plan without boxes is not complete: nothing says so.
    pub fn is_complete(self) -> bool {
        self.total > 0 && self.done == self.total
    }
}

/// What the questions of a loop are about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum LoopTopic {
    /// A limit or the circuit breaker halted the loop.
    LoopHalted,
    /// The work cannot be rebased onto the branch.
    LoopConflict { paths: Vec<String> },
    /// The work changes what a check runs.
    LoopChecksChanged { scripts: Vec<ChangedScript> },
    /// Something about the work is questionable.
    LoopQuestionable { concerns: Vec<LandingConcern> },
}
