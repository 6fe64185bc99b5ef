//! Tests of the scripted model server over plain sockets, as a client would use it.
#![expect(clippy::expect_used, reason = "a test may panic")]

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};
use tribunal_testkit::model::{
    AnswerFailure, AnswerStep, AnswerStop, ModelApi, ModelServer, RuleCondition, Scenario, ScenarioCall, ScenarioRule,
    ScriptedTokens,
};

/// A connection that sends bytes and reads answers.
struct RawClient(TcpStream);

#[derive(Debug)]
struct RawAnswer {
    status: u16,
    head: String,
    body: String,
    /// Whether the server ended the answer properly.
    is_complete: bool,
}

impl RawClient {
    fn connect(server: &ModelServer) -> RawClient {
        RawClient(TcpStream::connect(server.address()).expect("connected"))
    }

    fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).expect("sent");
    }

    fn post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {}\r\n\r\n", body.len());
        self.send(&(head + &body));
    }

    fn read_until(&mut self, terminator: &str) -> Option<String> {
        let (mut received, mut byte) = (Vec::new(), [0]);
        while !received.ends_with(terminator.as_bytes()) {
            match self.0.read(&mut byte) {
                Ok(1) => received.push(byte[0]),
                _ => return None,
            }
        }
        Some(String::from_utf8(received).expect("text"))
    }

    fn read_exactly(&mut self, length: usize) -> (String, bool) {
        let mut received = Vec::new();
        let read = (&self.0).take(length as u64).read_to_end(&mut received).unwrap_or_default();
        (String::from_utf8(received).expect("text"), read == length)
    }

    /// Reads an answer; `None` means that the connection ended before one.
    fn read_answer(&mut self) -> Option<RawAnswer> {
        let head = self.read_until("\r\n\r\n")?;
        let status = head.split(' ').nth(1).expect("status").parse().expect("number");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let (body, is_complete) = match length {
            Some(length) => self.read_exactly(length.parse().expect("number")),
            None => self.read_chunks(),
        };
        Some(RawAnswer { status, head, body, is_complete })
    }

    fn read_chunks(&mut self) -> (String, bool) {
        let mut body = String::new();
        loop {
            let Some(size) = self.read_until("\r\n") else { return (body, false) };
            let size = usize::from_str_radix(size.trim(), 16).expect("size");
            body.push_str(&self.read_exactly(size).0);
            self.read_until("\r\n");
            if size == 0 {
                return (body, true);
            }
        }
    }

    fn ask(&mut self, path: &str, body: &Value) -> RawAnswer {
        self.post(path, body);
        self.read_answer().expect("answered")
    }
}

impl RawAnswer {
    fn parse_json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The data of each event.
    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
    }

    fn event_types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap_or_default().to_string()).collect()
    }
}

const PATHS: [(ModelApi, &str); 3] = [
    (ModelApi::Messages, "/v1/messages?beta=true"),
    (ModelApi::Responses, "/v1/responses"),
    (ModelApi::Chat, "/v1/chat/completions"),
];

/// A request that has the same text for each interface.
fn user_request(user_text: &str, stream: bool) -> Value {
    let message = json!({"role": "user", "content": user_text});
    json!({"model": "m", "stream": stream, "messages": [message], "input": [message]})
}

fn start_server(rules: impl IntoIterator<Item = ScenarioRule>) -> ModelServer {
    ModelServer::start(Scenario::new(rules)).expect("started")
}

#[test]
fn each_interface_answers_in_its_own_form() {
    let tokens = ScriptedTokens { input: 50, cached: 20, output: 7, reasoning: 3 };
    let server =
        start_server([ScenarioRule::on_last_text("hello", [AnswerStep::from_text("good day").with_tokens(tokens)])]);
    let mut client = RawClient::connect(&server);
    let expected = [
        ("/content/0/text", "/usage/input_tokens", 30, "/stop_reason", "end_turn"),
        ("/output/0/content/0/text", "/usage/input_tokens", 50, "/status", "completed"),
        ("/choices/0/message/content", "/usage/prompt_tokens", 50, "/choices/0/finish_reason", "stop"),
    ];
    for ((_, path), (text, input, count, reason_pointer, reason)) in PATHS.into_iter().zip(expected) {
        let answer = client.ask(path, &user_request("hello", false)).parse_json();
        assert_eq!(answer.pointer(text), Some(&json!("good day")), "{path}");
        assert_eq!(answer.pointer(input), Some(&json!(count)), "{path}");
        assert_eq!(answer.pointer(reason_pointer), Some(&json!(reason)), "{path}");
    }
}

#[test]
fn streamed_events_carry_the_whole_answer() {
    let words = "a word and another one ".repeat(20);
    let server = start_server([ScenarioRule::always([AnswerStep::from_text(words.clone())])]);
    let mut client = RawClient::connect(&server);
    let pieces = ["/delta/text", "/delta", "/choices/0/delta/content"];
    let ends = ["message_stop", "response.completed", ""];
    for ((_, path), (piece, end)) in PATHS.into_iter().zip(pieces.into_iter().zip(ends)) {
        let answer = client.ask(path, &user_request("hello", true));
        assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
        let streamed_text: String =
            answer.events().iter().filter_map(|event| event.pointer(piece)?.as_str().map(str::to_string)).collect();
        assert_eq!(streamed_text, words, "{path}");
        assert_eq!(answer.event_types().last().map(String::as_str), Some(end), "{path}");
        assert!(answer.is_complete);
    }
}

#[test]
fn steps_follow_tool_rounds_and_not_retries() {
    let call = ScenarioCall::Tool { name: "Look".into(), input: json!({"at": 1}) };
    let server = start_server([ScenarioRule::on_last_text(
        "go",
        [AnswerStep::from_calls([call]), AnswerStep::from_text("done")],
    )]);
    let mut client = RawClient::connect(&server);
    let user = json!({"role": "user", "content": "go"});
    let called =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Look", "input": {}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]});
    for _ in 0..2 {
        let first = client.ask("/v1/messages", &json!({"model": "m", "messages": [user]})).parse_json();
        assert_eq!(first["content"][0]["name"], "Look");
        assert_eq!(first["stop_reason"], "tool_use");
        let second =
            client.ask("/v1/messages", &json!({"model": "m", "messages": [user, called, result]})).parse_json();
        assert_eq!(second["content"][0]["text"], "done");
    }
    assert_eq!(server.request_log().requests[1].tool_results, ["seen"]);

    let third_round = json!({"model": "m", "messages": [user, called, result, called, result]});
    assert_eq!(client.ask("/v1/messages", &third_round).status, 400, "the script has no third step");
    assert_eq!(server.request_log().unscripted().len(), 1);
}

#[test]
fn tool_calls_have_the_form_of_their_interface() {
    let call = ScenarioCall::Tool { name: "Look".into(), input: json!({"at": 1}) };
    let server = start_server([ScenarioRule::always([AnswerStep::from_calls([call])])]);
    let mut client = RawClient::connect(&server);
    let chat = client.ask("/v1/chat/completions", &user_request("x", false)).parse_json();
    assert_eq!(chat["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], r#"{"at":1}"#);
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
    let responses = client.ask("/v1/responses", &user_request("x", true));
    let done = responses.events().into_iter().find(|event| event["type"] == "response.output_item.done");
    let item = done.expect("an item")["item"].clone();
    assert_eq!((&item["type"], &item["arguments"]), (&json!("function_call"), &json!(r#"{"at":1}"#)));
    let kinds = client.ask("/v1/messages", &user_request("x", true)).event_types();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn an_answer_to_a_schema_uses_the_tool_that_the_client_offers() {
    let server = start_server([ScenarioRule::always([AnswerStep::from_structured(json!({"findings": []}))])]);
    let mut client = RawClient::connect(&server);
    let mut asked = user_request("x", false);
    let plain = client.ask("/v1/messages", &asked).parse_json();
    assert_eq!(plain["content"][0]["text"], r#"{"findings":[]}"#);
    asked["tools"] = json!([{"name": "StructuredOutput", "input_schema": {}}]);
    let called = client.ask("/v1/messages", &asked).parse_json();
    assert_eq!(called["content"][0]["input"], json!({"findings": []}));
    assert_eq!(server.request_log().requests[1].tool_names(), ["StructuredOutput"]);
}

#[test]
fn all_conditions_of_a_rule_must_match() {
    let scenario = "
rules:
  - when: {last: {regex: '^a+$'}, model: small, api: messages}
    steps: [{text: a small one}]
  - when: {system: be brief, tool: Read}
    steps: [{text: with a tool}]
  - when: {first: begin, stream: false}
    steps: [{text: begun}]
  - steps: [{text: anything, stop: max_tokens, tokens: {output: 3}}]
models: [one, two]
";
    let server = ModelServer::start(Scenario::parse(scenario).expect("read")).expect("started");
    let mut client = RawClient::connect(&server);
    let mut text = |body: Value| client.ask("/v1/messages", &body).parse_json()["content"][0]["text"].clone();
    let message = |words: &str| json!({"role": "user", "content": words});
    assert_eq!(text(json!({"model": "a-small-one", "messages": [message("aaa")]})), "a small one");
    assert_eq!(text(json!({"model": "a-small-one", "messages": [message("aab")]})), "anything");
    assert_eq!(text(json!({"model": "large", "messages": [message("aaa")]})), "anything");
    let tools = json!([{"name": "Read", "input_schema": {}}]);
    assert_eq!(
        text(json!({"model": "m", "system": "be brief, please", "tools": tools, "messages": []})),
        "with a tool"
    );
    assert_eq!(text(json!({"model": "m", "system": "be brief", "messages": []})), "anything");
    assert_eq!(text(json!({"model": "m", "messages": [message("begin"), message("end")]})), "begun");
    let rules: Vec<_> = server.request_log().requests.iter().map(|request| request.rule_index).collect();
    assert_eq!(rules, [0, 3, 3, 1, 3, 2].map(Some));
}

#[test]
fn an_invalid_scenario_is_refused() {
    for (text, expected_problem) in [
        ("rules: [{when: {lust: x}, steps: [{text: y}]}]", "lust"),
        ("rules: [{when: {last: {regex: '('}}, steps: [{text: y}]}]", "regex"),
        ("rules: [{steps: [{text: y}]}, {when: {last: x}}]", "rule 2 has no steps"),
    ] {
        let problem = Scenario::parse(text).expect_err(text).to_string();
        assert!(problem.contains(expected_problem), "{problem}");
    }
}

#[test]
fn a_rule_with_uses_counts_requests() {
    let broken = AnswerStep::from_failure(AnswerFailure::from_status(529, "overloaded_error", "busy"));
    let server = start_server([
        ScenarioRule::on_last_text("x", [broken, AnswerStep::from_text("second")]).limited_to(2),
        ScenarioRule::always([AnswerStep::from_text("later")]),
    ]);
    let mut client = RawClient::connect(&server);
    let statuses: Vec<u16> = (0..3).map(|_| client.ask("/v1/messages", &user_request("x", false)).status).collect();
    assert_eq!(statuses, [529, 200, 200]);
    let rules: Vec<_> = server.request_log().requests.iter().map(|request| request.rule_index).collect();
    assert_eq!(rules, [Some(0), Some(0), Some(1)]);
}

#[test]
fn a_rule_can_hold_until_a_gate_is_open() {
    let limit = AnswerStep::from_failure(AnswerFailure::from_status(429, "rate_limit_error", "later"));
    let server = start_server([
        ScenarioRule::always([limit]).until_gate("morning"),
        ScenarioRule::always([AnswerStep::from_text("good day")]),
    ]);
    let mut client = RawClient::connect(&server);
    assert_eq!(client.ask("/v1/messages", &user_request("x", false)).status, 429);
    server.open_gate("morning");
    assert_eq!(client.ask("/v1/messages", &user_request("x", false)).status, 200);
}

#[test]
fn error_answers_have_the_form_of_their_interface() {
    let failure =
        AnswerFailure::from_status(429, "rate_limit_error", "usage limit reached").with_header("retry-after", "3");
    let server = start_server([ScenarioRule::always([AnswerStep::from_failure(failure)])]);
    let mut client = RawClient::connect(&server);
    for (api, path) in PATHS {
        let answer = client.ask(path, &user_request("x", true));
        assert_eq!(answer.status, 429);
        assert!(answer.head.contains("\r\nretry-after: 3\r\n"), "{}", answer.head);
        assert_eq!(answer.parse_json()["error"]["message"], "usage limit reached");
        assert_eq!(answer.parse_json()["type"] == "error", api == ModelApi::Messages);
    }
}

#[test]
fn failures_happen_in_the_middle_of_an_answer() {
    let error = AnswerFailure::StreamError { kind: "overloaded_error".into(), message: "busy".into() };
    let server = start_server([
        ScenarioRule::on_last_text("cut", [AnswerStep::from_failure(AnswerFailure::Cut)]),
        ScenarioRule::on_last_text("hang up", [AnswerStep::from_failure(AnswerFailure::HangUp)]),
        ScenarioRule::on_last_text("error", [AnswerStep::from_failure(error)]),
        ScenarioRule::on_last_text("rubbish", [AnswerStep::from_failure(AnswerFailure::NotJson("<html>".into()))]),
    ]);
    for (_, path) in PATHS {
        for stream in [true, false] {
            let mut client = RawClient::connect(&server);
            let cut = client.ask(path, &user_request("cut", stream));
            assert!(!cut.is_complete && !cut.body.is_empty(), "{cut:?}");
            assert!(client.read_answer().is_none(), "the connection is over");

            let mut client = RawClient::connect(&server);
            client.post(path, &user_request("hang up", stream));
            assert!(client.read_answer().is_none());

            let mut client = RawClient::connect(&server);
            let failed = client.ask(path, &user_request("error", stream));
            assert!(failed.is_complete && failed.body.contains("busy"), "{failed:?}");
            assert_eq!(failed.status, if stream { 200 } else { 500 });
            assert_eq!(client.ask(path, &user_request("rubbish", stream)).body, "<html>");
        }
    }
}

#[test]
fn stop_reasons_have_the_form_of_their_interface() {
    let stops = [
        (AnswerStop::MaxTokens, ["max_tokens", "incomplete", "length"]),
        (AnswerStop::Refusal, ["refusal", "incomplete", "content_filter"]),
    ];
    for (stop, words) in stops {
        let server = start_server([ScenarioRule::always([AnswerStep::from_text("").with_stop(stop)])]);
        let mut client = RawClient::connect(&server);
        let places = ["/stop_reason", "/status", "/choices/0/finish_reason"];
        for ((_, path), (place, word)) in PATHS.into_iter().zip(places.into_iter().zip(words)) {
            assert_eq!(client.ask(path, &user_request("x", false)).parse_json().pointer(place), Some(&json!(word)));
            let streamed = client.ask(path, &user_request("x", true)).body;
            assert!(streamed.contains(word), "{streamed}");
        }
    }
}

#[test]
fn gates_hold_answers_back_and_silence_never_ends() {
    let server = start_server([
        ScenarioRule::on_last_text("gated", [AnswerStep::from_text("through")]).gated("a"),
        ScenarioRule::on_last_text("silent", [AnswerStep::from_failure(AnswerFailure::Silence)]),
    ]);
    let mut gated = [RawClient::connect(&server), RawClient::connect(&server)];
    let mut silent = RawClient::connect(&server);
    for client in &mut gated {
        client.post("/v1/messages", &user_request("gated", false));
    }
    silent.post("/v1/messages", &user_request("silent", false));
    server.wait_for_requests(3);
    assert_eq!((server.request_log().live_requests, server.request_log().peak_requests), (3, 3));
    server.open_gate("a");
    for client in &mut gated {
        assert_eq!(client.read_answer().expect("answered").parse_json()["content"][0]["text"], "through");
    }
    drop(silent);
    server.wait_until("the end of the silence", |tally| tally.live_requests == 0);
    assert_eq!(server.request_log().peak_requests, 3);
}

#[test]
fn a_dropped_server_closes_all_connections() {
    let server = start_server([
        ScenarioRule::on_last_text("gated", [AnswerStep::from_text("x").gated("never")]),
        ScenarioRule::always([AnswerStep::from_failure(AnswerFailure::Silence)]),
    ]);
    let mut clients = [RawClient::connect(&server), RawClient::connect(&server), RawClient::connect(&server)];
    clients[0].post("/v1/messages", &user_request("gated", false));
    clients[1].post("/v1/messages", &user_request("silent", false));
    server.wait_for_requests(2);
    let address = server.address();
    drop(server);
    for client in &mut clients {
        assert!(client.read_answer().is_none());
    }
    assert!(TcpStream::connect(address).is_err(), "nothing listens");
}

#[test]
fn request_bodies_may_be_chunked_or_awaited() {
    let server = start_server([ScenarioRule::on_last_text("hello", [AnswerStep::from_text("good day")])]);
    let mut client = RawClient::connect(&server);
    let body = user_request("hello", false).to_string();
    let (one, two) = body.split_at(10);
    client.send("POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(&format!("{:x};part\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", one.len(), two.len()));
    assert_eq!(client.read_answer().expect("answered").status, 200);

    client
        .send(&format!("POST /v1/messages HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n", body.len()));
    assert_eq!(client.read_until("\r\n\r\n").expect("a word"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(&body);
    assert_eq!(client.read_answer().expect("answered").status, 200);

    client.send("POST /v1/messages HTTP/1.1\r\ncontent-length: 3\r\n\r\n{x}");
    assert_eq!(client.read_answer().expect("answered").status, 400);
    let tally = server.request_log();
    assert!(tally.requests.iter().all(|request| !request.has_api_key && request.last_text == "hello"));
    assert_eq!((tally.requests.len(), tally.visits.as_slice()), (2, &["POST /v1/messages".to_string()][..]));
}

#[test]
fn requests_to_other_paths_are_recorded_as_visits() {
    let server = ModelServer::start(Scenario { models: vec!["one".into()], ..Scenario::default() }).expect("started");
    let mut client = RawClient::connect(&server);
    client.send("GET /v1/models?limit=1 HTTP/1.1\r\n\r\n");
    assert_eq!(client.read_answer().expect("answered").parse_json()["data"][0]["id"], "one");
    client.send("GET /v1/messages HTTP/1.1\r\n\r\n");
    assert_eq!(client.read_answer().expect("answered").status, 404);
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    assert!(client.read_until("\r\n\r\n").expect("a head").starts_with("HTTP/1.1 404 Not Found\r\n"));
    client.post("/v1/messages", &user_request("x", false));
    assert!(client.read_answer().expect("answered").body.contains("no rule of the scenario matches"));
    assert_eq!(server.request_log().visits, ["GET /v1/models?limit=1", "GET /v1/messages", "HEAD /"]);
}

#[test]
fn rules_can_be_as_narrow_as_a_test_needs() {
    let when = RuleCondition { api: Some(ModelApi::Responses), stream: Some(true), ..RuleCondition::default() };
    let server = start_server([ScenarioRule::on_condition(when, [AnswerStep::from_text("narrow")])]);
    let mut client = RawClient::connect(&server);
    assert_eq!(client.ask("/v1/responses", &user_request("x", true)).status, 200);
    assert_eq!(client.ask("/v1/responses", &user_request("x", false)).status, 400);
    assert_eq!(client.ask("/v1/messages", &user_request("x", true)).status, 400);
}
