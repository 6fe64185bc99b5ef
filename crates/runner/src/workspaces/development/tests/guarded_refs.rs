//! HEAD, branches, tags, stashes and the index of the user's checkout after an agent has worked there.

use super::{super::agent_commits::agent_committer, *};

/// A checkout with two branches, a tag and two stashes, and a workspace in it.
struct GuardedCheckout {
    project: UserProject,
    workspace: DevelopmentWorkspace,
}

impl GuardedCheckout {
    fn new() -> GuardedCheckout {
        GuardedCheckout::with_project(UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]))
    }

    fn with_project(project: UserProject) -> GuardedCheckout {
        project.git(&["branch", "other"]);
        project.write("a.txt", "second\n");
        project.commit_all("second");
        project.git(&["tag", "-m", "release", "v1"]);
        for text in ["old\n", "young\n"] {
            project.write("b.txt", text);
            project.git(&["stash", "push", "-q", "-m", text.trim()]);
        }
        let workspace = project.open_in_place();
        GuardedCheckout { project, workspace }
    }

    /// Everything that an agent could move.
    fn places(&self) -> String {
        let refs = self.project.git(&[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/heads",
            "refs/tags",
            "refs/replace",
        ]);
        let stashes = self.project.git(&["stash", "list", "--format=%H %gs"]);
        let head = self.project.git(&["rev-parse", "--symbolic-full-name", "HEAD"]);
        let staged = self.project.git(&["ls-files", "-s", "-v"]);
        format!("{head}\n{refs}\n{stashes}\n{staged}\n")
    }

    /// Lets something work in the checkout, and returns what the user is told about it.
    fn guard(&self, work: impl FnOnce(&UserProject)) -> String {
        let guarded = self.workspace.read_guarded_files().unwrap().unwrap();
        work(&self.project);
        guarded.put_back().join("\n")
    }

    /// Rebases a commit of the work onto the branch, and returns what speaks against landing it there.
    fn concerns(&self, work: &str) -> Vec<LandingConcern> {
        self.workspace.commit(work);
        let base = self.project.tip("main");
        let rebased = super::super::rebase_workspace(self.project.reopen(), &base).unwrap();
        let RebaseOutcome::Rebased { commit, .. } = rebased else { panic!("{rebased:?}") };
        let request = Integrate {
            verified: None,
            workspace: "dev".into(),
            branch: main_branch(),
            expected: base,
            commit,
            unchanged_checks: Vec::new(),
            gate: LandingGate::default(),
            mergeable: Vec::new(),
            only_looks: false,
        };
        match integrate_work(&self.project.reopen(), &request, &Masker::new([])).unwrap() {
            IntegrateOutcome::Questionable { concerns } => concerns,
            other => panic!("{other:?}"),
        }
    }
}

fn agent_git(project: &UserProject, arguments: &[&str]) -> String {
    let committer = format!("committer.email={}", agent_committer(&run_id()));
    project.git(&[&["-c", committer.as_str()], arguments].concat())
}

/// What an agent does with git, and what the user is told about it.
const MOVES: [(&str, &[&[&str]], &str); 17] = [
    (
        "switched",
        &[&["switch", "-q", "other"]],
        "HEAD was switched from main to other while the agent worked, and put back",
    ),
    ("detached", &[&["switch", "-q", "--detach", "HEAD~1"]], "HEAD was switched from main to the commit "),
    (
        "amended",
        &[&["commit", "-q", "--amend", "-m", "mine"]],
        "refs/heads/main was moved while the agent worked, and put back",
    ),
    (
        "reset",
        &[&["reset", "-q", "--hard", "HEAD~1"]],
        "refs/heads/main was moved while the agent worked, and put back",
    ),
    (
        "orphaned",
        &[&["switch", "-q", "--orphan", "fresh"], &["commit", "-q", "--allow-empty", "-m", "x"]],
        "HEAD was switched from main to fresh",
    ),
    (
        "own branch deleted",
        &[&["switch", "-q", "--detach"], &["branch", "-q", "-D", "main"]],
        "refs/heads/main was deleted while",
    ),
    (
        "branch deleted",
        &[&["branch", "-q", "-D", "other"]],
        "refs/heads/other was deleted while the agent worked, and put back",
    ),
    (
        "branch moved",
        &[&["branch", "-f", "other", "main"]],
        "refs/heads/other was moved while the agent worked, and put back",
    ),
    ("tag deleted", &[&["tag", "-d", "v1"]], "refs/tags/v1 was deleted while the agent worked, and put back"),
    ("tag moved", &[&["tag", "-f", "v1", "other"]], "refs/tags/v1 was moved while the agent worked, and put back"),
    ("replaced", &[&["replace", "main", "other"]], "was made while the agent worked, and removed"),
    ("stashes dropped", &[&["stash", "clear"]], "2 stashes were dropped while the agent worked, and put back"),
    (
        "stash popped",
        &[&["stash", "drop", "-q", "stash@{1}"]],
        "a stash was dropped while the agent worked, and put back",
    ),
    (
        "branch in the way",
        &[&["branch", "-q", "-D", "other"], &["branch", "other/one"]],
        "refs/heads/other was deleted while the agent worked, and put back",
    ),
    (
        "replaced by a hidden commit",
        &[
            &["-c", "committer.email=x@y", "commit", "-q", "--allow-empty", "-m", "hidden"],
            &["replace", "main~1", "main"],
            &["reset", "-q", "--soft", "main~1"],
        ],
        "was made while the agent worked, and removed",
    ),
    (
        "kept refs in the way",
        &[&["update-ref", "refs/tribunal/parked", "HEAD"], &["commit", "-q", "--amend", "-m", "mine"]],
        "refs/heads/main was moved while",
    ),
    ("overlooked", &[&["update-index", "--assume-unchanged", "a.txt"]], "git was told to overlook changes of a.txt"),
];

#[test]
fn whatever_an_agent_moves_goes_back() {
    for (name, commands, expected) in MOVES {
        let checkout = GuardedCheckout::new();
        let before = checkout.places();
        let told = checkout.guard(|project| {
            for command in commands {
                agent_git(project, command);
            }
        });
        assert!(told.contains(expected), "{name}: {told}");
        assert_eq!(checkout.places(), before, "{name}: {told}");
        assert_eq!(checkout.guard(|_| {}), "", "{name}");
    }
}

#[test]
fn the_same_goes_back_where_refs_are_no_files() {
    let project = UserProject::new("project");
    project.git(&["init", "-q", "-b", "main", "--ref-format=reftable"]);
    project.write("a.txt", "a\n");
    project.write("b.txt", "b\n");
    project.commit_all("first");
    let checkout = GuardedCheckout::with_project(project);
    let before = checkout.places();
    let told = checkout.guard(|project| {
        agent_git(project, &["switch", "-q", "other"]);
        agent_git(project, &["branch", "-q", "-D", "main"]);
        agent_git(project, &["stash", "clear"]);
    });
    assert_eq!(checkout.places(), before, "{told}");
}

#[test]
fn what_an_agent_leaves_is_kept_and_not_among_what_is_the_users() {
    let checkout = GuardedCheckout::new();
    let before = checkout.places();
    let told = checkout.guard(|project| {
        agent_git(project, &["switch", "-q", "-c", "side"]);
        project.write("side.txt", "side\n");
        project.git(&["add", "-A"]);
        agent_git(project, &["commit", "-q", "-m", "on the side"]);
        project.write("a.txt", "stashed\n");
        agent_git(project, &["stash", "push", "-q"]);
        project.write("a.txt", "staged\n");
        project.git(&["add", "a.txt"]);
        project.write("a.txt", "in the file\n");
    });
    assert_eq!(checkout.places(), before, "{told}");
    assert_eq!(checkout.project.read("a.txt"), "in the file\n");
    let kept = checkout.project.git(&["for-each-ref", "--format=%(refname)", "refs/tribunal/parked/loop-x1/"]);
    assert_eq!(kept.lines().count(), 3, "{kept}\n{told}");
    let texts: Vec<String> = kept.lines().map(|name| checkout.project.git(&["ls-tree", "-r", name])).collect();
    assert!(texts.iter().any(|text| text.contains("side.txt")), "{texts:?}");
    for expected in ["refs/heads/side was made", "the agent made a stash", "what was staged"] {
        assert!(told.contains(expected), "{told}");
    }
    super::super::delete_run_refs(&checkout.project.root(), &[run_id()]).unwrap();
    assert_eq!(checkout.project.git(&["for-each-ref", "refs/tribunal/parked"]), "");
}

#[test]
fn a_head_that_git_cannot_read_goes_back() {
    for broken in ["nonsense\n", ""] {
        let checkout = GuardedCheckout::new();
        let before = checkout.places();
        let told = checkout.guard(|project| {
            agent_git(project, &["branch", "-q", "-D", "other"]);
            fs::write(project.root().join(".git/HEAD"), broken).unwrap();
            fs::write(project.root().join(".git/refs/tags/v1"), "nonsense\n").unwrap();
        });
        assert!(told.contains("HEAD was made unreadable while the agent worked, and put back"), "{told}");
        assert_eq!(checkout.places(), before, "{told}");
    }
}

#[test]
fn what_the_user_does_meanwhile_stays_and_is_asked_about() {
    let checkout = GuardedCheckout::new();
    let old_tip = checkout.project.tip("main");
    let told = checkout.guard(|project| {
        project.git(&["branch", "-q", "mine"]);
        project.write("mine.txt", "mine\n");
        project.git(&["add", "mine.txt"]);
        project.git(&["commit", "-q", "-m", "Mine"]);
        project.git(&["stash", "push", "-q", "-u"]);
        project.write("b.txt", "kept aside\n");
        project.git(&["stash", "push", "-q", "-m", "mine"]);
        project.write("a.txt", "work\n");
    });
    assert_eq!(told, "refs/heads/mine was made while the agent worked");
    assert_eq!(checkout.project.git(&["log", "-1", "--format=%s"]), "Mine");
    assert_eq!(checkout.project.git(&["stash", "list"]).lines().count(), 3);
    let tip = checkout.project.tip("main");
    let before = old_tip;
    let expected = LandingConcern::CommitDuringWork { commit: tip, subject: "Mine".into(), is_agents: false, before };
    assert_eq!(checkout.concerns("work"), [expected]);
}

#[test]
fn a_branch_that_somebody_else_has_rewritten_stays() {
    let checkout = GuardedCheckout::new();
    checkout.guard(|project| {
        project.git(&["commit", "-q", "--amend", "-m", "amended"]);
    });
    assert_eq!(checkout.project.git(&["log", "-1", "--format=%s"]), "amended");
}

#[test]
fn after_a_kill_nothing_moves_and_what_is_advised_works() {
    let checkout = GuardedCheckout::new();
    let before = checkout.places();
    // The process that guarded it is gone.
    drop(checkout.workspace.read_guarded_files().unwrap());
    for command in
        [&["branch", "-q", "-D", "other"][..], &["tag", "-f", "v1", "HEAD~1"], &["stash", "drop", "-q", "stash@{0}"]]
    {
        agent_git(&checkout.project, command);
    }
    let moved = checkout.places();
    let told = checkout.guard(|_| {});
    assert_eq!(checkout.places(), moved);
    assert!(told.contains("if that was not you, put it back"), "{told}");
    for command in told.split('`').skip(1).step_by(2) {
        let output = Command::new("sh").args(["-c", command]).current_dir(checkout.project.root()).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
    }
    assert_eq!(checkout.places(), before, "{told}");
    assert_eq!(checkout.guard(|_| {}), "", "it is said once");
}

#[test]
fn a_linked_work_tree_is_guarded_by_its_own_head() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let linked = project.sibling("linked");
    project.git(&["worktree", "add", "-q", "-b", "work", linked.to_str().unwrap()]);
    let home = WorkspaceHome { project: Project::from_root(&linked), clones_root: project.sibling("cache") };
    let branch = TargetBranch { name: "work".into(), created_at: None };
    let open = OpenWorkspace { workspace: "dev".into(), place: DevelopmentPlace::InPlace, branch, scratchpad: None };
    let seeds = SeedRequest { named: &[], usual: &[] };
    let request = OpenRequest { run_id: &run_id(), open: &open, seeds, own_files: &[] };
    let workspace = create_workspace(&home, request).unwrap().mark_complete().unwrap();
    let guarded = workspace.read_guarded_files().unwrap().unwrap();
    project.git_in(&linked, &["switch", "-q", "--detach"]);
    project.git_in(&linked, &["branch", "-q", "-D", "work"]);
    let told = guarded.put_back().join("\n");
    assert_eq!(project.git_in(&linked, &["rev-parse", "--symbolic-full-name", "HEAD"]), "refs/heads/work", "{told}");
    assert_eq!(project.git(&["rev-parse", "--symbolic-full-name", "HEAD"]), "refs/heads/main");
}

#[test]
fn a_git_directory_in_which_git_would_fail_or_write_elsewhere_is_repaired() {
    let elsewhere = |project: &UserProject| project.sibling("elsewhere").display().to_string();
    let attacks: [(&str, &str); 12] = [
        ("links of logs", "rm -rf .git/logs/HEAD && ln -s ELSEWHERE/log .git/logs/HEAD"),
        ("links of refs", "mv .git/refs/tags ELSEWHERE/tags && ln -s ELSEWHERE/tags .git/refs/tags"),
        ("links at the top", "ln -sf ELSEWHERE/precious .git/COMMIT_EDITMSG"),
        (
            "locks",
            "git branch -q -D other; touch .git/refs/heads/other.lock .git/refs/stash.lock .git/index.lock; rm .git/logs/refs/stash",
        ),
        ("packed refs", "git pack-refs --all && echo garbage > .git/packed-refs"),
        ("index", "echo garbage > .git/index"),
        ("a linked index", "mv .git/index ELSEWHERE/index && ln -s ELSEWHERE/index .git/index"),
        ("HEAD as a directory", "rm .git/HEAD && mkdir .git/HEAD"),
        ("a history that ends", "git rev-parse main > .git/shallow"),
        (
            "an unfinished merge",
            "git merge -q --no-commit --no-ff -s ours other > /dev/null; git rev-parse other > .git/MERGE_HEAD",
        ),
        ("an unfinished rebase", "mkdir .git/rebase-merge && echo refs/heads/main > .git/rebase-merge/head-name"),
        (
            "no place to keep things",
            "mkdir -p .tribunal && echo x > .tribunal/parked; git config core.fsmonitor 'touch ELSEWHERE/ran'",
        ),
    ];
    for (name, script) in attacks {
        let checkout = GuardedCheckout::new();
        fs::create_dir(checkout.project.sibling("elsewhere")).unwrap();
        write_file(&checkout.project.sibling("elsewhere/precious"), "precious\n");
        let config = checkout.project.read(".git/config");
        let before = checkout.places();
        let told = checkout.guard(|project| {
            let script = script.replace("ELSEWHERE", &elsewhere(project));
            let output = Command::new("sh").args(["-c", &script]).current_dir(project.root()).output().unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
        });
        assert_ne!(told, "", "{name}");
        assert_eq!(checkout.places(), before, "{name}: {told}");
        assert_eq!(checkout.project.read(".git/config"), config, "{name}: {told}");
        assert!(!told.contains("could not"), "{name}: {told}");
        assert_eq!(checkout.guard(|_| {}), "", "{name}");
        checkout.project.write("a.txt", "later\n");
        checkout.project.commit_all("later");
        assert_eq!(fs::read_to_string(checkout.project.sibling("elsewhere/precious")).unwrap(), "precious\n", "{name}");
        assert!(
            !checkout.project.sibling("elsewhere/log").exists() && !checkout.project.sibling("elsewhere/ran").exists()
        );
    }
}

#[test]
fn a_branch_that_a_hidden_committer_replaces_is_kept() {
    let checkout = GuardedCheckout::new();
    let other = checkout.project.tip("other");
    let told = checkout.guard(|project| {
        let hidden = project.git(&["commit-tree", "-m", "hidden", "HEAD^{tree}"]);
        project.git(&["update-ref", "refs/heads/other", &hidden]);
    });
    let kept = format!("refs/tribunal/parked/loop-x1/{}", other.short_hex());
    assert!(told.contains(&kept), "{told}");
    assert_eq!(checkout.project.tip(&kept), other);
}

#[test]
fn names_are_quoted_in_what_is_advised() {
    let checkout = GuardedCheckout::new();
    let names = ["x;touch${IFS}ran", "ta'g", "sp$x", "back`tick`"];
    for name in names {
        checkout.project.git(&["branch", name]);
    }
    checkout.project.write("b.txt", "odd\n");
    checkout.project.git(&["stash", "push", "-q", "-m", "it's $(touch ran)"]);
    let before = checkout.places();
    drop(checkout.workspace.read_guarded_files().unwrap());
    for name in names {
        agent_git(&checkout.project, &["branch", "-q", "-D", name]);
    }
    agent_git(&checkout.project, &["stash", "clear"]);
    agent_git(&checkout.project, &["symbolic-ref", "HEAD", "refs/heads/other"]);
    // It is said by an error first, since the agent must not work on another branch.
    let refused = checkout.workspace.read_guarded_files().unwrap_err().to_string();
    assert!(
        refused.contains("HEAD is at other, and not on main; put it back with `git symbolic-ref HEAD refs/heads/main`"),
        "{refused}"
    );
    agent_git(&checkout.project, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    let told = checkout.guard(|_| {});
    // Some names have backticks themselves.
    for command in told.split(": `").skip(1) {
        let command = command.split("`; ").next().unwrap().trim_end_matches('`');
        let output = Command::new("sh").args(["-c", command]).current_dir(checkout.project.root()).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
    }
    assert_eq!(checkout.places(), before, "{told}");
    assert!(!checkout.project.root().join("ran").exists());
}

#[test]
fn many_branches_go_back_at_once_and_are_not_all_named() {
    let checkout = GuardedCheckout::new();
    let other = checkout.project.tip("other");
    let create: String = (0..600).map(|number| format!("create refs/heads/old/{number} {other}\n")).collect();
    let update_refs = |lines: &str| {
        checkout.project.write("../refs", lines);
        let script = "git update-ref --stdin < ../refs";
        let output = Command::new("sh").args(["-c", script]).current_dir(checkout.project.root()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    update_refs(&create);
    let before = checkout.places();
    let told = checkout.guard(|_| update_refs(&create.replace("create", "delete")));
    assert_eq!(checkout.places(), before);
    assert!(
        told.lines().count() < 5 && told.contains(" more were changed while the agent worked, and put back"),
        "{told}"
    );
}

#[test]
fn what_could_not_be_put_back_is_kept_and_the_advice_works_later() {
    let checkout = GuardedCheckout::new();
    let before = checkout.places();
    // It was there before the agent, so it is not the agent's.
    checkout.project.write(".git/refs/heads/other.lock", "");
    let told = checkout.guard(|project| fs::remove_file(project.root().join(".git/refs/heads/other")).unwrap());
    assert!(told.contains("could not be put back") && told.contains("when that is out of the way, `"), "{told}");
    assert_eq!(checkout.project.git(&["for-each-ref", "refs/tribunal/parked"]).lines().count(), 1);
    fs::remove_file(checkout.project.root().join(".git/refs/heads/other.lock")).unwrap();
    let command = told.split_once("out of the way, `").unwrap().1.split('`').next().unwrap();
    let output = Command::new("sh").args(["-c", command]).current_dir(checkout.project.root()).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    assert_eq!(checkout.places(), before, "{told}");
}

#[test]
fn a_hidden_commit_below_many_of_the_agent_is_found() {
    let checkout = GuardedCheckout::new();
    checkout.guard(|project| {
        let hidden = project.git(&["commit-tree", "-m", "hidden", "-p", "HEAD", "HEAD^{tree}"]);
        project.git(&["update-ref", "refs/heads/main", &hidden]);
        for _ in 0..210 {
            agent_git(project, &["commit", "-q", "--allow-empty", "-m", "x"]);
        }
    });
    let recorded = checkout.workspace.read_commits_during_work().unwrap();
    assert_eq!(recorded.iter().map(|commit| commit.subject.as_str()).collect::<Vec<_>>(), ["hidden"]);
}
