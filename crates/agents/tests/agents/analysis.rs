//! What a free-text response says about its work: the rules of the status block and of the keywords, case by case.

use tribunal_agents::analysis::{AnalysisContext, OutputShape, ResponseAnalysis, analyse_response};
use tribunal_workflows::tasks::status_report::{TestsStatus, WorkStatus};

fn analyse_text(response_text: &str) -> ResponseAnalysis {
    analyse_response(response_text, None, &AnalysisContext::default())
}

fn wrap_in_block(block_lines: &str) -> String {
    format!("Some prose.\n---RALPH_STATUS---\n{block_lines}\n---END_RALPH_STATUS---\nAll done, complete, finished.")
}

#[test]
fn a_status_block_decides_alone() {
    for (block_lines, is_done, score) in [
        ("STATUS: IN_PROGRESS\nEXIT_SIGNAL: true", true, 100),
        ("STATUS: COMPLETE\nEXIT_SIGNAL: false", false, 80),
        ("STATUS: COMPLETE", true, 100),
        ("STATUS: IN_PROGRESS", false, 0),
        ("STATUS: BLOCKED", false, 0),
        ("", false, 0),
        // The agent copied the form without filling it in.
        ("STATUS: IN_PROGRESS | COMPLETE | BLOCKED\nEXIT_SIGNAL: false | true", false, 0),
        ("**STATUS**: complete\n- `EXIT_SIGNAL`: TRUE", true, 100),
    ] {
        let analysis = analyse_text(&wrap_in_block(block_lines));
        assert_eq!((analysis.done, analysis.score), (is_done, score), "{block_lines}");
        assert!(analysis.block.is_some() && !analysis.reasons.is_empty(), "{block_lines}");
    }
}

#[test]
fn everything_in_a_block_is_read() {
    let response_text = wrap_in_block(
        "STATUS: BLOCKED\nTASKS_COMPLETED_THIS_LOOP: 2\nFILES_MODIFIED: 5\nTESTS_STATUS: NOT_RUN\n\
         WORK_TYPE: REFACTORING\nEXIT_SIGNAL: false\nRECOMMENDATION: ask: who owns the key?",
    );
    let status_block = analyse_text(&response_text).block.unwrap();
    assert_eq!((status_block.status, status_block.exit_signal), (Some(WorkStatus::Blocked), Some(false)));
    assert_eq!((status_block.tasks_completed, status_block.files_modified), (Some(2), Some(5)));
    assert_eq!(status_block.tests, Some(TestsStatus::NotRun));
    assert_eq!(
        (status_block.work_type.as_str(), status_block.recommendation.as_str()),
        ("REFACTORING", "ask: who owns the key?")
    );
}

#[test]
fn the_end_may_be_missing_and_the_first_block_wins() {
    let open_block = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n\nLater: EXIT_SIGNAL: false";
    assert!(analyse_text(open_block).done);
    let cut_block = "---RALPH_STATUS---\nSTATUS: IN_PROGRESS\nEXIT_SIG";
    assert_eq!(analyse_text(cut_block).block.unwrap().status, Some(WorkStatus::InProgress));
    let two_blocks = format!("{}\n{}", wrap_in_block("EXIT_SIGNAL: false"), wrap_in_block("EXIT_SIGNAL: true"));
    assert_eq!((analyse_text(&two_blocks).done, analyse_text(&two_blocks).score), (false, 80));
}

#[test]
fn a_status_block_overrides_the_stuck_and_test_only_signs() {
    let error_lines = "Error: no\n".repeat(9);
    let analysis =
        analyse_text(&format!("{error_lines}\nnpm test\n{}", wrap_in_block("STATUS: IN_PROGRESS\nEXIT_SIGNAL: false")));
    assert!(!analysis.stuck && !analysis.test_only);
}

#[test]
fn without_a_block_keywords_are_scored() {
    for (response_text, is_done, score) in [
        ("All 4 tasks are done.", true, 10),
        ("DONE", true, 10),
        ("I abandoned the idea.", false, 0),
        ("It is incomplete.", false, 0),
        ("This is not done yet.", false, 0),
        ("The work isn’t finished.", false, 0),
        ("There is nothing to do.", true, 15),
        ("Done: everything is up to date.", true, 25),
        ("Still working on step 4 of 20.", false, 0),
        ("", false, 0),
    ] {
        let analysis = analyse_text(response_text);
        assert_eq!((analysis.done, analysis.score), (is_done, score), "{response_text}");
        assert!(!analysis.reasons.is_empty(), "{response_text}");
    }
}

#[test]
fn a_response_of_less_than_half_the_length_is_a_sign_but_not_enough() {
    let analyse_short = |previous_length| {
        let analysis_context = AnalysisContext { previous_length, ..AnalysisContext::default() };
        let analysis = analyse_response("working", None, &analysis_context);
        (analysis.score, analysis.done)
    };
    assert_eq!(analyse_short(Some(15)), (10, false));
    assert_eq!(analyse_short(Some(14)), (0, false));
    assert_eq!(analyse_short(Some(0)), (0, false));
    assert_eq!(analyse_short(None), (0, false));
}

#[test]
fn only_tests_means_test_words_and_no_word_of_building() {
    assert!(analyse_text("Running tests with pytest.").test_only);
    assert!(!analyse_text("Running tests after implementing the parser.").test_only);
    assert!(!analyse_text("Looked around.").test_only);
    assert!(!analyse_text("acrobats").test_only, "`bats` inside of another word");
}

#[test]
fn stuck_is_more_than_five_lines_that_report_an_error() {
    assert!(!analyse_text(&"Error: x\n".repeat(5)).stuck);
    assert!(analyse_text(&"Error: x\n".repeat(6)).stuck);
    assert!(analyse_text(&"src/a.c[3]: error\nException in thread\n".repeat(3)).stuck);
    assert!(!analyse_text(&"  \"is_error\": false,\n  \"error\": \"Error: x\"\n".repeat(9)).stuck, "names of fields");
    assert!(!analyse_text(&"The error handling is good; no errors.\n".repeat(9)).stuck, "talk of errors");
}

#[test]
fn shapes_are_recognised_and_only_the_agents_words_are_read() {
    let claude_output = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s-1"}"#,
        "\n",
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Working."},"#,
        r#"{"type":"tool_use","name":"Bash","input":{"command":"npm test"}}]},"session_id":"s-1"}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","#,
        r#""result":"---RALPH_STATUS---\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---","#,
        r#""permission_denials":[{"tool_name":"Bash","tool_input":{"command":"rm x"}}]}"#,
    );
    let codex_output = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"item.completed","item":{"type":"agent_message","text":"All tasks complete"}}
{"type":"turn.completed","usage":{}}"#;
    let opencode_output = r#"{"type":"step_start","sessionID":"ses_1","part":{}}
{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"Nothing to do."}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop"}}"#;
    let cursor_output = r#"{"type":"system","subtype":"init","session_id":"c-1"}
{"type":"tool_call","tool_call":{"shellToolCall":{"args":{"command":"pytest"},"result":{"success":{"stdout":"ok"}}}}}
{"type":"result","subtype":"success","is_error":false,"result":"Looked at it.","session_id":"c-1"}"#;
    let object_output = r#"{"result":"ok","sessionId":"o-1","metadata":{"exit_signal":true,"files_changed":3}}"#;
    for (client_output, expected_shape, expected_session, is_done) in [
        (claude_output, "stream", "s-1", true),
        (codex_output, "codex", "t-1", true),
        (opencode_output, "opencode", "ses_1", true),
        (cursor_output, "cursor", "c-1", false),
        (object_output, "object", "o-1", true),
    ] {
        let analysis = analyse_text(client_output);
        assert_eq!(
            (analysis.shape.name(), analysis.session.as_deref(), analysis.done),
            (expected_shape, Some(expected_session), is_done),
            "{client_output}\n{analysis:?}"
        );
    }
    assert_eq!(analyse_text(claude_output).denied, ["Bash rm x"]);
    assert!(analyse_text(cursor_output).test_only);
    assert_eq!(analyse_text(object_output).block.unwrap().files_modified, Some(3));
    let array_output = format!("[{}]", claude_output.replace('\n', ","));
    assert_eq!(analyse_text(&array_output).shape.name(), "stream");
    assert!(analyse_text(&array_output).done);
}

#[test]
fn an_object_that_is_broken_is_text_and_a_block_in_its_string_is_found() {
    let broken_object = r#"{"result":"---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---"#;
    let analysis = analyse_text(broken_object);
    assert_eq!(analysis.shape, OutputShape::PlainText);
    assert!(analysis.done, "{analysis:?}");
}

#[test]
fn changed_files_are_listed_in_the_reasons() {
    let analysis_context =
        AnalysisContext { changed_files: vec!["a.rs".into(), "b.rs".into()], ..AnalysisContext::default() };
    let analysis = analyse_response("working", None, &analysis_context);
    assert!(analysis.reasons.iter().any(|reason| reason == "changed since the loop began: a.rs and 1 more"));
    assert!(!analysis.done);
}

proptest::proptest! {
    #[test]
    fn nothing_that_is_said_breaks_it(text in "(---RALPH_STATUS---|EXIT_SIGNAL: |[{}\\[\\]\":,\\\\\n a-zé’]|done|Error:){0,40}") {
        let of_clients = ["cursor", "codex", "opencode"].map(OutputShape::for_client);
        for shape in [None, Some(OutputShape::JsonObject)].into_iter().chain(of_clients) {
            let analysis = analyse_response(&text, shape, &AnalysisContext::default());
            proptest::prop_assert!(analysis.score <= 100 && !analysis.reasons.is_empty());
        }
    }
}
