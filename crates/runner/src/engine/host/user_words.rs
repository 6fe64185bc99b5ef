//! Looks, while agents without a sandbox work, at everything that could be the user's word, and removes what is not.

use std::sync::PoisonError;

use tribunal_engine::ids::RunId;
use tribunal_store::{StoredRequest, SyncMode};
use tribunal_workflows::runs::{
    types::{EntryDraft, RunEvent},
    user_request::UserRequest,
};

use super::{HostError, WorkflowHost};
use crate::{
    effects::{EffectContext, read_trusted_answers},
    shared::user_words::{INSPECTION_INTERVAL, RequestJudgement},
};

/// Waits until it is time to look again; forever if all agents have a sandbox.
pub(super) async fn wait_for_inspection(context: &EffectContext) {
    if !context.shared.user_words.is_active() {
        return std::future::pending().await;
    }
    let inspected_at = context.memory.ignored_words.lock().unwrap_or_else(PoisonError::into_inner).inspected_at;
    if let Some(inspected_at) = inspected_at {
        tokio::time::sleep_until(inspected_at + INSPECTION_INTERVAL).await;
    }
}

impl WorkflowHost<'_, '_> {
    /// Judges new requests to this run and its children, tells their senders, and replaces files of decisions that an agent may
    /// have written.
    pub(super) async fn inspect_user_words(&mut self) -> Result<(), HostError> {
        let watch = self.context.shared.user_words.clone();
        if watch.is_active() {
            let child_ids = self.journal.run_view().children.values().map(|standing| standing.run.clone());
            let run_ids: Vec<RunId> = [self.context.run_id.clone()].into_iter().chain(child_ids).collect();
            let mut receipts = Vec::new();
            for run_id in run_ids {
                for stored in self.journal.requests_of(&run_id)? {
                    let judgement = watch.judge_request(&run_id, &stored);
                    if judgement != RequestJudgement::Known {
                        receipts.push((stored.inbox_id, judgement == RequestJudgement::Accepted));
                    }
                    if judgement == RequestJudgement::Refused {
                        self.context.ignore_word(describe_refusal(&run_id, &stored.request));
                    }
                }
            }
            if !receipts.is_empty() {
                self.journal.send_receipts(receipts).await?;
            }
            // What counts stays in the files until the workflow asks for it.
            let _ = read_trusted_answers(&self.context, self.journal.run_view());
        }
        self.record_ignored_words().await
    }

    /// Returns the requests to a run that are the user's.
    pub(super) fn trusted_requests_of(&self, run_id: &RunId) -> Result<Vec<StoredRequest>, HostError> {
        let watch = &self.context.shared.user_words;
        let mut requests = self.journal.requests_of(run_id)?;
        requests.retain(|stored| watch.judge_request(run_id, stored) == RequestJudgement::Known);
        Ok(requests)
    }

    async fn record_ignored_words(&mut self) -> Result<(), HostError> {
        let (descriptions, first_number) = {
            let mut ignored_words = self.context.memory.ignored_words.lock().unwrap_or_else(PoisonError::into_inner);
            ignored_words.inspected_at = Some(tokio::time::Instant::now());
            let descriptions = std::mem::take(&mut ignored_words.unrecorded);
            let first_number = ignored_words.recorded_count + 1;
            ignored_words.recorded_count += descriptions.len() as u32;
            (descriptions, first_number)
        };
        let life_count = self.journal.run_view().incidents.life_count;
        let drafts = descriptions.into_iter().zip(first_number..).map(|(text, number)| EntryDraft {
            id: format!("word_ignored:{life_count}:{number}"),
            event: RunEvent::WordIgnored { text },
        });
        self.record_drafts(drafts.collect(), SyncMode::WithNext).await.map(drop)
    }
}

fn describe_refusal(run_id: &RunId, request: &UserRequest) -> String {
    let request_text = match request {
        UserRequest::Answer { decision, answer } => format!("the answer `{}` to {decision}", answer.choice),
        UserRequest::Stop { .. } => "a request to stop".to_string(),
        UserRequest::Say(_) => "a remark".to_string(),
        UserRequest::Amend { finding, .. } => format!("a change of {finding}"),
        _ => "a request".to_string(),
    };
    format!(
        "ignored {request_text} in the inbox of {run_id}: it came while agents without a sandbox worked, and not from a command \
         of yours"
    )
}
