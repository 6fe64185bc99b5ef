//! Where things are in a user's project.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_core::ids::{Key, RunId};

/// A project's root and the `.tribunal` directory in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

/// Files and directories that mark a project's root: the nearest directory with any of them is the root.
const MARKS: [&str; 4] = ["tribunal.yaml", ".tribunal", "_bmad", ".git"];

fn marked(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| MARKS.iter().any(|mark| folder.join(mark).exists()))
}

impl Project {
    pub fn at(root: impl Into<PathBuf>) -> Project {
        Project { root: root.into() }
    }

    /// Returns the project around a directory: its nearest ancestor that looks like a project's root, or the directory itself.
    pub fn around(folder: &Path) -> Project {
        Project::at(marked(folder).unwrap_or(folder))
    }

    /// Whether a directory lies in something that looks like a project.
    pub fn is_marked(folder: &Path) -> bool {
        marked(folder).is_some()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves a path as far as it exists and returns where it leads, if that is outside the project.
    pub fn leads_out(&self, path: &Path) -> Option<PathBuf> {
        let root = self.root.canonicalize().ok()?;
        for part in path.ancestors() {
            // The path itself may not exist yet; its nearest existing ancestor decides where it would be created.
            if let Ok(there) = part.canonicalize() {
                return (!there.starts_with(root)).then_some(there);
            }
            // A dangling link: writing through it would create the file at the link's target.
            if let Ok(there) = fs::read_link(part) {
                return Some(there);
            }
        }
        None
    }

    /// Returns `.tribunal`, with the journal, workspaces and locks. A `.gitignore` of its own makes git ignore it.
    pub fn home(&self) -> PathBuf {
        self.root.join(".tribunal")
    }

    /// Reads the project's own template of this name, if it has one.
    pub fn template(&self, name: &str) -> Result<Option<String>, String> {
        let path = self.home().join("templates").join(name);
        // Only a template that does not exist falls back to the built-in one; an unreadable one is an error.
        if fs::symlink_metadata(&path).is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let shown = || format!(".tribunal/templates/{name}");
        if let Some(there) = self.leads_out(&path) {
            return Err(format!("{} leads out of the project, to {}", shown(), there.display()));
        }
        fs::read_to_string(&path).map(Some).map_err(|cause| format!("{} cannot be read: {cause}", shown()))
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.home().join("locks")
    }

    pub(crate) fn prepare_home(&self) -> io::Result<()> {
        let home = self.home();
        fs::create_dir_all(self.locks())?;
        let ignore = home.join(".gitignore");
        if !ignore.exists() {
            fs::write(ignore, "*\n")?;
        }
        Ok(())
    }

    pub(crate) fn work(&self, run: &RunId) -> PathBuf {
        self.home().join("work").join(run.as_str())
    }

    /// The directory with the subjects as they were before the run's first landing.
    pub fn originals(&self, run: &RunId) -> PathBuf {
        self.home().join("originals").join(run.as_str())
    }

    /// The directory with the exact texts before and after every landing of a run.
    pub(crate) fn checkpoints(&self, run: &RunId) -> PathBuf {
        self.home().join("checkpoints").join(run.as_str())
    }

    /// The directory with texts as they were when a landing was undone.
    pub(crate) fn parked(&self, run: &RunId) -> PathBuf {
        self.home().join("parked").join(run.as_str())
    }

    /// The directory that holds the workspaces of a task.
    pub(crate) fn desk(&self, run: &RunId, key: &Key) -> PathBuf {
        // Keys contain slashes, which would otherwise nest directories.
        self.work(run).join(key.as_str().replace('/', "."))
    }
}
