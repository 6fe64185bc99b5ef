//! `tribunal stop [RUN] [--now]`: stops a run, which can be resumed later. A loop has no process to stop: its session is
//! released, which ends it.
//!
//! A run may end by itself at any moment, even between the look at its lock and the signal. What is printed
//! afterwards is therefore read from its journal.

use serde_json::json;
use tribunal_engine::{event::ParentRun, ids::RunId, user_remark::UserRemark};
use tribunal_report::{
    escape_line,
    tables::{RunStanding, is_driven_by_session},
};
use tribunal_runner::{Project, RunHold, Runner, session::loop_runs};
use tribunal_store::Store;
use tribunal_supervise::ProcessIdentity;
use tribunal_workflows::{
    runs::{
        user_request::UserRequest,
        view::{RunPhase, RunView},
    },
    sprint::requests::SprintCommand,
};

use crate::{
    context::{CommandContext, find_run},
    messages::{
        json_documents,
        user_errors::{EXIT_ENVIRONMENT, UserError},
    },
    runs::user_requests,
};

#[derive(Debug, clap::Args)]
pub(crate) struct StopArguments {
    /// Run to stop (default: the one that is running)
    run: Option<String>,
    /// Terminate its agents now instead of letting them finish
    #[arg(long)]
    now: bool,
    /// Of a sprint: finish the story at work, with its review and its commit, and begin no other
    #[arg(long, conflicts_with = "now")]
    after_story: bool,
}

pub(crate) fn run(arguments: &StopArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let Some((run_id, run_hold)) = find_run_to_stop(arguments, &project, context)? else {
        return print_message(context, "nothing is running here", &json!({ "stopping": null })).map(|()| 0);
    };
    let parent = match context.open_journal(&project)? {
        Some(store) => RunView::from_entries(&store.last_entry_of(&run_id, &["run_started"])?).parent,
        None => None,
    };
    if arguments.after_story {
        return stop_after_story(&project, &run_id, context);
    }
    let was_held = run_hold != RunHold::Free || loop_runs::is_loop_held(&project, &run_id);
    let stop_request = StopRequest { run_id, parent, was_held, end_now: arguments.now, project, context };
    match run_hold {
        RunHold::Free => stop_request.end_loop_if_open(),
        RunHold::HeldBy(process) if stop_request.parent.is_some() => stop_request.stop_child(process),
        RunHold::HeldBy(process) => stop_request.signal_process(process),
        // The process is gone and its keeper is ending the agents; there is nothing left to signal.
        RunHold::EndingAgents if arguments.now => stop_request.wait_for_exit(),
        RunHold::EndingAgents => {
            stop_request.print_pending("has stopped; its remaining agents are being terminated; then resume it with")
        }
        RunHold::UnknownHolder => {
            // Killing by a number that is not understood could hit an unrelated process.
            Err(stop_request.explain_unreachable("Its lock does not say in a known way which process holds it."))
        }
    }
}

/// Asks a sprint to begin no further story.
fn stop_after_story(project: &Project, run_id: &RunId, context: &CommandContext) -> Result<u8, UserError> {
    let store = Store::open(&project.home_dir())?;
    let run_view = store.read_view(run_id)?;
    if run_view.as_sprint().is_none() || matches!(run_view.phase, RunPhase::Finished(_)) {
        return Err(UserError::usage(format!("run {run_id} is not a sprint under way"))
            .with_step(format!("stop it after its current step: `{} stop {run_id}`", context.program_name())));
    }
    let request = UserRequest::Say(UserRemark::new(SprintCommand::StopAfterStory.to_remark()));
    user_requests::send_request(project, &store, &run_view, &request, Vec::new())?;
    let document = json!({ "stopping": run_id, "now": false, "after_story": true });
    print_message(context, &format!("run {run_id}: {}", SprintCommand::StopAfterStory.describe()), &document)
        .map(|()| 0)
}

/// Finds the run to stop and who holds it; `None` if nothing is running.
fn find_run_to_stop(
    arguments: &StopArguments,
    project: &Project,
    context: &CommandContext,
) -> Result<Option<(RunId, RunHold)>, UserError> {
    let Some(store) = context.open_journal(project)? else { return Ok(None) };
    let with_hold = |run_id: RunId| {
        let run_hold = Runner::read_hold(project, &run_id);
        (run_id, run_hold)
    };
    if let Some(run_name) = &arguments.run {
        return Ok(Some(with_hold(find_run(&store, run_name)?)));
    }
    // Without a name, only a single running run is unambiguous. Child runs stop with the run that started them.
    let is_running =
        |(run_id, run_hold): &(RunId, RunHold)| *run_hold != RunHold::Free || loop_runs::is_loop_held(project, run_id);
    let mut running_runs: Vec<_> = store.list_runs()?.into_iter().map(with_hold).filter(is_running).collect();
    if running_runs.len() > 1 {
        let is_child = |run_id: &RunId| {
            let first_entry = store.last_entry_of(run_id, &["run_started"]).ok().flatten();
            RunView::from_entries(&first_entry).parent.is_some()
        };
        running_runs.retain(|(run_id, _)| !is_child(run_id));
    }
    if running_runs.len() > 1 {
        let running_names: Vec<&str> = running_runs.iter().map(|(run_id, _)| run_id.as_str()).collect();
        return Err(UserError::usage(format!("several runs are running: {}", running_names.join(", ")))
            .with_step("choose one: `tribunal stop RUN`"));
    }
    Ok(running_runs.pop())
}

struct StopRequest<'a> {
    run_id: RunId,
    /// The run that started it, if it is a child: it continues.
    parent: Option<ParentRun>,
    /// Whether something of the run was still running.
    was_held: bool,
    end_now: bool,
    project: Project,
    context: &'a CommandContext,
}

impl StopRequest<'_> {
    /// Stops a run without a process: a loop releases its session, and any other run has stopped before.
    fn end_loop_if_open(&self) -> Result<u8, UserError> {
        loop_runs::end_loop(&self.project, &self.run_id, "tribunal stop")?;
        self.print_ending()
    }

    fn signal_process(&self, process: ProcessIdentity) -> Result<u8, UserError> {
        // The process id is checked against its start time, so a reused id is never signalled.
        let was_signalled = if self.end_now { process.ask_to_end() } else { process.ask_to_stop() };
        // A signal that failed on a live process means missing permission; on a dead one, that it ended meanwhile.
        if !was_signalled && process.is_alive() {
            return Err(self.explain_unreachable(&format!(
                "Process {} belongs to another user or container, or the system refused the signal.",
                process.pid()
            )));
        }
        match (was_signalled, self.end_now) {
            (true, false) => self.print_pending("stops as soon as its agents have finished; then resume it with"),
            (true, true) => self.wait_for_exit(),
            (false, _) => self.print_ending(),
        }
    }

    /// Stops a child run alone. It runs in the process of its root, so a signal to that process only says that there is a
    /// request; the request itself is in the inbox of the child.
    fn stop_child(&self, process: ProcessIdentity) -> Result<u8, UserError> {
        let store = Store::open(&self.project.home_dir())?;
        let run_view = store.read_view(&self.run_id)?;
        let request = UserRequest::Stop { now: self.end_now };
        user_requests::send_request(&self.project, &store, &run_view, &request, Vec::new())?;
        drop(store);
        if !process.ask_to_check() && process.is_alive() {
            return Err(self.explain_unreachable(&format!(
                "Process {} belongs to another user or container, or the system refused the signal.",
                process.pid()
            )));
        }
        match self.end_now {
            true => self.wait_for_exit(),
            false => self
                .print_pending("stops as soon as its agents have finished; its parent continues; then resume it with"),
        }
    }

    fn wait_for_exit(&self) -> Result<u8, UserError> {
        // The lock is free only when no process of the run is left, so waiting for it is enough.
        if !Runner::wait_until_gone(&self.project, &self.run_id) {
            return Err(UserError::new(
                EXIT_ENVIRONMENT,
                format!("processes of run {} are still running", self.run_id),
            )
            .with_reason("They were told to terminate and did not exit in time.")
            .with_step("check them: `ps -ef --forest`")
            .with_step(format!(
                "then try again: `{} stop {} --now`",
                self.context.answer_screen.program_name, self.run_id
            )));
        }
        self.print_ending()
    }

    fn resume_command(&self) -> String {
        format!("{} resume {}", self.context.answer_screen.program_name, self.run_id)
    }

    fn print_pending(&self, progress_text: &str) -> Result<u8, UserError> {
        let resume_line = self.resume_command();
        let document = json!({ "stopping": self.run_id, "now": self.end_now, "next": resume_line });
        print_message(self.context, &format!("run {} {progress_text} `{resume_line}`", self.run_id), &document)
            .map(|()| 0)
    }

    fn print_ending(&self) -> Result<u8, UserError> {
        let journal_entries = match self.context.open_journal(&self.project)? {
            Some(store) => store.read_entries(&self.run_id, 0)?,
            None => Vec::new(),
        };
        let run_view = RunView::from_entries(&journal_entries);
        let resume_line = match (is_driven_by_session(&run_view), run_view.open_decisions().next()) {
            // Only the answer to its question continues a loop.
            (true, Some(decision)) => {
                format!("{} decisions {}.{} more", self.context.program_name(), self.run_id, decision.id)
            }
            _ => self.resume_command(),
        };
        let next_command = (!matches!(run_view.phase, RunPhase::Finished(_))).then_some(&resume_line);
        let state_name = RunStanding { run_view: &run_view, is_live: false }.state_name();
        // Programs see `null` here if there was nothing to stop.
        let stopped_run = self.was_held.then_some(&self.run_id);
        let document = json!({
            "stopping": stopped_run, "run": self.run_id, "now": self.end_now, "next": next_command, "state": state_name,
        });
        print_message(
            self.context,
            &format!("run {} {}", self.run_id, describe_ending(&run_view, &resume_line)),
            &document,
        )
        .map(|()| 0)
    }

    fn explain_unreachable(&self, reason: &str) -> UserError {
        UserError::new(
            EXIT_ENVIRONMENT,
            format!("run {} is in progress, but its process could not be reached", self.run_id),
        )
        .with_reason(format!("{reason} The run was not stopped."))
        .with_step(format!("stop it where it was started, as the same user: `tribunal stop {}`", self.run_id))
    }
}

/// Describes how a run ended that no process works on.
fn describe_ending(run_view: &RunView, resume_line: &str) -> String {
    let state_name = RunStanding { run_view, is_live: false }.state_name();
    match &run_view.phase {
        RunPhase::Finished(_) => format!("has finished: {state_name}"),
        // A parked run without an outcome was stopped by request, not by a decision that is due.
        RunPhase::Parked(summary) if summary.outcome.is_none() => {
            format!("has stopped; resume it with `{resume_line}`")
        }
        RunPhase::Parked(_) => format!("has stopped ({state_name}); resume it with `{resume_line}`"),
        RunPhase::Running => format!("crashed; resume it with `{resume_line}`"),
    }
}

fn print_message(context: &CommandContext, message: &str, document: &serde_json::Value) -> Result<(), UserError> {
    if context.wants_json {
        let mut document = document.clone();
        document["schema"] = "tribunal.stop/1".into();
        json_documents::print_document(&document)?;
    } else {
        context.print_answer(&escape_line(message))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tribunal_engine::reason::RunOutcome;
    use tribunal_workflows::runs::types::RunEvent;

    use super::*;

    #[test]
    fn a_run_that_ended_before_the_signal_is_reported_as_ended() {
        let journal_entries = tribunal_testkit::parse_entries(tribunal_testkit::SAMPLE_JOURNAL);
        let describe = |journal_entries: &[tribunal_workflows::runs::types::JournalEntry]| {
            describe_ending(&RunView::from_entries(journal_entries), "tribunal resume x")
        };
        assert_eq!(describe(&journal_entries), "has finished: resolved");
        let (last_entry, earlier_entries) = journal_entries.split_last().unwrap();
        assert_eq!(describe(earlier_entries), "crashed; resume it with `tribunal resume x`");
        let RunEvent::RunFinished(mut summary) = last_entry.event.clone() else { panic!("{last_entry:?}") };
        for (outcome, expected) in [
            (Some(RunOutcome::Waiting), "has stopped (waiting); resume it with `tribunal resume x`"),
            (None, "has stopped; resume it with `tribunal resume x`"),
        ] {
            summary.outcome = outcome;
            let parked_entry = tribunal_workflows::runs::types::JournalEntry {
                event: RunEvent::RunParked(summary.clone()),
                ..last_entry.clone()
            };
            assert_eq!(describe(&[earlier_entries, &[parked_entry]].concat()), expected);
        }
    }
}
