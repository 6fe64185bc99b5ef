//! Records landings in a git repository of our own, `.tribunal/landings.git`: a chain of commits on a branch per run, for
//! users who like to look at landings with git.
//!
//! If a landing finds its files in another state than the chain has them, a commit with that state comes first, so that the
//! landing's own commit has exactly what the landing did. The commits contain only files that landings touched.
//!
//! This is best effort and never the source of truth: that is the checkpoints. Nothing is written to the project's own
//! repository, because `git log --all` shows every reference in it. No hook runs, and ignored files are left out.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Seek, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use tribunal_engine::ids::{FindingId, RunId};
use tribunal_store::Store;
use tribunal_workflows::runs::{
    effect::{AskAgent, Effect},
    types::RunEvent,
};

use crate::{
    git::{self, GitError, WORK_TIMEOUT, git_command},
    landing::{
        checkpoints::{CheckpointChange, CheckpointKey, CheckpointStore},
        merging::quote_path,
    },
    project::Project,
};

/// The repository, below the project's root.
const REPOSITORY_PATH: &str = ".tribunal/landings.git";
/// The author of the commits.
const COMMIT_AUTHOR: &str = "Tribunal <tribunal@localhost>";
/// The trailer that names the landing of a commit.
const LANDING_TRAILER: &str = "Tribunal-Landing: ";

/// Records a landing in git, once. Does nothing where there is no git.
pub(crate) fn record_landing(
    project: &Project,
    run_id: &RunId,
    checkpoint_key: &CheckpointKey,
    git_changes: &[CheckpointChange],
) -> io::Result<()> {
    let Some(branch_name) = branch_name(run_id) else { return Ok(()) };
    if !is_in_repository(project)? {
        return Ok(());
    }
    let git_changes = exclude_ignored(project, &squash_attempts(git_changes))?;
    if git_changes.is_empty() {
        return Ok(());
    }
    create_repository(project)?;
    let git_reference = format!("refs/heads/{branch_name}");
    let chain = CommitChain::read_chain(project, &git_reference, &git_changes)?;
    // The last commit names its landing, so a repeated call after a crash adds nothing.
    if chain.ends_with_landing(checkpoint_key) {
        return Ok(());
    }
    let deleted_file_modes =
        CheckpointStore::for_run(project, run_id).deleted_file_modes(checkpoint_key).unwrap_or_default();
    let commit_writer = CommitWriter { project, reference: &git_reference, deleted_file_modes };
    let mut import_stream = Vec::new();
    writeln!(import_stream, "feature done")?;
    // Only files whose state differs from the chain need the extra commit.
    let outdated_files =
        git_changes.iter().filter(|change| chain.known_files.get(&change.relative_path) != Some(&change.text_before));
    let outdated_files: Vec<FileSide> =
        outdated_files.map(|change| (change.relative_path.as_str(), change.text_before.as_deref())).collect();
    // Only the first commit of the stream names its parent; the next one follows it.
    let mut parent_ref = chain.exists.then_some(git_reference.as_str());
    if !chain.exists || !outdated_files.is_empty() {
        commit_writer.write_commit(
            &mut import_stream,
            &format!("The files before {}\n", checkpoint_key.task_key),
            parent_ref.take(),
            &outdated_files,
        )?;
    }
    let landed_files: Vec<FileSide> =
        git_changes.iter().map(|change| (change.relative_path.as_str(), change.text_after.as_deref())).collect();
    commit_writer.write_commit(
        &mut import_stream,
        &commit_message(project, run_id, checkpoint_key),
        parent_ref,
        &landed_files,
    )?;
    writeln!(import_stream, "done")?;
    let mut import_command = landings_git(project)?;
    // A reflog would only repeat the chain.
    import_command.args(["-c", "core.logAllRefUpdates=false", "fast-import", "--quiet", "--done", "--date-format=now"]);
    run_with_input(project, import_command, &import_stream).map(|_| ())
}

/// Deletes the landings of runs that are removed. With the last run the whole repository goes.
pub(crate) fn delete_landings(project: &Project, run_ids: &[RunId]) -> io::Result<()> {
    let recorded_branches: Vec<String> = run_ids.iter().filter_map(|run_id| find_branch(project, run_id)).collect();
    if recorded_branches.is_empty() {
        return Ok(());
    }
    for branch_name in &recorded_branches {
        run_checked(landings_git(project)?.args(["update-ref", "-d", &format!("refs/heads/{branch_name}")]))?;
    }
    let remaining_branches = run_checked(landings_git(project)?.args(["for-each-ref", "--count=1"]))?;
    if remaining_branches.is_empty() {
        return fs::remove_dir_all(project.root().join(REPOSITORY_PATH));
    }
    // Objects of the last two weeks stay: another run may be recording a landing right now.
    run_checked(landings_git(project)?.args(["gc", "--quiet"])).map(|_| ())
}

/// Joins finding ids: `F1, F4`.
pub fn join_finding_ids(findings: &[FindingId]) -> String {
    findings.iter().map(FindingId::to_string).collect::<Vec<String>>().join(", ")
}

/// Returns the command that shows the run's landings, if any are recorded: `git --git-dir=… log -p RUN`.
pub fn landings_log_command(project: &Project, run_id: &RunId) -> Option<String> {
    let branch_name = find_branch(project, run_id)?;
    Some(format!("git --git-dir={REPOSITORY_PATH} log -p {branch_name}"))
}

/// Writes a branch with landings to a file that git can clone.
pub(crate) fn export_branch(project: &Project, branch_name: &str, bundle_path: &Path) -> io::Result<()> {
    let mut command = landings_git(project)?;
    command.args(["bundle", "create", "--quiet"]).arg(bundle_path).arg(format!("refs/heads/{branch_name}"));
    run_checked(&mut command).map(|_| ())
}

/// Returns the branch with the run's landings, if there is one.
pub(crate) fn find_branch(project: &Project, run_id: &RunId) -> Option<String> {
    let branch_name = branch_name(run_id)?;
    // Most projects are looked at without any landing; git need not be started for that.
    if !project.root().join(REPOSITORY_PATH).exists() {
        return None;
    }
    let mut lookup = landings_git(project).ok()?;
    lookup.args(["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch_name}")]);
    run_checked(&mut lookup).is_ok().then_some(branch_name)
}

/// A file's path and its text; `None` if it does not exist.
type FileSide<'a> = (&'a str, Option<&'a str>);

/// Combines several attempts into one change per file.
fn squash_attempts(attempts: &[CheckpointChange]) -> Vec<CheckpointChange> {
    let mut changes_by_path: BTreeMap<&str, CheckpointChange> = BTreeMap::new();
    // The first attempt has the original text, the last one what landed.
    for change in attempts.iter().filter(|change| change.text_before != change.text_after) {
        let squashed = changes_by_path.entry(&change.relative_path).or_insert_with(|| change.clone());
        squashed.text_after.clone_from(&change.text_after);
    }
    changes_by_path.into_values().collect()
}

/// Returns the name of the run's branch, or `None` if the run's name cannot be one.
fn branch_name(run_id: &RunId) -> Option<String> {
    let run_name = run_id.as_str();
    // A leading dash would be read as an option where the user types the name.
    let is_valid_name = !run_name.is_empty()
        && !run_name.starts_with('-')
        && run_name.chars().all(|character| character.is_alphanumeric() || character == '-' || character == '_');
    is_valid_name.then(|| run_name.to_string())
}

/// Everything that is needed to write a commit.
struct CommitWriter<'a> {
    project: &'a Project,
    reference: &'a str,
    /// The permissions of files that the landing deleted.
    deleted_file_modes: BTreeMap<String, u32>,
}

impl CommitWriter<'_> {
    fn write_commit(
        &self,
        import_stream: &mut Vec<u8>,
        message_text: &str,
        parent_ref: Option<&str>,
        files: &[FileSide],
    ) -> io::Result<()> {
        let git_reference = self.reference;
        writeln!(import_stream, "commit {git_reference}\ncommitter {COMMIT_AUTHOR} now")?;
        writeln!(import_stream, "data {}\n{message_text}", message_text.len())?;
        // `^0` makes fast-import resolve the existing reference instead of the commit it is about to create.
        if let Some(parent_ref) = parent_ref {
            writeln!(import_stream, "from {parent_ref}^0")?;
        }
        for (relative_path, file_text) in files {
            let quoted_path = quote_for_import(relative_path);
            match file_text {
                Some(file_text) => {
                    writeln!(
                        import_stream,
                        "M {} inline {quoted_path}\ndata {}",
                        self.git_file_mode(relative_path),
                        file_text.len()
                    )?;
                    import_stream.extend_from_slice(file_text.as_bytes());
                    import_stream.push(b'\n');
                }
                None => writeln!(import_stream, "D {quoted_path}")?,
            }
        }
        writeln!(import_stream)
    }

    fn git_file_mode(&self, relative_path: &str) -> &'static str {
        let current_mode = fs::metadata(self.project.root().join(relative_path))
            .map(|file_metadata| file_metadata.permissions().mode());
        let mode =
            current_mode.ok().or_else(|| self.deleted_file_modes.get(relative_path).copied()).unwrap_or_default();
        if mode & 0o100 == 0 { "100644" } else { "100755" }
    }
}

/// The chain as it is so far.
#[derive(Default)]
struct CommitChain {
    exists: bool,
    /// The message of its last commit.
    last_message: String,
    /// Those files of a landing that are in the chain, or known not to be.
    known_files: BTreeMap<String, Option<String>>,
}

impl CommitChain {
    fn read_chain(project: &Project, reference: &str, changed_files: &[CheckpointChange]) -> io::Result<CommitChain> {
        let mut queries = format!("{reference}\n");
        // The query has one name per line, so a path with a line break cannot be asked for.
        let known_changes: Vec<&CheckpointChange> =
            changed_files.iter().filter(|change| !change.relative_path.contains('\n')).collect();
        for change in &known_changes {
            queries.push_str(&format!("{reference}:{}\n", change.relative_path));
        }
        let mut command = landings_git(project)?;
        command.args(["cat-file", "--batch"]);
        let output = run_with_input(project, command, queries.as_bytes())?;
        let mut remaining_output = output.as_slice();
        let mut chain = CommitChain::default();
        // A missing reference answers the first query with "missing": the chain does not exist yet.
        let Some(commit_text) = next_object(&mut remaining_output) else { return Ok(chain) };
        chain.exists = true;
        chain.last_message = String::from_utf8_lossy(commit_text).into_owned();
        for change in known_changes {
            let file_text =
                next_object(&mut remaining_output).map(|file_bytes| String::from_utf8_lossy(file_bytes).into_owned());
            chain.known_files.insert(change.relative_path.clone(), file_text);
        }
        Ok(chain)
    }

    fn ends_with_landing(&self, checkpoint_key: &CheckpointKey) -> bool {
        let wanted_trailer = landing_trailer(checkpoint_key);
        self.last_message.lines().any(|line| line == wanted_trailer)
    }
}

/// Takes the next object from the output of `cat-file --batch`: a line with its size, then its bytes. `None` if it is missing.
fn next_object<'a>(remaining_output: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line_end = remaining_output.iter().position(|byte| *byte == b'\n')?;
    let (header_bytes, after_header) = (&remaining_output[..line_end], &remaining_output[line_end + 1..]);
    *remaining_output = after_header;
    let header = std::str::from_utf8(header_bytes).ok()?;
    // The header is read from its end, since the queried name before it may contain spaces.
    let mut header_words = header.rsplit(' ');
    let size: usize = header_words.next()?.parse().ok()?;
    let object_kind = header_words.next()?;
    let bytes = after_header.get(..size)?;
    *remaining_output = after_header.get(size + 1..)?;
    (object_kind == "blob" || object_kind == "commit").then_some(bytes)
}

fn landing_trailer(checkpoint_key: &CheckpointKey) -> String {
    format!("{LANDING_TRAILER}{} {}", checkpoint_key.segment, checkpoint_key.task_key)
}

fn commit_message(project: &Project, run_id: &RunId, checkpoint_key: &CheckpointKey) -> String {
    let finding_ids = assigned_findings(project, run_id, checkpoint_key);
    let findings_line =
        if finding_ids.is_empty() { String::new() } else { format!("For {}.\n\n", join_finding_ids(&finding_ids)) };
    format!("Landing {}\n\n{findings_line}{}\n", checkpoint_key.task_key, landing_trailer(checkpoint_key))
}

/// Returns the findings that the landing's fixer was assigned.
fn assigned_findings(project: &Project, run_id: &RunId, checkpoint_key: &CheckpointKey) -> Vec<FindingId> {
    let store = Store::open_read_only(&project.home_dir());
    let entries = store.and_then(|store| store.entries_for_resume(run_id)).unwrap_or_default();
    let agent_task = entries.iter().find_map(|entry| match &entry.event {
        RunEvent::EffectStarted { key, segment, effect: Effect::Ask(AskAgent { task: agent_task, .. }), .. } => {
            (*key == checkpoint_key.task_key && *segment == checkpoint_key.segment).then_some(agent_task)
        }
        _ => None,
    });
    agent_task.map(|agent_task| agent_task.brief.finding_ids()).unwrap_or_default()
}

/// Whether the project is in a repository of the user's. Without one, nothing says which files are better kept out of git.
fn is_in_repository(project: &Project) -> io::Result<bool> {
    let mut command = git_command(project.root());
    command.args(["rev-parse", "--is-inside-work-tree"]);
    match git::run_git(command, None, WORK_TIMEOUT) {
        Ok(output) => Ok(output.succeeded),
        Err(GitError::NotInstalled) => Ok(false),
        Err(cause) => Err(io::Error::other(cause)),
    }
}

/// Creates our repository, if it is not there yet.
fn create_repository(project: &Project) -> io::Result<()> {
    let repository_path = project.root().join(REPOSITORY_PATH);
    if repository_path.exists() {
        return Ok(());
    }
    // The repository appears under its name only when it is complete: we may be killed, or another run may do the same.
    let unfinished = tempfile::Builder::new().prefix("landings-").tempdir_in(project.home_dir())?;
    let mut command = git_command(project.root());
    command.args(["init", "--quiet", "--bare", "--template=", "--initial-branch=none"]).arg(unfinished.path());
    run_checked(&mut command)?;
    match fs::rename(unfinished.path(), &repository_path) {
        // Another run was quicker; ours is removed.
        Err(_) if repository_path.exists() => Ok(()),
        // Nothing is left at the old path, so removing it must not be tried.
        renamed => renamed.map(|()| drop(unfinished.keep())),
    }
}

/// Settings that `git init` writes into a repository. None of them names a program.
const INITIAL_SETTINGS: [&str; 6] =
    ["repositoryformatversion", "filemode", "bare", "symlinks", "ignorecase", "precomposeunicode"];

/// Returns a git command for our own repository. A link in its place is refused: it could lead to a repository of the user's.
/// So is a repository with other settings than ours: it may have come with a clone, and settings can name programs that git
/// runs, also when the user types the command that we show.
fn landings_git(project: &Project) -> io::Result<Command> {
    let repository_path = project.root().join(REPOSITORY_PATH);
    if fs::symlink_metadata(&repository_path).is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(io::Error::other(format!("{REPOSITORY_PATH} is not a directory")));
    }
    let config_text = fs::read_to_string(repository_path.join("config"))?;
    if let Some(foreign_line) = config_text.lines().find(|line| !is_initial_setting(line)) {
        return Err(io::Error::other(format!("{REPOSITORY_PATH}/config has an unexpected setting: {foreign_line}")));
    }
    let mut command = git_command(project.root());
    command.arg("--git-dir").arg(repository_path);
    Ok(command)
}

/// Whether a line of a configuration file is one of those that `git init` writes.
fn is_initial_setting(config_line: &str) -> bool {
    let config_line = config_line.trim();
    match config_line.split_once('=') {
        Some((setting_name, setting_value)) => {
            // A backslash at the end would continue the value on the next line.
            INITIAL_SETTINGS.contains(&setting_name.trim()) && !setting_value.ends_with('\\')
        }
        None => config_line.is_empty() || config_line == "[core]",
    }
}

/// Removes changes of files that git ignores.
fn exclude_ignored(project: &Project, candidate_changes: &[CheckpointChange]) -> io::Result<Vec<CheckpointChange>> {
    let mut command = git_command(project.root());
    command.args(["check-ignore", "--stdin", "-z"]);
    // The prefix makes sure that git takes the name literally, even if it starts with a colon.
    let query_name = |change: &CheckpointChange| format!("./{}", change.relative_path);
    let query_names: String = candidate_changes.iter().map(|change| query_name(change) + "\0").collect();
    let command = add_stdin_file(project, &mut command, query_names.as_bytes())?;
    let output = git::run_git(command, None, WORK_TIMEOUT).map_err(io::Error::other)?;
    // It also fails if git ignores none of them.
    if !output.succeeded && output.stderr.contains("fatal:") {
        return Err(io::Error::other(output.to_error("check-ignore")));
    }
    let ignored_names: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    Ok(candidate_changes
        .iter()
        .filter(|change| !ignored_names.contains(&query_name(change).as_bytes()))
        .cloned()
        .collect())
}

/// Quotes a path for `fast-import` wherever it could be misread.
fn quote_for_import(relative_path: &str) -> String {
    let quoted_path = quote_path(relative_path);
    if quoted_path.starts_with('"') || !relative_path.starts_with(' ') {
        quoted_path
    } else {
        format!("\"{quoted_path}\"")
    }
}

fn run_checked(command: &mut Command) -> io::Result<Vec<u8>> {
    git::run_checked(command, None).map_err(io::Error::other)
}

fn run_with_input(project: &Project, mut command: Command, input_bytes: &[u8]) -> io::Result<Vec<u8>> {
    run_checked(add_stdin_file(project, &mut command, input_bytes)?)
}

/// Gives a command its input from an unnamed file: it may be many texts.
fn add_stdin_file<'c>(project: &Project, command: &'c mut Command, input_bytes: &[u8]) -> io::Result<&'c mut Command> {
    let mut input_file = tempfile::tempfile_in(project.home_dir())?;
    input_file.write_all(input_bytes)?;
    input_file.rewind()?;
    Ok(command.stdin(input_file))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tribunal_engine::ids::Key;

    use super::*;

    /// A user's repository with one commit, something staged, something stashed, and hooks that leave a trace when they run.
    struct UserRepository {
        temp_dir: tempfile::TempDir,
    }

    impl UserRepository {
        fn init_repository() -> UserRepository {
            let user_repository = UserRepository { temp_dir: tempfile::tempdir().unwrap() };
            user_repository.run_git(&["init", "-q", "-b", "main"]);
            for (name, value) in [("user.name", "P"), ("user.email", "p@x"), ("core.logAllRefUpdates", "always")] {
                user_repository.run_git(&["config", name, value]);
            }
            user_repository
        }

        fn with_pending_work() -> UserRepository {
            let user_repository = UserRepository::init_repository();
            user_repository.write_file("a.md", "1\n");
            user_repository.run_git(&["add", "."]);
            user_repository.run_git(&["commit", "-qm", "mine"]);
            user_repository.write_file("a.md", "stashed\n");
            user_repository.run_git(&["stash"]);
            user_repository.write_file("staged.md", "staged\n");
            user_repository.run_git(&["add", "staged.md"]);
            for hook in ["reference-transaction", "post-commit", "post-update", "pre-auto-gc"] {
                let path = user_repository.repository_root().join(".git/hooks").join(hook);
                fs::write(&path, format!("#!/bin/sh\ntouch {:?}\n", user_repository.repository_root().join("hooked")))
                    .unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            user_repository
        }

        fn repository_root(&self) -> PathBuf {
            self.temp_dir.path().join("repository")
        }

        fn write_file(&self, path: &str, text: &str) {
            let path = self.repository_root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn run_git(&self, arguments: &[&str]) -> String {
            self.run_git_in(&self.repository_root(), arguments)
        }

        fn run_git_in(&self, directory: &Path, arguments: &[&str]) -> String {
            fs::create_dir_all(self.repository_root()).unwrap();
            let mut git = Command::new("git");
            git.args(arguments).current_dir(directory).env("HOME", self.temp_dir.path());
            let output = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        }

        fn open_project(&self, directory: &str) -> Project {
            let project = Project::from_root(self.repository_root().join(directory));
            project.prepare_home().unwrap();
            project
        }

        /// Runs git in our repository of the project in `directory`.
        fn landings_git(&self, directory: &str, arguments: &[&str]) -> String {
            let git_dir = self.repository_root().join(directory).join(REPOSITORY_PATH);
            self.run_git(&[&["--git-dir", git_dir.to_str().unwrap()], arguments].concat())
        }

        /// Returns everything in the user's git directory.
        fn git_dir_contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
            let (mut file_contents, mut directories) = (BTreeMap::new(), vec![self.repository_root().join(".git")]);
            while let Some(directory) = directories.pop() {
                for item in fs::read_dir(directory).unwrap().flatten() {
                    let path = item.path();
                    match path.is_dir() {
                        true => directories.push(path),
                        false => drop(file_contents.insert(path.clone(), fs::read(path).unwrap())),
                    }
                }
            }
            file_contents
        }

        fn commit_subjects(&self) -> Vec<String> {
            let log = self.landings_git("", &["log", "--format=%s", "plan-aaaa"]);
            log.lines().map(String::from).collect()
        }
    }

    fn test_run() -> RunId {
        RunId::new("plan-aaaa")
    }

    fn landing_key(number: u32) -> CheckpointKey {
        CheckpointKey { segment: 2, task_key: Key::new(format!("round-1/fix-1/fix/{number}")) }
    }

    fn file_change(path: &str, before: Option<&str>, after: Option<&str>) -> CheckpointChange {
        CheckpointChange {
            relative_path: path.into(),
            text_before: before.map(String::from),
            text_after: after.map(String::from),
        }
    }

    #[test]
    fn every_landing_is_a_commit_of_what_it_did_and_nothing_else() {
        let user_repository = UserRepository::with_pending_work();
        let project = user_repository.open_project("");
        let first = [
            file_change("a.md", Some("1\n"), Some("2\n")),
            file_change("new.rs", None, Some("new\n")),
            file_change("src/old.rs", Some("old\n"), None),
        ];
        record_landing(&project, &test_run(), &landing_key(1), &first).unwrap();
        // The user edits a file before the next landing, which also touches a file that no landing has touched yet.
        let second =
            [file_change("a.md", Some("2\nmine\n"), Some("3\nmine\n")), file_change("b.md", Some("b\n"), Some("B\n"))];
        record_landing(&project, &test_run(), &landing_key(2), &second).unwrap();
        let third = [file_change("b.md", Some("B\n"), Some("C\n"))];
        record_landing(&project, &test_run(), &landing_key(3), &third).unwrap();
        record_landing(&project, &test_run(), &landing_key(3), &third).unwrap();
        assert_eq!(
            user_repository.commit_subjects(),
            [
                "Landing round-1/fix-1/fix/3",
                "Landing round-1/fix-1/fix/2",
                "The files before round-1/fix-1/fix/2",
                "Landing round-1/fix-1/fix/1",
                "The files before round-1/fix-1/fix/1",
            ]
        );
        let shown = |number: u32| {
            let commit = format!("plan-aaaa~{number}");
            let options = ["show", "--format=", "--no-renames", "--unified=0", "--no-prefix"];
            user_repository.landings_git("", &[&options[..], &[&commit]].concat())
        };
        let lines = |number| -> Vec<String> {
            let shown = shown(number);
            let is_change = |line: &&str| line.starts_with(['+', '-']);
            shown.lines().filter(is_change).map(String::from).collect()
        };
        assert_eq!(
            lines(3),
            [
                "--- a.md",
                "+++ a.md",
                "-1",
                "+2",
                "--- /dev/null",
                "+++ new.rs",
                "+new",
                "--- src/old.rs",
                "+++ /dev/null",
                "-old"
            ]
        );
        assert_eq!(lines(1), ["--- a.md", "+++ a.md", "-2", "+3", "--- b.md", "+++ b.md", "-b", "+B"]);
        assert_eq!(lines(0), ["--- b.md", "+++ b.md", "-B", "+C"]);
        let commit_authors =
            user_repository.landings_git("", &["log", "-1", "--format=%an <%ae>%n%cn <%ce>%n%(trailers)", "plan-aaaa"]);
        assert_eq!(
            commit_authors,
            format!("{COMMIT_AUTHOR}\n{COMMIT_AUTHOR}\nTribunal-Landing: 2 round-1/fix-1/fix/3\n\n")
        );
    }

    #[test]
    fn what_belongs_to_the_user_is_untouched_and_no_hook_runs() {
        let user_repository = UserRepository::with_pending_work();
        let project = user_repository.open_project("");
        let before = (user_repository.git_dir_contents(), user_repository.run_git(&["stash", "list"]));
        fs::remove_file(user_repository.repository_root().join("hooked")).unwrap_or_default();
        for number in 1..3 {
            let change = file_change("a.md", Some("1\n"), Some("2\n"));
            record_landing(&project, &test_run(), &landing_key(number), &[change]).unwrap();
        }
        assert!(find_branch(&project, &test_run()).is_some());
        assert_eq!(user_repository.git_dir_contents(), before.0);
        delete_landings(&project, &[test_run()]).unwrap();
        assert_eq!(find_branch(&project, &test_run()), None);
        assert!(!user_repository.repository_root().join(REPOSITORY_PATH).exists(), "the last run is gone");
        assert_eq!(user_repository.git_dir_contents(), before.0);
        assert!(!user_repository.repository_root().join("hooked").exists(), "a hook ran");
        assert_eq!(user_repository.run_git(&["stash", "list"]), before.1);
    }

    #[test]
    fn it_works_without_a_commit_without_a_branch_in_another_work_tree_and_below_the_top() {
        let landing = [file_change("docs/a.md", Some("1\n"), Some("2\n"))];
        let text = |user_repository: &UserRepository, directory: &str| {
            user_repository.landings_git(directory, &["show", "plan-aaaa:docs/a.md"])
        };
        let unborn = UserRepository::init_repository();
        record_landing(&unborn.open_project(""), &test_run(), &landing_key(1), &landing).unwrap();
        assert_eq!(text(&unborn, ""), "2\n");

        let detached = UserRepository::with_pending_work();
        detached.run_git(&["checkout", "-q", "--detach"]);
        record_landing(&detached.open_project(""), &test_run(), &landing_key(1), &landing).unwrap();
        assert_eq!(text(&detached, ""), "2\n");

        let linked = UserRepository::with_pending_work();
        linked.run_git(&["worktree", "add", "-q", linked.temp_dir.path().join("elsewhere").to_str().unwrap()]);
        record_landing(&linked.open_project("../elsewhere"), &test_run(), &landing_key(1), &landing).unwrap();
        assert_eq!(text(&linked, "../elsewhere"), "2\n");

        let below = UserRepository::with_pending_work();
        let directory = "apps/web \"2\"";
        let project = below.open_project(directory);
        record_landing(&project, &test_run(), &landing_key(1), &landing).unwrap();
        record_landing(&project, &test_run(), &landing_key(2), &[file_change("docs/a.md", Some("2\n"), Some("3\n"))])
            .unwrap();
        assert_eq!(text(&below, directory), "3\n");
        let commits = below.landings_git(directory, &["rev-list", "--count", "plan-aaaa"]);
        assert_eq!(commits, "3\n", "the second landing found the file as the first one left it");
    }

    #[test]
    fn odd_names_and_odd_texts_arrive_as_they_are() {
        let user_repository = UserRepository::init_repository();
        let project = user_repository.open_project("");
        let names = ["a b", " lead", "q\"uo\\te", "two\nlines", "tab\t", "ä", "-dash", ":(top)x", "*", "$x", "x "];
        for text in ["", "\n", "no end", "a\r\nb\r\n", "done\nfeature done\ncommit refs/heads/main\n", "\u{feff}\0"] {
            delete_landings(&project, &[test_run()]).unwrap();
            let all: Vec<CheckpointChange> = names.iter().map(|name| file_change(name, None, Some(text))).collect();
            record_landing(&project, &test_run(), &landing_key(1), &all).unwrap();
            let listed = user_repository.landings_git("", &["ls-tree", "-r", "-z", "--name-only", "plan-aaaa"]);
            let mut listed: Vec<&str> = listed.split_terminator('\0').collect();
            let mut expected = names.to_vec();
            listed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(listed, expected);
            for name in names {
                let shown = user_repository.landings_git("", &["show", &format!("plan-aaaa:{name}")]);
                assert_eq!(shown, text, "{name:?}");
            }
        }
    }

    #[test]
    fn what_git_ignores_is_not_given_to_it() {
        let user_repository = UserRepository::init_repository();
        user_repository.write_file(".gitignore", "secret*\n");
        let project = user_repository.open_project("");
        let secret = file_change("secret.env", Some("old\n"), Some("new\n"));
        record_landing(&project, &test_run(), &landing_key(1), std::slice::from_ref(&secret)).unwrap();
        assert_eq!(find_branch(&project, &test_run()), None);
        record_landing(
            &project,
            &test_run(),
            &landing_key(2),
            &[secret, file_change("a.md", Some("1\n"), Some("2\n"))],
        )
        .unwrap();
        let listed = user_repository.landings_git("", &["ls-tree", "-r", "--name-only", "plan-aaaa"]);
        assert_eq!(listed, "a.md\n");
    }

    #[test]
    fn a_file_that_runs_is_kept_as_one() {
        let user_repository = UserRepository::init_repository();
        let project = user_repository.open_project("");
        for name in ["run.sh", "gone.sh"] {
            user_repository.write_file(name, "1\n");
            fs::set_permissions(user_repository.repository_root().join(name), fs::Permissions::from_mode(0o755))
                .unwrap();
        }
        let all = [file_change("gone.sh", Some("1\n"), None), file_change("run.sh", Some("1\n"), Some("2\n"))];
        CheckpointStore::for_run(&project, &test_run()).record_landing(&landing_key(1), &all).unwrap();
        fs::remove_file(user_repository.repository_root().join("gone.sh")).unwrap();
        record_landing(&project, &test_run(), &landing_key(1), &all).unwrap();
        let modes =
            |commit: &str| user_repository.landings_git("", &["ls-tree", "--format=%(objectmode) %(path)", commit]);
        assert_eq!(modes("plan-aaaa"), "100755 run.sh\n");
        assert_eq!(modes("plan-aaaa~1"), "100755 gone.sh\n100755 run.sh\n");
    }

    #[test]
    fn without_a_repository_nothing_happens_and_failures_are_reported() {
        let user_repository = UserRepository { temp_dir: tempfile::tempdir().unwrap() };
        let project = user_repository.open_project("");
        let landing = [file_change("a.md", Some("1\n"), Some("2\n"))];
        record_landing(&project, &test_run(), &landing_key(1), &landing).unwrap();
        delete_landings(&project, &[test_run()]).unwrap();
        assert_eq!(landings_log_command(&project, &test_run()), None);

        let user_repository = UserRepository::init_repository();
        let project = user_repository.open_project("");
        for odd in ["a..b", "a b", "x\ncommit refs/heads/main", "../heads/main", "-p", ""] {
            record_landing(&project, &RunId::new(odd), &landing_key(1), &landing).unwrap();
        }
        assert!(!project.root().join(REPOSITORY_PATH).exists());
        // A link could lead to the user's own repository.
        std::os::unix::fs::symlink("../.git", project.root().join(REPOSITORY_PATH)).unwrap();
        let before = user_repository.git_dir_contents();
        assert!(record_landing(&project, &test_run(), &landing_key(1), &landing).is_err());
        assert_eq!(user_repository.run_git(&["for-each-ref"]), "");
        assert_eq!(user_repository.git_dir_contents(), before, "nothing is written through a link");
        fs::remove_file(project.root().join(REPOSITORY_PATH)).unwrap();
        record_landing(&project, &test_run(), &landing_key(1), &landing).unwrap();
        user_repository.write_file(".tribunal/landings.git/refs/heads/plan-aaaa.lock", "");
        assert!(record_landing(&project, &test_run(), &landing_key(2), &landing).is_err());
        assert_eq!(user_repository.commit_subjects().len(), 2, "nor does a failure leave anything");
    }

    #[test]
    fn a_repository_that_came_with_a_clone_is_not_used() {
        let user_repository = UserRepository::init_repository();
        let project = user_repository.open_project("");
        let landing = [file_change("a.md", Some("1\n"), Some("2\n"))];
        record_landing(&project, &test_run(), &landing_key(1), &landing).unwrap();
        let config_path = project.root().join(REPOSITORY_PATH).join("config");
        let own_config = fs::read_to_string(&config_path).unwrap();
        for foreign_lines in [
            "\tpager = touch owned\n",
            "\tfilemode = true\\\n\tpager = touch owned\n",
            "[gc]\n\trecentObjectsHook = touch owned\n",
            "[core] pager = touch owned\n",
            "[include]\n\tpath = ../evil\n",
        ] {
            fs::write(&config_path, format!("{own_config}{foreign_lines}")).unwrap();
            assert!(record_landing(&project, &test_run(), &landing_key(2), &landing).is_err(), "{foreign_lines:?}");
            assert_eq!(landings_log_command(&project, &test_run()), None, "{foreign_lines:?}");
        }
        fs::write(&config_path, own_config).unwrap();
        assert!(landings_log_command(&project, &test_run()).is_some());
    }

    #[test]
    fn landings_of_other_runs_stay_when_a_run_is_removed() {
        let user_repository = UserRepository::init_repository();
        let project = user_repository.open_project("");
        let other_run = RunId::new("other-bbbb");
        let landing = [file_change("a.md", Some("1\n"), Some("2\n"))];
        record_landing(&project, &test_run(), &landing_key(1), &landing).unwrap();
        record_landing(&project, &other_run, &landing_key(1), &landing).unwrap();
        delete_landings(&project, std::slice::from_ref(&other_run)).unwrap();
        assert_eq!(landings_log_command(&project, &other_run), None);
        let shown_command = landings_log_command(&project, &test_run()).unwrap();
        assert_eq!(shown_command, "git --git-dir=.tribunal/landings.git log -p plan-aaaa");
        // The command works as it is printed, from the project's root.
        let words: Vec<&str> = shown_command.split(' ').skip(1).collect();
        assert!(user_repository.run_git(&words).contains("+2"));
        assert_eq!(user_repository.run_git(&["log", "--all", "--format=%s"]), "");
    }
}
