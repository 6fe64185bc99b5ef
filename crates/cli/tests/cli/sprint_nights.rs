//! What a sprint meets in a night: stories that owe something, deferred work, retrospectives, other runs, and what people say.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use tribunal_engine::ids::Hash;
use tribunal_supervise::ProcessIdentity;

use crate::{
    common::Sandbox,
    headless_loops::make_pipe,
    loop_sandbox::{commit_all, run_git},
    sprint_runs::{ARTIFACTS, DEVELOP_ANY, assert_exit, join_lines, landed_stories, sprint_run, sprint_sandbox},
    story_sandbox::{BOARD, STORY, session_prompt, write_story_agent},
};

fn story_run(sandbox: &Sandbox, story: &str) -> String {
    let name_start = format!("story-{story}");
    sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with(&name_start)).unwrap()
}

#[test]
fn a_story_that_owes_something_lands_and_is_done_after_the_answer() {
    let sandbox = sprint_sandbox(
        "develop_any\ncase $key in 1-2-sift) printf '\\n## Operator Actions\\n\\n- [ ] Buy the domain\\n' >> $story ;; esac\n",
    );
    let output = sandbox.run_tribunal(&["sprint"]);
    assert_exit(&output, 3);
    // The story has landed, is not done, and holds what depends on it.
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "2-1-sell", "2-2-bill"]);
    let board = sandbox.read_file(BOARD);
    assert!(board.contains("1-2-sift: review"), "{board}");
    assert!(output.stderr.contains("it waits for what only you can do: Buy the domain"), "{}", output.stderr);
    assert!(output.stderr.contains("left out: 1-3-pack depends on 1-2-sift, which is not done"), "{}", output.stderr);
    let report = sandbox.run_tribunal(&["report"]);
    assert_exit(&report, 3);
    assert!(report.stdout.contains("Buy the domain"), "{}", report.stdout);
    let decision = format!("{}.D1", story_run(&sandbox, "1-2"));
    assert_exit(&sandbox.run_tribunal(&["decisions", &decision, "done"]), 0);
    let resumed = sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)]);
    assert_exit(&resumed, 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "2-1-sell", "2-2-bill", "1-2-sift", "1-3-pack"]);
    let board = sandbox.read_file(BOARD);
    assert_eq!(board.matches(": done").count(), 5, "{board}");
    let story = sandbox.read_file(STORY);
    assert!(story.contains("## Operator Confirmation\n\n- [x] Buy the domain (confirmed "), "{story}");
    assert!(story.contains("Status: done"), "{story}");
    let changed = run_git(&sandbox, &["show", "--format=%s", "--name-only", "HEAD~1"]);
    assert_eq!(
        changed.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        ["Story 1-2-sift: Sift the flour (confirmed)", STORY, BOARD],
        "the confirmation changes nothing but the story and the board"
    );
}

#[test]
fn a_branch_that_is_gone_when_the_user_confirms_can_be_put_back() {
    let sandbox =
        sprint_sandbox("develop_any\nprintf '\\n## Operator Actions\\n\\n- [ ] Buy the domain\\n' >> $story\n");
    run_git(&sandbox, &["branch", "night"]);
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--branch", "night"]), 3);
    let commit = run_git(&sandbox, &["rev-parse", "--short=10", "night"]).trim().to_string();
    run_git(&sandbox, &["merge", "night"]);
    run_git(&sandbox, &["branch", "-d", "night"]);
    let run_id = story_run(&sandbox, "1-2");
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{run_id}.D1"), "done"]), 0);
    let output = sandbox.run_tribunal(&["resume", &run_id]);
    assert_exit(&output, 3);
    let expected = format!("the branch `night` is gone; put it back with `git branch night {commit}`, then resume");
    assert!(join_lines(&output.stderr).contains(&expected), "{}", output.stderr);
    run_git(&sandbox, &["branch", "night", &commit]);
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 0);
    assert!(run_git(&sandbox, &["log", "-1", "--format=%s", "night"]).contains("(confirmed)"));
}

/// A sprint whose first story waits on a branch of its own, and that branch.
fn sprint_with_own_branch() -> (Sandbox, String) {
    let sandbox = sprint_sandbox("develop_any\n");
    sandbox.write_file("src/1-2-sift.sh", "by the user\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--max-stories", "1"]), 3);
    let branch = format!("tribunal/{}", story_run(&sandbox, "1-2"));
    for command in ["status", "report"] {
        let output = sandbox.run_tribunal(&[command, &sprint_run(&sandbox)]).stdout;
        assert!(join_lines(&output).contains(&format!("next: git merge {branch}")), "{output}");
    }
    std::fs::remove_file(sandbox.path_of("src/1-2-sift.sh")).unwrap();
    (sandbox, branch)
}

#[test]
fn status_and_report_know_that_a_branch_of_its_own_is_merged() {
    let (sandbox, branch) = sprint_with_own_branch();
    run_git(&sandbox, &["merge", &branch]);
    for command in ["status", "report"] {
        let output = sandbox.run_tribunal(&[command, &sprint_run(&sandbox)]).stdout;
        assert!(!output.contains("git merge") && !output.contains("1 waiting"), "{output}");
    }
}

#[test]
fn a_branch_that_was_squashed_and_deleted_is_not_offered() {
    let (sandbox, branch) = sprint_with_own_branch();
    run_git(&sandbox, &["merge", "--squash", &branch]);
    run_git(&sandbox, &["commit", "-q", "-m", "Take it"]);
    run_git(&sandbox, &["branch", "-D", &branch]);
    for command in ["status", "report"] {
        let output = sandbox.run_tribunal(&[command, &sprint_run(&sandbox)]).stdout;
        let expected = format!("the branch {branch} is gone; the work was commit ");
        assert!(join_lines(&output).contains(&expected) && !output.contains("git merge"), "{output}");
    }
}

#[test]
fn the_report_says_how_to_take_work_from_a_named_branch_and_that_it_was_taken() {
    let sandbox = sprint_sandbox("develop_any\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--max-stories", "1", "--branch", "night"]), 0);
    let report = join_lines(&sandbox.run_tribunal(&["report", &sprint_run(&sandbox)]).stdout);
    assert!(report.contains("look at: it is not on main yet: take it with `git merge night`"), "{report}");
    run_git(&sandbox, &["merge", "night"]);
    run_git(&sandbox, &["branch", "-d", "night"]);
    let report = join_lines(&sandbox.run_tribunal(&["report", &sprint_run(&sandbox)]).stdout);
    assert!(report.contains(", and on main since") && !report.contains("git merge"), "{report}");
}

#[test]
fn a_story_closes_deferred_work_with_its_commit_and_leaves_new_work() {
    let sandbox = sprint_sandbox("develop_any\n");
    let ledger_path = format!("{ARTIFACTS}/deferred-work.md");
    let ledger = "# Deferred Work\n\n### DW-1: Dull sieve\n\nstatus: open\n\n### DW-2: Slow mill\n\nstatus: open\n";
    sandbox.write_file(&ledger_path, ledger);
    let story = sandbox.read_file(STORY);
    let header = "---\ncloses_deferred: [DW-1]\ndeferred:\n  - the sieve has no handle\n---\n\n";
    sandbox.write_file(STORY, &format!("{header}{story}"));
    commit_all(&sandbox, "Plan");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2"]), 0);
    let ledger = run_git(&sandbox, &["show", &format!("HEAD:{ledger_path}")]);
    assert!(ledger.contains("### DW-1: Dull sieve\n\nstatus: done 2"), "{ledger}");
    assert!(ledger.contains("resolution: story 1-2-sift"), "{ledger}");
    assert!(ledger.contains("### DW-2: Slow mill\n\nstatus: open"), "{ledger}");
    assert!(ledger.contains("### DW-3: the sieve has no handle"), "{ledger}");
}

#[test]
fn deferred_work_whose_id_stands_twice_is_not_closed() {
    let sandbox = sprint_sandbox("develop_any\n");
    let ledger_path = format!("{ARTIFACTS}/deferred-work.md");
    let ledger = "# Deferred Work\n\n### DW-5: Dull sieve\n\nstatus: open\n\n### DW-5: Slow mill\n\nstatus: open\n";
    sandbox.write_file(&ledger_path, ledger);
    let story = sandbox.read_file(STORY);
    sandbox.write_file(STORY, &format!("---\ncloses_deferred: [DW-5]\n---\n\n{story}"));
    commit_all(&sandbox, "Plan");
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 0);
    let landed_ledger = run_git(&sandbox, &["show", &format!("HEAD:{ledger_path}")]);
    assert_eq!(landed_ledger.matches("status: open").count(), 2, "{landed_ledger}");
    let expected = "DW-5 stands twice in deferred-work.md, so it was not closed";
    assert!(join_lines(&output.stderr).contains(expected), "{}", output.stderr);
}

#[test]
fn what_a_story_leaves_is_not_closed_by_it_and_keeps_its_severity() {
    let sandbox = sprint_sandbox("develop_any\n");
    let ledger_path = format!("{ARTIFACTS}/deferred-work.md");
    sandbox.write_file(&ledger_path, "# Deferred Work\n\n### DW-1: Dull sieve\n\nstatus: open\n");
    let story = sandbox.read_file(STORY);
    // There is no DW-2 yet; what the story leaves gets this id.
    let header = "---\ncloses_deferred: [DW-2]\ndeferred:\n  - summary: no handle\n    severity: high\n---\n\n";
    sandbox.write_file(STORY, &format!("{header}{story}"));
    commit_all(&sandbox, "Plan");
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 0);
    let ledger = run_git(&sandbox, &["show", &format!("HEAD:{ledger_path}")]);
    let new_item = ledger.split("### DW-2: no handle").nth(1).unwrap_or_default();
    assert!(new_item.contains("severity: high") && new_item.contains("status: open"), "{ledger}");
    assert!(output.stderr.contains("has no DW-2, which the story says it closes"), "{}", output.stderr);
}

#[test]
fn a_retrospective_is_held_at_the_end_of_an_epic_and_its_lessons_are_passed_on() {
    let sandbox = sprint_sandbox("develop_any\n");
    sandbox.write_file(".claude/skills/bmad-retrospective/SKILL.md", "---\nname: x\n---\nDo it.\n");
    let retro = "case $prompt in *'Hold its retrospective'*)\n\
        printf -- '---\\nepic: 1\\nverdict: accepted-with-open-items\\n---\\n# Epic 1\\n\\n## Action Items\\n\\n- Sift twice\\n' \
        > _bmad-output/implementation-artifacts/epic-1-retro-2026-01-02.md\necho done; exit 0 ;; esac\n";
    let agent = std::fs::read_to_string(sandbox.path_of("../agent.sh")).unwrap();
    std::fs::write(
        sandbox.path_of("../agent.sh"),
        agent.replacen("case $TRIBUNAL_TASK in\n", &format!("{retro}case $TRIBUNAL_TASK in\n"), 1),
    )
    .unwrap();
    commit_all(&sandbox, "Add a skill");
    let plan = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    let expected =
        "2. 1-3-pack: it follows in the order of the board\n   retrospective of epic 1 after 1-3-pack\n3. 2-1-sell";
    assert!(plan.stdout.contains(expected), "{}", plan.stdout);
    let output = sandbox.run_tribunal(&["sprint"]);
    assert_exit(&output, 0);
    let subjects = run_git(&sandbox, &["log", "--reverse", "--format=%s"]);
    let subjects: Vec<&str> = subjects.lines().skip(3).collect();
    assert_eq!(
        subjects,
        [
            "Story 1-2-sift: Sift the flour",
            "Story 1-3-pack: Pack it",
            "Retrospective of epic 1",
            "Story 2-1-sell: Sell it",
            "Story 2-2-bill: Bill",
        ]
    );
    let board = sandbox.read_file(BOARD);
    assert!(board.contains("epic-1-retrospective: done"), "{board}");
    assert!(output.stderr.contains("epic 1 was accepted with open items, 1 action item"), "{}", output.stderr);
    // The prompts of later sessions replace those of earlier ones with the same number.
    let prompt = session_prompt(&sandbox, "develop-1");
    assert!(prompt.contains("- Sift twice"), "{prompt}");
}

#[test]
fn a_retrospective_that_changes_code_is_not_taken() {
    let sandbox = sprint_sandbox("develop_any\n");
    sandbox.write_file(".claude/skills/bmad-retrospective/SKILL.md", "---\nname: x\n---\nDo it.\n");
    let retro = "case $prompt in *'Hold its retrospective'*)\necho '# R' > \
        _bmad-output/implementation-artifacts/epic-1-retro-2026-01-02.md\necho x > src/evil.sh\nexit 0 ;; esac\n";
    let agent = std::fs::read_to_string(sandbox.path_of("../agent.sh")).unwrap();
    std::fs::write(
        sandbox.path_of("../agent.sh"),
        agent.replacen("case $TRIBUNAL_TASK in\n", &format!("{retro}case $TRIBUNAL_TASK in\n"), 1),
    )
    .unwrap();
    commit_all(&sandbox, "Add a skill");
    let output = sandbox.run_tribunal(&["sprint", "--epic", "1"]);
    assert_exit(&output, 0);
    assert!(
        output.stderr.contains("no retrospective of epic 1: rejected: it also changed src/evil.sh"),
        "{}",
        output.stderr
    );
    assert!(!sandbox.path_of("src/evil.sh").exists());
    assert!(sandbox.read_file(BOARD).contains("epic-1-retrospective: optional"));
    // The next sprint tries it again, and a plan says so; who names stories gets just these.
    let plan = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    let expected = "   retrospective of epic 1 at the beginning: an earlier sprint could not hold it\n1. 2-1-sell";
    assert!(plan.stdout.starts_with(expected), "{}", plan.stdout);
    let named = sandbox.run_tribunal(&["sprint", "2-1", "2-2", "--dry-run"]);
    assert!(!named.stdout.contains("retrospective"), "{}", named.stdout);
    let again = sandbox.run_tribunal(&["sprint"]);
    assert_exit(&again, 0);
    assert!(again.stderr.contains("no retrospective of epic 1: rejected"), "{}", again.stderr);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack", "2-1-sell", "2-2-bill"]);
}

#[test]
fn a_story_that_another_run_waits_with_is_passed_over() {
    let sandbox = sprint_sandbox("case $key in 1-2-sift) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--set", "sprint.max_cycles=1"]), 3);
    let waiting_run = story_run(&sandbox, "1-2");
    let claim = format!("1-2-sift is worked on by run {waiting_run}");
    let plan = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    assert!(plan.stdout.contains(&format!("left out: {claim}")), "{}", plan.stdout);
    assert!(plan.stdout.contains("1. 2-1-sell"), "{}", plan.stdout);
    let status = join_lines(&sandbox.run_tribunal(&["status"]).stdout);
    assert!(status.contains("`tribunal sprint` would begin with 2-1-sell"), "{status}");
    assert!(status.contains(&claim), "{status}");
    // What a run has already is not to be begun by hand; its decision comes first.
    let next_step =
        format!("next: answer D1 of run {waiting_run}, which waits with 1-2-sift tribunal decisions {waiting_run}.D1");
    assert!(status.contains(&next_step), "{status}");
    let status_document = sandbox.run_json(&["status"]);
    let next_step = &status_document["sprint"]["next"];
    assert_eq!(next_step["claim"]["decisions"], serde_json::json!(["D1"]));
    assert_eq!(next_step["claim"]["run"], waiting_run.as_str());
    assert!(next_step.get("command").is_none(), "{next_step}");
    let output = sandbox.run_tribunal(&["sprint"]);
    assert_exit(&output, 3);
    let expected = format!("story 1-2-sift: worked on elsewhere (run {waiting_run} works on it)");
    assert!(output.stderr.contains(&expected), "{}", output.stderr);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell", "2-2-bill"]);
    // A run in the trash has no claim any more.
    assert_exit(&sandbox.run_tribunal(&["discard", &waiting_run]), 0);
    let plan = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    assert!(plan.stdout.contains("1. 1-2-sift"), "{}", plan.stdout);
    let again = sandbox.run_tribunal(&["sprint", "1-2", "--set", "sprint.max_cycles=1"]);
    assert!(!again.stderr.contains("works on 1-2-sift already"), "{}", again.stderr);
}

/// The names of runs are shortened, and the keys of real stories are long.
#[test]
fn a_story_with_a_long_key_that_another_process_works_on_is_passed_over() {
    let sandbox = sprint_sandbox("case $key in 1-2*) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    let long_key = "1-2-sift-the-flour-of-the-old-mill-by-the-river";
    sandbox.write_file(BOARD, &sandbox.read_file(BOARD).replace("1-2-sift", long_key));
    sandbox.write_file(&format!("{ARTIFACTS}/{long_key}.md"), &sandbox.read_file(STORY));
    fs::remove_file(sandbox.path_of(STORY)).unwrap();
    commit_all(&sandbox, "Use a long key");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--set", "sprint.max_cycles=1"]), 3);
    let waiting_run = story_run(&sandbox, "1-2");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "2-1"]);
    assert_exit(&output, 3);
    let expected = format!("story {long_key}: worked on elsewhere (run {waiting_run} works on it)");
    assert!(output.stderr.contains(&expected), "{}", output.stderr);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell"]);
}

/// Another process may take a story between the look at the journal and the lock.
#[test]
fn a_story_whose_lock_is_taken_is_passed_over() {
    let sandbox = sprint_sandbox("develop_any\n");
    fs::create_dir_all(sandbox.path_of(".tribunal/locks")).unwrap();
    let lock_name = Hash::digest_of(b"subject story 1-2-sift");
    let lock_path = sandbox.path_of(&format!(".tribunal/locks/{}.lock", lock_name.short_hex()));
    fs::write(&lock_path, "").unwrap();
    let lock_file = fs::File::open(&lock_path).unwrap();
    lock_file.lock().unwrap();
    fs::write(&lock_path, format!("story-1-2-sift-xxxx\n{}\n", ProcessIdentity::current())).unwrap();
    let output = sandbox.run_tribunal(&["sprint", "1-2", "2-1"]);
    assert_exit(&output, 3);
    let expected = "story 1-2-sift: worked on elsewhere (run story-1-2-sift-xxxx works on it)";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    assert_eq!(landed_stories(&sandbox), ["2-1-sell"]);
}

#[test]
fn a_story_in_review_is_reviewed_from_the_commit_with_which_its_work_began() {
    let sandbox = sprint_sandbox("echo 'I develop nothing.'\n");
    let base = run_git(&sandbox, &["rev-parse", "HEAD"]);
    sandbox.write_file("src/sift.sh", "sift() { tr -d b; }\n");
    sandbox.write_file("tests/sift_test.sh", "# AC1, AC2\n");
    let story = sandbox.read_file(STORY).replace("- [ ]", "- [x]").replace("Status: ready-for-dev", "Status: review");
    let header = format!("---\nbaseline_commit: {}\n---\n\n", base.trim());
    sandbox.write_file(STORY, &format!("{header}{story}\n- src/sift.sh\n- tests/sift_test.sh\n"));
    sandbox.write_file(BOARD, &sandbox.read_file(BOARD).replace("1-2-sift: ready-for-dev", "1-2-sift: review"));
    commit_all(&sandbox, "Develop it by hand");
    let output = sandbox.run_tribunal(&["sprint", "--max-stories", "1"]);
    assert_exit(&output, 0);
    assert!(output.stderr.contains("story 1-2-sift: the board says review"), "{}", output.stderr);
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"), "{}", output.stderr);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
}

#[test]
fn requests_are_confirmed_and_the_plan_is_compared_with_the_last_one() {
    let sandbox = sprint_sandbox("case $key in 1-2-sift) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    sandbox.write_file(
        "_bmad-output/planning-artifacts/epics.md",
        "# Epics\n\n## Epic 1: Mill\n\n### Story 1.2: Sift\n\nText.\n",
    );
    commit_all(&sandbox, "Plan epics");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "1", "--set", "sprint.max_cycles=1"]), 3);
    let run_id = sprint_run(&sandbox);
    let said = sandbox.run_tribunal(&["say", &run_id, "skip 1-3"]);
    assert!(said.stdout.contains("as a request: 1-3 will be skipped"), "{}", said.stdout);
    let stopped = sandbox.run_tribunal(&["stop", &run_id, "--after-story"]);
    assert!(stopped.stdout.contains("no further story will be begun"), "{}{}", stopped.stdout, stopped.stderr);
    // The story of this sprint waits, so another sprint would leave it alone.
    let status = join_lines(&sandbox.run_tribunal(&["status"]).stdout);
    assert!(status.contains("`tribunal sprint` would begin with 2-1-sell"), "{status}");
    sandbox.write_file(
        "_bmad-output/planning-artifacts/epics.md",
        "# Epics\n\n## Epic 1: Mill\n\n### Story 1.2: Sift\n\nText.\n\n### Story 1.3: Pack\n\nText.\n",
    );
    commit_all(&sandbox, "Change the plan");
    let plan = sandbox.run_tribunal(&["sprint", "--dry-run"]);
    let whole_text = format!("{}{}", plan.stdout, plan.stderr);
    assert!(whole_text.contains("since the last sprint: story 1.3 is new: Pack"), "{whole_text}");
}

#[test]
fn a_sprint_takes_up_a_request_while_a_story_works() {
    let sandbox = sprint_sandbox("");
    let [ready_pipe, gate_pipe] = ["ready", "gate"].map(|name| make_pipe(&sandbox, name));
    // The first story waits for the test.
    write_story_agent(
        &sandbox,
        &format!(
            "{DEVELOP_ANY}case $key in 1-2-sift) echo $key > '{}'; read word < '{}' ;; esac\ndevelop_any\n",
            ready_pipe.display(),
            gate_pipe.display()
        ),
    );
    let mut sprint = sandbox
        .tribunal_command(&["--json", "sprint", "--epic", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(fs::read_to_string(&ready_pipe).unwrap(), "1-2-sift\n");
    assert_exit(&sandbox.run_tribunal(&["say", &sprint_run(&sandbox), "skip 1-3"]), 0);
    // The gate opens only after the request is in the journal.
    let mut lines = BufReader::new(sprint.stdout.take().unwrap()).lines().map(Result::unwrap);
    let requested = lines.find(|line| line.contains("sprint_requested")).expect("the sprint has ended without it");
    assert!(requested.contains("1-3"), "{requested}");
    fs::write(&gate_pipe, "go\n").unwrap();
    lines.for_each(drop);
    assert_eq!(sprint.wait().unwrap().code(), Some(0));
    assert_eq!(landed_stories(&sandbox), ["1-2-sift"]);
}

#[test]
fn a_story_that_is_open_again_gets_a_new_run() {
    // The second story takes the first one's commit off the branch, as a user might.
    let sandbox = sprint_sandbox("develop_any\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "1", "--max-stories", "1"]), 0);
    run_git(&sandbox, &["reset", "-q", "--hard", "HEAD~1"]);
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "1"]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack"]);
    assert!(sandbox.path_of("src/1-2-sift.sh").exists());
}

#[test]
fn work_that_stopped_at_the_review_is_continued_with_the_review() {
    let sandbox = sprint_sandbox(
        "case $(grep -c 'Status: review' $story) in 0) develop_any ;; *) echo 'Nothing to do.' ;; esac\n",
    );
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "1", "--until", "review"]), 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack"]);
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--set", "sprint.max_cycles=1"]), 0);
    assert!(sandbox.read_file(BOARD).contains("1-2-sift: done"));
}

#[test]
fn an_agent_cannot_tick_what_only_a_person_can_do_or_change_other_stories() {
    let sandbox = sprint_sandbox(
        "develop_any\ncase $key in 1-2-sift) sed -i 's/Status: .*/Status: done/' \
         _bmad-output/implementation-artifacts/2-1-sell.md; rm _bmad-output/implementation-artifacts/2-2-bill.md ;; esac\n",
    );
    let story = sandbox.read_file(STORY);
    sandbox.write_file(STORY, &format!("{story}\n## Operator Actions\n\n- [ ] Buy the domain\n\n### File List\n"));
    commit_all(&sandbox, "Owe something");
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 3);
    assert!(output.stderr.contains("only you can do: Buy the domain"), "{}", output.stderr);
    assert!(output.stderr.contains("2-1-sell.md was put back"), "{}", output.stderr);
    assert!(sandbox.read_file(&format!("{ARTIFACTS}/2-1-sell.md")).contains("Status: ready-for-dev"));
    assert!(sandbox.path_of(&format!("{ARTIFACTS}/2-2-bill.md")).exists());
}

#[test]
fn requests_that_cannot_be_carried_out_are_refused() {
    let sandbox = sprint_sandbox("echo 'I cannot.'\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "1", "--set", "sprint.max_cycles=1"]), 3);
    let unknown = sandbox.run_tribunal(&["say", &sprint_run(&sandbox), "skip 9-9"]);
    assert_exit(&unknown, 2);
    assert!(unknown.stderr.contains("no story `9-9` on"), "{}", unknown.stderr);
}

#[test]
fn an_uncommitted_edit_of_the_board_is_kept_and_stories_land_all_the_same() {
    let sandbox = sprint_sandbox("case $key-$n in 1-2-sift-1) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "1", "--set", "sprint.max_cycles=1"]), 3);
    // While the sprint waits, the user plans ahead: at the top of the board, and right below the last story that is to land.
    let board = sandbox.read_file(BOARD).replace("# keep this comment\n", "# keep this comment, and this one\n");
    sandbox.write_file(BOARD, &board.replace("  epic-2: backlog\n", "  epic-2: backlog # next week\n"));
    let changed_lines = || -> Vec<String> {
        let diff = run_git(&sandbox, &["diff", "-U0"]);
        let is_changed =
            |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---");
        diff.lines().filter(is_changed).map(String::from).collect()
    };
    let edits = changed_lines();
    assert_eq!(edits.len(), 4, "{edits:?}");
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{}.D1", story_run(&sandbox, "1-2")), "agent"]), 0);
    let resumed = sandbox.run_tribunal(&["resume", &sprint_run(&sandbox)]);
    assert_exit(&resumed, 0);
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack"]);
    let board = sandbox.read_file(BOARD);
    assert!(board.contains("  1-2-sift: done\n  1-3-pack: done\n  epic-2: backlog # next week\n"), "{board}");
    assert_eq!(changed_lines(), edits);
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), format!(" M {BOARD}\n"));
    assert_eq!(run_git(&sandbox, &["branch", "--format=%(refname:short)"]), "main\n");
}
