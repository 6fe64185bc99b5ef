//! Checks a file against the table: what it sets, and everything that is wrong with it, at once.

use tribunal_bmad::yaml::{self, YamlContent, YamlEntry, YamlErrorKind, YamlNode};

use super::{
    hints::suggest_argv,
    kind::SettingValue,
    nearest_name,
    origin::SettingOrigin,
    table::{self, NAME_PART, PathSpelling},
};
use crate::messages::user_errors::UserError;

/// A setting that a file sets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundSetting {
    /// The canonical path.
    pub canonical_path: String,
    /// The path as it was written.
    pub spelling: String,
    pub setting_value: SettingValue,
    pub line_number: usize,
    is_weak: bool,
}

/// A problem and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingProblem {
    /// A file with its line, a variable or a flag.
    pub place: String,
    pub line_number: Option<usize>,
    pub message: String,
    /// The line of the file, as written.
    pub source_line: Option<String>,
    pub hint: Option<String>,
}

/// The result of reading a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileReading {
    pub settings: Vec<FoundSetting>,
    pub problems: Vec<SettingProblem>,
    /// Keys of other programs, which were left alone.
    pub foreign_keys: usize,
}

/// How strictly a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// A file of ours: unknown keys are refused.
    Strict,
    /// BMAD's file: only [`BMAD_SECTIONS`] are read, and unknown keys belong to BMAD.
    Lenient,
}

/// The keys that are read in BMAD's file. None of them can run a command.
const BMAD_SECTIONS: [&str; 12] = [
    "output_folder",
    "document_output_language",
    "limits",
    "tasks",
    "progress",
    "review_loop",
    "automation",
    "defaults",
    "preflight_validation",
    "menu_rate_limiting",
    "progress_display",
    "agentConfig",
];

/// Returns whether a section is only ours, in any file: a typo in it must be reported.
fn is_own_section(section_path: &str) -> bool {
    let section_path = section_path.strip_prefix("automation.").unwrap_or(section_path);
    let first_key = section_path.split('.').next().unwrap_or_default();
    ["limits", "tasks", "progress", "review_loop", "agentConfig"].contains(&first_key)
}

/// Reads the settings of a file.
pub(crate) fn read_settings(file_name: &str, yaml_text: &str, read_mode: ReadMode) -> FileReading {
    read_filtered(file_name, yaml_text, read_mode, None)
}

/// Reads one section of a file of ours and ignores problems in the others.
pub(super) fn read_section(file_name: &str, yaml_text: &str, section_name: &str) -> FileReading {
    read_filtered(file_name, yaml_text, ReadMode::Strict, Some(section_name))
}

fn read_filtered(file_name: &str, yaml_text: &str, read_mode: ReadMode, only_section: Option<&str>) -> FileReading {
    let mut settings_reader = SettingsReader { file_name, yaml_text, read_mode, file_reading: FileReading::default() };
    match yaml::parse_yaml(yaml_text) {
        Ok(root_node) => settings_reader.read_top(&root_node, only_section),
        Err(yaml_error) => settings_reader.report_broken_yaml(&yaml_error),
    }
    // Two spellings of one setting can only be compared after the whole file is read.
    settings_reader.report_disagreements();
    settings_reader.file_reading
}

/// Reads one file and collects settings and problems.
struct SettingsReader<'a> {
    file_name: &'a str,
    yaml_text: &'a str,
    read_mode: ReadMode,
    file_reading: FileReading,
}

impl SettingsReader<'_> {
    /// Reads the top level of the file.
    fn read_top(&mut self, root_node: &YamlNode, only_section: Option<&str>) {
        match &root_node.content {
            YamlContent::Mapping(top_entries) => {
                for top_entry in top_entries
                    .iter()
                    .filter(|top_entry| only_section.is_none_or(|only_section| top_entry.key == only_section))
                {
                    if self.read_mode == ReadMode::Lenient && !BMAD_SECTIONS.contains(&top_entry.key.as_str()) {
                        self.file_reading.foreign_keys += 1;
                    } else {
                        self.read_entry("", top_entry);
                    }
                }
            }
            YamlContent::Null => {}
            YamlContent::Scalar(_) | YamlContent::Sequence(_) => {
                self.add_problem(
                    root_node.line,
                    "expected settings as `key: value`".into(),
                    Some("for example: `tier: 2`".into()),
                );
            }
        }
    }

    /// Reads one key: a setting, a section, or neither.
    fn read_entry(&mut self, parent_path: &str, yaml_entry: &YamlEntry) {
        let entry_path =
            if parent_path.is_empty() { yaml_entry.key.clone() } else { format!("{parent_path}.{}", yaml_entry.key) };
        if let Some((spelling, canonical_path)) = table::find_setting(&entry_path) {
            self.read_value(&entry_path, yaml_entry, spelling, canonical_path);
        } else if table::is_section_path(&entry_path) {
            self.read_section_entries(&entry_path, yaml_entry);
        } else if self.read_mode == ReadMode::Lenient && !is_own_section(parent_path) {
            self.file_reading.foreign_keys += 1;
        } else {
            // Even in BMAD's file an unknown key inside our own sections is a typo.
            let (message, hint) = describe_unknown_key(parent_path, &yaml_entry.key);
            self.add_problem(yaml_entry.line, message, hint);
        }
    }

    /// Reads the keys of a section.
    fn read_section_entries(&mut self, section_path: &str, yaml_entry: &YamlEntry) {
        match &yaml_entry.value.content {
            YamlContent::Mapping(child_entries) => {
                child_entries.iter().for_each(|child_entry| self.read_entry(section_path, child_entry))
            }
            // All lines below the heading are commented out.
            YamlContent::Null => {}
            // BMAD may use the same word for a value of its own.
            _ if self.read_mode == ReadMode::Lenient => self.file_reading.foreign_keys += 1,
            YamlContent::Scalar(_) | YamlContent::Sequence(_) => {
                let first_key = table::keys_under(section_path).first().copied().unwrap_or_default();
                let message = format!("`{section_path}` is a section and cannot have a value");
                self.add_problem(
                    yaml_entry.line,
                    message,
                    Some(format!("put its settings on indented lines below it, for example `{first_key}:`")),
                );
            }
        }
    }

    /// Reads the value of a setting.
    fn read_value(&mut self, value_path: &str, yaml_entry: &YamlEntry, spelling: PathSpelling, canonical_path: String) {
        let value_kind = spelling.kind;
        // A key without a value in BMAD's file sets nothing and is no mistake.
        if self.read_mode == ReadMode::Lenient && yaml_entry.value.content == YamlContent::Null {
            return;
        }
        match value_kind.read_node(&yaml_entry.value) {
            // The value leaves the choice to Tribunal, so nothing is set.
            Ok(None) => {}
            Ok(Some(value)) => self.file_reading.settings.push(FoundSetting {
                canonical_path,
                spelling: value_path.to_string(),
                setting_value: value,
                line_number: yaml_entry.line,
                is_weak: spelling.is_weak,
            }),
            Err(value_error) => {
                let message = value_error.describe(value_path, value_kind);
                // A part of the value may be on a line of its own.
                let line_number = value_error.nested.map_or(yaml_entry.line, |nested| nested.line_number);
                self.add_problem(line_number, message, suggest_argv_list(yaml_entry).or(value_error.hint));
            }
        }
    }

    /// Reports that the file is not YAML.
    fn report_broken_yaml(&mut self, yaml_error: &yaml::YamlError) {
        // The parser names the line where it gave up; a stray indentation above it may be the cause.
        let (line_number, hint) = match find_stray_indent(self.yaml_text) {
            Some((line_number, hint)) => (Some(line_number), Some(hint)),
            None => (yaml_error.line, Some(suggest_yaml_fix(yaml_error.kind).to_string())),
        };
        let message = yaml_error.message.clone();
        match line_number {
            Some(line_number) => self.add_problem(line_number, message, hint),
            None => {
                let file_place = self.file_name.to_string();
                self.file_reading.problems.push(SettingProblem {
                    place: file_place,
                    line_number: None,
                    message,
                    source_line: None,
                    hint,
                });
            }
        }
    }

    /// Reports one setting under two spellings with two values, since it is unclear which one was meant.
    fn report_disagreements(&mut self) {
        let mut kept_settings: Vec<FoundSetting> = Vec::new();
        for found_setting in std::mem::take(&mut self.file_reading.settings) {
            let Some(earlier_setting) = kept_settings
                .iter_mut()
                .find(|earlier_setting| earlier_setting.canonical_path == found_setting.canonical_path)
            else {
                kept_settings.push(found_setting);
                continue;
            };
            match (earlier_setting.is_weak, found_setting.is_weak) {
                // A weak spelling gives way in either order.
                (true, false) => *earlier_setting = found_setting,
                (false, true) => {}
                _ if earlier_setting.setting_value == found_setting.setting_value => {}
                _ => {
                    let message = format!(
                        "`{}` is {}, but `{}` in line {} is {}, and both are the same setting",
                        found_setting.spelling,
                        found_setting.setting_value,
                        earlier_setting.spelling,
                        earlier_setting.line_number,
                        earlier_setting.setting_value
                    );
                    self.add_problem(found_setting.line_number, message, Some("remove one of the two lines".into()));
                }
            }
        }
        self.file_reading.settings = kept_settings;
    }

    /// Adds a problem with its line.
    fn add_problem(&mut self, line_number: usize, message: String, hint: Option<String>) {
        let source_line = line_number.checked_sub(1).and_then(|line_index| self.yaml_text.lines().nth(line_index));
        let source_line =
            source_line.map(|line_text| line_text.trim().to_string()).filter(|line_text| !line_text.is_empty());
        let line_place = format!("{}, line {line_number}", self.file_name);
        self.file_reading.problems.push(SettingProblem {
            place: line_place,
            line_number: Some(line_number),
            message,
            source_line,
            hint,
        });
    }
}

/// Suggests the right form of a command that was written as one string.
fn suggest_argv_list(yaml_entry: &YamlEntry) -> Option<String> {
    match &yaml_entry.value.content {
        YamlContent::Scalar(command_line) if yaml_entry.key == "argv" => Some(suggest_argv(command_line)),
        _ => None,
    }
}

/// Suggests what to do about a file that is not valid YAML.
fn suggest_yaml_fix(error_kind: YamlErrorKind) -> &'static str {
    match error_kind {
        YamlErrorKind::DuplicateKey => "remove one of the two lines",
        YamlErrorKind::SecondDocument => "keep only one document",
        YamlErrorKind::Syntax => "check brackets, quotes and indentation in this line and above it",
    }
}

/// Describes what is wrong with an unknown key, and what was probably meant.
pub(super) fn describe_unknown_key(parent_path: &str, unknown_key: &str) -> (String, Option<String>) {
    let known_keys = table::keys_under(parent_path);
    // A known key in the wrong section is more likely than a typo.
    if let Some(home_section) = find_home_section(parent_path, unknown_key) {
        return (
            format!("`{unknown_key}` belongs under `{home_section}:`"),
            Some(format!("move it under `{home_section}:`")),
        );
    }
    let message = match parent_path {
        "" => format!("unknown setting `{unknown_key}`"),
        parent_path if known_keys.is_empty() => format!("unknown setting `{parent_path}.{unknown_key}`"),
        parent_path => format!("unknown setting `{unknown_key}` under `{parent_path}:`"),
    };
    let hint = nearest_name(unknown_key, &known_keys).map(|near_key| format!("did you mean `{near_key}`?"));
    // At the top level the list of known keys would be too long to help, and an unknown section has none.
    let known_hint = || match parent_path.is_empty() || known_keys.is_empty() {
        true => None,
        false => Some(format!("known settings: {}", known_keys.join(", "))),
    };
    (message, hint.or_else(known_hint))
}

/// Finds the only section in which this key is known, if it is not this one.
fn find_home_section(parent_path: &str, searched_key: &str) -> Option<&'static str> {
    let row_paths = table::all_rows().map(|setting_row| setting_row.path);
    // Some sections have only other spellings of settings: `subagents`, which belongs under `review_loop`.
    find_only_home(parent_path, searched_key, row_paths).or_else(|| {
        let spelling_paths = table::every_spelling().map(|spelling| spelling.path);
        find_only_home(parent_path, searched_key, spelling_paths)
    })
}

fn find_only_home(
    parent_path: &str,
    searched_key: &str,
    setting_paths: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let mut home_sections: Vec<&'static str> = Vec::new();
    for setting_path in setting_paths.filter(|setting_path| !setting_path.contains(NAME_PART)) {
        let section_paths = setting_path.match_indices('.').map(|(dot_offset, _)| &setting_path[..dot_offset]);
        for full_path in section_paths.chain([setting_path]) {
            if let Some((home_section, last_key)) = full_path.rsplit_once('.')
                && last_key == searched_key
                && home_section != parent_path
                && !home_sections.contains(&home_section)
            {
                home_sections.push(home_section);
            }
        }
    }
    match home_sections.as_slice() {
        [home_section] => Some(home_section),
        _ => None,
    }
}

/// Finds a block that was pasted with its original indentation, but without the key above it.
fn find_stray_indent(yaml_text: &str) -> Option<(usize, String)> {
    let mut previous_line: Option<&str> = None;
    for (line_index, yaml_line) in yaml_text.lines().enumerate() {
        let content = yaml_line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let indent = yaml_line.len() - yaml_line.trim_start().len();
        let first_key = content.split(':').next().unwrap_or_default();
        // Indentation is wrong only below a line that opens nothing.
        let is_stray = previous_line
            .is_some_and(|previous_line| !previous_line.starts_with(' ') && !previous_line.trim_end().ends_with(':'));
        if indent > 0 && is_stray && table::keys_under("").contains(&first_key) {
            let hint = format!("remove {indent} spaces before `{first_key}:` and before every line of its block");
            return Some((line_index + 1, hint));
        }
        // Comments are cut off, or a line `tier: 2  # low:` would seem to open a section.
        previous_line = Some(yaml_line.split(" #").next().unwrap_or(yaml_line));
    }
    None
}

/// Combines all problems in one error: the first one in full, the others below it.
pub(crate) fn problems_to_error(problems: &[SettingProblem]) -> Option<UserError> {
    let (first_problem, other_problems) = problems.split_first()?;
    let mut reason = String::new();
    if let (Some(line_number), Some(source_line)) = (first_problem.line_number, &first_problem.source_line) {
        reason.push_str(&format!("{line_number} | {source_line}\n"));
    }
    reason.push_str("Nothing was started.");
    if !other_problems.is_empty() {
        reason.push_str("\nOther problems:");
    }
    for other_problem in other_problems {
        // The file is named once, as long as it is the same one.
        let is_same_file = other_problem.file_name().is_some_and(|file| Some(file) == first_problem.file_name());
        let problem_place = other_problem
            .line_number
            .filter(|_| is_same_file)
            .map_or(other_problem.place.clone(), |line_number| format!("line {line_number}"));
        let hint = other_problem.hint.as_ref().map(|hint| format!("\n    {hint}")).unwrap_or_default();
        reason.push_str(&format!("\n  {problem_place}: {}{hint}", other_problem.message));
    }
    // A syntax error is about the whole file, so the sentence names the file.
    let message = match first_problem.message.strip_prefix("invalid YAML: ") {
        Some(syntax_message) => format!("invalid YAML in {}: {syntax_message}", first_problem.place),
        None => format!("{}: {}", first_problem.place, first_problem.message),
    };
    let user_error = UserError::usage(message).with_reason(reason);
    Some(match &first_problem.hint {
        Some(hint) => user_error.with_step(hint),
        None => user_error.with_step("list all settings and their values: `tribunal schema settings`"),
    })
}

impl SettingProblem {
    /// A problem that shows only when all layers are seen together.
    pub(super) fn from_origin(
        setting_origin: Option<&SettingOrigin>,
        message: String,
        hint: Option<String>,
    ) -> SettingProblem {
        let line_number = setting_origin.and_then(|setting_origin| setting_origin.line_number);
        let source_name = setting_origin.map_or("the settings", |setting_origin| setting_origin.source_name.as_str());
        let problem_place =
            line_number.map_or(source_name.to_string(), |line_number| format!("{source_name}, line {line_number}"));
        SettingProblem { place: problem_place, line_number, message, source_line: None, hint }
    }

    fn file_name(&self) -> Option<&str> {
        self.place.rsplit_once(", line ").map(|(file_part, _)| file_part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text_for(yaml_text: &str) -> String {
        let file_reading = read_settings("tribunal.yaml", yaml_text, ReadMode::Strict);
        problems_to_error(&file_reading.problems).map(|user_error| user_error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_misspelt_key_is_refused_with_its_line_and_the_nearest_one() {
        insta::assert_snapshot!(error_text_for("tier: 2\nagnets:\n  use: [x]\n"), @"
        error: tribunal.yaml, line 2: unknown setting `agnets`
          2 | agnets:
          Nothing was started.
          help: did you mean `agents`?
        ");
        insta::assert_snapshot!(error_text_for("limits:\n  max_review_round: 2\n"), @"
        error: tribunal.yaml, line 2: unknown setting `max_review_round` under `limits:`
          2 | max_review_round: 2
          Nothing was started.
          help: did you mean `max_review_rounds`?
        ");
        insta::assert_snapshot!(error_text_for("agents:\n  use: [a]\n  a:\n    driver: comand\n"), @"
        error: tribunal.yaml, line 4: `agents.a.driver` must be one of command, replay, claude-code, codex; found `comand`
          4 | driver: comand
          Nothing was started.
          help: did you mean `command`?
        ");
        insta::assert_snapshot!(error_text_for("agentConfig:\n  perTask:\n    reviw: {primary: a}\n"), @"
        error: tribunal.yaml, line 3: unknown setting `reviw` under `agentConfig.perTask:`
          3 | reviw: {primary: a}
          Nothing was started.
          help: did you mean `review`?
        ");
    }

    #[test]
    fn a_key_in_the_wrong_section_is_pointed_to_the_right_one() {
        insta::assert_snapshot!(error_text_for("max_cost: 2\n"), @"
        error: tribunal.yaml, line 1: `max_cost` belongs under `limits:`
          1 | max_cost: 2
          Nothing was started.
          help: move it under `limits:`
        ");
        insta::assert_snapshot!(error_text_for("limits:\n  retry_after: 2\n"), @"
        error: tribunal.yaml, line 2: `retry_after` belongs under `tasks:`
          2 | retry_after: 2
          Nothing was started.
          help: move it under `tasks:`
        ");
        insta::assert_snapshot!(error_text_for("subagents:\n  party: {timeout: 3}\n"), @"
        error: tribunal.yaml, line 1: `subagents` belongs under `review_loop:`
          1 | subagents:
          Nothing was started.
          help: move it under `review_loop:`
        ");
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let yaml_text = "tier: 7\nverify: yes\nlimits:\n  max_cost: unlimited\n  max_runtime_minutes: 1800\n\
                    defaults:\n  auto_continue_threshold: 80\ntasks: fast\n";
        insta::assert_snapshot!(error_text_for(yaml_text), @r#"
        error: tribunal.yaml, line 1: `tier` must be a whole number from 0 to 4; found `7`
          1 | tier: 7
          Nothing was started.
          Other problems:
            line 2: `verify` must be a list of commands such as [make test, [cargo, test]]; found `yes`
              write a list, for example ["make test"], or [] for none
            line 4: `limits.max_cost` must be an amount in dollars, more than 0; found `unlimited`
              unlimited is not supported; set a number
            line 5: `limits.max_runtime_minutes` must be 1 to 1440 minutes; found `1800`
              the unit is minutes, not seconds; write 30
            line 7: `defaults.auto_continue_threshold` must be a fraction from 0.0 to 1.0; found `80`
              use a fraction instead of a percentage: 0.80
            line 8: `tasks` is a section and cannot have a value
              put its settings on indented lines below it, for example `required_issues:`
          help: list all settings and their values: `tribunal schema settings`
        "#);
    }

    #[test]
    fn a_command_in_one_string_is_explained_with_its_list() {
        let error_of_argv = |argv_text: &str| {
            error_text_for(&format!("agents:\n  mine:\n    driver: command\n    argv: {argv_text}\n"))
        };
        assert!(error_of_argv("\"my agent --print\"").contains("`argv: [my, agent, --print]`"));
        assert!(error_of_argv("agent --rule a:b").contains("`argv: [agent, --rule, \"a:b\"]`"));
        assert!(error_of_argv("'sh -c \"make test\"'").contains("`argv: [my, agent, --print]`"));
    }

    #[test]
    fn broken_yaml_is_reported_with_its_line() {
        insta::assert_snapshot!(error_text_for("tier: 2\nverify: [\n"), @"
        error: invalid YAML in tribunal.yaml, line 2: unclosed bracket '['
          2 | verify: [
          Nothing was started.
          help: check brackets, quotes and indentation in this line and above it
        ");
        insta::assert_snapshot!(error_text_for("tier: 2\ngoal: zero-open\ntier: 3\n"), @"
        error: tribunal.yaml, line 3: duplicate key `tier`
          3 | tier: 3
          Nothing was started.
          help: remove one of the two lines
        ");
        insta::assert_snapshot!(error_text_for("- tier\n"), @"
        error: tribunal.yaml, line 1: expected settings as `key: value`
          1 | - tier
          Nothing was started.
          help: for example: `tier: 2`
        ");
    }

    #[test]
    fn a_block_pasted_with_stray_indentation_is_explained() {
        insta::assert_snapshot!(error_text_for("tier: 2  # medium\n\n  # Review Loop\n  review_loop:\n    enabled: true\n"), @"
        error: invalid YAML in tribunal.yaml, line 4: while parsing a block mapping, did not find expected key
          4 | review_loop:
          Nothing was started.
          help: remove 2 spaces before `review_loop:` and before every line of its block
        ");
    }

    #[test]
    fn two_spellings_of_a_setting_must_agree() {
        let error_of_pair = |second_value: u32| {
            error_text_for(&format!(
                "limits: {{max_review_rounds: 3}}\nreview_loop:\n  limits:\n    max_review_rounds: {second_value}\n"
            ))
        };
        assert_eq!(error_of_pair(3), "");
        insta::assert_snapshot!(error_of_pair(4).replace(", but ", ",\n  but "), @"
        error: tribunal.yaml, line 4: `review_loop.limits.max_review_rounds` is 4,
          but `limits.max_review_rounds` in line 1 is 3, and both are the same setting
          4 | max_review_rounds: 4
          Nothing was started.
          help: remove one of the two lines
        ");
    }

    #[test]
    fn in_the_bmad_file_only_our_sections_are_checked() {
        let yaml_text =
            "project_name: x\nagents: whatever\nreview_loop:\n  spice: 3\n  limits:\n    max_review_rounds: many\n";
        let file_reading = read_settings("config.yaml", yaml_text, ReadMode::Lenient);
        assert_eq!(file_reading.foreign_keys, 2);
        let problem_texts: Vec<String> = file_reading.problems.iter().map(|problem| format!("{problem:?}")).collect();
        assert!(
            problem_texts.len() == 2 && problem_texts[0].contains("spice") && problem_texts[1].contains("many"),
            "{problem_texts:?}"
        );
    }
}
