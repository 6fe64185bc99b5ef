//! Draws a run as readable lines, as many as its [`DisplayMode`] asks for.
//!
//! What every run has is drawn here; events of its workflow are drawn by the reporter of its kind ([`crate::kind_table`]).

mod detail_levels;

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tribunal_engine::{
    answer::DecisionAnswer,
    ids::{DecisionId, Key, RunId},
    progress::AgentProgress,
};
use tribunal_workflows::{
    runs::{
        effect::{AskAgent, Effect, Reply},
        kinds::{RunOrder, WorkflowEvent},
        run_kind::RunDriver,
        settings::{AgentSpec, Settings},
        types::{JournalEntry, RunEvent, RunSummary, StartChild},
        user_request::UserRequest,
        view::RunView,
    },
    session::{SessionEvent, SessionRecord},
};

use crate::{
    DisplayMode, Reporter, clean_line,
    kind_table::{self, RunLines},
    line_buffer::LineBuffer,
    multi_run::describe_outcome,
    next_steps::collect_next_steps,
    phrases,
    run_text::{describe_ending, describe_run, describe_totals},
    session::describe_session_event,
    step_list::render_next_steps,
    style::{LineMark, Screen, TextStyle},
};

/// Reports a run as lines of text.
#[derive(Debug)]
pub struct LineReporter<W> {
    writer: W,
    lines: LineBuffer,
    mode: DisplayMode,
    run_view: RunView,
    run_lines: RunLines,
    /// Why tasks failed, by the key of the task.
    task_faults: BTreeMap<Key, String>,
    /// The names of child runs, by the keys of the effects that run them.
    child_names: BTreeMap<Key, String>,
    /// The wait that was reported last.
    last_wait: Option<String>,
}

impl<W: Write> LineReporter<W> {
    pub fn new(writer: W, screen: Screen, mode: DisplayMode) -> LineReporter<W> {
        LineReporter {
            writer,
            lines: LineBuffer::new(screen),
            mode,
            run_view: RunView::default(),
            run_lines: RunLines::default(),
            task_faults: BTreeMap::new(),
            child_names: BTreeMap::new(),
            last_wait: None,
        }
    }

    pub(crate) fn set_mode(&mut self, mode: DisplayMode) {
        self.mode = mode;
    }

    pub(crate) fn set_screen(&mut self, screen: Screen) {
        self.lines.screen = screen;
    }

    /// Writes what was drawn.
    fn flush_lines(&mut self) -> io::Result<()> {
        let drawn_text = self.lines.take_text();
        if drawn_text.is_empty() { Ok(()) } else { self.writer.write_all(drawn_text.as_bytes()) }
    }

    /// Updates what later lines depend on. This happens in every mode, since the user may change it at any time.
    fn track_entry(&mut self, journal_entry: &JournalEntry) {
        let run_event = &journal_entry.event;
        self.run_view.apply_entry(journal_entry);
        self.run_lines.track_event(run_event, &self.run_view);
        match run_event {
            RunEvent::EffectStarted { key: effect_key, effect, .. } => {
                if let Some(run_child) = effect.child_request() {
                    self.child_names.insert(effect_key.clone(), run_child.name.clone());
                }
            }
            RunEvent::EffectFinished { key: effect_key, reply: effect_reply, .. } => {
                if let Some(fault) = effect_reply.fault() {
                    self.task_faults.insert(effect_key.task_key(), fault.detail.clone());
                }
            }
            _ => {}
        }
    }

    /// Draws the lines of an entry as the `streaming` mode shows them.
    fn draw_entry(&mut self, journal_entry: &JournalEntry) {
        match &journal_entry.event {
            RunEvent::RunStarted { settings, order, build, .. } => {
                self.draw_header(journal_entry, settings, order, build)
            }
            RunEvent::RunResumed { life: start_number } => self.draw_resumption(journal_entry, *start_number),
            RunEvent::SettingsChanged { .. } => self.lines.write_line(2, "settings reloaded"),
            RunEvent::EffectStarted { key: effect_key, effect, .. } => {
                self.draw_started_effect(journal_entry, effect_key, effect);
            }
            RunEvent::EffectFinished { key: effect_key, reply: effect_reply, .. } => match effect_reply {
                Reply::RunChild(outcome) => {
                    // The start of the effect is always before its end; the key is a fallback for a part of a journal.
                    let child_name = self.child_names.get(effect_key).map_or(effect_key.as_str(), String::as_str);
                    self.lines.write_child_end(child_name, outcome);
                }
                reply => self.draw_requests(reply.user_requests()),
            },
            RunEvent::ChildStarted { name, child, .. } => self.draw_started_child(name, child),
            RunEvent::ChildReturned(returned) => self.lines.write_child_end(&returned.name, &returned.outcome),
            RunEvent::DecisionPosted { decision } => {
                self.run_lines.write_decision(decision, &self.run_view, &mut self.lines);
            }
            RunEvent::DecisionAnswered { decision, answer } => self.draw_decision_answer(decision, answer),
            RunEvent::Warned { text: warning } | RunEvent::WordIgnored { text: warning } => {
                self.lines.write_marked(2, LineMark::WARNING, warning);
            }
            RunEvent::RunParked(summary) | RunEvent::RunFinished(summary) => self.draw_ending(summary),
            RunEvent::Workflow(WorkflowEvent::Session(SessionRecord::Session(session_event))) => {
                self.draw_session_event(session_event)
            }
            RunEvent::Workflow(event) => self.run_lines.write_event(event, &self.run_view, &mut self.lines),
            RunEvent::ChildUsage { .. }
            | RunEvent::Boundary { .. }
            | RunEvent::Patched { .. }
            | RunEvent::Unknown(_) => {}
        }
    }

    /// Draws the title of a run: what it is about, its id and, if it has one, its parent.
    fn draw_title(&mut self, run_id: &RunId, order: &RunOrder, build_version: Option<&str>) {
        let title_text = format!("{} · run {run_id}", describe_run(order));
        let parent_text = self.run_view.parent.as_ref().map(|parent| format!("child of {}", parent.run));
        let title_parts = [Some(title_text.as_str()), parent_text.as_deref(), build_version];
        self.lines.write_wrapped(0, TextStyle::Bold, &phrases::join_parts(title_parts.into_iter().flatten()));
    }

    /// Draws the title of a run with its limits and agents.
    fn draw_header(&mut self, journal_entry: &JournalEntry, settings: &Settings, order: &RunOrder, build: &str) {
        self.draw_title(&journal_entry.run, order, Some(build));
        // A session of the user has neither agents of ours nor limits.
        if order.run_driver() == RunDriver::Session {
            return;
        }
        let limits_text = phrases::describe_limits(&kind_table::list_limits(order), &settings.limits);
        let child_limits = kind_table::describe_child_limits(order);
        // Where several limits hold at once, each line says whose they are.
        let limits_label = match settings.limits.share.is_some() || child_limits.is_some() {
            true => format!("{} limits", kind_table::kind_word(order)),
            false => "limits".to_string(),
        };
        self.lines.write_wrapped(0, TextStyle::Dim, &format!("{limits_label}: {limits_text}"));
        if let Some(child_limits) = child_limits {
            self.lines.write_wrapped(0, TextStyle::Dim, &child_limits);
        }
        let join_names =
            |agents: &[AgentSpec]| agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ");
        let mut agent_parts = vec![format!("agents: {}", join_names(&settings.agents))];
        if !settings.reserves.is_empty() {
            agent_parts.push(format!("in reserve: {}", join_names(&settings.reserves)));
        }
        agent_parts.push(format!("tier {}", settings.tier));
        agent_parts.extend(kind_table::list_order_facts(order));
        self.lines.write_wrapped(0, TextStyle::Dim, &agent_parts.join(" · "));
    }

    /// Draws that a run was resumed, and the waits for usage limits that it continues with.
    fn draw_resumption(&mut self, journal_entry: &JournalEntry, start_number: u32) {
        let run_text = self.run_view.order.as_ref().map(describe_run).unwrap_or_default();
        let line_text = format!("run {} resumed · {run_text} (process {start_number})", journal_entry.run);
        self.lines.write_wrapped(0, TextStyle::Bold, &line_text);
        // Waits that began in an earlier process are still under way.
        let wait_texts: Vec<String> = self
            .run_view
            .limited_agents()
            .map(|(agent_name, until_ms)| phrases::describe_usage_limit(agent_name, until_ms, journal_entry.at.wall_ms))
            .collect();
        wait_texts.iter().for_each(|wait_text| self.draw_wait(wait_text));
    }

    /// Draws the ending: outcome, result, what is left of the limits, open decisions and suggested commands.
    fn draw_ending(&mut self, summary: &RunSummary) {
        let (outcome_style, outcome_word) = describe_outcome(summary.outcome);
        let ending_text = format!("{outcome_word}: {}", describe_ending(summary));
        // The text is wrapped before its first word is painted, because colour codes have no width. Further lines are
        // indented more than the counts below.
        let wrapped_text = self.lines.screen.wrap_hanging(0, 4, &ending_text);
        let painted_word = self.lines.screen.paint(outcome_style, outcome_word);
        self.lines.write_gap();
        self.lines.write_line(0, &wrapped_text.replacen(outcome_word, &painted_word, 1));
        let mut tally_parts = vec![describe_totals(summary)];
        tally_parts.extend(kind_table::list_closing_facts(&self.run_view));
        self.lines.write_wrapped(2, TextStyle::Plain, &tally_parts.join(" · "));
        // Only a run that one limit halted records what the other limits would still have allowed.
        if let Some(remaining) = &summary.left {
            let remaining_text = kind_table::describe_remaining(&summary.result, remaining);
            self.lines.write_wrapped(2, TextStyle::Plain, &format!("remaining: {remaining_text}"));
        }
        for file_line in kind_table::list_file_lines(&self.run_view) {
            self.lines.write_whole_line(2, &file_line);
        }
        for open_decision in self.run_view.open_decisions() {
            let question_text = format!("question {}: {}", open_decision.id, open_decision.question);
            self.lines.write_wrapped(2, TextStyle::Plain, &question_text);
        }
        let next_steps = collect_next_steps(&self.run_view, &self.lines.screen.program_name);
        let steps_text = render_next_steps(&next_steps, &self.lines.screen);
        self.lines.write_block(&steps_text);
    }

    /// Draws a wait for a usage limit. Many tasks may wait for the same one; it is reported once.
    fn draw_wait(&mut self, wait_text: &str) {
        // The remaining time in the last parentheses differs from task to task, so it is not compared.
        let wait_subject = wait_text.rsplit_once(" (").map_or(wait_text, |(subject, _)| subject).to_string();
        if self.last_wait.as_ref() != Some(&wait_subject) {
            self.last_wait = Some(wait_subject);
            self.lines.write_marked(2, LineMark::WARNING, wait_text);
        }
    }

    /// Draws what the user should know about an effect that begins: a wait, another try, a child that goes on.
    fn draw_started_effect(&mut self, journal_entry: &JournalEntry, effect_key: &Key, effect: &Effect) {
        match effect {
            Effect::AwaitReset(wait) => self.draw_wait(&phrases::describe_wait(wait, journal_entry.at.wall_ms)),
            Effect::Ask(ask_agent) => self.draw_retry(effect_key, ask_agent),
            // A child that begins has no id yet; `child_started` follows with it.
            Effect::RunChild(run_child) | Effect::StartChild(StartChild { child: run_child }) => {
                if let Some(standing) = self.run_view.children.get(&run_child.name) {
                    let line_text = format!("child run {} continues: {}", run_child.name, standing.run);
                    self.lines.write_marked(2, LineMark::STARTED, &line_text);
                }
            }
            _ => {}
        }
    }

    /// Draws that a task is tried a second time, with the reason.
    fn draw_retry(&mut self, effect_key: &Key, ask_agent: &AskAgent) {
        let AskAgent { task, booking } = ask_agent;
        let retry_text = if effect_key.is_second_try() {
            // A correction tells the agent what was wrong with its answer; without one the call itself failed.
            match (task.brief.correction_text(), self.task_faults.get(&effect_key.task_key())) {
                ("", Some(reason)) => format!("retrying: {reason}"),
                ("", None) => "retrying".to_string(),
                (reason, _) => format!("asking again: {reason}"),
            }
        } else if booking.is_some() {
            "asking now: a call is free".to_string()
        } else if effect_key.is_after_wait() {
            "asking again: the usage limit should be reset".to_string()
        } else {
            return;
        };
        let worker_name = self.run_lines.name_retried_worker(effect_key, task);
        self.lines.write_worker_line(LineMark::RETRIED, &worker_name, &retry_text);
    }

    fn draw_started_child(&mut self, child_name: &str, child: &RunId) {
        self.lines.write_marked(2, LineMark::STARTED, &format!("child run {child_name}: {child}"));
    }

    /// Draws how a decision was answered, or that it is withdrawn.
    fn draw_decision_answer(&mut self, decision_id: &DecisionId, answer: &DecisionAnswer) {
        let answer_text = match answer.is_withdrawn() {
            true => format!("{decision_id} withdrawn: {}", answer.note),
            false => format!("{decision_id} answered: {}", answer.choice),
        };
        self.lines.write_wrapped(2, TextStyle::Plain, &answer_text);
    }

    fn draw_session_event(&mut self, session_event: &SessionEvent) {
        let line_text = self.lines.screen.fit_text(13, &describe_session_event(session_event));
        self.lines.write_line(2, &format!("session: {line_text}"));
    }

    /// Draws what the user said into the inbox.
    fn draw_requests(&mut self, requests: &[UserRequest]) {
        for request in requests {
            if let UserRequest::Say(remark) = request {
                self.lines.write_wrapped(2, TextStyle::Plain, &format!("you said: {remark}"));
            }
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
        self.draw_at_level(journal_entry);
        self.flush_lines()
    }

    fn note_past_entry(&mut self, journal_entry: &JournalEntry) {
        self.track_entry(journal_entry);
    }

    fn report_progress(&mut self, progress: &AgentProgress) -> io::Result<()> {
        if self.mode < DisplayMode::Streaming || progress.is_output {
            return Ok(());
        }
        let worker_name = self.run_lines.name_worker(&progress.task_key);
        let worker_name = clean_line(&worker_name.unwrap_or_else(|| progress.task_key.to_string()));
        let progress_text = self.lines.screen.fit_text(19, &progress.activity);
        let progress_line = self.lines.screen.paint(TextStyle::Dim, &format!("· {worker_name:<14}{progress_text}"));
        self.lines.write_line(2, &progress_line);
        self.flush_lines()
    }
}
