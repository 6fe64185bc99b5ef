//! HEAD, refs and stashes of a checkout, as they are.
//!
//! They are read from files, where refs are files: an agent's turn must not cost a process as long as nothing has moved. No link is
//! followed and no pipe is waited for, since an agent may have put them there.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{WorkspaceError, user_repository::UserRepository};
use crate::git::plain_files::read_regular_file;

/// The refs that are compared.
const REF_PREFIXES: [&str; 4] = ["refs/heads/", "refs/tags/", "refs/replace/", "refs/tribunal/"];
pub(super) const STASH_REF: &str = "refs/stash";
/// A ref is one line.
const MAX_REF_BYTES: u64 = 4096;
/// Repositories with many branches have large lists of them.
const MAX_PACKED_BYTES: u64 = 64 << 20;
const MAX_STASH_LOG_BYTES: u64 = 4 << 20;

/// Where everything points that a user moves with git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckoutRefs {
    /// What HEAD says: `ref: REF`, or a commit.
    pub head: String,
    /// What each ref says, by its name: an object, or `ref: REF`.
    pub refs: BTreeMap<String, String>,
    /// The newest comes first.
    pub stashes: Vec<StashEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StashEntry {
    pub commit: String,
    pub message: String,
}

impl CheckoutRefs {
    pub fn read_from(repository: &UserRepository) -> Result<CheckoutRefs, WorkspaceError> {
        let layout = &repository.layout;
        // The newer format of refs is read by git alone.
        if layout.common_dir.join("reftable").is_dir() {
            return query_refs(repository);
        }
        let refs = read_ref_files(&layout.common_dir);
        let has_stash = refs.contains_key(STASH_REF);
        Ok(CheckoutRefs {
            head: read_line(&layout.git_dir.join("HEAD")).unwrap_or_default(),
            stashes: if has_stash { read_stash_log(&layout.common_dir) } else { Vec::new() },
            refs: refs.into_iter().filter(|(name, _)| is_compared(name)).collect(),
        })
    }
}

fn is_compared(ref_name: &str) -> bool {
    REF_PREFIXES.iter().any(|prefix| ref_name.starts_with(prefix))
}

fn query_refs(repository: &UserRepository) -> Result<CheckoutRefs, WorkspaceError> {
    let listed = repository.query_text(["for-each-ref", "--format=%(objectname) %(refname)"])?;
    let named = listed.lines().filter_map(|line| line.split_once(' '));
    let refs = named.filter(|(_, name)| is_compared(name)).map(|(id, name)| (name.to_string(), id.to_string()));
    let head = match repository.query_text(["symbolic-ref", "HEAD"]) {
        Ok(branch_ref) => format!("ref: {branch_ref}"),
        Err(_) => repository.query_text(["rev-parse", "HEAD"])?,
    };
    // Without a stash there is no such log.
    let stash_log = repository.query_text(["log", "-g", "--format=%H %gs", STASH_REF, "--"]).unwrap_or_default();
    let entries = stash_log.lines().filter_map(|line| line.split_once(' '));
    let stashes = entries.map(|(commit, message)| StashEntry { commit: commit.into(), message: message.into() });
    Ok(CheckoutRefs { head, refs: refs.collect(), stashes: stashes.collect() })
}

/// Reads all refs from their files.
fn read_ref_files(common_dir: &Path) -> BTreeMap<String, String> {
    let packed_bytes = read_regular_file(&common_dir.join("packed-refs"), MAX_PACKED_BYTES).unwrap_or_default();
    let packed_text = String::from_utf8_lossy(&packed_bytes);
    let packed_lines = packed_text.lines().filter(|line| !line.starts_with(['#', '^']));
    let mut refs: BTreeMap<String, String> = packed_lines
        .filter_map(|line| line.split_once(' '))
        .map(|(id, name)| (name.to_string(), id.to_string()))
        .collect();
    let mut pending_paths: Vec<PathBuf> = vec![common_dir.join("refs")];
    while let Some(path) = pending_paths.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            pending_paths.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            continue;
        }
        let ref_name = path.strip_prefix(common_dir).unwrap_or(&path).to_string_lossy().into_owned();
        // The lock of a ref that is being moved is no ref.
        if let (Some(value), false) = (read_line(&path), ref_name.ends_with(".lock")) {
            refs.insert(ref_name, value);
        }
    }
    refs
}

/// Reads the stashes from the log of their ref, in which each is a line: `OLD NEW NAME <ADDRESS> TIME ZONE<tab>MESSAGE`.
fn read_stash_log(common_dir: &Path) -> Vec<StashEntry> {
    let log_bytes =
        read_regular_file(&common_dir.join("logs").join(STASH_REF), MAX_STASH_LOG_BYTES).unwrap_or_default();
    let log_text = String::from_utf8_lossy(&log_bytes);
    let parse_line = |line: &str| {
        let (header, message) = line.split_once('\t')?;
        let commit = header.split(' ').nth(1)?;
        Some(StashEntry { commit: commit.to_string(), message: message.to_string() })
    };
    log_text.lines().rev().filter_map(parse_line).collect()
}

/// Reads the first line of a file; `None` if it is no file.
pub(super) fn read_line(path: &Path) -> Option<String> {
    let bytes = read_regular_file(path, MAX_REF_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().trim_end().to_string())
}

/// Whether this is the name of an object as git writes it.
pub(super) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
