//! `tribunal status [RUN]`: shows where runs stand, what to type next, and the sprint.

use std::io::{Write, stdout};

use tribunal_core::{effect::Request, view::RunView};
use tribunal_report::{
    escaped,
    tables::{self, Standing},
};
use tribunal_runner::Runner;
use tribunal_store::Store;

use super::runs;
use crate::{
    bmad::Bmad,
    complaint::Complaint,
    context::{Context, find_run},
    documents::{self, RunRow, Runs},
    sprint,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one, all that need somebody, and the sprint
    run: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let store = context.journal(&project)?;
    // The sprint is shown only when no run is named: the user then wants an overview.
    let mut sprint = None;
    let mut found: Vec<(RunView, bool)> = match (&store, &arguments.run) {
        (Some(store), Some(said)) => {
            let run = find_run(store, said)?;
            vec![(RunView::of(&store.entries(&run, 0)?), Runner::is_live(&project, &run))]
        }
        (Some(store), None) => {
            let mut all = runs::all(store, &project)?;
            sprint = sprint::look(&Bmad::of(&project), &all.iter().map(|(view, _)| view).collect::<Vec<_>>());
            // The last run is shown in full with its findings; the others are known in outline only.
            let last = match all.pop() {
                Some((RunView { run: Some(run), .. }, live)) => {
                    Some((RunView::of(&store.entries(&run, 0)?), live))
                }
                other => other,
            };
            // Runs that need no attention any more are left out.
            all.retain(|(view, live)| {
                !matches!(Standing { view, live: *live }.word(), "resolved" | "cancelled")
            });
            all.extend(last);
            all
        }
        (None, Some(said)) => {
            return Err(Complaint::usage(format!("there is no run {said}: this project has none yet"))
                .todo("start one: tribunal review FILE"));
        }
        (None, None) => {
            sprint = sprint::look(&Bmad::of(&project), &[]);
            Vec::new()
        }
    };
    // Answers wait in the inbox until a resume; without this step they would be shown as missing.
    if let Some(store) = &store {
        for (view, _) in &mut found {
            take_in_answers(store, view)?;
        }
    }
    let standings: Vec<Standing<'_>> =
        found.iter().map(|(view, live)| Standing { view, live: *live }).collect();
    if context.json {
        let runs = standings.iter().map(RunRow::of).collect();
        documents::print(&Runs { schema: "tribunal.status/1", runs, sprint })?;
        return Ok(0);
    }
    if standings.is_empty() {
        writeln!(
            stdout(),
            "no runs yet in {}; start one: tribunal review FILE",
            escaped(&project.root().display().to_string())
        )?;
    }
    for standing in &standings {
        write!(stdout(), "{}", tables::status(standing, &context.answers))?;
    }
    if let Some(sprint) = sprint {
        write!(stdout(), "\n{}", sprint::draw(&sprint, &context.answers))?;
    }
    Ok(0)
}

/// Marks decisions as answered whose answers wait for the run to go on.
fn take_in_answers(store: &Store, view: &mut RunView) -> Result<(), Complaint> {
    let Some(run) = view.run.clone() else { return Ok(()) };
    for stored in store.requests(&run)? {
        if let Request::Answer { decision, answer } = stored.request {
            let asked =
                view.decisions.iter_mut().find(|known| known.id == decision && known.answer.is_none());
            if let Some(asked) = asked {
                asked.answer = Some(answer);
            }
        }
    }
    Ok(())
}
