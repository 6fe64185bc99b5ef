//! Finds where a branch is checked out, and whether the user is in the middle of something there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{WorkspaceError, special_files::tree_path, user_repository::UserRepository};
use crate::git::{
    WORK_TIMEOUT,
    layout::{HeadState, RepositoryLayout},
    run_git, to_trimmed_text,
};

/// What git leaves in its directory while the user is in the middle of something, and how the user finishes that.
const OPERATIONS: [(&str, &str, &str); 5] = [
    ("MERGE_HEAD", "a merge", "`git commit`, or `git merge --abort`"),
    ("CHERRY_PICK_HEAD", "a cherry-pick", "`git cherry-pick --continue`, or `git cherry-pick --abort`"),
    ("REVERT_HEAD", "a revert", "`git revert --continue`, or `git revert --abort`"),
    ("rebase-merge", "a rebase", "`git rebase --continue`, or `git rebase --abort`"),
    ("rebase-apply", "a rebase", "`git rebase --continue`, or `git rebase --abort`"),
];

/// A checkout of the target branch.
pub(super) struct BranchCheckout {
    pub path: PathBuf,
}

/// A work tree of the repository that has a branch checked out, or none.
struct ListedTree {
    path: PathBuf,
    /// The branch; `None` if HEAD is detached.
    branch_ref: Option<String>,
}

/// Finds the checkout of a branch, in the user's directory or in another work tree. Refuses to interfere with an operation that
/// the user has not finished there.
pub(super) fn find_checkout(
    repository: &UserRepository,
    branch_ref: &str,
) -> Result<Option<BranchCheckout>, WorkspaceError> {
    let mut found_checkout = None;
    for ListedTree { path, branch_ref: own_branch } in list_work_trees(repository)? {
        if own_branch.as_ref().is_some_and(|own_branch| own_branch != branch_ref) {
            continue;
        }
        // The list may name a directory that is gone, or that belongs to another repository by now.
        let Some(git_dir) = find_own_git_dir(repository, &path) else { continue };
        // A rebase detaches HEAD, and moves the branch at its end.
        if own_branch.is_none() && !is_rebasing(&git_dir, branch_ref) {
            continue;
        }
        refuse_unfinished_operation(&path, &git_dir)?;
        if own_branch.is_some() && found_checkout.is_none() {
            found_checkout = Some(BranchCheckout { path });
        }
    }
    Ok(found_checkout)
}

fn list_work_trees(repository: &UserRepository) -> Result<Vec<ListedTree>, WorkspaceError> {
    let layout = &repository.layout;
    if has_one_work_tree(layout) {
        let branch_ref = match &layout.head {
            HeadState::Branch { ref_name, .. } | HeadState::Unborn { ref_name } => Some(ref_name.clone()),
            HeadState::Detached { .. } => None,
        };
        return Ok(vec![ListedTree { path: layout.work_tree_top.clone(), branch_ref }]);
    }
    let listing = repository.query(["worktree", "list", "--porcelain", "-z"])?;
    let mut current_path = None;
    let mut trees = Vec::new();
    for line in listing.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            current_path = Some(tree_path(Path::new(""), path));
        }
        let own_branch = line.strip_prefix(b"branch ").map(|name| String::from_utf8_lossy(name).into_owned());
        if let Some(path) = current_path.as_ref().filter(|_| own_branch.is_some() || line == b"detached") {
            trees.push(ListedTree { path: path.clone(), branch_ref: own_branch });
        }
    }
    Ok(trees)
}

/// Whether the repository has no other work tree. Git itself names the directory of the repository where `.git` is a file that leads
/// there, as in a submodule.
fn has_one_work_tree(layout: &RepositoryLayout) -> bool {
    let others_dir = layout.common_dir.join("worktrees");
    let has_no_others = match fs::read_dir(&others_dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(cause) => cause.kind() == io::ErrorKind::NotFound,
    };
    has_no_others && layout.git_dir == layout.common_dir
}

/// The run waits for what the user has begun. A lock is not the user's to finish: its process may be gone.
fn refuse_unfinished_operation(work_tree: &Path, git_dir: &Path) -> Result<(), WorkspaceError> {
    let place = work_tree.display();
    let is_begun = |file_name: &str| git_dir.join(file_name).exists();
    if let Some((_, operation, commands)) = OPERATIONS.iter().find(|(file_name, _, _)| is_begun(file_name)) {
        return Err(WorkspaceError::new_not_ready(format!(
            "{operation} is in progress in {place}; finish it with {commands}, then resume"
        )));
    }
    if is_begun("index.lock") {
        return Err(WorkspaceError::Refused {
            message: format!("another git command is in progress in {place}; finish it first"),
            command: Some("git status"),
        });
    }
    Ok(())
}

fn is_rebasing(git_dir: &Path, branch_ref: &str) -> bool {
    ["rebase-merge/head-name", "rebase-apply/head-name"]
        .iter()
        .any(|file_name| fs::read_to_string(git_dir.join(file_name)).is_ok_and(|name| name.trim() == branch_ref))
}

/// Returns the git directory of a work tree, if it belongs to this repository.
fn find_own_git_dir(repository: &UserRepository, work_tree: &Path) -> Option<PathBuf> {
    let layout = &repository.layout;
    if work_tree == layout.work_tree_top {
        return Some(layout.git_dir.clone());
    }
    let mut command = repository.checkout_command(work_tree);
    command.args(["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"]);
    let output = run_git(command, None, WORK_TIMEOUT).ok().filter(|output| output.succeeded)?;
    let output_text = to_trimmed_text(&output.stdout);
    let (git_dir, common_dir) = output_text.split_once('\n')?;
    let is_same = Path::new(common_dir).canonicalize().ok()? == layout.common_dir.canonicalize().ok()?;
    is_same.then(|| PathBuf::from(git_dir))
}
