//! JSON Schemas of the answers, for clients that hold a model to a schema.
//!
//! The schemas say the same as the forms in the prompts. Nothing is validated against them here: answers are always
//! read by [`crate::answer`], which accepts far more.

use serde_json::{Map, Value, json};

use crate::answer::Wanted;

/// How a provider expects fields that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Optional fields may be left out.
    Loose,
    /// Every field must be present, optional ones as null, and no other field is allowed.
    Strict,
}

/// Builds the schema of an answer of this kind.
pub(crate) fn of(wanted: Wanted, form: Form) -> Value {
    let text = || json!({"type": "string"});
    match wanted {
        Wanted::Findings => {
            // Only parties answer with these; the other reviewers leave them out.
            let beside = [
                may("personas", form, list(text())),
                may("consensus", form, text()),
                may("dissent", form, text()),
            ];
            object(form, [must("findings", list(finding(form)))].into_iter().chain(beside))
        }
        Wanted::Fixes => {
            let fix = object(
                form,
                [
                    must("id", text()),
                    must("status", one_of(&["FIXED", "BLOCKED"])),
                    must("fix_description", text()),
                    must("files_modified", list(text())),
                    may("verification", form, text()),
                    may("memory_saved", form, json!({"type": "boolean"})),
                ],
            );
            object(form, [must("fixes", list(fix))])
        }
        Wanted::Verdicts => {
            let verdict = object(
                form,
                [
                    must("id", text()),
                    must("verdict", one_of(&["VALID", "INVALID", "AMBIGUOUS"])),
                    must("reason", text()),
                    may("counter_evidence", form, text()),
                ],
            );
            object(form, [must("verdicts", list(verdict))])
        }
    }
}

fn finding(form: Form) -> Value {
    let text = || json!({"type": "string"});
    let absent = object(form, [must("heading", text()), must("terms", list(text()))]);
    let severity = || one_of(&["critical", "high", "medium", "low"]);
    let vote = object(form, [must("persona", text()), must("severity", severity())]);
    object(
        form,
        [
            must("severity", severity()),
            must("category", text()),
            must("description", text()),
            may("file", form, text()),
            may("line", form, json!({"type": "integer"})),
            may("quote", form, text()),
            may("absent", form, absent),
            may("suggested_fix", form, text()),
            may("votes", form, list(vote)),
            may("dissent", form, text()),
        ],
    )
}

/// A field's name, its schema, and whether it is required.
type Field = (&'static str, Value, bool);

fn must(name: &'static str, schema: Value) -> Field {
    (name, schema, true)
}

fn may(name: &'static str, form: Form, schema: Value) -> Field {
    match form {
        Form::Loose => (name, schema, false),
        // Strict providers reject optional fields, so that "missing" has to be spelled as null.
        Form::Strict => (name, json!({"anyOf": [schema, {"type": "null"}]}), true),
    }
}

fn object(form: Form, fields: impl IntoIterator<Item = Field>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    // The order of the fields is that of the form in the prompt.
    for (name, schema, needed) in fields {
        properties.insert(name.to_string(), schema);
        if needed {
            required.push(name);
        }
    }
    let mut object = json!({"type": "object", "properties": properties, "required": required});
    // Loose schemas allow additional fields: an answer with extra keys is still worth reading.
    if form == Form::Strict {
        object["additionalProperties"] = json!(false);
    }
    object
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

#[cfg(test)]
mod tests {
    use tribunal_core::brief::Content;

    use super::*;
    use crate::answer::parse;

    /// Checks that every object requires all of its fields and allows no other, as strict providers demand.
    fn assert_strict(schema: &Value) {
        match schema {
            Value::Object(map) => {
                if map.get("type") == Some(&json!("object")) {
                    let names: Vec<&String> = map["properties"].as_object().unwrap().keys().collect();
                    let mut required: Vec<&str> = map["required"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|name| name.as_str().unwrap())
                        .collect();
                    required.sort_unstable();
                    assert_eq!(required, names, "{schema}");
                    assert_eq!(map["additionalProperties"], json!(false), "{schema}");
                }
                map.values().for_each(assert_strict);
            }
            Value::Array(list) => list.iter().for_each(assert_strict),
            _ => {}
        }
    }

    #[test]
    fn the_strict_form_is_strict_all_the_way_down() {
        for wanted in [Wanted::Findings, Wanted::Fixes, Wanted::Verdicts] {
            assert_strict(&of(wanted, Form::Strict));
        }
    }

    #[test]
    fn answers_of_the_strict_form_are_read_with_all_their_nulls() {
        let text = json!({
            "findings": [
                {"severity": "high", "category": "logic", "description": "It adds.", "file": null, "line": 3,
                 "quote": "a + b", "absent": null, "suggested_fix": null, "votes": null, "dissent": null},
                {"severity": "low", "category": "docs", "description": "No limits.", "file": null, "line": null,
                 "quote": null, "absent": {"heading": "Limits", "terms": ["timeout"]}, "suggested_fix": null,
                 "votes": [{"persona": "Mary", "severity": "low"}], "dissent": null},
            ],
            "personas": ["Mary"], "consensus": "fine", "dissent": null,
        });
        let parsed = parse(&text.to_string(), Wanted::Findings);
        let Content::Findings { raised } = parsed.content else { panic!("{:?}", parsed.content) };
        assert_eq!(raised.len(), 2);
        assert_eq!((raised[0].line, raised[0].file.as_deref()), (Some(3), None));
        assert_eq!((raised[0].suggested_fix.as_str(), parsed.remarks.as_slice()), ("", &[][..]));
        assert_eq!((parsed.minutes.personas.len(), parsed.minutes.ballots.len()), (1, 1));
        assert_eq!(parsed.minutes.dissent, "");
        let text = json!({"fixes": [{"id": "F1", "status": "FIXED", "fix_description": "x", "files_modified": ["a"],
            "verification": null, "memory_saved": null}]});
        assert!(
            matches!(parse(&text.to_string(), Wanted::Fixes).content, Content::Fixes { claims } if claims.len() == 1)
        );
        let text =
            json!({"verdicts": [{"id": "F1", "verdict": "VALID", "reason": "x", "counter_evidence": null}]});
        let parsed = parse(&text.to_string(), Wanted::Verdicts);
        let Content::Rulings { rulings } = parsed.content else { panic!("{:?}", parsed.content) };
        assert_eq!(rulings[0].counter, "");
    }
}
