//! The public interface of the store.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::mpsc::sync_channel,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};
use tribunal_engine::ids::RunId;
use tribunal_workflows::runs::{
    records::RecordKind,
    types::{JournalEntry, StoredRecord},
};

use crate::{
    damage::{DamagedRun, JournalDamage},
    error::StoreError,
    file_system,
    heads::{HeadWriter, read_heads},
    journal_file::{JOURNAL_FILE, check_presence, database_error, explain_damage, file_damage, has_heads, has_log},
    records,
    schema::{JOURNAL_FORMAT, check_format, migrate_schema},
    sync_mode::SyncMode,
    writer::{CommittedGroup, EntryBatch, JournalWriter, commit_batches},
};

/// The size of the write-ahead log above which a short-lived writer runs a checkpoint.
const MAX_WAL_BYTES: u64 = 64 << 10;
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The journal of a project. Reading works while another process writes.
pub struct Store {
    journal_path: PathBuf,
    pub(crate) reader: Connection,
    writer: Option<JournalWriter>,
    pub(crate) format: i32,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.journal_path).field("format", &self.format).finish_non_exhaustive()
    }
}

impl Store {
    /// Whether a project has a journal, or had one that is gone while the heads of its runs are still there.
    pub fn exists(directory: &Path) -> bool {
        fs::symlink_metadata(directory.join(JOURNAL_FILE)).is_ok() || has_heads(directory) || has_log(directory)
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
        if !Store::exists(directory) {
            return Ok(());
        }
        match Store::open_read_only(directory) {
            Ok(store) => drop(check_format(&store.reader, &journal_path, true)?),
            Err(StoreError::Empty { .. }) => {}
            Err(open_error) => return Err(open_error),
        }
        // Opening for appending fails like a write would, and writes nothing.
        match fs::OpenOptions::new().append(true).open(&journal_path) {
            Ok(_) => Ok(()),
            Err(cause) => Err(StoreError::NotWritable { path: journal_path, cause }),
        }
    }

    /// Opens for writing, creating and migrating what is needed. A journal in which a run ends too early is not opened.
    pub fn open(directory: &Path) -> Result<Store, StoreError> {
        // The check comes before anything is written, and a writer could run a checkpoint.
        if Store::exists(directory) {
            match Store::open_read_only(directory) {
                Ok(_) | Err(StoreError::Empty { .. }) => {}
                Err(open_error) => return Err(open_error),
            }
        }
        Store::open_with_timeout(directory, BUSY_TIMEOUT)
    }

    /// Does the same as `open` without looking at other runs, for a caller that cannot wait longer than this for other writers.
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
        check_presence(directory)?;
        // SQLite reports a full disk in several ways; only a probe tells it from a broken file.
        let database_error = |cause: rusqlite::Error| match cause.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull { path: journal_path.clone() },
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if file_system::is_disk_full(directory) => {
                StoreError::DiskFull { path: journal_path.clone() }
            }
            _ => database_error(directory, cause),
        };
        let mut connection = Connection::open(&journal_path).map_err(database_error)?;
        connection.busy_timeout(busy_timeout).map_err(database_error)?;
        // The check comes before the pragmas: they would already change a file that is not ours.
        let format =
            check_format(&connection, &journal_path, true).map_err(|cause| explain_damage(directory, cause))?;
        if format == 0 && has_heads(directory) {
            return Err(file_damage(directory, "it is empty"));
        }
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

    /// Opens a journal for writing that this process has opened before. The ends of its runs are not looked at again: with hundreds of runs
    /// that takes longer than everything else.
    pub fn reopen_store(directory: &Path) -> Result<Store, StoreError> {
        Store::open_with_timeout(directory, BUSY_TIMEOUT)
    }

    /// Does the same for reading only.
    pub fn reopen_read_only(directory: &Path) -> Result<Store, StoreError> {
        Store::open_read_only_with_timeout(directory, BUSY_TIMEOUT)
    }

    /// Opens for reading only, also a file that a newer build has written. A journal in which a run ends too early is not opened.
    pub fn open_read_only(directory: &Path) -> Result<Store, StoreError> {
        let store = Store::open_read_only_with_timeout(directory, BUSY_TIMEOUT)?;
        let mut damaged_runs = Vec::new();
        for (run_id, _) in read_heads(directory) {
            damaged_runs.extend(store.find_cut_run(&run_id)?);
        }
        match damaged_runs.is_empty() {
            true => Ok(store),
            false => Err(StoreError::Damaged(Box::new(JournalDamage {
                path: store.journal_path.clone(),
                file_problem: None,
                runs: damaged_runs,
            }))),
        }
    }

    /// Does the same as `open_read_only` without looking at the ends of runs, for a caller that cannot wait, or that wants to
    /// know what is left in a damaged file.
    pub fn open_read_only_with_timeout(directory: &Path, busy_timeout: Duration) -> Result<Store, StoreError> {
        let journal_path = directory.join(JOURNAL_FILE);
        check_presence(directory)?;
        let reader = open_reader(&journal_path, busy_timeout).map_err(|cause| database_error(directory, cause))?;
        let format = check_format(&reader, &journal_path, false).map_err(|cause| explain_damage(directory, cause))?;
        match format {
            0 if has_heads(directory) => Err(file_damage(directory, "it is empty")),
            0 => Err(StoreError::Empty { path: journal_path }),
            _ => Ok(Store { journal_path, reader, writer: None, format }),
        }
    }

    pub(crate) fn journal_path(&self) -> &Path {
        &self.journal_path
    }

    pub(crate) fn directory(&self) -> &Path {
        // The path was made by joining the file's name to the directory.
        self.journal_path.parent().unwrap_or(&self.journal_path)
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
        if self.format < JOURNAL_FORMAT {
            return Store::open_with_timeout(self.directory(), BUSY_TIMEOUT)?.append(batch);
        }
        let write_batch = || -> rusqlite::Result<CommittedGroup> {
            self.reader.pragma_update(None, "query_only", false)?;
            self.reader.pragma_update(None, "synchronous", "FULL")?;
            commit_batches(&self.reader, &[batch])
        };
        let committed = write_batch();
        // The connection goes back to its reading mode even if the commit failed.
        self.limit_wal_size();
        let _ = self.reader.pragma_update(None, "query_only", true);
        let mut committed = committed.map_err(|cause| self.database_error(cause))?;
        HeadWriter::new(self.directory()).write_heads(committed.new_heads, SyncMode::Now);
        committed.batch_results.pop().unwrap_or_else(|| Ok(Vec::new()))
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

    /// Lists all runs, oldest first.
    pub fn list_runs(&self) -> Result<Vec<RunId>, StoreError> {
        let select_sql = "SELECT run FROM events WHERE seq = 1 ORDER BY wall_ms, run";
        let mut statement = self.reader.prepare_cached(select_sql).map_err(|cause| self.database_error(cause))?;
        statement
            .query_map([], |row| row.get::<_, String>(0).map(RunId::new))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database_error(cause))
    }

    /// Lists the runs whose names begin with a prefix, oldest first.
    pub fn list_named_runs(&self, name_prefix: &str) -> Result<Vec<RunId>, StoreError> {
        // A run that begins with the prefix sorts between it and the prefix with the last character behind it.
        let select_sql =
            "SELECT run FROM events WHERE run >= ?1 AND run < ?1 || char(1114111) AND seq = 1 ORDER BY wall_ms, run";
        let mut statement = self.reader.prepare_cached(select_sql).map_err(|cause| self.database_error(cause))?;
        statement
            .query_map([name_prefix], |row| row.get::<_, String>(0).map(RunId::new))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database_error(cause))
    }

    /// Reads the project records of one kind whose keys begin with a prefix, by key.
    pub fn read_records(&self, kind: RecordKind, key_prefix: &str) -> Result<Vec<StoredRecord>, StoreError> {
        records::select_records(&self.reader, kind, key_prefix).map_err(|cause| self.database_error(cause))
    }

    pub(crate) fn database_error(&self, cause: rusqlite::Error) -> StoreError {
        database_error(self.directory(), cause)
    }

    pub(crate) fn run_damage(&self, damaged_run: DamagedRun) -> StoreError {
        StoreError::Damaged(Box::new(JournalDamage {
            path: self.journal_path.clone(),
            file_problem: None,
            runs: vec![damaged_run],
        }))
    }
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
