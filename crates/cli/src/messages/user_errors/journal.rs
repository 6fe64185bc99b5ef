//! Errors of the journal, as the user reads them.

use tribunal_store::{JournalDamage, StoreError};

use super::{EXIT_ENVIRONMENT, UserError, internal_error};

/// At most this many damaged runs are named.
const MAX_NAMED_RUNS: usize = 5;

impl From<StoreError> for UserError {
    fn from(cause: StoreError) -> Self {
        let message = cause.to_string();
        match cause {
            StoreError::NewerFormat { .. } => UserError::usage(message)
                .with_reason("Writing to it with this version could lose data that the newer version recorded.")
                .with_step("use the newer version of Tribunal for this project")
                .with_step("to only read it, use `tribunal runs`, `tribunal findings` or `tribunal log`"),
            StoreError::Empty { .. } => UserError::usage(message)
                .with_reason("It contains no runs.")
                .with_step("start one: `tribunal review FILE`"),
            StoreError::NotAJournal { .. } => {
                UserError::usage(message).with_step("move the file away; Tribunal will create a new journal")
            }
            StoreError::NetworkFileSystem { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason(
                    "The journal needs memory that its readers and writers share. Network file systems do not provide it:\n\
                     two machines could overwrite each other's data. Nothing was started.",
                )
                .with_step("work on a copy of the project on a local disk"),
            StoreError::DiskFull { path: file_path } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason(
                    "Without its journal a run cannot be resumed, so no run starts or continues. What was recorded is kept.",
                )
                .with_step(format!("free disk space; check with `df {}`", file_path.display())),
            StoreError::FileGone { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason("The run could not record anything any more, so it was stopped.")
                .with_step("if the directory was only moved, move it back, then list the runs: `tribunal runs`")
                .with_step("otherwise see what is left: `tribunal recover`"),
            StoreError::NotWritable { path: file_path, .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason("Without its journal a run cannot be resumed, so no run starts or continues.")
                .with_step(format!("check its permissions: `ls -l {}`", file_path.display())),
            StoreError::CannotCreate { .. } | StoreError::Database { .. } | StoreError::WriterStopped(_) => {
                UserError::new(EXIT_ENVIRONMENT, message)
                    .with_reason(
                        "Without its journal a run cannot be resumed, so no run starts or continues.",
                    )
                    .with_step("make the project directory writable, and make sure that neither disk nor system is full")
            }
            StoreError::Damaged(damage) => damaged_journal(message, &damage),
            StoreError::MissingBlob { .. } | StoreError::UnreadableEntry { .. } => {
                UserError::new(EXIT_ENVIRONMENT, message)
                    .with_reason(DAMAGE_CAUSE)
                    .with_step("see what is left: `tribunal recover`")
            }
            StoreError::CannotRemove { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_step("make the project's directory writable"),
            // This cannot happen.
            StoreError::UnwritableEntry(_) => internal_error(message),
        }
    }
}

/// What may have happened, and what did not.
const DAMAGE_CAUSE: &str = "Something other than Tribunal changed, cut or deleted its files. Nothing was changed.";

/// The error for a damaged journal: what is the last good entry, and what remains.
fn damaged_journal(message: String, damage: &JournalDamage) -> UserError {
    let mut reasons = Vec::new();
    for damaged_run in damage.runs.iter().take(MAX_NAMED_RUNS) {
        reasons.push(match (damaged_run.last_good, &damage.file_problem) {
            (Some(good_entry), _) => {
                format!("Of run {}, entries 1 to {} can still be read.", damaged_run.run_id, good_entry.seq)
            }
            (None, Some(_)) => format!("Run {} was recorded in it.", damaged_run.run_id),
            (None, None) => format!("Of run {}, nothing can be read.", damaged_run.run_id),
        });
    }
    if damage.runs.len() > MAX_NAMED_RUNS {
        reasons.push(format!("{} more runs are affected.", damage.runs.len() - MAX_NAMED_RUNS));
    }
    reasons.push("Copies of your files from before each run, and trackers, do not depend on it.".to_string());
    reasons.push(DAMAGE_CAUSE.to_string());
    UserError::new(EXIT_ENVIRONMENT, message)
        .with_reason(reasons.join("\n"))
        .with_step("see what is left, export it or rebuild the journal: `tribunal recover`")
}
