//! Generates sessions of any length, line by line in the formats that Claude Code writes.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

#[derive(Clone, Copy)]
pub struct SessionSize {
    pub name: &'static str,
    bytes: u64,
}

pub const SESSION_SIZES: [SessionSize; 3] = [
    SessionSize { name: "20 KB", bytes: 20_000 },
    SessionSize { name: "200 MB", bytes: 200_000_000 },
    SessionSize { name: "1 GB", bytes: 1_000_000_000 },
];

/// The last answer of the model.
pub const LAST_ANSWER: &str =
    "Two tests still fail; I have not found out why. I will say <promise>ALL TESTS PASS soon.";

/// Returns the session of this size; it is written if it does not exist.
pub fn session_file(bench_dir: &Path, size: SessionSize) -> Result<PathBuf> {
    let session_path = bench_dir.join(format!("session-{}.jsonl", size.bytes));
    if fs::metadata(&session_path).is_ok_and(|file_metadata| file_metadata.len() >= size.bytes) {
        return Ok(session_path);
    }
    fs::create_dir_all(bench_dir).with_context(|| format!("cannot create {}", bench_dir.display()))?;
    // An interrupted write must not leave a short file that looks complete.
    let partial_path = session_path.with_extension("part");
    write_session(&partial_path, size.bytes).with_context(|| format!("cannot write {}", partial_path.display()))?;
    fs::rename(&partial_path, &session_path)?;
    Ok(session_path)
}

/// Writes one prompt, then work without any other user message, then the answer.
fn write_session(session_path: &Path, min_bytes: u64) -> Result<()> {
    let mut session_writer = BufWriter::new(File::create(session_path)?);
    let mut written_bytes = 0;
    let mut put_line = |line: &Value| -> Result<u64> {
        let line = line.to_string();
        writeln!(session_writer, "{line}")?;
        written_bytes += line.len() as u64 + 1;
        Ok(written_bytes)
    };
    put_line(&session_line("user", json!({"role": "user", "content": "Make all tests pass."})))?;
    'work: for turn in 0.. {
        for line in work_lines(turn) {
            if put_line(&line)? >= min_bytes {
                break 'work;
            }
        }
    }
    put_line(&assistant_line(u64::MAX, json!({"type": "text", "text": LAST_ANSWER})))?;
    put_line(&json!({"type": "last-prompt", "lastPrompt": "Make all tests pass."}))?;
    Ok(session_writer.flush()?)
}

/// One step of the work: a thought, a text, a tool call, its result, and what the client records beside them.
fn work_lines(turn: u64) -> Vec<Value> {
    let code_line = "    assert_eq!(answer(\"who is \\\"assistant\\\"?\"), Ok(42)); // still red\n";
    // Most tool results are short, some are whole files.
    let line_count = if turn % 16 == 15 { 400 } else { 20 };
    let result = json!([{
        "tool_use_id": format!("toolu_{turn}"), "type": "tool_result", "content": code_line.repeat(line_count), "is_error": false,
    }]);
    vec![
        assistant_line(turn, json!({"type": "thinking", "thinking": "Why is it red?", "signature": "c2ln".repeat(40)})),
        assistant_line(turn, json!({"type": "text", "text": "I look at the next test."})),
        assistant_line(
            turn,
            json!({"type": "tool_use", "id": format!("toolu_{turn}"), "name": "Bash", "input": {"command": "cargo test"}}),
        ),
        session_line("user", json!({"role": "user", "content": result})),
        json!({"type": "attachment", "isSidechain": false, "attachment": {"type": "todo", "items": ["a", "b"]}, "uuid": "u"}),
        json!({"type": "api-request", "sessionId": "s", "id": format!("{turn}"), "params": {"max_tokens": 128_000}}),
    ]
}

fn assistant_line(turn: u64, block: Value) -> Value {
    let message = json!({
        "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [block],
        "stop_reason": null, "usage": {"input_tokens": 60, "cache_read_input_tokens": 40_000, "output_tokens": 20},
    });
    session_line("assistant", message)
}

fn session_line(kind: &str, message: Value) -> Value {
    json!({
        "parentUuid": "724c8947-154d-4fcc-a0fe-df1bdfcc9206", "isSidechain": false, "type": kind, "message": message,
        "uuid": "4eecb8a9-6a06-46d1-b13f-3d1642fc68b9", "timestamp": "2026-11-15T21:05:31.838Z", "userType": "external",
        "cwd": "project", "sessionId": "5745e48a-069b-4256-b0f9-b1c83ddda295", "version": "2.1.325", "gitBranch": "HEAD",
    })
}
