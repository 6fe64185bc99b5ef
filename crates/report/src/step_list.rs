//! A list of commands for the user, and how it is drawn. [`crate::next_steps`] decides which commands are in it.

use tribunal_engine::ids::RunId;
use tribunal_workflows::runs::types::Decision;

use crate::{
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

    /// The command with its explanation in parentheses, for programs and documents.
    pub(crate) fn to_line(&self) -> String {
        match self.explanation.as_str() {
            "" => self.command.clone(),
            explanation => format!("{}    ({explanation})", self.command),
        }
    }
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

/// The command that takes work from a branch of its own.
pub(crate) fn merge_command(branch: &str) -> String {
    format!("git merge {branch}")
}

/// The step that takes work from a branch of its own, where it waits.
pub(crate) fn merge_step(branch: &str) -> NextStep {
    NextStep::new(merge_command(branch), "take the work, once nothing of yours is in the way")
}
