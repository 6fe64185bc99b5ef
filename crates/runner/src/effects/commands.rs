//! Runs one command of the user (a check, a hook, a step of a setup) and describes how it ended.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

use tokio::time::Instant;
use tribunal_core::{
    development::checks::{CheckResult, CheckStatus, CommandLine, FailureAction, MAX_SHOWN_OUTPUT_CHARS},
    engine::ids::Hash,
    tasks::fault::Fault,
};
use tribunal_supervise::{Deadlines, ExitReason, StartError};

use super::{EffectContext, environment_fault};

/// A command, and how it is run.
#[derive(Clone, Debug)]
pub(crate) struct CommandRequest<'a> {
    pub command: &'a CommandLine,
    pub directory: PathBuf,
    pub timeout: Duration,
    /// Variables that are added to the environment of every process.
    pub extra_env: BTreeMap<String, OsString>,
}

/// A command that ended, by itself or because of one of its limits.
#[derive(Debug)]
pub(crate) struct FinishedCommand {
    pub result: CheckResult,
    /// The whole output, masked, if the result names it as a blob.
    pub log_blob: Option<Vec<u8>>,
}

/// Why nothing is known about a command.
#[derive(Debug)]
pub(crate) enum CommandInterruption {
    /// The user stopped the run, so the command counts as never run.
    Stopped,
    Faulted(Fault),
}

/// Runs a command. A program that cannot be started is a result, too, with the exit code that a shell would have used.
pub(crate) async fn run_command(
    context: &EffectContext,
    request: CommandRequest<'_>,
) -> Result<FinishedCommand, CommandInterruption> {
    let CommandRequest { command: command_line, directory, timeout, extra_env } = request;
    let (program, arguments): (OsString, Vec<OsString>) = match command_line {
        CommandLine::Shell(line) => ("sh".into(), vec!["-c".into(), line.into()]),
        CommandLine::Argv(words) => match words.split_first() {
            Some((program, arguments)) => (program.into(), arguments.iter().map(OsString::from).collect()),
            None => return Err(CommandInterruption::Faulted(environment_fault("a command without a program"))),
        },
    };
    let mut process = context.new_command(program, arguments, directory);
    // A variable that is set here is meant to be there, even if it is removed for agents.
    process.removed_env.retain(|variable_name| !extra_env.contains_key(variable_name));
    process.extra_env.extend(extra_env);
    // A check may print nothing for a long time, so the idle limit equals the total one.
    process.deadlines = Deadlines { total: timeout, idle: timeout };
    let started_at = Instant::now();
    let ended = tribunal_supervise::run_process(process).await;
    let elapsed_ms = u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (status, output_text) = match ended {
        Ok(process_end) => {
            let output_text = format!("{}{}", process_end.stdout.to_text(), process_end.stderr.to_text());
            (classify_exit(process_end.exit_reason, command_line, timeout)?, output_text)
        }
        Err(cause) => (classify_start_error(&cause)?, cause.to_string()),
    };
    let masked_output = context.masker.mask(&output_text).into_owned();
    let shown_output = last_chars(&masked_output, MAX_SHOWN_OUTPUT_CHARS).to_string();
    let log_blob = (shown_output.len() < masked_output.len()).then(|| masked_output.into_bytes());
    let result = CheckResult {
        command: command_line.clone(),
        status,
        on_failure: FailureAction::default(),
        output: shown_output,
        log: log_blob.as_deref().map(Hash::digest_of),
        elapsed_ms,
    };
    Ok(FinishedCommand { result, log_blob })
}

fn classify_exit(
    exit_reason: ExitReason,
    command_line: &CommandLine,
    timeout: Duration,
) -> Result<CheckStatus, CommandInterruption> {
    Ok(match exit_reason {
        ExitReason::Exited(0) => CheckStatus::Passed,
        ExitReason::Exited(exit_code @ (126 | 127)) => CheckStatus::CannotRun { exit_code },
        ExitReason::Exited(exit_code) => CheckStatus::Failed { exit_code },
        ExitReason::Killed(signal) => CheckStatus::Killed { signal },
        ExitReason::TimedOut | ExitReason::Silent => {
            CheckStatus::TimedOut { after_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX) }
        }
        ExitReason::Flooded => CheckStatus::Flooded,
        ExitReason::Stopped => return Err(CommandInterruption::Stopped),
        ExitReason::Lost => {
            let detail = format!("`{command_line}` was lost: its supervisor process was killed");
            return Err(CommandInterruption::Faulted(environment_fault(detail)));
        }
    })
}

/// Returns the exit codes of shells for programs that are missing or not executable. Other causes concern this machine.
fn classify_start_error(cause: &StartError) -> Result<CheckStatus, CommandInterruption> {
    match cause {
        StartError::NotFound { .. } => Ok(CheckStatus::CannotRun { exit_code: 127 }),
        StartError::NotExecutable { .. } => Ok(CheckStatus::CannotRun { exit_code: 126 }),
        StartError::NoRoom { .. } | StartError::Other { .. } => {
            Err(CommandInterruption::Faulted(environment_fault(cause.to_string())))
        }
    }
}

/// Returns the end of a text: what a command prints last usually says why it failed.
fn last_chars(text: &str, max_chars: usize) -> &str {
    match text.char_indices().rev().nth(max_chars.saturating_sub(1)) {
        Some((start, _)) => &text[start..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use tribunal_testkit::samples;

    use super::*;
    use crate::{effects::test_context::new_effect_context, project::Project};

    async fn run_in_temp_dir(command: &CommandLine) -> FinishedCommand {
        let temp_dir = tempfile::tempdir().unwrap();
        let context = new_effect_context(Project::from_root(temp_dir.path()), samples::sample_plan().order);
        let request = CommandRequest {
            command,
            directory: temp_dir.path().to_path_buf(),
            timeout: Duration::from_secs(60),
            extra_env: BTreeMap::from([("ADDED".to_string(), "value".into())]),
        };
        run_command(&context, request).await.unwrap()
    }

    #[tokio::test]
    async fn the_status_says_how_a_command_ended() {
        for (line, status) in [
            ("true", CheckStatus::Passed),
            ("test \"$ADDED\" = value", CheckStatus::Passed),
            ("exit 3", CheckStatus::Failed { exit_code: 3 }),
            ("no-such-program-anywhere", CheckStatus::CannotRun { exit_code: 127 }),
            ("kill -9 $$", CheckStatus::Killed { signal: 9 }),
        ] {
            assert_eq!(run_in_temp_dir(&CommandLine::shell(line)).await.result.status, status, "{line}");
        }
        let missing = CommandLine::Argv(vec!["no-such-program-anywhere".into()]);
        assert_eq!(run_in_temp_dir(&missing).await.result.status, CheckStatus::CannotRun { exit_code: 127 });
    }

    #[tokio::test]
    async fn the_end_of_a_long_output_is_shown_and_all_of_it_is_a_blob() {
        let finished = run_in_temp_dir(&CommandLine::shell("seq 1 2000; echo last >&2; exit 1")).await;
        assert!(finished.result.output.ends_with("2000\nlast\n"), "{}", finished.result.output);
        assert_eq!(finished.result.output.chars().count(), MAX_SHOWN_OUTPUT_CHARS);
        let log = finished.log_blob.unwrap();
        assert!(log.starts_with(b"1\n2\n") && finished.result.log == Some(Hash::digest_of(&log)));
        let short = run_in_temp_dir(&CommandLine::shell("echo short")).await;
        assert_eq!((short.result.output.as_str(), short.log_blob), ("short\n", None));
    }

    #[test]
    fn the_end_of_a_text_is_cut_between_characters() {
        assert_eq!(last_chars("aäö", 2), "äö");
        assert_eq!(last_chars("aäö", 3), "aäö");
        assert_eq!(last_chars("", 3), "");
    }
}
