//! Integrating work into the user's branch.

use tribunal_engine::fault::{Fault, FaultKind};

use super::*;
use crate::git::test_config::STARTED;

/// A project with work of an agent on `a.txt`, `sub/new.txt` and without `gone.txt`.
fn with_work() -> (UserProject, DevelopmentWorkspace, CommitId, CommitId) {
    let files = [("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n"), ("gone.txt", "g\n")];
    let project = UserProject::with_files(&files);
    let workspace = project.open();
    workspace.write("a.txt", "agent\n");
    workspace.write("sub/new.txt", "agent\n");
    fs::remove_file(workspace.record.tree.join("gone.txt")).unwrap();
    let commit = workspace.commit("work");
    let base = workspace.record.base.clone();
    (project, workspace, base, commit)
}

#[test]
fn the_checkout_follows_and_other_changes_of_the_user_stay() {
    let (project, workspace, base, commit) = with_work();
    project.write("c.txt", "stashed\n");
    project.git(&["stash", "-q"]);
    project.write("b.txt", "staged\n");
    project.git(&["add", "b.txt"]);
    project.write("b.txt", "staged, and more\n");
    project.write("c.txt", "unstaged\n");
    project.write("untracked.txt", "mine\n");
    let status_before = project.git(&["status", "--porcelain"]);
    let stash_before = project.git(&["rev-parse", "refs/stash"]);
    for _ in 0..2 {
        // Asked again, it finds the work in place.
        let outcome = project.integrate(&workspace, &base, &commit);
        assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: true });
        assert_eq!(project.tip("main"), commit);
        assert_eq!((project.read("a.txt"), project.read("sub/new.txt")), ("agent\n".into(), "agent\n".into()));
        assert!(!project.root().join("gone.txt").exists());
        assert_eq!(project.git(&["status", "--porcelain"]), status_before);
        assert_eq!(project.git(&["show", ":b.txt"]), "staged");
        assert_eq!(project.read("b.txt"), "staged, and more\n");
        assert_eq!(project.git(&["rev-parse", "refs/stash"]), stash_before);
    }
    super::super::close_workspace(&project.home(), &run_id(), "dev").unwrap();
    assert_eq!(project.git(&["for-each-ref", "refs/tribunal"]), "");
}

#[test]
fn the_checkout_follows_where_a_file_leads_to_the_repository() {
    let (project, _, base, _) = with_work();
    let elsewhere = project.sibling("repository");
    fs::rename(project.root().join(".git"), &elsewhere).unwrap();
    project.write(".git", &format!("gitdir: {}\n", elsewhere.display()));
    let workspace = project.open();
    workspace.write("a.txt", "agent\n");
    let commit = workspace.commit("work");
    let outcome = project.integrate(&workspace, &base, &commit);
    assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(project.read("a.txt"), "agent\n");
}

#[test]
fn a_landing_starts_few_processes() {
    let (project, workspace, base, commit) = with_work();
    STARTED.set(0);
    project.integrate(&workspace, &base, &commit);
    // Settings, and twice where they are, which only tests ask again; objects, changes, moved files; status, files, branch.
    assert!(STARTED.get() <= 9, "{}", STARTED.get());
}

#[test]
fn uncommitted_changes_of_the_same_files_make_the_work_wait() {
    type Obstacle = fn(&UserProject);
    let obstacles: [(Obstacle, &str); 6] = [
        (|project| project.write("a.txt", "mine\n"), "a.txt"),
        (
            |project| {
                project.write("a.txt", "mine\n");
                project.git(&["add", "a.txt"]);
            },
            "a.txt",
        ),
        (|project| project.write("sub/new.txt", "mine\n"), "sub/new.txt"),
        (|project| project.write("sub", "a file where a directory would be\n"), "sub/new.txt"),
        (|project| project.write("gone.txt", "mine\n"), "gone.txt"),
        (
            |project| {
                write_file(&project.root().join(".git/info/exclude"), "sub/\n");
                project.write("sub/new.txt", "ignored\n");
            },
            "sub/new.txt",
        ),
    ];
    for (make_obstacle, path) in obstacles {
        let (project, workspace, base, commit) = with_work();
        make_obstacle(&project);
        let seen = || (project.git(&["status", "--porcelain", "--ignored"]), project.git(&["diff", "HEAD"]));
        let before = seen();
        for _ in 0..2 {
            let expected = IntegrateOutcome::Waits { branch: "tribunal/loop-x1".into(), paths: vec![path.into()] };
            assert_eq!(project.integrate(&workspace, &base, &commit), expected);
        }
        assert_eq!(seen(), before);
        assert_eq!((project.tip("main"), project.tip("tribunal/loop-x1")), (base, commit));
    }
}

#[test]
fn a_branch_that_moved_is_left_alone() {
    let (project, workspace, base, commit) = with_work();
    project.write("b.txt", "mine\n");
    let tip = project.commit_all("mine");
    assert_eq!(project.integrate(&workspace, &base, &commit), IntegrateOutcome::Moved { tip: tip.clone() });
    assert_eq!((project.tip("main"), project.read("a.txt")), (tip, "a\n".into()));
}

#[test]
fn a_branch_that_is_not_checked_out_moves_alone_and_a_new_one_is_created() {
    let (project, workspace, base, commit) = with_work();
    project.git(&["switch", "-q", "-c", "other"]);
    assert_eq!(project.integrate(&workspace, &base, &commit), IntegrateOutcome::Integrated { checkout_moved: false });
    assert_eq!((project.tip("main"), project.read("a.txt")), (commit.clone(), "a\n".into()));
    let branch = TargetBranch { name: "new/branch".into(), created_at: Some(base.clone()) };
    let request = Integrate {
        verified: None,
        workspace: "dev".into(),
        branch,
        expected: base,
        commit: commit.clone(),
        unchanged_checks: vec![],
        gate: LandingGate::open(),
        mergeable: vec![],
        only_looks: false,
    };
    for _ in 0..2 {
        let outcome = integrate_work(&workspace, &request, &Masker::new([])).unwrap();
        assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: false });
        assert_eq!(project.tip("new/branch"), commit);
    }
}

#[test]
fn the_checkout_in_a_linked_work_tree_follows() {
    let (project, workspace, base, commit) = with_work();
    project.git(&["switch", "-q", "-c", "other"]);
    project.git(&["worktree", "add", "-q", "../linked", "main"]);
    assert_eq!(project.integrate(&workspace, &base, &commit), IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(fs::read_to_string(project.sibling("linked/a.txt")).unwrap(), "agent\n");
    assert_eq!(project.git_in(&project.sibling("linked"), &["status", "--porcelain"]), "");
    assert_eq!(project.read("a.txt"), "a\n");
}

#[test]
fn an_operation_that_the_user_has_not_finished_is_not_disturbed() {
    let (project, workspace, base, commit) = with_work();
    let request = Integrate {
        verified: None,
        workspace: "dev".into(),
        branch: main_branch(),
        expected: base.clone(),
        commit,
        unchanged_checks: vec![],
        gate: LandingGate::open(),
        mergeable: vec![],
        only_looks: false,
    };
    for (path, operation) in
        [("MERGE_HEAD", "a merge"), ("index.lock", "another git command"), ("rebase-merge", "a rebase")]
    {
        let file = project.root().join(".git").join(path);
        write_file(&file, base.as_str());
        let refusal = integrate_work(&workspace, &request, &Masker::new([])).unwrap_err();
        let is_waiting = matches!(refusal, WorkspaceError::CheckoutNotReady { .. });
        assert_eq!(is_waiting, path != "index.lock", "the run waits for what the user has begun");
        let refusal = refusal.to_string();
        assert!(refusal.starts_with(&format!("{operation} is in progress")), "{refusal}");
        assert_eq!(refusal.ends_with(", then resume"), is_waiting, "{refusal}");
        fs::remove_file(file).unwrap();
    }
    // A rebase of the branch detaches HEAD, and would move the branch at its end.
    project.git(&["checkout", "-q", "--detach"]);
    write_file(&project.root().join(".git/rebase-merge/head-name"), "refs/heads/main\n");
    assert!(
        integrate_work(&workspace, &request, &Masker::new([]))
            .unwrap_err()
            .to_string()
            .contains("a rebase is in progress")
    );
    assert_eq!(project.tip("main"), base);
}

#[test]
fn an_interrupted_integration_is_continued() {
    // The process ended while it wrote the files.
    let (project, workspace, base, commit) = with_work();
    project.write("a.txt", "agent\n");
    project.write("sub/new.txt", "agent\n");
    assert_eq!(project.integrate(&workspace, &base, &commit), IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    // It ended between the files and the branch.
    let (project, workspace, base, commit) = with_work();
    project.git(&["read-tree", "-m", "-u", base.as_str(), commit.as_str()]);
    assert_eq!(project.integrate(&workspace, &base, &commit), IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

#[test]
fn filters_of_the_user_run_in_the_checkout_and_those_of_the_repository_make_the_work_wait() {
    for is_global in [true, false] {
        let project = UserProject::with_files(&[(".gitattributes", "*.up filter=upper\n"), ("a.txt", "a\n")]);
        let filter = "[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired = true\n";
        if is_global {
            project.add_global_config(filter);
            // What the repository says about the filter of the user does not count.
            project.git(&["config", "filter.upper.smudge", "false"]);
        } else {
            let config_file = project.root().join(".git/config");
            fs::write(&config_file, fs::read_to_string(&config_file).unwrap() + filter).unwrap();
        }
        let workspace = project.open();
        workspace.write("new.up", "TEXT\n");
        let commit = workspace.commit("work");
        let outcome = project.integrate(&workspace, &workspace.record.base.clone(), &commit);
        if is_global {
            assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: true });
            assert_eq!(project.read("new.up"), "text\n");
        } else {
            let paths = vec!["new.up".to_string()];
            assert_eq!(outcome, IntegrateOutcome::Waits { branch: "tribunal/loop-x1".into(), paths });
        }
    }
}

#[test]
fn work_in_the_checkout_moves_the_branch_and_the_index() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    project.home().project.prepare_home().unwrap();
    let workspace = project.open_in_place();
    let base = workspace.record.base.clone();
    project.write("a.txt", "agent\n");
    project.write("new.txt", "agent\n");
    let commit = workspace.commit("work");
    project.write("b.txt", "edited after the commit\n");
    for _ in 0..2 {
        assert_eq!(
            project.integrate(&workspace, &base, &commit),
            IntegrateOutcome::Integrated { checkout_moved: true }
        );
        assert_eq!(project.tip("HEAD"), commit);
        assert_eq!(project.git(&["status", "--porcelain"]), " M b.txt");
    }
}

#[test]
fn staged_files_are_in_the_way_only_if_the_work_does_not_have_them() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let workspace = project.open_in_place();
    let base = workspace.record.base.clone();
    project.write("a.txt", "half\n");
    project.git(&["add", "a.txt"]);
    project.write("a.txt", "agent\n");
    let commit = workspace.commit("work");
    project.git(&["rm", "-q", "--cached", "b.txt"]);
    let request = Integrate {
        verified: None,
        workspace: "dev".into(),
        branch: main_branch(),
        expected: base.clone(),
        commit: commit.clone(),
        unchanged_checks: Vec::new(),
        gate: LandingGate::open(),
        mergeable: Vec::new(),
        only_looks: false,
    };
    let refusal = integrate_work(&workspace, &request, &Masker::new([])).unwrap_err();
    let expected_text = "files are staged in your checkout (b.txt); commit them, or unstage them with `git reset`";
    assert!(refusal.to_string().starts_with(expected_text), "{refusal}");
    assert_eq!(Fault::from(refusal).kind, FaultKind::CheckoutNotReady);
    assert_eq!(project.tip("HEAD"), base);
    project.git(&["reset", "-q", "--", "b.txt"]);
    assert_eq!(project.integrate(&workspace, &base, &commit), IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "agent");
}

#[test]
fn work_that_changes_what_a_check_runs_leaves_the_branch_alone() {
    let package = |script: &str, version: &str| {
        format!("{{\"scripts\": {{\"test\": \"{script}\"}}, \"dependencies\": {{\"a\": \"{version}\"}}}}")
    };
    let project =
        UserProject::with_files(&[("web/package.json", &package("node test.js", "1")), ("check.sh", "exit 1\n")]);
    let workspace = project.open();
    let commands = ["sh check.sh", "cd web && npm test"].map(CommandLine::from_shell_line).to_vec();
    let integrate = |commit: &CommitId, unchanged_checks: Vec<CommandLine>| {
        let (branch, expected) = (main_branch(), workspace.record.base.clone());
        let (workspace_name, commit) = ("dev".into(), commit.clone());
        let request = Integrate {
            verified: None,
            mergeable: vec![],
            only_looks: false,
            workspace: workspace_name,
            branch,
            expected,
            commit,
            unchanged_checks,
            gate: LandingGate::open(),
        };
        integrate_work(&workspace, &request, &Masker::new([])).unwrap()
    };
    workspace.write("check.sh", "exit 0\n");
    workspace.write("web/package.json", &package("true", "1"));
    let commit = workspace.commit("first");
    let scripts = ["check.sh", "web/package.json"].map(String::from).into_iter().zip(commands.clone());
    let scripts = scripts.map(|(path, command)| ChangedScript { path, command }).collect();
    assert_eq!(integrate(&commit, commands.clone()), IntegrateOutcome::ChecksChanged { scripts });
    assert_eq!(project.tip("main"), workspace.record.base);
    // A new version of a dependency changes no check.
    workspace.write("check.sh", "exit 1\n");
    workspace.write("web/package.json", &package("node test.js", "2"));
    let commit = workspace.commit("second");
    assert_eq!(integrate(&commit, commands), IntegrateOutcome::Integrated { checkout_moved: true });
}
