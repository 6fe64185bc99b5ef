//! A host without real effects: it drives a workflow over the real replayer, with a journal in memory and a chosen moment of
//! death.

use std::{future::Future, pin::Pin};

use serde_json::Value;

use tribunal_core::{
    engine::{
        effect::{Effect, Reply},
        event::{EVENT_VERSION, EntryDraft, JournalEntry, RunEvent},
        host::{Host, ParkedRun},
        ids::{Key, RunId},
        reason::RunEnding,
        replayer::{PendingEffect, ReplayDivergence, ReplayHistory, Replayer, WorkflowPoll, finished_draft},
        settings::Settings,
        timestamp::Timestamp,
        view::RunView,
    },
    review::run_review,
};

use crate::dice::Dice;

/// Answers the effects of a workflow.
pub trait SimulatedWorld {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult;
}

/// The result of performing an effect.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every result is a reply, and a simulation moves it once")]
pub enum EffectResult {
    Reply(Reply),
    /// Only a user could answer: the run parks.
    Park(RunEnding),
}

/// The end of one execution of a run, from its start or resume on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialOutcome<T> {
    Done(T),
    Parked(RunEnding),
    Killed,
    Diverged(ReplayDivergence),
    /// The workflow waits although no effect is under way.
    Stuck,
}

/// A workflow as a function of a host and the state of the last boundary.
pub type TrialWorkflow<T> =
    for<'a> fn(&'a dyn Host, Option<Value>) -> Pin<Box<dyn Future<Output = Result<T, ParkedRun>> + 'a>>;

/// The review as a workflow for trials. It panics on an unreadable state, because a test must notice such a bug.
pub fn review_workflow<'a>(
    host: &'a dyn Host,
    recorded_state: Option<Value>,
) -> Pin<Box<dyn Future<Output = Result<RunEnding, ParkedRun>> + 'a>> {
    let review_state = match recorded_state.map(serde_json::from_value).transpose() {
        Ok(read_state) => read_state.unwrap_or_default(),
        Err(cause) => panic!("could not read a recorded state: {cause}"),
    };
    Box::pin(run_review(host, review_state))
}

/// A run in memory: its journal survives each execution.
#[derive(Debug)]
pub struct TrialRun<W> {
    pub settings: Settings,
    pub journal: Vec<JournalEntry>,
    pub world: W,
    /// Decides the order in which effects end.
    pub effect_order: Dice,
    /// The milliseconds that pass with every write.
    pub tick_ms: u64,
    /// The milliseconds that passed while waiting until an agent may be asked again.
    pub waited_ms: u64,
    /// What the journal does to every string; it need not even be idempotent.
    pub mask_text: fn(&str) -> String,
    /// Whether the journal keeps entries as they are handed in, neither masked nor read back from JSON, and without states: for
    /// statistics, where thousands of runs matter more than what one of them writes. Such a run can be executed only once.
    pub keeps_raw_entries: bool,
}

impl<W: SimulatedWorld> TrialRun<W> {
    pub fn new(settings: Settings, world: W, seed: u64) -> TrialRun<W> {
        TrialRun {
            settings,
            journal: Vec::new(),
            world,
            effect_order: Dice::new(seed),
            tick_ms: 1,
            waited_ms: 0,
            mask_text: str::to_string,
            keeps_raw_entries: false,
        }
    }

    /// Executes the workflow until its end, a park, or the moment before write number `kill_at` of this execution (0 is the
    /// first).
    pub fn run_workflow<T>(&mut self, workflow: TrialWorkflow<T>, kill_at: Option<usize>) -> TrialOutcome<T> {
        let history = ReplayHistory::from_entries(self.journal.clone());
        let state = history.state.clone();
        let replayer = Replayer::new(self.settings.clone(), history);
        let mut active_trial =
            ActiveTrial { trial: self, replayer: &replayer, running_effects: Vec::new(), write_count: 0, kill_at };
        let mut future = workflow(&replayer, state);
        loop {
            match replayer.poll_workflow(&mut future) {
                WorkflowPoll::Diverged(divergence) => return TrialOutcome::Diverged(divergence),
                WorkflowPoll::Finished { drafts, value } => {
                    let drained =
                        active_trial.record_drafts(drafts).and_then(|()| active_trial.finish_all_effects(false));
                    return match (drained, value) {
                        (Err(early_end), _) => early_end.into(),
                        (Ok(()), Ok(value)) => TrialOutcome::Done(value),
                        (Ok(()), Err(ParkedRun { ending })) => TrialOutcome::Parked(ending),
                    };
                }
                WorkflowPoll::Waiting { drafts, effects: asks } => match active_trial.take_turn(drafts, asks) {
                    Err(early_end) => return early_end.into(),
                    Ok(None) => {}
                    // As in every host, the recorded state counts after a boundary, not the one in memory.
                    Ok(Some(recorded)) => future = workflow(&replayer, Some(recorded)),
                },
            }
        }
    }

    fn current_timestamp(&self) -> Timestamp {
        let elapsed_ms = self.journal.len() as u64 * self.tick_ms + self.waited_ms;
        Timestamp { wall_ms: 1_000_000 + elapsed_ms, awake_ms: elapsed_ms }
    }
}

/// One execution in progress.
struct ActiveTrial<'a, W> {
    trial: &'a mut TrialRun<W>,
    replayer: &'a Replayer,
    running_effects: Vec<PendingEffect>,
    write_count: usize,
    kill_at: Option<usize>,
}

/// An end that the workflow did not reach by itself.
enum EarlyEnd {
    Killed,
    Stuck,
    Diverged(ReplayDivergence),
}

impl<T> From<EarlyEnd> for TrialOutcome<T> {
    fn from(end: EarlyEnd) -> Self {
        match end {
            EarlyEnd::Killed => TrialOutcome::Killed,
            EarlyEnd::Stuck => TrialOutcome::Stuck,
            EarlyEnd::Diverged(divergence) => TrialOutcome::Diverged(divergence),
        }
    }
}

impl<W: SimulatedWorld> ActiveTrial<'_, W> {
    /// Records what the workflow produced and lets one effect end. `Some` means that a boundary was crossed, with this state.
    fn take_turn(&mut self, mut drafts: Vec<EntryDraft>, asks: Vec<PendingEffect>) -> Result<Option<Value>, EarlyEnd> {
        // All running effects end before a boundary is recorded, so a resume never finds an effect from before it.
        let boundary = drafts.pop_if(|last_draft| matches!(last_draft.event, RunEvent::Boundary { .. }));
        self.record_drafts(drafts)?;
        self.running_effects.extend(asks);
        if let Some(boundary) = boundary {
            self.finish_all_effects(true)?;
            let (replayer, keeps_raw_entries) = (self.replayer, self.trial.keeps_raw_entries);
            let JournalEntry { at, event, .. } = self.record_draft(boundary)?;
            replayer.begin_next_stretch(*at);
            return match event {
                RunEvent::Boundary { state, .. } if keeps_raw_entries => Ok(Some(state.take())),
                RunEvent::Boundary { state, .. } => Ok(Some(state.clone())),
                _ => Err(EarlyEnd::Stuck),
            };
        }
        if self.running_effects.is_empty() {
            return Err(EarlyEnd::Stuck);
        }
        self.finish_one_effect(true).map(|()| None)
    }

    /// Lets one of the running effects end, chosen at random.
    fn finish_one_effect(&mut self, deliver_reply: bool) -> Result<(), EarlyEnd> {
        let effect_index = self.trial.effect_order.roll(self.running_effects.len());
        let ask = self.running_effects.remove(effect_index);
        match self.trial.world.perform(&ask) {
            EffectResult::Park(ending) => {
                self.replayer.park_run(ending);
                Ok(())
            }
            EffectResult::Reply(reply) => {
                if let Effect::AwaitReset(wait) = &ask.effect {
                    self.trial.waited_ms += wait.until_ms.saturating_sub(self.trial.current_timestamp().wall_ms);
                }
                let replayer = self.replayer;
                let entry = self.record_draft(finished_draft(&ask.effect_key, replayer.current_stretch(), reply))?;
                if let (true, RunEvent::EffectFinished { reply, .. }) = (deliver_reply, &entry.event) {
                    replayer.deliver_reply(&ask.effect_key, entry.at, reply.clone()).map_err(EarlyEnd::Diverged)?;
                }
                Ok(())
            }
        }
    }

    fn finish_all_effects(&mut self, deliver_replies: bool) -> Result<(), EarlyEnd> {
        while !self.running_effects.is_empty() {
            self.finish_one_effect(deliver_replies)?;
        }
        Ok(())
    }

    fn record_drafts(&mut self, drafts: Vec<EntryDraft>) -> Result<(), EarlyEnd> {
        drafts.into_iter().try_for_each(|draft| self.record_draft(draft).map(|_| ()))
    }

    fn record_draft(&mut self, draft: EntryDraft) -> Result<&mut JournalEntry, EarlyEnd> {
        if self.kill_at == Some(self.write_count) {
            return Err(EarlyEnd::Killed);
        }
        self.write_count += 1;
        let entry = JournalEntry {
            v: EVENT_VERSION,
            run: RunId::new("trial"),
            seq: self.trial.journal.len() as u64 + 1,
            id: draft.id,
            at: self.trial.current_timestamp(),
            event: if self.trial.keeps_raw_entries {
                draft.event
            } else {
                mask_event(draft.event, self.trial.mask_text)
            },
        };
        Ok(self.trial.journal.push_mut(entry))
    }
}

/// Masks every string of an event, as the real journal does.
fn mask_event(event: RunEvent, mask_text: fn(&str) -> String) -> RunEvent {
    fn mask_strings(value: &mut Value, mask_text: fn(&str) -> String) {
        match value {
            Value::String(text) => *text = mask_text(text),
            Value::Array(elements) => elements.iter_mut().for_each(|element| mask_strings(element, mask_text)),
            Value::Object(members) => {
                members.values_mut().for_each(|member_value| mask_strings(member_value, mask_text))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let masked_value = serde_json::to_value(&event).map(|mut value| {
        mask_strings(&mut value, mask_text);
        value
    });
    masked_value.and_then(serde_json::from_value).unwrap_or(event)
}

/// The keys of the effects that a journal records as started, in order.
pub fn started_keys(journal: &[JournalEntry]) -> Vec<Key> {
    let keys = journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { key, .. } => Some(key.clone()),
        _ => None,
    });
    keys.collect()
}

impl<W: SimulatedWorld> TrialRun<W> {
    /// Executes a review once: how it ended or parked, and the view of the run at that point. Any other end is a bug that fails
    /// the test.
    pub fn run_review(&mut self) -> (RunEnding, RunView) {
        match self.run_workflow(review_workflow, None) {
            TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => (ending, RunView::from_entries(&self.journal)),
            unexpected => panic!("{unexpected:?}"),
        }
    }
}

/// Executes a new review once, and returns the trial to continue with.
pub fn run_first_review<W: SimulatedWorld>(settings: Settings, world: W) -> (RunEnding, RunView, TrialRun<W>) {
    let mut trial = TrialRun::new(settings, world, 1);
    let (ending, view) = trial.run_review();
    (ending, view, trial)
}
