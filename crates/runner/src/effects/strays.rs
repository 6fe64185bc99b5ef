//! Stray edits: what changed in the user's tree while an agent worked, other than by a landing.
//!
//! Whether the agent or the user made such an edit cannot be told from here, so the workflow asks. The earlier content is
//! stored first, so that it can be restored.

use std::{fs, io, path::Path};

use tribunal_core::{effect::RestoreOutcome, files::Stray, ids::Hash};

use super::{World, world_fault};
use crate::{
    checkpoints::Checkpoints,
    copies::{Copy, Moved, Watch},
    files::write_atomically,
    git::git,
    locks,
    merging::merge,
    parking::park_file,
    subject::{is_plain, link_on_the_way},
};

/// Returns all files that are no longer as they were when the agent began.
pub(super) fn since(world: &World, copy: &Copy, watch: &Watch) -> Vec<Stray> {
    let own = own_folders(world);
    let mut strays = Vec::new();
    for Moved { path, before, after } in watch.moved(world.project.root()) {
        // Landings of this and of other runs change files as well; those are not strays.
        let ours = Checkpoints::is_known(&world.project, &path, after.as_ref());
        if ours || own.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let mut stray = Stray { path, before, after, kept: false };
        stray.kept = keep(world, copy, &stray);
        strays.push(stray);
    }
    strays
}

/// Lists the directories that Tribunal writes into.
fn own_folders(world: &World) -> [String; 2] {
    let reviews = world.settings.reviews.trim_end_matches('/');
    let beside = reviews.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!("{folder}/"));
    [format!("{reviews}/"), format!("{beside}awaiting-human/")]
}

/// Stores both versions of the file. Returns whether the earlier one is available: the workspace may have been changed as
/// well, but git may still have the content.
fn keep(world: &World, copy: &Copy, stray: &Stray) -> bool {
    let checkpoints = Checkpoints::of(&world.project, &world.run);
    let real = world.project.root().join(&stray.path);
    if let Some(now) = plain(&real).filter(|now| Some(Hash::of(now)) == stray.after) {
        let _ = checkpoints.keep_bytes(&now);
    }
    // A file that did not exist needs no stored content: restoring it means removing it.
    let Some(before) = &stray.before else { return true };
    let from_copy =
        || copy.base(&stray.path).ok().flatten().or_else(|| plain(&copy.tree().join(&stray.path)));
    let known = |bytes: &Vec<u8>| Hash::of(bytes) == *before;
    let bytes = from_copy().filter(known).or_else(|| staged(world, &stray.path).filter(known));
    bytes.is_some_and(|bytes| checkpoints.keep_bytes(&bytes).is_ok())
}

/// Reads an ordinary file of a reasonable size.
fn plain(path: &Path) -> Option<Vec<u8>> {
    let meta = fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= MOST_BYTES)?;
    let bytes = fs::read(path).ok()?;
    // A different length means that the file was being written at that moment.
    (bytes.len() as u64 == meta.len()).then_some(bytes)
}

/// Reads the file from git's index.
fn staged(world: &World, path: &str) -> Option<Vec<u8>> {
    let output = git(world.project.root()).args(["cat-file", "blob", &format!(":./{path}")]).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// Longer files are not stored.
const MOST_BYTES: u64 = 64 << 20;

/// Restores a file as it was before the stray edit.
pub(super) fn restore(world: &World, stray: &Stray) -> RestoreOutcome {
    match put_back(world, stray) {
        Ok(parked) => RestoreOutcome::Restored { parked },
        Err(cause) => world_fault(cause.to_string()).into(),
    }
}

fn put_back(world: &World, stray: &Stray) -> io::Result<Option<String>> {
    let real = world.project.root().join(&stray.path);
    if !is_plain(&stray.path) || real.is_symlink() {
        return Err(io::Error::other("there is no such file any more"));
    }
    // Writing through a linked directory would change a file outside the project.
    if let Some(link) = link_on_the_way(world.project.root(), &stray.path) {
        return Err(io::Error::other(format!("it leads elsewhere: {link} is a link")));
    }
    let bytes = match &stray.before {
        Some(hash) => Some(
            Checkpoints::of(&world.project, &world.run)
                .bytes(hash)
                .map_err(|_| io::Error::other("what stood there was not kept"))?,
        ),
        None => None,
    };
    // The current text is read under the lock, so that no landing can change it in between.
    let _alone = locks::alone(&world.project.locks())?;
    let now = match fs::read(&real) {
        Ok(now) => Some(now),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
        Err(cause) => return Err(cause),
    };
    if now == bytes {
        return Ok(None);
    }
    // The current text is parked before it is replaced: it may be the only copy.
    let parked = match &now {
        Some(now) => {
            let path = park_file(&world.project, &world.run, &stray.path, now)?;
            Some(path.display().to_string())
        }
        None => None,
    };
    match (without(world, stray, now.as_deref(), bytes)?, now.is_some()) {
        (Some(bytes), _) => write_atomically(&real, &bytes)?,
        (None, true) => fs::remove_file(&real)?,
        (None, false) => {}
    }
    Ok(parked)
}

/// Returns the text without the stray edit. Later edits, by a landing or by the user, stay.
fn without(
    world: &World,
    stray: &Stray,
    now: Option<&[u8]>,
    before: Option<Vec<u8>>,
) -> io::Result<Option<Vec<u8>>> {
    // Nothing has changed since the edit was noticed, so the earlier content is the result.
    if now.map(Hash::of) == stray.after {
        return Ok(before);
    }
    let moved = || io::Error::other("it has been changed since, and the two cannot be told apart");
    let after = stray.after.as_ref().ok_or_else(moved)?;
    let after = Checkpoints::of(&world.project, &world.run).bytes(after).map_err(|_| moved())?;
    let texts = [Some(after), now.map(<[u8]>::to_vec), before].map(|bytes| String::from_utf8(bytes?).ok());
    let [Some(after), Some(now), Some(before)] = texts else { return Err(moved()) };
    merge(&after, &now, &before).map(|text| Some(text.into_bytes())).map_err(|_| moved())
}
