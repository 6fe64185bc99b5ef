//! The public interface of the store.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::mpsc::sync_channel,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, config::DbConfig, params, params_from_iter};
use serde::Deserialize;
use tribunal_core::{
    decisions::user_request::UserRequest,
    engine::{
        event::{JournalEntry, RunEvent, UnknownEvent},
        ids::{Hash, RunId},
        records::{RecordKind, StoredRecord},
        timestamp::Timestamp,
    },
};

use crate::{
    error::StoreError,
    file_system, records,
    schema::{JOURNAL_FORMAT, RECORDS_FORMAT, SENDERS_FORMAT, check_format, migrate_schema},
    writer::{BatchResult, EntryBatch, JournalWriter, NewRequest, commit_batches},
};

pub(crate) const JOURNAL_FILE: &str = "journal.db";
/// Selects the entries that tell the state of runs, in one pass over the table: there is no index on the kind.
const SELECT_OUTLINE: &str = "
    SELECT run, seq, body, blob FROM events
    WHERE kind IN ('run_started', 'run_resumed', 'settings_changed', 'run_parked', 'run_finished',
                   'child_started', 'decision_posted', 'decision_answered', 'file_written', 'confidence_calculated')
    ORDER BY run, seq";
/// The size of the write-ahead log above which a short-lived writer runs a checkpoint.
const MAX_WAL_BYTES: u64 = 64 << 10;
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Selects the entries that are needed to resume a run.
const SELECT_FOR_RESUME: &str = "
    SELECT seq, body, blob FROM events
    WHERE run = ?1 AND (
        kind NOT IN ('boundary', 'effect_started')
        OR seq >= coalesce(
            (SELECT seq FROM events WHERE run = ?1 AND kind = 'boundary' ORDER BY seq DESC LIMIT 1), 0)
    )
    ORDER BY seq";

/// The journal of a project. Reading works while another process writes.
pub struct Store {
    journal_path: PathBuf,
    reader: Connection,
    writer: Option<JournalWriter>,
    format: i32,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.journal_path).field("format", &self.format).finish_non_exhaustive()
    }
}

/// A request of the user with its number in the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    pub inbox_id: i64,
    pub request: UserRequest,
    /// The process that claims to have sent it; empty if none does.
    pub sender: String,
}

/// What became of the requests of one sender to one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStatus {
    /// The run has not looked at all of them.
    Waiting,
    /// The run has taken them, or knows their sender and takes them with its next step.
    Accepted,
    Refused,
}

impl Store {
    /// Whether a project has a journal.
    pub fn exists(directory: &Path) -> bool {
        // A directory of that name, or a dangling link, is not a journal.
        directory.join(JOURNAL_FILE).is_file()
    }

    /// Checks whether `open` would succeed. Nothing is created or changed, so this may be asked at any time.
    pub fn check_openable(directory: &Path) -> Result<(), StoreError> {
        // A directory that does not exist yet will be on the file system of the nearest one that does.
        let existing_directory = directory.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(directory);
        if let Some(kind) = file_system::find_network_file_system(existing_directory) {
            return Err(StoreError::NetworkFileSystem { path: directory.to_path_buf(), kind });
        }
        let journal_path = directory.join(JOURNAL_FILE);
        // Without a journal a new one will be created.
        if fs::symlink_metadata(&journal_path).is_err() {
            return Ok(());
        }
        let reader = open_reader(&journal_path, BUSY_TIMEOUT)
            .map_err(|cause| StoreError::Database { path: journal_path.clone(), cause })?;
        check_format(&reader, &journal_path, true)?;
        // Opening for appending fails like a write would, and writes nothing.
        match fs::OpenOptions::new().append(true).open(&journal_path) {
            Ok(_) => Ok(()),
            Err(cause) => Err(StoreError::NotWritable { path: journal_path, cause }),
        }
    }

    /// Opens for writing, creating and migrating what is needed.
    pub fn open(directory: &Path) -> Result<Store, StoreError> {
        Store::open_with_timeout(directory, BUSY_TIMEOUT)
    }

    /// Does the same as `open`, for a caller that cannot wait longer than this for other writers.
    pub fn open_with_timeout(directory: &Path, busy_timeout: Duration) -> Result<Store, StoreError> {
        // What it holds is for the user alone.
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|cause| StoreError::CannotCreate { path: directory.to_path_buf(), cause })?;
        // WAL needs shared memory of one machine; over a network two writers would corrupt the file.
        if let Some(kind) = file_system::find_network_file_system(directory) {
            return Err(StoreError::NetworkFileSystem { path: directory.to_path_buf(), kind });
        }
        let journal_path = directory.join(JOURNAL_FILE);
        // SQLite reports a full disk in several ways; only a probe tells it from a broken file.
        let database_error = |cause: rusqlite::Error| match cause.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull { path: journal_path.clone() },
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if file_system::is_disk_full(directory) => {
                StoreError::DiskFull { path: journal_path.clone() }
            }
            _ => StoreError::Database { path: journal_path.clone(), cause },
        };
        let mut connection = Connection::open(&journal_path).map_err(database_error)?;
        connection.busy_timeout(busy_timeout).map_err(database_error)?;
        // The check comes before the pragmas: they would already change a file that is not ours.
        check_format(&connection, &journal_path, true)?;
        for (pragma_name, pragma_value) in [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")] {
            connection.pragma_update(None, pragma_name, pragma_value).map_err(database_error)?;
        }
        if busy_timeout < BUSY_TIMEOUT {
            // The next process that opens the journal runs the checkpoint; this one has no time for it.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(database_error)?;
        }
        migrate_schema(&mut connection).map_err(database_error)?;
        let reader = open_reader(&journal_path, busy_timeout).map_err(database_error)?;
        let writer = JournalWriter::start(connection, journal_path.clone())?;
        Ok(Store { journal_path, reader, writer: Some(writer), format: JOURNAL_FORMAT })
    }

    /// Opens for reading only, also a file that a newer build has written.
    pub fn open_read_only(directory: &Path) -> Result<Store, StoreError> {
        Store::open_read_only_with_timeout(directory, BUSY_TIMEOUT)
    }

    /// Does the same as `open_read_only`, for a caller that cannot wait.
    pub fn open_read_only_with_timeout(directory: &Path, busy_timeout: Duration) -> Result<Store, StoreError> {
        let journal_path = directory.join(JOURNAL_FILE);
        let reader = open_reader(&journal_path, busy_timeout)
            .map_err(|cause| StoreError::Database { path: journal_path.clone(), cause })?;
        let format = check_format(&reader, &journal_path, false)?;
        if format == 0 {
            return Err(StoreError::Empty { path: journal_path });
        }
        Ok(Store { journal_path, reader, writer: None, format })
    }

    /// The error to report if a newer build than this one has written the file.
    pub fn newer_format_error(&self) -> Option<StoreError> {
        let format_error =
            StoreError::NewerFormat { path: self.journal_path.clone(), found: self.format, known: JOURNAL_FORMAT };
        (self.format > JOURNAL_FORMAT).then_some(format_error)
    }

    /// Queues a batch; the callback runs on the writer's thread once the batch is durable.
    pub fn submit(
        &self,
        batch: EntryBatch,
        on_durable: impl FnOnce(Result<Vec<JournalEntry>, StoreError>) + Send + 'static,
    ) {
        match &self.writer {
            Some(writer) => writer.submit(batch, Box::new(on_durable)),
            // The callback runs in any case, so a caller that waits for it cannot hang.
            None => on_durable(Err(StoreError::WriterStopped("the journal is open read-only".into()))),
        }
    }

    /// Records a batch and waits until it is durable.
    pub fn append(&self, batch: EntryBatch) -> Result<Vec<JournalEntry>, StoreError> {
        let (sender, receiver) = sync_channel(1);
        self.submit(batch, move |result| {
            // The receiver waits below, so the send cannot fail.
            let _ = sender.send(result);
        });
        receiver.recv().unwrap_or_else(|closed| Err(StoreError::WriterStopped(closed.to_string())))
    }

    /// Records a batch through a journal that was opened for reading; the batch is durable when this returns. It is meant for a
    /// process that writes once and ends: there is no thread, and nothing is opened a second time.
    pub fn append_without_writer(&self, batch: EntryBatch) -> Result<Vec<JournalEntry>, StoreError> {
        if let Some(format_error) = self.newer_format_error() {
            return Err(format_error);
        }
        let write_batch = || -> rusqlite::Result<Vec<BatchResult>> {
            self.reader.pragma_update(None, "query_only", false)?;
            self.reader.pragma_update(None, "synchronous", "FULL")?;
            commit_batches(&self.reader, &[batch])
        };
        let batch_results = write_batch();
        // The connection goes back to its reading mode even if the commit failed.
        self.limit_wal_size();
        let _ = self.reader.pragma_update(None, "query_only", true);
        let mut batch_results = batch_results.map_err(|cause| self.database_error(cause))?;
        batch_results.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Keeps the write-ahead log short, because the next process that opens the journal alone has to read all of it. If another
    /// process has the journal open, this one does not wait for it.
    fn limit_wal_size(&self) {
        // SQLite names the log after the database.
        let mut wal_path = self.journal_path.clone().into_os_string();
        wal_path.push("-wal");
        if fs::metadata(wal_path).is_ok_and(|wal_metadata| wal_metadata.len() > MAX_WAL_BYTES) {
            let _ = self.reader.busy_timeout(Duration::ZERO);
            let _ = self.reader.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    /// Reads the entries of a run after number `after_seq`, in order.
    pub fn read_entries(&self, run_id: &RunId, after_seq: u64) -> Result<Vec<JournalEntry>, StoreError> {
        let select_sql = "SELECT seq, body, blob FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq";
        let mut statement = self.reader.prepare_cached(select_sql).map_err(|cause| self.database_error(cause))?;
        let raw_entries = statement
            .query_map(params![run_id.as_str(), after_seq], read_raw_entry)
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|cause| self.database_error(cause))?;
        raw_entries.into_iter().map(|raw_row| self.decode_entry(run_id, raw_row)).collect()
    }

    /// Reads what resuming a run needs of its journal: everything since the last boundary, and the earlier entries that a view
    /// is built from. Earlier states and started effects are most of a long journal, and they are not needed again.
    pub fn entries_for_resume(&self, run_id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
        let mut statement =
            self.reader.prepare_cached(SELECT_FOR_RESUME).map_err(|cause| self.database_error(cause))?;
        let raw_entries = statement
            .query_map([run_id.as_str()], read_raw_entry)
            .and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>)
            .map_err(|cause| self.database_error(cause))?;
        raw_entries.into_iter().map(|raw_row| self.decode_entry(run_id, raw_row)).collect()
    }

    /// Decodes a stored entry, from its row or from the blob that the row names.
    fn decode_entry(&self, run_id: &RunId, raw: RawEntry) -> Result<JournalEntry, StoreError> {
        let RawEntry { seq, body, blob } = raw;
        let bytes = match (body, blob) {
            (Some(body), _) => body.into_bytes(),
            (None, Some(hash)) => self.read_blob(&Hash::new(hash))?,
            (None, None) => Vec::new(),
        };
        match serde_json::from_slice(&bytes) {
            Ok(entry) => Ok(entry),
            // A newer build may have written an event that this one does not know; the envelope is still readable.
            Err(_) => serde_json::from_slice::<EntryEnvelope>(&bytes)
                .map(|EntryEnvelope { v, run: run_id, seq, id, at, kind }| JournalEntry {
                    v,
                    run: run_id,
                    seq,
                    id,
                    at,
                    event: RunEvent::Unknown(UnknownEvent { kind, ..UnknownEvent::default() }),
                })
                .map_err(|cause| StoreError::UnreadableEntry { run: run_id.to_string(), seq, cause }),
        }
    }

    /// Reads the last entry of a run that is of one of these kinds. The primary key lets SQLite search backwards from the end of
    /// the run, so an entry near the end is found quickly however long the journal is.
    pub fn last_entry_of(&self, run_id: &RunId, kinds: &[&str]) -> Result<Option<JournalEntry>, StoreError> {
        // `?1` is the run, so the placeholders of the kinds begin with `?2`.
        let placeholders: Vec<String> = (0..kinds.len()).map(|kind_index| format!("?{}", kind_index + 2)).collect();
        let select_sql = format!(
            "SELECT seq, body, blob FROM events WHERE run = ?1 AND kind IN ({}) ORDER BY seq DESC LIMIT 1",
            placeholders.join(", ")
        );
        let parameters = [run_id.as_str()].into_iter().chain(kinds.iter().copied());
        let raw_row = self
            .reader
            .prepare_cached(&select_sql)
            .and_then(|mut statement| statement.query_row(params_from_iter(parameters), read_raw_entry).optional())
            .map_err(|cause| self.database_error(cause))?;
        raw_row.map(|last_row| self.decode_entry(run_id, last_row)).transpose()
    }

    /// When the last entry of a run was recorded.
    pub fn last_timestamp(&self, run_id: &RunId) -> Result<Option<Timestamp>, StoreError> {
        let select_sql = "SELECT seq, body, blob FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
        let raw_row = self
            .reader
            .prepare_cached(select_sql)
            .and_then(|mut statement| statement.query_row([run_id.as_str()], read_raw_entry).optional())
            .map_err(|cause| self.database_error(cause))?;
        Ok(raw_row.map(|last_row| self.decode_entry(run_id, last_row)).transpose()?.map(|entry| entry.at))
    }

    /// Lists all runs, oldest first.
    pub fn list_runs(&self) -> Result<Vec<RunId>, StoreError> {
        let select_sql = "SELECT run FROM events WHERE seq = 1 ORDER BY wall_ms, run";
        let mut statement = self.reader.prepare_cached(select_sql).map_err(|cause| self.database_error(cause))?;
        statement
            .query_map([], |row| row.get::<_, String>(0).map(RunId::new))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database_error(cause))
    }

    /// Reads the entries of all runs that tell their state: starts, ends, decisions, files; by run, in order. Entries in
    /// between are left out, so listing a thousand runs does not read all of their journals.
    pub fn read_outline(&self) -> Result<Vec<JournalEntry>, StoreError> {
        let mut statement = self.reader.prepare_cached(SELECT_OUTLINE).map_err(|cause| self.database_error(cause))?;
        let outline_rows = statement
            .query_map([], |row| {
                let raw = RawEntry { seq: row.get(1)?, body: row.get(2)?, blob: row.get(3)? };
                Ok((RunId::new(row.get::<_, String>(0)?), raw))
            })
            .and_then(Iterator::collect::<rusqlite::Result<Vec<(RunId, RawEntry)>>>)
            .map_err(|cause| self.database_error(cause))?;
        outline_rows.into_iter().map(|(run, raw)| self.decode_entry(&run, raw)).collect()
    }

    /// Reads a blob; a missing one is an error.
    pub fn read_blob(&self, hash: &Hash) -> Result<Vec<u8>, StoreError> {
        let select_sql = "SELECT body FROM blobs WHERE hash = ?1";
        let mut statement = self.reader.prepare_cached(select_sql).map_err(|cause| self.database_error(cause))?;
        let blob_body = statement.query_row([hash.as_str()], |row| row.get(0)).optional();
        blob_body.map_err(|cause| self.database_error(cause))?.ok_or_else(|| StoreError::MissingBlob(hash.to_string()))
    }

    /// The length of a blob, without reading it. `None` means that there is no such blob.
    pub fn blob_size(&self, hash: &Hash) -> Result<Option<u64>, StoreError> {
        let select_sql = "SELECT length(body) FROM blobs WHERE hash = ?1";
        let mut statement = self.reader.prepare_cached(select_sql).map_err(|cause| self.database_error(cause))?;
        let body_length = statement.query_row([hash.as_str()], |row| row.get(0)).optional();
        body_length.map_err(|cause| self.database_error(cause))
    }

    /// Reads the requests that users sent to a run and that no run has taken yet.
    pub fn pending_requests(&self, run_id: &RunId) -> Result<Vec<StoredRequest>, StoreError> {
        let requests = self.select_requests("run = ?1", &[run_id.as_str()])?;
        Ok(requests.into_iter().map(|(_, stored)| stored).collect())
    }

    /// Reads the requests to all runs that no run has taken yet.
    pub fn all_pending_requests(&self) -> Result<Vec<(RunId, StoredRequest)>, StoreError> {
        self.select_requests("1", &[])
    }

    fn select_requests(&self, condition: &str, parameters: &[&str]) -> Result<Vec<(RunId, StoredRequest)>, StoreError> {
        // Taken requests stay in the table as a record; only the others are pending.
        let sender_column = if self.format < SENDERS_FORMAT { "''" } else { "coalesce(sender, '')" };
        let select_sql =
            format!("SELECT run, id, body, {sender_column} FROM inbox WHERE {condition} AND taken = 0 ORDER BY id");
        let mut statement = self.reader.prepare_cached(&select_sql).map_err(|cause| self.database_error(cause))?;
        let rows: Vec<(String, i64, String, String)> = statement
            .query_map(params_from_iter(parameters), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database_error(cause))?;
        // This build cannot decode a request of a newer one; the request stays in the inbox.
        let understood = rows.into_iter().filter_map(|(run, id, body, sender)| {
            let request = serde_json::from_str(&body).ok()?;
            Some((RunId::new(run), StoredRequest { inbox_id: id, request, sender }))
        });
        Ok(understood.collect())
    }

    /// Sends a request to a run, in place of earlier ones that the run has not read yet. `sender` identifies this process.
    pub fn send_request(
        &self,
        run_id: &RunId,
        request: &UserRequest,
        sender: &str,
        replaced_ids: Vec<i64>,
    ) -> Result<(), StoreError> {
        let request_json = serde_json::to_string(request).map_err(StoreError::UnwritableEntry)?;
        // Both happen in one transaction. A run that has read an earlier request just now finds the new one as well, and
        // says that it came too late.
        let new_request = Some(NewRequest { run_id: run_id.clone(), request_json, sender: sender.to_string() });
        self.append(EntryBatch { taken_requests: replaced_ids, new_request, ..EntryBatch::default() }).map(|_| ())
    }

    /// Finds out what became of the requests that a process sent to a run.
    pub fn request_status(&self, run_id: &RunId, sender: &str) -> Result<RequestStatus, StoreError> {
        let select_sql = "SELECT coalesce(max(receipt = 0), 0), coalesce(max(taken = 0 AND receipt IS NULL), 0)
            FROM inbox WHERE run = ?1 AND sender = ?2";
        let (is_refused, is_waiting): (bool, bool) = self
            .reader
            .prepare_cached(select_sql)
            .and_then(|mut statement| {
                statement.query_row([run_id.as_str(), sender], |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .map_err(|cause| self.database_error(cause))?;
        Ok(match (is_refused, is_waiting) {
            (true, _) => RequestStatus::Refused,
            (false, true) => RequestStatus::Waiting,
            (false, false) => RequestStatus::Accepted,
        })
    }

    /// Reads the project records of one kind whose keys begin with a prefix, by key.
    pub fn read_records(&self, kind: RecordKind, key_prefix: &str) -> Result<Vec<StoredRecord>, StoreError> {
        if self.format < RECORDS_FORMAT {
            return Ok(Vec::new());
        }
        records::select_records(&self.reader, kind, key_prefix).map_err(|cause| self.database_error(cause))
    }

    fn database_error(&self, cause: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.journal_path.clone(), cause }
    }
}

/// An entry without its event, which even an unknown event leaves readable.
#[derive(Deserialize)]
struct EntryEnvelope {
    v: u16,
    run: RunId,
    seq: u64,
    id: String,
    at: Timestamp,
    #[serde(default)]
    kind: String,
}

/// An entry as its row contains it: the text itself or, if it is long, the hash of a blob.
struct RawEntry {
    seq: u64,
    body: Option<String>,
    blob: Option<String>,
}

fn read_raw_entry(row: &Row<'_>) -> rusqlite::Result<RawEntry> {
    Ok(RawEntry { seq: row.get(0)?, body: row.get(1)?, blob: row.get(2)? })
}

/// Opens a connection for reading. A reader recovers what a killed writer left, so it opens for writing where it may and then
/// writes nothing. A file in a read-only directory is read as it is, without the shared memory that WAL needs.
fn open_reader(journal_path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    // Opening alone does not touch the file; the query does, and it fails where WAL cannot work.
    let probe = |connection: Connection| -> rusqlite::Result<Connection> {
        connection.busy_timeout(busy_timeout)?;
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    let writable_connection =
        Connection::open_with_flags(journal_path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(probe);
    if let Ok(connection) = writable_connection {
        connection.pragma_update(None, "query_only", true)?;
        // A reader leaves the checkpoint to writers.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        return Ok(connection);
    }
    let read_only_connection =
        Connection::open_with_flags(journal_path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(probe);
    match read_only_connection {
        Err(cause)
            if matches!(
                cause.sqlite_error_code(),
                Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly)
            ) =>
        {
            // An immutable database is opened by a URI, in which these characters have a meaning.
            let escaped_path =
                journal_path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let immutable_uri = format!("file:{escaped_path}?immutable=1");
            Connection::open_with_flags(immutable_uri, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        // The format check of the caller gives this problem a better message.
        Err(cause) if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Connection::open_with_flags(journal_path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        opened => opened,
    }
}
