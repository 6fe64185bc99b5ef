//! What reports of runs consist of. The reporters of the kinds make the parts, and [`crate::run_report`] puts them together.

pub mod document;
pub(crate) mod section;
pub mod usage;
pub mod verdict;
