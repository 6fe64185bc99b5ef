//! What runs that work in stages have in common: a boundary follows every stage, and the run waits for its user in between.

pub mod exit;
pub mod run;
