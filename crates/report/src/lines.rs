//! Draws a run as readable lines, as many as its [`DisplayMode`] asks for.

mod challenge;
mod sparse;

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tribunal_core::{
    brief::Task,
    decision::About,
    decision::ChoiceKey,
    effect::{AskAgent, AwaitReset, Effect, Reply, Request},
    event::{Entry, Event, Summary},
    files::Refusal,
    finding::{Cause, Dismissal, Finding, Status, Transition},
    ids::{AgentName, FindingId, Key},
    progress::Progress,
    settings::Settings,
    view::RunView,
};

use crate::{
    Mode, Reporter,
    beside::outcome,
    clean, escaped,
    rulings::Rulings,
    session,
    style::{Screen, Sign, Style},
    words,
};
use challenge::Sitting;
use sparse::Tally;

/// Reports a run as lines of text.
#[derive(Debug)]
pub struct Lines<W> {
    out: W,
    screen: Screen,
    mode: Mode,
    view: RunView,
    tally: Tally,
    sitting: Sitting,
    rulings: Rulings,
    /// Findings of the patch that was refused last.
    refused: Vec<FindingId>,
    /// Why tasks failed, by the key of the task.
    faults: BTreeMap<Key, String>,
    /// The wait that was reported last.
    awaited: Option<String>,
    /// Whether anything was written yet; only then is a blank line useful as a separator.
    wrote: bool,
}

impl<W: Write> Lines<W> {
    pub fn new(out: W, screen: Screen, mode: Mode) -> Lines<W> {
        Lines {
            out,
            screen,
            mode,
            view: RunView::default(),
            awaited: None,
            tally: Tally::default(),
            sitting: Sitting::default(),
            rulings: Rulings::default(),
            refused: Vec::new(),
            faults: BTreeMap::new(),
            wrote: false,
        }
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    pub(crate) fn set_screen(&mut self, screen: Screen) {
        self.screen = screen;
    }

    /// Writes one line behind `indent` blanks.
    fn line(&mut self, indent: usize, text: &str) -> io::Result<()> {
        self.wrote = true;
        writeln!(self.out, "{:indent$}{text}", "")
    }

    /// Writes a blank line, unless it would be the first line of the output.
    fn set_off(&mut self) -> io::Result<()> {
        if self.wrote { writeln!(self.out) } else { Ok(()) }
    }

    /// Writes the title of a run with its limits and agents.
    fn started(&mut self, entry: &Entry, settings: &Settings, build: &str) -> io::Result<()> {
        let title = format!("review of {} · run {} · {build}", settings.subject.title(), entry.run);
        let title = self.screen.paint(Style::Bold, &self.screen.wrap(0, &title));
        self.line(0, &title)?;
        let limits = self.screen.wrap(0, &format!("limits: {}", words::limits(&settings.limits)));
        let limits = self.screen.paint(Style::Dim, &limits);
        self.line(0, &limits)?;
        let names: Vec<&str> = settings.agents.iter().map(|agent| agent.name.as_str()).collect();
        let reserves: Vec<&str> = settings.reserves.iter().map(|agent| agent.name.as_str()).collect();
        let behind = if reserves.is_empty() {
            String::new()
        } else {
            format!(" · in reserve: {}", reserves.join(", "))
        };
        let fixing = if settings.fix { "" } else { ", review only" };
        let about = format!(
            "agents: {}{behind} · tier {} · goal {}{fixing}",
            names.join(", "),
            settings.tier,
            settings.goal
        );
        let about = self.screen.paint(Style::Dim, &self.screen.wrap(0, &about));
        self.line(0, &about)
    }

    /// Writes the line of one seat: mark, name, text.
    fn seat(&mut self, sign: Sign, name: &str, text: &str) -> io::Result<()> {
        let mark = self.screen.paint(sign.style, sign.mark);
        let text = self.screen.fit(19, text);
        self.line(2, &format!("{mark} {name:<14}{text}"))
    }

    /// Names the agent, ` · codex`, if the run has several.
    fn by(&self, agent: &AgentName) -> String {
        let several = self.view.settings.as_ref().is_some_and(|settings| settings.agents.len() > 1);
        if several { format!(" · {agent}") } else { String::new() }
    }

    /// Writes a raised finding, and below it who else raised it or why it was dismissed at once.
    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        // In a review of one document the line number is enough; in a change the file has to be named.
        let several = self.view.settings.as_ref().is_some_and(|settings| settings.subject.path().is_none());
        let place = match &finding.place {
            Some(place) if several => format!("{place}  "),
            Some(place) => format!("line {}", place.line),
            None => String::new(),
        };
        let raisers: Vec<&str> = finding.raisers.iter().map(|raiser| raiser.role.as_str()).collect();
        let head = format!("{:<4}{:<9}{place:<10}", finding.id.to_string(), finding.severity.as_str());
        let text = self.screen.fit(4 + head.chars().count(), &finding.description);
        let head = self.screen.severity(finding.severity, &head);
        self.line(4, &format!("{head}{text}"))?;
        // The second line starts below the description.
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

    /// Writes why a patch did not land; a failed check is shown with its command.
    fn not_landed(&mut self, findings: &[FindingId], why: &Refusal) -> io::Result<()> {
        let mark = self.screen.paint(Style::Bad, "✗");
        let head = format!("not landed: {}", words::ids(findings));
        let text = self.screen.fit(8 + head.len(), &words::refused(why));
        self.line(4, &format!("{mark} {head}: {text}"))?;
        let Refusal::Check { command, .. } = why else { return Ok(()) };
        let check = self.screen.fit(6, &format!("the check was: {command}"));
        let check = self.screen.paint(Style::Dim, &check);
        self.line(6, &check)
    }

    /// Writes events of a review round.
    fn round(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::LevelChosen { level, why, panel } => {
                let seats: Vec<&str> = panel.iter().map(|role| role.as_str()).collect();
                let text = format!("panel: {} ({level}: {why})", seats.join(", "));
                let text = self.screen.wrap(0, &text);
                self.line(0, &text)
            }
            Event::RoundStarted { round, of, .. } => {
                let title = self.screen.paint(Style::Bold, &format!("round {round} of at most {of}"));
                self.set_off()?;
                self.line(0, &title)
            }
            Event::SeatAnswered { role, agent, raised, .. } => {
                let text = words::raised(*raised) + &self.by(agent);
                self.seat(Sign::DONE, role.as_str(), &text)
            }
            Event::SeatIncomplete { role, fault, .. } => {
                self.seat(Sign::FAILED, role.as_str(), &format!("incomplete: {fault}"))
            }
            Event::ChallengerAnswered { key, agent, silent, fault, .. } => match fault {
                Some(fault) => self.challenger_incomplete(key, fault),
                None => self.challenger_answered(key, agent, silent),
            },
            Event::FindingRuled { finding, .. } => self.ruled(*finding),
            Event::DecisionPosted { decision } if matches!(decision.about, About::Disputed { .. }) => {
                self.disputed(decision)
            }
            Event::RoundEnded { new, dry, counts, .. } => {
                // Upheld findings are collected during the round and written in one line before its result.
                self.upheld()?;
                let text = words::round(*new, *dry, counts);
                let text = self.screen.paint(Style::Bold, &self.screen.wrap(2, &text));
                self.line(0, &text)
            }
            Event::ConfidenceCalculated { confidence, .. } => {
                let text = self.screen.wrap(2, &words::confidence(confidence));
                let text = self.screen.paint(Style::Dim, &text);
                self.line(0, &text)
            }
            _ => Ok(()),
        }
    }

    /// Writes events of a fix iteration.
    fn fixing(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::FixersDealt { iteration, hands, .. } if self.is_in_session() => {
                // A new wave starts: findings of an older refused patch may be reported again.
                self.refused.clear();
                let hands: Vec<String> = hands.iter().map(|hand| words::ids(hand)).collect();
                let text = format!("fix iteration {iteration}: the session repairs {}", hands.join(" | "));
                let text = self.screen.wrap(2, &text);
                self.line(0, &text)
            }
            Event::FixersDealt { iteration, wave, hands, .. } => {
                self.refused.clear();
                let fixers = words::count(hands.len() as u32, "fixer");
                let hands: Vec<String> = hands.iter().map(|hand| words::ids(hand)).collect();
                let wave = if *wave > 1 { format!(", wave {wave}") } else { String::new() };
                let text = format!("fix iteration {iteration}{wave}: {fixers} for {}", hands.join(" | "));
                let text = self.screen.wrap(2, &text);
                self.line(0, &text)
            }
            Event::PatchLanded { lines, key, .. } if key.is_session() => {
                self.refused.clear();
                let mark = self.screen.paint(Style::Good, "✓");
                let lines = words::count(*lines, "line");
                self.line(4, &format!("{mark} the session came back, with {lines} changed"))
            }
            Event::PatchLanded { findings, lines, .. } => {
                self.refused.clear();
                let mark = self.screen.paint(Style::Good, "✓");
                let lines = words::count(*lines, "line");
                self.line(4, &format!("{mark} landed: {} ({lines})", words::ids(findings)))
            }
            Event::PatchRefused { findings, why, .. } => {
                // The findings of this patch become open again right after this event; they are not reported twice.
                self.refused.clone_from(findings);
                self.not_landed(findings, why)
            }
            Event::FixerFailed { fault, .. } => {
                let mark = self.screen.paint(Style::Bad, "✗");
                let text = self.screen.fit(8, &fault.detail);
                self.line(4, &format!("{mark} {text}"))
            }
            Event::FindingMoved { finding, transition: Transition { to, cause, note } } => match to {
                // Fixes of a fixer are reported with its patch. Only fixes that come without a patch of their own get a line.
                Status::Fixed if cause.is_by_user() || *cause == Cause::RepairedAlong => {
                    let text = self.screen.fit(16, note);
                    self.line(4, &format!("  {finding} is fixed: {text}"))
                }
                Status::Fixed | Status::Assigned => Ok(()),
                // The ruling was already written with the reason.
                _ if self.sitting.has_told(*finding) => Ok(()),
                // The refused patch was already reported, once for all its findings.
                Status::Open if self.refused.contains(finding) => Ok(()),
                Status::Open => {
                    let text = self.screen.fit(16, note);
                    let word = if cause.is_by_user() { "is open again" } else { "stays open" };
                    self.line(4, &format!("  {finding} {word}: {text}"))
                }
                other => {
                    let text = self.screen.fit(24, note);
                    self.line(4, &format!("  {finding} {}: {text}", other.word()))
                }
            },
            _ => Ok(()),
        }
    }

    /// Returns whether the user's own session repairs the findings instead of fixers. A decision may hand them back to fixers.
    fn is_in_session(&self) -> bool {
        let over = self.view.decisions.iter().filter_map(|decision| decision.answer.as_ref());
        let over = over.into_iter().any(|answer| answer.key() == Some(ChoiceKey::Fixers));
        !over && self.view.settings.as_ref().is_some_and(|settings| settings.tasks.writing.in_session)
    }

    /// Writes the ending: outcome, counts, what is left of the limits, open decisions and suggested commands.
    fn ended(&mut self, summary: &Summary) -> io::Result<()> {
        let (style, plain) = outcome(summary.outcome);
        let word = self.screen.paint(style, plain);
        let says = summary.reason.row().says;
        // Many endings have no detail beyond the fixed text of their reason.
        let detail = if summary.detail == says { String::new() } else { format!(": {}", summary.detail) };
        // The text is wrapped before its first word is painted, because colour codes have no width.
        let text = self.screen.wrap(0, &format!("{plain} · {says}{detail}"));
        self.set_off()?;
        self.line(0, &text.replacen(plain, &word, 1))?;
        let confidence = self.view.confidence.as_ref().map(|found| format!(" · confidence {}", found.score));
        let confidence = confidence.unwrap_or_default();
        let tally = format!("{} · {}{confidence}", words::tally(&summary.findings), words::spent(summary));
        let tally = self.screen.wrap(2, &tally);
        self.line(0, &tally)?;
        // Most endings do not say what is left of the limits.
        if let Some(left) = &summary.left {
            let left = self.screen.wrap(2, &format!("left: {}", words::left(left)));
            self.line(0, &left)?;
        }
        if let Some(tracker) = &self.view.tracker {
            let tracker = escaped(tracker);
            self.line(2, &format!("tracker: {tracker}"))?;
        }
        let decisions: Vec<String> =
            self.view.waiting().map(|decision| format!("{}: {}", decision.id, decision.question)).collect();
        for decision in decisions {
            let text = self.screen.wrap(2, &format!("asks {decision}"));
            self.line(0, &text)?;
        }
        // Commands are escaped but not wrapped: the user copies them from here.
        for (index, step) in words::next_steps(&self.view, &self.screen.program).iter().enumerate() {
            let lead = if index == 0 { "next:" } else { "" };
            self.line(2, &format!("{lead:<6}{}", escaped(step)))?;
        }
        Ok(())
    }

    /// Writes a wait for a usage limit. Many tasks may wait for the same one; it is reported once.
    fn wait(&mut self, text: &str) -> io::Result<()> {
        // The remaining time in parentheses differs from task to task, so it is not compared.
        let what = text.split(" (").next().unwrap_or(text).to_string();
        if self.awaited.as_ref() == Some(&what) {
            return Ok(());
        }
        self.awaited = Some(what);
        let mark = self.screen.paint(Style::Warn, "[W]");
        let text = self.screen.fit(6, text);
        self.line(2, &format!("{mark} {text}"))
    }

    /// Writes the lines of an entry as the `streaming` mode shows them.
    fn shown(&mut self, entry: &Entry) -> io::Result<()> {
        match &entry.event {
            Event::RunStarted { settings, build, .. } => self.started(entry, settings, build),
            Event::RunResumed { life } => {
                let subject = self.view.settings.as_ref().map(|settings| settings.subject.title());
                let text = format!("run {} goes on: review of {}", entry.run, subject.unwrap_or_default());
                let text = self.screen.paint(Style::Bold, &clean(&text));
                self.line(0, &format!("{text} (start {life})"))?;
                // Waits that began in an earlier process are still under way.
                let waits: Vec<String> = self
                    .view
                    .awaited()
                    .map(|(agent, until_ms)| words::awaited(agent, until_ms, entry.at.wall_ms))
                    .collect();
                waits.iter().try_for_each(|wait| self.wait(wait))
            }
            Event::SettingsChanged { .. } => self.line(2, "changed settings were taken in"),
            Event::EffectStarted {
                effect: Effect::AwaitReset(AwaitReset { agent, until_ms, .. }), ..
            } => self.wait(&words::awaited(agent, *until_ms, entry.at.wall_ms)),
            Event::EffectStarted { key, effect, .. } => self.effect(key, effect),
            Event::EffectFinished { reply: Reply::Inbox(said) | Reply::Wait(said), .. } => {
                self.requests(&said.requests)
            }
            Event::FindingRaised { finding } => self.finding(finding),
            Event::DecisionAnswered { decision, answer } => {
                let choice = self.screen.fit(24, &answer.choice);
                let says = match answer.is_withdrawn() {
                    true => format!("is withdrawn: {}", clean(&answer.note)),
                    false => format!("was answered: {choice}"),
                };
                self.line(2, &format!("{} {says}", clean(decision.as_str())))
            }
            Event::Warned { text } => {
                let mark = self.screen.paint(Style::Warn, "[W]");
                let text = self.screen.fit(6, text);
                self.line(2, &format!("{mark} {text}"))
            }
            Event::RunParked(summary) | Event::RunFinished(summary) => self.ended(summary),
            Event::Session(event) => {
                let text = self.screen.fit(13, &session::says(event));
                self.line(2, &format!("session: {text}"))
            }
            Event::LevelChosen { .. }
            | Event::RoundStarted { .. }
            | Event::SeatAnswered { .. }
            | Event::SeatIncomplete { .. }
            | Event::ChallengerAnswered { .. }
            | Event::FindingRuled { .. }
            | Event::DecisionPosted { .. }
            | Event::RoundEnded { .. }
            | Event::ConfidenceCalculated { .. } => self.round(&entry.event),
            _ => self.fixing(&entry.event),
        }
    }

    /// Updates what later lines depend on. This happens in every mode, since the user may change it at any time.
    fn remember(&mut self, entry: &Entry) {
        self.view.see(entry);
        self.tally.see(&entry.event);
        self.sitting.see(&entry.event);
        self.rulings.see(&entry.event);
        if let Event::EffectFinished { key, reply, .. } = &entry.event
            && let Some(fault) = reply.fault()
        {
            self.faults.insert(key.task(), fault.detail.clone());
        }
    }

    /// Writes what the user said into the inbox.
    fn requests(&mut self, requests: &[Request]) -> io::Result<()> {
        for request in requests {
            if let Request::Say(remark) = request {
                let text = self.screen.wrap(2, &format!("a person says: {remark}"));
                self.line(0, &text)?;
            }
        }
        Ok(())
    }

    /// Writes that a task is tried a second time, with the reason.
    fn effect(&mut self, key: &Key, effect: &Effect) -> io::Result<()> {
        match effect {
            Effect::Ask(AskAgent { task: Task { brief, .. } }) if key.is_second_try() => {
                // A correction tells the agent what was wrong with its answer; without one the call itself failed.
                let text = match (brief.correction.as_str(), self.faults.get(&key.task())) {
                    ("", Some(why)) => format!("tried once more: {why}"),
                    ("", None) => "tried once more".to_string(),
                    (why, _) => format!("asked once more: {why}"),
                };
                let name = self.sitting.name(key).unwrap_or_else(|| brief.role.to_string());
                self.seat(Sign::AGAIN, &name, &text)
            }
            Effect::Ask(AskAgent { task: Task { brief, .. } }) if key.is_after_wait() => {
                let name = self.sitting.name(key).unwrap_or_else(|| brief.role.to_string());
                self.seat(Sign::AGAIN, &name, "asked again: the usage limit should have passed")
            }
            _ => Ok(()),
        }
    }
}

impl Lines<Vec<u8>> {
    /// Takes what was drawn since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

impl<W: Write> Reporter for Lines<W> {
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.remember(entry);
        match self.mode {
            Mode::Silent => match &entry.event {
                // Even a silent run says why it stands still.
                Event::Warned { .. }
                | Event::EffectStarted { effect: Effect::AwaitReset(_), .. }
                | Event::RunParked(_)
                | Event::RunFinished(_) => self.shown(entry),
                _ => Ok(()),
            },
            Mode::Summary => self.stage(entry),
            Mode::Streaming => self.shown(entry),
            Mode::Verbose => {
                self.inner(&entry.event)?;
                self.shown(entry)
            }
        }
    }

    fn past(&mut self, entry: &Entry) {
        self.remember(entry);
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        if self.mode < Mode::Streaming {
            return Ok(());
        }
        let name = match (progress.key.fixer_number(), progress.key.reviewer_role()) {
            (Some(number), _) => format!("fixer {number}"),
            (_, Some(role)) => role.to_string(),
            _ => self.sitting.name(&progress.key).unwrap_or_else(|| progress.key.to_string()),
        };
        let name = clean(&name);
        let text = self.screen.fit(19, &progress.text);
        let line = self.screen.paint(Style::Dim, &format!("· {name:<14}{text}"));
        self.line(2, &line)
    }
}
