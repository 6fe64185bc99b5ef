//! Describes where work conflicts with its branch, with the texts of both sides.

use tribunal_engine::text::truncate_chars;
use tribunal_workflows::development::commits::{
    ConflictSides, MAX_CONFLICT_SIDE_CHARS, MAX_SHOWN_CONFLICTS, RebaseConflict,
};

use super::{DevelopmentWorkspace, control_git::ControlGit};
use crate::landing::merging::{MergeConflict, list_conflicts};

/// The longest file whose conflicts are looked for.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// The commits of a merge, as git names them.
pub(super) struct MergeSides<'a> {
    pub base: &'a str,
    pub on_branch: &'a str,
    pub in_work: &'a str,
}

/// Describes a merge that git could not make. What is not text has no sides to show, and is only named.
pub(super) fn describe_conflict(
    workspace: &DevelopmentWorkspace,
    sides: &MergeSides<'_>,
    paths: &[&[u8]],
) -> RebaseConflict {
    let control_git = workspace.control_git();
    let all_sides = paths.iter().flat_map(|path| {
        let file = workspace.shown_path(path);
        list_file_conflicts(&control_git, sides, path).into_iter().map(move |conflict| ConflictSides {
            file: file.clone(),
            line: conflict.line_number,
            on_branch: truncate_chars(&conflict.our_text, MAX_CONFLICT_SIDE_CHARS),
            in_work: truncate_chars(&conflict.their_text, MAX_CONFLICT_SIDE_CHARS),
        })
    });
    RebaseConflict {
        sides: all_sides.take(MAX_SHOWN_CONFLICTS).collect(),
        paths: paths.iter().map(|path| workspace.shown_path(path)).collect(),
        directory: workspace.agent_dir().display().to_string(),
        found: None,
    }
}

fn list_file_conflicts(control_git: &ControlGit, sides: &MergeSides<'_>, path: &[u8]) -> Vec<MergeConflict> {
    let Ok(path_text) = std::str::from_utf8(path) else { return Vec::new() };
    let read_version = |commit: &str| -> Option<String> {
        let object_name = format!("{commit}:{path_text}");
        // A side that does not have the file has removed all of its lines, or none was there.
        let bytes = control_git.run(["cat-file", "blob", &object_name]).unwrap_or_default();
        let is_short_text = bytes.len() <= MAX_COMPARED_BYTES && !bytes.contains(&0);
        String::from_utf8(bytes).ok().filter(|_| is_short_text)
    };
    let versions = (read_version(sides.base), read_version(sides.on_branch), read_version(sides.in_work));
    let (Some(base_text), Some(branch_text), Some(work_text)) = versions else { return Vec::new() };
    list_conflicts(&base_text, &branch_text, &work_text)
}
