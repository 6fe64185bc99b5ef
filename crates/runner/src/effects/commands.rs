//! Runs one command of the user: a check, or a notice.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use tribunal_engine::{ids::Hash, text::keep_last_chars};
use tribunal_supervise::{Deadlines, ExitReason, StartError};
use tribunal_workflows::development::checks::{
    CheckResult, CheckStatus, CommandLine, FailureAction, MAX_SHOWN_OUTPUT_CHARS,
};

use super::EffectContext;
use crate::sandbox::SandboxPurpose;

/// What shells report for a program that is not executable, and for one that does not exist.
const EXIT_NOT_EXECUTABLE: i32 = 126;
const EXIT_NOT_FOUND: i32 = 127;

/// Why there is no result of a command.
#[derive(Debug)]
pub(super) enum CommandFailure {
    /// The user stopped it, so it counts as never run.
    Stopped,
    /// It could not be supervised, which says nothing about the command.
    Lost(io::Error),
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct FinishedCommand {
    pub status: CheckStatus,
    /// Everything that it printed, masked.
    pub output: String,
    pub elapsed_ms: u64,
}

/// A program and its arguments.
#[derive(Debug)]
pub(super) struct ProgramCall {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Variables that are added to the environment of every process.
    pub extra_env: BTreeMap<String, OsString>,
    /// What it may write; `None` if it is not restricted.
    pub writable_paths: Option<Vec<PathBuf>>,
}

impl ProgramCall {
    pub fn from_command(command_line: &CommandLine) -> ProgramCall {
        match command_line {
            CommandLine::Shell(line) => ProgramCall::new("sh".into(), vec!["-c".into(), line.into()]),
            CommandLine::Argv(words) => {
                let mut words = words.iter().map(OsString::from);
                ProgramCall::new(words.next().unwrap_or_default(), words.collect())
            }
        }
    }

    pub fn new(program: OsString, arguments: Vec<OsString>) -> ProgramCall {
        ProgramCall { program, arguments, extra_env: BTreeMap::new(), writable_paths: None }
    }
}

/// A command of the user that ended.
pub(super) struct FinishedCheck {
    pub result: CheckResult,
    /// The whole output, if the result names it as a blob.
    pub log_blob: Option<Vec<u8>>,
}

impl EffectContext {
    /// Runs a command of the user with the time limit of checks.
    pub(super) async fn run_user_command(
        &self,
        command: &CommandLine,
        directory: PathBuf,
        extra_env: BTreeMap<String, OsString>,
        writable_paths: Option<Vec<PathBuf>>,
    ) -> Result<FinishedCheck, CommandFailure> {
        let program_call = ProgramCall { extra_env, writable_paths, ..ProgramCall::from_command(command) };
        let finished = run_program(self, program_call, directory, self.settings.tasks.check_timeout_ms).await?;
        let (result, log_blob) = finished.into_check_result(command.clone(), FailureAction::default());
        Ok(FinishedCheck { result, log_blob })
    }
}

/// Runs a check in a directory, for at most this long. It may write where it works, like an agent.
pub(super) async fn run_check_command(
    context: &EffectContext,
    command_line: &CommandLine,
    directory: PathBuf,
    timeout_ms: u64,
) -> Result<FinishedCommand, CommandFailure> {
    let writable_paths = Some(vec![directory.clone()]);
    let program_call = ProgramCall { writable_paths, ..ProgramCall::from_command(command_line) };
    run_program(context, program_call, directory, timeout_ms).await
}

/// Runs a program in a directory, for at most this long. A program that does not exist is a result, as it is for a shell.
pub(super) async fn run_program(
    context: &EffectContext,
    program_call: ProgramCall,
    directory: PathBuf,
    timeout_ms: u64,
) -> Result<FinishedCommand, CommandFailure> {
    let started_at = Instant::now();
    let ProgramCall { program, arguments, extra_env, writable_paths } = program_call;
    let mut command = context.new_command(program, arguments, directory);
    // A variable that is set here is meant to be there, even if it is removed for agents.
    command.removed_env.retain(|variable_name| !extra_env.contains_key(variable_name));
    command.extra_env.extend(extra_env);
    // A command may print nothing for a long time, so the idle limit equals the total one.
    let time_limit = Duration::from_millis(timeout_ms);
    command.deadlines = Deadlines { total: time_limit, idle: time_limit, ..command.deadlines };
    let _private_tmp = match &writable_paths {
        Some(writable_paths) => context
            .sandbox_policy()
            .restrict_command(&mut command, SandboxPurpose::Check { writable_paths })
            .map_err(CommandFailure::Lost)?,
        None => None,
    };
    let (status, output) = match tribunal_supervise::run_process(command).await {
        Ok(process_end) => {
            let status = match process_end.exit_reason {
                ExitReason::Stopped => return Err(CommandFailure::Stopped),
                ExitReason::Lost => {
                    return Err(CommandFailure::Lost(io::Error::other("its supervisor process was killed")));
                }
                ExitReason::Exited(0) => CheckStatus::Passed,
                ExitReason::Exited(exit_code @ (EXIT_NOT_EXECUTABLE | EXIT_NOT_FOUND)) => {
                    CheckStatus::CannotRun { exit_code }
                }
                ExitReason::Exited(exit_code) => CheckStatus::Failed { exit_code },
                ExitReason::Killed(signal) => CheckStatus::Killed { signal },
                ExitReason::TimedOut | ExitReason::Silent => CheckStatus::TimedOut { after_ms: timeout_ms },
                ExitReason::Flooded => CheckStatus::Flooded,
            };
            (status, format!("{}{}", process_end.stdout.to_text(), process_end.stderr.to_text()))
        }
        Err(cause @ StartError::NotFound { .. }) => {
            (CheckStatus::CannotRun { exit_code: EXIT_NOT_FOUND }, cause.to_string())
        }
        Err(cause @ StartError::NotExecutable { .. }) => {
            (CheckStatus::CannotRun { exit_code: EXIT_NOT_EXECUTABLE }, cause.to_string())
        }
        Err(cause @ (StartError::NoRoom { .. } | StartError::Other { .. })) => {
            return Err(CommandFailure::Lost(io::Error::other(cause)));
        }
    };
    Ok(FinishedCommand {
        status,
        output: context.masker.mask(&output).into_owned(),
        elapsed_ms: u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

impl FinishedCommand {
    /// Makes the result of a check, and the blob with its whole output if the result does not show all of it.
    pub fn into_check_result(self, command: CommandLine, on_failure: FailureAction) -> (CheckResult, Option<Vec<u8>>) {
        let shown_output = keep_end(&self.output);
        let full_output = (shown_output != self.output).then(|| self.output.into_bytes());
        let log = full_output.as_deref().map(Hash::digest_of);
        let (status, elapsed_ms) = (self.status, self.elapsed_ms);
        (CheckResult { command, status, on_failure, output: shown_output, log, elapsed_ms }, full_output)
    }
}

/// Returns the end of a text, where programs say what went wrong.
fn keep_end(text: &str) -> String {
    match text.chars().count() {
        0..=MAX_SHOWN_OUTPUT_CHARS => text.to_string(),
        // The mark in front counts, too.
        _ => keep_last_chars(text, MAX_SHOWN_OUTPUT_CHARS - 1),
    }
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::{findings::subject::Subject, review::order::ReviewOrder};

    use super::*;
    use crate::{effects::test_context::new_effect_context, project::Project};

    fn run_in_temp_dir(command_line: &CommandLine, timeout_ms: u64) -> FinishedCommand {
        let directory = tempfile::tempdir().unwrap();
        let order = ReviewOrder::new(Subject::from_path("plan.md", None));
        let context = new_effect_context(Project::from_root(directory.path()), order);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_check_command(&context, command_line, directory.path().to_path_buf(), timeout_ms)).unwrap()
    }

    fn argv(words: &[&str]) -> CommandLine {
        CommandLine::Argv(words.iter().map(|word| word.to_string()).collect())
    }

    #[test]
    fn a_text_is_run_by_a_shell_and_a_list_is_not() {
        let finished = run_in_temp_dir(&CommandLine::from_shell_line("echo $((1 + 1)); echo no >&2; exit 3"), 60_000);
        assert_eq!((finished.status, finished.output.as_str()), (CheckStatus::Failed { exit_code: 3 }, "2\nno\n"));
        let finished = run_in_temp_dir(&argv(&["echo", "$((1 + 1))", "a  b; exit 3"]), 60_000);
        assert_eq!((finished.status, finished.output.as_str()), (CheckStatus::Passed, "$((1 + 1)) a  b; exit 3\n"));
    }

    #[test]
    fn a_missing_program_is_the_fault_of_the_environment_with_and_without_a_shell() {
        for command_line in [CommandLine::from_shell_line("no-such-program-here"), argv(&["no-such-program-here"])] {
            let finished = run_in_temp_dir(&command_line, 60_000);
            assert_eq!(finished.status, CheckStatus::CannotRun { exit_code: 127 }, "{command_line}");
            assert!(finished.output.contains("no-such-program-here"), "{}", finished.output);
        }
    }

    #[test]
    fn a_command_is_ended_after_its_time() {
        let finished = run_in_temp_dir(&CommandLine::from_shell_line("echo begun; exec sleep 1000"), 50);
        assert_eq!(finished.status, CheckStatus::TimedOut { after_ms: 50 });
    }

    #[test]
    fn of_a_long_output_the_end_is_shown_and_the_whole_is_a_blob() {
        let finish_with = |output: String| {
            let finished = FinishedCommand { status: CheckStatus::Passed, output, elapsed_ms: 1 };
            finished.into_check_result(CommandLine::from_shell_line("make"), FailureAction::Block)
        };
        let (result, full_output) = finish_with("é".repeat(MAX_SHOWN_OUTPUT_CHARS));
        assert_eq!((result.log, full_output), (None, None));
        let long_output = format!("{}the end", "é".repeat(MAX_SHOWN_OUTPUT_CHARS));
        let (result, full_output) = finish_with(long_output.clone());
        assert_eq!(result.output.chars().count(), MAX_SHOWN_OUTPUT_CHARS);
        assert!(result.output.starts_with("…é") && result.output.ends_with("the end"));
        assert_eq!(result.log, Some(Hash::digest_of(long_output.as_bytes())));
        assert_eq!(full_output, Some(long_output.into_bytes()));
    }
}
