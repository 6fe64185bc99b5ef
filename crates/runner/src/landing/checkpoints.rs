//! Checkpoints: the exact bytes of files before and after every landing, so that it can be shown and undone.
//!
//! The journal has only masked texts, so it cannot give bytes back; these files can, and only their owner may read them. A
//! landing is recorded before any of its files is changed: the texts by their hashes, then one record that names them.
//! Nothing stored is ever overwritten. A landing that is tried again, because a file was edited meanwhile or the program was
//! killed, gets another record.
//!
//! An undo has records, too, for as long as it takes: after a crash they tell what it had already done.
//!
//! The purpose of a landing is not stored here: the journal has it under the landing's key (`landings`). Neither is what git
//! gets to see (`landing_repository`).

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tribunal_engine::ids::{Hash, Key, RunId};
use tribunal_json::{Deserialize, Serialize};

use crate::{
    landing::merging::merge_texts,
    project::{Project, atomic_files::write_privately, subject::is_plain_path},
};

/// Identifies a landing of a run: the key of the task that made the change is unique within one segment of the run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckpointKey {
    pub segment: u32,
    pub task_key: Key,
}

impl CheckpointKey {
    fn file_stem(&self) -> String {
        format!("{}.{}", self.segment, self.task_key.as_str().replace('/', "."))
    }
}

/// What was done to one file. A text is `None` if the file does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointChange {
    /// Relative to the project's root, with `/`.
    pub relative_path: String,
    pub text_before: Option<String>,
    pub text_after: Option<String>,
}

impl CheckpointChange {
    /// Whether a file with this text already contains the change.
    pub fn is_applied_in(&self, current_text: Option<&str>) -> bool {
        match (&self.text_before, &self.text_after) {
            (text_before, text_after) if text_before == text_after => false,
            (Some(text_before), Some(text_after)) => {
                // The change is applied if merging it once more makes no difference.
                current_text.is_some_and(|current_text| {
                    merge_texts(text_before, current_text, text_after).as_deref() == Ok(current_text)
                })
            }
            (_, text_after) => text_after.as_deref() == current_text,
        }
    }
}

/// An undo that was begun and is not known to be done.
#[derive(Debug)]
pub(crate) struct BegunUndo {
    pub undo_number: u32,
    pub landings: Vec<CheckpointKey>,
    pub changes: Vec<CheckpointChange>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CheckpointFile {
    path: String,
    before: Option<Hash>,
    after: Option<Hash>,
    /// The permissions of a deleted file, so that it can be restored with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
}

impl CheckpointFile {
    fn matches_change(&self, change: &CheckpointChange) -> bool {
        let hash_text = |text: &Option<String>| text.as_ref().map(|text| Hash::digest_of(text.as_bytes()));
        self.path == change.relative_path
            && self.before == hash_text(&change.text_before)
            && self.after == hash_text(&change.text_after)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct CheckpointRecord {
    files: Vec<CheckpointFile>,
    /// The landings that an undo covers; empty in the record of a landing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    landings: Vec<(u32, Key)>,
}

/// The checkpoints of one run.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointStore {
    project: Project,
    directory: PathBuf,
}

impl CheckpointStore {
    pub fn for_run(project: &Project, run_id: &RunId) -> CheckpointStore {
        CheckpointStore { project: project.clone(), directory: project.checkpoints_dir(run_id) }
    }

    /// Records all files of a landing. It is durable on return. The number identifies the record for
    /// [`CheckpointStore::forget_landing`].
    pub fn record_landing(
        &self,
        checkpoint_key: &CheckpointKey,
        changed_files: &[CheckpointChange],
    ) -> io::Result<u32> {
        let known_records = self.read_records(checkpoint_key)?;
        let is_same_landing = |last_record: &CheckpointRecord| {
            last_record.files.len() == changed_files.len()
                && last_record
                    .files
                    .iter()
                    .zip(changed_files)
                    .all(|(checkpoint_file, change)| checkpoint_file.matches_change(change))
        };
        // The same landing was recorded before a crash, so its record is used again.
        if known_records.last().is_some_and(is_same_landing) {
            return Ok(known_records.len() as u32);
        }
        let record_number = known_records.len() as u32 + 1;
        self.write_record(&self.record_path(checkpoint_key, record_number), changed_files, &[])?;
        Ok(record_number)
    }

    /// Removes the record of a landing that did not take place.
    pub fn forget_landing(&self, checkpoint_key: &CheckpointKey, record_number: u32) -> io::Result<()> {
        fs::remove_file(self.record_path(checkpoint_key, record_number))
    }

    /// Returns what a landing changed, in order. Of several attempts the last one landed. An earlier change of a file counts only
    /// if the next attempt found it in the file, or if no later attempt touched the file.
    pub fn landing_changes(&self, checkpoint_key: &CheckpointKey) -> io::Result<Vec<CheckpointChange>> {
        let mut attempts = Vec::new();
        for record in self.read_records(checkpoint_key)? {
            attempts.push(self.read_changes(&record)?);
        }
        let mut effective_changes: Vec<CheckpointChange> = Vec::new();
        for (index, attempt_changes) in attempts.iter().enumerate() {
            for change in attempt_changes {
                let mut later_changes = attempts[index + 1..].iter().flatten();
                let next_change = later_changes.find(|next_change| next_change.relative_path == change.relative_path);
                if next_change.is_none_or(|next_change| change.is_applied_in(next_change.text_before.as_deref())) {
                    effective_changes.push(change.clone());
                }
            }
        }
        Ok(effective_changes)
    }

    /// Returns the permissions of files that a landing deleted.
    pub fn deleted_file_modes(&self, checkpoint_key: &CheckpointKey) -> io::Result<BTreeMap<String, u32>> {
        let files = self.read_records(checkpoint_key)?.into_iter().flat_map(|record| record.files);
        // The record may have come with a clone, so only the permission bits are used, never setuid and the like.
        Ok(files.filter_map(|checkpoint_file| Some((checkpoint_file.path, checkpoint_file.mode? & 0o777))).collect())
    }

    /// Stores any bytes under their hash beside the texts.
    pub fn store_bytes(&self, bytes: &[u8]) -> io::Result<Hash> {
        self.create_directories()?;
        let text_hash = Hash::digest_of(bytes);
        // A file that matches its own hash is complete.
        if self.read_bytes(&text_hash).is_err() {
            write_privately(&self.text_path(&text_hash), bytes)?;
        }
        Ok(text_hash)
    }

    pub fn read_bytes(&self, text_hash: &Hash) -> io::Result<Vec<u8>> {
        // The record may have come with a clone, and its hash becomes a file name here.
        if !text_hash.as_str().chars().all(|character| character.is_ascii_alphanumeric()) {
            return Err(damaged_error(text_hash));
        }
        let bytes = self.read_own_file(&self.text_path(text_hash))?;
        if Hash::digest_of(&bytes) == *text_hash { Ok(bytes) } else { Err(damaged_error(text_hash)) }
    }

    /// Whether these bytes are stored.
    pub fn has_bytes(&self, text_hash: &Hash) -> bool {
        self.read_bytes(text_hash).is_ok()
    }

    /// Lists the texts that runs of this project have written into files, or have restored by an undo. `None` stands for a
    /// deleted file.
    pub fn list_own_texts(project: &Project) -> OwnTexts {
        let mut own_texts = OwnTexts::new();
        let run_dirs = fs::read_dir(project.home_dir().join("checkpoints")).into_iter().flatten().flatten();
        for directory in run_dirs.map(|run_dir| run_dir.path()) {
            let checkpoint_store = CheckpointStore { project: project.clone(), directory: directory.clone() };
            let record_paths = fs::read_dir(directory).into_iter().flatten().flatten().map(|item| item.path());
            let record_paths =
                record_paths.filter(|record_path| record_path.extension().is_some_and(|extension| extension == "json"));
            for record_path in record_paths {
                let Ok(record) = checkpoint_store.parse_record(&record_path) else { continue };
                // An undo writes the earlier text back, so that text is also ours.
                let is_undone = is_record_undone(&record_path);
                for checkpoint_file in record.files {
                    let texts = own_texts.entry(checkpoint_file.path).or_default();
                    texts.extend(is_undone.then_some(checkpoint_file.before));
                    texts.push(checkpoint_file.after);
                }
            }
        }
        own_texts
    }

    /// Records that an undo begins, with what it does to which files. The number identifies it for `end_undo`.
    pub fn begin_undo(&self, landings: &[CheckpointKey], changed_files: &[CheckpointChange]) -> io::Result<u32> {
        let undo_number = self.undo_numbers()?.last().map_or(1, |last_number| last_number + 1);
        self.write_record(&self.undo_record_path(undo_number), changed_files, landings)?;
        Ok(undo_number)
    }

    pub fn end_undo(&self, undo_number: u32) -> io::Result<()> {
        fs::remove_file(self.undo_record_path(undo_number))
    }

    /// Returns the undos that were begun and not finished, in order.
    pub fn unfinished_undos(&self) -> io::Result<Vec<BegunUndo>> {
        let read_undo = |undo_number: u32| {
            let record = self.parse_record(&self.undo_record_path(undo_number))?;
            let changed_files = self.read_changes(&record)?;
            let landings =
                record.landings.into_iter().map(|(segment, task_key)| CheckpointKey { segment, task_key }).collect();
            Ok(BegunUndo { undo_number, landings, changes: changed_files })
        };
        self.undo_numbers()?.into_iter().map(read_undo).collect()
    }

    pub fn is_undone(&self, checkpoint_key: &CheckpointKey) -> bool {
        self.undone_path(checkpoint_key).exists()
    }

    pub fn mark_undone(&self, checkpoint_key: &CheckpointKey) -> io::Result<()> {
        write_privately(&self.undone_path(checkpoint_key), b"")
    }

    fn read_records(&self, checkpoint_key: &CheckpointKey) -> io::Result<Vec<CheckpointRecord>> {
        let mut records = Vec::new();
        for record_number in 1.. {
            match self.parse_record(&self.record_path(checkpoint_key, record_number)) {
                Ok(record) => records.push(record),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => break,
                Err(cause) => return Err(cause),
            }
        }
        Ok(records)
    }

    fn parse_record(&self, record_path: &Path) -> io::Result<CheckpointRecord> {
        let record: CheckpointRecord =
            serde_json::from_slice(&self.read_own_file(record_path)?).map_err(io::Error::other)?;
        // A record may have come with a clone and must not make us write outside the reviewed files.
        match record.files.iter().find(|checkpoint_file| !is_landable_path(&checkpoint_file.path)) {
            Some(checkpoint_file) => {
                Err(io::Error::other(format!("it contains {}, which a run must not change", checkpoint_file.path)))
            }
            None => Ok(record),
        }
    }

    fn read_changes(&self, record: &CheckpointRecord) -> io::Result<Vec<CheckpointChange>> {
        let read_optional_text =
            |text_hash: &Option<Hash>| text_hash.as_ref().map(|text_hash| self.read_text(text_hash)).transpose();
        let to_change = |checkpoint_file: &CheckpointFile| {
            Ok(CheckpointChange {
                relative_path: checkpoint_file.path.clone(),
                text_before: read_optional_text(&checkpoint_file.before)?,
                text_after: read_optional_text(&checkpoint_file.after)?,
            })
        };
        record.files.iter().map(to_change).collect()
    }

    /// Writes the texts first and the record last, so that a record never names a missing text.
    fn write_record(
        &self,
        record_path: &Path,
        changed_files: &[CheckpointChange],
        landings: &[CheckpointKey],
    ) -> io::Result<()> {
        self.create_directories()?;
        let store_text =
            |text: &Option<String>| text.as_ref().map(|text| self.store_bytes(text.as_bytes())).transpose();
        let mut checkpoint_files = Vec::new();
        // Only a deleted file needs its mode: an existing one keeps its own.
        for checkpoint_change in changed_files {
            let deleted_mode = if checkpoint_change.text_after.is_none() {
                self.file_mode(&checkpoint_change.relative_path)
            } else {
                None
            };
            let (hash_before, hash_after) =
                (store_text(&checkpoint_change.text_before)?, store_text(&checkpoint_change.text_after)?);
            checkpoint_files.push(CheckpointFile {
                path: checkpoint_change.relative_path.clone(),
                before: hash_before,
                after: hash_after,
                mode: deleted_mode,
            });
        }
        let landings =
            landings.iter().map(|checkpoint_key| (checkpoint_key.segment, checkpoint_key.task_key.clone())).collect();
        let record_json =
            serde_json::to_vec(&CheckpointRecord { files: checkpoint_files, landings }).map_err(io::Error::other)?;
        write_privately(record_path, &record_json)
    }

    fn file_mode(&self, relative_path: &str) -> Option<u32> {
        let metadata = fs::symlink_metadata(self.project.tree_root().join(relative_path)).ok()?;
        metadata.is_file().then(|| metadata.permissions().mode() & 0o777)
    }

    fn read_text(&self, text_hash: &Hash) -> io::Result<String> {
        String::from_utf8(self.read_bytes(text_hash)?).map_err(|_| damaged_error(text_hash))
    }

    /// Returns the numbers of the undos that were begun, in order.
    fn undo_numbers(&self) -> io::Result<Vec<u32>> {
        let dir_entries = match fs::read_dir(&self.directory) {
            Ok(dir_entries) => dir_entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(cause),
        };
        let parse_number = |name: &str| name.strip_prefix("undo.")?.strip_suffix(".json")?.parse::<u32>().ok();
        let mut numbers: Vec<u32> =
            dir_entries.flatten().filter_map(|dir_entry| parse_number(dir_entry.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads one of our own files. A link in its place was created by something else and is refused.
    fn read_own_file(&self, own_path: &Path) -> io::Result<Vec<u8>> {
        let metadata = fs::symlink_metadata(own_path)?;
        if !metadata.is_file() || self.project.resolve_outside(own_path).is_some() {
            return Err(io::Error::other("it is not a regular file inside the project"));
        }
        fs::read(own_path)
    }

    fn create_directories(&self) -> io::Result<()> {
        let texts_dir = self.directory.join("texts");
        if let Some(real_target) = self.project.resolve_outside(&texts_dir) {
            let message =
                format!("{} points outside the project, to {}", self.directory.display(), real_target.display());
            return Err(io::Error::other(message));
        }
        if texts_dir.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&texts_dir)?;
        // The directory entries have to be as durable as the files in them.
        let home_dir = self.project.home_dir();
        for directory in texts_dir.ancestors().skip(1).take_while(|directory| directory.starts_with(&home_dir)) {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }

    fn text_path(&self, text_hash: &Hash) -> PathBuf {
        self.directory.join("texts").join(text_hash.as_str())
    }

    fn record_path(&self, checkpoint_key: &CheckpointKey, record_number: u32) -> PathBuf {
        self.directory.join(format!("{}.{record_number}.json", checkpoint_key.file_stem()))
    }

    /// Returns the path of an undo's record. No landing has such a name: those begin with a number.
    fn undo_record_path(&self, undo_number: u32) -> PathBuf {
        self.directory.join(format!("undo.{undo_number}.json"))
    }

    fn undone_path(&self, checkpoint_key: &CheckpointKey) -> PathBuf {
        self.directory.join(format!("{}.undone", checkpoint_key.file_stem()))
    }
}

/// The texts that were written, by relative path.
pub(crate) type OwnTexts = BTreeMap<String, Vec<Option<Hash>>>;

/// Whether a landing may change this path. A record may have come with a clone, so files of git and Tribunal are excluded.
fn is_landable_path(relative_path: &str) -> bool {
    let is_own_directory = |path_part: &str| {
        [".git", ".tribunal"].iter().any(|own_directory| path_part.eq_ignore_ascii_case(own_directory))
    };
    !relative_path.is_empty() && is_plain_path(relative_path) && !relative_path.split('/').any(is_own_directory)
}

fn damaged_error(text_hash: &Hash) -> io::Error {
    io::Error::other(format!("the stored text {} is corrupt", text_hash.short_hex()))
}

/// Whether the landing of a record (`3.key.1.json`) was undone.
fn is_record_undone(record_path: &Path) -> bool {
    // Two extensions go: the number of the record and `.json`.
    let undone_marker = record_path.with_extension("").with_extension("undone");
    undone_marker.exists()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, slice};

    use super::*;

    fn new_checkpoints() -> (tempfile::TempDir, CheckpointStore, CheckpointKey) {
        let project_root = tempfile::tempdir().unwrap();
        let project = Project::from_root(project_root.path().join("project"));
        project.prepare_home().unwrap();
        let checkpoints = CheckpointStore::for_run(&project, &RunId::new("plan-aaaa"));
        (project_root, checkpoints, CheckpointKey { segment: 3, task_key: Key::new("round-1/fix-1/fix/1") })
    }

    fn plan_change(text_before: &str, text_after: &str) -> CheckpointChange {
        file_change("plan.md", Some(text_before), Some(text_after))
    }

    fn file_change(relative_path: &str, text_before: Option<&str>, text_after: Option<&str>) -> CheckpointChange {
        CheckpointChange {
            relative_path: relative_path.into(),
            text_before: text_before.map(String::from),
            text_after: text_after.map(String::from),
        }
    }

    #[test]
    fn stored_texts_come_back_byte_for_byte_and_only_their_owner_may_read_them() {
        let (_root, checkpoints, checkpoint_key) = new_checkpoints();
        let change = plan_change("one\r\ntwo", "one\r\nzwei\u{feff}");
        checkpoints.record_landing(&checkpoint_key, slice::from_ref(&change)).unwrap();
        assert_eq!(checkpoints.landing_changes(&checkpoint_key).unwrap(), [change]);
        let texts = checkpoints.directory.join("texts");
        for item in fs::read_dir(&texts).unwrap().chain(fs::read_dir(&checkpoints.directory).unwrap()).flatten() {
            let metadata = item.metadata().unwrap();
            let mode = if metadata.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(metadata.permissions().mode() & 0o777, mode, "{:?}", item.path());
        }
    }

    #[test]
    fn the_same_landing_twice_is_one() {
        let (_root, checkpoints, checkpoint_key) = new_checkpoints();
        let change = plan_change("1\n", "2\n");
        assert_eq!(checkpoints.record_landing(&checkpoint_key, slice::from_ref(&change)).unwrap(), 1);
        assert_eq!(checkpoints.record_landing(&checkpoint_key, slice::from_ref(&change)).unwrap(), 1);
        assert_eq!(checkpoints.landing_changes(&checkpoint_key).unwrap(), [change]);
    }

    #[test]
    fn a_try_that_was_killed_before_the_rename_does_not_count_and_one_killed_after_it_does() {
        let first = plan_change("1\n2\n3\n4\n", "one\n2\n3\n4\n");
        // The file was edited before the run continued.
        let (not_landed, landed) = (
            plan_change("1\n2\n3\nmine\n", "one\n2\n3\nmine\n"),
            plan_change("one\n2\n3\nmine\n", "one\n2\n3\nmine\n"),
        );
        let (_root, checkpoints, checkpoint_key) = new_checkpoints();
        checkpoints.record_landing(&checkpoint_key, slice::from_ref(&first)).unwrap();
        checkpoints.record_landing(&checkpoint_key, slice::from_ref(&not_landed)).unwrap();
        assert_eq!(checkpoints.landing_changes(&checkpoint_key).unwrap(), [not_landed]);

        // The same task in a later segment is a different landing.
        let checkpoint_key = CheckpointKey { segment: 4, ..checkpoint_key };
        checkpoints.record_landing(&checkpoint_key, slice::from_ref(&first)).unwrap();
        checkpoints.record_landing(&checkpoint_key, slice::from_ref(&landed)).unwrap();
        assert_eq!(checkpoints.landing_changes(&checkpoint_key).unwrap(), [first, landed]);
    }

    #[test]
    fn tampered_texts_and_records_are_refused() {
        let (project_root, checkpoints, checkpoint_key) = new_checkpoints();
        checkpoints.record_landing(&checkpoint_key, &[plan_change("1\n", "2\n")]).unwrap();
        let text = checkpoints.text_path(&Hash::digest_of(b"1\n"));
        fs::write(&text, "other\n").unwrap();
        assert!(checkpoints.landing_changes(&checkpoint_key).unwrap_err().to_string().contains("is corrupt"));
        fs::remove_file(&text).unwrap();
        fs::write(project_root.path().join("outside"), "1\n").unwrap();
        symlink(project_root.path().join("outside"), &text).unwrap();
        assert!(checkpoints.landing_changes(&checkpoint_key).is_err());
        let error_for_path = |relative_path: &str| {
            let record = format!(r#"{{"files":[{{"path":"{relative_path}","before":"../../x","after":"y"}}]}}"#);
            fs::write(checkpoints.record_path(&checkpoint_key, 1), record).unwrap();
            checkpoints.landing_changes(&checkpoint_key).unwrap_err().to_string()
        };
        assert!(error_for_path("plan.md").contains("is corrupt"));
        for relative_path in
            ["", "../plan.md", "/etc/hosts", ".git/hooks/post-commit", "sub/.GIT/config", ".tribunal/locks/x"]
        {
            assert_eq!(
                error_for_path(relative_path),
                format!("it contains {relative_path}, which a run must not change")
            );
        }
    }

    #[test]
    fn all_files_of_a_landing_are_one_record_and_what_it_deletes_keeps_its_permissions() {
        let (_root, checkpoints, checkpoint_key) = new_checkpoints();
        let old = checkpoints.project.root().join("old.sh");
        fs::write(&old, "x\n").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o750)).unwrap();
        let all = [
            file_change("old.sh", Some("x\n"), None),
            file_change("plan.md", Some("1\n"), Some("2\n")),
            file_change("src/new.rs", None, Some("")),
        ];
        assert_eq!(checkpoints.record_landing(&checkpoint_key, &all).unwrap(), 1);
        fs::remove_file(&old).unwrap();
        assert_eq!(
            checkpoints.record_landing(&checkpoint_key, &all).unwrap(),
            1,
            "the same once more, when it has landed"
        );
        assert_eq!(checkpoints.landing_changes(&checkpoint_key).unwrap(), all);
        assert_eq!(
            checkpoints.deleted_file_modes(&checkpoint_key).unwrap(),
            BTreeMap::from([("old.sh".to_string(), 0o750)])
        );
        checkpoints.forget_landing(&checkpoint_key, 1).unwrap();
        assert_eq!(checkpoints.landing_changes(&checkpoint_key).unwrap(), []);
    }

    #[test]
    fn a_landing_killed_between_two_of_its_files_counts_each_of_them_once() {
        let (_root, checkpoints, checkpoint_key) = new_checkpoints();
        let created = file_change("new.rs", None, Some("n\n"));
        let gone = file_change("old.rs", Some("o\n"), None);
        let (first, second) = (plan_change("1\n", "2\n"), file_change("b.md", Some("1\n"), Some("2\n")));
        checkpoints
            .record_landing(&checkpoint_key, &[created.clone(), gone.clone(), first.clone(), second.clone()])
            .unwrap();
        // It had replaced the first text; `b.md` was edited since. The second attempt names only what was left to do.
        let already_landed = plan_change("2\n", "2\n");
        let edited = file_change("b.md", Some("1\nmine\n"), Some("2\nmine\n"));
        checkpoints.record_landing(&checkpoint_key, &[already_landed.clone(), edited.clone()]).unwrap();
        assert_eq!(
            checkpoints.landing_changes(&checkpoint_key).unwrap(),
            [created, gone, first, already_landed, edited]
        );
    }

    #[test]
    fn any_bytes_are_kept_and_come_back() {
        let (_root, checkpoints, _) = new_checkpoints();
        let text_hash = checkpoints.store_bytes(b"\x00\xff\r\n").unwrap();
        assert_eq!(checkpoints.read_bytes(&text_hash).unwrap(), b"\x00\xff\r\n");
        assert_eq!(checkpoints.store_bytes(b"\x00\xff\r\n").unwrap(), text_hash);
        fs::write(checkpoints.text_path(&text_hash), "cut").unwrap();
        assert!(checkpoints.read_bytes(&text_hash).unwrap_err().to_string().contains("is corrupt"));
    }

    #[test]
    fn taking_back_that_was_begun_is_known_until_it_is_done() {
        let (_root, checkpoints, checkpoint_key) = new_checkpoints();
        assert!(checkpoints.unfinished_undos().unwrap().is_empty());
        let change = plan_change("2\n", "1\n");
        let landings = slice::from_ref(&checkpoint_key);
        assert_eq!(checkpoints.begin_undo(landings, slice::from_ref(&change)).unwrap(), 1);
        assert_eq!(checkpoints.begin_undo(landings, &[]).unwrap(), 2);
        checkpoints.end_undo(1).unwrap();
        assert_eq!(checkpoints.begin_undo(landings, slice::from_ref(&change)).unwrap(), 3);
        let started_at = checkpoints.unfinished_undos().unwrap();
        assert_eq!(started_at.iter().map(|begun| begun.undo_number).collect::<Vec<u32>>(), [2, 3]);
        assert_eq!((&started_at[1].landings, &started_at[1].changes), (&vec![checkpoint_key], &vec![change]));
    }
}
