//! Letting an agent do a task: workplace, prompt, process, answer, patch. What the process left behind is read in [`read`].

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

/// Of what an agent prints while it works.
const LONGEST_LINE: usize = 1 << 20;

/// In a task's folder, for files that its client is pointed at.
const BESIDE: &str = "beside";

/// None: it was ended on the person's word.
pub(super) async fn perform(
    world: Arc<World>,
    key: Key,
    task: Task,
    lost: u32,
) -> Option<Performed<AskOutcome>> {
    let Some(agent) = world.settings.agent(&task.agent) else {
        return Some(failed(world_fault(format!("no agent `{}` is set", task.agent))));
    };
    // A journal may name a client that this build does not have: nobody else is asked in its place.
    let agent = match DrivenAgent::new(agent.clone()) {
        Ok(agent) => agent,
        Err(unknown) => return Some(failed(world_fault(format!("agent `{}`: {unknown}", task.agent)))),
    };
    if agent.client().is_some() {
        turn(&world, &key).await?;
    }
    // Before anything else: its copy is made, and its time begins, when it may start.
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
    let masked_prompt = world.masker.mask(&prompt).into_owned();
    let talk = talk(&task, lost);
    let call = Call { key: &key, task: &task, prompt, talk };
    let command = match command(&world, &agent, &bench.copy.tree(), call) {
        Ok(command) => command,
        Err(cause) => return Some(failed(world_fault(format!("no files for the agent: {cause}")))),
    };
    let ended = tribunal_supervise::run(command).await;
    drop(permit);
    let performed = match ended {
        Err(cause) => {
            return Some(failed(cannot_start(&agent.spec, &cause)));
        }
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
    let read_before = Usage::estimate(prompt_bytes.saturating_mul(lost as usize), 0);
    Some(with_prompt(charged(performed, lost, read_before), masked_prompt))
}

/// Waits until one more call of this hour is free. None: the person wants to stop.
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

/// Adds what earlier, unfinished tries must have cost at least.
fn charged(mut performed: Performed<AskOutcome>, lost: u32, usage: Usage) -> Performed<AskOutcome> {
    if lost > 0 {
        match &mut performed.reply {
            AskOutcome::Answered(reply) => reply.usage = reply.usage.plus(usage),
            AskOutcome::Failed(failed) => failed.usage = failed.usage.plus(usage),
        }
    }
    performed
}

/// Where an agent works, and the person's tree as it was when it began.
struct Bench {
    copy: Copy,
    watch: Watch,
}

struct Prepared {
    bench: Bench,
    /// The subject as it stands there.
    text: String,
    /// What it has to meet.
    criteria: Vec<String>,
    /// The project's own one for the role.
    template: Option<String>,
}

fn prepare(world: &World, key: &Key, task: &Task) -> Result<Prepared, String> {
    let subject = &task.brief.subject;
    let copy = match &task.place {
        Workplace::Frozen { by } => {
            let copy = Copy::at(world.project.desk(&world.run, by));
            // A reviewer that wrote into the shared copy must not change what the next one reads.
            copy.restore().map_err(|cause| format!("the frozen copy: {cause}"))?;
            copy
        }
        Workplace::Private => {
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
    let watch =
        copy.watch(world.project.root()).map_err(|cause| format!("the copy cannot be read: {cause}"))?;
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

/// The story's acceptance criteria, as the copy has it; a story that is ignored by git is not in there.
fn criteria(copy: &Copy, world: &World, subject: &Subject) -> Vec<String> {
    let Some(story) = subject.change().and_then(|change| change.story.as_ref()) else { return Vec::new() };
    if !is_plain(story) {
        return Vec::new();
    }
    // Whatever stands in its place now is not read.
    let plain =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= LIMIT);
    let read =
        |folder: &Path| Some(folder.join(story)).filter(|path| plain(path)).map(fs::read_to_string)?.ok();
    let text = read(&copy.tree()).or_else(|| read(world.project.root()));
    text.map(|text| tribunal_bmad::criteria(&text)).unwrap_or_default()
}

/// What the prompt shows: the one file's text, or the change's diff.
fn text(copy: &Copy, subject: &Subject) -> io::Result<String> {
    let Some(path) = subject.path() else { return difference::kept(copy) };
    let bytes = copy.base(path)?.ok_or_else(|| io::Error::other(format!("{path} is gone")))?;
    difference::text(path, bytes)
}

/// A new folder for every try: an agent of an earlier life that still writes cannot disturb this one.
fn next_attempt(desk: PathBuf) -> Copy {
    let mut number = 1;
    while desk.join(number.to_string()).exists() {
        number += 1;
    }
    Copy::at(desk.join(number.to_string()))
}

/// One call of an agent.
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
        // A client's settings may hold what signs it in.
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
    if agent.shows_progress() {
        command.output.seen = Some(Box::new(watcher(world, agent, key, folder)));
    }
    Ok(command)
}

/// A talk that an earlier life had begun to go on with may have moved on; it is left as it is.
fn talk(task: &Task, lost: u32) -> Talk<'_> {
    match &task.session {
        None => Talk::New,
        Some(session) if lost > 0 => Talk::Branch(session),
        Some(session) => Talk::GoOn(session),
    }
}

/// Passes on what the agent says it is doing, line by line, masked also across the borders of chunks.
fn watcher(
    world: &World,
    agent: &DrivenAgent,
    key: &Key,
    folder: &Path,
) -> impl Fn(&[u8]) + Send + Sync + use<> {
    // Where a copy lies is nobody's business.
    let folder = format!("{}/", folder.display());
    let sender = world.progress.clone();
    let (agent, key) = (agent.clone(), key.clone());
    let state = Mutex::new((world.masker.stream(), String::new()));
    move |bytes| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, rest) = &mut *state;
        // A character cut in two by a chunk's border is lost here; progress is only for looking at.
        let fresh = stream.push(&String::from_utf8_lossy(bytes));
        let end = fresh.rfind('\n').map(|end| rest.len() + end);
        rest.push_str(&fresh);
        let Some(end) = end else {
            // Nobody says what they are doing in a line this long.
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
