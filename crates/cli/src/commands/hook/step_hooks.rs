//! Runs the hooks that are declared in the front matter of the step a session is at. They are commands of the
//! project: only trusted ones run, and the file is read anew each time, since the session may have changed it.

use std::fs;

use tribunal_bmad::hooks::{WorkflowHookMoment, WorkflowHooks, read_hooks};
use tribunal_runner::session::{
    self, BoundSession,
    step_hooks::{HookMemory, HookReport, HookRun, HookVariables, StepHookRunner},
};
use tribunal_workflows::session::{ReleaseReason, SessionEventKind, SessionStep};

use super::{HookCall, log_message};
use crate::{
    ColourChoice,
    context::{CommandContext, env_masker},
    trust::{self, trust_item::TrustItem},
};

/// The hooks of a longer file do not run.
const MAX_STEP_BYTES: u64 = 1 << 20;
/// At most this much of a hook's output goes into the journal.
const MAX_JOURNAL_CHARS: usize = 4_000;

/// What the hooks of a step led to.
#[derive(Default)]
pub(super) struct StepHookOutcome {
    /// What the hooks at the start of the step printed, for the model.
    pub context: String,
    /// Why a critical hook ended the step; the user has to look at it.
    pub abort_reason: Option<String>,
}

impl HookCall {
    /// Runs the step's hooks for this moment. Hooks for its start run first, once per step.
    pub(super) fn run_step_hooks(
        &self,
        bound_session: &mut BoundSession,
        moment: WorkflowHookMoment,
    ) -> StepHookOutcome {
        let Some(current_step) = bound_session.tally.step.clone() else { return StepHookOutcome::default() };
        let hooks = match self.load_trusted_hooks(&current_step) {
            Ok(hooks) => hooks,
            // A step without usable hooks goes on: refusing here would block the session for a typing mistake.
            Err(reason) => {
                log_message(&format!("hooks of {} were not run: {reason}", current_step.file));
                return StepHookOutcome::default();
            }
        };
        // A loop usually begins in the middle of a session, so its step gets the start hooks at the next event of any
        // kind.
        let mut moments = vec![moment];
        if !current_step.begun && moment != WorkflowHookMoment::SessionStart {
            moments.insert(0, WorkflowHookMoment::SessionStart);
        }
        moments.retain(|moment| hooks.at_moment(*moment).next().is_some());
        let mut hook_outcome = StepHookOutcome::default();
        for moment in moments {
            let hook_output = self.run_hooks_at(bound_session, &hooks, moment, &mut hook_outcome);
            // Only the output of start hooks is meant for the model; the rest is in the journal.
            if moment == WorkflowHookMoment::SessionStart {
                hook_outcome.context.push_str(&hook_output);
            }
            // Later hooks may rely on what the critical one should have prepared.
            if hook_outcome.abort_reason.is_some() {
                break;
            }
        }
        hook_outcome
    }

    /// Reads the hooks from the step's file, provided that all of them are trusted.
    fn load_trusted_hooks(&self, step: &SessionStep) -> Result<WorkflowHooks, String> {
        let step_path = self.project.root().join(&step.file);
        // A link out of the project would let another project's file decide what runs here.
        if let Some(link_target) = self.project.resolve_outside(&step_path) {
            return Err(format!("the file is outside the project, at {}", link_target.display()));
        }
        let file_info = fs::metadata(&step_path).map_err(|cause| cause.to_string())?;
        if file_info.len() > MAX_STEP_BYTES {
            return Err("the file is too large".to_string());
        }
        let step_text = fs::read_to_string(&step_path).map_err(|cause| cause.to_string())?;
        let hooks = read_hooks(&step.file, &step_text);
        let trust_items = TrustItem::from_hooks(&step.file, &hooks);
        // The text that is checked for trust is the text that runs: the file is not read a second time.
        let context =
            CommandContext::new(None, false, ColourChoice::Never).map_err(|user_error| user_error.to_string())?;
        trust::require_trust(&context, self.project.root(), &trust_items)
            .map_err(|user_error| user_error.to_string())?;
        Ok(hooks)
    }

    /// Runs the hooks of one moment and returns what they printed.
    fn run_hooks_at(
        &self,
        bound_session: &mut BoundSession,
        hooks: &WorkflowHooks,
        moment: WorkflowHookMoment,
        hook_outcome: &mut StepHookOutcome,
    ) -> String {
        let current_step = bound_session.tally.step.clone().unwrap_or_default();
        let masker = env_masker();
        // A hook process is short-lived, so a runtime is built only when a step really has hooks.
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(cause) => {
                log_message(&cause.to_string());
                return String::new();
            }
        };
        let keeper = tribunal_supervise::KeeperSetup::of_own_program();
        let hook_runner = StepHookRunner::new(self.project.root().to_path_buf(), keeper, &masker);
        // Hooks that run once, and their earlier output, are remembered in the session's tally.
        let earlier_memory = HookMemory { ran: current_step.once.iter().cloned().collect(), said: current_step.said };
        let HookReport { hook_runs, notes, memory: new_memory } = runtime.block_on(hook_runner.run_hooks(
            hooks,
            moment,
            &self.build_hook_variables(&current_step),
            earlier_memory,
        ));
        notes.iter().for_each(|note| log_message(note));
        let has_begun = current_step.begun || moment == WorkflowHookMoment::SessionStart;
        let once_hooks = new_memory.ran.into_iter().collect();
        // The tally is updated before anything is recorded, so that the record has the new step.
        bound_session.tally.step =
            Some(SessionStep { begun: has_begun, once: once_hooks, said: new_memory.said, ..current_step });
        let mut hook_output = String::new();
        for hook_run in &hook_runs {
            hook_output.push_str(&hook_run.stdout.kept_text);
            self.record_hook_run(bound_session, hook_run);
        }
        // The first critical failure ends the session's work; hooks that are not critical only leave a note.
        if let Some(failed_hook) =
            hook_runs.iter().find(|hook_run| hook_run.is_critical && hook_run.outcome.is_failure())
        {
            let reason =
                format!("the critical hook `{}` failed: {}", failed_hook.command_line, failed_hook.outcome.describe());
            if let Err(cause) = bound_session.release_session(
                &self.project,
                ReleaseReason::Failures,
                &reason,
                session::current_wall_ms(),
            ) {
                log_message(&cause.to_string());
            }
            hook_outcome.abort_reason = Some(reason);
        }
        hook_output
    }

    fn record_hook_run(&self, bound_session: &BoundSession, hook_run: &HookRun) {
        let fault = if hook_run.outcome.is_failure() { hook_run.outcome.describe() } else { String::new() };
        if !fault.is_empty() {
            log_message(&format!("hook `{}`: {fault}", hook_run.command_line));
        }
        // The journal has one text for both streams, cut to its limit.
        let output = format!("{}{}", hook_run.stdout.kept_text, hook_run.stderr.kept_text);
        let output = output.chars().take(MAX_JOURNAL_CHARS).collect();
        let command = super::mask_text(&hook_run.command_line);
        self.record_event(bound_session, SessionEventKind::Hooked { command, fault, output });
    }

    fn build_hook_variables(&self, step: &SessionStep) -> HookVariables {
        let tool_call = self.hook_input.tool_call.as_ref();
        let response = tool_call.and_then(|tool_call| tool_call.tool_response.as_ref());
        let exit_code = response.and_then(|response| {
            // Clients name the exit code of a tool differently.
            let code_value =
                ["exit_code", "exitCode", "returnCode"].iter().find_map(|key_name| response.get(*key_name));
            code_value.and_then(serde_json::Value::as_i64)
        });
        HookVariables {
            tool_name: tool_call.map(|tool_call| tool_call.tool_name.clone()),
            tool_args: tool_call.map(|tool_call| tool_call.tool_input.to_string()),
            exit_code: exit_code.and_then(|exit_code| i32::try_from(exit_code).ok()),
            step: Some(step.file.clone()),
            workflow: Some("loop".to_string()),
        }
    }
}
