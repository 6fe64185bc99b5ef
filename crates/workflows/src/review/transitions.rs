//! Status transitions of findings, applied to the state and to the journal at once.

use alloc::format;

use crate::{
    findings::finding::{FindingStatus, StatusTransition, TransitionCause},
    review::{ReviewState, event::ReviewEvent, questions, review_host::ReviewHost},
};
use tribunal_engine::{
    host::ParkedRun,
    ids::{FindingId, Key},
};

impl ReviewState {
    /// Changes a status in the state and in the journal.
    pub(super) fn transition_finding(
        &mut self,
        host: &ReviewHost<'_>,
        finding_id: FindingId,
        transition: StatusTransition,
    ) {
        let timestamp = host.last_timestamp();
        if let Some(finding) = self.find_finding_mut(finding_id) {
            finding.apply_transition(transition.clone(), timestamp);
            host.note_own_event(ReviewEvent::FindingMoved { finding: finding_id, transition });
        }
    }

    /// Reopens those findings that are still assigned to a fixer.
    pub(super) fn reopen_assigned(
        &mut self,
        host: &ReviewHost<'_>,
        finding_ids: &[FindingId],
        cause: TransitionCause,
        note_text: &str,
    ) {
        for finding_id in finding_ids {
            // Findings that were fixed, blocked or settled by the user meanwhile keep their status.
            if self.find_finding(*finding_id).is_some_and(|finding| finding.status == FindingStatus::Assigned) {
                self.transition_finding(
                    host,
                    *finding_id,
                    StatusTransition::new(FindingStatus::Open, cause.clone(), note_text),
                );
                self.fix_history.context.add_error(&format!("{finding_id}: {note_text}"));
            }
        }
    }

    /// Asks the user about a finding that fixers cannot repair. Does nothing if the finding is no longer open.
    pub(super) async fn block_finding(
        &mut self,
        host: &ReviewHost<'_>,
        parent_key: &Key,
        finding_id: FindingId,
        cause: TransitionCause,
        note_text: &str,
    ) -> Result<(), ParkedRun> {
        let Some(finding) = self.find_finding(finding_id).filter(|finding| finding.status.is_open()) else {
            return Ok(());
        };
        let question = format!("{finding_id}: {} ({note_text})", finding.description);
        let decision = questions::ask_about_blocked_finding(self.dialog.next_decision_id(), finding_id, question);
        let blocked_status = FindingStatus::Blocked { decision: decision.id.clone() };
        // The question is posted first, so that a blocked finding always has a decision to answer.
        self.dialog
            .post_decision(host.run_host(), &parent_key.child_key(&format!("ask-{finding_id}")), decision)
            .await?;
        self.transition_finding(host, finding_id, StatusTransition::new(blocked_status, cause, note_text));
        Ok(())
    }
}
