//! Refuses what [`crate::style`] counts and what may not occur at all.

use crate::Breach;
use crate::style::{LARGE_CIRCLE, find_circles, find_patched_marks, find_tuple_parameters, is_production};
use crate::tree::{Source, Tree};

pub fn check(tree: &Tree) -> Vec<Breach> {
    let sources: Vec<&Source> = tree.sources.iter().filter(|source| is_production(&source.path)).collect();
    let tuples = sources.iter().flat_map(|source| find_tuple_parameters(source)).map(|place| {
        let message = format!(
            "a parameter of `{}` is a tuple: make it a struct with field names, or several parameters",
            place.name
        );
        Breach::at_line(&place.path, place.line, message)
    });
    let marks = sources.iter().flat_map(|source| find_patched_marks(source)).map(|place| {
        let message = format!(
            "the mark `{}` keeps journals of earlier builds alive, and none was released: change the format instead",
            place.name
        );
        Breach::at_line(&place.path, place.line, message)
    });
    let circles = find_circles(&sources).into_iter().filter(|circle| circle.files.len() >= LARGE_CIRCLE);
    // The breach is reported at one file, although it belongs to all of them.
    let circles = circles.flat_map(|circle| {
        let first = circle.files.first()?.clone();
        let message = format!(
            "{} files need each other: move a type down or hand a value in ({})",
            circle.files.len(),
            circle.files.join(", ")
        );
        Some(Breach::in_file(&first, message))
    });
    tuples.chain(marks).chain(circles).collect()
}
