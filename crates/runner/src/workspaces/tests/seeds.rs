//! What agents need is in the workspace although git ignores it.

use std::os::unix::fs::symlink;

use super::{super::agent_file_names, *};

#[test]
fn what_agents_need_is_copied_although_ignored() {
    let test_project = TestProject::with_commit(&[
        (".gitignore", ".claude/\nCLAUDE.local.md\n.github/\nsecret\n"),
        ("AGENTS.md", "tracked\n"),
        ("a.md", "a\n"),
    ]);
    test_project.write_files(&[
        (".claude/settings.local.json", "{}"),
        (".claude/skills/x/SKILL.md", "x\n"),
        (".claude/worktrees/one/a.md", "a\n"),
        ("CLAUDE.local.md", "mine\n"),
        (".github/copilot-instructions.md", "be brief\n"),
        (".github/secret", "no\n"),
        ("secret", "no\n"),
    ]);
    run_git(&test_project.project_root().join(".claude/worktrees/one"), &["init", "-q"]);
    let (workspace, created) = test_project.create_workspace_from(&WorkspaceOptions {
        files: &["a.md"],
        seeds: &agent_file_names().collect::<Vec<_>>(),
        ..WorkspaceOptions::default()
    });
    let expected = [
        ".claude/settings.local.json",
        ".claude/skills/x/SKILL.md",
        ".github/copilot-instructions.md",
        ".gitignore",
        "AGENTS.md",
        "CLAUDE.local.md",
        "a.md",
    ];
    assert_eq!(tree_names(&workspace), expected);
    assert_eq!(created.remarks, ["1 repository left out (not registered as a submodule): .claude/worktrees/one"]);
    assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
    assert!(copied_hashes(&workspace).contains_key(".claude/settings.local.json"));
    assert_eq!(run_git(&workspace.tree_dir(), &["status", "--porcelain"]), "");
}

#[test]
fn what_tools_leave_behind_is_copied_if_asked_for_and_is_never_a_change() {
    let test_project = TestProject::with_commit(&[(".gitignore", "node_modules/\n"), ("a.md", "a\n")]);
    test_project.write_files(&[("node_modules/x/node_modules/y.js", "y\n"), ("node_modules/bin/z", "z\n")]);
    symlink("../x/node_modules/y.js", test_project.project_root().join("node_modules/bin/y")).unwrap();
    let (workspace, created) = test_project.create_workspace_from(&WorkspaceOptions {
        files: &["a.md"],
        seeds: &["node_modules/"],
        ..WorkspaceOptions::default()
    });
    assert_eq!(tree_items(&workspace.tree_dir()), tree_items(&test_project.project_root()));
    assert_eq!(created.remarks, [""; 0]);
    fs::write(workspace.tree_dir().join("node_modules/bin/z"), "changed\n").unwrap();
    fs::remove_dir_all(workspace.tree_dir().join("node_modules/x")).unwrap();
    assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
}

#[test]
fn a_seed_outside_the_project_is_refused_and_a_missing_one_is_fine() {
    let test_project = TestProject::with_commit(&[("a.md", "a\n")]);
    write_file(&test_project.sibling_path("outside/x.md"), "secret\n");
    symlink("../outside", test_project.project_root().join("way-out")).unwrap();
    write_file(&test_project.project_root().join(".tribunal/journal.db"), "journal\n");
    let seeds = ["../outside", ".git", ".git/config", ".tribunal/journal.db", "/etc", "", "way-out/x.md", "missing"];
    let (workspace, created) = test_project.create_workspace_from(&WorkspaceOptions {
        files: &["a.md"],
        seeds: &seeds,
        ..WorkspaceOptions::default()
    });
    assert_eq!(tree_names(&workspace), ["a.md"]);
    assert!(!workspace.tree_dir().join(".tribunal").exists());
    let refused = |seed: &str| format!("`{seed}` is not copied: it is not a file or directory of the project");
    let mut expected: Vec<String> = seeds[..6].iter().map(|seed| refused(seed)).collect();
    expected.push("1 symlink left out (pointing outside the project): way-out".to_string());
    assert_eq!(created.remarks, expected);
}

#[test]
fn seeds_have_bounds_of_their_own() {
    let test_project = TestProject::with_commit(&[(".gitignore", "big/\nsmall/\n"), ("a.md", "a\n")]);
    test_project.write_files(&[("small/one", "1"), ("big/one", "1"), ("big/two", "2"), ("big/three", "3")]);
    let bounds = Some(CopyLimits { files: 3, bytes: 1000 });
    let options =
        WorkspaceOptions { files: &["a.md"], seeds: &["small", "big"], bounds, ..WorkspaceOptions::default() };
    let (workspace, created) = test_project.create_workspace_from(&options);
    assert_eq!(tree_names(&workspace), [".gitignore", "a.md", "small/one"]);
    assert_eq!(created.remarks, ["`big` is not copied: with the other files for agents, it exceeds the limit"]);
}

#[test]
fn a_stored_tree_has_seeds_too_and_none_of_its_files_is_replaced() {
    let test_project =
        TestProject::with_commit(&[(".gitignore", ".claude/\n"), ("AGENTS.md", "old\n"), ("a.md", "a\n")]);
    test_project.write_files(&[(".claude/x", "x\n"), ("AGENTS.md", "new\n"), ("CLAUDE.md", "not yet\n")]);
    let files = ["a.md", "CLAUDE.md"];
    let options = WorkspaceOptions {
        files: &files,
        tree: Some("HEAD"),
        seeds: &agent_file_names().collect::<Vec<_>>(),
        ..WorkspaceOptions::default()
    };
    let (workspace, _) = test_project.create_workspace_from(&options);
    assert_eq!(tree_names(&workspace), [".claude/x", ".gitignore", "AGENTS.md", "a.md"]);
    assert_eq!(fs::read(workspace.tree_dir().join("AGENTS.md")).unwrap(), b"old\n");
    assert_eq!(workspace.read_base("CLAUDE.md").unwrap(), None);
}
