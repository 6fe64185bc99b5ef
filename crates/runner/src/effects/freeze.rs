//! Creates the frozen workspace that all reviewers of a round share.

use std::{fs, io};

use tribunal_core::{
    effect::{FreezeOutcome, FrozenSubject},
    files::FrozenFile,
    ids::{Hash, Key},
    subject::{Change, Subject},
};

use super::{World, difference, world_fault};
use crate::{
    copies::{Copy, Source},
    subject,
};

pub(super) fn perform(world: &World, key: &Key, subject: &Subject) -> FreezeOutcome {
    let copy = Copy::at(world.project.desk(&world.run, key));
    match subject {
        Subject::Change(change) => match of_change(world, &copy, change) {
            Ok(reply) => reply,
            Err(cause) => world_fault(format!("the change {} cannot be had: {cause}", change.range)).into(),
        },
        Subject::Document { path, .. } | Subject::Source { path } => of_file(world, &copy, path),
    }
}

fn of_file(world: &World, copy: &Copy, path: &str) -> FreezeOutcome {
    let root = world.project.root();
    let inside = subject::stays_inside(root, path);
    // The original is loaded only to report early why it cannot be reviewed.
    if let Err(problem) = inside.and_then(|()| subject::load(root, path)) {
        return world_fault(problem.to_string()).into();
    }
    let files = [path.to_string()];
    let made = copy.make(&Source { root, files: &files, tree: None, seeds: &world.seeds() });
    let remarks = match made {
        Ok(made) => made.remarks,
        Err(cause) => return world_fault(format!("a copy of {path} could not be made: {cause}")).into(),
    };
    // The frozen text is recorded, so that later edits of the original do not matter.
    match subject::load(&copy.tree(), path) {
        Ok(text) => {
            let hash = Hash::of(text.as_bytes());
            FreezeOutcome::Frozen(FrozenSubject { hash, text, files: Vec::new(), remarks })
        }
        Err(problem) => world_fault(problem.to_string()).into(),
    }
}

fn of_change(world: &World, copy: &Copy, change: &Change) -> io::Result<FreezeOutcome> {
    let remarks = make(world, copy, change)?;
    let diff = difference::between(world, copy, change)?;
    // The prompts of the reviewers contain exactly this text.
    fs::write(copy.folder().join(difference::NAME), &diff)?;
    let mut files = Vec::new();
    let mut all = diff.clone();
    for file in &change.files {
        if let Some(bytes) = copy.base(&file.path)? {
            let text = difference::text(&file.path, bytes)?;
            // The hash covers the whole files and not only the diff: quotes may come from anywhere in them.
            all.push_str(&format!("\n{}\n{text}", file.path));
            files.push(FrozenFile { path: file.path.clone(), text });
        }
    }
    let hash = Hash::of(all.as_bytes());
    Ok(FreezeOutcome::Frozen(FrozenSubject { text: diff, hash, files, remarks }))
}

/// Creates a workspace with the repository as it is after the change. Returns what agents will not find in it.
pub(super) fn make(world: &World, copy: &Copy, change: &Change) -> io::Result<Vec<String>> {
    let root = world.project.root();
    let files: Vec<String> = change.files.iter().map(|file| file.path.clone()).collect();
    let made =
        copy.make(&Source { root, files: &files, tree: change.end.as_deref(), seeds: &world.seeds() })?;
    Ok(made.remarks)
}
