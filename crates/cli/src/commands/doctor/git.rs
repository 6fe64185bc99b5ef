//! Whether git can be used here. Files can be reviewed without it, changes cannot, so problems are warnings.

use std::{path::Path, time::Duration};

use tribunal_runner::git::{GitError, check_repository};

use super::{DoctorProblem, new_problem, problem_from_error};
use crate::{
    clients::{
        client_probe::ask_git_version,
        programs::{ProgramProblem, locate_program},
    },
    context::CommandContext,
    messages::user_errors::UserError,
};

/// Returns the version of git, if it answers, and what is wrong with it or with the project's repository.
pub(super) fn examine_git(
    context: &CommandContext,
    project_root: &Path,
    timeout: Duration,
) -> (Option<String>, Option<DoctorProblem>) {
    let git_path = match locate_program(project_root, "git", &|variable_name| context.env_variable(variable_name)) {
        Ok(git_path) => git_path,
        // The report has a line for a missing git.
        Err(ProgramProblem::NotFound { .. }) => return (None, None),
        Err(problem) => {
            let remedies = [problem.suggest_fix("git", "PATH")];
            return (None, Some(new_problem(problem.describe("git"), &remedies)));
        }
    };
    let Some(git_version) = ask_git_version(&git_path, timeout) else {
        let remedies = ["check that git works: `git --version`".to_string()];
        return (None, Some(new_problem(format!("{} does not report its version", git_path.display()), &remedies)));
    };
    // A project need not be in a repository.
    let git_warning = match check_repository(project_root) {
        Ok(()) | Err(GitError::NoRepository { .. } | GitError::BareRepository { .. }) => None,
        Err(git_error) => Some(problem_from_error(&UserError::from(git_error))),
    };
    (Some(git_version), git_warning)
}
