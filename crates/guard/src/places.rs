//! Resolves paths by their text alone: nothing is looked up, so symbolic links are not seen.
//!
//! Paths are compared component by component: `/proj/app2` is not in `/proj/app`.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    Ground,
    shell::{ONE, SET, STAR},
};

/// An absolute path in components, without `.`, `..` and doubled slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(pub Vec<String>);

impl Path {
    /// Resolves a path against a base directory. `None` means that the path is relative and the base is not known.
    pub fn of(text: &str, base: Option<&Path>) -> Option<Path> {
        let mut parts = match text.starts_with('/') {
            true => Vec::new(),
            false => base?.0.clone(),
        };
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part.to_string()),
            }
        }
        Some(Path(parts))
    }

    pub fn absolute(text: &str) -> Option<Path> {
        Path::of(text, None)
    }

    /// Whether this path is the directory itself or below it.
    pub fn is_in(&self, folder: &Path) -> bool {
        self.0.starts_with(&folder.0)
    }

    pub fn is_below(&self, folder: &Path) -> bool {
        self.0.len() > folder.0.len() && self.is_in(folder)
    }

    pub fn parent(&self) -> Path {
        Path(self.0.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default())
    }

    pub fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    pub fn join(&self, part: &str) -> Path {
        let mut parts = self.0.clone();
        parts.push(part.to_string());
        Path(parts)
    }

    /// Whether the last component matches every file of its directory: `*`, `.*`, `{*,.*}`, `.[!.]*`.
    pub fn is_all_of_its_folder(&self) -> bool {
        let last = self.last();
        last.contains(STAR)
            && last.chars().all(|inner| matches!(inner, STAR | ONE | SET) || "{},.!^]".contains(inner))
    }

    /// Whether this path, with its wildcards, can match the other one. Case is ignored, because some file systems ignore it.
    pub fn may_name(&self, other: &Path) -> bool {
        self.0.len() == other.0.len() && self.may_hold(other)
    }

    /// Whether this path, with its wildcards, can match the other one or a directory that contains it.
    pub fn may_hold(&self, other: &Path) -> bool {
        self.0.len() <= other.0.len()
            && self.0.iter().zip(&other.0).all(|(pattern, name)| matches(pattern, name))
    }

    /// Whether this path can match the directory or something in it. A component of wildcards alone (`*/x`) is not counted as a
    /// match: it would match any directory.
    pub fn may_be_in(&self, folder: &Path) -> bool {
        let any = |part: &String| part.chars().all(|inner| matches!(inner, STAR | ONE));
        folder.0.len() <= self.0.len()
            && self.0.iter().zip(&folder.0).all(|(pattern, name)| !any(pattern) && matches(pattern, name))
    }
}

/// Matches one component of a path against a file name. A bracket set (`[a-z]`) and everything after it match anything.
fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains([STAR, ONE, SET]) {
        return pattern.eq_ignore_ascii_case(name);
    }
    // As in a shell, a wildcard does not match a leading dot.
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    // The matcher runs all positions of the pattern in parallel, so that a pattern of many stars cannot backtrack
    // exponentially.
    let pattern: Vec<char> = pattern.chars().map(|inner| inner.to_ascii_lowercase()).collect();
    let end = pattern.iter().position(|inner| *inner == SET);
    let pattern = end.and_then(|end| pattern.get(..end)).unwrap_or(&pattern);
    // For every prefix of the pattern: whether it matches the characters of the name that were read so far.
    let mut states = Vec::from([true]);
    for inner in pattern {
        let before = states.last().copied().unwrap_or(false);
        states.push(before && *inner == STAR);
    }
    for letter in name.chars().map(|letter| letter.to_ascii_lowercase()) {
        // The pattern has matched up to the bracket set, and the remainder counts as a match.
        if end.is_some() && states.last() == Some(&true) {
            return true;
        }
        let mut next = Vec::from([false]);
        for (index, inner) in pattern.iter().enumerate() {
            let before = states.get(index).copied().unwrap_or(false);
            let stays =
                *inner == STAR && (states.get(index + 1) == Some(&true) || next.last() == Some(&true));
            next.push(stays || before && (*inner == letter || *inner == ONE || *inner == STAR));
        }
        states = next;
    }
    states.last() == Some(&true)
}

/// The directories and files that paths are compared with.
#[derive(Debug)]
pub(crate) struct Map {
    pub root: Path,
    pub home: Option<Path>,
    pub cwd: Option<Path>,
    scratch: Vec<Path>,
    subject: Vec<(Path, bool)>,
    own: Vec<(Path, bool)>,
    change: bool,
}

impl Map {
    pub fn of(ground: &Ground<'_>) -> Map {
        // Without a project root every path is inside the project: what cannot be compared is allowed.
        let root = Path::absolute(ground.root).unwrap_or(Path(Vec::new()));
        let of_root = |text: &String| Path::of(text, Some(&root)).map(|path| (path, text.ends_with('/')));
        let scratch = ground.scratch.iter().filter_map(|text| Path::absolute(text));
        // A project inside a temporary directory must not open that whole directory for writing.
        let scratch = scratch.filter(|folder| !root.is_in(folder) && !folder.0.is_empty()).collect();
        let subject = ground.subject.iter().filter_map(of_root).collect();
        let own = ground.own.iter().filter_map(of_root).collect();
        let home = Path::absolute(ground.home).filter(|home| !home.0.is_empty());
        let cwd = Path::absolute(ground.cwd);
        Map { scratch, subject, own, home, cwd, change: ground.change, root }
    }

    pub fn in_project(&self, path: &Path) -> bool {
        path.is_in(&self.root)
    }

    /// Whether the path is below a directory in which every process may write.
    pub fn in_scratch(&self, path: &Path) -> bool {
        self.scratch.iter().any(|folder| path.is_below(folder))
    }

    pub fn has_subject(&self) -> bool {
        !self.subject.is_empty()
    }

    /// Whether the path is a file of the subject or, for a code change, beside one of its files.
    pub fn in_subject(&self, path: &Path) -> bool {
        self.subject.iter().any(|(subject, folder)| {
            let beside = || {
                // A changed file at the top level allows its siblings only; otherwise it would open the whole project.
                let parent = subject.parent();
                if parent == self.root { path.parent() == parent } else { path.is_below(&parent) }
            };
            path == subject || *folder && path.is_in(subject) || self.change && !folder && beside()
        })
    }

    /// The path of Tribunal's own files that would be changed. A removal also takes what is inside the removed directory.
    pub fn own(&self, path: &Path, removes: bool) -> Option<String> {
        let found = self.own.iter().find(|(own, folder)| {
            let names = if *folder { path.may_be_in(own) } else { path.may_name(own) };
            names || removes && path.may_hold(own)
        });
        found.map(|(own, folder)| {
            let mut shown = self.shown(own);
            if *folder {
                shown.push('/');
            }
            shown
        })
    }

    /// Formats a path for messages: relative to the project root if it is inside, with shell marks turned back into characters.
    pub fn shown(&self, path: &Path) -> String {
        let below = path.0.strip_prefix(self.root.0.as_slice()).filter(|below| !below.is_empty());
        let text = match below {
            Some(below) => below.join("/"),
            None => alloc::format!("/{}", path.0.join("/")),
        };
        text.chars().map(crate::shell::unmarked).collect()
    }
}
