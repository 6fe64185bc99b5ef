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
use tribunal_report::{Beside, JsonLines, Label, Lines, Live, Mode, Reporter, Screen, live::Controls};
use tribunal_runner::{Seen, Stop};

use crate::{
    complaint::Complaint,
    context::Context,
    terminal::{self, Keyboard},
};

/// How often the live view checks whether there is something to paint.
const BEAT: Duration = Duration::from_millis(100);

/// Options of commands that run something. The field's doc comment is its help text.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Progress {
    /// How much is shown while it runs; on a terminal it can be changed with the keys 1 to 4
    #[arg(long = "progress", value_name = "MODE", value_parser = modes())]
    pub mode: Option<Mode>,
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    let words = Mode::ALL.map(Mode::as_str);
    PossibleValuesParser::new(words).map(|word| Mode::parse(&word).unwrap_or_default())
}

/// The reporter that draws a run.
enum Shown {
    /// Line after line, for users or programs.
    Plain(Box<dyn Reporter>),
    Live(Box<Live<Stderr>>),
    /// One of several runs: labelled lines, or for programs only the notices that are not events.
    Beside {
        lines: Box<Beside<Stderr>>,
        json: Option<JsonLines<Stdout>>,
    },
}

/// Draws one run and handles its terminal.
pub(crate) struct View {
    shown: RefCell<Shown>,
    screen: Screen,
    /// The moment of the last entry and the run's awake time in it. The live clock continues from there.
    clock: Cell<Option<(Instant, u64)>>,
    /// Whether we are in the foreground and may paint.
    here: Cell<bool>,
}

impl View {
    pub fn new(context: &Context, mode: Mode) -> View {
        let screen = context.progress.clone();
        let shown = match terminal::size().filter(|_| context.paintable) {
            // Programs get events even on a terminal.
            _ if context.json => Shown::Plain(Box::new(JsonLines::new(stdout()))),
            Some((_, rows)) => {
                let controls = Controls { mode, ..Controls::default() };
                Shown::Live(Box::new(Live::new(stderr(), screen.clone(), rows, controls)))
            }
            None => Shown::Plain(Box::new(Lines::new(stderr(), screen.clone(), mode))),
        };
        let view = View::of(shown, screen);
        // A command that was started in the background must not paint over the shell.
        if !terminal::in_foreground() {
            view.leave();
        }
        view
    }

    /// Draws one of several runs that work at once.
    pub fn beside(context: &Context, mode: Mode, label: Label) -> View {
        let screen = context.progress.clone();
        let lines = Box::new(Beside::new(stderr(), screen.clone(), mode, label));
        let json = context.json.then(|| JsonLines::new(stdout()));
        View::of(Shown::Beside { lines, json }, screen)
    }

    fn of(shown: Shown, screen: Screen) -> View {
        View { shown: RefCell::new(shown), screen, clock: Cell::default(), here: Cell::new(true) }
    }

    /// Draws an update of the run.
    pub fn see(&self, seen: &Seen<'_>) {
        // Past entries set the clock, too, so that a resumed run continues its time.
        if let Seen::Past(entry) | Seen::Entry(entry) = seen {
            self.clock.set(Some((Instant::now(), entry.at.awake_ms)));
        }
        let mut shown = self.shown.borrow_mut();
        let reporter: &mut dyn Reporter = match &mut *shown {
            Shown::Plain(plain) => plain.as_mut(),
            Shown::Live(live) => live.as_mut(),
            Shown::Beside { lines, json } => match (json, seen) {
                (Some(json), Seen::Past(entry) | Seen::Entry(entry)) => {
                    // Events name their run themselves, but notices on standard error need its label.
                    lines.meet(&entry.run);
                    json
                }
                (Some(json), _) => json,
                (None, _) => lines.as_mut(),
            },
        };
        let drawn = match seen {
            Seen::Past(entry) => {
                reporter.past(entry);
                Ok(())
            }
            Seen::Entry(entry) => reporter.entry(entry),
            Seen::Progress(progress) => reporter.progress(progress),
            // Nothing is running, so there is nothing to wait for and nothing to tell.
            Seen::Stopping(0) | Seen::Ending(0) => Ok(()),
            Seen::Stopping(running) => stopping(&mut shown, *running),
            Seen::Ending(running) => notice(&mut shown, &format!("ending {}", count(*running, "agent"))),
            Seen::Swept(number) => {
                let processes = count(*number, "process");
                notice(&mut shown, &format!("ended {processes} that an earlier start had left behind"))
            }
            Seen::Waiting => notice(&mut shown, "agents of an earlier start are still ending; waiting"),
        };
        // A screen that is gone must not stop a run: everything is in the journal.
        let _ = drawn;
    }

    /// Shows why there is no run, or why it broke off.
    pub fn complain(&self, complaint: &Complaint) {
        let _ = match &mut *self.shown.borrow_mut() {
            Shown::Beside { lines, .. } => lines.notice(&complaint.to_string()),
            Shown::Live(_) | Shown::Plain(_) => write!(stderr(), "{complaint}"),
        };
    }

    /// Ends the display: nothing more follows.
    pub fn close(&self) {
        self.live(Live::leave);
    }

    /// Calls `action` with the live reporter, if there is one. Its errors are ignored, since the journal has everything.
    fn live(&self, what: impl FnOnce(&mut Live<Stderr>) -> io::Result<()>) {
        if let Shown::Live(live) = &mut *self.shown.borrow_mut() {
            let _ = what(live);
        }
    }

    fn is_live(&self) -> bool {
        matches!(&*self.shown.borrow(), Shown::Live(_))
    }

    /// Keeps the picture moving and reacts to keys and signals, as long as the run lasts. It never returns by itself.
    pub async fn attend(&self, stop: &watch::Sender<Stop>) -> Infallible {
        // Without a live view there is nothing to attend to, but the caller still waits for this future.
        let (true, Ok(mut signals)) = (self.is_live(), Signals::new()) else { return pending().await };
        let mut keyboard = None;
        self.take_keys(&mut keyboard);
        let mut beat = interval(BEAT);
        // After a suspension one repaint is enough; missed ticks must not follow in a burst.
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = beat.tick() => self.beat(&mut keyboard),
                typed = typed(&mut keyboard) => match typed {
                    Some(typed) => keys(&typed).into_iter().for_each(|key| self.press(key, stop)),
                    None => {
                        keyboard = None;
                        self.hang_up();
                    }
                },
                _ = signals.resized.recv() => self.resize(),
                _ = signals.hung_up.recv() => self.hang_up(),
                // The terminal has to be put back before the shell gets it.
                _ = signals.stopped.recv() => {
                    self.leave();
                    keyboard.iter().for_each(Keyboard::pause);
                    terminal::stop_here();
                    self.look_whose_turn(&mut keyboard);
                }
                _ = signals.continued.recv() => self.look_whose_turn(&mut keyboard),
            }
        }
    }

    /// Repaints if needed, and notices when the shell took the terminal or gave it back: shells do not always send a signal.
    fn beat(&self, keyboard: &mut Option<Keyboard>) {
        if terminal::in_foreground() != self.here.get() {
            self.look_whose_turn(keyboard);
        }
        if let Some((then, awake_ms)) = self.clock.get() {
            // The run's clock only stands in entries; between them it is estimated from the time that has passed.
            let since = u64::try_from(then.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.live(|live| live.tick(awake_ms.saturating_add(since)));
        }
    }

    /// Suspends or restores the view, depending on who has the terminal.
    fn look_whose_turn(&self, keyboard: &mut Option<Keyboard>) {
        if !terminal::in_foreground() {
            return self.leave();
        }
        self.here.set(true);
        self.live(Live::come_back);
        self.take_keys(keyboard);
        // The size may have changed while another program had the terminal.
        self.resize();
    }

    /// Leaves the terminal to another program.
    fn leave(&self) {
        self.here.set(false);
        self.live(Live::leave);
    }

    /// Reads keys again, or starts to.
    fn take_keys(&self, keyboard: &mut Option<Keyboard>) {
        match keyboard {
            Some(keyboard) => keyboard.go_on(),
            None => *keyboard = Keyboard::open(),
        }
        let keys = keyboard.is_some();
        // The footer shows the keys only if they work.
        self.live(|live| live.control(Controls { keys, ..live.controls() }));
    }

    fn resize(&self) {
        if let Some((columns, rows)) = terminal::size() {
            let screen = Screen { width: Some(columns), ..self.screen.clone() };
            self.live(|live| live.resize(screen, rows));
        }
    }

    /// Stops painting: the terminal is gone, but the run goes on.
    fn hang_up(&self) {
        self.live(|live| {
            live.hang_up();
            Ok(())
        });
    }

    /// Carries out a key.
    fn press(&self, key: Key, stop: &watch::Sender<Stop>) {
        self.live(|live| {
            let now = live.controls();
            live.control(match key {
                Key::Show(mode) => Controls { mode, ..now },
                Key::ShowNext => Controls { mode: now.mode.next(), ..now },
                Key::Help => Controls { help: !now.help, ..now },
                Key::Stop => now,
            })
        });
        // Pressing `s` twice by mistake must not end running agents: only a second Ctrl-C does that.
        if key == Key::Stop && *stop.borrow() == Stop::GoOn {
            stop.send_replace(Stop::Park);
        }
    }
}

/// Shows that the run is stopping.
fn stopping(shown: &mut Shown, running: usize) -> io::Result<()> {
    if let Shown::Live(live) = shown {
        live.control(Controls { stopping: true, ..live.controls() })?;
    }
    let agents = count(running, "agent");
    notice(shown, &format!("stopping: {agents} may finish; Ctrl-C again to end now"))
}

/// Writes something about the process that is not in the journal.
fn notice(shown: &mut Shown, text: &str) -> io::Result<()> {
    let text = format!("[i] {text}");
    match shown {
        Shown::Live(live) => live.notice(&text),
        Shown::Plain(_) => writeln!(stderr(), "{text}"),
        Shown::Beside { lines, .. } => lines.notice(&text),
    }
}

fn count(number: usize, noun: &str) -> String {
    // `process` is the only noun here that needs another plural.
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}{ending}") }
}

/// Waits for typed bytes; forever, if there is no keyboard.
async fn typed(keyboard: &mut Option<Keyboard>) -> Option<Vec<u8>> {
    match keyboard {
        Some(keyboard) => keyboard.typed().await,
        None => pending().await,
    }
}

/// Signals about the terminal.
struct Signals {
    resized: Signal,
    hung_up: Signal,
    stopped: Signal,
    continued: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        // Tokio has no names for these two signals.
        let raw = |of: rustix::process::Signal| signal(SignalKind::from_raw(of.as_raw()));
        Ok(Signals {
            resized: signal(SignalKind::window_change())?,
            hung_up: signal(SignalKind::hangup())?,
            stopped: raw(rustix::process::Signal::TSTP)?,
            continued: raw(rustix::process::Signal::CONT)?,
        })
    }
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Show(Mode),
    ShowNext,
    Help,
    Stop,
}

/// Parses bytes that were typed at once. Escape sequences and pasted text must not stop anything.
fn keys(typed: &[u8]) -> Vec<Key> {
    // Arrow keys and other special keys send an escape sequence, which may contain our letters.
    if typed.contains(&0x1b) {
        return Vec::new();
    }
    let key = |byte: &u8| match byte {
        digit @ b'1'..=b'4' => Some(Key::Show(Mode::ALL[usize::from(digit - b'1')])),
        b'v' => Some(Key::ShowNext),
        b'?' => Some(Key::Help),
        // A pasted text may contain an `s`; a single byte was typed.
        b's' if typed.len() == 1 => Some(Key::Stop),
        _ => None,
    };
    typed.iter().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_choose_modes_and_stop() {
        assert_eq!(keys(b"1"), [Key::Show(Mode::Silent)]);
        assert_eq!(keys(b"4"), [Key::Show(Mode::Verbose)]);
        assert_eq!(keys(b"v?"), [Key::ShowNext, Key::Help]);
        assert_eq!(keys(b"s"), [Key::Stop]);
    }

    #[test]
    fn what_is_pasted_or_sent_by_arrow_keys_stops_nothing() {
        assert_eq!(keys(b"\x1b[A"), []);
        assert_eq!(keys(b"\x1bOs"), []);
        assert_eq!(keys(b"yes, this was meant for another window"), []);
        assert_eq!(keys(&[0xff, b'5', b'\n']), []);
    }
}
