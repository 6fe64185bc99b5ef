//! `tribunal schema [NAME]`: prints the JSON Schemas of everything that Tribunal reads and writes.

use schemars::schema_for;
use serde_json::{Map, Value, json};
use tribunal_core::{event::Entry, finding::Finding, metrics::MetricsFile};

use super::{
    doctor::Report,
    init::Init,
    inspect::{Menus, ProjectReport, Response, SprintFile, StoryFile},
};
use crate::{
    build::Facts,
    complaint::Complaint,
    documents::{
        self, Calls, Changes, Decisions, Findings, Garbage, Inspection, Loops, Moves, Plan, Runs, StoryEdit,
        Transcripts, Trust, Undo, Validation,
    },
    settings::{self, Document, nearest},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// One of them; else all, in one document
    name: Option<String>,
}

fn schemas() -> Vec<(&'static str, Value)> {
    // The settings' schema comes from their table; all others are derived from the types that are printed.
    let mut schemas = vec![("settings", settings::schema())];
    let documents = [
        ("finding", schema_for!(Finding)),
        ("event", schema_for!(Entry)),
        ("metrics", schema_for!(MetricsFile)),
        ("runs", schema_for!(Runs)),
        // `runs` and `status` print the same document, as do `prompts` and `sent`.
        ("status", schema_for!(Runs)),
        ("findings", schema_for!(Findings)),
        ("prompts", schema_for!(Calls)),
        ("sent", schema_for!(Calls)),
        ("board", schema_for!(Moves)),
        ("inspect-sprint", schema_for!(SprintFile)),
        ("story", schema_for!(StoryEdit)),
        ("inspect-story", schema_for!(StoryFile)),
        ("validate", schema_for!(Validation)),
        ("gc", schema_for!(Garbage)),
        ("init", schema_for!(Init)),
        ("decisions", schema_for!(Decisions)),
        ("diff", schema_for!(Changes)),
        ("undo", schema_for!(Undo)),
        ("plan", schema_for!(Plan)),
        ("inspect", schema_for!(Inspection)),
        ("version", schema_for!(Facts)),
        ("transcript", schema_for!(Transcripts)),
        ("inspect-settings", schema_for!(Document)),
        ("trust", schema_for!(Trust)),
        ("doctor", schema_for!(Report)),
        ("response", schema_for!(Response)),
        ("project", schema_for!(ProjectReport)),
        ("menu", schema_for!(Menus)),
        ("loops", schema_for!(Loops)),
    ];
    schemas.extend(documents.map(|(name, schema)| (name, schema.to_value())));
    schemas
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8, Complaint> {
    let schemas = schemas();
    let Some(name) = &arguments.name else {
        let all: Map<String, Value> =
            schemas.into_iter().map(|(name, schema)| (name.to_string(), schema)).collect();
        documents::print(&json!({ "schema": "tribunal.schema/1", "schemas": all }))?;
        return Ok(0);
    };
    let names: Vec<&str> = schemas.iter().map(|(name, _)| *name).collect();
    let Some((_, schema)) = schemas.iter().find(|(known, _)| known == name) else {
        let mut complaint = Complaint::usage(format!("there is no schema `{name}`"))
            .why(format!("There are {}.", names.join(", ")));
        if let Some(near) = nearest(name, &names) {
            complaint = complaint.todo(format!("did you mean `{near}`?"));
        }
        return Err(complaint);
    };
    documents::print(schema)?;
    Ok(0)
}
