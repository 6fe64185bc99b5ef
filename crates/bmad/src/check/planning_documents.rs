//! The planning documents, each on its own: whether it is written at all, how far its workflow got, and the verdicts of the
//! reports about the plan.

use super::material::{CheckMaterial, join_path};
use crate::{
    commands::BmadStep,
    documents::{DocumentKind, ProjectDocument},
    markdown::{MarkdownLine, MarkdownLineKind as LineKind, MarkdownPage},
    problem::{FileProblem, ProblemWeight, rules},
    project_files,
    verdict::{ReadinessVerdict, TraceVerdict, VerdictReading},
    yaml,
};

pub(super) fn check_documents(
    check_material: &CheckMaterial<'_>,
    step: Option<BmadStep>,
    problems: &mut Vec<FileProblem>,
) {
    for kind in [DocumentKind::Prd, DocumentKind::Architecture, DocumentKind::Ux, DocumentKind::Epics] {
        let Some(document) = check_material.documents.first_of_kind(kind) else { continue };
        // An empty document has its own problem, and a bare template would break every further rule.
        if !document.empty && is_template(check_material, document) {
            problems.push(
                FileProblem::warning(
                    "document-template",
                    &document.path,
                    "the document is still the unfilled template",
                )
                .at_line(1)
                .with_reason("Its workflow was started, but nothing has been written yet.")
                .with_advice(format!("continue it: {}", check_material.command_for_step(maker_step(kind)))),
            );
            continue;
        }
        report_placeholders(check_material, document, problems);
        report_unfinished(check_material, document, problems);
    }
    report_readiness(check_material, step, problems);
    report_trace(check_material, problems);
}

/// The step that writes a document.
pub(super) fn maker_step(kind: DocumentKind) -> BmadStep {
    match kind {
        DocumentKind::Architecture => BmadStep::Architecture,
        DocumentKind::Ux => BmadStep::Ux,
        DocumentKind::Epics => BmadStep::Epics,
        DocumentKind::Readiness => BmadStep::Readiness,
        _ => BmadStep::Prd,
    }
}

/// Whether a document is still its template: mostly placeholders, or no step is done and there is next to no text.
pub(super) fn is_template(check_material: &CheckMaterial<'_>, document: &ProjectDocument) -> bool {
    let Some(document_text) = check_material.texts.iter().find(|document_text| document_text.path == document.path)
    else {
        return false;
    };
    // A folder of parts is the result of finished work.
    if !document.sharded.is_empty() {
        return false;
    }
    let markdown = MarkdownPage::parse(&document_text.text);
    // Headings come from the template and say nothing about the progress.
    let text_lines: Vec<&MarkdownLine<'_>> = markdown
        .lines
        .iter()
        .filter(|line| line.kind == LineKind::Prose && !line.is_blank() && line.heading().is_none())
        .collect();
    let placeholder_count = text_lines.iter().filter(|line| find_placeholder(line.text).is_some()).count();
    let is_just_begun = parse_front_matter(&markdown).is_some_and(|front_matter| {
        front_matter.get("stepsCompleted").is_some_and(|completed_steps| {
            completed_steps.items().is_empty() && completed_steps.scalar_text().is_none()
        })
    });
    (placeholder_count > 0 && placeholder_count * 2 >= text_lines.len()) || (is_just_begun && text_lines.len() < 3)
}

/// The name in the first placeholder such as `{{project_name}}`: ASCII letters and digits, with blanks and a few marks. Other
/// text in double braces belongs to the product that the document describes.
fn find_placeholder(line_text: &str) -> Option<&str> {
    let mut remaining_text = line_text;
    while let Some((_, after_open)) = remaining_text.split_once("{{") {
        let (placeholder_name, after_close) = after_open.split_once("}}")?;
        let is_name_character = |character: char| character.is_ascii_alphanumeric() || "_- ./".contains(character);
        if !placeholder_name.is_empty() && placeholder_name.chars().all(is_name_character) {
            return Some(placeholder_name);
        }
        remaining_text = after_close;
    }
    None
}

fn parse_front_matter(markdown: &MarkdownPage<'_>) -> Option<yaml::YamlNode> {
    markdown.front_matter().and_then(|front_text| yaml::parse_yaml(front_text).ok())
}

/// The placeholders of BMAD's own templates.
const TEMPLATE_NAMES: [&str; 8] =
    ["project_name", "user_name", "date", "epic_title", "story_title", "epic_goal", "user_type", "capability"];

/// Reports a placeholder of the template that was not filled in.
fn report_placeholders(
    check_material: &CheckMaterial<'_>,
    document: &ProjectDocument,
    problems: &mut Vec<FileProblem>,
) {
    for document_text in check_material.texts_of_kind(document.kind) {
        let markdown = MarkdownPage::parse(&document_text.text);
        // A placeholder in backticks is quoted on purpose.
        let has_template_name = |line: &&MarkdownLine<'_>| {
            line.is_prose()
                && !line.text.contains('`')
                && find_placeholder(line.text).is_some_and(|placeholder_name| {
                    TEMPLATE_NAMES.iter().any(|template_name| placeholder_name.starts_with(template_name))
                        || placeholder_name.contains("_list")
                })
        };
        if let Some(line) = markdown.lines.iter().find(has_template_name) {
            let message = format!("unfilled template placeholder: {}", truncate_text(line.text.trim()));
            let problem = FileProblem::note("document-placeholder", &document_text.path, message).at_line(line.number);
            problems.push(problem.with_advice("fill it in"));
        }
    }
}

pub(super) fn truncate_text(long_text: &str) -> String {
    let shortened: String = long_text.chars().take(80).collect();
    if shortened.len() < long_text.len() { shortened + "…" } else { shortened }
}

/// Reports a workflow that was not finished, by the steps that are installed. The last steps of some eras are not recorded.
fn report_unfinished(check_material: &CheckMaterial<'_>, document: &ProjectDocument, problems: &mut Vec<FileProblem>) {
    let last_done = document.steps_completed.iter().filter_map(|step_name| step_number(step_name)).max();
    let (Some(last_done), Some(last_step_number)) = (last_done, last_installed_step(check_material, document.kind))
    else {
        return;
    };
    let Some(document_text) = check_material.texts.iter().find(|document_text| document_text.path == document.path)
    else {
        return;
    };
    let markdown = MarkdownPage::parse(&document_text.text);
    // A document may be declared complete without its last steps.
    let is_declared_complete = parse_front_matter(&markdown).is_some_and(|front_matter| {
        let status =
            front_matter.get("status").and_then(yaml::YamlNode::scalar_text).unwrap_or_default().to_lowercase();
        ["complete", "completed", "done", "final", "approved"].contains(&status.as_str())
            || front_matter.get("completedAt").is_some()
            || front_matter.get("workflow_completed").is_some()
    });
    if is_declared_complete || last_done + 2 >= last_step_number {
        return;
    }
    let line = markdown.lines.iter().find(|line| line.text.trim_start().starts_with("stepsCompleted"));
    let message = format!("workflow not finished: the last completed step is {last_done} of {last_step_number}");
    let problem = FileProblem::warning("document-unfinished", &document.path, message)
        .at_line(line.map_or(1, |line| line.number))
        .with_reason("The content of the later steps is missing.")
        .with_advice(format!("continue it: {}", check_material.command_for_step(maker_step(document.kind))));
    problems.push(problem);
}

/// The number in `3`, `step-03-success` or `step-03b-x.md`.
fn step_number(step_name: &str) -> Option<u32> {
    let step_name = step_name.trim().trim_start_matches("step-");
    let digits_end = step_name.find(|character: char| !character.is_ascii_digit()).unwrap_or(step_name.len());
    step_name[..digits_end].parse().ok()
}

/// The number of the last step file of the workflow as it is installed here.
fn last_installed_step(check_material: &CheckMaterial<'_>, kind: DocumentKind) -> Option<u32> {
    let names: &[&str] = match kind {
        DocumentKind::Prd => &["prd", "create-prd"],
        DocumentKind::Architecture => &["create-architecture", "architecture"],
        DocumentKind::Ux => &["create-ux-design", "ux"],
        DocumentKind::Epics => &["create-epics-and-stories"],
        _ => return None,
    };
    let mut workflow_directories: Vec<String> = Vec::new();
    // Early eras have their steps below `_bmad`, sorted by phase; later ones have them inside the skills.
    if let Some(bmad_root) = &check_material.layout.root {
        let workflows = join_path(bmad_root, "bmm/workflows");
        let entry_names = check_material.project_files.list_names(&workflows);
        let phase_directories = entry_names.iter().filter_map(|entry_name| entry_name.strip_suffix('/'));
        workflow_directories.extend(
            phase_directories
                .flat_map(|phase| names.iter().map(move |workflow_name| format!("{phase}/{workflow_name}")))
                .map(|below_workflows| join_path(&workflows, &below_workflows)),
        );
    }
    for client in &check_material.layout.clients {
        workflow_directories
            .extend(names.iter().map(|workflow_name| format!("{}/bmad-{workflow_name}", client.folder)));
    }
    workflow_directories
        .iter()
        .flat_map(|directory| ["steps", "steps-c"].map(|steps_name| join_path(directory, steps_name)))
        .find_map(|steps_directory| {
            let names = check_material.project_files.list_names(&steps_directory);
            names
                .iter()
                .filter(|entry_name| entry_name.starts_with("step-"))
                .filter_map(|entry_name| step_number(entry_name))
                .max()
        })
}

/// The verdict of the report that counts.
pub(super) fn read_readiness(check_material: &CheckMaterial<'_>) -> Option<(String, VerdictReading<ReadinessVerdict>)> {
    let document = check_material.documents.readiness()?;
    let report_text = project_files::read_or_report(check_material.project_files, &document.path, &mut Vec::new())?;
    Some((document.path.clone(), ReadinessVerdict::from_report(&document.path, &report_text)))
}

/// Reports a verdict that the plan is not ready.
fn report_readiness(check_material: &CheckMaterial<'_>, step: Option<BmadStep>, problems: &mut Vec<FileProblem>) {
    let Some((report_path, reading)) = read_readiness(check_material) else { return };
    problems.extend(reading.problems);
    let Some(stated) = reading.stated else { return };
    // Once a sprint has begun, an old report is history, unless a step that depends on it is checked.
    let is_blocking = match step {
        Some(step) => matches!(step, BmadStep::SprintPlanning | BmadStep::CreateStory | BmadStep::DevStory),
        None => check_material.board.is_none(),
    };
    let advice = format!(
        "fix the issues in the report, then check again: {}",
        check_material.command_for_step(BmadStep::Readiness)
    );
    let verdict_text = stated.said.clone();
    let problem = match stated.verdict {
        ReadinessVerdict::Ready => return,
        ReadinessVerdict::NotReady => {
            let weight = if is_blocking { ProblemWeight::Error } else { ProblemWeight::Warning };
            FileProblem::new(
                weight,
                rules::READINESS_NOT_READY,
                &report_path,
                format!("the readiness verdict is {}", truncate_text(&verdict_text)),
            )
            .with_reason("Development would start from an incomplete plan.")
        }
        ReadinessVerdict::NeedsWork => {
            let message = format!("the readiness verdict is {}", truncate_text(&verdict_text));
            FileProblem::warning("readiness-needs-work", &report_path, message)
                .with_reason("Continue only if you accept the open issues.")
        }
    };
    problems.push(problem.at_line(stated.line).with_advice(advice));
}

/// Reports a trace gate that did not pass.
fn report_trace(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    let Some(document) = check_material.documents.first_of_kind(DocumentKind::Trace) else { return };
    let Some(report_text) =
        project_files::read_or_report(check_material.project_files, &document.path, &mut Vec::new())
    else {
        return;
    };
    let reading = TraceVerdict::from_report(&document.path, &report_text);
    // A matrix without a gate decision is still a matrix.
    problems.extend(reading.problems.into_iter().filter(|problem| problem.rule != rules::VERDICT_MISSING));
    let Some(stated) = reading.stated else { return };
    let reason = match stated.verdict {
        TraceVerdict::Fail => "Some requirements are not covered by tests.",
        TraceVerdict::Concerns => "Continue only if you accept the open issues.",
        _ => return,
    };
    let message = format!("the trace verdict is {}", truncate_text(&stated.said));
    let problem =
        FileProblem::warning("trace-negative", &document.path, message).at_line(stated.line).with_reason(reason);
    problems.push(problem.with_advice(format!(
        "add the missing tests, then run the trace again: {}",
        check_material.command_for_step(BmadStep::Trace)
    )));
}
