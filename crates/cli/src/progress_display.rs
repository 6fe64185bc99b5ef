//! Shows a run while it works and handles the user's input: it chooses the reporter, drives its clock, and reacts to keys and
//! to the terminal's signals.
//!
//! `report` decides how things look; [`crate::engine`] handles Ctrl-C.

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    future::pending,
    io::{self, Stderr, Stdout, Write, stderr, stdout},
    time::{Duration, Instant},
};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tribunal_report::{
    DisplayMode, JsonReporter, LineReporter, LiveReporter, MultiRunReporter, Reporter, RunLabel, Screen,
    live::ViewControls,
};
use tribunal_runner::{RunUpdate, StopLevel};

use crate::{
    context::CommandContext,
    terminal::{self, Keyboard},
    user_errors::UserError,
};

/// How often the live view checks whether there is something to paint.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// Options of commands that run something. The field's doc comment is its help text.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ProgressArgs {
    /// How much to show while it runs; on a terminal, the keys 1 to 4 change it
    #[arg(long = "progress", value_name = "MODE", value_parser = mode_parser())]
    pub mode: Option<DisplayMode>,
}

fn mode_parser() -> impl TypedValueParser<Value = DisplayMode> {
    let mode_names = DisplayMode::ALL.map(DisplayMode::as_str);
    PossibleValuesParser::new(mode_names).map(|mode_name| DisplayMode::parse_name(&mode_name).unwrap_or_default())
}

/// The reporter that draws a run.
enum RunDisplay {
    /// Line after line, for users or programs.
    Lines(Box<dyn Reporter>),
    Live(Box<LiveReporter<Stderr>>),
    /// One of several runs: labelled lines; for programs events, and labelled lines only for notices that are no events.
    MultiRun {
        labelled_lines: Box<MultiRunReporter<Stderr>>,
        json_reporter: Option<JsonReporter<Stdout>>,
    },
}

/// Draws one run and handles its terminal.
pub(crate) struct ProgressView {
    display: RefCell<RunDisplay>,
    screen: Screen,
    /// How much is shown at first; keys can change it.
    initial_mode: DisplayMode,
    /// The moment of the last entry and the run's awake time in it. The live clock continues from there.
    last_entry_clock: Cell<Option<(Instant, u64)>>,
    /// Whether we are in the foreground and may paint.
    has_terminal: Cell<bool>,
}

impl ProgressView {
    pub fn new(command_context: &CommandContext, mode: DisplayMode) -> ProgressView {
        let screen = command_context.progress_screen.clone();
        let display = match terminal::screen_size().filter(|_| command_context.can_repaint) {
            // Programs get events even on a terminal.
            _ if command_context.wants_json => RunDisplay::Lines(Box::new(JsonReporter::new(stdout()))),
            Some((_, screen_rows)) => {
                let controls = ViewControls { mode, ..ViewControls::default() };
                RunDisplay::Live(Box::new(LiveReporter::new(stderr(), screen.clone(), screen_rows, controls)))
            }
            None => RunDisplay::Lines(Box::new(LineReporter::new(stderr(), screen.clone(), mode))),
        };
        let progress_view = ProgressView::from_display(display, screen, mode);
        // A command that was started in the background must not paint over the shell.
        if !terminal::is_in_foreground() {
            progress_view.suspend();
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

    fn from_display(display: RunDisplay, screen: Screen, initial_mode: DisplayMode) -> ProgressView {
        ProgressView {
            display: RefCell::new(display),
            screen,
            initial_mode,
            last_entry_clock: Cell::default(),
            has_terminal: Cell::new(true),
        }
    }

    /// Draws an update of the run.
    pub fn show_update(&self, run_update: &RunUpdate<'_>) {
        // Past entries set the clock, too, so that a resumed run continues its time.
        if let RunUpdate::ReplayedEntry(journal_entry) | RunUpdate::NewEntry(journal_entry) = run_update {
            self.last_entry_clock.set(Some((Instant::now(), journal_entry.at.awake_ms)));
        }
        let mut display = self.display.borrow_mut();
        let reporter: &mut dyn Reporter = match &mut *display {
            RunDisplay::Lines(line_reporter) => line_reporter.as_mut(),
            RunDisplay::Live(live_reporter) => live_reporter.as_mut(),
            RunDisplay::MultiRun { labelled_lines, json_reporter } => match (json_reporter, run_update) {
                (Some(json_reporter), RunUpdate::ReplayedEntry(journal_entry) | RunUpdate::NewEntry(journal_entry)) => {
                    // Events name their run themselves, but notices on standard error need its label.
                    labelled_lines.set_run(&journal_entry.run);
                    json_reporter
                }
                (Some(json_reporter), _) => json_reporter,
                (None, _) => labelled_lines.as_mut(),
            },
        };
        let draw_result = match run_update {
            RunUpdate::ReplayedEntry(journal_entry) => {
                reporter.note_past_entry(journal_entry);
                Ok(())
            }
            RunUpdate::NewEntry(journal_entry) => reporter.report_entry(journal_entry),
            RunUpdate::Progress(progress) => reporter.report_progress(progress),
            // Nothing is running, so there is nothing to wait for and nothing to tell.
            RunUpdate::StoppingAfter(0) | RunUpdate::EndingNow(0) => Ok(()),
            RunUpdate::StoppingAfter(running_agents) => show_stopping(&mut display, *running_agents),
            RunUpdate::EndingNow(running_agents) => {
                write_notice(&mut display, &format!("stopping {} now", count_noun(*running_agents, "agent")))
            }
            RunUpdate::StraysEnded(process_count) => {
                let processes = count_noun(*process_count, "process");
                write_notice(&mut display, &format!("stopped {processes} left behind by an earlier attempt"))
            }
            RunUpdate::WaitingForKeepers => {
                write_notice(&mut display, "waiting for agents of an earlier attempt to exit")
            }
        };
        // A screen that is gone must not stop a run: everything is in the journal.
        let _ = draw_result;
    }

    /// Shows why there is no run, or why it broke off.
    pub fn show_error(&self, user_error: &UserError) {
        let _ = match &mut *self.display.borrow_mut() {
            RunDisplay::MultiRun { labelled_lines, .. } => labelled_lines.write_notice(&user_error.to_string()),
            RunDisplay::Live(_) | RunDisplay::Lines(_) => write!(stderr(), "{user_error}"),
        };
    }

    /// Ends the display: nothing more follows.
    pub fn close(&self) {
        self.with_live(LiveReporter::suspend_region);
    }

    /// Calls `action` with the live reporter, if there is one. Its errors are ignored, since the journal has everything.
    fn with_live(&self, action: impl FnOnce(&mut LiveReporter<Stderr>) -> io::Result<()>) {
        if let RunDisplay::Live(live_reporter) = &mut *self.display.borrow_mut() {
            let _ = action(live_reporter);
        }
    }

    /// Returns how much is shown now.
    pub fn current_mode(&self) -> DisplayMode {
        match &*self.display.borrow() {
            RunDisplay::Live(live_reporter) => live_reporter.controls().mode,
            RunDisplay::Lines(_) | RunDisplay::MultiRun { .. } => self.initial_mode,
        }
    }

    fn is_live(&self) -> bool {
        matches!(&*self.display.borrow(), RunDisplay::Live(_))
    }

    /// Keeps the picture moving and reacts to keys and signals, as long as the run lasts. It never returns by itself.
    pub async fn drive(&self, stop_sender: &watch::Sender<StopLevel>) -> Infallible {
        // Without a live view there is nothing to attend to, but the caller still waits for this future.
        let (true, Ok(mut signals)) = (self.is_live(), TerminalSignals::new()) else {
            return pending().await;
        };
        let mut keyboard = None;
        self.resume_keyboard(&mut keyboard);
        let mut ticker = interval(TICK_INTERVAL);
        // After a suspension one repaint is enough; missed ticks must not follow in a burst.
        ticker.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = ticker.tick() => self.tick(&mut keyboard),
                typed = read_typed(&mut keyboard) => match typed {
                    Some(typed) => parse_keys(&typed).into_iter().for_each(|key| self.handle_key(key, stop_sender)),
                    None => {
                        keyboard = None;
                        self.disconnect();
                    }
                },
                _ = signals.resized.recv() => self.resize(),
                _ = signals.hung_up.recv() => self.disconnect(),
                // The terminal has to be put back before the shell gets it.
                _ = signals.stopped.recv() => {
                    self.suspend();
                    keyboard.iter().for_each(Keyboard::pause);
                    terminal::suspend_process();
                    self.update_foreground(&mut keyboard);
                }
                _ = signals.continued.recv() => self.update_foreground(&mut keyboard),
            }
        }
    }

    /// Repaints if needed, and notices when the shell took the terminal or gave it back: shells do not always send a signal.
    fn tick(&self, keyboard: &mut Option<Keyboard>) {
        if terminal::is_in_foreground() != self.has_terminal.get() {
            self.update_foreground(keyboard);
        }
        if let Some((entry_instant, awake_ms)) = self.last_entry_clock.get() {
            // Only entries have the run's clock; between them it is estimated from the time that has passed.
            let elapsed_ms = u64::try_from(entry_instant.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.with_live(|live_reporter| live_reporter.advance_clock(awake_ms.saturating_add(elapsed_ms)));
        }
    }

    /// Suspends or restores the view, depending on who has the terminal.
    fn update_foreground(&self, keyboard: &mut Option<Keyboard>) {
        if !terminal::is_in_foreground() {
            return self.suspend();
        }
        self.has_terminal.set(true);
        self.with_live(LiveReporter::restore_region);
        self.resume_keyboard(keyboard);
        // The size may have changed while another program had the terminal.
        self.resize();
    }

    /// Leaves the terminal to another program.
    fn suspend(&self) {
        self.has_terminal.set(false);
        self.with_live(LiveReporter::suspend_region);
    }

    /// Reads keys again, or starts to.
    fn resume_keyboard(&self, keyboard: &mut Option<Keyboard>) {
        match keyboard {
            Some(keyboard) => keyboard.resume(),
            None => *keyboard = Keyboard::open_raw(),
        }
        let reads_keys = keyboard.is_some();
        // The footer shows the keys only if they work.
        self.with_live(|live_reporter| {
            live_reporter.set_controls(ViewControls { reads_keys, ..live_reporter.controls() })
        });
    }

    fn resize(&self) {
        if let Some((screen_columns, screen_rows)) = terminal::screen_size() {
            let screen = Screen { max_columns: Some(screen_columns), ..self.screen.clone() };
            self.with_live(|live_reporter| live_reporter.resize(screen, screen_rows));
        }
    }

    /// Stops painting: the terminal is gone, but the run goes on.
    fn disconnect(&self) {
        self.with_live(|live_reporter| {
            live_reporter.disconnect();
            Ok(())
        });
    }

    /// Carries out a key.
    fn handle_key(&self, key_command: KeyCommand, stop_sender: &watch::Sender<StopLevel>) {
        self.with_live(|live_reporter| {
            let current_controls = live_reporter.controls();
            live_reporter.set_controls(match key_command {
                KeyCommand::SetMode(mode) => ViewControls { mode, ..current_controls },
                KeyCommand::NextMode => ViewControls { mode: current_controls.mode.next_mode(), ..current_controls },
                KeyCommand::ToggleHelp => ViewControls { shows_help: !current_controls.shows_help, ..current_controls },
                KeyCommand::Stop => current_controls,
            })
        });
        // Pressing `s` twice by mistake must not end running agents: only a second Ctrl-C does that.
        if key_command == KeyCommand::Stop && *stop_sender.borrow() == StopLevel::Continue {
            stop_sender.send_replace(StopLevel::ParkRun);
        }
    }
}

/// Shows that the run is stopping.
fn show_stopping(display: &mut RunDisplay, running_agents: usize) -> io::Result<()> {
    if let RunDisplay::Live(live_reporter) = display {
        live_reporter.set_controls(ViewControls { is_stopping: true, ..live_reporter.controls() })?;
    }
    let agents_text = count_noun(running_agents, "agent");
    write_notice(
        display,
        &format!("waiting for {agents_text} to finish before stopping; press Ctrl-C again to stop now"),
    )
}

/// Writes something about the process that is not in the journal.
fn write_notice(display: &mut RunDisplay, notice_text: &str) -> io::Result<()> {
    let notice_text = format!("note: {notice_text}");
    match display {
        RunDisplay::Live(live_reporter) => live_reporter.write_notice(&notice_text),
        RunDisplay::Lines(_) => writeln!(stderr(), "{notice_text}"),
        RunDisplay::MultiRun { labelled_lines, .. } => labelled_lines.write_notice(&notice_text),
    }
}

fn count_noun(item_count: usize, noun: &str) -> String {
    // `process` is the only noun here that needs another plural.
    let plural_ending = if noun.ends_with('s') { "es" } else { "s" };
    if item_count == 1 { format!("1 {noun}") } else { format!("{item_count} {noun}{plural_ending}") }
}

/// Waits for typed bytes; forever, if there is no keyboard.
async fn read_typed(keyboard: &mut Option<Keyboard>) -> Option<Vec<u8>> {
    match keyboard {
        Some(keyboard) => keyboard.next_keys().await,
        None => pending().await,
    }
}

/// Signals about the terminal.
struct TerminalSignals {
    resized: Signal,
    hung_up: Signal,
    stopped: Signal,
    continued: Signal,
}

impl TerminalSignals {
    fn new() -> io::Result<TerminalSignals> {
        // Tokio has no names for these two signals.
        let raw_signal = |signal_number: rustix::process::Signal| signal(SignalKind::from_raw(signal_number.as_raw()));
        Ok(TerminalSignals {
            resized: signal(SignalKind::window_change())?,
            hung_up: signal(SignalKind::hangup())?,
            stopped: raw_signal(rustix::process::Signal::TSTP)?,
            continued: raw_signal(rustix::process::Signal::CONT)?,
        })
    }
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyCommand {
    SetMode(DisplayMode),
    NextMode,
    ToggleHelp,
    Stop,
}

/// Parses bytes that were typed at once. Escape sequences and pasted text must not stop anything.
fn parse_keys(typed_bytes: &[u8]) -> Vec<KeyCommand> {
    // Arrow keys and other special keys send an escape sequence, which may contain our letters.
    if typed_bytes.contains(&0x1b) {
        return Vec::new();
    }
    let parse_byte = |typed_byte: &u8| match typed_byte {
        digit @ b'1'..=b'4' => Some(KeyCommand::SetMode(DisplayMode::ALL[usize::from(digit - b'1')])),
        b'v' => Some(KeyCommand::NextMode),
        b'?' => Some(KeyCommand::ToggleHelp),
        // A pasted text may contain an `s`; a single byte was typed.
        b's' if typed_bytes.len() == 1 => Some(KeyCommand::Stop),
        _ => None,
    };
    typed_bytes.iter().filter_map(parse_byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_choose_modes_and_stop() {
        assert_eq!(parse_keys(b"1"), [KeyCommand::SetMode(DisplayMode::Silent)]);
        assert_eq!(parse_keys(b"4"), [KeyCommand::SetMode(DisplayMode::Verbose)]);
        assert_eq!(parse_keys(b"v?"), [KeyCommand::NextMode, KeyCommand::ToggleHelp]);
        assert_eq!(parse_keys(b"s"), [KeyCommand::Stop]);
    }

    #[test]
    fn pasted_text_and_arrow_keys_do_not_stop_a_run() {
        assert_eq!(parse_keys(b"\x1b[A"), []);
        assert_eq!(parse_keys(b"\x1bOs"), []);
        assert_eq!(parse_keys(b"yes, this was meant for another window"), []);
        assert_eq!(parse_keys(&[0xff, b'5', b'\n']), []);
    }
}
