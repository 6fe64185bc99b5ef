//! What a workflow asks of the world, and what came of it.
//!
//! An effect is data: it is fingerprinted, journaled and performed by a host. At most 64 KB of it stand in the journal
//! itself; the store puts what is longer into blobs without the workflow noticing.

use alloc::{string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    brief::{AgentReply, Task},
    decision::{Answer, Decision},
    fault::Fault,
    finding::Severity,
    ids::{AgentName, DecisionId, FindingId, Hash, Key},
    limits::Usage,
    reason::Ending,
    subject::Subject,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Make one frozen copy of the subject and what it needs, for all reviewers of a round.
    Freeze { subject: Subject },
    /// Let an agent do a task.
    Ask { task: Task },
    /// Bring the patch that the task `by` made into the person's tree, if it may and the verify commands pass.
    ///
    /// `allowed`: files, and folders with a `/` at their end in which new files may be made.
    Land { by: Key, patch: Hash, allowed: Vec<String>, verify: Vec<String> },
    /// Look at what somebody changed in the subject's files themselves, and let the verify commands judge it.
    TakeIn { before: Vec<FrozenFile>, verify: Vec<String> },
    /// Put a file back as it was before somebody wrote past the copies; what is there now is parked first.
    Restore { stray: Stray },
    /// Write a file of ours beside the subject.
    Write { file: OwnFile, text: String },
    /// Put a question where people see it; does not wait.
    Post { decision: Decision },
    /// What people said since the last look; does not wait.
    Inbox,
    /// There is nothing to do until a person says something: parks the run with this ending unless one did.
    Wait { ending: Ending },
    /// Let time pass.
    Sleep { ms: u64 },
    /// Let time pass until an agent may be asked again, by the wall clock: however often the run is resumed meanwhile.
    AwaitReset { agent: AgentName, until_ms: u64, why: String },
}

/// A file that Tribunal owns; its name is chosen by the runner's rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "file", rename_all = "snake_case")]
pub enum OwnFile {
    /// Carries a stamp of its own content, so that a person's edits are noticed and kept.
    Tracker,
    Metrics {
        unix_seconds: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    Frozen {
        /// The one file's text; of a change its unified diff.
        text: String,
        /// Of all that is under review.
        hash: Hash,
        /// A change's files as they are after it; those it deleted are not among them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FrozenFile>,
        /// What agents will not find in their copies, in a line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remarks: Vec<String>,
    },
    Agent(AgentReply),
    /// The effect could not be done; a failing agent is a reply like any other.
    Failed {
        #[serde(flatten)]
        fault: Fault,
        #[serde(default)]
        usage: Usage,
        /// What the agent printed, masked, as a blob.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Hash>,
        /// What the agent was sent before it failed, masked, as a blob. None: nothing was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<Hash>,
        /// What was written past the agent's copy, by it or by somebody else.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        strayed: Vec<Stray>,
    },
    Landed {
        /// What changed between the text before and after this landing.
        hunks: Vec<Hunk>,
        /// The subject's text now; of a change nothing, its files have theirs.
        text: String,
        /// Of the subject's text, or of all files that landed.
        hash: Hash,
        /// What it did to the files of a change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<LandedFile>,
    },
    NotLanded {
        #[serde(flatten)]
        why: Refusal,
    },
    /// With requests it was *not* written: they come first, then it is tried again.
    Written {
        path: String,
        /// Where a version that a person had edited was put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        aside: Option<String>,
        /// What of it was not understood, in a line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        strange: Vec<String>,
        /// What had been edited in it and nobody has been told yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requests: Vec<Request>,
    },
    Posted,
    /// The file is as it was. Where what stood there was put, if it had to be.
    Restored {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked: Option<String>,
    },
    Requests {
        requests: Vec<Request>,
    },
    Slept,
}

/// A file of a change under review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozenFile {
    pub path: String,
    pub text: String,
}

/// A file of a change after a landing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedFile {
    pub path: String,
    pub hunks: Vec<Hunk>,
    /// As it is now.
    pub text: String,
}

/// A file of the person's that changed while agents were at work, and not by a landing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Stray {
    pub path: String,
    /// As it was; none: it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// As it is now; none: it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
    /// What stood there can be put back.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub kept: bool,
}

/// Lines `old_start..old_start+old_len` became `new_len` lines (lines count from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    pub old_start: u32,
    pub old_len: u32,
    pub new_len: u32,
}

/// Why a patch did not land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    /// It touches files it may not.
    Outside { files: Vec<String> },
    /// Somebody else changed the same lines.
    Conflict {
        line: u32,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        /// What stands there, and what the patch would have there.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        ours: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        theirs: String,
    },
    /// A verify command said no.
    Check { command: String, output: String },
    /// It would take most of the text away.
    Gutted { before: u32, after: u32 },
    /// The copy it was made in is gone or no longer the one that was answered for.
    Lost { detail: String },
}

/// What a person asks of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Answer a decision.
    Answer { decision: DecisionId, answer: Answer },
    /// Go on after a park.
    Resume,
    /// Something for the next briefs.
    Say { text: String },
    /// A finding is to be seen otherwise.
    Amend {
        finding: FindingId,
        /// How it stood when the person said so; none: whatever it is like now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        was: Option<Was>,
        #[serde(flatten)]
        change: Change,
    },
    /// A finding of the person's own. The quote may be empty.
    Add { severity: Severity, description: String, quote: String },
}

/// A finding as a person saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Was {
    /// In the tracker's words.
    pub status: String,
    pub severity: Severity,
}

/// What a person makes of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    Fixed,
    Open,
    Dismissed { reason: String },
    Deferred { reason: String },
    Severity { to: Severity },
}

impl Effect {
    /// Whether it asks for the same thing, whatever time, money and model it is given for it, in whichever talk: what is left of
    /// a run's time depends on its limits, and a person may change those. A file of ours is the same file however a newer
    /// build words it.
    pub fn wants_the_same_as(&self, other: &Effect) -> bool {
        match (self, other) {
            (Effect::Ask { task: one }, Effect::Ask { task: other }) => {
                let Task { timeout_ms, size, budget, session, .. } = one.clone();
                *one == Task { timeout_ms, size, budget, session, ..other.clone() }
            }
            (Effect::Write { file: one, .. }, Effect::Write { file: other, .. }) => one == other,
            (one, other) => one == other,
        }
    }

    /// Equal effects have equal fingerprints, on every machine and in every release that writes the same JSON.
    pub fn fingerprint(&self) -> Result<Hash, serde_json::Error> {
        serde_json::to_vec(self).map(|bytes| Hash::of(&bytes))
    }
}
