//! Finds the files that a tool call names and the command it runs, for each client.
//!
//! Whether that is allowed is decided in `guard`. An unknown tool counts as writing only if its name says so, and
//! arguments that cannot be read count as missing: the guard fails open.

use serde_json::Value;

use super::{HookClient, ToolCall};
use crate::clients::hooks::ToolKind;

/// What a tool call is about to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub tool: String,
    /// The paths as the client gave them.
    pub paths: Vec<String>,
    pub command: Option<String>,
    /// The directory in which the command runs, if the call gives one.
    pub folder: Option<String>,
    pub writes: bool,
}

/// Describes what a tool call is about to do.
pub fn tool_use(client: HookClient, call: &ToolCall) -> Used {
    // An earlier version of Copilot passed the input as a JSON text.
    let parsed = call.input.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let input = parsed.as_ref().filter(|parsed| parsed.is_object()).unwrap_or(&call.input);
    let kind = kind(client, &call.name);
    let mut used = Used { tool: call.name.clone(), ..Used::default() };
    match kind {
        ToolKind::Reads => {}
        ToolKind::Writes => {
            // Copilot's older editor is one tool with commands, of which `view` only reads.
            used.writes = text(input, &["command"]) != Some("view");
            used.paths = paths(input);
        }
        // Patches can also be applied through the shell, and their files count like those of the patch tool.
        ToolKind::Shell => {
            used.command = input.get("command").or_else(|| input.get("cmd")).and_then(command);
            used.folder = text(input, &["directory", "dir_path", "workdir", "cwd"]).map(str::to_string);
            used.paths = used
                .command
                .as_deref()
                .filter(|text| text.contains("apply_patch"))
                .map(patched)
                .unwrap_or_default();
            used.writes = !used.paths.is_empty();
        }
        ToolKind::Patch => {
            let patch = input.as_str().or_else(|| text(input, &["command", "input", "patch", "patchText"]));
            // The patch is the last word of a command line.
            let words = input.get("command").and_then(Value::as_array).and_then(|words| words.last());
            used.paths = patch.or(words.and_then(Value::as_str)).map(patched).unwrap_or_default();
            used.writes = true;
        }
    }
    used
}

/// The kind of a tool: by the client's own tools first, then by what the name says with any client.
fn kind(client: HookClient, name: &str) -> ToolKind {
    match client.hooks.tool_kind(name) {
        Some(kind) => kind,
        None if name == "apply_patch" => ToolKind::Patch,
        None if of_a_server(name) => ToolKind::Writes,
        None => ToolKind::Reads,
    }
}

/// Whether a tool of an MCP server writes, for example `mcp__files__write_file`. Only its name tells.
fn of_a_server(name: &str) -> bool {
    const VERBS: [&str; 8] = ["write", "edit", "create", "delete", "remove", "move", "rename", "append"];
    let own = name.strip_prefix("mcp__").and_then(|name| name.split_once("__")).map(|(_, own)| own);
    let own = own.map(str::to_lowercase);
    // Whole words are compared: `rewrites` and `created_at` are no writing verbs.
    own.is_some_and(|own| own.split(['_', '-', '.']).any(|word| VERBS.contains(&word)))
}

fn text<'v>(input: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| input.get(name)?.as_str())
}

/// All paths in the arguments: moving and renaming have two.
fn paths(input: &Value) -> Vec<String> {
    const NAMES: [&str; 10] = [
        "file_path",
        "notebook_path",
        "path",
        "filePath",
        "absolute_path",
        "filename",
        "source",
        "destination",
        "old_path",
        "new_path",
    ];
    NAMES.iter().filter_map(|name| text(input, &[name])).map(str::to_string).collect()
}

/// The command as a text for the shell. A list of words such as `["bash", "-lc", "ls"]` is quoted.
fn command(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_string());
    }
    let words: Vec<&str> = value.as_array()?.iter().filter_map(Value::as_str).collect();
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    Some(quoted.collect::<Vec<_>>().join(" "))
}

/// The files of a patch in Codex's format.
fn patched(patch: &str) -> Vec<String> {
    const HEADS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let file = |line: &str| {
        HEADS.iter().find_map(|head| line.strip_prefix(head)).map(|path| path.trim().to_string())
    };
    // The headers may be indented inside of a here-document.
    patch.lines().filter_map(|line| file(line.trim_start())).filter(|path| !path.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::hook::client::hook_client;

    fn drawn(client: &str, name: &str, input: Value) -> String {
        let call = ToolCall { name: name.to_string(), input, response: None };
        let used = tool_use(hook_client(client), &call);
        let writes = if used.writes { "writes" } else { "does not write" };
        let folder = used.folder.map(|folder| format!(" in {folder}")).unwrap_or_default();
        let command = used.command.map(|command| format!(", runs {command:?}{folder}")).unwrap_or_default();
        format!("{client} {name}: {writes} [{}]{command}", used.paths.join(" "))
    }

    #[test]
    fn every_client_names_files_and_commands_in_its_own_way() {
        let patch = "*** Begin Patch\n*** Add File: a b.md\n+x\n*** Update File: src/lib.rs\n*** Move to: src/main.rs\n@@\n-*** x\n\
            *** Delete File: /etc/x\n*** End Patch";
        let all = [
            drawn("claude-code", "Write", json!({ "file_path": "/p/a.md", "content": "x" })),
            drawn(
                "claude-code",
                "Edit",
                json!({ "file_path": "/p/a.md", "old_string": "x", "new_string": "y" }),
            ),
            drawn("claude-code", "MultiEdit", json!({ "file_path": "/p/a.md", "edits": [] })),
            drawn("claude-code", "NotebookEdit", json!({ "notebook_path": "/p/a.ipynb", "new_source": "x" })),
            drawn("claude-code", "Bash", json!({ "command": "ls", "description": "x" })),
            drawn("claude-code", "Read", json!({ "file_path": "/etc/passwd" })),
            drawn("claude-code", "Task", json!({ "prompt": "x" })),
            drawn("claude-code", "mcp__files__write_file", json!({ "path": "/p/a.md", "content": "x" })),
            drawn("claude-code", "mcp__files__move_file", json!({ "source": "a", "destination": "b" })),
            drawn("claude-code", "mcp__files__read_file", json!({ "path": "/p/a.md" })),
            drawn("claude-code", "mcp__files__rewrites", json!({ "path": "/p/a.md" })),
            drawn("codex", "Bash", json!({ "command": "ls" })),
            drawn("codex", "shell", json!({ "command": ["bash", "-lc", "echo it's"], "workdir": "/p" })),
            drawn("codex", "apply_patch", json!({ "command": patch })),
            drawn("codex", "apply_patch", json!({ "input": patch })),
            drawn("codex", "apply_patch", json!({ "command": ["apply_patch", patch] })),
            drawn("codex", "apply_patch", json!(patch)),
            drawn("codex", "Bash", json!({ "command": format!("apply_patch <<'EOF'\n{patch}\nEOF") })),
            drawn("gemini", "write_file", json!({ "file_path": "a.md", "content": "x" })),
            drawn("gemini", "replace", json!({ "file_path": "a.md" })),
            drawn("gemini", "run_shell_command", json!({ "command": "ls", "directory": "src" })),
            drawn("gemini", "read_file", json!({ "absolute_path": "a.md" })),
            drawn("copilot", "create", json!({ "path": "/p/a.md", "file_text": "x" })),
            drawn("copilot", "edit", json!({ "path": "/p/a.md" })),
            drawn("copilot", "str_replace_editor", json!({ "command": "view", "path": "/p/a.md" })),
            drawn("copilot", "bash", json!({ "command": "ls" })),
            drawn("copilot", "bash", json!("{\"command\":\"ls\"}")),
            drawn("copilot", "view", json!({ "path": "/p/a.md" })),
            drawn("claude-code", "Bash", json!({ "command": 7 })),
            drawn("claude-code", "Write", json!(null)),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(name in "(Bash|Write|apply_patch|mcp__a__write|.{0,8})", text in ".{0,40}") {
            for input in [json!(text), json!({ "command": text, "path": [text] }), json!([text])] {
                for client in HookClient::all() {
                    tool_use(client, &ToolCall { name: name.clone(), input: input.clone(), response: None });
                }
            }
        }
    }
}
