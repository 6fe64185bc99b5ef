//! Reads transcripts from their end: what was said last, and whether anything was done since a refusal.
//!
//! A transcript of a gigabyte costs as much as one of a few pages: lines are read backwards, and reading ends where
//! the model last got input. Clients write while they call the hook, so that the last lines may be missing or
//! incomplete: Claude Code's file was behind at a third of the stops that were examined. What a client passes to the
//! hook is therefore more reliable than what is read here. The caller opens the files, and what an answer means is
//! decided in `core`. The transcripts of Gemini and Copilot are not understood.
//!
//! [`backward_lines`] finds the lines, [`line`] classifies one.

mod backwards;
pub(crate) mod line;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek};

use super::HookClient;
use backwards::{Backwards, Sizes};
use line::{About, Filter, Said};

/// No part of a model's answer is longer than the maximum; results of tools are, and they are not needed.
const SIZES: Sizes = Sizes { chunk: 64 << 10, longest: 1 << 20 };

/// The end of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// What the model said last; empty if it only thought and called tools. `None` if it said nothing since its last
    /// input from the user or a refusal, or nothing within the part that was read.
    pub answer: Option<String>,
    /// Whether the session used a tool since its last stop was refused. `None` if no refusal is within the part that
    /// was read, or if the user gave new input since.
    pub tools_since_refusal: Option<bool>,
    /// The refusal as the client wrote it down. If it is not the last one that was given, the file is behind, and
    /// `tools_since_refusal` is about an earlier one.
    pub refusal: Option<String>,
}

/// Reads at most this many bytes from the end. A line that begins before them is ignored.
pub fn read_back(client: HookClient, file: &mut (impl Read + Seek), at_most: u64) -> io::Result<Tail> {
    read_by(client, file, &Extent { at_most, sizes: SIZES, until: Until::Told })
}

/// Reads only [`TranscriptTail::answer`]. This needs less, because the hours of work before it are not looked at.
pub fn last_answer(
    client: HookClient,
    file: &mut (impl Read + Seek),
    at_most: u64,
) -> io::Result<Option<String>> {
    read_by(client, file, &Extent { at_most, sizes: SIZES, until: Until::Answer }).map(|tail| tail.answer)
}

/// How much of a transcript is read.
struct Extent {
    /// The number of bytes from the end.
    at_most: u64,
    sizes: Sizes,
    until: Until,
}

/// How far back a transcript is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Up to the last answer.
    Answer,
    /// Up to the input that the model got before it.
    Told,
}

fn read_by(client: HookClient, file: &mut (impl Read + Seek), extent: &Extent) -> io::Result<Tail> {
    let Some(format) = client.hooks.transcript() else { return Ok(Tail::default()) };
    let filter = Filter::new(format);
    let mut lines = Backwards::new(file, extent.at_most, extent.sizes)?;
    let mut end = End::default();
    while let Some(line) = lines.previous()? {
        // Once the answer is complete and a tool was used, only input lines can still change the result. Skipping the
        // others saves most of the parsing.
        let about = if end.is_known() { About::People } else { About::All };
        match filter.said(line, about) {
            Said::Nothing => (),
            Said::Message { id, texts, tool } => end.message(id, texts, tool),
            Said::Refusal(text) => {
                // A refusal ends the search: what happened before it is about an earlier stop.
                let (tools, refusal) = (Some(end.tool), Some(text));
                return Ok(Tail { tools_since_refusal: tools, refusal, ..end.tail() });
            }
            // The user's own input starts a new turn, in which no refusal counts any more.
            Said::Told => break,
        }
        if extent.until == Until::Answer && end.is_whole() {
            break;
        }
    }
    Ok(end.tail())
}

/// What was found so far, on the way back.
#[derive(Default)]
struct End {
    last: Option<Last>,
    /// Whether a tool was used anywhere.
    tool: bool,
}

/// The last message, which has one line for each of its parts.
struct Last {
    id: Option<String>,
    /// The texts from the last to the first.
    texts: Vec<String>,
    is_whole: bool,
}

impl End {
    /// Whether nothing that the model said earlier can change the result.
    fn is_known(&self) -> bool {
        self.tool && self.is_whole()
    }

    /// Whether an earlier message was reached, so that no part of the last one is missing.
    fn is_whole(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.is_whole)
    }

    fn message(&mut self, id: Option<String>, texts: Vec<String>, tool: bool) {
        self.tool |= tool;
        // Everything arrives backwards, the parts of a message as well as the lines.
        let texts = texts.into_iter().rev();
        match &mut self.last {
            None => self.last = Some(Last { id, texts: texts.collect(), is_whole: false }),
            // Earlier messages are only needed for their tool calls, which were counted above.
            Some(last) if last.is_whole => (),
            // Lines without an id are messages of their own.
            Some(last) if last.id.is_some() && last.id == id => last.texts.extend(texts),
            Some(last) => last.is_whole = true,
        }
    }

    fn tail(self) -> Tail {
        let answer = self.last.map(|last| last.texts.into_iter().rev().collect::<Vec<_>>().join("\n"));
        Tail { answer, ..Tail::default() }
    }
}
