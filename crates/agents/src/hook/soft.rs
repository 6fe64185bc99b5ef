//! Reads foreign JSON without building what is not needed.
//!
//! A sink says what it accepts: texts, flags, fields, items. Everything else is skipped, however long it is, and a
//! value of the wrong type counts as missing. Which fields matter is defined in [`super::input`] and
//! [`super::transcript`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Accepts the parts of a JSON value that it needs, and ignores the others.
pub(super) trait Take<'de> {
    fn text(&mut self, _text: Cow<'de, str>) {}

    fn flag(&mut self, _flag: bool) {}

    /// Must consume the value of this field, at least with [`skip_value`].
    fn field<M: MapAccess<'de>>(&mut self, _name: &str, map: &mut M) -> Result<(), M::Error> {
        skip(map)
    }

    /// Must consume the next item, and returns whether there was one.
    fn item<S: SeqAccess<'de>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        Ok(seq.next_element::<IgnoredAny>()?.is_some())
    }
}

impl<'de> Take<'de> for String {
    fn text(&mut self, text: Cow<'de, str>) {
        *self = text.into_owned();
    }
}

impl<'de> Take<'de> for Option<Cow<'de, str>> {
    fn text(&mut self, text: Cow<'de, str>) {
        *self = Some(text);
    }
}

impl<'de> Take<'de> for Option<String> {
    fn text(&mut self, text: Cow<'de, str>) {
        *self = Some(text.into_owned());
    }
}

impl Take<'_> for bool {
    fn flag(&mut self, flag: bool) {
        *self = flag;
    }
}

/// Consumes the value of a field without building it.
pub(super) fn skip<'de, M: MapAccess<'de>>(map: &mut M) -> Result<(), M::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// Reads the value of a field into a sink.
pub(super) fn give<'de, M: MapAccess<'de>>(map: &mut M, taker: &mut impl Take<'de>) -> Result<(), M::Error> {
    map.next_value_seed(Taking(taker))
}

/// Reads the next item of a list into a sink, and returns whether there was one.
pub(super) fn give_item<'de, S: SeqAccess<'de>>(
    seq: &mut S,
    taker: &mut impl Take<'de>,
) -> Result<bool, S::Error> {
    Ok(seq.next_element_seed(Taking(taker))?.is_some())
}

/// Reads one JSON value with nothing after it.
pub(super) fn read<'de>(text: &'de str, taker: &mut impl Take<'de>) -> serde_json::Result<()> {
    // The default recursion limit stays in place for what is built; skipped values are not recursive.
    let mut json = serde_json::Deserializer::from_str(text);
    Taking(taker).deserialize(&mut json)?;
    json.end()
}

/// Connects a sink to serde: it is both the seed and the visitor of a value.
struct Taking<'t, T>(&'t mut T);

impl<'de, T: Take<'de>> DeserializeSeed<'de> for Taking<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, T: Take<'de>> Visitor<'de> for Taking<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.0.flag(flag);
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

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.text(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.0.text(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        // The key is read through a sink as well, so that it is borrowed where it has no escapes.
        let mut name: Option<Cow<'de, str>> = None;
        while map.next_key_seed(Taking(&mut name))?.is_some() {
            self.0.field(name.take().as_deref().unwrap_or_default(), &mut map)?;
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while self.0.item(&mut seq)? {}
        Ok(())
    }
}

/// Replaces escapes of half a character, such as `\ud83d` without its other half. JavaScript cuts texts in the middle
/// of a character and writes the remaining half this way. Returns `None` if there is no such escape.
pub(super) fn mended(text: &str) -> Option<String> {
    let mut whole = String::new();
    let (mut kept, mut at) = (0, 0);
    // Only backslashes are of interest, so that long texts are searched quickly.
    while let Some(found) = memchr::memchr(b'\\', text.as_bytes().get(at..).unwrap_or_default()) {
        let start = at + found;
        at = match (unit(text, start), unit(text, start + ESCAPE)) {
            // A complete pair is one valid character.
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => start + 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str(text.get(kept..start)?);
                whole.push_str("\\ufffd");
                kept = start + ESCAPE;
                kept
            }
            // The escaped character is skipped as well, because it may be a backslash.
            _ => start + 2,
        };
    }
    whole.push_str(text.get(kept..)?);
    // Without a replacement the caller keeps the original text, and nothing was copied.
    (kept > 0).then_some(whole)
}

/// The length of an escape like `\ud83d`.
const ESCAPE: usize = 6;

/// The code unit of the escape at this position.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else() {
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
        for (text, whole) in cases {
            assert_eq!(mended(text).as_deref(), whole, "{text}");
        }
    }

    proptest! {
        #[test]
        fn mending_never_panics_and_once_is_enough(text in r#"(\\u[dD][89abcdef][0-9a-f]{2}|\\|\\u|[a-z"é]){0,20}"#) {
            if let Some(whole) = mended(&text) {
                prop_assert_eq!(mended(&whole), None);
            }
        }

        #[test]
        fn json_after_mending_is_read(units in prop::collection::vec(0xd700u16..0xe100, 0..8)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            let whole = mended(&json).unwrap_or(json);
            let mut said = String::new();
            read(&whole, &mut said).unwrap();
            prop_assert_eq!(said, String::from_utf16_lossy(&units));
        }
    }
}
