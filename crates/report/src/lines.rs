//! Draws a run as readable lines, as many as its [`DisplayMode`] asks for.

mod challenge;
mod detail_levels;
mod fixes;

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tribunal_core::{
    decisions::{
        decision::{DecisionAnswer, DecisionTopic},
        user_request::UserRequest,
    },
    engine::{
        effect::{AskAgent, AwaitReset, Effect, Reply},
        event::{JournalEntry, RunEvent, RunSummary},
        ids::{AgentName, DecisionId, FindingId, Key},
        progress::AgentProgress,
        settings::Settings,
        view::RunView,
    },
    review::finding::{DismissalReason, Finding, FindingStatus},
    tasks::brief::AgentTask,
};

use crate::{
    DisplayMode, Reporter, clean_line,
    diffstat::{FileStat, list_landed_files},
    escape_line,
    multi_run::describe_outcome,
    next_steps::{collect_next_steps, render_next_steps},
    phrases,
    rulings::RulingIndex,
    session_text,
    style::{LineMark, Screen, TextStyle},
    terminal_text::display_width,
};
use challenge::ChallengeProgress;
use detail_levels::FixIterationTally;

/// The column at which the description of a finding begins, if its place is short.
const FINDING_HEAD_COLUMNS: usize = 27;
/// A description with less room than this gets a line of its own.
const MIN_DESCRIPTION_COLUMNS: usize = 28;

/// Reports a run as lines of text.
#[derive(Debug)]
pub struct LineReporter<W> {
    writer: W,
    screen: Screen,
    mode: DisplayMode,
    run_view: RunView,
    fix_tally: FixIterationTally,
    challenge_progress: ChallengeProgress,
    rulings: RulingIndex,
    /// Findings of the patch that was refused last.
    refused_findings: Vec<FindingId>,
    /// Why tasks failed, by the key of the task.
    task_faults: BTreeMap<Key, String>,
    /// The files that the last landing changed, until they are written.
    landed_files: Vec<FileStat>,
    /// The wait that was reported last.
    last_wait: Option<String>,
    /// Whether anything was written yet; only then is a blank line useful as a separator.
    has_written: bool,
}

impl<W: Write> LineReporter<W> {
    pub fn new(writer: W, screen: Screen, mode: DisplayMode) -> LineReporter<W> {
        LineReporter {
            writer,
            screen,
            mode,
            run_view: RunView::default(),
            last_wait: None,
            fix_tally: FixIterationTally::default(),
            challenge_progress: ChallengeProgress::default(),
            rulings: RulingIndex::default(),
            refused_findings: Vec::new(),
            task_faults: BTreeMap::new(),
            landed_files: Vec::new(),
            has_written: false,
        }
    }

    pub(crate) fn set_mode(&mut self, mode: DisplayMode) {
        self.mode = mode;
    }

    pub(crate) fn set_screen(&mut self, screen: Screen) {
        self.screen = screen;
    }

    /// Writes one line behind `indent` blanks.
    fn write_line(&mut self, indent: usize, line_text: &str) -> io::Result<()> {
        self.has_written = true;
        writeln!(self.writer, "{:indent$}{line_text}", "")
    }

    /// Writes text that is wrapped behind `indent` blanks; further lines are indented by two more.
    fn write_wrapped(&mut self, indent: usize, style: TextStyle, plain_text: &str) -> io::Result<()> {
        let wrapped_text = self.screen.wrap_parts(indent, indent + 2, plain_text);
        let painted_text = self.screen.paint(style, &wrapped_text);
        self.write_line(0, &painted_text)
    }

    /// Writes a mark and text, wrapped behind `indent` blanks. Only the mark is painted.
    fn write_marked(&mut self, indent: usize, line_mark: LineMark, plain_text: &str) -> io::Result<()> {
        let LineMark { style, symbol } = line_mark;
        let wrapped_text = self.screen.wrap_hanging(indent, indent + 2, &format!("{symbol} {plain_text}"));
        // The text is wrapped before its first word is painted, because colour codes have no width.
        let painted_text = wrapped_text.replacen(symbol, &self.screen.paint(style, symbol), 1);
        self.write_line(0, &painted_text)
    }

    /// Writes a blank line, unless it would be the first line of the output.
    fn write_gap(&mut self) -> io::Result<()> {
        if self.has_written { writeln!(self.writer) } else { Ok(()) }
    }

    /// Writes the title of a run with its limits and agents.
    fn write_header(
        &mut self,
        journal_entry: &JournalEntry,
        settings: &Settings,
        build_version: &str,
    ) -> io::Result<()> {
        let title_text =
            format!("review of {} · run {} · {build_version}", settings.subject.title(), journal_entry.run);
        self.write_wrapped(0, TextStyle::Bold, &title_text)?;
        let limits_text = format!("limits: {}", phrases::describe_limits(&settings.limits));
        self.write_wrapped(0, TextStyle::Dim, &limits_text)?;
        let agent_names: Vec<&str> = settings.agents.iter().map(|agent| agent.name.as_str()).collect();
        let reserve_names: Vec<&str> = settings.reserves.iter().map(|agent| agent.name.as_str()).collect();
        let reserve_text = if reserve_names.is_empty() {
            String::new()
        } else {
            format!(" · in reserve: {}", reserve_names.join(", "))
        };
        let fix_note = if settings.fix { "" } else { ", review only" };
        let agents_text = format!(
            "agents: {}{reserve_text} · tier {} · goal {}{fix_note}",
            agent_names.join(", "),
            settings.tier,
            settings.goal
        );
        self.write_wrapped(0, TextStyle::Dim, &agents_text)
    }

    /// Writes the line of one seat: mark, name, text.
    fn write_seat_line(&mut self, line_mark: LineMark, seat_name: &str, seat_text: &str) -> io::Result<()> {
        let painted_symbol = self.screen.paint(line_mark.style, line_mark.symbol);
        // The user has to know all of a failure; anything else fits or can be cut.
        let seat_text = match line_mark {
            LineMark::FAILED => self.screen.wrap_text(18, seat_text).trim_start().to_string(),
            _ => self.screen.fit_text(19, seat_text),
        };
        self.write_line(2, &format!("{painted_symbol} {seat_name:<14}{seat_text}"))
    }

    /// Names the agent, ` · codex`, if the run has several.
    fn agent_suffix(&self, agent_name: &AgentName) -> String {
        let has_several_agents = self.run_view.settings.as_ref().is_some_and(|settings| settings.agents.len() > 1);
        if has_several_agents { format!(" · {agent_name}") } else { String::new() }
    }

    /// Writes a raised finding, and below it who else raised it or why it was dismissed at once.
    fn write_finding(&mut self, finding: &Finding) -> io::Result<()> {
        // In a review of one document the line number is enough; in a change the file has to be named.
        let is_change_set =
            self.run_view.settings.as_ref().is_some_and(|settings| settings.subject.file_path().is_none());
        let place_text = match &finding.place {
            Some(place) if is_change_set => format!("{}  ", clean_line(&place.to_string())),
            Some(place) => format!("line {}", place.line),
            None => String::new(),
        };
        let raiser_roles: Vec<&str> = finding.raisers.iter().map(|raiser| raiser.role.as_str()).collect();
        let line_head = format!("{:<4}{:<9}{place_text:<10}", finding.id.to_string(), finding.severity.as_str());
        let head_columns = 4 + display_width(&line_head);
        let has_room = self.screen.fits_line(head_columns + MIN_DESCRIPTION_COLUMNS);
        // Text below the head starts at the column of the description, or further left if there is no room for it there.
        let indent = if has_room {
            let fitted_text = self.screen.fit_text(head_columns, &finding.description);
            let line_head = self.screen.paint_severity(finding.severity, &line_head);
            self.write_line(4, &format!("{line_head}{fitted_text}"))?;
            FINDING_HEAD_COLUMNS
        } else {
            let line_head = self.screen.paint_severity(finding.severity, line_head.trim_end());
            self.write_line(4, &line_head)?;
            let fitted_text = self.screen.fit_text(8, &finding.description);
            self.write_line(8, &fitted_text)?;
            8
        };
        let second_text = match &finding.status {
            FindingStatus::Dismissed { why: DismissalReason::Ungrounded } => {
                format!("dismissed: {}", finding.last_note())
            }
            _ if raiser_roles.len() > 1 => format!("raised by {}", raiser_roles.join(" and ")),
            _ => return Ok(()),
        };
        let second_text = self.screen.paint(TextStyle::Dim, &self.screen.wrap_text(indent, &second_text));
        self.write_line(0, &second_text)
    }

    /// Writes events of a review round.
    fn write_round_event(&mut self, run_event: &RunEvent) -> io::Result<()> {
        match run_event {
            RunEvent::LevelChosen { level, why: reason, panel } => {
                let seat_names: Vec<&str> = panel.iter().map(|role| role.as_str()).collect();
                let line_text = format!("panel: {} ({level}: {reason})", seat_names.join(", "));
                self.write_wrapped(0, TextStyle::Plain, &line_text)
            }
            RunEvent::RoundStarted { round, of: max_rounds, .. } => {
                let title_text = self.screen.paint(TextStyle::Bold, &format!("round {round} of at most {max_rounds}"));
                self.write_gap()?;
                self.write_line(0, &title_text)
            }
            RunEvent::SeatAnswered { role, agent: agent_name, raised: raised_count, .. } => {
                let line_text = phrases::describe_raised(*raised_count) + &self.agent_suffix(agent_name);
                self.write_seat_line(LineMark::DONE, role.as_str(), &line_text)
            }
            RunEvent::SeatIncomplete { role, fault, .. } => {
                self.write_seat_line(LineMark::FAILED, role.as_str(), &format!("failed: {fault}"))
            }
            RunEvent::ChallengerAnswered {
                key: task_key, agent: agent_name, silent: silent_findings, fault, ..
            } => match fault {
                Some(fault) => self.write_challenger_failure(task_key, fault),
                None => self.write_challenger_answer(task_key, agent_name, silent_findings),
            },
            RunEvent::FindingRuled { finding: finding_id, .. } => self.write_ruling(*finding_id),
            RunEvent::DecisionPosted { decision } if matches!(decision.about, DecisionTopic::Disputed { .. }) => {
                self.write_disputed_decision(decision)
            }
            RunEvent::DecisionPosted { decision } => match &decision.about {
                DecisionTopic::Patch { rejected_in: Some(earlier_id), .. } => {
                    let decision_id = &decision.id;
                    let line_text = format!("{decision_id}: the same patch as in {earlier_id}, which you rejected");
                    self.write_marked(2, LineMark::WARNING, &line_text)
                }
                _ => Ok(()),
            },
            RunEvent::RoundEnded { new: new_findings, dry: is_dry, counts, .. } => {
                // Upheld findings are collected during the round and written in one line before its result.
                self.write_upheld_findings()?;
                let line_text = phrases::describe_round(*new_findings, *is_dry, counts);
                self.write_wrapped(2, TextStyle::Bold, &line_text)
            }
            // `tribunal status` shows how the score came about.
            RunEvent::ConfidenceCalculated { confidence, .. } => {
                self.write_wrapped(2, TextStyle::Dim, &phrases::describe_score(confidence))
            }
            _ => Ok(()),
        }
    }

    /// Writes the ending: outcome, counts, what is left of the limits, open decisions and suggested commands.
    fn write_ending(&mut self, summary: &RunSummary) -> io::Result<()> {
        let (outcome_style, outcome_word) = describe_outcome(summary.outcome);
        let ending_text = format!("{outcome_word}: {}", phrases::describe_ending(summary));
        // The text is wrapped before its first word is painted, because colour codes have no width. Further lines are
        // indented more than the counts below.
        let wrapped_text = self.screen.wrap_hanging(0, 4, &ending_text);
        let painted_word = self.screen.paint(outcome_style, outcome_word);
        self.write_gap()?;
        self.write_line(0, &wrapped_text.replacen(outcome_word, &painted_word, 1))?;
        let confidence_text =
            self.run_view.confidence.as_ref().map(|score_card| format!(" · {}", phrases::describe_score(score_card)));
        let confidence_text = confidence_text.unwrap_or_default();
        let tally_text = format!(
            "{} · {}{confidence_text}",
            phrases::describe_counts(&summary.findings),
            phrases::describe_spending(summary)
        );
        self.write_wrapped(2, TextStyle::Plain, &tally_text)?;
        // Only a run that one limit halted records what the other limits would still have allowed.
        if let Some(remaining) = &summary.left {
            let remaining_text = format!("remaining: {}", phrases::describe_remaining(remaining));
            self.write_wrapped(2, TextStyle::Plain, &remaining_text)?;
        }
        if let Some(tracker_path) = &self.run_view.tracker_path {
            let tracker_path = escape_line(tracker_path);
            self.write_line(2, &format!("tracker: {tracker_path}"))?;
        }
        let decision_texts: Vec<String> = self
            .run_view
            .open_decisions()
            .map(|open_decision| format!("{}: {}", open_decision.id, open_decision.question))
            .collect();
        for decision_text in decision_texts {
            self.write_wrapped(2, TextStyle::Plain, &format!("question {decision_text}"))?;
        }
        let next_steps = collect_next_steps(&self.run_view, &self.screen.program_name);
        let steps_text = render_next_steps(&next_steps, &self.screen);
        self.writer.write_all(steps_text.as_bytes())
    }

    /// Writes a wait for a usage limit. Many tasks may wait for the same one; it is reported once.
    fn write_wait(&mut self, wait_text: &str) -> io::Result<()> {
        // The remaining time in parentheses differs from task to task, so it is not compared.
        let wait_subject = wait_text.split(" (").next().unwrap_or(wait_text).to_string();
        if self.last_wait.as_ref() == Some(&wait_subject) {
            return Ok(());
        }
        self.last_wait = Some(wait_subject);
        self.write_marked(2, LineMark::WARNING, wait_text)
    }

    /// Writes the lines of an entry as the `streaming` mode shows them.
    fn write_entry(&mut self, journal_entry: &JournalEntry) -> io::Result<()> {
        match &journal_entry.event {
            RunEvent::RunStarted { settings, build: build_version, .. } => {
                self.write_header(journal_entry, settings, build_version)
            }
            RunEvent::RunResumed { life: start_number } => self.write_resumption(journal_entry, *start_number),
            RunEvent::SettingsChanged { .. } => self.write_line(2, "settings reloaded"),
            RunEvent::EffectStarted {
                effect: Effect::AwaitReset(AwaitReset { agent: agent_name, until_ms, .. }),
                ..
            } => self.write_wait(&phrases::describe_wait(agent_name, *until_ms, journal_entry.at.wall_ms)),
            RunEvent::EffectStarted { key: effect_key, effect, .. } => self.write_retry(effect_key, effect),
            RunEvent::EffectFinished { reply: Reply::Inbox(inbox) | Reply::Wait(inbox), .. } => {
                self.write_requests(&inbox.requests)
            }
            RunEvent::FindingRaised { finding } => self.write_finding(finding),
            RunEvent::DecisionAnswered { decision, answer } => self.write_decision_answer(decision, answer),
            RunEvent::Warned { text: warning } => self.write_marked(2, LineMark::WARNING, warning),
            RunEvent::RunParked(summary) | RunEvent::RunFinished(summary) => self.write_ending(summary),
            RunEvent::Session(session_event) => {
                // Only the journal of a loop begins with a session; that of a review begins with the run.
                if journal_entry.seq == 1 {
                    self.write_wrapped(0, TextStyle::Bold, &format!("loop {}", journal_entry.run))?;
                }
                let line_text = self.screen.fit_text(13, &session_text::describe_session_event(session_event));
                self.write_line(2, &format!("session: {line_text}"))
            }
            RunEvent::LevelChosen { .. }
            | RunEvent::RoundStarted { .. }
            | RunEvent::SeatAnswered { .. }
            | RunEvent::SeatIncomplete { .. }
            | RunEvent::ChallengerAnswered { .. }
            | RunEvent::FindingRuled { .. }
            | RunEvent::DecisionPosted { .. }
            | RunEvent::RoundEnded { .. }
            | RunEvent::ConfidenceCalculated { .. } => self.write_round_event(&journal_entry.event),
            _ => self.write_fix_event(&journal_entry.event),
        }
    }

    /// Writes that a run was resumed, and the waits for usage limits that it continues with.
    fn write_resumption(&mut self, journal_entry: &JournalEntry, start_number: u32) -> io::Result<()> {
        let subject_title = self.run_view.settings.as_ref().map(|settings| settings.subject.title());
        let line_text = format!(
            "run {} resumed · review of {} (process {start_number})",
            journal_entry.run,
            subject_title.unwrap_or_default()
        );
        self.write_wrapped(0, TextStyle::Bold, &line_text)?;
        // Waits that began in an earlier process are still under way.
        let wait_texts: Vec<String> = self
            .run_view
            .limited_agents()
            .map(|(agent_name, until_ms)| phrases::describe_wait(agent_name, until_ms, journal_entry.at.wall_ms))
            .collect();
        wait_texts.iter().try_for_each(|wait_line| self.write_wait(wait_line))
    }

    /// Writes how a decision was answered, or that it is withdrawn.
    fn write_decision_answer(&mut self, decision_id: &DecisionId, answer: &DecisionAnswer) -> io::Result<()> {
        let answer_text = match answer.is_withdrawn() {
            true => format!("{decision_id} withdrawn: {}", answer.note),
            false => format!("{decision_id} answered: {}", answer.choice),
        };
        self.write_wrapped(2, TextStyle::Plain, &answer_text)
    }

    /// Updates what later lines depend on. This happens in every mode, since the user may change it at any time.
    fn track_entry(&mut self, journal_entry: &JournalEntry) {
        self.run_view.apply_entry(journal_entry);
        self.fix_tally.track_event(&journal_entry.event);
        self.challenge_progress.track_event(&journal_entry.event);
        self.rulings.track_event(&journal_entry.event);
        if let RunEvent::EffectFinished { key: effect_key, reply: effect_reply, .. } = &journal_entry.event
            && let Some(fault) = effect_reply.fault()
        {
            self.task_faults.insert(effect_key.task_key(), fault.detail.clone());
        }
        if let RunEvent::EffectFinished { reply: effect_reply, .. } = &journal_entry.event {
            let subject = self.run_view.settings.as_ref().map(|settings| &settings.subject);
            if let Some(landed_files) = list_landed_files(effect_reply, subject) {
                self.landed_files = landed_files;
            }
        }
    }

    /// Writes what the user said into the inbox.
    fn write_requests(&mut self, requests: &[UserRequest]) -> io::Result<()> {
        for request in requests {
            if let UserRequest::Say(remark) = request {
                self.write_wrapped(2, TextStyle::Plain, &format!("you said: {remark}"))?;
            }
        }
        Ok(())
    }

    /// Writes that a task is tried a second time, with the reason.
    fn write_retry(&mut self, effect_key: &Key, effect: &Effect) -> io::Result<()> {
        match effect {
            Effect::Ask(AskAgent { task: AgentTask { brief: task_brief, .. } }) if effect_key.is_second_try() => {
                // A correction tells the agent what was wrong with its answer; without one the call itself failed.
                let retry_text = match (task_brief.correction.as_str(), self.task_faults.get(&effect_key.task_key())) {
                    ("", Some(reason)) => format!("retrying: {reason}"),
                    ("", None) => "retrying".to_string(),
                    (reason, _) => format!("asking again: {reason}"),
                };
                let seat_name =
                    self.challenge_progress.challenger_name(effect_key).unwrap_or_else(|| task_brief.role.to_string());
                self.write_seat_line(LineMark::RETRIED, &seat_name, &retry_text)
            }
            Effect::Ask(AskAgent { task: AgentTask { brief: task_brief, .. } }) if effect_key.is_after_wait() => {
                let seat_name =
                    self.challenge_progress.challenger_name(effect_key).unwrap_or_else(|| task_brief.role.to_string());
                self.write_seat_line(LineMark::RETRIED, &seat_name, "asking again: the usage limit should be reset")
            }
            _ => Ok(()),
        }
    }
}

impl LineReporter<Vec<u8>> {
    /// Takes what was drawn since the last call.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.writer)
    }
}

impl<W: Write> Reporter for LineReporter<W> {
    fn report_entry(&mut self, journal_entry: &JournalEntry) -> io::Result<()> {
        self.track_entry(journal_entry);
        match self.mode {
            DisplayMode::Silent => match &journal_entry.event {
                // Even a silent run says why it stands still.
                RunEvent::Warned { .. }
                | RunEvent::EffectStarted { effect: Effect::AwaitReset(_), .. }
                | RunEvent::RunParked(_)
                | RunEvent::RunFinished(_) => self.write_entry(journal_entry),
                _ => Ok(()),
            },
            DisplayMode::Summary => self.write_stage_summary(journal_entry),
            DisplayMode::Streaming => self.write_entry(journal_entry),
            DisplayMode::Verbose => {
                self.write_effect_line(&journal_entry.event)?;
                self.write_entry(journal_entry)
            }
        }
    }

    fn note_past_entry(&mut self, journal_entry: &JournalEntry) {
        self.track_entry(journal_entry);
    }

    fn report_progress(&mut self, progress: &AgentProgress) -> io::Result<()> {
        if self.mode < DisplayMode::Streaming {
            return Ok(());
        }
        let worker_name = match (progress.task_key.fixer_number(), progress.task_key.reviewer_role()) {
            (Some(fixer_number), _) => format!("fixer {fixer_number}"),
            (_, Some(role)) => role.to_string(),
            _ => self
                .challenge_progress
                .challenger_name(&progress.task_key)
                .unwrap_or_else(|| progress.task_key.to_string()),
        };
        let worker_name = clean_line(&worker_name);
        let progress_text = self.screen.fit_text(19, &progress.activity);
        let progress_line = self.screen.paint(TextStyle::Dim, &format!("· {worker_name:<14}{progress_text}"));
        self.write_line(2, &progress_line)
    }
}
