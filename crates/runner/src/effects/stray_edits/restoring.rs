//! Puts back what a stray edit changed. What is there now is never deleted: it is moved to the parked files of the run.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::PathBuf,
};

use tribunal_engine::{
    effect::RestoreOutcome,
    files::{PathState, StrayEdit},
    ids::Hash,
};

use super::describe_state;
use crate::{
    effects::{EffectContext, environment_fault},
    landing::{
        checkpoints::CheckpointStore,
        merging::merge_or_first_conflict,
        parked_files::{move_to_parked, park_file},
    },
    locks,
    project::{
        atomic_files::{FileReplacement, hash_file},
        subject::{find_link_on_path, is_plain_path},
    },
    workspaces::{EntryKind, ScannedEntry},
};

/// Puts back what was there before the stray edit.
pub(in crate::effects) fn restore_stray(context: &EffectContext, stray: &StrayEdit) -> RestoreOutcome {
    match put_back(context, stray) {
        Ok(parked) => RestoreOutcome::Restored { parked: parked.map(|path| path.display().to_string()) },
        Err(cause) => environment_fault(cause.to_string()).into(),
    }
}

/// A path at which something is put back.
struct RestoreTarget<'a> {
    context: &'a EffectContext,
    stray: &'a StrayEdit,
    relative_path: &'a str,
    real_path: PathBuf,
}

/// Returns where what was there is kept now, if anything was.
fn put_back(context: &EffectContext, stray: &StrayEdit) -> io::Result<Option<PathBuf>> {
    let relative_path = stray.path.trim_end_matches('/');
    if relative_path.is_empty() || !is_plain_path(relative_path) {
        return Err(io::Error::other("it is no path of the project"));
    }
    // Writing through a linked directory would change a file outside the project.
    if let Some(link) = find_link_on_path(context.project.root(), relative_path) {
        return Err(io::Error::other(format!("it is behind a symlink ({link})")));
    }
    let real_path = context.project.root().join(relative_path);
    let target = RestoreTarget { context, stray, relative_path, real_path };
    // The current state is read under the lock, so that no landing can change it in between.
    let _alone = locks::lock_user_tree(&context.project.locks_dir())?;
    match &stray.before {
        PathState::Missing => target.move_away(),
        PathState::File { hash: Some(content_hash), mode } => target.restore_file(content_hash, *mode),
        PathState::Link { target: link_target } => target.restore_link(link_target),
        PathState::Directory { mode } => target.restore_directory(*mode),
        PathState::File { hash: None, .. } | PathState::Special | PathState::Files { .. } | PathState::Unwatched => {
            Err(io::Error::other("its previous state was not kept"))
        }
    }
}

impl RestoreTarget<'_> {
    fn current_entry(&self) -> Option<ScannedEntry> {
        ScannedEntry::read_at(&self.real_path)
    }

    /// Moves away what the stray edit put there. Refuses anything else: the user or another process put it there since.
    fn move_away(&self) -> io::Result<Option<PathBuf>> {
        let Some(entry) = self.current_entry() else { return Ok(None) };
        let content_hash = match entry.kind {
            EntryKind::File => hash_file(&self.real_path).ok(),
            _ => None,
        };
        let is_same = match (&self.stray.after, describe_state(Some(&entry), content_hash)) {
            (PathState::Files { .. } | PathState::Directory { .. }, PathState::Directory { .. }) => true,
            (PathState::File { hash, .. }, PathState::File { hash: current_hash, .. }) => *hash == current_hash,
            (after, current) => *after == current,
        };
        if !is_same {
            return Err(io::Error::other("it was changed again since"));
        }
        move_to_parked(&self.context.project, &self.context.run_id, self.relative_path).map(Some)
    }

    fn restore_link(&self, link_target: &str) -> io::Result<Option<PathBuf>> {
        let has_target = |entry: &ScannedEntry| matches!(&entry.kind, EntryKind::Link { target } if target.as_os_str() == link_target);
        if self.current_entry().as_ref().is_some_and(has_target) {
            return Ok(None);
        }
        let parked = self.move_away()?;
        self.create_parent_dirs()?;
        symlink(link_target, &self.real_path)?;
        Ok(parked)
    }

    fn restore_directory(&self, mode: u32) -> io::Result<Option<PathBuf>> {
        match self.current_entry() {
            Some(entry) if entry.kind == EntryKind::Directory => {
                fs::set_permissions(&self.real_path, fs::Permissions::from_mode(mode))?;
                Ok(None)
            }
            _ => {
                let parked = self.move_away()?;
                fs::DirBuilder::new().recursive(true).mode(mode).create(&self.real_path)?;
                Ok(parked)
            }
        }
    }

    fn restore_file(&self, content_hash: &Hash, mode: u32) -> io::Result<Option<PathBuf>> {
        let is_file = self.current_entry().is_none_or(|entry| entry.kind == EntryKind::File);
        let current_bytes = match fs::read(&self.real_path) {
            _ if !is_file => None,
            Ok(current_bytes) => Some(current_bytes),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            // A file without permissions is moved away like anything that is no file.
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => None,
            Err(cause) => return Err(cause),
        };
        if let Some(current_bytes) = &current_bytes
            && Hash::digest_of(current_bytes) == *content_hash
        {
            fs::set_permissions(&self.real_path, fs::Permissions::from_mode(mode))?;
            return Ok(None);
        }
        let bytes_before = self.read_stored(content_hash)?;
        let (restored_bytes, parked) = match current_bytes {
            Some(current_bytes) => {
                let restored_bytes = self.remove_stray_edit(&current_bytes, bytes_before)?;
                // The current text is parked before it is replaced: it may be the only copy.
                let project = &self.context.project;
                let parked = park_file(project, &self.context.run_id, self.relative_path, &current_bytes)?;
                (restored_bytes, Some(parked))
            }
            None => (bytes_before, self.move_away()?),
        };
        self.create_parent_dirs()?;
        FileReplacement::prepare_with_mode(&self.real_path, &restored_bytes, mode)?.put_in_place()?;
        Ok(parked)
    }

    fn create_parent_dirs(&self) -> io::Result<()> {
        self.real_path.parent().map_or(Ok(()), fs::create_dir_all)
    }

    fn read_stored(&self, content_hash: &Hash) -> io::Result<Vec<u8>> {
        let checkpoints = CheckpointStore::for_run(&self.context.project, &self.context.run_id);
        checkpoints
            .read_bytes(content_hash)
            .map_err(|_| io::Error::other("there is no saved copy of the previous version"))
    }

    /// Returns the text without the stray edit. Later edits, by a landing or by the user, stay.
    fn remove_stray_edit(&self, current_bytes: &[u8], bytes_before: Vec<u8>) -> io::Result<Vec<u8>> {
        let stray_hash = self.stray.after.content_hash();
        // Nothing has changed since the edit was noticed, so the earlier content is the result.
        if Some(&Hash::digest_of(current_bytes)) == stray_hash {
            return Ok(bytes_before);
        }
        let inseparable = || io::Error::other("it was edited again since, and the edits overlap");
        let stray_bytes = self.read_stored(stray_hash.ok_or_else(inseparable)?).map_err(|_| inseparable())?;
        let decoded_texts =
            [stray_bytes, current_bytes.to_vec(), bytes_before].map(|bytes| String::from_utf8(bytes).ok());
        let [Some(stray_text), Some(current_text), Some(text_before)] = decoded_texts else {
            return Err(inseparable());
        };
        merge_or_first_conflict(&stray_text, &current_text, &text_before)
            .map(String::into_bytes)
            .map_err(|_| inseparable())
    }
}
