//! Decisions for the user and requests from the user, both through the journal.

use alloc::{format, string::String, vec::Vec};

use crate::{
    decision::{About, Answer, ChoiceKey, Decision},
    effect::{PostDecision, PostOutcome, ReadInbox, Remark, Request, WaitForUser},
    event::Event,
    finding::{Cause, Deferral, Dismissal, Status, Transition},
    host::{Host, Parked},
    ids::{DecisionId, FindingId, Key},
    merge::headline,
    reason::{Ending, Outcome, Reason},
    review::{Court, amend},
    text::cut,
};

/// Posts a question to the user and remembers it; does not wait.
pub(super) async fn post(
    host: &dyn Host,
    court: &mut Court,
    key: &Key,
    decision: Decision,
) -> Result<(), Parked> {
    host.note(Event::DecisionPosted { decision: decision.clone() });
    court.decisions.push(decision.clone());
    let id = decision.id.clone();
    if let PostOutcome::Failed { fault } = host.perform(key.clone(), PostDecision { decision }).await? {
        // The file is only a convenience: the decision can still be answered by its id.
        host.note(Event::Warned { text: format!("the file of {id} was not written: {fault}") });
    }
    Ok(())
}

/// Offers a decision when the run halts with work left, unless it is already offered.
pub(super) async fn offer(
    host: &dyn Host,
    court: &mut Court,
    ending: &Ending,
    key: &Key,
) -> Result<(), Parked> {
    let about = |decision: &Decision| matches!(decision.about, About::Limit | About::Confidence);
    let asked = court.decisions.iter().any(|decision| about(decision) && decision.answer.is_none());
    // Other endings either are final or have decisions of their own.
    let offers = ending.reason == Reason::ConfidenceLow || ending.reason.outcome() == Some(Outcome::Halted);
    if !offers || asked {
        return Ok(());
    }
    let open: Vec<String> = court.findings.iter().filter(|f| f.status.is_open()).map(headline).collect();
    let left = if open.is_empty() { String::new() } else { format!("; open: {}", open.join("; ")) };
    let question = format!("{} ({}){left}", ending.reason.row().says, ending.detail);
    let id = court.next_decision_id();
    let decision = match ending.reason {
        Reason::ConfidenceLow => Decision::confidence(id, question),
        _ => Decision::limit(id, question),
    };
    post(host, court, &key.child("ask"), decision).await
}

/// Applies what the user sent since the last read.
pub(super) async fn look(host: &dyn Host, court: &mut Court, parent: &Key) -> Result<(), Parked> {
    let said = host.perform(parent.child("inbox"), ReadInbox {}).await?;
    apply(host, court, said.requests);
    Ok(())
}

/// Parks with this ending until the user sends something.
pub(super) async fn wait(host: &dyn Host, court: &mut Court, ending: Ending) -> Result<(), Parked> {
    let outside = ending.reason == Reason::Environment;
    let said = host.perform(Key::wait(), WaitForUser { ending }).await?;
    if outside {
        // If the user continues after an environment failure, it is fixed: every agent gets another chance.
        court.spent.failing.clear();
    }
    apply(host, court, said.requests);
    Ok(())
}

pub(super) fn apply(host: &dyn Host, court: &mut Court, requests: Vec<Request>) {
    for request in requests {
        match request {
            Request::Resume => {}
            Request::Say(remark) => remember(host, court, remark),
            Request::Answer { decision, answer } => answered(host, court, &decision, answer),
            Request::Amend { finding, was, change } => amend::amend(host, court, finding, was, change),
            Request::Add { severity, description, quote } => {
                amend::add(host, court, severity, description, quote);
            }
        }
    }
}

/// Remembers a remark for all later briefs. Their room is limited, so the oldest remarks are dropped.
fn remember(host: &dyn Host, court: &mut Court, remark: Remark) {
    const ROOM: usize = 4_000;
    // A remark in a tracker may be read more than once.
    if court.said.contains(&remark) {
        return;
    }
    court.said.push(remark);
    let length = |said: &[Remark]| said.iter().map(|remark| remark.text.chars().count()).sum::<usize>();
    // The newest remark always stays, however long it is.
    while court.said.len() > 1 && length(&court.said) > ROOM {
        let oldest = court.said.remove(0);
        let text =
            format!("too much was said for a brief; agents are no longer told: {}", cut(&oldest.text, 80));
        host.note(Event::Warned { text });
    }
}

fn answered(host: &dyn Host, court: &mut Court, id: &DecisionId, answer: Answer) {
    // An answer counts only for an open decision that offers it; a second answer must not undo the first.
    let open =
        court.decisions.iter_mut().find(|d| d.id == *id && d.answer.is_none() && d.allows(&answer.choice));
    let Some(decision) = open else {
        let text = format!("the answer `{}` to {id} fits no open decision and was left aside", answer.choice);
        host.note(Event::Warned { text });
        return;
    };
    decision.answer = Some(answer.clone());
    let about = decision.about.clone();
    host.note(Event::DecisionAnswered { decision: id.clone(), answer: answer.clone() });
    if !answer.note.is_empty() {
        // The note of an answer is for agents, too: it often says how to repair the finding.
        remember(host, court, Remark::new(answer.note.clone()));
    }
    match (about, answer.key()) {
        (About::Blocked { finding }, Some(ChoiceKey::Retry)) => retry(host, court, finding),
        (About::Disputed { finding }, Some(ChoiceKey::Uphold)) => {
            court.accepted = false;
            court.iteration = 0;
            // A new iteration counter, since the earlier iterations had no chance to repair this finding.
            court.move_to(host, finding, by_user(Status::Open, "a person upholds it"));
        }
        (About::Blocked { finding } | About::Disputed { finding }, Some(ChoiceKey::Dismiss)) => {
            let to = Status::Dismissed { why: Dismissal::Person };
            court.move_to(host, finding, by_user(to, &because(&answer)));
            // The dismissed finding may be the only one that kept the last pass from being dry.
            court.look_again_at_the_pass();
        }
        (About::Blocked { finding } | About::Disputed { finding }, _) => {
            let to = Status::Deferred { why: Deferral::Person };
            court.move_to(host, finding, by_user(to, &because(&answer)));
        }
        (About::Patch { findings, .. }, _) => judged(host, court, id, findings, &answer),
        (About::Strayed { strays }, choice) => {
            court.strays.answered(strays, choice == Some(ChoiceKey::Restore))
        }
        (About::Session { .. }, Some(ChoiceKey::Fixers)) => {
            court.accepted = false;
            court.iteration = 0;
            // From now on fixers repair, even if the session comes back later.
            court.session_over = true;
        }
        // Reviews do not ask about loops; sessions do.
        (About::Loop, _) => {}
        (About::Confidence, Some(ChoiceKey::More)) => {
            court.accepted = false;
            court.held_for_confidence = true;
            // A dry pass would end the run at once again.
            court.last_pass.dry = false;
            court.spent.grants += 1;
        }
        (About::Limit, Some(ChoiceKey::More)) => {
            court.accepted = false;
            // With new limits agents that had failed get another chance as well.
            court.spent.failing.clear();
            court.spent.grants += 1;
            court.spent.failures_in_a_row = 0;
            court.iteration = 0;
            court.degraded = 0;
        }
        (About::Limit | About::Confidence | About::Session { .. }, _) => {
            accept(host, court, &because(&answer))
        }
    }
}

/// Warns about remarks that arrived after the last brief, so that no agent gets them.
pub(super) fn note_unheard(host: &dyn Host, said: &[Remark]) {
    for remark in said {
        let text = format!("this was said too late for any agent to be told: {}", cut(&remark.text, 200));
        host.note(Event::Warned { text });
    }
}

/// Withdraws the questions that the end of the run has made irrelevant.
pub(super) fn withdraw(host: &dyn Host, court: &mut Court) {
    for decision in court.decisions.iter_mut().filter(|decision| decision.answer.is_none()) {
        let answer = Answer::withdrawn("the run has ended");
        decision.answer = Some(answer.clone());
        host.note(Event::DecisionAnswered { decision: decision.id.clone(), answer });
    }
}

/// Applies the user's answer about a patch.
fn judged(host: &dyn Host, court: &mut Court, id: &DecisionId, findings: Vec<FindingId>, answer: &Answer) {
    let choice = answer.key();
    let (to, note) = match choice {
        Some(ChoiceKey::Approve) => (Status::Assigned, String::from("a person approved its patch")),
        Some(ChoiceKey::Reject) => {
            (Status::Open, format!("a person rejected its patch: {}", because(answer)))
        }
        Some(ChoiceKey::Dismiss) => (Status::Dismissed { why: Dismissal::Person }, because(answer)),
        _ => (Status::Deferred { why: Deferral::Person }, because(answer)),
    };
    if choice == Some(ChoiceKey::Approve) {
        court.pending.iter_mut().filter(|pending| pending.decision == *id).for_each(|it| it.approved = true);
    } else {
        // A patch that is not approved is dropped; a fixer makes a new one.
        court.pending.retain(|pending| pending.decision != *id);
    }
    if matches!(choice, Some(ChoiceKey::Approve | ChoiceKey::Reject)) {
        court.accepted = false;
        court.iteration = 0;
    }
    for finding in findings {
        // The user may have settled the finding in the tracker meanwhile.
        let waits = Status::Blocked { decision: id.clone() };
        if court.finding(finding).is_some_and(|f| f.status == waits) {
            court.move_to(host, finding, by_user(to.clone(), &note));
        }
    }
    court.look_again_at_the_pass();
}

fn retry(host: &dyn Host, court: &mut Court, finding: FindingId) {
    // A retry revokes an earlier acceptance.
    court.accepted = false;
    court.iteration = 0;
    court.move_to(host, finding, by_user(Status::Open, "a person wants another try"));
}

fn accept(host: &dyn Host, court: &mut Court, note: &str) {
    court.accepted = true;
    let left: Vec<FindingId> = court
        .findings
        .iter()
        .filter(|f| f.status.is_open() || matches!(f.status, Status::Blocked { .. }))
        .map(|f| f.id)
        .collect();
    for id in left {
        court.move_to(host, id, by_user(Status::Deferred { why: Deferral::Person }, note));
    }
}

fn by_user(to: Status, note: &str) -> Transition {
    Transition::new(to, Cause::User, note)
}

fn because(answer: &Answer) -> String {
    if answer.note.is_empty() { String::from("a person said so") } else { answer.note.clone() }
}
