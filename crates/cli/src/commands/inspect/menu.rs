//! `tribunal inspect menu FILE`: lists the menus in an agent's text with their scores and reasons, what only looks
//! like a menu, and questions without one. What to answer is not decided here.

use std::{
    io::{Write, stdout},
    path::Path,
};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_bmad::menu::{self, Choice, Detection, Question};
use tribunal_report::escaped;

use crate::{
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents,
};

/// What was found in a text, in the order of its lines.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Menus {
    schema: &'static str,
    /// The menus; the last one waits for an answer.
    menus: Vec<Menu>,
    /// Passages that look like a menu and are none.
    rejected: Vec<Menu>,
    /// Questions that wait for an answer and have no menu.
    questions: Vec<Asked>,
    /// The number of earlier ones that are left out because there are too many.
    left_out: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Menu {
    /// The shape: vertical, horizontal, numbered, iteration, exit, glued, trailing, elicitation or lone.
    shape: String,
    first_line: usize,
    last_line: usize,
    options: Vec<Offer>,
    /// The score; a menu has at least 70.
    score: u32,
    reasons: Vec<Reason>,
    /// The reasons why this is not a menu; empty if it is one.
    because: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Offer {
    key: String,
    label: String,
    /// What the label means: continue, approve, advanced elicitation, party, yolo, exit, back, edit, fix, skip,
    /// validate, yes, no, other.
    meaning: String,
    line: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Reason {
    points: i32,
    why: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Asked {
    /// How it is asked: tag, agent, yes-no, key, named or prose.
    asked: String,
    text: String,
    line: usize,
    choices: Vec<Offer>,
}

pub(super) fn run(file: &Path, context: &Context) -> Result<u8, Complaint> {
    let text = super::text_of(file, context)?;
    let found = menu::detect(&text, &menu::Context::default());
    let is_one = !found.menus.is_empty();
    let menus = Menus::of(found);
    if context.json {
        documents::print(&menus)?;
    } else {
        show(&mut stdout().lock(), &menus)?;
    }
    // A question alone is negative, too: scripts ask for a menu they can choose from.
    Ok(if is_one { 0 } else { NEGATIVE })
}

impl Menus {
    fn of(found: Detection) -> Menus {
        let rejected = found.rejected.into_iter().map(|rejected| {
            let because = rejected.because.iter().map(|refusal| refusal.says().to_string());
            Menu { because: because.collect(), ..Menu::of(rejected.menu) }
        });
        Menus {
            schema: "tribunal.menu/1",
            rejected: rejected.collect(),
            menus: found.menus.into_iter().map(Menu::of).collect(),
            questions: found.questions.into_iter().map(Asked::of).collect(),
            left_out: found.left_out,
        }
    }
}

impl Menu {
    fn of(menu: menu::Menu) -> Menu {
        // The shape and the meaning of options are written as serde names them.
        Menu {
            shape: word(&menu.shape),
            first_line: menu.lines.start,
            // The detector's range is half-open, users expect the last line to be included.
            last_line: menu.lines.end.saturating_sub(1),
            options: menu.options.into_iter().map(Offer::of).collect(),
            score: menu.score,
            reasons: menu
                .reasons
                .into_iter()
                .map(|reason| Reason { points: reason.points, why: reason.why })
                .collect(),
            because: Vec::new(),
        }
    }
}

impl Offer {
    fn of(choice: Choice) -> Offer {
        Offer { meaning: word(&choice.meaning), key: choice.key, label: choice.label, line: choice.line }
    }
}

impl Asked {
    fn of(question: Question) -> Asked {
        Asked {
            asked: word(&question.asked),
            text: question.text,
            line: question.line,
            choices: question.choices.into_iter().map(Offer::of).collect(),
        }
    }
}

/// Returns the name by which serde writes a unit variant, so that terminal and JSON use the same words.
fn word(value: &impl Serialize) -> String {
    let written = serde_json::to_value(value).ok();
    written.and_then(|value| value.as_str().map(String::from)).unwrap_or_default()
}

fn show(out: &mut impl Write, menus: &Menus) -> Result<(), Complaint> {
    // The result comes first, and what was considered for it afterwards.
    if menus.menus.is_empty() {
        writeln!(out, "no menu")?;
    }
    for menu in &menus.menus {
        writeln!(out, "menu in {}, {}, score {}", lines(menu), menu.shape, menu.score)?;
        show_options(out, &menu.options)?;
        show_reasons(out, menu)?;
    }
    // Rejected passages are shown with their scores, because this command exists to explain the detection.
    for menu in &menus.rejected {
        writeln!(out, "no menu in {}, {}, score {}", lines(menu), menu.shape, menu.score)?;
        for because in &menu.because {
            writeln!(out, "  {because}")?;
        }
        show_options(out, &menu.options)?;
        show_reasons(out, menu)?;
    }
    for question in &menus.questions {
        writeln!(
            out,
            "question in line {} ({}): {}",
            question.line,
            question.asked,
            escaped(&question.text)
        )?;
        show_options(out, &question.choices)?;
    }
    if menus.left_out > 0 {
        writeln!(out, "[i] {} earlier ones are not shown", menus.left_out)?;
    }
    Ok(())
}

fn lines(menu: &Menu) -> String {
    match menu.first_line == menu.last_line {
        true => format!("line {}", menu.first_line),
        false => format!("lines {} to {}", menu.first_line, menu.last_line),
    }
}

fn show_options(out: &mut impl Write, options: &[Offer]) -> Result<(), Complaint> {
    for option in options {
        let Offer { key, label, meaning, .. } = option;
        // A lone key has no label of its own.
        let shown = if label == key { format!("  {key}") } else { format!("  [{key}] {label}") };
        writeln!(out, "{} ({})", escaped(shown.trim_end()), escaped(meaning))?;
    }
    Ok(())
}

fn show_reasons(out: &mut impl Write, menu: &Menu) -> Result<(), Complaint> {
    for reason in &menu.reasons {
        writeln!(out, "  {:>+4} {}", reason.points, escaped(&reason.why))?;
    }
    Ok(())
}
