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

use serde::{Deserialize, Serialize};
use tribunal_bmad::hooks::{Hook, Hooks, Moment};
use tribunal_core::ids::Hash;
use tribunal_supervise::{Command, Deadlines, How, Output};

use crate::mask::Masker;
pub use output::Said;

/// The time limit of a command.
const TIME: Duration = Duration::from_secs(5);
/// The time between asking a command to end and killing it; the session's next step waits for it.
const GRACE: Duration = Duration::from_secs(1);
/// More output than this within a second counts as an endless loop.
const RATE: u64 = 1 << 20;
const STDOUT: usize = 64 << 10;
const STDERR: usize = 16 << 10;
/// The limit for the output of all hooks of one step.
const STEP: u64 = 256 << 10;
/// The system accepts no longer variable.
const LONGEST: usize = 120 << 10;

/// The input of the commands. Unknown values are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub tool_name: Option<String>,
    /// The tool's input, as JSON.
    pub tool_args: Option<String>,
    pub exit_code: Option<i32>,
    pub step: Option<String>,
    pub workflow: Option<String>,
}

impl Told {
    fn variables(&self) -> [(&'static str, Option<String>); 5] {
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
pub struct Kept {
    /// The hooks of a session that run only once and have run.
    pub ran: BTreeSet<Hash>,
    /// How many bytes the hooks of this step have printed so far; a new step begins at 0.
    pub said: u64,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEnd {
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
    Held,
}

impl HookEnd {
    pub fn is_failure(&self) -> bool {
        !matches!(self, HookEnd::Exited(0) | HookEnd::RanBefore | HookEnd::Held)
    }

    /// Describes the outcome for display: lower case, no period.
    pub fn words(&self) -> String {
        match self {
            HookEnd::Exited(0) => "done".to_string(),
            HookEnd::Exited(code) => format!("exit code {code}"),
            HookEnd::Killed(signal) => format!("killed by signal {signal}"),
            HookEnd::TimedOut => format!("not done after {} s", TIME.as_secs()),
            HookEnd::Flooded => "it printed more than 1 MB in a second".to_string(),
            HookEnd::NotStarted(cause) => format!("it could not be started: {cause}"),
            HookEnd::RanBefore => "ran before in this session".to_string(),
            HookEnd::Held => "not run: a critical one before it failed".to_string(),
        }
    }
}

/// The result of one hook. Texts are masked but may contain anything: escape them before they go to a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub command: String,
    /// The line in the step's file.
    pub line: usize,
    pub critical: bool,
    pub end: HookEnd,
    pub stdout: Said,
    pub stderr: Said,
}

/// The results of all hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In order, including those that did not run.
    pub ran: Vec<Ran>,
    /// What the user should know in addition.
    pub notes: Vec<String>,
    pub kept: Kept,
}

impl Report {
    /// Returns the critical hook that failed.
    pub fn failed_critically(&self) -> Option<&Ran> {
        self.ran.iter().find(|ran| ran.critical && ran.end.is_failure())
    }
}

/// Where and how a step's hooks run.
#[derive(Debug)]
pub struct StepHooks<'m> {
    root: PathBuf,
    keeper: Option<PathBuf>,
    masker: &'m Masker,
    time: Duration,
}

impl<'m> StepHooks<'m> {
    /// Runs hooks in the project's root; the keeper is the program that supervises their processes, see `supervise`.
    pub fn new(root: PathBuf, keeper: Option<PathBuf>, masker: &'m Masker) -> StepHooks<'m> {
        StepHooks { root, keeper, masker, time: TIME }
    }

    /// Runs the hooks for this moment, in order.
    pub async fn run(&self, hooks: &Hooks, moment: Moment, told: &Told, kept: Kept) -> Report {
        let mut report = Report { kept, ..Report::default() };
        let tool = told.tool_name.as_deref().unwrap_or_default();
        let mut wanted = hooks.at(moment).filter(|hook| tool.is_empty() || hook.is_for(tool)).peekable();
        if wanted.peek().is_none() {
            return report;
        }
        // Problems with variables are reported once for all hooks of this moment.
        let (env, without) = environment(told, &mut report.notes);
        let mut held = false;
        for hook in wanted {
            // A hook that runs only once is remembered before it runs: one that fails does not run again either.
            let ran = if held {
                quiet(hook, HookEnd::Held)
            } else if hook.once && !report.kept.ran.insert(key(hook)) {
                quiet(hook, HookEnd::RanBefore)
            } else {
                self.one(hook, (env.clone(), without.clone()), &mut report).await
            };
            held |= ran.critical && ran.end.is_failure();
            report.ran.push(ran);
        }
        report
    }

    async fn one(&self, hook: &Hook, env: Environment, report: &mut Report) -> Ran {
        let command = Command {
            program: "sh".into(),
            args: vec!["-c".into(), hook.command.clone().into()],
            folder: self.root.clone(),
            env: env.0,
            without: env.1,
            input: Vec::new(),
            deadlines: Deadlines { total: self.time, idle: self.time },
            grace: GRACE,
            output: Output { rate: Some(RATE), ..Output::default() },
            keeper: self.keeper.clone(),
            hold: Vec::new(),
            stop: None,
        };
        let ended = match tribunal_supervise::run(command).await {
            Ok(ended) => ended,
            Err(error) => {
                return quiet(hook, HookEnd::NotStarted(self.masker.mask(&error.to_string()).into_owned()));
            }
        };
        let end = match ended.how {
            How::Exited(code) => HookEnd::Exited(code),
            How::Killed(signal) => HookEnd::Killed(signal),
            How::TimedOut | How::Silent => HookEnd::TimedOut,
            How::Flooded => HookEnd::Flooded,
            How::Stopped | How::Lost => HookEnd::NotStarted("its process was ended from outside".to_string()),
        };
        let before = report.kept.said;
        let mut said = |captured: &tribunal_supervise::Captured, cap: usize| {
            let left = usize::try_from(STEP.saturating_sub(report.kept.said)).unwrap_or(usize::MAX);
            let said = output::said(captured.beginning(), captured.total(), cap.min(left), self.masker);
            // What was dropped because of the step's limit counts, too: from here on the limit is reached.
            report.kept.said += captured.total().min(cap as u64);
            said
        };
        let (stdout, stderr) = (said(&ended.stdout, STDOUT), said(&ended.stderr, STDERR));
        // Only the hook that crosses the limit reports it, not every later one.
        if before <= STEP && report.kept.said > STEP {
            report.notes.push(format!(
                "the hooks of this step have said {} KiB; they run on, and what more they say is dropped",
                STEP >> 10
            ));
        }
        Ran { end, stdout, stderr, ..quiet(hook, HookEnd::Held) }
    }
}

type Environment = (BTreeMap<String, OsString>, Vec<String>);

/// Returns the variables to set, and those that must not be inherited.
fn environment(told: &Told, notes: &mut Vec<String>) -> Environment {
    let (mut env, mut without) = Environment::default();
    for (name, value) in told.variables() {
        let unfit = match &value {
            Some(value) if value.contains('\0') => Some("it has a NUL byte in it"),
            Some(value) if value.len() > LONGEST => Some("it is longer than the system takes"),
            _ => None,
        };
        notes.extend(unfit.map(|why| format!("hooks run without {name}: {why}")));
        match value.filter(|_| unfit.is_none()) {
            Some(value) => {
                env.insert(name.to_string(), value.into());
            }
            None => without.push(name.to_string()),
        }
    }
    (env, without)
}

/// Identifies a hook: the same command at another moment is another hook.
fn key(hook: &Hook) -> Hash {
    Hash::of(format!("{}\0{}", hook.moment.word(), hook.command).as_bytes())
}

fn quiet(hook: &Hook, end: HookEnd) -> Ran {
    Ran {
        command: hook.command.clone(),
        line: hook.line,
        critical: hook.critical,
        end,
        stdout: Said::default(),
        stderr: Said::default(),
    }
}

#[cfg(test)]
mod tests;
