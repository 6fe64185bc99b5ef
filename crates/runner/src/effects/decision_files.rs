//! Decisions as files that the user can open: `{output folder}/awaiting-human/RUN.D1.yaml`. Writing an answer into such a file
//! has the same effect as `tribunal decisions RUN.D1 ANSWER`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tribunal_core::{
    decisions::{
        decision::{ChoiceKey, Decision, DecisionAnswer},
        user_request::UserRequest,
    },
    engine::{
        effect::PostOutcome,
        ids::{DecisionId, Hash, RunId},
        settings::Settings,
        view::RunView,
    },
    review::topic::ReviewTopic,
};

use tribunal_store::Store;

use super::{EffectContext, environment_fault, land};
use crate::{
    project::{Project, atomic_files::write_atomically},
    workspaces,
};

/// The last lines of a page that has no answer yet.
const EMPTY_ANSWER: &str = "answer: \"\"\nnote: \"\"\n";

fn decisions_dir(project: &Project, settings: &Settings) -> PathBuf {
    let reviews_dir = Path::new(&settings.reviews);
    project.root().join(reviews_dir.parent().unwrap_or(reviews_dir)).join("awaiting-human")
}

/// Returns the path of a decision's page, whether it exists or not.
pub(crate) fn decision_page_path(
    project: &Project,
    settings: &Settings,
    run_id: &RunId,
    decision_id: &DecisionId,
) -> PathBuf {
    decisions_dir(project, settings).join(format!("{run_id}.{decision_id}.yaml"))
}

pub(super) fn post_decision(context: &EffectContext, decision: &Decision) -> PostOutcome {
    let page_file = decision_page_path(&context.project, &context.settings, &context.run_id, &decision.id);
    // After a crash the same decision is posted again. The user may have answered in its file meanwhile, so their text stays.
    match read_decision_page(&page_file, decision) {
        PageContent::NoAnswer => {}
        PageContent::Answer(_) | PageContent::UnusableAnswer(_) => return PostOutcome::Posted,
        PageContent::Unreadable(cause) => {
            return environment_fault(format!("could not read {}: {cause}", page_file.display())).into();
        }
    }
    if let Some(real_target) = context.project.resolve_outside(&page_file) {
        return environment_fault(format!(
            "{} points outside the project, to {}",
            page_file.display(),
            real_target.display()
        ))
        .into();
    }
    let mut page_text = render_decision_page(&context.run_id, decision);
    if let Some(ReviewTopic::Patch { by: task_key, patch, diff, .. }) = decision.about.review_topic() {
        // The patch that the user is asked about is kept until they have answered.
        let workspace = land::find_patch_workspace(&context.project.task_dir(&context.run_id, task_key), patch);
        let retention = workspace
            .ok_or(io::ErrorKind::NotFound.into())
            .and_then(|workspace| workspaces::retain_workspace(workspace.directory()));
        if let Err(cause) = retention {
            return environment_fault(format!("could not keep the patch of {task_key}: {cause}")).into();
        }
        page_text = format!("{}{page_text}", render_diff_comments(context, diff));
    }
    match write_atomically(&page_file, context.masker.mask(&page_text).as_bytes()) {
        Ok(()) => PostOutcome::Posted,
        Err(cause) => environment_fault(format!("{}: {cause}", page_file.display())).into(),
    }
}

/// Renders a patch as comments for the page that asks about it.
fn render_diff_comments(context: &EffectContext, diff_blob: &Hash) -> String {
    let store = Store::open_read_only(&context.project.home_dir());
    let Ok(diff_bytes) = store.and_then(|store| store.read_blob(diff_blob)) else { return String::new() };
    String::from_utf8_lossy(&diff_bytes)
        .lines()
        .map(|diff_line| format!("# {diff_line}\n"))
        .chain(["\n".into()])
        .collect()
}

fn render_decision_page(run_id: &RunId, decision: &Decision) -> String {
    let mut page_text = format!("# Decision needed for run {} ({}):\n", run_id, decision.owner);
    for question_line in decision.question.lines() {
        page_text.push_str(&format!("#   {question_line}\n"));
    }
    page_text.push_str("# Set `answer` to one of these (`note` is optional), then run `tribunal resume ");
    page_text.push_str(&format!("{run_id}`:\n"));
    for choice in &decision.choices {
        page_text.push_str(&format!("#   {}: {}\n", choice.key, choice.label));
    }
    page_text.push_str(EMPTY_ANSWER);
    page_text
}

#[derive(Deserialize)]
struct DecisionPage {
    #[serde(default)]
    answer: String,
    #[serde(default)]
    note: String,
}

/// The content of a decision's file.
enum PageContent {
    NoAnswer,
    Answer(DecisionAnswer),
    /// Text that does not answer this decision. It is kept and pointed out to the user.
    UnusableAnswer(String),
    /// The file exists, or its parent is not a directory, and it cannot be read.
    Unreadable(io::Error),
}

fn read_decision_page(page_path: &Path, decision: &Decision) -> PageContent {
    let page_text = match fs::read_to_string(page_path) {
        Ok(page_text) => page_text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return PageContent::NoAnswer,
        Err(cause) => return PageContent::Unreadable(cause),
    };
    let page: DecisionPage = match serde_saphyr::from_str(&page_text) {
        Ok(page) => page,
        Err(cause) => {
            // Only the first line: the parser's message goes on with an excerpt of the file.
            return PageContent::UnusableAnswer(cause.to_string().lines().next().unwrap_or_default().to_string());
        }
    };
    let answer = DecisionAnswer { choice: page.answer.trim().to_string(), note: page.note.trim().to_string() };
    if answer.choice.is_empty() {
        PageContent::NoAnswer
    } else if decision.offers_choice(&answer.choice) {
        PageContent::Answer(answer)
    } else {
        PageContent::UnusableAnswer(format!("`{}` is not one of the choices", answer.choice))
    }
}

/// Reads answers that the user wrote into the files of open decisions.
pub(crate) fn answers_in_files(project: &Project, run_view: &RunView) -> Vec<UserRequest> {
    let RunView { run_id: Some(run_id), settings: Some(settings), order: Some(order), .. } = run_view else {
        return Vec::new();
    };
    // A session edits the same tree, so an answer in a file there could be the agent's own statement about its own work.
    if !order.trusts_answer_files() {
        return Vec::new();
    }
    let read_answer = |decision: &Decision| {
        let page_file = decision_page_path(project, settings, run_id, &decision.id);
        match read_decision_page(&page_file, decision) {
            PageContent::Answer(answer) => Some(UserRequest::Answer { decision: decision.id.clone(), answer }),
            PageContent::NoAnswer | PageContent::UnusableAnswer(_) | PageContent::Unreadable(_) => None,
        }
    };
    run_view.open_decisions().filter_map(read_answer).collect()
}

/// Removes the user's answer from the file of a decision. The comments, which explain the question, stay.
pub(crate) fn clear_page_answer(
    project: &Project,
    settings: &Settings,
    run_id: &RunId,
    decision_id: &DecisionId,
) -> io::Result<()> {
    let page_file = decision_page_path(project, settings, run_id, decision_id);
    if project.resolve_outside(&page_file).is_some() {
        return Err(io::Error::other("it points outside the project"));
    }
    let page_text = fs::read_to_string(&page_file)?;
    let mut cleared_text: String = page_text
        .lines()
        .filter(|page_line| page_line.is_empty() || page_line.starts_with('#'))
        .flat_map(|page_line| [page_line, "\n"])
        .collect();
    cleared_text.push_str(EMPTY_ANSWER);
    write_atomically(&page_file, cleared_text.as_bytes())
}

/// Lists the files of open decisions whose content is not a valid answer, with the reason.
pub(crate) fn unusable_answers(project: &Project, run_view: &RunView) -> Vec<String> {
    let (Some(run_id), Some(settings)) = (&run_view.run_id, &run_view.settings) else {
        return Vec::new();
    };
    let describe_problem = |decision: &Decision| {
        let page_file = decision_page_path(project, settings, run_id, &decision.id);
        match read_decision_page(&page_file, decision) {
            PageContent::UnusableAnswer(reason) => Some(format!("{}: {reason}", page_file.display())),
            PageContent::Unreadable(cause) => Some(format!("{}: {cause}", page_file.display())),
            PageContent::NoAnswer | PageContent::Answer(_) => None,
        }
    };
    run_view.open_decisions().filter_map(describe_problem).collect()
}

/// Releases the workspace of a patch that the user did not approve.
pub(crate) fn release_rejected_patch(context: &EffectContext, decision: &Decision, answer: &DecisionAnswer) {
    if let (Some(ReviewTopic::Patch { by: task_key, patch, .. }), false) =
        (decision.about.review_topic(), answer.choice_key() == Some(ChoiceKey::Approve))
        && let Some(workspace) = land::find_patch_workspace(&context.project.task_dir(&context.run_id, task_key), patch)
    {
        workspaces::release_workspace(workspace.directory());
    }
}

/// Removes the file of an answered decision.
pub(crate) fn remove_decision_page(context: &EffectContext, decision_id: &DecisionId) {
    // A file that cannot be removed is harmless: its decision is no longer open, so it is never read again.
    let _ = fs::remove_file(decision_page_path(&context.project, &context.settings, &context.run_id, decision_id));
}
