//! Who works on what: the effects that a run has started and not finished, as its journal has them.

use tribunal_engine::{
    effect::{Restore, WaitCause},
    ids::{AgentName, FindingId, Key},
};
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    review::review_keys::ReviewKeys,
    runs::{
        effect::{AskAgent, Effect, Land},
        kinds::RunOrder,
        types::{JournalEntry, RunChild, RunEvent, StartChild},
    },
    tasks::brief::AgentTask,
};

use crate::{development_text, kind_reporter::TaskDescription, kind_table, phrases, run_text::describe_run};

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
    /// The child run that works on beside the run until it comes back.
    child_name: Option<String>,
}

impl ActiveWork {
    /// Describes the work with its duration: `fixer 2 (codex) on F3 F4, for 0:40`.
    pub fn describe(&self, now_ms: u64) -> String {
        let elapsed_text = phrases::format_duration(now_ms.saturating_sub(self.started_ms));
        format!("{}, for {elapsed_text}", self.description)
    }

    /// Describes an effect of a run with this order; `None` if it is over at once or shown elsewhere.
    fn from_effect(effect_key: &Key, effect: &Effect, order: &RunOrder, started_ms: u64) -> Option<ActiveWork> {
        let own_work = |description: String| ActiveWork {
            effect_key: effect_key.clone(),
            agent: None,
            role: None,
            findings: Vec::new(),
            started_ms,
            description,
            child_name: None,
        };
        match effect {
            Effect::Ask(AskAgent { task: agent_task, .. }) => Some(ActiveWork {
                agent: Some(agent_task.agent.clone()),
                role: agent_task.brief.as_review().map(|review_brief| review_brief.role),
                findings: agent_task.brief.finding_ids(),
                ..own_work(describe_agent_work(effect_key, agent_task, order))
            }),
            Effect::Freeze(_) => kind_table::describe_own_work(order, effect).map(|text| own_work(text.into())),
            Effect::Land(Land { by: task_key, preview: false, .. }) => {
                let fixer_text =
                    task_key.fixer_number().map(|number| format!(" of fixer {number}")).unwrap_or_default();
                Some(own_work(format!("checking and applying the patch{fixer_text}")))
            }
            Effect::TakeIn(_) => Some(own_work("checking what the session changed".into())),
            Effect::Restore(Restore { stray }) => Some(own_work(format!("restoring {}", stray.path))),
            Effect::Sleep(_) => Some(own_work("pausing before a task is retried".into())),
            Effect::StartChild(StartChild { child: RunChild { name, order, .. } }) => Some(ActiveWork {
                child_name: Some(name.clone()),
                ..own_work(format!("child run {name} ({})", describe_run(order)))
            }),
            Effect::RunChild(RunChild { name, order, .. }) => {
                Some(own_work(format!("child run {name} ({})", describe_run(order))))
            }
            Effect::AwaitReset(wait) if wait.cause != WaitCause::UsageLimit => {
                Some(own_work(phrases::describe_wait(wait, started_ms)))
            }
            Effect::OpenWorkspace(_)
            | Effect::CloseWorkspace(_)
            | Effect::Checks(_)
            | Effect::Commit(_)
            | Effect::FreezeWork(_)
            | Effect::Rebase(_)
            | Effect::ParkWork(_)
            | Effect::Integrate(_)
            | Effect::ReadChange(_)
            | Effect::ReadStory(_)
            | Effect::WriteStory(_)
            | Effect::RestoreBoard(_)
            | Effect::ReadSprint(_)
            | Effect::PlanStory(_)
            | Effect::FinishRetrospective(_)
            | Effect::Notify(_) => development_text::describe_work(effect).map(own_work),
            // Waits for usage limits are shown with the time of the reset. The others are over at once.
            Effect::AwaitReset(_)
            | Effect::Land(Land { preview: true, .. })
            | Effect::Write(_)
            | Effect::Post(_)
            | Effect::Inbox(_)
            | Effect::Wait(_)
            | Effect::AwaitChild(_)
            | Effect::ReadRecords(_)
            | Effect::WriteRecords(_) => None,
        }
    }
}

/// Describes what an agent works on: `fixer 2 (codex) on F3 F4`.
fn describe_agent_work(effect_key: &Key, agent_task: &AgentTask, order: &RunOrder) -> String {
    let TaskDescription { worker, work } = kind_table::describe_task(order, effect_key, agent_task);
    let work_text = if work.is_empty() { work } else { format!(" on {work}") };
    format!("{worker} ({}){work_text}", agent_task.agent)
}

/// Lists what was started and not finished, in the order of the starts. The journal cannot know whether a process still
/// works on it: the caller asks only for a live run.
pub fn list_active_work<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Vec<ActiveWork> {
    let mut active_work: Vec<ActiveWork> = Vec::new();
    let mut run_order = None;
    for journal_entry in entries {
        match &journal_entry.event {
            RunEvent::RunStarted { order, .. } | RunEvent::SettingsChanged { order, .. } => run_order = Some(order),
            RunEvent::EffectStarted { key: effect_key, effect, .. } => {
                active_work.retain(|known_work| known_work.effect_key != *effect_key);
                let started_ms = journal_entry.at.wall_ms;
                let started_work =
                    run_order.and_then(|order| ActiveWork::from_effect(effect_key, effect, order, started_ms));
                active_work.extend(started_work);
            }
            // A child that was started works until it comes back, not until the effect is over.
            RunEvent::EffectFinished { key: effect_key, .. } => {
                let is_over = |work: &ActiveWork| work.effect_key == *effect_key && work.child_name.is_none();
                active_work.retain(|known_work| !is_over(known_work));
            }
            RunEvent::ChildReturned(returned) => {
                active_work.retain(|known_work| known_work.child_name.as_ref() != Some(&returned.name));
            }
            // Everything else before a boundary is settled.
            RunEvent::Boundary { .. } => active_work.retain(|known_work| known_work.child_name.is_some()),
            // What was under way is started again without a new entry.
            RunEvent::RunResumed { .. } => {
                active_work.iter_mut().for_each(|known_work| known_work.started_ms = journal_entry.at.wall_ms);
            }
            _ => {}
        }
    }
    active_work
}
