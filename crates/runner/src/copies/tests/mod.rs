//! Workspaces of projects in every state that git knows, with the real git.

mod bounds;
mod links;
mod own_git;
mod random;
mod restore;
mod seeds;
mod stored;
mod watch;
mod work_tree;

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use super::{Copy, Made, Source, listing::Bounds};

thread_local! {
    /// How often this test started git.
    pub(super) static STARTED: Cell<u32> = const { Cell::new(0) };
}

/// A temporary directory with a project in it, and room beside it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// Creates a project without git.
    fn plain(files: &[(&str, &str)]) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        place.write(files);
        place
    }

    /// Creates a project with everything committed.
    fn committed(files: &[(&str, &str)]) -> Place {
        let place = Place::plain(files);
        place.git(&["init", "-q"]);
        place.commit();
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, files: &[(&str, &str)]) {
        fs::create_dir_all(self.root()).unwrap();
        for (path, text) in files {
            write(&self.root().join(path), text);
        }
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "as it is"]);
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.root(), args)
    }

    fn copy(&self, files: &[&str]) -> (Copy, Made) {
        copy_of(&self.root(), &self.beside("copy"), files)
    }

    fn make(&self, want: &Want<'_>) -> (Copy, Made) {
        let copy = Copy::at(self.beside("copy"));
        let [files, seeds] =
            [want.files, want.seeds].map(|list| list.iter().map(|s| s.to_string()).collect());
        let (files, seeds): (Vec<String>, Vec<String>) = (files, seeds);
        let source = Source { root: &self.root(), files: &files, tree: want.tree, seeds: &seeds };
        let made = copy.make_within(&source, want.bounds.unwrap_or(super::MOST)).unwrap();
        (copy, made)
    }
}

/// What a workspace is made of, and its limits.
#[derive(Default)]
struct Want<'a> {
    files: &'a [&'a str],
    tree: Option<&'a str>,
    seeds: &'a [&'a str],
    bounds: Option<Bounds>,
}

fn copy_of(root: &Path, to: &Path, files: &[&str]) -> (Copy, Made) {
    let copy = Copy::at(to.to_path_buf());
    let files: Vec<String> = files.iter().map(|file| file.to_string()).collect();
    let made = copy.make(&Source { root, files: &files, tree: None, seeds: &[] }).unwrap();
    (copy, made)
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
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
fn git(folder: &Path, args: &[&str]) -> String {
    let output = command(folder, args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut git = Command::new("git");
    for setting in [
        "init.defaultBranch=main",
        "user.name=a",
        "user.email=a@example.org",
        "protocol.file.allow=always",
        "gc.auto=0",
    ] {
        git.args(["-c", setting]);
    }
    for name in crate::git::LEADING_AWAY {
        git.env_remove(name);
    }
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    git.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    git.args(args).current_dir(folder);
    git
}

/// A file as it appears in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    File { bytes: Vec<u8>, executable: bool },
    Link(PathBuf),
}

/// Returns all files below a directory, except those of git and Tribunal.
fn things(folder: &Path) -> BTreeMap<String, Thing> {
    all_below(folder, &|name| name == ".git" || name == ".tribunal")
        .into_iter()
        .map(|path| {
            let full = folder.join(&path);
            let meta = fs::symlink_metadata(&full).unwrap();
            let thing = if meta.is_symlink() {
                Thing::Link(fs::read_link(full).unwrap())
            } else {
                let executable = meta.permissions().mode() & 0o100 != 0;
                Thing::File { bytes: fs::read(full).unwrap(), executable }
            };
            (path, thing)
        })
        .collect()
}

fn names(copy: &Copy) -> Vec<String> {
    things(&copy.tree()).into_keys().collect()
}

/// Returns every byte of a repository, and when it was written.
fn everything(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let all = all_below(folder, &|_| false).into_iter();
    all.map(|path| {
        let full = folder.join(&path);
        let modified = fs::metadata(&full).unwrap().modified().unwrap();
        (path, (fs::read(full).unwrap(), modified))
    })
    .collect()
}

fn all_below(folder: &Path, without: &dyn Fn(&OsStr) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(here) = folders.pop() {
        for item in fs::read_dir(here).unwrap().map(Result::unwrap) {
            if without(&item.file_name()) {
                continue;
            }
            if item.file_type().unwrap().is_dir() {
                folders.push(item.path());
            } else {
                let path = item.path().strip_prefix(folder).unwrap().to_path_buf();
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}
