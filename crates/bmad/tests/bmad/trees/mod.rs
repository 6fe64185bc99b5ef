//! Real trees that BMAD's own installer has created, one directory for each version, for the tests that read them.
#![expect(clippy::unwrap_used, reason = "a tree that cannot be walked fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use tribunal_bmad::project_files::{ProjectFiles, UnreadableFile};

/// The variable with the directory into which `cargo xtask bmad` has put them.
const TREES_VARIABLE: &str = "TRIBUNAL_BMAD_TREES";

/// One tree, named after its version.
#[derive(Debug)]
pub struct InstalledTree {
    pub name: String,
    pub root: PathBuf,
}

/// All trees, sorted by name. Fails if there are none: these tests are only run on request.
pub fn all_trees() -> Vec<InstalledTree> {
    let trees_directory = std::env::var_os(TREES_VARIABLE)
        .unwrap_or_else(|| panic!("{TREES_VARIABLE} is not set: run `cargo xtask bmad`"));
    let entries =
        fs::read_dir(&trees_directory).unwrap_or_else(|error| panic!("{}: {error}", trees_directory.display()));
    let mut trees: Vec<InstalledTree> = entries
        .map(|directory_entry| directory_entry.unwrap())
        .filter(|directory_entry| directory_entry.path().is_dir())
        .map(|directory_entry| InstalledTree {
            name: directory_entry.file_name().into_string().unwrap(),
            root: directory_entry.path(),
        })
        .collect();
    trees.sort_by(|left, right| left.name.cmp(&right.name));
    assert!(trees.len() >= 6, "{} has only {} trees", trees_directory.display(), trees.len());
    trees
}

impl InstalledTree {
    /// The paths of all files, relative to the root, sorted.
    pub fn list_files(&self) -> Vec<String> {
        fn collect_files(root: &Path, directory: &Path, file_paths: &mut Vec<String>) {
            for directory_entry in fs::read_dir(directory).unwrap() {
                let entry_path = directory_entry.unwrap().path();
                match entry_path.is_dir() {
                    true => collect_files(root, &entry_path, file_paths),
                    false => file_paths.push(entry_path.strip_prefix(root).unwrap().to_str().unwrap().to_string()),
                }
            }
        }
        let mut file_paths = Vec::new();
        collect_files(&self.root, &self.root, &mut file_paths);
        file_paths.sort();
        file_paths
    }
}

impl ProjectFiles for InstalledTree {
    fn read_file(&self, file_path: &str) -> Result<Option<String>, UnreadableFile> {
        match fs::read_to_string(self.root.join(file_path)) {
            Ok(file_text) => Ok(Some(file_text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(UnreadableFile::Refused { cause: error.to_string() }),
        }
    }

    fn list_names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(directory)) else { return Vec::new() };
        let entry_names = entries.map(|directory_entry| {
            let directory_entry = directory_entry.unwrap();
            let suffix = if directory_entry.path().is_dir() { "/" } else { "" };
            format!("{}{suffix}", directory_entry.file_name().to_str().unwrap())
        });
        let mut entry_names: Vec<String> = entry_names.collect();
        entry_names.sort();
        entry_names
    }
}
