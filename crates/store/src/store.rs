//! The store as others see it.

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
/// What says where runs stand. One pass over the table beats an index here: of a row only its head is read, unless it is
/// one of these.
const OUTLINE: &str = "
    SELECT run, seq, body, blob FROM events
    WHERE kind IN ('run_started', 'run_resumed', 'settings_changed', 'run_parked', 'run_finished',
                   'decision_posted', 'decision_answered', 'file_written', 'confidence_calculated')
    ORDER BY run, seq";
/// More than this a short-lived writer does not leave unmoved.
const LONG_LOG: u64 = 64 << 10;
pub(crate) const BUSY: Duration = Duration::from_secs(30);

const TO_GO_ON: &str = "
    SELECT seq, body, blob FROM events
    WHERE run = ?1 AND (
        kind NOT IN ('boundary', 'effect_started')
        OR seq >= coalesce(
            (SELECT seq FROM events WHERE run = ?1 AND kind = 'boundary' ORDER BY seq DESC LIMIT 1), 0)
    )
    ORDER BY seq";

/// A project's journal. Reading works while another process writes.
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

/// A person's request with its number in the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    pub id: i64,
    pub request: Request,
}

impl Store {
    /// Whether a project has a journal.
    pub fn exists(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// Opens for writing, creating and migrating what is needed.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        Store::open_within(folder, BUSY)
    }

    /// The same for somebody who cannot wait longer than this for other writers.
    pub fn open_within(folder: &Path, patience: Duration) -> Result<Store, StoreError> {
        fs::create_dir_all(folder)
            .map_err(|cause| StoreError::Create { path: folder.to_path_buf(), cause })?;
        if let Some(kind) = place::network(folder) {
            return Err(StoreError::Network { path: folder.to_path_buf(), kind });
        }
        let path = folder.join(FILE);
        let database = |cause: rusqlite::Error| match cause.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full { path: path.clone() },
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if place::is_full(folder) => {
                StoreError::Full { path: path.clone() }
            }
            _ => StoreError::Database { path: path.clone(), cause },
        };
        let mut connection = Connection::open(&path).map_err(database)?;
        connection.busy_timeout(patience).map_err(database)?;
        check(&connection, &path, true)?;
        for (name, value) in [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")] {
            connection.pragma_update(None, name, value).map_err(database)?;
        }
        if patience < BUSY {
            // Whoever comes next tidies up; it may be done with more leisure.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(database)?;
        }
        migrate(&mut connection).map_err(database)?;
        let reader = open_reader(&path, patience).map_err(database)?;
        let writer = Writer::start(connection, path.clone())?;
        Ok(Store { path, reader, writer: Some(writer), format: FORMAT })
    }

    /// Opens for reading only; also a file of a newer build.
    pub fn open_read_only(folder: &Path) -> Result<Store, StoreError> {
        Store::open_read_only_within(folder, BUSY)
    }

    /// The same for somebody who cannot wait.
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

    /// The file was written by a newer build than this.
    pub fn is_newer(&self) -> Option<StoreError> {
        let newer = StoreError::Newer { path: self.path.clone(), found: self.format, known: FORMAT };
        (self.format > FORMAT).then_some(newer)
    }

    /// Queues a batch; `done` is called on the writer's thread once it is durable.
    pub fn submit(&self, batch: Batch, done: impl FnOnce(Result<Vec<Entry>, StoreError>) + Send + 'static) {
        match &self.writer {
            Some(writer) => writer.submit(batch, Box::new(done)),
            None => done(Err(StoreError::Writer("the journal was opened for reading".into()))),
        }
    }

    /// Records a batch and waits until it is durable.
    pub fn append(&self, batch: Batch) -> Result<Vec<Entry>, StoreError> {
        let (tell, told) = sync_channel(1);
        self.submit(batch, move |result| {
            let _ = tell.send(result);
        });
        told.recv().unwrap_or_else(|gone| Err(StoreError::Writer(gone.to_string())))
    }

    /// Records a batch through a journal that was opened for reading, durable when it returns: for somebody who writes once and
    /// goes. It has no thread, and nothing is opened a second time.
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
        self.keep_short();
        let _ = self.reader.pragma_update(None, "query_only", true);
        let mut written = written.map_err(|cause| self.database(cause))?;
        written.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Whoever opens the journal next, alone, reads all that was written and not yet moved into it: that must stay little. If
    /// somebody else has it open, they need not, and are not waited for.
    fn keep_short(&self) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        if fs::metadata(log).is_ok_and(|meta| meta.len() > LONG_LOG) {
            let _ = self.reader.busy_timeout(Duration::ZERO);
            let _ = self.reader.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    /// A run's entries after number `after`, in order.
    pub fn entries(&self, run: &RunId, after: u64) -> Result<Vec<Entry>, StoreError> {
        let select = "SELECT seq, body, blob FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let rows = statement
            .query_map(params![run.as_str(), after], raw_entry)
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|cause| self.database(cause))?;
        rows.into_iter().map(|row| self.entry(run, row)).collect()
    }

    /// What going on with a run needs of its journal: everything since the last boundary, and what a view is folded from
    /// before it. Earlier states and questions are most of a long journal, and nobody reads them again.
    pub fn entries_to_go_on(&self, run: &RunId) -> Result<Vec<Entry>, StoreError> {
        let mut statement = self.reader.prepare_cached(TO_GO_ON).map_err(|cause| self.database(cause))?;
        let rows = statement
            .query_map([run.as_str()], raw_entry)
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|cause| self.database(cause))?;
        rows.into_iter().map(|row| self.entry(run, row)).collect()
    }

    fn entry(&self, run: &RunId, raw: RawEntry) -> Result<Entry, StoreError> {
        let RawEntry { seq, body, blob } = raw;
        let bytes = match (body, blob) {
            (Some(body), _) => body.into_bytes(),
            (None, Some(hash)) => self.blob(&Hash::new(hash))?,
            (None, None) => Vec::new(),
        };
        match serde_json::from_slice(&bytes) {
            Ok(entry) => Ok(entry),
            // A newer build may have written a part that this one does not know: the envelope is still readable.
            Err(_) => serde_json::from_slice::<Envelope>(&bytes)
                .map(|Envelope { v, run, seq, id, at }| Entry { v, run, seq, id, at, event: Event::Unknown })
                .map_err(|cause| StoreError::Entry { run: run.to_string(), seq, cause }),
        }
    }

    /// A run's last entry of one of these kinds. However long its journal is, this is as fast.
    pub fn last_of(&self, run: &RunId, kinds: &[&str]) -> Result<Option<Entry>, StoreError> {
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

    /// When a run's last entry was recorded.
    pub fn last_stamp(&self, run: &RunId) -> Result<Option<Stamp>, StoreError> {
        let select = "SELECT seq, body, blob FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
        let found = self
            .reader
            .prepare_cached(select)
            .and_then(|mut statement| statement.query_row([run.as_str()], raw_entry).optional())
            .map_err(|cause| self.database(cause))?;
        Ok(found.map(|row| self.entry(run, row)).transpose()?.map(|entry| entry.at))
    }

    /// Loops that sessions have taken on, oldest first: journals that begin with a session, and have no run.
    pub fn loops(&self) -> Result<Vec<RunId>, StoreError> {
        self.beginning("SELECT run FROM events WHERE seq = 1 AND kind = 'session' ORDER BY wall_ms, run")
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> Result<Vec<RunId>, StoreError> {
        self.beginning("SELECT run FROM events WHERE seq = 1 AND kind <> 'session' ORDER BY wall_ms, run")
    }

    fn beginning(&self, select: &str) -> Result<Vec<RunId>, StoreError> {
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        statement
            .query_map([], |row| row.get::<_, String>(0).map(RunId::new))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database(cause))
    }

    /// Of all runs the entries that say where they stand: starts, ends, decisions, files; by run, in order. What happened
    /// in between is not among them, so listing a thousand runs does not read all of their journals.
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

    pub fn blob(&self, hash: &Hash) -> Result<Vec<u8>, StoreError> {
        let select = "SELECT body FROM blobs WHERE hash = ?1";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let found = statement.query_row([hash.as_str()], |row| row.get(0)).optional();
        found.map_err(|cause| self.database(cause))?.ok_or_else(|| StoreError::NoBlob(hash.to_string()))
    }

    /// How long a blob is, without reading it. None: it is not there.
    pub fn blob_bytes(&self, hash: &Hash) -> Result<Option<u64>, StoreError> {
        let select = "SELECT length(body) FROM blobs WHERE hash = ?1";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let found = statement.query_row([hash.as_str()], |row| row.get(0)).optional();
        found.map_err(|cause| self.database(cause))
    }

    /// What people sent to a run and no run has taken in yet.
    pub fn requests(&self, run: &RunId) -> Result<Vec<StoredRequest>, StoreError> {
        let select = "SELECT id, body FROM inbox WHERE run = ?1 AND taken = 0 ORDER BY id";
        let mut statement = self.reader.prepare_cached(select).map_err(|cause| self.database(cause))?;
        let rows: Vec<(i64, String)> = statement
            .query_map([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database(cause))?;
        // A request of a newer build cannot be understood here; it stays where it is.
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

/// An entry without its event.
#[derive(Deserialize)]
struct Envelope {
    v: u16,
    run: RunId,
    seq: u64,
    id: String,
    at: Stamp,
}

/// An entry as its row has it: the text itself or, where it is long, the hash of a blob.
struct RawEntry {
    seq: u64,
    body: Option<String>,
    blob: Option<String>,
}

fn raw_entry(row: &Row<'_>) -> rusqlite::Result<RawEntry> {
    Ok(RawEntry { seq: row.get(0)?, body: row.get(1)?, blob: row.get(2)? })
}

/// A reader recovers what a killed writer left, so it opens for writing where it may and then writes nothing. A file in a
/// folder that may not be written is read as it is, without the shared memory that WAL wants.
fn open_reader(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let probe = |connection: Connection| -> rusqlite::Result<Connection> {
        connection.busy_timeout(patience)?;
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    let writable =
        Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(probe);
    if let Ok(connection) = writable {
        connection.pragma_update(None, "query_only", true)?;
        // Who only reads does not move what others wrote.
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
            let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let immutable = format!("file:{escaped}?immutable=1");
            Connection::open_with_flags(immutable, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        // What is wrong with the file itself is found out by whoever checks it.
        Err(cause) if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        other => other,
    }
}
