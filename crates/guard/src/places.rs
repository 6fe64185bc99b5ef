//! Where a path leads, by its words alone: nothing is looked up, so a symbolic link is not seen.
//!
//! Paths are compared part by part: `/proj/app2` is not in `/proj/app`.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    Ground,
    shell::{ONE, SET, STAR},
};

/// An absolute path in parts, without `.`, `..` and doubled slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(pub Vec<String>);

impl Path {
    /// None: it is relative, and nobody knows to what.
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

    /// The same or below.
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

    /// `*`, `.*`, `{*,.*}`, `.[!.]*`: whatever is in the folder.
    pub fn is_all_of_its_folder(&self) -> bool {
        let last = self.last();
        last.contains(STAR)
            && last.chars().all(|inner| matches!(inner, STAR | ONE | SET) || "{},.!^]".contains(inner))
    }

    /// Whether this, with its wild cards, may name that, or something that it is in. Case is no difference: on some file systems
    /// it is none.
    pub fn may_name(&self, other: &Path) -> bool {
        self.0.len() == other.0.len() && self.may_hold(other)
    }

    pub fn may_hold(&self, other: &Path) -> bool {
        self.0.len() <= other.0.len()
            && self.0.iter().zip(&other.0).all(|(pattern, name)| matches(pattern, name))
    }

    /// Whether it may be that folder, or something in it. `*/x` means any folder, and so none of them.
    pub fn may_be_in(&self, folder: &Path) -> bool {
        let any = |part: &String| part.chars().all(|inner| matches!(inner, STAR | ONE));
        folder.0.len() <= self.0.len()
            && self.0.iter().zip(&folder.0).all(|(pattern, name)| !any(pattern) && matches(pattern, name))
    }
}

/// One part of a path against a name. A set (`[a-z]`) is taken for anything.
fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains([STAR, ONE, SET]) {
        return pattern.eq_ignore_ascii_case(name);
    }
    // A wild card does not match a first dot.
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().map(|inner| inner.to_ascii_lowercase()).collect();
    let end = pattern.iter().position(|inner| *inner == SET);
    let pattern = end.and_then(|end| pattern.get(..end)).unwrap_or(&pattern);
    // For every beginning of the pattern: whether it matches what was read of the name.
    let mut states = Vec::from([true]);
    for inner in pattern {
        let before = states.last().copied().unwrap_or(false);
        states.push(before && *inner == STAR);
    }
    for letter in name.chars().map(|letter| letter.to_ascii_lowercase()) {
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

/// The folders that everything is measured by.
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
        // Without a project's folder everything is in it: what cannot be measured is allowed.
        let root = Path::absolute(ground.root).unwrap_or(Path(Vec::new()));
        let of_root = |text: &String| Path::of(text, Some(&root)).map(|path| (path, text.ends_with('/')));
        let scratch = ground.scratch.iter().filter_map(|text| Path::absolute(text));
        // A project in a temporary folder does not make all of that folder its own.
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

    /// Below a folder where everyone may write.
    pub fn in_scratch(&self, path: &Path) -> bool {
        self.scratch.iter().any(|folder| path.is_below(folder))
    }

    pub fn has_subject(&self) -> bool {
        !self.subject.is_empty()
    }

    /// One of the subject's files or, if that is a code change, beside one of them.
    pub fn in_subject(&self, path: &Path) -> bool {
        self.subject.iter().any(|(subject, folder)| {
            let beside = || {
                let parent = subject.parent();
                if parent == self.root { path.parent() == parent } else { path.is_below(&parent) }
            };
            path == subject || *folder && path.is_in(subject) || self.change && !folder && beside()
        })
    }

    /// What of Tribunal's own it is; for something that removes, also what goes with it.
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

    /// Relative to the project's root where it is in there.
    pub fn shown(&self, path: &Path) -> String {
        let below = path.0.strip_prefix(self.root.0.as_slice()).filter(|below| !below.is_empty());
        let text = match below {
            Some(below) => below.join("/"),
            None => alloc::format!("/{}", path.0.join("/")),
        };
        text.chars().map(crate::shell::unmarked).collect()
    }
}
