//! The state of the live view: a run as its journal describes it, and what its agents report in between.
//!
//! The state is fed from outside, including the time: it reads no clock. [`super::frame`] draws it.

use tribunal_core::{
    decisions::decision::{ChoiceKey, DecisionTopic},
    engine::{
        effect::{AskAgent, AskOutcome, Effect, OwnFile, Reply},
        event::{JournalEntry, RunEvent},
        ids::{FindingId, Key},
        progress::AgentProgress,
        view::{RunPhase, RunView},
    },
    review::level::AgentRole,
    tasks::brief::{AgentTask, FindingToChallenge},
};

use super::worker::{LiveWorker, WorkerState};
use crate::DisplayMode;

/// What the user chose at the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct ViewControls {
    pub mode: DisplayMode,
    /// Whether keys are read.
    pub reads_keys: bool,
    /// Whether the help for the keys is shown.
    pub shows_help: bool,
    /// Whether the user asked to stop.
    pub is_stopping: bool,
}

/// One round in the strip of rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundProgress {
    pub round_number: u32,
    /// The result; `None` while the round is under way.
    pub result: Option<RoundResult>,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundResult {
    pub new_findings: u32,
    pub is_dry: bool,
}

/// The stage of the run that the view shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveStage {
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
pub struct LiveBoard {
    pub controls: ViewControls,
    pub(super) run_view: RunView,
    /// Awake time of the run, in milliseconds.
    pub(super) awake_ms: u64,
    pub(super) round_strip: Vec<RoundProgress>,
    /// The maximum number of rounds.
    pub(super) max_rounds: u32,
    pub(super) current_stage: LiveStage,
    pub(super) workers: Vec<LiveWorker>,
    /// What the tool itself is doing, and since when.
    pub(super) own_operation: Option<(&'static str, u64)>,
    panel_roles: Vec<AgentRole>,
}

impl LiveBoard {
    pub fn new(controls: ViewControls) -> LiveBoard {
        LiveBoard { controls, ..LiveBoard::default() }
    }

    /// Sets the run's awake time. Time never goes back, even if entries arrive late.
    pub fn advance_clock(&mut self, awake_ms: u64) {
        self.awake_ms = self.awake_ms.max(awake_ms);
    }

    pub fn awake_ms(&self) -> u64 {
        self.awake_ms
    }

    /// Returns whether there is anything to show.
    pub(super) fn has_started(&self) -> bool {
        self.run_view.run_id.is_some()
    }

    /// Returns whether the run is neither parked nor finished.
    pub(super) fn is_running(&self) -> bool {
        self.run_view.phase == RunPhase::Running
    }

    /// Updates the worker that reports progress.
    pub fn note_progress(&mut self, progress: &AgentProgress) {
        let awake_ms = self.awake_ms;
        if let Some(worker) = self.find_worker(&progress.task_key) {
            worker.note_activity(&progress.activity, awake_ms);
        }
    }

    /// Updates the board with the next journal entry.
    pub fn track_entry(&mut self, journal_entry: &JournalEntry) {
        self.run_view.apply_entry(journal_entry);
        self.advance_clock(journal_entry.at.awake_ms);
        match &journal_entry.event {
            RunEvent::LevelChosen { panel: panel_roles, .. } => {
                self.panel_roles.clone_from(panel_roles);
                // If the first round is held again, its level is chosen again while the first panel is still shown.
                if self.current_stage == LiveStage::Reviewing {
                    self.show_panel();
                }
            }
            RunEvent::RoundStarted { round: round_number, of: max_rounds, .. } => {
                // A round that begins again replaces its earlier entry.
                self.round_strip.retain(|known_round| known_round.round_number < *round_number);
                self.round_strip.push(RoundProgress { round_number: *round_number, result: None });
                self.max_rounds = *max_rounds;
                self.current_stage = LiveStage::Reviewing;
                self.show_panel();
            }
            RunEvent::RoundEnded { new: new_findings, dry: is_dry, .. } => {
                if let Some(last_round) = self.round_strip.last_mut() {
                    last_round.result = Some(RoundResult { new_findings: *new_findings, is_dry: *is_dry });
                }
            }
            RunEvent::FixersDealt { round: round_number, iteration, wave, hands: fixer_findings, .. } => {
                // The first wave of an iteration replaces the workers of the stage before it.
                let earlier_fixers = if *wave > 1 { self.workers.len() } else { 0 };
                self.current_stage = LiveStage::Fixing(*iteration);
                self.add_fixers(&Key::for_fix_iteration(*round_number, *iteration), earlier_fixers, fixer_findings);
            }
            RunEvent::EffectStarted { key: effect_key, effect, .. } => self.effect_started(effect_key, effect),
            RunEvent::EffectFinished { key: effect_key, reply: effect_reply, .. } => {
                self.effect_finished(effect_key, effect_reply)
            }
            RunEvent::SeatAnswered { round: round_number, role, .. }
            | RunEvent::SeatIncomplete { round: round_number, role, .. } => {
                self.note_worker_event(&Key::for_round(*round_number).reviewer_key(*role), &journal_entry.event);
            }
            RunEvent::ChallengerAnswered { key: effect_key, .. }
            | RunEvent::FixerFailed { key: effect_key, .. }
            | RunEvent::PatchLanded { key: effect_key, .. }
            | RunEvent::PatchRefused { key: effect_key, .. } => {
                self.note_worker_event(&effect_key.task_key(), &journal_entry.event)
            }
            _ => {}
        }
    }

    /// Shows one waiting worker per seat of the panel.
    fn show_panel(&mut self) {
        // Every caller comes after a round has started; 1 is only a fallback.
        let round_number = self.round_strip.last().map_or(1, |last_round| last_round.round_number);
        let panel_seats = self.panel_roles.iter();
        self.workers = panel_seats
            .map(|role| LiveWorker::new(Key::for_round(round_number).reviewer_key(*role), role.to_string(), Vec::new()))
            .collect();
    }

    /// Adds fixers. Those of later waves follow those of earlier ones and continue their numbers.
    fn add_fixers(&mut self, iteration_key: &Key, earlier_fixers: usize, fixer_findings: &[Vec<FindingId>]) {
        self.workers.truncate(earlier_fixers);
        for (hand_index, finding_ids) in fixer_findings.iter().enumerate() {
            let fixer_number = earlier_fixers + hand_index + 1;
            let (fixer_key, fixer_name) =
                (iteration_key.fixer_key(fixer_number as u32), format!("fixer {fixer_number}"));
            self.workers.push(LiveWorker::new(fixer_key, fixer_name, finding_ids.clone()));
        }
    }

    /// Adds a challenger. The first one replaces the panel; a third voice follows the first two.
    fn add_challenger(&mut self, effect_key: &Key, disputed_findings: &[FindingToChallenge]) {
        if self.current_stage != LiveStage::Challenging {
            self.current_stage = LiveStage::Challenging;
            self.workers.clear();
        }
        if self.find_worker(effect_key).is_none() {
            let challenger_name = format!("challenger {}", self.workers.len() + 1);
            let finding_ids = disputed_findings.iter().map(|disputed_finding| disputed_finding.id).collect();
            self.workers.push(LiveWorker::new(effect_key.task_key(), challenger_name, finding_ids));
        }
    }

    /// Finds the worker of a task; all tries of a task share one worker.
    fn find_worker(&mut self, effect_key: &Key) -> Option<&mut LiveWorker> {
        let task_key = effect_key.task_key();
        self.workers.iter_mut().find(|worker| worker.task_key == task_key)
    }

    /// Passes an event on to the worker that it concerns.
    fn note_worker_event(&mut self, task_key: &Key, run_event: &RunEvent) {
        if let Some(worker) = self.workers.iter_mut().find(|worker| worker.task_key == *task_key) {
            worker.track_event(run_event);
        }
    }

    /// Updates the worker of an effect that was started, and what the tool itself is doing.
    fn effect_started(&mut self, effect_key: &Key, effect: &Effect) {
        let awake_ms = self.awake_ms;
        // While the tool copies or writes files itself, no worker moves, and the user should see why.
        self.own_operation = match effect {
            Effect::Freeze(_) => Some(("copying files for the reviewers", awake_ms)),
            // This effect never writes files of the user: those change by landings.
            Effect::Write(write_effect) => match write_effect.file {
                OwnFile::Tracker => Some(("writing the tracker", awake_ms)),
                OwnFile::Metrics { .. } => Some(("writing metrics", awake_ms)),
            },
            _ => None,
        };
        // Challengers appear only when they are asked: which findings are disputed is not known earlier.
        if let Effect::Ask(AskAgent { task: agent_task }) = effect
            && agent_task.brief.role == AgentRole::Challenger
        {
            self.add_challenger(effect_key, &agent_task.brief.disputed);
        }
        let Some(worker) = self.find_worker(effect_key) else { return };
        match effect {
            Effect::Ask(AskAgent { task: AgentTask { agent: agent_name, brief: task_brief, .. } }) => {
                let is_second_try = effect_key.is_second_try();
                // A repeated task shows why it is repeated.
                let activity = match task_brief.correction.as_str() {
                    _ if !is_second_try => String::new(),
                    "" => "retrying".to_string(),
                    reason => format!("asking again: {reason}"),
                };
                worker.start_work(agent_name.as_str(), &activity, awake_ms);
            }
            Effect::Land(_) => worker.state = WorkerState::Landing { started_ms: awake_ms },
            Effect::Sleep(_) => worker.state = WorkerState::Waiting,
            Effect::AwaitReset(_) => worker.state = WorkerState::WaitingForReset,
            _ => {}
        }
    }

    /// Updates the worker of an effect that has ended.
    fn effect_finished(&mut self, effect_key: &Key, effect_reply: &Reply) {
        self.own_operation = None;
        let Some(worker) = self.find_worker(effect_key) else { return };
        match effect_reply {
            Reply::Ask(AskOutcome::Answered(_)) => worker.mark_finished("answered"),
            // Any other reply ends a worker only if it failed.
            effect_reply => {
                if let Some(fault) = effect_reply.fault() {
                    worker.mark_failed(&fault.detail);
                }
            }
        }
    }

    /// Estimates the wall time from the run's own clock and the last entry.
    pub(super) fn estimate_wall_ms(&self) -> u64 {
        let last_stamp = self.run_view.last_time;
        last_stamp.wall_ms.saturating_add(self.awake_ms.saturating_sub(last_stamp.awake_ms))
    }

    /// Counts the workers that have finished, and all workers.
    pub(super) fn count_finished_workers(&self) -> (usize, usize) {
        let has_ended =
            |worker: &&LiveWorker| matches!(worker.state, WorkerState::Finished { .. } | WorkerState::Failed { .. });
        (self.workers.iter().filter(has_ended).count(), self.workers.len())
    }

    /// How many times every limit's amount may be used: once, and once more for each time the user granted `more`.
    pub(super) fn granted_shares(&self) -> u64 {
        let decisions = self.run_view.decisions.iter().filter(|decision| decision.about == DecisionTopic::Limit);
        // Answers to other decisions grant nothing.
        let given_answers = decisions.filter_map(|decision| decision.answer.as_ref());
        1 + given_answers.filter(|answer| answer.choice_key() == Some(ChoiceKey::More)).count() as u64
    }
}
