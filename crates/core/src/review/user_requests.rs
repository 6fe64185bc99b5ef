//! Decisions for the user and requests from the user, both through the journal.

use alloc::{format, string::String, vec::Vec};

use crate::{
    decisions::{
        decision::{ChoiceKey, Decision, DecisionAnswer, DecisionTopic},
        user_request::{UserRemark, UserRequest},
    },
    engine::{
        effect::{PostDecision, PostOutcome, ReadInbox, WaitForUser},
        event::RunEvent,
        host::{Host, ParkedRun},
        ids::{DecisionId, FindingId, Key},
        reason::{RunEnding, RunOutcome, RunReason},
    },
    review::{
        ReviewState, amendments,
        finding::{DeferralReason, DismissalReason, FindingStatus, StatusTransition, TransitionCause},
        merge::finding_headline,
    },
    text::truncate_chars,
};

/// Posts a question to the user and remembers it; does not wait.
pub(super) async fn post_decision(
    host: &dyn Host,
    state: &mut ReviewState,
    effect_key: &Key,
    decision: Decision,
) -> Result<(), ParkedRun> {
    host.note_event(RunEvent::DecisionPosted { decision: decision.clone() });
    state.decisions.push(decision.clone());
    let decision_id = decision.id.clone();
    if let PostOutcome::Failed { fault } = host.perform(effect_key.clone(), PostDecision { decision }).await? {
        // The file is only a convenience: the decision can still be answered by its id.
        host.note_event(RunEvent::Warned { text: format!("could not write the file for {decision_id}: {fault}") });
    }
    Ok(())
}

/// Offers a decision when the run halts or its confidence is too low, unless one is already offered.
pub(super) async fn offer_decision(
    host: &dyn Host,
    state: &mut ReviewState,
    ending: &RunEnding,
    parent_key: &Key,
) -> Result<(), ParkedRun> {
    let is_about_ending =
        |decision: &Decision| matches!(decision.about, DecisionTopic::Limit | DecisionTopic::Confidence);
    let is_asked = state.decisions.iter().any(|decision| is_about_ending(decision) && decision.answer.is_none());
    // Other endings are final, have decisions of their own, or need a repaired environment and `resume`.
    let offers_choice =
        ending.reason == RunReason::ConfidenceLow || ending.reason.outcome() == Some(RunOutcome::Halted);
    if !offers_choice || is_asked {
        return Ok(());
    }
    let open_headlines: Vec<String> =
        state.findings.iter().filter(|finding| finding.status.is_open()).map(finding_headline).collect();
    let open_text =
        if open_headlines.is_empty() { String::new() } else { format!("; open: {}", open_headlines.join("; ")) };
    let question = format!("{} ({}){open_text}", ending.reason.table_row().description, ending.detail);
    let decision_id = state.next_decision_id();
    let decision = match ending.reason {
        RunReason::ConfidenceLow => Decision::for_low_confidence(decision_id, question),
        _ => Decision::for_limit(decision_id, question),
    };
    post_decision(host, state, &parent_key.child_key("ask"), decision).await
}

/// Applies what the user sent since the last read.
pub(super) async fn read_inbox(host: &dyn Host, state: &mut ReviewState, parent_key: &Key) -> Result<(), ParkedRun> {
    let inbox = host.perform(parent_key.child_key("inbox"), ReadInbox {}).await?;
    apply_requests(host, state, inbox.requests);
    Ok(())
}

/// Parks with this ending until the user sends something.
pub(super) async fn wait_for_user(
    host: &dyn Host,
    state: &mut ReviewState,
    ending: RunEnding,
) -> Result<(), ParkedRun> {
    let is_environment_failure = ending.reason == RunReason::Environment;
    let inbox = host.perform(Key::for_user_wait(), WaitForUser { ending }).await?;
    if is_environment_failure {
        // If the user continues after an environment failure, it counts as fixed: every agent gets another chance.
        state.spent.failing.clear();
    }
    apply_requests(host, state, inbox.requests);
    Ok(())
}

pub(super) fn apply_requests(host: &dyn Host, state: &mut ReviewState, new_requests: Vec<UserRequest>) {
    for user_request in new_requests {
        match user_request {
            UserRequest::Resume => {}
            UserRequest::Say(remark) => remember_remark(host, state, remark),
            UserRequest::Answer { decision, answer } => apply_answer(host, state, &decision, answer),
            UserRequest::Amend { finding, was, change } => amendments::amend_finding(host, state, finding, was, change),
            UserRequest::Add { severity, description, quote } => {
                amendments::add_user_finding(host, state, severity, description, quote);
            }
        }
    }
}

/// Remembers a remark for all later briefs. Their room is limited, so the oldest remarks are dropped.
fn remember_remark(host: &dyn Host, state: &mut ReviewState, remark: UserRemark) {
    const MAX_REMARK_CHARS: usize = 4_000;
    // A remark in a tracker may be read more than once.
    if state.said.contains(&remark) {
        return;
    }
    state.said.push(remark);
    let total_chars = |remarks: &[UserRemark]| remarks.iter().map(|remark| remark.text.chars().count()).sum::<usize>();
    // The newest remark always stays, however long it is.
    while state.said.len() > 1 && total_chars(&state.said) > MAX_REMARK_CHARS {
        let oldest_remark = state.said.remove(0);
        let warning = format!(
            "your remarks are too long for a prompt; dropped the oldest: {}",
            truncate_chars(&oldest_remark.text, 80)
        );
        host.note_event(RunEvent::Warned { text: warning });
    }
}

/// Records the user's answer to an open decision and applies it.
fn apply_answer(host: &dyn Host, state: &mut ReviewState, decision_id: &DecisionId, user_answer: DecisionAnswer) {
    // An answer counts only for an open decision that offers it; a second answer must not undo the first.
    let open_decision = state.decisions.iter_mut().find(|candidate| {
        candidate.id == *decision_id && candidate.answer.is_none() && candidate.offers_choice(&user_answer.choice)
    });
    let Some(decision) = open_decision else {
        let warning =
            format!("ignored the answer `{}` to {decision_id}: no open decision offers it", user_answer.choice);
        host.note_event(RunEvent::Warned { text: warning });
        return;
    };
    decision.answer = Some(user_answer.clone());
    let topic = decision.about.clone();
    host.note_event(RunEvent::DecisionAnswered { decision: decision_id.clone(), answer: user_answer.clone() });
    if !user_answer.note.is_empty() {
        // The note of an answer is for agents, too: it often says how to repair the finding.
        remember_remark(host, state, UserRemark::new(user_answer.note.clone()));
    }
    apply_choice(host, state, decision_id, topic, &user_answer);
}

/// Changes the state as the user chose.
fn apply_choice(
    host: &dyn Host,
    state: &mut ReviewState,
    decision_id: &DecisionId,
    topic: DecisionTopic,
    user_answer: &DecisionAnswer,
) {
    match (topic, user_answer.choice_key()) {
        (DecisionTopic::Blocked { finding: finding_id }, Some(ChoiceKey::Retry)) => {
            retry_finding(host, state, finding_id)
        }
        (DecisionTopic::Disputed { finding: finding_id }, Some(ChoiceKey::Uphold)) => {
            state.accepted = false;
            state.iteration = 0;
            // The iterations are counted anew, since the earlier ones had no chance to repair this finding.
            state.transition_finding(host, finding_id, user_transition(FindingStatus::Open, "upheld by the user"));
        }
        (
            DecisionTopic::Blocked { finding: finding_id } | DecisionTopic::Disputed { finding: finding_id },
            Some(ChoiceKey::Dismiss),
        ) => {
            let new_status = FindingStatus::Dismissed { why: DismissalReason::Person };
            state.transition_finding(host, finding_id, user_transition(new_status, &answer_reason(user_answer)));
            // The dismissed finding may be the only one that kept the last pass from being dry.
            state.reconsider_last_pass();
        }
        (DecisionTopic::Blocked { finding: finding_id } | DecisionTopic::Disputed { finding: finding_id }, _) => {
            let new_status = FindingStatus::Deferred { why: DeferralReason::Person };
            state.transition_finding(host, finding_id, user_transition(new_status, &answer_reason(user_answer)));
        }
        (DecisionTopic::Patch { findings, .. }, _) => {
            apply_patch_answer(host, state, decision_id, findings, user_answer)
        }
        (DecisionTopic::Strayed { strays }, choice_key) => {
            state.strays.record_answer(strays, choice_key == Some(ChoiceKey::Restore))
        }
        (DecisionTopic::Session { .. }, Some(ChoiceKey::Fixers)) => {
            state.accepted = false;
            state.iteration = 0;
            // From now on fixers repair, even if the session comes back later.
            state.session_over = true;
        }
        // Reviews do not ask about loops; sessions do.
        (DecisionTopic::Loop, _) => {}
        (DecisionTopic::Confidence, Some(ChoiceKey::More)) => {
            state.accepted = false;
            state.held_for_confidence = true;
            // A dry pass would end the run at once again.
            state.last_pass.dry = false;
            state.spent.grants += 1;
        }
        (DecisionTopic::Limit, Some(ChoiceKey::More)) => {
            state.accepted = false;
            // With new limits agents that had failed get another chance as well.
            state.spent.failing.clear();
            state.spent.grants += 1;
            state.spent.failures_in_a_row = 0;
            state.iteration = 0;
            state.degraded = 0;
        }
        (DecisionTopic::Limit | DecisionTopic::Confidence | DecisionTopic::Session { .. }, _) => {
            accept_remaining(host, state, &answer_reason(user_answer))
        }
    }
}

/// Warns about remarks that arrived after the last brief, so that no agent gets them.
pub(super) fn warn_unheard_remarks(host: &dyn Host, late_remarks: &[UserRemark]) {
    for remark in late_remarks {
        let warning = format!("this remark came too late to reach an agent: {}", truncate_chars(&remark.text, 200));
        host.note_event(RunEvent::Warned { text: warning });
    }
}

/// Withdraws the questions that the end of the run has made irrelevant.
pub(super) fn withdraw_open_decisions(host: &dyn Host, state: &mut ReviewState) {
    for decision in state.decisions.iter_mut().filter(|decision| decision.answer.is_none()) {
        let answer = DecisionAnswer::new_withdrawn("the run has ended");
        decision.answer = Some(answer.clone());
        host.note_event(RunEvent::DecisionAnswered { decision: decision.id.clone(), answer });
    }
}

/// Applies the user's answer about a patch.
fn apply_patch_answer(
    host: &dyn Host,
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

fn retry_finding(host: &dyn Host, state: &mut ReviewState, finding_id: FindingId) {
    // A retry revokes an earlier acceptance.
    state.accepted = false;
    state.iteration = 0;
    state.transition_finding(host, finding_id, user_transition(FindingStatus::Open, "the user asked for another try"));
}

fn accept_remaining(host: &dyn Host, state: &mut ReviewState, note_text: &str) {
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
