//! What a person sees of a run while it runs, and what they can do to it: which reporter draws, when it is ticked, what keys
//! and the terminal's signals mean.
//!
//! How things look is `report`'s business; Ctrl-C is [`crate::running`]'s.

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

/// How often the view looks whether there is something to paint.
const BEAT: Duration = Duration::from_millis(100);

/// What commands that run are told about showing it.
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

enum Shown {
    /// Line after line, for people or programs.
    Plain(Box<dyn Reporter>),
    Live(Box<Live<Stderr>>),
    /// One of several: its lines are told apart, or, for programs, only what is said beside the events.
    Beside {
        lines: Box<Beside<Stderr>>,
        json: Option<JsonLines<Stdout>>,
    },
}

pub(crate) struct View {
    shown: RefCell<Shown>,
    screen: Screen,
    /// How long the run had been awake at the last entry, and when that was.
    clock: Cell<Option<(Instant, u64)>>,
    /// The terminal is ours.
    here: Cell<bool>,
}

impl View {
    pub fn new(context: &Context, mode: Mode) -> View {
        let screen = context.progress.clone();
        let shown = match terminal::size().filter(|_| context.paintable) {
            _ if context.json => Shown::Plain(Box::new(JsonLines::new(stdout()))),
            Some((_, rows)) => {
                let controls = Controls { mode, ..Controls::default() };
                Shown::Live(Box::new(Live::new(stderr(), screen.clone(), rows, controls)))
            }
            None => Shown::Plain(Box::new(Lines::new(stderr(), screen.clone(), mode))),
        };
        let view = View::of(shown, screen);
        if !terminal::in_foreground() {
            view.leave();
        }
        view
    }

    /// One of several that run at once.
    pub fn beside(context: &Context, mode: Mode, label: Label) -> View {
        let screen = context.progress.clone();
        let lines = Box::new(Beside::new(stderr(), screen.clone(), mode, label));
        let json = context.json.then(|| JsonLines::new(stdout()));
        View::of(Shown::Beside { lines, json }, screen)
    }

    fn of(shown: Shown, screen: Screen) -> View {
        View { shown: RefCell::new(shown), screen, clock: Cell::default(), here: Cell::new(true) }
    }

    pub fn see(&self, seen: &Seen<'_>) {
        if let Seen::Past(entry) | Seen::Entry(entry) = seen {
            self.clock.set(Some((Instant::now(), entry.at.awake_ms)));
        }
        let mut shown = self.shown.borrow_mut();
        let reporter: &mut dyn Reporter = match &mut *shown {
            Shown::Plain(plain) => plain.as_mut(),
            Shown::Live(live) => live.as_mut(),
            Shown::Beside { lines, json } => match (json, seen) {
                (Some(json), Seen::Past(entry) | Seen::Entry(entry)) => {
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
            Seen::Stopping(0) | Seen::Ending(0) => Ok(()),
            Seen::Stopping(running) => stopping(&mut shown, *running),
            Seen::Ending(running) => notice(&mut shown, &format!("ending {}", count(*running, "agent"))),
            Seen::Swept(number) => {
                let processes = count(*number, "process");
                notice(&mut shown, &format!("ended {processes} that an earlier start had left behind"))
            }
            Seen::Waiting => notice(&mut shown, "agents of an earlier start are still ending; waiting"),
        };
        // A screen that is gone does not stop a run: everything is in the journal.
        let _ = drawn;
    }

    /// Why there is no run, or no more of it.
    pub fn complain(&self, complaint: &Complaint) {
        let _ = match &mut *self.shown.borrow_mut() {
            Shown::Beside { lines, .. } => lines.notice(&complaint.to_string()),
            Shown::Live(_) | Shown::Plain(_) => write!(stderr(), "{complaint}"),
        };
    }

    /// Nothing more comes.
    pub fn close(&self) {
        self.live(Live::leave);
    }

    fn live(&self, what: impl FnOnce(&mut Live<Stderr>) -> io::Result<()>) {
        if let Shown::Live(live) = &mut *self.shown.borrow_mut() {
            let _ = what(live);
        }
    }

    fn is_live(&self) -> bool {
        matches!(&*self.shown.borrow(), Shown::Live(_))
    }

    /// Keeps the picture moving and does what keys and signals say, as long as the run lasts.
    pub async fn attend(&self, stop: &watch::Sender<Stop>) -> Infallible {
        let (true, Ok(mut signals)) = (self.is_live(), Signals::new()) else { return pending().await };
        let mut keyboard = None;
        self.take_keys(&mut keyboard);
        let mut beat = interval(BEAT);
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

    /// A shell need not tell when it takes the terminal or gives it back.
    fn beat(&self, keyboard: &mut Option<Keyboard>) {
        if terminal::in_foreground() != self.here.get() {
            self.look_whose_turn(keyboard);
        }
        if let Some((then, awake_ms)) = self.clock.get() {
            let since = u64::try_from(then.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.live(|live| live.tick(awake_ms.saturating_add(since)));
        }
    }

    fn look_whose_turn(&self, keyboard: &mut Option<Keyboard>) {
        if !terminal::in_foreground() {
            return self.leave();
        }
        self.here.set(true);
        self.live(Live::come_back);
        self.take_keys(keyboard);
        self.resize();
    }

    fn leave(&self) {
        self.here.set(false);
        self.live(Live::leave);
    }

    fn take_keys(&self, keyboard: &mut Option<Keyboard>) {
        match keyboard {
            Some(keyboard) => keyboard.go_on(),
            None => *keyboard = Keyboard::open(),
        }
        let keys = keyboard.is_some();
        self.live(|live| live.control(Controls { keys, ..live.controls() }));
    }

    fn resize(&self) {
        if let Some((columns, rows)) = terminal::size() {
            let screen = Screen { width: Some(columns), ..self.screen.clone() };
            self.live(|live| live.resize(screen, rows));
        }
    }

    /// The terminal is gone; the run is not.
    fn hang_up(&self) {
        self.live(|live| {
            live.hang_up();
            Ok(())
        });
    }

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
        // Pressed twice by mistake it must not end what runs: that is Ctrl-C's second meaning alone.
        if key == Key::Stop && *stop.borrow() == Stop::GoOn {
            stop.send_replace(Stop::Park);
        }
    }
}

fn stopping(shown: &mut Shown, running: usize) -> io::Result<()> {
    if let Shown::Live(live) = shown {
        live.control(Controls { stopping: true, ..live.controls() })?;
    }
    let agents = count(running, "agent");
    notice(shown, &format!("stopping: {agents} may finish; Ctrl-C again to end now"))
}

/// Something about the run's life that is in no journal.
fn notice(shown: &mut Shown, text: &str) -> io::Result<()> {
    let text = format!("[i] {text}");
    match shown {
        Shown::Live(live) => live.notice(&text),
        Shown::Plain(_) => writeln!(stderr(), "{text}"),
        Shown::Beside { lines, .. } => lines.notice(&text),
    }
}

fn count(number: usize, noun: &str) -> String {
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}{ending}") }
}

async fn typed(keyboard: &mut Option<Keyboard>) -> Option<Vec<u8>> {
    match keyboard {
        Some(keyboard) => keyboard.typed().await,
        None => pending().await,
    }
}

/// What happens to the terminal.
struct Signals {
    resized: Signal,
    hung_up: Signal,
    stopped: Signal,
    continued: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        let raw = |of: rustix::process::Signal| signal(SignalKind::from_raw(of.as_raw()));
        Ok(Signals {
            resized: signal(SignalKind::window_change())?,
            hung_up: signal(SignalKind::hangup())?,
            stopped: raw(rustix::process::Signal::TSTP)?,
            continued: raw(rustix::process::Signal::CONT)?,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Show(Mode),
    ShowNext,
    Help,
    Stop,
}

/// What was typed at once, as keys. What a key that sends several characters sends, or what was pasted, stops nothing.
fn keys(typed: &[u8]) -> Vec<Key> {
    if typed.contains(&0x1b) {
        return Vec::new();
    }
    let key = |byte: &u8| match byte {
        digit @ b'1'..=b'4' => Some(Key::Show(Mode::ALL[usize::from(digit - b'1')])),
        b'v' => Some(Key::ShowNext),
        b'?' => Some(Key::Help),
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
