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

use std::collections::BTreeMap;

use tribunal_agents::clients::AgentClient;
use tribunal_engine::tier::ProcessTier;
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    runs::settings::AgentSpec,
    tasks::client::{JobDuty, JobKind, JobPriority},
};

use super::{
    file_reader::SettingProblem,
    kind::SettingValue,
    layers::{EffectiveSettings, text_setting},
    origin::SettingLayer,
    typed::{SeatModels, TypedSettings},
};

const REVIEW_JOBS: [JobKind; 2] = [JobKind::Review, JobKind::Fix];
const DEFAULT_FALLBACK_PATH: &str = "agentConfig.defaultFallback";

/// Who does a kind of task, as far as that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct JobChoice {
    primary: Option<String>,
    fallback: FallbackAgent,
    /// The model with the path of its setting.
    model: Option<(String, String)>,
}

/// The agent that steps in if the first one fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum FallbackAgent {
    #[default]
    Unset,
    Disabled,
    Agent(String),
}

impl FallbackAgent {
    fn is_agent(&self, agent_name: &str) -> bool {
        matches!(self, FallbackAgent::Agent(agent) if agent == agent_name)
    }
}

/// What `agentConfig` says for one review.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentSelection {
    choices: Vec<(JobKind, JobChoice)>,
    fixer_model: Option<String>,
    seat_models: SeatModels,
}

impl AgentSelection {
    pub fn from_settings(effective: &EffectiveSettings, typed_settings: &TypedSettings) -> AgentSelection {
        let review_tier = typed_settings.run.tier;
        // The flag means: this agent and no other.
        let is_named_by_flag =
            effective.origin_of("agents.use").is_some_and(|use_origin| use_origin.layer == SettingLayer::Flags);
        // A default choice means that every agent in use takes every task.
        let choice_for = |review_job| {
            if is_named_by_flag { JobChoice::default() } else { read_job_choice(effective, review_job, review_tier) }
        };
        AgentSelection {
            choices: REVIEW_JOBS.map(|review_job| (review_job, choice_for(review_job))).to_vec(),
            fixer_model: typed_settings.agents.fixer_model.clone(),
            seat_models: typed_settings.agents.seat_models.clone(),
        }
    }

    /// The agents that take a kind of task by name, each once.
    pub fn primary_names(&self) -> Vec<String> {
        unique_names(self.choices.iter().filter_map(|(_, choice)| choice.primary.clone()))
    }

    /// The agents that step in by name, each once.
    pub fn fallback_names(&self) -> Vec<String> {
        unique_names(self.choices.iter().filter_map(|(_, choice)| match &choice.fallback {
            FallbackAgent::Agent(fallback_name) => Some(fallback_name.clone()),
            FallbackAgent::Disabled | FallbackAgent::Unset => None,
        }))
    }

    /// Gives every agent its duties. `used_names` are those under `agents.use`.
    pub fn assign_duties(
        &self,
        agents: &mut [AgentSpec],
        used_names: &[String],
        effective: &EffectiveSettings,
    ) -> (Vec<SettingProblem>, Vec<String>) {
        let (mut selection_problems, mut remarks) = (Vec::new(), Vec::new());
        for (review_job, job_choice) in &self.choices {
            // The takers are needed before the duties are assigned, because the model is checked against them.
            let taking_agents: Vec<&AgentSpec> = agents
                .iter()
                .filter(|agent_spec| {
                    part_of_agent(job_choice, agent_spec.name.as_str(), used_names) == JobPriority::Takes
                })
                .collect();
            if let Some((model_name, setting_path)) = &job_choice.model {
                // A model name is only valid for one vendor, so it must not go to several kinds of clients.
                match check_model_fit(&taking_agents, setting_path, model_name) {
                    ModelFit::OneVendor => {}
                    ModelFit::SeveralVendors(problem_text) => selection_problems.push(SettingProblem::from_origin(
                        effective.origin_of(setting_path),
                        problem_text,
                        Some("add `primary` beside it to name one agent, or set `agents.NAME.model`".into()),
                    )),
                    ModelFit::NoClient(problem_text) => remarks.push(problem_text),
                }
            } else if !taking_agents.iter().any(|agent_spec| uses_seat_models(agent_spec)) {
                // This is only a warning: the settings may be part of a pasted block.
                remarks.extend(self.ignored_seat_models(*review_job));
            }
            for agent_spec in agents.iter_mut() {
                let agent_duty = self.duty_of(*review_job, job_choice, agent_spec, used_names);
                // A default duty is left out, which keeps the pinned settings short.
                if agent_duty != JobDuty::default() {
                    agent_spec.duties.insert(*review_job, agent_duty);
                }
            }
        }
        (selection_problems, remarks)
    }

    /// The duty of one agent for one kind of task.
    fn duty_of(
        &self,
        review_job: JobKind,
        job_choice: &JobChoice,
        agent_spec: &AgentSpec,
        used_names: &[String],
    ) -> JobDuty {
        let agent_part = part_of_agent(job_choice, agent_spec.name.as_str(), used_names);
        // Only an agent that takes the task gets the models that were set for it. Models are names of a client; commands and
        // scripts have none.
        if agent_part != JobPriority::Takes || agent_spec.driver.client_spec().is_none() {
            return JobDuty { part: agent_part, ..JobDuty::default() };
        }
        let job_model = job_choice.model.as_ref().map(|(chosen_model, _)| chosen_model.clone());
        if !uses_seat_models(agent_spec) {
            return JobDuty { part: agent_part, model: job_model, ..JobDuty::default() };
        }
        match review_job {
            JobKind::Fix => {
                let model = job_model.or_else(|| self.fixer_model.clone());
                JobDuty { part: agent_part, model, ..JobDuty::default() }
            }
            _ => JobDuty { part: agent_part, model: job_model, seat_models: self.models_by_role() },
        }
    }

    fn models_by_role(&self) -> BTreeMap<AgentRole, String> {
        let model_for = |role| Some((role, self.seat_models.for_role(role)?.clone()));
        AgentRole::ALL.into_iter().filter_map(model_for).collect()
    }

    /// Says which models of seats are ignored because no agent that takes the job can use them.
    fn ignored_seat_models(&self, review_job: JobKind) -> Vec<String> {
        let SeatModels { reviewer, party, elicitation } = &self.seat_models;
        let set_models = match review_job {
            JobKind::Fix => vec![("fixer_model", &self.fixer_model)],
            _ => vec![("reviewer_model", reviewer), ("party_model", party), ("elicitation_model", elicitation)],
        };
        let worker_name = if review_job == JobKind::Fix { "fixer" } else { "reviewer" };
        let matching_clients = AgentClient::all().filter(|known_client| known_client.facts.uses_seat_models);
        let client_names: Vec<&str> = matching_clients.map(|known_client| known_client.name).collect();
        let describe_ignored = |(setting_name, model): (&str, &Option<String>)| {
            Some(format!(
                "`tasks.{setting_name}` (`{}`) is ignored because no {worker_name} is {}",
                model.as_ref()?,
                client_names.join(" or ")
            ))
        };
        set_models.into_iter().filter_map(describe_ignored).collect()
    }
}

/// Returns whether models for single seats, such as `tasks.fixer_model`, apply to this agent's client.
pub(super) fn uses_seat_models(agent_spec: &AgentSpec) -> bool {
    let known_client =
        agent_spec.driver.client_spec().and_then(|client_spec| AgentClient::find(client_spec.client.as_str()).ok());
    known_client.is_some_and(|known_client| known_client.facts.uses_seat_models)
}

/// The names without repetitions, in their order.
fn unique_names(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen_names: Vec<String> = Vec::new();
    for next_name in names {
        if !seen_names.contains(&next_name) {
            seen_names.push(next_name);
        }
    }
    seen_names
}

/// The part of an agent, by the table in the module documentation.
fn part_of_agent(job_choice: &JobChoice, agent_name: &str, used_names: &[String]) -> JobPriority {
    let is_used = used_names.iter().any(|used_name| used_name == agent_name);
    match &job_choice.primary {
        // The order of these arms is the table: the primary first, then agents in use, then the fallback.
        Some(primary) if primary == agent_name => JobPriority::Takes,
        None if is_used => JobPriority::Takes,
        _ if job_choice.fallback.is_agent(agent_name) => JobPriority::StandsBy,
        Some(_) if is_used && job_choice.fallback != FallbackAgent::Disabled => JobPriority::LastResort,
        _ => JobPriority::Never,
    }
}

/// Whether one model name can be right for all agents that take a task.
enum ModelFit {
    OneVendor,
    SeveralVendors(String),
    NoClient(String),
}

/// Checks whether one kind of client takes the task, so that one model name can be right.
fn check_model_fit(taking_agents: &[&AgentSpec], setting_path: &str, model_name: &str) -> ModelFit {
    let client_agents: Vec<&&AgentSpec> =
        taking_agents.iter().filter(|agent_spec| agent_spec.driver.client_spec().is_some()).collect();
    let join_names = |listed_agents: &[&&AgentSpec]| {
        listed_agents.iter().map(|agent_spec| format!("`{}`", agent_spec.name)).collect::<Vec<_>>().join(", ")
    };
    // Two agents with the same driver have the same vendor.
    let driver_name = |agent_spec: &&&AgentSpec| agent_spec.driver.driver_name().to_string();
    match client_agents.as_slice() {
        [] => ModelFit::NoClient(format!(
            "`{setting_path}` (`{model_name}`) is ignored because no agent for this task is a client"
        )),
        [first_client, other_clients @ ..]
            if other_clients.iter().all(|other| driver_name(other) == driver_name(first_client)) =>
        {
            ModelFit::OneVendor
        }
        mixed_clients => ModelFit::SeveralVendors(format!(
            "`{setting_path}` is `{model_name}`, but clients of different vendors do this task: {}",
            join_names(mixed_clients)
        )),
    }
}

/// The complexity of a tier: low is 0 and 1, medium 2 and 3, high 4.
fn tier_complexity(review_tier: ProcessTier) -> &'static str {
    match review_tier.number() {
        0 | 1 => "low",
        2 | 3 => "medium",
        _ => "high",
    }
}

/// The sections that apply to a task, the weakest first.
fn config_sections(review_job: JobKind, review_tier: ProcessTier) -> [String; 5] {
    let override_path = |complexity_name: &str| format!("agentConfig.complexityOverrides.{complexity_name}");
    let (named_section, numbered_section) =
        (override_path(tier_complexity(review_tier)), override_path(&review_tier.to_string()));
    // A number says more than a word, and a task at a complexity more than either.
    [
        format!("agentConfig.perTask.{review_job}"),
        named_section.clone(),
        numbered_section.clone(),
        format!("{named_section}.perTask.{review_job}"),
        format!("{numbered_section}.perTask.{review_job}"),
    ]
}

/// Reads who does a kind of task.
fn read_job_choice(effective: &EffectiveSettings, review_job: JobKind, review_tier: ProcessTier) -> JobChoice {
    let mut job_choice =
        JobChoice { fallback: read_fallback(effective, DEFAULT_FALLBACK_PATH), ..JobChoice::default() };
    for section in config_sections(review_job, review_tier) {
        let (primary_path, model_path) = (format!("{section}.primary"), format!("{section}.model"));
        if let Some(setting_text) = text_setting(effective, &primary_path) {
            // Another agent must not get the model of the one that it replaces.
            job_choice.primary = Some(setting_text.to_string());
            job_choice.model = None;
        }
        if let Some(setting_text) = text_setting(effective, &model_path) {
            job_choice.model = Some((setting_text.to_string(), model_path));
        }
        match read_fallback(effective, &format!("{section}.fallback")) {
            FallbackAgent::Unset => {}
            set_fallback => job_choice.fallback = set_fallback,
        }
    }
    job_choice
}

/// Reads a fallback. `false` disables it, which differs from leaving it unset.
fn read_fallback(effective: &EffectiveSettings, setting_path: &str) -> FallbackAgent {
    match effective.value_at(setting_path) {
        Some(SettingValue::Text(agent_name)) => FallbackAgent::Agent(agent_name.clone()),
        Some(_) => FallbackAgent::Disabled,
        None => FallbackAgent::Unset,
    }
}

/// Every agent name in `agentConfig` with its path, whether this review needs it or not. Tasks that no review has are left out.
pub(super) fn configured_agent_names(effective: &EffectiveSettings) -> Vec<(&str, &str)> {
    let names_agent = |setting_path: &str| {
        let task_name = setting_path.split_once("perTask.").and_then(|(_, task_path)| task_path.split('.').next());
        setting_path.starts_with("agentConfig.")
            && (setting_path == DEFAULT_FALLBACK_PATH
                || setting_path.ends_with(".primary")
                || setting_path.ends_with(".fallback"))
            && task_name.is_none_or(|task_name| REVIEW_JOBS.iter().any(|review_job| review_job.as_str() == task_name))
    };
    let name_settings = effective.values.iter().filter(|(setting_path, _)| names_agent(setting_path));
    name_settings
        .filter_map(|(setting_path, sourced_value)| match &sourced_value.value {
            SettingValue::Text(agent_name) => Some((setting_path.as_str(), agent_name.as_str())),
            _ => None,
        })
        .collect()
}
