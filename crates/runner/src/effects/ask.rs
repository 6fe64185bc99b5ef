//! Letting an agent do a task: workplace, prompt, process, answer, patch.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tribunal_agents::{
    answer::{self, Wanted},
    driver, prompt,
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
    text::cut,
};
use tribunal_store::Store;
use tribunal_supervise::{Command, Deadlines, Ended, How, StartError};

use super::{Performed, World, world_fault};
use crate::{
    copies::{Copy, Source, patch_hash},
    merging::unified,
};

/// Of what an agent prints while it works.
const LONGEST_LINE: usize = 1 << 20;

/// None: it was ended on the person's word.
pub(super) async fn perform(world: Arc<World>, key: Key, task: Task, lost: u32) -> Option<Performed> {
    let Some(agent) = world.settings.agent(&task.agent) else {
        return Some(world_fault(format!("no agent `{}` is set", task.agent)).into());
    };
    let prepared = {
        let (world, key, task) = (world.clone(), key.clone(), task.clone());
        tokio::task::spawn_blocking(move || prepare(&world, &key, &task)).await
    };
    let (copy, text, template) = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(problem)) => return Some(world_fault(problem).into()),
        Err(panicked) => return Some(world_fault(panicked.to_string()).into()),
    };
    let prompt = match prompt::render(&task.brief, &text, template.as_deref()) {
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
    let command = command(&world, agent, (&key, &task), copy.tree(), prompt);
    let performed = match tribunal_supervise::run(command).await {
        Err(cause) => {
            let fault = cannot_start(agent, &cause);
            let usage = Default::default();
            return Some(Reply::Failed { fault, usage, output: None, prompt: None }.into());
        }
        Ok(Ended { how: How::Stopped, .. }) => return None,
        Ok(ended) => {
            let (world, agent) = (world.clone(), agent.clone());
            let read = move || read(&world, &agent, (&task, prompt_bytes), &copy, ended);
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

/// The folder to work in, the subject's text as it stands there, and the project's own template for the role.
fn prepare(world: &World, key: &Key, task: &Task) -> Result<(Copy, String, Option<String>), String> {
    let path = task.brief.subject.path().ok_or("only files can be reviewed so far")?;
    let copy = match &task.place {
        Workplace::Frozen { by } => {
            let copy = Copy::at(world.project.desk(&world.run, by));
            // A reviewer that wrote into the shared copy must not change what the next one reads.
            copy.restore().map_err(|cause| format!("the frozen copy: {cause}"))?;
            copy
        }
        Workplace::Private => {
            let copy = next_attempt(world.project.desk(&world.run, key));
            let files = [path.to_string()];
            let source = Source { root: world.project.root(), files: &files, tree: None, seeds: &[] };
            let made = copy.make(&source).and_then(|_| copy.forget_git());
            made.map_err(|cause| format!("no private copy: {cause}"))?;
            copy
        }
    };
    if !copy.is_complete() {
        return Err(format!("the copy {} is gone", copy.folder().display()));
    }
    let text = base(&copy, path).map_err(|cause| format!("the copy of {path}: {cause}"))?;
    let template = world.project.template(&prompt::file_name(task.brief.role))?;
    Ok((copy, text, template))
}

/// The subject's text as it was when the copy was made.
pub(super) fn base(copy: &Copy, path: &str) -> std::io::Result<String> {
    let bytes = copy.base(path)?.ok_or(std::io::ErrorKind::NotFound)?;
    String::from_utf8(bytes).map_err(std::io::Error::other)
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
    copy: &Copy,
    ended: Ended,
) -> Performed {
    let stdout = ended.stdout.text();
    let mut decoded = driver::decode(&agent.driver, &stdout);
    if decoded.usage == Usage::default() {
        decoded.usage = Usage::estimate(prompt_bytes, stdout.len());
    }
    let usage = decoded.usage;
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
        let reply = Reply::Failed { fault, usage, output: Some(Hash::of(&output)), prompt: None };
        return Performed { reply, blobs: vec![output] };
    }
    let parsed = answer::parse(&decoded.text, Wanted::of(task.brief.role));
    let mut blobs = vec![masked.into_bytes()];
    let patch = match task.place {
        Workplace::Frozen { .. } => None,
        Workplace::Private => match patch(world, task, copy, &mut blobs) {
            Ok(patch) => patch,
            // The agent's own doing: it broke the copy it was given.
            Err(cause) => {
                let fault = Fault::new(
                    FaultKind::Malformed,
                    format!("agent `{}` left a copy that cannot be read: {cause}", agent.name),
                );
                let output = Some(Hash::of(&blobs[0]));
                let reply = Reply::Failed { fault, usage, output, prompt: None };
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

fn patch(
    world: &World,
    task: &Task,
    copy: &Copy,
    blobs: &mut Vec<Vec<u8>>,
) -> std::io::Result<Option<Patch>> {
    let changes = copy.changes()?;
    if changes.is_empty() {
        return Ok(None);
    }
    let path = task.brief.subject.path().unwrap_or_default();
    let new = copy.tree().join(path);
    // A link would show what it leads to.
    let plain = std::fs::symlink_metadata(&new).is_ok_and(|meta| meta.is_file());
    let diff = match std::fs::read_to_string(&new) {
        Ok(new) if plain => unified(path, &base(copy, path)?, &new),
        _ => String::new(),
    };
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
