//! Projects of bmalph and ralph-orchestrator: their plan, their settings and their notes, as far as a loop uses them.

use tribunal_runner::Project;

use crate::{
    context::CommandContext,
    messages::user_errors::UserError,
    settings::{ResolvedLoop, RunInputs},
};

/// What such a project says about its loops. Everything is empty for other projects.
#[derive(Debug, Default)]
pub(super) struct RalphProject {
    plan_file: Option<String>,
    scratchpad: Option<String>,
}

/// The places of a plan, in the order in which they are looked for.
const PLAN_FILES: [&str; 3] = [".ralph/@fix_plan.md", ".ralph/fix_plan.md", "@fix_plan.md"];
/// The notes of ralph-orchestrator.
const SCRATCHPAD: &str = ".agent/scratchpad.md";

impl RalphProject {
    /// Reads the files of the project. A task that was typed, or that is in another file, has no plan.
    pub fn read_project(
        project: &Project,
        prompt_file: Option<&str>,
        _: &CommandContext,
    ) -> Result<RalphProject, UserError> {
        let is_plan_prompt =
            prompt_file.is_some_and(|prompt_file| matches!(prompt_file, ".ralph/PROMPT.md" | "PROMPT.md"));
        let exists = |relative_path: &&&str| project.root().join(relative_path).is_file();
        let plan_file = PLAN_FILES.iter().find(exists).filter(|_| is_plan_prompt).map(|plan| (*plan).to_string());
        let scratchpad = Some(SCRATCHPAD).filter(|scratchpad| project.root().join(scratchpad).is_file());
        Ok(RalphProject { plan_file, scratchpad: scratchpad.map(String::from) })
    }

    /// Adds what the project sets, below everything that the user sets.
    pub fn add_flags(&self, run_inputs: RunInputs) -> RunInputs {
        run_inputs
    }

    /// Adds what no setting has.
    pub fn apply_to(&self, resolved: &mut ResolvedLoop) -> Result<(), UserError> {
        let order = &mut resolved.settings.plan.order;
        order.completion.plan_file.clone_from(&self.plan_file);
        order.scratchpad.clone_from(&self.scratchpad);
        Ok(())
    }
}
