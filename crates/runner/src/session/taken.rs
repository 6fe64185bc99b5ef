//! What a session has taken on: how it stands, and what happens to it.

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

/// What says where a run stands.
const PHASES: [&str; 4] = ["run_started", "run_resumed", "run_parked", "run_finished"];

impl Taken {
    pub(super) fn of(
        project: &Project,
        file: &'static str,
        text: String,
        mut state: State,
    ) -> Result<Taken, StoreError> {
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
            // What claims to be known and is not can be anything; it holds nobody and proves nothing.
            standing.run_is = Phase::Over(format!("no journal here knows of {run}"));
            if let Some((store, last)) = last_of(project, run)? {
                // The run's own clock stands still while a session works.
                awake_ms = store.last_stamp(run)?.map_or(0, |at| at.awake_ms);
                state.touched_ms = state.touched_ms.max(Some(last.wall_ms));
                tally = last.event.tally;
                // Whatever the file says, the journal knows what it is.
                state.work = tally.work;
                standing.work = tally.work;
                standing.open_count = 0;
                standing.run_is = match &last.event.what {
                    What::LetGo { .. } => Phase::Over(LET_GO.to_string()),
                    _ => Phase::Session,
                };
                if state.refusals != tally.shown {
                    tally.refusals = state.refusals;
                }
                // What a person set back is granted, but not for ever.
                standing.refusals = if tally.total < UPPER_BOUND { tally.refusals } else { u32::MAX };
                if tally.work == Work::Review && standing.run_is == Phase::Session {
                    counted = review(project, &store, run, &mut standing)?;
                }
                journal = Some(store);
            }
        }
        Ok(Taken { file, text, state, standing, tally, counted, journal, awake_ms })
    }

    /// No journal knows of it: what the file says is all there is.
    pub fn is_of_a_file_alone(&self) -> bool {
        self.journal.is_none()
    }

    /// A session takes what belongs to nobody yet.
    pub fn claim(&mut self, project: &Project, session: &str, now_ms: u64) -> Result<(), SessionError> {
        self.state.session = session.to_string();
        self.write(project, &[("session_id", file::quoted(session))])?;
        self.record(What::Claimed { session: session.to_string() }, now_ms)
    }

    /// It was sent back: counted in the file that people see, and in the journal where there is one. What could not be counted
    /// where it counts did not happen: it could be for ever.
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
        if self.journal.is_none() {
            return written;
        }
        if written.is_ok() {
            self.tally.shown = refusals;
        }
        self.record(What::Refused { open, claimed }, now_ms)
    }

    /// Nobody holds it any more: recorded, and its file put aside. What was written, in order.
    pub fn let_go(
        &mut self,
        project: &Project,
        why: LetGo,
        detail: &str,
        now_ms: u64,
    ) -> Result<Vec<String>, SessionError> {
        let aside = put_aside(project, self.file).map(|path| vec![path]);
        self.record(What::LetGo { why, detail: detail.to_string() }, now_ms)?;
        aside
    }

    /// Puts something into the journal, if there is one that knows of this.
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

    /// A session whose time is up leaves the review halted, not waiting for it.
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

/// A loop that was let go before it was done asks what is to become of it.
fn asks(why: LetGo, detail: &str) -> Option<Event> {
    if matches!(why, LetGo::Complete | LetGo::Person | LetGo::Over) {
        return None;
    }
    let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
    let question = format!("the session was let go: {}{detail}. Is it to go on?", why.says());
    Some(Event::DecisionPosted { decision: Decision::of_loop(DecisionId::new("D1"), question) })
}

/// The last that the journal knows between a session and this, with the open journal.
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

/// How the run stands whose findings the session has taken on.
fn review(
    project: &Project,
    store: &Store,
    run: &RunId,
    standing: &mut Standing,
) -> Result<Counted, StoreError> {
    let mut counted = Counted::default();
    let mut known = true;
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
