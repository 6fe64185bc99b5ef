//! Landing: a fixer's patch is applied to the user's tree, complete and checked, or not at all.
//!
//! Landing is idempotent: what is to land is recorded beside the workspace before the first file is replaced, so that a run
//! that crashed in between finds out and does the rest. The exact texts before and after are stored first (`checkpoints`), so
//! that a landing can be undone. Checks live in [`super::verify_commands`].

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

/// If the files keep changing while the checks run, the landing gives up after this many attempts.
const TRIES: u32 = 3;
/// From this many lines on, a patch that leaves less than a third of them is not a fix.
const LONG_ENOUGH: usize = 4;
/// The limit for the text that is shown of each side of a conflict.
const SHOWN_CHARS: usize = 600;

pub(super) struct Landing {
    pub at: At,
    pub patch: Hash,
    /// Files that may change; a directory with a `/` at its end allows new files in it.
    pub allowed: Vec<String>,
    pub verify: Vec<String>,
}

/// What is about to land. It is written before the first file is replaced.
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
    /// Where the texts before and after every landing are stored, and under which key this one is.
    checkpoints: Checkpoints,
    at: At,
}

impl Candidate {
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.files.iter().map(|file| file.path.clone())
    }
}

/// One file of a patch: as it was when the workspace was created (`None` if it did not exist), and as the fixer left it.
struct Patched {
    path: String,
    real: PathBuf,
    base: Option<String>,
    theirs: String,
    executable: bool,
}

/// One file with its current text and the text it will have.
#[derive(Clone)]
pub(super) struct Merged {
    pub path: String,
    ours: Option<String>,
    pub after: String,
    /// The hunks that an earlier process had computed, if it has already replaced the file.
    landed: Option<Vec<Hunk>>,
}

/// How far an attempt got.
enum Try {
    Ended(Box<LandOutcome>),
    /// Merged with the current files; the checks come next.
    Merged(Vec<Merged>),
}

/// Lands a patch. Returns `None` if the user ended a check; nothing has landed then.
pub(super) async fn perform(world: Arc<World>, landing: Landing) -> Option<LandOutcome> {
    let Some(copy) = find_copy(&world.project.desk(&world.run, &landing.at.by), &landing.patch) else {
        let detail = "the fixer's copy is gone or was changed after its answer".to_string();
        return Some(refused(Refusal::Lost { detail }));
    };
    let folder = copy.folder().to_path_buf();
    let reply = try_to(&world, landing, copy).await?;
    // A failed landing is tried again later and needs the workspace for that.
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
        // A stopped check is no fault: the next process asks for the landing again.
        Err(cause) if check::was_stopped(&cause) => None,
        Err(cause) => {
            let at = world.clone();
            let left = aside(move || left_behind(&at, &candidate)).await.ok().flatten();
            Some(left.unwrap_or_else(|| fault(cause)))
        }
    }
}

/// Undoes a landing that broke off. Files that cannot be undone have landed, and are reported as landed.
fn left_behind(world: &World, candidate: &Candidate) -> io::Result<Option<LandOutcome>> {
    if take_back(world, candidate).is_ok() {
        return Ok(None);
    }
    let Some(intent) = intent(&candidate.copy)? else { return Ok(None) };
    let mut all = Vec::new();
    for file in &candidate.files {
        // The intent tells our own text from an edit that the user made since.
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

/// Runs work on files on a separate thread, since the workflow's thread must not block.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

async fn land(world: &Arc<World>, candidate: &Arc<Candidate>, verify: &[String]) -> io::Result<LandOutcome> {
    // The checks can take minutes, so the files are merged again if the user edits them meanwhile.
    for _ in 0..TRIES {
        let (at, this) = (world.clone(), candidate.clone());
        let merged = match aside(move || merge_all(&at, &this)).await? {
            Try::Ended(reply) => return Ok(*reply),
            Try::Merged(merged) => merged,
        };
        if let Some(why) = check::check(world, candidate, verify, &merged).await? {
            // An earlier process may have replaced some of the files already; a refused patch must not stay there in part.
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

/// Returns the patch with the files it may change, or the reason why it may not land.
fn candidate(world: &World, landing: &Landing, copy: Copy) -> io::Result<Result<Candidate, Refusal>> {
    let changes = copy.changes()?;
    if changes.is_empty() {
        return Ok(Err(Refusal::Lost { detail: "it changes nothing".to_string() }));
    }
    let mut outside = Vec::new();
    let had = copy.all()?;
    // What a build leaves behind in ignored places is not part of a fix.
    // Only new files are asked about: a tracked file counts even if a pattern ignores it.
    let ignored = git::ignored(world.project.root(), changes.keys().filter(|path| !had.contains(*path)));
    for path in changes.keys().filter(|path| !ignored.contains(*path)) {
        let is_new = !had.contains(path);
        // All outside paths are collected first, so that the fixer learns about all of them at once.
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
        // All changed files are ignored ones, so nothing of the patch would land.
        return Ok(Err(Refusal::Lost { detail: "it changes nothing that counts".to_string() }));
    }
    let checkpoints = Checkpoints::of(&world.project, &world.run);
    Ok(Ok(Candidate { copy, files, checkpoints, at: landing.at.clone() }))
}

/// A new file may be created in a directory that is named, or among tests, but never one that configures tools.
fn may_be_made(path: &str, allowed: &[String]) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let parts: Vec<&str> = path.split('/').collect();
    // Hidden files configure tools, too: `.github`, `.env`, `.npmrc`.
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
    // A file that did not exist has no base; asking for one would be an error.
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
    // Agents sometimes replace a file by a summary or a placeholder such as "rest unchanged".
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

/// Returns the number of lines before and after, if most of them would be gone.
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

/// Restores the line ends of the base text: an agent that changes them has not fixed anything.
fn with_line_ends_of(base: &str, text: String) -> String {
    let ends = |text: &str| (text.matches('\n').count(), text.matches("\r\n").count());
    match (ends(base), ends(&text)) {
        // Only a text with uniform line ends is converted; in a mixed one it is not known which are meant.
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
            // An earlier process had already replaced this file.
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
    // Nothing is left to do, but the crash may have come before git got its commit.
    if all.iter().all(|file| file.landed.is_some()) {
        give_to_git(world, candidate);
        return Ok(Try::Ended(Box::new(landed(world, &all))));
    }
    Ok(Try::Merged(all))
}

/// Removes what an earlier process landed before it was killed between two files, if the remaining files can no longer follow.
fn take_back(world: &World, candidate: &Candidate) -> io::Result<()> {
    if intent(&candidate.copy)?.is_none() {
        return Ok(());
    }
    let _alone = locks::alone(&world.project.locks())?;
    // The user's tree is locked before the current texts are read, so that they stay as read.
    for change in candidate.checkpoints.changes(&candidate.at)? {
        let Some(file) = candidate.files.iter().find(|file| file.path == change.path) else { continue };
        let now = read(file)?;
        // The file does not contain the change, so there is nothing to remove from it.
        if !change.is_in(now.as_deref()) {
            continue;
        }
        match (&change.before, &change.after, now) {
            (None, ..) => fs::remove_file(&file.real)?,
            (Some(before), Some(after), Some(now)) => {
                // The user's edits since then stay.
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

/// Reads the file as it is now. Returns `None` if it does not exist.
fn read(file: &Patched) -> io::Result<Option<String>> {
    // A link leads to another file, and the link itself belongs to the user.
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
        // The fixer and the user created the same file with different texts.
        (None, Some(ours)) => {
            Ok(Err(both(Conflict { line: 1, ours: ours.to_string(), theirs: file.theirs.clone() })))
        }
    }
}

/// Replaces the files. Returns `None` if one was edited while the checks ran; the edit is not overwritten.
fn put(world: &World, candidate: &Candidate, mut merged: Vec<Merged>) -> io::Result<Option<LandOutcome>> {
    // Files that an earlier process had already replaced are not written again.
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
    // From here on no other process of this project writes into the user's tree.
    let alone = locks::alone(&world.project.locks())?;
    // The checkpoint comes first: everything that is found to have landed can then be undone.
    let kept = candidate.checkpoints.keep(&candidate.at, &changes)?;
    let puts = merged.iter().map(|file| {
        let hunks = file.landed.clone().unwrap_or_default();
        (file.path.clone(), Put { after: Hash::of(file.after.as_bytes()), hunks })
    });
    let json = serde_json::to_vec(&Intent { files: puts.collect() }).map_err(io::Error::other)?;
    // The intent comes before the first rename: a later process tells from it which files have landed.
    write_atomically(&intent_path(&candidate.copy), &json)?;
    // All replacements are prepared before the first rename, so that a full disk cannot stop the landing halfway.
    let mut ready = Vec::new();
    for at in &due {
        let (file, patched) = (&merged[*at], &candidate.files[*at]);
        // The text from before this run's first change is kept.
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
        // The last comparison comes right before the rename, which keeps the moment short in which an edit would be lost.
        if read(&candidate.files[*at])? != merged[*at].ours {
            // Nothing has landed yet, so the record would describe a landing that never happened.
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

/// Records the landing in git for users who prefer to look there; the checkpoints are what counts.
fn give_to_git(world: &World, candidate: &Candidate) {
    if let Ok(changes) = candidate.checkpoints.changes(&candidate.at) {
        let _ = refs::record(&world.project, &world.run, &candidate.at, &changes);
    }
}

/// Reports what landed in the form in which the workflow knows its subject: one text, or files.
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

/// Reads what an earlier process was about to land.
fn intent(copy: &Copy) -> io::Result<Option<Intent>> {
    let Ok(json) = fs::read(intent_path(copy)) else { return Ok(None) };
    serde_json::from_slice(&json).map(Some).map_err(io::Error::other)
}

/// Finds the attempt whose changes are those that the fixer answered for.
pub(super) fn find_copy(desk: &Path, patch: &Hash) -> Option<Copy> {
    let attempts = fs::read_dir(desk).ok()?.flatten().map(|attempt| attempt.path());
    let numbered = attempts.filter(|path| path.extension().is_none());
    let copies = numbered.map(Copy::at).filter(Copy::is_complete);
    let fitting = copies.filter(|copy| copy.changes().is_ok_and(|now| patch_hash(&now) == *patch));
    // Two attempts may have the same result; the later one started from the newer text.
    fitting.max_by_key(|copy| copy.folder().file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()))
}

#[cfg(test)]
mod tests;
