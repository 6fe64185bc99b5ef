//! BMAD's files: how they are read, and what an edit changes.
//!
//! All tests are one binary: each further one would be linked against everything again.

mod board_edits;
mod corpus;
mod documents;
mod eras;
mod menus;
mod trees;
