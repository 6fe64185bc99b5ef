//! Random trees of files: what a run landed in them is removed, what the user wrote stays.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use tribunal_engine::{ids::FindingId, timestamp::Timestamp};
use tribunal_store::{EntryBatch, NewEntry};
use tribunal_testkit::{landed_change, landing_key};
use tribunal_workflows::runs::types::EntryDraft;

use super::*;
use crate::landing::checkpoints::CheckpointStore;

const FILE_PATHS: [&str; 4] = ["a.md", "src/b.rs", "src/deep/c d.rs", "src/e"];
/// The number of places of each file; an untouched line stands between two of them.
const PLACE_COUNT: usize = 8;

/// The run changes the first half of a file's places, the user the other half. Each landing has its own place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UndoPage([String; PLACE_COUNT]);

impl UndoPage {
    fn new(name: &str) -> UndoPage {
        UndoPage(std::array::from_fn(|place_number| format!("{name} {place_number}")))
    }

    fn render_text(&self) -> String {
        self.0.iter().map(|place_text| format!("{place_text}\n--\n")).collect()
    }
}

type PageTree = BTreeMap<&'static str, UndoPage>;

/// What one step does to one file.
#[derive(Clone, Debug)]
enum FileAct {
    Edit(String),
    /// Creates the file, or deletes it.
    CreateOrDelete,
}

#[derive(Clone, Debug)]
enum UndoStep {
    Landing(Vec<(usize, FileAct)>),
    UserEdit { file: usize, place: usize, words: String },
}

fn random_words() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z]{1,5}", "[a-z]{1,3}\n[a-z]{1,3}"]
}

/// What the user writes. If it could be what the run has written, a neighbouring line would be ambiguous, and undo would refuse.
fn random_user_words() -> impl Strategy<Value = String> {
    random_words().prop_map(|words| format!("mine {words}"))
}

fn random_step() -> impl Strategy<Value = UndoStep> {
    let random_act = prop_oneof![3 => random_words().prop_map(FileAct::Edit), 1 => Just(FileAct::CreateOrDelete)];
    let random_user_edit = (0..FILE_PATHS.len(), PLACE_COUNT / 2..PLACE_COUNT, random_user_words());
    prop_oneof![
        vec((0..FILE_PATHS.len(), random_act), 1..4).prop_map(UndoStep::Landing),
        random_user_edit.prop_map(|(file, place, words)| UndoStep::UserEdit { file, place, words }),
    ]
}

/// A project with a run that has landed all steps.
struct UndoWorld {
    _temp_dir: tempfile::TempDir,
    project: Project,
    run_id: RunId,
    /// What each landing did.
    landed_changes: Vec<Vec<CheckpointChange>>,
    /// The current files.
    current_tree: PageTree,
    /// The files as they would be without any landing.
    user_tree: PageTree,
}

impl UndoWorld {
    fn new(is_there: &[bool]) -> UndoWorld {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path());
        project.prepare_home().unwrap();
        let existing_paths = FILE_PATHS.iter().zip(is_there).filter(|(_, is_there)| **is_there);
        let initial_tree: PageTree = existing_paths.map(|(path, _)| (*path, UndoPage::new(path))).collect();
        let (run_id, mine) = (RunId::new("change-aaaa"), initial_tree.clone());
        UndoWorld {
            _temp_dir: directory,
            project,
            run_id,
            landed_changes: Vec::new(),
            current_tree: initial_tree,
            user_tree: mine,
        }
    }

    fn checkpoint_key(&self, landing: usize) -> CheckpointKey {
        CheckpointKey { segment: 0, task_key: landing_key(landing) }
    }

    fn apply_step(&mut self, step: &UndoStep) {
        match step {
            UndoStep::Landing(acts) => self.land_acts(acts),
            UndoStep::UserEdit { file, place: place_number, words: new_words } => {
                let path = FILE_PATHS[*file];
                // Files that the run created or deleted are left alone: an edit there would be a conflict.
                let touched = self.landed_changes.iter().flatten().filter(|change| change.relative_path == path);
                if touched.into_iter().any(|change| change.text_before.is_none() || change.text_after.is_none()) {
                    return;
                }
                for tree in [&mut self.current_tree, &mut self.user_tree] {
                    tree.entry(path).and_modify(|page| page.0[*place_number].clone_from(new_words));
                }
            }
        }
    }

    fn land_acts(&mut self, acts: &[(usize, FileAct)]) {
        let landing_number = self.landed_changes.len();
        let mut changed_files: Vec<CheckpointChange> = Vec::new();
        for (file, act) in acts {
            let path = FILE_PATHS[*file];
            if changed_files.iter().any(|change| change.relative_path == path) {
                continue;
            }
            let text_before = self.current_tree.get(path).map(UndoPage::render_text);
            match (act, self.current_tree.get_mut(path)) {
                (FileAct::Edit(new_words), Some(page)) => {
                    page.0[landing_number % (PLACE_COUNT / 2)].clone_from(new_words)
                }
                (FileAct::CreateOrDelete, Some(_)) => drop(self.current_tree.remove(path)),
                (_, None) => drop(self.current_tree.insert(path, UndoPage::new("made"))),
            }
            let text_after = self.current_tree.get(path).map(UndoPage::render_text);
            changed_files.push(CheckpointChange { relative_path: path.to_string(), text_before, text_after });
        }
        CheckpointStore::for_run(&self.project, &self.run_id)
            .record_landing(&self.checkpoint_key(landing_number), &changed_files)
            .unwrap();
        self.landed_changes.push(changed_files);
    }

    /// Writes everything to disk.
    fn write_to_disk(&self) {
        let findings: Vec<Vec<FindingId>> =
            (1..=self.landed_changes.len()).map(|finding_number| vec![FindingId(finding_number as u32)]).collect();
        let events = landed_change(&findings).into_iter().enumerate();
        let entries = events.map(|(entry_number, event)| {
            let draft = EntryDraft { id: entry_number.to_string(), event };
            NewEntry { run_id: self.run_id.clone(), timestamp: Timestamp { wall_ms: 5, awake_ms: 1 }, draft }
        });
        let store = Store::open(&self.project.home_dir()).unwrap();
        store.append(EntryBatch { entries: entries.collect(), ..EntryBatch::default() }).unwrap();
        for (path, page) in &self.current_tree {
            self.put_file(path, Some(&page.render_text()));
        }
    }

    fn put_file(&self, path: &str, text: Option<&str>) {
        let real = self.project.root().join(path);
        match text {
            Some(text) => {
                fs::create_dir_all(real.parent().unwrap()).unwrap();
                fs::write(real, text).unwrap();
            }
            None => fs::remove_file(real).unwrap(),
        }
    }

    fn read_disk(&self) -> BTreeMap<&'static str, String> {
        let read = |path: &&'static str| Some((*path, fs::read_to_string(self.project.root().join(path)).ok()?));
        FILE_PATHS.iter().filter_map(read).collect()
    }

    /// Asserts that the files on disk have these texts.
    fn assert_disk_matches(&self, tree: &PageTree) -> Result<(), TestCaseError> {
        let expected: BTreeMap<&str, String> = tree.iter().map(|(path, page)| (*path, page.render_text())).collect();
        prop_assert_eq!(self.read_disk(), expected);
        Ok(())
    }
}

fn build_world(is_there: &[bool], steps: &[UndoStep]) -> UndoWorld {
    let mut undo_world = UndoWorld::new(is_there);
    steps.iter().for_each(|step| undo_world.apply_step(step));
    undo_world.write_to_disk();
    undo_world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn all_taken_back_is_what_people_alone_would_have_made_of_it(
        is_there in vec(any::<bool>(), FILE_PATHS.len()), steps in vec(random_step(), 0..10)
    ) {
        let world = build_world(&is_there, &steps);
        preview_undo(&world.project, &world.run_id, None).unwrap();
        world.assert_disk_matches(&world.current_tree)?;
        let was = world.read_disk();
        let done = undo_landings(&world.project, &world.run_id, None, false).unwrap();
        world.assert_disk_matches(&world.user_tree)?;
        // Every replaced text is parked as it was.
        let now = world.read_disk();
        let replaced = was.iter().filter(|(path, text)| now.get(*path) != Some(text));
        let replaced: BTreeMap<String, String> =
            replaced.map(|(path, text)| (path.to_string(), text.clone())).collect();
        let read = |(path, parked): (&String, &PathBuf)| {
            (path.clone(), fs::read_to_string(world.project.root().join(parked)).unwrap())
        };
        prop_assert_eq!(done.parked_files.iter().map(read).collect::<BTreeMap<String, String>>(), replaced);
        let again = undo_landings(&world.project, &world.run_id, None, false).unwrap();
        prop_assert!(again.plan.landings_to_undo.is_empty() && again.parked_files.is_empty());
        world.assert_disk_matches(&world.user_tree)?;
    }

    #[test]
    fn one_landing_is_taken_out_of_all_its_files_and_the_others_stay(
        landings in vec(vec((0..FILE_PATHS.len(), random_words()), 1..4), 1..PLACE_COUNT / 2),
        person in vec((0..FILE_PATHS.len(), PLACE_COUNT / 2..PLACE_COUNT, random_words()), 0..4),
        which in 0..PLACE_COUNT / 2,
    ) {
        let edits = |acts: &[(usize, String)]| {
            UndoStep::Landing(acts.iter().map(|(file, words)| (*file, FileAct::Edit(words.clone()))).collect())
        };
        let mut steps: Vec<UndoStep> = landings.iter().map(|acts| edits(acts)).collect();
        let person = person.into_iter().map(|(file, place, words)| UndoStep::UserEdit { file, place, words });
        steps.extend(person);
        let world = build_world(&[true; FILE_PATHS.len()], &steps);
        let which = which % landings.len();
        let mut expected = world.current_tree.clone();
        for change in &world.landed_changes[which] {
            let page = expected.get_mut(change.relative_path.as_str()).unwrap();
            page.0[which].clone_from(&UndoPage::new(&change.relative_path).0[which]);
        }
        undo_landings(&world.project, &world.run_id, Some(FindingId(which as u32 + 1)), false).unwrap();
        world.assert_disk_matches(&expected)?;
        undo_landings(&world.project, &world.run_id, None, false).unwrap();
        world.assert_disk_matches(&world.user_tree)?;
    }

    #[test]
    fn killed_after_any_file_the_rest_is_done_and_edits_made_meanwhile_stay(
        is_there in vec(any::<bool>(), FILE_PATHS.len()),
        steps in vec(random_step(), 1..10),
        reached in 0..=FILE_PATHS.len(),
        edits in vec((0..FILE_PATHS.len(), PLACE_COUNT / 2..PLACE_COUNT, random_user_words()), 0..3),
    ) {
        let mut world = build_world(&is_there, &steps);
        let plan = preview_undo(&world.project, &world.run_id, None).unwrap();
        let changed: Vec<&FileUndoPlan> = plan.changed_files().collect();
        let landings: Vec<CheckpointKey> = plan.landings_to_undo.iter().map(|landing| landing.checkpoint_key.clone()).collect();
        let changes: Vec<CheckpointChange> = changed.iter().map(|file| file.to_checkpoint_change()).collect();
        plan.landings.checkpoints.begin_undo(&landings, &changes).unwrap();
        for file in changed.iter().take(reached) {
            world.put_file(&file.relative_path, file.restored_text.as_deref());
        }
        // Only where the run neither created nor deleted the file, and where the model knows the text.
        for (file, place, words) in edits {
            let step = UndoStep::UserEdit { file, place, words };
            let before = (world.current_tree.clone(), world.user_tree.clone());
            world.apply_step(&step);
            let path = FILE_PATHS[file];
            let (Some(now), Some(mine)) = (world.current_tree.get(path), world.user_tree.get(path)) else { continue };
            let is_back = world.read_disk().get(path) == before.1.get(path).map(UndoPage::render_text).as_ref();
            world.put_file(path, Some(&if is_back { mine.render_text() } else { now.render_text() }));
        }
        undo_landings(&world.project, &world.run_id, None, false).unwrap();
        world.assert_disk_matches(&world.user_tree)?;
        prop_assert!(plan.landings.checkpoints.unfinished_undos().unwrap().is_empty());
    }
}

#[test]
fn adjacent_repairs_that_were_undone_are_recognized_however_the_file_changes_later() {
    let mut undo_world = UndoWorld::new(&[false; FILE_PATHS.len()]);
    let texts = ["1\n2\n3\n4\n5\n6\n", "1\nB\n3\n4\n5\n6\n", "1\nB\nC\n4\n5\n6\n"];
    for (number, pair) in texts.windows(2).enumerate() {
        let change = CheckpointChange {
            relative_path: "a.md".into(),
            text_before: Some(pair[0].into()),
            text_after: Some(pair[1].into()),
        };
        CheckpointStore::for_run(&undo_world.project, &undo_world.run_id)
            .record_landing(&undo_world.checkpoint_key(number), &[change])
            .unwrap();
        undo_world.landed_changes.push(Vec::new());
    }
    undo_world.write_to_disk();
    undo_world.put_file("a.md", Some(texts[2]));
    let plan = preview_undo(&undo_world.project, &undo_world.run_id, None).unwrap();
    let landings: Vec<CheckpointKey> =
        plan.landings_to_undo.iter().map(|landing| landing.checkpoint_key.clone()).collect();
    plan.landings.checkpoints.begin_undo(&landings, &[plan.file_plans[0].to_checkpoint_change()]).unwrap();
    // A crash here: a merge alone could not tell which changes the file still contains.
    for now in [texts[0], "1\n2\n3\n4\n5\nmine\n"] {
        undo_world.put_file("a.md", Some(now));
        let plan = preview_undo(&undo_world.project, &undo_world.run_id, None).unwrap();
        assert_eq!(plan.file_plans[0].restored_text.as_deref(), Some(now));
    }
    undo_landings(&undo_world.project, &undo_world.run_id, None, false).unwrap();
    assert_eq!(fs::read_to_string(undo_world.project.root().join("a.md")).unwrap(), "1\n2\n3\n4\n5\nmine\n");
}
