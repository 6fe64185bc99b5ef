//! A sprint: the stories of the board one after the other, each as a child run.
//!
//! Before each story the board is read anew: what the board calls done is done, also if the user did it. [`facts`] has what the board
//! and the plan say, [`selection`] which story comes next and why others do not, [`claims`] which stories other runs work on, [`forecast`]
//! which retrospectives a sprint would hold, [`plan_changes`] what is new in the plan. A story that
//! cannot continue is parked with its question; the sprint continues with what does not depend on it. [`order`] has what was asked,
//! [`state`] what is known between two stories, `workflow` the order of things, `retrospective` what is learned at the end of an epic,
//! and [`requests`] what a remark of the user asks the sprint itself to do.

pub mod claims;
pub mod event;
pub mod facts;
pub mod forecast;
mod halting;
pub mod order;
pub mod plan_changes;
pub mod requests;
mod retrospective;
pub mod scope;
pub mod selection;
mod sprint_host;
pub mod standing;
pub mod state;
pub mod view;
mod workflow;
