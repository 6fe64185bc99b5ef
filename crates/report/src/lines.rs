//! A run as readable lines.

use std::io::{self, Write};

use tribunal_core::{
    brief::Task,
    effect::{Effect, Refusal},
    event::{Entry, Event, Summary},
    finding::{Dismissal, Finding, Status},
    ids::{FindingId, Key},
    level::Role,
    progress::Progress,
    reason::Outcome,
    settings::Settings,
    view::RunView,
};

use crate::{
    Reporter,
    style::{Screen, Style},
    words::{self, ids},
};

#[derive(Debug)]
pub struct Lines<W> {
    out: W,
    screen: Screen,
    view: RunView,
    /// Findings of the patch that was refused last.
    refused: Vec<FindingId>,
}

impl<W: Write> Lines<W> {
    pub fn new(out: W, screen: Screen) -> Lines<W> {
        Lines { out, screen, view: RunView::default(), refused: Vec::new() }
    }

    fn line(&mut self, indent: usize, text: &str) -> io::Result<()> {
        writeln!(self.out, "{:indent$}{text}", "")
    }

    fn started(&mut self, entry: &Entry, settings: &Settings, build: &str) -> io::Result<()> {
        let title = format!("review of {} · run {} · {build}", settings.subject.title(), entry.run);
        let title = self.screen.paint(Style::Bold, &self.screen.wrap(0, &title));
        self.line(0, &title)?;
        let limits = self.screen.wrap(0, &format!("limits: {}", words::limits(&settings.limits)));
        let limits = self.screen.paint(Style::Dim, &limits);
        self.line(0, &limits)?;
        let names: Vec<&str> = settings.agents.iter().map(|agent| agent.name.as_str()).collect();
        let fixing = if settings.fix { "" } else { ", review only" };
        let about =
            format!("agents: {} · tier {} · goal {}{fixing}", names.join(", "), settings.tier, settings.goal);
        let about = self.screen.paint(Style::Dim, &about);
        self.line(0, &about)
    }

    fn seat(&mut self, mark: (Style, &str), role: Role, text: &str) -> io::Result<()> {
        let mark = self.screen.paint(mark.0, mark.1);
        let text = self.screen.fit(19, text);
        self.line(2, &format!("{mark} {:<14}{text}", role.as_str()))
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let place = finding.place.as_ref().map(|place| format!("line {}", place.line)).unwrap_or_default();
        let raisers: Vec<&str> = finding.raisers.iter().map(|raiser| raiser.role.as_str()).collect();
        let head = format!("{:<4}{:<9}{place:<10}", finding.id.to_string(), finding.severity.as_str());
        let text = self.screen.fit(4 + head.chars().count(), &finding.description);
        let head = self.screen.severity(finding.severity, &head);
        self.line(4, &format!("{head}{text}"))?;
        let indent = 27;
        let raised = match &finding.status {
            Status::Dismissed { why: Dismissal::Ungrounded } => {
                let text = format!("dismissed, ungrounded: {}", finding.last_note());
                self.screen.paint(Style::Dim, &self.screen.fit(indent, &text))
            }
            _ if raisers.len() > 1 => {
                self.screen.paint(Style::Dim, &format!("raised by {}", raisers.join(" and ")))
            }
            _ => return Ok(()),
        };
        self.line(indent, &raised)
    }

    fn not_landed(&mut self, findings: &[FindingId], why: &Refusal) -> io::Result<()> {
        let detail = match why {
            Refusal::Check { command, .. } => Some(format!("the check was: {command}")),
            _ => None,
        };
        let mark = self.screen.paint(Style::Bad, "✗");
        let head = format!("not landed: {}", ids(findings));
        let why = self.screen.fit(8 + head.len(), &words::refused(why));
        self.line(4, &format!("{mark} {head}: {why}"))?;
        match detail {
            Some(detail) => {
                let detail = self.screen.paint(Style::Dim, &self.screen.fit(6, &detail));
                self.line(6, &detail)
            }
            None => Ok(()),
        }
    }

    fn round(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::LevelChosen { level, why, panel } => {
                let seats: Vec<&str> = panel.iter().map(|role| role.as_str()).collect();
                let text = format!("panel: {} ({level}: {why})", seats.join(", "));
                let text = self.screen.wrap(0, &text);
                self.line(0, &text)
            }
            Event::RoundStarted { round, of } => {
                let title = self.screen.paint(Style::Bold, &format!("round {round} of at most {of}"));
                self.line(0, &format!("\n{title}"))
            }
            Event::SeatAnswered { role, raised, .. } => {
                let text = match raised {
                    0 => "raised nothing".to_string(),
                    1 => "raised 1 finding".to_string(),
                    many => format!("raised {many} findings"),
                };
                self.seat((Style::Good, "✓"), *role, &text)
            }
            Event::SeatIncomplete { role, fault, .. } => {
                self.seat((Style::Bad, "✗"), *role, &format!("incomplete: {fault}"))
            }
            Event::RoundEnded { new, dry, counts, .. } => {
                let text = match (new, dry) {
                    (0, true) => "a dry pass: nothing new".to_string(),
                    (_, true) => format!("a dry pass: only {new} of low severity"),
                    _ => format!(
                        "{new} new; {} to fix",
                        words::findings(counts.open, &counts.open_by_severity)
                    ),
                };
                let text = self.screen.paint(Style::Bold, &self.screen.wrap(2, &text));
                self.line(0, &text)
            }
            _ => Ok(()),
        }
    }

    fn fixing(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::FixersDealt { iteration, wave, hands, .. } => {
                self.refused.clear();
                let fixers = words::count(hands.len() as u32, "fixer");
                let hands: Vec<String> = hands.iter().map(|hand| ids(hand)).collect();
                let wave = if *wave > 1 { format!(", wave {wave}") } else { String::new() };
                let text = format!("fix iteration {iteration}{wave}: {fixers} for {}", hands.join(" | "));
                let text = self.screen.wrap(2, &text);
                self.line(0, &text)
            }
            Event::PatchLanded { findings, lines, .. } => {
                self.refused.clear();
                let mark = self.screen.paint(Style::Good, "✓");
                let lines = words::count(*lines, "line");
                self.line(4, &format!("{mark} landed: {} ({lines})", ids(findings)))
            }
            Event::PatchRefused { findings, why, .. } => {
                self.refused.clone_from(findings);
                self.not_landed(findings, why)
            }
            Event::FixerFailed { fault, .. } => {
                let mark = self.screen.paint(Style::Bad, "✗");
                let text = self.screen.fit(8, &fault.detail);
                self.line(4, &format!("{mark} {text}"))
            }
            Event::FindingMoved { finding, to, note } => match to {
                Status::Fixed | Status::Assigned => Ok(()),
                // Said already, once for the whole patch.
                Status::Open if self.refused.contains(finding) => Ok(()),
                Status::Open => {
                    let text = self.screen.fit(16, note);
                    self.line(4, &format!("  {finding} stays open: {text}"))
                }
                other => {
                    let text = self.screen.fit(24, note);
                    self.line(4, &format!("  {finding} {}: {text}", other.word()))
                }
            },
            _ => Ok(()),
        }
    }

    fn ended(&mut self, summary: &Summary) -> io::Result<()> {
        let (style, plain) = match summary.outcome {
            Some(outcome @ (Outcome::Resolved | Outcome::Cancelled)) => (Style::Good, outcome.as_str()),
            Some(outcome @ Outcome::Waiting) => (Style::Warn, outcome.as_str()),
            Some(outcome @ (Outcome::Halted | Outcome::Failed)) => (Style::Bad, outcome.as_str()),
            None => (Style::Warn, "stopped"),
        };
        let word = self.screen.paint(style, plain);
        let says = summary.reason.row().says;
        let detail = if summary.detail == says { String::new() } else { format!(": {}", summary.detail) };
        // Wrapped with its first word, painted afterwards: colours have no width.
        let text = self.screen.wrap(0, &format!("{plain} · {says}{detail}"));
        self.line(0, &format!("\n{}", text.replacen(plain, &word, 1)))?;
        let tally = format!("{} · {}", words::tally(&summary.findings), words::spent(summary));
        let tally = self.screen.wrap(2, &tally);
        self.line(0, &tally)?;
        if let Some(tracker) = self.view.tracker() {
            let tracker = tracker.to_string();
            self.line(2, &format!("tracker: {tracker}"))?;
        }
        let decisions: Vec<String> =
            self.view.waiting().map(|decision| format!("{}: {}", decision.id, decision.question)).collect();
        for decision in decisions {
            let text = self.screen.wrap(2, &format!("asks {decision}"));
            self.line(0, &text)?;
        }
        for (index, step) in words::next_steps(&self.view, &self.screen.program).iter().enumerate() {
            let lead = if index == 0 { "next:" } else { "" };
            self.line(2, &format!("{lead:<6}{step}"))?;
        }
        Ok(())
    }

    fn effect(&mut self, key: &Key, effect: &Effect) -> io::Result<()> {
        match effect {
            Effect::Ask { task: Task { brief, .. } } if key.as_str().ends_with("/again") => {
                let text = match brief.correction.as_str() {
                    "" => "tried once more".to_string(),
                    why => format!("asked once more: {why}"),
                };
                self.seat((Style::Warn, "↻"), brief.role, &text)
            }
            _ => Ok(()),
        }
    }
}

impl<W: Write> Reporter for Lines<W> {
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.view.see(entry);
        match &entry.event {
            Event::RunStarted { settings, build, .. } => self.started(entry, settings, build),
            Event::RunResumed { life } => {
                let subject = self.view.settings.as_ref().map(|settings| settings.subject.title());
                let text = format!("run {} goes on: review of {}", entry.run, subject.unwrap_or_default());
                let text = self.screen.paint(Style::Bold, &text);
                self.line(0, &format!("{text} (start {life})"))
            }
            Event::SettingsChanged { .. } => self.line(2, "changed settings were taken in"),
            Event::EffectStarted { key, effect, .. } => self.effect(key, effect),
            Event::FindingRaised { finding } => self.finding(finding),
            Event::DecisionAnswered { decision, answer } => {
                let choice = self.screen.fit(24, &answer.choice);
                self.line(2, &format!("{decision} was answered: {choice}"))
            }
            Event::Warned { text } => {
                let mark = self.screen.paint(Style::Warn, "[W]");
                let text = self.screen.fit(6, text);
                self.line(2, &format!("{mark} {text}"))
            }
            Event::RunParked(summary) | Event::RunFinished(summary) => self.ended(summary),
            Event::LevelChosen { .. }
            | Event::RoundStarted { .. }
            | Event::SeatAnswered { .. }
            | Event::SeatIncomplete { .. }
            | Event::RoundEnded { .. } => self.round(&entry.event),
            _ => self.fixing(&entry.event),
        }
    }

    fn past(&mut self, entry: &Entry) {
        self.view.see(entry);
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        let name = progress.key.as_str().split('/').collect::<Vec<_>>();
        let name = match name.as_slice() {
            [.., "fix", number] | [.., "fix", number, "again"] => format!("fixer {number}"),
            [.., "review", role] | [.., "review", role, "again"] => (*role).to_string(),
            _ => progress.key.to_string(),
        };
        let text = self.screen.fit(19, &progress.text);
        let line = self.screen.paint(Style::Dim, &format!("· {name:<14}{text}"));
        self.line(2, &line)
    }
}
