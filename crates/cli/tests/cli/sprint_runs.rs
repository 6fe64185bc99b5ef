//! `tribunal sprint` without a story, or with several: the order of stories, what a failed one holds up, what people say meanwhile.

use std::path::PathBuf;

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, count_calls, run_git, workspaces_left},
    story_sandbox::{BOARD, STORY, story_sandbox},
};

pub(crate) const ARTIFACTS: &str = "_bmad-output/implementation-artifacts";
/// Develops the story that the task is for, with files of its own.
pub(crate) const DEVELOP_ANY: &str = "key=$(printf '%s' \"$TRIBUNAL_RUN\" | sed 's/^story-//; s/-[a-z0-9]*$//')\n\
story=_bmad-output/implementation-artifacts/$key.md\n\
develop_any() {\n\
  mkdir -p src tests\n\
  echo \"run_$key() { cat; }\" | tr - _ > src/$key.sh\n\
  printf '# AC1, AC2\\n' > tests/${key}_test.sh\n\
  sed -i 's/- \\[ \\]/- [x]/; s/^Status: .*/Status: review/' $story\n\
  printf '%s\\n' \"- src/$key.sh\" \"- tests/${key}_test.sh\" >> $story\n\
}\n";

/// A board with two epics and the files of all open stories.
pub(crate) fn sprint_sandbox(agent_script: &str) -> Sandbox {
    let sandbox = story_sandbox(&format!("{DEVELOP_ANY}{agent_script}"));
    let board = sandbox.read_file(BOARD).replace(
        "  1-3-pack: backlog\n",
        "  1-3-pack: ready-for-dev\n  epic-2: backlog\n  2-1-sell: ready-for-dev\n  2-2-bill: ready-for-dev\n",
    );
    sandbox.write_file(BOARD, &board);
    let story = sandbox.read_file(STORY);
    for (key, title) in
        [("1-3-pack", "Story 1.3: Pack it"), ("2-1-sell", "Story 2.1: Sell it"), ("2-2-bill", "Story 2.2: Bill")]
    {
        sandbox.write_file(&format!("{ARTIFACTS}/{key}.md"), &story.replace("Story 1.2: Sift the flour", title));
    }
    commit_all(&sandbox, "Plan the sprint");
    sandbox
}

pub(crate) fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

pub(crate) fn landed_stories(sandbox: &Sandbox) -> Vec<String> {
    let subjects = run_git(sandbox, &["log", "--reverse", "--format=%s"]);
    subjects.lines().filter_map(|subject| subject.strip_prefix("Story ")?.split(':').next().map(String::from)).collect()
}

pub(crate) fn sprint_run(sandbox: &Sandbox) -> String {
    sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with("sprint-")).unwrap()
}

#[test]
fn the_stories_of_the_board_land_in_its_order() {
    let sandbox = sprint_sandbox("develop_any\n");
    let output = sandbox.run_tribunal(&["sprint"]);
    assert_exit(&output, 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack", "2-1-sell", "2-2-bill"]);
    let board = sandbox.read_file(BOARD);
    assert_eq!(board.matches(": done").count(), 5, "{board}");
    assert_eq!(workspaces_left(&sandbox), Vec::<PathBuf>::new());
    assert!(output.stderr.contains("resolved: 4 stories are done"), "{}", output.stderr);
    let again = sandbox.run_tribunal(&["sprint"]);
    assert_exit(&again, 3);
    assert!(again.stderr.contains("All stories are done. Nothing was started."), "{}", again.stderr);
}

#[test]
fn a_story_that_fails_is_parked_and_holds_only_what_depends_on_it() {
    let sandbox = sprint_sandbox("case $key in 1-2-sift) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    let output = sandbox.run_tribunal(&["sprint", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell", "2-2-bill"]);
    assert!(output.stderr.contains("left out: 1-3-pack depends on 1-2-sift, which is not done"), "{}", output.stderr);
    assert!(output.stderr.contains("1 story waits for you: 1-2-sift"), "{}", output.stderr);
    // The user does it by hand, and the sprint goes on with what depended on it.
    let board = sandbox.read_file(BOARD).replace("1-2-sift: ready-for-dev", "1-2-sift: done");
    sandbox.write_file(BOARD, &board);
    commit_all(&sandbox, "Do it by hand");
    let resumed = sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)]);
    assert_exit(&resumed, 0);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell", "2-2-bill", "1-3-pack"]);
}

#[test]
fn an_answer_to_a_parked_story_continues_it() {
    let sandbox = sprint_sandbox("case $key-$n in 1-2-sift-1) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    let output = sandbox.run_tribunal(&["sprint", "--epic", "1", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    let story_run = sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with("story-1-2")).unwrap();
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{story_run}.D1"), "agent"]), 0);
    let resumed = sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)]);
    assert_exit(&resumed, 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack"]);
}

#[test]
fn a_story_at_its_own_limit_continues_without_an_answer_when_the_limit_was_raised() {
    let sandbox = sprint_sandbox("develop_any\n");
    // The first session uses more than that, so the review is not begun.
    let output = sandbox.run_tribunal(&["sprint", "--epic", "1", "--set", "sprint.story_max_tokens=10"]);
    assert_exit(&output, 3);
    let open_questions = || sandbox.run_json(&["decisions"])["decisions"].as_array().map(Vec::len);
    assert_eq!(open_questions(), Some(1), "{}", output.stderr);
    let run_id = sprint_run(&sandbox);
    let reload = |tokens: &str| {
        sandbox.run_tribunal(&["resume", &run_id, "--reload", "--set", &format!("sprint.story_max_tokens={tokens}")])
    };
    assert_exit(&reload("5"), 3);
    assert_eq!((open_questions(), landed_stories(&sandbox)), (Some(1), Vec::new()));
    let resumed = reload("1000000");
    assert_exit(&resumed, 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack"]);
    assert_eq!(open_questions(), Some(0), "{}", resumed.stderr);
}

#[test]
fn a_client_that_breaks_ends_the_sprint_and_not_every_story() {
    let sandbox = sprint_sandbox("exit 127\n");
    assert_exit(&sandbox.run_tribunal(&["sprint"]), 5);
    assert_eq!(sandbox.run_ids().iter().filter(|run_id| run_id.starts_with("story-")).count(), 1);
    assert!(count_calls(&sandbox).len() <= 4, "{:?}", count_calls(&sandbox));
}

#[test]
fn the_scope_is_limited_by_names_epics_and_numbers() {
    let sandbox = sprint_sandbox("develop_any\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--max-stories", "1"]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "2"]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "2-1-sell", "2-2-bill"]);
    let unknown = sandbox.run_tribunal(&["sprint", "--epic", "7"]);
    assert_exit(&unknown, 2);
    assert!(unknown.stderr.contains("has no epic `7`"), "{}", unknown.stderr);
}

/// The text in one line: notes are wrapped.
pub(crate) fn join_lines(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_story_that_stands_twice_on_the_board_is_left_out_with_its_lines() {
    let sandbox = sprint_sandbox("develop_any\n");
    let single = sandbox.read_file(BOARD);
    for state in ["backlog", "ready-for-dev"] {
        let board = single.replace("  2-1-sell", &format!("  1-3-pack: {state}\n  2-1-sell"));
        sandbox.write_file(BOARD, &board);
        commit_all(&sandbox, "Write a line twice");
        let lines: Vec<String> = board
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains("1-3-pack"))
            .map(|(index, _)| (index + 1).to_string())
            .collect();
        let output = sandbox.run_tribunal(&["sprint", "--dry-run"]);
        assert_exit(&output, 0);
        let expected = format!("1-3-pack: its key stands twice on the board, lines {}", lines.join(" and "));
        assert!(output.stdout.contains(&format!("left out: {expected}")), "{state}: {}", output.stdout);
        let status = sandbox.run_tribunal(&["status"]).stdout;
        assert!(join_lines(&status).contains(&expected), "{state}: {status}");
    }
    // The lines say the same now: the story is not developed all the same, and is named.
    let output = sandbox.run_tribunal(&["sprint", "--epic", "1"]);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
    let all_output = join_lines(&format!("{} {}", output.stdout, output.stderr));
    assert!(all_output.contains("1-3-pack: its key stands twice on the board"), "{all_output}");
}

#[test]
fn a_story_file_that_is_no_text_is_refused_before_agents_work_and_holds_only_what_depends_on_it() {
    let sandbox = sprint_sandbox("develop_any\n");
    std::fs::write(sandbox.path_of(STORY), b"# Story 1.2: Sift\n\nfa\xe7ade\n").unwrap();
    commit_all(&sandbox, "Save it as Latin-1");
    let unreadable = format!("{STORY} cannot be read: it is not valid UTF-8 (line 3, column 3)");
    let single = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&single, 2);
    assert!(join_lines(&single.stderr).contains(&unreadable), "{}", single.stderr);
    assert!(count_calls(&sandbox).is_empty(), "no agent was asked");
    let plan = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    let expected = format!("left out: 1-2-sift cannot be started: {unreadable}");
    assert!(join_lines(&plan.stdout).contains(&expected), "{}", plan.stdout);
    assert!(plan.stdout.contains("left out: 1-3-pack depends on 1-2-sift, which is not done"), "{}", plan.stdout);
    // An empty list is a statement: the story depends on nothing, also not on the earlier stories of its epic.
    let next_story = format!("{ARTIFACTS}/1-3-pack.md");
    sandbox.write_file(&next_story, &format!("---\ndepends_on: []\n---\n\n{}", sandbox.read_file(&next_story)));
    commit_all(&sandbox, "Depend on nothing");
    let plan = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    assert!(plan.stdout.contains("1. 1-3-pack: it is the next story that can be begun"), "{}", plan.stdout);
}

#[test]
fn a_story_whose_front_matter_cannot_be_read_is_not_begun() {
    let sandbox = sprint_sandbox("develop_any\n");
    let story = sandbox.read_file(STORY);
    for header in ["---\ndepends_on: [1-1\n---\n\n", "---\ndepends_on: [1-1]\n\n"] {
        sandbox.write_file(STORY, &format!("{header}{story}"));
        commit_all(&sandbox, "Break it");
        let output = sandbox.run_tribunal(&["sprint", "--dry-run"]);
        assert_exit(&output, 0);
        let reason = "cannot be read, so what it depends on and what it owes is not known";
        let left_out = format!("1-2-sift cannot be started: its front matter {reason}: {STORY}:");
        assert!(join_lines(&output.stdout).contains(&left_out), "{}", output.stdout);
        let expected = format!("the front matter of a story could not be read, so it is not begun: {STORY}:");
        assert!(join_lines(&output.stderr).contains(&expected), "{}", output.stderr);
        let status = sandbox.run_tribunal(&["status"]).stdout;
        assert!(join_lines(&status).contains(&format!("note: {expected}")), "{status}");
        let named = sandbox.run_tribunal(&["sprint", "1-2"]);
        assert_exit(&named, 2);
        let refusal = format!("the front matter of story 1-2-sift {reason}: {STORY}:");
        assert!(join_lines(&named.stderr).contains(&refusal), "{}", named.stderr);
    }
    assert_eq!(landed_stories(&sandbox), [""; 0]);
}

#[test]
fn stories_that_depend_on_each_other_are_named_by_status() {
    let sandbox = sprint_sandbox("develop_any\n");
    for (key, needed) in [("1-2-sift", "1-3-pack"), ("1-3-pack", "1-2-sift"), ("2-2-bill", "9-9")] {
        let story_path = format!("{ARTIFACTS}/{key}.md");
        let story = sandbox.read_file(&story_path);
        sandbox.write_file(&story_path, &format!("---\ndepends_on: [{needed}]\n---\n\n{story}"));
    }
    let status = join_lines(&sandbox.run_tribunal(&["status"]).stdout);
    for expected in [
        "`tribunal sprint` would begin with 2-1-sell",
        "1-2-sift depends on 1-3-pack, which depends on 1-2-sift: neither can be begun",
        "2-2-bill says that it depends on `9-9`, which is not on the board",
    ] {
        assert!(status.contains(expected), "{expected}: {status}");
    }
}

#[test]
fn work_that_landed_on_another_branch_is_named_before_its_story_is_taken_again() {
    let sandbox = sprint_sandbox("develop_any\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--max-stories", "1", "--branch", "night"]), 0);
    let story_run = sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with("story-1-2")).unwrap();
    let expected = format!(
        "note: 1-2-sift was done by run {story_run} on the branch `night`; it is taken again, since it is not on main. To take that \
         work over instead: `git merge night`"
    );
    let status = join_lines(&sandbox.run_tribunal(&["status"]).stdout);
    let status_note = format!(
        "note: 1-2-sift was done by run {story_run} on the branch `night`; to take that work over: `git merge night`"
    );
    assert!(status.contains(&status_note), "{status}");
    let output = sandbox.run_tribunal(&["sprint", "--max-stories", "1"]);
    assert_exit(&output, 0);
    assert!(join_lines(&output.stderr).contains(&expected), "{}", output.stderr);
    let other_branch = sandbox.run_tribunal(&["sprint", "--dry-run", "--branch", "night"]);
    assert!(!join_lines(&other_branch.stderr).contains("is taken again"), "{}", other_branch.stderr);
}

/// A sprint of two stories that wait for the user.
fn waiting_sprint() -> Sandbox {
    let sandbox = sprint_sandbox("echo 'I cannot.'\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "2-1", "--set", "sprint.max_cycles=1"]), 3);
    sandbox
}

fn asking_runs(sandbox: &Sandbox) -> Vec<String> {
    let document = sandbox.run_json(&["decisions"]);
    let decisions = document["decisions"].as_array().cloned().unwrap_or_default();
    decisions.iter().filter_map(|decision| decision["run"].as_str().map(String::from)).collect()
}

#[test]
fn a_waiting_story_that_the_user_has_done_leaves_no_question_behind() {
    let sandbox = waiting_sprint();
    let asking = asking_runs(&sandbox);
    assert_eq!(asking.len(), 2, "{asking:?}");
    let story_run = asking.iter().find(|run_id| run_id.starts_with("story-1-2")).unwrap();
    let finish = |key: &str| {
        let board = sandbox.read_file(BOARD).replace(&format!("{key}: ready-for-dev"), &format!("{key}: done"));
        sandbox.write_file(BOARD, &board);
        commit_all(&sandbox, "Done by hand");
        sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)])
    };
    // The sprint still waits for the other story.
    assert_exit(&finish("1-2-sift"), 3);
    let still_asking = asking_runs(&sandbox);
    assert!(still_asking.len() == 1 && still_asking[0].starts_with("story-2-1"), "{still_asking:?}");
    // While the sprint has not ended, its stories belong to it.
    assert_exit(&sandbox.run_tribunal(&["discard", story_run]), 2);
    assert_exit(&finish("2-1-sell"), 0);
    assert_eq!(sandbox.run_tribunal(&["decisions"]).stdout, "nothing is waiting for you\n");
    let waiting = sandbox.run_tribunal(&["runs", "--waiting", "--ids"]).stdout;
    assert!(!waiting.contains("story-"), "{waiting}");
    let refused = sandbox.run_tribunal(&["decisions", &format!("{story_run}.D1"), "agent"]);
    assert_exit(&refused, 2);
    assert!(refused.stderr.contains("was withdrawn"), "{}", refused.stderr);
    assert_exit(&sandbox.run_tribunal(&["discard", story_run]), 0);
    assert!(!sandbox.run_ids().contains(story_run));
}

#[test]
fn a_waiting_story_that_the_user_skips_leaves_no_question_behind() {
    let sandbox = waiting_sprint();
    let sprint_run = sprint_run(&sandbox);
    assert_exit(&sandbox.run_tribunal(&["say", &sprint_run, "skip 1-2"]), 0);
    assert_exit(&sandbox.run_tribunal(&["resume", &sprint_run]), 3);
    let still_asking = asking_runs(&sandbox);
    assert!(still_asking.len() == 1 && still_asking[0].starts_with("story-2-1"), "{still_asking:?}");
}

#[test]
fn a_dry_run_shows_the_whole_plan_and_writes_nothing() {
    let sandbox = sprint_sandbox("develop_any\n");
    let output = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    assert_exit(&output, 0);
    let plan_lines: Vec<&str> = output.stdout.lines().take_while(|line| !line.starts_with("would")).collect();
    insta::assert_snapshot!(plan_lines.join("\n"), @r"
    1. 1-2-sift: it is the first open story of the board
    2. 1-3-pack: it follows in the order of the board
    3. 2-1-sell: it follows in the order of the board
    4. 2-2-bill: it follows in the order of the board
    ");
    assert!(!sandbox.path_of(".tribunal").exists());
}
