//! The stage and the workers of a review in the live view.

use tribunal_engine::ids::{FindingId, Key};
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    review::{event::ReviewEvent, review_keys::ReviewKeys},
    runs::view::{RunPhase, RunView},
    tasks::{brief::AgentTask, client::JobKind},
};

use super::{
    ReviewReporter, phrases,
    round_strip::{ReviewStage, RoundResult, RoundStrip},
    severity_bars::{BAR_LEGEND, describe_fixed},
};
use crate::{
    kind_reporter::{KindLive, LiveProgress, StageDescription},
    live::{worker::LiveWorker, worker_list::WorkerList},
    phrases::{describe_refusal, format_count},
};

/// The stage of a review and its rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReviewLive {
    round_strip: RoundStrip,
    panel_roles: Vec<AgentRole>,
}

impl KindLive<ReviewReporter> for ReviewLive {
    fn track_event(&mut self, event: &ReviewEvent, workers: &mut WorkerList) {
        match event {
            ReviewEvent::LevelChosen { panel: panel_roles, .. } => {
                self.panel_roles.clone_from(panel_roles);
                // If the first round is held again, its level is chosen again while the first panel is still shown.
                if self.round_strip.stage == ReviewStage::Reviewing {
                    self.show_panel(workers);
                }
            }
            ReviewEvent::RoundStarted { round: round_number, of: max_rounds, .. } => {
                self.round_strip.start_round(*round_number, *max_rounds);
                self.show_panel(workers);
            }
            ReviewEvent::RoundEnded { new: new_findings, dry: is_dry, .. } => {
                self.round_strip.end_round(RoundResult { new_findings: *new_findings, is_dry: *is_dry });
            }
            ReviewEvent::FixersDealt { round: round_number, iteration, wave, hands: fixer_findings, .. } => {
                // The first wave of an iteration replaces the workers of the stage before it.
                workers.truncate_workers(if *wave > 1 { workers.worker_count() } else { 0 });
                self.round_strip.stage = ReviewStage::Fixing(*iteration);
                add_fixers(&Key::for_fix_iteration(*round_number, *iteration), fixer_findings, workers);
            }
            ReviewEvent::SeatAnswered { round: round_number, role, .. }
            | ReviewEvent::SeatIncomplete { round: round_number, role, .. } => {
                note_worker_event(&Key::for_round(*round_number).reviewer_key(*role), event, workers);
            }
            ReviewEvent::ChallengerAnswered { key: effect_key, .. }
            | ReviewEvent::JudgeAnswered { key: effect_key, .. }
            | ReviewEvent::FixerFailed { key: effect_key, .. }
            | ReviewEvent::PatchLanded { key: effect_key, .. }
            | ReviewEvent::PatchRefused { key: effect_key, .. } => note_worker_event(effect_key, event, workers),
            _ => {}
        }
    }

    /// Challengers appear only when they are asked: which findings are disputed is not known earlier. The first one replaces
    /// the panel; a third voice follows the first two. Reviewers and fixers are shown before they are asked.
    fn track_task(&mut self, task_key: &Key, task: &AgentTask, workers: &mut WorkerList) {
        // A judge is shown in the line of the fixer whose change it looks at.
        let is_judge = task.brief.as_review().is_some_and(|brief| brief.role == AgentRole::Judge);
        if task.job != JobKind::Challenge || is_judge {
            return;
        }
        if self.round_strip.stage != ReviewStage::Challenging {
            self.round_strip.stage = ReviewStage::Challenging;
            workers.clear_workers();
        }
        if workers.find_worker(task_key).is_none() {
            let challenger_name = format!("challenger {}", workers.worker_count() + 1);
            let disputed_ids = phrases::join_ids(&task.brief.finding_ids());
            workers.add_worker(task_key.task_key(), challenger_name, disputed_ids);
        }
    }

    /// The results of a stage are shown until the next one has workers of its own.
    fn end_stage(&mut self, _: &mut WorkerList) {}

    fn describe_stage(&self, workers: &WorkerList) -> StageDescription {
        let (round_number, max_rounds) = (self.round_strip.round_number(), self.round_strip.max_rounds);
        let word = match self.round_strip.stage {
            ReviewStage::Starting => "starting",
            ReviewStage::Reviewing => "reviewing",
            ReviewStage::Challenging => "challenging",
            ReviewStage::Fixing(_) => "fixing",
        };
        let text = match self.round_strip.stage {
            ReviewStage::Starting => word.to_string(),
            _ => format!("{word} {}", workers.count_text()),
        };
        StageDescription {
            has_begun: round_number > 0,
            word,
            text,
            place: format!("round {round_number}/{max_rounds}"),
            short_place: format!("round {round_number}"),
        }
    }

    fn describe_progress(&self, run_view: &RunView) -> LiveProgress {
        let confidence = run_view.as_review().and_then(|review_view| review_view.confidence.as_ref());
        LiveProgress {
            position: self.round_strip.describe(run_view.phase == RunPhase::Running),
            settled: describe_fixed(run_view.all_findings(), &run_view.finding_counts()),
            score: confidence.map(phrases::describe_score).into_iter().collect(),
            legend: BAR_LEGEND,
            ..LiveProgress::default()
        }
    }
}

impl ReviewLive {
    /// Shows one waiting worker per seat of the panel.
    fn show_panel(&self, workers: &mut WorkerList) {
        // Every caller comes after a round has started; 1 is only a fallback.
        let round_key = Key::for_round(self.round_strip.round_number().max(1));
        workers.clear_workers();
        for role in &self.panel_roles {
            workers.add_worker(round_key.reviewer_key(*role), role.to_string(), String::new());
        }
    }
}

/// Adds fixers. Those of later waves follow those of earlier ones and continue their numbers.
fn add_fixers(iteration_key: &Key, fixer_findings: &[Vec<FindingId>], workers: &mut WorkerList) {
    for finding_ids in fixer_findings {
        let fixer_number = workers.worker_count() + 1;
        let fixer_key = iteration_key.fixer_key(fixer_number as u32);
        workers.add_worker(fixer_key, format!("fixer {fixer_number}"), phrases::join_ids(finding_ids));
    }
}

/// Passes an event on to the worker that it concerns.
fn note_worker_event(effect_key: &Key, event: &ReviewEvent, workers: &mut WorkerList) {
    if let Some(worker) = workers.find_worker(effect_key) {
        update_worker(worker, event);
    }
}

fn update_worker(worker: &mut LiveWorker, event: &ReviewEvent) {
    match event {
        ReviewEvent::SeatAnswered { raised: raised_count, .. } => {
            worker.mark_finished(&phrases::describe_raised(*raised_count));
        }
        ReviewEvent::SeatIncomplete { fault, .. }
        | ReviewEvent::FixerFailed { fault, .. }
        | ReviewEvent::JudgeAnswered { fault: Some(fault), .. }
        | ReviewEvent::ChallengerAnswered { fault: Some(fault), .. } => worker.mark_failed(&fault.detail),
        ReviewEvent::JudgeAnswered { .. } => worker.mark_finished("judged"),
        // What a challenger said is shown with the rulings, not here.
        ReviewEvent::ChallengerAnswered { .. } => worker.mark_finished("answered"),
        ReviewEvent::PatchLanded { lines: line_count, .. } => {
            worker.mark_finished(&format!("applied, {}", format_count(*line_count, "line")));
        }
        ReviewEvent::PatchRefused { why: refusal, .. } => {
            worker.mark_failed(&format!("rejected: {}", describe_refusal(refusal)));
        }
        _ => {}
    }
}
