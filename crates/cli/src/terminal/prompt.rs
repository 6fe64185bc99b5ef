//! Questions on the terminal: writes a prompt and reads one line. The commands decide what is asked, and what an answer means.
//!
//! Once a run was shown, Ctrl-C and Ctrl-Z no longer have their usual effect on this process, so [`TerminalPrompt`] handles
//! them: Ctrl-C and Ctrl-D end the questions, and Ctrl-Z suspends us until the shell continues us. Before that,
//! [`read_first_answer`] leaves the signals as they are: a command that has started nothing is simply ended by Ctrl-C.

use std::{
    io::{self, BufRead, Write, stderr, stdin},
    mem,
};

use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::terminal::{self, Keyboard};

/// What the user typed at a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PromptInput {
    /// A line, without the spaces around it.
    Line(String),
    /// Ctrl-C or Ctrl-D, or the terminal is gone.
    Quit,
}

/// Writes a prompt and reads one line, before anything has started.
pub(crate) fn read_first_answer(prompt_text: &str) -> io::Result<PromptInput> {
    write_prompt(prompt_text)?;
    let mut typed_line = String::new();
    match stdin().lock().read_line(&mut typed_line)? {
        0 => quit_prompt(),
        _ => Ok(PromptInput::Line(typed_line.trim().to_string())),
    }
}

/// Asks a question. Anything but a clear yes means no.
pub(crate) fn ask_yes_no(question: &str) -> io::Result<bool> {
    let mut prompt_output = stderr().lock();
    write!(prompt_output, "{question}? [y/N] ")?;
    prompt_output.flush()?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Asks questions on the terminal after a run was shown.
pub(crate) struct TerminalPrompt {
    runtime: Runtime,
    keyboard: Keyboard,
    signals: PromptSignals,
    /// Bytes of a line that has no end yet.
    typed_bytes: Vec<u8>,
}

impl TerminalPrompt {
    /// Prepares the terminal. `None` if it cannot be read, for instance because we are in the background.
    pub fn open() -> Option<TerminalPrompt> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let signals = {
            let _inside = runtime.enter();
            PromptSignals::new().ok()?
        };
        Some(TerminalPrompt { runtime, keyboard: Keyboard::open_lines()?, signals, typed_bytes: Vec::new() })
    }

    /// Writes a prompt and waits for one line.
    pub fn read_answer(&mut self, prompt_text: &str) -> io::Result<PromptInput> {
        let TerminalPrompt { runtime, keyboard, signals, typed_bytes } = self;
        runtime.block_on(async {
            write_prompt(prompt_text)?;
            loop {
                if let Some(typed_line) = take_line(typed_bytes) {
                    return Ok(PromptInput::Line(typed_line));
                }
                tokio::select! {
                    typed = keyboard.next_keys() => match typed {
                        Some(typed) => typed_bytes.extend(typed),
                        None => return quit_prompt(),
                    },
                    _ = signals.interrupt.recv() => return quit_prompt(),
                    _ = signals.terminate.recv() => return quit_prompt(),
                    _ = signals.hung_up.recv() => return Ok(PromptInput::Quit),
                    _ = signals.stopped.recv() => {
                        // The terminal has to be put back before the shell gets it.
                        keyboard.pause();
                        terminal::suspend_process();
                        keyboard.resume();
                    }
                    _ = signals.continued.recv() => {
                        keyboard.resume();
                        // The shell has written something in between, and the terminal has dropped what was typed.
                        write_prompt(prompt_text)?;
                    }
                }
            }
        })
    }
}

/// Ends the line that the cursor is in, so that the shell's prompt does not follow ours.
fn quit_prompt() -> io::Result<PromptInput> {
    writeln!(stderr())?;
    Ok(PromptInput::Quit)
}

fn write_prompt(prompt_text: &str) -> io::Result<()> {
    let mut error_output = stderr().lock();
    write!(error_output, "{prompt_text} ")?;
    error_output.flush()
}

/// Takes the first complete line.
fn take_line(typed_bytes: &mut Vec<u8>) -> Option<String> {
    let line_end = typed_bytes.iter().position(|typed_byte| *typed_byte == b'\n')?;
    let later_bytes = typed_bytes.split_off(line_end + 1);
    let line_bytes = mem::replace(typed_bytes, later_bytes);
    Some(String::from_utf8_lossy(&line_bytes).trim().to_string())
}

/// Signals that reach us while a question is open.
struct PromptSignals {
    interrupt: Signal,
    terminate: Signal,
    hung_up: Signal,
    stopped: Signal,
    continued: Signal,
}

impl PromptSignals {
    fn new() -> io::Result<PromptSignals> {
        // Tokio has no names for the last two.
        let raw_signal = |signal_number: rustix::process::Signal| signal(SignalKind::from_raw(signal_number.as_raw()));
        Ok(PromptSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            stopped: raw_signal(rustix::process::Signal::TSTP)?,
            continued: raw_signal(rustix::process::Signal::CONT)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_when_it_is_complete() {
        let mut typed_bytes = b"  ye".to_vec();
        assert_eq!(take_line(&mut typed_bytes), None);
        typed_bytes.extend(b"s \nnext");
        assert_eq!(take_line(&mut typed_bytes).as_deref(), Some("yes"));
        assert_eq!(typed_bytes, b"next");
        assert_eq!(take_line(&mut b"\n".to_vec()).as_deref(), Some(""));
    }
}
