//! `tribunal decisions [ID [ANSWER]]`: lists the decisions that wait for the user, shows one, or records an answer.

use std::io::{Write, stdout};

use serde_json::json;
use tribunal_core::{
    decision::{ChoiceKey, Decision, DecisionAnswer, DecisionTopic},
    effect::UserRequest,
    ids::{DecisionId, RunId},
    view::RunView,
};
use tribunal_report::{escape_line, tables};
use tribunal_runner::{Project, landings::diff_stray_edit};
use tribunal_store::Store;

use super::{diff::write_diff, loops, runs, say};
use crate::{
    agent_session,
    context::CommandContext,
    json_documents::{self, DecisionsDocument, OpenDecision},
    settings::nearest_name,
    user_errors::UserError,
};

#[derive(Debug, clap::Args)]
pub(crate) struct DecisionsArguments {
    /// Decision: RUN.D1, or just D1 if only one run asks it
    id: Option<String>,
    /// Choice to answer with
    answer: Option<String>,
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
            record_answer(context, &project, &named_decision, typed_answer)?;
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

/// Records an answer for the run that waits for it; the answer to a loop's question takes effect at once.
fn record_answer(
    context: &CommandContext,
    project: &Project,
    named_decision: &NamedDecision<'_>,
    typed_answer: DecisionAnswer,
) -> Result<(), UserError> {
    let NamedDecision { run_id, decision } = named_decision;
    // Everything that can be wrong with the answer is checked before the journal is opened for writing.
    check_choice(decision, &typed_answer.choice)?;
    say::check_brief_text(&typed_answer.note)?;
    let store = Store::open(&project.home_dir())?;
    // A session must not answer questions about its own work; that is up to the user.
    agent_session::refuse_reviewed_session(&store, run_id, context)?;
    let note = context.secret_masker().mask(&typed_answer.note).into_owned();
    // A loop has no process that would read the request later, so its answer takes effect here.
    if decision.about == DecisionTopic::Loop {
        let goes_on = ChoiceKey::parse(&typed_answer.choice) == Some(ChoiceKey::More);
        let loop_outcome = loops::answer_loop(project, run_id, goes_on)?;
        return print_loop_answer(context, named_decision, &loop_outcome);
    }
    let answer = DecisionAnswer { choice: typed_answer.choice, note };
    // The run reads the request at its next step, or when it is resumed; this command does not start anything.
    store.send_request(run_id, &UserRequest::Answer { decision: decision.id.clone(), answer })?;
    if context.wants_json {
        json_documents::print_document(
            &json!({ "schema": "tribunal.answer/1", "run": run_id, "decision": decision.id }),
        )?;
    } else {
        writeln!(stdout(), "answer recorded; next: tribunal resume {}", escape_line(run_id.as_str()))?;
    }
    Ok(())
}

/// Prints all open decisions as a JSON document.
fn print_decisions_document(asking_runs: &[AskingRun]) -> Result<(), UserError> {
    let decisions = asking_runs
        .iter()
        .flat_map(|AskingRun { run_view, answered_ids }| {
            run_view.open_decisions().map(|decision| OpenDecision {
                run: run_view.run_id.clone(),
                decision: decision.clone(),
                answered: answered_ids.contains(&decision.id),
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
    for AskingRun { run_view, answered_ids } in asking_runs.iter().filter(|asking| !asking.answered_ids.is_empty()) {
        let run_id = run_view.run_id.as_ref().map_or("", |run_id| run_id.as_str());
        let answered_names: Vec<&str> = answered_ids.iter().map(DecisionId::as_str).collect();
        let reminder =
            format!("{} answered, not applied yet; next: tribunal resume {run_id}", answered_names.join(", "));
        writeln!(stdout(), "{}", escape_line(&reminder))?;
    }
    Ok(())
}

/// Prints what an answer to a loop's question has led to.
fn print_loop_answer(
    context: &CommandContext,
    named_decision: &NamedDecision<'_>,
    loop_outcome: &str,
) -> Result<(), UserError> {
    let NamedDecision { run_id, decision } = named_decision;
    if context.wants_json {
        json_documents::print_document(
            &json!({ "schema": "tribunal.answer/1", "run": run_id, "decision": decision.id }),
        )?;
    } else {
        writeln!(stdout(), "{}: {}", escape_line(run_id.as_str()), escape_line(loop_outcome))?;
    }
    Ok(())
}

/// Prints one decision, with the patch or the stray edits it is about.
fn print_decision(
    context: &CommandContext,
    project: &Project,
    named_decision: &NamedDecision<'_>,
) -> Result<(), UserError> {
    let NamedDecision { run_id, decision } = named_decision;
    let mut output = stdout().lock();
    if let DecisionTopic::Patch { diff, .. } = &decision.about {
        // The patch is stored as a blob; the decision itself only has its hash.
        let patch_bytes = Store::open_read_only(&project.home_dir())?.read_blob(diff)?;
        write_diff(&mut output, &context.answer_screen, &String::from_utf8_lossy(&patch_bytes))?;
        writeln!(output)?;
    }
    if let DecisionTopic::Strayed { strays: stray_files } = &decision.about {
        for diff in stray_files.iter().filter_map(|stray_file| diff_stray_edit(project, run_id, stray_file)) {
            write_diff(&mut output, &context.answer_screen, &diff)?;
        }
        writeln!(output)?;
    }
    writeln!(output, "{} for {}", escape_line(&format!("{run_id}.{}", decision.id)), escape_line(&decision.owner))?;
    writeln!(output, "  {}", escape_line(&decision.question))?;
    let key_width = decision.choices.iter().map(|choice| choice.key.as_str().len()).max().unwrap_or(0);
    for choice in &decision.choices {
        writeln!(output, "  {:<key_width$}  {}", choice.key.as_str(), choice.label)?;
    }
    writeln!(output, "next: tribunal decisions {} ANSWER", escape_line(&format!("{run_id}.{}", decision.id)))?;
    Ok(())
}

/// A decision that the user named, and the run that waits for it.
struct NamedDecision<'a> {
    run_id: RunId,
    decision: &'a Decision,
}

/// A run or a loop, which may have open decisions.
struct AskingRun {
    run_view: RunView,
    /// The decisions that have an answer which the run has not read yet.
    answered_ids: Vec<DecisionId>,
}

fn collect_asking_runs(store: &Store, project: &Project) -> Result<Vec<AskingRun>, UserError> {
    let mut asking_runs = Vec::new();
    for (run_view, _) in runs::list_runs(store, project)? {
        let Some(run_id) = run_view.run_id.clone() else { continue };
        // Answers wait in the inbox until the run reads it; until then the journal still shows the question as open.
        let answered_ids =
            store.pending_requests(&run_id)?.into_iter().filter_map(|stored_request| match stored_request.request {
                UserRequest::Answer { decision, .. } => Some(decision),
                UserRequest::Resume | UserRequest::Say(_) | UserRequest::Amend { .. } | UserRequest::Add { .. } => None,
            });
        asking_runs.push(AskingRun { run_view, answered_ids: answered_ids.collect() });
    }
    // A loop is no run: its questions are in a journal of its own.
    for run_id in store.list_loops()? {
        let run_view =
            RunView { run_id: Some(run_id.clone()), ..RunView::from_entries(&store.read_entries(&run_id, 0)?) };
        asking_runs.push(AskingRun { run_view, answered_ids: Vec::new() });
    }
    Ok(asking_runs)
}

fn find_decision<'a>(asking_runs: &'a [AskingRun], typed_name: &str) -> Result<NamedDecision<'a>, UserError> {
    let mut matching_decisions = Vec::new();
    for AskingRun { run_view, answered_ids } in asking_runs {
        let Some(run_id) = &run_view.run_id else { continue };
        for decision in run_view.open_decisions() {
            // Both spellings are accepted: `RUN.D1`, and `D1` alone where only one run asks a D1.
            let full_name = format!("{run_id}.{}", decision.id);
            if typed_name.eq_ignore_ascii_case(&full_name) || typed_name.eq_ignore_ascii_case(decision.id.as_str()) {
                matching_decisions.push((run_id.clone(), decision, answered_ids.contains(&decision.id)));
            }
        }
    }
    match matching_decisions.as_slice() {
        [(run_id, _, true)] => Err(UserError::usage(format!("{typed_name} is already answered"))
            .with_step(format!("apply the answer: `tribunal resume {run_id}`"))),
        [(run_id, decision, false)] => Ok(NamedDecision { run_id: run_id.clone(), decision }),
        [] => Err(UserError::usage(format!("no open decision named `{typed_name}`"))
            .with_step("list open decisions: `tribunal decisions`")),
        candidates => {
            let candidate_names: Vec<String> =
                candidates.iter().map(|(run_id, decision, _)| format!("{run_id}.{}", decision.id)).collect();
            Err(UserError::usage(format!("`{typed_name}` matches several decisions: {}", candidate_names.join(", ")))
                .with_step(format!("name the run as well: `tribunal decisions {} ANSWER`", candidate_names[0])))
        }
    }
}

fn check_choice(decision: &Decision, choice: &str) -> Result<(), UserError> {
    if decision.offers_choice(choice) {
        return Ok(());
    }
    let choice_keys: Vec<&str> = decision.choices.iter().map(|known_choice| known_choice.key.as_str()).collect();
    let mut user_error = UserError::usage(format!("`{choice}` is not a valid answer to {}", decision.id))
        .with_reason(format!("Valid answers: {}.", choice_keys.join(", ")));
    if let Some(suggestion) = nearest_name(choice, &choice_keys) {
        user_error = user_error.with_step(format!("did you mean `{suggestion}`?"));
    }
    Err(user_error)
}
