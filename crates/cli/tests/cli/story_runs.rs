//! `tribunal sprint STORY` from outside: what it prints, what it refuses, what it leaves in the repository of the user.

use std::path::PathBuf;

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, count_calls, run_git, workspaces_left},
    sprint_runs::join_lines,
    story_sandbox::{
        BOARD, CRITICAL_REVIEW, ENDLESS_REVIEW, STORY, session_prompt, story_sandbox, write_review, write_story_agent,
    },
};

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

fn session_calls(sandbox: &Sandbox) -> usize {
    count_calls(sandbox).iter().filter(|(call, _)| call.contains("/session")).map(|(_, count)| count).sum()
}

/// Returns the run of the story itself.
fn root_of(sandbox: &Sandbox) -> String {
    let document = sandbox.run_json(&["runs"]);
    let root = document["runs"].as_array().unwrap().iter().find(|row| row["parent"].is_null()).unwrap();
    root["run"].as_str().unwrap().to_string()
}

/// Answers a question of the last run and resumes it.
fn answer_question(sandbox: &Sandbox, decision_id: &str, choice: &str) -> CommandOutput {
    let root = root_of(sandbox);
    let answered = sandbox.run_tribunal(&["decisions", &format!("{root}.{decision_id}"), choice]);
    assert_exit(&answered, 0);
    sandbox.run_tribunal(&["resume", &root])
}

#[test]
fn an_honest_story_becomes_one_commit_and_the_board_says_done() {
    let sandbox = story_sandbox("develop\n");
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 0);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]), "Story 1-2-sift: Sift the flour\nBegin\n");
    let changed = run_git(&sandbox, &["diff", "--name-only", "HEAD^", "HEAD"]);
    assert_eq!(changed, format!("{STORY}\n{BOARD}\nsrc/sift.sh\ntests/sift_test.sh\n"));
    let board = sandbox.read_file(BOARD);
    assert!(board.contains("  1-2-sift: done\n") && board.starts_with("# keep this comment\n"), "{board}");
    assert!(sandbox.read_file(STORY).contains("Status: done"));
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
    assert_eq!(workspaces_left(&sandbox), Vec::<PathBuf>::new());
    let prompt = session_prompt(&sandbox, "develop-1");
    assert!(prompt.contains("Run the BMAD workflow dev-story.") && prompt.contains(STORY), "{prompt}");
    let verified = sandbox.run_json(&["verify", "1.2"]);
    for (field, expected) in
        [("verified", "true"), ("done", "true"), ("sprint_status", "\"done\""), ("story_file_status", "\"done\"")]
    {
        assert_eq!(verified[field].to_string(), expected, "{verified}");
    }
}

/// Runs a story whose first session lies, and returns what is said against it.
fn refused_session(first_session: &str) -> String {
    let sandbox = story_sandbox(&format!("case $n in\n1) {first_session} ;;\n*) develop ;;\nesac\n"));
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 0);
    assert_eq!(session_calls(&sandbox), 2, "{}", output.stderr);
    let lines = output.stderr.lines().skip_while(|line| !line.contains("session 1")).skip(1);
    lines.take_while(|line| line.starts_with("    ")).map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn an_agent_that_says_done_and_did_nothing_is_not_believed() {
    insta::assert_snapshot!(refused_session("echo 'Everything is done and tested.'"), @"
    - nothing was changed since the work began, apart from the story's own files
    - 2 tasks not ticked, the first: Write sift (AC: 1, 2)
    - no test and no reason for AC1, AC2
    - the story file says `ready-for-dev` (expected review)
    the agent said: Everything is done and tested.
    ");
}

#[test]
fn ticks_without_code_are_not_work() {
    insta::assert_snapshot!(
        refused_session("sed -i 's/- \\[ \\]/- [x]/; s/^Status: .*/Status: review/' $story; echo '- src/sift.sh' >> $story"),
        @"
    - nothing was changed since the work began, apart from the story's own files
    - the file list names files that do not exist: src/sift.sh
    - no test and no reason for AC1, AC2
    "
    );
}

#[test]
fn an_agent_that_moves_the_board_and_other_stories_gains_nothing() {
    let sandbox = story_sandbox(
        "develop\nsed -i 's/1-2-sift: .*/1-2-sift: done/; s/1-3-pack: .*/1-3-pack: done/' _bmad-output/*/sprint-status.yaml\n",
    );
    let output = sandbox.run_tribunal(&["sprint", "1-2-sift"]);
    assert_exit(&output, 0);
    assert!(output.stderr.contains("the agent moved the board to done; that does not count"), "{}", output.stderr);
    let board = sandbox.read_file(BOARD);
    assert!(board.contains("1-2-sift: done") && board.contains("1-3-pack: backlog"), "{board}");
}

#[test]
fn a_changed_test_command_waits_for_the_user() {
    let sandbox = story_sandbox("develop\necho 'broken' >> src/sift.sh\necho true > check.sh\n");
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 3);
    assert!(output.stderr.contains("the work changes check.sh"), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]), "Begin\n");
    let resumed = answer_question(&sandbox, "D1", "keep");
    assert_exit(&resumed, 0);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]), "Begin\n");
    assert!(resumed.stderr.contains("main was left alone"), "{}", resumed.stderr);
}

#[test]
fn a_critical_finding_is_fixed_in_the_workspace_and_the_rest_is_left_as_follow_ups() {
    let sandbox = story_sandbox("develop\n");
    write_review(&sandbox, CRITICAL_REVIEW);
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 0);
    assert_eq!(sandbox.read_file("src/sift.sh"), "sift() { tr -d bran; }\n");
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]), "Story 1-2-sift: Sift the flour\nBegin\n");
    let story = sandbox.read_file(STORY);
    assert!(story.contains("- [ ] [Review][Patch] the name sift is vague [src/sift.sh:1]"), "{story}");
    let ledger = sandbox.read_file("_bmad-output/implementation-artifacts/deferred-work.md");
    assert!(ledger.contains("summary: the name sift is vague"), "{ledger}");
    let document = sandbox.run_json(&["runs"]);
    let child = document["runs"].as_array().unwrap().iter().find(|row| !row["parent"].is_null()).unwrap();
    let undo = sandbox.run_tribunal(&["undo", child["run"].as_str().unwrap()]);
    assert!(undo.stderr.contains("undo the whole story: `git revert"), "{}", undo.stderr);
    let root = root_of(&sandbox);
    let diff = sandbox.run_tribunal(&["diff", &root, "--stat"]);
    assert!(diff.stdout.contains("src/sift.sh: 1 line added, 0 removed"), "{}", diff.stdout);
    assert_exit(&diff, 0);
}

#[test]
fn a_review_that_never_converges_ends_in_a_question_and_the_work_is_kept() {
    let sandbox = story_sandbox("develop\n");
    write_review(&sandbox, ENDLESS_REVIEW);
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 3);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]), "Begin\n");
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: ready-for-dev"));
    assert_eq!(workspaces_left(&sandbox).len(), 1);
    assert!(output.stderr.contains("1 critical finding open"), "{}", output.stderr);
    assert!(output.stderr.contains("waits for you"), "{}", output.stderr);
    assert_eq!(sandbox.run_json(&["decisions"])["decisions"].as_array().map(Vec::len), Some(1));
    let again = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&again, 3);
    assert!(again.stderr.contains("works on 1-2-sift already"), "{}", again.stderr);
}

#[test]
fn a_story_file_that_is_missing_is_written_first() {
    let sandbox = story_sandbox(
        "case $step in\ncreate-*) sed 's/Story 1.2: Sift the flour/Story 1.3: Pack it/' $story | \
         sed 's/- \\[x\\]/- [ ]/; s/^Status: .*/Status: ready-for-dev/' > _bmad-output/implementation-artifacts/1-3-pack.md ;;\n\
         *) story=_bmad-output/implementation-artifacts/1-3-pack.md; develop ;;\nesac\n",
    );
    let output = sandbox.run_tribunal(&["sprint", "1.3"]);
    assert_exit(&output, 0);
    assert_eq!(run_git(&sandbox, &["log", "-1", "--format=%s"]), "Story 1-3-pack: pack\n");
    assert!(session_prompt(&sandbox, "create-1").contains("create-story"));
    let board = sandbox.read_file(BOARD);
    assert!(board.contains("1-3-pack: done") && board.contains("1-2-sift: ready-for-dev"), "{board}");
}

#[test]
fn artifacts_that_git_ignores_are_written_in_the_checkout_after_the_commit() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file(".gitignore", "_bmad-output/\n");
    run_git(&sandbox, &["rm", "-r", "-q", "--cached", "_bmad-output"]);
    commit_all(&sandbox, "Ignore the artifacts");
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 0);
    let changed = run_git(&sandbox, &["diff", "--name-only", "HEAD^", "HEAD"]);
    assert_eq!(changed, "src/sift.sh\ntests/sift_test.sh\n");
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
    let story = sandbox.read_file(STORY);
    assert!(story.contains("Status: done") && story.contains("- [x] Write sift"), "{story}");
}

#[test]
fn uncommitted_work_of_the_user_stays() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file("dirty.txt", "committed\n");
    sandbox.write_file("stashed.txt", "committed\n");
    commit_all(&sandbox, "Add two files");
    sandbox.write_file("stashed.txt", "for later\n");
    run_git(&sandbox, &["stash", "push", "-q", "stashed.txt"]);
    sandbox.write_file("dirty.txt", "of the user\n");
    sandbox.write_file("new.txt", "of the user\n");
    let stash = run_git(&sandbox, &["stash", "list"]);
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 0);
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), " M dirty.txt\n?? new.txt\n");
    assert_eq!(sandbox.read_file("dirty.txt"), "of the user\n");
    assert_eq!(run_git(&sandbox, &["stash", "list"]), stash);
}

#[test]
fn somebody_who_moves_another_story_on_the_branch_meanwhile_is_not_overruled() {
    let sandbox = story_sandbox("");
    let meanwhile = format!(
        "develop\ncd '{}'\nsed -i 's/1-3-pack: backlog/1-3-pack: ready-for-dev/' {BOARD}\ngit commit -q -a -m Meanwhile\n",
        sandbox.root_dir().display()
    );
    write_story_agent(&sandbox, &meanwhile);
    // The agent could have made that commit, so the user is asked first.
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 3);
    let resumed = answer_question(&sandbox, "D1", "keep");
    assert_exit(&resumed, 0);
    let subjects = run_git(&sandbox, &["log", "--format=%s"]);
    assert_eq!(subjects, "Story 1-2-sift: Sift the flour\nMeanwhile\nBegin\n");
    let board_change = run_git(&sandbox, &["diff", "-U0", "HEAD^", "HEAD", "--", BOARD]);
    let changed_lines: Vec<&str> = board_change.lines().skip(5).collect();
    assert_eq!(changed_lines, ["-  1-2-sift: ready-for-dev", "+  1-2-sift: done"], "{board_change}");
    assert!(sandbox.read_file(BOARD).contains("1-3-pack: ready-for-dev"));
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
}

#[test]
fn a_conflict_with_the_branch_shows_both_sides_and_can_be_solved_by_hand() {
    let sandbox = story_sandbox("");
    let meanwhile = format!(
        "develop\ncd '{}'\necho 'sift() {{ cat; }}' > src/sift.sh\ngit add src\ngit commit -q -m Meanwhile\n",
        sandbox.root_dir().display()
    );
    write_story_agent(&sandbox, &meanwhile);
    // The agent could have made that commit, so the user is asked first.
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 3);
    let output = answer_question(&sandbox, "D1", "keep");
    assert_exit(&output, 3);
    for expected in [
        "the work of the story conflicts with it in src/sift.sh",
        r#"src/sift.sh:1: main has "sift() { cat; }\n", and the work has "sift() { tr -d b; }\n"."#,
        "The work is in ",
    ] {
        assert!(output.stderr.contains(expected), "{expected}: {}", output.stderr);
    }
    let question = sandbox.run_tribunal(&["decisions", &format!("{}.D2", root_of(&sandbox))]).stdout;
    let (_, after_command) = question.split_once("run `git merge ").unwrap();
    let (commit, _) = after_command.split_once('`').unwrap();
    // The solution is neither of the two sides, so a rebase would conflict with it as well.
    run_git(&sandbox, &["merge", "-q", "--no-edit", "-X", "theirs", commit]);
    let solution = "sift() { tr -d b | cat; }\n";
    sandbox.write_file("src/sift.sh", solution);
    run_git(&sandbox, &["commit", "-q", "-a", "--amend", "--no-edit"]);
    assert_exit(&answer_question(&sandbox, "D2", "hand"), 0);
    assert_eq!(sandbox.read_file("src/sift.sh"), solution);
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
    let subjects = run_git(&sandbox, &["log", "--first-parent", "--format=%s", "-1"]);
    assert_eq!(subjects, "Story 1-2-sift: Sift the flour\n");
    assert_eq!(run_git(&sandbox, &["diff", "--name-only", "HEAD^", "HEAD"]), format!("{BOARD}\n"));
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
}

/// A story during whose first session a commit was made with which it conflicts. Returns the commit that the question names.
fn conflicting_story(later_session: &str) -> (Sandbox, String) {
    let sandbox = story_sandbox("");
    let agent_script = format!(
        "case $n in\n1) develop\ncd '{}'\necho 'sift() {{ cat; }}' > src/sift.sh\ngit add src\ngit commit -q -m Meanwhile ;;\n\
         *) {later_session} ;;\nesac\n",
        sandbox.root_dir().display()
    );
    write_story_agent(&sandbox, &agent_script);
    // The agent could have made that commit, so the user is asked first.
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 3);
    assert_exit(&answer_question(&sandbox, "D1", "keep"), 3);
    let question = sandbox.run_tribunal(&["decisions", &format!("{}.D2", root_of(&sandbox))]).stdout;
    let (_, after_command) = question.split_once("run `git merge ").unwrap();
    let commit = after_command.split_once('`').unwrap().0.to_string();
    (sandbox, commit)
}

#[test]
fn a_merge_by_hand_that_drops_the_work_is_not_believed() {
    let (sandbox, commit) = conflicting_story("true");
    run_git(&sandbox, &["merge", "-q", "--no-edit", "-s", "ours", &commit]);
    let output = answer_question(&sandbox, "D2", "hand");
    assert_exit(&output, 3);
    let said = join_lines(&output.stderr);
    let expected = "main has the work of the story in its history, but none of its changes of";
    assert!(said.contains(expected) && said.contains("take them with `git cherry-pick "), "{said}");
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: ready-for-dev"));
    run_git(&sandbox, &["cherry-pick", "-X", "theirs", &commit]);
    assert_exit(&answer_question(&sandbox, "D3", "hand"), 0);
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
    assert_eq!(sandbox.read_file("src/sift.sh"), "sift() { tr -d b; }\n");
}

#[test]
fn a_merge_by_hand_that_keeps_only_the_story_file_is_not_believed() {
    let (sandbox, commit) = conflicting_story("true");
    run_git(&sandbox, &["merge", "-q", "--no-edit", "-X", "ours", &commit]);
    run_git(&sandbox, &["rm", "-q", "-f", "tests/sift_test.sh"]);
    run_git(&sandbox, &["commit", "-q", "--amend", "--no-edit"]);
    let output = answer_question(&sandbox, "D2", "hand");
    assert_exit(&output, 3);
    let said = join_lines(&output.stderr);
    for expected in [
        "your merge does not have all of the work:",
        "the file list names files that do not exist: tests/sift_test.sh",
        "no test and no reason for AC1",
        "repair that with a commit on main",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: ready-for-dev"));
    // To say so once more changes nothing, and no agent is started.
    let output = answer_question(&sandbox, "D3", "hand");
    assert_exit(&output, 3);
    assert!(join_lines(&output.stderr).contains("your merge does not have all of the work:"), "{}", output.stderr);
    assert_eq!(session_calls(&sandbox), 1);
    run_git(&sandbox, &["checkout", "-q", &commit, "--", "src", "tests"]);
    run_git(&sandbox, &["commit", "-q", "-m", "Take it after all"]);
    assert_exit(&answer_question(&sandbox, "D4", "hand"), 0);
    assert_eq!(session_calls(&sandbox), 1);
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
    assert_eq!(sandbox.read_file("src/sift.sh"), "sift() { tr -d b; }\n");
}

#[test]
fn a_squashed_merge_by_hand_is_found_on_the_branch() {
    let (sandbox, commit) = conflicting_story("true");
    run_git(&sandbox, &["merge", "-q", "--squash", "-X", "theirs", &commit]);
    let solution = "sift() { tr -d b | cat; }\n";
    sandbox.write_file("src/sift.sh", solution);
    run_git(&sandbox, &["commit", "-q", "-a", "-m", "Squashed"]);
    assert_exit(&answer_question(&sandbox, "D2", "hand"), 0);
    assert_eq!(sandbox.read_file("src/sift.sh"), solution);
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
    assert_eq!(run_git(&sandbox, &["diff", "--name-only", "HEAD^", "HEAD"]), format!("{BOARD}\n"));
}

#[test]
fn work_that_was_merged_by_hand_still_counts_when_a_check_fails_on_the_merge() {
    let (sandbox, commit) = conflicting_story("sed -i 's/ # broken//' src/sift.sh");
    run_git(&sandbox, &["merge", "-q", "--no-edit", "-X", "theirs", &commit]);
    sandbox.write_file("src/sift.sh", "sift() { tr -d b | cat; } # broken\n");
    run_git(&sandbox, &["commit", "-q", "-a", "--amend", "--no-edit"]);
    let output = answer_question(&sandbox, "D2", "hand");
    assert_exit(&output, 0);
    // The tests came with the merge, and the session had to repair nothing but the check.
    assert_eq!(session_calls(&sandbox), 2, "{}", output.stderr);
    assert_eq!(sandbox.read_file("src/sift.sh"), "sift() { tr -d b | cat; }\n");
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
}

#[test]
fn a_story_whose_own_branch_was_merged_waits_for_nothing() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file("src/sift.sh", "of the user\n");
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 3);
    let run_id = root_of(&sandbox);
    let find_states = || {
        let rows = sandbox.run_json(&["runs"])["runs"].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["run"] == run_id.as_str()).unwrap();
        let status = sandbox.run_json(&["status", &run_id]);
        let report = sandbox.run_json(&["report", &run_id]);
        [&row["state"], &status["runs"][0]["state"], &report["state"]].map(|state| state.as_str().unwrap().to_string())
    };
    assert_eq!(find_states(), ["waiting", "waiting", "waiting"], "{}", output.stderr);
    std::fs::remove_file(sandbox.path_of("src/sift.sh")).unwrap();
    run_git(&sandbox, &["merge", "-q", "--no-edit", &format!("tribunal/{run_id}")]);
    assert_eq!(find_states(), ["resolved", "resolved", "resolved"]);
    let waiting = sandbox.run_json(&["runs", "--waiting"]);
    assert_eq!(waiting["runs"].as_array().map(Vec::len), Some(0), "{waiting}");
    let shown = join_lines(&sandbox.run_tribunal(&["status", &run_id]).stdout);
    assert!(shown.contains("the work that waited on a branch of its own is merged"), "{shown}");
}

#[test]
fn what_cannot_be_developed_is_refused_before_anything_starts() {
    let sandbox = story_sandbox("develop\n");
    for (story, expected) in [
        ("1.1", "error: 1-1-grind is done already"),
        ("7.7", "error: `7.7` not found in"),
        ("epic-1", "error: `epic-1` is not a story"),
        ("1.3..1.2", "error: 1-3-pack comes after 1-2-sift on the board"),
    ] {
        let output = sandbox.run_tribunal(&["sprint", story]);
        assert!(output.stderr.contains(expected), "{story}: {}", output.stderr);
        assert!(output.exit_code == Some(2) || output.exit_code == Some(3), "{output:?}");
    }
    sandbox.write_file(STORY, &sandbox.read_file(STORY).replace("As a miller", "As the miller"));
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 2);
    assert!(output.stderr.contains(&format!("{STORY} is not committed")), "{}", output.stderr);
    assert!(!sandbox.path_of(".tribunal").exists() || sandbox.run_ids().is_empty());
}

#[test]
fn a_plan_that_is_not_committed_is_committed_if_the_user_agrees() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file(STORY, &sandbox.read_file(STORY).replace("As a miller", "As the miller"));
    sandbox.write_file("_bmad-output/planning-artifacts/prd.md", "# Flour\n");
    sandbox.write_file("staged.txt", "of the user\n");
    run_git(&sandbox, &["add", "staged.txt"]);
    let output = sandbox.run_tribunal(&["sprint", "1.2", "--yes"]);
    assert_exit(&output, 0);
    assert!(output.stderr.contains("note: committed as \"Update the plan\": "), "{}", output.stderr);
    let subjects = run_git(&sandbox, &["log", "--format=%s"]);
    assert_eq!(subjects, "Story 1-2-sift: Sift the flour\nUpdate the plan\nBegin\n");
    let committed = run_git(&sandbox, &["diff", "--name-only", "HEAD~2", "HEAD~1"]);
    assert_eq!(committed, format!("{STORY}\n_bmad-output/planning-artifacts/prd.md\n"));
    // What else the user has staged stays staged.
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "A  staged.txt\n");
}

#[test]
fn a_dry_run_prints_the_commands_and_writes_nothing() {
    let sandbox = story_sandbox("develop\n");
    let output = sandbox.run_tribunal(&["sprint", "1.2..1.3", "--dry-run"]);
    assert_exit(&output, 0);
    let second_plan = output.stdout.split("would develop").nth(2).unwrap();
    insta::assert_snapshot!(second_plan.replace(". First", ".\n  First").replace(". _bmad", ".\n  _bmad"), @"
     1-3-pack (pack) (dry run, nothing was started)
      board:    _bmad-output/implementation-artifacts/sprint-status.yaml (backlog)
      story:    none yet
      create:   worker, small model
                Run the BMAD workflow create-story.
      First read all of .claude/skills/bmad-create-story/SKILL.md, then do exactly what it says. 1-3-pack
      develop:  worker, small model
                Run the BMAD workflow dev-story.
      First read all of .claude/skills/bmad-dev-story/SKILL.md, then do exactly what it says.
      _bmad-output/implementation-artifacts/1-3-pack.md
      review:   panel, at most 5 rounds
      check:    sh check.sh
      result:   one commit on main (clone)
      limits:   5 sessions a step, 5 failures, 240 min, $10.00 or 2000000 tokens
    ");
    assert!(!sandbox.path_of(".tribunal").exists());
}

#[test]
fn verify_says_what_is_missing() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file(STORY, &sandbox.read_file(STORY).replace("- [ ]", "- [x]").replace("ready-for-dev", "done"));
    // The checks came with the project.
    let untrusted = sandbox.run_tribunal(&["verify", "1.2", "--base", "HEAD"]);
    assert_exit(&untrusted, 2);
    assert!(untrusted.stderr.contains("or leave the checks out: `--skip-checks`"), "{}", untrusted.stderr);
    let output = sandbox.run_tribunal(&["verify", "1.2", "--base", "HEAD", "--skip-checks"]);
    assert_exit(&output, 3);
    insta::assert_snapshot!(output.stdout.lines().filter(|line| !line.contains("changes")).collect::<Vec<_>>().join("\n"), @"
    1-2-sift: not verified
      board       ready-for-dev
      story file  done
      ✗ nothing was changed since the work began, apart from the story's own files
      ✗ tasks are ticked, but the file list is empty
      ✗ no test and no reason for AC1, AC2
      ! no checks ran
    ");
    assert_exit(&sandbox.run_tribunal(&["verify", "1.2"]), 2);
}
