//! What fixers have tried, and whether they make progress.
//!
//! A repeated answer alone is not a problem: honest steps look alike. It is one when a fixer repeats an answer that was
//! given *in the same state*: the same text, findings and severities. Then there is one changed attempt, by another agent
//! and with a correction; after that the user is asked. Since whole states are compared and not only the last two outputs,
//! alternating between two texts is detected, too.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    findings::finding::{Finding, FindingStatus},
    tasks::{brief::AgentReply, output_similarity::SIMILAR_PERMILLE, prompt_context::PromptContext},
};
use tribunal_engine::ids::{AgentName, FindingId, Hash};

/// The most outputs about one finding that are compared with a new one.
const MAX_OUTPUTS_PER_FINDING: usize = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FixHistory {
    /// The context for the next briefs.
    #[serde(skip_serializing_if = "PromptContext::is_empty")]
    pub context: PromptContext,
    /// The hash of the subject as it was last read or landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<FixerOutput>,
    /// Findings for which a fixer repeated itself without progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circling: Vec<FindingId>,
    /// Open findings whose evidence the repair of another finding removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<FindingId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
struct FixerOutput {
    output: Hash,
    standing: Hash,
    agent: AgentName,
    /// The findings that the task had.
    findings: Vec<FindingId>,
}

impl FixHistory {
    pub fn is_empty(&self) -> bool {
        *self == FixHistory::default()
    }

    /// Hashes the state of text and findings: equal only if nothing has changed, or everything was changed back.
    pub fn compute_state_hash(&self, findings: &[Finding]) -> Hash {
        // The text, and one line for each finding with everything that counts as movement.
        let mut state_text = self.text.as_ref().map_or_else(String::new, |text_hash| text_hash.as_str().into());
        for finding in findings {
            // An assignment by itself is no progress.
            let status = if finding.status == FindingStatus::Assigned { &FindingStatus::Open } else { &finding.status };
            state_text.push_str(&alloc::format!("\n{} {} {status:?}", finding.id, finding.severity));
        }
        Hash::digest_of(state_text.as_bytes())
    }

    /// Returns the outputs about any of these findings that were given in this state.
    pub fn outputs_at(&self, state_hash: &Hash, finding_ids: &[FindingId]) -> Vec<Hash> {
        let is_match =
            |past_output: &&FixerOutput| past_output.standing == *state_hash && past_output.is_about(finding_ids);
        self.outputs.iter().filter(is_match).map(|past_output| past_output.output.clone()).collect()
    }

    /// Returns which of these findings were answered before in this state.
    pub fn findings_answered_before(&self, state_hash: &Hash, finding_ids: &[FindingId]) -> Vec<FindingId> {
        let was_answered = |finding_id: &&FindingId| {
            self.outputs
                .iter()
                .any(|past_output| past_output.standing == *state_hash && past_output.findings.contains(finding_id))
        };
        finding_ids.iter().filter(was_answered).copied().collect()
    }

    /// Returns the agent that last worked on one of these findings.
    pub fn last_agent_for(&self, finding_ids: &[FindingId]) -> Option<&AgentName> {
        // Newest first: the last agent is the one that should be replaced.
        self.outputs
            .iter()
            .rev()
            .find(|past_output| past_output.is_about(finding_ids))
            .map(|past_output| &past_output.agent)
    }

    /// Remembers an output and drops those that are too old.
    pub fn remember_output(&mut self, output: Hash, state_hash: Hash, agent: AgentName, findings: Vec<FindingId>) {
        self.outputs.push(FixerOutput { output, standing: state_hash, agent, findings });
        let is_crowded_out = |output_index: usize| {
            let covered_findings = &self.outputs[output_index].findings;
            let count_later_outputs = |finding_id: &FindingId| {
                self.outputs[output_index..]
                    .iter()
                    .filter(|past_output| past_output.findings.contains(finding_id))
                    .count()
            };
            // An output about several findings stays as long as one of them needs it.
            covered_findings.iter().all(|finding_id| count_later_outputs(finding_id) > MAX_OUTPUTS_PER_FINDING)
        };
        if let Some(output_index) = (0..self.outputs.len()).find(|output_index| is_crowded_out(*output_index)) {
            self.outputs.remove(output_index);
        }
    }
}

impl FixerOutput {
    fn is_about(&self, finding_ids: &[FindingId]) -> bool {
        self.findings.iter().any(|finding_id| finding_ids.contains(finding_id))
    }
}

/// Whether the reply repeats an earlier one.
pub fn is_repeated_reply(reply: &AgentReply) -> bool {
    reply.repeats.is_some_and(|permille| permille >= SIMILAR_PERMILLE)
}
