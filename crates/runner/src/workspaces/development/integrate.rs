//! Moves the user's branch to the work, and the checkout of that branch with it.
//!
//! The branch moves only from where it is expected to be, in one atomic step. A checkout of it follows as with
//! `git merge --ff-only`, but only if no file that would change has uncommitted content of the user's: modified,
//! staged, untracked or ignored. Otherwise nothing of the user's is touched, and the work waits on a branch of its own. Files of
//! bookkeeping are an exception, see [`super::merged_edits`]. The files move before the branch: a process that ends in between leaves
//! the work as staged changes, and the next one continues.

use std::{collections::BTreeSet, fs, path::Path};

use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::{
    commits::{Integrate, IntegrateOutcome},
    parking::name_files,
    workspace::{DevelopmentPlace, PathChange},
};

use super::{
    DevelopmentWorkspace, WorkspaceError,
    branch_checkout::{BranchCheckout, find_checkout},
    changed_scripts::find_changed_scripts,
    concerns::{WorkInspection, WorkStanding},
    file_component,
    git_listings::{TreeDifference, parse_raw_diff, parse_status},
    merged_edits::MergedEdits,
    special_files::tree_path,
    user_repository::{UserRepository, find_filtered_paths, join_with_nul},
};
use crate::{
    git::{WORK_TIMEOUT, run_checked, run_git, to_trimmed_text},
    masking::Masker,
};

/// Integrates the work of a workspace.
pub(crate) fn integrate_work(
    workspace: &DevelopmentWorkspace,
    request: &Integrate,
    masker: &Masker,
) -> Result<IntegrateOutcome, WorkspaceError> {
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    let Integrate { branch, expected, commit, .. } = request;
    let branch_ref = format!("refs/heads/{}", branch.name);
    let checkout = find_checkout(&repository, &branch_ref)?;
    let Some(tip) = repository.find_commit(&branch_ref)? else {
        return match request.only_looks {
            true => Err(refuse_gone_branch(request)),
            false => create_branch(&WorkInspection::new(&repository, workspace, request, masker), &branch_ref),
        };
    };
    if request.only_looks {
        return Ok(IntegrateOutcome::Moved { tip });
    }
    let inspection = WorkInspection::new(&repository, workspace, request, masker);
    match inspection.compare_with(&tip)? {
        // An earlier process may have moved it, and the user may have gone on from there.
        WorkStanding::Landed => return Ok(IntegrateOutcome::Integrated { checkout_moved: checkout.is_some() }),
        _ if tip != *expected => {
            // While the work still begins where it did, the user can take such a commit off the branch again.
            let concerns = inspection.find_commits_during_work(&tip)?;
            return Ok(match concerns.is_empty() || request.gate.is_open {
                true => IntegrateOutcome::Moved { tip },
                false => IntegrateOutcome::Questionable { concerns },
            });
        }
        WorkStanding::Follows => {}
        WorkStanding::Unrelated => {
            let message = format!("the commit {} does not follow {}", commit.short_hex(), expected.short_hex());
            return Err(WorkspaceError::new_refusal(message));
        }
    }
    inspection.refuse_unverified()?;
    if let Some(stopped) = stop_questionable_work(&inspection)? {
        return Ok(stopped);
    }
    let Some(checkout) = checkout else {
        return move_branch(&repository, &branch_ref, request, false);
    };
    if workspace.record.place == DevelopmentPlace::InPlace {
        return integrate_in_place(&inspection, &checkout, &branch_ref);
    }
    let mut merged_edits = MergedEdits::new(&repository, &checkout.path, &workspace.record.prefix, request);
    let obstacles = find_obstacles(&repository, &checkout, inspection.list_changes()?, &mut merged_edits)?;
    if !obstacles.blocking.is_empty() {
        return wait_on_branch(&repository, workspace, commit, obstacles.blocking);
    }
    stage_identical_files(&repository, &checkout, &obstacles.identical)?;
    if let Err(paths) = move_checkout(&repository, &checkout, &mut merged_edits)? {
        merged_edits.put_back()?;
        return wait_on_branch(&repository, workspace, commit, paths);
    }
    let outcome = move_branch(&repository, &branch_ref, request, true)?;
    if let IntegrateOutcome::Moved { .. } = outcome {
        // The user moved the branch in the meantime, so the files go back to where they were.
        merged_edits.put_back()?;
        let _ = move_files(&repository, &checkout, commit, expected, MoveMode::Move)?;
    }
    Ok(outcome)
}

/// Moves index and files to the work, with the edits of the user's that it can be merged into. Returns the files that are in the way.
fn move_checkout(
    repository: &UserRepository,
    checkout: &BranchCheckout,
    merged_edits: &mut MergedEdits<'_>,
) -> Result<Result<(), Vec<String>>, WorkspaceError> {
    let request = merged_edits.request;
    let (expected, commit) = (&request.expected, &request.commit);
    // Git itself looks at all files before it changes the first one.
    if merged_edits.is_empty() {
        return move_files(repository, checkout, expected, commit, MoveMode::Move);
    }
    merged_edits.stage_new_files()?;
    if let Err(paths) = move_files(repository, checkout, expected, commit, MoveMode::DryRun)? {
        return Ok(Err(paths));
    }
    let refused_paths = merged_edits.write_merged_files();
    if !refused_paths.is_empty() {
        return Ok(Err(refused_paths));
    }
    move_files(repository, checkout, expected, commit, MoveMode::Move)
}

/// Returns the outcome for work that must not land without a further look: it changes what a check runs, or is questionable.
fn stop_questionable_work(inspection: &WorkInspection<'_>) -> Result<Option<IntegrateOutcome>, WorkspaceError> {
    let WorkInspection { repository, request, workspace, .. } = *inspection;
    let concerns = inspection.find_concerns()?;
    if !concerns.is_empty() {
        return Ok(Some(IntegrateOutcome::Questionable { concerns }));
    }
    if request.unchanged_checks.is_empty() {
        return Ok(None);
    }
    let scripts = find_changed_scripts(repository, request, inspection.list_changes()?, &workspace.record.prefix);
    Ok(if scripts.is_empty() { None } else { Some(IntegrateOutcome::ChecksChanged { scripts }) })
}

fn create_branch(inspection: &WorkInspection<'_>, branch_ref: &str) -> Result<IntegrateOutcome, WorkspaceError> {
    let WorkInspection { repository, request, .. } = *inspection;
    if request.branch.created_at.is_none() {
        return Err(refuse_gone_branch(request));
    }
    inspection.refuse_unverified()?;
    if let Some(stopped) = stop_questionable_work(inspection)? {
        return Ok(stopped);
    }
    if repository.move_ref(branch_ref, &request.commit, None)? {
        return Ok(IntegrateOutcome::Integrated { checkout_moved: false });
    }
    let tip = repository.find_commit(branch_ref)?;
    tip.map(|tip| IntegrateOutcome::Moved { tip })
        .ok_or_else(|| WorkspaceError::new_refusal(format!("could not create the branch `{}`", request.branch.name)))
}

fn move_branch(
    repository: &UserRepository,
    branch_ref: &str,
    request: &Integrate,
    checkout_moved: bool,
) -> Result<IntegrateOutcome, WorkspaceError> {
    if repository.move_ref(branch_ref, &request.commit, Some(&request.expected))? {
        return Ok(IntegrateOutcome::Integrated { checkout_moved });
    }
    match repository.find_commit(branch_ref)? {
        Some(tip) => Ok(IntegrateOutcome::Moved { tip }),
        None => Err(refuse_gone_branch(request)),
    }
}

/// The run waits until the user has put the branch back to where the work begins: it is not ours to make anew what they deleted.
fn refuse_gone_branch(request: &Integrate) -> WorkspaceError {
    let (branch_name, commit) = (&request.branch.name, request.expected.short_hex());
    WorkspaceError::new_not_ready(format!(
        "the branch `{branch_name}` is gone; put it back with `git branch {branch_name} {commit}`, then resume"
    ))
}

/// Files of the user that are where the work would change something.
#[derive(Default)]
struct Obstacles {
    blocking: Vec<String>,
    /// Files that already have exactly the content that they would get: an interrupted integration wrote them.
    identical: Vec<Vec<u8>>,
}

fn find_obstacles(
    repository: &UserRepository,
    checkout: &BranchCheckout,
    changes: &[TreeDifference],
    merged_edits: &mut MergedEdits<'_>,
) -> Result<Obstacles, WorkspaceError> {
    let mut obstacles = Obstacles::default();
    obstacles.blocking.extend(find_repository_filtered(repository, checkout, changes)?);
    let mut status = repository.checkout_command(&checkout.path);
    // Unlike the user's other git commands, this one also remembers which files are unchanged, as `git status` does.
    status.args(["status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=all"]);
    let status_output = run_checked(status, None)?;
    let modified_paths: BTreeSet<Vec<u8>> = parse_status(&status_output).into_iter().map(|entry| entry.path).collect();
    for change in changes {
        let is_in_the_way = modified_paths.contains(&change.path)
            || (change.change == PathChange::Added && !is_free(&checkout.path, &change.path));
        if !is_in_the_way {
            continue;
        }
        if has_new_content(repository, checkout, change)? {
            obstacles.identical.push(change.path.clone());
        } else if !merged_edits.accept_file(change)? {
            obstacles.blocking.push(String::from_utf8_lossy(&change.path).into_owned());
        }
    }
    Ok(obstacles)
}

pub(super) fn list_changes(
    repository: &UserRepository,
    old: &CommitId,
    new: &CommitId,
) -> Result<Vec<TreeDifference>, WorkspaceError> {
    let arguments = ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", old.as_str(), new.as_str()];
    Ok(parse_raw_diff(&repository.query(arguments)?))
}

/// Returns files that a filter of the repository's own configuration would have to write. That filter does not run, so they would
/// be wrong in the checkout.
fn find_repository_filtered(
    repository: &UserRepository,
    checkout: &BranchCheckout,
    changes: &[TreeDifference],
) -> Result<Vec<String>, WorkspaceError> {
    let repository_filters = repository.repository_filters();
    if repository_filters.is_empty() {
        return Ok(Vec::new());
    }
    let paths: Vec<Vec<u8>> = changes.iter().map(|change| change.path.clone()).collect();
    let filtered = find_filtered_paths(repository.checkout_command(&checkout.path), &paths)?;
    let blocked = filtered.into_iter().filter(|(_, filter_name)| repository_filters.contains(filter_name.as_str()));
    Ok(blocked.map(|(path, _)| String::from_utf8_lossy(&path).into_owned()).collect())
}

/// Whether nothing is at a path where a new file would be written, and no file where a directory would be.
fn is_free(work_tree: &Path, path: &[u8]) -> bool {
    let full_path = tree_path(work_tree, path);
    if fs::symlink_metadata(&full_path).is_ok() {
        return false;
    }
    let parents = full_path.ancestors().skip(1).take_while(|directory| *directory != work_tree);
    let nearest = parents.map(fs::symlink_metadata).find_map(Result::ok);
    // A link to a directory counts as a file: git would replace it, or write through it.
    nearest.is_none_or(|metadata| metadata.is_dir())
}

/// Whether the file in the checkout is what the work would make of it.
fn has_new_content(
    repository: &UserRepository,
    checkout: &BranchCheckout,
    change: &TreeDifference,
) -> Result<bool, WorkspaceError> {
    let full_path = tree_path(&checkout.path, &change.path);
    let Ok(metadata) = fs::symlink_metadata(&full_path) else {
        return Ok(change.change == PathChange::Deleted);
    };
    let mut command = repository.checkout_command(&checkout.path);
    command.args(["hash-object", "--stdin"]);
    let object_id = match change.file_mode.as_str() {
        "120000" if metadata.is_symlink() => {
            use std::os::unix::ffi::OsStringExt;
            let Ok(link_target) = fs::read_link(&full_path) else { return Ok(false) };
            run_checked(command, Some(link_target.into_os_string().into_vec()))?
        }
        "100644" | "100755" if metadata.is_file() => {
            use std::os::unix::ffi::OsStrExt;
            let Ok(file) = fs::File::open(&full_path) else { return Ok(false) };
            let mut path_option = std::ffi::OsString::from("--path=");
            path_option.push(std::ffi::OsStr::from_bytes(&change.path));
            command.arg(path_option).stdin(file);
            run_checked(command, None)?
        }
        _ => return Ok(false),
    };
    Ok(to_trimmed_text(&object_id) == change.object_id)
}

/// Tells the index about files that are there already.
fn stage_identical_files(
    repository: &UserRepository,
    checkout: &BranchCheckout,
    paths: &[Vec<u8>],
) -> Result<(), WorkspaceError> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut command = repository.checkout_command(&checkout.path);
    command.args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]);
    run_checked(command, Some(join_with_nul(paths)))?;
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MoveMode {
    DryRun,
    Move,
}

/// Moves index and files from one commit to another, with all other changes of the user's kept. Returns the files that are in
/// the way, as git names them.
fn move_files(
    repository: &UserRepository,
    checkout: &BranchCheckout,
    old: &CommitId,
    new: &CommitId,
    mode: MoveMode,
) -> Result<Result<(), Vec<String>>, WorkspaceError> {
    let mut command = repository.checkout_command(&checkout.path);
    command.args(["read-tree", "-m", "-u"]);
    if mode == MoveMode::DryRun {
        command.arg("-n");
    }
    command.args([old.as_str(), new.as_str()]);
    let output = run_git(command, None, WORK_TIMEOUT)?;
    if output.succeeded {
        return Ok(Ok(()));
    }
    // The form is: error: Entry 'PATH' not uptodate. Cannot merge.
    let named_paths: Vec<String> = output
        .stderr
        .lines()
        .filter_map(|line| Some(line.split_once('\'')?.1.split_once('\'')?.0.to_string()))
        .collect();
    if named_paths.is_empty() { Err(output.to_error("read-tree").into()) } else { Ok(Err(named_paths)) }
}

/// Leaves the branch alone, and keeps the work on another one.
fn wait_on_branch(
    repository: &UserRepository,
    workspace: &DevelopmentWorkspace,
    commit: &CommitId,
    mut paths: Vec<String>,
) -> Result<IntegrateOutcome, WorkspaceError> {
    paths.sort();
    paths.dedup();
    let run_name = file_component(workspace.record.run.as_str());
    let names = (1..=99).flat_map(|number| {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        // A branch called `tribunal` makes the first form impossible.
        [format!("tribunal/{run_name}{suffix}"), format!("tribunal-{run_name}{suffix}")]
    });
    for name in names {
        let branch_ref = format!("refs/heads/{name}");
        let current = repository.find_commit(&branch_ref)?;
        let is_moved = match &current {
            Some(tip) if tip == commit => true,
            // The branch may have earlier work of this run, but no commit of the user's, and must not be checked out.
            Some(tip) => {
                repository.is_true(["merge-base", "--is-ancestor", tip.as_str(), commit.as_str()])?
                    && find_checkout(repository, &branch_ref)?.is_none()
                    && repository.move_ref(&branch_ref, commit, Some(tip))?
            }
            None => repository.move_ref(&branch_ref, commit, None).unwrap_or(false),
        };
        if is_moved {
            return Ok(IntegrateOutcome::Waits { branch: name, paths });
        }
    }
    Err(WorkspaceError::new_refusal(format!("could not create the branch `tribunal/{run_name}`")))
}

/// Moves the branch that is checked out where the work was done: the files are there already, only the index has to follow.
fn integrate_in_place(
    inspection: &WorkInspection<'_>,
    checkout: &BranchCheckout,
    branch_ref: &str,
) -> Result<IntegrateOutcome, WorkspaceError> {
    let WorkInspection { repository, request, .. } = *inspection;
    let Integrate { expected, commit, .. } = request;
    let list_staged = |commit: &CommitId| repository.list_staged(&checkout.path, commit.as_str());
    let mut other_paths = list_staged(expected)?;
    // An interrupted integration has moved the index already.
    if other_paths.is_empty() || !list_staged(commit)?.is_empty() {
        // Nothing was staged when the work began. What was staged since of its own files, the work has.
        let changes = inspection.list_changes()?;
        let worked_on: BTreeSet<&[u8]> = changes.iter().map(|change| change.path.as_slice()).collect();
        other_paths.retain(|path| !worked_on.contains(path.as_slice()));
        if !other_paths.is_empty() {
            let named_paths: Vec<String> =
                other_paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
            return Err(WorkspaceError::new_not_ready(format!(
                "files are staged in your checkout ({}); commit them, or unstage them with `git reset`, then resume",
                name_files(&named_paths)
            )));
        }
        let mut command = repository.checkout_command(&checkout.path);
        // The files differ from the old commit, which is no reason not to move the index.
        command.args(["read-tree", "-i", "-m", commit.as_str()]);
        run_checked(command, None)?;
    }
    let outcome = move_branch(repository, branch_ref, request, true)?;
    // Only saves time: the new files count as unchanged without being read again.
    let mut refresh = repository.checkout_command(&checkout.path);
    refresh.args(["update-index", "-q", "--refresh"]);
    let _ = run_git(refresh, None, WORK_TIMEOUT)?;
    Ok(outcome)
}
