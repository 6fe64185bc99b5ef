//! What an agent does to its workspace must neither break Tribunal nor run anything with its help.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_configuration_of_the_agent_runs_nothing() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), (".gitattributes", "*.txt filter=evil diff=evil\n")]);
    let workspace = project.open();
    let marker = project.sibling("marker");
    let evil = format!("touch {}; cat", marker.display());
    let config = format!(
        "[core]\n\tfsmonitor = {evil}\n\thooksPath = hooks\n[filter \"evil\"]\n\tclean = {evil}\n\tsmudge = {evil}\n\
         [diff \"evil\"]\n\ttextconv = {evil}\n[gpg]\n\tprogram = {evil}\n[commit]\n\tgpgSign = true\n"
    );
    let git_dir = workspace.record.tree.join(".git");
    write_file(&git_dir.join("config"), config);
    for hook in ["pre-commit", "reference-transaction", "post-index-change"] {
        write_file(&git_dir.join("hooks").join(hook), format!("#!/bin/sh\n{evil}\n"));
        make_executable(&git_dir.join("hooks").join(hook));
    }
    workspace.write("a.txt", "agent\n");
    assert_eq!(project.reopen().changes(), ["modified a.txt"]);
    workspace.commit("work");
    assert!(!marker.exists());
}

#[test]
fn whatever_becomes_of_the_agents_repository_the_users_stays_as_it_is() {
    type Damage = fn(&UserProject, &Path);
    let damages: [Damage; 5] = [
        |_, git_dir| fs::remove_dir_all(git_dir).unwrap(),
        |_, git_dir| {
            fs::remove_dir_all(git_dir).unwrap();
            fs::write(git_dir, "gitdir: /nowhere\n").unwrap();
        },
        |project, git_dir| {
            fs::remove_dir_all(git_dir).unwrap();
            fs::write(git_dir, format!("gitdir: {}\n", project.root().join(".git").display())).unwrap();
        },
        |project, git_dir| {
            fs::remove_dir_all(git_dir).unwrap();
            symlink(project.root().join(".git"), git_dir).unwrap();
        },
        |project, git_dir| {
            // Links inside, through which a careless program would write into the user's repository.
            fs::remove_dir_all(git_dir.join("refs")).unwrap();
            symlink(project.root().join(".git/refs"), git_dir.join("refs")).unwrap();
            fs::remove_file(git_dir.join("index")).unwrap();
            symlink(project.root().join(".git/index"), git_dir.join("index")).unwrap();
        },
    ];
    for damage in damages {
        let project = UserProject::with_files(&[("a.txt", "a\n")]);
        let base = project.tip("main");
        let workspace = project.open();
        let index_before = fs::read(project.root().join(".git/index")).unwrap();
        workspace.write("a.txt", "agent\n");
        damage(&project, &workspace.record.tree.join(".git"));
        let workspace = project.reopen();
        assert_eq!(workspace.changes(), ["modified a.txt"]);
        let commit = workspace.commit("work");
        assert_eq!(project.tip("main"), base);
        assert_eq!(project.git(&["show", &format!("{commit}:a.txt")]), "agent");
        assert_eq!(fs::read(project.root().join(".git/index")).unwrap(), index_before);
        // The agent has a working repository again.
        assert!(fs::symlink_metadata(workspace.record.tree.join(".git")).unwrap().is_dir());
        assert_eq!(project.git_in(&workspace.record.tree, &["status", "--porcelain"]), "");
    }
}

#[test]
fn a_repository_in_the_tree_is_named_and_not_taken() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("dir/b.txt", "b\n")]);
    let workspace = project.open();
    let nested = workspace.record.tree.join("nested");
    fs::create_dir(&nested).unwrap();
    project.git_in(&nested, &["init", "-q", "-b", "main"]);
    write_file(&nested.join("x.txt"), "x");
    for has_commit in [false, true] {
        if has_commit {
            project.git_in(&nested, &["add", "-A"]);
            project.git_in(&nested, &["commit", "-qm", "nested"]);
        }
        let reading = workspace.reading();
        assert_eq!(reading.state.changed_count, 0);
        assert!(reading.remarks[0].contains("`nested/` is a git repository"), "{:?}", reading.remarks);
    }
    // A repository around files that are tracked does not hide them.
    project.git_in(&workspace.record.tree.join("dir"), &["init", "-q"]);
    workspace.write("dir/b.txt", "agent\n");
    workspace.write("dir/c.txt", "agent\n");
    assert_eq!(workspace.changes(), ["modified dir/b.txt", "added dir/c.txt"]);
    let commit = workspace.commit("work");
    assert_eq!(project.git(&["ls-tree", "-r", "--name-only", commit.as_str()]), "a.txt\ndir/b.txt\ndir/c.txt");
}

#[test]
fn links_lead_nowhere_and_special_files_are_no_content() {
    let project = UserProject::with_files(&[("dir/a.txt", "a\n"), ("b.txt", "b\n")]);
    write_file(&project.sibling("outside/a.txt"), "outside\n");
    let workspace = project.open();
    let tree = workspace.record.tree.clone();
    fs::remove_dir_all(tree.join("dir")).unwrap();
    symlink(project.sibling("outside"), tree.join("dir")).unwrap();
    fs::remove_file(tree.join("b.txt")).unwrap();
    let made = Command::new("mkfifo").arg(tree.join("b.txt")).status().unwrap();
    assert!(made.success());
    assert_eq!(workspace.changes(), ["deleted b.txt", "added dir", "deleted dir/a.txt"]);
    let commit = workspace.commit("work");
    assert!(project.git(&["ls-tree", commit.as_str()]).starts_with("120000 blob"));
    // A link in place of the whole tree is refused.
    fs::rename(&tree, tree.with_extension("moved")).unwrap();
    symlink(project.root(), &tree).unwrap();
    assert!(project.home().find_workspace(&run_id(), "dev").unwrap_err().to_string().contains("is gone"));
    super::super::close_workspace(&project.home(), &run_id(), "dev").unwrap();
    assert_eq!(project.read("b.txt"), "b\n");
}

#[test]
fn a_hidden_change_with_the_old_time_and_size_is_found() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open();
    let file = workspace.record.tree.join("a.txt");
    let old_time = fs::metadata(&file).unwrap().modified().unwrap();
    workspace.state();
    fs::write(&file, "b\n").unwrap();
    fs::File::options().append(true).open(&file).unwrap().set_modified(old_time).unwrap();
    assert_eq!(workspace.changes(), ["modified a.txt"]);
}

#[test]
fn a_huge_file_is_content_like_any_other() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open();
    let huge = fs::File::create(workspace.record.tree.join("huge.bin")).unwrap();
    huge.set_len(64 << 20).unwrap();
    assert_eq!(workspace.changes(), ["added huge.bin"]);
    let commit = workspace.commit("huge");
    assert_eq!(project.git(&["cat-file", "-s", &format!("{commit}:huge.bin")]), (64 << 20).to_string());
}
