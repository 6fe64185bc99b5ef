//! Reads HEAD and branches from the files of a repository, where these say it exactly: `.git` is a directory in the project's root, it
//! belongs to the user, and its refs are files. Everything else is `None`, and then git has to be asked.
//!
//! An agent that works in the checkout can put anything there. So no link is followed, no pipe is waited for, and what does not have
//! the expected form counts as unusual.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, process::geteuid};

use super::layout::{HeadState, RepositoryLayout};

/// A ref is one line.
const MAX_REF_BYTES: u64 = 4096;
/// A longer configuration is left to git.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// The length of an object id with SHA-1. A repository with other ids has an extension, and is unusual.
const OBJECT_ID_CHARS: usize = 40;

/// An ordinary repository whose work tree is the project.
pub(crate) struct PlainRepository {
    work_tree_top: PathBuf,
    git_dir: PathBuf,
    head: PlainHead,
}

enum PlainHead {
    Branch(String),
    Detached(String),
}

impl PlainRepository {
    /// Finds the repository of a project; `None` if there is none, or if anything about it is unusual.
    pub fn find_at(project_root: &Path) -> Option<PlainRepository> {
        let work_tree_top = project_root.canonicalize().ok()?;
        let git_dir = work_tree_top.join(".git");
        let is_real_dir = |directory: &Path| fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir());
        // Git refuses to work in the directories of other users, and says why.
        let is_own = |directory: &Path| {
            fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.uid() == geteuid().as_raw())
        };
        let is_ordinary = is_real_dir(&git_dir)
            && is_own(&work_tree_top)
            && is_own(&git_dir)
            && is_real_dir(&git_dir.join("objects"))
            && is_real_dir(&git_dir.join("refs"))
            && is_missing(&git_dir.join("commondir"));
        if !is_ordinary || !is_plain_config(&read_regular_file(&git_dir.join("config"), MAX_CONFIG_BYTES).ok()?) {
            return None;
        }
        let head = parse_head(&read_line(&git_dir.join("HEAD"))?)?;
        Some(PlainRepository { work_tree_top, git_dir, head })
    }

    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the commit of a ref that has a file of its own; `None` if it is packed, or if there is no such ref.
    pub fn read_ref(&self, ref_name: &str) -> Option<String> {
        let is_known_form = ref_name.starts_with("refs/") && is_plain_ref_name(ref_name);
        let object_id = read_line(&self.git_dir.join(ref_name)).filter(|_| is_known_form)?;
        is_object_id(&object_id).then_some(object_id)
    }

    /// Returns the branch or the commit that is checked out; `None` if git has to be asked.
    pub fn read_head(&self) -> Option<HeadState> {
        match &self.head {
            PlainHead::Detached(commit_id) => Some(HeadState::Detached { commit_id: commit_id.clone() }),
            PlainHead::Branch(ref_name) => {
                Some(HeadState::Branch { ref_name: ref_name.clone(), commit_id: self.read_ref(ref_name)? })
            }
        }
    }

    pub fn read_layout(&self) -> Option<RepositoryLayout> {
        Some(RepositoryLayout {
            work_tree_top: self.work_tree_top.clone(),
            git_dir: self.git_dir.clone(),
            common_dir: self.git_dir.clone(),
            object_format: "sha1".to_string(),
            head: self.read_head()?,
        })
    }
}

/// Whether a configuration says nothing that changes where a repository is or how it stores refs and objects. Words are searched and
/// not settings, so that no spelling is missed.
fn is_plain_config(config_bytes: &[u8]) -> bool {
    let config_text = String::from_utf8_lossy(config_bytes).to_lowercase();
    let is_known_bare = |line: &str| !line.contains("bare") || line.trim() == "bare = false";
    (config_bytes.len() as u64) < MAX_CONFIG_BYTES
        && !config_text.contains("worktree")
        && !config_text.contains("extensions")
        && config_text.lines().all(is_known_bare)
}

fn parse_head(head_line: &str) -> Option<PlainHead> {
    match head_line.strip_prefix("ref: ") {
        Some(ref_name) => {
            let is_branch = ref_name.starts_with("refs/heads/") && is_plain_ref_name(ref_name);
            is_branch.then(|| PlainHead::Branch(ref_name.to_string()))
        }
        None => is_object_id(head_line).then(|| PlainHead::Detached(head_line.to_string())),
    }
}

/// Whether the parts of a ref's name are plain names of files.
pub(crate) fn is_plain_ref_name(ref_name: &str) -> bool {
    let is_plain_part =
        |ref_part: &str| !ref_part.is_empty() && !ref_part.starts_with('.') && !ref_part.ends_with(".lock");
    ref_name.split('/').all(is_plain_part)
}

/// Whether this is an object id as git writes it into a ref.
fn is_object_id(text: &str) -> bool {
    text.len() == OBJECT_ID_CHARS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads a file of one line, without its end.
fn read_line(path: &Path) -> Option<String> {
    let text = String::from_utf8(read_regular_file(path, MAX_REF_BYTES).ok()?).ok()?;
    text.strip_suffix('\n').filter(|line| !line.contains('\n')).map(str::to_string)
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}

/// Reads a file that an agent could replace by a pipe or a link at this very moment.
pub(crate) fn read_regular_file(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::git::layout::query_layout;

    fn run_git(root: &Path, arguments: &[&str]) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(root).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn new_repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        run_git(directory.path(), &["init", "-q", "-b", "main"]);
        run_git(directory.path(), &["commit", "-q", "--allow-empty", "-m", "x"]);
        directory
    }

    #[test]
    fn the_files_say_what_git_says() {
        let directory = new_repository();
        let root = directory.path();
        for arguments in [&["switch", "-q", "-c", "feature/a"][..], &["switch", "-q", "--detach"]] {
            run_git(root, arguments);
            let from_files = PlainRepository::find_at(root).unwrap().read_layout().unwrap();
            assert_eq!(from_files, query_layout(root).unwrap(), "{arguments:?}");
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_git() {
        let directory = new_repository();
        let root = directory.path();
        let is_plain = |root: &Path| PlainRepository::find_at(root).is_some_and(|found| found.read_layout().is_some());
        assert!(is_plain(root));
        // A linked work tree, a directory below, and what is no repository.
        run_git(root, &["worktree", "add", "-q", "linked"]);
        fs::create_dir(root.join("below")).unwrap();
        for name in ["linked", "below", "missing"] {
            assert!(!is_plain(&root.join(name)), "{name}");
        }
        for (key, value) in
            [("core.bare", "true"), ("core.worktree", "/"), ("extensions.worktreeConfig", "true"), ("core.bare", "no")]
        {
            let config_file = root.join(".git/config");
            let config_text = fs::read(&config_file).unwrap();
            run_git(root, &["config", key, value]);
            assert!(!is_plain(root), "{key}");
            fs::write(&config_file, config_text).unwrap();
        }
        assert!(is_plain(root));
        run_git(root, &["pack-refs", "--all"]);
        assert!(!is_plain(root), "a packed branch has no file");
        run_git(root, &["commit", "-q", "--allow-empty", "-m", "y"]);
        assert!(is_plain(root));
        let branch_file = root.join(".git/refs/heads/main");
        fs::rename(&branch_file, root.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), &branch_file).unwrap();
        assert!(!is_plain(root), "a link is not followed");
        fs::remove_file(&branch_file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &branch_file, rustix::fs::Mode::RUSR).unwrap();
        assert!(!is_plain(root), "a pipe is not waited for");
        fs::write(root.join(".git/HEAD"), "ref: refs/../config\n").unwrap();
        assert!(!is_plain(root));
    }
}
