//! Lets an agent do a task: workspace, prompt, process, answer, patch. [`agent_result`] reads what the process left behind.

mod read;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tribunal_agents::{
    answer::Wanted,
    driver::{DrivenAgent, Order, Talk},
    prompt::{self, Material},
};
use tribunal_core::{
    brief::{Task, Workplace},
    client::Job,
    effect::AskOutcome,
    fault::{Fault, FaultKind},
    ids::{Hash, Key},
    limits::Usage,
    progress::Progress,
    settings::{AgentSpec, DriverSpec},
    stamp::Stamp,
    subject::Subject,
};
use tribunal_supervise::{Command, Deadlines, Ended, How, StartError};

use super::{Performed, World, difference, freeze, wall_ms, world_fault};
use crate::{
    copies::{Copy, Source, Watch},
    files,
    subject::{LIMIT, is_plain},
};

/// The longest line that is kept of what an agent prints while it works.
const LONGEST_LINE: usize = 1 << 20;

/// The name of the directory in a task's directory that holds the files its client is pointed at.
const BESIDE: &str = "beside";

/// Lets an agent do a task. Returns `None` if the user ended it.
pub(super) async fn perform(
    world: Arc<World>,
    key: Key,
    task: Task,
    lost: u32,
) -> Option<Performed<AskOutcome>> {
    let Some(agent) = world.settings.agent(&task.agent) else {
        return Some(failed(world_fault(format!("no agent `{}` is set", task.agent))));
    };
    // A journal may name a client that this build does not have. No other agent is asked in its place.
    let agent = match DrivenAgent::new(agent.clone()) {
        Ok(agent) => agent,
        Err(unknown) => return Some(failed(world_fault(format!("agent `{}`: {unknown}", task.agent)))),
    };
    // Only clients of vendors count against the hourly limit; scripts and replays cost nothing.
    if agent.client().is_some() {
        turn(&world, &key).await?;
    }
    // The permit comes before anything else: the workspace is created, and the time limit starts, when the agent may start.
    let permit = world.permit().await?;
    let prepared = {
        let (world, key, task) = (world.clone(), key.clone(), task.clone());
        tokio::task::spawn_blocking(move || prepare(&world, &key, &task)).await
    };
    let Prepared { bench, text, criteria, template } = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(problem)) => return Some(failed(world_fault(problem))),
        Err(panicked) => return Some(failed(world_fault(panicked.to_string()))),
    };
    // A continued conversation has the subject already, so the agent gets only what is new.
    let rendered = match task.session {
        Some(_) => prompt::follow_up(&task.brief),
        None => {
            prompt::render(&task.brief, Material { text: &text, criteria: &criteria }, template.as_deref())
        }
    };
    let prompt = match rendered {
        Ok(prompt) => prompt,
        Err(problem) => {
            let file = prompt::file_name(task.brief.role);
            let role = task.brief.role;
            return Some(failed(world_fault(format!("no prompt for the {role} ({file}): {problem}"))));
        }
    };
    let prompt_bytes = prompt.len();
    // The agent gets the prompt as it is; only the recorded copy is masked.
    let masked_prompt = world.masker.mask(&prompt).into_owned();
    let talk = talk(&task, lost);
    let call = Call { key: &key, task: &task, prompt, talk };
    let command = match command(&world, &agent, &bench.copy.tree(), call) {
        Ok(command) => command,
        Err(cause) => return Some(failed(world_fault(format!("no files for the agent: {cause}")))),
    };
    let ended = tribunal_supervise::run(command).await;
    // The permit is returned before the output is read, so that the next agent starts meanwhile.
    drop(permit);
    let performed = match ended {
        Err(cause) => {
            return Some(failed(cannot_start(&agent.spec, &cause)));
        }
        // The user stopped it, so it counts as never finished.
        Ok(Ended { how: How::Stopped, .. }) => return None,
        Ok(ended) => {
            let world = world.clone();
            let read = move || {
                let asked = read::Asked { agent: &agent, task: &task, prompt_bytes, lost };
                read::read(&world, asked, &bench, ended)
            };
            match tokio::task::spawn_blocking(read).await {
                Ok(performed) => performed,
                Err(panicked) => return Some(failed(world_fault(panicked.to_string()))),
            }
        }
    };
    // Every unfinished attempt must have read the prompt at least once.
    let read_before = Usage::estimate(prompt_bytes.saturating_mul(lost as usize), 0);
    Some(with_prompt(charged(performed, lost, read_before), masked_prompt))
}

/// Waits until one more call of this hour is free. Returns `None` if the user wants to stop.
async fn turn(world: &Arc<World>, key: &Key) -> Option<()> {
    let Some(rate) = world.shared.rate.clone() else { return Some(()) };
    let tell = |text: String| {
        let _ = world.progress.send(Progress { key: key.clone(), text });
    };
    let per_hour = rate.per_hour;
    let booked = tokio::task::spawn_blocking(move || rate.book(wall_ms())).await;
    let at_ms = match booked {
        Ok(Ok(at_ms)) => at_ms,
        Ok(Err(cause)) => {
            // A counter that cannot be read must not block the run; the user learns about it.
            tell(format!("the calls of this hour cannot be counted: {cause}"));
            return Some(());
        }
        Err(_) => return Some(()),
    };
    if at_ms > wall_ms() {
        let until = Stamp { wall_ms: at_ms, awake_ms: 0 }.utc();
        tell(format!(
            "{per_hour} calls of this hour are used up (limits.calls_per_hour); waits until {until} UTC"
        ));
    }
    world.until(at_ms).await
}

fn failed(fault: Fault) -> Performed<AskOutcome> {
    AskOutcome::from(fault).into()
}

/// Adds what earlier, unfinished attempts must have cost at least.
fn charged(mut performed: Performed<AskOutcome>, lost: u32, usage: Usage) -> Performed<AskOutcome> {
    if lost > 0 {
        match &mut performed.reply {
            AskOutcome::Answered(reply) => reply.usage = reply.usage.plus(usage),
            AskOutcome::Failed(failed) => failed.usage = failed.usage.plus(usage),
        }
    }
    performed
}

/// Where an agent works, and the user's tree as it was when the agent began.
struct Bench {
    copy: Copy,
    watch: Watch,
}

struct Prepared {
    bench: Bench,
    /// The text of the subject in the workspace.
    text: String,
    /// The acceptance criteria that the subject has to meet.
    criteria: Vec<String>,
    /// The project's own prompt template for the role.
    template: Option<String>,
}

fn prepare(world: &World, key: &Key, task: &Task) -> Result<Prepared, String> {
    let subject = &task.brief.subject;
    let copy = match &task.place {
        Workplace::Frozen { by } => {
            let copy = Copy::at(world.project.desk(&world.run, by));
            // A reviewer that wrote into the shared workspace must not change what the next one reads.
            copy.restore().map_err(|cause| format!("the frozen copy: {cause}"))?;
            copy
        }
        Workplace::Private => {
            // A private workspace gets no git: a `git reset` in it would become part of the patch.
            let copy = next_attempt(world.project.desk(&world.run, key));
            let made = private(world, &copy, subject).and_then(|()| copy.forget_git());
            made.map_err(|cause| format!("no private copy: {cause}"))?;
            copy
        }
    };
    if !copy.is_complete() {
        return Err(format!("the copy {} is gone", copy.folder().display()));
    }
    let text = text(&copy, subject).map_err(|cause| format!("the copy of {}: {cause}", subject.title()))?;
    let template = world.project.template(&prompt::file_name(task.brief.role))?;
    // From here on edits of the user's tree count as made while the agent worked.
    let watch =
        copy.watch(world.project.root()).map_err(|cause| format!("the copy cannot be read: {cause}"))?;
    // The acceptance criteria are optional: a story that cannot be read never makes a task fail.
    Ok(Prepared { criteria: criteria(&copy, world, subject), bench: Bench { copy, watch }, text, template })
}

fn private(world: &World, copy: &Copy, subject: &Subject) -> io::Result<()> {
    if let Some(change) = subject.change() {
        freeze::make(world, copy, change)?;
        let diff = difference::between(world, copy, change)?;
        return fs::write(copy.folder().join(difference::NAME), diff);
    }
    let files: Vec<String> = subject.files().into_iter().map(String::from).collect();
    let root = world.project.root();
    copy.make(&Source { root, files: &files, tree: None, seeds: &world.seeds() }).map(drop)
}

/// Reads the story's acceptance criteria from the workspace; a story that git ignores is read from the project.
fn criteria(copy: &Copy, world: &World, subject: &Subject) -> Vec<String> {
    let Some(story) = subject.change().and_then(|change| change.story.as_ref()) else { return Vec::new() };
    if !is_plain(story) {
        return Vec::new();
    }
    // The path comes from the journal, so it could lead to a link, a device or a huge file by now. Those are not read.
    let plain =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= LIMIT);
    let read =
        |folder: &Path| Some(folder.join(story)).filter(|path| plain(path)).map(fs::read_to_string)?.ok();
    let text = read(&copy.tree()).or_else(|| read(world.project.root()));
    text.map(|text| tribunal_bmad::criteria(&text)).unwrap_or_default()
}

/// Reads what the prompt shows: the text of the one file, or the diff of the change.
fn text(copy: &Copy, subject: &Subject) -> io::Result<String> {
    let Some(path) = subject.path() else { return difference::kept(copy) };
    let bytes = copy.base(path)?.ok_or_else(|| io::Error::other(format!("{path} is gone")))?;
    difference::text(path, bytes)
}

/// Returns a new directory for every attempt, so that an agent of an earlier process that still writes cannot disturb this one.
fn next_attempt(desk: PathBuf) -> Copy {
    let mut number = 1;
    while desk.join(number.to_string()).exists() {
        number += 1;
    }
    Copy::at(desk.join(number.to_string()))
}

/// A single call of an agent.
struct Call<'c> {
    key: &'c Key,
    task: &'c Task,
    prompt: String,
    talk: Talk<'c>,
}

fn command(world: &World, agent: &DrivenAgent, folder: &Path, call: Call<'_>) -> io::Result<Command> {
    let Call { key, task, prompt, talk } = call;
    let role = task.brief.role;
    let order = Order {
        key,
        prompt,
        wanted: Wanted::of(role),
        job: Job::of(role),
        size: task.size,
        budget: task.budget,
        beside: &world.project.desk(&world.run, key).join(BESIDE),
        talk,
    };
    let launch = agent.launch(order, &world.at);
    for (path, text) in &launch.files {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        // A client's settings may contain credentials.
        files::write_privately(path, text.as_bytes())?;
    }
    let mut command = world.command(launch.program, launch.args, folder.to_path_buf());
    command.env.extend(launch.env.into_iter().map(|(name, value)| (name, value.into())));
    command.without.extend(launch.without);
    command.input = launch.input.into_bytes();
    command.deadlines = Deadlines {
        total: Duration::from_millis(task.timeout_ms),
        idle: Duration::from_millis(world.settings.tasks.idle_timeout_ms),
    };
    // Output is watched only for agents that report progress; others print an answer at the end.
    if agent.shows_progress() {
        command.output.seen = Some(Box::new(watcher(world, agent, key, folder)));
    }
    Ok(command)
}

/// Chooses how to continue a conversation. One that an earlier process had begun to continue may have moved on, so it is
/// branched and left as it is.
fn talk(task: &Task, lost: u32) -> Talk<'_> {
    match &task.session {
        None => Talk::New,
        Some(session) if lost > 0 => Talk::Branch(session),
        Some(session) => Talk::GoOn(session),
    }
}

/// Passes on the agent's progress messages line by line, masked also across the borders of chunks.
fn watcher(
    world: &World,
    agent: &DrivenAgent,
    key: &Key,
    folder: &Path,
) -> impl Fn(&[u8]) + Send + Sync + use<> {
    // The path of a workspace is an internal detail, so messages show paths relative to it.
    let folder = format!("{}/", folder.display());
    let sender = world.progress.clone();
    let (agent, key) = (agent.clone(), key.clone());
    let state = Mutex::new((world.masker.stream(), String::new()));
    move |bytes| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, rest) = &mut *state;
        // A character cut in two by the border of a chunk is lost here; progress is only shown, never evaluated.
        let fresh = stream.push(&String::from_utf8_lossy(bytes));
        let end = fresh.rfind('\n').map(|end| rest.len() + end);
        rest.push_str(&fresh);
        let Some(end) = end else {
            // No progress message is this long, so the line is dropped instead of growing without limit.
            if rest.len() > LONGEST_LINE {
                rest.clear();
            }
            return;
        };
        let told = rest[..end].lines().flat_map(|line| agent.events(line));
        for text in told.filter_map(|event| event.shown()) {
            let text = text.replace(&folder, "");
            let _ = sender.send(Progress { key: key.clone(), text });
        }
        rest.drain(..=end);
    }
}

fn cannot_start(agent: &AgentSpec, cause: &StartError) -> Fault {
    let kind = match cause {
        StartError::NotFound { .. } => FaultKind::NotInstalled,
        StartError::NotExecutable { .. } | StartError::NoRoom { .. } | StartError::Other { .. } => {
            FaultKind::CannotStart
        }
    };
    // A relative program is looked up in the workspace, where a built binary that git ignores is missing.
    let relative = match &agent.driver {
        DriverSpec::Command { argv } => argv.first().is_some_and(|p| p.contains('/') && !p.starts_with('/')),
        DriverSpec::Replay { .. } | DriverSpec::Client(_) => false,
    };
    let hint = if relative { " (looked up in a private copy, which has no ignored files)" } else { "" };
    Fault::new(kind, format!("agent `{}`: {cause}{hint}", agent.name))
}

fn with_prompt(mut performed: Performed<AskOutcome>, prompt: String) -> Performed<AskOutcome> {
    let hash = Hash::of(prompt.as_bytes());
    performed.blobs.push(prompt.into_bytes());
    match &mut performed.reply {
        AskOutcome::Answered(reply) => reply.prompt = hash,
        AskOutcome::Failed(failed) => failed.prompt = Some(hash),
    }
    performed
}
