//! Removing what is no longer needed (discarded runs, old blobs, directories of ended runs), and recovering what is left of a
//! damaged journal.

pub mod development_workspaces;
pub mod discarded_runs;
pub mod gc;
pub mod recovery;
