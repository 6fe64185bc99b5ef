//! The tables and their migrations. A released migration is never changed; a new one is added.

use std::path::Path;

use rusqlite::Connection;

use crate::error::StoreError;

/// Marks the file as a journal of Tribunal (`PRAGMA application_id`): "TRIB".
const APPLICATION_ID: i32 = 0x5452_4942;

/// One script for each format version.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE events (
        run     TEXT    NOT NULL,
        seq     INTEGER NOT NULL,
        id      TEXT    NOT NULL,   -- idempotency id within the run
        kind    TEXT    NOT NULL,
        wall_ms INTEGER NOT NULL,
        body    TEXT,               -- the entry as JSON, or
        blob    TEXT,               -- the hash of the blob that holds it
        PRIMARY KEY (run, seq),
        UNIQUE (run, id)
    ) WITHOUT ROWID;
    CREATE TABLE blobs (
        hash TEXT PRIMARY KEY,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE inbox (
        id   INTEGER PRIMARY KEY,
        run  TEXT    NOT NULL,
        body TEXT    NOT NULL,      -- a request as JSON
        taken INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX inbox_of_run ON inbox (run, taken);
"];

/// The newest format that this build knows.
pub const FORMAT: i32 = MIGRATIONS.len() as i32;

/// Reads the format version of a file; a new file has 0.
pub(crate) fn format_of(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Refuses files that are not journals of Tribunal or are too new to write, and returns the format of the others.
pub(crate) fn check(connection: &Connection, path: &Path, writing: bool) -> Result<i32, StoreError> {
    let database = |cause| StoreError::Database { path: path.to_path_buf(), cause };
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(
        |cause| match cause.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Foreign { path: path.to_path_buf() },
            _ => database(cause),
        },
    )?;
    let found = format_of(connection).map_err(database)?;
    // SQLite creates a file with both numbers at zero.
    let fresh = id == 0 && found == 0;
    if id != APPLICATION_ID && !fresh {
        return Err(StoreError::Foreign { path: path.to_path_buf() });
    }
    if writing && found > FORMAT {
        return Err(StoreError::Newer { path: path.to_path_buf(), found, known: FORMAT });
    }
    Ok(found)
}

/// Brings a file to the newest format, in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // The format is read inside the transaction, because another process may have migrated the file meanwhile.
    let from = usize::try_from(format_of(&transaction)?).unwrap_or(0);
    for script in MIGRATIONS.iter().skip(from) {
        transaction.execute_batch(script)?;
    }
    if from < MIGRATIONS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}
