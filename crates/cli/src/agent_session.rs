//! The session of a coding client that this command was typed in, if it was: clients tell the commands they run.

use tribunal_core::session::{Bound, MOST_REFUSALS, Work};
use tribunal_core::settings::Settings;

use crate::context::Context;

/// How clients name their session to what they run: Claude Code, Codex.
const VARIABLES: [&str; 3] = ["CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "CODEX_THREAD_ID"];
/// What a session says when a review is done.
const PROMISE: &str = "ALL_ISSUES_RESOLVED";

pub(crate) fn current(context: &Context) -> Option<String> {
    let said = VARIABLES.iter().filter_map(|name| context.variable(name)?.into_string().ok());
    said.map(|id| id.trim().to_string()).find(|id| !id.is_empty())
}

/// A session that repairs what a review finds.
pub(crate) fn of_review(session: &str, settings: &Settings) -> Bound {
    let subject = settings.subject.title();
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
