//! Why JSON could not be read as a type.

use alloc::{
    format,
    string::{String, ToString},
};
use core::fmt;

use serde_json::Value;

/// JSON that does not have the form of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{message}")]
pub struct JsonError {
    /// The fields that lead to the place, with `: ` behind them; empty at the top.
    place: String,
    message: String,
}

impl JsonError {
    pub fn new(message: impl Into<String>) -> JsonError {
        JsonError { place: String::new(), message: message.into() }
    }

    pub fn from_display(cause: &dyn fmt::Display) -> JsonError {
        JsonError::new(cause.to_string())
    }

    pub fn missing_field(name: &str) -> JsonError {
        JsonError::new(format!("missing field `{name}`"))
    }

    pub fn unknown_variant(name: &str, known_names: &[&str]) -> JsonError {
        JsonError::new(format!("unknown variant `{name}`, expected one of {}", known_names.join(", ")))
    }

    pub fn wrong_type(found: &Value, expected: &str) -> JsonError {
        let found = match found {
            Value::Null => String::from("null"),
            Value::Bool(flag) => format!("boolean `{flag}`"),
            Value::Number(number) => format!("number `{number}`"),
            Value::String(text) => format!("string {text:?}"),
            Value::Array(_) => String::from("a list"),
            Value::Object(_) => String::from("an object"),
        };
        JsonError::new(format!("invalid type: {found}, expected {expected}"))
    }

    /// Says in which field the error is.
    #[must_use]
    pub fn in_field(self, name: &str) -> JsonError {
        let separator = if self.place.is_empty() { ": " } else { "." };
        JsonError { place: format!("{name}{separator}{}", self.place), message: self.message }
    }
}
