//! `tribunal loop start|status|cancel`: gives the same prompt to a session that the user has open, again and again,
//! until it is done or the limit is reached. A loop always ends.

use std::{
    io::{Read, Write, stdin, stdout},
    path::Path,
    time::Duration,
};

use tribunal_agents::{
    clients::{Home, with_sessions},
    hook::HookClient,
};
use tribunal_core::{
    event::Event,
    ids::RunId,
    session::{Binding, Bound, LetGo, MOST_REFUSALS, UPPER_BOUND, Work},
    stamp::Stamp,
    text::cut,
};
use tribunal_report::{escaped, session::says};
use tribunal_runner::{
    Project,
    session::{self, Look, SessionError, Taken, file},
};
use tribunal_store::Store;

use crate::{
    agent_session,
    clients::listed,
    complaint::{Complaint, ENVIRONMENT},
    context::{Context, quoted},
    documents::{self, LoopRow, Loops},
    settings::{Given, hooks_of},
    trust,
    trust_item::Item,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum What {
    /// Start a loop in a session
    Start(Start),
    /// What sessions have taken on here, and how it stands
    Status(Status),
    /// Let the session go
    Cancel(Cancel),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Start {
    /// What the session is to do; `-` reads it from standard input
    #[arg(required = true)]
    prompt: Vec<String>,
    /// How often it is sent back at most
    #[arg(long, value_name = "N", default_value_t = MOST_REFUSALS, value_parser = times())]
    max_iterations: u32,
    /// What it says, between <promise> and </promise>, when it is done; else only the limit ends it
    #[arg(long, value_name = "TEXT", alias = "completion-promise")]
    promise: Option<String>,
    /// A file of the project whose front matter has hooks for this session
    #[arg(long, value_name = "FILE")]
    step: Option<std::path::PathBuf>,
    /// The session, as its client names it; else the one this is typed in
    #[arg(long, value_name = "ID", conflicts_with = "next")]
    session: Option<String>,
    /// The next session in this project in which somebody types something
    #[arg(long)]
    next: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// One of them, with all that happened
    name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// A loop, or a review in a session; else the one that is held here
    name: Option<String>,
}

pub(crate) fn run(what: What, context: &Context) -> Result<u8, Complaint> {
    match what {
        What::Start(start) => begin(start, context),
        What::Status(wanted) => status(wanted.name.as_deref(), context),
        What::Cancel(cancel_) => cancel(&cancel_, context),
    }
}

fn times() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(UPPER_BOUND))
}

fn begin(start: Start, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let session = match (start.session, start.next) {
        (Some(session), _) => session,
        // An empty id means the next session; it is filled in when that session sends its first prompt.
        (None, true) => String::new(),
        (None, false) => agent_session::current(context).ok_or_else(no_session)?,
    };
    let mut prompt = start.prompt.join(" ");
    if prompt == "-" {
        prompt.clear();
        let mut bytes = Vec::new();
        // One byte more than allowed is read, so that a longer prompt is refused and not cut.
        stdin().lock().take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
        prompt = String::from_utf8(bytes)
            .map_err(|_| Complaint::usage("the prompt is no text (it is no UTF-8)"))?;
    }
    // Everything is checked before the state file is written: a loop that starts must be able to run.
    let prompt = prompt.trim().to_string();
    check_prompt(&prompt)?;
    let promise = start.promise.map(|promise| check_promise(&promise)).transpose()?;
    let step = match start.step {
        Some(step) => Some(check_step(&project, &step, context)?),
        None => None,
    };
    // The prompt is stored in the journal and in the state file, so secrets are masked first.
    let bound = Bound {
        session,
        work: Work::Loop,
        prompt: context.masker().mask(&prompt).into_owned(),
        promise,
        max_refusals: start.max_iterations,
        step,
    };
    let stale = stale_after(&project)?;
    let run = session::start_loop(&project, bound.clone(), stale)?;
    if context.json {
        // A loop that has just started is held by definition.
        let row = LoopRow { held: true, ..row(&run, &bound) };
        documents::print(&Loops { schema: "tribunal.loops/1", loops: vec![row] })?;
        return Ok(0);
    }
    let mut out = stdout().lock();
    let whose = match bound.session.as_str() {
        "" => "the next session here in which somebody types something".to_string(),
        session => format!("session {session}"),
    };
    writeln!(out, "loop {run} in {}", escaped(&whose))?;
    writeln!(out, "  limit    sent back at most {} times, then let go", bound.max_refusals)?;
    match &bound.promise {
        Some(promise) => writeln!(out, "  promise  <promise>{}</promise>", escaped(promise))?,
        None => writeln!(out, "  promise  none: only the limit ends it (--promise TEXT)")?,
    }
    writeln!(out, "  prompt   {}", escaped(&cut(&bound.prompt, 300)))?;
    writeln!(out, "  state    {}", file::OURS)?;
    writeln!(out, "a person ends it sooner with: tribunal loop cancel")?;
    // Without the hook the session is never sent back, and the user would wait for nothing.
    if !is_installed(&project) {
        writeln!(out, "[W] no stop hook of Tribunal is set up in this project: tribunal init")?;
    }
    Ok(0)
}

/// At most this many loops are listed.
const SHOWN: usize = 10;

/// The longest prompt; a model reads it each time it is sent back.
const LONGEST: usize = 64 << 10;

fn check_prompt(prompt: &str) -> Result<(), Complaint> {
    if prompt.is_empty() {
        return Err(Complaint::usage("the prompt is empty").why("A loop sends the session back with it."));
    }
    if prompt.len() > LONGEST {
        return Err(Complaint::usage(format!("the prompt is longer than {} KB", LONGEST >> 10))
            .why("It is read anew each time the session is sent back, and is never cut.")
            .todo("write it into a file of the project, and let the prompt name that file"));
    }
    Ok(())
}

/// Checks that a promise can be written between two tags.
fn check_promise(promise: &str) -> Result<String, Complaint> {
    let promise = promise.trim();
    // `null` and `~` would be read back from the state file as no promise at all.
    if promise.is_empty() || promise.contains(['<', '>', '`']) || matches!(promise, "null" | "~") {
        return Err(Complaint::usage(format!("`{promise}` cannot be promised"))
            .why("It is what stands between <promise> and </promise>: a few words, without tags.")
            .todo("for instance: --promise DONE"));
    }
    Ok(promise.to_string())
}

/// Checks that a file has hooks and that they may run here.
fn check_step(project: &Project, step: &Path, context: &Context) -> Result<String, Complaint> {
    let relative = tribunal_runner::subject::relative(project.root(), &context.path(step))?;
    let text = tribunal_runner::subject::load(project.root(), &relative)?;
    let hooks = tribunal_bmad::hooks::read(&relative, &text);
    // With a broken front matter it is unknown which hooks were meant, so the loop is refused as a whole.
    if let Some(problem) = hooks.problems.first() {
        return Err(Complaint::usage(problem.to_string()).why("No loop was started."));
    }
    if hooks.all.is_empty() {
        return Err(Complaint::usage(format!("{relative} has no hooks in its front matter"))
            .why("--step names a file whose hooks are to run in the session.")
            .todo("leave --step out, or write: hooks: {PreToolUse: [{command: …}]}"));
    }
    // Trust is asked for now: while the hook runs, there is no terminal to ask on.
    trust::require(context, project.root(), &Item::of_hooks(&relative, &hooks))?;
    Ok(relative)
}

/// Loads the age at which a state file is no longer believed.
pub(super) fn stale_after(project: &Project) -> Result<Duration, Complaint> {
    Ok(hooks_of(project.root(), &Given::from_environment())?.stale_after)
}

fn no_session() -> Complaint {
    Complaint::usage("there is no session to hold: this was not typed in one")
        .why(format!(
            "{} tell the commands they run which session they are in; a plain terminal does not.",
            listed(&with_sessions(), "and")
        ))
        .todo("type it in the session (in Claude Code: ! tribunal loop start …)")
        .todo("or name the session: --session ID")
        .todo("or take the next one in which somebody types something here: --next")
}

/// Returns whether some client's settings, of this project or of the user, call our stop hook.
pub(super) fn is_installed(project: &Project) -> bool {
    // Hooks may have been installed for this machine or for all colleagues; either place will do.
    let homes = HookClient::all().flat_map(|client| [false, true].map(|for_all| client.hooks.home(for_all)));
    let of_project = homes.filter_map(|home| match home {
        Home::Shared(path) | Home::Own(path) => Some(project.root().join(path)),
        Home::Person(_) => None,
    });
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    // A user may have installed the hooks once for all projects.
    let of_person = home.iter().flat_map(|home| {
        HookClient::all().flat_map(|client| client.hooks.person_files()).map(|path| home.join(path))
    });
    let mut all = of_project.chain(of_person);
    // A search for the command is enough here: the formats differ by client, and this is only a warning.
    all.any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("hook stop")))
}

fn row(run: &RunId, bound: &Bound) -> LoopRow {
    LoopRow {
        id: run.clone(),
        work: bound.work,
        session: bound.session.clone(),
        held: false,
        let_go: None,
        detail: String::new(),
        refusals: 0,
        max_refusals: bound.max_refusals,
        tools: 0,
        last: String::new(),
    }
}

/// Lists all that sessions have taken on, oldest first.
fn all(store: &Store) -> Result<Vec<Binding>, Complaint> {
    let mut found = Vec::new();
    for run in store.loops()?.into_iter().chain(store.runs()?) {
        // Most runs have nothing to do with a session; this check avoids reading their whole journals.
        if store.last_of(&run, &["session"])?.is_some() {
            found.extend(Binding::of(&store.entries(&run, 0)?));
        }
    }
    found.sort_by_key(|binding| binding.last_ms);
    Ok(found)
}

fn status(wanted: Option<&str>, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let store = context.journal(&project)?;
    let mut found = match &store {
        Some(store) => all(store)?,
        None => Vec::new(),
    };
    if let Some(wanted) = wanted {
        found.retain(|binding| binding.run.as_str() == wanted);
        if found.is_empty() {
            return Err(Complaint::usage(format!("no session has taken on {wanted} here"))
                .todo("tribunal loop status"));
        }
    }
    // Only the state file says what is held now; the journal says what happened.
    let here = session_of_file(&project);
    let mut rows = Vec::new();
    for binding in &found {
        let mut row = row(&binding.run, &binding.bound);
        row.refusals = binding.tally.refusals;
        row.tools = binding.tally.tools;
        row.last = Stamp { wall_ms: binding.last_ms, awake_ms: 0 }.utc();
        if let Some((why, detail)) = &binding.let_go {
            row.let_go = Some(*why);
            row.detail.clone_from(detail);
        }
        row.held = binding.let_go.is_none()
            && here.as_ref().is_some_and(|state| state.run.as_ref() == Some(&binding.run));
        if let Some(state) = here.as_ref().filter(|_| row.held) {
            // The user may have edited the limit in the state file, which then holds.
            row.max_refusals = state.max_refusals;
        }
        rows.push(row);
    }
    if context.json {
        documents::print(&Loops { schema: "tribunal.loops/1", loops: rows })?;
        return Ok(0);
    }
    let mut out = stdout().lock();
    let older = rows.len().saturating_sub(SHOWN);
    if older > 0 {
        writeln!(out, "({older} older ones: tribunal loop status --json)")?;
    }
    for row in &rows[older..] {
        writeln!(out, "{}", escaped(&line(row)))?;
        if let Some(state) = here.as_ref().filter(|_| row.held) {
            let promise = state.promise.as_ref().map(|promise| format!("<promise>{promise}</promise> for: "));
            let text = format!("{}{}", promise.unwrap_or_default(), cut(&state.prompt, 200));
            writeln!(out, "  {}", escaped(&text))?;
        }
        if let (Some(_), Some(store)) = (wanted, &store) {
            for line in history(store, &row.id)? {
                writeln!(out, "  {}", escaped(&line))?;
            }
        }
    }
    // Other tools write such state files, too; a loop of theirs has no journal here.
    if let Some(taken) = held_by_file_alone(&project, stale_after(&project)?) {
        let whose = if taken.state.session.is_empty() { "nobody yet" } else { &taken.state.session };
        let text = format!(
            "{}  session {whose} · sent back {} of at most {} · no journal knows of it",
            taken.file, taken.standing.refusals, taken.standing.max_refusals
        );
        writeln!(out, "{}", escaped(&text))?;
    } else if rows.is_empty() {
        writeln!(
            out,
            "no session has taken anything on here; start a loop: tribunal loop start PROMPT --promise TEXT"
        )?;
    }
    if let Some(row) = rows.iter().find(|row| row.held) {
        writeln!(out, "next: tribunal loop cancel {}", escaped(row.id.as_str()))?;
    }
    Ok(0)
}

fn line(row: &LoopRow) -> String {
    let session = if row.session.is_empty() {
        "no session yet".to_string()
    } else {
        format!("session {}", row.session)
    };
    let how = match (&row.let_go, row.held) {
        (Some(why), _) => {
            let detail = if row.detail.is_empty() { String::new() } else { format!(" ({})", row.detail) };
            format!("let go: {}{detail}", why.says())
        }
        (None, true) => "held".to_string(),
        // Deleting the state file is a way to let a session go, so this is not an error.
        (None, false) => "free: its state file is gone, or cannot be read".to_string(),
    };
    format!(
        "{}  {how} · {session} · sent back {} of at most {} · {} tools used · {} UTC",
        row.id, row.refusals, row.max_refusals, row.tools, row.last
    )
}

/// Reads Tribunal's own state file, if it is there and valid.
fn session_of_file(project: &Project) -> Option<file::State> {
    let text = std::fs::read_to_string(project.root().join(file::OURS)).ok()?;
    file::State::read(&text).ok()
}

/// Finds a session that is held by a state file of which no journal knows.
fn held_by_file_alone(project: &Project, stale: Duration) -> Option<Box<Taken>> {
    for name in [file::OURS, file::THEIRS] {
        let Ok(text) = std::fs::read_to_string(project.root().join(name)) else { continue };
        let Ok(state) = file::State::read(&text) else { continue };
        // `look_up_session` applies the rules of the hook: a stale or broken file holds no session.
        if state.run.is_none()
            && state.active
            && let Look::Held(taken) = session::look(project, &state.session, session::now_ms(), stale)
        {
            return Some(taken);
        }
    }
    None
}

fn cancel(arguments: &Cancel, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let stale = stale_after(&project)?;
    let mut free = Vec::new();
    for name in [file::OURS, file::THEIRS] {
        let Ok(text) = std::fs::read_to_string(project.root().join(name)) else { continue };
        let state = file::State::read(&text).ok();
        let named = state.as_ref().and_then(|state| state.run.as_ref()).map(ToString::to_string);
        // With a name only that loop is cancelled, without one all that is held here.
        if let (Some(wanted), named) = (&arguments.name, &named)
            && named.as_ref() != Some(wanted)
        {
            continue;
        }
        // A broken file has no session id; `look_up_session` then moves it away and reports it as idle.
        let session = state.map(|state| state.session).unwrap_or_default();
        match session::look(&project, &session, session::now_ms(), stale) {
            Look::Held(mut taken) if taken.file == name => {
                taken.let_go(&project, LetGo::Person, "tribunal loop cancel", session::now_ms())?;
                free.push(named.unwrap_or_else(|| name.to_string()));
            }
            // The file is broken or stale. `look_up_session` has moved it away already, unless it could not be read.
            Look::Idle(_) => {
                if project.root().join(name).exists() {
                    session::put_aside(&project, name)?;
                }
                free.push(named.unwrap_or_else(|| name.to_string()));
            }
            _ => {}
        }
    }
    // An unknown name is an error, nothing to cancel is not: the wanted state is reached.
    if let (Some(wanted), true) = (&arguments.name, free.is_empty()) {
        return Err(Complaint::usage(format!("no session holds {wanted} here")).todo("tribunal loop status"));
    }
    if context.json {
        return status(arguments.name.as_deref(), context);
    }
    if free.is_empty() {
        writeln!(stdout(), "nothing is held here: tribunal loop status")?;
    } else {
        for name in &free {
            writeln!(stdout(), "✓ {}: the session is free; what it did stays", escaped(name))?;
        }
    }
    Ok(0)
}

/// Applies the user's answer to a loop that was released before it was done: `more` or `end`.
pub(super) fn answered(project: &Project, run: &RunId, more: bool) -> Result<String, Complaint> {
    let store = Store::open_read_only(&project.home())?;
    let binding = Binding::of(&store.entries(run, 0)?);
    // The store is closed first, since the answer opens it again for writing.
    drop(store);
    let Some(binding) = binding else {
        return Err(Complaint::usage(format!("{run} is no loop")).todo("tribunal loop status"));
    };
    session::answer_loop(project, &binding, more)?;
    Ok(match more {
        true => format!(
            "it goes on in session {}; sent back at most {} times",
            binding.bound.session, binding.bound.max_refusals
        ),
        false => "it stays as it is".to_string(),
    })
}

/// Formats every session entry of a loop's journal.
fn history(store: &Store, run: &RunId) -> Result<Vec<String>, Complaint> {
    let entries = store.entries(run, 0)?;
    let lines = entries.iter().filter_map(|entry| match &entry.event {
        Event::Session(event) => Some(format!("{} {}", entry.at.utc(), says(event))),
        _ => None,
    });
    Ok(lines.collect())
}

impl From<SessionError> for Complaint {
    fn from(cause: SessionError) -> Complaint {
        let what = cause.to_string();
        match cause {
            SessionError::Store(cause) => cause.into(),
            SessionError::File { .. } => Complaint::new(ENVIRONMENT, what)
                .todo("see that .claude and .tribunal are folders that can be written"),
            SessionError::LeadsOut { .. } => Complaint::usage(what)
                .why("Tribunal writes inside the project only.")
                .todo("put a file in the place of the link, or take it away"),
            SessionError::Unusable { path, .. } => Complaint::usage(what)
                .why("It was left as it is.")
                .todo(format!("look at it, then take it away: mv {} /tmp/", quoted(&path))),
            SessionError::Busy { run, .. } => Complaint::usage(what)
                .why("A project has one such session at a time.")
                .todo(format!("let it go first: tribunal loop cancel {run}"))
                .todo("or see how it stands: tribunal loop status"),
        }
    }
}
