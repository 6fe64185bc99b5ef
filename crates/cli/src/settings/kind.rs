//! The kinds of values that settings have, and the errors for other values.
//!
//! Only the value is checked here; [`super::table`] says which setting has which kind.

use std::fmt;

use serde_json::{Value as Json, json};

use tribunal_agents::clients;
use tribunal_bmad::yaml::{self, YamlContent, YamlNode};
use tribunal_workflows::development::checks::{CheckSpec, CommandLine};

use super::{command_values, nearest_name};

/// The seconds of a day: no task and no run is meant to take longer.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// What the value of a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ValueKind {
    Whole {
        minimum: u64,
        maximum: u64,
    },
    /// Whole seconds, at least this many and at most a day.
    Seconds {
        minimum: u64,
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
    TextOrFalse,
    List,
    /// A program and its arguments, each an item of a list.
    Argv,
    /// A command: a text for the shell, or a list of words that is run without one.
    Command,
    Commands,
    /// Commands with what follows from their failure.
    Checks,
    ListOf(&'static [&'static str]),
    /// `all`, a list of TCP ports, or `none` where that is possible.
    Network {
        allows_none: bool,
    },
    /// A single name for a setting that is a list.
    SingleName,
    /// A directory, relative to the project's root. That it is inside the project is checked when it is used.
    Folder,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SettingValue {
    Whole(u64),
    Real(f64),
    Flag(bool),
    Text(String),
    List(Vec<String>),
    Command(CommandLine),
    Commands(Vec<CommandLine>),
    Checks(Vec<CheckSpec>),
}

/// A value that is not allowed: what was written, and a hint about the likely mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    pub written_text: String,
    pub hint: Option<String>,
    /// What is wrong with a part of the value, if that has a place of its own.
    pub nested: Option<NestedProblem>,
}

/// What is wrong with a part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NestedProblem {
    pub line_number: usize,
    pub message: String,
}

impl ValueError {
    pub(super) fn at_line(line_number: usize, message: String, hint: Option<String>) -> ValueError {
        ValueError { written_text: String::new(), hint, nested: Some(NestedProblem { line_number, message }) }
    }

    /// Describes the problem of the setting at this path.
    pub(super) fn describe(&self, setting_path: &str, value_kind: ValueKind) -> String {
        match &self.nested {
            Some(nested) => format!("`{setting_path}`: {}", nested.message),
            None => format!("`{setting_path}` must be {}; found {}", value_kind.describe_allowed(), self.written_text),
        }
    }
}

impl ValueKind {
    /// Reads a value from YAML. `None` if it leaves the choice to Tribunal.
    pub(super) fn read_node(self, yaml_node: &YamlNode) -> Result<Option<SettingValue>, ValueError> {
        match (&yaml_node.content, self) {
            (_, ValueKind::Command) => command_values::read_command(yaml_node).map(SettingValue::Command).map(Some),
            (YamlContent::Scalar(scalar_text), _) => self.read_scalar(scalar_text),
            (YamlContent::Sequence(list_items), _) if self.is_list() => self.read_items(list_items).map(Some),
            // A list for a single value is not reduced to its first item: the rest would be lost silently.
            (YamlContent::Sequence(_), _) => Err(make_value_error("a list", None)),
            (YamlContent::Mapping(_), _) => Err(make_value_error("a mapping", None)),
            (YamlContent::Null, _) => Err(make_value_error("nothing", Some("add a value, or remove the line".into()))),
        }
    }

    /// Reads the value of a variable or a flag. Text is taken literally; lists are written `[a, b]`.
    pub(super) fn read_text_source(self, given_text: &str) -> Result<Option<SettingValue>, ValueError> {
        let scalar_node = |given_text: &str| YamlNode::from_content(YamlContent::Scalar(given_text.to_string()));
        let yaml_node = match self {
            _ if (self.is_list() || self == ValueKind::Command) && given_text.trim_start().starts_with('[') => {
                // Broken brackets are kept as text, so that the error quotes what was typed.
                yaml::parse_yaml(given_text).unwrap_or_else(|_| scalar_node(given_text))
            }
            // A program with arguments, written as one text, would silently become a program with blanks in its name.
            ValueKind::Argv if given_text.trim().contains(char::is_whitespace) => {
                let list_hint = format!(
                    "write the program and its arguments as a list: `{}`",
                    super::hints::format_argv_list(given_text)
                );
                return Err(make_value_error(&format!("`{given_text}`"), Some(list_hint)));
            }
            // One item needs no brackets here.
            _ if self.is_list() => YamlNode::from_content(YamlContent::Sequence(vec![scalar_node(given_text)])),
            _ => scalar_node(given_text),
        };
        self.read_node(&yaml_node)
    }

    fn is_list(self) -> bool {
        matches!(
            self,
            ValueKind::List
                | ValueKind::Argv
                | ValueKind::Commands
                | ValueKind::Checks
                | ValueKind::ListOf(_)
                | ValueKind::Network { .. }
        )
    }

    fn read_scalar(self, scalar_text: &str) -> Result<Option<SettingValue>, ValueError> {
        let parsed_value = match self {
            ValueKind::TierOrSuggested if scalar_text == "auto-suggest" => return Ok(None),
            ValueKind::Whole { .. } | ValueKind::Seconds { .. } | ValueKind::Percent | ValueKind::TierOrSuggested => {
                parse_whole(scalar_text)
                    .filter(|parsed_number| self.allowed_range().contains(parsed_number))
                    .map(SettingValue::Whole)
            }
            ValueKind::Minutes => parse_whole(scalar_text)
                .filter(|parsed_number| self.allowed_range().contains(parsed_number))
                .map(|minutes| SettingValue::Whole(minutes * 60)),
            ValueKind::Fraction => parse_real(scalar_text)
                .filter(|parsed_number| (0.0..=1.0).contains(parsed_number))
                .map(SettingValue::Real),
            ValueKind::Cost => parse_real(scalar_text)
                .filter(|parsed_number| *parsed_number > 0.0 && *parsed_number <= 1e6)
                .map(SettingValue::Real),
            ValueKind::Words(allowed_words) => match_word(scalar_text, allowed_words).map(SettingValue::Text),
            ValueKind::Flag => parse_flag(scalar_text).map(SettingValue::Flag),
            // `no` and `off` count as false as well, so an agent with such a name cannot be chosen here.
            ValueKind::TextOrFalse if parse_flag(scalar_text) == Some(false) => Some(SettingValue::Flag(false)),
            ValueKind::Text | ValueKind::TextOrFalse | ValueKind::Folder => {
                nonempty_text(scalar_text).map(SettingValue::Text)
            }
            ValueKind::Network { allows_none } => (scalar_text == "all" || (scalar_text == "none" && allows_none))
                .then(|| SettingValue::List(vec![scalar_text.to_string()])),
            ValueKind::SingleName => {
                nonempty_text(scalar_text).map(|single_name| SettingValue::List(vec![single_name]))
            }
            ValueKind::List
            | ValueKind::Argv
            | ValueKind::Command
            | ValueKind::Commands
            | ValueKind::Checks
            | ValueKind::ListOf(_) => None,
        };
        parsed_value
            .map(Some)
            .ok_or_else(|| make_value_error(&format!("`{scalar_text}`"), super::hints::suggest_fix(self, scalar_text)))
    }

    fn read_items(self, list_items: &[YamlNode]) -> Result<SettingValue, ValueError> {
        match self {
            ValueKind::Commands => {
                let commands = list_items.iter().map(command_values::read_command).collect::<Result<_, _>>()?;
                return Ok(SettingValue::Commands(commands));
            }
            ValueKind::Checks => {
                let checks = list_items.iter().map(command_values::read_check).collect::<Result<_, _>>()?;
                return Ok(SettingValue::Checks(checks));
            }
            _ => {}
        }
        let mut parsed_list = Vec::new();
        for list_item in list_items {
            let YamlContent::Scalar(item_text) = &list_item.content else {
                return Err(make_value_error("a list with an item that is not text", None));
            };
            let accepted_text = match self {
                ValueKind::ListOf(allowed_words) => match_word(item_text, allowed_words),
                // One word in place of a list, as flags and variables write it.
                ValueKind::Network { .. } if list_items.len() == 1 && item_text.parse::<u16>().is_err() => {
                    self.read_scalar(item_text)?.map(|_| item_text.clone())
                }
                ValueKind::Network { .. } => item_text.parse::<u16>().is_ok().then(|| item_text.clone()),
                _ => nonempty_text(item_text),
            };
            parsed_list.push(accepted_text.ok_or_else(|| {
                make_value_error(&format!("`{item_text}`"), super::hints::suggest_fix(self, item_text))
            })?);
        }
        Ok(SettingValue::List(parsed_list))
    }

    pub(super) fn allowed_range(self) -> std::ops::RangeInclusive<u64> {
        match self {
            ValueKind::Whole { minimum: min, maximum: max } => min..=max,
            ValueKind::Seconds { minimum: min } => min..=DAY_SECONDS,
            ValueKind::Minutes => 1..=DAY_SECONDS / 60,
            ValueKind::TierOrSuggested => 0..=4,
            _ => 0..=100,
        }
    }

    /// Describes the allowed values for users.
    pub fn describe_allowed(self) -> String {
        let (min_text, max_text) = (self.allowed_range().start().to_string(), self.allowed_range().end().to_string());
        match self {
            ValueKind::Whole { .. } => format!("a whole number from {min_text} to {max_text}"),
            ValueKind::Seconds { .. } => format!("{min_text} to {max_text} seconds"),
            ValueKind::Minutes => format!("{min_text} to {max_text} minutes"),
            ValueKind::Percent => "a percentage from 0 to 100".into(),
            ValueKind::Fraction => "a fraction from 0.0 to 1.0".into(),
            ValueKind::Cost => "an amount in dollars, more than 0".into(),
            ValueKind::Words(allowed_words) => format!("one of {}", allowed_words.join(", ")),
            ValueKind::TierOrSuggested => "a tier from 0 to 4, or auto-suggest".into(),
            ValueKind::Flag => "true or false".into(),
            ValueKind::Text => "text".into(),
            ValueKind::TextOrFalse => "a name, or false".into(),
            ValueKind::List | ValueKind::Argv => "a list such as [a, b]".into(),
            ValueKind::Command => "a command such as notify-send or [notify-send, Tribunal]".into(),
            ValueKind::Commands => "a list of commands such as [make test, [cargo, test]]".into(),
            ValueKind::Checks => "a list of checks such as [make test, {run: x, on_failure: warn}]".into(),
            ValueKind::ListOf(allowed_words) => format!("a list with any of {}", allowed_words.join(", ")),
            ValueKind::Network { allows_none: true } => "all, none, or a list of ports such as [443]".into(),
            ValueKind::Network { allows_none: false } => "all, or a list of ports such as [443]".into(),
            ValueKind::SingleName => "a name".into(),
            ValueKind::Folder => "a directory in the project".into(),
        }
    }

    /// Describes the allowed values for editors.
    pub fn json_schema(self) -> Json {
        let (minimum, maximum) = (*self.allowed_range().start(), *self.allowed_range().end());
        match self {
            ValueKind::Whole { .. } | ValueKind::Seconds { .. } | ValueKind::Minutes | ValueKind::Percent => {
                json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
            }
            ValueKind::TierOrSuggested => json!({ "enum": ["auto-suggest", 0, 1, 2, 3, 4] }),
            ValueKind::Fraction => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            ValueKind::Cost => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1e6 }),
            ValueKind::Words(allowed_words) => json!({ "enum": allowed_words }),
            ValueKind::Flag => json!({ "type": "boolean" }),
            ValueKind::Text | ValueKind::SingleName | ValueKind::Folder => json!({ "type": "string" }),
            ValueKind::TextOrFalse => json!({ "anyOf": [{ "type": "string" }, { "const": false }] }),
            ValueKind::List | ValueKind::Argv => json!({ "type": "array", "items": { "type": "string" } }),
            ValueKind::Command => command_values::command_schema(),
            ValueKind::Commands => json!({ "type": "array", "items": command_values::command_schema() }),
            ValueKind::Checks => command_values::checks_schema(),
            ValueKind::ListOf(allowed_words) => {
                json!({ "type": "array", "items": { "enum": allowed_words } })
            }
            ValueKind::Network { allows_none } => {
                let words: &[&str] = if allows_none { &["all", "none"] } else { &["all"] };
                let ports = json!({ "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 65535 } });
                json!({ "anyOf": [{ "enum": words }, ports] })
            }
        }
    }
}

/// The error for a value.
fn make_value_error(written_text: &str, hint: Option<String>) -> ValueError {
    ValueError { written_text: written_text.to_string(), hint, nested: None }
}

pub(super) fn parse_whole(number_text: &str) -> Option<u64> {
    // Underscores may group digits, as in YAML 1.1 and in Rust.
    number_text.replace('_', "").parse().ok()
}

pub(super) fn parse_real(number_text: &str) -> Option<f64> {
    // YAML knows `.inf` and `.nan`, which no setting accepts.
    number_text.replace('_', "").parse::<f64>().ok().filter(|real_number| real_number.is_finite())
}

fn parse_flag(flag_text: &str) -> Option<bool> {
    match flag_text.to_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Matches a word of a list. Common synonyms are replaced by the word itself.
fn match_word(typed_text: &str, allowed_words: &[&str]) -> Option<String> {
    let typed_text = match typed_text {
        "quiet" => "silent",
        typed_text => clients::canonical_id(typed_text),
    };
    allowed_words.iter().find(|known_word| **known_word == typed_text).map(|known_word| known_word.to_string())
}

fn nonempty_text(typed_text: &str) -> Option<String> {
    // A null byte cannot be passed to a program.
    (!typed_text.trim().is_empty() && !typed_text.contains('\0')).then(|| typed_text.to_string())
}

pub(super) fn nearest_word(typed_text: &str, allowed_words: &[&'static str]) -> Option<&'static str> {
    nearest_name(typed_text, allowed_words)
}

impl SettingValue {
    pub fn to_json(&self) -> Json {
        match self {
            SettingValue::Whole(number) => json!(number),
            SettingValue::Real(number) => json!(number),
            SettingValue::Flag(flag_value) => json!(flag_value),
            SettingValue::Text(text_value) => json!(text_value),
            SettingValue::List(list_items) => json!(list_items),
            SettingValue::Command(command) => json!(command),
            SettingValue::Commands(commands) => json!(commands),
            SettingValue::Checks(checks) => checks.iter().map(command_values::check_to_json).collect(),
        }
    }
}

/// A value in the unit of its kind, since minutes are stored as seconds.
pub(super) fn json_in_unit(value_kind: ValueKind, setting_value: &SettingValue) -> Json {
    match (value_kind, setting_value) {
        (ValueKind::Minutes, SettingValue::Whole(seconds)) if seconds % 60 == 0 => json!(seconds / 60),
        // An alias in seconds may set a fraction of a minute.
        (ValueKind::Minutes, SettingValue::Whole(seconds)) => json!(*seconds as f64 / 60.0),
        _ => setting_value.to_json(),
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Whole(number) => write!(formatter, "{number}"),
            SettingValue::Real(number) => write!(formatter, "{number:.2}"),
            SettingValue::Flag(flag_value) => write!(formatter, "{flag_value}"),
            SettingValue::Text(text_value) => formatter.write_str(text_value),
            SettingValue::List(list_items) => write!(formatter, "[{}]", list_items.join(", ")),
            SettingValue::Command(command) => write!(formatter, "{command}"),
            SettingValue::Commands(commands) => write_list(formatter, commands.iter().map(ToString::to_string)),
            SettingValue::Checks(checks) => write_list(formatter, checks.iter().map(command_values::describe_check)),
        }
    }
}

fn write_list(formatter: &mut fmt::Formatter<'_>, items: impl Iterator<Item = String>) -> fmt::Result {
    write!(formatter, "[{}]", items.collect::<Vec<_>>().join(", "))
}
