//! Decisions for the user and requests from the user, both through the journal.

use alloc::{collections::VecDeque, format, string::String, vec::Vec};

use crate::{
    findings::finding::{DeferralReason, DismissalReason, FindingStatus, StatusTransition, TransitionCause},
    review::{
        ReviewState, amendments,
        merge::finding_headline,
        questions,
        review_host::ReviewHost,
        topic::ReviewTopic,
        unconfirmed_edits::{self, UnconfirmedEdits},
    },
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic, RunEvent, find_topic},
        user_request::UserRequest,
    },
};
use tribunal_engine::{
    answer::{ChoiceKey, DecisionAnswer},
    dialog::user_dialog,
    host::ParkedRun,
    ids::{DecisionId, FindingId, Key},
    reason::{RunEnding, RunOutcome, RunReason},
    text::truncate_chars,
    user_remark::UserRemark,
};

/// The name of the effect that records what the user dismissed.
pub(super) const DISMISSALS_NAME: &str = "dismissals";

/// Offers a decision when the run halts or its confidence is too low, unless one is already offered.
pub(super) async fn offer_decision(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    ending: &RunEnding,
    parent_key: &Key,
) -> Result<(), ParkedRun> {
    let is_about_ending = |topic: &DecisionTopic| {
        *topic == DecisionTopic::Limit || find_topic::<ReviewTopic>(topic) == Some(&ReviewTopic::Confidence)
    };
    let is_asked = state.dialog.open_decisions().any(|decision| is_about_ending(&decision.about));
    // Other endings are final, have decisions of their own, or need a repaired environment and `resume`.
    let offers_choice =
        ending.reason == RunReason::ConfidenceLow || ending.reason.outcome() == Some(RunOutcome::Halted);
    let parent_asks = host.order.limits.parent_asks && ending.reason.outcome() == Some(RunOutcome::Halted);
    if !offers_choice || is_asked || parent_asks {
        return Ok(());
    }
    let open_headlines: Vec<String> =
        state.findings.iter().filter(|finding| finding.status.is_open()).map(finding_headline).collect();
    let open_text =
        if open_headlines.is_empty() { String::new() } else { format!("; open: {}", open_headlines.join("; ")) };
    let question = format!("{} ({}){open_text}", ending.reason.table_row().description, ending.detail);
    let decision_id = state.dialog.next_decision_id();
    let decision = match ending.reason {
        RunReason::ConfidenceLow => questions::ask_about_low_confidence(decision_id, question),
        _ => Decision::for_limit(decision_id, question),
    };
    state.dialog.post_decision(host.run_host(), &parent_key.child_key("ask"), decision).await
}

/// Applies what the user sent since the last read.
pub(super) async fn read_inbox(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    parent_key: &Key,
) -> Result<(), ParkedRun> {
    let requests = user_dialog::read_inbox(host.run_host(), parent_key).await?;
    apply_requests(host, state, requests, parent_key.child_key(DISMISSALS_NAME)).await
}

/// Parks with this ending until the user sends something.
pub(super) async fn wait_for_user(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    ending: RunEnding,
) -> Result<(), ParkedRun> {
    let is_environment_failure = ending.reason == RunReason::Environment;
    let requests = user_dialog::wait_for_user(host.run_host(), ending).await?;
    if is_environment_failure {
        // If the user continues after an environment failure, it counts as fixed: every agent gets another chance.
        state.spent.failing.clear();
    }
    apply_requests(host, state, requests, Key::for_user_wait().child_key(DISMISSALS_NAME)).await
}

/// Applies what the user sent. Findings that the user dismissed, or no longer dismisses, are recorded under `write_key`.
pub(super) async fn apply_requests(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    new_requests: Vec<UserRequest>,
    write_key: Key,
) -> Result<(), ParkedRun> {
    let mut record_changes = Vec::new();
    let mut unconfirmed_edits = UnconfirmedEdits::default();
    let mut waiting_requests = VecDeque::from(new_requests);
    while let Some(user_request) = waiting_requests.pop_front() {
        match user_request {
            // A review has no children, and the host itself stops a run.
            UserRequest::Resume | UserRequest::ContinueChild { .. } | UserRequest::Stop { .. } => {}
            UserRequest::Say(remark) => state.dialog.remember_remark(host.run_host(), remark),
            UserRequest::Answer { decision, answer } => {
                let topic = state.dialog.record_answer(host.run_host(), &decision, &answer);
                match topic {
                    Some(DecisionTopic::Workflow(WorkflowTopic::Review(ReviewTopic::Tracker { requests })))
                        if answer.choice_key() == Some(ChoiceKey::Keep) =>
                    {
                        waiting_requests.extend(requests.into_iter().map(unconfirmed_edits::confirm_request));
                    }
                    Some(topic) => apply_choice(host, state, &decision, topic, &answer),
                    None => {}
                }
            }
            UserRequest::Unconfirmed { file, requests, parked } => unconfirmed_edits.add_edits(file, requests, parked),
            UserRequest::AmendEarlier { run, finding, change } => {
                record_changes.extend(state.amend_earlier(host, run, *finding, change));
            }
            UserRequest::Amend { finding, was, change } => amendments::amend_finding(host, state, finding, was, change),
            UserRequest::Add { severity, description, quote } => {
                amendments::add_user_finding(host, state, severity, description, quote);
            }
        }
    }
    state.record_dismissals(host, write_key.clone(), record_changes).await?;
    unconfirmed_edits.ask_user(host, state, &write_key).await
}

/// Changes the state as the user chose.
fn apply_choice(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    decision_id: &DecisionId,
    topic: DecisionTopic,
    user_answer: &DecisionAnswer,
) {
    match topic {
        // The dialog has recorded what is to be put back.
        DecisionTopic::Strayed { .. } => {}
        DecisionTopic::Limit if user_answer.choice_key() == Some(ChoiceKey::More) => {
            state.accepted = false;
            // With new limits agents that had failed get another chance as well.
            state.spent.failing.clear();
            state.spent.grants += 1;
            state.spent.failures_in_a_row = 0;
            state.iteration = 0;
            state.degraded = 0;
            state.another_panel = state.is_panel_disbelieved();
        }
        DecisionTopic::Limit => accept_remaining(host, state, &answer_reason(user_answer)),
        DecisionTopic::Workflow(WorkflowTopic::Review(topic)) => {
            apply_review_choice(host, state, decision_id, topic, user_answer);
        }
        // Reviews do not ask the questions of other kinds of runs.
        DecisionTopic::Workflow(_) => {}
    }
}

/// Changes the state as the user chose in a question that only reviews ask.
fn apply_review_choice(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    decision_id: &DecisionId,
    topic: ReviewTopic,
    user_answer: &DecisionAnswer,
) {
    match (topic, user_answer.choice_key()) {
        (ReviewTopic::Blocked { finding: finding_id }, Some(ChoiceKey::Retry)) => {
            retry_finding(host, state, finding_id)
        }
        (ReviewTopic::Disputed { finding: finding_id }, Some(ChoiceKey::Uphold)) => {
            state.accepted = false;
            state.iteration = 0;
            // The iterations are counted anew, since the earlier ones had no chance to repair this finding.
            state.transition_finding(host, finding_id, user_transition(FindingStatus::Open, "upheld by the user"));
        }
        (
            ReviewTopic::Blocked { finding: finding_id } | ReviewTopic::Disputed { finding: finding_id },
            Some(ChoiceKey::Dismiss),
        ) => {
            let new_status = FindingStatus::Dismissed { why: DismissalReason::Person };
            state.transition_finding(host, finding_id, user_transition(new_status, &answer_reason(user_answer)));
            // The dismissed finding may be the only one that kept the last pass from being dry.
            state.reconsider_last_pass();
        }
        (ReviewTopic::Blocked { finding: finding_id } | ReviewTopic::Disputed { finding: finding_id }, _) => {
            let new_status = FindingStatus::Deferred { why: DeferralReason::Person };
            state.transition_finding(host, finding_id, user_transition(new_status, &answer_reason(user_answer)));
        }
        (ReviewTopic::Patch { findings, .. }, _) => apply_patch_answer(host, state, decision_id, findings, user_answer),
        (ReviewTopic::Session { .. }, Some(ChoiceKey::Fixers)) => {
            state.accepted = false;
            state.iteration = 0;
            // From now on fixers repair, even if the session comes back later.
            state.session_over = true;
        }
        (ReviewTopic::Confidence, Some(ChoiceKey::More)) => {
            state.accepted = false;
            state.held_for_confidence = true;
            // A dry pass would end the run at once again.
            state.last_pass.dry = false;
            state.spent.grants += 1;
        }
        // Edits that are not the user's are dropped; others were applied with the other requests.
        (ReviewTopic::Tracker { .. }, _) => {}
        (ReviewTopic::Confidence | ReviewTopic::Session { .. }, _) => {
            accept_remaining(host, state, &answer_reason(user_answer))
        }
    }
}

/// Warns about remarks that arrived after the last brief, so that no agent gets them.
pub(super) fn warn_unheard_remarks(host: &ReviewHost<'_>, late_remarks: &[UserRemark]) {
    for remark in late_remarks {
        let warning = format!("this remark came too late to reach an agent: {}", truncate_chars(&remark.text, 200));
        host.note_event(RunEvent::Warned { text: warning });
    }
}

/// Withdraws the questions that the end of the run has made irrelevant.
pub(super) fn withdraw_open_decisions(host: &ReviewHost<'_>, state: &mut ReviewState) {
    state.dialog.withdraw_decisions(host.run_host(), "the run has ended", |_| true);
}

/// Applies the user's answer about a patch.
fn apply_patch_answer(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    decision_id: &DecisionId,
    finding_ids: Vec<FindingId>,
    user_answer: &DecisionAnswer,
) {
    let choice_key = user_answer.choice_key();
    let (new_status, note_text) = match choice_key {
        Some(ChoiceKey::Approve) => (FindingStatus::Assigned, String::from("patch approved by the user")),
        Some(ChoiceKey::Reject) => {
            (FindingStatus::Open, format!("patch rejected by the user: {}", answer_reason(user_answer)))
        }
        Some(ChoiceKey::Dismiss) => {
            (FindingStatus::Dismissed { why: DismissalReason::Person }, answer_reason(user_answer))
        }
        _ => (FindingStatus::Deferred { why: DeferralReason::Person }, answer_reason(user_answer)),
    };
    if choice_key == Some(ChoiceKey::Approve) {
        state
            .pending
            .iter_mut()
            .filter(|pending_patch| pending_patch.decision == *decision_id)
            .for_each(|approved_patch| approved_patch.approved = true);
    } else {
        // A patch that is not approved is dropped; after a rejection a fixer makes a new one.
        state.pending.retain(|pending_patch| pending_patch.decision != *decision_id);
    }
    if matches!(choice_key, Some(ChoiceKey::Approve | ChoiceKey::Reject)) {
        state.accepted = false;
        state.iteration = 0;
    }
    for finding_id in finding_ids {
        // The user may have settled the finding in the tracker meanwhile.
        let waiting_status = FindingStatus::Blocked { decision: decision_id.clone() };
        if state.find_finding(finding_id).is_some_and(|blocked_finding| blocked_finding.status == waiting_status) {
            state.transition_finding(host, finding_id, user_transition(new_status.clone(), &note_text));
        }
    }
    state.reconsider_last_pass();
}

fn retry_finding(host: &ReviewHost<'_>, state: &mut ReviewState, finding_id: FindingId) {
    // A retry revokes an earlier acceptance.
    state.accepted = false;
    state.iteration = 0;
    state.transition_finding(host, finding_id, user_transition(FindingStatus::Open, "the user asked for another try"));
}

fn accept_remaining(host: &ReviewHost<'_>, state: &mut ReviewState, note_text: &str) {
    state.accepted = true;
    let remaining_ids: Vec<FindingId> = state
        .findings
        .iter()
        .filter(|finding| finding.status.is_open() || matches!(finding.status, FindingStatus::Blocked { .. }))
        .map(|finding| finding.id)
        .collect();
    for finding_id in remaining_ids {
        state.transition_finding(
            host,
            finding_id,
            user_transition(FindingStatus::Deferred { why: DeferralReason::Person }, note_text),
        );
    }
}

fn user_transition(new_status: FindingStatus, note_text: &str) -> StatusTransition {
    StatusTransition::new(new_status, TransitionCause::User, note_text)
}

fn answer_reason(user_answer: &DecisionAnswer) -> String {
    if user_answer.note.is_empty() { String::from("no reason given") } else { user_answer.note.clone() }
}
