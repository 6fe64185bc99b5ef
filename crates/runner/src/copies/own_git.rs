//! Gives a workspace its own git, so that agents can look at the history without doing harm.
//!
//! It borrows the user's objects and shares nothing that could be written to: no refs but the branch, no stash, no remotes, no
//! hooks, and only those settings that say how files are read. The index is a copy of the user's, with its time and the times
//! of the files, so `git status` gives the same answer as in the original without reading all files.
//!
//! A workspace gets no git if something about the repository is unusual: that is a poorer workspace, not a failure.

use std::{fs, io, path::Path};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::git::{Head, Place, place};

/// Settings of `[core]` that say how files are read. Their values are single words.
const KEPT: [&str; 6] = ["autocrlf", "eol", "filemode", "symlinks", "ignorecase", "precomposeunicode"];

/// Creates the git directory, but only if the project is the root of a work tree.
pub(super) fn write(root: &Path, tree: &Path) {
    if fs::symlink_metadata(root.join(".git")).is_err() {
        return;
    }
    let Some(place) = place(root) else { return };
    let is_top =
        fs::canonicalize(&place.top).is_ok_and(|top| fs::canonicalize(root).is_ok_and(|root| root == top));
    let folder = tree.join(".git");
    // An incomplete git directory would confuse agents more than none at all.
    if is_top && fill(&folder, &place).is_err() {
        let _ = fs::remove_dir_all(folder);
    }
}

fn fill(folder: &Path, place: &Place) -> io::Result<()> {
    fs::create_dir_all(folder.join("objects/info"))?;
    fs::create_dir_all(folder.join("refs/heads"))?;
    fs::create_dir_all(folder.join("info"))?;
    // A branch needs its ref as a file; the packed refs of the original are not shared.
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
    // A split index consists of two files.
    for item in fs::read_dir(&place.own)? {
        let item = item?;
        if item.file_name().to_string_lossy().starts_with("sharedindex.") {
            copy_if_there(&item.path(), &folder.join(item.file_name()))?;
        }
    }
    Ok(())
}

/// Returns the line for `objects/info/alternates`, or an error for a path that git would misread.
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

/// Selects the settings of a git configuration that a workspace gets, too.
fn kept(config: &str) -> Vec<(&'static str, String)> {
    let mut in_core = false;
    let mut found = Vec::new();
    for line in config.lines().map(str::trim) {
        // A setting may follow its section on the same line: `[core] eol = lf`.
        let line = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((section, rest)) => {
                in_core = section.trim().eq_ignore_ascii_case("core");
                rest
            }
            None => line,
        };
        let line = line.split(['#', ';']).next().unwrap_or_default();
        // A setting without a value means true.
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

/// Gives a copied file the modification time of its original.
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
