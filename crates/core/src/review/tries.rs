//! What fixers have tried, and whether they go in circles.
//!
//! Saying the same again is no circle by itself: honest steps look alike. It is one when a fixer says what was said before
//! *while everything stood as it stands now*: the text, the findings, their severities. Then there is one changed try, by
//! another agent and with a word about it; after that a person is asked. Since states are compared and not only the last
//! two outputs, going back and forth between two texts is a circle, too.

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

/// So many outputs about one finding are compared with a new one.
const OUTPUTS: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tries {
    /// For the next briefs.
    #[serde(skip_serializing_if = "Context::is_empty")]
    pub context: Context,
    /// The subject as it was read or landed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<Output>,
    /// Findings that a fixer went in circles about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circling: Vec<FindingId>,
    /// Open findings whose evidence went with the repair of another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<FindingId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Output {
    output: Hash,
    standing: Hash,
    agent: AgentName,
    /// What it was about.
    findings: Vec<FindingId>,
}

impl Tries {
    pub fn is_empty(&self) -> bool {
        *self == Tries::default()
    }

    /// How everything stands: equal again only when nothing has moved, or all of it back.
    pub fn standing(&self, findings: &[Finding]) -> Hash {
        let mut all = self.text.as_ref().map_or_else(String::new, |text| text.as_str().into());
        for finding in findings {
            // Whether a fixer holds it just now is no movement.
            let status = if finding.status == Status::Assigned { &Status::Open } else { &finding.status };
            all.push_str(&alloc::format!("\n{} {} {status:?}", finding.id, finding.severity));
        }
        Hash::of(all.as_bytes())
    }

    /// Outputs about any of these findings that were given while everything stood like this.
    pub fn outputs_at(&self, standing: &Hash, about: &[FindingId]) -> Vec<Hash> {
        let fits = |past: &&Output| past.standing == *standing && past.is_about(about);
        self.outputs.iter().filter(fits).map(|past| past.output.clone()).collect()
    }

    /// Which of these findings an output was about before, while everything stood like this.
    pub fn answered_before(&self, standing: &Hash, about: &[FindingId]) -> Vec<FindingId> {
        let past = |id: &&FindingId| {
            self.outputs.iter().any(|past| past.standing == *standing && past.findings.contains(id))
        };
        about.iter().filter(past).copied().collect()
    }

    /// Who tried last about one of these.
    pub fn last_agent(&self, about: &[FindingId]) -> Option<&AgentName> {
        self.outputs.iter().rev().find(|past| past.is_about(about)).map(|past| &past.agent)
    }

    /// Keeps the last outputs about each finding.
    pub fn remember(&mut self, output: Hash, standing: Hash, agent: AgentName, findings: Vec<FindingId>) {
        self.outputs.push(Output { output, standing, agent, findings });
        let crowded = |at: usize| {
            let about = &self.outputs[at].findings;
            let later =
                |id: &FindingId| self.outputs[at..].iter().filter(|past| past.findings.contains(id)).count();
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

/// It was said before.
pub fn is_repeated(reply: &AgentReply) -> bool {
    reply.repeats.is_some_and(|permille| permille >= SIMILAR)
}
