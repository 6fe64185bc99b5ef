//! What an agent's free-text response says of its work: done, blocked, stuck, only tests, or to be continued.
//!
//! A status block, where there is one, is the agent's word and decides alone. Without one, words are weighed, and every
//! point has a reason that a person can read. It is a claim either way: what is done is what can be seen in the tree.
//!
//! [`shape`] and [`spoken`] find the agent's words in what its client printed, [`block`] reads the status block, [`signs`] weighs the
//! rest. Findings, fixes and verdicts are not read here but in [`crate::answer`].

mod block;
mod shape;
mod signs;
pub(crate) mod spoken;

use serde::Serialize;

pub use block::{Block, Status, Tests};
pub use shape::Shape;
pub use spoken::Spoken;

/// What is known beside the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// How long the last response was, in bytes.
    pub last_len: Option<usize>,
    /// Files that changed since the loop began: committed, staged or untracked.
    pub changed_files: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Analysis {
    pub shape: Shape,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// As the agent wrote it; none: there was no status block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
    /// Nothing is left to do, as far as the response says.
    pub done: bool,
    /// How sure that is, or how sure the agent was that it has to go on: 0 to 100.
    pub score: u32,
    pub test_only: bool,
    pub stuck: bool,
    /// What the client did not let it do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    pub changed_files: Vec<String>,
    /// In bytes: the next response is compared with it.
    pub length: usize,
    /// Why, a line for each point and each sign.
    pub reasons: Vec<String>,
}

/// `shape`: none, to be found out.
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
    match spoken.block.clone().or_else(|| block::find(&spoken.said)) {
        Some(block) => settle(&mut analysis, block),
        None => signs::weigh(&mut analysis, &spoken, before),
    }
    for denied in &spoken.denied {
        analysis.reasons.push(format!("was denied: {denied}"));
    }
    match before.changed_files.as_slice() {
        [] => {}
        [one] => analysis.reasons.push(format!("changed since the loop began: {one}")),
        [first, rest @ ..] => {
            analysis.reasons.push(format!("changed since the loop began: {first} and {} more", rest.len()));
        }
    }
    analysis
}

/// The agent's own word decides; whether it is stuck or only tests is not asked then.
fn settle(analysis: &mut Analysis, block: Block) {
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
