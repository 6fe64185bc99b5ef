//! Reads foreign JSON without building what is not needed.
//!
//! A sink says what it accepts: texts, flags, fields, items. Everything else is skipped, however long it is, and a
//! value of the wrong type counts as missing. Which fields matter is defined in [`super::input`] and
//! [`super::transcript`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Accepts the parts of a JSON value that it needs, and ignores the others.
pub(super) trait JsonSink<'de> {
    fn accept_text(&mut self, _text: Cow<'de, str>) {}

    fn accept_flag(&mut self, _flag: bool) {}

    /// Must consume the value of this field, at least with [`skip_value`].
    fn accept_field<M: MapAccess<'de>>(&mut self, _name: &str, map_access: &mut M) -> Result<(), M::Error> {
        skip_value(map_access)
    }

    /// Must consume the next item, and returns whether there was one.
    fn accept_item<S: SeqAccess<'de>>(&mut self, sequence_access: &mut S) -> Result<bool, S::Error> {
        Ok(sequence_access.next_element::<IgnoredAny>()?.is_some())
    }
}

impl<'de> JsonSink<'de> for String {
    fn accept_text(&mut self, string_value: Cow<'de, str>) {
        *self = string_value.into_owned();
    }
}

impl<'de> JsonSink<'de> for Option<Cow<'de, str>> {
    fn accept_text(&mut self, text: Cow<'de, str>) {
        *self = Some(text);
    }
}

impl<'de> JsonSink<'de> for Option<String> {
    fn accept_text(&mut self, text: Cow<'de, str>) {
        *self = Some(text.into_owned());
    }
}

impl JsonSink<'_> for bool {
    fn accept_flag(&mut self, flag: bool) {
        *self = flag;
    }
}

/// Consumes the value of a field without building it.
pub(super) fn skip_value<'de, M: MapAccess<'de>>(map_access: &mut M) -> Result<(), M::Error> {
    map_access.next_value::<IgnoredAny>().map(|_| ())
}

/// Reads the value of a field into a sink.
pub(super) fn read_value_into<'de, M: MapAccess<'de>>(
    map_access: &mut M,
    json_sink: &mut impl JsonSink<'de>,
) -> Result<(), M::Error> {
    map_access.next_value_seed(SinkSeed(json_sink))
}

/// Reads the next item of a list into a sink, and returns whether there was one.
pub(super) fn read_item_into<'de, S: SeqAccess<'de>>(
    sequence_access: &mut S,
    json_sink: &mut impl JsonSink<'de>,
) -> Result<bool, S::Error> {
    Ok(sequence_access.next_element_seed(SinkSeed(json_sink))?.is_some())
}

/// Reads one JSON value with nothing after it.
pub(super) fn read_json_into<'de>(json_text: &'de str, json_sink: &mut impl JsonSink<'de>) -> serde_json::Result<()> {
    // The default recursion limit stays in place for what is built; skipped values are not recursive.
    let mut deserializer = serde_json::Deserializer::from_str(json_text);
    SinkSeed(json_sink).deserialize(&mut deserializer)?;
    deserializer.end()
}

/// Connects a sink to serde: it is both the seed and the visitor of a value.
struct SinkSeed<'t, T>(&'t mut T);

impl<'de, T: JsonSink<'de>> DeserializeSeed<'de> for SinkSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: JsonSink<'de>> Visitor<'de> for SinkSeed<'_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<(), E> {
        self.0.accept_flag(boolean);
        Ok(())
    }

    // Numbers are of no interest to any sink, but they must not be an error either.
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, string_value: &str) -> Result<(), E> {
        self.0.accept_text(Cow::Owned(string_value.to_owned()));
        Ok(())
    }

    fn visit_borrowed_str<E>(self, string_value: &'de str) -> Result<(), E> {
        self.0.accept_text(Cow::Borrowed(string_value));
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map_access: M) -> Result<(), M::Error> {
        // The key is read through a sink as well, so that it is borrowed where it has no escapes.
        let mut field_name: Option<Cow<'de, str>> = None;
        while map_access.next_key_seed(SinkSeed(&mut field_name))?.is_some() {
            self.0.accept_field(field_name.take().as_deref().unwrap_or_default(), &mut map_access)?;
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut sequence_access: S) -> Result<(), S::Error> {
        while self.0.accept_item(&mut sequence_access)? {}
        Ok(())
    }
}

/// Replaces escapes of half a character, such as `\ud83d` without its other half. A JavaScript program that cuts a text
/// in the middle of a character writes the remaining half this way. Returns `None` if there is no such escape.
pub(super) fn replace_lone_surrogates(json_text: &str) -> Option<String> {
    let mut repaired = String::new();
    let (mut copied_end, mut search_start) = (0, 0);
    // Only backslashes are of interest, and `memchr` finds them quickly in long texts.
    while let Some(backslash_offset) =
        memchr::memchr(b'\\', json_text.as_bytes().get(search_start..).unwrap_or_default())
    {
        let escape_start = search_start + backslash_offset;
        search_start = match (
            escaped_code_unit(json_text, escape_start),
            escaped_code_unit(json_text, escape_start + ESCAPE_LENGTH),
        ) {
            // A complete pair is one valid character.
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => escape_start + 2 * ESCAPE_LENGTH,
            (Some(0xd800..=0xdfff), _) => {
                repaired.push_str(json_text.get(copied_end..escape_start)?);
                repaired.push_str("\\ufffd");
                copied_end = escape_start + ESCAPE_LENGTH;
                copied_end
            }
            // The escaped character is skipped as well, because it may be a backslash.
            _ => escape_start + 2,
        };
    }
    repaired.push_str(json_text.get(copied_end..)?);
    // Without a replacement the caller keeps the original text.
    (copied_end > 0).then_some(repaired)
}

/// The length of an escape like `\ud83d`.
const ESCAPE_LENGTH: usize = 6;

/// The code unit of the escape at this position.
fn escaped_code_unit(json_text: &str, escape_start: usize) -> Option<u16> {
    let hex_digits = json_text.get(escape_start..escape_start + ESCAPE_LENGTH)?.strip_prefix("\\u")?;
    u16::from_str_radix(hex_digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let cases = [
            (r#""a \ud83d""#, Some(r#""a \ufffd""#)),
            (r#""\ude00 b\ud83d\ud83d\ude00""#, Some(r#""\ufffd b\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\u0041""#, Some(r#""\ufffd\u0041""#)),
            (r#""\ud83d\ude00 \u0041 \n""#, None),
            (r#""a path: \\ud83d""#, None),
            (r#""\\\ud83d""#, Some(r#""\\\ufffd""#)),
            ("\\", None),
            ("\\ud8", None),
            ("\\u+d80", None),
            ("\\ü", None),
        ];
        for (json_text, expected) in cases {
            assert_eq!(replace_lone_surrogates(json_text).as_deref(), expected, "{json_text}");
        }
    }

    proptest! {
        #[test]
        fn mending_never_panics_and_once_is_enough(text in r#"(\\u[dD][89abcdef][0-9a-f]{2}|\\|\\u|[a-z"é]){0,20}"#) {
            if let Some(whole) = replace_lone_surrogates(&text) {
                prop_assert_eq!(replace_lone_surrogates(&whole), None);
            }
        }

        #[test]
        fn json_after_mending_is_read(units in prop::collection::vec(0xd700u16..0xe100, 0..8)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            let whole = replace_lone_surrogates(&json).unwrap_or(json);
            let mut said = String::new();
            read_json_into(&whole, &mut said).unwrap();
            prop_assert_eq!(said, String::from_utf16_lossy(&units));
        }
    }
}
