//! Parses what clients pass on standard input, in any of their spellings.
//!
//! The parser is tolerant: unknown fields are skipped, missing ones are empty, and ones of the wrong type count as
//! missing. Fields that the event does not need are not built, so that a tool's result of many megabytes costs
//! little. The event is the one that the hook was installed for; the name that the client passes is not compared.

use serde::de::MapAccess;
use serde_json::Value;

use super::json_sink::{JsonSink, read_json_into, read_value_into, replace_lone_surrogates, skip_value};
use super::{HookClient, HookEvent, HookInput, HookToolCall};

impl HookInput {
    /// Parses what a client passed. The error describes for the user what is wrong with it.
    pub fn parse(hook_client: HookClient, hook_event: HookEvent, stdin_bytes: &[u8]) -> Result<HookInput, String> {
        // A byte order mark may come first, and invalid bytes must not lose the whole input.
        let stdin_text = String::from_utf8_lossy(stdin_bytes);
        let stdin_text = stdin_text.trim_start_matches('\u{feff}').trim();
        if stdin_text.is_empty() {
            return Err("standard input is empty; expected JSON from the client".to_owned());
        }
        if !stdin_text.starts_with('{') {
            return Err("standard input is not a JSON object".to_owned());
        }
        // A tool's output may contain half a character, which is no valid JSON. The first try is without the repair,
        // because it is rarely needed and costs another copy.
        let mut input_reader = HookInputReader::new(hook_client, hook_event);
        let Err(json_error) = read_json_into(stdin_text, &mut input_reader) else {
            return Ok(input_reader.into_input());
        };
        // The reader starts anew: the failed attempt has already filled some of its fields.
        if let Some(repaired_text) = replace_lone_surrogates(stdin_text) {
            input_reader = HookInputReader::new(hook_client, hook_event);
            if read_json_into(&repaired_text, &mut input_reader).is_ok() {
                return Ok(input_reader.into_input());
            }
        }
        Err(format!("invalid JSON on standard input: {json_error}"))
    }
}

/// The state of reading a hook's input.
struct HookInputReader {
    hook_client: HookClient,
    hook_event: HookEvent,
    hook_input: HookInput,
    tool_name: String,
    tool_input: Option<Value>,
    tool_response: Option<Value>,
    agent_type: String,
}

impl HookInputReader {
    fn new(hook_client: HookClient, hook_event: HookEvent) -> HookInputReader {
        HookInputReader {
            hook_client,
            hook_event,
            hook_input: HookInput::default(),
            tool_name: String::new(),
            tool_input: None,
            tool_response: None,
            agent_type: String::new(),
        }
    }

    fn is_tool_event(&self) -> bool {
        matches!(self.hook_event, HookEvent::PreToolUse | HookEvent::PostToolUse)
    }

    /// Whether a field holds the reason for this event.
    fn is_source_field(&self, field_name: &str) -> bool {
        match self.hook_event {
            HookEvent::SessionStart => field_name == "source",
            HookEvent::SessionEnd => field_name == "reason",
            HookEvent::PreCompact => field_name == "trigger",
            other_event if other_event.is_stop() => matches!(field_name, "stop_reason" | "stopReason"),
            _ => false,
        }
    }

    fn into_input(self) -> HookInput {
        let mut hook_input = self.hook_input;
        // The id names a sub-agent exactly; its type is only the fallback.
        if hook_input.agent_id.is_empty() {
            hook_input.agent_id = self.agent_type;
        }
        if !self.tool_name.is_empty() || self.tool_input.is_some() {
            let parsed_input = self.hook_client.hooks.parse_tool_input(self.tool_input.unwrap_or_default());
            hook_input.tool_call = Some(HookToolCall {
                tool_name: self.tool_name,
                tool_input: parsed_input,
                tool_response: self.tool_response,
            });
        }
        hook_input
    }
}

impl<'de> JsonSink<'de> for HookInputReader {
    fn accept_field<M: MapAccess<'de>>(&mut self, field_name: &str, map_access: &mut M) -> Result<(), M::Error> {
        let (is_stop, is_tool_event) = (self.hook_event.is_stop(), self.is_tool_event());
        match field_name {
            // Clients spell the fields in snake case or in camel case; both are accepted from every client.
            "session_id" | "sessionId" => read_value_into(map_access, &mut self.hook_input.session_id),
            "transcript_path" | "transcriptPath" => read_value_into(map_access, &mut self.hook_input.transcript_path),
            "cwd" => read_value_into(map_access, &mut self.hook_input.working_dir),
            "agent_id" | "agentId" => read_value_into(map_access, &mut self.hook_input.agent_id),
            "agent_type" | "agentType" | "agent_name" | "agentName" => {
                read_value_into(map_access, &mut self.agent_type)
            }
            "stop_hook_active" | "stopHookActive" if is_stop => {
                read_value_into(map_access, &mut self.hook_input.is_stop_active)
            }
            "last_assistant_message" | "lastAssistantMessage" if is_stop => {
                read_value_into(map_access, &mut self.hook_input.last_answer)
            }
            // Some clients give the last answer in fields of their own.
            field_name if is_stop && self.hook_client.hooks.answer_fields().contains(&field_name) => {
                read_value_into(map_access, &mut self.hook_input.last_answer)
            }
            "tool_name" | "toolName" if is_tool_event => read_value_into(map_access, &mut self.tool_name),
            "tool_input" | "toolInput" | "tool_args" | "toolArgs" if is_tool_event => {
                map_access.next_value().map(|field_value: Value| self.tool_input = Some(field_value))
            }
            "tool_response" | "toolResponse" | "tool_result" | "toolResult"
                if self.hook_event == HookEvent::PostToolUse =>
            {
                map_access.next_value().map(|field_value: Value| self.tool_response = Some(field_value))
            }
            "prompt" if self.hook_event == HookEvent::UserPromptSubmit => {
                read_value_into(map_access, &mut self.hook_input.user_prompt)
            }
            field_name if self.is_source_field(field_name) => read_value_into(map_access, &mut self.hook_input.source),
            // Everything else is skipped without building it, however large it is.
            _ => skip_value(map_access),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::hook::client::test_hook_client;
    use HookEvent::{
        PostToolUse, PreCompact, PreToolUse, SessionEnd, SessionStart, Stop, SubagentStop, UserPromptSubmit,
    };

    const CLAUDE: &str = "claude-code";

    fn parse_input(client_id: &str, hook_event: HookEvent, input_json: &Value) -> HookInput {
        HookInput::parse(test_hook_client(client_id), hook_event, input_json.to_string().as_bytes()).unwrap()
    }

    /// The fields are those that the real clients passed; ids and paths are shortened.
    #[test]
    fn a_stop_is_read_from_every_client() {
        let claude_json = json!({
            "session_id": "195b", "transcript_path": "p/195b.jsonl", "cwd": "w", "prompt_id": "f9e9",
            "permission_mode": "bypassPermissions", "effort": {"level": "medium"}, "hook_event_name": "Stop",
            "stop_hook_active": true, "last_assistant_message": "All done.", "background_tasks": [], "session_crons": [],
        });
        let codex_json = json!({
            "session_id": "195b", "turn_id": "01a1", "transcript_path": "p/195b.jsonl", "cwd": "w", "hook_event_name": "Stop",
            "model": "m", "permission_mode": "bypassPermissions", "stop_hook_active": true, "last_assistant_message": "All done.",
        });
        let gemini_json = json!({
            "session_id": "195b", "transcript_path": "p/195b.jsonl", "cwd": "w", "hook_event_name": "AfterAgent",
            "timestamp": "t", "prompt": "Do it.", "prompt_response": "All done.", "stop_hook_active": true,
        });
        let expected_input = HookInput {
            session_id: "195b".into(),
            transcript_path: "p/195b.jsonl".into(),
            working_dir: "w".into(),
            is_stop_active: true,
            last_answer: Some("All done.".into()),
            ..HookInput::default()
        };
        assert_eq!(parse_input(CLAUDE, Stop, &claude_json), expected_input);
        assert_eq!(parse_input("codex", Stop, &codex_json), expected_input);
        assert_eq!(parse_input("gemini", Stop, &gemini_json), expected_input);
        let copilot_json = json!({
            "timestamp": 1, "sessionId": "195b", "cwd": "w", "transcriptPath": "p/195b.jsonl", "stopReason": "end_turn",
            "stop_hook_active": true,
        });
        let expected_input = HookInput { last_answer: None, source: "end_turn".into(), ..expected_input };
        assert_eq!(parse_input("copilot", Stop, &copilot_json), expected_input);
    }

    #[test]
    fn each_event_has_its_own_fields() {
        let all_fields = json!({
            "source": "resume", "reason": "other", "trigger": "auto", "prompt": "Do it.", "stop_reason": "end_turn",
            "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "a"}, "last_assistant_message": "x",
            "stop_hook_active": true, "prompt_response": "not this client's",
        });
        let tool_call =
            HookToolCall { tool_name: "Bash".into(), tool_input: json!({"command": "ls"}), tool_response: None };
        let call_with_response = HookToolCall { tool_response: Some(json!({"stdout": "a"})), ..tool_call.clone() };
        let empty_input = HookInput::default();
        let stop_input = HookInput {
            is_stop_active: true,
            last_answer: Some("x".into()),
            source: "end_turn".into(),
            ..empty_input.clone()
        };
        let cases = [
            (Stop, stop_input.clone()),
            (SubagentStop, stop_input),
            (SessionStart, HookInput { source: "resume".into(), ..empty_input.clone() }),
            (SessionEnd, HookInput { source: "other".into(), ..empty_input.clone() }),
            (PreCompact, HookInput { source: "auto".into(), ..empty_input.clone() }),
            (UserPromptSubmit, HookInput { user_prompt: "Do it.".into(), ..empty_input.clone() }),
            (PreToolUse, HookInput { tool_call: Some(tool_call), ..empty_input.clone() }),
            (PostToolUse, HookInput { tool_call: Some(call_with_response), ..empty_input }),
        ];
        for (hook_event, expected_input) in cases {
            assert_eq!(parse_input(CLAUDE, hook_event, &all_fields), expected_input, "{hook_event:?}");
        }
    }

    #[test]
    fn a_subagent_is_named_by_its_id_else_by_its_kind() {
        let read_agent = |input_json| parse_input(CLAUDE, SubagentStop, &input_json).agent_id;
        assert_eq!(read_agent(json!({"agent_type": "Explore", "agent_id": "a1"})), "a1");
        assert_eq!(read_agent(json!({"agent_type": "Explore", "agent_id": ""})), "Explore");
        assert_eq!(read_agent(json!({"agentName": "Explore"})), "Explore");
        assert_eq!(read_agent(json!({})), "");
    }

    #[test]
    fn tool_calls_of_copilot_have_their_arguments_as_json_text() {
        let read_tool = |client_id, input_json| {
            parse_input(client_id, PreToolUse, &input_json)
                .tool_call
                .map(|tool_call| (tool_call.tool_name, tool_call.tool_input))
        };
        let input_json = json!({"toolName": "bash", "toolArgs": "{\"command\":\"ls\"}"});
        assert_eq!(read_tool("copilot", input_json.clone()), Some(("bash".into(), json!({"command": "ls"}))));
        assert_eq!(read_tool("codex", input_json), Some(("bash".into(), json!("{\"command\":\"ls\"}"))));
        assert_eq!(read_tool("copilot", json!({"toolArgs": "ls {"})), Some((String::new(), json!("ls {"))));
        assert_eq!(read_tool("copilot", json!({})), None);
    }

    #[test]
    fn a_field_of_the_wrong_type_counts_as_missing() {
        for wrong_value in [json!(null), json!(7), json!(-7.5), json!([["a"], {}]), json!({"a": {"b": []}})] {
            let input_json = json!({
                "session_id": wrong_value, "transcript_path": wrong_value, "cwd": wrong_value,
                "stop_hook_active": wrong_value, "last_assistant_message": wrong_value, "stop_reason": wrong_value, "agent_id": wrong_value,
            });
            assert_eq!(parse_input(CLAUDE, Stop, &input_json), HookInput::default());
        }
        assert!(!parse_input(CLAUDE, Stop, &json!({"stop_hook_active": "true"})).is_stop_active);
        assert_eq!(parse_input(CLAUDE, Stop, &json!({"session_id": true})).session_id, "");
        assert_eq!(parse_input(CLAUDE, Stop, &json!({"last_assistant_message": ""})).last_answer, Some(String::new()));
    }

    #[test]
    fn invalid_bytes_and_characters_are_replaced() {
        let read_answer = |stdin_bytes: &[u8]| {
            HookInput::parse(test_hook_client(CLAUDE), Stop, stdin_bytes).map(|input| input.last_answer)
        };
        assert_eq!(read_answer(b"{\"last_assistant_message\":\"a\xff\"}"), Ok(Some("a\u{fffd}".into())));
        let half_character = br#"{"cwd":"w","last_assistant_message":"\ud83d"}"#;
        assert_eq!(read_answer(half_character), Ok(Some("\u{fffd}".into())));
        assert_eq!(read_answer(b"\xef\xbb\xbf {\"last_assistant_message\":\"a\"}\r\n"), Ok(Some("a".into())));
    }

    #[test]
    fn input_that_is_not_an_object_is_an_error() {
        let read_error =
            |stdin_bytes: &[u8]| HookInput::parse(test_hook_client(CLAUDE), Stop, stdin_bytes).unwrap_err();
        assert_eq!(read_error(b" \n"), "standard input is empty; expected JSON from the client");
        for other_json in ["[]", "\"{}\"", "null", "hello"] {
            assert_eq!(read_error(other_json.as_bytes()), "standard input is not a JSON object");
        }
        let truncated_error = read_error(br#"{"session_id":"a","#);
        assert_eq!(truncated_error, "invalid JSON on standard input: EOF while parsing a value at line 1 column 18");
        assert!(read_error(b"{} {}").ends_with("trailing characters at line 1 column 4"));
    }

    /// Nothing is built of such fields, and no nesting is too deep to be skipped.
    #[test]
    fn fields_that_an_event_does_not_need_may_be_large_and_deep() {
        let deep_json = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let large_text = "x".repeat(50 << 20);
        let input_json = format!(r#"{{"tool_input":{deep_json},"tool_response":"{large_text}","session_id":"a"}}"#);
        assert_eq!(HookInput::parse(test_hook_client(CLAUDE), Stop, input_json.as_bytes()).unwrap().session_id, "a");
        assert_eq!(
            HookInput::parse(test_hook_client(CLAUDE), UserPromptSubmit, input_json.as_bytes()).unwrap().tool_call,
            None
        );
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), event in 0..8usize) {
            let object = [b"{\"tool_input\":", &bytes[..], b"}"].concat();
            for client in HookClient::all() {
                let _ = HookInput::parse(client, HookEvent::ALL[event], &bytes);
                let _ = HookInput::parse(client, HookEvent::ALL[event], &object);
            }
        }

        #[test]
        fn any_text_comes_through(text in any::<String>()) {
            let read = parse_input(CLAUDE, Stop, &json!({"last_assistant_message": text}));
            prop_assert_eq!(read.last_answer, Some(text));
        }
    }
}
