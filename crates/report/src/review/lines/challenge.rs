//! Draws the challenge stage: which challengers answered, and the verdicts on the findings that they disputed.
//!
//! Upheld findings are named together; a finding that was refuted or is in doubt is drawn with the objection to it.

use tribunal_engine::ids::{FindingId, Key};
use tribunal_workflows::{
    findings::{agent_role::AgentRole, finding::Severity},
    review::{challenge_rules::ChallengeResult, event::ReviewEvent},
    runs::{
        effect::{AskAgent, Effect},
        types::{Decision, RunEvent, find_event},
        view::RunView,
    },
    tasks::client::JobKind,
};

use super::{ReviewLines, agent_suffix};
use crate::{
    line_buffer::LineBuffer,
    review::phrases,
    step_list::{answer_step, render_commands},
    style::{LineMark, TextStyle},
};

/// The column at which text below a ruling begins.
const DETAIL_INDENT: usize = 9;

/// The challengers of the current round and their results so far.
#[derive(Debug, Default)]
pub(super) struct ChallengeProgress {
    /// Tasks in the order in which they were asked, each with the findings that it disputes.
    asked_tasks: Vec<(Key, Vec<FindingId>)>,
    upheld_findings: Vec<FindingId>,
    unheard_findings: Vec<FindingId>,
    refuted_count: u32,
    doubted_count: u32,
    /// Findings whose change of status was already written with their ruling.
    reported_findings: Vec<FindingId>,
}

impl ChallengeProgress {
    /// Updates the progress with the next event.
    pub(super) fn track_event(&mut self, run_event: &RunEvent) {
        match run_event {
            RunEvent::EffectStarted {
                key: task_key, effect: Effect::Ask(AskAgent { task, .. }), ..
                // A second try belongs to the challenger of the first one and gets no number of its own.
            } if task.job == JobKind::Challenge
                && task_key.judged_task().is_none()
                && self.challenger_number(task_key).is_none() =>
            {
                self.asked_tasks.push((task_key.task_key(), task.brief.finding_ids()));
            }
            _ => self.track_review_event(find_event::<ReviewEvent>(run_event)),
        }
    }

    fn track_review_event(&mut self, event: Option<&ReviewEvent>) {
        match event {
            // Challengers are numbered per round.
            Some(ReviewEvent::RoundStarted { .. }) => *self = ChallengeProgress::default(),
            Some(ReviewEvent::FindingRuled { finding: finding_id, ruled: verdict, .. }) => match verdict {
                ChallengeResult::Valid => self.upheld_findings.push(*finding_id),
                ChallengeResult::Unheard => self.unheard_findings.push(*finding_id),
                ChallengeResult::Invalid => {
                    self.refuted_count += 1;
                    self.reported_findings.push(*finding_id);
                }
                ChallengeResult::Ambiguous => {
                    self.doubted_count += 1;
                    self.reported_findings.push(*finding_id);
                }
                // A ruling of the user is not a result of the challengers.
                ChallengeResult::Person => {}
            },
            // From here on changes of status come from fixers and are news again.
            Some(ReviewEvent::FixersDealt { .. }) => self.reported_findings.clear(),
            _ => {}
        }
    }

    /// The number of a challenger, from 1 on, in the order in which they were asked.
    fn challenger_number(&self, effect_key: &Key) -> Option<usize> {
        let task_key = effect_key.task_key();
        self.asked_tasks.iter().position(|(known_task, _)| *known_task == task_key).map(|task_index| task_index + 1)
    }

    /// The name of a challenger: `challenger 2`.
    pub(super) fn challenger_name(&self, effect_key: &Key) -> Option<String> {
        self.challenger_number(effect_key).map(|number| format!("challenger {number}"))
    }

    /// Returns whether the finding's change of status was already written.
    pub(super) fn has_reported(&self, finding_id: FindingId) -> bool {
        self.reported_findings.contains(&finding_id)
    }

    /// Draws the verdicts in one line, `6 upheld, 1 refuted`, if anything was disputed.
    pub(super) fn write_result(&self, round_number: u32, lines: &mut LineBuffer) {
        let verdict_counts = [
            (self.upheld_findings.len() as u32, "upheld"),
            (self.refuted_count, "refuted"),
            (self.doubted_count, "in doubt"),
            (self.unheard_findings.len() as u32, "unanswered"),
        ];
        let nonzero_counts = verdict_counts.iter().filter(|(verdict_count, _)| *verdict_count > 0);
        let verdict_texts: Vec<String> =
            nonzero_counts.map(|(verdict_count, verdict_phrase)| format!("{verdict_count} {verdict_phrase}")).collect();
        if !verdict_texts.is_empty() {
            let line_text = format!("round {round_number}, challenged: {}", verdict_texts.join(", "));
            lines.write_wrapped(2, TextStyle::Plain, &line_text);
        }
    }

    /// Draws the findings that were upheld, and those on which no challenger was heard, before the result of the round.
    pub(super) fn write_upheld_findings(&self, lines: &mut LineBuffer) {
        let verdict_lines = [
            ("upheld by challengers", phrases::join_ids(&self.upheld_findings)),
            ("no challenger answered on", phrases::join_ids(&self.unheard_findings)),
        ];
        for (line_lead, finding_ids) in verdict_lines.iter().filter(|(_, finding_ids)| !finding_ids.is_empty()) {
            lines.write_wrapped(6, TextStyle::Dim, &format!("{line_lead}: {finding_ids}"));
        }
    }
}

impl ReviewLines {
    /// The challenger's name; a task that was never seen has no number.
    fn challenger_label(&self, effect_key: &Key) -> String {
        self.challenge_progress.challenger_name(effect_key).unwrap_or_else(|| AgentRole::Challenger.to_string())
    }

    /// Draws that a challenger answered, or that it failed.
    pub(super) fn write_challenger_event(&self, event: &ReviewEvent, run_view: &RunView, lines: &mut LineBuffer) {
        let ReviewEvent::ChallengerAnswered { key: effect_key, agent: agent_name, silent, fault, .. } = event else {
            return;
        };
        let challenger_name = self.challenger_label(effect_key);
        match fault {
            Some(fault) => lines.write_worker_line(LineMark::FAILED, &challenger_name, &format!("failed: {fault}")),
            None => {
                let answer_text = self.describe_answer(effect_key, silent) + &agent_suffix(agent_name, run_view);
                lines.write_worker_line(LineMark::DONE, &challenger_name, &answer_text);
            }
        }
    }

    /// Describes on which findings a challenger answered, and on which it did not.
    fn describe_answer(&self, effect_key: &Key, silent_findings: &[FindingId]) -> String {
        // If the start of a task was not seen, the findings that it disputes are unknown.
        let answered_findings = self.challenge_progress.challenger_number(effect_key).map(|challenger| {
            let disputed_findings = self.challenge_progress.asked_tasks[challenger - 1].1.iter();
            disputed_findings.filter(|finding_id| !silent_findings.contains(finding_id)).copied().collect::<Vec<_>>()
        });
        let silent_text = match silent_findings {
            [] => String::new(),
            silent_findings => format!(", no answer on {}", phrases::join_ids(silent_findings)),
        };
        format!("answered on {}{silent_text}", phrases::join_ids(&answered_findings.unwrap_or_default()))
    }

    /// Draws the verdict on a finding that was refuted or is in doubt, with the objection to it.
    pub(super) fn write_ruling(&self, finding_id: FindingId, lines: &mut LineBuffer) {
        let Some(ruling) = self.rulings.find_ruling(finding_id) else { return };
        let ruling_text = match ruling.verdict {
            // Upheld findings are written together at the end of the round.
            ChallengeResult::Valid | ChallengeResult::Unheard => return,
            ChallengeResult::Invalid => format!("{finding_id} dismissed: {}", ruling.describe()),
            ChallengeResult::Ambiguous if ruling.severity_after == Severity::Critical => {
                format!("{finding_id} is critical and {}", ruling.describe())
            }
            ChallengeResult::Ambiguous | ChallengeResult::Person => {
                format!("{finding_id} {}", ruling.describe())
            }
        };
        // Further lines start below the text behind the id, like the objection.
        let ruling_text = lines.screen.wrap_hanging(6, DETAIL_INDENT, &ruling_text);
        lines.write_line(0, &ruling_text);
        let Some((objection_note, counter_quote)) = ruling.strongest_objection() else { return };
        let counter_quote = if counter_quote.is_empty() { String::new() } else { format!("“{counter_quote}”") };
        for objection_text in
            [objection_note, counter_quote.as_str()].into_iter().filter(|objection_text| !objection_text.is_empty())
        {
            let objection_line = lines.screen.wrap_text(DETAIL_INDENT, objection_text);
            let objection_line = lines.screen.paint(TextStyle::Dim, &objection_line);
            lines.write_line(0, &objection_line);
        }
    }
}

/// Draws who has to decide about a disputed finding, and the command for it.
pub(super) fn write_disputed_decision(decision: &Decision, run_view: &RunView, lines: &mut LineBuffer) {
    let Some(run_id) = &run_view.run_id else { return };
    let answer_step = answer_step(run_id, decision, &lines.screen.program_name);
    let owner_line = format!("{} needs an answer ({}):", decision.id, decision.owner);
    let owner_line = lines.screen.wrap_text(DETAIL_INDENT, &owner_line);
    lines.write_line(0, &owner_line);
    for command_line in render_commands(&[answer_step], DETAIL_INDENT + 2, &lines.screen) {
        lines.write_whole_line(0, &command_line);
    }
}
