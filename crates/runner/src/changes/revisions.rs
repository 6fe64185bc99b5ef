//! From what a person typed to the states a change lies between.

use std::{collections::BTreeSet, fs, process::Command};

use super::{Asked, ChangeError, listing::Entry};
use crate::git::{Repository, text};

/// The two states, by their ids.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Empty: nothing.
    pub base: String,
    /// What git compares with, never empty.
    pub from: String,
    /// None: the work tree.
    pub end: Option<String>,
}

impl Ends {
    pub fn resolve(repository: &Repository, asked: &Asked) -> Result<Ends, ChangeError> {
        let (base, end) = match asked {
            Asked::Range(said) => range(repository, said)?,
            Asked::Commit(said) => commit(repository, said)?,
            Asked::WorkTree => {
                unmerged(repository, repository.command())?;
                (head(repository)?, None)
            }
            Asked::Since(said) => {
                unmerged(repository, repository.command())?;
                (known(repository, said)?, None)
            }
            Asked::Staged => (head(repository)?, Some(staged(repository)?)),
        };
        let from = if base.is_empty() {
            // Its id depends on how the repository hashes.
            text(&repository.ask(["hash-object", "-t", "tree", "--stdin"])?)
        } else {
            base.clone()
        };
        Ok(Ends { base, from, end })
    }
}

/// HEAD's commit; empty before the first one.
fn head(repository: &Repository) -> Result<String, ChangeError> {
    Ok(revision(repository, "HEAD")?.unwrap_or_default())
}

fn revision(repository: &Repository, said: &str) -> Result<Option<String>, ChangeError> {
    let mut git = repository.command();
    git.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{said}^{{commit}}")]);
    let answer = repository.raw(git, None)?;
    Ok(Some(text(&answer.out)).filter(|id| answer.good && !id.is_empty()))
}

fn known(repository: &Repository, said: &str) -> Result<String, ChangeError> {
    revision(repository, said)?.ok_or_else(|| ChangeError::Unknown { said: said.to_string() })
}

fn range(repository: &Repository, said: &str) -> Result<(String, Option<String>), ChangeError> {
    let (one, other, parted) = match (said.split_once("..."), said.split_once("..")) {
        (Some((one, other)), _) => (one, other, true),
        (None, Some((one, other))) => (one, other, false),
        (None, None) => return Err(ChangeError::NoRange { said: said.to_string() }),
    };
    let or_head = |name: &str| if name.is_empty() { "HEAD".to_string() } else { name.to_string() };
    let (one, other) = (or_head(one), or_head(other));
    let (from, to) = (known(repository, &one)?, known(repository, &other)?);
    if !parted {
        return Ok((from, Some(to)));
    }
    let mut git = repository.command();
    git.args(["merge-base", &from, &to]);
    let answer = repository.raw(git, None)?;
    let base = text(&answer.out);
    if !answer.good || base.is_empty() {
        return Err(ChangeError::Unrelated { one, other, shallow: is_shallow(repository)? });
    }
    Ok((base, Some(to)))
}

fn is_shallow(repository: &Repository) -> Result<bool, ChangeError> {
    Ok(text(&repository.ask(["rev-parse", "--is-shallow-repository"])?) == "true")
}

fn commit(repository: &Repository, said: &str) -> Result<(String, Option<String>), ChangeError> {
    let id = known(repository, said)?;
    // A shallow clone hides the parent it does not have; the commit itself still names it.
    let content = repository.ask(["cat-file", "commit", &id])?;
    let headers = String::from_utf8_lossy(&content);
    let parent =
        headers.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix("parent "));
    let Some(parent) = parent else { return Ok((String::new(), Some(id))) };
    let mut git = repository.command();
    git.args(["cat-file", "-e", parent]);
    if !repository.raw(git, None)?.good {
        return Err(ChangeError::Shallow { said: said.to_string() });
    }
    Ok((parent.to_string(), Some(id)))
}

/// A file with conflicts is neither the one nor the other.
fn unmerged(repository: &Repository, mut git: Command) -> Result<(), ChangeError> {
    git.args(["ls-files", "--unmerged", "-z"]);
    let answer = repository.answer(git, None)?;
    let first =
        answer.split(|byte| *byte == 0).find(|record| !record.is_empty()).map(String::from_utf8_lossy);
    match first {
        None => Ok(()),
        Some(record) => {
            let path = record.split_once('\t').map_or(&*record, |(_, path)| path).to_string();
            Err(ChangeError::Conflicts { path })
        }
    }
}

/// The index as a tree, made from a copy: the person's own is not written.
fn staged(repository: &Repository) -> Result<String, ChangeError> {
    let path = text(&repository.ask(["rev-parse", "--git-path", "index"])?);
    let index = repository.root().join(&path);
    let unreadable = |cause| ChangeError::Unreadable { path: path.clone(), cause };
    let folder = tempfile::tempdir().map_err(unreadable)?;
    let copy = folder.path().join("index");
    // No index yet: nothing was ever added.
    if index.exists() {
        fs::copy(&index, &copy).map_err(unreadable)?;
    }
    let asked = |args: &[&str]| -> Command {
        let mut git = repository.command();
        git.args(args).env("GIT_INDEX_FILE", &copy);
        git
    };
    unmerged(repository, asked(&[]))?;
    Ok(text(&repository.answer(asked(&["write-tree"]), None)?))
}

/// Files of the change that are not in the work tree as they are in `end`. Git compares: what it would convert is no difference.
pub(super) fn differing(
    repository: &Repository,
    end: &str,
    paths: &[String],
    kept: &[Entry],
) -> Result<Vec<String>, ChangeError> {
    let mut git = repository.command();
    git.args(["diff", "--name-only", "-z", "--relative", "--no-renames", "--no-ext-diff", end, "--"])
        .args(paths);
    let answer = repository.answer(git, None)?;
    let differ: BTreeSet<&[u8]> = answer.split(|byte| *byte == 0).collect();
    let gone_but_there = |entry: &Entry| {
        entry.is_deleted() && fs::symlink_metadata(repository.root().join(&entry.path)).is_ok()
    };
    let gone = |entry: &Entry| {
        !entry.is_deleted()
            && !fs::symlink_metadata(repository.root().join(&entry.path)).is_ok_and(|it| it.is_file())
    };
    let unwatched = unwatched(repository, paths)?;
    let other = kept.iter().filter(|entry| {
        let path = entry.path.as_bytes();
        differ.contains(path) || unwatched.contains(path) || gone_but_there(entry) || gone(entry)
    });
    Ok(other.map(|entry| entry.path.clone()).collect())
}

/// Files that git was told not to look at: left out of a sparse checkout, or taken for unchanged. Nobody can say of them what
/// they are.
fn unwatched(repository: &Repository, paths: &[String]) -> Result<BTreeSet<Vec<u8>>, ChangeError> {
    let mut git = repository.command();
    git.args(["ls-files", "-v", "-z", "--"]).args(paths);
    let answer = repository.answer(git, None)?;
    let lines = answer.split(|byte| *byte == 0).filter(|line| line.len() > 2);
    let hidden = lines.filter(|line| line[0] == b'S' || line[0].is_ascii_lowercase());
    Ok(hidden.map(|line| line[2..].to_vec()).collect())
}
