//! Patches that reach the user's files: merging, checkpoints around each landing, their record for git, and undoing them.

pub(crate) mod checkpoints;
pub(crate) mod landing_repository;
pub mod landings;
pub(crate) mod line_diff;
pub(crate) mod merging;
pub(crate) mod parked_files;
pub(crate) mod touching_edits;
pub mod undo;
