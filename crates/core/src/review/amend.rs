//! Changes of findings by the user, mostly in the tracker. They always hold; repeating one changes nothing.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    challenge::Ruled,
    decision::{About, Answer},
    effect::{Change, Was},
    event::Event,
    finding::{Cause, Deferral, Dismissal, Evidence, Finding, Severity, Status, Transition},
    host::Host,
    ids::FindingId,
    level::Goal,
    review::Court,
    text::fold,
    tracker::status,
};

pub(super) fn amend(host: &dyn Host, court: &mut Court, id: FindingId, was: Option<Was>, change: Change) {
    let Some(finding) = court.finding(id) else {
        host.note(Event::Warned { text: format!("somebody changed {id}, which does not exist; left aside") });
        return;
    };
    let (to, note) = match change {
        Change::Severity { to } => return weigh(host, court, id, was, to),
        Change::Fixed => (Status::Fixed, String::from("a person says so")),
        Change::Open => (Status::Open, String::from("a person opened it again")),
        Change::Dismissed { reason } => (Status::Dismissed { why: Dismissal::Person }, because(reason)),
        Change::Deferred { reason } => (Status::Deferred { why: Deferral::Person }, because(reason)),
    };
    // For the user an assigned finding is simply open.
    let now = if finding.status == Status::Assigned { Status::Open } else { finding.status.clone() };
    if now == to {
        return;
    }
    let stands = status(&now);
    // The user decided on an outdated status, so the change may not be what they want now.
    if let Some(was) = was.filter(|was| was.status != stands) {
        let text = format!(
            "{id} was to be {}, when it was {}; it is {stands} by now and stays so",
            to.word(),
            was.status
        );
        host.note(Event::Warned { text });
        return;
    }
    match to {
        Status::Open => {
            court.accepted = false;
            court.iteration = 0;
        }
        // A repair by hand was not reviewed, so the run needs another pass.
        Status::Fixed => {
            court.last_pass.dry = false;
            court.last_pass.changed = true;
        }
        _ => {}
    }
    court.move_to(host, id, Transition::new(to, Cause::User, note));
    settle_questions_about(host, court, id);
    court.look_again_at_the_pass();
}

/// Changes the severity of a finding, which may move it in or out of the goal.
fn weigh(host: &dyn Host, court: &mut Court, id: FindingId, was: Option<Was>, to: Severity) {
    // Setting the same severity again is not a change.
    let Some(finding) = court.finding_mut(id).filter(|finding| finding.severity != to) else { return };
    if was.is_some_and(|was| was.severity != finding.severity) {
        let text = format!("{id} was to be {to}, but is {} by now and stays so", finding.severity);
        host.note(Event::Warned { text });
        return;
    }
    // The status stays; the step in the history records the cause and the note.
    finding.severity = to;
    let now = finding.status.clone();
    let weighed = Transition::new(now.clone(), Cause::UserSeverity, format!("a person calls it {to}"));
    finding.apply(weighed, host.now());
    host.note(Event::FindingRuled { finding: id, ruled: Ruled::Person, severity: to, voices: vec![] });
    let beside = Status::Deferred { why: Deferral::Goal };
    match (host.settings().goal, to) {
        (Goal::CriticalOnly, Severity::Critical) if now == beside => {
            court.iteration = 0;
            let note = "a person calls it critical";
            court.move_to(host, id, Transition::new(Status::Open, Cause::UserSeverity, note));
        }
        // With this goal only critical findings stay open.
        (Goal::CriticalOnly, Severity::High | Severity::Medium | Severity::Low) if now.is_open() => {
            let note = "the goal asks for critical findings only";
            court.move_to(host, id, Transition::new(beside, Cause::OutsideGoal, note));
        }
        _ => {}
    }
}

/// Withdraws questions about a finding that the user has settled by other means.
fn settle_questions_about(host: &dyn Host, court: &mut Court, id: FindingId) {
    for decision in court.decisions.iter_mut().filter(|decision| decision.answer.is_none()) {
        if matches!(&decision.about, About::Blocked { finding } | About::Disputed { finding } if *finding == id)
        {
            let answer = Answer::withdrawn(format!("a person settled {id} by hand"));
            decision.answer = Some(answer.clone());
            host.note(Event::DecisionAnswered { decision: decision.id.clone(), answer });
        }
    }
}

pub(super) fn add(
    host: &dyn Host,
    court: &mut Court,
    severity: Severity,
    description: String,
    quote: String,
) {
    // The same edit of the tracker may be read more than once.
    let same =
        |finding: &Finding| finding.raisers.is_empty() && fold(&finding.description) == fold(&description);
    if court.findings.iter().any(same) {
        return;
    }
    let mut finding = Finding {
        id: FindingId(court.findings.len() as u32 + 1),
        severity,
        category: "by a person".into(),
        description,
        evidence: Evidence::Quote { text: quote },
        // The quote is not grounded: the user is believed.
        place: None,
        found: None,
        suggested_fix: String::new(),
        raisers: Vec::new(),
        status: Status::Open,
        maybe_same_as: None,
        history: vec![],
    };
    finding.apply(Transition::new(Status::Open, Cause::User, "added by a person"), host.now());
    court.accepted = false;
    court.iteration = 0;
    court.findings.push(finding.clone());
    host.note(Event::FindingRaised { finding });
}

fn because(reason: String) -> String {
    if reason.is_empty() { String::from("a person said so") } else { format!("a person said: {reason}") }
}
