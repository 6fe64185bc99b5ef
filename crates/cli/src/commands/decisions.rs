//! `tribunal decisions [ID [ANSWER]]`.

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
    let open = match context.journal(&project)? {
        Some(store) => open_decisions(&store, &project)?,
        None => Vec::new(),
    };
    match (arguments.id, arguments.answer) {
        (Some(id), Some(choice)) => {
            let asked = pick(&open, &id)?;
            let Asked { run, decision } = &asked;
            check(decision, &choice)?;
            say::fits_a_brief(&arguments.note)?;
            let store = Store::open(&project.home())?;
            agent_session::not_the_judged_one(&store, run, context)?;
            let note = context.masker().mask(&arguments.note).into_owned();
            if decision.about == About::Loop {
                let came =
                    loops::answered(&project, run, ChoiceKey::parse(&choice) == Some(ChoiceKey::More))?;
                return told(context, &asked, &came);
            }
            let answer = Answer { choice, note };
            store.request(run, &Request::Answer { decision: decision.id.clone(), answer })?;
            if context.json {
                documents::print(
                    &json!({ "schema": "tribunal.answer/1", "run": run, "decision": decision.id }),
                )?;
            } else {
                writeln!(stdout(), "recorded; next: tribunal resume {}", escaped(run.as_str()))?;
            }
        }
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

/// What an answer has come to at once.
fn told(context: &Context, asked: &Asked<'_>, came: &str) -> Result<u8, Complaint> {
    let Asked { run, decision } = asked;
    if context.json {
        documents::print(&json!({ "schema": "tribunal.answer/1", "run": run, "decision": decision.id }))?;
    } else {
        writeln!(stdout(), "{}: {}", escaped(run.as_str()), escaped(came))?;
    }
    Ok(0)
}

/// One decision, with the patch it is about.
fn show(context: &Context, project: &Project, asked: &Asked<'_>) -> Result<(), Complaint> {
    let Asked { run, decision } = asked;
    let mut out = stdout().lock();
    if let About::Patch { diff, .. } = &decision.about {
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

/// A decision that was named, and the run that waits for it.
struct Asked<'a> {
    run: RunId,
    decision: &'a Decision,
}

/// A run that asks something.
struct Asking {
    view: RunView,
    /// The decisions whose answers it has not yet taken in.
    answered: Vec<DecisionId>,
}

fn open_decisions(store: &Store, project: &Project) -> Result<Vec<Asking>, Complaint> {
    let mut open = Vec::new();
    for (view, _) in runs::all(store, project)? {
        let Some(run) = view.run.clone() else { continue };
        let answered = store.requests(&run)?.into_iter().filter_map(|stored| match stored.request {
            Request::Answer { decision, .. } => Some(decision),
            Request::Resume | Request::Say(_) | Request::Amend { .. } | Request::Add { .. } => None,
        });
        open.push(Asking { view, answered: answered.collect() });
    }
    // A loop has no run: what it asks stands in its own journal.
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
