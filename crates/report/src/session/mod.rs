//! The reporter of loops in a user's session, and the texts about what sessions do. A session may also work for a review.

mod event_text;

pub use event_text::describe_session_event;

use tribunal_workflows::session::{SessionAssignment, order::SessionSummary, view::SessionView};

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
    // What the session uses is between the user and the client.
    const COUNTS_USAGE: bool = false;

    fn describe_result(summary: &SessionSummary) -> String {
        let tool_count = u32::try_from(summary.tools).unwrap_or(u32::MAX);
        let tools_text = phrases::format_count(tool_count, "tool");
        // The ending of the run says why the session was released.
        format!("{}, {tools_text} used", Self::describe_result_cell(summary))
    }

    fn describe_result_cell(summary: &SessionSummary) -> String {
        format!("sent back {}", phrases::format_count(summary.refusals, "time"))
    }

    fn list_status_lines(view: &SessionView) -> Vec<String> {
        match &view.release {
            None => vec![format!("belongs to {}", event_text::describe_holder(&view.assignment.session))],
            Some(_) => Vec::new(),
        }
    }
}
