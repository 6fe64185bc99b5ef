//! The layers of settings, the weakest first: built-in defaults, the user's file, BMAD's file, the project's file, the
//! environment, flags. Every value keeps its origin.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_bmad::CONFIG_PATH;
pub(crate) use tribunal_runner::project::SETTINGS_FILE;
use tribunal_runner::project::SettingsFileChoice;

use super::{
    file_reader::{self, FileReading, ReadMode, SettingProblem},
    kind::SettingValue,
    nearest_name,
    origin::{SettingLayer, SettingOrigin},
    table::{self, NAME_PART},
    typed::TypedSettings,
};
use crate::messages::user_errors::UserError;

/// The sources besides the project; see `context`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingSources {
    /// The user's own file, whether it exists or not.
    pub user_file: Option<PathBuf>,
    /// Variables whose names begin with [`VARIABLE_PREFIX`].
    pub variables: Vec<(String, String)>,
    pub flags: Vec<SettingFlag>,
    /// The user's home directory, which `~` stands for.
    pub home_dir: Option<PathBuf>,
}

/// One setting from the command line.
#[derive(Clone, Debug)]
pub(crate) struct SettingFlag {
    /// The flag as it was typed, for instance `--tier`.
    pub flag_name: String,
    pub setting_path: String,
    pub flag_value: String,
}

/// The prefix of variables that are settings.
pub(crate) const VARIABLE_PREFIX: &str = "TRIBUNAL_";

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SourcedValue {
    pub value: SettingValue,
    pub origin: SettingOrigin,
}

/// The result of all layers.
#[derive(Clone, Debug, Default)]
pub(crate) struct EffectiveSettings {
    pub values: BTreeMap<String, SourcedValue>,
    /// Whether the project has BMAD's file.
    pub has_bmad: bool,
    /// The project's settings file; `None` without a project.
    pub project_file: Option<SettingsFileChoice>,
}

impl EffectiveSettings {
    /// The built-in defaults.
    pub fn from_defaults() -> EffectiveSettings {
        let mut effective = EffectiveSettings::default();
        let default_origin =
            || SettingOrigin { layer: SettingLayer::Default, source_name: String::new(), line_number: None };
        let defaults = TypedSettings::default();
        for setting_row in table::all_rows() {
            if let Some(default_value) = setting_row.default_value(&defaults) {
                effective.values.insert(
                    setting_row.path.to_string(),
                    SourcedValue { value: default_value, origin: default_origin() },
                );
            }
        }
        effective
    }

    /// Every value in the field that its setting fills. Fields of unset settings keep their defaults.
    pub fn to_typed(&self) -> TypedSettings {
        let mut typed_settings = TypedSettings::default();
        for setting_row in table::all_rows() {
            if let Some(setting_value) = self.value_at(setting_row.path) {
                setting_row.apply_value(setting_value, &mut typed_settings);
            }
        }
        typed_settings
    }

    /// Adds the settings of a file; they replace those of weaker layers.
    pub(super) fn apply_reading(&mut self, setting_layer: SettingLayer, file_name: &str, file_reading: FileReading) {
        // A layer that defines an agent defines all of it: keys of another definition with the same name must not mix in.
        let agent_prefixes: Vec<String> = file_reading
            .settings
            .iter()
            .filter_map(|found_setting| agent_prefix(&found_setting.canonical_path))
            .collect();
        // The old keys go before the new ones come, in one step for all agents of the file.
        self.values.retain(|setting_path, _| !agent_prefixes.iter().any(|prefix| setting_path.starts_with(prefix)));
        for found_setting in file_reading.settings {
            let origin = SettingOrigin {
                layer: setting_layer,
                source_name: file_name.to_string(),
                line_number: Some(found_setting.line_number),
            };
            self.values
                .insert(found_setting.canonical_path, SourcedValue { value: found_setting.setting_value, origin });
        }
    }

    /// The name of the file that a user would edit to change a setting of the project.
    pub fn project_file_name(&self) -> &'static str {
        self.project_file.map_or(SETTINGS_FILE, |file_choice| file_choice.file_name)
    }

    /// Warns that the project has a second settings file, which is not read.
    pub fn ignored_file_warning(&self) -> Option<String> {
        let SettingsFileChoice { file_name, ignored_name } = self.project_file?;
        ignored_name.map(|ignored_name| describe_ignored_file(file_name, ignored_name))
    }

    pub fn value_at(&self, setting_path: &str) -> Option<&SettingValue> {
        self.values.get(setting_path).map(|sourced_value| &sourced_value.value)
    }

    /// Whether the user has set it, in any layer.
    pub fn is_set(&self, setting_path: &str) -> bool {
        self.origin_of(setting_path).is_some_and(|origin| origin.layer != SettingLayer::Default)
    }

    pub fn origin_of(&self, setting_path: &str) -> Option<&SettingOrigin> {
        self.values.get(setting_path).map(|sourced_value| &sourced_value.origin)
    }
}

/// Says that one of two settings files is not read, and what to do about it.
pub(crate) fn describe_ignored_file(file_name: &str, ignored_name: &str) -> String {
    format!("{ignored_name} is ignored because {file_name} exists; move its settings to {file_name} and delete it")
}

/// The text at a path, if it is set to one.
pub(super) fn text_setting<'a>(effective: &'a EffectiveSettings, setting_path: &str) -> Option<&'a str> {
    match effective.value_at(setting_path) {
        Some(SettingValue::Text(setting_text)) => Some(setting_text),
        _ => None,
    }
}

/// The list at a path; empty if it is not set.
pub(super) fn list_setting(effective: &EffectiveSettings, setting_path: &str) -> Vec<String> {
    match effective.value_at(setting_path) {
        Some(SettingValue::List(items)) => items.clone(),
        _ => Vec::new(),
    }
}

/// Describes where a setting was set.
pub(super) fn describe_origin(effective: &EffectiveSettings, setting_path: &str) -> String {
    effective.origin_of(setting_path).map_or_else(|| "the settings".to_string(), ToString::to_string)
}

/// The prefix of an agent's settings: `agents.mine.` for `agents.mine.argv`.
fn agent_prefix(setting_path: &str) -> Option<String> {
    let (agent_name, _) = setting_path.strip_prefix("agents.")?.split_once('.')?;
    Some(format!("agents.{agent_name}."))
}

/// Folds all layers. All problems of all of them become one error.
pub(crate) fn gather_settings(project_root: &Path, sources: &SettingSources) -> Result<EffectiveSettings, UserError> {
    fold_layers(Some(project_root), sources)
}

/// The settings of one text alone, as if it were the project's file.
pub(super) fn from_project_text(file_name: &str, settings_text: &str) -> EffectiveSettings {
    let mut effective = EffectiveSettings::default();
    effective.apply_reading(
        SettingLayer::Project,
        file_name,
        file_reader::read_settings(file_name, settings_text, ReadMode::Strict),
    );
    effective
}

/// Only what the user set outside any project.
pub(crate) fn gather_user_settings(sources: &SettingSources) -> Result<EffectiveSettings, UserError> {
    fold_layers(None, sources)
}

/// Folds the layers, with the project's files if there is a root.
fn fold_layers(project_root: Option<&Path>, sources: &SettingSources) -> Result<EffectiveSettings, UserError> {
    let mut effective = EffectiveSettings::from_defaults();
    effective.project_file = project_root.map(SettingsFileChoice::from_root);
    let project_file_name = effective.project_file_name();
    let mut problems = Vec::new();
    // Later layers win over earlier ones.
    let layer_files = [
        (SettingLayer::User, sources.user_file.clone(), ReadMode::Strict),
        (SettingLayer::Bmad, project_root.map(|project_root| project_root.join(CONFIG_PATH)), ReadMode::Lenient),
        (
            SettingLayer::Project,
            project_root.map(|project_root| project_root.join(project_file_name)),
            ReadMode::Strict,
        ),
    ];
    for (setting_layer, file_path, read_mode) in layer_files {
        // A missing file is an empty layer.
        let Some((source_name, source_text)) =
            file_path.map(|file_path| read_settings_file(&file_path)).transpose()?.flatten()
        else {
            continue;
        };
        let mut file_reading = file_reader::read_settings(&source_name, &source_text, read_mode);
        // Problems are collected, not returned at once: the user wants to see all of them.
        problems.append(&mut file_reading.problems);
        effective.has_bmad |= setting_layer == SettingLayer::Bmad;
        effective.apply_reading(setting_layer, &source_name, file_reading);
    }
    for (variable_name, variable_text) in &sources.variables {
        apply_variable(&mut effective, variable_name, variable_text, &mut problems);
    }
    for setting_flag in &sources.flags {
        apply_flag(&mut effective, setting_flag, &mut problems);
    }
    match file_reader::problems_to_error(&problems) {
        Some(user_error) => Err(user_error),
        None => Ok(effective),
    }
}

/// Reads a settings file. `None` if it does not exist.
pub(super) fn read_settings_file(file_path: &Path) -> Result<Option<(String, String)>, UserError> {
    let file_name = file_path.display().to_string();
    let unusable_file = |problem_text: &str| {
        UserError::usage(format!("{file_name} {problem_text}"))
            .with_reason("Nothing was started.")
            .with_step("make it a readable UTF-8 file, or remove it")
    };
    // Reading a pipe would never end, and a dangling link was meant to lead somewhere.
    match (fs::metadata(file_path), fs::symlink_metadata(file_path)) {
        (Ok(file_metadata), _) if !file_metadata.is_file() => return Err(unusable_file("is not a file")),
        (Err(_), Ok(_)) => return Err(unusable_file("is a broken symbolic link")),
        _ => {}
    }
    match fs::read_to_string(file_path) {
        Ok(file_text) => Ok(Some((file_name, file_text))),
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(cause) => Err(UserError::usage(format!("{file_name} cannot be read: {cause}"))
            .with_reason("Nothing was started.")
            .with_step("make it a readable UTF-8 file, or remove it")),
    }
}

/// Applies a variable: `TRIBUNAL_LIMITS__MAX_COST` is `limits.max_cost`. A name without `__` that is no setting is ignored.
pub(super) fn apply_variable(
    effective: &mut EffectiveSettings,
    variable_name: &str,
    variable_text: &str,
    problems: &mut Vec<SettingProblem>,
) {
    let Some(unprefixed_name) = variable_name.strip_prefix(VARIABLE_PREFIX) else { return };
    let written_path = unprefixed_name.to_lowercase().replace("__", ".");
    // Names of variables are upper case, so paths with capitals are compared without case.
    let known_path = table::all_rows()
        .find(|setting_row| setting_row.path.to_lowercase() == written_path)
        .map(|setting_row| setting_row.path.to_string());
    let setting_path = known_path.or_else(|| table::find_setting(&written_path).map(|_| written_path.clone()));
    match setting_path {
        Some(setting_path) => {
            let origin = SettingOrigin {
                layer: SettingLayer::Environment,
                source_name: variable_name.to_string(),
                line_number: None,
            };
            apply_text(effective, &setting_path, variable_text, origin, problems);
        }
        // Other programs may use the prefix, too; only a double underscore shows that a setting is meant.
        None if !unprefixed_name.contains("__") => {}
        None => {
            let known_variables: Vec<String> = table::all_rows()
                .filter(|setting_row| !setting_row.path.contains(NAME_PART))
                .map(|setting_row| variable_name_of(setting_row.path))
                .collect();
            let variable_names: Vec<&str> = known_variables.iter().map(String::as_str).collect();
            let suggestion =
                nearest_name(variable_name, &variable_names).map(|known_name| format!("did you mean `{known_name}`?"));
            problems.push(SettingProblem {
                place: format!("environment variable {variable_name}"),
                line_number: None,
                message: format!("unknown setting `{written_path}`"),
                source_line: None,
                hint: suggestion.or_else(|| Some(format!("remove it: `unset {variable_name}`"))),
            });
        }
    }
}

/// The name of a setting's variable.
pub(crate) fn variable_name_of(setting_path: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", setting_path.to_uppercase().replace('.', "__"))
}

/// Applies a flag.
fn apply_flag(effective: &mut EffectiveSettings, setting_flag: &SettingFlag, problems: &mut Vec<SettingProblem>) {
    let origin =
        SettingOrigin { layer: SettingLayer::Flags, source_name: setting_flag.flag_name.clone(), line_number: None };
    if table::find_setting(&setting_flag.setting_path).is_some() {
        return apply_text(effective, &setting_flag.setting_path, &setting_flag.flag_value, origin, problems);
    }
    let known_paths: Vec<&str> =
        table::all_rows().map(|row| row.path).filter(|known_path| !known_path.contains(NAME_PART)).collect();
    let (parent_path, last_key) =
        setting_flag.setting_path.rsplit_once('.').unwrap_or(("", &setting_flag.setting_path));
    let (message, hint) = file_reader::describe_unknown_key(parent_path, last_key);
    // The whole path is compared first; the key alone may exist in several sections.
    let suggestion = nearest_name(&setting_flag.setting_path, &known_paths)
        .map(|known_path| format!("did you mean `{known_path}`?"));
    problems.push(SettingProblem {
        place: setting_flag.flag_name.clone(),
        line_number: None,
        message,
        source_line: None,
        hint: suggestion.or(hint).or_else(|| Some("list all settings: `tribunal inspect settings`".into())),
    });
}

/// Applies the text of a variable or a flag.
fn apply_text(
    effective: &mut EffectiveSettings,
    setting_path: &str,
    value_text: &str,
    origin: SettingOrigin,
    problems: &mut Vec<SettingProblem>,
) {
    let Some((spelling, canonical_path)) = table::find_setting(setting_path) else { return };
    match spelling.kind.read_text_source(value_text) {
        Ok(Some(parsed_value)) => {
            effective.values.insert(canonical_path, SourcedValue { value: parsed_value, origin });
        }
        // The text leaves the choice to Tribunal, as `auto-suggest` does.
        Ok(None) => {}
        Err(value_error) => problems.push(SettingProblem {
            place: origin.source_name,
            line_number: None,
            message: value_error.describe(setting_path, spelling.kind),
            source_line: None,
            hint: value_error.hint,
        }),
    }
}
