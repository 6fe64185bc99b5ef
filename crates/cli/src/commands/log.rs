//! `tribunal log [RUN]`: the same drawing as live, from the journal.

use std::io::stdout;

use tribunal_report::{JsonLines, Lines, Mode, Reporter};

use crate::{complaint::Complaint, context::Context};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one
    run: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let (store, run) = context.run_meant(&project, arguments.run.as_deref())?;
    let mut reporter: Box<dyn Reporter> = if context.json {
        Box::new(JsonLines::new(stdout()))
    } else {
        Box::new(Lines::new(stdout(), context.answers.clone(), Mode::default()))
    };
    for entry in store.entries(&run, 0)? {
        reporter.entry(&entry)?;
    }
    Ok(0)
}
