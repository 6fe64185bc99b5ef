//! The dialog of a run with its user, and what it asks about by itself.

pub mod stray_edits;
pub mod user_dialog;
