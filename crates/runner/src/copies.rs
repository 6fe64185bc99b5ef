//! Private copies: agents work in these and never in the person's tree.
//!
//! A copy holds the subject and its context: what git would track (or every ordinary file, where there is no git), up to a
//! bound, else the subject's own folder. Symbolic links and names that are no UTF-8 are left out. A list of content hashes
//! is kept beside it, so that afterwards every change is known, whatever an agent says.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tribunal_core::ids::Hash;

use crate::{files::write_atomically, subject::is_plain};

/// More than this is not copied for every task.
const MOST_FILES: usize = 5_000;
const MOST_BYTES: u64 = 128 << 20;
/// Never part of a copy, and never part of a patch: what tools leave behind when they run.
pub(crate) const NEVER: [&str; 7] =
    [".git", ".tribunal", "node_modules", "target", "__pycache__", ".pytest_cache", ".venv"];

/// Relative path to content hash.
pub(crate) type Manifest = BTreeMap<String, Hash>;

/// A finished copy on disk.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    folder: PathBuf,
}

impl Copy {
    pub fn at(folder: PathBuf) -> Copy {
        Copy { folder }
    }

    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn manifest_path(&self) -> PathBuf {
        self.folder.join("manifest.json")
    }

    /// A copy without its list was being made when something died; it counts as not there.
    pub fn is_complete(&self) -> bool {
        self.manifest_path().is_file()
    }

    /// Copies `subject` (relative) and its context from `root`.
    pub fn make(&self, root: &Path, subject: &str) -> io::Result<()> {
        if !is_plain(subject) {
            return Err(io::Error::other(format!("{subject} does not stay in the project")));
        }
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        let mut manifest = Manifest::new();
        let tree = self.tree();
        for path in context(root, subject) {
            let from = root.join(&path);
            // A file that vanished or cannot be read is not part of the context; the subject itself must be.
            let bytes = match fs::read(&from) {
                Ok(bytes) => bytes,
                Err(cause) if path == subject => return Err(cause),
                Err(_) => continue,
            };
            let to = tree.join(&path);
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&to, &bytes)?;
            if let Ok(meta) = fs::metadata(&from) {
                fs::set_permissions(&to, meta.permissions())?;
            }
            manifest.insert(path, Hash::of(&bytes));
        }
        let base = fs::read(tree.join(subject))?;
        fs::write(self.folder.join("base"), base)?;
        let json = serde_json::to_vec(&manifest).map_err(io::Error::other)?;
        write_atomically(&self.manifest_path(), &json)
    }

    /// Puts the subject back as it was, if somebody changed it.
    pub fn restore(&self, subject: &str) -> io::Result<()> {
        let base = self.base()?;
        let path = self.tree().join(subject);
        if fs::read(&path).is_ok_and(|now| now == base.as_bytes()) {
            return Ok(());
        }
        write_atomically(&path, base.as_bytes())
    }

    /// The subject as it was when the copy was made.
    pub fn base(&self) -> io::Result<String> {
        fs::read_to_string(self.folder.join("base"))
    }

    /// What differs from the copy as it was made: path to new hash, None for deleted.
    pub fn changes(&self) -> io::Result<BTreeMap<String, Option<Hash>>> {
        let manifest: Manifest =
            serde_json::from_slice(&fs::read(self.manifest_path())?).map_err(io::Error::other)?;
        let mut changes: BTreeMap<String, Option<Hash>> = BTreeMap::new();
        let now = hashes(&self.tree())?;
        for (path, hash) in &now {
            if manifest.get(path) != Some(hash) {
                changes.insert(path.clone(), Some(hash.clone()));
            }
        }
        for path in manifest.keys().filter(|path| !now.contains_key(*path)) {
            changes.insert(path.clone(), None);
        }
        Ok(changes)
    }
}

/// One hash for a set of changes.
pub(crate) fn patch_hash(changes: &BTreeMap<String, Option<Hash>>) -> Hash {
    let mut text = String::new();
    for (path, hash) in changes {
        text.push_str(path);
        text.push('\0');
        text.push_str(hash.as_ref().map_or("deleted", Hash::as_str));
        text.push('\n');
    }
    Hash::of(text.as_bytes())
}

fn hashes(tree: &Path) -> io::Result<Manifest> {
    let mut found = Manifest::new();
    let mut folders = vec![tree.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(&folder)? {
            let item = item?;
            let kind = item.file_type()?;
            let path = item.path();
            if kind.is_dir() {
                if !NEVER.iter().any(|never| item.file_name() == *never) {
                    folders.push(path);
                }
                continue;
            }
            // What an agent made that is no ordinary file still counts as a change, under a hash of its own.
            let hash = if kind.is_file() { Hash::of(&fs::read(&path)?) } else { Hash::new("special") };
            let name = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy().into_owned();
            found.insert(name, hash);
        }
    }
    Ok(found)
}

/// The files to copy, the subject always among them.
fn context(root: &Path, subject: &str) -> Vec<String> {
    let all = tracked(root).unwrap_or_else(|| walk(root, usize::MAX));
    let fits = |files: &[String]| {
        let size = |path: &String| fs::metadata(root.join(path)).map_or(0, |meta| meta.len());
        files.len() <= MOST_FILES && files.iter().map(size).sum::<u64>() <= MOST_BYTES
    };
    let mut files = all;
    if !fits(&files) {
        let own = Path::new(subject).parent().unwrap_or(Path::new(""));
        files = walk(&root.join(own), 1)
            .into_iter()
            .filter_map(|name| own.join(name).to_str().map(String::from))
            .collect();
        if !fits(&files) {
            files.clear();
        }
    }
    if !files.iter().any(|path| path == subject) {
        files.push(subject.to_string());
    }
    files
}

/// What git would track: committed, staged and new, without what is ignored. None where git cannot say.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = git(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let names = output.stdout.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    let ordinary = |name: &&str| {
        let plain = fs::symlink_metadata(root.join(name)).is_ok_and(|meta| meta.is_file());
        plain && !name.split('/').any(|part| NEVER.contains(&part))
    };
    Some(names.filter(|name| !name.is_empty()).filter(ordinary).map(String::from).collect())
}

/// Git, asked something about a project that may be a stranger's: nothing in its configuration gets to run a program, and a
/// folder that merely looks like a repository is not one.
fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("--no-optional-locks");
    for setting in [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.pager=cat",
        "safe.bareRepository=explicit",
        "protocol.allow=never",
    ] {
        git.args(["-c", setting]);
    }
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
    ] {
        git.env_remove(name);
    }
    git.current_dir(root).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
    git
}

/// Ordinary files below a folder, down to `depth` folders.
fn walk(root: &Path, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![(root.to_path_buf(), 1)];
    while let Some((folder, level)) = folders.pop() {
        for item in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = item.file_name();
            let Ok(kind) = item.file_type() else { continue };
            if NEVER.iter().any(|never| name == *never) {
                continue;
            }
            if kind.is_dir() && level < depth {
                folders.push((item.path(), level + 1));
            } else if kind.is_file()
                && let Some(path) = item.path().strip_prefix(root).ok().and_then(Path::to_str)
            {
                found.push(path.to_string());
            }
            if found.len() > MOST_FILES {
                return found;
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("docs/prd.md", "one\n"),
            ("docs/other.md", "two\n"),
            ("node_modules/x.js", "no"),
            (".tribunal/j", "no"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("docs/link")).unwrap();
        root
    }

    #[test]
    fn a_copy_has_the_context_and_nothing_that_leads_outside() {
        let root = project();
        let copy = Copy::at(root.path().join(".tribunal/work/x"));
        copy.make(root.path(), "docs/prd.md").unwrap();
        let names: Vec<String> = hashes(&copy.tree()).unwrap().into_keys().collect();
        assert_eq!(names, ["docs/other.md", "docs/prd.md"]);
        assert_eq!(copy.changes().unwrap(), BTreeMap::new());
    }

    #[test]
    fn every_change_is_seen_whatever_an_agent_says() {
        let root = project();
        let copy = Copy::at(root.path().join(".tribunal/work/x"));
        copy.make(root.path(), "docs/prd.md").unwrap();
        fs::write(copy.tree().join("docs/prd.md"), "changed\n").unwrap();
        fs::remove_file(copy.tree().join("docs/other.md")).unwrap();
        std::os::unix::fs::symlink("/etc", copy.tree().join("way-out")).unwrap();
        let changes = copy.changes().unwrap();
        assert_eq!(changes.keys().collect::<Vec<_>>(), ["docs/other.md", "docs/prd.md", "way-out"]);
        assert_eq!(copy.base().unwrap(), "one\n");
    }

    #[test]
    fn a_stranger_s_repository_gets_nothing_to_run() {
        let root = project();
        let own = root.path().join("owned");
        let watcher = format!("touch '{}'", own.display());
        let git = |args: &[&str]| Command::new("git").args(args).current_dir(root.path()).output().unwrap();
        git(&["init", "-q"]);
        git(&["config", "core.fsmonitor", &watcher]);
        // The other way: a folder that was committed and looks like a repository of its own.
        let fake = root.path().join("docs");
        for folder in ["objects", "refs"] {
            fs::create_dir_all(fake.join(folder)).unwrap();
        }
        fs::write(fake.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let config =
            format!("[core]\nrepositoryformatversion = 0\nworktree = ..\nfsmonitor = \"{watcher}\"\n");
        fs::write(fake.join("config"), config).unwrap();
        assert!(context(root.path(), "docs/prd.md").contains(&"docs/prd.md".to_string()));
        assert!(context(&fake, "prd.md").contains(&"prd.md".to_string()));
        assert!(!own.exists(), "the project's own configuration ran a program");
    }

    #[test]
    fn ignored_files_stay_out_and_an_ignored_subject_stays_in() {
        let root = project();
        let git = |args: &[&str]| Command::new("git").args(args).current_dir(root.path()).output().unwrap();
        git(&["init", "-q"]);
        fs::write(root.path().join(".gitignore"), "docs/\n.tribunal/\n").unwrap();
        let found = context(root.path(), "docs/prd.md");
        assert!(found.contains(&"docs/prd.md".to_string()), "{found:?}");
        assert!(!found.contains(&"docs/other.md".to_string()), "{found:?}");
    }
}
