//! JSON Schemas of the answers: for clients that hold a model to a schema, and for the authors of other agents
//! (`tribunal schema answers`).
//!
//! The schemas say the same as the forms in the prompts; their words come from [`tribunal_workflows::tasks::answer_words`]. Nothing
//! is validated against them here: answers are always read by [`crate::answer`], which accepts far more.

use serde_json::{Map, Value, json};
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    tasks::answer_words::{CLAIM_WORDS, SEVERITY_WORDS, VERDICT_WORDS, WordGroup},
};

use crate::answer::AnswerKind;

/// Who a schema is for, which decides what is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaForm {
    /// For a client: what the form in the prompt asks for is required, optional fields may be left out.
    Loose,
    /// For a client whose provider rejects optional fields: every field must be present, optional ones as null, and no
    /// other field is allowed.
    Strict,
    /// For readers: only what an item cannot be read without is required.
    Published,
}

/// Builds the schema of an answer of this kind.
pub(crate) fn answer_schema(answer_kind: AnswerKind, schema_form: SchemaForm) -> Value {
    // A client's schema is the same for all reviewers, so that it can be cached; only parties answer with minutes.
    build_schema(answer_kind, schema_form, true)
}

/// Builds one document with the schema of each role's answer, under `$defs` by the name of the role.
pub fn answers_document() -> Value {
    let role_schema = |role: AgentRole| {
        let mut schema = build_schema(AnswerKind::for_role(role), SchemaForm::Published, role == AgentRole::Party);
        schema["title"] = json!(format!("Answer of a {role} agent"));
        schema
    };
    let definitions: Map<String, Value> =
        AgentRole::ALL.into_iter().map(|role| (role.as_str().to_string(), role_schema(role))).collect();
    let references: Vec<Value> =
        AgentRole::ALL.into_iter().map(|role| json!({"$ref": format!("#/$defs/{role}")})).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of agents",
        "description": "What an agent prints, by its role. The parser accepts more: see docs/agent-protocol.md.",
        "anyOf": references,
        "$defs": definitions,
    })
}

fn build_schema(answer_kind: AnswerKind, schema_form: SchemaForm, has_minutes: bool) -> Value {
    let text_schema = || json!({"type": "string"});
    match answer_kind {
        AnswerKind::Findings => {
            let minutes_fields = [
                optional_field("personas", schema_form, array_schema(text_schema())),
                optional_field("consensus", schema_form, text_schema()),
                optional_field("dissent", schema_form, text_schema()),
            ];
            object_schema(
                schema_form,
                [required_field("findings", array_schema(finding_schema(schema_form, has_minutes)))]
                    .into_iter()
                    .chain(minutes_fields.into_iter().filter(|_| has_minutes)),
            )
        }
        AnswerKind::Fixes => {
            let fix_schema = object_schema(
                schema_form,
                [
                    required_field("id", text_schema()),
                    required_field("status", word_schema(schema_form, &CLAIM_WORDS)),
                    wanted_field("fix_description", schema_form, text_schema()),
                    wanted_field("files_modified", schema_form, array_schema(text_schema())),
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
                    required_field("verdict", word_schema(schema_form, &VERDICT_WORDS)),
                    wanted_field("reason", schema_form, text_schema()),
                    optional_field("counter_evidence", schema_form, text_schema()),
                ],
            );
            object_schema(schema_form, [required_field("verdicts", array_schema(verdict_schema))])
        }
    }
}

fn finding_schema(schema_form: SchemaForm, has_minutes: bool) -> Value {
    let text_schema = || json!({"type": "string"});
    let absence_schema = object_schema(
        schema_form,
        [required_field("heading", text_schema()), required_field("terms", array_schema(text_schema()))],
    );
    let severity_schema = || word_schema(schema_form, &SEVERITY_WORDS);
    let vote_schema = object_schema(
        schema_form,
        [required_field("persona", text_schema()), required_field("severity", severity_schema())],
    );
    let minutes_fields = [
        optional_field("votes", schema_form, array_schema(vote_schema)),
        optional_field("dissent", schema_form, text_schema()),
    ];
    let finding_fields = [
        wanted_field("severity", schema_form, severity_schema()),
        wanted_field("category", schema_form, text_schema()),
        required_field("description", text_schema()),
        optional_field("file", schema_form, text_schema()),
        optional_field("line", schema_form, json!({"type": "integer"})),
        optional_field("quote", schema_form, text_schema()),
        optional_field("absent", schema_form, absence_schema),
        optional_field("suggested_fix", schema_form, text_schema()),
    ];
    let mut finding_schema = object_schema(
        schema_form,
        finding_fields.into_iter().chain(minutes_fields.into_iter().filter(|_| has_minutes)),
    );
    if schema_form == SchemaForm::Published {
        // Not all providers accept this, so clients are told in the prompt.
        finding_schema["anyOf"] = json!([{"required": ["quote"]}, {"required": ["absent"]}]);
    }
    finding_schema
}

/// A field of an object.
struct SchemaField {
    name: &'static str,
    schema: Value,
    is_required: bool,
}

/// A field without which an item cannot be read.
fn required_field(name: &'static str, schema: Value) -> SchemaField {
    SchemaField { name, schema, is_required: true }
}

/// A field that clients are held to, but without which an item can be read.
fn wanted_field(name: &'static str, schema_form: SchemaForm, schema: Value) -> SchemaField {
    SchemaField { name, schema, is_required: schema_form != SchemaForm::Published }
}

fn optional_field(name: &'static str, schema_form: SchemaForm, schema: Value) -> SchemaField {
    match schema_form {
        SchemaForm::Loose | SchemaForm::Published => SchemaField { name, schema, is_required: false },
        // Strict providers reject optional fields, so "missing" has to be spelled as null.
        SchemaForm::Strict => {
            SchemaField { name, schema: json!({"anyOf": [schema, {"type": "null"}]}), is_required: true }
        }
    }
}

fn object_schema(schema_form: SchemaForm, schema_fields: impl IntoIterator<Item = SchemaField>) -> Value {
    let mut properties = Map::new();
    let mut required_names = Vec::new();
    for SchemaField { name, schema, is_required } in schema_fields {
        properties.insert(name.to_string(), schema);
        if is_required {
            required_names.push(name);
        }
    }
    let mut schema_object = json!({"type": "object", "properties": properties, "required": required_names});
    // The other forms allow additional fields: an answer with extra keys is still worth reading.
    if schema_form == SchemaForm::Strict {
        schema_object["additionalProperties"] = json!(false);
    }
    schema_object
}

/// The schema of a field with words from a table: those that prompts ask for.
fn word_schema<M>(schema_form: SchemaForm, word_table: &'static [WordGroup<M>]) -> Value {
    let offered_groups = || word_table.iter().filter(|group| group.is_offered);
    let offered_names: Vec<&str> = offered_groups().map(|group| group.name).collect();
    let mut schema = json!({"type": "string", "enum": offered_names});
    if schema_form == SchemaForm::Published {
        let synonyms: Vec<String> = offered_groups()
            .map(|group| {
                let other_words = group.all_words().filter(|word| !word.eq_ignore_ascii_case(group.name));
                format!("{} ({})", group.name, other_words.collect::<Vec<&str>>().join(", "))
            })
            .collect();
        schema["description"] = json!(format!("Other words that are understood: {}", synonyms.join("; ")));
    }
    schema
}

fn array_schema(item_schema: Value) -> Value {
    json!({"type": "array", "items": item_schema})
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::tasks::brief::AnswerContent;

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
        assert!(matches!(parsed.content, AnswerContent::Fixes { claims, .. } if claims.len() == 1));
        let answer_json =
            json!({"verdicts": [{"id": "F1", "verdict": "VALID", "reason": "x", "counter_evidence": null}]});
        let parsed = parse_answer(&answer_json.to_string(), AnswerKind::Verdicts);
        let AnswerContent::Rulings { rulings, .. } = parsed.content else { panic!("{:?}", parsed.content) };
        assert_eq!(rulings[0].counter, "");
    }

    #[test]
    fn the_published_document_has_one_schema_for_each_role_and_requires_what_the_parser_requires() {
        let document = answers_document();
        for role in AgentRole::ALL {
            let schema = &document["$defs"][role.as_str()];
            let (list_name, required_names) = match AnswerKind::for_role(role) {
                AnswerKind::Findings => ("findings", vec!["description"]),
                AnswerKind::Fixes => ("fixes", vec!["id", "status"]),
                AnswerKind::Verdicts => ("verdicts", vec!["id", "verdict"]),
            };
            assert_eq!(schema["required"], json!([list_name]), "{role}");
            assert_eq!(schema["properties"][list_name]["items"]["required"], json!(required_names), "{role}");
            assert_eq!(schema["properties"].get("consensus").is_some(), role == AgentRole::Party, "{role}");
        }
        let verdict_schema =
            &document["$defs"]["challenger"]["properties"]["verdicts"]["items"]["properties"]["verdict"];
        assert_eq!(verdict_schema["enum"], json!(["VALID", "INVALID", "AMBIGUOUS"]));
        let status_schema = &document["$defs"]["fixer"]["properties"]["fixes"]["items"]["properties"]["status"];
        assert_eq!(status_schema["enum"], json!(["FIXED", "BLOCKED"]));
    }
}
