//! How the run of a loop ends or parks when its session is released.
//!
//! | released because | the run |
//! | --- | --- |
//! | it is done | finished, resolved (`goal_met`) |
//! | the user released it | finished, cancelled (`abandoned`) |
//! | it is blocked, or its client would have ended the turn | parked, waiting (`blocked`) |
//! | refusals, failures or its time are used up | parked, halted (`rounds`, `failures`, `runtime`) |
//! | it was inactive for too long | parked, stopped |
//! | its run had ended before | as it was |
//!
//! A parked loop asks the user whether it is to continue, and a finished one asks nothing.
//!
//! A review waits for its session with a question that is open from the beginning. When the session is released without having
//! finished, [`ReviewRelease`] says so in that question and in the run's state: until then both say that a session works on it.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    runs::{
        kinds::WorkflowSummary,
        types::{RunEvent, RunSummary},
    },
    session::{ReleaseReason, SessionTally, order::SessionSummary, questions},
};
use tribunal_engine::{
    ids::{DecisionId, FindingId},
    limits::Cost,
    reason::{RunEnding, RunOutcome, RunReason},
};

/// The release of a session that worked on a loop.
#[derive(Clone, Debug)]
pub struct LoopRelease<'a> {
    pub reason: ReleaseReason,
    pub detail: &'a str,
    pub tally: &'a SessionTally,
    /// For how long the session was held.
    pub elapsed_ms: u64,
}

impl ReleaseReason {
    /// Returns how the run of a loop ends or parks; `None` if it had ended before.
    fn loop_ending(self, detail: &str) -> Option<RunEnding> {
        let detail_suffix = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        let phrase = || format!("{}{detail_suffix}", self.as_phrase());
        let (reason, ending_detail) = match self {
            // Tribunal has not checked it, so the summary says whose word it is.
            ReleaseReason::Complete => (RunReason::GoalMet, "the session says that it is done".to_string()),
            ReleaseReason::Blocked | ReleaseReason::ClientCap => (RunReason::Blocked, phrase()),
            ReleaseReason::TimedOut => (RunReason::Runtime, phrase()),
            ReleaseReason::Refusals => (RunReason::Rounds, phrase()),
            ReleaseReason::Failures => (RunReason::Failures, detail.to_string()),
            ReleaseReason::Stale => (RunReason::Stopped, phrase()),
            ReleaseReason::Person => (RunReason::Abandoned, detail.to_string()),
            ReleaseReason::Over => return None,
        };
        Some(RunEnding::new(reason, ending_detail))
    }

    /// Whether the run of a loop asks the user how to proceed.
    pub fn asks_user(self) -> bool {
        self.loop_ending("").is_some_and(|ending| !is_final(ending.reason))
    }
}

/// Whether a loop that ends with this reason cannot continue.
fn is_final(reason: RunReason) -> bool {
    matches!(reason.outcome(), Some(RunOutcome::Resolved | RunOutcome::Cancelled))
}

impl LoopRelease<'_> {
    /// Lists the events that end or park the run of the loop, with the question if there is one.
    pub fn list_run_events(&self, decision_id: DecisionId) -> Vec<RunEvent> {
        let Some(RunEnding { reason, detail, left }) = self.reason.loop_ending(self.detail) else { return Vec::new() };
        let result =
            SessionSummary { refusals: self.tally.total, tools: self.tally.tools, released: Some(self.reason) };
        let summary = RunSummary {
            outcome: reason.outcome(),
            reason,
            detail,
            result: WorkflowSummary::Session(result),
            // What the session used is between the user and the client.
            cost: Cost(0),
            notional: Cost(0),
            tokens: 0,
            elapsed_ms: self.elapsed_ms,
            left,
            causes: Vec::new(),
        };
        if is_final(reason) {
            return vec![RunEvent::RunFinished(summary)];
        }
        let decision = questions::ask_about_loop(decision_id, self.describe_question());
        vec![RunEvent::DecisionPosted { decision }, RunEvent::RunParked(summary)]
    }

    fn describe_question(&self) -> String {
        let detail_suffix = if self.detail.is_empty() { String::new() } else { format!(" ({})", self.detail) };
        format!("the session was released: {}{detail_suffix}. Resume the loop?", self.reason.as_phrase())
    }
}

/// The release of a session that was to repair the findings of a review.
#[derive(Clone, Debug)]
pub struct ReviewRelease<'a> {
    pub reason: ReleaseReason,
    pub detail: &'a str,
}

impl ReviewRelease<'_> {
    /// Whether the review has to tell the user. It is over otherwise, or the user released the session.
    pub fn concerns_user(&self) -> bool {
        !matches!(self.reason, ReleaseReason::Complete | ReleaseReason::Over | ReleaseReason::Person)
    }

    /// Returns how the run waits from now on. `parked` is how it waited for the session.
    pub fn park_review(&self, parked: RunSummary) -> RunSummary {
        // A session that ran out of time halts the run like a limit; what else it needs, only the user has.
        let reason = match self.reason {
            ReleaseReason::TimedOut => RunReason::Runtime,
            _ => RunReason::Blocked,
        };
        RunSummary { outcome: reason.outcome(), reason, detail: self.describe_release(), ..parked }
    }

    /// Says that the session was released, and why.
    pub fn describe_release(&self) -> String {
        let detail_suffix = if self.detail.is_empty() { String::new() } else { format!(" ({})", self.detail) };
        format!("the session was released: {}{detail_suffix}", self.reason.as_phrase())
    }
}

/// Returns the question about a session that was released. `release_text` says why it was.
pub fn describe_session_question(release_text: &str, findings: &[FindingId]) -> String {
    let finding_names: Vec<String> = findings.iter().map(ToString::to_string).collect();
    format!("{release_text}. Who should fix {}?", finding_names.join(", "))
}

/// Returns the summary of a loop that had parked and that the user has ended for good.
pub fn abandon_loop(parked: &RunSummary) -> RunSummary {
    let reason = RunReason::Abandoned;
    RunSummary { outcome: reason.outcome(), reason, detail: String::new(), left: None, ..parked.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_REASONS: [ReleaseReason; 9] = [
        ReleaseReason::Complete,
        ReleaseReason::Blocked,
        ReleaseReason::TimedOut,
        ReleaseReason::Refusals,
        ReleaseReason::Failures,
        ReleaseReason::ClientCap,
        ReleaseReason::Over,
        ReleaseReason::Person,
        ReleaseReason::Stale,
    ];

    fn release_events(reason: ReleaseReason) -> Vec<RunEvent> {
        let tally = SessionTally { refusals: 1, total: 3, tools: 5, ..SessionTally::default() };
        let release = LoopRelease { reason, detail: "why", tally: &tally, elapsed_ms: 7 };
        release.list_run_events(DecisionId::new("D2"))
    }

    #[test]
    fn a_release_ends_the_run_of_a_loop_as_the_table_says() {
        let describe_events = |reason| {
            let events = release_events(reason);
            let describe_event = |event: &RunEvent| match event {
                RunEvent::RunFinished(summary) => format!("finished {:?} {}", summary.outcome, summary.reason),
                RunEvent::RunParked(summary) => format!("parked {:?} {}", summary.outcome, summary.reason),
                RunEvent::DecisionPosted { decision } => decision.id.to_string(),
                other_event => panic!("{other_event:?}"),
            };
            events.iter().map(describe_event).collect::<Vec<_>>().join(", ")
        };
        let expected = [
            "finished Some(Resolved) goal_met",
            "D2, parked Some(Waiting) blocked",
            "D2, parked Some(Halted) runtime",
            "D2, parked Some(Halted) rounds",
            "D2, parked Some(Halted) failures",
            "D2, parked Some(Waiting) blocked",
            "",
            "finished Some(Cancelled) abandoned",
            "D2, parked None stopped",
        ];
        assert_eq!(ALL_REASONS.map(describe_events), expected);
        for reason in ALL_REASONS {
            assert_eq!(reason.asks_user(), release_events(reason).len() == 2, "{reason:?}");
        }
    }

    #[test]
    fn a_review_says_who_let_go_of_its_session_and_why() {
        let events = release_events(ReleaseReason::Blocked);
        let [_, RunEvent::RunParked(parked)] = events.as_slice() else { panic!("{events:?}") };
        let in_session = RunSummary { reason: RunReason::InSession, ..parked.clone() };
        let release = |reason, detail| ReviewRelease { reason, detail };
        let blocked = release(ReleaseReason::Blocked, "no key");
        assert_eq!(
            describe_session_question(&blocked.describe_release(), &[FindingId(1), FindingId(3)]),
            "the session was released: it says that only you can continue (no key). Who should fix F1, F3?"
        );
        let summary = blocked.park_review(in_session.clone());
        assert_eq!((summary.reason, summary.outcome), (RunReason::Blocked, Some(RunOutcome::Waiting)));
        assert_eq!(summary.detail, "the session was released: it says that only you can continue (no key)");
        let timed_out = release(ReleaseReason::TimedOut, "").park_review(in_session);
        assert_eq!((timed_out.reason, timed_out.outcome), (RunReason::Runtime, Some(RunOutcome::Halted)));
        let concerned = ALL_REASONS.map(|reason| release(reason, "").concerns_user());
        assert_eq!(concerned, [false, true, true, true, true, true, false, false, true]);
    }

    #[test]
    fn the_summary_counts_what_the_session_did_and_the_question_says_why() {
        let events = release_events(ReleaseReason::Blocked);
        let [RunEvent::DecisionPosted { decision }, RunEvent::RunParked(parked)] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!(
            decision.question,
            "the session was released: it says that only you can continue (why). Resume the loop?"
        );
        assert_eq!(parked.detail, "it says that only you can continue (why)");
        let released = Some(ReleaseReason::Blocked);
        assert_eq!(parked.result, WorkflowSummary::Session(SessionSummary { refusals: 3, tools: 5, released }));
        let abandoned = abandon_loop(parked);
        assert_eq!((abandoned.outcome, abandoned.elapsed_ms), (Some(RunOutcome::Cancelled), 7));
        assert_eq!((abandoned.result, abandoned.detail), (parked.result.clone(), String::new()));
    }
}
