//! What agents need is in the workspace although git ignores it.

use std::os::unix::fs::symlink;

use super::{super::agent_files, *};

#[test]
fn what_agents_need_is_copied_although_ignored() {
    let place = Place::committed(&[
        (".gitignore", ".claude/\nCLAUDE.local.md\n.github/\nsecret\n"),
        ("AGENTS.md", "tracked\n"),
        ("a.md", "a\n"),
    ]);
    place.write(&[
        (".claude/settings.local.json", "{}"),
        (".claude/skills/x/SKILL.md", "x\n"),
        (".claude/worktrees/one/a.md", "a\n"),
        ("CLAUDE.local.md", "mine\n"),
        (".github/copilot-instructions.md", "be brief\n"),
        (".github/secret", "no\n"),
        ("secret", "no\n"),
    ]);
    git(&place.root().join(".claude/worktrees/one"), &["init", "-q"]);
    let (copy, made) =
        place.make(&Want { files: &["a.md"], seeds: &agent_files().collect::<Vec<_>>(), ..Want::default() });
    let expected = [
        ".claude/settings.local.json",
        ".claude/skills/x/SKILL.md",
        ".github/copilot-instructions.md",
        ".gitignore",
        "AGENTS.md",
        "CLAUDE.local.md",
        "a.md",
    ];
    assert_eq!(names(&copy), expected);
    assert_eq!(made.remarks, ["1 repository left out, being no submodule: .claude/worktrees/one"]);
    assert_eq!(copy.changes().unwrap(), BTreeMap::new());
    assert!(copy.seen().unwrap().contains_key(".claude/settings.local.json"));
    assert_eq!(git(&copy.tree(), &["status", "--porcelain"]), "");
}

#[test]
fn what_tools_leave_behind_is_copied_if_asked_for_and_is_never_a_change() {
    let place = Place::committed(&[(".gitignore", "node_modules/\n"), ("a.md", "a\n")]);
    place.write(&[("node_modules/x/node_modules/y.js", "y\n"), ("node_modules/bin/z", "z\n")]);
    symlink("../x/node_modules/y.js", place.root().join("node_modules/bin/y")).unwrap();
    let (copy, made) = place.make(&Want { files: &["a.md"], seeds: &["node_modules/"], ..Want::default() });
    assert_eq!(things(&copy.tree()), things(&place.root()));
    assert_eq!(made.remarks, [""; 0]);
    fs::write(copy.tree().join("node_modules/bin/z"), "changed\n").unwrap();
    fs::remove_dir_all(copy.tree().join("node_modules/x")).unwrap();
    assert_eq!(copy.changes().unwrap(), BTreeMap::new());
}

#[test]
fn a_seed_that_is_not_the_project_s_is_refused_and_a_missing_one_is_fine() {
    let place = Place::committed(&[("a.md", "a\n")]);
    write(&place.beside("outside/x.md"), "secret\n");
    symlink("../outside", place.root().join("way-out")).unwrap();
    write(&place.root().join(".tribunal/journal.db"), "journal\n");
    let seeds =
        ["../outside", ".git", ".git/config", ".tribunal/journal.db", "/etc", "", "way-out/x.md", "missing"];
    let (copy, made) = place.make(&Want { files: &["a.md"], seeds: &seeds, ..Want::default() });
    assert_eq!(names(&copy), ["a.md"]);
    assert!(!copy.tree().join(".tribunal").exists());
    let refused = |seed: &str| format!("`{seed}` is not copied: it is no file or folder of the project");
    let mut expected: Vec<String> = seeds[..6].iter().map(|seed| refused(seed)).collect();
    expected.push("1 link left out, leading out of the project: way-out".to_string());
    assert_eq!(made.remarks, expected);
}

#[test]
fn seeds_have_bounds_of_their_own() {
    let place = Place::committed(&[(".gitignore", "big/\nsmall/\n"), ("a.md", "a\n")]);
    place.write(&[("small/one", "1"), ("big/one", "1"), ("big/two", "2"), ("big/three", "3")]);
    let bounds = Some(Bounds { files: 3, bytes: 1000 });
    let want = Want { files: &["a.md"], seeds: &["small", "big"], bounds, ..Want::default() };
    let (copy, made) = place.make(&want);
    assert_eq!(names(&copy), [".gitignore", "a.md", "small/one"]);
    assert_eq!(made.remarks, ["`big` is not copied: it is too much beside what else agents need"]);
}

#[test]
fn a_stored_tree_has_seeds_too_and_none_of_its_files_is_replaced() {
    let place = Place::committed(&[(".gitignore", ".claude/\n"), ("AGENTS.md", "old\n"), ("a.md", "a\n")]);
    place.write(&[(".claude/x", "x\n"), ("AGENTS.md", "new\n"), ("CLAUDE.md", "not yet\n")]);
    let files = ["a.md", "CLAUDE.md"];
    let want = Want {
        files: &files,
        tree: Some("HEAD"),
        seeds: &agent_files().collect::<Vec<_>>(),
        ..Want::default()
    };
    let (copy, _) = place.make(&want);
    assert_eq!(names(&copy), [".claude/x", ".gitignore", "AGENTS.md", "a.md"]);
    assert_eq!(fs::read(copy.tree().join("AGENTS.md")).unwrap(), b"old\n");
    assert_eq!(copy.base("CLAUDE.md").unwrap(), None);
}
