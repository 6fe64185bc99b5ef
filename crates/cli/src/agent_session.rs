//! The coding session in which this command was typed, if any: clients tell the commands that they run.

use tribunal_agents::clients::session_variables;
use tribunal_core::{
    ids::RunId,
    session::{Binding, Bound, MOST_REFUSALS, Work},
    settings::Settings,
};
use tribunal_store::Store;

use crate::{
    complaint::{Complaint, NEGATIVE},
    context::Context,
};

/// What a session says when a review is done.
const PROMISE: &str = "ALL_ISSUES_RESOLVED";

/// The id of the current session.
pub(crate) fn current(context: &Context) -> Option<String> {
    let said = session_variables().filter_map(|name| context.variable(name)?.into_string().ok());
    said.map(|id| id.trim().to_string()).find(|id| !id.is_empty())
}

/// Fails if this command is typed in the very session that the run reviews: the answer is the user's to give.
pub(crate) fn not_the_judged_one(store: &Store, run: &RunId, context: &Context) -> Result<(), Complaint> {
    let Some(own) = current(context) else { return Ok(()) };
    // The binding in the journal names the session whose work is reviewed.
    match Binding::of(&store.entries(run, 0)?) {
        Some(binding) if binding.bound.session == own => {
            Err(Complaint::new(NEGATIVE, format!("{run} is about this very session's work"))
                .why("That is for a person, in a terminal of their own.")
                .todo("say what is in the way: <review-blocked>what it is</review-blocked>"))
        }
        _ => Ok(()),
    }
}

/// Binds a session that repairs what a review finds.
pub(crate) fn of_review(session: &str, settings: &Settings) -> Bound {
    let subject = settings.subject.title();
    // The session must not edit our own files, or it could declare its own work resolved.
    let prompt = format!(
        "Repair what the review found in {subject}, in the files themselves. Change nothing else. Leave alone what \
         Tribunal writes: .tribunal/, .claude/review-loop-state.yaml, {}/.",
        settings.reviews
    );
    Bound {
        session: session.to_string(),
        work: Work::Review,
        prompt,
        promise: Some(PROMISE.to_string()),
        max_refusals: MOST_REFUSALS,
        step: None,
    }
}
