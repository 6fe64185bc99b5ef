//! Writes past a copy: what changed in the person's tree while an agent was at work, and not by a landing.
//!
//! Whether an agent or the person did it cannot be told from here; the workflow asks. What stood there before is kept
//! first, so that it can be put back.

use std::{fs, io};

use tribunal_core::{
    effect::{Reply, Stray},
    ids::Hash,
};

use super::{World, world_fault};
use crate::{
    checkpoints::Checkpoints,
    copies::{Copy, Moved, Watch},
    files::write_atomically,
    locks,
    parking::park_file,
    subject::is_plain,
};

/// Whether a run of this project has put it there, or taken it back: whoever finds it so has found nothing strange. Such texts
/// are kept before they are put anywhere.
fn is_ours(world: &World, hash: &Hash) -> bool {
    let runs = fs::read_dir(world.project.home().join("checkpoints")).into_iter().flatten().flatten();
    runs.into_iter().any(|run| run.path().join("texts").join(hash.as_str()).exists())
}

/// What is not as it was when an agent began. Where the tree cannot be looked at, nothing is claimed.
pub(super) fn since(world: &World, copy: &Copy, watch: Option<&Watch>) -> Vec<Stray> {
    watch.and_then(|watch| look(world, copy, watch).ok()).unwrap_or_default()
}

fn look(world: &World, copy: &Copy, watch: &Watch) -> io::Result<Vec<Stray>> {
    let own = own_folders(world);
    let mut strays = Vec::new();
    for Moved { path, before, after } in copy.moved_since(world.project.root(), watch)? {
        let ours = after.as_ref().is_some_and(|hash| is_ours(world, hash));
        if ours || own.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let stray = Stray { path, before, after };
        keep(world, copy, &stray);
        strays.push(stray);
    }
    Ok(strays)
}

/// Folders that Tribunal writes into.
fn own_folders(world: &World) -> [String; 2] {
    let reviews = world.settings.reviews.trim_end_matches('/');
    let beside = reviews.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!("{folder}/"));
    [format!("{reviews}/"), format!("{beside}awaiting-human/")]
}

/// Keeps what stood there, if the copy still has it.
fn keep(world: &World, copy: &Copy, stray: &Stray) {
    let Some(before) = &stray.before else { return };
    let bytes = match copy.base(&stray.path) {
        Ok(Some(bytes)) => bytes,
        _ => fs::read(copy.tree().join(&stray.path)).unwrap_or_default(),
    };
    if Hash::of(&bytes) == *before {
        let _ = Checkpoints::of(&world.project, &world.run).keep_bytes(&bytes);
    }
}

/// Puts a file back as it was.
pub(super) fn restore(world: &World, stray: &Stray) -> Reply {
    match put_back(world, stray) {
        Ok(parked) => Reply::Restored { parked },
        Err(cause) => world_fault(cause.to_string()),
    }
}

fn put_back(world: &World, stray: &Stray) -> io::Result<Option<String>> {
    let real = world.project.root().join(&stray.path);
    if !is_plain(&stray.path) || world.project.leads_out(&real).is_some() {
        return Err(io::Error::other("it leads out of the project"));
    }
    let bytes = match &stray.before {
        Some(hash) => Some(
            Checkpoints::of(&world.project, &world.run)
                .bytes(hash)
                .map_err(|_| io::Error::other("what stood there was not kept"))?,
        ),
        None => None,
    };
    let _alone = locks::alone(&world.project.locks())?;
    let now = match fs::read(&real) {
        Ok(now) => Some(now),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
        Err(cause) => return Err(cause),
    };
    if now == bytes {
        return Ok(None);
    }
    let parked = match &now {
        Some(now) => {
            let path = park_file(&world.project, &world.run, &stray.path, now)?;
            Some(path.display().to_string())
        }
        None => None,
    };
    match bytes {
        Some(bytes) => {
            write_atomically(&real, &bytes)?;
        }
        None => fs::remove_file(&real)?,
    }
    Ok(parked)
}
