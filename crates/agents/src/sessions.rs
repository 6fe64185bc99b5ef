//! Finds the id of a session in the JSON of any client.

use serde_json::Value;

/// Finds the session id under the names that clients use, the most reliable one first.
pub(crate) fn id(object: &Value) -> Option<&str> {
    // Only strings count: a number under the same name is not an id that a client would accept back.
    let direct = |name: &str| object.get(name).and_then(Value::as_str);
    let nested = object.get("metadata").and_then(|beside| beside.get("session_id")).and_then(Value::as_str);
    let known =
        direct("sessionId").or(nested).or_else(|| direct("session_id")).or_else(|| direct("thread_id"));
    known.filter(|id| is_plain(id))
}

/// Whether an id can safely become an argument of a command line: it must not look like a flag or a path.
pub(crate) fn is_plain(id: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=128).contains(&id.len()) && !id.starts_with(['-', '.']) && id.chars().all(letter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_names_in_their_order_and_nothing_that_is_no_id() {
        for (object, found) in [
            (json!({"sessionId": "a", "session_id": "c", "thread_id": "d"}), Some("a")),
            (json!({"metadata": {"session_id": "b"}, "session_id": "c"}), Some("b")),
            (json!({"session_id": "c", "thread_id": "d"}), Some("c")),
            (json!({"thread_id": "d"}), Some("d")),
            (json!({"session_id": 7}), None),
            (json!({"session_id": ""}), None),
            (json!({"session_id": "--dangerously-skip-permissions"}), None),
            (json!({"session_id": "../../x"}), None),
            (json!([1]), None),
        ] {
            assert_eq!(id(&object), found, "{object}");
        }
    }
}
