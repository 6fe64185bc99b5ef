//! Loops in sessions as runs: starting one, ending one, and applying the user's answer to its question.
//!
//! No process of ours works on a loop. The client's hooks record what happens in it ([`super::BoundSession`]), and it is held
//! as long as the state file says so.

use std::time::Duration;

use tribunal_engine::{
    answer::{ChoiceKey, DecisionAnswer},
    ids::{DecisionId, RunId},
    timestamp::Timestamp,
};
use tribunal_store::Store;
use tribunal_workflows::{
    runs::{
        kinds::RunOrder,
        settings::Settings,
        types::RunEvent,
        view::{RunPhase, RunView},
    },
    session::{
        ReleaseReason, SessionAssignment, SessionBinding, SessionEvent, SessionEventKind, SessionWork,
        ending::{LoopRelease, abandon_loop},
        wrap_session_event,
    },
};

use super::{
    SessionError, SessionLookup, append_events,
    binding::{NEVER_STALE, bound_event, ensure_no_other_session, write_state_file},
    current_wall_ms, look_up_in_file, read_state_file,
    state_file::{self, StateCounts, StateFile, StateFileFacts},
};
use crate::{engine::run::Runner, locks, project::Project, run_names};

/// What a loop starts with.
#[derive(Clone, Debug)]
pub struct LoopStart {
    pub assignment: SessionAssignment,
    /// The directory of the files that Tribunal writes for users, relative to the project's root.
    pub reviews_dir: String,
    /// The version and build of this program, for the journal.
    pub build: String,
}

/// Starts a loop if no session is bound here: records it and writes its state file. Returns its name.
pub fn start_loop(project: &Project, start: LoopStart, stale_after: Duration) -> Result<RunId, SessionError> {
    let LoopStart { assignment, reviews_dir, build } = start;
    let home_error = |cause| SessionError::File { path: ".tribunal".to_string(), cause };
    project.prepare_home().map_err(home_error)?;
    // Without the lock two processes could both find that there is room.
    let _alone = locks::lock_user_tree(&project.locks_dir()).map_err(home_error)?;
    ensure_no_other_session(project, &assignment.session, stale_after)?;
    let order = RunOrder::Session(assignment.clone());
    let store = Store::open(&project.home_dir())?;
    let loop_id = run_names::new_run_name(&order.file_slug(), &store.list_runs()?);
    drop(store);
    let run_started = RunEvent::RunStarted {
        version: order.workflow_version(),
        build,
        // A loop starts no agents, so only the place of its files matters.
        settings: Settings { reviews: reviews_dir, ..Settings::default() },
        order,
        parent: None,
        batch: None,
    };
    let started_at = Timestamp { wall_ms: current_wall_ms(), awake_ms: 0 };
    append_events(project, &loop_id, vec![run_started, bound_event(&assignment)], started_at)?;
    write_state_file(project, &loop_id, &assignment, &StateFileFacts::default(), &StateCounts::default())?;
    Ok(loop_id)
}

/// Returns whether a loop holds its session, or waits for one.
pub fn is_loop_held(project: &Project, run_id: &RunId) -> bool {
    find_held_state(project, run_id).is_some_and(|state| state.is_active && state.work == SessionWork::Loop)
}

/// Whether a run is worked on right now: by a process of ours or, if it is a loop, by the session that it holds.
pub fn is_run_active(project: &Project, run_id: &RunId) -> bool {
    Runner::is_live(project, run_id) || is_loop_held(project, run_id)
}

/// Reads the state file, if it is valid and belongs to this run.
fn find_held_state(project: &Project, run_id: &RunId) -> Option<StateFile> {
    let file_text = read_state_file(project, state_file::OWN_STATE_FILE).ok()??;
    StateFile::parse_state(&file_text).ok().filter(|state| state.run_id.as_ref() == Some(run_id))
}

/// Ends a loop for good and releases its session. A loop that has ended or parked stays as it is.
pub fn end_loop(project: &Project, run_id: &RunId, detail: &str) -> Result<(), SessionError> {
    if let Some(state) = find_held_state(project, run_id)
        && let SessionLookup::HeldHere(mut bound_session) =
            look_up_in_file(project, state_file::OWN_STATE_FILE, &state.session_id, current_wall_ms(), NEVER_STALE)
    {
        bound_session.release_session(project, ReleaseReason::Person, detail, current_wall_ms())?;
        return Ok(());
    }
    // Without its state file nothing holds the session, but the journal does not know that yet.
    let entries = Store::open_read_only(&project.home_dir())?.read_entries(run_id, 0)?;
    let run_view = RunView::from_entries(&entries);
    let (RunPhase::Running, Some(session_view)) = (&run_view.phase, run_view.as_session()) else { return Ok(()) };
    // How long the session went on without the file is unknown, so the clock stops at the last entry.
    let ended_at = Timestamp { wall_ms: current_wall_ms(), awake_ms: run_view.last_time.awake_ms };
    let reason = ReleaseReason::Person;
    let released = SessionEventKind::LetGo { why: reason, detail: detail.to_string() };
    let mut events = vec![wrap_session_event(SessionEvent { what: released, tally: session_view.tally.clone() })];
    let release = LoopRelease { reason, detail, tally: &session_view.tally, elapsed_ms: ended_at.awake_ms };
    // A release by the user asks nothing, so the id of a question is not used.
    events.extend(release.list_run_events(DecisionId::new("D1")));
    append_events(project, run_id, events, ended_at)
}

/// The user's answer to the question of a loop.
#[derive(Clone, Debug)]
pub struct LoopAnswer {
    pub decision: DecisionId,
    pub answer: DecisionAnswer,
}

/// Applies the answer to the question of a loop that was released before it was done: it continues, or ends for good. Returns
/// what its session is bound to.
pub fn answer_loop(
    project: &Project,
    run_id: &RunId,
    given: LoopAnswer,
) -> Result<Option<SessionAssignment>, SessionError> {
    let entries = Store::open_read_only(&project.home_dir())?.read_entries(run_id, 0)?;
    let run_view = RunView::from_entries(&entries);
    let Some(binding) = SessionBinding::from_entries(&entries) else { return Ok(None) };
    let continues = given.answer.choice_key() == Some(ChoiceKey::More);
    let mut events = vec![RunEvent::DecisionAnswered { decision: given.decision, answer: given.answer }];
    if continues {
        ensure_no_other_session(project, &binding.assignment.session, NEVER_STALE)?;
        let (facts, counts) = (StateFileFacts::default(), StateCounts::default());
        write_state_file(project, run_id, &binding.assignment, &facts, &counts)?;
        events.push(RunEvent::RunResumed { life: run_view.incidents.life_count + 1 });
        events.push(bound_event(&binding.assignment));
    } else if let RunPhase::Parked(summary) = &run_view.phase {
        events.push(RunEvent::RunFinished(abandon_loop(summary)));
    }
    // The loop did nothing while it waited for the answer.
    let answered_at = Timestamp { wall_ms: current_wall_ms(), awake_ms: run_view.last_time.awake_ms };
    append_events(project, run_id, events, answered_at)?;
    Ok(continues.then_some(binding.assignment))
}
