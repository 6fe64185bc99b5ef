//! The tables and their migrations. A released migration is never changed; a new one is added.

use std::path::Path;

use rusqlite::Connection;

use crate::error::StoreError;

/// Marks the file as a journal of Tribunal (`PRAGMA application_id`): "TRIB".
pub(crate) const APPLICATION_ID: i32 = 0x5452_4942;

/// One script for each format version.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE events (
        run       TEXT    NOT NULL,
        seq       INTEGER NOT NULL,
        id        TEXT    NOT NULL,           -- idempotency id within the run
        kind      TEXT    NOT NULL,
        wall_ms   INTEGER NOT NULL,
        body      TEXT,                       -- the entry as JSON, or
        blob      TEXT,                       -- the hash of the blob that holds it
        chain     TEXT    NOT NULL,           -- a hash of the entry and of the chain before it
        has_texts INTEGER NOT NULL,           -- 1: long texts in it are blobs
        PRIMARY KEY (run, seq),
        UNIQUE (run, id)
    ) WITHOUT ROWID;
    CREATE INDEX run_starts ON events (wall_ms, run) WHERE seq = 1;
    CREATE TABLE blobs (
        hash TEXT PRIMARY KEY,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE inbox (
        id      INTEGER PRIMARY KEY,
        run     TEXT    NOT NULL,
        body    TEXT    NOT NULL,             -- a request as JSON
        taken   INTEGER NOT NULL DEFAULT 0,
        sender  TEXT,                         -- the process that sent the request
        receipt INTEGER                       -- 1: the run knows the sender; 0: it refused the request
    );
    CREATE INDEX inbox_of_run ON inbox (run, taken);
    CREATE TABLE records (
        kind    TEXT    NOT NULL,
        key     TEXT    NOT NULL,
        body    TEXT    NOT NULL,             -- the record as JSON
        run     TEXT    NOT NULL,             -- the run that wrote it, which may be removed by now
        wall_ms INTEGER NOT NULL,
        PRIMARY KEY (kind, key)
    ) WITHOUT ROWID;
"];

/// The newest format that this build knows.
pub const JOURNAL_FORMAT: i32 = MIGRATIONS.len() as i32;

/// Reads the format version of a file; a new file has 0.
pub(crate) fn read_format(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Refuses files that are not journals of Tribunal or are too new to write, and returns the format of the others.
pub(crate) fn check_format(connection: &Connection, journal_path: &Path, for_writing: bool) -> Result<i32, StoreError> {
    let database_error = |cause| StoreError::Database { path: journal_path.to_path_buf(), cause };
    let application_id: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(|cause| {
            match cause.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => StoreError::NotAJournal { path: journal_path.to_path_buf() },
                _ => database_error(cause),
            }
        })?;
    let file_format = read_format(connection).map_err(database_error)?;
    // SQLite creates a file with both numbers at zero.
    let is_new_file = application_id == 0 && file_format == 0;
    if application_id != APPLICATION_ID && !is_new_file {
        return Err(StoreError::NotAJournal { path: journal_path.to_path_buf() });
    }
    if for_writing && file_format > JOURNAL_FORMAT {
        return Err(StoreError::NewerFormat {
            path: journal_path.to_path_buf(),
            found: file_format,
            known: JOURNAL_FORMAT,
        });
    }
    Ok(file_format)
}

/// Brings a file to the newest format, in one transaction.
pub(crate) fn migrate_schema(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // The format is read inside the transaction, because another process may have migrated the file meanwhile.
    let current_format = usize::try_from(read_format(&transaction)?).unwrap_or(0);
    for script in MIGRATIONS.iter().skip(current_format) {
        transaction.execute_batch(script)?;
    }
    if current_format < MIGRATIONS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", JOURNAL_FORMAT)?;
    }
    transaction.commit()
}
