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
use tribunal_engine::ids::{Hash, RunId};

use crate::{
    error::StoreError,
    file_system,
    heads::{heads_dir, remove_head},
    journal_file::JOURNAL_FILE,
    schema::{check_format, migrate_schema},
    store::BUSY_TIMEOUT,
};

/// The length of a hash in hexadecimal digits.
const HASH_LENGTH: usize = 64;

/// Says what to remove.
#[derive(Clone, Debug, Default)]
pub struct SweepRequest {
    /// The runs to remove with everything they recorded. No process may work on them.
    pub run_ids: Vec<RunId>,
    /// Only report what would be removed.
    pub dry_run: bool,
}

/// Reports what was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepOutcome {
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
pub struct CompactOutcome {
    pub file_bytes: u64,
    /// The number of empty bytes if compaction was worthwhile but postponed, because it would have blocked other processes for
    /// too long.
    pub postponed_bytes: Option<u64>,
}

/// Sweeps the journal of a project. Active runs wait for a moment and lose nothing. The file keeps its length: see
/// [`compact_journal`].
pub fn sweep_journal(directory: &Path, request: &SweepRequest) -> Result<SweepOutcome, StoreError> {
    let (mut connection, journal_path) = open_journal(directory)?;
    if !request.dry_run {
        // The heads go first: a head without its run would look like a run that was lost.
        for run_id in &request.run_ids {
            remove_head(directory, run_id).map_err(|cause| StoreError::CannotRemove {
                path: heads_dir(directory).join(run_id.as_str()),
                cause,
            })?;
        }
    }
    remove_runs(&mut connection, request).map_err(|cause| database_error(&journal_path, cause))
}

/// Gives empty space back to the disk if there is enough of it. This takes as long as writing the whole file, and other writers
/// wait for it and give up after a while: so a file of more than `max_bytes` bytes is left as it is.
pub fn compact_journal(directory: &Path, max_bytes: u64) -> Result<CompactOutcome, StoreError> {
    let (connection, journal_path) = open_journal(directory)?;
    vacuum_if_worthwhile(&connection, max_bytes).map_err(|cause| database_error(&journal_path, cause))
}

fn open_journal(directory: &Path) -> Result<(Connection, PathBuf), StoreError> {
    let journal_path = directory.join(JOURNAL_FILE);
    if let Some(kind) = file_system::find_network_file_system(directory) {
        return Err(StoreError::NetworkFileSystem { path: directory.to_path_buf(), kind });
    }
    let mut connection = Connection::open(&journal_path).map_err(|cause| database_error(&journal_path, cause))?;
    check_format(&connection, &journal_path, true)?;
    migrate_schema(&mut connection).map_err(|cause| database_error(&journal_path, cause))?;
    // A sweep may wait long for running writers; it is in no hurry.
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|cause| database_error(&journal_path, cause))?;
    Ok((connection, journal_path))
}

fn database_error(journal_path: &Path, cause: rusqlite::Error) -> StoreError {
    StoreError::Database { path: PathBuf::from(journal_path), cause }
}

/// Compacts the file if that is worthwhile and fast enough.
fn vacuum_if_worthwhile(connection: &Connection, max_bytes: u64) -> rusqlite::Result<CompactOutcome> {
    // Both the share of empty space and the size of the file decide whether the vacuum is worth its time.
    let size_before = database_size(connection)?;
    let reclaimable = reclaimable_bytes(connection)?;
    match reclaimable {
        None => return Ok(CompactOutcome { file_bytes: size_before, postponed_bytes: None }),
        Some(_) if size_before > max_bytes => {
            return Ok(CompactOutcome { file_bytes: size_before, postponed_bytes: reclaimable });
        }
        Some(_) => connection.execute_batch("VACUUM")?,
    }
    truncate_wal(connection);
    Ok(CompactOutcome { file_bytes: database_size(connection)?, postponed_bytes: None })
}

/// Truncates the write-ahead log. If a reader is active, the log stays, and the next sweep truncates it.
fn truncate_wal(connection: &Connection) {
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
}

/// Removes runs and orphaned blobs in one transaction.
fn remove_runs(connection: &mut Connection, request: &SweepRequest) -> rusqlite::Result<SweepOutcome> {
    let size_before = database_size(connection)?;
    // A real sweep takes the write lock at once: what it counts must still be true when it deletes.
    let behaviour = if request.dry_run { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
    let transaction = connection.transaction_with_behavior(behaviour)?;
    let mut outcome = SweepOutcome { file_before: size_before, file_after: size_before, ..SweepOutcome::default() };
    for run_id in &request.run_ids {
        let (entries, entry_bytes): (u64, u64) = transaction
            .prepare_cached("SELECT count(*), coalesce(sum(length(cast(body AS BLOB))), 0) FROM events WHERE run = ?1")?
            .query_row([run_id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        outcome.entries += entries;
        outcome.entry_bytes += entry_bytes;
    }
    // Orphans are found before anything is deleted, so that a dry run reports the same numbers.
    let orphan_blobs = find_orphan_blobs(&transaction, &request.run_ids)?;
    outcome.blobs = orphan_blobs.len() as u64;
    outcome.blob_bytes = orphan_blobs.values().sum();
    if request.dry_run {
        return Ok(outcome);
    }
    for run_id in &request.run_ids {
        transaction.prepare_cached("DELETE FROM events WHERE run = ?1")?.execute([run_id.as_str()])?;
        transaction.prepare_cached("DELETE FROM inbox WHERE run = ?1")?.execute([run_id.as_str()])?;
    }
    for blob_hash in orphan_blobs.keys() {
        transaction.prepare_cached("DELETE FROM blobs WHERE hash = ?1")?.execute([blob_hash])?;
    }
    transaction.commit()?;
    truncate_wal(connection);
    outcome.file_after = database_size(connection)?;
    Ok(outcome)
}

/// The size of the database in bytes.
fn database_size(connection: &Connection) -> rusqlite::Result<u64> {
    let page_count: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page_size: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(page_count * page_size)
}

/// The number of empty bytes, if they are a tenth of the file or more.
fn reclaimable_bytes(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let page_count: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let free_pages: u64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let page_size: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok((free_pages > 0 && free_pages * 10 >= page_count).then_some(free_pages * page_size))
}

/// Finds the blobs that no entry names, apart from entries of the removed runs; with their sizes.
fn find_orphan_blobs(connection: &Connection, removed_runs: &[RunId]) -> rusqlite::Result<HashMap<String, u64>> {
    let removed_runs: HashSet<&str> = removed_runs.iter().map(RunId::as_str).collect();
    let mut unnamed_blobs: HashMap<String, u64> = connection
        .prepare("SELECT hash, length(body) FROM blobs")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut entries = connection.prepare("SELECT run, body, blob, has_texts FROM events")?;
    let mut rows = entries.query([])?;
    while let Some(row) = rows.next()? {
        if removed_runs.contains(row.get_ref(0)?.as_str()?) {
            continue;
        }
        let load_blob = |blob_hash: &str| -> rusqlite::Result<Vec<u8>> {
            let select_sql = "SELECT body FROM blobs WHERE hash = ?1";
            let body = connection.prepare_cached(select_sql)?.query_row([blob_hash], |row| row.get(0)).optional()?;
            Ok(body.unwrap_or_default())
        };
        let body = match (row.get_ref(1)?.as_bytes_or_null()?, row.get_ref(2)?.as_str_or_null()?) {
            // A long entry is a blob itself, and its text may name further blobs.
            (None, Some(blob_hash)) => {
                unnamed_blobs.remove(blob_hash);
                load_blob(blob_hash)?
            }
            (body, _) => body.unwrap_or_default().to_vec(),
        };
        if row.get(3)? {
            // So may the long texts of an entry.
            for text_hash in find_hashes(&body) {
                keep_named_blobs(&mut unnamed_blobs, &load_blob(text_hash.as_str())?);
            }
        }
        keep_named_blobs(&mut unnamed_blobs, &body);
    }
    Ok(unnamed_blobs)
}

/// Takes every blob whose hash occurs in a text off the list.
fn keep_named_blobs(unnamed_blobs: &mut HashMap<String, u64>, entry_text: &[u8]) {
    for hash in find_hashes(entry_text) {
        unnamed_blobs.remove(hash.as_str());
    }
}

/// Finds everything in a text that could be a hash.
pub(crate) fn find_hashes(entry_text: &[u8]) -> impl Iterator<Item = Hash> {
    let digit_runs = entry_text.split(|byte| !byte.is_ascii_hexdigit());
    let long_runs = digit_runs.filter(|hex_digits| hex_digits.len() >= HASH_LENGTH);
    // Other hexadecimal digits may touch a hash, so every position is tried.
    let candidates = long_runs.flat_map(|hex_digits| hex_digits.windows(HASH_LENGTH));
    candidates.filter_map(|hash_bytes| std::str::from_utf8(hash_bytes).ok().map(Hash::new))
}
