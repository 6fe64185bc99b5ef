//! Landing: a fixer's patch comes into the person's tree, whole and checked, or not at all.
//!
//! Doing it twice does it once: what was landed is written down beside the copy before the file is replaced, so that a run
//! that died in between finds out. The exact texts before and after are kept first (`checkpoints`), so that what landed can
//! be taken back.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tribunal_core::{
    effect::{Hunk, Refusal, Reply},
    ids::Hash,
    text::cut,
};
use tribunal_supervise::{Deadlines, How};

use super::{World, world_fault};
use crate::{
    checkpoints::{At, Change, Checkpoints},
    copies::{Copy, patch_hash},
    fault,
    files::{Replacement, write_atomically},
    merging::{hunks, three_way},
    refs,
    subject::is_plain,
};

/// Whoever keeps changing the file while the checks run is let alone.
const TRIES: u32 = 3;
/// From so many lines on, a patch that leaves less than a third of them is no fix.
const LONG_ENOUGH: usize = 4;

pub(super) struct Landing {
    pub at: At,
    pub patch: Hash,
    pub allowed: Vec<String>,
    pub verify: Vec<String>,
}

/// Written before the file is replaced.
#[derive(Serialize, Deserialize)]
struct Intent {
    after: Hash,
    hunks: Vec<Hunk>,
}

/// A patch that may land: the one file it changes, before and after.
struct Candidate {
    copy: Copy,
    path: String,
    real: PathBuf,
    /// Where the text from before the run's first landing is kept.
    original: PathBuf,
    /// Where the texts before and after every landing are kept, and as which one this is.
    checkpoints: Checkpoints,
    at: At,
    base: String,
    theirs: String,
}

/// A check was ended on the person's word.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct Stopped;

/// Where a try got to.
enum Try {
    Ended(Box<Reply>),
    /// Merged with the file as it is; to be checked.
    Merged {
        ours: String,
        merged: String,
    },
}

/// None: a check was ended on the person's word; nothing has landed.
pub(super) async fn perform(world: Arc<World>, landing: Landing) -> Option<Reply> {
    match land(&world, landing).await {
        Ok(reply) => Some(reply),
        Err(cause) if cause.get_ref().is_some_and(|inner| inner.is::<Stopped>()) => None,
        Err(cause) => Some(world_fault(format!("landing failed: {cause}"))),
    }
}

fn refused(why: Refusal) -> Reply {
    Reply::NotLanded { why }
}

/// Work on files, away from the thread that everything waits on.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

async fn land(world: &Arc<World>, landing: Landing) -> io::Result<Reply> {
    let verify = landing.verify.clone();
    let at = world.clone();
    let candidate = match aside(move || candidate(&at, &landing)).await? {
        Ok(candidate) => Arc::new(candidate),
        Err(why) => return Ok(refused(why)),
    };
    for _ in 0..TRIES {
        let (this, at) = (candidate.clone(), world.clone());
        let (ours, merged) =
            match aside(move || merge(&this).inspect(|ended| given_to_git(&at, &this, ended))).await? {
                Try::Ended(reply) => return Ok(*reply),
                Try::Merged { ours, merged } => (ours, merged),
            };
        if let Some(why) = check(world, &candidate, &verify, &merged).await? {
            return Ok(refused(why));
        }
        let (this, at) = (candidate.clone(), world.clone());
        let put = aside(move || {
            let reply = put(&this, &ours, merged)?.map(|reply| Try::Ended(Box::new(reply)));
            reply.iter().for_each(|ended| given_to_git(&at, &this, ended));
            Ok(reply)
        });
        if let Some(Try::Ended(reply)) = put.await? {
            return Ok(*reply);
        }
    }
    let detail = format!("{} kept changing while the checks ran", candidate.path);
    Ok(refused(Refusal::Lost { detail }))
}

/// The fixer's copy and what it may change, or why not.
fn candidate(world: &World, landing: &Landing) -> io::Result<Result<Candidate, Refusal>> {
    let desk = world.project.desk(&world.run, &landing.at.by);
    let Some(copy) = find_copy(&desk, &landing.patch) else {
        let detail = "the fixer's copy is gone or was changed after its answer".to_string();
        return Ok(Err(Refusal::Lost { detail }));
    };
    let changes = copy.changes()?;
    let allowed = |path: &&String| landing.allowed.contains(path) && is_plain(path);
    let outside: Vec<String> = changes.keys().filter(|path| !allowed(path)).cloned().collect();
    if !outside.is_empty() {
        return Ok(Err(Refusal::Outside { files: outside }));
    }
    // A review has one subject, so there is one file.
    let path = match changes.first_key_value() {
        Some((path, Some(_))) => path.clone(),
        Some((path, None)) => return Ok(Err(Refusal::Lost { detail: format!("it deleted {path}") })),
        None => return Ok(Err(Refusal::Lost { detail: "it changes nothing".to_string() })),
    };
    let new = copy.tree().join(&path);
    if !fs::symlink_metadata(&new)?.is_file() {
        return Ok(Err(Refusal::Lost { detail: format!("it put something else in the place of {path}") }));
    }
    let base = copy.base()?;
    let Ok(theirs) = String::from_utf8(fs::read(new)?) else {
        return Ok(Err(Refusal::Lost { detail: format!("what it made of {path} is no UTF-8") }));
    };
    let theirs = with_line_ends_of(&base, theirs);
    let filled = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let (before, after) = (filled(&base), filled(&theirs));
    if after == 0 || (before >= LONG_ENOUGH && after * 3 < before) {
        return Ok(Err(Refusal::Gutted { before: before as u32, after: after as u32 }));
    }
    let real = world.project.root().join(&path);
    let original = world.project.originals(&world.run).join(&path);
    let checkpoints = Checkpoints::of(&world.project, &world.run);
    let at = landing.at.clone();
    Ok(Ok(Candidate { base, copy, path, real, original, checkpoints, at, theirs }))
}

/// An agent that turns a file's line ends into its own has not fixed anything.
fn with_line_ends_of(base: &str, text: String) -> String {
    let ends = |text: &str| (text.matches('\n').count(), text.matches("\r\n").count());
    match (ends(base), ends(&text)) {
        ((all, crlf), (new, new_crlf)) if crlf > 0 && all == crlf && new != new_crlf => {
            text.replace("\r\n", "\n").replace('\n', "\r\n")
        }
        ((_, 0), (_, 1..)) => text.replace("\r\n", "\n"),
        _ => text,
    }
}

fn merge(candidate: &Candidate) -> io::Result<Try> {
    let ours = fs::read_to_string(&candidate.real).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other(format!("{} is gone; put it back, then resume", candidate.path))
        }
        _ => cause,
    })?;
    if let Some(reply) = landed_before(&candidate.copy, &ours)? {
        return Ok(Try::Ended(Box::new(reply)));
    }
    Ok(match three_way(&candidate.base, &ours, &candidate.theirs) {
        Ok(merged) => Try::Merged { ours, merged },
        Err(line) => Try::Ended(Box::new(refused(Refusal::Conflict {
            line,
            file: String::new(),
            ours: String::new(),
            theirs: String::new(),
        }))),
    })
}

/// Replaces the file. None: somebody edited it while the checks ran, and is not overwritten.
fn put(candidate: &Candidate, ours: &str, merged: String) -> io::Result<Option<Reply>> {
    let hunks = hunks(ours, &merged);
    let change =
        Change { path: candidate.path.clone(), before: Some(ours.to_string()), after: Some(merged.clone()) };
    // First of all: whatever is found to have landed can be taken back.
    let kept = candidate.checkpoints.keep(&candidate.at, std::slice::from_ref(&change))?;
    let intent = Intent { after: Hash::of(merged.as_bytes()), hunks: hunks.clone() };
    let json = serde_json::to_vec(&intent).map_err(io::Error::other)?;
    write_atomically(&intent_path(&candidate.copy), &json)?;
    // The text as it was before this run touched it stays at hand.
    if !candidate.original.exists() {
        write_atomically(&candidate.original, ours.as_bytes())?;
    }
    let replacement = Replacement::prepare(&candidate.real, merged.as_bytes())?;
    // The last look stands right before the rename.
    if fs::read_to_string(&candidate.real)? != ours {
        candidate.checkpoints.forget(&candidate.at, kept)?;
        return Ok(None);
    }
    fault::point("landing", "before");
    replacement.put()?;
    fault::point("landing", "after");
    Ok(Some(Reply::Landed { hunks, hash: intent.after, text: merged, files: Vec::new() }))
}

/// What has landed can be looked at with git, too, where there is one. Nothing depends on it.
fn given_to_git(world: &World, candidate: &Candidate, ended: &Try) {
    if let Try::Ended(reply) = ended
        && matches!(**reply, Reply::Landed { .. })
        && let Ok(changes) = candidate.checkpoints.changes(&candidate.at)
    {
        let _ = refs::record(&world.project, &world.run, &candidate.at, &changes);
    }
}

fn intent_path(copy: &Copy) -> PathBuf {
    copy.folder().join("landing.json")
}

/// An earlier life got as far as replacing the file, but not as far as recording it.
fn landed_before(copy: &Copy, ours: &str) -> io::Result<Option<Reply>> {
    let Ok(json) = fs::read(intent_path(copy)) else { return Ok(None) };
    let intent: Intent = serde_json::from_slice(&json).map_err(io::Error::other)?;
    let there = intent.after == Hash::of(ours.as_bytes());
    Ok(there.then(|| Reply::Landed {
        hunks: intent.hunks,
        hash: intent.after,
        text: ours.to_string(),
        files: Vec::new(),
    }))
}

/// The attempt whose changes are the ones that were answered for.
fn find_copy(desk: &Path, patch: &Hash) -> Option<Copy> {
    let attempts = fs::read_dir(desk).ok()?.flatten().map(|attempt| attempt.path());
    let numbered = attempts.filter(|path| path.extension().is_none());
    let copies = numbered.map(Copy::at).filter(Copy::is_complete);
    let fitting = copies.filter(|copy| copy.changes().is_ok_and(|now| patch_hash(&now) == *patch));
    // Two attempts with one result: the later one began from the newer text.
    fitting.max_by_key(|copy| copy.folder().file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()))
}

/// Runs the verify commands over the merged text, in a copy of their own.
async fn check(
    world: &Arc<World>,
    candidate: &Arc<Candidate>,
    verify: &[String],
    merged: &str,
) -> io::Result<Option<Refusal>> {
    if verify.is_empty() {
        return Ok(None);
    }
    let court = Copy::at(candidate.copy.folder().with_extension("verify"));
    let (at, this, here, text) = (world.clone(), candidate.clone(), court.clone(), merged.to_string());
    aside(move || {
        here.make(at.project.root(), &this.path)?;
        fs::write(here.tree().join(&this.path), text)
    })
    .await?;
    let mut refusal = Ok(None);
    for command in verify {
        refusal = run_check(world, command, court.tree()).await;
        if !matches!(refusal, Ok(None)) {
            break;
        }
    }
    // What a check left behind in its copy is nobody's problem.
    let folder = court.folder().to_path_buf();
    let _ = aside(move || fs::remove_dir_all(folder)).await;
    refusal
}

async fn run_check(world: &World, verify: &str, folder: PathBuf) -> io::Result<Option<Refusal>> {
    let mut command = world.command("sh".into(), vec!["-c".into(), verify.into()], folder);
    let deadline = Duration::from_millis(world.settings.tasks.check_timeout_ms);
    command.deadlines = Deadlines { total: deadline, idle: deadline };
    let ended = tribunal_supervise::run(command).await.map_err(io::Error::other)?;
    if ended.how == How::Stopped {
        return Err(io::Error::other(Stopped));
    }
    let said = format!("{}{}", ended.stdout.text(), ended.stderr.text());
    let mut output = cut(&world.masker.mask(&said), 2000);
    if ended.how == How::TimedOut {
        output = format!("not done after {} s (tasks.check_timeout) {output}", deadline.as_secs());
    } else if output.trim().is_empty() {
        output = match ended.how {
            How::Exited(code) => format!("exit code {code}, and it printed nothing"),
            How::Killed(signal) => format!("killed by signal {signal}"),
            How::Flooded => "it printed without end".to_string(),
            How::TimedOut | How::Silent | How::Stopped | How::Lost => "it was ended".to_string(),
        };
    }
    match ended.how {
        How::Exited(0) => Ok(None),
        How::Lost => Err(io::Error::other(format!("`{verify}` was lost: its keeper was killed"))),
        // The command itself is missing or may not run: that says nothing about the patch.
        How::Exited(126 | 127) => Err(io::Error::other(format!("`{verify}` cannot run: {}", output.trim()))),
        _ => Ok(Some(Refusal::Check { command: verify.to_string(), output })),
    }
}
