//! Checkpoints: the exact bytes of a file before and after every landing, so that it can be shown and taken back.
//!
//! The journal has texts only as masked, so it cannot give bytes back; these files can, and nobody but their owner may read
//! them. A landing is kept before its file is changed: the two texts by their hashes, then a record that names them. What is
//! kept is never written over. A landing that is tried again, because somebody edited the file meanwhile or the program was
//! killed, gets one more record.
//!
//! What a landing was for is not kept here: the journal says so, by the landing's name (`landings`).

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_core::ids::{Hash, Key, RunId};

use crate::{files::write_privately, merging::three_way, project::Project};

/// Which landing of a run: the key of who made the change, unique within one stretch of the run.
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

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub before: String,
    pub after: String,
}

impl Change {
    /// Whether a text has it already.
    fn is_in(&self, text: &str) -> bool {
        self.before != self.after && three_way(&self.before, text, &self.after).as_deref() == Ok(text)
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    path: String,
    before: Hash,
    after: Hash,
}

/// Those of one run, all of one file.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    project: Project,
    folder: PathBuf,
    path: String,
}

impl Checkpoints {
    /// `path`: the file, relative to the project's root.
    pub fn of(project: &Project, run: &RunId, path: &str) -> Checkpoints {
        Checkpoints { project: project.clone(), folder: project.checkpoints(run), path: path.to_string() }
    }

    /// Durable when it returns. The record's number, to [`Checkpoints::forget`] it.
    pub fn keep(&self, at: &At, change: &Change) -> io::Result<u32> {
        let record = Record {
            path: self.path.clone(),
            before: Hash::of(change.before.as_bytes()),
            after: Hash::of(change.after.as_bytes()),
        };
        let known = self.records(at)?;
        if known.last() == Some(&record) {
            return Ok(known.len() as u32);
        }
        self.make_folders()?;
        for (hash, text) in [(&record.before, &change.before), (&record.after, &change.after)] {
            // A text that is there under its own hash is whole.
            if self.text(hash).is_err() {
                write_privately(&self.text_path(hash), text.as_bytes())?;
            }
        }
        let number = known.len() as u32 + 1;
        let json = serde_json::to_vec(&record).map_err(io::Error::other)?;
        write_privately(&self.record_path(at, number), &json)?;
        Ok(number)
    }

    /// It was kept, and then did not land.
    pub fn forget(&self, at: &At, number: u32) -> io::Result<()> {
        fs::remove_file(self.record_path(at, number))
    }

    /// What a landing changed, in order. Of several tries the last one is what landed; those before it count only if their
    /// change was in the text that the next one found.
    pub fn changes(&self, at: &At) -> io::Result<Vec<Change>> {
        let mut tries = Vec::new();
        for record in self.records(at)? {
            tries.push(Change { before: self.text(&record.before)?, after: self.text(&record.after)? });
        }
        let mut changes: Vec<Change> = Vec::new();
        for (index, change) in tries.iter().enumerate() {
            let happened = tries.get(index + 1).is_none_or(|next| change.is_in(&next.before));
            if happened {
                changes.push(change.clone());
            }
        }
        Ok(changes)
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
            match self.read(&self.record_path(at, number)) {
                Ok(json) => {
                    let record: Record = serde_json::from_slice(&json).map_err(io::Error::other)?;
                    if record.path != self.path {
                        return Err(io::Error::other(format!("it is one of {}", record.path)));
                    }
                    records.push(record);
                }
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => break,
                Err(cause) => return Err(cause),
            }
        }
        Ok(records)
    }

    fn text(&self, hash: &Hash) -> io::Result<String> {
        let damaged = || io::Error::other(format!("the kept text {} is damaged", hash.short()));
        // The record may have come with a clone: its hash is a file's name here.
        if !hash.as_str().chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(damaged());
        }
        let bytes = self.read(&self.text_path(hash))?;
        if Hash::of(&bytes) != *hash {
            return Err(damaged());
        }
        String::from_utf8(bytes).map_err(|_| damaged())
    }

    /// A link in the place of a file of ours was put there by somebody else.
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
        // The names of new folders are to last as long as what will be in them.
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

    fn undone_path(&self, at: &At) -> PathBuf {
        self.folder.join(format!("{}.undone", at.name()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn checkpoints() -> (tempfile::TempDir, Checkpoints, At) {
        let root = tempfile::tempdir().unwrap();
        let project = Project::at(root.path().join("project"));
        project.prepare_home().unwrap();
        let checkpoints = Checkpoints::of(&project, &RunId::new("plan-aaaa"), "plan.md");
        (root, checkpoints, At { stretch: 3, by: Key::new("round-1/fix-1/fix/1") })
    }

    fn change(before: &str, after: &str) -> Change {
        Change { before: before.into(), after: after.into() }
    }

    #[test]
    fn what_is_kept_comes_back_byte_for_byte_and_only_its_owner_may_read_it() {
        let (_root, checkpoints, at) = checkpoints();
        let change = change("one\r\ntwo", "one\r\nzwei\u{feff}");
        checkpoints.keep(&at, &change).unwrap();
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
        assert_eq!(checkpoints.keep(&at, &change).unwrap(), 1);
        assert_eq!(checkpoints.keep(&at, &change).unwrap(), 1);
        assert_eq!(checkpoints.changes(&at).unwrap(), [change]);
    }

    #[test]
    fn a_try_that_was_killed_before_the_rename_does_not_count_and_one_killed_after_it_does() {
        let first = change("1\n2\n3\n4\n", "one\n2\n3\n4\n");
        // Somebody edited the file before the run went on.
        let (not_landed, landed) = (
            change("1\n2\n3\nmine\n", "one\n2\n3\nmine\n"),
            change("one\n2\n3\nmine\n", "one\n2\n3\nmine\n"),
        );
        let (_root, checkpoints, at) = checkpoints();
        checkpoints.keep(&at, &first).unwrap();
        checkpoints.keep(&at, &not_landed).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), [not_landed]);

        // The same task in a later stretch is another one.
        let at = At { stretch: 4, ..at };
        checkpoints.keep(&at, &first).unwrap();
        checkpoints.keep(&at, &landed).unwrap();
        assert_eq!(checkpoints.changes(&at).unwrap(), [first, landed]);
    }

    #[test]
    fn what_was_tampered_with_is_not_given_back() {
        let (root, checkpoints, at) = checkpoints();
        checkpoints.keep(&at, &change("1\n", "2\n")).unwrap();
        let text = checkpoints.text_path(&Hash::of(b"1\n"));
        fs::write(&text, "other\n").unwrap();
        assert!(checkpoints.changes(&at).unwrap_err().to_string().contains("is damaged"));
        fs::remove_file(&text).unwrap();
        fs::write(root.path().join("outside"), "1\n").unwrap();
        symlink(root.path().join("outside"), &text).unwrap();
        assert!(checkpoints.changes(&at).is_err());
        let stranger = Record { path: "plan.md".into(), before: Hash::new("../../x"), after: Hash::new("y") };
        fs::write(checkpoints.record_path(&at, 1), serde_json::to_vec(&stranger).unwrap()).unwrap();
        assert!(checkpoints.changes(&at).unwrap_err().to_string().contains("is damaged"));
    }
}
