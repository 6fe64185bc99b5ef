//! Status transitions of findings, applied to the state and to the journal at once.

use alloc::format;

use crate::{
    decision::Decision,
    event::Event,
    finding::{Cause, Status, Transition},
    host::{Host, Parked},
    ids::{FindingId, Key},
    review::{Court, people},
};

impl Court {
    /// Changes a status in the state and in the journal.
    pub(super) fn move_to(&mut self, host: &dyn Host, id: FindingId, transition: Transition) {
        let at = host.now();
        if let Some(finding) = self.finding_mut(id) {
            finding.apply(transition.clone(), at);
            host.note(Event::FindingMoved { finding: id, transition });
        }
    }

    /// Reopens those findings that are still assigned to a fixer.
    pub(super) fn reopen(&mut self, host: &dyn Host, ids: &[FindingId], cause: Cause, note: &str) {
        for id in ids {
            // Findings that were fixed, blocked or settled by the user meanwhile keep their status.
            if self.finding(*id).is_some_and(|finding| finding.status == Status::Assigned) {
                self.move_to(host, *id, Transition::new(Status::Open, cause, note));
                self.tries.context.failed(&format!("{id}: {note}"));
            }
        }
    }

    /// Asks the user about a finding that fixers cannot repair. Does nothing if the finding is no longer open.
    pub(super) async fn block(
        &mut self,
        host: &dyn Host,
        key: &Key,
        id: FindingId,
        cause: Cause,
        note: &str,
    ) -> Result<(), Parked> {
        let Some(finding) = self.finding(id).filter(|finding| finding.status.is_open()) else {
            return Ok(());
        };
        let question = format!("{id}: {} ({note})", finding.description);
        let decision = Decision::blocked(self.next_decision_id(), id, question);
        let to = Status::Blocked { decision: decision.id.clone() };
        // The question is posted first, so that a blocked finding always has a decision to answer.
        people::post(host, self, &key.child(&format!("ask-{id}")), decision).await?;
        self.move_to(host, id, Transition::new(to, cause, note));
        Ok(())
    }
}
