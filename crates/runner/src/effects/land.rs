//! Landing: a fixer's patch comes into the person's tree, whole and checked, or not at all.
//!
//! Doing it twice does it once: what was landed is written down beside the copy before the file is replaced, so that a run
//! that died in between finds out.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tribunal_core::{
    effect::{Hunk, Refusal, Reply},
    ids::{Hash, Key},
    text::cut,
};
use tribunal_supervise::{Command, How};

use super::{World, ask::GRACE, world_fault};
use crate::{
    copies::{Copy, patch_hash},
    files::write_atomically,
    merging::{hunks, three_way},
    subject::is_plain,
};

/// A verify command that runs longer than this has failed.
const VERIFY_DEADLINE: Duration = Duration::from_secs(600);

pub(super) struct Landing {
    pub by: Key,
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

pub(super) async fn perform(world: Arc<World>, landing: Landing) -> Reply {
    match land(&world, &landing).await {
        Ok(reply) => reply,
        Err(cause) => world_fault(format!("landing failed: {cause}")),
    }
}

fn refused(why: Refusal) -> io::Result<Reply> {
    Ok(Reply::NotLanded { why })
}

async fn land(world: &World, landing: &Landing) -> io::Result<Reply> {
    let desk = world.project.desk(&world.run, &landing.by);
    let Some(copy) = find_copy(&desk, &landing.patch) else {
        let detail = "the fixer's copy is gone or was changed after its answer".to_string();
        return refused(Refusal::Lost { detail });
    };
    let changes = copy.changes()?;
    let allowed = |path: &&String| landing.allowed.contains(path) && is_plain(path);
    let outside: Vec<String> = changes.keys().filter(|path| !allowed(path)).cloned().collect();
    if !outside.is_empty() {
        return refused(Refusal::Outside { files: outside });
    }
    // A review has one subject, so there is one file.
    let Some((path, Some(_))) = changes.first_key_value() else {
        return refused(Refusal::Outside { files: changes.into_keys().collect() });
    };
    let real = world.project.root().join(path);
    let theirs = fs::read_to_string(copy.tree().join(path))?;
    let base = copy.base()?;
    loop {
        let ours = fs::read_to_string(&real)?;
        if let Some(reply) = landed_before(&copy, &ours)? {
            return Ok(reply);
        }
        let merged = match three_way(&base, &ours, &theirs) {
            Ok(merged) => merged,
            Err(line) => return refused(Refusal::Conflict { line }),
        };
        if let Some(why) = check(world, &copy, landing, (path, &merged)).await? {
            return refused(why);
        }
        // Whoever edited the file while the checks ran is not overwritten: look again.
        if fs::read_to_string(&real)? == ours {
            let hunks = hunks(&ours, &merged);
            let intent = Intent { after: Hash::of(merged.as_bytes()), hunks: hunks.clone() };
            let json = serde_json::to_vec(&intent).map_err(io::Error::other)?;
            write_atomically(&intent_path(&copy), &json)?;
            write_atomically(&real, merged.as_bytes())?;
            return Ok(Reply::Landed { hunks, hash: intent.after, text: merged });
        }
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
    Ok(there.then(|| Reply::Landed { hunks: intent.hunks, hash: intent.after, text: ours.to_string() }))
}

/// The attempt whose changes are the ones that were answered for.
fn find_copy(desk: &Path, patch: &Hash) -> Option<Copy> {
    let attempts = fs::read_dir(desk).ok()?.flatten().map(|attempt| attempt.path());
    let numbered = attempts.filter(|path| path.extension().is_none());
    let copies = numbered.map(Copy::at).filter(Copy::is_complete);
    let mut fitting = copies.filter(|copy| copy.changes().is_ok_and(|now| patch_hash(&now) == *patch));
    fitting.next()
}

/// Runs the verify commands over the merged text, in a copy of their own.
async fn check(
    world: &World,
    copy: &Copy,
    landing: &Landing,
    (path, merged): (&str, &str),
) -> io::Result<Option<Refusal>> {
    if landing.verify.is_empty() {
        return Ok(None);
    }
    let court = Copy::at(copy.folder().with_extension("verify"));
    court.make(world.project.root(), path)?;
    fs::write(court.tree().join(path), merged)?;
    let mut refusal = None;
    for verify in &landing.verify {
        refusal = run_check(world, verify, court.tree()).await?;
        if refusal.is_some() {
            break;
        }
    }
    fs::remove_dir_all(court.folder())?;
    Ok(refusal)
}

async fn run_check(world: &World, verify: &str, folder: PathBuf) -> io::Result<Option<Refusal>> {
    let command = Command {
        program: "sh".into(),
        args: vec!["-c".into(), verify.to_string()],
        folder,
        env: Default::default(),
        input: Vec::new(),
        deadline: VERIFY_DEADLINE,
        grace: GRACE,
        on_output: None,
    };
    let ended = tribunal_supervise::run(command).await.map_err(io::Error::other)?;
    let said = format!("{}{}", ended.stdout.text(), ended.stderr.text());
    let output = cut(&world.masker.mask(&said), 2000);
    match ended.how {
        How::Exited(0) => Ok(None),
        // The command itself is missing or may not run: that says nothing about the patch.
        How::Exited(126 | 127) => Err(io::Error::other(format!("`{verify}` cannot run: {}", output.trim()))),
        _ => Ok(Some(Refusal::Check { command: verify.to_string(), output })),
    }
}
