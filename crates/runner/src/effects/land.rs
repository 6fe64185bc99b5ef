//! Landing: a fixer's patch comes into the person's tree, whole and checked, or not at all.
//!
//! Doing it twice does it once: what is to land is written down beside the copy before the first file is replaced, so that a
//! run that died in between finds out and does the rest. The exact texts before and after are kept first (`checkpoints`), so
//! that what landed can be taken back. Checks have a file of their own ([`super::check`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tribunal_core::{
    effect::{LandOutcome, Landed},
    files::{Hunk, LandedFile, Refusal},
    ids::Hash,
    text::cut,
};

use super::{World, check, world_fault};
use crate::{
    checkpoints::{At, Change, Checkpoints},
    copies::{self, Copy, agent_files, patch_hash},
    fault,
    files::{Replacement, write_atomically},
    git, locks,
    merging::{Conflict, hunks, merge},
    refs,
    subject::{is_plain, link_on_the_way},
};

/// Whoever keeps changing the files while the checks run is let alone.
const TRIES: u32 = 3;
/// From so many lines on, a patch that leaves less than a third of them is no fix.
const LONG_ENOUGH: usize = 4;
/// Of each side of a conflict.
const SHOWN_CHARS: usize = 600;

pub(super) struct Landing {
    pub at: At,
    pub patch: Hash,
    /// Files, and folders with a `/` at their end in which new ones may be made.
    pub allowed: Vec<String>,
    pub verify: Vec<String>,
}

/// Written before the first file is replaced.
#[derive(Serialize, Deserialize)]
struct Intent {
    files: BTreeMap<String, Put>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Put {
    after: Hash,
    hunks: Vec<Hunk>,
}

/// A patch that may land.
pub(super) struct Candidate {
    pub copy: Copy,
    files: Vec<Patched>,
    /// Where the texts before and after every landing are kept, and as which one this is.
    checkpoints: Checkpoints,
    at: At,
}

impl Candidate {
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.files.iter().map(|file| file.path.clone())
    }
}

/// One file of it: as it was when the copy was made (none: it was not there), and as the fixer left it.
struct Patched {
    path: String,
    real: PathBuf,
    base: Option<String>,
    theirs: String,
    executable: bool,
}

/// One file as it is, and as it is to be.
#[derive(Clone)]
pub(super) struct Merged {
    pub path: String,
    ours: Option<String>,
    pub after: String,
    /// Put in its place by an earlier life, which had reckoned these.
    landed: Option<Vec<Hunk>>,
}

/// Where a try got to.
enum Try {
    Ended(Box<LandOutcome>),
    /// Merged with the files as they are; to be checked.
    Merged(Vec<Merged>),
}

/// None: a check was ended on the person's word; nothing has landed.
pub(super) async fn perform(world: Arc<World>, landing: Landing) -> Option<LandOutcome> {
    let Some(copy) = find_copy(&world.project.desk(&world.run, &landing.at.by), &landing.patch) else {
        let detail = "the fixer's copy is gone or was changed after its answer".to_string();
        return Some(refused(Refusal::Lost { detail }));
    };
    let folder = copy.folder().to_path_buf();
    let reply = try_to(&world, landing, copy).await?;
    // After a fault it is tried again; until then the copy stays.
    if !matches!(reply, LandOutcome::Failed { .. }) {
        copies::release(&folder);
    }
    Some(reply)
}

async fn try_to(world: &Arc<World>, landing: Landing, copy: Copy) -> Option<LandOutcome> {
    let fault = |cause: io::Error| LandOutcome::from(world_fault(format!("landing failed: {cause}")));
    let at = world.clone();
    let found = aside(move || candidate(&at, &landing, copy).map(|found| (found, landing.verify))).await;
    let (candidate, verify) = match found {
        Ok((Ok(candidate), verify)) => (Arc::new(candidate), verify),
        Ok((Err(why), _)) => return Some(refused(why)),
        Err(cause) => return Some(fault(cause)),
    };
    match land(world, &candidate, &verify).await {
        Ok(reply) => Some(reply),
        Err(cause) if check::was_stopped(&cause) => None,
        Err(cause) => {
            let at = world.clone();
            let left = aside(move || left_behind(&at, &candidate)).await.ok().flatten();
            Some(left.unwrap_or_else(|| fault(cause)))
        }
    }
}

/// A landing that broke off is taken out again. What cannot be has landed, and is recorded as that.
fn left_behind(world: &World, candidate: &Candidate) -> io::Result<Option<LandOutcome>> {
    if take_back(world, candidate).is_ok() {
        return Ok(None);
    }
    let Some(intent) = intent(&candidate.copy)? else { return Ok(None) };
    let mut all = Vec::new();
    for file in &candidate.files {
        let put = intent.files.get(&file.path);
        if let (Some(put), Ok(Some(text))) = (put, read(file))
            && put.after == Hash::of(text.as_bytes())
        {
            let (path, landed) = (file.path.clone(), Some(put.hunks.clone()));
            all.push(Merged { path, ours: Some(text.clone()), after: text, landed });
        }
    }
    Ok((!all.is_empty()).then(|| landed(world, &all)))
}

fn refused(why: Refusal) -> LandOutcome {
    LandOutcome::Refused { why }
}

/// Work on files, away from the thread that everything waits on.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

async fn land(world: &Arc<World>, candidate: &Arc<Candidate>, verify: &[String]) -> io::Result<LandOutcome> {
    for _ in 0..TRIES {
        let (at, this) = (world.clone(), candidate.clone());
        let merged = match aside(move || merge_all(&at, &this)).await? {
            Try::Ended(reply) => return Ok(*reply),
            Try::Merged(merged) => merged,
        };
        if let Some(why) = check::check(world, candidate, verify, &merged).await? {
            let (at, this) = (world.clone(), candidate.clone());
            aside(move || take_back(&at, &this)).await?;
            return Ok(refused(why));
        }
        let (at, this) = (world.clone(), candidate.clone());
        if let Some(reply) = aside(move || put(&at, &this, merged)).await? {
            return Ok(reply);
        }
    }
    let (at, this) = (world.clone(), candidate.clone());
    aside(move || take_back(&at, &this)).await?;
    let names: Vec<String> = candidate.paths().collect();
    let detail = format!("{} kept changing while the checks ran", names.join(", "));
    Ok(refused(Refusal::Lost { detail }))
}

/// The fixer's copy and what it may change, or why not.
fn candidate(world: &World, landing: &Landing, copy: Copy) -> io::Result<Result<Candidate, Refusal>> {
    let changes = copy.changes()?;
    if changes.is_empty() {
        return Ok(Err(Refusal::Lost { detail: "it changes nothing".to_string() }));
    }
    let mut outside = Vec::new();
    let had = copy.all()?;
    // What a build leaves behind where git does not look is no part of a repair.
    let ignored = git::ignored(world.project.root(), changes.keys().filter(|path| !had.contains(*path)));
    for path in changes.keys().filter(|path| !ignored.contains(*path)) {
        let is_new = !had.contains(path);
        if !is_plain(path)
            || !(landing.allowed.contains(path) || is_new && may_be_made(path, &landing.allowed))
        {
            outside.push(path.clone());
        }
    }
    if !outside.is_empty() {
        return Ok(Err(Refusal::Outside { files: outside }));
    }
    let mut files = Vec::new();
    for (path, now) in changes.into_iter().filter(|(path, _)| !ignored.contains(path)) {
        if now.is_none() {
            return Ok(Err(Refusal::Lost { detail: format!("it deleted {path}") }));
        }
        match patched(world, &copy, path, &had)? {
            Ok(file) => files.push(file),
            Err(why) => return Ok(Err(why)),
        }
    }
    if files.is_empty() {
        return Ok(Err(Refusal::Lost { detail: "it changes nothing that counts".to_string() }));
    }
    let checkpoints = Checkpoints::of(&world.project, &world.run);
    Ok(Ok(Candidate { copy, files, checkpoints, at: landing.at.clone() }))
}

/// A new file may be made in a folder that is named, or among tests; never one that tools take orders from.
fn may_be_made(path: &str, allowed: &[String]) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let parts: Vec<&str> = path.split('/').collect();
    let hidden = parts.iter().any(|part| part.starts_with('.'));
    let orders = name == "tribunal.yaml" || agent_files().any(|file| file == name || file == parts[0]);
    let tests = parts[..parts.len() - 1]
        .iter()
        .any(|part| matches!(*part, "test" | "tests" | "spec" | "specs" | "__tests__"));
    let folder = format!("{folder}/");
    let among = allowed.contains(&folder);
    let makes = allowed.iter().any(|entry| entry.ends_with('/'));
    !hidden && !orders && (among || makes && tests)
}

fn patched(
    world: &World,
    copy: &Copy,
    path: String,
    had: &BTreeSet<String>,
) -> io::Result<Result<Patched, Refusal>> {
    let new = copy.tree().join(&path);
    let meta = fs::symlink_metadata(&new)?;
    if !meta.is_file() {
        return Ok(Err(Refusal::Lost { detail: format!("it put something else in the place of {path}") }));
    }
    let base = if had.contains(&path) { copy.base(&path)? } else { None };
    let base = match base.map(String::from_utf8).transpose() {
        Ok(base) => base,
        Err(_) => return Ok(Err(Refusal::Lost { detail: format!("{path} is no UTF-8") })),
    };
    let Ok(theirs) = String::from_utf8(fs::read(new)?) else {
        return Ok(Err(Refusal::Lost { detail: format!("what it made of {path} is no UTF-8") }));
    };
    let theirs = match &base {
        Some(base) => with_line_ends_of(base, theirs),
        None => theirs,
    };
    if let Some((before, after)) = base.as_deref().and_then(|base| gutted(base, &theirs)) {
        return Ok(Err(Refusal::Gutted { before, after }));
    }
    let real = world.project.root().join(&path);
    if let Some(link) = link_on_the_way(world.project.root(), &path) {
        let detail = format!("{path} leads elsewhere: {link} is a link");
        return Ok(Err(Refusal::Lost { detail }));
    }
    let executable = is_executable(&meta);
    Ok(Ok(Patched { path, real, base, theirs, executable }))
}

/// Lines before and after, if most of them would be gone.
pub(super) fn gutted(base: &str, theirs: &str) -> Option<(u32, u32)> {
    let filled = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let (before, after) = (filled(base), filled(theirs));
    let is_gutted = before > 0 && (after == 0 || (before >= LONG_ENOUGH && after * 3 < before));
    is_gutted.then_some((before as u32, after as u32))
}

fn is_executable(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode() & 0o100 != 0
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

fn merge_all(world: &World, candidate: &Candidate) -> io::Result<Try> {
    let intent = intent(&candidate.copy)?;
    let mut all = Vec::new();
    for file in &candidate.files {
        let ours = read(file)?;
        let before = intent.as_ref().and_then(|intent| intent.files.get(&file.path));
        if let (Some(put), Some(text)) = (before, &ours)
            && put.after == Hash::of(text.as_bytes())
        {
            // An earlier life got as far as replacing it.
            let (after, landed) = (text.clone(), Some(put.hunks.clone()));
            all.push(Merged { path: file.path.clone(), ours, after, landed });
            continue;
        }
        match three_way(file, ours.as_deref())? {
            Ok(after) => all.push(Merged { path: file.path.clone(), ours, after, landed: None }),
            Err(why) => {
                take_back(world, candidate)?;
                return Ok(Try::Ended(Box::new(refused(why))));
            }
        }
    }
    if all.iter().all(|file| file.landed.is_some()) {
        give_to_git(world, candidate);
        return Ok(Try::Ended(Box::new(landed(world, &all))));
    }
    Ok(Try::Merged(all))
}

/// An earlier life was killed between two files, and the rest can no longer follow: what it put is taken out again.
fn take_back(world: &World, candidate: &Candidate) -> io::Result<()> {
    if intent(&candidate.copy)?.is_none() {
        return Ok(());
    }
    let _alone = locks::alone(&world.project.locks())?;
    for change in candidate.checkpoints.changes(&candidate.at)? {
        let Some(file) = candidate.files.iter().find(|file| file.path == change.path) else { continue };
        let now = read(file)?;
        if !change.is_in(now.as_deref()) {
            continue;
        }
        match (&change.before, &change.after, now) {
            (None, ..) => fs::remove_file(&file.real)?,
            (Some(before), Some(after), Some(now)) => {
                // What the person has changed meanwhile stays.
                let without = merge(after, &now, before).map_err(|conflict| {
                    io::Error::other(format!("{}:{} is half landed, half edited", file.path, conflict.line))
                })?;
                write_atomically(&file.real, without.as_bytes())?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// None: it is not there.
fn read(file: &Patched) -> io::Result<Option<String>> {
    // What a link leads to is another file; and the link is the person's.
    if file.real.is_symlink() {
        return Err(io::Error::other(format!("{} is a link now; put the file back, then resume", file.path)));
    }
    match fs::read_to_string(&file.real) {
        Ok(text) => Ok(Some(text)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn three_way(file: &Patched, ours: Option<&str>) -> io::Result<Result<String, Refusal>> {
    let both = |conflict: Conflict| Refusal::Conflict {
        line: conflict.line,
        file: file.path.clone(),
        ours: cut(&conflict.ours, SHOWN_CHARS),
        theirs: cut(&conflict.theirs, SHOWN_CHARS),
    };
    match (&file.base, ours) {
        (Some(_), None) => Err(io::Error::other(format!("{} is gone; put it back, then resume", file.path))),
        (Some(base), Some(ours)) => Ok(merge(base, ours, &file.theirs).map_err(both)),
        (None, None) => Ok(Ok(file.theirs.clone())),
        (None, Some(ours)) if ours == file.theirs => Ok(Ok(file.theirs.clone())),
        // Two made the same file.
        (None, Some(ours)) => {
            Ok(Err(both(Conflict { line: 1, ours: ours.to_string(), theirs: file.theirs.clone() })))
        }
    }
}

/// Replaces the files. None: somebody edited one while the checks ran, and is not overwritten.
fn put(world: &World, candidate: &Candidate, mut merged: Vec<Merged>) -> io::Result<Option<LandOutcome>> {
    let due: Vec<usize> = (0..merged.len()).filter(|at| merged[*at].landed.is_none()).collect();
    for at in &due {
        let file = &mut merged[*at];
        file.landed = Some(hunks(file.ours.as_deref().unwrap_or_default(), &file.after));
    }
    let change = |file: &Merged| Change {
        path: file.path.clone(),
        before: file.ours.clone(),
        after: Some(file.after.clone()),
    };
    let changes: Vec<Change> = due.iter().map(|at| change(&merged[*at])).collect();
    // Nobody else of this project puts anything meanwhile.
    let alone = locks::alone(&world.project.locks())?;
    // First of all: whatever is found to have landed can be taken back.
    let kept = candidate.checkpoints.keep(&candidate.at, &changes)?;
    let puts = merged.iter().map(|file| {
        let hunks = file.landed.clone().unwrap_or_default();
        (file.path.clone(), Put { after: Hash::of(file.after.as_bytes()), hunks })
    });
    let json = serde_json::to_vec(&Intent { files: puts.collect() }).map_err(io::Error::other)?;
    write_atomically(&intent_path(&candidate.copy), &json)?;
    let mut ready = Vec::new();
    for at in &due {
        let (file, patched) = (&merged[*at], &candidate.files[*at]);
        // The text as it was before this run touched it stays at hand.
        let original = world.project.originals(&world.run).join(&file.path);
        if let (Some(ours), false) = (&file.ours, original.exists()) {
            write_atomically(&original, ours.as_bytes())?;
        }
        ready.push(
            Replacement::prepare(&patched.real, file.after.as_bytes())?
                .executable(file.ours.is_none() && patched.executable)?,
        );
    }
    fault::point("landing", "before");
    for (nth, (at, replacement)) in due.iter().zip(ready).enumerate() {
        // The last look stands right before the rename.
        if read(&candidate.files[*at])? != merged[*at].ours {
            if nth == 0 {
                candidate.checkpoints.forget(&candidate.at, kept)?;
            }
            return Ok(None);
        }
        replacement.put()?;
        fault::point("landing", "between");
    }
    fault::point("landing", "after");
    drop(alone);
    give_to_git(world, candidate);
    Ok(Some(landed(world, &merged)))
}

/// For people who like git better; what counts are the checkpoints.
fn give_to_git(world: &World, candidate: &Candidate) {
    if let Ok(changes) = candidate.checkpoints.changes(&candidate.at) {
        let _ = refs::record(&world.project, &world.run, &candidate.at, &changes);
    }
}

/// What landed, as the workflow knows its subject: one text, or files.
fn landed(world: &World, merged: &[Merged]) -> LandOutcome {
    if let ([file], Some(_)) = (merged, world.settings.subject.path()) {
        let hash = Hash::of(file.after.as_bytes());
        let hunks = file.landed.clone().unwrap_or_default();
        let text = file.after.clone();
        return LandOutcome::Landed(Landed { hunks, hash, text, files: Vec::new() });
    }
    let mut all = String::new();
    for file in merged {
        all.push_str(&format!("{}\0{}\n", file.path, Hash::of(file.after.as_bytes())));
    }
    let files = merged.iter().map(|file| LandedFile {
        path: file.path.clone(),
        hunks: file.landed.clone().unwrap_or_default(),
        text: file.after.clone(),
    });
    LandOutcome::Landed(Landed {
        hunks: Vec::new(),
        text: String::new(),
        hash: Hash::of(all.as_bytes()),
        files: files.collect(),
    })
}

fn intent_path(copy: &Copy) -> PathBuf {
    copy.folder().join("landing.json")
}

/// What an earlier life was about to land.
fn intent(copy: &Copy) -> io::Result<Option<Intent>> {
    let Ok(json) = fs::read(intent_path(copy)) else { return Ok(None) };
    serde_json::from_slice(&json).map(Some).map_err(io::Error::other)
}

/// The attempt whose changes are the ones that were answered for.
pub(super) fn find_copy(desk: &Path, patch: &Hash) -> Option<Copy> {
    let attempts = fs::read_dir(desk).ok()?.flatten().map(|attempt| attempt.path());
    let numbered = attempts.filter(|path| path.extension().is_none());
    let copies = numbered.map(Copy::at).filter(Copy::is_complete);
    let fitting = copies.filter(|copy| copy.changes().is_ok_and(|now| patch_hash(&now) == *patch));
    // Two attempts with one result: the later one began from the newer text.
    fitting.max_by_key(|copy| copy.folder().file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()))
}

#[cfg(test)]
mod tests;
