//! What the live view knows: a run as its journal tells it, and what its agents say in between.
//!
//! Fed from outside, also with the time: it reads no clock. How it looks is [`super::frame`]'s business.

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

/// What the person at the terminal chose, and can choose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    pub mode: Mode,
    /// Keys are read.
    pub keys: bool,
    /// The keys are explained.
    pub help: bool,
    /// The person wants to stop.
    pub stopping: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub number: u32,
    /// None: it goes on.
    pub came: Option<Came>,
}

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    pub new: u32,
    pub dry: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    #[default]
    Starting,
    Reviewing,
    /// What one voice alone has raised is disputed.
    Challenging,
    /// With the number of the fix iteration.
    Fixing(u32),
}

#[derive(Clone, Debug, Default)]
pub struct Board {
    pub controls: Controls,
    pub(super) view: RunView,
    /// Awake time of the run, in milliseconds.
    pub(super) now: u64,
    pub(super) rounds: Vec<Round>,
    /// At most so many rounds.
    pub(super) of: u32,
    pub(super) stage: Stage,
    pub(super) workers: Vec<Worker>,
    /// What we do ourselves, since when.
    pub(super) aside: Option<(&'static str, u64)>,
    panel: Vec<Role>,
}

impl Board {
    pub fn new(controls: Controls) -> Board {
        Board { controls, ..Board::default() }
    }

    /// The run has been awake for so long. Time never goes back.
    pub fn tick(&mut self, awake_ms: u64) {
        self.now = self.now.max(awake_ms);
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    /// There is something to show.
    pub(super) fn has_begun(&self) -> bool {
        self.view.run.is_some()
    }

    /// Neither parked nor finished.
    pub(super) fn is_running(&self) -> bool {
        self.view.phase == Phase::Running
    }

    pub fn progress(&mut self, progress: &Progress) {
        let now = self.now;
        if let Some(worker) = self.worker(&progress.key) {
            worker.heard_of(&progress.text, now);
        }
    }

    pub fn see(&mut self, entry: &Entry) {
        self.view.see(entry);
        self.tick(entry.at.awake_ms);
        match &entry.event {
            Event::LevelChosen { panel, .. } => {
                self.panel.clone_from(panel);
                if self.stage == Stage::Reviewing {
                    self.seat_panel();
                }
            }
            Event::RoundStarted { round, of, .. } => {
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

    fn seat_panel(&mut self) {
        let round = self.rounds.last().map_or(1, |round| round.number);
        let seats = self.panel.iter();
        self.workers = seats
            .map(|role| Worker::new(Key::round(round).reviewer(*role), role.to_string(), Vec::new()))
            .collect();
    }

    /// Fixers of later waves stand behind those of earlier ones and count on from them.
    fn deal(&mut self, iteration: &Key, dealt: usize, hands: &[Vec<FindingId>]) {
        self.workers.truncate(dealt);
        for (index, hand) in hands.iter().enumerate() {
            let number = dealt + index + 1;
            let (key, name) = (iteration.fixer(number as u32), format!("fixer {number}"));
            self.workers.push(Worker::new(key, name, hand.clone()));
        }
    }

    /// Challengers take the places of the panel; a third voice stands behind the first two.
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

    fn worker(&mut self, key: &Key) -> Option<&mut Worker> {
        let task = key.task();
        self.workers.iter_mut().find(|worker| worker.key == task)
    }

    fn noted(&mut self, task: &Key, event: &Event) {
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.key == *task) {
            worker.noted(event);
        }
    }

    fn started(&mut self, key: &Key, effect: &Effect) {
        let now = self.now;
        self.aside = match effect {
            Effect::Freeze(_) => Some(("the subject is copied for the panel", now)),
            Effect::Write(written) => match written.file {
                OwnFile::Tracker => Some(("the tracker is written", now)),
                OwnFile::Metrics { .. } => Some(("the metrics are written", now)),
            },
            _ => None,
        };
        if let Effect::Ask(AskAgent { task }) = effect
            && task.brief.role == Role::Challenger
        {
            self.call(key, &task.brief.disputed);
        }
        let Some(worker) = self.worker(key) else { return };
        match effect {
            Effect::Ask(AskAgent { task: Task { agent, brief, .. } }) => {
                let again = key.is_second_try();
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

    fn finished(&mut self, key: &Key, reply: &Reply) {
        self.aside = None;
        let Some(worker) = self.worker(key) else { return };
        match reply {
            Reply::Ask(AskOutcome::Answered(_)) => worker.done("answered"),
            reply => {
                if let Some(fault) = reply.fault() {
                    worker.failed(&fault.detail);
                }
            }
        }
    }

    /// What the clock on the wall says, as far as the run's own clock tells.
    pub(super) fn wall_ms(&self) -> u64 {
        let last = self.view.last;
        last.wall_ms.saturating_add(self.now.saturating_sub(last.awake_ms))
    }

    /// Workers that have come to an end, and all.
    pub(super) fn answered(&self) -> (usize, usize) {
        let ended = |worker: &&Worker| matches!(worker.state, State::Done { .. } | State::Failed { .. });
        (self.workers.iter().filter(ended).count(), self.workers.len())
    }

    /// How often every limit's amount may be used: once, and once more for every `more` of a person's.
    pub(super) fn shares(&self) -> u64 {
        let decisions = self.view.decisions.iter().filter(|decision| decision.about == About::Limit);
        let granted = decisions.filter_map(|decision| decision.answer.as_ref());
        1 + granted.filter(|answer| answer.key() == Some(ChoiceKey::More)).count() as u64
    }
}
