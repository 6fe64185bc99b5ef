//! Letting an agent do a task: workplace, prompt, process, answer, patch.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tribunal_agents::{
    answer::{self, Wanted},
    driver,
    prompt::{self, Material},
};
use tribunal_core::{
    brief::{AgentReply, Patch, Task, Workplace},
    effect::Reply,
    ids::{Hash, Key},
    limits::Usage,
    loops::{Sameness, similar_outputs},
    progress::Progress,
    reason::{Fault, FaultKind},
    settings::{AgentSpec, DriverSpec},
    subject::Subject,
    text::cut,
};
use tribunal_store::Store;
use tribunal_supervise::{Command, Deadlines, Ended, How, StartError};

use super::{Performed, World, difference, freeze, strays, world_fault};
use crate::{
    copies::{Copy, Source, Watch, patch_hash},
    merging,
    subject::{LIMIT, is_plain},
};

/// Of what an agent prints while it works.
const LONGEST_LINE: usize = 1 << 20;

/// None: it was ended on the person's word.
pub(super) async fn perform(world: Arc<World>, key: Key, task: Task, lost: u32) -> Option<Performed> {
    let Some(agent) = world.settings.agent(&task.agent) else {
        return Some(world_fault(format!("no agent `{}` is set", task.agent)).into());
    };
    // Before anything else: its copy is made, and its time begins, when it may start.
    let permit = world.permit().await?;
    let prepared = {
        let (world, key, task) = (world.clone(), key.clone(), task.clone());
        tokio::task::spawn_blocking(move || prepare(&world, &key, &task)).await
    };
    let Prepared { bench, text, criteria, template } = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(problem)) => return Some(world_fault(problem).into()),
        Err(panicked) => return Some(world_fault(panicked.to_string()).into()),
    };
    let prompt =
        match prompt::render(&task.brief, Material { text: &text, criteria: &criteria }, template.as_deref())
        {
            Ok(prompt) => prompt,
            Err(problem) => {
                let file = prompt::file_name(task.brief.role);
                return Some(
                    world_fault(format!("no prompt for the {} ({file}): {problem}", task.brief.role)).into(),
                );
            }
        };
    let prompt_bytes = prompt.len();
    let masked_prompt = world.masker.mask(&prompt).into_owned();
    let command = command(&world, agent, (&key, &task), bench.copy.tree(), prompt);
    let ended = tribunal_supervise::run(command).await;
    drop(permit);
    let performed = match ended {
        Err(cause) => {
            let fault = cannot_start(agent, &cause);
            let usage = Default::default();
            return Some(
                Reply::Failed { fault, usage, output: None, prompt: None, strayed: Vec::new() }.into(),
            );
        }
        Ok(Ended { how: How::Stopped, .. }) => return None,
        Ok(ended) => {
            let (world, agent) = (world.clone(), agent.clone());
            let read = move || read(&world, &agent, (&task, prompt_bytes), &bench, ended);
            match tokio::task::spawn_blocking(read).await {
                Ok(performed) => performed,
                Err(panicked) => return Some(world_fault(panicked.to_string()).into()),
            }
        }
    };
    let read_before = Usage::estimate(prompt_bytes.saturating_mul(lost as usize), 0);
    Some(with_prompt(charged(performed, lost, read_before), masked_prompt))
}

/// Adds what earlier, unfinished tries must have cost at least.
fn charged(mut performed: Performed, lost: u32, usage: Usage) -> Performed {
    if lost > 0 {
        match &mut performed.reply {
            Reply::Agent(reply) => reply.usage = reply.usage.plus(usage),
            Reply::Failed { usage: own, .. } => *own = own.plus(usage),
            _ => {}
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

fn command(
    world: &World,
    agent: &AgentSpec,
    (key, task): (&Key, &Task),
    folder: PathBuf,
    prompt: String,
) -> Command {
    let launch = driver::launch(&agent.driver, key, &world.at);
    let mut command = world.command(launch.program, launch.args, folder);
    command.env.extend(launch.env.into_iter().map(|(name, value)| (name, value.into())));
    command.input = prompt.into_bytes();
    command.deadlines = Deadlines {
        total: Duration::from_millis(task.timeout_ms),
        idle: Duration::from_millis(world.settings.tasks.idle_timeout_ms),
    };
    if driver::shows_progress(&agent.driver) {
        command.output.seen = Some(Box::new(watcher(world, agent, key)));
    }
    command
}

/// Passes on what the agent says it is doing, line by line, masked also across the borders of chunks.
fn watcher(world: &World, agent: &AgentSpec, key: &Key) -> impl Fn(&[u8]) + Send + Sync + use<> {
    let sender = world.progress.clone();
    let (driver, key) = (agent.driver.clone(), key.clone());
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
        for text in rest[..end].lines().filter_map(|line| driver::progress(&driver, line)) {
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
        DriverSpec::Replay { .. } => false,
    };
    let hint = if relative { " (looked up in a private copy, which has no ignored files)" } else { "" };
    Fault::new(kind, format!("agent `{}`: {cause}{hint}", agent.name))
}

/// What the ended process left behind. It is read as it was printed: the journal's door masks what came of it, and a mask
/// inside an answer could break its form.
fn read(
    world: &World,
    agent: &AgentSpec,
    (task, prompt_bytes): (&Task, usize),
    Bench { copy, watch }: &Bench,
    ended: Ended,
) -> Performed {
    let stdout = ended.stdout.text();
    let mut decoded = driver::decode(&agent.driver, &stdout);
    if decoded.usage == Usage::default() {
        decoded.usage = Usage::estimate(prompt_bytes, stdout.len());
    }
    let usage = decoded.usage;
    let strayed = strays::since(world, copy, watch);
    let masked = world.masker.mask(&stdout).into_owned();
    let kind = match ended.how {
        How::Exited(0) => None,
        How::Exited(code) => Some(FaultKind::Exited { code }),
        How::Killed(signal) => Some(FaultKind::Killed { signal }),
        How::TimedOut => Some(FaultKind::TimedOut),
        How::Silent => Some(FaultKind::Silent),
        How::Flooded => Some(FaultKind::Flood),
        How::Lost | How::Stopped => Some(FaultKind::Killed { signal: 9 }),
    };
    if let Some(kind) = kind {
        let stderr = world.masker.mask(&ended.stderr.text()).into_owned();
        let fault = Fault::new(kind, failure(world, (agent, task), &ended, &stderr));
        let output = format!("{masked}\n--- standard error ---\n{stderr}").into_bytes();
        let reply = Reply::Failed { fault, usage, output: Some(Hash::of(&output)), prompt: None, strayed };
        return Performed { reply, blobs: vec![output] };
    }
    let parsed = answer::parse(&decoded.text, Wanted::of(task.brief.role));
    let mut blobs = vec![masked.into_bytes()];
    let patch = match task.place {
        Workplace::Frozen { .. } => None,
        Workplace::Private => match patch(world, copy, &mut blobs) {
            Ok(patch) => patch,
            // The agent's own doing: it broke the copy it was given.
            Err(cause) => {
                let fault = Fault::new(
                    FaultKind::Malformed,
                    format!("agent `{}` left a copy that cannot be read: {cause}", agent.name),
                );
                let output = Some(Hash::of(&blobs[0]));
                let reply = Reply::Failed { fault, usage, output, prompt: None, strayed };
                return Performed { reply, blobs };
            }
        },
    };
    let mut remarks = parsed.remarks;
    remarks.extend(survivors(ended.left));
    let reply = AgentReply {
        content: parsed.content,
        remarks,
        usage,
        patch,
        minutes: Box::new(parsed.minutes),
        prompt: Hash::new(""),
        output: Hash::of(&blobs[0]),
        repeats: repeats(world, &task.recent, &blobs[0]),
        strayed,
    };
    Performed { reply: Reply::Agent(reply), blobs }
}

/// How much of an output was said before, in thousandths, at most of all earlier ones. An earlier one that cannot be read any
/// more was not the same.
fn repeats(world: &World, recent: &[Hash], output: &[u8]) -> Option<u16> {
    if recent.is_empty() {
        return None;
    }
    let store = Store::open_read_only(&world.project.home()).ok()?;
    let now = String::from_utf8_lossy(output);
    let mut most = 0;
    for hash in recent {
        let Ok(past) = store.blob(hash) else { continue };
        most = most.max(match similar_outputs(&now, &String::from_utf8_lossy(&past)) {
            Sameness::Equal => 1000,
            Sameness::Similar { permille } | Sameness::Different { permille } => permille,
        });
    }
    Some(most)
}

/// Processes that are not ours to end (another user's, say) are at least pointed out.
fn survivors(left: usize) -> Option<String> {
    (left > 0).then(|| format!("{left} of its processes could not be ended and may still be there"))
}

fn failure(world: &World, (agent, task): (&AgentSpec, &Task), ended: &Ended, stderr: &str) -> String {
    let what = match ended.how {
        How::Exited(code) => format!("ended with exit code {code}"),
        How::Killed(signal) => format!("was killed by signal {signal}"),
        How::TimedOut => format!("was not done after {} s", task.timeout_ms / 1000),
        How::Silent => {
            let seconds = world.settings.tasks.idle_timeout_ms / 1000;
            format!("gave no sign of life for {seconds} s (tasks.idle_timeout)")
        }
        How::Flooded => {
            format!("printed without end ({} MB)", ended.stdout.total().max(ended.stderr.total()) >> 20)
        }
        How::Lost | How::Stopped => "was lost: its keeper was killed".to_string(),
    };
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let said = if last.is_empty() { String::new() } else { format!(": {}", cut(last.trim(), 200)) };
    let left = survivors(ended.left).map(|left| format!("; {left}")).unwrap_or_default();
    format!("agent `{}` {what}{said}{left}", agent.name)
}

fn patch(world: &World, copy: &Copy, blobs: &mut Vec<Vec<u8>>) -> io::Result<Option<Patch>> {
    let changes = copy.changes()?;
    if changes.is_empty() {
        return Ok(None);
    }
    let mut diff = String::new();
    for (path, now) in &changes {
        let new = copy.tree().join(path);
        // A link would show what it leads to.
        let plain = fs::symlink_metadata(&new).is_ok_and(|meta| meta.is_file());
        let base = copy.base(path).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
        match (now, if plain { fs::read_to_string(&new).ok() } else { None }) {
            (Some(_), Some(new)) => diff.push_str(&merging::patch(path, base.as_deref(), Some(&new))),
            _ => diff.push_str(&format!("{path}: deleted, or no text any more\n")),
        }
    }
    let diff = world.masker.mask(&diff).into_owned().into_bytes();
    let patch =
        Patch { hash: patch_hash(&changes), files: changes.keys().cloned().collect(), diff: Hash::of(&diff) };
    blobs.push(diff);
    Ok(Some(patch))
}

fn with_prompt(mut performed: Performed, prompt: String) -> Performed {
    let hash = Hash::of(prompt.as_bytes());
    performed.blobs.push(prompt.into_bytes());
    match &mut performed.reply {
        Reply::Agent(reply) => reply.prompt = hash,
        Reply::Failed { prompt, .. } => *prompt = Some(hash),
        _ => {}
    }
    performed
}
