//! Questions to the user, and what the user requests from a run.

pub mod answer;
pub mod decision;
pub mod dialog;
pub mod stray_edits;
pub mod user_request;
