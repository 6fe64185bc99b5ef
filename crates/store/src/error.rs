//! Errors of the journal file, in terms that the user can act on.

use std::{io, path::PathBuf};

use crate::damage::JournalDamage;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "{} was written by a newer Tribunal (format {found}, this version supports {known}); it is read-only",
        path.display()
    )]
    NewerFormat { path: PathBuf, found: i32, known: i32 },
    /// The file is empty: its first writer was killed before it wrote anything.
    #[error("{} is empty", path.display())]
    Empty { path: PathBuf },
    #[error("{} is not a Tribunal journal", path.display())]
    NotAJournal { path: PathBuf },
    #[error("could not create {}: {cause}", path.display())]
    CannotCreate { path: PathBuf, cause: io::Error },
    #[error("cannot write to {}: {cause}", path.display())]
    NotWritable { path: PathBuf, cause: io::Error },
    #[error("{} is on a network file system ({kind})", path.display())]
    NetworkFileSystem { path: PathBuf, kind: String },
    #[error("could not write to {}: the disk is full", path.display())]
    DiskFull { path: PathBuf },
    #[error("{} no longer exists: the file or its directory was deleted or replaced", path.display())]
    FileGone { path: PathBuf },
    #[error("{}: {cause}", path.display())]
    Database { path: PathBuf, cause: rusqlite::Error },
    #[error("could not read entry {seq} of run {run}: {cause}")]
    UnreadableEntry { run: String, seq: u64, cause: serde_json::Error },
    #[error("could not write a journal entry: {0}")]
    UnwritableEntry(serde_json::Error),
    /// Something that was recorded is lost or changed.
    #[error("{0}")]
    Damaged(Box<JournalDamage>),
    #[error("{} is damaged: a text that was recorded is missing or has changed ({hash})", path.display())]
    MissingBlob { path: PathBuf, hash: String },
    #[error("could not remove {}: {cause}", path.display())]
    CannotRemove { path: PathBuf, cause: io::Error },
    #[error("the journal writer has stopped: {0}")]
    WriterStopped(String),
}
