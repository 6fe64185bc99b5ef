//! Scenarios: what the server plays. Tests build them in code or read them from YAML (and so from JSON).
//!
//! The number of tool rounds since the last text of the user selects the step of a rule: the same request always gets the same
//! answer, however often a client retries. Only a rule with `uses` counts requests.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::request::{ModelApi, ModelRequest};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The rules; the first one that matches answers.
    pub rules: Vec<ScenarioRule>,
    /// The models that `GET /v1/models` lists.
    pub models: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScenarioRule {
    pub when: RuleCondition,
    /// The number of requests that the rule matches in total; with it the number of requests so far selects the step, and the
    /// last step repeats.
    pub uses: Option<usize>,
    /// The rule matches only until the test opens this gate.
    pub until: Option<String>,
    pub steps: Vec<AnswerStep>,
}

/// The conditions of a rule. All given ones must hold; without any the rule matches everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleCondition {
    /// The last text of the user, without the notes that clients add to it.
    pub last: Option<TextPattern>,
    pub first: Option<TextPattern>,
    pub system: Option<TextPattern>,
    /// The results of the last tool round.
    pub result: Option<TextPattern>,
    pub model: Option<TextPattern>,
    /// The client offers a tool of this name.
    pub tool: Option<String>,
    pub api: Option<ModelApi>,
    pub stream: Option<bool>,
}

/// A pattern for texts: a plain string must be contained, `{regex: …}` must be found.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub enum TextPattern {
    Text(String),
    Regex(Regex),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Regex { regex: String },
}

impl TryFrom<Written> for TextPattern {
    type Error = regex::Error;

    fn try_from(written: Written) -> Result<TextPattern, regex::Error> {
        match written {
            Written::Text(text) => Ok(TextPattern::Text(text)),
            Written::Regex { regex } => Regex::new(&regex).map(TextPattern::Regex),
        }
    }
}

impl From<&str> for TextPattern {
    fn from(text: &str) -> TextPattern {
        TextPattern::Text(text.to_string())
    }
}

/// One answer of the server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerStep {
    /// The answer is held back until the test opens this gate; the request is counted before.
    pub gate: Option<String>,
    pub text: Option<String>,
    pub calls: Vec<ScenarioCall>,
    /// The answer to a schema: through the client's tool for it if one is offered, otherwise as text.
    pub structured: Option<Value>,
    pub stop: AnswerStop,
    pub tokens: ScriptedTokens,
    /// A failure instead of the answer or in the middle of it.
    pub fail: Option<AnswerFailure>,
}

/// What the model wants to do, in terms that fit every client. Relative paths are in the client's working directory.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioCall {
    Write {
        path: String,
        content: String,
    },
    /// The old text must occur; its first occurrence is changed.
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Shell(String),
    Read(String),
    /// Exactly this tool with exactly this input, offered or not.
    Tool {
        name: String,
        #[serde(default)]
        input: Value,
    },
}

/// The reason why the answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStop {
    /// The answer is complete, or a tool is called.
    #[default]
    Done,
    MaxTokens,
    Refusal,
}

/// The usage that the answer reports. `input` is the total, `cached` the part that came from a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedTokens {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Default for ScriptedTokens {
    fn default() -> ScriptedTokens {
        ScriptedTokens { input: 100, cached: 0, output: 20, reasoning: 0 }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFailure {
    /// An error answer in the form of the interface, or `body` as it is; either may contain timestamps (`timestamps.rs`).
    Status {
        code: u16,
        #[serde(default)]
        kind: String,
        #[serde(default)]
        message: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        #[serde(default)]
        body: Option<String>,
    },
    /// The connection ends in the middle of the answer.
    Cut,
    /// The stream begins normally and then reports an error.
    StreamError { kind: String, message: String },
    /// The connection ends before the answer begins.
    HangUp,
    /// The status is success, but the body is not valid JSON.
    NotJson(String),
    /// There is no answer until the client gives up or the server is dropped.
    Silence,
}

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("invalid scenario: {0}")]
    Invalid(String),
    #[error("invalid scenario: rule {0} has no steps")]
    RuleWithoutSteps(usize),
}

impl Scenario {
    pub fn new(rules: impl IntoIterator<Item = ScenarioRule>) -> Scenario {
        Scenario { rules: rules.into_iter().collect(), models: Vec::new() }
    }

    pub fn parse(yaml_text: &str) -> Result<Scenario, ScenarioError> {
        let scenario: Scenario =
            serde_saphyr::from_str(yaml_text).map_err(|cause| ScenarioError::Invalid(cause.to_string()))?;
        match scenario.rules.iter().position(|rule| rule.steps.is_empty()) {
            Some(rule_index) => Err(ScenarioError::RuleWithoutSteps(rule_index + 1)),
            None => Ok(scenario),
        }
    }

    /// The matching rule and its step. `rule_uses` has the number of requests that each rule answered so far, `open_gates` the
    /// open gates.
    pub(super) fn choose_step(
        &self,
        request: &ModelRequest,
        rule_uses: &[usize],
        open_gates: &BTreeSet<String>,
    ) -> Option<(usize, &AnswerStep)> {
        let count_uses = |rule_index: usize| rule_uses.get(rule_index).copied().unwrap_or_default();
        let mut rules = self.rules.iter().enumerate();
        let (rule_index, rule) = rules.find(|(rule_index, rule)| {
            rule.uses.is_none_or(|uses| count_uses(*rule_index) < uses)
                && rule.until.as_ref().is_none_or(|gate| !open_gates.contains(gate))
                && rule.when.matches_request(request)
        })?;
        let step = match rule.uses {
            Some(_) => rule.steps.get(count_uses(rule_index)).or(rule.steps.last()),
            None => rule.steps.get(request.tool_rounds),
        };
        step.map(|step| (rule_index, step))
    }
}

impl ScenarioRule {
    /// A rule for requests whose last text contains this.
    pub fn on_last_text(last_text: &str, steps: impl IntoIterator<Item = AnswerStep>) -> ScenarioRule {
        ScenarioRule::on_condition(RuleCondition { last: Some(last_text.into()), ..RuleCondition::default() }, steps)
    }

    pub fn on_condition(condition: RuleCondition, steps: impl IntoIterator<Item = AnswerStep>) -> ScenarioRule {
        ScenarioRule { when: condition, steps: steps.into_iter().collect(), ..ScenarioRule::default() }
    }

    /// A rule for every request.
    pub fn always(steps: impl IntoIterator<Item = AnswerStep>) -> ScenarioRule {
        ScenarioRule::on_condition(RuleCondition::default(), steps)
    }

    /// Limits the rule to the first requests.
    #[must_use]
    pub fn limited_to(self, max_uses: usize) -> ScenarioRule {
        ScenarioRule { uses: Some(max_uses), ..self }
    }

    /// Holds every answer of the rule back until this gate is opened.
    #[must_use]
    pub fn gated(mut self, gate: &str) -> ScenarioRule {
        self.steps.iter_mut().for_each(|step| step.gate = Some(gate.to_string()));
        self
    }

    /// Limits the rule to requests before this gate is opened.
    #[must_use]
    pub fn until_gate(self, gate: &str) -> ScenarioRule {
        ScenarioRule { until: Some(gate.to_string()), ..self }
    }
}

impl RuleCondition {
    fn matches_request(&self, request: &ModelRequest) -> bool {
        let matches_text = |pattern: &Option<TextPattern>, text: &str| {
            pattern.as_ref().is_none_or(|text_pattern| text_pattern.matches_text(text))
        };
        matches_text(&self.last, &request.last_text)
            && matches_text(&self.first, &request.first_text)
            && matches_text(&self.system, &request.system_text)
            && matches_text(&self.model, &request.model)
            && matches_text(&self.result, &request.tool_results.join("\n"))
            && self.tool.as_ref().is_none_or(|tool| request.offers_tool(tool))
            && self.api.is_none_or(|api| api == request.api)
            && self.stream.is_none_or(|stream| stream == request.is_streaming)
    }
}

impl TextPattern {
    fn matches_text(&self, text: &str) -> bool {
        match self {
            TextPattern::Text(substring) => text.contains(substring.as_str()),
            TextPattern::Regex(regex) => regex.is_match(text),
        }
    }
}

impl AnswerStep {
    pub fn from_text(text: impl Into<String>) -> AnswerStep {
        AnswerStep { text: Some(text.into()), ..AnswerStep::default() }
    }

    pub fn from_calls(calls: impl IntoIterator<Item = ScenarioCall>) -> AnswerStep {
        AnswerStep { calls: calls.into_iter().collect(), ..AnswerStep::default() }
    }

    pub fn from_structured(value: Value) -> AnswerStep {
        AnswerStep { structured: Some(value), ..AnswerStep::default() }
    }

    /// A step that fails. It has a text, because some failures break an answer off in the middle.
    pub fn from_failure(failure: AnswerFailure) -> AnswerStep {
        AnswerStep {
            fail: Some(failure),
            ..AnswerStep::from_text("This answer does not end well, and these are its first words.")
        }
    }

    #[must_use]
    pub fn gated(self, gate: &str) -> AnswerStep {
        AnswerStep { gate: Some(gate.to_string()), ..self }
    }

    #[must_use]
    pub fn with_stop(self, stop: AnswerStop) -> AnswerStep {
        AnswerStep { stop, ..self }
    }

    #[must_use]
    pub fn with_tokens(self, tokens: ScriptedTokens) -> AnswerStep {
        AnswerStep { tokens, ..self }
    }
}

impl AnswerFailure {
    /// An error answer; with an empty message only the code tells the problem.
    pub fn from_status(code: u16, kind: &str, message: &str) -> AnswerFailure {
        let (kind, message) = (kind.to_string(), message.to_string());
        AnswerFailure::Status { code, kind, message, headers: BTreeMap::new(), body: None }
    }

    /// Adds a header to an error answer; other failures have none.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> AnswerFailure {
        if let AnswerFailure::Status { headers, .. } = &mut self {
            headers.insert(name.to_string(), value.to_string());
        }
        self
    }
}
