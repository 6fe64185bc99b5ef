//! Records landings in git: a chain of commits on `refs/tribunal/RUN`, for use with plain git.
//!
//! If a landing finds its files in another state than the chain has them, a commit with that state comes first, so that the
//! landing's own commit has exactly what the landing did. The commits contain only files that landings touched.
//!
//! This is best effort and never the source of truth: that is the checkpoints. Neither HEAD, branches, index, stash nor reflogs
//! are touched, and no hook runs. Ignored files are left out.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Seek, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use tribunal_core::{
    effect::{AskAgent, Effect},
    event::Event,
    ids::{FindingId, RunId},
};
use tribunal_store::Store;

use crate::{
    checkpoints::{At, Change, Checkpoints},
    merging::c_quoted,
    project::Project,
};

/// The author of the commits.
const COMMITTER: &str = "Tribunal <tribunal@localhost>";
/// The trailer that names the landing of a commit.
const TRAILER: &str = "Tribunal-Landing: ";

/// Records a landing in git, once. Does nothing where there is no git.
pub(crate) fn record(project: &Project, run: &RunId, at: &At, changes: &[Change]) -> io::Result<()> {
    let Some(reference) = name(run) else { return Ok(()) };
    let Some(prefix) = prefix(project)? else { return Ok(()) };
    let changes = given(project, &net(changes))?;
    let chain = Chain::read(project, &reference, &prefix, &changes)?;
    // The last commit names its landing, so a repeated call after a crash adds nothing.
    if changes.is_empty() || chain.has(at) {
        return Ok(());
    }
    let modes = Checkpoints::of(project, run).modes(at).unwrap_or_default();
    let commits = Commits { project, reference: &reference, prefix: &prefix, modes };
    let mut stream = Vec::new();
    writeln!(stream, "feature done")?;
    // Only files whose state differs from the chain need the extra commit.
    let before = changes.iter().filter(|change| chain.files.get(&change.path) != Some(&change.before));
    let before: Vec<Side> = before.map(|change| (change.path.as_str(), change.before.as_deref())).collect();
    // Only the first commit of the stream names its parent; the next one follows it.
    let mut from = chain.exists.then_some(reference.as_str());
    if !chain.exists || !before.is_empty() {
        commits.write(&mut stream, &format!("The files before {}\n", at.by), from.take(), &before)?;
    }
    let after: Vec<Side> =
        changes.iter().map(|change| (change.path.as_str(), change.after.as_deref())).collect();
    commits.write(&mut stream, &message(project, run, at), from, &after)?;
    writeln!(stream, "done")?;
    let mut import = git(project.root());
    // Git writes no reflog for such a reference, unless it was configured to write one for all.
    import.args([
        "-c",
        "core.logAllRefUpdates=false",
        "fast-import",
        "--quiet",
        "--done",
        "--date-format=now",
    ]);
    fed(project, import, &stream).map(|_| ())
}

/// Deletes the reference of a run that is removed.
pub(crate) fn forget(project: &Project, run: &RunId) -> io::Result<()> {
    match reference(project, run) {
        Some(reference) => asked(git(project.root()).args(["update-ref", "-d", &reference])).map(|_| ()),
        None => Ok(()),
    }
}

/// Joins finding ids: `F1, F4`.
pub fn listed(findings: &[FindingId]) -> String {
    findings.iter().map(FindingId::to_string).collect::<Vec<String>>().join(", ")
}

/// Returns the reference with the run's landings, if git has one.
pub fn reference(project: &Project, run: &RunId) -> Option<String> {
    let reference = name(run)?;
    let found = asked(git(project.root()).args(["rev-parse", "--verify", "--quiet", &reference]));
    found.is_ok().then_some(reference)
}

/// A file's path and its text; `None` if it does not exist.
type Side<'a> = (&'a str, Option<&'a str>);

/// Combines several attempts into one change per file.
fn net(changes: &[Change]) -> Vec<Change> {
    let mut net: BTreeMap<&str, Change> = BTreeMap::new();
    // The first attempt has the original text, the last one what landed.
    for change in changes.iter().filter(|change| change.before != change.after) {
        let known = net.entry(&change.path).or_insert_with(|| change.clone());
        known.after.clone_from(&change.after);
    }
    net.into_values().collect()
}

/// Returns the name of the reference, or `None` if the run's name cannot be part of one.
fn name(run: &RunId) -> Option<String> {
    let run = run.as_str();
    let fits = !run.is_empty() && run.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    fits.then(|| format!("refs/tribunal/{run}"))
}

/// Everything that is needed to write a commit.
struct Commits<'a> {
    project: &'a Project,
    reference: &'a str,
    prefix: &'a str,
    /// The permissions of files that the landing deleted.
    modes: BTreeMap<String, u32>,
}

impl Commits<'_> {
    fn write(
        &self,
        stream: &mut Vec<u8>,
        message: &str,
        from: Option<&str>,
        files: &[Side],
    ) -> io::Result<()> {
        let reference = self.reference;
        writeln!(stream, "commit {reference}\ncommitter {COMMITTER} now")?;
        writeln!(stream, "data {}\n{message}", message.len())?;
        // `^0` makes fast-import resolve the existing reference instead of the commit it is about to create.
        if let Some(from) = from {
            writeln!(stream, "from {from}^0")?;
        }
        for (path, text) in files {
            let quoted = quoted(&format!("{}{path}", self.prefix));
            match text {
                Some(text) => {
                    writeln!(stream, "M {} inline {quoted}\ndata {}", self.mode(path), text.len())?;
                    stream.extend_from_slice(text.as_bytes());
                    stream.push(b'\n');
                }
                None => writeln!(stream, "D {quoted}")?,
            }
        }
        writeln!(stream)
    }

    fn mode(&self, path: &str) -> &'static str {
        let now = fs::metadata(self.project.root().join(path)).map(|meta| meta.permissions().mode());
        let mode = now.ok().or_else(|| self.modes.get(path).copied()).unwrap_or_default();
        if mode & 0o100 == 0 { "100644" } else { "100755" }
    }
}

/// The chain as it is so far.
#[derive(Default)]
struct Chain {
    exists: bool,
    /// The message of its last commit.
    message: String,
    /// Those files of a landing that are in the chain, or known not to be.
    files: BTreeMap<String, Option<String>>,
}

impl Chain {
    fn read(project: &Project, reference: &str, prefix: &str, changes: &[Change]) -> io::Result<Chain> {
        let mut wanted = format!("{reference}\n");
        // The query has one name per line, so a path with a line break cannot be asked for.
        let known: Vec<&Change> = changes.iter().filter(|change| !change.path.contains('\n')).collect();
        for change in &known {
            wanted.push_str(&format!("{reference}:{prefix}{}\n", change.path));
        }
        let mut command = git(project.root());
        command.args(["cat-file", "--batch"]);
        let output = fed(project, command, wanted.as_bytes())?;
        let mut rest = output.stdout.as_slice();
        let mut chain = Chain::default();
        // A missing reference answers the first query with "missing": the chain does not exist yet.
        let Some(commit) = object(&mut rest) else { return Ok(chain) };
        chain.exists = true;
        chain.message = String::from_utf8_lossy(commit).into_owned();
        for change in known {
            let text = object(&mut rest).map(|text| String::from_utf8_lossy(text).into_owned());
            chain.files.insert(change.path.clone(), text);
        }
        Ok(chain)
    }

    fn has(&self, at: &At) -> bool {
        let trailer = trailer(at);
        self.message.lines().any(|line| line == trailer)
    }
}

/// Takes the next object from the output of `cat-file --batch`: a line with its size, then its bytes. `None` if it is missing.
fn object<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, behind) = (&rest[..end], &rest[end + 1..]);
    *rest = behind;
    let line = std::str::from_utf8(line).ok()?;
    // The header is read from its end, since the queried name before it may contain spaces.
    let mut words = line.rsplit(' ');
    let size: usize = words.next()?.parse().ok()?;
    let kind = words.next()?;
    let bytes = behind.get(..size)?;
    *rest = behind.get(size + 1..)?;
    (kind == "blob" || kind == "commit").then_some(bytes)
}

fn trailer(at: &At) -> String {
    format!("{TRAILER}{} {}", at.stretch, at.by)
}

fn message(project: &Project, run: &RunId, at: &At) -> String {
    let findings = findings(project, run, at);
    let meant = if findings.is_empty() { String::new() } else { format!("For {}.\n\n", listed(&findings)) };
    format!("Landing {}\n\n{meant}{}\n", at.by, trailer(at))
}

/// Returns the findings that the landing's fixer was assigned.
fn findings(project: &Project, run: &RunId, at: &At) -> Vec<FindingId> {
    let store = Store::open_read_only(&project.home());
    let entries = store.and_then(|store| store.entries_to_go_on(run)).unwrap_or_default();
    let task = entries.iter().find_map(|entry| match &entry.event {
        Event::EffectStarted { key, stretch, effect: Effect::Ask(AskAgent { task }), .. } => {
            (*key == at.by && *stretch == at.stretch).then_some(task)
        }
        _ => None,
    });
    task.map(|task| task.brief.assigned.iter().map(|it| it.id).collect()).unwrap_or_default()
}

/// Returns the project's path within its repository: empty, or `folder/`. `None` if there is no repository.
fn prefix(project: &Project) -> io::Result<Option<String>> {
    let output = git(project.root()).args(["rev-parse", "--show-prefix"]).output();
    match output {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8(output.stdout).map_err(io::Error::other)?;
            Ok(Some(said.strip_suffix('\n').unwrap_or(&said).to_string()))
        }
        Ok(_) => Ok(None),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Removes changes of files that git ignores.
fn given(project: &Project, changes: &[Change]) -> io::Result<Vec<Change>> {
    let mut command = git(project.root());
    command.args(["check-ignore", "--stdin", "-z"]);
    // The prefix makes sure that git takes the name literally, even if it starts with a colon.
    let name = |change: &Change| format!("./{}", change.path);
    let names: String = changes.iter().map(|change| name(change) + "\0").collect();
    let output = run(project, command, names.as_bytes())?;
    // Exit code 1 means that git ignores none of them.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(failed(&output));
    }
    let ignored: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    Ok(changes.iter().filter(|change| !ignored.contains(&name(change).as_bytes())).cloned().collect())
}

/// Quotes a path for `fast-import` wherever it could be misread.
fn quoted(path: &str) -> String {
    let quoted = c_quoted(path);
    if quoted.starts_with('"') || !path.starts_with(' ') { quoted } else { format!("\"{quoted}\"") }
}

fn git(root: &Path) -> Command {
    let mut git = crate::git::git(root);
    git.stderr(Stdio::piped());
    git
}

fn asked(command: &mut Command) -> io::Result<Output> {
    let output = command.output()?;
    if output.status.success() { Ok(output) } else { Err(failed(&output)) }
}

fn fed(project: &Project, command: Command, bytes: &[u8]) -> io::Result<Output> {
    let output = run(project, command, bytes)?;
    if output.status.success() { Ok(output) } else { Err(failed(&output)) }
}

/// Runs git with input from an unnamed file, so that neither side waits for the other.
fn run(project: &Project, mut command: Command, bytes: &[u8]) -> io::Result<Output> {
    let mut input = tempfile::tempfile_in(project.home())?;
    input.write_all(bytes)?;
    input.rewind()?;
    command.stdin(input).output()
}

fn failed(output: &Output) -> io::Error {
    io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_string())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tribunal_core::ids::Key;

    use super::*;

    /// A user's repository with one commit, something staged, something stashed, and hooks that leave a trace when they run.
    struct Person {
        folder: tempfile::TempDir,
    }

    impl Person {
        fn new() -> Person {
            let person = Person { folder: tempfile::tempdir().unwrap() };
            person.git(&["init", "-q", "-b", "main"]);
            for (name, value) in
                [("user.name", "P"), ("user.email", "p@x"), ("core.logAllRefUpdates", "always")]
            {
                person.git(&["config", name, value]);
            }
            person
        }

        fn busy() -> Person {
            let person = Person::new();
            person.write("a.md", "1\n");
            person.git(&["add", "."]);
            person.git(&["commit", "-qm", "mine"]);
            person.write("a.md", "stashed\n");
            person.git(&["stash"]);
            person.write("staged.md", "staged\n");
            person.git(&["add", "staged.md"]);
            for hook in ["reference-transaction", "post-commit", "post-update", "pre-auto-gc"] {
                let path = person.root().join(".git/hooks").join(hook);
                fs::write(&path, format!("#!/bin/sh\ntouch {:?}\n", person.root().join("hooked"))).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            person
        }

        fn root(&self) -> PathBuf {
            self.folder.path().join("repository")
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn git(&self, args: &[&str]) -> String {
            self.git_in(&self.root(), args)
        }

        fn git_in(&self, folder: &Path, args: &[&str]) -> String {
            fs::create_dir_all(self.root()).unwrap();
            let mut git = Command::new("git");
            git.args(args).current_dir(folder).env("HOME", self.folder.path());
            let output = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        }

        fn project(&self, folder: &str) -> Project {
            let project = Project::at(self.root().join(folder));
            project.prepare_home().unwrap();
            project
        }

        /// Returns everything in the git directory, except for objects and our own refs.
        fn repository(&self) -> BTreeMap<PathBuf, Vec<u8>> {
            let (mut found, mut folders) = (BTreeMap::new(), vec![self.root().join(".git")]);
            while let Some(folder) = folders.pop() {
                for item in fs::read_dir(folder).unwrap().flatten() {
                    let path = item.path();
                    let kept = ["objects", "tribunal"].iter().all(|ours| item.file_name() != *ours);
                    match (kept, path.is_dir()) {
                        (false, _) => {}
                        (true, true) => folders.push(path),
                        (true, false) => drop(found.insert(path.clone(), fs::read(path).unwrap())),
                    }
                }
            }
            found
        }

        fn subjects(&self) -> Vec<String> {
            let log = self.git(&["log", "--format=%s", "refs/tribunal/plan-aaaa"]);
            log.lines().map(String::from).collect()
        }
    }

    fn run() -> RunId {
        RunId::new("plan-aaaa")
    }

    fn at(number: u32) -> At {
        At { stretch: 2, by: Key::new(format!("round-1/fix-1/fix/{number}")) }
    }

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> Change {
        Change { path: path.into(), before: before.map(String::from), after: after.map(String::from) }
    }

    #[test]
    fn every_landing_is_a_commit_of_what_it_did_and_nothing_else() {
        let person = Person::busy();
        let project = person.project("");
        let first = [
            change("a.md", Some("1\n"), Some("2\n")),
            change("new.rs", None, Some("new\n")),
            change("src/old.rs", Some("old\n"), None),
        ];
        record(&project, &run(), &at(1), &first).unwrap();
        // The user edits a file before the next landing, which also touches a file that no landing has touched yet.
        let second =
            [change("a.md", Some("2\nmine\n"), Some("3\nmine\n")), change("b.md", Some("b\n"), Some("B\n"))];
        record(&project, &run(), &at(2), &second).unwrap();
        let third = [change("b.md", Some("B\n"), Some("C\n"))];
        record(&project, &run(), &at(3), &third).unwrap();
        record(&project, &run(), &at(3), &third).unwrap();
        assert_eq!(
            person.subjects(),
            [
                "Landing round-1/fix-1/fix/3",
                "Landing round-1/fix-1/fix/2",
                "The files before round-1/fix-1/fix/2",
                "Landing round-1/fix-1/fix/1",
                "The files before round-1/fix-1/fix/1",
            ]
        );
        let shown = |number: u32| {
            let commit = format!("refs/tribunal/plan-aaaa~{number}");
            person.git(&["show", "--format=", "--no-renames", "--unified=0", "--no-prefix", &commit])
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
        let of = person.git(&[
            "log",
            "-1",
            "--format=%an <%ae>%n%cn <%ce>%n%(trailers)",
            "refs/tribunal/plan-aaaa",
        ]);
        assert_eq!(of, format!("{COMMITTER}\n{COMMITTER}\nTribunal-Landing: 2 round-1/fix-1/fix/3\n\n"));
    }

    #[test]
    fn what_is_the_person_s_is_untouched_and_no_hook_runs() {
        let person = Person::busy();
        let project = person.project("");
        let before = (person.repository(), person.git(&["stash", "list"]));
        fs::remove_file(person.root().join("hooked")).unwrap_or_default();
        for number in 1..3 {
            let change = change("a.md", Some("1\n"), Some("2\n"));
            record(&project, &run(), &at(number), &[change]).unwrap();
        }
        assert!(reference(&project, &run()).is_some());
        forget(&project, &run()).unwrap();
        assert_eq!(reference(&project, &run()), None);
        assert_eq!(person.repository(), before.0);
        assert!(!person.root().join("hooked").exists(), "a hook ran");
        assert_eq!(person.git(&["stash", "list"]), before.1);
    }

    #[test]
    fn it_works_without_a_commit_without_a_branch_in_another_work_tree_and_below_the_top() {
        let landing = [change("docs/a.md", Some("1\n"), Some("2\n"))];
        let text =
            |person: &Person, path: &str| person.git(&["show", &format!("refs/tribunal/plan-aaaa:{path}")]);
        let unborn = Person::new();
        record(&unborn.project(""), &run(), &at(1), &landing).unwrap();
        assert_eq!(text(&unborn, "docs/a.md"), "2\n");

        let detached = Person::busy();
        detached.git(&["checkout", "-q", "--detach"]);
        record(&detached.project(""), &run(), &at(1), &landing).unwrap();
        assert_eq!(text(&detached, "docs/a.md"), "2\n");

        let linked = Person::busy();
        let elsewhere = linked.folder.path().join("elsewhere");
        linked.git(&["worktree", "add", "-q", elsewhere.to_str().unwrap()]);
        let project = Project::at(&elsewhere);
        project.prepare_home().unwrap();
        record(&project, &run(), &at(1), &landing).unwrap();
        assert_eq!(text(&linked, "docs/a.md"), "2\n", "one repository has one such reference");

        let below = Person::busy();
        let project = below.project("apps/web \"2\"");
        record(&project, &run(), &at(1), &landing).unwrap();
        record(&project, &run(), &at(2), &[change("docs/a.md", Some("2\n"), Some("3\n"))]).unwrap();
        assert_eq!(text(&below, "apps/web \"2\"/docs/a.md"), "3\n");
        assert_eq!(below.subjects().len(), 3, "the second landing found the file as the first one left it");
    }

    #[test]
    fn odd_names_and_odd_texts_arrive_as_they_are() {
        let person = Person::new();
        let project = person.project("");
        let names =
            ["a b", " lead", "q\"uo\\te", "two\nlines", "tab\t", "ä", "-dash", ":(top)x", "*", "$x", "x "];
        for text in
            ["", "\n", "no end", "a\r\nb\r\n", "done\nfeature done\ncommit refs/heads/main\n", "\u{feff}\0"]
        {
            forget(&project, &run()).unwrap();
            let all: Vec<Change> = names.iter().map(|name| change(name, None, Some(text))).collect();
            record(&project, &run(), &at(1), &all).unwrap();
            let listed = person.git(&["ls-tree", "-r", "-z", "--name-only", "refs/tribunal/plan-aaaa"]);
            let mut listed: Vec<&str> = listed.split_terminator('\0').collect();
            let mut expected = names.to_vec();
            listed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(listed, expected);
            for name in names {
                assert_eq!(
                    person.git(&["show", &format!("refs/tribunal/plan-aaaa:{name}")]),
                    text,
                    "{name:?}"
                );
            }
        }
    }

    #[test]
    fn what_git_ignores_is_not_given_to_it() {
        let person = Person::new();
        person.write(".gitignore", "secret*\n");
        let project = person.project("");
        let secret = change("secret.env", Some("old\n"), Some("new\n"));
        record(&project, &run(), &at(1), std::slice::from_ref(&secret)).unwrap();
        assert_eq!(reference(&project, &run()), None);
        record(&project, &run(), &at(2), &[secret, change("a.md", Some("1\n"), Some("2\n"))]).unwrap();
        let listed = person.git(&["ls-tree", "-r", "--name-only", "refs/tribunal/plan-aaaa"]);
        assert_eq!(listed, "a.md\n");
    }

    #[test]
    fn a_file_that_runs_is_kept_as_one() {
        let person = Person::new();
        let project = person.project("");
        for name in ["run.sh", "gone.sh"] {
            person.write(name, "1\n");
            fs::set_permissions(person.root().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let all = [change("gone.sh", Some("1\n"), None), change("run.sh", Some("1\n"), Some("2\n"))];
        Checkpoints::of(&project, &run()).keep(&at(1), &all).unwrap();
        fs::remove_file(person.root().join("gone.sh")).unwrap();
        record(&project, &run(), &at(1), &all).unwrap();
        let modes = |commit: &str| person.git(&["ls-tree", "--format=%(objectmode) %(path)", commit]);
        assert_eq!(modes("refs/tribunal/plan-aaaa"), "100755 run.sh\n");
        assert_eq!(modes("refs/tribunal/plan-aaaa~1"), "100755 gone.sh\n100755 run.sh\n");
    }

    #[test]
    fn where_there_is_no_repository_nothing_happens_and_what_cannot_be_done_is_said() {
        let person = Person { folder: tempfile::tempdir().unwrap() };
        let project = person.project("");
        let landing = [change("a.md", Some("1\n"), Some("2\n"))];
        record(&project, &run(), &at(1), &landing).unwrap();
        forget(&project, &run()).unwrap();
        assert_eq!(reference(&project, &run()), None);

        let person = Person::new();
        let project = person.project("");
        for odd in ["a..b", "a b", "x\ncommit refs/heads/main", "../heads/main", ""] {
            record(&project, &RunId::new(odd), &at(1), &landing).unwrap();
        }
        assert_eq!(person.git(&["for-each-ref"]), "");
        person.write(".git/refs/tribunal/plan-aaaa.lock", "");
        let before = person.repository();
        assert!(record(&project, &run(), &at(1), &landing).is_err());
        assert_eq!(person.git(&["for-each-ref"]), "");
        assert_eq!(person.repository(), before, "nor does a failure leave anything");
    }
}
