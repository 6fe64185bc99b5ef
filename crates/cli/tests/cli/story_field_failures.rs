//! Failures that other tools had in the field while they developed stories. Each test is named after what went wrong there.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, count_calls, run_git, workspaces_left},
    story_sandbox::{BOARD, STORY, session_prompt, story_sandbox, write_story_agent},
};

fn run_story(sandbox: &Sandbox) -> CommandOutput {
    sandbox.run_tribunal(&["sprint", "1.2"])
}

fn assert_done(sandbox: &Sandbox, output: &CommandOutput) {
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(run_git(sandbox, &["log", "-1", "--format=%s"]).starts_with("Story 1-2-sift: "));
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
    assert_eq!(workspaces_left(sandbox), Vec::<PathBuf>::new());
}

fn session_count(sandbox: &Sandbox) -> usize {
    count_calls(sandbox).iter().filter(|(call, _)| call.contains("develop-")).map(|(_, count)| count).sum()
}

#[test]
fn work_that_was_there_before_the_launch_is_no_result() {
    let sandbox = story_sandbox("case $n in 1) echo 'Done before.' ;; *) develop ;; esac\n");
    let ticked = sandbox.read_file(STORY).replace("- [ ]", "- [x]").replace("ready-for-dev", "review");
    sandbox.write_file(STORY, &format!("{ticked}- src/mill.sh\n"));
    commit_all(&sandbox, "Tick everything");
    let output = run_story(&sandbox);
    assert_done(&sandbox, &output);
    assert!(output.stderr.contains("nothing was changed since the work began"), "{}", output.stderr);
}

#[test]
fn a_client_that_is_missing_is_the_environment_and_charges_no_session() {
    let sandbox = story_sandbox("exit 127\n");
    let output = run_story(&sandbox);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    // The client is repaired, and the story goes on where it was.
    write_story_agent(&sandbox, "develop\n");
    let resumed = sandbox.run_tribunal(&["resume"]);
    assert_done(&sandbox, &resumed);
}

#[test]
fn a_client_that_crashes_at_launch_is_noticed_before_it_has_used_up_the_story() {
    let sandbox = story_sandbox("echo 'Segmentation fault' >&2\nexit 139\n");
    let output = run_story(&sandbox);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("failed twice, each time immediately"), "{}", output.stderr);
    // Each of the two agents was tried, and the first one once more.
    assert_eq!(session_count(&sandbox), 3, "{}", output.stderr);
    write_story_agent(&sandbox, "develop\n");
    assert_done(&sandbox, &sandbox.run_tribunal(&["resume"]));
}

#[test]
fn finished_work_counts_although_its_session_crashed() {
    let sandbox = story_sandbox("develop\nkill -9 $$\n");
    let output = run_story(&sandbox);
    assert_done(&sandbox, &output);
    assert_eq!(session_count(&sandbox), 1, "{}", output.stderr);
}

#[test]
fn what_the_user_wrote_by_hand_is_kept_before_an_agent_writes_over_it() {
    let sandbox = story_sandbox("case $n in 1) echo 'I cannot.' ;; *) develop ;; esac\n");
    let output = sandbox.run_tribunal(&["sprint", "1.2", "--set", "sprint.max_cycles=1"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let run_id = sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with("story-1-2")).unwrap();
    let by_hand = "sift() { tr -d bran; }\n";
    fs::write(workspaces_left(&sandbox).remove(0).join("src/sift.sh"), by_hand).unwrap();
    let answer = |decision: &str, choice: &str| {
        let answered = sandbox.run_tribunal(&["decisions", &format!("{run_id}.{decision}"), choice]);
        assert_eq!(answered.exit_code, Some(0), "{}", answered.stderr);
        sandbox.run_tribunal(&["resume", &run_id])
    };
    // The tasks are not ticked.
    let refused = answer("D1", "hand");
    assert_eq!(refused.exit_code, Some(3), "{}", refused.stderr);
    let questions = sandbox.run_json(&["decisions"]).to_string();
    assert!(questions.contains("your work does not complete the step"), "{questions}");
    assert_eq!(session_count(&sandbox), 1, "{}", refused.stderr);
    assert_done(&sandbox, &answer("D2", "agent"));
    assert_eq!(session_count(&sandbox), 2);
    assert_ne!(sandbox.read_file("src/sift.sh"), by_hand);
    let refs = run_git(&sandbox, &["for-each-ref", "--format=%(refname)", "refs/tribunal/work"]);
    let kept = refs.lines().map(|name| run_git(&sandbox, &["show", &format!("{name}:src/sift.sh")]));
    assert!(kept.into_iter().any(|text| text == by_hand), "{refs}");
}

#[test]
fn an_invalid_byte_of_an_agent_does_not_end_the_run() {
    let sandbox = story_sandbox("develop\nprintf 'caf\\351 \\377\\n'\n");
    assert_done(&sandbox, &run_story(&sandbox));
}

#[test]
fn a_process_in_the_background_does_not_hold_the_session() {
    let sandbox = story_sandbox("develop\nsleep 1000 &\n");
    assert_done(&sandbox, &run_story(&sandbox));
}

#[test]
fn files_that_the_project_ignores_are_there_for_the_agent() {
    let sandbox =
        story_sandbox("test -f .claude/skills/bmad-dev-story/SKILL.md && test \"$(cat .secret)\" = s3 && develop\n");
    sandbox.write_file(".gitignore", ".claude/\n.secret\n");
    sandbox.write_file(".secret", "s3\n");
    sandbox.append_setting("workspace: {seed: [.secret]}");
    run_git(&sandbox, &["rm", "-r", "-q", "--cached", ".claude"]);
    commit_all(&sandbox, "Ignore the skills");
    let output = run_story(&sandbox);
    assert_done(&sandbox, &output);
    // Nothing of it is committed.
    assert_eq!(run_git(&sandbox, &["ls-files", ".claude", ".secret"]), "");
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_does_not_fail_the_story() {
    let sandbox = story_sandbox("develop\n");
    run_git(&sandbox, &["worktree", "add", "-q", "-b", "night", "../elsewhere"]);
    let output = sandbox.run_tribunal(&["sprint", "1.2", "--branch", "night"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "-1", "--format=%s", "night"]), "Story 1-2-sift: Sift the flour\n");
    assert_eq!(run_git(&sandbox, &["-C", "../elsewhere", "status", "--porcelain"]), "");
}

#[test]
fn names_with_glob_characters_and_bytes_that_are_no_text_are_committed_as_they_are() {
    let sandbox = story_sandbox(
        "develop\necho a > 'src/[x]*.txt'\nprintf b > \"$(printf 'src/\\377.txt')\"\nprintf '%s\\n' '- src/[x]*.txt' >> $story\n",
    );
    sandbox.write_file("src/x.txt", "of the user\n");
    assert_done(&sandbox, &run_story(&sandbox));
    let committed = run_git(&sandbox, &["-c", "core.quotePath=true", "ls-files", "src"]);
    assert!(committed.contains("src/[x]*.txt") && committed.contains("src/\\377.txt"), "{committed}");
    assert_eq!(run_git(&sandbox, &["status", "--porcelain", "src/x.txt"]), "?? src/x.txt\n");
}

#[test]
fn words_of_another_language_are_not_misread() {
    let sandbox = story_sandbox("develop\n");
    let mut command = sandbox.tribunal_command(&["sprint", "1.2"]);
    command.env("LANG", "de_DE.UTF-8").env("LC_ALL", "de_DE.UTF-8").env("LANGUAGE", "de");
    let output = CommandOutput::from_output(command.output().unwrap());
    assert_done(&sandbox, &output);
}

#[test]
fn a_story_that_is_longer_than_an_argument_reaches_the_agent() {
    let sandbox = story_sandbox("develop\n");
    let story = sandbox.read_file(STORY);
    let remark = "The flour must be fine. ".repeat(8_000);
    sandbox.write_file(STORY, &story.replace("I want to sift.", &format!("I want to sift.\n\n{remark}")));
    commit_all(&sandbox, "Say more");
    assert_done(&sandbox, &run_story(&sandbox));
    assert!(session_prompt(&sandbox, "develop-1").contains(STORY));
}

#[test]
fn a_run_leaves_nothing_that_keeps_the_next_one_from_starting() {
    let sandbox = story_sandbox(
        "case $TRIBUNAL_RUN in\n*pack*) story=_bmad-output/implementation-artifacts/1-3-pack.md ;;\n*) develop; exit ;;\nesac\n\
         echo 'pack() { cat; }' > src/pack.sh\nprintf '# AC1, AC2\\n' > tests/pack_test.sh\n\
         sed -i 's/- \\[ \\]/- [x]/; s/^Status: .*/Status: review/' $story\n\
         printf '%s\\n' '- src/pack.sh' '- tests/pack_test.sh' >> $story\n",
    );
    let second_story = sandbox.read_file(STORY).replace("Story 1.2: Sift the flour", "Story 1.3: Pack it");
    sandbox.write_file("_bmad-output/implementation-artifacts/1-3-pack.md", &second_story);
    commit_all(&sandbox, "Write the next story");
    assert_done(&sandbox, &run_story(&sandbox));
    let output = sandbox.run_tribunal(&["sprint", "1.3"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(sandbox.read_file(BOARD).contains("1-3-pack: done"));
    let changed = run_git(&sandbox, &["diff", "--name-only", "HEAD^", "HEAD", "--", "src", "tests"]);
    assert_eq!(changed, "src/pack.sh\ntests/pack_test.sh\n");
}

/// A tool paid for hundreds of sessions, because finished work that a hook refuses began the step anew each time.
#[test]
fn a_commit_hook_that_always_refuses_ends_in_a_question() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file(".git/hooks/pre-commit", "#!/bin/sh\necho 'hook says no' >&2\nexit 1\n");
    let hook_path = sandbox.path_of(".git/hooks/pre-commit");
    fs::set_permissions(hook_path, fs::Permissions::from_mode(0o755)).unwrap();
    let output = sandbox.run_tribunal(&["sprint", "1.2", "--review", "off", "--set", "sprint.max_cycles=2"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("hook says no"), "{}", output.stderr);
    assert!(output.stderr.contains("finished work was refused 2 times"), "{}", output.stderr);
    assert_eq!(session_count(&sandbox), 2);
}

/// A test that sorts behind hundreds of other files was not seen.
#[test]
fn the_test_of_a_story_with_many_files_counts() {
    let sandbox = story_sandbox(
        "develop\nfor i in $(seq 300); do echo new > src/new$i.sh; echo \"- src/new$i.sh\" >> $story; done\n",
    );
    let output = sandbox.run_tribunal(&["sprint", "1.2", "--review", "off", "--set", "sprint.max_cycles=1"]);
    assert_done(&sandbox, &output);
}
