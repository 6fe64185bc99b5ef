//! A host without real effects: it drives a workflow over the real replayer, with a journal in memory and a chosen moment of
//! death.

use std::{future::Future, pin::Pin};

use serde_json::Value;

use tribunal_core::{
    desk::{Ask, Desk, Divergence, History, Turn, finished},
    effect::{Effect, Reply},
    event::{Draft, EVENT_VERSION, Entry, Event},
    host::{Host, Parked},
    ids::{Key, RunId},
    reason::Ending,
    review::review,
    settings::Settings,
    stamp::Stamp,
    view::RunView,
};

use crate::dice::Dice;

/// Answers the effects of a workflow.
pub trait World {
    fn perform(&mut self, ask: &Ask) -> Performed;
}

/// The result of performing an effect.
#[derive(Clone, Debug)]
pub enum Performed {
    Reply(Reply),
    /// Only a user could answer: the run parks.
    Park(Ending),
}

/// The end of one execution of a run, from its start or resume on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life<T> {
    Done(T),
    Parked(Ending),
    Killed,
    Diverged(Divergence),
    /// The workflow waits although no effect is under way.
    Stuck,
}

/// A workflow as a function of a host and the state of the last boundary.
pub type Workflow<T> =
    for<'a> fn(&'a dyn Host, Option<Value>) -> Pin<Box<dyn Future<Output = Result<T, Parked>> + 'a>>;

/// The review as a workflow for trials. It panics on an unreadable state, because a test must notice such a bug.
pub fn review_workflow<'a>(
    host: &'a dyn Host,
    from: Option<Value>,
) -> Pin<Box<dyn Future<Output = Result<Ending, Parked>> + 'a>> {
    let court = match from.map(serde_json::from_value).transpose() {
        Ok(court) => court.unwrap_or_default(),
        Err(cause) => panic!("a recorded state cannot be read: {cause}"),
    };
    Box::pin(review(host, court))
}

/// A run in memory: its journal survives each execution.
#[derive(Debug)]
pub struct Trial<W> {
    pub settings: Settings,
    pub journal: Vec<Entry>,
    pub world: W,
    /// Decides the order in which effects end.
    pub order: Dice,
    /// The milliseconds that pass with every write.
    pub tick_ms: u64,
    /// The milliseconds that passed while waiting until an agent may be asked again.
    pub waited_ms: u64,
    /// What the journal does to every string; it need not even be idempotent.
    pub mask: fn(&str) -> String,
    /// Whether the journal keeps entries as they are handed in, neither masked nor read back from JSON, and without states: for
    /// statistics, where thousands of runs matter more than what one of them writes. Such a run can be executed only once.
    pub hasty: bool,
}

impl<W: World> Trial<W> {
    pub fn new(settings: Settings, world: W, seed: u64) -> Trial<W> {
        Trial {
            settings,
            journal: Vec::new(),
            world,
            order: Dice::new(seed),
            tick_ms: 1,
            waited_ms: 0,
            mask: str::to_string,
            hasty: false,
        }
    }

    /// Executes the workflow until its end, a park, or the moment before write number `kill_at` of this execution (0 is the
    /// first).
    pub fn live<T>(&mut self, workflow: Workflow<T>, kill_at: Option<usize>) -> Life<T> {
        let history = History::of(self.journal.clone());
        let state = history.state.clone();
        let desk = Desk::open(self.settings.clone(), history);
        let mut life = Living { trial: self, desk: &desk, running: Vec::new(), writes: 0, kill_at };
        let mut future = workflow(&desk, state);
        loop {
            match desk.turn(&mut future) {
                Turn::Diverged(divergence) => return Life::Diverged(divergence),
                Turn::Done { drafts, value } => {
                    let drained = life.write_all(drafts).and_then(|()| life.drain(false));
                    return match (drained, value) {
                        (Err(end), _) => end.into(),
                        (Ok(()), Ok(value)) => Life::Done(value),
                        (Ok(()), Err(Parked { ending })) => Life::Parked(ending),
                    };
                }
                Turn::Waiting { drafts, asks } => match life.turn(drafts, asks) {
                    Err(end) => return end.into(),
                    Ok(None) => {}
                    // As in every host, the recorded state counts after a boundary, not the one in memory.
                    Ok(Some(recorded)) => future = workflow(&desk, Some(recorded)),
                },
            }
        }
    }

    fn stamp(&self) -> Stamp {
        let ms = self.journal.len() as u64 * self.tick_ms + self.waited_ms;
        Stamp { wall_ms: 1_000_000 + ms, awake_ms: ms }
    }
}

/// One execution in progress.
struct Living<'a, W> {
    trial: &'a mut Trial<W>,
    desk: &'a Desk,
    running: Vec<Ask>,
    writes: usize,
    kill_at: Option<usize>,
}

/// An end that the workflow did not reach by itself.
enum End {
    Killed,
    Stuck,
    Diverged(Divergence),
}

impl<T> From<End> for Life<T> {
    fn from(end: End) -> Self {
        match end {
            End::Killed => Life::Killed,
            End::Stuck => Life::Stuck,
            End::Diverged(divergence) => Life::Diverged(divergence),
        }
    }
}

impl<W: World> Living<'_, W> {
    /// Records what the workflow produced and lets one effect end. `Some` means that a boundary was crossed, with this state.
    fn turn(&mut self, mut drafts: Vec<Draft>, asks: Vec<Ask>) -> Result<Option<Value>, End> {
        // All running effects end before a boundary is recorded, so a resume never finds an effect from before it.
        let boundary = drafts.pop_if(|last| matches!(last.event, Event::Boundary { .. }));
        self.write_all(drafts)?;
        self.running.extend(asks);
        if let Some(boundary) = boundary {
            self.drain(true)?;
            let (desk, hasty) = (self.desk, self.trial.hasty);
            let Entry { at, event, .. } = self.write(boundary)?;
            desk.crossed(*at);
            return match event {
                Event::Boundary { state, .. } if hasty => Ok(Some(state.take())),
                Event::Boundary { state, .. } => Ok(Some(state.clone())),
                _ => Err(End::Stuck),
            };
        }
        if self.running.is_empty() {
            return Err(End::Stuck);
        }
        self.finish_one(true).map(|()| None)
    }

    /// Lets one of the running effects end, chosen at random.
    fn finish_one(&mut self, deliver: bool) -> Result<(), End> {
        let index = self.trial.order.roll(self.running.len());
        let ask = self.running.remove(index);
        match self.trial.world.perform(&ask) {
            Performed::Park(ending) => {
                self.desk.park(ending);
                Ok(())
            }
            Performed::Reply(reply) => {
                if let Effect::AwaitReset(wait) = &ask.effect {
                    self.trial.waited_ms += wait.until_ms.saturating_sub(self.trial.stamp().wall_ms);
                }
                let desk = self.desk;
                let entry = self.write(finished(&ask.key, desk.stretch(), reply))?;
                if let (true, Event::EffectFinished { reply, .. }) = (deliver, &entry.event) {
                    desk.deliver(&ask.key, entry.at, reply.clone()).map_err(End::Diverged)?;
                }
                Ok(())
            }
        }
    }

    fn drain(&mut self, deliver: bool) -> Result<(), End> {
        while !self.running.is_empty() {
            self.finish_one(deliver)?;
        }
        Ok(())
    }

    fn write_all(&mut self, drafts: Vec<Draft>) -> Result<(), End> {
        drafts.into_iter().try_for_each(|draft| self.write(draft).map(|_| ()))
    }

    fn write(&mut self, draft: Draft) -> Result<&mut Entry, End> {
        if self.kill_at == Some(self.writes) {
            return Err(End::Killed);
        }
        self.writes += 1;
        let entry = Entry {
            v: EVENT_VERSION,
            run: RunId::new("trial"),
            seq: self.trial.journal.len() as u64 + 1,
            id: draft.id,
            at: self.trial.stamp(),
            event: if self.trial.hasty { draft.event } else { masked(draft.event, self.trial.mask) },
        };
        Ok(self.trial.journal.push_mut(entry))
    }
}

/// Masks every string of an event, as the real journal does.
fn masked(event: Event, mask: fn(&str) -> String) -> Event {
    fn all(value: &mut Value, mask: fn(&str) -> String) {
        match value {
            Value::String(text) => *text = mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| all(item, mask)),
            Value::Object(map) => map.values_mut().for_each(|item| all(item, mask)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let masked = serde_json::to_value(&event).map(|mut value| {
        all(&mut value, mask);
        value
    });
    masked.and_then(serde_json::from_value).unwrap_or(event)
}

/// The keys of the effects that a journal records as started, in order.
pub fn started(journal: &[Entry]) -> Vec<Key> {
    let keys = journal.iter().filter_map(|entry| match &entry.event {
        Event::EffectStarted { key, .. } => Some(key.clone()),
        _ => None,
    });
    keys.collect()
}

impl<W: World> Trial<W> {
    /// Executes a review once: how it ended or parked, and the view of the run at that point. Any other end is a bug that fails
    /// the test.
    pub fn review(&mut self) -> (Ending, RunView) {
        match self.live(review_workflow, None) {
            Life::Done(ending) | Life::Parked(ending) => (ending, RunView::of(&self.journal)),
            other => panic!("{other:?}"),
        }
    }
}

/// Executes a new review once, and returns the trial to continue with.
pub fn reviewed<W: World>(settings: Settings, world: W) -> (Ending, RunView, Trial<W>) {
    let mut trial = Trial::new(settings, world, 1);
    let (ending, view) = trial.review();
    (ending, view, trial)
}
