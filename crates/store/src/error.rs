//! Errors of the journal file, in terms that the user can act on.

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "{} was written by a newer Tribunal (format {found}, this one knows {known}); it can be read but not written",
        path.display()
    )]
    NewerFormat { path: PathBuf, found: i32, known: i32 },
    /// The file is empty: its first writer was killed before it wrote anything.
    #[error("{} is empty", path.display())]
    Empty { path: PathBuf },
    #[error("{} is not a Tribunal journal", path.display())]
    NotAJournal { path: PathBuf },
    #[error("{} cannot be created: {cause}", path.display())]
    CannotCreate { path: PathBuf, cause: io::Error },
    #[error("{} lies on a network file system ({kind})", path.display())]
    NetworkFileSystem { path: PathBuf, kind: String },
    #[error("{} cannot grow: the disk is full", path.display())]
    DiskFull { path: PathBuf },
    #[error("{} is gone: it, or the folder it was in, was deleted or replaced", path.display())]
    FileGone { path: PathBuf },
    #[error("{}: {cause}", path.display())]
    Database { path: PathBuf, cause: rusqlite::Error },
    #[error("entry {seq} of run {run} cannot be read: {cause}")]
    UnreadableEntry { run: String, seq: u64, cause: serde_json::Error },
    #[error("an entry cannot be written: {0}")]
    UnwritableEntry(serde_json::Error),
    #[error("blob {0} is missing")]
    MissingBlob(String),
    #[error("the journal's writer has stopped: {0}")]
    WriterStopped(String),
}
