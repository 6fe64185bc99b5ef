//! `tribunal stop [RUN] [--now]`: stops a run, which can be resumed later.
//!
//! A run may end by itself at any moment, even between the look at its lock and the signal. What is printed
//! afterwards is therefore read from its journal.

use std::io::{Write, stdout};

use serde_json::json;
use tribunal_core::{
    ids::RunId,
    view::{Phase, RunView},
};
use tribunal_report::{escaped, tables::Standing};
use tribunal_runner::{Hold, Project, Runner};
use tribunal_supervise::Identity;

use crate::{
    complaint::{Complaint, ENVIRONMENT},
    context::{Context, find_run},
    documents,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the one that is running
    run: Option<String>,
    /// End its agents now, instead of letting them finish
    #[arg(long)]
    now: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let Some((run, hold)) = meant(arguments, &project, context)? else {
        return say(context, "nothing is running here", &json!({ "stopping": null })).map(|()| 0);
    };
    let stopping = Stopping { run, was_held: hold != Hold::Free, now: arguments.now, project, context };
    match hold {
        Hold::By(process) => stopping.ask(process),
        // The process is gone and its keeper is ending the agents; there is nothing left to signal.
        Hold::Ending if arguments.now => stopping.wait(),
        Hold::Ending => {
            stopping.tell("is no longer worked on; what is left of its agents is being ended; then")
        }
        Hold::Free => stopping.tell_how_it_ended(),
        Hold::Unknown => {
            // Killing by a number that is not understood could hit an unrelated process.
            Err(stopping.out_of_reach("Who works on it did not say so in a way that is understood here."))
        }
    }
}

/// Finds the run to stop and who holds it; `None` if nothing is running.
fn meant(
    arguments: &Arguments,
    project: &Project,
    context: &Context,
) -> Result<Option<(RunId, Hold)>, Complaint> {
    let Some(store) = context.journal(project)? else { return Ok(None) };
    let held = |run: RunId| {
        let hold = Runner::hold(project, &run);
        (run, hold)
    };
    if let Some(said) = &arguments.run {
        return Ok(Some(held(find_run(&store, said)?)));
    }
    // Without a name, only a single running run is unambiguous.
    let mut running: Vec<_> =
        store.runs()?.into_iter().map(held).filter(|(_, hold)| *hold != Hold::Free).collect();
    if running.len() > 1 {
        let names: Vec<&str> = running.iter().map(|(run, _)| run.as_str()).collect();
        return Err(Complaint::usage(format!("several runs are running: {}", names.join(", ")))
            .todo("say which one: tribunal stop RUN"));
    }
    Ok(running.pop())
}

struct Stopping<'a> {
    run: RunId,
    /// Whether something of the run was still running.
    was_held: bool,
    now: bool,
    project: Project,
    context: &'a Context,
}

impl Stopping<'_> {
    fn ask(&self, process: Identity) -> Result<u8, Complaint> {
        // The process id is checked against its start time, so a reused id is never signalled.
        let heard = if self.now { process.ask_to_end() } else { process.ask_to_stop() };
        // A signal that failed on a live process means missing permission; on a dead one, that it ended meanwhile.
        if !heard && process.is_alive() {
            return Err(self.out_of_reach(&format!(
                "Process {} belongs to another user or to another container, or the system refused.",
                process.pid()
            )));
        }
        match (heard, self.now) {
            (true, false) => self.tell("stops as soon as its agents have finished; then"),
            (true, true) => self.wait(),
            (false, _) => self.tell_how_it_ended(),
        }
    }

    fn wait(&self) -> Result<u8, Complaint> {
        // The lock is free only when no process of the run is left, so waiting for it is enough.
        if !Runner::wait_until_gone(&self.project, &self.run) {
            return Err(Complaint::new(
                ENVIRONMENT,
                format!("processes of run {} are still there", self.run),
            )
            .why("They were asked to end, and their time to do so is over.")
            .todo("look at them: ps -ef --forest")
            .todo(format!("then once more: {} stop {} --now", self.context.answers.program, self.run)));
        }
        self.tell_how_it_ended()
    }

    fn resume(&self) -> String {
        format!("{} resume {}", self.context.answers.program, self.run)
    }

    fn tell(&self, what: &str) -> Result<u8, Complaint> {
        let resume = self.resume();
        let document = json!({ "stopping": self.run, "now": self.now, "next": resume });
        say(self.context, &format!("run {} {what}: {resume}", self.run), &document).map(|()| 0)
    }

    fn tell_how_it_ended(&self) -> Result<u8, Complaint> {
        let entries = match self.context.journal(&self.project)? {
            Some(store) => store.entries(&self.run, 0)?,
            None => Vec::new(),
        };
        let view = RunView::of(&entries);
        let resume = self.resume();
        let next = (!matches!(view.phase, Phase::Finished(_))).then_some(&resume);
        let state = Standing { view: &view, live: false }.word();
        // Programs see `null` here if there was nothing to stop.
        let stopping = self.was_held.then_some(&self.run);
        let document = json!({
            "stopping": stopping, "run": self.run, "now": self.now, "next": next, "state": state,
        });
        say(self.context, &format!("run {} {}", self.run, how_it_ended(&view, &resume)), &document)
            .map(|()| 0)
    }

    fn out_of_reach(&self, why: &str) -> Complaint {
        Complaint::new(ENVIRONMENT, format!("run {} is being worked on, but could not be reached", self.run))
            .why(format!("{why} It was not stopped."))
            .todo(format!("where it was started, as the user who did: tribunal stop {}", self.run))
    }
}

/// Describes how a run ended that no process works on.
fn how_it_ended(view: &RunView, resume: &str) -> String {
    let word = Standing { view, live: false }.word();
    match &view.phase {
        Phase::Finished(_) => format!("has finished: {word}"),
        // A parked run without an outcome was stopped by request, not by a decision that is due.
        Phase::Parked(summary) if summary.outcome.is_none() => format!("has stopped; to go on: {resume}"),
        Phase::Parked(_) => format!("has ended: {word}; to go on: {resume}"),
        Phase::Running => format!("{word}; to go on: {resume}"),
    }
}

fn say(context: &Context, text: &str, document: &serde_json::Value) -> Result<(), Complaint> {
    if context.json {
        let mut document = document.clone();
        document["schema"] = "tribunal.stop/1".into();
        documents::print(&document)?;
    } else {
        writeln!(stdout(), "{}", escaped(text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tribunal_core::{event::Event, reason::Outcome};

    use super::*;

    #[test]
    fn a_run_that_was_too_quick_is_not_said_to_go_on() {
        let entries = tribunal_testkit::entries(tribunal_testkit::SAMPLE_JOURNAL);
        let said = |entries: &[tribunal_core::event::Entry]| {
            how_it_ended(&RunView::of(entries), "tribunal resume x")
        };
        assert_eq!(said(&entries), "has finished: resolved");
        let (last, before) = entries.split_last().unwrap();
        assert_eq!(said(before), "died; to go on: tribunal resume x");
        let Event::RunFinished(mut summary) = last.event.clone() else { panic!("{last:?}") };
        for (outcome, says) in [
            (Some(Outcome::Waiting), "has ended: waiting; to go on: tribunal resume x"),
            (None, "has stopped; to go on: tribunal resume x"),
        ] {
            summary.outcome = outcome;
            let parked =
                tribunal_core::event::Entry { event: Event::RunParked(summary.clone()), ..last.clone() };
            assert_eq!(said(&[before, &[parked]].concat()), says);
        }
    }
}
