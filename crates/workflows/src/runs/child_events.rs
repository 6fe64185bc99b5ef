//! Child runs in the effects and events of their parent, whether it waits for one of them or goes on beside it.

use crate::runs::{
    effect::{Effect, Reply},
    types::{ChildNews, ChildOutcome, ReturnedChild, RunChild, RunEvent, StartChild},
    user_request::UserRequest,
};

impl Effect {
    /// Returns the child that the effect starts or continues.
    pub fn child_request(&self) -> Option<&RunChild> {
        match self {
            Effect::RunChild(run_child) | Effect::StartChild(StartChild { child: run_child }) => Some(run_child),
            _ => None,
        }
    }
}

impl Reply {
    /// Returns what the user sent, if that is what the run was told.
    pub fn user_requests(&self) -> &[UserRequest] {
        match self {
            Reply::Inbox(user) | Reply::Wait(user) | Reply::AwaitChild(ChildNews::Word(user)) => &user.requests,
            _ => &[],
        }
    }
}

/// Returns how a child has come back, if the event says so.
pub fn find_child_outcome(event: &RunEvent) -> Option<&ChildOutcome> {
    match event {
        RunEvent::EffectFinished { reply: Reply::RunChild(outcome), .. }
        | RunEvent::ChildReturned(ReturnedChild { outcome, .. }) => Some(outcome),
        _ => None,
    }
}
