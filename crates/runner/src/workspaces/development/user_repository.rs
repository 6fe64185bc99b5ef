//! The user's repository: where it is, how it is configured, and safe commands for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use tribunal_engine::ids::CommitId;

use super::WorkspaceError;
use crate::git::{
    self, GitRepository, WORK_TIMEOUT, git_command, index_writing_command,
    layout::{HeadState, RepositoryLayout, read_layout},
    object_reader::ObjectReader,
    plain_files::PlainRepository,
    run_checked, run_git,
    settings::{ConfigEntry, read_config},
    to_trimmed_text,
};

/// The parts of a filter's configuration.
const FILTER_SETTINGS: [&str; 4] = ["clean", "smudge", "process", "required"];

/// The two people that a commit names.
#[derive(Clone, Copy, Debug)]
pub(super) enum CommitRole {
    Author,
    Committer,
}

#[derive(Debug)]
pub(super) struct UserRepository {
    project_root: PathBuf,
    pub layout: RepositoryLayout,
    config: Arc<[ConfigEntry]>,
}

impl UserRepository {
    /// Returns the directory of the checkout's own git files, and that of the whole repository if it is another one.
    pub fn git_dirs(&self) -> Vec<PathBuf> {
        let mut git_dirs = vec![self.layout.git_dir.clone(), self.layout.common_dir.clone()];
        git_dirs.dedup();
        git_dirs
    }

    /// Opens the repository around a project. The errors say what the user can do.
    pub fn open_around(project_root: &Path) -> Result<UserRepository, WorkspaceError> {
        let refuse = |message: String, command| Err(WorkspaceError::Refused { message, command });
        let Some(layout) = read_layout(project_root) else {
            match GitRepository::open_at(project_root) {
                Err(cause @ git::GitError::NoRepository { .. }) => {
                    return refuse(
                        format!("{cause}; development needs one: make it with `git init`"),
                        Some("git init"),
                    );
                }
                Err(git::GitError::BareRepository { root }) => {
                    return refuse(format!("{root} is in a bare git repository; start from a checkout of it"), None);
                }
                other => other?,
            };
            let message = format!("could not read the git repository of {}", project_root.display());
            return refuse(message, Some("git status"));
        };
        if let HeadState::Unborn { .. } = layout.head {
            return refuse("the repository has no commit yet; make a first commit".into(), Some("git commit"));
        }
        let config = read_config(project_root)?;
        // It could not be switched off by its name.
        let is_unknown_filter = |entry: &ConfigEntry| {
            entry.is_from_repository
                && entry.raw_key.starts_with(b"filter.")
                && std::str::from_utf8(&entry.raw_key).is_err()
        };
        if let Some(entry) = config.iter().find(|entry| is_unknown_filter(entry)) {
            return refuse(format!("the name of the setting `{}` is not UTF-8", entry.key), Some("git config --list"));
        }
        Ok(UserRepository { project_root: project_root.to_path_buf(), layout, config })
    }

    pub fn project_root(&self) -> &Path {
        &self.project_root
    }

    /// Returns the project's root below the root of the work tree, with a slash at the end; empty if it is the same.
    pub fn project_prefix(&self) -> Result<String, WorkspaceError> {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let (top, root) = (canonical(&self.layout.work_tree_top), canonical(&self.project_root));
        match root.strip_prefix(&top).ok().and_then(Path::to_str) {
            Some("") => Ok(String::new()),
            Some(prefix) => Ok(format!("{prefix}/")),
            None => Err(WorkspaceError::new_refusal(format!("{} is not in its own work tree", root.display()))),
        }
    }

    /// Returns the value of a setting that counts, of the user or of the repository.
    pub fn effective_setting(&self, key: &str) -> Option<&str> {
        self.config.iter().rev().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    /// Returns the value of a setting if the repository itself has it.
    pub fn repository_setting(&self, key: &str) -> Option<&str> {
        let entries = self.config.iter().rev();
        entries.filter(|entry| entry.is_from_repository && entry.key == key).map(|entry| entry.value.as_str()).next()
    }

    pub fn is_enabled(&self, key: &str) -> bool {
        self.effective_setting(key)
            .is_some_and(|value| matches!(value.to_lowercase().as_str(), "true" | "yes" | "on" | "1"))
    }

    /// Returns the names of filters, of the repository's own configuration or of the user's.
    fn filter_names(&self, is_from_repository: bool) -> BTreeSet<&str> {
        let entries = self.config.iter().filter(|entry| entry.is_from_repository == is_from_repository);
        entries
            .filter_map(|entry| {
                let (name, setting) = entry.key.strip_prefix("filter.")?.rsplit_once('.')?;
                FILTER_SETTINGS.contains(&setting).then_some(name)
            })
            .collect()
    }

    pub fn has_filters(&self) -> bool {
        !self.filter_names(true).is_empty() || !self.filter_names(false).is_empty()
    }

    /// Returns the filters that only the repository's own configuration defines. They never run.
    pub fn repository_filters(&self) -> BTreeSet<&str> {
        let user_filters = self.filter_names(false);
        // A filter process of the repository cannot be unset, only be made empty, and then git does not run the user's commands.
        let has_foreign_process = |name: &str| {
            let key = format!("filter.{name}.process");
            self.repository_setting(&key).is_some() && self.user_setting(&key).is_none()
        };
        self.filter_names(true)
            .into_iter()
            .filter(|name| !user_filters.contains(name) || has_foreign_process(name))
            .collect()
    }

    fn user_setting(&self, key: &str) -> Option<&str> {
        let entries = self.config.iter().rev();
        entries.filter(|entry| !entry.is_from_repository && entry.key == key).map(|entry| entry.value.as_str()).next()
    }

    /// Returns settings that switch off every filter.
    pub fn settings_without_filters(&self) -> Vec<(String, String)> {
        let names: BTreeSet<&str> = self.filter_names(true).union(&self.filter_names(false)).copied().collect();
        names.into_iter().flat_map(|name| FILTER_SETTINGS.map(|setting| switched_off(name, setting))).collect()
    }

    /// Returns settings with which a filter is what the user configured, and not what the repository itself says about it.
    fn settings_with_user_filters(&self) -> Vec<(String, String)> {
        let repository_filters = self.repository_filters();
        let mut settings = Vec::new();
        for name in self.filter_names(true) {
            for setting in FILTER_SETTINGS {
                let (key, off) = switched_off(name, setting);
                if repository_filters.contains(name) {
                    settings.push((key, off));
                } else if self.repository_setting(&key).is_some() {
                    let user_value = self.user_setting(&key).map_or(off, String::from);
                    settings.push((key, user_value));
                }
            }
        }
        settings
    }

    /// Returns a command for a checkout of the repository that may write to its index.
    pub fn checkout_command(&self, checkout: &Path) -> Command {
        let mut command = index_writing_command(checkout);
        // A git process in a submodule would read that one's own configuration, without our settings.
        command.args(["--literal-pathspecs", "-c", "submodule.recurse=false"]);
        add_settings(&mut command, &self.settings_with_user_filters());
        command
    }

    /// Lists the files of which the index of a checkout has another version than a commit.
    pub fn list_staged(&self, checkout: &Path, commit_name: &str) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let mut command = self.checkout_command(checkout);
        command.args(["diff-index", "--cached", "--name-only", "-z", commit_name]);
        Ok(split_paths(&run_checked(command, None)?))
    }

    /// Returns a reader of objects.
    pub fn object_reader(&self) -> ObjectReader<'_> {
        ObjectReader::new(|| git_command(&self.project_root), WORK_TIMEOUT)
    }

    /// Runs a query in the user's checkout.
    pub fn query<const N: usize>(&self, arguments: [&str; N]) -> Result<Vec<u8>, WorkspaceError> {
        let mut command = git_command(&self.project_root);
        command.arg("--literal-pathspecs").args(arguments);
        add_settings(&mut command, &self.settings_with_user_filters());
        Ok(run_checked(command, None)?)
    }

    pub fn query_text<const N: usize>(&self, arguments: [&str; N]) -> Result<String, WorkspaceError> {
        Ok(to_trimmed_text(&self.query(arguments)?))
    }

    /// Whether a query succeeds, for those that answer with their exit code.
    pub fn is_true<const N: usize>(&self, arguments: [&str; N]) -> Result<bool, WorkspaceError> {
        let mut command = git_command(&self.project_root);
        command.args(arguments);
        Ok(run_git(command, None, WORK_TIMEOUT)?.succeeded)
    }

    /// Returns the commit that a ref names, if it exists.
    pub fn find_commit(&self, ref_name: &str) -> Result<Option<CommitId>, WorkspaceError> {
        // Most refs that are asked for have just been written, and are files.
        let from_file = PlainRepository::find_at(&self.project_root).and_then(|files| match ref_name {
            "HEAD" => files.read_head().and_then(HeadState::into_commit_id),
            _ => files.read_ref(ref_name),
        });
        if let Some(commit) = from_file {
            return Ok(Some(CommitId::new(commit)));
        }
        let mut command = git_command(&self.project_root);
        command.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{ref_name}^{{commit}}")]);
        let output = run_git(command, None, WORK_TIMEOUT)?;
        Ok(output.succeeded.then(|| CommitId::new(to_trimmed_text(&output.stdout))))
    }

    /// Moves a ref, if it still is where it is expected; `None` if it must not exist. Returns whether that was so.
    pub fn move_ref(
        &self,
        ref_name: &str,
        target: &CommitId,
        expected: Option<&CommitId>,
    ) -> Result<bool, WorkspaceError> {
        // Zeros stand for a ref that does not exist.
        let expected_text = expected.map_or("0".repeat(target.as_str().len()), |expected| expected.to_string());
        let mut command = git_command(&self.project_root);
        command.args(["update-ref", "-m", "tribunal", ref_name, target.as_str(), &expected_text]);
        let output = run_git(command, None, WORK_TIMEOUT)?;
        if output.succeeded {
            return Ok(true);
        }
        // Git has the same exit code for a ref that has moved and for a failure, so the ref is looked at.
        if self.find_commit(ref_name)?.as_ref() == expected {
            Err(output.to_error("update-ref").into())
        } else {
            Ok(false)
        }
    }

    /// Sets a ref of Tribunal's own, wherever it was before.
    pub fn set_own_ref(&self, ref_name: &str, target: &CommitId) -> Result<(), WorkspaceError> {
        self.query(["update-ref", "-m", "tribunal", ref_name, target.as_str()]).map(drop)
    }

    pub fn delete_own_ref(&self, ref_name: &str) -> Result<(), WorkspaceError> {
        self.query(["update-ref", "-d", ref_name]).map(drop)
    }

    /// Returns the identity that git would use for a commit: the words of `NAME <EMAIL>`.
    pub fn read_identity(&self, role: CommitRole) -> Option<(String, String)> {
        let (variable_prefix, section) = match role {
            CommitRole::Author => ("GIT_AUTHOR", "author"),
            CommitRole::Committer => ("GIT_COMMITTER", "committer"),
        };
        // The settings alone decide, unless variables do; git knows about those, and about systems without any settings.
        let is_set = |suffix: &str| std::env::var_os(format!("{variable_prefix}_{suffix}")).is_some();
        let setting = |part: &str| {
            self.effective_setting(&format!("{section}.{part}"))
                .or_else(|| self.effective_setting(&format!("user.{part}")))
                .filter(|value| !value.trim().is_empty())
        };
        if !is_set("NAME")
            && !is_set("EMAIL")
            && let (Some(name), Some(email)) = (setting("name"), setting("email"))
        {
            return Some((name.to_string(), email.to_string()));
        }
        let line = self.query_text(["var", &format!("{variable_prefix}_IDENT")]).ok()?;
        // The form is: NAME <EMAIL> SECONDS ZONE
        let (name, after_name) = line.rsplit_once(" <")?;
        Some((name.to_string(), after_name.split_once('>')?.0.to_string()))
    }
}

fn switched_off(filter_name: &str, setting: &str) -> (String, String) {
    let value = if setting == "required" { "false" } else { "" };
    (format!("filter.{filter_name}.{setting}"), value.to_string())
}

/// Adds settings to a command. They are not passed as `-c`, since a name may contain an equals sign.
pub(super) fn add_settings(command: &mut Command, settings: &[(String, String)]) {
    for (index, (key, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{index}"), key).env(format!("GIT_CONFIG_VALUE_{index}"), value);
    }
    if !settings.is_empty() {
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    }
}

/// Maps paths to the value of their `filter` attribute, for those that have one.
pub(super) fn find_filtered_paths(
    mut command: Command,
    paths: &[Vec<u8>],
) -> Result<BTreeMap<Vec<u8>, String>, WorkspaceError> {
    if paths.is_empty() {
        return Ok(BTreeMap::new());
    }
    command.args(["check-attr", "-z", "--stdin", "filter"]);
    let output = run_checked(command, Some(join_with_nul(paths)))?;
    let words: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    let filtered = words.chunks_exact(3).filter_map(|words| {
        let value = String::from_utf8_lossy(words[2]).into_owned();
        (!matches!(value.as_str(), "unspecified" | "unset" | "set")).then(|| (words[0].to_vec(), value))
    });
    Ok(filtered.collect())
}

/// Splits what git prints with `-z`.
pub(super) fn split_paths(output: &[u8]) -> Vec<Vec<u8>> {
    output.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}

pub(super) fn join_with_nul(paths: &[Vec<u8>]) -> Vec<u8> {
    paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect()
}

/// Returns a path argument of git with its option: `--git-dir=PATH`.
pub(super) fn path_option(option: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(format!("{option}="));
    argument.push(path);
    argument
}
