//! `model-server --scenario FILE [--port N]`: the scripted model server for trying a client by hand. It prints its address and
//! then a line for each request, until it is ended. Exit code 2 means that the arguments are not understood.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command line")]

use std::{convert::Infallible, error::Error, fs, process::ExitCode};

use tribunal_testkit::model::{ModelRequest, ModelServer, Scenario};

const USAGE: &str = "usage: model-server --scenario FILE [--port N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((scenario_path, port)) = parse_arguments(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let Err(problem) = run_server(&scenario_path, port);
    eprintln!("model-server: {scenario_path}: {problem}");
    ExitCode::FAILURE
}

fn parse_arguments(arguments: &[String]) -> Option<(String, u16)> {
    let (mut scenario_path, mut port) = (None, 0);
    for argument_pair in arguments.chunks(2) {
        let [name, value] = argument_pair else { return None };
        match name.as_str() {
            "--scenario" => scenario_path = Some(value.clone()),
            "--port" => port = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((scenario_path?, port))
}

fn run_server(scenario_path: &str, port: u16) -> Result<Infallible, Box<dyn Error>> {
    let server = ModelServer::start_on_port(Scenario::parse(&fs::read_to_string(scenario_path)?)?, port)?;
    println!("http://{}", server.address());
    server.watch_requests(&mut |request_number, request| println!("{}", format_request(request_number, request)))
}

fn format_request(request_number: usize, request: &ModelRequest) -> String {
    let rule_text = request.rule_index.map_or("no rule".to_string(), |rule_index| format!("rule {}", rule_index + 1));
    let last_text: String = request.last_text.chars().take(60).collect();
    format!(
        "{request_number} {:?} {} {rule_text}, round {}: {last_text:?}",
        request.api, request.model, request.tool_rounds
    )
}
