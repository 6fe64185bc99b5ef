//! Analyses what an agent's free-text response says about its work: done, blocked, stuck, only testing, or to be
//! continued.
//!
//! A status block, where there is one, is the agent's own statement and decides alone. Without one, keywords are
//! scored, and every point has a reason that the user can read. Either way the result is only a claim: what is really
//! done can be seen in the tree.
//!
//! [`output_shape`] and [`agent_response`] find the agent's words in what its client printed, [`status_block`] reads
//! the status block, and [`keywords`] scores the rest. Findings, fixes and verdicts are not read here but in
//! [`crate::answer`].

pub(crate) mod agent_response;
pub(crate) mod keywords;
mod output_shape;
pub(crate) mod status_block;

use tribunal_json::Serialize;
use tribunal_workflows::tasks::status_report::{StatusReport, WorkStatus};

pub use agent_response::AgentResponse;
pub use output_shape::OutputShape;

/// What is known besides the response itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnalysisContext {
    /// The length of the previous response in bytes.
    pub previous_length: Option<usize>,
    /// Files that changed since the loop began, whether committed, staged or untracked.
    pub changed_files: Vec<String>,
}

/// What a response says about its work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResponseAnalysis {
    pub shape: OutputShape,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The status block as the agent wrote it; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<StatusReport>,
    /// Whether nothing is left to do, as far as the response says.
    pub done: bool,
    /// How sure the result is, from 0 to 100: that the work is done, or, if a block says so, that it has to go on.
    pub score: u32,
    pub test_only: bool,
    pub stuck: bool,
    /// Actions that the client denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    pub changed_files: Vec<String>,
    /// The length in bytes, with which the next response is compared.
    pub length: usize,
    /// One line for each point and each sign.
    pub reasons: Vec<String>,
}

/// Analyses a response. The shape of the output is detected if it is not given.
pub fn analyse_response(
    client_output: &str,
    known_shape: Option<OutputShape>,
    analysis_context: &AnalysisContext,
) -> ResponseAnalysis {
    let known_shape = known_shape.unwrap_or_else(|| OutputShape::detect(client_output));
    let response = known_shape.read_response(client_output);
    let mut analysis = ResponseAnalysis {
        shape: known_shape,
        session: response.session_id.clone(),
        denied: response.denied_actions.clone(),
        changed_files: analysis_context.changed_files.clone(),
        length: response.answer.len(),
        ..ResponseAnalysis::default()
    };
    // A status in JSON fields takes precedence over a block in the text.
    match response.status_block.clone().or_else(|| status_block::find_status_block(&response.all_text)) {
        Some(found_block) => apply_status_block(&mut analysis, found_block),
        None => keywords::score_keywords(&mut analysis, &response, analysis_context),
    }
    // Denials do not change the result, but they often explain it.
    for denied_action in &response.denied_actions {
        analysis.reasons.push(format!("permission denied: {denied_action}"));
    }
    match analysis_context.changed_files.as_slice() {
        [] => {}
        // One file is named; of several, the first one and their number keep the reason on one line.
        [only_file] => analysis.reasons.push(format!("changed since the loop began: {only_file}")),
        [first_file, other_files @ ..] => {
            analysis.reasons.push(format!("changed since the loop began: {first_file} and {} more", other_files.len()));
        }
    }
    analysis
}

/// Takes over what the status block says. The signs for being stuck or only testing are not looked for then.
fn apply_status_block(analysis: &mut ResponseAnalysis, status_block: StatusReport) {
    let (score, reason) = match (status_block.exit_signal, status_block.status) {
        (Some(true), _) => (100, "the status block says EXIT_SIGNAL: true".to_string()),
        (Some(false), _) => (80, "the status block says EXIT_SIGNAL: false".to_string()),
        (None, Some(WorkStatus::Complete)) => {
            (100, "the status block says STATUS: COMPLETE and has no EXIT_SIGNAL".to_string())
        }
        (None, Some(status)) => (0, format!("the status block says STATUS: {status} and has no EXIT_SIGNAL")),
        (None, None) => (0, "the status block has neither STATUS nor EXIT_SIGNAL".to_string()),
    };
    (analysis.done, analysis.score) = (status_block.is_done(), score);
    analysis.reasons.push(reason);
    analysis.block = Some(status_block);
}
