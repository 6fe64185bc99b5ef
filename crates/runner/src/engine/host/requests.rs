//! Reads what the user sent to a run, and records it as the reply to an effect.

use tribunal_engine::{
    effect::RecordsWritten,
    ids::{Key, RunId},
    reason::RunEnding,
    replayer::finished_draft,
};
use tribunal_store::{EntryBatch, NewEntry, SyncMode};
use tribunal_workflows::runs::{
    effect::{HostEffect, Reply},
    types::{ChildNews, EntryDraft, RecordList, Replayer, Requests, StartChild},
    user_request::UserRequest,
    view::RunView,
};

use super::{HostError, WorkflowHost, children::ChildRequest};
use crate::{
    effects::{read_tracker_edits, read_trusted_answers, remove_decision_page},
    engine::journal::{recorded_reply, split_requests},
};

/// The reason why the user's requests are read.
pub(super) enum RequestReading {
    PollInbox,
    /// The run waits for its children, and is told at once what the user has sent.
    AwaitChild,
    /// The run parks with this ending unless there is a request. A wait that an earlier process had begun (`resumed`) is answered
    /// by the very fact that the user resumed the run.
    AwaitUser {
        ending: RunEnding,
        resumed: bool,
    },
}

impl WorkflowHost<'_, '_> {
    /// Answers an effect that concerns the run itself.
    pub(super) async fn answer_effect(
        &mut self,
        replayer: &Replayer,
        effect_key: Key,
        host_effect: HostEffect,
        resumed: bool,
    ) -> Result<(), HostError> {
        match host_effect {
            HostEffect::Inbox(_) => {
                self.answer_requests(replayer, &effect_key, RequestReading::PollInbox, Vec::new()).await
            }
            HostEffect::Wait(wait) => {
                let reading = RequestReading::AwaitUser { ending: wait.ending, resumed };
                self.answer_requests(replayer, &effect_key, reading, Vec::new()).await
            }
            HostEffect::ReadRecords(request) => {
                let reply = Reply::ReadRecords(RecordList { records: self.journal.read_records(&request)? });
                let draft = finished_draft(&effect_key, replayer.current_segment(), reply);
                let batch = EntryBatch { sync: SyncMode::WithNext, ..EntryBatch::default() };
                let recorded = self.journal.record_reply(vec![draft], batch).await?;
                self.deliver_at_once(replayer, &effect_key, recorded)
            }
            HostEffect::WriteRecords(request) => {
                let reply = Reply::WriteRecords(RecordsWritten {});
                let draft = finished_draft(&effect_key, replayer.current_segment(), reply);
                let recorded = self.journal.record_record_changes(draft, &request.changes).await?;
                self.deliver_at_once(replayer, &effect_key, recorded)
            }
            HostEffect::RunChild(run_child) => {
                self.run_child(ChildRequest { key: effect_key, run_child, resumed }).await
            }
            HostEffect::StartChild(StartChild { child: run_child }) => {
                self.start_child(replayer, ChildRequest { key: effect_key, run_child, resumed }).await
            }
            HostEffect::AwaitChild(_) => self.await_child(replayer, effect_key).await,
        }
    }

    /// Returns the view of another run; `None` if there is no such run or its journal cannot be read.
    fn view_of(&self, run_id: &RunId) -> Option<RunView> {
        let entries = self.journal.entries_of(run_id).ok().filter(|entries| !entries.is_empty())?;
        Some(RunView::from_entries(&entries))
    }

    /// Answers with what the user sent. `earlier_drafts` are recorded together with the reply, before it.
    pub(super) async fn answer_requests(
        &mut self,
        replayer: &Replayer,
        effect_key: &Key,
        reading: RequestReading,
        earlier_drafts: Vec<EntryDraft>,
    ) -> Result<(), HostError> {
        self.inspect_user_words().await?;
        let (request_ids, mut requests) = split_requests(self.trusted_requests_of(&self.context.run_id)?);
        // A request to stop is for the host; a workflow never sees it.
        requests.retain(|request| !matches!(request, UserRequest::Stop { .. }));
        requests.extend(read_trusted_answers(&self.context, self.journal.run_view()));
        requests.extend(read_tracker_edits(&self.context, |run_id| self.view_of(run_id)));
        let answered_children = self.answered_children()?;
        requests.extend(match reading {
            RequestReading::AwaitChild => self.child_runs.keep_untold(answered_children),
            RequestReading::PollInbox | RequestReading::AwaitUser { .. } => answered_children,
        });
        let reply = match reading {
            RequestReading::PollInbox => Reply::Inbox(Requests { requests }),
            RequestReading::AwaitChild if requests.is_empty() => return Ok(()),
            RequestReading::AwaitChild => Reply::AwaitChild(ChildNews::Word(Requests { requests })),
            RequestReading::AwaitUser { ending, resumed } => {
                // A wait that is being resumed never parks again at once: resuming the run is the user's answer to it.
                if resumed {
                    requests.push(UserRequest::Resume);
                }
                if requests.is_empty() {
                    self.record_drafts(earlier_drafts, SyncMode::WithNext).await?;
                    replayer.park_run(ending);
                    self.answered_at_once = true;
                    return Ok(());
                }
                Reply::Wait(Requests { requests })
            }
        };
        // Files with answers are removed below. Without any answer there is nothing that a crash could lose.
        let has_requests = !reply.user_requests().is_empty();
        let drafts = earlier_drafts.into_iter().chain([finished_draft(effect_key, replayer.current_segment(), reply)]);
        let drafts: Vec<EntryDraft> = drafts.collect();
        if !has_requests && request_ids.is_empty() {
            return self.defer_reply(replayer, effect_key, drafts);
        }
        // The reply and the requests it contains are recorded together, so no request is lost or answered twice.
        let batch = EntryBatch { taken_requests: request_ids, ..EntryBatch::default() };
        let recorded = self.journal.record_reply(drafts, batch).await?;
        for request in recorded.reply.user_requests() {
            if let UserRequest::Answer { decision: decision_id, .. } = request {
                remove_decision_page(&self.context, decision_id);
            }
        }
        self.deliver_at_once(replayer, effect_key, recorded)
    }

    /// Delivers a reply that says nothing new. It is recorded together with what the workflow does next.
    fn defer_reply(&mut self, replayer: &Replayer, effect_key: &Key, drafts: Vec<EntryDraft>) -> Result<(), HostError> {
        let reply_entry = self.journal.defer_drafts(drafts)?.pop();
        if let Some(NewEntry { timestamp, draft, .. }) = reply_entry
            && let Some(reply) = recorded_reply(&draft.event)
        {
            replayer.deliver_reply(effect_key, timestamp, reply)?;
            self.answered_at_once = true;
        }
        Ok(())
    }
}
