//! What fixers have tried, and whether they make progress.
//!
//! A repeated answer alone is not a problem: honest steps look alike. It is one when a fixer repeats an answer that was
//! given *in the same state*: the same text, findings and severities. Then there is one changed attempt, by another agent
//! and with a correction; after that the user is asked. Since whole states are compared and not only the last two outputs,
//! alternating between two texts is detected, too.

use alloc::{string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    brief::AgentReply,
    context::Context,
    finding::{Finding, Status},
    ids::{AgentName, FindingId, Hash},
    loops::SIMILAR,
};

/// The most outputs about one finding that are compared with a new one.
const OUTPUTS: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tries {
    /// The context for the next briefs.
    #[serde(skip_serializing_if = "Context::is_empty")]
    pub context: Context,
    /// The hash of the subject as it was last read or landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<Output>,
    /// Findings for which a fixer repeated itself without progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circling: Vec<FindingId>,
    /// Open findings whose evidence the repair of another finding removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<FindingId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Output {
    output: Hash,
    standing: Hash,
    agent: AgentName,
    /// The findings that the task had.
    findings: Vec<FindingId>,
}

impl Tries {
    pub fn is_empty(&self) -> bool {
        *self == Tries::default()
    }

    /// Hashes the state of text and findings: equal only if nothing has changed, or everything was changed back.
    pub fn standing(&self, findings: &[Finding]) -> Hash {
        // The text, and one line for each finding with everything that counts as movement.
        let mut all = self.text.as_ref().map_or_else(String::new, |text| text.as_str().into());
        for finding in findings {
            // An assignment by itself is no progress.
            let status = if finding.status == Status::Assigned { &Status::Open } else { &finding.status };
            all.push_str(&alloc::format!("\n{} {} {status:?}", finding.id, finding.severity));
        }
        Hash::of(all.as_bytes())
    }

    /// Returns the outputs about any of these findings that were given in this state.
    pub fn outputs_at(&self, standing: &Hash, about: &[FindingId]) -> Vec<Hash> {
        let fits = |past: &&Output| past.standing == *standing && past.is_about(about);
        self.outputs.iter().filter(fits).map(|past| past.output.clone()).collect()
    }

    /// Returns which of these findings were answered before in this state.
    pub fn answered_before(&self, standing: &Hash, about: &[FindingId]) -> Vec<FindingId> {
        let past = |id: &&FindingId| {
            self.outputs.iter().any(|past| past.standing == *standing && past.findings.contains(id))
        };
        about.iter().filter(past).copied().collect()
    }

    /// Returns the agent that last worked on one of these findings.
    pub fn last_agent(&self, about: &[FindingId]) -> Option<&AgentName> {
        // Newest first: the last agent is the one that should be replaced.
        self.outputs.iter().rev().find(|past| past.is_about(about)).map(|past| &past.agent)
    }

    /// Remembers an output and drops those that are too old.
    pub fn remember(&mut self, output: Hash, standing: Hash, agent: AgentName, findings: Vec<FindingId>) {
        self.outputs.push(Output { output, standing, agent, findings });
        let crowded = |at: usize| {
            let about = &self.outputs[at].findings;
            let later =
                |id: &FindingId| self.outputs[at..].iter().filter(|past| past.findings.contains(id)).count();
            // An output about several findings stays as long as one of them needs it.
            about.iter().all(|id| later(id) > OUTPUTS)
        };
        if let Some(at) = (0..self.outputs.len()).find(|at| crowded(*at)) {
            self.outputs.remove(at);
        }
    }
}

impl Output {
    fn is_about(&self, about: &[FindingId]) -> bool {
        self.findings.iter().any(|id| about.contains(id))
    }
}

/// Whether the reply repeats an earlier one.
pub fn is_repeated(reply: &AgentReply) -> bool {
    reply.repeats.is_some_and(|permille| permille >= SIMILAR)
}
