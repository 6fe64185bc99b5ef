//! What somebody changed in the subject's files themselves: a session that the person has open, say. It stands there already,
//! so there is nothing to land and nothing to take back; but the same checks judge it.

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

/// None: a check was ended on the person's word.
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

/// As the panel will see it: of one file its text, of a change all its files.
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
        // Who takes the text away has not repaired it.
        if let Some((before, after)) = gutted(&file.text, &text) {
            return Err(Refusal::Gutted { before, after });
        }
        files.push(LandedFile { path: path.to_string(), hunks: hunks(&file.text, &text), text });
    }
    Ok(files)
}
