//! A bound session: what state it is in, and what happens to it.

use tribunal_engine::{
    ids::{DecisionId, RunId},
    reason::{RunOutcome, RunReason},
    timestamp::Timestamp,
};
use tribunal_store::{LastEntries, Store, StoreError};
use tribunal_workflows::{
    findings::finding::FindingStatus,
    review::{ReviewState, topic::ReviewTopic},
    runs::{
        kinds::WorkflowEvent,
        types::{Decision, RunEvent, find_topic},
    },
    session::{
        MAX_REFUSALS_LIMIT, ReleaseReason, SessionEvent, SessionEventKind, SessionRecord, SessionTally, SessionWork,
        ending::{LoopRelease, ReviewRelease, describe_session_question},
        stop::{OpenFinding, SessionRunPhase, StopInput},
        wrap_session_event,
    },
};

use super::{
    BoundSession, HOOK_PATIENCE, RELEASED_BEFORE, SessionError, build_batch, format_utc, replace_state_file,
    set_state_file_aside,
    state_file::{self, StateCounts, StateFile},
};
use crate::{effects::reword_page, engine::run::Runner, project::Project};

/// The events that say which phase a run is in.
const PHASE_EVENTS: [&str; 4] = ["run_started", "run_resumed", "run_parked", "run_finished"];

impl BoundSession {
    pub(super) fn from_state_file(
        project: &Project,
        state_file: &'static str,
        file_text: String,
        mut file_state: StateFile,
    ) -> Result<BoundSession, StoreError> {
        // Without a journal the counters of the file are all there is.
        let mut tally = SessionTally {
            work: file_state.work,
            refusals: file_state.refusals,
            in_a_row: file_state.refusals_in_a_row,
            shown: file_state.refusals,
            ..SessionTally::default()
        };
        let mut standing = StopInput {
            work: file_state.work,
            run_id: file_state.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            prompt: file_state.prompt.clone(),
            promise: file_state.promise.clone(),
            refusals: file_state.refusals,
            max_refusals: file_state.max_refusals,
            failures: file_state.failures.0,
            max_failures: file_state.failures.1,
            open_findings: Vec::new(),
            open_count: if file_state.work == SessionWork::Review { file_state.open_count } else { 0 },
            run_phase: SessionRunPhase::WaitsForSession,
        };
        let (mut state_counts, mut last_time, mut journal) = (StateCounts::default(), Timestamp::default(), None);
        if let Some(run_id) = &file_state.run_id {
            // A run that no journal knows could be anything, so it neither holds a session nor proves anything.
            standing.run_phase = SessionRunPhase::Ended(format!("{run_id} is not in the journal of this project"));
            if let Some((store, last_event)) = find_last_event(project, run_id)? {
                last_time = last_event.last_time;
                file_state.touched_ms = file_state.touched_ms.max(Some(last_event.wall_ms));
                tally = last_event.event.tally;
                // The journal knows what kind of work it is, regardless of what the file says.
                file_state.work = tally.work;
                standing.work = tally.work;
                standing.open_count = 0;
                standing.run_phase = match &last_event.event.what {
                    SessionEventKind::LetGo { .. } => SessionRunPhase::Ended(RELEASED_BEFORE.to_string()),
                    _ => SessionRunPhase::WaitsForSession,
                };
                // The user may have edited the counter in the file; a difference to what was shown is such an edit.
                if file_state.refusals != tally.shown {
                    tally.refusals = file_state.refusals;
                }
                // The user may reset the counter, but the total has a limit.
                standing.refusals = if tally.total < MAX_REFUSALS_LIMIT { tally.refusals } else { u32::MAX };
                if tally.work == SessionWork::Review && standing.run_phase == SessionRunPhase::WaitsForSession {
                    state_counts = read_review_standing(project, &store, run_id, &mut standing)?;
                }
                journal = Some(store);
            }
        }
        Ok(BoundSession {
            state_file,
            file_text,
            file_state,
            standing,
            tally,
            state_counts,
            journal,
            last_time,
            posted_decision: None,
        })
    }

    /// Whether no journal knows it: everything that is known is in the file.
    pub fn has_no_journal(&self) -> bool {
        self.journal.is_none()
    }

    /// Lets a session take what belongs to no session yet.
    pub fn claim_session(&mut self, project: &Project, session_id: &str, now_ms: u64) -> Result<(), SessionError> {
        self.file_state.session_id = session_id.to_string();
        self.write_values(project, &[("session_id", state_file::quote_yaml(session_id))])?;
        self.record_event(SessionEventKind::Claimed { session: session_id.to_string() }, now_ms)
    }

    /// Records that the session was sent back, in the visible file and, where there is one, in the journal. An error means that
    /// it was not counted, and an uncounted refusal could be repeated forever.
    pub fn record_refusal(
        &mut self,
        project: &Project,
        open_findings: Vec<String>,
        claimed: bool,
        now_ms: u64,
    ) -> Result<(), SessionError> {
        self.tally.refusals = self.tally.refusals.saturating_add(1);
        self.tally.total = self.tally.total.saturating_add(1);
        self.tally.in_a_row += 1;
        let refusals = self.tally.refusals;
        let counter_name = if self.state_file == state_file::RALPH_STATE_FILE { "iteration" } else { "current_round" };
        let mut new_values = vec![(counter_name, refusals.to_string())];
        if self.journal.is_some() && self.file_state.work == SessionWork::Review {
            new_values = StateCounts { refusals, ..self.state_counts.clone() }.to_values(&format_utc(now_ms));
        } else {
            new_values.push(("last_updated", state_file::quote_yaml(&format_utc(now_ms))));
        }
        if self.journal.is_none() {
            new_values.push(("in_a_row", self.tally.in_a_row.to_string()));
        }
        let write_outcome = self.write_values(project, &new_values);
        // Without a journal the file is the only counter, so a failed write is an error.
        if self.journal.is_none() {
            return write_outcome;
        }
        if write_outcome.is_ok() {
            self.tally.shown = refusals;
        }
        self.record_event(SessionEventKind::Refused { open: open_findings, claimed }, now_ms)
    }

    /// Releases the session: sets its file aside and records the release. Returns the path at which the file is kept.
    pub fn release_session(
        &mut self,
        project: &Project,
        cause: ReleaseReason,
        detail: &str,
        now_ms: u64,
    ) -> Result<Vec<String>, SessionError> {
        let kept_path = set_state_file_aside(project, self.state_file).map(|kept_file| vec![kept_file]);
        // The release is recorded even if the file could not be moved: the journal decides.
        self.record_release(project, cause, detail, now_ms)?;
        kept_path
    }

    /// Records an event, if there is a journal that knows the run.
    pub fn record_event(&self, event_kind: SessionEventKind, now_ms: u64) -> Result<(), SessionError> {
        self.append_events(vec![self.session_event(event_kind)], now_ms)
    }

    /// Records the release together with what it means for the run: in one batch, so that the run of a loop never lacks its
    /// ending.
    fn record_release(
        &mut self,
        project: &Project,
        cause: ReleaseReason,
        detail: &str,
        now_ms: u64,
    ) -> Result<(), SessionError> {
        let (Some(run_id), Some(journal)) = (&self.file_state.run_id, &self.journal) else { return Ok(()) };
        let mut posted_decision = None;
        let mut events = vec![self.session_event(SessionEventKind::LetGo { why: cause, detail: detail.to_string() })];
        match self.tally.work {
            SessionWork::Loop => {
                let elapsed_ms = self.timestamp_at(now_ms).awake_ms;
                let release = LoopRelease { reason: cause, detail, tally: &self.tally, elapsed_ms };
                let decision_id = next_decision_id(journal, run_id, cause)?;
                events.extend(release.list_run_events(decision_id.clone()));
                posted_decision = Some(decision_id).filter(|_| cause.asks_user());
            }
            SessionWork::Review => {
                let release = ReviewRelease { reason: cause, detail };
                events.extend(self.review_release_events(project, journal, run_id, &release)?);
            }
        }
        self.append_events(events, now_ms)?;
        self.posted_decision = posted_decision;
        Ok(())
    }

    fn session_event(&self, event_kind: SessionEventKind) -> RunEvent {
        wrap_session_event(SessionEvent { what: event_kind, tally: self.tally.clone() })
    }

    fn append_events(&self, events: Vec<RunEvent>, now_ms: u64) -> Result<(), SessionError> {
        let (Some(run_id), Some(journal)) = (&self.file_state.run_id, &self.journal) else { return Ok(()) };
        journal.append_without_writer(build_batch(run_id, events, self.timestamp_at(now_ms)))?;
        Ok(())
    }

    /// The clock of a loop runs while its session is held. That of a review stands still while a session works for it.
    fn timestamp_at(&self, now_ms: u64) -> Timestamp {
        let held_ms = match self.tally.work {
            SessionWork::Loop => now_ms.saturating_sub(self.last_time.wall_ms),
            SessionWork::Review => 0,
        };
        Timestamp { wall_ms: now_ms, awake_ms: self.last_time.awake_ms.saturating_add(held_ms) }
    }

    /// Returns the events with which a review that waits for its session tells the user that it was released, and why. The page
    /// of its question is written anew.
    fn review_release_events(
        &self,
        project: &Project,
        store: &Store,
        run_id: &RunId,
        release: &ReviewRelease<'_>,
    ) -> Result<Vec<RunEvent>, SessionError> {
        if self.standing.run_phase != SessionRunPhase::WaitsForSession || !release.concerns_user() {
            return Ok(Vec::new());
        }
        let Some(RunEvent::RunParked(parked)) = store.last_entry_of(run_id, &PHASE_EVENTS)?.map(|entry| entry.event)
        else {
            return Ok(Vec::new());
        };
        if let Some(RunEvent::DecisionPosted { decision }) =
            store.last_entry_of(run_id, &["decision_posted"])?.map(|entry| entry.event)
            && let Some(ReviewTopic::Session { findings }) = find_topic::<ReviewTopic>(&decision.about)
            && let Some(RunEvent::RunStarted { settings, .. }) =
                store.last_entry_of(run_id, &["run_started"])?.map(|entry| entry.event)
        {
            let question = describe_session_question(&release.describe_release(), findings);
            let decision = Decision { question, ..decision };
            reword_page(project, &settings, run_id, &decision)
                .map_err(|cause| SessionError::File { path: format!("{run_id}.{}.yaml", decision.id), cause })?;
        }
        Ok(vec![RunEvent::RunParked(release.park_review(parked))])
    }

    fn write_values(&mut self, project: &Project, new_values: &[(&str, String)]) -> Result<(), SessionError> {
        let unusable = |reason| SessionError::Unusable { path: self.state_file.to_string(), why: reason };
        let new_text = state_file::replace_values(&self.file_text, new_values).map_err(unusable)?;
        replace_state_file(project, self.state_file, &new_text)?;
        self.file_text = new_text;
        Ok(())
    }
}

/// Returns the id of the next question of a loop. A loop that was continued has asked before.
fn next_decision_id(journal: &Store, run_id: &RunId, cause: ReleaseReason) -> Result<DecisionId, StoreError> {
    // Nothing is read for a release that asks nothing: a hook has little time.
    let last_posted = if cause.asks_user() { journal.last_entry_of(run_id, &["decision_posted"])? } else { None };
    let last_number = last_posted.and_then(|entry| match entry.event {
        RunEvent::DecisionPosted { decision } => decision.id.as_str().strip_prefix('D')?.parse::<u32>().ok(),
        _ => None,
    });
    Ok(DecisionId::new(format!("D{}", last_number.unwrap_or(0).saturating_add(1))))
}

/// The last event between a session and its run, read from the open journal.
struct LastSessionEvent {
    event: SessionEvent,
    wall_ms: u64,
    /// When the last entry of any kind was recorded.
    last_time: Timestamp,
}

fn find_last_event(project: &Project, run_id: &RunId) -> Result<Option<(Store, LastSessionEvent)>, StoreError> {
    if !Store::exists(&project.home_dir()) {
        return Ok(None);
    }
    let store = Store::open_read_only_with_timeout(&project.home_dir(), HOOK_PATIENCE)?;
    let LastEntries { last_of_kind, last_time } = store.read_run_end(run_id, "session")?;
    let last_time = last_time.unwrap_or_default();
    Ok(last_of_kind.and_then(|entry| match entry.event {
        RunEvent::Workflow(WorkflowEvent::Session(SessionRecord::Session(event))) => {
            Some((store, LastSessionEvent { event, wall_ms: entry.at.wall_ms, last_time }))
        }
        _ => None,
    }))
}

/// Reads the state of the run whose findings the session has.
fn read_review_standing(
    project: &Project,
    store: &Store,
    run_id: &RunId,
    standing: &mut StopInput,
) -> Result<StateCounts, StoreError> {
    let mut state_counts = StateCounts::default();
    let mut is_readable = true;
    // The last boundary has the latest complete state of the findings.
    if let Some(last_boundary) = store.last_entry_of(run_id, &["boundary"])?
        && let RunEvent::Boundary { state, .. } = last_boundary.event
    {
        match serde_json::from_value::<ReviewState>(state) {
            Ok(review_state) => {
                state_counts = count_findings(&review_state);
                standing.open_findings = list_open_findings(&review_state);
                standing.failures = review_state.spent.failures_in_a_row;
            }
            Err(_) => is_readable = false,
        }
    }
    standing.open_count = state_counts.open + state_counts.assigned;
    standing.run_phase = match store.last_entry_of(run_id, &PHASE_EVENTS)?.map(|entry| entry.event) {
        _ if !is_readable => SessionRunPhase::Ended(
            "could not read the open findings: another version of Tribunal wrote them".to_string(),
        ),
        Some(RunEvent::RunParked(summary)) if summary.reason == RunReason::InSession => {
            SessionRunPhase::WaitsForSession
        }
        // A resolved review has nothing left to repair, so its session may stop.
        Some(RunEvent::RunFinished(summary)) if summary.outcome == Some(RunOutcome::Resolved) => {
            standing.open_findings.clear();
            standing.open_count = 0;
            SessionRunPhase::WaitsForSession
        }
        Some(RunEvent::RunParked(summary) | RunEvent::RunFinished(summary)) => {
            SessionRunPhase::Ended(describe_review_end(summary.outcome, summary.reason, &summary.detail))
        }
        _ if Runner::is_live(project, run_id) => SessionRunPhase::UnderWay,
        _ => SessionRunPhase::Died,
    };
    Ok(state_counts)
}

/// Describes how a review has ended, for its session. A detail that is empty or repeats the reason adds nothing.
fn describe_review_end(outcome: Option<RunOutcome>, reason: RunReason, detail: &str) -> String {
    let outcome_name = outcome.map_or("stopped", RunOutcome::as_str);
    let description = reason.table_row().description;
    if detail.is_empty() || detail == description {
        format!("the review is {outcome_name}: {description}")
    } else {
        format!("the review is {outcome_name}: {description}, {detail}")
    }
}

fn count_findings(review_state: &ReviewState) -> StateCounts {
    let count_status = |has_status: fn(&FindingStatus) -> bool| {
        review_state.findings.iter().filter(|finding| has_status(&finding.status)).count() as u32
    };
    StateCounts {
        refusals: 0,
        total: count_status(|status| !matches!(status, FindingStatus::Dismissed { .. })),
        open: count_status(|status| *status == FindingStatus::Open),
        assigned: count_status(|status| *status == FindingStatus::Assigned),
        fixed: count_status(|status| *status == FindingStatus::Fixed),
        blocked: count_status(|status| matches!(status, FindingStatus::Blocked { .. })),
        failures: review_state.spent.failures_in_a_row,
        total_failures: review_state.metrics.failures,
    }
}

fn list_open_findings(review_state: &ReviewState) -> Vec<OpenFinding> {
    let open_findings = review_state
        .findings
        .iter()
        .filter(|finding| finding.status.is_open() || finding.status == FindingStatus::Assigned);
    open_findings
        .map(|finding| OpenFinding {
            id: finding.id,
            severity: finding.severity,
            place: finding.place.as_ref().map_or("no location".to_string(), ToString::to_string),
            description: finding.description.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_without_a_detail_has_no_dangling_comma() {
        let describe = |detail: &str| describe_review_end(Some(RunOutcome::Halted), RunReason::Cost, detail);
        assert_eq!(describe(""), "the review is halted: cost limit reached");
        assert_eq!(describe("cost limit reached"), "the review is halted: cost limit reached");
        assert_eq!(describe("$5.00"), "the review is halted: cost limit reached, $5.00");
    }
}
