//! Workspaces of projects in every state that git knows, with the real git.

mod bounds;
mod frozen_copies;
mod links;
mod project_scan;
mod random;
mod restore;
mod seeds;
mod stored_tree;
mod work_tree;
mod workspace_git;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use tribunal_engine::ids::Hash;

use super::{TaskWorkspace, WorkspaceCreation, WorkspaceSource, listing::CopyLimits};

/// A temporary directory with a project in it, and room beside it.
struct TestProject {
    temp_dir: tempfile::TempDir,
}

impl TestProject {
    /// Creates a project without git.
    fn without_git(files: &[(&str, &str)]) -> TestProject {
        let test_project = TestProject { temp_dir: tempfile::tempdir().unwrap() };
        test_project.write_files(files);
        test_project
    }

    /// Creates a project with everything committed.
    fn with_commit(files: &[(&str, &str)]) -> TestProject {
        let test_project = TestProject::without_git(files);
        test_project.run_git(&["init", "-q"]);
        test_project.commit_all();
        test_project
    }

    fn project_root(&self) -> PathBuf {
        self.temp_dir.path().join("project")
    }

    fn sibling_path(&self, name: &str) -> PathBuf {
        self.temp_dir.path().join(name)
    }

    fn write_files(&self, files: &[(&str, &str)]) {
        fs::create_dir_all(self.project_root()).unwrap();
        for (path, text) in files {
            write_file(&self.project_root().join(path), text);
        }
    }

    fn commit_all(&self) {
        self.run_git(&["add", "-A"]);
        self.run_git(&["commit", "-q", "--allow-empty", "-m", "as it is"]);
    }

    fn run_git(&self, arguments: &[&str]) -> String {
        run_git(&self.project_root(), arguments)
    }

    fn create_workspace(&self, files: &[&str]) -> (TaskWorkspace, WorkspaceCreation) {
        create_workspace_at(&self.project_root(), &self.sibling_path("copy"), files)
    }

    fn create_workspace_from(&self, options: &WorkspaceOptions<'_>) -> (TaskWorkspace, WorkspaceCreation) {
        let workspace = TaskWorkspace::from_directory(self.sibling_path("copy"));
        let [files, seeds] =
            [options.files, options.seeds].map(|list| list.iter().map(|path| path.to_string()).collect());
        let (files, seeds): (Vec<String>, Vec<String>) = (files, seeds);
        let source = WorkspaceSource {
            project_root: &self.project_root(),
            subject_files: &files,
            stored_tree: options.tree,
            seed_paths: &seeds,
        };
        let created = workspace.create_within(&source, options.bounds.unwrap_or(super::COPY_LIMITS)).unwrap();
        (workspace, created)
    }
}

/// What a workspace is made of, and its limits.
#[derive(Default)]
struct WorkspaceOptions<'a> {
    files: &'a [&'a str],
    tree: Option<&'a str>,
    seeds: &'a [&'a str],
    bounds: Option<CopyLimits>,
}

fn create_workspace_at(project_root: &Path, target_dir: &Path, files: &[&str]) -> (TaskWorkspace, WorkspaceCreation) {
    let workspace = TaskWorkspace::from_directory(target_dir.to_path_buf());
    let files: Vec<String> = files.iter().map(|file| file.to_string()).collect();
    let created = workspace
        .create(&WorkspaceSource { project_root, subject_files: &files, stored_tree: None, seed_paths: &[] })
        .unwrap();
    (workspace, created)
}

/// Returns the hashes of files that were copied from the user's work tree.
fn copied_hashes(workspace: &TaskWorkspace) -> BTreeMap<String, Hash> {
    let record = workspace.read_record().unwrap();
    let copied_files = record.files.into_iter().filter(|(_, copied_file)| record.from_work_tree && !copied_file.link);
    copied_files.map(|(relative_path, copied_file)| (relative_path, copied_file.hash)).collect()
}

fn write_file(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a file so old that git need not read it to know that it is unchanged.
fn make_old(path: &Path) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().append(true).open(path).unwrap().set_modified(old).unwrap();
}

/// Runs the user's git without the settings of this machine. It must not fail.
fn run_git(directory: &Path, arguments: &[&str]) -> String {
    let output = git_command(directory, arguments).output().unwrap();
    let stderr_text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {stderr_text}");
    String::from_utf8(output.stdout).unwrap()
}

fn git_command(directory: &Path, arguments: &[&str]) -> Command {
    let mut git_process = Command::new("git");
    for setting in [
        "init.defaultBranch=main",
        "user.name=a",
        "user.email=a@example.org",
        "protocol.file.allow=always",
        "gc.auto=0",
    ] {
        git_process.args(["-c", setting]);
    }
    for name in crate::git::REDIRECTING_VARIABLES {
        git_process.env_remove(name);
    }
    git_process.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    git_process.env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap());
    git_process.args(arguments).current_dir(directory);
    git_process
}

/// A file as it appears in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TreeItem {
    File { bytes: Vec<u8>, executable: bool },
    Link(PathBuf),
}

/// Returns all files below a directory, except those of git and Tribunal.
fn tree_items(directory: &Path) -> BTreeMap<String, TreeItem> {
    list_files_below(directory, &|name| name == ".git" || name == ".tribunal")
        .into_iter()
        .map(|path| {
            let full_path = directory.join(&path);
            let metadata = fs::symlink_metadata(&full_path).unwrap();
            let item = if metadata.is_symlink() {
                TreeItem::Link(fs::read_link(full_path).unwrap())
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                TreeItem::File { bytes: fs::read(full_path).unwrap(), executable }
            };
            (path, item)
        })
        .collect()
}

fn tree_names(workspace: &TaskWorkspace) -> Vec<String> {
    tree_items(&workspace.tree_dir()).into_keys().collect()
}

/// Returns every byte of a repository, and when it was written.
fn read_all_bytes(directory: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let file_paths = list_files_below(directory, &|_| false).into_iter();
    file_paths
        .map(|path| {
            let full_path = directory.join(&path);
            let modified = fs::metadata(&full_path).unwrap().modified().unwrap();
            (path, (fs::read(full_path).unwrap(), modified))
        })
        .collect()
}

fn list_files_below(root_dir: &Path, is_excluded: &dyn Fn(&OsStr) -> bool) -> Vec<String> {
    let mut file_paths = Vec::new();
    let mut directories = vec![root_dir.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for dir_entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if is_excluded(&dir_entry.file_name()) {
                continue;
            }
            if dir_entry.file_type().unwrap().is_dir() {
                directories.push(dir_entry.path());
            } else {
                let path = dir_entry.path().strip_prefix(root_dir).unwrap().to_path_buf();
                file_paths.push(path.to_string_lossy().into_owned());
            }
        }
    }
    file_paths.sort();
    file_paths
}
