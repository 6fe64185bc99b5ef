//! `tribunal sprint --in-place`: stories in the user's own checkout, and what becomes of their files when they cannot go on.

use std::os::unix::process::ExitStatusExt;

use crate::{
    common::Sandbox,
    loop_sandbox::{commit_all, run_git},
    sprint_runs::{assert_exit, join_lines, landed_stories, sprint_run, sprint_sandbox},
    story_sandbox::{BOARD, STORY, story_sandbox, write_story_agent},
};

/// The first session of story 1-2 leaves half of the work: a changed file, a new one, and one that git ignores.
const HALF_A_STORY: &str = "case $key-$n in\n\
1-2-sift-1)\n\
  echo 'half() { cat; }' > src/half.sh\n\
  echo '# half' >> src/mill.sh\n\
  echo cached > src/half.log\n\
  echo 'I cannot.' ;;\n\
*) develop_any ;;\n\
esac\n";

fn half_done_sandbox() -> Sandbox {
    let sandbox = sprint_sandbox(HALF_A_STORY);
    sandbox.write_file(".gitignore", "*.log\n");
    commit_all(&sandbox, "Ignore logs");
    sandbox
}

/// What git says about the files on which agents work.
fn work_status(sandbox: &Sandbox) -> String {
    run_git(sandbox, &["status", "--porcelain", "--", "src", "tests", BOARD])
}

fn story_run(sandbox: &Sandbox) -> String {
    sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with("story-1-2")).unwrap()
}

/// The ref with the work of the first story.
fn work_ref(sandbox: &Sandbox) -> String {
    let refs = run_git(sandbox, &["for-each-ref", "--format=%(refname)", "refs/tribunal/work"]);
    refs.lines().find(|name| name.contains("story-1-2")).unwrap_or_else(|| panic!("{refs}")).to_string()
}

#[test]
fn a_story_that_fails_in_the_checkout_makes_room_for_the_next_one() {
    let sandbox = half_done_sandbox();
    let mill = sandbox.read_file("src/mill.sh");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "2-1", "--in-place", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell"]);
    assert_eq!(work_status(&sandbox), "");
    assert_eq!(sandbox.read_file("src/mill.sh"), mill);
    assert!(!sandbox.path_of("src/half.sh").exists());
    assert_eq!(sandbox.read_file("src/half.log"), "cached\n", "what git ignores stays");
    let parked = work_ref(&sandbox);
    assert_eq!(run_git(&sandbox, &["show", &format!("{parked}:src/half.sh")]), "half() { cat; }\n");
    // The work comes back on top of the other story, and the first one is finished.
    let decision = format!("{}.D1", story_run(&sandbox));
    assert_exit(&sandbox.run_tribunal(&["decisions", &decision, "agent"]), 0);
    assert_exit(&sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)]), 0);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell", "1-2-sift"]);
    assert_eq!(run_git(&sandbox, &["show", "HEAD:src/half.sh"]), "half() { cat; }\n");
    assert_eq!(work_status(&sandbox), "");
    let board = sandbox.read_file(BOARD);
    assert!(board.contains("1-2-sift: done") && board.contains("2-1-sell: done"), "{board}");
}

#[test]
fn a_kill_while_files_are_put_back_leaves_no_half_of_the_work() {
    for fault_point in ["before:write:mill.sh", "after:write:mill.sh", "before:write:parked", "after:write:parked"] {
        let sandbox = half_done_sandbox();
        let mill = sandbox.read_file("src/mill.sh");
        let arguments = ["sprint", "1-2", "--in-place", "--set", "sprint.max_cycles=1"];
        let output = sandbox.tribunal_command(&arguments).env("TRIBUNAL_FAULT", fault_point).output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{fault_point}: {output:?}");
        assert_exit(&sandbox.run_tribunal(&["resume", &story_run(&sandbox)]), 3);
        assert_eq!(work_status(&sandbox), "", "{fault_point}");
        assert_eq!(sandbox.read_file("src/mill.sh"), mill, "{fault_point}");
        assert_eq!(run_git(&sandbox, &["show", &format!("{}:src/half.sh", work_ref(&sandbox))]), "half() { cat; }\n");
    }
}

#[test]
fn a_skipped_story_leaves_its_work_on_a_ref() {
    let sandbox = half_done_sandbox();
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--in-place", "--set", "sprint.max_cycles=1"]), 3);
    assert_eq!(work_status(&sandbox), "");
    let run_id = story_run(&sandbox);
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{run_id}.D1"), "skip"]), 0);
    sandbox.run_tribunal(&["resume", &run_id]);
    assert_eq!(work_status(&sandbox), "");
    let parked = work_ref(&sandbox);
    assert_eq!(run_git(&sandbox, &["show", &format!("{parked}:src/half.sh")]), "half() { cat; }\n");
    assert_eq!(landed_stories(&sandbox), Vec::<String>::new());
}

#[test]
fn a_checkout_that_is_not_clean_when_a_story_begins_stops_the_sprint() {
    let sandbox = sprint_sandbox("develop_any\n");
    // The user edits something as soon as the first story has landed.
    sandbox.append_setting("notify: {command: \"echo mine > src/mine.txt\"}");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "2-1", "--in-place"]);
    assert_exit(&output, 3);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
    let all_output = join_lines(&output.stderr);
    for expected in ["your checkout has uncommitted changes (src/mine.txt);", "`git stash -u`, then resume"] {
        assert!(all_output.contains(expected), "{}", output.stderr);
    }
    assert_eq!(
        sandbox.run_json(&["decisions"]).to_string().matches("2-1-sell").count(),
        0,
        "there is nothing to answer"
    );
    commit_all(&sandbox, "Mine");
    assert_exit(&sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "2-1-sell"]);
}

#[test]
fn edits_of_the_user_keep_the_work_parked_until_they_are_out_of_the_way() {
    let sandbox = half_done_sandbox();
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--in-place", "--set", "sprint.max_cycles=1"]), 3);
    sandbox.write_file("src/mine.sh", "mine() { cat; }\n");
    let run_id = story_run(&sandbox);
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{run_id}.D1"), "agent"]), 0);
    let halted = sandbox.run_tribunal(&["resume", &run_id]);
    assert_exit(&halted, 3);
    assert!(halted.stderr.contains("in the way of the parked work: src/mine.sh"), "{}", halted.stderr);
    assert_eq!(work_status(&sandbox), "?? src/mine.sh\n");
    commit_all(&sandbox, "Mine");
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
    assert_eq!(run_git(&sandbox, &["show", "HEAD:src/mine.sh"]), "mine() { cat; }\n");
}

#[test]
fn what_an_agent_stages_in_the_checkout_does_not_keep_its_story_from_landing() {
    let sandbox =
        sprint_sandbox("echo first > src/staged.sh\ngit add src/staged.sh\ndevelop_any\necho ok > src/staged.sh\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--in-place"]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
    assert_eq!(run_git(&sandbox, &["show", "HEAD:src/staged.sh"]), "ok\n");
    assert_eq!(work_status(&sandbox), "");
}

#[test]
fn what_the_user_does_by_hand_in_the_checkout_is_the_work() {
    let sandbox = story_sandbox("echo 'half() { cat; }' > src/half.sh\necho 'I cannot.'\n");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--in-place", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    let questions = sandbox.run_json(&["decisions"]).to_string();
    assert!(questions.contains("git merge --squash"), "{questions}");
    let run_id = story_run(&sandbox);
    write_story_agent(&sandbox, "exit 1\n");
    // As the question tells the user to do it.
    run_git(&sandbox, &["merge", "-q", "--squash", &work_ref(&sandbox)]);
    run_git(&sandbox, &["reset", "-q"]);
    assert_eq!(sandbox.read_file("src/half.sh"), "half() { cat; }\n");
    let story = sandbox.read_file(STORY);
    let story = story.replace("- [ ]", "- [x]").replace("Status: ready-for-dev", "Status: review");
    sandbox.write_file(STORY, &format!("{story}- src/half.sh\n- tests/half_test.sh\n"));
    sandbox.write_file("tests/half_test.sh", "# AC1, AC2\n");
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{run_id}.D1"), "hand"]), 0);
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
    assert_eq!(work_status(&sandbox), "");
}

#[test]
fn what_an_agent_stages_in_the_checkout_is_parked_as_well() {
    let sandbox = sprint_sandbox(
        "case $key-$n in\n1-2-sift-1) echo half > src/half.sh; git mv src/mill.sh src/moved.sh; git add -A ;;\n*) develop_any ;;\nesac\n",
    );
    let output = sandbox.run_tribunal(&["sprint", "1-2", "2-1", "--in-place", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell"]);
    assert_eq!(work_status(&sandbox), "");
    assert!(sandbox.path_of("src/mill.sh").exists() && !sandbox.path_of("src/moved.sh").exists());
}

#[test]
fn a_commit_during_a_session_in_the_checkout_is_asked_about_and_the_story_lands_after_it() {
    // The agent stands for the user here: the user's git does not have the committer of agents.
    let commit =
        "echo mine > mine.txt; git add mine.txt; env -u GIT_COMMITTER_EMAIL git commit -qm 'Commit of the user'";
    let sandbox = sprint_sandbox(&format!("case $key in\n1-2-sift) {commit} ;;\nesac\ndevelop_any\n"));
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--in-place"]);
    // It may as well be that of an agent that hides, so the user is asked.
    assert_exit(&output, 3);
    let question = "\"Commit of the user\", which appeared on the branch while an agent worked in your checkout";
    assert!(join_lines(&output.stderr).contains(question), "{}", output.stderr);
    assert_eq!(landed_stories(&sandbox), Vec::<String>::new());
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{}.D1", story_run(&sandbox)), "approve"]), 0);
    assert_exit(&sandbox.run_tribunal(&["resume", &story_run(&sandbox)]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
    assert_eq!(run_git(&sandbox, &["log", "-2", "--format=%s"]).lines().last(), Some("Commit of the user"));
    assert_eq!(run_git(&sandbox, &["show", "--name-only", "--format=", "HEAD", "--", "mine.txt"]), "");
    assert_eq!(work_status(&sandbox), "");
}

/// The subjects of the commits since another one.
fn subjects_since(sandbox: &Sandbox, begun_at: &str) -> Vec<String> {
    let range = format!("{}..main", begun_at.trim());
    run_git(sandbox, &["log", "--format=%s", &range]).lines().map(String::from).collect()
}

#[test]
fn what_an_agent_commits_in_the_checkout_becomes_part_of_the_one_commit_of_its_story() {
    let commit = "git add -A; git commit -qm 'Commit of the agent'";
    let sandbox = sprint_sandbox(&format!("develop_any\n{commit}\necho '# late' >> src/mill.sh\n{commit}\n"));
    let begun_at = run_git(&sandbox, &["rev-parse", "HEAD"]);
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--in-place"]);
    assert_exit(&output, 0);
    assert_eq!(
        (subjects_since(&sandbox, &begun_at).len(), landed_stories(&sandbox)),
        (1, vec!["1-2-sift".to_string()])
    );
    assert_eq!(run_git(&sandbox, &["show", "HEAD:src/1-2-sift.sh"]), "run_1_2_sift() { cat; }\n");
    assert!(run_git(&sandbox, &["show", "HEAD:src/mill.sh"]).ends_with("# late\n"));
    assert_eq!(run_git(&sandbox, &["log", "-1", "--format=%ce"]), "e@e\n");
    assert_eq!(work_status(&sandbox), "");
    let expected = "the agent made 2 commits on main by itself; they were taken back";
    assert!(join_lines(&output.stderr).contains(expected), "{}", output.stderr);
}

#[test]
fn what_the_agent_of_a_parked_story_committed_is_parked_as_well() {
    let sandbox = sprint_sandbox(
        "case $key-$n in\n1-2-sift-1) echo half > src/half.sh; git add -A; git commit -qm Half ;;\n*) develop_any ;;\nesac\n",
    );
    let begun_at = run_git(&sandbox, &["rev-parse", "HEAD"]);
    let output = sandbox.run_tribunal(&["sprint", "1-2", "2-1", "--in-place", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    assert_eq!(
        (subjects_since(&sandbox, &begun_at).len(), landed_stories(&sandbox)),
        (1, vec!["2-1-sell".to_string()])
    );
    assert!(!sandbox.path_of("src/half.sh").exists());
    assert_eq!(run_git(&sandbox, &["show", &format!("{}:src/half.sh", work_ref(&sandbox))]), "half\n");
    assert_eq!(work_status(&sandbox), "");
}

#[test]
fn a_killed_run_takes_back_what_its_agent_committed_when_it_is_resumed() {
    let sandbox = sprint_sandbox("develop_any\ngit add -A\ngit commit -qm 'Commit of the agent'\n");
    let begun_at = run_git(&sandbox, &["rev-parse", "HEAD"]);
    let mut command = sandbox.tribunal_command(&["sprint", "1-2", "--in-place"]);
    let killed = command.env("TRIBUNAL_FAULT", "between:agent-commits").output().unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    assert_eq!(subjects_since(&sandbox, &begun_at), ["Commit of the agent"]);
    assert_exit(&sandbox.run_tribunal(&["resume", &story_run(&sandbox)]), 0);
    assert_eq!(
        (subjects_since(&sandbox, &begun_at).len(), landed_stories(&sandbox)),
        (1, vec!["1-2-sift".to_string()])
    );
    assert_eq!(work_status(&sandbox), "");
}

#[test]
fn files_that_an_agent_hides_from_git_are_parked_with_its_story() {
    let hide = "echo '*.tmp' >> .gitignore; mkdir -p out; echo new > out/cache.tmp; echo new > src/cache.tmp";
    let sandbox = sprint_sandbox(&format!("case $key-$n in\n1-2-sift-1) {hide} ;;\n*) develop_any ;;\nesac\n"));
    let status = || run_git(&sandbox, &["status", "--porcelain", "--", "src", "out", ".gitignore"]);
    let output = sandbox.run_tribunal(&["sprint", "1-2", "2-1", "--in-place", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell"]);
    assert_eq!(status(), "");
    assert!(!sandbox.path_of("out").exists() && !sandbox.path_of("src/cache.tmp").exists());
    let decision = format!("{}.D1", story_run(&sandbox));
    assert_exit(&sandbox.run_tribunal(&["decisions", &decision, "agent"]), 0);
    assert_exit(&sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)]), 0);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell", "1-2-sift"]);
    assert_eq!(run_git(&sandbox, &["show", "HEAD:.gitignore"]), "*.tmp\n");
    assert_eq!(
        (sandbox.read_file("out/cache.tmp"), sandbox.read_file("src/cache.tmp")),
        ("new\n".into(), "new\n".into())
    );
    assert_eq!(status(), "");
}
