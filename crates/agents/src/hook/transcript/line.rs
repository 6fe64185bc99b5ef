//! Classifies one line of a transcript: a part of an answer, a refusal, input of the user, or irrelevant.
//!
//! Most lines are irrelevant, and some are very long. The bytes are therefore searched for marks before anything is
//! parsed as JSON. A mark in quotation marks can only belong to the line itself: inside a quoted text, the quotation
//! marks are escaped.

use std::{borrow::Cow, fmt};

use memchr::memmem::Finder;
use serde::de::{MapAccess, SeqAccess};

use super::super::soft::{Take, give, give_item, mended, read, skip};

/// What a line of a transcript means.
pub enum Said {
    Nothing,
    /// A part of what the model said in the session itself.
    Message {
        id: Option<String>,
        texts: Vec<String>,
        tool: bool,
    },
    /// A stop was refused with this text.
    Refusal(String),
    /// The user gave input.
    Told,
}

/// Whose lines are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    All,
    /// Lines of the user and refusals, not the model's.
    People,
}

/// The format of a client's transcripts.
pub struct TranscriptFormat {
    /// Marks of lines in which the model speaks or uses a tool.
    pub(crate) model: &'static [&'static str],
    /// The mark of lines with the result of a tool.
    pub(crate) tools: &'static str,
    /// Classifies a line that was parsed.
    pub(crate) read: fn(Line<'_>) -> Said,
}

impl fmt::Debug for TranscriptFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TranscriptFormat").field("model", &self.model).finish_non_exhaustive()
    }
}

/// Decides which lines are worth parsing.
pub(super) struct Filter {
    format: &'static TranscriptFormat,
    /// Finds lines in which the model speaks or uses a tool.
    model: Vec<Finder<'static>>,
    /// Finds lines with input for the model.
    people: Finder<'static>,
    /// Finds lines with the result of a tool.
    tools: Finder<'static>,
}

impl Filter {
    pub(super) fn new(format: &'static TranscriptFormat) -> Filter {
        let model = format.model.iter().map(|word| Finder::new(word.as_bytes())).collect();
        Filter { format, model, people: Finder::new("\"user\""), tools: Finder::new(format.tools) }
    }

    /// Classifies a line, if it is worth parsing.
    pub(super) fn said(&self, line: &[u8], about: About) -> Said {
        let has = |finder: &Finder<'_>| finder.find(line).is_some();
        // Results of tools also have the role `user`, and they are the longest lines of all.
        let may_be_told = has(&self.people) && !has(&self.tools);
        if !may_be_told && (about == About::People || !self.model.iter().any(has)) {
            return Said::Nothing;
        }
        let text = String::from_utf8_lossy(line);
        // The repair is rarely needed and only tried if the line is not valid as it is.
        self.read(&text).or_else(|| self.read(&mended(&text)?)).unwrap_or(Said::Nothing)
    }

    /// Parses a line; `None` if it is not JSON, for example half of a line.
    fn read(&self, text: &str) -> Option<Said> {
        let mut line = Line::default();
        read(text, &mut line).ok()?;
        Some((self.format.read)(line))
    }
}

/// The fields of a line that matter for any client.
#[derive(Default)]
pub struct Line<'a> {
    pub(crate) kind: Option<Cow<'a, str>>,
    /// The role, which older files have instead of a type.
    pub(crate) role: Option<Cow<'a, str>>,
    pub(crate) is_sidechain: bool,
    pub(crate) is_meta: bool,
    pub(crate) is_error: bool,
    pub(crate) is_summary: bool,
    pub(crate) message: Message<'a>,
}

#[derive(Default)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) role: Option<Cow<'a, str>>,
    pub(crate) model: Option<Cow<'a, str>>,
    pub(crate) content: Content<'a>,
}

#[derive(Default)]
pub(crate) struct Content<'a> {
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) uses_tool: bool,
    /// Whether the content is the result of a tool.
    pub(crate) is_result: bool,
}

#[derive(Default)]
struct Block<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
}

impl Content<'_> {
    pub(crate) fn owned(&self) -> Vec<String> {
        self.texts.iter().map(ToString::to_string).collect()
    }
}

impl<'de> Take<'de> for Line<'de> {
    fn field<M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        match name {
            "type" => give(map, &mut self.kind),
            "role" => give(map, &mut self.role),
            "isSidechain" => give(map, &mut self.is_sidechain),
            "isMeta" => give(map, &mut self.is_meta),
            "isApiErrorMessage" => give(map, &mut self.is_error),
            "isCompactSummary" => give(map, &mut self.is_summary),
            "message" | "payload" => give(map, &mut self.message),
            _ => skip(map),
        }
    }
}

impl<'de> Take<'de> for Message<'de> {
    fn field<M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        match name {
            "id" => give(map, &mut self.id),
            "type" => give(map, &mut self.kind),
            "role" => give(map, &mut self.role),
            "model" => give(map, &mut self.model),
            "content" => give(map, &mut self.content),
            _ => skip(map),
        }
    }
}

impl<'de> Take<'de> for Content<'de> {
    fn text(&mut self, text: Cow<'de, str>) {
        self.texts.push(text);
    }

    fn item<S: SeqAccess<'de>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        let mut block = Block::default();
        // The item is consumed in any case; only its type decides whether it matters.
        let was_there = give_item(seq, &mut block)?;
        match block.kind.as_deref() {
            Some("text" | "output_text" | "input_text") => self.texts.extend(block.text),
            Some("tool_use") => self.uses_tool = true,
            Some("tool_result") => self.is_result = true,
            _ => (),
        }
        Ok(was_there)
    }
}

impl<'de> Take<'de> for Block<'de> {
    fn field<M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        match name {
            "type" => give(map, &mut self.kind),
            "text" => give(map, &mut self.text),
            _ => skip(map),
        }
    }
}
