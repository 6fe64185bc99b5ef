//! Keeps checks from changing the work. A check runs code that agents have written, after the rules and reviewers have looked at the
//! files: what it changes would land without anyone having seen it.
//!
//! Checks run on frozen content ([`super::frozen_work`]). After each check every file is compared with the index of that content, and
//! what differs is put back. A file counts as unchanged only if its inode, size and time of change are the same, which a program cannot
//! forge; all others are read. A file says which content is checked: a process that ends in between leaves it, and the step that looks
//! at the work next puts it back first.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_engine::{ids::TreeId, text::truncate_chars};
use tribunal_json::{Deserialize, Serialize};
use tribunal_workflows::development::{checks::CommandLine, parking::name_files};

use super::{
    BrokenSeal, DevelopmentWorkspace, WithPath, WorkspaceError,
    contents::is_own_content,
    control_git::ControlGit,
    create_private_dir,
    frozen_work::HeldTree,
    git_listings::StatusEntry,
    ignore_rules::{IGNORE_FILE, is_ignore_file},
    integrate::list_changes,
    reverted_commits::is_lock_file,
    special_files::tree_path,
    tree_files::has_real_parents,
    user_repository::{UserRepository, join_with_nul, split_paths},
};
use crate::{
    git::run_checked,
    landing::parked_files::move_to_parked,
    project::{Project, atomic_files},
    workspaces::{
        TaskWorkspace,
        file_stamps::{CLOCK_STEP_NS, FileStamp},
    },
};

/// The file that says which content is checked.
const MARK_FILE: &str = "checks.json";
/// The longest changes of which a diff is made, and the most characters of it.
const MAX_SHOWN_BYTES: u64 = 1 << 20;
const MAX_SHOWN_CHARS: usize = 1_500;
/// The directory beside a clone with files that were there after interrupted checks.
const KEPT_DIR: &str = "after-checks";
/// The mode of a directory that its owner can list, enter and change.
const OWNER_ACCESS: u32 = 0o700;

/// The frozen content on which checks run.
#[derive(Debug, Serialize, Deserialize)]
struct CheckMark {
    tree: TreeId,
}

/// The content of a workspace before checks run.
#[derive(Debug)]
pub(crate) struct WorkSnapshot {
    workspace: DevelopmentWorkspace,
    files: Vec<SnapshotFile>,
    broken_seals: Vec<BrokenSeal>,
    /// When the content was staged.
    taken_at_ns: i64,
    /// Files that checks have made so far. They are removed at the end: a later check may need what an earlier one has built.
    made_paths: Vec<Vec<u8>>,
    /// Repositories of their own and new files of the user, which are not part of the work.
    others: Vec<Vec<u8>>,
    /// The ignore files in directories of the work that git itself ignores, with their contents: no index has them, and they decide
    /// what is committed.
    ignore_files: BTreeMap<PathBuf, Vec<u8>>,
}

#[derive(Debug)]
struct SnapshotFile {
    path: Vec<u8>,
    /// Mode and object, as git lists them.
    index_entry: Vec<u8>,
    stamp: Option<FileStamp>,
}

/// What one check has left in the work.
#[derive(Debug, Default)]
pub(crate) struct CheckTraces {
    /// Files of the work that it changed or deleted. They are as they were before.
    pub changed: Vec<String>,
    /// Files that it made where git would commit them.
    pub made: Vec<String>,
    /// Where versions of the user's checkout are that were replaced.
    pub parked: Vec<String>,
    /// The beginning of what it changed, as a diff.
    pub diff: String,
}

/// What a check has left, and what that says about the work.
#[derive(Debug)]
pub(crate) struct JudgedTraces {
    pub traces: CheckTraces,
    /// The changed files that a check must not change.
    pub forbidden: Vec<String>,
    /// Those that say nothing about the work: lock files, and files that the check changes without it, too.
    pub tolerated: Vec<String>,
}

impl CheckTraces {
    /// Says what had changed in frozen content, and was put back; `None` if that is nothing.
    pub fn describe(&self) -> Option<String> {
        if self.changed.is_empty() && self.made.is_empty() {
            return None;
        }
        let paths: Vec<String> = self.changed.iter().chain(&self.made).cloned().collect();
        Some(format!(
            "these files had changed since the work was looked at (by checks that were interrupted, or by hand): {}; they are as \
             before, and what was there is kept: {}",
            name_files(&paths),
            name_files(&self.parked)
        ))
    }

    pub fn add_traces(&mut self, other: CheckTraces) {
        self.changed.extend(other.changed);
        self.made.extend(other.made);
        self.parked.extend(other.parked);
    }
}

impl DevelopmentWorkspace {
    /// Prepares for checks on a tree whose files are in the workspace.
    pub fn begin_checks(&self, held: HeldTree) -> Result<WorkSnapshot, WorkspaceError> {
        let mark_path = self.directory.join(MARK_FILE);
        let mark_text =
            serde_json::to_vec(&CheckMark { tree: held.tree }).map_err(io::Error::other).at_path(&mark_path)?;
        atomic_files::write_privately(&mark_path, &mark_text).at_path(&mark_path)?;
        self.put_check_git()?;
        let taken_at_ns = current_time_ns();
        Ok(WorkSnapshot { taken_at_ns, ..WorkSnapshot::of_index(self, held.others)? })
    }

    /// Puts the files back that checks had changed when their process ended.
    pub(super) fn undo_interrupted_checks(&self) -> Result<CheckTraces, WorkspaceError> {
        self.return_agent_git()?;
        let mark_path = self.directory.join(MARK_FILE);
        let Ok(mark_text) = fs::read(&mark_path) else { return Ok(CheckTraces::default()) };
        let checked_tree = serde_json::from_slice::<CheckMark>(&mark_text).ok().map(|mark| mark.tree);
        if checked_tree.is_none() || checked_tree != self.find_frozen_tree() {
            return Ok(CheckTraces::default());
        }
        self.control_git().with_frozen_index().remove_index_lock();
        let traces = WorkSnapshot::of_index(self, Vec::new())?.put_everything_back()?;
        fs::remove_file(&mark_path).at_path(&mark_path)?;
        Ok(traces)
    }

    /// Lists the files that the user has committed in the checkout since the work began and that are as in that commit. They are the
    /// user's, and the work is rebased onto them later.
    pub(super) fn list_committed_by_user(&self) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        let record = &self.record;
        if !self.is_in_place() {
            return Ok(BTreeSet::new());
        }
        let repository = UserRepository::open_around(&record.project_root)?;
        let Some(head) = repository.find_commit("HEAD")?.filter(|head| *head != record.base) else {
            return Ok(BTreeSet::new());
        };
        let mut paths: BTreeSet<Vec<u8>> =
            list_changes(&repository, &record.base, &head)?.into_iter().map(|change| change.path).collect();
        let mut differing = repository.checkout_command(&repository.layout.work_tree_top);
        differing.args(["diff-index", "--name-only", "-z", "HEAD"]);
        for path in split_paths(&run_checked(differing, None)?) {
            paths.remove(&path);
        }
        Ok(paths)
    }
}

/// Whether a version that is replaced is kept in the user's project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeepReplaced {
    Always,
    /// Only in the user's checkout, where the user may have edited a file while the check ran.
    InCheckout,
}

impl WorkSnapshot {
    /// Whether there is nothing but the frozen content, as in a fresh clone of it.
    pub fn stands_alone(&self) -> bool {
        self.others.is_empty() && self.workspace.has_only(self.files.iter().map(|file| file.path.as_slice()))
    }

    /// The content that is frozen in the index. `others` are the repositories and files that are there besides it.
    pub(super) fn of_index(
        workspace: &DevelopmentWorkspace,
        others: Vec<Vec<u8>>,
    ) -> Result<WorkSnapshot, WorkspaceError> {
        let files = read_index(&workspace.control_git().with_frozen_index())?;
        Ok(WorkSnapshot {
            workspace: workspace.clone(),
            broken_seals: workspace.find_broken_seals(),
            ignore_files: read_ignore_files(&workspace.record.tree, &files),
            files,
            taken_at_ns: i64::MIN,
            made_paths: Vec::new(),
            others,
        })
    }

    /// Puts the work back to what it was without losing anything of what is there: the user may have worked in it.
    pub(super) fn put_everything_back(mut self) -> Result<CheckTraces, WorkspaceError> {
        let mut traces = self.take_traces(KeepReplaced::Always)?;
        traces.parked.extend(self.remove_made(KeepReplaced::Always)?);
        Ok(traces)
    }

    /// Compares the work with what it was, and puts back what a check has changed.
    pub fn restore_changes(&mut self) -> Result<CheckTraces, WorkspaceError> {
        self.take_traces(KeepReplaced::InCheckout)
    }

    /// Does the same after a check, and judges what it has changed.
    pub fn judge_changes(&mut self, command: &CommandLine) -> Result<JudgedTraces, WorkspaceError> {
        let traces = self.restore_changes()?;
        if traces.changed.is_empty() {
            return Ok(JudgedTraces { traces, forbidden: Vec::new(), tolerated: Vec::new() });
        }
        if self.workspace.is_untouched() {
            self.workspace.remember_base_traces(command, &traces.changed)?;
        }
        let base_traces = self.workspace.list_base_traces(command);
        let is_tolerated = |path: &String| is_lock_file(path.as_bytes()) || base_traces.contains(path);
        let (tolerated, forbidden) = traces.changed.iter().cloned().partition(is_tolerated);
        Ok(JudgedTraces { traces, forbidden, tolerated })
    }

    /// Removes the files that checks have made, after the last one. Returns where they are kept, if they are.
    pub fn finish(mut self) -> Result<Vec<String>, WorkspaceError> {
        let parked = self.remove_made(KeepReplaced::InCheckout)?;
        self.workspace.return_agent_git()?;
        let mark_path = self.workspace.directory.join(MARK_FILE);
        fs::remove_file(&mark_path).at_path(&mark_path)?;
        Ok(parked)
    }

    fn take_traces(&mut self, keep: KeepReplaced) -> Result<CheckTraces, WorkspaceError> {
        let check_git = self.workspace.control_git().with_frozen_index();
        // Neither git nor we could look into a directory that is closed, or write there.
        let tree = &self.workspace.record.tree;
        self.files.iter().for_each(|file| open_parents(tree, &file.path));
        self.forget_stamps(&check_git)?;
        let mut traces = CheckTraces { made: self.restore_ignore_files()?, ..CheckTraces::default() };
        let users_paths = self.workspace.list_committed_by_user()?;
        let mut changed_paths = Vec::new();
        for entry in self.workspace.read_status(&check_git)? {
            let is_known = self.made_paths.contains(&entry.path) || self.others.contains(&entry.path);
            if users_paths.contains(&entry.path) {
                continue;
            }
            if entry.is_tracked() && entry.is_unstaged() {
                changed_paths.push(entry.path);
            } else if !entry.is_tracked() && !is_known {
                traces.made.push(self.workspace.shown_path(&entry.path));
                self.made_paths.push(entry.path);
            }
        }
        traces.diff = self.show_changes(&check_git, &changed_paths);
        traces.parked.extend(self.clear_parents(&changed_paths, keep)?);
        for path in &changed_paths {
            traces.parked.extend(self.clear_place(path, keep)?);
        }
        if !changed_paths.is_empty() {
            let arguments = ["checkout-index", "-f", "-q", "-z", "--stdin"];
            check_git.run_with_input(arguments, Some(join_with_nul(&changed_paths)))?;
            self.require_restored(&check_git)?;
        }
        traces.changed = changed_paths.iter().map(|path| self.workspace.shown_path(path)).collect();
        traces.changed.extend(self.list_newly_broken_seals());
        Ok(traces)
    }

    /// Shows the beginning of changes that are about to be put back; nothing where they are long or no text.
    fn show_changes(&self, check_git: &ControlGit, paths: &[Vec<u8>]) -> String {
        let tree = &self.workspace.record.tree;
        let sizes = paths.iter().filter_map(|path| fs::symlink_metadata(tree_path(tree, path)).ok());
        let total: u64 = sizes.map(|metadata| metadata.len()).sum();
        if paths.is_empty() || total > MAX_SHOWN_BYTES {
            return String::new();
        }
        let arguments = ["diff-files", "-p", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];
        let diff = check_git.run(arguments).unwrap_or_default();
        truncate_chars(&String::from_utf8_lossy(&diff), MAX_SHOWN_CHARS)
    }

    /// Puts ignore files back that no index has, and removes new ones: a file that ignores itself would hide what a check makes, and what
    /// is new in the work. Returns those that were changed or removed.
    fn restore_ignore_files(&self) -> Result<Vec<String>, WorkspaceError> {
        let tree = &self.workspace.record.tree;
        let mut restored = Vec::new();
        for (path, bytes) in read_ignore_files(tree, &self.files) {
            match self.ignore_files.get(&path) {
                Some(old_bytes) if *old_bytes == bytes => continue,
                Some(old_bytes) => fs::write(&path, old_bytes).at_path(&path)?,
                None => fs::remove_file(&path).at_path(&path)?,
            }
            let relative_path = path.strip_prefix(tree).unwrap_or(&path);
            restored.push(self.workspace.shown_path(relative_path.as_os_str().as_bytes()));
        }
        for (path, old_bytes) in self.ignore_files.iter().filter(|(path, _)| fs::symlink_metadata(path).is_err()) {
            fs::write(path, old_bytes).at_path(path)?;
        }
        Ok(restored)
    }

    /// Has git read every file again that may have changed since the content was staged.
    fn forget_stamps(&mut self, check_git: &ControlGit) -> Result<(), WorkspaceError> {
        let settled_ns = self.taken_at_ns.saturating_sub(CLOCK_STEP_NS);
        let tree = &self.workspace.record.tree;
        let is_unsettled = |file: &&SnapshotFile| {
            let stamp = read_stamp(tree, &file.path);
            stamp != file.stamp || !stamp.is_some_and(|stamp| stamp.is_older_than(settled_ns))
        };
        let unsettled: Vec<&SnapshotFile> = self.files.iter().filter(is_unsettled).collect();
        if unsettled.is_empty() {
            return Ok(());
        }
        // An entry that is written in this way knows nothing of the file, so that git has to compare the contents.
        let entries: Vec<Vec<u8>> =
            unsettled.iter().map(|file| [file.index_entry.as_slice(), b"\t", &file.path].concat()).collect();
        check_git.run_with_input(["update-index", "-z", "--index-info"], Some(join_with_nul(&entries))).map(drop)
    }

    /// Puts aside what a check made where a directory of the work was. Returns where it is kept, if it is.
    fn clear_parents(&mut self, paths: &[Vec<u8>], keep: KeepReplaced) -> Result<Vec<String>, WorkspaceError> {
        let is_parent = |made: &Vec<u8>| {
            paths.iter().any(|path| path.strip_prefix(made.as_slice()).is_some_and(|rest| rest.starts_with(b"/")))
        };
        let (parents, others) = std::mem::take(&mut self.made_paths).into_iter().partition(is_parent);
        self.made_paths = parents;
        let parked = self.remove_made(keep);
        self.made_paths = others;
        parked
    }

    /// Makes room for a file that is put back. Returns where the version that is there now is kept, if it is.
    fn clear_place(&self, path: &[u8], keep: KeepReplaced) -> Result<Option<String>, WorkspaceError> {
        let tree = &self.workspace.record.tree;
        let full_path = tree_path(tree, path);
        // What lies behind a link is not part of the work; git removes the link.
        if !has_real_parents(tree, path) || fs::symlink_metadata(&full_path).is_err() {
            return Ok(None);
        }
        self.put_aside(&full_path, path, keep)
    }

    fn remove_made(&mut self, keep: KeepReplaced) -> Result<Vec<String>, WorkspaceError> {
        let mut parked = Vec::new();
        for path in std::mem::take(&mut self.made_paths) {
            let tree = &self.workspace.record.tree;
            let plain_path = path.strip_suffix(b"/").unwrap_or(&path);
            let full_path = tree_path(tree, plain_path);
            // A later check may have removed it again, or it is where a file was put back.
            if has_real_parents(tree, plain_path) && fs::symlink_metadata(&full_path).is_ok() {
                parked.extend(self.put_aside(&full_path, plain_path, keep)?);
            }
        }
        Ok(parked)
    }

    /// Moves what is at a path to where the user finds it, or removes it.
    fn put_aside(&self, full_path: &Path, path: &[u8], keep: KeepReplaced) -> Result<Option<String>, WorkspaceError> {
        let record = &self.workspace.record;
        open_parents(&record.tree, path);
        if self.workspace.is_in_place() {
            let project = Project::from_root(&record.project_root);
            let parked = move_to_parked(&project, &record.run, &self.workspace.shown_path(path)).at_path(full_path)?;
            return Ok(Some(parked.display().to_string()));
        }
        if keep == KeepReplaced::Always {
            let kept_path = self.choose_kept_path(full_path)?;
            fs::rename(full_path, &kept_path).at_path(full_path)?;
            return Ok(Some(kept_path.display().to_string()));
        }
        let is_directory = fs::symlink_metadata(full_path).at_path(full_path)?.is_dir();
        let removed = match is_directory {
            true => TaskWorkspace::from_directory(full_path.to_path_buf()).remove(),
            false => fs::remove_file(full_path),
        };
        removed.at_path(full_path).map(|()| None)
    }

    /// Returns a path beside the clone that nothing has yet. Other directories may be on another disk.
    fn choose_kept_path(&self, full_path: &Path) -> Result<PathBuf, WorkspaceError> {
        let kept_dir = self.workspace.directory.join(KEPT_DIR);
        create_private_dir(&kept_dir)?;
        let file_name = full_path.file_name().unwrap_or_default().to_string_lossy();
        let candidates = (1_u64..).map(|number| kept_dir.join(format!("{number}-{file_name}")));
        let free = candidates.into_iter().find(|path| fs::symlink_metadata(path).is_err());
        Ok(free.unwrap_or_else(|| kept_dir.join("last")))
    }

    /// Refuses to go on if a file is not what it was: what would land is not known.
    fn require_restored(&mut self, check_git: &ControlGit) -> Result<(), WorkspaceError> {
        self.forget_stamps(check_git)?;
        let entries = self.workspace.read_status(check_git)?;
        let users_paths = self.workspace.list_committed_by_user()?;
        let is_changed =
            |entry: &&StatusEntry| entry.is_tracked() && entry.is_unstaged() && !users_paths.contains(&entry.path);
        match entries.iter().find(is_changed) {
            None => Ok(()),
            Some(entry) => Err(WorkspaceError::new_refusal(format!(
                "a check changed {}, which could not be put back",
                self.workspace.shown_path(&entry.path)
            ))),
        }
    }

    /// Lists sealed files that were changed since. Git cannot put them back, and a commit refuses them.
    fn list_newly_broken_seals(&self) -> Vec<String> {
        let broken_now = self.workspace.find_broken_seals().into_iter();
        let is_new = |seal: &BrokenSeal| !self.broken_seals.contains(seal);
        broken_now.filter(is_new).map(|seal| self.workspace.shown_path(&seal.path)).collect()
    }
}

/// Reads the ignore files in the directories of these files that are not among them.
fn read_ignore_files(tree: &Path, files: &[SnapshotFile]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut directories = BTreeSet::from([tree.to_path_buf()]);
    let mut staged_files = BTreeSet::new();
    for file in files {
        let full_path = tree_path(tree, &file.path);
        let parents = full_path.ancestors().skip(1).take_while(|directory| *directory != tree);
        for directory in parents {
            // All directories above it are there as well.
            if !directories.insert(directory.to_path_buf()) {
                break;
            }
        }
        if is_ignore_file(&file.path) {
            staged_files.insert(full_path);
        }
    }
    let candidates = directories.into_iter().map(|directory| directory.join(OsStr::from_bytes(IGNORE_FILE)));
    // Git follows no link here either, and what lies behind one is not part of the work.
    let is_own_file = |path: &PathBuf| {
        let relative_path = path.strip_prefix(tree).unwrap_or(path).as_os_str().as_bytes();
        is_own_content(tree, relative_path) && !path.is_symlink()
    };
    let others = candidates.filter(|path| !staged_files.contains(path)).filter(is_own_file);
    others.filter_map(|path| fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
}

/// Makes the directories above a path accessible for their owner. What lies behind a link stays as it is, and so does a directory that
/// is the property of another user: what then fails says so.
fn open_parents(tree: &Path, path: &[u8]) {
    let full_path = tree_path(tree, path);
    let parents: Vec<&Path> = full_path.ancestors().skip(1).take_while(|directory| *directory != tree).collect();
    for directory in parents.into_iter().rev() {
        let Ok(metadata) = fs::symlink_metadata(directory) else { return };
        if !metadata.is_dir() {
            return;
        }
        let mode = metadata.permissions().mode();
        if mode & OWNER_ACCESS != OWNER_ACCESS {
            let _ = fs::set_permissions(directory, fs::Permissions::from_mode(mode | OWNER_ACCESS));
        }
    }
}

/// Lists the files of an index, with their stamps.
fn read_index(check_git: &ControlGit) -> Result<Vec<SnapshotFile>, WorkspaceError> {
    let listing = split_paths(&check_git.run(["ls-files", "-s", "-z"])?);
    let files = listing.into_iter().filter_map(|line| {
        // The form is: MODE OBJECT STAGE<tab>PATH
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let path = line[tab + 1..].to_vec();
        let stamp = read_stamp(&check_git.work_tree, &path);
        Some(SnapshotFile { index_entry: line[..tab].to_vec(), stamp, path })
    });
    Ok(files.collect())
}

fn read_stamp(tree: &Path, path: &[u8]) -> Option<FileStamp> {
    if !is_own_content(tree, path) {
        return None;
    }
    fs::symlink_metadata(tree_path(tree, path)).ok().map(|metadata| FileStamp::from_metadata(&metadata))
}

fn current_time_ns() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
