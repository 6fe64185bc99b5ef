//! Finds what in the settings would run something or give a client more rights, and where it came from.
//!
//! `trust` decides whether it may.

use tribunal_core::{ids::Hash, settings::Settings};

use super::{
    kind::Value,
    layers::{self, Effective},
    origin::Layer,
};
use crate::trust_item::{Item, Licence};

/// The items of a run's settings that would run a command and came with the project.
pub(super) fn items(effective: &Effective, settings: &Settings) -> Vec<Item> {
    let from_project =
        |path: &str| effective.origin(path).is_some_and(|origin| origin.layer.is_the_project_s());
    let mut items = Item::of(settings);
    // Each item is traced back to the setting that defines it.
    items.retain(|item| {
        from_project(&match item {
            Item::Agent { name, .. } => format!("agents.{name}.argv"),
            Item::Client { name, .. } => format!("agents.{name}.program"),
            Item::Licence { name, what: Licence::Bypass } => format!("agents.{name}.bypass"),
            Item::Licence { name, what: Licence::Tool(_) } => format!("agents.{name}.allow"),
            Item::Licence { name, what: Licence::ProjectSettings } => format!("agents.{name}.inherit"),
            Item::Server { name, .. } => format!("mcp.{name}.argv"),
            // Hooks come from files, not from settings, so they never get here.
            Item::Verify { .. } | Item::Hook { .. } => "verify".to_string(),
        })
    });
    items
}

/// Everything in the project's files that could run a command, whether a run uses it or not.
pub(crate) fn all_items(effective: &Effective) -> Vec<Item> {
    items_where(effective, Layer::is_the_project_s)
}

/// The hashes of what the user set outside any project.
pub(crate) fn person_s_items(effective: &Effective) -> Vec<Hash> {
    items_where(effective, |layer| !layer.is_the_project_s()).iter().map(Item::hash).collect()
}

/// The items that were set in the wanted layers.
fn items_where(effective: &Effective, wanted: impl Fn(Layer) -> bool) -> Vec<Item> {
    let set = effective.values.iter().filter(|(_, setting)| wanted(setting.origin.layer));
    set.flat_map(|(path, setting)| items_at(path, &setting.value)).collect()
}

/// The items that one setting defines.
fn items_at(path: &str, value: &Value) -> Vec<Item> {
    let licence = |name: &str, what| Item::Licence { name: name.to_string(), what };
    // `agents.a.b.argv` belongs to the agent `a.b`: only the last part is the key.
    let whose = path.split_once('.').and_then(|(section, rest)| Some((section, rest.rsplit_once('.')?)));
    match (whose, value) {
        (None, Value::List(list)) if path == "verify" => {
            list.iter().map(|command| Item::Verify { command: command.clone() }).collect()
        }
        (Some(("agents", (name, "argv"))), Value::List(argv)) => {
            vec![Item::Agent { name: name.to_string(), argv: argv.clone() }]
        }
        (Some(("agents", (name, "program"))), Value::Text(program)) => {
            vec![Item::Client { name: name.to_string(), program: program.clone() }]
        }
        (Some(("agents", (name, "bypass"))), Value::Flag(true)) => vec![licence(name, Licence::Bypass)],
        (Some(("agents", (name, "inherit"))), Value::Text(word)) if word == "project" => {
            vec![licence(name, Licence::ProjectSettings)]
        }
        (Some(("agents", (name, "allow"))), Value::List(tools)) => {
            tools.iter().map(|tool| licence(name, Licence::Tool(tool.clone()))).collect()
        }
        (Some(("mcp", (name, "argv"))), Value::List(argv)) => {
            vec![Item::Server { name: name.to_string(), argv: argv.clone() }]
        }
        _ => Vec::new(),
    }
}

/// The items of a text that is not a file of this project.
pub(crate) fn items_of_text(name: &str, text: &str) -> Vec<Item> {
    all_items(&layers::of_text(name, text))
}
