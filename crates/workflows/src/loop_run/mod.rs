//! The headless loop: an agent gets the same task again and again in a workspace of its own, until it says that the task is done
//! and the checks agree.
//!
//! [`order`] has what was asked, [`state`] what the loop knows between two iterations, [`workflow`] the stages. One iteration is
//! in [`iteration`], what it is told in [`prompt`], what counts as done in [`completion`], how the work gets onto the branch in
//! [`landing`]. [`breaker`] stops a loop that makes no progress.

pub mod breaker;
mod breaker_gate;
mod completion;
pub mod event;
mod halting;
mod iteration;
mod landing;
mod loop_host;
pub mod order;
mod preparation;
mod prompt;
mod review_pass;
pub mod state;
pub mod view;
mod workflow;
