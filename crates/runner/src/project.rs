//! Where things are in a user's project.

pub(crate) mod atomic_files;
pub mod bmad_project;
pub mod document_search;
pub mod file_edits;
pub mod locked_edit;
pub mod project_files;
pub mod report_files;
pub mod sprint_facts;
pub mod story_facts;
pub mod story_plan;
pub mod subject;
pub(crate) mod trash_marks;

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tribunal_engine::ids::{Key, RunId};

/// A project's root and the `.tribunal` directory in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    /// Another directory with the files that a run works on; `None` if these are the project's own.
    tree: Option<PathBuf>,
}

/// The mode of `.tribunal`.
const HOME_MODE: u32 = 0o700;

/// The settings file in a project's root.
pub const SETTINGS_FILE: &str = "tribunal.yaml";
/// Other editors and tools write this ending; the file is read if [`SETTINGS_FILE`] does not exist.
pub const SHORT_SETTINGS_FILE: &str = "tribunal.yml";

/// Files and directories that mark a project's root: the nearest directory with any of them is the root. In a linked worktree
/// `.git` is a file. An empty `.git` directory is no repository: the sandbox of Codex leaves one in `/tmp`, which would become
/// the root of everything below it.
const ROOT_MARKERS: [&str; 5] = [SETTINGS_FILE, SHORT_SETTINGS_FILE, ".tribunal", "_bmad", ".git/HEAD"];

fn find_project_root(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|directory| {
        ROOT_MARKERS.iter().any(|marker| directory.join(marker).exists()) || directory.join(".git").is_file()
    })
}

/// Which of the two names a project's settings have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsFileChoice {
    /// The name of the file that is read, whether it exists or not.
    pub file_name: &'static str,
    /// The name of the other file, if it exists too and is not read.
    pub ignored_name: Option<&'static str>,
}

impl SettingsFileChoice {
    pub fn from_root(project_root: &Path) -> SettingsFileChoice {
        // A broken link counts as a file: it was meant to lead somewhere, and reading it reports that.
        let is_there = |file_name: &str| project_root.join(file_name).symlink_metadata().is_ok();
        match (is_there(SETTINGS_FILE), is_there(SHORT_SETTINGS_FILE)) {
            (false, true) => SettingsFileChoice { file_name: SHORT_SETTINGS_FILE, ignored_name: None },
            (true, true) => SettingsFileChoice { file_name: SETTINGS_FILE, ignored_name: Some(SHORT_SETTINGS_FILE) },
            (_, false) => SettingsFileChoice { file_name: SETTINGS_FILE, ignored_name: None },
        }
    }
}

impl Project {
    pub fn from_root(project_root: impl Into<PathBuf>) -> Project {
        Project { root: project_root.into(), tree: None }
    }

    /// Returns the same project for a run that works on the files of another directory, for instance of a clone. Journal, locks and
    /// what users read stay in the project itself.
    #[must_use]
    pub(crate) fn with_tree(&self, tree: PathBuf) -> Project {
        Project { root: self.root.clone(), tree: Some(tree) }
    }

    /// Returns the project around a directory: its nearest ancestor that looks like a project's root, or the directory itself.
    pub fn find_around(directory: &Path) -> Project {
        Project::from_root(find_project_root(directory).unwrap_or(directory))
    }

    /// Whether a directory lies in something that looks like a project.
    pub fn is_inside_project(directory: &Path) -> bool {
        find_project_root(directory).is_some()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory with the files that a run works on.
    pub(crate) fn tree_root(&self) -> &Path {
        self.tree.as_deref().unwrap_or(&self.root)
    }

    /// Resolves a path as far as it exists and returns where it leads, if that is outside the project.
    pub fn resolve_outside(&self, checked_path: &Path) -> Option<PathBuf> {
        resolve_outside_of(&self.root.canonicalize().ok()?, checked_path)
    }

    /// Returns `.tribunal`, with the journal, workspaces and locks. A `.gitignore` of its own makes git ignore it.
    pub fn home_dir(&self) -> PathBuf {
        self.root.join(".tribunal")
    }

    /// Reads the project's own template of this name, if it has one.
    pub fn read_template(&self, template_name: &str) -> Result<Option<String>, String> {
        let template_path = self.home_dir().join("templates").join(template_name);
        // Only a template that does not exist falls back to the built-in one; an unreadable one is an error.
        if fs::symlink_metadata(&template_path).is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let shown_path = || format!(".tribunal/templates/{template_name}");
        if let Some(real_target) = self.resolve_outside(&template_path) {
            return Err(format!("{} points outside the project, to {}", shown_path(), real_target.display()));
        }
        fs::read_to_string(&template_path)
            .map(Some)
            .map_err(|cause| format!("could not read {}: {cause}", shown_path()))
    }

    pub(crate) fn locks_dir(&self) -> PathBuf {
        self.home_dir().join("locks")
    }

    /// Creates `.tribunal` for the user alone: it has copies of files that others may not be allowed to read.
    pub(crate) fn prepare_home(&self) -> io::Result<()> {
        let home = self.home_dir();
        fs::DirBuilder::new().recursive(true).mode(HOME_MODE).create(self.locks_dir())?;
        let home_permissions = fs::metadata(&home)?.permissions();
        if home_permissions.mode() & 0o777 != HOME_MODE {
            // It may belong to another user, who shares it on purpose.
            let _ = fs::set_permissions(&home, fs::Permissions::from_mode(HOME_MODE));
        }
        let ignore_file = home.join(".gitignore");
        if !ignore_file.exists() {
            fs::write(ignore_file, "*\n")?;
        }
        Ok(())
    }

    pub(crate) fn work_dir(&self, run_id: &RunId) -> PathBuf {
        self.home_dir().join("work").join(run_id.as_str())
    }

    /// The directory with the subjects as they were before the run's first landing.
    pub fn originals_dir(&self, run_id: &RunId) -> PathBuf {
        self.home_dir().join("originals").join(run_id.as_str())
    }

    /// The directory with the exact texts before and after every landing of a run.
    pub(crate) fn checkpoints_dir(&self, run_id: &RunId) -> PathBuf {
        self.home_dir().join("checkpoints").join(run_id.as_str())
    }

    /// The directory with what is known of discarded runs.
    pub(crate) fn discarded_dir(&self) -> PathBuf {
        self.home_dir().join("discarded")
    }

    /// The directory with texts as they were before an undo, or the restoring of a stray edit, replaced them.
    pub(crate) fn parked_dir(&self, run_id: &RunId) -> PathBuf {
        self.home_dir().join("parked").join(run_id.as_str())
    }

    /// The directory that holds the workspaces of a task.
    pub(crate) fn task_dir(&self, run_id: &RunId, task_key: &Key) -> PathBuf {
        // Keys contain slashes, which would otherwise nest directories.
        self.work_dir(run_id).join(task_key.as_str().replace('/', "."))
    }
}

/// Resolves a path as far as it exists and returns where it leads, if that is outside a directory without links.
fn resolve_outside_of(canonical_root: &Path, checked_path: &Path) -> Option<PathBuf> {
    for ancestor in checked_path.ancestors() {
        // The path itself may not exist yet; its nearest existing ancestor decides where it would be created.
        if let Ok(real_target) = ancestor.canonicalize() {
            return (!real_target.starts_with(canonical_root)).then_some(real_target);
        }
        // A dangling link: writing through it would create the file at the link's target.
        if let Ok(real_target) = fs::read_link(ancestor) {
            return Some(real_target);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_either_name_mark_the_root_and_the_long_name_is_read_first() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let nested = root.join("docs/deep");
        fs::create_dir_all(&nested).unwrap();
        let choose = || {
            let choice = SettingsFileChoice::from_root(&root);
            (choice.file_name, choice.ignored_name)
        };
        assert_eq!(choose(), ("tribunal.yaml", None));
        fs::write(root.join("tribunal.yml"), "tier: 1\n").unwrap();
        assert_eq!(choose(), ("tribunal.yml", None));
        assert_eq!(Project::find_around(&nested).root(), root);
        fs::write(root.join("tribunal.yaml"), "tier: 2\n").unwrap();
        assert_eq!(choose(), ("tribunal.yaml", Some("tribunal.yml")));
        fs::remove_file(root.join("tribunal.yaml")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("tribunal.yaml")).unwrap();
        assert_eq!(choose(), ("tribunal.yaml", Some("tribunal.yml")), "a broken link is reported, not passed over");
    }

    #[test]
    fn only_a_repository_marks_the_root_not_an_empty_git_directory() {
        let directory = tempfile::tempdir().unwrap();
        let outer = directory.path().canonicalize().unwrap();
        let nested = outer.join("project/docs");
        fs::create_dir_all(&nested).unwrap();
        fs::create_dir(outer.join("project/.git")).unwrap();
        fs::write(outer.join("tribunal.yaml"), "").unwrap();
        assert_eq!(Project::find_around(&nested).root(), outer);
        fs::write(outer.join("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(Project::find_around(&nested).root(), outer.join("project"));
        fs::remove_dir_all(outer.join("project/.git")).unwrap();
        fs::write(outer.join("project/.git"), "gitdir: elsewhere\n").unwrap();
        assert_eq!(Project::find_around(&nested).root(), outer.join("project"), "a linked worktree");
    }
}
