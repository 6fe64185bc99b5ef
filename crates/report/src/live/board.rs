//! The state of the live view: a run as its journal describes it, and what its agents report in between.
//!
//! The state is fed from outside, including the time: it reads no clock. [`super::frame`] draws it.

use tribunal_core::{
    brief::{Disputed, Task},
    decision::{About, ChoiceKey},
    effect::{AskAgent, AskOutcome, Effect, OwnFile, Reply},
    event::{Entry, Event},
    ids::{FindingId, Key},
    level::Role,
    progress::Progress,
    view::{Phase, RunView},
};

use super::worker::{State, Worker};
use crate::Mode;

/// What the user chose at the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    pub mode: Mode,
    /// Whether keys are read.
    pub keys: bool,
    /// Whether the help for the keys is shown.
    pub help: bool,
    /// Whether the user asked to stop.
    pub stopping: bool,
}

/// One round in the strip of rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub number: u32,
    /// The result; `None` while the round is under way.
    pub came: Option<Came>,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    pub new: u32,
    pub dry: bool,
}

/// The stage of the run that the view shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    #[default]
    Starting,
    Reviewing,
    /// Challengers dispute findings that only one voice raised.
    Challenging,
    /// Fixers work, in the fix iteration of this number.
    Fixing(u32),
}

/// Everything that the live view shows.
#[derive(Clone, Debug, Default)]
pub struct Board {
    pub controls: Controls,
    pub(super) view: RunView,
    /// Awake time of the run, in milliseconds.
    pub(super) now: u64,
    pub(super) rounds: Vec<Round>,
    /// The maximum number of rounds.
    pub(super) of: u32,
    pub(super) stage: Stage,
    pub(super) workers: Vec<Worker>,
    /// What the tool itself is doing, and since when.
    pub(super) aside: Option<(&'static str, u64)>,
    panel: Vec<Role>,
}

impl Board {
    pub fn new(controls: Controls) -> Board {
        Board { controls, ..Board::default() }
    }

    /// Sets the run's awake time. Time never goes back, even if entries arrive late.
    pub fn tick(&mut self, awake_ms: u64) {
        self.now = self.now.max(awake_ms);
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns whether there is anything to show.
    pub(super) fn has_begun(&self) -> bool {
        self.view.run.is_some()
    }

    /// Returns whether the run is neither parked nor finished.
    pub(super) fn is_running(&self) -> bool {
        self.view.phase == Phase::Running
    }

    /// Updates the worker that reports progress.
    pub fn progress(&mut self, progress: &Progress) {
        let now = self.now;
        if let Some(worker) = self.worker(&progress.key) {
            worker.heard_of(&progress.text, now);
        }
    }

    /// Updates the board with the next journal entry.
    pub fn see(&mut self, entry: &Entry) {
        self.view.see(entry);
        self.tick(entry.at.awake_ms);
        match &entry.event {
            Event::LevelChosen { panel, .. } => {
                self.panel.clone_from(panel);
                // The level may also be chosen after the round has begun.
                if self.stage == Stage::Reviewing {
                    self.seat_panel();
                }
            }
            Event::RoundStarted { round, of, .. } => {
                // A round that begins again replaces its earlier entry.
                self.rounds.retain(|known| known.number < *round);
                self.rounds.push(Round { number: *round, came: None });
                self.of = *of;
                self.stage = Stage::Reviewing;
                self.seat_panel();
            }
            Event::RoundEnded { new, dry, .. } => {
                if let Some(last) = self.rounds.last_mut() {
                    last.came = Some(Came { new: *new, dry: *dry });
                }
            }
            Event::FixersDealt { round, iteration, wave, hands, .. } => {
                // The first wave of an iteration replaces the workers of the stage before it.
                let dealt = if *wave > 1 { self.workers.len() } else { 0 };
                self.stage = Stage::Fixing(*iteration);
                self.deal(&Key::fix_iteration(*round, *iteration), dealt, hands);
            }
            Event::EffectStarted { key, effect, .. } => self.started(key, effect),
            Event::EffectFinished { key, reply, .. } => self.finished(key, reply),
            Event::SeatAnswered { round, role, .. } | Event::SeatIncomplete { round, role, .. } => {
                self.noted(&Key::round(*round).reviewer(*role), &entry.event);
            }
            Event::ChallengerAnswered { key, .. }
            | Event::FixerFailed { key, .. }
            | Event::PatchLanded { key, .. }
            | Event::PatchRefused { key, .. } => self.noted(&key.task(), &entry.event),
            _ => {}
        }
    }

    /// Shows one waiting worker per seat of the panel.
    fn seat_panel(&mut self) {
        // Before the first round the panel is shown as that of round 1.
        let round = self.rounds.last().map_or(1, |round| round.number);
        let seats = self.panel.iter();
        self.workers = seats
            .map(|role| Worker::new(Key::round(round).reviewer(*role), role.to_string(), Vec::new()))
            .collect();
    }

    /// Adds fixers. Those of later waves follow those of earlier ones and continue their numbers.
    fn deal(&mut self, iteration: &Key, dealt: usize, hands: &[Vec<FindingId>]) {
        self.workers.truncate(dealt);
        for (index, hand) in hands.iter().enumerate() {
            let number = dealt + index + 1;
            let (key, name) = (iteration.fixer(number as u32), format!("fixer {number}"));
            self.workers.push(Worker::new(key, name, hand.clone()));
        }
    }

    /// Adds a challenger. The first one replaces the panel; a third voice follows the first two.
    fn call(&mut self, key: &Key, disputed: &[Disputed]) {
        if self.stage != Stage::Challenging {
            self.stage = Stage::Challenging;
            self.workers.clear();
        }
        if self.worker(key).is_none() {
            let name = format!("challenger {}", self.workers.len() + 1);
            let hand = disputed.iter().map(|disputed| disputed.id).collect();
            self.workers.push(Worker::new(key.task(), name, hand));
        }
    }

    /// Finds the worker of a task; all tries of a task share one worker.
    fn worker(&mut self, key: &Key) -> Option<&mut Worker> {
        let task = key.task();
        self.workers.iter_mut().find(|worker| worker.key == task)
    }

    /// Passes an event on to the worker that it concerns.
    fn noted(&mut self, task: &Key, event: &Event) {
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.key == *task) {
            worker.noted(event);
        }
    }

    /// Updates the worker of an effect that was started.
    fn started(&mut self, key: &Key, effect: &Effect) {
        let now = self.now;
        // While the tool copies or writes files itself, no worker moves, and the user should see why.
        self.aside = match effect {
            Effect::Freeze(_) => Some(("the subject is copied for the panel", now)),
            // Only the two files that we keep ourselves are written here.
            Effect::Write(written) => match written.file {
                OwnFile::Tracker => Some(("the tracker is written", now)),
                OwnFile::Metrics { .. } => Some(("the metrics are written", now)),
            },
            _ => None,
        };
        // Challengers appear only when they are asked: which findings are disputed is not known earlier.
        if let Effect::Ask(AskAgent { task }) = effect
            && task.brief.role == Role::Challenger
        {
            self.call(key, &task.brief.disputed);
        }
        let Some(worker) = self.worker(key) else { return };
        match effect {
            Effect::Ask(AskAgent { task: Task { agent, brief, .. } }) => {
                let again = key.is_second_try();
                // A repeated task shows why it is repeated.
                let doing = match brief.correction.as_str() {
                    _ if !again => String::new(),
                    "" => "tried once more".to_string(),
                    why => format!("asked once more: {why}"),
                };
                worker.asked(agent.as_str(), &doing, now);
            }
            Effect::Land(_) => worker.state = State::Landing { since: now },
            Effect::Sleep(_) => worker.state = State::Waiting,
            Effect::AwaitReset(_) => worker.state = State::Limited,
            _ => {}
        }
    }

    /// Updates the worker of an effect that has ended.
    fn finished(&mut self, key: &Key, reply: &Reply) {
        self.aside = None;
        let Some(worker) = self.worker(key) else { return };
        match reply {
            Reply::Ask(AskOutcome::Answered(_)) => worker.done("answered"),
            // Any other reply ends a worker only if it failed.
            reply => {
                if let Some(fault) = reply.fault() {
                    worker.failed(&fault.detail);
                }
            }
        }
    }

    /// Estimates the wall time from the run's own clock and the last entry.
    pub(super) fn wall_ms(&self) -> u64 {
        let last = self.view.last;
        last.wall_ms.saturating_add(self.now.saturating_sub(last.awake_ms))
    }

    /// Counts the workers that have finished, and all workers.
    pub(super) fn answered(&self) -> (usize, usize) {
        let ended = |worker: &&Worker| matches!(worker.state, State::Done { .. } | State::Failed { .. });
        (self.workers.iter().filter(ended).count(), self.workers.len())
    }

    /// How many times every limit's amount may be used: once, and once more for each time the user granted `more`.
    pub(super) fn shares(&self) -> u64 {
        let decisions = self.view.decisions.iter().filter(|decision| decision.about == About::Limit);
        // Answers to other decisions grant nothing.
        let granted = decisions.filter_map(|decision| decision.answer.as_ref());
        1 + granted.filter(|answer| answer.key() == Some(ChoiceKey::More)).count() as u64
    }
}
