//! Whole sprints with the real clients, in a tree of the last era of BMAD: an honest story, one whose agent lies at first, one with a
//! critical finding, one that fails and holds up another, and one that owes something that only a person can do. The agents are those
//! of both clients; one of them has the first session of every story.

use std::cell::Cell;

use serde_json::{Value, json};
use tribunal_testkit::{
    Dice,
    model::{AnswerStep, ScenarioRule, review_rules},
};

use crate::{
    common::{Client, ClientTestbed, str_field, with_each_client},
    stories::{BOARD, LATE_VERSION, assert_untouched, bmad_testbed, content_reviewers, run_git, shell_step},
};

with_each_client!(
    a_sprint_lands_what_is_true_however_often_it_is_killed,
    a_person_does_what_a_story_owes_and_it_is_done,
);

const BOARD_TEXT: &str = "development_status:
  epic-1: in-progress
  1-1-grind: ready-for-dev
  1-2-weigh: ready-for-dev
  epic-2: in-progress
  2-1-sift: ready-for-dev
  epic-3: in-progress
  3-1-pack: ready-for-dev
  3-2-ship: ready-for-dev
  epic-4: in-progress
  4-1-sell: ready-for-dev
";
/// The story that fails has few sessions, so that its question comes soon.
const SPRINT_ARGS: [&str; 3] = ["sprint", "--set", "sprint.max_cycles=3"];
const STORY_KEYS: [&str; 6] = ["1-1-grind", "1-2-weigh", "2-1-sift", "3-1-pack", "3-2-ship", "4-1-sell"];
const LANDED_KEYS: [&str; 4] = ["1-1-grind", "1-2-weigh", "2-1-sift", "4-1-sell"];
const OWED_ACTION: &str = "Rotate the production key";
const FINDING: &str = "only the letter b is removed";

/// The rule for the sessions that develop a story.
fn session_rule(key: &str, steps: impl IntoIterator<Item = AnswerStep>) -> ScenarioRule {
    ScenarioRule::on_last_text(&format!("The story is {key}"), steps)
}

/// The steps of a session that does what it says: code, a test, and a spec with these lines of front matter besides the usual ones.
fn honest_steps(key: &str, code: &str, front_matter: &[&str]) -> [AnswerStep; 3] {
    let slug = key.rsplit('-').next().unwrap();
    let develop =
        format!("mkdir -p src tests && echo '{code}' > src/{slug}.sh && echo '# checks {slug}' > tests/{slug}_test.sh");
    let title_line = format!("title: {slug}");
    let first_lines = ["---", &title_line, "type: feature", "status: done"];
    let quoted_lines: Vec<String> =
        first_lines.iter().chain(front_matter).chain(&["---", "# Done"]).map(|line| format!("'{line}'")).collect();
    let write_spec = format!(
        "printf '%s\\n' {} > _bmad-output/implementation-artifacts/spec-{key}.md && git add -A && git commit -q -m {slug}; \
         git log --oneline | head -1",
        quoted_lines.join(" ")
    );
    [shell_step(&develop), shell_step(&write_spec), AnswerStep::from_text("Everything is done.")]
}

fn scenario_rules() -> Vec<ScenarioRule> {
    let owed_line = format!("  - {OWED_ACTION}");
    let finding = review_rules::finding_json("critical", FINDING, "tr -d b");
    let edits = [review_rules::ScriptedEdit { path: "src/sift.sh", old_text: "tr -d b", new_text: "tr -d bran" }];
    vec![
        session_rule("1-1-grind", honest_steps("1-1-grind", "cat", &[])),
        session_rule("1-2-weigh", [AnswerStep::from_text("Everything is done and tested.")]).limited_to(1),
        session_rule("1-2-weigh", honest_steps("1-2-weigh", "wc -c", &[])),
        session_rule("2-1-sift", honest_steps("2-1-sift", "tr -d b", &[])),
        session_rule("3-1-pack", [AnswerStep::from_text("I have looked at it, and I do not know how.")]),
        session_rule("4-1-sell", honest_steps("4-1-sell", "cat", &["operator_actions:", &owed_line])),
        review_rules::change_reviewer_rule(1, "src/sift.sh", &[finding]),
        review_rules::fixer_rule(FINDING, &edits, &[review_rules::fixed_json("F1")]),
        review_rules::judge_rule("tr -d bran", &[review_rules::verdict_json("F1", "uphold", "")]),
        content_reviewers(),
    ]
}

/// Creates the project. The agents of this client come first.
fn sprint_testbed(client: Client) -> ClientTestbed {
    let other_client = match client {
        Client::Claude => Client::Codex,
        Client::Codex => Client::Claude,
    };
    bmad_testbed(&[client, other_client], LATE_VERSION, &[(BOARD, BOARD_TEXT)], scenario_rules())
}

fn find_run(testbed: &ClientTestbed, prefix: &str) -> String {
    testbed.sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with(prefix)).unwrap()
}

/// Lists the keys of the stories that have landed, in the order of their commits.
fn landed_keys(testbed: &ClientTestbed) -> Vec<String> {
    let subjects = run_git(testbed, &["log", "--reverse", "--format=%s", "main"]);
    let story_subjects = subjects.lines().filter_map(|subject| subject.strip_prefix("Story "));
    story_subjects.filter_map(|subject| subject.split(':').next().map(String::from)).collect()
}

/// Finds the only question of the run with this prefix.
fn find_question(testbed: &ClientTestbed, run_prefix: &str) -> Value {
    let document = testbed.sandbox.run_json(&["decisions"]);
    let questions = document["decisions"].as_array().unwrap().iter();
    let of_run: Vec<&Value> = questions.filter(|question| str_field(question, "run").starts_with(run_prefix)).collect();
    assert_eq!(of_run.len(), 1, "{run_prefix}: {document}");
    of_run[0].clone()
}

/// Checks what must be so at the end of the sprint, also after kills and edits of the user.
fn assert_end(testbed: &ClientTestbed) {
    assert_untouched(testbed);
    assert_eq!(landed_keys(testbed), LANDED_KEYS);
    assert_eq!(testbed.sandbox.read_file("src/sift.sh"), "tr -d bran\n");
    let board = testbed.sandbox.read_file(BOARD);
    for (key, state) in STORY_KEYS.iter().zip(["done", "done", "done", "ready-for-dev", "ready-for-dev", "review"]) {
        assert!(board.contains(&format!("  {key}: {state}\n")), "{key}: {board}");
    }
    find_question(testbed, "story-3-1-pack");
    let owed_question = find_question(testbed, "story-4-1-sell");
    assert!(str_field(&owed_question, "question").contains(OWED_ACTION), "{owed_question}");
    let sprint_events = testbed.sandbox.run_events(&["log", &find_run(testbed, "sprint-")]);
    let left_out = sprint_events.iter().rfind(|event| event["kind"] == "sprint_left_out").unwrap();
    let reason = json!({"because": "needs", "story": "3-1-pack"});
    assert_eq!(left_out["stories"], json!([{"story": "3-2-ship", "reason": reason}]));
    assert_reported(testbed);
}

/// Checks that the report names every story and every commit.
fn assert_reported(testbed: &ClientTestbed) {
    let report = testbed.run_expecting(&["report", "--markdown"], 3).stdout;
    for key in STORY_KEYS {
        assert!(report.contains(key), "{key}: {report}");
    }
    let commits = run_git(testbed, &["log", "--format=%H %s", "main"]);
    for commit in commits.lines().filter(|commit| commit.contains(" Story ")) {
        assert!(report.contains(&commit[..7]), "{commit}: {report}");
    }
    assert!(report.contains(OWED_ACTION), "{report}");
}

/// Starts a command, and kills it after so many of its events.
fn kill_after(testbed: &ClientTestbed, arguments: &[&str], event_count: usize) {
    let seen_events = Cell::new(0);
    let started_command = testbed.start_until(arguments, |_| {
        seen_events.set(seen_events.get() + 1);
        seen_events.get() == event_count.max(1)
    });
    started_command.kill();
    assert_untouched(testbed);
}

/// The user works on the branch, too: a file of no story, and a remark on the board.
fn commit_as_user(testbed: &ClientTestbed, path: &str, file_text: &str) {
    testbed.sandbox.write_file(path, file_text);
    run_git(testbed, &["add", path]);
    // What else is staged stays staged.
    run_git(testbed, &["commit", "-q", "-m", "Work of the user", "--", path]);
}

fn a_sprint_lands_what_is_true_however_often_it_is_killed(client: Client) {
    let undisturbed = sprint_testbed(client);
    let output = undisturbed.run_expecting(&[&SPRINT_ARGS[..], &["--json"]].concat(), 3);
    let event_count = output.stdout.lines().count();
    assert_end(&undisturbed);

    let killed = sprint_testbed(client);
    let mut dice = Dice::new(client.agent_name().len() as u64);
    // In thousandths of the events, one kill in each third of them.
    let [first_kill, second_kill, third_kill] = [50, 350, 650].map(|from| from + dice.roll(250));
    let events_between = |from: usize, to: usize| event_count * (to - from) / 1000;
    kill_after(&killed, &SPRINT_ARGS, events_between(0, first_kill));
    let sprint_run = find_run(&killed, "sprint-");
    commit_as_user(&killed, "prices.txt", "flour: 2\n");
    kill_after(&killed, &["resume", &sprint_run], events_between(first_kill, second_kill));
    let board = killed.sandbox.read_file(BOARD);
    let remark = "  # 3-2: ask the carrier first\n  3-2-ship: ";
    commit_as_user(&killed, BOARD, &board.replace("  3-2-ship: ", remark));
    kill_after(&killed, &["resume", &sprint_run], events_between(second_kill, third_kill));
    killed.run_expecting(&["resume", &sprint_run], 3);
    assert_end(&killed);
    assert!(killed.sandbox.read_file(BOARD).contains(remark), "{}", killed.sandbox.read_file(BOARD));
    assert_eq!(run_git(&killed, &["show", "main:prices.txt"]), "flour: 2\n");
    let subjects = run_git(&killed, &["log", "--format=%s", "main"]);
    assert_eq!(subjects.matches("Work of the user\n").count(), 2, "{subjects}");
}

fn a_person_does_what_a_story_owes_and_it_is_done(client: Client) {
    let testbed = sprint_testbed(client);
    testbed.run_expecting(&["sprint", "--epic", "4"], 3);
    assert_eq!(landed_keys(&testbed), ["4-1-sell"]);
    let count_commits = || run_git(&testbed, &["rev-list", "--count", "main"]).trim().parse::<u32>().unwrap();
    let commit_count = count_commits();
    let question = find_question(&testbed, "story-4-1-sell");
    let decision_name = format!("{}.{}", str_field(&question, "run"), str_field(&question, "id"));
    testbed.run_expecting(&["decisions", &decision_name, "done"], 0);
    testbed.run_expecting(&["resume", &find_run(&testbed, "sprint-")], 0);
    assert_eq!(count_commits(), commit_count + 1);
    assert!(run_git(&testbed, &["show", &format!("main:{BOARD}")]).contains("  4-1-sell: done\n"));
    assert!(testbed.sandbox.read_file(BOARD).contains("  4-1-sell: done\n"));
    assert_untouched(&testbed);
}
