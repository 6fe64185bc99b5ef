//! The live view: its frames at any moment on any screen, and how they are painted on a terminal.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod frames;
mod multi;
mod painting;
mod sprints;
mod terminal;

use tribunal_engine::{ids::Key, progress::AgentProgress};
use tribunal_report::Screen;
use tribunal_testkit::{SAMPLE_JOURNAL, parse_entries};
use tribunal_workflows::runs::types::JournalEntry;

fn sample_journal() -> Vec<JournalEntry> {
    parse_entries(SAMPLE_JOURNAL)
}

fn progress_of(task_key: &str, progress_text: &str) -> AgentProgress {
    AgentProgress { task_key: Key::new(task_key), activity: progress_text.into(), is_output: false }
}

fn screen_of_width(columns: usize) -> Screen {
    Screen { max_columns: Some(columns), ..Screen::default() }
}
