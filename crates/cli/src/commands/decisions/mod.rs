//! `tribunal decisions [ID [ANSWER]]`: lists the decisions that wait for the user, shows one, or records an answer.
//! [`in_place`] asks the same questions at the end of `review` and `resume`.

mod answers;
mod in_place;

use std::{
    collections::BTreeSet,
    io::{Write, stdout},
};

use serde_json::json;
use tribunal_engine::{answer::DecisionAnswer, ids::RunId};
use tribunal_report::{escape_line, tables};
use tribunal_runner::{Project, Runner, landing::landings::diff_stray_edit};
use tribunal_store::Store;
use tribunal_workflows::{
    review::topic::ReviewTopic,
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic},
    },
};

use self::answers::{AnswerOutcome, AskingRun, NamedDecision, collect_asking_runs, find_decision};
use super::diff::write_diff;
use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, DecisionsDocument, OpenDecision},
        user_errors::UserError,
    },
};

pub(super) use self::in_place::{StoppedRun, answer_in_place, can_ask_here};

#[derive(Debug, clap::Args)]
pub(crate) struct DecisionsArguments {
    /// Decision: RUN.D1, or just D1 if only one run asks it
    id: Option<String>,
    /// Choice to answer with
    pub(super) answer: Option<String>,
    /// Replace an answer that the run has not used yet
    #[arg(long, requires = "answer")]
    change: bool,
    /// Note for the record and for the next agent
    #[arg(long, default_value = "")]
    note: String,
}

pub(crate) fn run(arguments: DecisionsArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    // Listing must work in a project that has no journal yet, and must not create one.
    let asking_runs = match context.open_journal(&project)? {
        Some(store) => collect_asking_runs(&store, &project)?,
        None => Vec::new(),
    };
    match (arguments.id, arguments.answer) {
        (Some(decision_name), Some(choice)) => {
            let named_decision = find_decision(&asking_runs, &decision_name)?;
            let typed_answer = DecisionAnswer { choice, note: arguments.note };
            if arguments.change {
                answers::change_answer(context, &project, &named_decision, typed_answer)?;
                print_answer(context, &named_decision, &AnswerOutcome::Recorded, "answer changed")?;
            } else {
                let answer_outcome = answers::record_answer(context, &project, &named_decision, typed_answer)?;
                print_answer(context, &named_decision, &answer_outcome, "answer recorded")?;
            }
        }
        // With `--json` a named decision is part of the full list, which the arm below prints.
        (Some(decision_name), None) if !context.wants_json => {
            print_decision(context, &project, &find_decision(&asking_runs, &decision_name)?)?;
        }
        _ if context.wants_json => print_decisions_document(&asking_runs)?,
        _ if asking_runs.iter().all(|asking_run| asking_run.run_view.open_decisions().next().is_none()) => {
            writeln!(stdout(), "nothing is waiting for you")?;
        }
        _ => print_open_decisions(&asking_runs, context)?,
    }
    Ok(0)
}

/// Prints that an answer was recorded or changed, or what the answer to a loop's question has led to.
fn print_answer(
    context: &CommandContext,
    named_decision: &NamedDecision<'_>,
    answer_outcome: &AnswerOutcome,
    recorded_text: &str,
) -> Result<(), UserError> {
    let NamedDecision { run_id, decision, .. } = named_decision;
    let run_name = escape_line(run_id.as_str());
    if context.wants_json {
        json_documents::print_document(
            &json!({ "schema": "tribunal.answer/1", "run": run_id, "decision": decision.id }),
        )?;
        return Ok(());
    }
    match answer_outcome {
        // A run that is being worked on reads its answers by itself.
        AnswerOutcome::Recorded if Runner::is_live(&context.current_project(), run_id) => {
            context.print_answer(&format!("{recorded_text}; run {run_name} reads it at its next step"))?;
        }
        AnswerOutcome::Recorded => {
            context.print_answer(&format!("{recorded_text}; next: {} resume {run_name}", context.program_name()))?;
        }
        AnswerOutcome::LoopAnswered(loop_outcome) => writeln!(stdout(), "{run_name}: {}", escape_line(loop_outcome))?,
    }
    Ok(())
}

/// Prints all open decisions as a JSON document.
fn print_decisions_document(asking_runs: &[AskingRun]) -> Result<(), UserError> {
    let decisions = asking_runs
        .iter()
        .flat_map(|asking_run| {
            asking_run.run_view.open_decisions().map(|decision| OpenDecision {
                run: asking_run.run_view.run_id.clone(),
                decision: decision.clone(),
                answered: asking_run.find_given_answer(&decision.id).is_some(),
            })
        })
        .collect();
    json_documents::print_document(&DecisionsDocument { schema: "tribunal.decisions/1", decisions })?;
    Ok(())
}

/// Prints all open decisions as text, and below them the answers that no run has read yet.
fn print_open_decisions(asking_runs: &[AskingRun], context: &CommandContext) -> Result<(), UserError> {
    write!(
        stdout(),
        "{}",
        tables::render_decisions(asking_runs.iter().map(|asking| &asking.run_view), &context.answer_screen)
    )?;
    // An answer that no run has read yet would otherwise look as if it had been lost.
    for AskingRun { run_view, given_answers } in asking_runs.iter().filter(|asking| !asking.given_answers.is_empty()) {
        let run_id = run_view.run_id.as_ref().map_or("", |run_id| run_id.as_str());
        let answered_names: BTreeSet<&str> = given_answers.iter().map(|given| given.decision_id.as_str()).collect();
        let answered_names: Vec<&str> = answered_names.into_iter().collect();
        let reminder = format!(
            "{} answered, not applied yet; next: {} resume {run_id}",
            answered_names.join(", "),
            context.program_name()
        );
        context.print_answer(&escape_line(&reminder))?;
    }
    Ok(())
}

/// Prints one decision, with the patch or the stray edits it is about.
fn print_decision(
    context: &CommandContext,
    project: &Project,
    named_decision: &NamedDecision<'_>,
) -> Result<(), UserError> {
    let decision = named_decision.decision;
    let mut output = stdout().lock();
    let diff_texts = collect_diffs(project, &named_decision.run_id, decision)?;
    for diff_text in &diff_texts {
        write_diff(&mut output, &context.answer_screen, diff_text)?;
    }
    if !diff_texts.is_empty() {
        writeln!(output)?;
    }
    let full_name = escape_line(&named_decision.full_name());
    writeln!(output, "{full_name} ({})", escape_line(&decision.owner))?;
    writeln!(output, "{}", context.answer_screen.wrap_text(2, &decision.question))?;
    let key_width = decision.choices.iter().map(|choice| choice.key.as_str().len()).max().unwrap_or(0);
    for choice in &decision.choices {
        writeln!(output, "  {:<key_width$}  {}", choice.key.as_str(), choice.label)?;
    }
    match named_decision.given_answer() {
        None => writeln!(output, "next: {} decisions {full_name} ANSWER", context.program_name())?,
        Some(given_answer) => writeln!(
            output,
            "answered with `{}`, not applied yet; to change it: `tribunal decisions {full_name} --change ANSWER`",
            given_answer.choice
        )?,
    }
    Ok(())
}

/// Collects the diffs that a decision is about: its patch, or the stray edits as far as they are known.
fn collect_diffs(project: &Project, run_id: &RunId, decision: &Decision) -> Result<Vec<String>, UserError> {
    Ok(match &decision.about {
        DecisionTopic::Workflow(WorkflowTopic::Review(ReviewTopic::Patch { diff, .. })) => {
            // The patch is stored as a blob; the decision itself only has its hash.
            let patch_bytes = Store::open_read_only(&project.home_dir())?.read_blob(diff)?;
            vec![String::from_utf8_lossy(&patch_bytes).into_owned()]
        }
        DecisionTopic::Strayed { strays } => {
            strays.iter().filter_map(|stray_edit| diff_stray_edit(project, run_id, stray_edit)).collect()
        }
        _ => Vec::new(),
    })
}
