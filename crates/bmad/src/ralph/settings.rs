//! The settings of a fix-plan project, `.ralphrc`. The environment wins over the file, as it does for bmalph.
//!
//! What a value means for a run is decided by the caller; here a value is only read, and a wrong or unknown one is named.

use std::collections::BTreeMap;

use tribunal_json::{Serialize, schemars};
use tribunal_workflows::development::checks::{CheckSpec, CheckTime, CommandLine, FailureAction};

use super::shell_assignments::{self, ShellValue};
use crate::problem::FileProblem;

/// Every setting that is known; `None` where neither the file nor the environment has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RalphSettings {
    pub platform: Option<RalphValue<RalphPlatform>>,
    pub max_calls_per_hour: Option<RalphValue<u32>>,
    /// The time limit of one agent call.
    pub timeout_minutes: Option<RalphValue<u32>>,
    pub review_mode: Option<RalphValue<RalphReviewMode>>,
    pub review_interval: Option<RalphValue<u32>>,
    /// In the notation of Claude Code.
    pub allowed_tools: Option<RalphValue<Vec<String>>>,
    /// In the notation of Claude Code.
    pub permission_mode: Option<RalphValue<String>>,
    pub session: RalphSession,
    pub gates: RalphGates,
    pub breaker: RalphBreaker,
    #[serde(skip)]
    pub problems: Vec<FileProblem>,
}

/// Whether an agent goes on in its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RalphSession {
    pub continuity: Option<RalphValue<bool>>,
    pub expiry_hours: Option<RalphValue<u32>>,
}

/// The commands that must pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RalphGates {
    pub commands: Option<RalphValue<Vec<String>>>,
    pub mode: Option<RalphValue<RalphGateMode>>,
    pub timeout_seconds: Option<RalphValue<u32>>,
    pub on_completion_only: Option<RalphValue<bool>>,
}

/// When the circuit breaker opens, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RalphBreaker {
    pub no_progress: Option<RalphValue<u32>>,
    pub same_error: Option<RalphValue<u32>>,
    pub output_decline_percent: Option<RalphValue<u32>>,
    pub permission_denials: Option<RalphValue<u32>>,
    pub cooldown_minutes: Option<RalphValue<u32>>,
}

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RalphValue<T> {
    pub value: T,
    pub origin: RalphOrigin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum RalphOrigin {
    File { line: usize },
    Environment,
}

/// The client that bmalph would start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RalphPlatform {
    ClaudeCode,
    Codex,
    OpenCode,
    Copilot,
    Cursor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RalphReviewMode {
    Off,
    /// After every so many iterations.
    Enhanced,
    /// After every completed task of the plan.
    Ultimate,
}

/// What follows from a gate that fails. bmalph's `circuit-breaker` is read as `Block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RalphGateMode {
    Warn,
    Block,
}

const PLATFORMS: [(&str, RalphPlatform); 5] = [
    ("claude-code", RalphPlatform::ClaudeCode),
    ("codex", RalphPlatform::Codex),
    ("opencode", RalphPlatform::OpenCode),
    ("copilot", RalphPlatform::Copilot),
    ("cursor", RalphPlatform::Cursor),
];

const REVIEW_MODES: [(&str, RalphReviewMode); 3] =
    [("off", RalphReviewMode::Off), ("enhanced", RalphReviewMode::Enhanced), ("ultimate", RalphReviewMode::Ultimate)];

const CIRCUIT_BREAKER_MODE: &str = "circuit-breaker";

const GATE_MODES: [(&str, RalphGateMode); 3] =
    [("warn", RalphGateMode::Warn), ("block", RalphGateMode::Block), (CIRCUIT_BREAKER_MODE, RalphGateMode::Block)];

const TRUTH_WORDS: [(&str, bool); 2] = [("true", true), ("false", false)];

const PERMISSION_MODES: [&str; 6] = ["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"];

/// The keys that the environment may set. A variable with another name has nothing to do with these settings.
const KNOWN_KEYS: [&str; 20] = [
    "PLATFORM_DRIVER",
    "MAX_CALLS_PER_HOUR",
    "CLAUDE_TIMEOUT_MINUTES",
    "REVIEW_MODE",
    "REVIEW_ENABLED",
    "REVIEW_INTERVAL",
    "ALLOWED_TOOLS",
    "CLAUDE_PERMISSION_MODE",
    "SESSION_CONTINUITY",
    "SESSION_EXPIRY_HOURS",
    "QUALITY_GATES",
    "QUALITY_GATE_MODE",
    "QUALITY_GATE_TIMEOUT",
    "QUALITY_GATE_ON_COMPLETION_ONLY",
    "CB_NO_PROGRESS_THRESHOLD",
    "CB_SAME_ERROR_THRESHOLD",
    "CB_OUTPUT_DECLINE_THRESHOLD",
    "CB_PERMISSION_DENIAL_THRESHOLD",
    "CB_COOLDOWN_MINUTES",
    // The loop's older name for the tools.
    "CLAUDE_ALLOWED_TOOLS",
];

/// The most characters of a wrong value that a problem repeats.
const MAX_SHOWN_VALUE_CHARS: usize = 40;

impl RalphSettings {
    /// The gates as checks. bmalph only warns of a failure unless its mode says otherwise.
    pub fn to_check_specs(&self) -> Vec<CheckSpec> {
        let commands = self.gates.commands.as_ref().map_or(&[][..], |commands| &commands.value);
        let mode = self.gates.mode.as_ref().map_or(RalphGateMode::Warn, |mode| mode.value);
        let on_completion = self.gates.on_completion_only.as_ref().is_some_and(|only| only.value);
        let timeout_ms = self.gates.timeout_seconds.as_ref().map(|seconds| u64::from(seconds.value) * 1_000);
        let on_failure = match mode {
            RalphGateMode::Warn => FailureAction::Warn,
            RalphGateMode::Block => FailureAction::Block,
        };
        let when = if on_completion { CheckTime::Completion } else { CheckTime::Step };
        let to_check = |command: &String| CheckSpec {
            when,
            on_failure,
            timeout_ms,
            ..CheckSpec::new(CommandLine::from_shell_line(command.as_str()))
        };
        commands.iter().map(to_check).collect()
    }
}

/// Reads the settings. A project without the file has an empty text; the path only names the file in problems.
pub fn read_ralph_settings(
    settings_text: &str,
    file_path: &str,
    environment: &BTreeMap<String, String>,
) -> RalphSettings {
    let mut reader = SettingsReader { file_path, values: BTreeMap::new(), problems: Vec::new() };
    reader.add_file(settings_text);
    reader.add_environment(environment);
    let mut settings = RalphSettings {
        platform: reader.take_word("PLATFORM_DRIVER", &PLATFORMS),
        max_calls_per_hour: reader.take_number("MAX_CALLS_PER_HOUR", 1..=u32::MAX),
        timeout_minutes: reader.take_number("CLAUDE_TIMEOUT_MINUTES", 1..=1_440),
        review_mode: reader.take_review_mode(),
        review_interval: reader.take_number("REVIEW_INTERVAL", 1..=u32::MAX),
        allowed_tools: reader.take_tools(),
        permission_mode: reader.take_permission_mode(),
        session: RalphSession {
            continuity: reader.take_word("SESSION_CONTINUITY", &TRUTH_WORDS),
            expiry_hours: reader.take_number("SESSION_EXPIRY_HOURS", 1..=u32::MAX),
        },
        gates: RalphGates {
            commands: reader.take_list("QUALITY_GATES", |commands| split_words(commands, |text| text.split(';'))),
            mode: reader.take_gate_mode(),
            timeout_seconds: reader.take_number("QUALITY_GATE_TIMEOUT", 1..=86_400),
            on_completion_only: reader.take_word("QUALITY_GATE_ON_COMPLETION_ONLY", &TRUTH_WORDS),
        },
        breaker: RalphBreaker {
            no_progress: reader.take_number("CB_NO_PROGRESS_THRESHOLD", 1..=u32::MAX),
            same_error: reader.take_number("CB_SAME_ERROR_THRESHOLD", 1..=u32::MAX),
            output_decline_percent: reader.take_number("CB_OUTPUT_DECLINE_THRESHOLD", 1..=100),
            permission_denials: reader.take_number("CB_PERMISSION_DENIAL_THRESHOLD", 1..=u32::MAX),
            cooldown_minutes: reader.take_number("CB_COOLDOWN_MINUTES", 0..=u32::MAX),
        },
        problems: Vec::new(),
    };
    reader.report_unknown_keys();
    settings.problems = reader.problems;
    // Problems of one file are read from top to bottom; those of the environment have no line and come first.
    settings.problems.sort_by_key(|problem| problem.line);
    settings
}

/// Takes the values out one by one, so that what is left at the end is unknown.
struct SettingsReader<'a> {
    file_path: &'a str,
    values: BTreeMap<String, RalphValue<ShellValue>>,
    problems: Vec<FileProblem>,
}

impl SettingsReader<'_> {
    fn add_file(&mut self, settings_text: &str) {
        let script = shell_assignments::read_shell_script(settings_text);
        for unread in &script.unread {
            let message = format!("not read: {}", unread.cause);
            self.problems.push(
                FileProblem::warning("ralphrc-line-not-read", self.file_path, message)
                    .at_line(unread.line)
                    .with_reason("The file is read and never run, since a project may come from a stranger.")
                    .with_advice("write the value itself, or set it in the environment"),
            );
        }
        for assignment in script.assignments {
            let origin = RalphOrigin::File { line: assignment.line };
            let value = match assignment.value {
                ShellValue::OwnDefault(default_text) => {
                    // A line above has already set it, and a default does not replace that.
                    let is_set = |earlier: &RalphValue<ShellValue>| earlier.value != ShellValue::Text(String::new());
                    if self.values.get(&assignment.name).is_some_and(is_set) {
                        continue;
                    }
                    ShellValue::Text(default_text)
                }
                constant => constant,
            };
            self.values.insert(assignment.name, RalphValue { value, origin });
        }
    }

    fn add_environment(&mut self, environment: &BTreeMap<String, String>) {
        for setting_key in KNOWN_KEYS {
            // An empty variable counts as not set, as it does for bmalph.
            if let Some(text) = environment.get(setting_key).filter(|text| !text.is_empty()) {
                let value = ShellValue::Text(text.clone());
                self.values.insert(setting_key.into(), RalphValue { value, origin: RalphOrigin::Environment });
            }
        }
    }

    /// The text of a setting; an empty one counts as not set.
    fn take_text(&mut self, setting_key: &str) -> Option<RalphValue<String>> {
        let RalphValue { value, origin } = self.values.remove(setting_key)?;
        match value {
            ShellValue::Text(text) | ShellValue::OwnDefault(text) => {
                let value = text.trim().to_string();
                (!value.is_empty()).then_some(RalphValue { value, origin })
            }
            ShellValue::List(_) => {
                self.report_wrong_value(setting_key, "a list", origin, "a single value");
                None
            }
        }
    }

    fn take_word<T: Copy>(&mut self, setting_key: &str, words: &[(&str, T)]) -> Option<RalphValue<T>> {
        let RalphValue { value, origin } = self.take_text(setting_key)?;
        let known_word = words.iter().find(|(word, _)| value.eq_ignore_ascii_case(word));
        if known_word.is_none() {
            let word_list: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.report_wrong_value(setting_key, &quote_value(&value), origin, &join_words(&word_list));
        }
        known_word.map(|(_, value)| RalphValue { value: *value, origin })
    }

    fn take_number(&mut self, setting_key: &str, allowed: std::ops::RangeInclusive<u32>) -> Option<RalphValue<u32>> {
        let RalphValue { value, origin } = self.take_text(setting_key)?;
        let number = value.parse::<u32>().ok().filter(|number| allowed.contains(number));
        if number.is_none() {
            let expected = match *allowed.end() {
                u32::MAX => format!("a whole number from {}", allowed.start()),
                most => format!("a whole number from {} to {most}", allowed.start()),
            };
            self.report_wrong_value(setting_key, &quote_value(&value), origin, &expected);
        }
        number.map(|value| RalphValue { value, origin })
    }

    /// A list in the notation of the shell, or a text that is split. An empty list counts as not set.
    fn take_list(
        &mut self,
        setting_key: &str,
        split_text: impl Fn(&str) -> Vec<String>,
    ) -> Option<RalphValue<Vec<String>>> {
        let RalphValue { value, origin } = self.values.remove(setting_key)?;
        let items = match value {
            ShellValue::Text(text) | ShellValue::OwnDefault(text) => split_text(&text),
            ShellValue::List(words) => words,
        };
        (!items.is_empty()).then_some(RalphValue { value: items, origin })
    }

    fn take_tools(&mut self) -> Option<RalphValue<Vec<String>>> {
        let older_name = self.take_list("CLAUDE_ALLOWED_TOOLS", split_tools);
        self.take_list("ALLOWED_TOOLS", split_tools).or(older_name)
    }

    fn take_review_mode(&mut self) -> Option<RalphValue<RalphReviewMode>> {
        let review_mode = self.take_word("REVIEW_MODE", &REVIEW_MODES);
        let enabled = self.take_word("REVIEW_ENABLED", &TRUTH_WORDS);
        let is_off = review_mode.as_ref().is_none_or(|mode| mode.value == RalphReviewMode::Off);
        // The older switch counts while the mode is off, but a file cannot switch on what the environment switches off.
        let from_environment = review_mode.as_ref().is_some_and(|mode| mode.origin == RalphOrigin::Environment);
        match enabled {
            Some(RalphValue { value: true, origin })
                if is_off && (!from_environment || origin == RalphOrigin::Environment) =>
            {
                Some(RalphValue { value: RalphReviewMode::Enhanced, origin })
            }
            _ => review_mode,
        }
    }

    fn take_gate_mode(&mut self) -> Option<RalphValue<RalphGateMode>> {
        let names_breaker = |value: &RalphValue<ShellValue>| match &value.value {
            ShellValue::Text(text) => text.trim().eq_ignore_ascii_case(CIRCUIT_BREAKER_MODE),
            ShellValue::List(_) | ShellValue::OwnDefault(_) => false,
        };
        if let Some(RalphValue { origin, .. }) =
            self.values.get("QUALITY_GATE_MODE").filter(|value| names_breaker(value)).cloned()
        {
            let problem = FileProblem::note(
                "ralphrc-gate-mode",
                self.file_path,
                "QUALITY_GATE_MODE: `circuit-breaker` acts like `block`",
            )
            .with_reason("The circuit breaker opens by itself when blocked iterations make no progress.");
            self.problems.push(problem_at_origin(problem, origin));
        }
        self.take_word("QUALITY_GATE_MODE", &GATE_MODES)
    }

    fn take_permission_mode(&mut self) -> Option<RalphValue<String>> {
        let permission_mode = self.take_text("CLAUDE_PERMISSION_MODE")?;
        if PERMISSION_MODES.contains(&permission_mode.value.as_str()) {
            return Some(permission_mode);
        }
        let shown_value = quote_value(&permission_mode.value);
        let expected = join_words(&PERMISSION_MODES);
        self.report_wrong_value("CLAUDE_PERMISSION_MODE", &shown_value, permission_mode.origin, &expected);
        None
    }

    fn report_wrong_value(&mut self, setting_key: &str, shown_value: &str, origin: RalphOrigin, expected: &str) {
        let place = if origin == RalphOrigin::Environment { " (from the environment)" } else { "" };
        let message = format!("{setting_key}: {shown_value} is not {expected}{place}; ignored");
        let problem = FileProblem::warning("ralphrc-wrong-value", self.file_path, message)
            .with_advice(format!("set {setting_key} to {expected}"));
        self.problems.push(problem_at_origin(problem, origin));
    }

    fn report_unknown_keys(&mut self) {
        for (setting_key, RalphValue { origin, .. }) in std::mem::take(&mut self.values) {
            let message = format!("{setting_key} is not a setting that Tribunal uses; ignored");
            let problem = FileProblem::note("ralphrc-unknown-key", self.file_path, message);
            self.problems.push(problem_at_origin(problem, origin));
        }
    }
}

fn problem_at_origin(problem: FileProblem, origin: RalphOrigin) -> FileProblem {
    match origin {
        RalphOrigin::File { line } => problem.at_line(line),
        RalphOrigin::Environment => problem,
    }
}

fn quote_value(value: &str) -> String {
    let shown: String = value.chars().take(MAX_SHOWN_VALUE_CHARS).collect();
    if shown.len() < value.len() { format!("`{shown}…`") } else { format!("`{shown}`") }
}

/// `a, b or c`.
fn join_words(words: &[&str]) -> String {
    match words {
        [first_words @ .., last_word] if !first_words.is_empty() => {
            format!("{} or {last_word}", first_words.join(", "))
        }
        _ => words.concat(),
    }
}

fn split_words<'t, I: Iterator<Item = &'t str>>(text: &'t str, split: impl Fn(&'t str) -> I) -> Vec<String> {
    split(text).map(str::trim).filter(|word| !word.is_empty()).map(String::from).collect()
}

/// Splits at commas that are not in parentheses: `Edit,Bash(a, b)` has two tools.
fn split_tools(tools_text: &str) -> Vec<String> {
    let mut parenthesis_depth: usize = 0;
    split_words(tools_text, |_| {
        tools_text.split(move |character: char| {
            match character {
                '(' => parenthesis_depth += 1,
                ')' => parenthesis_depth = parenthesis_depth.saturating_sub(1),
                _ => {}
            }
            character == ',' && parenthesis_depth == 0
        })
    })
}

#[cfg(test)]
mod tests;
