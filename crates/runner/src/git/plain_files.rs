//! Reads HEAD and branches from the files of a repository, where these say it exactly: it belongs to the user, its refs are files, and
//! no setting moves anything. The project may be its work tree, a directory in that, or a linked work tree. Everything else is `None`,
//! and then git has to be asked.
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

/// An ordinary repository around a project.
pub(crate) struct PlainRepository {
    work_tree_top: PathBuf,
    /// The directory with HEAD and the index.
    git_dir: PathBuf,
    /// The directory with refs and settings; it differs from `git_dir` in a linked work tree.
    common_dir: PathBuf,
    head: PlainHead,
}

enum PlainHead {
    Branch(String),
    Detached(String),
}

impl PlainRepository {
    /// Finds the repository of a project; `None` if there is none, or if anything about it is unusual.
    pub fn find_at(project_root: &Path) -> Option<PlainRepository> {
        let work_tree_top = find_work_tree_top(&project_root.canonicalize().ok()?)?;
        let git_entry = work_tree_top.join(".git");
        let (git_dir, common_dir) = match is_real_dir(&git_entry) {
            true if is_missing(&git_entry.join("commondir")) => (git_entry.clone(), git_entry.clone()),
            true => return None,
            false => find_linked_dirs(&git_entry)?,
        };
        // Git refuses to work in the directories of other users, and says why.
        let is_ordinary = [&work_tree_top, &git_entry, &git_dir, &common_dir].into_iter().all(|path| is_own(path))
            && is_real_dir(&common_dir.join("objects"))
            && is_real_dir(&common_dir.join("refs"));
        if !is_ordinary || !is_plain_config(&read_regular_file(&common_dir.join("config"), MAX_CONFIG_BYTES).ok()?) {
            return None;
        }
        let head = parse_head(&read_line(&git_dir.join("HEAD"))?)?;
        Some(PlainRepository { work_tree_top, git_dir, common_dir, head })
    }

    /// Returns the directory with the settings.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Returns the commit of a ref that has a file of its own; `None` if it is packed, or if there is no such ref.
    pub fn read_ref(&self, ref_name: &str) -> Option<String> {
        // Other refs may belong to a single work tree.
        let is_shared = ["refs/heads/", "refs/tribunal/"].iter().any(|prefix| ref_name.starts_with(prefix));
        let is_known_form = is_shared && is_plain_ref_name(ref_name);
        let object_id = read_line(&self.common_dir.join(ref_name)).filter(|_| is_known_form)?;
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
            common_dir: self.common_dir.clone(),
            object_format: "sha1".to_string(),
            head: self.read_head()?,
        })
    }
}

/// Finds the directory above a project, or the project itself, in which git finds its repository.
fn find_work_tree_top(project_root: &Path) -> Option<PathBuf> {
    let device_of = |directory: &Path| fs::symlink_metadata(directory).ok().map(|metadata| metadata.dev());
    let own_device = device_of(project_root)?;
    for directory in project_root.ancestors() {
        if !is_missing(&directory.join(".git")) {
            return Some(directory.to_path_buf());
        }
        // A directory above could be a repository without a work tree. Nor does git search in another file system.
        let may_be_bare = !is_missing(&directory.join("HEAD")) || !is_missing(&directory.join("objects"));
        let has_limit = std::env::var_os("GIT_CEILING_DIRECTORIES").is_some();
        if may_be_bare || has_limit || device_of(directory.parent()?) != Some(own_device) {
            return None;
        }
    }
    None
}

/// Finds the directories of a linked work tree, to which the file `.git` leads.
fn find_linked_dirs(git_file: &Path) -> Option<(PathBuf, PathBuf)> {
    let named_dir = PathBuf::from(read_line(git_file)?.strip_prefix("gitdir: ")?);
    let git_dir = named_dir.canonicalize().ok().filter(|git_dir| *git_dir == named_dir)?;
    let common_dir = git_dir.join(read_line(&git_dir.join("commondir"))?).canonicalize().ok()?;
    // This is where git keeps what belongs to linked work trees.
    (git_dir.parent()? == common_dir.join("worktrees")).then_some((git_dir, common_dir))
}

fn is_real_dir(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir())
}

fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.uid() == geteuid().as_raw())
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
        let linked_root = root.join("linked");
        run_git(root, &["worktree", "add", "-q", "-b", "other", linked_root.to_str().unwrap()]);
        fs::create_dir_all(root.join("below/deep")).unwrap();
        fs::create_dir(linked_root.join("below")).unwrap();
        for arguments in [&["switch", "-q", "-c", "feature/a"][..], &["switch", "-q", "--detach"]] {
            run_git(root, arguments);
            for project_root in [root, &root.join("below/deep"), &linked_root, &linked_root.join("below")] {
                let from_files = PlainRepository::find_at(project_root).unwrap().read_layout().unwrap();
                assert_eq!(from_files, query_layout(project_root).unwrap(), "{project_root:?} {arguments:?}");
            }
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_git() {
        let directory = new_repository();
        let root = directory.path();
        let is_plain = |root: &Path| PlainRepository::find_at(root).is_some_and(|found| found.read_layout().is_some());
        assert!(is_plain(root));
        // What is no directory, and what may be a repository of its own.
        fs::create_dir_all(root.join("bare/objects")).unwrap();
        fs::create_dir_all(root.join("named")).unwrap();
        fs::write(root.join("named/.git"), format!("gitdir: {}\n", root.join(".git").display())).unwrap();
        for name in ["missing", "bare", "named"] {
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
