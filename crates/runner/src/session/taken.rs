//! A bound session: what state it is in, and what happens to it.

use tribunal_core::{
    decision::Decision,
    event::{Event, Summary},
    finding::Status,
    ids::{DecisionId, RunId},
    reason::{Outcome, Reason},
    review::Court,
    session::{
        LetGo, SessionEvent, Tally, UPPER_BOUND, What, Work,
        stop::{Open, Phase, Standing},
    },
    stamp::Stamp,
};
use tribunal_store::{Store, StoreError};

use super::{
    LET_GO, PATIENCE, SessionError, Taken, batch,
    file::{self, Counted, State},
    put_aside, replace, utc,
};
use crate::{project::Project, run::Runner};

/// The events that say which phase a run is in.
const PHASES: [&str; 4] = ["run_started", "run_resumed", "run_parked", "run_finished"];

impl Taken {
    pub(super) fn of(
        project: &Project,
        file: &'static str,
        text: String,
        mut state: State,
    ) -> Result<Taken, StoreError> {
        // Without a journal the counters of the file are all there is.
        let mut tally = Tally {
            work: state.work,
            refusals: state.refusals,
            in_a_row: state.in_a_row,
            shown: state.refusals,
            ..Tally::default()
        };
        let mut standing = Standing {
            work: state.work,
            run: state.run.as_ref().map(ToString::to_string).unwrap_or_default(),
            prompt: state.prompt.clone(),
            promise: state.promise.clone(),
            refusals: state.refusals,
            max_refusals: state.max_refusals,
            failures: state.failures.0,
            max_failures: state.failures.1,
            open: Vec::new(),
            open_count: if state.work == Work::Review { state.open } else { 0 },
            run_is: Phase::Session,
        };
        let (mut counted, mut awake_ms, mut journal) = (Counted::default(), 0, None);
        if let Some(run) = &state.run {
            // A run that no journal knows could be anything, so it neither holds a session nor proves anything.
            standing.run_is = Phase::Over(format!("no journal here knows of {run}"));
            if let Some((store, last)) = last_of(project, run)? {
                // The run's own clock stands still while a session works.
                awake_ms = store.last_stamp(run)?.map_or(0, |at| at.awake_ms);
                state.touched_ms = state.touched_ms.max(Some(last.wall_ms));
                tally = last.event.tally;
                // The journal knows what kind of work it is, regardless of what the file says.
                state.work = tally.work;
                standing.work = tally.work;
                standing.open_count = 0;
                standing.run_is = match &last.event.what {
                    What::LetGo { .. } => Phase::Over(LET_GO.to_string()),
                    _ => Phase::Session,
                };
                // The user may have edited the counter in the file; a difference to what was shown is such an edit.
                if state.refusals != tally.shown {
                    tally.refusals = state.refusals;
                }
                // The user may reset the counter, but the total has a limit.
                standing.refusals = if tally.total < UPPER_BOUND { tally.refusals } else { u32::MAX };
                if tally.work == Work::Review && standing.run_is == Phase::Session {
                    counted = review(project, &store, run, &mut standing)?;
                }
                journal = Some(store);
            }
        }
        Ok(Taken { file, text, state, standing, tally, counted, journal, awake_ms })
    }

    /// Whether no journal knows it: everything that is known is in the file.
    pub fn is_of_a_file_alone(&self) -> bool {
        self.journal.is_none()
    }

    /// Lets a session take what belongs to no session yet.
    pub fn claim(&mut self, project: &Project, session: &str, now_ms: u64) -> Result<(), SessionError> {
        self.state.session = session.to_string();
        self.write(project, &[("session_id", file::quoted(session))])?;
        self.record(What::Claimed { session: session.to_string() }, now_ms)
    }

    /// Records that the session was sent back, in the visible file and, where there is one, in the journal. An error means that
    /// it was not counted, and an uncounted refusal could be repeated forever.
    pub fn refuse(
        &mut self,
        project: &Project,
        open: Vec<String>,
        claimed: bool,
        now_ms: u64,
    ) -> Result<(), SessionError> {
        self.tally.refusals = self.tally.refusals.saturating_add(1);
        self.tally.total = self.tally.total.saturating_add(1);
        self.tally.in_a_row += 1;
        let refusals = self.tally.refusals;
        let name = if self.file == file::THEIRS { "iteration" } else { "current_round" };
        let mut values = vec![(name, refusals.to_string())];
        if self.journal.is_some() && self.state.work == Work::Review {
            values = Counted { refusals, ..self.counted.clone() }.values(&utc(now_ms));
        } else {
            values.push(("last_updated", file::quoted(&utc(now_ms))));
        }
        if self.journal.is_none() {
            values.push(("in_a_row", self.tally.in_a_row.to_string()));
        }
        let written = self.write(project, &values);
        // Without a journal the file is the only counter, so a failed write is an error.
        if self.journal.is_none() {
            return written;
        }
        if written.is_ok() {
            self.tally.shown = refusals;
        }
        self.record(What::Refused { open, claimed }, now_ms)
    }

    /// Releases the session: records it and sets its file aside. Returns the paths that were written, in order.
    pub fn let_go(
        &mut self,
        project: &Project,
        why: LetGo,
        detail: &str,
        now_ms: u64,
    ) -> Result<Vec<String>, SessionError> {
        let aside = put_aside(project, self.file).map(|path| vec![path]);
        // The release is recorded even if the file could not be moved: the journal decides.
        self.record(What::LetGo { why, detail: detail.to_string() }, now_ms)?;
        aside
    }

    /// Records an event, if there is a journal that knows the run.
    pub fn record(&self, what: What, now_ms: u64) -> Result<(), SessionError> {
        let (Some(run), Some(journal)) = (&self.state.run, &self.journal) else { return Ok(()) };
        let mut events = vec![Event::Session(SessionEvent { what: what.clone(), tally: self.tally.clone() })];
        if let (Work::Loop, What::LetGo { why, detail }) = (self.tally.work, &what) {
            events.extend(asks(*why, detail));
        }
        events.extend(self.halts(journal, run, &what)?);
        let at = Stamp { wall_ms: now_ms, awake_ms: self.awake_ms };
        journal.append_here(batch(run, events, at))?;
        Ok(())
    }

    /// Returns the event that halts a review whose session ran out of time, so that the run does not wait for it.
    fn halts(&self, store: &Store, run: &RunId, what: &What) -> Result<Option<Event>, SessionError> {
        let What::LetGo { why: LetGo::TimedOut, detail } = what else { return Ok(None) };
        if self.tally.work != Work::Review || self.standing.run_is != Phase::Session {
            return Ok(None);
        }
        Ok(match store.last_of(run, &PHASES)?.map(|entry| entry.event) {
            Some(Event::RunParked(summary)) => Some(Event::RunParked(Summary {
                outcome: Reason::Runtime.outcome(),
                reason: Reason::Runtime,
                detail: format!("the session says so: {detail}"),
                ..summary
            })),
            _ => None,
        })
    }

    fn write(&mut self, project: &Project, values: &[(&str, String)]) -> Result<(), SessionError> {
        let unusable = |why| SessionError::Unusable { path: self.file.to_string(), why };
        let text = file::edited(&self.text, values).map_err(unusable)?;
        replace(project, self.file, &text)?;
        self.text = text;
        Ok(())
    }
}

/// Returns the decision that asks how to proceed with a loop which was released before it was done.
fn asks(why: LetGo, detail: &str) -> Option<Event> {
    if matches!(why, LetGo::Complete | LetGo::Person | LetGo::Over) {
        return None;
    }
    let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
    let question = format!("the session was let go: {}{detail}. Is it to go on?", why.says());
    Some(Event::DecisionPosted { decision: Decision::of_loop(DecisionId::new("D1"), question) })
}

/// The last event between a session and its run, read from the open journal.
struct Last {
    event: SessionEvent,
    wall_ms: u64,
}

fn last_of(project: &Project, run: &RunId) -> Result<Option<(Store, Last)>, StoreError> {
    if !Store::exists(&project.home()) {
        return Ok(None);
    }
    let store = Store::open_read_only_within(&project.home(), PATIENCE)?;
    let found = store.last_of(run, &["session"])?;
    Ok(found.and_then(|entry| match entry.event {
        Event::Session(event) => Some((store, Last { event, wall_ms: entry.at.wall_ms })),
        _ => None,
    }))
}

/// Reads the state of the run whose findings the session has.
fn review(
    project: &Project,
    store: &Store,
    run: &RunId,
    standing: &mut Standing,
) -> Result<Counted, StoreError> {
    let mut counted = Counted::default();
    let mut known = true;
    // The last boundary has the latest complete state of the findings.
    if let Some(last) = store.last_of(run, &["boundary"])?
        && let Event::Boundary { state, .. } = last.event
    {
        match serde_json::from_value::<Court>(state) {
            Ok(court) => {
                counted = count(&court);
                standing.open = open(&court);
                standing.failures = court.spent.failures_in_a_row;
            }
            Err(_) => known = false,
        }
    }
    standing.open_count = counted.open + counted.assigned;
    standing.run_is = match store.last_of(run, &PHASES)?.map(|entry| entry.event) {
        _ if !known => Phase::Over("what is open cannot be read: another Tribunal wrote it".to_string()),
        Some(Event::RunParked(summary)) if summary.reason == Reason::InSession => Phase::Session,
        // A resolved review has nothing left to repair, so its session may stop.
        Some(Event::RunFinished(summary)) if summary.outcome == Some(Outcome::Resolved) => {
            standing.open.clear();
            standing.open_count = 0;
            Phase::Session
        }
        Some(Event::RunParked(summary) | Event::RunFinished(summary)) => {
            let word = summary.outcome.map_or("stopped", Outcome::as_str);
            Phase::Over(format!("the review is {word}: {}, {}", summary.reason.row().says, summary.detail))
        }
        _ if Runner::is_live(project, run) => Phase::UnderWay,
        _ => Phase::Died,
    };
    Ok(counted)
}

fn count(court: &Court) -> Counted {
    let of = |is: fn(&Status) -> bool| court.findings.iter().filter(|f| is(&f.status)).count() as u32;
    Counted {
        refusals: 0,
        total: of(|status| !matches!(status, Status::Dismissed { .. })),
        open: of(|status| *status == Status::Open),
        assigned: of(|status| *status == Status::Assigned),
        fixed: of(|status| *status == Status::Fixed),
        blocked: of(|status| matches!(status, Status::Blocked { .. })),
        failures: court.spent.failures_in_a_row,
        total_failures: court.metrics.failures,
    }
}

fn open(court: &Court) -> Vec<Open> {
    let still = court
        .findings
        .iter()
        .filter(|finding| finding.status.is_open() || finding.status == Status::Assigned);
    still
        .map(|finding| Open {
            id: finding.id,
            severity: finding.severity,
            place: finding.place.as_ref().map_or("no place".to_string(), ToString::to_string),
            description: finding.description.clone(),
        })
        .collect()
}
