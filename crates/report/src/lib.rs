//! Renders runs as readable lines, JSON events and tables. Everything is drawn from journal entries, so a live run and a
//! recorded one look the same.
//!
//! Of Tribunal's crates this one uses `engine`, `workflows` and the JSON crate alone: it opens no file, asks no terminal for
//! its size and knows no client. The caller passes in where to write, how wide the screen is and whether to use colour.
//!
//! What every kind of run has is drawn by common code. What only one kind has is in its own directory (`review`, `session`)
//! and is found through the table in `kind_table`.

mod active_work;
pub mod calls;
mod cause_advice;
mod child_runs;
mod child_tree;
mod development_lines;
mod development_text;
mod display_mode;
mod entry_filter;
mod json;
mod kind_reporter;
mod kind_table;
mod line_buffer;
mod lines;
pub mod live;
mod loop_run;
mod markdown_escape;
mod multi_run;
mod next_steps;
mod phrases;
pub mod report_parts;
mod review;
pub mod run_report;
mod run_standing;
mod run_text;
mod session;
mod sprint;
mod step_list;
mod story;
mod style;
pub mod tables;
mod taken_work;
mod terminal_text;
mod text_table;
#[cfg(feature = "toy-workflow")]
mod toy;
mod user_messages;
mod verbose;

pub use active_work::{ActiveWork, list_active_work};
pub use child_tree::list_child_lines;
pub use display_mode::DisplayMode;
pub use entry_filter::{EntryFilter, LogQuery};
pub use json::JsonReporter;
pub use lines::LineReporter;
pub use live::LiveReporter;
pub use multi_run::{
    MultiRunEnding, MultiRunReporter, MultiRunRow, RunLabel, render_run_results, render_stopped_steps,
};
pub use next_steps::suggest_next_steps;
pub use review::{FindingsExport, Ruling, RulingIndex, describe_confidence};
pub use session::describe_session_event;
pub use style::{Screen, TextStyle};
pub use taken_work::{TakenState, WaitingWork, apply_taken_work};
pub use terminal_text::{clean_block, clean_line, escape_json, escape_line};
pub use user_messages::{describe_undelivered, find_messages, list_unheard_messages};
pub use verbose::VerboseReporter;

use std::io;

use tribunal_engine::progress::AgentProgress;
use tribunal_workflows::runs::types::JournalEntry;

/// Draws one run, entry by entry.
///
/// Implementations see every entry of a journal in order, because later entries are described with facts from earlier ones.
pub trait Reporter {
    fn report_entry(&mut self, journal_entry: &JournalEntry) -> io::Result<()>;

    /// Takes note of an entry that an earlier process of this run recorded: later lines may refer to it, but it is not drawn.
    fn note_past_entry(&mut self, _: &JournalEntry) {}

    /// Reports what an agent is doing right now. Progress is not in the journal, so a reporter may ignore it.
    fn report_progress(&mut self, _: &AgentProgress) -> io::Result<()> {
        Ok(())
    }
}
