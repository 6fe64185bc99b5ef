//! Gives a workspace its own git, so that agents can look at the history without doing harm.
//!
//! It borrows the user's objects and shares nothing that could be written to: no refs but the branch, no stash, no remotes, no
//! hooks, and only those settings that say how files are read. The index is a copy of the user's, with its time and the times
//! of the files, so `git status` gives the same answer as in the original without reading all files.
//!
//! A workspace gets no git if something about the repository is unusual: that is a poorer workspace, not a failure.

use std::{fs, io, path::Path};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::git::layout::{HeadState, RepositoryLayout, read_layout};

/// Settings of `[core]` that say how files are read. Their values are single words.
const COPIED_SETTINGS: [&str; 6] = ["autocrlf", "eol", "filemode", "symlinks", "ignorecase", "precomposeunicode"];

/// Creates the git directory, but only if the project is the root of a work tree.
pub(super) fn create_workspace_git(project_root: &Path, tree_dir: &Path) {
    if fs::symlink_metadata(project_root.join(".git")).is_err() {
        return;
    }
    let Some(layout) = read_layout(project_root) else { return };
    let is_work_tree_top = fs::canonicalize(&layout.work_tree_top)
        .is_ok_and(|top| fs::canonicalize(project_root).is_ok_and(|project_root| project_root == top));
    let git_dir = tree_dir.join(".git");
    // An incomplete git directory would confuse agents more than none at all.
    if is_work_tree_top && fill_git_dir(&git_dir, &layout).is_err() {
        let _ = fs::remove_dir_all(git_dir);
    }
}

fn fill_git_dir(git_dir: &Path, layout: &RepositoryLayout) -> io::Result<()> {
    fs::create_dir_all(git_dir.join("objects/info"))?;
    fs::create_dir_all(git_dir.join("refs/heads"))?;
    fs::create_dir_all(git_dir.join("info"))?;
    // A branch needs its ref as a file; the packed refs of the original are not shared.
    let head_text = match &layout.head {
        HeadState::Detached { commit_id: commit } => format!("{commit}\n"),
        HeadState::Unborn { ref_name } => format!("ref: {ref_name}\n"),
        HeadState::Branch { ref_name, commit_id: commit } => {
            let ref_file = git_dir.join(ref_name);
            fs::create_dir_all(ref_file.parent().unwrap_or(git_dir))?;
            fs::write(ref_file, format!("{commit}\n"))?;
            format!("ref: {ref_name}\n")
        }
    };
    fs::write(git_dir.join("HEAD"), head_text)?;
    fs::write(git_dir.join("config"), render_config(layout)?)?;
    fs::write(git_dir.join("objects/info/alternates"), format_alternates(&layout.common_dir.join("objects"))?)?;
    for file_name in ["shallow", "info/exclude", "info/attributes"] {
        copy_if_present(&layout.common_dir.join(file_name), &git_dir.join(file_name))?;
    }
    copy_if_present(&layout.git_dir.join("index"), &git_dir.join("index"))?;
    // A split index consists of two files.
    for dir_entry in fs::read_dir(&layout.git_dir)? {
        let dir_entry = dir_entry?;
        if dir_entry.file_name().to_string_lossy().starts_with("sharedindex.") {
            copy_if_present(&dir_entry.path(), &git_dir.join(dir_entry.file_name()))?;
        }
    }
    Ok(())
}

/// Returns the line for `objects/info/alternates`, or an error for a path that git would misread.
fn format_alternates(objects_dir: &Path) -> io::Result<String> {
    match objects_dir.to_str() {
        Some(objects_path) if objects_path.starts_with('/') && !objects_path.contains('\n') => {
            Ok(format!("{objects_path}\n"))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn render_config(layout: &RepositoryLayout) -> io::Result<String> {
    let (format_version, extension) = match layout.object_format.as_str() {
        "sha1" => (0, ""),
        "sha256" => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    let mut config_text = format!(
        "[core]\n\trepositoryFormatVersion = {format_version}\n\tbare = false\n\thooksPath = /dev/null\n\
         \tfsmonitor = false\n\tuntrackedCache = false\n\tcheckStat = minimal\n\ttrustctime = false\n"
    );
    for config_file in [layout.common_dir.join("config"), layout.git_dir.join("config.worktree")] {
        let Ok(source_config) = fs::read_to_string(config_file) else { continue };
        for (setting_name, value) in select_settings(&source_config) {
            config_text.push_str(&format!("\t{setting_name} = {value}\n"));
        }
    }
    Ok(format!("{config_text}{extension}[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"))
}

/// Selects the settings of a git configuration that a workspace gets, too.
fn select_settings(config_text: &str) -> Vec<(&'static str, String)> {
    let mut in_core = false;
    let mut settings = Vec::new();
    for trimmed_line in config_text.lines().map(str::trim) {
        // A setting may follow its section on the same line: `[core] eol = lf`.
        let trimmed_line = match trimmed_line.strip_prefix('[').and_then(|after_bracket| after_bracket.split_once(']'))
        {
            Some((section, after_section)) => {
                in_core = section.trim().eq_ignore_ascii_case("core");
                after_section
            }
            None => trimmed_line,
        };
        let setting_text = trimmed_line.split(['#', ';']).next().unwrap_or_default();
        // A setting without a value means true.
        let (setting_name, value) = setting_text.split_once('=').unwrap_or((setting_text, "true"));
        let Some(setting_name) =
            COPIED_SETTINGS.into_iter().find(|copied_name| setting_name.trim().eq_ignore_ascii_case(copied_name))
        else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        if in_core && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            settings.push((setting_name, value.to_string()));
        }
    }
    settings
}

fn copy_if_present(source_path: &Path, target_path: &Path) -> io::Result<()> {
    match fs::metadata(source_path) {
        Ok(source_metadata) if source_metadata.is_file() => {
            fs::copy(source_path, target_path)?;
            copy_modification_time(&source_metadata, target_path)
        }
        _ => Ok(()),
    }
}

/// Gives a copied file the modification time of its original.
pub(super) fn copy_modification_time(metadata: &fs::Metadata, target_path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let modified_time = Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() };
    let times = Timestamps { last_access: modified_time, last_modification: modified_time };
    Ok(utimensat(CWD, target_path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_about_reading_files_are_copied_from_a_configuration() {
        let config = "[core] AutoCRLF = input ; yes\n\tfsmonitor = touch x\n\tfilemode\n\teol = \"lf\"\n\
                      [filter \"lfs\"]\n\tclean = touch x\n\tsymlinks = false\n[core \"x\"]\n\tsymlinks = false\n\
                      [Core]\n\tignorecase = a b\n\thooksPath = x\n";
        let owned = |value: &str| value.to_string();
        assert_eq!(
            select_settings(config),
            [("autocrlf", owned("input")), ("filemode", owned("true")), ("eol", owned("lf"))]
        );
    }

    #[test]
    fn an_object_directory_that_git_would_misread_is_refused() {
        assert_eq!(format_alternates(Path::new("/p/.git/objects")).unwrap(), "/p/.git/objects\n");
        assert!(format_alternates(Path::new("/p\nq/.git/objects")).is_err());
        assert!(format_alternates(Path::new("p/.git/objects")).is_err());
    }
}
