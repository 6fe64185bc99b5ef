//! Fixers write in a copy, and what they wrote lands as a patch.

use std::{thread, time::Duration};

use tribunal_testkit::model::{
    AnswerStep, ScenarioCall, ScenarioRule,
    review_rules::{
        ScriptedEdit, finding_json, fixed_json, fixer_condition, fixer_rule, judge_rule, reviewer_rule, verdict_json,
    },
};

use crate::common::{CLEAR_SENTENCE, Client, ClientTestbed, PLAN_TEXT, VAGUE_SENTENCE, find_running, with_each_client};

with_each_client!(
    a_fix_lands_as_a_patch,
    a_fix_that_the_judge_rejects_does_not_land,
    commands_of_a_fixer_work_in_its_copy,
    a_client_that_falls_silent_is_ended_with_all_it_started,
);

fn vague_sentence_rule() -> ScenarioRule {
    reviewer_rule(1, &[finding_json("high", "fast is vague", VAGUE_SENTENCE)])
}

const CLARIFYING_EDIT: ScriptedEdit<'_> =
    ScriptedEdit { path: "plan.md", old_text: VAGUE_SENTENCE, new_text: CLEAR_SENTENCE };

fn a_fix_lands_as_a_patch(client: Client) {
    let testbed = ClientTestbed::new(
        &[client],
        [vague_sentence_rule(), fixer_rule("fast is vague", &[CLARIFYING_EDIT], &[fixed_json("F1")])],
    );
    testbed.review_plan();
    assert_eq!(testbed.sandbox.read_file("plan.md"), PLAN_TEXT.replace(VAGUE_SENTENCE, CLEAR_SENTENCE));
    assert_eq!(testbed.list_findings(), ["F1 fixed"]);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
    let landing_reply = testbed.find_reply("round-1/fix-1/fix/1/land");
    assert_eq!(landing_reply["hunks"].as_array().map(Vec::len), Some(1), "{landing_reply}");
}

fn a_fix_that_the_judge_rejects_does_not_land(client: Client) {
    let rejection = [verdict_json("F1", "INVALID", ""), verdict_json("C1", "INVALID", "")];
    let testbed = ClientTestbed::new(
        &[client],
        [
            vague_sentence_rule(),
            fixer_rule("fast is vague", &[CLARIFYING_EDIT], &[fixed_json("F1")]),
            judge_rule(CLEAR_SENTENCE, &rejection),
        ],
    );
    testbed.sandbox.append_setting("limits: {max_fix_iterations: 1}");
    testbed.run_expecting(&["review", "plan.md"], 4);
    assert_eq!(testbed.sandbox.read_file("plan.md"), PLAN_TEXT);
    assert_eq!(testbed.list_findings(), ["F1 open"]);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
}

fn commands_of_a_fixer_work_in_its_copy(client: Client) {
    let rewrite_command = format!("sed -i 's/{VAGUE_SENTENCE}/{CLEAR_SENTENCE}/' plan.md && pwd");
    let final_step = AnswerStep::from_structured(serde_json::json!({"fixes": [fixed_json("F1")]}));
    let fixer_rule = ScenarioRule::on_condition(
        fixer_condition("fast is vague"),
        [AnswerStep::from_calls([ScenarioCall::Shell(rewrite_command)]), final_step],
    );
    let testbed = ClientTestbed::new(&[client], [vague_sentence_rule(), fixer_rule]);
    allow_commands(&testbed);
    testbed.review_plan();
    assert_eq!(testbed.sandbox.read_file("plan.md"), PLAN_TEXT.replace(VAGUE_SENTENCE, CLEAR_SENTENCE));
    let server_tally = testbed.server.request_log();
    let shell_output = server_tally.requests.iter().flat_map(|request| &request.tool_results).next().unwrap();
    assert!(shell_output.contains("/.tribunal/work/"), "not the person's tree: {shell_output}");
}

/// Allows commands, which Claude Code may not use without being asked.
fn allow_commands(testbed: &ClientTestbed) {
    testbed.replace_in_settings("agents: {", "agents: {claude-code: {allow: [Bash]}, ");
}

/// Builds a sleep command that no other process on this machine uses.
fn unique_sleep_command() -> String {
    format!("sleep 6{}.5", std::process::id())
}

fn a_client_that_falls_silent_is_ended_with_all_it_started(client: Client) {
    // Both clients run this test in one process, so the process id alone is not unique.
    let sleep_command = format!("{}{}", unique_sleep_command(), client as u8);
    let fixer_rule = ScenarioRule::on_condition(
        fixer_condition("fast is vague"),
        [AnswerStep::from_calls([ScenarioCall::Shell(sleep_command.clone())])],
    );
    let testbed = ClientTestbed::new(&[client], [vague_sentence_rule(), fixer_rule]);
    allow_commands(&testbed);
    testbed.sandbox.append_setting("limits: {max_fix_iterations: 1}");
    testbed.replace_in_settings("tasks: {", "tasks: {idle_timeout: 10, ");
    let mut started_review = testbed.start_until(&["review", "plan.md"], |event| event["key"] == "round-1/fix-1/fix/1");
    while find_running(&sleep_command).is_empty() {
        assert!(started_review.is_running(), "nothing slept");
        thread::sleep(Duration::from_millis(20));
    }
    assert_ne!(started_review.wait_for_end(), Some(0));
    let reply = testbed.find_reply("round-1/fix-1/fix/1");
    assert_eq!(reply["fault"], "silent", "{reply}");
    assert_eq!(find_running(&sleep_command), [""; 0]);
    assert_eq!(testbed.sandbox.read_file("plan.md"), PLAN_TEXT);
}
