//! Removing what is no longer needed: discarded runs, old blobs, directories of ended runs.

pub mod development_workspaces;
pub mod discarded_runs;
pub mod gc;
