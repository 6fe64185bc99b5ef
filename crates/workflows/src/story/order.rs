//! What a story run was asked to do. It is pinned in `run_started` and holds whenever the run is resumed.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{
        check_scripts::ChangedScript,
        concerns::LandingConcern,
        workspace::{DevelopmentPlace, TargetBranch},
    },
    findings::subject::slugify,
    review::{
        level::ReviewLevel,
        order::{FixerSettings, PanelSettings},
    },
    runs::run_kind::RunKind,
    story::{
        event::StoryEvent,
        facts::{StoryName, StoryStage},
        verification::VerificationRules,
    },
    tasks::{
        client::{JobKind, ModelSize},
        instructions::TaskOpening,
    },
};
use tribunal_engine::{
    ids::{CommitId, RunId},
    text::word_table::words,
};

/// The most sessions for one step, and the most rounds of the review, unless another number was chosen.
pub const DEFAULT_MAX_CYCLES: u32 = 5;
/// The message of the commit, unless another one was chosen.
pub const DEFAULT_MESSAGE: &str = "Story {key}: {title}";
/// The name of the one workspace of a story.
pub const WORKSPACE_NAME: &str = "story";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryOrder {
    pub story: StoryName,
    pub files: StoryFilePlan,
    pub steps: Box<StorySteps>,
    pub place: DevelopmentPlace,
    pub branch: TargetBranch,
    pub goal: StoryGoal,
    #[serde(flatten)]
    pub pacing: StoryPacing,
    pub review: Box<StoryReview>,
    #[serde(default)]
    pub rules: VerificationRules,
    #[serde(flatten)]
    pub texts: StoryTexts,
    /// Whether the checks are not run before the first session.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub skip_baseline: bool,
    /// The size of the model that the story is worth; `None` leaves the choice to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<ModelSize>,
}

impl StoryOrder {
    /// What the names of all runs over a story begin with.
    pub fn slug_of(key: &str) -> String {
        format!("story-{}", slugify(key))
    }

    /// The defaults of a run over a story.
    pub fn new(story: StoryName, branch: TargetBranch) -> StoryOrder {
        StoryOrder {
            story,
            files: StoryFilePlan::default(),
            steps: Box::default(),
            place: DevelopmentPlace::Clone,
            branch,
            goal: StoryGoal::default(),
            pacing: StoryPacing::default(),
            review: Box::default(),
            rules: VerificationRules::default(),
            texts: StoryTexts::default(),
            skip_baseline: false,
            size: None,
        }
    }

    /// Lists the files that people edit while stories are developed, and in which every story changes lines of its own.
    pub fn list_mergeable_files(&self) -> Vec<String> {
        self.story.board.iter().chain(&self.files.ledger).cloned().collect()
    }
}

/// What the user has to say about the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryTexts {
    /// The message of the commit, with `{key}`, `{title}` and `{file}`.
    pub message: String,
    /// Remarks to the sprint that the story is a part of, for its agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// What the retrospectives of earlier epics say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
}

impl Default for StoryTexts {
    fn default() -> Self {
        StoryTexts { message: String::from(DEFAULT_MESSAGE), said: Vec::new(), lessons: Vec::new() }
    }
}

/// Which files of the story exist, and what git does with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StoryFilePlan {
    /// The story's file at the start; `None` if it has to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story_file: Option<String>,
    /// Whether git ignores the board: then it is written in the checkout, after the commit.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub board_is_ignored: bool,
    /// Whether git ignores the directory of the stories.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub stories_are_ignored: bool,
    /// The ledger of deferred work, whether it exists or not; `None` if it is not known where it would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// The commit with which the work of a story that waits for its review began: that work is on the branch already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<CommitId>,
}

/// How the steps are run: what a prompt begins with, for each client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StorySteps {
    /// Writes the story's file; `None` if it exists, or if this version of BMAD has no such step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<TaskOpening>,
    pub develop: TaskOpening,
    /// BMAD's own review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_review: Option<TaskOpening>,
    /// Whether the workflow that develops writes a spec of its own and finishes it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub develops_from_spec: bool,
    /// The words that name the story in its command, if they give way to the path of the spec once there is one: the workflow
    /// continues with the spec then, instead of writing another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_until_spec: Option<String>,
}

/// When a story run is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoryGoal {
    /// Developed, verified, reviewed and landed.
    #[default]
    Done,
    /// Developed, verified and landed, and waiting for a review.
    Review,
}

words!(StoryGoal { Done = "done", Review = "review" });

impl StoryGoal {
    pub fn final_stage(self) -> StoryStage {
        match self {
            StoryGoal::Done => StoryStage::Done,
            StoryGoal::Review => StoryStage::Review,
        }
    }
}

/// How many sessions there are, and how long one may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryPacing {
    /// The most sessions for one step, and the most rounds of the review.
    pub max_cycles: u32,
    pub timeout_ms: u64,
}

impl Default for StoryPacing {
    fn default() -> Self {
        StoryPacing { max_cycles: DEFAULT_MAX_CYCLES, timeout_ms: 60 * 60_000 }
    }
}

/// Who reviews a story.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoryReviewMode {
    /// A panel, as a review of the change.
    #[default]
    Cycle,
    /// BMAD's own review.
    Bmad,
    /// BMAD's own review, then a panel.
    Both,
    Off,
}

words!(StoryReviewMode { Cycle = "cycle", Bmad = "bmad", Both = "both", Off = "off" });

impl StoryReviewMode {
    pub fn has_bmad_review(self) -> bool {
        matches!(self, StoryReviewMode::Bmad | StoryReviewMode::Both)
    }

    pub fn has_panel(self) -> bool {
        matches!(self, StoryReviewMode::Cycle | StoryReviewMode::Both)
    }
}

/// How a story is reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryReview {
    pub mode: StoryReviewMode,
    pub level: ReviewLevel,
    #[serde(default)]
    pub panel: PanelSettings,
    #[serde(default)]
    pub fixers: FixerSettings,
}

impl Default for StoryReview {
    fn default() -> Self {
        StoryReview {
            mode: StoryReviewMode::default(),
            level: ReviewLevel::Dual,
            panel: PanelSettings { required_issues: 0, ..PanelSettings::default() },
            fixers: FixerSettings::default(),
        }
    }
}

impl RunKind for StoryOrder {
    const NAME: &'static str = "story";
    const VERSION: u32 = 1;
    type Event = StoryEvent;
    type Summary = StorySummary;
    type Topic = StoryTopic;

    fn title(&self) -> String {
        match self.story.title.as_str() {
            "" => self.story.key.clone(),
            title => format!("{}: {title}", self.story.key),
        }
    }

    fn file_slug(&self) -> String {
        StoryOrder::slug_of(&self.story.key)
    }

    fn exclusive_name(&self) -> Option<String> {
        // Two runs in the user's checkout would commit each other's work, whichever stories they are for.
        Some(match self.place {
            DevelopmentPlace::InPlace => String::from("the checkout"),
            DevelopmentPlace::Clone => format!("story {}", self.story.key),
        })
    }

    fn repeats_one_agent(&self) -> bool {
        true
    }

    fn works_in_place(&self) -> bool {
        self.place == DevelopmentPlace::InPlace
    }

    fn needed_jobs(&self) -> Vec<JobKind> {
        let mut jobs = vec![JobKind::Develop];
        if self.goal == StoryGoal::Done && self.review.mode.has_panel() {
            jobs.extend([JobKind::Review, JobKind::Fix]);
        }
        jobs
    }

    fn trusts_answer_files(&self) -> bool {
        // An agent in the user's checkout could answer for the user.
        self.place == DevelopmentPlace::Clone
    }
}

/// What a story run has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StorySummary {
    /// The last step that was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<StoryStepName>,
    pub sessions: u32,
    /// Sessions that did not do what they should.
    pub refused: u32,
    pub changed_files: u32,
    /// The child runs that reviewed the story.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<RunId>,
    /// Findings that were left for later.
    pub follow_ups: u32,
    /// The commit with the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The later commit with what the user confirmed after the work had landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<CommitId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed_on: Option<String>,
    /// Changed files that decide what checks, hooks and pipelines run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_controls: Vec<String>,
    /// What was questionable about the work, and the user has accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<LandingConcern>,
}

/// The steps of a story, as users see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoryStepName {
    Prepare,
    Create,
    Develop,
    Review,
    Land,
}

words!(StoryStepName {
    Prepare = "prepare",
    Create = "create",
    Develop = "develop",
    Review = "review",
    Land = "land",
});

/// What the questions of a story are about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum StoryTopic {
    /// A limit halted the story.
    StoryHalted,
    /// A step failed as often as it may.
    StoryStuck { step: StoryStepName },
    /// The work cannot be rebased onto the branch.
    StoryConflict { paths: Vec<String> },
    /// The work changes what a check runs.
    StoryChecksChanged { scripts: Vec<ChangedScript> },
    /// Something about the work is questionable.
    StoryQuestionable { concerns: Vec<LandingConcern> },
    /// The work has landed, and the story owes what only a person can do.
    StoryOwes { actions: Vec<String> },
}
