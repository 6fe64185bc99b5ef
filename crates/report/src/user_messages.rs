//! Messages of the user (`tribunal say`) that reached no agent.

use tribunal_engine::user_remark::UserRemark;
use tribunal_workflows::{
    runs::{
        effect::{AskAgent, Effect, Reply, WriteOutcome},
        kinds::{RunOrder, WorkflowEvent},
        types::{JournalEntry, RunEvent},
        user_request::UserRequest,
        view::RunPhase,
    },
    sprint::{event::SprintEvent, requests::SprintCommand},
};

use crate::run_standing::RunStanding;

/// Lists the messages that a run has read but put into no prompt since. The inbox may have more that it has not read.
pub fn list_unheard_messages<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Vec<UserRemark> {
    let mut unheard_messages: Vec<UserRemark> = Vec::new();
    for journal_entry in entries {
        match &journal_entry.event {
            RunEvent::EffectFinished { reply: Reply::Write(WriteOutcome::Edited { requests }), .. } => {
                unheard_messages.extend(find_messages(requests));
            }
            RunEvent::EffectFinished { reply, .. } => unheard_messages.extend(find_messages(reply.user_requests())),
            RunEvent::Workflow(WorkflowEvent::Sprint(SprintEvent::SprintRequested { command })) => {
                unheard_messages.retain(|message| SprintCommand::read_remark(&message.text).as_ref() != Some(command));
            }
            // A request to a sprint was carried out; other messages go into the prompts of its stories.
            RunEvent::EffectStarted { effect, .. } if effect.child_request().is_some() => {
                if let Some(RunOrder::Story(order)) = effect.child_request().map(|run_child| &run_child.order) {
                    unheard_messages.retain(|message| !order.texts.said.contains(&message.to_string()));
                }
            }
            // Prompts carry all messages that were read before.
            RunEvent::EffectStarted { effect: Effect::Ask(AskAgent { task, .. }), .. } => {
                unheard_messages.retain(|message| !task.brief.user_remarks().contains(&message.to_string()));
            }
            _ => {}
        }
    }
    unheard_messages
}

/// Selects the messages among requests.
pub fn find_messages(requests: &[UserRequest]) -> impl Iterator<Item = UserRemark> {
    requests.iter().filter_map(|request| match request {
        UserRequest::Say(remark) => Some(remark.clone()),
        _ => None,
    })
}

/// Says what becomes of a message that reached no agent yet.
pub fn describe_undelivered(message: &UserRemark, run_standing: &RunStanding<'_>) -> String {
    let what_follows = match (&run_standing.run_view.phase, run_standing.is_live) {
        (RunPhase::Finished(_), _) => "was not delivered, because the run had already ended",
        (RunPhase::Running, true) => "is delivered with the next prompt",
        (RunPhase::Running | RunPhase::Parked(_), _) => "was not delivered yet; resuming the run delivers it",
    };
    format!("your message “{message}” {what_follows}")
}
