//! Maps abstract tool calls onto the tools that a client offers.
//!
//! A tool is found by its name, and its parameters by the names in its schema, so one scenario drives all clients. Clients
//! without tools for files (Codex) get a command line instead. For models that it knows, Codex offers one tool that takes a
//! program; that program then calls the actual tool.

use serde_json::{Map, Value, json};

use super::{
    request::{ModelRequest, OfferedTool},
    scenario::ScenarioCall,
};

#[derive(Debug)]
pub(super) struct ToolCall {
    pub name: String,
    pub group: Option<String>,
    /// Whether the input is text instead of an object.
    pub takes_text: bool,
    pub input: Value,
}

/// The client offered no tool that could do this.
#[derive(Debug, thiserror::Error)]
#[error("no tool is offered for {0:?}")]
pub(super) struct NoToolOffered(ScenarioCall);

const WRITE_TOOLS: [&str; 3] = ["Write", "write", "write_file"];
const EDIT_TOOLS: [&str; 3] = ["Edit", "edit", "replace"];
const READ_TOOLS: [&str; 3] = ["Read", "read", "read_file"];
const SHELL_TOOLS: [&str; 6] = ["Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command"];
/// A tool that takes a JavaScript program which calls the other tools.
const PROGRAM_TOOL: &str = "exec";

const PATH_PARAMETERS: [&str; 4] = ["file_path", "filePath", "absolute_path", "path"];
const CONTENT_PARAMETERS: [&str; 1] = ["content"];
const OLD_TEXT_PARAMETERS: [&str; 3] = ["old_string", "oldString", "old_str"];
const NEW_TEXT_PARAMETERS: [&str; 3] = ["new_string", "newString", "new_str"];
const COMMAND_PARAMETERS: [&str; 2] = ["command", "cmd"];
/// A parameter by which some tools ask for the purpose of a call.
const PURPOSE_PARAMETER: &str = "description";

impl ToolCall {
    pub(super) fn from_name(name: &str, input: Value) -> ToolCall {
        ToolCall { name: name.to_string(), group: None, takes_text: false, input }
    }

    fn for_tool(tool: &OfferedTool, input: Value) -> ToolCall {
        ToolCall { name: tool.name.clone(), group: tool.group.clone(), takes_text: tool.takes_text, input }
    }
}

pub(super) fn resolve_call(call: &ScenarioCall, request: &ModelRequest) -> Result<ToolCall, NoToolOffered> {
    let absolute_path = |path: &str| resolve_path(path, request);
    let tool_call = match call {
        ScenarioCall::Write { path, content } => find_tool(request, &WRITE_TOOLS)
            .map(|tool| {
                fill_tool_call(tool, &[(&PATH_PARAMETERS, &absolute_path(path)), (&CONTENT_PARAMETERS, content)])
            })
            .or_else(|| program_call(request, &patch_program(path, content)))
            .or_else(|| shell_call(request, &write_command(path, content))),
        ScenarioCall::Edit { path, old: old_text, new: new_text } => find_tool(request, &EDIT_TOOLS)
            .map(|tool| {
                fill_tool_call(
                    tool,
                    &[
                        (&PATH_PARAMETERS, &absolute_path(path)),
                        (&OLD_TEXT_PARAMETERS, old_text),
                        (&NEW_TEXT_PARAMETERS, new_text),
                    ],
                )
            })
            .or_else(|| shell_call(request, &edit_command(path, old_text, new_text))),
        ScenarioCall::Read(path) => find_tool(request, &READ_TOOLS)
            .map(|tool| fill_tool_call(tool, &[(&PATH_PARAMETERS, &absolute_path(path))]))
            .or_else(|| shell_call(request, &format!("cat {}", shell_quote(path)))),
        ScenarioCall::Shell(command) => shell_call(request, command),
        ScenarioCall::Tool { name, input } => match request.offered_tools.iter().find(|tool| tool.name == *name) {
            Some(tool) => Some(ToolCall::for_tool(tool, input.clone())),
            None => Some(ToolCall::from_name(name, input.clone())),
        },
    };
    tool_call.ok_or_else(|| NoToolOffered(call.clone()))
}

fn find_tool<'a>(request: &'a ModelRequest, names: &[&str]) -> Option<&'a OfferedTool> {
    names.iter().find_map(|name| request.offered_tools.iter().find(|tool| tool.name == *name))
}

/// Builds a call with each value under the first of its names that occurs in the schema of the tool.
fn fill_tool_call(tool: &OfferedTool, values: &[(&[&str], &str)]) -> ToolCall {
    let parameter_schema = |name: &str| tool.schema.pointer(&format!("/properties/{name}"));
    let mut input = Map::new();
    for (names, value) in values {
        let Some(name) = names.iter().find(|name| parameter_schema(name).is_some()) else { continue };
        let is_list = parameter_schema(name).is_some_and(|schema| schema["type"] == "array");
        let parameter_value = if is_list { json!(["bash", "-lc", value]) } else { json!(value) };
        input.insert((*name).to_string(), parameter_value);
    }
    if parameter_schema(PURPOSE_PARAMETER).is_some() {
        input.insert(PURPOSE_PARAMETER.to_string(), json!("as the scenario says"));
    }
    ToolCall::for_tool(tool, Value::Object(input))
}

fn shell_call(request: &ModelRequest, command: &str) -> Option<ToolCall> {
    let direct_call =
        find_tool(request, &SHELL_TOOLS).map(|tool| fill_tool_call(tool, &[(&COMMAND_PARAMETERS, command)]));
    direct_call
        .or_else(|| program_call(request, &format!("text(await tools.exec_command({}));", json!({ "cmd": command }))))
}

fn program_call(request: &ModelRequest, code: &str) -> Option<ToolCall> {
    let tool = request.offered_tools.iter().find(|tool| tool.name == PROGRAM_TOOL && tool.takes_text)?;
    Some(ToolCall::for_tool(tool, json!(code)))
}

fn patch_program(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
    format!("text(await tools.apply_patch({}));", json!(patch))
}

fn write_command(path: &str, content: &str) -> String {
    format!("printf %s {} > {}", shell_quote(content), shell_quote(path))
}

/// An edit in plain shell: the text before the old text, the new text, and the text after it. The `x` keeps trailing line ends.
fn edit_command(path: &str, old_text: &str, new_text: &str) -> String {
    let (path, old_text, new_text) = (shell_quote(path), shell_quote(old_text), shell_quote(new_text));
    format!(
        "text=$(cat {path}; printf x); text=${{text%x}}; old={old_text}; new={new_text}; \
         case \"$text\" in *\"$old\"*) ;; *) echo 'the old text is not there' >&2; exit 1;; esac; \
         printf '%s%s%s' \"${{text%%\"$old\"*}}\" \"$new\" \"${{text#*\"$old\"}}\" > {path}"
    )
}

fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Makes a path absolute, because tools for files require that; clients tell the model its working directory.
fn resolve_path(path: &str, request: &ModelRequest) -> String {
    const DIRECTORY_NOTE: &str = "working directory: ";
    if path.starts_with('/') {
        return path.to_string();
    }
    let working_dir = request
        .system_text
        .split_once(DIRECTORY_NOTE)
        .and_then(|(_, following_text)| following_text.lines().next())
        .map(str::trim);
    working_dir.map_or_else(|| path.to_string(), |working_dir| format!("{working_dir}/{path}"))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::model::request::ModelApi;

    fn sample_request(api: ModelApi, tools: Value) -> ModelRequest {
        let body = json!({
            "model": "m", "tools": tools,
            "messages": [{"role": "system", "content": "Primary working directory: /place\nmore"}],
            "input": [{"type": "message", "role": "user", "content": "hello"}],
        });
        ModelRequest::parse(api, true, body)
    }

    fn object_schema(names: &[&str]) -> Value {
        let property_map: Map<String, Value> =
            names.iter().map(|name| ((*name).to_string(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": property_map})
    }

    #[test]
    fn calls_take_the_form_of_the_tools_offered() {
        let claude = json!([
            {"name": "Bash", "input_schema": object_schema(&["command", "description"])},
            {"name": "Write", "input_schema": object_schema(&["file_path", "content"])},
            {"name": "Edit", "input_schema": object_schema(&["file_path", "old_string", "new_string"])},
            {"name": "Read", "input_schema": object_schema(&["file_path", "limit"])},
        ]);
        let codex = json!([{"type": "function", "name": "exec_command", "parameters": object_schema(&["cmd"])}]);
        let codex_program =
            json!([{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]);
        let write = ScenarioCall::Write { path: "a".into(), content: "b\n".into() };
        let edit = ScenarioCall::Edit { path: "/a".into(), old: "b".into(), new: "c".into() };
        let read = ScenarioCall::Read("a".into());
        let shell = ScenarioCall::Shell("true".into());
        let patch = r#"text(await tools.apply_patch("*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n"));"#;
        for (api, tools, call, name, input) in [
            (ModelApi::Messages, &claude, &write, "Write", json!({"file_path": "/place/a", "content": "b\n"})),
            (
                ModelApi::Messages,
                &claude,
                &edit,
                "Edit",
                json!({"file_path": "/a", "old_string": "b", "new_string": "c"}),
            ),
            (ModelApi::Messages, &claude, &read, "Read", json!({"file_path": "/place/a"})),
            (
                ModelApi::Messages,
                &claude,
                &shell,
                "Bash",
                json!({"command": "true", "description": "as the scenario says"}),
            ),
            (ModelApi::Responses, &codex, &write, "exec_command", json!({"cmd": "printf %s 'b\n' > 'a'"})),
            (ModelApi::Responses, &codex, &read, "exec_command", json!({"cmd": "cat 'a'"})),
            (ModelApi::Responses, &codex_program, &write, "exec", json!(patch)),
            (
                ModelApi::Responses,
                &codex_program,
                &shell,
                "exec",
                json!(r#"text(await tools.exec_command({"cmd":"true"}));"#),
            ),
        ] {
            let tool_call = resolve_call(call, &sample_request(api, tools.clone())).expect("offered");
            assert_eq!((tool_call.name.as_str(), tool_call.input), (name, input), "{call:?}");
            assert_eq!(tool_call.group.is_some() && tool_call.takes_text, name == "exec", "{call:?}");
        }
    }

    #[test]
    fn a_call_without_an_offered_tool_is_refused_unless_it_names_one() {
        let without_tools = sample_request(ModelApi::Messages, json!([]));
        let refused = resolve_call(&ScenarioCall::Shell("true".into()), &without_tools).expect_err("nothing offered");
        assert_eq!(refused.to_string(), r#"no tool is offered for Shell("true")"#);
        let named_call = ScenarioCall::Tool { name: "Write".into(), input: json!({}) };
        assert_eq!(resolve_call(&named_call, &without_tools).expect("exact").name, "Write");
    }

    #[test]
    fn files_are_edited_by_plain_shell() {
        let directory = tempfile::tempdir().expect("folder");
        let file = directory.path().join("it's");
        let path = file.to_str().expect("text");
        for (before, old_text, new_text, after) in [
            ("one two two\n", "two", "$& 'x' %s", Some("one $& 'x' %s two\n")),
            ("a*b\n\n", "*", "[", Some("a[b\n\n")),
            ("one", "two", "three", None),
        ] {
            fs::write(&file, before).expect("written");
            let shell_output =
                Command::new("sh").args(["-c", &edit_command(path, old_text, new_text)]).output().expect("sh");
            assert_eq!(shell_output.status.success(), after.is_some(), "{before:?}");
            assert_eq!(fs::read_to_string(&file).expect("read"), after.unwrap_or(before));
        }
    }
}
