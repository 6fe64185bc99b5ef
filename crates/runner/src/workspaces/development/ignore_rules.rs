//! Asks git what the rules about ignored files of a commit say, also if the work has changed the files with these rules.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::{
    WithPath, WorkspaceError,
    control_git::ControlGit,
    create_private_dir,
    user_repository::{join_with_nul, path_option, split_paths},
};
use crate::git::{WORK_TIMEOUT, run_checked, run_git};

pub(super) const IGNORE_FILE: &[u8] = b".gitignore";

/// Rules about ignored files, in a directory of their own.
pub(super) struct IgnoreRules {
    git_dir: PathBuf,
    pub directory: PathBuf,
}

impl IgnoreRules {
    /// Writes the rules that the index has into a directory. What was there is removed.
    pub fn check_out(index_git: &ControlGit, directory: PathBuf) -> Result<IgnoreRules, WorkspaceError> {
        let rules = IgnoreRules { git_dir: index_git.git_dir.clone(), directory };
        rules.remove_files()?;
        create_private_dir(&rules.directory)?;
        let mut rule_files = split_paths(&index_git.run(["ls-files", "-z"])?);
        rule_files.retain(|path| is_ignore_file(path));
        if rule_files.is_empty() {
            return Ok(rules);
        }
        let mut command = index_git.new_command();
        // The empty last part ends the prefix with a slash.
        let prefix_option = path_option("--prefix", &rules.directory.join(""));
        command.args(["checkout-index", "--force", "-z", "--stdin"]).arg(prefix_option);
        run_checked(command, Some(join_with_nul(&rule_files)))?;
        Ok(rules)
    }

    /// Does the same, unless an earlier call has. The directory is outside of what agents and hooks may write, and its name says for
    /// which commit the rules are.
    pub fn check_out_once(index_git: &ControlGit, directory: PathBuf) -> Result<IgnoreRules, WorkspaceError> {
        let rules = IgnoreRules { git_dir: index_git.git_dir.clone(), directory };
        if rules.directory.is_dir() {
            return Ok(rules);
        }
        // It appears under its name only when it is complete. More than one process may read a workspace.
        let unfinished_dir = rules.directory.with_added_extension(std::process::id().to_string());
        let unfinished = IgnoreRules::check_out(index_git, unfinished_dir)?;
        match fs::rename(&unfinished.directory, &rules.directory) {
            // Another process was quicker.
            Err(_) if rules.directory.is_dir() => unfinished.remove_files()?,
            renamed => renamed.at_path(&rules.directory)?,
        }
        Ok(rules)
    }

    /// Returns the paths that the rules do not ignore.
    pub fn list_visible(&self, mut paths: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        if paths.is_empty() {
            return Ok(paths);
        }
        // Otherwise a name that begins with a colon would be read as a pattern.
        let plain_paths: Vec<Vec<u8>> = paths.iter().map(|path| [b"./".as_slice(), path.as_slice()].concat()).collect();
        let rules_git = ControlGit::new(self.git_dir.clone(), self.directory.clone());
        let mut command = rules_git.new_command();
        // This one command knows no literal names as an option; it takes them for literal anyway.
        command.args(["--no-literal-pathspecs", "check-ignore", "--no-index", "-z", "--stdin"]);
        let output = run_git(command, Some(join_with_nul(&plain_paths)), WORK_TIMEOUT)?;
        // It also fails if it has nothing to print.
        if !output.succeeded && output.stderr.contains("fatal:") {
            return Err(output.to_error("check-ignore").into());
        }
        let ignored_paths: BTreeSet<&[u8]> =
            output.stdout.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(b"./")).collect();
        paths.retain(|path| !ignored_paths.contains(path.as_slice()));
        Ok(paths)
    }

    /// Removes the directory with the rules.
    pub fn remove_files(&self) -> Result<(), WorkspaceError> {
        match fs::remove_dir_all(&self.directory) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(cause).at_path(&self.directory),
            _ => Ok(()),
        }
    }
}

pub(super) fn is_ignore_file(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(IGNORE_FILE)
}
