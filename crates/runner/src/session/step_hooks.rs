//! Runs the commands that a step's front matter configures, one after the other and within limits.
//!
//! A command gets its input through variables, never in its own text: nothing an agent prints can become part of a shell's line.
//! Its output is cut, masked and counted. Whether it may run was decided before (`trust` in the binary), and the caller decides
//! what to do with the results: they are typed, so that they can be journaled and shown. No state is kept here between two
//! calls: [`HookMemory`] is passed in and returned.

mod output;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    time::Duration,
};

use tribunal_bmad::hooks::{WorkflowHook, WorkflowHookMoment, WorkflowHooks};
use tribunal_engine::ids::Hash;
use tribunal_json::{Deserialize, Serialize};
use tribunal_supervise::{Deadlines, ExitReason, KeeperSetup, OutputLimits, ProcessCommand};

use crate::masking::Masker;
pub use output::HookOutput;

/// The time limit of a command.
const HOOK_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between asking a command to end and killing it; the session's next step waits for it.
const HOOK_GRACE: Duration = Duration::from_secs(1);
/// More output than this within a second counts as an endless loop.
const MAX_BYTES_PER_SECOND: u64 = 1 << 20;
const MAX_STDOUT_BYTES: usize = 64 << 10;
const MAX_STDERR_BYTES: usize = 16 << 10;
/// The limit for the output of all hooks of one step.
const MAX_STEP_BYTES: u64 = 256 << 10;
/// The longest value of a variable. Linux accepts 128 KiB, including the name.
const MAX_VARIABLE_BYTES: usize = 120 << 10;

/// The input of the commands. Unknown values are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookVariables {
    pub tool_name: Option<String>,
    /// The tool's input, as JSON.
    pub tool_args: Option<String>,
    pub exit_code: Option<i32>,
    pub step: Option<String>,
    pub workflow: Option<String>,
}

impl HookVariables {
    fn to_variables(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("TOOL_NAME", self.tool_name.clone()),
            ("TOOL_ARGS", self.tool_args.clone()),
            ("EXIT_CODE", self.exit_code.map(|code| code.to_string())),
            ("STEP", self.step.clone()),
            ("WORKFLOW", self.workflow.clone()),
        ]
    }
}

/// What has to be remembered from one call to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookMemory {
    /// The hooks of a session that run only once and have run.
    pub ran: BTreeSet<Hash>,
    /// How many bytes the hooks of this step have printed so far; a new step begins at 0.
    pub said: u64,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookOutcome {
    Exited(i32),
    Killed(i32),
    TimedOut,
    /// It printed too fast.
    Flooded,
    /// It never started.
    NotStarted(String),
    /// It runs only once, and has run before.
    RanBefore,
    /// A critical hook before it failed.
    HeldBack,
}

impl HookOutcome {
    pub fn is_failure(&self) -> bool {
        !matches!(self, HookOutcome::Exited(0) | HookOutcome::RanBefore | HookOutcome::HeldBack)
    }

    /// Describes the outcome for display: lower case, no period.
    pub fn describe(&self) -> String {
        match self {
            HookOutcome::Exited(0) => "done".to_string(),
            HookOutcome::Exited(code) => format!("exit code {code}"),
            HookOutcome::Killed(signal) => format!("killed by signal {signal}"),
            HookOutcome::TimedOut => format!("timed out after {} s", HOOK_TIMEOUT.as_secs()),
            HookOutcome::Flooded => "printed more than 1 MB in one second".to_string(),
            HookOutcome::NotStarted(cause) => format!("could not run: {cause}"),
            HookOutcome::RanBefore => "already ran in this session".to_string(),
            HookOutcome::HeldBack => "skipped: an earlier critical hook failed".to_string(),
        }
    }
}

/// The result of one hook. Texts are masked but may contain anything: escape them before they go to a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRun {
    pub command_line: String,
    /// The line in the step's file.
    pub line_number: usize,
    pub is_critical: bool,
    pub outcome: HookOutcome,
    pub stdout: HookOutput,
    pub stderr: HookOutput,
}

/// The results of all hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookReport {
    /// In order, including those that did not run.
    pub hook_runs: Vec<HookRun>,
    /// What the user should know in addition.
    pub notes: Vec<String>,
    pub memory: HookMemory,
}

/// Where and how a step's hooks run.
#[derive(Debug)]
pub struct StepHookRunner<'m> {
    project_root: PathBuf,
    keeper: Option<KeeperSetup>,
    masker: &'m Masker,
    time_limit: Duration,
}

impl<'m> StepHookRunner<'m> {
    /// Runs hooks in the project's root; the keepers supervise their processes.
    pub fn new(project_root: PathBuf, keeper: Option<KeeperSetup>, masker: &'m Masker) -> StepHookRunner<'m> {
        StepHookRunner { project_root, keeper, masker, time_limit: HOOK_TIMEOUT }
    }

    /// Runs the hooks for this moment, in order.
    pub async fn run_hooks(
        &self,
        hooks: &WorkflowHooks,
        moment: WorkflowHookMoment,
        variables: &HookVariables,
        memory: HookMemory,
    ) -> HookReport {
        let mut report = HookReport { memory, ..HookReport::default() };
        let tool_name = variables.tool_name.as_deref().unwrap_or_default();
        let mut wanted_hooks =
            hooks.at_moment(moment).filter(|hook| tool_name.is_empty() || hook.matches_tool(tool_name)).peekable();
        if wanted_hooks.peek().is_none() {
            return report;
        }
        // Problems with variables are reported once for all hooks of this moment.
        let (set_variables, removed_variables) = build_environment(variables, &mut report.notes);
        let mut is_held_back = false;
        for hook in wanted_hooks {
            // A hook that runs only once is remembered before it runs: one that fails does not run again either.
            let hook_run = if is_held_back {
                silent_run(hook, HookOutcome::HeldBack)
            } else if hook.once && !report.memory.ran.insert(hook_key(hook)) {
                silent_run(hook, HookOutcome::RanBefore)
            } else {
                self.run_hook(hook, (set_variables.clone(), removed_variables.clone()), &mut report).await
            };
            is_held_back |= hook_run.is_critical && hook_run.outcome.is_failure();
            report.hook_runs.push(hook_run);
        }
        report
    }

    async fn run_hook(
        &self,
        hook: &WorkflowHook,
        hook_environment: HookEnvironment,
        report: &mut HookReport,
    ) -> HookRun {
        let command = ProcessCommand {
            program: "sh".into(),
            args: vec!["-c".into(), hook.command.clone().into()],
            working_dir: self.project_root.clone(),
            extra_env: hook_environment.0,
            removed_env: hook_environment.1,
            stdin_bytes: Vec::new(),
            deadlines: Deadlines { total: self.time_limit, idle: self.time_limit, grace: HOOK_GRACE },
            output_limits: OutputLimits { max_bytes_per_second: Some(MAX_BYTES_PER_SECOND), ..OutputLimits::default() },
            sandbox: None,
            keeper: self.keeper.clone(),
            stop_signal: None,
        };
        let process_end = match tribunal_supervise::run_process(command).await {
            Ok(process_end) => process_end,
            Err(error) => {
                return silent_run(hook, HookOutcome::NotStarted(self.masker.mask(&error.to_string()).into_owned()));
            }
        };
        let outcome = match process_end.exit_reason {
            ExitReason::Exited(code) => HookOutcome::Exited(code),
            ExitReason::Killed(signal) => HookOutcome::Killed(signal),
            ExitReason::TimedOut | ExitReason::Silent => HookOutcome::TimedOut,
            ExitReason::Flooded => HookOutcome::Flooded,
            ExitReason::Stopped | ExitReason::Lost => {
                HookOutcome::NotStarted("its process was killed from outside".to_string())
            }
        };
        let bytes_before = report.memory.said;
        let mut keep_output = |captured: &tribunal_supervise::CapturedOutput, max_bytes: usize| {
            let remaining_bytes =
                usize::try_from(MAX_STEP_BYTES.saturating_sub(report.memory.said)).unwrap_or(usize::MAX);
            let kept_output = output::capture_output(
                captured.kept_head(),
                captured.total_bytes(),
                max_bytes.min(remaining_bytes),
                self.masker,
            );
            // What was dropped because of the step's limit counts, too: from here on the limit is reached.
            report.memory.said += captured.total_bytes().min(max_bytes as u64);
            kept_output
        };
        let (stdout, stderr) =
            (keep_output(&process_end.stdout, MAX_STDOUT_BYTES), keep_output(&process_end.stderr, MAX_STDERR_BYTES));
        // Only the hook that crosses the limit reports it, not every later one.
        if bytes_before <= MAX_STEP_BYTES && report.memory.said > MAX_STEP_BYTES {
            report.notes.push(format!(
                "the hooks of this step printed more than {} KiB; they keep running, but further output is dropped",
                MAX_STEP_BYTES >> 10
            ));
        }
        HookRun { outcome, stdout, stderr, ..silent_run(hook, HookOutcome::HeldBack) }
    }
}

type HookEnvironment = (BTreeMap<String, OsString>, Vec<String>);

/// Returns the variables to set, and those that must not be inherited.
fn build_environment(variables: &HookVariables, notes: &mut Vec<String>) -> HookEnvironment {
    let (mut set_variables, mut removed_variables) = HookEnvironment::default();
    for (variable, value) in variables.to_variables() {
        let problem = match &value {
            Some(value) if value.contains('\0') => Some("its value contains a NUL byte"),
            Some(value) if value.len() > MAX_VARIABLE_BYTES => Some("its value is too long for the system"),
            _ => None,
        };
        notes.extend(problem.map(|reason| format!("hooks run without {variable}: {reason}")));
        match value.filter(|_| problem.is_none()) {
            Some(value) => {
                set_variables.insert(variable.to_string(), value.into());
            }
            None => removed_variables.push(variable.to_string()),
        }
    }
    (set_variables, removed_variables)
}

/// Identifies a hook: the same command at another moment is another hook.
fn hook_key(hook: &WorkflowHook) -> Hash {
    Hash::digest_of(format!("{}\0{}", hook.moment.as_str(), hook.command).as_bytes())
}

fn silent_run(hook: &WorkflowHook, outcome: HookOutcome) -> HookRun {
    HookRun {
        command_line: hook.command.clone(),
        line_number: hook.line,
        is_critical: hook.critical,
        outcome,
        stdout: HookOutput::default(),
        stderr: HookOutput::default(),
    }
}

#[cfg(test)]
mod tests;
