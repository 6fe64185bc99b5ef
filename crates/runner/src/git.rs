//! Queries git about a project that may come from an untrusted source.
//!
//! The project's own configuration cannot run a program, and a directory that only looks like a repository is not taken for one.
//! Every query has a timeout and an output limit. The callers interpret the output.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// The time limit of a single query.
const LIMIT: Duration = Duration::from_secs(60);
/// The limit for the output that is kept; lists of a hundred thousand files are shorter.
const MOST_BYTES: u64 = 64 << 20;

/// Environment variables that would lead git to a repository other than the one of its working directory.
pub(crate) const LEADING_AWAY: [&str; 11] = [
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
const STEERING: [&str; 3] = ["GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_TRACE"];

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed, or not found")]
    NoGit,
    #[error("{root} is not in a git repository")]
    NoRepository { root: String },
    #[error("{root} is in a bare git repository, which has no files to review")]
    Bare { root: String },
    #[error("git does not trust {root}: it belongs to somebody else")]
    Distrusted { root: String },
    #[error("git {what} took longer than {} s", LIMIT.as_secs())]
    Slow { what: String },
    #[error("git {what} answered with more than {} MB", MOST_BYTES >> 20)]
    Flood { what: String },
    #[error("git {what} failed: {said}")]
    Failed { what: String, said: String },
    #[error("git {what} cannot be asked: {cause}")]
    Unasked { what: String, cause: io::Error },
}

/// Returns a git command for a directory that ignores all configuration which could run a program. Filters need a look at
/// the repository first: see [`GitRepository`].
pub(crate) fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["--no-optional-locks", "--no-pager"]);
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
        git.args(["-c", setting]);
    }
    for name in LEADING_AWAY.iter().chain(&STEERING) {
        git.env_remove(name);
    }
    git.current_dir(root)
        // Error messages are compared with English text, so the locale is fixed.
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A partial clone must not contact its remote to fetch missing objects.
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    git
}

/// Returns those of some new files that git ignores. Returns none where there is no git.
pub(crate) fn ignored<'a>(root: &Path, paths: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let input: Vec<u8> = paths.flat_map(|path| path.bytes().chain([0])).collect();
    if input.is_empty() {
        return BTreeSet::new();
    }
    let mut command = git(root);
    command.args(["check-ignore", "--stdin", "-z"]);
    let mut out = Vec::new();
    // Git exits with 1 if no path is ignored, so the exit code says nothing here.
    let heard = listen(command, Some(input), &mut |stdout| stdout.read_to_end(&mut out).map(|_| ()));
    let names = out.split(|byte| *byte == 0).filter(|name| heard.is_ok() && !name.is_empty());
    names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

/// A repository around a directory. Filters from its own configuration do not run; those from the user's configuration do.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    root: PathBuf,
    tamed: Vec<(OsString, &'static str)>,
}

impl Repository {
    pub fn around(root: &Path) -> Result<Repository, GitError> {
        let mut repository = Repository { root: root.to_path_buf(), tamed: Vec::new() };
        // A bare repository answers "false": it has no files to review.
        let inside = repository.ask(["rev-parse", "--is-inside-work-tree"])?;
        if text(&inside) != "true" {
            return Err(GitError::Bare { root: root.display().to_string() });
        }
        repository.tamed = repository.filters()?;
        Ok(repository)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn command(&self) -> Command {
        let mut git = git(&self.root);
        git.arg("--literal-pathspecs");
        // Not passed as `-c`, since the name of a filter may contain an equals sign.
        for (index, (key, value)) in self.tamed.iter().enumerate() {
            git.env(format!("GIT_CONFIG_KEY_{index}"), key).env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        if !self.tamed.is_empty() {
            git.env("GIT_CONFIG_COUNT", self.tamed.len().to_string());
        }
        git
    }

    /// Returns settings that switch off every filter the repository itself defines.
    fn filters(&self) -> Result<Vec<(OsString, &'static str)>, GitError> {
        let mut git = self.command();
        git.args(["config", "--show-scope", "--null", "--name-only", "--get-regexp", r"^filter\."]);
        // Git exits with 1 if nothing was found, so the exit code is not checked.
        let answer = self.raw(git, None)?;
        let mut words = answer.out.split(|byte| *byte == 0);
        let mut names: BTreeSet<&[u8]> = BTreeSet::new();
        // The output alternates between the scope and the key of each setting.
        while let (Some(scope), Some(key)) = (words.next(), words.next()) {
            let name = key.iter().rposition(|byte| *byte == b'.').map(|dot| &key[..dot]);
            // Filters that the user configured globally (Git LFS, for example) are trusted and keep running.
            names.extend(name.filter(|_| scope == b"local" || scope == b"worktree"));
        }
        let off = |name: &[u8]| {
            let key = |end: &str| OsString::from_vec([name, end.as_bytes()].concat());
            [(key(".clean"), ""), (key(".smudge"), ""), (key(".process"), ""), (key(".required"), "false")]
        };
        Ok(names.into_iter().flat_map(off).collect())
    }

    /// Runs a query and returns its output, or an error if git reports one.
    pub fn ask<const N: usize>(&self, args: [&str; N]) -> Result<Vec<u8>, GitError> {
        let mut git = self.command();
        git.args(args);
        self.answer(git, None)
    }

    /// Runs a command that was made with [`GitRepository::new_command`] in the same way.
    pub fn answer(&self, git: Command, input: Option<Vec<u8>>) -> Result<Vec<u8>, GitError> {
        let what = what(&git);
        let answer = self.raw(git, input)?;
        if answer.good {
            return Ok(answer.out);
        }
        let root = self.root.display().to_string();
        let said = answer
            .err
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it did not say why")
            .to_string();
        // Git has no distinct exit codes for these cases, so its message is all there is to tell them apart.
        Err(if said.contains("not a git repository") {
            GitError::NoRepository { root }
        } else if said.contains("bare repository") || said.contains("must be run in a work tree") {
            GitError::Bare { root }
        } else if said.contains("dubious ownership") {
            GitError::Distrusted { root }
        } else {
            GitError::Failed { what, said }
        })
    }

    /// Runs a command and returns its output together with whether git succeeded.
    pub fn raw(&self, git: Command, input: Option<Vec<u8>>) -> Result<Answer, GitError> {
        let what = what(&git);
        let mut out = Vec::new();
        let (good, err) =
            // One byte more than the limit, so that an output of exactly the limit is told from a longer one.
            listen(git, input, &mut |stdout| stdout.take(MOST_BYTES + 1).read_to_end(&mut out).map(|_| ()))?;
        if out.len() as u64 > MOST_BYTES {
            return Err(GitError::Flood { what });
        }
        Ok(Answer { good, out, err })
    }

    /// Passes an output of any length to `read_output` as it arrives, for as long as that wants more.
    pub fn stream(
        &self,
        git: Command,
        input: Option<Vec<u8>>,
        hear: &mut (dyn FnMut(&mut dyn BufRead) -> io::Result<Heard> + Send),
    ) -> Result<(), GitError> {
        let what = what(&git);
        let mut enough = false;
        let (good, said) = listen(git, input, &mut |stdout| {
            enough = hear(&mut BufReader::with_capacity(1 << 16, stdout))? == Heard::Enough;
            Ok(())
        })?;
        // A reader that stops early closes the pipe, which git reports as a failure.
        if good || enough { Ok(()) } else { Err(GitError::Failed { what, said }) }
    }
}

/// Whether a reader consumed the whole output or stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    All,
    Enough,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub good: bool,
    pub out: Vec<u8>,
    pub err: String,
}

/// Returns the output of a query that prints a single line.
pub(crate) fn text(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer).trim().to_string()
}

/// Returns the subcommand for error messages: the first argument that is not an option of git itself.
fn what(git: &Command) -> String {
    let mut words = git.get_args().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if word == "-c" {
            words.next();
        } else if !word.starts_with('-') {
            return word.into_owned();
        }
    }
    String::new()
}

/// Starts git, passes its output to `read_output`, and ends it when the reader is done or the time is up.
fn listen(
    mut git: Command,
    input: Option<Vec<u8>>,
    hear: &mut (dyn FnMut(&mut dyn Read) -> io::Result<()> + Send),
) -> Result<(bool, String), GitError> {
    let what = what(&git);
    // A missing program is the one failure that the user can fix with an installation.
    let unasked = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => GitError::NoGit,
        _ => GitError::Unasked { what: what.clone(), cause },
    };
    git.stdout(Stdio::piped()).stderr(Stdio::piped());
    if input.is_some() {
        git.stdin(Stdio::piped());
    }
    let mut child = git.spawn().map_err(unasked)?;
    // Each stream gets its own thread: git could otherwise block on a full pipe that is not being read.
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let heard = thread::scope(|scope| {
        let (done, finished) = mpsc::channel();
        scope.spawn(move || {
            let mut stdin = stdin;
            // A failing write means that git closed its input: it needs no more of it.
            let _ = stdin.as_mut().zip(input).map(|(stdin, input)| stdin.write_all(&input));
        });
        // The message is only shown, so a long one is cut.
        let complaints = scope.spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.map(|stderr| stderr.take(1 << 16).read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        });
        scope.spawn(move || {
            let heard = stdout.map_or(Ok(()), |mut stdout| hear(&mut stdout));
            let _ = done.send(heard);
        });
        // Only reading stdout counts towards the time limit; git ends soon after its output has ended.
        let heard = finished.recv_timeout(LIMIT);
        let ended = end(&mut child, heard.is_err());
        let said = complaints.join().unwrap_or_default();
        Some((heard, ended, said))
    });
    match heard {
        Some((Ok(Ok(())), Ok(good), said)) => Ok((good, said)),
        Some((Ok(Err(cause)), ..) | (_, Err(cause), _)) => Err(unasked(cause)),
        _ => Err(GitError::Slow { what }),
    }
}

/// Waits for git to exit and returns whether it succeeded. Its output has ended, so it exits soon, unless it timed out.
fn end(child: &mut Child, late: bool) -> io::Result<bool> {
    if late {
        child.kill()?;
    }
    child.wait().map(|status| status.success())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn repository() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        assert!(git(root.path()).args(["init", "-q"]).status().unwrap().success());
        root
    }

    #[test]
    fn a_stranger_s_filters_and_watchers_do_not_run() {
        let root = repository();
        let own = root.path().join("owned");
        let script = format!("touch '{}'; cat", own.display());
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
            assert!(git(root.path()).args(["config", key, value]).status().unwrap().success());
        }
        fs::write(root.path().join(".gitattributes"), "a filter=evil diff=evil\nb filter=a=b.c\n").unwrap();
        let repository = Repository::around(root.path()).unwrap();
        for text in ["one\n", "two, and longer\n"] {
            fs::write(root.path().join("a"), text).unwrap();
            fs::write(root.path().join("b"), text).unwrap();
            if text == "one\n" {
                repository.ask(["add", "a", "b"]).unwrap();
            }
        }
        let shown = repository.ask(["diff", "--no-ext-diff", "--no-textconv"]).unwrap();
        assert!(text(&shown).contains("+two, and longer"), "{}", text(&shown));
        assert!(!own.exists(), "the project's own configuration ran a program");
    }

    #[test]
    fn a_long_answer_is_left_when_it_is_enough() {
        let root = repository();
        let repository = Repository::around(root.path()).unwrap();
        let mut git = repository.command();
        git.args(["cat-file", "--batch-check"]);
        let mut line = String::new();
        let input = "0123456789012345678901234567890123456789\n".repeat(1 << 16).into_bytes();
        let mut hear = |answer: &mut dyn BufRead| answer.read_line(&mut line).map(|_| Heard::Enough);
        repository.stream(git, Some(input), &mut hear).unwrap();
        assert!(line.ends_with(" missing\n"), "{line}");
    }

    #[test]
    fn what_is_no_repository_is_said_plainly() {
        let root = tempfile::tempdir().unwrap();
        let error = Repository::around(root.path()).unwrap_err();
        assert!(matches!(error, GitError::NoRepository { .. }), "{error}");
        assert!(
            Command::new("git")
                .args(["init", "-q", "--bare"])
                .current_dir(root.path())
                .status()
                .unwrap()
                .success()
        );
        let error = Repository::around(root.path()).unwrap_err();
        assert!(matches!(error, GitError::Bare { .. }), "{error}");
    }
}
