//! A loop in a session as users see it.

use alloc::string::String;

use crate::{
    runs::kind_view::{KindView, ViewedKind},
    session::{
        event::{ReleaseReason, SessionAssignment, SessionEvent, SessionEventKind, SessionRecord, SessionTally},
        order::SessionSummary,
    },
};
use tribunal_engine::timestamp::Timestamp;

#[derive(Clone, Debug, Default)]
pub struct SessionView {
    pub assignment: SessionAssignment,
    pub tally: SessionTally,
    /// Why it was released, with details; `None` while it is held.
    pub release: Option<(ReleaseReason, String)>,
}

impl ViewedKind for SessionAssignment {
    type View = SessionView;
}

impl KindView<SessionAssignment> for SessionView {
    fn apply_order(&mut self, assignment: &SessionAssignment) {
        self.assignment = assignment.clone();
    }

    fn apply_event(&mut self, event: &SessionRecord, at: Timestamp) {
        let SessionRecord::Session(event) = event;
        self.apply_session(event, at);
    }

    fn apply_session(&mut self, event: &SessionEvent, _: Timestamp) {
        self.tally = event.tally.clone();
        match &event.what {
            // A loop that is continued is bound once more; the new binding replaces everything before it.
            SessionEventKind::Bound { bound } => {
                self.assignment = bound.clone();
                self.release = None;
            }
            SessionEventKind::Claimed { session } => self.assignment.session.clone_from(session),
            SessionEventKind::LetGo { why, detail } => self.release = Some((*why, detail.clone())),
            _ => {}
        }
    }

    fn apply_summary(&mut self, summary: &SessionSummary) {
        // A list of runs reads the starts and ends of runs, and no session events in between.
        self.tally.total = summary.refusals;
        self.tally.tools = summary.tools;
        if self.release.is_none() {
            self.release = summary.released.map(|reason| (reason, String::new()));
        }
    }

    fn build_summary(&self) -> SessionSummary {
        SessionSummary {
            refusals: self.tally.total,
            tools: self.tally.tools,
            released: self.release.as_ref().map(|(reason, _)| *reason),
        }
    }
}
