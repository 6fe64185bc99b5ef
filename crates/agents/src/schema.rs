//! JSON Schemas of the answers, for clients that hold a model to a schema.
//!
//! The schemas say the same as the forms in the prompts. Nothing is validated against them here: answers are always
//! read by [`crate::answer`], which accepts far more.

use serde_json::{Map, Value, json};

use crate::answer::AnswerKind;

/// How a provider expects fields that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaForm {
    /// Optional fields may be left out.
    Loose,
    /// Every field must be present, optional ones as null, and no other field is allowed.
    Strict,
}

/// Builds the schema of an answer of this kind.
pub(crate) fn answer_schema(answer_kind: AnswerKind, schema_form: SchemaForm) -> Value {
    let text_schema = || json!({"type": "string"});
    match answer_kind {
        AnswerKind::Findings => {
            // Only parties answer with these; the other reviewers leave them out.
            let minutes_fields = [
                optional_field("personas", schema_form, array_schema(text_schema())),
                optional_field("consensus", schema_form, text_schema()),
                optional_field("dissent", schema_form, text_schema()),
            ];
            object_schema(
                schema_form,
                [required_field("findings", array_schema(finding_schema(schema_form)))]
                    .into_iter()
                    .chain(minutes_fields),
            )
        }
        AnswerKind::Fixes => {
            let fix_schema = object_schema(
                schema_form,
                [
                    required_field("id", text_schema()),
                    required_field("status", enum_schema(&["FIXED", "BLOCKED"])),
                    required_field("fix_description", text_schema()),
                    required_field("files_modified", array_schema(text_schema())),
                    optional_field("verification", schema_form, text_schema()),
                    optional_field("memory_saved", schema_form, json!({"type": "boolean"})),
                ],
            );
            object_schema(schema_form, [required_field("fixes", array_schema(fix_schema))])
        }
        AnswerKind::Verdicts => {
            let verdict_schema = object_schema(
                schema_form,
                [
                    required_field("id", text_schema()),
                    required_field("verdict", enum_schema(&["VALID", "INVALID", "AMBIGUOUS"])),
                    required_field("reason", text_schema()),
                    optional_field("counter_evidence", schema_form, text_schema()),
                ],
            );
            object_schema(schema_form, [required_field("verdicts", array_schema(verdict_schema))])
        }
    }
}

fn finding_schema(schema_form: SchemaForm) -> Value {
    let text_schema = || json!({"type": "string"});
    let absence_schema = object_schema(
        schema_form,
        [required_field("heading", text_schema()), required_field("terms", array_schema(text_schema()))],
    );
    let severity_schema = || enum_schema(&["critical", "high", "medium", "low"]);
    let vote_schema = object_schema(
        schema_form,
        [required_field("persona", text_schema()), required_field("severity", severity_schema())],
    );
    object_schema(
        schema_form,
        [
            required_field("severity", severity_schema()),
            required_field("category", text_schema()),
            required_field("description", text_schema()),
            optional_field("file", schema_form, text_schema()),
            optional_field("line", schema_form, json!({"type": "integer"})),
            optional_field("quote", schema_form, text_schema()),
            optional_field("absent", schema_form, absence_schema),
            optional_field("suggested_fix", schema_form, text_schema()),
            optional_field("votes", schema_form, array_schema(vote_schema)),
            optional_field("dissent", schema_form, text_schema()),
        ],
    )
}

/// A field's name, its schema, and whether it is required.
type SchemaField = (&'static str, Value, bool);

fn required_field(field_name: &'static str, field_schema: Value) -> SchemaField {
    (field_name, field_schema, true)
}

fn optional_field(field_name: &'static str, schema_form: SchemaForm, field_schema: Value) -> SchemaField {
    match schema_form {
        SchemaForm::Loose => (field_name, field_schema, false),
        // Strict providers reject optional fields, so "missing" has to be spelled as null.
        SchemaForm::Strict => (field_name, json!({"anyOf": [field_schema, {"type": "null"}]}), true),
    }
}

fn object_schema(schema_form: SchemaForm, schema_fields: impl IntoIterator<Item = SchemaField>) -> Value {
    let mut properties = Map::new();
    let mut required_names = Vec::new();
    for (field_name, field_schema, is_required) in schema_fields {
        properties.insert(field_name.to_string(), field_schema);
        if is_required {
            required_names.push(field_name);
        }
    }
    let mut schema_object = json!({"type": "object", "properties": properties, "required": required_names});
    // Loose schemas allow additional fields: an answer with extra keys is still worth reading.
    if schema_form == SchemaForm::Strict {
        schema_object["additionalProperties"] = json!(false);
    }
    schema_object
}

fn array_schema(item_schema: Value) -> Value {
    json!({"type": "array", "items": item_schema})
}

fn enum_schema(allowed_values: &[&str]) -> Value {
    json!({"type": "string", "enum": allowed_values})
}

#[cfg(test)]
mod tests {
    use tribunal_core::brief::AnswerContent;

    use super::*;
    use crate::answer::parse_answer;

    /// Checks that every object requires all of its fields and allows no other, as strict providers demand.
    fn assert_strict(schema: &Value) {
        match schema {
            Value::Object(schema_object) => {
                if schema_object.get("type") == Some(&json!("object")) {
                    let property_names: Vec<&String> =
                        schema_object["properties"].as_object().unwrap().keys().collect();
                    let mut required_names: Vec<&str> = schema_object["required"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|required_name| required_name.as_str().unwrap())
                        .collect();
                    required_names.sort_unstable();
                    assert_eq!(required_names, property_names, "{schema}");
                    assert_eq!(schema_object["additionalProperties"], json!(false), "{schema}");
                }
                schema_object.values().for_each(assert_strict);
            }
            Value::Array(schemas) => schemas.iter().for_each(assert_strict),
            _ => {}
        }
    }

    #[test]
    fn the_strict_form_is_strict_in_every_nested_object() {
        for answer_kind in [AnswerKind::Findings, AnswerKind::Fixes, AnswerKind::Verdicts] {
            assert_strict(&answer_schema(answer_kind, SchemaForm::Strict));
        }
    }

    #[test]
    fn answers_of_the_strict_form_are_read_with_all_their_nulls() {
        let answer_json = json!({
            "findings": [
                {"severity": "high", "category": "logic", "description": "It adds.", "file": null, "line": 3,
                 "quote": "a + b", "absent": null, "suggested_fix": null, "votes": null, "dissent": null},
                {"severity": "low", "category": "docs", "description": "No limits.", "file": null, "line": null,
                 "quote": null, "absent": {"heading": "Limits", "terms": ["timeout"]}, "suggested_fix": null,
                 "votes": [{"persona": "Mary", "severity": "low"}], "dissent": null},
            ],
            "personas": ["Mary"], "consensus": "fine", "dissent": null,
        });
        let parsed = parse_answer(&answer_json.to_string(), AnswerKind::Findings);
        let AnswerContent::Findings { raised } = parsed.content else { panic!("{:?}", parsed.content) };
        assert_eq!(raised.len(), 2);
        assert_eq!((raised[0].line, raised[0].file.as_deref()), (Some(3), None));
        assert_eq!((raised[0].suggested_fix.as_str(), parsed.remarks.as_slice()), ("", &[][..]));
        assert_eq!((parsed.minutes.personas.len(), parsed.minutes.ballots.len()), (1, 1));
        assert_eq!(parsed.minutes.dissent, "");
        let answer_json = json!({"fixes": [{"id": "F1", "status": "FIXED", "fix_description": "x", "files_modified": ["a"],
            "verification": null, "memory_saved": null}]});
        let parsed = parse_answer(&answer_json.to_string(), AnswerKind::Fixes);
        assert!(matches!(parsed.content, AnswerContent::Fixes { claims } if claims.len() == 1));
        let answer_json =
            json!({"verdicts": [{"id": "F1", "verdict": "VALID", "reason": "x", "counter_evidence": null}]});
        let parsed = parse_answer(&answer_json.to_string(), AnswerKind::Verdicts);
        let AnswerContent::Rulings { rulings } = parsed.content else { panic!("{:?}", parsed.content) };
        assert_eq!(rulings[0].counter, "");
    }
}
