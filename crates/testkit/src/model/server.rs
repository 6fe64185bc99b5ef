//! The server itself: sockets, threads, gates, and the log of requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, BufReader},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    http::{self, HttpRequest, HttpResponse},
    model_answer::{ModelAnswer, error_body, stream_error_event},
    request::{ModelApi, ModelRequest},
    review_rules,
    scenario::{AnswerFailure, AnswerStep, Scenario},
    timestamps,
};

/// The longest wait of a test; what has not come by then will not come.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// The requests so far.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    /// The requests to a model, oldest first.
    pub requests: Vec<ModelRequest>,
    /// All other requests, as `METHOD PATH`.
    pub visits: Vec<String>,
    /// The number of requests that are being answered now; `peak_requests` is the highest number so far.
    pub live_requests: usize,
    pub peak_requests: usize,
}

impl RequestLog {
    /// The requests that no rule of the scenario matches.
    pub fn unscripted(&self) -> Vec<&ModelRequest> {
        self.requests.iter().filter(|request| request.rule_index.is_none()).collect()
    }
}

#[derive(Debug, Default)]
struct ServerState {
    request_log: RequestLog,
    /// The number of requests that each rule has answered.
    rule_uses: Vec<usize>,
    open_gates: BTreeSet<String>,
    connections: BTreeMap<u64, TcpStream>,
    is_closed: bool,
}

#[derive(Debug)]
struct SharedServer {
    scenario: Scenario,
    state: Mutex<ServerState>,
    changed: Condvar,
}

/// A running server. It listens until it is dropped; then every connection is closed and every thread has ended.
#[derive(Debug)]
pub struct ModelServer {
    shared: Arc<SharedServer>,
    address: SocketAddr,
    listener_thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts on a free port.
    pub fn start(scenario: Scenario) -> io::Result<ModelServer> {
        ModelServer::start_on_port(scenario, 0)
    }

    pub fn start_on_port(scenario: Scenario, port: u16) -> io::Result<ModelServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let rule_uses = vec![0; scenario.rules.len()];
        let state = Mutex::new(ServerState { rule_uses, ..ServerState::default() });
        let shared = Arc::new(SharedServer { scenario, state, changed: Condvar::new() });
        let listener_shared = Arc::clone(&shared);
        let listener = thread::Builder::new()
            .name("model".into())
            .spawn(move || accept_connections(&listener_shared, &listener))?;
        Ok(ModelServer { shared, address, listener_thread: Some(listener) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn request_log(&self) -> RequestLog {
        self.shared.lock_state().request_log.clone()
    }

    /// Lets every answer pass that waits, or will wait, at this gate.
    pub fn open_gate(&self, gate_name: &str) {
        self.shared.lock_state().open_gates.insert(gate_name.to_string());
        self.shared.changed.notify_all();
    }

    /// Waits until this many requests to a model have arrived, answered or not.
    pub fn wait_for_requests(&self, request_count: usize) {
        self.wait_until(&format!("{request_count} requests"), |tally| tally.requests.len() >= request_count);
    }

    /// Shows every request as it comes in, without end.
    pub fn watch_requests(&self, show_request: &mut dyn FnMut(usize, &ModelRequest)) -> ! {
        let mut shown_count = 0;
        loop {
            let keeps_waiting = |state: &mut ServerState| state.request_log.requests.len() <= shown_count;
            let state = self.shared.changed.wait_while(self.shared.lock_state(), keeps_waiting);
            let next_request =
                state.unwrap_or_else(PoisonError::into_inner).request_log.requests.get(shown_count).cloned();
            if let Some(request) = &next_request {
                shown_count += 1;
                show_request(shown_count, request);
            }
        }
    }

    /// Waits until the log meets a condition. It panics if that takes longer than any test should.
    pub fn wait_until(&self, description: &str, is_reached: impl Fn(&RequestLog) -> bool) {
        let keeps_waiting = |state: &mut ServerState| !is_reached(&state.request_log);
        let (state, wait_result) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock_state(), MAX_WAIT, keeps_waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if wait_result.timed_out() {
            panic!("timed out waiting for {description}; requests so far: {:#?}", state.request_log);
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let mut state = self.shared.lock_state();
        state.is_closed = true;
        for connection in state.connections.values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // The listener notices the end only when a connection comes in, so one is opened.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener_thread.take() {
            let _ = listener.join();
        }
    }
}

impl SharedServer {
    fn lock_state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at a gate. The result is false if the server was dropped meanwhile.
    fn wait_at_gate(&self, gate_name: &str) -> bool {
        let keeps_waiting = |state: &mut ServerState| !state.is_closed && !state.open_gates.contains(gate_name);
        let state = self.changed.wait_while(self.lock_state(), keeps_waiting).unwrap_or_else(PoisonError::into_inner);
        !state.is_closed
    }

    fn record_visit(&self, incoming: &HttpRequest) {
        self.lock_state().request_log.visits.push(format!("{} {}", incoming.method, incoming.path));
        self.changed.notify_all();
    }

    /// Records a request and returns its number and its step.
    fn admit_request(&self, mut request: ModelRequest) -> (usize, Option<AnswerStep>) {
        let mut state = self.lock_state();
        let chosen_step = self.scenario.choose_step(&request, &state.rule_uses, &state.open_gates);
        let chosen_step = chosen_step.map(|(rule, step)| (rule, step.clone()));
        let judge_step = review_rules::confirm_repairs(&request.last_text).filter(|_| chosen_step.is_none());
        // An answer without a rule counts as one of a further rule.
        let judge_rule = judge_step.as_ref().map(|_| state.rule_uses.len());
        request.rule_index = chosen_step.as_ref().map(|(rule, _)| *rule).or(judge_rule);
        if let Some(used) = request.rule_index.and_then(|rule| state.rule_uses.get_mut(rule)) {
            *used += 1;
        }
        state.request_log.requests.push(request);
        state.request_log.live_requests += 1;
        state.request_log.peak_requests = state.request_log.peak_requests.max(state.request_log.live_requests);
        let request_number = state.request_log.requests.len();
        drop(state);
        self.changed.notify_all();
        (request_number, chosen_step.map(|(_, step)| step).or(judge_step))
    }
}

/// Accepts connections. Their threads end with the scope, so a dropped server leaves none.
fn accept_connections(shared: &SharedServer, listener: &TcpListener) {
    thread::scope(|scope| {
        for (connection_id, connection) in (0u64..).zip(listener.incoming()) {
            let Ok(connection) = connection else { continue };
            let mut state = shared.lock_state();
            if state.is_closed {
                break;
            }
            let Ok(connection_handle) = connection.try_clone() else { continue };
            state.connections.insert(connection_id, connection_handle);
            drop(state);
            scope.spawn(move || {
                // A client that disconnects in the middle of an answer is no error of the server.
                let _ = serve_connection(shared, &connection);
                let _ = connection.shutdown(Shutdown::Both);
                shared.lock_state().connections.remove(&connection_id);
            });
        }
    });
}

/// What happens to the connection after an answer.
#[derive(PartialEq, Eq)]
enum ConnectionFate {
    KeepOpen,
    Close,
}

fn serve_connection(shared: &SharedServer, connection: &TcpStream) -> io::Result<()> {
    let mut request_reader = BufReader::new(connection.try_clone()?);
    let mut response_writer = connection.try_clone()?;
    while let Some(incoming) = http::read_request(&mut request_reader, &mut response_writer)? {
        let mut streams =
            ConnectionStreams { request_reader: &mut request_reader, response_writer: &mut response_writer };
        let connection_fate = match ModelApi::from_route(&incoming.method, &incoming.path) {
            Some(api) => answer_model_request(shared, api, &incoming, &mut streams)?,
            None => answer_visit(shared, &incoming, &mut streams)?,
        };
        if connection_fate == ConnectionFate::Close {
            break;
        }
    }
    Ok(())
}

/// The two directions of a connection.
struct ConnectionStreams<'a> {
    request_reader: &'a mut BufReader<TcpStream>,
    response_writer: &'a mut TcpStream,
}

impl ConnectionStreams<'_> {
    fn write_json(&mut self, status: u16, body: &Value) -> io::Result<ConnectionFate> {
        let (headers, body) = (BTreeMap::new(), body.to_string());
        HttpResponse { status, content_type: JSON_CONTENT_TYPE, headers: &headers, body: &body, head_only: false }
            .write_to(self.response_writer)?;
        Ok(ConnectionFate::KeepOpen)
    }

    /// Reads until the client disconnects or the server is dropped.
    fn read_until_closed(&mut self) -> io::Result<ConnectionFate> {
        loop {
            match self.request_reader.fill_buf()?.len() {
                0 => return Ok(ConnectionFate::Close),
                length => self.request_reader.consume(length),
            }
        }
    }
}

const JSON_CONTENT_TYPE: &str = "application/json";

/// Answers requests that are not for a model: the list of models, and 404 for everything else.
fn answer_visit(
    shared: &SharedServer,
    incoming: &HttpRequest,
    streams: &mut ConnectionStreams<'_>,
) -> io::Result<ConnectionFate> {
    shared.record_visit(incoming);
    let route = incoming.path.split('?').next().unwrap_or_default();
    let (status, body) = match (incoming.method.as_str(), route) {
        ("GET", "/v1/models") => {
            let model = |id: &String| json!({"id": id, "type": "model", "object": "model", "display_name": id});
            let models: Vec<Value> = shared.scenario.models.iter().map(model).collect();
            (200, json!({"object": "list", "data": models, "has_more": false}))
        }
        _ => (404, error_body(ModelApi::Chat, "not_found", &format!("unknown route: {route}"))),
    };
    let head_only = incoming.method == "HEAD";
    let (headers, body) = (BTreeMap::new(), body.to_string());
    HttpResponse { status, content_type: JSON_CONTENT_TYPE, headers: &headers, body: &body, head_only }
        .write_to(streams.response_writer)?;
    Ok(ConnectionFate::KeepOpen)
}

/// Counts a live request down when its answer ends, normally or by a failure.
struct LiveRequestGuard<'a>(&'a SharedServer);

impl Drop for LiveRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.lock_state().request_log.live_requests -= 1;
        self.0.changed.notify_all();
    }
}

fn answer_model_request(
    shared: &SharedServer,
    api: ModelApi,
    incoming: &HttpRequest,
    streams: &mut ConnectionStreams<'_>,
) -> io::Result<ConnectionFate> {
    let refusal_body = |refusal_reason: &str| error_body(api, "invalid_request_error", refusal_reason);
    let Ok(body) = serde_json::from_slice::<Value>(&incoming.body) else {
        shared.record_visit(incoming);
        return streams.write_json(400, &refusal_body("the request body is not valid JSON"));
    };
    let api_key = ["authorization", "x-api-key"].iter().find_map(|name| incoming.headers.get(*name));
    let request = ModelRequest::parse(api, api_key.is_some_and(|api_key| !api_key.is_empty()), body);
    let (request_number, step) = shared.admit_request(request.clone());
    // The request counts as live from here on, also while it waits at a gate.
    let _live = LiveRequestGuard(shared);
    let Some(step) = step else {
        return streams.write_json(400, &refusal_body("no rule of the scenario matches this request"));
    };
    if step.gate.as_ref().is_some_and(|gate| !shared.wait_at_gate(gate)) {
        return Ok(ConnectionFate::Close);
    }
    match ModelAnswer::from_step(&request, request_number, &step) {
        Ok(answer) => write_reply(&request, &answer, step.fail.as_ref(), streams),
        Err(missing) => streams.write_json(400, &refusal_body(&missing.to_string())),
    }
}

fn write_reply(
    request: &ModelRequest,
    answer: &ModelAnswer,
    failure: Option<&AnswerFailure>,
    streams: &mut ConnectionStreams<'_>,
) -> io::Result<ConnectionFate> {
    let api = request.api;
    match failure {
        None => {}
        Some(AnswerFailure::Status { code, kind, message, headers, body }) => {
            let body = body.clone().unwrap_or_else(|| error_body(api, kind, message).to_string());
            let body = timestamps::fill_timestamps_now(&body);
            HttpResponse { status: *code, content_type: JSON_CONTENT_TYPE, headers, body: &body, head_only: false }
                .write_to(streams.response_writer)?;
            return Ok(ConnectionFate::KeepOpen);
        }
        Some(AnswerFailure::NotJson(body)) => {
            let headers = BTreeMap::new();
            HttpResponse { status: 200, content_type: JSON_CONTENT_TYPE, headers: &headers, body, head_only: false }
                .write_to(streams.response_writer)?;
            return Ok(ConnectionFate::KeepOpen);
        }
        Some(AnswerFailure::HangUp) => return Ok(ConnectionFate::Close),
        Some(AnswerFailure::Silence) => return streams.read_until_closed(),
        Some(AnswerFailure::Cut) if !request.is_streaming => {
            let (headers, body) = (BTreeMap::new(), answer.to_body(api).to_string());
            HttpResponse {
                status: 200,
                content_type: JSON_CONTENT_TYPE,
                headers: &headers,
                body: &body,
                head_only: false,
            }
            .write_half_to(streams.response_writer)?;
            return Ok(ConnectionFate::Close);
        }
        Some(AnswerFailure::StreamError { kind, message }) if !request.is_streaming => {
            return streams.write_json(500, &error_body(api, kind, message));
        }
        Some(AnswerFailure::Cut | AnswerFailure::StreamError { .. }) => {}
    }
    if request.is_streaming {
        write_stream(api, answer, failure, streams)
    } else {
        streams.write_json(200, &answer.to_body(api))
    }
}

fn write_stream(
    api: ModelApi,
    answer: &ModelAnswer,
    failure: Option<&AnswerFailure>,
    streams: &mut ConnectionStreams<'_>,
) -> io::Result<ConnectionFate> {
    let mut events = answer.to_events(api);
    http::begin_stream(streams.response_writer)?;
    if failure.is_some() {
        // The stream breaks off before the end of the text, so that no client can take it for a complete answer.
        events.truncate(events.len() / 2);
    }
    if let Some(AnswerFailure::StreamError { kind, message }) = failure {
        events.push(stream_error_event(api, kind, message));
    }
    for event in &events {
        http::write_event(streams.response_writer, event)?;
    }
    if matches!(failure, Some(AnswerFailure::Cut)) {
        return Ok(ConnectionFate::Close);
    }
    http::end_stream(streams.response_writer)?;
    Ok(ConnectionFate::KeepOpen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_visitors_can_be_dropped() {
        drop(ModelServer::start(Scenario::default()).expect("started"));
    }
}
