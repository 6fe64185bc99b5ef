//! `tribunal resume [RUN]`.

use std::{
    io::{Write, stderr},
    path::Path,
};

use tribunal_core::{
    ids::RunId,
    settings::Settings,
    view::{Phase, RunView},
};
use tribunal_runner::Runner;
use tribunal_store::Store;

use super::runs;
use crate::{
    complaint::Complaint,
    context::{Context, find_run},
    detach::detach,
    running::{Job, execute},
    settings::{Wishes, resolve},
    view::Progress,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one that can go on
    run: Option<String>,
    /// Take in what changed in the settings since the run began; else it goes on with those it has
    #[arg(long)]
    reload: bool,
    /// With --reload: an agent of the settings, instead of those under `use`
    #[arg(long, requires = "reload")]
    agent: Option<String>,
    /// Run on without the terminal
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    progress: Progress,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let run = match (context.journal(&project)?, &arguments.run) {
        (Some(store), Some(said)) => Some(find_run(&store, said)?),
        (Some(store), None) => last_that_can(&runs::all(&store, &project)?),
        (None, Some(said)) => {
            return Err(Complaint::usage(format!("there is no run {said}: this project has none yet"))
                .todo("start one: tribunal review FILE"));
        }
        (None, None) => None,
    };
    let Some(run) = run else {
        writeln!(stderr(), "[i] nothing waits to go on; all runs have ended: tribunal runs")?;
        return Ok(0);
    };
    let store = Store::open_read_only(&project.home())?;
    let view = RunView::of(&store.entries(&run, 0)?);
    for problem in Runner::unusable_answers(&project, &view) {
        writeln!(stderr(), "[W] an answer cannot be used and stays where it is: {problem}")?;
    }
    drop(store);
    let changed = match (arguments.reload, &view.settings) {
        (true, Some(pinned)) => {
            Some(Box::new(reload(project.root(), pinned, arguments.agent.clone(), context)?))
        }
        _ => None,
    };
    if arguments.detach {
        return detach(context, &project);
    }
    execute(context, project, Job::Resume(run, changed), arguments.progress.mode).map(|ended| ended.exit)
}

/// Agents, checks, limits and task settings from the file; what was chosen when the run began stays chosen.
fn reload(
    root: &Path,
    pinned: &Settings,
    agent: Option<String>,
    context: &Context,
) -> Result<Settings, Complaint> {
    let wishes = Wishes {
        tier: Some(pinned.tier),
        level: pinned.level,
        goal: Some(pinned.goal),
        agent,
        no_fix: !pinned.fix,
        paced: context.interactive && !context.json,
    };
    let mut settings = resolve(root, pinned.subject.clone(), &wishes)?;
    // The tracker and the open questions stay where they are.
    settings.reviews.clone_from(&pinned.reviews);
    Ok(settings)
}

fn last_that_can(all: &[(RunView, bool)]) -> Option<RunId> {
    let unfinished = || all.iter().rev().filter(|(view, _)| !matches!(view.phase, Phase::Finished(_)));
    // One that seems to be worked on may only just have been killed: resuming it finds out, and says so if not.
    unfinished()
        .find(|(_, live)| !live)
        .or_else(|| unfinished().next())
        .and_then(|(view, _)| view.run.clone())
}
