//! Reads what an ended agent left behind: its answer, its fault and its patch.
//!
//! Whether the agent did its work is read from what it printed, never from its exit code alone.

use std::{fs, io};

use tribunal_agents::{
    answer::{self, Wanted},
    clients::{AgentFacts, WhenDenied},
    driver::{Clock, Decoded, DrivenAgent, Finished},
};
use tribunal_core::{
    brief::{AgentReply, Task, Workplace},
    effect::{AskOutcome, FailedTask},
    fault::{Fault, FaultKind},
    files::Patch,
    ids::Hash,
    limits::Usage,
    loops::{Sameness, similar_outputs},
    text::cut,
};
use tribunal_store::Store;
use tribunal_supervise::{Ended, How};

use super::{Bench, talk};
use crate::{
    copies::{Copy, patch_hash},
    effects::{Performed, World, strays, wall_ms},
    merging,
};

/// What an agent was asked to do.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub agent: &'a DrivenAgent,
    pub task: &'a Task,
    pub prompt_bytes: usize,
    /// How often the agent was asked before and never finished.
    pub lost: u32,
}

/// Reads the result of an ended process. The output is parsed as it was printed: the journal masks the outcome, and a mask
/// inside an answer could break its syntax.
pub(super) fn read(
    world: &World,
    asked: Asked<'_>,
    Bench { copy, watch }: &Bench,
    ended: Ended,
) -> Performed<AskOutcome> {
    let Asked { agent, task, prompt_bytes, lost } = asked;
    let (stdout, stderr) = (ended.stdout.text(), ended.stderr.text());
    // Limits are often reported as a local time, so the decoder needs the clock and the time zone.
    let clock = Clock { now_ms: wall_ms(), zone: jiff::tz::TimeZone::system() };
    let code = if let How::Exited(code) = ended.how { Some(code) } else { None };
    let finished = Finished { code, stdout: &stdout, stderr: &stderr, clock: &clock, talk: talk(task, lost) };
    let decoded = agent.decode(&finished);
    let stderr = world.masker.mask(&stderr).into_owned();
    let fault = fault(world, asked, &ended, &stderr, &decoded);
    let mut usage = decoded.usage;
    // An agent that could not even begin was paid nothing.
    let outside = fault.as_ref().is_some_and(Fault::is_environment);
    let idle = !decoded.active && fault.is_some() && (outside || agent.client().is_some());
    // A client that reports no usage still gets an estimate, so that a budget cannot be bypassed.
    if usage == Usage::default() && !idle {
        usage = Usage::estimate(prompt_bytes, stdout.len());
    }
    // Edits of the user's tree are looked for whether or not the agent succeeded.
    let strayed = strays::since(world, copy, watch);
    let masked = world.masker.mask(&stdout).into_owned();
    if let Some(fault) = fault {
        let output = format!("{masked}\n--- standard error ---\n{stderr}").into_bytes();
        let hash = Some(Hash::of(&output));
        let failed = FailedTask { fault, usage, output: hash, prompt: None, strayed };
        return Performed { reply: AskOutcome::Failed(failed), blobs: vec![output] };
    }
    let parsed = answer::parse(&decoded.text, Wanted::of(task.brief.role));
    let mut blobs = vec![masked.into_bytes()];
    let patch = match task.place {
        Workplace::Frozen { .. } => None,
        Workplace::Private => match patch(world, copy, &mut blobs) {
            Ok(patch) => patch,
            // The agent itself broke the workspace it was given.
            Err(cause) => {
                let fault = Fault::new(
                    FaultKind::Malformed,
                    format!("agent `{}` left a copy that cannot be read: {cause}", agent.spec.name),
                );
                let output = Some(Hash::of(&blobs[0]));
                let failed = FailedTask { fault, usage, output, prompt: None, strayed };
                return Performed { reply: AskOutcome::Failed(failed), blobs };
            }
        },
    };
    let mut remarks = parsed.remarks;
    remarks.extend(decoded.remarks);
    // An answer counts even if the process failed afterwards, but the user should know.
    match code {
        Some(0) => {}
        Some(code) => {
            remarks.push(format!("{} ended with exit code {code} after its answer", agent.spec.name))
        }
        None => remarks.push(format!("{} had answered, but did not end by itself", agent.spec.name)),
    }
    remarks.extend(survivors(ended.left));
    let reply = AgentReply {
        content: parsed.content,
        remarks,
        usage,
        patch,
        minutes: Box::new(parsed.minutes),
        // The caller fills in the hash of the prompt, which it alone knows.
        prompt: Hash::new(""),
        output: Hash::of(&blobs[0]),
        repeats: repeats(world, &task.recent, &blobs[0]),
        strayed,
        session: decoded.session.map(Box::new),
    };
    Performed { reply: AskOutcome::Answered(reply), blobs }
}

/// Returns what went wrong, if anything did.
fn fault(world: &World, asked: Asked<'_>, ended: &Ended, stderr: &str, decoded: &Decoded) -> Option<Fault> {
    let agent = asked.agent;
    // The client reported a complete answer, so what happened to its process afterwards does not matter.
    if decoded.finished && decoded.fault.is_none() && !matches!(ended.how, How::Stopped) {
        return None;
    }
    let silent = !decoded.active && ended.stdout.total() == 0;
    let kind = match ended.how {
        // The client's own error says more than an exit code, or than a timeout that ended its retries.
        How::Exited(_) | How::Killed(_) | How::TimedOut | How::Silent if decoded.fault.is_some() => {
            let mut fault = decoded.fault.clone()?;
            let remedy = remedy(agent, &fault.kind).map(|remedy| format!("; {remedy}")).unwrap_or_default();
            fault.detail = format!("agent `{}`: {}{remedy}", agent.spec.name, fault.detail);
            fault.instant = !decoded.active;
            return Some(fault);
        }
        How::Exited(0) => return None,
        // 143 is the exit code of a process that was asked to stop with SIGTERM.
        How::Exited(143) => FaultKind::Killed { signal: 15 },
        How::Exited(code) => FaultKind::Exited { code },
        How::Killed(signal) => FaultKind::Killed { signal },
        How::TimedOut => FaultKind::TimedOut,
        How::Silent if silent => FaultKind::NeverActive,
        How::Silent => FaultKind::Silent,
        How::Flooded => FaultKind::Flood,
        How::Lost | How::Stopped => FaultKind::Killed { signal: 9 },
    };
    let detail = failure(world, asked, ended, stderr);
    Some(Fault {
        instant: !decoded.active && matches!(ended.how, How::Exited(_)),
        ..Fault::new(kind, detail)
    })
}

/// Returns what the user can do about a fault, if anything is known to help.
fn remedy(agent: &DrivenAgent, kind: &FaultKind) -> Option<String> {
    let AgentFacts { keys, sign_in, when_denied, .. } = agent.client()?.agent;
    let name = &agent.spec.name;
    Some(match kind {
        FaultKind::NotSignedIn => match keys.first() {
            Some(key) => format!("sign in ({sign_in}), or replace the key in {}", key.name),
            None => format!("sign in: {sign_in}"),
        },
        FaultKind::NoCredit => "pay for more, or let another agent take part: agents.use".into(),
        FaultKind::NoModel => format!("name one that there is: agents.{name}.model"),
        FaultKind::Denied => match when_denied {
            WhenDenied::AllowTools => format!("allow what it needs: agents.{name}.allow"),
            WhenDenied::Bypass => {
                format!("let it work without its own checks, if you must: agents.{name}.bypass")
            }
        },
        FaultKind::Overflow => "review a part of it: --section, or fewer files".into(),
        _ => return None,
    })
}

/// Returns how much of an output repeats an earlier one, in thousandths; the highest value counts. An earlier output that
/// cannot be read any more does not count as a repetition.
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

/// Reports processes that could not be ended, because they belong to another user, for example.
fn survivors(left: usize) -> Option<String> {
    (left > 0).then(|| format!("{left} of its processes could not be ended and may still be there"))
}

fn failure(world: &World, asked: Asked<'_>, ended: &Ended, stderr: &str) -> String {
    let Asked { agent, task, .. } = asked;
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
    // The last line of an error output usually is the one that says what went wrong.
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let said = if last.is_empty() { String::new() } else { format!(": {}", cut(last.trim(), 200)) };
    let left = survivors(ended.left).map(|left| format!("; {left}")).unwrap_or_default();
    format!("agent `{}` {what}{said}{left}", agent.spec.name)
}

fn patch(world: &World, copy: &Copy, blobs: &mut Vec<Vec<u8>>) -> io::Result<Option<Patch>> {
    let changes = copy.changes()?;
    if changes.is_empty() {
        return Ok(None);
    }
    let mut diff = String::new();
    for (path, now) in &changes {
        let new = copy.tree().join(path);
        // Reading a link would show the file it leads to.
        let plain = fs::symlink_metadata(&new).is_ok_and(|meta| meta.is_file());
        // A base that is not text cannot be shown, but its change is part of the patch hash all the same.
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
