//! Finds the id of a session in the JSON of any client.

use serde_json::Value;

/// Finds the session id under the names that clients use. The first name that is present counts.
pub(crate) fn find_session_id(object: &Value) -> Option<&str> {
    // Only strings count: a number under the same name is not an id that a client would accept back.
    let direct_field = |field_name: &str| object.get(field_name).and_then(Value::as_str);
    let nested_id = object.get("metadata").and_then(|metadata| metadata.get("session_id")).and_then(Value::as_str);
    let candidate = direct_field("sessionId")
        .or(nested_id)
        .or_else(|| direct_field("session_id"))
        .or_else(|| direct_field("thread_id"));
    candidate.filter(|session_id| is_safe_session_id(session_id))
}

/// Whether an id can safely become an argument of a command line: it must not look like a flag or a path.
pub(crate) fn is_safe_session_id(session_id: &str) -> bool {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    (1..=128).contains(&session_id.len()) && !session_id.starts_with(['-', '.']) && session_id.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn session_ids_are_found_by_precedence_and_unsafe_ones_are_refused() {
        for (object, expected_id) in [
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
            assert_eq!(find_session_id(&object), expected_id, "{object}");
        }
    }
}
