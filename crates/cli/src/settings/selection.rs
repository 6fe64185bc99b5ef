//! Assigns kinds of tasks to agents: `agentConfig`, deterministic and by one rule.
//!
//! | what is set | for a kind of task |
//! | --- | --- |
//! | no `primary` | every agent under `agents.use` takes it, the fallback stands by |
//! | `primary` | it takes it; the fallback stands by, the other agents under `agents.use` stand behind it |
//! | `primary`, `fallback: false` | it takes it, and no agent stands by |
//!
//! A setting for a complexity wins over one for a task, which wins over the default; a task at a complexity wins over both. A
//! model belongs to the agent that it was named with: a stronger setting that names another agent does not send it the model
//! of the weaker one. An agent that was named for one kind of task gets nothing of another. An agent that `--agent` names
//! works alone: none of these settings is read then.

use tribunal_agents::clients::AgentClient;
use tribunal_core::{
    client::{Duty, Job, Part},
    level::Tier,
    settings::{AgentSpec, DriverSpec},
};

use super::{
    kind::Value,
    layers::{Effective, text},
    origin::Layer,
    read::Problem,
    typed::TypedSettings,
};

const JOBS: [Job; 2] = [Job::Review, Job::Fix];
const FALLBACK: &str = "agentConfig.defaultFallback";

/// Who does a kind of task, as far as that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Choice {
    primary: Option<String>,
    fallback: Fallback,
    /// The model with the path of its setting.
    model: Option<(String, String)>,
}

/// The agent that steps in if the first one fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Fallback {
    #[default]
    Unsaid,
    Nobody,
    Agent(String),
}

impl Fallback {
    fn is(&self, name: &str) -> bool {
        matches!(self, Fallback::Agent(agent) if agent == name)
    }
}

/// What `agentConfig` says for one review.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    choices: Vec<(Job, Choice)>,
    fixer_model: Option<String>,
}

impl Selection {
    pub fn from_settings(effective: &Effective, typed: &TypedSettings) -> Selection {
        let (tier, fixer_model) = (typed.run.tier, typed.agents.fixer_model.clone());
        // The flag means: this agent and no other.
        let alone = effective.origin("agents.use").is_some_and(|origin| origin.layer == Layer::Flags);
        // A default choice means that every agent in use takes every task.
        let choice = |job| if alone { Choice::default() } else { choice(effective, job, tier) };
        Selection { choices: JOBS.map(|job| (job, choice(job))).to_vec(), fixer_model }
    }

    /// The agents that take a kind of task by name, each once.
    pub fn primaries(&self) -> Vec<String> {
        once(self.choices.iter().filter_map(|(_, choice)| choice.primary.clone()))
    }

    /// The agents that step in by name, each once.
    pub fn fallbacks(&self) -> Vec<String> {
        once(self.choices.iter().filter_map(|(_, choice)| match &choice.fallback {
            Fallback::Agent(name) => Some(name.clone()),
            Fallback::Nobody | Fallback::Unsaid => None,
        }))
    }

    /// Gives every agent its duties. `used_names` are those under `agents.use`.
    pub fn assign(
        &self,
        agents: &mut [AgentSpec],
        used: &[String],
        effective: &Effective,
    ) -> (Vec<Problem>, Vec<String>) {
        let (mut problems, mut remarks) = (Vec::new(), Vec::new());
        for (job, choice) in &self.choices {
            // The takers are needed before the duties are assigned, because the model is checked against them.
            let takers: Vec<&AgentSpec> = agents
                .iter()
                .filter(|agent| part(choice, agent.name.as_str(), used) == Part::Takes)
                .collect();
            if let Some((model, path)) = &choice.model {
                // A model name is only valid for one vendor, so it must not go to several kinds of clients.
                match fit(&takers, path, model) {
                    Fit::One => {}
                    Fit::Several(what) => problems.push(Problem::at(
                        effective.origin(path),
                        what,
                        Some(
                            "name the agent it is for beside it as `primary`, or set `agents.NAME.model`"
                                .into(),
                        ),
                    )),
                    Fit::Nobody(what) => remarks.push(what),
                }
            } else if let (Job::Fix, Some(model)) = (job, &self.fixer_model)
                // Only a warning: the setting is often part of a pasted block.
                && !takers.iter().any(|agent| uses_fixer_model(agent))
            {
                let known = AgentClient::all().filter(|client| client.agent.uses_fixer_model);
                let names: Vec<&str> = known.map(|client| client.name).collect();
                remarks.push(format!(
                    "`tasks.fixer_model` is `{model}`, and no fixer is {}: it is not used",
                    names.join(" or ")
                ));
            }
            for agent in agents.iter_mut() {
                let duty = self.duty(*job, choice, agent, used);
                // A default duty is left out, which keeps the pinned settings short.
                if duty != Duty::default() {
                    agent.duties.insert(*job, duty);
                }
            }
        }
        (problems, remarks)
    }

    /// The duty of one agent for one kind of task.
    fn duty(&self, job: Job, choice: &Choice, agent: &AgentSpec, used: &[String]) -> Duty {
        let part = part(choice, agent.name.as_str(), used);
        // Models are names of a client; commands and scripts have none.
        let set = choice.model.as_ref().map(|(model, _)| model);
        let model = match &agent.driver {
            DriverSpec::Client(_) if job == Job::Fix && uses_fixer_model(agent) => {
                set.or(self.fixer_model.as_ref())
            }
            DriverSpec::Client(_) => set,
            DriverSpec::Command { .. } | DriverSpec::Replay { .. } => None,
        };
        // Only an agent that takes the task gets the model that was set for it.
        Duty { part, model: model.filter(|_| part == Part::Takes).cloned() }
    }
}

/// Returns whether `tasks.fixer_model` applies to this agent's client.
fn uses_fixer_model(agent: &AgentSpec) -> bool {
    let client = agent.driver.client().and_then(|client| AgentClient::find(client.client.as_str()).ok());
    client.is_some_and(|client| client.agent.uses_fixer_model)
}

/// The names without repetitions, in their order.
fn once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// The part of an agent, by the table in the module documentation.
fn part(choice: &Choice, name: &str, used: &[String]) -> Part {
    let is_used = used.iter().any(|other| other == name);
    match &choice.primary {
        // The order of these arms is the table: the primary first, then agents in use, then the fallback.
        Some(primary) if primary == name => Part::Takes,
        None if is_used => Part::Takes,
        _ if choice.fallback.is(name) => Part::StandsBy,
        Some(_) if is_used && choice.fallback != Fallback::Nobody => Part::StandsBehind,
        _ => Part::Never,
    }
}

/// Whether one model name can be right for all agents that take a task.
enum Fit {
    One,
    Several(String),
    Nobody(String),
}

/// Checks whether one kind of client takes the task, so that one model name can be right.
fn fit(takers: &[&AgentSpec], path: &str, model: &str) -> Fit {
    let clients: Vec<&&AgentSpec> = takers.iter().filter(|agent| agent.driver.client().is_some()).collect();
    let names = |agents: &[&&AgentSpec]| {
        agents.iter().map(|agent| format!("`{}`", agent.name)).collect::<Vec<_>>().join(", ")
    };
    // Two agents with the same driver have the same vendor.
    let kind = |agent: &&&AgentSpec| agent.driver.name().to_string();
    match clients.as_slice() {
        [] => {
            Fit::Nobody(format!("`{path}` is `{model}`, and nobody who takes it is a client: it is not used"))
        }
        [first, others @ ..] if others.iter().all(|other| kind(other) == kind(first)) => Fit::One,
        several => Fit::Several(format!(
            "`{path}` is `{model}`, and clients of different vendors take it: {}",
            names(several)
        )),
    }
}

/// The complexity of a tier: low is 0 and 1, medium 2 and 3, high 4.
fn complexity(tier: Tier) -> &'static str {
    match tier.number() {
        0 | 1 => "low",
        2 | 3 => "medium",
        _ => "high",
    }
}

/// The sections that apply to a task, the weakest first.
fn sections(job: Job, tier: Tier) -> [String; 5] {
    let at = |complexity: &str| format!("agentConfig.complexityOverrides.{complexity}");
    let (word, number) = (at(complexity(tier)), at(&tier.to_string()));
    // A number says more than a word, and a task at a complexity more than either.
    [
        format!("agentConfig.perTask.{job}"),
        word.clone(),
        number.clone(),
        format!("{word}.perTask.{job}"),
        format!("{number}.perTask.{job}"),
    ]
}

/// Reads who does a kind of task.
fn choice(effective: &Effective, job: Job, tier: Tier) -> Choice {
    let mut choice = Choice { fallback: fallback(effective, FALLBACK), ..Choice::default() };
    for section in sections(job, tier) {
        let (primary, model) = (format!("{section}.primary"), format!("{section}.model"));
        if let Some(name) = text(effective, &primary) {
            // Another agent must not get the model of the one that it replaces.
            choice.primary = Some(name.to_string());
            choice.model = None;
        }
        if let Some(name) = text(effective, &model) {
            choice.model = Some((name.to_string(), model));
        }
        match fallback(effective, &format!("{section}.fallback")) {
            Fallback::Unsaid => {}
            said => choice.fallback = said,
        }
    }
    choice
}

/// Reads a fallback. `false` disables it, which differs from leaving it unset.
fn fallback(effective: &Effective, path: &str) -> Fallback {
    match effective.get(path) {
        Some(Value::Text(name)) => Fallback::Agent(name.clone()),
        Some(_) => Fallback::Nobody,
        None => Fallback::Unsaid,
    }
}

/// Every agent name in `agentConfig` with its path, whether this review needs it or not. Tasks that no review has are left out.
pub(super) fn names(effective: &Effective) -> Vec<(&str, &str)> {
    let is_ours = |path: &str| {
        let task = path.split_once("perTask.").and_then(|(_, rest)| rest.split('.').next());
        path.starts_with("agentConfig.")
            && (path == FALLBACK || path.ends_with(".primary") || path.ends_with(".fallback"))
            && task.is_none_or(|task| JOBS.iter().any(|job| job.as_str() == task))
    };
    let named = effective.values.iter().filter(|(path, _)| is_ours(path));
    named
        .filter_map(|(path, setting)| match &setting.value {
            Value::Text(name) => Some((path.as_str(), name.as_str())),
            _ => None,
        })
        .collect()
}
