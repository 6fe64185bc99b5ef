//! Binds a session to a run or a loop, and writes the state file that says so.

use std::time::Duration;

use tribunal_core::{
    decision::Answer,
    event::{Draft, Entry, Event},
    finding::Status,
    ids::{DecisionId, RunId},
    session::{Binding, Bound, SessionEvent, Step, Tally, UPPER_BOUND, What, stop::Phase},
    settings::Settings,
    stamp::Stamp,
    view::RunView,
};
use tribunal_store::Store;

use super::{
    Look, SessionError, append,
    file::{self, Counted, Shown, State},
    look_into, now_ms, put_aside, read, replace, utc,
};
use crate::{
    locks, names,
    project::Project,
    run::{RunError, Runner},
};

/// Fails if a session here is bound to something that is not over. A file that holds no session any more is set aside.
pub fn make_room(project: &Project, session: &str, stale_after: Duration) -> Result<(), SessionError> {
    let busy = |session: &str, run: Option<&RunId>| SessionError::Busy {
        session: session.to_string(),
        run: run.map_or("a loop".to_string(), ToString::to_string),
    };
    match look_into(project, file::OURS, session, now_ms(), stale_after) {
        Look::Nothing => Ok(()),
        // The file was set aside by the lookup itself, so there is room now.
        Look::Idle(_) if !project.root().join(file::OURS).exists() => Ok(()),
        Look::Idle(why) => Err(SessionError::Unusable { path: file::OURS.to_string(), why }),
        Look::Anothers { session: other } => {
            // The file is read again as its owner would see it, to learn whether its run is over.
            match look_into(project, file::OURS, &other, now_ms(), stale_after) {
                Look::Held(taken) if !matches!(taken.standing.run_is, Phase::Over(_)) => {
                    Err(busy(&other, taken.state.run.as_ref()))
                }
                Look::Held(_) => put_aside(project, file::OURS).map(|_| ()),
                _ => Ok(()),
            }
        }
        Look::Held(taken) if matches!(taken.standing.run_is, Phase::Over(_)) => {
            put_aside(project, file::OURS).map(|_| ())
        }
        Look::Held(taken) => Err(busy(&taken.state.session, taken.state.run.as_ref())),
    }
}

/// Starts a loop if no session is bound here: records it and writes its state file. Returns its name.
pub fn start_loop(project: &Project, bound: Bound, stale_after: Duration) -> Result<RunId, SessionError> {
    let failed = |cause| SessionError::File { path: ".tribunal".to_string(), cause };
    project.prepare_home().map_err(failed)?;
    // Without the lock two processes could both find that there is room.
    let _alone = locks::alone(&project.locks()).map_err(failed)?;
    make_room(project, &bound.session, stale_after)?;
    let store = Store::open(&project.home())?;
    let run = names::fresh("loop", &store.loops()?);
    drop(store);
    append(project, &run, vec![bound_event(&bound)], Stamp { wall_ms: now_ms(), awake_ms: 0 })?;
    show(project, &run, &bound, &Shown::default(), &Counted::default())?;
    Ok(run)
}

fn bound_event(bound: &Bound) -> Event {
    let step = bound.step.clone().map(|file| Step { file, ..Step::default() });
    let what = What::Bound { bound: bound.clone() };
    Event::Session(SessionEvent { what, tally: Tally { work: bound.work, step, ..Tally::default() } })
}

/// Records the user's answer on what happens to a loop that was released before it was done.
pub fn answer_loop(project: &Project, binding: &Binding, more: bool) -> Result<(), SessionError> {
    let (choice, note) = (if more { "more" } else { "end" }, String::new());
    let answer = Answer { choice: choice.into(), note };
    let mut events = vec![Event::DecisionAnswered { decision: DecisionId::new("D1"), answer }];
    if more {
        make_room(project, &binding.bound.session, FOR_EVER)?;
        show(project, &binding.run, &binding.bound, &Shown::default(), &Counted::default())?;
        events.push(bound_event(&binding.bound));
    }
    append(project, &binding.run, events, Stamp { wall_ms: now_ms(), awake_ms: 0 })
}

/// The duration after which nothing counts as stale.
const FOR_EVER: Duration = Duration::from_secs(u64::MAX / 1000);

/// Writes a new state file.
pub fn show(
    project: &Project,
    run: &RunId,
    bound: &Bound,
    shown: &Shown,
    counted: &Counted,
) -> Result<(), SessionError> {
    let bound = Bound { max_refusals: bound.max_refusals.clamp(1, UPPER_BOUND), ..bound.clone() };
    replace(project, file::OURS, &file::render(run, &bound, shown, counted, &utc(now_ms())))
}

/// Updates the state file, if it belongs to this run.
pub(crate) fn refresh(project: &Project, view: &RunView) {
    let (Some(run), Ok(Some(text))) = (&view.run, read(project, file::OURS)) else { return };
    let Ok(state) = State::read(&text) else { return };
    if state.run.as_ref() != Some(run) {
        return;
    }
    let of = |is: fn(&Status) -> bool| view.findings.values().filter(|f| is(&f.status)).count() as u32;
    // Assigned findings are still open for the run, but the file counts them separately.
    let counts = view.counts();
    let assigned = of(|status| *status == Status::Assigned);
    let counted = Counted {
        refusals: state.refusals,
        total: counts.total,
        open: counts.open.saturating_sub(assigned),
        assigned,
        fixed: counts.fixed,
        blocked: counts.blocked,
        failures: state.failures.0,
        total_failures: state.failures.0,
    };
    let mut values = counted.values(&utc(now_ms()));
    values.retain(|(name, _)| !name.ends_with("_failures"));
    values.push(("review_round", view.rounds.to_string()));
    if let Some(confidence) = &view.confidence {
        values.push(("current_confidence", confidence.score.to_string()));
    }
    // The file is only a view: the journal has everything.
    if let Ok(text) = file::edited(&text, &values) {
        let _ = replace(project, file::OURS, &text);
    }
}

/// Returns what the state file of a new review says about it.
fn shown(settings: &Settings) -> Shown {
    Shown {
        subject: settings.subject.title(),
        section: settings.subject.section().unwrap_or_default().to_string(),
        max_rounds: settings.limits.rounds,
        max_fix_iterations: settings.limits.fix_iterations,
        target_confidence: settings.target_confidence,
        max_failures: settings.limits.failures,
        ..Shown::default()
    }
}

impl Runner {
    /// Binds the session of a resumed run, unless its session still holds it.
    pub(crate) fn rebind_if_free(
        &self,
        settings: &Settings,
        entries: &[Entry],
    ) -> Result<Option<Draft>, RunError> {
        let gone = !self.project.root().join(file::OURS).exists();
        match (Binding::of(entries), &self.binding) {
            // A session that comes back without its state file gets it again; no other session takes it over.
            (Some(Binding { let_go: None, bound, .. }), Some(own))
                if gone && bound.session == own.session =>
            {
                self.rebind(settings)
            }
            (Some(Binding { let_go: None, .. }), _) => Ok(None),
            // There is one session per project: one that is bound to something else stays bound to that.
            (_, Some(own)) if make_room(&self.project, &own.session, FOR_EVER).is_err() => Ok(None),
            _ => self.rebind(settings),
        }
    }

    /// Writes the state file of a session that was recorded as the one that repairs.
    pub(crate) fn show_binding(
        &self,
        run: &RunId,
        settings: &Settings,
        entries: &[Entry],
    ) -> Result<(), RunError> {
        let bound = entries.iter().find_map(|entry| match &entry.event {
            Event::Session(SessionEvent { what: What::Bound { bound }, .. }) => Some(bound),
            _ => None,
        });
        if let Some(bound) = bound {
            show(&self.project, run, bound, &shown(settings), &Default::default())?;
        }
        Ok(())
    }

    /// Returns the entry that binds the session which repairs from now on.
    pub(crate) fn rebind(&self, settings: &Settings) -> Result<Option<Draft>, RunError> {
        let Some(bound) = self.binding.clone().filter(|_| settings.tasks.writing.in_session) else {
            return Ok(None);
        };
        let event = bound_event(&bound);
        Ok(Some(Draft { id: format!("session:{}:{}", std::process::id(), now_ms()), event }))
    }
}
