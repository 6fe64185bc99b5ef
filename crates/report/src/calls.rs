//! Calls of agents as the journal records them: what was sent to whom, what came back and what it cost.

use std::collections::BTreeMap;

use tribunal_engine::{
    ids::{Hash, Key},
    limits::AgentUsage,
};
use tribunal_workflows::{
    runs::{
        effect::{AskAgent, AskOutcome, Effect, FailedTask, Reply},
        settings::{DriverSpec, Settings},
        types::{JournalEntry, RunEvent},
    },
    tasks::brief::AgentTask,
};

/// One call of an agent, from its start to its reply.
#[derive(Clone, Debug)]
pub struct AgentCall<'a> {
    pub effect_key: &'a Key,
    pub segment: u32,
    pub agent_task: &'a AgentTask,
    /// The driver that talks to the agent: `command`, `replay`, ….
    pub driver_name: String,
    /// Whether a script was played instead of an agent. Then no vendor received the text.
    pub is_script: bool,
    /// The provider whose model was asked, and who therefore received the text.
    pub provider_name: String,
    /// The model, if one was configured.
    pub model_name: Option<String>,
    /// The sequence number of the entry that records the question.
    pub asked_seq: u64,
    /// The sequence number of the entry that records the answer.
    pub answered_seq: Option<u64>,
    pub reply: Option<&'a Reply>,
    pub elapsed_ms: u64,
}

impl AgentCall<'_> {
    /// The name of the vendor that received the text.
    pub fn vendor_name(&self) -> &str {
        if self.is_script { "none" } else { &self.provider_name }
    }

    /// The prompt that the agent was sent; `None` if the call is not answered yet or never started.
    pub fn prompt_hash(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Ask(AskOutcome::Answered(agent_reply)) => Some(&agent_reply.prompt),
            Reply::Ask(AskOutcome::Failed(FailedTask { prompt, .. })) => prompt.as_ref(),
            _ => None,
        }
    }

    /// Where the text was sent, if another endpoint than the default of the vendor was configured.
    pub fn sent_endpoint(&self) -> Option<&str> {
        match self.reply? {
            Reply::Ask(AskOutcome::Answered(agent_reply)) => agent_reply.endpoint.as_deref(),
            Reply::Ask(AskOutcome::Failed(FailedTask { endpoint, .. })) => endpoint.as_deref(),
            _ => None,
        }
    }

    /// The output that the agent printed.
    pub fn output_hash(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Ask(AskOutcome::Answered(agent_reply)) => Some(&agent_reply.output),
            Reply::Ask(AskOutcome::Failed(FailedTask { output, .. })) => output.as_ref(),
            _ => None,
        }
    }

    /// The tokens and money that the call used.
    pub fn usage(&self) -> AgentUsage {
        match self.reply {
            Some(Reply::Ask(AskOutcome::Answered(agent_reply))) => agent_reply.usage,
            Some(Reply::Ask(AskOutcome::Failed(FailedTask { usage, .. }))) => *usage,
            _ => AgentUsage::default(),
        }
    }
}

/// Collects all calls of a run, in the order in which they were asked.
pub fn collect_calls(entries: &[JournalEntry]) -> Vec<AgentCall<'_>> {
    let mut agent_calls: Vec<AgentCall<'_>> = Vec::new();
    // A key repeats in later segments, so only segment and key together identify a call.
    let mut open_calls: BTreeMap<(u32, &Key), (usize, u64)> = BTreeMap::new();
    let mut settings: Option<&Settings> = None;
    for journal_entry in entries {
        match &journal_entry.event {
            // Settings may change between two lives of a run; each call belongs to those in force when it was asked.
            RunEvent::RunStarted { settings: pinned, .. } | RunEvent::SettingsChanged { settings: pinned, .. } => {
                settings = Some(pinned);
            }
            RunEvent::EffectStarted {
                key: effect_key,
                segment,
                effect: Effect::Ask(AskAgent { task: agent_task, .. }),
                ..
            } => {
                open_calls.insert((*segment, effect_key), (agent_calls.len(), journal_entry.at.awake_ms));
                agent_calls.push(AgentCall {
                    effect_key,
                    segment: *segment,
                    agent_task,
                    driver_name: task_driver_name(settings, agent_task),
                    is_script: is_scripted_task(settings, agent_task),
                    provider_name: settings
                        .map_or("", |settings| settings.agent_provider(&agent_task.agent))
                        .to_string(),
                    model_name: settings.and_then(|settings| task_model(settings, agent_task)),
                    asked_seq: journal_entry.seq,
                    answered_seq: None,
                    reply: None,
                    elapsed_ms: 0,
                });
            }
            RunEvent::EffectFinished { key: effect_key, segment, reply: effect_reply } => {
                if let Some((call_index, started_ms)) = open_calls.remove(&(*segment, effect_key)) {
                    let finished_call = &mut agent_calls[call_index];
                    finished_call.answered_seq = Some(journal_entry.seq);
                    finished_call.reply = Some(effect_reply);
                    finished_call.elapsed_ms = journal_entry.at.awake_ms.saturating_sub(started_ms);
                }
            }
            // Other events say nothing about calls.
            _ => {}
        }
    }
    // A postponed task is asked again under another key; nothing was sent the first time.
    agent_calls.retain(|agent_call| !matches!(agent_call.reply, Some(Reply::Ask(AskOutcome::Postponed(_)))));
    agent_calls
}

/// The model that was configured for the job, for the agent, or for a task of this size, in this order of precedence.
fn task_model(settings: &Settings, agent_task: &AgentTask) -> Option<String> {
    let agent_settings = settings.find_agent(&agent_task.agent)?;
    let client_settings = agent_settings.driver.client_spec()?;
    let role = agent_task.brief.as_review().map(|review_brief| review_brief.role);
    let duty_model = agent_settings.find_duty(agent_task.job).and_then(|job_duty| job_duty.model_for_role(role));
    let model_for_size = || agent_task.size.and_then(|task_size| client_settings.models.for_size(task_size));
    duty_model.or(client_settings.model.as_deref()).or_else(model_for_size).map(String::from)
}

/// What one vendor received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VendorTotals {
    pub vendor_name: String,
    /// Whether these calls were played from a script, so that no vendor received anything.
    pub is_script: bool,
    /// Where it received them, if another endpoint than its default was configured.
    pub endpoint: Option<String>,
    /// The number of calls whose prompt is known.
    pub prompt_count: u32,
    /// The size of all prompts that the store has.
    pub prompt_bytes: u64,
    pub usage: AgentUsage,
}

/// Groups calls by vendor and endpoint, in the order in which they were first asked. `blob_bytes` returns the length of a stored blob.
pub fn group_by_vendor<'a, 'b>(
    agent_calls: &'a [AgentCall<'b>],
    blob_bytes: &dyn Fn(&Hash) -> Option<u64>,
) -> Vec<(VendorTotals, Vec<&'a AgentCall<'b>>)> {
    let mut groups: Vec<(VendorTotals, Vec<&AgentCall<'_>>)> = Vec::new();
    for agent_call in agent_calls {
        // Scripts are kept apart from a provider that happens to have the same name.
        let is_same_vendor = |totals: &VendorTotals| {
            totals.vendor_name == agent_call.vendor_name()
                && totals.is_script == agent_call.is_script
                && totals.endpoint.as_deref() == agent_call.sent_endpoint()
        };
        let group_index = groups.iter().position(|(totals, _)| is_same_vendor(totals)).unwrap_or_else(|| {
            let (vendor_name, is_script) = (agent_call.vendor_name().to_string(), agent_call.is_script);
            let endpoint = agent_call.sent_endpoint().map(String::from);
            groups.push((VendorTotals { vendor_name, is_script, endpoint, ..VendorTotals::default() }, Vec::new()));
            groups.len() - 1
        });
        let (totals, vendor_calls) = &mut groups[group_index];
        // A prompt that the store does not have still counts as sent, but its length is unknown.
        totals.prompt_count += u32::from(agent_call.prompt_hash().is_some());
        totals.prompt_bytes += agent_call.prompt_hash().and_then(blob_bytes).unwrap_or_default();
        totals.usage = totals.usage.combined_with(agent_call.usage());
        vendor_calls.push(agent_call);
    }
    groups
}

/// Returns whether the task's agent is played from a script.
fn is_scripted_task(settings: Option<&Settings>, agent_task: &AgentTask) -> bool {
    let agent_settings = settings.and_then(|settings| settings.find_agent(&agent_task.agent));
    agent_settings.is_some_and(|agent_settings| matches!(agent_settings.driver, DriverSpec::Replay { .. }))
}

/// The driver's name as the journal spells it; `unknown` if the settings do not contain the agent.
fn task_driver_name(settings: Option<&Settings>, agent_task: &AgentTask) -> String {
    let agent_settings = settings.and_then(|settings| settings.find_agent(&agent_task.agent));
    // The tag of the serialised enum is the name in the journal.
    let driver_json = agent_settings.and_then(|agent_settings| serde_json::to_value(&agent_settings.driver).ok());
    driver_json
        .and_then(|driver_value| driver_value.get("driver")?.as_str().map(String::from))
        .unwrap_or_else(|| "unknown".into())
}
