//! Shows the settings in force to users and programs: every value, where it comes from and what it may be.

use std::fmt::Write;

use serde_json::Value as Json;
use tribunal_bmad::ROSTER_PATH;
use tribunal_engine::text::truncate_chars;
use tribunal_json::{Serialize, schemars};
use tribunal_report::{Screen, TextStyle, escape_line};

use super::{
    file_reader::{FileReading, SettingProblem},
    kind::{SettingValue, ValueKind, json_in_unit},
    layers::{EffectiveSettings, variable_name_of},
    origin::{SettingLayer, SettingOrigin},
    resolve::SettingsSurvey,
    table::{self, SettingRow},
    typed::TypedSettings,
};

/// The document of `tribunal inspect settings`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SettingsDocument {
    schema: &'static str,
    /// The project, or the one file that is shown.
    of: String,
    settings: Vec<SettingDocument>,
    /// Problems of the file, and unknown names.
    problems: Vec<ProblemDocument>,
    /// The number of keys that belong to BMAD.
    foreign: usize,
    /// The project's own personas for parties; null if the built-in ones are used, or if only one file is shown.
    roster: Option<RosterDocument>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct RosterDocument {
    /// The file, relative to the project's root.
    origin: &'static str,
    names: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct SettingDocument {
    path: String,
    /// The value in the unit of the setting; null if it is not set and follows from something else.
    value: Json,
    /// The layer: default, user, bmad, project, environment or flags.
    layer: &'static str,
    /// The file with its line, the variable or the flag.
    origin: String,
    allowed: String,
    about: &'static str,
    /// Whether this version uses the setting; otherwise it is only accepted.
    used: bool,
    variable: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ProblemDocument {
    /// The file with its line, the variable or the flag.
    place: String,
    line: Option<usize>,
    what: String,
    hint: Option<String>,
}

impl SettingsDocument {
    pub fn from_project(
        effective: &EffectiveSettings,
        survey: &SettingsSurvey,
        source_name: String,
    ) -> SettingsDocument {
        // Origins inside the project are given relative to its root.
        let setting_documents =
            setting_lines(effective).into_iter().map(|setting_line| setting_line.to_document(&source_name)).collect();
        let persona_names: Vec<String> = survey.roster.personas.iter().map(|persona| persona.name.clone()).collect();
        SettingsDocument {
            schema: SETTINGS_SCHEMA,
            settings: setting_documents,
            problems: survey
                .problems
                .iter()
                .map(|problem| ProblemDocument::from_problem(problem, &source_name))
                .collect(),
            of: source_name,
            foreign: 0,
            roster: (!persona_names.is_empty()).then_some(RosterDocument { origin: ROSTER_PATH, names: persona_names }),
            warnings: survey.warnings.clone(),
        }
    }

    pub fn from_file(file_reading: &FileReading, source_name: String, setting_layer: SettingLayer) -> SettingsDocument {
        let setting_documents = file_setting_lines(file_reading, &source_name, setting_layer)
            .into_iter()
            .map(|setting_line| setting_line.to_document(""))
            .collect();
        let problems = file_reading.problems.iter().map(|problem| ProblemDocument::from_problem(problem, "")).collect();
        let foreign = file_reading.foreign_keys;
        SettingsDocument {
            schema: SETTINGS_SCHEMA,
            of: source_name,
            settings: setting_documents,
            problems,
            foreign,
            roster: None,
            warnings: Vec::new(),
        }
    }
}

const SETTINGS_SCHEMA: &str = "tribunal.settings/1";

impl ProblemDocument {
    fn from_problem(problem: &SettingProblem, project_root: &str) -> ProblemDocument {
        ProblemDocument {
            place: relative_place(project_root, &problem.place),
            line: problem.line_number,
            what: problem.message.clone(),
            hint: problem.hint.clone(),
        }
    }
}

/// A place with the project's files relative to its root.
fn relative_place(project_root: &str, source_place: &str) -> String {
    let place_inside = source_place.strip_prefix(project_root).filter(|_| !project_root.is_empty());
    place_inside.map_or(source_place, |relative_part| relative_part.trim_start_matches('/')).to_string()
}

/// One setting, ready to be shown.
struct SettingLine {
    setting_row: &'static SettingRow,
    setting_path: String,
    set_value: Option<(SettingValue, SettingOrigin)>,
}

impl SettingLine {
    fn is_changed(&self) -> bool {
        self.set_value.as_ref().is_some_and(|(_, setting_origin)| setting_origin.layer != SettingLayer::Default)
    }

    fn value_text(&self) -> String {
        match &self.set_value {
            // A value may contain anything, even what controls a terminal.
            Some((setting_value, _)) => escape_line(&format_with_unit(self.setting_row.kind, setting_value)),
            None => "-".to_string(),
        }
    }

    fn origin_text(&self, project_root: &str) -> String {
        self.set_value.as_ref().map_or("not set".to_string(), |(_, setting_origin)| {
            relative_place(project_root, &setting_origin.to_string())
        })
    }

    fn to_document(&self, project_root: &str) -> SettingDocument {
        SettingDocument {
            path: self.setting_path.clone(),
            value: self
                .set_value
                .as_ref()
                .map_or(Json::Null, |(setting_value, _)| json_in_unit(self.setting_row.kind, setting_value)),
            layer: self
                .set_value
                .as_ref()
                .map_or(SettingLayer::Default, |(_, setting_origin)| setting_origin.layer)
                .layer_name(),
            origin: self.origin_text(project_root),
            allowed: self.setting_row.kind.describe_allowed(),
            about: self.setting_row.description,
            used: self.setting_row.is_used(),
            variable: variable_name_of(&self.setting_path),
        }
    }
}

/// Formats a value with its unit.
fn format_with_unit(value_kind: ValueKind, setting_value: &SettingValue) -> String {
    match (value_kind, setting_value) {
        (ValueKind::Minutes, SettingValue::Whole(seconds)) if seconds % 60 == 0 => {
            format!("{} min", seconds / 60)
        }
        // A number of seconds that is not a whole number of minutes is shown as it is stored.
        (ValueKind::Minutes | ValueKind::Seconds { .. }, setting_value) => format!("{setting_value} s"),
        (ValueKind::Percent, setting_value) => format!("{setting_value} %"),
        _ => setting_value.to_string(),
    }
}

/// The default of a setting as it would be written into a file; `None` if it has none.
pub(crate) fn default_as_written(setting_path: &str) -> Option<String> {
    let (spelling, _) = table::find_setting(setting_path)?;
    let default_value = spelling.setting_row.default_value(&TypedSettings::default())?;
    // Whole numbers are written in the unit of the setting; all other values format themselves.
    Some(match json_in_unit(spelling.setting_row.kind, &default_value) {
        Json::Number(json_number) if !json_number.is_f64() => json_number.to_string(),
        _ => default_value.to_string(),
    })
}

/// All settings, with one line per name for those that have a name in their path.
fn setting_lines(effective: &EffectiveSettings) -> Vec<SettingLine> {
    let mut collected_lines = Vec::new();
    for setting_row in table::all_rows() {
        // Such a row appears once for every name that is set, and not at all without one.
        if table::has_free_part(setting_row.path) {
            let named_settings = effective.values.iter().filter(|(setting_path, _)| {
                table::find_setting(setting_path)
                    .is_some_and(|(spelling, _)| spelling.setting_row.path == setting_row.path)
            });
            collected_lines.extend(named_settings.map(|(setting_path, sourced_value)| SettingLine {
                setting_row,
                setting_path: setting_path.clone(),
                set_value: Some((sourced_value.value.clone(), sourced_value.origin.clone())),
            }));
        } else {
            let sourced_value = effective.values.get(setting_row.path);
            let set_value =
                sourced_value.map(|sourced_value| (sourced_value.value.clone(), sourced_value.origin.clone()));
            collected_lines.push(SettingLine { setting_row, setting_path: setting_row.path.to_string(), set_value });
        }
    }
    collected_lines
}

/// The settings of one file.
fn file_setting_lines(file_reading: &FileReading, file_name: &str, setting_layer: SettingLayer) -> Vec<SettingLine> {
    let to_line = |found_setting: &super::file_reader::FoundSetting| {
        let (spelling, _) = table::find_setting(&found_setting.canonical_path)?;
        let origin = SettingOrigin {
            layer: setting_layer,
            source_name: file_name.to_string(),
            line_number: Some(found_setting.line_number),
        };
        Some(SettingLine {
            setting_row: spelling.setting_row,
            setting_path: found_setting.canonical_path.clone(),
            set_value: Some((found_setting.setting_value.clone(), origin)),
        })
    };
    file_reading.settings.iter().filter_map(to_line).collect()
}

/// Draws all used settings by section, with those that are set marked. Unused ones appear only if they are set or with
/// `show_all`.
pub(crate) fn draw_settings(
    effective: &EffectiveSettings,
    project_root: &str,
    show_all: bool,
    screen: &Screen,
) -> String {
    let all_lines = setting_lines(effective);
    let used_lines: Vec<&SettingLine> =
        all_lines.iter().filter(|setting_line| setting_line.setting_row.is_used()).collect();
    let unused_lines: Vec<&SettingLine> = all_lines
        .iter()
        .filter(|setting_line| !setting_line.setting_row.is_used() && (show_all || setting_line.is_changed()))
        .collect();
    // The number is shown, so that the user knows that there are more.
    let hidden_count = all_lines.len() - used_lines.len() - unused_lines.len();
    let mut rendered = String::new();
    let mut current_section = "";
    for setting_line in &used_lines {
        // A new section gets its heading once.
        let next_section = setting_line.setting_path.split_once('.').map_or("", |(section_name, _)| section_name);
        if next_section != current_section {
            let _ = writeln!(rendered, "{}", screen.paint(TextStyle::Bold, &format!("{next_section}:")));
            current_section = next_section;
        }
        draw_setting_line(&mut rendered, setting_line, project_root, screen);
    }
    if !unused_lines.is_empty() {
        let _ = writeln!(rendered, "{}", screen.paint(TextStyle::Bold, "accepted, but not used by this version:"));
    }
    for setting_line in &unused_lines {
        draw_setting_line(&mut rendered, setting_line, project_root, screen);
    }
    let changed_count = all_lines.iter().filter(|setting_line| setting_line.is_changed()).count();
    let mut closing = format!("* set explicitly ({changed_count}); all others are defaults.");
    if hidden_count > 0 {
        let _ =
            write!(closing, " {hidden_count} more are accepted, but not used by this version; show them with `--all`.");
    }
    let _ = writeln!(rendered, "\n{}", screen.wrap_text(0, &closing));
    rendered
}

/// Draws what the settings lead to: the project's own personas, and problems.
pub(crate) fn draw_survey(survey: &SettingsSurvey, project_root: &str, screen: &Screen) -> String {
    let mut rendered = String::new();
    let persona_names: Vec<&str> = survey.roster.personas.iter().map(|persona| persona.name.as_str()).collect();
    if !persona_names.is_empty() {
        let personas_text = format!("party personas from {ROSTER_PATH}: {}", persona_names.join(", "));
        let _ = writeln!(rendered, "{}", screen.wrap_text(0, &escape_line(&personas_text)));
    }
    for warning in &survey.warnings {
        let _ = writeln!(rendered, "{}", screen.wrap_text(0, &escape_line(&format!("warning: {warning}"))));
    }
    for problem in &survey.problems {
        draw_setting_problem(&mut rendered, &relative_place(project_root, &problem.place), problem, screen);
    }
    rendered
}

/// Cuts a line to the screen. Unlike [`Screen::fit_text`] it keeps the blanks between columns.
fn cut_to_screen(screen: &Screen, text_line: &str) -> String {
    screen
        .max_columns
        .map_or(text_line.to_string(), |screen_columns| truncate_chars(text_line, screen_columns.saturating_sub(1)))
}

/// Draws one setting.
fn draw_setting_line(rendered: &mut String, setting_line: &SettingLine, project_root: &str, screen: &Screen) {
    let change_mark = if setting_line.is_changed() { "*" } else { " " };
    let (shown_name, name_columns) = match setting_line.setting_path.split_once('.') {
        // The section is printed above, so its name is not repeated.
        Some((_, short_key)) if setting_line.setting_row.is_used() => (short_key, 24),
        // A setting without a section has no name to shorten.
        None => (setting_line.setting_path.as_str(), 24),
        Some(_) => (setting_line.setting_path.as_str(), 45),
    };
    let shown_name = escape_line(shown_name);
    let line_style = if setting_line.is_changed() { TextStyle::Bold } else { TextStyle::Plain };
    let allowed_text = setting_line.setting_row.kind.describe_allowed();
    let origin_name = escape_line(&setting_line.origin_text(project_root));
    match screen.max_columns {
        Some(screen_columns) if screen_columns < 100 => {
            let value_text = truncate_chars(&setting_line.value_text(), 13);
            let line_head = format!("{change_mark} {shown_name:<24} {value_text:<14}");
            // Users look for the origin, so it is never cut; if it does not fit, it gets a line of its own.
            let fits_in_line = line_head.chars().count() + 1 + origin_name.chars().count() < screen_columns;
            let (line_head, origin_below) = if fits_in_line {
                (format!("{line_head} {origin_name}"), None)
            } else {
                (line_head, Some(origin_name))
            };
            let _ = writeln!(rendered, "{}", screen.paint(line_style, &cut_to_screen(screen, line_head.trim_end())));
            if let Some(origin_name) = origin_below {
                let _ = writeln!(rendered, "    {}", screen.paint(line_style, &origin_name));
            }
            let _ = writeln!(rendered, "{}", screen.paint(TextStyle::Dim, &screen.wrap_text(4, &allowed_text)));
        }
        _ => {
            let value_text = truncate_chars(&setting_line.value_text(), 40);
            let line_head = format!("{change_mark} {shown_name:<name_columns$} {value_text:<14} {origin_name:<24}");
            let line_tail =
                screen.paint(TextStyle::Dim, &screen.fit_text(line_head.chars().count() + 1, &allowed_text));
            let _ = writeln!(rendered, "{} {line_tail}", screen.paint(line_style, &line_head));
        }
    }
}

/// Draws one file alone: what it sets, and its problems.
pub(crate) fn draw_settings_file(file_reading: &FileReading, file_name: &str, screen: &Screen) -> String {
    let mut rendered = String::new();
    for setting_line in file_setting_lines(file_reading, file_name, SettingLayer::Project) {
        let line_number =
            setting_line.set_value.as_ref().and_then(|(_, origin)| origin.line_number).unwrap_or_default();
        let unused_note =
            if setting_line.setting_row.is_used() { "" } else { "  accepted, but not used by this version" };
        let line_text = format!(
            "line {line_number:<4} {:<44} {:<14}{unused_note}",
            escape_line(&setting_line.setting_path),
            setting_line.value_text()
        );
        let _ = writeln!(rendered, "{}", cut_to_screen(screen, line_text.trim_end()));
    }
    for problem in &file_reading.problems {
        let problem_place = problem.line_number.map(|line_number| format!("line {line_number}")).unwrap_or_default();
        draw_setting_problem(&mut rendered, &problem_place, problem, screen);
    }
    let _ = writeln!(rendered, "settings: {}, problems: {}", file_reading.settings.len(), file_reading.problems.len());
    // Users of BMAD's file would otherwise wonder why these keys are missing.
    if file_reading.foreign_keys > 0 {
        let _ = writeln!(rendered, "note: ignored keys that belong to BMAD: {}", file_reading.foreign_keys);
    }
    rendered
}

/// Draws one problem with its hint.
fn draw_setting_problem(rendered: &mut String, problem_place: &str, problem: &SettingProblem, screen: &Screen) {
    let problem_place = if problem_place.is_empty() { String::new() } else { format!("{problem_place}: ") };
    let _ = writeln!(rendered, "error: {}", escape_line(&format!("{problem_place}{}", problem.message)));
    if let Some(hint) = &problem.hint {
        let _ = writeln!(rendered, "{}", screen.wrap_text(2, &format!("help: {hint}")));
    }
}
