//! What is questionable about work is found in its commits before the branch moves.

use super::*;

const STORY: &str = "# Story 1.1: Sift\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. Bran is removed.\n2. Flour is kept.\n\n\
                     ## Tasks\n\n- [ ] Write sift\n  - [ ] Handle bran\n- [ ] Delete src/old.sh and tests/old_test.sh\n";

fn find_concerns(project: &UserProject, workspace: &DevelopmentWorkspace, gate: LandingGate) -> Vec<LandingConcern> {
    let base = workspace.record.base.clone();
    let commit = workspace.commit("work");
    let request = Integrate {
        verified: None,
        workspace: "dev".into(),
        branch: main_branch(),
        expected: base.clone(),
        commit,
        unchanged_checks: Vec::new(),
        gate,
        mergeable: Vec::new(),
        only_looks: false,
    };
    match integrate_work(workspace, &request, &Masker::new([])).unwrap() {
        IntegrateOutcome::Questionable { concerns } => {
            assert_eq!(project.tip("main"), base, "the branch was left alone");
            concerns
        }
        IntegrateOutcome::Integrated { .. } => Vec::new(),
        other => panic!("{other:?}"),
    }
}

fn story_gate() -> LandingGate {
    LandingGate { story: Some("story.md".into()), ..LandingGate::default() }
}

fn lost(path: &str) -> LandingConcern {
    LandingConcern::LostFile { path: path.into() }
}

fn token() -> String {
    format!("gh{}_{}", "p", "a1B2".repeat(9))
}

#[test]
fn files_that_the_work_loses_are_named_unless_its_story_names_them() {
    let project = UserProject::with_files(&[
        ("story.md", STORY),
        ("src/old.sh", "old\n"),
        ("tests/old_test.sh", "old test\n"),
        ("src/users.sh", "of the user\n"),
        ("src/moved.sh", "a\nb\nc\nd\n"),
        ("tests/kept_test.sh", "kept\ntest\n"),
    ]);
    let workspace = project.open();
    for path in ["src/old.sh", "tests/old_test.sh", "src/users.sh", "src/moved.sh"] {
        fs::remove_file(workspace.agent_dir().join(path)).unwrap();
    }
    workspace.write("lib/moved.sh", "a\nb\nc\ne\n");
    fs::rename(workspace.agent_dir().join("tests/kept_test.sh"), workspace.agent_dir().join("src/unused.bak")).unwrap();
    let concerns = find_concerns(&project, &workspace, story_gate());
    let deleted_test = |path: &str| LandingConcern::DeletedTest { path: path.into() };
    assert_eq!(concerns, [lost("src/users.sh"), deleted_test("tests/kept_test.sh"), deleted_test("tests/old_test.sh")]);
    workspace.write("src/more.sh", "more\n");
    let accepted = LandingGate { accepted: concerns, ..story_gate() };
    assert_eq!(find_concerns(&project, &workspace, accepted), []);
}

#[test]
fn criteria_and_tasks_that_the_work_removes_are_named() {
    let project = UserProject::with_files(&[("story.md", STORY)]);
    let workspace = project.open();
    let ticked = STORY.replace("- [ ]", "- [x]").replace("Status: ready-for-dev", "Status: review");
    workspace.write("story.md", &ticked.replace("Write sift", "Write sift (done in src/sift.sh)"));
    assert_eq!(find_concerns(&project, &workspace, story_gate()), []);
    let workspace = project.open_again();
    let ticked = workspace.read("story.md");
    workspace.write("story.md", &ticked.replace("2. Flour is kept.\n", "").replace("  - [x] Handle bran\n", ""));
    assert_eq!(
        find_concerns(&project, &workspace, story_gate()),
        [
            LandingConcern::RemovedCriterion { text: "Flour is kept.".into() },
            LandingConcern::RemovedTask { text: "Handle bran".into() }
        ]
    );
}

#[test]
fn a_secret_does_not_land_and_is_found_in_earlier_commits_too() {
    let project = UserProject::with_files(&[("a.env", "KEY=from the environment\n")]);
    let workspace = project.open();
    workspace.write("b/config.txt", &format!("use {} here\n", token()));
    let secret = |only_in_history| LandingConcern::AddedSecret {
        path: "b/config.txt".into(),
        kind: "github".into(),
        only_in_history,
    };
    assert_eq!(find_concerns(&project, &workspace, LandingGate::default()), [secret(false)]);
    workspace.write("b/config.txt", "use the environment\n");
    assert_eq!(find_concerns(&project, &workspace, LandingGate::default()), [secret(true)]);
}

#[test]
fn a_secret_is_found_in_any_encoding_in_links_and_in_names() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open();
    write_file(&workspace.agent_dir().join("latin.txt"), [b"h\xe4lt ".as_slice(), token().as_bytes(), b"\n"].concat());
    std::os::unix::fs::symlink(format!("../{}", token()), workspace.agent_dir().join("link")).unwrap();
    workspace.write(&format!("{}.txt", token()), "x\n");
    let concerns = find_concerns(&project, &workspace, LandingGate::default());
    let mut paths: Vec<&str> = concerns
        .iter()
        .filter_map(|concern| match concern {
            LandingConcern::AddedSecret { path, .. } => Some(path.as_str()),
            _ => None,
        })
        .collect();
    paths.sort_unstable();
    assert_eq!((paths.len(), paths[1], paths[2]), (3, "latin.txt", "link"), "{concerns:?}");
    assert!(!format!("{concerns:?}").contains(&token()));
}

#[test]
fn a_secret_that_was_there_before_may_move() {
    let project = UserProject::with_files(&[("a.txt", &format!("use {}\n", token()))]);
    let workspace = project.open();
    workspace.write("a.txt", "see b.txt\n");
    workspace.write("b.txt", &format!("the token is {}\n", token()));
    assert_eq!(find_concerns(&project, &workspace, LandingGate::default()), []);
}
