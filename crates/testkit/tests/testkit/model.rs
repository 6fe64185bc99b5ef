//! Tests of the scripted model server over plain sockets, as a client would use it.
#![expect(clippy::expect_used, reason = "a test may panic")]

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};
use tribunal_testkit::model::{Api, Call, Failure, Rule, Scenario, Server, Step, Stop, Tokens, When};

/// A connection that sends bytes and reads answers.
struct Client(TcpStream);

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
    /// Whether the server ended the answer properly.
    whole: bool,
}

impl Client {
    fn to(server: &Server) -> Client {
        Client(TcpStream::connect(server.address()).expect("connected"))
    }

    fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).expect("sent");
    }

    fn post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.send(&(head + &body));
    }

    fn until(&mut self, end: &str) -> Option<String> {
        let (mut got, mut byte) = (Vec::new(), [0]);
        while !got.ends_with(end.as_bytes()) {
            match self.0.read(&mut byte) {
                Ok(1) => got.push(byte[0]),
                _ => return None,
            }
        }
        Some(String::from_utf8(got).expect("text"))
    }

    fn exactly(&mut self, length: usize) -> (String, bool) {
        let mut got = Vec::new();
        let read = (&self.0).take(length as u64).read_to_end(&mut got).unwrap_or_default();
        (String::from_utf8(got).expect("text"), read == length)
    }

    /// Reads an answer; `None` means that the connection ended before one.
    fn answer(&mut self) -> Option<Answer> {
        let head = self.until("\r\n\r\n")?;
        let status = head.split(' ').nth(1).expect("status").parse().expect("number");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let (body, whole) = match length {
            Some(length) => self.exactly(length.parse().expect("number")),
            None => self.chunks(),
        };
        Some(Answer { status, head, body, whole })
    }

    fn chunks(&mut self) -> (String, bool) {
        let mut body = String::new();
        loop {
            let Some(size) = self.until("\r\n") else { return (body, false) };
            let size = usize::from_str_radix(size.trim(), 16).expect("size");
            body.push_str(&self.exactly(size).0);
            self.until("\r\n");
            if size == 0 {
                return (body, true);
            }
        }
    }

    fn ask(&mut self, path: &str, body: &Value) -> Answer {
        self.post(path, body);
        self.answer().expect("answered")
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The data of each event.
    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
    }

    fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap_or_default().to_string()).collect()
    }
}

const PATHS: [(Api, &str); 3] = [
    (Api::Messages, "/v1/messages?beta=true"),
    (Api::Responses, "/v1/responses"),
    (Api::Chat, "/v1/chat/completions"),
];

/// A request that has the same text for each interface.
fn says(words: &str, stream: bool) -> Value {
    let message = json!({"role": "user", "content": words});
    json!({"model": "m", "stream": stream, "messages": [message], "input": [message]})
}

fn start(rules: impl IntoIterator<Item = Rule>) -> Server {
    Server::start(Scenario::new(rules)).expect("started")
}

#[test]
fn each_interface_answers_in_its_own_form() {
    let tokens = Tokens { input: 50, cached: 20, output: 7, reasoning: 3 };
    let server = start([Rule::on("hello", [Step::text("good day").using(tokens)])]);
    let mut client = Client::to(&server);
    let expected = [
        ("/content/0/text", "/usage/input_tokens", 30, "/stop_reason", "end_turn"),
        ("/output/0/content/0/text", "/usage/input_tokens", 50, "/status", "completed"),
        ("/choices/0/message/content", "/usage/prompt_tokens", 50, "/choices/0/finish_reason", "stop"),
    ];
    for ((_, path), (text, input, count, end, reason)) in PATHS.into_iter().zip(expected) {
        let answer = client.ask(path, &says("hello", false)).json();
        assert_eq!(answer.pointer(text), Some(&json!("good day")), "{path}");
        assert_eq!(answer.pointer(input), Some(&json!(count)), "{path}");
        assert_eq!(answer.pointer(end), Some(&json!(reason)), "{path}");
    }
}

#[test]
fn streams_say_the_same_in_events() {
    let words = "a word and another one ".repeat(20);
    let server = start([Rule::always([Step::text(words.clone())])]);
    let mut client = Client::to(&server);
    let pieces = ["/delta/text", "/delta", "/choices/0/delta/content"];
    let ends = ["message_stop", "response.completed", ""];
    for ((_, path), (piece, end)) in PATHS.into_iter().zip(pieces.into_iter().zip(ends)) {
        let answer = client.ask(path, &says("hello", true));
        assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
        let said: String = answer
            .events()
            .iter()
            .filter_map(|event| event.pointer(piece)?.as_str().map(str::to_string))
            .collect();
        assert_eq!(said, words, "{path}");
        assert_eq!(answer.kinds().last().map(String::as_str), Some(end), "{path}");
        assert!(answer.whole);
    }
}

#[test]
fn steps_follow_the_rounds_and_not_the_tries() {
    let call = Call::Tool { name: "Look".into(), input: json!({"at": 1}) };
    let server = start([Rule::on("go", [Step::calls([call]), Step::text("done")])]);
    let mut client = Client::to(&server);
    let user = json!({"role": "user", "content": "go"});
    let called = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Look", "input": {}}]});
    let result =
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]});
    for _ in 0..2 {
        let first = client.ask("/v1/messages", &json!({"model": "m", "messages": [user]})).json();
        assert_eq!(first["content"][0]["name"], "Look");
        assert_eq!(first["stop_reason"], "tool_use");
        let second =
            client.ask("/v1/messages", &json!({"model": "m", "messages": [user, called, result]})).json();
        assert_eq!(second["content"][0]["text"], "done");
    }
    assert_eq!(server.tally().requests[1].results, ["seen"]);

    let beyond = json!({"model": "m", "messages": [user, called, result, called, result]});
    assert_eq!(client.ask("/v1/messages", &beyond).status, 400, "the script has no third step");
    assert_eq!(server.tally().unscripted().len(), 1);
}

#[test]
fn calls_of_each_interface_are_its_own() {
    let call = Call::Tool { name: "Look".into(), input: json!({"at": 1}) };
    let server = start([Rule::always([Step::calls([call])])]);
    let mut client = Client::to(&server);
    let chat = client.ask("/v1/chat/completions", &says("x", false)).json();
    assert_eq!(chat["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], r#"{"at":1}"#);
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
    let responses = client.ask("/v1/responses", &says("x", true));
    let done = responses.events().into_iter().find(|event| event["type"] == "response.output_item.done");
    let item = done.expect("an item")["item"].clone();
    assert_eq!((&item["type"], &item["arguments"]), (&json!("function_call"), &json!(r#"{"at":1}"#)));
    let kinds = client.ask("/v1/messages", &says("x", true)).kinds();
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
fn an_answer_to_a_schema_goes_through_the_clients_tool_for_it() {
    let server = start([Rule::always([Step::structured(json!({"findings": []}))])]);
    let mut client = Client::to(&server);
    let mut asked = says("x", false);
    let plain = client.ask("/v1/messages", &asked).json();
    assert_eq!(plain["content"][0]["text"], r#"{"findings":[]}"#);
    asked["tools"] = json!([{"name": "StructuredOutput", "input_schema": {}}]);
    let called = client.ask("/v1/messages", &asked).json();
    assert_eq!(called["content"][0]["input"], json!({"findings": []}));
    assert_eq!(server.tally().requests[1].tools(), ["StructuredOutput"]);
}

#[test]
fn conditions_are_all_asked() {
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
    let server = Server::start(Scenario::parse(scenario).expect("read")).expect("started");
    let mut client = Client::to(&server);
    let mut text = |body: Value| client.ask("/v1/messages", &body).json()["content"][0]["text"].clone();
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
    let rules: Vec<_> = server.tally().requests.iter().map(|request| request.rule).collect();
    assert_eq!(rules, [0, 3, 3, 1, 3, 2].map(Some));
}

#[test]
fn a_scenario_that_means_nothing_is_refused() {
    for (text, why) in [
        ("rules: [{when: {lust: x}, steps: [{text: y}]}]", "lust"),
        ("rules: [{when: {last: {regex: '('}}, steps: [{text: y}]}]", "regex"),
        ("rules: [{steps: [{text: y}]}, {when: {last: x}}]", "rule 2 of the scenario has no steps"),
    ] {
        let problem = Scenario::parse(text).expect_err(text).to_string();
        assert!(problem.contains(why), "{problem}");
    }
}

#[test]
fn a_rule_with_uses_counts_requests() {
    let broken = Step::fail(Failure::status(529, "overloaded_error", "busy"));
    let server =
        start([Rule::on("x", [broken, Step::text("second")]).uses(2), Rule::always([Step::text("later")])]);
    let mut client = Client::to(&server);
    let statuses: Vec<u16> = (0..3).map(|_| client.ask("/v1/messages", &says("x", false)).status).collect();
    assert_eq!(statuses, [529, 200, 200]);
    let rules: Vec<_> = server.tally().requests.iter().map(|request| request.rule).collect();
    assert_eq!(rules, [Some(0), Some(0), Some(1)]);
}

#[test]
fn a_rule_can_hold_until_a_gate_is_open() {
    let limit = Step::fail(Failure::status(429, "rate_limit_error", "later"));
    let server = start([Rule::always([limit]).until("morning"), Rule::always([Step::text("good day")])]);
    let mut client = Client::to(&server);
    assert_eq!(client.ask("/v1/messages", &says("x", false)).status, 429);
    server.open("morning");
    assert_eq!(client.ask("/v1/messages", &says("x", false)).status, 200);
}

#[test]
fn error_answers_have_the_form_of_their_interface() {
    let failure = Failure::status(429, "rate_limit_error", "usage limit reached").header("retry-after", "3");
    let server = start([Rule::always([Step::fail(failure)])]);
    let mut client = Client::to(&server);
    for (api, path) in PATHS {
        let answer = client.ask(path, &says("x", true));
        assert_eq!(answer.status, 429);
        assert!(answer.head.contains("\r\nretry-after: 3\r\n"), "{}", answer.head);
        assert_eq!(answer.json()["error"]["message"], "usage limit reached");
        assert_eq!(answer.json()["type"] == "error", api == Api::Messages);
    }
}

#[test]
fn what_breaks_breaks_in_the_middle() {
    let error = Failure::StreamError { kind: "overloaded_error".into(), message: "busy".into() };
    let server = start([
        Rule::on("cut", [Step::fail(Failure::Cut)]),
        Rule::on("hang up", [Step::fail(Failure::HangUp)]),
        Rule::on("error", [Step::fail(error)]),
        Rule::on("rubbish", [Step::fail(Failure::NotJson("<html>".into()))]),
    ]);
    for (_, path) in PATHS {
        for stream in [true, false] {
            let mut client = Client::to(&server);
            let cut = client.ask(path, &says("cut", stream));
            assert!(!cut.whole && !cut.body.is_empty(), "{cut:?}");
            assert!(client.answer().is_none(), "the connection is over");

            let mut client = Client::to(&server);
            client.post(path, &says("hang up", stream));
            assert!(client.answer().is_none());

            let mut client = Client::to(&server);
            let failed = client.ask(path, &says("error", stream));
            assert!(failed.whole && failed.body.contains("busy"), "{failed:?}");
            assert_eq!(failed.status, if stream { 200 } else { 500 });
            assert_eq!(client.ask(path, &says("rubbish", stream)).body, "<html>");
        }
    }
}

#[test]
fn reasons_to_stop_are_said() {
    let stops = [
        (Stop::MaxTokens, ["max_tokens", "incomplete", "length"]),
        (Stop::Refusal, ["refusal", "incomplete", "content_filter"]),
    ];
    for (stop, words) in stops {
        let server = start([Rule::always([Step::text("").stopping(stop)])]);
        let mut client = Client::to(&server);
        let places = ["/stop_reason", "/status", "/choices/0/finish_reason"];
        for ((_, path), (place, word)) in PATHS.into_iter().zip(places.into_iter().zip(words)) {
            assert_eq!(client.ask(path, &says("x", false)).json().pointer(place), Some(&json!(word)));
            let streamed = client.ask(path, &says("x", true)).body;
            assert!(streamed.contains(word), "{streamed}");
        }
    }
}

#[test]
fn gates_hold_back_and_silence_never_ends() {
    let server = start([
        Rule::on("gated", [Step::text("through")]).gated("a"),
        Rule::on("silent", [Step::fail(Failure::Silence)]),
    ]);
    let mut gated = [Client::to(&server), Client::to(&server)];
    let mut silent = Client::to(&server);
    for client in &mut gated {
        client.post("/v1/messages", &says("gated", false));
    }
    silent.post("/v1/messages", &says("silent", false));
    server.wait_for(3);
    assert_eq!((server.tally().live, server.tally().peak), (3, 3));
    server.open("a");
    for client in &mut gated {
        assert_eq!(client.answer().expect("answered").json()["content"][0]["text"], "through");
    }
    drop(silent);
    server.wait_until("the end of the silence", |tally| tally.live == 0);
    assert_eq!(server.tally().peak, 3);
}

#[test]
fn a_dropped_server_leaves_nobody_waiting() {
    let server = start([
        Rule::on("gated", [Step::text("x").gated("never")]),
        Rule::always([Step::fail(Failure::Silence)]),
    ]);
    let mut clients = [Client::to(&server), Client::to(&server), Client::to(&server)];
    clients[0].post("/v1/messages", &says("gated", false));
    clients[1].post("/v1/messages", &says("silent", false));
    server.wait_for(2);
    let address = server.address();
    drop(server);
    for client in &mut clients {
        assert!(client.answer().is_none());
    }
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
}

#[test]
fn bodies_come_in_every_form() {
    let server = start([Rule::on("hello", [Step::text("good day")])]);
    let mut client = Client::to(&server);
    let body = says("hello", false).to_string();
    let (one, two) = body.split_at(10);
    client.send("POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(&format!("{:x};part\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", one.len(), two.len()));
    assert_eq!(client.answer().expect("answered").status, 200);

    client.send(&format!(
        "POST /v1/messages HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    ));
    assert_eq!(client.until("\r\n\r\n").expect("a word"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(&body);
    assert_eq!(client.answer().expect("answered").status, 200);

    client.send("POST /v1/messages HTTP/1.1\r\ncontent-length: 3\r\n\r\n{x}");
    assert_eq!(client.answer().expect("answered").status, 400);
    let tally = server.tally();
    assert!(tally.requests.iter().all(|request| !request.authorised && request.last == "hello"));
    assert_eq!((tally.requests.len(), tally.visits.as_slice()), (2, &["POST /v1/messages".to_string()][..]));
}

#[test]
fn what_is_not_for_a_model_is_a_visit() {
    let server =
        Server::start(Scenario { models: vec!["one".into()], ..Scenario::default() }).expect("started");
    let mut client = Client::to(&server);
    client.send("GET /v1/models?limit=1 HTTP/1.1\r\n\r\n");
    assert_eq!(client.answer().expect("answered").json()["data"][0]["id"], "one");
    client.send("GET /v1/messages HTTP/1.1\r\n\r\n");
    assert_eq!(client.answer().expect("answered").status, 404);
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    assert!(client.until("\r\n\r\n").expect("a head").starts_with("HTTP/1.1 404 Not Found\r\n"));
    client.post("/v1/messages", &says("x", false));
    assert!(client.answer().expect("answered").body.contains("the scenario says nothing"));
    assert_eq!(server.tally().visits, ["GET /v1/models?limit=1", "GET /v1/messages", "HEAD /"]);
}

#[test]
fn rules_can_be_as_narrow_as_a_test_needs() {
    let when = When { api: Some(Api::Responses), stream: Some(true), ..When::default() };
    let server = start([Rule::when(when, [Step::text("narrow")])]);
    let mut client = Client::to(&server);
    assert_eq!(client.ask("/v1/responses", &says("x", true)).status, 200);
    assert_eq!(client.ask("/v1/responses", &says("x", false)).status, 400);
    assert_eq!(client.ask("/v1/messages", &says("x", true)).status, 400);
}
