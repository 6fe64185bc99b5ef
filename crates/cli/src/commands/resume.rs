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
use tribunal_report::escaped;
use tribunal_runner::Runner;
use tribunal_store::Store;

use super::{
    review::{point_out, tell},
    runs,
};
use crate::{
    agent_session,
    complaint::Complaint,
    context::{Context, find_run},
    detach::{Following, detach},
    probe::require_versions,
    running::{Job, execute},
    settings::{Effective, Given, Resolved, Wishes, gather, of_the_person, person_s_items, resolve},
    trust,
    trust_item::Item,
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
    /// With --reload: any setting, for instance --set limits.max_cost=10
    #[arg(long, requires = "reload", value_name = "KEY=VALUE")]
    set: Vec<String>,
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
    if arguments.reload {
        agent_session::not_the_judged_one(&store, &run, context)?;
    }
    let view = RunView::of(&store.entries(&run, 0)?);
    for problem in Runner::unusable_answers(&project, &view) {
        writeln!(stderr(), "[W] an answer cannot be used and stays where it is: {}", escaped(&problem))?;
    }
    drop(store);
    let changed = match (arguments.reload, &view.settings) {
        (true, Some(pinned)) => Some(reload(project.root(), pinned, arguments, context)?),
        _ => None,
    };
    if !matches!(view.phase, Phase::Finished(_)) {
        let items = match (&changed, &view.settings) {
            (Some(changed), _) => changed.items.clone(),
            (None, Some(pinned)) => not_the_person_s(pinned)?,
            (None, None) => Vec::new(),
        };
        trust::require(context, project.root(), &items)?;
    }
    let changed = changed.map(|changed| Box::new(changed.settings));
    if !matches!(view.phase, Phase::Finished(_)) {
        let settings = changed.as_deref().or(view.settings.as_ref());
        require_versions(settings.map(|settings| (project.root(), settings)).into_iter())?;
    }
    if arguments.detach {
        return detach(context, &project, Following::default());
    }
    // A setting that cannot be read does not keep a run from going on.
    let all = gather(project.root(), &Given::from_environment()).unwrap_or_else(|_| Effective::defaults());
    let typed = all.typed();
    let mode = arguments.progress.mode.unwrap_or(typed.progress);
    // Whoever goes on with it in a session of its own has come back to repair.
    let bound = match (agent_session::current(context), &view.settings) {
        (Some(session), Some(settings)) => Some(agent_session::of_review(&session, settings)),
        _ => None,
    };
    let job = Job::Resume(run, changed).bound(bound);
    execute(context, project, job, mode, typed.share).map(|ended| ended.exit)
}

/// What a run was pinned to may have come with a clone; only what the person has set outside any project is surely theirs.
fn not_the_person_s(pinned: &Settings) -> Result<Vec<Item>, Complaint> {
    let mut items = Item::of(pinned);
    if !items.is_empty() {
        let own = person_s_items(&of_the_person(&Given::from_environment())?);
        items.retain(|item| !own.contains(&item.hash()));
    }
    Ok(items)
}

/// Agents, checks, limits and task settings as they are now; what was chosen when the run began stays chosen.
fn reload(
    root: &Path,
    pinned: &Settings,
    arguments: &Arguments,
    context: &Context,
) -> Result<Resolved, Complaint> {
    let begun = |path: &str| format!("the run's own {path}");
    let wishes = Wishes::from_environment(context)
        .flag(&begun("tier"), "tier", Some(pinned.tier.to_string()))
        .flag(&begun("level"), "level", pinned.level.map(|level| level.to_string()))
        .flag(&begun("goal"), "goal", Some(pinned.goal.to_string()))
        .flag(&begun("fix"), "fix", Some(pinned.fix.to_string()))
        .flag("--agent", "agents.use", arguments.agent.clone())
        .set(&arguments.set)?;
    let mut resolved = resolve(root, pinned.subject.clone(), &wishes)?;
    tell(resolved.notes.iter())?;
    point_out(resolved.warnings.iter())?;
    // The tracker and the open questions stay where they are.
    resolved.settings.reviews.clone_from(&pinned.reviews);
    resolved.settings.tasks.writing.in_session = pinned.tasks.writing.in_session;
    Ok(resolved)
}

fn last_that_can(all: &[(RunView, bool)]) -> Option<RunId> {
    let unfinished = || all.iter().rev().filter(|(view, _)| !matches!(view.phase, Phase::Finished(_)));
    // One that seems to be worked on may only just have been killed: resuming it finds out, and says so if not.
    unfinished()
        .find(|(_, live)| !live)
        .or_else(|| unfinished().next())
        .and_then(|(view, _)| view.run.clone())
}
