//! What git is given of a run's landings: a chain of commits on `refs/tribunal/RUN`, to look at and to take from with plain git.
//!
//! Before each landing that finds its files otherwise than the chain has them stands a commit with the files as they were; so
//! a landing's own commit has what the landing did, and nothing else. The commits hold only files that landings touched.
//!
//! Best effort, and never the truth: that is the checkpoints. Neither HEAD, branches, index, stash nor reflogs are touched,
//! and no hook runs. What git ignores is not given to it.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Seek, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use tribunal_core::{
    effect::Effect,
    event::Event,
    ids::{FindingId, RunId},
};
use tribunal_store::Store;

use crate::{
    checkpoints::{At, Change, Checkpoints},
    merging::c_quoted,
    project::Project,
    undo::listed,
};

/// Who the commits are by.
const COMMITTER: &str = "Tribunal <tribunal@localhost>";
/// Which landing a commit is.
const TRAILER: &str = "Tribunal-Landing: ";

/// Gives a landing to git, once; where there is no git, nothing happens.
pub(crate) fn record(project: &Project, run: &RunId, at: &At, changes: &[Change]) -> io::Result<()> {
    let Some(reference) = name(run) else { return Ok(()) };
    let Some(prefix) = prefix(project)? else { return Ok(()) };
    let changes = given(project, &net(changes))?;
    let chain = Chain::read(project, &reference, &prefix, &changes)?;
    if changes.is_empty() || chain.has(at) {
        return Ok(());
    }
    let modes = Checkpoints::of(project, run).modes(at).unwrap_or_default();
    let commits = Commits { project, reference: &reference, prefix: &prefix, modes };
    let mut stream = Vec::new();
    writeln!(stream, "feature done")?;
    let before = changes.iter().filter(|change| chain.files.get(&change.path) != Some(&change.before));
    let before: Vec<Side> = before.map(|change| (change.path.as_str(), change.before.as_deref())).collect();
    // Only the first of this stream is told what it comes after; the next one comes after it.
    let mut from = chain.exists.then_some(reference.as_str());
    if !chain.exists || !before.is_empty() {
        commits.write(&mut stream, &format!("The files before {}\n", at.by), from.take(), &before)?;
    }
    let after: Vec<Side> =
        changes.iter().map(|change| (change.path.as_str(), change.after.as_deref())).collect();
    commits.write(&mut stream, &message(project, run, at), from, &after)?;
    writeln!(stream, "done")?;
    let mut import = git(project.root());
    // Git keeps no reflog of such a reference unless it was told to keep them of all.
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

/// The reference goes with its run.
pub(crate) fn forget(project: &Project, run: &RunId) -> io::Result<()> {
    match reference(project, run) {
        Some(reference) => asked(git(project.root()).args(["update-ref", "-d", &reference])).map(|_| ()),
        None => Ok(()),
    }
}

/// What the run's landings can be seen under, if git was given any.
pub fn reference(project: &Project, run: &RunId) -> Option<String> {
    let reference = name(run)?;
    let found = asked(git(project.root()).args(["rev-parse", "--verify", "--quiet", &reference]));
    found.is_ok().then_some(reference)
}

/// A file's path, and how it reads. None: it is not there.
type Side<'a> = (&'a str, Option<&'a str>);

/// What several tries came to, file by file.
fn net(changes: &[Change]) -> Vec<Change> {
    let mut net: BTreeMap<&str, Change> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.before != change.after) {
        let known = net.entry(&change.path).or_insert_with(|| change.clone());
        known.after.clone_from(&change.after);
    }
    net.into_values().collect()
}

/// None: no reference can be called so.
fn name(run: &RunId) -> Option<String> {
    let run = run.as_str();
    let fits = !run.is_empty() && run.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    fits.then(|| format!("refs/tribunal/{run}"))
}

/// A commit in the making knows all of this.
struct Commits<'a> {
    project: &'a Project,
    reference: &'a str,
    prefix: &'a str,
    /// Of files that the landing deleted.
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
    /// What its last commit says.
    message: String,
    /// Of the files of a landing, those that are in it or known not to be.
    files: BTreeMap<String, Option<String>>,
}

impl Chain {
    fn read(project: &Project, reference: &str, prefix: &str, changes: &[Change]) -> io::Result<Chain> {
        let mut wanted = format!("{reference}\n");
        // A name of two lines cannot be asked for.
        let known: Vec<&Change> = changes.iter().filter(|change| !change.path.contains('\n')).collect();
        for change in &known {
            wanted.push_str(&format!("{reference}:{prefix}{}\n", change.path));
        }
        let mut command = git(project.root());
        command.args(["cat-file", "--batch"]);
        let output = fed(project, command, wanted.as_bytes())?;
        let mut rest = output.stdout.as_slice();
        let mut chain = Chain::default();
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

/// The next object of `cat-file --batch`: a line with its size, then its bytes. None: it is missing, or is none.
fn object<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, behind) = (&rest[..end], &rest[end + 1..]);
    *rest = behind;
    let line = std::str::from_utf8(line).ok()?;
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

/// What the landing's fixer was given.
fn findings(project: &Project, run: &RunId, at: &At) -> Vec<FindingId> {
    let store = Store::open_read_only(&project.home());
    let entries = store.and_then(|store| store.entries_to_go_on(run)).unwrap_or_default();
    let task = entries.iter().find_map(|entry| match &entry.event {
        Event::EffectStarted { key, stretch, effect: Effect::Ask { task }, .. } => {
            (*key == at.by && *stretch == at.stretch).then_some(task)
        }
        _ => None,
    });
    task.map(|task| task.brief.assigned.iter().map(|it| it.id).collect()).unwrap_or_default()
}

/// Where the project is in its repository: empty, or `folder/`. None: it is in none.
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

/// What git may have: what it does not ignore.
fn given(project: &Project, changes: &[Change]) -> io::Result<Vec<Change>> {
    let mut command = git(project.root());
    command.args(["check-ignore", "--stdin", "-z"]);
    let names: Vec<u8> = changes.iter().flat_map(|change| [change.path.as_bytes(), b"\0"].concat()).collect();
    let output = run(project, command, &names)?;
    // Exit code 1: it ignores none of them.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(failed(&output));
    }
    let ignored: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    Ok(changes.iter().filter(|change| !ignored.contains(&change.path.as_bytes())).cloned().collect())
}

/// As `fast-import` wants it: between quotes wherever it could be taken for something else.
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

/// From a file without a name, so that neither side waits for the other.
fn run(project: &Project, mut command: Command, bytes: &[u8]) -> io::Result<Output> {
    let mut input = tempfile::tempfile_in(project.home())?;
    input.write_all(bytes)?;
    input.rewind()?;
    command.stdin(input).output()
}

fn failed(output: &Output) -> io::Error {
    io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_string())
}
