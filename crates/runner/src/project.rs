//! Where things are in a person's project.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_core::ids::{Key, RunId};

/// A project's root and our folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

/// Files and folders that make a folder a project's root: the nearest folder with any of them is it.
const MARKS: [&str; 4] = ["tribunal.yaml", ".tribunal", "_bmad", ".git"];

fn marked(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| MARKS.iter().any(|mark| folder.join(mark).exists()))
}

impl Project {
    pub fn at(root: impl Into<PathBuf>) -> Project {
        Project { root: root.into() }
    }

    /// The nearest folder upwards that looks like a project's root, else the folder itself.
    pub fn around(folder: &Path) -> Project {
        Project::at(marked(folder).unwrap_or(folder))
    }

    /// Whether a folder lies in something that looks like a project.
    pub fn is_marked(folder: &Path) -> bool {
        marked(folder).is_some()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path of ours really leads, links followed as far as they exist, if that is outside the project.
    pub fn leads_out(&self, path: &Path) -> Option<PathBuf> {
        let root = self.root.canonicalize().ok()?;
        for part in path.ancestors() {
            if let Ok(there) = part.canonicalize() {
                return (!there.starts_with(root)).then_some(there);
            }
            // A link to what is not there: writing would make it there.
            if let Ok(there) = fs::read_link(part) {
                return Some(there);
            }
        }
        None
    }

    /// `.tribunal`: journal, copies, locks; ignored by git through a file of its own.
    pub fn home(&self) -> PathBuf {
        self.root.join(".tribunal")
    }

    /// The project's own template of this name, if it has one.
    pub fn template(&self, name: &str) -> Result<Option<String>, String> {
        let path = self.home().join("templates").join(name);
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

    /// Subjects as they were before a run's first landing.
    pub fn originals(&self, run: &RunId) -> PathBuf {
        self.home().join("originals").join(run.as_str())
    }

    /// The exact texts before and after every landing of a run.
    pub(crate) fn checkpoints(&self, run: &RunId) -> PathBuf {
        self.home().join("checkpoints").join(run.as_str())
    }

    /// Texts as they were when something was taken back.
    pub(crate) fn parked(&self, run: &RunId) -> PathBuf {
        self.home().join("parked").join(run.as_str())
    }

    /// The folder of a task's copies.
    pub(crate) fn desk(&self, run: &RunId, key: &Key) -> PathBuf {
        self.work(run).join(key.as_str().replace('/', "."))
    }
}
