//! Reading a transcript backwards gives the same result as reading it forwards.

use std::fs::File;
use std::io::{Cursor, SeekFrom, Write as _};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::hook::client::hook_client;

const ALL: u64 = u64::MAX;

const CLAUDE: &str = "claude-code";

fn tail(client: &str, text: &str) -> Tail {
    read_back(hook_client(client), &mut Cursor::new(text), ALL).unwrap()
}

/// A line of Claude Code with one part of a message.
fn part(id: &str, block: &Value) -> Value {
    let message = json!({"id": id, "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [block]});
    json!({"parentUuid": "p", "isSidechain": false, "message": message, "apiBlockIndex": 0, "type": "assistant", "uuid": "u"})
}

fn said(id: &str, text: &str) -> Value {
    part(id, &json!({"type": "text", "text": text}))
}

fn call(id: &str) -> Value {
    part(
        id,
        &json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls", "type": "text", "text": "no"}}),
    )
}

fn thought(id: &str) -> Value {
    part(id, &json!({"type": "thinking", "thinking": "<promise>DONE</promise>", "signature": "s"}))
}

fn user(content: &Value) -> Value {
    json!({"isSidechain": false, "type": "user", "message": {"role": "user", "content": content}, "uuid": "u"})
}

fn result() -> Value {
    user(
        &json!([{"tool_use_id": "t", "type": "tool_result", "content": "a \"assistant\" b", "is_error": false}]),
    )
}

fn refusal(reason: &str) -> Value {
    with(user(&json!(format!("Stop hook feedback:\n{reason}"))), "isMeta", json!(true))
}

fn with(mut line: Value, name: &str, value: Value) -> Value {
    line[name] = value;
    line
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn answer(of: &[Value]) -> Option<String> {
    tail(CLAUDE, &lines(of)).answer
}

#[test]
fn the_last_answer_of_claude_code() {
    let synthetic = |mut line: Value| {
        line["message"]["model"] = "<synthetic>".into();
        line
    };
    let blob = json!({"type": "api-request-blob", "message": {"role": "assistant", "content": [{"type": "text", "text": "blob"}]}});
    let cases: Vec<(&str, Vec<Value>, Option<&str>)> = vec![
        ("an empty file", vec![], None),
        ("one message", vec![user(&json!("go")), said("1", "hello")], Some("hello")),
        ("the last of several", vec![said("1", "a"), result(), said("2", "b")], Some("b")),
        (
            "several lines of one message",
            vec![said("0", "z"), said("1", "a"), thought("1"), said("1", "b")],
            Some("a\nb"),
        ),
        ("text before a call", vec![said("1", "a"), call("1"), result()], Some("a")),
        (
            "parts with results in between",
            vec![said("1", "a"), call("1"), result(), said("1", "b")],
            Some("a\nb"),
        ),
        ("only a call: no promise", vec![said("1", "DONE"), result(), call("2"), result()], Some("")),
        ("only a thought", vec![said("1", "DONE"), thought("2")], Some("")),
        ("no text in its text", vec![said("1", "")], Some("")),
        (
            "a sub-agent's",
            vec![said("1", "a"), with(said("2", "DONE"), "isSidechain", json!(true))],
            Some("a"),
        ),
        (
            "an error's",
            vec![said("1", "a"), with(said("2", "DONE"), "isApiErrorMessage", json!(true))],
            Some("a"),
        ),
        ("a made-up one", vec![said("1", "a"), synthetic(said("2", "DONE"))], Some("a")),
        ("lines that only look alike", vec![said("1", "a"), blob], Some("a")),
        (
            "what stands last in a finished file",
            vec![said("1", "a"), json!({"type": "cost-state", "cost": 1})],
            Some("a"),
        ),
        ("an answer of a tool that quotes", vec![said("1", "a"), call("1"), result()], Some("a")),
        (
            "words of the client",
            vec![said("1", "a"), with(user(&json!("DONE")), "isMeta", json!(true))],
            Some("a"),
        ),
        (
            "a person who quotes, and no answer yet",
            vec![said("1", "DONE"), user(&json!("say \"assistant\""))],
            None,
        ),
        ("a refusal, and no answer yet", vec![said("1", "DONE"), refusal("go on")], None),
    ];
    for (name, of, wanted) in cases {
        assert_eq!(answer(&of).as_deref(), wanted, "{name}");
    }
}

#[test]
fn other_shapes_of_messages() {
    let plain = |text: &str| json!({"type": "assistant", "message": {"content": text}});
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let wiggum = json!({"role": "assistant", "message": {"content": blocks}});
    assert_eq!(answer(&[plain("a")]).as_deref(), Some("a"));
    assert_eq!(answer(&[plain("a"), plain("b")]).as_deref(), Some("b"), "without ids lines are messages");
    assert_eq!(answer(&[plain("DONE"), wiggum]).as_deref(), Some("a\nb"));
    let odd = json!({"type": "assistant", "message": 7});
    assert_eq!(answer(&[said("1", "DONE"), odd, json!(["assistant"])]).as_deref(), Some(""));
}

#[test]
fn half_a_line_at_the_end_is_not_there() {
    let whole = lines(&[user(&json!("go")), said("1", "a")]);
    let last = said("2", "b é").to_string();
    for cut in (0..last.len()).filter(|cut| last.is_char_boundary(*cut)) {
        assert_eq!(tail(CLAUDE, &format!("{whole}{}", &last[..cut])).answer.as_deref(), Some("a"), "{cut}");
    }
    assert_eq!(
        tail(CLAUDE, &format!("{whole}{last}")).answer.as_deref(),
        Some("b é"),
        "only its end is missing"
    );
    let bytes = [whole.as_bytes(), &last.as_bytes()[..last.len() - 20], b"\xc3"].concat();
    assert_eq!(
        read_back(hook_client(CLAUDE), &mut Cursor::new(bytes), ALL).unwrap().answer.as_deref(),
        Some("a")
    );
}

#[test]
fn bytes_and_characters_that_are_none_are_replaced() {
    let half = said("1", "HALF").to_string().replace("HALF", r"a \ud83d");
    assert_eq!(tail(CLAUDE, &half).answer.as_deref(), Some("a \u{fffd}"));
    let bytes = said("1", "BYTE").to_string().into_bytes();
    let at = bytes.windows(4).position(|word| word == b"BYTE").unwrap();
    let bytes = [&bytes[..at], b"\xff", &bytes[at + 4..]].concat();
    assert_eq!(
        read_back(hook_client(CLAUDE), &mut Cursor::new(bytes), ALL).unwrap().answer.as_deref(),
        Some("\u{fffd}")
    );
    assert_eq!(tail(CLAUDE, &lines(&[said("1", "a")]).replace('\n', "\r\n")).answer.as_deref(), Some("a"));
}

#[test]
fn tools_since_the_last_refusal_of_claude_code() {
    let go = || user(&json!("go"));
    let aside = |line| with(line, "isSidechain", json!(true));
    let cases: Vec<(&str, Vec<Value>, Option<bool>)> = vec![
        ("no refusal", vec![go(), call("1"), result(), said("2", "a")], None),
        ("refused, nothing yet", vec![go(), call("1"), result(), said("2", "a"), refusal("r")], Some(false)),
        ("refused, only words", vec![go(), call("1"), result(), refusal("r"), said("3", "b")], Some(false)),
        ("refused, then a tool", vec![go(), refusal("r"), call("3"), result(), said("4", "b")], Some(true)),
        (
            "before the last refusal only",
            vec![go(), refusal("q"), call("3"), result(), refusal("r"), said("4", "b")],
            Some(false),
        ),
        ("a sub-agent's tool", vec![go(), refusal("r"), aside(call("3")), said("4", "b")], Some(false)),
        (
            "a sub-agent's refusal",
            vec![go(), refusal("r"), call("3"), aside(refusal("q")), said("4", "b")],
            Some(true),
        ),
        ("a person went on", vec![refusal("q"), call("1"), go(), said("4", "b")], None),
        (
            "a person who quotes",
            vec![go(), refusal("r"), user(&json!("Stop hook feedback:\nx")), said("4", "b")],
            None,
        ),
        (
            "a compaction in between",
            vec![go(), refusal("r"), with(go(), "isCompactSummary", json!(true)), said("4", "b")],
            Some(false),
        ),
    ];
    for (name, of, wanted) in cases {
        let tail = tail(CLAUDE, &lines(&of));
        assert_eq!(tail.tools_since_refusal, wanted, "{name}");
        assert_eq!(tail.refusal.as_deref(), wanted.map(|_| "Stop hook feedback:\nr"), "{name}");
    }
    let blocks = user(&json!([{"type": "text", "text": "Stop hook feedback:\n[hook.sh]: r"}]));
    let tail = tail(CLAUDE, &lines(&[with(blocks, "isMeta", json!(true))]));
    assert_eq!(tail.refusal.as_deref(), Some("Stop hook feedback:\n[hook.sh]: r"));
}

/// An item in the form of Codex 0.166.
fn item(payload: &Value) -> Value {
    json!({"timestamp": "t", "ordinal": 1, "type": "response_item", "payload": payload, "metadata": {}})
}

fn codex(role: &str, kind: &str, text: &str) -> Value {
    item(
        &json!({"type": "message", "id": "m", "role": role, "content": [{"type": kind, "text": text, "annotations": []}]}),
    )
}

#[test]
fn the_end_of_a_session_of_codex() {
    let says = |text| codex("assistant", "output_text", text);
    let told = |text| codex("user", "input_text", text);
    let refused = || told("<hook_prompt hook_run_id=\"stop:0:hooks.json\">r</hook_prompt>");
    let calls =
        || item(&json!({"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c"}));
    let result =
        || item(&json!({"type": "function_call_output", "call_id": "c", "output": "\"message\" \"_call\""}));
    let event = with(says("e"), "type", json!("event_msg"));
    let compacted = with(says("c"), "type", json!("compacted"));
    let count = json!({"type": "event_msg", "payload": {"type": "token_count", "info": {}}});
    let surroundings = || told("<environment_context>\n</environment_context>");
    let cases = [
        ("one answer", vec![told("go"), says("a"), count], Some("a"), None),
        (
            "the last of several",
            vec![told("go"), says("a"), calls(), result(), event, says("b"), compacted],
            Some("b"),
            None,
        ),
        ("only a call", vec![told("go"), says("DONE"), calls(), result()], Some(""), None),
        ("refused, only words", vec![told("go"), calls(), refused(), says("a")], Some("a"), Some(false)),
        (
            "refused, then a tool",
            vec![refused(), calls(), result(), surroundings(), says("a")],
            Some("a"),
            Some(true),
        ),
        ("refused, and no answer yet", vec![says("DONE"), refused()], None, Some(false)),
        ("a person went on", vec![refused(), calls(), told("go"), says("a")], Some("a"), None),
    ];
    for (name, of, answer, tools) in cases {
        let tail = tail("codex", &lines(&of));
        assert_eq!((tail.answer.as_deref(), tail.tools_since_refusal), (answer, tools), "{name}");
    }
}

#[test]
fn nothing_is_claimed_of_clients_whose_sessions_are_not_understood() {
    for client in ["copilot", "gemini"] {
        assert_eq!(tail(client, &lines(&[user(&json!("go")), said("1", "a")])), Tail::default());
    }
}

/// A file that counts the bytes that are read.
struct Counting<F> {
    file: F,
    read: u64,
}

impl<F: Read> Read for Counting<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

impl<F: Seek> Seek for Counting<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// A sparse file of a gigabyte that ends with this text.
fn gigabyte(end: &str) -> Counting<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(1 << 30).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(end.as_bytes()).unwrap();
    Counting { file, read: 0 }
}

#[test]
fn a_gigabyte_costs_what_a_page_costs() {
    const MOST: u64 = 8 << 20;
    let long = said("1", &"x".repeat(900 << 10));
    let too_long = user(&json!([{"type": "tool_result", "content": "x".repeat(5 << 20)}]));
    let go = user(&json!("go"));
    let cases = [
        ("a page", lines(&[go.clone(), said("1", "a")]), SIZES.chunk as u64),
        // The line, at most as much again because reads double, and nothing more.
        ("a long line", lines(&[go.clone(), long]), 3 << 20),
        ("a line that is too long", lines(&[go, said("1", "a"), too_long]), 6 << 20),
        ("nobody said anything", format!("\n{}", lines(&[said("1", "a")])), MOST),
    ];
    for (name, end, most) in cases {
        let mut file = gigabyte(&format!("\n{end}"));
        assert!(read_back(hook_client(CLAUDE), &mut file, MOST).unwrap().answer.is_some(), "{name}");
        assert!(file.read <= most, "{name}: {} bytes", file.read);
    }
}

#[test]
fn the_answer_alone_is_found_without_the_work_before_it() {
    let work: Vec<Value> = (0..20_000).flat_map(|turn| [call(&turn.to_string()), result()]).collect();
    let text = lines(&[work, vec![said("last", "a")]].concat());
    let mut file = Counting { file: Cursor::new(&text), read: 0 };
    assert_eq!(last_answer(hook_client(CLAUDE), &mut file, ALL).unwrap().as_deref(), Some("a"));
    assert!(file.read <= SIZES.chunk as u64, "{} of {} bytes", file.read, text.len());
}

#[test]
fn a_line_that_begins_too_early_is_not_there() {
    let text = lines(&[said("1", "a"), said("2", "b")]);
    let last = said("2", "b").to_string().len() as u64 + 1;
    let read = |at_most| read_back(hook_client(CLAUDE), &mut Cursor::new(&text), at_most).unwrap().answer;
    assert_eq!(read(0), None);
    assert_eq!(read(last), None, "whether it begins there cannot be seen");
    assert_eq!(read(last + 1).as_deref(), Some("b"));
}

/// Reads the same forwards, with everything in memory.
fn oracle(text: &str) -> Tail {
    let mut tail = Tail::default();
    let (mut last, mut parts): (Option<Value>, Vec<String>) = (None, Vec::new());
    let lines = text.split('\n').filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for line in lines.filter(|line| line["isSidechain"] != true) {
        let blocks = match &line["message"]["content"] {
            Value::Array(blocks) => blocks.clone(),
            text => vec![json!({"type": "text", "text": text})],
        };
        let has = |kind: &str| blocks.iter().any(|block| block["type"] == kind);
        let texts = blocks.iter().filter(|block| block["type"] == "text");
        let texts: Vec<String> =
            texts.map(|block| block["text"].as_str().unwrap_or_default().to_owned()).collect();
        match line["type"].as_str() {
            Some("assistant") if line["isApiErrorMessage"] != true => {
                let id = Some(line["message"]["id"].clone());
                if id != last {
                    parts.clear();
                }
                (last, parts) = (id, [parts, texts].concat());
                if has("tool_use") {
                    tail.tools_since_refusal = tail.tools_since_refusal.map(|_| true);
                }
            }
            Some("user") if !has("tool_result") => {
                if line["isMeta"] != true {
                    (tail, last) = (Tail::default(), None);
                } else if texts[0].starts_with("Stop hook feedback") {
                    tail.tools_since_refusal = Some(false);
                    (tail.refusal, last) = (Some(texts[0].clone()), None);
                }
            }
            _ => (),
        }
        if last.is_none() {
            parts.clear();
        }
    }
    tail.answer = last.map(|_| parts.join("\n"));
    tail
}

fn any_line() -> impl Strategy<Value = String> {
    let id = prop::sample::select(vec!["1", "2", "3"]);
    let text = r#"[a-z"\\\\\n é😀{}]{0,12}"#;
    let line = prop_oneof![
        5 => (id.clone(), text).prop_map(|(id, text)| said(id, &text)),
        2 => id.clone().prop_map(call),
        1 => id.prop_map(thought),
        1 => Just(result()),
        1 => text.prop_map(|text| refusal(&text)),
        1 => text.prop_map(|text| user(&json!(text))),
        1 => text.prop_map(|text| with(user(&json!(text)), "isMeta", json!(true))),
        1 => Just(json!({"type": "cost-state", "note": "\"assistant\" \"user\""})),
    ];
    let odd = prop::sample::select(vec!["", "", "", "", "isSidechain", "isApiErrorMessage"]);
    (line, odd, prop::option::weighted(0.1, any::<prop::sample::Index>())).prop_map(|(line, odd, cut)| {
        let line = if odd.is_empty() { line } else { with(line, odd, json!(true)) };
        let mut line = line.to_string();
        if let Some(cut) = cut {
            let cut = cut.index(line.len());
            line.truncate((0..=cut).rev().find(|cut| line.is_char_boundary(*cut)).unwrap());
        }
        line
    })
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
        let mut file = Counting { file: Cursor::new(&text), read: 0 };
        let by = |until| Extent { at_most: at_most as u64, sizes: Sizes { chunk, longest }, until };
        let tail = read_by(hook_client(CLAUDE), &mut file, &by(Until::Told)).unwrap();
        let less = read_by(hook_client(CLAUDE), &mut Cursor::new(&text), &by(Until::Answer)).unwrap();
        prop_assert_eq!(&less.answer, &tail.answer);
        let seen: Vec<&str> = seen.split('\n').filter(|line| line.len() <= longest).collect();
        prop_assert_eq!(tail, oracle(&seen.join("\n")));
        prop_assert!(file.read <= at_most as u64);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), chunk in 1..50usize) {
        for client in HookClient::all() {
            let extent = Extent { at_most: ALL, sizes: Sizes { chunk, longest: 100 }, until: Until::Told };
            let _ = read_by(client, &mut Cursor::new(&bytes), &extent).unwrap();
        }
    }
}
