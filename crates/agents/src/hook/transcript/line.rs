//! One line of a session: a part of an answer, a refusal, what a person said, or nothing that matters here.
//!
//! Most lines are none of these, and some are very long; so the bytes are looked through before anything is read as JSON. A
//! word in its quotation marks is a word of the line itself: in a quoted text the marks are escaped.

use std::borrow::Cow;

use memchr::memmem::Finder;
use serde::de::{MapAccess, SeqAccess};

use super::super::HookClient;
use super::super::soft::{Take, give, give_item, mended, read, skip};

pub(super) enum Said {
    Nothing,
    /// A part of what the model said, in the session itself.
    Message {
        id: Option<String>,
        texts: Vec<String>,
        tool: bool,
    },
    /// A stop was refused with these words.
    Refusal(String),
    /// A person said something.
    Told,
}

/// Whose words are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    All,
    /// A person's and those of refusals, not the model's.
    People,
}

/// What Claude Code puts before the reason of a refusal.
const FEEDBACK: &str = "Stop hook feedback";
/// And Codex.
const HOOK_PROMPT: &str = "<hook_prompt";

/// Knows which lines are worth reading.
pub(super) struct Filter {
    client: Known,
    /// What lines have in which the model speaks or uses a tool,
    model: Vec<Finder<'static>>,
    /// in which it is told something,
    people: Finder<'static>,
    /// and in which it is told by a tool.
    tools: Finder<'static>,
}

/// Whose lines are understood.
#[derive(Clone, Copy)]
enum Known {
    Claude,
    Codex,
}

impl Filter {
    pub(super) fn of(client: HookClient) -> Option<Filter> {
        let (client, model, tools) = match client {
            HookClient::ClaudeCode => (Known::Claude, &["\"assistant\""][..], "\"type\":\"tool_result\""),
            HookClient::Codex => (Known::Codex, &["\"assistant\"", "_call\""][..], "_call_output\""),
            HookClient::Copilot | HookClient::Gemini => return None,
        };
        let model = model.iter().map(|word| Finder::new(word.as_bytes())).collect();
        Some(Filter { client, model, people: Finder::new("\"user\""), tools: Finder::new(tools) })
    }

    pub(super) fn said(&self, line: &[u8], about: About) -> Said {
        let has = |finder: &Finder<'_>| finder.find(line).is_some();
        let may_be_told = has(&self.people) && !has(&self.tools);
        if !may_be_told && (about == About::People || !self.model.iter().any(has)) {
            return Said::Nothing;
        }
        let text = String::from_utf8_lossy(line);
        self.read(&text).or_else(|| self.read(&mended(&text)?)).unwrap_or(Said::Nothing)
    }

    /// None: it is not JSON, such as the half of a line.
    fn read(&self, text: &str) -> Option<Said> {
        let mut line = Line::default();
        read(text, &mut line).ok()?;
        Some(match self.client {
            Known::Claude => line.of_claude(),
            Known::Codex => line.of_codex(),
        })
    }
}

#[derive(Default)]
struct Line<'a> {
    kind: Option<Cow<'a, str>>,
    /// As older files have it, instead of a kind.
    role: Option<Cow<'a, str>>,
    is_sidechain: bool,
    is_meta: bool,
    is_error: bool,
    is_summary: bool,
    message: Message<'a>,
}

#[derive(Default)]
struct Message<'a> {
    id: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    content: Content<'a>,
}

#[derive(Default)]
struct Content<'a> {
    texts: Vec<Cow<'a, str>>,
    uses_tool: bool,
    /// What a tool answered.
    is_result: bool,
}

#[derive(Default)]
struct Block<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
}

impl Line<'_> {
    /// One line for each part of a message, all with its id. Sub-agents, and what the client says in the model's place when
    /// the model cannot be reached, are not the session's own words.
    fn of_claude(self) -> Said {
        let is_made_up = self.is_error || self.message.model.as_deref() == Some("<synthetic>");
        if self.is_sidechain {
            return Said::Nothing;
        }
        match self.kind.or(self.role).as_deref() {
            Some("assistant") if !is_made_up => {
                let id = self.message.id.map(Cow::into_owned);
                Said::Message {
                    id,
                    texts: self.message.content.owned(),
                    tool: self.message.content.uses_tool,
                }
            }
            Some("user") if !self.message.content.is_result => {
                let first = self.message.content.texts.first().filter(|_| self.is_meta);
                match first.filter(|text| text.starts_with(FEEDBACK)) {
                    Some(text) => Said::Refusal(text.to_string()),
                    None if self.is_meta || self.is_summary => Said::Nothing,
                    None => Said::Told,
                }
            }
            _ => Said::Nothing,
        }
    }

    /// One line for each item: a message is whole, and a call of a tool stands for itself.
    fn of_codex(self) -> Said {
        if self.kind.as_deref() != Some("response_item") {
            return Said::Nothing;
        }
        let Message { kind, role, content, .. } = self.message;
        match (kind.as_deref(), role.as_deref()) {
            (Some("message"), Some("assistant")) => {
                Said::Message { id: None, texts: content.owned(), tool: false }
            }
            (Some("message"), Some("user")) => {
                let first = content.texts.first().map(Cow::as_ref).unwrap_or_default();
                match first {
                    refusal if refusal.starts_with(HOOK_PROMPT) => Said::Refusal(refusal.to_owned()),
                    // What the client tells about the surroundings.
                    told if told.starts_with('<') => Said::Nothing,
                    _ => Said::Told,
                }
            }
            (Some(call), _) if call.ends_with("_call") => {
                Said::Message { id: None, texts: Vec::new(), tool: true }
            }
            _ => Said::Nothing,
        }
    }
}

impl Content<'_> {
    fn owned(&self) -> Vec<String> {
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
