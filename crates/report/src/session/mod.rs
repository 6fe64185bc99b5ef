//! The reporter of loops in a user's session, and the texts about what sessions do. A session may also work for a review.

mod event_text;

pub use event_text::describe_session_event;

use tribunal_core::session::{SessionAssignment, order::SessionSummary, view::SessionView};

use crate::{
    kind_reporter::{KindReporter, PlainLines, PlainLive},
    phrases,
};

/// Reports loops.
pub(crate) struct SessionReporter;

impl KindReporter for SessionReporter {
    type Kind = SessionAssignment;
    // What happens in a loop are events of its session, which every kind of run can have.
    type Lines = PlainLines;
    type Live = PlainLive;

    const KIND_WORD: &'static str = "loop";

    fn describe_result(summary: &SessionSummary) -> String {
        let tool_count = u32::try_from(summary.tools).unwrap_or(u32::MAX);
        let tools_text = phrases::format_count(tool_count, "tool");
        let release_text = summary.released.map(|reason| format!("; released: {}", reason.as_phrase()));
        format!("{}, {tools_text} used{}", Self::describe_result_cell(summary), release_text.unwrap_or_default())
    }

    fn describe_result_cell(summary: &SessionSummary) -> String {
        format!("sent back {}", phrases::format_count(summary.refusals, "time"))
    }

    fn list_status_lines(view: &SessionView) -> Vec<String> {
        let session_text = event_text::describe_holder(&view.assignment.session);
        match &view.release {
            None => vec![format!("attached to {session_text}")],
            Some((_, detail)) if detail.is_empty() => Vec::new(),
            Some((_, detail)) => vec![detail.clone()],
        }
    }
}
