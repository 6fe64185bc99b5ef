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

mod block;
mod shape;
mod signs;
pub(crate) mod spoken;

use serde::Serialize;

pub use block::{Block, Status, Tests};
pub use shape::Shape;
pub use spoken::Spoken;

/// What is known besides the response itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// The length of the previous response in bytes.
    pub last_len: Option<usize>,
    /// Files that changed since the loop began, whether committed, staged or untracked.
    pub changed_files: Vec<String>,
}

/// What a response says about its work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Analysis {
    pub shape: Shape,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The status block as the agent wrote it; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
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
pub fn analyse(output: &str, shape: Option<Shape>, before: &Before) -> Analysis {
    let shape = shape.unwrap_or_else(|| Shape::of(output));
    let spoken = shape.read(output);
    let mut analysis = Analysis {
        shape,
        session: spoken.session.clone(),
        denied: spoken.denied.clone(),
        changed_files: before.changed_files.clone(),
        length: spoken.answer.len(),
        ..Analysis::default()
    };
    // A status in JSON fields takes precedence over a block in the text.
    match spoken.block.clone().or_else(|| block::find(&spoken.said)) {
        Some(block) => settle(&mut analysis, block),
        None => signs::weigh(&mut analysis, &spoken, before),
    }
    // Denials do not change the result, but they often explain it.
    for denied in &spoken.denied {
        analysis.reasons.push(format!("was denied: {denied}"));
    }
    match before.changed_files.as_slice() {
        [] => {}
        // One file is named; of several, the first one and their number keep the reason on one line.
        [one] => analysis.reasons.push(format!("changed since the loop began: {one}")),
        [first, rest @ ..] => {
            analysis.reasons.push(format!("changed since the loop began: {first} and {} more", rest.len()));
        }
    }
    analysis
}

/// Takes over what the status block says. The signs for being stuck or only testing are not looked for then.
fn settle(analysis: &mut Analysis, block: Block) {
    // EXIT_SIGNAL overrules STATUS: an agent may report COMPLETE for one of several tasks and still have more to do.
    let (done, score, why) = match (block.exit_signal, block.status) {
        (Some(true), _) => (true, 100, "the status block says EXIT_SIGNAL: true".to_string()),
        (Some(false), _) => (false, 80, "the status block says EXIT_SIGNAL: false".to_string()),
        (None, Some(Status::Complete)) => {
            (true, 100, "the status block says STATUS: COMPLETE, and has no EXIT_SIGNAL".to_string())
        }
        (None, Some(status)) => {
            (false, 0, format!("the status block says STATUS: {status}, and has no EXIT_SIGNAL"))
        }
        (None, None) => (false, 0, "the status block says neither STATUS nor EXIT_SIGNAL".to_string()),
    };
    (analysis.done, analysis.score) = (done, score);
    analysis.reasons.push(why);
    analysis.block = Some(block);
}
