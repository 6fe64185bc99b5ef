//! Random trees of files: what a run landed in them is removed, what the user wrote stays.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use tribunal_core::{event::Draft, ids::FindingId, stamp::Stamp};
use tribunal_store::{Batch, NewEntry};
use tribunal_testkit::{landed_change, lander};

use super::*;
use crate::checkpoints::Checkpoints;

const PATHS: [&str; 4] = ["a.md", "src/b.rs", "src/deep/c d.rs", "src/e"];
/// The number of places of each file; an untouched line stands between two of them.
const PLACES: usize = 8;

/// The run changes the first half of a file's places, the user the other half. Each landing has its own place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page([String; PLACES]);

impl Page {
    fn new(name: &str) -> Page {
        Page(std::array::from_fn(|place| format!("{name} {place}")))
    }

    fn text(&self) -> String {
        self.0.iter().map(|words| format!("{words}\n--\n")).collect()
    }
}

type Tree = BTreeMap<&'static str, Page>;

/// What one step does to one file.
#[derive(Clone, Debug)]
enum Act {
    Edit(String),
    /// Creates the file, or deletes it.
    Turn,
}

#[derive(Clone, Debug)]
enum Step {
    Landing(Vec<(usize, Act)>),
    Person { file: usize, place: usize, words: String },
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z]{1,5}", "[a-z]{1,3}\n[a-z]{1,3}"]
}

fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![3 => words().prop_map(Act::Edit), 1 => Just(Act::Turn)];
    let person = (0..PATHS.len(), PLACES / 2..PLACES, words());
    prop_oneof![
        vec((0..PATHS.len(), act), 1..4).prop_map(Step::Landing),
        person.prop_map(|(file, place, words)| Step::Person { file, place, words }),
    ]
}

/// A project with a run that has landed all steps.
struct World {
    _folder: tempfile::TempDir,
    project: Project,
    run: RunId,
    /// What each landing did.
    landed: Vec<Vec<Change>>,
    /// The current files.
    now: Tree,
    /// The files as they would be without any landing.
    mine: Tree,
}

impl World {
    fn new(is_there: &[bool]) -> World {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        project.prepare_home().unwrap();
        let there = PATHS.iter().zip(is_there).filter(|(_, is_there)| **is_there);
        let now: Tree = there.map(|(path, _)| (*path, Page::new(path))).collect();
        let (run, mine) = (RunId::new("change-aaaa"), now.clone());
        World { _folder: folder, project, run, landed: Vec::new(), now, mine }
    }

    fn at(&self, landing: usize) -> At {
        At { stretch: 0, by: lander(landing) }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Landing(acts) => self.land(acts),
            Step::Person { file, place, words } => {
                let path = PATHS[*file];
                // Files that the run created or deleted are left alone: an edit there would be a conflict.
                let touched = self.landed.iter().flatten().filter(|change| change.path == path);
                if touched.into_iter().any(|change| change.before.is_none() || change.after.is_none()) {
                    return;
                }
                for tree in [&mut self.now, &mut self.mine] {
                    tree.entry(path).and_modify(|page| page.0[*place].clone_from(words));
                }
            }
        }
    }

    fn land(&mut self, acts: &[(usize, Act)]) {
        let number = self.landed.len();
        let mut changes: Vec<Change> = Vec::new();
        for (file, act) in acts {
            let path = PATHS[*file];
            if changes.iter().any(|change| change.path == path) {
                continue;
            }
            let before = self.now.get(path).map(Page::text);
            match (act, self.now.get_mut(path)) {
                (Act::Edit(words), Some(page)) => page.0[number % (PLACES / 2)].clone_from(words),
                (Act::Turn, Some(_)) => drop(self.now.remove(path)),
                (_, None) => drop(self.now.insert(path, Page::new("made"))),
            }
            let after = self.now.get(path).map(Page::text);
            changes.push(Change { path: path.to_string(), before, after });
        }
        Checkpoints::of(&self.project, &self.run).keep(&self.at(number), &changes).unwrap();
        self.landed.push(changes);
    }

    /// Writes everything to disk.
    fn write(&self) {
        let findings: Vec<Vec<FindingId>> =
            (1..=self.landed.len()).map(|number| vec![FindingId(number as u32)]).collect();
        let events = landed_change(&findings).into_iter().enumerate();
        let entries = events.map(|(number, event)| {
            let draft = Draft { id: number.to_string(), event };
            NewEntry { run: self.run.clone(), at: Stamp { wall_ms: 5, awake_ms: 1 }, draft }
        });
        let store = Store::open(&self.project.home()).unwrap();
        store.append(Batch { entries: entries.collect(), ..Batch::default() }).unwrap();
        for (path, page) in &self.now {
            self.put(path, Some(&page.text()));
        }
    }

    fn put(&self, path: &str, text: Option<&str>) {
        let real = self.project.root().join(path);
        match text {
            Some(text) => {
                fs::create_dir_all(real.parent().unwrap()).unwrap();
                fs::write(real, text).unwrap();
            }
            None => fs::remove_file(real).unwrap(),
        }
    }

    fn disk(&self) -> BTreeMap<&'static str, String> {
        let read =
            |path: &&'static str| Some((*path, fs::read_to_string(self.project.root().join(path)).ok()?));
        PATHS.iter().filter_map(read).collect()
    }

    /// Asserts that the files on disk have these texts.
    fn reads(&self, tree: &Tree) -> Result<(), TestCaseError> {
        let expected: BTreeMap<&str, String> = tree.iter().map(|(path, page)| (*path, page.text())).collect();
        prop_assert_eq!(self.disk(), expected);
        Ok(())
    }
}

fn world(is_there: &[bool], steps: &[Step]) -> World {
    let mut world = World::new(is_there);
    steps.iter().for_each(|step| world.act(step));
    world.write();
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn all_taken_back_is_what_people_alone_would_have_made_of_it(
        is_there in vec(any::<bool>(), PATHS.len()), steps in vec(step(), 0..10)
    ) {
        let world = world(&is_there, &steps);
        preview(&world.project, &world.run, None).unwrap();
        world.reads(&world.now)?;
        let was = world.disk();
        let done = carry_out(&world.project, &world.run, None, false).unwrap();
        world.reads(&world.mine)?;
        // Every replaced text is parked as it was.
        let now = world.disk();
        let replaced = was.iter().filter(|(path, text)| now.get(*path) != Some(text));
        let replaced: BTreeMap<String, String> =
            replaced.map(|(path, text)| (path.to_string(), text.clone())).collect();
        let read = |(path, parked): (&String, &PathBuf)| {
            (path.clone(), fs::read_to_string(world.project.root().join(parked)).unwrap())
        };
        prop_assert_eq!(done.parked.iter().map(read).collect::<BTreeMap<String, String>>(), replaced);
        let again = carry_out(&world.project, &world.run, None, false).unwrap();
        prop_assert!(again.plan.back.is_empty() && again.parked.is_empty());
        world.reads(&world.mine)?;
    }

    #[test]
    fn one_landing_is_taken_out_of_all_its_files_and_the_others_stay(
        landings in vec(vec((0..PATHS.len(), words()), 1..4), 1..PLACES / 2),
        person in vec((0..PATHS.len(), PLACES / 2..PLACES, words()), 0..4),
        which in 0..PLACES / 2,
    ) {
        let edits = |acts: &[(usize, String)]| {
            Step::Landing(acts.iter().map(|(file, words)| (*file, Act::Edit(words.clone()))).collect())
        };
        let mut steps: Vec<Step> = landings.iter().map(|acts| edits(acts)).collect();
        let person = person.into_iter().map(|(file, place, words)| Step::Person { file, place, words });
        steps.extend(person);
        let world = world(&[true; PATHS.len()], &steps);
        let which = which % landings.len();
        let mut expected = world.now.clone();
        for change in &world.landed[which] {
            let page = expected.get_mut(change.path.as_str()).unwrap();
            page.0[which].clone_from(&Page::new(&change.path).0[which]);
        }
        carry_out(&world.project, &world.run, Some(FindingId(which as u32 + 1)), false).unwrap();
        world.reads(&expected)?;
        carry_out(&world.project, &world.run, None, false).unwrap();
        world.reads(&world.mine)?;
    }

    #[test]
    fn killed_after_any_file_the_rest_is_done_and_edits_made_meanwhile_stay(
        is_there in vec(any::<bool>(), PATHS.len()),
        steps in vec(step(), 1..10),
        reached in 0..=PATHS.len(),
        edits in vec((0..PATHS.len(), PLACES / 2..PLACES, words()), 0..3),
    ) {
        let mut world = world(&is_there, &steps);
        let plan = preview(&world.project, &world.run, None).unwrap();
        let changed: Vec<&FilePlan> = plan.changed().collect();
        let landings: Vec<At> = plan.back.iter().map(|landing| landing.at.clone()).collect();
        let changes: Vec<Change> = changed.iter().map(|file| file.change()).collect();
        plan.landings.checkpoints.begin(&landings, &changes).unwrap();
        for file in changed.iter().take(reached) {
            world.put(&file.path, file.then.as_deref());
        }
        // Only where the run neither created nor deleted the file, and where the model knows the text.
        for (file, place, words) in edits {
            let step = Step::Person { file, place, words };
            let before = (world.now.clone(), world.mine.clone());
            world.act(&step);
            let path = PATHS[file];
            let (Some(now), Some(mine)) = (world.now.get(path), world.mine.get(path)) else { continue };
            let is_back = world.disk().get(path) == before.1.get(path).map(Page::text).as_ref();
            world.put(path, Some(&if is_back { mine.text() } else { now.text() }));
        }
        carry_out(&world.project, &world.run, None, false).unwrap();
        world.reads(&world.mine)?;
        prop_assert!(plan.landings.checkpoints.begun().unwrap().is_empty());
    }
}

#[test]
fn two_repairs_side_by_side_that_were_taken_back_are_known_to_be_however_the_file_goes_on() {
    let mut world = World::new(&[false; PATHS.len()]);
    let texts = ["1\n2\n3\n4\n5\n6\n", "1\nB\n3\n4\n5\n6\n", "1\nB\nC\n4\n5\n6\n"];
    for (number, pair) in texts.windows(2).enumerate() {
        let change =
            Change { path: "a.md".into(), before: Some(pair[0].into()), after: Some(pair[1].into()) };
        Checkpoints::of(&world.project, &world.run).keep(&world.at(number), &[change]).unwrap();
        world.landed.push(Vec::new());
    }
    world.write();
    world.put("a.md", Some(texts[2]));
    let plan = preview(&world.project, &world.run, None).unwrap();
    let landings: Vec<At> = plan.back.iter().map(|landing| landing.at.clone()).collect();
    plan.landings.checkpoints.begin(&landings, &[plan.files[0].change()]).unwrap();
    // A crash here: a merge alone could not tell which changes the file still contains.
    for now in [texts[0], "1\n2\n3\n4\n5\nmine\n"] {
        world.put("a.md", Some(now));
        let plan = preview(&world.project, &world.run, None).unwrap();
        assert_eq!(plan.files[0].then.as_deref(), Some(now));
    }
    carry_out(&world.project, &world.run, None, false).unwrap();
    assert_eq!(fs::read_to_string(world.project.root().join("a.md")).unwrap(), "1\n2\n3\n4\n5\nmine\n");
}
