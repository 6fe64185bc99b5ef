//! The coding session in which this command was typed, if any: clients tell the commands that they run.

use tribunal_agents::clients::session_variables;
use tribunal_engine::ids::RunId;
use tribunal_store::Store;
use tribunal_workflows::{
    runs::plan::RunPlan,
    session::{DEFAULT_MAX_REFUSALS, SessionAssignment, SessionBinding, SessionWork},
};

use crate::{
    context::CommandContext,
    messages::user_errors::{EXIT_NEGATIVE, UserError},
};

/// What a session says when a review is done.
const REVIEW_PROMISE: &str = "ALL_ISSUES_RESOLVED";

/// The id of the current session.
pub(crate) fn current_session(command_context: &CommandContext) -> Option<String> {
    let session_values =
        session_variables().filter_map(|variable_name| command_context.env_variable(variable_name)?.into_string().ok());
    session_values.map(|session_id| session_id.trim().to_string()).find(|session_id| !session_id.is_empty())
}

/// Fails if this command is typed in the very session that the run reviews: the answer is the user's to give.
pub(crate) fn refuse_reviewed_session(
    store: &Store,
    run_id: &RunId,
    command_context: &CommandContext,
) -> Result<(), UserError> {
    let Some(own_session) = current_session(command_context) else { return Ok(()) };
    // The binding in the journal names the session whose work is reviewed.
    match SessionBinding::from_entries(&store.read_entries(run_id, 0)?) {
        Some(binding) if binding.assignment.session == own_session => {
            Err(UserError::new(EXIT_NEGATIVE, format!("run {run_id} reviews this session's own work"))
                .with_reason("Only the user can do that, in a terminal of their own.")
                .with_step("if you are blocked, say why: <review-blocked>REASON</review-blocked>"))
        }
        _ => Ok(()),
    }
}

/// Binds a session that repairs what a review finds.
pub(crate) fn bind_review_session(session_name: &str, plan: &RunPlan) -> SessionAssignment {
    let subject_title = plan.order.title();
    // The session must not edit our own files, or it could declare its own work resolved.
    let prompt = format!(
        "Fix the findings of the review of {subject_title}, directly in the files. Change nothing else. Do not touch \
         what Tribunal writes: .tribunal/, .claude/review-loop-state.yaml, {}/.",
        plan.settings.reviews
    );
    SessionAssignment {
        session: session_name.to_string(),
        work: SessionWork::Review,
        prompt,
        promise: Some(REVIEW_PROMISE.to_string()),
        max_refusals: DEFAULT_MAX_REFUSALS,
        step: None,
    }
}
