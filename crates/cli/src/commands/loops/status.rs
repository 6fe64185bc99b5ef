//! `tribunal loop status`: what sessions have taken on here, and how it stands.
//!
//! The journal says what happened; only the state file says which session is held now.

use std::{io::Write, time::Duration};

use tribunal_engine::{ids::RunId, text::truncate_chars, timestamp::Timestamp};
use tribunal_report::{describe_session_event, escape_line};
use tribunal_runner::{
    Project,
    session::{self, BoundSession, SessionLookup, state_file},
};
use tribunal_store::Store;
use tribunal_workflows::{
    runs::{kinds::WorkflowEvent, types::RunEvent},
    session::{SessionBinding, SessionRecord},
};

use super::{build_row, load_stale_age};
use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, LoopRow, LoopsDocument},
        user_errors::UserError,
    },
    terminal::wrapped_output::wrapped_stdout,
};

/// At most this many loops are listed.
const MAX_SHOWN_LOOPS: usize = 10;

/// Prints what sessions have taken on here, or only what is called `wanted_name`, with all that happened in it.
pub(super) fn print_status(wanted_name: Option<&str>, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let store = context.open_journal(&project)?;
    let mut bindings = match &store {
        Some(store) => list_bindings(store)?,
        None => Vec::new(),
    };
    if let Some(wanted_name) = wanted_name {
        bindings.retain(|binding| binding.run_id.as_str() == wanted_name);
        if bindings.is_empty() {
            return Err(UserError::usage(format!("no loop or session review named `{wanted_name}`"))
                .with_step("list all: `tribunal loop status`"));
        }
    }
    // Only the state file says what is held now; the journal says what happened.
    let file_state = read_state_file(&project);
    let loop_rows: Vec<LoopRow> =
        bindings.iter().map(|binding| build_status_row(binding, file_state.as_ref())).collect();
    if context.wants_json {
        json_documents::print_document(&LoopsDocument { schema: "tribunal.loops/1", loops: loop_rows })?;
        return Ok(0);
    }
    let mut output = wrapped_stdout();
    // The history of a loop is shown only when the user names that loop.
    let history_store = store.as_ref().filter(|_| wanted_name.is_some());
    write_status_rows(&mut output, &loop_rows, file_state.as_ref(), history_store)?;
    // Other tools write such state files, too; a loop of theirs has no journal here.
    if let Some(bound_session) = find_unrecorded_session(&project, load_stale_age(&project)?) {
        write_unrecorded_session(&mut output, &bound_session)?;
    } else if loop_rows.is_empty() {
        let program_name = context.program_name();
        writeln!(
            output,
            "no session has a loop here; start one with `{program_name} loop run --in-session -p PROMPT` (other loops: \
             `{program_name} runs`)"
        )?;
    }
    if let Some(loop_row) = loop_rows.iter().find(|loop_row| loop_row.held) {
        let loop_name = escape_line(loop_row.id.as_str());
        writeln!(output, "next: {} loop cancel {loop_name}", context.program_name())?;
    }
    Ok(0)
}

/// Lists all that sessions have taken on, in the order of their last events.
fn list_bindings(store: &Store) -> Result<Vec<SessionBinding>, UserError> {
    let mut bindings = Vec::new();
    for run_id in store.list_runs()? {
        // Most runs have nothing to do with a session; this check avoids reading their whole journals.
        if store.last_entry_of(&run_id, &["session"])?.is_some() {
            bindings.extend(SessionBinding::from_entries(&store.read_entries(&run_id, 0)?));
        }
    }
    bindings.sort_by_key(|binding| binding.last_event_ms);
    Ok(bindings)
}

/// Builds the row of a binding as it stands now.
fn build_status_row(binding: &SessionBinding, file_state: Option<&state_file::StateFile>) -> LoopRow {
    let mut loop_row = build_row(&binding.run_id, &binding.assignment);
    loop_row.refusals = binding.tally.refusals;
    loop_row.tools = binding.tally.tools;
    loop_row.last = Timestamp { wall_ms: binding.last_event_ms, awake_ms: 0 }.format_utc();
    if let Some((release_reason, detail)) = &binding.release {
        loop_row.let_go = Some(*release_reason);
        loop_row.detail.clone_from(detail);
    }
    loop_row.held = binding.release.is_none()
        && file_state.is_some_and(|held_state| held_state.run_id.as_ref() == Some(&binding.run_id));
    if let Some(held_state) = file_state.filter(|_| loop_row.held) {
        // The user may have edited the limit in the state file, which then holds.
        loop_row.max_refusals = held_state.max_refusals;
    }
    loop_row
}

/// Writes the newest rows, with the prompt of the one that is held, and with histories if `history_store` is given.
fn write_status_rows(
    output: &mut impl Write,
    loop_rows: &[LoopRow],
    file_state: Option<&state_file::StateFile>,
    history_store: Option<&Store>,
) -> Result<(), UserError> {
    let older_count = loop_rows.len().saturating_sub(MAX_SHOWN_LOOPS);
    if older_count > 0 {
        writeln!(output, "({older_count} older ones not shown; list all with `tribunal loop status --json`)")?;
    }
    for loop_row in &loop_rows[older_count..] {
        writeln!(output, "{}", escape_line(&format_row(loop_row)))?;
        if let Some(held_state) = file_state.filter(|_| loop_row.held) {
            // The file says what the promise is, but only the journal says what kind of work it completes.
            if let Some(promise) = &held_state.promise {
                writeln!(output, "  promise  {}", escape_line(&loop_row.work.tag_promise(promise)))?;
            }
            writeln!(output, "  prompt   {}", escape_line(&truncate_chars(&held_state.prompt, 200)))?;
        }
        if let Some(store) = history_store {
            for history_line in format_history(store, &loop_row.id)? {
                writeln!(output, "  {}", escape_line(&history_line))?;
            }
        }
    }
    Ok(())
}

/// Writes the line of a session that is held without a journal.
fn write_unrecorded_session(output: &mut impl Write, bound_session: &BoundSession) -> Result<(), UserError> {
    let session_name = if bound_session.file_state.session_id.is_empty() {
        "no session yet"
    } else {
        &bound_session.file_state.session_id
    };
    let detail_line = format!(
        "{}  session {session_name} · sent back {} of at most {} · not in the journal",
        bound_session.state_file, bound_session.standing.refusals, bound_session.standing.max_refusals
    );
    writeln!(output, "{}", escape_line(&detail_line))?;
    Ok(())
}

fn format_row(loop_row: &LoopRow) -> String {
    let session_text = if loop_row.session.is_empty() {
        "no session yet".to_string()
    } else {
        format!("session {}", loop_row.session)
    };
    let state_text = match (&loop_row.let_go, loop_row.held) {
        (Some(release_reason), _) => {
            let detail_suffix =
                if loop_row.detail.is_empty() { String::new() } else { format!(" ({})", loop_row.detail) };
            format!("released: {}{detail_suffix}", release_reason.as_phrase())
        }
        (None, true) => "active".to_string(),
        // Deleting the state file is a way to let a session go, so this is not an error.
        (None, false) => "released: its state file is missing or unreadable".to_string(),
    };
    format!(
        "{}  {state_text} · {session_text} · sent back {} of at most {} · {} tools used · {} UTC",
        loop_row.id, loop_row.refusals, loop_row.max_refusals, loop_row.tools, loop_row.last
    )
}

/// Reads Tribunal's own state file, if it is there and valid.
fn read_state_file(project: &Project) -> Option<state_file::StateFile> {
    let state_text = std::fs::read_to_string(project.root().join(state_file::OWN_STATE_FILE)).ok()?;
    state_file::StateFile::parse_state(&state_text).ok()
}

/// Finds a session that is held by a state file of which no journal knows.
fn find_unrecorded_session(project: &Project, stale_age: Duration) -> Option<Box<BoundSession>> {
    for file_name in [state_file::OWN_STATE_FILE, state_file::RALPH_STATE_FILE] {
        let Ok(state_text) = std::fs::read_to_string(project.root().join(file_name)) else { continue };
        let Ok(file_state) = state_file::StateFile::parse_state(&state_text) else { continue };
        // `look_up_session` applies the rules of the hook: a stale or broken file holds no session.
        if file_state.run_id.is_none()
            && file_state.is_active
            && let SessionLookup::HeldHere(bound_session) =
                session::look_up_session(project, &file_state.session_id, session::current_wall_ms(), stale_age)
        {
            return Some(bound_session);
        }
    }
    None
}

/// Formats every session entry of a loop's journal.
fn format_history(store: &Store, run_id: &RunId) -> Result<Vec<String>, UserError> {
    let journal_entries = store.read_entries(run_id, 0)?;
    let history_lines = journal_entries.iter().filter_map(|journal_entry| match &journal_entry.event {
        RunEvent::Workflow(WorkflowEvent::Session(SessionRecord::Session(session_event))) => {
            Some(format!("{} {}", journal_entry.at.format_utc(), describe_session_event(session_event)))
        }
        _ => None,
    });
    Ok(history_lines.collect())
}
