//! Decides the next stage from the state of the review alone.
//!
//! The first row that fits applies:
//!
//! | accepted | round | open | blocked | fixing | iterations left | dry, or tier 0 | confidence too low | rounds left | next |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | yes | | 0 | 0 | | | | | | end: accepted |
//! | | 0 | | | | | | | | review round 1 |
//! | | | | > 0 | off | | | | | end: blocked |
//! | | | > 0 | 0 | off | | | | | end: review only |
//! | | | 0 | 0 | off | | | yes | | end: confidence low |
//! | | | 0 | 0 | off | | | no | | end: goal met |
//! | | | > 0 | | on | yes | | | | fix |
//! | | | > 0 | | on | no | | | | end: fix iterations |
//! | | | 0 | 0 | | | yes | yes | | end: confidence low |
//! | | | 0 | 0 | | | yes | no | | end: goal met |
//! | | | 0 | > 0 | | | yes | | | end: blocked |
//! | | | 0 | | | | no | | yes | review the next round |
//! | | | 0 | > 0 | | | no | | no | end: blocked |
//! | | | 0 | 0 | | | no | | no | end: rounds |
//!
//! A patch that waits for approval (`approve: each`) ends the run as blocked if nothing is open. A stray edit that the user
//! has not answered for ends it as blocked instead of goal met and review only.
//!
//! The confidence is too low only if the settings ask for one (`target_confidence`).
//!
//! The table is the oracle of a property test.

use alloc::{format, string::String};

use crate::{
    counts::Counts,
    finding::Finding,
    reason::{Ending, Reason},
    review::Court,
    settings::Settings,
    text::count,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Review { round: u32 },
    Fix { iteration: u32 },
    End(Ending),
}

pub fn next(court: &Court, settings: &Settings) -> Next {
    let next = reckoned(court, settings);
    // Other endings wait for the user anyway, who sees the question about the stray edits then.
    let good = |ending: &Ending| matches!(ending.reason, Reason::GoalMet | Reason::ReviewOnly);
    match (&next, court.unanswered_strays()) {
        (Next::End(ending), strays @ 1..) if good(ending) => {
            end(Reason::Blocked, format!("{} changed past the copies", count(strays, "file")))
        }
        _ => next,
    }
}

fn reckoned(court: &Court, settings: &Settings) -> Next {
    let counts = Counts::of(&court.findings);
    let limits = &settings.limits;
    if court.accepted && counts.open + counts.blocked == 0 {
        return Next::End(Ending::plain(Reason::Accepted));
    }
    if court.round == 0 {
        return Next::Review { round: 1 };
    }
    if !settings.fix && counts.blocked > 0 {
        // Another pass would change nothing; only the user's decision does.
        return end(Reason::Blocked, format!("{} blocked", counts.blocked));
    }
    if counts.open > 0 {
        return match court.iteration {
            _ if !settings.fix => end(Reason::ReviewOnly, format!("{} open", counts.open)),
            done if done < limits.fix_iterations => Next::Fix { iteration: done + 1 },
            done => end(
                Reason::FixIterations,
                format!("{} open after {}", counts.open, count(done, "fix iteration")),
            ),
        };
    }
    if let patches @ 1.. = court.patches_to_approve() {
        // Another pass over a text that is about to change would only cost money.
        return end(Reason::Blocked, format!("{} to be approved", count_patches(patches)));
    }
    if !settings.fix {
        if let Some(low) = low(court, settings) {
            return end(Reason::ConfidenceLow, low);
        }
        // The text is as it was reviewed, so another pass over it would only cost money.
        return end(Reason::GoalMet, String::from("nothing is open; nothing was to be fixed"));
    }
    let good = court.last_pass.dry || settings.tier.number() == 0;
    // Each grant of the user allows as many rounds again.
    let more_rounds = court.round < limits.rounds.saturating_mul(court.spent.shares());
    match (counts.blocked, good) {
        (0, true) if let Some(low) = low(court, settings) => end(Reason::ConfidenceLow, low),
        (0, true) if !court.last_pass.dry => {
            end(Reason::GoalMet, String::from("tier 0: no second look was asked for"))
        }
        (0, true) => end(Reason::GoalMet, court.last_pass.says()),
        (0, false) | (_, false) if more_rounds => Next::Review { round: court.round + 1 },
        (0, false) => end(
            Reason::Rounds,
            // Without fixes since the pass, the pass itself was inconclusive.
            match court.tries.text == court.last_pass.text {
                true => format!("round {} showed nothing: {}", court.round, court.last_pass.lacks()),
                false => format!(
                    "the last fixes of round {} are verified but were not reviewed again",
                    court.round
                ),
            },
        ),
        (blocked, _) => end(Reason::Blocked, format!("{blocked} blocked")),
    }
}

/// Describes how far the confidence is below the target; `None` if it is not.
fn low(court: &Court, settings: &Settings) -> Option<String> {
    let target = settings.target_confidence?;
    let reached = court.confidence.as_ref()?.for_gates;
    let tier = settings.tier;
    (reached < target).then(|| format!("{reached} of {target}, counted for tier {tier}"))
}

/// Returns the trigger of the next round.
pub(super) fn trigger_of_round(court: &Court) -> Reason {
    match court.round {
        0 => Reason::Initial,
        _ if court.held_for_confidence => Reason::ConfidenceLow,
        _ if court.iteration == 0 => Reason::Recovery,
        _ => Reason::Unreviewed,
    }
}

/// Returns the trigger of the next fix iteration.
pub(super) fn trigger_of_fixes(court: &Court) -> Reason {
    let circling = |finding: &&Finding| court.tries.circling.contains(&finding.id);
    match court.findings.iter().filter(|finding| finding.status.is_open()).find(circling) {
        Some(_) => Reason::LoopDetected,
        None if court.spent.failures_in_a_row > 0 => Reason::Recovery,
        None => Reason::IssuesRemain,
    }
}

fn count_patches(patches: u32) -> String {
    if patches == 1 { String::from("1 patch is") } else { format!("{patches} patches are") }
}

fn end(reason: Reason, detail: String) -> Next {
    Next::End(Ending::new(reason, detail))
}
