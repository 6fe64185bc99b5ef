//! Stray edits: what changed in the user's project while agents were at work, and not by a landing.
//!
//! An agent's edit cannot be told from the user's, so the user is asked, once for each agent that worked meanwhile. The answer
//! applies to everything that the question names; what cannot be put back stays as it is, and the question says so. No run counts
//! as resolved, and no loop lands, until the user has answered.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    decision::{Decision, DecisionTopic},
    dialog::user_dialog::UserDialog,
    effect::{Restore, RestoreOutcome},
    effect_set::EffectSet,
    event::RunEvent,
    files::{PathState, StrayEdit, is_path_covered},
    host::{Host, ParkedRun},
    ids::Key,
    text::format_count,
};

/// The most paths that one question names.
const MAX_NAMED_PATHS: usize = 8;

/// The stray edits that a run knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StrayEdits {
    /// Edits that the user was asked about or has answered for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known: Vec<StrayEdit>,
    /// Paths whose edits the user has confirmed; they are not asked about again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    theirs: Vec<String>,
    /// Edits to undo.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    due: Vec<StrayEdit>,
}

impl StrayEdits {
    pub fn is_empty(&self) -> bool {
        *self == StrayEdits::default()
    }

    fn is_new_edit(&self, stray_edit: &StrayEdit) -> bool {
        // A later edit of the same path is new again, unless the user has confirmed the edits of this path.
        let is_same_edit = |known: &StrayEdit| known.path == stray_edit.path && known.after == stray_edit.after;
        !self.known.iter().any(is_same_edit) && !self.theirs.iter().any(|path| is_path_covered(path, &stray_edit.path))
    }

    pub(super) fn record_answer(&mut self, answered_edits: Vec<StrayEdit>, restore_them: bool) {
        if restore_them {
            self.due.extend(answered_edits);
        } else {
            self.theirs.extend(answered_edits.into_iter().map(|stray_edit| stray_edit.path));
        }
    }
}

impl<T: EffectSet> UserDialog<T> {
    /// Asks the user about stray edits that an agent's task reported, in one question.
    pub async fn ask_about_strays(
        &mut self,
        host: &(dyn Host<T> + '_),
        parent_key: &Key,
        strayed: &[StrayEdit],
    ) -> Result<(), ParkedRun> {
        let mut new_edits: Vec<StrayEdit> = Vec::new();
        for stray_edit in strayed {
            // A second attempt of the same task may have changed the path once more.
            if let Some(earlier_edit) = new_edits.iter_mut().find(|earlier| earlier.path == stray_edit.path) {
                earlier_edit.after.clone_from(&stray_edit.after);
                continue;
            }
            if !self.strays.is_new_edit(stray_edit) || self.has_open_question_about(&stray_edit.path) {
                continue;
            }
            // The edit is remembered at once: agents in parallel report the same one.
            self.strays.known.push(stray_edit.clone());
            if stray_edit.after == PathState::Unwatched {
                let text = format!("the project has too many files: changes in {} are not noticed", stray_edit.path);
                host.note_event(RunEvent::Warned { text });
            } else {
                new_edits.push(stray_edit.clone());
            }
        }
        if new_edits.is_empty() {
            return Ok(());
        }
        let decision_id = self.next_decision_id();
        let decision_key = parent_key.child_key(&format!("stray-{decision_id}"));
        let question = stray_edit_question(&new_edits);
        let decision = Decision::for_stray_edits(decision_id, new_edits, question);
        self.post_decision(host, &decision_key, decision).await
    }

    /// Returns the edits that the user was asked about and has not answered for.
    fn unanswered_edits(&self) -> impl Iterator<Item = &StrayEdit> {
        let asked_edits = self.open_decisions().filter_map(|decision| match &decision.about {
            DecisionTopic::Strayed { strays } => Some(strays),
            _ => None,
        });
        asked_edits.flatten()
    }

    fn has_open_question_about(&self, path: &str) -> bool {
        self.unanswered_edits().any(|stray_edit| stray_edit.covers_path(path))
    }

    /// Describes what the user was asked about and has not answered for; `None` if there is nothing.
    pub fn describe_unanswered_strays(&self) -> Option<String> {
        let file_count = self.unanswered_edits().map(StrayEdit::count_files).fold(0, u32::saturating_add);
        (file_count > 0).then(|| format!("{} changed outside this run", format_count(file_count, "file")))
    }

    pub fn has_edits_to_restore(&self) -> bool {
        !self.strays.due.is_empty()
    }

    /// Puts back what the user wants to be as it was.
    pub async fn restore_strays(&mut self, host: &(dyn Host<T> + '_)) -> Result<(), ParkedRun> {
        let (edits_to_restore, lost_edits): (Vec<StrayEdit>, Vec<StrayEdit>) =
            core::mem::take(&mut self.strays.due).into_iter().partition(|stray_edit| stray_edit.kept);
        for lost_edit in lost_edits {
            let text = format!("{} stays as it is: its previous state was not kept", lost_edit.path);
            host.note_event(RunEvent::Warned { text });
        }
        for (edit_index, stray_edit) in edits_to_restore.into_iter().enumerate() {
            let path = stray_edit.path.clone();
            let restore_key = Key::for_restore(edit_index as u32 + 1);
            let warning = match host.perform(restore_key.clone(), Restore { stray: stray_edit.clone() }).await? {
                RestoreOutcome::Restored { parked: Some(parked) } if stray_edit.before == PathState::Missing => {
                    format!("removed {path} (it is kept as {parked})")
                }
                RestoreOutcome::Restored { parked: Some(parked) } => {
                    format!("restored {path} (the changed version is kept as {parked})")
                }
                RestoreOutcome::Restored { parked: None } => format!("restored {path}"),
                RestoreOutcome::Failed { fault } => {
                    // The stray edit is still there, so the user is asked again, without the choice to restore it.
                    let question = format!("could not restore {path}: {}. Keep it as it is?", fault.detail);
                    let decision_id = self.next_decision_id();
                    let lost_edit = StrayEdit { kept: false, ..stray_edit };
                    let decision = Decision::for_stray_edits(decision_id, Vec::from([lost_edit]), question.clone());
                    self.post_decision(host, &restore_key.child_key("ask"), decision).await?;
                    question
                }
            };
            host.note_event(RunEvent::Warned { text: warning });
        }
        Ok(())
    }
}

fn stray_edit_question(edits: &[StrayEdit]) -> String {
    // The question names the first paths only; the decision itself has all of them.
    let mut described_edits: Vec<String> = edits.iter().take(MAX_NAMED_PATHS).map(describe_edit).collect();
    let other_files = edits.iter().skip(MAX_NAMED_PATHS).map(StrayEdit::count_files).fold(0, u32::saturating_add);
    if other_files > 0 {
        described_edits.push(format!("{} changed", format_count(other_files, "more file")));
    }
    let lost_paths: Vec<&str> =
        edits.iter().filter(|stray_edit| !stray_edit.kept).map(|stray_edit| stray_edit.path.as_str()).collect();
    let lost_note = match lost_paths.as_slice() {
        [] => String::new(),
        named_paths if named_paths.len() <= MAX_NAMED_PATHS => {
            format!(" What cannot be put back: {}.", named_paths.join(", "))
        }
        named_paths => {
            let first_paths = named_paths[..MAX_NAMED_PATHS].join(", ");
            format!(" What cannot be put back: {first_paths} and {} more.", named_paths.len() - MAX_NAMED_PATHS)
        }
    };
    format!(
        "{} while agents were running, but not by applying a patch. Was that you?{lost_note}",
        described_edits.join(", ")
    )
}

fn describe_edit(stray_edit: &StrayEdit) -> String {
    let StrayEdit { path, before, after, .. } = stray_edit;
    match (before, after) {
        (PathState::Missing, PathState::Link { target }) => format!("{path} appeared (a symlink to {target})"),
        (PathState::Missing, PathState::Special) => format!("{path} appeared (a FIFO, socket or device)"),
        (PathState::Missing, PathState::Files { count }) => {
            format!("{path} appeared ({})", format_count(*count, "file"))
        }
        (PathState::Missing, _) => format!("{path} appeared"),
        (_, PathState::Missing) => format!("{path} was deleted"),
        (_, PathState::Files { count }) => format!("{path} was changed ({})", format_count(*count, "file")),
        (PathState::Link { target: old_target }, PathState::Link { target }) => {
            format!("{path} points to {target} (before: {old_target})")
        }
        (_, PathState::Link { target }) => format!("{path} became a symlink to {target}"),
        (PathState::File { hash: old_hash, mode: old_mode }, PathState::File { hash, mode }) if old_mode != mode => {
            let change = if old_hash == hash { "has" } else { "was changed and has" };
            format!("{path} {change} the mode {mode:o} (before: {old_mode:o})")
        }
        (PathState::Directory { mode: old_mode }, PathState::Directory { mode }) => {
            format!("{path} has the mode {mode:o} (before: {old_mode:o})")
        }
        (PathState::Directory { .. }, PathState::File { .. }) => format!("{path} became a file"),
        (_, PathState::Directory { .. }) => format!("{path} became a directory"),
        (PathState::File { .. } | PathState::Link { .. } | PathState::Directory { .. }, PathState::Special) => {
            format!("{path} became a FIFO, socket or device")
        }
        _ => format!("{path} was changed"),
    }
}
