//! The commands that the user is likely to type next, and how they are listed below a run.

use tribunal_core::{
    decisions::decision::Decision,
    engine::{
        ids::RunId,
        reason::{RunOutcome, RunReason},
        view::{RunPhase, RunView},
    },
};

use crate::{
    cause_advice::advise_on_causes,
    run_standing::{RunStanding, RunState},
    style::{Screen, TextStyle},
    terminal_text::{display_width, escape_line},
};

/// The column at which commands begin.
const COMMAND_INDENT: usize = 8;

/// A command, with a short explanation if it needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextStep {
    pub command: String,
    pub explanation: String,
}

impl NextStep {
    pub(crate) fn new(command: String, explanation: impl Into<String>) -> NextStep {
        NextStep { command, explanation: explanation.into() }
    }
}

/// Suggests the commands that the user is likely to type next, each with its explanation in parentheses.
pub fn suggest_next_steps(run_standing: &RunStanding<'_>, program_name: &str) -> Vec<String> {
    let format_step = |next_step: NextStep| match next_step.explanation.as_str() {
        "" => next_step.command,
        explanation => format!("{}    ({explanation})", next_step.command),
    };
    collect_standing_steps(run_standing, program_name).into_iter().map(format_step).collect()
}

/// Collects the commands that follow from the journal, and those that follow from whether a process works on the run.
pub(crate) fn collect_standing_steps(run_standing: &RunStanding<'_>, program_name: &str) -> Vec<NextStep> {
    let run_view = run_standing.run_view;
    let mut suggested_steps = match run_standing.run_state() {
        RunState::Crashed => crash_steps(run_view, program_name),
        RunState::Running => running_steps(run_view, program_name),
        RunState::Stopped | RunState::Ended(_) => Vec::new(),
    };
    suggested_steps.extend(collect_next_steps(run_view, program_name));
    suggested_steps
}

/// Collects the commands that the user is likely to type next.
pub(crate) fn collect_next_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    let run_step =
        |command: &str, explanation: &str| NextStep::new(format!("{program_name} {command} {run_id}"), explanation);
    // Open decisions come first: a resume without an answer would stop at the same question again.
    let open_decisions = run_view.open_decisions();
    let mut steps: Vec<NextStep> = open_decisions.map(|decision| answer_step(run_id, decision, program_name)).collect();
    match &run_view.phase {
        RunPhase::Parked(summary) if summary.reason == RunReason::InSession => {
            // Usually the session comes back by itself; the open decision is for the case that it does not.
            steps.insert(0, run_step("resume", "once the session has fixed the open findings"));
        }
        RunPhase::Parked(summary) => {
            let has_failed = summary.outcome == Some(RunOutcome::Failed);
            let cause_advice = advise_on_causes(run_id, &summary.causes, program_name);
            // Without a known cause the doctor may find one.
            if has_failed && (cause_advice.steps.is_empty() && cause_advice.resume_note.is_empty()) {
                steps.push(NextStep::new(format!("{program_name} doctor"), "check agents and environment"));
            }
            steps.extend(cause_advice.steps);
            let resume_note = match (cause_advice.resume_note.as_str(), has_failed) {
                ("", true) => "add --reload for changed settings",
                (resume_note, _) => resume_note,
            };
            steps.push(run_step("resume", resume_note));
            if has_failed {
                steps.push(run_step("discard", "give up this run"));
            }
        }
        // A running or finished run needs no command to go on.
        RunPhase::Running | RunPhase::Finished(_) => {}
    }
    let outcome = run_view.run_summary().and_then(|summary| summary.outcome);
    let counts = run_view.finding_counts();
    // Even without open findings the user may want to see what was fixed.
    if outcome == Some(RunOutcome::Resolved) || counts.open > 0 {
        steps.push(run_step("findings", ""));
    }
    // Only applied patches fix findings. The counts are known even where the run was read in outline.
    if outcome.is_some() && counts.fixed > 0 {
        steps.push(run_step("diff", ""));
        steps.push(run_step("undo", "preview; add --yes to undo"));
    }
    if outcome == Some(RunOutcome::Resolved) {
        steps.push(run_step("log", ""));
    }
    steps
}

/// The commands for a run that has crashed. Only its lock tells that, so the journal's own suggestions leave them out.
fn crash_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    vec![
        NextStep::new(format!("{program_name} resume {run_id}"), ""),
        NextStep::new(format!("{program_name} discard {run_id}"), "give up this run"),
    ]
}

/// The commands for a run that a process works on. Its lock tells that, and not its journal.
fn running_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    vec![
        NextStep::new(format!("{program_name} log {run_id} --follow"), "watch it"),
        NextStep::new(format!("{program_name} say {run_id} \"MESSAGE\""), "tell its agents something"),
        NextStep::new(format!("{program_name} stop {run_id}"), "it can be resumed"),
    ]
}

/// The command with which the user answers: `tribunal decisions RUN.D1 ANSWER`, with the possible answers.
pub(crate) fn answer_step(run_id: &RunId, decision: &Decision, program_name: &str) -> NextStep {
    let choice_keys: Vec<&str> = decision.choices.iter().map(|choice| choice.key.as_str()).collect();
    let command = format!("{program_name} decisions {run_id}.{} ANSWER", decision.id);
    NextStep::new(command, choice_keys.join(", "))
}

/// Renders the list: `next:` and one command per line. Commands are escaped but neither wrapped nor cut, because the user
/// copies them; an explanation that does not fit behind its command goes below it.
pub(crate) fn render_next_steps(next_steps: &[NextStep], screen: &Screen) -> String {
    let mut rendered = String::new();
    for (step_index, step_text) in render_commands(next_steps, COMMAND_INDENT, screen).into_iter().enumerate() {
        let step_lead = if step_index == 0 { "  next: " } else { "        " };
        rendered.push_str(&format!("{step_lead}{}\n", step_text.trim_start()));
    }
    rendered
}

/// Renders each command with its explanation, both indented.
pub(crate) fn render_commands(next_steps: &[NextStep], indent: usize, screen: &Screen) -> Vec<String> {
    let commands: Vec<String> = next_steps.iter().map(|next_step| escape_line(&next_step.command)).collect();
    let explained_widths = next_steps
        .iter()
        .zip(&commands)
        .filter(|(next_step, _)| !next_step.explanation.is_empty())
        .map(|(_, command)| display_width(command));
    // Explanations line up behind the longest command that has one.
    let command_columns = explained_widths.max().unwrap_or_default();
    let margin = " ".repeat(indent);
    let render_step = |(next_step, command): (&NextStep, &String)| {
        let explanation = format!("({})", next_step.explanation);
        if next_step.explanation.is_empty() {
            format!("{margin}{command}")
        } else if screen.fits_line(indent + command_columns + 2 + display_width(&explanation)) {
            let padding = command_columns + 2 - display_width(command);
            format!("{margin}{command}{:padding$}{}", "", screen.paint(TextStyle::Dim, &explanation))
        } else {
            let explanation = screen.paint(TextStyle::Dim, &screen.wrap_text(indent + 2, &explanation));
            format!("{margin}{command}\n{explanation}")
        }
    };
    next_steps.iter().zip(&commands).map(render_step).collect()
}
