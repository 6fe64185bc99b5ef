//! Sessions that the user has open with a real client. Our hooks hold them to what they have taken on, and no longer.
//!
//! The client's settings are those that `tribunal init` writes. The model is scripted; what it does in the shell,
//! what the hooks answer and what the client makes of that is real.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::Value;
use tribunal_testkit::model::{AnswerStep, RuleCondition, ScenarioCall, ScenarioRule, TextPattern};

use crate::{
    common::{Client, ClientTestbed, str_field, with_each_client},
    sandbox::{CommandOutput, TRIBUNAL, write_program},
};

with_each_client!(
    a_session_with_open_findings_is_sent_back_until_they_are_repaired,
    a_session_that_keeps_lying_is_released_and_the_user_is_asked,
    a_loop_ends_with_its_promise,
    a_promise_counts_in_the_escaped_form_in_which_it_was_shown,
    a_loop_ends_at_its_limit_and_tool_use_resets_the_count_of_the_client,
    a_loop_of_another_tool_goes_on_here,
    another_session_in_the_same_directory_may_stop,
    removed_hooks_hold_no_session,
    a_missing_hook_program_holds_no_session,
    a_crashing_hook_holds_no_session,
    a_broken_state_file_holds_no_session_and_is_kept,
    a_directory_in_place_of_the_state_file_holds_no_session,
    the_state_of_another_session_does_not_hold_this_one,
    a_state_file_above_the_project_holds_no_session,
    a_broken_journal_holds_no_session,
    broken_client_settings_hold_no_session,
    without_a_transcript_the_answer_in_the_hook_input_counts,
    a_session_whose_answer_is_unknown_may_stop,
    guarded_files_are_kept_and_the_model_is_told_why,
);

const PLAN_TEXT: &str = "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n";
const REPAIRED_PLAN: &str = "# Plan\n\n## Goals\n\nIt answers in 200 ms.\n\n## Risks\n\nThe disk may be full.\n";

/// Reviewers that find two things in the first round and nothing afterwards.
const REVIEWER_SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps:
      - findings:
          - {severity: low, category: test, description: there are always risks, quote: None.}
          - {severity: high, category: test, description: fast is vague, quote: It shall be fast.}
  - {task: '*', steps: [{findings: []}]}
";

const ALLOWED_TOOLS: &str = "Bash,Edit,Write,Read";
const STATE_FILE: &str = ".claude/review-loop-state.yaml";
const KEPT_STATE_FILE: &str = ".tribunal/sessions/1-review-loop-state.yaml";
const REVIEW_PROMISE: &str = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";

/// Creates a project whose client calls our hooks at every event it knows.
fn project_with_hooks(client: Client, rules: impl IntoIterator<Item = ScenarioRule>) -> ClientTestbed {
    let testbed = ClientTestbed::new(&[client], rules);
    testbed.sandbox.write_file("plan.md", PLAN_TEXT);
    testbed.sandbox.write_file("script.yaml", REVIEWER_SCRIPT);
    testbed.sandbox.write_file(
        "tribunal.yaml",
        "tier: 0\n\
         agents: {use: [scripted], scripted: {driver: replay, script: script.yaml}}\n\
         tasks: {retry_after: 0, required_issues: 0}\n",
    );
    testbed.run_expecting(&["trust", "--yes"], 0);
    testbed.run_expecting(&["init", "--yes", "--client", client.agent_name()], 0);
    testbed
}

/// Returns the file in which `tribunal init` puts the hooks.
fn hook_settings_path(client: Client) -> &'static str {
    match client {
        Client::Claude => ".claude/settings.local.json",
        Client::Codex => ".codex/hooks.json",
    }
}

/// The result of a session that has ended.
struct SessionResult {
    session_id: String,
    /// The last answer, which the user reads.
    answer: String,
}

/// Builds a command that starts the client with one prompt, as the user would.
fn client_with_prompt(testbed: &ClientTestbed, tested_client: Client, prompt: &str) -> Command {
    let mut command = testbed.client_command(tested_client);
    testbed.sandbox.set_home_env(&mut command);
    match tested_client {
        Client::Claude => {
            command.args(["-p", prompt, "--output-format", "json"]).args(["--allowedTools", ALLOWED_TOOLS])
        }
        Client::Codex => command
            .args(["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--json"])
            // The sandbox would otherwise leave its marks in the temporary directory that all tests share.
            .args(["-c", "sandbox_workspace_write.exclude_slash_tmp=true"])
            .args(["-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"])
            .args(["-s", "workspace-write", prompt]),
    };
    command
}

/// Runs a whole session with one prompt; it must end without an error.
fn run_session(testbed: &ClientTestbed, tested_client: Client, prompt: &str) -> SessionResult {
    let command_output =
        CommandOutput::from_output(client_with_prompt(testbed, tested_client, prompt).output().unwrap());
    SessionResult::from_output(testbed, tested_client, &command_output)
}

impl SessionResult {
    fn from_output(testbed: &ClientTestbed, client: Client, command_output: &CommandOutput) -> SessionResult {
        assert_eq!(testbed.unscripted_prompts(), [""; 0], "{}", command_output.stdout);
        assert_eq!(command_output.exit_code, Some(0), "{}{}", command_output.stdout, command_output.stderr);
        let output_events = command_output.parse_events();
        match client {
            Client::Claude => {
                let [result_event] = output_events.as_slice() else { panic!("{}", command_output.stdout) };
                assert_eq!(result_event["is_error"], false, "{}", command_output.stdout);
                SessionResult {
                    session_id: str_field(result_event, "session_id").into(),
                    answer: str_field(result_event, "result").into(),
                }
            }
            Client::Codex => {
                let session_id =
                    output_events.iter().find_map(|output_event| output_event["thread_id"].as_str()).unwrap();
                let mut items = output_events.iter().map(|output_event| &output_event["item"]);
                let last_message = items.rfind(|item| item["type"] == "agent_message").unwrap();
                SessionResult { session_id: session_id.into(), answer: str_field(last_message, "text").into() }
            }
        }
    }
}

/// Builds a step in which the model types a command of Tribunal.
fn tribunal_step(command_words: &str) -> AnswerStep {
    AnswerStep::from_calls([ScenarioCall::Shell(format!("{TRIBUNAL} {command_words}"))])
}

fn review_step() -> AnswerStep {
    AnswerStep::from_calls([ScenarioCall::Shell(format!(
        "echo session=${{CLAUDE_CODE_SESSION_ID:-$CODEX_SESSION_ID}}; {TRIBUNAL} review --in-session plan.md"
    ))])
}

fn resume_step() -> AnswerStep {
    tribunal_step(&format!("resume $(sed -n 's/^run: //p' {STATE_FILE})"))
}

fn edit_step(old_text: &str, new_text: &str) -> AnswerStep {
    AnswerStep::from_calls([ScenarioCall::Edit { path: "plan.md".into(), old: old_text.into(), new: new_text.into() }])
}

/// Returns the prompts with which the session was sent back, in order, with the client's escaping undone.
fn sent_back_prompts(testbed: &ClientTestbed) -> Vec<String> {
    let first_requests = testbed.server.request_log().requests.into_iter().filter(|request| request.tool_rounds == 0);
    let refusals =
        first_requests.map(|request| request.last_text).filter(|last_prompt| last_prompt.contains("sent back"));
    refusals.map(|prompt_text| unescape_tags(&prompt_text)).collect()
}

/// Undoes the escaping of Codex, which shows the model a tag as `&lt;tag&gt;`.
fn unescape_tags(escaped_text: &str) -> String {
    escaped_text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Reads what happened in the session from the journal: `bound`, `refused`, `used`, …
fn session_events(testbed: &ClientTestbed, run_id: &str) -> Vec<Value> {
    let mut journal_entries = testbed.sandbox.run_events(&["log", run_id]);
    journal_entries.retain(|journal_entry| journal_entry["kind"] == "session");
    journal_entries
}

fn count_events(events: &[Value], event_kind: &str) -> usize {
    events.iter().filter(|session_event| session_event["what"] == event_kind).count()
}

/// Lists what sessions have taken on here.
fn list_loops(testbed: &ClientTestbed) -> Vec<Value> {
    testbed.sandbox.run_json(&["loop", "status"])["loops"].as_array().unwrap().clone()
}

/// Returns the only loop of the project.
fn only_loop(testbed: &ClientTestbed) -> Value {
    let all_loops = list_loops(testbed);
    let [single_loop] = all_loops.as_slice() else { panic!("{all_loops:?}") };
    single_loop.clone()
}

fn a_session_with_open_findings_is_sent_back_until_they_are_repaired(client: Client) {
    let testbed = project_with_hooks(
        client,
        [
            ScenarioRule::on_last_text("Please review", [review_step(), AnswerStep::from_text("All done.")]),
            ScenarioRule::on_last_text(
                "sent back 1 of",
                [AnswerStep::from_text(format!("Now it is so. {REVIEW_PROMISE}"))],
            ),
            ScenarioRule::on_last_text(
                "sent back 2 of",
                [
                    AnswerStep::from_calls([ScenarioCall::Read("plan.md".into())]),
                    edit_step("It shall be fast.", "It answers in 200 ms."),
                    edit_step("None.", "The disk may be full."),
                    resume_step(),
                    AnswerStep::from_text("Repaired."),
                ],
            ),
        ],
    );
    let session_result = run_session(&testbed, client, "Please review plan.md with Tribunal.");
    assert_eq!(session_result.answer, "Repaired.");

    let refusals = sent_back_prompts(&testbed);
    assert_eq!(refusals.len(), 2);
    let run_id = testbed.sandbox.last_run_id();
    let finding_lines = "  F1 high plan.md:5: fast is vague\n  F2 low plan.md:9: there are always risks";
    for refusal_text in &refusals {
        assert!(refusal_text.contains("Fix the findings of the review of plan.md"), "{refusal_text}");
        for expected_part in [
            finding_lines,
            REVIEW_PROMISE,
            "<review-blocked>REASON</review-blocked>",
            &format!("tribunal resume {run_id}"),
        ] {
            assert!(refusal_text.contains(expected_part), "{expected_part}: {refusal_text}");
        }
    }
    let claim_notice = "You said that it is done, but it is not.";
    assert_eq!(refusals.iter().map(|words| words.contains(claim_notice)).collect::<Vec<_>>(), [false, true]);

    let status = testbed.sandbox.run_json(&["status"]);
    assert_eq!(status["runs"][0]["state"], "resolved", "{status}");
    assert_eq!(testbed.list_findings(), ["F1 fixed", "F2 fixed"]);
    assert_eq!(testbed.sandbox.read_file("plan.md"), REPAIRED_PLAN);
    let recorded_events = session_events(&testbed, &run_id);
    assert_eq!(recorded_events[0]["bound"]["session"], session_result.session_id, "{recorded_events:?}");
    assert_eq!(count_events(&recorded_events, "refused"), 2, "{recorded_events:?}");
    let last_event = recorded_events.last().unwrap();
    assert_eq!([&last_event["what"], &last_event["why"]], ["let_go", "complete"]);
    // The client gives the same session id to the commands it runs, to hooks, and in its output.
    let shell_output = testbed.server.request_log().requests[1].tool_results.join("\n");
    assert!(shell_output.contains(&format!("session={}\n", session_result.session_id)), "{shell_output}");
    assert!(!testbed.sandbox.path_of(STATE_FILE).exists());
    assert!(testbed.sandbox.read_file(KEPT_STATE_FILE).contains(&run_id));
}

fn a_session_that_keeps_lying_is_released_and_the_user_is_asked(client: Client) {
    let testbed = project_with_hooks(
        client,
        [
            ScenarioRule::on_last_text("Please review", [review_step(), AnswerStep::from_text("All done.")]),
            ScenarioRule::on_last_text("sent back", [AnswerStep::from_text(format!("Really. {REVIEW_PROMISE}"))]),
            ScenarioRule::on_last_text("hello", [AnswerStep::from_text("Good day.")]),
        ],
    );
    let session_result = run_session(&testbed, client, "Please review plan.md with Tribunal.");
    // The client's own cap would end the session with an empty answer.
    assert_eq!(session_result.answer, format!("Really. {REVIEW_PROMISE}"));
    assert_eq!(sent_back_prompts(&testbed).len(), 7);
    let held_loop = only_loop(&testbed);
    assert_eq!(
        [&held_loop["refusals"], &held_loop["let_go"]],
        [&Value::from(7), &Value::from("client_cap")],
        "{held_loop}"
    );
    assert_eq!(testbed.sandbox.run_json(&["status"])["runs"][0]["state"], "waiting");
    let decisions_text = testbed.run_tribunal(&["decisions"]).stdout;
    let expected_question = "the session was released: the client was about to end the turn by itself, without a result \
                             (7 refusals in a row without a tool call). Who should fix F1, F2?";
    assert!(decisions_text.contains(expected_question), "{decisions_text}");
    assert!(decisions_text.contains("fixers") && decisions_text.contains("accept"), "{decisions_text}");
    // The next session gets a notice, and is not held.
    let earlier_count = testbed.server.request_log().requests.len();
    assert_eq!(self::run_session(&testbed, client, "hello").answer, "Good day.");
    let requests = testbed.server.request_log().requests;
    assert_eq!(requests.len(), earlier_count + 1);
    let request_text = requests[earlier_count].body.to_string();
    assert!(request_text.contains("waits for the user: `tribunal decisions`"), "{request_text}");
}

/// Builds a step in which the model starts a loop in its own shell.
fn start_loop_step(loop_options: &str) -> AnswerStep {
    tribunal_step(&format!("loop run --in-session -p 'Make it [good] * with --- in it.' {loop_options}"))
}

const GOOD_PROMISE: &str = "ALL * [GOOD] & \"so\"";

fn a_loop_ends_with_its_promise(client: Client) {
    let promise_answer = format!("It was work, but <promise>{GOOD_PROMISE}</promise> is true, I think.");
    let wrong_promise = format!("<promise>ALL x GOOD</promise> `<promise>{GOOD_PROMISE}</promise>`");
    let testbed = project_with_hooks(
        client,
        [
            ScenarioRule::on_last_text(
                "Please loop",
                [start_loop_step(&format!("--promise '{GOOD_PROMISE}'")), AnswerStep::from_text("Begun.")],
            ),
            ScenarioRule::on_last_text("sent back 1 of", [AnswerStep::from_text(wrong_promise)]),
            ScenarioRule::on_last_text("sent back 2 of", [AnswerStep::from_text(promise_answer.as_str())]),
        ],
    );
    let session_result = run_session(&testbed, client, "Please loop.");
    assert_eq!(session_result.answer, promise_answer);
    let refusals = sent_back_prompts(&testbed);
    assert_eq!(refusals.len(), 2);
    for refusal_text in &refusals {
        assert!(refusal_text.contains("Make it [good] * with --- in it."), "{refusal_text}");
        assert!(refusal_text.contains(&format!("say exactly: <promise>{GOOD_PROMISE}</promise>")), "{refusal_text}");
    }
    let held_loop = only_loop(&testbed);
    assert_eq!(
        [&held_loop["session"], &held_loop["let_go"]],
        [session_result.session_id.as_str(), "complete"],
        "{held_loop}"
    );
    assert_eq!(held_loop["refusals"], 2);
    assert!(!testbed.sandbox.path_of(STATE_FILE).exists() && testbed.sandbox.path_of(KEPT_STATE_FILE).exists());
}

/// Codex escapes what hooks say; a model that repeats exactly what it was shown has kept its promise.
fn a_promise_counts_in_the_escaped_form_in_which_it_was_shown(client: Client) {
    let shown_promise = match client {
        Client::Claude => format!("<promise>{GOOD_PROMISE}</promise>"),
        Client::Codex => "&lt;promise&gt;ALL * [GOOD] &amp; \"so\"&lt;/promise&gt;".to_string(),
    };
    let testbed = project_with_hooks(
        client,
        [
            ScenarioRule::on_last_text(
                "Please loop",
                [start_loop_step(&format!("--promise '{GOOD_PROMISE}'")), AnswerStep::from_text("Begun.")],
            ),
            ScenarioRule::on_last_text(&shown_promise, [AnswerStep::from_text(shown_promise.as_str())]),
        ],
    );
    assert_eq!(run_session(&testbed, client, "Please loop.").answer, shown_promise);
    assert_eq!([&only_loop(&testbed)["let_go"]], ["complete"]);
}

/// Failing tools count, too: the client does not tell hooks of them, and only its own record has them.
fn a_loop_ends_at_its_limit_and_tool_use_resets_the_count_of_the_client(client: Client) {
    let refusal_number = |digits: &str| RuleCondition {
        last: Some(TextPattern::Regex(format!("sent back [0-9]*[{digits}] of").parse().unwrap())),
        ..RuleCondition::default()
    };
    let tool_steps = |command: &str| {
        [AnswerStep::from_calls([ScenarioCall::Shell(command.into())]), AnswerStep::from_text("Not yet.")]
    };
    let testbed = project_with_hooks(
        client,
        [
            ScenarioRule::on_last_text(
                "Please loop",
                [start_loop_step("--max-iterations 12"), AnswerStep::from_text("Begun.")],
            ),
            ScenarioRule::on_condition(refusal_number("1234"), tool_steps("false")),
            ScenarioRule::on_condition(refusal_number("0-9"), tool_steps("true")),
        ],
    );
    assert_eq!(run_session(&testbed, client, "Please loop.").answer, "Not yet.");
    assert_eq!(sent_back_prompts(&testbed).len(), 12);
    let held_loop = only_loop(&testbed);
    assert_eq!(
        [&held_loop["refusals"], &held_loop["let_go"]],
        [&Value::from(12), &Value::from("refusals")],
        "{held_loop}"
    );
    let decisions_text = testbed.run_tribunal(&["decisions"]).stdout;
    assert!(decisions_text.contains(&format!("{}.D1", str_field(&held_loop, "id"))), "{decisions_text}");
}

fn a_loop_of_another_tool_goes_on_here(client: Client) {
    let testbed = project_with_hooks(
        client,
        [
            ScenarioRule::on_last_text("hello", [AnswerStep::from_text("Good day.")]),
            ScenarioRule::on_last_text("Count the stars", [AnswerStep::from_text("<promise>COUNTED</promise>")]),
        ],
    );
    let foreign_state_file = ".claude/ralph-loop.local.md";
    testbed.sandbox.write_file(
        foreign_state_file,
        "---\nactive: true\niteration: 1\nmax_iterations: 5\ncompletion_promise: \"COUNTED\"\n---\n\nCount the stars.\n",
    );
    assert_eq!(run_session(&testbed, client, "hello").answer, "<promise>COUNTED</promise>");
    assert_eq!(testbed.server.request_log().requests.len(), 2);
    assert!(!testbed.sandbox.path_of(foreign_state_file).exists());
    assert!(testbed.sandbox.read_file(".tribunal/sessions/1-ralph-loop.local.md").contains("iteration: 2"));
}

fn another_session_in_the_same_directory_may_stop(tested_client: Client) {
    let testbed = project_with_hooks(
        tested_client,
        [
            ScenarioRule::on_last_text(
                "Please loop",
                [start_loop_step("--promise OVER"), AnswerStep::from_text("Begun.")],
            ),
            ScenarioRule::on_last_text("sent back 1 of", [AnswerStep::from_text("<promise>OVER</promise>")])
                .gated("the other one has gone"),
            ScenarioRule::on_last_text(
                "hello",
                [AnswerStep::from_calls([ScenarioCall::Read("plan.md".into())]), AnswerStep::from_text("Good day.")],
            ),
        ],
    );
    let mut first_command = client_with_prompt(&testbed, tested_client, "Please loop.");
    let first_process = first_command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    testbed.server.wait_until("the first is sent back", |server_tally| {
        server_tally.requests.iter().any(|request| request.last_text.contains("sent back 1 of"))
    });
    let (state_before, loop_before) = (testbed.sandbox.read_file(STATE_FILE), only_loop(&testbed));
    let second_session = run_session(&testbed, tested_client, "hello");
    assert_eq!(second_session.answer, "Good day.");
    assert_eq!((testbed.sandbox.read_file(STATE_FILE), only_loop(&testbed)), (state_before, loop_before));
    testbed.server.open_gate("the other one has gone");
    let first_session = SessionResult::from_output(
        &testbed,
        tested_client,
        &CommandOutput::from_output(first_process.wait_with_output().unwrap()),
    );
    assert_ne!(first_session.session_id, second_session.session_id);
    let held_loop = only_loop(&testbed);
    assert_eq!(
        [&held_loop["session"], &held_loop["let_go"]],
        [first_session.session_id.as_str(), "complete"],
        "{held_loop}"
    );
    assert_eq!(held_loop["refusals"], 1);
}

/// Creates a session that has taken on a loop and says that it is done, which is not enough.
fn looping_project(tested_client: Client) -> ClientTestbed {
    project_with_hooks(
        tested_client,
        [ScenarioRule::on_last_text(
            "Please loop",
            [start_loop_step("--promise OVER"), AnswerStep::from_text("All done.")],
        )],
    )
}

/// Expects that a session ends by itself, as if there were no hooks, and returns what the hooks printed for the user.
fn expect_free_session(testbed: &ClientTestbed, tested_client: Client) -> String {
    assert_eq!(run_session(testbed, tested_client, "Please loop.").answer, "All done.");
    assert_eq!(sent_back_prompts(testbed).len(), 0);
    fs::read_to_string(testbed.sandbox.home_dir().join("said")).unwrap_or_default()
}

/// Replaces the hook by a script in which `$T` is the hook's program.
fn replace_hook(testbed: &ClientTestbed, tested_client: Client, script: &str) {
    let (wrapper_path, stderr_path) =
        (testbed.sandbox.home_dir().join("instead"), testbed.sandbox.home_dir().join("said"));
    let wrapper_script = format!("#!/bin/sh\nexec 2>>'{}'\nT='{TRIBUNAL}'\n{script}\n", stderr_path.display());
    write_program(&wrapper_path, &wrapper_script);
    point_hooks_at(testbed, tested_client, &wrapper_path.display().to_string());
}

fn point_hooks_at(testbed: &ClientTestbed, tested_client: Client, program: &str) {
    let settings_text = testbed.sandbox.read_file(hook_settings_path(tested_client));
    assert!(settings_text.contains(TRIBUNAL), "{settings_text}");
    testbed.sandbox.write_file(self::hook_settings_path(tested_client), &settings_text.replace(TRIBUNAL, program));
}

const RUN_HOOK: &str = "exec $T \"$@\"";

fn removed_hooks_hold_no_session(tested_client: Client) {
    let testbed = looping_project(tested_client);
    testbed.run_expecting(&["init", "--remove", "--yes", "--client", tested_client.agent_name()], 0);
    expect_free_session(&testbed, tested_client);
    let held_loop = only_loop(&testbed);
    assert_eq!([&held_loop["refusals"], &held_loop["tools"]], [0, 0], "{held_loop}");
}

fn a_missing_hook_program_holds_no_session(tested_client: Client) {
    let testbed = looping_project(tested_client);
    point_hooks_at(&testbed, tested_client, "/nowhere/tribunal");
    expect_free_session(&testbed, tested_client);
    assert_eq!(only_loop(&testbed)["refusals"], 0);
}

fn a_crashing_hook_holds_no_session(tested_client: Client) {
    for crash_script in ["kill -SEGV $$", "exit 1", "echo '{\"decision\": \"blo'", "$T hook; exit 0"] {
        let testbed = looping_project(tested_client);
        replace_hook(&testbed, tested_client, crash_script);
        expect_free_session(&testbed, tested_client);
        assert_eq!(only_loop(&testbed)["refusals"], 0, "{crash_script}");
    }
}

fn a_broken_state_file_holds_no_session_and_is_kept(tested_client: Client) {
    for broken_state in ["---\nactive: perhaps\n---\nGo on.\n", "---\nactive: true\n", "\0\u{1}{{{{"] {
        let testbed = project_with_hooks(
            tested_client,
            [ScenarioRule::on_last_text("Please loop", [AnswerStep::from_text("All done.")])],
        );
        replace_hook(&testbed, tested_client, RUN_HOOK);
        testbed.sandbox.write_file(STATE_FILE, broken_state);
        let hook_messages = expect_free_session(&testbed, tested_client);
        assert!(hook_messages.contains(STATE_FILE) && hook_messages.contains(KEPT_STATE_FILE), "{hook_messages}");
        assert_eq!(testbed.sandbox.read_file(KEPT_STATE_FILE), broken_state);
        assert!(!testbed.sandbox.path_of(STATE_FILE).exists());
    }
}

fn a_directory_in_place_of_the_state_file_holds_no_session(tested_client: Client) {
    let testbed = project_with_hooks(
        tested_client,
        [ScenarioRule::on_last_text("Please loop", [AnswerStep::from_text("All done.")])],
    );
    replace_hook(&testbed, tested_client, RUN_HOOK);
    testbed.sandbox.write_file(&format!("{STATE_FILE}/here"), "a foreign file");
    let hook_messages = expect_free_session(&testbed, tested_client);
    assert!(hook_messages.contains(STATE_FILE), "{hook_messages}");
    assert_eq!(testbed.sandbox.read_file(&format!("{KEPT_STATE_FILE}/here")), "a foreign file");
}

fn the_state_of_another_session_does_not_hold_this_one(tested_client: Client) {
    let testbed = project_with_hooks(
        tested_client,
        [ScenarioRule::on_last_text("Please loop", [AnswerStep::from_text("All done.")])],
    );
    let foreign_state = "---\nactive: true\nsession_id: \"another-session\"\nworkflow_name: loop\n---\nGo on.\n";
    testbed.sandbox.write_file(STATE_FILE, foreign_state);
    expect_free_session(&testbed, tested_client);
    assert_eq!(testbed.sandbox.read_file(STATE_FILE), foreign_state);
}

/// A file in a shared directory above the project may belong to another user.
fn a_state_file_above_the_project_holds_no_session(tested_client: Client) {
    let testbed = project_with_hooks(
        tested_client,
        [ScenarioRule::on_last_text("Please loop", [AnswerStep::from_text("All done.")])],
    );
    let (foreign_state_file, foreign_state) =
        ("../.claude/ralph-loop.local.md", "---\nactive: true\niteration: 1\n---\nDo as I say.\n");
    testbed.sandbox.write_file(foreign_state_file, foreign_state);
    expect_free_session(&testbed, tested_client);
    assert_eq!(testbed.sandbox.read_file(foreign_state_file), foreign_state);
}

fn a_broken_journal_holds_no_session(tested_client: Client) {
    let testbed = looping_project(tested_client);
    let journal_path = testbed.sandbox.path_of(".tribunal/journal.db").display().to_string();
    let ruin_command = format!("yes garbage | head -c 9000 > '{journal_path}'; rm -f '{journal_path}'-*");
    replace_hook(&testbed, tested_client, &format!("case $2 in stop) {ruin_command};; esac; {RUN_HOOK}"));
    let hook_messages = expect_free_session(&testbed, tested_client);
    assert!(hook_messages.contains("could not read the journal, so the session may stop"), "{hook_messages}");
    assert!(testbed.sandbox.path_of(STATE_FILE).exists(), "it may well be right");
}

fn broken_client_settings_hold_no_session(tested_client: Client) {
    let testbed = looping_project(tested_client);
    let settings_path = hook_settings_path(tested_client);
    testbed
        .sandbox
        .write_file(settings_path, testbed.sandbox.read_file(settings_path).trim_end().strip_suffix('}').unwrap());
    expect_free_session(&testbed, tested_client);
    assert_eq!(only_loop(&testbed)["refusals"], 0);
}

/// Removes what this expression matches from the client's input to hooks.
fn filter_hook_input(testbed: &ClientTestbed, tested_client: Client, sed_script: &str) {
    replace_hook(testbed, tested_client, &format!("sed '{sed_script}' | $T \"$@\""));
}

const NO_TRANSCRIPT: &str = r#"s/"transcript_path":"[^"]*"/"transcript_path":"\/nowhere"/"#;

fn without_a_transcript_the_answer_in_the_hook_input_counts(tested_client: Client) {
    let testbed = project_with_hooks(
        tested_client,
        [
            ScenarioRule::on_last_text(
                "Please loop",
                [start_loop_step("--promise OVER"), AnswerStep::from_text("Begun.")],
            ),
            ScenarioRule::on_last_text("sent back 1 of", [AnswerStep::from_text("<promise>OVER</promise>")]),
        ],
    );
    filter_hook_input(&testbed, tested_client, NO_TRANSCRIPT);
    assert_eq!(run_session(&testbed, tested_client, "Please loop.").answer, "<promise>OVER</promise>");
    assert_eq!(only_loop(&testbed)["let_go"], "complete");
}

/// A session whose answer is unknown can say neither that it is done nor that it is blocked.
fn a_session_whose_answer_is_unknown_may_stop(tested_client: Client) {
    let testbed = project_with_hooks(
        tested_client,
        [
            ScenarioRule::on_last_text(
                "Please loop",
                [start_loop_step("--promise OVER --max-iterations 3"), AnswerStep::from_text("Begun.")],
            ),
            ScenarioRule::on_last_text("sent back", [AnswerStep::from_text("<promise>OVER</promise>")]),
        ],
    );
    filter_hook_input(&testbed, tested_client, &format!(r#"{NO_TRANSCRIPT}; s/"last_assistant_message"/"lost"/"#));
    assert_eq!(run_session(&testbed, tested_client, "Please loop.").answer, "Begun.");
    assert_eq!(only_loop(&testbed)["refusals"], 0);
    let hook_messages = fs::read_to_string(testbed.sandbox.home_dir().join("said")).unwrap();
    assert!(hook_messages.contains("/nowhere cannot be read"), "{hook_messages}");
}

fn guarded_files_are_kept_and_the_model_is_told_why(tested_client: Client) {
    let write_attempt = ScenarioCall::Write { path: ".tribunal/mine".into(), content: "I was here.".into() };
    let testbed = project_with_hooks(
        tested_client,
        [ScenarioRule::on_last_text(
            "Please loop",
            [
                start_loop_step("--promise OVER"),
                AnswerStep::from_calls([ScenarioCall::Shell("rm -rf .git".into())]),
                AnswerStep::from_calls([write_attempt]),
                AnswerStep::from_calls([ScenarioCall::Shell("rm -r build".into())]),
                AnswerStep::from_text("<promise>OVER</promise>"),
            ],
        )],
    );
    for file_path in [".git/HEAD", "build/out"] {
        testbed.sandbox.write_file(file_path, "something");
    }
    run_session(&testbed, tested_client, "Please loop.");
    let tool_results: Vec<String> =
        testbed.server.request_log().requests.iter().map(|request| request.tool_results.join("\n")).collect();
    let files_exist =
        [".git/HEAD", ".tribunal/mine", "build/out"].map(|file_path| testbed.sandbox.path_of(file_path).exists());
    assert_eq!(files_exist, [true, false, false], "{tool_results:?}");
    assert!(tool_results[2].contains("Refused: ") && tool_results[2].contains(".git"), "{}", tool_results[2]);
    assert!(tool_results[3].contains("Refused: ") && tool_results[3].contains(".tribunal/mine"), "{}", tool_results[3]);
    let history = testbed.run_tribunal(&["loop", "status", str_field(&only_loop(&testbed), "id")]).stdout;
    assert_eq!(history.matches("not allowed to use").count(), 2, "{history}");
}
