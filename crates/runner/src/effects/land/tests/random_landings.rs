use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, path::Path};

use proptest::prelude::*;
use tribunal_engine::{
    files::{FilePart, FileSizeLimit},
    ids::Key,
};
use tribunal_workflows::{
    findings::subject::{ChangedPath, CodeChange as Range, Subject},
    review::order::ReviewOrder,
};

use super::{
    super::{candidate::is_executable, *},
    random_trees::{
        CHANGED_COUNT, DiskItem, DiskItems, ExpectedLanding, FILE_NAMES, FileCase, FixerAction, NEW_FILE_NAMES,
        RandomTree, UserAction, new_file_text, random_tree,
    },
};
use crate::{
    effects::test_context::new_effect_context,
    landing::{checkpoints::CheckpointKey, merging::merge_without},
    project::Project,
    workspaces::{WorkspaceSource, hash_changes},
};

/// A project, a workspace with a patch, and the run that is about to land it.
struct LandingScene {
    _temp_dir: tempfile::TempDir,
    context: Arc<EffectContext>,
    workspace: TaskWorkspace,
}

fn change_subject() -> Subject {
    let files =
        FILE_NAMES[..CHANGED_COUNT].iter().map(|file_path| ChangedPath { path: file_path.to_string(), from: None });
    Subject::Change(Box::new(Range { range: "work tree".into(), files: files.collect(), ..Range::default() }))
}

fn allowed_paths() -> Vec<String> {
    let directories = ["./", "src/", "src/deep/"];
    FILE_NAMES[..CHANGED_COUNT].iter().chain(&directories).map(|file_path| file_path.to_string()).collect()
}

fn checkpoint_key() -> CheckpointKey {
    CheckpointKey { segment: 0, task_key: Key::new("round-1/fix-1/fix/1") }
}

fn write_file(file_path: &Path, bytes: &[u8]) {
    fs::create_dir_all(file_path.parent().unwrap()).unwrap();
    fs::write(file_path, bytes).unwrap();
}

fn set_executable(file_path: &Path, executable: bool) {
    fs::set_permissions(file_path, fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 })).unwrap();
}

impl LandingScene {
    /// Builds the tree, copies it, then lets the fixer change the workspace and the user change the tree.
    fn from_tree(tree: &RandomTree) -> LandingScene {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path().join("project"));
        project.prepare_home().unwrap();
        for (file_name, file_case) in FILE_NAMES.iter().zip(&tree.files) {
            let file_path = project.root().join(file_name);
            write_file(&file_path, file_case.base_text().as_bytes());
            set_executable(&file_path, file_case.executable);
        }
        let context = Arc::new(new_effect_context(project, ReviewOrder::new(change_subject())));
        let workspace = TaskWorkspace::from_directory(
            context.project.task_dir(&context.run_id, &checkpoint_key().task_key).join("1"),
        );
        let files: Vec<String> = FILE_NAMES[..CHANGED_COUNT].iter().map(|file_name| file_name.to_string()).collect();
        workspace
            .create(&WorkspaceSource {
                project_root: context.project.root(),
                subject_files: &files,
                stored_tree: None,
                seed_paths: &[],
            })
            .unwrap();
        let scene = LandingScene { _temp_dir: directory, context, workspace };
        scene.apply_fixer(tree);
        scene.apply_user(tree);
        scene
    }

    fn project_root(&self) -> &Path {
        self.context.project.root()
    }

    fn apply_fixer(&self, tree: &RandomTree) {
        for (file_name, file_case) in FILE_NAMES.iter().zip(&tree.files).filter(|(_, file_case)| file_case.is_patched())
        {
            let file_path = self.workspace.tree_dir().join(file_name);
            match file_case.fixer_action {
                FixerAction::Edits | FixerAction::TurnsLineEnds => {
                    write_file(&file_path, file_case.fixer_text().as_bytes())
                }
                FixerAction::Chmods => {
                    write_file(&file_path, file_case.fixer_text().as_bytes());
                    set_executable(&file_path, !file_case.executable);
                }
                FixerAction::Deletes => fs::remove_file(file_path).unwrap(),
                FixerAction::Links => {
                    fs::remove_file(&file_path).unwrap();
                    std::os::unix::fs::symlink("elsewhere", file_path).unwrap();
                }
                FixerAction::MakesBinary => write_file(&file_path, b"\xff\xfe\0"),
                // The one file that is empty anyway is overwritten with something that is not text.
                FixerAction::Guts if file_case.blocks.is_empty() => write_file(&file_path, b"\xff"),
                FixerAction::Guts => write_file(&file_path, b"\n"),
            }
        }
        for (file_index, executable) in &tree.fixer_created {
            let file_path = self.workspace.tree_dir().join(NEW_FILE_NAMES[*file_index]);
            write_file(&file_path, new_file_text(*file_index).as_bytes());
            set_executable(&file_path, *executable);
        }
    }

    fn apply_user(&self, tree: &RandomTree) {
        for (name, file_case) in FILE_NAMES.iter().zip(&tree.files) {
            let file_path = self.project_root().join(name);
            match file_case.user_action {
                UserAction::Edits if file_case.user_text() == file_case.base_text() => {}
                UserAction::Edits => write_file(&file_path, file_case.user_text().as_bytes()),
                UserAction::Chmods => {
                    write_file(&file_path, file_case.user_text().as_bytes());
                    set_executable(&file_path, !file_case.executable);
                }
                UserAction::Deletes => fs::remove_file(file_path).unwrap(),
                UserAction::Links => {
                    let moved = self.project_root().join("moved").join(name);
                    fs::create_dir_all(moved.parent().unwrap()).unwrap();
                    fs::rename(&file_path, &moved).unwrap();
                    std::os::unix::fs::symlink(moved, file_path).unwrap();
                }
            }
        }
        for (file_index, alike) in &tree.user_created {
            let text = if *alike { new_file_text(*file_index) } else { "new, by the person\n".to_string() };
            write_file(&self.project_root().join(NEW_FILE_NAMES[*file_index]), text.as_bytes());
        }
    }

    fn land_patch(&self) -> LandOutcome {
        self.land_with(false, Vec::new())
    }

    fn land_with(&self, is_preview: bool, without: Vec<FilePart>) -> LandOutcome {
        let changed_files = self.workspace.changed_files().unwrap();
        let landing = LandingRequest {
            checkpoint_key: checkpoint_key(),
            patch: hash_changes(&changed_files),
            limits: LandingLimits {
                allowed: allowed_paths(),
                size_limit: FileSizeLimit::default(),
                checks: Vec::new(),
            },
            is_preview,
            without,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(land_patch(self.context.clone(), landing)).unwrap()
    }

    /// Reads all files that belong to the user.
    fn read_items(&self) -> DiskItems {
        let mut items = BTreeMap::new();
        let mut directories = vec![self.project_root().to_path_buf()];
        while let Some(directory) = directories.pop() {
            for item in fs::read_dir(directory).unwrap().flatten() {
                let (file_path, metadata) = (item.path(), item.metadata().unwrap());
                let name = file_path.strip_prefix(self.project_root()).unwrap().to_str().unwrap().to_string();
                if metadata.is_symlink() {
                    items.insert(name, DiskItem::Link(fs::read_link(file_path).unwrap().display().to_string()));
                } else if metadata.is_file() {
                    items.insert(name, DiskItem::File(fs::read(file_path).unwrap(), is_executable(&metadata)));
                } else if name != ".tribunal" {
                    directories.push(file_path);
                }
            }
        }
        items
    }

    /// Simulates a crash after only this many files were replaced.
    fn revert_files_after(&self, kept_count: usize, landed: &[LandedFile], items_before: &DiskItems) {
        for landed_file in &landed[kept_count.min(landed.len())..] {
            let file_path = self.project_root().join(&landed_file.path);
            match items_before.get(&landed_file.path) {
                None => fs::remove_file(file_path).unwrap(),
                Some(DiskItem::File(bytes, _)) => fs::write(file_path, bytes).unwrap(),
                Some(DiskItem::Link(_)) => panic!("{} was a link", landed_file.path),
            }
        }
    }
}

/// Asserts that the user's tree is exactly what it was plus what landed.
fn assert_tree_matches(tree: &RandomTree, items_before: &DiskItems, items_after: &DiskItems, files: &[LandedFile]) {
    let mut expected_items = items_before.clone();
    for LandedFile { path: file_path, hunks: reported_hunks, text } in files {
        let text = text.clone();
        let (old, executable) = match items_before.get(file_path) {
            Some(DiskItem::File(bytes, executable)) => (String::from_utf8(bytes.clone()).unwrap(), *executable),
            None => {
                (String::new(), tree.fixer_created[&NEW_FILE_NAMES.iter().position(|new| new == file_path).unwrap()])
            }
            Some(DiskItem::Link(_)) => panic!("{file_path} was a link"),
        };
        assert_eq!(reported_hunks.is_empty(), old == text, "{file_path}: {reported_hunks:?}");
        expected_items.insert(file_path.clone(), DiskItem::File(text.into_bytes(), executable));
    }
    assert_eq!(&expected_items, items_after);
}

fn landed_files(outcome: &LandOutcome) -> Option<&[LandedFile]> {
    match outcome {
        LandOutcome::Landed(landed) | LandOutcome::Previewed(landed) => Some(&landed.files),
        LandOutcome::Refused { .. } | LandOutcome::Failed { .. } => None,
    }
}

fn assert_conflict_shows_both_sides(tree: &RandomTree, outcome: &LandOutcome) {
    let LandOutcome::Refused { why: PatchRefusal::Conflict { line, file, ours, theirs } } = outcome else {
        return;
    };
    let Some(file_case) = FILE_NAMES.iter().position(|name| name == file).map(|file_index| &tree.files[file_index])
    else {
        return;
    };
    assert!(
        file_case.user_text().contains(ours) && file_case.fixed_text().contains(theirs),
        "{file}:{line}: {ours:?} {theirs:?}"
    );
    let text_from_line: String = file_case.user_text().split_inclusive('\n').skip(*line as usize - 1).collect();
    assert!(text_from_line.starts_with(ours), "{file}:{line} is not where {ours:?} stands");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_preview_changes_nothing_and_parts_that_it_shows_can_be_left_out(
        tree in random_tree(),
        keep_pattern in any::<u16>(),
    ) {
        let scene = LandingScene::from_tree(&tree);
        let before = scene.read_items();
        let preview = scene.land_with(true, Vec::new());
        prop_assert_eq!(&scene.read_items(), &before);
        let Some(previewed_files) = landed_files(&preview).map(<[LandedFile]>::to_vec) else { return Ok(()) };
        let parts = previewed_files.iter().flat_map(|file| {
            file.hunks.iter().map(|hunk| FilePart { path: file.path.clone(), hunk: *hunk })
        });
        let dropped: Vec<FilePart> =
            (0_u16..).zip(parts).filter(|(index, _)| keep_pattern >> (index % 16) & 1 == 0).map(|(_, part)| part).collect();
        let outcome = scene.land_with(false, dropped.clone());
        let after = scene.read_items();
        if landed_files(&outcome).is_none() {
            prop_assert_eq!(&after, &before);
            return Ok(());
        }
        for file in &previewed_files {
            let dropped_hunks: Vec<Hunk> =
                dropped.iter().filter(|part| part.path == file.path).map(|part| part.hunk).collect();
            let text_of = |items: &DiskItems| match items.get(&file.path) {
                Some(DiskItem::File(bytes, _)) => Some(String::from_utf8(bytes.clone()).unwrap()),
                _ => None,
            };
            match text_of(&before) {
                None if !dropped_hunks.is_empty() => prop_assert_eq!(text_of(&after), None),
                None => prop_assert_eq!(text_of(&after), Some(file.text.clone())),
                Some(old_text) => {
                    let expected = merge_without(&old_text, &file.text, &dropped_hunks);
                    prop_assert_eq!(text_of(&after), expected);
                }
            }
        }
    }

    #[test]
    fn what_lands_is_both_sides_and_what_does_not_leaves_no_trace(tree in random_tree()) {
        let scene = LandingScene::from_tree(&tree);
        let before = scene.read_items();
        let reply = scene.land_patch();
        let after = scene.read_items();
        match (tree.expected_landing(), landed_files(&reply)) {
            (ExpectedLanding::MustLand(texts) | ExpectedLanding::MayLand(texts), Some(files)) => {
                assert_tree_matches(&tree, &before, &after, files);
                prop_assert_eq!(files.len(), texts.len());
                for file in files {
                    prop_assert!(texts[&file.path].contains(&file.text), "{:?}", file);
                }
                // Landing twice has the effect of landing once.
                prop_assert_eq!(&scene.land_patch(), &reply);
                prop_assert_eq!(&scene.read_items(), &after);
            }
            (ExpectedLanding::MayLand(_) | ExpectedLanding::MustBeRefused, None) => {
                assert_conflict_shows_both_sides(&tree, &reply);
                prop_assert_eq!(&before, &after);
                let again = scene.land_patch();
                prop_assert_eq!(&again, &reply);
                prop_assert_eq!(&scene.read_items(), &after);
            }
            (due, files) => prop_assert!(false, "{:?} came of {:?}: {:?}", files, due, reply),
        }
    }

    #[test]
    fn killed_between_two_files_it_does_the_rest_or_takes_back_what_it_did(
        tree in random_tree().prop_map(make_everything_land), cut in 0..8_usize, against in any::<bool>(),
    ) {
        let scene = LandingScene::from_tree(&tree);
        let before = scene.read_items();
        let reply = scene.land_patch();
        let Some(landed) = landed_files(&reply) else { return Ok(()) };
        let after = scene.read_items();
        let cut = cut % (landed.len() + 1);
        scene.revert_files_after(cut, landed, &before);
        let edited = landed.last().filter(|last| against && cut < landed.len() && before.contains_key(&last.path));
        if let Some(file) = edited {
            // Nothing of this file had landed yet, and now its text is a different one.
            let path = scene.project_root().join(&file.path);
            fs::write(&path, "all of it is the person's\n").unwrap();
            let before_again = {
                let mut items = before.clone();
                let Some(DiskItem::File(bytes, _)) = items.get_mut(&file.path) else { panic!("{file:?}") };
                *bytes = b"all of it is the person's\n".to_vec();
                items
            };
            let again = scene.land_patch();
            prop_assert!(matches!(again, LandOutcome::Refused { why: PatchRefusal::Conflict { .. } }), "{:?}", again);
            prop_assert_eq!(scene.read_items(), before_again);
        } else {
            prop_assert_eq!(&scene.land_patch(), &reply);
            prop_assert_eq!(&scene.read_items(), &after);
        }
    }
}

/// Changes a tree so that everything in it can land.
fn make_everything_land(mut tree: RandomTree) -> RandomTree {
    for file_case in &mut tree.files {
        file_case.fixer_action = FixerAction::Edits;
        file_case.user_action = UserAction::Edits;
        for block in &mut file_case.blocks {
            block.user_edit = block.user_edit.filter(|_| block.fixer_edit.is_none());
        }
    }
    for FileCase { blocks, .. } in &mut tree.files[CHANGED_COUNT..] {
        blocks.iter_mut().for_each(|block| block.fixer_edit = None);
    }
    tree.fixer_created.retain(|file_index, _| *file_index < super::random_trees::CREATABLE_COUNT);
    tree.user_created.clear();
    tree
}
