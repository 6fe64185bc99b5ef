//! The planning documents, each on its own: whether it is written at all, how far its workflow got, and the verdicts of the
//! reports about the plan.

use super::material::{Material, joined};
use crate::{
    commands::Step,
    documents::{Document, Kind},
    page::{Kind as LineKind, Line, Page},
    problem::{Problem, Weight, rules},
    shelf,
    verdict::{Readiness, Reading, Trace},
    yaml,
};

pub(super) fn check(material: &Material<'_>, step: Option<Step>, problems: &mut Vec<Problem>) {
    for kind in [Kind::Prd, Kind::Architecture, Kind::Ux, Kind::Epics] {
        let Some(document) = material.documents.first(kind) else { continue };
        // An empty document has its own problem, and a bare template would break every further rule.
        if !document.empty && is_template(material, document) {
            problems.push(
                Problem::warning("document-template", &document.path, "only the template stands here")
                    .at(1)
                    .why("its workflow was begun and nothing was written")
                    .todo(format!("go on with it: {}", material.how(maker(kind)))),
            );
            continue;
        }
        left_open(material, document, problems);
        unfinished(material, document, problems);
    }
    readiness(material, step, problems);
    trace(material, problems);
}

/// The step that writes a document.
pub(super) fn maker(kind: Kind) -> Step {
    match kind {
        Kind::Architecture => Step::Architecture,
        Kind::Ux => Step::Ux,
        Kind::Epics => Step::Epics,
        Kind::Readiness => Step::Readiness,
        _ => Step::Prd,
    }
}

/// Whether a document is still its template: mostly placeholders, or no step is done and there is next to no text.
pub(super) fn is_template(material: &Material<'_>, document: &Document) -> bool {
    let Some(text) = material.texts.iter().find(|text| text.path == document.path) else { return false };
    // A folder of parts is the result of finished work.
    if !document.sharded.is_empty() {
        return false;
    }
    let page = Page::of(&text.text);
    let said: Vec<&Line<'_>> = page
        .lines
        .iter()
        .filter(|line| line.kind == LineKind::Prose && !line.is_blank() && line.heading().is_none())
        .collect();
    // Headings come from the template and say nothing about the progress.
    let open = said.iter().filter(|line| placeholder(line.text).is_some()).count();
    let begun = front(&page).is_some_and(|front| {
        front.get("stepsCompleted").is_some_and(|steps| steps.items().is_empty() && steps.text().is_none())
    });
    (open > 0 && open * 2 >= said.len()) || (begun && said.len() < 3)
}

/// The first placeholder such as `{{project_name}}`: lower-case words, as BMAD's templates have them. Products have
/// placeholders of their own.
fn placeholder(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once("{{") {
        let (name, after) = behind.split_once("}}")?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_- ./".contains(c);
        if !name.is_empty() && name.chars().all(is_word) {
            return Some(name);
        }
        rest = after;
    }
    None
}

fn front(page: &Page<'_>) -> Option<yaml::Node> {
    page.front_matter().and_then(|front| yaml::parse(front).ok())
}

/// The placeholders of BMAD's own templates.
const TEMPLATE_NAMES: [&str; 8] = [
    "project_name",
    "user_name",
    "date",
    "epic_title",
    "story_title",
    "epic_goal",
    "user_type",
    "capability",
];

/// Reports a placeholder of the template that was not filled in.
fn left_open(material: &Material<'_>, document: &Document, problems: &mut Vec<Problem>) {
    for text in material.of(document.kind) {
        let page = Page::of(&text.text);
        // A placeholder in backticks is quoted on purpose.
        let own = |line: &&Line<'_>| {
            line.is_prose()
                && !line.text.contains('`')
                && placeholder(line.text).is_some_and(|name| {
                    TEMPLATE_NAMES.iter().any(|known| name.starts_with(known)) || name.contains("_list")
                })
        };
        if let Some(line) = page.lines.iter().find(own) {
            let what = format!("a placeholder of the template is left: {}", short(line.text.trim()));
            let problem = Problem::note("document-placeholder", &text.path, what).at(line.number);
            problems.push(problem.todo("fill it in"));
        }
    }
}

pub(super) fn short(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}

/// Reports a workflow that was not finished, by the steps that are installed. The last steps of some eras are not recorded.
fn unfinished(material: &Material<'_>, document: &Document, problems: &mut Vec<Problem>) {
    let done = document.steps_completed.iter().filter_map(|step| step_number(step)).max();
    let (Some(done), Some(last)) = (done, last_step(material, document.kind)) else { return };
    let Some(text) = material.texts.iter().find(|text| text.path == document.path) else { return };
    let page = Page::of(&text.text);
    // A document may be declared complete without its last steps.
    let says_so = front(&page).is_some_and(|front| {
        let status = front.get("status").and_then(yaml::Node::text).unwrap_or_default().to_lowercase();
        ["complete", "completed", "done", "final", "approved"].contains(&status.as_str())
            || front.get("completedAt").is_some()
            || front.get("workflow_completed").is_some()
    });
    if says_so || done + 2 >= last {
        return;
    }
    let line = page.lines.iter().find(|line| line.text.trim_start().starts_with("stepsCompleted"));
    let what = format!("its workflow has {last} steps, and the last that was done is step {done}");
    let problem = Problem::warning("document-unfinished", &document.path, what)
        .at(line.map_or(1, |line| line.number))
        .why("what the later steps write is missing")
        .todo(format!("go on with it: {}", material.how(maker(document.kind))));
    problems.push(problem);
}

/// The number in `3`, `step-03-success` or `step-03b-x.md`.
fn step_number(step: &str) -> Option<u32> {
    let step = step.trim().trim_start_matches("step-");
    let end = step.find(|c: char| !c.is_ascii_digit()).unwrap_or(step.len());
    step[..end].parse().ok()
}

/// The number of the last step file of the workflow as it is installed here.
fn last_step(material: &Material<'_>, kind: Kind) -> Option<u32> {
    let names: &[&str] = match kind {
        Kind::Prd => &["prd", "create-prd"],
        Kind::Architecture => &["create-architecture", "architecture"],
        Kind::Ux => &["create-ux-design", "ux"],
        Kind::Epics => &["create-epics-and-stories"],
        _ => return None,
    };
    let mut folders: Vec<String> = Vec::new();
    // Early eras have their steps below `_bmad`, sorted by phase; later ones have them inside the skills.
    if let Some(root) = &material.layout.root {
        let workflows = joined(root, "bmm/workflows");
        let phases = material.shelf.names(&workflows);
        let phases = phases.iter().filter_map(|name| name.strip_suffix('/'));
        folders.extend(
            phases
                .flat_map(|phase| names.iter().map(move |name| format!("{phase}/{name}")))
                .map(|under| joined(&workflows, &under)),
        );
    }
    for client in &material.layout.clients {
        folders.extend(names.iter().map(|name| format!("{}/bmad-{name}", client.folder)));
    }
    folders.iter().flat_map(|folder| ["steps", "steps-c"].map(|steps| joined(folder, steps))).find_map(
        |folder| {
            let names = material.shelf.names(&folder);
            names.iter().filter(|name| name.starts_with("step-")).filter_map(|name| step_number(name)).max()
        },
    )
}

/// The verdict of the report that counts.
pub(super) fn readiness_of(material: &Material<'_>) -> Option<(String, Reading<Readiness>)> {
    let document = material.documents.readiness()?;
    let text = shelf::read(material.shelf, &document.path, &mut Vec::new())?;
    Some((document.path.clone(), Readiness::read(&document.path, &text)))
}

/// Reports a verdict that the plan is not ready.
fn readiness(material: &Material<'_>, step: Option<Step>, problems: &mut Vec<Problem>) {
    let Some((path, reading)) = readiness_of(material) else { return };
    problems.extend(reading.problems);
    let Some(stated) = reading.stated else { return };
    // Once a sprint has begun, an old report is history, unless a step that depends on it is checked.
    let is_asked = match step {
        Some(step) => matches!(step, Step::SprintPlanning | Step::CreateStory | Step::DevStory),
        None => material.board.is_none(),
    };
    let again = format!("mend what the report names and check again: {}", material.how(Step::Readiness));
    let said = stated.said.clone();
    let problem = match stated.verdict {
        Readiness::Ready => return,
        Readiness::NotReady => {
            let weight = if is_asked { Weight::Error } else { Weight::Warning };
            Problem::new(
                weight,
                rules::READINESS_NOT_READY,
                &path,
                format!("the plan was judged {}", short(&said)),
            )
            .why("what is built on it would be built on what is missing")
        }
        Readiness::NeedsWork => {
            let what = format!("the plan was judged {}", short(&said));
            Problem::warning("readiness-needs-work", &path, what)
                .why("it goes on only with a person's acknowledgement")
        }
    };
    problems.push(problem.at(stated.line).todo(again));
}

/// Reports a trace gate that did not pass.
fn trace(material: &Material<'_>, problems: &mut Vec<Problem>) {
    let Some(document) = material.documents.first(Kind::Trace) else { return };
    let Some(text) = shelf::read(material.shelf, &document.path, &mut Vec::new()) else { return };
    let reading = Trace::read(&document.path, &text);
    // A matrix without a gate decision is still a matrix.
    problems.extend(reading.problems.into_iter().filter(|problem| problem.rule != rules::VERDICT_MISSING));
    let Some(stated) = reading.stated else { return };
    let why = match stated.verdict {
        Trace::Fail => "what was asked for is not tested",
        Trace::Concerns => "it goes on only with a person's acknowledgement",
        _ => return,
    };
    let what = format!("the trace gate says {}", short(&stated.said));
    let problem = Problem::warning("trace-negative", &document.path, what).at(stated.line).why(why);
    problems.push(problem.todo(format!("add the tests and run it again: {}", material.how(Step::Trace))));
}
