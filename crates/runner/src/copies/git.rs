//! The git queries of workspaces. [`start_git`] is the only place that starts git for them; `listing` and `stored_tree`
//! interpret the output.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
};

use crate::git::git;

/// One record of `ls-files`.
pub(super) struct Listed<'a> {
    pub path: &'a [u8],
    pub tracked: bool,
    /// Whether the path is the commit of another repository.
    pub submodule: bool,
}

/// One record of `ls-tree`.
pub(super) struct Stored {
    pub mode: String,
    pub object: String,
    pub size: u64,
    pub path: Vec<u8>,
}

/// Where a repository keeps its data.
pub(super) struct Place {
    /// The root of the work tree.
    pub top: PathBuf,
    /// The directory with HEAD and the index.
    pub own: PathBuf,
    /// The directory with objects, refs and configuration; it differs from `git_dir` in a linked work tree.
    pub common: PathBuf,
    pub format: String,
    pub head: Head,
}

pub(super) enum Head {
    Branch { name: String, commit: String },
    Detached { commit: String },
    Unborn { name: String },
}

/// Lists what git would track: committed, staged and new files, without ignored ones. The error says why git cannot tell.
pub(super) fn list(root: &Path) -> Result<Vec<u8>, String> {
    ask(root, &["ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard"])
}

pub(super) fn listed(output: &[u8]) -> impl Iterator<Item = Listed<'_>> {
    output.split(|byte| *byte == 0).filter_map(|line| match line.strip_prefix(b"? ") {
        Some(path) => Some(Listed { path, tracked: false, submodule: false }),
        // The format is: H 100644 OBJECT 0<tab>path
        None => {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let submodule = line.get(2..8) == Some(b"160000");
            Some(Listed { path: &line[tab + 1..], tracked: true, submodule })
        }
    })
}

/// Reads the layout of a repository. Returns `None` if it is unusual.
pub(super) fn place(root: &Path) -> Option<Place> {
    let mut asked = start(root, &PLACE, Stdio::null()).ok()?;
    let mut text = String::new();
    let read = asked.stdout.take()?.read_to_string(&mut text);
    asked.wait().ok()?;
    read.ok()?;
    let lines: Vec<&str> = text.lines().collect();
    // Git fails at HEAD only after it has printed the other lines: this is a branch without a commit.
    let (&[top, own, common, format, first], rest) = lines.split_first_chunk()?;
    let own = PathBuf::from(own);
    let is_commit = matches!(first.len(), 40 | 64) && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    let head = match (is_commit, rest) {
        (true, ["HEAD"]) => Head::Detached { commit: first.to_string() },
        (true, [name]) => Head::Branch { name: branch(name)?, commit: first.to_string() },
        // The branch name is not in the output then, so it is read from the HEAD file itself.
        (false, _) => {
            let text = fs::read_to_string(own.join("HEAD")).ok()?;
            Head::Unborn { name: branch(text.strip_prefix("ref: ")?.trim_end())? }
        }
        _ => return None,
    };
    Some(Place { top: top.into(), own, common: common.into(), format: format.to_string(), head })
}

const PLACE: [&str; 9] = [
    "rev-parse",
    "--path-format=absolute",
    "--show-toplevel",
    "--git-dir",
    "--git-common-dir",
    "--show-object-format",
    "HEAD",
    "--symbolic-full-name",
    "HEAD",
];

/// Accepts a branch name only if it can be written as a file of its own.
fn branch(name: &str) -> Option<String> {
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let fits = name.starts_with("refs/heads/") && name.split('/').all(part);
    fits.then(|| name.to_string())
}

/// Lists everything in a commit or tree below the root.
pub(super) fn stored(root: &Path, tree: &str) -> Result<Vec<Stored>, String> {
    // A name that starts with a dash would be taken for an option.
    if tree.starts_with('-') || tree.is_empty() {
        return Err(format!("`{tree}` is no commit"));
    }
    let output = ask(root, &["ls-tree", "-r", "-z", "-l", tree])?;
    let lines = output.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines
        .map(|line| stored_line(line).ok_or_else(|| "git said what nobody understands".to_string()))
        .collect()
}

/// Returns the object ids of those paths that are files in a commit or tree.
pub(crate) fn blobs(root: &Path, tree: &str, paths: &[String]) -> Result<BTreeMap<String, String>, String> {
    if tree.starts_with('-') || tree.is_empty() {
        return Err(format!("`{tree}` is no commit"));
    }
    let mut args = vec!["ls-tree", "-z", "-l", tree, "--"];
    args.extend(paths.iter().map(String::as_str));
    let output = ask(root, &args)?;
    let lines = output.split(|byte| *byte == 0).filter_map(stored_line);
    // Modes that start with 100 are ordinary files; links and submodules have others.
    let files = lines.filter(|stored| stored.mode.starts_with("100"));
    Ok(files.filter_map(|stored| Some((String::from_utf8(stored.path).ok()?, stored.object))).collect())
}

/// Parses a line of the form `100644 blob OBJECT SIZE<tab>path`.
fn stored_line(line: &[u8]) -> Option<Stored> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&line[..tab]).ok()?.split_ascii_whitespace();
    let (mode, _, object) = (words.next()?.to_string(), words.next()?, words.next()?.to_string());
    let size = words.next()?.parse().unwrap_or(0);
    Some(Stored { mode, object, size, path: line[tab + 1..].to_vec() })
}

/// Passes the raw bytes of each object to `consume`, in order.
pub(crate) fn objects(
    root: &Path,
    wanted: &[&str],
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut asked = start(root, &["cat-file", "--batch", "--buffer"], Stdio::piped())?;
    let (Some(mut to), Some(from)) = (asked.stdin.take(), asked.stdout.take()) else {
        return Err(io::Error::other("git has no streams"));
    };
    let names = wanted.iter().flat_map(|object| [object.as_bytes(), b"\n"]).collect::<Vec<_>>().concat();
    let taken = std::thread::scope(|scope| {
        // The names are written on a separate thread: git answers while it reads, and either pipe may fill up.
        scope.spawn(move || to.write_all(&names));
        let mut from = BufReader::new(from);
        let mut bytes = Vec::new();
        wanted.iter().try_for_each(|object| {
            next_object(&mut from, object, &mut bytes)?;
            take(&bytes)
        })
        // The read end closes here, so that git does not wait for a reader of its remaining output.
    });
    asked.wait()?;
    taken
}

/// Reads one answer: `OBJECT blob SIZE`, the bytes, a line end.
fn next_object(from: &mut BufReader<ChildStdout>, object: &str, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut header = String::new();
    from.read_line(&mut header)?;
    let size =
        header.strip_prefix(object).and_then(|rest| rest.strip_prefix(" blob ")?.trim_end().parse().ok());
    let size: usize =
        size.ok_or_else(|| io::Error::other(format!("git does not have the object {object}")))?;
    bytes.clear();
    from.by_ref().take(size as u64).read_to_end(bytes)?;
    let mut end = [0];
    from.read_exact(&mut end)?;
    if bytes.len() == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Runs a query and returns its output; the error is git's own message.
fn ask(root: &Path, args: &[&str]) -> Result<Vec<u8>, String> {
    let output = start(root, args, Stdio::null())
        .and_then(Child::wait_with_output)
        .map_err(|cause| format!("git cannot be started: {cause}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("git did not say why");
    Err(why.trim_start_matches("fatal: ").to_string())
}

fn start(root: &Path, args: &[&str], stdin: Stdio) -> io::Result<Child> {
    #[cfg(test)]
    super::tests::STARTED.with(|started| started.set(started.get() + 1));
    git(root).args(args).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}
