//! Decisions as files that the user can open: `{output folder}/awaiting-human/RUN.D1.yaml`. Writing an answer into such a file
//! has the same effect as `tribunal decisions RUN.D1 ANSWER`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::PoisonError,
};

use tribunal_engine::{
    answer::{ChoiceKey, DecisionAnswer},
    effect::PostOutcome,
    ids::{DecisionId, Hash, RunId},
    text::escape_active_chars,
};
use tribunal_store::Store;
use tribunal_workflows::{
    review::topic::ReviewTopic,
    runs::{
        settings::Settings,
        types::{Decision, find_topic},
        user_request::UserRequest,
        view::RunView,
    },
};

use super::{EffectContext, environment_fault, land};
use crate::{
    landing::parked_files::park_file,
    project::{Project, atomic_files::write_atomically},
};

/// The last lines of a page that has no answer yet.
const EMPTY_ANSWER: &str = "answer: \"\"\nnote: \"\"\n";

impl EffectContext {
    /// The directory of trackers.
    pub fn reviews_dir(&self) -> PathBuf {
        self.project.root().join(&self.settings.reviews)
    }

    /// The directory of the files of decisions.
    pub fn decisions_dir(&self) -> PathBuf {
        decisions_dir(&self.project, &self.settings)
    }
}

fn decisions_dir(project: &Project, settings: &Settings) -> PathBuf {
    project.root().join(settings.own_folders().decisions)
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
    match read_page(&page_file) {
        Ok(Some(page_bytes)) => match parse_page(&page_bytes, decision) {
            PageContent::NoAnswer => {}
            _ if !context.shared.user_words.trusts_file(&page_file, &page_bytes) => {
                ignore_page(context, &context.run_id, decision, &page_bytes);
            }
            PageContent::Answer(_) | PageContent::UnusableAnswer(_) => return PostOutcome::Posted,
        },
        Ok(None) => {}
        Err(cause) => return environment_fault(format!("could not read {}: {cause}", page_file.display())).into(),
    }
    if let Some(ReviewTopic::Patch { by: task_key, patch, .. }) = find_topic::<ReviewTopic>(&decision.about)
        && land::find_patch_workspace(&context.project.task_dir(&context.run_id, task_key), patch).is_none()
    {
        let cause = io::Error::from(io::ErrorKind::NotFound);
        return environment_fault(format!("could not keep the patch of {task_key}: {cause}")).into();
    }
    match write_page(context, &context.run_id, &page_file, decision) {
        Ok(()) => PostOutcome::Posted,
        Err(cause) => environment_fault(cause.to_string()).into(),
    }
}

/// Writes the page of a decision without an answer.
fn write_page(context: &EffectContext, run_id: &RunId, page_file: &Path, decision: &Decision) -> io::Result<()> {
    if let Some(real_target) = context.project.resolve_outside(page_file) {
        let target = real_target.display();
        return Err(io::Error::other(format!("{} points outside the project, to {target}", page_file.display())));
    }
    let page_text = render_page(context, run_id, decision);
    write_atomically(page_file, page_text.as_bytes())
        .map_err(|cause| io::Error::other(format!("{}: {cause}", page_file.display())))?;
    context.shared.user_words.trust_file(run_id, page_file, page_text.as_bytes());
    Ok(())
}

/// Writes the page of a decision anew, with another question. A page that is gone, or that has an answer, stays as it is.
pub(crate) fn reword_page(
    project: &Project,
    settings: &Settings,
    run_id: &RunId,
    decision: &Decision,
) -> io::Result<()> {
    let page_file = decision_page_path(project, settings, run_id, &decision.id);
    let Some(page_bytes) = read_page(&page_file)? else { return Ok(()) };
    if !matches!(parse_page(&page_bytes, decision), PageContent::NoAnswer)
        || project.resolve_outside(&page_file).is_some()
    {
        return Ok(());
    }
    write_atomically(&page_file, escape_active_chars(&render_decision_page(run_id, decision)).as_bytes())
}

/// Renders the page of a decision as it is before anyone edits it.
fn render_page(context: &EffectContext, run_id: &RunId, decision: &Decision) -> String {
    let mut page_text = render_decision_page(run_id, decision);
    if let Some(ReviewTopic::Patch { diff, .. }) = find_topic::<ReviewTopic>(&decision.about) {
        page_text = format!("{}{page_text}", render_diff_comments(context, diff));
    }
    // For YAML a carriage return ends a comment: the text of an agent must not become an answer.
    escape_active_chars(&context.masker.mask(&page_text))
}

/// Remembers that an answer in a page does not count, and keeps the page as it was found.
fn ignore_page(context: &EffectContext, run_id: &RunId, decision: &Decision, page_bytes: &[u8]) {
    let page_name = format!("{run_id}.{}.yaml", decision.id);
    let kept = match park_file(&context.project, run_id, &page_name, page_bytes) {
        Ok(parked) => format!(" (kept as {})", parked.display()),
        Err(_) => String::new(),
    };
    context.ignore_word(format!(
        "{page_name} was edited while agents without a sandbox worked, so it does not count{kept}; \
         answer with `tribunal decisions {run_id}.{} ANSWER`",
        decision.id
    ));
}

/// Renders a patch as comments for the page that asks about it.
fn render_diff_comments(context: &EffectContext, diff_blob: &Hash) -> String {
    let store = Store::reopen_read_only(&context.project.home_dir());
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

/// Serde reads it, because only its errors name a line of the YAML, and only it takes `answer: 1` as a text.
#[derive(serde::Deserialize)]
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
}

/// Reads a page, if there is one. An error means that it exists, or its parent is not a directory, and it cannot be read.
fn read_page(page_path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(page_path) {
        Ok(page_bytes) => Ok(Some(page_bytes)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn parse_page(page_bytes: &[u8], decision: &Decision) -> PageContent {
    let Ok(page_text) = std::str::from_utf8(page_bytes) else {
        return PageContent::UnusableAnswer("it is not valid UTF-8".to_string());
    };
    let page: DecisionPage = match serde_saphyr::from_str(page_text) {
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

/// Reads answers that were written into the files of open decisions.
pub(crate) fn answers_in_files(project: &Project, run_view: &RunView) -> Vec<UserRequest> {
    read_answers(project, run_view, |_, _, _| true)
}

/// Reads answers that the user wrote into the files of open decisions of a run. A file that an agent may have written is replaced.
pub(crate) fn read_trusted_answers(context: &EffectContext, run_view: &RunView) -> Vec<UserRequest> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    read_answers(&context.project, run_view, |page_file, page_bytes, decision| {
        if context.shared.user_words.trusts_file(page_file, page_bytes) {
            return true;
        }
        // After a crash, even a page without edits is not known.
        if render_page(context, run_id, decision).as_bytes() == page_bytes {
            context.shared.user_words.trust_file(run_id, page_file, page_bytes);
        } else if write_page(context, run_id, page_file, decision).is_ok() {
            ignore_page(context, run_id, decision, page_bytes);
        }
        false
    })
}

/// Reads answers from the files of open decisions that `is_trusted` accepts.
fn read_answers(
    project: &Project,
    run_view: &RunView,
    is_trusted: impl Fn(&Path, &[u8], &Decision) -> bool,
) -> Vec<UserRequest> {
    let RunView { run_id: Some(run_id), settings: Some(settings), order: Some(order), .. } = run_view else {
        return Vec::new();
    };
    // A session edits the same tree, so an answer in a file there could be the agent's own statement about its own work.
    if !order.trusts_answer_files() {
        return Vec::new();
    }
    let read_answer = |decision: &Decision| {
        let page_file = decision_page_path(project, settings, run_id, &decision.id);
        let page_bytes = read_page(&page_file).ok().flatten()?;
        match parse_page(&page_bytes, decision) {
            _ if !is_trusted(&page_file, &page_bytes, decision) => None,
            PageContent::Answer(answer) => Some(UserRequest::Answer { decision: decision.id.clone(), answer }),
            PageContent::NoAnswer | PageContent::UnusableAnswer(_) => None,
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
        match read_page(&page_file).map(|page_bytes| parse_page(&page_bytes.unwrap_or_default(), decision)) {
            Ok(PageContent::UnusableAnswer(reason)) => Some(format!("{}: {reason}", page_file.display())),
            Ok(PageContent::NoAnswer | PageContent::Answer(_)) => None,
            Err(cause) => Some(format!("{}: {cause}", page_file.display())),
        }
    };
    run_view.open_decisions().filter_map(describe_problem).collect()
}

/// Lists the workspaces of patches that the user is asked about, or has approved and that have not landed.
pub(crate) fn find_retained_workspaces(context: &EffectContext, decisions: &[Decision]) -> Vec<PathBuf> {
    let landed_workspaces = context.memory.landed_workspaces.lock().unwrap_or_else(PoisonError::into_inner);
    let is_needed = |decision: &&Decision| {
        decision.answer.as_ref().is_none_or(|answer| answer.choice_key() == Some(ChoiceKey::Approve))
    };
    let find_workspace = |decision: &Decision| match find_topic::<ReviewTopic>(&decision.about) {
        Some(ReviewTopic::Patch { by: task_key, patch, .. }) => {
            land::find_patch_workspace(&context.project.task_dir(&context.run_id, task_key), patch)
        }
        _ => None,
    };
    let workspaces = decisions.iter().filter(is_needed).filter_map(find_workspace);
    let directories = workspaces.map(|workspace| workspace.directory().to_path_buf());
    directories.filter(|directory| !landed_workspaces.contains(directory)).collect()
}

/// Removes the file of an answered decision.
pub(crate) fn remove_decision_page(context: &EffectContext, decision_id: &DecisionId) {
    // A file that cannot be removed is harmless: its decision is no longer open, so it is never read again.
    let page_file = decision_page_path(&context.project, &context.settings, &context.run_id, decision_id);
    context.shared.user_words.forget_file(&page_file);
    let _ = fs::remove_file(page_file);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_against(page_text: &str) -> Option<String> {
        let decision = Decision::for_limit(DecisionId::new("D1"), "More?".to_string());
        match parse_page(page_text.as_bytes(), &decision) {
            PageContent::UnusableAnswer(reason) => Some(reason),
            PageContent::NoAnswer | PageContent::Answer(_) => None,
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_names_its_line() {
        let reason = reason_against("# More?\nanswer: more\nanswer: accept\n").unwrap_or_default();
        assert!(reason.contains("line 3"), "{reason}");
    }

    #[test]
    fn numbers_in_a_page_are_texts() {
        assert_eq!(reason_against("answer: more\nnote: 2026\n"), None);
        assert_eq!(reason_against("answer: 7\n").as_deref(), Some("`7` is not one of the choices"));
    }
}
