//! Sessions as clients write them down, read from the end: what was said last, and whether anything was done since a refusal.
//!
//! A session of a gigabyte costs the same as one of a few pages: lines are read backwards, and reading ends where the model
//! was last told something. Clients write while they ask, so that the last lines may be missing or half there: Claude Code's
//! file was behind at a third of the stops that were looked at. What a client says itself is worth more than what is read
//! here. Files are opened by the caller, and what an answer means is `core`'s business. What Gemini and Copilot write is not
//! understood.
//!
//! [`backwards`] finds the lines, [`line`] understands one.

mod backwards;
pub(crate) mod line;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek};

use super::HookClient;
use backwards::{Backwards, Sizes};
use line::{About, Filter, Said};

/// No model says so much at once that a part of its answer were longer than this; what tools answer is.
const SIZES: Sizes = Sizes { chunk: 64 << 10, longest: 1 << 20 };

/// The end of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// What the model said last; empty if that were only thoughts and calls of tools. None: it said nothing since it was last
    /// told something by a person or a refusal, or nothing of it stands within what was read.
    pub answer: Option<String>,
    /// Whether the session used a tool since its last stop was refused. None: no refusal stands within what was read, or a
    /// person has told it something else since.
    pub tools_since_refusal: Option<bool>,
    /// That refusal as the client wrote it down. If it is not the last one that was given, the file is behind, and
    /// `tools_since_refusal` is about an earlier one.
    pub refusal: Option<String>,
}

/// Reads at most so many bytes from the end. A line that begins before them is not there.
pub fn read_back(client: HookClient, file: &mut (impl Read + Seek), at_most: u64) -> io::Result<Tail> {
    read_by(client, file, &Extent { at_most, sizes: SIZES, until: Until::Told })
}

/// Only [`Tail::answer`], for which less has to be read: what a session did in the hours before is not looked at.
pub fn last_answer(
    client: HookClient,
    file: &mut (impl Read + Seek),
    at_most: u64,
) -> io::Result<Option<String>> {
    read_by(client, file, &Extent { at_most, sizes: SIZES, until: Until::Answer }).map(|tail| tail.answer)
}

/// How much is read.
struct Extent {
    /// So many bytes from the end.
    at_most: u64,
    sizes: Sizes,
    until: Until,
}

/// How far back is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The last answer.
    Answer,
    /// What the model was told before it.
    Told,
}

fn read_by(client: HookClient, file: &mut (impl Read + Seek), extent: &Extent) -> io::Result<Tail> {
    let Some(format) = client.hooks.transcript() else { return Ok(Tail::default()) };
    let filter = Filter::new(format);
    let mut lines = Backwards::new(file, extent.at_most, extent.sizes)?;
    let mut end = End::default();
    while let Some(line) = lines.previous()? {
        let about = if end.is_known() { About::People } else { About::All };
        match filter.said(line, about) {
            Said::Nothing => (),
            Said::Message { id, texts, tool } => end.message(id, texts, tool),
            Said::Refusal(text) => {
                let (tools, refusal) = (Some(end.tool), Some(text));
                return Ok(Tail { tools_since_refusal: tools, refusal, ..end.tail() });
            }
            Said::Told => break,
        }
        if extent.until == Until::Answer && end.is_whole() {
            break;
        }
    }
    Ok(end.tail())
}

/// What was met so far, on the way back.
#[derive(Default)]
struct End {
    last: Option<Last>,
    /// A tool was used somewhere.
    tool: bool,
}

/// The last message: one line for each of its parts.
struct Last {
    id: Option<String>,
    /// From the last to the first.
    texts: Vec<String>,
    is_whole: bool,
}

impl End {
    /// Nothing that the model said earlier changes what is known of it.
    fn is_known(&self) -> bool {
        self.tool && self.is_whole()
    }

    /// An earlier message was met, so that nothing of the last one is missing.
    fn is_whole(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.is_whole)
    }

    fn message(&mut self, id: Option<String>, texts: Vec<String>, tool: bool) {
        self.tool |= tool;
        let texts = texts.into_iter().rev();
        match &mut self.last {
            None => self.last = Some(Last { id, texts: texts.collect(), is_whole: false }),
            Some(last) if last.is_whole => (),
            Some(last) if last.id.is_some() && last.id == id => last.texts.extend(texts),
            Some(last) => last.is_whole = true,
        }
    }

    fn tail(self) -> Tail {
        let answer = self.last.map(|last| last.texts.into_iter().rev().collect::<Vec<_>>().join("\n"));
        Tail { answer, ..Tail::default() }
    }
}
