//! Taking out of the file what nobody needs any more: whole runs, and blobs that no entry names.
//!
//! A blob counts as named when its hash stands anywhere in the text of a kept entry, in whatever field: an entry of a newer
//! build keeps its blobs although nobody here knows what it means. Blobs are always recorded together with the entry that
//! names them, so one transaction sees both or neither, also while a run of another process writes.

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

/// A hash in hexadecimal digits.
const HASH: usize = 64;

/// What to take out.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// With all they recorded. Nobody may work on them.
    pub runs: Vec<RunId>,
    /// Only say what would go.
    pub dry: bool,
}

/// What was taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub entries: u64,
    pub entry_bytes: u64,
    pub blobs: u64,
    pub blob_bytes: u64,
    /// The file before and after.
    pub file_before: u64,
    pub file_after: u64,
}

/// The file after giving space back to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    pub bytes: u64,
    /// It is worth it, but the file was too long to keep others waiting for it; so much of it is empty.
    pub put_off: Option<u64>,
}

/// Sweeps the journal of a project. Runs that go on meanwhile wait for a moment and lose nothing. The file keeps its length:
/// see [`compact`].
pub fn sweep(folder: &Path, wish: &Sweep) -> Result<Swept, StoreError> {
    let (mut connection, path) = open(folder)?;
    take_out(&mut connection, wish).map_err(|cause| database(&path, cause))
}

/// Gives empty space back to the disk, where there is enough of it. That takes as long as writing the file anew, and whoever
/// wants to write meanwhile waits, and gives up after a while: so it is not done for a file of more than `most` bytes.
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
    connection.busy_timeout(BUSY).map_err(|cause| database(&path, cause))?;
    Ok((connection, path))
}

fn database(path: &Path, cause: rusqlite::Error) -> StoreError {
    StoreError::Database { path: PathBuf::from(path), cause }
}

fn shrink(connection: &Connection, most: u64) -> rusqlite::Result<Compacted> {
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

/// A reader that is just looking keeps the log as it is; the next sweep gets it.
fn give_back_log(connection: &Connection) {
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
}

fn take_out(connection: &mut Connection, wish: &Sweep) -> rusqlite::Result<Swept> {
    let before = file_bytes(connection)?;
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

fn file_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let size: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages * size)
}

/// The empty bytes, if they are a tenth of the file or more.
fn worth_giving_back(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let free: u64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let size: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok((free > 0 && free * 10 >= pages).then_some(free * size))
}

/// Blobs that no entry names, except entries of `doomed` runs; with their sizes.
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

/// Takes every hash that stands in a text out of the list.
fn spare(unnamed: &mut HashMap<String, u64>, text: &[u8]) {
    for word in text.split(|byte| !byte.is_ascii_hexdigit()).filter(|word| word.len() >= HASH) {
        for part in word.windows(HASH).filter_map(|part| std::str::from_utf8(part).ok()) {
            unnamed.remove(part);
        }
    }
}
