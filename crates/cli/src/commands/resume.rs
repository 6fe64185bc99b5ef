//! `tribunal resume [RUN]`: continues a run that was stopped, waits or died.

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
    // Nothing to resume is a good state, for instance in a script that resumes after every restart.
    let Some(run) = run else {
        writeln!(stderr(), "[i] nothing waits to go on; all runs have ended: tribunal runs")?;
        return Ok(0);
    };
    let store = Store::open_read_only(&project.home())?;
    // A session must not change the settings of the review that judges its own work.
    if arguments.reload {
        agent_session::not_the_judged_one(&store, &run, context)?;
    }
    let view = RunView::of(&store.entries(&run, 0)?);
    // A broken answer would otherwise be ignored without a word, and the run would ask the same again.
    for problem in Runner::unusable_answers(&project, &view) {
        writeln!(stderr(), "[W] an answer cannot be used and stays where it is: {}", escaped(&problem))?;
    }
    // The store is closed before the run opens it for writing.
    drop(store);
    let changed = match (arguments.reload, &view.settings) {
        (true, Some(pinned)) => Some(reload(project.root(), pinned, arguments, context)?),
        _ => None,
    };
    // A finished run starts no process, so there is nothing to trust.
    if !matches!(view.phase, Phase::Finished(_)) {
        let items = match (&changed, &view.settings) {
            (Some(changed), _) => changed.items.clone(),
            // Pinned settings may come from a cloned journal, so they need trust like the project's files.
            (None, Some(pinned)) => not_the_person_s(pinned)?,
            (None, None) => Vec::new(),
        };
        trust::require(context, project.root(), &items)?;
    }
    let changed = changed.map(|changed| Box::new(changed.settings));
    // A client may have been downgraded or removed since the run began.
    if !matches!(view.phase, Phase::Finished(_)) {
        let settings = changed.as_deref().or(view.settings.as_ref());
        require_versions(settings.map(|settings| (project.root(), settings)).into_iter())?;
    }
    if arguments.detach {
        return detach(context, &project, Following::default());
    }
    // The presentation is not worth failing for: unreadable settings are replaced by the defaults.
    let all = gather(project.root(), &Given::from_environment()).unwrap_or_else(|_| Effective::defaults());
    let typed = all.typed();
    let mode = arguments.progress.mode.unwrap_or(typed.progress);
    // A resume that is typed in a session means that this session wants to go on repairing.
    let bound = match (agent_session::current(context), &view.settings) {
        (Some(session), Some(settings)) => Some(agent_session::of_review(&session, settings)),
        _ => None,
    };
    let job = Job::Resume(run, changed).bound(bound);
    execute(context, project, job, mode, typed.share).map(|ended| ended.exit)
}

/// Finds the items of a run's pinned settings that may have come with a clone. Only what the user has set outside any
/// project surely comes from the user.
fn not_the_person_s(pinned: &Settings) -> Result<Vec<Item>, Complaint> {
    let mut items = Item::of(pinned);
    if !items.is_empty() {
        let own = person_s_items(&of_the_person(&Given::from_environment())?);
        items.retain(|item| !own.contains(&item.hash()));
    }
    Ok(items)
}

/// Resolves agents, checks, limits and task settings as they are now; choices made at the start of the run are kept.
fn reload(
    root: &Path,
    pinned: &Settings,
    arguments: &Arguments,
    context: &Context,
) -> Result<Resolved, Complaint> {
    // The pinned choices are passed like flags, which take precedence over every settings file.
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
    // The tracker and the open questions have to stay where they are.
    resolved.settings.reviews.clone_from(&pinned.reviews);
    resolved.settings.tasks.writing.in_session = pinned.tasks.writing.in_session;
    Ok(resolved)
}

fn last_that_can(all: &[(RunView, bool)]) -> Option<RunId> {
    let unfinished = || all.iter().rev().filter(|(view, _)| !matches!(view.phase, Phase::Finished(_)));
    // A run that seems live may just have been killed; resuming it finds out, and reports it if not.
    unfinished()
        .find(|(_, live)| !live)
        .or_else(|| unfinished().next())
        .and_then(|(view, _)| view.run.clone())
}
