//! Converts between the value of a setting and the field that it fills.
//!
//! A row of the table names a codec and a field: `field!(Seconds, run.tasks.fixer_timeout_ms)`. A test over all rows shows
//! that the kind of each row fits its codec.

use std::{num::NonZeroUsize, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;
use tribunal_core::{level::Tier, limits::Cost};
use tribunal_guard::Bounds;
use tribunal_report::Mode;

use super::{kind::Value, typed::TypedSettings};

/// Access to the field that a setting fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// Reads the field; `None` if it is not set and follows from something else.
    pub read: fn(&TypedSettings) -> Option<Value>,
    pub write: fn(&mut TypedSettings, &Value),
}

/// Makes the access to the field of [`TypedSettings`] with this path, through this codec.
macro_rules! field {
    ($codec:ty, $($name:ident).+) => {
        $crate::settings::codec::Field {
            read: |all| <$codec as $crate::settings::codec::Codec<_>>::encode(&all.$($name).+),
            write: |all, value| {
                // Files, variables and flags are read by the row's kind, so a value of another kind does not occur.
                if let Some(decoded) = <$codec as $crate::settings::codec::Codec<_>>::decode(value) {
                    all.$($name).+ = decoded;
                }
            },
        }
    };
}
pub(super) use field;

/// Converts values to fields and back.
pub(super) trait Codec<T> {
    fn encode(field: &T) -> Option<Value>;
    fn decode(value: &Value) -> Option<T>;
}

/// The field has the same unit as the value.
pub(super) struct Plain;
/// Seconds are written, milliseconds are stored.
pub(super) struct Seconds;
/// Hours are written.
pub(super) struct Hours;
/// One word of a list. The field is an enum whose JSON has the same words.
pub(super) struct Word;
/// The first word of [`APPROVE`] is false, the second true.
pub(super) struct Approve;
/// The first word of [`ON_LIMIT`] is false, the second true.
pub(super) struct OnLimit;
/// An optional field; `None` if it is not set.
pub(super) struct Maybe<C>(C);

/// The words of [`GUARD_PATHS`], in the order of the enum.
pub(super) struct GuardPaths;

pub(super) const GUARD_PATHS: &[&str; 3] = &["off", "project", "subject"];
pub(super) const APPROVE: &[&str; 2] = &["never", "each"];
pub(super) const ON_LIMIT: &[&str; 2] = &["fallback", "wait"];

impl<T, C: Codec<T>> Codec<Option<T>> for Maybe<C> {
    fn encode(field: &Option<T>) -> Option<Value> {
        field.as_ref().and_then(C::encode)
    }

    fn decode(value: &Value) -> Option<Option<T>> {
        C::decode(value).map(Some)
    }
}

fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Whole(number) => Some(*number),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

impl Codec<u32> for Plain {
    fn encode(field: &u32) -> Option<Value> {
        Some(Value::Whole((*field).into()))
    }

    fn decode(value: &Value) -> Option<u32> {
        // The row's range fits the field; a value beyond it leaves the default.
        whole(value)?.try_into().ok()
    }
}

impl Codec<u64> for Plain {
    fn encode(field: &u64) -> Option<Value> {
        Some(Value::Whole(*field))
    }

    fn decode(value: &Value) -> Option<u64> {
        whole(value)
    }
}

impl Codec<NonZeroUsize> for Plain {
    fn encode(field: &NonZeroUsize) -> Option<Value> {
        Some(Value::Whole(field.get() as u64))
    }

    fn decode(value: &Value) -> Option<NonZeroUsize> {
        // Zero is outside the range of every such row.
        NonZeroUsize::new(whole(value)?.try_into().ok()?)
    }
}

impl Codec<Tier> for Plain {
    fn encode(field: &Tier) -> Option<Value> {
        Some(Value::Whole(field.number().into()))
    }

    fn decode(value: &Value) -> Option<Tier> {
        Tier::new(whole(value)?.try_into().ok()?)
    }
}

impl Codec<Cost> for Plain {
    fn encode(field: &Cost) -> Option<Value> {
        // Costs are stored in millionths, so the amounts that users write survive the conversion.
        Some(Value::Real(field.amount()))
    }

    fn decode(value: &Value) -> Option<Cost> {
        match value {
            Value::Real(amount) => Some(Cost::of(*amount)),
            _ => None,
        }
    }
}

impl Codec<bool> for Plain {
    fn encode(field: &bool) -> Option<Value> {
        Some(Value::Flag(*field))
    }

    fn decode(value: &Value) -> Option<bool> {
        match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }
}

impl Codec<String> for Plain {
    fn encode(field: &String) -> Option<Value> {
        Some(Value::Text(field.clone()))
    }

    fn decode(value: &Value) -> Option<String> {
        text(value).map(str::to_string)
    }
}

impl Codec<Vec<String>> for Plain {
    fn encode(field: &Vec<String>) -> Option<Value> {
        Some(Value::List(field.clone()))
    }

    fn decode(value: &Value) -> Option<Vec<String>> {
        match value {
            Value::List(list) => Some(list.clone()),
            _ => None,
        }
    }
}

impl Codec<Mode> for Plain {
    fn encode(field: &Mode) -> Option<Value> {
        Some(Value::Text(field.to_string()))
    }

    fn decode(value: &Value) -> Option<Mode> {
        // Unknown words were refused when the value was read.
        Mode::parse(text(value)?)
    }
}

impl Codec<u64> for Seconds {
    fn encode(field: &u64) -> Option<Value> {
        // Defaults are whole seconds, so nothing is lost here.
        Some(Value::Whole(field / 1000))
    }

    fn decode(value: &Value) -> Option<u64> {
        whole(value)?.checked_mul(1000)
    }
}

impl Codec<Duration> for Hours {
    fn encode(field: &Duration) -> Option<Value> {
        Some(Value::Whole(field.as_secs() / 3600))
    }

    fn decode(value: &Value) -> Option<Duration> {
        whole(value)?.checked_mul(3600).map(Duration::from_secs)
    }
}

impl<T: Serialize + DeserializeOwned> Codec<T> for Word {
    fn encode(field: &T) -> Option<Value> {
        // Only enums without data serialise to a string; others have no word.
        match serde_json::to_value(field) {
            Ok(Json::String(word)) => Some(Value::Text(word)),
            _ => None,
        }
    }

    fn decode(value: &Value) -> Option<T> {
        serde_json::from_value(Json::String(text(value)?.to_string())).ok()
    }
}

impl Codec<bool> for Approve {
    fn encode(field: &bool) -> Option<Value> {
        word_of(APPROVE, *field)
    }

    fn decode(value: &Value) -> Option<bool> {
        flag_of(APPROVE, value)
    }
}

impl Codec<bool> for OnLimit {
    fn encode(field: &bool) -> Option<Value> {
        word_of(ON_LIMIT, *field)
    }

    fn decode(value: &Value) -> Option<bool> {
        flag_of(ON_LIMIT, value)
    }
}

/// The bounds in the order of [`GUARD_PATHS`].
const BOUNDS: [Bounds; 3] = [Bounds::Off, Bounds::Project, Bounds::Subject];

impl Codec<Bounds> for GuardPaths {
    fn encode(field: &Bounds) -> Option<Value> {
        // Both lists have the same order, which a test over all rows checks.
        let at = BOUNDS.iter().position(|bounds| bounds == field)?;
        Some(Value::Text(GUARD_PATHS[at].to_string()))
    }

    fn decode(value: &Value) -> Option<Bounds> {
        let at = GUARD_PATHS.iter().position(|word| Some(*word) == text(value))?;
        BOUNDS.get(at).copied()
    }
}

fn word_of(words: &[&str; 2], flag: bool) -> Option<Value> {
    Some(Value::Text(words[usize::from(flag)].to_string()))
}

fn flag_of(words: &[&str; 2], value: &Value) -> Option<bool> {
    words.iter().position(|word| Some(*word) == text(value)).map(|at| at == 1)
}
