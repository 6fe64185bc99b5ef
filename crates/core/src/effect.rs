//! What a workflow asks of the world, and what came of it.
//!
//! An effect is data: it is fingerprinted, journaled and performed by a host. Each effect is a struct that names the type of
//! its outcome ([`TypedEffect`]); a failure is part of the outcome. The journal has one enum of effects and one of replies,
//! which are made and taken apart by the table at [`effects!`] alone: a reply of another kind than its effect never reaches a
//! workflow ([`crate::desk::Divergence::WrongReply`]).
//!
//! At most 64 KB of a reply stand in the journal itself; the store puts what is longer into blobs without the workflow
//! noticing.
//!
//! To add an effect: its struct and its outcome here, a row in the table, and a module in `runner`'s `effects`.

use alloc::{string::String, vec::Vec};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    brief::{AgentReply, Task},
    decision::{Answer, Decision},
    fault::Fault,
    files::{FrozenFile, Hunk, LandedFile, Refusal, Stray},
    finding::Severity,
    ids::{AgentName, DecisionId, FindingId, Hash, Key},
    limits::Usage,
    reason::Ending,
    subject::Subject,
};

/// An effect, with the type of what comes of it.
pub trait TypedEffect: Into<Effect> {
    type Outcome;

    /// An outcome as the journal has it.
    fn reply(outcome: Self::Outcome) -> Reply;

    /// Takes a reply apart; `None`: it answers another kind of effect.
    fn outcome(reply: Reply) -> Option<Self::Outcome>;
}

/// The table of effects: name in the journal, struct, outcome.
macro_rules! effects {
    ($($(#[$doc:meta])* $kind:ident = $name:literal: $effect:ident -> $outcome:ident;)*) => {
        /// What a workflow may ask for.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "effect", rename_all = "snake_case")]
        pub enum Effect {
            $($(#[$doc])* $kind($effect),)*
        }

        /// What came of an effect, as the journal has it. Workflows see the outcome inside.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "reply", rename_all = "snake_case")]
        pub enum Reply {
            $($kind($outcome),)*
        }

        /// The kinds of effects, and so of replies.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EffectKind {
            $($kind,)*
        }

        impl fmt::Display for EffectKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(EffectKind::$kind => $name,)* })
            }
        }

        impl Effect {
            pub fn kind(&self) -> EffectKind {
                match self { $(Effect::$kind(_) => EffectKind::$kind,)* }
            }
        }

        impl Reply {
            pub fn kind(&self) -> EffectKind {
                match self { $(Reply::$kind(_) => EffectKind::$kind,)* }
            }
        }

        $(
            impl From<$effect> for Effect {
                fn from(effect: $effect) -> Effect {
                    Effect::$kind(effect)
                }
            }

            impl TypedEffect for $effect {
                type Outcome = $outcome;

                fn reply(outcome: $outcome) -> Reply {
                    Reply::$kind(outcome)
                }

                fn outcome(reply: Reply) -> Option<$outcome> {
                    match reply {
                        Reply::$kind(outcome) => Some(outcome),
                        _ => None,
                    }
                }
            }
        )*
    };
}

effects! {
    Freeze = "freeze": Freeze -> FreezeOutcome;
    Ask = "ask": AskAgent -> AskOutcome;
    Land = "land": Land -> LandOutcome;
    TakeIn = "take_in": TakeIn -> LandOutcome;
    Restore = "restore": Restore -> RestoreOutcome;
    Write = "write": WriteFile -> WriteOutcome;
    Post = "post": PostDecision -> PostOutcome;
    Inbox = "inbox": ReadInbox -> Requests;
    Wait = "wait": WaitForUser -> Requests;
    Sleep = "sleep": Sleep -> Elapsed;
    AwaitReset = "await_reset": AwaitReset -> Elapsed;
}

/// Makes one frozen copy of the subject and what it needs, for all reviewers of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freeze {
    pub subject: Subject,
}

/// Lets an agent do a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskAgent {
    pub task: Task,
}

/// Brings the patch that the task `by` made into the user's tree, if it may and the verify commands pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Land {
    pub by: Key,
    pub patch: Hash,
    /// Files, and folders with a `/` at their end in which new files may be made.
    pub allowed: Vec<String>,
    pub verify: Vec<String>,
}

/// Looks at what somebody changed in the subject's files themselves, and lets the verify commands judge it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakeIn {
    pub before: Vec<FrozenFile>,
    pub verify: Vec<String>,
}

/// Puts a file back as it was before somebody wrote past the copies; what is there now is parked first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restore {
    pub stray: Stray,
}

/// Writes a file of ours beside the subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteFile {
    pub file: OwnFile,
    pub text: String,
}

/// Puts a question where people see it; does not wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostDecision {
    pub decision: Decision,
}

/// Reads what people said since the last look; does not wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadInbox {}

/// There is nothing to do until a person says something: parks the run with this ending unless one did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitForUser {
    pub ending: Ending,
}

/// Lets time pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sleep {
    pub ms: u64,
}

/// Lets time pass until an agent may be asked again, by the wall clock: however often the run is resumed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitReset {
    pub agent: AgentName,
    pub until_ms: u64,
    pub why: String,
}

/// A file that Tribunal owns; its name is chosen by the runner's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "file", rename_all = "snake_case")]
pub enum OwnFile {
    /// Carries a stamp of its own content, so that a person's edits are noticed and kept.
    Tracker,
    Metrics {
        unix_seconds: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum FreezeOutcome {
    Frozen(FrozenSubject),
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// The subject as one frozen copy has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozenSubject {
    /// The one file's text; of a change its unified diff.
    pub text: String,
    /// Of all that is under review.
    pub hash: Hash,
    /// A change's files as they are after it; those it deleted are not among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FrozenFile>,
    /// What agents will not find in their copies, in a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AskOutcome {
    Answered(AgentReply),
    /// A failing agent is an outcome like any other.
    Failed(FailedTask),
}

/// A task that an agent did not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedTask {
    #[serde(flatten)]
    pub fault: Fault,
    #[serde(default)]
    pub usage: Usage,
    /// What the agent printed, masked, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Hash>,
    /// What the agent was sent before it failed, masked, as a blob. None: nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Hash>,
    /// What was written past the agent's copy, by it or by somebody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strayed: Vec<Stray>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LandOutcome {
    Landed(Landed),
    Refused {
        #[serde(flatten)]
        why: Refusal,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// What a landing did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Landed {
    /// What changed between the text before and after this landing.
    pub hunks: Vec<Hunk>,
    /// The subject's text now; of a change nothing, its files have theirs.
    pub text: String,
    /// Of the subject's text, or of all files that landed.
    pub hash: Hash,
    /// What it did to the files of a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LandedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RestoreOutcome {
    /// The file is as it was. Where what stood there was put, if it had to be.
    Restored {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked: Option<String>,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum WriteOutcome {
    Written {
        path: String,
        /// Where a version that a person had edited was put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        aside: Option<String>,
        /// What of it was not understood, in a line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        strange: Vec<String>,
    },
    /// It was not written: a person has edited it. What they meant comes first, then it is written again.
    Edited { requests: Vec<Request> },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PostOutcome {
    Posted,
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// What people said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    pub requests: Vec<Request>,
}

/// The time has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Elapsed {}

impl Reply {
    /// The reply to an effect that failed for a reason outside of it. None: this kind of effect cannot fail.
    pub fn failed(kind: EffectKind, fault: Fault) -> Option<Reply> {
        match kind {
            EffectKind::Freeze => Some(Reply::Freeze(fault.into())),
            EffectKind::Ask => Some(Reply::Ask(fault.into())),
            EffectKind::Land => Some(Reply::Land(fault.into())),
            EffectKind::TakeIn => Some(Reply::TakeIn(fault.into())),
            EffectKind::Restore => Some(Reply::Restore(fault.into())),
            EffectKind::Write => Some(Reply::Write(fault.into())),
            EffectKind::Post => Some(Reply::Post(fault.into())),
            EffectKind::Inbox | EffectKind::Wait | EffectKind::Sleep | EffectKind::AwaitReset => None,
        }
    }

    /// The fault, where the effect failed.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Reply::Freeze(FreezeOutcome::Failed { fault })
            | Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. }))
            | Reply::Land(LandOutcome::Failed { fault })
            | Reply::TakeIn(LandOutcome::Failed { fault })
            | Reply::Restore(RestoreOutcome::Failed { fault })
            | Reply::Write(WriteOutcome::Failed { fault })
            | Reply::Post(PostOutcome::Failed { fault }) => Some(fault),
            _ => None,
        }
    }
}

/// Outcomes that have a fault and nothing else to tell of a failure.
macro_rules! failed_with_a_fault {
    ($($outcome:ident),*) => {
        $(
            impl From<Fault> for $outcome {
                fn from(fault: Fault) -> $outcome {
                    $outcome::Failed { fault }
                }
            }
        )*
    };
}

failed_with_a_fault!(FreezeOutcome, LandOutcome, RestoreOutcome, WriteOutcome, PostOutcome);

impl From<Fault> for AskOutcome {
    fn from(fault: Fault) -> AskOutcome {
        AskOutcome::Failed(FailedTask {
            fault,
            usage: Usage::default(),
            output: None,
            prompt: None,
            strayed: Vec::new(),
        })
    }
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
    Say(Remark),
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

/// Something that a person told the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remark {
    /// The finding that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<FindingId>,
    pub text: String,
}

impl Remark {
    pub fn new(text: impl Into<String>) -> Remark {
        Remark { about: None, text: text.into() }
    }
}

/// As agents read it: `about F3: …`.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.about {
            Some(finding) => write!(f, "about {finding}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
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
            (Effect::Ask(AskAgent { task: one }), Effect::Ask(AskAgent { task: other })) => {
                let Task { timeout_ms, size, budget, session, .. } = one.clone();
                *one == Task { timeout_ms, size, budget, session, ..other.clone() }
            }
            (Effect::Write(one), Effect::Write(other)) => one.file == other.file,
            (one, other) => one == other,
        }
    }

    /// Equal effects have equal fingerprints, on every machine and in every release that writes the same JSON.
    pub fn fingerprint(&self) -> Result<Hash, serde_json::Error> {
        serde_json::to_vec(self).map(|bytes| Hash::of(&bytes))
    }
}
