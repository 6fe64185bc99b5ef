//! `tribunal status [RUN]`.

use std::io::{Write, stdout};

use tribunal_core::view::RunView;
use tribunal_report::{
    escaped,
    tables::{self, Standing},
};
use tribunal_runner::Runner;

use super::runs;
use crate::{
    complaint::Complaint,
    context::{Context, find_run},
    documents::{self, RunRow, Runs},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one and all that need somebody
    run: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let found: Vec<(RunView, bool)> = match (context.journal(&project)?, &arguments.run) {
        (Some(store), Some(said)) => {
            let run = find_run(&store, said)?;
            vec![(RunView::of(&store.entries(&run, 0)?), Runner::is_live(&project, &run))]
        }
        (Some(store), None) => {
            let mut all = runs::all(&store, &project)?;
            // In full, with its findings; the others are seen in outline.
            let last = match all.pop() {
                Some((RunView { run: Some(run), .. }, live)) => {
                    Some((RunView::of(&store.entries(&run, 0)?), live))
                }
                other => other,
            };
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
        (None, None) => Vec::new(),
    };
    let standings: Vec<Standing<'_>> =
        found.iter().map(|(view, live)| Standing { view, live: *live }).collect();
    if context.json {
        let runs = standings.iter().map(RunRow::of).collect();
        documents::print(&Runs { schema: "tribunal.status/1", runs })?;
    } else if standings.is_empty() {
        writeln!(
            stdout(),
            "no runs yet in {}; start one: tribunal review FILE",
            escaped(&project.root().display().to_string())
        )?;
    }
    for standing in standings.iter().filter(|_| !context.json) {
        write!(stdout(), "{}", tables::status(standing, &context.answers))?;
    }
    Ok(0)
}
