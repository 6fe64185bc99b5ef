//! `tribunal inspect menu FILE`: lists the menus in an agent's text with their scores and reasons, what only looks
//! like a menu, and questions without one. What to answer is not decided here.

use std::{io::Write, path::Path};

use tribunal_bmad::menu::{self, MenuChoice, MenuDetection, OpenQuestion};
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;

use crate::{
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    terminal::wrapped_output::wrapped_stdout,
};

/// What was found in a text, in the order of its lines.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct MenuReport {
    schema: &'static str,
    /// The menus; the last one waits for an answer.
    menus: Vec<MenuRow>,
    /// Passages that look like a menu and are none.
    rejected: Vec<MenuRow>,
    /// Questions that wait for an answer and have no menu.
    questions: Vec<QuestionRow>,
    /// The number of earlier ones that are left out because there are too many.
    left_out: usize,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct MenuRow {
    /// The shape: vertical, horizontal, numbered, iteration, exit, glued, trailing, elicitation or lone.
    shape: String,
    first_line: usize,
    last_line: usize,
    options: Vec<OptionRow>,
    /// The score; a menu has at least 70.
    score: u32,
    reasons: Vec<ScoreReason>,
    /// The reasons why this is not a menu; empty if it is one.
    because: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct OptionRow {
    key: String,
    label: String,
    /// What the label means: continue, approve, advanced elicitation, party, yolo, exit, back, edit, fix, skip,
    /// validate, yes, no, other.
    meaning: String,
    line: usize,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ScoreReason {
    points: i32,
    why: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct QuestionRow {
    /// How it is asked: tag, agent, yes-no, key, named or prose.
    asked: String,
    text: String,
    line: usize,
    choices: Vec<OptionRow>,
}

pub(super) fn run(input_file: &Path, context: &CommandContext) -> Result<u8, UserError> {
    let agent_text = super::read_input(input_file, context)?;
    let detection = menu::detect_menus(&agent_text, &menu::MenuContext::default());
    let has_menu = !detection.menus.is_empty();
    let menu_report = MenuReport::from_detection(detection);
    if context.wants_json {
        json_documents::print_document(&menu_report)?;
    } else {
        print_menus(&mut wrapped_stdout(), &menu_report)?;
    }
    // A question alone is negative, too: scripts ask for a menu they can choose from.
    Ok(if has_menu { 0 } else { EXIT_NEGATIVE })
}

impl MenuReport {
    fn from_detection(detection: MenuDetection) -> MenuReport {
        let rejected_rows = detection.rejected.into_iter().map(|rejected| {
            let rejection_reasons = rejected.because.iter().map(|refusal| refusal.description().to_string());
            MenuRow { because: rejection_reasons.collect(), ..MenuRow::from_menu(rejected.menu) }
        });
        MenuReport {
            schema: "tribunal.menu/1",
            rejected: rejected_rows.collect(),
            menus: detection.menus.into_iter().map(MenuRow::from_menu).collect(),
            questions: detection.questions.into_iter().map(QuestionRow::from_question).collect(),
            left_out: detection.left_out,
        }
    }
}

impl MenuRow {
    fn from_menu(detected_menu: menu::Menu) -> MenuRow {
        // The shape and the meaning of options are written as serde names them.
        MenuRow {
            shape: serialized_name(&detected_menu.shape),
            first_line: detected_menu.lines.start,
            // The detector's range is half-open, users expect the last line to be included.
            last_line: detected_menu.lines.end.saturating_sub(1),
            options: detected_menu.options.into_iter().map(OptionRow::from_choice).collect(),
            score: detected_menu.score,
            reasons: detected_menu
                .reasons
                .into_iter()
                .map(|reason| ScoreReason { points: reason.points, why: reason.why })
                .collect(),
            because: Vec::new(),
        }
    }
}

impl OptionRow {
    fn from_choice(choice: MenuChoice) -> OptionRow {
        OptionRow { meaning: serialized_name(&choice.meaning), key: choice.key, label: choice.label, line: choice.line }
    }
}

impl QuestionRow {
    fn from_question(question: OpenQuestion) -> QuestionRow {
        QuestionRow {
            asked: serialized_name(&question.asked),
            text: question.text,
            line: question.line,
            choices: question.choices.into_iter().map(OptionRow::from_choice).collect(),
        }
    }
}

/// Returns the name by which serde writes a unit variant, so that terminal and JSON use the same words.
fn serialized_name(value: &impl Serialize) -> String {
    let json_value = serde_json::to_value(value).ok();
    json_value.and_then(|json_value| json_value.as_str().map(String::from)).unwrap_or_default()
}

fn print_menus(output: &mut impl Write, menu_report: &MenuReport) -> Result<(), UserError> {
    // The result comes first, and what was considered for it afterwards.
    if menu_report.menus.is_empty() {
        writeln!(output, "no menu")?;
    }
    for menu_row in &menu_report.menus {
        writeln!(output, "menu on {}, {}, score {}", format_line_range(menu_row), menu_row.shape, menu_row.score)?;
        print_options(output, &menu_row.options)?;
        print_reasons(output, menu_row)?;
    }
    // Rejected passages are shown with their scores, because this command exists to explain the detection.
    for menu_row in &menu_report.rejected {
        writeln!(
            output,
            "not a menu on {}, {}, score {}",
            format_line_range(menu_row),
            menu_row.shape,
            menu_row.score
        )?;
        for rejection_reason in &menu_row.because {
            writeln!(output, "  {rejection_reason}")?;
        }
        print_options(output, &menu_row.options)?;
        print_reasons(output, menu_row)?;
    }
    for question_row in &menu_report.questions {
        writeln!(
            output,
            "question on line {} ({}): {}",
            question_row.line,
            question_row.asked,
            escape_line(&question_row.text)
        )?;
        print_options(output, &question_row.choices)?;
    }
    if menu_report.left_out > 0 {
        writeln!(output, "note: {} earlier ones not shown", menu_report.left_out)?;
    }
    Ok(())
}

fn format_line_range(menu_row: &MenuRow) -> String {
    match menu_row.first_line == menu_row.last_line {
        true => format!("line {}", menu_row.first_line),
        false => format!("lines {} to {}", menu_row.first_line, menu_row.last_line),
    }
}

fn print_options(output: &mut impl Write, options: &[OptionRow]) -> Result<(), UserError> {
    for option_row in options {
        let OptionRow { key, label, meaning, .. } = option_row;
        // A lone key has no label of its own.
        let option_text = if label == key { format!("  {key}") } else { format!("  [{key}] {label}") };
        writeln!(output, "{} ({})", escape_line(option_text.trim_end()), escape_line(meaning))?;
    }
    Ok(())
}

fn print_reasons(output: &mut impl Write, menu_row: &MenuRow) -> Result<(), UserError> {
    for reason in &menu_row.reasons {
        writeln!(output, "  {:>+4} {}", reason.points, escape_line(&reason.why))?;
    }
    Ok(())
}
