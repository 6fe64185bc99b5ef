//! Stories with the real clients, in trees of BMAD as its own installers lay them.

use std::{
    cell::Cell,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tribunal_testkit::model::{AnswerStep, ScenarioCall, ScenarioRule, review_rules};

use crate::{
    common::{Client, ClientTestbed, with_each_client},
    sandbox::CommandOutput,
};

with_each_client!(
    a_story_of_an_early_version_is_developed_by_its_command,
    a_story_of_a_late_version_is_developed_by_its_skill,
    a_lying_session_is_refused_and_the_next_one_is_told,
    ticks_without_code_are_not_work,
    a_changed_test_command_waits_for_the_user,
    a_session_that_resets_its_clone_or_deletes_tests_waits_for_the_user,
    a_process_that_goes_on_writing_lands_nothing_unchecked,
    a_critical_finding_is_fixed_in_the_workspace,
    a_review_that_never_converges_ends_in_a_question,
);

/// Where `cargo xtask clients` says that the trees are.
const TREES_VARIABLE: &str = "TRIBUNAL_BMAD_TREES";
/// The version of the last era.
pub(crate) const LATE_VERSION: &str = "6.12.0";
const STORY: &str = "_bmad-output/implementation-artifacts/1-2-sift.md";
pub(crate) const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
const SPEC: &str = "_bmad-output/implementation-artifacts/spec-1-2-sift.md";

const BOARD_TEXT: &str = "development_status:\n  epic-1: in-progress\n  1-1-grind: done\n  1-2-sift: ready-for-dev\n";
const STORY_TEXT: &str = "# Story 1.2: Sift the flour\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. Bran is removed.\n\n\
                          ## Tasks / Subtasks\n\n- [ ] Write sift with a test (AC: 1)\n\n## Dev Agent Record\n\n### File List\n";
/// What the agent does: code, a test, and the story's file.
const DEVELOP: &str = "mkdir -p src tests && echo 'tr -d b' > src/sift.sh && echo '# AC1' > tests/sift_test.sh";
const FINISH_STORY: &str = "sed -i 's/- \\[ \\]/- [x]/; s/^Status: .*/Status: review/' \
                            _bmad-output/implementation-artifacts/1-2-sift.md && \
                            printf '%s\\n' '- src/sift.sh' '- tests/sift_test.sh' >> \
                            _bmad-output/implementation-artifacts/1-2-sift.md";

/// Creates a repository with a tree of this version and one story.
fn story_testbed(client: Client, version: &str, rules: impl IntoIterator<Item = ScenarioRule>) -> ClientTestbed {
    let mut project_files = vec![(BOARD, BOARD_TEXT)];
    if version != LATE_VERSION {
        project_files.push((STORY, STORY_TEXT));
    }
    bmad_testbed(&[client], version, &project_files, rules)
}

/// Creates a repository with trees of this version for these clients and with further files. The user has uncommitted work in it.
pub(crate) fn bmad_testbed(
    clients: &[Client],
    version: &str,
    project_files: &[(&str, &str)],
    rules: impl IntoIterator<Item = ScenarioRule>,
) -> ClientTestbed {
    let mut testbed = ClientTestbed::new(clients, rules);
    let cache_dir = testbed.sandbox.home_dir().join("cache");
    testbed.add_variables(&[("XDG_CACHE_HOME", cache_dir.to_str().unwrap())]);
    for client in clients {
        copy_tree(&tree_of(*client, version), testbed.sandbox.root_dir());
    }
    for (path, file_text) in project_files {
        testbed.sandbox.write_file(path, file_text);
    }
    testbed.sandbox.write_file("check.sh", "! grep -rn broken src\n");
    testbed.sandbox.write_file("src/mill.sh", "cat\n");
    testbed.sandbox.append_setting("checks: [sh check.sh]");
    run_git(&testbed, &["init", "-q", "-b", "main"]);
    run_git(&testbed, &["config", "user.name", "User"]);
    run_git(&testbed, &["config", "user.email", "user@example.org"]);
    for name in ["dirty.txt", "stashed.txt"] {
        testbed.sandbox.write_file(name, "committed\n");
    }
    run_git(&testbed, &["add", "-A"]);
    run_git(&testbed, &["commit", "-q", "-m", "Begin"]);
    testbed.sandbox.write_file("stashed.txt", "for later\n");
    run_git(&testbed, &["stash", "push", "-q", "stashed.txt"]);
    testbed.sandbox.write_file("dirty.txt", "of the user\n");
    testbed.sandbox.write_file("staged.txt", "of the user\n");
    run_git(&testbed, &["add", "staged.txt"]);
    testbed.run_expecting(&["trust", "--yes"], 0);
    testbed
}

/// Checks that what the user has not committed is as it was.
pub(crate) fn assert_untouched(testbed: &ClientTestbed) {
    assert_eq!(run_git(testbed, &["status", "--porcelain", "--untracked-files=no"]), " M dirty.txt\nA  staged.txt\n");
    assert_eq!(testbed.sandbox.read_file("dirty.txt"), "of the user\n");
    assert_eq!(run_git(testbed, &["stash", "list"]).lines().count(), 1);
    assert_eq!(run_git(testbed, &["show", "stash@{0}:stashed.txt"]), "for later\n");
}

/// A story with its agents, and how it ends.
struct StoryCase<'a> {
    client: Client,
    version: &'a str,
    rules: Vec<ScenarioRule>,
    exit_code: i32,
    /// Where the second run of the case is killed, in thousandths of its events.
    kill_at: usize,
}

impl StoryCase<'_> {
    /// Runs the story twice: once without a disturbance, and once killed on the way and resumed. Both must end in the same way.
    /// Returns the first.
    fn run_and_kill(&self, check_end: impl Fn(&ClientTestbed)) -> ClientTestbed {
        let arguments = ["sprint", "1.2"];
        let undisturbed = story_testbed(self.client, self.version, self.rules.clone());
        let output = undisturbed.run_expecting(&["sprint", "1.2", "--json"], self.exit_code);
        let event_count = output.stdout.lines().count();
        assert_untouched(&undisturbed);
        check_end(&undisturbed);

        let killed = story_testbed(self.client, self.version, self.rules.clone());
        let awaited_event = (event_count * self.kill_at / 1000).max(1);
        let seen_events = Cell::new(0);
        let started_story = killed.start_until(&arguments, |_| {
            seen_events.set(seen_events.get() + 1);
            seen_events.get() == awaited_event
        });
        started_story.kill();
        killed.run_expecting(&["resume"], self.exit_code);
        assert_untouched(&killed);
        check_end(&killed);
        undisturbed
    }
}

fn tree_of(client: Client, version: &str) -> PathBuf {
    let trees_dir = env::var(TREES_VARIABLE).unwrap_or_else(|_| panic!("{TREES_VARIABLE} is not set"));
    PathBuf::from(trees_dir).join(match client {
        Client::Claude => version.to_string(),
        Client::Codex => format!("{version}+others"),
    })
}

fn copy_tree(source: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(source).unwrap().flatten() {
        let (path, target_path) = (entry.path(), target.join(entry.file_name()));
        match path.is_dir() {
            true => copy_tree(&path, &target_path),
            false => drop(fs::copy(&path, &target_path).unwrap()),
        }
    }
}

pub(crate) fn run_git(testbed: &ClientTestbed, arguments: &[&str]) -> String {
    let mut git_command = Command::new("git");
    git_command.args(arguments).current_dir(testbed.sandbox.root_dir());
    testbed.sandbox.set_home_env(&mut git_command);
    let git_output = CommandOutput::from_output(git_command.output().unwrap());
    assert_eq!(git_output.exit_code, Some(0), "{arguments:?}: {}", git_output.stderr);
    git_output.stdout
}

pub(crate) fn shell_step(command_line: &str) -> AnswerStep {
    AnswerStep::from_calls([ScenarioCall::Shell(command_line.into())])
}

/// The rule for sessions that develop. Its text is the same for a command and for words.
fn session_rule(steps: impl IntoIterator<Item = AnswerStep>) -> ScenarioRule {
    ScenarioRule::on_last_text("updates it", steps)
}

fn honest_steps() -> [AnswerStep; 3] {
    [shell_step(DEVELOP), shell_step(FINISH_STORY), AnswerStep::from_text("Sifting works.")]
}

/// Every reviewer is content.
pub(crate) fn content_reviewers() -> ScenarioRule {
    ScenarioRule::always([AnswerStep::from_structured(review_rules::findings_json(&[]))])
}

fn session_prompts(testbed: &ClientTestbed) -> Vec<String> {
    let requests = testbed.server.request_log().requests.into_iter();
    let first_requests =
        requests.filter(|request| request.tool_rounds == 0 && request.last_text.contains("updates it"));
    first_requests.map(|request| request.last_text).collect()
}

fn assert_landed(testbed: &ClientTestbed) {
    assert_eq!(
        run_git(testbed, &["log", "--format=%an %s", "main"]),
        "User Story 1-2-sift: Sift the flour\nUser Begin\n"
    );
    assert!(testbed.sandbox.read_file(BOARD).contains("1-2-sift: done"));
}

/// Checks that nothing has landed and the user is asked.
fn assert_waiting(testbed: &ClientTestbed) {
    assert_eq!(run_git(testbed, &["log", "--format=%s", "main"]), "Begin\n");
    assert!(testbed.sandbox.read_file(BOARD).contains("1-2-sift: ready-for-dev"));
    let document = testbed.sandbox.run_json(&["decisions"]);
    assert_eq!(document["decisions"].as_array().map(Vec::len), Some(1), "{document}");
}

fn a_story_of_an_early_version_is_developed_by_its_command(client: Client) {
    let rules = vec![session_rule(honest_steps()), content_reviewers()];
    let case = StoryCase { client, version: "6.0.4", rules, exit_code: 0, kill_at: 930 };
    let testbed = case.run_and_kill(assert_landed);
    let prompts = session_prompts(&testbed);
    assert_eq!(prompts.len(), 1, "{prompts:#?}");
    let expected = match client {
        // The client replaces its command by the text of the command's file, which names the workflow.
        Client::Claude => "_bmad/bmm/workflows/4-implementation/dev-story/workflow",
        Client::Codex => "First read all of .agents/skills/bmad-bmm-dev-story/SKILL.md",
    };
    assert!(prompts[0].contains(expected), "{}", prompts[0]);
    assert!(prompts[0].contains(STORY), "{}", prompts[0]);
}

fn a_story_of_a_late_version_is_developed_by_its_skill(client: Client) {
    let spec = format!(
        "printf '%s\\n' '---' 'title: Sift the flour' 'type: feature' 'status: done' '---' '# Sift' > {SPEC} && git add -A && \
         git commit -q -m Sift; git log --oneline | head -1"
    );
    let steps = [shell_step(DEVELOP), shell_step(&spec), AnswerStep::from_text("Done.")];
    let rules = vec![session_rule(steps), content_reviewers()];
    let case = StoryCase { client, version: LATE_VERSION, rules, exit_code: 0, kill_at: 350 };
    let testbed = case.run_and_kill(|testbed| {
        // The commit of the agent is not taken: the branch gets one commit in the name of the user.
        assert_eq!(run_git(testbed, &["log", "--format=%s", "main"]), "Story 1-2-sift: sift\nBegin\n");
        assert!(testbed.sandbox.read_file(BOARD).contains("1-2-sift: done"));
    });
    let prompts = session_prompts(&testbed);
    let expected = match client {
        Client::Claude => ".claude/skills/bmad-build-auto\n\nRun the following command",
        Client::Codex => "First read all of .agents/skills/bmad-build-auto/SKILL.md",
    };
    assert!(prompts[0].contains(expected), "{}", prompts[0]);
}

fn a_lying_session_is_refused_and_the_next_one_is_told(client: Client) {
    let lie = session_rule([AnswerStep::from_text("Everything is done and tested.")]).limited_to(1);
    let rules = vec![lie, session_rule(honest_steps()), content_reviewers()];
    let case = StoryCase { client, version: "6.0.4", rules, exit_code: 0, kill_at: 310 };
    let testbed = case.run_and_kill(assert_landed);
    let prompts = session_prompts(&testbed);
    assert_eq!(prompts.len(), 2, "{prompts:#?}");
    assert!(prompts[1].contains("- nothing was changed since the work began"), "{}", prompts[1]);
}

fn ticks_without_code_are_not_work(client: Client) {
    let ticks = session_rule([shell_step(FINISH_STORY), AnswerStep::from_text("All tasks are ticked.")]).limited_to(1);
    let rules =
        vec![ticks, session_rule([shell_step(DEVELOP), AnswerStep::from_text("Now with code.")]), content_reviewers()];
    let case = StoryCase { client, version: "6.0.4", rules, exit_code: 0, kill_at: 450 };
    let testbed = case.run_and_kill(assert_landed);
    let prompts = session_prompts(&testbed);
    assert_eq!(prompts.len(), 2, "{prompts:#?}");
    assert!(prompts[1].contains("the file list names files that do not exist"), "{}", prompts[1]);
}

fn a_changed_test_command_waits_for_the_user(client: Client) {
    let cheat = shell_step(
        "echo broken >> src/sift.sh; echo true > check.sh; printf '%s\\n' '- check.sh' >> \
                            _bmad-output/implementation-artifacts/1-2-sift.md",
    );
    let [develop, finish, _] = honest_steps();
    let rules =
        vec![session_rule([develop, finish, cheat, AnswerStep::from_text("All checks pass.")]), content_reviewers()];
    let case = StoryCase { client, version: "6.0.4", rules, exit_code: 3, kill_at: 780 };
    case.run_and_kill(assert_waiting);
}

/// A story whose agent does this before or after its work, in a project with a later commit and a test.
fn attacked_testbed(client: Client, before: &str, after: &str) -> ClientTestbed {
    let [develop, finish, end] = honest_steps();
    let rules = vec![session_rule([shell_step(before), develop, finish, shell_step(after), end]), content_reviewers()];
    let testbed = story_testbed(client, "6.0.4", rules);
    testbed.sandbox.write_file("src/one.sh", "cat\n");
    testbed.sandbox.write_file("tests/test_mill.py", "def test_grinds():\n    assert grind(2)\n");
    run_git(&testbed, &["add", "src/one.sh", "tests/test_mill.py"]);
    run_git(&testbed, &["commit", "-q", "-m", "Add one", "src/one.sh", "tests/test_mill.py"]);
    testbed
}

const ONE_SESSION: [&str; 6] = ["sprint", "1.2", "--review", "off", "--set", "sprint.max_cycles=1"];

fn a_session_that_resets_its_clone_or_deletes_tests_waits_for_the_user(client: Client) {
    for (before, after) in
        [("git reset -q --hard HEAD~1; ls src", "true"), ("true", "git rm -q tests/test_mill.py; ls src")]
    {
        let testbed = attacked_testbed(client, before, after);
        testbed.run_expecting(&ONE_SESSION, 3);
        assert_eq!(run_git(&testbed, &["log", "--format=%s", "main"]), "Add one\nBegin\n", "{before}; {after}");
        let document = testbed.sandbox.run_json(&["decisions"]);
        assert_eq!(document["decisions"].as_array().map(Vec::len), Some(1), "{before}; {after}: {document}");
        assert_untouched(&testbed);
    }
}

fn a_process_that_goes_on_writing_lands_nothing_unchecked(client: Client) {
    let race = "(trap '' HUP TERM; while :; do echo broken > src/late.sh; echo fine > src/late.sh; done) > /dev/null 2>&1 & echo";
    let testbed = attacked_testbed(client, "true", race);
    let output = testbed.run_tribunal(&ONE_SESSION);
    assert!(matches!(output.exit_code, Some(0 | 3)), "{}{}", output.stdout, output.stderr);
    assert!(!run_git(&testbed, &["grep", "-c", "", "main", "--", "src"]).is_empty());
    let landed = run_git(&testbed, &["log", "-p", "--format=%s", "main", "--", "src"]);
    assert!(!landed.contains("broken"), "{landed}");
    assert_untouched(&testbed);
}

fn a_critical_finding_is_fixed_in_the_workspace(client: Client) {
    let finding = review_rules::finding_json("critical", "only the letter b is removed", "tr -d b");
    let edits = [review_rules::ScriptedEdit { path: "src/sift.sh", old_text: "tr -d b", new_text: "tr -d bran" }];
    let rules = vec![
        session_rule(honest_steps()),
        review_rules::reviewer_rule(1, &[finding]),
        review_rules::fixer_rule("only the letter b is removed", &edits, &[review_rules::fixed_json("F1")]),
        review_rules::judge_rule("tr -d bran", &[review_rules::verdict_json("F1", "uphold", "")]),
        content_reviewers(),
    ];
    let case = StoryCase { client, version: "6.0.4", rules, exit_code: 0, kill_at: 620 };
    case.run_and_kill(|testbed| {
        assert_landed(testbed);
        assert_eq!(testbed.sandbox.read_file("src/sift.sh"), "tr -d bran\n");
    });
}

fn a_review_that_never_converges_ends_in_a_question(client: Client) {
    let finding = || review_rules::finding_json("critical", "only the letter b is removed", "tr -d b");
    let rules = vec![
        session_rule(honest_steps()),
        review_rules::reviewer_rule(1, &[finding()]),
        review_rules::fixer_rule(
            "only the letter b is removed",
            &[],
            &[review_rules::blocked_json("F1", "no way to repair it")],
        ),
        content_reviewers(),
    ];
    let case = StoryCase { client, version: "6.0.4", rules, exit_code: 3, kill_at: 550 };
    case.run_and_kill(assert_waiting);
}
