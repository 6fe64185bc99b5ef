//! `tribunal log RUN`: the same drawing as live, from the journal.

use std::io::stdout;

use tribunal_report::{JsonLines, Lines, Reporter};

use crate::{
    complaint::Complaint,
    context::{Context, find_run},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    run: String,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let store = context.journal(&project)?.ok_or_else(|| {
        Complaint::usage(format!("there is no run {}: this project has none yet", arguments.run))
            .todo("start one: tribunal review FILE")
    })?;
    let run = find_run(&store, &arguments.run)?;
    let mut reporter: Box<dyn Reporter> = if context.json {
        Box::new(JsonLines::new(stdout()))
    } else {
        Box::new(Lines::new(stdout(), context.answers))
    };
    for entry in store.entries(&run, 0)? {
        reporter.entry(&entry)?;
    }
    Ok(0)
}
