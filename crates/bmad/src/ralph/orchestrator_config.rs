//! The settings of ralph-orchestrator, `ralph.yml`. Its first version has flat keys; since its second the same settings are
//! under `event_loop` and `cli`. Both are read, and every other key is named.

use tribunal_engine::limits::Cost;
use tribunal_json::{Serialize, schemars};

use crate::{
    problem::FileProblem,
    yaml::{self, YamlContent, YamlEntry, YamlNode},
};

/// What the file says; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct OrchestratorConfig {
    /// The client's name as it was written: `claude`, `codex`, `auto`.
    pub agent: Option<String>,
    /// Relative to the project's root.
    pub prompt_file: Option<String>,
    pub completion_promise: Option<String>,
    pub max_iterations: Option<u32>,
    pub max_runtime_seconds: Option<u64>,
    pub max_cost: Option<Cost>,
    /// After how many iterations a checkpoint is made.
    pub checkpoint_interval: Option<u32>,
    #[serde(skip)]
    pub problems: Vec<FileProblem>,
}

/// Reads the file. The path only names it in problems.
pub fn read_orchestrator_config(config_text: &str, file_path: &str) -> OrchestratorConfig {
    let mut reader = ConfigReader { file_path, config: OrchestratorConfig::default() };
    match yaml::parse_yaml(config_text) {
        Ok(root) => reader.read_root(&root),
        Err(error) => {
            let mut problem = FileProblem::error("ralph-yml-invalid", file_path, error.message);
            (problem.line, problem.column) = (error.line, error.column);
            reader.config.problems.push(problem.with_advice("correct the file; none of its settings are used"));
        }
    }
    reader.config
}

struct ConfigReader<'a> {
    file_path: &'a str,
    config: OrchestratorConfig,
}

impl ConfigReader<'_> {
    fn read_root(&mut self, root: &YamlNode) {
        if !matches!(root.content, YamlContent::Mapping(_) | YamlContent::Null) {
            let problem = FileProblem::error("ralph-yml-invalid", self.file_path, "the file has no `key: value` lines");
            self.config.problems.push(problem.at_line(root.line));
        }
        for entry in root.entries() {
            match entry.key.as_str() {
                "event_loop" => {
                    entry.value.entries().iter().for_each(|entry| self.read_loop_entry("event_loop.", entry))
                }
                "cli" => entry.value.entries().iter().for_each(|entry| match entry.key.as_str() {
                    "backend" => self.config.agent = self.text_value(entry),
                    _ => self.report_unknown_key("cli.", entry),
                }),
                "agent" => self.config.agent = self.text_value(entry),
                _ => self.read_loop_entry("", entry),
            }
        }
    }

    fn read_loop_entry(&mut self, key_prefix: &str, entry: &YamlEntry) {
        match entry.key.as_str() {
            "prompt_file" => self.config.prompt_file = self.path_value(entry),
            "completion_promise" => self.config.completion_promise = self.text_value(entry),
            "max_iterations" => self.config.max_iterations = self.number_value(entry),
            "max_runtime" | "max_runtime_seconds" => self.config.max_runtime_seconds = self.number_value(entry),
            "max_cost" | "max_cost_usd" => self.config.max_cost = self.cost_value(entry),
            "checkpoint_interval" => self.config.checkpoint_interval = self.number_value(entry),
            _ => self.report_unknown_key(key_prefix, entry),
        }
    }

    fn text_value(&mut self, entry: &YamlEntry) -> Option<String> {
        match &entry.value.content {
            YamlContent::Null => None,
            YamlContent::Scalar(text) => Some(text.trim().to_string()).filter(|text| !text.is_empty()),
            YamlContent::Sequence(_) | YamlContent::Mapping(_) => {
                self.report_wrong_value(entry, "a text");
                None
            }
        }
    }

    /// A path that stays in the project.
    fn path_value(&mut self, entry: &YamlEntry) -> Option<String> {
        let written_path = self.text_value(entry)?;
        let path = written_path.trim_start_matches("./");
        let leads_outside = path.starts_with(['/', '~', '\\']) || path.split(['/', '\\']).any(|part| part == "..");
        if leads_outside || path.is_empty() {
            self.report_wrong_value(entry, "a path in the project, relative to its root");
            return None;
        }
        Some(path.to_string())
    }

    /// A whole number from 1. Zero would be a loop that never runs or never ends.
    fn number_value<T: std::str::FromStr + PartialOrd + Default>(&mut self, entry: &YamlEntry) -> Option<T> {
        let text = self.text_value(entry)?;
        let number = text.parse::<T>().ok().filter(|number| *number > T::default());
        if number.is_none() {
            self.report_wrong_value(entry, "a whole number from 1");
        }
        number
    }

    fn cost_value(&mut self, entry: &YamlEntry) -> Option<Cost> {
        let text = self.text_value(entry)?;
        let cost = text.parse::<f64>().ok().map(Cost::from_amount).filter(|cost| !cost.is_zero());
        if cost.is_none() {
            self.report_wrong_value(entry, "an amount above 0, such as 10.00");
        }
        cost
    }

    fn report_wrong_value(&mut self, entry: &YamlEntry, expected: &str) {
        let message = format!("{}: the value is not {expected}; ignored", entry.key);
        let problem = FileProblem::warning("ralph-yml-wrong-value", self.file_path, message);
        self.config.problems.push(problem.at_line(entry.line));
    }

    fn report_unknown_key(&mut self, key_prefix: &str, entry: &YamlEntry) {
        let message = format!("{key_prefix}{} is not a setting that Tribunal uses; ignored", entry.key);
        let problem = FileProblem::note("ralph-yml-unknown-key", self.file_path, message);
        self.config.problems.push(problem.at_line(entry.line));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem_lines(config: &OrchestratorConfig) -> Vec<String> {
        config.problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn both_layouts_are_read() {
        let flat = "agent: claude\nprompt_file: ./PROMPT.md\nmax_iterations: 50\nmax_runtime: 3600\nmax_cost: 2.5\n\
            completion_promise: \"LOOP_COMPLETE\"\ncheckpoint_interval: 5\n";
        let nested = "cli:\n  backend: claude\nevent_loop:\n  prompt_file: PROMPT.md\n  max_iterations: 50\n\
            \x20 max_runtime_seconds: 3600\n  max_cost_usd: 2.50\n  completion_promise: LOOP_COMPLETE\n  checkpoint_interval: 5\n";
        let expected = OrchestratorConfig {
            agent: Some("claude".into()),
            prompt_file: Some("PROMPT.md".into()),
            completion_promise: Some("LOOP_COMPLETE".into()),
            max_iterations: Some(50),
            max_runtime_seconds: Some(3_600),
            max_cost: Some(Cost::from_amount(2.5)),
            checkpoint_interval: Some(5),
            problems: Vec::new(),
        };
        assert_eq!(read_orchestrator_config(flat, "ralph.yml"), expected);
        assert_eq!(read_orchestrator_config(nested, "ralph.yml"), expected);
        assert_eq!(read_orchestrator_config("# nothing\n", "ralph.yml"), OrchestratorConfig::default());
    }

    #[test]
    fn what_cannot_be_used_is_named_and_ignored() {
        let config_text = "hats:\n  a: 1\nmax_iterations: 0\nmax_cost: free\nprompt_file: ../x.md\n\
            agent: [a]\nevent_loop:\n  starting_event: x\ncli:\n  args: y\n";
        let config = read_orchestrator_config(config_text, "ralph.yml");
        assert_eq!(
            problem_lines(&config),
            [
                "ralph.yml:1: hats is not a setting that Tribunal uses; ignored",
                "ralph.yml:3: max_iterations: the value is not a whole number from 1; ignored",
                "ralph.yml:4: max_cost: the value is not an amount above 0, such as 10.00; ignored",
                "ralph.yml:5: prompt_file: the value is not a path in the project, relative to its root; ignored",
                "ralph.yml:6: agent: the value is not a text; ignored",
                "ralph.yml:8: event_loop.starting_event is not a setting that Tribunal uses; ignored",
                "ralph.yml:10: cli.args is not a setting that Tribunal uses; ignored",
            ]
        );
        assert_eq!(OrchestratorConfig { problems: Vec::new(), ..config }, OrchestratorConfig::default());
        assert_eq!(read_orchestrator_config("a: b: c", "ralph.yml").problems.len(), 1);
        let config = read_orchestrator_config("just text", "ralph.yml");
        assert_eq!(problem_lines(&config), ["ralph.yml:1: the file has no `key: value` lines"]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(config_text in "(?s)(max_cost|event_loop|: |\n  |- |[0-9.]|.){0,30}") {
            let _ = read_orchestrator_config(&config_text, "ralph.yml");
        }
    }
}
