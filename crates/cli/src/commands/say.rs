//! `tribunal say RUN TEXT`: adds a remark to the agents' next briefs.

use std::io::{Write, stdout};

use serde_json::json;
use tribunal_core::{
    effect::{Remark, Request},
    view::{Phase, RunView},
};
use tribunal_report::escaped;
use tribunal_runner::Runner;
use tribunal_store::Store;

use crate::{complaint::Complaint, context::Context, documents};

/// A brief has little room beside the subject; a longer text belongs into a file of the project.
const LONGEST: usize = 2000;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// What to tell its agents
    #[arg(required = true)]
    text: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let (store, run) = context.run_meant(&project, Some(&arguments.run))?;
    let text = arguments.text.join(" ").trim().to_string();
    check(&text)?;
    // A session must not influence the agents that judge its own work.
    crate::agent_session::not_the_judged_one(&store, &run, context)?;
    let view = RunView::of(&store.entries(&run, 0)?);
    if let Phase::Finished(_) = view.phase {
        return Err(Complaint::usage(format!("run {run} has ended; nobody reads it any more"))
            .todo("start a new one: tribunal review FILE"));
    }
    drop(store);
    // Secrets are masked before anything is stored.
    let text = context.masker().mask(&text).into_owned();
    // The request waits in the inbox of the run, whether a process works on it now or later.
    Store::open(&project.home())?.request(&run, &Request::Say(Remark::new(text.clone())))?;
    let live = Runner::is_live(&project, &run);
    if context.json {
        // The masked text is echoed, so that the user sees what agents will really get.
        documents::print(&json!({ "schema": "tribunal.say/1", "run": run, "said": text, "running": live }))?;
    } else if live {
        writeln!(stdout(), "run {} will tell its agents from the next brief on", escaped(run.as_str()))?;
    } else {
        let resume = format!("{} resume {run}", context.answers.program);
        let text = format!("kept for run {run}; its agents are told from the next brief on: {resume}");
        writeln!(stdout(), "{}", escaped(&text))?;
    }
    Ok(0)
}

fn check(text: &str) -> Result<(), Complaint> {
    if text.is_empty() {
        return Err(
            Complaint::usage("there is nothing to say").todo("tribunal say RUN \"what they should know\"")
        );
    }
    fits_a_brief(text)
}

/// Checks a text that goes into a brief. Notes of answers are checked, too, since they reach agents in the same way.
pub(super) fn fits_a_brief(text: &str) -> Result<(), Complaint> {
    if text.contains('\0') {
        return Err(Complaint::usage("the text contains a NUL character"));
    }
    if text.chars().count() > LONGEST {
        return Err(Complaint::usage(format!("that is longer than {LONGEST} characters"))
            .why("It goes into every brief from here on, beside the subject.")
            .todo("put it into a file of the project and name that file"));
    }
    Ok(())
}
