//! Files that only the work hides from git: an agent has added to a `.gitignore`, and made files that are ignored by that.
//!
//! While the work is parked, its `.gitignore` is not in the checkout either. The files would be visible there, and count as work of the
//! next story. So they wait with the work that made them, among the parked files of the run. They are renamed, with their whole
//! directory where that is possible, and not committed: they may be gigabytes. What git ignored before the work began is never
//! among them, because what ignored it is still there when the work is not.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use tribunal_engine::ids::CommitId;
use tribunal_json::{Deserialize, Serialize};

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError, create_private_dir,
    git_listings::TreeDifference,
    ignore_rules::{IGNORE_FILE, IgnoreRules, is_ignore_file},
    special_files::tree_path,
    tree_files::has_real_parents,
    user_repository::split_paths,
};
use crate::project::Project;

/// The directory with the rules that hold while the work is parked.
const RULES_DIR: &str = "parking-rules";
/// A directory with more files stays where it is.
const MAX_FILES_BELOW: usize = 500_000;

/// Files that wait outside of the checkout, with the work that made them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct HiddenFiles {
    /// The name of the directory in which they wait.
    directory: String,
    /// Files, links and whole directories. A name may be any bytes.
    paths: Vec<Vec<u8>>,
}

impl HiddenFiles {
    /// Finds the files that would be visible if the work were not in the checkout. `changes` lead from the work to `target`.
    pub fn find_in(
        workspace: &DevelopmentWorkspace,
        target: &CommitId,
        changes: &[TreeDifference],
    ) -> Result<HiddenFiles, WorkspaceError> {
        let changed_rules: BTreeSet<&[u8]> =
            changes.iter().map(|change| change.path.as_slice()).filter(|path| is_ignore_file(path)).collect();
        if changed_rules.is_empty() {
            return Ok(HiddenFiles::default());
        }
        let commit_git = workspace.control_git().with_commit_index();
        commit_git.run(["read-tree", target.as_str()])?;
        let rules = IgnoreRules::check_out(&commit_git, workspace.directory.join(RULES_DIR))?;
        let remaining = RemainingRules { workspace, rules, changed_rules };
        let found_paths = remaining.find_visible_paths()?;
        remaining.rules.remove_files()?;
        // What waits from an earlier time is never overwritten.
        let run_dir = parked_dir(workspace);
        let is_free = |name: &String| fs::symlink_metadata(run_dir.join(name)).is_err();
        let directory = (1_u32..).map(|number| format!("hidden-files-{number}")).find(is_free).unwrap_or_default();
        Ok(HiddenFiles { directory, paths: found_paths })
    }

    /// Moves the files out of the checkout. What cannot be moved stays, and is named like any other file that is not committed.
    pub fn put_aside(&self, workspace: &DevelopmentWorkspace) {
        if let Some(waiting_dir) = self.waiting_dir(workspace) {
            self.move_entries(&workspace.record.tree, &waiting_dir);
        }
    }

    /// Moves the files into the checkout again. Where there is another file by now, that one counts.
    pub fn bring_back(&self, workspace: &DevelopmentWorkspace) {
        if let Some(waiting_dir) = self.waiting_dir(workspace) {
            self.move_entries(&waiting_dir, &workspace.record.tree);
            // It fails if something is left in it.
            let _ = fs::remove_dir(&waiting_dir);
        }
    }

    /// Returns where the files wait; `None` if there are none, or if a link leads out of the project.
    fn waiting_dir(&self, workspace: &DevelopmentWorkspace) -> Option<PathBuf> {
        let waiting_dir = parked_dir(workspace).join(&self.directory);
        let project = Project::from_root(&workspace.record.project_root);
        let is_usable = !self.paths.is_empty() && project.resolve_outside(&waiting_dir).is_none();
        is_usable.then_some(waiting_dir)
    }

    /// Renames the files from one directory to another. What was moved already is not there any more, so this can be repeated.
    fn move_entries(&self, from: &Path, to: &Path) {
        for path in &self.paths {
            let (source_path, target_path) = (tree_path(from, path), tree_path(to, path));
            // Nothing behind a link is part of either directory.
            let is_movable = fs::symlink_metadata(&source_path).is_ok()
                && fs::symlink_metadata(&target_path).is_err()
                && has_real_parents(from, path)
                && has_real_parents(to, path);
            let Some(target_dir) = target_path.parent().filter(|_| is_movable) else { continue };
            if fs::create_dir_all(target_dir).is_err() || fs::rename(&source_path, &target_path).is_err() {
                continue;
            }
            // Directories that are empty now go as well, as they would with git.
            for directory in source_path.ancestors().skip(1).take_while(|directory| *directory != from) {
                if fs::remove_dir(directory).is_err() {
                    break;
                }
            }
        }
    }
}

/// Returns the directory with the parked files of the run.
fn parked_dir(workspace: &DevelopmentWorkspace) -> PathBuf {
    Project::from_root(&workspace.record.project_root).parked_dir(&workspace.record.run)
}

/// The rules about ignored files that hold while the work is parked.
struct RemainingRules<'a> {
    workspace: &'a DevelopmentWorkspace,
    rules: IgnoreRules,
    /// The files with rules that the work has changed.
    changed_rules: BTreeSet<&'a [u8]>,
}

impl RemainingRules<'_> {
    /// Finds what git ignores now, and will not ignore then.
    fn find_visible_paths(&self) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let arguments = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
        let mut ignored_paths = split_paths(&self.workspace.control_git().run(arguments)?);
        ignored_paths.retain(|path| !self.workspace.record.is_own_file(path));
        let parents: BTreeSet<&[u8]> = ignored_paths.iter().flat_map(|path| list_parents(path)).collect();
        self.add_uncommitted_rules(parents.iter().copied())?;
        let mut found_paths = BTreeSet::new();
        for path in self.rules.list_visible(ignored_paths)? {
            // The name of a directory ends with a slash.
            match path.strip_suffix(b"/") {
                Some(directory) => found_paths.extend(self.find_visible_below(directory)?),
                None => {
                    found_paths.insert(path);
                }
            }
        }
        // Git lists some files with their directory.
        let is_listed_below = |path: &Vec<u8>| list_parents(path).any(|parent| found_paths.contains(parent));
        Ok(found_paths.iter().filter(|path| !is_listed_below(path)).cloned().collect())
    }

    /// Finds what will be visible of a directory that is ignored now: the whole of it, or single files.
    fn find_visible_below(&self, directory: &[u8]) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let Some(content) = DirectoryContent::read_from(&self.workspace.record.tree, directory) else {
            return Ok(Vec::new());
        };
        self.add_uncommitted_rules(content.directories.iter().map(Vec::as_slice))?;
        let file_count = content.files.len();
        let mut visible_files = self.rules.list_visible(content.files)?;
        visible_files.retain(|path| !self.workspace.record.is_own_file(path));
        let is_whole = file_count > 0 && visible_files.len() == file_count;
        Ok(if is_whole { vec![directory.to_vec()] } else { visible_files })
    }

    /// Adds the rules in directories that are neither committed nor the work's: they stay where they are. Many tools write one into
    /// their own directory, so that git ignores it.
    fn add_uncommitted_rules<'p>(&self, directories: impl Iterator<Item = &'p [u8]>) -> Result<(), WorkspaceError> {
        for directory in directories.filter(|directory| !directory.is_empty()) {
            let path = [directory, b"/", IGNORE_FILE].concat();
            let (source_path, copied_path) =
                (tree_path(&self.workspace.record.tree, &path), tree_path(&self.rules.directory, &path));
            let is_left = !self.changed_rules.contains(path.as_slice())
                && fs::symlink_metadata(&source_path).is_ok_and(|metadata| metadata.is_file())
                && fs::symlink_metadata(&copied_path).is_err();
            if is_left {
                create_private_dir(copied_path.parent().unwrap_or(&self.rules.directory))?;
                fs::copy(&source_path, &copied_path).at_path(&source_path)?;
            }
        }
        Ok(())
    }
}

/// What is in a directory and those below it. Links are not followed.
#[derive(Default)]
struct DirectoryContent {
    /// Everything that is no directory.
    files: Vec<Vec<u8>>,
    directories: Vec<Vec<u8>>,
}

impl DirectoryContent {
    /// Reads a directory; `None` if not all of it can be read, or if there is too much in it.
    fn read_from(tree: &Path, directory: &[u8]) -> Option<DirectoryContent> {
        use std::os::unix::ffi::OsStrExt;
        let mut content = DirectoryContent::default();
        let mut pending_dirs = vec![directory.to_vec()];
        while let Some(current_dir) = pending_dirs.pop() {
            for entry in fs::read_dir(tree_path(tree, &current_dir)).ok()? {
                let entry = entry.ok()?;
                let path = [current_dir.as_slice(), b"/", entry.file_name().as_bytes()].concat();
                match entry.file_type().ok()?.is_dir() {
                    true => pending_dirs.push(path),
                    false => content.files.push(path),
                }
            }
            if content.files.len() > MAX_FILES_BELOW {
                return None;
            }
            content.directories.push(current_dir);
        }
        Some(content)
    }
}

/// Lists the directories above a path. A directory whose name ends with a slash is above itself.
fn list_parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(move |(position, _)| &path[..position])
}
