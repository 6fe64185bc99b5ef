//! What a client sees of the user's and the project's settings beside its task: no hooks, no servers, nothing that
//! was not configured.

use std::path::Path;

use serde_json::json;
use tribunal_testkit::model::{
    AnswerStep, RuleCondition, ScenarioCall, ScenarioRule,
    review_rules::{finding_json, findings_json, fixer_condition, reviewer_rule},
};

use crate::common::{Client, ClientTestbed, VAGUE_SENTENCE, helper_program, with_each_client};

with_each_client!(
    hooks_of_user_and_project_do_not_run_in_agents,
    servers_of_the_user_are_not_offered_to_agents,
    permissions_of_the_user_do_not_apply_to_agents,
    a_configured_server_can_be_used,
);

/// Writes hooks of the user and of the project that leave a file behind when a turn ends.
fn write_hooks(testbed: &ClientTestbed, client: Client) -> [std::path::PathBuf; 2] {
    let mark_files = ["person", "project"].map(|owner| testbed.sandbox.home_dir().join(format!("{owner}-hook-ran")));
    let hook_settings = |mark_file: &Path| {
        let command = format!("touch '{}'", mark_file.display());
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command, "timeout": 20}]}]}}).to_string()
    };
    let (user_path, project_path) = match client {
        Client::Claude => ("../home/claude/settings.json", ".claude/settings.json"),
        Client::Codex => ("../home/codex/hooks.json", ".codex/hooks.json"),
    };
    testbed.sandbox.write_file(user_path, &hook_settings(&mark_files[0]));
    testbed.sandbox.write_file(project_path, &hook_settings(&mark_files[1]));
    mark_files
}

fn hooks_of_user_and_project_do_not_run_in_agents(client: Client) {
    let testbed = ClientTestbed::new(
        &[client],
        [
            reviewer_rule(1, &[finding_json("high", "vague", VAGUE_SENTENCE)]),
            ScenarioRule::on_last_text("hello", [AnswerStep::from_text("x")]),
        ],
    );
    testbed.replace_in_settings("agents: {", "agents: {claude-code: {inherit: project}, codex: {inherit: project}, ");
    let [user_mark, project_mark] = write_hooks(&testbed, client);
    testbed.review_without_fixing();
    assert!(!user_mark.exists() && !project_mark.exists());

    // The same hooks do run outside of a review, so the check above means something.
    let mut client_command = testbed.client_command(client);
    match client {
        Client::Claude => client_command.args(["-p", "hello"]),
        Client::Codex => {
            client_command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "hello"])
        }
    };
    let client_output = client_command.output().unwrap();
    assert!(client_output.status.success(), "{}", String::from_utf8_lossy(&client_output.stderr));
    assert!(user_mark.exists(), "the hook of this test is no hook");
}

/// Builds a call of the echo tool of the server with this name.
fn echo_call(client: Client, server_name: &str) -> ScenarioCall {
    let tool_name = match client {
        Client::Claude => format!("mcp__{server_name}__echo"),
        Client::Codex => "echo".to_string(),
    };
    ScenarioCall::Tool { name: tool_name, input: json!({"words": "hello"}) }
}

fn servers_of_the_user_are_not_offered_to_agents(client: Client) {
    let testbed = ClientTestbed::new(
        &[client],
        [
            reviewer_rule(1, &[finding_json("high", "vague", VAGUE_SENTENCE)]),
            ScenarioRule::on_last_text("by hand", [AnswerStep::from_text("done")]),
        ],
    );
    let program = helper_program("mcp-echo");
    match client {
        Client::Claude => {
            let settings = json!({"mcpServers": {"mine": {"type": "stdio", "command": program, "args": []}}});
            testbed.sandbox.write_file("../home/claude/.claude.json", &settings.to_string());
        }
        Client::Codex => {
            let config_path = "../home/codex/config.toml";
            let server_config = format!("[mcp_servers.mine]\ncommand = {program:?}\n");
            testbed
                .sandbox
                .write_file(config_path, &format!("{}\n{server_config}", testbed.sandbox.read_file(config_path)));
        }
    }
    testbed.review_without_fixing();
    // The user's own client has the server.
    let mut client_command = testbed.client_command(client);
    match client {
        Client::Claude => client_command.args(["-p", "by hand"]),
        Client::Codex => client_command.args(["exec", "--skip-git-repo-check", "by hand"]),
    };
    assert!(client_command.output().unwrap().status.success());
    let requests = testbed.server.request_log().requests;
    let offered: Vec<bool> =
        requests.iter().map(|model_request| model_request.body.to_string().contains("mcp__mine")).collect();
    assert_eq!(offered, [false, true]);
}

fn a_configured_server_can_be_used(client: Client) {
    let condition = RuleCondition { last: Some("You are one reviewer".into()), ..RuleCondition::default() };
    let found_findings = findings_json(&[finding_json("high", "fast is vague", VAGUE_SENTENCE)]);
    let testbed = ClientTestbed::new(
        &[client],
        [ScenarioRule::on_condition(
            condition,
            [AnswerStep::from_calls([echo_call(client, "echo")]), AnswerStep::from_structured(found_findings)],
        )],
    );
    testbed.sandbox.append_setting(&format!("mcp: {{echo: {{argv: [{:?}]}}}}", helper_program("mcp-echo")));
    testbed.review_without_fixing();
    let server_tally = testbed.server.request_log();
    assert!(
        server_tally.requests[1].tool_results.join(" ").contains("echo: hello"),
        "{:?}",
        server_tally.requests[1].tool_results
    );
}

/// Gives permissions for the user's own work in this directory, which is outside of any copy.
fn allow_outside(testbed: &ClientTestbed, client: Client, outside_dir: &Path) {
    match client {
        Client::Claude => {
            let permissions = json!({
                "additionalDirectories": [outside_dir],
                "allow": ["Edit", "Write", "Bash"],
                "defaultMode": "acceptEdits",
            });
            let settings = json!({ "permissions": permissions }).to_string();
            testbed.sandbox.write_file("../home/claude/settings.json", &settings);
        }
        Client::Codex => {
            let rules = "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n";
            testbed.sandbox.write_file("../home/codex/rules/default.rules", rules);
            let config_path = "../home/codex/config.toml";
            let roots_config = format!("[sandbox_workspace_write]\nwritable_roots = [{outside_dir:?}]\n");
            testbed
                .sandbox
                .write_file(config_path, &format!("{}\n{roots_config}", testbed.sandbox.read_file(config_path)));
        }
    }
}

fn permissions_of_the_user_do_not_apply_to_agents(client: Client) {
    let outside_dir = tempfile::tempdir().unwrap();
    let outside_file = outside_dir.path().join("made.md").display().to_string();
    let secret_file = outside_dir.path().join("secret.md");
    std::fs::write(&secret_file, "this must not be read").unwrap();
    let read_call = ScenarioCall::Tool { name: "Read".into(), input: json!({ "file_path": secret_file }) };
    let write_call = || match client {
        Client::Claude => {
            ScenarioCall::Tool { name: "Write".into(), input: json!({"file_path": outside_file, "content": "x"}) }
        }
        Client::Codex => ScenarioCall::Shell(format!("touch {outside_file}")),
    };
    let findings_step =
        AnswerStep::from_structured(findings_json(&[finding_json("high", "fast is vague", VAGUE_SENTENCE)]));
    let blocked_fix = json!({"id": "F1", "status": "BLOCKED", "fix_description": "x", "files_modified": []});
    let blocked_step = AnswerStep::from_structured(json!({ "fixes": [blocked_fix] }));
    let testbed = ClientTestbed::new(
        &[client],
        [
            ScenarioRule::on_last_text("You are one reviewer", [AnswerStep::from_calls([write_call()]), findings_step]),
            ScenarioRule::on_condition(
                fixer_condition("fast is vague"),
                [AnswerStep::from_calls([write_call(), read_call]), blocked_step],
            ),
            ScenarioRule::on_last_text(
                "by hand",
                [AnswerStep::from_calls([write_call()]), AnswerStep::from_text("done")],
            ),
        ],
    );
    allow_outside(&testbed, client, outside_dir.path());
    testbed.run_expecting(&["review", "plan.md"], 3);
    let attempt_count = testbed.server.request_log().requests.iter().filter(|request| request.tool_rounds == 1).count();
    assert_eq!(attempt_count, 2, "a reviewer and a fixer");
    assert!(!Path::new(&outside_file).exists());
    let server_tally = testbed.server.request_log();
    let tool_results = server_tally.requests.iter().flat_map(|request| &request.tool_results);
    assert!(
        tool_results.clone().all(|words| !words.contains("this must not be read")),
        "{:?}",
        tool_results.collect::<Vec<_>>()
    );

    // The user's own client may write there.
    let mut client_command = testbed.client_command(client);
    match client {
        Client::Claude => client_command.args(["-p", "by hand"]),
        Client::Codex => client_command.args(["exec", "--skip-git-repo-check", "-s", "read-only", "by hand"]),
    };
    assert!(client_command.output().unwrap().status.success());
    assert!(Path::new(&outside_file).exists(), "what this test allows is never allowed otherwise");
}
