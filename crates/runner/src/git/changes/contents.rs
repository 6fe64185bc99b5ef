//! Checks what has to be read to be judged: whether a file is UTF-8, an LFS pointer, or a story.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, Read},
};

use super::{
    ChangeError,
    listing::{ChangedEntry, SiftedFiles},
};
use crate::git::{GitReadExtent, GitRepository};

const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Returns why a content cannot be reviewed, if it cannot.
fn unreviewable_reason(file_content: &[u8]) -> Option<&'static str> {
    if file_content.starts_with(LFS_POINTER) {
        Some("Git LFS pointer")
    } else if file_content.contains(&0) {
        Some("binary")
    } else if std::str::from_utf8(file_content).is_err() {
        Some("not valid UTF-8")
    } else {
        None
    }
}

/// Leaves out files that turn out not to be text, and returns which of the others are stories.
pub(super) fn check_contents(
    repository: &GitRepository,
    sifted_files: &mut SiftedFiles,
    is_story: fn(&str, &str) -> bool,
) -> Result<Vec<String>, ChangeError> {
    let id_after = |entry: &ChangedEntry| if entry.is_deleted() { None } else { entry.object_ids[1].clone() };
    let path_by_id: BTreeMap<String, String> = sifted_files
        .reviewable
        .iter()
        .filter_map(|entry| Some((id_after(entry)?, entry.relative_path.clone())))
        .collect();
    let mut reasons_by_id: BTreeMap<String, &'static str> = BTreeMap::new();
    let mut story_paths: BTreeSet<String> = BTreeSet::new();
    let object_ids: BTreeSet<&String> =
        sifted_files.reviewable.iter().flat_map(|entry| entry.object_ids.iter().flatten()).collect();
    // Both versions of a file have to be text; only the new one can be a story.
    read_contents(repository, &object_ids, &mut |object_id, file_content| {
        if let Some(omission_reason) = unreviewable_reason(file_content) {
            reasons_by_id.insert(object_id.to_string(), omission_reason);
        } else if let (Some(relative_path), Ok(content_text)) =
            (path_by_id.get(object_id), std::str::from_utf8(file_content))
            && is_story(relative_path, content_text)
        {
            story_paths.insert(relative_path.clone());
        }
    })?;
    let work_tree_root = repository.work_tree_root().to_path_buf();
    sifted_files.omit_entries(|entry| {
        if let Some(omission_reason) =
            entry.object_ids.iter().flatten().find_map(|object_id| reasons_by_id.get(object_id))
        {
            return Some(omission_reason.to_string());
        }
        if entry.is_empty_and_new(&work_tree_root) {
            return Some("empty file".to_string());
        }
        if !entry.is_in_work_tree() {
            return None;
        }
        // Files that exist only in the work tree are unknown to git, so they are read from disk.
        let file_content = match fs::read(work_tree_root.join(&entry.relative_path)) {
            Ok(file_content) => file_content,
            Err(cause) => return Some(format!("cannot be read: {cause}")),
        };
        if let (None, Ok(content_text)) = (unreviewable_reason(&file_content), std::str::from_utf8(&file_content))
            && is_story(&entry.relative_path, content_text)
        {
            story_paths.insert(entry.relative_path.clone());
        }
        unreviewable_reason(&file_content).map(String::from)
    });
    // A story may have been left out for its other version.
    story_paths.retain(|story| sifted_files.reviewable.iter().any(|entry| entry.relative_path == *story));
    Ok(story_paths.into_iter().collect())
}

/// Reads all contents, one after the other.
fn read_contents(
    repository: &GitRepository,
    object_ids: &BTreeSet<&String>,
    consume: &mut (dyn FnMut(&str, &[u8]) + Send),
) -> Result<(), ChangeError> {
    if object_ids.is_empty() {
        return Ok(());
    }
    let mut command = repository.new_command();
    command.args(["cat-file", "--buffer", "--batch=%(objectname) %(objectsize)"]);
    let request_lines: String = object_ids.iter().map(|object_id| format!("{object_id}\n")).collect();
    let mut read_objects = |git_output: &mut dyn BufRead| {
        let (mut header, mut content) = (String::new(), Vec::new());
        while git_output.read_line(&mut header)? > 0 {
            let parsed_header = header
                .trim_end()
                .split_once(' ')
                .and_then(|(object_id, size_text)| Some((object_id, size_text.parse::<u64>().ok()?)));
            if let Some((object_id, content_size)) = parsed_header {
                // The content, and the line end after it.
                if Read::take(&mut *git_output, content_size + 1).read_to_end(&mut content)? as u64 != content_size + 1
                {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                content.pop();
                consume(object_id, &content);
                content.clear();
            }
            header.clear();
        }
        Ok(GitReadExtent::Complete)
    };
    repository.stream_output(command, Some(request_lines.into_bytes()), &mut read_objects)?;
    Ok(())
}
