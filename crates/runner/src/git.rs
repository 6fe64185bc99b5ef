//! Queries git about a project that may come from an untrusted source.
//!
//! The project's own configuration cannot run a program, and a directory that only looks like a repository is not taken for one.
//! Every query of a `GitRepository` has a timeout, and what is kept of its output has a limit. The callers interpret it.

pub mod changes;
mod commands;
pub mod heads;
pub(crate) mod layout;
pub(crate) mod object_reader;
pub(crate) mod plain_files;
mod process;
pub(crate) mod settings;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, BufRead, Read},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

#[cfg(test)]
pub(crate) use commands::test_config;
use commands::user_command;
pub(crate) use commands::{REDIRECTING_VARIABLES, git_command, index_writing_command};
use plain_files::PlainRepository;
use process::run_with_reader;
pub(crate) use process::{
    GitOutput, GitReadExtent, run_checked, run_git, run_piped, stream_output, subcommand_name, to_trimmed_text,
};
use settings::{ConfigEntry, read_config};

/// The time limit of a single query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit of a process that works on files. A checkout of a large repository takes minutes.
pub(crate) const WORK_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The limit for the output that is kept; lists of a hundred thousand files are shorter.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git not found on PATH")]
    NotInstalled,
    #[error("{root} is not in a git repository")]
    NoRepository { root: String },
    #[error("{root} is in a bare git repository, which has no files to review")]
    BareRepository { root: String },
    #[error("git does not trust {root}: it belongs to another user")]
    UntrustedOwner { root: String },
    #[error("`git {what}` timed out after {} s", after.as_secs())]
    TimedOut { what: String, after: Duration },
    #[error("`git {what}` printed more than {} MB", MAX_OUTPUT_BYTES >> 20)]
    TooMuchOutput { what: String },
    #[error("`git {what}` failed: {said}")]
    CommandFailed { what: String, said: String },
    #[error("could not run `git {what}`: {cause}")]
    CannotRun { what: String, cause: io::Error },
}

/// Returns those of the paths that git ignores and does not track. Returns none where there is no git.
pub fn find_ignored<'a>(project_root: &Path, paths: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let input: Vec<u8> = paths.flat_map(|relative_path| relative_path.bytes().chain([0])).collect();
    if input.is_empty() {
        return BTreeSet::new();
    }
    let mut command = git_command(project_root);
    command.args(["check-ignore", "--stdin", "-z"]);
    let mut listed_names = Vec::new();
    // Git exits with 1 if no path is ignored, so the exit code says nothing here.
    let outcome = run_with_reader(&mut command, Some(input), QUERY_TIMEOUT, &mut |stdout| {
        stdout.read_to_end(&mut listed_names).map(|_| ())
    });
    let ignored_names = listed_names.split(|byte| *byte == 0).filter(|name| outcome.is_ok() && !name.is_empty());
    ignored_names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

/// Checks that git can work with the repository around a directory.
pub fn check_repository(project_root: &Path) -> Result<(), GitError> {
    GitRepository::open_at(project_root).map(drop)
}

/// A repository around a directory. Filters from its own configuration do not run; those from the user's configuration do.
#[derive(Clone, Debug)]
pub(crate) struct GitRepository {
    work_tree_root: PathBuf,
    filter_overrides: Vec<(OsString, &'static str)>,
}

impl GitRepository {
    pub fn open_at(project_root: &Path) -> Result<GitRepository, GitError> {
        let mut repository = GitRepository { work_tree_root: project_root.to_path_buf(), filter_overrides: Vec::new() };
        // A bare repository answers "false": it has no files to review.
        if PlainRepository::find_at(project_root).is_none()
            && to_trimmed_text(&repository.query(["rev-parse", "--is-inside-work-tree"])?) != "true"
        {
            return Err(GitError::BareRepository { root: project_root.display().to_string() });
        }
        repository.filter_overrides = list_filter_overrides(&read_config(project_root)?);
        Ok(repository)
    }

    /// Opens a repository for queries about commits, branches and the index only. They read no file of the checkout, so no filter can
    /// run, and git is not started to find out about filters.
    pub fn for_history(project_root: &Path) -> GitRepository {
        GitRepository { work_tree_root: project_root.to_path_buf(), filter_overrides: Vec::new() }
    }

    pub fn work_tree_root(&self) -> &Path {
        &self.work_tree_root
    }

    pub fn new_command(&self) -> Command {
        let mut git_process = git_command(&self.work_tree_root);
        git_process.arg("--literal-pathspecs");
        // The overrides are not passed as `-c`, since the name of a filter may contain an equals sign.
        for (index, (config_key, config_value)) in self.filter_overrides.iter().enumerate() {
            git_process
                .env(format!("GIT_CONFIG_KEY_{index}"), config_key)
                .env(format!("GIT_CONFIG_VALUE_{index}"), config_value);
        }
        if !self.filter_overrides.is_empty() {
            git_process.env("GIT_CONFIG_COUNT", self.filter_overrides.len().to_string());
        }
        git_process
    }

    /// Runs a query and returns its output, or an error if git reports one.
    pub fn query<const N: usize>(&self, arguments: [&str; N]) -> Result<Vec<u8>, GitError> {
        let mut command = self.new_command();
        command.args(arguments);
        self.run_checked(command, None)
    }

    /// Runs a command that was made with [`GitRepository::new_command`] in the same way.
    pub fn run_checked(&self, command: Command, stdin_bytes: Option<Vec<u8>>) -> Result<Vec<u8>, GitError> {
        let subcommand = subcommand_name(&command);
        let command_output = self.run_unchecked(command, stdin_bytes)?;
        if command_output.succeeded {
            return Ok(command_output.stdout);
        }
        let message = command_output.first_message();
        Err(self.find_repository_problem(message).unwrap_or_else(|| GitError::CommandFailed {
            what: subcommand,
            said: if message.is_empty() { "no error message".to_string() } else { message.to_string() },
        }))
    }

    /// Finds out from git's message whether it cannot work with the repository at all. Git has no distinct exit codes for that.
    pub fn find_repository_problem(&self, message: &str) -> Option<GitError> {
        let root = self.work_tree_root.display().to_string();
        if message.contains("not a git repository") {
            Some(GitError::NoRepository { root })
        } else if message.contains("bare repository") || message.contains("must be run in a work tree") {
            Some(GitError::BareRepository { root })
        } else if message.contains("dubious ownership") {
            Some(GitError::UntrustedOwner { root })
        } else {
            None
        }
    }

    /// Runs a command and returns its output together with whether git succeeded.
    pub fn run_unchecked(&self, mut command: Command, stdin_bytes: Option<Vec<u8>>) -> Result<GitOutput, GitError> {
        let subcommand = subcommand_name(&command);
        let mut output_bytes = Vec::new();
        // One byte more than the limit, so that an output of exactly the limit is told from a longer one.
        let mut read_output =
            |stdout: &mut dyn Read| stdout.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut output_bytes).map(|_| ());
        let (succeeded, error_text) = run_with_reader(&mut command, stdin_bytes, QUERY_TIMEOUT, &mut read_output)?;
        if output_bytes.len() as u64 > MAX_OUTPUT_BYTES {
            return Err(GitError::TooMuchOutput { what: subcommand });
        }
        Ok(GitOutput { succeeded, stdout: output_bytes, stderr: error_text })
    }

    /// Passes an output of any length to `read_output` as it arrives, for as long as that wants more.
    pub fn stream_output(
        &self,
        command: Command,
        stdin_bytes: Option<Vec<u8>>,
        read_output: &mut (dyn FnMut(&mut dyn BufRead) -> io::Result<GitReadExtent> + Send),
    ) -> Result<(), GitError> {
        stream_output(command, stdin_bytes, QUERY_TIMEOUT, read_output)
    }
}

/// Returns settings that switch off every filter the repository itself defines.
fn list_filter_overrides(config: &[ConfigEntry]) -> Vec<(OsString, &'static str)> {
    // Filters that the user configured globally (Git LFS, for example) are trusted and keep running.
    let own_keys = config.iter().filter(|entry| entry.is_from_repository).map(|entry| entry.raw_key.as_slice());
    let filter_keys = own_keys.filter(|config_key| config_key.starts_with(b"filter."));
    // The name of a filter may be any bytes.
    let filter_names: BTreeSet<&[u8]> = filter_keys
        .filter_map(|config_key| Some(&config_key[..config_key.iter().rposition(|byte| *byte == b'.')?]))
        .collect();
    let switch_off = |filter_name: &[u8]| {
        let setting_key = |setting_suffix: &str| OsString::from_vec([filter_name, setting_suffix.as_bytes()].concat());
        [
            (setting_key(".clean"), ""),
            (setting_key(".smudge"), ""),
            (setting_key(".process"), ""),
            (setting_key(".required"), "false"),
        ]
    };
    filter_names.into_iter().flat_map(switch_off).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn new_repository() -> tempfile::TempDir {
        let project_root = tempfile::tempdir().unwrap();
        assert!(git_command(project_root.path()).args(["init", "-q"]).status().unwrap().success());
        project_root
    }

    #[test]
    fn filters_and_watchers_of_an_untrusted_repository_do_not_run() {
        let project_root = new_repository();
        let marker_file = project_root.path().join("owned");
        let script = format!("touch '{}'; cat", marker_file.display());
        for (key, value) in [
            ("filter.evil.clean", script.as_str()),
            ("filter.a=b.c.clean", script.as_str()),
            ("filter.evil.process", script.as_str()),
            ("filter.evil.required", "true"),
            ("core.fsmonitor", script.as_str()),
            ("diff.external", script.as_str()),
            ("diff.evil.textconv", script.as_str()),
            ("core.pager", script.as_str()),
        ] {
            assert!(git_command(project_root.path()).args(["config", key, value]).status().unwrap().success());
        }
        fs::write(project_root.path().join(".gitattributes"), "a filter=evil diff=evil\nb filter=a=b.c\n").unwrap();
        let repository = GitRepository::open_at(project_root.path()).unwrap();
        for content in ["one\n", "two, and longer\n"] {
            fs::write(project_root.path().join("a"), content).unwrap();
            fs::write(project_root.path().join("b"), content).unwrap();
            if content == "one\n" {
                repository.query(["add", "a", "b"]).unwrap();
            }
        }
        let diff_output = repository.query(["diff", "--no-ext-diff", "--no-textconv"]).unwrap();
        assert!(to_trimmed_text(&diff_output).contains("+two, and longer"), "{}", to_trimmed_text(&diff_output));
        assert!(!marker_file.exists(), "the project's own configuration ran a program");
    }

    #[test]
    fn a_long_output_is_dropped_once_the_reader_has_enough() {
        let project_root = new_repository();
        let repository = GitRepository::open_at(project_root.path()).unwrap();
        let mut command = repository.new_command();
        command.args(["cat-file", "--batch-check"]);
        let mut line = String::new();
        let input = "0123456789012345678901234567890123456789\n".repeat(1 << 16).into_bytes();
        let mut read_first_line =
            |output: &mut dyn BufRead| output.read_line(&mut line).map(|_| GitReadExtent::StoppedEarly);
        repository.stream_output(command, Some(input), &mut read_first_line).unwrap();
        assert!(line.ends_with(" missing\n"), "{line}");
    }

    #[test]
    fn a_missing_or_bare_repository_is_reported_as_such() {
        let project_root = tempfile::tempdir().unwrap();
        let error = GitRepository::open_at(project_root.path()).unwrap_err();
        assert!(matches!(error, GitError::NoRepository { .. }), "{error}");
        assert!(
            Command::new("git")
                .args(["init", "-q", "--bare"])
                .current_dir(project_root.path())
                .status()
                .unwrap()
                .success()
        );
        let error = GitRepository::open_at(project_root.path()).unwrap_err();
        assert!(matches!(error, GitError::BareRepository { .. }), "{error}");
    }
}
