//! A run as users see it, computed from its journal and from nothing else.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    confidence::Confidence,
    counts::Counts,
    decision::Decision,
    effect::{AskOutcome, AwaitReset, Effect, LandOutcome, OwnFile, Reply},
    event::{Entry, Event, Summary},
    finding::Finding,
    ids::{AgentName, FindingId, RunId},
    limits::Spent,
    settings::Settings,
    stamp::Stamp,
};

/// The phase of a run according to its journal. The journal cannot know whether a process still works on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Running,
    Parked(Summary),
    Finished(Summary),
}

#[derive(Clone, Debug, Default)]
pub struct RunView {
    pub run: Option<RunId>,
    pub settings: Option<Settings>,
    pub started: Stamp,
    pub last: Stamp,
    pub phase: Phase,
    /// The number of rounds that were held.
    pub rounds: u32,
    /// The confidence after the last round.
    pub confidence: Option<Confidence>,
    pub lives: u32,
    pub findings: BTreeMap<FindingId, Finding>,
    pub decisions: Vec<Decision>,
    /// The path of the tracker, once it was written.
    pub tracker: Option<String>,
    pub spent: Spent,
}

impl RunView {
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> RunView {
        let mut view = RunView::default();
        for entry in entries {
            view.see(entry);
        }
        view
    }

    /// Applies one more entry.
    pub fn see(&mut self, entry: &Entry) {
        self.last = entry.at;
        match &entry.event {
            Event::RunStarted { settings, .. } => {
                self.run = Some(entry.run.clone());
                self.settings = Some(settings.clone());
                self.started = entry.at;
                self.lives = 1;
            }
            Event::RunResumed { life } => {
                // A resumed run is running again, whether it was parked or had crashed.
                self.lives = *life;
                self.phase = Phase::Running;
                // A wait that was under way continues without a new entry, so only expired limits are removed.
                let now = entry.at.wall_ms;
                self.spent.limited.retain(|_, until_ms| *until_ms > now);
            }
            Event::SettingsChanged { settings } => self.settings = Some(settings.clone()),
            Event::RunParked(summary) => {
                self.rounds = summary.rounds;
                self.phase = Phase::Parked(summary.clone());
            }
            Event::RunFinished(summary) => {
                self.rounds = summary.rounds;
                self.phase = Phase::Finished(summary.clone());
            }
            // A round counts when it has ended; one that is under way may still be held again.
            Event::RoundEnded { round, .. } => self.rounds = *round,
            Event::ConfidenceCalculated { confidence, .. } => self.confidence = Some(confidence.clone()),
            Event::EffectStarted {
                effect: Effect::AwaitReset(AwaitReset { agent, until_ms, .. }), ..
            } => {
                self.spent.limited.insert(agent.clone(), *until_ms);
            }
            Event::EffectFinished { reply, .. } => self.see_reply(reply),
            Event::DecisionPosted { decision } => self.decisions.push(decision.clone()),
            // Withdrawn decisions are answered, too, so they no longer count as open.
            Event::DecisionAnswered { decision, answer } => {
                for known in self.decisions.iter_mut().filter(|known| known.id == *decision) {
                    known.answer = Some(answer.clone());
                }
            }
            Event::FileWritten { file: OwnFile::Tracker, path } => self.tracker = Some(path.clone()),
            other => self.see_finding(other, entry.at),
        }
    }

    fn see_finding(&mut self, event: &Event, at: Stamp) {
        match event {
            Event::FindingRaised { finding } => {
                self.findings.insert(finding.id, finding.clone());
            }
            Event::FindingJoined { finding, severity, raiser } => {
                if let Some(known) = self.findings.get_mut(finding) {
                    known.severity = *severity;
                    // An entry that is applied twice must not add the raiser twice.
                    if !known.raisers.contains(raiser) {
                        known.raisers.push(raiser.clone());
                    }
                }
            }
            Event::FindingRuled { finding, severity, .. } => {
                if let Some(known) = self.findings.get_mut(finding) {
                    known.severity = *severity;
                }
            }
            Event::FindingMoved { finding, transition } => {
                if let Some(known) = self.findings.get_mut(finding) {
                    known.apply(transition.clone(), at);
                }
            }
            _ => {}
        }
    }

    fn see_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Ask(AskOutcome::Answered(reply)) => self.spent.add(&reply.usage),
            Reply::Ask(AskOutcome::Failed(failed)) => self.spent.add(&failed.usage),
            // The wait is over, so limits that have passed by now are removed.
            Reply::Sleep(_) | Reply::AwaitReset(_) => {
                let now = self.last.wall_ms;
                self.spent.limited.retain(|_, until_ms| *until_ms > now);
            }
            Reply::Land(LandOutcome::Landed(landed)) | Reply::TakeIn(LandOutcome::Landed(landed)) => {
                // Places move with the lines above them, as they do in the review state.
                let hunks = &landed.hunks;
                for place in self.findings.values_mut().filter_map(|finding| finding.place.as_mut()) {
                    place.shift(hunks);
                }
            }
            _ => {}
        }
    }

    /// Returns the counts of the run's summary, or counts the findings if the run has not ended.
    pub fn counts(&self) -> Counts {
        match self.summary() {
            Some(summary) => summary.findings.clone(),
            None => Counts::of(self.findings.values()),
        }
    }

    pub fn summary(&self) -> Option<&Summary> {
        match &self.phase {
            Phase::Running => None,
            Phase::Parked(summary) | Phase::Finished(summary) => Some(summary),
        }
    }

    /// Returns the agents that the run waits for, each with the wall time at which it may be asked again.
    pub fn awaited(&self) -> impl Iterator<Item = (&AgentName, u64)> {
        // A parked or finished run waits for no agent, even if its last entries started a wait.
        let running = self.phase == Phase::Running;
        self.spent.limited.iter().filter(move |_| running).map(|(agent, until_ms)| (agent, *until_ms))
    }

    /// Returns the decisions without an answer.
    pub fn waiting(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(|decision| decision.answer.is_none())
    }
}
