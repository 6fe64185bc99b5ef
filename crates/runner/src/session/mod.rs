//! Sessions that the user has open, and what they are bound to: finding, binding, recording, releasing.
//!
//! The state file ([`state_file`]) says whose it is and what it is about; the journal says what happened. Whether a session may
//! stop is not decided here: that is up to [`tribunal_workflows::session::stop`]. Every failure releases the session, so an unusable
//! state file is set aside and reported. It is never deleted and never blocks a session.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tribunal_engine::{
    ids::{DecisionId, RunId},
    timestamp::Timestamp,
};
use tribunal_store::{EntryBatch, NewEntry, Store, StoreError};
use tribunal_workflows::{
    runs::types::{EntryDraft, RunEvent},
    session::{
        ReleaseReason, SessionTally,
        stop::{SessionRunPhase, StopInput},
    },
};

use crate::project::Project;

mod binding;
mod bound_session;
pub mod loop_runs;
pub mod state_file;
pub mod step_hooks;

pub(crate) use binding::refresh_state_file;
pub use binding::{ensure_no_other_session, write_state_file};
use state_file::{StateCounts, StateFile};

/// A hook does not wait longer than this for other writers of the journal.
const HOOK_PATIENCE: Duration = Duration::from_millis(1_500);
/// A state file may not be longer than this.
const MAX_STATE_BYTES: u64 = 4 << 20;

/// What a session is bound to, as far as can be seen.
#[derive(Debug)]
pub enum SessionLookup {
    NothingBound,
    /// There is a state file, but it holds no session; the text says why. It may have been set aside.
    NotHeld(String),
    /// The state file belongs to another session.
    HeldByAnother {
        session: String,
    },
    HeldHere(Box<BoundSession>),
}

#[derive(Debug)]
pub struct BoundSession {
    /// Relative to the project's root.
    pub state_file: &'static str,
    file_text: String,
    pub file_state: StateFile,
    pub standing: StopInput,
    pub tally: SessionTally,
    state_counts: StateCounts,
    /// The journal that knows the run.
    journal: Option<Store>,
    /// When the run recorded its last entry.
    last_time: Timestamp,
    /// The question that the release has asked; `None` before the release, or if it asks nothing.
    pub posted_decision: Option<DecisionId>,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path}: {cause}")]
    File { path: String, cause: io::Error },
    #[error("{path} points outside the project, to {}", to.display())]
    LeadsOut { path: String, to: PathBuf },
    #[error("{path}: {why}")]
    Unusable { path: String, why: String },
    #[error("session {session} is already working on {run}")]
    AlreadyBound { session: String, run: String },
}

impl SessionError {
    /// Describes the error where the path of its file was just named.
    fn describe_without_path(&self) -> String {
        match self {
            SessionError::File { cause, .. } => cause.to_string(),
            SessionError::LeadsOut { to: real_target, .. } => {
                format!("points outside the project, to {}", real_target.display())
            }
            SessionError::Unusable { why: reason, .. } => reason.clone(),
            SessionError::Store(_) | SessionError::AlreadyBound { .. } => self.to_string(),
        }
    }
}

/// Returns the milliseconds since 1970.
pub fn current_wall_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

fn format_utc(wall_ms: u64) -> String {
    Timestamp { wall_ms, awake_ms: 0 }.format_utc().replacen(' ', "T", 1) + "Z"
}

/// Looks up what this session is bound to. A loop without a session counts as this one's, for the caller to claim.
pub fn look_up_session(project: &Project, session_id: &str, now_ms: u64, stale_after: Duration) -> SessionLookup {
    let mut lookup = SessionLookup::NothingBound;
    for file_name in [state_file::OWN_STATE_FILE, state_file::RALPH_STATE_FILE] {
        match look_up_in_file(project, file_name, session_id, now_ms, stale_after) {
            SessionLookup::NothingBound => {}
            // A session that is held wins; the other results only explain why none is.
            held_session @ SessionLookup::HeldHere(_) => return held_session,
            lookup_result => lookup = lookup_result,
        }
    }
    lookup
}

fn look_up_in_file(
    project: &Project,
    file_name: &'static str,
    session_id: &str,
    now_ms: u64,
    stale_after: Duration,
) -> SessionLookup {
    let file_text = match read_state_file(project, file_name) {
        Ok(Some(file_text)) => file_text,
        Ok(None) => return SessionLookup::NothingBound,
        // The file may belong to another tool, so it stays where it is.
        Err(reason @ SessionError::File { .. }) => {
            return SessionLookup::NotHeld(format!("{reason}; the session may stop"));
        }
        Err(reason) => return set_aside_unusable(project, file_name, &reason.describe_without_path()),
    };
    let file_state = match StateFile::parse_state(&file_text) {
        Ok(file_state) => file_state,
        Err(reason) => return set_aside_unusable(project, file_name, &reason),
    };
    let hours_if_stale = |touched_ms: Option<u64>| {
        let age = Duration::from_millis(now_ms.saturating_sub(touched_ms.unwrap_or(now_ms)));
        (age > stale_after).then_some(age.as_secs() / 3600)
    };
    // A stale file of another session must not block this one forever, so only a fresh one is left alone.
    let belongs_to_another = !file_state.session_id.is_empty() && file_state.session_id != session_id;
    if belongs_to_another && hours_if_stale(file_state.touched_ms).is_none() {
        return SessionLookup::HeldByAnother { session: file_state.session_id };
    }
    let mut bound_session = match BoundSession::from_state_file(project, file_name, file_text, file_state) {
        Ok(bound_session) => bound_session,
        // The file may be valid; it is only unknown what it refers to.
        Err(cause) => {
            return SessionLookup::NotHeld(format!("could not read the journal, so the session may stop: {cause}"));
        }
    };
    let stale_hours = hours_if_stale(bound_session.file_state.touched_ms);
    if let Some(release) = release_ended_session(project, &mut bound_session, stale_hours, now_ms) {
        return SessionLookup::NotHeld(release);
    }
    if belongs_to_another {
        return SessionLookup::HeldByAnother { session: bound_session.file_state.session_id };
    }
    SessionLookup::HeldHere(Box::new(bound_session))
}

/// Releases a session that is switched off, was released before or is stale. Returns a description of the release.
fn release_ended_session(
    project: &Project,
    bound_session: &mut BoundSession,
    stale_hours: Option<u64>,
    now_ms: u64,
) -> Option<String> {
    let file_name = bound_session.state_file;
    // The user switched it off in the file, which counts as their decision.
    if !bound_session.file_state.is_active {
        let kept_paths = bound_session.release_session(
            project,
            ReleaseReason::Person,
            "the state file says `active: false`",
            now_ms,
        );
        return Some(describe_release(file_name, "`active` is false", kept_paths));
    }
    // The journal says that the session was released, but the file is still there: a crash came in between.
    if bound_session.standing.run_phase == SessionRunPhase::Ended(String::from(RELEASED_BEFORE)) {
        let kept_paths = set_state_file_aside(project, file_name);
        return Some(describe_release(file_name, RELEASED_BEFORE, kept_paths.map(|path| vec![path])));
    }
    let stale_hours = stale_hours?;
    let owner = bound_session.file_state.session_id.clone();
    let kept_paths = bound_session.release_session(project, ReleaseReason::Stale, &format!("{stale_hours} h"), now_ms);
    let owner_note = if owner.is_empty() { String::new() } else { format!(" (session {owner})") };
    let reason = format!("no activity for {stale_hours} h{owner_note}");
    Some(describe_release(file_name, &reason, kept_paths))
}

/// The phase of a run whose session was released before.
const RELEASED_BEFORE: &str = "the session was already released";

fn describe_release(file_name: &str, reason: &str, kept_paths: Result<Vec<String>, SessionError>) -> String {
    match kept_paths {
        Ok(paths) => {
            let kept_suffix = paths.last().map(|path| format!(" (kept as {path})")).unwrap_or_default();
            format!("{file_name}: {reason}; the session may stop{kept_suffix}")
        }
        Err(cause) => {
            format!("{file_name}: {reason}; the session may stop, but the file could not be moved away: {cause}")
        }
    }
}

fn set_aside_unusable(project: &Project, file_name: &'static str, reason: &str) -> SessionLookup {
    SessionLookup::NotHeld(describe_release(
        file_name,
        reason,
        set_state_file_aside(project, file_name).map(|path| vec![path]),
    ))
}

/// Reads a state file; `None` if there is none.
fn read_state_file(project: &Project, file_name: &str) -> Result<Option<String>, SessionError> {
    let state_path = project.root().join(file_name);
    let file_error = |cause| SessionError::File { path: file_name.to_string(), cause };
    match fs::symlink_metadata(&state_path) {
        Ok(_) => {}
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(file_error(cause)),
    }
    let unusable_error = |reason: &str| SessionError::Unusable { path: file_name.to_string(), why: reason.to_string() };
    if let Some(real_target) = project.resolve_outside(&state_path) {
        return Err(SessionError::LeadsOut { path: file_name.to_string(), to: real_target });
    }
    // Reading a pipe behind a link would block forever.
    if !fs::metadata(&state_path).map_err(file_error)?.is_file() {
        return Err(unusable_error("not a regular file"));
    }
    let mut bytes = Vec::new();
    let state_file = fs::File::open(&state_path).map_err(file_error)?;
    state_file.take(MAX_STATE_BYTES + 1).read_to_end(&mut bytes).map_err(file_error)?;
    if bytes.len() as u64 > MAX_STATE_BYTES {
        return Err(unusable_error("the file is too large"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unusable_error("not valid UTF-8"))
}

/// Moves a state file out of the way without overwriting anything. Returns its new path.
pub fn set_state_file_aside(project: &Project, file_name: &str) -> Result<String, SessionError> {
    let file_error = |cause| SessionError::File { path: file_name.to_string(), cause };
    project.prepare_home().map_err(file_error)?;
    let directory = project.home_dir().join("sessions");
    if let Some(real_target) = project.resolve_outside(&directory) {
        return Err(SessionError::LeadsOut { path: ".tribunal/sessions".into(), to: real_target });
    }
    fs::create_dir_all(&directory).map_err(file_error)?;
    let base_name = file_name.rsplit('/').next().unwrap_or(file_name);
    let mut copy_number = 1;
    let kept_name = loop {
        let kept_name = format!("{copy_number}-{base_name}");
        if fs::symlink_metadata(directory.join(&kept_name)).is_err() {
            break kept_name;
        }
        copy_number += 1;
    };
    fs::rename(project.root().join(file_name), directory.join(&kept_name)).map_err(file_error)?;
    Ok(format!(".tribunal/sessions/{kept_name}"))
}

/// Lets go of a session that is bound to this run: its state file is set aside, so that no hook holds it any longer.
pub(crate) fn release_run(project: &Project, run_id: &RunId) -> Result<(), SessionError> {
    let file_text = fs::read_to_string(project.root().join(state_file::OWN_STATE_FILE)).unwrap_or_default();
    let is_bound = StateFile::parse_state(&file_text).is_ok_and(|state| state.run_id.as_ref() == Some(run_id));
    if is_bound { set_state_file_aside(project, state_file::OWN_STATE_FILE).map(|_| ()) } else { Ok(()) }
}

fn append_events(
    project: &Project,
    run_id: &RunId,
    events: Vec<RunEvent>,
    timestamp: Timestamp,
) -> Result<(), SessionError> {
    let store = Store::open_with_timeout(&project.home_dir(), HOOK_PATIENCE)?;
    store.append(build_batch(run_id, events, timestamp))?;
    Ok(())
}

fn build_batch(run_id: &RunId, events: Vec<RunEvent>, timestamp: Timestamp) -> EntryBatch {
    // Process and time make the ids unique: several hooks may write to the same journal at once.
    let process_id = std::process::id();
    let unique_time =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since_epoch| since_epoch.as_nanos());
    let to_entry = |(index, event)| NewEntry {
        run_id: run_id.clone(),
        timestamp,
        draft: EntryDraft { id: format!("session:{process_id}:{unique_time}:{index}"), event },
    };
    EntryBatch { entries: events.into_iter().enumerate().map(to_entry).collect(), ..EntryBatch::default() }
}

/// Replaces a state file. It is only a view and may be lost in a crash, so it is written completely but not synced.
fn replace_state_file(project: &Project, file_name: &str, file_text: &str) -> Result<(), SessionError> {
    let state_path = project.root().join(file_name);
    let file_error = |cause| SessionError::File { path: file_name.to_string(), cause };
    if let Some(real_target) = project.resolve_outside(&state_path) {
        return Err(SessionError::LeadsOut { path: file_name.to_string(), to: real_target });
    }
    let directory = state_path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(file_error)?;
    let temporary_path = state_path.with_extension(format!("{}-tmp", std::process::id()));
    let write_file = || -> io::Result<()> {
        fs::write(&temporary_path, file_text)?;
        if let Ok(old_metadata) = fs::metadata(&state_path) {
            fs::set_permissions(&temporary_path, old_metadata.permissions())?;
        }
        fs::rename(&temporary_path, &state_path)
    };
    let write_outcome = write_file();
    write_outcome.map_err(|cause| {
        let _ = fs::remove_file(&temporary_path);
        file_error(cause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_state_file_is_named_once() {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path());
        let state_path = directory.path().join(state_file::OWN_STATE_FILE);
        fs::create_dir_all(state_path.parent().unwrap()).unwrap();
        fs::write(&state_path, b"\xff\xfe").unwrap();
        let lookup = look_up_session(&project, "abc", current_wall_ms(), Duration::from_secs(3600));
        let SessionLookup::NotHeld(release_text) = lookup else { panic!("{lookup:?}") };
        assert_eq!(release_text.matches(state_file::OWN_STATE_FILE).count(), 1, "{release_text}");
        assert!(release_text.contains(": not valid UTF-8; the session may stop"), "{release_text}");
    }
}
