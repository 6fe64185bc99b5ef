//! How effects fail: which kinds can, and where the fault is in their outcomes. A new effect that can fail is listed here.

use alloc::vec::Vec;

use crate::{
    development::{
        changes::ChangeOutcome,
        checks::ChecksOutcome,
        commits::{CommitOutcome, IntegrateOutcome, RebaseOutcome},
        frozen_work::WorkFreezing,
        notices::NotifyOutcome,
        parking::ParkOutcome,
        workspace::{CloseOutcome, OpenOutcome},
    },
    runs::{
        effect::{AskOutcome, EffectKind, FailedTask, FreezeOutcome, LandOutcome, Reply, WriteOutcome},
        types::{ChildNews, ChildOutcome, ReturnedChild},
    },
    sprint::facts::{RetrospectiveOutcome, SprintReading, StoryPlanning},
    story::facts::{StoryReading, StoryWriting},
};
use tribunal_engine::{
    child_outcome::FailedChild,
    effect::{PostOutcome, RestoreOutcome},
    fault::Fault,
    limits::AgentUsage,
};

impl Reply {
    /// Makes the reply to an effect that failed for a reason outside of it; `None` if this kind of effect cannot fail.
    pub fn from_fault(effect_kind: EffectKind, fault: Fault) -> Option<Reply> {
        match effect_kind {
            EffectKind::Freeze => Some(Reply::Freeze(fault.into())),
            EffectKind::Ask => Some(Reply::Ask(fault.into())),
            EffectKind::Land => Some(Reply::Land(fault.into())),
            EffectKind::TakeIn => Some(Reply::TakeIn(fault.into())),
            EffectKind::Restore => Some(Reply::Restore(fault.into())),
            EffectKind::Write => Some(Reply::Write(fault.into())),
            EffectKind::Post => Some(Reply::Post(fault.into())),
            EffectKind::RunChild => Some(Reply::RunChild(fault.into())),
            EffectKind::OpenWorkspace => Some(Reply::OpenWorkspace(fault.into())),
            EffectKind::CloseWorkspace => Some(Reply::CloseWorkspace(fault.into())),
            EffectKind::FreezeWork => Some(Reply::FreezeWork(fault.into())),
            EffectKind::Checks => Some(Reply::Checks(fault.into())),
            EffectKind::Commit => Some(Reply::Commit(fault.into())),
            EffectKind::Rebase => Some(Reply::Rebase(fault.into())),
            EffectKind::ParkWork => Some(Reply::ParkWork(fault.into())),
            EffectKind::Integrate => Some(Reply::Integrate(fault.into())),
            EffectKind::ReadChange => Some(Reply::ReadChange(fault.into())),
            EffectKind::Notify => Some(Reply::Notify(fault.into())),
            EffectKind::ReadStory => Some(Reply::ReadStory(fault.into())),
            EffectKind::WriteStory => Some(Reply::WriteStory(fault.into())),
            EffectKind::RestoreBoard => Some(Reply::RestoreBoard(fault.into())),
            EffectKind::ReadSprint => Some(Reply::ReadSprint(fault.into())),
            EffectKind::PlanStory => Some(Reply::PlanStory(fault.into())),
            EffectKind::FinishRetrospective => Some(Reply::FinishRetrospective(fault.into())),
            // Their outcomes have no failure. A host that cannot read the inbox or the records ends with an error of its own, and a
            // child that cannot be started comes back with its fault.
            EffectKind::StartChild
            | EffectKind::AwaitChild
            | EffectKind::Inbox
            | EffectKind::Wait
            | EffectKind::Sleep
            | EffectKind::AwaitReset
            | EffectKind::ReadRecords
            | EffectKind::WriteRecords => None,
        }
    }

    /// Returns the fault, if the effect failed.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            // Every kind that can fail must be listed here, or its faults are not reported.
            Reply::Freeze(FreezeOutcome::Failed { fault })
            | Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. }))
            | Reply::Land(LandOutcome::Failed { fault })
            | Reply::TakeIn(LandOutcome::Failed { fault })
            | Reply::Restore(RestoreOutcome::Failed { fault })
            | Reply::Write(WriteOutcome::Failed { fault })
            | Reply::Post(PostOutcome::Failed { fault })
            | Reply::OpenWorkspace(OpenOutcome::Failed { fault })
            | Reply::CloseWorkspace(CloseOutcome::Failed { fault })
            | Reply::FreezeWork(WorkFreezing::Failed { fault })
            | Reply::Checks(ChecksOutcome::Failed { fault })
            | Reply::Commit(CommitOutcome::Failed { fault })
            | Reply::Rebase(RebaseOutcome::Failed { fault })
            | Reply::ParkWork(ParkOutcome::Failed { fault })
            | Reply::Integrate(IntegrateOutcome::Failed { fault })
            | Reply::ReadChange(ChangeOutcome::Failed { fault })
            | Reply::Notify(NotifyOutcome::Failed { fault })
            | Reply::ReadStory(StoryReading::Failed { fault })
            | Reply::WriteStory(StoryWriting::Failed { fault })
            | Reply::RestoreBoard(StoryWriting::Failed { fault })
            | Reply::ReadSprint(SprintReading::Failed { fault })
            | Reply::PlanStory(StoryPlanning::Failed { fault })
            | Reply::FinishRetrospective(RetrospectiveOutcome::Failed { fault })
            | Reply::RunChild(ChildOutcome::Failed(FailedChild { fault, .. }))
            | Reply::AwaitChild(ChildNews::Returned(ReturnedChild {
                outcome: ChildOutcome::Failed(FailedChild { fault, .. }),
                ..
            })) => Some(fault),
            _ => None,
        }
    }
}

/// Implements `From<Fault>` for outcomes whose failure has a fault and nothing else.
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

failed_with_a_fault!(
    FreezeOutcome,
    SprintReading,
    StoryPlanning,
    RetrospectiveOutcome,
    LandOutcome,
    WriteOutcome,
    OpenOutcome,
    CloseOutcome,
    WorkFreezing,
    ChecksOutcome,
    CommitOutcome,
    RebaseOutcome,
    ParkOutcome,
    IntegrateOutcome,
    ChangeOutcome,
    NotifyOutcome,
    StoryReading,
    StoryWriting
);

impl From<Fault> for AskOutcome {
    fn from(fault: Fault) -> AskOutcome {
        AskOutcome::Failed(FailedTask {
            fault,
            usage: AgentUsage::default(),
            output: None,
            prompt: None,
            endpoint: None,
            strayed: Vec::new(),
            workspace: None,
        })
    }
}
