//! Reads transcripts from their end: what was said last, and whether anything was done since a refusal.
//!
//! A transcript of a gigabyte costs as much as one of a few pages: lines are read backwards, and reading ends where
//! the model last got input. Clients write while they call the hook, so the last lines may be missing or incomplete.
//! What a client passes to the hook is therefore more reliable than what is read here. The caller opens the files, and
//! what an answer means is decided in `workflows`. The transcripts of Gemini and Copilot are not understood.
//!
//! [`backward_lines`] finds the lines, [`line`] classifies one.

mod backward_lines;
pub(crate) mod line;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek};

use super::HookClient;
use backward_lines::{BackwardLines, ReadSizes};
use line::{LineFilter, LineMeaning, SpeakerFilter};

/// No part of a model's answer is longer than the maximum; results of tools are, and they are not needed.
const READ_SIZES: ReadSizes = ReadSizes { chunk_bytes: 64 << 10, max_line_bytes: 1 << 20 };

/// The end of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptTail {
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
pub fn read_tail(
    hook_client: HookClient,
    transcript_file: &mut (impl Read + Seek),
    max_bytes: u64,
) -> io::Result<TranscriptTail> {
    read_extent(
        hook_client,
        transcript_file,
        &ReadExtent { max_bytes, read_sizes: READ_SIZES, read_until: ReadUntil::LastInput },
    )
}

/// Reads only [`TranscriptTail::answer`]. This needs less, because the hours of work before it are not looked at.
pub fn read_last_answer(
    hook_client: HookClient,
    transcript_file: &mut (impl Read + Seek),
    max_bytes: u64,
) -> io::Result<Option<String>> {
    read_extent(
        hook_client,
        transcript_file,
        &ReadExtent { max_bytes, read_sizes: READ_SIZES, read_until: ReadUntil::LastAnswer },
    )
    .map(|transcript_tail| transcript_tail.answer)
}

/// How much of a transcript is read.
struct ReadExtent {
    /// The number of bytes from the end.
    max_bytes: u64,
    read_sizes: ReadSizes,
    read_until: ReadUntil,
}

/// How far back a transcript is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadUntil {
    /// Up to the last answer.
    LastAnswer,
    /// Up to the input that the model got before it.
    LastInput,
}

fn read_extent(
    hook_client: HookClient,
    transcript_file: &mut (impl Read + Seek),
    read_limits: &ReadExtent,
) -> io::Result<TranscriptTail> {
    let Some(transcript_format) = hook_client.hooks.transcript_format() else {
        return Ok(TranscriptTail::default());
    };
    let line_filter = LineFilter::new(transcript_format);
    let mut backward_lines = BackwardLines::new(transcript_file, read_limits.max_bytes, read_limits.read_sizes)?;
    let mut tail_state = TailState::default();
    while let Some(raw_line) = backward_lines.previous_line()? {
        // Once the answer is complete and a tool was used, only input lines can still change the result. Skipping the
        // others saves most of the parsing.
        let speaker_filter = if tail_state.is_settled() { SpeakerFilter::UsersOnly } else { SpeakerFilter::Everyone };
        match line_filter.read_line(raw_line, speaker_filter) {
            LineMeaning::Irrelevant => (),
            LineMeaning::Message { message_id, texts, uses_tool } => {
                tail_state.add_message(message_id, texts, uses_tool)
            }
            LineMeaning::Refusal(refusal_text) => {
                // A refusal ends the search: what happened before it is about an earlier stop.
                let (has_used_tools, refusal) = (Some(tail_state.used_tool), Some(refusal_text));
                return Ok(TranscriptTail { tools_since_refusal: has_used_tools, refusal, ..tail_state.into_tail() });
            }
            // The user's own input starts a new turn, in which no refusal counts any more.
            LineMeaning::UserInput => break,
        }
        if read_limits.read_until == ReadUntil::LastAnswer && tail_state.has_complete_message() {
            break;
        }
    }
    Ok(tail_state.into_tail())
}

/// What was found so far, on the way back.
#[derive(Default)]
struct TailState {
    last_message: Option<LastMessage>,
    /// Whether a tool was used in what was read so far.
    used_tool: bool,
}

/// The last message, which has one line for each of its parts.
struct LastMessage {
    message_id: Option<String>,
    /// The texts from the last to the first.
    texts: Vec<String>,
    is_complete: bool,
}

impl TailState {
    /// Whether nothing that the model said earlier can change the result.
    fn is_settled(&self) -> bool {
        self.used_tool && self.has_complete_message()
    }

    /// Whether an earlier message was reached, so that no part of the last one is missing.
    fn has_complete_message(&self) -> bool {
        self.last_message.as_ref().is_some_and(|message| message.is_complete)
    }

    fn add_message(&mut self, message_id: Option<String>, message_texts: Vec<String>, uses_tool: bool) {
        self.used_tool |= uses_tool;
        // Everything arrives backwards, the parts of a message as well as the lines.
        let message_texts = message_texts.into_iter().rev();
        match &mut self.last_message {
            None => {
                self.last_message = Some(LastMessage { message_id, texts: message_texts.collect(), is_complete: false })
            }
            // Earlier messages are only needed for their tool calls, which were counted above.
            Some(known_message) if known_message.is_complete => (),
            // Lines without an id are messages of their own.
            Some(known_message) if known_message.message_id.is_some() && known_message.message_id == message_id => {
                known_message.texts.extend(message_texts)
            }
            Some(known_message) => known_message.is_complete = true,
        }
    }

    fn into_tail(self) -> TranscriptTail {
        let answer_text =
            self.last_message.map(|message| message.texts.into_iter().rev().collect::<Vec<_>>().join("\n"));
        TranscriptTail { answer: answer_text, ..TranscriptTail::default() }
    }
}
