//! Maps abstract tool calls onto the tools that a client offers.
//!
//! A tool is found by its name, and its parameters by the names in its schema, so one scenario drives all clients. Clients
//! without tools for files (Codex) get a command line instead. For models that it knows, Codex offers one tool that takes a
//! program; that program then calls the actual tool.

use serde_json::{Map, Value, json};

use super::{
    request::{Request, Tool},
    scenario::Call,
};

#[derive(Debug)]
pub(super) struct ToolCall {
    pub name: String,
    pub group: Option<String>,
    /// Whether the input is text instead of an object.
    pub free: bool,
    pub input: Value,
}

/// The client offered no tool that could do this.
#[derive(Debug, thiserror::Error)]
#[error("no tool is offered for {0:?}")]
pub(super) struct NoTool(Call);

const WRITERS: [&str; 3] = ["Write", "write", "write_file"];
const EDITORS: [&str; 3] = ["Edit", "edit", "replace"];
const READERS: [&str; 3] = ["Read", "read", "read_file"];
const SHELLS: [&str; 6] = ["Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command"];
/// A tool that takes a JavaScript program which calls the other tools.
const PROGRAM: &str = "exec";

const PATHS: [&str; 4] = ["file_path", "filePath", "absolute_path", "path"];
const CONTENTS: [&str; 1] = ["content"];
const OLDS: [&str; 3] = ["old_string", "oldString", "old_str"];
const NEWS: [&str; 3] = ["new_string", "newString", "new_str"];
const COMMANDS: [&str; 2] = ["command", "cmd"];
/// A parameter by which some tools ask for the purpose of a call.
const PURPOSE: &str = "description";

impl ToolCall {
    pub(super) fn exact(name: &str, input: Value) -> ToolCall {
        ToolCall { name: name.to_string(), group: None, free: false, input }
    }

    fn of(tool: &Tool, input: Value) -> ToolCall {
        ToolCall { name: tool.name.clone(), group: tool.group.clone(), free: tool.free, input }
    }
}

pub(super) fn concrete(call: &Call, request: &Request) -> Result<ToolCall, NoTool> {
    let place = |path: &str| absolute(path, request);
    let found = match call {
        Call::Write { path, content } => by_name(request, &WRITERS)
            .map(|tool| filled(tool, &[(&PATHS, &place(path)), (&CONTENTS, content)]))
            .or_else(|| program(request, &patch_program(path, content)))
            .or_else(|| shell(request, &write_command(path, content))),
        Call::Edit { path, old, new } => by_name(request, &EDITORS)
            .map(|tool| filled(tool, &[(&PATHS, &place(path)), (&OLDS, old), (&NEWS, new)]))
            .or_else(|| shell(request, &edit_command(path, old, new))),
        Call::Read(path) => by_name(request, &READERS)
            .map(|tool| filled(tool, &[(&PATHS, &place(path))]))
            .or_else(|| shell(request, &format!("cat {}", quoted(path)))),
        Call::Shell(command) => shell(request, command),
        Call::Tool { name, input } => match request.tools.iter().find(|tool| tool.name == *name) {
            Some(tool) => Some(ToolCall::of(tool, input.clone())),
            None => Some(ToolCall::exact(name, input.clone())),
        },
    };
    found.ok_or_else(|| NoTool(call.clone()))
}

fn by_name<'a>(request: &'a Request, names: &[&str]) -> Option<&'a Tool> {
    names.iter().find_map(|name| request.tools.iter().find(|tool| tool.name == *name))
}

/// Builds a call with each value under the first of its names that occurs in the schema of the tool.
fn filled(tool: &Tool, values: &[(&[&str], &str)]) -> ToolCall {
    let known = |name: &str| tool.schema.pointer(&format!("/properties/{name}"));
    let mut input = Map::new();
    for (names, value) in values {
        let Some(name) = names.iter().find(|name| known(name).is_some()) else { continue };
        let as_list = known(name).is_some_and(|schema| schema["type"] == "array");
        let value = if as_list { json!(["bash", "-lc", value]) } else { json!(value) };
        input.insert((*name).to_string(), value);
    }
    if known(PURPOSE).is_some() {
        input.insert(PURPOSE.to_string(), json!("as the scenario says"));
    }
    ToolCall::of(tool, Value::Object(input))
}

fn shell(request: &Request, command: &str) -> Option<ToolCall> {
    let tool = by_name(request, &SHELLS).map(|tool| filled(tool, &[(&COMMANDS, command)]));
    tool.or_else(|| {
        program(request, &format!("text(await tools.exec_command({}));", json!({ "cmd": command })))
    })
}

fn program(request: &Request, code: &str) -> Option<ToolCall> {
    let tool = request.tools.iter().find(|tool| tool.name == PROGRAM && tool.free)?;
    Some(ToolCall::of(tool, json!(code)))
}

fn patch_program(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
    format!("text(await tools.apply_patch({}));", json!(patch))
}

fn write_command(path: &str, content: &str) -> String {
    format!("printf %s {} > {}", quoted(content), quoted(path))
}

/// An edit in plain shell: the text before the old text, the new text, and the text after it. The `x` keeps trailing line ends.
fn edit_command(path: &str, old: &str, new: &str) -> String {
    let (path, old, new) = (quoted(path), quoted(old), quoted(new));
    format!(
        "text=$(cat {path}; printf x); text=${{text%x}}; old={old}; new={new}; \
         case \"$text\" in *\"$old\"*) ;; *) echo 'the old text is not there' >&2; exit 1;; esac; \
         printf '%s%s%s' \"${{text%%\"$old\"*}}\" \"$new\" \"${{text#*\"$old\"}}\" > {path}"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Makes a path absolute, because tools for files require that; clients tell the model its working directory.
fn absolute(path: &str, request: &Request) -> String {
    const SAID: &str = "working directory: ";
    if path.starts_with('/') {
        return path.to_string();
    }
    let folder = request.system.split_once(SAID).and_then(|(_, rest)| rest.lines().next()).map(str::trim);
    folder.map_or_else(|| path.to_string(), |folder| format!("{folder}/{path}"))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::model::request::Api;

    fn asked(api: Api, tools: Value) -> Request {
        let body = json!({
            "model": "m", "tools": tools,
            "messages": [{"role": "system", "content": "Primary working directory: /place\nmore"}],
            "input": [{"type": "message", "role": "user", "content": "hello"}],
        });
        Request::read(api, true, body)
    }

    fn properties(names: &[&str]) -> Value {
        let all: Map<String, Value> =
            names.iter().map(|name| ((*name).to_string(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": all})
    }

    #[test]
    fn calls_take_the_form_of_the_tools_offered() {
        let claude = json!([
            {"name": "Bash", "input_schema": properties(&["command", "description"])},
            {"name": "Write", "input_schema": properties(&["file_path", "content"])},
            {"name": "Edit", "input_schema": properties(&["file_path", "old_string", "new_string"])},
            {"name": "Read", "input_schema": properties(&["file_path", "limit"])},
        ]);
        let codex = json!([{"type": "function", "name": "exec_command", "parameters": properties(&["cmd"])}]);
        let coding = json!([{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]);
        let write = Call::Write { path: "a".into(), content: "b\n".into() };
        let edit = Call::Edit { path: "/a".into(), old: "b".into(), new: "c".into() };
        let read = Call::Read("a".into());
        let shell = Call::Shell("true".into());
        let patch =
            r#"text(await tools.apply_patch("*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n"));"#;
        for (api, tools, call, name, input) in [
            (Api::Messages, &claude, &write, "Write", json!({"file_path": "/place/a", "content": "b\n"})),
            (
                Api::Messages,
                &claude,
                &edit,
                "Edit",
                json!({"file_path": "/a", "old_string": "b", "new_string": "c"}),
            ),
            (Api::Messages, &claude, &read, "Read", json!({"file_path": "/place/a"})),
            (
                Api::Messages,
                &claude,
                &shell,
                "Bash",
                json!({"command": "true", "description": "as the scenario says"}),
            ),
            (Api::Responses, &codex, &write, "exec_command", json!({"cmd": "printf %s 'b\n' > 'a'"})),
            (Api::Responses, &codex, &read, "exec_command", json!({"cmd": "cat 'a'"})),
            (Api::Responses, &coding, &write, "exec", json!(patch)),
            (
                Api::Responses,
                &coding,
                &shell,
                "exec",
                json!(r#"text(await tools.exec_command({"cmd":"true"}));"#),
            ),
        ] {
            let got = concrete(call, &asked(api, tools.clone())).expect("offered");
            assert_eq!((got.name.as_str(), got.input), (name, input), "{call:?}");
            assert_eq!(got.group.is_some() && got.free, name == "exec", "{call:?}");
        }
    }

    #[test]
    fn what_nobody_offers_is_refused_unless_it_is_named() {
        let nothing = asked(Api::Messages, json!([]));
        let refused = concrete(&Call::Shell("true".into()), &nothing).expect_err("nothing offered");
        assert_eq!(refused.to_string(), r#"no tool is offered for Shell("true")"#);
        let named = Call::Tool { name: "Write".into(), input: json!({}) };
        assert_eq!(concrete(&named, &nothing).expect("exact").name, "Write");
    }

    #[test]
    fn files_are_edited_by_plain_shell() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("it's");
        let path = file.to_str().expect("text");
        for (before, old, new, after) in [
            ("one two two\n", "two", "$& 'x' %s", Some("one $& 'x' %s two\n")),
            ("a*b\n\n", "*", "[", Some("a[b\n\n")),
            ("one", "two", "three", None),
        ] {
            fs::write(&file, before).expect("written");
            let ended = Command::new("sh").args(["-c", &edit_command(path, old, new)]).output().expect("sh");
            assert_eq!(ended.status.success(), after.is_some(), "{before:?}");
            assert_eq!(fs::read_to_string(&file).expect("read"), after.unwrap_or(before));
        }
    }
}
