//! Which changes of a project's directory a scan shows, and how they are grouped.

use std::{
    collections::{BTreeSet, HashSet},
    os::unix::{fs::symlink, net::UnixListener},
};

use super::{
    super::project_scan::{ChangeGroup, ProjectScan, SharedScans, group_changes},
    *,
};

fn scan(test_project: &TestProject) -> ProjectScan {
    let excluded = HashSet::from([".git", ".tribunal"].map(PathBuf::from));
    ProjectScan::new(&test_project.project_root(), &excluded, &BTreeSet::new())
}

/// Returns the paths of what changed, sorted.
fn changes_during(test_project: &TestProject, agent_work: impl FnOnce(&Path)) -> Vec<String> {
    let earlier = scan(test_project);
    agent_work(&test_project.project_root());
    let changes = scan(test_project).list_changes(&earlier);
    let mut paths: Vec<String> = changes.iter().map(|change| change.path.display().to_string()).collect();
    paths.sort();
    paths
}

fn committed_project() -> TestProject {
    TestProject::with_commit(&[("plan.md", "a\n"), ("src/a.rs", "a\n"), ("src/b.rs", "b\n"), (".gitignore", "*.log\n")])
}

#[test]
fn every_name_counts_whatever_git_ignores() {
    let test_project = committed_project();
    let new_files = ["a.log", "x.bak", "x.tmp", ".a.rs.swp", "a.rs~", "x.part", ".env", "node_modules/.bin/x"];
    let paths = changes_during(&test_project, |root| {
        new_files.iter().for_each(|name| write_file(&root.join(name), "new\n"));
        write_file(&root.join("hidden/.gitignore"), "*\n");
        write_file(&root.join("hidden/x"), "x\n");
    });
    let mut expected: Vec<&str> = new_files.into_iter().chain(["hidden/.gitignore", "hidden/x"]).collect();
    expected.sort_unstable();
    assert_eq!(paths, expected);
}

#[test]
fn links_fifos_sockets_and_modes_count() {
    let test_project = committed_project();
    let root = test_project.project_root();
    symlink("src/a.rs", root.join("link")).unwrap();
    let paths = changes_during(&test_project, |root| {
        symlink("/etc", root.join("new-link")).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("src/b.rs", root.join("link")).unwrap();
        assert!(Command::new("mkfifo").arg(root.join("fifo")).status().unwrap().success());
        drop(UnixListener::bind(root.join("socket")).unwrap());
        make_executable(&root.join("src/a.rs"));
        fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o700)).unwrap();
    });
    assert_eq!(paths, ["fifo", "link", "new-link", "socket", "src", "src/a.rs"]);
}

#[test]
fn a_new_repository_counts_and_the_projects_own_does_not() {
    let test_project = committed_project();
    let paths = changes_during(&test_project, |root| {
        fs::create_dir(root.join("nested")).unwrap();
        run_git(&root.join("nested"), &["init", "-q"]);
        write_file(&root.join(".git/planted"), "x\n");
        write_file(&root.join(".tribunal/planted"), "x\n");
        fs::create_dir(root.join("empty")).unwrap();
    });
    assert!(paths.contains(&"nested/.git/HEAD".to_string()), "{paths:?}");
    assert!(paths.iter().all(|path| path.starts_with("nested/")), "{paths:?}");
}

#[test]
fn deleted_and_replaced_files_count_and_a_replaced_directory_counts_with_its_files() {
    let test_project = committed_project();
    let paths = changes_during(&test_project, |root| {
        fs::remove_file(root.join("plan.md")).unwrap();
        fs::rename(root.join("src"), root.join("moved")).unwrap();
        symlink("moved", root.join("src")).unwrap();
    });
    assert_eq!(paths, ["moved/a.rs", "moved/b.rs", "plan.md", "src", "src/a.rs", "src/b.rs"]);
}

#[test]
fn what_is_beyond_the_limit_is_named_and_never_looks_like_a_change() {
    let test_project =
        TestProject::without_git(&[("a", ""), ("b", ""), ("deep/c", ""), ("deep/d", ""), ("deep/e", "")]);
    let (root, excluded) = (test_project.project_root(), HashSet::new());
    let scan_again = |skipped: &BTreeSet<PathBuf>| ProjectScan::within_limit(&root, &excluded, skipped, 5);
    let earlier = scan_again(&BTreeSet::new());
    assert_eq!(earlier.unwatched, BTreeSet::from([PathBuf::from("deep")]));
    fs::remove_file(root.join("deep/c")).unwrap();
    write_file(&root.join("deep/f"), "f");
    fs::remove_file(root.join("b")).unwrap();
    let later = scan_again(&earlier.unwatched);
    let changes: Vec<PathBuf> = later.list_changes(&earlier).into_iter().map(|change| change.path).collect();
    assert_eq!(changes, [PathBuf::from("b")]);
}

/// Groups what changed since `earlier`, in a project whose known files are those given.
fn group_since(test_project: &TestProject, earlier: &ProjectScan, known_paths: &[&str]) -> Vec<ChangeGroup> {
    let changes = scan(test_project).list_changes(earlier);
    group_changes(changes, earlier, known_paths.iter().map(Path::new))
}

#[test]
fn build_output_is_one_group_and_a_few_files_are_named() {
    let test_project = TestProject::without_git(&[("src/a.rs", ""), ("target/old", ""), ("node_modules/.bin/x", "")]);
    let earlier = scan(&test_project);
    for number in 0..300 {
        write_file(&test_project.project_root().join(format!("target/{}/{number}", number % 7)), "o");
    }
    test_project.write_files(&[("node_modules/.bin/x", "changed"), ("src/new.rs", ""), (".env", "")]);
    let groups = group_since(&test_project, &earlier, &["src/a.rs"]);
    let mut names: Vec<String> = groups
        .iter()
        .map(|group| match group {
            ChangeGroup::Single(change) => change.path.display().to_string(),
            ChangeGroup::Directory { path, count, is_new } => format!("{}/ {count} {is_new}", path.display()),
        })
        .collect();
    names.sort();
    assert_eq!(names, [".env", "node_modules/.bin/x", "src/new.rs", "target/ 300 false"]);
}

#[test]
fn a_new_directory_in_an_ignored_one_is_a_group_that_can_be_moved_away() {
    let test_project = TestProject::without_git(&[("src/a.rs", ""), ("node_modules/old", "")]);
    let earlier = scan(&test_project);
    for number in 0..9 {
        write_file(&test_project.project_root().join(format!("node_modules/evil/lib/{number}")), "o");
    }
    let path = PathBuf::from("node_modules/evil");
    let groups = group_since(&test_project, &earlier, &["src/a.rs"]);
    assert_eq!(groups, [ChangeGroup::Directory { path, count: 9, is_new: true }]);
}

#[test]
fn known_files_are_never_grouped() {
    let names: Vec<String> = (0..20).map(|number| format!("src/{number}.rs")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let test_project = TestProject::without_git(&files);
    let earlier = scan(&test_project);
    names.iter().for_each(|name| write_file(&test_project.project_root().join(name), "changed"));
    let known_paths: Vec<&str> = names.iter().map(String::as_str).collect();
    let groups = group_since(&test_project, &earlier, &known_paths);
    assert_eq!(groups.len(), 20);
    assert!(groups.iter().all(|group| matches!(group, ChangeGroup::Single(_))));
}

#[test]
fn a_scan_is_shared_only_if_it_began_after_it_was_asked_for() {
    let test_project = committed_project();
    let (root, excluded, shared_scans) = (test_project.project_root(), HashSet::new(), SharedScans::default());
    let first = shared_scans.scan_project(&root, &excluded);
    test_project.write_files(&[("new.md", "")]);
    let second = shared_scans.scan_project(&root, &excluded);
    assert!(!first.entries.contains_key(Path::new("new.md")) && second.entries.contains_key(Path::new("new.md")));
}
