use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, sync::atomic::AtomicU64};

use proptest::prelude::*;
use tokio::sync::{mpsc, watch};
use tribunal_agents::driver::Whereabouts;
use tribunal_core::{
    ids::{Key, RunId},
    settings::Settings,
    subject::{Change as Range, Changed, Subject},
};
use tribunal_testkit::samples;

use super::{
    super::*,
    trees::{Case, Due, Fixer, IN_CHANGE, Item, Items, NAMES, NEW, Person, Tree, new_text, tree},
};
use crate::{copies::Source, effects::Keeping, mask::Masker, project::Project, stop::Stop};

/// A project, a workspace with a patch, and the run that is about to land it.
struct Scene {
    _folder: tempfile::TempDir,
    world: Arc<World>,
    copy: Copy,
}

fn change() -> Subject {
    let files = NAMES[..IN_CHANGE].iter().map(|path| Changed { path: path.to_string(), from: None });
    Subject::Change(Box::new(Range { range: "work tree".into(), files: files.collect(), ..Range::default() }))
}

fn allowed() -> Vec<String> {
    let folders = ["./", "src/", "src/deep/"];
    NAMES[..IN_CHANGE].iter().chain(&folders).map(|path| path.to_string()).collect()
}

fn at() -> At {
    At { stretch: 0, by: Key::new("round-1/fix-1/fix/1") }
}

fn world(project: Project) -> World {
    let run = RunId::new("work-aaaa");
    let shared = crate::Shared::new(std::num::NonZeroUsize::MIN);
    World {
        lane: shared.permits.lane(),
        shared,
        settings: Settings { subject: change(), ..samples::settings() },
        masker: Masker::new([]),
        at: Whereabouts {
            own_program: "none".into(),
            project: project.root().into(),
            client_settings: Default::default(),
        },
        progress: mpsc::unbounded_channel().0,
        keeping: Keeping {
            keeper: None,
            locks: Vec::new(),
            mark: String::new(),
            started: AtomicU64::new(0),
            stop: watch::channel(Stop::GoOn).1,
            ending: watch::channel(false).1,
        },
        tracker_seen: Default::default(),
        project,
        run,
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn set_executable(path: &Path, yes: bool) {
    fs::set_permissions(path, fs::Permissions::from_mode(if yes { 0o755 } else { 0o644 })).unwrap();
}

impl Scene {
    /// Builds the tree, copies it, then lets the fixer change the workspace and the user change the tree.
    fn of(tree: &Tree) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path().join("project"));
        project.prepare_home().unwrap();
        for (path, case) in NAMES.iter().zip(&tree.files) {
            let path = project.root().join(path);
            write(&path, case.base().as_bytes());
            set_executable(&path, case.executable);
        }
        let world = Arc::new(world(project));
        let copy = Copy::at(world.project.desk(&world.run, &at().by).join("1"));
        let files: Vec<String> = NAMES[..IN_CHANGE].iter().map(|path| path.to_string()).collect();
        copy.make(&Source { root: world.project.root(), files: &files, tree: None, seeds: &[] }).unwrap();
        let scene = Scene { _folder: folder, world, copy };
        scene.patch(tree);
        scene.meanwhile(tree);
        scene
    }

    fn root(&self) -> &Path {
        self.world.project.root()
    }

    fn patch(&self, tree: &Tree) {
        for (path, case) in NAMES.iter().zip(&tree.files).filter(|(_, case)| case.is_patched()) {
            let path = self.copy.tree().join(path);
            match case.fixer {
                Fixer::Edits | Fixer::TurnsLineEnds => write(&path, case.theirs().as_bytes()),
                Fixer::Chmods => {
                    write(&path, case.theirs().as_bytes());
                    set_executable(&path, !case.executable);
                }
                Fixer::Deletes => fs::remove_file(path).unwrap(),
                Fixer::Links => {
                    fs::remove_file(&path).unwrap();
                    std::os::unix::fs::symlink("elsewhere", path).unwrap();
                }
                Fixer::MakesBinary => write(&path, b"\xff\xfe\0"),
                // The one file that is empty anyway is overwritten with something that is not text.
                Fixer::Guts if case.blocks.is_empty() => write(&path, b"\xff"),
                Fixer::Guts => write(&path, b"\n"),
            }
        }
        for (number, executable) in &tree.made {
            let path = self.copy.tree().join(NEW[*number]);
            write(&path, new_text(*number).as_bytes());
            set_executable(&path, *executable);
        }
    }

    fn meanwhile(&self, tree: &Tree) {
        for (name, case) in NAMES.iter().zip(&tree.files) {
            let path = self.root().join(name);
            match case.person {
                Person::Edits if case.ours() == case.base() => {}
                Person::Edits => write(&path, case.ours().as_bytes()),
                Person::Chmods => {
                    write(&path, case.ours().as_bytes());
                    set_executable(&path, !case.executable);
                }
                Person::Deletes => fs::remove_file(path).unwrap(),
                Person::Links => {
                    let moved = self.root().join("moved").join(name);
                    fs::create_dir_all(moved.parent().unwrap()).unwrap();
                    fs::rename(&path, &moved).unwrap();
                    std::os::unix::fs::symlink(moved, path).unwrap();
                }
            }
        }
        for (number, alike) in &tree.also_made {
            let text = if *alike { new_text(*number) } else { "new, by the person\n".to_string() };
            write(&self.root().join(NEW[*number]), text.as_bytes());
        }
    }

    fn land(&self) -> LandOutcome {
        let changes = self.copy.changes().unwrap();
        let landing =
            Landing { at: at(), patch: patch_hash(&changes), allowed: allowed(), verify: Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(perform(self.world.clone(), landing)).unwrap()
    }

    /// Reads all files that belong to the user.
    fn items(&self) -> Items {
        let mut items = BTreeMap::new();
        let mut folders = vec![self.root().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap().flatten() {
                let (path, meta) = (item.path(), item.metadata().unwrap());
                let name = path.strip_prefix(self.root()).unwrap().to_str().unwrap().to_string();
                if meta.is_symlink() {
                    items.insert(name, Item::Link(fs::read_link(path).unwrap().display().to_string()));
                } else if meta.is_file() {
                    items.insert(name, Item::File(fs::read(path).unwrap(), is_executable(&meta)));
                } else if name != ".tribunal" {
                    folders.push(path);
                }
            }
        }
        items
    }

    /// Simulates a crash after only this many files were replaced.
    fn killed_after(&self, files: usize, landed: &[LandedFile], before: &Items) {
        for file in &landed[files.min(landed.len())..] {
            let path = self.root().join(&file.path);
            match before.get(&file.path) {
                None => fs::remove_file(path).unwrap(),
                Some(Item::File(bytes, _)) => fs::write(path, bytes).unwrap(),
                Some(Item::Link(_)) => panic!("{} was a link", file.path),
            }
        }
    }
}

/// Asserts that the user's tree is exactly what it was plus what landed.
fn stands_as_said(tree: &Tree, before: &Items, after: &Items, files: &[LandedFile]) {
    let mut due = before.clone();
    for LandedFile { path, hunks: said, text } in files {
        let text = text.clone();
        let (old, executable) = match before.get(path) {
            Some(Item::File(bytes, executable)) => (String::from_utf8(bytes.clone()).unwrap(), *executable),
            None => (String::new(), tree.made[&NEW.iter().position(|new| new == path).unwrap()]),
            Some(Item::Link(_)) => panic!("{path} was a link"),
        };
        assert_eq!(said.is_empty(), old == text, "{path}: {said:?}");
        due.insert(path.clone(), Item::File(text.into_bytes(), executable));
    }
    assert_eq!(&due, after);
}

fn files(reply: &LandOutcome) -> Option<&[LandedFile]> {
    match reply {
        LandOutcome::Landed(landed) => Some(&landed.files),
        LandOutcome::Refused { .. } | LandOutcome::Failed { .. } => None,
    }
}

fn conflict_shows_both_sides(tree: &Tree, reply: &LandOutcome) {
    let LandOutcome::Refused { why: Refusal::Conflict { line, file, ours, theirs } } = reply else { return };
    let Some(case) = NAMES.iter().position(|name| name == file).map(|number| &tree.files[number]) else {
        return;
    };
    assert!(
        case.ours().contains(ours) && case.fixed().contains(theirs),
        "{file}:{line}: {ours:?} {theirs:?}"
    );
    let there: String = case.ours().split_inclusive('\n').skip(*line as usize - 1).collect();
    assert!(there.starts_with(ours), "{file}:{line} is not where {ours:?} stands");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_lands_is_both_sides_and_what_does_not_leaves_no_trace(tree in tree()) {
        let scene = Scene::of(&tree);
        let before = scene.items();
        let reply = scene.land();
        let after = scene.items();
        match (tree.due(), files(&reply)) {
            (Due::Lands(texts) | Due::MayLand(texts), Some(files)) => {
                stands_as_said(&tree, &before, &after, files);
                prop_assert_eq!(files.len(), texts.len());
                for file in files {
                    prop_assert!(texts[&file.path].contains(&file.text), "{:?}", file);
                }
                // Landing twice has the effect of landing once.
                prop_assert_eq!(&scene.land(), &reply);
                prop_assert_eq!(&scene.items(), &after);
            }
            (Due::MayLand(_) | Due::Refused, None) => {
                conflict_shows_both_sides(&tree, &reply);
                prop_assert_eq!(&before, &after);
                let again = scene.land();
                prop_assert_eq!(&again, &reply);
                prop_assert_eq!(&scene.items(), &after);
            }
            (due, files) => prop_assert!(false, "{:?} came of {:?}: {:?}", files, due, reply),
        }
    }

    #[test]
    fn killed_between_two_files_it_does_the_rest_or_takes_back_what_it_did(
        tree in tree().prop_map(landing), cut in 0..8_usize, against in any::<bool>(),
    ) {
        let scene = Scene::of(&tree);
        let before = scene.items();
        let reply = scene.land();
        let Some(landed) = files(&reply) else { return Ok(()) };
        let after = scene.items();
        let cut = cut % (landed.len() + 1);
        scene.killed_after(cut, landed, &before);
        let edited = landed.last().filter(|last| against && cut < landed.len() && before.contains_key(&last.path));
        if let Some(file) = edited {
            // Nothing of this file had landed yet, and now its text is a different one.
            let path = scene.root().join(&file.path);
            fs::write(&path, "all of it is the person's\n").unwrap();
            let before_again = {
                let mut items = before.clone();
                let Some(Item::File(bytes, _)) = items.get_mut(&file.path) else { panic!("{file:?}") };
                *bytes = b"all of it is the person's\n".to_vec();
                items
            };
            let again = scene.land();
            prop_assert!(matches!(again, LandOutcome::Refused { why: Refusal::Conflict { .. } }), "{:?}", again);
            prop_assert_eq!(scene.items(), before_again);
        } else {
            prop_assert_eq!(&scene.land(), &reply);
            prop_assert_eq!(&scene.items(), &after);
        }
    }
}

/// Changes a tree so that everything in it can land.
fn landing(mut tree: Tree) -> Tree {
    for case in &mut tree.files {
        case.fixer = Fixer::Edits;
        case.person = Person::Edits;
        for block in &mut case.blocks {
            block.person = block.person.filter(|_| block.fixer.is_none());
        }
    }
    for Case { blocks, .. } in &mut tree.files[IN_CHANGE..] {
        blocks.iter_mut().for_each(|block| block.fixer = None);
    }
    tree.made.retain(|number, _| *number < super::trees::MAY_BE_MADE);
    tree.also_made.clear();
    tree
}
