//! Session events other than a stop: a session starts or ends, is compacted, or the user sends a prompt.

use tribunal_agents::hook::HookAnswer;
use tribunal_bmad::hooks::WorkflowHookMoment;
use tribunal_report::tables::{RunStanding, RunState};
use tribunal_runner::{
    Runner,
    session::{self, BoundSession, SessionLookup},
};
use tribunal_store::Store;
use tribunal_workflows::session::{SessionEventKind, SessionWork};

use super::{HookCall, log_message, tools::describe_abort};
use crate::commands::runs;

impl HookCall {
    /// Finds the work that this very session is bound to.
    pub(super) fn find_bound_session(&self) -> Option<Box<BoundSession>> {
        // Work that waits for any session, or is bound to another one, is not this session's.
        match session::look_up_session(
            &self.project,
            &self.hook_input.session_id,
            session::current_wall_ms(),
            self.stale_age(),
        ) {
            SessionLookup::HeldHere(bound_session)
                if bound_session.file_state.session_id == self.hook_input.session_id =>
            {
                Some(bound_session)
            }
            SessionLookup::NotHeld(reason) => {
                log_message(&reason);
                None
            }
            _ => None,
        }
    }

    pub(super) fn record_event(&self, bound_session: &BoundSession, event_kind: SessionEventKind) {
        // An event that cannot be recorded is reported and dropped: the session must not suffer from it.
        if let Err(cause) = bound_session.record_event(event_kind, session::current_wall_ms()) {
            log_message(&cause.to_string());
        }
    }

    pub(super) fn handle_session_end(&self) -> HookAnswer {
        if let Some(bound_session) = self.find_bound_session() {
            let end_reason = if self.hook_input.source.is_empty() { "" } else { &self.hook_input.source };
            self.record_event(
                &bound_session,
                SessionEventKind::Noted { text: format!("the session ended {end_reason}").trim().to_string() },
            );
        }
        HookAnswer::Allow { user_message: None }
    }

    pub(super) fn handle_pre_compact(&self) -> HookAnswer {
        if let Some(bound_session) = self.find_bound_session() {
            self.record_event(
                &bound_session,
                SessionEventKind::Noted { text: "the client compacts the session".into() },
            );
        }
        HookAnswer::Allow { user_message: None }
    }

    /// Handles a prompt of the user: the client starts to count refusals anew, and work that waits for a session
    /// binds this one.
    pub(super) fn handle_user_prompt(&self) -> HookAnswer {
        let current_ms = session::current_wall_ms();
        let SessionLookup::HeldHere(mut bound_session) =
            session::look_up_session(&self.project, &self.hook_input.session_id, current_ms, self.stale_age())
        else {
            return HookAnswer::Allow { user_message: None };
        };
        // Work that only a state file knows is claimed by the session that stops first, as the other tool that writes
        // the file does it.
        if bound_session.file_state.session_id.is_empty() && !bound_session.has_no_journal() {
            return match bound_session.claim_session(&self.project, &self.hook_input.session_id, current_ms) {
                Ok(()) => HookAnswer::AddContext { context: describe_bound_work(&bound_session) },
                Err(cause) => {
                    log_message(&cause.to_string());
                    HookAnswer::Allow { user_message: None }
                }
            };
        }
        // The user took over, so earlier refusals no longer count as being in a row.
        if bound_session.tally.in_a_row > 0 {
            bound_session.tally.in_a_row = 0;
            self.record_event(&bound_session, SessionEventKind::Noted { text: "the user sent a prompt".into() });
        }
        HookAnswer::Allow { user_message: None }
    }

    /// Tells the model what happened in this project before.
    pub(super) fn handle_session_start(&self) -> HookAnswer {
        let mut notes = Vec::new();
        match session::look_up_session(
            &self.project,
            &self.hook_input.session_id,
            session::current_wall_ms(),
            self.stale_age(),
        ) {
            SessionLookup::HeldHere(mut bound_session)
                if bound_session.file_state.session_id == self.hook_input.session_id =>
            {
                // The start hooks of the current step run now, and what they print goes to the model.
                notes.push(describe_bound_work(&bound_session));
                let hook_outcome = self.run_step_hooks(&mut bound_session, WorkflowHookMoment::SessionStart);
                notes.extend(hook_outcome.abort_reason.map(|reason| describe_abort(&reason)));
                notes.extend(Some(hook_outcome.context).filter(|context| !context.trim().is_empty()));
            }
            SessionLookup::NotHeld(reason) => {
                log_message(&reason);
                notes.push(reason);
            }
            _ => {}
        }
        notes.extend(self.describe_unfinished_runs());
        // Without news the model's context is left alone.
        if notes.is_empty() {
            return HookAnswer::Allow { user_message: None };
        }
        notes.insert(0, "Tribunal in this project:".to_string());
        HookAnswer::AddContext { context: notes.join("\n") }
    }

    /// Describes runs that died and the number of questions that wait.
    fn describe_unfinished_runs(&self) -> Vec<String> {
        if !Store::exists(&self.project.home_dir()) {
            return Vec::new();
        }
        // Problems with the journal are not this session's business; `tribunal runs` reports them.
        let listed_runs =
            Store::open_read_only(&self.project.home_dir()).ok().map(|store| runs::list_runs(&store, &self.project));
        let Some(Ok(listed_runs)) = listed_runs else { return Vec::new() };
        let mut notes = Vec::new();
        for (run_view, run_is_live) in &listed_runs {
            // Liveness is checked again because a run may have been resumed since the list was made.
            let run_standing = RunStanding { run_view, is_live: *run_is_live };
            if let (RunState::Crashed, Some(run_id)) = (run_standing.run_state(), &run_view.run_id)
                && !Runner::is_live(&self.project, run_id)
            {
                notes.push(format!("Run {run_id} crashed; the user can resume it with `tribunal resume {run_id}`"));
            }
        }
        let question_count: usize = listed_runs.iter().map(|(run_view, _)| run_view.open_decisions().count()).sum();
        if question_count > 0 {
            let (noun, verb) = if question_count == 1 { ("question", "waits") } else { ("questions", "wait") };
            notes.push(format!("{question_count} {noun} {verb} for the user: `tribunal decisions`"));
        }
        notes
    }
}

fn describe_bound_work(bound_session: &BoundSession) -> String {
    let work_name = if bound_session.standing.run_id.is_empty() { "a loop" } else { &bound_session.standing.run_id };
    let mut description = format!(
        "This session works on {work_name} for Tribunal: sent back {} of at most {} so far.",
        bound_session.standing.refusals, bound_session.standing.max_refusals
    );
    if bound_session.standing.work == SessionWork::Loop {
        description.push_str(&format!(" Task: {}", bound_session.standing.prompt));
        if let Some(promise) = &bound_session.standing.promise {
            let tagged_promise = bound_session.standing.work.tag_promise(promise);
            description.push_str(&format!(" When it is true, say: {tagged_promise}"));
        }
    }
    description
}
