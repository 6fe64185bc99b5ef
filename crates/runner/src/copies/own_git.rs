//! A git of a copy's own, so that agents can look at the history and do no harm.
//!
//! It borrows the person's objects and has nothing else of theirs that could be written to: no refs but the branch, no stash,
//! no remotes, no hooks, of the configuration only what says how files are read. The index is the person's as it is; with it
//! come its time and those of the files, so `git status` says what it says in the original without reading them all.
//!
//! Where something is unusual, a copy has no git: that is a poorer copy, not a failure.

use std::{fs, io, path::Path};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::git::{Head, Place, place};

/// Settings of `[core]` that say how files are to be read. Their values are plain words.
const KEPT: [&str; 6] = ["autocrlf", "eol", "filemode", "symlinks", "ignorecase", "precomposeunicode"];

/// Only for a project that is the whole of a work tree.
pub(super) fn write(root: &Path, tree: &Path) {
    if fs::symlink_metadata(root.join(".git")).is_err() {
        return;
    }
    let Some(place) = place(root) else { return };
    let is_top =
        fs::canonicalize(&place.top).is_ok_and(|top| fs::canonicalize(root).is_ok_and(|root| root == top));
    let folder = tree.join(".git");
    if is_top && fill(&folder, &place).is_err() {
        let _ = fs::remove_dir_all(folder);
    }
}

fn fill(folder: &Path, place: &Place) -> io::Result<()> {
    fs::create_dir_all(folder.join("objects/info"))?;
    fs::create_dir_all(folder.join("refs/heads"))?;
    fs::create_dir_all(folder.join("info"))?;
    let head = match &place.head {
        Head::Detached { commit } => format!("{commit}\n"),
        Head::Unborn { name } => format!("ref: {name}\n"),
        Head::Branch { name, commit } => {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(path, format!("{commit}\n"))?;
            format!("ref: {name}\n")
        }
    };
    fs::write(folder.join("HEAD"), head)?;
    fs::write(folder.join("config"), config(place)?)?;
    fs::write(folder.join("objects/info/alternates"), alternate(&place.common.join("objects"))?)?;
    for name in ["shallow", "info/exclude", "info/attributes"] {
        copy_if_there(&place.common.join(name), &folder.join(name))?;
    }
    copy_if_there(&place.own.join("index"), &folder.join("index"))?;
    // An index may stand in two files.
    for item in fs::read_dir(&place.own)? {
        let item = item?;
        if item.file_name().to_string_lossy().starts_with("sharedindex.") {
            copy_if_there(&item.path(), &folder.join(item.file_name()))?;
        }
    }
    Ok(())
}

/// One line; git would read some names as something else.
fn alternate(objects: &Path) -> io::Result<String> {
    match objects.to_str() {
        Some(path) if path.starts_with('/') && !path.contains('\n') => Ok(format!("{path}\n")),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn config(place: &Place) -> io::Result<String> {
    let (version, extension) = match place.format.as_str() {
        "sha1" => (0, ""),
        "sha256" => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    let mut text = format!(
        "[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n\thooksPath = /dev/null\n\
         \tfsmonitor = false\n\tuntrackedCache = false\n\tcheckStat = minimal\n\ttrustctime = false\n"
    );
    for file in [place.common.join("config"), place.own.join("config.worktree")] {
        let Ok(theirs) = fs::read_to_string(file) else { continue };
        for (name, value) in kept(&theirs) {
            text.push_str(&format!("\t{name} = {value}\n"));
        }
    }
    Ok(format!("{text}{extension}[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"))
}

/// The settings of a git configuration that a copy has, too.
fn kept(config: &str) -> Vec<(&'static str, String)> {
    let mut in_core = false;
    let mut found = Vec::new();
    for line in config.lines().map(str::trim) {
        let line = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((section, rest)) => {
                in_core = section.trim().eq_ignore_ascii_case("core");
                rest
            }
            None => line,
        };
        let line = line.split(['#', ';']).next().unwrap_or_default();
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        let Some(name) = KEPT.into_iter().find(|kept| name.trim().eq_ignore_ascii_case(kept)) else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        if in_core && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            found.push((name, value.to_string()));
        }
    }
    found
}

fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::metadata(from) {
        Ok(meta) if meta.is_file() => {
            fs::copy(from, to)?;
            keep_time(&meta, to)
        }
        _ => Ok(()),
    }
}

/// Gives a copy the time of modification of what it was made of.
pub(super) fn keep_time(meta: &fs::Metadata, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let time = Timespec { tv_sec: meta.mtime(), tv_nsec: meta.mtime_nsec() };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_configuration_only_what_says_how_files_are_read_is_kept() {
        let config = "[core] AutoCRLF = input ; yes\n\tfsmonitor = touch x\n\tfilemode\n\teol = \"lf\"\n\
                      [filter \"lfs\"]\n\tclean = touch x\n\tsymlinks = false\n[core \"x\"]\n\tsymlinks = false\n\
                      [Core]\n\tignorecase = a b\n\thooksPath = x\n";
        let word = |value: &str| value.to_string();
        assert_eq!(
            kept(config),
            [("autocrlf", word("input")), ("filemode", word("true")), ("eol", word("lf"))]
        );
    }

    #[test]
    fn an_object_folder_that_git_would_not_read_as_one_is_refused() {
        assert_eq!(alternate(Path::new("/p/.git/objects")).unwrap(), "/p/.git/objects\n");
        assert!(alternate(Path::new("/p\nq/.git/objects")).is_err());
        assert!(alternate(Path::new("p/.git/objects")).is_err());
    }
}
