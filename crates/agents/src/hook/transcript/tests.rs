//! Reading a transcript backwards gives the same result as reading it forwards.

use std::fs::File;
use std::io::{Cursor, SeekFrom, Write as _};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::hook::client::test_hook_client;

const EVERYTHING: u64 = u64::MAX;

const CLAUDE: &str = "claude-code";

fn read_text_tail(client_id: &str, transcript_text: &str) -> TranscriptTail {
    read_tail(test_hook_client(client_id), &mut Cursor::new(transcript_text), EVERYTHING).unwrap()
}

/// A line of Claude Code with one part of a message.
fn assistant_part(message_id: &str, content_block: &Value) -> Value {
    let message_value = json!({
        "id": message_id, "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [content_block],
    });
    json!({"parentUuid": "p", "isSidechain": false, "message": message_value, "apiBlockIndex": 0, "type": "assistant", "uuid": "u"})
}

fn text_part(message_id: &str, message_text: &str) -> Value {
    assistant_part(message_id, &json!({"type": "text", "text": message_text}))
}

fn tool_call_part(message_id: &str) -> Value {
    assistant_part(
        message_id,
        &json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls", "type": "text", "text": "no"}}),
    )
}

fn thinking_part(message_id: &str) -> Value {
    assistant_part(message_id, &json!({"type": "thinking", "thinking": "<promise>DONE</promise>", "signature": "s"}))
}

fn user_line(message_content: &Value) -> Value {
    json!({"isSidechain": false, "type": "user", "message": {"role": "user", "content": message_content}, "uuid": "u"})
}

fn tool_result_line() -> Value {
    user_line(&json!([{"tool_use_id": "t", "type": "tool_result", "content": "a \"assistant\" b", "is_error": false}]))
}

fn refusal_line(refusal_reason: &str) -> Value {
    with_field(user_line(&json!(format!("Stop hook feedback:\n{refusal_reason}"))), "isMeta", json!(true))
}

fn with_field(mut json_line: Value, field_name: &str, field_value: Value) -> Value {
    json_line[field_name] = field_value;
    json_line
}

fn join_lines(json_lines: &[Value]) -> String {
    json_lines.iter().map(|json_line| format!("{json_line}\n")).collect()
}

fn read_answer(json_lines: &[Value]) -> Option<String> {
    read_text_tail(CLAUDE, &join_lines(json_lines)).answer
}

#[test]
fn the_last_answer_of_a_claude_code_transcript() {
    let make_synthetic = |mut json_line: Value| {
        json_line["message"]["model"] = "<synthetic>".into();
        json_line
    };
    let blob_line = json!({"type": "api-request-blob", "message": {"role": "assistant", "content": [{"type": "text", "text": "blob"}]}});
    let cases: Vec<(&str, Vec<Value>, Option<&str>)> = vec![
        ("an empty file", vec![], None),
        ("one message", vec![user_line(&json!("go")), text_part("1", "hello")], Some("hello")),
        ("the last of several", vec![text_part("1", "a"), tool_result_line(), text_part("2", "b")], Some("b")),
        (
            "several lines of one message",
            vec![text_part("0", "z"), text_part("1", "a"), thinking_part("1"), text_part("1", "b")],
            Some("a\nb"),
        ),
        ("text before a call", vec![text_part("1", "a"), tool_call_part("1"), tool_result_line()], Some("a")),
        (
            "parts with results in between",
            vec![text_part("1", "a"), tool_call_part("1"), tool_result_line(), text_part("1", "b")],
            Some("a\nb"),
        ),
        (
            "only a call: no promise",
            vec![text_part("1", "DONE"), tool_result_line(), tool_call_part("2"), tool_result_line()],
            Some(""),
        ),
        ("only a thought", vec![text_part("1", "DONE"), thinking_part("2")], Some("")),
        ("no text in its text", vec![text_part("1", "")], Some("")),
        (
            "a sub-agent's",
            vec![text_part("1", "a"), with_field(text_part("2", "DONE"), "isSidechain", json!(true))],
            Some("a"),
        ),
        (
            "an error's",
            vec![text_part("1", "a"), with_field(text_part("2", "DONE"), "isApiErrorMessage", json!(true))],
            Some("a"),
        ),
        ("a made-up one", vec![text_part("1", "a"), make_synthetic(text_part("2", "DONE"))], Some("a")),
        ("lines that only look alike", vec![text_part("1", "a"), blob_line], Some("a")),
        (
            "what stands last in a finished file",
            vec![text_part("1", "a"), json!({"type": "cost-state", "cost": 1})],
            Some("a"),
        ),
        (
            "an answer of a tool that quotes",
            vec![text_part("1", "a"), tool_call_part("1"), tool_result_line()],
            Some("a"),
        ),
        (
            "words of the client",
            vec![text_part("1", "a"), with_field(user_line(&json!("DONE")), "isMeta", json!(true))],
            Some("a"),
        ),
        (
            "a person who quotes, and no answer yet",
            vec![text_part("1", "DONE"), user_line(&json!("say \"assistant\""))],
            None,
        ),
        ("a refusal, and no answer yet", vec![text_part("1", "DONE"), refusal_line("go on")], None),
    ];
    for (case_name, json_lines, expected_answer) in cases {
        assert_eq!(read_answer(&json_lines).as_deref(), expected_answer, "{case_name}");
    }
}

#[test]
fn older_forms_of_messages_are_read() {
    let plain_message = |message_text: &str| json!({"type": "assistant", "message": {"content": message_text}});
    let text_blocks = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let role_only_line = json!({"role": "assistant", "message": {"content": text_blocks}});
    assert_eq!(read_answer(&[plain_message("a")]).as_deref(), Some("a"));
    assert_eq!(
        read_answer(&[plain_message("a"), plain_message("b")]).as_deref(),
        Some("b"),
        "without ids lines are messages"
    );
    assert_eq!(read_answer(&[plain_message("DONE"), role_only_line]).as_deref(), Some("a\nb"));
    let odd_line = json!({"type": "assistant", "message": 7});
    assert_eq!(read_answer(&[text_part("1", "DONE"), odd_line, json!(["assistant"])]).as_deref(), Some(""));
}

#[test]
fn an_incomplete_last_line_is_ignored() {
    let complete_lines = join_lines(&[user_line(&json!("go")), text_part("1", "a")]);
    let last_line = text_part("2", "b é").to_string();
    for cut_offset in (0..last_line.len()).filter(|cut_offset| last_line.is_char_boundary(*cut_offset)) {
        assert_eq!(
            read_text_tail(CLAUDE, &format!("{complete_lines}{}", &last_line[..cut_offset])).answer.as_deref(),
            Some("a"),
            "{cut_offset}"
        );
    }
    assert_eq!(
        read_text_tail(CLAUDE, &format!("{complete_lines}{last_line}")).answer.as_deref(),
        Some("b é"),
        "only its end is missing"
    );
    let transcript_bytes = [complete_lines.as_bytes(), &last_line.as_bytes()[..last_line.len() - 20], b"\xc3"].concat();
    assert_eq!(
        read_tail(test_hook_client(CLAUDE), &mut Cursor::new(transcript_bytes), EVERYTHING).unwrap().answer.as_deref(),
        Some("a")
    );
}

#[test]
fn invalid_bytes_and_characters_are_replaced() {
    let half_character = text_part("1", "HALF").to_string().replace("HALF", r"a \ud83d");
    assert_eq!(read_text_tail(CLAUDE, &half_character).answer.as_deref(), Some("a \u{fffd}"));
    let transcript_bytes = text_part("1", "BYTE").to_string().into_bytes();
    let byte_position = transcript_bytes.windows(4).position(|byte_window| byte_window == b"BYTE").unwrap();
    let broken_bytes = [&transcript_bytes[..byte_position], b"\xff", &transcript_bytes[byte_position + 4..]].concat();
    assert_eq!(
        read_tail(test_hook_client(CLAUDE), &mut Cursor::new(broken_bytes), EVERYTHING).unwrap().answer.as_deref(),
        Some("\u{fffd}")
    );
    assert_eq!(
        read_text_tail(CLAUDE, &join_lines(&[text_part("1", "a")]).replace('\n', "\r\n")).answer.as_deref(),
        Some("a")
    );
}

#[test]
fn tools_since_the_last_refusal_of_claude_code() {
    let go_line = || user_line(&json!("go"));
    let in_sidechain = |json_line| with_field(json_line, "isSidechain", json!(true));
    let cases: Vec<(&str, Vec<Value>, Option<bool>)> = vec![
        ("no refusal", vec![go_line(), tool_call_part("1"), tool_result_line(), text_part("2", "a")], None),
        (
            "refused, nothing yet",
            vec![go_line(), tool_call_part("1"), tool_result_line(), text_part("2", "a"), refusal_line("r")],
            Some(false),
        ),
        (
            "refused, only words",
            vec![go_line(), tool_call_part("1"), tool_result_line(), refusal_line("r"), text_part("3", "b")],
            Some(false),
        ),
        (
            "refused, then a tool",
            vec![go_line(), refusal_line("r"), tool_call_part("3"), tool_result_line(), text_part("4", "b")],
            Some(true),
        ),
        (
            "before the last refusal only",
            vec![
                go_line(),
                refusal_line("q"),
                tool_call_part("3"),
                tool_result_line(),
                refusal_line("r"),
                text_part("4", "b"),
            ],
            Some(false),
        ),
        (
            "a sub-agent's tool",
            vec![go_line(), refusal_line("r"), in_sidechain(tool_call_part("3")), text_part("4", "b")],
            Some(false),
        ),
        (
            "a sub-agent's refusal",
            vec![
                go_line(),
                refusal_line("r"),
                tool_call_part("3"),
                in_sidechain(refusal_line("q")),
                text_part("4", "b"),
            ],
            Some(true),
        ),
        ("a person went on", vec![refusal_line("q"), tool_call_part("1"), go_line(), text_part("4", "b")], None),
        (
            "a person who quotes",
            vec![go_line(), refusal_line("r"), user_line(&json!("Stop hook feedback:\nx")), text_part("4", "b")],
            None,
        ),
        (
            "a compaction in between",
            vec![
                go_line(),
                refusal_line("r"),
                with_field(go_line(), "isCompactSummary", json!(true)),
                text_part("4", "b"),
            ],
            Some(false),
        ),
    ];
    for (case_name, json_lines, expected) in cases {
        let transcript_tail = read_text_tail(CLAUDE, &join_lines(&json_lines));
        assert_eq!(transcript_tail.tools_since_refusal, expected, "{case_name}");
        assert_eq!(transcript_tail.refusal.as_deref(), expected.map(|_| "Stop hook feedback:\nr"), "{case_name}");
    }
    let block_line = user_line(&json!([{"type": "text", "text": "Stop hook feedback:\n[hook.sh]: r"}]));
    let transcript_tail = read_text_tail(CLAUDE, &join_lines(&[with_field(block_line, "isMeta", json!(true))]));
    assert_eq!(transcript_tail.refusal.as_deref(), Some("Stop hook feedback:\n[hook.sh]: r"));
}

/// An item in the form of Codex 0.166.
fn codex_item(item_payload: &Value) -> Value {
    json!({"timestamp": "t", "ordinal": 1, "type": "response_item", "payload": item_payload, "metadata": {}})
}

fn codex_message(message_role: &str, content_type: &str, message_text: &str) -> Value {
    codex_item(&json!({
        "type": "message", "id": "m", "role": message_role,
        "content": [{"type": content_type, "text": message_text, "annotations": []}],
    }))
}

#[test]
fn the_tail_of_a_codex_transcript() {
    let model_says = |message_text| codex_message("assistant", "output_text", message_text);
    let user_says = |message_text| codex_message("user", "input_text", message_text);
    let refused_stop = || user_says("<hook_prompt hook_run_id=\"stop:0:hooks.json\">r</hook_prompt>");
    let calls_tool =
        || codex_item(&json!({"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c"}));
    let tool_output =
        || codex_item(&json!({"type": "function_call_output", "call_id": "c", "output": "\"message\" \"_call\""}));
    let event_line = with_field(model_says("e"), "type", json!("event_msg"));
    let compacted_line = with_field(model_says("c"), "type", json!("compacted"));
    let token_count_line = json!({"type": "event_msg", "payload": {"type": "token_count", "info": {}}});
    let environment_notice = || user_says("<environment_context>\n</environment_context>");
    let cases = [
        ("one answer", vec![user_says("go"), model_says("a"), token_count_line], Some("a"), None),
        (
            "the last of several",
            vec![
                user_says("go"),
                model_says("a"),
                calls_tool(),
                tool_output(),
                event_line,
                model_says("b"),
                compacted_line,
            ],
            Some("b"),
            None,
        ),
        ("only a call", vec![user_says("go"), model_says("DONE"), calls_tool(), tool_output()], Some(""), None),
        (
            "refused, only words",
            vec![user_says("go"), calls_tool(), refused_stop(), model_says("a")],
            Some("a"),
            Some(false),
        ),
        (
            "refused, then a tool",
            vec![refused_stop(), calls_tool(), tool_output(), environment_notice(), model_says("a")],
            Some("a"),
            Some(true),
        ),
        ("refused, and no answer yet", vec![model_says("DONE"), refused_stop()], None, Some(false)),
        ("a person went on", vec![refused_stop(), calls_tool(), user_says("go"), model_says("a")], Some("a"), None),
    ];
    for (case_name, json_lines, expected_answer, expected_tools) in cases {
        let transcript_tail = read_text_tail("codex", &join_lines(&json_lines));
        assert_eq!(
            (transcript_tail.answer.as_deref(), transcript_tail.tools_since_refusal),
            (expected_answer, expected_tools),
            "{case_name}"
        );
    }
}

#[test]
fn clients_with_unknown_transcripts_have_an_empty_tail() {
    for client_id in ["copilot", "gemini"] {
        assert_eq!(
            read_text_tail(client_id, &join_lines(&[user_line(&json!("go")), text_part("1", "a")])),
            TranscriptTail::default()
        );
    }
}

/// A file that counts the bytes that are read.
struct CountingReader<F> {
    file: F,
    bytes_read: u64,
}

impl<F: Read> Read for CountingReader<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read_count = self.file.read(buffer)?;
        self.bytes_read += read_count as u64;
        Ok(read_count)
    }
}

impl<F: Seek> Seek for CountingReader<F> {
    fn seek(&mut self, seek_target: SeekFrom) -> io::Result<u64> {
        self.file.seek(seek_target)
    }
}

/// A sparse file of a gigabyte that ends with this text.
fn gigabyte_file(end_text: &str) -> CountingReader<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(1 << 30).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(end_text.as_bytes()).unwrap();
    CountingReader { file, bytes_read: 0 }
}

#[test]
fn reading_a_gigabyte_costs_as_much_as_reading_a_page() {
    const READ_LIMIT: u64 = 8 << 20;
    let long_line = text_part("1", &"x".repeat(900 << 10));
    let too_long_line = user_line(&json!([{"type": "tool_result", "content": "x".repeat(5 << 20)}]));
    let go_line = user_line(&json!("go"));
    let cases = [
        ("a page", join_lines(&[go_line.clone(), text_part("1", "a")]), READ_SIZES.chunk_bytes as u64),
        // The line, at most as much again because reads double, and nothing more.
        ("a long line", join_lines(&[go_line.clone(), long_line]), 3 << 20),
        ("a line that is too long", join_lines(&[go_line, text_part("1", "a"), too_long_line]), 6 << 20),
        ("without any message", format!("\n{}", join_lines(&[text_part("1", "a")])), READ_LIMIT),
    ];
    for (case_name, end_text, max_read) in cases {
        let mut file = gigabyte_file(&format!("\n{end_text}"));
        assert!(read_tail(test_hook_client(CLAUDE), &mut file, READ_LIMIT).unwrap().answer.is_some(), "{case_name}");
        assert!(file.bytes_read <= max_read, "{case_name}: {} bytes", file.bytes_read);
    }
}

#[test]
fn the_answer_alone_is_found_without_the_work_before_it() {
    let work_lines: Vec<Value> =
        (0..20_000).flat_map(|turn_number| [tool_call_part(&turn_number.to_string()), tool_result_line()]).collect();
    let transcript_text = join_lines(&[work_lines, vec![text_part("last", "a")]].concat());
    let mut file = CountingReader { file: Cursor::new(&transcript_text), bytes_read: 0 };
    assert_eq!(read_last_answer(test_hook_client(CLAUDE), &mut file, EVERYTHING).unwrap().as_deref(), Some("a"));
    assert!(file.bytes_read <= READ_SIZES.chunk_bytes as u64, "{} of {} bytes", file.bytes_read, transcript_text.len());
}

#[test]
fn a_line_that_begins_before_the_limit_is_ignored() {
    let transcript_text = join_lines(&[text_part("1", "a"), text_part("2", "b")]);
    let last_length = text_part("2", "b").to_string().len() as u64 + 1;
    let read_within =
        |max_bytes| read_tail(test_hook_client(CLAUDE), &mut Cursor::new(&transcript_text), max_bytes).unwrap().answer;
    assert_eq!(read_within(0), None);
    assert_eq!(read_within(last_length), None, "whether it begins there cannot be seen");
    assert_eq!(read_within(last_length + 1).as_deref(), Some("b"));
}

/// Reads the same forwards, with everything in memory.
fn read_forwards(transcript_text: &str) -> TranscriptTail {
    let mut transcript_tail = TranscriptTail::default();
    let (mut last_id, mut message_parts): (Option<Value>, Vec<String>) = (None, Vec::new());
    let json_lines = transcript_text.split('\n').filter_map(|line_text| serde_json::from_str::<Value>(line_text).ok());
    for json_line in json_lines.filter(|json_line| json_line["isSidechain"] != true) {
        let content_blocks = match &json_line["message"]["content"] {
            Value::Array(content_blocks) => content_blocks.clone(),
            message_text => vec![json!({"type": "text", "text": message_text})],
        };
        let has_block =
            |block_type: &str| content_blocks.iter().any(|content_block| content_block["type"] == block_type);
        let text_blocks = content_blocks.iter().filter(|content_block| content_block["type"] == "text");
        let block_texts: Vec<String> =
            text_blocks.map(|content_block| content_block["text"].as_str().unwrap_or_default().to_owned()).collect();
        match json_line["type"].as_str() {
            Some("assistant") if json_line["isApiErrorMessage"] != true => {
                let message_id = Some(json_line["message"]["id"].clone());
                if message_id != last_id {
                    message_parts.clear();
                }
                (last_id, message_parts) = (message_id, [message_parts, block_texts].concat());
                if has_block("tool_use") {
                    transcript_tail.tools_since_refusal = transcript_tail.tools_since_refusal.map(|_| true);
                }
            }
            Some("user") if !has_block("tool_result") => {
                if json_line["isMeta"] != true {
                    (transcript_tail, last_id) = (TranscriptTail::default(), None);
                } else if block_texts[0].starts_with("Stop hook feedback") {
                    transcript_tail.tools_since_refusal = Some(false);
                    (transcript_tail.refusal, last_id) = (Some(block_texts[0].clone()), None);
                }
            }
            _ => (),
        }
        if last_id.is_none() {
            message_parts.clear();
        }
    }
    transcript_tail.answer = last_id.map(|_| message_parts.join("\n"));
    transcript_tail
}

fn any_line() -> impl Strategy<Value = String> {
    let any_id = prop::sample::select(vec!["1", "2", "3"]);
    let any_text = r#"[a-z"\\\\\n é😀{}]{0,12}"#;
    let line_strategy = prop_oneof![
        5 => (any_id.clone(), any_text).prop_map(|(id, text)| text_part(id, &text)),
        2 => any_id.clone().prop_map(tool_call_part),
        1 => any_id.prop_map(thinking_part),
        1 => Just(tool_result_line()),
        1 => any_text.prop_map(|text| refusal_line(&text)),
        1 => any_text.prop_map(|text| user_line(&json!(text))),
        1 => any_text.prop_map(|text| with_field(user_line(&json!(text)), "isMeta", json!(true))),
        1 => Just(json!({"type": "cost-state", "note": "\"assistant\" \"user\""})),
    ];
    let flag_strategy = prop::sample::select(vec!["", "", "", "", "isSidechain", "isApiErrorMessage"]);
    (line_strategy, flag_strategy, prop::option::weighted(0.1, any::<prop::sample::Index>())).prop_map(
        |(plain_line, odd_flag, cut_choice)| {
            let json_line =
                if odd_flag.is_empty() { plain_line } else { with_field(plain_line, odd_flag, json!(true)) };
            let mut line_text = json_line.to_string();
            if let Some(cut_choice) = cut_choice {
                let cut_index = cut_choice.index(line_text.len());
                line_text.truncate(
                    (0..=cut_index).rev().find(|cut_offset| line_text.is_char_boundary(*cut_offset)).unwrap(),
                );
            }
            line_text
        },
    )
}

proptest! {
    /// Also covers reads that end within a line or a character, and limits on how much is read.
    #[test]
    fn backwards_is_forwards(
        lines in prop::collection::vec(any_line(), 0..12),
        is_ended in any::<bool>(),
        chunk in 1..400usize,
        longest in prop::sample::select(vec![150, 250, 300, 1000]),
        at_most in prop::option::of(0..3000usize),
    ) {
        let mut text = lines.join("\n");
        text.push_str(if is_ended { "\n" } else { "" });
        let at_most = at_most.unwrap_or(usize::MAX);
        let seen: String = match text.len().checked_sub(at_most) {
            None | Some(0) => text.clone(),
            // The line in which the limit falls is ignored, and so is half a character, which can be in no other
            // line.
            Some(start) => {
                let bytes = &text.as_bytes()[start..];
                let first = bytes.iter().position(|byte| *byte == b'\n');
                first.map_or_else(String::new, |first| String::from_utf8(bytes[first + 1..].to_vec()).unwrap())
            }
        };
        let mut file = CountingReader { file: Cursor::new(&text), bytes_read: 0 };
        let read_sizes = ReadSizes { chunk_bytes: chunk, max_line_bytes: longest };
        let by = |read_until| ReadExtent { max_bytes: at_most as u64, read_sizes, read_until };
        let tail = read_extent(test_hook_client(CLAUDE), &mut file, &by(ReadUntil::LastInput)).unwrap();
        let less = read_extent(test_hook_client(CLAUDE), &mut Cursor::new(&text), &by(ReadUntil::LastAnswer)).unwrap();
        prop_assert_eq!(&less.answer, &tail.answer);
        let seen: Vec<&str> = seen.split('\n').filter(|line| line.len() <= longest).collect();
        prop_assert_eq!(tail, read_forwards(&seen.join("\n")));
        prop_assert!(file.bytes_read <= at_most as u64);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), chunk in 1..50usize) {
        for client in HookClient::all() {
            let read_sizes = ReadSizes { chunk_bytes: chunk, max_line_bytes: 100 };
            let extent = ReadExtent { max_bytes: EVERYTHING, read_sizes, read_until: ReadUntil::LastInput };
            let _ = read_extent(client, &mut Cursor::new(&bytes), &extent).unwrap();
        }
    }
}
