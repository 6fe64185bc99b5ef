//! Uncommitted edits of the board while work lands.

use super::{
    super::{integrate::list_changes, merged_edits::MergedEdits, user_repository::UserRepository},
    *,
};

const BOARD: &str = "# plan\n1-1: done\n1-2: ready\n1-3: backlog\n1-4: backlog\n";
const LEDGER: &str = "# Deferred\n\n- one\n";

fn with_board() -> UserProject {
    UserProject::with_files(&[("board.yaml", BOARD), ("deferred-work.md", LEDGER), ("a.txt", "a\n")])
}

/// Does the work of story 1-2: code, its line of the board, and an item of the ledger.
fn with_work(project: &UserProject) -> (DevelopmentWorkspace, CommitId, CommitId) {
    let workspace = project.open();
    workspace.write("a.txt", "agent\n");
    workspace.write("board.yaml", &workspace.read("board.yaml").replace("1-2: ready", "1-2: done"));
    if workspace.agent_dir().join("deferred-work.md").exists() {
        workspace.write("deferred-work.md", &format!("{LEDGER}- of the story\n"));
    }
    let commit = workspace.commit("work");
    let base = workspace.record.base.clone();
    (workspace, base, commit)
}

/// Lists the changed lines of the checkout, without those that say where they are.
fn changed_lines(project: &UserProject, arguments: &[&str]) -> Vec<String> {
    let diff = project.git(&[["diff", "-U0"].as_slice(), arguments].concat());
    let is_changed = |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---");
    diff.lines().filter(is_changed).map(str::to_string).collect()
}

fn edit_line(project: &UserProject, old: &str, new: &str) {
    project.write("board.yaml", &project.read("board.yaml").replace(old, new));
}

const INTEGRATED: IntegrateOutcome = IntegrateOutcome::Integrated { checkout_moved: true };

#[test]
fn the_work_is_merged_into_edits_of_other_lines_and_only_these_are_left_as_uncommitted() {
    let project = with_board();
    let (workspace, base, commit) = with_work(&project);
    // The line below that of the story, and an item at the same place as that of the story.
    edit_line(&project, "1-3: backlog", "1-3: ready");
    project.write("deferred-work.md", &format!("{LEDGER}- mine\n"));
    let edits = ["-1-3: backlog", "+1-3: ready", "+- mine"];
    assert_eq!(changed_lines(&project, &[]), edits);
    for _ in 0..2 {
        assert_eq!(project.integrate(&workspace, &base, &commit), INTEGRATED);
        assert_eq!(project.tip("main"), commit);
        assert_eq!(project.read("board.yaml"), "# plan\n1-1: done\n1-2: done\n1-3: ready\n1-4: backlog\n");
        assert_eq!(project.read("deferred-work.md"), format!("{LEDGER}- of the story\n- mine\n"));
        assert_eq!(changed_lines(&project, &[]), edits);
        assert_eq!(changed_lines(&project, &["--cached"]), Vec::<String>::new());
        assert_eq!(project.git(&["status", "--porcelain"]), " M board.yaml\n M deferred-work.md");
    }
}

#[test]
fn edits_of_the_same_line_staged_edits_and_other_files_make_the_work_wait() {
    type Obstacle = fn(&UserProject);
    let obstacles: [(Obstacle, &str); 5] = [
        (|project| edit_line(project, "1-2: ready", "1-2: review"), "board.yaml"),
        (
            |project| {
                edit_line(project, "1-4: backlog", "1-4: ready");
                project.git(&["add", "board.yaml"]);
            },
            "board.yaml",
        ),
        (|project| fs::remove_file(project.root().join("board.yaml")).unwrap(), "board.yaml"),
        (|project| project.write("board.yaml", "x\0y\n"), "board.yaml"),
        (
            |project| {
                edit_line(project, "1-4: backlog", "1-4: ready");
                project.write("a.txt", "mine\n");
            },
            "a.txt",
        ),
    ];
    for (make_obstacle, path) in obstacles {
        let project = with_board();
        let (workspace, base, commit) = with_work(&project);
        make_obstacle(&project);
        let seen = || (project.git(&["status", "--porcelain"]), project.git(&["diff", "HEAD"]));
        let before = seen();
        let expected = IntegrateOutcome::Waits { branch: "tribunal/loop-x1".into(), paths: vec![path.into()] };
        assert_eq!(project.integrate(&workspace, &base, &commit), expected);
        assert_eq!((seen(), project.tip("main")), (before, base));
    }
}

#[test]
fn a_process_that_was_killed_between_two_steps_is_continued() {
    for steps in 1..=3 {
        let project = with_board();
        let (workspace, base, commit) = with_work(&project);
        edit_line(&project, "1-4: backlog", "1-4: ready");
        let object_id = project.git(&["rev-parse", &format!("{commit}:board.yaml")]);
        project.git(&["update-index", "--cacheinfo", &format!("100644,{object_id},board.yaml")]);
        if steps >= 2 {
            edit_line(&project, "1-2: ready", "1-2: done");
        }
        if steps >= 3 {
            project.git(&["read-tree", "-m", "-u", base.as_str(), commit.as_str()]);
        }
        assert_eq!(project.integrate(&workspace, &base, &commit), INTEGRATED, "{steps}");
        assert_eq!(changed_lines(&project, &[]), ["-1-4: backlog", "+1-4: ready"], "{steps}");
        assert_eq!(project.git(&["status", "--porcelain"]), " M board.yaml", "{steps}");
        assert_eq!(project.read("board.yaml"), "# plan\n1-1: done\n1-2: done\n1-3: backlog\n1-4: ready\n", "{steps}");
    }
}

#[test]
fn the_board_goes_back_to_the_version_of_the_user_if_the_branch_does_not_move() {
    // The second edit is the same as that of the story, and belongs to the user all the same.
    for (old, new) in [("1-3: backlog", "1-3: ready"), ("1-2: ready\n1-3: backlog", "1-2: done\n1-3: ready")] {
        let project = with_board();
        let (workspace, base, commit) = with_work(&project);
        edit_line(&project, old, new);
        let seen = || (project.read("board.yaml"), project.git(&["status", "--porcelain"]));
        let before = seen();
        let request = Integrate {
            verified: None,
            workspace: "dev".into(),
            branch: main_branch(),
            expected: base.clone(),
            commit: commit.clone(),
            unchanged_checks: vec![],
            gate: LandingGate::open(),
            mergeable: MERGEABLE.map(String::from).to_vec(),
            only_looks: false,
        };
        let repository = UserRepository::open_around(&project.root()).unwrap();
        let root = project.root();
        let mut merged_edits = MergedEdits::new(&repository, &root, &workspace.record.prefix, &request);
        let changes = list_changes(&repository, &base, &commit).unwrap();
        let board_change = changes.iter().find(|change| change.path == b"board.yaml").unwrap();
        assert!(merged_edits.accept_file(board_change).unwrap());
        merged_edits.stage_new_files().unwrap();
        assert_eq!(merged_edits.write_merged_files(), Vec::<String>::new());
        assert!(project.read("board.yaml").contains("1-2: done\n1-3: ready\n"));
        merged_edits.put_back().unwrap();
        assert_eq!(seen(), before);
        // Text that the user writes in the meantime stays.
        merged_edits.stage_new_files().unwrap();
        assert_eq!(merged_edits.write_merged_files(), Vec::<String>::new());
        edit_line(&project, "# plan", "# my plan");
        merged_edits.put_back().unwrap();
        assert!(project.read("board.yaml").starts_with("# my plan\n1-1: done\n"));
        assert_eq!(project.git(&["diff", "--cached"]), "");
    }
}

#[test]
fn a_project_in_a_subdirectory_has_its_board_there() {
    let mut project =
        UserProject::with_files(&[("app/board.yaml", BOARD), ("app/a.txt", "a\n"), ("board.yaml", BOARD)]);
    project.root_name = "project/app";
    let (workspace, base, commit) = with_work(&project);
    edit_line(&project, "1-4: backlog", "1-4: ready");
    assert_eq!(project.integrate(&workspace, &base, &commit), INTEGRATED);
    assert_eq!(project.read("board.yaml"), "# plan\n1-1: done\n1-2: done\n1-3: backlog\n1-4: ready\n");
    assert_eq!(changed_lines(&project, &[]), ["-1-4: backlog", "+1-4: ready"]);
    // A board outside the project is none that the order names.
    let workspace_file = workspace.record.tree.join("board.yaml");
    write_file(&workspace_file, BOARD.replace("1-2: ready", "1-2: done"));
    let second_commit = workspace.commit("more work");
    write_file(&project.sibling("project/board.yaml"), BOARD.replace("1-4: backlog", "1-4: ready"));
    let expected = IntegrateOutcome::Waits { branch: "tribunal/loop-x1".into(), paths: vec!["board.yaml".into()] };
    assert_eq!(project.integrate(&workspace, &commit, &second_commit), expected);
}

#[test]
fn a_board_with_line_ends_of_windows_keeps_them() {
    let with_crlf = |text: &str| text.replace('\n', "\r\n");
    for is_converted in [false, true] {
        let project = UserProject::new("project");
        if is_converted {
            project.add_global_config("[core]\n\tautocrlf = true\n");
        }
        project.git(&["init", "-q", "-b", "main"]);
        project.write("board.yaml", &with_crlf(BOARD));
        project.write("a.txt", "a\n");
        project.commit_all("first");
        let (workspace, base, commit) = with_work(&project);
        edit_line(&project, "1-3: backlog", "1-3: ready");
        assert_eq!(project.integrate(&workspace, &base, &commit), INTEGRATED, "{is_converted}");
        let expected = with_crlf("# plan\n1-1: done\n1-2: done\n1-3: ready\n1-4: backlog\n");
        assert_eq!(project.read("board.yaml"), expected, "{is_converted}");
        let edits: Vec<String> =
            changed_lines(&project, &[]).iter().map(|line| line.trim_end_matches('\r').to_string()).collect();
        assert_eq!(edits, ["-1-3: backlog", "+1-3: ready"], "{is_converted}");
    }
}
