//! Writes a fix iteration as lines: which fixers work on which findings, and what became of their patches.
//!
//! The findings of a refused patch become open again; they are named once, with the patch.

use std::io::{self, Write};

use tribunal_core::{
    decisions::decision::ChoiceKey,
    engine::{event::RunEvent, files::PatchRefusal, ids::FindingId},
    review::finding::{FindingStatus, StatusTransition, TransitionCause},
};

use super::LineReporter;
use crate::{
    diffstat::render_diffstat,
    phrases,
    style::{LineMark, TextStyle},
};

impl<W: Write> LineReporter<W> {
    /// Writes events of a fix iteration.
    pub(super) fn write_fix_event(&mut self, run_event: &RunEvent) -> io::Result<()> {
        match run_event {
            RunEvent::FixersDealt { iteration, hands, .. } if self.is_fixed_in_session() => {
                // A new wave starts: findings of an older refused patch may be reported again.
                self.refused_findings.clear();
                let hand_texts: Vec<String> = hands.iter().map(|finding_ids| phrases::join_ids(finding_ids)).collect();
                let line_text = format!("fix iteration {iteration}: the session fixes {}", hand_texts.join(" | "));
                self.write_wrapped(2, TextStyle::Plain, &line_text)
            }
            RunEvent::FixersDealt { iteration, wave: wave_number, hands, .. } => {
                self.refused_findings.clear();
                let fixer_count = phrases::format_count(hands.len() as u32, "fixer");
                let hand_texts: Vec<String> = hands.iter().map(|finding_ids| phrases::join_ids(finding_ids)).collect();
                let wave_text = if *wave_number > 1 { format!(", wave {wave_number}") } else { String::new() };
                let line_text =
                    format!("fix iteration {iteration}{wave_text}: {fixer_count} for {}", hand_texts.join(" | "));
                self.write_wrapped(2, TextStyle::Plain, &line_text)
            }
            RunEvent::PatchLanded { lines: line_count, key: patch_key, .. } if patch_key.is_session() => {
                self.refused_findings.clear();
                let changed_lines = phrases::format_count(*line_count, "line");
                self.write_marked(4, LineMark::DONE, &format!("the session is done ({changed_lines} changed)"))?;
                self.write_diffstat()
            }
            RunEvent::PatchLanded { findings: patch_findings, lines: line_count, .. } => {
                self.refused_findings.clear();
                let changed_lines = phrases::format_count(*line_count, "line");
                let line_text = format!("applied: {} ({changed_lines})", phrases::join_ids(patch_findings));
                self.write_marked(4, LineMark::DONE, &line_text)?;
                self.write_diffstat()
            }
            RunEvent::PatchRefused { findings: patch_findings, why: refusal, .. } => {
                // The findings of this patch become open again right after this event; they are not reported twice.
                self.refused_findings.clone_from(patch_findings);
                self.write_refused_patch(patch_findings, refusal)
            }
            RunEvent::FixerFailed { fault, .. } => self.write_marked(4, LineMark::FAILED, &fault.detail),
            RunEvent::FindingMoved { finding: finding_id, transition } => {
                self.write_status_change(*finding_id, transition)
            }
            _ => Ok(()),
        }
    }

    /// Writes which files the landing changed that was just reported.
    fn write_diffstat(&mut self) -> io::Result<()> {
        let landed_files = std::mem::take(&mut self.landed_files);
        render_diffstat(&landed_files, 6, &self.screen).iter().try_for_each(|stat_line| self.write_line(0, stat_line))
    }

    /// Writes why a finding changed its status, unless an earlier line already said so.
    fn write_status_change(&mut self, finding_id: FindingId, transition: &StatusTransition) -> io::Result<()> {
        let StatusTransition { to: new_status, cause, note } = transition;
        match new_status {
            // Fixes of a fixer are reported with its patch. Only fixes that come without a patch of their own get a line.
            FindingStatus::Fixed if cause.is_by_user() || *cause == TransitionCause::RepairedAlong => {
                let line_text = self.screen.fit_text(16, note);
                self.write_line(4, &format!("  {finding_id} fixed: {line_text}"))
            }
            FindingStatus::Fixed | FindingStatus::Assigned => Ok(()),
            // The ruling was already written with the reason.
            _ if self.challenge_progress.has_reported(finding_id) => Ok(()),
            // The refused patch was already reported, once for all its findings.
            FindingStatus::Open if self.refused_findings.contains(&finding_id) => Ok(()),
            FindingStatus::Open => {
                let line_text = self.screen.fit_text(16, note);
                let status_phrase = if cause.is_by_user() { "reopened" } else { "still open" };
                self.write_line(4, &format!("  {finding_id} {status_phrase}: {line_text}"))
            }
            other_status => {
                let line_text = self.screen.fit_text(24, note);
                self.write_line(4, &format!("  {finding_id} {}: {line_text}", other_status.as_str()))
            }
        }
    }

    /// Writes why a patch was not applied; a failed check is shown with its command and its output.
    fn write_refused_patch(&mut self, finding_ids: &[FindingId], refusal: &PatchRefusal) -> io::Result<()> {
        let finding_ids = phrases::join_ids(finding_ids);
        let PatchRefusal::Check { command, output: check_output } = refusal else {
            let line_text = format!("rejected: {finding_ids} ({})", phrases::describe_refusal(refusal));
            return self.write_marked(4, LineMark::FAILED, &line_text);
        };
        self.write_marked(4, LineMark::FAILED, &format!("rejected: {finding_ids} (check failed)"))?;
        for detail_text in [format!("check: {command}"), format!("output: {}", check_output.trim())] {
            let detail_text = self.screen.fit_text(6, &detail_text);
            let detail_text = self.screen.paint(TextStyle::Dim, &detail_text);
            self.write_line(6, &detail_text)?;
        }
        Ok(())
    }

    /// Returns whether the user's own session fixes the findings instead of fixers. A decision may hand them back to fixers.
    fn is_fixed_in_session(&self) -> bool {
        let given_answers = self.run_view.decisions.iter().filter_map(|decision| decision.answer.as_ref());
        let is_handed_over = given_answers.into_iter().any(|answer| answer.choice_key() == Some(ChoiceKey::Fixers));
        !is_handed_over && self.run_view.settings.as_ref().is_some_and(|settings| settings.tasks.writing.in_session)
    }
}
