//! What a free-text response says about its work: the rules of the status block and of the keywords, case by case.

use tribunal_agents::analysis::{Analysis, Before, Shape, Status, Tests, analyse};

fn of(text: &str) -> Analysis {
    analyse(text, None, &Before::default())
}

fn block(lines: &str) -> String {
    format!("Some prose.\n---RALPH_STATUS---\n{lines}\n---END_RALPH_STATUS---\nAll done, complete, finished.")
}

#[test]
fn a_status_block_decides_alone() {
    for (lines, done, score) in [
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
        let analysis = of(&block(lines));
        assert_eq!((analysis.done, analysis.score), (done, score), "{lines}");
        assert!(analysis.block.is_some() && !analysis.reasons.is_empty(), "{lines}");
    }
}

#[test]
fn everything_in_a_block_is_read() {
    let text = block(
        "STATUS: BLOCKED\nTASKS_COMPLETED_THIS_LOOP: 2\nFILES_MODIFIED: 5\nTESTS_STATUS: NOT_RUN\n\
         WORK_TYPE: REFACTORING\nEXIT_SIGNAL: false\nRECOMMENDATION: ask: who owns the key?",
    );
    let block = of(&text).block.unwrap();
    assert_eq!((block.status, block.exit_signal), (Some(Status::Blocked), Some(false)));
    assert_eq!((block.tasks_completed, block.files_modified), (Some(2), Some(5)));
    assert_eq!(block.tests, Some(Tests::NotRun));
    assert_eq!(
        (block.work_type.as_str(), block.recommendation.as_str()),
        ("REFACTORING", "ask: who owns the key?")
    );
}

#[test]
fn the_end_may_be_missing_and_the_first_block_wins() {
    let open = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n\nLater: EXIT_SIGNAL: false";
    assert!(of(open).done);
    let cut = "---RALPH_STATUS---\nSTATUS: IN_PROGRESS\nEXIT_SIG";
    assert_eq!(of(cut).block.unwrap().status, Some(Status::InProgress));
    let two = format!("{}\n{}", block("EXIT_SIGNAL: false"), block("EXIT_SIGNAL: true"));
    assert_eq!((of(&two).done, of(&two).score), (false, 80));
}

#[test]
fn with_a_block_nobody_is_stuck_or_only_testing() {
    let errors = "Error: no\n".repeat(9);
    let analysis = of(&format!("{errors}\nnpm test\n{}", block("STATUS: IN_PROGRESS\nEXIT_SIGNAL: false")));
    assert!(!analysis.stuck && !analysis.test_only);
}

#[test]
fn without_a_block_words_are_weighed() {
    for (text, done, score) in [
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
        let analysis = of(text);
        assert_eq!((analysis.done, analysis.score), (done, score), "{text}");
        assert!(!analysis.reasons.is_empty(), "{text}");
    }
}

#[test]
fn a_response_of_less_than_half_the_length_is_a_sign_but_not_enough() {
    let short = |last| {
        let before = Before { last_len: last, ..Before::default() };
        let analysis = analyse("working", None, &before);
        (analysis.score, analysis.done)
    };
    assert_eq!(short(Some(15)), (10, false));
    assert_eq!(short(Some(14)), (0, false));
    assert_eq!(short(Some(0)), (0, false));
    assert_eq!(short(None), (0, false));
}

#[test]
fn only_tests_means_test_words_and_no_word_of_building() {
    assert!(of("Running tests with pytest.").test_only);
    assert!(!of("Running tests after implementing the parser.").test_only);
    assert!(!of("Looked around.").test_only);
    assert!(!of("acrobats").test_only, "`bats` inside of another word");
}

#[test]
fn stuck_is_more_than_five_lines_that_report_an_error() {
    assert!(!of(&"Error: x\n".repeat(5)).stuck);
    assert!(of(&"Error: x\n".repeat(6)).stuck);
    assert!(of(&"src/a.c[3]: error\nException in thread\n".repeat(3)).stuck);
    assert!(!of(&"  \"is_error\": false,\n  \"error\": \"Error: x\"\n".repeat(9)).stuck, "names of fields");
    assert!(!of(&"The error handling is good; no errors.\n".repeat(9)).stuck, "talk of errors");
}

#[test]
fn shapes_are_recognised_and_only_the_agents_words_are_read() {
    let claude = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s-1"}"#,
        "\n",
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Working."},"#,
        r#"{"type":"tool_use","name":"Bash","input":{"command":"npm test"}}]},"session_id":"s-1"}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","#,
        r#""result":"---RALPH_STATUS---\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---","#,
        r#""permission_denials":[{"tool_name":"Bash","tool_input":{"command":"rm x"}}]}"#,
    );
    let codex = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"item.completed","item":{"type":"agent_message","text":"All tasks complete"}}
{"type":"turn.completed","usage":{}}"#;
    let opencode = r#"{"type":"step_start","sessionID":"ses_1","part":{}}
{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"Nothing to do."}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop"}}"#;
    let cursor = r#"{"type":"system","subtype":"init","session_id":"c-1"}
{"type":"tool_call","tool_call":{"shellToolCall":{"args":{"command":"pytest"},"result":{"success":{"stdout":"ok"}}}}}
{"type":"result","subtype":"success","is_error":false,"result":"Looked at it.","session_id":"c-1"}"#;
    let object = r#"{"result":"ok","sessionId":"o-1","metadata":{"exit_signal":true,"files_changed":3}}"#;
    for (text, shape, session, done) in [
        (claude, "stream", "s-1", true),
        (codex, "codex", "t-1", true),
        (opencode, "opencode", "ses_1", true),
        (cursor, "cursor", "c-1", false),
        (object, "object", "o-1", true),
    ] {
        let analysis = of(text);
        assert_eq!(
            (analysis.shape.name(), analysis.session.as_deref(), analysis.done),
            (shape, Some(session), done),
            "{text}\n{analysis:?}"
        );
    }
    assert_eq!(of(claude).denied, ["Bash rm x"]);
    assert!(of(cursor).test_only);
    assert_eq!(of(object).block.unwrap().files_modified, Some(3));
    let array = format!("[{}]", claude.replace('\n', ","));
    assert_eq!(of(&array).shape.name(), "stream");
    assert!(of(&array).done);
}

#[test]
fn an_object_that_is_broken_is_text_and_a_block_in_its_string_is_found() {
    let broken =
        r#"{"result":"---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---"#;
    let analysis = of(broken);
    assert_eq!(analysis.shape, Shape::Text);
    assert!(analysis.done, "{analysis:?}");
}

#[test]
fn files_that_changed_are_told() {
    let before = Before { changed_files: vec!["a.rs".into(), "b.rs".into()], ..Before::default() };
    let analysis = analyse("working", None, &before);
    assert!(analysis.reasons.iter().any(|reason| reason == "changed since the loop began: a.rs and 1 more"));
    assert!(!analysis.done);
}

proptest::proptest! {
    #[test]
    fn nothing_that_is_said_breaks_it(text in "(---RALPH_STATUS---|EXIT_SIGNAL: |[{}\\[\\]\":,\\\\\n a-zé’]|done|Error:){0,40}") {
        for shape in [None, Shape::named("cursor"), Shape::named("codex"), Shape::named("opencode"), Some(Shape::Object)] {
            let analysis = analyse(&text, shape, &Before::default());
            proptest::prop_assert!(analysis.score <= 100 && !analysis.reasons.is_empty());
        }
    }
}
