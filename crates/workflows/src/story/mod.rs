//! One story: its file is written if that is missing, an agent develops it, checks and rules verify the work, a panel reviews it, and
//! the result lands as one commit.
//!
//! [`order`] has what was asked, [`state`] what is known between two stages, [`workflow`] the stages. [`facts`] has what files and git
//! say about a story, and [`verification`] what follows from it: what an agent says is never enough. One session of an agent is in
//! `sessions`, the review in `review_cycle`, the commit and the branch in `landing`, what waits for the user in `halting`,
//! and what becomes of work in the user's checkout meanwhile in `parking`.

pub mod event;
pub mod facts;
mod halting;
mod landing;
pub mod order;
mod parking;
mod preparation;
mod prompt;
mod review_cycle;
mod sessions;
pub mod state;
mod story_host;
pub mod verification;
pub mod view;
mod workflow;
