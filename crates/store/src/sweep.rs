//! Removes what is no longer needed from the file: whole runs, and blobs that no entry names.
//!
//! A blob counts as named if its hash occurs anywhere in the text of a kept entry, in any field: so an entry of a newer build
//! keeps its blobs although this build does not know what it means. Blobs are always recorded together with the entry that names
//! them, so one transaction sees both or neither, even while a run of another process writes.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use tribunal_core::ids::RunId;

use crate::{
    error::StoreError,
    place,
    schema::check,
    store::{BUSY, FILE},
};

/// The length of a hash in hexadecimal digits.
const HASH: usize = 64;

/// Says what to remove.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// The runs to remove with everything they recorded. No process may work on them.
    pub runs: Vec<RunId>,
    /// Only report what would be removed.
    pub dry: bool,
}

/// Reports what was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub entries: u64,
    pub entry_bytes: u64,
    pub blobs: u64,
    pub blob_bytes: u64,
    /// The size of the file before the sweep; `file_after` is the size after it.
    pub file_before: u64,
    pub file_after: u64,
}

/// The state of the file after compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    pub bytes: u64,
    /// The number of empty bytes if compaction was worthwhile but postponed, because it would have blocked other processes for
    /// too long.
    pub put_off: Option<u64>,
}

/// Sweeps the journal of a project. Active runs wait for a moment and lose nothing. The file keeps its length: see
/// [`compact_journal`].
pub fn sweep(folder: &Path, wish: &Sweep) -> Result<Swept, StoreError> {
    let (mut connection, path) = open(folder)?;
    take_out(&mut connection, wish).map_err(|cause| database(&path, cause))
}

/// Gives empty space back to the disk if there is enough of it. This takes as long as writing the whole file, and other writers
/// wait for it and give up after a while: so a file of more than `max_bytes` bytes is left as it is.
pub fn compact(folder: &Path, most: u64) -> Result<Compacted, StoreError> {
    let (connection, path) = open(folder)?;
    shrink(&connection, most).map_err(|cause| database(&path, cause))
}

fn open(folder: &Path) -> Result<(Connection, PathBuf), StoreError> {
    let path = folder.join(FILE);
    if let Some(kind) = place::network(folder) {
        return Err(StoreError::Network { path: folder.to_path_buf(), kind });
    }
    let connection = Connection::open(&path).map_err(|cause| database(&path, cause))?;
    check(&connection, &path, true)?;
    // A sweep may wait long for running writers; it is in no hurry.
    connection.busy_timeout(BUSY).map_err(|cause| database(&path, cause))?;
    Ok((connection, path))
}

fn database(path: &Path, cause: rusqlite::Error) -> StoreError {
    StoreError::Database { path: PathBuf::from(path), cause }
}

/// Compacts the file if that is worthwhile and fast enough.
fn shrink(connection: &Connection, most: u64) -> rusqlite::Result<Compacted> {
    // Both the share of empty space and the size of the file decide whether the vacuum is worth its time.
    let bytes = file_bytes(connection)?;
    let empty = worth_giving_back(connection)?;
    match empty {
        None => return Ok(Compacted { bytes, put_off: None }),
        Some(_) if bytes > most => return Ok(Compacted { bytes, put_off: empty }),
        Some(_) => connection.execute_batch("VACUUM")?,
    }
    give_back_log(connection);
    Ok(Compacted { bytes: file_bytes(connection)?, put_off: None })
}

/// Truncates the write-ahead log. If a reader is active, the log stays, and the next sweep truncates it.
fn give_back_log(connection: &Connection) {
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
}

/// Removes runs and orphaned blobs in one transaction.
fn take_out(connection: &mut Connection, wish: &Sweep) -> rusqlite::Result<Swept> {
    let before = file_bytes(connection)?;
    // A real sweep takes the write lock at once: what it counts must still be true when it deletes.
    let behaviour = if wish.dry { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
    let transaction = connection.transaction_with_behavior(behaviour)?;
    let mut swept = Swept { file_before: before, file_after: before, ..Swept::default() };
    for run in &wish.runs {
        let (entries, bytes): (u64, u64) = transaction
            .prepare_cached(
                "SELECT count(*), coalesce(sum(length(cast(body AS BLOB))), 0) FROM events WHERE run = ?1",
            )?
            .query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        swept.entries += entries;
        swept.entry_bytes += bytes;
    }
    // Orphans are found before anything is deleted, so that a dry run reports the same numbers.
    let orphans = orphans(&transaction, &wish.runs)?;
    swept.blobs = orphans.len() as u64;
    swept.blob_bytes = orphans.values().sum();
    if wish.dry {
        return Ok(swept);
    }
    for run in &wish.runs {
        transaction.prepare_cached("DELETE FROM events WHERE run = ?1")?.execute([run.as_str()])?;
        transaction.prepare_cached("DELETE FROM inbox WHERE run = ?1")?.execute([run.as_str()])?;
    }
    for hash in orphans.keys() {
        transaction.prepare_cached("DELETE FROM blobs WHERE hash = ?1")?.execute([hash])?;
    }
    transaction.commit()?;
    give_back_log(connection);
    swept.file_after = file_bytes(connection)?;
    Ok(swept)
}

/// The size of the database in bytes.
fn file_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let size: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages * size)
}

/// The number of empty bytes, if they are a tenth of the file or more.
fn worth_giving_back(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let free: u64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let size: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok((free > 0 && free * 10 >= pages).then_some(free * size))
}

/// Finds the blobs that no entry names, apart from entries of the removed runs; with their sizes.
fn orphans(connection: &Connection, doomed: &[RunId]) -> rusqlite::Result<HashMap<String, u64>> {
    let doomed: HashSet<&str> = doomed.iter().map(RunId::as_str).collect();
    let mut unnamed: HashMap<String, u64> = connection
        .prepare("SELECT hash, length(body) FROM blobs")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut entries = connection.prepare("SELECT run, body, blob FROM events")?;
    let mut rows = entries.query([])?;
    while let Some(row) = rows.next()? {
        if doomed.contains(row.get_ref(0)?.as_str()?) {
            continue;
        }
        if let Some(body) = row.get_ref(1)?.as_bytes_or_null()? {
            spare(&mut unnamed, body);
        }
        // A long entry is a blob itself, and its text may name further blobs.
        if let Some(hash) = row.get_ref(2)?.as_str_or_null()? {
            unnamed.remove(hash);
            let select = "SELECT body FROM blobs WHERE hash = ?1";
            let body: Option<Vec<u8>> =
                connection.prepare_cached(select)?.query_row([hash], |row| row.get(0)).optional()?;
            spare(&mut unnamed, &body.unwrap_or_default());
        }
    }
    Ok(unnamed)
}

/// Takes every blob whose hash occurs in a text off the list.
fn spare(unnamed: &mut HashMap<String, u64>, text: &[u8]) {
    for word in text.split(|byte| !byte.is_ascii_hexdigit()).filter(|word| word.len() >= HASH) {
        // Other hexadecimal digits may touch a hash, so every position is tried.
        for part in word.windows(HASH).filter_map(|part| std::str::from_utf8(part).ok()) {
            unnamed.remove(part);
        }
    }
}
