//! Tests of every row: its default is the field's own, and its value reaches the code that uses it.

use std::path::Path;

use tribunal_workflows::findings::subject::Subject;

use super::{
    super::{
        hooks::resolve_hook_settings,
        inputs::RunInputs,
        kind::{SettingValue, ValueKind},
        layers::{EffectiveSettings, SETTINGS_FILE, variable_name_of},
        resolve::{
            ResolvedSettings, resolve_loop_settings, resolve_settings, resolve_sprint_settings, resolve_story_settings,
        },
        show::default_as_written,
        table::{self, RowTarget, SettingRow},
        typed::TypedSettings,
    },
    project_with_files,
};

fn parse_value(value_kind: ValueKind, value_text: &str) -> SettingValue {
    value_kind
        .read_text_source(value_text)
        .ok()
        .flatten()
        .unwrap_or_else(|| panic!("{value_text} is no value of {value_kind:?}"))
}

#[test]
fn the_shown_default_is_the_default_of_the_field() {
    let typed_defaults = TypedSettings::default();
    let shown_defaults = EffectiveSettings::from_defaults();
    assert_eq!(shown_defaults.to_typed(), typed_defaults);
    for setting_row in table::all_rows() {
        let row_default = setting_row.default_value(&typed_defaults);
        assert_eq!(shown_defaults.value_at(setting_row.path), row_default.as_ref(), "{}", setting_row.path);
        // The default can be written into a file without changing anything, so it is in the allowed range, too.
        let written_value =
            default_as_written(setting_row.path).map(|default_text| parse_value(setting_row.kind, &default_text));
        assert_eq!(written_value, row_default, "{}", setting_row.path);
        if let RowTarget::Unused { default_text } = setting_row.target {
            assert_eq!(row_default.is_none(), default_text.is_empty(), "{}", setting_row.path);
        }
    }
}

/// Values that this kind allows, with all its words.
fn allowed_values(value_kind: ValueKind) -> Vec<String> {
    let value_texts: &[&str] = match value_kind {
        ValueKind::Whole { minimum, maximum } => return vec![minimum.to_string(), maximum.to_string()],
        ValueKind::Words(allowed_words) => allowed_words,
        ValueKind::ListOf(allowed_words) => {
            return allowed_words.iter().map(|word| format!("[{word}]")).collect();
        }
        ValueKind::TierOrSuggested => &["1", "3"],
        ValueKind::Seconds { .. } | ValueKind::Minutes => &["7", "1440"],
        ValueKind::Percent => &["0", "50"],
        ValueKind::Fraction => &["0.5"],
        ValueKind::Cost => &["2.50"],
        ValueKind::Flag => &["true", "false"],
        ValueKind::Text | ValueKind::TextOrFalse | ValueKind::SingleName | ValueKind::Folder => &["other"],
        ValueKind::List | ValueKind::Argv | ValueKind::Commands | ValueKind::Checks => &["[other]"],
        ValueKind::Command => &["other", "[other, word]"],
        ValueKind::Network { allows_none: true } => &["all", "none", "[443, 80]"],
        ValueKind::Network { allows_none: false } => &["all", "[443]"],
    };
    value_texts.iter().map(ToString::to_string).collect()
}

#[test]
fn a_field_returns_the_value_that_its_row_wrote() {
    let typed_defaults = TypedSettings::default();
    for setting_row in table::all_rows() {
        let RowTarget::Field(field) = setting_row.target else { continue };
        for value_text in allowed_values(setting_row.kind) {
            let parsed_value = parse_value(setting_row.kind, &value_text);
            let mut changed_settings = typed_defaults.clone();
            setting_row.apply_value(&parsed_value, &mut changed_settings);
            assert_eq!(
                (field.read)(&changed_settings),
                Some(parsed_value.clone()),
                "{}: {value_text}",
                setting_row.path
            );
            let is_default = (field.read)(&typed_defaults) == Some(parsed_value);
            assert_eq!(changed_settings == typed_defaults, is_default, "{}: {value_text}", setting_row.path);
            // No other field changes: two rows never fill one field.
            for other_row in table::all_rows().filter(|other_row| other_row.path != setting_row.path) {
                assert_eq!(
                    other_row.default_value(&changed_settings),
                    other_row.default_value(&typed_defaults),
                    "{}: {}",
                    setting_row.path,
                    other_row.path
                );
            }
        }
    }
}

/// Agents for which this setting makes a difference.
fn agents_yaml_for(setting_path: &str) -> &'static str {
    match setting_path {
        "agents.NAME.argv" => "agents: {mine: {driver: command, argv: [x]}}\n",
        "agents.NAME.script" => "agents: {mine: {driver: replay, script: script.yaml}}\n",
        "mcp.NAME.roles" => "agents: {mine: {driver: claude-code}}\nmcp: {mine: {argv: [x]}}\n",
        _ => "agents:\n  use: [mine]\n  mine: {driver: claude-code}\n  other: {driver: codex}\n",
    }
}

/// A value other than the default, as it would be written.
pub(super) fn different_value(setting_row: &SettingRow, default: Option<&SettingValue>) -> String {
    match setting_row.path {
        "agents.NAME.driver" => "codex".to_string(),
        "agents.NAME.script" => "other.yaml".to_string(),
        "agents.NAME.allow" => "[Read]".to_string(),
        "workspace.root" => "/srv/clones".to_string(),
        _ => {
            let mut value_texts = allowed_values(setting_row.kind).into_iter();
            let other_text = value_texts.find(|text| Some(&parse_value(setting_row.kind, text)) != default);
            other_text.unwrap_or_else(|| panic!("{} can only be its default", setting_row.path))
        }
    }
}

/// The tier at which a setting for a complexity counts.
fn tier_for(path_parts: &[&str]) -> &'static str {
    match path_parts.get(2).filter(|_| path_parts.contains(&"complexityOverrides")) {
        Some(&("low" | "1")) => "1",
        Some(&"0") => "0",
        Some(&"3") => "3",
        Some(&("high" | "4")) => "4",
        _ => "2",
    }
}

/// Everything that settings lead to, for a review, for a loop and for hooks.
fn resolve_everything(project_root: &Path, inputs: &RunInputs) -> String {
    let resolution = match resolve_settings(project_root, Subject::from_path("plan.md", None), inputs) {
        Ok(resolution) => resolution,
        // A setting may also keep a review from starting.
        Err(user_error) => return user_error.to_string(),
    };
    let hook_settings =
        resolve_hook_settings(project_root, &inputs.sources).unwrap_or_else(|user_error| panic!("{user_error}"));
    let resolved_loop = resolve_loop_settings(project_root, inputs).unwrap_or_else(|user_error| panic!("{user_error}"));
    let (loop_order, loop_choices) = (resolved_loop.settings.plan.order, resolved_loop.choices);
    let story_order =
        resolve_story_settings(project_root, inputs).unwrap_or_else(|user_error| panic!("{user_error}")).plan.order;
    let sprint_order =
        resolve_sprint_settings(project_root, inputs).unwrap_or_else(|user_error| panic!("{user_error}")).plan.order;
    let ResolvedSettings { plan, progress, fail_on, share, .. } = resolution;
    format!(
        "{plan:?} {progress:?} {fail_on:?} {share:?} {hook_settings:?} {loop_order:?} {loop_choices:?} {story_order:?} \
         {sprint_order:?}"
    )
}

#[test]
fn every_used_setting_changes_the_resolved_settings() {
    let typed_defaults = TypedSettings::default();
    let mut checked_count = 0;
    for setting_row in table::all_rows().filter(|setting_row| setting_row.is_used()) {
        let directory = project_with_files(&[
            (SETTINGS_FILE, agents_yaml_for(setting_row.path)),
            ("script.yaml", ""),
            ("other.yaml", ""),
        ]);
        let new_value = different_value(setting_row, setting_row.default_value(&typed_defaults).as_ref());
        for path_parts in table::expand_path(setting_row.path) {
            let setting_path = path_parts.join(".").replace(table::NAME_PART, "mine");
            let inputs_before =
                RunInputs::default().with_flag("--tier", "tier", Some(tier_for(&path_parts).to_string()));
            let mut inputs_after = inputs_before.clone();
            if setting_path.starts_with("hooks.") {
                // Clients start hooks, so there are no flags for them.
                inputs_after.sources.variables.push((variable_name_of(&setting_path), new_value.clone()));
            } else {
                inputs_after = inputs_after.with_set_flags(&[format!("{setting_path}={new_value}")]).unwrap();
            }
            let (settings_before, settings_after) = (
                resolve_everything(directory.path(), &inputs_before),
                resolve_everything(directory.path(), &inputs_after),
            );
            assert_ne!(settings_before, settings_after, "`{setting_path}` is used, and `{new_value}` changes nothing");
            checked_count += 1;
        }
    }
    assert!(checked_count > table::all_rows().filter(|row| row.is_used()).count());
}
