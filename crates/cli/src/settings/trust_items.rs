//! Finds what in the settings would run something or give a client more rights, and where it came from.
//!
//! `trust` decides whether it may.

use tribunal_engine::ids::Hash;
use tribunal_workflows::{development::checks::CommandLine, runs::settings::Settings};

use super::{
    kind::SettingValue,
    layers::{self, EffectiveSettings},
    origin::SettingLayer,
};
use crate::trust::trust_item::{ClientLicence, CommandPurpose, SandboxOpening, TrustItem};

/// The items of a run's settings that would run a command and came with the project.
pub(super) fn project_items(effective: &EffectiveSettings, settings: &Settings) -> Vec<TrustItem> {
    let is_from_project = |setting_path: &str| {
        effective.origin_of(setting_path).is_some_and(|setting_origin| setting_origin.layer.is_from_project())
    };
    // A command may be in several settings; it came with the project if one of them did.
    let is_command_from_project = |purpose: CommandPurpose, command: &CommandLine| {
        purpose.setting_paths().iter().any(|setting_path| {
            is_from_project(setting_path)
                && effective.value_at(setting_path).is_some_and(|value| commands_of_value(value).contains(&command))
        })
    };
    let mut trust_list = TrustItem::from_settings(settings);
    // Each item is traced back to the setting that defines it.
    trust_list.retain(|trust_item| {
        is_from_project(&match trust_item {
            TrustItem::Command { purpose, command } => return is_command_from_project(*purpose, command),
            TrustItem::Agent { agent_name: owner_name, .. } => format!("agents.{owner_name}.argv"),
            TrustItem::Client { agent_name: owner_name, .. } => format!("agents.{owner_name}.program"),
            TrustItem::Licence { agent_name: owner_name, licence: ClientLicence::Bypass } => {
                format!("agents.{owner_name}.bypass")
            }
            TrustItem::Licence { agent_name: owner_name, licence: ClientLicence::Tool(_) } => {
                format!("agents.{owner_name}.allow")
            }
            TrustItem::Licence { agent_name: owner_name, licence: ClientLicence::ProjectSettings } => {
                format!("agents.{owner_name}.inherit")
            }
            TrustItem::McpServer { server_name: owner_name, .. } => format!("mcp.{owner_name}.argv"),
            TrustItem::Sandbox(opening) => opening.setting_path().to_string(),
            // Hooks come from files and not from settings.
            TrustItem::Hook { .. } | TrustItem::CommitHook { .. } => return false,
        })
    });
    trust_list
}

/// Everything in the project's files that could run a command, whether a run uses it or not.
pub(crate) fn all_project_items(effective: &EffectiveSettings) -> Vec<TrustItem> {
    items_of_layers(effective, SettingLayer::is_from_project)
}

/// The hashes of what the user set outside any project.
pub(crate) fn user_item_hashes(effective: &EffectiveSettings) -> Vec<Hash> {
    items_of_layers(effective, |setting_layer| !setting_layer.is_from_project())
        .iter()
        .map(TrustItem::content_hash)
        .collect()
}

/// The items that were set in the wanted layers.
fn items_of_layers(effective: &EffectiveSettings, is_wanted: impl Fn(SettingLayer) -> bool) -> Vec<TrustItem> {
    let matching_settings = effective.values.iter().filter(|(_, sourced_value)| is_wanted(sourced_value.origin.layer));
    matching_settings
        .flat_map(|(setting_path, sourced_value)| items_of_setting(setting_path, &sourced_value.value))
        .collect()
}

/// The items that one setting defines.
fn items_of_setting(setting_path: &str, setting_value: &SettingValue) -> Vec<TrustItem> {
    let make_licence = |owner_name: &str, licence_kind| TrustItem::Licence {
        agent_name: owner_name.to_string(),
        licence: licence_kind,
    };
    if let Some(purpose) = CommandPurpose::of_setting(setting_path) {
        let commands = commands_of_value(setting_value).into_iter();
        return commands.map(|command| TrustItem::Command { purpose, command: command.clone() }).collect();
    }
    match (setting_path, setting_value) {
        ("sandbox.mode", SettingValue::Text(mode)) if mode == "off" => {
            return vec![TrustItem::Sandbox(SandboxOpening::Off)];
        }
        ("sandbox.write", SettingValue::List(paths)) => {
            return paths.iter().cloned().map(SandboxOpening::Path).map(TrustItem::Sandbox).collect();
        }
        ("workspace.root", SettingValue::Text(directory)) => {
            return vec![TrustItem::Sandbox(SandboxOpening::ClonesRoot(directory.clone()))];
        }
        _ => {}
    }
    // The first part of a path is its section and the last one its key; the name is between them.
    let path_owner = setting_path
        .split_once('.')
        .and_then(|(path_section, owner_path)| Some((path_section, owner_path.rsplit_once('.')?)));
    match (path_owner, setting_value) {
        (Some(("agents", (owner_name, "argv"))), SettingValue::List(arguments)) => {
            vec![TrustItem::Agent { agent_name: owner_name.to_string(), argv: arguments.clone() }]
        }
        (Some(("agents", (owner_name, "program"))), SettingValue::Text(program_name)) => {
            vec![TrustItem::Client { agent_name: owner_name.to_string(), program: program_name.clone() }]
        }
        (Some(("agents", (owner_name, "bypass"))), SettingValue::Flag(true)) => {
            vec![make_licence(owner_name, ClientLicence::Bypass)]
        }
        (Some(("agents", (owner_name, "inherit"))), SettingValue::Text(inherit_word)) if inherit_word == "project" => {
            vec![make_licence(owner_name, ClientLicence::ProjectSettings)]
        }
        (Some(("agents", (owner_name, "allow"))), SettingValue::List(tool_names)) => tool_names
            .iter()
            .map(|tool_name| make_licence(owner_name, ClientLicence::Tool(tool_name.clone())))
            .collect(),
        (Some(("mcp", (owner_name, "argv"))), SettingValue::List(arguments)) => {
            vec![TrustItem::McpServer { server_name: owner_name.to_string(), argv: arguments.clone() }]
        }
        _ => Vec::new(),
    }
}

/// The commands in a value.
fn commands_of_value(setting_value: &SettingValue) -> Vec<&CommandLine> {
    match setting_value {
        SettingValue::Command(command) => vec![command],
        SettingValue::Commands(commands) => commands.iter().collect(),
        SettingValue::Checks(checks) => checks.iter().map(|check| &check.command).collect(),
        _ => Vec::new(),
    }
}

/// The items of a text that is not a file of this project.
pub(crate) fn items_of_text(file_name: &str, settings_text: &str) -> Vec<TrustItem> {
    all_project_items(&layers::from_project_text(file_name, settings_text))
}
