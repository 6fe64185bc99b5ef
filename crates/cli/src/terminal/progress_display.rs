//! Shows a run while it works: it chooses the reporter and passes on what happens.
//!
//! `report` decides how things look; [`crate::terminal::live_terminal`] handles keys and the terminal's signals.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    convert::Infallible,
    future::pending,
    io::{self, Stderr, Stdout, Write, stderr, stdout},
    rc::Rc,
    time::Instant,
};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tokio::sync::watch;
use tribunal_engine::ids::RunId;
use tribunal_report::{
    DisplayMode, JsonReporter, LineReporter, LiveReporter, MultiRunReporter, Reporter, RunLabel, Screen,
    live::{LiveScreen, ViewControls},
};
use tribunal_runner::{RunUpdate, StopLevel};
use tribunal_workflows::runs::{
    child_events::find_child_outcome,
    types::{ChildOutcome, RunEvent},
};

use crate::{
    context::CommandContext,
    messages::user_errors::UserError,
    terminal::{
        self,
        live_terminal::{TerminalView, drive_view},
        multi_run_view::MultiRunView,
    },
};

/// Below this width a window is small.
const SMALL_WINDOW_COLUMNS: usize = 80;

/// Options of commands that run something. The fields' doc comments are their help texts.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ProgressArgs {
    /// How much to show while it runs; on a terminal, the keys 1 to 4 change it
    #[arg(long = "progress", value_name = "MODE", value_parser = mode_parser())]
    mode: Option<DisplayMode>,
    /// Print only errors; the exit code tells the outcome (same as --progress silent)
    #[arg(short, long, conflicts_with = "mode")]
    quiet: bool,
}

impl ProgressArgs {
    /// The mode that was typed; `None` leaves it to the settings.
    pub fn typed_mode(self) -> Option<DisplayMode> {
        if self.quiet { Some(DisplayMode::Silent) } else { self.mode }
    }
}

fn mode_parser() -> impl TypedValueParser<Value = DisplayMode> {
    let mode_names = DisplayMode::ALL.map(DisplayMode::as_str);
    PossibleValuesParser::new(mode_names).map(|mode_name| DisplayMode::parse_name(&mode_name).unwrap_or_default())
}

/// The reporter that draws a run.
enum RunDisplay {
    /// Nothing: only errors are shown.
    Nothing,
    /// Line after line, for users or programs.
    Lines {
        reporter: Box<dyn Reporter>,
        /// Events for programs instead of lines for users.
        is_json: bool,
    },
    Live(Box<LiveReporter<Stderr>>),
    /// One of several runs: labelled lines; for programs events, and labelled lines only for notices that are no events.
    MultiRun {
        labelled_lines: Box<MultiRunReporter<Stderr>>,
        json_reporter: Option<JsonReporter<Stdout>>,
    },
    /// One row of a view that several runs share.
    SharedView {
        multi_run_view: Rc<MultiRunView>,
        run_index: usize,
    },
}

/// The run's awake time in its last entry. Only entries have it; between them it is estimated from the time that has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryClock {
    noted_at: Instant,
    awake_ms: u64,
}

impl EntryClock {
    /// Reads the clock from an update, if it has one. Past entries set it, too, so that a resumed run continues its time.
    pub fn from_update(run_update: &RunUpdate<'_>) -> Option<EntryClock> {
        match run_update {
            RunUpdate::ReplayedEntry(journal_entry) | RunUpdate::NewEntry(journal_entry) => {
                Some(EntryClock { noted_at: Instant::now(), awake_ms: journal_entry.at.awake_ms })
            }
            _ => None,
        }
    }

    pub fn estimate_awake_ms(self) -> u64 {
        let elapsed_ms = u64::try_from(self.noted_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.awake_ms.saturating_add(elapsed_ms)
    }
}

/// Draws one run and handles its terminal.
pub(crate) struct ProgressView {
    display: RefCell<RunDisplay>,
    screen: Screen,
    /// How much is shown at first; keys can change it.
    initial_mode: DisplayMode,
    last_entry_clock: Cell<Option<EntryClock>>,
    /// The run that the command started or resumed: the first that reported something.
    root_run: RefCell<Option<RunId>>,
    /// Draw the child runs, each with its name in front of its lines.
    child_reporters: RefCell<BTreeMap<RunId, MultiRunReporter<Vec<u8>>>>,
}

impl ProgressView {
    pub fn new(command_context: &CommandContext, mode: DisplayMode) -> ProgressView {
        let screen = command_context.progress_screen.clone();
        let display = match terminal::screen_size().filter(|_| command_context.can_repaint) {
            // Programs get events even on a terminal.
            _ if command_context.wants_json => {
                RunDisplay::Lines { reporter: Box::new(JsonReporter::new(stdout())), is_json: true }
            }
            _ if mode == DisplayMode::Silent => RunDisplay::Nothing,
            Some((_, screen_rows)) => {
                let controls = ViewControls { mode, ..ViewControls::default() };
                RunDisplay::Live(Box::new(LiveReporter::new(stderr(), screen.clone(), screen_rows, controls)))
            }
            None => RunDisplay::Lines {
                reporter: Box::new(LineReporter::new(stderr(), screen.clone(), mode)),
                is_json: false,
            },
        };
        let progress_view = ProgressView::from_display(display, screen, mode);
        // A command that was started in the background must not paint over the shell.
        if !terminal::is_in_foreground() {
            progress_view.close();
        }
        progress_view
    }

    /// Draws one of several runs that work at once.
    pub fn new_labelled(command_context: &CommandContext, mode: DisplayMode, run_label: RunLabel) -> ProgressView {
        let screen = command_context.progress_screen.clone();
        let labelled_lines = Box::new(MultiRunReporter::new(stderr(), screen.clone(), mode, run_label));
        let json_reporter = command_context.wants_json.then(|| JsonReporter::new(stdout()));
        ProgressView::from_display(RunDisplay::MultiRun { labelled_lines, json_reporter }, screen, mode)
    }

    /// Draws one of several runs as a row of the view that they share. That view is driven by itself.
    pub fn new_shared(multi_run_view: Rc<MultiRunView>, run_index: usize) -> ProgressView {
        let display = RunDisplay::SharedView { multi_run_view, run_index };
        // The shared view is only used if something is shown.
        ProgressView::from_display(display, Screen::default(), DisplayMode::default())
    }

    fn from_display(display: RunDisplay, screen: Screen, initial_mode: DisplayMode) -> ProgressView {
        ProgressView {
            display: RefCell::new(display),
            screen,
            initial_mode,
            last_entry_clock: Cell::default(),
            root_run: RefCell::default(),
            child_reporters: RefCell::default(),
        }
    }

    /// Draws an update of the run, or of a child of it.
    pub fn show_update(&self, run_id: &RunId, run_update: &RunUpdate<'_>) {
        let is_child = *self.root_run.borrow_mut().get_or_insert_with(|| run_id.clone()) != *run_id;
        let is_shared = matches!(&*self.display.borrow(), RunDisplay::SharedView { .. });
        self.forget_returned_child(run_update);
        if is_child && (is_shared || self.draws_lines()) {
            // A row of a shared view shows one run alone.
            let _ = if is_shared { Ok(()) } else { self.draw_child_update(run_id, run_update) };
            return;
        }
        if let Some(entry_clock) = EntryClock::from_update(run_update) {
            self.last_entry_clock.set(Some(entry_clock));
        }
        // A screen that is gone must not stop a run: everything is in the journal.
        let _ = self.draw_update(run_update);
    }

    /// Drops what draws a child run that has come back to its parent: a sprint has hundreds of them.
    fn forget_returned_child(&self, run_update: &RunUpdate<'_>) {
        if let RunUpdate::ReplayedEntry(journal_entry) | RunUpdate::NewEntry(journal_entry) = run_update
            && let Some(child_id) = find_child_outcome(&journal_entry.event).and_then(ChildOutcome::child_run)
        {
            self.child_reporters.borrow_mut().remove(child_id);
        }
    }

    /// Whether lines are written; programs get the events of all runs alike, and a row of a shared view has no room.
    fn draws_lines(&self) -> bool {
        match &*self.display.borrow() {
            RunDisplay::Lines { is_json, .. } => !is_json,
            RunDisplay::Live(_) => true,
            RunDisplay::MultiRun { json_reporter, .. } => json_reporter.is_none(),
            RunDisplay::Nothing | RunDisplay::SharedView { .. } => false,
        }
    }

    /// Draws an update of a child run: its lines, behind the name that its parent gave it, and its part of the live region.
    fn draw_child_update(&self, child_id: &RunId, run_update: &RunUpdate<'_>) -> io::Result<()> {
        if let RunDisplay::Live(live_reporter) = &mut *self.display.borrow_mut() {
            match run_update {
                RunUpdate::ReplayedEntry(journal_entry) | RunUpdate::NewEntry(journal_entry) => {
                    live_reporter.track_child_entry(journal_entry);
                }
                RunUpdate::Progress(progress) => live_reporter.note_child_progress(child_id, progress),
                _ => {}
            }
        }
        let (screen, mode) = (self.child_screen(), self.current_mode());
        let mut child_reporters = self.child_reporters.borrow_mut();
        if let RunUpdate::ReplayedEntry(journal_entry) | RunUpdate::NewEntry(journal_entry) = run_update
            && let RunEvent::RunStarted { parent: Some(parent), .. } = &journal_entry.event
        {
            let child_label = RunLabel::for_subjects(std::slice::from_ref(&parent.name)).into_iter().next();
            if let Some(child_label) = child_label {
                let reporter = MultiRunReporter::new(Vec::new(), screen.clone(), mode, child_label);
                child_reporters.insert(child_id.clone(), reporter);
            }
        }
        let Some(reporter) = child_reporters.get_mut(child_id) else {
            // A child whose locks are held by another process has told nothing of itself yet.
            return match describe_notice(run_update) {
                Some(notice_text) => self.write_notice(&mut self.display.borrow_mut(), run_update, &notice_text),
                None => Ok(()),
            };
        };
        // The window may have another size by now, and a key may have chosen another mode.
        reporter.set_screen(screen);
        reporter.set_mode(mode);
        match run_update {
            RunUpdate::ReplayedEntry(journal_entry) => reporter.note_past_entry(journal_entry),
            RunUpdate::NewEntry(journal_entry) => reporter.report_entry(journal_entry)?,
            // What an agent does right now is shown in the region of a terminal; as lines it would be too much.
            _ => {
                if let Some(notice_text) = describe_notice(run_update) {
                    reporter.write_wrapped_notice(&notice_text)?;
                }
            }
        }
        let lines = reporter.take_output();
        match &mut *self.display.borrow_mut() {
            RunDisplay::Live(live_reporter) => live_reporter.write_lines(&lines),
            _ => stderr().write_all(&lines),
        }
    }

    /// The screen for lines of child runs. A live view knows the width that the terminal has now. In a small window their labels leave so
    /// little room that lines are cut; elsewhere long words are better read whole.
    fn child_screen(&self) -> Screen {
        match &*self.display.borrow() {
            RunDisplay::Live(live_reporter) => {
                let screen = live_reporter.current_screen().clone();
                let cuts_lines = screen.max_columns.is_some_and(|columns| columns < SMALL_WINDOW_COLUMNS);
                Screen { cuts_lines, ..screen }
            }
            _ => self.screen.clone(),
        }
    }

    fn draw_update(&self, run_update: &RunUpdate<'_>) -> io::Result<()> {
        let mut display = self.display.borrow_mut();
        if let Some(notice_text) = describe_notice(run_update) {
            return self.write_notice(&mut display, run_update, &notice_text);
        }
        let is_silent = self.initial_mode == DisplayMode::Silent;
        let reporter: &mut dyn Reporter = match &mut *display {
            RunDisplay::Nothing => return Ok(()),
            RunDisplay::SharedView { multi_run_view, run_index } => {
                multi_run_view.show_update(*run_index, run_update);
                return Ok(());
            }
            RunDisplay::Lines { reporter, .. } => reporter.as_mut(),
            RunDisplay::Live(live_reporter) => live_reporter.as_mut(),
            RunDisplay::MultiRun { labelled_lines, json_reporter } => match (json_reporter, run_update) {
                (Some(json_reporter), RunUpdate::ReplayedEntry(journal_entry) | RunUpdate::NewEntry(journal_entry)) => {
                    // Events name their run themselves, but notices on standard error need its label.
                    labelled_lines.set_run(&journal_entry.run);
                    json_reporter
                }
                (Some(json_reporter), _) => json_reporter,
                (None, _) if is_silent => return Ok(()),
                (None, _) => labelled_lines.as_mut(),
            },
        };
        match run_update {
            RunUpdate::ReplayedEntry(journal_entry) => {
                reporter.note_past_entry(journal_entry);
                Ok(())
            }
            RunUpdate::NewEntry(journal_entry) => reporter.report_entry(journal_entry),
            RunUpdate::Progress(progress) => reporter.report_progress(progress),
            _ => Ok(()),
        }
    }

    /// Writes something about the process that is not in the journal.
    fn write_notice(&self, display: &mut RunDisplay, run_update: &RunUpdate<'_>, notice_text: &str) -> io::Result<()> {
        match display {
            _ if (self.initial_mode == DisplayMode::Silent) => Ok(()),
            RunDisplay::Nothing => Ok(()),
            RunDisplay::Live(live_reporter) => {
                if matches!(run_update, RunUpdate::StoppingAfter(_)) {
                    live_reporter.set_controls(ViewControls { is_stopping: true, ..live_reporter.controls() })?;
                }
                live_reporter.write_notice(notice_text)
            }
            RunDisplay::Lines { .. } => writeln!(stderr(), "{notice_text}"),
            RunDisplay::MultiRun { labelled_lines, .. } => labelled_lines.write_notice(notice_text),
            RunDisplay::SharedView { multi_run_view, run_index } => {
                multi_run_view.show_update(*run_index, run_update);
                Ok(())
            }
        }
    }

    /// Shows why there is no run, or why it broke off.
    pub fn show_error(&self, user_error: &UserError) {
        let _ = match &mut *self.display.borrow_mut() {
            RunDisplay::MultiRun { labelled_lines, .. } => labelled_lines.write_notice(&user_error.to_string()),
            RunDisplay::SharedView { multi_run_view, run_index } => {
                multi_run_view.write_notice(*run_index, &user_error.to_string())
            }
            RunDisplay::Nothing | RunDisplay::Live(_) | RunDisplay::Lines { .. } => write!(stderr(), "{user_error}"),
        };
    }

    /// Ends the display: nothing more follows.
    pub fn close(&self) {
        self.with_screen(&mut |live_screen| live_screen.suspend_region());
    }

    /// Returns how much is shown now.
    pub fn current_mode(&self) -> DisplayMode {
        match &*self.display.borrow() {
            RunDisplay::Live(live_reporter) => live_reporter.controls().mode,
            RunDisplay::Nothing
            | RunDisplay::Lines { .. }
            | RunDisplay::MultiRun { .. }
            | RunDisplay::SharedView { .. } => self.initial_mode,
        }
    }

    /// Keeps the picture moving and reacts to keys and signals, as long as the run lasts. It never returns by itself.
    pub async fn drive(&self, stop_sender: &watch::Sender<StopLevel>) -> Infallible {
        let is_live = matches!(&*self.display.borrow(), RunDisplay::Live(_));
        // Without a live view there is nothing to attend to, but the caller still waits for this future.
        if is_live { drive_view(self, &self.screen, stop_sender).await } else { pending().await }
    }
}

impl TerminalView for ProgressView {
    fn with_screen(&self, action: &mut dyn FnMut(&mut dyn LiveScreen) -> io::Result<()>) {
        if let RunDisplay::Live(live_reporter) = &mut *self.display.borrow_mut() {
            let _ = action(live_reporter.as_mut());
        }
    }

    fn advance_clocks(&self) {
        if let (Some(entry_clock), RunDisplay::Live(live_reporter)) =
            (self.last_entry_clock.get(), &mut *self.display.borrow_mut())
        {
            let _ = live_reporter.advance_clock(entry_clock.estimate_awake_ms());
        }
    }
}

/// Describes an update about the process that is not in the journal. `None` if the update is something else, or if there is
/// nothing to wait for and so nothing to tell.
pub(crate) fn describe_notice(run_update: &RunUpdate<'_>) -> Option<String> {
    let notice_text = match run_update {
        RunUpdate::StoppingAfter(running_agents @ 1..) => {
            let agents_text = count_noun(*running_agents, "agent");
            format!("waiting for {agents_text} to finish before stopping; press Ctrl-C again to stop now")
        }
        RunUpdate::EndingNow(running_agents @ 1..) => format!("stopping {} now", count_noun(*running_agents, "agent")),
        RunUpdate::StraysEnded(process_count) => {
            format!("stopped {} left behind by an earlier attempt", count_noun(*process_count, "process"))
        }
        RunUpdate::WaitingForKeepers => "waiting for agents of an earlier attempt to exit".to_string(),
        RunUpdate::WaitingForInspection => "waiting for `tribunal verify`, which checks this work".to_string(),
        _ => return None,
    };
    Some(format!("note: {notice_text}"))
}

fn count_noun(item_count: usize, noun: &str) -> String {
    // `process` is the only noun here that needs another plural.
    let plural_ending = if noun.ends_with('s') { "es" } else { "s" };
    if item_count == 1 { format!("1 {noun}") } else { format!("{item_count} {noun}{plural_ending}") }
}
