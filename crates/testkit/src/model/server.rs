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
    answer::{Answer, error, stream_error},
    http::{self, Incoming, Whole},
    moments,
    request::{Api, Request},
    scenario::{Failure, Scenario, Step},
};

/// The longest wait of a test; what has not come by then will not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// The requests so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The requests to a model, oldest first.
    pub requests: Vec<Request>,
    /// All other requests, as `METHOD PATH`.
    pub visits: Vec<String>,
    /// The number of requests that are being answered now; `peak_requests` is the highest number so far.
    pub live: usize,
    pub peak: usize,
}

impl Tally {
    /// The requests that no rule of the scenario matches.
    pub fn unscripted(&self) -> Vec<&Request> {
        self.requests.iter().filter(|request| request.rule.is_none()).collect()
    }
}

#[derive(Debug, Default)]
struct State {
    tally: Tally,
    /// The number of requests that each rule has answered.
    used: Vec<usize>,
    open: BTreeSet<String>,
    connections: BTreeMap<u64, TcpStream>,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    scenario: Scenario,
    state: Mutex<State>,
    changed: Condvar,
}

/// A running server. It listens until it is dropped; then every connection is closed and every thread has ended.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts on a free port.
    pub fn start(scenario: Scenario) -> io::Result<Server> {
        Server::start_on(scenario, 0)
    }

    pub fn start_on(scenario: Scenario, port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let used = vec![0; scenario.rules.len()];
        let state = Mutex::new(State { used, ..State::default() });
        let shared = Arc::new(Shared { scenario, state, changed: Condvar::new() });
        let listens = Arc::clone(&shared);
        let listener =
            thread::Builder::new().name("model".into()).spawn(move || listen(&listens, &listener))?;
        Ok(Server { shared, address, listener: Some(listener) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn tally(&self) -> Tally {
        self.shared.state().tally.clone()
    }

    /// Lets every answer pass that waits, or will wait, at this gate.
    pub fn open(&self, gate: &str) {
        self.shared.state().open.insert(gate.to_string());
        self.shared.changed.notify_all();
    }

    /// Waits until this many requests to a model have arrived, answered or not.
    pub fn wait_for(&self, requests: usize) {
        self.wait_until(&format!("{requests} requests"), |tally| tally.requests.len() >= requests);
    }

    /// Shows every request as it comes in, without end.
    pub fn watch(&self, show: &mut dyn FnMut(usize, &Request)) -> ! {
        let mut shown = 0;
        loop {
            let waiting = |state: &mut State| state.tally.requests.len() <= shown;
            let state = self.shared.changed.wait_while(self.shared.state(), waiting);
            let new = state.unwrap_or_else(PoisonError::into_inner).tally.requests.get(shown).cloned();
            if let Some(request) = &new {
                shown += 1;
                show(shown, request);
            }
        }
    }

    /// Waits until the log meets a condition. It panics if that takes longer than any test should.
    pub fn wait_until(&self, wish: &str, holds: impl Fn(&Tally) -> bool) {
        let waiting = |state: &mut State| !holds(&state.tally);
        let (state, late) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.state(), PATIENCE, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if late.timed_out() {
            panic!("waited in vain for {wish}; so far: {:#?}", state.tally);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closed = true;
        for connection in state.connections.values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // The listener notices the end only when a connection comes in, so one is opened.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits at a gate. The result is false if the server was dropped meanwhile.
    fn pass(&self, gate: &str) -> bool {
        let waiting = |state: &mut State| !state.closed && !state.open.contains(gate);
        let state = self.changed.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    fn visit(&self, incoming: &Incoming) {
        self.state().tally.visits.push(format!("{} {}", incoming.method, incoming.path));
        self.changed.notify_all();
    }

    /// Records a request and returns its number and its step.
    fn admit(&self, mut request: Request) -> (usize, Option<Step>) {
        let mut state = self.state();
        let chosen = self.scenario.choose(&request, &state.used, &state.open);
        let chosen = chosen.map(|(rule, step)| (rule, step.clone()));
        request.rule = chosen.as_ref().map(|(rule, _)| *rule);
        if let Some(used) = request.rule.and_then(|rule| state.used.get_mut(rule)) {
            *used += 1;
        }
        state.tally.requests.push(request);
        state.tally.live += 1;
        state.tally.peak = state.tally.peak.max(state.tally.live);
        let number = state.tally.requests.len();
        drop(state);
        self.changed.notify_all();
        (number, chosen.map(|(_, step)| step))
    }
}

/// Accepts connections. Their threads end with the scope, so a dropped server leaves none.
fn listen(shared: &Shared, listener: &TcpListener) {
    thread::scope(|scope| {
        for (id, connection) in (0u64..).zip(listener.incoming()) {
            let Ok(connection) = connection else { continue };
            let mut state = shared.state();
            if state.closed {
                break;
            }
            let Ok(known) = connection.try_clone() else { continue };
            state.connections.insert(id, known);
            drop(state);
            scope.spawn(move || {
                // A client that disconnects in the middle of an answer is no error of the server.
                let _ = serve(shared, &connection);
                let _ = connection.shutdown(Shutdown::Both);
                shared.state().connections.remove(&id);
            });
        }
    });
}

/// What happens to the connection after an answer.
#[derive(PartialEq, Eq)]
enum After {
    Next,
    End,
}

fn serve(shared: &Shared, connection: &TcpStream) -> io::Result<()> {
    let mut from = BufReader::new(connection.try_clone()?);
    let mut to = connection.try_clone()?;
    while let Some(incoming) = http::read(&mut from, &mut to)? {
        let mut line = Line { from: &mut from, to: &mut to };
        let after = match Api::of(&incoming.method, &incoming.path) {
            Some(api) => model(shared, api, &incoming, &mut line)?,
            None => visit(shared, &incoming, &mut line)?,
        };
        if after == After::End {
            break;
        }
    }
    Ok(())
}

/// The two directions of a connection.
struct Line<'a> {
    from: &'a mut BufReader<TcpStream>,
    to: &'a mut TcpStream,
}

impl Line<'_> {
    fn json(&mut self, status: u16, body: &Value) -> io::Result<After> {
        let (headers, body) = (BTreeMap::new(), body.to_string());
        Whole { status, kind: JSON, headers: &headers, body: &body, head_only: false }.write(self.to)?;
        Ok(After::Next)
    }

    /// Reads until the client disconnects or the server is dropped.
    fn listen_for_nothing(&mut self) -> io::Result<After> {
        loop {
            match self.from.fill_buf()?.len() {
                0 => return Ok(After::End),
                length => self.from.consume(length),
            }
        }
    }
}

const JSON: &str = "application/json";

/// Answers requests that are not for a model: the list of models, and 404 for everything else.
fn visit(shared: &Shared, incoming: &Incoming, line: &mut Line<'_>) -> io::Result<After> {
    shared.visit(incoming);
    let path = incoming.path.split('?').next().unwrap_or_default();
    let (status, body) = match (incoming.method.as_str(), path) {
        ("GET", "/v1/models") => {
            let model =
                |id: &String| json!({"id": id, "type": "model", "object": "model", "display_name": id});
            let models: Vec<Value> = shared.scenario.models.iter().map(model).collect();
            (200, json!({"object": "list", "data": models, "has_more": false}))
        }
        _ => (404, error(Api::Chat, "not_found", &format!("there is nothing at {path}"))),
    };
    let head_only = incoming.method == "HEAD";
    let (headers, body) = (BTreeMap::new(), body.to_string());
    Whole { status, kind: JSON, headers: &headers, body: &body, head_only }.write(line.to)?;
    Ok(After::Next)
}

/// Counts a live request down when its answer ends, normally or by a failure.
struct Live<'a>(&'a Shared);

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.0.state().tally.live -= 1;
        self.0.changed.notify_all();
    }
}

fn model(shared: &Shared, api: Api, incoming: &Incoming, line: &mut Line<'_>) -> io::Result<After> {
    let refuse = |why: &str| error(api, "invalid_request_error", why);
    let Ok(body) = serde_json::from_slice::<Value>(&incoming.body) else {
        shared.visit(incoming);
        return line.json(400, &refuse("the body is not JSON"));
    };
    let key = ["authorization", "x-api-key"].iter().find_map(|name| incoming.headers.get(*name));
    let request = Request::read(api, key.is_some_and(|key| !key.is_empty()), body);
    let (number, step) = shared.admit(request.clone());
    // The request counts as live from here on, also while it waits at a gate.
    let _live = Live(shared);
    let Some(step) = step else {
        return line.json(400, &refuse("the scenario says nothing about this request"));
    };
    if step.gate.as_ref().is_some_and(|gate| !shared.pass(gate)) {
        return Ok(After::End);
    }
    match Answer::to(&request, number, &step) {
        Ok(answer) => reply(&request, &answer, step.fail.as_ref(), line),
        Err(missing) => line.json(400, &refuse(&missing.to_string())),
    }
}

fn reply(
    request: &Request,
    answer: &Answer,
    fail: Option<&Failure>,
    line: &mut Line<'_>,
) -> io::Result<After> {
    let api = request.api;
    match fail {
        None => {}
        Some(Failure::Status { code, kind, message, headers, body }) => {
            let body = body.clone().unwrap_or_else(|| error(api, kind, message).to_string());
            let body = moments::filled_now(&body);
            Whole { status: *code, kind: JSON, headers, body: &body, head_only: false }.write(line.to)?;
            return Ok(After::Next);
        }
        Some(Failure::NotJson(body)) => {
            let headers = BTreeMap::new();
            Whole { status: 200, kind: JSON, headers: &headers, body, head_only: false }.write(line.to)?;
            return Ok(After::Next);
        }
        Some(Failure::HangUp) => return Ok(After::End),
        Some(Failure::Silence) => return line.listen_for_nothing(),
        Some(Failure::Cut) if !request.stream => {
            let (headers, body) = (BTreeMap::new(), answer.whole(api).to_string());
            Whole { status: 200, kind: JSON, headers: &headers, body: &body, head_only: false }
                .write_half(line.to)?;
            return Ok(After::End);
        }
        Some(Failure::StreamError { kind, message }) if !request.stream => {
            return line.json(500, &error(api, kind, message));
        }
        Some(Failure::Cut | Failure::StreamError { .. }) => {}
    }
    if request.stream { stream(api, answer, fail, line) } else { line.json(200, &answer.whole(api)) }
}

fn stream(api: Api, answer: &Answer, fail: Option<&Failure>, line: &mut Line<'_>) -> io::Result<After> {
    let mut events = answer.stream(api);
    http::begin_stream(line.to)?;
    if fail.is_some() {
        // The stream breaks off before the end of the text, so that no client can take it for a complete answer.
        events.truncate(events.len() / 2);
    }
    if let Some(Failure::StreamError { kind, message }) = fail {
        events.push(stream_error(api, kind, message));
    }
    for event in &events {
        http::write_event(line.to, event)?;
    }
    if matches!(fail, Some(Failure::Cut)) {
        return Ok(After::End);
    }
    http::end_stream(line.to)?;
    Ok(After::Next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_visitors_can_be_dropped() {
        drop(Server::start(Scenario::default()).expect("started"));
    }
}
