//! Shows several runs in one live view on the terminal. Elsewhere each run is shown by itself, as labelled lines or events.

use std::{
    cell::RefCell,
    convert::Infallible,
    io::{self, Stderr, stderr},
    time::Instant,
};

use tokio::sync::watch;
use tribunal_report::{
    DisplayMode, Screen,
    live::{LiveScreen, MultiLiveReporter, MultiRunSubject, RunRowEnding, ViewControls},
};
use tribunal_runner::{RunUpdate, StopLevel};

use crate::{
    context::CommandContext,
    terminal::{
        self,
        live_terminal::{TerminalView, drive_view},
        progress_display::{EntryClock, describe_notice},
    },
};

/// Draws several runs and handles their terminal. A run is addressed by its position among the subjects.
pub(crate) struct MultiRunView {
    reporter: RefCell<MultiLiveReporter<Stderr>>,
    screen: Screen,
    opened_at: Instant,
    /// The clock of each run's last entry.
    entry_clocks: RefCell<Vec<Option<EntryClock>>>,
}

impl MultiRunView {
    /// Opens the view. `None` if there is no terminal to paint on, or if nothing is to be painted.
    pub fn open(
        command_context: &CommandContext,
        mode: DisplayMode,
        subjects: &[MultiRunSubject],
    ) -> Option<MultiRunView> {
        if command_context.wants_json || !command_context.can_repaint || mode == DisplayMode::Silent {
            return None;
        }
        let (_, screen_rows) = terminal::screen_size()?;
        let screen = command_context.progress_screen.clone();
        let controls = ViewControls { mode, ..ViewControls::default() };
        let multi_run_view = MultiRunView {
            reporter: RefCell::new(MultiLiveReporter::new(stderr(), screen.clone(), screen_rows, controls, subjects)),
            screen,
            opened_at: Instant::now(),
            entry_clocks: RefCell::new(vec![None; subjects.len()]),
        };
        // A command that was started in the background must not paint over the shell.
        if !terminal::is_in_foreground() {
            multi_run_view.close();
        }
        Some(multi_run_view)
    }

    /// Shows that a run's turn has come.
    pub fn start_run(&self, run_index: usize) {
        let _ = self.reporter.borrow_mut().start_run(run_index);
    }

    /// Shows that a run has ended.
    pub fn end_run(&self, run_index: usize, ending: RunRowEnding) {
        let _ = self.reporter.borrow_mut().end_run(run_index, ending);
    }

    /// Draws an update of a run. A screen that is gone must not stop it: everything is in the journal.
    pub fn show_update(&self, run_index: usize, run_update: &RunUpdate<'_>) {
        if let (Some(entry_clock), Some(known_clock)) =
            (EntryClock::from_update(run_update), self.entry_clocks.borrow_mut().get_mut(run_index))
        {
            *known_clock = Some(entry_clock);
        }
        let mut reporter = self.reporter.borrow_mut();
        let _ = match (run_update, describe_notice(run_update)) {
            (RunUpdate::ReplayedEntry(journal_entry), _) => {
                reporter.note_past_entry(run_index, journal_entry);
                Ok(())
            }
            (RunUpdate::NewEntry(journal_entry), _) => reporter.report_entry(run_index, journal_entry),
            (RunUpdate::Progress(progress), _) => reporter.report_progress(run_index, progress),
            (RunUpdate::StoppingAfter(_), Some(notice_text)) => {
                // The footer says it for all runs; the notice says how many agents this run waits for.
                let controls = ViewControls { is_stopping: true, ..reporter.controls() };
                reporter.set_controls(controls).and_then(|()| reporter.write_notice(run_index, &notice_text))
            }
            (_, Some(notice_text)) => reporter.write_notice(run_index, &notice_text),
            (_, None) => Ok(()),
        };
    }

    /// Writes something about a run that is not in its journal.
    pub fn write_notice(&self, run_index: usize, notice_text: &str) -> io::Result<()> {
        self.reporter.borrow_mut().write_notice(run_index, notice_text)
    }

    /// Removes the region: nothing more follows.
    pub fn close(&self) {
        let _ = self.reporter.borrow_mut().suspend_region();
    }

    /// Keeps the picture moving and reacts to keys and signals, as long as the runs last. It never returns by itself.
    pub async fn drive(&self, stop_sender: &watch::Sender<StopLevel>) -> Infallible {
        drive_view(self, &self.screen, stop_sender).await
    }
}

impl TerminalView for MultiRunView {
    fn with_screen(&self, action: &mut dyn FnMut(&mut dyn LiveScreen) -> io::Result<()>) {
        let _ = action(&mut *self.reporter.borrow_mut());
    }

    fn advance_clocks(&self) {
        let mut reporter = self.reporter.borrow_mut();
        for (run_index, entry_clock) in self.entry_clocks.borrow().iter().enumerate() {
            if let Some(entry_clock) = entry_clock {
                reporter.advance_run_clock(run_index, entry_clock.estimate_awake_ms());
            }
        }
        let elapsed_ms = u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let _ = reporter.advance_clock(elapsed_ms);
    }
}
