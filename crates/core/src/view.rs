//! A run as people see it, folded from its journal and from nothing else.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec::Vec,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    confidence::Confidence,
    decision::Decision,
    effect::{Effect, Reply},
    event::{Entry, Event, Summary},
    finding::{Finding, Severity, Status},
    ids::{AgentName, FindingId, RunId},
    limits::Spent,
    settings::Settings,
    stamp::Stamp,
};

/// Findings by status, and the open ones by severity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Without the dismissed ones.
    pub total: u32,
    /// Open or in a fixer's hands.
    pub open: u32,
    pub fixed: u32,
    pub blocked: u32,
    pub deferred: u32,
    pub dismissed: u32,
    /// All but the dismissed, by severity.
    pub by_severity: BySeverity,
    pub open_by_severity: BySeverity,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BySeverity {
    pub critical: u32,
    pub high: u32,
    pub medium: u32,
    pub low: u32,
}

impl BySeverity {
    pub fn of(&self, severity: Severity) -> u32 {
        match severity {
            Severity::Critical => self.critical,
            Severity::High => self.high,
            Severity::Medium => self.medium,
            Severity::Low => self.low,
        }
    }

    fn count(&mut self, severity: Severity) {
        let slot = match severity {
            Severity::Critical => &mut self.critical,
            Severity::High => &mut self.high,
            Severity::Medium => &mut self.medium,
            Severity::Low => &mut self.low,
        };
        *slot += 1;
    }
}

impl Counts {
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Counts {
        let mut counts = Counts::default();
        for finding in findings {
            match finding.status {
                Status::Dismissed { .. } => {
                    counts.dismissed += 1;
                    continue;
                }
                Status::Open | Status::Assigned => {
                    counts.open += 1;
                    counts.open_by_severity.count(finding.severity);
                }
                Status::Fixed => counts.fixed += 1,
                Status::Blocked { .. } => counts.blocked += 1,
                Status::Deferred { .. } => counts.deferred += 1,
            }
            counts.total += 1;
            counts.by_severity.count(finding.severity);
        }
        counts
    }
}

/// Where a run stands according to its journal. Whether a process still works on it, the journal cannot know.
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
    /// Rounds held.
    pub rounds: u32,
    /// After the last round that was held.
    pub confidence: Option<Confidence>,
    pub lives: u32,
    pub findings: BTreeMap<FindingId, Finding>,
    pub decisions: Vec<Decision>,
    /// Files of ours, by their last path.
    pub files: Vec<String>,
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

    /// Takes one more entry into account.
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
                self.lives = *life;
                self.phase = Phase::Running;
                // A wait that was under way goes on; it is not recorded again.
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
            Event::RoundEnded { round, .. } => self.rounds = *round,
            Event::ConfidenceCalculated { confidence, .. } => self.confidence = Some(confidence.clone()),
            Event::EffectStarted { effect: Effect::AwaitReset { agent, until_ms, .. }, .. } => {
                self.spent.limited.insert(agent.clone(), *until_ms);
            }
            Event::EffectFinished { reply, .. } => self.see_reply(reply),
            Event::DecisionPosted { decision } => self.decisions.push(decision.clone()),
            Event::DecisionAnswered { decision, answer } => {
                for known in self.decisions.iter_mut().filter(|known| known.id == *decision) {
                    known.answer = Some(answer.clone());
                }
            }
            Event::FileWritten { path } => {
                if !self.files.contains(path) {
                    self.files.push(path.clone());
                }
            }
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
            Event::FindingMoved { finding, to, note } => {
                if let Some(known) = self.findings.get_mut(finding) {
                    known.move_to(to.clone(), at, note.to_string());
                }
            }
            _ => {}
        }
    }

    fn see_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Agent(reply) => self.spent.add(&reply.usage),
            Reply::Failed { usage, .. } => self.spent.add(usage),
            Reply::Slept => {
                let now = self.last.wall_ms;
                self.spent.limited.retain(|_, until_ms| *until_ms > now);
            }
            Reply::Landed { hunks, .. } => {
                for place in self.findings.values_mut().filter_map(|finding| finding.place.as_mut()) {
                    place.shift(hunks);
                }
            }
            _ => {}
        }
    }

    /// As the last line of the run has them, else from the findings themselves.
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

    /// Agents that are waited for until they may be asked again, and the wall time of that.
    pub fn awaited(&self) -> impl Iterator<Item = (&AgentName, u64)> {
        let running = self.phase == Phase::Running;
        self.spent.limited.iter().filter(move |_| running).map(|(agent, until_ms)| (agent, *until_ms))
    }

    /// Decisions nobody has answered.
    pub fn waiting(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(|decision| decision.answer.is_none())
    }

    pub fn tracker(&self) -> Option<&str> {
        self.files.iter().map(String::as_str).find(|path| path.ends_with("-issues.md"))
    }
}
