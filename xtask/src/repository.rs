//! Reads the repository: the list of its files, and its Rust sources, parsed once for all rules.
//!
//! Files are those that git knows or would add, so that build output and local notes are left out. Outside a git checkout (a
//! copy in a temporary directory) the directory is walked instead. There are no rules here.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use proc_macro2::TokenStream;

use crate::RuleBreach;

/// One Rust source file of `crates/`, `xtask/` or `fuzz/`.
pub struct SourceFile {
    pub path: String,
    pub text: String,
    pub tokens: TokenStream,
    pub syntax: syn::File,
}

/// All files of the repository, and its own Rust sources, parsed.
pub struct RepositoryTree {
    /// The paths relative to the root, with forward slashes, sorted.
    pub files: Vec<String>,
    pub sources: Vec<SourceFile>,
    /// The sources that cannot be parsed as Rust.
    pub unreadable: Vec<RuleBreach>,
}

impl RepositoryTree {
    /// Reads all files below `root`.
    pub fn read_repository(root: &Path) -> Result<Self> {
        let mut tree = Self { files: list_files(root)?, sources: Vec::new(), unreadable: Vec::new() };
        for path in tree.files.iter().filter(|path| is_own_source(path)) {
            let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
            match SourceFile::parse(path, text) {
                Ok(source) => tree.sources.push(source),
                Err(breach) => tree.unreadable.push(breach),
            }
        }
        Ok(tree)
    }
}

impl SourceFile {
    pub fn parse(path: &str, text: String) -> Result<Self, RuleBreach> {
        let syntax_breach = |error: syn::Error| {
            RuleBreach::at_line(path, error.span().start().line, format!("this is not rust: {error}"))
        };
        // The tokens are kept beside the syntax tree, because the tree does not look into macro calls.
        let tokens: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| syntax_breach(error.into()))?;
        let syntax = syn::parse2(tokens.clone()).map_err(syntax_breach)?;
        Ok(Self { path: path.to_owned(), text, tokens, syntax })
    }
}

/// Whether a file is Rust code of this repository. Below a `fixtures` directory it is data, unless that directory is inside
/// `src`.
fn is_own_source(path: &str) -> bool {
    let is_in_workspace = ["crates/", "xtask/", "fuzz/"].iter().any(|top_dir| path.starts_with(top_dir));
    let is_fixture = path.split('/').find(|component| ["src", "fixtures"].contains(component)) == Some("fixtures");
    is_in_workspace && has_extension(path, "rs") && !is_fixture
}

pub fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|actual_extension| actual_extension == extension)
}

fn list_files(root: &Path) -> Result<Vec<String>> {
    let mut files = match list_by_git(root) {
        Some(files) => files,
        None => list_by_walking(root)?,
    };
    // Git lists a file with a merge conflict once for each side.
    files.sort();
    files.dedup();
    Ok(files)
}

/// Lists files through git. `None` means that git is missing or does not know this directory (then the root manifest is not
/// listed).
fn list_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        // Inside a git hook these variables name the repository of the hook, independent of the current directory.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let files: Vec<String> = String::from_utf8_lossy(&output.stdout)
        .split('\0')
        // The index may still list files that were deleted in the work tree.
        .filter(|path| fs::symlink_metadata(root.join(path)).is_ok_and(|metadata| metadata.is_file()))
        .map(str::to_owned)
        .collect();
    files.iter().any(|path| path == "Cargo.toml").then_some(files)
}

fn list_by_walking(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut pending_dirs = vec![String::new()];
    while let Some(directory) = pending_dirs.pop() {
        let entries = fs::read_dir(root.join(&directory))
            .with_context(|| format!("cannot list {}", root.join(&directory).display()))?;
        for entry in entries {
            let entry = entry?;
            let file_name = entry.file_name().to_string_lossy().into_owned();
            let file_path = if directory.is_empty() { file_name.clone() } else { format!("{directory}/{file_name}") };
            // A symbolic link is neither a file nor a directory here, so the walk cannot loop.
            let file_type = entry.file_type()?;
            if file_type.is_file() {
                files.push(file_path);
            } else if file_type.is_dir() && file_name != ".git" && file_name != "target" {
                pending_dirs.push(file_path);
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::is_own_source;

    #[test]
    fn fixtures_are_data_and_a_module_named_fixtures_is_code() {
        assert!(is_own_source("crates/workflows/src/lib.rs"));
        assert!(is_own_source("crates/testkit/src/fixtures/mod.rs"));
        assert!(is_own_source("xtask/tests/architecture.rs"));
        assert!(is_own_source("fuzz/fuzz_targets/menu.rs"));
        assert!(!is_own_source("crates/bmad/tests/fixtures/old/src/main.rs"));
        assert!(!is_own_source("docs/example.rs"));
    }
}
