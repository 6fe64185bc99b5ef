//! The review loop: panel, merge, fix, repeated until an outcome.
//!
//! The workflow is a thin driver: [`mod@next_stage`] decides the next stage from the state alone, [`panel`] and [`fix`] run one
//! stage each, [`user_requests`] applies what the user sent. A boundary follows every stage, so that resuming replays at
//! most one stage.

use alloc::{format, string::String};

use crate::{
    effect::{Freeze, FreezeOutcome},
    event::Event,
    host::{Host, Parked, boundary},
    ids::Key,
    limits::{Left, ReviewProgress, guard},
    reason::{Ending, Outcome, Reason},
};

mod amend;
mod challenge;
mod confidence;
mod consult;
mod fix;
mod frozen;
mod land;
mod moves;
mod next;
mod panel;
mod people;
mod publish;
mod session;
mod signs;
mod stage;
pub(crate) mod state;
mod strays;
mod tries;

pub use next::{Next, next};
pub use signs::Sheet;
use stage::StageExit;
pub use state::{Court, Fix, Pass, Pending, Strays};
pub use tries::Tries;

/// Name and version in `run_started`: a journal of another version is refused, never guessed at.
pub const WORKFLOW: &str = "review";
pub const VERSION: u32 = 1;

/// Runs a review from a state (a new one, or that of the last boundary) to its end.
pub async fn review(host: &dyn Host, mut court: Court) -> Result<Ending, Parked> {
    loop {
        let key = match stage(host, &mut court).await? {
            Stage::Over(ending) => return Ok(ending),
            Stage::Done(key) => key,
        };
        boundary(host, key, &court).await?;
    }
}

/// What one stage led to.
enum Stage {
    /// The run continues behind a boundary with this key.
    Done(Key),
    Over(Ending),
}

/// Where an ending comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndingFrom {
    /// It follows from the state alone, so it may no longer hold when the state has changed.
    State,
    /// It happened in a stage.
    Stage,
}

async fn stage(host: &dyn Host, court: &mut Court) -> Result<Stage, Parked> {
    // Waiting has its own stretch: everything about the run may be changed meanwhile.
    if let Some(ending) = court.waiting.take() {
        people::wait(host, court, ending).await?;
        return Ok(Stage::Done(Key::wait()));
    }
    // Files are restored before the next stage, which would otherwise review or change the stray edits.
    if court.has_strays_due() {
        strays::restore(host, court).await?;
        return Ok(Stage::Done(Key::new("restore")));
    }
    let (key, done) = match step(host, court) {
        Next::Review { round } => (Key::round(round), panel::review_round(host, court, round).await),
        Next::Fix { iteration } => {
            (Key::fix_iteration(court.round, iteration), repair(host, court, iteration).await)
        }
        Next::End(ending) => return close(host, court, ending, EndingFrom::State).await,
    };
    match done {
        Ok(()) => Ok(Stage::Done(key)),
        Err(StageExit::Ended(ending)) => close(host, court, ending, EndingFrom::Stage).await,
        Err(StageExit::Parked(parked)) => Err(parked),
    }
}

/// Repairs the open findings by fixers, or by the user's open session.
async fn repair(host: &dyn Host, court: &mut Court, iteration: u32) -> Result<(), StageExit> {
    if host.settings().tasks.writing.in_session && !court.session_over {
        return session::hand_over(host, court, iteration).await;
    }
    fix::fix_iteration(host, court, iteration).await
}

/// Returns the next stage, or the end if a limit is used up.
fn step(host: &dyn Host, court: &Court) -> Next {
    let settings = host.settings();
    let next = next(court, settings);
    // A review that is done ends normally even if a limit is used up by now.
    if matches!(next, Next::End(_)) {
        return next;
    }
    match guard(&settings.limits, &court.spent, host.now().awake_ms, court.valid()) {
        Some(ending) => Next::End(ending),
        None => next,
    }
}

/// Publishes the results. A good ending ends the run; with any other the run waits for the user, who may let it continue.
async fn close(
    host: &dyn Host,
    court: &mut Court,
    mut ending: Ending,
    from: EndingFrom,
) -> Result<Stage, Parked> {
    let key = Key::end();
    if ending.reason.outcome() == Some(Outcome::Halted) {
        let progressed = ReviewProgress { rounds: court.round, iterations: court.iteration };
        let limits = &host.settings().limits;
        ending.left = Some(Left::of(limits, &court.spent, host.now().awake_ms, court.valid(), progressed));
    }
    // A run is resolved only for the text that the last pass has read.
    if ending.reason == Reason::GoalMet && court.has_moved(host, &key).await? {
        return Ok(Stage::Done(Key::new("moved")));
    }
    // These endings need no answer, so the run is over once they are published.
    let last = ending.reason == Reason::ReviewOnly || ending.reason.outcome() == Some(Outcome::Resolved);
    let heard = court.said.len();
    if last {
        people::withdraw(host, court);
        people::look(host, court, &key).await?;
    }
    people::offer(host, court, &ending, &key).await?;
    court.publish(host, &key).await?;
    // Publishing may have read an edit of the tracker in the last moment, which can reopen findings.
    let still = matches!(step(host, court), Next::End(now) if now.reason == ending.reason);
    if from == EndingFrom::State && !still {
        return Ok(Stage::Done(Key::new("edited")));
    }
    if last {
        // Remarks that arrived during the last stage can reach no agent any more.
        people::note_unheard(host, &court.said[heard.min(court.said.len())..]);
    }
    court.write_metrics(host, &key, &ending).await?;
    if last {
        return Ok(Stage::Over(ending));
    }
    court.waiting = Some(ending);
    Ok(Stage::Done(key))
}

impl Court {
    /// Checks before a run is resolved whether the subject still has the text of the last pass. If not, that pass proves
    /// nothing.
    async fn has_moved(&mut self, host: &dyn Host, parent: &Key) -> Result<bool, Parked> {
        let settings = host.settings();
        if settings.tier.number() == 0 || !settings.fix {
            // At tier 0 and without fixing the result does not claim a pass over the final text.
            return Ok(false);
        }
        let subject = self.subject(settings);
        let text = match host.perform(parent.child("look"), Freeze { subject }).await? {
            FreezeOutcome::Frozen(frozen) if Some(&frozen.hash) == self.last_pass.text.as_ref() => {
                return Ok(false);
            }
            FreezeOutcome::Frozen(_) => String::from(
                "the file was changed by somebody else after the last pass; it is not resolved yet",
            ),
            FreezeOutcome::Failed { fault } => format!("{fault}; it is not resolved yet"),
        };
        // The pass was over another text, so a further round has to look at this one.
        self.last_pass.dry = false;
        self.last_pass.changed = true;
        host.note(Event::Warned { text });
        Ok(true)
    }
}
