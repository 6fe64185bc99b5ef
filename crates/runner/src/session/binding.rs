//! Binds a session to a run or a loop, and writes the state file that says so.

use std::time::Duration;

use tribunal_engine::ids::RunId;
use tribunal_workflows::{
    findings::finding::FindingStatus,
    review::{order::ReviewOrder, view::ReviewView},
    runs::{
        kinds::{RunOrder, WorkflowEvent},
        settings::Settings,
        types::{EntryDraft, JournalEntry, RunEvent},
        view::RunView,
    },
    session::{
        MAX_REFUSALS_LIMIT, SessionAssignment, SessionBinding, SessionEvent, SessionEventKind, SessionRecord,
        SessionStep, SessionTally, stop::SessionRunPhase, wrap_session_event,
    },
};

use super::{
    SessionError, SessionLookup, current_wall_ms, format_utc, look_up_in_file, read_state_file, replace_state_file,
    set_state_file_aside,
    state_file::{self, StateCounts, StateFile, StateFileFacts},
};
use crate::{
    engine::run::{RunError, Runner},
    project::Project,
};

/// Fails if a session here is bound to something that is not over. A file that holds no session any more is set aside.
pub fn ensure_no_other_session(project: &Project, session_id: &str, stale_after: Duration) -> Result<(), SessionError> {
    let already_bound = |session_id: &str, run_id: Option<&RunId>| SessionError::AlreadyBound {
        session: session_id.to_string(),
        run: run_id.map_or("a loop".to_string(), ToString::to_string),
    };
    match look_up_in_file(project, state_file::OWN_STATE_FILE, session_id, current_wall_ms(), stale_after) {
        SessionLookup::NothingBound => Ok(()),
        // The file was set aside by the lookup itself, so there is room now.
        SessionLookup::NotHeld(_) if !project.root().join(state_file::OWN_STATE_FILE).exists() => Ok(()),
        SessionLookup::NotHeld(reason) => {
            Err(SessionError::Unusable { path: state_file::OWN_STATE_FILE.to_string(), why: reason })
        }
        SessionLookup::HeldByAnother { session: other_session } => {
            // The file is read again as its owner would see it, to learn whether its run is over.
            match look_up_in_file(project, state_file::OWN_STATE_FILE, &other_session, current_wall_ms(), stale_after) {
                SessionLookup::HeldHere(bound_session)
                    if !matches!(bound_session.standing.run_phase, SessionRunPhase::Ended(_)) =>
                {
                    Err(already_bound(&other_session, bound_session.file_state.run_id.as_ref()))
                }
                SessionLookup::HeldHere(_) => set_state_file_aside(project, state_file::OWN_STATE_FILE).map(|_| ()),
                _ => Ok(()),
            }
        }
        SessionLookup::HeldHere(bound_session)
            if matches!(bound_session.standing.run_phase, SessionRunPhase::Ended(_)) =>
        {
            set_state_file_aside(project, state_file::OWN_STATE_FILE).map(|_| ())
        }
        SessionLookup::HeldHere(bound_session) => {
            Err(already_bound(&bound_session.file_state.session_id, bound_session.file_state.run_id.as_ref()))
        }
    }
}

pub(super) fn bound_event(bound: &SessionAssignment) -> RunEvent {
    let step = bound.step.clone().map(|file| SessionStep { file, ..SessionStep::default() });
    let event_kind = SessionEventKind::Bound { bound: bound.clone() };
    wrap_session_event(SessionEvent {
        what: event_kind,
        tally: SessionTally { work: bound.work, step, ..SessionTally::default() },
    })
}

/// The duration after which nothing counts as stale.
pub(super) const NEVER_STALE: Duration = Duration::from_secs(u64::MAX / 1000);

/// Writes a new state file.
pub fn write_state_file(
    project: &Project,
    run_id: &RunId,
    bound: &SessionAssignment,
    facts: &StateFileFacts,
    counts: &StateCounts,
) -> Result<(), SessionError> {
    let bound = SessionAssignment { max_refusals: bound.max_refusals.clamp(1, MAX_REFUSALS_LIMIT), ..bound.clone() };
    replace_state_file(
        project,
        state_file::OWN_STATE_FILE,
        &state_file::render_state_file(run_id, &bound, facts, counts, &format_utc(current_wall_ms())),
    )
}

/// Updates the state file, if it belongs to this run.
pub(crate) fn refresh_state_file(project: &Project, run_view: &RunView) {
    let (Some(run_id), Ok(Some(file_text))) = (&run_view.run_id, read_state_file(project, state_file::OWN_STATE_FILE))
    else {
        return;
    };
    let Ok(file_state) = StateFile::parse_state(&file_text) else { return };
    if file_state.run_id.as_ref() != Some(run_id) {
        return;
    }
    let count_status = |has_status: fn(&FindingStatus) -> bool| {
        run_view.all_findings().filter(|finding| has_status(&finding.status)).count() as u32
    };
    // Assigned findings are still open for the run, but the file counts them separately.
    let counts = run_view.finding_counts();
    let assigned = count_status(|status| *status == FindingStatus::Assigned);
    let new_counts = StateCounts {
        refusals: file_state.refusals,
        total: counts.total,
        open: counts.open.saturating_sub(assigned),
        assigned,
        fixed: counts.fixed,
        blocked: counts.blocked,
        failures: file_state.failures.0,
        total_failures: file_state.failures.0,
    };
    let mut new_values = new_counts.to_values(&format_utc(current_wall_ms()));
    new_values.retain(|(name, _)| !name.ends_with("_failures"));
    if let Some(review) = run_view.as_review() {
        new_values.push(("review_round", review.rounds.to_string()));
        if let Some(confidence) = &review.confidence {
            new_values.push(("current_confidence", confidence.score.to_string()));
        }
    }
    // The file is only a view: the journal has everything.
    if let Ok(file_text) = state_file::replace_values(&file_text, &new_values) {
        let _ = replace_state_file(project, state_file::OWN_STATE_FILE, &file_text);
    }
}

/// Returns what the state file of a new review says about it.
fn state_file_facts(order: &ReviewOrder, settings: &Settings) -> StateFileFacts {
    StateFileFacts {
        subject: order.subject.title(),
        section: order.subject.section_title().unwrap_or_default().to_string(),
        max_rounds: order.limits.rounds,
        max_fix_iterations: order.limits.fix_iterations,
        target_confidence: order.target_confidence,
        max_failures: settings.limits.failures,
        ..StateFileFacts::default()
    }
}

impl Runner {
    /// Binds the session of a resumed run, unless its session still holds it.
    pub(crate) fn draft_binding_if_free(
        &self,
        order: &RunOrder,
        entries: &[JournalEntry],
    ) -> Result<Option<EntryDraft>, RunError> {
        let is_file_gone = !self.project.root().join(state_file::OWN_STATE_FILE).exists();
        match (SessionBinding::from_entries(entries), &self.binding) {
            // A session that comes back without its state file gets it again; no other session takes it over.
            (Some(SessionBinding { release: None, assignment: bound, .. }), Some(own_binding))
                if is_file_gone && bound.session == own_binding.session =>
            {
                self.draft_binding(order)
            }
            (Some(SessionBinding { release: None, .. }), _) => Ok(None),
            // There is one session per project: one that is bound to something else stays bound to that.
            (_, Some(own_binding))
                if ensure_no_other_session(&self.project, &own_binding.session, NEVER_STALE).is_err() =>
            {
                Ok(None)
            }
            _ => self.draft_binding(order),
        }
    }

    /// Writes the state file of a session that was recorded as the one that repairs.
    pub(crate) fn write_binding_file(&self, run_view: &RunView, entries: &[JournalEntry]) -> Result<(), RunError> {
        let bound = entries.iter().find_map(|entry| match &entry.event {
            RunEvent::Workflow(WorkflowEvent::Session(SessionRecord::Session(SessionEvent {
                what: SessionEventKind::Bound { bound },
                ..
            }))) => Some(bound),
            _ => None,
        });
        if let (Some(bound), Some(run_id), Some(settings)) = (bound, &run_view.run_id, &run_view.settings)
            && let Some(order) = run_view.as_review().and_then(ReviewView::review_order)
        {
            write_state_file(&self.project, run_id, bound, &state_file_facts(order, settings), &Default::default())?;
        }
        Ok(())
    }

    /// Returns the entry that binds the session which repairs from now on.
    pub(crate) fn draft_binding(&self, order: &RunOrder) -> Result<Option<EntryDraft>, RunError> {
        let is_in_session = order.as_review().is_some_and(|order| order.fixers.in_session);
        let Some(bound) = self.binding.clone().filter(|_| is_in_session) else {
            return Ok(None);
        };
        let event = bound_event(&bound);
        Ok(Some(EntryDraft { id: format!("session:{}:{}", std::process::id(), current_wall_ms()), event }))
    }
}
