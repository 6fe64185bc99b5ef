//! The review loop: panel, merge, fix, again, until an outcome.
//!
//! The workflow is a thin driver: [`next`] says what comes next from the court's state alone, [`panel`] and [`fix`] do one
//! stage each, [`people`] takes in what people said. After every stage stands a boundary, so that resuming replays at most
//! one stage.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    brief::Surroundings,
    confidence::Confidence,
    decision::Decision,
    effect::{Effect, OwnFile, Reply},
    event::Event,
    finding::{Finding, Status},
    host::{Host, Parked, boundary},
    ids::{FindingId, Hash, Key},
    limits::{Left, Spent, guard},
    metrics::{FindingMetrics, Metrics, MetricsFile, success_rate},
    reason::{Ending, Outcome, Reason},
    settings::Settings,
    subject::{Changed, Subject},
    text::{count, cut},
    tracker,
    view::Counts,
};

mod amend;
mod challenge;
mod confidence;
mod consult;
mod fix;
mod frozen;
mod land;
mod next;
mod panel;
mod people;
mod session;
mod signs;
mod strays;
mod tries;

pub use land::Pending;
pub use next::{Next, next};
pub use signs::Sheet;
pub use strays::Strays;
pub use tries::Tries;

/// Name and version in `run_started`: a journal of another version is refused, never guessed at.
pub const WORKFLOW: &str = "review";
pub const VERSION: u32 = 1;

/// All that a review knows between two stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Court {
    /// Rounds done.
    pub round: u32,
    pub last_pass: Pass,
    /// Fix iterations done in this round.
    pub iteration: u32,
    pub findings: Vec<Finding>,
    pub fixes: Vec<Fix>,
    pub decisions: Vec<Decision>,
    pub spent: Spent,
    pub metrics: Metrics,
    /// Versions of the tracker written so far.
    pub tracker_rev: u32,
    /// What the verify commands passed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Hash>,
    /// After the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// What people told the run, for the next briefs.
    pub said: Vec<String>,
    /// A person accepted what was left.
    pub accepted: bool,
    /// A person wants another round because the confidence is too low.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub held_for_confidence: bool,
    /// What each round came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sheets: Vec<Sheet>,
    /// How often the panel was found degraded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub degraded: u32,
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
    /// Patches that wait for a person's yes, or have it and wait to be landed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
    /// Files that repairs of a change have made: they are under review from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
    /// Files that changed while agents were at work, and not by a landing.
    #[serde(default, skip_serializing_if = "Strays::is_empty")]
    pub strays: Strays,
    /// Findings that a limit kept from being disputed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<FindingId>,
    /// A person no longer waits for the session: fixers repair.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub session_over: bool,
    /// It has come to this end and waits for a person.
    pub waiting: Option<Ending>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The last look of a panel at the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pass {
    /// It raised nothing new of medium or higher, and nothing has landed since.
    pub dry: bool,
    /// What was read.
    pub text: Option<Hash>,
    /// Most of the panel answered, and not mostly with what is not believed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sound: bool,
    /// Somebody else has changed the text since.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changed: bool,
    /// Seats that did not answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unheard: u32,
    /// What kept it from being dry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<FindingId>,
}

impl Pass {
    /// Of a dry one.
    fn says(&self) -> String {
        let mut text = String::from("a pass over the final text was dry");
        if self.unheard > 0 {
            text.push_str(&format!(", though {} did not answer", count(self.unheard, "reviewer")));
        }
        text
    }

    /// Of one that was not, over a text that is still the same.
    fn lacks(&self) -> &'static str {
        if self.changed {
            "the file was changed by somebody else since"
        } else {
            "too little of it was answered, or believed"
        }
    }
}

/// One line of the fix log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    pub finding: FindingId,
    pub key: Key,
    pub note: String,
}

/// Runs a review from a state (a new one, or that of the last boundary) to its end.
pub async fn review(host: &dyn Host, mut court: Court) -> Result<Ending, Parked> {
    loop {
        let stage = match stage(host, &mut court).await? {
            Stage::Over(ending) => return Ok(ending),
            Stage::Done(name) => name,
        };
        boundary(host, Key::new(stage), &court).await?;
    }
}

/// What one stage came to.
enum Stage {
    Done(String),
    Over(Ending),
}

async fn stage(host: &dyn Host, court: &mut Court) -> Result<Stage, Parked> {
    // A stretch of its own: while it waits, everything about the run may be changed.
    if let Some(ending) = court.waiting.take() {
        people::wait(host, court, ending).await?;
        return Ok(Stage::Done(String::from("wait")));
    }
    if court.has_strays_due() {
        strays::restore(host, court).await?;
        return Ok(Stage::Done(String::from("restore")));
    }
    let (name, ended) = match step(host, court) {
        Next::Review { round } => (format!("round-{round}"), panel::review_round(host, court, round).await?),
        Next::Fix { iteration } => {
            let name = format!("round-{}/fix-{iteration}", court.round);
            (name, repair(host, court, iteration).await?)
        }
        Next::End(ending) => (String::from("end"), Some(ending)),
    };
    match ended {
        Some(ending) => close(host, court, ending, name == "end").await,
        None => Ok(Stage::Done(name)),
    }
}

/// By fixers, or by a session that the person has open.
async fn repair(host: &dyn Host, court: &mut Court, iteration: u32) -> Result<Option<Ending>, Parked> {
    if host.settings().tasks.writing.in_session && !court.session_over {
        return session::hand_over(host, court, iteration).await;
    }
    fix::fix_iteration(host, court, iteration).await
}

/// What comes next, unless a limit stands in the way.
fn step(host: &dyn Host, court: &Court) -> Next {
    let settings = host.settings();
    let next = next(court, settings);
    if matches!(next, Next::End(_)) {
        return next;
    }
    match guard(&settings.limits, &court.spent, host.now().awake_ms, court.valid()) {
        Some(ending) => Next::End(ending),
        None => next,
    }
}

/// Publishes how it stands. A good end is the end; anything else waits for a person, who may let the run go on.
/// `reckoned`: the ending follows from the court's state alone.
async fn close(
    host: &dyn Host,
    court: &mut Court,
    mut ending: Ending,
    reckoned: bool,
) -> Result<Stage, Parked> {
    let key = Key::new("end");
    if ending.reason.outcome() == Some(Outcome::Halted) {
        ending.left = Some(court.left(host));
    }
    if ending.reason == Reason::GoalMet && court.has_moved(host, &key).await? {
        return Ok(Stage::Done(String::from("moved")));
    }
    let last = ending.reason == Reason::ReviewOnly || ending.reason.outcome() == Some(Outcome::Resolved);
    let heard = court.said.len();
    if last {
        people::withdraw(host, court);
        if host.patched("inbox-at-end") {
            people::look(host, court, &key).await?;
        }
    }
    people::offer(host, court, &ending, &key).await?;
    court.publish(host, &key).await?;
    // Somebody may have changed the tracker in the last moment.
    let still = matches!(step(host, court), Next::End(now) if now.reason == ending.reason);
    if reckoned && !still && host.patched("edited-at-end") {
        return Ok(Stage::Done(String::from("edited")));
    }
    if last {
        people::note_unheard(host, &court.said[heard.min(court.said.len())..]);
    }
    court.write_metrics(host, &key, &ending).await?;
    if last {
        return Ok(Stage::Over(ending));
    }
    court.waiting = Some(ending);
    Ok(Stage::Done(String::from("end")))
}

impl Court {
    pub fn finding_mut(&mut self, id: FindingId) -> Option<&mut Finding> {
        self.findings.iter_mut().find(|finding| finding.id == id)
    }

    pub fn finding(&self, id: FindingId) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// What was fixed since the panel last looked, in a line each.
    fn fixed_since_the_last_look(&self) -> Vec<String> {
        let round = format!("round-{}/", self.round);
        let fixes = self.fixes.iter().filter(|fix| fix.key.as_str().starts_with(&round));
        fixes.map(|fix| format!("{}: {}", fix.finding, cut(&fix.note, 300))).collect()
    }

    /// What is under review: the subject, and what repairs have added to it.
    fn subject(&self, settings: &Settings) -> Subject {
        let mut subject = settings.subject.clone();
        if let Subject::Change(change) = &mut subject {
            change.files.extend(self.made.iter().map(|path| Changed { path: path.clone(), from: None }));
        }
        subject
    }

    /// What every agent is told of the place it works in.
    fn surroundings(&self, host: &dyn Host) -> Box<Surroundings> {
        let own_files = alloc::vec![format!("{}/", host.settings().reviews)];
        Box::new(Surroundings { own_files, ..Surroundings::default() })
    }

    fn left(&self, host: &dyn Host) -> Left {
        let done = (self.round, self.iteration);
        Left::of(&host.settings().limits, &self.spent, host.now().awake_ms, self.valid(), done)
    }

    /// Distinct valid findings, open or fixed: what the explosion limit counts.
    fn valid(&self) -> u32 {
        let counts = Counts::of(&self.findings);
        counts.open + counts.fixed + counts.blocked
    }

    /// Before it is called resolved: does the file still say what the last panel read? If not, that pass shows nothing.
    async fn has_moved(&mut self, host: &dyn Host, parent: &Key) -> Result<bool, Parked> {
        let settings = host.settings();
        if settings.tier.number() == 0 || !settings.fix {
            // No pass over the final text is claimed.
            return Ok(false);
        }
        let effect = Effect::Freeze { subject: self.subject(settings) };
        let text = match host.perform(parent.child("look"), effect).await? {
            Reply::Frozen { hash, .. } if Some(&hash) == self.last_pass.text.as_ref() => return Ok(false),
            Reply::Failed { fault, .. } => format!("{fault}; it is not resolved yet"),
            _ => String::from(
                "the file was changed by somebody else after the last pass; it is not resolved yet",
            ),
        };
        self.last_pass.dry = false;
        self.last_pass.changed = true;
        host.note(Event::Warned { text });
        Ok(true)
    }

    /// What kept the last pass from being dry may have turned out not to be so.
    fn look_again_at_the_pass(&mut self) {
        let dismissed =
            |id: &FindingId| self.finding(*id).is_some_and(|f| matches!(f.status, Status::Dismissed { .. }));
        let same = self.tries.text == self.last_pass.text && !self.last_pass.changed;
        if self.last_pass.sound
            && same
            && !self.last_pass.raised.is_empty()
            && self.last_pass.raised.iter().all(dismissed)
        {
            self.last_pass.dry = true;
        }
    }

    /// Changes a status, here and in the journal.
    fn move_to(&mut self, host: &dyn Host, id: FindingId, to: Status, note: &str) {
        let at = host.now();
        if let Some(finding) = self.finding_mut(id) {
            finding.move_to(to.clone(), at, note);
            host.note(Event::FindingMoved { finding: id, to, note: note.into() });
        }
    }

    /// Writes the tracker. What a person has changed in it since the last look comes first: it is taken in, then it is
    /// written.
    async fn publish(&mut self, host: &dyn Host, parent: &Key) -> Result<(), Parked> {
        const TIMES: [&str; 3] = ["tracker", "tracker-2", "tracker-3"];
        for name in TIMES {
            let rev = self.tracker_rev + 1;
            let text = tracker::render(self, host.settings(), rev, host.now());
            let effect = Effect::Write { file: OwnFile::Tracker, text };
            match host.perform(parent.child(name), effect).await? {
                Reply::Written { requests, .. } if !requests.is_empty() => {
                    people::apply(host, self, requests)
                }
                Reply::Written { path, aside, strange, .. } => {
                    self.tracker_rev = rev;
                    host.note(Event::FileWritten { path });
                    if let Some(aside) = aside {
                        let what = if strange.is_empty() { "something" } else { &strange.join("; ") };
                        let text = format!(
                            "in the tracker was edited what is not taken in ({what}); it is kept as {aside}"
                        );
                        host.note(Event::Warned { text });
                    }
                    return Ok(());
                }
                Reply::Failed { fault, .. } => {
                    host.note(Event::Warned { text: format!("the tracker was not written: {fault}") });
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
        let text = String::from("the tracker is being edited all the time; it was not written");
        host.note(Event::Warned { text });
        Ok(())
    }

    async fn write_metrics(&mut self, host: &dyn Host, parent: &Key, ending: &Ending) -> Result<(), Parked> {
        let now = host.now();
        let counts = Counts::of(&self.findings);
        let seconds = now.awake_ms as f64 / 1000.0;
        let metrics = MetricsFile {
            schema: "tribunal.metrics/1".into(),
            counted: self.metrics.clone(),
            findings: FindingMetrics::of(&counts),
            tokens: self.spent.tokens,
            cost: self.spent.cost,
            rollbacks: 0,
            final_confidence: self.confidence.as_ref().map(|confidence| confidence.score),
            exit_reason: ending.reason.code().into(),
            elapsed_seconds: seconds,
            elapsed_minutes: (now.awake_ms / 60) as f64 / 1000.0,
            success_rate: success_rate(&counts),
        };
        let Ok(mut text) = serde_json::to_string_pretty(&metrics) else { return Ok(()) };
        text.push('\n');
        let file = OwnFile::Metrics { unix_seconds: now.wall_ms / 1000 };
        match host.perform(parent.child("metrics"), Effect::Write { file, text }).await? {
            Reply::Written { path, .. } => host.note(Event::FileWritten { path }),
            Reply::Failed { fault, .. } => {
                host.note(Event::Warned { text: format!("the metrics were not written: {fault}") });
            }
            _ => {}
        }
        Ok(())
    }
}
