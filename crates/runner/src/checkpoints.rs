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
//! gets to see (`git_refs`).

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_core::ids::{Hash, Key, RunId};

use crate::{files::write_privately, merging::three_way, project::Project, subject::is_plain};

/// Identifies a landing of a run: the key of the task that made the change is unique within one stretch of the run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub stretch: u32,
    pub by: Key,
}

impl At {
    fn name(&self) -> String {
        format!("{}.{}", self.stretch, self.by.as_str().replace('/', "."))
    }
}

/// What was done to one file. A text is `None` if the file does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Relative to the project's root, with `/`.
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Change {
    /// Whether a file with this text already contains the change.
    pub fn is_in(&self, text: Option<&str>) -> bool {
        match (&self.before, &self.after) {
            (before, after) if before == after => false,
            (Some(before), Some(after)) => {
                // The change is applied if merging it once more makes no difference.
                text.is_some_and(|text| three_way(before, text, after).as_deref() == Ok(text))
            }
            (_, after) => after.as_deref() == text,
        }
    }
}

/// An undo that was begun and is not known to be done.
#[derive(Debug)]
pub(crate) struct Begun {
    pub number: u32,
    pub landings: Vec<At>,
    pub changes: Vec<Change>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    path: String,
    before: Option<Hash>,
    after: Option<Hash>,
    /// The permissions of a deleted file, so that it can be restored with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
}

impl Kept {
    fn is_of(&self, change: &Change) -> bool {
        let hash = |text: &Option<String>| text.as_ref().map(|text| Hash::of(text.as_bytes()));
        self.path == change.path && self.before == hash(&change.before) && self.after == hash(&change.after)
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "Recorded")]
struct Record {
    files: Vec<Kept>,
    /// The landings that an undo covers; empty in the record of a landing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    landings: Vec<(u32, Key)>,
}

/// A landing of one file was once recorded without a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded {
    Several {
        files: Vec<Kept>,
        #[serde(default)]
        landings: Vec<(u32, Key)>,
    },
    One(Kept),
}

impl From<Recorded> for Record {
    fn from(recorded: Recorded) -> Record {
        match recorded {
            Recorded::Several { files, landings } => Record { files, landings },
            Recorded::One(file) => Record { files: vec![file], landings: Vec::new() },
        }
    }
}

/// The checkpoints of one run.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    project: Project,
    folder: PathBuf,
}

impl Checkpoints {
    pub fn of(project: &Project, run: &RunId) -> Checkpoints {
        Checkpoints { project: project.clone(), folder: project.checkpoints(run) }
    }

    /// Records all files of a landing. It is durable on return. The number identifies the record for
    /// [`CheckpointStore::forget_landing`].
    pub fn keep(&self, at: &At, changes: &[Change]) -> io::Result<u32> {
        let known = self.records(at)?;
        let is_last = |last: &Record| {
            last.files.len() == changes.len()
                && last.files.iter().zip(changes).all(|(kept, change)| kept.is_of(change))
        };
        // The same landing was recorded before a crash, so its record is used again.
        if known.last().is_some_and(is_last) {
            return Ok(known.len() as u32);
        }
        let number = known.len() as u32 + 1;
        self.write(&self.record_path(at, number), changes, &[])?;
        Ok(number)
    }

    /// Removes the record of a landing that did not take place.
    pub fn forget(&self, at: &At, number: u32) -> io::Result<()> {
        fs::remove_file(self.record_path(at, number))
    }

    /// Returns what a landing changed, in order. Of several attempts the last one landed. An earlier change of a file counts only
    /// if the next attempt found it in the file, or if no later attempt touched the file.
    pub fn changes(&self, at: &At) -> io::Result<Vec<Change>> {
        let mut tries = Vec::new();
        for record in self.records(at)? {
            tries.push(self.read_changes(&record)?);
        }
        let mut changes: Vec<Change> = Vec::new();
        for (index, these) in tries.iter().enumerate() {
            for change in these {
                let mut later = tries[index + 1..].iter().flatten();
                let next = later.find(|next| next.path == change.path);
                if next.is_none_or(|next| change.is_in(next.before.as_deref())) {
                    changes.push(change.clone());
                }
            }
        }
        Ok(changes)
    }

    /// Returns the permissions of files that a landing deleted.
    pub fn modes(&self, at: &At) -> io::Result<BTreeMap<String, u32>> {
        let files = self.records(at)?.into_iter().flat_map(|record| record.files);
        // The record may have come with a clone, so only the permission bits are used, never setuid and the like.
        Ok(files.filter_map(|kept| Some((kept.path, kept.mode? & 0o777))).collect())
    }

    /// Stores any bytes under their hash beside the texts.
    pub fn keep_bytes(&self, bytes: &[u8]) -> io::Result<Hash> {
        self.make_folders()?;
        let hash = Hash::of(bytes);
        // A file that matches its own hash is complete.
        if self.bytes(&hash).is_err() {
            write_privately(&self.text_path(&hash), bytes)?;
        }
        Ok(hash)
    }

    pub fn bytes(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        // The record may have come with a clone, and its hash becomes a file name here.
        if !hash.as_str().chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(damaged(hash));
        }
        let bytes = self.read(&self.text_path(hash))?;
        if Hash::of(&bytes) == *hash { Ok(bytes) } else { Err(damaged(hash)) }
    }

    /// Whether a run of this project has written this text into this file, or has restored it by an undo.
    pub fn is_known(project: &Project, path: &str, text: Option<&Hash>) -> bool {
        let runs = fs::read_dir(project.home().join("checkpoints")).into_iter().flatten().flatten();
        let of_run = |folder: PathBuf| {
            let kept = Checkpoints { project: project.clone(), folder: folder.clone() };
            let records = fs::read_dir(folder).into_iter().flatten().flatten().map(|item| item.path());
            let records = records.filter(|path| path.extension().is_some_and(|end| end == "json"));
            records.into_iter().any(|record| {
                // An undo writes the earlier text back, so that text is also ours.
                let undone = undone_beside(&record);
                let fits = |one: &Kept| {
                    one.path == path && (one.after.as_ref() == text || undone && one.before.as_ref() == text)
                };
                kept.parse(&record).is_ok_and(|record| record.files.iter().any(fits))
            })
        };
        runs.into_iter().any(|run| of_run(run.path()))
    }

    /// Records that an undo begins, with what it does to which files. The number identifies it for `end_undo`.
    pub fn begin(&self, landings: &[At], changes: &[Change]) -> io::Result<u32> {
        let number = self.numbers()?.last().map_or(1, |last| last + 1);
        self.write(&self.begun_path(number), changes, landings)?;
        Ok(number)
    }

    pub fn end(&self, number: u32) -> io::Result<()> {
        fs::remove_file(self.begun_path(number))
    }

    /// Returns the undos that were begun and not finished, in order.
    pub fn begun(&self) -> io::Result<Vec<Begun>> {
        let read = |number: u32| {
            let record = self.parse(&self.begun_path(number))?;
            let changes = self.read_changes(&record)?;
            let landings = record.landings.into_iter().map(|(stretch, by)| At { stretch, by }).collect();
            Ok(Begun { number, landings, changes })
        };
        self.numbers()?.into_iter().map(read).collect()
    }

    pub fn is_undone(&self, at: &At) -> bool {
        self.undone_path(at).exists()
    }

    pub fn mark_undone(&self, at: &At) -> io::Result<()> {
        write_privately(&self.undone_path(at), b"")
    }

    fn records(&self, at: &At) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        for number in 1.. {
            match self.parse(&self.record_path(at, number)) {
                Ok(record) => records.push(record),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => break,
                Err(cause) => return Err(cause),
            }
        }
        Ok(records)
    }

    fn parse(&self, path: &Path) -> io::Result<Record> {
        let record: Record = serde_json::from_slice(&self.read(path)?).map_err(io::Error::other)?;
        // A record may have come with a clone and must not make us write outside the reviewed files.
        match record.files.iter().find(|kept| !may_change(&kept.path)) {
            Some(kept) => Err(io::Error::other(format!("it is one of {}", kept.path))),
            None => Ok(record),
        }
    }

    fn read_changes(&self, record: &Record) -> io::Result<Vec<Change>> {
        let text = |hash: &Option<Hash>| hash.as_ref().map(|hash| self.text(hash)).transpose();
        let change = |kept: &Kept| {
            Ok(Change { path: kept.path.clone(), before: text(&kept.before)?, after: text(&kept.after)? })
        };
        record.files.iter().map(change).collect()
    }

    /// Writes the texts first and the record last, so that a record never names a missing text.
    fn write(&self, path: &Path, changes: &[Change], landings: &[At]) -> io::Result<()> {
        self.make_folders()?;
        let keep =
            |text: &Option<String>| text.as_ref().map(|text| self.keep_bytes(text.as_bytes())).transpose();
        let mut files = Vec::new();
        // Only a deleted file needs its mode: an existing one keeps its own.
        for change in changes {
            let mode = if change.after.is_none() { self.mode(&change.path) } else { None };
            let (before, after) = (keep(&change.before)?, keep(&change.after)?);
            files.push(Kept { path: change.path.clone(), before, after, mode });
        }
        let landings = landings.iter().map(|at| (at.stretch, at.by.clone())).collect();
        let json = serde_json::to_vec(&Record { files, landings }).map_err(io::Error::other)?;
        write_privately(path, &json)
    }

    fn mode(&self, path: &str) -> Option<u32> {
        let meta = fs::symlink_metadata(self.project.root().join(path)).ok()?;
        meta.is_file().then(|| meta.permissions().mode() & 0o777)
    }

    fn text(&self, hash: &Hash) -> io::Result<String> {
        String::from_utf8(self.bytes(hash)?).map_err(|_| damaged(hash))
    }

    /// Returns the numbers of the undos that were begun, in order.
    fn numbers(&self) -> io::Result<Vec<u32>> {
        let items = match fs::read_dir(&self.folder) {
            Ok(items) => items,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(cause),
        };
        let number = |name: &str| name.strip_prefix("undo.")?.strip_suffix(".json")?.parse::<u32>().ok();
        let mut numbers: Vec<u32> =
            items.flatten().filter_map(|item| number(item.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads one of our own files. A link in its place was created by something else and is refused.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let meta = fs::symlink_metadata(path)?;
        if !meta.is_file() || self.project.leads_out(path).is_some() {
            return Err(io::Error::other("it is not the file that was kept"));
        }
        fs::read(path)
    }

    fn make_folders(&self) -> io::Result<()> {
        let texts = self.folder.join("texts");
        if let Some(there) = self.project.leads_out(&texts) {
            let what = format!("{} leads out of the project, to {}", self.folder.display(), there.display());
            return Err(io::Error::other(what));
        }
        if texts.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&texts)?;
        // The directory entries have to be as durable as the files in them.
        let home = self.project.home();
        for folder in texts.ancestors().skip(1).take_while(|folder| folder.starts_with(&home)) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    fn text_path(&self, hash: &Hash) -> PathBuf {
        self.folder.join("texts").join(hash.as_str())
    }

    fn record_path(&self, at: &At, number: u32) -> PathBuf {
        self.folder.join(format!("{}.{number}.json", at.name()))
    }

    /// Returns the path of an undo's record. No landing has such a name: those begin with a number.
    fn begun_path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("undo.{number}.json"))
    }

    fn undone_path(&self, at: &At) -> PathBuf {
        self.folder.join(format!("{}.undone", at.name()))
    }
}

/// Whether a landing may change this path. A record may have come with a clone, so files of git and Tribunal are excluded.
fn may_change(path: &str) -> bool {
    let own = |part: &str| [".git", ".tribunal"].iter().any(|own| part.eq_ignore_ascii_case(own));
    !path.is_empty() && is_plain(path) && !path.split('/').any(own)
}

fn damaged(hash: &Hash) -> io::Error {
    io::Error::other(format!("the kept text {} is damaged", hash.short()))
}

/// Whether the landing of a record (`3.key.1.json`) was undone.
fn undone_beside(record: &Path) -> bool {
    // Two extensions go: the number of the record and `.json`.
    let without_number = record.with_extension("").with_extension("undone");
    without_number.exists()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, slice};

    use super::*;

    fn checkpoints() -> (tempfile::TempDir, Checkpoints, At) {
        let root = tempfile::tempdir().unwrap();
        let project = Project::at(root.path().join("project"));
        project.prepare_home().unwrap();
        let checkpoints = Checkpoints::of(&project, &RunId::new("plan-aaaa"));
        (root, checkpoints, At { stretch: 3, by: Key::new("round-1/fix-1/fix/1") })
    }

    fn change(before: &str, after: &str) -> Change {
        file("plan.md", Some(before), Some(after))
    }

    fn file(path: &str, before: Option<&str>, after: Option<&str>) -> Change {
        Change { path: path.into(), before: before.map(String::from), after: after.map(String::from) }
    }

    #[test]
    fn what_is_kept_comes_back_byte_for_byte_and_only_its_owner_may_read_it() {
        let (_root, checkpoints, at) = checkpoints();
        let change = change("one\r\ntwo", "one\r\nzwei\u{feff}");
        checkpoints.keep(&at, slice::from_ref(&change)).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), [change]);
        let texts = checkpoints.folder.join("texts");
        for item in fs::read_dir(&texts).unwrap().chain(fs::read_dir(&checkpoints.folder).unwrap()).flatten()
        {
            let meta = item.metadata().unwrap();
            let mode = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(meta.permissions().mode() & 0o777, mode, "{:?}", item.path());
        }
    }

    #[test]
    fn the_same_landing_twice_is_one() {
        let (_root, checkpoints, at) = checkpoints();
        let change = change("1\n", "2\n");
        assert_eq!(checkpoints.keep(&at, slice::from_ref(&change)).unwrap(), 1);
        assert_eq!(checkpoints.keep(&at, slice::from_ref(&change)).unwrap(), 1);
        assert_eq!(checkpoints.changes(&at).unwrap(), [change]);
    }

    #[test]
    fn a_try_that_was_killed_before_the_rename_does_not_count_and_one_killed_after_it_does() {
        let first = change("1\n2\n3\n4\n", "one\n2\n3\n4\n");
        // The file was edited before the run continued.
        let (not_landed, landed) = (
            change("1\n2\n3\nmine\n", "one\n2\n3\nmine\n"),
            change("one\n2\n3\nmine\n", "one\n2\n3\nmine\n"),
        );
        let (_root, checkpoints, at) = checkpoints();
        checkpoints.keep(&at, slice::from_ref(&first)).unwrap();
        checkpoints.keep(&at, slice::from_ref(&not_landed)).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), [not_landed]);

        // The same task in a later stretch is a different landing.
        let at = At { stretch: 4, ..at };
        checkpoints.keep(&at, slice::from_ref(&first)).unwrap();
        checkpoints.keep(&at, slice::from_ref(&landed)).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), [first, landed]);
    }

    #[test]
    fn what_was_tampered_with_is_not_given_back() {
        let (root, checkpoints, at) = checkpoints();
        checkpoints.keep(&at, &[change("1\n", "2\n")]).unwrap();
        let text = checkpoints.text_path(&Hash::of(b"1\n"));
        fs::write(&text, "other\n").unwrap();
        assert!(checkpoints.changes(&at).unwrap_err().to_string().contains("is damaged"));
        fs::remove_file(&text).unwrap();
        fs::write(root.path().join("outside"), "1\n").unwrap();
        symlink(root.path().join("outside"), &text).unwrap();
        assert!(checkpoints.changes(&at).is_err());
        let stranger = |path: &str| {
            let record = format!(r#"{{"path":"{path}","before":"../../x","after":"y"}}"#);
            fs::write(checkpoints.record_path(&at, 1), record).unwrap();
            checkpoints.changes(&at).unwrap_err().to_string()
        };
        assert!(stranger("plan.md").contains("is damaged"));
        for path in
            ["", "../plan.md", "/etc/hosts", ".git/hooks/post-commit", "sub/.GIT/config", ".tribunal/locks/x"]
        {
            assert_eq!(stranger(path), format!("it is one of {path}"));
        }
    }

    #[test]
    fn a_record_of_one_file_without_a_list_still_reads() {
        let (_root, checkpoints, at) = checkpoints();
        let (before, after) =
            (checkpoints.keep_bytes(b"1\n").unwrap(), checkpoints.keep_bytes(b"2\n").unwrap());
        let record = format!(r#"{{"path":"plan.md","before":"{before}","after":"{after}"}}"#);
        fs::write(checkpoints.record_path(&at, 1), record).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), [change("1\n", "2\n")]);
        // The next attempt gets the next number.
        assert_eq!(checkpoints.keep(&at, &[change("2\n", "3\n")]).unwrap(), 2);
    }

    #[test]
    fn all_files_of_a_landing_are_one_record_and_what_it_deletes_keeps_its_permissions() {
        let (_root, checkpoints, at) = checkpoints();
        let old = checkpoints.project.root().join("old.sh");
        fs::write(&old, "x\n").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o750)).unwrap();
        let all = [
            file("old.sh", Some("x\n"), None),
            file("plan.md", Some("1\n"), Some("2\n")),
            file("src/new.rs", None, Some("")),
        ];
        assert_eq!(checkpoints.keep(&at, &all).unwrap(), 1);
        fs::remove_file(&old).unwrap();
        assert_eq!(checkpoints.keep(&at, &all).unwrap(), 1, "the same once more, when it has landed");
        assert_eq!(checkpoints.changes(&at).unwrap(), all);
        assert_eq!(checkpoints.modes(&at).unwrap(), BTreeMap::from([("old.sh".to_string(), 0o750)]));
        checkpoints.forget(&at, 1).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), []);
    }

    #[test]
    fn a_landing_killed_between_two_of_its_files_counts_each_of_them_once() {
        let (_root, checkpoints, at) = checkpoints();
        let made = file("new.rs", None, Some("n\n"));
        let gone = file("old.rs", Some("o\n"), None);
        let (first, second) = (change("1\n", "2\n"), file("b.md", Some("1\n"), Some("2\n")));
        checkpoints.keep(&at, &[made.clone(), gone.clone(), first.clone(), second.clone()]).unwrap();
        // It had replaced the first text; `b.md` was edited since. The second attempt names only what was left to do.
        let there = change("2\n", "2\n");
        let edited = file("b.md", Some("1\nmine\n"), Some("2\nmine\n"));
        checkpoints.keep(&at, &[there.clone(), edited.clone()]).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), [made, gone, first, there, edited]);
    }

    #[test]
    fn any_bytes_are_kept_and_come_back() {
        let (_root, checkpoints, _) = checkpoints();
        let hash = checkpoints.keep_bytes(b"\x00\xff\r\n").unwrap();
        assert_eq!(checkpoints.bytes(&hash).unwrap(), b"\x00\xff\r\n");
        assert_eq!(checkpoints.keep_bytes(b"\x00\xff\r\n").unwrap(), hash);
        fs::write(checkpoints.text_path(&hash), "cut").unwrap();
        assert!(checkpoints.bytes(&hash).unwrap_err().to_string().contains("is damaged"));
    }

    #[test]
    fn taking_back_that_was_begun_is_known_until_it_is_done() {
        let (_root, checkpoints, at) = checkpoints();
        assert!(checkpoints.begun().unwrap().is_empty());
        let change = change("2\n", "1\n");
        let landings = slice::from_ref(&at);
        assert_eq!(checkpoints.begin(landings, slice::from_ref(&change)).unwrap(), 1);
        assert_eq!(checkpoints.begin(landings, &[]).unwrap(), 2);
        checkpoints.end(1).unwrap();
        assert_eq!(checkpoints.begin(landings, slice::from_ref(&change)).unwrap(), 3);
        let begun = checkpoints.begun().unwrap();
        assert_eq!(begun.iter().map(|begun| begun.number).collect::<Vec<u32>>(), [2, 3]);
        assert_eq!((&begun[1].landings, &begun[1].changes), (&vec![at], &vec![change]));
    }
}
