//! `tribunal log [RUN]`: the same drawing as live, from the journal.

use std::io::stdout;

use tribunal_report::{JsonLines, Lines, Reporter};

use crate::{
    complaint::Complaint,
    context::{Context, find_run},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one
    run: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let none = || Complaint::usage("this project has no runs yet").todo("start one: tribunal review FILE");
    let store = context.journal(&project)?.ok_or_else(none)?;
    let run = match &arguments.run {
        Some(said) => find_run(&store, said)?,
        None => store.runs()?.pop().ok_or_else(none)?,
    };
    let mut reporter: Box<dyn Reporter> = if context.json {
        Box::new(JsonLines::new(stdout()))
    } else {
        Box::new(Lines::new(stdout(), context.answers.clone()))
    };
    for entry in store.entries(&run, 0)? {
        reporter.entry(&entry)?;
    }
    Ok(0)
}
