//! Calls of agents as the journal records them: what was sent to whom, what came back and what it cost.

use std::collections::BTreeMap;

use tribunal_core::{
    brief::Task,
    client::Job,
    effect::{AskAgent, AskOutcome, Effect, FailedTask, Reply},
    event::{Entry, Event},
    ids::{Hash, Key},
    limits::Usage,
    settings::{DriverSpec, Settings},
};

/// One call of an agent, from its start to its reply.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub key: &'a Key,
    pub stretch: u32,
    pub task: &'a Task,
    /// The driver that talks to the agent: `command`, `replay`, ….
    pub driver: String,
    /// Whether a script was played instead of an agent. Then no vendor received the text.
    pub is_script: bool,
    /// The provider whose model was asked, and who therefore received the text.
    pub provider: String,
    /// The model, if one was configured.
    pub model: Option<String>,
    /// The sequence number of the entry that records the question.
    pub asked: u64,
    /// The sequence number of the entry that records the answer.
    pub answered: Option<u64>,
    pub reply: Option<&'a Reply>,
    pub elapsed_ms: u64,
}

impl Call<'_> {
    /// The name of the vendor that received the text.
    pub fn vendor(&self) -> &str {
        if self.is_script { "nobody" } else { &self.provider }
    }

    /// The prompt that the agent was sent; `None` if the call is not answered yet or never started.
    pub fn prompt(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Ask(AskOutcome::Answered(reply)) => Some(&reply.prompt),
            Reply::Ask(AskOutcome::Failed(FailedTask { prompt, .. })) => prompt.as_ref(),
            _ => None,
        }
    }

    /// The output that the agent printed.
    pub fn output(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Ask(AskOutcome::Answered(reply)) => Some(&reply.output),
            Reply::Ask(AskOutcome::Failed(FailedTask { output, .. })) => output.as_ref(),
            _ => None,
        }
    }

    /// The tokens and money that the call used.
    pub fn usage(&self) -> Usage {
        match self.reply {
            Some(Reply::Ask(AskOutcome::Answered(reply))) => reply.usage,
            Some(Reply::Ask(AskOutcome::Failed(FailedTask { usage, .. }))) => *usage,
            _ => Usage::default(),
        }
    }
}

/// Collects all calls of a run, in the order in which they were asked.
pub fn calls(entries: &[Entry]) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    // A key repeats in later stretches, so only stretch and key together identify a call.
    let mut open: BTreeMap<(u32, &Key), (usize, u64)> = BTreeMap::new();
    let mut settings: Option<&Settings> = None;
    for entry in entries {
        match &entry.event {
            // Settings may change between two lives of a run; each call belongs to those in force when it was asked.
            Event::RunStarted { settings: pinned, .. } | Event::SettingsChanged { settings: pinned } => {
                settings = Some(pinned);
            }
            Event::EffectStarted { key, stretch, effect: Effect::Ask(AskAgent { task }), .. } => {
                open.insert((*stretch, key), (calls.len(), entry.at.awake_ms));
                calls.push(Call {
                    key,
                    stretch: *stretch,
                    task,
                    driver: driver(settings, task),
                    is_script: is_script(settings, task),
                    provider: settings.map_or("", |settings| settings.provider(&task.agent)).to_string(),
                    model: settings.and_then(|settings| model(settings, task)),
                    asked: entry.seq,
                    answered: None,
                    reply: None,
                    elapsed_ms: 0,
                });
            }
            Event::EffectFinished { key, stretch, reply } => {
                if let Some((index, since)) = open.remove(&(*stretch, key)) {
                    let call = &mut calls[index];
                    call.answered = Some(entry.seq);
                    call.reply = Some(reply);
                    call.elapsed_ms = entry.at.awake_ms.saturating_sub(since);
                }
            }
            // Other events say nothing about calls.
            _ => {}
        }
    }
    calls
}

/// The model that was configured for the job, for the agent, or for a task of this size, in this order of precedence.
fn model(settings: &Settings, task: &Task) -> Option<String> {
    let agent = settings.agent(&task.agent)?;
    let client = agent.driver.client()?;
    let duty = agent.duties.get(&Job::of(task.brief.role)).and_then(|duty| duty.model.as_deref());
    let sized = || task.size.and_then(|size| client.models.of(size));
    duty.or(client.model.as_deref()).or_else(sized).map(String::from)
}

/// What one vendor received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub vendor: String,
    /// Whether these calls were played from a script, so that no vendor received anything.
    pub is_script: bool,
    /// The number of calls whose prompt is known.
    pub prompts: u32,
    /// The size of all prompts that are still stored.
    pub bytes: u64,
    pub usage: Usage,
}

/// Groups calls by vendor, in the order in which vendors were first asked. `blob_bytes` returns the length of a stored blob.
pub fn by_vendor<'a, 'b>(
    calls: &'a [Call<'b>],
    bytes: &dyn Fn(&Hash) -> Option<u64>,
) -> Vec<(Sent, Vec<&'a Call<'b>>)> {
    let mut all: Vec<(Sent, Vec<&Call<'_>>)> = Vec::new();
    for call in calls {
        // Scripts are kept apart from a provider that happens to have the same name.
        let same = |sent: &Sent| sent.vendor == call.vendor() && sent.is_script == call.is_script;
        let at = all.iter().position(|(sent, _)| same(sent)).unwrap_or_else(|| {
            let (vendor, is_script) = (call.vendor().to_string(), call.is_script);
            all.push((Sent { vendor, is_script, ..Sent::default() }, Vec::new()));
            all.len() - 1
        });
        let (sent, of_vendor) = &mut all[at];
        // Prompts that were deleted from the store still count as sent, but their length is unknown.
        sent.prompts += u32::from(call.prompt().is_some());
        sent.bytes += call.prompt().and_then(bytes).unwrap_or_default();
        sent.usage = sent.usage.plus(call.usage());
        of_vendor.push(call);
    }
    all
}

/// Returns whether the task's agent is played from a script.
fn is_script(settings: Option<&Settings>, task: &Task) -> bool {
    let agent = settings.and_then(|settings| settings.agent(&task.agent));
    agent.is_some_and(|agent| matches!(agent.driver, DriverSpec::Replay { .. }))
}

/// The driver's name as the journal spells it, so that drivers of other builds have a name, too.
fn driver(settings: Option<&Settings>, task: &Task) -> String {
    let agent = settings.and_then(|settings| settings.agent(&task.agent));
    // The tag of the serialised enum is the name in the journal.
    let written = agent.and_then(|agent| serde_json::to_value(&agent.driver).ok());
    written
        .and_then(|value| value.get("driver")?.as_str().map(String::from))
        .unwrap_or_else(|| "unknown".into())
}
