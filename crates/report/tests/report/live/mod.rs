//! The live view: its frames at any moment on any screen, and how they are painted on a terminal.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod frames;
mod painting;
mod terminal;

use tribunal_core::{event::Entry, ids::Key, progress::Progress};
use tribunal_report::Screen;
use tribunal_testkit::{SAMPLE_JOURNAL, entries};

fn recorded() -> Vec<Entry> {
    entries(SAMPLE_JOURNAL)
}

fn progress(key: &str, text: &str) -> Progress {
    Progress { key: Key::new(key), text: text.into() }
}

fn screen(columns: usize) -> Screen {
    Screen { width: Some(columns), ..Screen::default() }
}
