//! A host without real effects: it drives a workflow over the real replayer, with a journal in memory and a chosen moment of
//! death.

use std::{collections::BTreeSet, future::Future, pin::Pin};

use serde_json::Value;

use tribunal_engine::{
    child_queue::ChildUnderWay,
    children::StartedChild,
    event::EVENT_VERSION,
    host::ParkedRun,
    ids::{Key, RunId},
    reason::RunEnding,
    replayer::{ReplayDivergence, finished_draft},
    timestamp::Timestamp,
};
use tribunal_workflows::{
    review::order::ReviewOrder,
    runs::{
        effect::{Effect, Reply},
        kinds::RunOrder,
        plan::RunPlan,
        types::{
            ChildNews, ChildQueue, EntryDraft, JournalEntry, PendingEffect, ReplayHistory, Replayer, Requests,
            ReturnedChild, RunEvent, RunHost, StartChild, WorkflowPoll,
        },
        user_request::UserRequest,
        view::RunView,
    },
    workflows::{WorkflowFuture, start_workflow},
};

use crate::dice::Dice;

/// Answers the effects of a workflow.
pub trait SimulatedWorld {
    /// A child that a workflow started is asked for like one that it waits for: as [`Effect::RunChild`].
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult;

    /// What the user says to a run that waits for its children; most of the time nothing.
    fn say_meanwhile(&mut self) -> Vec<UserRequest> {
        Vec::new()
    }
}

/// The result of performing an effect.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all results are replies")]
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

/// A workflow as a function of a host, the order of the trial and the state of the last boundary.
pub type TrialWorkflow<T> = for<'a> fn(
    &'a RunHost<'a>,
    &'a RunOrder,
    Option<Value>,
) -> Pin<Box<dyn Future<Output = Result<T, ParkedRun>> + 'a>>;

/// The workflow of an order of any kind. It panics on an unreadable state, because a test must notice such a bug.
pub fn ordered_workflow<'a>(
    host: &'a RunHost<'a>,
    order: &'a RunOrder,
    recorded_state: Option<Value>,
) -> WorkflowFuture<'a> {
    match start_workflow(host, order, recorded_state) {
        Ok(future) => future,
        Err(cause) => panic!("could not read a recorded state: {cause}"),
    }
}

/// A run in memory: its journal survives each execution.
#[derive(Debug)]
pub struct TrialRun<W> {
    pub plan: RunPlan,
    /// It begins with `run_started`.
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
    pub fn new<O: Into<RunOrder>>(plan: RunPlan<O>, world: W, seed: u64) -> TrialRun<W> {
        let mut trial = TrialRun {
            plan: plan.into_run(),
            journal: Vec::new(),
            world,
            effect_order: Dice::new(seed),
            tick_ms: 1,
            waited_ms: 0,
            mask_text: str::to_string,
            keeps_raw_entries: false,
        };
        trial.record_start();
        trial
    }

    /// Executes the workflow until its end, a park, or the moment before write number `kill_at` of this execution (0 is the
    /// first). `run_started` is not one of these writes: as in the product, it is recorded before the workflow is called.
    pub fn run_workflow<T>(&mut self, workflow: TrialWorkflow<T>, kill_at: Option<usize>) -> TrialOutcome<T> {
        let RunPlan { settings, order } = self.plan.clone();
        let history = ReplayHistory::from_entries(self.journal.clone());
        let state = history.state.clone();
        let replayer = Replayer::new(settings, history);
        let queue = ChildQueue::from_entries(&self.journal);
        let children = queue.under_way().values().map(|child| self.find_request(child)).collect();
        let mut active_trial = ActiveTrial {
            trial: self,
            replayer: &replayer,
            running_effects: Vec::new(),
            children,
            queue,
            waits: Vec::new(),
            write_count: 0,
            kill_at,
        };
        let mut future = workflow(&replayer, &order, state);
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
                    Ok(Some(recorded)) => future = workflow(&replayer, &order, Some(recorded)),
                },
            }
        }
    }

    /// Executes the workflow of the order until it has ended, at most `max_lives` times. The dice kill some of these executions, and
    /// half an hour passes whenever the run waits for the user. Returns the reasons why it waited and ended, or what went wrong.
    pub fn run_random_lives(&mut self, dice: &mut Dice, max_lives: u32) -> Result<BTreeSet<&'static str>, String> {
        let mut reasons = BTreeSet::new();
        for life in 0..max_lives {
            let kill_at = dice.roll_percent(40).then(|| dice.roll(60));
            match self.run_workflow(ordered_workflow, kill_at) {
                TrialOutcome::Done(ending) => {
                    reasons.insert(ending.reason.code());
                    return Ok(reasons);
                }
                TrialOutcome::Parked(ending) => {
                    reasons.insert(ending.reason.code());
                    self.waited_ms += 31 * 60_000;
                }
                TrialOutcome::Killed => {}
                unexpected => return Err(format!("life {life}: {unexpected:?}")),
            }
        }
        Err(format!("it has not ended after {max_lives} lives"))
    }

    /// Returns the request of a child that an earlier execution had started.
    fn find_request(&self, child: &ChildUnderWay) -> PendingEffect {
        let start_entry = self.journal.iter().find(|entry| entry.id == child.start_entry_id());
        match start_entry.map(|entry| &entry.event) {
            Some(RunEvent::EffectStarted { key, effect: Effect::StartChild(StartChild { child }), .. }) => {
                PendingEffect { effect_key: key.clone(), effect: Effect::RunChild(child.clone()), resumed: true }
            }
            unexpected => panic!("{} is not started by {unexpected:?}", child.run),
        }
    }

    /// The number of writes of all executions so far.
    pub fn write_count(&self) -> usize {
        self.journal.len().saturating_sub(1)
    }

    fn record_start(&mut self) {
        let RunPlan { settings, order } = self.plan.clone();
        let (version, build) = (order.workflow_version(), "trial".to_string());
        let event = RunEvent::RunStarted { version, build, settings, order, parent: None, batch: None };
        self.push_entry(EntryDraft { id: "run_started".into(), event });
    }

    fn push_entry(&mut self, draft: EntryDraft) -> &mut JournalEntry {
        let entry = JournalEntry {
            v: EVENT_VERSION,
            run: RunId::new("trial"),
            seq: self.journal.len() as u64 + 1,
            id: draft.id,
            at: self.current_timestamp(),
            event: if self.keeps_raw_entries { draft.event } else { mask_event(draft.event, self.mask_text) },
        };
        self.journal.push_mut(entry)
    }

    fn current_timestamp(&self) -> Timestamp {
        let elapsed_ms = self.write_count() as u64 * self.tick_ms + self.waited_ms;
        Timestamp { wall_ms: 1_000_000 + elapsed_ms, awake_ms: elapsed_ms }
    }
}

/// One execution in progress.
struct ActiveTrial<'a, W> {
    trial: &'a mut TrialRun<W>,
    replayer: &'a Replayer,
    running_effects: Vec<PendingEffect>,
    /// The children that the workflow goes on beside, each as the effect that asks the world for it.
    children: Vec<PendingEffect>,
    queue: ChildQueue,
    /// The keys of the effects that wait for a child.
    waits: Vec<Key>,
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
        let has_started = self.begin_effects(asks)?;
        if let Some(boundary) = boundary {
            self.finish_all_effects(true)?;
            // A child may come back before the boundary, and be awaited after it.
            if !self.children.is_empty() && self.trial.effect_order.roll_percent(30) {
                self.finish_child()?;
            }
            let (replayer, keeps_raw_entries) = (self.replayer, self.trial.keeps_raw_entries);
            let JournalEntry { at, event, .. } = self.record_draft(boundary)?;
            replayer.begin_next_segment(*at);
            return match event {
                RunEvent::Boundary { state, .. } if keeps_raw_entries => Ok(Some(state.take())),
                RunEvent::Boundary { state, .. } => Ok(Some(state.clone())),
                _ => Err(EarlyEnd::Stuck),
            };
        }
        if !has_started && !self.answer_wait()? {
            let child_count = self.children.len();
            match self.running_effects.len() {
                0 if child_count == 0 => return Err(EarlyEnd::Stuck),
                effect_count if child_count > 0 => {
                    match self.trial.effect_order.roll(child_count + effect_count) < child_count {
                        true => self.finish_child()?,
                        false => self.finish_one_effect(true)?,
                    }
                }
                _ => self.finish_one_effect(true)?,
            }
        }
        Ok(None)
    }

    /// Begins effects, and starts children. Returns whether a child was started: the workflow goes on with that.
    fn begin_effects(&mut self, asks: Vec<PendingEffect>) -> Result<bool, EarlyEnd> {
        let mut has_started = false;
        for ask in asks {
            match ask.effect {
                Effect::StartChild(StartChild { child }) => {
                    let (name, run) = (child.name.clone(), RunId::new(child.name.clone()));
                    assert!(!self.queue.under_way().contains_key(&name), "{name} is started twice");
                    self.name_child(&ask.effect_key, &name)?;
                    self.record_answer(&ask.effect_key, Reply::StartChild(StartedChild { name, run }))?;
                    self.children.push(PendingEffect { effect: Effect::RunChild(child), ..ask });
                    has_started = true;
                }
                Effect::AwaitChild(_) => self.waits.push(ask.effect_key),
                _ => self.running_effects.push(ask),
            }
        }
        Ok(has_started)
    }

    /// Answers the first effect that waits for a child, if one has come back or the user has said something. Returns whether.
    fn answer_wait(&mut self) -> Result<bool, EarlyEnd> {
        let Some(effect_key) = self.waits.first().cloned() else { return Ok(false) };
        let news = match self.queue.first_returned() {
            Some(returned) => ChildNews::Returned(returned.clone()),
            None => match self.trial.world.say_meanwhile() {
                requests if requests.is_empty() => return Ok(false),
                requests => ChildNews::Word(Requests { requests }),
            },
        };
        self.waits.remove(0);
        self.record_answer(&effect_key, Reply::AwaitChild(news))?;
        Ok(true)
    }

    /// Lets one of the children come back, chosen at random.
    fn finish_child(&mut self) -> Result<(), EarlyEnd> {
        let ask = self.children.remove(self.trial.effect_order.roll(self.children.len()));
        let (Effect::RunChild(run_child), EffectResult::Reply(Reply::RunChild(outcome))) =
            (&ask.effect, self.trial.world.perform(&ask))
        else {
            panic!("the world does not run {ask:?}");
        };
        let returned = ReturnedChild { name: run_child.name.clone(), outcome };
        let draft = self.queue.returned_draft(returned).ok_or(EarlyEnd::Stuck)?;
        let event = self.record_draft(draft)?.event.clone();
        self.queue.apply_event(&event);
        Ok(())
    }

    /// Records the reply that this host itself gives, and delivers it.
    fn record_answer(&mut self, effect_key: &Key, reply: Reply) -> Result<(), EarlyEnd> {
        let replayer = self.replayer;
        let JournalEntry { at, event, .. } =
            self.record_draft(finished_draft(effect_key, replayer.current_segment(), reply))?.clone();
        self.queue.apply_event(&event);
        let RunEvent::EffectFinished { reply, .. } = event else { return Err(EarlyEnd::Stuck) };
        replayer.deliver_reply(effect_key, at, reply).map_err(EarlyEnd::Diverged)
    }

    /// Records the name of a child, unless it is one that is continued.
    fn name_child(&mut self, effect_key: &Key, name: &str) -> Result<(), EarlyEnd> {
        let id = format!("child_started:{name}");
        if self.trial.journal.iter().any(|entry| entry.id == id) {
            return Ok(());
        }
        let event = RunEvent::ChildStarted { key: effect_key.clone(), name: name.to_string(), child: RunId::new(name) };
        self.record_draft(EntryDraft { id, event }).map(|_| ())
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
                let entry = self.record_draft(finished_draft(&ask.effect_key, replayer.current_segment(), reply))?;
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
        Ok(self.trial.push_entry(draft))
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
    match masked_value.and_then(serde_json::from_value) {
        Ok(masked_event) => masked_event,
        // A run whose journal cannot be read could not be resumed, so a test must notice that.
        Err(cause) => panic!("could not read an event back: {cause}: {event:?}"),
    }
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
    /// Executes the run once: how it ended or parked, and the view of it at that point. Any other end is a bug that fails the
    /// test.
    pub fn run_order(&mut self) -> (RunEnding, RunView) {
        match self.run_workflow(ordered_workflow, None) {
            TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => (ending, RunView::from_entries(&self.journal)),
            unexpected => panic!("{unexpected:?}"),
        }
    }
}

/// Executes a new review once, and returns the trial to continue with.
pub fn run_first_review<W: SimulatedWorld>(plan: RunPlan<ReviewOrder>, world: W) -> (RunEnding, RunView, TrialRun<W>) {
    let mut trial = TrialRun::new(plan, world, 1);
    let (ending, view) = trial.run_order();
    (ending, view, trial)
}
