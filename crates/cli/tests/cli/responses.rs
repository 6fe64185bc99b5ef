//! `tribunal inspect response --agent`: an agent's raw output, as its driver reads it.

use serde_json::{Value, json};

use crate::common::Sandbox;

/// Returns an answer as the client prints it, one JSON object per line.
fn answered_output() -> String {
    let session_id = "3bb88e4a-9428-4796-be0a-9f5bd3501386";
    let finding =
        json!({"severity": "high", "category": "test", "description": "fast is vague", "quote": "It shall be fast."});
    let status = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---";
    let usage = json!({"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 0});
    let by_model = json!({"claude-opus-5-5": {"inputTokens": 100, "outputTokens": 20, "costUSD": 0.16}});
    let denied_tool = json!({"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "make"}});
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": session_id, "apiKeySource": "ANTHROPIC_API_KEY"}),
        json!({"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I am done."}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "session_id": session_id, "total_cost_usd": 0.16,
            "usage": usage, "modelUsage": by_model, "permission_denials": [denied_tool], "terminal_reason": "completed",
            "result": format!("{}\n{status}", json!({"findings": [finding]}))}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

const LIMITED_OUTPUT: &str = r#"{"type":"thread.started","thread_id":"01a1dc7f-48cf-7c30-99f1-a9bd66cf147f"}
{"type":"turn.started"}
{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}
"#;

#[test]
fn the_reading_of_an_answer_is_shown_with_the_analysis_of_its_text() {
    let sandbox = Sandbox::with_script("");
    sandbox.write_file("out.jsonl", &answered_output());
    let output = sandbox.run_tribunal(&["inspect", "response", "--agent", "claude", "out.jsonl"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", output.stdout, output.stderr, output.exit_code.unwrap_or(-1)), @"
    driver     claude-code
    finished   yes
    active     yes
    session    3bb88e4a-9428-4796-be0a-9f5bd3501386
    usage      100 tokens in, 20 out, 0 cached; $0.16
    fault      none
    warning: permission denied: Bash make

    answer
    1 finding
      high      fast is vague
                quote “It shall be fast.”

    analysis: done, score 100
      the status block says EXIT_SIGNAL: true
      permission denied: Bash make
    exit code 0
    ");
}

#[test]
fn a_fault_is_shown_with_its_class_and_its_consequence() {
    let sandbox = Sandbox::with_script("");
    sandbox.write_file("out.jsonl", LIMITED_OUTPUT);
    let output = sandbox.run_tribunal(&["inspect", "response", "--agent", "codex", "out.jsonl"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", output.stdout, output.stderr, output.exit_code.unwrap_or(-1)), @"
    driver     codex
    finished   yes
    active     no
    session    01a1dc7f-48cf-7c30-99f1-a9bd66cf147f
    usage      0 tokens in, 0 out, 0 cached
    fault      limited: exceeded retry limit, last status: 429 Too Many Requests
               the task is given to another agent, or waits

    answer
    unreadable: the answer is empty

    analysis: not done, score 0
      no status block, and nothing says that the work is done
    exit code 3
    ");
}

#[test]
fn an_agent_of_the_settings_is_read_by_its_driver_and_an_unknown_one_is_refused() {
    let sandbox = Sandbox::with_script("");
    sandbox.write_file("tribunal.yaml", "agents: {mine: {driver: codex}}\n");
    sandbox.write_file("out.jsonl", LIMITED_OUTPUT);
    let response_document = sandbox.run_json(&["inspect", "response", "--agent", "mine", "out.jsonl"]);
    assert_eq!(
        (&response_document["schema"], &response_document["driver"]),
        (&"tribunal.response/1".into(), &"codex".into())
    );
    assert_eq!((&response_document["fault"]["fault"], &response_document["rule"]), (&"limited".into(), &"wait".into()));
    let schema: Value = serde_json::from_str(&sandbox.run_tribunal(&["schema", "response"]).stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&response_document), "{response_document}");
    let output = sandbox.run_tribunal(&["inspect", "response", "--agent", "codx", "out.jsonl"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("did you mean `codex`?"), "{}", output.stderr);
}
