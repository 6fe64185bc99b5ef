//! Draws a fix iteration: which fixers work on which findings, and what became of their patches.
//!
//! The findings of a refused patch become open again; they are named once, with the patch.

use tribunal_engine::{answer::ChoiceKey, files::PatchRefusal, ids::FindingId};
use tribunal_workflows::{
    findings::finding::{FindingStatus, StatusTransition, TransitionCause},
    review::{event::ReviewEvent, review_keys::ReviewKeys},
    runs::view::RunView,
};

use super::ReviewLines;
use crate::{
    line_buffer::LineBuffer,
    phrases::{describe_refusal, format_count},
    review::{diffstat::render_diffstat, phrases},
    style::{LineMark, TextStyle},
};

impl ReviewLines {
    /// Draws events of a fix iteration.
    pub(super) fn write_fix_event(&mut self, event: &ReviewEvent, run_view: &RunView, lines: &mut LineBuffer) {
        match event {
            ReviewEvent::FixersDealt { iteration, hands, .. } if is_fixed_in_session(run_view) => {
                // A new wave starts: findings of an older refused patch may be reported again.
                self.refused_findings.clear();
                let hand_texts: Vec<String> = hands.iter().map(|finding_ids| phrases::join_ids(finding_ids)).collect();
                let line_text = format!("fix iteration {iteration}: the session fixes {}", hand_texts.join(" | "));
                lines.write_wrapped(2, TextStyle::Plain, &line_text);
            }
            ReviewEvent::FixersDealt { iteration, wave: wave_number, hands, .. } => {
                self.refused_findings.clear();
                let fixer_count = format_count(hands.len() as u32, "fixer");
                let hand_texts: Vec<String> = hands.iter().map(|finding_ids| phrases::join_ids(finding_ids)).collect();
                let wave_text = if *wave_number > 1 { format!(", wave {wave_number}") } else { String::new() };
                let line_text =
                    format!("fix iteration {iteration}{wave_text}: {fixer_count} for {}", hand_texts.join(" | "));
                lines.write_wrapped(2, TextStyle::Plain, &line_text);
            }
            ReviewEvent::PatchLanded { lines: line_count, key: patch_key, .. } if patch_key.is_session() => {
                self.refused_findings.clear();
                let changed_lines = format_count(*line_count, "line");
                lines.write_marked(4, LineMark::DONE, &format!("the session is done ({changed_lines} changed)"));
                self.write_diffstat(lines);
            }
            ReviewEvent::PatchLanded { findings: patch_findings, lines: line_count, .. } => {
                self.refused_findings.clear();
                let changed_lines = format_count(*line_count, "line");
                let line_text = format!("applied: {} ({changed_lines})", phrases::join_ids(patch_findings));
                lines.write_marked(4, LineMark::DONE, &line_text);
                self.write_diffstat(lines);
            }
            ReviewEvent::JudgeAnswered { agent: agent_name, fault: Some(fault), .. } => {
                lines.write_marked(4, LineMark::FAILED, &format!("judge {agent_name} failed: {fault}"));
            }
            ReviewEvent::JudgeAnswered { agent: agent_name, repaired, unrelated, key, .. }
                // A patch that repairs nothing is rejected as a whole. What a session has changed is in place already.
                if !repaired.is_empty() && !unrelated.is_empty() && !key.judged_task().is_some_and(|task_key| task_key.is_session()) =>
            {
                let line_text = format!("judge {agent_name}: {}", phrases::describe_unrelated(unrelated));
                lines.write_marked(4, LineMark::WARNING, &line_text);
            }
            ReviewEvent::PatchRefused { findings: patch_findings, why: PatchRefusal::RepairsNothing, .. } => {
                // Each finding has a reason of its own.
                self.refused_findings.clear();
                write_refused_patch(patch_findings, &PatchRefusal::RepairsNothing, lines);
            }
            ReviewEvent::PatchRefused { findings: patch_findings, why: refusal, .. } => {
                // The findings of this patch become open again right after this event; they are not reported twice.
                self.refused_findings.clone_from(patch_findings);
                write_refused_patch(patch_findings, refusal, lines);
            }
            ReviewEvent::FixerFailed { fault, .. } => lines.write_marked(4, LineMark::FAILED, &fault.detail),
            ReviewEvent::FindingMoved { finding: finding_id, transition } => {
                self.write_status_change(*finding_id, transition, lines);
            }
            _ => {}
        }
    }

    /// Draws which files the landing changed that was just reported.
    fn write_diffstat(&mut self, lines: &mut LineBuffer) {
        let landed_files = std::mem::take(&mut self.landed_files);
        for stat_line in render_diffstat(&landed_files, 6, &lines.screen) {
            lines.write_line(0, &stat_line);
        }
    }

    /// Draws why a finding changed its status, unless an earlier line already said so.
    fn write_status_change(&self, finding_id: FindingId, transition: &StatusTransition, lines: &mut LineBuffer) {
        let StatusTransition { to: new_status, cause, note } = transition;
        match new_status {
            // Fixes of a fixer are reported with its patch. Only fixes that come without a patch of their own get a line.
            FindingStatus::Fixed
                if cause.is_by_user()
                    || matches!(cause, TransitionCause::RepairedAlong | TransitionCause::CheckPassed) =>
            {
                let line_text = lines.screen.fit_text(16, note);
                lines.write_line(4, &format!("  {finding_id} fixed: {line_text}"));
            }
            FindingStatus::Fixed | FindingStatus::Assigned => {}
            // The ruling was already written with the reason.
            _ if self.challenge_progress.has_reported(finding_id) => {}
            // The refused patch was already reported, once for all its findings.
            FindingStatus::Open if self.refused_findings.contains(&finding_id) => {}
            FindingStatus::Open => {
                let line_text = lines.screen.fit_text(16, note);
                let status_phrase = if cause.is_by_user() { "reopened" } else { "still open" };
                lines.write_line(4, &format!("  {finding_id} {status_phrase}: {line_text}"));
            }
            other_status => {
                let line_text = lines.screen.fit_text(24, note);
                lines.write_line(4, &format!("  {finding_id} {}: {line_text}", other_status.as_str()));
            }
        }
    }
}

/// Draws why a patch was not applied; a failed check is shown with its command and its output.
fn write_refused_patch(finding_ids: &[FindingId], refusal: &PatchRefusal, lines: &mut LineBuffer) {
    let finding_ids = phrases::join_ids(finding_ids);
    let PatchRefusal::Check { command, output: check_output } = refusal else {
        let line_text = format!("rejected: {finding_ids} ({})", describe_refusal(refusal));
        lines.write_marked(4, LineMark::FAILED, &line_text);
        return;
    };
    lines.write_marked(4, LineMark::FAILED, &format!("rejected: {finding_ids} (check failed)"));
    for detail_text in [format!("check: {command}"), format!("output: {}", check_output.trim())] {
        let detail_text = lines.screen.fit_text(6, &detail_text);
        let detail_text = lines.screen.paint(TextStyle::Dim, &detail_text);
        lines.write_line(6, &detail_text);
    }
}

/// Returns whether the user's own session fixes the findings instead of fixers. A decision may hand them back to fixers.
fn is_fixed_in_session(run_view: &RunView) -> bool {
    let given_answers = run_view.decisions.iter().filter_map(|decision| decision.answer.as_ref());
    let is_handed_over = given_answers.into_iter().any(|answer| answer.choice_key() == Some(ChoiceKey::Fixers));
    let order = run_view.review_order();
    !is_handed_over && order.is_some_and(|order| order.fixers.in_session)
}
