//! Which level a review would have and why, and the question that follows from it: whether to review at all.
//!
//! The question is asked on a terminal, about one subject that was reviewed before and has not changed since. What is new, or
//! started by a script, is reviewed as recommended.

use std::io::{Write, stderr};

use tribunal_engine::ids::Hash;
use tribunal_report::{TextStyle, describe_confidence, escape_line};
use tribunal_runner::{Project, project::subject::load_subject};
use tribunal_workflows::{
    findings::subject::Subject,
    review::{
        confidence_records::{find_last_review, last_review_request},
        level::panel_roles,
        level_rules::ChosenLevel,
        order::ReviewOrder,
        review_record::{LastConfidence, LastReview},
    },
    runs::{plan::RunPlan, settings::Settings},
};

use crate::{
    commands::decisions::can_ask_here,
    context::CommandContext,
    messages::user_errors::UserError,
    terminal::prompt::{PromptInput, read_first_answer},
};

/// The level of a review that has not started yet.
pub(super) struct LevelAdvice {
    pub chosen: ChosenLevel,
    /// What is known of the last review of the same subject.
    pub last: LastReview,
}

/// Finds out which level a review would have. A run that starts finds it out in the same way.
pub(super) fn advise_level(
    project: &Project,
    plan: &RunPlan<ReviewOrder>,
    context: &CommandContext,
) -> Result<LevelAdvice, UserError> {
    let RunPlan { settings, order } = plan;
    let last = match context.open_journal(project)? {
        Some(store) => {
            let request = last_review_request(&order.subject);
            let records = store.read_records(request.kind, &request.key_prefix)?;
            find_last_review(&order.subject, read_text_hash(project, &order.subject).as_ref(), records)
        }
        None => LastReview::Never,
    };
    let chosen = match order.level {
        Some(level) => ChosenLevel { level, reason: "chosen by you".into() },
        None => order.level_rules.choose_level(settings.tier, &last),
    };
    Ok(LevelAdvice { chosen, last })
}

/// Reads the text of a file that is to be reviewed, as a run freezes it. `None` for a change: what it contains is read by the run.
fn read_text_hash(project: &Project, subject: &Subject) -> Option<Hash> {
    let text = load_subject(project.root(), subject.file_path()?).ok()?;
    Some(Hash::digest_of(text.as_bytes()))
}

/// What the user wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewChoice {
    Review,
    /// Continue without a review.
    Skip,
    Quit,
}

/// Asks whether to review a subject that was reviewed before. A level that the user chose is an answer already.
pub(super) fn ask_to_review(
    project: &Project,
    plan: &RunPlan<ReviewOrder>,
    context: &CommandContext,
) -> Result<ReviewChoice, UserError> {
    if plan.order.level.is_some() || !can_ask_here(context) {
        return Ok(ReviewChoice::Review);
    }
    let advice = advise_level(project, plan, context)?;
    let Some(last) = advice.last.valid_confidence() else { return Ok(ReviewChoice::Review) };
    write_advice(&plan.settings, &plan.order, &advice, last, context)?;
    loop {
        let typed_line = match read_first_answer("[R] review, [C] continue without a review:")? {
            PromptInput::Line(typed_line) => typed_line,
            PromptInput::Quit => return Ok(ReviewChoice::Quit),
        };
        match typed_line.to_lowercase().as_str() {
            "" | "r" | "review" => return Ok(ReviewChoice::Review),
            "c" | "continue" => return Ok(ReviewChoice::Skip),
            _ => writeln!(stderr(), "type r or c")?,
        }
    }
}

fn write_advice(
    settings: &Settings,
    order: &ReviewOrder,
    advice: &LevelAdvice,
    last: &LastConfidence,
    context: &CommandContext,
) -> Result<(), UserError> {
    let ChosenLevel { level, reason } = &advice.chosen;
    let roles: Vec<&str> =
        panel_roles(&order.subject, *level, settings.tier).iter().map(|role| role.as_str()).collect();
    let mut output = stderr().lock();
    let title = context.progress_screen.paint(TextStyle::Bold, &escape_line(&order.subject.title()));
    writeln!(output, "{title} was reviewed before, in {}", last.run)?;
    writeln!(output, "  {}", describe_confidence(&last.confidence))?;
    writeln!(output, "  recommended: {level} ({}; {reason})", roles.join(", "))?;
    Ok(())
}
