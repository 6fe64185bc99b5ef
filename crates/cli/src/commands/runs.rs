//! `tribunal runs`.

use std::io::{Write, stdout};

use tribunal_core::view::RunView;
use tribunal_report::tables::{self, Standing};
use tribunal_runner::{Project, Runner};
use tribunal_store::Store;

use crate::{
    complaint::Complaint,
    context::Context,
    documents::{self, RunRow, Runs},
};

/// Every run with whether a process works on it, oldest first.
pub(super) fn all(store: &Store, project: &Project) -> Result<Vec<(RunView, bool)>, Complaint> {
    let mut found = Vec::new();
    for run in store.runs()? {
        let view = RunView::of(&store.entries(&run, 0)?);
        let live = Runner::is_live(project, &run);
        found.push((view, live));
    }
    Ok(found)
}

pub(crate) fn run(context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let found = match context.journal(&project)? {
        Some(store) => all(&store, &project)?,
        None => Vec::new(),
    };
    let standings: Vec<Standing<'_>> =
        found.iter().map(|(view, live)| Standing { view, live: *live }).collect();
    if context.json {
        let runs = standings.iter().map(RunRow::of).collect();
        documents::print(&Runs { schema: "tribunal.runs/1", runs })?;
    } else if standings.is_empty() {
        writeln!(stdout(), "no runs yet in {}; start one: tribunal review FILE", project.root().display())?;
    } else {
        write!(stdout(), "{}", tables::runs(&standings, &context.answers))?;
    }
    Ok(0)
}
