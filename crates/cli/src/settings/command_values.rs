//! Reads commands and checks from YAML. A command is a text for the shell, or a list of words that is run without one; a check
//! is a command, or a map with a command in it.

use serde_json::{Value as Json, json};
use tribunal_bmad::yaml::{YamlContent, YamlEntry, YamlNode};
use tribunal_workflows::development::checks::{CheckSpec, CheckTime, CommandLine, FailureAction};

use super::kind::{ValueError, ValueKind, nearest_word, parse_whole};

/// The keys of a check. `run` is another name for `command`.
const CHECK_KEYS: [&str; 5] = ["command", "run", "when", "on_failure", "timeout"];
const TIMES: [(&str, CheckTime); 2] = [("step", CheckTime::Step), ("completion", CheckTime::Completion)];
const ACTIONS: [(&str, FailureAction); 3] =
    [("warn", FailureAction::Warn), ("block", FailureAction::Block), ("fix", FailureAction::Fix)];
const TIMEOUT_KIND: ValueKind = ValueKind::Seconds { minimum: 1 };

/// Reads one command.
pub(super) fn read_command(yaml_node: &YamlNode) -> Result<CommandLine, ValueError> {
    match &yaml_node.content {
        YamlContent::Scalar(line) if is_usable_text(line) && !line.trim().is_empty() => {
            Ok(CommandLine::from_shell_line(line))
        }
        YamlContent::Scalar(_) | YamlContent::Null => Err(nested_error(yaml_node, "a command must not be empty", None)),
        YamlContent::Sequence(word_nodes) => read_argv(yaml_node, word_nodes),
        YamlContent::Mapping(_) => Err(nested_error(yaml_node, "a command must be text or a list of words", None)),
    }
}

fn read_argv(yaml_node: &YamlNode, word_nodes: &[YamlNode]) -> Result<CommandLine, ValueError> {
    let mut words = Vec::new();
    for word_node in word_nodes {
        match &word_node.content {
            YamlContent::Scalar(word) if is_usable_text(word) => words.push(word.clone()),
            _ => return Err(nested_error(word_node, "every word of a command must be text", None)),
        }
    }
    match words.first() {
        Some(program) if !program.trim().is_empty() => Ok(CommandLine::Argv(words)),
        _ => Err(nested_error(yaml_node, "a command must not be empty", None)),
    }
}

/// A null byte cannot be passed to a program.
fn is_usable_text(text: &str) -> bool {
    !text.contains('\0')
}

/// Reads one check.
pub(super) fn read_check(yaml_node: &YamlNode) -> Result<CheckSpec, ValueError> {
    let YamlContent::Mapping(entries) = &yaml_node.content else { return read_command(yaml_node).map(CheckSpec::new) };
    let mut check = CheckSpec::new(CommandLine::from_shell_line(""));
    let mut command_key: Option<&str> = None;
    for entry in entries {
        match entry.key.as_str() {
            key @ ("command" | "run") => {
                if let Some(earlier_key) = command_key {
                    let message = format!("a check has both `{earlier_key}` and `{key}`");
                    return Err(nested_error_at(entry.line, message, Some("remove one of the two".into())));
                }
                command_key = Some(key);
                check.command = read_command(&entry.value)?;
            }
            "when" => check.when = read_word(entry, &TIMES)?,
            "on_failure" => check.on_failure = read_word(entry, &ACTIONS)?,
            "timeout" => check.timeout_ms = Some(read_timeout(entry)? * 1000),
            unknown_key => {
                let hint = match nearest_word(unknown_key, &CHECK_KEYS) {
                    Some(known_key) => format!("did you mean `{known_key}`?"),
                    None => format!("known keys: {}", CHECK_KEYS.join(", ")),
                };
                return Err(nested_error_at(entry.line, format!("unknown key `{unknown_key}` of a check"), Some(hint)));
            }
        }
    }
    match command_key {
        Some(_) => Ok(check),
        None => Err(nested_error(yaml_node, "a check has no `command`", Some("add `command: make test`".into()))),
    }
}

fn read_word<T: Copy>(entry: &YamlEntry, words: &[(&'static str, T)]) -> Result<T, ValueError> {
    let written_text = describe_node(&entry.value);
    if let YamlContent::Scalar(word) = &entry.value.content
        && let Some((_, value)) = words.iter().find(|(known_word, _)| known_word == word)
    {
        return Ok(*value);
    }
    let known_words: Vec<&'static str> = words.iter().map(|(known_word, _)| *known_word).collect();
    let message = format!("`{}` of a check must be one of {}; found {written_text}", entry.key, known_words.join(", "));
    let hint = match &entry.value.content {
        YamlContent::Scalar(word) => nearest_word(word, &known_words).map(|near| format!("did you mean `{near}`?")),
        _ => None,
    };
    Err(nested_error_at(entry.line, message, hint))
}

fn read_timeout(entry: &YamlEntry) -> Result<u64, ValueError> {
    if let YamlContent::Scalar(number_text) = &entry.value.content
        && let Some(seconds) = parse_whole(number_text).filter(|seconds| TIMEOUT_KIND.allowed_range().contains(seconds))
    {
        return Ok(seconds);
    }
    let message = format!(
        "`timeout` of a check must be {}; found {}",
        TIMEOUT_KIND.describe_allowed(),
        describe_node(&entry.value)
    );
    let hint = match &entry.value.content {
        YamlContent::Scalar(number_text) => super::hints::suggest_fix(TIMEOUT_KIND, number_text),
        _ => None,
    };
    Err(nested_error_at(entry.line, message, hint))
}

fn describe_node(yaml_node: &YamlNode) -> String {
    match &yaml_node.content {
        YamlContent::Scalar(text) => format!("`{text}`"),
        YamlContent::Sequence(_) => "a list".into(),
        YamlContent::Mapping(_) => "a mapping".into(),
        YamlContent::Null => "nothing".into(),
    }
}

fn nested_error(yaml_node: &YamlNode, message: &str, hint: Option<String>) -> ValueError {
    nested_error_at(yaml_node.line, message.to_string(), hint)
}

fn nested_error_at(line_number: usize, message: String, hint: Option<String>) -> ValueError {
    ValueError::at_line(line_number, message, hint)
}

/// Returns a check as it would be written in a file.
pub(super) fn check_to_json(check: &CheckSpec) -> Json {
    let defaults = CheckSpec::new(check.command.clone());
    if *check == defaults {
        return json!(check.command);
    }
    let mut written = serde_json::Map::from_iter([("command".to_string(), json!(check.command))]);
    if check.when != defaults.when {
        written.insert("when".into(), check.when.as_str().into());
    }
    if check.on_failure != defaults.on_failure {
        written.insert("on_failure".into(), check.on_failure.as_str().into());
    }
    if let Some(timeout_ms) = check.timeout_ms {
        written.insert("timeout".into(), (timeout_ms / 1000).into());
    }
    Json::Object(written)
}

/// Describes a check in one line: its command, and what differs from the defaults.
pub(crate) fn describe_check(check: &CheckSpec) -> String {
    let mut remarks = Vec::new();
    if check.when != CheckTime::default() {
        remarks.push(format!("when: {}", check.when));
    }
    if check.on_failure != FailureAction::default() {
        remarks.push(format!("on_failure: {}", check.on_failure));
    }
    if let Some(timeout_ms) = check.timeout_ms {
        remarks.push(format!("timeout: {} s", timeout_ms / 1000));
    }
    match remarks.is_empty() {
        true => check.command.to_string(),
        false => format!("{} ({})", check.command, remarks.join(", ")),
    }
}

/// Describes the form of a command for editors.
pub(super) fn command_schema() -> Json {
    json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }] })
}

/// Describes the form of a list of checks for editors.
pub(super) fn checks_schema() -> Json {
    let timeout_range = TIMEOUT_KIND.allowed_range();
    let check_map = json!({
        "type": "object",
        "properties": {
            "command": command_schema(),
            "run": command_schema(),
            "when": { "enum": TIMES.map(|(word, _)| word) },
            "on_failure": { "enum": ACTIONS.map(|(word, _)| word) },
            "timeout": { "type": "integer", "minimum": timeout_range.start(), "maximum": timeout_range.end() },
        },
        "oneOf": [{ "required": ["command"] }, { "required": ["run"] }],
        "additionalProperties": false,
    });
    json!({ "type": "array", "items": { "anyOf": [command_schema(), check_map] } })
}

#[cfg(test)]
mod tests {
    use tribunal_bmad::yaml;

    use super::*;
    use crate::settings::file_reader::{ReadMode, read_settings};

    fn read_check_text(yaml_text: &str) -> CheckSpec {
        read_check(&yaml::parse_yaml(yaml_text).unwrap()).unwrap()
    }

    #[test]
    fn a_check_is_a_command_or_a_map_and_is_written_as_it_was_read() {
        let cases = [
            ("make test", r#""make test""#, "make test"),
            ("[cargo, test, it's]", r#"["cargo","test","it's"]"#, r"cargo test 'it'\''s'"),
            ("{run: make, when: step, on_failure: block}", r#""make""#, "make"),
            (
                "{command: [make, lint], when: completion, on_failure: warn, timeout: 90}",
                r#"{"command":["make","lint"],"on_failure":"warn","timeout":90,"when":"completion"}"#,
                "make lint (when: completion, on_failure: warn, timeout: 90 s)",
            ),
        ];
        for (yaml_text, expected_json, description) in cases {
            let check = read_check_text(yaml_text);
            let written_json = check_to_json(&check).to_string();
            assert_eq!((written_json.as_str(), describe_check(&check).as_str()), (expected_json, description));
            assert_eq!(read_check_text(&written_json), check, "{yaml_text}");
        }
        assert_eq!(read_check_text("{run: make, timeout: 90}").timeout_ms, Some(90_000));
    }

    #[test]
    fn everything_wrong_with_a_check_is_told_with_its_line() {
        let cases = [
            (
                "{command: make lint, on_fail: warn}",
                4,
                "unknown key `on_fail` of a check",
                "did you mean `on_failure`?",
            ),
            (
                "command: make lint\n    on_failure: warning",
                5,
                "`on_failure` of a check must be one of warn, block, fix; found `warning`",
                "did you mean `warn`?",
            ),
            ("{command: make, when: later}", 4, "`when` of a check must be one of step, completion; found `later`", ""),
            ("{command: make, timeout: 5m}", 4, "`timeout` of a check must be 1 to 86400 seconds; found `5m`", "300"),
            ("{command: make, run: make}", 4, "a check has both `command` and `run`", "remove one of the two"),
            ("{when: step}", 4, "a check has no `command`", "add `command: make test`"),
            ("[]", 4, "a command must not be empty", ""),
        ];
        for (check_yaml, line_number, message, hint) in cases {
            let yaml_text = format!("tier: 1\nchecks:\n  - make test\n  - {check_yaml}\n");
            let [problem] = read_settings("tribunal.yaml", &yaml_text, ReadMode::Strict).problems.try_into().unwrap();
            assert_eq!(problem.message, format!("`checks`: {message}"));
            assert_eq!(problem.line_number, Some(line_number), "{check_yaml}");
            assert!(problem.hint.unwrap_or_default().contains(hint), "{check_yaml}");
        }
    }
}
