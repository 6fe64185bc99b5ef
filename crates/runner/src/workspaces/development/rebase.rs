//! Replays the commits of a workspace onto another commit. Whether the user has merged them already is up to [`super::hand_merges`].
//!
//! Everything is computed first, without touching a file. Then a record of the result is written, and the files follow; if the
//! process ends meanwhile, the next one finishes that.

use std::{collections::BTreeSet, fs, io};

use tribunal_engine::ids::CommitId;
use tribunal_json::{Deserialize, Serialize};
use tribunal_workflows::development::{
    commits::{RebaseConflict, RebaseOutcome},
    parking::name_files,
    workspace::{DevelopmentPlace, PathChange},
};

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError,
    commits::{new_commit_command, write_commit},
    conflict_sides::{MergeSides, describe_conflict},
    control_git::{ControlGit, WORK_BRANCH},
    git_listings::parse_raw_diff,
    hand_merges::{BranchStanding, PendingWork},
    integrate::list_changes,
    merge_trees::merge_trees,
    special_files::tree_path,
    user_repository::{UserRepository, join_with_nul},
};
use crate::project::atomic_files;

/// A rebase whose result is known and has to be put in place.
#[derive(Serialize, Deserialize)]
struct RebaseRecord {
    old_tip: CommitId,
    onto: CommitId,
    new_tip: CommitId,
}

/// What came of making commits anew on top of another one.
pub(super) enum ReplayedCommits {
    Replayed(CommitId),
    Conflict(RebaseConflict),
}

/// Replays the commits of a workspace. Nothing changes if there is a conflict.
pub(crate) fn rebase_workspace(
    workspace: DevelopmentWorkspace,
    onto: &CommitId,
) -> Result<RebaseOutcome, WorkspaceError> {
    let control_git = workspace.control_git();
    let old_tip = control_git.read_tip()?;
    // An earlier process has done it.
    if workspace.record.base == *onto {
        return Ok(RebaseOutcome::Rebased { commit: old_tip });
    }
    // Work that has landed begins anew with itself: there is nothing to replay.
    if old_tip == *onto {
        return begin_anew(workspace, onto);
    }
    if workspace.record.place == DevelopmentPlace::InPlace {
        return follow_checkout(workspace, &old_tip, onto);
    }
    control_git.create_commit_index()?;
    let mut ready = workspace.stage_commit()?;
    let tip_tree = workspace.freeze_commit(&old_tip)?;
    if tip_tree != ready.tree {
        // What was edited in the clone since the commit was made is kept beside it.
        workspace.hold_tree(&tip_tree)?;
        ready = workspace.stage_commit()?;
    }
    if tip_tree != ready.tree {
        return Err(WorkspaceError::new_refusal(
            "the workspace has changes that are not committed, so it cannot be rebased",
        ));
    }
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    let work = PendingWork { commit: &old_tip, tree: ready.tree.as_str(), onto };
    let new_tip = match workspace.look_for_work(&work)? {
        BranchStanding::Merged => onto.clone(),
        BranchStanding::Lost { solution, paths } => {
            let conflict = RebaseConflict { found: Some(solution), ..RebaseConflict::from_paths(paths) };
            return Ok(RebaseOutcome::Conflict(conflict));
        }
        BranchStanding::Without => match replay_commits(&workspace, &repository, &old_tip, onto)? {
            ReplayedCommits::Replayed(new_tip) => {
                workspace.forget_conflict()?;
                new_tip
            }
            ReplayedCommits::Conflict(conflict) => {
                let found = workspace.remember_conflict(onto)?;
                return Ok(RebaseOutcome::Conflict(RebaseConflict { found, ..conflict }));
            }
        },
    };
    refuse_sealed_files(&workspace, &old_tip, &new_tip)?;
    let record = RebaseRecord { old_tip, onto: onto.clone(), new_tip };
    let record_path = workspace.directory.join("rebase.json");
    let record_text = serde_json::to_vec(&record).map_err(io::Error::other).at_path(&record_path)?;
    atomic_files::write_privately(&record_path, &record_text).at_path(&record_path)?;
    finish_interrupted_rebase(workspace)?;
    Ok(RebaseOutcome::Rebased { commit: record.new_tip })
}

/// Makes the last commit of a workspace the one with which its work begins.
fn begin_anew(mut workspace: DevelopmentWorkspace, tip: &CommitId) -> Result<RebaseOutcome, WorkspaceError> {
    workspace.forget_merge()?;
    workspace.keep_ignored_files_out(tip)?;
    let control_git = workspace.control_git();
    control_git.run(["read-tree", "-i", "-m", workspace.record.base.as_str(), tip.as_str()])?;
    control_git.remember_unchanged_files()?;
    control_git.set_head(tip)?;
    workspace.record.base = tip.clone();
    workspace.save_record()?;
    Ok(RebaseOutcome::Rebased { commit: tip.clone() })
}

/// Has work in the checkout follow a commit that was made there meanwhile. The files have both already, so none of them changes.
fn follow_checkout(
    mut workspace: DevelopmentWorkspace,
    old_tip: &CommitId,
    onto: &CommitId,
) -> Result<RebaseOutcome, WorkspaceError> {
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    let base = workspace.record.base.clone();
    let follows = repository.is_true(["merge-base", "--is-ancestor", base.as_str(), onto.as_str()])?;
    if !follows || repository.find_commit("HEAD")?.as_ref() != Some(onto) {
        let (moved_to, begun_at) = (onto.short_hex(), base.short_hex());
        return Err(WorkspaceError::new_not_ready(format!(
            "{} was moved to {moved_to}, which does not follow {begun_at}, with which the work in your checkout began; move it \
             back with `git reset --soft {begun_at}`, then resume",
            workspace.record.branch
        )));
    }
    refuse_stale_checkout(&workspace, &repository, old_tip, onto)?;
    let control_git = workspace.control_git();
    control_git.create_commit_index()?;
    // What was committed meanwhile is in the tree also if the rules of the base ignore it.
    control_git.with_commit_index().run(["read-tree", "-i", "-m", base.as_str(), onto.as_str()])?;
    let ready = workspace.stage_commit()?;
    workspace.keep_ignored_files_out(onto)?;
    let description = control_git.run(["show", "-s", "--no-show-signature", "--format=%B", old_tip.as_str()])?;
    let message = String::from_utf8_lossy(&description).into_owned();
    let new_tip = write_commit(new_commit_command(&repository, &control_git), ready.tree.as_str(), onto, &message)?;
    control_git.run(["read-tree", "-i", "-m", base.as_str(), onto.as_str()])?;
    control_git.remember_unchanged_files()?;
    control_git.run(["update-ref", WORK_BRANCH, new_tip.as_str()])?;
    control_git.set_head(onto)?;
    workspace.record.base = onto.clone();
    workspace.record.converts_content = true;
    workspace.save_record()?;
    workspace.publish_commit(&repository, &new_tip)?;
    Ok(RebaseOutcome::Rebased { commit: new_tip })
}

/// Refuses a commit that moved the branch without the checkout, as one from another work tree does: the old files would count as work,
/// and take the commit back.
fn refuse_stale_checkout(
    workspace: &DevelopmentWorkspace,
    repository: &UserRepository,
    old_tip: &CommitId,
    onto: &CommitId,
) -> Result<(), WorkspaceError> {
    let base = &workspace.record.base;
    let updated_paths = repository.list_staged(&repository.layout.work_tree_top, base.as_str())?;
    let updated_paths: BTreeSet<Vec<u8>> = updated_paths.into_iter().collect();
    let mut stale_changes = list_changes(repository, base, onto)?;
    stale_changes.retain(|change| !updated_paths.contains(&change.path));
    if stale_changes.is_empty() {
        return Ok(());
    }
    let stale_paths: Vec<String> = stale_changes.iter().map(|change| workspace.shown_path(&change.path)).collect();
    let mut both_changed = workspace.list_differences(base.as_str(), old_tip.as_str())?;
    both_changed.retain(|path| stale_paths.contains(path));
    let (branch_name, begun_at) = (&workspace.record.branch, base.short_hex());
    let update_command = format!("git read-tree -m -u {begun_at} HEAD");
    let what_to_do = if both_changed.is_empty() {
        format!("update it with `{update_command}`")
    } else {
        format!(
            "the work has changed {} too: put what `git diff {begun_at} HEAD` shows for that into your checkout by hand, and type \
             `git restore --staged FILES` for these files and `{update_command}` for the others",
            name_files(&both_changed)
        )
    };
    Err(WorkspaceError::new_not_ready(format!(
        "`{branch_name}` was moved to {} without your checkout, which still has the old state of {}; {what_to_do}, then resume",
        onto.short_hex(),
        name_files(&stale_paths)
    )))
}

/// Puts the result of a rebase in place, if there is one that is not in place yet. Every step can be repeated.
pub(super) fn finish_interrupted_rebase(
    mut workspace: DevelopmentWorkspace,
) -> Result<DevelopmentWorkspace, WorkspaceError> {
    let record_path = workspace.directory.join("rebase.json");
    let Ok(record_text) = fs::read(&record_path) else { return Ok(workspace) };
    let RebaseRecord { old_tip, onto, new_tip } =
        serde_json::from_slice(&record_text).map_err(io::Error::other).at_path(&record_path)?;
    let control_git = workspace.control_git();
    write_new_files(&control_git.with_commit_index(), &old_tip, &new_tip)?;
    control_git.run(["read-tree", "-i", "-m", workspace.record.base.as_str(), onto.as_str()])?;
    control_git.remember_unchanged_files()?;
    control_git.run(["update-ref", WORK_BRANCH, new_tip.as_str()])?;
    control_git.set_head(&onto)?;
    workspace.record.base = onto;
    // The new base may have attributes that the old one did not have.
    workspace.record.converts_content = true;
    workspace.save_record()?;
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    workspace.publish_commit(&repository, &new_tip)?;
    fs::remove_file(&record_path).at_path(&record_path)?;
    Ok(workspace)
}

/// Moves the index and then the files from one commit to another. The files had the content of the old commit, so what is
/// different is what an interrupted attempt has written.
fn write_new_files(commit_git: &ControlGit, old_tip: &CommitId, new_tip: &CommitId) -> Result<(), WorkspaceError> {
    let arguments =
        ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", old_tip.as_str(), new_tip.as_str()];
    let changes = parse_raw_diff(&commit_git.run(arguments)?);
    commit_git.run(["read-tree", "-i", "-m", old_tip.as_str(), new_tip.as_str()])?;
    let (deleted, written): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| change.change == PathChange::Deleted);
    for change in &deleted {
        let file_path = tree_path(&commit_git.work_tree, &change.path);
        match fs::remove_file(&file_path) {
            Err(cause)
                if !matches!(
                    cause.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
                ) =>
            {
                return Err(cause).at_path(&file_path);
            }
            _ => {}
        }
        // Directories that are empty now go as well, as they would with git.
        let parents = file_path.ancestors().skip(1).take_while(|directory| **directory != commit_git.work_tree);
        for directory in parents {
            if fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
    let paths: Vec<Vec<u8>> =
        written.into_iter().filter(|change| change.file_mode != "160000").map(|change| change.path).collect();
    if !paths.is_empty() {
        commit_git.run_with_input(["checkout-index", "--force", "-u", "-z", "--stdin"], Some(join_with_nul(&paths)))?;
    }
    Ok(())
}

/// Refuses a change of files whose filter does not run.
pub(super) fn refuse_sealed_files(
    workspace: &DevelopmentWorkspace,
    old_tip: &CommitId,
    new_tip: &CommitId,
) -> Result<(), WorkspaceError> {
    let changed_paths: BTreeSet<String> =
        workspace.list_differences(old_tip.as_str(), new_tip.as_str())?.into_iter().collect();
    let sealed_files = workspace.record.sealed_files.iter().map(|sealed_file| workspace.shown_path(&sealed_file.path));
    match sealed_files.into_iter().find(|path| changed_paths.contains(path)) {
        Some(path) => Err(WorkspaceError::new_refusal(format!(
            "the rebase would change {path}, whose filter only the repository's own configuration defines"
        ))),
        None => Ok(()),
    }
}

/// Makes the commits anew on top of another one, one by one, with their authors and messages.
fn replay_commits(
    workspace: &DevelopmentWorkspace,
    repository: &UserRepository,
    old_tip: &CommitId,
    onto: &CommitId,
) -> Result<ReplayedCommits, WorkspaceError> {
    let control_git = workspace.control_git();
    let range = format!("{}..{old_tip}", workspace.record.base);
    let listed = control_git.query_text(["rev-list", "--reverse", "--topo-order", &range])?;
    let mut new_parent = onto.clone();
    for commit in listed.lines() {
        let change = ReplayedChange { from: &format!("{commit}^"), commit };
        match replay_change(workspace, repository, change, &new_parent)? {
            ReplayedCommits::Replayed(new_commit) => new_parent = new_commit,
            conflict @ ReplayedCommits::Conflict(_) => return Ok(conflict),
        }
    }
    Ok(ReplayedCommits::Replayed(new_parent))
}

/// What is made anew as one commit: everything from one commit to another, with the author and the message of the latter.
#[derive(Clone, Copy)]
pub(super) struct ReplayedChange<'a> {
    pub from: &'a str,
    pub commit: &'a str,
}

/// Makes a change anew on top of another commit.
pub(super) fn replay_change(
    workspace: &DevelopmentWorkspace,
    repository: &UserRepository,
    change: ReplayedChange<'_>,
    new_parent: &CommitId,
) -> Result<ReplayedCommits, WorkspaceError> {
    let ReplayedChange { from, commit } = change;
    let control_git = workspace.control_git();
    let sides = MergeSides { base: from, on_branch: new_parent.as_str(), in_work: commit };
    let merged = merge_trees(&control_git, &sides)?;
    if !merged.conflicts.is_empty() {
        let paths: Vec<&[u8]> = merged.conflicts.iter().map(Vec::as_slice).collect();
        return Ok(ReplayedCommits::Conflict(describe_conflict(workspace, &sides, &paths)));
    }
    let format_option = "--format=%an%x00%ae%x00%ad%x00%B";
    let description = control_git.run(["show", "-s", "--no-show-signature", format_option, "--date=raw", commit])?;
    let description = String::from_utf8_lossy(&description).into_owned();
    let mut fields = description.splitn(4, '\0');
    let mut command = new_commit_command(repository, &control_git);
    for variable in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"] {
        command.env(variable, fields.next().unwrap_or_default());
    }
    let new_commit = write_commit(command, &merged.tree, new_parent, fields.next().unwrap_or_default())?;
    Ok(ReplayedCommits::Replayed(new_commit))
}
