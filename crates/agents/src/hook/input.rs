//! Parses what clients pass on standard input, in any of their spellings.
//!
//! The parser is tolerant: unknown fields are skipped, missing ones are empty, and ones of the wrong type count as
//! missing. Fields that the event does not need are not built, so that a tool's result of many megabytes costs
//! little. The event is the one that the hook was installed for; the name that the client passes is not compared.

use serde::de::MapAccess;
use serde_json::Value;

use super::soft::{Take, give, mended, read, skip};
use super::{HookClient, HookEvent, Input, ToolCall};

impl Input {
    /// Parses what a client passed. The error describes for the user what is wrong with it.
    pub fn read(client: HookClient, event: HookEvent, bytes: &[u8]) -> Result<Input, String> {
        // A byte order mark may come first, and invalid bytes must not lose the whole input.
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err("nothing came on standard input, where the client's JSON was expected".to_owned());
        }
        if !text.starts_with('{') {
            return Err("what came on standard input is not a JSON object".to_owned());
        }
        // A tool's output may contain half a character, which is no valid JSON. The first try is without the repair,
        // because it is rarely needed and costs another copy.
        let mut said = Said::new(client, event);
        let Err(wrong) = read(text, &mut said) else { return Ok(said.input()) };
        // The reader starts anew: the failed attempt has already filled some of its fields.
        if let Some(whole) = mended(text) {
            said = Said::new(client, event);
            if read(&whole, &mut said).is_ok() {
                return Ok(said.input());
            }
        }
        Err(format!("what came on standard input is not JSON: {wrong}"))
    }
}

/// The state of reading a hook's input.
struct Said {
    client: HookClient,
    event: HookEvent,
    input: Input,
    tool_name: String,
    tool_input: Option<Value>,
    tool_response: Option<Value>,
    agent_kind: String,
}

impl Said {
    fn new(client: HookClient, event: HookEvent) -> Said {
        Said {
            client,
            event,
            input: Input::default(),
            tool_name: String::new(),
            tool_input: None,
            tool_response: None,
            agent_kind: String::new(),
        }
    }

    fn is_about_tools(&self) -> bool {
        matches!(self.event, HookEvent::PreToolUse | HookEvent::PostToolUse)
    }

    /// Whether a field holds the reason for this event.
    fn is_source(&self, name: &str) -> bool {
        match self.event {
            HookEvent::SessionStart => name == "source",
            HookEvent::SessionEnd => name == "reason",
            HookEvent::PreCompact => name == "trigger",
            event if event.is_stop() => matches!(name, "stop_reason" | "stopReason"),
            _ => false,
        }
    }

    fn input(self) -> Input {
        let mut input = self.input;
        // The id names a sub-agent exactly; its type is only the fallback.
        if input.agent.is_empty() {
            input.agent = self.agent_kind;
        }
        if !self.tool_name.is_empty() || self.tool_input.is_some() {
            let given = self.client.hooks.tool_input(self.tool_input.unwrap_or_default());
            input.tool = Some(ToolCall { name: self.tool_name, input: given, response: self.tool_response });
        }
        input
    }
}

impl<'de> Take<'de> for Said {
    fn field<M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        let (is_stop, is_about_tools) = (self.event.is_stop(), self.is_about_tools());
        match name {
            // Clients spell the fields in snake case or in camel case; both are accepted from every client.
            "session_id" | "sessionId" => give(map, &mut self.input.session),
            "transcript_path" | "transcriptPath" => give(map, &mut self.input.transcript),
            "cwd" => give(map, &mut self.input.cwd),
            "agent_id" | "agentId" => give(map, &mut self.input.agent),
            "agent_type" | "agentType" | "agent_name" | "agentName" => give(map, &mut self.agent_kind),
            "stop_hook_active" | "stopHookActive" if is_stop => give(map, &mut self.input.stop_active),
            "last_assistant_message" | "lastAssistantMessage" if is_stop => {
                give(map, &mut self.input.last_answer)
            }
            // The fields that are specific to the client come after the common ones.
            name if is_stop && self.client.hooks.answer_fields().contains(&name) => {
                give(map, &mut self.input.last_answer)
            }
            "tool_name" | "toolName" if is_about_tools => give(map, &mut self.tool_name),
            "tool_input" | "toolInput" | "tool_args" | "toolArgs" if is_about_tools => {
                map.next_value().map(|value: Value| self.tool_input = Some(value))
            }
            "tool_response" | "toolResponse" | "tool_result" | "toolResult"
                if self.event == HookEvent::PostToolUse =>
            {
                map.next_value().map(|value: Value| self.tool_response = Some(value))
            }
            "prompt" if self.event == HookEvent::UserPromptSubmit => give(map, &mut self.input.prompt),
            name if self.is_source(name) => give(map, &mut self.input.source),
            // Everything else is skipped without building it, however large it is.
            _ => skip(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::hook::client::hook_client;
    use HookEvent::{
        PostToolUse, PreCompact, PreToolUse, SessionEnd, SessionStart, Stop, SubagentStop, UserPromptSubmit,
    };

    const CLAUDE: &str = "claude-code";

    fn of(client: &str, event: HookEvent, said: &Value) -> Input {
        Input::read(hook_client(client), event, said.to_string().as_bytes()).unwrap()
    }

    /// The fields are those that the real clients passed; ids and paths are shortened.
    #[test]
    fn a_stop_is_read_from_every_client() {
        let claude = json!({
            "session_id": "195b", "transcript_path": "p/195b.jsonl", "cwd": "w", "prompt_id": "f9e9",
            "permission_mode": "bypassPermissions", "effort": {"level": "medium"}, "hook_event_name": "Stop",
            "stop_hook_active": true, "last_assistant_message": "All done.", "background_tasks": [], "session_crons": [],
        });
        let codex = json!({
            "session_id": "195b", "turn_id": "01a1", "transcript_path": "p/195b.jsonl", "cwd": "w", "hook_event_name": "Stop",
            "model": "m", "permission_mode": "bypassPermissions", "stop_hook_active": true, "last_assistant_message": "All done.",
        });
        let gemini = json!({
            "session_id": "195b", "transcript_path": "p/195b.jsonl", "cwd": "w", "hook_event_name": "AfterAgent",
            "timestamp": "t", "prompt": "Do it.", "prompt_response": "All done.", "stop_hook_active": true,
        });
        let wanted = Input {
            session: "195b".into(),
            transcript: "p/195b.jsonl".into(),
            cwd: "w".into(),
            stop_active: true,
            last_answer: Some("All done.".into()),
            ..Input::default()
        };
        assert_eq!(of(CLAUDE, Stop, &claude), wanted);
        assert_eq!(of("codex", Stop, &codex), wanted);
        assert_eq!(of("gemini", Stop, &gemini), wanted);
        let copilot = json!({
            "timestamp": 1, "sessionId": "195b", "cwd": "w", "transcriptPath": "p/195b.jsonl", "stopReason": "end_turn",
            "stop_hook_active": true,
        });
        let wanted = Input { last_answer: None, source: "end_turn".into(), ..wanted };
        assert_eq!(of("copilot", Stop, &copilot), wanted);
    }

    #[test]
    fn each_event_has_its_own_fields() {
        let all = json!({
            "source": "resume", "reason": "other", "trigger": "auto", "prompt": "Do it.", "stop_reason": "end_turn",
            "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "a"}, "last_assistant_message": "x",
            "stop_hook_active": true, "prompt_response": "not this client's",
        });
        let call = ToolCall { name: "Bash".into(), input: json!({"command": "ls"}), response: None };
        let after = ToolCall { response: Some(json!({"stdout": "a"})), ..call.clone() };
        let nothing = Input::default();
        let stop = Input {
            stop_active: true,
            last_answer: Some("x".into()),
            source: "end_turn".into(),
            ..nothing.clone()
        };
        let cases = [
            (Stop, stop.clone()),
            (SubagentStop, stop),
            (SessionStart, Input { source: "resume".into(), ..nothing.clone() }),
            (SessionEnd, Input { source: "other".into(), ..nothing.clone() }),
            (PreCompact, Input { source: "auto".into(), ..nothing.clone() }),
            (UserPromptSubmit, Input { prompt: "Do it.".into(), ..nothing.clone() }),
            (PreToolUse, Input { tool: Some(call), ..nothing.clone() }),
            (PostToolUse, Input { tool: Some(after), ..nothing }),
        ];
        for (event, wanted) in cases {
            assert_eq!(of(CLAUDE, event, &all), wanted, "{event:?}");
        }
    }

    #[test]
    fn a_subagent_is_named_by_its_id_else_by_its_kind() {
        let agent = |said| of(CLAUDE, SubagentStop, &said).agent;
        assert_eq!(agent(json!({"agent_type": "Explore", "agent_id": "a1"})), "a1");
        assert_eq!(agent(json!({"agent_type": "Explore", "agent_id": ""})), "Explore");
        assert_eq!(agent(json!({"agentName": "Explore"})), "Explore");
        assert_eq!(agent(json!({})), "");
    }

    #[test]
    fn tools_of_copilot_have_their_arguments_as_text() {
        let tool = |client, said| of(client, PreToolUse, &said).tool.map(|tool| (tool.name, tool.input));
        let said = json!({"toolName": "bash", "toolArgs": "{\"command\":\"ls\"}"});
        assert_eq!(tool("copilot", said.clone()), Some(("bash".into(), json!({"command": "ls"}))));
        assert_eq!(tool("codex", said), Some(("bash".into(), json!("{\"command\":\"ls\"}"))));
        assert_eq!(tool("copilot", json!({"toolArgs": "ls {"})), Some((String::new(), json!("ls {"))));
        assert_eq!(tool("copilot", json!({})), None);
    }

    #[test]
    fn a_wrong_type_is_like_nothing() {
        for odd in [json!(null), json!(7), json!(-7.5), json!([["a"], {}]), json!({"a": {"b": []}})] {
            let said = json!({
                "session_id": odd, "transcript_path": odd, "cwd": odd, "stop_hook_active": odd, "last_assistant_message": odd,
                "stop_reason": odd, "agent_id": odd,
            });
            assert_eq!(of(CLAUDE, Stop, &said), Input::default());
        }
        assert!(!of(CLAUDE, Stop, &json!({"stop_hook_active": "true"})).stop_active);
        assert_eq!(of(CLAUDE, Stop, &json!({"session_id": true})).session, "");
        assert_eq!(of(CLAUDE, Stop, &json!({"last_assistant_message": ""})).last_answer, Some(String::new()));
    }

    #[test]
    fn bytes_and_characters_that_are_none_are_replaced() {
        let read =
            |bytes: &[u8]| Input::read(hook_client(CLAUDE), Stop, bytes).map(|input| input.last_answer);
        assert_eq!(read(b"{\"last_assistant_message\":\"a\xff\"}"), Ok(Some("a\u{fffd}".into())));
        let half = br#"{"cwd":"w","last_assistant_message":"\ud83d"}"#;
        assert_eq!(read(half), Ok(Some("\u{fffd}".into())));
        assert_eq!(read(b"\xef\xbb\xbf {\"last_assistant_message\":\"a\"}\r\n"), Ok(Some("a".into())));
    }

    #[test]
    fn what_is_no_object_is_an_error_that_says_so() {
        let wrong = |bytes: &[u8]| Input::read(hook_client(CLAUDE), Stop, bytes).unwrap_err();
        assert_eq!(wrong(b" \n"), "nothing came on standard input, where the client's JSON was expected");
        for other in ["[]", "\"{}\"", "null", "hello"] {
            assert_eq!(wrong(other.as_bytes()), "what came on standard input is not a JSON object");
        }
        let cut = wrong(br#"{"session_id":"a","#);
        assert_eq!(
            cut,
            "what came on standard input is not JSON: EOF while parsing a value at line 1 column 18"
        );
        assert!(wrong(b"{} {}").ends_with("trailing characters at line 1 column 4"));
    }

    /// Nothing is built of such fields, and no nesting is too deep to be skipped.
    #[test]
    fn what_an_event_does_not_need_may_be_large_and_deep() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let large = "x".repeat(50 << 20);
        let said = format!(r#"{{"tool_input":{deep},"tool_response":"{large}","session_id":"a"}}"#);
        assert_eq!(Input::read(hook_client(CLAUDE), Stop, said.as_bytes()).unwrap().session, "a");
        assert_eq!(Input::read(hook_client(CLAUDE), UserPromptSubmit, said.as_bytes()).unwrap().tool, None);
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), event in 0..8usize) {
            let object = [b"{\"tool_input\":", &bytes[..], b"}"].concat();
            for client in HookClient::all() {
                let _ = Input::read(client, HookEvent::ALL[event], &bytes);
                let _ = Input::read(client, HookEvent::ALL[event], &object);
            }
        }

        #[test]
        fn any_text_comes_through(text in any::<String>()) {
            let read = of(CLAUDE, Stop, &json!({"last_assistant_message": text}));
            prop_assert_eq!(read.last_answer, Some(text));
        }
    }
}
