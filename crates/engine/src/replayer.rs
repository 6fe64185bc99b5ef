//! The replay rule in one place: what was requested, what was recorded, and what is delivered next.
//!
//! A host opens a [`Replayer`] with the history of a run, polls the workflow over it and does what each poll asks for: it
//! records the drafts, performs the effects, delivers one reply, and polls again. Replies reach the workflow one at a time
//! and it is polled in between, so its requests depend only on the *order* of the replies, and that order is the journal.
//! A replayed run therefore requests exactly what it requested before; if it does not, the replayer reports a
//! [`ReplayDivergence`] and never guesses.
//!
//! The replayer records nothing and performs nothing: hosts do that. The embedded host in `runner` and the scripted and
//! random hosts in `testkit` share it, so that tests prove the rule on the code that ships.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    child_queue::AWAIT_CHILD,
    event::{EntryDraft, JournalEntry, RunEvent},
    host::{Host, HostFuture, ParkedRun},
    ids::{Hash, Key, started_entry_id},
    reason::RunEnding,
    run_types::{AnyEffect, AnyEvent, AnyReply, RunTypes},
    timestamp::Timestamp,
};

/// How the ids of entries begin that no workflow wrote, and that are still in the journals of some loops.
const BREAKER_RESET_ID: &str = "breaker_reset:";

/// A replay that does not request what was recorded: because of a bug, a journal of another build, or changed settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayDivergence {
    #[error("the journal has `{recorded}` where this build expects `{asked}`")]
    UnexpectedEvent { recorded: String, asked: String },
    #[error("`{key}` was recorded with fingerprint {recorded}, but this build requests it with {asked}")]
    Fingerprint { key: Key, recorded: Hash, asked: Hash },
    #[error("the journal has `{recorded}`, which this build does not request")]
    NotRequestedAgain { recorded: String },
    #[error("the journal has a reply to `{key}`, which was never requested")]
    ReplyWithoutRequest { key: Key },
    #[error("`{key}` requested `{asked}`, but the journal has a reply to `{replied}`")]
    WrongReplyKind { key: Key, asked: &'static str, replied: &'static str },
    #[error("a boundary was requested while `{key}` waits for a child")]
    AwaitsChildAtBoundary { key: Key },
    #[error("`{key}` was requested twice in one stage")]
    DuplicateKey { key: Key },
    #[error("could not serialize `{key}`: {cause}")]
    UnserializableEffect { key: Key, cause: String },
}

/// The part of a journal that a resumed run needs: the state at the last boundary and every entry after it.
#[derive(Clone, Debug)]
pub struct ReplayHistory<T: RunTypes> {
    pub state: Option<serde_json::Value>,
    segment: u32,
    recorded_drafts: VecDeque<EntryDraft<T>>,
    recorded_replies: VecDeque<(Key, Timestamp, T::Reply)>,
    timestamp: Timestamp,
}

impl<T: RunTypes> Default for ReplayHistory<T> {
    fn default() -> Self {
        ReplayHistory {
            state: None,
            segment: 0,
            recorded_drafts: VecDeque::new(),
            recorded_replies: VecDeque::new(),
            timestamp: Timestamp::default(),
        }
    }
}

impl<T: RunTypes> ReplayHistory<T> {
    pub fn from_entries(entries: impl IntoIterator<Item = JournalEntry<T>>) -> ReplayHistory<T> {
        let mut history = ReplayHistory::default();
        for journal_entry in entries {
            let JournalEntry { id, at, event, .. } = journal_entry;
            match event {
                RunEvent::RunStarted { .. } => history.timestamp = at,
                RunEvent::RunResumed { .. }
                | RunEvent::SettingsChanged { .. }
                | RunEvent::RunParked(_)
                | RunEvent::RunFinished(_)
                // The host records these, not the workflow.
                | RunEvent::ChildStarted { .. }
                | RunEvent::ChildReturned(_)
                | RunEvent::ChildUsage { .. }
                | RunEvent::WordIgnored { .. } => {}
                RunEvent::Workflow(event) if event.is_from_outside() => {}
                RunEvent::Boundary { state, segment, .. } => {
                    // A boundary makes everything before it irrelevant: the resumed workflow starts from its state.
                    history =
                        ReplayHistory { state: Some(state), segment: segment + 1, timestamp: at, ..ReplayHistory::default() };
                }
                RunEvent::EffectFinished { key, reply, .. } => history.recorded_replies.push_back((key, at, reply)),
                // `breaker reset` used to write into the journal of the run that had opened the breaker.
                _ if id.starts_with(BREAKER_RESET_ID) => {}
                event => history.recorded_drafts.push_back(EntryDraft { id, event }),
            }
        }
        history
    }
}

/// An effect that the host has to perform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEffect<T: RunTypes> {
    pub effect_key: Key,
    pub effect: T::Effect,
    /// The effect was under way when the process last ended, so its results may already exist.
    pub resumed: bool,
}

/// What polling the workflow led to.
#[derive(Debug)]
pub enum WorkflowPoll<T: RunTypes, V> {
    /// The host records the drafts and then performs the effects. A boundary can only be the last draft: the host drains all
    /// running effects before it records one, and then calls [`Replayer::begin_next_segment`].
    Waiting {
        drafts: Vec<EntryDraft<T>>,
        effects: Vec<PendingEffect<T>>,
    },
    Finished {
        drafts: Vec<EntryDraft<T>>,
        value: V,
    },
    Diverged(ReplayDivergence),
}

#[derive(Debug)]
pub struct Replayer<T: RunTypes> {
    settings: T::Settings,
    state: RefCell<ReplayerState<T>>,
}

#[derive(Debug)]
struct ReplayerState<T: RunTypes> {
    segment: u32,
    /// How often each note was made in this segment; the count is part of its id.
    note_counts: BTreeMap<String, u32>,
    slots: BTreeMap<Key, EffectSlot<T>>,
    recorded_drafts: VecDeque<EntryDraft<T>>,
    recorded_replies: VecDeque<(Key, Timestamp, T::Reply)>,
    new_drafts: Vec<EntryDraft<T>>,
    boundary_waker: Option<Option<Waker>>,
    timestamp: Timestamp,
    parked: Option<RunEnding>,
    diverged: Option<ReplayDivergence>,
}

#[derive(Debug)]
struct EffectSlot<T: RunTypes> {
    name: &'static str,
    /// The effect, until it is handed to the host.
    effect: Option<T::Effect>,
    was_recorded: bool,
    reply: Option<T::Reply>,
    waker: Option<Waker>,
}

impl<T: RunTypes> Replayer<T> {
    pub fn new(settings: T::Settings, replay_history: ReplayHistory<T>) -> Replayer<T> {
        let replayer_state = ReplayerState {
            segment: replay_history.segment,
            note_counts: BTreeMap::new(),
            slots: BTreeMap::new(),
            recorded_drafts: replay_history.recorded_drafts,
            recorded_replies: replay_history.recorded_replies,
            new_drafts: Vec::new(),
            boundary_waker: None,
            timestamp: replay_history.timestamp,
            parked: None,
            diverged: None,
        };
        Replayer { settings, state: RefCell::new(replayer_state) }
    }

    /// Polls the workflow, delivering recorded replies one at a time, until it waits for something new.
    pub fn poll_workflow<V>(&self, workflow: &mut Pin<Box<dyn Future<Output = V> + '_>>) -> WorkflowPoll<T, V> {
        // The loop itself decides when to poll again, so a real waker is not needed.
        let mut task_context = Context::from_waker(Waker::noop());
        loop {
            let poll_result = workflow.as_mut().poll(&mut task_context);
            let mut replayer_state = self.state.borrow_mut();
            // A divergence wins over everything else: what the workflow did after it is meaningless.
            if let Some(divergence) = replayer_state.diverged.take() {
                return WorkflowPoll::Diverged(divergence);
            }
            if let Poll::Ready(value) = poll_result {
                let drafts = core::mem::take(&mut replayer_state.new_drafts);
                return match replayer_state.find_unreplayed() {
                    // A parked workflow unwinds early, so it legitimately leaves recorded drafts behind.
                    Some(divergence) if replayer_state.parked.is_none() => WorkflowPoll::Diverged(divergence),
                    _ => WorkflowPoll::Finished { drafts, value },
                };
            }
            match replayer_state.recorded_replies.pop_front() {
                Some((effect_key, reply_time, reply)) => {
                    if let Err(divergence) = replayer_state.deliver_reply(&effect_key, reply_time, reply) {
                        return WorkflowPoll::Diverged(divergence);
                    }
                }
                None => {
                    // All recorded replies are delivered, so every recorded draft must have been emitted again by now.
                    if let Some(divergence) = replayer_state.find_unreplayed() {
                        return WorkflowPoll::Diverged(divergence);
                    }
                    let drafts = core::mem::take(&mut replayer_state.new_drafts);
                    return WorkflowPoll::Waiting { drafts, effects: replayer_state.take_pending_effects() };
                }
            }
        }
    }

    /// Gives the workflow a reply that the host has just recorded; the next poll sees it.
    pub fn deliver_reply(
        &self,
        effect_key: &Key,
        reply_time: Timestamp,
        reply: T::Reply,
    ) -> Result<(), ReplayDivergence> {
        self.state.borrow_mut().deliver_reply(effect_key, reply_time, reply)
    }

    /// Begins a new segment after the host has recorded the boundary.
    pub fn begin_next_segment(&self, boundary_time: Timestamp) {
        let mut replayer_state = self.state.borrow_mut();
        replayer_state.segment += 1;
        // Keys and note ids are unique within one segment only.
        replayer_state.note_counts.clear();
        replayer_state.slots.clear();
        replayer_state.timestamp = boundary_time;
        if let Some(Some(waker)) = replayer_state.boundary_waker.take() {
            waker.wake();
        }
    }

    /// Parks the run: from now on every request of the workflow is answered with [`ParkedRun`].
    pub fn park_run(&self, ending: RunEnding) {
        let mut replayer_state = self.state.borrow_mut();
        replayer_state.parked.get_or_insert(ending);
        for slot in replayer_state.slots.values_mut() {
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }

    pub fn current_segment(&self) -> u32 {
        self.state.borrow().segment
    }
}

impl<T: RunTypes> ReplayerState<T> {
    /// Emits a draft. It is compared with what was recorded at this point, or it is new. Returns whether it was recorded.
    fn emit_draft(&mut self, draft: EntryDraft<T>) -> bool {
        let Some(recorded) = self.recorded_drafts.pop_front() else {
            self.new_drafts.push(draft);
            return false;
        };
        // Ids are compared first: a different id means a different step, even if the events are alike.
        let divergence = match (&recorded.event, &draft.event) {
            _ if recorded.id != draft.id => {
                ReplayDivergence::UnexpectedEvent { recorded: recorded.id, asked: draft.id }
            }
            (
                RunEvent::EffectStarted { fingerprint: recorded, effect: recorded_effect, .. },
                RunEvent::EffectStarted { key, fingerprint, effect: new_effect, .. },
                // A different fingerprint is accepted where `Effect::is_same_request` allows the difference.
            ) if recorded != fingerprint && !new_effect.is_same_request(recorded_effect) => {
                ReplayDivergence::Fingerprint {
                    key: key.clone(),
                    recorded: recorded.clone(),
                    asked: fingerprint.clone(),
                }
            }
            _ => return true,
        };
        self.diverged.get_or_insert(divergence);
        true
    }

    fn deliver_reply(
        &mut self,
        effect_key: &Key,
        reply_time: Timestamp,
        reply: T::Reply,
    ) -> Result<(), ReplayDivergence> {
        let Some(slot) = self.slots.get_mut(effect_key) else {
            return Err(ReplayDivergence::ReplyWithoutRequest { key: effect_key.clone() });
        };
        // A reply of another kind could not be converted to the outcome type that the workflow awaits.
        if slot.name != reply.effect_name() {
            let (asked, replied) = (slot.name, reply.effect_name());
            return Err(ReplayDivergence::WrongReplyKind { key: effect_key.clone(), asked, replied });
        }
        // The effect is done, so `take_pending_effects` must not hand it out again.
        slot.effect = None;
        slot.reply = Some(reply);
        self.timestamp = reply_time;
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        Ok(())
    }

    fn find_unreplayed(&self) -> Option<ReplayDivergence> {
        let recorded = self.recorded_drafts.front()?.id.clone();
        Some(ReplayDivergence::NotRequestedAgain { recorded })
    }

    /// Returns the key of a wait for a child that was not answered.
    fn find_child_wait(&self) -> Option<Key> {
        let is_child_wait = |slot: &EffectSlot<T>| slot.reply.is_none() && slot.name == AWAIT_CHILD;
        self.slots.iter().find(|(_, slot)| is_child_wait(slot)).map(|(effect_key, _)| effect_key.clone())
    }

    fn take_pending_effects(&mut self) -> Vec<PendingEffect<T>> {
        let unanswered = self.slots.iter_mut().filter(|(_, slot)| slot.reply.is_none());
        unanswered
            .filter_map(|(effect_key, slot)| {
                // Taking the effect out hands it to the host exactly once.
                let effect = slot.effect.take()?;
                Some(PendingEffect { effect_key: effect_key.clone(), effect, resumed: slot.was_recorded })
            })
            .collect()
    }

    /// Builds an id such as `2:finding_moved:F3#1`, which does not depend on other notes in between.
    fn next_note_id(&mut self, event: &RunEvent<T>) -> String {
        let note_name = format!("{}:{}:{}", self.segment, event.kind_name(), event.subject_name());
        let count = self.note_counts.entry(note_name.clone()).or_default();
        *count += 1;
        format!("{note_name}#{count}")
    }

    fn start_effect(&mut self, effect_key: &Key, effect: T::Effect) -> Result<(), ReplayDivergence> {
        // Two effects under one key could not be told apart in the journal.
        if self.slots.contains_key(effect_key) {
            return Err(ReplayDivergence::DuplicateKey { key: effect_key.clone() });
        }
        let fingerprint = effect.compute_fingerprint().map_err(|cause| ReplayDivergence::UnserializableEffect {
            key: effect_key.clone(),
            cause: cause.to_string(),
        })?;
        let event = RunEvent::EffectStarted {
            key: effect_key.clone(),
            segment: self.segment,
            fingerprint,
            effect: effect.clone(),
        };
        let was_recorded = self.emit_draft(EntryDraft { id: started_entry_id(self.segment, effect_key), event });
        let name = effect.effect_name();
        self.slots.insert(
            effect_key.clone(),
            EffectSlot { name, effect: Some(effect), was_recorded, reply: None, waker: None },
        );
        Ok(())
    }
}

/// Makes the draft for a finished effect: the host records it first and delivers the reply afterwards.
pub fn finished_draft<T: RunTypes>(effect_key: &Key, segment: u32, reply: T::Reply) -> EntryDraft<T> {
    EntryDraft {
        id: format!("{segment}:finished:{effect_key}"),
        event: RunEvent::EffectFinished { key: effect_key.clone(), segment, reply },
    }
}

impl<T: RunTypes> Host<T> for Replayer<T> {
    fn start_effect(&self, effect_key: Key, effect: T::Effect) -> HostFuture<'_, T::Reply> {
        let mut replayer_state = self.state.borrow_mut();
        // The effect is scheduled by the call, not by the first poll; `Host::start_effect` promises that.
        if replayer_state.parked.is_none()
            && let Err(divergence) = replayer_state.start_effect(&effect_key, effect)
        {
            replayer_state.diverged.get_or_insert(divergence);
        }
        drop(replayer_state);
        Box::pin(core::future::poll_fn(move |task_context| self.poll_effect(&effect_key, task_context)))
    }

    fn record_boundary(&self, key: Key, state: serde_json::Value) -> HostFuture<'_, ()> {
        let mut replayer_state = self.state.borrow_mut();
        if replayer_state.parked.is_none() {
            // The wait would be lost: what a child brings back after the boundary belongs to the next segment.
            if let Some(key) = replayer_state.find_child_wait() {
                replayer_state.diverged.get_or_insert(ReplayDivergence::AwaitsChildAtBoundary { key });
            }
            let segment = replayer_state.segment;
            let draft_id = format!("{segment}:boundary:{key}");
            replayer_state.emit_draft(EntryDraft { id: draft_id, event: RunEvent::Boundary { key, segment, state } });
            // The workflow waits here until the host has recorded the boundary.
            replayer_state.boundary_waker = Some(None);
        }
        drop(replayer_state);
        Box::pin(core::future::poll_fn(move |task_context| {
            let mut replayer_state = self.state.borrow_mut();
            if let Some(ending) = &replayer_state.parked {
                return Poll::Ready(Err(ParkedRun { ending: ending.clone() }));
            }
            match &mut replayer_state.boundary_waker {
                Some(waker) => {
                    *waker = Some(task_context.waker().clone());
                    Poll::Pending
                }
                None => Poll::Ready(Ok(())),
            }
        }))
    }

    fn note_event(&self, event: RunEvent<T>) {
        let mut replayer_state = self.state.borrow_mut();
        if replayer_state.parked.is_none() {
            let draft_id = replayer_state.next_note_id(&event);
            replayer_state.emit_draft(EntryDraft { id: draft_id, event });
        }
    }

    fn last_timestamp(&self) -> Timestamp {
        self.state.borrow().timestamp
    }

    fn patched(&self, change: &'static str) -> bool {
        let mut replayer_state = self.state.borrow_mut();
        let is_marked =
            |draft: &EntryDraft<T>| matches!(&draft.event, RunEvent::Patched { change: seen } if seen == change);
        let with_change = match replayer_state.recorded_drafts.front() {
            Some(draft) => is_marked(draft),
            // Replies that are still to be replayed were given to a build that passed this point without the change.
            None => replayer_state.recorded_replies.is_empty(),
        };
        if with_change {
            let event = RunEvent::Patched { change: change.to_string() };
            let draft_id = replayer_state.next_note_id(&event);
            replayer_state.emit_draft(EntryDraft { id: draft_id, event });
        }
        with_change
    }

    fn settings(&self) -> &T::Settings {
        &self.settings
    }
}

impl<T: RunTypes> Replayer<T> {
    fn poll_effect(&self, effect_key: &Key, task_context: &mut Context<'_>) -> Poll<Result<T::Reply, ParkedRun>> {
        let mut replayer_state = self.state.borrow_mut();
        if let Some(ending) = &replayer_state.parked {
            return Poll::Ready(Err(ParkedRun { ending: ending.clone() }));
        }
        match replayer_state.slots.get_mut(effect_key) {
            Some(slot) => match &slot.reply {
                Some(reply) => Poll::Ready(Ok(reply.clone())),
                None => {
                    slot.waker = Some(task_context.waker().clone());
                    Poll::Pending
                }
            },
            // The request diverged, so it has no slot; `poll_workflow` reports the divergence after this poll.
            None => Poll::Pending,
        }
    }
}
