//! `tribunal schema [NAME]`: prints the JSON Schemas of everything that Tribunal reads and writes.

use schemars::schema_for;
use serde_json::{Map, Value, json};
use tribunal_core::{
    engine::event::JournalEntry,
    review::{finding::Finding, metrics::MetricsFile},
};
use tribunal_report::run_report::RunReport;

use super::{
    doctor::DoctorReport,
    init::InitReport,
    inspect::{EpicsReport, MenuReport, ProjectReport, ResponseReport, SprintFileReport, StoryFileReport},
    loops::LoopPlanDocument,
    sprint::SprintPlanDocument,
    verify::VerifyDocument,
};
use crate::{
    build_info::BuildFacts,
    messages::{
        json_documents::{
            self, BoardMoves, CallsDocument, ChangesDocument, DecisionsDocument, DiscardDocument, FindingsDocument,
            GarbageDocument, InspectionDocument, LoopsDocument, RecoveryDocument, ReviewPlan, RunsDocument, StoryEdit,
            TranscriptsDocument, TrustDocument, UndoDocument, ValidationDocument,
        },
        user_errors::UserError,
    },
    settings::{self, SettingsDocument, nearest_name},
};

#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArguments {
    /// Schema to print (default: all, in one document)
    name: Option<String>,
}

fn build_schemas() -> Vec<(&'static str, Value)> {
    // The schemas of settings and answers come from their tables; all others are derived from the types that are printed.
    let mut schemas =
        vec![("settings", settings::settings_schema()), ("answers", tribunal_agents::schema::answers_document())];
    let documents = [
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
    schemas.extend(documents.map(|(name, schema)| (name, schema.to_value())));
    schemas
}

pub(crate) fn run(arguments: &SchemaArguments) -> Result<u8, UserError> {
    let schemas = build_schemas();
    let Some(schema_name) = &arguments.name else {
        let schema_map: Map<String, Value> =
            schemas.into_iter().map(|(schema_name, schema)| (schema_name.to_string(), schema)).collect();
        json_documents::print_document(&json!({ "schema": "tribunal.schema/1", "schemas": schema_map }))?;
        return Ok(0);
    };
    let known_names: Vec<&str> = schemas.iter().map(|(known_name, _)| *known_name).collect();
    let Some((_, schema)) = schemas.iter().find(|(known_name, _)| known_name == schema_name) else {
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
