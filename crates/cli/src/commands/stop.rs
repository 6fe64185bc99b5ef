//! `tribunal stop [RUN] [--now]`.

use std::io::{Write, stdout};

use serde_json::json;
use tribunal_core::ids::RunId;
use tribunal_runner::{Project, Runner};
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
    let Some((run, process)) = meant(arguments, &project, context)? else {
        return say(context, "nothing is running here", &json!({ "stopping": null })).map(|()| 0);
    };
    let heard = if arguments.now { process.ask_to_end() } else { process.ask_to_stop() };
    if !heard && process.is_alive() {
        return Err(Complaint::new(
            ENVIRONMENT,
            format!("run {run} could not be reached (process {})", process.pid()),
        )
        .why("It belongs to another user, or the system refused.")
        .todo(format!("as its user: kill -INT {}", process.pid())));
    }
    let resume = format!("{} resume {run}", context.answers.program);
    let document = json!({ "stopping": run, "now": arguments.now, "next": resume });
    if !arguments.now {
        let text = format!("run {run} stops as soon as its agents have finished; then: {resume}");
        return say(context, &text, &document).map(|()| 0);
    }
    if !Runner::wait_until_gone(&project, &run) {
        return Err(Complaint::new(ENVIRONMENT, format!("processes of run {run} are still there"))
            .todo(format!("look at them: ps -ef | grep {}", process.pid())));
    }
    say(context, &format!("run {run} has stopped; to go on: {resume}"), &document).map(|()| 0)
}

/// The run that is meant and the process that works on it. None: nothing is running.
fn meant(
    arguments: &Arguments,
    project: &Project,
    context: &Context,
) -> Result<Option<(RunId, Identity)>, Complaint> {
    let Some(store) = context.journal(project)? else { return Ok(None) };
    let live = |run: RunId| Runner::process_of(project, &run).map(|process| (run, process));
    if let Some(said) = &arguments.run {
        let run = find_run(&store, said)?;
        return Ok(live(run));
    }
    let mut running: Vec<_> = store.runs()?.into_iter().filter_map(live).collect();
    if running.len() > 1 {
        let names: Vec<&str> = running.iter().map(|(run, _)| run.as_str()).collect();
        return Err(Complaint::usage(format!("several runs are running: {}", names.join(", ")))
            .todo("say which one: tribunal stop RUN"));
    }
    Ok(running.pop())
}

fn say(context: &Context, text: &str, document: &serde_json::Value) -> Result<(), Complaint> {
    if context.json {
        let mut document = document.clone();
        document["schema"] = "tribunal.stop/1".into();
        documents::print(&document)?;
    } else {
        writeln!(stdout(), "{text}")?;
    }
    Ok(())
}
