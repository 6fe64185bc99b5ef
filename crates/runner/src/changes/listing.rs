//! Lists which files a change touches, and which of them can be reviewed: by names, modes, sizes and what git takes for text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, Read},
    path::Path,
    process::Command,
};

use super::{ChangeError, MOST_BYTES, MOST_FILES, MOST_PARTS, Request, kilobytes, revisions::Ends, too_big};
use crate::{
    copies::NEVER,
    git::{Heard, Repository},
    subject::LIMIT,
};

/// Inexact renames are detected among this many files at most; the time it takes grows with the square.
const MOST_RENAMES: &str = "-l400";
const LINK: &str = "120000";
const SUBMODULE: &str = "160000";
/// The size of the lines around a new file's content in a diff.
const HEADER: u64 = 160;

/// One file as git lists it.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub path: String,
    pub from: Option<String>,
    /// As in git's raw format; `?` for an untracked file.
    pub status: u8,
    modes: [String; 2],
    /// The contents before and after; `None` if there is none, or if it is only in the work tree.
    pub ids: [Option<String>; 2],
    /// The numbers of added and removed lines; `None` if the file is not text.
    lines: Option<(u64, u64)>,
    /// The size of its diff.
    pub bytes: u64,
}

impl Entry {
    pub fn is_deleted(&self) -> bool {
        self.status == b'D'
    }

    /// Whether the file is new and empty.
    pub fn is_empty_and_new(&self, root: &Path) -> bool {
        match self.status {
            b'A' => self.lines == Some((0, 0)),
            b'?' => fs::metadata(root.join(&self.path)).is_ok_and(|meta| meta.len() == 0),
            _ => false,
        }
    }

    /// Whether its content after the change exists only in the work tree.
    pub fn is_in_work_tree(&self) -> bool {
        !self.is_deleted() && self.ids[1].is_none()
    }
}

/// What can be reviewed so far, and why the other files cannot.
#[derive(Debug, Default)]
pub(super) struct Sifted {
    pub kept: Vec<Entry>,
    pub left_out: Vec<String>,
    /// All paths in git's order, with a change of type listed twice, as in a patch.
    order: Vec<String>,
}

impl Sifted {
    /// Leaves out files that do not belong to the change, with one reason for all of them.
    fn set_aside(&mut self, why: &str, is_meant: impl Fn(&Entry) -> bool) {
        let (meant, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.kept).into_iter().partition(is_meant);
        self.kept = kept;
        if let [first, rest @ ..] = meant.as_slice() {
            let more = if rest.is_empty() { String::new() } else { format!(", as {} more", rest.len()) };
            self.left_out.push(format!("{}: {why}{more}", first.path));
        }
    }

    /// Keeps the entries for which `find_reason` finds nothing.
    pub fn drop(&mut self, mut why: impl FnMut(&Entry) -> Option<String>) {
        let kept = std::mem::take(&mut self.kept);
        for entry in kept {
            match why(&entry) {
                None => self.kept.push(entry),
                Some(why) => self.left_out.push(format!("{}: {why}", entry.path)),
            }
        }
    }
}

/// Builds a diff command; lists and patches share its options, so that they have the same order.
fn diff(repository: &Repository, ends: &Ends, format: &[&str], paths: &[String]) -> Command {
    let mut git = repository.command();
    // Git takes larger files for binary and prints nothing of them; those in the work tree are still hashed.
    git.args(["-c", &format!("core.bigFileThreshold={LIMIT}"), "-c", "diff.suppressBlankEmpty=false"]);
    git.args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--relative", "-M", MOST_RENAMES]);
    // The user's configuration could change prefixes, submodule format or order; the parser relies on these.
    git.args([
        "--submodule=short",
        "--ignore-submodules=dirty",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "-O/dev/null",
    ]);
    git.args(format).arg(&ends.from).args(&ends.end).arg("--").args(paths);
    git
}

/// Lists what has changed according to git.
pub(super) fn changed(
    repository: &Repository,
    ends: &Ends,
    paths: &[String],
) -> Result<Vec<Entry>, ChangeError> {
    let git = diff(repository, ends, &["--raw", "--numstat", "-z", "--no-abbrev"], paths);
    let answer = repository.answer(git, None)?;
    let mut entries = Vec::new();
    let mut lines: BTreeMap<String, Option<(u64, u64)>> = BTreeMap::new();
    let mut words =
        answer.split(|byte| *byte == 0).map(|word| String::from_utf8(word.to_vec()).map_err(lossy));
    while let Some(word) = words.next() {
        // The output mixes both formats: raw records start with a colon, the others with line counts.
        let word = flat(word);
        let mut next = || words.next().map(flat).unwrap_or_default();
        if let Some(raw) = word.strip_prefix(':') {
            entries.push(raw_entry(raw, &mut next));
        } else if let Some((added, rest)) = word.split_once('\t')
            && let Some((removed, path)) = rest.split_once('\t')
        {
            // A rename has an empty path here, followed by the old and the new one.
            let path = if path.is_empty() { [next(), next()][1].clone() } else { path.to_string() };
            lines.insert(path, added.parse().ok().zip(removed.parse().ok()));
        }
    }
    for entry in &mut entries {
        entry.lines = lines.get(&entry.path).copied().flatten();
        // To detect a rename git hashes the file in the work tree, but it does not store the content under that hash.
        if ends.end.is_none() && entry.from.is_some() {
            entry.ids[1] = None;
        }
        if entry.status == b'U' {
            return Err(ChangeError::Conflicts { path: entry.path.clone() });
        }
    }
    Ok(entries)
}

/// Marks a name that is not UTF-8 with a replacement character; the file is left out because of it.
fn lossy(name: std::string::FromUtf8Error) -> String {
    format!("{}\u{fffd}", String::from_utf8_lossy(name.as_bytes()))
}

fn flat(name: Result<String, String>) -> String {
    name.unwrap_or_else(|name| name)
}

/// Parses `100644 100644 OLD NEW M`, followed by the path or both paths.
fn raw_entry(raw: &str, next: &mut dyn FnMut() -> String) -> Entry {
    let mut parts = raw.split(' ');
    let mut part = || parts.next().unwrap_or_default().to_string();
    let modes = [part(), part()];
    let ids = [part(), part()].map(|id| Some(id).filter(|id| !id.bytes().all(|byte| byte == b'0')));
    let status = part().bytes().next().unwrap_or(b'M');
    let first = next();
    let (path, from) = if matches!(status, b'R' | b'C') { (next(), Some(first)) } else { (first, None) };
    Entry { path, from, status, modes, ids, ..Entry::default() }
}

/// Lists files that git does not track and would not ignore.
pub(super) fn untracked(repository: &Repository, paths: &[String]) -> Result<Vec<Entry>, ChangeError> {
    let mut git = repository.command();
    git.args(["ls-files", "-z", "--others", "--exclude-standard", "--"]).args(paths);
    let answer = repository.answer(git, None)?;
    let names = answer.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let entry = |name: &[u8]| {
        let path = flat(String::from_utf8(name.to_vec()).map_err(lossy));
        let meta = fs::symlink_metadata(repository.root().join(&path));
        let mode = match &meta {
            Ok(meta) if meta.is_symlink() => LINK,
            // A nested repository.
            _ if path.ends_with('/') => SUBMODULE,
            _ => "100644",
        };
        let bytes = meta.map_or(0, |meta| meta.len()) + HEADER;
        let modes = ["000000".to_string(), mode.to_string()];
        Entry { path, status: b'?', modes, lines: Some((0, 0)), bytes, ..Entry::default() }
    };
    Ok(names.map(entry).collect())
}

/// Leaves out what can be recognized without reading it.
pub(super) fn sift(
    repository: &Repository,
    entries: Vec<Entry>,
    request: &Request,
) -> Result<Sifted, ChangeError> {
    let twice = |entry: &Entry| if entry.status == b'T' { 2 } else { 1 };
    let tracked = entries.iter().filter(|entry| entry.status != b'?');
    let order = tracked.flat_map(|entry| std::iter::repeat_n(entry.path.clone(), twice(entry))).collect();
    let sizes = sizes(repository, &entries)?;
    let mut sifted = Sifted { kept: entries, left_out: Vec::new(), order };
    sifted.set_aside("Tribunal's own", |entry| is_own(&entry.path, &request.reviews));
    let plans = |entry: &Entry| request.bookkeeping.iter().any(|own| Path::new(&entry.path).starts_with(own));
    sifted.set_aside("of those who plan the work", plans);
    // The same text and mode: only the file's time is new.
    sifted.kept.retain(|entry| {
        entry.status != b'M' || entry.lines != Some((0, 0)) || entry.modes[0] != entry.modes[1]
    });
    // Group omissions come first, so that such files do not get a reason each.
    sifted.drop(|entry| reason(repository, entry, &sizes));
    Ok(sifted)
}

/// Whether Tribunal wrote this file outside its own directory.
fn is_own(path: &str, reviews: &str) -> bool {
    let awaiting = Path::new(reviews).with_file_name("awaiting-human");
    let tracker = Path::new(path).strip_prefix(reviews).ok().and_then(Path::to_str).is_some_and(|name| {
        name.ends_with("-issues.md") || (name.starts_with("review-metrics-") && name.ends_with(".json"))
    });
    tracker || Path::new(path).starts_with(awaiting)
}

fn reason(repository: &Repository, entry: &Entry, sizes: &BTreeMap<String, Option<u64>>) -> Option<String> {
    // Cheap checks of the name come first; sizes and contents are looked at last.
    if entry.path.contains(char::REPLACEMENT_CHARACTER) {
        return Some("its name is no UTF-8".into());
    }
    if entry.path.chars().chain(entry.from.iter().flat_map(|from| from.chars())).any(char::is_control) {
        return Some("its name has control characters".into());
    }
    if let Some(never) = entry.path.split('/').find(|part| NEVER.contains(part)) {
        return Some(format!("no copy has what is in {never}"));
    }
    if entry.modes.iter().any(|mode| mode == SUBMODULE) {
        return Some("a submodule".into());
    }
    if entry.modes.iter().any(|mode| mode == LINK) {
        return Some("a symbolic link".into());
    }
    let known = entry.ids.iter().flatten().map(|id| sizes.get(id).copied().flatten());
    let here = entry
        .is_in_work_tree()
        .then(|| fs::metadata(repository.root().join(&entry.path)).ok().map(|meta| meta.len()));
    let mut most = 0;
    // Every version has to be readable: a reviewer sees both sides of the diff.
    for size in known.chain(here) {
        let Some(size) = size else { return Some("its contents are not there".into()) };
        most = most.max(size);
    }
    if most > LIMIT {
        return Some(format!("{}, at most {} are reviewed", kilobytes(most), kilobytes(LIMIT)));
    }
    match entry.lines {
        None => Some("binary, or marked so in .gitattributes".into()),
        Some((0, 0)) if entry.status == b'M' => Some("only its mode changed".into()),
        _ => None,
    }
}

/// Reads the sizes of all stored contents; `None` if git does not have one.
fn sizes(repository: &Repository, entries: &[Entry]) -> Result<BTreeMap<String, Option<u64>>, ChangeError> {
    let is_text = |entry: &&Entry| !entry.modes.iter().any(|mode| mode == SUBMODULE);
    let ids: BTreeSet<&String> =
        entries.iter().filter(is_text).flat_map(|entry| entry.ids.iter().flatten()).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut git = repository.command();
    git.args(["cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)"]);
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let answer = repository.answer(git, Some(input.into_bytes()))?;
    let answer = String::from_utf8_lossy(&answer);
    let size = |line: &str| line.split_once(' ').map(|(id, size)| (id.to_string(), size.parse().ok()));
    Ok(answer.lines().filter_map(size).collect())
}

/// Measures the diff of every file as git prints it. Nothing of it is kept.
pub(super) fn measure(
    repository: &Repository,
    ends: &Ends,
    paths: &[String],
    sifted: &mut Sifted,
) -> Result<(), ChangeError> {
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    let order = &sifted.order;
    let mut at = 0;
    let mut hear = |answer: &mut dyn BufRead| {
        let mut line = Vec::new();
        let mut name = "";
        while Read::take(&mut *answer, LIMIT).read_until(b'\n', &mut line)? > 0 {
            // A path in the header may be quoted or ambiguous, so it is searched for among the next paths in order.
            if line.starts_with(b"diff --git ") {
                let header = String::from_utf8_lossy(&line);
                let rest = order.iter().skip(at);
                let ahead =
                    rest.clone().position(|path| header.trim_end().ends_with(path.as_str())).unwrap_or(0);
                name = order.get(at + ahead).map_or("", String::as_str);
                at += ahead + 1;
            }
            *counted.entry(name).or_default() += line.len() as u64;
            line.clear();
        }
        Ok(Heard::All)
    };
    if !order.is_empty() {
        repository.stream(diff(repository, ends, &["--patch"], paths), None, &mut hear)?;
    }
    for entry in sifted.kept.iter_mut().filter(|entry| entry.status != b'?') {
        entry.bytes = counted.get(entry.path.as_str()).copied().unwrap_or_default();
    }
    sifted.drop(|entry| {
        (entry.bytes > MOST_BYTES).then(|| {
            let (has, most) = (kilobytes(entry.bytes), kilobytes(MOST_BYTES));
            format!("{has} of diff, at most {most} are reviewed with others; alone: tribunal review FILE")
        })
    });
    Ok(())
}

/// Refuses a change that is larger than all parts together could be.
pub(super) fn fits(range: &str, kept: &[Entry]) -> Result<(), ChangeError> {
    let bytes: u64 = kept.iter().map(|entry| entry.bytes).sum();
    if kept.len() > MOST_PARTS * MOST_FILES || bytes > MOST_PARTS as u64 * MOST_BYTES {
        return Err(too_big(range.to_string(), kept, Some(bytes)));
    }
    Ok(())
}
