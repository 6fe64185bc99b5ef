//! What a run has landed: the journal says which changes and for which findings, the checkpoints have their exact texts.
//!
//! Nothing is changed here; [`crate::landing::undo`] undoes landings.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use tribunal_engine::{
    files::{PathState, StrayEdit},
    ids::{FindingId, Key, RunId},
};
use tribunal_store::{Store, StoreError};
use tribunal_workflows::{
    findings::finding::FindingStatus,
    review::{event::ReviewEvent, review_keys::ReviewKeys},
    runs::{
        effect::{Effect, Land, LandOutcome, Reply},
        types::{JournalEntry, RunEvent, find_event},
        view::{RunPhase, RunView},
    },
};

use crate::{
    landing::{
        checkpoints::{CheckpointChange, CheckpointKey, CheckpointStore},
        merging::{LineRange, count_changed_lines, map_to_old_lines, merge_or_all_conflicts, render_patch},
    },
    project::{Project, file_edits::FileEdit},
};

#[derive(Debug, thiserror::Error)]
pub enum LandingsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("run {run} has no finding {finding}")]
    NoFinding { run: RunId, finding: FindingId },
    #[error("run {run} has no checkpoints: it was made by an older version of Tribunal")]
    MissingCheckpoint { run: RunId },
    #[error("the fixes of run {run} were made by a session, directly in your files")]
    ChangedInSession {
        run: RunId,
        /// Whether the project is in a git repository, which may know the text from before.
        has_git: bool,
    },
    #[error("could not use a checkpoint of run {run}: {cause}")]
    Damaged { run: RunId, cause: io::Error },
}

/// A change that landed.
#[derive(Clone, Debug)]
pub struct LandingRecord {
    pub(crate) checkpoint_key: CheckpointKey,
    /// The findings it repaired: claimed by its fixer, and confirmed by the change.
    pub findings: Vec<FindingId>,
    /// Whether it was undone.
    pub is_undone: bool,
}

impl LandingRecord {
    /// Returns the key of the task that made the change.
    pub fn task_key(&self) -> &Key {
        &self.checkpoint_key.task_key
    }
}

/// All landings of a run, in order.
#[derive(Debug)]
pub struct RunLandings {
    pub run_id: RunId,
    pub landed_changes: Vec<LandingRecord>,
    /// Landings that were begun and whose outcome was never recorded.
    pub(crate) unresolved_keys: Vec<CheckpointKey>,
    pub(crate) run_view: RunView,
    pub(crate) checkpoints: CheckpointStore,
    /// Whether the project is in a git repository.
    has_git: bool,
}

/// What was changed, for display and for `patch`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LandingsDiff {
    /// In the order of their paths.
    pub file_diffs: Vec<RenderedFileDiff>,
    /// Whether the same lines were edited between two landings, so that those edits are shown as well.
    pub includes_other_edits: bool,
}

/// What was changed in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFileDiff {
    pub relative_path: String,
    pub file_change: FileChangeKind,
    /// The unified diff.
    pub patch_text: String,
    pub added_lines: u32,
    pub removed_lines: u32,
    /// How many landings changed the file.
    pub landing_count: usize,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChangeKind {
    Modified,
    Created,
    Deleted,
}

impl LandingsDiff {
    pub fn patch_text(&self) -> String {
        self.file_diffs.iter().map(|file| file.patch_text.as_str()).collect()
    }

    pub fn added_lines(&self) -> u32 {
        self.file_diffs.iter().map(|file| file.added_lines).sum()
    }

    pub fn removed_lines(&self) -> u32 {
        self.file_diffs.iter().map(|file| file.removed_lines).sum()
    }
}

impl RenderedFileDiff {
    /// Shows an edit before it is made.
    pub fn from_edit(edit: &FileEdit) -> RenderedFileDiff {
        RenderedFileDiff::from_texts(&edit.relative_path, edit.old_text.as_deref(), edit.new_text.as_deref())
    }

    pub(crate) fn from_texts(relative_path: &str, old_text: Option<&str>, new_text: Option<&str>) -> RenderedFileDiff {
        let (added_lines, removed_lines) =
            count_changed_lines(old_text.unwrap_or_default(), new_text.unwrap_or_default());
        let change_kind = match (old_text, new_text) {
            (None, Some(_)) => FileChangeKind::Created,
            (Some(_), None) => FileChangeKind::Deleted,
            _ => FileChangeKind::Modified,
        };
        RenderedFileDiff {
            relative_path: relative_path.to_string(),
            file_change: change_kind,
            patch_text: render_patch(relative_path, old_text, new_text),
            added_lines,
            removed_lines,
            landing_count: 1,
        }
    }

    /// Shows what each change did by itself instead of the sum of all changes.
    fn list_each_change(mut self, changed_files: &[&CheckpointChange]) -> RenderedFileDiff {
        (self.patch_text, self.added_lines, self.removed_lines) = Default::default();
        for change in changed_files {
            let single_diff = RenderedFileDiff::from_texts(
                &self.relative_path,
                change.text_before.as_deref(),
                change.text_after.as_deref(),
            );
            self.patch_text += &single_diff.patch_text;
            self.added_lines += single_diff.added_lines;
            self.removed_lines += single_diff.removed_lines;
        }
        self
    }
}

/// What landings did, file by file and in order.
pub(crate) type ChangesByFile<'a> = BTreeMap<String, Vec<(&'a LandingRecord, CheckpointChange)>>;

impl RunLandings {
    pub fn read_landings(project: &Project, store: &Store, run_id: &RunId) -> Result<RunLandings, LandingsError> {
        let entries = store.read_entries(run_id, 0)?;
        let run_view = RunView::from_entries(&entries);
        let (mut landed_changes, unresolved_keys) = fold_landings(&entries);
        let checkpoints = CheckpointStore::for_run(project, run_id);
        for landing in &mut landed_changes {
            landing.is_undone = checkpoints.is_undone(&landing.checkpoint_key);
        }
        let has_git = project.root().ancestors().any(|directory| directory.join(".git").exists());
        Ok(RunLandings { run_id: run_id.clone(), landed_changes, unresolved_keys, run_view, checkpoints, has_git })
    }

    /// Returns the one file that the run reviews, if it reviews a single one.
    pub fn subject_path(&self) -> Option<&str> {
        self.run_view.order.as_ref()?.as_review()?.subject.file_path()
    }

    /// Returns the landings that repaired the finding, or all of them.
    pub fn landings_for(&self, finding_id: Option<FindingId>) -> Result<Vec<&LandingRecord>, LandingsError> {
        if let Some(finding_id) = finding_id.filter(|finding_id| self.run_view.find_finding(*finding_id).is_none()) {
            return Err(LandingsError::NoFinding { run: self.run_id.clone(), finding: finding_id });
        }
        let is_wanted =
            |landing: &&LandingRecord| finding_id.is_none_or(|finding_id| landing.findings.contains(&finding_id));
        Ok(self.landed_changes.iter().filter(is_wanted).collect())
    }

    /// Whether the run has finished for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.run_view.phase, RunPhase::Finished(_))
    }

    /// Returns what the run changed and was not undone, or only what repaired the finding. `None` means that nothing is left.
    pub fn diff_landings(&self, finding_id: Option<FindingId>) -> Result<Option<LandingsDiff>, LandingsError> {
        let wanted_landings: Vec<&LandingRecord> =
            self.landings_for(finding_id)?.into_iter().filter(|landing| !landing.is_undone).collect();
        if wanted_landings.is_empty() {
            return Ok(None);
        }
        let mut landings_diff = LandingsDiff::default();
        // The diff is built per file, since the user reads and applies it that way.
        for (relative_path, file_changes) in self.group_by_file(&wanted_landings)? {
            let landing_keys: BTreeSet<&CheckpointKey> =
                file_changes.iter().map(|(landing, _)| &landing.checkpoint_key).collect();
            let file_changes: Vec<&CheckpointChange> = file_changes.iter().map(|(_, change)| change).collect();
            let (Some(first_change), Some(last_change)) = (file_changes.first(), file_changes.last()) else {
                continue;
            };
            let final_text = last_change.text_after.as_deref();
            // Edits that were made between two landings do not belong to the run.
            let original_text = remove_changes(final_text, &file_changes);
            landings_diff.includes_other_edits |= finding_id.is_none() && original_text.is_err();
            // The edits overlap with a landing, so the diff falls back to the text before the first landing.
            let original_text = original_text.unwrap_or_else(|_| first_change.text_before.clone());
            let mut file_diff = RenderedFileDiff::from_texts(&relative_path, original_text.as_deref(), final_text);
            file_diff.landing_count = landing_keys.len();
            landings_diff.file_diffs.push(if finding_id.is_some() {
                file_diff.list_each_change(&file_changes)
            } else {
                file_diff
            });
        }
        Ok(Some(landings_diff))
    }

    pub(crate) fn group_by_file<'a>(&self, landings: &[&'a LandingRecord]) -> Result<ChangesByFile<'a>, LandingsError> {
        let mut changes_by_file = ChangesByFile::new();
        for landing in landings {
            let landing_changes = self.checkpoint_changes(landing)?.into_iter();
            // An attempt may have found nothing left to do.
            for change in landing_changes.filter(|change| change.text_before != change.text_after) {
                changes_by_file.entry(change.relative_path.clone()).or_default().push((landing, change));
            }
        }
        Ok(changes_by_file)
    }

    fn checkpoint_changes(&self, landing: &LandingRecord) -> Result<Vec<CheckpointChange>, LandingsError> {
        let landing_changes =
            self.checkpoints.landing_changes(&landing.checkpoint_key).map_err(|cause| self.damaged_error(cause))?;
        // A record that came with a clone may name files that the run never reviewed.
        if let Some(foreign_change) = landing_changes
            .iter()
            .find(|change| self.subject_path().is_some_and(|subject_path| subject_path != change.relative_path))
        {
            return Err(self.damaged_error(io::Error::other(format!(
                "it contains {}, which the run did not review",
                foreign_change.relative_path
            ))));
        }
        // A session edits the user's files directly, so there never was a checkpoint.
        if landing_changes.is_empty() && landing.task_key().is_session() {
            Err(LandingsError::ChangedInSession { run: self.run_id.clone(), has_git: self.has_git })
        } else if landing_changes.is_empty() {
            Err(LandingsError::MissingCheckpoint { run: self.run_id.clone() })
        } else {
            Ok(landing_changes)
        }
    }

    pub(crate) fn damaged_error(&self, cause: io::Error) -> LandingsError {
        LandingsError::Damaged { run: self.run_id.clone(), cause }
    }
}

/// The reason why a change cannot be removed from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoClash {
    /// These lines of the file were changed as well.
    SameLines(Vec<LineRange>),
    /// The file is gone.
    FileGone,
    /// The change created the file, and it has been edited since.
    EditedSinceCreated,
    /// The change deleted the file, and it exists again.
    CreatedAgain,
}

/// Removes changes from a file, the last one first; all other edits stay. `None` stands for a missing file.
pub(crate) fn remove_changes(
    current_text: Option<&str>,
    landing_changes: &[&CheckpointChange],
) -> Result<Option<String>, UndoClash> {
    let mut remaining_text = current_text.map(String::from);
    for change in landing_changes.iter().rev().filter(|change| change.text_before != change.text_after) {
        remaining_text = match (&change.text_before, &change.text_after, remaining_text) {
            // The exact text before or after the change needs no merge.
            (text_before, text_after, remaining_text)
                if remaining_text == *text_after || remaining_text == *text_before =>
            {
                text_before.clone()
            }
            (Some(text_before), Some(text_after), Some(remaining_text)) => {
                Some(merge_or_all_conflicts(text_after, &remaining_text, text_before).map_err(|conflicts| {
                    // The conflict is in the text of this step; the user wants to know the lines of the file as it is.
                    let to_file_lines =
                        |lines| map_to_old_lines(lines, current_text.unwrap_or(&remaining_text), &remaining_text);
                    UndoClash::SameLines(conflicts.into_iter().map(to_file_lines).collect())
                })?)
            }
            (None, _, _) => return Err(UndoClash::EditedSinceCreated),
            (Some(_), None, _) => return Err(UndoClash::CreatedAgain),
            (Some(_), Some(_), None) => return Err(UndoClash::FileGone),
        };
    }
    Ok(remaining_text)
}

/// Returns the landings in order, and those that were begun and neither recorded nor refused.
fn fold_landings(entries: &[JournalEntry]) -> (Vec<LandingRecord>, Vec<CheckpointKey>) {
    let (mut landed_changes, mut begun_keys) = (Vec::<LandingRecord>::new(), BTreeSet::new());
    // Claims of the last landing whose outcome is still open; the outcome is noted right after the landing.
    let mut open_claims: Vec<FindingId> = Vec::new();
    let mut segment = 0;
    for entry in entries {
        match &entry.event {
            RunEvent::Boundary { segment: ended_segment, .. } => segment = ended_segment + 1,
            RunEvent::EffectStarted { key: entry_key, effect: Effect::Land(Land { by: task_key, preview: false, .. }), segment, .. } => {
                begun_keys.insert((CheckpointKey { segment: *segment, task_key: task_key.clone() }, entry_key.clone()));
            }
            RunEvent::EffectFinished { key: entry_key, segment, reply }
                // A failed or refused landing is settled. A landed one stays until its `PatchLanded` entry.
                if !matches!(reply, Reply::Land(LandOutcome::Landed(_))) =>
            {
                begun_keys.retain(|(checkpoint_key, effect_key): &(CheckpointKey, Key)| {
                    checkpoint_key.segment != *segment || effect_key != entry_key
                });
            }
            event => match find_event::<ReviewEvent>(event) {
                Some(ReviewEvent::PatchLanded { key: entry_key, findings, .. }) => {
                    let checkpoint_key = CheckpointKey { segment, task_key: entry_key.clone() };
                    begun_keys.retain(|(begun_key, _)| *begun_key != checkpoint_key);
                    open_claims.clone_from(findings);
                    landed_changes.push(LandingRecord { checkpoint_key, findings: Vec::new(), is_undone: false });
                }
                Some(ReviewEvent::FindingMoved { finding: finding_id, transition }) => {
                    let claim_count = open_claims.len();
                    open_claims.retain(|claim| claim != finding_id);
                    let was_claimed = open_claims.len() < claim_count;
                    if let (true, FindingStatus::Fixed, Some(landing)) = (was_claimed, &transition.to, landed_changes.last_mut()) {
                        landing.findings.push(*finding_id);
                    }
                }
                _ => {}
            },
        }
    }
    (landed_changes, begun_keys.into_iter().map(|(checkpoint_key, _)| checkpoint_key).collect())
}

/// Renders the diff of a stray edit. Returns `None` if a version was not stored or is not text.
pub fn diff_stray_edit(project: &Project, run_id: &RunId, stray: &StrayEdit) -> Option<String> {
    let checkpoints = CheckpointStore::for_run(project, run_id);
    let read_version = |state: &PathState| match state {
        PathState::Missing => Some(None),
        PathState::File { hash: Some(content_hash), .. } => {
            String::from_utf8(checkpoints.read_bytes(content_hash).ok()?).ok().map(Some)
        }
        _ => None,
    };
    let (text_before, text_after) = (read_version(&stray.before)?, read_version(&stray.after)?);
    Some(render_patch(&stray.path, text_before.as_deref(), text_after.as_deref()))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// A text of places with an untouched line between each two. The run changes every second place, the user changes the
    /// others.
    #[derive(Clone, Debug)]
    struct PlacedText {
        places: Vec<String>,
        end: &'static str,
        /// Whether the last line has a line end.
        whole: bool,
    }

    impl PlacedText {
        fn render_text(&self) -> String {
            let mut page_text = String::new();
            for (place_number, place_text) in self.places.iter().enumerate() {
                for line in place_text.lines() {
                    page_text.push_str(line);
                    page_text.push_str(self.end);
                }
                page_text.push_str(&format!("between {place_number}{}", self.end));
            }
            if !self.whole {
                page_text.truncate(page_text.len() - self.end.len());
            }
            page_text
        }

        fn with_change(&self, place_number: usize, is_of_run: bool, new_words: &str) -> PlacedText {
            let mut changed_page = self.clone();
            let place_number = place_number % (changed_page.places.len() / 2) * 2 + usize::from(!is_of_run);
            changed_page.places[place_number] = new_words.to_string();
            changed_page
        }
    }

    fn random_words() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), "[a-z]{1,6}", "[a-z]{1,3}\n\n[a-z]{1,3}", Just("\n".to_string())]
    }

    fn random_page() -> impl Strategy<Value = PlacedText> {
        let line_end = prop_oneof![Just("\n"), Just("\r\n")];
        (vec(random_words(), 2..16), line_end, any::<bool>()).prop_map(|(mut places, line_end, whole)| {
            places.truncate(places.len() / 2 * 2);
            PlacedText { places, end: line_end, whole }
        })
    }

    /// Random edits: whether the run made it, at which place, and the new words.
    fn random_history() -> impl Strategy<Value = Vec<(bool, usize, String)>> {
        vec((any::<bool>(), 0..16_usize, random_words()), 0..12)
    }

    fn page_change(page_before: &PlacedText, after: &PlacedText) -> CheckpointChange {
        text_change(Some(&page_before.render_text()), Some(&after.render_text()))
    }

    fn text_change(text_before: Option<&str>, text_after: Option<&str>) -> CheckpointChange {
        CheckpointChange {
            relative_path: "a.md".into(),
            text_before: text_before.map(String::from),
            text_after: text_after.map(String::from),
        }
    }

    /// Removes the changes from a file that exists before and after.
    fn remove_all_changes(text: &str, changed_files: &[CheckpointChange]) -> Result<String, UndoClash> {
        let remaining_text = remove_changes(Some(text), &changed_files.iter().collect::<Vec<&CheckpointChange>>())?;
        Ok(remaining_text.expect("it is still there"))
    }

    proptest! {
        #[test]
        fn without_later_edits_all_landings_taken_back_give_the_original_bytes(
            states in vec(proptest::option::weighted(0.8, "([a-c]{0,2}(\n|\r\n|\r)?){0,8}"), 2..6)
        ) {
            let states: Vec<Option<&str>> = states.iter().map(Option::as_deref).collect();
            let changes: Vec<CheckpointChange> = states.windows(2).map(|pair| text_change(pair[0], pair[1])).collect();
            let then = remove_changes(states[states.len() - 1], &changes.iter().collect::<Vec<&CheckpointChange>>());
            prop_assert_eq!(then.as_ref().map(Option::as_deref), Ok(states[0]));
        }

        #[test]
        fn edits_elsewhere_survive_byte_for_byte(start in random_page(), history in random_history()) {
            let (mut now, mut expected, mut changes) = (start.clone(), start, Vec::new());
            for (is_of_run, place, words) in history {
                let next = now.with_change(place, is_of_run, &words);
                if is_of_run {
                    changes.push(page_change(&now, &next));
                } else {
                    expected = expected.with_change(place, false, &words);
                }
                now = next;
            }
            prop_assert_eq!(remove_all_changes(&now.render_text(), &changes), Ok(expected.render_text()));
        }

        #[test]
        fn one_landing_is_taken_out_and_the_others_stay(start in random_page(), others in vec(random_words(), 1..8), which in 0..8_usize) {
            let count = (start.places.len() / 2).min(others.len());
            let (mut now, mut expected, mut taken) = (start.clone(), start, None);
            for (place, words) in others.iter().enumerate().take(count) {
                let next = now.with_change(place, true, words);
                if place == which % count {
                    taken = Some(page_change(&now, &next));
                } else {
                    expected = expected.with_change(place, true, words);
                }
                now = next;
            }
            prop_assert_eq!(remove_all_changes(&now.render_text(), taken.as_slice()), Ok(expected.render_text()));
        }

        #[test]
        fn what_people_wrote_is_never_lost(start in random_page(), landed in random_words(), place in 0..16_usize, edited in 0..16_usize) {
            // The user writes anywhere, also where the run has changed something; each such line is unique.
            let after = start.with_change(place, true, &landed);
            let mut lines: Vec<String> = after.render_text().split_inclusive('\n').map(String::from).collect();
            let at = edited.min(lines.len() - 1);
            lines[at] = format!("MINE{}", after.end);
            let now: String = lines.concat();
            if let Ok(then) = remove_all_changes(&now, &[page_change(&start, &after)]) {
                prop_assert!(then.contains(&format!("MINE{}", after.end)), "{then:?}");
            }
        }
    }

    #[test]
    fn a_clash_names_the_line_as_the_file_has_it() {
        let changed_files = [
            text_change(Some("1\n2\n3\n4\n"), Some("1\n2\n3\nfour\n")),
            text_change(Some("1\n2\n3\nfour\n"), Some("1\n1b\n1c\n2\n3\nfour\n")),
        ];
        // Removing the second change moves the line; the error names it as it is in the file.
        let refused = remove_all_changes("1\n1b\n1c\n2\n3\nvier\n", &changed_files);
        assert_eq!(refused, Err(UndoClash::SameLines(vec![LineRange { first_line: 6, last_line: 6 }])));
    }

    #[test]
    fn what_a_landing_made_goes_only_as_it_was_made_and_what_it_deleted_comes_back_only_where_nothing_is() {
        let (created, deleted, changed) =
            (text_change(None, Some("n\n")), text_change(Some("o\n"), None), text_change(Some("n\n"), Some("m\n")));
        let (gone, there) = (Ok(None), |text: &str| Ok(Some(text.to_string())));
        for (now, changed_files, then) in [
            (Some("n\n"), vec![&created], gone.clone()),
            (None, vec![&created], gone.clone()),
            (Some("n\nmine\n"), vec![&created], Err(UndoClash::EditedSinceCreated)),
            (Some("m\n"), vec![&created, &changed], gone.clone()),
            (Some("m\n"), vec![&created], Err(UndoClash::EditedSinceCreated)),
            (None, vec![&deleted], there("o\n")),
            (Some("o\n"), vec![&deleted], there("o\n")),
            (Some("mine\n"), vec![&deleted], Err(UndoClash::CreatedAgain)),
            (None, vec![&changed], Err(UndoClash::FileGone)),
            (None, vec![&created, &text_change(Some("n\n"), None)], gone),
        ] {
            assert_eq!(remove_changes(now, &changed_files), then, "{now:?} without {changed_files:?}");
        }
    }
}
