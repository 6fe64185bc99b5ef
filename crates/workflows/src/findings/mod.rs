//! Findings and what they are about: the words that reviews, stories, loops and tasks share. How findings are grounded, merged,
//! challenged and repaired is a matter of [`crate::review`].

pub mod agent_role;
pub mod counts;
pub mod finding;
pub mod reported_finding;
pub mod seat_plan;
pub mod subject;
