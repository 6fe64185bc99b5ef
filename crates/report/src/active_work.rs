//! Who works on what: the effects that a run has started and not finished, as its journal has them.

use tribunal_core::{
    engine::{
        effect::{AskAgent, Effect, Land, Restore},
        event::{JournalEntry, RunEvent},
        ids::{AgentName, FindingId, Key},
    },
    review::level::AgentRole,
    tasks::brief::TaskBrief,
};

use crate::phrases;

/// One piece of work under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveWork {
    pub effect_key: Key,
    /// The agent; `None` if Tribunal works itself.
    pub agent: Option<AgentName>,
    /// The role of the agent.
    pub role: Option<AgentRole>,
    /// The findings that a fixer or a challenger has.
    pub findings: Vec<FindingId>,
    /// When it was started, by the wall clock. If a later process of the run started it again, when that process began.
    pub started_ms: u64,
    /// What is done, without the time.
    pub description: String,
}

impl ActiveWork {
    /// Describes the work with its duration: `fixer 2 (codex) on F3 F4, for 0:40`.
    pub fn describe(&self, now_ms: u64) -> String {
        let elapsed_text = phrases::format_duration(now_ms.saturating_sub(self.started_ms));
        format!("{}, for {elapsed_text}", self.description)
    }

    fn from_effect(effect_key: &Key, effect: &Effect, started_ms: u64) -> Option<ActiveWork> {
        let own_work = |description: String| ActiveWork {
            effect_key: effect_key.clone(),
            agent: None,
            role: None,
            findings: Vec::new(),
            started_ms,
            description,
        };
        match effect {
            Effect::Ask(AskAgent { task: agent_task }) => {
                let brief = &agent_task.brief;
                let assigned_ids = brief.assigned.iter().map(|assigned| assigned.id);
                let findings: Vec<FindingId> =
                    assigned_ids.chain(brief.disputed.iter().map(|disputed| disputed.id)).collect();
                let description = format!(
                    "{} ({}) on {}",
                    name_worker(effect_key, brief),
                    agent_task.agent,
                    name_task(brief, &findings)
                );
                Some(ActiveWork {
                    agent: Some(agent_task.agent.clone()),
                    role: Some(brief.role),
                    findings,
                    ..own_work(description)
                })
            }
            Effect::Freeze(_) => Some(own_work("copying files for the reviewers".into())),
            Effect::Land(Land { by: task_key, .. }) => {
                let fixer_text =
                    task_key.fixer_number().map(|number| format!(" of fixer {number}")).unwrap_or_default();
                Some(own_work(format!("checking and applying the patch{fixer_text}")))
            }
            Effect::TakeIn(_) => Some(own_work("checking what the session changed".into())),
            Effect::Restore(Restore { stray }) => Some(own_work(format!("restoring {}", stray.path))),
            Effect::Sleep(_) => Some(own_work("pausing before a task is retried".into())),
            // Waits for usage limits are shown with the time of the reset. The others are over at once.
            Effect::AwaitReset(_) | Effect::Write(_) | Effect::Post(_) | Effect::Inbox(_) | Effect::Wait(_) => None,
        }
    }
}

/// Names the agent's place in the run: `adversarial`, `fixer 2`, `challenger`.
fn name_worker(effect_key: &Key, brief: &TaskBrief) -> String {
    match effect_key.fixer_number() {
        Some(fixer_number) => format!("fixer {fixer_number}"),
        None => brief.role.to_string(),
    }
}

/// Names what the agent has to do: the findings that it was given, or the round that it reviews.
fn name_task(brief: &TaskBrief, findings: &[FindingId]) -> String {
    if findings.is_empty() { format!("round {}", brief.round) } else { phrases::join_ids(findings) }
}

/// Lists what was started and not finished, in the order of the starts. The journal cannot know whether a process still
/// works on it: the caller asks only for a live run.
pub fn list_active_work<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Vec<ActiveWork> {
    let mut active_work: Vec<ActiveWork> = Vec::new();
    for journal_entry in entries {
        match &journal_entry.event {
            RunEvent::EffectStarted { key: effect_key, effect, .. } => {
                active_work.retain(|known_work| known_work.effect_key != *effect_key);
                active_work.extend(ActiveWork::from_effect(effect_key, effect, journal_entry.at.wall_ms));
            }
            RunEvent::EffectFinished { key: effect_key, .. } => {
                active_work.retain(|known_work| known_work.effect_key != *effect_key);
            }
            // Everything before a boundary is settled.
            RunEvent::Boundary { .. } => active_work.clear(),
            // What was under way is started again without a new entry.
            RunEvent::RunResumed { .. } => {
                active_work.iter_mut().for_each(|known_work| known_work.started_ms = journal_entry.at.wall_ms);
            }
            _ => {}
        }
    }
    active_work
}
