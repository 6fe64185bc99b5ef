//! `tribunal sprint STORY` from outside: what it prints, what it refuses, what it leaves in the repository of the user.

use std::path::PathBuf;

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{count_calls, run_git, workspaces_left},
    story_sandbox::{BOARD, STORY, session_prompt, story_sandbox},
};

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

fn session_calls(sandbox: &Sandbox) -> usize {
    count_calls(sandbox).iter().filter(|(call, _)| call.contains("/session")).map(|(_, count)| count).sum()
}

/// Answers a question of the last run and resumes it.
fn answer_question(sandbox: &Sandbox, decision_id: &str, choice: &str) -> CommandOutput {
    let root = sandbox.run_json(&["runs"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["parent"].is_null())
        .and_then(|row| row["run"].as_str().map(String::from))
        .unwrap();
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
