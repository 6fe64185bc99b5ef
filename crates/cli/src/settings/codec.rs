//! Converts between the value of a setting and the field that it fills.
//!
//! A row of the table names a codec and a field: `field!(Seconds, review.fixers.timeout_ms)`. A test over all rows shows
//! that the kind of each row fits its codec.

use std::{num::NonZeroUsize, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;
use tribunal_engine::{limits::Cost, sandbox::NetworkScope, tier::ProcessTier};
use tribunal_guard::WriteBounds;
use tribunal_report::DisplayMode;
use tribunal_workflows::development::checks::{CheckSpec, CommandLine};

use super::{kind::SettingValue, typed::TypedSettings};

/// Access to the field that a setting fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// Reads the field; `None` if it is not set and follows from something else.
    pub read: fn(&TypedSettings) -> Option<SettingValue>,
    pub write: fn(&mut TypedSettings, &SettingValue),
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
    fn encode(field_value: &T) -> Option<SettingValue>;
    fn decode(setting_value: &SettingValue) -> Option<T>;
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
    fn encode(field_value: &Option<T>) -> Option<SettingValue> {
        field_value.as_ref().and_then(C::encode)
    }

    fn decode(setting_value: &SettingValue) -> Option<Option<T>> {
        C::decode(setting_value).map(Some)
    }
}

fn as_whole_number(setting_value: &SettingValue) -> Option<u64> {
    match setting_value {
        SettingValue::Whole(whole_value) => Some(*whole_value),
        _ => None,
    }
}

fn as_text(setting_value: &SettingValue) -> Option<&str> {
    match setting_value {
        SettingValue::Text(setting_text) => Some(setting_text),
        _ => None,
    }
}

impl Codec<u32> for Plain {
    fn encode(field_value: &u32) -> Option<SettingValue> {
        Some(SettingValue::Whole((*field_value).into()))
    }

    fn decode(setting_value: &SettingValue) -> Option<u32> {
        // The row's range fits the field; a value beyond it leaves the default.
        as_whole_number(setting_value)?.try_into().ok()
    }
}

impl Codec<u64> for Plain {
    fn encode(field_value: &u64) -> Option<SettingValue> {
        Some(SettingValue::Whole(*field_value))
    }

    fn decode(setting_value: &SettingValue) -> Option<u64> {
        as_whole_number(setting_value)
    }
}

impl Codec<NonZeroUsize> for Plain {
    fn encode(field_value: &NonZeroUsize) -> Option<SettingValue> {
        Some(SettingValue::Whole(field_value.get() as u64))
    }

    fn decode(setting_value: &SettingValue) -> Option<NonZeroUsize> {
        // Zero is outside the range of every such row.
        NonZeroUsize::new(as_whole_number(setting_value)?.try_into().ok()?)
    }
}

impl Codec<ProcessTier> for Plain {
    fn encode(field_value: &ProcessTier) -> Option<SettingValue> {
        Some(SettingValue::Whole(field_value.number().into()))
    }

    fn decode(setting_value: &SettingValue) -> Option<ProcessTier> {
        ProcessTier::new(as_whole_number(setting_value)?.try_into().ok()?)
    }
}

impl Codec<Cost> for Plain {
    fn encode(field_value: &Cost) -> Option<SettingValue> {
        // Costs are stored in millionths, so the amounts that users write survive the conversion.
        Some(SettingValue::Real(field_value.amount()))
    }

    fn decode(setting_value: &SettingValue) -> Option<Cost> {
        match setting_value {
            SettingValue::Real(amount) => Some(Cost::from_amount(*amount)),
            _ => None,
        }
    }
}

impl Codec<bool> for Plain {
    fn encode(field_value: &bool) -> Option<SettingValue> {
        Some(SettingValue::Flag(*field_value))
    }

    fn decode(setting_value: &SettingValue) -> Option<bool> {
        match setting_value {
            SettingValue::Flag(flag_value) => Some(*flag_value),
            _ => None,
        }
    }
}

impl Codec<String> for Plain {
    fn encode(field_value: &String) -> Option<SettingValue> {
        Some(SettingValue::Text(field_value.clone()))
    }

    fn decode(setting_value: &SettingValue) -> Option<String> {
        as_text(setting_value).map(str::to_string)
    }
}

impl Codec<Vec<String>> for Plain {
    fn encode(field_value: &Vec<String>) -> Option<SettingValue> {
        Some(SettingValue::List(field_value.clone()))
    }

    fn decode(setting_value: &SettingValue) -> Option<Vec<String>> {
        match setting_value {
            SettingValue::List(items) => Some(items.clone()),
            _ => None,
        }
    }
}

impl Codec<NetworkScope> for Plain {
    fn encode(field_value: &NetworkScope) -> Option<SettingValue> {
        Some(SettingValue::List(field_value.clone().into()))
    }

    fn decode(setting_value: &SettingValue) -> Option<NetworkScope> {
        match setting_value {
            SettingValue::List(items) => NetworkScope::try_from(items.clone()).ok(),
            _ => None,
        }
    }
}

impl Codec<CommandLine> for Plain {
    fn encode(field_value: &CommandLine) -> Option<SettingValue> {
        Some(SettingValue::Command(field_value.clone()))
    }

    fn decode(setting_value: &SettingValue) -> Option<CommandLine> {
        match setting_value {
            SettingValue::Command(command) => Some(command.clone()),
            _ => None,
        }
    }
}

impl Codec<Vec<CommandLine>> for Plain {
    fn encode(field_value: &Vec<CommandLine>) -> Option<SettingValue> {
        Some(SettingValue::Commands(field_value.clone()))
    }

    fn decode(setting_value: &SettingValue) -> Option<Vec<CommandLine>> {
        match setting_value {
            SettingValue::Commands(commands) => Some(commands.clone()),
            _ => None,
        }
    }
}

impl Codec<Vec<CheckSpec>> for Plain {
    fn encode(field_value: &Vec<CheckSpec>) -> Option<SettingValue> {
        Some(SettingValue::Checks(field_value.clone()))
    }

    fn decode(setting_value: &SettingValue) -> Option<Vec<CheckSpec>> {
        match setting_value {
            SettingValue::Checks(checks) => Some(checks.clone()),
            _ => None,
        }
    }
}

impl Codec<DisplayMode> for Plain {
    fn encode(field_value: &DisplayMode) -> Option<SettingValue> {
        Some(SettingValue::Text(field_value.to_string()))
    }

    fn decode(setting_value: &SettingValue) -> Option<DisplayMode> {
        // Unknown words were refused when the value was read.
        DisplayMode::parse_name(as_text(setting_value)?)
    }
}

impl Codec<u64> for Seconds {
    fn encode(field_value: &u64) -> Option<SettingValue> {
        // Defaults are whole seconds, so nothing is lost here.
        Some(SettingValue::Whole(field_value / 1000))
    }

    fn decode(setting_value: &SettingValue) -> Option<u64> {
        as_whole_number(setting_value)?.checked_mul(1000)
    }
}

impl Codec<Duration> for Hours {
    fn encode(field_value: &Duration) -> Option<SettingValue> {
        Some(SettingValue::Whole(field_value.as_secs() / 3600))
    }

    fn decode(setting_value: &SettingValue) -> Option<Duration> {
        as_whole_number(setting_value)?.checked_mul(3600).map(Duration::from_secs)
    }
}

impl<T: Serialize + DeserializeOwned> Codec<T> for Word {
    fn encode(field_value: &T) -> Option<SettingValue> {
        // Only enums without data serialise to a string; others have no word.
        match serde_json::to_value(field_value) {
            Ok(Json::String(json_word)) => Some(SettingValue::Text(json_word)),
            _ => None,
        }
    }

    fn decode(setting_value: &SettingValue) -> Option<T> {
        serde_json::from_value(Json::String(as_text(setting_value)?.to_string())).ok()
    }
}

impl Codec<bool> for Approve {
    fn encode(field_value: &bool) -> Option<SettingValue> {
        word_for_flag(APPROVE, *field_value)
    }

    fn decode(setting_value: &SettingValue) -> Option<bool> {
        flag_for_word(APPROVE, setting_value)
    }
}

impl Codec<bool> for OnLimit {
    fn encode(field_value: &bool) -> Option<SettingValue> {
        word_for_flag(ON_LIMIT, *field_value)
    }

    fn decode(setting_value: &SettingValue) -> Option<bool> {
        flag_for_word(ON_LIMIT, setting_value)
    }
}

/// The bounds in the order of [`GUARD_PATHS`].
const GUARD_BOUNDS: [WriteBounds; 3] = [WriteBounds::Off, WriteBounds::Project, WriteBounds::Subject];

impl Codec<WriteBounds> for GuardPaths {
    fn encode(field_value: &WriteBounds) -> Option<SettingValue> {
        // Both lists have the same order, so a position in one is the position in the other.
        let bounds_index = GUARD_BOUNDS.iter().position(|bounds| bounds == field_value)?;
        Some(SettingValue::Text(GUARD_PATHS[bounds_index].to_string()))
    }

    fn decode(setting_value: &SettingValue) -> Option<WriteBounds> {
        let word_index = GUARD_PATHS.iter().position(|path_word| Some(*path_word) == as_text(setting_value))?;
        GUARD_BOUNDS.get(word_index).copied()
    }
}

fn word_for_flag(flag_words: &[&str; 2], is_second: bool) -> Option<SettingValue> {
    Some(SettingValue::Text(flag_words[usize::from(is_second)].to_string()))
}

fn flag_for_word(flag_words: &[&str; 2], setting_value: &SettingValue) -> Option<bool> {
    flag_words.iter().position(|flag_word| Some(*flag_word) == as_text(setting_value)).map(|word_index| word_index == 1)
}
