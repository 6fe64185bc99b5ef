//! Decides whether a session may stop.
//!
//! | the first that fits | |
//! | --- | --- |
//! | the run has an outcome, or waits for something else | allow |
//! | nothing is open, and it is a review or the promise was given | allow: complete |
//! | `<review-blocked>` | allow, for the user |
//! | `<review-timeout>` | allow, as halted |
//! | refusals or failures used up | allow |
//! | one more refusal would be the client's last | allow, for the user |
//! | else | refuse |
//!
//! The caller handles what comes before (no state, a broken or a stale one, that of another session) and always allows it.

use alloc::{format, string::String, vec::Vec};

use crate::{
    findings::finding::Severity,
    session::{ReleaseReason, SessionWork, promise::AnswerTags},
};
use tribunal_engine::{
    ids::FindingId,
    text::{format_count, truncate_chars},
};

/// What the decision depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopInput {
    pub work: SessionWork,
    /// The id of the run, if the journal knows one.
    pub run_id: String,
    pub prompt: String,
    pub promise: Option<String>,
    /// How often it was sent back before.
    pub refusals: u32,
    pub max_refusals: u32,
    pub failures: u32,
    pub max_failures: u32,
    /// The open findings; if they are not known, only their number is.
    pub open_findings: Vec<OpenFinding>,
    pub open_count: u32,
    pub run_phase: SessionRunPhase,
}

/// What the run itself is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionRunPhase {
    /// It waits for this session, or there is no run, only the session.
    #[default]
    WaitsForSession,
    /// Reviewers are at work.
    UnderWay,
    /// Its process ended before the run was done.
    Died,
    /// It has ended like this, or waits for something else.
    Ended(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFinding {
    pub id: FindingId,
    pub severity: Severity,
    pub place: String,
    pub description: String,
}

/// How often the client lets a hook refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientTurn {
    /// Refusals of this turn since a tool was used.
    pub in_a_row: u32,
    /// After so many refusals the client ends the turn by itself; `None` if it never does.
    pub max_in_a_row: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopVerdict {
    Allow { reason: ReleaseReason, detail: String },
    Refuse(StopRefusal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRefusal {
    /// What the model reads next.
    pub model_prompt: String,
    /// What the user sees.
    pub user_message: String,
    /// The open findings, most severe first.
    pub open_findings: Vec<String>,
    /// The session had declared completion.
    pub has_claimed: bool,
}

/// The most open findings that are named; the rest is counted.
const MAX_NAMED_FINDINGS: usize = 12;
const MAX_DESCRIPTION_CHARS: usize = 160;

pub fn decide_stop(stop_input: &StopInput, answer: &str, client_turn: ClientTurn) -> StopVerdict {
    let answer_tags = AnswerTags::from_answer(answer);
    let has_claimed = stop_input.promise.as_ref().is_some_and(|promise| answer_tags.has_promised(promise));
    let allow_with = |release_reason: ReleaseReason, detail: &str| StopVerdict::Allow {
        reason: release_reason,
        detail: detail.into(),
    };
    // A run that has ended must never hold a session.
    if let SessionRunPhase::Ended(ending) = &stop_input.run_phase {
        return allow_with(ReleaseReason::Over, ending);
    }
    // A review is judged by its findings alone: what the session says about them does not count.
    let is_done = match stop_input.work {
        SessionWork::Review => stop_input.open_count == 0 && stop_input.run_phase == SessionRunPhase::WaitsForSession,
        SessionWork::Loop => stop_input.open_count == 0 && has_claimed,
    };
    if is_done {
        return allow_with(ReleaseReason::Complete, "");
    }
    // An honest way out comes before the limits, so that it is recorded as such.
    if let Some(reason) = &answer_tags.blocked {
        return allow_with(ReleaseReason::Blocked, reason);
    }
    if let Some(reason) = &answer_tags.timed_out {
        return allow_with(ReleaseReason::TimedOut, reason);
    }
    // The limit guarantees that every session can stop in the end.
    if stop_input.refusals >= stop_input.max_refusals {
        return allow_with(ReleaseReason::Refusals, &format!("{} of {}", stop_input.refusals, stop_input.max_refusals));
    }
    if stop_input.max_failures > 0 && stop_input.failures >= stop_input.max_failures {
        return allow_with(ReleaseReason::Failures, &format!("{} of {}", stop_input.failures, stop_input.max_failures));
    }
    // The client would end the turn without a word; allowing the stop first keeps the reason.
    if client_turn.max_in_a_row.is_some_and(|turn_cap| client_turn.in_a_row + 1 >= turn_cap) {
        let refusals_in_a_row = format_count(client_turn.in_a_row, "refusal");
        return allow_with(ReleaseReason::ClientCap, &format!("{refusals_in_a_row} in a row without a tool call"));
    }
    StopVerdict::Refuse(build_refusal(stop_input, has_claimed))
}

fn build_refusal(stop_input: &StopInput, has_claimed: bool) -> StopRefusal {
    let mut open_findings = stop_input.open_findings.clone();
    // The ids break ties, so that the same findings always give the same text.
    open_findings.sort_by_key(|open_finding| (open_finding.severity, open_finding.id));
    let user_message = refusal_message(stop_input, &open_findings, has_claimed);
    let prompt = stop_input.prompt.trim();
    // Everything that the model must know is in this text, also the prompt: clients do not show it `user_message`.
    let model_prompt = if prompt.is_empty() { user_message.clone() } else { format!("{prompt}\n\n{user_message}") };
    let finding_texts =
        open_findings.iter().map(|open_finding| format!("{} {}", open_finding.id, open_finding.severity)).collect();
    StopRefusal { model_prompt, user_message, open_findings: finding_texts, has_claimed }
}

/// Returns a text that only the refusal with this number contains: it identifies the refusal in a client's transcript.
pub fn refusal_mark(refusal_number: u32) -> String {
    format!("sent back {refusal_number} of")
}

fn refusal_message(stop_input: &StopInput, open_findings: &[OpenFinding], has_claimed: bool) -> String {
    let work_name = match stop_input.work {
        SessionWork::Review => "review",
        SessionWork::Loop => "loop",
    };
    let run_name = if stop_input.run_id.is_empty() { String::new() } else { format!(" {}", stop_input.run_id) };
    let refusal_number = stop_input.refusals + 1;
    let mark = refusal_mark(refusal_number);
    let mut rendered = format!("Tribunal {work_name}{run_name}: {mark} at most {}.", stop_input.max_refusals);
    // The model must see that its claim was checked and is wrong.
    if has_claimed && stop_input.open_count > 0 {
        rendered.push_str(" You said that it is done, but it is not.");
    }
    match stop_input.work {
        // While the run works itself, the session can only wait or resume it.
        SessionWork::Review if stop_input.run_phase == SessionRunPhase::UnderWay => rendered.push_str(&format!(
            "\nReviewers are working on it. Wait for them before you stop: `tribunal log {} --follow`",
            stop_input.run_id
        )),
        SessionWork::Review if stop_input.run_phase == SessionRunPhase::Died => rendered.push_str(&format!(
            "\nThe review crashed before it was done. Resume it before you stop: `tribunal resume {}`",
            stop_input.run_id
        )),
        SessionWork::Review => rendered.push_str(&open_findings_text(stop_input, open_findings)),
        SessionWork::Loop => {}
    }
    rendered.push_str(&way_out_text(stop_input));
    rendered
}

fn open_findings_text(stop_input: &StopInput, findings: &[OpenFinding]) -> String {
    let mut rendered = format!("\nStill open, most severe first ({}):", stop_input.open_count);
    // A review whose findings are not known has only their number.
    if findings.is_empty() {
        rendered = format!("\n{} still open.", format_count(stop_input.open_count, "finding"));
    }
    for finding in findings.iter().take(MAX_NAMED_FINDINGS) {
        let OpenFinding { id, severity, place, description } = finding;
        rendered
            .push_str(&format!("\n  {id} {severity} {place}: {}", truncate_chars(description, MAX_DESCRIPTION_CHARS)));
    }
    if findings.len() > MAX_NAMED_FINDINGS {
        rendered.push_str(&format!("\n  and {} more", findings.len() - MAX_NAMED_FINDINGS));
    }
    if !stop_input.run_id.is_empty() {
        let run_id = &stop_input.run_id;
        rendered.push_str(&format!(
            "\nFix them in the files, then run `tribunal resume {run_id}`: it checks your changes and reviews them again. \
             Saying that they are fixed is not enough. To list all findings, run `tribunal findings {run_id}`"
        ));
    }
    rendered
}

fn way_out_text(stop_input: &StopInput) -> String {
    let mut rendered = String::new();
    if let Some(promise) = &stop_input.promise {
        let tagged_promise = stop_input.work.tag_promise(promise);
        rendered.push_str(&format!("\nWhen it is done, and only then, say exactly: {tagged_promise}"));
    }
    // The way out is always named, so that an honest model need not invent a promise.
    rendered
        .push_str("\nIf only the user can continue, say so and you may stop: <review-blocked>REASON</review-blocked>");
    rendered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_finding(id: u32, severity: Severity) -> OpenFinding {
        OpenFinding { id: FindingId(id), severity, place: format!("prd.md:{id}"), description: "it is vague".into() }
    }

    fn review_input() -> StopInput {
        StopInput {
            work: SessionWork::Review,
            run_id: "prd-k3f9".into(),
            prompt: "Repair what the panel found in prd.md.".into(),
            promise: Some("ALL_ISSUES_RESOLVED".into()),
            max_refusals: 50,
            max_failures: 5,
            open_findings: alloc::vec![open_finding(1, Severity::Low), open_finding(2, Severity::Critical)],
            open_count: 2,
            ..StopInput::default()
        }
    }

    fn loop_input() -> StopInput {
        StopInput {
            prompt: "Make the tests pass.".into(),
            promise: Some("ALL * [PASS]".into()),
            max_refusals: 3,
            ..StopInput::default()
        }
    }

    const FRESH_TURN: ClientTurn = ClientTurn { in_a_row: 0, max_in_a_row: Some(8) };

    fn release_reason(stop_input: &StopInput, answer: &str, client: ClientTurn) -> Option<ReleaseReason> {
        match decide_stop(stop_input, answer, client) {
            StopVerdict::Allow { reason, .. } => Some(reason),
            StopVerdict::Refuse(_) => None,
        }
    }

    #[test]
    fn the_rules_hold_in_their_order() {
        let refusals_used_up = StopInput { refusals: 50, ..review_input() };
        let failures_used_up = StopInput { failures: 5, ..review_input() };
        let nothing_open = StopInput { open_findings: Vec::new(), open_count: 0, ..review_input() };
        let under_way = StopInput { run_phase: SessionRunPhase::UnderWay, ..nothing_open.clone() };
        let ended = StopInput { run_phase: SessionRunPhase::Ended("halted".into()), ..review_input() };
        let completion = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";
        let blocked = "<review-blocked>no key</review-blocked>";
        for (stop_input, answer, client, expected) in [
            (&review_input(), "", FRESH_TURN, None),
            (&review_input(), "All fixed!", FRESH_TURN, None),
            (&review_input(), completion, FRESH_TURN, None),
            (&nothing_open, "", FRESH_TURN, Some(ReleaseReason::Complete)),
            (&nothing_open, completion, FRESH_TURN, Some(ReleaseReason::Complete)),
            (&under_way, completion, FRESH_TURN, None),
            (&StopInput { run_phase: SessionRunPhase::Died, ..nothing_open.clone() }, completion, FRESH_TURN, None),
            (&ended, "", FRESH_TURN, Some(ReleaseReason::Over)),
            (&review_input(), blocked, FRESH_TURN, Some(ReleaseReason::Blocked)),
            (&refusals_used_up, blocked, FRESH_TURN, Some(ReleaseReason::Blocked)),
            (&review_input(), "<review-timeout>5 h</review-timeout>", FRESH_TURN, Some(ReleaseReason::TimedOut)),
            (&refusals_used_up, completion, FRESH_TURN, Some(ReleaseReason::Refusals)),
            (&failures_used_up, "", FRESH_TURN, Some(ReleaseReason::Failures)),
            (&review_input(), "", ClientTurn { in_a_row: 6, max_in_a_row: Some(8) }, None),
            (&review_input(), "", ClientTurn { in_a_row: 7, max_in_a_row: Some(8) }, Some(ReleaseReason::ClientCap)),
            (&review_input(), "", ClientTurn { in_a_row: 49, max_in_a_row: None }, None),
            (&loop_input(), "", FRESH_TURN, None),
            (&loop_input(), "<promise>ALL x PASS</promise>", FRESH_TURN, None),
            (&loop_input(), "so <promise>ALL * [PASS]</promise> it is", FRESH_TURN, Some(ReleaseReason::Complete)),
            (&StopInput { promise: None, ..loop_input() }, "<promise></promise>", FRESH_TURN, None),
            (&StopInput { refusals: 3, ..loop_input() }, "", FRESH_TURN, Some(ReleaseReason::Refusals)),
        ] {
            assert_eq!(release_reason(stop_input, answer, client), expected, "{stop_input:?} {answer:?} {client:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_open_findings_the_promise_and_the_way_out() {
        let model_prompt = |stop_input: &StopInput, answer| match decide_stop(stop_input, answer, FRESH_TURN) {
            StopVerdict::Refuse(refusal) => refusal.model_prompt,
            StopVerdict::Allow { reason: why, .. } => panic!("let go: {why:?}"),
        };
        assert_eq!(
            model_prompt(&review_input(), "<review-complete>ALL_ISSUES_RESOLVED</review-complete>"),
            "Repair what the panel found in prd.md.\n\n\
             Tribunal review prd-k3f9: sent back 1 of at most 50. You said that it is done, but it is not.\n\
             Still open, most severe first (2):\n  F2 critical prd.md:2: it is vague\n  F1 low prd.md:1: it is vague\n\
             Fix them in the files, then run `tribunal resume prd-k3f9`: it checks your changes and reviews them again. \
             Saying that they are fixed is not enough. To list all findings, run `tribunal findings prd-k3f9`\n\
             When it is done, and only then, say exactly: \
             <review-complete>ALL_ISSUES_RESOLVED</review-complete>\n\
             If only the user can continue, say so and you may stop: <review-blocked>REASON</review-blocked>"
        );
        assert_eq!(
            model_prompt(&loop_input(), ""),
            "Make the tests pass.\n\nTribunal loop: sent back 1 of at most 3.\n\
             When it is done, and only then, say exactly: <promise>ALL * [PASS]</promise>\n\
             If only the user can continue, say so and you may stop: <review-blocked>REASON</review-blocked>"
        );
    }

    /// A session ends within the limit, and a review is never complete with open findings.
    #[test]
    fn every_session_may_stop_in_the_end() {
        for answer in ["", "no", "<review-complete>ALL_ISSUES_RESOLVED</review-complete>", "<promise>x</promise>"] {
            for mut stop_input in [review_input(), loop_input()] {
                let mut refusal_count = 0;
                let last = loop {
                    match decide_stop(&stop_input, answer, ClientTurn { in_a_row: 0, max_in_a_row: None }) {
                        StopVerdict::Refuse(_) => stop_input.refusals += 1,
                        StopVerdict::Allow { reason, .. } => break reason,
                    }
                    refusal_count += 1;
                };
                assert!(refusal_count <= stop_input.max_refusals);
                assert_ne!(last, ReleaseReason::Complete, "{answer}");
            }
        }
    }
}
