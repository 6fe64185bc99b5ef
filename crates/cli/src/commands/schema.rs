//! `tribunal schema [NAME]`: prints the JSON Schemas of everything that Tribunal reads and writes.
//!
//! Those of settings and answers are made of their tables. All others are derived from the types that are printed, but not in
//! the program: `schemas.json` has their text, and a test compares it with the types.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    messages::{
        json_documents,
        user_errors::{UserError, internal_error},
    },
    settings::{self, nearest_name},
};

/// The schemas of types, and once for all of them the definitions that they name.
const SCHEMA_TEXT: &str = include_str!("schemas.json");

const DEFINITIONS: &str = "$defs";

#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArguments {
    /// Schema to print (default: all, in one document)
    name: Option<String>,
}

/// Reads the text of [`SCHEMA_TEXT`] into schemas that stand for themselves.
fn read_schemas() -> Result<Map<String, Value>, UserError> {
    let mut schema_file: Map<String, Value> = serde_json::from_str(SCHEMA_TEXT)
        .map_err(|error| internal_error(format!("the schemas cannot be read: {error}")))?;
    let mut take_object = |name: &str| match schema_file.remove(name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let (definitions, schemas) = (take_object(DEFINITIONS), take_object("schemas"));
    let complete = |(name, mut schema): (String, Value)| {
        let mut found_names = BTreeSet::new();
        collect_definitions(&schema, &definitions, &mut found_names);
        if let (Some(object), false) = (schema.as_object_mut(), found_names.is_empty()) {
            let found_definitions = found_names.into_iter().map(|name| (name.to_owned(), definitions[name].clone()));
            object.insert(DEFINITIONS.into(), found_definitions.collect::<Map<_, _>>().into());
        }
        (name, schema)
    };
    let mut schemas: Map<String, Value> = schemas.into_iter().map(complete).collect();
    schemas.insert("settings".into(), settings::settings_schema());
    schemas.insert("answers".into(), tribunal_agents::schema::answers_document());
    Ok(schemas)
}

/// Collects the names of the definitions that a schema needs, also inside of one another.
fn collect_definitions<'a>(schema: &Value, definitions: &'a Map<String, Value>, found_names: &mut BTreeSet<&'a str>) {
    match schema {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
            if let Some((name, definition)) = reference.and_then(|name| definitions.get_key_value(name))
                && found_names.insert(name)
            {
                collect_definitions(definition, definitions, found_names);
            }
            members.values().for_each(|member| collect_definitions(member, definitions, found_names));
        }
        Value::Array(elements) => {
            elements.iter().for_each(|element| collect_definitions(element, definitions, found_names));
        }
        _ => {}
    }
}

pub(crate) fn run(arguments: &SchemaArguments) -> Result<u8, UserError> {
    let schemas = read_schemas()?;
    let Some(schema_name) = &arguments.name else {
        json_documents::print_document(&json!({ "schema": "tribunal.schema/1", "schemas": schemas }))?;
        return Ok(0);
    };
    let Some(schema) = schemas.get(schema_name) else {
        let known_names: Vec<&str> = schemas.keys().map(String::as_str).collect();
        let mut user_error = UserError::usage(format!("unknown schema `{schema_name}`"))
            .with_reason(format!("Known schemas: {}.", known_names.join(", ")));
        if let Some(suggestion) = nearest_name(schema_name, &known_names) {
            user_error = user_error.with_step(format!("did you mean `{suggestion}`?"));
        }
        return Err(user_error);
    };
    json_documents::print_document(schema)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, env, fs, path::Path};

    use tribunal_json::schemars::schema_for;
    use tribunal_report::run_report::RunReport;
    use tribunal_workflows::{findings::finding::Finding, review::metrics::MetricsFile, runs::types::JournalEntry};

    use super::super::{
        doctor::DoctorReport,
        init::InitReport,
        inspect::{EpicsReport, MenuReport, ProjectReport, ResponseReport, SprintFileReport, StoryFileReport},
        loops::LoopPlanDocument,
        sprint::SprintPlanDocument,
        verify::VerifyDocument,
    };
    use super::*;
    use crate::{
        build_info::BuildFacts,
        messages::json_documents::{
            BoardMoves, CallsDocument, ChangesDocument, DecisionsDocument, DiscardDocument, FindingsDocument,
            GarbageDocument, InspectionDocument, LoopsDocument, RecoveryDocument, ReviewPlan, RunsDocument, StoryEdit,
            TranscriptsDocument, TrustDocument, UndoDocument, ValidationDocument,
        },
        settings::SettingsDocument,
    };

    /// Set, it writes the file that the test compares otherwise.
    const WRITE_VARIABLE: &str = "TRIBUNAL_WRITE_SCHEMAS";

    /// Takes out the kind of run that only tests have.
    fn remove_toy_kind(schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                members.retain(|name, _| !name.starts_with("Toy"));
                members.values_mut().for_each(remove_toy_kind);
            }
            Value::Array(elements) => {
                elements.iter_mut().for_each(remove_toy_kind);
                elements.retain(|element| !element.to_string().contains("\"#/$defs/Toy"));
            }
            _ => {}
        }
    }

    /// Makes the text of `schemas.json`: each schema and each definition stands in one line.
    fn derive_schemas() -> String {
        let schemas = [
            ("finding", schema_for!(Finding)),
            ("event", schema_for!(JournalEntry)),
            ("metrics", schema_for!(MetricsFile)),
            ("runs", schema_for!(RunsDocument)),
            // `runs` and `status` print the same document, as do `prompts` and `sent`.
            ("status", schema_for!(RunsDocument)),
            ("findings", schema_for!(FindingsDocument)),
            ("report", schema_for!(RunReport)),
            ("prompts", schema_for!(CallsDocument)),
            ("sent", schema_for!(CallsDocument)),
            ("board", schema_for!(BoardMoves)),
            ("inspect-epics", schema_for!(EpicsReport)),
            ("inspect-sprint", schema_for!(SprintFileReport)),
            ("story", schema_for!(StoryEdit)),
            ("inspect-story", schema_for!(StoryFileReport)),
            ("validate", schema_for!(ValidationDocument)),
            ("sprint-plan", schema_for!(SprintPlanDocument)),
            ("verify", schema_for!(VerifyDocument)),
            ("gc", schema_for!(GarbageDocument)),
            ("recover", schema_for!(RecoveryDocument)),
            ("init", schema_for!(InitReport)),
            ("decisions", schema_for!(DecisionsDocument)),
            ("diff", schema_for!(ChangesDocument)),
            ("undo", schema_for!(UndoDocument)),
            ("discard", schema_for!(DiscardDocument)),
            ("plan", schema_for!(ReviewPlan)),
            ("inspect", schema_for!(InspectionDocument)),
            ("version", schema_for!(BuildFacts)),
            ("transcript", schema_for!(TranscriptsDocument)),
            ("inspect-settings", schema_for!(SettingsDocument)),
            ("trust", schema_for!(TrustDocument)),
            ("doctor", schema_for!(DoctorReport)),
            ("response", schema_for!(ResponseReport)),
            ("project", schema_for!(ProjectReport)),
            ("menu", schema_for!(MenuReport)),
            ("loops", schema_for!(LoopsDocument)),
            ("loop-plan", schema_for!(LoopPlanDocument)),
        ];
        let mut schema_lines = BTreeMap::new();
        let mut definitions = BTreeMap::new();
        for (schema_name, schema) in schemas {
            let mut schema = schema.to_value();
            remove_toy_kind(&mut schema);
            if let Some(Value::Object(own_definitions)) = schema.as_object_mut().and_then(|it| it.remove(DEFINITIONS)) {
                for (name, definition) in own_definitions {
                    let definition_text = definition.to_string();
                    let known_text = definitions.entry(name.clone()).or_insert_with(|| definition_text.clone());
                    assert_eq!(*known_text, definition_text, "two types are called {name}: rename one for its schema");
                }
            }
            schema_lines.insert(schema_name.to_owned(), schema.to_string());
        }
        let format_lines = |lines: BTreeMap<String, String>| {
            let lines: Vec<String> = lines.into_iter().map(|(name, text)| format!("\"{name}\": {text}")).collect();
            lines.join(",\n")
        };
        let (definitions, schemas) = (format_lines(definitions), format_lines(schema_lines));
        format!("{{\n\"{DEFINITIONS}\": {{\n{definitions}\n}},\n\"schemas\": {{\n{schemas}\n}}\n}}\n")
    }

    #[test]
    fn the_schemas_are_those_of_the_types() {
        let derived_text = derive_schemas();
        if env::var_os(WRITE_VARIABLE).is_some() {
            let schema_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/schemas.json");
            return fs::write(schema_file, derived_text).unwrap();
        }
        let differing_line =
            derived_text.lines().zip(SCHEMA_TEXT.lines()).find(|(derived_line, line)| derived_line != line);
        assert!(
            derived_text == SCHEMA_TEXT,
            "schemas.json differs from the types, first here: {differing_line:#?}\n\
             what to do: {WRITE_VARIABLE}=1 cargo test -p tribunal --bin tribunal schema"
        );
    }

    #[test]
    fn a_schema_has_the_definitions_that_it_needs_and_no_others() {
        let schemas = read_schemas().unwrap();
        let finding = &schemas["finding"];
        let definitions: Vec<&String> = finding[DEFINITIONS].as_object().unwrap().keys().collect();
        assert!(definitions.iter().any(|name| *name == "Severity"), "{definitions:?}");
        assert!(!definitions.iter().any(|name| *name == "RunEvent"), "{definitions:?}");
        let names_missing = schemas.iter().any(|(_, schema)| {
            let mut needed_names = BTreeSet::new();
            let own_definitions = schema[DEFINITIONS].as_object().cloned().unwrap_or_default();
            collect_definitions(schema, &own_definitions, &mut needed_names);
            needed_names.len() != own_definitions.len()
        });
        assert!(!names_missing);
    }
}
