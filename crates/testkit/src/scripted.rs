//! A world that answers by script: an effect that the script does not name fails the test.

use std::collections::BTreeMap;

use tribunal_core::{
    desk::Ask,
    effect::{Effect, Elapsed, PostOutcome, Reply, Request, Requests, WriteOutcome},
    level::Role,
    reason::{Ending, Reason},
};

use crate::{
    samples,
    trial::{Performed, World},
};

/// Replies by key. Without a scripted reply files are written, sleeps elapse, inboxes are empty, and challengers uphold
/// everything.
#[derive(Debug, Default)]
pub struct ScriptedWorld {
    replies: BTreeMap<String, Reply>,
    once: BTreeMap<String, Reply>,
    /// Whether a wait that parked an earlier run of the workflow is answered by resuming, as the real host does.
    pub resumes: bool,
    /// The keys of the effects in the order in which they were performed.
    pub performed: Vec<String>,
}

impl ScriptedWorld {
    /// Sets a reply for the first time only; later the rest of the script decides.
    pub fn once(mut self, key: &str, reply: Reply) -> ScriptedWorld {
        self.once.insert(key.to_string(), reply);
        self
    }

    /// Sets the reply to an effect.
    pub fn on(mut self, key: &str, reply: Reply) -> ScriptedWorld {
        self.replies.insert(key.to_string(), reply);
        self
    }
}

impl World for ScriptedWorld {
    fn perform(&mut self, ask: &Ask) -> Performed {
        self.performed.push(ask.key.to_string());
        // A reply for one time takes precedence over the lasting one.
        if let Some(reply) = self.once.remove(ask.key.as_str()) {
            return Performed::Reply(reply);
        }
        if let Some(reply) = self.replies.get(ask.key.as_str()) {
            return Performed::Reply(reply.clone());
        }
        match &ask.effect {
            Effect::Write(_) => Performed::Reply(Reply::Write(WriteOutcome::Written {
                path: format!("{}-issues.md", ask.key),
                aside: None,
                strange: Vec::new(),
            })),
            Effect::Sleep(_) => Performed::Reply(Reply::Sleep(Elapsed {})),
            Effect::AwaitReset(_) => Performed::Reply(Reply::AwaitReset(Elapsed {})),
            Effect::Post(_) => Performed::Reply(Reply::Post(PostOutcome::Posted)),
            Effect::Inbox(_) => Performed::Reply(Reply::Inbox(Requests::default())),
            Effect::Ask(asked) if asked.task.brief.role == Role::Challenger => {
                Performed::Reply(samples::upheld(&asked.task.brief))
            }
            Effect::Wait(_) if ask.again && self.resumes => {
                Performed::Reply(Reply::Wait(Requests { requests: vec![Request::Resume] }))
            }
            Effect::Wait(wait) => Performed::Park(wait.ending.clone()),
            // Parking with this reason makes the test fail with the name of the missing effect.
            other => Performed::Park(Ending::new(
                Reason::Environment,
                format!("the script says nothing about {}: {other:?}", ask.key),
            )),
        }
    }
}
