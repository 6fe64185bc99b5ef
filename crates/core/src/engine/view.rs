//! A run as users see it, computed from its journal and from nothing else.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::{
    decisions::decision::Decision,
    engine::{
        effect::{AskOutcome, AwaitReset, Effect, LandOutcome, OwnFile, Reply},
        event::{JournalEntry, RunEvent, RunSummary},
        ids::{AgentName, FindingId, RunId},
        limits::RunUsage,
        settings::Settings,
        timestamp::Timestamp,
    },
    review::{confidence::Confidence, counts::FindingCounts, finding::Finding},
};

/// The phase of a run according to its journal. The journal cannot know whether a process still works on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunPhase {
    #[default]
    Running,
    Parked(RunSummary),
    Finished(RunSummary),
}

#[derive(Clone, Debug, Default)]
pub struct RunView {
    pub run_id: Option<RunId>,
    pub settings: Option<Settings>,
    pub start_time: Timestamp,
    pub last_time: Timestamp,
    pub phase: RunPhase,
    /// The number of rounds that were held.
    pub rounds: u32,
    /// The confidence after the last round.
    pub confidence: Option<Confidence>,
    pub life_count: u32,
    pub findings: BTreeMap<FindingId, Finding>,
    pub decisions: Vec<Decision>,
    /// The path of the tracker, once it was written.
    pub tracker_path: Option<String>,
    pub usage: RunUsage,
}

impl RunView {
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> RunView {
        let mut view = RunView::default();
        for journal_entry in entries {
            view.apply_entry(journal_entry);
        }
        view
    }

    /// Applies one more entry.
    pub fn apply_entry(&mut self, journal_entry: &JournalEntry) {
        self.last_time = journal_entry.at;
        match &journal_entry.event {
            RunEvent::RunStarted { settings, .. } => {
                self.run_id = Some(journal_entry.run.clone());
                self.settings = Some(settings.clone());
                self.start_time = journal_entry.at;
                self.life_count = 1;
            }
            RunEvent::RunResumed { life } => {
                // A resumed run is running again, whether it was parked or had crashed.
                self.life_count = *life;
                self.phase = RunPhase::Running;
                // A wait that was under way continues without a new entry, so only expired limits are removed.
                let wall_ms = journal_entry.at.wall_ms;
                self.usage.limited.retain(|_, until_ms| *until_ms > wall_ms);
            }
            RunEvent::SettingsChanged { settings } => self.settings = Some(settings.clone()),
            RunEvent::RunParked(summary) => {
                self.rounds = summary.rounds;
                self.phase = RunPhase::Parked(summary.clone());
            }
            RunEvent::RunFinished(summary) => {
                self.rounds = summary.rounds;
                self.phase = RunPhase::Finished(summary.clone());
            }
            // A round counts when it has ended; one that is under way may still be held again.
            RunEvent::RoundEnded { round, .. } => self.rounds = *round,
            RunEvent::ConfidenceCalculated { confidence, .. } => self.confidence = Some(confidence.clone()),
            RunEvent::EffectStarted { effect: Effect::AwaitReset(AwaitReset { agent, until_ms, .. }), .. } => {
                self.usage.limited.insert(agent.clone(), *until_ms);
            }
            RunEvent::EffectFinished { reply, .. } => self.apply_reply(reply),
            RunEvent::DecisionPosted { decision } => self.decisions.push(decision.clone()),
            // Withdrawn decisions are answered, too, so they no longer count as open.
            RunEvent::DecisionAnswered { decision: decision_id, answer } => {
                for known_decision in
                    self.decisions.iter_mut().filter(|known_decision| known_decision.id == *decision_id)
                {
                    known_decision.answer = Some(answer.clone());
                }
            }
            RunEvent::FileWritten { file: OwnFile::Tracker, path } => self.tracker_path = Some(path.clone()),
            finding_event => self.apply_finding_event(finding_event, journal_entry.at),
        }
    }

    fn apply_finding_event(&mut self, event: &RunEvent, timestamp: Timestamp) {
        match event {
            RunEvent::FindingRaised { finding } => {
                self.findings.insert(finding.id, finding.clone());
            }
            RunEvent::FindingJoined { finding: finding_id, severity, raiser } => {
                if let Some(known_finding) = self.findings.get_mut(finding_id) {
                    known_finding.severity = *severity;
                    // An entry that is applied twice must not add the raiser twice.
                    if !known_finding.raisers.contains(raiser) {
                        known_finding.raisers.push(raiser.clone());
                    }
                }
            }
            RunEvent::FindingRuled { finding: finding_id, severity, .. } => {
                if let Some(known_finding) = self.findings.get_mut(finding_id) {
                    known_finding.severity = *severity;
                }
            }
            RunEvent::FindingMoved { finding: finding_id, transition } => {
                if let Some(known_finding) = self.findings.get_mut(finding_id) {
                    known_finding.apply_transition(transition.clone(), timestamp);
                }
            }
            _ => {}
        }
    }

    fn apply_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Ask(AskOutcome::Answered(reply)) => self.usage.add_usage(&reply.usage),
            Reply::Ask(AskOutcome::Failed(failed)) => self.usage.add_usage(&failed.usage),
            // The wait is over, so limits that have passed by now are removed.
            Reply::Sleep(_) | Reply::AwaitReset(_) => {
                let wall_ms = self.last_time.wall_ms;
                self.usage.limited.retain(|_, until_ms| *until_ms > wall_ms);
            }
            Reply::Land(LandOutcome::Landed(landed)) | Reply::TakeIn(LandOutcome::Landed(landed)) => {
                // Places in a single file move with the lines above them. The hunks of a change are with its files and are not
                // applied here.
                let hunks = &landed.hunks;
                for place in self.findings.values_mut().filter_map(|finding| finding.place.as_mut()) {
                    place.shift_lines(hunks);
                }
            }
            _ => {}
        }
    }

    /// Returns the counts of the run's summary, or counts the findings if the run has not ended.
    pub fn finding_counts(&self) -> FindingCounts {
        match self.run_summary() {
            Some(summary) => summary.findings.clone(),
            None => FindingCounts::from_findings(self.findings.values()),
        }
    }

    pub fn run_summary(&self) -> Option<&RunSummary> {
        match &self.phase {
            RunPhase::Running => None,
            RunPhase::Parked(summary) | RunPhase::Finished(summary) => Some(summary),
        }
    }

    /// Returns the agents that the run waits for, each with the wall time at which it may be asked again.
    pub fn limited_agents(&self) -> impl Iterator<Item = (&AgentName, u64)> {
        // A parked or finished run waits for no agent, even if its last entries started a wait.
        let is_running = self.phase == RunPhase::Running;
        self.usage.limited.iter().filter(move |_| is_running).map(|(agent, until_ms)| (agent, *until_ms))
    }

    /// Returns the decisions without an answer.
    pub fn open_decisions(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(|decision| decision.answer.is_none())
    }
}
