//! Loops in sessions as other commands meet them: answers to their questions, what cannot be done with them, and their errors.

use std::time::Duration;

use tribunal_agents::{clients::HookFile, hook::HookClient};
use tribunal_engine::{ids::RunId, text::shell_quote};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    session::{
        SessionError,
        loop_runs::{self, LoopAnswer},
    },
};
use tribunal_workflows::runs::view::{RunPhase, RunView};

use crate::{
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    settings::{SettingSources, resolve_hook_settings},
};

pub(crate) fn describe_session(session_id: &str) -> String {
    match session_id {
        "" => "the next session here in which you type something".to_string(),
        session_id => format!("session {session_id}"),
    }
}

/// Loads the age at which a state file is no longer believed.
pub(crate) fn load_stale_age(project: &Project) -> Result<Duration, UserError> {
    Ok(resolve_hook_settings(project.root(), &SettingSources::from_environment())?.stale_after)
}

/// Returns whether some client's settings, of this project or of the user, call our stop hook.
pub(crate) fn is_stop_hook_installed(project: &Project) -> bool {
    // Hooks may have been installed for this machine or for all colleagues; either place will do.
    let hook_files =
        HookClient::all().flat_map(|client| [false, true].map(|is_shared| client.hooks.hook_file(is_shared)));
    let project_files = hook_files.filter_map(|hook_file| match hook_file {
        HookFile::Shared(file_path) | HookFile::Own(file_path) => Some(project.root().join(file_path)),
        HookFile::User(_) => None,
    });
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    // A user may have installed the hooks once for all projects.
    let user_files = home.iter().flat_map(|home| {
        HookClient::all().flat_map(|client| client.hooks.user_files()).map(|file_path| home.join(file_path))
    });
    let mut candidate_files = project_files.chain(user_files);
    // A search for the command is enough here: the formats differ by client, and this is only a warning.
    candidate_files.any(|file_path| {
        std::fs::read_to_string(file_path).is_ok_and(|settings_text| settings_text.contains("hook stop"))
    })
}

/// Applies the user's answer to the question of a loop: it continues, or ends. Returns what came of it.
pub(crate) fn answer_loop(project: &Project, run_id: &RunId, given: LoopAnswer) -> Result<String, UserError> {
    Ok(match loop_runs::answer_loop(project, run_id, given)? {
        Some(assignment) => {
            let session_text = describe_session(&assignment.session);
            format!("continues in {session_text}; sent back at most {} times", assignment.max_refusals)
        }
        None => "ended; the changes of its session are kept".to_string(),
    })
}

/// The error for a command that starts agents, which a loop does not have. It says who continues the loop, and how.
pub(crate) fn refuse_loop(run_view: &RunView) -> UserError {
    let run_id = escape_line(run_view.run_id.as_ref().map(RunId::as_str).unwrap_or_default());
    let user_error = UserError::usage(format!("{run_id} is a loop, which only its session can continue"));
    match (&run_view.phase, run_view.open_decisions().next()) {
        (RunPhase::Finished(_), _) => user_error
            .with_reason("It has ended.")
            .with_step("start another one: `tribunal loop run --in-session -p PROMPT`"),
        (_, Some(decision)) => user_error
            .with_reason("Its session was released and waits for your answer.")
            .with_step(format!("continue it: `tribunal decisions {run_id}.{} more`", decision.id))
            .with_step(format!("or end it: `tribunal decisions {run_id}.{} end`", decision.id)),
        (_, None) => user_error
            .with_reason("Its session continues by itself; Tribunal only holds it to its task.")
            .with_step(format!("check how it stands: `tribunal status {run_id}`"))
            .with_step(format!("or release its session: `tribunal stop {run_id}`")),
    }
}

impl From<SessionError> for UserError {
    fn from(cause: SessionError) -> UserError {
        let message = cause.to_string();
        match cause {
            SessionError::Store(cause) => cause.into(),
            SessionError::File { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_step("make sure that .claude and .tribunal are writable directories"),
            SessionError::LeadsOut { .. } => UserError::usage(message)
                .with_reason("Tribunal writes inside the project only.")
                .with_step("replace the link with a regular file, or remove it"),
            SessionError::Unusable { path: file_path, .. } => UserError::usage(message)
                .with_reason("The file was left as it is.")
                .with_step(format!("check it, then move it away: `mv {} /tmp/`", shell_quote(&file_path))),
            SessionError::AlreadyBound { run: run_id, .. } => UserError::usage(message)
                .with_reason("A project can have only one such session at a time.")
                .with_step(format!("release it first: `tribunal loop cancel {run_id}`"))
                .with_step("or check its state: `tribunal loop status`"),
        }
    }
}
