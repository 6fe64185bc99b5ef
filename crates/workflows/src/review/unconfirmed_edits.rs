//! Edits of the tracker that may be an agent's: they were made while agents without a sandbox were at work. The user is asked once
//! for all of them, and the run does not count as resolved until the user has answered. The tracker itself is written anew.

use alloc::{format, string::String, vec::Vec};

use crate::{
    review::{ReviewState, questions, review_host::ReviewHost, topic::ReviewTopic},
    runs::{
        types::find_topic,
        user_request::{FindingChange, UserRequest},
    },
};
use tribunal_engine::{host::ParkedRun, ids::Key, text::truncate_chars};

/// The most edits that the question names.
const MAX_NAMED_EDITS: usize = 5;
/// The longest excerpt of a text that was added.
const MAX_EXCERPT_CHARS: usize = 80;

/// What one reading of the tracker brought.
#[derive(Default)]
pub(super) struct UnconfirmedEdits {
    file: String,
    requests: Vec<UserRequest>,
    parked: Option<String>,
}

impl UnconfirmedEdits {
    pub(super) fn add_edits(&mut self, file: String, requests: Vec<UserRequest>, parked: Option<String>) {
        self.file = file;
        self.requests.extend(requests);
        self.parked = parked.or(self.parked.take());
    }

    /// Asks whether the edits are the user's, unless exactly this question is open.
    pub(super) async fn ask_user(
        self,
        host: &ReviewHost<'_>,
        state: &mut ReviewState,
        parent_key: &Key,
    ) -> Result<(), ParkedRun> {
        let is_asked = state.dialog.open_decisions().any(|decision| {
            matches!(find_topic::<ReviewTopic>(&decision.about), Some(ReviewTopic::Tracker { requests }) if *requests == self.requests)
        });
        if self.requests.is_empty() || is_asked {
            return Ok(());
        }
        let question = self.question();
        let decision_id = state.dialog.next_decision_id();
        let decision = questions::ask_about_tracker_edits(decision_id, self.requests, question);
        state.dialog.post_decision(host.run_host(), &parent_key.child_key("confirm"), decision).await
    }

    fn question(&self) -> String {
        let mut described: Vec<String> = self.requests.iter().take(MAX_NAMED_EDITS).map(describe_edit).collect();
        if self.requests.len() > MAX_NAMED_EDITS {
            described.push(format!("{} more edits were made", self.requests.len() - MAX_NAMED_EDITS));
        }
        let parked_note = match &self.parked {
            Some(parked) => format!(" The edited version is kept as {parked}."),
            None => String::new(),
        };
        format!(
            "{} in {} while agents without a sandbox worked. Was that you?{parked_note}",
            described.join(", "),
            self.file
        )
    }
}

/// Returns an edit that the user has confirmed. It holds for the finding as it is now, not only as it was when it was edited.
pub(super) fn confirm_request(request: UserRequest) -> UserRequest {
    match request {
        UserRequest::Amend { finding, change, .. } => UserRequest::Amend { finding, was: None, change },
        other_request => other_request,
    }
}

fn describe_edit(request: &UserRequest) -> String {
    match request {
        UserRequest::Amend { finding, change, .. } => format!("{finding} was set to {}", describe_change(change)),
        UserRequest::AmendEarlier { run, finding, change } => {
            format!("{} of run {run} was set to {}", finding.id, describe_change(change))
        }
        UserRequest::Add { description, .. } => {
            format!("a finding was added (“{}”)", truncate_chars(description, MAX_EXCERPT_CHARS))
        }
        UserRequest::Say(remark) => {
            format!("a remark was added (“{}”)", truncate_chars(&remark.text, MAX_EXCERPT_CHARS))
        }
        // The tracker has no other requests.
        _ => String::from("something was changed"),
    }
}

fn describe_change(change: &FindingChange) -> String {
    match change {
        FindingChange::Fixed => String::from("fixed"),
        FindingChange::Open => String::from("open"),
        FindingChange::Dismissed { .. } => String::from("dismissed"),
        FindingChange::Deferred { .. } => String::from("deferred"),
        FindingChange::Severity { to } => format!("severity {to}"),
    }
}
