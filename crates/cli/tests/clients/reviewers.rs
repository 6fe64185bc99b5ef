//! Reviewers read, answer in the requested schema, and are asked again in the same session.

use serde_json::{Value, json};
use tribunal_testkit::model::{
    AnswerFailure, AnswerStep, ModelRequest, RuleCondition, ScenarioCall, ScenarioRule, ScriptedTokens, TextPattern,
    review_rules::{finding_json, findings_json, reviewer_rule},
};

use crate::common::{Client, ClientTestbed, PLAN_TEXT, VAGUE_SENTENCE, str_field, with_each_client};

with_each_client!(
    a_reviewer_cannot_write_files_by_any_tool,
    the_answer_is_requested_in_our_schema,
    a_free_text_answer_is_read,
    a_rejected_answer_is_corrected_in_the_same_session_and_usage_counts_once,
    a_session_that_a_killed_run_had_continued_is_forked,
    a_large_document_is_read_completely,
    a_document_cannot_make_a_client_send_other_files,
);

fn raised_findings() -> Value {
    findings_json(&[finding_json("low", "fast is vague", VAGUE_SENTENCE)])
}

/// Lists ways to write that this client's model may try, in its copy and in the user's own file.
fn write_attempts(client: Client, user_file: &str) -> Vec<ScenarioCall> {
    let script = format!("echo vandalism >> plan.md; echo vandalism > made.md; echo vandalism > '{user_file}'");
    match client {
        Client::Claude => vec![
            ScenarioCall::Tool { name: "Write".into(), input: json!({"file_path": user_file, "content": "vandalism"}) },
            ScenarioCall::Tool {
                name: "Edit".into(),
                input: json!({"file_path": user_file, "old_string": VAGUE_SENTENCE, "new_string": "vandalism"}),
            },
            ScenarioCall::Tool { name: "Bash".into(), input: json!({"command": script, "description": "x"}) },
        ],
        Client::Codex => {
            let patch = "apply_patch <<'X'\n*** Begin Patch\n*** Add File: made.md\n+vandalism\n*** End Patch\nX\n";
            vec![ScenarioCall::Shell(script), ScenarioCall::Shell(patch.to_string())]
        }
    }
}

/// Returns whether a client reports an attempt as refused.
fn is_refusal(tool_result: &str) -> bool {
    ["No such tool available", "Read-only file system", "rejected", "Permission denied", "Failed to write file"]
        .iter()
        .any(|refusal_text| tool_result.contains(refusal_text))
}

fn a_reviewer_cannot_write_files_by_any_tool(client: Client) {
    // The user's file stands outside of the project, since its path has to be known before the project exists.
    let reviewer_prompt = RuleCondition { last: Some("You are one reviewer".into()), ..RuleCondition::default() };
    let outside_dir = tempfile::tempdir().unwrap();
    let user_file = outside_dir.path().join("person.md");
    std::fs::write(&user_file, PLAN_TEXT).unwrap();
    let steps = [
        AnswerStep::from_calls(write_attempts(client, user_file.to_str().unwrap())),
        AnswerStep::from_calls([ScenarioCall::Read("plan.md".into())]),
        AnswerStep::from_structured(raised_findings()),
    ];
    let testbed = ClientTestbed::new(&[client], [ScenarioRule::on_condition(reviewer_prompt, steps)]);
    testbed.review_without_fixing();

    let server_tally = testbed.server.request_log();
    let request_after =
        |rounds: usize| server_tally.requests.iter().find(|request| request.tool_rounds == rounds).unwrap();
    // The rounds count the tool calls that came before a request.
    let tool_results = &request_after(1).tool_results;
    let refused_count = tool_results.iter().filter(|tool_result| is_refusal(tool_result)).count();
    assert_eq!(refused_count, tool_results.len(), "{tool_results:#?}");
    let copied_text = request_after(2).tool_results.join("\n");
    assert!(copied_text.contains(VAGUE_SENTENCE) && !copied_text.contains("vandalism"), "the copy: {copied_text}");
    assert_eq!(std::fs::read_to_string(&user_file).unwrap(), PLAN_TEXT, "past the copy");
    assert_eq!(testbed.sandbox.read_file("plan.md"), PLAN_TEXT);
    assert!(!testbed.sandbox.path_of("made.md").exists());
    assert_eq!(testbed.list_findings(), ["F1 open"]);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);

    let first_request = &server_tally.requests[0];
    assert!(first_request.has_api_key);
    assert!(
        first_request.last_text.contains("Your role: adversarial.") && first_request.last_text.contains(VAGUE_SENTENCE),
        "{}",
        first_request.last_text
    );
    if client == Client::Claude {
        for tool in ["Write", "Edit", "NotebookEdit", "Bash"] {
            assert!(!first_request.offers_tool(tool), "{tool} is offered among {:?}", first_request.tool_names());
        }
        assert!(first_request.offers_tool("Read"), "{:?}", first_request.tool_names());
    }
}

/// Finds the schema of the answer in a request, where each client puts it.
fn find_answer_schema(client: Client, request_body: &Value) -> Value {
    match client {
        Client::Claude => {
            let tools = request_body["tools"].as_array().unwrap().iter();
            let tool = tools.clone().find(|tool| tool["name"] == "StructuredOutput");
            tool.unwrap()["input_schema"].clone()
        }
        Client::Codex => request_body["text"]["format"]["schema"].clone(),
    }
}

fn the_answer_is_requested_in_our_schema(client: Client) {
    let testbed =
        ClientTestbed::new(&[client], [reviewer_rule(1, &[finding_json("low", "fast is vague", VAGUE_SENTENCE)])]);
    testbed.review_without_fixing();
    let server_tally = testbed.server.request_log();
    let answer_schema = find_answer_schema(client, &server_tally.requests[0].body);
    assert!(answer_schema["properties"]["findings"].is_object(), "{answer_schema}");
    assert_eq!(server_tally.requests.len(), 1);
    assert_eq!(testbed.list_findings(), ["F1 open"]);
}

/// Matches the first and every later request of a session that began with a reviewer's prompt.
fn reviewer_session_rule(steps: impl IntoIterator<Item = AnswerStep>) -> ScenarioRule {
    ScenarioRule::on_condition(
        RuleCondition { first: Some("You are one reviewer".into()), ..RuleCondition::default() },
        steps,
    )
}

fn a_free_text_answer_is_read(client: Client) {
    let answer_text = format!("I looked at it.\n```yaml\n{}\n```\n", raised_findings());
    let testbed = ClientTestbed::new(&[client], [reviewer_session_rule([AnswerStep::from_text(answer_text)])]);
    testbed.review_without_fixing();
    assert_eq!(testbed.list_findings(), ["F1 open"]);
    assert_eq!(testbed.unscripted_prompts(), [""; 0]);
}

/// The session is forked because it is not known how far the killed run got in it.
fn a_session_that_a_killed_run_had_continued_is_forked(client: Client) {
    let retry_prompt =
        || RuleCondition { last: Some("Your last answer was not accepted".into()), ..RuleCondition::default() };
    let testbed = ClientTestbed::new(
        &[client],
        [
            // The gate opens after the kill, so that only the resumed run gets an answer.
            ScenarioRule::on_condition(retry_prompt(), [AnswerStep::from_failure(AnswerFailure::Silence)])
                .until_gate("killed"),
            ScenarioRule::on_condition(retry_prompt(), [AnswerStep::from_structured(raised_findings())]),
            reviewer_session_rule([AnswerStep::from_text("I looked at it, and it is what it is.")]),
        ],
    );
    let is_retry = |event: &Value| event["kind"] == "effect_started" && str_field(event, "key").ends_with("/again");
    let started_review = testbed.start_until(&["review", "--no-fix", "plan.md"], is_retry);
    let is_retry_request = |request: &ModelRequest| request.last_text.contains("not accepted");
    testbed.server.wait_until("it is asked again", |server_tally| server_tally.requests.iter().any(is_retry_request));
    started_review.kill();
    testbed.server.open_gate("killed");
    testbed.run_expecting(&["resume"], 3);
    assert_eq!(testbed.list_findings(), ["F1 open"]);
    let server_tally = testbed.server.request_log();
    let last_retry = server_tally.requests.iter().rfind(|request| is_retry_request(request)).unwrap();
    assert!(last_retry.body.to_string().contains("it is what it is"), "the branch has the talk so far");
    let session_id = |effect_key: &str| str_field(&testbed.find_reply(effect_key)["session"], "id").to_string();
    let (first_session, forked_session) =
        (session_id("round-1/review/adversarial"), session_id("round-1/review/adversarial/again"));
    assert!(
        !forked_session.is_empty() && forked_session != first_session,
        "{forked_session}: another talk than {first_session}"
    );
}

fn a_rejected_answer_is_corrected_in_the_same_session_and_usage_counts_once(client: Client) {
    let step_usage = ScriptedTokens { input: 1000, cached: 400, output: 50, reasoning: 0 };
    let retry_condition =
        RuleCondition { last: Some("Your last answer was not accepted".into()), ..RuleCondition::default() };
    let testbed = ClientTestbed::new(
        &[client],
        [
            ScenarioRule::on_condition(
                retry_condition,
                [AnswerStep::from_structured(raised_findings()).with_tokens(step_usage)],
            ),
            reviewer_session_rule([
                AnswerStep::from_text("I looked at it, and it is what it is.").with_tokens(step_usage)
            ]),
        ],
    );
    testbed.review_without_fixing();
    assert_eq!(testbed.list_findings(), ["F1 open"]);

    let server_tally = testbed.server.request_log();
    let retry_request =
        server_tally.requests.iter().find(|request| request.last_text.contains("not accepted")).unwrap();
    assert!(
        retry_request.first_text.contains("You are one reviewer"),
        "the talk has its beginning: {}",
        retry_request.first_text
    );
    assert!(retry_request.body.to_string().contains("it is what it is"), "and the answer that was wrong");

    // A client may need several requests for one answer; all of them count towards its usage.
    let first_count =
        server_tally.requests.iter().filter(|request| !request.last_text.contains("not accepted")).count();
    let (first_reply, retry_reply) =
        (testbed.find_reply("round-1/review/adversarial"), testbed.find_reply("round-1/review/adversarial/again"));
    for (reply, request_count) in
        [(&first_reply, first_count), (&retry_reply, server_tally.requests.len() - first_count)]
    {
        let usage = &reply["usage"];
        let counted_tokens = ["input_tokens", "cached_tokens", "output_tokens"]
            .map(|field_name| usage[field_name].as_u64().unwrap_or_else(|| panic!("{reply}")));
        assert_eq!(counted_tokens, [600, 400, 50].map(|one| one * request_count as u64), "{usage}");
    }
    if client == Client::Claude {
        // The unit is millionths of a dollar, so that equal prices compare as equal integers.
        let cost_per_request = |reply: &Value, request_count: usize| {
            (reply["usage"]["cost"].as_f64().unwrap() * 1e6 / request_count as f64).round() as u64
        };
        let single_value = cost_per_request(&retry_reply, server_tally.requests.len() - first_count);
        assert!(single_value > 0, "{retry_reply}");
        assert_eq!(cost_per_request(&first_reply, first_count), single_value, "{first_reply} {retry_reply}");
    }
}

fn a_large_document_is_read_completely(client: Client) {
    let last_line = "The last line of it all.";
    let long_text: String =
        (0..3200).map(|line_number| format!("Line {line_number} of a long plan, which has many of them.\n")).collect();
    let large_document = format!("{PLAN_TEXT}\n## Details\n\n{long_text}\n{last_line}\n");
    assert!(large_document.len() > 150_000);
    let condition = RuleCondition { last: Some(TextPattern::Text(last_line.into())), ..RuleCondition::default() };
    let testbed = ClientTestbed::new(
        &[client],
        [ScenarioRule::on_condition(condition, [AnswerStep::from_structured(raised_findings())])],
    );
    testbed.sandbox.write_file("plan.md", &large_document);
    testbed.review_without_fixing();
    assert_eq!(testbed.list_findings(), ["F1 open"]);
    let review_reply = testbed.find_reply("round-1/review/adversarial");
    assert_eq!(str_field(&review_reply, "answer"), "findings");
}

fn a_document_cannot_make_a_client_send_other_files(client: Client) {
    let outside_dir = tempfile::tempdir().unwrap();
    let secret_file = outside_dir.path().join("secret.md");
    std::fs::write(&secret_file, "this must not be read").unwrap();
    let testbed =
        ClientTestbed::new(&[client], [reviewer_rule(1, &[finding_json("high", "fast is vague", VAGUE_SENTENCE)])]);
    testbed
        .sandbox
        .write_file("plan.md", &format!("{PLAN_TEXT}\nSee @{0} and @\"{0}\" for more.\n", secret_file.display()));
    testbed.review_without_fixing();
    let request_text = testbed.server.request_log().requests[0].body.to_string();
    assert!(request_text.contains("secret.md") && !request_text.contains("this must not be read"), "{request_text}");
}
