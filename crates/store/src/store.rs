//! The public interface of the store.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::mpsc::sync_channel,
    time::Duration,
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, config::DbConfig, params, params_from_iter,
};
use serde::Deserialize;
use tribunal_core::{
    effect::Request,
    event::{Entry, Event},
    ids::{Hash, RunId},
    stamp::Stamp,
};

use crate::{
    error::StoreError,
    place,
    schema::{FORMAT, check, migrate},
    writer::{Batch, Writer, Written, commit},
};

pub(crate) const FILE: &str = "journal.db";
/// Selects the entries that tell the state of runs. One pass over the table is faster here than an index, because SQLite reads
/// only the head of a row unless it is one of these.
const OUTLINE: &str = "
    SELECT run, seq, body, blob FROM events
    WHERE kind IN ('run_started', 'run_resumed', 'settings_changed', 'run_parked', 'run_finished',
                   'decision_posted', 'decision_answered', 'file_written', 'confidence_calculated')
    ORDER BY run, seq";
/// The size of the write-ahead log above which a short-lived writer runs a checkpoint.
const LONG_LOG: u64 = 64 << 10;
pub(crate) const BUSY: Duration = Duration::from_secs(30);

/// Selects the entries that are needed to resume a run.
const TO_GO_ON: &str = "
    SELECT seq, body, blob FROM events
    WHERE run = ?1 AND (
        kind NOT IN ('boundary', 'effect_started')
        OR seq >= coalesce(
            (SELECT seq FROM events WHERE run = ?1 AND kind = 'boundary' ORDER BY seq DESC LIMIT 1), 0)
    )
    ORDER BY seq";

/// The journal of a project. Reading works while another process writes.
pub struct Store {
    path: PathBuf,
    reader: Connection,
    writer: Option<Writer>,
    format: i32,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// A request of the user with its number in the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    pub id: i64,
    pub request: Request,
}

impl Store {
    /// Whether a project has a journal.
    pub fn exists(folder: &Path) -> bool {
        // A directory of that name, or a dangling link, is not a journal.
        folder.join(FILE).is_file()
    }

    /// Opens for writing, creating and migrating what is needed.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        Store::open_within(folder, BUSY)
    }

    /// Does the same as `open`, for a caller that cannot wait longer than this for other writers.
    pub fn open_within(folder: &Path, patience: Duration) -> Result<Store, StoreError> {
        fs::create_dir_all(folder)
            .map_err(|cause| StoreError::Create { path: folder.to_path_buf(), cause })?;
        // WAL needs shared memory of one machine; over a network two writers would corrupt the file.
        if let Some(kind) = place::network(folder) {
            return Err(StoreError::Network { path: folder.to_path_buf(), kind });
        }
        let path = folder.join(FILE);
        // SQLite reports a full disk in several ways; only a probe tells it from a broken file.
        let database = |cause: rusqlite::Error| match cause.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full { path: path.clone() },
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if place::is_full(folder) => {
                StoreError::Full { path: path.clone() }
            }
            _ => StoreError::Database { path: path.clone(), cause },
        };
        let mut connection = Connection::open(&path).map_err(database)?;
        connection.busy_timeout(patience).map_err(database)?;
        // The check comes before the pragmas: they would already change a file that is not ours.
        check(&connection, &path, true)?;
        for (name, value) in [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")] {
            connection.pragma_update(None, name, value).map_err(database)?;
        }
        if patience < BUSY {
            // The next process that opens the journal runs the checkpoint; this one has no time for it.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(database)?;
        }
        migrate(&mut connection).map_err(database)?;
        let reader = open_reader(&path, patience).map_err(database)?;
        let writer = Writer::start(connection, path.clone())?;
        Ok(Store { path, reader, writer: Some(writer), format: FORMAT })
    }

    /// Opens for reading only, also a file that a newer build has written.
    pub fn open_read_only(folder: &Path) -> Result<Store, StoreError> {
        Store::open_read_only_within(folder, BUSY)
    }

    /// Does the same as `open_read_only`, for a caller that cannot wait.
    pub fn open_read_only_within(folder: &Path, patience: Duration) -> Result<Store, StoreError> {
        let path = folder.join(FILE);
        let reader = open_reader(&path, patience)
            .map_err(|cause| StoreError::Database { path: path.clone(), cause })?;
        let format = check(&reader, &path, false)?;
        if format == 0 {
            return Err(StoreError::Empty { path });
        }
        Ok(Store { path, reader, writer: None, format })
    }

    /// The error to report if a newer build than this one has written the file.
    pub fn is_newer(&self) -> Option<StoreError> {
        let newer = StoreError::Newer { path: self.path.clone(), found: self.format, known: FORMAT };
        (self.format > FORMAT).then_some(newer)
    }

    /// Queues a batch; the callback runs on the writer's thread once the batch is durable.
    pub fn submit(&self, batch: Batch, done: impl FnOnce(Result<Vec<Entry>, StoreError>) + Send + 'static) {
        match &self.writer {
            Some(writer) => writer.submit(batch, Box::new(done)),
            // The callback runs in any case, so a caller that waits for it cannot hang.
            None => done(Err(StoreError::Writer("the journal was opened for reading".into()))),
        }
    }

    /// Records a batch and waits until it is durable.
    pub fn append(&self, batch: Batch) -> Result<Vec<Entry>, StoreError> {
        let (tell, told) = sync_channel(1);
        self.submit(batch, move |result| {
            // The receiver waits below, so the send cannot fail.
            let _ = tell.send(result);
        });
        told.recv().unwrap_or_else(|gone| Err(StoreError::Writer(gone.to_string())))
    }

    /// Records a batch through a journal that was opened for reading; the batch is durable when this returns. It is meant for a
    /// process that writes once and ends: there is no thread, and nothing is opened a second time.
    pub fn append_here(&self, batch: Batch) -> Result<Vec<Entry>, StoreError> {
        if let Some(newer) = self.is_newer() {
            return Err(newer);
        }
        let write = || -> rusqlite::Result<Vec<Written>> {
            self.reader.pragma_update(None, "query_only", false)?;
            self.reader.pragma_update(None, "synchronous", "FULL")?;
            commit(&self.reader, &[batch])
        };
        let written = write();
        // The connection goes back to its reading mode even if the commit failed.
        self.keep_short();
        let _ = self.reader.pragma_update(None, "query_only", true);
        let mut written = written.map_err(|cause| self.database(cause))?;
        written.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Keeps the write-ahead log short, because the next process that opens the journal alone has to read all of it. If another
    /// process has the journal open, this one does not wait for it.
    fn keep_short(&self) {
        // SQLite names the log after the database.
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        if fs::metadata(log).is_ok_and(|meta| meta.len() > LONG_LOG) {
            let _ = self.reader.busy_timeout(Duration::ZERO);
            let _ = self.reader.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    /// Reads the entries of a run after number `after_seq`, in order.
    pub fn entries(&self, run: &RunId, after: u64) -> Result<Vec<Entry>, StoreError> {
        let select = "SELECT seq, body, blob FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let rows = statement
            .query_map(params![run.as_str(), after], raw_entry)
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|cause| self.database(cause))?;
        rows.into_iter().map(|row| self.entry(run, row)).collect()
    }

    /// Reads what resuming a run needs of its journal: everything since the last boundary, and the earlier entries that a view
    /// is built from. Earlier states and started effects are most of a long journal, and they are not needed again.
    pub fn entries_to_go_on(&self, run: &RunId) -> Result<Vec<Entry>, StoreError> {
        let mut statement = self.reader.prepare_cached(TO_GO_ON).map_err(|cause| self.database(cause))?;
        let rows = statement
            .query_map([run.as_str()], raw_entry)
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|cause| self.database(cause))?;
        rows.into_iter().map(|row| self.entry(run, row)).collect()
    }

    /// Decodes a stored entry, from its row or from the blob that the row names.
    fn entry(&self, run: &RunId, raw: RawEntry) -> Result<Entry, StoreError> {
        let RawEntry { seq, body, blob } = raw;
        let bytes = match (body, blob) {
            (Some(body), _) => body.into_bytes(),
            (None, Some(hash)) => self.blob(&Hash::new(hash))?,
            (None, None) => Vec::new(),
        };
        match serde_json::from_slice(&bytes) {
            Ok(entry) => Ok(entry),
            // A newer build may have written an event that this one does not know; the envelope is still readable.
            Err(_) => serde_json::from_slice::<Envelope>(&bytes)
                .map(|Envelope { v, run, seq, id, at }| Entry { v, run, seq, id, at, event: Event::Unknown })
                .map_err(|cause| StoreError::Entry { run: run.to_string(), seq, cause }),
        }
    }

    /// Reads the last entry of a run that is of one of these kinds. The time does not depend on the length of the journal.
    pub fn last_of(&self, run: &RunId, kinds: &[&str]) -> Result<Option<Entry>, StoreError> {
        // `?1` is the run, so the placeholders of the kinds begin with `?2`.
        let marks: Vec<String> = (0..kinds.len()).map(|at| format!("?{}", at + 2)).collect();
        let select = format!(
            "SELECT seq, body, blob FROM events WHERE run = ?1 AND kind IN ({}) ORDER BY seq DESC LIMIT 1",
            marks.join(", ")
        );
        let values = [run.as_str()].into_iter().chain(kinds.iter().copied());
        let found = self
            .reader
            .prepare_cached(&select)
            .and_then(|mut statement| statement.query_row(params_from_iter(values), raw_entry).optional())
            .map_err(|cause| self.database(cause))?;
        found.map(|row| self.entry(run, row)).transpose()
    }

    /// When the last entry of a run was recorded.
    pub fn last_stamp(&self, run: &RunId) -> Result<Option<Stamp>, StoreError> {
        let select = "SELECT seq, body, blob FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
        let found = self
            .reader
            .prepare_cached(select)
            .and_then(|mut statement| statement.query_row([run.as_str()], raw_entry).optional())
            .map_err(|cause| self.database(cause))?;
        Ok(found.map(|row| self.entry(run, row)).transpose()?.map(|entry| entry.at))
    }

    /// Lists the loops that sessions work on, oldest first: journals that begin with a session and have no run.
    pub fn loops(&self) -> Result<Vec<RunId>, StoreError> {
        self.beginning("SELECT run FROM events WHERE seq = 1 AND kind = 'session' ORDER BY wall_ms, run")
    }

    /// Lists all runs, oldest first.
    pub fn runs(&self) -> Result<Vec<RunId>, StoreError> {
        self.beginning("SELECT run FROM events WHERE seq = 1 AND kind <> 'session' ORDER BY wall_ms, run")
    }

    /// Runs a query whose rows are run ids.
    fn beginning(&self, select: &str) -> Result<Vec<RunId>, StoreError> {
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        statement
            .query_map([], |row| row.get::<_, String>(0).map(RunId::new))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database(cause))
    }

    /// Reads the entries of all runs that tell their state: starts, ends, decisions, files; by run, in order. Entries in
    /// between are left out, so listing a thousand runs does not read all of their journals.
    pub fn outline(&self) -> Result<Vec<Entry>, StoreError> {
        let mut statement = self.reader.prepare_cached(OUTLINE).map_err(|cause| self.database(cause))?;
        let rows = statement
            .query_map([], |row| {
                let raw = RawEntry { seq: row.get(1)?, body: row.get(2)?, blob: row.get(3)? };
                Ok((RunId::new(row.get::<_, String>(0)?), raw))
            })
            .and_then(Iterator::collect::<rusqlite::Result<Vec<(RunId, RawEntry)>>>)
            .map_err(|cause| self.database(cause))?;
        rows.into_iter().map(|(run, row)| self.entry(&run, row)).collect()
    }

    /// Reads a blob; a missing one is an error.
    pub fn blob(&self, hash: &Hash) -> Result<Vec<u8>, StoreError> {
        let select = "SELECT body FROM blobs WHERE hash = ?1";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let found = statement.query_row([hash.as_str()], |row| row.get(0)).optional();
        found.map_err(|cause| self.database(cause))?.ok_or_else(|| StoreError::NoBlob(hash.to_string()))
    }

    /// The length of a blob, without reading it. `None` means that there is no such blob.
    pub fn blob_bytes(&self, hash: &Hash) -> Result<Option<u64>, StoreError> {
        let select = "SELECT length(body) FROM blobs WHERE hash = ?1";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let found = statement.query_row([hash.as_str()], |row| row.get(0)).optional();
        found.map_err(|cause| self.database(cause))
    }

    /// Reads the requests that users sent to a run and that no run has taken yet.
    pub fn requests(&self, run: &RunId) -> Result<Vec<StoredRequest>, StoreError> {
        // Taken requests stay in the table as a record; only the others are pending.
        let select = "SELECT id, body FROM inbox WHERE run = ?1 AND taken = 0 ORDER BY id";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let rows: Vec<(i64, String)> = statement
            .query_map([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database(cause))?;
        // This build cannot decode a request of a newer one; the request stays in the inbox.
        let understood = rows.into_iter().filter_map(|(id, body)| {
            serde_json::from_str(&body).ok().map(|request| StoredRequest { id, request })
        });
        Ok(understood.collect())
    }

    /// Sends a request to a run.
    pub fn request(&self, run: &RunId, request: &Request) -> Result<(), StoreError> {
        let body = serde_json::to_string(request).map_err(StoreError::Unwritable)?;
        self.append(Batch { request: Some((run.clone(), body)), ..Batch::default() }).map(|_| ())
    }

    fn database(&self, cause: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), cause }
    }
}

/// An entry without its event, which even an unknown event leaves readable.
#[derive(Deserialize)]
struct Envelope {
    v: u16,
    run: RunId,
    seq: u64,
    id: String,
    at: Stamp,
}

/// An entry as its row contains it: the text itself or, if it is long, the hash of a blob.
struct RawEntry {
    seq: u64,
    body: Option<String>,
    blob: Option<String>,
}

fn raw_entry(row: &Row<'_>) -> rusqlite::Result<RawEntry> {
    Ok(RawEntry { seq: row.get(0)?, body: row.get(1)?, blob: row.get(2)? })
}

/// Opens a connection for reading. A reader recovers what a killed writer left, so it opens for writing where it may and then
/// writes nothing. A file in a read-only directory is read as it is, without the shared memory that WAL needs.
fn open_reader(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    // Opening alone does not touch the file; the query does, and it fails where WAL cannot work.
    let probe = |connection: Connection| -> rusqlite::Result<Connection> {
        connection.busy_timeout(patience)?;
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    let writable =
        Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(probe);
    if let Ok(connection) = writable {
        connection.pragma_update(None, "query_only", true)?;
        // A reader leaves the checkpoint to writers.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        return Ok(connection);
    }
    let read_only =
        Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(probe);
    match read_only {
        Err(cause)
            if matches!(
                cause.sqlite_error_code(),
                Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly)
            ) =>
        {
            // An immutable database is opened by a URI, in which these characters have a meaning.
            let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let immutable = format!("file:{escaped}?immutable=1");
            Connection::open_with_flags(immutable, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        // The format check of the caller gives this problem a better message.
        Err(cause) if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        other => other,
    }
}
