//! Calls of agents as the journal has them: who was sent what, what came back, what it cost.

use std::collections::BTreeMap;

use tribunal_core::{
    brief::Task,
    effect::{Effect, Reply},
    event::{Entry, Event},
    ids::{Hash, Key},
    limits::Usage,
    settings::Settings,
};

/// One call, from its start to its reply.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub key: &'a Key,
    pub stretch: u32,
    pub task: &'a Task,
    /// `command`, `replay`, …: how the agent is spoken to.
    pub driver: String,
    /// Numbers of the entries: asked, and answered.
    pub asked: u64,
    pub answered: Option<u64>,
    pub reply: Option<&'a Reply>,
    pub elapsed_ms: u64,
}

impl Call<'_> {
    /// What the agent was sent. None: it is not answered, or never started.
    pub fn prompt(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Agent(reply) => Some(&reply.prompt),
            Reply::Failed { prompt, .. } => prompt.as_ref(),
            _ => None,
        }
    }

    /// What the agent printed.
    pub fn output(&self) -> Option<&Hash> {
        match self.reply? {
            Reply::Agent(reply) => Some(&reply.output),
            Reply::Failed { output, .. } => output.as_ref(),
            _ => None,
        }
    }

    pub fn usage(&self) -> Usage {
        match self.reply {
            Some(Reply::Agent(reply)) => reply.usage,
            Some(Reply::Failed { usage, .. }) => *usage,
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
            Event::EffectStarted { key, stretch, effect: Effect::Ask { task }, .. } => {
                open.insert((*stretch, key), (calls.len(), entry.at.awake_ms));
                calls.push(Call {
                    key,
                    stretch: *stretch,
                    task,
                    driver: driver(settings, task),
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

/// The driver's name as it stands in the journal, so that drivers of other builds have one too.
fn driver(settings: Option<&Settings>, task: &Task) -> String {
    let agent = settings.and_then(|settings| settings.agent(&task.agent));
    let written = agent.and_then(|agent| serde_json::to_value(&agent.driver).ok());
    written
        .and_then(|value| value.get("driver")?.as_str().map(String::from))
        .unwrap_or_else(|| "unknown".into())
}
