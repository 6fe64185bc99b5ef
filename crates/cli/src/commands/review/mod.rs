//! `tribunal review PATH…`, and `tribunal review --diff RANGE`: checks everything first, then starts one or more
//! runs.

mod change;
mod plan;
mod story;

use std::{
    collections::BTreeSet,
    io::{Write, stderr},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use tribunal_agents::{clients::with_sessions, prompt};
use tribunal_core::{
    level::Role,
    settings::Settings,
    subject::Subject,
    text::{find_section, sections},
    view::Phase,
};
use tribunal_report::{Mode, escaped, tables::Standing};
use tribunal_runner::{Project, session, subject};

use super::{loops, runs};
use crate::{
    agent_session,
    clients::listed,
    complaint::Complaint,
    context::Context,
    detach::{Following, detach},
    probe::require_versions,
    running::{Job, execute},
    settings::{Resolved, Share, Wishes, nearest, resolve},
    several::{Work, execute_several},
    trust,
    view::Progress,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files to review, several are several runs; beside a change: only what is at or below these
    #[arg(required_unless_present_any = ["change", "story"])]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    change: change::Choice,
    /// Only the part under this heading
    #[arg(long, conflicts_with = "change")]
    section: Option<String>,
    /// How heavy the process is: 0 quick fix to 4 enterprise
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=4))]
    tier: Option<u8>,
    /// How big the panel is; else it follows from the tier
    #[arg(long, value_enum)]
    level: Option<LevelName>,
    /// When it is good
    #[arg(long, value_enum)]
    goal: Option<GoalName>,
    /// An agent of the settings
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    fixing: Fixing,
    /// Any setting, for this time only: --set limits.max_cost=2.50
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Show panel, agents, limits and an estimate; start nothing
    #[arg(long)]
    dry_run: bool,
    /// Run on without the terminal
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,
    #[command(flatten)]
    working: Working,
}

/// How runs work, and what is shown of them.
#[derive(Debug, clap::Args)]
struct Working {
    /// Runs that work at the same time, where there are several; 1: one after the other
    #[arg(long, value_name = "N")]
    jobs: Option<u64>,
    /// Every task in a fresh session of its agent
    #[arg(long)]
    no_continue: bool,
    #[command(flatten)]
    progress: Progress,
}

/// What happens to findings.
#[derive(Debug, clap::Args)]
struct Fixing {
    /// Review only
    #[arg(long)]
    no_fix: bool,
    /// The session this is typed in repairs what is found, in the files themselves, and is held to it
    #[arg(long, conflicts_with_all = ["no_fix", "approve"])]
    in_session: bool,
    /// With --in-session: the session, as its client names it
    #[arg(long, value_name = "ID", requires = "in_session")]
    session: Option<String>,
    /// Whether you see each patch before it lands
    #[arg(long, value_enum, conflicts_with = "no_fix")]
    approve: Option<ApproveName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LevelName {
    Minimal,
    Dual,
    Full,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GoalName {
    ZeroOpen,
    CriticalOnly,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ApproveName {
    Never,
    Each,
}

pub(super) use story::file as story_file;

/// A run that is ready to start.
struct Prepared {
    project: Project,
    resolved: Resolved,
    material: Material,
}

/// What reviewers will read.
enum Material {
    Text(String),
    /// A diff of this many bytes.
    Diff(u64),
}

pub(crate) fn run(arguments: Arguments, context: &Context) -> Result<u8, Complaint> {
    // Flags become settings of the highest layer, so that they are validated like any other setting.
    let wishes = Wishes::from_environment(context)
        .flag("--tier", "tier", arguments.tier.map(|tier| tier.to_string()))
        .flag("--level", "level", arguments.level.and_then(word))
        .flag("--goal", "goal", arguments.goal.and_then(word))
        .flag("--agent", "agents.use", arguments.agent)
        .flag("--approve", "approve", arguments.fixing.approve.and_then(word))
        .flag("--no-fix", "fix", arguments.fixing.no_fix.then(|| "false".into()))
        .flag("--no-continue", "agents.continue", arguments.working.no_continue.then(|| "false".into()))
        .flag("--jobs", "jobs", arguments.working.jobs.map(|jobs| jobs.to_string()))
        .set(&arguments.set)?;
    // Every subject is checked before the first run starts: a mistake in the last one must not cost a review of the
    // first.
    let jobs = match (arguments.change.wanted(&arguments.paths, context)?, arguments.change.story()) {
        (Some(wanted), _) => change::prepare(&wanted, &wishes, context)?,
        (None, Some(story)) => story::prepare(story, &arguments.paths, &wishes, context)?,
        (None, None) => {
            let section = arguments.section.as_deref();
            arguments
                .paths
                .iter()
                .map(|path| prepare(path, section, &wishes, context))
                .collect::<Result<_, _>>()?
        }
    };
    // Duplicates are removed before limits are shared out among the runs.
    let mut jobs = once_each(jobs)?;
    let session = session(&arguments.fixing, &mut jobs, context)?;
    tell(jobs.iter().flat_map(|job| &job.resolved.notes))?;
    point_out(jobs.iter().flat_map(|job| &job.resolved.warnings))?;
    // The strictest share of all projects holds. Without a single job there is nothing to do.
    let Some(share) = jobs.iter().map(|job| job.resolved.share).reduce(Share::least) else { return Ok(0) };
    let share = share.among(jobs.len());
    if arguments.dry_run {
        for Prepared { resolved, material, .. } in &jobs {
            plan::show(&resolved.settings, material, share, context)?;
        }
        return plan::show_share(jobs.len(), share, context);
    }
    // Trust comes after the dry run, which starts nothing, and before the first process.
    for Prepared { project, resolved, .. } in &jobs {
        trust::require(context, project.root(), &resolved.items)?;
        trust::remember(context, project.root(), &resolved.settings);
    }
    require_versions(jobs.iter().map(|job| (job.project.root(), &job.resolved.settings)))?;
    // The detached process gets the same command line and checks it again; errors are seen here, before it starts.
    if let (true, Some(first)) = (arguments.detach, jobs.first()) {
        let following = Following { runs: jobs.len() - 1, at_once: share.jobs.get() };
        return detach(context, &first.project, following);
    }
    start(jobs, share, Watching { mode: arguments.working.progress.mode, session }, context)
}

/// Chooses the session that repairs what is found, if one is to do so.
fn session(fixing: &Fixing, jobs: &mut [Prepared], context: &Context) -> Result<Option<String>, Complaint> {
    if !fixing.in_session {
        return Ok(None);
    }
    // The state file has room for one piece of work only.
    let [job] = jobs else {
        return Err(Complaint::usage("a session repairs one subject at a time")
            .why(format!("{} were named.", jobs.len()))
            .todo("one after the other: tribunal review --in-session FILE"));
    };
    let said = fixing.session.clone().or_else(|| agent_session::current(context));
    let session = said.ok_or_else(|| {
        Complaint::usage("there is no session that could repair: this was not typed in one")
            .why(format!(
                "{} tell the commands they run which session they are in.",
                listed(&with_sessions(), "and")
            ))
            .todo("let the session run it")
            .todo("or name the session: --session ID")
            .todo("or let fixers repair: leave --in-session out")
    })?;
    job.resolved.settings.tasks.writing.in_session = true;
    if !loops::is_installed(&job.project) {
        writeln!(stderr(), "[W] no stop hook of Tribunal is set up here, so nobody is held: tribunal init")?;
    }
    // A stale or finished binding is moved away; a live one of another session is an error.
    session::make_room(&job.project, &session, loops::stale_after(&job.project)?)?;
    Ok(Some(session))
}

/// How the runs are shown, and which session repairs.
struct Watching {
    /// None if the project's settings decide.
    mode: Option<Mode>,
    /// The session that repairs what is found; `None` if fixers do.
    session: Option<String>,
}

fn start(jobs: Vec<Prepared>, share: Share, watching: Watching, context: &Context) -> Result<u8, Complaint> {
    let Watching { mode, session } = watching;
    let mut all = Vec::new();
    for Prepared { project, resolved: Resolved { settings, progress, .. }, .. } in jobs {
        point_out_unfinished(context, &project, &settings)?;
        all.push(Work { project, settings, mode: mode.unwrap_or(progress) });
    }
    // Several runs share one screen: their lines are labelled, and a closing line sums up each of them.
    if all.len() > 1 {
        return execute_several(context, all, share);
    }
    let Some(Work { project, settings, mode }) = all.pop() else { return Ok(0) };
    let bound = session.map(|session| agent_session::of_review(&session, &settings));
    let job = Job::Start(Box::new(settings)).bound(bound);
    execute(context, project, job, mode, share).map(|ended| ended.exit)
}

/// Removes duplicates. Two runs of the same subject at the same time would block each other.
fn once_each(jobs: Vec<Prepared>) -> Result<Vec<Prepared>, Complaint> {
    let mut once: Vec<Prepared> = Vec::new();
    for job in jobs {
        let subject = &job.resolved.settings.subject;
        let same = |other: &Prepared| {
            other.project.root() == job.project.root() && other.resolved.settings.subject == *subject
        };
        if once.iter().any(same) {
            writeln!(
                stderr(),
                "[i] {} is named more than once; it is reviewed once",
                escaped(&subject.title())
            )?;
        } else {
            once.push(job);
        }
    }
    Ok(once)
}

fn prepare(
    path: &Path,
    section: Option<&str>,
    wishes: &Wishes,
    context: &Context,
) -> Result<Prepared, Complaint> {
    let full = context.path(path);
    // The check comes before the project is looked for, so that a typing mistake is reported as such.
    if std::fs::symlink_metadata(&full).is_err() {
        return Err(subject::SubjectError::Missing { path: path.display().to_string() }.into());
    }
    let project = context.project_of(&full);
    let relative = subject::relative(project.root(), &full)?;
    let text = subject::load(project.root(), &relative)?;
    let section = section.map(|title| check_section(&relative, &text, title)).transpose()?;
    let resolved = resolve(project.root(), Subject::at(&relative, section), wishes)?;
    check_templates(&project)?;
    Ok(Prepared { project, resolved, material: Material::Text(text) })
}

/// Checks all of the project's own prompts, since it is not known yet which roles a run will need.
fn check_templates(project: &Project) -> Result<(), Complaint> {
    for role in Role::ALL {
        let name = prompt::file_name(role);
        let unusable = |problem: String| {
            Complaint::usage(format!(".tribunal/templates/{name} cannot be used: {problem}"))
                .why(format!("It takes the place of the {role}'s built-in prompt."))
                .todo("put in what is missing")
                .todo(format!(
                    "or use the built-in prompt: mv .tribunal/templates/{name} .tribunal/templates/{name}.off"
                ))
        };
        if let Some(template) = project.template(&name).map_err(unusable)? {
            prompt::check(role, &template).map_err(|problem| unusable(problem.to_string()))?;
        }
    }
    Ok(())
}

/// Prints warnings before something starts, each of them once.
pub(super) fn point_out<'a>(warnings: impl Iterator<Item = &'a String>) -> Result<(), Complaint> {
    let distinct: BTreeSet<&String> = warnings.collect();
    for warning in distinct {
        writeln!(stderr(), "[W] {}", escaped(warning))?;
    }
    Ok(())
}

/// Prints notes before something starts, each of them once.
pub(super) fn tell<'a>(notes: impl Iterator<Item = &'a String>) -> Result<(), Complaint> {
    let distinct: BTreeSet<&String> = notes.collect();
    for note in distinct {
        writeln!(stderr(), "[i] {}", escaped(note))?;
    }
    Ok(())
}

/// Returns the name by which settings know a value of a flag.
fn word(name: impl ValueEnum) -> Option<String> {
    name.to_possible_value().map(|value| value.get_name().to_string())
}

/// Points out a stopped run of the same subject. The user may want to resume it, but asked for a new one, which
/// starts anyway.
fn point_out_unfinished(context: &Context, project: &Project, settings: &Settings) -> Result<(), Complaint> {
    let Some(store) = context.journal(project)? else { return Ok(()) };
    for (view, live) in runs::all(&store, project)? {
        let subject = view.settings.as_ref().map(|settings| &settings.subject);
        let same = subject.is_some_and(|subject| is_same(subject, &settings.subject));
        // A live run is not mentioned: starting a second one fails with an error of its own.
        let unfinished = !live && !matches!(view.phase, Phase::Finished(_));
        if let Some(run) = view.run.as_ref().filter(|_| unfinished && same) {
            let what = if settings.subject.change().is_some() { "change" } else { "file" };
            let state = Standing { view: &view, live }.word();
            writeln!(
                stderr(),
                "[i] an earlier run on this {what} is {state}; to go on with it: tribunal resume {}",
                escaped(run.as_str())
            )?;
        }
    }
    Ok(())
}

/// Compares subjects. A change stays the same while its files move, as long as its name and base are the same.
fn is_same(one: &Subject, other: &Subject) -> bool {
    match (one.change(), other.change()) {
        (Some(one), Some(other)) => one.range == other.range && one.base == other.base,
        _ => one == other,
    }
}

fn check_section(path: &str, text: &str, title: &str) -> Result<String, Complaint> {
    if let Some(section) = find_section(text, title) {
        return Ok(section.title);
    }
    let all = sections(text);
    let titles: Vec<&str> = all.iter().map(|section| section.title.as_str()).collect();
    let complaint = Complaint::usage(format!("{path} has no section `{title}`"));
    // A similar heading is suggested, and all of them are listed, since titles may differ a lot.
    let complaint = match nearest(title, &titles) {
        Some(near) => complaint.todo(format!("did you mean `{near}`?")),
        None => complaint,
    };
    Err(if titles.is_empty() {
        complaint.why("It has no headings at all.")
    } else {
        complaint.why(format!("Its headings: {}", titles.join(" · ")))
    })
}

#[cfg(test)]
mod tests {
    use tribunal_core::subject::{Change, Changed};

    use super::*;

    #[test]
    fn a_change_is_the_same_while_its_files_move_and_not_from_another_start() {
        let change = |range: &str, base: &str, path: &str| {
            let files = vec![Changed { path: path.into(), from: None }];
            let change = Change { range: range.into(), base: base.into(), files, ..Change::default() };
            Subject::Change(Box::new(change))
        };
        let one = change("work tree", "1", "a.rs");
        assert!(is_same(&one, &change("work tree", "1", "b.rs")));
        assert!(!is_same(&one, &change("work tree", "2", "a.rs")));
        assert!(!is_same(&one, &change("staged", "1", "a.rs")));
        assert!(!is_same(&one, &Subject::at("a.rs", None)));
        assert!(is_same(&Subject::at("a.rs", None), &Subject::at("a.rs", None)));
    }
}
