//! Writes git directories that borrow the objects of the user's repository: ours, and the one for the agent.
//!
//! They are written file by file, without a git process: nothing in them comes from the user's repository but data. No hook, no
//! remote, no filter, no other branch.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use tribunal_engine::ids::CommitId;

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError, WorkspaceRecord,
    control_git::{ControlGit, WORK_BRANCH},
    create_private_dir,
    user_repository::UserRepository,
};
use crate::{
    project::atomic_files,
    workspaces::{TaskWorkspace, file_stamps::FileStamp},
};

/// Settings that say how files are read and written. None of them names a program.
const FILE_SETTINGS: [&str; 11] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.excludesfile",
    "core.attributesfile",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "i18n.commitencoding",
];

/// The agent's git directory while checks run, and what is known about it.
const KEPT_GIT: &str = "kept-agent-git";
const KEPT_STAMPS: &str = "kept-agent-git.json";

/// Who uses a git directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GitDirUser {
    Tribunal,
    Agent,
}

/// Creates our own git directory at a commit. The index is still empty.
pub(super) fn create_control_git(
    repository: &UserRepository,
    control_git: &ControlGit,
    base: &CommitId,
) -> Result<(), WorkspaceError> {
    fill_git_dir(repository, &control_git.git_dir, GitDirUser::Tribunal)?;
    write_ref(&control_git.git_dir, WORK_BRANCH, base)?;
    write_file(&control_git.git_dir.join("HEAD"), format!("{base}\n").as_bytes())
}

/// Replaces the git directory of the agent by a new one, with its branch at the last commit of the workspace. What the agent had
/// committed or stashed there is gone; its files stay. The index is a copy of ours, so nothing has to be read again.
pub(super) fn replace_agent_git(
    repository: &UserRepository,
    control_git: &ControlGit,
    record: &WorkspaceRecord,
    tip: &CommitId,
) -> Result<(), WorkspaceError> {
    let content = AgentGitContent { tip, index_file: &control_git.latest_index_file() };
    write_agent_git(repository, control_git, record, content)
}

impl DevelopmentWorkspace {
    /// Lets git in a check see the commit and the content that is checked. What an agent has written into its own git directory could
    /// hide its changes from `git diff`, or run its programs; it is put aside meanwhile. The user's checkout has only the user's.
    pub(super) fn put_check_git(&self) -> Result<(), WorkspaceError> {
        if self.is_in_place() {
            return Ok(());
        }
        self.return_agent_git()?;
        let tree = &self.record.tree;
        let (agent_git, kept_git) = (tree.join(".git"), tree.with_file_name(KEPT_GIT));
        if let Ok(metadata) = fs::symlink_metadata(&agent_git) {
            if metadata.is_dir() {
                // A directory that cannot be written cannot be moved.
                fs::set_permissions(&agent_git, fs::Permissions::from_mode(0o700)).at_path(&agent_git)?;
            }
            fs::rename(&agent_git, &kept_git).at_path(&kept_git)?;
            let stamps = stamps_file(tree);
            if stamps.exists() {
                fs::rename(&stamps, stamps.with_file_name(KEPT_STAMPS)).at_path(&stamps)?;
            }
        }
        let control_git = self.control_git();
        let index_file = control_git.with_frozen_index().index_file();
        let content = AgentGitContent { tip: &control_git.read_tip()?, index_file: &index_file };
        let repository = UserRepository::open_around(&self.record.project_root)?;
        write_agent_git(&repository, &control_git, &self.record, content)
    }

    /// Gives the agent its git directory back after checks. Nothing happens if none was put aside.
    pub(super) fn return_agent_git(&self) -> Result<(), WorkspaceError> {
        let tree = &self.record.tree;
        let (agent_git, kept_git) = (tree.join(".git"), tree.with_file_name(KEPT_GIT));
        if fs::symlink_metadata(&kept_git).is_err() {
            return Ok(());
        }
        let (stamps, kept_stamps) = (stamps_file(tree), tree.with_file_name(KEPT_STAMPS));
        if kept_stamps.exists() {
            fs::rename(&kept_stamps, &stamps).at_path(&stamps)?;
        }
        remove_git_dir(&agent_git)?;
        fs::rename(&kept_git, &agent_git).at_path(&agent_git)
    }
}

/// What git in a clone knows.
struct AgentGitContent<'a> {
    tip: &'a CommitId,
    index_file: &'a Path,
}

/// Makes the git directory of the agent anew, at a commit and with an index.
fn write_agent_git(
    repository: &UserRepository,
    control_git: &ControlGit,
    record: &WorkspaceRecord,
    content: AgentGitContent<'_>,
) -> Result<(), WorkspaceError> {
    let final_dir = record.tree.join(".git");
    // It is built where the agent cannot write, and then moved: a process that is left could put a link to the user's repository
    // in place of a directory that is being filled.
    let git_dir = record.tree.with_file_name("agent-git");
    remove_git_dir(&git_dir)?;
    fill_git_dir(repository, &git_dir, GitDirUser::Agent)?;
    let branch_ref = format!("refs/heads/{}", record.branch);
    write_ref(&git_dir, &branch_ref, content.tip)?;
    let copied_files =
        [(content.index_file.to_path_buf(), "index"), (control_git.git_dir.join("info/exclude"), "info/exclude")];
    for (source_path, target_name) in copied_files {
        let target_path = git_dir.join(target_name);
        fs::copy(source_path, &target_path).at_path(&target_path)?;
    }
    // HEAD comes last: without it, git does not take the directory for a repository.
    write_file(&git_dir.join("HEAD"), format!("ref: {branch_ref}\n").as_bytes())?;
    remove_git_dir(&final_dir)?;
    // This fails if there is something again.
    fs::rename(&git_dir, &final_dir).at_path(&final_dir)?;
    let stamps_path = stamps_file(&record.tree);
    let stamps_text = serde_json::to_vec(&read_stamps(&final_dir)).map_err(io::Error::other).at_path(&stamps_path)?;
    atomic_files::write_privately(&stamps_path, &stamps_text).at_path(&stamps_path)
}

/// Whether the git directory of the agent in a work tree is as we made it, apart from its index.
pub(super) fn is_agent_git_untouched(tree: &Path) -> bool {
    // While checks run it is beside the tree, where they could still read it.
    let (kept_git, kept_stamps) = (tree.with_file_name(KEPT_GIT), tree.with_file_name(KEPT_STAMPS));
    let (git_dir, stamps_path) = match fs::symlink_metadata(&kept_git).is_ok() {
        true => (kept_git, kept_stamps),
        false => (tree.join(".git"), stamps_file(tree)),
    };
    let Ok(stamps_text) = fs::read(stamps_path) else { return false };
    let made: Option<BTreeMap<String, FileStamp>> = serde_json::from_slice(&stamps_text).ok();
    made.is_some_and(|made| made == read_stamps(&git_dir))
}

/// The file beside a work tree that says how its git directory was made.
fn stamps_file(tree: &Path) -> PathBuf {
    tree.with_file_name("agent-git.json")
}

/// Reads the stamps of all files below a git directory. The index is left out: `git status` refreshes it.
fn read_stamps(git_dir: &Path) -> BTreeMap<String, FileStamp> {
    let mut stamps = BTreeMap::new();
    let mut pending_dirs = vec![git_dir.to_path_buf()];
    while let Some(directory) = pending_dirs.pop() {
        for dir_entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = dir_entry.path();
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let name = path.strip_prefix(git_dir).unwrap_or(&path).to_string_lossy().into_owned();
            if metadata.is_dir() {
                pending_dirs.push(path);
            } else if name != "index" {
                stamps.insert(name, FileStamp::from_metadata(&metadata));
            }
        }
    }
    stamps
}

/// Removes a git directory, or the file or link that an agent has put in its place. Links are not followed.
fn remove_git_dir(git_dir: &Path) -> Result<(), WorkspaceError> {
    match fs::symlink_metadata(git_dir) {
        Ok(metadata) if metadata.is_dir() => {
            TaskWorkspace::from_directory(git_dir.to_path_buf()).remove().at_path(git_dir)
        }
        Ok(_) => fs::remove_file(git_dir).at_path(git_dir),
        Err(_) => Ok(()),
    }
}

fn fill_git_dir(repository: &UserRepository, git_dir: &Path, user: GitDirUser) -> Result<(), WorkspaceError> {
    for directory in ["objects/info", "objects/pack", "refs/heads", "info"] {
        create_private_dir(&git_dir.join(directory))?;
    }
    let layout = &repository.layout;
    write_file(&git_dir.join("config"), render_config(repository, user)?.as_bytes())?;
    let objects_dir = layout.common_dir.join("objects");
    write_file(&git_dir.join("objects/info/alternates"), &format_alternates(&objects_dir)?)?;
    let copied_files = [
        (layout.common_dir.join("shallow"), "shallow"),
        (layout.common_dir.join("info/attributes"), "info/attributes"),
        (layout.common_dir.join("info/exclude"), "info/exclude"),
        // Every work tree has patterns of its own.
        (layout.git_dir.join("info/sparse-checkout"), "info/sparse-checkout"),
    ];
    for (source_path, target_name) in copied_files {
        if source_path.is_file() {
            fs::copy(&source_path, git_dir.join(target_name)).at_path(&source_path)?;
        }
    }
    Ok(())
}

fn render_config(repository: &UserRepository, user: GitDirUser) -> Result<String, WorkspaceError> {
    let (format_version, extension) = match repository.layout.object_format.as_str() {
        "sha1" => (0, ""),
        "sha256" => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        other => return Err(WorkspaceError::new_refusal(format!("the object format `{other}` is not supported"))),
    };
    // A sparse index would hide directories from those who read it.
    let mut config_text = format!(
        "{extension}[core]\n\trepositoryFormatVersion = {format_version}\n\tbare = false\n\thooksPath = /dev/null\n\
         \tfsmonitor = false\n\tlooseCompression = 1\n[index]\n\tsparse = false\n[gc]\n\tauto = 0\n[maintenance]\n\
         \tauto = false\n"
    );
    let mut add_setting = |key: &str, value: &str| {
        let (section, name) = key.split_once('.').unwrap_or(("core", key));
        config_text.push_str(&format!("[{section}]\n\t{name} = {}\n", quote_value(value)));
    };
    for key in FILE_SETTINGS.into_iter().chain(["user.name", "user.email"]) {
        // The settings of the user and of the system apply here anyway.
        if let Some(value) = repository.repository_setting(key) {
            add_setting(key, value);
        }
    }
    // Objects of Git LFS that a commit needs have to be in the user's repository, or a later push would not find them.
    if user == GitDirUser::Tribunal
        && let Some(lfs_dir) = repository.layout.common_dir.join("lfs").to_str()
    {
        add_setting("lfs.storage", repository.repository_setting("lfs.storage").unwrap_or(lfs_dir));
    }
    Ok(config_text)
}

fn quote_value(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Returns the content of `objects/info/alternates`, or an error for a path that git would misread.
fn format_alternates(objects_dir: &Path) -> Result<Vec<u8>, WorkspaceError> {
    let path_bytes = objects_dir.as_os_str().as_bytes();
    if !path_bytes.starts_with(b"/") || path_bytes.contains(&b'\n') {
        let shown_path = objects_dir.display();
        return Err(WorkspaceError::new_refusal(format!("git cannot borrow objects from the path {shown_path:?}")));
    }
    Ok([path_bytes, b"\n"].concat())
}

fn write_ref(git_dir: &Path, ref_name: &str, target: &CommitId) -> Result<(), WorkspaceError> {
    let is_plain =
        ref_name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"));
    if !is_plain {
        return Err(WorkspaceError::new_refusal(format!("`{ref_name}` is not the name of a branch")));
    }
    write_file(&git_dir.join(ref_name), format!("{target}\n").as_bytes())
}

fn write_file(path: &PathBuf, bytes: &[u8]) -> Result<(), WorkspaceError> {
    fs::create_dir_all(path.parent().unwrap_or(path)).at_path(path)?;
    fs::write(path, bytes).at_path(path)
}

/// Adds paths to those that git ignores in a workspace, each exactly and not as a pattern.
pub(super) fn exclude_paths(control_git: &ControlGit, tree_paths: &[Vec<u8>]) -> Result<(), WorkspaceError> {
    let exclude_file = control_git.git_dir.join("info/exclude");
    let mut exclude_text = fs::read(&exclude_file).unwrap_or_default();
    if !exclude_text.is_empty() && !exclude_text.ends_with(b"\n") {
        exclude_text.push(b'\n');
    }
    for tree_path in tree_paths.iter().filter(|tree_path| !tree_path.contains(&b'\n')) {
        exclude_text.push(b'/');
        for byte in tree_path {
            if b"*?[]\\ ".contains(byte) {
                exclude_text.push(b'\\');
            }
            exclude_text.push(*byte);
        }
        exclude_text.push(b'\n');
    }
    fs::write(&exclude_file, exclude_text).at_path(&exclude_file)
}
