//! Where commands that develop let agents work: the branch of the result, and whether the checkout is clean.

use tribunal_engine::own_folders::OwnFolders;
use tribunal_runner::{
    Project,
    git::heads::{self, CurrentHead},
};
use tribunal_workflows::development::workspace::TargetBranch;

use crate::{context::CommandContext, messages::user_errors::UserError};

/// How messages name what is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkWords {
    /// As the subject of a sentence: `A loop`.
    pub subject: &'static str,
    /// The command: `loop run`.
    pub command: &'static str,
}

/// Chooses the branch that the work begins with and lands on.
pub(super) fn choose_branch(
    project: &Project,
    typed_branch: Option<&str>,
    words: WorkWords,
    context: &CommandContext,
) -> Result<TargetBranch, UserError> {
    let head = heads::read_head(project.root()).map_err(|cause| {
        UserError::from(cause).with_reason(format!("{} works on a git branch. Nothing was started.", words.subject))
    })?;
    let program_name = context.program_name();
    let head_commit = match (&head, typed_branch) {
        (CurrentHead::Unborn { name }, _) => {
            return Err(UserError::usage(format!("the branch {name} has no commit yet"))
                .with_reason(format!("{} begins with a commit. Nothing was started.", words.subject))
                .with_step("make a first commit: `git add -A && git commit -m \"Begin\"`"));
        }
        (CurrentHead::Detached { commit }, None) => {
            return Err(UserError::usage(format!("HEAD is detached at {}", commit.short_hex()))
                .with_reason("The result lands on a branch. Nothing was started.")
                .with_step("check out a branch: `git switch main`")
                .with_step(format!("or name one for the result: `{program_name} {} --branch NAME`", words.command)));
        }
        (CurrentHead::Detached { commit } | CurrentHead::Branch { commit, .. }, _) => commit.clone(),
    };
    let Some(branch_name) = typed_branch else {
        return match head {
            CurrentHead::Branch { name, .. } => Ok(TargetBranch { name, created_at: None }),
            CurrentHead::Unborn { .. } | CurrentHead::Detached { .. } => Err(UserError::usage("HEAD is on no branch")),
        };
    };
    if !heads::is_branch_name(project.root(), branch_name)? {
        return Err(UserError::usage(format!("`{branch_name}` is not a valid branch name")));
    }
    let created_at = match heads::find_branch(project.root(), branch_name)? {
        Some(_) => None,
        None => Some(head_commit),
    };
    Ok(TargetBranch { name: branch_name.to_string(), created_at })
}

/// Refuses to work in a checkout with changes of the user: they would become part of its commits. Reports of Tribunal would not.
pub(super) fn check_clean_checkout(project: &Project, own_folders: &OwnFolders) -> Result<(), UserError> {
    let mut uncommitted = heads::list_uncommitted(project.root())?;
    uncommitted.retain(|path| !own_folders.is_report(path));
    let Some(files_text) = describe_files(&uncommitted) else { return Ok(()) };
    Err(UserError::usage(format!("your checkout has uncommitted changes: {files_text}"))
        .with_reason("With --in-place agents work in your checkout, which must be clean. Nothing was started.")
        .with_step("commit them or put them aside: `git stash`")
        .with_step("or leave out --in-place: agents then work in a private clone"))
}

/// Names the first file and counts the others; `None` if there are none.
pub(super) fn describe_files(file_names: &[String]) -> Option<String> {
    match file_names {
        [] => None,
        [only_file] => Some(only_file.clone()),
        [first_file, others @ ..] => Some(format!("{first_file} and {} more", others.len())),
    }
}
