//! Stores the long texts of an entry once: a text that stands in several entries, such as a file under review, is one blob, and
//! the entries only name it.

use std::collections::BTreeSet;

use serde_json::Value;
use tribunal_engine::ids::Hash;

/// The shortest text in bytes that becomes a blob of its own.
const MIN_TEXT_BYTES: usize = 4 << 10;
/// What stands in an entry instead of a long text: this, and the hash of the blob.
const REFERENCE_PREFIX: &str = "blob:";

/// An entry whose long texts were taken out.
pub(crate) struct ShortenedEntry {
    pub(crate) body: String,
    pub(crate) texts: Vec<String>,
}

/// Takes the long texts out of an entry. `None` if it has none, or if it has a text that looks like a reference.
pub(crate) fn take_long_texts(entry_json: &str) -> Option<ShortenedEntry> {
    let mut entry: Value = serde_json::from_str(entry_json).ok()?;
    if has_reference(&entry) {
        return None;
    }
    let mut texts = Vec::new();
    replace_texts(&mut entry, &mut |text| {
        (text.len() >= MIN_TEXT_BYTES).then(|| {
            let reference = format!("{REFERENCE_PREFIX}{}", Hash::digest_of(text.as_bytes()));
            texts.push(std::mem::replace(text, reference));
        })
    });
    (!texts.is_empty()).then(|| ShortenedEntry { body: entry.to_string(), texts })
}

/// Puts the long texts back into an entry. `load_text` reads the blob of a hash.
pub(crate) fn put_texts_back<E>(
    entry: &mut Value,
    load_text: &mut dyn FnMut(&Hash) -> Result<String, E>,
) -> Result<(), E> {
    let mut failure = None;
    replace_texts(entry, &mut |text| {
        let hash = Hash::new(text.strip_prefix(REFERENCE_PREFIX)?);
        match load_text(&hash) {
            Ok(long_text) => *text = long_text,
            Err(cause) => failure = failure.take().or(Some(cause)),
        }
        Some(())
    });
    failure.map_or(Ok(()), Err)
}

/// The hashes of the texts that were taken out of an entry.
pub(crate) fn list_references(entry: &Value) -> BTreeSet<Hash> {
    let mut hashes = BTreeSet::new();
    let mut copied_entry = entry.clone();
    replace_texts(&mut copied_entry, &mut |text| {
        hashes.insert(Hash::new(text.strip_prefix(REFERENCE_PREFIX)?));
        Some(())
    });
    hashes
}

fn has_reference(entry: &Value) -> bool {
    match entry {
        Value::String(text) => text.starts_with(REFERENCE_PREFIX),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(fields) => fields.values().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Calls a function with every text of an entry.
fn replace_texts(value: &mut Value, replace: &mut dyn FnMut(&mut String) -> Option<()>) {
    match value {
        Value::String(text) => {
            let _ = replace(text);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_texts(item, replace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_texts(field, replace)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_taken_out_and_put_back() {
        let long_text = "é".repeat(MIN_TEXT_BYTES);
        let entry =
            json!({"a": "short", "b": [{"c": long_text}, long_text, 1, null], "d": long_text.replace('é', "e")});
        let shortened = take_long_texts(&entry.to_string()).unwrap();
        assert!(shortened.body.len() < 400, "{}", shortened.body);
        let mut blobs: HashMap<Hash, String> =
            shortened.texts.into_iter().map(|text| (Hash::digest_of(text.as_bytes()), text)).collect();
        let mut restored: Value = serde_json::from_str(&shortened.body).unwrap();
        assert_eq!(list_references(&restored), blobs.keys().cloned().collect());
        put_texts_back(&mut restored, &mut |hash| blobs.get(hash).cloned().ok_or(())).unwrap();
        assert_eq!(restored, entry);
        blobs.clear();
        let mut unrestored: Value = serde_json::from_str(&shortened.body).unwrap();
        assert_eq!(put_texts_back(&mut unrestored, &mut |_| Err("missing")), Err("missing"));
    }

    #[test]
    fn an_entry_that_already_has_a_reference_stays_whole() {
        let long_text = "x".repeat(MIN_TEXT_BYTES);
        assert!(take_long_texts(&json!({"a": "blob:x", "b": long_text}).to_string()).is_none());
        assert!(take_long_texts(&json!({"a": "b"}).to_string()).is_none());
    }
}
