//! Uncommitted edits of the board, and of other files of bookkeeping that an order names. Users make them while a run works.
//!
//! Such an edit does not keep a checkout from following its branch, if the user and the work changed different lines. The index
//! takes the file of the commit, and the file in the checkout gets the work's change beside the user's edit: `git diff` shows that
//! edit afterwards, and nothing else. Where the index has the new file already, the two-tree merge of `git read-tree` leaves index
//! and file alone, with any content of the file.
//!
//! The index changes first, then the file. Each step can be repeated: merging once more changes nothing. A file that the user has
//! staged is an obstacle like any other, because the index can only have one version of it.

use std::{fs, path::Path};

use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::{commits::Integrate, workspace::PathChange};

use super::{WorkspaceError, git_listings::TreeDifference, special_files::tree_path, user_repository::UserRepository};
use crate::{
    git::run_checked,
    landing::touching_edits::merge_touching_edits,
    project::{Project, locked_edit::edit_file, subject::find_link_on_path},
};

/// The edits of the user's that work can be merged into, in one checkout.
pub(super) struct MergedEdits<'a> {
    repository: &'a UserRepository,
    checkout_path: &'a Path,
    /// The project's root below that of the checkout, with a slash at the end; empty if it is the same.
    project_prefix: &'a str,
    pub request: &'a Integrate,
    files: Vec<MergedFile>,
}

/// A file with an edit of the user's that the work changes, too.
struct MergedFile {
    path: Vec<u8>,
    /// The same path, relative to the project's root.
    project_path: String,
    file_mode: String,
    old_object_id: String,
    new_object_id: String,
    /// The texts of the two commits as they would be in the checkout, with its line ends.
    old_text: String,
    new_text: String,
    /// Whether the index has the new file already, so that an earlier process may have merged the work.
    is_staged: bool,
    replaced: Option<ReplacedText>,
}

/// What was written into a file, and what was there before.
struct ReplacedText {
    before: String,
    after: String,
}

impl<'a> MergedEdits<'a> {
    pub fn new(
        repository: &'a UserRepository,
        checkout_path: &'a Path,
        project_prefix: &'a str,
        request: &'a Integrate,
    ) -> MergedEdits<'a> {
        MergedEdits { repository, checkout_path, project_prefix, request, files: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Takes a file on that is in the way of the work. Returns whether the work can be merged into it; nothing is written yet.
    pub fn accept_file(&mut self, change: &TreeDifference) -> Result<bool, WorkspaceError> {
        let Some(project_path) = self.find_project_path(change) else { return Ok(false) };
        let mut list_index = self.repository.checkout_command(self.checkout_path);
        list_index.args(["ls-files", "--stage", "-z", "--"]).arg(tree_path(Path::new(""), &change.path));
        let index_entries = run_checked(list_index, None)?;
        let has_entry = |object_id: &str| index_entries == format_entry(&change.file_mode, object_id, &change.path);
        let is_staged = has_entry(&change.object_id);
        // Another version in the index was staged by the user, or belongs to a merge.
        if !is_staged && !has_entry(&change.old_object_id) {
            return Ok(false);
        }
        let texts = (self.read_text(&self.request.expected, change)?, self.read_text(&self.request.commit, change)?);
        let (Some(old_text), Some(new_text)) = texts else { return Ok(false) };
        let user_text = fs::read_to_string(tree_path(self.checkout_path, &change.path));
        if !user_text.is_ok_and(|user_text| merge_touching_edits(&old_text, &user_text, &new_text).is_some()) {
            return Ok(false);
        }
        self.files.push(MergedFile {
            path: change.path.clone(),
            project_path,
            file_mode: change.file_mode.clone(),
            old_object_id: change.old_object_id.clone(),
            new_object_id: change.object_id.clone(),
            old_text,
            new_text,
            is_staged,
            replaced: None,
        });
        Ok(true)
    }

    /// Returns the path of a file as the order has it, if it is an ordinary file that may be merged.
    fn find_project_path(&self, change: &TreeDifference) -> Option<String> {
        let path = std::str::from_utf8(&change.path).ok()?;
        let project_path = path.strip_prefix(self.project_prefix)?;
        let is_named = self.request.mergeable.iter().any(|mergeable_path| mergeable_path == project_path);
        let is_modified = change.change == PathChange::Modified
            && change.old_mode == change.file_mode
            && matches!(change.file_mode.as_str(), "100644" | "100755");
        let is_file = || {
            find_link_on_path(self.checkout_path, path).is_none()
                && fs::symlink_metadata(self.checkout_path.join(path)).is_ok_and(|metadata| metadata.is_file())
        };
        (is_named && is_modified && is_file()).then(|| project_path.to_string())
    }

    /// Reads a file of a commit as git would write it into the checkout; `None` if that is not text.
    fn read_text(&self, commit: &CommitId, change: &TreeDifference) -> Result<Option<String>, WorkspaceError> {
        let mut command = self.repository.checkout_command(self.checkout_path);
        let object_name = format!("{commit}:{}", String::from_utf8_lossy(&change.path));
        command.args(["cat-file", "--filters", &object_name]);
        Ok(String::from_utf8(run_checked(command, None)?).ok())
    }

    /// Puts the files of the commit into the index.
    pub fn stage_new_files(&self) -> Result<(), WorkspaceError> {
        self.stage_files(|file| &file.new_object_id)
    }

    fn stage_files(&self, object_id_of: fn(&MergedFile) -> &String) -> Result<(), WorkspaceError> {
        if self.files.is_empty() {
            return Ok(());
        }
        let entries = self.files.iter().map(|file| format_entry(&file.file_mode, object_id_of(file), &file.path));
        let mut command = self.repository.checkout_command(self.checkout_path);
        command.args(["update-index", "-z", "--index-info"]);
        run_checked(command, Some(entries.collect::<Vec<_>>().concat()))?;
        Ok(())
    }

    /// Merges the work into the files of the user. Returns those into which it does not fit any more, because the user has gone on.
    pub fn write_merged_files(&mut self) -> Vec<String> {
        let project = self.checkout_project();
        let mut refused_paths = Vec::new();
        for file in &mut self.files {
            let (old_text, new_text) = (&file.old_text, &file.new_text);
            let mut replaced = None;
            let written = edit_file(&project, &file.project_path, |user_text| {
                let merged_text = merge_touching_edits(old_text, user_text, new_text).ok_or(())?;
                replaced = Some(ReplacedText { before: user_text.to_string(), after: merged_text.clone() });
                Ok::<_, ()>((merged_text, ()))
            });
            match written {
                Ok(()) => file.replaced = replaced,
                // The lock of another program is a reason to wait as well: it is about to write the file.
                Err(_) => refused_paths.push(String::from_utf8_lossy(&file.path).into_owned()),
            }
        }
        refused_paths
    }

    /// Puts index and files back to where they were: the branch has not moved.
    pub fn put_back(&self) -> Result<(), WorkspaceError> {
        self.stage_files(|file| &file.old_object_id)?;
        let project = self.checkout_project();
        for file in &self.files {
            // What cannot be put back now contains everything that the user has written, which is what counts.
            let _ =
                edit_file(&project, &file.project_path, |current_text| Ok::<_, ()>((file.take_back(current_text), ())));
        }
        Ok(())
    }

    fn checkout_project(&self) -> Project {
        Project::from_root(self.checkout_path.join(self.project_prefix))
    }
}

impl MergedFile {
    /// Returns a text of the user's without the change of the work.
    fn take_back(&self, current_text: &str) -> String {
        match &self.replaced {
            // Only our own process can have written the work into it, so the text before that is the user's own.
            Some(replaced) if !self.is_staged && replaced.after == current_text => replaced.before.clone(),
            // Nothing was written yet.
            None if !self.is_staged => current_text.to_string(),
            _ => merge_touching_edits(&self.new_text, current_text, &self.old_text)
                .unwrap_or_else(|| current_text.to_string()),
        }
    }
}

/// Formats an entry of the index as git lists it and reads it.
fn format_entry(file_mode: &str, object_id: &str, path: &[u8]) -> Vec<u8> {
    [format!("{file_mode} {object_id} 0\t").as_bytes(), path, b"\0"].concat()
}
