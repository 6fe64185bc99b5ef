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
    finding::Severity,
    ids::FindingId,
    session::{LetGo, Work, promise::Said},
    text::{count, cut},
};

/// What the decision depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub work: Work,
    /// The id of the run, if the journal knows one.
    pub run: String,
    pub prompt: String,
    pub promise: Option<String>,
    /// How often it was sent back before.
    pub refusals: u32,
    pub max_refusals: u32,
    pub failures: u32,
    pub max_failures: u32,
    /// The open findings; if they are not known, only their number is.
    pub open: Vec<Open>,
    pub open_count: u32,
    pub run_is: Phase,
}

/// What the run itself is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It waits for this session, or there is no run, only the session.
    #[default]
    Session,
    /// Reviewers are at work.
    UnderWay,
    /// Its process ended before the run was done.
    Died,
    /// It has ended like this, or waits for something else.
    Over(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    pub id: FindingId,
    pub severity: Severity,
    pub place: String,
    pub description: String,
}

/// How often the client lets a hook refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Refusals of this turn since a tool was used.
    pub in_a_row: u32,
    /// After so many refusals the client ends the turn by itself; `None` if it never does.
    pub cap: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Free { why: LetGo, detail: String },
    Refuse(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the model reads next.
    pub reason: String,
    /// What the user sees.
    pub message: String,
    /// The open findings, most severe first.
    pub open: Vec<String>,
    /// The session had declared completion.
    pub claimed: bool,
}

/// The most open findings that are named; the rest is counted.
const NAMED: usize = 12;
const DESCRIPTION: usize = 160;

pub fn decide(standing: &Standing, answer: &str, client: Client) -> Verdict {
    // The tags are read first, because several rules below need them.
    let said = Said::in_answer(answer);
    let claimed = standing.promise.as_ref().is_some_and(|promise| said.promises(promise));
    let free = |why: LetGo, detail: &str| Verdict::Free { why, detail: detail.into() };
    // A run that has ended must never hold a session.
    if let Phase::Over(how) = &standing.run_is {
        return free(LetGo::Over, how);
    }
    // A review is judged by its findings alone: what the session says about them does not count.
    let done = match standing.work {
        Work::Review => standing.open_count == 0 && standing.run_is == Phase::Session,
        Work::Loop => standing.open_count == 0 && claimed,
    };
    if done {
        return free(LetGo::Complete, "");
    }
    // An honest way out comes before the limits, so that it is recorded as such.
    if let Some(reason) = &said.blocked {
        return free(LetGo::Blocked, reason);
    }
    if let Some(reason) = &said.timed_out {
        return free(LetGo::TimedOut, reason);
    }
    // The limit guarantees that every session can stop in the end.
    if standing.refusals >= standing.max_refusals {
        return free(LetGo::Refusals, &format!("{} of {}", standing.refusals, standing.max_refusals));
    }
    if standing.max_failures > 0 && standing.failures >= standing.max_failures {
        return free(LetGo::Failures, &format!("{} of {}", standing.failures, standing.max_failures));
    }
    // The client would end the turn without a word; allowing the stop first keeps the reason.
    if client.cap.is_some_and(|cap| client.in_a_row + 1 >= cap) {
        let row = count(client.in_a_row, "refusal");
        return free(LetGo::ClientCap, &format!("{row} in a row and no tool was used"));
    }
    Verdict::Refuse(refusal(standing, claimed))
}

fn refusal(standing: &Standing, claimed: bool) -> Refusal {
    let mut open = standing.open.clone();
    // The ids break ties, so that the same findings always give the same text.
    open.sort_by_key(|open| (open.severity, open.id));
    let message = message(standing, &open, claimed);
    let prompt = standing.prompt.trim();
    // The original prompt comes first: the model may have lost it when the client compacted its memory.
    let reason = if prompt.is_empty() { message.clone() } else { format!("{prompt}\n\n{message}") };
    let open = open.iter().map(|open| format!("{} {}", open.id, open.severity)).collect();
    Refusal { reason, message, open, claimed }
}

/// Returns a text that only the refusal with this number contains: it identifies the refusal in a client's transcript.
pub fn refusal_mark(number: u32) -> String {
    format!("sent back {number} of")
}

fn message(standing: &Standing, open: &[Open], claimed: bool) -> String {
    let what = match standing.work {
        Work::Review => "review",
        Work::Loop => "loop",
    };
    let name = if standing.run.is_empty() { String::new() } else { format!(" {}", standing.run) };
    let number = standing.refusals + 1;
    let mark = refusal_mark(number);
    let mut text = format!("Tribunal {what}{name}: {mark} at most {}.", standing.max_refusals);
    // The model must see that its claim was checked and is wrong.
    if claimed && standing.open_count > 0 {
        text.push_str(" You said that it is done, and it is not.");
    }
    match standing.work {
        // While the run works itself, the session can only wait or resume it.
        Work::Review if standing.run_is == Phase::UnderWay => text.push_str(&format!(
            "\nReviewers are at work on it. Wait for them before you stop: tribunal log {} --follow",
            standing.run
        )),
        Work::Review if standing.run_is == Phase::Died => text.push_str(&format!(
            "\nThe review ended before it was done. Go on with it before you stop: tribunal resume {}",
            standing.run
        )),
        Work::Review => text.push_str(&still_open(standing, open)),
        Work::Loop => {}
    }
    text.push_str(&way_out(standing));
    text
}

fn still_open(standing: &Standing, open: &[Open]) -> String {
    let mut text = format!("\nStill open, most severe first ({}):", standing.open_count);
    // A review whose findings are not known has only their number.
    if open.is_empty() {
        text = format!("\n{} still open.", count(standing.open_count, "finding"));
    }
    for open in open.iter().take(NAMED) {
        let Open { id, severity, place, description } = open;
        text.push_str(&format!("\n  {id} {severity} {place}: {}", cut(description, DESCRIPTION)));
    }
    if open.len() > NAMED {
        text.push_str(&format!("\n  and {} more", open.len() - NAMED));
    }
    if !standing.run.is_empty() {
        let run = &standing.run;
        text.push_str(&format!(
            "\nRepair them in the files, then run `tribunal resume {run}`: it checks what you changed and reviews it \
             again. What you say about it changes nothing. All of them: tribunal findings {run}"
        ));
    }
    text
}

fn way_out(standing: &Standing) -> String {
    let tag = match standing.work {
        Work::Review => "review-complete",
        Work::Loop => "promise",
    };
    let mut text = String::new();
    if let Some(promise) = &standing.promise {
        text.push_str(&format!(
            "\nWhen it is done, and only if that is true, say exactly: <{tag}>{promise}</{tag}>"
        ));
    }
    // The way out is always named, so that an honest model need not invent a promise.
    text.push_str(
        "\nIf only a person can go on, say so and you may stop: <review-blocked>REASON</review-blocked>",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(id: u32, severity: Severity) -> Open {
        Open { id: FindingId(id), severity, place: format!("prd.md:{id}"), description: "it is vague".into() }
    }

    fn of_review() -> Standing {
        Standing {
            work: Work::Review,
            run: "prd-k3f9".into(),
            prompt: "Repair what the panel found in prd.md.".into(),
            promise: Some("ALL_ISSUES_RESOLVED".into()),
            max_refusals: 50,
            max_failures: 5,
            open: alloc::vec![open(1, Severity::Low), open(2, Severity::Critical)],
            open_count: 2,
            ..Standing::default()
        }
    }

    fn of_loop() -> Standing {
        Standing {
            prompt: "Make the tests pass.".into(),
            promise: Some("ALL * [PASS]".into()),
            max_refusals: 3,
            ..Standing::default()
        }
    }

    const CLIENT: Client = Client { in_a_row: 0, cap: Some(8) };

    fn why(standing: &Standing, answer: &str, client: Client) -> Option<LetGo> {
        match decide(standing, answer, client) {
            Verdict::Free { why, .. } => Some(why),
            Verdict::Refuse(_) => None,
        }
    }

    #[test]
    fn the_rules_hold_in_their_order() {
        let used_up = Standing { refusals: 50, ..of_review() };
        let failed = Standing { failures: 5, ..of_review() };
        let settled = Standing { open: Vec::new(), open_count: 0, ..of_review() };
        let under_way = Standing { run_is: Phase::UnderWay, ..settled.clone() };
        let over = Standing { run_is: Phase::Over("halted".into()), ..of_review() };
        let done = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";
        let blocked = "<review-blocked>no key</review-blocked>";
        for (standing, answer, client, expected) in [
            (&of_review(), "", CLIENT, None),
            (&of_review(), "All fixed!", CLIENT, None),
            (&of_review(), done, CLIENT, None),
            (&settled, "", CLIENT, Some(LetGo::Complete)),
            (&settled, done, CLIENT, Some(LetGo::Complete)),
            (&under_way, done, CLIENT, None),
            (&Standing { run_is: Phase::Died, ..settled.clone() }, done, CLIENT, None),
            (&over, "", CLIENT, Some(LetGo::Over)),
            (&of_review(), blocked, CLIENT, Some(LetGo::Blocked)),
            (&used_up, blocked, CLIENT, Some(LetGo::Blocked)),
            (&of_review(), "<review-timeout>5 h</review-timeout>", CLIENT, Some(LetGo::TimedOut)),
            (&used_up, done, CLIENT, Some(LetGo::Refusals)),
            (&failed, "", CLIENT, Some(LetGo::Failures)),
            (&of_review(), "", Client { in_a_row: 6, cap: Some(8) }, None),
            (&of_review(), "", Client { in_a_row: 7, cap: Some(8) }, Some(LetGo::ClientCap)),
            (&of_review(), "", Client { in_a_row: 49, cap: None }, None),
            (&of_loop(), "", CLIENT, None),
            (&of_loop(), "<promise>ALL x PASS</promise>", CLIENT, None),
            (&of_loop(), "so <promise>ALL * [PASS]</promise> it is", CLIENT, Some(LetGo::Complete)),
            (&Standing { promise: None, ..of_loop() }, "<promise></promise>", CLIENT, None),
            (&Standing { refusals: 3, ..of_loop() }, "", CLIENT, Some(LetGo::Refusals)),
        ] {
            assert_eq!(why(standing, answer, client), expected, "{standing:?} {answer:?} {client:?}");
        }
    }

    #[test]
    fn who_is_sent_back_reads_what_is_open_the_promise_and_the_way_out() {
        let reason = |standing: &Standing, answer| match decide(standing, answer, CLIENT) {
            Verdict::Refuse(refusal) => refusal.reason,
            Verdict::Free { why, .. } => panic!("let go: {why:?}"),
        };
        assert_eq!(
            reason(&of_review(), "<review-complete>ALL_ISSUES_RESOLVED</review-complete>"),
            "Repair what the panel found in prd.md.\n\n\
             Tribunal review prd-k3f9: sent back 1 of at most 50. You said that it is done, and it is not.\n\
             Still open, most severe first (2):\n  F2 critical prd.md:2: it is vague\n  F1 low prd.md:1: it is vague\n\
             Repair them in the files, then run `tribunal resume prd-k3f9`: it checks what you changed and reviews it \
             again. What you say about it changes nothing. All of them: tribunal findings prd-k3f9\n\
             When it is done, and only if that is true, say exactly: \
             <review-complete>ALL_ISSUES_RESOLVED</review-complete>\n\
             If only a person can go on, say so and you may stop: <review-blocked>REASON</review-blocked>"
        );
        assert_eq!(
            reason(&of_loop(), ""),
            "Make the tests pass.\n\nTribunal loop: sent back 1 of at most 3.\n\
             When it is done, and only if that is true, say exactly: <promise>ALL * [PASS]</promise>\n\
             If only a person can go on, say so and you may stop: <review-blocked>REASON</review-blocked>"
        );
    }

    /// A session ends within the limit, and a review is never complete with open findings.
    #[test]
    fn every_session_is_let_go_in_the_end() {
        for answer in
            ["", "no", "<review-complete>ALL_ISSUES_RESOLVED</review-complete>", "<promise>x</promise>"]
        {
            for mut standing in [of_review(), of_loop()] {
                let mut times = 0;
                let last = loop {
                    match decide(&standing, answer, Client { in_a_row: 0, cap: None }) {
                        Verdict::Refuse(_) => standing.refusals += 1,
                        Verdict::Free { why, .. } => break why,
                    }
                    times += 1;
                };
                assert!(times <= standing.max_refusals);
                assert_ne!(last, LetGo::Complete, "{answer}");
            }
        }
    }
}
