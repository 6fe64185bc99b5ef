//! Errors of commands that tidy up, as the user reads them.

use tribunal_runner::housekeeping::{discarded_runs::DiscardError, recovery::RecoveryError};

use super::{EXIT_ENVIRONMENT, UserError};

impl From<DiscardError> for UserError {
    fn from(cause: DiscardError) -> Self {
        let message = cause.to_string();
        match cause {
            DiscardError::Running { run: run_id } => {
                UserError::usage(message).with_step(format!("stop it first: `tribunal stop {run_id}`"))
            }
            DiscardError::EndingAgents { .. } => UserError::usage(message).with_step("try again in a few seconds"),
            DiscardError::NotDiscarded { .. } => {
                UserError::usage(message).with_step("list the trash: `tribunal runs --discarded`")
            }
            DiscardError::ForeignName { .. } | DiscardError::LeadsOut { .. } => UserError::usage(message)
                .with_reason("The journal may have come with a clone, so nothing was changed.")
                .with_step("check where it comes from: `ls -la .tribunal`"),
            DiscardError::Io { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_step("make the project's directory writable, and make sure that the disk is not full"),
            DiscardError::Session(cause) => cause.into(),
        }
    }
}

impl From<RecoveryError> for UserError {
    fn from(cause: RecoveryError) -> Self {
        let message = cause.to_string();
        match cause {
            RecoveryError::Store(cause) => cause.into(),
            RecoveryError::RunHeld { run: run_id } => UserError::usage(message)
                .with_reason("It may still write to the journal. Nothing was changed.")
                .with_step(format!("stop it first: `tribunal stop {run_id} --now`, or end its process")),
            RecoveryError::Busy => UserError::usage(message).with_step("try again when it has ended"),
            RecoveryError::NotEmpty { .. } | RecoveryError::InsideHome { .. } => UserError::usage(message)
                .with_reason("Nothing was exported.")
                .with_step("name a new directory outside of `.tribunal`"),
            RecoveryError::CannotWrite { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_step("make sure that the directory can be written and that the disk is not full"),
        }
    }
}
