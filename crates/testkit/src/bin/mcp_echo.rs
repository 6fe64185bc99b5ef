//! `mcp-echo [--writes]`: an MCP server over standard input and output with one tool, `echo`, that returns its argument. It is
//! for tests that check whether a client was given a server and whether it may use it. With `--writes` the tool declares that
//! it changes things, which clients handle more carefully.

use std::io::{self, BufRead, Write, stdin, stdout};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let writes = std::env::args().any(|argument| argument == "--writes");
    for line in stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        // A message without an id is a notification and gets no answer.
        let Some(id) = message.get("id") else { continue };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": call_result(&message, writes)});
        writeln!(stdout(), "{answer}")?;
        stdout().flush()?;
    }
    Ok(())
}

fn call_result(message: &Value, writes: bool) -> Value {
    let params = message.get("params").cloned().unwrap_or_default();
    match message.get("method").and_then(Value::as_str) {
        Some("initialize") => json!({
            "protocolVersion": params.get("protocolVersion").cloned().unwrap_or_else(|| json!("2025-06-18")),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [{
            "name": "echo",
            "description": "Returns its argument.",
            "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
            "annotations": {"readOnlyHint": !writes, "destructiveHint": writes},
        }]}),
        Some("tools/call") => {
            let words = params.pointer("/arguments/words").and_then(Value::as_str).unwrap_or_default();
            json!({"content": [{"type": "text", "text": format!("echo: {words}")}]})
        }
        _ => json!({}),
    }
}
