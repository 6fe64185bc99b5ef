//! Errors about changes that have landed: showing them and undoing them.

use tribunal_runner::landing::{landings::LandingsError, undo::UndoError};

use super::{EXIT_ENVIRONMENT, EXIT_NEGATIVE, UserError};

impl From<LandingsError> for UserError {
    fn from(cause: LandingsError) -> Self {
        let message = cause.to_string();
        match cause {
            LandingsError::Store(cause) => cause.into(),
            LandingsError::NoFinding { run: run_id, .. } => {
                UserError::usage(message).with_step(format!("list its findings: `tribunal findings {run_id}`"))
            }
            LandingsError::MissingCheckpoint { run: run_id } => UserError::usage(message)
                .with_reason("Its changes can neither be shown nor undone. Nothing was changed.")
                .with_step(format!("find the text from before the run: `ls .tribunal/originals/{run_id}`")),
            LandingsError::ChangedInSession { has_git, .. } => UserError::usage(message)
                .with_reason("Tribunal did not make these changes, so it has no copy to restore. Nothing was changed.")
                .with_step(match has_git {
                    true => "find the changes with git and revert them: `git diff`",
                    false => "revert them by hand, or in the session that made them",
                }),
            LandingsError::Damaged { run: run_id, .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason("Nothing was changed.")
                .with_step(format!("check the files of the checkpoint: `ls -lR .tribunal/checkpoints/{run_id}`"))
                .with_step(format!("find the text from before the run: `ls .tribunal/originals/{run_id}`")),
        }
    }
}

impl From<UndoError> for UserError {
    fn from(cause: UndoError) -> Self {
        let message = cause.to_string();
        let nothing_changed = "Nothing was changed.";
        let partly_undone = "Other files were already undone; run the same command again to undo the rest.";
        match cause {
            UndoError::Landings(cause) => cause.into(),
            UndoError::Run(cause) => cause.into(),
            // The steps of a subject error are about reviews and would mislead here.
            UndoError::Subject(cause) => UserError { steps: Vec::new(), ..UserError::from(cause) }
                .with_reason(nothing_changed)
                .with_step("restore the file as a text file inside the project, then try again"),
            UndoError::LandingUnresolved { run: run_id } => UserError::usage(message)
                .with_reason(format!("Resuming the run determines whether the change landed. {nothing_changed}"))
                .with_step(format!("resume it: `tribunal resume {run_id}`")),
            UndoError::RepairedTogether { run: run_id, finding, .. } => UserError::usage(message)
                .with_reason(format!("They can only be undone together. {nothing_changed}"))
                .with_step(format!("show what that would do: `tribunal undo {run_id}.{finding}`"))
                .with_step(format!("undo all of them: `tribunal undo {run_id}.{finding} --together --yes`")),
            UndoError::BecameLink { path: file_path } => UserError::usage(message)
                .with_reason(format!("The change was applied to a regular file at this path. {nothing_changed}"))
                .with_step(format!("check where it leads: `ls -l {file_path}`")),
            UndoError::EditedSince { run: run_id, finding, alone: is_single, .. } => {
                // Without a finding the whole run is meant.
                let finding_argument = finding.map_or_else(String::new, |finding| format!(" {finding}"));
                let user_error = UserError::new(EXIT_NEGATIVE, message)
                    .with_reason(format!(
                        "Undoing the change would lose later edits in the same place. {nothing_changed}"
                    ))
                    .with_step(format!(
                        "undo it by hand; show the change with `tribunal diff {run_id}{finding_argument}`"
                    ));
                match finding {
                    _ if is_single => user_error,
                    Some(_) => user_error
                        .with_step(format!("if a later fix changed it, undo the whole run: `tribunal undo {run_id}`")),
                    None => user_error.with_step(format!(
                        "undo findings one by one where possible: `tribunal undo {run_id}.FINDING`"
                    )),
                }
            }
            UndoError::BeingChanged { begun: has_begun, .. } => UserError::new(EXIT_NEGATIVE, message)
                .with_reason(if has_begun { partly_undone } else { nothing_changed })
                .with_step("try again when no other program is writing to it"),
            UndoError::CannotPark { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason(format!("Without this backup, its current content could be lost. {nothing_changed}"))
                .with_step("make sure that `.tribunal/parked` is a writable directory and that the disk is not full"),
            UndoError::CannotWrite { begun: has_begun, .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason(if has_begun { partly_undone } else { nothing_changed })
                .with_step("make sure that its directory is writable and that the disk is not full"),
        }
    }
}
