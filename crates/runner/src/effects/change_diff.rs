//! Renders a change as a unified diff: from the texts of its base to those of a workspace.
//!
//! `git diff` is deliberately not used: the diff has to show the very texts that reviewers quote and fixers repair, regardless
//! of the line ends, filters and new files that the user's git knows.

use std::{collections::BTreeMap, fs, io, path::Path};

use tribunal_workflows::findings::subject::{ChangedPath, CodeChange};

use super::EffectContext;
use crate::{
    git::GitError,
    landing::line_diff::render_unified_diff,
    workspaces::{TaskWorkspace, contents, find_blob_ids},
};

/// The name of the file beside a workspace that holds the diff of its change.
pub(super) const DIFF_FILE: &str = "diff";

/// Renders the diff of a change whose new side is this workspace, in the order of its files.
pub(super) fn diff_change(
    context: &EffectContext,
    workspace: &TaskWorkspace,
    change: &CodeChange,
) -> io::Result<String> {
    let base_texts = read_base_texts(context.project.root(), change)?;
    let mut diff_text = String::new();
    for changed_file in &change.files {
        let new_text = match workspace.read_base(&changed_file.path)? {
            Some(bytes) => Some(decode_utf8(&changed_file.path, bytes)?),
            None => None,
        };
        diff_text.push_str(&diff_file(
            changed_file,
            base_texts.get(&changed_file.path).map(String::as_str),
            new_text.as_deref(),
        ));
    }
    Ok(diff_text)
}

fn diff_file(changed_file: &ChangedPath, old_text: Option<&str>, new_text: Option<&str>) -> String {
    let side_name = |side: &str, relative_path: &str, exists: bool| {
        if exists { format!("{side}/{relative_path}") } else { "/dev/null".to_string() }
    };
    let old_name = side_name("a", changed_file.from.as_ref().unwrap_or(&changed_file.path), old_text.is_some());
    let new_name = side_name("b", &changed_file.path, new_text.is_some());
    // The user's line ends are not part of a change.
    let normalize_line_ends = |text: Option<&str>| text.unwrap_or_default().replace("\r\n", "\n");
    render_unified_diff(&old_name, &new_name, &normalize_line_ends(old_text), &normalize_line_ends(new_text))
}

pub(super) fn decode_utf8(relative_path: &str, bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::other(format!("{relative_path} is not valid UTF-8")))
}

/// Reads the files as they were before the change, keyed by their new paths. Files that did not exist or were not text are
/// missing. This takes two git processes, however many files there are.
fn read_base_texts(project_root: &Path, change: &CodeChange) -> io::Result<BTreeMap<String, String>> {
    let mut base_texts = BTreeMap::new();
    if change.base.is_empty() || change.files.is_empty() {
        return Ok(base_texts);
    }
    let old_path = |changed_file: &ChangedPath| changed_file.from.as_ref().unwrap_or(&changed_file.path).clone();
    let old_paths: Vec<String> = change.files.iter().map(old_path).collect();
    let git_error = |cause: GitError| io::Error::other(format!("could not read the base revision from git: {cause}"));
    let objects = find_blob_ids(project_root, &change.base, &old_paths).map_err(git_error)?;
    let known_files: Vec<(&ChangedPath, &String)> = change
        .files
        .iter()
        .filter_map(|changed_file| Some((changed_file, objects.get(&old_path(changed_file))?)))
        .collect();
    let object_names: Vec<&str> = known_files.iter().map(|(_, object)| object.as_str()).collect();
    // Git returns the objects in the order in which they were asked for, so the paths are consumed in step.
    let mut new_paths = known_files.iter().map(|(changed_file, _)| changed_file.path.clone());
    contents(project_root, &object_names, |bytes| {
        if let (Some(relative_path), Ok(text)) = (new_paths.next(), String::from_utf8(bytes.to_vec())) {
            base_texts.insert(relative_path, text);
        }
        Ok(())
    })?;
    Ok(base_texts)
}

/// Reads the diff that was written beside a workspace.
pub(super) fn read_stored_diff(workspace: &TaskWorkspace) -> io::Result<String> {
    fs::read_to_string(workspace.directory().join(DIFF_FILE))
}
