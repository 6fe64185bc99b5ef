//! What a run has landed: the journal says which changes and for which findings, the checkpoints have their exact texts.
//!
//! Nothing is changed here; taking back is [`crate::undo`]'s.

use std::{collections::BTreeSet, io};

use tribunal_core::{
    effect::{Effect, Reply},
    event::{Entry, Event},
    finding::Status,
    ids::{FindingId, Key, RunId},
    view::{Phase, RunView},
};
use tribunal_store::{Store, StoreError};

use crate::{
    checkpoints::{At, Change, Checkpoints},
    merging::{Lines, counted, merged, traced_back, unified},
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
    #[error("a checkpoint of run {run} cannot be used: {cause}")]
    Damaged { run: RunId, cause: io::Error },
}

/// A change that landed.
#[derive(Clone, Debug)]
pub struct Landing {
    pub(crate) at: At,
    /// What it repaired: claimed by its fixer, and borne out by the change.
    pub findings: Vec<FindingId>,
    /// It was taken back.
    pub undone: bool,
}

impl Landing {
    /// Whose work it was.
    pub fn by(&self) -> &Key {
        &self.at.by
    }
}

/// All landings of a run, in their order.
#[derive(Debug)]
pub struct Landings {
    pub run: RunId,
    /// The one file they changed.
    pub path: String,
    pub all: Vec<Landing>,
    /// Begun, and nobody has recorded what came of it.
    pub(crate) under_way: Vec<At>,
    pub(crate) view: RunView,
    pub(crate) checkpoints: Checkpoints,
}

/// What was changed, for people and for `patch`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    pub text: String,
    pub added: u32,
    pub removed: u32,
    /// Somebody else changed the same lines between two landings, so that theirs are shown, too.
    pub mixed: bool,
}

impl Landings {
    pub fn read(project: &Project, store: &Store, run: &RunId) -> Result<Landings, LandingsError> {
        let entries = store.entries(run, 0)?;
        let view = RunView::of(&entries);
        let (mut all, under_way) = recorded(&entries);
        let path = view.settings.as_ref().and_then(|settings| settings.subject.path()).unwrap_or_default();
        let checkpoints = Checkpoints::of(project, run, path);
        for landing in &mut all {
            landing.undone = checkpoints.is_undone(&landing.at);
        }
        let (run, path) = (run.clone(), path.to_string());
        Ok(Landings { run, path, all, under_way, view, checkpoints })
    }

    /// Those that repaired the finding, else all.
    pub fn of(&self, finding: Option<FindingId>) -> Result<Vec<&Landing>, LandingsError> {
        if let Some(finding) = finding.filter(|finding| !self.view.findings.contains_key(finding)) {
            return Err(LandingsError::NoFinding { run: self.run.clone(), finding });
        }
        let wanted = |landing: &&Landing| finding.is_none_or(|finding| landing.findings.contains(&finding));
        Ok(self.all.iter().filter(wanted).collect())
    }

    /// The run has ended for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.view.phase, Phase::Finished(_))
    }

    /// What the run changed and was not taken back, or only what repaired the finding. None: nothing of that is left.
    pub fn diff(&self, finding: Option<FindingId>) -> Result<Option<Diff>, LandingsError> {
        let mut changes = Vec::new();
        for landing in self.of(finding)?.into_iter().filter(|landing| !landing.undone) {
            changes.extend(self.changes(landing)?);
        }
        let Some(last) = changes.last() else { return Ok(None) };
        if finding.is_some() {
            let each = changes.iter().map(|change| self.between(&change.before, &change.after, false));
            return Ok(each.reduce(Diff::and));
        }
        // What others did between two landings is not the run's.
        let before = without(&last.after, &changes);
        let mixed = before.is_err();
        let before = before.unwrap_or_else(|_| changes[0].before.clone());
        Ok(Some(self.between(&before, &last.after, mixed)))
    }

    pub(crate) fn between(&self, old: &str, new: &str, mixed: bool) -> Diff {
        let (added, removed) = counted(old, new);
        Diff { text: unified(&self.path, old, new), added, removed, mixed }
    }

    pub(crate) fn changes(&self, landing: &Landing) -> Result<Vec<Change>, LandingsError> {
        let run = || self.run.clone();
        let changes = self.checkpoints.changes(&landing.at);
        let changes = changes.map_err(|cause| LandingsError::Damaged { run: run(), cause })?;
        if changes.is_empty() { Err(LandingsError::NoCheckpoint { run: run() }) } else { Ok(changes) }
    }
}

impl Diff {
    fn and(self, next: Diff) -> Diff {
        Diff {
            text: self.text + &next.text,
            added: self.added + next.added,
            removed: self.removed + next.removed,
            mixed: self.mixed || next.mixed,
        }
    }
}

/// Takes changes out of a text, the last one first; whatever else was changed stays. Err: the lines of the text where
/// something else was changed in the same place.
pub(crate) fn without(text: &str, changes: &[Change]) -> Result<String, Vec<Lines>> {
    let mut now = text.to_string();
    for Change { before, after } in changes.iter().rev() {
        now = if now == *after {
            before.clone()
        } else {
            merged(after, &now, before).map_err(|conflicts| {
                conflicts.into_iter().map(|lines| traced_back(lines, text, &now)).collect::<Vec<Lines>>()
            })?
        };
    }
    Ok(now)
}

/// Landings in order, and those that were begun and neither recorded nor refused.
fn recorded(entries: &[Entry]) -> (Vec<Landing>, Vec<At>) {
    let (mut landed, mut begun) = (Vec::<Landing>::new(), BTreeSet::new());
    // Claims of the last landing that nothing was said about yet: what becomes of them is noted right behind it.
    let mut claimed: Vec<FindingId> = Vec::new();
    let mut stretch = 0;
    for entry in entries {
        match &entry.event {
            Event::Boundary { stretch: ended, .. } => stretch = ended + 1,
            Event::EffectStarted { effect: Effect::Land { by, .. }, stretch, .. } => {
                begun.insert(At { stretch: *stretch, by: by.clone() });
            }
            Event::EffectFinished { key, stretch, reply } if !matches!(reply, Reply::Landed { .. }) => {
                begun.retain(|at: &At| at.stretch != *stretch || at.by.child("land") != *key);
            }
            Event::PatchLanded { key, findings, .. } => {
                let at = At { stretch, by: key.clone() };
                begun.remove(&at);
                claimed.clone_from(findings);
                landed.push(Landing { at, findings: Vec::new(), undone: false });
            }
            Event::FindingMoved { finding, to, .. } => {
                let known = claimed.len();
                claimed.retain(|claim| claim != finding);
                if let (true, Status::Fixed, Some(landing)) = (claimed.len() < known, to, landed.last_mut()) {
                    landing.findings.push(*finding);
                }
            }
            _ => {}
        }
    }
    (landed, begun.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// A text of places with a line between each two that nobody touches. The run changes every second place, people change
    /// the others.
    #[derive(Clone, Debug)]
    struct Page {
        places: Vec<String>,
        end: &'static str,
        /// Whether the last line has an end.
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

    /// Who changes which place, and what into.
    fn history() -> impl Strategy<Value = Vec<(bool, usize, String)>> {
        vec((any::<bool>(), 0..16_usize, words()), 0..12)
    }

    fn change(before: &Page, after: &Page) -> Change {
        Change { before: before.text(), after: after.text() }
    }

    proptest! {
        #[test]
        fn without_later_edits_all_landings_taken_back_give_the_original_bytes(
            texts in vec("([a-c]{0,2}(\n|\r\n|\r)?){0,8}", 2..6)
        ) {
            let pairs = texts.windows(2);
            let changes: Vec<Change> =
                pairs.map(|pair| Change { before: pair[0].clone(), after: pair[1].clone() }).collect();
            prop_assert_eq!(without(&texts[texts.len() - 1], &changes), Ok(texts[0].clone()));
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
            prop_assert_eq!(without(&now.text(), &changes), Ok(expected.text()));
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
            prop_assert_eq!(without(&now.text(), taken.as_slice()), Ok(expected.text()));
        }

        #[test]
        fn what_people_wrote_is_never_lost(start in page(), landed in words(), place in 0..16_usize, edited in 0..16_usize) {
            // They write anywhere, also where the run has changed something; each line of theirs is theirs alone.
            let after = start.with(place, true, &landed);
            let mut lines: Vec<String> = after.text().split_inclusive('\n').map(String::from).collect();
            let at = edited.min(lines.len() - 1);
            lines[at] = format!("MINE{}", after.end);
            let now: String = lines.concat();
            if let Ok(then) = without(&now, &[change(&start, &after)]) {
                prop_assert!(then.contains(&format!("MINE{}", after.end)), "{then:?}");
            }
        }
    }

    #[test]
    fn both_changed_one_line_and_the_line_of_the_file_is_named() {
        let changes = [
            Change { before: "1\n2\n3\n4\n".into(), after: "1\n2\n3\nfour\n".into() },
            Change { before: "1\n2\n3\nfour\n".into(), after: "1\n1b\n1c\n2\n3\nfour\n".into() },
        ];
        // Taking the second one out moves the line; it is named as the file has it.
        let refused = without("1\n1b\n1c\n2\n3\nvier\n", &changes);
        assert_eq!(refused, Err(vec![Lines { first: 6, last: 6 }]));
    }
}
