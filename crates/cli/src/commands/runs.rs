//! `tribunal runs`, and the list of all runs that other commands share.

use std::io::{Write, stdout};

use tribunal_core::{
    event::{Entry, Event},
    reason::Outcome,
    view::{Phase, RunView},
};
use tribunal_report::{
    escaped,
    tables::{self, Standing},
};
use tribunal_runner::{Project, Runner};
use tribunal_store::Store;

use crate::{
    complaint::Complaint,
    context::Context,
    documents::{self, RunRow, Runs},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only runs that a process works on
    #[arg(long)]
    live: bool,
    /// Only runs that wait for a person
    #[arg(long)]
    waiting: bool,
    /// Only the last so many
    #[arg(short = 'n', long = "last", value_name = "N")]
    last: Option<usize>,
}

/// Lists every run, oldest first, with whether a process works on it. A run that ended or parked is read in outline:
/// the number of its findings is known, but not which they are.
pub(super) fn all(store: &Store, project: &Project) -> Result<Vec<(RunView, bool)>, Complaint> {
    let outline = store.outline()?;
    let mut found = Vec::new();
    for entries in outline.chunk_by(|one, next| one.run == next.run) {
        // A loop in a session has a journal, too, but is no run; `tribunal loop status` shows it.
        if !matches!(entries.first().map(|entry| &entry.event), Some(Event::RunStarted { .. })) {
            continue;
        }
        found.push(look(store, project, entries)?);
    }
    // The id breaks ties, so that the order is the same each time.
    found.sort_by(|(one, _), (other, _)| (one.started, &one.run).cmp(&(other.started, &other.run)));
    Ok(found)
}

fn look(store: &Store, project: &Project, outline: &[Entry]) -> Result<(RunView, bool), Complaint> {
    let mut view = RunView::of(outline);
    // The outline tells the state of a run that ended or parked; any other run has to be read in full.
    if let (Phase::Running, Some(entry)) = (&view.phase, outline.first()) {
        view = RunView::of(&store.entries(&entry.run, 0)?);
    }
    let live = match (&view.phase, &view.run) {
        // A finished run has no process, so the lock need not be tested.
        (Phase::Finished(_), _) | (_, None) => false,
        (_, Some(run)) => Runner::is_live(project, run),
    };
    Ok((view, live))
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let found = match context.journal(&project)? {
        Some(store) => all(&store, &project)?,
        None => Vec::new(),
    };
    let mut standings: Vec<Standing<'_>> =
        found.iter().map(|(view, live)| Standing { view, live: *live }).collect();
    standings.retain(|standing| arguments.wants(standing));
    // The last ones are the newest, and those come last on the screen, too.
    let skipped = arguments.last.map_or(0, |last| standings.len().saturating_sub(last));
    let standings = &standings[skipped..];
    if context.json {
        let runs = standings.iter().map(RunRow::of).collect();
        documents::print(&Runs { schema: "tribunal.runs/1", runs, sprint: None })?;
    } else if found.is_empty() {
        // An empty project and an empty result are different answers.
        writeln!(
            stdout(),
            "no runs yet in {}; start one: tribunal review FILE",
            escaped(&project.root().display().to_string())
        )?;
    } else if standings.is_empty() {
        writeln!(stdout(), "no such runs; all of them: tribunal runs")?;
    } else {
        write!(stdout(), "{}", tables::runs(standings, &context.answers))?;
    }
    Ok(0)
}

impl Arguments {
    fn wants(&self, standing: &Standing<'_>) -> bool {
        // Questions count once the run has parked; before that it is still being worked on.
        let asks = standing.view.summary().is_some() && standing.view.waiting().next().is_some();
        let is_worked_on = standing.live && matches!(standing.view.phase, Phase::Running);
        let outcome = standing.view.summary().and_then(|summary| summary.outcome);
        (!self.live || is_worked_on) && (!self.waiting || asks || outcome == Some(Outcome::Waiting))
    }
}
