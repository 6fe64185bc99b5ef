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
    effect::{Effect, EffectKind, Reply},
    event::{Draft, Entry, Event},
    host::{Host, Parked, Pending},
    ids::{Hash, Key},
    reason::Ending,
    settings::Settings,
    stamp::Stamp,
};

/// A replay that does not request what was recorded. This is always a bug, or a journal of another build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Divergence {
    #[error("the journal has `{recorded}` where this build asks for `{asked}`")]
    Other { recorded: String, asked: String },
    #[error("`{key}` was recorded with fingerprint {recorded} and is now asked with {asked}")]
    Fingerprint { key: Key, recorded: Hash, asked: Hash },
    #[error("the journal has `{recorded}`, which this build does not ask for")]
    NotAskedAgain { recorded: String },
    #[error("there is a reply to `{key}`, which was not asked")]
    ReplyWithoutAsk { key: Key },
    #[error("`{key}` asked for `{asked}` and has a reply to `{replied}`")]
    WrongReply { key: Key, asked: EffectKind, replied: EffectKind },
    #[error("`{key}` was asked twice in one stretch")]
    KeyTwice { key: Key },
    #[error("`{key}` cannot be written: {cause}")]
    Unwritable { key: Key, cause: String },
}

/// The part of a journal that a resumed run needs: the state at the last boundary and every entry after it.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub state: Option<serde_json::Value>,
    stretch: u32,
    outs: VecDeque<Draft>,
    ins: VecDeque<(Key, Stamp, Reply)>,
    now: Stamp,
}

impl History {
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> History {
        let mut history = History::default();
        for entry in entries {
            let Entry { id, at, event, .. } = entry;
            match event {
                Event::RunStarted { .. } => history.now = at,
                Event::RunResumed { .. }
                | Event::SettingsChanged { .. }
                | Event::RunParked(_)
                | Event::RunFinished(_)
                // Hooks write session events while the workflow waits; the workflow itself never emits them.
                | Event::Session(_) => {}
                Event::Boundary { state, stretch, .. } => {
                    // A boundary makes everything before it irrelevant: the resumed workflow starts from its state.
                    history =
                        History { state: Some(state), stretch: stretch + 1, now: at, ..History::default() };
                }
                Event::EffectFinished { key, reply, .. } => history.ins.push_back((key, at, reply)),
                event => history.outs.push_back(Draft { id, event }),
            }
        }
        history
    }
}

/// An effect that the host has to perform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    pub key: Key,
    pub effect: Effect,
    /// The effect was under way when the process last ended, so its results may already exist.
    pub again: bool,
}

/// What polling the workflow led to.
#[derive(Debug)]
pub enum Turn<T> {
    /// The host records the drafts and then performs the effects. A boundary can only be the last draft: the host drains all
    /// running effects before it records one, and then calls [`Replayer::begin_next_stretch`].
    Waiting {
        drafts: Vec<Draft>,
        asks: Vec<Ask>,
    },
    Done {
        drafts: Vec<Draft>,
        value: T,
    },
    Diverged(Divergence),
}

#[derive(Debug)]
pub struct Desk {
    settings: Settings,
    inner: RefCell<Inner>,
}

#[derive(Debug)]
struct Inner {
    stretch: u32,
    /// How often each note was made in this stretch; the count is part of its id.
    notes: BTreeMap<String, u32>,
    slots: BTreeMap<Key, Slot>,
    outs: VecDeque<Draft>,
    ins: VecDeque<(Key, Stamp, Reply)>,
    drafts: Vec<Draft>,
    crossing: Option<Option<Waker>>,
    now: Stamp,
    parked: Option<Ending>,
    diverged: Option<Divergence>,
}

#[derive(Debug)]
struct Slot {
    kind: EffectKind,
    /// The effect, until it is handed to the host.
    effect: Option<Effect>,
    recorded: bool,
    reply: Option<Reply>,
    waker: Option<Waker>,
}

impl Desk {
    pub fn open(settings: Settings, history: History) -> Desk {
        let inner = Inner {
            stretch: history.stretch,
            notes: BTreeMap::new(),
            slots: BTreeMap::new(),
            outs: history.outs,
            ins: history.ins,
            drafts: Vec::new(),
            crossing: None,
            now: history.now,
            parked: None,
            diverged: None,
        };
        Desk { settings, inner: RefCell::new(inner) }
    }

    /// Polls the workflow, delivering recorded replies one at a time, until it waits for something new.
    pub fn turn<T>(&self, workflow: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Turn<T> {
        // The loop itself decides when to poll again, so a real waker is not needed.
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let polled = workflow.as_mut().poll(&mut context);
            let mut inner = self.inner.borrow_mut();
            // A divergence wins over everything else: what the workflow did after it is meaningless.
            if let Some(divergence) = inner.diverged.take() {
                return Turn::Diverged(divergence);
            }
            if let Poll::Ready(value) = polled {
                let drafts = core::mem::take(&mut inner.drafts);
                return match inner.unreplayed() {
                    // A parked workflow unwinds early, so it legitimately leaves recorded drafts behind.
                    Some(divergence) if inner.parked.is_none() => Turn::Diverged(divergence),
                    _ => Turn::Done { drafts, value },
                };
            }
            match inner.ins.pop_front() {
                Some((key, at, reply)) => {
                    if let Err(divergence) = inner.deliver(&key, at, reply) {
                        return Turn::Diverged(divergence);
                    }
                }
                None => {
                    // All recorded replies are delivered, so every recorded draft must have been emitted again by now.
                    if let Some(divergence) = inner.unreplayed() {
                        return Turn::Diverged(divergence);
                    }
                    let drafts = core::mem::take(&mut inner.drafts);
                    return Turn::Waiting { drafts, asks: inner.take_asks() };
                }
            }
        }
    }

    /// Gives the workflow a reply that the host has just recorded; the next poll sees it.
    pub fn deliver(&self, key: &Key, at: Stamp, reply: Reply) -> Result<(), Divergence> {
        self.inner.borrow_mut().deliver(key, at, reply)
    }

    /// Begins a new stretch after the host has recorded the boundary.
    pub fn crossed(&self, at: Stamp) {
        let mut inner = self.inner.borrow_mut();
        inner.stretch += 1;
        // Keys and note ids are unique within one stretch only.
        inner.notes.clear();
        inner.slots.clear();
        inner.now = at;
        if let Some(Some(waker)) = inner.crossing.take() {
            waker.wake();
        }
    }

    /// Parks the run: from now on every request of the workflow is answered with [`ParkedRun`].
    pub fn park(&self, ending: Ending) {
        let mut inner = self.inner.borrow_mut();
        inner.parked.get_or_insert(ending);
        for slot in inner.slots.values_mut() {
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }

    pub fn stretch(&self) -> u32 {
        self.inner.borrow().stretch
    }
}

impl Inner {
    /// Emits a draft. It is compared with what was recorded at this point, or it is new. Returns whether it was recorded.
    fn emit(&mut self, draft: Draft) -> bool {
        let Some(recorded) = self.outs.pop_front() else {
            self.drafts.push(draft);
            return false;
        };
        // Ids are compared first: a different id means a different step, even if the events are alike.
        let divergence = match (&recorded.event, &draft.event) {
            _ if recorded.id != draft.id => Divergence::Other { recorded: recorded.id, asked: draft.id },
            (
                Event::EffectStarted { fingerprint: recorded, effect: then, .. },
                Event::EffectStarted { key, fingerprint, effect: now, .. },
            // A different fingerprint is accepted where only the allowance changed (time, budget, model).
            ) if recorded != fingerprint && !now.wants_the_same_as(then) => Divergence::Fingerprint {
                key: key.clone(),
                recorded: recorded.clone(),
                asked: fingerprint.clone(),
            },
            _ => return true,
        };
        self.diverged.get_or_insert(divergence);
        true
    }

    fn deliver(&mut self, key: &Key, at: Stamp, reply: Reply) -> Result<(), Divergence> {
        let Some(slot) = self.slots.get_mut(key) else {
            return Err(Divergence::ReplyWithoutAsk { key: key.clone() });
        };
        // A reply of another kind could not be converted to the outcome type that the workflow awaits.
        if slot.kind != reply.kind() {
            let (asked, replied) = (slot.kind, reply.kind());
            return Err(Divergence::WrongReply { key: key.clone(), asked, replied });
        }
        // The effect is done, so `take_pending_effects` must not hand it out again.
        slot.effect = None;
        slot.reply = Some(reply);
        self.now = at;
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        Ok(())
    }

    fn unreplayed(&self) -> Option<Divergence> {
        let recorded = self.outs.front()?.id.clone();
        Some(Divergence::NotAskedAgain { recorded })
    }

    fn take_asks(&mut self) -> Vec<Ask> {
        let unasked = self.slots.iter_mut().filter(|(_, slot)| slot.reply.is_none());
        unasked
            .filter_map(|(key, slot)| {
                // Taking the effect out hands it to the host exactly once.
                let effect = slot.effect.take()?;
                Some(Ask { key: key.clone(), effect, again: slot.recorded })
            })
            .collect()
    }

    /// Builds an id such as `2:finding_moved:F3#1`, which does not depend on other notes in between.
    fn note_id(&mut self, event: &Event) -> String {
        let name = format!("{}:{}:{}", self.stretch, event.kind(), event.about());
        let count = self.notes.entry(name.clone()).or_default();
        *count += 1;
        format!("{name}#{count}")
    }

    fn start(&mut self, key: &Key, effect: Effect) -> Result<(), Divergence> {
        // Two effects under one key could not be told apart in the journal.
        if self.slots.contains_key(key) {
            return Err(Divergence::KeyTwice { key: key.clone() });
        }
        let fingerprint = effect
            .fingerprint()
            .map_err(|cause| Divergence::Unwritable { key: key.clone(), cause: cause.to_string() })?;
        let event = Event::EffectStarted {
            key: key.clone(),
            stretch: self.stretch,
            fingerprint,
            effect: effect.clone(),
        };
        let recorded = self.emit(Draft { id: format!("{}:started:{key}", self.stretch), event });
        let kind = effect.kind();
        self.slots
            .insert(key.clone(), Slot { kind, effect: Some(effect), recorded, reply: None, waker: None });
        Ok(())
    }
}

/// Makes the draft for a finished effect: the host records it first and delivers the reply afterwards.
pub fn finished(key: &Key, stretch: u32, reply: Reply) -> Draft {
    Draft {
        id: format!("{stretch}:finished:{key}"),
        event: Event::EffectFinished { key: key.clone(), stretch, reply },
    }
}

impl Host for Desk {
    fn start(&self, key: Key, effect: Effect) -> Pending<'_, Reply> {
        let mut inner = self.inner.borrow_mut();
        // The effect is scheduled by the call, not by the first poll; `Host::start_effect` promises that.
        if inner.parked.is_none()
            && let Err(divergence) = inner.start(&key, effect)
        {
            inner.diverged.get_or_insert(divergence);
        }
        drop(inner);
        Box::pin(core::future::poll_fn(move |context| self.poll_slot(&key, context)))
    }

    fn boundary(&self, key: Key, state: serde_json::Value) -> Pending<'_, ()> {
        let mut inner = self.inner.borrow_mut();
        if inner.parked.is_none() {
            let stretch = inner.stretch;
            let id = format!("{stretch}:boundary:{key}");
            inner.emit(Draft { id, event: Event::Boundary { key, stretch, state } });
            // The workflow waits here until the host has recorded the boundary.
            inner.crossing = Some(None);
        }
        drop(inner);
        Box::pin(core::future::poll_fn(move |context| {
            let mut inner = self.inner.borrow_mut();
            if let Some(ending) = &inner.parked {
                return Poll::Ready(Err(Parked { ending: ending.clone() }));
            }
            match &mut inner.crossing {
                Some(waker) => {
                    *waker = Some(context.waker().clone());
                    Poll::Pending
                }
                None => Poll::Ready(Ok(())),
            }
        }))
    }

    fn note(&self, event: Event) {
        let mut inner = self.inner.borrow_mut();
        if inner.parked.is_none() {
            let id = inner.note_id(&event);
            inner.emit(Draft { id, event });
        }
    }

    fn now(&self) -> Stamp {
        self.inner.borrow().now
    }

    fn patched(&self, change: &'static str) -> bool {
        let mut inner = self.inner.borrow_mut();
        let marked =
            |draft: &Draft| matches!(&draft.event, Event::Patched { change: seen } if seen == change);
        let with_change = match inner.outs.front() {
            Some(draft) => marked(draft),
            // Replies that are still to be replayed were given to a build that passed this point without the change.
            None => inner.ins.is_empty(),
        };
        if with_change {
            let event = Event::Patched { change: change.to_string() };
            let id = inner.note_id(&event);
            inner.emit(Draft { id, event });
        }
        with_change
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Desk {
    fn poll_slot(&self, key: &Key, context: &mut Context<'_>) -> Poll<Result<Reply, Parked>> {
        let mut inner = self.inner.borrow_mut();
        if let Some(ending) = &inner.parked {
            return Poll::Ready(Err(Parked { ending: ending.clone() }));
        }
        match inner.slots.get_mut(key) {
            Some(slot) => match &slot.reply {
                Some(reply) => Poll::Ready(Ok(reply.clone())),
                None => {
                    slot.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            },
            // The run has diverged; the next call of `poll_workflow` reports it.
            None => Poll::Pending,
        }
    }
}
