//! The kinds of values that settings have, and the errors for other values.
//!
//! Only the value is checked here; [`super::table`] says which setting has which kind.

use std::fmt;

use serde_json::{Value as Json, json};

use tribunal_agents::clients;
use tribunal_bmad::yaml::{self, Form, Node};

use super::nearest;
use crate::context::quoted;

/// The seconds of a day: no task and no run is meant to take longer.
const DAY: u64 = 24 * 60 * 60;

/// What the value of a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Whole {
        min: u64,
        max: u64,
    },
    /// Whole seconds, at least this many and at most a day.
    Seconds {
        min: u64,
    },
    /// Whole minutes, at most a day; stored as seconds.
    Minutes,
    /// 0 to 100.
    Percent,
    /// 0.0 to 1.0.
    Fraction,
    /// An amount of money, more than 0.
    Cost,
    Words(&'static [&'static str]),
    /// 0 to 4, or `auto-suggest`, which leaves the choice to Tribunal.
    TierOrSuggested,
    Flag,
    Text,
    /// A name, or `false` for none.
    TextOrNo,
    List,
    /// Command lines: a text for the shell, or a list of words that are passed on without one.
    Commands,
    ListOf(&'static [&'static str]),
    /// A single name for a setting that is a list.
    One,
    /// A directory, relative to the project's root. That it is inside the project is checked when it is used.
    Folder,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    Flag(bool),
    Text(String),
    List(Vec<String>),
}

/// A value that is not allowed: what was written, and a hint about the likely mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slip {
    pub stands: String,
    pub hint: Option<String>,
}

impl Kind {
    /// Reads a value from YAML. `None` if it leaves the choice to Tribunal.
    pub(super) fn read(self, node: &Node) -> Result<Option<Value>, Slip> {
        match (&node.form, self) {
            (Form::Scalar(text), _) => self.read_text(text),
            (Form::List(items), Kind::List | Kind::Commands | Kind::ListOf(_)) => {
                self.read_list(items).map(Some)
            }
            // A list for a single value is not reduced to its first item: the rest would be lost silently.
            (Form::List(_), _) => Err(slip("a list", None)),
            (Form::Map(_), _) => Err(slip("keys and values of its own", None)),
            (Form::Nothing, _) => Err(slip("nothing", Some("write a value, or remove the line".into()))),
        }
    }

    /// Reads the value of a variable or a flag. Text is taken literally; lists are written `[a, b]`.
    pub(super) fn read_given(self, text: &str) -> Result<Option<Value>, Slip> {
        let scalar = |text: &str| Node::of(Form::Scalar(text.to_string()));
        let node = match self {
            Kind::List | Kind::Commands | Kind::ListOf(_) if text.trim_start().starts_with('[') => {
                // Broken brackets are kept as text, so that the error quotes what was typed.
                yaml::parse(text).unwrap_or_else(|_| scalar(text))
            }
            // One item needs no brackets here.
            Kind::List | Kind::Commands | Kind::ListOf(_) => Node::of(Form::List(vec![scalar(text)])),
            _ => scalar(text),
        };
        self.read(&node)
    }

    fn read_text(self, text: &str) -> Result<Option<Value>, Slip> {
        let value = match self {
            Kind::TierOrSuggested if text == "auto-suggest" => return Ok(None),
            Kind::Whole { .. } | Kind::Seconds { .. } | Kind::Percent | Kind::TierOrSuggested => {
                whole(text).filter(|number| self.range().contains(number)).map(Value::Whole)
            }
            Kind::Minutes => whole(text)
                .filter(|number| self.range().contains(number))
                .map(|minutes| Value::Whole(minutes * 60)),
            Kind::Fraction => real(text).filter(|number| (0.0..=1.0).contains(number)).map(Value::Real),
            Kind::Cost => real(text).filter(|number| *number > 0.0 && *number <= 1e6).map(Value::Real),
            Kind::Words(words) => word(text, words).map(Value::Text),
            Kind::Flag => flag(text).map(Value::Flag),
            // `no` and `off` count as false as well, so an agent with such a name cannot be chosen here.
            Kind::TextOrNo if flag(text) == Some(false) => Some(Value::Flag(false)),
            Kind::Text | Kind::TextOrNo | Kind::Folder => some_text(text).map(Value::Text),
            Kind::One => some_text(text).map(|name| Value::List(vec![name])),
            Kind::List | Kind::Commands | Kind::ListOf(_) => None,
        };
        value.map(Some).ok_or_else(|| slip(&format!("`{text}`"), super::hints::hint(self, text)))
    }

    fn read_list(self, items: &[Node]) -> Result<Value, Slip> {
        let mut list = Vec::new();
        for item in items {
            let text = match (&item.form, self) {
                (Form::Scalar(text), _) => text,
                // A list of words becomes one line with quotes, because checks are stored as lines.
                (Form::List(words), Kind::Commands) => &command_line(words)?,
                _ => return Err(slip("a list with something in it that is no text", None)),
            };
            let known = match self {
                Kind::ListOf(words) => word(text, words),
                _ => some_text(text),
            };
            list.push(known.ok_or_else(|| slip(&format!("`{text}`"), super::hints::hint(self, text)))?);
        }
        Ok(Value::List(list))
    }

    pub(super) fn range(self) -> std::ops::RangeInclusive<u64> {
        match self {
            Kind::Whole { min, max } => min..=max,
            Kind::Seconds { min } => min..=DAY,
            Kind::Minutes => 1..=DAY / 60,
            Kind::TierOrSuggested => 0..=4,
            _ => 0..=100,
        }
    }

    /// Describes the allowed values for users.
    pub fn allowed(self) -> String {
        let (min, max) = (self.range().start().to_string(), self.range().end().to_string());
        match self {
            Kind::Whole { .. } => format!("a whole number, {min} to {max}"),
            Kind::Seconds { .. } => format!("seconds, {min} to {max}"),
            Kind::Minutes => format!("minutes, {min} to {max}"),
            Kind::Percent => "a percentage, 0 to 100".into(),
            Kind::Fraction => "a fraction, 0.0 to 1.0".into(),
            Kind::Cost => "an amount of money, more than 0".into(),
            Kind::Words(words) => words.join(" | "),
            Kind::TierOrSuggested => "a tier, 0 to 4, or auto-suggest".into(),
            Kind::Flag => "true | false".into(),
            Kind::Text => "a text".into(),
            Kind::TextOrNo => "a name, or false".into(),
            Kind::List => "a list, [a, b]".into(),
            Kind::Commands => "commands, [make test, [cargo, test]]".into(),
            Kind::ListOf(words) => format!("a list of {}", words.join(" | ")),
            Kind::One => "a name".into(),
            Kind::Folder => "a folder in the project".into(),
        }
    }

    /// Describes the allowed values for editors.
    pub fn schema(self) -> Json {
        let (min, max) = (*self.range().start(), *self.range().end());
        match self {
            Kind::Whole { .. } | Kind::Seconds { .. } | Kind::Minutes | Kind::Percent => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Kind::TierOrSuggested => json!({ "enum": ["auto-suggest", 0, 1, 2, 3, 4] }),
            Kind::Fraction => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            Kind::Cost => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1e6 }),
            Kind::Words(words) => json!({ "enum": words }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Text | Kind::One | Kind::Folder => json!({ "type": "string" }),
            Kind::TextOrNo => json!({ "anyOf": [{ "type": "string" }, { "const": false }] }),
            Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::Commands => {
                let words = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
                json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, words] } })
            }
            Kind::ListOf(words) => json!({ "type": "array", "items": { "enum": words } }),
        }
    }
}

/// Joins words to a command line that a shell splits into exactly these words.
fn command_line(words: &[Node]) -> Result<String, Slip> {
    let word = |node: &Node| match &node.form {
        Form::Scalar(text) => Ok(quoted(text)),
        _ => Err(slip("a command with something in it that is no text", None)),
    };
    match words {
        [] => Err(slip("an empty command", None)),
        words => Ok(words.iter().map(word).collect::<Result<Vec<_>, _>>()?.join(" ")),
    }
}

/// The error for a value.
fn slip(stands: &str, hint: Option<String>) -> Slip {
    Slip { stands: stands.to_string(), hint }
}

pub(super) fn whole(text: &str) -> Option<u64> {
    // Underscores may group digits, as in YAML 1.1 and in Rust.
    text.replace('_', "").parse().ok()
}

pub(super) fn real(text: &str) -> Option<f64> {
    // YAML knows `.inf` and `.nan`, which no setting accepts.
    text.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite())
}

fn flag(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Matches a word of a list. Common synonyms are replaced by the word itself.
fn word(text: &str, words: &[&str]) -> Option<String> {
    let text = match text {
        "quiet" => "silent",
        text => clients::canonical(text),
    };
    words.iter().find(|known| **known == text).map(|known| known.to_string())
}

fn some_text(text: &str) -> Option<String> {
    // A null byte cannot be passed to a program.
    (!text.trim().is_empty() && !text.contains('\0')).then(|| text.to_string())
}

pub(super) fn nearest_word(text: &str, words: &[&'static str]) -> Option<&'static str> {
    nearest(text, words)
}

impl Value {
    pub fn json(&self) -> Json {
        match self {
            Value::Whole(number) => json!(number),
            Value::Real(number) => json!(number),
            Value::Flag(flag) => json!(flag),
            Value::Text(text) => json!(text),
            Value::List(list) => json!(list),
        }
    }
}

/// A value in the unit of its kind, since minutes are stored as seconds.
pub(super) fn in_its_unit(kind: Kind, value: &Value) -> Json {
    match (kind, value) {
        (Kind::Minutes, Value::Whole(seconds)) if seconds % 60 == 0 => json!(seconds / 60),
        // An alias in seconds may set a fraction of a minute.
        (Kind::Minutes, Value::Whole(seconds)) => json!(*seconds as f64 / 60.0),
        _ => value.json(),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Whole(number) => write!(f, "{number}"),
            Value::Real(number) => write!(f, "{number:.2}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Text(text) => f.write_str(text),
            Value::List(list) => write!(f, "[{}]", list.join(", ")),
        }
    }
}
