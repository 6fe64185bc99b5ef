//! The steps of BMAD's method, what each is for, and the names that its workflow has had.

use std::fmt;

use tribunal_json::{Serialize, schemars};

use crate::layout::Era;

/// A step of BMAD's method that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BmadStep {
    Brainstorming,
    Research,
    ProductBrief,
    Prd,
    Ux,
    Architecture,
    Epics,
    TestDesign,
    Readiness,
    SprintPlanning,
    SprintStatus,
    CreateStory,
    DevStory,
    CodeReview,
    Retrospective,
    Trace,
    Party,
    TechSpec,
    QuickDev,
    CorrectCourse,
    DocumentProject,
    ProjectContext,
    ForgeIdea,
    Prfaq,
    #[serde(rename = "advanced-elicitation")]
    Elicitation,
    #[serde(rename = "review")]
    Lenses,
    Walkthrough,
    #[serde(rename = "qa-generate-e2e-tests")]
    EndToEndTests,
    Customize,
    Help,
}

/// One name that a step has had: the workflow, the argument behind it, and the only era in which the name means this step.
pub(crate) struct WorkflowName {
    pub(crate) workflow: &'static str,
    pub(crate) argument: &'static str,
    pub(crate) only_era: Option<Era>,
}

const fn named_workflow(workflow_id: &'static str) -> WorkflowName {
    WorkflowName { workflow: workflow_id, argument: "", only_era: None }
}

const fn late_workflow(workflow_id: &'static str, argument: &'static str) -> WorkflowName {
    WorkflowName { workflow: workflow_id, argument, only_era: Some(Era::D) }
}

/// What is known about a step.
struct StepFacts {
    name: &'static str,
    purpose: &'static str,
    /// The names of its workflow, today's first: the first one with an entry point is used.
    workflows: &'static [WorkflowName],
}

const fn step_facts(name: &'static str, purpose: &'static str, workflows: &'static [WorkflowName]) -> StepFacts {
    StepFacts { name, purpose, workflows }
}

impl BmadStep {
    /// All steps in the order of the method; the ones beside it come last.
    pub const ALL: [BmadStep; 30] = [
        BmadStep::Brainstorming,
        BmadStep::Research,
        BmadStep::ProductBrief,
        BmadStep::Prd,
        BmadStep::Ux,
        BmadStep::Architecture,
        BmadStep::Epics,
        BmadStep::TestDesign,
        BmadStep::Readiness,
        BmadStep::SprintPlanning,
        BmadStep::SprintStatus,
        BmadStep::CreateStory,
        BmadStep::DevStory,
        BmadStep::CodeReview,
        BmadStep::Retrospective,
        BmadStep::Trace,
        BmadStep::Party,
        BmadStep::TechSpec,
        BmadStep::QuickDev,
        BmadStep::CorrectCourse,
        BmadStep::DocumentProject,
        BmadStep::ProjectContext,
        BmadStep::ForgeIdea,
        BmadStep::Prfaq,
        BmadStep::Elicitation,
        BmadStep::Lenses,
        BmadStep::Walkthrough,
        BmadStep::EndToEndTests,
        BmadStep::Customize,
        BmadStep::Help,
    ];

    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// What the step is for, as one phrase.
    pub fn purpose_text(self) -> &'static str {
        self.facts().purpose
    }

    /// The step of a name: Tribunal's own or that of its workflow in any era, so `bmad-create-prd`, `create-prd` and `prd`
    /// are one.
    pub fn from_name(step_name: &str) -> Option<BmadStep> {
        let step_name = step_name.trim().trim_start_matches('/');
        // Entry points of the first era have colons: `/bmad:bmm:workflows:create-prd`.
        let step_name = step_name.rsplit(':').next().unwrap_or(step_name);
        let step_name = step_name.strip_prefix("bmad-").unwrap_or(step_name);
        let step_name = step_name.strip_prefix("bmm-").unwrap_or(step_name);
        let has_workflow_name = |step: &BmadStep| {
            step.workflow_names()
                .iter()
                .any(|workflow_name| workflow_name.only_era.is_none() && workflow_name.workflow == step_name)
        };
        // Tribunal's own names win over those of workflows.
        BmadStep::ALL
            .into_iter()
            .find(|step| step.as_str() == step_name)
            .or_else(|| BmadStep::ALL.into_iter().find(has_workflow_name))
            .or_else(|| (step_name == "build-auto").then_some(BmadStep::DevStory))
            .or_else(|| (step_name == "build").then_some(BmadStep::QuickDev))
    }

    /// The names that its workflow has had, today's name first.
    pub(crate) fn workflow_names(self) -> &'static [WorkflowName] {
        self.facts().workflows
    }

    fn facts(self) -> &'static StepFacts {
        match self {
            BmadStep::Brainstorming => &BRAINSTORMING,
            BmadStep::Research => &RESEARCH,
            BmadStep::ProductBrief => &PRODUCT_BRIEF,
            BmadStep::Prd => &PRD,
            BmadStep::Ux => &UX,
            BmadStep::Architecture => &ARCHITECTURE,
            BmadStep::Epics => &EPICS,
            BmadStep::TestDesign => &TEST_DESIGN,
            BmadStep::Readiness => &READINESS,
            BmadStep::SprintPlanning => &SPRINT_PLANNING,
            BmadStep::SprintStatus => &SPRINT_STATUS,
            BmadStep::CreateStory => &CREATE_STORY,
            BmadStep::DevStory => &DEV_STORY,
            BmadStep::CodeReview => &CODE_REVIEW,
            BmadStep::Retrospective => &RETROSPECTIVE,
            BmadStep::Trace => &TRACE,
            BmadStep::Party => &PARTY,
            BmadStep::TechSpec => &TECH_SPEC,
            BmadStep::QuickDev => &QUICK_DEV,
            BmadStep::CorrectCourse => &CORRECT_COURSE,
            BmadStep::DocumentProject => &DOCUMENT_PROJECT,
            BmadStep::ProjectContext => &PROJECT_CONTEXT,
            BmadStep::ForgeIdea => &FORGE_IDEA,
            BmadStep::Prfaq => &PRFAQ,
            BmadStep::Elicitation => &ELICITATION,
            BmadStep::Lenses => &LENSES,
            BmadStep::Walkthrough => &WALKTHROUGH,
            BmadStep::EndToEndTests => &END_TO_END_TESTS,
            BmadStep::Customize => &CUSTOMIZE,
            BmadStep::Help => &HELP,
        }
    }
}

impl fmt::Display for BmadStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

// One constant for each step, since a table in the `match` would hide which line belongs to which step.
const BRAINSTORMING: StepFacts = step_facts("brainstorming", "collects ideas", &[named_workflow("brainstorming")]);
const RESEARCH: StepFacts = step_facts(
    "research",
    "researches a market, a domain or a technology",
    &[named_workflow("deep-recon"), named_workflow("research"), named_workflow("domain-research")],
);
const PRODUCT_BRIEF: StepFacts = step_facts(
    "product-brief",
    "writes the product brief",
    &[named_workflow("product-brief"), named_workflow("create-product-brief")],
);
const PRD: StepFacts =
    step_facts("prd", "writes the requirements", &[named_workflow("prd"), named_workflow("create-prd")]);
const UX: StepFacts =
    step_facts("ux", "designs the user interface", &[named_workflow("ux"), named_workflow("create-ux-design")]);
const ARCHITECTURE: StepFacts = step_facts(
    "architecture",
    "writes the architecture",
    &[named_workflow("architecture"), named_workflow("create-architecture")],
);
const EPICS: StepFacts = step_facts(
    "epics",
    "splits the requirements into epics and stories",
    &[named_workflow("create-epics-and-stories")],
);
const TEST_DESIGN: StepFacts = step_facts("test-design", "plans the tests", &[named_workflow("testarch-test-design")]);
const READINESS: StepFacts = step_facts(
    "readiness",
    "checks that the plan is ready to be built",
    &[named_workflow("check-implementation-readiness"), late_workflow("sprint-planning", "readiness")],
);
const SPRINT_PLANNING: StepFacts =
    step_facts("sprint-planning", "writes the board of the sprint", &[named_workflow("sprint-planning")]);
const SPRINT_STATUS: StepFacts = step_facts(
    "sprint-status",
    "summarizes the sprint",
    &[named_workflow("sprint-status"), late_workflow("sprint-planning", "status")],
);
const CREATE_STORY: StepFacts =
    step_facts("create-story", "writes the file of the next story", &[named_workflow("create-story")]);
const DEV_STORY: StepFacts =
    step_facts("dev-story", "develops a story", &[late_workflow("build-auto", ""), named_workflow("dev-story")]);
const CODE_REVIEW: StepFacts =
    step_facts("code-review", "reviews the changes of a story", &[named_workflow("code-review")]);
const RETROSPECTIVE: StepFacts = step_facts(
    "retrospective",
    "looks back at an epic",
    &[late_workflow("retrospective", "-H"), named_workflow("retrospective")],
);
const TRACE: StepFacts = step_facts("trace", "traces requirements to tests", &[named_workflow("testarch-trace")]);
const PARTY: StepFacts =
    step_facts("party", "discusses a subject with several agents", &[named_workflow("party-mode")]);
const TECH_SPEC: StepFacts = step_facts(
    "tech-spec",
    "writes the spec of a small change",
    &[named_workflow("quick-spec"), named_workflow("create-tech-spec"), named_workflow("spec")],
);
const QUICK_DEV: StepFacts = step_facts(
    "quick-dev",
    "develops a small change without a story",
    &[late_workflow("build", ""), named_workflow("quick-dev")],
);
const CORRECT_COURSE: StepFacts =
    step_facts("correct-course", "changes the plan in the middle of a sprint", &[named_workflow("correct-course")]);
const DOCUMENT_PROJECT: StepFacts = step_facts(
    "document-project",
    "documents an existing code base",
    &[named_workflow("document-project"), late_workflow("project-context", "")],
);
const PROJECT_CONTEXT: StepFacts = step_facts(
    "project-context",
    "writes the rules that agents follow in this project",
    &[named_workflow("project-context"), named_workflow("generate-project-context")],
);
const FORGE_IDEA: StepFacts = step_facts(
    "forge-idea",
    "tests an idea by questions until it holds or is dropped",
    &[named_workflow("forge-idea")],
);
const PRFAQ: StepFacts =
    step_facts("prfaq", "tests a product idea by its press release and hard questions", &[named_workflow("prfaq")]);
const ELICITATION: StepFacts = step_facts(
    "advanced-elicitation",
    "improves the last answer with a method of critique",
    &[named_workflow("advanced-elicitation")],
);
const LENSES: StepFacts = step_facts(
    "review",
    "reviews a change or a document through chosen lenses",
    &[named_workflow("review"), named_workflow("review-adversarial-general")],
);
const WALKTHROUGH: StepFacts = step_facts(
    "walkthrough",
    "leads you through the review of a change",
    &[named_workflow("walkthrough"), named_workflow("checkpoint-preview")],
);
const END_TO_END_TESTS: StepFacts = step_facts(
    "qa-generate-e2e-tests",
    "generates tests of finished features",
    &[named_workflow("qa-generate-e2e-tests"), named_workflow("testarch-automate")],
);
const CUSTOMIZE: StepFacts =
    step_facts("customize", "changes how installed skills and agents behave", &[named_workflow("customize")]);
const HELP: StepFacts =
    step_facts("help", "answers questions about the method and recommends the next step", &[named_workflow("help")]);
