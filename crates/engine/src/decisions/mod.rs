//! Questions to the user, and what the user says.

pub mod answer;
pub mod decision;
pub mod dialog;
pub mod stray_edits;
pub mod user_remark;
