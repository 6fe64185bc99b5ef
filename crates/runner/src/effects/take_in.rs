//! Accepts edits that were made directly in the subject's files, for example by a session of the user. They are in place
//! already, so there is nothing to land and nothing to undo, but the same checks apply.

use std::{io, sync::Arc};

use tribunal_core::{
    effect::{LandOutcome, Landed},
    files::{FrozenFile, LandedFile, Refusal},
    ids::{Hash, Key},
};

use super::{
    World, check,
    land::{aside, gutted},
    world_fault,
};
use crate::{copies::Copy, merging::hunks, subject};

/// Accepts the edits. Returns `None` if the user ended a check.
pub(super) async fn perform(
    world: Arc<World>,
    key: Key,
    before: Vec<FrozenFile>,
    verify: Vec<String>,
) -> Option<LandOutcome> {
    let at = world.clone();
    let files = match aside(move || Ok(look(&at, &before))).await {
        Ok(Ok(files)) => files,
        Ok(Err(why)) => return Some(LandOutcome::Refused { why }),
        Err(cause) => return Some(fault(&cause)),
    };
    // Without a change there is nothing to verify.
    let changed = files.iter().any(|file| !file.hunks.is_empty());
    if changed {
        let copy = Copy::at(world.project.desk(&world.run, &key));
        let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        match check::judge(&world, copy, paths, &verify, Vec::new()).await {
            Ok(None) => {}
            Ok(Some(why)) => return Some(LandOutcome::Refused { why }),
            Err(cause) if check::was_stopped(&cause) => return None,
            Err(cause) => return Some(fault(&cause)),
        }
    }
    let (hunks, text, hash) = (Vec::new(), String::new(), hash_of(&files));
    Some(LandOutcome::Landed(Landed { hunks, text, hash, files }))
}

fn fault(cause: &io::Error) -> LandOutcome {
    world_fault(format!("what was changed could not be looked at: {cause}")).into()
}

/// Hashes the files as the panel will see them: for a single file its text, for a change all its files.
fn hash_of(files: &[LandedFile]) -> Hash {
    match files {
        [file] => Hash::of(file.text.as_bytes()),
        files => {
            let all: Vec<String> =
                files.iter().map(|file| format!("{}\n{}\n", file.path, file.text)).collect();
            Hash::of(all.concat().as_bytes())
        }
    }
}

fn look(world: &World, before: &[FrozenFile]) -> Result<Vec<LandedFile>, Refusal> {
    let root = world.project.root();
    let mut files = Vec::new();
    for file in before {
        let path = file.path.as_str();
        let text = subject::stays_inside(root, path).and_then(|()| subject::load(root, path));
        let text = text.map_err(|problem| Refusal::Lost { detail: problem.to_string() })?;
        // Removing the text is not a repair.
        if let Some((before, after)) = gutted(&file.text, &text) {
            return Err(Refusal::Gutted { before, after });
        }
        files.push(LandedFile { path: path.to_string(), hunks: hunks(&file.text, &text), text });
    }
    Ok(files)
}
