//! Stray edits: a file of the user that changed while agents were at work, and not by a landing.
//!
//! An agent's edit cannot be told from the user's, so the user is asked, once for each file. Restoring a file is offered
//! only where the runner has said that it can be done. The run does not count as resolved until the user has answered.

use alloc::{format, string::String, vec::Vec};

use crate::{
    decisions::decision::Decision,
    engine::{
        effect::{Restore, RestoreOutcome},
        event::RunEvent,
        files::StrayEdit,
        host::ParkedRun,
        ids::Key,
    },
    review::{ReviewState, review_host::ReviewHost},
    tasks::consult_outcome::ConsultOutcome,
};

/// The most edits that get separate questions; more are one question: the user has probably changed branches.
const MAX_SEPARATE_QUESTIONS: usize = 3;
/// The most files that one question names.
const MAX_NAMED_FILES: usize = 5;

/// Asks the user about stray edits that a consultation reported.
pub(super) async fn ask_user(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    parent_key: &Key,
    consultation: &ConsultOutcome,
) -> Result<(), ParkedRun> {
    let mut new_edits: Vec<StrayEdit> = Vec::new();
    for stray_edit in &consultation.strayed {
        if state.strays.is_new_edit(stray_edit) && !state.has_open_question_about(&stray_edit.path) {
            // The edit is remembered at once: agents in parallel report the same one.
            state.strays.known.push(stray_edit.clone());
            new_edits.push(stray_edit.clone());
        }
    }
    let edits_per_question = if new_edits.len() > MAX_SEPARATE_QUESTIONS { new_edits.len() } else { 1 };
    // An answer applies to all files of a question, so files that cannot be restored are asked about apart from the others.
    let (restorable_edits, lost_edits): (Vec<StrayEdit>, Vec<StrayEdit>) =
        new_edits.into_iter().partition(|stray_edit| stray_edit.kept);
    let all_questions = restorable_edits.chunks(edits_per_question).chain(lost_edits.chunks(edits_per_question));
    for question_edits in all_questions {
        let decision_id = state.dialog.next_decision_id();
        let segment = format!("stray-{decision_id}");
        let decision =
            Decision::for_stray_edits(decision_id, question_edits.to_vec(), stray_edit_question(question_edits));
        state.dialog.post_decision(host.run_host(), &parent_key.child_key(&segment), decision).await?;
    }
    Ok(())
}

fn stray_edit_question(edits: &[StrayEdit]) -> String {
    let verb = |stray_edit: &StrayEdit| match (&stray_edit.before, &stray_edit.after) {
        (None, _) => "appeared",
        (_, None) => "was deleted",
        _ => "was changed",
    };
    // The question names the first files only; the decision itself has all of them.
    let mut described_files: Vec<String> = edits
        .iter()
        .take(MAX_NAMED_FILES)
        .map(|stray_edit| format!("{} {}", stray_edit.path, verb(stray_edit)))
        .collect();
    if edits.len() > MAX_NAMED_FILES {
        described_files.push(format!("{} more files changed", edits.len() - MAX_NAMED_FILES));
    }
    let lost_paths: Vec<&str> =
        edits.iter().filter(|stray_edit| !stray_edit.kept).map(|stray_edit| stray_edit.path.as_str()).collect();
    let lost_note = match lost_paths.as_slice() {
        [] => String::new(),
        [first_path] => format!(" The previous content of {first_path} cannot be restored."),
        [first_path, other_paths @ ..] => {
            format!(" The previous content of {first_path} and {} more cannot be restored.", other_paths.len())
        }
    };
    format!(
        "{} while agents were running, but not by applying a patch. Was that you?{lost_note}",
        described_files.join(", ")
    )
}

/// Restores the files that the user wants restored.
pub(super) async fn restore_all(host: &ReviewHost<'_>, state: &mut ReviewState) -> Result<(), ParkedRun> {
    // Only edits whose previous content was kept can be undone.
    let edits_to_restore = core::mem::take(&mut state.strays.due).into_iter().filter(|stray_edit| stray_edit.kept);
    for (edit_index, stray_edit) in edits_to_restore.enumerate() {
        let file_path = stray_edit.path.clone();
        let restore_key = Key::for_restore(edit_index as u32 + 1);
        let warning = match host.perform(restore_key.clone(), Restore { stray: stray_edit.clone() }).await? {
            RestoreOutcome::Restored { parked: Some(parked) } if stray_edit.before.is_none() => {
                format!("removed {file_path} (a copy is kept as {parked})")
            }
            RestoreOutcome::Restored { parked: Some(parked) } => {
                format!("restored {file_path} (the changed version is kept as {parked})")
            }
            RestoreOutcome::Restored { parked: None } => format!("restored {file_path}"),
            RestoreOutcome::Failed { fault } => {
                // The file still has the stray edit, so the user is asked again, without the choice to restore it.
                let question = format!("could not restore {file_path}: {}. Keep it as it is?", fault.detail);
                let decision_id = state.dialog.next_decision_id();
                let lost_edit = StrayEdit { kept: false, ..stray_edit };
                let decision = Decision::for_stray_edits(decision_id, Vec::from([lost_edit]), question.clone());
                state.dialog.post_decision(host.run_host(), &restore_key.child_key("ask"), decision).await?;
                question
            }
        };
        host.note_event(RunEvent::Warned { text: warning });
    }
    Ok(())
}
