//! Classifies one line of a transcript: a part of an answer, a refusal, input of the user, or irrelevant.
//!
//! Most lines are irrelevant, and some are very long. The bytes are therefore searched for marks before anything is
//! parsed as JSON. A mark in quotation marks can only belong to the line itself: inside a quoted text, the quotation
//! marks are escaped.

use std::{borrow::Cow, fmt};

use memchr::memmem::Finder;
use serde::de::{MapAccess, SeqAccess};

use super::super::json_sink::{
    JsonSink, read_item_into, read_json_into, read_value_into, replace_lone_surrogates, skip_value,
};

/// What a line of a transcript means.
pub enum LineMeaning {
    Irrelevant,
    /// A part of what the model said in the session itself.
    Message {
        message_id: Option<String>,
        texts: Vec<String>,
        uses_tool: bool,
    },
    /// A stop was refused with this text.
    Refusal(String),
    /// The user gave input.
    UserInput,
}

/// Whose lines are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SpeakerFilter {
    Everyone,
    /// Lines of the user and refusals, not the model's.
    UsersOnly,
}

/// The format of a client's transcripts.
pub struct TranscriptFormat {
    /// Marks of lines in which the model speaks or uses a tool.
    pub(crate) model_marks: &'static [&'static str],
    /// The mark of lines with the result of a tool.
    pub(crate) tool_result_mark: &'static str,
    /// Classifies a line that was parsed.
    pub(crate) classify_line: fn(TranscriptLine<'_>) -> LineMeaning,
}

impl fmt::Debug for TranscriptFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TranscriptFormat").field("model", &self.model_marks).finish_non_exhaustive()
    }
}

/// Decides which lines are worth parsing.
pub(super) struct LineFilter {
    format: &'static TranscriptFormat,
    /// Finds lines in which the model speaks or uses a tool.
    model_finders: Vec<Finder<'static>>,
    /// Finds lines with input for the model.
    user_finder: Finder<'static>,
    /// Finds lines with the result of a tool.
    tool_finder: Finder<'static>,
}

impl LineFilter {
    pub(super) fn new(transcript_format: &'static TranscriptFormat) -> LineFilter {
        let model_finders =
            transcript_format.model_marks.iter().map(|model_mark| Finder::new(model_mark.as_bytes())).collect();
        LineFilter {
            format: transcript_format,
            model_finders,
            user_finder: Finder::new("\"user\""),
            tool_finder: Finder::new(transcript_format.tool_result_mark),
        }
    }

    /// Classifies a line, if it is worth parsing.
    pub(super) fn read_line(&self, raw_line: &[u8], speaker_filter: SpeakerFilter) -> LineMeaning {
        let contains = |finder: &Finder<'_>| finder.find(raw_line).is_some();
        // Results of tools also have the role `user`, and they are the longest lines of all.
        let may_be_input = contains(&self.user_finder) && !contains(&self.tool_finder);
        if !may_be_input && (speaker_filter == SpeakerFilter::UsersOnly || !self.model_finders.iter().any(contains)) {
            return LineMeaning::Irrelevant;
        }
        let line_text = String::from_utf8_lossy(raw_line);
        // The repair is rarely needed and only tried if the line is not valid as it is.
        self.parse_line(&line_text)
            .or_else(|| self.parse_line(&replace_lone_surrogates(&line_text)?))
            .unwrap_or(LineMeaning::Irrelevant)
    }

    /// Parses a line; `None` if it is not JSON, for example half of a line.
    fn parse_line(&self, line_text: &str) -> Option<LineMeaning> {
        let mut transcript_line = TranscriptLine::default();
        read_json_into(line_text, &mut transcript_line).ok()?;
        Some((self.format.classify_line)(transcript_line))
    }
}

/// The fields of a line that matter for any client.
#[derive(Default)]
pub struct TranscriptLine<'a> {
    pub(crate) line_type: Option<Cow<'a, str>>,
    /// The role, which counts where a line has no type.
    pub(crate) role: Option<Cow<'a, str>>,
    pub(crate) is_sidechain: bool,
    pub(crate) is_meta: bool,
    pub(crate) is_api_error: bool,
    pub(crate) is_summary: bool,
    pub(crate) message: TranscriptMessage<'a>,
}

#[derive(Default)]
pub(crate) struct TranscriptMessage<'a> {
    pub(crate) message_id: Option<Cow<'a, str>>,
    pub(crate) message_type: Option<Cow<'a, str>>,
    pub(crate) role: Option<Cow<'a, str>>,
    pub(crate) model_name: Option<Cow<'a, str>>,
    pub(crate) content: MessageContent<'a>,
}

#[derive(Default)]
pub(crate) struct MessageContent<'a> {
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) uses_tool: bool,
    /// Whether the content is the result of a tool.
    pub(crate) is_tool_result: bool,
}

#[derive(Default)]
struct ContentBlock<'a> {
    block_type: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
}

impl MessageContent<'_> {
    pub(crate) fn owned_texts(&self) -> Vec<String> {
        self.texts.iter().map(ToString::to_string).collect()
    }
}

impl<'de> JsonSink<'de> for TranscriptLine<'de> {
    fn accept_field<M: MapAccess<'de>>(&mut self, field_name: &str, map_access: &mut M) -> Result<(), M::Error> {
        match field_name {
            "type" => read_value_into(map_access, &mut self.line_type),
            "role" => read_value_into(map_access, &mut self.role),
            "isSidechain" => read_value_into(map_access, &mut self.is_sidechain),
            "isMeta" => read_value_into(map_access, &mut self.is_meta),
            "isApiErrorMessage" => read_value_into(map_access, &mut self.is_api_error),
            "isCompactSummary" => read_value_into(map_access, &mut self.is_summary),
            "message" | "payload" => read_value_into(map_access, &mut self.message),
            _ => skip_value(map_access),
        }
    }
}

impl<'de> JsonSink<'de> for TranscriptMessage<'de> {
    fn accept_field<M: MapAccess<'de>>(&mut self, field_name: &str, map_access: &mut M) -> Result<(), M::Error> {
        match field_name {
            "id" => read_value_into(map_access, &mut self.message_id),
            "type" => read_value_into(map_access, &mut self.message_type),
            "role" => read_value_into(map_access, &mut self.role),
            "model" => read_value_into(map_access, &mut self.model_name),
            "content" => read_value_into(map_access, &mut self.content),
            _ => skip_value(map_access),
        }
    }
}

impl<'de> JsonSink<'de> for MessageContent<'de> {
    fn accept_text(&mut self, content_text: Cow<'de, str>) {
        self.texts.push(content_text);
    }

    fn accept_item<S: SeqAccess<'de>>(&mut self, sequence_access: &mut S) -> Result<bool, S::Error> {
        let mut content_block = ContentBlock::default();
        // The item is consumed in any case; only its type decides whether it matters.
        let has_item = read_item_into(sequence_access, &mut content_block)?;
        match content_block.block_type.as_deref() {
            Some("text" | "output_text" | "input_text") => self.texts.extend(content_block.text),
            Some("tool_use") => self.uses_tool = true,
            Some("tool_result") => self.is_tool_result = true,
            _ => (),
        }
        Ok(has_item)
    }
}

impl<'de> JsonSink<'de> for ContentBlock<'de> {
    fn accept_field<M: MapAccess<'de>>(&mut self, field_name: &str, map_access: &mut M) -> Result<(), M::Error> {
        match field_name {
            "type" => read_value_into(map_access, &mut self.block_type),
            "text" => read_value_into(map_access, &mut self.text),
            _ => skip_value(map_access),
        }
    }
}
