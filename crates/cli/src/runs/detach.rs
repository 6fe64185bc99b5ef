//! `--detach` starts the same command again without the terminal. The first entry that it records tells which run it is. If it
//! records nothing, its error is passed on with its exit code.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write, stderr, stdout},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tribunal_report::{clean_block, escape_json, escape_line};
use tribunal_runner::Project;

use crate::{
    context::CommandContext,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
};

/// The flag that the child must not get.
const DETACH_FLAG: &str = "--detach";
const LOG_FILE: &str = "detached.log";
/// How many lines of the log are shown.
const TAIL_LINES: usize = 10;
/// How many bytes are read for them at most.
const TAIL_BYTES: u64 = 8 << 10;

/// The runs that follow the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RemainingRuns {
    /// The number of runs besides the first one.
    pub run_count: usize,
    /// The number of runs that work at the same time, including the first one.
    pub max_concurrent: usize,
}

/// Starts the command in the background and reports the run that it works on.
pub(crate) fn detach_command(
    command_context: &CommandContext,
    project: &Project,
    remaining_runs: RemainingRuns,
) -> Result<u8, UserError> {
    let log_directory = project.home_dir().join("logs");
    // A link in place of the directory would make the child write outside the project.
    if let Some(link_target) = project.resolve_outside(&log_directory.join(LOG_FILE)) {
        return Err(UserError::usage(format!(
            "{} points outside the project, to {}",
            log_directory.display(),
            link_target.display()
        ))
        .with_reason("Tribunal only writes inside the project. Nothing was started.")
        .with_step("replace the link with a directory"));
    }
    let mut detached_log = DetachedLog::open_in(&log_directory)?;
    let current_program = std::env::current_exe().map_err(|cause| start_failure("tribunal executable", &cause))?;
    // The path of the running binary may be gone after an update; the supervisor knows a path that stays valid.
    let mut child_command = Command::new(tribunal_supervise::own_program().unwrap_or(current_program));
    child_command.args(child_arguments(std::env::args_os().skip(1)));
    // The child has no input, and its error output goes to the log.
    child_command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(detached_log.clone_file()?);
    let mut child_process = tribunal_supervise::start_detached(child_command)
        .map_err(|cause| start_failure("tribunal executable", &cause))?;
    // From here on the child is on its own; only its first words are awaited.
    match read_child_report(&mut child_process)? {
        ChildReport::Started { run_id, earlier_errors } => {
            // Of several runs some may have failed before the first one started.
            for user_error in earlier_errors {
                write!(stderr(), "{user_error}")?;
            }
            print_started(command_context, &run_id, child_process.id(), remaining_runs)?;
        }
        ChildReport::Failed(user_error) => {
            child_process.wait()?;
            return Err(user_error);
        }
        ChildReport::Silent => return report_early_exit(&mut child_process, &mut detached_log),
    }
    Ok(0)
}

/// The error for a child that could not be started.
fn start_failure(failed_part: &str, cause: &io::Error) -> UserError {
    UserError::new(EXIT_ENVIRONMENT, format!("cannot start the run in the background ({failed_part}: {cause})"))
        .with_reason("Nothing was started.")
        .with_step("run it in the terminal, without `--detach`")
}

/// The child's arguments. `--json` comes first, because behind `--` every argument is a file name, even one that looks like our
/// flag.
fn child_arguments(typed_arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut is_after_separator = false;
    let mut child_args = vec!["--json".into()];
    for argument in typed_arguments {
        is_after_separator |= argument == "--";
        if is_after_separator || (argument != DETACH_FLAG && argument != "--json") {
            child_args.push(argument);
        }
    }
    child_args
}

/// The first thing that the child reported.
enum ChildReport {
    /// A run started. Errors of other runs may have come before it.
    Started { run_id: String, earlier_errors: Vec<UserError> },
    /// No run started; this is the first error.
    Failed(UserError),
    /// The child ended without reporting anything.
    Silent,
}

/// Reads the child's output up to the first line that names a run. After that the pipe is closed, and the child ignores that.
fn read_child_report(child_process: &mut Child) -> io::Result<ChildReport> {
    let Some(child_stdout) = child_process.stdout.take() else { return Ok(ChildReport::Silent) };
    let mut earlier_errors = Vec::new();
    for output_line in BufReader::new(child_stdout).split(b'\n') {
        // Lines that are not JSON are ignored: they become null, which names neither a run nor an error.
        let output_value: Value = serde_json::from_slice(&output_line?).unwrap_or_default();
        earlier_errors.extend(UserError::from_json(&output_value));
        if let Some(run_id) = output_value["run"].as_str() {
            return Ok(ChildReport::Started { run_id: run_id.to_string(), earlier_errors });
        }
    }
    Ok(earlier_errors.into_iter().next().map_or(ChildReport::Silent, ChildReport::Failed))
}

/// Prints which run is running in the background, and how to watch and stop it.
fn print_started(
    command_context: &CommandContext,
    run_id: &str,
    process_id: u32,
    remaining_runs: RemainingRuns,
) -> Result<(), UserError> {
    let mut stdout_lock = stdout().lock();
    if command_context.wants_json {
        let document = serde_json::json!({
            "schema": "tribunal.detached/1", "run": run_id, "process": process_id, "following": remaining_runs.run_count,
        });
        writeln!(stdout_lock, "{}", escape_json(&document.to_string()))?;
        return Ok(());
    }
    let (run_id, program_name) = (escape_line(run_id), &command_context.answer_screen.program_name);
    writeln!(stdout_lock, "run {run_id} is running in the background (process {process_id})")?;
    if remaining_runs.run_count > 0 {
        let subjects_text = match remaining_runs.run_count {
            1 => "1 more subject follows".to_string(),
            more_count => format!("{more_count} more subjects follow"),
        };
        let order_text = match remaining_runs.max_concurrent {
            0 | 1 => "one at a time".to_string(),
            at_once => format!("at most {at_once} at a time"),
        };
        writeln!(stdout_lock, "  {subjects_text}, {order_text}, each in its own run; list them: {program_name} runs")?;
    }
    writeln!(stdout_lock, "  {program_name} log {run_id} --follow    to watch it")?;
    writeln!(stdout_lock, "  {program_name} stop {run_id}            to stop it; running agents may finish")?;
    Ok(())
}

/// Reports a child that ended before it recorded anything: only its exit code and its log are left.
fn report_early_exit(child_process: &mut Child, detached_log: &mut DetachedLog) -> Result<u8, UserError> {
    let exit_status = child_process.wait()?;
    let log_tail = detached_log.read_tail();
    // A command that has nothing to do succeeds without a run; what it said about that is passed on.
    if exit_status.success() {
        write!(stderr(), "{}", clean_block(&log_tail))?;
        return Ok(0);
    }
    // A child that was killed by a signal has no exit code.
    let exit_code =
        exit_status.code().and_then(|status_code| u8::try_from(status_code).ok()).unwrap_or(EXIT_ENVIRONMENT);
    let message = format!("the background run ended before it recorded anything ({exit_status})");
    Err(UserError::new(exit_code, message)
        .with_reason(log_tail)
        .with_step(format!("read the full log: {}", detached_log.log_path.display()))
        .with_step("run it in the terminal, without `--detach`"))
}

/// The log to which background commands write what they would print on a terminal.
struct DetachedLog {
    log_path: PathBuf,
    log_file: File,
    /// The offset at which the output of this child begins.
    start_offset: u64,
}

impl DetachedLog {
    fn open_in(directory: &Path) -> Result<DetachedLog, UserError> {
        fs::create_dir_all(directory).map_err(|cause| start_failure(&directory.display().to_string(), &cause))?;
        let log_path = directory.join(LOG_FILE);
        let open_result = fs::OpenOptions::new().create(true).append(true).read(true).open(&log_path);
        // Several children append to one log; what was there before belongs to others.
        let open_result = open_result.and_then(|log_file| Ok((log_file.metadata()?.len(), log_file)));
        let (start_offset, log_file) =
            open_result.map_err(|cause| start_failure(&log_path.display().to_string(), &cause))?;
        Ok(DetachedLog { log_path, log_file, start_offset })
    }

    /// Another handle to the log, for the child.
    fn clone_file(&self) -> Result<File, UserError> {
        self.log_file.try_clone().map_err(|cause| start_failure(&self.log_path.display().to_string(), &cause))
    }

    /// The last lines that were written since the log was opened; empty if it cannot be read.
    fn read_tail(&mut self) -> String {
        let file_length = self.log_file.metadata().map_or(0, |metadata| metadata.len());
        let read_start = self.start_offset.max(file_length.saturating_sub(TAIL_BYTES));
        let mut tail_bytes = Vec::new();
        let read_result =
            self.log_file.seek(SeekFrom::Start(read_start)).and_then(|_| self.log_file.read_to_end(&mut tail_bytes));
        if read_result.is_err() {
            return String::new();
        }
        let tail_text = String::from_utf8_lossy(&tail_bytes);
        let tail_lines: Vec<&str> = tail_text.lines().collect();
        tail_lines[tail_lines.len().saturating_sub(TAIL_LINES)..].iter().map(|line| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child_args_for(typed_arguments: &[&str]) -> Vec<String> {
        let child_args = child_arguments(typed_arguments.iter().map(OsString::from));
        child_args.into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn only_the_detach_flag_is_removed_and_file_names_are_kept() {
        assert_eq!(child_args_for(&["review", "a.md", "--detach"]), ["--json", "review", "a.md"]);
        assert_eq!(child_args_for(&["--json", "review", "--detach", "a.md"]), ["--json", "review", "a.md"]);
        assert_eq!(
            child_args_for(&["review", "--detach", "--", "plan.md", "--detach", "--json"]),
            ["--json", "review", "--", "plan.md", "--detach", "--json"]
        );
        assert_eq!(child_args_for(&["review", "--section", "--detach"]), ["--json", "review", "--section"]);
    }

    fn report_of_script(shell_script: &str) -> ChildReport {
        let mut shell_command = Command::new("sh");
        let mut child_process = shell_command.args(["-c", shell_script]).stdout(Stdio::piped()).spawn().unwrap();
        let child_report = read_child_report(&mut child_process).unwrap();
        child_process.wait().unwrap();
        child_report
    }

    #[test]
    fn the_run_or_the_error_is_found_among_other_output() {
        assert!(
            matches!(report_of_script("echo hello; echo; echo '{\"run\":\"a-1\"}'"), ChildReport::Started { run_id, .. } if run_id == "a-1")
        );
        let user_error = UserError::new(5, "no room").with_reason("so it is").with_step("make some").to_json();
        let ChildReport::Failed(user_error) = report_of_script(&format!("printf '\\377\\n'; echo '{user_error}'"))
        else {
            panic!("it complained")
        };
        assert_eq!((user_error.exit_code, user_error.message.as_str()), (5, "no room"));
        assert!(matches!(report_of_script("echo hello"), ChildReport::Silent));
        // One of several runs could not start.
        let ChildReport::Started { run_id, earlier_errors } =
            report_of_script(&format!("echo '{}'; echo '{{\"run\":\"b-2\"}}'", user_error.to_json()))
        else {
            panic!("one runs")
        };
        assert_eq!((run_id.as_str(), earlier_errors.len()), ("b-2", 1));
    }

    #[test]
    fn an_early_exit_is_reported_with_the_end_of_the_log() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("detached.log"), "of an earlier one\n").unwrap();
        let early_exit = |shell_script: &str| {
            let mut detached_log = DetachedLog::open_in(directory.path()).unwrap();
            let mut shell_command = Command::new("sh");
            let mut child_process =
                shell_command.args(["-c", shell_script]).stderr(detached_log.clone_file().unwrap()).spawn().unwrap();
            report_early_exit(&mut child_process, &mut detached_log)
        };
        let user_error = early_exit("seq 1 12 >&2; echo 'bad luck' >&2; exit 4").unwrap_err();
        assert_eq!(user_error.exit_code, 4);
        assert!(
            user_error.reason.starts_with("4\n5\n") && user_error.reason.ends_with("12\nbad luck\n"),
            "{user_error}"
        );
        assert_eq!(early_exit("kill -9 $$").unwrap_err().exit_code, EXIT_ENVIRONMENT);
        assert_eq!(early_exit("exit 0").unwrap(), 0);
    }
}
