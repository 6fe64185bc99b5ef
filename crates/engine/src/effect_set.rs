//! The effects of the engine as a part of those of the workflows.

use crate::{
    answer_to::AnswerTo,
    child_outcome::ChildOutcome,
    children::{AwaitChild, ChildNews, RunChild, StartChild, StartedChild},
    effect::{
        AwaitReset, Elapsed, PostDecision, PostOutcome, ReadInbox, ReadRecords, RecordList, RecordsWritten, Requests,
        Restore, RestoreOutcome, Sleep, WaitForUser, WriteRecords,
    },
    run_types::RunTypes,
};

/// Types of runs that have every effect of the engine. What the engine offers to workflows needs them.
pub trait EffectSet:
    RunTypes<
        Effect: From<Sleep>
                    + From<AwaitReset>
                    + From<ReadInbox>
                    + From<WaitForUser>
                    + From<Restore>
                    + From<PostDecision<Self>>
                    + From<ReadRecords<Self>>
                    + From<WriteRecords<Self>>
                    + From<RunChild<Self>>
                    + From<StartChild<Self>>
                    + From<AwaitChild>,
        Reply: AnswerTo<Sleep, Outcome = Elapsed>
                   + AnswerTo<AwaitReset, Outcome = Elapsed>
                   + AnswerTo<ReadInbox, Outcome = Requests<Self>>
                   + AnswerTo<WaitForUser, Outcome = Requests<Self>>
                   + AnswerTo<Restore, Outcome = RestoreOutcome>
                   + AnswerTo<PostDecision<Self>, Outcome = PostOutcome>
                   + AnswerTo<ReadRecords<Self>, Outcome = RecordList<Self>>
                   + AnswerTo<WriteRecords<Self>, Outcome = RecordsWritten>
                   + AnswerTo<RunChild<Self>, Outcome = ChildOutcome<Self>>
                   + AnswerTo<StartChild<Self>, Outcome = StartedChild>
                   + AnswerTo<AwaitChild, Outcome = ChildNews<Self>>,
    >
{
}
