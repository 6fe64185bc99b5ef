//! Loops: a client develops in a clone, turn by turn, until its work is verified or it makes no progress.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tribunal_supervise::probe_sandbox;
use tribunal_testkit::model::{AnswerStep, ModelRequest, ScenarioCall, ScenarioRule};

use crate::{
    common::{Client, ClientTestbed, str_field, with_each_client},
    sandbox::{CommandOutput, hold_run_lock},
};

with_each_client!(
    a_loop_develops_in_a_clone_until_it_keeps_its_promise,
    a_promise_without_the_work_is_refused,
    a_loop_without_progress_opens_the_circuit_breaker,
    a_killed_loop_goes_on_in_the_session_of_its_client,
    a_killed_loop_whose_session_is_lost_begins_a_new_one,
    a_session_that_the_client_has_lost_is_replaced,
    a_developer_builds_and_tests_with_package_managers_and_writes_nowhere_else,
);

const TASK: &str = "Write a greeting of the world into greeting.txt.";
const GREETING_FILE: &str = "greeting.txt";
const PROMISE: &str = "<promise>COMPLETE</promise>";
const LOOP_COMMAND: [&str; 4] = ["loop", "run", "-p", TASK];

/// Passes without a greeting, and with one that is correct English.
const CHECK_SCRIPT: &str = "test ! -e greeting.txt && exit 0\n\
                            grep -q hello greeting.txt && exit 0\n\
                            echo 'this is not English:'; cat greeting.txt; exit 1\n";

/// Creates a repository with one commit and one check. Its loops use this client.
fn loop_testbed(client: Client, rules: impl IntoIterator<Item = ScenarioRule>) -> ClientTestbed {
    let mut testbed = ClientTestbed::new(&[client], rules);
    // The clone is in the user's cache, which must be that of the test.
    let cache_dir = testbed.sandbox.home_dir().join("cache");
    testbed.add_variables(&[("XDG_CACHE_HOME", cache_dir.to_str().unwrap())]);
    testbed.sandbox.write_file("check.sh", CHECK_SCRIPT);
    testbed.sandbox.append_setting("checks: [sh check.sh]");
    run_git(&testbed, &["init", "-q", "-b", "main"]);
    // A loop commits in the name of the user.
    run_git(&testbed, &["config", "user.name", "User"]);
    run_git(&testbed, &["config", "user.email", "user@example.org"]);
    run_git(&testbed, &["add", "-A"]);
    run_git(&testbed, &["commit", "-q", "-m", "Begin"]);
    testbed.run_expecting(&["trust", "--yes"], 0);
    testbed
}

fn run_git(testbed: &ClientTestbed, arguments: &[&str]) -> String {
    let mut git_command = Command::new("git");
    git_command.args(arguments).current_dir(testbed.sandbox.root_dir());
    testbed.sandbox.set_home_env(&mut git_command);
    let git_output = CommandOutput::from_output(git_command.output().unwrap());
    assert_eq!(git_output.exit_code, Some(0), "{arguments:?}: {}", git_output.stderr);
    git_output.stdout
}

/// Builds the rule for one turn, whether it begins a session or continues one.
fn turn_rule(iteration: u32, steps: impl IntoIterator<Item = AnswerStep>) -> ScenarioRule {
    ScenarioRule::on_last_text(&format!("This is iteration {iteration} of at most"), steps)
}

fn shell_step(command_line: &str) -> AnswerStep {
    AnswerStep::from_calls([ScenarioCall::Shell(command_line.into())])
}

/// Builds a step that writes the greeting with the client's own tool for files.
fn write_step(client: Client, greeting: &str) -> AnswerStep {
    AnswerStep::from_calls([match client {
        Client::Claude => ScenarioCall::Write { path: GREETING_FILE.into(), content: format!("{greeting}\n") },
        // The client recognizes this command and applies the patch itself.
        Client::Codex => ScenarioCall::Shell(format!(
            "apply_patch <<'END'\n*** Begin Patch\n*** Add File: {GREETING_FILE}\n+{greeting}\n*** End Patch\nEND\n"
        )),
    }])
}

fn edit_steps(old_text: &str, new_text: &str) -> [AnswerStep; 2] {
    [
        AnswerStep::from_calls([ScenarioCall::Read(GREETING_FILE.into())]),
        AnswerStep::from_calls([ScenarioCall::Edit {
            path: GREETING_FILE.into(),
            old: old_text.into(),
            new: new_text.into(),
        }]),
    ]
}

/// Writes what an agent says at the end of a turn, with a status block.
fn final_text(words: &str, exit_signal: bool) -> String {
    let status = if exit_signal { "COMPLETE" } else { "IN_PROGRESS" };
    format!(
        "{words}\n\n---RALPH_STATUS---\nSTATUS: {status}\nEXIT_SIGNAL: {exit_signal}\nRECOMMENDATION: {words}\n\
         ---END_RALPH_STATUS---"
    )
}

fn unfinished_step(words: &str) -> AnswerStep {
    AnswerStep::from_text(final_text(words, false))
}

fn promise_step(words: &str) -> AnswerStep {
    AnswerStep::from_text(format!("{}\n\n{PROMISE}", final_text(words, true)))
}

/// Returns the requests that began a turn.
fn turn_requests(testbed: &ClientTestbed) -> Vec<ModelRequest> {
    let requests = testbed.server.request_log().requests.into_iter();
    requests.filter(|request| request.tool_rounds == 0).collect()
}

/// Returns the prompts of the turns, in order.
fn turn_prompts(testbed: &ClientTestbed) -> Vec<String> {
    turn_requests(testbed).into_iter().map(|request| request.last_text).collect()
}

/// Returns the results of the first tools of a turn, after this many rounds of tools.
fn tool_output(testbed: &ClientTestbed, iteration: u32, rounds: usize) -> String {
    let turn_text = format!("This is iteration {iteration} of at most");
    let request_log = testbed.server.request_log();
    let is_wanted = |request: &&ModelRequest| request.last_text.contains(&turn_text) && request.tool_rounds == rounds;
    let request = request_log.requests.iter().find(is_wanted);
    request.unwrap_or_else(|| panic!("no request after {rounds} rounds: {request_log:#?}")).tool_results.join("\n")
}

/// Counts the calls of agents, from the journal.
fn count_agent_calls(testbed: &ClientTestbed) -> usize {
    let is_call = |journal_entry: &&Value| {
        journal_entry["kind"] == "effect_started" && str_field(journal_entry, "key").ends_with("/turn")
    };
    testbed.last_journal().iter().filter(is_call).count()
}

/// Returns the events of this kind in the journal.
fn loop_events(testbed: &ClientTestbed, event_kind: &str) -> Vec<Value> {
    let mut journal_entries = testbed.last_journal();
    journal_entries.retain(|journal_entry| journal_entry["kind"] == event_kind);
    journal_entries
}

/// Returns the directory in which the agents worked.
fn clone_path(testbed: &ClientTestbed) -> PathBuf {
    let prepared_events = loop_events(testbed, "loop_prepared");
    let [prepared_event] = prepared_events.as_slice() else { panic!("{prepared_events:?}") };
    PathBuf::from(str_field(prepared_event, "path"))
}

/// The file for notes that the prompt names. Its name is the run's, which is part of the path of the clone.
const NOTES_FILE: &str = ".tribunal/scratch/$(basename $(dirname $(dirname $PWD))).md";

fn a_loop_develops_in_a_clone_until_it_keeps_its_promise(client: Client) {
    let [read_step, edit_step] = edit_steps("hello", "hello, world");
    let testbed = loop_testbed(
        client,
        [
            turn_rule(
                1,
                [
                    shell_step("pwd; git status --short --branch"),
                    write_step(client, "hello"),
                    shell_step("sh check.sh && git add -A && git commit -q -m Greet; echo commit=$?"),
                    shell_step(&format!("echo 'The world is next.' > {NOTES_FILE}")),
                    unfinished_step("The world is not greeted yet."),
                ],
            ),
            turn_rule(
                2,
                [shell_step(&format!("cat {NOTES_FILE}")), read_step, edit_step, promise_step("The world is greeted.")],
            ),
        ],
    );
    testbed.run_expecting(&LOOP_COMMAND, 0);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    let run_id = testbed.sandbox.last_run_id();
    let prompts = turn_prompts(&testbed);
    assert_eq!(prompts.len(), 2, "{prompts:#?}");
    for prompt in &prompts {
        for expected_part in [TASK, PROMISE, &format!(".tribunal/scratch/{run_id}.md")] {
            assert!(prompt.contains(expected_part), "{expected_part}: {prompt}");
        }
    }
    assert_eq!(count_agent_calls(&testbed), 2);

    let clone_dir = clone_path(&testbed);
    let status_output = tool_output(&testbed, 1, 1);
    assert!(status_output.contains(&format!("{}\n## main", clone_dir.display())), "{status_output}");
    assert!(!clone_dir.starts_with(testbed.sandbox.root_dir()), "{}", clone_dir.display());
    let commit_output = tool_output(&testbed, 1, 3);
    // The sandbox of Codex would let commands write everything in the clone but the repository itself.
    let can_commit = client == Client::Claude || probe_sandbox().is_available();
    match can_commit {
        true => assert!(commit_output.contains("commit=0"), "{commit_output}"),
        false => assert!(
            commit_output.contains(".git/index.lock': Read-only file system") && commit_output.contains("commit=128"),
            "{commit_output}"
        ),
    }
    assert!(tool_output(&testbed, 2, 1).contains("The world is next."), "the notes of the first turn");

    assert_eq!(testbed.sandbox.read_file(GREETING_FILE), "hello, world\n");
    assert_eq!(run_git(&testbed, &["show", "main:greeting.txt"]), "hello, world\n");
    // The commit of the agent is not taken: the branch gets one commit in the name of the user.
    let commit_lines = run_git(&testbed, &["log", "--format=%an %s", "main"]);
    let subject = TASK.trim_end_matches('.');
    assert_eq!(commit_lines, format!("User Loop over {subject}: done after 2 iterations\nUser Begin\n"));
    assert_eq!(run_git(&testbed, &["diff", "--name-only", "main~", "main"]), "greeting.txt\n");
    assert_eq!(run_git(&testbed, &["status", "--porcelain"]), "");
    assert!(!clone_dir.exists(), "{}", clone_dir.display());
}

fn a_promise_without_the_work_is_refused(client: Client) {
    let [read_step, edit_step] = edit_steps("hallo", "hello");
    let testbed = loop_testbed(
        client,
        [
            turn_rule(1, [promise_step("It is done.")]),
            turn_rule(2, [write_step(client, "hallo"), promise_step("Now it is done.")]),
            turn_rule(3, [read_step, edit_step, promise_step("Now it is really done.")]),
        ],
    );
    testbed.run_expecting(&LOOP_COMMAND, 0);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    let prompts = turn_prompts(&testbed);
    let [first_prompt, second_prompt, third_prompt] = prompts.as_slice() else { panic!("{prompts:#?}") };
    assert!(!first_prompt.contains("It is not:"), "{first_prompt}");
    assert!(second_prompt.contains("It is not: nothing was changed since the loop began."), "{second_prompt}");
    assert!(third_prompt.contains("It is not: `sh check.sh` "), "{third_prompt}");
    assert!(third_prompt.contains("this is not English:\nhallo"), "{third_prompt}");
    assert_eq!(loop_events(&testbed, "promise_refused").len(), 2);
    assert_eq!(run_git(&testbed, &["show", "main:greeting.txt"]), "hello\n");
}

fn a_loop_without_progress_opens_the_circuit_breaker(client: Client) {
    let testbed = loop_testbed(
        client,
        [
            turn_rule(1, [shell_step("ls"), unfinished_step("I have looked around in the project.")]),
            turn_rule(2, [shell_step("git log"), unfinished_step("There is a history, which I have read.")]),
            turn_rule(3, [unfinished_step("A greeting can be written in many languages.")]),
        ],
    );
    testbed.run_expecting(&LOOP_COMMAND, 4);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    assert_eq!(turn_prompts(&testbed).len(), 3);
    let breaker_text = testbed.run_expecting(&["breaker"], 0).stdout;
    assert!(breaker_text.starts_with("open: 3 iterations in a row changed nothing\n"), "{breaker_text}");

    let earlier_count = testbed.server.request_log().requests.len();
    let refused_output = testbed.run_expecting(&LOOP_COMMAND, 4);
    assert!(refused_output.stderr.contains("tribunal breaker reset"), "{}", refused_output.stderr);
    assert_eq!(testbed.server.request_log().requests.len(), earlier_count, "no agent was asked");
}

const CONTINUED_LOOP: [&str; 5] = ["loop", "run", "--continue", "-p", TASK];

/// Finds the session of the client in which a turn ended.
fn session_of_turn(testbed: &ClientTestbed, effect_key: &str) -> String {
    let reply = testbed.find_reply(effect_key);
    let session_id = str_field(&reply["session"], "id").to_string();
    assert!(!session_id.is_empty(), "{reply}");
    session_id
}

const FIRST_WORDS: &str = "The world is not greeted yet.";

/// Starts a loop in one session and kills it after an edit of the second turn. Resumed, it ends with that turn.
fn killed_testbed(client: Client) -> ClientTestbed {
    let [killed_read, killed_edit] = edit_steps("hello", "hello, you");
    let [resumed_read, resumed_edit] = edit_steps("hello, you", "hello, world");
    let testbed = loop_testbed(
        client,
        [
            turn_rule(1, [write_step(client, "hello"), unfinished_step(FIRST_WORDS)]),
            // The second turn gets no answer after its edit, until the loop is killed.
            turn_rule(2, [killed_read, killed_edit, unfinished_step("Nobody reads this.").gated("never")])
                .until_gate("killed"),
            turn_rule(2, [resumed_read, resumed_edit, promise_step("The world is greeted.")]),
        ],
    );
    let is_second_turn = |event: &Value| event["kind"] == "effect_started" && event["key"] == "iteration-2/turn";
    let started_loop = testbed.start_until(&CONTINUED_LOOP, is_second_turn);
    let has_edited = |request: &ModelRequest| {
        request.last_text.contains("This is iteration 2 of at most") && request.tool_rounds == 2
    };
    testbed.server.wait_until("an edit in the second turn", |log| log.requests.iter().any(has_edited));
    started_loop.kill();
    assert_eq!(fs::read_to_string(clone_path(&testbed).join(GREETING_FILE)).unwrap(), "hello, you\n");
    testbed.server.open_gate("killed");
    testbed
}

/// Resumes the loop and expects that it lands the work of both turns.
fn resume_killed_loop(testbed: &ClientTestbed) {
    let clone_dir = clone_path(testbed);
    testbed.run_expecting(&["resume"], 0);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    assert_eq!(clone_path(testbed), clone_dir);
    assert_eq!(loop_events(testbed, "iteration_ended").len(), 2);
    assert_eq!(run_git(testbed, &["show", "main:greeting.txt"]), "hello, world\n");
}

fn a_killed_loop_goes_on_in_the_session_of_its_client(client: Client) {
    let testbed = killed_testbed(client);
    resume_killed_loop(&testbed);
    let requests = turn_requests(&testbed);
    let [_, killed_request, resumed_request] = requests.as_slice() else { panic!("{requests:#?}") };
    for request in [killed_request, resumed_request] {
        assert!(request.first_text.contains(TASK), "the session begins with the task: {}", request.first_text);
        assert!(request.body.to_string().contains(FIRST_WORDS), "it has the answer of the first turn");
        // The session knows the task, so the second turn is not told it again.
        assert!(!request.last_text.contains(TASK), "{}", request.last_text);
    }
    // The session of the killed turn is branched and left as it is.
    assert_ne!(session_of_turn(&testbed, "iteration-1/turn"), session_of_turn(&testbed, "iteration-2/turn"));
}

fn a_killed_loop_whose_session_is_lost_begins_a_new_one(client: Client) {
    let testbed = killed_testbed(client);
    // The client may write its session until it has ended. The keeper of its processes holds the lock of the run so long.
    drop(hold_run_lock(&testbed.sandbox, &testbed.sandbox.last_run_id(), ""));
    let sessions_dir = sessions_dir(client, &testbed.sandbox.home_dir());
    fs::rename(&sessions_dir, sessions_dir.with_extension("lost")).unwrap();
    resume_killed_loop(&testbed);
    let requests = turn_requests(&testbed);
    let [_, _, resumed_request] = requests.as_slice() else { panic!("{requests:#?}") };
    expect_new_session(resumed_request);
}

/// Expects that a turn began a session of its own, with the whole prompt.
fn expect_new_session(request: &ModelRequest) {
    assert_eq!(request.first_text, request.last_text);
    assert!(request.last_text.contains(TASK) && request.last_text.contains(PROMISE), "{}", request.last_text);
}

fn a_session_that_the_client_has_lost_is_replaced(client: Client) {
    let [read_step, edit_step] = edit_steps("hello", "hello, world");
    let testbed = loop_testbed(
        client,
        [
            turn_rule(1, [write_step(client, "hello"), unfinished_step("The world is not greeted yet.")]),
            turn_rule(2, [read_step, edit_step, promise_step("The world is greeted.")]),
        ],
    );
    // Checks run between two turns, so this one removes the session before it is continued.
    let sessions_dir = sessions_dir(client, &testbed.sandbox.home_dir());
    testbed.sandbox.append_setting(&format!("verify: ['rm -rf {}']", sessions_dir.display()));
    testbed.sandbox.append_setting(&format!("sandbox: {{write: ['{}']}}", testbed.sandbox.home_dir().display()));
    testbed.run_expecting(&["trust", "--yes"], 0);
    testbed.run_expecting(&CONTINUED_LOOP, 0);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    let requests = turn_requests(&testbed);
    let [_, second_request] = requests.as_slice() else { panic!("{requests:#?}") };
    expect_new_session(second_request);
    assert_eq!(loop_events(&testbed, "iteration_ended").len(), 2);
    assert_eq!(run_git(&testbed, &["show", "main:greeting.txt"]), "hello, world\n");
}

/// Returns the directory in which the client keeps its sessions.
fn sessions_dir(client: Client, home_dir: &Path) -> PathBuf {
    home_dir.join(match client {
        Client::Claude => "claude/projects",
        Client::Codex => "codex/sessions",
    })
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn denied_tools_open_the_circuit_breaker() {
    let outside_dir = tempfile::tempdir().unwrap();
    let outside_file = outside_dir.path().join(GREETING_FILE);
    let outside_step = || {
        AnswerStep::from_calls([ScenarioCall::Write {
            path: outside_file.to_str().unwrap().into(),
            content: "hello\n".into(),
        }])
    };
    let testbed = loop_testbed(
        Client::Claude,
        [
            turn_rule(1, [outside_step(), unfinished_step("I was not allowed to write the greeting.")]),
            turn_rule(2, [outside_step(), unfinished_step("Once more, the file could not be written.")]),
        ],
    );
    testbed.run_expecting(&LOOP_COMMAND, 4);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    assert!(!outside_file.exists());
    for effect_key in ["iteration-1/turn", "iteration-2/turn"] {
        let reply = testbed.find_reply(effect_key);
        assert_eq!(reply["denied"], json!([format!("Write {}", outside_file.display())]), "{reply}");
    }
    let breaker_text = testbed.run_expecting(&["breaker"], 0).stdout;
    let expected_cause = "open: tools were denied in 2 iterations in a row, and nothing changed\n";
    assert!(breaker_text.starts_with(expected_cause), "{breaker_text}");
}

/// Installs a package and runs tests with cargo, npm and pip, without a network, and prints how that ended.
const BUILD_SCRIPT: &str = r#"
mkdir -p src dep
printf '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
printf 'pub fn one() -> u8 { 1 }\n#[test]\nfn is_one() { assert_eq!(one(), 1) }\n' > src/lib.rs
printf '{"name": "dep", "version": "1.0.0", "main": "index.js"}' > dep/package.json
printf 'module.exports = 1;\n' > dep/index.js
printf '{"name": "small", "version": "1.0.0", "scripts": {"test": "node test.js"}}' > package.json
printf 'if (require("dep") !== 1) process.exit(1);\n' > test.js
# Codex runs commands in login shells, which may have another PATH.
test -n "$CARGO" && PATH="$(dirname "$CARGO"):$PATH"
cargo test --offline -q; echo "cargo=$?"
npm install --offline --no-audit --no-fund ./dep && npm test; echo "npm=$?"
if python3 -m pip --version; then
  python3 -c 'import zipfile; w = zipfile.ZipFile("small-1-py3-none-any.whl", "w")
w.writestr("small.py", "one = 1"); d = "small-1.dist-info/"
w.writestr(d + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any")
w.writestr(d + "METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1"); w.writestr(d + "RECORD", "")'
  # What pyenv does after pip may fail; whether the package is there counts.
  python3 -m pip install -q --no-index --target vendor ./small-1-py3-none-any.whl
  PYTHONPATH=vendor python3 -c 'import small'; echo "pip=$?"
else echo "pip=0"; fi
echo planted > ~/planted; echo "home=$?"
printf 'target\nnode_modules\nvendor\n*.whl\n' > .gitignore
"#;

fn a_developer_builds_and_tests_with_package_managers_and_writes_nowhere_else(client: Client) {
    let steps = [shell_step(BUILD_SCRIPT), write_step(client, "hello"), promise_step("Built.")];
    let testbed = loop_testbed(client, [turn_rule(1, steps)]);
    testbed.run_expecting(&LOOP_COMMAND, 0);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    let output = tool_output(&testbed, 1, 1);
    for expected_text in ["cargo=0", "npm=0", "pip=0"] {
        assert!(output.contains(expected_text), "{expected_text}: {output}");
    }
    let is_planted = testbed.sandbox.home_dir().join("planted").exists();
    assert_eq!(is_planted, !probe_sandbox().is_available() && client == Client::Claude, "{output}");
    assert_eq!(testbed.sandbox.read_file("src/lib.rs").lines().count(), 3);
}
