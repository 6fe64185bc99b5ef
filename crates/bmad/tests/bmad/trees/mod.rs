//! Real trees that BMAD's own installer has created, one directory for each version, for the tests that read them.
#![expect(clippy::unwrap_used, reason = "a tree that cannot be walked fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use tribunal_bmad::shelf::{Shelf, Unreadable};

/// The variable with the directory into which `cargo xtask bmad` has put them.
const VARIABLE: &str = "TRIBUNAL_BMAD_TREES";

/// One tree, named after its version.
#[derive(Debug)]
pub struct Tree {
    pub name: String,
    pub root: PathBuf,
}

/// All trees, sorted by name. Fails if there are none: these tests are only run on request.
pub fn all() -> Vec<Tree> {
    let folder =
        std::env::var_os(VARIABLE).unwrap_or_else(|| panic!("{VARIABLE} is not set: run `cargo xtask bmad`"));
    let entries = fs::read_dir(&folder).unwrap_or_else(|cause| panic!("{}: {cause}", folder.display()));
    let mut trees: Vec<Tree> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| Tree { name: entry.file_name().into_string().unwrap(), root: entry.path() })
        .collect();
    trees.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(trees.len() >= 6, "{} has only {} trees", folder.display(), trees.len());
    trees
}

impl Tree {
    /// The paths of all files, relative to the root, sorted.
    pub fn files(&self) -> Vec<String> {
        fn walk(root: &Path, folder: &Path, out: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(root, &path, out),
                    false => out.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_string()),
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.root, &self.root, &mut out);
        out.sort();
        out
    }
}

impl Shelf for Tree {
    fn read(&self, path: &str) -> Result<Option<String>, Unreadable> {
        match fs::read_to_string(self.root.join(path)) {
            Ok(text) => Ok(Some(text)),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Unreadable::Refused { cause: cause.to_string() }),
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(folder)) else { return Vec::new() };
        let names = entries.map(|entry| {
            let entry = entry.unwrap();
            let slash = if entry.path().is_dir() { "/" } else { "" };
            format!("{}{slash}", entry.file_name().to_str().unwrap())
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}
