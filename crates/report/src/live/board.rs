//! The state of the live view: a run as its journal describes it, and what its agents report in between.
//!
//! The state is fed from outside, including the time: it reads no clock. [`super::frame`] draws it. Child runs have boards of
//! their own inside the board of the run that the user started; [`super::child_boards`] has the rules for them.

use std::collections::BTreeMap;

use tribunal_engine::{
    answer::ChoiceKey,
    effect::WaitCause,
    ids::{Key, RunId},
    limits::{Cost, LimitShare},
    progress::AgentProgress,
};
use tribunal_workflows::{
    runs::{
        effect::{AskAgent, AskOutcome, Effect, Reply},
        types::{DecisionTopic, JournalEntry, RunEvent, StartChild},
        view::{RunPhase, RunView},
    },
    tasks::brief::AgentTask,
};

use super::{worker::WorkerState, worker_list::WorkerList};
use crate::{
    DisplayMode,
    child_runs::ChildResult,
    development_text,
    kind_table::{self, RunLive},
    phrases,
    terminal_text::clean_line,
};

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

/// Everything that the live view shows.
#[derive(Clone, Debug, Default)]
pub struct LiveBoard {
    pub controls: ViewControls,
    pub(super) run_view: RunView,
    /// Awake time of the run, in milliseconds.
    pub(super) awake_ms: u64,
    /// What only this kind of run has.
    pub(super) run_live: RunLive,
    pub(super) workers: WorkerList,
    /// What the tool itself is doing, and since when.
    pub(super) own_operation: Option<(&'static str, u64)>,
    /// The children that work on across boundaries: by their names, the keys of their workers.
    started_children: BTreeMap<String, Key>,
    /// Checks, commits and the like that are under way, in the order of their starts.
    pub(super) project_work: Vec<ProjectWork>,
    /// The boards of the child runs, and of theirs. Only the board of the run that the user started has some.
    pub(super) child_boards: BTreeMap<RunId, LiveBoard>,
}

/// Something that the tool does in a workspace, for instance running checks.
#[derive(Clone, Debug)]
pub(super) struct ProjectWork {
    effect_key: Key,
    pub description: String,
    pub started_ms: u64,
}

impl LiveBoard {
    pub fn new(controls: ViewControls) -> LiveBoard {
        LiveBoard { controls, ..LiveBoard::default() }
    }

    /// Sets the run's awake time. Time never goes back, even if entries arrive late.
    pub fn advance_clock(&mut self, awake_ms: u64) {
        let passed_ms = awake_ms.saturating_sub(self.awake_ms);
        self.awake_ms += passed_ms;
        // Children work while their parent waits for them, and their clocks began later.
        for child_board in self.child_boards.values_mut().filter(|child_board| child_board.is_running()) {
            child_board.awake_ms += passed_ms;
        }
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
        if let Some(worker) = self.workers.find_worker(&progress.task_key) {
            worker.note_activity(&progress.activity, awake_ms);
        }
    }

    /// Updates the board with the next journal entry.
    pub fn track_entry(&mut self, journal_entry: &JournalEntry) {
        self.run_view.apply_entry(journal_entry);
        self.advance_clock(journal_entry.at.awake_ms);
        match &journal_entry.event {
            RunEvent::RunStarted { order, .. } => self.run_live = RunLive::from_order(order),
            RunEvent::EffectStarted { key: effect_key, effect, .. } => self.effect_started(effect_key, effect),
            RunEvent::EffectFinished { key: effect_key, reply: effect_reply, .. } => {
                self.effect_finished(effect_key, effect_reply);
            }
            RunEvent::ChildStarted { key: effect_key, name, .. } => self.show_child(effect_key, name),
            RunEvent::Boundary { .. } => {
                self.project_work.clear();
                self.run_live.end_stage(&mut self.workers);
                // Their parent goes on to its next stage without them.
                for (child_name, effect_key) in self.started_children.clone() {
                    self.show_child(&effect_key, &child_name);
                }
            }
            RunEvent::ChildReturned(returned) => {
                let effect_key = self.started_children.remove(&returned.name);
                if let Some(worker) = effect_key.and_then(|effect_key| self.workers.find_worker(&effect_key)) {
                    worker.mark_child_result(&ChildResult::from_outcome(&returned.outcome));
                }
            }
            RunEvent::Workflow(event) => self.run_live.track_event(event, &mut self.workers),
            _ => {}
        }
        self.forget_returned_child(&journal_entry.event);
    }

    /// Updates the worker of an effect that was started, and what the tool itself is doing.
    fn effect_started(&mut self, effect_key: &Key, effect: &Effect) {
        let (awake_ms, wall_ms) = (self.awake_ms, self.run_view.last_time.wall_ms);
        // While the tool copies or writes files itself, no worker moves, and the user should see why.
        let own_work = self.run_view.order.as_ref().and_then(|order| kind_table::describe_own_work(order, effect));
        self.own_operation = own_work.map(|operation| (operation, awake_ms));
        self.project_work.retain(|known_work| known_work.effect_key != *effect_key);
        self.project_work.extend(development_text::describe_work(effect).map(|description| ProjectWork {
            effect_key: effect_key.clone(),
            description: clean_line(&description),
            started_ms: awake_ms,
        }));
        match effect {
            Effect::Ask(AskAgent { task, .. }) => self.run_live.track_task(effect_key, task, &mut self.workers),
            Effect::RunChild(run_child) => self.show_child(effect_key, &run_child.name),
            Effect::StartChild(StartChild { child }) => {
                self.started_children.insert(child.name.clone(), effect_key.clone());
                self.show_child(effect_key, &child.name);
            }
            _ => {}
        }
        let Some(worker) = self.workers.find_worker(effect_key) else { return };
        match effect {
            Effect::Ask(AskAgent { task: AgentTask { agent: agent_name, brief: task_brief, .. }, .. }) => {
                let is_second_try = effect_key.is_second_try();
                // A repeated task shows why it is repeated.
                let activity = match task_brief.correction_text() {
                    _ if !is_second_try && effect_key.judged_task().is_some() => "judging the change".to_string(),
                    _ if !is_second_try => String::new(),
                    "" => "retrying".to_string(),
                    reason => format!("asking again: {reason}"),
                };
                worker.start_work(agent_name.as_str(), &activity, awake_ms);
            }
            Effect::Land(_) => worker.state = WorkerState::Landing { started_ms: awake_ms },
            Effect::Sleep(_) => worker.state = WorkerState::Waiting,
            Effect::AwaitReset(wait) => {
                worker.state = match wait.cause {
                    WaitCause::UsageLimit => WorkerState::WaitingForReset,
                    WaitCause::CallsPerHour | WaitCause::CircuitBreaker | WaitCause::Overload => {
                        WorkerState::WaitingForCall { message: phrases::describe_wait(wait, wall_ms) }
                    }
                };
            }
            _ => {}
        }
    }

    /// Shows a child run as a worker. A child that begins gets its id later than one that is continued has it.
    fn show_child(&mut self, effect_key: &Key, child_name: &str) {
        if self.workers.find_worker(effect_key).is_none() {
            self.workers.add_worker(effect_key.task_key(), clean_line(child_name), String::new());
        }
        let known_child = self.run_view.children.get(child_name);
        let child_id = known_child.map(|standing| clean_line(standing.run.as_str())).unwrap_or_default();
        if let Some(worker) = self.workers.find_worker(effect_key) {
            worker.state = WorkerState::RunningChild { started_ms: self.awake_ms, child_id };
        }
    }

    /// Updates the worker of an effect that has ended.
    fn effect_finished(&mut self, effect_key: &Key, effect_reply: &Reply) {
        self.own_operation = None;
        self.project_work.retain(|known_work| known_work.effect_key != *effect_key);
        let Some(worker) = self.workers.find_worker(effect_key) else { return };
        match effect_reply {
            Reply::Ask(AskOutcome::Answered(_)) => worker.mark_finished("answered"),
            Reply::RunChild(outcome) => worker.mark_child_result(&ChildResult::from_outcome(outcome)),
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

    /// The limits that hold now; `None` before the run has started.
    pub(super) fn current_limits(&self) -> Option<LimitShare> {
        let limits = &self.run_view.settings.as_ref()?.limits;
        let shares = self.granted_shares();
        let granted = LimitShare {
            runtime_ms: limits.runtime_ms.saturating_mul(shares),
            cost: Cost(limits.cost.0.saturating_mul(shares)),
            tokens: limits.tokens.saturating_mul(shares),
        };
        // A child run never gets more than its parent lent it, however often the user grants more.
        Some(limits.share.map_or(granted, |lent| LimitShare {
            runtime_ms: granted.runtime_ms.min(lent.runtime_ms),
            cost: granted.cost.min(lent.cost),
            tokens: granted.tokens.min(lent.tokens),
        }))
    }

    /// How many times every limit's amount may be used: once, and once more for each time the user granted `more`.
    fn granted_shares(&self) -> u64 {
        let decisions = self.run_view.decisions.iter().filter(|decision| decision.about == DecisionTopic::Limit);
        // Answers to other decisions grant nothing.
        let given_answers = decisions.filter_map(|decision| decision.answer.as_ref());
        1 + given_answers.filter(|answer| answer.choice_key() == Some(ChoiceKey::More)).count() as u64
    }
}
