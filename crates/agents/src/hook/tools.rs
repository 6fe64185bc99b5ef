//! Finds the files that a tool call names and the command it runs, for each client.
//!
//! Whether that is allowed is decided in `guard`. An unknown tool counts as writing only if its name says so, and
//! arguments that cannot be read count as missing: the guard fails open.

use serde_json::Value;

use super::{HookClient, HookToolCall};
use crate::clients::hooks::ToolKind;

/// What a tool call is about to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookToolUse {
    pub tool_name: String,
    /// The paths as the client gave them.
    pub paths: Vec<String>,
    pub command: Option<String>,
    /// The directory in which the command runs, if the call gives one.
    pub working_dir: Option<String>,
    pub is_write: bool,
}

/// Describes what a tool call is about to do.
pub fn describe_tool_use(hook_client: HookClient, tool_call: &HookToolCall) -> HookToolUse {
    // The input may still be a JSON text; if an object is in it, that is the input.
    let parsed_input =
        tool_call.tool_input.as_str().and_then(|input_text| serde_json::from_str::<Value>(input_text).ok());
    let tool_input =
        parsed_input.as_ref().filter(|parsed_input| parsed_input.is_object()).unwrap_or(&tool_call.tool_input);
    let tool_kind = find_tool_kind(hook_client, &tool_call.tool_name);
    let mut described_use = HookToolUse { tool_name: tool_call.tool_name.clone(), ..HookToolUse::default() };
    match tool_kind {
        ToolKind::Reads => {}
        ToolKind::Writes => {
            // `str_replace_editor` is one tool with several commands, of which `view` only reads.
            described_use.is_write = find_text_field(tool_input, &["command"]) != Some("view");
            described_use.paths = collect_path_fields(tool_input);
        }
        // Patches can also be applied through the shell, and their files count like those of the patch tool.
        ToolKind::Shell => {
            described_use.command = tool_input.get("command").or_else(|| tool_input.get("cmd")).and_then(shell_command);
            described_use.working_dir =
                find_text_field(tool_input, &["directory", "dir_path", "workdir", "cwd"]).map(str::to_string);
            described_use.paths = described_use
                .command
                .as_deref()
                .filter(|command_text| command_text.contains("apply_patch"))
                .map(patched_files)
                .unwrap_or_default();
            described_use.is_write = !described_use.paths.is_empty();
        }
        ToolKind::Patch => {
            let patch_text = tool_input
                .as_str()
                .or_else(|| find_text_field(tool_input, &["command", "input", "patch", "patchText"]));
            // In a command that is a list of words, the patch is the last word.
            let last_word =
                tool_input.get("command").and_then(Value::as_array).and_then(|command_words| command_words.last());
            described_use.paths =
                patch_text.or(last_word.and_then(Value::as_str)).map(patched_files).unwrap_or_default();
            described_use.is_write = true;
        }
    }
    described_use
}

/// The kind of a tool: by the client's own tools first, then by what the name says with any client.
fn find_tool_kind(hook_client: HookClient, tool_name: &str) -> ToolKind {
    match hook_client.hooks.tool_kind(tool_name) {
        Some(own_kind) => own_kind,
        None if tool_name == "apply_patch" => ToolKind::Patch,
        None if is_writing_server_tool(tool_name) => ToolKind::Writes,
        None => ToolKind::Reads,
    }
}

/// Whether a tool of an MCP server writes, for example `mcp__files__write_file`. Only its name tells.
fn is_writing_server_tool(tool_name: &str) -> bool {
    const WRITING_VERBS: [&str; 8] = ["write", "edit", "create", "delete", "remove", "move", "rename", "append"];
    let own_name = tool_name
        .strip_prefix("mcp__")
        .and_then(|after_prefix| after_prefix.split_once("__"))
        .map(|(_, own_name)| own_name);
    let own_name = own_name.map(str::to_lowercase);
    // Whole words are compared: `rewrites` and `created_at` are no writing verbs.
    own_name.is_some_and(|own_name| own_name.split(['_', '-', '.']).any(|name_part| WRITING_VERBS.contains(&name_part)))
}

fn find_text_field<'v>(tool_input: &'v Value, field_names: &[&str]) -> Option<&'v str> {
    field_names.iter().find_map(|field_name| tool_input.get(field_name)?.as_str())
}

/// All paths in the arguments: moving and renaming have two.
fn collect_path_fields(tool_input: &Value) -> Vec<String> {
    const PATH_FIELDS: [&str; 10] = [
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
    PATH_FIELDS.iter().filter_map(|field_name| find_text_field(tool_input, &[field_name])).map(str::to_string).collect()
}

/// The command as a text for the shell. A list of words such as `["bash", "-lc", "ls"]` is quoted.
fn shell_command(command_value: &Value) -> Option<String> {
    if let Some(command_text) = command_value.as_str() {
        return Some(command_text.to_string());
    }
    let command_words: Vec<&str> = command_value.as_array()?.iter().filter_map(Value::as_str).collect();
    let quoted_words = command_words.iter().map(|command_word| format!("'{}'", command_word.replace('\'', "'\\''")));
    Some(quoted_words.collect::<Vec<_>>().join(" "))
}

/// The files of a patch in Codex's format.
fn patched_files(patch_text: &str) -> Vec<String> {
    const FILE_HEADERS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let header_path = |patch_line: &str| {
        FILE_HEADERS
            .iter()
            .find_map(|file_header| patch_line.strip_prefix(file_header))
            .map(|path_text| path_text.trim().to_string())
    };
    // The headers may be indented inside of a here-document.
    patch_text
        .lines()
        .filter_map(|patch_line| header_path(patch_line.trim_start()))
        .filter(|file_path| !file_path.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::hook::client::test_hook_client;

    fn render_tool_use(client_id: &str, tool_name: &str, tool_input: Value) -> String {
        let tool_call = HookToolCall { tool_name: tool_name.to_string(), tool_input, tool_response: None };
        let described_use = describe_tool_use(test_hook_client(client_id), &tool_call);
        let write_words = if described_use.is_write { "writes" } else { "does not write" };
        let directory_note = described_use.working_dir.map(|directory| format!(" in {directory}")).unwrap_or_default();
        let command_note = described_use
            .command
            .map(|command_text| format!(", runs {command_text:?}{directory_note}"))
            .unwrap_or_default();
        format!("{client_id} {tool_name}: {write_words} [{}]{command_note}", described_use.paths.join(" "))
    }

    #[test]
    fn every_client_names_files_and_commands_in_its_own_way() {
        let patch_text = "*** Begin Patch\n*** Add File: a b.md\n+x\n*** Update File: src/lib.rs\n*** Move to: src/main.rs\n@@\n-*** x\n\
            *** Delete File: /etc/x\n*** End Patch";
        let rendered_calls = [
            render_tool_use("claude-code", "Write", json!({ "file_path": "/p/a.md", "content": "x" })),
            render_tool_use(
                "claude-code",
                "Edit",
                json!({ "file_path": "/p/a.md", "old_string": "x", "new_string": "y" }),
            ),
            render_tool_use("claude-code", "MultiEdit", json!({ "file_path": "/p/a.md", "edits": [] })),
            render_tool_use("claude-code", "NotebookEdit", json!({ "notebook_path": "/p/a.ipynb", "new_source": "x" })),
            render_tool_use("claude-code", "Bash", json!({ "command": "ls", "description": "x" })),
            render_tool_use("claude-code", "Read", json!({ "file_path": "/etc/passwd" })),
            render_tool_use("claude-code", "Task", json!({ "prompt": "x" })),
            render_tool_use("claude-code", "mcp__files__write_file", json!({ "path": "/p/a.md", "content": "x" })),
            render_tool_use("claude-code", "mcp__files__move_file", json!({ "source": "a", "destination": "b" })),
            render_tool_use("claude-code", "mcp__files__read_file", json!({ "path": "/p/a.md" })),
            render_tool_use("claude-code", "mcp__files__rewrites", json!({ "path": "/p/a.md" })),
            render_tool_use("codex", "Bash", json!({ "command": "ls" })),
            render_tool_use("codex", "shell", json!({ "command": ["bash", "-lc", "echo it's"], "workdir": "/p" })),
            render_tool_use("codex", "apply_patch", json!({ "command": patch_text })),
            render_tool_use("codex", "apply_patch", json!({ "input": patch_text })),
            render_tool_use("codex", "apply_patch", json!({ "command": ["apply_patch", patch_text] })),
            render_tool_use("codex", "apply_patch", json!(patch_text)),
            render_tool_use("codex", "Bash", json!({ "command": format!("apply_patch <<'EOF'\n{patch_text}\nEOF") })),
            render_tool_use("gemini", "write_file", json!({ "file_path": "a.md", "content": "x" })),
            render_tool_use("gemini", "replace", json!({ "file_path": "a.md" })),
            render_tool_use("gemini", "run_shell_command", json!({ "command": "ls", "directory": "src" })),
            render_tool_use("gemini", "read_file", json!({ "absolute_path": "a.md" })),
            render_tool_use("copilot", "create", json!({ "path": "/p/a.md", "file_text": "x" })),
            render_tool_use("copilot", "edit", json!({ "path": "/p/a.md" })),
            render_tool_use("copilot", "str_replace_editor", json!({ "command": "view", "path": "/p/a.md" })),
            render_tool_use("copilot", "bash", json!({ "command": "ls" })),
            render_tool_use("copilot", "bash", json!("{\"command\":\"ls\"}")),
            render_tool_use("copilot", "view", json!({ "path": "/p/a.md" })),
            render_tool_use("claude-code", "Bash", json!({ "command": 7 })),
            render_tool_use("claude-code", "Write", json!(null)),
        ];
        insta::assert_snapshot!(rendered_calls.join("\n"));
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(name in "(Bash|Write|apply_patch|mcp__a__write|.{0,8})", text in ".{0,40}") {
            for input in [json!(text), json!({ "command": text, "path": [text] }), json!([text])] {
                for client in HookClient::all() {
                    describe_tool_use(client, &HookToolCall { tool_name: name.clone(), tool_input: input.clone(), tool_response: None });
                }
            }
        }
    }
}
