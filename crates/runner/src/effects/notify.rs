//! Runs the user's notification command.

use tribunal_workflows::development::{
    checks::CommandLine,
    notices::{NotifyOutcome, NotifyUser},
};

use super::{
    EffectContext,
    commands::{CommandFailure, ProgramCall, run_program},
    environment_fault,
};

/// A notice is short, so its command gets little time.
const NOTIFY_TIMEOUT_MS: u64 = 30_000;
/// The name of the script for a shell, which comes before its first argument.
const SHELL_SCRIPT_NAME: &str = "tribunal-notify";

/// Notifies the user, if a command is configured. Returns `None` if the user stopped the run meanwhile.
pub(super) async fn notify_user(context: &EffectContext, request: &NotifyUser) -> Option<NotifyOutcome> {
    let Some(command_line) = &context.settings.notify else { return Some(NotifyOutcome::Notified) };
    let project_root = context.project.root().to_path_buf();
    let mut program_call = ProgramCall::from_command(command_line);
    // A script of the project may have landed with an agent's work, so it gets no more rights than a check.
    if !command_line.runs_only_user_programs(&project_root.to_string_lossy()) {
        program_call.writable_paths = Some(Vec::new());
    }
    if matches!(command_line, CommandLine::Shell(_)) {
        program_call.arguments.push(SHELL_SCRIPT_NAME.into());
    }
    // The notice leaves the machine in many set-ups, so it is masked like everything that is shown.
    program_call.arguments.push(context.masker.mask(&request.text).into_owned().into());
    match run_program(context, program_call, project_root, NOTIFY_TIMEOUT_MS).await {
        Ok(finished) if finished.status.is_passed() => Some(NotifyOutcome::Notified),
        Ok(finished) => {
            let (result, _) = finished.into_check_result(command_line.clone(), Default::default());
            Some(environment_fault(format!("notify.command: {}", result.describe())).into())
        }
        Err(CommandFailure::Stopped) => None,
        Err(CommandFailure::Lost(cause)) => {
            Some(environment_fault(format!("notify.command: could not run `{command_line}`: {cause}")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tribunal_workflows::{findings::subject::Subject, review::order::ReviewOrder};

    use super::*;
    use crate::{effects::test_context::new_effect_context, project::Project};

    /// Notifies with this command, and returns the outcome and what the command wrote into `notice`.
    fn notify_with(command_line: Option<CommandLine>) -> (NotifyOutcome, Option<String>) {
        let directory = tempfile::tempdir().unwrap();
        let order = ReviewOrder::new(Subject::from_path("plan.md", None));
        let mut context = new_effect_context(Project::from_root(directory.path()), order);
        context.settings.notify = command_line;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let request = NotifyUser { text: "it's done; $HOME".into() };
        let outcome = runtime.block_on(notify_user(&context, &request)).unwrap();
        (outcome, fs::read_to_string(directory.path().join("notice")).ok())
    }

    #[test]
    fn the_text_is_the_last_argument() {
        let expected = (NotifyOutcome::Notified, Some("it's done; $HOME\n".to_string()));
        assert_eq!(notify_with(Some(CommandLine::from_shell_line("echo \"$1\" >notice"))), expected);
        let words = ["sh", "-c", "echo \"$2\" >notice", "name", "first"].map(String::from).to_vec();
        assert_eq!(notify_with(Some(CommandLine::Argv(words))), expected);
    }

    #[test]
    fn without_a_command_nothing_happens_and_a_failing_one_is_an_outcome() {
        assert_eq!(notify_with(None), (NotifyOutcome::Notified, None));
        let (outcome, _) = notify_with(Some(CommandLine::from_shell_line("echo nobody there; exit 3")));
        let NotifyOutcome::Failed { fault } = outcome else { panic!("{outcome:?}") };
        assert!(fault.detail.contains("failed with exit code 3: nobody there"), "{}", fault.detail);
    }
}
