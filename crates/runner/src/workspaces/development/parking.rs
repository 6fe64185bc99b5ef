//! Takes work out of the user's checkout, and puts it back.
//!
//! The work is the last commit of its workspace. Everything is computed first: which files change, what they are now, and what they
//! become, which is written to a directory of ours. Then a record of that is written, and the files follow one by one, each in one
//! atomic step; if the process ends meanwhile, the next one finishes that. A file that is neither what the record expects nor what it
//! is to become was changed by the user, and stays. Files that git ignored before the work began never move, and neither do HEAD, index and
//! stash of the user.

use std::{collections::BTreeSet, fs, io, path::Path};

use tribunal_engine::ids::CommitId;
use tribunal_json::{Deserialize, Serialize};
use tribunal_workflows::development::{
    parking::{ParkMode, ParkOutcome, name_files},
    workspace::PathChange,
};

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError,
    control_git::{ControlGit, WORK_BRANCH},
    create_private_dir,
    git_listings::{TreeDifference, parse_raw_diff},
    hidden_files::HiddenFiles,
    opening::{list_uncommitted, require_branch},
    rebase::{ReplayedChange, ReplayedCommits, refuse_sealed_files, replay_change},
    special_files::tree_path,
    tree_files::{has_real_parents, put_file, read_file_mark},
    user_repository::{UserRepository, join_with_nul, path_option},
};
use crate::{git::run_checked, project::atomic_files};

/// The record of files that are on their way.
const MOVE_FILE: &str = "parking.json";
/// The directory with the new versions of these files.
const STAGED_DIR: &str = "parking-files";
/// The file whose presence means that the work is not in the checkout. It says which files wait with the work.
const PARKED_MARK: &str = "parked";
/// The most files that an outcome names.
const MAX_NAMED_FILES: usize = 50;

/// Files that are on their way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MoveRecord {
    /// Whether the checkout gets the work or loses it.
    brings_work: bool,
    /// The commit that the work begins with afterwards.
    base: CommitId,
    /// The last commit of the work afterwards.
    tip: CommitId,
    moves: Vec<FileMove>,
    #[serde(default)]
    hidden: HiddenFiles,
}

/// A file on its way.
#[derive(Debug, Serialize, Deserialize)]
struct FileMove {
    /// The name may be any bytes.
    path: Vec<u8>,
    /// The mode and the hash of what is there before; `None` if there is no file.
    before: Option<String>,
    after: Option<String>,
}

/// What is to be moved, or why nothing is.
pub(super) enum PlannedMove {
    Planned(MoveRecord),
    Stopped(ParkOutcome),
}

/// Takes the work out of the checkout, or puts it back. What is done already is not done again.
pub(crate) fn move_parked_work(workspace: DevelopmentWorkspace, mode: ParkMode) -> Result<ParkOutcome, WorkspaceError> {
    if !workspace.is_in_place() {
        return Err(WorkspaceError::new_refusal("only work in the checkout can be parked"));
    }
    let tip = workspace.control_git().read_tip()?;
    match (mode, workspace.is_parked()) {
        (ParkMode::Park, true) => return workspace.describe_parked(tip),
        (ParkMode::Return | ParkMode::TakeCheckout, false) => {
            return Ok(ParkOutcome::Returned { base: workspace.record.base.clone(), commit: tip });
        }
        _ => {}
    }
    let record = match plan_move(&workspace, mode, &tip)? {
        PlannedMove::Planned(record) => record,
        PlannedMove::Stopped(outcome) => {
            remove_staged_files(&workspace)?;
            return Ok(outcome);
        }
    };
    workspace.save_move(&record)?;
    let workspace = finish_interrupted_move(workspace)?;
    match record.brings_work {
        true => Ok(ParkOutcome::Returned { base: record.base, commit: record.tip }),
        false => workspace.describe_parked(record.tip),
    }
}

impl DevelopmentWorkspace {
    pub(super) fn is_parked(&self) -> bool {
        self.directory.join(PARKED_MARK).exists()
    }

    /// Returns the files that wait with parked work.
    fn read_hidden_files(&self) -> HiddenFiles {
        let mark_text = fs::read(self.directory.join(PARKED_MARK)).unwrap_or_default();
        serde_json::from_slice(&mark_text).unwrap_or_default()
    }

    /// Describes parked work, with what is not committed in the checkout all the same.
    fn describe_parked(&self, commit: CommitId) -> Result<ParkOutcome, WorkspaceError> {
        let repository = UserRepository::open_around(&self.record.project_root)?;
        let mut left = list_uncommitted(&repository, &self.record)?;
        left.truncate(MAX_NAMED_FILES);
        Ok(ParkOutcome::Parked { commit, left })
    }

    /// Names files for the user.
    fn name_paths(&self, paths: &BTreeSet<Vec<u8>>) -> Vec<String> {
        paths.iter().take(MAX_NAMED_FILES).map(|path| self.shown_path(path)).collect()
    }

    /// Records what is to be moved. From then on it is carried out, by this process or by the next one.
    pub(super) fn save_move(&self, record: &MoveRecord) -> Result<(), WorkspaceError> {
        let record_path = self.directory.join(MOVE_FILE);
        let record_text = serde_json::to_vec(record).map_err(io::Error::other).at_path(&record_path)?;
        atomic_files::write_privately(&record_path, &record_text).at_path(&record_path)
    }
}

/// Finds out what has to be moved, and prepares it. Nothing in the checkout changes.
pub(super) fn plan_move(
    workspace: &DevelopmentWorkspace,
    mode: ParkMode,
    tip: &CommitId,
) -> Result<PlannedMove, WorkspaceError> {
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    let head = find_head(&repository)?;
    if mode == ParkMode::Park {
        return plan_parking(workspace, tip, &head);
    }
    require_branch(&repository, &workspace.record)?;
    let mut uncommitted = list_uncommitted(&repository, &workspace.record)?;
    if uncommitted.is_empty() {
        return plan_return(workspace, &repository, tip, head);
    }
    if mode == ParkMode::TakeCheckout {
        return plan_taking(workspace, &repository, tip, head);
    }
    // Everything that is not committed would count as work of the story.
    uncommitted.truncate(MAX_NAMED_FILES);
    Ok(PlannedMove::Stopped(ParkOutcome::InTheWay { paths: uncommitted }))
}

fn plan_parking(
    workspace: &DevelopmentWorkspace,
    tip: &CommitId,
    head: &CommitId,
) -> Result<PlannedMove, WorkspaceError> {
    let control_git = workspace.control_git();
    let base = workspace.record.base.clone();
    // What was committed meanwhile stays: the files become what the branch has.
    let target = if follows(workspace, head)? { head } else { &base };
    let changes = list_changes(&control_git, tip.as_str(), target.as_str())?;
    // Work is parked without them, too: what becomes visible then is named.
    let hidden = HiddenFiles::find_in(workspace, target, &changes).unwrap_or_default();
    // This comes before git looks at the files: what the user changes in between is no longer what is expected, and stays.
    let moves = list_moves(workspace, target, &changes)?;
    control_git.create_commit_index()?;
    let ready = workspace.stage_commit()?;
    // What differs from the commit of the work was changed after it was made.
    let mut obstacles = list_changed_paths(&control_git, tip.as_str(), ready.tree.as_str())?;
    let concerned: BTreeSet<&[u8]> = changes.iter().map(|change| change.path.as_slice()).collect();
    obstacles.retain(|path| concerned.contains(path.as_slice()));
    obstacles.extend(find_obstacles(&workspace.record.tree, &changes, &moves));
    if !obstacles.is_empty() {
        return Ok(PlannedMove::Stopped(ParkOutcome::InTheWay { paths: workspace.name_paths(&obstacles) }));
    }
    Ok(PlannedMove::Planned(MoveRecord { brings_work: false, base, tip: tip.clone(), moves, hidden }))
}

/// Whether a commit of the user's repository follows the one with which the work began.
fn follows(workspace: &DevelopmentWorkspace, head: &CommitId) -> Result<bool, WorkspaceError> {
    let base = &workspace.record.base;
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    Ok(head == base || repository.is_true(["merge-base", "--is-ancestor", base.as_str(), head.as_str()])?)
}

/// Puts the work on top of what the branch has got meanwhile.
fn plan_return(
    workspace: &DevelopmentWorkspace,
    repository: &UserRepository,
    tip: &CommitId,
    head: CommitId,
) -> Result<PlannedMove, WorkspaceError> {
    let new_tip = match replay_work(workspace, repository, tip, &head)? {
        ReplayedCommits::Replayed(new_tip) => new_tip,
        ReplayedCommits::Conflict(conflict) => {
            return Ok(PlannedMove::Stopped(ParkOutcome::Conflict { paths: conflict.paths }));
        }
    };
    let changes = list_changes(&workspace.control_git(), head.as_str(), new_tip.as_str())?;
    let moves = list_moves(workspace, &new_tip, &changes)?;
    let obstacles = find_obstacles(&workspace.record.tree, &changes, &moves);
    if !obstacles.is_empty() {
        return Ok(PlannedMove::Stopped(ParkOutcome::InTheWay { paths: workspace.name_paths(&obstacles) }));
    }
    // The user may have edited something before it was read.
    let uncommitted = list_uncommitted(repository, &workspace.record)?;
    if !uncommitted.is_empty() {
        return Ok(PlannedMove::Stopped(ParkOutcome::InTheWay { paths: uncommitted }));
    }
    let hidden = workspace.read_hidden_files();
    Ok(PlannedMove::Planned(MoveRecord { brings_work: true, base: head, tip: new_tip, moves, hidden }))
}

/// Takes what the user has in the checkout as the work. Its commits follow the branch; no file moves.
fn plan_taking(
    workspace: &DevelopmentWorkspace,
    repository: &UserRepository,
    tip: &CommitId,
    head: CommitId,
) -> Result<PlannedMove, WorkspaceError> {
    // They would keep the branch from moving when the work lands.
    let staged_paths = list_staged(repository)?;
    if !staged_paths.is_empty() {
        return Err(WorkspaceError::new_not_ready(format!(
            "files are staged in your checkout ({}); unstage them with `git reset`, then resume",
            name_files(&staged_paths)
        )));
    }
    let new_tip = match replay_work(workspace, repository, tip, &head)? {
        ReplayedCommits::Replayed(new_tip) => new_tip,
        // The user has resolved the conflicts. The old commit is kept beside the new ones.
        ReplayedCommits::Conflict(_) => {
            repository.set_own_ref(&format!("{}-{}", workspace.work_ref(), tip.short_hex()), tip)?;
            head.clone()
        }
    };
    let (moves, hidden) = (Vec::new(), workspace.read_hidden_files());
    Ok(PlannedMove::Planned(MoveRecord { brings_work: true, base: head, tip: new_tip, moves, hidden }))
}

fn find_head(repository: &UserRepository) -> Result<CommitId, WorkspaceError> {
    repository.find_commit("HEAD")?.ok_or_else(|| WorkspaceError::new_refusal("HEAD of the checkout is no commit"))
}

/// Lists the files of which the index has another version than HEAD.
fn list_staged(repository: &UserRepository) -> Result<Vec<String>, WorkspaceError> {
    let paths = repository.list_staged(&repository.layout.work_tree_top, "HEAD")?;
    Ok(paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

/// Puts the whole work on top of a commit, as one commit. Earlier commits of it may have changed what the last one no longer changes.
fn replay_work(
    workspace: &DevelopmentWorkspace,
    repository: &UserRepository,
    tip: &CommitId,
    onto: &CommitId,
) -> Result<ReplayedCommits, WorkspaceError> {
    let base = &workspace.record.base;
    if onto == base {
        return Ok(ReplayedCommits::Replayed(tip.clone()));
    }
    refuse_sealed_files(workspace, base, onto)?;
    if tip == base {
        return Ok(ReplayedCommits::Replayed(onto.clone()));
    }
    let change = ReplayedChange { from: base.as_str(), commit: tip.as_str() };
    replay_change(workspace, repository, change, onto)
}

/// Lists how files differ between two commits or trees.
fn list_changes(control_git: &ControlGit, old: &str, new: &str) -> Result<Vec<TreeDifference>, WorkspaceError> {
    let output = control_git.run(["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", old, new])?;
    let mut changes = parse_raw_diff(&output);
    // Submodules are no files.
    changes.retain(|change| change.file_mode != "160000");
    Ok(changes)
}

fn list_changed_paths(control_git: &ControlGit, old: &str, new: &str) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    Ok(list_changes(control_git, old, new)?.into_iter().map(|change| change.path).collect())
}

/// Writes the new versions of changed files to a directory of ours, and says what becomes of each file in the checkout.
fn list_moves(
    workspace: &DevelopmentWorkspace,
    target: &CommitId,
    changes: &[TreeDifference],
) -> Result<Vec<FileMove>, WorkspaceError> {
    let staged_dir = workspace.directory.join(STAGED_DIR);
    remove_staged_files(workspace)?;
    create_private_dir(&staged_dir)?;
    let written_changes = changes.iter().filter(|change| change.change != PathChange::Deleted);
    let written_paths: Vec<Vec<u8>> = written_changes.map(|change| change.path.clone()).collect();
    if !written_paths.is_empty() {
        let commit_git = workspace.control_git().with_commit_index();
        commit_git.run(["read-tree", target.as_str()])?;
        let mut command = commit_git.new_command();
        // The empty last part ends the prefix with a slash.
        command.args(["checkout-index", "--force", "-z", "--stdin"]).arg(path_option("--prefix", &staged_dir.join("")));
        run_checked(command, Some(join_with_nul(&written_paths)))?;
    }
    let describe_move = |change: &TreeDifference| -> Result<FileMove, WorkspaceError> {
        let before = read_file_mark(&workspace.record.tree, &change.path)?;
        let after = match change.change {
            PathChange::Deleted => None,
            _ => Some(read_file_mark(&staged_dir, &change.path)?.ok_or_else(|| {
                let shown_path = workspace.shown_path(&change.path);
                WorkspaceError::new_refusal(format!("git did not write {shown_path}"))
            })?),
        };
        Ok(FileMove { path: change.path.clone(), before, after })
    };
    changes.iter().map(describe_move).collect()
}

/// Finds files of the user, ignored ones too, that are where something would be written.
fn find_obstacles(tree: &Path, changes: &[TreeDifference], moves: &[FileMove]) -> BTreeSet<Vec<u8>> {
    let removed: BTreeSet<&[u8]> =
        moves.iter().filter(|file_move| file_move.after.is_none()).map(|file_move| file_move.path.as_slice()).collect();
    let mut obstacles = BTreeSet::new();
    for (change, file_move) in changes.iter().zip(moves) {
        if file_move.after.is_none() {
            continue;
        }
        let is_other_file = file_move.before.is_some() && file_move.before != file_move.after;
        if change.change == PathChange::Added && is_other_file {
            obstacles.insert(change.path.clone());
        }
        // A file or a link where a directory has to be.
        for (position, _) in change.path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let parent = &change.path[..position];
            let metadata = fs::symlink_metadata(tree_path(tree, parent));
            if metadata.is_ok_and(|metadata| !metadata.is_dir()) && !removed.contains(parent) {
                obstacles.insert(parent.to_vec());
            }
        }
        // A directory, or something that is no content, where a file has to be.
        if file_move.before.is_none() {
            obstacles.extend(list_other_files(tree, &change.path, &removed));
        }
    }
    obstacles
}

/// Lists what is at a path, or below it, and does not go away.
fn list_other_files(tree: &Path, path: &[u8], removed: &BTreeSet<&[u8]>) -> Vec<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let full_path = tree_path(tree, path);
    let Ok(metadata) = fs::symlink_metadata(&full_path) else { return Vec::new() };
    if !metadata.is_dir() {
        return if removed.contains(path) { Vec::new() } else { vec![path.to_vec()] };
    }
    let entries = fs::read_dir(&full_path).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| {
        let entry_path = [path, b"/", entry.file_name().as_bytes()].concat();
        list_other_files(tree, &entry_path, removed)
    });
    below.collect()
}

/// Carries out a recorded move, if there is one that is not finished. Every step can be repeated.
pub(super) fn finish_interrupted_move(
    mut workspace: DevelopmentWorkspace,
) -> Result<DevelopmentWorkspace, WorkspaceError> {
    let record_path = workspace.directory.join(MOVE_FILE);
    let Ok(record_text) = fs::read(&record_path) else { return Ok(workspace) };
    let record: MoveRecord = serde_json::from_slice(&record_text).map_err(io::Error::other).at_path(&record_path)?;
    move_files(&workspace, &record.moves)?;
    let mark_path = workspace.directory.join(PARKED_MARK);
    if record.brings_work {
        record.hidden.bring_back(&workspace);
        begin_work_at(&mut workspace, &record)?;
        remove_if_present(&mark_path)?;
    } else {
        unstage_files(&workspace, &record.moves)?;
        record.hidden.put_aside(&workspace);
        let mark_text = serde_json::to_vec(&record.hidden).map_err(io::Error::other).at_path(&mark_path)?;
        atomic_files::write_privately(&mark_path, &mark_text).at_path(&mark_path)?;
    }
    remove_if_present(&record_path)?;
    remove_staged_files(&workspace)?;
    Ok(workspace)
}

/// Moves the files that are what they were. Others were moved already, or the user has changed them.
fn move_files(workspace: &DevelopmentWorkspace, moves: &[FileMove]) -> Result<(), WorkspaceError> {
    let tree = &workspace.record.tree;
    let (removed, written): (Vec<&FileMove>, Vec<&FileMove>) =
        moves.iter().partition(|file_move| file_move.after.is_none());
    // Removals come first: a file may be where a directory was, and the other way round.
    for file_move in removed {
        // Nothing behind a link is part of the checkout.
        if !has_real_parents(tree, &file_move.path) {
            continue;
        }
        let full_path = tree_path(tree, &file_move.path);
        if file_move.before.is_some() && read_file_mark(tree, &file_move.path)? == file_move.before {
            fs::remove_file(&full_path).at_path(&full_path)?;
        }
        // Directories that are empty now go as well, as they would with git.
        let parents = full_path.ancestors().skip(1).take_while(|directory| *directory != tree.as_path());
        for directory in parents {
            if fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
    for file_move in written {
        let full_path = tree_path(tree, &file_move.path);
        // A killed process may have left a part of the file beside it.
        if let Some(directory) = full_path.parent() {
            atomic_files::sweep_temporary_files(directory);
        }
        let current = read_file_mark(tree, &file_move.path)?;
        let is_occupied = current.is_none() && fs::symlink_metadata(&full_path).is_ok();
        let is_expected = current == file_move.before && !is_occupied && has_real_parents(tree, &file_move.path);
        if current != file_move.after && is_expected {
            let staged_path = tree_path(&workspace.directory.join(STAGED_DIR), &file_move.path);
            put_file(&staged_path, &full_path).at_path(&full_path)?;
        }
    }
    Ok(())
}

/// Takes files of parked work out of the user's index. Nothing was staged when the work began, and the work has what was staged since.
fn unstage_files(workspace: &DevelopmentWorkspace, moves: &[FileMove]) -> Result<(), WorkspaceError> {
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    if moves.is_empty() || list_staged(&repository)?.is_empty() {
        return Ok(());
    }
    let paths: Vec<Vec<u8>> = moves.iter().map(|file_move| file_move.path.clone()).collect();
    let mut command = repository.checkout_command(&repository.layout.work_tree_top);
    command.args(["reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", "HEAD"]);
    run_checked(command, Some(join_with_nul(&paths)))?;
    Ok(())
}

/// Has the work begin at a commit, with its own last commit on top of that.
fn begin_work_at(workspace: &mut DevelopmentWorkspace, record: &MoveRecord) -> Result<(), WorkspaceError> {
    let control_git = workspace.control_git();
    if workspace.record.base != record.base {
        control_git.run(["read-tree", "-i", "-m", workspace.record.base.as_str(), record.base.as_str()])?;
        control_git.remember_unchanged_files()?;
        control_git.run(["update-ref", WORK_BRANCH, record.tip.as_str()])?;
        control_git.set_head(&record.base)?;
        workspace.record.base = record.base.clone();
        // The new base may have attributes that the old one did not have.
        workspace.record.converts_content = true;
        workspace.save_record()?;
    }
    let repository = UserRepository::open_around(&workspace.record.project_root)?;
    if record.tip == record.base {
        return repository.set_own_ref(&workspace.work_ref(), &record.tip);
    }
    workspace.publish_commit(&repository, &record.tip)
}

fn remove_staged_files(workspace: &DevelopmentWorkspace) -> Result<(), WorkspaceError> {
    let staged_dir = workspace.directory.join(STAGED_DIR);
    match fs::remove_dir_all(&staged_dir) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause).at_path(&staged_dir),
        _ => Ok(()),
    }
}

fn remove_if_present(path: &Path) -> Result<(), WorkspaceError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause).at_path(path),
        _ => Ok(()),
    }
}
