//! What a workflow requests from the outside world, and the outcomes.
//!
//! An effect is data: it is fingerprinted, journaled and performed by a host. Each effect is a struct that names the type of
//! its outcome ([`TypedEffect`]); a failure is part of the outcome. The journal has one enum of effects and one of replies,
//! which only the table at [`effects!`] builds and takes apart: a reply of another kind than its effect never reaches a
//! workflow ([`tribunal_engine::replayer::ReplayDivergence::WrongReplyKind`]).
//!
//! The store moves entries of more than 64 KB to blobs; workflows do not notice.
//!
//! To add an effect: its struct and its outcome here, a row in the table, and a module in `runner`'s `effects`, or an arm in its host.

use alloc::{boxed::Box, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{
        changes::{ChangeOutcome, ReadChange},
        checks::{CheckResult, CheckSpec, ChecksOutcome, RunChecks},
        commits::{CommitOutcome, CommitWork, Integrate, IntegrateOutcome, RebaseOutcome, RebaseWork},
        frozen_work::{FreezeWork, WorkFreezing},
        notices::{NotifyOutcome, NotifyUser},
        parking::{ParkOutcome, ParkWork},
        workspace::{CloseOutcome, CloseWorkspace, OpenOutcome, OpenWorkspace, WorkspaceState},
    },
    findings::subject::Subject,
    review::own_file::OwnFile,
    runs::{
        types::{
            ChildNews, ChildOutcome, PostDecision, ReadRecords, RecordList, Requests, RunChild, StartChild,
            WriteRecords,
        },
        user_request::UserRequest,
    },
    sprint::facts::{FinishRetrospective, PlanStory, ReadSprint, RetrospectiveOutcome, SprintReading, StoryPlanning},
    story::facts::{ReadStory, RestoreBoard, StoryReading, StoryWriting, WriteStory},
    tasks::brief::{AgentReply, AgentTask},
};
use tribunal_engine::{
    answer_to::AnswerTo,
    children::{AwaitChild, StartedChild},
    effect::{
        AwaitReset, Elapsed, PostOutcome, ReadInbox, RecordsWritten, Restore, RestoreOutcome, Sleep, WaitForUser,
    },
    fault::Fault,
    files::{FilePart, FileSizeLimit, FrozenFile, Hunk, LandedFile, PatchRefusal, StrayEdit},
    ids::{Hash, Key},
    limits::AgentUsage,
    run_types::{AnyEffect, AnyReply},
};

/// The table of effects: name in the journal, struct, outcome. Those of the host concern the run itself; the others are performed in
/// the world outside.
macro_rules! effects {
    (
        host { $($host_kind:ident = $host_name:literal: $host_effect:ident -> $host_outcome:ident;)* }
        world { $($world_kind:ident = $world_name:literal: $world_effect:ident -> $world_outcome:ident;)* }
    ) => {
        effects! {
            $($host_kind = $host_name: $host_effect -> $host_outcome;)*
            $($world_kind = $world_name: $world_effect -> $world_outcome;)*
        }

        /// An effect that the host answers itself.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum HostEffect {
            $($host_kind($host_effect),)*
        }

        /// An effect that is performed beside the workflow.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum WorldEffect {
            $($world_kind($world_effect),)*
        }

        impl Effect {
            /// Tells effects that the host answers from those that are performed outside.
            pub fn into_routed(self) -> RoutedEffect {
                match self {
                    $(Effect::$host_kind(effect) => RoutedEffect::Host(HostEffect::$host_kind(effect)),)*
                    $(Effect::$world_kind(effect) => RoutedEffect::World(WorldEffect::$world_kind(effect)),)*
                }
            }
        }
    };
    ($($kind:ident = $name:literal: $effect:ident -> $outcome:ident;)*) => {
        /// What a workflow can request.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "effect", rename_all = "snake_case")]
        pub enum Effect {
            $($kind($effect),)*
        }

        /// The result of an effect as the journal records it. Workflows see the outcome inside.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "reply", rename_all = "snake_case")]
        pub enum Reply {
            $($kind($outcome),)*
        }

        /// The kinds of effects, and so of replies.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EffectKind {
            $($kind,)*
        }

        impl EffectKind {
            /// The name in the journal.
            pub fn as_str(self) -> &'static str {
                match self { $(EffectKind::$kind => $name,)* }
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

            impl AnswerTo<$effect> for Reply {
                type Outcome = $outcome;

                fn into_outcome(self) -> Option<$outcome> {
                    match self {
                        Reply::$kind(outcome) => Some(outcome),
                        _ => None,
                    }
                }
            }
        )*
    };
}

/// An effect, with what performs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutedEffect {
    Host(HostEffect),
    World(WorldEffect),
}

effects! {
    host {
        Inbox = "inbox": ReadInbox -> Requests;
        Wait = "wait": WaitForUser -> Requests;
        RunChild = "run_child": RunChild -> ChildOutcome;
        StartChild = "start_child": StartChild -> StartedChild;
        AwaitChild = "await_child": AwaitChild -> ChildNews;
        ReadRecords = "read_records": ReadRecords -> RecordList;
        WriteRecords = "write_records": WriteRecords -> RecordsWritten;
    }
    world {
        Freeze = "freeze": Freeze -> FreezeOutcome;
        Ask = "ask": AskAgent -> AskOutcome;
        Land = "land": Land -> LandOutcome;
        TakeIn = "take_in": TakeIn -> LandOutcome;
        Restore = "restore": Restore -> RestoreOutcome;
        Write = "write": WriteFile -> WriteOutcome;
        Post = "post": PostDecision -> PostOutcome;
        Sleep = "sleep": Sleep -> Elapsed;
        AwaitReset = "await_reset": AwaitReset -> Elapsed;
        OpenWorkspace = "open_workspace": OpenWorkspace -> OpenOutcome;
        CloseWorkspace = "close_workspace": CloseWorkspace -> CloseOutcome;
        FreezeWork = "freeze_work": FreezeWork -> WorkFreezing;
        Checks = "checks": RunChecks -> ChecksOutcome;
        Commit = "commit": CommitWork -> CommitOutcome;
        Rebase = "rebase": RebaseWork -> RebaseOutcome;
        ParkWork = "park_work": ParkWork -> ParkOutcome;
        Integrate = "integrate": Integrate -> IntegrateOutcome;
        ReadChange = "read_change": ReadChange -> ChangeOutcome;
        Notify = "notify": NotifyUser -> NotifyOutcome;
        ReadStory = "read_story": ReadStory -> StoryReading;
        WriteStory = "write_story": WriteStory -> StoryWriting;
        RestoreBoard = "restore_board": RestoreBoard -> StoryWriting;
        ReadSprint = "read_sprint": ReadSprint -> SprintReading;
        PlanStory = "plan_story": PlanStory -> StoryPlanning;
        FinishRetrospective = "finish_retrospective": FinishRetrospective -> RetrospectiveOutcome;
    }
}

/// Makes one frozen copy of the subject and what it needs. Each reviewer of a round gets a copy of that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Freeze {
    pub subject: Subject,
}

/// Asks an agent to do a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AskAgent {
    pub task: AgentTask,
    /// The call that was booked when the task was postponed; `None` books one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booking: Option<CallBooking>,
}

/// A call that is booked because all calls of the current hour are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallBooking {
    /// The wall time from which on the call is free.
    pub start_ms: u64,
    /// How often the task was begun and never finished before it was postponed. These attempts have used something, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished_attempts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Lands the patch of the task `by` in the user's tree, if it is allowed and no check blocks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Land {
    pub by: Key,
    pub patch: Hash,
    /// The allowed files, and directories with a trailing `/` in which new files may be added.
    pub allowed: Vec<String>,
    #[serde(default, skip_serializing_if = "FileSizeLimit::is_default")]
    pub size_limit: FileSizeLimit,
    pub checks: Vec<CheckSpec>,
    /// Only tell what the patch would change: nothing is checked and nothing lands.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub preview: bool,
    /// Parts of the patch, as a preview has shown them, that do not land.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<FilePart>,
}

/// Collects what was changed in the subject's files directly, and runs the checks on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TakeIn {
    pub before: Vec<FrozenFile>,
    pub checks: Vec<CheckSpec>,
}

/// Writes a file that Tribunal owns next to the subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WriteFile {
    pub file: OwnFile,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum FreezeOutcome {
    Frozen(FrozenSubject),
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// The subject as it is in one frozen copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FrozenSubject {
    /// The text of the one file, or the unified diff of a change.
    pub text: String,
    /// The hash of everything that is under review.
    pub hash: Hash,
    /// The files of a change as they are after it, without those that it deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FrozenFile>,
    /// What is missing in the agents' workspaces, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AskOutcome {
    Answered(AgentReply),
    /// A failing agent is an outcome like any other, not an error of the host.
    Failed(FailedTask),
    /// The agent was not asked, because all calls of the current hour are used up.
    Postponed(PostponedCall),
}

/// A call that has to wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PostponedCall {
    #[serde(flatten)]
    pub booking: CallBooking,
    /// Which limit was reached.
    pub why: String,
}

/// A task that an agent failed to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailedTask {
    #[serde(flatten)]
    pub fault: Fault,
    #[serde(default)]
    pub usage: AgentUsage,
    /// What the agent printed, masked, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Hash>,
    /// The masked prompt that was sent before the failure, as a blob; `None` if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Hash>,
    /// Where the prompt was sent, if another endpoint than the default of the vendor was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Edits outside the agent's workspace, by the agent or by another process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strayed: Vec<StrayEdit>,
    /// What the agent left in the workspace for development in which it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Box<WorkspaceState>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LandOutcome {
    Landed(LandedChange),
    /// What the patch would change. Nothing has landed.
    Previewed(LandedChange),
    Refused {
        #[serde(flatten)]
        why: PatchRefusal,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// What a landing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LandedChange {
    /// The difference between the text before and after this landing.
    pub hunks: Vec<Hunk>,
    /// The current text of the subject; empty for a change, whose files have their own texts.
    pub text: String,
    /// The hash of the subject's text, or of all landed files.
    pub hash: Hash,
    /// The landed files of a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LandedFile>,
    /// The results of the checks that do not block; those that block have passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum WriteOutcome {
    Written {
        path: String,
        /// Where the version that the user had edited was put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept_copy: Option<String>,
        /// The edits that were not understood, one line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unusable_edits: Vec<String>,
    },
    /// Nothing was written because the user has edited the file. The workflow applies the edits and then writes it again.
    Edited { requests: Vec<UserRequest> },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

impl AnyEffect for Effect {
    fn effect_name(&self) -> &'static str {
        self.kind().as_str()
    }

    /// The time, budget, model size and session of a task, and its booked call, may differ: the user may raise a limit and
    /// resume, which also changes the share of a child. A file of Tribunal's own counts as the same however a newer build words it.
    fn is_same_request(&self, recorded_effect: &Effect) -> bool {
        match (self, recorded_effect) {
            (Effect::Ask(AskAgent { task: own_task, .. }), Effect::Ask(AskAgent { task: recorded_task, .. })) => {
                // Everything but these four fields must be equal.
                let AgentTask { timeout_ms, size, budget, session, .. } = own_task.clone();
                *own_task == AgentTask { timeout_ms, size, budget, session, ..recorded_task.clone() }
            }
            (Effect::Write(own_write), Effect::Write(recorded_write)) => own_write.file == recorded_write.file,
            (Effect::RunChild(own_child), Effect::RunChild(recorded_child))
            | (
                Effect::StartChild(StartChild { child: own_child }),
                Effect::StartChild(StartChild { child: recorded_child }),
            ) => own_child.name == recorded_child.name && own_child.order == recorded_child.order,
            (own_effect, recorded_effect) => own_effect == recorded_effect,
        }
    }

    fn awaits_agent(&self) -> bool {
        matches!(self, Effect::AwaitReset(_))
    }
}

impl AnyReply for Reply {
    fn effect_name(&self) -> &'static str {
        self.kind().as_str()
    }
}
