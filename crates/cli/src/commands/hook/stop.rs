//! Handles a session that wants to stop. The decision is made in `workflows`; this module collects the facts and carries
//! it out.

use std::{
    env,
    fs::{self, File},
    io,
};

use tribunal_agents::hook::{HookAnswer, transcript};
use tribunal_bmad::hooks::WorkflowHookMoment;
use tribunal_runner::session::{self, BoundSession, SessionLookup};
use tribunal_workflows::session::{
    ReleaseReason, SessionWork,
    stop::{ClientTurn, SessionRunPhase, StopRefusal, StopVerdict, decide_stop, refusal_mark},
};

use super::{HookCall, log_message, tools::describe_abort};

/// How much of a transcript's end is read at most.
const MAX_TAIL_BYTES: u64 = 8 << 20;

/// How a session ended its turn.
struct SessionEnding {
    /// Empty if it said nothing, or nothing of it is known.
    last_answer: String,
    used_tools: Option<bool>,
}

impl HookCall {
    pub(super) fn handle_stop(&self) -> HookAnswer {
        let current_ms = session::current_wall_ms();
        let mut bound_session =
            match session::look_up_session(&self.project, &self.hook_input.session_id, current_ms, self.stale_age()) {
                SessionLookup::HeldHere(bound_session) => bound_session,
                SessionLookup::NotHeld(reason) => {
                    log_message(&reason);
                    return HookAnswer::Allow { user_message: Some(format!("Tribunal: {reason}")) };
                }
                SessionLookup::NothingBound | SessionLookup::HeldByAnother { .. } => {
                    return HookAnswer::Allow { user_message: None };
                }
            };
        // Work with a journal waits for the user's next prompt; it must not catch a session that merely happens to stop.
        if bound_session.file_state.session_id.is_empty() && !bound_session.has_no_journal() {
            return HookAnswer::Allow { user_message: None };
        }
        // A stop binds the session to work that only a state file knows, before anything is decided about it.
        if bound_session.file_state.session_id.is_empty()
            && let Err(cause) = bound_session.claim_session(&self.project, &self.hook_input.session_id, current_ms)
        {
            log_message(&format!("the work cannot be bound to this session, so the session may stop: {cause}"));
            return HookAnswer::Allow { user_message: None };
        }
        if let Some(reason) = self.run_step_hooks(&mut bound_session, WorkflowHookMoment::Stop).abort_reason {
            return HookAnswer::Allow { user_message: Some(describe_abort(&reason)) };
        }
        // A session whose answer is unknown could say neither that it is done nor that it is blocked, so it is let
        // go.
        let Some(session_ending) = self.read_session_ending(&bound_session) else {
            return HookAnswer::Allow { user_message: None };
        };
        // The client counts refusals in a row; a new prompt or real work in between starts its count anew.
        if !self.hook_input.is_stop_active || session_ending.used_tools == Some(true) {
            bound_session.tally.in_a_row = 0;
        }
        // Clients give up on a hook that refuses too often; `decide_stop` stays below that number.
        let refusal_cap = self.client.hooks.refusal_cap(&|variable_name| env::var(variable_name).ok());
        let client = ClientTurn { in_a_row: bound_session.tally.in_a_row, max_in_a_row: refusal_cap };
        match decide_stop(&bound_session.standing, &session_ending.last_answer, client) {
            StopVerdict::Allow { reason, detail } => {
                self.release_session(&mut bound_session, reason, &detail, current_ms)
            }
            StopVerdict::Refuse(refusal) => self.refuse_stop(&mut bound_session, refusal, current_ms),
        }
    }

    /// Reads the last answer from the hook's input, else from the transcript. Returns `None` if neither is available.
    fn read_session_ending(&self, bound_session: &BoundSession) -> Option<SessionEnding> {
        let given_answer = self.hook_input.last_answer.clone();
        // Opening a pipe would block until there is a writer.
        let is_special = fs::metadata(&self.hook_input.transcript_path).is_ok_and(|file_info| !file_info.is_file());
        let open_result = match is_special {
            true => Err(io::Error::other("not a regular file")),
            false => File::open(&self.hook_input.transcript_path),
        };
        // After a refusal it matters whether tools were used since, which only the transcript tells.
        let tail = match open_result {
            Ok(mut transcript_file) if bound_session.tally.in_a_row > 0 => {
                transcript::read_tail(self.client, &mut transcript_file, MAX_TAIL_BYTES)
            }
            // Without a refusal the last answer is enough, and reading stops as soon as it is found.
            Ok(mut transcript_file) if given_answer.is_none() => {
                transcript::read_last_answer(self.client, &mut transcript_file, MAX_TAIL_BYTES)
                    .map(|answer| transcript::TranscriptTail { answer, ..transcript::TranscriptTail::default() })
            }
            Ok(_) => Ok(transcript::TranscriptTail::default()),
            // The client gave the answer itself, so an unreadable transcript does no harm.
            Err(_) if given_answer.is_some() => Ok(transcript::TranscriptTail::default()),
            Err(cause) => Err(cause),
        };
        let tail = match tail {
            Ok(tail) => tail,
            Err(cause) => {
                let transcript_path = &self.hook_input.transcript_path;
                log_message(&format!(
                    "the transcript {transcript_path} cannot be read, so the session may stop: {cause}"
                ));
                return None;
            }
        };
        // Clients write transcripts with a delay; one without the latest refusal says nothing about the time since.
        let last_mark = refusal_mark(bound_session.standing.refusals);
        let is_current = tail.refusal.as_ref().is_some_and(|refusal| refusal.contains(&last_mark));
        let used_tools = tail.tools_since_refusal.filter(|_| is_current);
        Some(SessionEnding { last_answer: given_answer.or(tail.answer).unwrap_or_default(), used_tools })
    }

    fn refuse_stop(&self, bound_session: &mut BoundSession, refusal: StopRefusal, current_ms: u64) -> HookAnswer {
        let StopRefusal { model_prompt: reason, user_message: message, open_findings: open, has_claimed: claimed } =
            refusal;
        // A refusal that was not counted could be repeated without end, so it is not given.
        match bound_session.record_refusal(&self.project, open, claimed, current_ms) {
            Ok(()) => HookAnswer::Refuse { reason, user_message: Some(message) },
            Err(cause) => {
                log_message(&format!("the refusal could not be counted, so the session may stop: {cause}"));
                HookAnswer::Allow { user_message: None }
            }
        }
    }

    fn release_session(
        &self,
        bound_session: &mut BoundSession,
        release_reason: ReleaseReason,
        detail: &str,
        current_ms: u64,
    ) -> HookAnswer {
        // The detail can quote the session's own words, which may contain secrets.
        let detail = super::mask_text(detail);
        // A release that cannot be recorded is reported, and the session stops all the same.
        if let Err(cause) = bound_session.release_session(&self.project, release_reason, &detail, current_ms) {
            log_message(&cause.to_string());
        }
        let work_name =
            if bound_session.standing.run_id.is_empty() { "the loop" } else { &bound_session.standing.run_id };
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        // The messages differ because only a review's outcome was verified by Tribunal itself.
        let notice = match release_reason {
            ReleaseReason::Complete if bound_session.file_state.work == SessionWork::Review => {
                format!("Tribunal: {work_name} is resolved; no findings are open.")
            }
            ReleaseReason::Complete => format!("Tribunal: {work_name} is done, according to the session."),
            ReleaseReason::Over => format!("Tribunal: {work_name} no longer needs this session{detail}."),
            other_reason => format!(
                "Tribunal: {work_name} is not done, but the session may stop: {}{detail}.",
                other_reason.as_phrase()
            ),
        };
        HookAnswer::Allow {
            user_message: Some(format!("{notice}{}", suggest_next_step(bound_session, release_reason))),
        }
    }
}

/// Suggests a command that the user may type now.
fn suggest_next_step(bound_session: &BoundSession, release_reason: ReleaseReason) -> String {
    let run_id = &bound_session.standing.run_id;
    match (bound_session.file_state.work, release_reason) {
        _ if run_id.is_empty() => String::new(),
        (_, ReleaseReason::Complete) => String::new(),
        (SessionWork::Loop, _) => match &bound_session.posted_decision {
            Some(decision_id) => format!(" It is waiting for you: `tribunal decisions {run_id}.{decision_id}`"),
            None => String::new(),
        },
        (SessionWork::Review, ReleaseReason::Over) => format!(" Details: `tribunal status {run_id}`"),
        // A run that is under way or died has a status worth reading first; otherwise its findings wait for
        // decisions.
        (SessionWork::Review, _) => match bound_session.standing.run_phase {
            SessionRunPhase::UnderWay | SessionRunPhase::Died => {
                format!(" Details: `tribunal status {run_id}`")
            }
            _ => format!(
                " Its {} open findings are waiting for you: `tribunal decisions`",
                bound_session.standing.open_count
            ),
        },
    }
}
