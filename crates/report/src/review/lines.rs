//! Draws what happens in a review as lines: rounds, findings, challenges and fixes.

mod baseline;
mod challenge;
mod findings;
mod fixes;
mod stage_ends;

use tribunal_engine::ids::{AgentName, FindingId, Key};
use tribunal_workflows::{
    review::{event::ReviewEvent, review_keys::ReviewKeys, topic::ReviewTopic},
    runs::{
        types::{Decision, RunEvent, find_event, find_topic},
        view::RunView,
    },
    tasks::brief::AgentTask,
};

use super::{
    ReviewReporter,
    diffstat::{FileStat, list_landed_files},
    phrases,
    rulings::RulingIndex,
};
use crate::{
    kind_reporter::KindLines,
    line_buffer::LineBuffer,
    style::{LineMark, TextStyle},
};
use challenge::ChallengeProgress;
use stage_ends::FixIterationTally;

/// What later lines of a review depend on.
#[derive(Debug, Default)]
pub(crate) struct ReviewLines {
    fix_tally: FixIterationTally,
    challenge_progress: ChallengeProgress,
    rulings: RulingIndex,
    /// Findings of the patch that was refused last.
    refused_findings: Vec<FindingId>,
    /// The files that the last landing changed, until they are written.
    landed_files: Vec<FileStat>,
}

impl KindLines<ReviewReporter> for ReviewLines {
    fn track_event(&mut self, run_event: &RunEvent, run_view: &RunView) {
        self.fix_tally.track_event(run_event);
        self.challenge_progress.track_event(run_event);
        self.rulings.track_event(run_event);
        if let RunEvent::EffectFinished { reply: effect_reply, .. } = run_event {
            let order = run_view.review_order();
            if let Some(landed_files) = list_landed_files(effect_reply, order.map(|order| &order.subject)) {
                self.landed_files = landed_files;
            }
        }
    }

    fn write_event(&mut self, event: &ReviewEvent, run_view: &RunView, lines: &mut LineBuffer) {
        match event {
            ReviewEvent::LevelChosen { .. }
            | ReviewEvent::RoundStarted { .. }
            | ReviewEvent::SeatAnswered { .. }
            | ReviewEvent::SeatIncomplete { .. }
            | ReviewEvent::RoundEnded { .. }
            | ReviewEvent::ConfidenceCalculated { .. } => self.write_round_event(event, run_view, lines),
            ReviewEvent::BaselineChecked { report } => baseline::write_baseline(report, lines),
            ReviewEvent::FindingRaised { finding } => findings::write_finding(finding, run_view, lines),
            ReviewEvent::DismissalsKept { findings: finding_ids, runs } => {
                lines.write_wrapped(4, TextStyle::Plain, &phrases::describe_kept_dismissals(finding_ids, runs));
            }
            ReviewEvent::ChallengerAnswered { .. } => self.write_challenger_event(event, run_view, lines),
            ReviewEvent::FindingRuled { finding: finding_id, .. } => self.write_ruling(*finding_id, lines),
            ReviewEvent::FixersDealt { .. }
            | ReviewEvent::FixerFailed { .. }
            | ReviewEvent::PatchLanded { .. }
            | ReviewEvent::JudgeAnswered { .. }
            | ReviewEvent::PatchRefused { .. }
            | ReviewEvent::FindingMoved { .. } => self.write_fix_event(event, run_view, lines),
            // Who else raised a finding is written with it, and the closing lines name the tracker.
            ReviewEvent::FindingJoined { .. } | ReviewEvent::FileWritten { .. } => {}
        }
    }

    /// Draws only the questions that explain the lines around them; the others are among the closing lines.
    fn write_decision(&mut self, decision: &Decision, run_view: &RunView, lines: &mut LineBuffer) {
        match find_topic::<ReviewTopic>(&decision.about) {
            Some(ReviewTopic::Disputed { .. }) => challenge::write_disputed_decision(decision, run_view, lines),
            Some(ReviewTopic::Patch { rejected_in: Some(earlier_id), .. }) => {
                let decision_id = &decision.id;
                let line_text = format!("{decision_id}: the same patch as in {earlier_id}, which you rejected");
                lines.write_marked(2, LineMark::WARNING, &line_text);
            }
            _ => {}
        }
    }

    fn write_stage_end(&mut self, run_event: &RunEvent, run_view: &RunView, lines: &mut LineBuffer) {
        match run_event {
            RunEvent::Boundary { key: boundary_key, .. } if boundary_key.is_fix_iteration() => {
                self.fix_tally.write_result(run_view, lines);
            }
            _ => match find_event::<ReviewEvent>(run_event) {
                Some(ReviewEvent::RoundEnded { round, new, dry, counts, unbelieved }) => {
                    self.challenge_progress.write_result(*round, lines);
                    let result_text = phrases::describe_round(phrases::RoundNumbers {
                        new_findings: *new,
                        is_dry: *dry,
                        unbelieved: *unbelieved,
                        counts,
                    });
                    lines.write_wrapped(2, TextStyle::Plain, &format!("round {round}: {result_text}"));
                }
                Some(ReviewEvent::BaselineChecked { report }) => baseline::write_failures(report, lines),
                // This ends no stage, but otherwise the mode `summary` would not say why findings are missing.
                Some(ReviewEvent::DismissalsKept { findings: finding_ids, runs }) => {
                    lines.write_wrapped(2, TextStyle::Plain, &phrases::describe_kept_dismissals(finding_ids, runs));
                }
                _ => {}
            },
        }
    }

    fn name_worker(&self, task_key: &Key) -> Option<String> {
        match (task_key.fixer_number(), task_key.reviewer_role()) {
            (Some(fixer_number), _) => Some(format!("fixer {fixer_number}")),
            (_, Some(role)) => Some(role.to_string()),
            _ => self.challenge_progress.challenger_name(task_key),
        }
    }

    fn name_retried_worker(&self, task_key: &Key, task: &AgentTask) -> String {
        self.challenge_progress.challenger_name(task_key).unwrap_or_else(|| task.worker_name().to_string())
    }
}

impl ReviewLines {
    /// Draws events of a round of the panel.
    fn write_round_event(&mut self, event: &ReviewEvent, run_view: &RunView, lines: &mut LineBuffer) {
        match event {
            ReviewEvent::LevelChosen { level, why: reason, panel } => {
                let seat_names: Vec<&str> = panel.iter().map(|role| role.as_str()).collect();
                let line_text = format!("panel: {} ({level}: {reason})", seat_names.join(", "));
                lines.write_wrapped(0, TextStyle::Plain, &line_text);
            }
            ReviewEvent::RoundStarted { round, of: max_rounds, .. } => {
                let title_text = lines.screen.paint(TextStyle::Bold, &format!("round {round} of at most {max_rounds}"));
                lines.write_gap();
                lines.write_line(0, &title_text);
            }
            ReviewEvent::SeatAnswered { role, agent: agent_name, raised: raised_count, .. } => {
                let line_text = phrases::describe_raised(*raised_count) + &agent_suffix(agent_name, run_view);
                lines.write_worker_line(LineMark::DONE, role.as_str(), &line_text);
            }
            ReviewEvent::SeatIncomplete { role, fault, .. } => {
                lines.write_worker_line(LineMark::FAILED, role.as_str(), &format!("failed: {fault}"));
            }
            ReviewEvent::RoundEnded { new: new_findings, dry: is_dry, counts, unbelieved, .. } => {
                // Upheld findings are collected during the round and written in one line before its result.
                self.challenge_progress.write_upheld_findings(lines);
                let line_text = phrases::describe_round(phrases::RoundNumbers {
                    new_findings: *new_findings,
                    is_dry: *is_dry,
                    unbelieved: *unbelieved,
                    counts,
                });
                lines.write_wrapped(2, TextStyle::Bold, &line_text);
            }
            // `tribunal status` shows how the score came about.
            ReviewEvent::ConfidenceCalculated { confidence, .. } => {
                lines.write_wrapped(2, TextStyle::Dim, &phrases::describe_score(confidence));
            }
            _ => {}
        }
    }
}

/// Names the agent, ` · codex`, if the run has several.
fn agent_suffix(agent_name: &AgentName, run_view: &RunView) -> String {
    let has_several_agents = run_view.settings.as_ref().is_some_and(|settings| settings.agents.len() > 1);
    if has_several_agents { format!(" · {agent_name}") } else { String::new() }
}
