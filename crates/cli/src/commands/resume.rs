//! `tribunal resume [RUN]`.

use tribunal_core::{ids::RunId, view::Phase};

use super::runs;
use crate::{
    complaint::Complaint,
    context::{Context, find_run},
    running::{Job, execute},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one that can go on
    run: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let nothing = || {
        Complaint::usage("there is no run here that could go on")
            .todo("tribunal runs")
            .todo("start a new one: tribunal review FILE")
    };
    let store = context.journal(&project)?.ok_or_else(nothing)?;
    let run = match &arguments.run {
        Some(said) => find_run(&store, said)?,
        None => last_that_can(&runs::all(&store, &project)?).ok_or_else(nothing)?,
    };
    drop(store);
    execute(context, project, Job::Resume(run)).map(|ended| ended.exit)
}

fn last_that_can(all: &[(tribunal_core::view::RunView, bool)]) -> Option<RunId> {
    let mut waiting =
        all.iter().rev().filter(|(view, live)| !live && !matches!(view.phase, Phase::Finished(_)));
    waiting.next().and_then(|(view, _)| view.run.clone())
}
