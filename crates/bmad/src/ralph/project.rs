//! Which files make a project of bmalph or ralph-orchestrator. What is in them is read by the neighbouring modules.

use tribunal_json::{Serialize, schemars};

use super::orchestrator_config::{self, OrchestratorConfig};
use crate::{
    problem::FileProblem,
    project_files::{self, ProjectFiles, is_readable},
};

/// Where the plan is written in a project that has none.
const NEW_PLAN_PATH: &str = ".ralph/@fix_plan.md";

/// The plan's places, today's first; the oldest projects have it at their root.
const PLAN_PATHS: [&str; 4] = [NEW_PLAN_PATH, ".ralph/fix_plan.md", "@fix_plan.md", "fix_plan.md"];

/// The prompt beside a plan.
pub const FIX_PLAN_PROMPT: &str = ".ralph/PROMPT.md";

const ROOT_PROMPT: &str = "PROMPT.md";

const SETTINGS_PATHS: [&str; 2] = [".ralph/.ralphrc", ".ralphrc"];

const CONFIG_PATHS: [&str; 2] = ["ralph.yml", "ralph.yaml"];

const SCRATCHPAD_PATH: &str = ".agent/scratchpad.md";

/// The files of one project, as paths relative to its root; `None` where there is no such file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RalphProject {
    pub kind: RalphProjectKind,
    pub prompt: Option<String>,
    pub plan: Option<String>,
    /// `.ralphrc`, for [`super::settings::read_ralph_settings`].
    pub settings: Option<String>,
    /// `ralph.yml` and what it says.
    pub config_path: Option<String>,
    pub config: OrchestratorConfig,
    pub scratchpad: Option<String>,
    /// What is wrong with the set of files, and with `ralph.yml`.
    #[serde(skip)]
    pub problems: Vec<FileProblem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RalphProjectKind {
    /// bmalph: a plan whose boxes say what is done.
    FixPlan,
    /// ralph-orchestrator: a prompt, and the agent says when it is done.
    Orchestrator,
}

/// Where the plan of a project is, and the prompt that a loop over it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixPlanPlace {
    /// The path of the plan, or where one would be written.
    pub plan: String,
    pub prompt: Option<String>,
}

/// Finds the place of the plan, in the order in which a loop looks for it.
pub fn locate_fix_plan(project_files: &dyn ProjectFiles) -> FixPlanPlace {
    FixPlanPlace {
        plan: find_plan(project_files).unwrap_or_else(|| NEW_PLAN_PATH.to_string()),
        prompt: find_first(project_files, &[FIX_PLAN_PROMPT, ROOT_PROMPT]),
    }
}

fn find_plan(project_files: &dyn ProjectFiles) -> Option<String> {
    // A file of this name at the root is a plan only beside a prompt: other tools use the name, too.
    find_first(project_files, &PLAN_PATHS[..3]).or_else(|| {
        is_readable(project_files, ROOT_PROMPT).then(|| find_first(project_files, &PLAN_PATHS[3..])).flatten()
    })
}

/// The first of these paths that can be read.
fn find_first(project_files: &dyn ProjectFiles, paths: &[&str]) -> Option<String> {
    paths.iter().find(|path| is_readable(project_files, path)).map(ToString::to_string)
}

/// Finds the files; `None` if this is neither kind of project.
pub fn find_ralph_project(project_files: &dyn ProjectFiles) -> Option<RalphProject> {
    let first_existing = |paths: &[&str]| find_first(project_files, paths);
    let mut problems = Vec::new();
    let config_path = first_existing(&CONFIG_PATHS);
    let config = match &config_path {
        Some(config_path) => {
            let config_text = project_files::read_or_report(project_files, config_path, &mut problems);
            orchestrator_config::read_orchestrator_config(&config_text.unwrap_or_default(), config_path)
        }
        None => OrchestratorConfig::default(),
    };
    let plan = find_plan(project_files);
    let has_own_prompt = is_readable(project_files, FIX_PLAN_PROMPT);
    let (kind, prompt) = if plan.is_some() || has_own_prompt {
        (RalphProjectKind::FixPlan, first_existing(&[FIX_PLAN_PROMPT, ROOT_PROMPT]))
    } else {
        let named_prompt = config.prompt_file.as_deref().unwrap_or(ROOT_PROMPT);
        (RalphProjectKind::Orchestrator, first_existing(&[named_prompt]))
    };
    if plan.is_none() && prompt.is_none() && config_path.is_none() {
        return None;
    }
    problems.extend(config.problems.iter().cloned());
    problems.extend(find_missing_files(kind, plan.as_deref(), prompt.as_deref(), &config));
    let settings = first_existing(&SETTINGS_PATHS);
    if SETTINGS_PATHS.iter().all(|path| is_readable(project_files, path)) {
        let message = format!("not read, since there is {} as well", SETTINGS_PATHS[0]);
        problems.push(FileProblem::note("ralphrc-twice", SETTINGS_PATHS[1], message));
    }
    let scratchpad = first_existing(&[SCRATCHPAD_PATH]);
    Some(RalphProject { kind, prompt, plan, settings, config_path, config, scratchpad, problems })
}

fn find_missing_files(
    kind: RalphProjectKind,
    plan: Option<&str>,
    prompt: Option<&str>,
    config: &OrchestratorConfig,
) -> Vec<FileProblem> {
    let mut problems = Vec::new();
    if prompt.is_none() {
        let wanted_path = match kind {
            RalphProjectKind::FixPlan => FIX_PLAN_PROMPT,
            RalphProjectKind::Orchestrator => config.prompt_file.as_deref().unwrap_or(ROOT_PROMPT),
        };
        let problem = FileProblem::error("ralph-prompt-missing", wanted_path, "there is no prompt file")
            .with_advice("write the prompt to this file");
        problems.push(problem);
    }
    if kind == RalphProjectKind::FixPlan && plan.is_none() {
        let problem =
            FileProblem::warning("fix-plan-missing", NEW_PLAN_PATH, "there is a prompt but no plan beside it")
                .with_reason("Without a plan only the agent says when the work is done.")
                .with_advice("write each task as a line `- [ ] task` to this file, or run `tribunal loop plan`");
        problems.push(problem);
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project_files::InMemoryFiles;

    fn find_project(paths: &[&str]) -> Option<RalphProject> {
        let files = paths.iter().map(|path| match path.split_once('=') {
            Some((path, text)) => (path, text),
            None => (*path, "text"),
        });
        find_ralph_project(&InMemoryFiles::from_files(files))
    }

    fn render_project(project: &RalphProject) -> String {
        let show = |path: &Option<String>| path.clone().unwrap_or_else(|| "-".into());
        let problems: Vec<String> = project.problems.iter().map(ToString::to_string).collect();
        format!(
            "{:?} {} {} {} {} {}",
            project.kind,
            show(&project.prompt),
            show(&project.plan),
            show(&project.settings),
            show(&project.scratchpad),
            problems.join(" ")
        )
    }

    #[test]
    fn the_files_say_what_kind_of_project_it_is() {
        for (paths, expected) in [
            (
                &[".ralph/@fix_plan.md", ".ralph/PROMPT.md", "PROMPT.md", ".ralph/.ralphrc", ".agent/scratchpad.md"][..],
                "FixPlan .ralph/PROMPT.md .ralph/@fix_plan.md .ralph/.ralphrc .agent/scratchpad.md ",
            ),
            (
                &[".ralph/fix_plan.md", ".ralph/PROMPT.md", ".ralphrc"],
                "FixPlan .ralph/PROMPT.md .ralph/fix_plan.md .ralphrc - ",
            ),
            (&["@fix_plan.md", "PROMPT.md"], "FixPlan PROMPT.md @fix_plan.md - - "),
            (&["PROMPT.md"], "Orchestrator PROMPT.md - - - "),
            (&["ralph.yml=prompt_file: task.md", "task.md"], "Orchestrator task.md - - - "),
            (
                &["ralph.yaml=hats: 1"],
                "Orchestrator - - - - ralph.yaml:1: hats is not a setting that Tribunal uses; ignored PROMPT.md: there is \
                 no prompt file",
            ),
            (
                &[".ralph/@fix_plan.md", ".ralphrc", ".ralph/.ralphrc"],
                "FixPlan - .ralph/@fix_plan.md .ralph/.ralphrc - .ralph/PROMPT.md: there is no prompt file .ralphrc: not \
                 read, since there is .ralph/.ralphrc as well",
            ),
            (
                &[".ralph/PROMPT.md"],
                "FixPlan .ralph/PROMPT.md - - - .ralph/@fix_plan.md: there is a prompt but no plan beside it",
            ),
        ] {
            assert_eq!(render_project(&find_project(paths).unwrap()), expected, "{paths:?}");
        }
    }

    #[test]
    fn a_plan_is_written_where_a_loop_reads_it() {
        for (paths, plan, prompt) in [
            (&["README.md"][..], ".ralph/@fix_plan.md", None),
            (&[".ralph/PROMPT.md", "PROMPT.md"], ".ralph/@fix_plan.md", Some(".ralph/PROMPT.md")),
            (&["@fix_plan.md"], "@fix_plan.md", None),
            (&["@fix_plan.md", ".ralph/fix_plan.md"], ".ralph/fix_plan.md", None),
            (&["fix_plan.md"], ".ralph/@fix_plan.md", None),
            (&["fix_plan.md", "PROMPT.md"], "fix_plan.md", Some("PROMPT.md")),
        ] {
            let place = locate_fix_plan(&InMemoryFiles::from_files(paths.iter().map(|path| (*path, "text"))));
            assert_eq!((place.plan.as_str(), place.prompt.as_deref()), (plan, prompt), "{paths:?}");
        }
    }

    #[test]
    fn other_projects_are_not_taken_for_one() {
        for paths in
            [&["README.md"][..], &["fix_plan.md"], &[".ralphrc"], &["docs/PROMPT.md"], &[".agent/scratchpad.md"]]
        {
            assert_eq!(find_project(paths), None, "{paths:?}");
        }
    }
}
