//! Refuses what [`crate::style`] counts and what may not occur at all.

use crate::RuleBreach;
use crate::repository::{RepositoryTree, SourceFile};
use crate::style::{
    LARGE_CYCLE, find_import_cycles, find_patched_marks, find_tuple_parameters, is_production, read_imports,
};

pub fn check_structure(repository: &RepositoryTree) -> Vec<RuleBreach> {
    let sources: Vec<&SourceFile> = repository.sources.iter().filter(|source| is_production(&source.path)).collect();
    let tuple_breaches = sources.iter().flat_map(|source| find_tuple_parameters(source)).map(|place| {
        let message = format!(
            "a parameter of `{}` is a tuple: make it a struct with field names, or several parameters",
            place.name
        );
        RuleBreach::at_line(&place.path, place.line, message)
    });
    let mark_breaches = sources.iter().flat_map(|source| find_patched_marks(source)).map(|place| {
        let message = format!(
            "the mark `{}` keeps journals of earlier builds alive, and none was released: change the format instead",
            place.name
        );
        RuleBreach::at_line(&place.path, place.line, message)
    });
    let large_cycles =
        find_import_cycles(&read_imports(&sources)).into_iter().filter(|cycle| cycle.files.len() >= LARGE_CYCLE);
    // The breach is reported at one file, although it belongs to all of them.
    let cycle_breaches = large_cycles.flat_map(|cycle| {
        let first_file = cycle.files.first()?.clone();
        let message = format!(
            "{} files need each other: move a type down or hand a value in ({})",
            cycle.files.len(),
            cycle.files.join(", ")
        );
        Some(RuleBreach::in_file(&first_file, message))
    });
    tuple_breaches.chain(mark_breaches).chain(cycle_breaches).collect()
}
