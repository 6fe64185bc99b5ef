//! One frozen copy for all reviewers of a round.

use tribunal_core::{
    effect::Reply,
    ids::{Hash, Key},
    subject::Subject,
};

use super::{World, world_fault};
use crate::{
    copies::{Copy, Source},
    subject,
};

pub(super) fn perform(world: &World, key: &Key, subject: &Subject) -> Reply {
    let Some(path) = subject.path() else {
        return world_fault(format!("{} is not a file; only files can be reviewed so far", subject.title()));
    };
    let inside = subject::stays_inside(world.project.root(), path);
    if let Err(problem) = inside.and_then(|()| subject::load(world.project.root(), path)) {
        return world_fault(problem.to_string());
    }
    let copy = Copy::at(world.project.desk(&world.run, key));
    let files = [path.to_string()];
    let source = Source { root: world.project.root(), files: &files, tree: None, seeds: &[] };
    if let Err(cause) = copy.make(&source) {
        return world_fault(format!("a copy of {path} could not be made: {cause}"));
    }
    // What the reviewers will read is what is recorded, whatever happens to the original meanwhile.
    match subject::load(&copy.tree(), path) {
        Ok(text) => Reply::Frozen { hash: Hash::of(text.as_bytes()), text },
        Err(problem) => world_fault(problem.to_string()),
    }
}
