//! What a run has landed: the journal says which changes and for which findings, the checkpoints have their exact texts.
//!
//! Nothing is changed here; [`crate::undo`] undoes landings.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use tribunal_core::{
    effect::{Effect, Land, LandOutcome, Reply},
    event::{Entry, Event},
    files::Stray,
    finding::{Status, Transition},
    ids::{FindingId, Hash, Key, RunId},
    view::{Phase, RunView},
};
use tribunal_store::{Store, StoreError};

use crate::{
    checkpoints::{At, Change, Checkpoints},
    merging::{Lines, counted, merged, patch, traced_back},
    project::Project,
};

#[derive(Debug, thiserror::Error)]
pub enum LandingsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("run {run} has no finding {finding}")]
    NoFinding { run: RunId, finding: FindingId },
    #[error("run {run} was made by a Tribunal that kept no checkpoints")]
    NoCheckpoint { run: RunId },
    #[error("what run {run} repaired was changed by a session, in your own files")]
    InSession { run: RunId },
    #[error("a checkpoint of run {run} cannot be used: {cause}")]
    Damaged { run: RunId, cause: io::Error },
}

/// A change that landed.
#[derive(Clone, Debug)]
pub struct Landing {
    pub(crate) at: At,
    /// The findings it repaired: claimed by its fixer, and confirmed by the change.
    pub findings: Vec<FindingId>,
    /// Whether it was undone.
    pub undone: bool,
}

impl Landing {
    /// Returns the key of the task that made the change.
    pub fn by(&self) -> &Key {
        &self.at.by
    }
}

/// All landings of a run, in order.
#[derive(Debug)]
pub struct Landings {
    pub run: RunId,
    pub all: Vec<Landing>,
    /// Landings that were begun and whose outcome was never recorded.
    pub(crate) under_way: Vec<At>,
    pub(crate) view: RunView,
    pub(crate) checkpoints: Checkpoints,
}

/// What was changed, for display and for `patch`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// In the order of their paths.
    pub files: Vec<FileDiff>,
    /// Whether the same lines were edited between two landings, so that those edits are shown as well.
    pub mixed: bool,
}

/// What was changed in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    pub what: What,
    /// The unified diff.
    pub text: String,
    pub added: u32,
    pub removed: u32,
    /// How many landings changed the file.
    pub landings: usize,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Changed,
    Made,
    Deleted,
}

impl Diff {
    pub fn text(&self) -> String {
        self.files.iter().map(|file| file.text.as_str()).collect()
    }

    pub fn added(&self) -> u32 {
        self.files.iter().map(|file| file.added).sum()
    }

    pub fn removed(&self) -> u32 {
        self.files.iter().map(|file| file.removed).sum()
    }
}

impl FileDiff {
    pub(crate) fn between(path: &str, old: Option<&str>, new: Option<&str>) -> FileDiff {
        let (added, removed) = counted(old.unwrap_or_default(), new.unwrap_or_default());
        let what = match (old, new) {
            (None, Some(_)) => What::Made,
            (Some(_), None) => What::Deleted,
            _ => What::Changed,
        };
        FileDiff { path: path.to_string(), what, text: patch(path, old, new), added, removed, landings: 1 }
    }

    /// Shows what each change did by itself instead of the sum of all changes.
    fn one_by_one(mut self, changes: &[&Change]) -> FileDiff {
        (self.text, self.added, self.removed) = Default::default();
        for change in changes {
            let one = FileDiff::between(&self.path, change.before.as_deref(), change.after.as_deref());
            self.text += &one.text;
            self.added += one.added;
            self.removed += one.removed;
        }
        self
    }
}

/// What landings did, file by file and in order.
pub(crate) type ByFile<'a> = BTreeMap<String, Vec<(&'a Landing, Change)>>;

impl Landings {
    pub fn read(project: &Project, store: &Store, run: &RunId) -> Result<Landings, LandingsError> {
        let entries = store.entries(run, 0)?;
        let view = RunView::of(&entries);
        let (mut all, under_way) = recorded(&entries);
        let checkpoints = Checkpoints::of(project, run);
        for landing in &mut all {
            landing.undone = checkpoints.is_undone(&landing.at);
        }
        Ok(Landings { run: run.clone(), all, under_way, view, checkpoints })
    }

    /// Returns the one file that the run reviews, if it reviews a single one.
    pub fn path(&self) -> Option<&str> {
        self.view.settings.as_ref()?.subject.path()
    }

    /// Returns the landings that repaired the finding, or all of them.
    pub fn of(&self, finding: Option<FindingId>) -> Result<Vec<&Landing>, LandingsError> {
        if let Some(finding) = finding.filter(|finding| !self.view.findings.contains_key(finding)) {
            return Err(LandingsError::NoFinding { run: self.run.clone(), finding });
        }
        let wanted = |landing: &&Landing| finding.is_none_or(|finding| landing.findings.contains(&finding));
        Ok(self.all.iter().filter(wanted).collect())
    }

    /// Whether the run has finished for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.view.phase, Phase::Finished(_))
    }

    /// Returns what the run changed and was not undone, or only what repaired the finding. `None` means that nothing is left.
    pub fn diff(&self, finding: Option<FindingId>) -> Result<Option<Diff>, LandingsError> {
        let wanted: Vec<&Landing> = self.of(finding)?.into_iter().filter(|landing| !landing.undone).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut diff = Diff::default();
        // The diff is built per file, since the user reads and applies it that way.
        for (path, changes) in self.by_file(&wanted)? {
            let landings: BTreeSet<&At> = changes.iter().map(|(landing, _)| &landing.at).collect();
            let changes: Vec<&Change> = changes.iter().map(|(_, change)| change).collect();
            let (Some(first), Some(last)) = (changes.first(), changes.last()) else { continue };
            let after = last.after.as_deref();
            // Edits that were made between two landings do not belong to the run.
            let before = without(after, &changes);
            diff.mixed |= finding.is_none() && before.is_err();
            // The edits overlap with a landing, so the diff falls back to the text before the first landing.
            let before = before.unwrap_or_else(|_| first.before.clone());
            let mut file = FileDiff::between(&path, before.as_deref(), after);
            file.landings = landings.len();
            diff.files.push(if finding.is_some() { file.one_by_one(&changes) } else { file });
        }
        Ok(Some(diff))
    }

    pub(crate) fn by_file<'a>(&self, landings: &[&'a Landing]) -> Result<ByFile<'a>, LandingsError> {
        let mut files = ByFile::new();
        for landing in landings {
            let changes = self.changes(landing)?.into_iter();
            // An attempt may have found nothing left to do.
            for change in changes.filter(|change| change.before != change.after) {
                files.entry(change.path.clone()).or_default().push((landing, change));
            }
        }
        Ok(files)
    }

    fn changes(&self, landing: &Landing) -> Result<Vec<Change>, LandingsError> {
        let changes = self.checkpoints.changes(&landing.at).map_err(|cause| self.damaged(cause))?;
        // A record that came with a clone may name files that the run never reviewed.
        if let Some(stranger) = changes.iter().find(|it| self.path().is_some_and(|path| path != it.path)) {
            return Err(self.damaged(io::Error::other(format!("it is one of {}", stranger.path))));
        }
        // A session edits the user's files directly, so there never was a checkpoint.
        if changes.is_empty() && landing.by().is_session() {
            Err(LandingsError::InSession { run: self.run.clone() })
        } else if changes.is_empty() {
            Err(LandingsError::NoCheckpoint { run: self.run.clone() })
        } else {
            Ok(changes)
        }
    }

    pub(crate) fn damaged(&self, cause: io::Error) -> LandingsError {
        LandingsError::Damaged { run: self.run.clone(), cause }
    }
}

/// The reason why a change cannot be removed from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clash {
    /// These lines of the file were changed as well.
    Lines(Vec<Lines>),
    /// The file is gone.
    Gone,
    /// The change created the file, and it has been edited since.
    NotAsMade,
    /// The change deleted the file, and it exists again.
    ThereAgain,
}

/// Removes changes from a file, the last one first; all other edits stay. `None` stands for a missing file.
pub(crate) fn without(text: Option<&str>, changes: &[&Change]) -> Result<Option<String>, Clash> {
    let mut now = text.map(String::from);
    for change in changes.iter().rev().filter(|change| change.before != change.after) {
        now = match (&change.before, &change.after, now) {
            // The exact text before or after the change needs no merge.
            (before, after, now) if now == *after || now == *before => before.clone(),
            (Some(before), Some(after), Some(now)) => {
                Some(merged(after, &now, before).map_err(|conflicts| {
                    // The conflict is in the text of this step; the user wants to know the lines of the file as it is.
                    let here = |lines| traced_back(lines, text.unwrap_or(&now), &now);
                    Clash::Lines(conflicts.into_iter().map(here).collect())
                })?)
            }
            (None, _, _) => return Err(Clash::NotAsMade),
            (Some(_), None, _) => return Err(Clash::ThereAgain),
            (Some(_), Some(_), None) => return Err(Clash::Gone),
        };
    }
    Ok(now)
}

/// Returns the landings in order, and those that were begun and neither recorded nor refused.
fn recorded(entries: &[Entry]) -> (Vec<Landing>, Vec<At>) {
    let (mut landed, mut begun) = (Vec::<Landing>::new(), BTreeSet::new());
    // Claims of the last landing whose outcome is still open; the outcome is noted right after the landing.
    let mut claimed: Vec<FindingId> = Vec::new();
    let mut stretch = 0;
    for entry in entries {
        match &entry.event {
            Event::Boundary { stretch: ended, .. } => stretch = ended + 1,
            Event::EffectStarted { key, effect: Effect::Land(Land { by, .. }), stretch, .. } => {
                begun.insert((At { stretch: *stretch, by: by.clone() }, key.clone()));
            }
            Event::EffectFinished { key, stretch, reply }
                // A failed or refused landing is settled. A landed one stays until its `PatchLanded` entry.
                if !matches!(reply, Reply::Land(LandOutcome::Landed(_))) =>
            {
                begun.retain(|(at, asked): &(At, Key)| at.stretch != *stretch || asked != key);
            }
            Event::PatchLanded { key, findings, .. } => {
                let at = At { stretch, by: key.clone() };
                begun.retain(|(known, _)| *known != at);
                claimed.clone_from(findings);
                landed.push(Landing { at, findings: Vec::new(), undone: false });
            }
            Event::FindingMoved { finding, transition: Transition { to, .. } } => {
                let known = claimed.len();
                claimed.retain(|claim| claim != finding);
                if let (true, Status::Fixed, Some(landing)) = (claimed.len() < known, to, landed.last_mut()) {
                    landing.findings.push(*finding);
                }
            }
            _ => {}
        }
    }
    (landed, begun.into_iter().map(|(at, _)| at).collect())
}

/// Renders the diff of a stray edit. Returns `None` if a version was not stored or is not text.
pub fn strayed(project: &Project, run: &RunId, stray: &Stray) -> Option<String> {
    let checkpoints = Checkpoints::of(project, run);
    let text = |hash: &Option<Hash>| match hash {
        None => Some(None),
        Some(hash) => String::from_utf8(checkpoints.bytes(hash).ok()?).ok().map(Some),
    };
    let (before, after) = (text(&stray.before)?, text(&stray.after)?);
    Some(patch(&stray.path, before.as_deref(), after.as_deref()))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// A text of places with an untouched line between each two. The run changes every second place, the user changes the
    /// others.
    #[derive(Clone, Debug)]
    struct Page {
        places: Vec<String>,
        end: &'static str,
        /// Whether the last line has a line end.
        whole: bool,
    }

    impl Page {
        fn text(&self) -> String {
            let mut text = String::new();
            for (number, place) in self.places.iter().enumerate() {
                for line in place.lines() {
                    text.push_str(line);
                    text.push_str(self.end);
                }
                text.push_str(&format!("between {number}{}", self.end));
            }
            if !self.whole {
                text.truncate(text.len() - self.end.len());
            }
            text
        }

        fn with(&self, place: usize, is_of_run: bool, words: &str) -> Page {
            let mut page = self.clone();
            let place = place % (page.places.len() / 2) * 2 + usize::from(!is_of_run);
            page.places[place] = words.to_string();
            page
        }
    }

    fn words() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), "[a-z]{1,6}", "[a-z]{1,3}\n\n[a-z]{1,3}", Just("\n".to_string())]
    }

    fn page() -> impl Strategy<Value = Page> {
        let end = prop_oneof![Just("\n"), Just("\r\n")];
        (vec(words(), 2..16), end, any::<bool>()).prop_map(|(mut places, end, whole)| {
            places.truncate(places.len() / 2 * 2);
            Page { places, end, whole }
        })
    }

    /// Random edits: whether the run made it, at which place, and the new words.
    fn history() -> impl Strategy<Value = Vec<(bool, usize, String)>> {
        vec((any::<bool>(), 0..16_usize, words()), 0..12)
    }

    fn change(before: &Page, after: &Page) -> Change {
        texts(Some(&before.text()), Some(&after.text()))
    }

    fn texts(before: Option<&str>, after: Option<&str>) -> Change {
        Change { path: "a.md".into(), before: before.map(String::from), after: after.map(String::from) }
    }

    /// Removes the changes from a file that exists before and after.
    fn without_all(text: &str, changes: &[Change]) -> Result<String, Clash> {
        let then = without(Some(text), &changes.iter().collect::<Vec<&Change>>())?;
        Ok(then.expect("it is still there"))
    }

    proptest! {
        #[test]
        fn without_later_edits_all_landings_taken_back_give_the_original_bytes(
            states in vec(proptest::option::weighted(0.8, "([a-c]{0,2}(\n|\r\n|\r)?){0,8}"), 2..6)
        ) {
            let states: Vec<Option<&str>> = states.iter().map(Option::as_deref).collect();
            let changes: Vec<Change> = states.windows(2).map(|pair| texts(pair[0], pair[1])).collect();
            let then = without(states[states.len() - 1], &changes.iter().collect::<Vec<&Change>>());
            prop_assert_eq!(then.as_ref().map(Option::as_deref), Ok(states[0]));
        }

        #[test]
        fn edits_elsewhere_survive_byte_for_byte(start in page(), history in history()) {
            let (mut now, mut expected, mut changes) = (start.clone(), start, Vec::new());
            for (is_of_run, place, words) in history {
                let next = now.with(place, is_of_run, &words);
                if is_of_run {
                    changes.push(change(&now, &next));
                } else {
                    expected = expected.with(place, false, &words);
                }
                now = next;
            }
            prop_assert_eq!(without_all(&now.text(), &changes), Ok(expected.text()));
        }

        #[test]
        fn one_landing_is_taken_out_and_the_others_stay(start in page(), others in vec(words(), 1..8), which in 0..8_usize) {
            let count = (start.places.len() / 2).min(others.len());
            let (mut now, mut expected, mut taken) = (start.clone(), start, None);
            for (place, words) in others.iter().enumerate().take(count) {
                let next = now.with(place, true, words);
                if place == which % count {
                    taken = Some(change(&now, &next));
                } else {
                    expected = expected.with(place, true, words);
                }
                now = next;
            }
            prop_assert_eq!(without_all(&now.text(), taken.as_slice()), Ok(expected.text()));
        }

        #[test]
        fn what_people_wrote_is_never_lost(start in page(), landed in words(), place in 0..16_usize, edited in 0..16_usize) {
            // The user writes anywhere, also where the run has changed something; each such line is unique.
            let after = start.with(place, true, &landed);
            let mut lines: Vec<String> = after.text().split_inclusive('\n').map(String::from).collect();
            let at = edited.min(lines.len() - 1);
            lines[at] = format!("MINE{}", after.end);
            let now: String = lines.concat();
            if let Ok(then) = without_all(&now, &[change(&start, &after)]) {
                prop_assert!(then.contains(&format!("MINE{}", after.end)), "{then:?}");
            }
        }
    }

    #[test]
    fn both_changed_one_line_and_the_line_of_the_file_is_named() {
        let changes = [
            texts(Some("1\n2\n3\n4\n"), Some("1\n2\n3\nfour\n")),
            texts(Some("1\n2\n3\nfour\n"), Some("1\n1b\n1c\n2\n3\nfour\n")),
        ];
        // Removing the second change moves the line; the error names it as it is in the file.
        let refused = without_all("1\n1b\n1c\n2\n3\nvier\n", &changes);
        assert_eq!(refused, Err(Clash::Lines(vec![Lines { first: 6, last: 6 }])));
    }

    #[test]
    fn what_a_landing_made_goes_only_as_it_was_made_and_what_it_deleted_comes_back_only_where_nothing_is() {
        let (made, deleted, changed) =
            (texts(None, Some("n\n")), texts(Some("o\n"), None), texts(Some("n\n"), Some("m\n")));
        let (gone, there) = (Ok(None), |text: &str| Ok(Some(text.to_string())));
        for (now, changes, then) in [
            (Some("n\n"), vec![&made], gone.clone()),
            (None, vec![&made], gone.clone()),
            (Some("n\nmine\n"), vec![&made], Err(Clash::NotAsMade)),
            (Some("m\n"), vec![&made, &changed], gone.clone()),
            (Some("m\n"), vec![&made], Err(Clash::NotAsMade)),
            (None, vec![&deleted], there("o\n")),
            (Some("o\n"), vec![&deleted], there("o\n")),
            (Some("mine\n"), vec![&deleted], Err(Clash::ThereAgain)),
            (None, vec![&changed], Err(Clash::Gone)),
            (None, vec![&made, &texts(Some("n\n"), None)], gone),
        ] {
            assert_eq!(without(now, &changes), then, "{now:?} without {changes:?}");
        }
    }
}
