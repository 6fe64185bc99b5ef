//! What a session has taken on: how it stands, and what happens to it.

use tribunal_core::{
    decision::Decision,
    event::Event,
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
    LET_GO, SessionError, Taken, append,
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
        let mut standing = Standing {
            work: state.work,
            run: state.run.as_ref().map(ToString::to_string).unwrap_or_default(),
            prompt: state.prompt.clone(),
            promise: state.promise.clone(),
            refusals: state.refusals,
            max_refusals: state.max_refusals,
            failures: state.failures,
            max_failures: state.max_failures,
            open: Vec::new(),
            open_count: if state.work == Work::Review { state.open } else { 0 },
            run_is: Phase::Session,
        };
        let mut taken =
            (Tally { refusals: state.refusals, ..Tally::default() }, Counted::default(), 0, false);
        if let (Some(run), true) = (&state.run, Store::exists(&project.home())) {
            let store = Store::open_read_only(&project.home())?;
            if let Some(last) = store.last_of(run, &["session"])? {
                let (tally, counted, awake_ms, recorded) = &mut taken;
                *recorded = true;
                // The run's own clock stands still while a session works.
                *awake_ms = store.last_stamp(run)?.map_or(0, |at| at.awake_ms);
                state.touched_ms = state.touched_ms.max(Some(last.at.wall_ms));
                if let Event::Session(event) = last.event {
                    *tally = event.tally;
                    if matches!(event.what, What::LetGo { .. }) {
                        standing.run_is = Phase::Over(LET_GO.to_string());
                    }
                }
                // Who set it back by hand grants more, but not for ever.
                standing.refusals = match tally.refusals {
                    UPPER_BOUND.. => tally.refusals.max(state.max_refusals),
                    counted => counted.min(state.refusals),
                };
                if state.work == Work::Review && standing.run_is == Phase::Session {
                    *counted = review(project, &store, run, &mut standing)?;
                }
            }
        }
        let (tally, counted, awake_ms, recorded) = taken;
        Ok(Taken { file, text, state, standing, tally, counted, recorded, awake_ms })
    }

    /// A session takes what belongs to nobody yet.
    pub fn claim(&mut self, project: &Project, session: &str, now_ms: u64) -> Result<(), SessionError> {
        self.state.session = session.to_string();
        self.write(project, &[("session_id", file::quoted(session))])?;
        self.record(project, What::Claimed { session: session.to_string() }, now_ms)
    }

    /// It was sent back: counted in the journal first, then in the file.
    pub fn refuse(
        &mut self,
        project: &Project,
        (open, claimed): (Vec<String>, bool),
        now_ms: u64,
    ) -> Result<(), SessionError> {
        let refusals = self.standing.refusals + 1;
        self.tally.refusals = self.tally.refusals.saturating_add(1);
        self.tally.in_a_row += 1;
        let recorded = self.record(project, What::Refused { open, claimed }, now_ms);
        let name = if self.file == file::THEIRS { "iteration" } else { "current_round" };
        let mut values = vec![(name, refusals.to_string())];
        if self.recorded && self.state.work == Work::Review {
            values = Counted { refusals, ..self.counted.clone() }.values(&utc(now_ms));
        } else {
            values.push(("last_updated", file::quoted(&utc(now_ms))));
        }
        if !self.recorded {
            values.push(("in_a_row", self.tally.in_a_row.to_string()));
        }
        // Counted in one of the two is counted; in none, nobody may be sent back: it could be for ever.
        match (self.write(project, &values), recorded) {
            (Ok(()), _) => Ok(()),
            (Err(_), Ok(())) if self.recorded => Ok(()),
            (Err(cause), _) => Err(cause),
        }
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
        self.record(project, What::LetGo { why, detail: detail.to_string() }, now_ms)?;
        aside
    }

    /// Puts something into the journal, if there is one that knows of this.
    pub fn record(&self, project: &Project, what: What, now_ms: u64) -> Result<(), SessionError> {
        let Some(run) = self.state.run.as_ref().filter(|_| self.recorded) else { return Ok(()) };
        let mut events = vec![Event::Session(SessionEvent { what: what.clone(), tally: self.tally.clone() })];
        if let (Work::Loop, What::LetGo { why, detail }) = (self.state.work, &what) {
            events.extend(asks(*why, detail));
        }
        append(project, run, events, Stamp { wall_ms: now_ms, awake_ms: self.awake_ms })
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

/// How the run stands whose findings the session has taken on.
fn review(
    project: &Project,
    store: &Store,
    run: &RunId,
    standing: &mut Standing,
) -> Result<Counted, StoreError> {
    let mut counted = Counted::default();
    if let Some(last) = store.last_of(run, &["boundary"])?
        && let Event::Boundary { state, .. } = last.event
        && let Ok(court) = serde_json::from_value::<Court>(state)
    {
        counted = count(&court);
        standing.open = open(&court);
        standing.failures = court.spent.failures_in_a_row;
    }
    standing.open_count = counted.open + counted.assigned;
    standing.run_is = match store.last_of(run, &PHASES)?.map(|entry| entry.event) {
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
        _ => Phase::Over(format!("the review died; go on with it: tribunal resume {run}")),
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
