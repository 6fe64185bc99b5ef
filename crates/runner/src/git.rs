//! Queries git about a project that may come from an untrusted source.
//!
//! The project's own configuration cannot run a program, and a directory that only looks like a repository is not taken for one.
//! Every query of a `GitRepository` has a timeout, and what is kept of its output has a limit. The callers interpret it.

pub mod changes;
pub mod heads;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{self, PollFd, PollFlags, Timespec},
    io::Errno,
};
use tribunal_supervise::secure_search_path;

/// The time limit of a single query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The limit for the output that is kept; lists of a hundred thousand files are shorter.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// The limit for the messages on stderr that are kept.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// What fits into an empty pipe on every system.
const MIN_PIPE_BYTES: usize = 4096;

/// Environment variables that would lead git to a repository other than the one of its working directory.
pub(crate) const REDIRECTING_VARIABLES: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
];
/// Environment variables that would change the form of git's output.
const OUTPUT_VARIABLES: [&str; 3] = ["GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_TRACE"];

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

/// Returns a git command for a directory that ignores all configuration which could run a program. Filters need a look at
/// the repository first: see [`GitRepository`].
pub(crate) fn git_command(project_root: &Path) -> Command {
    let mut command = index_writing_command(project_root);
    // Same as the option `--no-optional-locks`: a query must not write to the user's index.
    command.env("GIT_OPTIONAL_LOCKS", "0");
    command
}

/// Returns the same command for work that may write to the index, for instance to remember that files are unchanged.
pub(crate) fn index_writing_command(project_root: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-pager");
    // These settings take precedence over the repository's own configuration, which may name programs to run.
    for setting in [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.pager=cat",
        "core.quotePath=false",
        "safe.bareRepository=explicit",
        "protocol.allow=never",
        "color.ui=false",
    ] {
        command.args(["-c", setting]);
    }
    for variable in REDIRECTING_VARIABLES.iter().chain(&OUTPUT_VARIABLES) {
        command.env_remove(variable);
    }
    command
        .current_dir(project_root)
        // Error messages are compared with English text, so the locale is fixed.
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A partial clone must not contact its remote to fetch missing objects.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env_remove("GIT_OPTIONAL_LOCKS")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    // A file called `git` in the project is not git.
    secure_search_path(&mut command);
    #[cfg(test)]
    test_config::apply_global_config(&mut command);
    command
}

/// Returns a git command that does what the user would do by hand, with the configuration of the repository.
fn user_command(project_root: &Path) -> Command {
    let mut command = Command::new("git");
    for variable in REDIRECTING_VARIABLES {
        command.env_remove(variable);
    }
    command.current_dir(project_root).env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    secure_search_path(&mut command);
    #[cfg(test)]
    test_config::apply_global_config(&mut command);
    command
}

/// Lets a test choose the user's global configuration, for the commands that its own thread starts.
#[cfg(test)]
pub(crate) mod test_config {
    use std::{cell::RefCell, path::PathBuf, process::Command};

    thread_local! {
        pub static GLOBAL_CONFIG: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    }

    pub fn apply_global_config(command: &mut Command) {
        if let Some(config_file) = GLOBAL_CONFIG.with_borrow(Clone::clone) {
            command.env("GIT_CONFIG_GLOBAL", config_file).env("GIT_CONFIG_NOSYSTEM", "1");
        }
    }
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
    let outcome = run_with_reader(command, Some(input), QUERY_TIMEOUT, &mut |stdout| {
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
        let inside_answer = repository.query(["rev-parse", "--is-inside-work-tree"])?;
        if to_trimmed_text(&inside_answer) != "true" {
            return Err(GitError::BareRepository { root: project_root.display().to_string() });
        }
        repository.filter_overrides = repository.read_filter_overrides()?;
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

    /// Returns settings that switch off every filter the repository itself defines.
    fn read_filter_overrides(&self) -> Result<Vec<(OsString, &'static str)>, GitError> {
        let mut command = self.new_command();
        command.args(["config", "--show-scope", "--null", "--name-only", "--get-regexp", r"^filter\."]);
        // Git exits with 1 if nothing was found, so the exit code is not checked.
        let config_output = self.run_unchecked(command, None)?;
        let mut config_words = config_output.stdout.split(|byte| *byte == 0);
        let mut filter_names: BTreeSet<&[u8]> = BTreeSet::new();
        // The output alternates between the scope and the key of each setting.
        while let (Some(scope), Some(config_key)) = (config_words.next(), config_words.next()) {
            let filter_name = config_key.iter().rposition(|byte| *byte == b'.').map(|dot| &config_key[..dot]);
            // Filters that the user configured globally (Git LFS, for example) are trusted and keep running.
            filter_names.extend(filter_name.filter(|_| scope == b"local" || scope == b"worktree"));
        }
        let switch_off = |filter_name: &[u8]| {
            let setting_key =
                |setting_suffix: &str| OsString::from_vec([filter_name, setting_suffix.as_bytes()].concat());
            [
                (setting_key(".clean"), ""),
                (setting_key(".smudge"), ""),
                (setting_key(".process"), ""),
                (setting_key(".required"), "false"),
            ]
        };
        Ok(filter_names.into_iter().flat_map(switch_off).collect())
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
    pub fn run_unchecked(&self, command: Command, stdin_bytes: Option<Vec<u8>>) -> Result<GitOutput, GitError> {
        let subcommand = subcommand_name(&command);
        let mut output_bytes = Vec::new();
        // One byte more than the limit, so that an output of exactly the limit is told from a longer one.
        let mut read_output =
            |stdout: &mut dyn Read| stdout.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut output_bytes).map(|_| ());
        let (succeeded, error_text) = run_with_reader(command, stdin_bytes, QUERY_TIMEOUT, &mut read_output)?;
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
        let subcommand = subcommand_name(&command);
        let mut stopped_early = false;
        let (succeeded, message) = run_with_reader(command, stdin_bytes, QUERY_TIMEOUT, &mut |stdout| {
            stopped_early = read_output(&mut BufReader::with_capacity(1 << 16, stdout))? == GitReadExtent::StoppedEarly;
            Ok(())
        })?;
        // A reader that stops early closes the pipe, which git reports as a failure.
        if succeeded || stopped_early {
            Ok(())
        } else {
            Err(GitError::CommandFailed { what: subcommand, said: message })
        }
    }
}

/// Runs a command and returns all of its output, however long it is.
pub(crate) fn run_git(
    command: Command,
    stdin_bytes: Option<Vec<u8>>,
    time_limit: Duration,
) -> Result<GitOutput, GitError> {
    let mut stdout_bytes = Vec::new();
    let (succeeded, stderr_text) = run_with_reader(command, stdin_bytes, time_limit, &mut |stdout| {
        stdout.read_to_end(&mut stdout_bytes).map(drop)
    })?;
    Ok(GitOutput { succeeded, stdout: stdout_bytes, stderr: stderr_text })
}

/// Whether a reader consumed the whole output or stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitReadExtent {
    Complete,
    StoppedEarly,
}

#[derive(Debug)]
pub(crate) struct GitOutput {
    pub succeeded: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl GitOutput {
    /// The first line that git wrote to stderr; empty if there is none.
    fn first_message(&self) -> &str {
        self.stderr.lines().find(|stderr_line| !stderr_line.trim().is_empty()).unwrap_or_default()
    }
}

/// Returns the output of a query that prints a single line.
pub(crate) fn to_trimmed_text(output_bytes: &[u8]) -> String {
    String::from_utf8_lossy(output_bytes).trim().to_string()
}

/// Returns the subcommand for error messages: the first argument that is not an option of git itself.
pub(crate) fn subcommand_name(command: &Command) -> String {
    let mut arguments = command.get_args().map(|argument| argument.to_string_lossy());
    while let Some(argument) = arguments.next() {
        if argument == "-c" {
            arguments.next();
        } else if !argument.starts_with('-') {
            return argument.into_owned();
        }
    }
    String::new()
}

/// Starts git, passes its output to `read_output`, and ends it when the reader is done or the time is up.
fn run_with_reader(
    mut command: Command,
    stdin_bytes: Option<Vec<u8>>,
    time_limit: Duration,
    read_output: &mut dyn FnMut(&mut dyn Read) -> io::Result<()>,
) -> Result<(bool, String), GitError> {
    let subcommand = subcommand_name(&command);
    // A missing program is the one failure that the user can fix with an installation.
    let cannot_run = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => GitError::NotInstalled,
        _ => GitError::CannotRun { what: subcommand.clone(), cause },
    };
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if stdin_bytes.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut git_process = command.spawn().map_err(cannot_run)?;
    let stdin = git_process.stdin.take();
    let mut output_streams = GitOutputStreams {
        stdout: git_process.stdout.take(),
        stderr: git_process.stderr.take(),
        stderr_bytes: Vec::new(),
        deadline: Instant::now() + time_limit,
    };
    let (read_outcome, exit_outcome) = thread::scope(|scope| {
        if let Some((stdin, stdin_bytes)) = stdin.zip(stdin_bytes) {
            let is_short = stdin_bytes.len() <= MIN_PIPE_BYTES;
            let write_input = move || {
                let mut stdin = stdin;
                // A failing write means that git closed its input: it needs no more of it.
                let _ = stdin.write_all(&stdin_bytes);
            };
            // Writing a long input blocks until git has read it, and git may wait for us to read its output.
            if is_short { write_input() } else { drop(scope.spawn(write_input)) }
        }
        let read_outcome = read_output(&mut output_streams).and_then(|()| output_streams.drain_stderr());
        let exit_outcome = wait_or_kill(&mut git_process, read_outcome.is_err());
        (read_outcome, exit_outcome)
    });
    match (read_outcome, exit_outcome) {
        (Ok(()), Ok(succeeded)) => Ok((succeeded, String::from_utf8_lossy(&output_streams.stderr_bytes).into_owned())),
        (Err(cause), _) if cause.kind() == io::ErrorKind::TimedOut => {
            Err(GitError::TimedOut { what: subcommand, after: time_limit })
        }
        (Err(cause), _) | (_, Err(cause)) => Err(cannot_run(cause)),
    }
}

/// The output of a running git process. Reading it reads stdout, and collects stderr meanwhile: git would block on a full pipe
/// that is not being read.
struct GitOutputStreams {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The beginning of stderr. It is only shown, so the rest of a long message is dropped.
    stderr_bytes: Vec<u8>,
    deadline: Instant,
}

impl GitOutputStreams {
    /// Waits until stdout or stderr has something to read, and reads stderr if it has. Returns whether stdout is ready.
    fn wait_for_output(&mut self) -> io::Result<bool> {
        let remaining_time = self.deadline.saturating_duration_since(Instant::now());
        if remaining_time.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut poll_fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
        poll_fds.extend(self.stdout.as_ref().map(|stdout| PollFd::new(stdout, PollFlags::IN)));
        poll_fds.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        let timeout = Timespec::try_from(remaining_time).map_err(io::Error::other)?;
        match event::poll(&mut poll_fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
        let mut is_ready = poll_fds.iter().map(|poll_fd| !poll_fd.revents().is_empty());
        let stdout_ready = self.stdout.is_some() && is_ready.next().unwrap_or(false);
        let stderr_ready = self.stderr.is_some() && is_ready.next().unwrap_or(false);
        if stderr_ready {
            self.read_stderr()?;
        }
        Ok(stdout_ready)
    }

    fn read_stderr(&mut self) -> io::Result<()> {
        let Some(stderr) = &mut self.stderr else { return Ok(()) };
        let mut buffer = [0; 4096];
        match stderr.read(&mut buffer) {
            Ok(0) => self.stderr = None,
            Ok(count) => {
                let kept_count = count.min(MAX_MESSAGE_BYTES.saturating_sub(self.stderr_bytes.len()));
                self.stderr_bytes.extend_from_slice(&buffer[..kept_count]);
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
        Ok(())
    }

    /// Reads stderr to its end. Stdout is closed first: its reader wants no more of it.
    fn drain_stderr(&mut self) -> io::Result<()> {
        self.stdout = None;
        while self.stderr.is_some() {
            self.wait_for_output()?;
        }
        Ok(())
    }
}

impl Read for GitOutputStreams {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.wait_for_output()? {}
        self.stdout.as_mut().map_or(Ok(0), |stdout| stdout.read(buffer))
    }
}

/// Waits for git to exit and returns whether it succeeded. Its output has ended, so it exits soon, unless it timed out.
fn wait_or_kill(git_process: &mut Child, timed_out: bool) -> io::Result<bool> {
    if timed_out {
        git_process.kill()?;
    }
    git_process.wait().map(|status| status.success())
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
