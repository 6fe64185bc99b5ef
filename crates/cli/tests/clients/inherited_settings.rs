//! What of the user's own settings and environment reaches a client (`agents.NAME.inherit`), and what does not.

use serde_json::json;
use tribunal_testkit::model::{
    AnswerStep, ScenarioCall, ScenarioRule,
    review_rules::{finding_json, findings_json, fixer_condition, reviewer_rule},
};

use crate::common::{Client, ClientTestbed, VAGUE_SENTENCE};

const CLAUDE_SETTINGS: &str = "../home/claude/settings.json";

fn claude_testbed() -> ClientTestbed {
    ClientTestbed::new(&[Client::Claude], [reviewer_rule(1, &[finding_json("high", "fast is vague", VAGUE_SENTENCE)])])
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_sign_in_through_the_settings_of_the_user_counts() {
    let mut testbed = claude_testbed();
    let server_url = format!("http://{}", testbed.server.address());
    let settings = json!({"apiKeyHelper": "echo sk-from-helper", "env": {"ANTHROPIC_BASE_URL": server_url}});
    testbed.sandbox.write_file(CLAUDE_SETTINGS, &settings.to_string());
    testbed.remove_variables(&["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]);
    testbed.review_without_fixing();
    assert!(testbed.server.request_log().requests.iter().all(|request| request.has_api_key));
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn instructions_of_the_user_are_passed_on_only_when_inherited() {
    let instructions = "The person likes short sentences.";
    for (inherit_level, is_passed_on) in [("nothing", false), ("user", false), ("project", true)] {
        let testbed = claude_testbed();
        testbed.replace_in_settings("agents: {", &format!("agents: {{claude-code: {{inherit: {inherit_level}}}, "));
        testbed.sandbox.write_file("../home/claude/CLAUDE.md", instructions);
        testbed.review_without_fixing();
        let request_text = testbed.server.request_log().requests[0].body.to_string();
        assert_eq!(request_text.contains(instructions), is_passed_on, "inherit {inherit_level}");
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn the_model_in_the_settings_of_the_user_is_asked() {
    let testbed = claude_testbed();
    testbed.sandbox.write_file(CLAUDE_SETTINGS, &json!({"model": "claude-opus-4-5"}).to_string());
    testbed.review_without_fixing();
    assert_eq!(testbed.server.request_log().requests[0].model, "claude-opus-4-5");
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn commands_of_codex_see_no_keys() {
    let findings_step =
        AnswerStep::from_structured(findings_json(&[finding_json("high", "fast is vague", VAGUE_SENTENCE)]));
    let blocked_fix = json!({"id": "F1", "status": "BLOCKED", "fix_description": "x", "files_modified": []});
    let env_step = || AnswerStep::from_calls([ScenarioCall::Shell("env".into())]);
    let mut testbed = ClientTestbed::new(
        &[Client::Codex],
        [
            ScenarioRule::on_last_text("You are one reviewer", [env_step(), findings_step]),
            ScenarioRule::on_condition(
                fixer_condition("fast is vague"),
                [env_step(), AnswerStep::from_structured(json!({ "fixes": [blocked_fix] }))],
            ),
        ],
    );
    testbed.add_variables(&[("MY_SECRET", "hush"), ("PLAIN_THING", "plain")]);
    testbed.run_expecting(&["review", "plan.md"], 3);
    let server_tally = testbed.server.request_log();
    let environments: Vec<String> = server_tally
        .requests
        .iter()
        .filter(|request| request.tool_rounds == 1)
        .map(|request| request.tool_results.join("\n"))
        .collect();
    let [reviewer, fixer] = environments.as_slice() else { panic!("{environments:?}") };
    for environment in [reviewer, fixer] {
        assert!(environment.contains("PATH="), "no environment at all: {environment}");
        for variable_name in ["MY_SECRET", "ANTHROPIC_API_KEY", "MODEL_SERVER_KEY"] {
            assert!(!environment.contains(variable_name), "{variable_name}: {environment}");
        }
    }
    assert_eq!([reviewer, fixer].map(|shown| shown.contains("PLAIN_THING=plain")), [false, true]);
}
