//! Drives a view on the terminal: it keeps the clock moving and reacts to keys and to the terminal's signals.
//!
//! What is painted is decided by the view: [`super::progress_display`] shows one run, [`super::multi_run_view`] several.
//! [`crate::runs::engine`] handles Ctrl-C.

use std::{cell::Cell, convert::Infallible, future::pending, io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tribunal_report::{
    DisplayMode, Screen,
    live::{LiveScreen, ViewControls},
};
use tribunal_runner::StopLevel;

use crate::terminal::{self, Keyboard};

/// How often the live view checks whether there is something to paint.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// A view that is painted on the terminal.
pub(crate) trait TerminalView {
    /// Calls `action` with what is painted. Its errors are ignored, since the journal has everything.
    fn with_screen(&self, action: &mut dyn FnMut(&mut dyn LiveScreen) -> io::Result<()>);

    /// Moves the clocks on and repaints what changed.
    fn advance_clocks(&self);
}

/// Keeps the picture moving and reacts to keys and signals, as long as it is polled. It never returns by itself.
pub(crate) async fn drive_view(
    view: &dyn TerminalView,
    screen: &Screen,
    stop_sender: &watch::Sender<StopLevel>,
) -> Infallible {
    let Ok(mut signals) = TerminalSignals::new() else { return pending().await };
    let driver = TerminalDriver {
        view,
        screen,
        has_terminal: Cell::new(terminal::is_in_foreground()),
        known_size: Cell::new(terminal::screen_size()),
    };
    let mut keyboard = None;
    driver.resume_keyboard(&mut keyboard);
    let mut ticker = interval(TICK_INTERVAL);
    // After a suspension one repaint is enough; missed ticks must not follow in a burst.
    ticker.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticker.tick() => driver.tick(&mut keyboard),
            typed = read_typed(&mut keyboard) => match typed {
                Some(typed) => parse_keys(&typed).into_iter().for_each(|key| driver.handle_key(key, stop_sender)),
                None => {
                    keyboard = None;
                    driver.disconnect();
                }
            },
            _ = signals.resized.recv() => driver.resize(),
            _ = signals.hung_up.recv() => driver.disconnect(),
            // The terminal has to be put back before the shell gets it.
            _ = signals.stopped.recv() => {
                driver.suspend();
                keyboard.iter().for_each(Keyboard::pause);
                terminal::suspend_process();
                driver.update_foreground(&mut keyboard);
            }
            _ = signals.continued.recv() => driver.update_foreground(&mut keyboard),
        }
    }
}

/// A view and the terminal that it is painted on.
struct TerminalDriver<'a> {
    view: &'a dyn TerminalView,
    screen: &'a Screen,
    /// Whether we are in the foreground and may paint.
    has_terminal: Cell<bool>,
    /// The number of columns and rows that the view was told last.
    known_size: Cell<Option<(usize, usize)>>,
}

impl TerminalDriver<'_> {
    /// Repaints if needed, and notices when the shell took the terminal or gave it back, and a new size: there is not always a signal.
    fn tick(&self, keyboard: &mut Option<Keyboard>) {
        if terminal::is_in_foreground() != self.has_terminal.get() {
            self.update_foreground(keyboard);
        }
        if terminal::screen_size() != self.known_size.get() {
            self.resize();
        }
        self.view.advance_clocks();
    }

    /// Suspends or restores the view, depending on who has the terminal.
    fn update_foreground(&self, keyboard: &mut Option<Keyboard>) {
        if !terminal::is_in_foreground() {
            return self.suspend();
        }
        self.has_terminal.set(true);
        self.view.with_screen(&mut |live_screen| live_screen.restore_region());
        self.resume_keyboard(keyboard);
        // The size may have changed while another program had the terminal.
        self.resize();
    }

    /// Leaves the terminal to another program.
    fn suspend(&self) {
        self.has_terminal.set(false);
        self.view.with_screen(&mut |live_screen| live_screen.suspend_region());
    }

    /// Reads keys again, or starts to.
    fn resume_keyboard(&self, keyboard: &mut Option<Keyboard>) {
        match keyboard {
            Some(keyboard) => keyboard.resume(),
            None => *keyboard = Keyboard::open_raw(),
        }
        let reads_keys = keyboard.is_some();
        // The footer shows the keys only if they work.
        self.view.with_screen(&mut |live_screen| {
            live_screen.set_controls(ViewControls { reads_keys, ..live_screen.controls() })
        });
    }

    fn resize(&self) {
        let screen_size = terminal::screen_size();
        self.known_size.set(screen_size);
        if let Some((screen_columns, screen_rows)) = screen_size {
            let screen = Screen { max_columns: Some(screen_columns), ..self.screen.clone() };
            self.view.with_screen(&mut |live_screen| live_screen.resize(screen.clone(), screen_rows));
        }
    }

    /// Stops painting: the terminal is gone, but the run goes on.
    fn disconnect(&self) {
        self.view.with_screen(&mut |live_screen| {
            live_screen.disconnect();
            Ok(())
        });
    }

    /// Carries out a key.
    fn handle_key(&self, key_command: KeyCommand, stop_sender: &watch::Sender<StopLevel>) {
        self.view.with_screen(&mut |live_screen| {
            let current_controls = live_screen.controls();
            live_screen.set_controls(match key_command {
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
