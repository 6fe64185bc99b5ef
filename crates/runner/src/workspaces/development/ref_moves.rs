//! Moving a ref of the user's back, and what is said about it.

use std::fs;

use serde::{Deserialize, Serialize};
use tribunal_engine::text::shell_quote;

use super::{
    WithPath, WorkspaceError,
    checkout_refs::{CheckoutRefs, StashEntry, is_object_id},
    user_repository::UserRepository,
};
use crate::git::{git_command, run_checked};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefMove {
    pub name: String,
    pub seen: Option<String>,
    pub wanted: Option<String>,
    /// What has happened, as the beginning of a sentence.
    pub said: String,
    /// Where the other value is kept, if it is; in parentheses.
    pub kept: String,
}

/// Moves refs back in one transaction, each if it still is where it was seen. Nothing moves if one of them cannot.
pub(super) fn move_refs_back(repository: &UserRepository, moves: &[RefMove]) -> Result<(), WorkspaceError> {
    let mut lines = String::new();
    for RefMove { name, seen, wanted, .. } in moves {
        // A file among the refs can have any name, and each line is a command.
        if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(WorkspaceError::new_refusal("it has no name that git could have given it"));
        }
        let line = match (seen.as_deref(), wanted.as_deref()) {
            (Some(seen), Some(wanted)) if is_object_id(seen) && is_object_id(wanted) => {
                format!("update {name} {wanted} {seen}\n")
            }
            (None, Some(wanted)) if is_object_id(wanted) => format!("create {name} {wanted}\n"),
            (Some(seen), None) if is_object_id(seen) => format!("delete {name} {seen}\n"),
            _ => return Err(WorkspaceError::new_refusal("it leads to another ref")),
        };
        lines.push_str(&line);
    }
    let mut command = git_command(repository.project_root());
    command.args(["update-ref", "--no-deref", "-m", "tribunal", "--stdin"]);
    Ok(run_checked(command, Some(lines.into_bytes())).map(drop)?)
}

/// Moves a ref back, if it still is where it was seen.
pub(super) fn move_ref_back(repository: &UserRepository, moved: &RefMove) -> Result<(), WorkspaceError> {
    let RefMove { name, seen, wanted, .. } = moved;
    let is_id = |value: &Option<String>| value.as_deref().is_some_and(is_object_id);
    let git_dir = if name == "HEAD" { &repository.layout.git_dir } else { &repository.layout.common_dir };
    let has_moved_again = || {
        let now = CheckoutRefs::read_from(repository)?;
        let value =
            if name == "HEAD" { Some(now.head).filter(|head| !head.is_empty()) } else { now.refs.get(name).cloned() };
        Ok::<_, WorkspaceError>((value != *seen, value == *wanted))
    };
    match has_moved_again()? {
        (_, true) => return Ok(()),
        (true, _) => return Err(WorkspaceError::new_refusal("it has moved again")),
        _ => {}
    }
    // What is neither an object nor another ref keeps git from reading it at all.
    if let Some(seen) = seen
        && !is_object_id(seen)
        && !seen.starts_with("ref: ")
    {
        let ref_file = git_dir.join(name);
        fs::remove_file(&ref_file).at_path(&ref_file)?;
    }
    match wanted {
        Some(wanted) if wanted.starts_with("ref: ") => {
            repository.query(["symbolic-ref", "-m", "tribunal", name, wanted.trim_start_matches("ref: ")]).map(drop)
        }
        Some(wanted) => {
            let zeros = "0".repeat(wanted.len());
            let expected = match seen {
                Some(seen) if is_id(&Some(seen.clone())) => seen.as_str(),
                // A symbolic ref has no value of its own to compare; it was compared above.
                Some(_) => return set_ref(repository, name, wanted),
                None => zeros.as_str(),
            };
            repository.query(["update-ref", "--no-deref", "-m", "tribunal", name, wanted, expected]).map(drop)
        }
        None => match seen {
            Some(seen) if is_id(&Some(seen.clone())) => {
                repository.query(["update-ref", "--no-deref", "-d", name, seen]).map(drop)
            }
            _ => repository.query(["symbolic-ref", "--delete", name]).map(drop),
        },
    }
}

fn set_ref(repository: &UserRepository, name: &str, wanted: &str) -> Result<(), WorkspaceError> {
    repository.query(["update-ref", "--no-deref", "-m", "tribunal", name, wanted]).map(drop)
}

pub(super) fn show_head(head: &str) -> String {
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_string(),
        None if is_object_id(head) => format!("the commit {}", short_id(head)),
        None if head.is_empty() => "nothing".to_string(),
        None => head.to_string(),
    }
}

/// The ref that HEAD names, if it names one.
pub(super) fn head_target(head: &str) -> Option<String> {
    head.strip_prefix("ref: ").map(str::to_string)
}

/// The command that puts a ref to where it was.
pub(super) fn advise_update(name: &str, wanted: &str) -> String {
    format!("git update-ref {} {wanted}", shell_quote(name))
}

/// The command that puts a stash on top of the others.
pub(super) fn advise_store(entry: &StashEntry) -> String {
    format!("git stash store -m {} {}", shell_quote(&entry.message), entry.commit)
}

/// Whether git still has a stash.
pub(super) fn has_stash(repository: &UserRepository, entry: &StashEntry) -> bool {
    repository.is_true(["cat-file", "-e", entry.commit.as_str()]).unwrap_or(false)
}

pub(super) fn short_id(object_id: &str) -> String {
    object_id.chars().take(10).collect()
}
