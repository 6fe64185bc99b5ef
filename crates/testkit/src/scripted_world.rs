//! A world that answers by script: an effect that the script does not name fails the test.

use std::collections::BTreeMap;

use tribunal_engine::{
    effect::{Elapsed, PostOutcome},
    reason::{RunEnding, RunReason},
};
use tribunal_workflows::{
    runs::{
        effect::{Effect, LandOutcome, Reply, WriteOutcome},
        types::{PendingEffect, Requests},
        user_request::UserRequest,
    },
    tasks::client::JobKind,
};

use crate::{
    record_table::RecordTable,
    samples,
    trial::{EffectResult, SimulatedWorld},
};

/// Replies by key. Without a scripted reply files are written, sleeps elapse, inboxes are empty, checks pass, project
/// records are kept, and challengers uphold everything.
#[derive(Debug, Default)]
pub struct ScriptedWorld {
    replies: BTreeMap<String, Reply>,
    first_replies: BTreeMap<String, Reply>,
    /// Whether a wait that parked an earlier run of the workflow is answered by resuming, as the real host does.
    pub resumes_waits: bool,
    /// The project records, which the next run's world may be given.
    pub records: RecordTable,
    /// The keys of the effects in the order in which they were performed.
    pub performed_keys: Vec<String>,
}

impl ScriptedWorld {
    /// Sets a reply for the first time only; later the rest of the script decides.
    pub fn reply_once(mut self, effect_key: &str, reply: Reply) -> ScriptedWorld {
        self.first_replies.insert(effect_key.to_string(), reply);
        self
    }

    /// Starts with the project records that an earlier run left.
    pub fn with_records(mut self, records: &RecordTable) -> ScriptedWorld {
        self.records = records.clone();
        self
    }

    /// Sets the reply to an effect.
    pub fn reply_on(mut self, effect_key: &str, reply: Reply) -> ScriptedWorld {
        self.replies.insert(effect_key.to_string(), reply);
        self
    }
}

impl ScriptedWorld {
    /// Returns the next scripted reply to an effect without using it up.
    fn find_reply(&self, effect_key: &str) -> Option<Reply> {
        self.first_replies.get(effect_key).or_else(|| self.replies.get(effect_key)).cloned()
    }
}

impl SimulatedWorld for ScriptedWorld {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        self.performed_keys.push(ask.effect_key.to_string());
        // A reply for one time takes precedence over the lasting one.
        if let Some(reply) = self.first_replies.remove(ask.effect_key.as_str()) {
            return EffectResult::Reply(reply);
        }
        if let Some(reply) = self.replies.get(ask.effect_key.as_str()) {
            return EffectResult::Reply(reply.clone());
        }
        match &ask.effect {
            // A preview shows what lands, and a judge sees the text that the round has read.
            Effect::Land(landing) if landing.preview => match self.find_reply(landing.by.landing_key().as_str()) {
                Some(landing_reply) => {
                    let mut preview_reply = samples::preview_of(landing_reply);
                    if let Reply::Land(LandOutcome::Previewed(change)) = &mut preview_reply {
                        change.hunks.retain(|hunk| !landing.without.iter().any(|part| part.hunk == *hunk));
                    }
                    EffectResult::Reply(preview_reply)
                }
                None => EffectResult::Park(RunEnding::new(
                    RunReason::Environment,
                    format!("no scripted landing for {}", landing.by),
                )),
            },
            Effect::Freeze(_) if ask.effect_key.as_str().contains("/judge/") => {
                let round_key = ask.effect_key.as_str().split('/').next().unwrap_or_default();
                let round_reply = self.find_reply(&format!("{round_key}/freeze"));
                EffectResult::Reply(round_reply.unwrap_or_else(|| samples::frozen_reply("")))
            }
            Effect::Write(_) => EffectResult::Reply(Reply::Write(WriteOutcome::Written {
                path: format!("{}-issues.md", ask.effect_key),
                kept_copy: None,
                unusable_edits: Vec::new(),
            })),
            Effect::Sleep(_) => EffectResult::Reply(Reply::Sleep(Elapsed {})),
            Effect::AwaitReset(_) => EffectResult::Reply(Reply::AwaitReset(Elapsed {})),
            Effect::Post(_) => EffectResult::Reply(Reply::Post(PostOutcome::Posted)),
            Effect::ReadRecords(request) => EffectResult::Reply(self.records.read_records(request)),
            Effect::WriteRecords(request) => EffectResult::Reply(self.records.write_records(request, "trial")),
            Effect::Inbox(_) => EffectResult::Reply(Reply::Inbox(Requests::default())),
            Effect::Checks(request) => EffectResult::Reply(samples::passed_checks_reply(&request.checks)),
            Effect::Ask(asked) if asked.task.job == JobKind::Challenge => {
                EffectResult::Reply(samples::upholding_reply(&asked.task.brief))
            }
            Effect::Wait(_) if ask.resumed && self.resumes_waits => {
                EffectResult::Reply(Reply::Wait(Requests { requests: vec![UserRequest::Resume] }))
            }
            Effect::Wait(wait) => EffectResult::Park(wait.ending.clone()),
            // Parking with this reason makes the test fail with the name of the missing effect.
            unscripted => EffectResult::Park(RunEnding::new(
                RunReason::Environment,
                format!("no scripted reply for {}: {unscripted:?}", ask.effect_key),
            )),
        }
    }
}
