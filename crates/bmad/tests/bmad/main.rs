//! BMAD's files: what is read of them, and what an edit changes.
//!
//! One binary for all of them: every further one would be linked against everything again.

mod board_edits;
mod documents;
mod eras;
mod menus;
mod trees;
