//! Stray edits in a real directory: what is found, and what putting it back does.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    process::Command,
};

use tribunal_engine::{effect::RestoreOutcome, ids::RunId};
use tribunal_workflows::{findings::subject::Subject, review::order::ReviewOrder};

use super::*;
use crate::{effects::test_context::new_effect_context, project::Project, workspaces::WorkspaceSource};

/// A project with some files and an agent that works in a copy of it.
struct StrayScene {
    _directory: tempfile::TempDir,
    context: EffectContext,
    task_copy: TaskWorkspace,
}

impl StrayScene {
    /// Creates a project with git whose `build` directory is ignored.
    fn new() -> StrayScene {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path().join("project"));
        project.prepare_home().unwrap();
        let root = project.root().to_path_buf();
        let files = [
            ("plan.md", "plan\n"),
            ("src/a.rs", "a\n"),
            ("build/tool", "tool\n"),
            (".gitignore", "build\n.tribunal\n"),
        ];
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        symlink("src/a.rs", root.join("link")).unwrap();
        let git = git_command(&root).args(["init", "-q"]).status().unwrap();
        assert!(git.success());
        let context = new_effect_context(project, ReviewOrder::new(Subject::from_path("plan.md", None)));
        let workspace = TaskWorkspace::from_directory(context.project.home_dir().join("work/copy"));
        let source = WorkspaceSource {
            project_root: &root,
            subject_files: &["plan.md".to_string()],
            stored_tree: None,
            seed_paths: &[],
        };
        workspace.create(&source).unwrap();
        StrayScene { _directory: directory, context, task_copy: workspace }
    }

    fn root(&self) -> &Path {
        self.context.project.root()
    }

    fn find_during(&self, agent_work: impl FnOnce(&Path)) -> Vec<StrayEdit> {
        let watch = start_watch(&self.context, Some(&self.task_copy)).unwrap().unwrap();
        agent_work(self.root());
        watch.find_stray_edits(&self.context, Some(&self.task_copy))
    }

    /// Puts everything back that can be put back. Returns what could not be, and where the rest is kept.
    fn restore_all(&self, strays: &[StrayEdit]) -> (Vec<String>, Vec<String>) {
        let (mut lost_paths, mut parked_paths) = (Vec::new(), Vec::new());
        for stray in strays {
            match restore_stray(&self.context, stray) {
                RestoreOutcome::Restored { parked } if stray.kept => parked_paths.extend(parked),
                RestoreOutcome::Failed { .. } if !stray.kept => lost_paths.push(stray.path.clone()),
                outcome => panic!("{stray:?}: {outcome:?}"),
            }
        }
        (lost_paths, parked_paths)
    }

    fn parked(&self, parked_path: &str) -> fs::Metadata {
        fs::symlink_metadata(self.root().join(parked_path)).unwrap()
    }
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn nothing_is_found_where_nothing_changed_or_only_times_did() {
    let scene = StrayScene::new();
    let strays = scene.find_during(|root| {
        fs::write(root.join("src/a.rs"), "a\n").unwrap();
        fs::create_dir(root.join("empty")).unwrap();
    });
    assert_eq!(strays, []);
}

#[test]
fn a_report_that_another_run_writes_is_no_stray_edit() {
    let scene = StrayScene::new();
    let own_folders = scene.context.settings.own_folders();
    let strays = scene.find_during(|root| {
        fs::create_dir_all(root.join(&own_folders.reports)).unwrap();
        fs::write(root.join(own_folders.report_path(&RunId::new("sprint-1"))), "report\n").unwrap();
        fs::write(root.join(&own_folders.reports).join("mine.md"), "mine\n").unwrap();
    });
    let paths: Vec<&str> = strays.iter().map(|stray| stray.path.as_str()).collect();
    assert_eq!(paths, [format!("{}/mine.md", own_folders.reports)]);
}

#[test]
fn new_links_fifos_and_directories_are_moved_aside_and_kept() {
    let scene = StrayScene::new();
    let strays = scene.find_during(|root| {
        symlink("/etc/passwd", root.join("planted")).unwrap();
        assert!(Command::new("mkfifo").arg(root.join("src/pipe")).status().unwrap().success());
        fs::create_dir(root.join("evil")).unwrap();
        (0..9).for_each(|number| fs::write(root.join(format!("evil/{number}")), "x").unwrap());
        fs::write(root.join("x.bak"), "x").unwrap();
    });
    let paths: Vec<&str> = strays.iter().map(|stray| stray.path.as_str()).collect();
    assert_eq!(paths, ["planted", "src/pipe", "x.bak", "evil/"]);
    let (lost_paths, parked_paths) = scene.restore_all(&strays);
    assert_eq!((lost_paths.len(), parked_paths.len()), (0, 4));
    for path in &paths {
        assert!(!scene.root().join(path.trim_end_matches('/')).is_symlink(), "{path}");
        assert!(!scene.root().join(path.trim_end_matches('/')).exists(), "{path}");
    }
    assert!(scene.parked(&parked_paths[0]).is_symlink());
    assert!(!scene.parked(&parked_paths[1]).is_file());
    assert_eq!(fs::read_dir(scene.root().join(&parked_paths[3])).unwrap().count(), 9);
}

#[test]
fn modes_link_targets_and_deleted_files_are_put_back() {
    let scene = StrayScene::new();
    fs::set_permissions(scene.root().join("plan.md"), fs::Permissions::from_mode(0o640)).unwrap();
    let strays = scene.find_during(|root| {
        fs::set_permissions(root.join("src/a.rs"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("/etc/passwd", root.join("link")).unwrap();
        fs::remove_file(root.join("plan.md")).unwrap();
    });
    assert_eq!(strays.len(), 3, "{strays:?}");
    scene.restore_all(&strays);
    assert_ne!(mode_of(&scene.root().join("src/a.rs")) & 0o111, 0o111);
    assert_eq!(fs::read_link(scene.root().join("link")).unwrap(), Path::new("src/a.rs"));
    assert_eq!(fs::read_to_string(scene.root().join("plan.md")).unwrap(), "plan\n");
    assert_eq!(mode_of(&scene.root().join("plan.md")), 0o640);
}

#[test]
fn a_directory_that_became_a_link_comes_back_with_its_files() {
    let scene = StrayScene::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a.rs"), "theirs\n").unwrap();
    let mut strays = scene.find_during(|root| {
        fs::remove_dir_all(root.join("src")).unwrap();
        symlink(outside.path(), root.join("src")).unwrap();
    });
    strays.sort();
    assert_eq!(scene.restore_all(&strays).0, [] as [&str; 0]);
    assert_eq!(fs::read_to_string(scene.root().join("src/a.rs")).unwrap(), "a\n");
    assert!(!scene.root().join("src").is_symlink());
    assert_eq!(fs::read_to_string(outside.path().join("a.rs")).unwrap(), "theirs\n");
}

#[test]
fn an_ignored_file_that_changed_is_named_as_lost_and_a_new_one_is_moved_aside() {
    let scene = StrayScene::new();
    let strays = scene.find_during(|root| {
        fs::write(root.join("build/tool"), "other\n").unwrap();
        fs::write(root.join("build/new"), "new\n").unwrap();
    });
    let (lost_paths, parked_paths) = scene.restore_all(&strays);
    assert_eq!((lost_paths, parked_paths.len()), (vec!["build/tool".to_string()], 1));
    assert!(!scene.root().join("build/new").exists());
}

#[test]
fn what_was_changed_again_since_is_not_moved_aside() {
    let scene = StrayScene::new();
    let strays = scene.find_during(|root| symlink("/etc/passwd", root.join("planted")).unwrap());
    fs::remove_file(scene.root().join("planted")).unwrap();
    fs::write(scene.root().join("planted"), "mine\n").unwrap();
    assert!(matches!(restore_stray(&scene.context, &strays[0]), RestoreOutcome::Failed { .. }));
    assert_eq!(fs::read_to_string(scene.root().join("planted")).unwrap(), "mine\n");
}

#[test]
fn without_a_copy_git_and_the_stored_files_have_the_earlier_content() {
    let scene = StrayScene::new();
    let root = scene.root().to_path_buf();
    assert!(git_command(&root).args(["add", "-A"]).status().unwrap().success());
    // One file is as it was staged, the other one is not.
    fs::write(root.join("plan.md"), "my own words\n").unwrap();
    let shared_scans = &scene.context.memory.project_scans;
    let scan = shared_scans.scan_project(&root, &excluded_paths(&scene.context));
    let mut prior_contents = PriorContents::default();
    let checkpoints = CheckpointStore::for_run(&scene.context.project, &scene.context.run_id);
    prior_contents.add_listed_files(PriorSource { project_root: &root, scan: &scan, shared_scans }, &checkpoints);
    let watch = ProjectWatch { scan, prior_contents };
    fs::write(root.join("plan.md"), "theirs\n").unwrap();
    fs::write(root.join("src/a.rs"), "theirs\n").unwrap();
    let strays = watch.find_stray_edits(&scene.context, Some(&scene.task_copy));
    assert_eq!(strays.len(), 2, "{strays:?}");
    assert_eq!(scene.restore_all(&strays).0, [] as [&str; 0]);
    assert_eq!(fs::read_to_string(root.join("plan.md")).unwrap(), "my own words\n");
    assert_eq!(fs::read_to_string(root.join("src/a.rs")).unwrap(), "a\n");
}
