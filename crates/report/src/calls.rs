//! Calls of agents as the journal has them: who was sent what, what came back, what it cost.

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

/// One call, from its start to its reply.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub key: &'a Key,
    pub stretch: u32,
    pub task: &'a Task,
    /// `command`, `replay`, …: how the agent is spoken to.
    pub driver: String,
    /// A script is played instead of an agent: nobody gets the text.
    pub is_script: bool,
    /// Whose model was asked: who got the text.
    pub provider: String,
    /// Which one, as far as it was set.
    pub model: Option<String>,
    /// Numbers of the entries: asked, and answered.
    pub asked: u64,
    pub answered: Option<u64>,
    pub reply: Option<&'a Reply>,
    pub elapsed_ms: u64,
}

impl Call<'_> {
    /// Who got the text.
    pub fn vendor(&self) -> &str {
        if self.is_script { "nobody" } else { &self.provider }
    }

    /// What the agent was sent. None: it is not answered, or never started.
    pub fn prompt(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Ask(AskOutcome::Answered(reply)) => Some(&reply.prompt),
            Reply::Ask(AskOutcome::Failed(FailedTask { prompt, .. })) => prompt.as_ref(),
            _ => None,
        }
    }

    /// What the agent printed.
    pub fn output(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Ask(AskOutcome::Answered(reply)) => Some(&reply.output),
            Reply::Ask(AskOutcome::Failed(FailedTask { output, .. })) => output.as_ref(),
            _ => None,
        }
    }

    pub fn usage(&self) -> Usage {
        match self.reply {
            Some(Reply::Ask(AskOutcome::Answered(reply))) => reply.usage,
            Some(Reply::Ask(AskOutcome::Failed(FailedTask { usage, .. }))) => *usage,
            _ => Usage::default(),
        }
    }
}

/// All calls of a run, in the order in which they were asked.
pub fn calls(entries: &[Entry]) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut open: BTreeMap<(u32, &Key), (usize, u64)> = BTreeMap::new();
    let mut settings: Option<&Settings> = None;
    for entry in entries {
        match &entry.event {
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
            _ => {}
        }
    }
    calls
}

/// The model that was set for the job, for the agent, or for a task of this size.
fn model(settings: &Settings, task: &Task) -> Option<String> {
    let agent = settings.agent(&task.agent)?;
    let client = agent.driver.client()?;
    let duty = agent.duties.get(&Job::of(task.brief.role)).and_then(|duty| duty.model.as_deref());
    let sized = || task.size.and_then(|size| client.models.of(size));
    duty.or(client.model.as_deref()).or_else(sized).map(String::from)
}

/// What one vendor got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub vendor: String,
    /// Nobody: these calls were played from a script.
    pub is_script: bool,
    /// Calls of which the text is known.
    pub prompts: u32,
    /// Texts that are still kept.
    pub bytes: u64,
    pub usage: Usage,
}

/// Calls by vendor, in the order in which vendors were first asked. `bytes` knows how long a blob is.
pub fn by_vendor<'a, 'b>(
    calls: &'a [Call<'b>],
    bytes: &dyn Fn(&Hash) -> Option<u64>,
) -> Vec<(Sent, Vec<&'a Call<'b>>)> {
    let mut all: Vec<(Sent, Vec<&Call<'_>>)> = Vec::new();
    for call in calls {
        let same = |sent: &Sent| sent.vendor == call.vendor() && sent.is_script == call.is_script;
        let at = all.iter().position(|(sent, _)| same(sent)).unwrap_or_else(|| {
            let (vendor, is_script) = (call.vendor().to_string(), call.is_script);
            all.push((Sent { vendor, is_script, ..Sent::default() }, Vec::new()));
            all.len() - 1
        });
        let (sent, of_vendor) = &mut all[at];
        sent.prompts += u32::from(call.prompt().is_some());
        sent.bytes += call.prompt().and_then(bytes).unwrap_or_default();
        sent.usage = sent.usage.plus(call.usage());
        of_vendor.push(call);
    }
    all
}

fn is_script(settings: Option<&Settings>, task: &Task) -> bool {
    let agent = settings.and_then(|settings| settings.agent(&task.agent));
    agent.is_some_and(|agent| matches!(agent.driver, DriverSpec::Replay { .. }))
}

/// The driver's name as it stands in the journal, so that drivers of other builds have one too.
fn driver(settings: Option<&Settings>, task: &Task) -> String {
    let agent = settings.and_then(|settings| settings.agent(&task.agent));
    let written = agent.and_then(|agent| serde_json::to_value(&agent.driver).ok());
    written
        .and_then(|value| value.get("driver")?.as_str().map(String::from))
        .unwrap_or_else(|| "unknown".into())
}
