//! Scenarios: what the server plays. Tests build them in code or read them from YAML (and so from JSON).
//!
//! The number of tool rounds since the last text of the user selects the step of a rule: the same request always gets the same
//! answer, however often a client retries. Only a rule with `uses` counts requests.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::request::{Api, Request};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The rules; the first one that matches answers.
    pub rules: Vec<Rule>,
    /// The models that `GET /v1/models` lists.
    pub models: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    pub when: When,
    /// The number of requests that the rule matches in total; with it the number of requests so far selects the step, and the
    /// last step repeats.
    pub uses: Option<usize>,
    /// The rule matches only until the test opens this gate.
    pub until: Option<String>,
    pub steps: Vec<Step>,
}

/// The conditions of a rule. All given ones must hold; without any the rule matches everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The last text of the user, without the notes that clients add to it.
    pub last: Option<Pattern>,
    pub first: Option<Pattern>,
    pub system: Option<Pattern>,
    /// The results of the last tool round.
    pub result: Option<Pattern>,
    pub model: Option<Pattern>,
    /// The client offers a tool of this name.
    pub tool: Option<String>,
    pub api: Option<Api>,
    pub stream: Option<bool>,
}

/// A pattern for texts: a plain string must be contained, `{regex: …}` must be found.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub enum Pattern {
    Text(String),
    Regex(Regex),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Regex { regex: String },
}

impl TryFrom<Written> for Pattern {
    type Error = regex::Error;

    fn try_from(written: Written) -> Result<Pattern, regex::Error> {
        match written {
            Written::Text(text) => Ok(Pattern::Text(text)),
            Written::Regex { regex } => Regex::new(&regex).map(Pattern::Regex),
        }
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Pattern {
        Pattern::Text(text.to_string())
    }
}

/// One answer of the server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// The answer is held back until the test opens this gate; the request is counted before.
    pub gate: Option<String>,
    pub text: Option<String>,
    pub calls: Vec<Call>,
    /// The answer to a schema: through the client's tool for it if one is offered, otherwise as text.
    pub structured: Option<Value>,
    pub stop: Stop,
    pub tokens: Tokens,
    /// A failure instead of the answer or in the middle of it.
    pub fail: Option<Failure>,
}

/// What the model wants to do, in terms that fit every client. Relative paths are in the client's working directory.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
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
pub enum Stop {
    /// The answer is complete, or a tool is called.
    #[default]
    Done,
    MaxTokens,
    Refusal,
}

/// The usage that the answer reports. `input` is the total, `cached` the part that came from a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tokens {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens { input: 100, cached: 0, output: 20, reasoning: 0 }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
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
    #[error("the scenario cannot be read: {0}")]
    Form(String),
    #[error("rule {0} of the scenario has no steps")]
    Empty(usize),
}

impl Scenario {
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Scenario {
        Scenario { rules: rules.into_iter().collect(), models: Vec::new() }
    }

    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let scenario: Scenario =
            serde_saphyr::from_str(text).map_err(|cause| ScenarioError::Form(cause.to_string()))?;
        match scenario.rules.iter().position(|rule| rule.steps.is_empty()) {
            Some(at) => Err(ScenarioError::Empty(at + 1)),
            None => Ok(scenario),
        }
    }

    /// The matching rule and its step. `rule_uses` has the number of requests that each rule answered so far, `open_gates` the
    /// open gates.
    pub(super) fn choose(
        &self,
        request: &Request,
        used: &[usize],
        open: &BTreeSet<String>,
    ) -> Option<(usize, &Step)> {
        let used = |at: usize| used.get(at).copied().unwrap_or_default();
        let mut rules = self.rules.iter().enumerate();
        let (at, rule) = rules.find(|(at, rule)| {
            rule.uses.is_none_or(|uses| used(*at) < uses)
                && rule.until.as_ref().is_none_or(|gate| !open.contains(gate))
                && rule.when.fits(request)
        })?;
        let step = match rule.uses {
            Some(_) => rule.steps.get(used(at)).or(rule.steps.last()),
            None => rule.steps.get(request.rounds),
        };
        step.map(|step| (at, step))
    }
}

impl Rule {
    /// A rule for requests whose last text contains this.
    pub fn on(last: &str, steps: impl IntoIterator<Item = Step>) -> Rule {
        Rule::when(When { last: Some(last.into()), ..When::default() }, steps)
    }

    pub fn when(when: When, steps: impl IntoIterator<Item = Step>) -> Rule {
        Rule { when, steps: steps.into_iter().collect(), ..Rule::default() }
    }

    /// A rule for every request.
    pub fn always(steps: impl IntoIterator<Item = Step>) -> Rule {
        Rule::when(When::default(), steps)
    }

    /// Limits the rule to the first requests.
    #[must_use]
    pub fn uses(self, uses: usize) -> Rule {
        Rule { uses: Some(uses), ..self }
    }

    /// Holds every answer of the rule back until this gate is opened.
    #[must_use]
    pub fn gated(mut self, gate: &str) -> Rule {
        self.steps.iter_mut().for_each(|step| step.gate = Some(gate.to_string()));
        self
    }

    /// Limits the rule to requests before this gate is opened.
    #[must_use]
    pub fn until(self, gate: &str) -> Rule {
        Rule { until: Some(gate.to_string()), ..self }
    }
}

impl When {
    fn fits(&self, request: &Request) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| pattern.as_ref().is_none_or(|one| one.fits(text));
        fits(&self.last, &request.last)
            && fits(&self.first, &request.first)
            && fits(&self.system, &request.system)
            && fits(&self.model, &request.model)
            && fits(&self.result, &request.results.join("\n"))
            && self.tool.as_ref().is_none_or(|tool| request.offers(tool))
            && self.api.is_none_or(|api| api == request.api)
            && self.stream.is_none_or(|stream| stream == request.stream)
    }
}

impl Pattern {
    fn fits(&self, text: &str) -> bool {
        match self {
            Pattern::Text(part) => text.contains(part.as_str()),
            Pattern::Regex(regex) => regex.is_match(text),
        }
    }
}

impl Step {
    pub fn text(text: impl Into<String>) -> Step {
        Step { text: Some(text.into()), ..Step::default() }
    }

    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Step {
        Step { calls: calls.into_iter().collect(), ..Step::default() }
    }

    pub fn structured(value: Value) -> Step {
        Step { structured: Some(value), ..Step::default() }
    }

    /// A step that fails. It has a text, because some failures break an answer off in the middle.
    pub fn fail(fail: Failure) -> Step {
        Step {
            fail: Some(fail),
            ..Step::text("This answer does not end well, and these are its first words.")
        }
    }

    #[must_use]
    pub fn gated(self, gate: &str) -> Step {
        Step { gate: Some(gate.to_string()), ..self }
    }

    #[must_use]
    pub fn stopping(self, stop: Stop) -> Step {
        Step { stop, ..self }
    }

    #[must_use]
    pub fn using(self, tokens: Tokens) -> Step {
        Step { tokens, ..self }
    }
}

impl Failure {
    /// An error answer; with an empty message only the code tells the problem.
    pub fn status(code: u16, kind: &str, message: &str) -> Failure {
        let (kind, message) = (kind.to_string(), message.to_string());
        Failure::Status { code, kind, message, headers: BTreeMap::new(), body: None }
    }

    /// Adds a header to an error answer; other failures have none.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Failure {
        if let Failure::Status { headers, .. } = &mut self {
            headers.insert(name.to_string(), value.to_string());
        }
        self
    }
}
