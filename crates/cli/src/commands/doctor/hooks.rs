//! Whether the installed hooks can run: each names a program, which may have been moved or removed since.

use std::fs;

use tribunal_agents::{
    clients::HookFile,
    hook::{
        HookClient,
        install::{self, HookProgram},
    },
};
use tribunal_runner::Project;

use super::{DoctorProblem, new_problem};
use crate::{clients::programs::locate_program, context::CommandContext};

/// Finds hooks of ours in the project that could not start Tribunal. Reviews run without hooks, so these are warnings.
pub(super) fn find_broken_hooks(context: &CommandContext, project: &Project) -> Vec<DoctorProblem> {
    let mut problems = Vec::new();
    for hook_client in HookClient::all() {
        let mut hook_files = vec![hook_client.hooks.hook_file(false), hook_client.hooks.hook_file(true)];
        hook_files.dedup();
        for hook_file in hook_files {
            // A file outside the project is the user's own.
            let (HookFile::Shared(file_path) | HookFile::Own(file_path)) = hook_file else { continue };
            let Ok(file_text) = fs::read_to_string(project.root().join(file_path)) else { continue };
            // A file that cannot be read as hooks has none of ours; `init` explains it.
            let mut hook_programs = install::installed_programs(hook_client, &file_text).unwrap_or_default();
            hook_programs.dedup();
            for hook_program in hook_programs {
                let program = match &hook_program {
                    HookProgram::ByName => "tribunal",
                    HookProgram::ByPath(program_path) => program_path,
                    // Such a hook is silent where the program is missing, which is what it is for.
                    HookProgram::IfInstalled => continue,
                };
                let env_variable = |variable_name: &str| context.env_variable(variable_name);
                if let Err(problem) = locate_program(project.root(), program, &env_variable) {
                    problems.push(new_problem(
                        format!("the hooks in {file_path} cannot run: {}", problem.describe(program)),
                        &[format!("install them again: `{} init`", context.program_name())],
                    ));
                }
            }
        }
    }
    problems
}
