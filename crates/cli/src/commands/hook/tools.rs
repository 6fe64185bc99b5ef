//! Handles the use of a tool, before and after: guards, the audit, and the hooks of the current step.
//!
//! A session that is bound to work is held to all guards that are set; any other session is only kept from Tribunal's
//! own files. What the guards protect is verified again from outside, so they let pass what they do not understand.

use std::{env, path::Path};

use tribunal_agents::{
    clients::guarded_files,
    hook::{
        HookAnswer,
        tools::{HookToolUse, describe_tool_use},
    },
};
use tribunal_bmad::hooks::WorkflowHookMoment;
use tribunal_guard::{GuardContext, GuardPolicy, ToolUse, WriteBounds, check_tool_use};
use tribunal_runner::{
    project::{SETTINGS_FILE, SHORT_SETTINGS_FILE},
    session::{BoundSession, state_file},
};
use tribunal_store::Store;
use tribunal_workflows::{
    findings::subject::Subject,
    runs::{plan::RunPlan, view::RunView},
    session::SessionEventKind,
};

use super::{HookCall, mask_text, step_hooks::StepHookOutcome};
use crate::clients::installed_clients::scratch_directories;

impl HookCall {
    pub(super) fn handle_pre_tool_use(&self) -> HookAnswer {
        let Some(tool_call) = &self.hook_input.tool_call else {
            return HookAnswer::Allow { user_message: None };
        };
        let mut bound_session = self.find_bound_session();
        // A project that never used Tribunal has nothing to protect, and hooks must cost it nothing.
        if bound_session.is_none() && !self.project.home_dir().exists() {
            return HookAnswer::Allow { user_message: None };
        }
        let used_tool = describe_tool_use(self.client, tool_call);
        // A session that is not bound to any work is free, apart from the files of Tribunal itself.
        let guard_policy = match &bound_session {
            Some(_) => self.settings.guard,
            None => GuardPolicy { paths: WriteBounds::Off, destructive: false, ..self.settings.guard },
        };
        let guarded_place =
            GuardedPlace::from_call(self, bound_session.as_deref(), guard_policy, used_tool.working_dir.as_deref());
        match check_tool_use(
            guard_policy,
            &guarded_place.to_guard_context(bound_session.is_some()),
            &to_guard_input(&used_tool),
        ) {
            // Step hooks run only for a use that the guards allow.
            None => match bound_session
                .as_mut()
                .map(|bound_session| self.run_step_hooks(bound_session, WorkflowHookMoment::PreToolUse))
            {
                Some(StepHookOutcome { abort_reason: Some(abort_reason), .. }) => {
                    HookAnswer::Deny { reason: describe_abort(&abort_reason) }
                }
                _ => HookAnswer::Allow { user_message: None },
            },
            Some(denial) => {
                // The journal gets the masked reason; the client gets the real one, which quotes its own command.
                if let Some(bound_session) = &bound_session {
                    let reason = mask_text(&denial.reason);
                    self.record_event(
                        bound_session,
                        SessionEventKind::Denied { tool: tool_call.tool_name.clone(), reason },
                    );
                }
                HookAnswer::Deny { reason: denial.reason }
            }
        }
    }

    pub(super) fn handle_post_tool_use(&self) -> HookAnswer {
        if let (Some(mut bound_session), Some(tool_call)) = (self.find_bound_session(), &self.hook_input.tool_call) {
            // It is not known whether a sub-agent's work ends the client's count of refusals, so only the session's
            // own does.
            if self.hook_input.agent_id.is_empty() {
                bound_session.tally.in_a_row = 0;
            }
            bound_session.tally.tools += 1;
            self.record_event(&bound_session, SessionEventKind::Used { tool: tool_call.tool_name.clone() });
            let hook_outcome = self.run_step_hooks(&mut bound_session, WorkflowHookMoment::PostToolUse);
            return HookAnswer::Allow {
                user_message: hook_outcome.abort_reason.map(|abort_reason| describe_abort(&abort_reason)),
            };
        }
        HookAnswer::Allow { user_message: None }
    }
}

/// Extracts the part of a tool call that the guard looks at.
fn to_guard_input(used_tool: &HookToolUse) -> ToolUse<'_> {
    ToolUse { paths: &used_tool.paths, command: used_tool.command.as_deref(), writes: used_tool.is_write }
}

/// Says that a critical hook has ended a step.
pub(super) fn describe_abort(reason: &str) -> String {
    format!("Tribunal: this step was aborted because {reason}. The user has to decide: `tribunal decisions`")
}

/// The place where a tool would be used, with the paths that are protected there.
struct GuardedPlace {
    project_root: String,
    working_dir: String,
    home_dir: String,
    subject_files: Vec<String>,
    is_change: bool,
    own_paths: Vec<String>,
    scratch_dirs: Vec<String>,
}

impl GuardedPlace {
    fn from_call(
        hook_call: &HookCall,
        bound_session: Option<&BoundSession>,
        guard_policy: GuardPolicy,
        directory: Option<&str>,
    ) -> GuardedPlace {
        // Links are resolved on both sides, or a link into `.tribunal` would not be recognized.
        let real_path = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()).display().to_string();
        let project_root = hook_call.project.root();
        let working_dir = Path::new(&hook_call.hook_input.working_dir).join(directory.unwrap_or_default());
        let mut own_paths: Vec<String> = [".tribunal/", state_file::OWN_STATE_FILE].map(String::from).to_vec();
        if bound_session.is_some() {
            // A bound session must not change the settings that hold it, nor those by which it is measured.
            own_paths.extend([SETTINGS_FILE, SHORT_SETTINGS_FILE].into_iter().chain(guarded_files()).map(String::from));
        }
        let (mut subject_files, mut is_change) = (Vec::new(), false);
        if let Some(RunPlan { settings: pinned_settings, order }) =
            bound_session.and_then(|bound_session| load_pinned_plan(hook_call, bound_session))
        {
            // An answer among the decisions would be an answer in the user's name.
            own_paths.extend(pinned_settings.own_folders().list_all().map(|folder| format!("{folder}/")));
            // Otherwise the guard bounds paths by the project, and the subject does not matter.
            if let (WriteBounds::Subject, Some(pinned_order)) = (guard_policy.paths, order.as_review()) {
                is_change = matches!(pinned_order.subject, Subject::Change(_));
                subject_files = pinned_order.subject.file_paths().into_iter().map(String::from).collect();
            }
        }
        GuardedPlace {
            project_root: real_path(project_root),
            working_dir: if working_dir.is_absolute() { real_path(&working_dir) } else { real_path(project_root) },
            home_dir: env::var("HOME").unwrap_or_default(),
            subject_files,
            is_change,
            own_paths,
            scratch_dirs: list_scratch_dirs(),
        }
    }

    fn to_guard_context(&self, session_bound: bool) -> GuardContext<'_> {
        GuardContext {
            project_root: &self.project_root,
            working_dir: &self.working_dir,
            home_dir: &self.home_dir,
            subject_paths: &self.subject_files,
            is_code_change: self.is_change,
            own_paths: &self.own_paths,
            scratch_dirs: &self.scratch_dirs,
            session_bound,
        }
    }
}

/// Lists where every session may write: the system's temporary directory, and the clients' directories for plans and
/// memory.
fn list_scratch_dirs() -> Vec<String> {
    let client_dirs = scratch_directories(&|variable_name| env::var_os(variable_name));
    let scratch_dirs = [env::temp_dir()].into_iter().chain(client_dirs);
    scratch_dirs.map(|directory| directory.canonicalize().unwrap_or(directory).display().to_string()).collect()
}

/// Loads what the run is pinned to whose findings the session has taken on.
fn load_pinned_plan(hook_call: &HookCall, bound_session: &BoundSession) -> Option<RunPlan> {
    let run_id = bound_session.file_state.run_id.as_ref()?;
    let store = Store::open_read_only(&hook_call.project.home_dir()).ok()?;
    // Only the latest of these entries counts, so the whole journal need not be read.
    let last_entry = store.last_entry_of(run_id, &["run_started", "settings_changed"]).ok()??;
    RunView::from_entries([&last_entry]).run_plan()
}
