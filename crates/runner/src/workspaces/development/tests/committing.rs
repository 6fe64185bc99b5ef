//! States and commits.

use crate::workspaces::development::commits::CommitForm;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn the_fingerprint_depends_on_the_content_alone() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n"), (".gitignore", "*.log\n")]);
    let workspace = project.open();
    let clean = workspace.state();
    workspace.write("x.log", "ignored");
    // The same bytes, written again.
    workspace.write("a.txt", "a\n");
    assert_eq!(workspace.state(), clean);
    workspace.write("a.txt", "c\n");
    let changed = workspace.state();
    assert_ne!(changed.fingerprint, clean.fingerprint);
    fs::set_permissions(workspace.record.tree.join("b.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    let executable = workspace.state();
    assert_ne!(executable.fingerprint, changed.fingerprint);
    // What the agent stages and commits makes no difference, nor does our own commit.
    project.git_in(&workspace.record.tree, &["commit", "-qam", "by the agent"]);
    assert_eq!(workspace.state(), executable);
    workspace.commit("ours");
    assert_eq!(workspace.state(), executable);
    assert_eq!(project.git_in(&workspace.record.tree, &["log", "--format=%s"]), "ours\nfirst");
    assert_eq!(project.git_in(&workspace.record.tree, &["status", "--porcelain"]), "");
    // Back to the beginning, although a commit of ours is in between.
    workspace.write("a.txt", "a\n");
    fs::set_permissions(workspace.record.tree.join("b.txt"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(workspace.state(), clean);
}

#[test]
fn every_kind_of_change_is_listed_and_committed() {
    let project =
        UserProject::with_files(&[("a.txt", "a\n"), ("dir/b.txt", "b\n"), ("file", "f\n"), ("gone.txt", "g\n")]);
    let workspace = project.open();
    let tree = workspace.record.tree.clone();
    fs::remove_file(tree.join("gone.txt")).unwrap();
    fs::remove_dir_all(tree.join("dir")).unwrap();
    workspace.write("dir", "now a file\n");
    fs::remove_file(tree.join("file")).unwrap();
    workspace.write("file/inside.txt", "now a directory\n");
    workspace.write("--help", "named like an option\n");
    workspace.write(":(top)odd *.txt", "named like a pattern\n");
    symlink("nowhere", tree.join("link")).unwrap();
    fs::write(tree.join(std::ffi::OsString::from("ä \"q\".txt")), "x").unwrap();
    let expected = [
        "added --help",
        "added :(top)odd *.txt",
        "added dir",
        "deleted dir/b.txt",
        "deleted file",
        "added file/inside.txt",
        "deleted gone.txt",
        "added link",
        "added ä \"q\".txt",
    ];
    assert_eq!(workspace.changes(), expected);
    // A second reading finds the same in the index alone.
    assert_eq!(workspace.changes(), expected);
    let committed = workspace.commit("all kinds");
    let listed = project.git(&["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "-z", committed.as_str()]);
    assert_eq!(
        listed.split_terminator('\0').collect::<Vec<_>>(),
        ["--help", ":(top)odd *.txt", "a.txt", "dir", "file/inside.txt", "link", "ä \"q\".txt"]
    );
    assert_eq!(
        project.git(&["log", "-1", "--format=%an <%ae>|%s", committed.as_str()]),
        "Ada <ada@example.org>|all kinds"
    );
}

#[test]
fn a_commit_is_stored_in_the_users_repository_and_touches_nothing_else() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n")]);
    project.write("c.txt", "stashed\n");
    project.git(&["stash", "-q"]);
    project.write("a.txt", "unstaged\n");
    project.write("b.txt", "staged\n");
    project.git(&["add", "b.txt"]);
    let seen = || {
        let status = project.git(&["status", "--porcelain"]);
        let refs = project.git(&["for-each-ref", "refs/heads", "refs/stash"]);
        (status, refs, project.git(&["diff", "HEAD"]))
    };
    let before = seen();
    let workspace = project.open();
    workspace.write("a.txt", "agent\n");
    let first = workspace.commit("one");
    workspace.write("new.txt", "agent\n");
    let second = workspace.commit("two");
    assert_eq!(seen(), before);
    assert_eq!(project.git(&["rev-parse", &format!("{second}^")]), first.as_str());
    assert_eq!(project.tip("refs/tribunal/work/loop-x1/dev"), second);
    assert_eq!(project.git(&["fsck", "--no-dangling", "--connectivity-only"]), "");
    // The ref stays when the workspace is removed: nothing else has the work.
    super::super::close_workspace(&project.home(), &run_id(), "dev").unwrap();
    assert_eq!(project.tip("refs/tribunal/work/loop-x1/dev"), second);
}

#[test]
fn a_repeated_request_finds_its_commit_and_another_one_finds_nothing_to_commit() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open();
    assert!(
        matches!(workspace.prepare("x", CommitForm::Added), PreparedCommit::Unchanged(tip) if tip == workspace.record.base)
    );
    workspace.write("a.txt", "agent\n");
    let commit = workspace.commit("one");
    // The process ended before the user's repository had it.
    project.git(&["update-ref", "-d", "refs/tribunal/work/loop-x1/dev"]);
    let workspace = project.reopen();
    assert!(matches!(workspace.prepare("one", CommitForm::Added), PreparedCommit::AlreadyMade(made) if made == commit));
    assert_eq!(project.tip("refs/tribunal/work/loop-x1/dev"), commit);
    assert!(matches!(workspace.prepare("two", CommitForm::Added), PreparedCommit::Unchanged(tip) if tip == commit));
    // The process ended between the commit and the branch: the commit is made again.
    workspace.write("a.txt", "more\n");
    let third = workspace.commit("three");
    let control_git = workspace.control_git();
    control_git.run(["update-ref", "refs/heads/work", commit.as_str()]).unwrap();
    let again = project.reopen().commit("three");
    assert_eq!(
        project.git(&["rev-parse", &format!("{again}^{{tree}}")]),
        project.git(&["rev-parse", &format!("{third}^{{tree}}")])
    );
    assert_eq!(project.git(&["rev-parse", &format!("{again}^")]), commit.as_str());
}

#[test]
fn commits_are_signed_with_the_users_program_and_never_with_one_of_the_repository() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let signer = project.sibling("signer");
    // It behaves like gpg: a status line on standard error, and a signature on standard output.
    write_file(&signer, "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho \"signed by $3\"\n");
    make_executable(&signer);
    let evil = project.sibling("evil");
    write_file(&evil, "#!/bin/sh\ntouch evil-ran\nexit 1\n");
    make_executable(&evil);
    project.add_global_config(&format!("[gpg]\n\tprogram = {}\n", signer.display()));
    for (key, value) in
        [("commit.gpgSign", "true"), ("user.signingKey", "KEY1"), ("gpg.program", evil.to_str().unwrap())]
    {
        project.git(&["config", key, value]);
    }
    let workspace = project.open();
    workspace.write("a.txt", "agent\n");
    let commit = workspace.commit("signed");
    let raw = project.git(&["cat-file", "commit", commit.as_str()]);
    assert!(raw.contains("gpgsig signed by KEY1"), "{raw}");
    assert!(!workspace.record.tree.join("evil-ran").exists());
}

#[test]
fn a_missing_identity_is_reported_and_replaced() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    fs::write(project.temp_dir.path().join("gitconfig"), "[user]\n\tuseConfigOnly = true\n").unwrap();
    let workspace = project.open();
    assert!(workspace.record.remarks[0].contains("Tribunal <tribunal@localhost>"), "{:?}", workspace.record.remarks);
    workspace.write("a.txt", "agent\n");
    let commit = workspace.commit("x");
    assert_eq!(project.git(&["log", "-1", "--format=%an|%ce", commit.as_str()]), "Tribunal|tribunal@localhost");
}

#[test]
fn the_boxes_of_requested_files_are_counted_unless_they_are_long_or_elsewhere() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    write_file(&project.sibling("cache/outside.txt"), "secret");
    let workspace = project.open();
    workspace.write("plan.md", "- [ ] one\n");
    workspace.write("long.txt", &"x".repeat((256 << 10) + 1));
    fs::write(workspace.record.tree.join("binary"), b"\xff\x00").unwrap();
    symlink(project.sibling("cache"), workspace.record.tree.join("linked")).unwrap();
    symlink("a.txt", workspace.record.tree.join("link.txt")).unwrap();
    let requested =
        ["plan.md", "long.txt", "binary", "linked/outside.txt", "link.txt", "../control.git/HEAD", "none", ""];
    let state = workspace.read_state(&requested.map(String::from), &Masker::new([])).unwrap().state;
    let open_items: Vec<Option<&str>> =
        state.files.iter().map(|file| file.boxes.as_ref().map(|boxes| boxes.first_open.as_str())).collect();
    assert_eq!(open_items, [Some("one"), None, None, None, None, None, None, None]);
}

#[test]
fn squashed_work_is_one_commit_on_the_base() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open();
    workspace.write("a.txt", "one\n");
    workspace.commit("first try");
    workspace.write("b.txt", "two\n");
    workspace.commit("second try");
    let squash = |request: &str| workspace.prepare(request, CommitForm::Squashed);
    let PreparedCommit::Ready(ready) = squash("done") else { panic!("several commits become one") };
    let commit = workspace.finish_commit(&ready, "Story\n", "done").unwrap();
    assert_eq!(project.git(&["rev-parse", &format!("{commit}^")]), workspace.record.base.as_str());
    assert_eq!(project.git(&["diff", "--name-only", &format!("{commit}^"), commit.as_str()]), "a.txt\nb.txt");
    assert_eq!(project.tip("refs/tribunal/work/loop-x1/dev"), commit);
    assert!(matches!(squash("done"), PreparedCommit::AlreadyMade(made) if made == commit));
    // Work that was taken back leaves nothing to commit.
    workspace.write("a.txt", "a\n");
    std::fs::remove_file(workspace.agent_dir().join("b.txt")).unwrap();
    assert!(matches!(squash("later"), PreparedCommit::Unchanged(base) if base == workspace.record.base));
}

#[test]
fn files_of_the_checkout_that_were_ignored_before_the_work_are_not_committed() {
    for rules in ["", "ign/\n!ign/\n"] {
        let project = UserProject::with_files(&[(".gitignore", "ign/\n"), ("a.txt", "a\n")]);
        project.write("ign/s", "secret\n");
        let workspace = project.open_in_place();
        let base = workspace.record.base.clone();
        workspace.write(".gitignore", rules);
        workspace.write("new.txt", "new\n");
        assert_eq!(workspace.changes(), ["modified .gitignore", "added new.txt"]);
        let commit = workspace.commit("work");
        let list_files = |commit: &CommitId| project.git(&["ls-tree", "-r", "--name-only", commit.as_str()]);
        assert_eq!(list_files(&commit), ".gitignore\na.txt\nnew.txt");
        let landed = IntegrateOutcome::Integrated { checkout_moved: true };
        assert_eq!(project.integrate(&workspace, &base, &commit), landed);
        // The commit that the next work begins with no longer ignores them.
        crate::workspaces::development::rebase_workspace(workspace, &commit).unwrap();
        let workspace = project.reopen();
        assert!(workspace.changes().is_empty());
        workspace.write("a.txt", "more\n");
        assert_eq!(list_files(&workspace.commit("more")), ".gitignore\na.txt\nnew.txt");
        assert_eq!(project.read("ign/s"), "secret\n");
    }
}

#[test]
fn ignored_files_that_the_user_commits_meanwhile_stay_committed() {
    let project = UserProject::with_files(&[(".gitignore", "ign/\n"), ("a.txt", "a\n")]);
    project.home().project.prepare_home().unwrap();
    project.write("ign/s", "mine\n");
    let workspace = project.open_in_place();
    workspace.write("new.txt", "new\n");
    workspace.commit("work");
    project.git(&["add", "-f", "ign/s"]);
    project.git(&["commit", "-q", "-m", "mine"]);
    crate::workspaces::development::rebase_workspace(workspace, &project.tip("HEAD")).unwrap();
    let new_tip = project.reopen().control_git().read_tip().unwrap();
    let listed = project.git(&["ls-tree", "-r", "--name-only", new_tip.as_str()]);
    assert_eq!(listed, ".gitignore\na.txt\nign/s\nnew.txt");
}
