//! Sessions that the user has open, and what they are bound to: finding, binding, recording, releasing.
//!
//! The state file ([`state_file`]) says whose it is and what it is about; the journal says what happened. Whether a session may
//! stop is not decided here: that is up to [`tribunal_core::session::stop`]. Every failure releases the session, so an unusable
//! state file is set aside and reported. It is never deleted and never blocks a session.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tribunal_core::{
    event::{Draft, Event},
    ids::RunId,
    session::{
        LetGo, Tally,
        stop::{Phase, Standing},
    },
    stamp::Stamp,
};
use tribunal_store::{Batch, NewEntry, Store, StoreError};

use crate::project::Project;

mod bind;
pub mod file;
mod taken;

pub(crate) use bind::refresh;
pub use bind::{answer_loop, make_room, show, start_loop};
use file::{Counted, State};

/// A hook does not wait longer than this for other writers of the journal.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// A state file may not be longer than this.
const LONGEST: u64 = 4 << 20;

/// What a session is bound to, as far as can be seen.
#[derive(Debug)]
pub enum Look {
    Nothing,
    /// There is a state file, but it holds no session; the text says why. It may have been set aside.
    Idle(String),
    /// The state file belongs to another session.
    Anothers {
        session: String,
    },
    Held(Box<Taken>),
}

#[derive(Debug)]
pub struct Taken {
    /// Relative to the project's root.
    pub file: &'static str,
    text: String,
    pub state: State,
    pub standing: Standing,
    pub tally: Tally,
    counted: Counted,
    /// The journal that knows the run.
    journal: Option<Store>,
    awake_ms: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path}: {cause}")]
    File { path: String, cause: io::Error },
    #[error("{path} leads out of the project, to {}", to.display())]
    LeadsOut { path: String, to: PathBuf },
    #[error("{path}: {why}")]
    Unusable { path: String, why: String },
    #[error("session {session} has already taken on {run}")]
    Busy { session: String, run: String },
}

/// Returns the milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn utc(ms: u64) -> String {
    Stamp { wall_ms: ms, awake_ms: 0 }.utc().replacen(' ', "T", 1) + "Z"
}

/// Looks up what this session is bound to. A loop without a session counts as this one's, for the caller to claim.
pub fn look(project: &Project, session: &str, now_ms: u64, stale_after: Duration) -> Look {
    let mut seen = Look::Nothing;
    for name in [file::OURS, file::THEIRS] {
        match look_into(project, name, session, now_ms, stale_after) {
            Look::Nothing => {}
            // A session that is held wins; the other results only explain why none is.
            held @ Look::Held(_) => return held,
            other => seen = other,
        }
    }
    seen
}

fn look_into(
    project: &Project,
    name: &'static str,
    session: &str,
    now_ms: u64,
    stale_after: Duration,
) -> Look {
    let text = match read(project, name) {
        Ok(Some(text)) => text,
        Ok(None) => return Look::Nothing,
        // The file may belong to another tool, so it stays where it is.
        Err(why @ SessionError::File { .. }) => return Look::Idle(format!("{why}; nobody is held")),
        Err(why) => return unusable(project, name, &why.to_string()),
    };
    let state = match State::read(&text) {
        Ok(state) => state,
        Err(why) => return unusable(project, name, &why),
    };
    let is_old = |touched: Option<u64>| {
        let age = Duration::from_millis(now_ms.saturating_sub(touched.unwrap_or(now_ms)));
        (age > stale_after).then_some(age.as_secs() / 3600)
    };
    // A stale file of another session must not block this one forever, so only a fresh one is left alone.
    let anothers = !state.session.is_empty() && state.session != session;
    if anothers && is_old(state.touched_ms).is_none() {
        return Look::Anothers { session: state.session };
    }
    let mut taken = match Taken::of(project, name, text, state) {
        Ok(taken) => taken,
        // The file may be valid; it is only unknown what it refers to.
        Err(cause) => return Look::Idle(format!("the journal cannot be read, so nobody is held: {cause}")),
    };
    // The user switched it off in the file, which counts as their decision.
    if !taken.state.active {
        let aside = taken.let_go(project, LetGo::Person, "the state file says `active: false`", now_ms);
        return Look::Idle(said(name, "it is not active", aside));
    }
    // The journal says that the session was released, but the file is still there: a crash came in between.
    if taken.standing.run_is == Phase::Over(String::from(LET_GO)) {
        let aside = put_aside(project, name);
        return Look::Idle(said(name, LET_GO, aside.map(|path| vec![path])));
    }
    if let Some(hours) = is_old(taken.state.touched_ms) {
        let whose = taken.state.session.clone();
        let aside = taken.let_go(project, LetGo::Stale, &format!("{hours} h"), now_ms);
        let whose = if whose.is_empty() { String::new() } else { format!(" (session {whose})") };
        return Look::Idle(said(name, &format!("nothing was heard of it for {hours} h{whose}"), aside));
    }
    if anothers {
        return Look::Anothers { session: taken.state.session };
    }
    Look::Held(Box::new(taken))
}

/// The phase of a run whose session was released before.
const LET_GO: &str = "the session was let go before";

fn said(name: &str, why: &str, aside: Result<Vec<String>, SessionError>) -> String {
    match aside {
        Ok(paths) => {
            let at = paths.last().map(|path| format!(" (kept as {path})")).unwrap_or_default();
            format!("{name}: {why}; nobody is held{at}")
        }
        Err(cause) => format!("{name}: {why}; nobody is held; it could not be put aside: {cause}"),
    }
}

fn unusable(project: &Project, name: &'static str, why: &str) -> Look {
    Look::Idle(said(name, why, put_aside(project, name).map(|path| vec![path])))
}

/// Reads a state file; `None` if there is none.
fn read(project: &Project, name: &str) -> Result<Option<String>, SessionError> {
    let path = project.root().join(name);
    let failed = |cause| SessionError::File { path: name.to_string(), cause };
    match fs::symlink_metadata(&path) {
        Ok(_) => {}
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(failed(cause)),
    }
    let unusable = |why: &str| SessionError::Unusable { path: name.to_string(), why: why.to_string() };
    if let Some(to) = project.leads_out(&path) {
        return Err(SessionError::LeadsOut { path: name.to_string(), to });
    }
    // Reading a pipe behind a link would block forever.
    if !fs::metadata(&path).map_err(failed)?.is_file() {
        return Err(unusable("it is no file"));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(&path).map_err(failed)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        return Err(unusable("it is too long"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unusable("it is no text (it is no UTF-8)"))
}

/// Moves a state file out of the way without overwriting anything. Returns its new path.
pub fn put_aside(project: &Project, name: &str) -> Result<String, SessionError> {
    let failed = |cause| SessionError::File { path: name.to_string(), cause };
    project.prepare_home().map_err(failed)?;
    let folder = project.home().join("sessions");
    if let Some(to) = project.leads_out(&folder) {
        return Err(SessionError::LeadsOut { path: ".tribunal/sessions".into(), to });
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    let plain = name.rsplit('/').next().unwrap_or(name);
    let mut number = 1;
    let at = loop {
        let at = format!("{number}-{plain}");
        if fs::symlink_metadata(folder.join(&at)).is_err() {
            break at;
        }
        number += 1;
    };
    fs::rename(project.root().join(name), folder.join(&at)).map_err(failed)?;
    Ok(format!(".tribunal/sessions/{at}"))
}

fn append(project: &Project, run: &RunId, events: Vec<Event>, at: Stamp) -> Result<(), SessionError> {
    let store = Store::open_within(&project.home(), PATIENCE)?;
    store.append(batch(run, events, at))?;
    Ok(())
}

fn batch(run: &RunId, events: Vec<Event>, at: Stamp) -> Batch {
    // Process and time make the ids unique: several hooks may write to the same journal at once.
    let own = std::process::id();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let entry = |(index, event)| NewEntry {
        run: run.clone(),
        at,
        draft: Draft { id: format!("session:{own}:{since}:{index}"), event },
    };
    Batch { entries: events.into_iter().enumerate().map(entry).collect(), ..Batch::default() }
}

/// Replaces a state file. It is only a view and may be lost in a crash, so it is written completely but not synced.
fn replace(project: &Project, name: &str, text: &str) -> Result<(), SessionError> {
    let path = project.root().join(name);
    let failed = |cause| SessionError::File { path: name.to_string(), cause };
    if let Some(to) = project.leads_out(&path) {
        return Err(SessionError::LeadsOut { path: name.to_string(), to });
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let temporary = path.with_extension(format!("{}-tmp", std::process::id()));
    let written = || -> io::Result<()> {
        fs::write(&temporary, text)?;
        if let Ok(before) = fs::metadata(&path) {
            fs::set_permissions(&temporary, before.permissions())?;
        }
        fs::rename(&temporary, &path)
    };
    let written = written();
    written.map_err(|cause| {
        let _ = fs::remove_file(&temporary);
        failed(cause)
    })
}
