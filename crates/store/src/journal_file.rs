//! The journal's file as a whole: whether it is there, and whether it is damaged.

use std::{fs, path::Path};

use rusqlite::ErrorCode;

use crate::{
    damage::{DamagedRun, EntryProblem, JournalDamage},
    error::StoreError,
    heads::{heads_dir, read_heads},
};

pub(crate) const JOURNAL_FILE: &str = "journal.db";

/// Whether any run is known to have been recorded.
pub(crate) fn has_heads(directory: &Path) -> bool {
    fs::read_dir(heads_dir(directory)).is_ok_and(|mut head_files| head_files.next().is_some())
}

/// Whether there is a log with something in it.
pub(crate) fn has_log(directory: &Path) -> bool {
    fs::metadata(directory.join(format!("{JOURNAL_FILE}-wal"))).is_ok_and(|log| log.is_file() && log.len() > 0)
}

/// Refuses something else in the place of the journal, and a missing journal whose runs are known.
pub(crate) fn check_presence(directory: &Path) -> Result<(), StoreError> {
    let journal_path = directory.join(JOURNAL_FILE);
    let problem = match fs::metadata(&journal_path) {
        // SQLite deletes the log of an empty database, so it must not see one.
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 && has_heads(directory) => "it is empty",
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(metadata) if metadata.is_dir() => "it is a directory",
        Ok(_) => "it is not a file",
        Err(_) if fs::symlink_metadata(&journal_path).is_ok_and(|metadata| metadata.is_symlink()) => {
            "it is a link that leads nowhere"
        }
        Err(_) if has_heads(directory) => "it does not exist",
        Err(_) if has_log(directory) => {
            return Err(file_damage(directory, "it does not exist, but its log does"));
        }
        // A new one will be created.
        Err(_) => return Ok(()),
    };
    match has_heads(directory) {
        true => Err(file_damage(directory, problem)),
        false => Err(StoreError::NotAJournal { path: journal_path }),
    }
}

/// The error for a file of which nothing can be read. The heads tell which runs were recorded in it.
pub(crate) fn file_damage(directory: &Path, problem: impl Into<String>) -> StoreError {
    let lost_runs = read_heads(directory).into_iter().map(|(run_id, head)| DamagedRun {
        run_id,
        problem: EntryProblem::CutOff { recorded: head.seq },
        last_good: None,
    });
    StoreError::Damaged(Box::new(JournalDamage {
        path: directory.join(JOURNAL_FILE),
        file_problem: Some(problem.into()),
        runs: lost_runs.collect(),
    }))
}

/// A file that is no journal is a damaged one if it is known to have been one.
pub(crate) fn explain_damage(directory: &Path, cause: StoreError) -> StoreError {
    match cause {
        StoreError::NotAJournal { .. } if has_heads(directory) => {
            file_damage(directory, "it is not a journal any more")
        }
        StoreError::Database { cause, .. } => database_error(directory, cause),
        other_error => other_error,
    }
}

/// Tells a damaged file from other failures of SQLite.
pub(crate) fn database_error(directory: &Path, cause: rusqlite::Error) -> StoreError {
    use rusqlite::Error;
    /// SQLite read fewer bytes than the file should have.
    const SHORT_READ: i32 = rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
    // The tables are ours and were there: what SQLite says about them is about a damaged file.
    let has_other_tables = |message: &str| {
        ["no such table", "no such column", "unsupported file format", "malformed"]
            .iter()
            .any(|text| message.contains(text))
    };
    match &cause {
        Error::InvalidColumnType(..)
        | Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..) => return file_damage(directory, cause.to_string()),
        Error::SqliteFailure(failure, Some(message)) if failure.extended_code == 1 && has_other_tables(message) => {
            return file_damage(directory, message.clone());
        }
        Error::SqlInputError { msg: message, .. } if has_other_tables(message) => {
            return file_damage(directory, message.clone());
        }
        Error::SqliteFailure(failure, _) if failure.extended_code == SHORT_READ => {
            return file_damage(directory, "it is too short");
        }
        _ => {}
    }
    match cause.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => file_damage(directory, cause.to_string()),
        Some(ErrorCode::NotADatabase) if has_heads(directory) => {
            file_damage(directory, "it is not a database any more")
        }
        _ => StoreError::Database { path: directory.join(JOURNAL_FILE), cause },
    }
}
