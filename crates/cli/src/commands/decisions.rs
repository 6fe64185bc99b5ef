//! `tribunal decisions [ID [ANSWER]]`: lists the decisions that wait for the user, shows one, or records an answer.

use std::io::{Write, stdout};

use serde_json::json;
use tribunal_core::{
    decision::{About, Answer, ChoiceKey, Decision},
    effect::Request,
    ids::{DecisionId, RunId},
    view::RunView,
};
use tribunal_report::{escaped, tables};
use tribunal_runner::{Project, landings::strayed};
use tribunal_store::Store;

use super::{diff::write_diff, loops, runs, say};
use crate::{
    agent_session,
    complaint::Complaint,
    context::Context,
    documents::{self, Decisions, OpenDecision},
    settings::nearest,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A decision: RUN.D1, or D1 where only one run asks that
    id: Option<String>,
    /// One of its choices
    answer: Option<String>,
    /// Words for the record, and for the next agent
    #[arg(long, default_value = "")]
    note: String,
}

pub(crate) fn run(arguments: Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    // Listing must work in a project that has no journal yet, and must not create one.
    let open = match context.journal(&project)? {
        Some(store) => open_decisions(&store, &project)?,
        None => Vec::new(),
    };
    match (arguments.id, arguments.answer) {
        (Some(id), Some(choice)) => {
            let asked = pick(&open, &id)?;
            let Asked { run, decision } = &asked;
            // Everything that can be wrong with the answer is checked before the journal is opened for writing.
            check(decision, &choice)?;
            say::fits_a_brief(&arguments.note)?;
            let store = Store::open(&project.home())?;
            // A session must not answer questions about its own work; that is up to the user.
            agent_session::not_the_judged_one(&store, run, context)?;
            let note = context.masker().mask(&arguments.note).into_owned();
            // A loop has no process that would read the request later, so its answer takes effect here.
            if decision.about == About::Loop {
                let came =
                    loops::answered(&project, run, ChoiceKey::parse(&choice) == Some(ChoiceKey::More))?;
                return told(context, &asked, &came);
            }
            let answer = Answer { choice, note };
            // The run reads the request when it is resumed; this command does not start anything.
            store.request(run, &Request::Answer { decision: decision.id.clone(), answer })?;
            if context.json {
                documents::print(
                    &json!({ "schema": "tribunal.answer/1", "run": run, "decision": decision.id }),
                )?;
            } else {
                writeln!(stdout(), "recorded; next: tribunal resume {}", escaped(run.as_str()))?;
            }
        }
        // With `--json` a named decision is part of the full list, which the arm below prints.
        (Some(id), None) if !context.json => {
            show(context, &project, &pick(&open, &id)?)?;
        }
        _ if context.json => {
            let decisions = open
                .iter()
                .flat_map(|Asking { view, answered }| {
                    view.waiting().map(|decision| OpenDecision {
                        run: view.run.clone(),
                        decision: decision.clone(),
                        answered: answered.contains(&decision.id),
                    })
                })
                .collect();
            documents::print(&Decisions { schema: "tribunal.decisions/1", decisions })?;
        }
        _ if open.iter().all(|asking| asking.view.waiting().next().is_none()) => {
            writeln!(stdout(), "nothing waits for a person")?;
        }
        _ => {
            write!(
                stdout(),
                "{}",
                tables::decisions(open.iter().map(|asking| &asking.view), &context.answers)
            )?;
            // An answer that no run has read yet would otherwise look as if it had been lost.
            for Asking { view, answered } in open.iter().filter(|asking| !asking.answered.is_empty()) {
                let run = view.run.as_ref().map_or("", |run| run.as_str());
                let names: Vec<&str> = answered.iter().map(DecisionId::as_str).collect();
                let text = format!("{} answered, not yet taken in: tribunal resume {run}", names.join(", "));
                writeln!(stdout(), "{}", escaped(&text))?;
            }
        }
    }
    Ok(0)
}

/// Prints what an answer to a loop's question has led to.
fn told(context: &Context, asked: &Asked<'_>, came: &str) -> Result<u8, Complaint> {
    let Asked { run, decision } = asked;
    if context.json {
        documents::print(&json!({ "schema": "tribunal.answer/1", "run": run, "decision": decision.id }))?;
    } else {
        writeln!(stdout(), "{}: {}", escaped(run.as_str()), escaped(came))?;
    }
    Ok(0)
}

/// Prints one decision, with the patch or the stray edits it is about.
fn show(context: &Context, project: &Project, asked: &Asked<'_>) -> Result<(), Complaint> {
    let Asked { run, decision } = asked;
    let mut out = stdout().lock();
    if let About::Patch { diff, .. } = &decision.about {
        // The patch is stored as a blob; the decision itself only has its hash.
        let patch = Store::open_read_only(&project.home())?.blob(diff)?;
        write_diff(&mut out, &context.answers, &String::from_utf8_lossy(&patch))?;
        writeln!(out)?;
    }
    if let About::Strayed { strays } = &decision.about {
        for diff in strays.iter().filter_map(|stray| strayed(project, run, stray)) {
            write_diff(&mut out, &context.answers, &diff)?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{} for {}", escaped(&format!("{run}.{}", decision.id)), escaped(&decision.owner))?;
    writeln!(out, "  {}", escaped(&decision.question))?;
    let width = decision.choices.iter().map(|choice| choice.key.as_str().len()).max().unwrap_or(0);
    for choice in &decision.choices {
        writeln!(out, "  {:<width$}  {}", choice.key.as_str(), choice.label)?;
    }
    writeln!(out, "next: tribunal decisions {} ANSWER", escaped(&format!("{run}.{}", decision.id)))?;
    Ok(())
}

/// A decision that the user named, and the run that waits for it.
struct Asked<'a> {
    run: RunId,
    decision: &'a Decision,
}

/// A run that asks at least one question.
struct Asking {
    view: RunView,
    /// The decisions that have an answer which the run has not read yet.
    answered: Vec<DecisionId>,
}

fn open_decisions(store: &Store, project: &Project) -> Result<Vec<Asking>, Complaint> {
    let mut open = Vec::new();
    for (view, _) in runs::all(store, project)? {
        let Some(run) = view.run.clone() else { continue };
        // Answers wait in the inbox until the run is resumed; until then the journal still shows the question as
        // open.
        let answered = store.requests(&run)?.into_iter().filter_map(|stored| match stored.request {
            Request::Answer { decision, .. } => Some(decision),
            Request::Resume | Request::Say(_) | Request::Amend { .. } | Request::Add { .. } => None,
        });
        open.push(Asking { view, answered: answered.collect() });
    }
    // A loop is no run: its questions are in a journal of its own.
    for run in store.loops()? {
        let view = RunView { run: Some(run.clone()), ..RunView::of(&store.entries(&run, 0)?) };
        open.push(Asking { view, answered: Vec::new() });
    }
    Ok(open)
}

fn pick<'a>(open: &'a [Asking], said: &str) -> Result<Asked<'a>, Complaint> {
    let mut fitting = Vec::new();
    for Asking { view, answered } in open {
        let Some(run) = &view.run else { continue };
        for decision in view.waiting() {
            // Both spellings are accepted: `RUN.D1`, and `D1` alone where only one run asks a D1.
            let long = format!("{run}.{}", decision.id);
            if said.eq_ignore_ascii_case(&long) || said.eq_ignore_ascii_case(decision.id.as_str()) {
                fitting.push((run.clone(), decision, answered.contains(&decision.id)));
            }
        }
    }
    match fitting.as_slice() {
        [(run, _, true)] => Err(Complaint::usage(format!("{said} is answered already"))
            .todo(format!("the run takes it in: tribunal resume {run}"))),
        [(run, decision, false)] => Ok(Asked { run: run.clone(), decision }),
        [] => Err(Complaint::usage(format!("no decision {said} is open")).todo("tribunal decisions")),
        several => {
            let names: Vec<String> =
                several.iter().map(|(run, decision, _)| format!("{run}.{}", decision.id)).collect();
            Err(Complaint::usage(format!("`{said}` fits several decisions: {}", names.join(", ")))
                .todo(format!("name the run too: tribunal decisions {} ANSWER", names[0])))
        }
    }
}

fn check(decision: &Decision, choice: &str) -> Result<(), Complaint> {
    if decision.allows(choice) {
        return Ok(());
    }
    let keys: Vec<&str> = decision.choices.iter().map(|choice| choice.key.as_str()).collect();
    let mut complaint = Complaint::usage(format!("`{choice}` is no answer to {}", decision.id))
        .why(format!("Its choices are {}.", keys.join(", ")));
    if let Some(near) = nearest(choice, &keys) {
        complaint = complaint.todo(format!("did you mean `{near}`?"));
    }
    Err(complaint)
}
